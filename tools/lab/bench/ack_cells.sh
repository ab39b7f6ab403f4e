#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Make all runs of ack.sh. ack.sh starts this script in the guest.
#
#   ack_cells.sh RAW ACK_BENCH.KO REPEATS LANES "CASES" [MODULE]...
#
# One run measures all lanes in one case, and appends a line of JSON to RAW. The
# qdisc of ack0 is fq, that of ack1 is sch_timely.

set -eu

raw=$1
bench=$2
repeats=$3
lanes=$4
cases=$5
shift 5

run=/sys/kernel/debug/ack_bench/run

set_to() { echo "$2" >"/sys/module/ack_bench/parameters/$1"; }

# Set the module parameters of a case.
use_case() {
	# A segment of 16 KB every 13 us: each lane has 10 Gb/s.
	set_to flows 1
	set_to gap_ns 13000
	set_to depth 8
	set_to segment_acks 1
	set_to evict_kb 0
	set_to parts 0
	set_to acks "${ACKS:-50000}"
	case $1 in
	many*|cold*)	set_to flows 1000 ;;
	esac
	case $1 in
	cold*)	set_to evict_kb 4096; set_to acks 5000 ;;
	esac
	case $1 in
	*half)	set_to segment_acks 2 ;;
	*parts)	set_to parts 1 ;;
	esac
}

one_run() {
	use_case "$1"
	cat $run >"$TIMELY_WORK/result" || {
		echo "ack bench: $1: not a valid run" >&2
		dmesg | grep ack_bench: | tail -n 1 >&2
		return 1
	}
	printf '{"case": "%s", "repeat": %s, "run": %s}\n' "$1" "$2" \
		"$(cat "$TIMELY_WORK/result")" >>"$raw"
}

sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv4.tcp_no_metrics_save=1
# Keep the congestion window of idle connections: the bench module decides what is in flight.
sysctl -qw net.ipv4.tcp_slow_start_after_idle=0
# Timers get their high resolution some ticks after the kernel's start.
sleep 0.3
for module; do
	insmod "$module"
done
insmod "$bench"
# All segments have 16 KB. By default timely's pacing segments grow with the rate.
sysctl -qw net.ipv4.timely.segment_bytes=16384
room="limit 100000 flow_limit 1000"
# shellcheck disable=SC2086 # a list of words
{
	tc qdisc replace dev ack0 root fq $room
	case $lanes in
	*/?/1*)	tc qdisc replace dev ack1 root timely $room ;;
	esac
}
ip addr add 10.64.0.1/10 dev ack0
ip addr add 10.128.0.1/10 dev ack1
ip link set ack0 up
ip link set ack1 up
set_to lanes "$lanes"

for repeat in $(seq "$repeats"); do
	for case in $cases; do
		one_run "$case" "$repeat"
	done
done
[ -z "${KALLSYMS-}" ] || cat /proc/kallsyms >"$KALLSYMS"
