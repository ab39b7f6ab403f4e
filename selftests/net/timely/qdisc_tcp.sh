#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# tcp_timely over sch_timely: the same throughput and rates as over fq, recorded departures, and
# unloading in either order. Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	hosts_up "rate 10gbit delay 10us"
	load_qdisc
	must insmod "$modules/tcp_timely.ko"
}

content_is_right() {
	h1_qdisc timely
	must tc -n h2 qdisc replace dev eth0 root timely
	stats_of before
	transfers_arrive
	had=$before_departures
	stats_of after
	expect after_departures -gt "$had" "no departure was recorded"
	expect after_drops -eq 0
	must tc -n h2 qdisc del dev eth0 root
}

# Throughput and queue of one flow as over fq.
as_fast_as_over_fq() {
	for qdisc in fq timely; do
		h1_qdisc $qdisc
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
			0.2	goodput got flow=a for=0.3
			0.2	ping p from=h1 to=h2 addr=$h2_v4 for=0.3 every=0.001
			0.65	end
		EOF
		number_of got
		eval "got_$qdisc=$value p50_$qdisc=$p_p50"
		say "over $qdisc: $value kbit/s, ping $p_p50 us"
	done
	expect got_timely -ge $((got_fq * 97 / 100))
	# Over fq one flow uses most of the link, though fq's timer is late by its slack.
	expect got_fq -ge 8500000
	# The part of the link that the flow over fq does not use keeps the queue empty.
	expect p50_timely -le $((p50_fq * 120 / 100 + 15))
}

rates_are_met() {
	unload_tcp_timely
	must insmod "$modules/tcp_timely.ko" min_rate_kbps=100000 first_rate_kbps=100000 max_rate_kbps=100000
	for options in "" "lazy" "split 16384" "lazy split 8192 ack_first" "slot 256ns" "slot 65536ns"; do
		h1_qdisc timely $options
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
			0	flow b from=h1 to=h2 addr=$h2_v6 cc=timely verify=1
			0.05	goodput a_got flow=a for=0.25
			0.05	goodput b_got flow=b for=0.25
			0.31	stop a
			0.31	stop b
		EOF
		say "'$options': $a_got and $b_got kbit/s"
		for flow in a b; do
			expect ${flow}_same -eq 1 "$options"
			expect_near ${flow}_got 100000 2
		done
	done
}

# A departure time that TCP has not computed from the rate counts, here that of TCP_TX_DELAY.
tx_delay_counts() {
	for qdisc in fq timely; do
		h1_qdisc $qdisc
		packets <<-EOF
			transfer = Transfer(1, addr="$h2_v4", cc="timely")
			transfer.receiver.setblocking(True)
			transfer.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
			transfer.sender.setsockopt(socket.IPPROTO_TCP, 37, 3000)	# TCP_TX_DELAY
			took = []
			for _ in range(10):
			    begin = time.monotonic_ns()
			    transfer.sender.send(b"x")
			    transfer.receiver.recv(1)
			    took.append((time.monotonic_ns() - begin) // 1000)
			say("over $qdisc:", took, "us")
			result(shortest=min(took), longest=max(took))
		EOF
		expect shortest -ge 3000 "over $qdisc"
		expect longest -le 3200 "over $qdisc"
	done
}

unload_tcp_timely() {
	within_seconds 10 rmmod tcp_timely || fail "tcp_timely cannot be unloaded"
}

# Each module may be unloaded first; connections go on.
either_module_is_unloaded_first() {
	unload_tcp_timely
	h1_qdisc timely
	must insmod "$modules/tcp_timely.ko"
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=50000000 verify=1
		0.01	run tc -n h1 qdisc replace dev eth0 root fq
		0.02	run rmmod sch_timely
		0.03	run insmod $modules/sch_timely.ko
		0.04	run tc -n h1 qdisc replace dev eth0 root timely
	EOF
	expect a_done -eq 1
	expect a_same -eq 1
	expect a_us -ge 40000
	unload_tcp_timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic bytes=5000000 verify=1
	EOF
	expect a_same -eq 1
}

run_cases hosts content_is_right as_fast_as_over_fq tx_delay_counts rates_are_met either_module_is_unloaded_first
