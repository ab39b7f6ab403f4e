#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs functional tests of the exported series in a guest, by make run_tests and by
# run_kselftest.sh; check.sh calls it:
#
#	guest.sh LINUX BUILD TEST...
#
# LINUX is the patched source, BUILD its build directory with the directories root (installed
# modules), tests (installed tests) and tools (timelyctl).

set -eu

linux=$1
build=$2
shift 2
export INSTALL_MOD_PATH="$build/root" PATH="$build/tools:$PATH"

make -s -C "$linux/tools/testing/selftests" TARGETS=net/timely TEST_PROGS="$*" run_tests
for test; do
	"$build/tests/run_kselftest.sh" -t "net/timely:$test"
done
