#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The last test of each run: the kernel's log has no complaint since the first test, and on a
# kernel with kmemleak no memory has leaked. run.sh sets TIMELY_KLOG_SINCE, a line that it wrote
# to the log before the first test.

. "$(dirname "$0")/lib.sh"

need_tools dmesg zcat
kmemleak=/sys/kernel/debug/kmemleak

no_complaints() {
	klog "${TIMELY_KLOG_SINCE-}" >"$work/log"
	grep -nE -A 40 "$complaints" "$work/log" >"$work/complaints" || return 0
	head -n 100 "$work/complaints" | say_lines
	fail "the kernel's log has complaints in $(grep -cE "$complaints" "$work/complaints") lines"
}

# The checkers of the debug kernel still work. KASAN reports only one error, and without
# CONFIG_KASAN_VMALLOC it reports a false one when a module is loaded at the address of an
# earlier module.
checkers_are_awake() {
	zcat /proc/config.gz >"$work/config"
	grep -q '^CONFIG_KASAN=y' "$work/config" || return 0
	grep -q '^CONFIG_KASAN_VMALLOC=y' "$work/config" ||
		fail "KASAN without CONFIG_KASAN_VMALLOC reports a false error when a module is loaded again"
	# lockdep turns itself off at its first report, and when it runs out of memory.
	grep -q 'debug_locks: *1' /proc/lockdep_stats || fail "lockdep has turned itself off"
}

no_leaks() {
	[ -w $kmemleak ] || return 0
	kmemleak_scan
	cat $kmemleak >"$work/leaks"
	[ -s "$work/leaks" ] || return 0
	say_lines <"$work/leaks"
	fail "leaked: $(grep -c 'unreferenced object' "$work/leaks") objects"
}

run_cases no_complaints checkers_are_awake no_leaks
