#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# iperf3 with the congestion control timely, and with UDP, on hosts with the qdisc timely.
# Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/qdisc_lib.sh"

need_tools iperf3

hosts() {
	hosts_up "rate 10gbit delay 10us" "rate 10gbit delay 10us"
	load_qdisc
	must insmod "$modules/tcp_timely.ko"
	h1_qdisc timely
	must tc -n h2 qdisc replace dev eth0 root timely
}

# iperf ADDRESS OPTION...: run iperf3 from h1 to h2. Its report is in $work/must.
iperf() {
	ip netns exec h2 timeout 20 iperf3 -s -1 >"$work/iperf-server" 2>&1 &
	server=$!
	trap 'kill $server 2>/dev/null' EXIT
	sleep 1
	must ip netns exec h1 iperf3 -J -c "$@"
	wait $server || fail "the server failed: $(cat "$work/iperf-server")"
}

# reported EXPRESSION: print a value of the end of the report, named end
reported() {
	"$python" -I -c '
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    end = json.load(file)["end"]
print(eval(sys.argv[2]))' "$work/must" "$1"
}

# throughput ADDRESS OPTION...: 200 MB by timely, at 85 % of the rate of the link or more
throughput() {
	iperf "$@" -C timely -n 200M
	[ "$(reported 'end["sender_tcp_congestion"]')" = timely ] || fail "another congestion control sent"
	mbps=$(reported 'int(end["sum_received"]["bits_per_second"] / 1e6)')
	say "iperf3 -c $*: $mbps Mb/s"
	expect mbps -ge 8500 "full packets carry 94 % data"
}

tcp() {
	throughput $h2_v4
	throughput $h2_v4 -P 8
	throughput $h2_v4 -R
	throughput $h2_v6
}

# iperf3 paces by its own clock, so that the qdisc has nothing to delay or drop.
udp() {
	stats_of before
	had=$before_drops
	iperf $h2_v4 -u -b 200M -n 20M
	kbps=$(reported 'int(end["sum"]["bits_per_second"] / 1e3)')
	lost=$(reported 'end["sum"]["lost_packets"]')
	say "iperf3 -u: $kbps kbit/s, $lost lost"
	expect_near kbps 200000 2
	expect lost -eq 0
	stats_of after
	expect after_drops -eq "$had"
	[ "$after_packets" -gt 10000 ] || fail "the packets went past the qdisc: $after_packets"
}

run_cases hosts tcp udp
