#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: all runs of ack.sh.
#
#   ack_cells.sh RAW ACK_BENCH.KO REPEATS LANES "CASES" [MODULE]...
#
# A run is of all lanes together, in one case; each adds a line of JSON to RAW.
# ack0 has fq, ack1 has timely.

set -eu

raw=$1
bench=$2
repeats=$3
lanes=$4
cases=$5
shift 5

run=/sys/kernel/debug/ack_bench/run

set_to() { echo "$2" >"/sys/module/ack_bench/parameters/$1"; }

# A case: flows of each lane, what they send, ACKs for a segment, caches.
use_case() {
	# One flow has 10 Gb/s.
	set_to flows 1
	set_to gap_ns 13000
	set_to depth 8
	set_to pieces 1
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
	*half)	set_to pieces 2 ;;
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
# What is in flight is up to the bench.
sysctl -qw net.ipv4.tcp_slow_start_after_idle=0
# The kernel's timers become exact some ticks after its start.
sleep 0.3
for module; do
	insmod "$module"
done
insmod "$bench"
# And so is how large its segments are: timely's would grow with its rate.
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
