#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The qdisc on a router: forwarded packets have no local socket. Their headers tell flows apart,
# their transmit times are kept, and wrong times never stall the router.
# Topology: h1 -- mid -- h2; the qdisc is mid's, towards h2.

. "$(dirname "$0")/qdisc_lib.sh"

mid_qdisc() {
	must tc -n mid -batch - <<-EOF
		qdisc replace dev to2 root handle 99: pfifo
		qdisc replace dev to2 root $*
	EOF
}

# A link without delay: h1 has no qdisc, mid has timely towards h2.
hosts() {
	load_qdisc
	hosts_up "limit 10000"
	# Resolve neighbours now, so that no packet of a case waits for that.
	traffic <<-EOF
		0	ping four from=h1 to=h2 addr=$h2_v4 for=0.5 every=0.1
		0	ping six from=h1 to=h2 addr=$h2_v6 for=0.5 every=0.1
	EOF
	mid_qdisc timely
}

# maxrate applies to each flow; flows differ by their ports. With all bits of the hash no two are the same.
flows_by_headers() {
	mid_qdisc timely $exact flow_limit 1000 maxrate 8mbit orphan_mask 4294967295
	packets <<-EOF
		SINK = "$h2_v4"
		sinks = [Sink(addr=SINK, port=100 + i) for i in range(3)]
		senders = [source(to=SINK, port=100 + i) for i in range(3)]
		for number in range(200):
		    for sender in senders:
		        sender.send(payload(number, 0, 958))
		for i, sink in enumerate(sinks):
		    got = sink.take(200, 1)
		    times = [p.at for p in got]
		    errors(f"flow_{i}", lateness(times, 1 * MS))
		    result(**{f"order_{i}": [p.number for p in got] == list(range(200))})
		result(flows=stats_sum("mid", "to2", "flows"))
	EOF
	for i in 0 1 2; do
		expect flow_${i}_count -eq 200
		expect flow_${i}_p99 -le 1024 "flow $i does not have its own maxrate"
		expect order_$i -eq 1
	done
	expect flows -ge 3
}

# orphan_mask 0 keeps no bits of the hash, so all packets are one flow.
orphan_mask_joins() {
	mid_qdisc timely $exact flow_limit 1000 maxrate 8mbit orphan_mask 0
	packets <<-EOF
		SINK = "$h2_v4"
		sinks = [Sink(addr=SINK, port=100 + i) for i in range(3)]
		senders = [source(to=SINK, port=100 + i) for i in range(3)]
		for number in range(150):
		    for sender in senders:
		        sender.send(payload(number, 0, 958))
		times = sorted(p.at for sink in sinks for p in sink.take(150, 1))
		errors("one_flow", lateness(times, 1 * MS))
	EOF
	expect one_flow_count -eq 450
	expect one_flow_p99 -le 1024
}

# Kernels before 6.9 remove transmit times of SO_TXTIME from forwarded packets, not those of TCP.
forwarding_removes_txtimes() { kernel_before 6.9; }

# A sender's transmit time of the monotonic clock is used at the next hop.
txtimes_of_senders_are_used() {
	mid_qdisc timely timer_slack 0 flow_limit 1000
	packets <<-EOF
		sink = Sink(addr="$h2_v4")
		senders = [source(to="$h2_v4", clock=MONOTONIC) for _ in range(5)]
		rng = random.Random(4)
		begin = time.monotonic_ns() + 2 * MS
		for number in range(500):
		    txtime = begin + rng.randrange(20 * MS)
		    send_at(senders[number % 5], txtime, payload(number, txtime))
		got = sink.take(500, 1)
		errors("forwarded", [p.at - p.txtime for p in got])
	EOF
	expect forwarded_count -eq 500
	if forwarding_removes_txtimes; then
		expect forwarded_max -lt 0 "a transmit time was kept"
	else
		expect forwarded_min -ge 0
		expect forwarded_p99 -le 1024
	fi
}

# Transmit times of CLOCK_REALTIME and TAI are decades ahead of the monotonic clock. Their packets
# are counted and sent at once, or dropped, and delay no other packet. Where the packet says which
# clock the time is of, the packet is sent at its time, which is now.
realtime_txtimes_do_not_stall() {
	for what in send drop; do
		mid_qdisc timely timer_slack 0 wrong_clock $what
		packets <<-EOF
			sink, other = Sink(addr="$h2_v4"), Sink(addr="$h2_v4", port=10)
			before = stats_sum("mid", "to2", "wrong_clock")
			dropped = stats_sum("mid", "to2", "wrong_clock_drops")
			tai = source(to="$h2_v4", clock=TAI)
			real = source(to="$h2_v4", clock=REALTIME)
			plain = source(to="$h2_v4", port=10)
			now = time.monotonic_ns()
			for number in range(40):
			    send_at(tai, OFFSET + now, payload(number))
			    send_at(real, OFFSET + now, payload(number))
			    plain.send(payload(number, time.monotonic_ns()))
			passed, beside = sink.take(80, 0.3), other.take(40, 0.3)
			result(passed=len(passed), beside=len(beside))
			result(late=max([p.at - now for p in passed] or [0]))
			result(beside_late=max(p.at - p.txtime for p in beside))
			result(counted=stats_sum("mid", "to2", "wrong_clock") - before)
			result(dropped=stats_sum("mid", "to2", "wrong_clock_drops") - dropped)
			result(left=stats_sum("mid", "to2", "qlen"))
			say("wrong_clock $what:", len(passed), "of 80 passed")
		EOF
		expect beside -eq 40
		expect beside_late -le 1024
		expect left -eq 0 "a packet is stuck"
		# The kernel itself removes a time of CLOCK_REALTIME when it forwards a packet.
		wrong=40
		! forwarding_removes_txtimes && ! timestamps_have_clocks || wrong=0
		expect counted -eq $wrong
		[ $what = drop ] || wrong=0
		expect dropped -eq $wrong
		expect passed -eq $((80 - wrong))
		expect late -le 1000000
	done
}

# TCP with GSO packets through the router, over IPv4 and IPv6, with three congestion controls.
tcp_through_a_router() {
	mid_qdisc timely
	load_tcp_timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic bytes=5000000 verify=1
		0	flow b from=h1 to=h2 addr=$h2_v6 cc=bbr cap=1000000 bytes=5000000 verify=1
		0	flow c from=h1 to=h2 addr=$h2_v4 cc=timely bytes=5000000 verify=1
	EOF
	for flow in a b c; do
		expect ${flow}_done -eq 1
		expect ${flow}_same -eq 1
		expect ${flow}_us -lt 2000000
	done
}

load_tcp_timely() {
	is_loaded tcp_timely || must insmod "$modules/tcp_timely.ko"
}

run_cases hosts flows_by_headers orphan_mask_joins txtimes_of_senders_are_used \
	realtime_txtimes_do_not_stall tcp_through_a_router
