#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Which lines of net/ do the KUnit suites and the functional tests execute? Build the modules
# with gcov, run the tests in guests, and write build/coverage/report.txt: for each file the
# share of lines, then each block of lines that no test has reached, with the reason that
# tools/coverage.reasons gives.
#
#	coverage.sh [kunit|TEST|@GROUP]...	all groups and KUnit by default
#
# Fails if less than 90 % of the lines are covered, or a block that is not has no reason.

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
here=$top/tools
out=$top/build/coverage

# ---- in a guest: run tests, then take what gcov counted out ----

if [ "${1-}" = --inside ]; then
	results=$2
	shift 2
	rc=0
	"$@" || rc=$?
	# Counts of modules that have been unloaded stay.
	gcov=/sys/kernel/debug/gcov
	[ -d $gcov ] || { echo "coverage: this kernel has no gcov" >&2; exit 1; }
	find $gcov -name '*.gcda' | while read -r file; do
		name=${file#"$gcov"}
		mkdir -p "$results$(dirname "$name")"
		cat "$file" >"$results$name"
	done
	exit $rc
fi

"$here/setup.sh"
rm -rf "$out"
mkdir -p "$out"

# built base|debug: sets $kernel and $modules
built() {
	kernel=$("$here/lab/kernel/build.sh" "$1")
	modules=$("$here/lab/modules.sh" "$kernel" GCOV_PROFILE=y)
	echo "$modules" >>"$out/modules"
}

# part NAME COMMAND...: in a guest of its own.
part() {
	name=$1
	shift
	mkdir "$out/$name"
	TIMELY_GUEST_WRAP="$here/coverage.sh --inside $out/$name" TIMELY_MODULES=$modules \
		"$@" >"$out/$name.log" 2>&1 || {
		echo "coverage: $name failed: build/coverage/$name.log" >&2
		echo "$name" >>"$out/failed"
		return
	}
	echo "coverage: $name done" >&2
}

# Failed allocations are a matter of the debug kernel.
[ $# -gt 0 ] || set -- alloc_faults @nic @tcp @qdisc @onramp @tenant kunit
built debug
debug=$kernel
debug_modules=$modules
built base
running=0
for group; do
	case $group in
	kunit)		part kunit "$top/kunit/run.sh" base & ;;
	alloc_faults)	(modules=$debug_modules; part "$group" "$top/selftests/run-in-guest.sh" "$debug" "$group") & ;;
	*)		part "selftests-${group#@}" "$top/selftests/run-in-guest.sh" "$kernel" "$group" & ;;
	esac
	running=$((running + 1))
	[ $running -lt "$(nproc)" ] || { wait; running=0; }
done
wait
status=0
[ ! -e "$out/failed" ] || status=1
# shellcheck disable=SC2046 # directories of ours hold no spaces
"$here/coverage.py" "$out" "$here/coverage.reasons" $(cat "$out/modules") >"$out/report.txt" || status=1
cat "$out/report.txt"
exit $status
