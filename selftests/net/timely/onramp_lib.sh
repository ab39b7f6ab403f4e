# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The library of On-Ramp's tests, on top of qdisc_lib.sh: loading of the receiver's module, keys,
# two hosts with several addresses, and Python code that uses onramp_wire.py.

. "$(dirname "$0")/qdisc_lib.sh"

need_tools insmod rmmod ip tc "$modules/timelyctl"

load_onramp() {
	load_qdisc
	must insmod "$modules/timely_acker.ko"
}

# onramp_pair [QUEUES]: as pair_up, with IPv6 and several addresses of h2, all neighbours permanent.
# h2 ACKs each packet at once (quickack): delayed ACKs would lower the rates of TCP.
onramp_pair() {
	pair_up "${1:-1}"
	for end in 1 2; do
		there=02:00:00:00:00:0$((3 - end))
		must ip netns exec h$end sh -c "
			echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
			echo 0 >/proc/sys/net/ipv6/conf/eth0/router_solicitations
			echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6
			ip address add fd07:2::$end/64 dev eth0 nodad
			for far in fd07:2::$((3 - end)) fd07:2::3 fd07:2::4 10.7.2.3 10.7.2.4 10.7.2.5; do
				ip neighbour replace \$far dev eth0 lladdr $there nud permanent
			done"
	done
	must ip -n h2 -batch - <<-END
		address add 10.7.2.3/24 dev eth0
		address add 10.7.2.4/24 dev eth0
		address add 10.7.2.5/24 dev eth0
		address add fd07:2::3/64 dev eth0 nodad
		address add fd07:2::4/64 dev eth0 nodad
		route replace 10.7.2.0/24 dev eth0 src 10.7.2.2 quickack 1
		route replace fd07:2::/64 dev eth0 metric 256 quickack 1
	END
	usable h1 fd07:2::1
	usable h2 fd07:2::4
}

# ctl NAMESPACE ARGUMENT...: timelyctl in a namespace, which must succeed
ctl() {
	ctl_ns=$1
	shift
	must ip netns exec "$ctl_ns" "$modules/timelyctl" "$@"
}

# Both hosts accept OR-ACKs without keys.
without_keys() {
	ctl h1 onramp unauthenticated on
	ctl h2 onramp unauthenticated on
}

# Run the Python lines on standard input, with onramp_wire.py imported.
onramp() {
	{
		echo 'from onramp_wire import *'
		cat
	} >"$work/onramp.plan"
	packets <"$work/onramp.plan"
}

# forgers() yields a name and a Forger for each of UDP and TCP over IPv4 and IPv6: udp4, udp6, tcp4
# and tcp6.
cat >"$work/kinds.py" <<-'END'
	H1V6, H2V6 = "fd07:2::1", "fd07:2::2"
	KINDS = [(name + version, kind, to) for name, kind in (("udp", UdpFlow), ("tcp", TcpFlow))
	         for version, to in (("4", H2), ("6", H2V6))]
	def forgers(**how):
	    for name, kind, to in KINDS:
	        forger = Forger(kind(to=to), **how)
	        yield name, forger
	        forger.close()
END

# Run the Python lines on standard input, with onramp_wire.py and forgers().
every_kind() {
	{
		cat "$work/kinds.py"
		cat
	} >"$work/kinds.plan"
	onramp <"$work/kinds.plan"
}

# new_qdisc QDISC...: a new qdisc on h1. Waits a second first, so that delays measured before have
# expired and pause no flow.
new_qdisc() {
	sleep 1.1
	h1_qdisc "$@"
}
