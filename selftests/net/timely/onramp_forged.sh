#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's sender, told of delays by a receiver that we are ourselves: how long
# it holds which packets, and which OR-ACKs it does not believe.

. "$(dirname "$0")/onramp_lib.sh"

# Holds as they are told, one by one. TCP's own rates would hide them: after a hold its
# RTTs are long, and so its rates low.
pacing="timely $exact flow_limit 1000 onramp 50us"
holding="$pacing nopacing"

hosts() {
	onramp_pair
	load_onramp
	must insmod "$modules/tcp_timely.ko"
	without_keys
}

# ---- how long ----

# A delay of 300 us is 250 us above the threshold.
held_for_what_exceeds() {
	hold_anew $holding
	every_kind <<-'END'
		before = stats()
		for name, forger in forgers():
		    told = forger.hold(300 * US)
		    forger.flow.send(3)
		    wait(1 * MS)
		    got = forger.flow.arrived()
		    result(**{name + "_bytes": sum(p.size for p in got),
		              name + "_off": got[0].at - told - 250 * US,
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
		expect ${kind}_span -le 100000 "what was held leaves when the hold ends"
	done
	expect signals -eq 4
	expect pauses -eq 4
	expect off -ge -2000
	expect off -le 2000
	expect bin -eq 4 "300 us are between 262144 and 524288 ns"
}

threshold_is_put_up_with() {
	hold_anew $holding
	every_kind <<-'END'
		for name, forger in forgers():
		    worst = 0
		    for delay in (0, 1, 20, 45, 49):
		        forger.hold(delay * US)
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

# The end of a hold is assigned: a later signal may bring it forward. With b = 1/2, of
# which a first hold of 950 us takes 475 us off; the strawman takes nothing off.
assigned_not_prolonged() {
	for form in nostrawman strawman; do
		hold_anew $holding $form
		every_kind <<-END
			off = 0 if "$form" == "strawman" else 475 * US
			for name, forger in forgers():
			    first = forger.one()
			    wait(300 * US)
			    second = forger.one()
			    forger.tell(first, 1000 * US)
			    forger.flow.send(2)
			    told = forger.tell(second, 800 * US)
			    wait(2 * MS)
			    got = forger.flow.arrived()
			    result(**{name + "_bytes": sum(p.size for p in got),
			              name + "_off": got[0].at - told - (750 * US - off)})
		END
		for kind in udp4 udp6 tcp4 tcp6; do
			expect ${kind}_bytes -eq 2000 $form
			expect ${kind}_off -ge -2000 $form
			expect ${kind}_off -le 2000 $form
		done
	done
}

# A signal without a pause leaves a present one as it is.
good_news_ends_nothing() {
	hold_anew $holding
	every_kind <<-'END'
		for name, forger in forgers():
		    first = forger.one()
		    wait(900 * US)
		    second = forger.one()
		    told = forger.tell(first, 1000 * US)
		    forger.flow.send(1)
		    forger.tell(second, 120 * US)
		    wait(2 * MS)
		    got = forger.flow.arrived()
		    result(**{name + "_off": got[0].at - told - 950 * US})
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_off -ge -500
		expect ${kind}_off -le 2000
	done
}

clock_error_adds_to_the_threshold() {
	hold_anew $holding clock_error 200us
	onramp <<-'END'
		forger = Forger(UdpFlow())
		forger.hold(240 * US)
		packet = forger.one()
		result(none=packet.at - time.monotonic_ns() + 1 * US)
		told = forger.hold(400 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=forger.flow.arrived()[0].at - told - 150 * US)
	END
	expect none -le 1000
	expect off -ge -500
	expect off -le 2000
}

# Sockets of IPv6 that talk IPv4, and such as are bound to a device.
odd_sockets() {
	hold_anew $holding
	onramp <<-'END'
		worst = 0
		for kind in {"mapped": True}, {"device": "eth0"}, {"device": "eth0", "to": "fd07:2::2"}:
		    forger = Forger(TcpFlow(**kind))
		    told = forger.hold(300 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    off = abs(forger.flow.arrived()[0].at - told - 250 * US)
		    say(kind, "off", off)
		    worst = max(worst, off)
		    forger.close()
		result(worst=worst)
	END
	expect worst -le 2000
}

# Whatever the congestion control, a connection's first packet can be told of.
from_the_first_packet_on() {
	hold_anew $holding
	onramp <<-'END'
		for cc in "cubic", "reno", "bbr", "dctcp", "timely":
		    missed = 0
		    for to in 5 * (H2, "fd07:2::2"):
		        forger = Forger(TcpFlow(to=to, cc=cc))
		        told = forger.hold(300 * US)
		        forger.flow.send()
		        wait(1 * MS)
		        off = abs(forger.flow.arrived()[0].at - told - 250 * US)
		        missed += off > EXACT
		        forger.close()
		    say(cc, missed, {name: n for name, n in counters().items() if n})
		    result(**{cc: missed})
	END
	for name in cubic reno bbr dctcp timely; do
		expect $name -eq 0 "connections not held from their first packet on"
	done
}

# ---- the bounds ----

# Delays of 20 to 500 ms: no hold is longer than pause_max.
pause_max_bounds() {
	for pause_max in 1000 300us 2ms 10ms; do
		hold_anew $holding pause_max $pause_max
		ns=$(echo $pause_max | sed 's/ms$/000000/; s/us$/000/')
		every_kind <<-END
			for name, forger in forgers():
			    worst = 0
			    for delay in 20, 100, 500:
			        told = forger.hold(delay * MS)
			        forger.flow.send()
			        wait(30 * MS)
			        worst = max(worst, abs(forger.flow.arrived()[0].at - told - $ns))
			    result(**{name + "_off": worst})
		END
		for kind in udp4 udp6 tcp4 tcp6; do
			expect ${kind}_off -le 2000 "pause_max $pause_max"
		done
	done
}

# Somebody says again and again that all is lost: the flow is held for pause_max, then
# some packets leave, and so on.
repeated_do_not_stop_a_flow() {
	hold_anew $holding pause_max 2ms
	every_kind <<-'END'
		for name, forger in forgers():
		    known = []
		    for _ in range(40):
		        known.append(forger.one())
		        wait(10 * US)
		    sent, got, told = 0, [], []
		    wait(20 * MS)
		    for packet in known:
		        told.append(forger.tell(packet, 15 * MS))
		        forger.flow.send()
		        wait(300 * US)
		    wait(5 * MS)
		    got = forger.flow.arrived()
		    times = [told[0]] + [p.at for p in got]
		    gaps = [b - a for a, b in zip(times, times[1:])]
		    result(**{name + "_bytes": sum(p.size for p in got), name + "_gap": max(gaps),
		              name + "_holds": sum(gap > 1 * MS for gap in gaps)})
		result(all_ns=stats()["onramp_paused_ns"], pauses=stats()["onramp_pauses"])
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_bytes -eq 40000
		# A hold, and a signal's interval in which nothing may be sent.
		expect ${kind}_gap -le 2310000
		expect ${kind}_holds -ge 4
	done
}

# ---- what is not held ----

# Data both ways: A's data are held, its ACKs of B's are not. With "segment" no packet
# passes the qdisc without being looked at.
pure_acks_pass() {
	for how in "" "segment 3000"; do
		hold_anew $holding pause_max 20ms $how
		onramp <<-'END'
			for version, to in ("4", H2), ("6", "fd07:2::2"):
			    forger = Forger(TcpFlow(to=to))
			    flow = forger.flow
			    told = forger.hold(15 * MS)
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
			        held = not any(s.data for s in seen)
			        flow.sender.recv(3000)
			    passed = stats()["onramp_acks_passed"] - before
			    wait(20 * MS)
			    got = flow.arrived()
			    result(**{"late_" + version: max(late), "held_" + version: held,
			              "passed_" + version: passed, "bytes_" + version: sum(p.size for p in got),
			              "off_" + version: got[0].at - told - 14950 * US})
			    forger.close()
		END
		for version in 4 6; do
			expect late_$version -le 3000 "ACKs wait for data that is held"
			expect held_$version -eq 1
			[ -z "$how" ] || expect passed_$version -ge 20
			expect bytes_$version -eq 3000
			expect off_$version -ge -500
			expect off_$version -le 2000
		done
	done
}

# A hold is in force, no data waits: FIN, RST and a SYN to the same destination leave at
# once.
control_passes() {
	for how in "" "segment 3000"; do
		hold_anew $holding pause_max 20ms $how
		onramp <<-'END'
			for version, to in ("4", H2), ("6", "fd07:2::2"):
			    forger = Forger(TcpFlow(to=to))
			    flow = forger.flow
			    forger.hold(15 * MS)
			    flow.segments()
			    began = time.monotonic_ns()
			    flow.receiver.send(bytes(3000))
			    wait(100 * US)
			    acks = [s.at for s in flow.segments() if s.pure_ack]
			    result(**{"ack_" + version: acks[0] - began if acks else S})
			    # To make the tap alone takes 2 ms.
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
			    forger.hold(15 * MS)
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

# Flows to other destinations are not held.
others_are_not_held() {
	hold_anew $holding
	every_kind <<-'END'
		others = [(name, kind(to=to[:-1] + "3", port=7)) for name, kind, to in KINDS]
		for name, other in others:
		    other.send()
		    wait(1 * US)
		    other.arrived()
		for name, forger in forgers():
		    forger.hold(5 * MS)
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

# ---- no burst at the end ----

# What waited leaves spaced, not all at once: UDP at the socket's rate, TCP's stamps, which
# have passed meanwhile, up to a third closer.
spacing_after_a_hold() {
	hold_anew $pacing pause_max 20ms
	every_kind <<-'END'
		for name, kind, to in KINDS:
		    forger = Forger(kind(to=to, rate=50000000))
		    # TCP does not pace its first ten packets.
		    for _ in range(15):
		        forger.flow.send()
		        wait(50 * US)
		    forger.flow.arrived()
		    told = forger.hold(10 * MS)
		    forger.flow.send(30, 958)
		    wait(20 * MS)
		    got = forger.flow.arrived()
		    # TCP may put several in a segment: 20 ns a byte. Headers take longer still.
		    gaps = [(b.at - a.at) * 100 // (a.size * 20) for a, b in zip(got, got[1:])]
		    say(name, "packets:", *(p.size for p in got), "gaps, %:", *gaps)
		    # To the second packet TCP gives up to half of the time for having been idle.
		    result(**{name + "_bytes": sum(p.size for p in got), name + "_least": min(gaps[1:]),
		              name + "_second": gaps[0],
		              name + "_off": got[0].at - told - 9950 * US, name + "_count": len(got)})
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

# A flow that starts while the path is overloaded waits as if it had heard of that
# itself; what has drained since is taken off. Others' destinations are others.
destinations_are_remembered() {
	hold_anew $holding
	every_kind <<-'END'
		for name, forger in forgers():
		    kind, to = type(forger.flow), forger.flow.tuple.daddr
		    for age in 0, 1, 2:
		        fresh = kind(to=to, port=7)
		        told = forger.hold(3 * MS)
		        wait(age * MS)
		        fresh.send(2)
		        wait(10 * MS)
		        got = fresh.arrived()
		        result(**{f"{name}_{age}": abs(got[0].at - told - 2950 * US)})
		        fresh.close()
		    # Older than the delay was long: nothing is left of it.
		    for what, far, age in ("old", to, 3), ("other", to[:-1] + "3", 0):
		        fresh = kind(to=far, port=7)
		        forger.hold(3 * MS)
		        wait(age * MS)
		        began = time.monotonic_ns()
		        fresh.send()
		        wait(10 * MS)
		        result(**{f"{name}_{what}": fresh.arrived()[0].at - began})
		        fresh.close()
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_0 -le 5000
		expect ${kind}_1 -le 5000
		expect ${kind}_2 -le 5000
		expect ${kind}_old -le 3000 "what was measured long ago counts"
		expect ${kind}_other -le 3000 "another destination's delay counts"
	done
}

# ---- what is not believed ----

# wrong(NAME, REASON, WIRE): one OR-ACK that must be counted under REASON and hold
# nothing.
cat >"$work/wrong.py" <<-'END'
	bad = []
	def wrong(forger, name, reason, wire, teller=None):
	    before = counters()
	    (teller or forger.teller).send(wire)
	    seen = grown(before, counters())
	    # As many bad ones at once are a flood.
	    wait(5 * MS)
	    forger.flow.send()
	    began = time.monotonic_ns()
	    wait(20 * US)
	    left = [p.at - began for p in forger.flow.arrived()]
	    if seen != {"received": 1, reason: 1} or len(left) != 1 or left[0] > EXACT:
	        say(f"{name}: {seen}, not {reason}; next packet after {left} ns")
	        bad.append(name)
	    if not left:
	        wait(50 * MS)
	        forger.flow.arrived()

	def all_wrong(forger, authenticated):
	    flow, teller = forger.flow.tuple, forger.teller
	    first = forger.one()
	    wait(100 * US)
	    packet = forger.one()
	    wait(2 * MS)
	    good = forger.wire(packet, 1 * MS)
	    def other(name, reason, **over):
	        wrong(forger, name, reason, forger.wire(packet, 1 * MS, **over))
	    # Its form.
	    wrong(forger, "empty", "malformed", b"")
	    for length in (1, 2, 3, 8, 28, 35):
	        wrong(forger, f"cut to {length}", "malformed", good[:length])
	    for more in (1, 8, 36, 1400):
	        wrong(forger, f"longer by {more}", "malformed", good + bytes(more))
	    other("magic", "malformed", magic=b"RO")
	    for version in (0, 2, 255):
	        other(f"version {version}", "malformed", version=version)
	    for flags in (2, 4, 128, 255):
	        other(f"flags {flags}", "malformed", flags=flags)
	    other("reserved", "malformed", reserved=1)
	    for protocol in (0, 1, 58, 132, 255):
	        other(f"protocol {protocol}", "malformed", flow=flow._replace(protocol=protocol))
	    # Its key.
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
	    # Whose it is.
	    other("source port", "no_flow", flow=flow._replace(sport=flow.sport ^ 1))
	    other("destination port", "no_flow", flow=flow._replace(dport=flow.dport ^ 1))
	    other("other protocol", "no_flow", flow=flow._replace(protocol=23 - flow.protocol))
	    far = Teller("h2", flow.daddr[:-1] + "3", to=flow.saddr)
	    wrong(forger, "from elsewhere, tag as from there", "no_flow",
	          forger.wire(packet, 1 * MS, flow=flow._replace(daddr=flow.daddr[:-1] + "3")), far)
	    wrong(forger, "from elsewhere", "no_flow", good, far)
	    far.close()
	    # What it is about.
	    for seq in (packet.seq + (1 << 20), packet.seq - (1 << 20), packet.seq ^ 1 << 31):
	        other(f"seq {seq - packet.seq:+}", "not_in_flight", seq=seq & 0xffffffff)
	    # When.
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
	    told = forger.tell(packet, 1 * MS)
	    seen = grown(before, counters())
	    forger.flow.send()
	    wait(5 * MS)
	    left = [p.at - told for p in forger.flow.arrived()]
	    if seen != {"received": 1, "accepted": 1} or abs(left[0] - 950 * US) > EXACT:
	        say(f"the right one: {seen}, next packet after {left} ns")
	        bad.append("right")
	    wrong(forger, "replayed", "old", forger.wire(packet, 1 * MS))
	    wrong(forger, "replayed with another time", "old", forger.wire(packet, 5 * MS))
	    wrong(forger, "older", "old", forger.wire(first, 1 * MS))

	# Each bit of a right one, in turn.
	def flips(forger):
	    packet = forger.one()
	    wait(2 * MS)
	    good = forger.wire(packet, 1 * MS)
	    before = counters()
	    for index in range(8 * len(good)):
	        wire = bytearray(good)
	        wire[index // 8] ^= 1 << index % 8
	        forger.teller.send(bytes(wire))
	        wait(1 * MS)
	    seen = grown(before, counters())
	    say("bits turned:", seen)
	    if seen["received"] != 288 or "accepted" in seen or "flooded" in seen:
	        bad.append("flips")
	    if sum(seen.values()) != 2 * 288:
	        bad.append("flips counted otherwise")
	    began = time.monotonic_ns()
	    forger.flow.send()
	    wait(20 * US)
	    left = forger.flow.arrived()
	    if not left or left[0].at - began > EXACT:
	        bad.append("flips held")
END

# wrong_ones KEY SECRET
wrong_ones() {
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
		expect $kind -eq 0 "OR-ACKs not refused, or not as they should"
	done
}

wrong_ones_without_keys() {
	hold_anew $holding
	wrong_ones 0 None
}

wrong_ones_with_keys() {
	hold_anew $holding
	onramp <<-'END'
		add_key(1, SECRET)
		ctl("h1", "onramp", "unauthenticated", "off")
		ctl("h2", "onramp", "unauthenticated", "off")
	END
	wrong_ones 1 SECRET
}

# No packet was received later than the news of it came: a clock that is ahead.
later_than_it_came() {
	hold_anew $holding
	every_kind <<-'END'
		for name, forger in forgers(key=1, secret=SECRET):
		    packet = forger.one()
		    before = counters()
		    forger.teller.send(forger.wire(packet, 100 * MS))
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

# What must work with keys as without.
held_with_keys() {
	hold_anew $holding
	every_kind <<-'END'
		for name, forger in forgers(key=1, secret=SECRET):
		    told = forger.hold(300 * US)
		    forger.flow.send(3)
		    wait(1 * MS)
		    result(**{name: abs(forger.flow.arrived()[0].at - told - 250 * US)})
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect $kind -le 2000
	done
}

# Several are known at a time; what is forgotten is unknown at once.
keys_come_and_go() {
	onramp <<-'END'
		forger = Forger(UdpFlow())
		secrets = {number: bytes([number]) * 16 for number in (2, 77, 255)}
		for number, secret in secrets.items():
		    add_key(number, secret, "h1")
		secrets[1] = SECRET
		def asked(number, secret):
		    before = counters()
		    forger.hold(20 * US, key=number, secret=secret)
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

# 100000 forged ones a second with the peer's own address: each genuine OR-ACK of the peer
# counts, of other peers as well, and the socket's buffer never overflows.
forged_silence_nobody() {
	hold_anew $holding
	onramp <<-'END'
		def errors():
		    with inside("h1"), open("/proc/thread-self/net/snmp", encoding="ascii") as file:
		        names, values = (line.split() for line in file if line.startswith("Udp:"))
		    seen = dict(zip(names, values))
		    return int(seen["InErrors"]) + int(seen["RcvbufErrors"])
		peers = [Forger(UdpFlow(to=to), key=1, secret=SECRET) for to in (H2, "10.7.2.3")]
		junk = peers[0].wire(peers[0].one(), 1 * MS, secret=OTHER_SECRET)
		before, lost, told = counters(), errors(), 0
		began, forged = time.monotonic_ns(), 0
		for _ in range(50):
		    for peer in peers:
		        packet = peer.one()
		        for _ in range(95):
		            peers[0].teller.send(junk)
		            forged += 1
		            wait(10 * US)
		        peer.tell(packet, 20 * US)
		        told += 1
		took = time.monotonic_ns() - began
		seen = grown(before, counters())
		say(f"in {took / MS} ms:", seen)
		result(told=told, accepted=seen.get("accepted", 0), rate=forged * S // took,
		       forged=forged, bad_tag=seen.get("bad_tag", 0), refused=seen.get("bad_tag", 0) + seen.get("old", 0), lost=errors() - lost)
		for peer in peers:
		    peer.close()
	END
	expect rate -ge 80000
	expect told -eq 100
	expect accepted -eq 100 "genuine OR-ACKs that counted"
	# Some name a packet that is older than what was heard of last.
	expect bad_tag -ge 95
	expect refused -eq "$forged"
	expect lost -eq 0 "packets that the socket had no room for"
}

# 100000 at once from one address: none holds a flow, and genuine ones count right after.
floods() {
	hold_anew $holding
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
		        victim.teller.send(junk)
		    wait(100 * US)
		took = time.monotonic_ns() - began
		seen = grown(before, counters())
		say(f"in {took / MS} ms:", seen)
		victim.flow.send()
		began = time.monotonic_ns()
		wait(20 * US)
		free = victim.flow.arrived()[0].at - began
		for forger, packet in zip(good, known):
		    forger.tell(packet, 1 * MS)
		    forger.flow.send()
		wait(20 * US)
		held = sum(not forger.flow.arrived() for forger in good)
		result(received=seen["received"], bad_tag=seen.get("bad_tag", 0),
		       rest=sum(seen.values()) - 200000, accepted=seen.get("accepted", 0), held=held,
		       free=free)
		before = counters()
		victim.hold(1 * MS)
		result(again=grown(before, counters()).get("accepted", 0))
		wait(5 * MS)
		for forger in good + [victim]:
		    forger.close()
	END
	expect received -eq 100000
	expect rest -eq 0
	expect accepted -eq 0
	expect bad_tag -eq 100000
	expect held -eq 3
	expect free -le 2000
	expect again -eq 1
}

# Replays have a right tag, and are refused before anybody looks at it: they use up nothing.
# Of others that do not count 1000 at once are looked up, and 4 ms later the peer is heard again.
useless_ones_are_bounded() {
	hold_anew $holding
	onramp <<-'END'
		def many(wire):
		    before = counters()
		    for _ in range(5000):
		        peer.teller.send(wire)
		    seen = grown(before, counters())
		    say(seen)
		    return seen
		def hears():
		    before = counters()
		    peer.hold(20 * US)
		    return grown(before, counters()).get("accepted", 0)
		peer = Forger(UdpFlow(), key=1, secret=SECRET)
		packet = peer.one()
		peer.tell(packet, 20 * US)
		replayed = many(peer.wire(packet, 20 * US))
		result(old=replayed.get("old", 0), heard=hears())
		useless = many(peer.wire(peer.one(), 20 * US, received=0))
		result(bad_time=useless.get("bad_time", 0), flooded=useless.get("flooded", 0),
		       deaf=1 - hears())
		wait(5 * MS)
		result(again=hears())
		peer.close()
	END
	expect old -eq 5000
	expect heard -eq 1 "OR-ACKs that count right after a flood of replays"
	expect bad_time -ge 1000
	expect bad_time -le 1100
	expect flooded -ge 3800
	expect deaf -eq 1
	expect again -eq 1
}

# A flow's end: its OR-ACKs are of no flow. What comes with the same addresses is
# another flow, which starts free.
ended_flows() {
	hold_anew $holding
	onramp <<-'END'
		forger = Forger(TcpFlow(port=5001), key=1, secret=SECRET)
		port = forger.flow.tuple.sport
		packet = forger.one()
		wait(1 * MS)
		forger.flow.close()
		wait(50 * MS)
		before = counters()
		forger.teller.send(forger.wire(packet, 1 * MS))
		seen = grown(before, counters())
		say(seen)
		result(accepted=seen.get("accepted", 0))
	END
	expect accepted -eq 0
}

goodbye() {
	hosts_down
	unload_timely
}

run_cases hosts held_for_what_exceeds threshold_is_put_up_with assigned_not_prolonged \
	good_news_ends_nothing clock_error_adds_to_the_threshold \
	odd_sockets from_the_first_packet_on pause_max_bounds \
	repeated_do_not_stop_a_flow pure_acks_pass control_passes others_are_not_held \
	spacing_after_a_hold destinations_are_remembered wrong_ones_without_keys \
	wrong_ones_with_keys later_than_it_came held_with_keys keys_come_and_go \
	forged_silence_nobody floods useless_ones_are_bounded ended_flows goodbye
