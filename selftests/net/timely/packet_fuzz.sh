#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Valid and malformed packets pass sch_timely and timely_acker, and valid and malformed OR-ACKs
# arrive: see packet_fuzz.c. TIMELY_FUZZ_PACKETS and TIMELY_FUZZ_SEED set the number of packets,
# 40000 by default, and the seed. Topology: h1 -- h2, a veth pair with a VLAN, a VXLAN tunnel and a
# tap device of h2.

. "$(dirname "$0")/onramp_lib.sh"

packets=${TIMELY_FUZZ_PACKETS:-40000}
seed=${TIMELY_FUZZ_SEED:-1}
key=000102030405060708090a0b0c0d0e0f

# Packets reach h2 directly, with a VLAN tag, by the tunnel and by the tap device. h2's rules ask
# for OR-ACKs to all of them.
hosts() {
	onramp_pair
	load_onramp
	must insmod "$modules/tcp_timely.ko"
	for end in 1 2; do
		far=$((3 - end))
		must ip -n h$end link add link eth0 name eth0.7 type vlan id 7
		must ip -n h$end link add vxlan0 address 02:00:00:00:00:0$end type vxlan id 42 \
			local 10.7.2.$end remote 10.7.2.$far dev eth0 dstport 4789
		for device in eth0.7 vxlan0; do
			must ip netns exec h$end sh -c "echo 1 >/proc/sys/net/ipv6/conf/$device/disable_ipv6"
			must ip -n h$end link set $device up
		done
	done
	must ip -n h2 tuntap add tap0 mode tap vnet_hdr
	must ip -n h2 link set tap0 address 02:00:00:00:00:02 up
	for family in 0.0.0.0/0 ::/0; do
		ctl h2 acker add $family
	done
	onramp <<-'END'
		add_key(1, SECRET)
		for ns in "h1", "h2":
		    ctl(ns, "key", "use", "1")
	END
}

# unexplained(SEEN): OR-ACKs that were received, but are in no counter for a reason
cat >"$work/fuzz.py" <<-'END'
	REASONS = ("accepted", "flooded", "malformed", "unknown_key", "bad_tag", "no_flow",
	           "not_in_flight", "old", "bad_time")
	FUZZ = os.environ["TIMELY_MODULES"] + "/packet_fuzz"
	def fuzz(ns, *words):
	    return subprocess.Popen(["ip", "netns", "exec", ns, FUZZ, *map(str, words)],
	                            stdout=subprocess.PIPE, text=True)
	def finish(fuzzer):
	    said = fuzzer.communicate()[0]
	    for line in said.splitlines():
	        say(line.removeprefix("# "))
	    found = re.search(r"(\d+) packets, (\d+) refused", said)
	    return fuzzer.returncode, *map(int, found.groups() if found else (0, 0))
	def unexplained(seen):
	    return seen.get("received", 0) - sum(seen.get(name, 0) for name in REASONS)
END

# fuzz_plan: lines of Python on standard input
fuzz_plan() {
	{
		cat "$work/fuzz.py"
		cat
	} >"$work/fuzz.plan"
	onramp <"$work/fuzz.plan"
}

# data PACKETS SEED QDISC...: fuzzed packets through h1's qdisc, beside a paced flow whose packets
# must leave on time and arrive complete
data() {
	count=$1
	with_seed=$2
	shift 2
	h1_qdisc "$@"
	fuzz_plan <<-END
		SIZE, RATE = 1000, 1000000
		INTERVAL = on_the_wire(SIZE) * S // RATE
		sink = Sink("h2", H2, 5)
		genuine = source(port=5, rate=RATE)
		before, before_h2 = counters("h1"), counters("h2")
		fuzzer = fuzz("h1", "data", $with_seed, $count, "eth0", "eth0.7", "vxlan0")
		sent = 0
		while fuzzer.poll() is None or sent < 200:
		    for _ in range(2):
		        genuine.send(payload(sent, 0, SIZE))
		        sent += 1
		    time.sleep(2 * INTERVAL / S)
		got = sink.take(sent, 5, quiet=1)
		status, tried, refused = finish(fuzzer)
		ours = [p for p in got if len(p.data) == SIZE]
		gaps = sorted(b.at - a.at for a, b in zip(ours, ours[1:]))
		seen, answered = grown(before, counters("h1")), grown(before_h2, counters("h2"))
		say(f"genuine: {sent} sent, {len(ours)} arrived, {gaps[0]} to {gaps[-1]} ns apart;",
		    f"OR-ACKs: {answered}, {seen}")
		result(status=status, tried=tried, refused=refused, lost=sent - len(ours),
		       disorder=sum(a.number > b.number for a, b in zip(ours, ours[1:])),
		       answered=answered.get("sent", 0), unexplained=unexplained(seen),
		       shortest=gaps[0], longest=gaps[-1], interval=INTERVAL, left=stats()["qlen"])
	END
	expect status -eq 0
	expect tried -eq "$count"
	expect refused -le $((count * 6 / 10)) "packets that the socket refuses test nothing"
	expect lost -eq 0 "genuine packets with $*"
	expect disorder -eq 0
	case $* in
	*nopacing*) ;;
	*)	expect shortest -ge $((interval - 20000)) "ns between genuine packets with $*"
		expect longest -le $((interval + 20000)) "ns between genuine packets with $*" ;;
	esac
	expect answered -ge $((count / 100))
	expect unexplained -eq 0 "OR-ACKs received but not counted"
	expect left -eq 0
}

data_passes() {
	# shellcheck disable=SC2086 # words
	data $((packets / 8)) "$seed" timely $exact limit 100000
	data $((packets / 8)) $((seed + 1)) timely $exact limit 100000 split 3000 ack_first ack_dscp 8
	data $((packets / 8)) $((seed + 2)) timely $exact limit 100000 nopacing onramp 50us owd absolute
	data $((packets / 8)) $((seed + 3)) timely $exact limit 100000 onramp 50us owd relative split 1500
}

# A tap device hands frames to napi_gro_frags().
data_by_a_tap() {
	fuzz_plan <<-END
		before = counters("h2")
		status, tried, refused = finish(fuzz("h2", "data", $seed, $((packets / 8)), "tap:tap0"))
		seen = grown(before, counters("h2"))
		say(seen)
		result(status=status, tried=tried, refused=refused, answers=sum(seen.get(name, 0) for
		       name in ("sent", "send_errors", "send_limited")))
	END
	expect status -eq 0
	expect tried -eq $((packets / 8))
	expect refused -le $((packets * 6 / 80))
	expect answers -ge 1
}

# Without rules h2 sends no genuine OR-ACKs in the next cases.
no_rules() {
	for family in 0.0.0.0/0 ::/0; do
		ctl h2 acker del $family
	done
}

# oracks PACKETS SEED [SECRET]: fuzzed OR-ACKs from h2 to h1
oracks() {
	h1_qdisc timely onramp 50us owd absolute
	fuzz_plan <<-END
		before = counters("h1")
		status, tried, refused = finish(fuzz("h2", "oracks", $2, $1, "eth0", "h1" ${3:+, \"$3\"}))
		wait(50 * MS)
		seen, qdisc = grown(before, counters("h1")), stats()
		say(seen, {name: qdisc[name] for name in ("onramp_signals", "onramp_pauses")})
		result(status=status, tried=tried, refused=refused, received=seen.get("received", 0),
		       accepted=seen.get("accepted", 0), unexplained=unexplained(seen),
		       kinds=sum(name in seen for name in REASONS), pauses=qdisc["onramp_pauses"],
		       left=qdisc["qlen"])
	END
	expect status -eq 0
	expect tried -eq "$1"
	expect received -ge $(($1 / 3))
	expect unexplained -eq 0 "OR-ACKs received but not counted"
	expect left -eq 0
}

# Without the key, OR-ACKs change only counters.
oracks_without_the_key() {
	oracks $((packets / 4)) "$seed"
	expect accepted -eq 0 "accepted forged OR-ACKs"
	expect pauses -eq 0
}

# With the key, some OR-ACKs are valid and accepted. All others are counted by their reasons.
oracks_with_the_key() {
	oracks $((packets / 8)) "$seed" $key
	expect accepted -ge 1
	expect kinds -ge 6
}

run_cases hosts data_passes data_by_a_tap no_rules oracks_without_the_key oracks_with_the_key
