#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Transfers over both families and every way to be paced: what arrives is what
# was sent, and at the rate that is in force.

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

# The one rate that the parameters leave must be the rate of the data, to 2 %.
rate_is_in_force() {
	unload_timely
	load_timely min_rate_kbps=100000 first_rate_kbps=100000 max_rate_kbps=100000
	# By fq, and by TCP itself over a queue that knows no times, and over none.
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
			# A burst is a segment of segment_bytes, not TCP's choice.
			burst=$(((after_tx_bytes - before_tx_bytes) / (after_tx_packets - before_tx_packets)))
			expect burst -le 16500 "bytes a burst over $qdisc"
			least=12000
			# Over fq, TCP of 6.1 sends bursts of 10 600 bytes on average.
			! kernel_before 6.12 || least=10000
			expect burst -ge $least "bytes a burst over $qdisc"
		done
	done
}

# A socket that got it unasked, as its host's default, is paced as well.
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
