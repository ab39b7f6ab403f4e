#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Measure CPU cycles for a packet in the qdisc: sch_timely beside fq and pfifo,
# for 1 to 1 000 000 flows. See README.md.
#
#   bench.sh [--quick] [--profile] [--flows LIST] [--qdiscs LIST] [--modes LIST]
#            [--repeats N] [--kernel native|base|DIR]
#
# LIST is separated by commas. Qdiscs: pfifo, fq, fq-tuned, timely; red, trim, up to
# 1000 flows and unpaced. Modes: paced,
# unpaced, shuffled. --quick: two repeats, up to 10 000 flows, for development.
# --profile: no tables, but a profile by perf. --kernel: native (default, compiled as
# Debian's kernels are), base (the lab's), or a kernel's directory. Raw results, tables
# and the plot go to $OUT (default build/bench).

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
lab=$top/tools/lab
out=${OUT:-$top/build/bench}
flows=1,100,1000,10000,100000,1000000
qdiscs=pfifo,fq,fq-tuned,timely
modes=paced,unpaced,shuffled
repeats=5
profile=
kernel=native
modules=

say() { echo "bench: $*" >&2; }
die() { say "$*"; exit 1; }
words() { echo "$1" | tr ',' ' '; }

. "$here/large-pages.sh"
. "$here/module.sh"

while [ $# -gt 0 ]; do
	case $1 in
	--quick)	flows=1,100,1000,10000; repeats=2 ;;
	--profile)	profile=1; repeats=1 ;;
	--flows|--qdiscs|--modes|--repeats|--kernel)
		[ $# -gt 1 ] || die "$1 needs a value"
		eval "${1#--}=\$2"
		shift ;;
	*)	sed -n '4,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift
done

bench_build

build=$top/build/bench-module/$(basename "$kernel")
mkdir -p "$out"
bench_module qdisc_bench "$kernel" "$build"

ours=
case ,$qdiscs, in
*,timely,*)	ours="$modules/timely.ko $modules/sch_timely.ko" ;;
esac
case ,$qdiscs, in
*,trim,*)	ours="$ours $modules/sch_trim.ko" ;;
esac
[ -z "$ours" ] ||
	make -s -C "$top/tools/tc" || die "cannot build the plugins for tc, see above"

# Memory of a guest with $1 flows, MB: 512 for the kernel, and 4 KB for the socket, the packet and the
# qdisc's objects of each flow.
mem_mb() { echo $((512 + $1 * 4 / 1000)); }
available_mb() { awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo; }

run_cells() {
	# shellcheck disable=SC2086 # a list of modules
	"$lab/guest.sh" -k "$kernel" -m "$(mem_mb "$1")M" -e TC_LIB_DIR="$top/build/tc" \
		"$here/cells.sh" "$raw" "$build/qdisc_bench.ko" "$1" "$repeats" \
		"$(words "$qdiscs")" "$(words "$modes")" $ours
}

# One guest for each qdisc and mode, so that all samples of a profile belong to one of them.
profile_cells() {
	command -v perf >/dev/null || die "perf not found; install the package linux-perf"
	for qdisc in $(words "$qdiscs"); do
		for mode in $(words "$modes"); do
			say "$1 flows, $qdisc, $mode"
			# shellcheck disable=SC2086
			perf record -q -e cpu-clock -F 4999 -o "$out/perf.data" -- \
				"$lab/guest.sh" -k "$kernel" -m "$(mem_mb "$1")M" \
				-e TC_LIB_DIR="$top/build/tc" -e KALLSYMS="$out/kallsyms" \
				-e PACKETS=4000000 \
				"$here/cells.sh" "$raw" "$build/qdisc_bench.ko" "$1" 1 \
				"$qdisc" "$mode" $ours
			perf script -i "$out/perf.data" -F ip,comm 2>/dev/null |
				"$here/report.py" --profile "$raw" "$out/kallsyms"
		done
	done
}

raw=$out/raw.jsonl
: >"$raw"
for count in $(words "$flows"); do
	if [ "$(available_mb)" -lt $(($(mem_mb "$count") + 512)) ]; then
		say "$count flows need $(mem_mb "$count") MB: left out"
		printf '{"skipped": %s, "why": "%s MB of memory available, %s needed"}\n' \
			"$count" "$(available_mb)" "$(mem_mb "$count")" >>"$raw"
	elif [ -n "$profile" ]; then
		profile_cells "$count"
	else
		say "$count flows"
		run_cells "$count"
	fi
done
[ -n "$profile" ] || "$here/report.py" "$out"
