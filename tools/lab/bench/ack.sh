#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Measure CPU cycles for an ACK: timely, with and without hardware timestamps,
# beside reno, cubic, dctcp and bbr. See README.md.
#
#   ack.sh [--quick] [--profile] [--lanes LIST] [--cases LIST] [--repeats N]
#          [--modules DIR] [--kernel native|base|DIR]
#
# LIST is separated by commas. A lane is CC[/STAMPS[/DEV]], see README.md. Cases:
# one, many, cold, each also with the suffix -half (two ACKs for a segment) or
# -parts (operations of the congestion control and the tracepoint tcp_probe are
# timed too, which adds cycles). --quick: two repeats of two cases, for development.
# --profile: no tables, but a profile by perf. --kernel: native (default, compiled as
# Debian's kernels are), base (the lab's), or a build directory. --modules: measure
# the modules in DIR. Raw results and tables go to $OUT (default build/ack).

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
lab=$top/tools/lab
out=${OUT:-$top/build/ack}
lanes=reno,cubic,dctcp,bbr,timely/1,timely/1/1,timely/2,timely/2/1
cases=one,many,cold,one-half,many-half,one-parts,many-parts
repeats=7
profile=
modules=
kernel=native

say() { echo "ack bench: $*" >&2; }
die() { say "$*"; exit 1; }
words() { echo "$1" | tr ',' ' '; }

. "$here/large-pages.sh"
. "$here/module.sh"

while [ $# -gt 0 ]; do
	case $1 in
	--quick)	cases=one,many; repeats=2 ;;
	--profile)	profile=1; repeats=1 ;;
	--lanes|--cases|--repeats|--modules|--kernel)
		[ $# -gt 1 ] || die "$1 needs a value"
		eval "${1#--}=\$2"
		shift ;;
	*)	sed -n '4,17s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift
done

bench_build
make -s -C "$top/tools/tc" || die "cannot build the plugin for tc, see above"

build=$top/build/ack-module/$(basename "$kernel")
mkdir -p "$out"
bench_module ack_bench "$kernel" "$build"

raw=$out/raw.jsonl
: >"$raw"

# ack_run LANES CASES [COMMAND...]: run the guest, as arguments of COMMAND if given (perf record).
ack_run() {
	run_lanes=$1
	run_cases=$2
	shift 2
	"$@" "$lab/guest.sh" -k "$kernel" -m 1024M -e TC_LIB_DIR="$top/build/tc" \
		-e KALLSYMS="${profile:+$out/kallsyms}" -e ACKS="${ACKS-}" \
		"$here/ack_cells.sh" "$raw" "$build/ack_bench.ko" "$repeats" \
		"$run_lanes" "$(words "$run_cases")" \
		"$modules/timely.ko" "$modules/tcp_timely.ko" \
		"$modules/sch_timely.ko"
}

if [ -z "$profile" ]; then
	ack_run "$lanes" "$cases"
	"$here/ack_report.py" "$out"
	exit
fi

# One guest for each lane and case, so that all samples of a profile belong to one lane and case.
command -v perf >/dev/null || die "perf not found; install the package linux-perf"
ACKS=${ACKS:-1000000}
hz=4999
for lane in $(words "$lanes"); do
	for case in $(words "$cases"); do
		say "$lane, $case"
		ack_run "$lane" "$case" \
			perf record -q -e cpu-clock -F "$hz" -o "$out/perf.data" --
		perf script -i "$out/perf.data" -F ip,comm 2>/dev/null |
			"$here/ack_report.py" --profile "$raw" "$out/kallsyms" "$hz"
	done
done
