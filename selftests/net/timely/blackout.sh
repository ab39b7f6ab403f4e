#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A second of nothing in the middle of a transfer.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_qdisc fq
	load_timely $gig
}

# comes_back ADDRESS COMMAND-THAT-ENDS-IT COMMAND-THAT-RESUMES-IT
comes_back() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$1 cc=timely verify=1
		0.06	goodput before flow=a for=0.04
		0.11	run $2
		0.2	goodput nothing flow=a for=0.9
		0.2	reach again flow=a rate=before*0.9 within=1 every=0.01 acked=1 last=1
		1.11	run $3
	EOF
	expect before -ge 800000
	expect nothing -eq 0
	expect again_began_us -gt 1110000
	expect again_began_us -le 1170000 "TCP did not try again soon"
	expect again_us -gt 0 "the rate did not come back"
	expect again_us -le 200000 "us after the first ACK"
	expect a_done -eq 1
	expect a_same -eq 1
}

after_all_is_lost() {
	comes_back $h2_v6 \
		"tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us loss 100%" \
		"tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us"
}

after_the_link_was_down() {
	comes_back $h2_v4 "ip -n mid link set to2 down" "ip -n mid link set to2 up"
}

# Only ACKs are lost: data arrives, and nobody hears of it.
after_no_ack_came() {
	comes_back $h2_v4 \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us loss 100%" \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us"
}

# A SYN's timer is TCP's own: its tries are few, and a second apart.
syns_are_tried_as_ever() {
	wire_to_h2 "rate 1gbit delay 10us loss 100%"
	traffic <<-EOF
		0	counters old ns=h1
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=1000000 verify=1
		2.5	counters new ns=h1
		2.5	run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us
	EOF
	tries=$((new_TCPSynRetrans - old_TCPSynRetrans))
	expect tries -ge 1
	expect tries -le 3
	expect a_done -eq 1
	expect a_same -eq 1
}

run_cases hosts after_all_is_lost after_the_link_was_down after_no_ack_came \
	syns_are_tried_as_ever
