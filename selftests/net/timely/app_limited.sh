#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Section 5 of the paper: the rate may rise only while the application uses more
# than 80 % of it, so that one that does not cannot flood the path when it does.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_qdisc fq
}

# uses KBPS FIRST_KBPS LIMIT_KBPS EVERY...: however the application cuts its data,
# the rate must not rise above a quarter more than it sends, or where it began.
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

rate_stays_near_what_is_sent() {
	uses 50000 60000 70000 0.00005 0.0001 0.0005 0.002
}

rate_stays_at_the_first() {
	uses 50000 500000 520000 0.0001 0.002
}

rate_reaches_the_line_with_a_backlog() {
	unload_timely
	load_timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0	reach line flow=a rate=9000000 within=0.11 every=0.002 last=1
	EOF
	expect line_us -gt 0 "9 Gbit/s not reached"
}

# It does not take a backlog: who uses nine tenths of the rate may have more.
rate_follows_who_uses_it() {
	unload_timely
	load_timely first_rate_kbps=55000
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely rate=200000 every=0.0001
		0.3	goodput got flow=a for=0.1
		0.41	end
	EOF
	expect_near got 200000 5
}

run_cases hosts rate_stays_near_what_is_sent rate_stays_at_the_first \
	rate_reaches_the_line_with_a_backlog rate_follows_who_uses_it
