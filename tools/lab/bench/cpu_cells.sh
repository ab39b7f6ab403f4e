#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Make all runs of one repeat of cpu.sh. cpu.sh starts this script in the guest.
#
#   cpu_cells.sh RAW CPU_BENCH.KO REPEAT "LANES" "FLOWS" "LINKS" TIMELY.KO SCH_TIMELY.KO
#                TCP_TIMELY.KO NDP.KO
#
# A cell is one run of cpu_bench; it appends a line of JSON to RAW. The lanes take turns in each
# combination of link and number of flows; in every second repeat in the reverse order.

set -eu

raw=$1
bench=$2
repeat=$3
lanes=$4
flows=$5
links=$6
shift 6

run=/sys/kernel/debug/cpu_bench/run

set_to() { echo "$2" >"/sys/module/cpu_bench/parameters/$1"; }
sender() { ip netns exec sender "$@"; }

# end NAMESPACE DEVICE ADDRESS: set up one end of the link in its network namespace
end() {
	ip netns add "$1"
	ip link set "$2" netns "$1"
	ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
		net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_rmem="4096 131072 16777216"
	ip -n "$1" address add "$3/24" dev "$2"
	ip -n "$1" link set lo up
	ip -n "$1" link set "$2" up
}

# Set the rate of the link, Gb/s. tcp_timely reads the rate again when a device comes up.
use_link() {
	set_to link_mbps $(($1 * 1000))
	for name in "sender cpu0" "receiver cpu1"; do
		ip -n "${name% *}" link set "${name#* }" down
		ip -n "${name% *}" link set "${name#* }" up
	done
	sleep 0.05
}

# Bytes of sub-segments for a link of $1 Gb/s: the frames of the segments that tcp_timely would
# choose (net/timely/engine/tune.c): what the link sends in 5 us, at most 16 KB.
auto_split() {
	frames=$((5 * $1 * 1000 / 8 / 1538 / 2 * 2))
	[ $frames -le 10 ] || frames=10
	echo $((frames * 1500))
}

# Least rate of a connection of tcp_timely, kbit/s, for a link of $1 Gb/s and $2 connections: the
# connection's share. SO_MAX_PACING_RATE has the same value, so the rule cannot change the rate.
least_kbps() {
	[ "$share" -ne 0 ] || { echo auto; return; }
	echo $(($1 * 10000 * share / $2))
}

# Initial window of NDP's connections for a link of $1 Gb/s and packets of $2 bytes: what the link
# sends in 40 us, which is the base RTT and the waits for interrupts at both ends.
ndp_window() {
	packets=$((40 * $1 * 1000 / 8 / $2 + 1))
	[ $packets -le 256 ] || packets=256
	echo $packets
}

# use_lane CC QDISC SEGMENT SPLIT LINK FLOWS MTU: both ends have the congestion control, the qdisc
# and the MTU.
use_lane() {
	room="limit 1000000 flow_limit 100000"
	split=
	case $4 in
	''|0)	;;
	auto)	split="split $(auto_split "$5")" ;;
	*)	split="split $4" ;;
	esac
	for name in "sender cpu0" "receiver cpu1"; do
		netns=${name% *}
		# shellcheck disable=SC2086 # lists of words
		ip netns exec "$netns" tc qdisc replace dev "${name#* }" root "$2" $room $split
		ip -n "$netns" link set "${name#* }" mtu "$7"
		if [ "$1" = ndp ]; then
			ip netns exec "$netns" sysctl -qw net.ndp.window="$(ndp_window "$5" "$7")"
			continue
		fi
		ip netns exec "$netns" sysctl -qw net.ipv4.tcp_congestion_control="$1"
		[ "$1" != timely ] ||
			ip netns exec "$netns" sysctl -qw net.ipv4.timely.segment_bytes="$3" \
				net.ipv4.timely.min_rate_kbps="$(least_kbps "$5" "$6")"
	done
}

# cell LANE FLOWS LINK
cell() {
	case $1 in
	*@*)	mtu=${1#*@} ;;
	*)	mtu=1500 ;;
	esac
	# shellcheck disable=SC2046 # words
	use_lane $(echo "${1%@*}" | awk -F/ '{ print $1, $2, $3 == "" ? "auto" : $3, $4 == "" ? 0 : $4 }') \
		"$3" "$2" "$mtu"
	case $1 in
	ndp/*)	set_to ndp Y ;;
	*)	set_to ndp N ;;
	esac
	set_to flows "$2"
	# Unlike "ip netns exec", nsenter keeps debugfs.
	nsenter --net=/run/netns/sender cat $run >"$TIMELY_WORK/result" || {
		echo "cpu bench: $1, $2 flows, $3 Gb/s: not a valid run" >&2
		dmesg | grep cpu_bench: | tail -n 1 >&2
		sender tc -s qdisc show dev cpu0 >&2
		return 1
	}
	printf '{"lane": "%s", "flows": %s, "link_gbit": %s, "repeat": %s, "run": %s, "qdisc": %s}' \
		"$1" "$2" "$3" "$repeat" "$(cat "$TIMELY_WORK/result")" \
		"$(sender tc -s -j qdisc show dev cpu0)" | tr -d '\n' >>"$raw"
	echo >>"$raw"
	ip netns exec sender tc qdisc del dev cpu0 root
	ip netns exec receiver tc qdisc del dev cpu1 root
}

# Timers get their high resolution some ticks after the kernel's start.
sleep 0.3
for module; do
	insmod "$module"
done
# Allow congestion controls in network namespaces.
allowed=$(cat /proc/sys/net/ipv4/tcp_available_congestion_control)
sysctl -qw net.ipv4.tcp_allowed_congestion_control="$allowed"
insmod "$bench"
share=${SHARE:-90}
set_to share "$share"
set_to moderation_ns "${MODERATION_NS:-8000}"
set_to chunks "${CHUNKS:-7}"
set_to chunk_kb "${CHUNK_KB:-16384}"
set_to warm_ms "${WARM_MS:-30}"
end sender cpu0 10.0.0.1
end receiver cpu1 10.0.0.2

if [ $((repeat % 2)) -eq 0 ]; then
	lanes=$(echo "$lanes" | tr ' ' '\n' | tac)
fi
for link in $links; do
	use_link "$link"
	for count in $flows; do
		for lane in $lanes; do
			cell "$lane" "$count" "$link"
		done
	done
done
[ -z "${KALLSYMS-}" ] || cat /proc/kallsyms >"$KALLSYMS"
