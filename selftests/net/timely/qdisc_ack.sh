#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Options for pure ACKs: ack_first (ahead of the flow's queued packets), ack_dscp and ack_priority.
# They apply to no other packets, and all checksums stay right. With ack_thin an ACK replaces one that
# waits. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

one="$exact flow_limit 1000 orphan_mask 0"

hosts() {
	pair_up
	# Without offload, all frames that a tap receives have complete checksums.
	must ip netns exec h1 ethtool -K eth0 tx off
	load_qdisc
}

# passes(FRAME) sends a hundred UDP frames, FRAME and ten more by one packet socket with a rate;
# orphan_mask makes all of them one flow. A tap at the other end sees in which order they arrive:
# passes() returns how many of the hundred FRAME has overtaken, and FRAME as it has arrived.
cat >"$work/frames.py" <<-'EOF'
	ETH = bytes.fromhex("020000000002020000000001")
	FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << i for i in range(8))

	def inet_checksum(data):
	    return (~checksum(data)) & 0xffff

	def v4(kind, body, tos=0, options=b"", fragment=0):
	    header = struct.pack(">BBHHHBBH4s4s", 0x45 + len(options) // 4, tos,
	                         20 + len(options) + len(body), 7, fragment, 64, kind, 0,
	                         socket.inet_aton(H1), socket.inet_aton(H2)) + options
	    sum_ = struct.pack(">H", inet_checksum(header))
	    return ETH + b"\x08\0" + header[:10] + sum_ + header[12:] + body

	def v6(kind, body, tos=0, label=0x12345):
	    addresses = socket.inet_pton(10, "fd07::1") + socket.inet_pton(10, "fd07::2")
	    return ETH + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28 | tos << 20 | label, len(body),
	                                           kind, 64) + addresses + body

	def tcp_of(flags, data=b"", options=b"", six=False, seq=1):
	    body = struct.pack(">HHIIBBHHH", 1000, 2000, seq, 1, (20 + len(options)) // 4 << 4,
	                       flags, 100, 0, 0) + options + data
	    addresses = (socket.inet_pton(10, "fd07::1") + socket.inet_pton(10, "fd07::2")) if six \
	        else socket.inet_aton(H1) + socket.inet_aton(H2)
	    sum_ = inet_checksum(addresses + struct.pack(">IHBB", len(body), 0, 0, 6) + body)
	    return body[:16] + struct.pack(">H", sum_) + body[18:]

	def udp_of(number):
	    body = payload(number, 0, 958)
	    return v4(17, struct.pack(">HHHH", 5, 9, len(body) + 8, 0) + body)

	SACK = bytes([1, 1, 5, 10]) + struct.pack(">II", 5, 9)
	TIMESTAMPS = bytes([1, 1, 8, 10]) + struct.pack(">II", 5, 9)
	PURE = {
	    "plain": v4(6, tcp_of(ACK)), "sack": v4(6, tcp_of(ACK, options=SACK)),
	    "timestamps": v4(6, tcp_of(ACK, options=TIMESTAMPS + SACK)), "ece": v4(6, tcp_of(ACK | ECE)),
	    "ecn": v4(6, tcp_of(ACK), tos=0x2a), "six": v6(6, tcp_of(ACK, six=True)),
	    "six_tos": v6(6, tcp_of(ACK, options=TIMESTAMPS, six=True), tos=0x29),
	    "ip_options": v4(6, tcp_of(ACK), options=b"\x01\x01\x01\x00"),
	}
	OTHER = {
	    "data": v4(6, tcp_of(ACK | PSH, b"x")), "syn": v4(6, tcp_of(SYN)),
	    "synack": v4(6, tcp_of(SYN | ACK)), "fin": v4(6, tcp_of(FIN | ACK)),
	    "rst": v4(6, tcp_of(RST | ACK)), "six_data": v6(6, tcp_of(ACK, b"xy", six=True)),
	    "udp": v4(17, struct.pack(">HHHH", 6, 7, 8, 0)),
	    "fragment": v4(6, tcp_of(ACK), fragment=0x2001), "later": v4(6, tcp_of(ACK), fragment=100),
	    "cut": v4(6, tcp_of(ACK)[:12]), "icmp": v4(1, b"\x08\0" + b"\0" * 18),
	    "six_cut": v6(6, tcp_of(ACK, six=True)[:10]), "arp": ETH + b"\x08\x06" + b"\0" * 28,
	}

	def raw_source(rate):
	    with inside("h1"):
	        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
	    sock.bind(("eth0", 0))
	    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
	    sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", rate))
	    return sock

	def passes(frame):
	    """How many of the hundred the frame overtakes, or None; the frame as it arrived."""
	    tap, sock = Tap(), raw_source(10000000)
	    for number in range(100):
	        sock.send(udp_of(number))
	    sock.send(frame)
	    for number in range(100, 110):
	        sock.send(udp_of(number))
	    seen = tap.take(111, 0.5, quiet=0.05)
	    tap.sock.close()
	    sock.close()
	    at = [i for i, p in enumerate(seen) if len(p.data) < 500]
	    if len(seen) != 111 or len(at) != 1:
	        say(f"{len(seen)} of 111 arrived")
	        return None, b""
	    numbers = [struct.unpack_from("=Q", p.data, 42)[0] for p in seen if len(p.data) > 500]
	    if numbers != list(range(110)):
	        say("the UDP frames have been reordered")
	        return None, b""
	    return 100 - at[0], seen[at[0]].data
EOF

frames() {
	{
		cat "$work/frames.py"
		cat
	} >"$work/plan"
	packets <"$work/plan"
}

judge_plan='
def judge(wanted, some):
    bad = 0
    for name, frame in some.items():
        jumped, data = passes(frame)
        # Up to two of the hundred may have left before the frame was sent.
        good = jumped is not None and (jumped >= 98 if wanted else jumped == 0)
        if not good:
            bad += 1
            say(f"{name}: has overtaken {jumped} of 100 frames")
        if data and data[:len(frame)] != frame:
            bad += 1
            say(f"{name}: has been changed")
    result(bad=bad)
'

# With any options: no data, no other protocol and no fragment overtakes.
nothing_else_overtakes() {
	for options in "" "ack_first" "ack_first ack_dscp 46 ack_priority 6"; do
		h1_qdisc timely $one $options
		frames <<-EOF
			$judge_plan
			judge(False, OTHER)
		EOF
		expect bad -eq 0 "$options"
	done
}

# Data from h1 at a low rate, small messages from h2: TCP gives the ACKs of these messages the
# departure time of its queued data.
acks_overtake_the_backlog() {
	for options in noack_first ack_first; do
		h1_qdisc timely $options
		packets <<-'EOF'
			tap = Tap()
			there = Transfer(400000, rate=200000)
			asking = [0]
			def message():
			    if time.monotonic_ns() < asking[0]:
			        return
			    asking[0] = time.monotonic_ns() + 10 * MS
			    with contextlib.suppress(BlockingIOError):
			        there.receiver.send(b"message")
			asks = Tap("h2", outgoing=True)
			asked = []
			there.receiver.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
			before = stats()
			seen = tcp_segments(carry(there, tap=tap, meanwhile=message, wait=0.011))
			after = stats()
			asks.drain(asked)
			delays = []
			for ask in tcp_segments(asked):
			    if ask.data:
			        end = ask.seq + len(ask.data)
			        answers = [s.at for s in seen if (s.ack - end) & 0xffffffff < 1 << 31 and s.at >= ask.at]
			        if answers:
			            delays.append(min(answers) - ask.at)
			delays.sort()
			result(ok=there.ok, count=len(delays), p50=delays[len(delays) // 2],
			       first=after["acks_first"] - before["acks_first"], marked=after["acks_marked"] - before["acks_marked"])
			say(len(delays), "messages, acknowledged after us: p50", delays[len(delays) // 2] // 1000, "max", delays[-1] // 1000)
		EOF
		expect ok -eq 1
		expect count -ge 50
		expect marked -eq 0
		eval "p50_$options=$p50 first_$options=$first"
	done
	expect first_noack_first -eq 0
	expect first_ack_first -ge 20
	# TCP itself may delay ACKs by 40 ms.
	expect p50_ack_first -le 45000000
	expect p50_noack_first -ge $((p50_ack_first * 2)) "there was no backlog to overtake"
}

# ACKs of h1 wait, because their flow has a low rate, and are replaced by later ones.
waiting_acks_are_replaced() {
	for options in noack_thin ack_thin; do
		h1_qdisc timely maxrate 1mbit quantum 100 initial_quantum 100 $options
		packets <<-'EOF'
			tap = Tap("h2")
			back = Transfer(3000000, "h2", "h1", H1)
			seen = []
			carry(back, seconds=60)
			tap.drain(seen)
			acks = [s.ack for s in tcp_segments(seen) if s.pure_ack]
			late = sum((b - a) & 0xffffffff > 1 << 31 for a, b in zip(acks, acks[1:]))
			after = stats()
			result(ok=back.ok, acks=len(acks), late=late, thinned=after["acks_thinned"], drops=after["drops"])
		EOF
		say "$options: $acks ACKs, $thinned replaced"
		expect ok -eq 1
		expect late -eq 0
		expect drops -eq 0
		eval "acks_$options=$acks thinned_$options=$thinned"
	done
	expect thinned_noack_thin -eq 0
	expect thinned_ack_thin -ge 20 "no ACK has waited"
	expect acks_ack_thin -lt $acks_noack_thin
}

# A parent of the qdisc does not count replaced ACKs as queued.
parents_count_right() {
	h1_qdisc handle 1: prio
	must tc -n h1 qdisc replace dev eth0 parent 1:2 timely maxrate 1mbit quantum 100 initial_quantum 100
	packets <<-'EOF'
		back = Transfer(1000000, "h2", "h1", H1)
		carry(back, seconds=60)
		parent = emptied()
		result(ok=back.ok, thinned=stats_sum("h1", "eth0", "acks_thinned"), left=parent["qlen"], bytes_left=parent["backlog"])
	EOF
	expect ok -eq 1
	expect thinned -ge 10 "no ACK has waited"
	expect left -eq 0
	expect bytes_left -eq 0
}

# Pure ACKs of h1 have the DSCP, other packets do not; ECN bits do not change.
dscp_is_seen_at_the_peer() {
	for cc in cubic dctcp; do
		for dscp in 46 0 63; do
			h1_qdisc timely ack_dscp $dscp
			packets <<-EOF
				tap = Tap()
				for end in "h1", "h2":
				    with inside(end), open("/proc/sys/net/ipv4/tcp_ecn", "w") as file:
				        file.write("1")
				back = Transfer(1000000, "h2", "h1", H1, cc="$cc")
				there = Transfer(1000000, cc="$cc")
				seen = tcp_segments(carry(back, there, tap=tap))
				pure = [s for s in seen if s.pure_ack]
				others = [s for s in seen if not s.pure_ack]
				result(ok=back.ok and there.ok, pure=len(pure), others=len(others), wrong=sum(s.tos >> 2 != $dscp for s in pure),
				       marked=sum(s.tos >> 2 != 0 for s in others), sums=sum(not s.ip_ok for s in seen),
				       tcp_sums=sum(not s.tcp_ok for s in pure), ecn=sum(s.tos & 3 == 2 for s in pure), counted=stats()["acks_marked"])
				say("$cc, DSCP $dscp:", len(pure), "pure ACKs of", len(seen), "segments, with ECN", sum(s.tos & 3 == 2 for s in pure))
			EOF
			expect ok -eq 1
			expect pure -ge 10
			expect others -ge 10
			expect wrong -eq 0 "pure ACKs without DSCP $dscp"
			expect marked -eq 0 "other packets with a DSCP"
			expect sums -eq 0 "the IP header's checksum"
			expect tcp_sums -eq 0 "TCP's checksum"
			[ $cc = cubic ] || expect ecn -ge 10 "ECN was lost"
			expect counted -ge "$pure"
		done
	done
}

dscp_of_ipv6() {
	for end in 1 2; do
		must ip netns exec h$end sh -c "
			echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6
			echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
			ip address add fd07::$end/64 dev eth0 nodad
			ip neighbour add fd07::$((3 - end)) dev eth0 lladdr 02:00:00:00:00:0$((3 - end)) nud permanent"
	done
	sleep 2
	h1_qdisc timely ack_dscp 46 ack_first
	packets <<-'EOF'
		tap = Tap()
		back = Transfer(1000000, "h2", "h1", "fd07::1")
		there = Transfer(1000000, addr="fd07::2")
		raw = carry(back, there, tap=tap)
		seen = [(s, p) for s, p in zip(map(Segment, raw), raw) if s.is_tcp]
		pure = [(s, p) for s, p in seen if s.pure_ack]
		labels = {}
		for s, p in seen:
		    labels.setdefault((s.sport, s.dport), set()).add(struct.unpack_from(">I", p.data, 14)[0] & 0xfffff)
		result(ok=back.ok and there.ok, pure=len(pure), wrong=sum(s.tos >> 2 != 46 for s, _ in pure),
		       others=sum(s.tos >> 2 != 0 for s, _ in seen if not s.pure_ack), sums=sum(not s.tcp_ok for s, _ in pure),
		       versions=sum(p.data[14] >> 4 != 6 for _, p in seen), labels=max(len(l) for l in labels.values()))
	EOF
	expect ok -eq 1
	expect pure -ge 10
	expect wrong -eq 0
	expect others -eq 0
	expect sums -eq 0
	expect versions -eq 0
	expect labels -eq 1 "the flow label has changed"
}

# The packet priority selects the VLAN priority, which the tap receives (PACKET_AUXDATA).
priority_is_the_vlans() {
	for end in 1 2; do
		must ip netns exec h$end sh -c "
			ip link add link eth0 name v5 type vlan id 5 egress-qos-map 0:0 6:3
			ip address add 10.7.5.$end/24 dev v5
			ip link set v5 up
			ip neighbour add 10.7.5.$((3 - end)) dev v5 lladdr 02:00:00:00:00:0$((3 - end)) nud permanent"
	done
	h1_qdisc pfifo
	for priority in keep 6; do
		must tc -n h1 qdisc replace dev v5 root timely ack_priority $priority
		packets <<-'EOF'
			tap = Tap()
			tap.sock.setsockopt(263, 8, 1)	# PACKET_AUXDATA
			back = Transfer(300000, "h2", "h1", "10.7.5.1")
			there = Transfer(300000, addr="10.7.5.2")
			carry(back, there)
			acks, others = [], []
			while select.select([tap.sock], [], [], 0)[0]:
			    data, more, _, address = tap.sock.recvmsg(1 << 17, 256)
			    tci = [struct.unpack("=IIIHHHH", v[:20])[5] for _, kind, v in more if kind == 8]
			    segment = Segment(Packet(0, data))
			    if address[2] != 4 and segment.is_tcp and tci and tci[0] & 4095 == 5:
			        (acks if segment.pure_ack else others).append(tci[0] >> 13)
			result(ok=back.ok and there.ok, acks=len(acks), others=len(others), least=min(acks), most=max(acks), data=max(others))
		EOF
		expect ok -eq 1
		expect acks -ge 5
		expect others -ge 5
		expect data -eq 0
		if [ $priority = keep ]; then
			expect most -eq 0
		else
			expect least -eq 3
		fi
	done
	must ip -n h1 link del v5
}

# TCP data in both directions, paced so slowly that ACKs would wait behind data, arrives unchanged.
tcp_is_the_same() {
	for options in "ack_first" "ack_first ack_dscp 46 ack_priority 6" "ack_dscp 10"; do
		h1_qdisc timely $options
		must tc -n h2 qdisc replace dev eth0 root timely $options
		packets <<-'EOF'
			tap = Tap()
			there = Transfer(2000000, rate=2000000)
			back = Transfer(2000000, "h2", "h1", H1, rate=20000000)
			single = Transfer(1000000, "h2", "h1", H1)
			seen = tcp_segments(carry(there, back, single, tap=tap))
			acks = [s for s in seen if s.pure_ack]
			result(ok=there.ok and back.ok and single.ok, acks=len(acks), bad_sums=sum(not s.ip_ok for s in seen),
			       bad_acks=sum(not s.tcp_ok for s in acks), low=min(s.tos >> 2 for s in acks),
			       high=max(s.tos >> 2 for s in acks), data=max(s.tos >> 2 for s in seen if s.data),
			       first=stats()["acks_first"], marked=stats()["acks_marked"])
		EOF
		expect ok -eq 1 "$options"
		expect acks -ge 20 "pure ACKs from h1"
		expect bad_sums -eq 0 "IP checksums are wrong: $options"
		expect bad_acks -eq 0 "TCP checksums of pure ACKs are wrong: $options"
		expect data -eq 0 "data was marked"
		case $options in
		*ack_dscp*)
			dscp=${options##*ack_dscp }
			expect low -eq "${dscp%% *}"
			expect high -eq "${dscp%% *}"
			expect marked -ge 20 ;;
		*)
			expect high -eq 0 ;;
		esac
		case $options in
		ack_first*) expect first -ge 20 ;;
		esac
	done
}

run_cases hosts nothing_else_overtakes acks_overtake_the_backlog waiting_acks_are_replaced parents_count_right \
	dscp_is_seen_at_the_peer dscp_of_ipv6 priority_is_the_vlans tcp_is_the_same
