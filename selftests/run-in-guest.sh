#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs TIMELY's functional tests in a User Mode Linux guest, in virtual time:
#
#	run-in-guest.sh base|debug|DIRECTORY [[--without] TEST|@GROUP...]
#
# The guest runs the lab's base or debug kernel, or the kernel built in DIRECTORY. Without names
# all tests run; net/timely/run.sh describes tests, groups and --without.
#
# Environment:
#	TIMELY_MODULES=DIR		modules to test; by default they are built from this checkout
#	TIMELY_VERBOSE=1		show the results of each plan of traffic
#	TIMELY_SEED=N			seed of the guest's random numbers: the same seed gives
#					the same run
#	TIMELY_FUZZ_MESSAGES=N		netlink messages of qdisc_fuzz
#	TIMELY_FUZZ_PACKETS=N		packets of packet_fuzz
#	TIMELY_FUZZ_SEED=N		seed of both fuzzers
#	TIMELY_CLOCKS=full		more cases in clock_steps
#	TIMELY_METRICS=DIR		keep the output of "timelyctl metrics" in the test observe
#	TIMELY_KERNEL_ARGUMENTS=WORDS	added to the kernel's command line
#	TIMELY_GUEST_TIMEOUT=SECONDS	limit of the run in real time, 4500 by default

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

# modules.sh mirrors the directories of the sources. The tests need all files in one directory.
together=$(mktemp -d)
trap 'rm -rf "$together"' EXIT
trap 'exit 130' INT TERM HUP
find "$modules" -name 'timely.ko' -exec cp {} "$together" \;
find "$modules" -name 'tcp_timely.ko' -exec cp {} "$together" \;
find "$modules" -name 'sch_timely.ko' -exec cp {} "$together" \;
find "$modules" -name 'sch_trim.ko' -exec cp {} "$together" \;
find "$modules" -name 'timely_acker.ko' -exec cp {} "$together" \;
find "$modules" -name 'ndp.ko' -exec cp {} "$together" \;
cp "$("$here/../drivers/net/hwnic/build.sh" "$kernel")/hwnic.ko" "$together"
# The guest uses the host's root file system, so these programs are built for the host.
make -s -C "$here/../tools/tc" OUT="$together" >&2
make -s -C "$here/../tools/timelyctl" OUT="$together" >&2
make -s -C "$here/../tools/clockd" OUT="$together" >&2
make -s -C "$here/../tools/ndp" OUT="$together" >&2
make -s -C "$here/net/timely" OUT="$together" >&2
# Without chrony one case of clockd fails.
if chrony=$("$lab/debian/chrony.sh"); then cp "$chrony/chronyd" "$chrony/chronyc" "$together"; fi

# The guest's clocks are virtual. Only the host can measure how much real time a test takes.
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
# On the debug kernel all tests take half an hour, and more on a busy machine.
status=$together/status
{
	rc=0
	# shellcheck disable=SC2086 # a list of words
	"$lab/guest.sh" $arguments -k "$kernel" -t "${TIMELY_GUEST_TIMEOUT:-4500}" -e "TIMELY_VERBOSE=${TIMELY_VERBOSE-}" \
		-e "TIMELY_FUZZ_MESSAGES=${TIMELY_FUZZ_MESSAGES-}" -e "TIMELY_FUZZ_SEED=${TIMELY_FUZZ_SEED-}" \
		-e "TIMELY_FUZZ_PACKETS=${TIMELY_FUZZ_PACKETS-}" -e "TIMELY_CLOCKS=${TIMELY_CLOCKS-}" \
		-e "TIMELY_METRICS=${TIMELY_METRICS-}" \
		"$here/net/timely/run.sh" "$together" "$@" || rc=$?
	echo $rc >"$status"
} | durations
read -r rc <"$status"
exit "$rc"
