#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp while clocks are stepped and slewed. Two connections share a bottleneck of 1 Gb/s whose
# base RTT is above the threshold, and the receiver's clock or the real-time clock of both hosts
# goes wrong. Compared with a run without the fault, no 100 ms may carry less than 80 %, and the
# whole run not less than 95 %. Topology: h1 -- mid -- h2.

. "$(dirname "$0")/onramp_lib.sh"

# ns: offset of the receiver's clock at the start of each run
nominal=1000
windows="2 3 4 5"
# A cap of each connection, and kbit/s that both together reach
capped=
enough=850000

hosts() {
	hosts_up "delay 10us"
	h1_without_tso
	load_onramp
	onramp <<-'END'
		add_key(1, SECRET)
		for ns in "h1", "h2":
		    ctl(ns, "key", "use", "1")
		ctl("h2", "acker", "add", "any")
	END
}

# path BASE_US: a link of 1 Gb/s with this base RTT
path() {
	base_us=$1
	wire_to_h2 "limit 1000 rate 1gbit delay $((base_us / 2))us"
	must tc -n mid qdisc replace dev to1 root netem limit 10000 delay $((base_us / 2))us
}

# fault OWD COMMAND...: two connections for 0.6 s; the command runs after 0.2 s. Of the windows of
# 100 ms from then on, sum and least are the total and the worst goodput, kbit/s. Also sets c_NAME,
# by how much counters of the sender have grown, and shown, the text of a diagnostic message.
fault() {
	ctl h2 acker set test-clock-offset $nominal test-clock-drift 0
	# The minimum filters of the previous run have expired after 11 s.
	sleep 11
	new_qdisc timely split 3000 onramp "$threshold" owd "$1"
	onramp <<-END
		with open("$work/counters", "w", encoding="ascii") as file:
		    json.dump(counters(), file)
	END
	shift
	{
		echo "0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic $capped"
		echo "0	flow b from=h1 to=h2 addr=$h2_v4 cc=cubic $capped"
		echo "0.2	run $*"
		for window in $windows; do
			for flow in a b; do
				echo "0.$window	goodput $flow$window flow=$flow for=0.1"
			done
		done
		echo "0.$((window + 1))1	end"
	} >"$work/plan"
	traffic <"$work/plan"
	sum=0
	least=1000000000
	shown=
	for window in $windows; do
		number_of "a$window"
		one=$value
		number_of "b$window"
		one=$((one + value))
		sum=$((sum + one))
		[ $one -ge $least ] || least=$one
		shown="$shown $((one / 1000))"
	done
	onramp <<-END
		with open("$work/counters", encoding="ascii") as file:
		    before = json.load(file)
		for name in "bad_time", "out_of_step", "clock_steps", "received":
		    result(**{"c_" + name: counters().get(name, 0) - before.get(name, 0)})
		(shown,) = json.loads(tc("-s", "-j", "qdisc", "show", "dev", "eth0"))
		result(pauses=shown["onramp_pauses"], paused_us=shown["onramp_paused_ns"] // 1000)
	END
	shown="$shown Mb/s, $pauses pauses, $paused_us us; of $c_received OR-ACKs"
	shown="$shown bad_time $c_bad_time, out_of_step $c_out_of_step; clock_steps $c_clock_steps"
}

# survives OWD WHAT COMMAND...: a run with a fault, compared with the last "undisturbed OWD". Counts
# bad runs in bad, and in unseen those that no counter shows.
survives() {
	survives_owd=$1
	what=$2
	shift 2
	fault "$survives_owd" "$@"
	say "$survives_owd, $base_us us, $what:$shown"
	bad=$((bad + (sum < usual * 95 / 100) + (least < usual_least * 80 / 100)))
	unseen=$((unseen + (c_bad_time + c_out_of_step + c_clock_steps == 0)))
}

# undisturbed OWD: a run without a fault
undisturbed() {
	bad=0
	unseen=0
	fault "$1" true
	usual=$sum
	usual_least=$least
	say "$1, $base_us us, undisturbed:$shown"
	expect usual -ge $((4 * enough)) "throughput without a fault"
	expect c_bad_time -eq 0
	expect c_out_of_step -eq 0
	expect c_clock_steps -eq 0
}

cat >"$work/step" <<-'END'
	#!/usr/bin/python3
	import sys, time
	clock = time.CLOCK_REALTIME
	time.clock_settime_ns(clock, time.clock_gettime_ns(clock) + int(float(sys.argv[1]) * 1e9))
END
chmod +x "$work/step"

ctl_h2="ip netns exec h2 $modules/timelyctl"

# receiver_steps OWD NS...: steps of the receiver's clock only
receiver_steps() {
	steps_owd=$1
	shift
	undisturbed "$steps_owd"
	for by; do
		survives "$steps_owd" "step of $((by / 1000)) us" \
			"$ctl_h2 acker set test-clock-offset $((nominal + by))"
	done
	expect bad -eq 0 "faults with a loss of throughput"
}

relative_steps() {
	path 120
	threshold=50us
	receiver_steps relative -200000 -1000000 -1000000000 200000 1000000000
	expect unseen -eq 0 "faults that no counter shows"
}

# The one-way delay is 132 us: 120 us of the path, and 12 us to send a frame at 1 Gb/s.
absolute_steps() {
	path 240
	threshold=180us
	receiver_steps absolute -200000 100000 500000 1000000000
}

# other_path OWD BASE_US THRESHOLD STEP...: another path, and steps of about its round trip
other_path() {
	path "$2"
	threshold=$3
	path_owd=$1
	shift 3
	receiver_steps "$path_owd" "$@"
}

short_and_long_paths() {
	other_path relative 10 50us -1000000
	# On a long path CUBIC takes seconds to find the rate, so the connections are capped.
	capped="cap=300000"
	enough=560000
	other_path relative 2000 200us -3000000
	other_path absolute 2000 1100us 900000
}

# CLOCK_REALTIME of both hosts is set, by an administrator or a leap second. Only delays of packets
# in flight are wrong.
real_time_steps() {
	path 240
	for steps_owd in relative absolute; do
		threshold=50us
		[ $steps_owd = relative ] || threshold=180us
		undisturbed $steps_owd
		for by in -1 0.0002; do
			survives $steps_owd "CLOCK_REALTIME of both set by $by s" "$work/step $by"
		done
		expect bad -eq 0 "faults with a loss of throughput"
	done
}

# The receiver's clock is 500 ppm fast, as with chronyd or a smeared leap second.
slews() {
	path 240
	for steps_owd in relative absolute; do
		threshold=50us
		[ $steps_owd = relative ] || threshold=180us
		undisturbed $steps_owd
		survives $steps_owd "slew of 500 ppm" "$ctl_h2 acker set test-clock-drift 500000"
		expect bad -eq 0 "faults with a loss of throughput"
	done
}

unload() {
	hosts_down
	unload_timely
}

run_cases hosts short_and_long_paths relative_steps absolute_steps real_time_steps slews unload
