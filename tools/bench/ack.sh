#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What an ACK costs, natively timed: timely, with and without hardware stamps,
# beside reno, cubic, dctcp and bbr.
#
#   ack.sh [--quick] [--profile] [--lanes LIST] [--cases LIST] [--repeats N]
#          [--modules DIR] [--kernel native|base|DIR]
#
# Lanes are CC[/STAMPS[/DEV]], see ack_bench.c. Cases: one, many, cold, each
# followed by nothing, -half (two ACKs for a segment) or -parts (hooks and
# tcp_probe timed as well, which makes the whole dearer). --quick is for
# development. --profile samples the guest with perf and shows where the time
# goes, instead of a table. The kernel is one compiled as Debian's are (kernel.sh),
# or that of a directory, or base: the lab's own. --modules measures modules built
# elsewhere. Raw results and reports go to $OUT, or build/ack.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
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

while [ $# -gt 0 ]; do
	case $1 in
	--quick)	cases=one,many; repeats=2 ;;
	--profile)	profile=1; repeats=1 ;;
	--lanes|--cases|--repeats|--modules|--kernel)
		[ $# -gt 1 ] || die "$1 wants a value"
		eval "${1#--}=\$2"
		shift ;;
	*)	sed -n '4,17s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
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
[ -n "$modules" ] || modules=$("$lab/modules.sh" "$kernel") || die "no modules"
make -s -C "$top/tools/tc" || die "tc's plugin does not build"

build=$top/build/ack-module/$(basename "$kernel")
mkdir -p "$build" "$out"
for file in Kbuild native.h ack_bench.c; do
	cmp -s "$here/$file" "$build/$file" || cp "$here/$file" "$build/$file"
done
make -C "$kernel" ARCH=um M="$build" TIMELY="$top" modules >"$build/build.log" 2>&1 || {
	tail -n 20 "$build/build.log" >&2
	die "ack_bench does not build"
}

raw=$out/raw.jsonl
: >"$raw"

# ack_run LANES CASES [COMMAND...]: the guest, under the command if there is one.
ack_run() {
	run_lanes=$1
	run_cases=$2
	shift 2
	"$@" "$lab/guest.sh" -k "$kernel" -m 1024M -e TC_LIB_DIR="$top/build/tc" \
		-e KALLSYMS="${profile:+$out/kallsyms}" -e ACKS="${ACKS-}" \
		"$here/ack_cells.sh" "$raw" "$build/ack_bench.ko" "$repeats" \
		"$run_lanes" "$(words "$run_cases")" \
		"$modules/timely.ko" "$modules/tcp_timely.ko" \
		"$modules/net/sched/sch_timely.ko"
}

if [ -z "$profile" ]; then
	ack_run "$lanes" "$cases"
	"$here/ack_report.py" "$out"
	exit
fi

# One guest for each lane and case, so that samples belong to it alone.
command -v perf >/dev/null || die "no perf: install linux-perf"
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
