#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp as a whole, sender and receiver, over a bottleneck of 5 Gb/s whose buffer
# takes 2.4 ms to drain: the queue stays near the threshold, nearly nothing of the
# throughput is lost, whatever the congestion control, the addresses and the kind of
# delay.

. "$(dirname "$0")/onramp_lib.sh"

bottleneck="limit 1000 rate 5gbit delay 10us"
# Pieces of two packets: a segment of 64 KB alone is a queue of 100 us there.
plain="timely segment 3000"
holding="$plain onramp 50us"
rate_kbps=5000000
# 95 % of the payload that it can carry.
nearly_all=4540000
# Tenths of a second before what is measured.
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

# Two flows, and a pinger in front of the bottleneck. Sets got, kbit/s, and the ping's
# p_p50 and p_p99, us.
# two_flows CC ADDRESS [LINE...]: of traffic.py's plan
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

# What h1's qdisc has counted since: seen_pauses, seen_signals, seen_paused_ns, and
# since when, as `tc -s -j` tells.
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

# As a case before may have left it.
receiver_as_it_was() {
	ctl h2 acker set test-clock-offset 0 test-clock-drift 0
	ip netns exec h2 "$modules/timelyctl" acker add any >/dev/null 2>&1 || :
}

# One after the other without and with; the first is got_before.
# beside CC ADDRESS [OPTION...]
beside() {
	cc=$1
	to=$2
	shift 2
	hold_anew $plain
	two_flows "$cc" "$to"
	got_before=$got
	p99_before=$p_p99
	hold_anew $holding "$@"
	two_flows "$cc" "$to"
	say "$cc $to $*: $((got_before / 1000)) Mb/s, p99 $p99_before us; held $((got / 1000)) Mb/s, p50 $p_p50 p99 $p_p99 us"
	expect got -ge $((got_before * 95 / 100)) "throughput with $cc"
	p99=$p_p99
	counted
	expect same -eq 1 "tc -s -j and the kernel's counters"
	expect seen_delays -eq "$seen_signals"
}

# What the receiver sends is what the sender would believe: its tag, packet and time.
receiver_signs() {
	onramp <<-'END'
		# It learns of the rules when they are there.
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

cubic_is_held() {
	beside cubic "$h2_v4"
	expect p99_before -ge 1500 "without On-Ramp the queue is long"
	expect p99 -le 200
	expect seen_signals -ge 100
	expect seen_pauses -ge 10
	expect seen_paused_ns -ge 1000000
}

ipv6_is_held() {
	beside cubic "$h2_v6"
	expect p99 -le 200
	expect seen_pauses -ge 10
}

bbr_is_held() {
	beside bbr "$h2_v4"
	expect p99 -le 200
	expect p99 -le "$p99_before"
}

# Without marks it is reno.
dctcp_is_held() {
	beside dctcp "$h2_v4"
	expect p99_before -ge 1000
	expect p99 -le 200
	expect seen_pauses -ge 10
}

# It takes its time to find its rate.
timely_is_held() {
	tenth=5
	beside timely "$h2_v4"
	expect p99 -le 200
}

relative_delay() {
	ctl h2 acker set test-clock-offset 7200000000000 test-clock-drift 100000
	# An idle path is no reason to be held.
	hold_anew $holding owd relative
	traffic <<-END
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=$((rate_kbps / 10))
		0.5	goodput got flow=a for=0.5
		1.01	end
	END
	expect_near got $((rate_kbps / 10)) 3
	counted
	expect seen_signals -ge 100
	expect seen_pauses -eq 0 "held though the path is idle"
	two_flows cubic "$h2_v4"
	say "held $((got / 1000)) Mb/s, p50 $p_p50 p99 $p_p99 us"
	expect got -ge $nearly_all
	expect p_p99 -le 200
	counted
	expect seen_pauses -ge 10
}

# TCP's own RTTs: no OR-ACK is asked for, sent or heard.
rtt_without_receiver() {
	ctl h2 acker del any
	hold_anew $holding owd rtt
	onramp <<-'END'
		result(before=sum(counters(ns)[name] for ns in ("h1", "h2") for name in ("sent", "received")))
	END
	was=$before
	for to in $h2_v4 $h2_v6; do
		two_flows cubic "$to"
		say "$to: held $((got / 1000)) Mb/s, p50 $p_p50 p99 $p_p99 us"
		expect got -ge $nearly_all
		expect p_p99 -le 200
	done
	counted
	expect seen_pauses -ge 10
	signals=$seen_signals
	onramp <<-'END'
		result(after=sum(counters(ns)[name] for ns in ("h1", "h2") for name in ("sent", "received")),
		       rtts=counters()["rtts"])
	END
	expect after -eq "$was" "OR-ACKs were sent or heard"
	expect rtts -ge "$signals"
}

# A socket that sends 7.5 Gb/s into it, UDP: the queue is in the host, not in the network.
udp_is_held() {
	receiver_as_it_was
	for how in "$plain" "$holding"; do
		hold_anew $how
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
		case $how in
		*onramp*)
			expect drops -le $((drops_before / 20))
			expect pauses -ge 10
			# With all headers.
			expect rate -ge $((rate_kbps * 95 / 100)) ;;
		*)	expect drops -ge 4000
			drops_before=$drops ;;
		esac
	done
}

# Three steps, and no OR-ACK is refused by anybody meanwhile.
keys_rotate_under_load() {
	receiver_as_it_was
	hold_anew $holding
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

# A paced flow over the idle path while the receiver's clock is set: no wait is longer
# than pause_max, and after a while there is none.
# step KIND NS
step() {
	ctl h2 acker set test-clock-offset 1000 test-clock-drift 0
	hold_anew $holding owd "$1" pause_max 5ms
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
		held = [a - began for a, b in zip(times, times[1:]) if b - a > 100 * US]
		result(signals=stats()["onramp_signals"] - signals)
		result(idle=idle, middle=middle - idle, late=stats()["onramp_pauses"] - middle, gap=max(gaps),
		       until=max(held, default=0))
	END
	say "$1, a step of $2 ns: held $middle times, at most $((gap / 1000)) us, until $((until / 1000)) us after"
	expect idle -eq 0
	expect gap -le 5100000 "longer than pause_max"
	expect late -eq 0 "held still, long after the step"
	[ "$1" = absolute ] || expect signals -ge 10 "OR-ACKs do not count any more"
}

steps_of_the_receivers_clock() {
	receiver_as_it_was
	for by in 1000000000 -1000000000 3600000000000 10000000 -10000000 300000 -300000; do
		step relative $by
	done
	# What is no delay that can be is not believed; a clock wrong by less is a delay.
	for by in 1000000000 -1000000000 3600000000000 -10000000 -300000; do
		step absolute $by
	done
	ctl h2 acker set test-clock-offset 0 test-clock-drift 0
}

# Another threshold, gain and kind of delay while flows are held.
changes_under_load() {
	receiver_as_it_was
	hold_anew $holding
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

# The receiver goes, and comes again.
receiver_goes() {
	receiver_as_it_was
	hold_anew $holding
	two_flows cubic "$h2_v4" \
		"0.03 run rmmod timely_acker" \
		"0.12 run insmod $modules/timely_acker.ko" \
		"0.13 run ip netns exec h2 $modules/timelyctl acker add any"
	expect got -ge $nearly_all
	counted
	expect seen_pauses -ge 10
}

goodbye() {
	hosts_down
	unload_timely
}

run_cases hosts receiver_signs cubic_is_held ipv6_is_held bbr_is_held dctcp_is_held timely_is_held \
	relative_delay rtt_without_receiver udp_is_held keys_rotate_under_load \
	steps_of_the_receivers_clock changes_under_load receiver_goes goodbye
