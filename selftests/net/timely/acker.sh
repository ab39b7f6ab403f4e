#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's receiver (timely_acker): which packets the receiver answers, when, and with which
# OR-ACK; its rules and settings; and its removal under load. Topology: h1 -- h2, a veth pair; the
# last case: test NICs.

. "$(dirname "$0")/qdisc_lib.sh"
. "$here/hw_lib.sh"

# Run the Python lines on standard input with acker.py imported; all flows are new to the receiver.
# (Not a pipe into packets, which would set the results in a subshell.)
acker() {
	{
		echo "from acker import *"
		echo "forget()"
		cat
	} >"$work/acker.plan"
	packets <"$work/acker.plan"
}

load_acker() {
	is_loaded timely || must insmod "$modules/timely.ko"
	must insmod "$modules/timely_acker.ko"
}

# hosts [LINE]: offloads are off, so that a tap sees complete checksums. LINE is Python code that
# runs afterwards.
hosts() {
	pair_up 1 9000
	for end in 1 2; do
		must ip netns exec h$end ethtool -K eth0 tx off gso off tso off
		must ip netns exec h$end sh -c "
			echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
			echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"
		must ip -n h$end -batch - <<-EOT
			address add fd07:2::$end/64 dev eth0 nodad
			neighbour add fd07:2::$((3 - end)) dev eth0 lladdr 02:00:00:00:00:0$((3 - end)) nud permanent
		EOT
	done
	load_acker
	sleep 2
	acker <<-EOF
		without_key()
		$*
	EOF
}

# all_right: the Python lines have found no error, by result(bad=...)
all_right() {
	expect bad -eq 0
}

# ---- contents of OR-ACKs, and when they are sent ----

the_first_packets_of_a_flow() {
	acker <<-'EOF'
		add("10.7.2.0/24")
		wire = Wire()
		bad = 0
		for number in range(10):
		    seq = 0xfffffff0 + 1000 * number
		    before = time.clock_gettime_ns(REAL)
		    answers = wire.ask(frame(v4(6, tcp(100, 4660, 22136, seq, PSH | ACK), tos=0x2b)))
		    after = time.clock_gettime_ns(REAL)
		    if len(answers) != 1:
		        say("packet", number, len(answers), "answers")
		        bad += 1
		        continue
		    a = answers[0]
		    right = (a.length == 64 and a.sums_ok and a.tos == 0x2a and a.ttl == 64 and
		             a.ports == (PORT, PORT) and a.magic == 0x4f52 and a.version == 1 and
		             a.key == 0 and a.tag == 0 and a.protocol == 6 and a.flags == 0 and a.zero == 0 and
		             (a.sport, a.dport) == (4660, 22136) and a.seq == seq & 0xffffffff and
		             (a.saddr, a.daddr) == (packed(H2), packed(H1)) and
		             before <= a.received <= after and a.turnaround <= after - before)
		    bad += not right
		    if not right:
		        say(number, vars(a), before, after)
		result(bad=bad, sent=counters()["sent"])
	EOF
	all_right
	expect sent -eq 10
}

one_or_ack_for_ten_packets() {
	acker <<-'EOF'
		wire = Wire()
		bad = 0
		for size, step in ((1460, 10), (2960, 5), (6960, 3), (460, 30)):
		    port = next(fresh)
		    seqs = [a.seq for a in wire.ask(*(segment(size, port, seq=n) for n in range(400)))]
		    want = list(range(10)) + list(range(9 + step, 400, step))
		    bad += seqs != want
		    if seqs != want:
		        say(size, seqs)
		# An OR-ACK is due for each packet, or after 10 MB; a flow's first ten packets are
		# always answered.
		set_acker(u32("ACKER_EVERY", 1500))
		bad += wire.count(*(segment(1460, 7, seq=n) for n in range(50))) != 50
		set_acker(u32("ACKER_EVERY", 10000000))
		bad += wire.count(*(segment(1460, 8, seq=n) for n in range(50))) != 10
		set_acker(u32("ACKER_EVERY", 15000))
		result(bad=bad)
	EOF
	all_right
}

# Packets of a flow that arrive in one NAPI poll get one OR-ACK, for the last packet for which one
# was due. Flows do not affect each other.
one_or_ack_for_each_poll() {
	must tc -n h1 qdisc replace dev eth0 root netem slot 2ms 2ms
	acker <<-'EOF'
		wire = Wire()
		one, other, third = next(fresh), next(fresh), next(fresh)
		def datagram(number):
		    return frame(v4(17, udp(bytes([number] * 1460), third)))
		wire.ask(datagram(19))
		time.sleep(0.01)
		digest = wire.answers()[0].seq
		forget()
		before = counters()["sent"]
		bad = 0
		# Each of the first ten packets of a flow is answered; later the first after an idle
		# time, and each tenth.
		for first, last in (0, 14), (15, 34):
		    for number in range(first, last + 1):
		        for packet in (segment(1460, one, seq=number), segment(1460, other, seq=1000 + number),
		                       datagram(number if first == 0 else 19)):
		            wire.sock.send(packet)
		    time.sleep(0.01)
		    answers = {(a.protocol, a.sport): a.seq for a in wire.answers()}
		    want = {(6, one): 9 if first == 0 else 25, (6, other): 1009 if first == 0 else 1025}
		    got = {flow: seq for flow, seq in answers.items() if flow[0] == 6}
		    right = got == want and (17, third) in answers
		    right = right and (first == 0 or answers[17, third] == digest)
		    bad += not right
		    if not right:
		        say("from", first, "on:", answers)
		sent = counters()["sent"] - before
		bad += sent != 6
		if sent != 6:
		    say(sent, "were sent")
		result(bad=bad)
	EOF
	must tc -n h1 qdisc del dev eth0 root
	all_right
}

first_packet_after_idle_time_is_answered() {
	acker <<-'EOF'
		wire = Wire()
		port = next(fresh)
		bad = wire.count(*(segment(1460, port, seq=n) for n in range(15))) != 10
		time.sleep(0.002)
		bad += wire.count(segment(1460, port, seq=100)) != 1
		# The count to the next OR-ACK starts at this packet.
		bad += wire.count(*(segment(1460, port, seq=n) for n in range(9))) != 0
		bad += wire.count(segment(1460, port, seq=200)) != 1
		# A retransmission is answered like any packet.
		time.sleep(0.002)
		bad += wire.count(segment(1460, port, seq=3)) != 1
		result(bad=bad)
	EOF
	all_right
}

ipv6() {
	acker <<-'EOF'
		wire = Wire()
		bad = wire.count(frame(v6(6, tcp(100, next(fresh))))) != 0
		add("fd07:2::/64")
		port = next(fresh)
		answers = wire.ask(*(frame(v6(6, tcp(1440, port, 80, n), tos=0xba)) for n in range(100)))
		bad += [a.seq for a in answers] != list(range(10)) + list(range(19, 100, 10))
		for a in answers:
		    bad += not (a.six and a.length == 84 and a.sums_ok and a.tos == 0xba and
		                a.ports == (PORT, PORT) and (a.sport, a.dport) == (port, 80) and
		                (a.saddr, a.daddr) == (packed(H2_V6), packed(H1_V6)))
		delete("fd07:2::/64")
		result(bad=bad)
	EOF
	all_right
}

ecn_of_the_data() {
	acker <<-'EOF'
		wire = Wire()
		add("fd07:2::/64")
		seen = [wire.ask(frame(wrap(kind, tcp(100, next(fresh)), tos=0xb8 | ecn)))[0].tos & 3
		        for wrap, kind in ((v4, 6), (v6, 6)) for ecn in range(4)]
		say(seen)
		delete("fd07:2::/64")
		result(bad=seen != [0, 1, 2, 2] * 2)
	EOF
	all_right
}

udp_by_its_digest() {
	acker <<-'EOF'
		wire = Wire()
		add("fd07:2::/64")
		bad = 0
		for wrap in v4, v6:
		    port = next(fresh)
		    texts = [bytes([n] * 100) for n in (1, 2, 1)] + [bytes([1] * 99), bytes([1] * 50 + [2] * 50)]
		    a = wire.ask(*(frame(wrap(17, udp(text, port))) for text in texts))
		    seqs = [one.seq for one in a]
		    # By the first 16 bytes and the length.
		    right = (len(a) == 5 and seqs[0] == seqs[2] == seqs[4] and len(set(seqs)) == 3 and
		             0 not in seqs and all(one.protocol == 17 and one.sums_ok for one in a))
		    bad += not right
		    if not right:
		        say(wrap.__name__, seqs)
		delete("fd07:2::/64")
		result(bad=bad)
	EOF
	all_right
}

# A virtual device passes a GSO packet of UDP on whole. The sender has recorded its first datagram.
udp_gso_by_the_first_datagram() {
	for end in 1 2; do
		must ip netns exec h$end ethtool -K eth0 tx on gso on
	done
	acker <<-'EOF'
		wire = Wire()
		add("fd07:2::/64")
		bad = 0
		texts = [bytes([n] * 100) for n in range(1, 11)]
		for family, address, wrap in (socket.AF_INET, H2, v4), (socket.AF_INET6, H2_V6, v6):
		    with inside("h1"):
		        sender = socket.socket(family, socket.SOCK_DGRAM)
		    sender.setsockopt(17, 103, 100)	# UDP_SEGMENT
		    sender.sendto(b"".join(texts), (address, 2000))
		    seqs = [one.seq for one in wire.answers()]
		    alone = [one.seq for one in wire.ask(frame(wrap(17, udp(texts[0], next(fresh)))))]
		    bad += len(alone) != 1 or seqs != alone
		    say(wrap.__name__, "GSO packet", seqs, "first datagram alone", alone)
		delete("fd07:2::/64")
		result(bad=bad)
	EOF
	for end in 1 2; do
		must ip netns exec h$end ethtool -K eth0 tx off gso off
	done
	all_right
}

with_a_key() {
	acker <<-'EOF'
		wire = Wire()
		bad = siphash(bytes(range(16)), bytes(range(15))) != 0xa129ca6149be45e5
		secret = bytes(range(100, 116))
		with_key(7, secret)
		add("fd07:2::/64")
		for packet in frame(v4(6, tcp(100, next(fresh)))), frame(v6(6, tcp(100, next(fresh)))):
		    a, = wire.ask(packet)
		    bad += a.key != 7 or a.tag != a.tag_of(secret)
		    if a.tag != a.tag_of(secret):
		        say(f"key {a.key} tag {a.tag:x} must be {a.tag_of(secret):x}")
		delete("fd07:2::/64")
		# Neither a key nor "unauthenticated": no OR-ACK can be sent.
		without_key(False)
		before = counters()
		bad += wire.count(*(segment(100, next(fresh)) for n in range(5))) != 0
		after = counters()
		bad += after["send_errors"] - before["send_errors"] != 5 or after["sent"] != before["sent"]
		without_key()
		bad += wire.count(segment(100, next(fresh))) != 1
		result(bad=bad)
	EOF
	all_right
}

# ---- trimmed packets ----

# A packet of TCP with the DSCP of trimmed packets and a wrong checksum is answered each time. The
# turns are apart by the time of a packet of 9000 bytes on a link of 1 Gb/s.
trimmed_packets() {
	acker <<-'EOF'
		wire = Wire()
		add("fd07:2::/64")
		set_acker(u32("ACKER_TRIMMED", 48) + u32("ACKER_LINK_KBPS", 1000000))
		before = counters()
		bad = 0
		for wrap in v4, v6:
		    time.sleep(0.1)
		    port = next(fresh)
		    answers = wire.ask(*(frame(wrap(6, tcp(62, port, seq=n), tos=48 << 2 | 2)) for n in range(30)))
		    turns = [a.zero << 8 for a in answers]
		    right = ([a.seq for a in answers] == list(range(30)) and {a.flags for a in answers} == {2} and
		             all(a.sums_ok and a.tos == 48 << 2 | 2 for a in answers) and turns[0] == 0 and
		             turns == sorted(turns) and 25 * 72304 < turns[-1] <= 29 * 72304)
		    bad += not right
		    if not right:
		        say(wrap.__name__, [(a.seq, a.flags, a.zero) for a in answers])
		after = counters()
		bad += after["trimmed"] - before["trimmed"] != 60
		# What is whole, is not TCP or has another DSCP is answered as other packets are.
		def whole(port, seq):
		    body = tcp(62, port, seq=seq)
		    pseudo = packed(H1) + packed(H2) + struct.pack(">HH", 6, len(body))
		    return body[:16] + struct.pack(">H", negated(pseudo + body)) + body[18:]
		one, two, three = next(fresh), next(fresh), next(fresh)
		for kind, packets in (("whole", [v4(6, whole(one, n), tos=48 << 2) for n in range(30)]),
		                      ("UDP", [v4(17, udp(bytes(70), two), tos=48 << 2) for n in range(30)]),
		                      ("another DSCP", [v4(6, tcp(62, three, seq=n), tos=46 << 2) for n in range(30)])):
		    answers = wire.ask(*(frame(packet) for packet in packets))
		    right = len(answers) == 10 and not any(a.flags or a.zero for a in answers)
		    bad += not right
		    if not right:
		        say(kind, [(a.seq, a.flags, a.zero) for a in answers])
		bad += counters()["trimmed"] != after["trimmed"]
		delete("fd07:2::/64")
		set_acker(u32("ACKER_TRIMMED", 0) + u32("ACKER_LINK_KBPS", 10000000))
		bad += wire.count(*(frame(v4(6, tcp(62, port, seq=n), tos=48 << 2)) for n in range(30))) != 10
		result(bad=bad)
	EOF
	all_right
}

trimmed_packets_that_are_refused() {
	acker <<-'EOF'
		wire = Wire()
		set_acker(u32("ACKER_TRIMMED", 48))
		before = counters()
		def t(*words, **more):
		    return v4(6, tcp(*words, **more), tos=48 << 2)
		cases = {
		    "no payload": t(0, next(fresh), options=bytes(36)),
		    "a SYN": t(62, next(fresh), flags=SYN),
		    "a reset": t(62, next(fresh), flags=RST),
		    "from port 0": t(62, 0),
		    "a wrong IP checksum": t(62, next(fresh))[:10] + b"ab" + t(62, next(fresh))[12:],
		    "cut in the header of TCP": v4(6, tcp(62, next(fresh))[:12] + b"\xf0" + bytes(31), tos=48 << 2),
		    "no rule": v4(6, tcp(62, next(fresh)), saddr="10.9.9.9", tos=48 << 2),
		    "another host's": v4(6, tcp(62, next(fresh)), daddr="10.7.2.77", tos=48 << 2),
		    "no rule, IPv6": v6(6, tcp(62, next(fresh)), tos=48 << 2),
		}
		bad = 0
		for name, packet in cases.items():
		    got = wire.count(frame(packet))
		    bad += got != 0
		    if got:
		        say(name, "was answered")
		after = counters()
		refused = after["trimmed_refused"] - before["trimmed_refused"]
		say(refused, "refused of", len(cases))
		bad += refused != len(cases) or after["trimmed"] != before["trimmed"]
		# The OR-ACKs are limited as others are.
		set_acker(u32("ACKER_RATE", 1))
		got = wire.count(*(frame(t(62, 77, seq=n)) for n in range(400)))
		last = counters()
		say(got, "answered of 400,", last["send_limited"] - after["send_limited"], "limited")
		bad += got != 256 or last["send_limited"] - after["send_limited"] != 144
		bad += last["trimmed"] - after["trimmed"] != 400
		set_acker(u32("ACKER_RATE", 1000000) + u32("ACKER_TRIMMED", 0))
		result(bad=bad)
	EOF
	all_right
}

# ---- which packets are answered ----

# An OR-ACK is never larger than its packet, so a sender with a forged address gains no
# amplification.
never_larger_than_the_packet() {
	acker <<-'EOF'
		wire = Wire()
		add("::/0")
		bad = 0
		for wrap, kind, make, header, least in (
		        (v4, 6, lambda n: tcp(n, next(fresh)), 40, 64), (v6, 6, lambda n: tcp(n, next(fresh)), 60, 84),
		        (v4, 17, lambda n: udp(bytes(n), next(fresh)), 28, 64),
		        (v6, 17, lambda n: udp(bytes(n), next(fresh)), 48, 84)):
		    for length in range(header, 120):
		        answers = wire.ask(frame(wrap(kind, make(length - header))))
		        right = len(answers) == (length >= least) and all(a.length <= length for a in answers)
		        bad += not right
		        if not right:
		            say(wrap.__name__, kind, length, [a.length for a in answers])
		delete("::/0")
		result(bad=bad)
	EOF
	all_right
}

packets_that_are_not_answered() {
	acker <<-'EOF'
		wire = Wire()
		without_rules()
		add("0.0.0.0/0")
		add("::/0")
		timestamps = bytes([1, 1, 8, 10]) + bytes(8) + bytes([1, 1, 5, 26]) + bytes(24)
		good = tcp(100)
		def t(**more):
		    return tcp(100, next(fresh), **more)
		cases = {
		    "a pure ACK": v6(6, tcp(0, next(fresh), options=timestamps)),
		    "a SYN with data": v4(6, t(flags=SYN)),
		    "a reset with data": v4(6, t(flags=RST | ACK)),
		    "a short data offset": v4(6, good[:12] + b"\x40" + good[13:]),
		    "a long data offset": v4(6, tcp(8, next(fresh))[:12] + b"\xf0" + tcp(40)[13:]),
		    "a first fragment": v4(6, t(), fragment=0x2000),
		    "a later fragment": v4(6, t(), fragment=100),
		    "IP options": v4(6, t(), options=b"\x01\x01\x01\x00"),
		    "a hop-by-hop header": v6(0, bytes([6, 0, 1, 4, 0, 0, 0, 0]) + t()),
		    "a fragment header": v6(44, bytes([6, 0, 0, 0, 0, 0, 0, 1]) + t()),
		    "ICMP": v4(1, b"\x08" + bytes(99)),
		    "a wrong version": b"\x55" + v4(6, t())[1:],
		    "a wrong checksum": v4(6, t())[:8] + b"\x11" + v4(6, t())[9:],
		    "more than there is": v4(6, t(), total=1500),
		    "more than there is, IPv6": v6(6, t(), total=1460),
		    "no length": v6(6, t())[:4] + b"\0\0" + v6(6, t())[6:],
		    "a header cut off": v4(6, t())[:30],
		    "for another host": v4(6, t(), daddr="10.7.2.77"),
		    "for another host, IPv6": v6(6, t(), daddr="fd07:2::77"),
		    "a broadcast": v4(17, udp(bytes(100), next(fresh)), daddr="10.7.2.255"),
		    "a limited broadcast": v4(17, udp(bytes(100), next(fresh)), daddr="255.255.255.255"),
		    "a multicast": v4(17, udp(bytes(100), next(fresh)), daddr="239.1.1.1"),
		    "a multicast, IPv6": v6(17, udp(bytes(100), next(fresh)), daddr="ff02::1"),
		    "from a multicast": v4(17, udp(bytes(100), next(fresh)), saddr="239.1.1.1"),
		    "from a broadcast": v4(17, udp(bytes(100), next(fresh)), saddr="10.7.2.255"),
		    "from everybody": v4(17, udp(bytes(100), next(fresh)), saddr="255.255.255.255"),
		    "from nobody": v4(17, udp(bytes(100), next(fresh)), saddr="0.0.0.0"),
		    "from nobody, IPv6": v6(17, udp(bytes(100), next(fresh)), saddr="::"),
		    "from itself": v4(17, udp(bytes(100), next(fresh)), saddr="127.0.0.1"),
		    "link-local": v6(6, t(), saddr="fe80::1"),
		    "from port 0": v4(6, tcp(100, 0)),
		    "to port 0": v4(6, tcp(100, next(fresh), 0)),
		    "an OR-ACK": v4(17, udp(bytes(36), PORT, PORT)),
		    "to the OR-ACKs' port": v4(17, udp(bytes(100), next(fresh), PORT)),
		    "from the OR-ACKs' port": v6(17, udp(bytes(100), PORT, next(fresh))),
		}
		bad = 0
		for name, packet in cases.items():
		    got = wire.count(frame(packet))
		    bad += got != 0
		    if got:
		        say(name, "was answered")
		got = wire.count(frame(v4(6, t()), destination=bytes.fromhex("020000000077")))
		got += wire.count(frame(v4(6, t()), destination=b"\xff" * 6))
		bad += got != 0
		if got:
		    say("another host's frame was answered")
		# Valid packets are still answered.
		bad += wire.count(frame(v4(6, t())), frame(v6(6, t())), frame(v4(6, t(flags=FIN | ACK)))) != 3
		result(bad=bad)
	EOF
	all_right
}

by_prefix_and_port() {
	acker <<-'EOF'
		wire = Wire()
		bad = 0
		def check(want, packet, why):
		    global bad
		    got = wire.count(frame(packet))
		    bad += got != want
		    if got != want:
		        say(why, got)
		def new(dport=2000, saddr=H1):
		    return v4(6, tcp(100, next(fresh), dport), saddr=saddr)
		without_rules()
		check(0, new(), "no rule")
		add("10.7.3.0/24")
		check(0, new(), "another net")
		add("10.7.2.2/32")
		check(0, new(), "another host")
		add("10.7.2.1/32", 2000)
		check(1, new(2000), "the port")
		check(0, new(1999), "below")
		check(0, new(2001), "above")
		delete("10.7.2.1/32", 2000)
		add("10.7.2.0/31", 5000, 6000)
		for port in 4999, 5000, 5500, 6000, 6001:
		    check(5000 <= port <= 6000, new(port), f"port {port} of a range")
		delete("10.7.2.0/31", 5000, 6000)
		add("fd07:2::/127")
		check(0, new(), "the other family")
		check(1, v6(6, tcp(100, next(fresh))), "IPv6")
		check(0, v6(6, tcp(100, next(fresh)), saddr="fd07:2::3"), "IPv6, one bit")
		add("0.0.0.0/0")
		check(1, new(), "all")
		check(1, new(65535), "all ports")
		# Changes of the rules apply to existing flows.
		port = next(fresh)
		check(1, v4(6, tcp(100, port)), "new")
		delete("0.0.0.0/0")
		check(0, v4(6, tcp(100, port)), "the rule is gone")
		add("10.7.2.1/32")
		check(1, v4(6, tcp(100, port)), "there is a rule again")
		result(bad=bad)
	EOF
	all_right
}

on_a_vlan() {
	must ip -n h2 -batch - <<-EOF
		link add link eth0 name eth0.5 type vlan id 5
		address add 10.7.5.2/24 dev eth0.5
		link set eth0.5 up
		neighbour add 10.7.5.1 dev eth0.5 lladdr 02:00:00:00:00:01 nud permanent
	EOF
	acker <<-'EOF'
		wire = Wire()
		without_rules()
		add("10.7.5.0/24")
		port = next(fresh)
		answers = wire.ask(*(frame(v4(6, tcp(1460, port, seq=n), saddr="10.7.5.1", daddr="10.7.5.2"), vlan=5)
		                     for n in range(60)))
		result(bad=[a.seq for a in answers] != list(range(10)) + list(range(19, 60, 10)))
	EOF
	must ip -n h2 link del eth0.5
	all_right
}

# A packet through a bridge is seen by the receiver's probe twice, but answered once.
once_through_a_bridge() {
	must ip -n h2 -batch - <<-EOF
		link add br0 type bridge
		address flush dev eth0
		link set eth0 master br0
		link set br0 address 02:00:00:00:00:22 up
		address add 10.7.2.2/24 dev br0
		neighbour add 10.7.2.1 dev br0 lladdr 02:00:00:00:00:01 nud permanent
	EOF
	acker <<-'EOF'
		wire = Wire()
		without_rules()
		add("10.7.2.0/24")
		bad = 0
		for destination in "020000000022", "020000000002":
		    port = next(fresh)
		    answers = wire.ask(*(frame(v4(6, tcp(1460, port, seq=n)), destination=bytes.fromhex(destination))
		                         for n in range(60)))
		    right = [a.seq for a in answers] == list(range(10)) + list(range(19, 60, 10))
		    bad += not right
		    if not right:
		        say(destination, [a.seq for a in answers])
		result(bad=bad)
	EOF
	must ip -n h2 -batch - <<-EOF
		link del br0
		address add 10.7.2.2/24 dev eth0
		address add fd07:2::2/64 dev eth0 nodad
		neighbour add 10.7.2.1 dev eth0 lladdr 02:00:00:00:00:01 nud permanent
		neighbour replace fd07:2::1 dev eth0 lladdr 02:00:00:00:00:01 nud permanent
	EOF
	usable h2 fd07:2::2
	all_right
}

once_through_an_ifb() {
	must ip -n h2 link add ifb7 type ifb
	must ip -n h2 link set ifb7 up
	must tc -n h2 qdisc add dev eth0 clsact
	must tc -n h2 filter add dev eth0 ingress protocol all u32 match u32 0 0 \
		action mirred egress redirect dev ifb7
	acker <<-'EOF'
		wire = Wire()
		port = next(fresh)
		got = wire.count(*(segment(1460, port, seq=n) for n in range(60)))
		say(got, "answers")
		result(bad=got != 15)
	EOF
	must tc -n h2 qdisc del dev eth0 clsact
	must ip -n h2 link del ifb7
	all_right
}

# TCP connections with TSO: GSO packets of many frames are counted correctly.
real_connections() {
	for end in 1 2; do
		must ip netns exec h$end ethtool -K eth0 tx on gso on tso on
	done
	acker <<-'EOF'
		wire = Wire()
		before = counters()
		wire.answers()
		size = 4 << 20
		transfers = [Transfer(size), Transfer(size), Transfer(size)]
		ends = [t.sender.getsockname()[1] for t in transfers]
		carry(*transfers)
		answers = wire.answers()
		sent = counters()["sent"] - before["sent"]
		bad = not all(t.ok for t in transfers) or len(answers) != sent
		for end in ends:
		    seqs = [a.seq for a in answers if a.sport == end]
		    late = sum((b - a) & 0xffffffff > size for a, b in zip(seqs, seqs[1:]))
		    say(len(seqs), "OR-ACKs for", size, "bytes,", late, "in wrong order")
		    # Nothing is retransmitted, so each OR-ACK is for a later packet. There are 64
		    # or more GSO packets, of which two may arrive in one poll.
		    bad += not 32 <= len(seqs) <= 30 + size // 15000 or late != 0
		result(bad=bad)
	EOF
	for end in 1 2; do
		must ip netns exec h$end ethtool -K eth0 tx off gso off tso off
	done
	all_right
}

# ---- limits ----

or_acks_to_each_peer_are_limited() {
	acker <<-'EOF'
		wire = Wire()
		without_rules()
		add("10.7.2.0/24")
		def flood(saddr):
		    return [frame(v4(6, tcp(100, next(fresh)), saddr=saddr)) for n in range(400)]
		bad = 0
		before = counters()
		set_acker(u32("ACKER_RATE", 1))
		got = [wire.count(*flood(H1))]
		# OR-ACKs to a peer that does not exist are sent as well, within the limit of this peer.
		wire.count(*flood("10.7.2.9"))
		after = counters()
		say("sent", after["sent"] - before["sent"], "limited", after["send_limited"] - before["send_limited"],
		    "answers", got)
		bad += got[0] != 256 or after["sent"] - before["sent"] != 512
		bad += after["send_limited"] - before["send_limited"] != 288
		time.sleep(2.2)
		bad += wire.count(*flood(H1)) != 2
		# 1000 per second; a change of the rate refills the limit.
		set_acker(u32("ACKER_RATE", 1000))
		bad += wire.count(*flood(H1)) < 256
		time.sleep(0.0505)
		got = wire.count(*flood(H1))
		say("in 50 ms at 1000/s:", got)
		bad += not 48 <= got <= 60
		set_acker(u32("ACKER_RATE", 1000000))
		time.sleep(0.3)
		bad += wire.count(*flood(H1)) < 256
		result(bad=bad)
	EOF
	all_right
}

# More flows than the receiver's table has entries: more OR-ACKs than needed, but all are valid.
many_flows() {
	acker <<-'EOF'
		wire = Wire()
		flows = [next(fresh) for _ in range(5000)]
		bad = 0
		set_acker(u32("ACKER_RATE", 100000000))
		for repeat in range(3):
		    answers = []
		    for some in range(0, 5000, 200):
		        answers += wire.ask(*(segment(100, port, seq=port) for port in flows[some:some + 200]))
		    say(len(answers), "answers")
		    bad += len(answers) != 5000 or any(a.sport != a.seq for a in answers)
		set_acker(u32("ACKER_RATE", 1000000))
		result(bad=bad)
	EOF
	all_right
}

# ---- clocks ----

test_clock() {
	acker <<-'EOF'
		wire = Wire()
		def error():
		    """By how much the answer's time is ahead of the clock, ns: lower and upper bound."""
		    before = time.clock_gettime_ns(REAL)
		    a, = wire.ask(segment(100, next(fresh)))
		    after = time.clock_gettime_ns(REAL)
		    return a.received - after, a.received - before
		def near(value, slack=200000):
		    low, high = error()
		    right = low - slack <= value <= high + slack
		    if not right:
		        say("expected", value, "got", low, high)
		    return right
		bad = not near(0)
		set_acker(s64("ACKER_TEST_OFFSET_NS", 5 * S))
		bad += not near(5 * S)
		set_acker(s64("ACKER_TEST_OFFSET_NS", -12345678901) + s32("ACKER_TEST_DRIFT_PPB", 1000000))
		bad += not near(-12345678901)
		time.sleep(10)
		bad += not near(-12345678901 + 10 * MS)
		set_acker(s64("ACKER_TEST_OFFSET_NS", 0) + s32("ACKER_TEST_DRIFT_PPB", -1000000))
		time.sleep(3)
		bad += not near(-3 * MS)
		bad += settings()[0] != (15000, 1000000, 0, -1000000)
		set_acker(s32("ACKER_TEST_DRIFT_PPB", 0))
		bad += not near(0, 0)
		result(bad=bad)
	EOF
	all_right
}

# ---- netlink requests for rules and settings ----

refusals() {
	acker <<-'EOF'
		without_rules()
		family = Family()
		E = errno
		prefix = attr(A["RULE_PREFIX"], packed("10.7.2.0"))
		bits = u8("RULE_LENGTH", 24)
		cases = [
		    ("nothing to set", ACKER_SET, b"", E.EINVAL, "nothing to set"),
		    ("every 1499", ACKER_SET, u32("ACKER_EVERY", 1499), E.ERANGE, "1500 to 10000000"),
		    ("every 10000001", ACKER_SET, u32("ACKER_EVERY", 10000001), E.ERANGE, "1500 to 10000000"),
		    ("rate 0", ACKER_SET, u32("ACKER_RATE", 0), E.ERANGE, "1 to 100000000"),
		    ("rate 100000001", ACKER_SET, u32("ACKER_RATE", 100000001), E.ERANGE, "1 to 100000000"),
		    ("trimmed 64", ACKER_SET, u32("ACKER_TRIMMED", 64), E.ERANGE, "1 to 63"),
		    ("link 999", ACKER_SET, u32("ACKER_LINK_KBPS", 999), E.ERANGE, "1000 to 800000000"),
		    ("link 800000001", ACKER_SET, u32("ACKER_LINK_KBPS", 800000001), E.ERANGE, "1000 to 800000000"),
		    ("offset", ACKER_SET, s64("ACKER_TEST_OFFSET_NS", 10**18 + 1), E.ERANGE, "-10^18 to 10^18"),
		    ("offset", ACKER_SET, s64("ACKER_TEST_OFFSET_NS", -1 << 63), E.ERANGE, "-10^18 to 10^18"),
		    ("drift", ACKER_SET, s32("ACKER_TEST_DRIFT_PPB", 1000001), E.ERANGE, "-1000000 to 1000000"),
		    ("drift", ACKER_SET, s32("ACKER_TEST_DRIFT_PPB", -1 << 31), E.ERANGE, "-1000000 to 1000000"),
		    ("one of two values out of range", ACKER_SET,
		     u32("ACKER_EVERY", 2000) + u32("ACKER_RATE", 0), E.ERANGE, ""),
		    ("a rule in settings", ACKER_SET, u32("ACKER_EVERY", 2000) + bits, E.EINVAL, ""),
		    ("settings in a rule", RULE_ADD, rule("10.7.2.0/24") + u32("ACKER_EVERY", 2000), E.EINVAL, ""),
		    ("get with an attribute", ACKER_GET, bits, E.EINVAL, ""),
		    ("no prefix", RULE_ADD, bits, E.EINVAL, "give RULE_PREFIX and RULE_LENGTH"),
		    ("no length", RULE_ADD, prefix, E.EINVAL, "give RULE_PREFIX and RULE_LENGTH"),
		    ("5 bytes", RULE_ADD, attr(A["RULE_PREFIX"], bytes(5)) + bits, E.EINVAL, "4 bytes for IPv4"),
		    ("no bytes", RULE_ADD, attr(A["RULE_PREFIX"], b"") + bits, E.EINVAL, "4 bytes for IPv4"),
		    ("17 bytes", RULE_ADD, attr(A["RULE_PREFIX"], bytes(17)) + bits, E.ERANGE, ""),
		    ("33 bits", RULE_ADD, rule("10.7.2.0/33"), E.ERANGE, "no more than 32"),
		    ("129 bits", RULE_ADD, rule("fd07::/129"), E.ERANGE, "no more than 32"),
		    ("bits beyond", RULE_ADD, rule("10.7.2.1/24"), E.EINVAL, "must be 0"),
		    ("bits beyond", RULE_ADD, rule("0.0.0.1/0"), E.EINVAL, "must be 0"),
		    ("bits beyond", RULE_ADD, rule("fd07::1/64"), E.EINVAL, "must be 0"),
		    ("first above last", RULE_ADD, rule("10.7.2.0/24", 10, 9), E.EINVAL, "must not be below"),
		    ("last without first", RULE_ADD, rule("10.7.2.0/24", 0, 9), E.EINVAL, "both 0 for all"),
		    ("first without last", RULE_ADD, rule("10.7.2.0/24", 9, 0), E.EINVAL, "both 0 for all"),
		    ("no such rule", RULE_DEL, rule("10.7.2.0/24"), E.ENOENT, "no such rule"),
		    ("a command of the family timely", ONRAMP_GET, b"", E.EOPNOTSUPP, ""),
		]
		bad = 0
		def check(name, command, body, error, words):
		    global bad
		    got, said = family.refused(command, body)
		    if got != error or words not in said:
		        say(f"{name}: {errno.errorcode.get(got, got)} \"{said}\",",
		            f"expected {errno.errorcode[error]} \"{words}\"")
		        bad += 1
		for case in cases:
		    check(*case)
		if settings() != ((15000, 1000000, 0, 0), []):
		    say("a refused request has changed settings or rules:", settings())
		    bad += 1
		add("10.7.2.0/24")
		add("10.7.2.0/25")
		add("10.7.2.0/24", 1, 65535)
		add("::/0")
		want = [("10.7.2.0", 24, 0, 0), ("10.7.2.0", 25, 0, 0), ("10.7.2.0", 24, 1, 65535), ("::", 0, 0, 0)]
		bad += settings()[1] != want
		check("twice", RULE_ADD, rule("10.7.2.0/24"), E.EEXIST, "already")
		check("ports matter", RULE_DEL, rule("10.7.2.0/24", 1), E.ENOENT, "no such rule")
		delete("10.7.2.0/24")
		bad += settings()[1] != want[1:]
		without_rules()
		for n in range(256):
		    family.ask(RULE_ADD, rule(f"10.7.{n}.0/24", n + 1))
		check("the 257th", RULE_ADD, rule("10.8.0.0/16"), E.ENOSPC, "256 rules")
		bad += len(settings()[1]) != 256
		bad += Wire().count(segment(100, next(fresh), 3), segment(100, next(fresh), 4)) != 1
		set_acker(u32("ACKER_EVERY", 9000) + u32("ACKER_RATE", 77))
		bad += settings()[0] != (9000, 77, 0, 0) or len(settings()[1]) != 256
		# Other namespaces have their own rules and settings.
		bad += settings("h1") != ((15000, 1000000, 0, 0), [])
		without_rules()
		set_acker(u32("ACKER_EVERY", 15000) + u32("ACKER_RATE", 1000000))
		result(bad=bad)
	EOF
	all_right
}

permissions() {
	acker <<-'EOF'
		family = Family()
		os.seteuid(65534)
		bad = len(family.ask(ACKER_GET)) != 1
		for command, body in (ACKER_SET, u32("ACKER_RATE", 5)), (RULE_ADD, rule("0.0.0.0/0")), \
		        (RULE_DEL, rule("0.0.0.0/0")):
		    bad += family.refused(command, body)[0] != errno.EPERM
		os.seteuid(0)
		bad += settings() != ((15000, 1000000, 0, 0), [])
		result(bad=bad)
	EOF
	all_right
}

# ---- changes and removal under load ----

# flood(HAPPEN): h1 sends to h2, and between rounds the functions of the list HAPPEN are called.
cat >"$work/flood.py" <<-'EOF'
	def flood(happen, turns=100):
	    """A hundred frames of new flows per round. Returns frames sent and answers."""
	    wire = Wire()
	    sent = answered = 0
	    for _ in range(turns):
	        try:
	            sent += len([wire.sock.send(segment(100, next(fresh))) for n in range(100)])
	            answered += len(wire.answers())
	        except OSError:
	            break
	        if happen:
	            happen.pop(0)()
	    return sent, answered
	def run(*words):
	    subprocess.Popen(words)
	def wait():
	    time.sleep(0.001)
EOF

flooded() {
	{
		cat "$work/flood.py"
		cat
	} >"$work/flooded"
	acker <"$work/flooded"
}

rules_come_and_go_under_load() {
	flooded <<-'EOF'
		steps = []
		for n in range(40):
		    steps += [lambda: add("10.7.2.0/24"), wait, lambda: delete("10.7.2.0/24")]
		sent, answered = flood(steps, 130)
		say(sent, "sent,", answered, "answered")
		result(bad=not 100 < answered < sent or settings()[1] != [])
		add("10.7.2.0/24")
	EOF
	all_right
}

unload_under_load() {
	flooded <<-'EOF'
		sent = answered = 0
		for n in range(5):
		    one = flood([wait, wait, lambda: run("rmmod", "timely_acker")])
		    sent, answered = sent + one[0], answered + one[1]
		    while os.path.exists("/sys/module/timely_acker"):
		        time.sleep(0.01)
		    subprocess.run(["insmod", os.environ["TIMELY_MODULES"] + "/timely_acker.ko"], check=True)
		    add("10.7.2.0/24")
		say(sent, "sent,", answered, "answered")
		result(bad=not 0 < answered < sent)
	EOF
	all_right
}

# The receiver's namespace is deleted while OR-ACKs are being sent.
namespaces_go_under_load() {
	for _ in 1 2 3; do
		flooded <<-'EOF'
			add("10.7.0.0/16", ns="h1")
			sent, answered = flood([wait, wait, lambda: run("ip", "netns", "del", "h2")])
			say(sent, "sent,", answered, "answered")
			result(bad=not 0 < answered < sent)
		EOF
		all_right
		within_seconds 10 is_gone h2 || fail "h2 is still there"
		hosts_down
		unload_timely
		hosts 'add("10.7.2.0/24")'
	done
	unload_timely
	hosts_down
}

is_gone() {
	! ip netns list | grep -q "^$1"
}

# ---- hardware timestamps ----

# Data from h1 through h2's test NIC, which has hardware timestamps: the times in OR-ACKs agree with
# the NIC's log of arrivals.
with_hardware_timestamps() {
	is_loaded hwnic || must insmod "$modules/hwnic.ko"
	load_acker
	new_host h1
	new_host h2
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	timestamps h2 eth0 all
	busy h2 eth0 20000 50000
	truth_dir=$(in_ns h2 cat /sys/class/net/eth0/hwnic/truth_dir)
	export truth_dir
	echo R >"$truth_dir/truth_types"
	echo 1000000 >"$truth_dir/truth_enable"
	sleep 2
	acker <<-'EOF'
		without_key()
		add("10.7.2.0/24")
		with inside("h1"):
		    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		sock.bind(("", PORT))
		or_acks = Receiver(sock)
		transfers = [Transfer(6 << 20) for _ in range(8)]
		flows = {t.sender.getsockname()[1] for t in transfers}
		carry(*transfers, seconds=60)
		# Arrival times by sequence number: the log has the end of a full frame's data.
		arrived = {}
		with open(os.environ["truth_dir"] + "/truth", encoding="ascii") as file:
		    for line in file:
		        kind, mono, _, sport, _, end, _, length = line.split()
		        if int(sport) in flows:
		            arrived.setdefault((int(sport), (int(end) - 1448) & 0xffffffff), int(mono))
		errors_ns = []
		hardware = software = 0
		packets = []
		or_acks.drain(packets)
		for packet in packets:
		    fields = struct.unpack(">HBBBBHHHIQIQ", packet.data)
		    mono = arrived.get((fields[5], fields[8]))
		    if not fields[4] & 1:
		        software += 1
		    else:
		        hardware += 1
		        if mono is not None:
		            errors_ns.append(abs(fields[9] - OFFSET - mono))
		say(len(packets), "OR-ACKs,", hardware, "by hardware,", software, "by software")
		errors("off", errors_ns)
		result(hardware=hardware)
	EOF
	expect hardware -ge 1000
	expect off_count -ge 900
	expect off_p99 -le 2000
	nics_down
	unload_timely
	must rmmod hwnic
}

run_cases hosts the_first_packets_of_a_flow one_or_ack_for_ten_packets \
	one_or_ack_for_each_poll first_packet_after_idle_time_is_answered ipv6 ecn_of_the_data \
	udp_by_its_digest udp_gso_by_the_first_datagram with_a_key trimmed_packets \
	trimmed_packets_that_are_refused never_larger_than_the_packet \
	packets_that_are_not_answered by_prefix_and_port on_a_vlan once_through_a_bridge \
	once_through_an_ifb real_connections or_acks_to_each_peer_are_limited many_flows \
	test_clock refusals permissions rules_come_and_go_under_load \
	unload_under_load namespaces_go_under_load with_hardware_timestamps
