#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What On-Ramp costs a sender and a receiver of bulk TCP data, natively timed.
#
#   onramp.sh [--quick] [--cases LIST] [--repeats N] [--kernel native|base|DIR]
#
# Cases: one (flow), polls (one, 10 packets a poll), many (100), cold (100, caches
# emptied). --quick is for development. The kernel is one compiled as Debian's are
# (kernel.sh), or that of a directory, or base: the lab's own. Raw results and
# reports go to $OUT, or build/onramp-cost.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
lab=$top/tools/lab
out=${OUT:-$top/build/onramp-cost}
cases=one,polls,many,cold
repeats=9
kernel=native

say() { echo "onramp bench: $*" >&2; }
die() { say "$*"; exit 1; }
words() { echo "$1" | tr ',' ' '; }

. "$here/large-pages.sh"

while [ $# -gt 0 ]; do
	case $1 in
	--quick)	cases=one,many; repeats=3 ;;
	--cases|--repeats|--kernel)
		[ $# -gt 1 ] || die "$1 wants a value"
		eval "${1#--}=\$2"
		shift ;;
	*)	sed -n '4,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift
done

# Ours, whoever calls: make passes its variables on.
unset OUT MAKEFLAGS MFLAGS
case $kernel in
/*)	;;
native)	kernel=$("$here/kernel.sh") || die "no kernel" ;;
*)	kernel=$("$lab/kernel/build.sh" "$kernel") || die "no kernel" ;;
esac
# With what the kernel was compiled with.
KCFLAGS=$(cat "$kernel/.timely-kcflags" 2>/dev/null || :)
export KCFLAGS
modules=$("$lab/modules.sh" "$kernel") || die "no modules"
make -s -C "$top/tools/tc" || die "tc's plugin does not build"
make -s -C "$top/tools/timelyctl" || die "timelyctl does not build"

build=$top/build/onramp-module/$(basename "$kernel")
mkdir -p "$build" "$out"
for file in Kbuild native.h onramp_bench.c; do
	cmp -s "$here/$file" "$build/$file" || cp "$here/$file" "$build/$file"
done
make -C "$kernel" ARCH=um M="$build" TIMELY="$top" modules >"$build/build.log" 2>&1 || {
	tail -n 20 "$build/build.log" >&2
	die "onramp_bench does not build"
}

raw=$out/raw.jsonl
: >"$raw"
"$lab/guest.sh" -k "$kernel" -m 1024M -e TC_LIB_DIR="$top/build/tc" \
	"$here/onramp_cells.sh" "$raw" "$build/onramp_bench.ko" "$repeats" \
	"$(words "$cases")" "$top/build/timelyctl/timelyctl" "$modules/timely.ko" \
	"$modules/net/sched/sch_timely.ko" "$modules/timely_acker.ko"
"$here/onramp_report.py" "$out"
