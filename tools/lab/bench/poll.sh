#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Measure the CPU time of looking at many connections with timelyctl. See README.md.
#
#   poll.sh [--quick] [--connections N] [--polls N] [--repeats N] [--kernel native|base|DIR]
#
# --connections: how many use timely (default 10000, at most 25000). --polls: how often each command runs in
# a repeat (default 200). --quick: two repeats, for development. --kernel: native (default, compiled
# as Debian's kernels are), base (the lab's), or a build directory. Raw results and the table go to
# $OUT (default build/bench-poll).

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
lab=$top/tools/lab
out=${OUT:-$top/build/bench-poll}
connections=10000
polls=200
repeats=9
kernel=native
modules=

say() { echo "poll bench: $*" >&2; }
die() { say "$*"; exit 1; }

. "$here/large-pages.sh"
. "$here/module.sh"

while [ $# -gt 0 ]; do
	case $1 in
	--quick)	repeats=2 ;;
	--connections|--polls|--repeats|--kernel)
		[ $# -gt 1 ] || die "$1 needs a value"
		eval "${1#--}=\$2"
		shift ;;
	*)	sed -n '4,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift
done

bench_build
build=$top/build/poll-programs
make -s -C "$top/tools/timelyctl" OUT="$build" || die "cannot build timelyctl, see above"
make -s -C "$top/selftests/net/timely" OUT="$build" "$build/many_sockets" ||
	die "cannot build many_sockets, see above"

mkdir -p "$out"
"$here/poll_report.py" "$out" "$lab/guest.sh" -k "$kernel" "$here/poll_cells.sh" \
	"$build" "$modules" "$connections" "$polls" "$repeats"
