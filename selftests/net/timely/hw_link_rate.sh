#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The link rate of connections: the speed that the device's driver reports, also below VLANs, bonds
# and bridges, unless the user has set another one; connections follow changes.
# Topology: h1 == h2, one or two pairs of test NICs.
#
# The rate of connections is fixed at 100 Gb/s, so that only the link rate limits it.

. "$(dirname "$0")/hw_lib.sh"

unbounded=100000000
only_the_link_rate="preset=target_delay $steady damp_ppm=0 first_rate_kbps=$unbounded"

load() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $only_the_link_rate
}

begin() {
	nics_down
	for ns; do new_host "$ns"; done
}

# speed NAMESPACE DEVICE MBPS
speed() {
	must in_ns "$1" ethtool -s "$2" speed "$3"
	# The driver is asked in a work item, a little later.
	sleep 0.05
}

# link NET MBPS: a pair of NICs "ethNET" between h1 and h2; h1's NIC reports this speed
link() {
	cable h1 "eth$1" h2 "eth$1"
	speed h1 "eth$1" "$2"
}

# one_link MBPS: h1 and h2 with one pair of NICs of this speed
one_link() {
	begin h1 h2
	link 2 "$1"
	address h1 eth2 1
	address h2 eth2 2
	sleep 2
}

# runs KEY [ADDRESS]: a plan's line with a connection. It sends only 100 Mb/s, as the guest cannot
# send 100 Gb/s. Base-RTT probes lower the rate for a short time, so tests look at the maximum rate.
runs() {
	echo "0	flow $1 from=h1 to=h2 addr=${2:-$h2_v4} cc=timely rate=100000"
}

# watch_link_rate KEY FLOW SECONDS: a plan's line that reads the rate of the flow at this time
watch_link_rate() {
	echo "$3	watch $1 flow=$2 every=0.0005 for=0.01"
}

# read_link_rate [ADDRESS]: set link_max, kbit/s, to the link rate of a new connection
read_link_rate() {
	{
		runs flow "${1-}"
		watch_link_rate link flow 0.005
		echo "0.02	end"
	} >"$work/plan"
	traffic <"$work/plan"
}

# link_rate_is MBPS TEXT [ADDRESS]: new connections have this link rate
link_rate_is() {
	read_link_rate "${3-}"
	expect link_max -eq $(($1 * 1000)) "$2"
}

# Seconds after the start at which an existing connection must know a change that is made at 0.05 s.
# Without a notification a connection reads the link rate only every eighth of a second.
soon=0.065

# link_rate_becomes MBPS MBPS TEXT COMMAND...: the command changes the link rate of an existing
# connection
link_rate_becomes() {
	was=$1 is=$2 text=$3
	shift 3
	{
		runs flow
		watch_link_rate before flow 0.005
		echo "0.05	run $*"
		watch_link_rate after flow $soon
		echo "0.25	end"
	} >"$work/plan"
	traffic <"$work/plan"
	expect before_max -eq $((was * 1000)) "before: $text"
	expect after_max -eq $((is * 1000)) "$text"
}

drivers_speed_is_used() {
	one_link 1000
	for mbps in 1000 25000 40000 99999; do
		speed h1 eth2 $mbps
		link_rate_is $mbps "IPv4"
		link_rate_is $mbps "IPv6" $h2_v6
	done
	# Above max_rate the link rate does not matter; the start of a message may exceed max_rate.
	speed h1 eth2 400000
	read_link_rate
	expect link_max -ge $unbounded "400 Gb/s"
	expect link_max -lt 400000000
}

# Devices that were up before the module was loaded are known.
known_if_the_module_is_loaded_later() {
	one_link 25000
	unload_timely
	load
	sleep 0.05
	link_rate_is 25000 "loaded later"
}

connections_follow() {
	one_link 25000
	link_rate_becomes 25000 1000 "slower" ip netns exec h1 ethtool -s eth2 speed 1000
	link_rate_is 1000 "new connections"
	# A device that was down is known again.
	{
		echo "link set eth2 down"
		echo "link set eth2 up"
	} >"$work/down-up"
	soon=0.2
	link_rate_becomes 1000 1000 "down and up again" ip -n h1 -batch "$work/down-up"
}

# A faster link raises the limit of an existing connection's rate.
connections_follow_upwards() {
	one_link 1000
	must in_ns h1 sh -c 'echo linux >/proc/sys/net/ipv4/timely/preset'
	must in_ns h2 ethtool -s eth2 speed 10000
	{
		echo "0	flow flow from=h1 to=h2 addr=$h2_v4 cc=timely"
		echo "0.1	watch before flow=flow every=0.0005 for=0.05"
		echo "0.16	run ip netns exec h1 ethtool -s eth2 speed 10000"
		echo "0.4	watch after flow=flow every=0.0005 for=0.05"
		echo "0.46	end"
	} >"$work/plan"
	traffic <"$work/plan"
	expect before_max -le 1000000
	expect before_max -ge 800000 "the connection does not fill the link"
	expect after_max -gt 1500000 "the old link rate still limits the rate"
	expect after_max -le 10000000
}

# A connection that is alone starts with the link rate.
first_rate_is_a_share_of_the_link_rate() {
	one_link 40000
	must in_ns h1 sh -c 'echo linux >/proc/sys/net/ipv4/timely/preset'
	{
		runs flow
		echo "0.0001	info first flow=flow"
		echo "0.01	end"
	} >"$work/plan"
	traffic <"$work/plan"
	expect first_rate -ge $((40000000 * 11 / 16)) "a base-RTT probe takes up to five sixteenths"
	expect first_rate -le 40000000
}

over_a_vlan() {
	begin h1 h2
	link 2 25000
	for end in 1 2; do
		must ip -n h$end link set eth2 up
		must ip -n h$end link add link eth2 name eth2.7 type vlan id 7
		address h$end eth2.7 $end
	done
	sleep 2
	link_rate_becomes 25000 2500 "VLAN" ip netns exec h1 ethtool -s eth2 speed 2500
}

# Packets may leave by any port of a bond or bridge. The fastest one counts; a slower one shows by
# its queue.
over_a_bond() {
	begin h1 h2
	link 2 25000
	link 3 1000
	bonds active-backup eth2 eth3
	sleep 2
	link_rate_is 25000 "bond of two"
	cat >"$work/leave" <<-END
		ip -n h1 link set eth2 nomaster
		ip -n h2 link set bond0 type bond active_slave eth3
	END
	soon=0.15
	link_rate_becomes 25000 1000 "one leaves the bond" sh -e "$work/leave"
	soon=0.065
	# A VLAN on the bond: two devices above the NIC.
	for end in 1 2; do
		must ip -n h$end link add link bond0 name bond0.7 type vlan id 7
		must ip -n h$end address flush dev bond0
		address h$end bond0.7 $end
	done
	sleep 2
	link_rate_becomes 1000 500 "below a VLAN on a bond" ip netns exec h1 ethtool -s eth3 speed 500
}

over_a_bridge() {
	begin h1 h2
	link 2 2500
	link 3 40000
	must ip -n h1 link add br0 type bridge forward_delay 0
	for device in eth2 eth3; do
		must ip -n h1 link set $device master br0
		must ip -n h1 link set $device up
	done
	address h1 br0 1
	address h2 eth2 2
	sleep 2
	link_rate_is 40000 "bridge of two"
	link_rate_becomes 40000 2500 "one leaves the bridge" ip -n h1 link set eth3 nomaster
}

# The speed that a veth reports is made up, so neither a veth nor a bridge of veths has a link rate.
veths_are_not_known() {
	begin h1 h2
	must ip link add eth2 netns h1 type veth peer name eth2 netns h2
	for end in 1 2; do
		address h$end eth2 $end
	done
	sleep 2
	link_rate_is $((unbounded / 1000)) "veth"
	must ip -n h1 link add br0 type bridge forward_delay 0
	must ip -n h1 address flush dev eth2
	must ip -n h1 link set eth2 master br0
	address h1 br0 1
	sleep 2
	link_rate_is $((unbounded / 1000)) "veth in a bridge"
}

users_setting_overrides_the_driver() {
	one_link 10000
	timestamps h1 eth2 all
	sleep 0.1
	set_rate="ip netns exec h1 $timelyctl nic set eth2 link-rate"
	link_rate_becomes 10000 2000 "set" $set_rate 2gbit
	link_rate_is 2000 "new connections"
	speed h1 eth2 1000
	link_rate_is 2000 "the user's value overrides the driver's"
	must $set_rate 40gbit
	link_rate_is 40000 "another value of the user"
	link_rate_becomes 40000 1000 "cleared" $set_rate auto
	link_rate_is 1000 "new connections"
	must $set_rate 2gbit
	must ip -n h1 link add link eth2 name eth2.7 type vlan id 7
	must ip -n h2 link add link eth2 name eth2.7 type vlan id 7
	for end in 1 2; do
		must ip -n h$end address flush dev eth2
		address h$end eth2.7 $end
	done
	sleep 2
	link_rate_becomes 2000 1000 "through a VLAN" $set_rate auto
}

# A link rate that the user has set is forgotten with its device.
devices_come_and_go() {
	one_link 10000
	timestamps h1 eth2 all
	sleep 0.1
	must in_ns h1 "$timelyctl" nic set eth2 link-rate 2gbit
	cat >"$work/another" <<-END
		ip -n h1 link del eth2
		ip link add hw type hwnic
		ip link set hw netns h1 name eth2
		ip link set hwp netns h2 name eth2
		ip netns exec h1 ethtool -s eth2 speed 1000
		for end in 1 2; do
		ip netns exec h\$end sh -c 'echo 0 >/proc/sys/net/ipv6/conf/eth2/accept_dad'
		ip -n h\$end address add 10.7.2.\$end/24 dev eth2
		ip -n h\$end link set eth2 up
		done
	END
	soon=0.2
	link_rate_becomes 2000 1000 "another NIC in its place" sh -e "$work/another"
	link_rate_is 1000 "new connections"
}

another_namespace() {
	one_link 2500
	new_host h3
	must ip -n h1 link set eth2 netns h3
	must ip -n h3 link set eth2 netns h1
	address h1 eth2 1
	sleep 0.1
	link_rate_is 2500 "moved there and back"
}

run_cases load drivers_speed_is_used known_if_the_module_is_loaded_later connections_follow \
	connections_follow_upwards first_rate_is_a_share_of_the_link_rate over_a_vlan over_a_bond \
	over_a_bridge veths_are_not_known users_setting_overrides_the_driver devices_come_and_go \
	another_namespace remove_all
