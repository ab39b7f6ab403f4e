#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Transfers with an MSS of 88 to 8900 bytes, and an MTU that changes during a transfer.
# Topology: h1 -- mid -- h2, 10 Gb/s, MTU 9000.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us" "" 9000
	h1_qdisc fq
	load_timely
}

# arrives_at_rate OPTIONS KBPS: a transfer with these options of traffic.py's flow succeeds and
# reaches KBPS. Sets now_mss.
arrives_at_rate() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=20000000 verify=1 $1
		0	reach fast flow=a rate=$2 within=0.3 every=0.005
		0.01	info now flow=a
	EOF
	expect a_done -eq 1 "$1"
	expect a_same -eq 1 "$1"
	expect fast_us -gt 0 "$1 did not reach $2 kbit/s"
}

mss_of_9000() {
	arrives_at_rate "" 2000000
	expect now_mss -gt 8900
}

mss_of_536() {
	arrives_at_rate "mss=536" 2000000
	expect now_mss -le 536
}

mss_of_88() {
	arrives_at_rate "mss=88" 700000
	expect now_mss -le 88
}

# The MTU of the sender's device falls and rises. TCP uses the new MSS at once.
mtu_of_the_sender_changes() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
		0.03	info big flow=a
		0.03	run ip -n h1 link set eth0 mtu 1500
		0.04	info small flow=a
		0.04	goodput small flow=a for=0.01
		0.04	counters old ns=h1
		0.05	counters new ns=h1
		0.05	run ip -n h1 link set eth0 mtu 9000
		0.06	info again flow=a
		0.06	goodput again flow=a for=0.01
		0.07	stop a
	EOF
	expect big_mss -gt 8900
	expect small_mss -lt 1500
	expect again_mss -gt 8900
	# A pacing segment still has segment_bytes; it now consists of more frames.
	bytes=$(((new_tx_bytes - old_tx_bytes) / (new_tx_packets - old_tx_packets)))
	expect bytes -ge 12000 "per pacing segment, with an MTU of 1500"
	expect bytes -le 16500 "per pacing segment, with an MTU of 1500"
	expect a_done -eq 1
	expect a_same -eq 1
	expect small -ge 2000000 "goodput after the MTU fell"
	expect again -ge 2000000 "goodput after the MTU rose"
}

# The MTU of a router falls. Packets are lost, and ICMP messages tell the sender the new MTU.
mtu_of_the_path_falls() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
		0.02	info big flow=a
		0.02	run ip -n mid link set to2 mtu 1500
		0.08	info small flow=a
		0.08	goodput small flow=a for=0.02
		0.1	stop a
	EOF
	expect big_mss -gt 8900
	expect small_mss -lt 1500
	expect a_done -eq 1
	expect a_same -eq 1
	expect small -ge 1000000 "goodput after the path's MTU fell"
}

run_cases hosts mss_of_9000 mss_of_536 mss_of_88 mtu_of_the_sender_changes \
	mtu_of_the_path_falls
