#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# TIMELY's functional tests, all or those named, as root in a guest that may be
# thrown away:
#
#	run.sh DIRECTORY [TEST|@GROUP]...
#	run.sh DIRECTORY --without TEST...
#
# A group is one of tcp, qdisc, onramp, tenant, nic; core: the tests of several groups
# that load, unload, reconfigure and fuzz, which is what the debug kernel is for.
#
# DIRECTORY holds timely.ko, tcp_timely.ko, sch_timely.ko, timely_acker.ko, the test NIC hwnic.ko,
# tc's plugin q_timely.so, timelyctl and netlink_fuzz, as run-in-guest.sh puts them there. KTAP on standard output, then
# "# N passed, N failed"; the exit status is 0 only if all passed. After the
# tests the kernel's log is searched, and its leaks where it looks for any.

set -u

here=$(cd "$(dirname "$0")" && pwd)
TIMELY_MODULES=$(cd "${1:?the directory with timely.ko and tcp_timely.ko}" && pwd) || exit 1
shift
TIMELY_INDENT="    "
: "${TIMELY_WORK:=$(mktemp -d)}"
TIMELY_KLOG_SINCE="timely selftests begin $$"
export TIMELY_MODULES TIMELY_INDENT TIMELY_WORK TIMELY_KLOG_SINCE

tcp="load sysctl unload restricted transfer cap mss loss blackout idle
	app_limited rpc switch many fairness share out_of_step"
qdisc="qdisc_dropin qdisc_pacing qdisc_txtime qdisc_forward qdisc_mq qdisc_segment
	qdisc_ack qdisc_clock qdisc_limits qdisc_unload qdisc_tcp qdisc_churn qdisc_fuzz"
onramp="acker onramp_ctl onramp onramp_clock onramp_forged onramp_host onramp_options onramp_raw onramp_unload
	packet_fuzz"
tenant="tenant_host tenant_fuzz tenant_memory onramp_peers"
nic="hwnic onramp_waits hw_rtt clock_steps hw_paths hw_line hw_links hw_unload timelyctl"
core="load unload sysctl switch qdisc_unload qdisc_churn qdisc_fuzz onramp_unload
	onramp_raw onramp_host tenant_host onramp_peers"
all="$tcp drains $qdisc $onramp $tenant $nic"
# Elsewhere it fails, as it can show nothing.
[ ! -e /sys/kernel/debug/fail_page_alloc/require-start ] || all="$all alloc_faults"

without=
if [ "${1-}" = --without ]; then
	shift
	without=" $* "
	set --
fi
[ $# -gt 0 ] || set -- $all
wanted=
for test; do
	case $test in
	@tcp|@qdisc|@onramp|@tenant|@nic|@core)
		eval "wanted=\"$wanted \$${test#@}\"" ;;
	@*)	echo "Bail out! no group ${test#@}: tcp, qdisc, onramp, tenant, nic or core"
		exit 2 ;;
	*)	wanted="$wanted $test" ;;
	esac
done
set --
for test in $wanted; do
	case $without in
	*" $test "*) ;;
	*)	set -- "$@" "$test" ;;
	esac
done
set -- "$@" kernel_log

echo "KTAP version 1"
echo "1..$#"
for module in timely tcp_timely sch_timely timely_acker; do
	[ -e "$TIMELY_MODULES/$module.ko" ] || {
		echo "Bail out! no $module.ko in $TIMELY_MODULES"
		exit 1
	}
done

echo "$TIMELY_KLOG_SINCE" >/dev/kmsg
kmemleak=/sys/kernel/debug/kmemleak
if [ -w $kmemleak ]; then
	# What leaked before the modules were ever loaded is not theirs.
	echo scan=off >$kmemleak
	sleep 6
	echo scan >$kmemleak
	echo clear >$kmemleak
fi

passed=0
failed=0
number=0
for test in "$@"; do
	number=$((number + 1))
	result=$TIMELY_WORK/$test.result
	rm -f "$result"
	echo "# $test"
	if sh "$here/$test.sh"; then
		word="ok"
	else
		word="not ok"
	fi
	# A file cut short has failed, whatever it has shown.
	cases=1
	bad=1
	[ ! -s "$result" ] || read -r cases bad <"$result"
	[ "$bad" -eq 0 ] || word="not ok"
	echo "$word $number $test"
	passed=$((passed + cases - bad))
	failed=$((failed + bad))
done
echo "# $passed passed, $failed failed"
[ "$failed" -eq 0 ]
