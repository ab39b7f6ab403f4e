#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Make all runs of onramp.sh. onramp.sh starts this script in the guest.
#
#   onramp_cells.sh RAW ONRAMP_BENCH.KO REPEATS "CASES..." TIMELYCTL
#                   TIMELY.KO SCH_TIMELY.KO TIMELY_ACKER.KO
#
# Modes of a run: "off" (without On-Ramp), "idle" (the receiver's module is loaded, but
# answers no one), "on" (sender and receiver use On-Ramp). A run appends a line of JSON
# to RAW. The modes take turns, in this order and in every second repeat in the reverse
# order.

set -eu

raw=$1
bench=$2
repeats=$3
cases=$4
ctl=$5
acker=$8

run=/sys/kernel/debug/onramp_bench/run

set_to() { echo "$2" >"/sys/module/onramp_bench/parameters/$1"; }
sender() { ip netns exec sender "$@"; }
receiver() { ip netns exec receiver "$@"; }

# end NAMESPACE DEVICE ADDRESS: set up one end of the wire in its network namespace
end() {
	ip netns add "$1"
	ip link set "$2" netns "$1"
	ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
		net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_no_metrics_save=1
	ip -n "$1" address add "$3/24" dev "$2"
	ip -n "$1" link set lo up
	ip -n "$1" link set "$2" up
	ip netns exec "$1" "$ctl" key add 1 "$TIMELY_WORK/key" >/dev/null
	ip netns exec "$1" "$ctl" key use 1 >/dev/null
}

use_mode() {
	room="limit 100000 flow_limit 1000"
	onramp=
	[ "$1" != on ] || onramp="onramp 50us owd absolute"
	# shellcheck disable=SC2086 # lists of words
	sender tc qdisc replace dev ramp0 root timely $room $onramp
	[ "$1" = off ] || insmod "$acker"
	[ "$1" != on ] || receiver "$ctl" acker add any
}

leave_mode() {
	[ "$1" = off ] || rmmod timely_acker
	sender tc qdisc del dev ramp0 root
}

# Set the module parameters of a case.
use_case() {
	set_to flows 1
	set_to poll 0
	set_to segments 2000
	set_to evict_kb 0
	case $1 in
	many|cold)	set_to flows 100 ;;
	esac
	case $1 in
	polls)	set_to poll 10 ;;
	cold)	set_to evict_kb 4096; set_to segments 300 ;;
	esac
}

# one_run MODE CASE GRO REPEAT
one_run() {
	use_case "$2"
	set_to gro "$3"
	set_to rounds 0
	[ "$1" != on ] || [ "$2" = cold ] || [ "$2" = polls ] || set_to rounds 100
	use_mode "$1"
	before=$(sender "$ctl" -j onramp)
	sent=$(receiver "$ctl" -j onramp)
	cat $run >"$TIMELY_WORK/result" || {
		echo "onramp bench: $*: not a valid run" >&2
		dmesg | grep onramp_bench: | tail -n 1 >&2
		return 1
	}
	printf '{"mode": "%s", "case": "%s", "repeat": %s, "run": %s, "sender": [%s, %s], "receiver": [%s, %s]}' \
		"$1" "$2" "$4" "$(cat "$TIMELY_WORK/result")" \
		"$before" "$(sender "$ctl" -j onramp)" "$sent" "$(receiver "$ctl" -j onramp)" |
		tr -d '\n' >>"$raw"
	echo >>"$raw"
	leave_mode "$1"
}

# Timers get their high resolution some ticks after the kernel's start.
sleep 0.3
insmod "$6"
insmod "$7"
insmod "$bench"
umask 077
"$ctl" key generate >"$TIMELY_WORK/key"
end sender ramp0 10.0.0.1
end receiver ramp1 10.0.0.2
receiver tc qdisc replace dev ramp1 root timely limit 100000 flow_limit 1000

for repeat in $(seq "$repeats"); do
	modes="off idle on"
	[ $((repeat % 2)) -eq 1 ] || modes="on idle off"
	for case in $cases; do
		for gro in 0 1; do
			for mode in $modes; do
				one_run "$mode" "$case" "$gro" "$repeat"
			done
		done
	done
done
