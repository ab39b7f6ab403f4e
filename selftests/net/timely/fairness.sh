#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Two flows share a bottleneck fairly, though the second starts 200 ms later.
# Topology: h1 -- mid -- h2, 1 Gb/s, RTT 100 us.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc
t_high_us=600

hosts() {
	hosts_up "rate 1gbit delay 45us" "delay 45us"
	h1_qdisc fq
	load_timely segment_bytes=6000 delta_kbps=900 min_rtt_ns=100000 t_low_ns=180000 \
		rtt_ref_ns=250000 t_high_ns=${t_high_us}000
}

share_fairly() {
	traffic <<-EOF
		0	flow one from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	goodput alone flow=one for=0.05
		0.2	flow two from=h1 to=h2 addr=$h2_v4 cc=timely
		0.6	goodput x flow=one for=0.15
		0.6	goodput y flow=two for=0.15
		0.6	ping queue from=h1 to=h2 addr=$h2_v4 every=0.0005 for=0.15
		0.86	end
	EOF
	expect alone -ge 800000
	both=$((x + y))
	jain=$((1000 * both * both / (2 * (x * x + y * y))))
	say "$x + $y kbit/s, RTT $queue_min ... $queue_p50 ... $queue_max us"
	expect both -ge 800000
	expect jain -ge 950 "thousandths, with $x and $y kbit/s"
	expect queue_p50 -lt $((100 + t_high_us)) "us of RTT"
	expect queue_lost -eq 0
}

run_cases hosts share_fairly
