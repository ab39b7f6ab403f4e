#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run a suite of the kernel's own selftests twice in one User Mode Linux guest: with the
# kernel's module (the peer), and with ours in its place. Compare the results case by case.
#
#	run.sh SUITE [CASE-OPTION]...
#
#	tdc		the cases of the qdisc fq (tc-testing), with fq and with timely
#	tls		net/tls: kernel TLS over TCP, with cubic and with timely; options of its program may follow
#	packetdrill	net/packetdrill: TCP packet by packet; options of packetdrill.py may follow
#	mptcp		net/mptcp: Multipath TCP; names of its scripts may follow
#
# Kernel and tests are those of the newest kernel that the lab has, of uml/build.sh selftests.
# TIMELY_KERNEL=base or TIMELY_KERNEL=DIRECTORY selects another kernel of the lab. differences.txt
# lists the cases whose results may differ, and why. Prints TAP; the exit status is 0 only if there
# are no other differences. The results of both runs are in build/upstream/. TIMELY_GUEST_TIMEOUT
# limits the run in real time, to 3600 s by default.
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

# Compile a program of the kernel's tests against the headers of that kernel.
compile() {
	headers=$cache/uapi-${source##*/linux-source-}
	mkdir -p "$headers"
	# Another job may need the headers at the same time.
	(
		flock 9
		[ -e "$headers/done" ] || {
			make -s -C "$source" O="$headers" ARCH=x86_64 headers_install >&2 &&
				touch "$headers/done"
		}
	) 9>"$headers/.lock" || bail "cannot install the kernel's headers in $headers"
	program=$1
	shift
	${CC:-gcc} -O2 -w -D_GNU_SOURCE= -I "$headers/usr/include" -I "$tests" \
		-o "$out/$program" "$@" -lpthread || bail "cannot compile $program"
}

outside() {
	suite=$1
	kernel=${TIMELY_KERNEL:-selftests}
	case $kernel in
	/*)	;;
	*)	kernel=$("$lab/uml/build.sh" "$kernel") || bail "no kernel" ;;
	esac
	source=$("$lab/uml/build.sh" source 7.3) || bail "no source of the kernel"
	modules=$("$lab/modules.sh" "$kernel") || bail "no modules"
	tests=$source/tools/testing/selftests
	out=$top/build/upstream/$suite
	rm -rf "$out"
	mkdir -p "$out"
	case $suite in
	tdc)	make -s -C "$top/tools/tc" OUT="$out" >&2 || bail "the plugin of tc does not build" ;;
	tls)	compile tls "$tests/net/tls.c" ;;
	packetdrill) ;;
	mptcp)	for program in mptcp_connect mptcp_diag mptcp_inq mptcp_sockopt pm_nl_ctl; do
			compile $program "$tests/net/mptcp/$program.c" -I "$source/tools/include"
		done ;;
	*)	bail "no suite '$suite': tdc, tls, packetdrill or mptcp" ;;
	esac
	"$lab/guest.sh" -k "$kernel" -t "${TIMELY_GUEST_TIMEOUT:-3600}" -e "TC_LIB_DIR=$out" -e "TC=/sbin/tc" \
		"$here/run.sh" --inside "$tests" "$modules" "$out" "$@"
}

# ---- inside ----

load() {
	for module in timely tcp_timely sch_timely; do
		insmod "$(find "$modules" -name $module.ko)" || bail "$module.ko cannot be loaded"
	done
}

# Make a congestion control the default of the namespaces to come, and look at one of them.
default_is() {
	echo "$1" >/proc/sys/net/ipv4/tcp_congestion_control
	[ "$(unshare -n cat /proc/sys/net/ipv4/tcp_congestion_control)" = "$1" ] ||
		bail "$1 is not the default of new namespaces"
}

# run_tdc fq|timely: the cases of fq, in which the name of the qdisc may be replaced.
run_tdc() {
	sed "s/\<fq\>/$1/g" "$tests/tc-testing/tc-tests/qdiscs/fq.json" >"$TIMELY_WORK/cases.json"
	CASES=$TIMELY_WORK/cases.json "$top/selftests/tc-testing/run.sh" --inside \
		"$tests/tc-testing" "$modules"
}

# The tests need a /tmp that has unnamed files (O_TMPFILE).
run_tls() {
	cp "$out/tls" /run
	shift
	unshare -m sh -c 'mount -t tmpfs tmp /tmp && exec /run/tls "$@"' tls "$@"
}

# run_packetdrill CC [OPTION]...: the scripts set the default congestion control themselves.
run_packetdrill() {
	cc=$1
	shift
	rm -rf "$TIMELY_WORK/scripts"
	cp -r "$tests/net/packetdrill" "$TIMELY_WORK/scripts"
	sed -i "s,/tmp/,$TIMELY_WORK/,g; s/congestion_control=cubic/congestion_control=$cc/" \
		"$TIMELY_WORK"/scripts/*
	NSTAT_HISTORY=$TIMELY_WORK/nstat "$here/packetdrill.py" "$@" "$TIMELY_WORK"/scripts/*.pkt
}

# run_mptcp CC [SCRIPT]...: without names, the scripts that test whether data arrive.
run_mptcp() {
	shift
	[ $# -gt 0 ] || set -- mptcp_connect mptcp_sockopt
	rm -rf "$TIMELY_WORK/net"
	mkdir "$TIMELY_WORK/net"
	cp -r "$tests/net/lib.sh" "$tests/net/lib" "$tests/net/mptcp" "$TIMELY_WORK/net"
	cp "$out"/mptcp_* "$out/pm_nl_ctl" "$TIMELY_WORK/net/mptcp"
	cd "$TIMELY_WORK/net/mptcp"
	# mptcp_connect sets the mark of its socket after listen(). A SYN that arrives before makes a
	# connection without a mark, whose packets the script drops. So the client starts later.
	sed -i '/^\tmptcp_lib_wait_local_port_listen /a sleep 0.1' mptcp_sockopt.sh
	for script; do
		# Without options mptcp_connect chooses sizes, losses and delays at random.
		options=
		[ "$script" != mptcp_connect ] || options="-d 5 -l 0.1% -r 0 -e gso -f 1000000"
		# shellcheck disable=SC2086 # a list of options
		TMPDIR=$TIMELY_WORK bash "./$script.sh" $options
	done
}

inside() {
	tests=$1
	modules=$2
	out=$3
	suite=$4
	shift 4
	peer=cubic
	if [ "$suite" = tdc ]; then peer=fq; else load; fi
	for module in $peer timely; do
		[ "$suite" = tdc ] || default_is "$module"
		"run_$suite" "$module" "$@" >"$out/$module.tap" 2>"$out/$module.err" || :
	done
	"$here/compare.py" "$suite" "$out/$peer.tap" "$out/timely.tap"
}

[ $# -gt 0 ] || bail "usage: run.sh tdc|tls|packetdrill|mptcp [OPTION]..."
if [ "$1" = --inside ]; then
	shift
	inside "$@"
else
	outside "$@"
fi
