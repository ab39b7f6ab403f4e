#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs TIMELY's functional tests, as root in a guest that can be thrown away:
#
#	run.sh DIRECTORY [TEST|@GROUP]...
#	run.sh DIRECTORY --without TEST...
#
# Without names all tests run; --without runs all tests but those named. The groups are tcp,
# qdisc, onramp, ndp, tenant, nic, clock and long. The last two have the tests that take most time. The
# group core has tests of several groups: those that load, unload and reconfigure the modules, where
# the checkers of a debug kernel help most.
#
# DIRECTORY holds the modules timely.ko, tcp_timely.ko, sch_timely.ko, timely_acker.ko, sch_trim.ko
# and ndp.ko, the test NIC hwnic.ko, tc's plugins q_timely.so and q_trim.so, timelyctl,
# timely-clockd, netlink_fuzz, packet_fuzz and many_sockets; run-in-guest.sh puts them there.
#
# Prints KTAP, then "# N passed, N failed". The exit status is 0 only if all cases have passed.
# kernel_log always runs last. It searches the kernel's log for complaints and, on a kernel with
# kmemleak, looks for leaked memory.

set -u

here=$(cd "$(dirname "$0")" && pwd)
TIMELY_MODULES=$(cd "${1:?must be the directory with timely.ko and tcp_timely.ko}" && pwd) || exit 1
shift
TIMELY_INDENT="    "
: "${TIMELY_WORK:=$(mktemp -d)}"
TIMELY_KLOG_SINCE="timely selftests begin $$"
export TIMELY_MODULES TIMELY_INDENT TIMELY_WORK TIMELY_KLOG_SINCE

tcp="load sysctl unload restricted transfer cap mss loss blackout idle
	app_limited ack_wait rpc switch switch_away many fairness share out_of_step flows trial observe trace programs"
qdisc="qdisc_dropin qdisc_pacing qdisc_txtime qdisc_forward qdisc_mq qdisc_segment
	qdisc_ack qdisc_clock qdisc_limits qdisc_unload qdisc_tcp qdisc_churn qdisc_fuzz
	trim trim_fuzz setup examples"
onramp="acker acker_trim onramp_ctl onramp onramp_forged onramp_host onramp_options onramp_offset onramp_raw
	onramp_unload doctor_onramp packet_fuzz"
ndp="ndp ndp_show ndp_trace ndp_loss ndp_memory ndp_path ndp_trim ndp_auth ndp_programs ndp_fuzz"
tenant="tenant_host tenant_fuzz onramp_peers"
nic="hwnic hw_trim doctor onramp_waits hw_paths hw_link_rate hw_links hw_unload"
clock="clock_steps hw_rtt onramp_clock clockd"
long="timelyctl tenant_memory manual"
core="load unload switch flows qdisc_unload trim tenant_host"
all="$tcp probe_rtt $qdisc $onramp $ndp $tenant $nic $clock $long"
# alloc_faults and ndp_faults fail on kernels without CONFIG_FAIL_PAGE_ALLOC, where no allocation can
# be made to fail.
[ ! -e /sys/kernel/debug/fail_page_alloc/require-start ] || all="$all alloc_faults ndp_faults"

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
	@tcp|@qdisc|@onramp|@ndp|@tenant|@nic|@clock|@long|@core)
		eval "wanted=\"$wanted \$${test#@}\"" ;;
	@*)	echo "Bail out! no group ${test#@}: tcp, qdisc, onramp, ndp, tenant, nic, clock, long or core"
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
for module in timely tcp_timely sch_timely sch_trim timely_acker ndp; do
	[ -e "$TIMELY_MODULES/$module.ko" ] || {
		echo "Bail out! no $module.ko in $TIMELY_MODULES"
		exit 1
	}
done

echo "$TIMELY_KLOG_SINCE" >/dev/kmsg
kmemleak=/sys/kernel/debug/kmemleak
if [ -w $kmemleak ]; then
	# Forget leaks from before the modules are loaded.
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
	# A test file that ends early writes no result and counts as one failed case.
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
