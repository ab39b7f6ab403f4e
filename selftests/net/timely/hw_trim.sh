#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The qdisc "trim" at the root of a NIC. Topology: h1 -- h2, a pair of test NICs with 100 Mb/s and
# short rings.

. "$(dirname "$0")/trim_lib.sh"

# A NIC whose ring is full stops the queue, so that trim queues packets as the root qdisc.
at_the_root() {
	must insmod "$modules/sch_trim.ko"
	must ip netns add h1
	must ip netns add h2
	must insmod "$modules/hwnic.ko"
	must ip link add hw type hwnic
	must ip link set hw netns h1 name hw0
	must ip link set hwp netns h2 name hw0
	for number in 1 2; do
		must ip -n h$number address add 10.8.0.$number/24 dev hw0
		must ip -n h$number link set hw0 up
	done
	must ip netns exec h1 ethtool -s hw0 speed 100
	must ip netns exec h1 ethtool -G hw0 tx 2
	must tc -n h1 qdisc replace dev hw0 root trim
	trim_packets <<-EOF
		receiver, sock = reach("10.8.0.2")
		burst(sock)
		got, whole, trimmed = arrivals(receiver, 60)
		q = trim("h1", "hw0")
		result(all=sorted(whole + trimmed) == list(range(60)), trimmed=len(trimmed), counted=q["trim_packets"],
		       left=q["left"])
	EOF
	expect all -eq 1
	expect trimmed -ge 20
	expect counted -eq "$trimmed"
	expect left -eq 0
	must ip -n h1 link del hw0
	hosts_down
	within_seconds 5 rmmod hwnic || fail "hwnic cannot be unloaded"
}

run_cases at_the_root
