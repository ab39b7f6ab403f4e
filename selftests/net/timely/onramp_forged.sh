#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's sender with OR-ACKs that the test builds itself: which packets are paused and for how
# long, and which OR-ACKs are refused. Topology: h1 -- h2, a veth pair; see Forger in
# onramp_wire.py.

. "$(dirname "$0")/onramp_lib.sh"

# "nopacing" shows each pause by itself. TCP's own pacing would hide pauses: after a pause TCP's
# RTTs are long and its rates low.
pacing="timely $exact flow_limit 1000 onramp 50us owd absolute"
pausing="$pacing nopacing"

hosts() {
	onramp_pair
	load_onramp
	must insmod "$modules/tcp_timely.ko"
	without_keys
}

# ---- length of pauses ----

# A delay of 300 us is 250 us above the threshold.
paused_for_the_excess() {
	new_qdisc $pausing
	every_kind <<-'END'
		before = stats()
		for name, forger in forgers():
		    reported = forger.report_one(300 * US)
		    forger.flow.send(3)
		    wait(1 * MS)
		    got = forger.flow.arrived()
		    result(**{name + "_bytes": sum(p.size for p in got),
		              name + "_off": got[0].at - reported - 250 * US,
		              name + "_span": got[-1].at - got[0].at})
		after = stats()
		say({k: v for k, v in grown(before, after).items() if "onramp" in k or k == "paused"})
		result(signals=after["onramp_signals"] - before["onramp_signals"],
		       pauses=after["onramp_pauses"] - before["onramp_pauses"],
		       off=after["onramp_paused_ns"] - before["onramp_paused_ns"] - 4 * 250 * US,
		       bin=after["onramp_delays_8"] - before["onramp_delays_8"])
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_bytes -eq 3000
		expect ${kind}_off -ge -500
		expect ${kind}_off -le 2000
		expect ${kind}_span -le 100000 "paused packets leave when the pause ends"
	done
	expect signals -eq 4
	expect pauses -eq 4
	expect off -ge -2000
	expect off -le 2000
	expect bin -eq 4 "300 us are between 262144 and 524288 ns"
}

no_pause_below_the_threshold() {
	new_qdisc $pausing
	every_kind <<-'END'
		for name, forger in forgers():
		    worst = 0
		    for delay in (0, 1, 20, 45, 49):
		        forger.report_one(delay * US)
		        worst = max(worst, forger.one().at - time.monotonic_ns() + 1 * US)
		    result(**{name: worst})
		result(signals=stats()["onramp_signals"], pauses=stats()["onramp_pauses"])
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect $kind -le 1000
	done
	expect signals -eq 20
	expect pauses -eq 0
}

# Each signal sets the end of the pause anew, so a later signal may shorten the pause. With b = 1/2,
# 475 us of the first pause of 950 us are taken off the second; "strawman" takes nothing off.
pause_is_set_not_extended() {
	for form in nostrawman strawman; do
		new_qdisc $pausing $form
		every_kind <<-END
			off = 0 if "$form" == "strawman" else 475 * US
			for name, forger in forgers():
			    first = forger.one()
			    wait(300 * US)
			    second = forger.one()
			    forger.report(first, 1000 * US)
			    forger.flow.send(2)
			    reported = forger.report(second, 800 * US)
			    wait(2 * MS)
			    got = forger.flow.arrived()
			    result(**{name + "_bytes": sum(p.size for p in got),
			              name + "_off": got[0].at - reported - (750 * US - off)})
		END
		for kind in udp4 udp6 tcp4 tcp6; do
			expect ${kind}_bytes -eq 2000 $form
			expect ${kind}_off -ge -2000 $form
			expect ${kind}_off -le 2000 $form
		done
	done
}

# A signal that asks for no pause does not end the current pause.
short_delays_end_no_pause() {
	new_qdisc $pausing
	every_kind <<-'END'
		for name, forger in forgers():
		    first = forger.one()
		    wait(900 * US)
		    second = forger.one()
		    reported = forger.report(first, 1000 * US)
		    forger.flow.send(1)
		    forger.report(second, 120 * US)
		    wait(2 * MS)
		    got = forger.flow.arrived()
		    result(**{name + "_off": got[0].at - reported - 950 * US})
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_off -ge -500
		expect ${kind}_off -le 2000
	done
}

clock_error_adds_to_the_threshold() {
	new_qdisc $pausing clock_error 200us
	onramp <<-'END'
		forger = Forger(UdpFlow())
		forger.report_one(240 * US)
		packet = forger.one()
		result(none=packet.at - time.monotonic_ns() + 1 * US)
		reported = forger.report_one(400 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=forger.flow.arrived()[0].at - reported - 150 * US)
	END
	expect none -le 1000
	expect off -ge -500
	expect off -le 2000
}

# A UDP socket that connects to another address or port sends a new flow: OR-ACKs about the new flow
# pause it, and those about the former flow do not.
sockets_that_connect_again() {
	new_qdisc $pausing
	onramp <<-'END'
		before = counters()
		for name, to, addr, port in (("v4", H2, "10.7.2.3", 9), ("v6", "fd07:2::2", "fd07:2::3", 9),
		                             ("port", H2, H2, 10)):
		    former = Forger(UdpFlow(to=to))
		    flow = former.flow
		    former.report_one(1 * US)
		    last = former.one()
		    flow.sink.sock.close()
		    flow.sink = Sink("h2", addr, port)
		    flow.sender.connect((addr, port))
		    tuple = flow.tuple
		    flow.tuple = Tuple(17, *flow.sender.getsockname()[:2], addr, port)
		    forger = Forger(flow)
		    reported = forger.report_one(300 * US)
		    flow.send(1)
		    wait(1 * MS)
		    got = flow.arrived()
		    former.report(last, 400 * US, flow=tuple)
		    result(**{name + "_off": got[0].at - reported - 250 * US,
		              name + "_free": forger.one().at - time.monotonic_ns() + 1 * US})
		    forger.reporter.close()
		    former.close()
		after = counters()
		result(**{key: after[key] - before[key] for key in ("accepted", "no_flow")})
	END
	for name in v4 v6 port; do
		expect ${name}_off -ge -500 "$name: not paused"
		expect ${name}_off -le 2000 $name
		expect ${name}_free -le 1000 "$name: paused by an OR-ACK about the former flow"
	done
	expect accepted -eq 6
	expect no_flow -eq 3
}

# IPv6 sockets with IPv4-mapped addresses, and sockets bound to a device.
odd_sockets() {
	new_qdisc $pausing
	onramp <<-'END'
		worst = 0
		for kind in {"mapped": True}, {"device": "eth0"}, {"device": "eth0", "to": "fd07:2::2"}:
		    forger = Forger(TcpFlow(**kind))
		    reported = forger.report_one(300 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    off = abs(forger.flow.arrived()[0].at - reported - 250 * US)
		    say(kind, "off", off)
		    worst = max(worst, off)
		    forger.close()
		result(worst=worst)
	END
	expect worst -le 2000
}

# With any congestion control, the OR-ACK of a connection's first packet already counts.
from_the_first_packet_on() {
	new_qdisc $pausing
	onramp <<-'END'
		for cc in "cubic", "reno", "bbr", "dctcp", "timely":
		    missed = 0
		    for to in 5 * (H2, "fd07:2::2"):
		        forger = Forger(TcpFlow(to=to, cc=cc))
		        reported = forger.report_one(300 * US)
		        forger.flow.send()
		        wait(1 * MS)
		        off = abs(forger.flow.arrived()[0].at - reported - 250 * US)
		        missed += off > EXACT
		        forger.close()
		    say(cc, missed, {name: n for name, n in counters().items() if n})
		    result(**{cc: missed})
	END
	for name in cubic reno bbr dctcp timely; do
		expect $name -eq 0 "connections not paused from their first packet on"
	done
}

# ---- limits of pauses ----

# Delays of 20 to 500 ms: no pause is longer than pause_max.
pause_max_bounds() {
	for pause_max in 1000 300us 2ms 10ms; do
		new_qdisc $pausing pause_max $pause_max
		ns=$(echo $pause_max | sed 's/ms$/000000/; s/us$/000/')
		every_kind <<-END
			for name, forger in forgers():
			    worst = 0
			    for delay in 20, 100, 500:
			        reported = forger.report_one(delay * MS)
			        forger.flow.send()
			        wait(30 * MS)
			        worst = max(worst, abs(forger.flow.arrived()[0].at - reported - $ns))
			    result(**{name + "_off": worst})
		END
		for kind in udp4 udp6 tcp4 tcp6; do
			expect ${kind}_off -le 2000 "pause_max $pause_max"
		done
	done
}

# Repeated reports of a very long delay: the flow is paused for pause_max, then some packets leave,
# then it is paused again.
repeated_pauses_do_not_stop_a_flow() {
	new_qdisc $pausing pause_max 2ms
	every_kind <<-'END'
		for name, forger in forgers():
		    known = []
		    for _ in range(40):
		        known.append(forger.one())
		        wait(10 * US)
		    sent, got, reported = 0, [], []
		    wait(20 * MS)
		    for packet in known:
		        reported.append(forger.report(packet, 15 * MS))
		        forger.flow.send()
		        wait(300 * US)
		    wait(5 * MS)
		    got = forger.flow.arrived()
		    times = [reported[0]] + [p.at for p in got]
		    gaps = [b - a for a, b in zip(times, times[1:])]
		    result(**{name + "_bytes": sum(p.size for p in got), name + "_gap": max(gaps),
		              name + "_pauses": sum(gap > 1 * MS for gap in gaps)})
		result(all_ns=stats()["onramp_paused_ns"], pauses=stats()["onramp_pauses"])
	END
	expect pauses -ge 16
	expect all_ns -le $((pauses * 2000000)) "pauses were longer than pause_max"
	expect all_ns -ge $((pauses * 1000000))
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_bytes -eq 40000
		# A pause, and the interval of 300 us between two of the test's packets.
		expect ${kind}_gap -le 2310000
		expect ${kind}_pauses -ge 4
	done
}

# ---- packets that are not paused ----

# Data in both directions: the data of h1 is paused, its pure ACKs for the data of h2 are not. With
# "split" the qdisc classifies each packet, also while its queues are empty.
pure_acks_pass() {
	for how in "" "split 3000"; do
		new_qdisc $pausing pause_max 20ms $how
		onramp <<-'END'
			for version, to in ("4", H2), ("6", "fd07:2::2"):
			    forger = Forger(TcpFlow(to=to))
			    flow = forger.flow
			    reported = forger.report_one(15 * MS)
			    flow.send(3)
			    flow.segments()
			    late = []
			    before = stats()["onramp_acks_passed"]
			    for _ in range(20):
			        began = time.monotonic_ns()
			        flow.receiver.send(bytes(3000))
			        wait(200 * US)
			        seen = flow.segments()
			        acks = [s.at for s in seen if s.pure_ack]
			        late.append(acks[0] - began if acks else S)
			        paused = not any(s.data for s in seen)
			        flow.sender.recv(3000)
			    passed = stats()["onramp_acks_passed"] - before
			    wait(20 * MS)
			    got = flow.arrived()
			    result(**{"late_" + version: max(late), "paused_" + version: paused,
			              "passed_" + version: passed, "bytes_" + version: sum(p.size for p in got),
			              "off_" + version: got[0].at - reported - 14950 * US})
			    forger.close()
		END
		for version in 4 6; do
			expect late_$version -le 3000 "ACKs wait behind paused data"
			expect paused_$version -eq 1
			[ -z "$how" ] || expect passed_$version -ge 20
			expect bytes_$version -eq 3000
			expect off_$version -ge -500
			expect off_$version -le 2000
		done
	done
}

# During a pause without queued data, FIN, RST and a SYN to the same destination leave at once.
control_passes() {
	for how in "" "split 3000"; do
		new_qdisc $pausing pause_max 20ms $how
		onramp <<-'END'
			for version, to in ("4", H2), ("6", "fd07:2::2"):
			    forger = Forger(TcpFlow(to=to))
			    flow = forger.flow
			    forger.report_one(15 * MS)
			    flow.segments()
			    began = time.monotonic_ns()
			    flow.receiver.send(bytes(3000))
			    wait(100 * US)
			    acks = [s.at for s in flow.segments() if s.pure_ack]
			    result(**{"ack_" + version: acks[0] - began if acks else S})
			    # Creating the tap alone takes 2 ms.
			    began = time.monotonic_ns()
			    other = TcpFlow(to=to)
			    result(**{"syn_" + version: time.monotonic_ns() - began - 2 * MS})
			    other.close()
			    flow.segments()
			    began = time.monotonic_ns()
			    flow.sender.shutdown(socket.SHUT_WR)
			    wait(100 * US)
			    fins = [s.at for s in flow.segments() if s.flags & 1]
			    result(**{"fin_" + version: fins[0] - began if fins else S})
			    forger.close()
			    wait(50 * MS)
			    forger = Forger(TcpFlow(to=to))
			    forger.report_one(15 * MS)
			    forger.flow.reset()
			    forger.flow.segments()
			    began = time.monotonic_ns()
			    forger.flow.sender.close()
			    wait(100 * US)
			    resets = [s.at for s in forger.flow.segments() if s.flags & 4]
			    result(**{"rst_" + version: resets[0] - began if resets else S})
			    forger.close()
			    wait(50 * MS)
		END
		for what in ack syn fin rst; do
			expect ${what}_4 -le 3000 "$how"
			expect ${what}_6 -le 3000 "$how"
		done
	done
}

# Flows to other destinations are not paused.
other_flows_are_not_paused() {
	new_qdisc $pausing
	every_kind <<-'END'
		others = [(name, kind(to=to[:-1] + "3", port=7)) for name, kind, to in KINDS]
		for name, other in others:
		    other.send()
		    wait(1 * US)
		    other.arrived()
		for name, forger in forgers():
		    forger.report_one(5 * MS)
		    forger.flow.send()
		    began = time.monotonic_ns()
		    late = []
		    for _, other in others:
		        other.send()
		        wait(1 * US)
		        late += [p.at for p in other.arrived()]
		    result(**{name + "_count": len(late), name + "_late": max(late) - began})
		    wait(10 * MS)
		for _, other in others:
		    other.close()
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_count -eq 4
		expect ${kind}_late -le 10000
	done
}

# ---- no burst after a pause ----

# Paused packets leave paced, not in a burst: UDP at the socket's rate; TCP, whose departure times
# have passed during the pause, with gaps up to a third shorter.
pacing_after_a_pause() {
	new_qdisc $pacing pause_max 20ms
	every_kind <<-'END'
		for name, kind, to in KINDS:
		    forger = Forger(kind(to=to, rate=50000000))
		    # TCP does not pace its first ten packets.
		    for _ in range(15):
		        forger.flow.send()
		        wait(50 * US)
		    forger.flow.arrived()
		    reported = forger.report_one(10 * MS)
		    forger.flow.send(30, 958)
		    wait(20 * MS)
		    got = forger.flow.arrived()
		    # TCP may merge writes into one packet: 20 ns per byte of data at this rate.
		    gaps = [(b.at - a.at) * 100 // (a.size * 20) for a, b in zip(got, got[1:])]
		    say(name, "packets:", *(p.size for p in got), "gaps, %:", *gaps)
		    # TCP sends the second packet after as little as half of the gap, as credit for
		    # the time in which it was idle.
		    result(**{name + "_bytes": sum(p.size for p in got), name + "_least": min(gaps[1:]),
		              name + "_second": gaps[0],
		              name + "_off": got[0].at - reported - 9950 * US, name + "_count": len(got)})
		    forger.close()
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_bytes -eq $((30 * 958))
		expect ${kind}_count -ge 4
		expect ${kind}_off -ge -500
		expect ${kind}_off -le 2000
		expect ${kind}_second -ge 37
		case $kind in
		udp*)	expect ${kind}_least -ge 100 "two packets closer than the rate allows" ;;
		tcp*)	expect ${kind}_least -ge 70 "two packets closer than the rate allows" ;;
		esac
	done
}

# ---- memory of destinations ----

# A flow that starts while the path to its destination is congested is paused as well, for the
# reported delay less the time since the report. Flows to other destinations are not.
new_flows_use_their_destinations_delay() {
	new_qdisc $pausing
	every_kind <<-'END'
		for name, forger in forgers():
		    kind, to = type(forger.flow), forger.flow.tuple.daddr
		    for age in 0, 1, 2:
		        new_flow = kind(to=to, port=7)
		        reported = forger.report_one(3 * MS)
		        wait(age * MS)
		        new_flow.send(2)
		        wait(10 * MS)
		        got = new_flow.arrived()
		        result(**{f"{name}_{age}": abs(got[0].at - reported - 2950 * US)})
		        new_flow.close()
		    # A report that is older than its delay has no effect.
		    for what, far, age in ("old", to, 3), ("other", to[:-1] + "3", 0):
		        new_flow = kind(to=far, port=7)
		        forger.report_one(3 * MS)
		        wait(age * MS)
		        began = time.monotonic_ns()
		        new_flow.send()
		        wait(10 * MS)
		        result(**{f"{name}_{what}": new_flow.arrived()[0].at - began})
		        new_flow.close()
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_0 -le 5000
		expect ${kind}_1 -le 5000
		expect ${kind}_2 -le 5000
		expect ${kind}_old -le 3000 "an old report still counts"
		expect ${kind}_other -le 3000 "another destination's delay counts"
	done
}

# ---- OR-ACKs that are refused ----

# wrong(FORGER, NAME, REASON, WIRE): an OR-ACK that must be counted as REASON and must pause
# nothing.
cat >"$work/wrong.py" <<-'END'
	bad = []
	def wrong(forger, name, reason, wire, reporter=None):
	    before = counters()
	    (reporter or forger.reporter).send(wire)
	    seen = grown(before, counters())
	    # Without this wait the invalid OR-ACKs would be limited, and counted as flooded.
	    wait(5 * MS)
	    forger.flow.send()
	    began = time.monotonic_ns()
	    wait(20 * US)
	    left = [p.at - began for p in forger.flow.arrived()]
	    if seen != {"received": 1, reason: 1} or len(left) != 1 or left[0] > EXACT:
	        say(f"{name}: counted {seen}, not {reason}; next packet after {left} ns")
	        bad.append(name)
	    if not left:
	        wait(50 * MS)
	        forger.flow.arrived()

	def all_wrong(forger, authenticated):
	    flow, reporter = forger.flow.tuple, forger.reporter
	    first = forger.one()
	    wait(100 * US)
	    packet = forger.one()
	    wait(2 * MS)
	    good = forger.wire(packet, 1 * MS)
	    def other(name, reason, **over):
	        wrong(forger, name, reason, forger.wire(packet, 1 * MS, **over))
	    # Wrong format
	    wrong(forger, "empty", "malformed", b"")
	    for length in (1, 2, 3, 8, 28, 35):
	        wrong(forger, f"cut to {length}", "malformed", good[:length])
	    for more in (1, 8, 36, 1400):
	        wrong(forger, f"longer by {more}", "malformed", good + bytes(more))
	    other("magic", "malformed", magic=b"RO")
	    for version in (0, 2, 255):
	        other(f"version {version}", "malformed", version=version)
	    for flags in (4, 6, 128, 255):
	        other(f"flags {flags}", "malformed", flags=flags)
	    other("reserved", "malformed", reserved=1)
	    for protocol in (0, 1, 58, 132, 255):
	        other(f"protocol {protocol}", "malformed", flow=flow._replace(protocol=protocol))
	    # Wrong key or tag
	    if authenticated:
	        other("no key", "unknown_key", key=0, secret=None)
	        other("no key, right tag", "unknown_key", key=0)
	        other("other secret", "bad_tag", secret=OTHER_SECRET)
	        other("no tag", "bad_tag", tag=0)
	        other("ones", "bad_tag", tag=MASK)
	        other("swapped", "bad_tag",
	              tag=int.from_bytes(good[28:].ljust(8, b"\0")[::-1], "big"))
	    else:
	        other("a tag without a key", "bad_tag", tag=1)
	    for key in (3, 200, 255):
	        other(f"key {key}", "unknown_key", key=key)
	    # Flows that do not exist
	    other("source port", "no_flow", flow=flow._replace(sport=flow.sport ^ 1))
	    other("destination port", "no_flow", flow=flow._replace(dport=flow.dport ^ 1))
	    other("other protocol", "no_flow", flow=flow._replace(protocol=23 - flow.protocol))
	    far = Reporter("h2", flow.daddr[:-1] + "3", to=flow.saddr)
	    wrong(forger, "from elsewhere, tag as from there", "no_flow",
	          forger.wire(packet, 1 * MS, flow=flow._replace(daddr=flow.daddr[:-1] + "3")), far)
	    wrong(forger, "from elsewhere", "no_flow", good, far)
	    far.close()
	    # Packets that are not in flight
	    for seq in (packet.seq + (1 << 20), packet.seq - (1 << 20), packet.seq ^ 1 << 31):
	        other(f"seq {seq - packet.seq:+}", "not_in_flight", seq=seq & 0xffffffff)
	    # Impossible times
	    hour = 3600 * S
	    for name, received in (("0", 0), ("all ones", MASK), ("highest bit", 1 << 63),
	                           ("an hour ahead", packet.at + OFFSET + hour),
	                           ("an hour ago", packet.at + OFFSET - hour),
	                           ("ten hours ahead", packet.at + OFFSET + 10 * hour),
	                           ("a second later", packet.at + OFFSET + S + MS),
	                           ("2 ms before it left", packet.at + OFFSET - 2 * MS)):
	        other("received: " + name, "bad_time", received=received)
	    for turnaround in (0xffffffff, 10**9):
	        other(f"turnaround {turnaround}", "bad_time", turnaround=turnaround)
	    return first, packet

	def replays(forger):
	    first = forger.one()
	    wait(100 * US)
	    packet = forger.one()
	    before = counters()
	    reported = forger.report(packet, 1 * MS)
	    seen = grown(before, counters())
	    forger.flow.send()
	    wait(5 * MS)
	    left = [p.at - reported for p in forger.flow.arrived()]
	    if seen != {"received": 1, "accepted": 1} or abs(left[0] - 950 * US) > EXACT:
	        say(f"valid OR-ACK: counted {seen}, next packet after {left} ns")
	        bad.append("right")
	    wrong(forger, "replayed", "old", forger.wire(packet, 1 * MS))
	    wrong(forger, "replayed with another time", "old", forger.wire(packet, 5 * MS))
	    wrong(forger, "older", "old", forger.wire(first, 1 * MS))

	# Each bit of a valid OR-ACK inverted, one after the other.
	def flips(forger):
	    packet = forger.one()
	    wait(2 * MS)
	    good = forger.wire(packet, 1 * MS)
	    before = counters()
	    for index in range(8 * len(good)):
	        wire = bytearray(good)
	        wire[index // 8] ^= 1 << index % 8
	        forger.reporter.send(bytes(wire))
	        wait(1 * MS)
	    seen = grown(before, counters())
	    say("inverted bits:", seen)
	    if seen["received"] != 288 or "accepted" in seen or "flooded" in seen:
	        bad.append("flips")
	    if sum(seen.values()) != 2 * 288:
	        bad.append("flips counted otherwise")
	    began = time.monotonic_ns()
	    forger.flow.send()
	    wait(20 * US)
	    left = forger.flow.arrived()
	    if not left or left[0].at - began > EXACT:
	        bad.append("flips paused")
END

# wrong_or_acks KEY SECRET: all of the above for UDP and TCP over IPv4 and IPv6
wrong_or_acks() {
	{
		cat "$work/kinds.py" "$work/wrong.py"
		cat <<-END
			for name, forger in forgers(key=$1, secret=$2):
			    count = len(bad)
			    all_wrong(forger, bool($1))
			    replays(forger)
			    if $1:
			        flips(forger)
			    result(**{name: len(bad) - count})
		END
	} >"$work/wrong.plan"
	onramp <"$work/wrong.plan"
	for kind in udp4 udp6 tcp4 tcp6; do
		expect $kind -eq 0 "OR-ACKs not refused, or for another reason"
	done
}

wrong_or_acks_without_keys() {
	new_qdisc $pausing
	wrong_or_acks 0 None
}

wrong_or_acks_with_keys() {
	new_qdisc $pausing
	onramp <<-'END'
		add_key(1, SECRET)
		ctl("h1", "onramp", "unauthenticated", "off")
		ctl("h2", "onramp", "unauthenticated", "off")
	END
	wrong_or_acks 1 SECRET
}

# An OR-ACK with a receive time later than its own arrival: the receiver's clock is ahead.
received_later_than_the_or_ack() {
	new_qdisc $pausing
	every_kind <<-'END'
		for name, forger in forgers(key=1, secret=SECRET):
		    packet = forger.one()
		    before = counters()
		    forger.reporter.send(forger.wire(packet, 100 * MS))
		    seen = grown(before, counters())
		    forger.flow.send()
		    wait(20 * US)
		    result(**{name: seen.get("bad_time", 0), name + "_left": len(forger.flow.arrived())})
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect $kind -eq 1
		expect ${kind}_left -eq 1
	done
}

# Pauses work with keys as without.
paused_with_keys() {
	new_qdisc $pausing
	every_kind <<-'END'
		for name, forger in forgers(key=1, secret=SECRET):
		    reported = forger.report_one(300 * US)
		    forger.flow.send(3)
		    wait(1 * MS)
		    result(**{name: abs(forger.flow.arrived()[0].at - reported - 250 * US)})
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect $kind -le 2000
	done
}

# Several keys can exist at the same time; a deleted key is unknown at once.
keys_come_and_go() {
	onramp <<-'END'
		forger = Forger(UdpFlow())
		secrets = {number: bytes([number]) * 16 for number in (2, 77, 255)}
		for number, secret in secrets.items():
		    add_key(number, secret, "h1")
		secrets[1] = SECRET
		def asked(number, secret):
		    before = counters()
		    forger.report_one(20 * US, key=number, secret=secret)
		    wait(5 * MS)
		    (name,) = [n for n in grown(before, counters()) if n != "received"]
		    return name
		result(known=sum(asked(*pair) == "accepted" for pair in secrets.items()))
		result(crossed=asked(2, secrets[77]) == "bad_tag")
		ctl("h1", "key", "del", "77")
		add_key(77, OTHER_SECRET, "h1")
		result(replaced=asked(77, OTHER_SECRET) == "accepted",
		       before=asked(77, secrets[77]) == "bad_tag")
		for number in 2, 77, 255:
		    ctl("h1", "key", "del", str(number))
		result(gone=sum(asked(n, s) == "unknown_key" for n, s in secrets.items()),
		       left=asked(1, SECRET) == "accepted")
		forger.close()
	END
	expect known -eq 4
	expect crossed -eq 1
	expect replaced -eq 1
	expect before -eq 1
	expect gone -eq 3
	expect left -eq 1
}

# 100000 forged OR-ACKs per second with the address of a peer: all genuine OR-ACKs of this and of
# other peers are accepted, and the socket's buffer never overflows.
forged_or_acks_block_no_genuine_ones() {
	new_qdisc $pausing
	onramp <<-'END'
		def errors():
		    with inside("h1"), open("/proc/thread-self/net/snmp", encoding="ascii") as file:
		        names, values = (line.split() for line in file if line.startswith("Udp:"))
		    seen = dict(zip(names, values))
		    return int(seen["InErrors"]) + int(seen["RcvbufErrors"])
		peers = [Forger(UdpFlow(to=to), key=1, secret=SECRET) for to in (H2, "10.7.2.3")]
		junk = peers[0].wire(peers[0].one(), 1 * MS, secret=OTHER_SECRET)
		before, lost, genuine = counters(), errors(), 0
		began, forged = time.monotonic_ns(), 0
		for _ in range(50):
		    for peer in peers:
		        packet = peer.one()
		        for _ in range(95):
		            peers[0].reporter.send(junk)
		            forged += 1
		            wait(10 * US)
		        peer.report(packet, 20 * US)
		        genuine += 1
		took = time.monotonic_ns() - began
		seen = grown(before, counters())
		say(f"in {took / MS} ms:", seen)
		result(genuine=genuine, accepted=seen.get("accepted", 0), rate=forged * S // took,
		       forged=forged, bad_tag=seen.get("bad_tag", 0),
		       refused=seen.get("bad_tag", 0) + seen.get("old", 0), lost=errors() - lost)
		for peer in peers:
		    peer.close()
	END
	expect rate -ge 80000
	expect genuine -eq 100
	expect accepted -eq 100 "accepted genuine OR-ACKs"
	# Forged OR-ACKs for a packet that is older than the last packet with a genuine OR-ACK are
	# refused as old, before their tag is checked.
	expect bad_tag -ge 95
	expect refused -eq "$forged"
	expect lost -eq 0 "packets that the socket had no room for"
}

# 100000 forged OR-ACKs at once from one address pause no flow, and genuine ones are accepted right
# afterwards.
floods() {
	new_qdisc $pausing
	onramp <<-'END'
		good = [Forger(UdpFlow(to=f"10.7.2.{n}"), key=1, secret=SECRET) for n in (3, 4, 5)]
		victim = Forger(UdpFlow(), key=1, secret=SECRET)
		known = [forger.one() for forger in good]
		packet = victim.one()
		wait(1 * MS)
		junk = victim.wire(packet, 1 * MS, secret=OTHER_SECRET)
		before = counters()
		began = time.monotonic_ns()
		for _ in range(100):
		    for _ in range(1000):
		        victim.reporter.send(junk)
		    wait(100 * US)
		took = time.monotonic_ns() - began
		seen = grown(before, counters())
		say(f"in {took / MS} ms:", seen)
		victim.flow.send()
		began = time.monotonic_ns()
		wait(20 * US)
		free = victim.flow.arrived()[0].at - began
		for forger, packet in zip(good, known):
		    forger.report(packet, 1 * MS)
		    forger.flow.send()
		wait(20 * US)
		paused = sum(not forger.flow.arrived() for forger in good)
		result(received=seen["received"], bad_tag=seen.get("bad_tag", 0),
		       rest=sum(seen.values()) - 200000, accepted=seen.get("accepted", 0), paused=paused,
		       free=free)
		before = counters()
		victim.report_one(1 * MS)
		result(again=grown(before, counters()).get("accepted", 0))
		wait(5 * MS)
		for forger in good + [victim]:
		    forger.close()
	END
	expect received -eq 100000
	expect rest -eq 0
	expect accepted -eq 0
	expect bad_tag -eq 100000
	expect paused -eq 3
	expect free -le 2000
	expect again -eq 1
}

# Replays have a right tag, but are refused before the tag is checked, and use up no limit. Of other
# OR-ACKs with a right tag but without use, here with an impossible time, about 1000 are looked up;
# more are dropped until 4 ms are over.
useless_or_acks_are_limited() {
	new_qdisc $pausing
	onramp <<-'END'
		def many(wire):
		    before = counters()
		    for _ in range(5000):
		        peer.reporter.send(wire)
		    seen = grown(before, counters())
		    say(seen)
		    return seen
		def accepts():
		    before = counters()
		    peer.report_one(20 * US)
		    return grown(before, counters()).get("accepted", 0)
		peer = Forger(UdpFlow(), key=1, secret=SECRET)
		packet = peer.one()
		peer.report(packet, 20 * US)
		replayed = many(peer.wire(packet, 20 * US))
		result(old=replayed.get("old", 0), accepted=accepts())
		useless = many(peer.wire(peer.one(), 20 * US, received=0))
		result(bad_time=useless.get("bad_time", 0), flooded=useless.get("flooded", 0),
		       limited=1 - accepts())
		wait(5 * MS)
		result(again=accepts())
		peer.close()
	END
	expect old -eq 5000
	expect accepted -eq 1 "OR-ACKs accepted right after a flood of replays"
	expect bad_time -ge 1000
	expect bad_time -le 1100
	expect flooded -ge 3800
	expect limited -eq 1 "a genuine OR-ACK within the 4 ms"
	expect again -eq 1
}

# OR-ACKs of a flow that has ended are not accepted.
ended_flows() {
	new_qdisc $pausing
	onramp <<-'END'
		forger = Forger(TcpFlow(port=5001), key=1, secret=SECRET)
		port = forger.flow.tuple.sport
		packet = forger.one()
		wait(1 * MS)
		forger.flow.close()
		wait(50 * MS)
		before = counters()
		forger.reporter.send(forger.wire(packet, 1 * MS))
		seen = grown(before, counters())
		say(seen)
		result(accepted=seen.get("accepted", 0))
	END
	expect accepted -eq 0
}

unload() {
	hosts_down
	unload_timely
}

run_cases hosts paused_for_the_excess no_pause_below_the_threshold pause_is_set_not_extended \
	short_delays_end_no_pause clock_error_adds_to_the_threshold \
	odd_sockets sockets_that_connect_again from_the_first_packet_on pause_max_bounds \
	repeated_pauses_do_not_stop_a_flow pure_acks_pass control_passes other_flows_are_not_paused \
	pacing_after_a_pause new_flows_use_their_destinations_delay wrong_or_acks_without_keys \
	wrong_or_acks_with_keys received_later_than_the_or_ack paused_with_keys keys_come_and_go \
	forged_or_acks_block_no_genuine_ones floods useless_or_acks_are_limited ended_flows unload
