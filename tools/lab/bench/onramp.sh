#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Measure CPU cycles of On-Ramp in a sender and a receiver of bulk TCP data. See
# README.md.
#
#   onramp.sh [--quick] [--cases LIST] [--repeats N] [--kernel native|base|DIR]
#
# LIST is separated by commas. Cases: one (one flow), polls (one flow, 10 packets for
# each poll), many (100 flows), cold (100 flows, caches emptied). --quick: three repeats
# of two cases, for development. --kernel: native (default, compiled as Debian's kernels
# are), base (the lab's), or a build directory. Raw results and tables go to $OUT (default
# build/bench-onramp).

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
lab=$top/tools/lab
out=${OUT:-$top/build/bench-onramp}
cases=one,polls,many,cold
repeats=9
kernel=native
modules=

say() { echo "onramp bench: $*" >&2; }
die() { say "$*"; exit 1; }
words() { echo "$1" | tr ',' ' '; }

. "$here/large-pages.sh"
. "$here/module.sh"

while [ $# -gt 0 ]; do
	case $1 in
	--quick)	cases=one,many; repeats=3 ;;
	--cases|--repeats|--kernel)
		[ $# -gt 1 ] || die "$1 needs a value"
		eval "${1#--}=\$2"
		shift ;;
	*)	sed -n '4,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift
done

bench_build
make -s -C "$top/tools/tc" || die "cannot build the plugin for tc, see above"
make -s -C "$top/tools/timelyctl" || die "cannot build timelyctl, see above"

build=$top/build/onramp-module/$(basename "$kernel")
mkdir -p "$out"
bench_module onramp_bench "$kernel" "$build"

raw=$out/raw.jsonl
: >"$raw"
"$lab/guest.sh" -k "$kernel" -m 1024M -e TC_LIB_DIR="$top/build/tc" \
	"$here/onramp_cells.sh" "$raw" "$build/onramp_bench.ko" "$repeats" \
	"$(words "$cases")" "$top/build/timelyctl/timelyctl" "$modules/timely.ko" \
	"$modules/sch_timely.ko" "$modules/timely_acker.ko"
"$here/onramp_report.py" "$out"
