#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# SO_MAX_PACING_RATE limits the rate of a connection, over fq and without a qdisc.
# Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 1gbit delay 10us"
	# A constant rate below the link rate.
	load_timely $steady first_rate_kbps=500000
}

caps_from_the_start() {
	for qdisc in fq noqueue; do
		h1_qdisc $qdisc
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely cap=100000
			0.02	goodput got flow=a for=0.2
			0.02	watch rate flow=a for=0.2 every=0.002
			0.23	end
		EOF
		expect rate_max -le 100000 "over $qdisc"
		expect_near got 100000 2
	done
}

# A new cap takes effect at once; a cap above TIMELY's rate does not raise the rate.
may_be_raised_and_lowered() {
	for qdisc in fq noqueue; do
		h1_qdisc $qdisc
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely cap=100000
			0.05	set a cap=300000
			0.07	goodput higher flow=a for=0.1
			0.18	set a cap=800000
			0.2	goodput free flow=a for=0.1
			0.31	set a cap=50000
			0.33	goodput lower flow=a for=0.2
			0.54	end
		EOF
		expect_near higher 300000 2
		expect_near free 500000 3
		expect_near lower 50000 3
	done
}

run_cases hosts caps_from_the_start may_be_raised_and_lowered
