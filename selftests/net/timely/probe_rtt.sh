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
#
# With a common time, which a clock daemon gives, probes of hosts whose clocks differ coincide.

. "$(dirname "$0")/qdisc_lib.sh"

timelyctl=$modules/timelyctl
of_h3=/proc/sys/net/ipv4/timely
of_tests=/sys/module/tcp_timely/parameters/test_probe_rtt

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
	cat >"$work/doctor" <<-EOF
		ip netns exec h1 $timelyctl -j doctor >"\$1" 2>&1 &
	EOF
	cat >"$work/look" <<-EOF
		ip netns exec h1 $timelyctl -j rtt >"\$1" 2>&1
		[ -z "\$2" ] || ip netns exec h3 sh -c "echo \$2 >$of_h3/min_rtt_ns"
	EOF
}

# h3_base NS|auto: set the base RTT of h3's connections
h3_base() {
	must ip netns exec h3 sh -c "echo $1 >$of_h3/min_rtt_ns"
}

# counted FILE [NAME]: set $count to a counter in timelyctl's output, by default probes_apart
counted() {
	count=$("$python" -I -c 'import json, sys
print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "${2:-probes_apart}") || fail "no counter ${2:-probes_apart}"
}

common_time() {
	"$python" -I "$here/common_time.py" "$@"
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
		for now in 0.6 0.9 1.2 1.5 1.8 2.1 2.4; do
			echo "$now run sh $work/doctor $work/doctor-apart-$now"
		done
		echo "2.5 run sh $work/look $work/apart auto"
		echo "3.5 run sh $work/look $work/between"
		echo "4.5 run sh $work/doctor $work/doctor-again"
		echo "6.0 run sh $work/look $work/again"
		echo "6.0 end"
	} >"$work/plan"
	traffic <"$work/plan"
	# The state comes and goes while h3 does not probe.
	cat "$work"/doctor-apart-* | grep -q '"check":"probes-apart"' || {
		cat "$work"/doctor-apart-* | say_lines
		fail "doctor does not find probes-apart"
	}
	grep -q '"findings":' "$work/doctor-again" || fail "doctor has no output"
	! grep -q '"check":"probes-apart"' "$work/doctor-again" || fail "doctor finds probes-apart again"
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

# probing VALID_MS BOUND_NS: let flows run for two seconds, with a common time unless VALID_MS is 0, and set
# $probing to the share of flows that are in a probe in the middle of probes by the common time, %
probing() {
	common_time set "$1" "$2" h1 h3 || fail "the common time is refused"
	{
		flows
		echo "2.0 run sh $work/look $work/counters"
		echo "2.0 end"
	} >"$work/plan"
	{
		sleep 0.5
		common_time probing 16 h1 h3 >"$work/probing"
	} &
	sampler=$!
	traffic <"$work/plan"
	wait $sampler || fail "the sampling failed"
	read -r probing <"$work/probing"
}

# h1 and h3 have clocks that differ by a sixteenth of the period of probes, or a multiple, and neither is near
# the common time. The common time is not used if its error may be above 0.25 ms, or if it is too old.
common_clock() {
	echo 4194304 >${of_tests}_offset_ns
	echo 16 >${of_tests}_clocks
	probing 0 0
	say "without a common time $probing % of flows probe at the same time"
	expect probing -le 50
	counted "$work/counters" probes_common
	expect count -eq 0
	counted "$work/counters" probes_unsynced
	expect count -eq 0
	probing 60000 250000
	say "with it $probing %"
	expect probing -ge 75
	counted "$work/counters" probes_common
	common=$count
	expect common -ge 50
	counted "$work/counters" probes_unsynced
	expect count -eq 0
	before=0
	for unusable in "60000 250001" "100 0"; do
		# shellcheck disable=SC2086 # two words
		probing $unusable
		expect probing -le 50
		counted "$work/counters" probes_unsynced
		unsynced=$((count - before))
		before=$count
		expect unsynced -ge 40
	done
	ip netns exec h1 "$timelyctl" doctor >"$work/shown" || true
	grep -q 'base-RTT probes started by the real-time clock' "$work/shown" || fail "doctor: $(cat "$work/shown")"
	bad=$(common_time refusals h1)
	expect bad -eq 0 "wrong requests that were not refused"
	echo 0 >${of_tests}_offset_ns
}

remove_hosts() {
	hosts_down
	must ip netns del h3
}

run_cases hosts together apart_and_together_again common_clock remove_hosts
