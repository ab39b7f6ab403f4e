# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The library of the tests with hardware timestamps, on top of lib.sh: hosts with test NICs
# (drivers/net/hwnic), and a comparison of the RTTs that tcp_timely has measured with the NICs' log
# of true arrivals and departures.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc ethtool
export TC_LIB_DIR="$modules"
timelyctl=$modules/timelyctl

# ns: largest errors of an ACK's arrival by a hardware timestamp: "exact" for 99 % of the ACKs,
# "almost" for all. Shortly after it was learnt the clock mapping has larger errors.
exact=1000
almost=2000
# Parameters under which RTTs are measured but do not change the rate.
fixed="$steady first_rate_kbps=9000000"
# 1: read the NICs' PTP clocks (cross-timestamps). In virtual time such a reading is exact, so most
# tests do without.
cross=0

# load_hw [NAME=VALUE...]: load all modules, with these parameters of tcp_timely
load_hw() {
	is_loaded hwnic || must insmod "$modules/hwnic.ko"
	must insmod "$modules/timely.ko" cross_timestamps="$cross"
	must insmod "$modules/tcp_timely.ko" preset=testbed "$@"
	must insmod "$modules/sch_timely.ko"
	tracing_up
	echo 65536 >$tracing/buffer_size_kb
}

# reload_hw [NAME=VALUE...]: reload the modules, so that clock mappings are learnt from the start
reload_hw() {
	must tc -n h1 qdisc del dev eth0 root
	unload_timely
	load_hw "$@"
	must tc -n h1 qdisc replace dev eth0 root timely
}

# ---- NICs ----

in_ns() {
	ns=$1
	shift
	ip netns exec "$ns" "$@"
}

# knob NAMESPACE DEVICE NAME VALUE: set a setting of a test NIC, see drivers/net/hwnic/README.md
knob() {
	# shellcheck disable=SC2016 # for the inner shell
	must in_ns "$1" sh -c 'echo "$3" >"/sys/class/net/$1/hwnic/$2"' knob "$2" "$3" "$4"
}

# timestamps NAMESPACE DEVICE all|none|ptp: which received packets get hardware timestamps
timestamps() {
	must in_ns "$1" "$python" -I "$here/hw_timestamps.py" filter "$2" "$3"
}

# cable NAMESPACE1 DEVICE1 NAMESPACE2 DEVICE2: a pair of test NICs, connected with a delay of 5 us
# in each direction
cable() {
	must ip link add hw type hwnic
	must ip -batch - <<-EOF
		link set hw netns $1 name $2
		link set hwp netns $3 name $4
	EOF
	for cable_end in "$1 $2" "$3 $4"; do
		# shellcheck disable=SC2086 # two words
		knob $cable_end delay_ns 5000
		must in_ns "${cable_end% *}" sh -c "
			echo 0 >/proc/sys/net/ipv6/conf/${cable_end#* }/accept_dad"
	done
	# Fewer interrupts of the receiver make the test faster. The sender, which gets the ACKs,
	# keeps one interrupt per packet.
	must in_ns "$3" ethtool -C "$4" rx-usecs 8 rx-frames 0
}

# new_host NAMESPACE
new_host() {
	must ip netns add "$1"
	must in_ns "$1" sh -c '
		echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
		echo "4096 4194304 8388608" >/proc/sys/net/ipv4/tcp_rmem
		echo "4096 262144 8388608" >/proc/sys/net/ipv4/tcp_wmem
		ip link set lo up'
}

# address NAMESPACE DEVICE NUMBER [NET]: set the device up with the address 10.7.NET.NUMBER
address() {
	must ip -n "$1" -batch - <<-EOF
		address add 10.7.${4:-2}.$3/24 dev $2
		address add fd07:${4:-2}::$3/64 dev $2 nodad
		link set $2 up
	EOF
}

# nics_up: two hosts with a pair of test NICs, h1 eth0 == eth0 h2; h1's has hardware timestamps
nics_up() {
	new_host h1
	new_host h2
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	must tc -n h1 qdisc replace dev eth0 root timely
	timestamps h1 eth0 all
	sleep 2
}

# busy NAMESPACE DEVICE [JITTER_NS [DRIFT_PPB]]: the host handles received packets with a random
# delay of up to JITTER_NS, and the NIC's clock drifts
busy() {
	knob "$1" "$2" jitter_ns "${3:-50000}"
	knob "$1" "$2" phc_drift_ppb "${4:-50000}"
}

# Remove all hosts, also those that hosts_down of lib.sh does not know.
nics_down() {
	hosts_down
	for ns in h3 ns1 ns2; do
		[ ! -e /run/netns/$ns ] || must ip netns del $ns
	done
	within_seconds 5 no_nic_left || fail "a NIC outlives its namespace"
}

no_nic_left() {
	set -- /sys/class/net/hw*
	[ ! -e "$1" ]
}

# The last case of each file: everything can be removed.
remove_all() {
	nics_down
	unload_timely
	must rmmod hwnic
}

# ---- measuring ----

# watch_nics NAMESPACE DEVICE [NAMESPACE DEVICE]...: start to record trace events and the logs of
# these NICs. $truth_types, RT by default, selects received (R) and transmitted (T) frames; T fills
# the log quickly.
watch_nics() {
	: >"$work/truths"
	echo 0 >$tracing/tracing_on
	echo >$tracing/trace
	while [ $# -gt 0 ]; do
		in_ns "$1" cat "/sys/class/net/$2/hwnic/truth_dir" >>"$work/truths"
		shift 2
	done
	while read -r dir; do
		echo ${truth_types:-RT} >"$dir/truth_types"
		echo 1000000 >"$dir/truth_enable"
	done <"$work/truths"
	echo 1 >$tracing/events/timely/timely_rtt/enable
	echo 1 >$tracing/tracing_on
}

# judge [OPTION...]: stop recording, and compare trace events and logs. See "judge" in
# hw_timestamps.py for options and for the results, which become variables.
judge() {
	echo 0 >$tracing/tracing_on
	echo 0 >$tracing/events/timely/timely_rtt/enable
	cat $tracing/trace >"$work/trace"
	echo >$tracing/trace
	logs=
	while read -r dir; do
		[ -e "$dir/truth" ] || continue
		logs="$logs $work/truth-$(basename "$dir")"
		cat "$dir/truth" >"$work/truth-$(basename "$dir")"
		read -r lost <"$dir/truth_lost"
		echo 0 >"$dir/truth_enable"
		[ "$lost" -eq 0 ] || fail "the NIC's log was too short: $lost entries lost"
	done <"$work/truths"
	judge_again "$@"
}

# judge_again [OPTION...]: compare the same trace and logs with other options
judge_again() {
	if [ -e "$work/judged" ]; then
		while IFS='=' read -r key _; do
			unset "$key"
		done <"$work/judged"
	fi
	# shellcheck disable=SC2086 # several
	must "$python" -I "$here/hw_timestamps.py" judge "$work/trace" "$@" $logs
	cp "$work/must" "$work/judged"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/judged"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/judged"
}

# expect_truth WHY...: conditions that hold after every "judge"
expect_truth() {
	expect unjoined -eq 0 "RTTs of ACKs that never arrived: $*"
	expect twice -eq 0 "RTTs of segments sent twice: $*"
	expect error_max -le $almost "hardware RTTs: $*"
	[ -z "${software_min-}" ] || expect software_min -ge -$exact "$*"
	[ -z "${early_min-}" ] || expect early_min -ge -$exact "RTTs that start after the departure: $*"
}

# expect_hardware WHY...: nearly all RTTs end with a hardware timestamp, and are right
expect_hardware() {
	expect hardware_later -gt 200 "hardware RTTs: $*"
	rest=$((measured - hardware_later))
	expect rest -le $((measured / 100)) "RTTs without a hardware timestamp: $*"
	expect doubtful_later -le $((measured / 20)) "doubtful timestamps: $*"
	expect error_p99 -le $exact "$*"
	expect_truth "$*"
}

# plan_flows SECONDS [ADDRESS [COUNT [OPTION...]]]: lines of a plan with COUNT connections from h1,
# 32 by default, of 4.4 Gb/s in all, which is an ACK every 13 us. A single connection would hide the
# random delay of received packets, as packets of one flow do not overtake each other.
plan_flows() {
	flows_for=$1
	flows_to=${2:-$h2_v4}
	flows_count=${3:-32}
	[ $# -lt 3 ] || shift
	[ $# -lt 2 ] || shift
	shift
	flow=0
	while [ $flow -lt "$flows_count" ]; do
		echo "0 flow f$flow from=${sender:-h1} to=h2 addr=$flows_to cc=timely cap=$((${total_kbps:-4400000} / flows_count)) $*"
		echo "$flows_for stop f$flow"
		flow=$((flow + 1))
	done
}

# The flows of the plan have ended without errors.
expect_flows_done() {
	flow=0
	while [ $flow -lt "$flows_count" ]; do
		expect f${flow}_done -eq 1
		flow=$((flow + 1))
	done
}

# flows SECONDS [ADDRESS [COUNT [OPTION...]]]: run such connections
flows() {
	plan_flows "$@" >"$work/plan"
	traffic <"$work/plan"
	set -- "$1" "${2:-$h2_v4}" "${3:-32}"
	flows_count=$3
	expect_flows_done
}

# bonds MODE DEVICE...: bond the devices in h1 and h2 as bond0, which gets the addresses
bonds() {
	mode=$1
	shift
	for end in 1 2; do
		must ip -n h$end link add bond0 type bond mode "$mode" miimon 10
		for device; do
			must ip -n h$end link set "$device" master bond0
			must ip -n h$end link set "$device" up
		done
		address h$end bond0 $end
	done
}
