#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# How fast the line is that a connection leaves by: what the driver says, over whatever
# lies between, unless the user knows better; and connections follow when it changes.
#
# The rate is told to stay at 100 Gb/s, where only the line bounds it.

. "$(dirname "$0")/hw_lib.sh"

unbounded=100000000
only_the_line="preset=linux $steady damp_ppm=0 first_rate_kbps=$unbounded"

load() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $only_the_line
}

begin() {
	nics_down
	for ns; do new_host "$ns"; done
}

# speed NAMESPACE DEVICE MBPS
speed() {
	must in_ns "$1" ethtool -s "$2" speed "$3"
	# The driver is asked by a work.
	sleep 0.05
}

# A cable from h1 to h2, of the number of its net, and what h1's end says of itself.
# line NET MBPS
line() {
	cable h1 "eth$1" h2 "eth$1"
	speed h1 "eth$1" "$2"
}

# h1 and h2 on one line of so many Mb/s.
one_line() {
	begin h1 h2
	line 2 "$1"
	address h1 eth2 1
	address h2 eth2 2
	sleep 2
}

# For drains, which are short, the rate is less: what counts is the most of some time.
# It sends little, as segments at the pace of a line of 100 Gb/s are much work.
# runs KEY [ADDRESS]
runs() {
	echo "0	flow $1 from=h1 to=h2 addr=${2:-$h2_v4} cc=timely rate=100000"
}

# line_of KEY FLOW SECONDS: the plan's lines that look at it then
line_of() {
	echo "$3	watch $1 flow=$2 every=0.0005 for=0.01"
}

# look [ADDRESS]: line_max, as a new connection has it
look() {
	{
		runs flow "${1-}"
		line_of line flow 0.005
		echo "0.02	end"
	} >"$work/plan"
	traffic <"$work/plan"
}

# line_is MBPS TEXT [ADDRESS]
line_is() {
	look "${3-}"
	expect line_max -eq $(($1 * 1000)) "$2"
}

# A connection looks by itself each eighth of a second: sooner it has to be told, but
# may have lost a packet.
soon=0.065

# line_becomes MBPS MBPS TEXT COMMAND...: as the connection has it that is there when
# the command is given
line_becomes() {
	was=$1 is=$2 text=$3
	shift 3
	{
		runs flow
		line_of before flow 0.005
		echo "0.05	run $*"
		line_of after flow $soon
		echo "0.25	end"
	} >"$work/plan"
	traffic <"$work/plan"
	expect before_max -eq $((was * 1000)) "before: $text"
	expect after_max -eq $((is * 1000)) "$text"
}

is_the_drivers() {
	one_line 1000
	for mbps in 1000 25000 40000 99999; do
		speed h1 eth2 $mbps
		line_is $mbps "IPv4"
		line_is $mbps "IPv6" $h2_v6
	done
	# Beyond what was asked for, but for what a message gains at its beginning.
	speed h1 eth2 400000
	look
	expect line_max -ge $unbounded "400 Gb/s"
	expect line_max -lt 400000000
}

# Devices may be up long before anybody wants to know.
is_known_if_the_module_comes_later() {
	one_line 25000
	unload_timely
	load
	sleep 0.05
	line_is 25000 "loaded later"
}

connections_follow() {
	one_line 25000
	line_becomes 25000 1000 "slower" ip netns exec h1 ethtool -s eth2 speed 1000
	line_is 1000 "and new ones"
	# And is known again.
	{
		echo "link set eth2 down"
		echo "link set eth2 up"
	} >"$work/down-up"
	soon=0.2
	line_becomes 1000 1000 "down and up again" ip -n h1 -batch "$work/down-up"
}

# Up, too: by what its rate may become.
connections_follow_upwards() {
	one_line 1000
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
	expect before_max -ge 800000 "does it fill the line?"
	expect after_max -gt 1500000 "is it bounded as before?"
	expect after_max -le 10000000
}

# A new connection begins with a twentieth of the line.
first_rates_are_of_the_line() {
	one_line 40000
	must in_ns h1 sh -c 'echo linux >/proc/sys/net/ipv4/timely/preset'
	{
		runs flow
		echo "0.0001	info first flow=flow"
		echo "0.01	end"
	} >"$work/plan"
	traffic <"$work/plan"
	expect first_rate -ge $((2000000 * 11 / 16)) "drains take up to five sixteenths"
	expect first_rate -le $((2000000 * 5 / 4)) "a round trip raises it by a quarter at most"
}

over_a_vlan() {
	begin h1 h2
	line 2 25000
	for end in 1 2; do
		must ip -n h$end link set eth2 up
		must ip -n h$end link add link eth2 name eth2.7 type vlan id 7
		address h$end eth2.7 $end
	done
	sleep 2
	line_becomes 25000 2500 "VLAN" ip netns exec h1 ethtool -s eth2 speed 2500
}

# Packets may take any of the lines: the fastest counts, as the slower ones of
# a bond or bridge are what queues are for.
over_a_bond() {
	begin h1 h2
	line 2 25000
	line 3 1000
	bonds active-backup eth2 eth3
	sleep 2
	line_is 25000 "bond of two"
	cat >"$work/leave" <<-END
		ip -n h1 link set eth2 nomaster
		ip -n h2 link set bond0 type bond active_slave eth3
	END
	soon=0.15
	line_becomes 25000 1000 "one leaves the bond" sh -e "$work/leave"
	soon=0.065
	# A VLAN on the bond: two devices further up.
	for end in 1 2; do
		must ip -n h$end link add link bond0 name bond0.7 type vlan id 7
		must ip -n h$end address flush dev bond0
		address h$end bond0.7 $end
	done
	sleep 2
	line_becomes 1000 500 "below a VLAN on a bond" ip netns exec h1 ethtool -s eth3 speed 500
}

over_a_bridge() {
	begin h1 h2
	line 2 2500
	line 3 40000
	must ip -n h1 link add br0 type bridge forward_delay 0
	for device in eth2 eth3; do
		must ip -n h1 link set $device master br0
		must ip -n h1 link set $device up
	done
	address h1 br0 1
	address h2 eth2 2
	sleep 2
	line_is 40000 "bridge of two"
	line_becomes 40000 2500 "one leaves the bridge" ip -n h1 link set eth3 nomaster
}

# What a veth says of itself is made up, and so is a bridge of such.
veths_are_not_known() {
	begin h1 h2
	must ip link add eth2 netns h1 type veth peer name eth2 netns h2
	for end in 1 2; do
		address h$end eth2 $end
	done
	sleep 2
	line_is $((unbounded / 1000)) "veth"
	must ip -n h1 link add br0 type bridge forward_delay 0
	must ip -n h1 address flush dev eth2
	must ip -n h1 link set eth2 master br0
	address h1 br0 1
	sleep 2
	line_is $((unbounded / 1000)) "veth in a bridge"
}

users_know_better() {
	one_line 10000
	stamps h1 eth2 all
	sleep 0.1
	set_rate="ip netns exec h1 $timelyctl nic set eth2 line-rate"
	line_becomes 10000 2000 "set" $set_rate 2gbit
	line_is 2000 "and new ones"
	speed h1 eth2 1000
	line_is 2000 "it goes before the driver's"
	must $set_rate 40gbit
	line_is 40000 "another"
	line_becomes 40000 1000 "cleared" $set_rate auto
	line_is 1000 "and new ones"
	must $set_rate 2gbit
	must ip -n h1 link add link eth2 name eth2.7 type vlan id 7
	must ip -n h2 link add link eth2 name eth2.7 type vlan id 7
	for end in 1 2; do
		must ip -n h$end address flush dev eth2
		address h$end eth2.7 $end
	done
	sleep 2
	line_becomes 2000 1000 "through a VLAN" $set_rate auto
}

# And the one that was set goes with the device.
devices_come_and_go() {
	one_line 10000
	stamps h1 eth2 all
	sleep 0.1
	must in_ns h1 "$timelyctl" nic set eth2 line-rate 2gbit
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
	line_becomes 2000 1000 "another NIC in its place" sh -e "$work/another"
	line_is 1000 "and new ones"
}

another_namespace() {
	one_line 2500
	new_host h3
	must ip -n h1 link set eth2 netns h3
	must ip -n h3 link set eth2 netns h1
	address h1 eth2 1
	sleep 0.1
	line_is 2500 "moved there and back"
}

run_cases load is_the_drivers is_known_if_the_module_comes_later connections_follow \
	connections_follow_upwards first_rates_are_of_the_line over_a_vlan over_a_bond \
	over_a_bridge veths_are_not_known users_know_better devices_come_and_go \
	another_namespace all_goes
