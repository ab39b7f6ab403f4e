#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Transfers over IPv4 and IPv6, paced by fq, by TCP itself over another qdisc, or by TCP without a
# qdisc: the data arrives unchanged and at the configured rate.
# Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us"
	load_timely
}

content_is_right() {
	for qdisc in fq noqueue; do
		h1_qdisc $qdisc
		transfers_arrive "over $qdisc"
	done
}

# With minimum rate = maximum rate, data is sent at that rate, within 2 %.
rate_is_in_force() {
	unload_timely
	load_timely min_rate_kbps=100000 first_rate_kbps=100000 max_rate_kbps=100000
	# Paced by fq, by TCP over a qdisc that does not pace, and by TCP without a qdisc.
	for qdisc in fq pfifo_fast noqueue; do
		h1_qdisc $qdisc
		for to in $h2_v4 $h2_v6; do
			traffic <<-EOF
				0	flow a from=h1 to=h2 addr=$to cc=timely
				0.05	goodput got flow=a for=0.25
				0.05	counters before ns=h1
				0.3	info now flow=a
				0.3	counters after ns=h1
				0.31	end
			EOF
			expect_near got 100000 2
			expect now_rate -eq 100000
			# TCP hands over pacing segments of segment_bytes, not of its own size.
			bytes=$(((after_tx_bytes - before_tx_bytes) / (after_tx_packets - before_tx_packets)))
			expect bytes -le 16500 "per pacing segment over $qdisc"
			least=12000
			# On Linux 6.1 pacing segments over fq have 10 600 bytes on average.
			! kernel_before 6.12 || least=10000
			expect bytes -ge $least "per pacing segment over $qdisc"
		done
	done
}

# A socket that uses timely because it is the host's default is paced as well.
default_of_the_host() {
	echo timely >/proc/sys/net/ipv4/tcp_congestion_control
	must ip netns exec h1 sh -c "echo timely >/proc/sys/net/ipv4/tcp_congestion_control"
	echo cubic >/proc/sys/net/ipv4/tcp_congestion_control
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4
		0.05	goodput got flow=a for=0.25
		0.31	end
	EOF
	expect_near got 100000 2
}

run_cases hosts content_is_right rate_is_in_force default_of_the_host
