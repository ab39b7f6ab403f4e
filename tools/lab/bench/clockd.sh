#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Measure the CPU time and the packets of timely-clockd. See README.md.
#
#   clockd.sh [--quick] [--seconds N] [--repeats N]
#
# --seconds: how long a repeat measures (default 60). --repeats: default 3. --quick: one repeat of
# 5 seconds, for development. Raw results and the table go to $OUT (default build/bench-clockd).

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
out=${OUT:-$top/build/bench-clockd}
seconds=60
repeats=3

say() { echo "clockd bench: $*" >&2; }
die() { say "$*"; exit 1; }

while [ $# -gt 0 ]; do
	case $1 in
	--quick)
		seconds=5
		repeats=1 ;;
	--seconds|--repeats)
		[ $# -gt 1 ] || die "$1 needs a value"
		eval "${1#--}=\$2"
		shift ;;
	*)	sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift
done

build=$top/build/clockd-programs
make -s -C "$top/tools/clockd" OUT="$build" || die "cannot build timely-clockd, see above"
make -s -C "$top/tools/timelyctl" OUT="$build" || die "cannot build timelyctl, see above"
mkdir -p "$out"
"$here/clockd_report.py" "$out" "$build" "$seconds" "$repeats"
