#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# TIMELY's functional tests in a User Mode Linux guest, in virtual time:
#
#	run-in-guest.sh base|debug|DIRECTORY [[--without] TEST|@GROUP...]
#
# The kernel is the lab's, or the one built in DIRECTORY; the modules are built
# from this checkout, or are those in $TIMELY_MODULES. All tests, those named, or all others:
# see net/timely/run.sh. TIMELY_VERBOSE=1 shows what each plan has measured; what is random
# repeats, and TIMELY_SEED=2 draws it anew; TIMELY_FUZZ_MESSAGES and TIMELY_FUZZ_SEED are for qdisc_fuzz,
# TIMELY_FUZZ_PACKETS and the seed for packet_fuzz,
# TIMELY_CLOCKS=full for clock_steps; words of TIMELY_KERNEL_ARGUMENTS are added to the kernel's command line.

set -eu

[ $# -gt 0 ] || {
	echo "usage: run-in-guest.sh base|debug|DIRECTORY [[--without] TEST|@GROUP...]" >&2
	exit 2
}
kernel=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
lab=$here/../tools/lab
modules=${TIMELY_MODULES:-$("$lab/modules.sh" "$kernel")}

# modules.sh mirrors the sources' tree; the tests want one directory.
together=$(mktemp -d)
trap 'rm -rf "$together"' EXIT
trap 'exit 130' INT TERM HUP
find "$modules" -name 'timely.ko' -exec cp {} "$together" \;
find "$modules" -name 'tcp_timely.ko' -exec cp {} "$together" \;
find "$modules" -name 'sch_timely.ko' -exec cp {} "$together" \;
find "$modules" -name 'timely_acker.ko' -exec cp {} "$together" \;
cp "$("$here/hwnic/build.sh" "$kernel")/hwnic.ko" "$together"
# tc's plugin and the fuzzer are the host's programs, and the guest's root is it.
make -s -C "$here/../tools/tc" OUT="$together" >&2
make -s -C "$here/../tools/timelyctl" OUT="$together" >&2
make -s -C "$here/net/timely" OUT="$together" >&2

# Clocks in the guest are virtual: what a test takes is seen from outside only.
durations() {
	perl -ne '
		BEGIN { $| = 1; $then = time }
		print;
		next unless /^(?:not )?ok \d+ (\S+)/;
		printf "# %s took %d s\n", $1, time - $then;
		$then = time'
}

arguments=
for word in ${TIMELY_KERNEL_ARGUMENTS-}; do arguments="$arguments -a $word"; done
# On the debug kernel they take half an hour, and more on a busy machine.
status=$together/status
{
	rc=0
	# shellcheck disable=SC2086 # a list of words
	"$lab/guest.sh" $arguments -k "$kernel" -t "${TIMELY_GUEST_TIMEOUT:-4500}" -e "TIMELY_VERBOSE=${TIMELY_VERBOSE-}" \
		-e "TIMELY_FUZZ_MESSAGES=${TIMELY_FUZZ_MESSAGES-}" -e "TIMELY_FUZZ_SEED=${TIMELY_FUZZ_SEED-}" \
		-e "TIMELY_FUZZ_PACKETS=${TIMELY_FUZZ_PACKETS-}" -e "TIMELY_CLOCKS=${TIMELY_CLOCKS-}" \
		"$here/net/timely/run.sh" "$together" "$@" || rc=$?
	echo $rc >"$status"
} | durations
read -r rc <"$status"
exit "$rc"
