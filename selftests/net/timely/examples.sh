#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The files of packaging/examples, applied: the sysctls, the commands of the systemd unit, the script of
# NetworkManager, the files of ifupdown (with busybox's ifup) and of systemd-networkd; these two also on a kernel
# without the modules.
# Topology: a multi-queue veth in h1.
#
# packaging/examples/test.sh checks the files with the programs that read them.

. "$(dirname "$0")/ctl_lib.sh"

need_tools busybox sysctl
examples=$here/../../../packaging/examples
networkd=/lib/systemd/systemd-networkd
# The examples call timelyctl without its directory.
PATH=$modules:$PATH
export PATH

# has_timely NUMBER: NUMBER qdiscs of eth0 are of the kind timely
has_timely() {
	instances=$(tc -n h1 qdisc show dev eth0 | grep -c '^qdisc timely') || :
	expect instances -eq "$1"
}

# has_route: new connections to 10.1.0.0/16 use timely
has_route() { ip -n h1 route show 10.1.0.0/16 | grep -q 'via 10.0.0.1 dev eth0 .*congctl timely'; }

# has_plain_route: the route is there, without timely
has_plain_route() { ip -n h1 route show 10.1.0.0/16 | grep 'via 10.0.0.1 dev eth0' | grep -qv congctl; }

# qdiscs: print the qdiscs of eth0, without the counter of references
qdiscs() { tc -n h1 qdisc show dev eth0 | sed 's/ refcnt [0-9]*//'; }

device_up() {
	must ip netns add h1
	must ip -n h1 -batch - <<-EOF
		link add name eth0 numtxqueues 4 numrxqueues 4 type veth peer name peer
		link set peer up
	EOF
}

load_modules() {
	must insmod "$modules/timely.ko"
	must insmod "$modules/tcp_timely.ko"
	must insmod "$modules/sch_timely.ko"
}

# At boot the sysctls are set before the network's devices are up.
sysctls() {
	cc=$(sysctl -n net.ipv4.tcp_congestion_control)
	qdisc=$(sysctl -n net.core.default_qdisc)
	must sysctl -p "$examples/sysctl.d/90-timely.conf"
	[ "$(sysctl -n net.ipv4.tcp_congestion_control)" = timely ] || fail "the congestion control was not set"
	must ip link add name nic numtxqueues 2 numrxqueues 2 type ifb
	must ip link set nic up
	kinds=$(tc qdisc show dev nic | awk '{ print $2 }' | sort | xargs)
	must ip link del nic
	must sysctl -w "net.ipv4.tcp_congestion_control=$cc" "net.core.default_qdisc=$qdisc"
	[ "$kinds" = "mq timely timely" ] || fail "the qdiscs are: $kinds"
}

# unit_command UNIT SETTING: print the command of a systemd unit for eth0
unit_command() { sed -n "s/^$2=-\{0,1\}//p" "$examples/$1" | sed 's/%I/eth0/'; }

# unit_runs UNIT SETTING: run this command
unit_runs() {
	# shellcheck disable=SC2046 # words
	must $in_h1 $(unit_command "$@")
}

systemd_unit() {
	must ip -n h1 link set eth0 up
	before=$(qdiscs)
	unit_runs systemd/timely@.service ExecStart
	has_timely 4
	unit_runs systemd/timely@.service ExecStop
	[ "$(qdiscs)" = "$before" ] || fail "the qdiscs of before are not restored"
}

network_manager() {
	before=$(qdiscs)
	must $in_h1 "$examples/NetworkManager/50-timely" eth0 up
	has_timely 4
	must $in_h1 "$examples/NetworkManager/50-timely" peer up
	must $in_h1 "$examples/NetworkManager/50-timely" eth0 down
	[ "$(qdiscs)" = "$before" ] || fail "the qdiscs of before are not restored"
	must ip -n h1 link set eth0 down
}

# busybox_runs COMMAND: run ifup or ifdown for eth0. They need directories in /etc/network.
busybox_runs() {
	must $in_h1 sh -c "
		mount -t tmpfs etc /etc
		for event in pre-up up down post-down; do mkdir -p /etc/network/if-\$event.d; done
		busybox $1 -f -i '$examples/ifupdown/timely' eth0"
}

ifupdown() {
	mkdir -p /run/network
	busybox_runs ifup
	has_timely 4
	has_route || fail "no route with congctl timely"
	busybox_runs ifdown
	has_timely 0
}

# networkd does not wait for udev if /sys is read-only, as in containers.
systemd_networkd() {
	[ -x $networkd ] || fail "no $networkd here: install systemd"
	mkdir -p /run/systemd/network /run/systemd/netif
	cp "$examples/systemd-networkd/10-timely.network" /run/systemd/network
	must $in_h1 sh -c "
		mount -o remount,ro /sys
		SYSTEMD_LOG_TARGET=console timeout 4 $networkd & sleep 3
		wait"
	cp "$work/must" "$work/networkd"
	! grep -e 'Unknown\|Invalid\|ignoring.*10-timely.network' -e 'eth0: Could not' "$work/networkd" ||
		fail "networkd ignores settings, or fails"
	has_plain_route || {
		say_lines <"$work/networkd"
		fail "no route without timely"
	}
}

# Devices and routes come up without timely.
kernel_without_modules() {
	busybox_runs ifup
	has_plain_route || fail "ifup: no route"
	has_timely 0
	busybox_runs ifdown
	systemd_networkd
	# shellcheck disable=SC2046 # words
	refused $in_h1 $(unit_command systemd-networkd/timely-route.service ExecStart)
	has_plain_route || fail "the unit has removed the route"
	must ip -n h1 addr flush dev eth0
	must ip -n h1 link set eth0 down
}

networkd_unit() {
	systemd_networkd
	unit_runs systemd-networkd/timely-route.service ExecStart
	has_route || fail "no route with congctl timely"
	unit_runs systemd-networkd/timely-route.service ExecStop
	has_plain_route || fail "no route without timely"
}

device_down() {
	rm -rf /run/systemd
	must ip netns del h1
}

run_cases device_up kernel_without_modules load_modules sysctls systemd_unit network_manager ifupdown networkd_unit \
	device_down
