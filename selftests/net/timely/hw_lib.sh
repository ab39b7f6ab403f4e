# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# What the tests of hardware stamps share, beside lib.sh: hosts with test NICs
# (selftests/hwnic), and RTTs as the congestion control measured them beside what
# the NICs know.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc ethtool
export TC_LIB_DIR="$modules"
timelyctl=$modules/timelyctl

# An ACK is found this close to when it arrived, ns, but for one of a hundred: a line
# just learnt has a tail of errors.
exact=1000
almost=2000
# The rate is what it is at first: RTTs are measured, they move nothing.
fixed="$steady first_rate_kbps=9000000"
# Reading of the NICs' PTP clocks: in virtual time a reading is exact.
cross=0

# load_hw [ARGUMENT...]: of tcp_timely
load_hw() {
	is_loaded hwnic || must insmod "$modules/hwnic.ko"
	must insmod "$modules/timely.ko" cross_timestamps="$cross"
	must insmod "$modules/tcp_timely.ko" preset=testbed "$@"
	must insmod "$modules/sch_timely.ko"
	tracing_up
	echo 65536 >$tracing/buffer_size_kb
}

# The clock's line is learnt anew.
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

# knob NAMESPACE DEVICE NAME VALUE
knob() {
	# shellcheck disable=SC2016 # for the inner shell
	must in_ns "$1" sh -c 'echo "$3" >"/sys/class/net/$1/hwnic/$2"' knob "$2" "$3" "$4"
}

# stamps NAMESPACE DEVICE all|none|ptp
stamps() {
	must in_ns "$1" "$python" -I "$here/hw_stamps.py" filter "$2" "$3"
}

# A cable, its two ends, and addresses that nobody has to be asked for.
# cable NAMESPACE1 DEVICE1 NAMESPACE2 DEVICE2
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
	# Many interrupts make it slow; the ACKs' end keeps one for each.
	must in_ns "$3" ethtool -C "$4" rx-usecs 8 rx-frames 0
}

# host NAMESPACE
new_host() {
	must ip netns add "$1"
	must in_ns "$1" sh -c '
		echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
		echo "4096 4194304 8388608" >/proc/sys/net/ipv4/tcp_rmem
		echo "4096 262144 8388608" >/proc/sys/net/ipv4/tcp_wmem
		ip link set lo up'
}

# address NAMESPACE DEVICE NUMBER [NET]: 10.7.NET.NUMBER, and up
address() {
	must ip -n "$1" -batch - <<-EOF
		address add 10.7.${4:-2}.$3/24 dev $2
		address add fd07:${4:-2}::$3/64 dev $2 nodad
		link set $2 up
	EOF
}

# h1 eth0 == eth0 h2
nics_up() {
	new_host h1
	new_host h2
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	must tc -n h1 qdisc replace dev eth0 root timely
	stamps h1 eth0 all
	sleep 2
}

# A busy host, whose NIC has a clock of its own.
# busy NAMESPACE DEVICE [NOISE_NS [DRIFT_PPB]]
busy() {
	knob "$1" "$2" noise_ns "${3:-50000}"
	knob "$1" "$2" phc_drift_ppb "${4:-50000}"
}

# More than lib.sh knows of.
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

# The last case of a file.
all_goes() {
	nics_down
	unload_timely
	must rmmod hwnic
}

# ---- measuring ----

# watch_nics NAMESPACE DEVICE...: from now on; frames sent, T, fill the log
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

# judge [OPTION...]: of hw_stamps.py; sets what it prints as variables
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
		[ "$lost" -eq 0 ] || fail "the NIC's log was too short: $lost records lost"
	done <"$work/truths"
	judge_again "$@"
}

# The same trace and logs.
judge_again() {
	if [ -e "$work/judged" ]; then
		while IFS='=' read -r key _; do
			unset "$key"
		done <"$work/judged"
	fi
	# shellcheck disable=SC2086 # several
	must "$python" -I "$here/hw_stamps.py" judge "$work/trace" "$@" $logs
	cp "$work/must" "$work/judged"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/judged"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/judged"
}

# What must always hold of what was judged, whatever happened.
expect_truth() {
	expect unjoined -eq 0 "RTTs of ACKs that never arrived: $*"
	expect twice -eq 0 "RTTs of segments sent twice: $*"
	expect error_max -le $almost "hardware RTTs: $*"
	[ -z "${software_min-}" ] || expect software_min -ge -$exact "$*"
	[ -z "${early_min-}" ] || expect early_min -ge -$exact "RTTs that begin too late: $*"
}

# Hardware stamps are used, all but the first ones.
expect_hardware() {
	expect hardware_later -gt 200 "hardware RTTs: $*"
	rest=$((measured - hardware_later))
	expect rest -le $((measured / 100)) "RTTs without a hardware stamp: $*"
	expect doubtful_later -le $((measured / 20)) "doubtful stamps: $*"
	expect error_p99 -le $exact "$*"
	expect_truth "$*"
}

# Connections from h1 to h2, 4.4 Gb/s in all, which is an ACK each 13 us: one alone
# would hide what its NIC is late by, as a flow's packets do not overtake each other.
# plan_flows SECONDS [ADDRESS [COUNT [OPTION...]]]
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

# Those of the plan have ended well.
expect_flows_done() {
	flow=0
	while [ $flow -lt "$flows_count" ]; do
		expect f${flow}_done -eq 1
		flow=$((flow + 1))
	done
}

flows() {
	plan_flows "$@" >"$work/plan"
	traffic <"$work/plan"
	set -- "$1" "${2:-$h2_v4}" "${3:-32}"
	flows_count=$3
	expect_flows_done
}

# bonds MODE DEVICE...: they are bond0 in h1 and h2, which has the addresses
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
