#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's sender and receiver together: with any congestion control, IP version and kind of delay
# the queue stays near the threshold, and at most 5 % of the throughput is lost. Also UDP, key
# rotation, clock steps and changes under load.
# Topology: h1 -- mid -- h2, a bottleneck of 5 Gb/s with a buffer of 2.4 ms.

. "$(dirname "$0")/onramp_lib.sh"

bottleneck="limit 1000 rate 5gbit delay 10us"
# Sub-segments of two frames: a packet of 64 KB alone would be a queue of 100 us at 5 Gb/s.
plain="timely split 3000"
pausing="$plain onramp 50us owd absolute"
rate_kbps=5000000
# kbit/s: 95 % of the payload that the bottleneck can carry
nearly_all=4540000
# Tenths of a second before the measurement starts
tenth=0

hosts() {
	hosts_up "$bottleneck"
	h1_without_tso
	load_onramp
	must insmod "$modules/tcp_timely.ko"
	onramp <<-'END'
		add_key(1, SECRET)
		for ns in "h1", "h2":
		    ctl(ns, "key", "use", "1")
		ctl("h2", "acker", "add", "any")
	END
}

# two_flows CC ADDRESS [LINE...]: two flows, UDP pings from mid through the bottleneck, and more
# lines of traffic.py's plan. Sets got, kbit/s, and the round trips p_p50 and p_p99 of the pings,
# us.
two_flows() {
	{
		echo "0	flow a from=h1 to=h2 addr=$2 cc=$1"
		echo "0.001	flow b from=h1 to=h2 addr=$2 cc=$1"
		echo "0.${tenth}6	ping p from=mid to=h2 addr=$h2_v4 for=0.1 every=0.0001"
		echo "0.${tenth}6	goodput a_got flow=a for=0.1"
		echo "0.${tenth}6	goodput b_got flow=b for=0.1"
		shift 2
		for line; do echo "$line"; done
		echo "0.$((tenth + 2))7	end"
	} >"$work/plan"
	traffic <"$work/plan"
	number_of a_got
	number_of b_got
	got=$((a_got + b_got))
}

# Counters of h1's qdisc as `tc -s -j` shows them: seen_pauses, seen_signals, seen_paused_ns and
# seen_delays, the sum of its histogram; and same: 1 if the kernel's counters are equal.
counted() {
	onramp <<-'END'
		(shown,) = json.loads(tc("-s", "-j", "qdisc", "show", "dev", "eth0"))
		for name in "signals", "pauses", "paused_ns":
		    result(**{"seen_" + name: shown["onramp_" + name]})
		result(seen_delays=sum(shown["onramp_delays"]))
		kernel = stats()
		result(same=all(shown["onramp_" + name] == kernel["onramp_" + name]
		                for name in ("signals", "pauses", "paused_ns", "acks_passed")))
		say("b", shown["onramp_b"], "counters", {n: v for n, v in counters().items() if v})
	END
}

# Reset the receiver's test clock and rules, which an earlier case may have changed.
reset_receiver() {
	ctl h2 acker set test-clock-offset 0 test-clock-drift 0
	ip netns exec h2 "$modules/timelyctl" acker add any >/dev/null 2>&1 || :
}

# beside CC ADDRESS [OPTION...]: two flows without On-Ramp (got_before, p99_before), then with it
# and these options (got, p99)
beside() {
	cc=$1
	to=$2
	shift 2
	new_qdisc $plain
	two_flows "$cc" "$to"
	got_before=$got
	p99_before=$p_p99
	new_qdisc $pausing "$@"
	two_flows "$cc" "$to"
	say "$cc $to $*: $((got_before / 1000)) Mb/s, p99 $p99_before us; with On-Ramp $((got / 1000)) Mb/s, p50 $p_p50 p99 $p_p99 us"
	expect got -ge $((got_before * 95 / 100)) "throughput with $cc"
	p99=$p_p99
	counted
	expect same -eq 1 "tc -s -j and the kernel's counters"
	expect seen_delays -eq "$seen_signals"
}

# The receiver's OR-ACKs are valid: tag, packet and time are right.
receivers_or_acks_are_valid() {
	onramp <<-'END'
		wrong = []
		for to, far in (H2, "10.7.1.2"), ("fd07:2::2", "fd07:1::2"):
		    flow = UdpFlow(to=to)
		    family = socket.AF_INET6 if ":" in to else socket.AF_INET
		    with inside("h1"):
		        sock = socket.socket(family, socket.SOCK_DGRAM)
		    sock.bind((far, ORACK_PORT))
		    sock.settimeout(0.1)
		    for number in range(5):
		        flow.send()
		        wire, sender = sock.recvfrom(2000)
		        (packet,) = flow.arrived()
		        said = parse(wire)
		        right = (sender[:2] == (to, ORACK_PORT) and said.protocol == 17 and said.key == 1 and
		                 (said.sport, said.dport) == (flow.tuple.sport, flow.tuple.dport) and
		                 said.seq == packet.seq and not said.flags and
		                 abs(said.received - OFFSET - packet.at) < 10 * US and
		                 said.turnaround < 10 * US and
		                 said.tag == tag_of(flow.tuple, wire[:28], SECRET))
		        if not right:
		            wrong.append((to, said))
		    flow.close()
		    sock.close()
		say(*wrong)
		result(wrong=len(wrong))
	END
	expect wrong -eq 0
}

cubic_is_paused() {
	beside cubic "$h2_v4"
	expect p99_before -ge 1500 "without On-Ramp the queue is long"
	expect p99 -le 200
	expect seen_signals -ge 100
	expect seen_pauses -ge 10
	expect seen_paused_ns -ge 1000000
}

ipv6_is_paused() {
	beside cubic "$h2_v6"
	expect p99 -le 200
	expect seen_pauses -ge 10
}

bbr_is_paused() {
	beside bbr "$h2_v4"
	expect p99 -le 200
	expect p99 -le "$p99_before"
}

# Without ECN marks dctcp behaves like reno.
dctcp_is_paused() {
	beside dctcp "$h2_v4"
	expect p99_before -ge 1000
	expect p99 -le 200
	expect seen_pauses -ge 10
}

# timely needs half a second to find its rate.
timely_is_paused() {
	tenth=5
	beside timely "$h2_v4"
	expect p99 -le 200
}

relative_delay() {
	ctl h2 acker set test-clock-offset 7200000000000 test-clock-drift 100000
	# An idle path causes no pauses.
	new_qdisc $pausing owd relative
	traffic <<-END
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=$((rate_kbps / 10))
		0.5	goodput got flow=a for=0.5
		1.01	end
	END
	expect_near got $((rate_kbps / 10)) 3
	counted
	expect seen_signals -ge 100
	expect seen_pauses -eq 0 "paused though the path is idle"
	two_flows cubic "$h2_v4"
	say "with On-Ramp $((got / 1000)) Mb/s, p50 $p_p50 p99 $p_p99 us"
	expect got -ge $nearly_all
	expect p_p99 -le 200
	counted
	expect seen_pauses -ge 10
}

# With "owd rtt" TCP's RTTs are used: no OR-ACKs are sent or received.
rtt_without_receiver() {
	ctl h2 acker del any
	new_qdisc $pausing owd rtt
	onramp <<-'END'
		result(before=sum(counters(ns)[name] for ns in ("h1", "h2") for name in ("sent", "received")))
	END
	was=$before
	for to in $h2_v4 $h2_v6; do
		two_flows cubic "$to"
		say "$to: with On-Ramp $((got / 1000)) Mb/s, p50 $p_p50 p99 $p_p99 us"
		expect got -ge $nearly_all
		# The p99 has been 160 to 201 us; without On-Ramp it is 2 ms.
		expect p_p50 -le 120
		expect p_p99 -le 300
	done
	counted
	expect seen_pauses -ge 10
	signals=$seen_signals
	onramp <<-'END'
		result(after=sum(counters(ns)[name] for ns in ("h1", "h2") for name in ("sent", "received")),
		       rtts=counters()["rtts"])
	END
	expect after -eq "$was" "OR-ACKs were sent or received"
	expect rtts -ge "$signals"
}

# A UDP socket sends 7.5 Gb/s: the queue is in the host, not at the bottleneck.
udp_is_paused() {
	reset_receiver
	for how in "$plain" "$pausing"; do
		new_qdisc $how
		wire_to_h2 "$bottleneck"
		onramp <<-'END'
			sink = Sink()
			sender = source(rate=937500000)
			sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 100000)
			for number in range(20000):
			    sender.send(payload(number, 0, 1400))
			got = sink.take(20000, 0.3)
			span = got[-1].at - got[0].at
			result(arrived=len(got), drops=qdiscs("mid", "to2")[0xffffffff]["drops"],
			       rate=len(got) * 1442 * 8 * S // span // 1000, pauses=stats()["onramp_pauses"])
		END
		expect arrived -eq $((20000 - drops))
		case $how in
		*onramp*)
			expect drops -le $((drops_before / 20))
			expect pauses -ge 10
			# The rate counts all headers.
			expect rate -ge $((rate_kbps * 95 / 100)) ;;
		*)	expect drops -ge 4000
			drops_before=$drops ;;
		esac
	done
}

# Keys are changed in three steps under load, and no OR-ACK is refused.
keys_rotate_under_load() {
	reset_receiver
	new_qdisc $pausing
	secret=$(printf '%032d' 42)
	echo "$secret" >"$work/secret"
	t="run ip netns exec"
	two_flows cubic "$h2_v4" \
		"0.02 $t h1 $modules/timelyctl key add 2 $work/secret" \
		"0.03 $t h2 $modules/timelyctl key add 2 $work/secret" \
		"0.08 $t h2 $modules/timelyctl key use 2" \
		"0.10 $t h1 $modules/timelyctl key use 2" \
		"0.12 $t h1 $modules/timelyctl key del 1" \
		"0.13 $t h2 $modules/timelyctl key del 1"
	expect got -ge $nearly_all
	expect p_p99 -le 200
	onramp <<-'END'
		result(**{"is_" + name: value for name, value in counters().items()})
		add_key(1, SECRET)
		for ns in "h1", "h2":
		    ctl(ns, "key", "use", "1")
		    ctl(ns, "key", "del", "2")
	END
	for name in unknown_key bad_tag malformed flooded; do
		eval "refused_now=\$is_$name"
		expect refused_now -eq 0 "$name"
	done
	expect is_accepted -ge 100
}

# step KIND NS: a paced flow over an idle path while the receiver's clock is stepped. No pause is
# longer than pause_max, and 300 ms after the step there are no more pauses.
step() {
	ctl h2 acker set test-clock-offset 1000 test-clock-drift 0
	new_qdisc $pausing owd "$1" pause_max 5ms
	onramp <<-END
		sink, sender = Sink(), source(rate=50000000)
		sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 20000)
		def send(seconds):
		    end = time.monotonic() + seconds
		    while time.monotonic() < end:
		        sender.send(payload(0, time.monotonic_ns(), 1000))
		send(0.2)
		idle = stats()["onramp_pauses"]
		ctl("h2", "acker", "set", "test-clock-offset", "$2")
		began = time.monotonic_ns()
		send(0.3)
		middle = stats()["onramp_pauses"]
		signals = stats()["onramp_signals"]
		send(0.1)
		times = [p.at for p in sink.take(1 << 20, 0.1)]
		gaps = [b - a for a, b in zip(times, times[1:])]
		paused = [a - began for a, b in zip(times, times[1:]) if b - a > 100 * US]
		result(signals=stats()["onramp_signals"] - signals)
		result(idle=idle, middle=middle - idle, late=stats()["onramp_pauses"] - middle, gap=max(gaps),
		       until=max(paused, default=0))
	END
	say "$1, a step of $2 ns: $middle pauses of up to $((gap / 1000)) us, the last $((until / 1000)) us after the step"
	expect idle -eq 0
	expect gap -le 5100000 "longer than pause_max"
	expect late -eq 0 "pauses long after the step"
	[ "$1" = absolute ] || expect signals -ge 10 "OR-ACKs are no longer accepted"
}

steps_of_the_receivers_clock() {
	reset_receiver
	for by in 1000000000 -1000000000 3600000000000 10000000 -10000000 300000 -300000; do
		step relative $by
	done
	# Delays that are impossible are ignored; smaller errors of the clock look like delays.
	for by in 1000000000 -1000000000 3600000000000 -10000000 -300000; do
		step absolute $by
	done
	ctl h2 acker set test-clock-offset 0 test-clock-drift 0
}

# Threshold, gain and kind of delay are changed while flows are paused.
changes_under_load() {
	reset_receiver
	new_qdisc $pausing
	two_flows cubic "$h2_v4" \
		"0.02 run tc -n h1 qdisc change dev eth0 root timely onramp 60us gain 1/8" \
		"0.04 run tc -n h1 qdisc change dev eth0 root timely owd rtt" \
		"0.06 run tc -n h1 qdisc change dev eth0 root timely owd relative" \
		"0.08 run tc -n h1 qdisc change dev eth0 root timely strawman" \
		"0.10 run tc -n h1 qdisc change dev eth0 root timely nostrawman pause_max 1ms" \
		"0.12 run tc -n h1 qdisc change dev eth0 root timely onramp off" \
		"0.14 run tc -n h1 qdisc change dev eth0 root timely onramp 50us owd absolute"
	expect got -ge $((nearly_all * 9 / 10))
}

# The receiver's module is unloaded and loaded under load.
receiver_comes_and_goes() {
	reset_receiver
	new_qdisc $pausing
	two_flows cubic "$h2_v4" \
		"0.03 run rmmod timely_acker" \
		"0.12 run insmod $modules/timely_acker.ko" \
		"0.13 run ip netns exec h2 $modules/timelyctl acker add any"
	expect got -ge $nearly_all
	counted
	expect seen_pauses -ge 10
}

unload() {
	hosts_down
	unload_timely
}

run_cases hosts receivers_or_acks_are_valid cubic_is_paused ipv6_is_paused bbr_is_paused dctcp_is_paused timely_is_paused \
	relative_delay rtt_without_receiver udp_is_paused keys_rotate_under_load \
	steps_of_the_receivers_clock changes_under_load receiver_comes_and_goes unload
