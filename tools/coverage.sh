#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Report which lines of net/ KUnit and the selftests execute: build the modules with gcov,
# run the tests in guests, and write build/coverage/report.txt. The report has the share
# of executed lines of each file, and each block of lines that no test executes with the reason
# from tools/coverage.reasons.
#
#	coverage.sh [kunit|TEST|@GROUP]...	all groups and KUnit by default
#
# Fails if tests execute less than 90 % of the lines, or if a block that no test executes has
# no reason.

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
here=$top/tools
out=$top/build/coverage

# ---- in a guest: run tests, then copy gcov's counts to the host ----

if [ "${1-}" = --inside ]; then
	results=$2
	shift 2
	rc=0
	"$@" || rc=$?
	# gcov keeps the counts of modules that have been unloaded.
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

# built base|debug: build kernel and modules; sets $kernel and $modules
built() {
	kernel=$("$here/lab/uml/build.sh" "$1")
	modules=$("$here/lab/modules.sh" "$kernel" GCOV_PROFILE=y)
	echo "$modules" >>"$out/modules"
}

# part NAME COMMAND...: run COMMAND, which starts a guest, so that the guest's counts are kept
part() {
	name=$1
	shift
	mkdir "$out/$name"
	TIMELY_GUEST_WRAP="$here/coverage.sh --inside $out/$name" TIMELY_MODULES=$modules \
		"$@" >"$out/$name.log" 2>&1 || {
		echo "coverage: tests of $name failed, log: build/coverage/$name.log" >&2
		echo "$name" >>"$out/failed"
		return
	}
	echo "coverage: $name done" >&2
}

# Only the debug kernel can make allocations fail.
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
# shellcheck disable=SC2046 # the directories' names have no spaces
"$here/coverage.py" "$out" "$here/coverage.reasons" $(cat "$out/modules") >"$out/report.txt" || status=1
cat "$out/report.txt"
exit $status
