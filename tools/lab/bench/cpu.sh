#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Measure CPU cycles per byte of a sender and a receiver of bulk TCP or NDP data. See README.md.
#
#   cpu.sh [--quick] [--lanes LIST] [--flows LIST] [--links LIST] [--repeats N] [--share PERCENT]
#          [--moderation NS] [--chunks N] [--chunk-kb KB] [--warm MS] [--profile]
#          [--modules DIR] [--kernel native|base|DIR]
#
# LIST is separated by commas. A lane is CC/QDISC[/SEGMENT[/SPLIT]][@MTU], see README.md. Links are in
# Gb/s. --quick: three repeats of four cells, for development. --share: payload of all connections
# together, percent of the link; 0: no limit. --moderation: least time between two interrupts.
# --chunks, --chunk-kb: parts of a run and their size; --warm: virtual time before them. --profile:
# print the functions of each cell with the cycles that they take, in place of tables.
# --modules: a directory with timely.ko, sch_timely.ko, tcp_timely.ko and ndp.ko, in place of a
# build of this tree. --kernel: native (default, compiled as Debian's kernels are), base (the lab's), or a
# build directory. Raw results and tables go to $OUT (default build/bench-cpu).

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
lab=$top/tools/lab
out=${OUT:-$top/build/bench-cpu}
lanes=cubic/fq,bbr/fq,dctcp/fq,timely/fq,timely/timely,timely/timely/65536/auto,timely/timely/65536
flows=1,10,100
links=10,25,100
repeats=11
share=90
moderation=8000
chunks=7
chunk_kb=16384
warm=150
profile=
modules=
kernel=native

say() { echo "cpu bench: $*" >&2; }
die() { say "$*"; exit 1; }
words() { echo "$1" | tr ',' ' '; }

. "$here/large-pages.sh"
. "$here/module.sh"

while [ $# -gt 0 ]; do
	case $1 in
	--quick)	flows=1,100; links=10,100; repeats=3 ;;
	--lanes|--flows|--links|--repeats|--share|--moderation|--chunks|--warm|--modules|--kernel)
		[ $# -gt 1 ] || die "$1 needs a value"
		eval "${1#--}=\$2"
		shift ;;
	--profile)	profile=1; repeats=1; chunks=64 ;;
	--chunk-kb)
		[ $# -gt 1 ] || die "$1 needs a value"
		chunk_kb=$2
		shift ;;
	*)	sed -n '4,18s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift
done

bench_build
make -s -C "$top/tools/tc" || die "cannot build the plugin for tc, see above"

build=$top/build/cpu-module/$(basename "$kernel")
mkdir -p "$out"
bench_module cpu_bench "$kernel" "$build"

raw=$out/raw.jsonl
: >"$raw"

# cpu_run REPEAT LANES FLOWS LINKS [COMMAND...]: run the guest, as arguments of COMMAND if given
# (perf record).
cpu_run() {
	run_repeat=$1
	run_lanes=$2
	run_flows=$3
	run_links=$4
	shift 4
	"$@" "$lab/guest.sh" -k "$kernel" -m 1536M -e TC_LIB_DIR="$top/build/tc" -e SHARE="$share" \
		-e MODERATION_NS="$moderation" -e CHUNKS="$chunks" -e CHUNK_KB="$chunk_kb" \
		-e WARM_MS="$warm" -e KALLSYMS="${profile:+$out/kallsyms}" \
		"$here/cpu_cells.sh" "$raw" "$build/cpu_bench.ko" "$run_repeat" \
		"$run_lanes" "$run_flows" "$run_links" "$modules/timely.ko" \
		"$modules/sch_timely.ko" "$modules/tcp_timely.ko" "$modules/ndp.ko"
}

if [ -z "$profile" ]; then
	# A guest for each repeat: raw.jsonl has the complete repeats even if the bench is interrupted.
	for repeat in $(seq "$repeats"); do
		say "repeat $repeat of $repeats"
		cpu_run "$repeat" "$(words "$lanes")" "$(words "$flows")" "$(words "$links")"
	done
	"$here/cpu_report.py" "$out"
	exit
fi

# One guest for each cell, so that all samples of a profile belong to one cell.
command -v perf >/dev/null || die "perf not found; install the package linux-perf"
hz=4999
for link in $(words "$links"); do
	for count in $(words "$flows"); do
		for lane in $(words "$lanes"); do
			say "$lane, $count flows, $link Gb/s"
			cpu_run 1 "$lane" "$count" "$link" \
				perf record -q -e cpu-clock -F "$hz" -o "$out/perf.data" --
			perf script -i "$out/perf.data" -F ip,comm 2>/dev/null |
				"$here/cpu_report.py" --profile "$raw" "$out/kallsyms" "$hz" "$warm"
		done
	done
done
