#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp on a host without IPv6: the kernel requests no module (IPv6) while it holds RTNL. No
# hosts; the qdisc is on lo. run.sh does not run this test by default, as the kernel must be started
# with ipv6.disable=1:
#
#	TIMELY_KERNEL_ARGUMENTS=ipv6.disable=1 selftests/run-in-guest.sh base onramp_noipv6

. "$(dirname "$0")/qdisc_lib.sh"

asked=$work/asked-for
free=$work/rtnl-was-free

hosts() {
	[ ! -e /proc/net/if_inet6 ] || fail "start the kernel with ipv6.disable=1"
	load_qdisc
	# A replacement of modprobe, which records the requested modules and whether RTNL is free.
	cat >"$work/modprobe" <<-END
		#!/bin/sh
		echo "\$*" >>$asked
		timeout 2 ip link set lo up && echo yes >>$free
		exit 1
	END
	chmod 755 "$work/modprobe"
	read -r modprobe </proc/sys/kernel/modprobe
	echo "$modprobe" >"$work/modprobe-before"
	echo "$work/modprobe" >/proc/sys/kernel/modprobe
}

# Check that the kernel runs this script; otherwise the next case shows nothing.
modules_are_asked_for() {
	"$python" -c 'import socket; socket.socket(44, socket.SOCK_DGRAM)' 2>"$work/no-socket" || :
	grep -q net-pf-44 "$asked" || fail "the kernel runs another modprobe"
	grep -q yes "$free" || fail "RTNL is not free"
	rm -f "$asked" "$free"
}

none_under_rtnl() {
	for owd in absolute relative rtt; do
		must tc qdisc replace dev lo root timely onramp 50us owd $owd
		must tc qdisc change dev lo root timely onramp 100us
		must tc qdisc del dev lo root
	done
	if [ -e "$asked" ]; then
		say_lines <"$asked"
		fail "a module was requested; RTNL free: $(cat "$free" 2>/dev/null || echo no)"
	fi
}

# On-Ramp listens on IPv4.
listens() {
	must tc qdisc replace dev lo root timely onramp 50us
	port=$(printf %04X 20306)
	grep -q ":$port " /proc/net/udp || fail "no socket for OR-ACKs"
	must tc qdisc del dev lo root
	! grep -q ":$port " /proc/net/udp || fail "a socket is left"
}

unload() {
	cat "$work/modprobe-before" >/proc/sys/kernel/modprobe
	unload_timely
}

run_cases hosts modules_are_asked_for none_under_rtnl listens unload
