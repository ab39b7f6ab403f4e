#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# App-limited connections: the rate rises only while the application uses more than 80 % of it
# (TIMELY, section 5). Otherwise an application could flood the path with an unused rate later.
# Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_qdisc fq
}

# uses KBPS FIRST_KBPS LIMIT_KBPS EVERY...: an application writes KBPS in parts every EVERY
# seconds, from a first rate of FIRST_KBPS. The rate must stay below LIMIT_KBPS for each EVERY.
uses() {
	kbps=$1
	first=$2
	limit=$3
	shift 3
	unload_timely
	load_timely first_rate_kbps="$first"
	for every; do
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely rate=$kbps every=$every
			0.01	watch rate flow=a for=0.14 every=0.0003
			0.1	goodput got flow=a for=0.05
			0.16	end
		EOF
		expect_near got "$kbps" 8
		expect rate_max -le "$limit" "writing $kbps kbit/s every $every s"
	done
}

rate_stays_near_the_applications_rate() {
	uses 50000 60000 70000 0.00005 0.0001 0.0005 0.002
}

rate_stays_at_the_first_rate() {
	uses 50000 500000 520000 0.0001 0.002
}

rate_reaches_the_link_rate_with_a_backlog() {
	unload_timely
	load_timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0	reach link flow=a rate=9000000 within=0.11 every=0.002 last=1
	EOF
	expect link_us -gt 0 "9 Gbit/s not reached"
}

# The rate also rises without a backlog, if the application uses more than 80 % of it.
rate_follows_an_application_that_uses_it() {
	unload_timely
	load_timely first_rate_kbps=55000
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely rate=200000 every=0.0001
		0.3	goodput got flow=a for=0.1
		0.41	end
	EOF
	expect_near got 200000 5
}

run_cases hosts rate_stays_near_the_applications_rate rate_stays_at_the_first_rate \
	rate_reaches_the_link_rate_with_a_backlog rate_follows_an_application_that_uses_it
