#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Base-RTT probes of hosts that do not coincide: the hosts notice, count it (probes_apart) and
# notice when the probes coincide again. Topology, 1 Gb/s, RTT 200 us:
#
#	h1, h3 -- mid -- h2
#
# Instead of a host with a wrong clock, h3 gets its base RTT as a parameter: connections of h3 then
# do not probe at all.

. "$(dirname "$0")/qdisc_lib.sh"

timelyctl=$modules/timelyctl
of_h3=/proc/sys/net/ipv4/timely

hosts() {
	hosts_up "rate 1gbit delay 100us"
	must ip netns add h3
	must ip link add eth0 netns h3 type veth peer name to3 netns mid
	host_up h3 3
	must ip netns exec mid sh -c 'ip address add 10.7.3.1/24 dev to3; ip link set to3 up'
	must insmod "$modules/timely.ko"
	must insmod "$modules/tcp_timely.ko"
	must insmod "$modules/sch_timely.ko"
	for ns in h1 h3; do
		must ip netns exec $ns ethtool -K eth0 tso off gso on
		must tc -n $ns qdisc replace dev eth0 root timely
	done
	tracing_up
	cat >"$work/look" <<-EOF
		ip netns exec h1 $timelyctl -j rtt >"\$1" 2>&1
		[ -z "\$2" ] || ip netns exec h3 sh -c "echo \$2 >$of_h3/min_rtt_ns"
	EOF
}

# h3_base NS|auto: set the base RTT of h3's connections
h3_base() {
	must ip netns exec h3 sh -c "echo $1 >$of_h3/min_rtt_ns"
}

# counted FILE: set $count to the counter probes_apart in timelyctl's output
counted() {
	count=$("$python" -I -c 'import json, sys
print(json.load(open(sys.argv[1]))["probes_apart"])' "$1") || fail "no counter probes_apart"
}

# Trace the path-dependent parameters of connections: "probes_apart=1" where a connection found that
# probes do not coincide.
watch_derived() {
	echo >$tracing/trace
	echo 1 >$tracing/events/timely/timely_computed/enable
}

apart() {
	echo 0 >$tracing/events/timely/timely_computed/enable
	grep -c "timely_computed: .* probes_apart=1" $tracing/trace || true
}

# lines of a plan: two flows of h1 and four of h3
flows() {
	for flow in 1 2; do
		echo "0 flow a$flow from=h1 to=h2 addr=$h2_v4 cc=timely"
	done
	for flow in 1 2 3 4; do
		echo "0 flow b$flow from=h3 to=h2 addr=$h2_v4 cc=timely"
	done
}

together() {
	watch_derived
	{
		flows
		echo "2.5 run sh $work/look $work/then"
		echo "2.5 end"
	} >"$work/plan"
	traffic <"$work/plan"
	derived=$(apart)
	expect derived -eq 0
	counted "$work/then"
	expect count -eq 0
}

apart_and_together_again() {
	h3_base 215000
	watch_derived
	{
		flows
		echo "2.5 run sh $work/look $work/apart auto"
		echo "3.5 run sh $work/look $work/between"
		echo "6.0 run sh $work/look $work/again"
		echo "6.0 end"
	} >"$work/plan"
	traffic <"$work/plan"
	derived=$(apart)
	expect derived -ge 1 "no trace event has probes_apart=1"
	counted "$work/apart"
	expect count -ge 1
	counted "$work/between"
	before=$count
	counted "$work/again"
	expect count -eq "$before" "counted though the probes coincide again"
	last=$(grep "timely_computed: " $tracing/trace | tail -n 1 | sed 's/.*probes_apart=//')
	expect last -eq 0
}

remove_hosts() {
	hosts_down
	must ip netns del h3
}

run_cases hosts together apart_and_together_again remove_hosts
