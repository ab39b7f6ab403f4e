#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Make all runs of bench.sh for one number of flows. bench.sh starts this script in
# the guest.
#
#   cells.sh RAW QDISC_BENCH.KO FLOWS REPEATS "QDISCS" "MODES" [MODULE]...
#
# A cell is one run of qdisc_bench; it appends a line of JSON to RAW. The qdiscs take
# turns within a repeat, so that other load of the machine affects all alike. All
# qdiscs get the same packets in the same memory.

set -eu

raw=$1
bench=$2
flows=$3
repeats=$4
qdiscs=$5
modes=$6
shift 6

run=/sys/kernel/debug/qdisc_bench/run
parameters=/sys/module/qdisc_bench/parameters

# Give the qdisc room for all packets; other options have their defaults.
add_qdisc() {
	room="limit 4000000 flow_limit 4000000"
	# shellcheck disable=SC2086 # a list of words
	case $1 in
	pfifo)		tc qdisc add dev d0 root pfifo limit 4000000 ;;
	# Below min red neither drops nor marks. 2600 packets of 1500 bytes are less than min.
	red)		tc qdisc add dev d0 root red limit 100000000 min 4000000 max 12000000 avpkt 1500 burst 2670 \
				bandwidth 10gbit ;;
	trim)		tc qdisc add dev d0 root trim limit 1000000 ;;
	fq-tuned)	tc qdisc add dev d0 root fq $room buckets 262144 ;;
	*)		tc qdisc add dev d0 root "$1" $room ;;
	esac
}

# Name of the slab cache for the qdisc's flows.
cache_of() {
	case $1 in
	fq*)	echo fq_flow_cache ;;
	timely)	echo timely_flow ;;
	esac
}

# Bytes in the slab cache of the qdisc's flows; 0 if it has no such cache.
slab_bytes() {
	dir=/sys/kernel/slab/$(cache_of "$1")
	if [ -z "$(cache_of "$1")" ] || [ ! -r "$dir/slabs" ]; then
		echo 0
		return
	fi
	read -r slabs _ <"$dir/slabs"
	read -r order <"$dir/order"
	echo $((slabs * (4096 << order)))
}

# cell QDISC MODE REPEAT
cell() {
	shuffle=0
	pace=$2
	[ "$2" != shuffled ] || { shuffle=1; pace=paced; }
	# These cannot pace: they would dequeue all packets at once.
	case $1 in
	pfifo|red|trim)	pace=unpaced ;;
	esac
	echo "$pace" >$parameters/mode
	echo $shuffle >$parameters/shuffle
	before=$(slab_bytes "$1")
	add_qdisc "$1"
	cat $run >"$TIMELY_WORK/result" || {
		echo "bench: $1, $flows flows, $2: not a valid run" >&2
		dmesg | grep qdisc_bench: | tail -n 1 >&2
		tc -s qdisc show dev d0 >&2
		return 1
	}
	printf '{"qdisc": "%s", "mode": "%s", "repeat": %s, "slab_bytes": %s, "run": %s}\n' \
		"$1" "$2" "$3" $(($(slab_bytes "$1") - before)) "$(cat "$TIMELY_WORK/result")" >>"$raw"
	tc qdisc del dev d0 root
}

sysctl -qw net.ipv6.conf.default.disable_ipv6=1
# Timers get their high resolution some ticks after the kernel's start.
sleep 0.3
for module; do
	insmod "$module"
done
packets=${PACKETS:-$((flows > 200000 ? 2 * flows : 400000))}
insmod "$bench" flows="$flows" packets="$packets"
ip link add d0 type dummy
ip link set d0 up

for repeat in $(seq "$repeats"); do
	for mode in $modes; do
		# qdisc_bench cannot shuffle fewer than 256 flows, which have several packets each.
		[ "$mode" != shuffled ] || [ "$flows" -ge 1000 ] || continue
		for qdisc in $qdiscs; do
			# fq's default number of buckets is enough for fewer flows.
			[ "$qdisc" != fq-tuned ] || [ "$flows" -ge 100000 ] || continue
			cell "$qdisc" "$mode" "$repeat"
		done
	done
done
[ -z "${KALLSYMS-}" ] || cat /proc/kallsyms >"$KALLSYMS"
