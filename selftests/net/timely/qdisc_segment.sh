#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The option "split": GSO packets pass whole, or are split into paced sub-segments. The data
# arrives unchanged in both cases. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

rate=25000000	# bytes/s: 64 KB are 2.6 ms

hosts() {
	pair_up
	load_qdisc
}

# tcp(KEY, SIZE): a paced transfer. Sets KEY_packet, the largest packet; KEY_burst, the most bytes
# that leave within a slot; KEY_over, the bursts of more than LIMIT bytes; KEY_rate, its goodput;
# and by how much the counters have grown.
cat >"$work/tcp.py" <<-'EOF'
	def tcp(key, size=3000000, rate=25000000, slot=1024, addr=H2, limit=0):
	    before = stats()
	    tap = Tap()
	    transfer = Transfer(size, rate=rate, addr=addr)
	    seen = carry(transfer, tap=tap)
	    # TCP does not pace its first packets.
	    data = [s for s in tcp_segments(seen) if s.data][20:]
	    times = [s.at for s in data]
	    bursts, began = [], None
	    for s in data:
	        if began is None or s.at - began > slot:
	            began = s.at
	            bursts.append(0)
	        bursts[-1] += len(s.data)
	    largest = max(bursts)
	    took = times[-1] - times[0]
	    after = stats()
	    result(**{key + "_ok": transfer.ok, key + "_packet": max(len(s.data) for s in data),
	              key + "_burst": largest, key + "_bursts": len(bursts),
	              key + "_over": sum(b > limit for b in bursts), key + "_rate": sum(len(s.data) for s in data[1:]) * S / took,
	              key + "_bad_sums": sum(not s.tcp_ok for s in data if len(s.data) <= 1460)})
	    for name in "segmented", "segments", "segment_errors", "drops":
	        result(**{f"{key}_{name}": after[name] - before[name]})
	    say(f"{key}: packets to {max(len(s.data) for s in data)} bytes, {len(bursts)} bursts to {largest},",
	        f"{sum(b > limit for b in bursts)} over {limit},",
	        f"{sum(len(s.data) for s in data[1:]) * S // took} bytes/s")
	    tap.sock.close()
EOF

tcp() {
	{
		cat "$work/tcp.py"
		echo "tcp($*)"
	} >"$work/plan"
	packets <"$work/plan"
}

# paced_sub_segments KEY BYTES: one sub-segment leaves per slot. Where one packet follows another
# there may be two: TCP counts one header per packet when it computes the next departure time, but
# each frame has a header, so the last sub-segment is a little late.
paced_sub_segments() {
	expect "$1_burst" -le $(($2 + $2))
	number_of "$1_bursts"
	expect "$1_over" -le $((value * 5 / 100)) "bursts of more than $2 bytes"
}

# By default packets are not split. TCP does send large packets here.
whole_by_default() {
	for tso in on off; do
		must ip netns exec h1 ethtool -K eth0 tso $tso gso on
		h1_qdisc timely
		tcp "'whole'"
		expect whole_ok -eq 1
		expect whole_burst -ge 20000
		expect whole_segmented -eq 0
		expect_near whole_rate $rate 4
	done
}

leave_in_sub_segments() {
	for tso in on off; do
		must ip netns exec h1 ethtool -K eth0 tso $tso gso on
		for size in 16384 6000; do
			h1_qdisc timely $exact split $size
			tcp "'split', limit=$size"
			expect split_ok -eq 1 "tso $tso, split $size"
			paced_sub_segments split $size
			expect split_segmented -ge 10
			expect split_segments -gt "$split_segmented"
			expect split_segment_errors -eq 0
			expect split_drops -eq 0
			expect_near split_rate $rate 4
			[ $tso = on ] || expect split_packet -le 1460
		done
	done
	must ip netns exec h1 ethtool -K eth0 tso on
}

# With "split" below the size of a frame, packets are split into single frames.
smaller_than_a_frame() {
	h1_qdisc timely $exact split 500
	tcp "'single', limit=1460"
	expect single_ok -eq 1
	paced_sub_segments single 1460
	expect_near single_rate $rate 4
}

# split_rate: the sub-segments of a packet may leave faster than the flow's rate.
rate_of_sub_segments() {
	h1_qdisc timely $exact split 1500 split_rate 8gbit
	packets <<-'EOF'
		tap = Tap()
		transfer = Transfer(2000000, rate=10000000)
		data = [s for s in tcp_segments(carry(transfer, tap=tap)) if s.data]
		gaps = [b.at - a.at for a, b in zip(data, data[1:])]
		inside = sorted(gap for gap in gaps if gap < 50000)
		result(ok=transfer.ok, inside=len(inside), all=len(gaps),
		       gap=inside[len(inside) // 2] if inside else -1,
		       took=data[-1].at - data[0].at)
	EOF
	expect ok -eq 1
	# 1514 bytes at 1 GB/s are 1.5 us.
	expect inside -gt $((all / 2))
	expect gap -ge 1400
	expect gap -le 2600
	expect_near took 200000000 5
}

# GSO packets of UDP (UDP_SEGMENT).
udp_gso_packets() {
	h1_qdisc timely $exact split 4200
	packets <<-'EOF'
		sink, sender = Sink(), source(rate=10000000)
		sender.setsockopt(17, 103, 1000)	# UDP_SEGMENT
		for batch in range(5):
		    sender.send(b"".join(payload(batch * 40 + n, 0, 1000) for n in range(40)))
		got = sink.take(200, 1)
		result(arrived=len(got), order=[p.number for p in got] == list(range(200)))
		times = [p.at for p in got]
		most = max(sum(at <= other < at + 1024 for other in times) for at in times)
		result(most=most, span=times[-1] - times[0])
		say("at most", most, "datagrams at a time, segmented", stats()["segmented"], "errors", stats()["segment_errors"])
	EOF
	expect arrived -eq 200
	expect order -eq 1
	expect most -le 4
	expect_near span 20700000 4
}

# The sub-segments of one packet leave over 1.5 s, each 0.15 s after the one before, which is
# longer than TCP waits before it probes for a loss. TCP finds that the packet is still on
# this host, and sends nothing twice.
nothing_is_sent_twice() {
	h1_qdisc timely $exact split 1500 maxrate 80kbit
	packets <<-'EOF'
		def counters():
		    found = {}
		    with inside("h1"):
		        for name in "netstat", "snmp":
		            with open("/proc/thread-self/net/" + name, encoding="ascii") as file:
		                lines = [line.split() for line in file]
		            for keys, values in zip(lines[::2], lines[1::2]):
		                found.update(zip(keys[1:], map(int, values[1:])))
		    return found
		before, tap = counters(), Tap()
		transfer = Transfer(14000)
		# No FIN: the packet is the last one that TCP has sent.
		transfer.sent = transfer.sender.send(DATA[:14000])
		data = [s for s in tcp_segments(carry(transfer, seconds=4, tap=tap)) if s.data]
		grown = {key: value - before[key] for key, value in counters().items()}
		result(bytes=sum(len(s.data) for s in data), packets=len(data),
		       segmented=stats()["segmented"], probes=grown["TCPLossProbes"],
		       again=grown["RetransSegs"], asked=grown["TCPSpuriousRtxHostQueues"])
		say({key: grown[key] for key in ("TCPLossProbes", "RetransSegs", "TCPTimeouts",
		     "TCPSpuriousRtxHostQueues")}, sum(len(s.data) for s in data), "bytes in",
		    (data[-1].at - data[0].at) // MS, "ms")
	EOF
	expect segmented -ge 1
	expect asked -ge 1 "TCP has not tried to send again: the case shows nothing"
	expect probes -eq 0
	expect again -eq 0
	expect bytes -eq 14000
	expect packets -ge 10 "packets are not larger than 1500 bytes"
}

# BIG TCP over IPv6: packets of more than 64 KB.
big_tcp() {
	for end in 1 2; do
		must ip netns exec h$end sh -c "
			echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6
			echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
			ip link set eth0 gso_max_size 200000 gro_max_size 200000
			ip address add fd07::$end/64 dev eth0 nodad
			ip neighbour add fd07::$((3 - end)) dev eth0 lladdr 02:00:00:00:00:0$((3 - end)) nud permanent"
	done
	sleep 2
	h1_qdisc timely
	tcp "'big', 20000000, None, addr='fd07::2'"
	expect big_ok -eq 1
	expect big_packet -gt 65536 "no BIG TCP: the case shows nothing"
	for size in 16384 100000; do
		h1_qdisc timely timer_slack 0 split $size
		tcp "'split', 20000000, None, addr='fd07::2'"
		expect split_ok -eq 1
		expect split_packet -le $size
		expect split_segment_errors -eq 0
		expect split_segmented -ge 10
	done
}

run_cases hosts whole_by_default leave_in_sub_segments smaller_than_a_frame \
	rate_of_sub_segments udp_gso_packets nothing_is_sent_twice big_tcp
