#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs functional tests of the exported series in a guest, by make run_tests and by
# run_kselftest.sh, and the unit tests as a module: kunit.py loads no modules, and some unit tests
# are in the module only. check.sh calls it:
#
#	guest.sh LINUX BUILD TEST...
#
# LINUX is the patched source, BUILD its build directory with the directories root (installed
# modules), tests (installed tests) and tools (timelyctl). The results of the unit tests are written
# to the file units in BUILD.

set -eu

linux=$1
build=$2
shift 2
export INSTALL_MOD_PATH="$build/root" PATH="$build/tools:$PATH"

modules=$(mktemp -d)
for module in timely sch_trim timely_kunit; do
	ln -s "$(modinfo -b "$INSTALL_MOD_PATH" -n $module)" "$modules/$module.ko"
done
"$(dirname "$0")/../../kunit/run.sh" --inside "$modules" >"$build/units"
rm -r "$modules"

# The runner writes the output of tests to /dev/stdout, which devtmpfs does not have. It opens it again, so it must not
# be a file, where one part would overwrite another.
[ -e /dev/stdout ] || ln -s /proc/self/fd/1 /dev/stdout
{
	make -s -C "$linux/tools/testing/selftests" TARGETS=net/timely TEST_PROGS="$*" run_tests
	for test; do
		"$build/tests/run_kselftest.sh" -t "net/timely:$test"
	done
} | cat
