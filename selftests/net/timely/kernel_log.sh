#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The last word is the kernel's: nothing of what all the tests did may have made
# it complain, and on a kernel with kmemleak nothing may be leaked. run.sh sets
# TIMELY_KLOG_SINCE, the line of the log with which all began.

. "$(dirname "$0")/lib.sh"

need_tools dmesg zcat
kmemleak=/sys/kernel/debug/kmemleak

no_complaints() {
	klog "${TIMELY_KLOG_SINCE-}" >"$work/log"
	grep -nE -A 40 "$complaints" "$work/log" >"$work/complaints" || return 0
	head -n 100 "$work/complaints" | say_lines
	fail "the kernel has complained: $(grep -cE "$complaints" "$work/complaints") lines"
}

# KASAN reports once: what it says of a second load would be all it ever says.
checkers_are_awake() {
	zcat /proc/config.gz >"$work/config"
	grep -q '^CONFIG_KASAN=y' "$work/config" || return 0
	grep -q '^CONFIG_KASAN_VMALLOC=y' "$work/config" ||
		fail "without CONFIG_KASAN_VMALLOC, KASAN takes a module loaded where another was for an error"
	# It gives up at its first report, and when it runs out of memory.
	grep -q 'debug_locks: *1' /proc/lockdep_stats || fail "lockdep has given up"
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
