#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# "timelyctl doctor" and a NIC's clock that a program changes all the time. The counters that doctor
# looks at are those of all earlier traffic, hence a test of its own.
# Topology: h1 == h2, test NICs (drivers/net/hwnic); h1 sends by timely over sch_timely.

. "$(dirname "$0")/ctl_lib.sh"
. "$(dirname "$0")/hw_lib.sh"

where=$in_h1

# while_clock_changes EVERY FILE VALUE...: run doctor while h1 sends and, every EVERY ms, a setting of
# its NIC's clock gets the next of these values.
while_clock_changes() {
	every_ms=$1
	file=/sys/class/net/eth0/hwnic/$2
	shift 2
	total_kbps=2000000
	plan_flows 4 "$h2_v4" 4 >"$work/plan"
	at_ms=100
	while [ $at_ms -lt 3900 ]; do
		for value; do
			echo "echo $value >$file" >"$work/set$value"
			printf '%d.%03d run %s\n' $((at_ms / 1000)) $((at_ms % 1000)) \
				"$in_h1 sh $work/set$value" >>"$work/plan"
			at_ms=$((at_ms + every_ms))
		done
	done
	(traffic <"$work/plan") &
	sleep 3
	ctl 4 -j doctor
	wait $! || exit 1
}

# has CHECK SEVERITY: doctor has found this, among other things
has() {
	json "('$1', '$2') in [(one['check'], one['severity']) for one in all['findings']]"
}

hosts() {
	must insmod "$modules/hwnic.ko"
	load_timely
	must insmod "$modules/sch_timely.ko"
	nics_up
	must tc -n h1 qdisc replace dev eth0 root timely
	clock_status 0
}

# Timestamps contradict the mapping of the clock, or are from before the departure.
small_steps() {
	while_clock_changes 20 phc_step_ns 30000 -30000
	has rejected-rtts warning
	has nic-clock-steps warning
}

# Without cross timestamps, the mapping of the clock becomes sure half a second after the last step.
steps_all_the_time() {
	echo 0 >/sys/module/timely/parameters/cross_timestamps
	while_clock_changes 50 phc_step_ns 2000000 -2000000
	has nic-clock warning
}

run_cases hosts small_steps steps_all_the_time remove_all
