#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs the KUnit suites in a virtual machine with the kernel base or debug, by default base, and
# prints KTAP. TIMELY_MODULES names the directory of the modules, by default those that
# tools/lab/modules.sh builds.
#
#   run.sh [base|debug]
#
# The script calls itself in the virtual machine: run.sh --inside MODULES-DIRECTORY

set -eu

here=$(cd "$(dirname "$0")" && pwd)

if [ "${1-}" != --inside ]; then
	flavour=${1:-base}
	modules=${TIMELY_MODULES:-$("$here/../tools/lab/modules.sh" "$flavour")}
	exec "$here/../tools/lab/guest.sh" -k "$flavour" "$here/run.sh" --inside "$modules"
fi

insmod "$2/timely.ko"
insmod "$2/sch_trim.ko"
insmod "$2/timely_kunit.ko"
set -- /sys/kernel/debug/kunit/timely*
if [ ! -e "$1/results" ]; then
	echo "not ok 1 no suite ran"
	exit 1
fi
echo "KTAP version 1"
echo "1..$#"
for suite; do cat "$suite/results"; done >"$TIMELY_WORK/results"
cat "$TIMELY_WORK/results"
rmmod timely_kunit sch_trim timely
grep -q '^ *ok ' "$TIMELY_WORK/results" && ! grep -q '^ *not ok ' "$TIMELY_WORK/results"
