#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# RTTs stay right and rates stay up while the clocks of the sender's host are changed: its real-time
# clock, which driver timestamps and base-RTT probes use, and its NIC's clock. The clocks are set
# forward and back by 1 us to an hour and slewed by 500 ppm, and the kernel inserts and deletes leap
# seconds; with base RTTs from 10 us to 2 ms. TIMELY_CLOCKS=full tests more sizes and delays.
# Topology: h1 == h2, a pair of test NICs (hw_lib.sh).

. "$(dirname "$0")/hw_lib.sh"

if [ "${TIMELY_CLOCKS-}" = full ]; then
	delays="5000 100000 1000000"
	sizes="1000 20000 50000 200000 1000000 10000000 100000000 500000000 1000000000
		37000000000 3600000000000"
	nic_sizes="1000 20000 50000 300000 1000000 100000000 1000000000 37000000000 3600000000000"
	all_sizes=$nic_sizes
else
	delays="5000 1000000"
	sizes="1000 200000 1000000 500000000 3600000000000"
	nic_sizes="1000 3600000000000"
	all_sizes=1000000
fi
# ns: the longest random delay with which the host handles received packets
jitter=50000

hosts() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $fixed
	nics_up
	busy h1 eth0 $jitter
	cat >"$work/steps.py" <<-'EOF'
		# steps.py EVERY_SECONDS CLOCK[,CLOCK]... NS...: step the clocks by each, in turn;
		# a clock is real, /dev/ptpN, or a file that takes the step
		import sys, time
		def step(clock, by):
		    if clock.startswith("/sys/"):
		        with open(clock, "w") as file:
		            file.write(str(by))
		        return
		    ptp = None if clock == "real" else open(clock, "r+b", buffering=0)
		    which = ~ptp.fileno() << 3 | 3 if ptp else time.CLOCK_REALTIME
		    time.clock_settime_ns(which, time.clock_gettime_ns(which) + by)
		for by in map(int, sys.argv[3:]):
		    time.sleep(float(sys.argv[1]))
		    for clock in sys.argv[2].split(","):
		        step(clock, by)
	EOF
	cat >"$work/adjtimex.py" <<-'EOF'
		# adjtimex.py frequency PPM: slew the clocks
		# adjtimex.py leap insert|delete: step the clock to one or two seconds before the
		# end of a day, where the kernel inserts or deletes a second
		# adjtimex.py leap none: no leap second; the kernel uses this after a second
		import ctypes, struct, sys, time
		ADJ_FREQUENCY, ADJ_STATUS, STA_INS, STA_DEL = 2, 16, 16, 32
		libc = ctypes.CDLL(None, use_errno=True)
		def adjust(modes, freq=0, status=0):
		    # struct timex, on 64 bits
		    timex = ctypes.create_string_buffer(struct.pack("I4xqqqqi4x", modes, 0, freq, 0, 0, status), 208)
		    if libc.adjtimex(timex) < 0:
		        sys.exit(f"adjtimex: errno {ctypes.get_errno()}")
		if sys.argv[1] == "frequency":
		    adjust(ADJ_FREQUENCY, freq=int(sys.argv[2]) << 16)
		elif sys.argv[2] == "none":
		    adjust(ADJ_STATUS, status=0)
		else:
		    insert = sys.argv[2] == "insert"
		    day = 86400 * 10**9
		    end = (time.clock_gettime_ns(time.CLOCK_REALTIME) // day + 2) * day
		    # The kernel checks the flag at the start of each second, so it must be set a
		    # second before the end of the day.
		    time.clock_settime_ns(time.CLOCK_REALTIME, end - (1050 if insert else 2050) * 10**6)
		    adjust(ADJ_STATUS, status=STA_INS if insert else STA_DEL)
	EOF
}

# as_usual all|none: reset the settings of h1's NIC
as_usual() {
	timestamps h1 eth0 "$1"
	busy h1 eth0 $jitter
}

# delay NS: the delay of each direction; the base RTT is twice as long
delay() {
	knob h1 eth0 delay_ns "$1"
	knob h2 eth0 delay_ns "$1"
}

# count NAME: set $count to a counter of timelyctl rtt
count() {
	must "$timelyctl" -j rtt
	count=$("$python" -I -c '
import json, sys
print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/must" "$1") || fail "no counter $1"
}

# both_ways SIZE...: steps forward and back, then back and forward
both_ways() {
	signed=
	for size; do
		signed="$signed $size -$size -$size $size"
	done
	echo "$signed"
}

# stepping EVERY CLOCK NS...: create a script that starts steps.py in the background
stepping() {
	echo "ip netns exec h1 $python -I $work/steps.py $* >$work/stepped 2>&1 &" >"$work/stepping"
}

# while_stepping EVERY SECONDS CLOCK NS...: step the clock every EVERY seconds while connections
# run, then "judge"
while_stepping() {
	every=$1
	seconds=$2
	clock=$3
	shift 3
	stepping "$every" "$clock" "$@"
	watch_nics h1 eth0
	{
		plan_flows "$seconds"
		echo "0.1 run sh $work/stepping"
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	[ ! -s "$work/stepped" ] || fail "$(cat "$work/stepped")"
	# ACKs after the end of the flows have no timestamps.
	until=$("$python" -I -c "print(int($seconds * 1000000 - 1000))")
	judge until_us="$until"
	expect unjoined -eq 0 "$*"
}

# expect_software WHY...: RTTs end when the driver or TCP received the ACK, never earlier.
expect_software() {
	expect software_min -ge -$exact "$*"
	expect software_max -le $((jitter + 2000)) "$*"
	[ -z "${tcp_min-}" ] || expect tcp_min -ge -$exact "$*"
	[ -z "${tcp_max-}" ] || expect tcp_max -le $((jitter + 2000)) "$*"
	expect hardware -eq 0 "$*"
}

the_real_clock_is_set() {
	as_usual none
	truth_types=R
	total_kbps=1000000
	for delay in $delays; do
		delay "$delay"
		for size in $sizes; do
			count real_set
			before=$count
			# shellcheck disable=SC2046 # several
			while_stepping 0.02 0.2 real $(both_ways "$size")
			say "base RTT 2 x $delay ns, by $size ns: $driver_later RTTs by driver timestamps, $tcp_later without"
			expect_software "base RTT 2 x $delay ns, by $size ns"
			# After the clock was set back by less than a second, driver timestamps are
			# not used for as long.
			expect driver_later -ge $((measured * (size >= 10000000 && size < 1000000000 ? 50 : 90) / 100))
			expect measured -ge 100
			count real_set
			count=$((count - before))
			expect count -eq 4 "by $size ns"
		done
	done
}

# A small step every 10 ms: driver timestamps are used again as soon as they are certain.
the_real_clock_is_set_often() {
	as_usual none
	truth_types=R
	total_kbps=1000000
	delay 5000
	ticks=
	tick=0
	while [ $tick -lt 20 ]; do
		ticks="$ticks 1000"
		tick=$((tick + 1))
	done
	for sign in "" -; do
		# shellcheck disable=SC2046 # several
		while_stepping 0.01 0.35 real $(echo "$ticks" | sed "s/1000/${sign}1000/g")
		expect_software "${sign}1 us each 10 ms"
		expect driver_later -ge $((measured * 98 / 100)) "${sign}1 us each 10 ms"
	done
}

leap_seconds() {
	as_usual none
	truth_types=R
	total_kbps=1000000
	for leap in insert delete; do
		count real_set
		before=$count
		watch_nics h1 eth0
		{
			plan_flows 2.4
			echo "0.05 run $python -I $work/adjtimex.py leap $leap"
		} >"$work/plan"
		traffic <"$work/plan"
		expect_flows_done
		judge until_us=2399000
		expect_software "$leap"
		expect driver_later -ge $((measured * 95 / 100)) "$leap"
		must "$python" -I "$work/adjtimex.py" leap none
		sleep 1.1
		# The clock was set twice: by adjtimex.py, and by the kernel's leap second.
		count real_set
		count=$((count - before))
		expect count -eq 2 "$leap"
	done
}

slewing() {
	count real_set
	before=$count
	truth_types=R
	total_kbps=
	for filter in none all; do
		as_usual $filter
		for ppm in 500 -500; do
			must "$python" -I "$work/adjtimex.py" frequency $ppm
			watch_nics h1 eth0
			flows 0.25
			judge after_us=150000 until_us=249000
			if [ $filter = none ]; then
				expect_software "$ppm ppm"
				expect driver_later -ge $((measured * 98 / 100)) "$ppm ppm"
			else
				expect_hardware "$ppm ppm"
			fi
		done
		must "$python" -I "$work/adjtimex.py" frequency 0
	done
	unset total_kbps
	count real_set
	expect count -eq "$before" "slewing was counted as setting the clock"
}

# The smallest and largest steps of the NIC's clock; hw_rtt tests steps in between.
the_nics_clock_is_stepped() {
	as_usual all
	truth_types=R
	for delay in $delays; do
		delay "$delay"
		for size in $nic_sizes; do
			while_stepping 0.15 0.7 /sys/class/net/eth0/hwnic/phc_step_ns "$size" "-$size" "$size"
			say "base RTT 2 x $delay ns, by $size ns: $error_wrong of $hardware RTTs off by more than 1 us, at most $error_max ns"
			expect hardware -ge 200
			# The limits of hw_rtt
			expect error_max -le $((size < 50001 ? size + almost : 10000)) "by $size ns"
			[ "$size" -le 50000 ] || expect error_wrong -le $((hardware / 20)) "by $size ns"
			[ -z "${software_min-}" ] || expect software_min -ge -$exact "by $size ns"
		done
	done
}

# ptp_of NAMESPACE: set $ptp to the PTP device of eth0
ptp_of() {
	ptp=$(in_ns "$1" sh -c 'ls /sys/class/net/eth0/device/ptp')
	[ -c "/dev/$ptp" ] || fail "no clock /dev/$ptp"
	ptp=/dev/$ptp
}

# As time synchronization does: the PTP clocks of two hosts and the real-time clock are set at the
# same time, while both hosts send and their modules read the PTP clocks.
the_clocks_of_all_hosts_are_set() {
	cross=1
	# shellcheck disable=SC2086 # several arguments
	reload_hw $fixed
	must tc -n h2 qdisc replace dev eth0 root timely
	as_usual all
	timestamps h2 eth0 all
	busy h2 eth0 $jitter -30000
	ptp_of h1
	clocks=real,$ptp
	ptp_of h2
	clocks=$clocks,$ptp
	truth_types=R
	total_kbps=2200000
	all_wrong=0
	all_hardware=0
	for delay in $delays; do
		delay "$delay"
		for size in $all_sizes; do
			stepping 0.15 "$clocks" "$size" "-$size" "$size"
			watch_nics h1 eth0 h2 eth0
			{
				plan_flows 0.7
				plan_flows 0.7 10.7.2.1 | sed 's/from=h1 to=h2/from=h2 to=h1/; s/ f\([0-9]\)/ g\1/'
				echo "0.1 run sh $work/stepping"
			} >"$work/plan"
			traffic <"$work/plan"
			expect_flows_done
			expect g1_done -eq 1
			[ ! -s "$work/stepped" ] || fail "$(cat "$work/stepped")"
			judge until_us=699000
			say "base RTT 2 x $delay ns, by $size ns: $error_wrong of $hardware RTTs off by more than 1 us, at most $error_max ns"
			expect unjoined -eq 0 "by $size ns"
			expect hardware -ge 200
			# A step within the host's random delay is found when the PTP clock is read
			# next.
			expect error_max -le $((size < 50001 ? size + almost : 10000)) "by $size ns"
			if [ "$size" -gt 50000 ]; then
				all_wrong=$((all_wrong + error_wrong))
				all_hardware=$((all_hardware + hardware))
			fi
			[ -z "${software_min-}" ] || expect software_min -ge -$exact "by $size ns"
		done
	done
	# How long a new mapping is off by more than 1 us depends on the random delays: usually less
	# than 2 ms of the 150 ms between steps, rarely 10 ms. So only the sum is limited.
	expect all_wrong -le $((all_hardware / 20))
	must tc -n h2 qdisc del dev eth0 root
	timestamps h2 eth0 none
	busy h2 eth0 0 0
	cross=0
	unset total_kbps
}

# ---- rates ----

# rates_under CLOCK NS...: with default parameters, which probe the base RTT, the clock is stepped
# every 50 ms
rates_under() {
	clock=$1
	shift
	stepping 0.05 "$clock" "$@"
	{
		for flow in 1 2 3 4; do
			echo "0 flow f$flow from=h1 to=h2 addr=$h2_v4 cc=timely"
			echo "2.3 stop f$flow"
			echo "1.0 goodput before$flow flow=f$flow for=0.4"
			for window in 0 1 2 3 4 5 6 7 8; do
				echo "1.$window goodput w${window}_$flow flow=f$flow for=0.1"
			done
		done
		echo "1.4 run sh $work/stepping"
	} >"$work/plan"
	traffic <"$work/plan"
	[ ! -s "$work/stepped" ] || fail "$(cat "$work/stepped")"
	say "$clock: $before1 $before2 $before3 $before4 kbit/s before"
	sum=$((before1 + before2 + before3 + before4))
	for flow in 1 2 3 4; do
		# On long paths rates are not equal yet and change by themselves. The reference is
		# the lowest rate of the flow in 100 ms before the steps, but at most its fair
		# share.
		rate=$((sum / 4))
		for window in 0 1 2 3; do
			eval "had=\$w${window}_$flow"
			[ "$had" -ge "$rate" ] || rate=$had
		done
		# Rates may fall below 80 % in one window by themselves, not in two in a row, and
		# never by half.
		low=0
		for window in 4 5 6 7 8; do
			eval "got=\$w${window}_$flow"
			low=$((got < rate * 80 / 100 ? low + 1 : 0))
			expect low -le 1 "$clock $*: 200 ms of flow $flow below 80 %, w$window $got of $rate"
			expect got -ge $((rate / 2)) "$clock $*: 100 ms of flow $flow"
		done
	done
	# The link has 10 Gb/s.
	expect sum -ge 9000000 "kbit/s before the first step"
}

# Until a step is noticed, and while a clock mapping is learnt, RTTs end with other timestamps.
# Rates must not fall.
rates_stay_up() {
	tc -n h1 qdisc del dev eth0 root
	unload_timely
	must insmod "$modules/timely.ko" cross_timestamps=0
	must insmod "$modules/tcp_timely.ko"
	must insmod "$modules/sch_timely.ko"
	must tc -n h1 qdisc replace dev eth0 root timely
	knob h1 eth0 jitter_ns 0
	for delay in $delays; do
		delay "$delay"
		timestamps h1 eth0 none
		rates_under real 1000 -1000 1000000 -1000000 500000000 -500000000 \
			3600000000000 -3600000000000
		timestamps h1 eth0 all
		rates_under /sys/class/net/eth0/hwnic/phc_step_ns 1000 -1000 -1000000 1000000 \
			500000000 -500000000 3600000000000 -3600000000000
	done
}

run_cases hosts the_real_clock_is_set the_real_clock_is_set_often leap_seconds slewing \
	the_nics_clock_is_stepped the_clocks_of_all_hosts_are_set rates_stay_up remove_all
