#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs the tdc cases of the qdiscs "timely" (timely.json) and "trim" (trim.json) in a User Mode
# Linux guest. tdc.py is the kernel's own test driver for tc.
#
#	run.sh [base|debug|DIRECTORY [ID...]]
#
# Without IDs all cases run. The guest runs the lab's base or debug kernel, or the kernel built
# in DIRECTORY. Environment: TIMELY_MODULES, a directory of modules, built from this checkout
# by default; TIMELY_TC, the tc program, /sbin/tc by default; TIMELY_TDC, the directory of tdc.py.
# selftests/upstream/run.sh runs "--inside" with another file of cases, CASES.
#
# Prints TAP. The exit status is 0 only if all cases have passed; a case that tdc skips counts as
# failed. Needs Debian's python3-pyroute2.
#
# The script runs twice: outside() on the host starts the guest, where "--inside" runs inside().

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cases_files=${CASES:-$here/timely.json $here/trim.json}

bail() {
	echo "Bail out! $*"
	exit 1
}

# ---- outside ----

outside() {
	kernel=${1:-base}
	[ $# -eq 0 ] || shift
	modules=${TIMELY_MODULES:-$("$top/tools/lab/modules.sh" "$kernel")}
	# tdc is part of the kernel's source.
	tdc=${TIMELY_TDC:-$("$top/tools/lab/uml/build.sh" source)/tools/testing/selftests/tc-testing}
	[ -e "$tdc/tdc.py" ] || bail "no tdc.py in $tdc"
	for module in sch_timely sch_trim; do
		[ -n "$(find "$modules" -name $module.ko)" ] || bail "no $module.ko in $modules"
	done
	plugin=$(mktemp -d)
	trap 'rm -rf "$plugin"' EXIT
	trap 'exit 130' INT TERM HUP
	make -s -C "$top/tools/tc" OUT="$plugin" >&2 || bail "the plugin does not build"
	"$top/tools/lab/guest.sh" -k "$kernel" -e "TC_LIB_DIR=$plugin" -e "TC=${TIMELY_TC:-/sbin/tc}" \
		"$here/run.sh" --inside "$tdc" "$modules" "$@"
}

# ---- inside ----

# tdc has to be started in its own directory and writes there, so a copy is used. tdc passes
# only the environment variables of ENVIR on to the commands of a case.
prepare() {
	rm -rf "$TIMELY_WORK/tdc"
	cp -r "$1" "$TIMELY_WORK/tdc"
	cd "$TIMELY_WORK/tdc"
	cat >tdc_config_local.py <<-EOF
	EXTRA_NAMES = {'TC': '$TC', 'TIMEOUT': 60}
	ENVIR = {'PATH': '$PATH', 'TC_LIB_DIR': '$TC_LIB_DIR', 'LC_ALL': 'C'}
	EOF
}

load() {
	for module in timely sch_timely sch_trim; do
		file=$(find "$1" -name $module.ko)
		[ -z "$file" ] || [ -d /sys/module/$module ] || insmod "$file" || bail "$module.ko cannot be loaded"
	done
	[ -d /sys/module/sch_timely ] || bail "sch_timely is not loaded"
	[ -d /sys/module/sch_trim ] || bail "sch_trim is not loaded"
}

# tdc reports skipped cases as "ok", also all cases after a failed setup or teardown. Turn these
# into "not ok", and all other output into TAP diagnostics.
as_tap() {
	awk '
		/^1\.\.[0-9]+$/ { next }
		/^ok .* # skipped - / { sub(/ # skipped - /, ", skipped: "); print "not " $0; next }
		/^(not )?ok / { print; next }
		NF { print "# " $0 }' "$1"
}

# Prints the number of cases to run: the number of distinct IDs, or of all cases without IDs.
expected() {
	# shellcheck disable=SC2086 # a list of files
	/usr/bin/python3 -c '
import json, sys
files = int(sys.argv[1])
ids = [case["id"] for name in sys.argv[2:2 + files] for case in json.load(open(name))]
named = sys.argv[2 + files:]
unknown = set(named) - set(ids)
if unknown:
    sys.exit("no such case: " + " ".join(sorted(unknown)))
print(len(set(named)) or len(ids))' "$(echo $cases_files | wc -w)" $cases_files "$@"
}

# The modules can be unloaded soon after the last device with the qdiscs is gone.
unload() {
	tries=100
	for module in sch_timely sch_trim; do
		until rmmod $module 2>/dev/null; do
			tries=$((tries - 1))
			[ $tries -gt 0 ] || return 1
			sleep 0.1
		done
	done
}

inside() {
	tdc=$1
	modules=$2
	shift 2
	/usr/bin/python3 -c 'import pyroute2' || bail "no python3-pyroute2: install it"
	cases=$(expected "$@") || bail "$cases_files: no such cases"
	load "$modules"
	prepare "$tdc"
	echo "TAP version 13"
	echo "1..$((cases + 1))"
	# shellcheck disable=SC2086 # a list of files
	/usr/bin/python3 tdc.py -f $cases_files ${1:+-e "$@"} --format tap --outfile result \
		>log 2>&1 || :
	[ -s result ] || { sed 's/^/# /' log; bail "tdc wrote no results"; }
	as_tap result >tap
	cat tap
	if unload; then echo "ok $((cases + 1)) - sch_timely and sch_trim can be unloaded"
	else echo "not ok $((cases + 1)) - sch_timely and sch_trim can be unloaded"; fi | tee -a tap
	passed=$(grep -c '^ok ' tap) || :
	echo "# $passed passed, $((cases + 1 - passed)) failed"
	[ "$passed" -eq $((cases + 1)) ]
}

if [ "${1:-}" = --inside ]; then
	shift
	inside "$@"
else
	outside "$@"
fi
