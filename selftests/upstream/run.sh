#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run a suite of the kernel's own selftests twice in one User Mode Linux guest: with the
# kernel's module (the peer), and with ours in its place. Compare the results case by case.
#
#	run.sh SUITE
#
#	tdc	the cases of the qdisc fq (tc-testing), with fq and with timely
#
# The tests are those of the newest kernel that the lab has. differences.txt lists the cases whose
# results may differ, and why. Prints TAP; the exit status is 0 only if there are no other
# differences. The results of both runs are in build/upstream/. TIMELY_KERNEL=debug or
# TIMELY_KERNEL=DIRECTORY selects another kernel of the lab than base. Needs Debian's python3-scapy.
#
# The script runs twice: outside() on the host starts the guest, where "--inside" runs inside().

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
lab=$top/tools/lab
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

bail() {
	echo "Bail out! $*"
	exit 1
}

# ---- outside ----

outside() {
	suite=$1
	[ "$suite" = tdc ] || bail "no suite '$suite': tdc"
	kernel=${TIMELY_KERNEL:-base}
	modules=$("$lab/modules.sh" "$kernel") || bail "no modules"
	"$lab/uml/build.sh" source 7.3 || bail "no source of the kernel"
	tests=$(find "$cache" -maxdepth 1 -name 'linux-source-7.3-*' -type d | sort -V | tail -n 1)/tools/testing/selftests
	out=$top/build/upstream/$suite
	rm -rf "$out"
	mkdir -p "$out"
	make -s -C "$top/tools/tc" OUT="$out" >&2 || bail "the plugin of tc does not build"
	"$lab/guest.sh" -k "$kernel" -e "TC_LIB_DIR=$out" -e "TC=/sbin/tc" \
		"$here/run.sh" --inside "$tests" "$modules" "$out" "$@"
}

# ---- inside ----

# run_tdc fq|timely: the cases of fq, in which the name of the qdisc may be replaced.
run_tdc() {
	sed "s/\<fq\>/$1/g" "$tests/tc-testing/tc-tests/qdiscs/fq.json" >"$TIMELY_WORK/cases.json"
	CASES=$TIMELY_WORK/cases.json "$top/selftests/tc-testing/run.sh" --inside "$tests/tc-testing" "$modules"
}

inside() {
	tests=$1
	modules=$2
	out=$3
	suite=$4
	peer=fq
	for module in $peer timely; do
		"run_$suite" "$module" >"$out/$module.tap" 2>"$out/$module.err" || :
	done
	"$here/compare.py" "$suite" "$out/$peer.tap" "$out/timely.tap"
}

[ $# -gt 0 ] || bail "usage: run.sh tdc"
if [ "$1" = --inside ]; then
	shift
	inside "$@"
else
	outside "$@"
fi
