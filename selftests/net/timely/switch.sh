#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# An open connection changes its congestion control, from and to timely, under traffic.
# Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 1gbit delay 10us"
	# CUBIC's packets of 64 KB cause RTTs of up to 2 ms, which must not lower timely's rate.
	load_timely $gig t_high_ns=2000000 beta_ppm=0
}

# One connection changes its congestion control, the rate of another connection stays the same.
under_traffic() {
	for qdisc in fq noqueue; do
		h1_qdisc $qdisc
		traffic <<-EOF
			0	flow other from=h1 to=h2 addr=$h2_v6 cc=timely cap=50000
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely cap=400000 verify=1
			0.05	set a cc=cubic
			0.07	counters cubic_old ns=h1
			0.09	counters cubic_new ns=h1
			0.1	set a cc=timely
			0.12	set a cc=bbr
			0.14	set a cc=timely
			0.145	set a cc=timely
			0.16	goodput late flow=a for=0.04
			0.2	counters timely_old ns=h1
			0.22	counters timely_new ns=h1
			0.05	goodput other_got flow=other for=0.15
			0.25	stop other
			0.25	stop a
		EOF
		expect a_done -eq 1 "over $qdisc"
		expect a_same -eq 1 "over $qdisc"
		expect other_done -eq 1 "over $qdisc"
		expect_near late 400000 3
		cubic=$(((cubic_new_tx_bytes - cubic_old_tx_bytes) /
			(cubic_new_tx_packets - cubic_old_tx_packets)))
		timely=$(((timely_new_tx_bytes - timely_old_tx_bytes) /
			(timely_new_tx_packets - timely_old_tx_packets)))
		expect cubic -ge 5000 "bytes per packet over $qdisc: segment_bytes still applies to CUBIC"
		expect timely -le 3100 "bytes per packet over $qdisc: segment_bytes does not apply again"
		expect_near other_got 50000 2
	done
}

a_hundred_times_under_traffic() {
	h1_qdisc fq
	for step in 0 1 2 3 4 5 6 7 8 9; do
		for half in 0 5; do
			echo "0.0${step}${half}0 set a cc=cubic"
			echo "0.0${step}${half}1 set a cc=timely"
			echo "0.0${step}${half}2 set a cc=reno"
			echo "0.0${step}${half}3 set a cc=dctcp"
			echo "0.0${step}${half}4 set a cc=timely"
		done
	done >"$work/changes"
	{
		echo "0 flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=15000000 verify=1"
		cat "$work/changes"
	} >"$work/plan"
	traffic <"$work/plan"
	expect a_done -eq 1
	expect a_same -eq 1
	expect a_us -lt 1000000
}

run_cases hosts under_traffic a_hundred_times_under_traffic
