#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The hardware timestamp of an ACK, and the NIC it is from, reach TCP over VLANs, bridges, bonds,
# containers and after renaming; and with GRO, data in both directions and a busy socket.
# Topology: h1 == h2, test NICs; for containers h1 -- mid == h2.

. "$(dirname "$0")/hw_lib.sh"

total_kbps=3000000

load() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $fixed
}

# both_families SECONDS [NET]: lines of a plan with connections over IPv4 and IPv6
both_families() {
	plan_flows "$1" 10.7.${2:-2}.2 16
	plan_flows "$1" fd07:${2:-2}::2 16 | sed 's/ f\([0-9]\)/ g\1/'
}

# carried TEXT NAMESPACE DEVICE...: hardware timestamps of these NICs are used, once the clock
# mapping is known
carried() {
	text=$1
	shift
	sleep 2
	watch_nics "$@"
	both_families 0.16 >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	expect g15_done -eq 1
	judge after_us=100000 until_us=159000
	expect_hardware "$text"
}

begin() {
	nics_down
	for ns; do new_host "$ns"; done
}

h1_timely() {
	must tc -n h1 qdisc replace dev "${1:-eth0}" root timely
}

by_itself() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	timestamps h1 eth0 all
	busy h1 eth0
	h1_timely
	carried "without other devices" h1 eth0
}

over_a_vlan() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	for end in 1 2; do
		must ip -n h$end link set eth0 up
		must ip -n h$end link add link eth0 name eth0.7 type vlan id 7
		address h$end eth0.7 $end
	done
	timestamps h1 eth0 all
	busy h1 eth0
	h1_timely
	carried "VLAN" h1 eth0
	# timelyctl works beside the VLAN, which passes its NIC's capabilities on.
	must in_ns h1 "$timelyctl" nic
}

through_a_bridge() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	must ip -n h1 link add br0 type bridge forward_delay 0
	must ip -n h1 link set eth0 master br0
	must ip -n h1 link set eth0 up
	address h1 br0 1
	address h2 eth0 2
	timestamps h1 eth0 all
	busy h1 eth0
	h1_timely
	carried "bridge" h1 eth0
}

# bond_up MODE: two NICs with different clocks, bonded
bond_up() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	cable h1 eth1 h2 eth1
	bonds "$1" eth0 eth1
	for device in eth0 eth1; do
		timestamps h1 $device all
		h1_timely $device
	done
	busy h1 eth0 50000 40000
	busy h1 eth1 30000 -70000
}

over_a_bond_with_a_spare() {
	bond_up active-backup
	carried "bond, active-backup" h1 eth0 h1 eth1
	# The other NIC takes over; its clock mapping is not known yet.
	watch_nics h1 eth0 h1 eth1
	{
		both_families 0.3
		echo "0.12 run ip -n h1 link set eth0 down"
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=250000 until_us=299000
	expect_hardware "after the spare took over"
	judge_again
	expect_truth "while the spare took over"
}

# Packets arrive out of order and are taken for lost, so few RTTs are measured.
over_a_bond_that_alternates() {
	bond_up balance-rr
	sleep 2
	watch_nics h1 eth0 h1 eth1
	both_families 0.2 >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=100000 until_us=199000
	expect hardware_later -gt 30
	expect_truth "bond, balance-rr"
}

# container_up routed|bridged: the connection is a container's (h1), the NIC is its host's (mid):
# h1 eth0 -- to1 mid to2 == eth0 h2
container_up() {
	begin h1 h2 mid
	must ip -batch - <<-EOF
		link add eth0 netns h1 type veth peer name to1 netns mid
	EOF
	cable mid to2 h2 eth0
	timestamps mid to2 all
	busy mid to2
	if [ "$1" = bridged ]; then
		must ip -n mid link add br0 type bridge forward_delay 0
		for device in to1 to2 br0; do
			[ $device = br0 ] || must ip -n mid link set $device master br0
			must ip -n mid link set $device up
		done
		address h1 eth0 1
		address h2 eth0 2
	else
		address h1 eth0 2 1
		address mid to1 1 1
		address mid to2 1 2
		address h2 eth0 2 2
		must in_ns mid sh -c '
			echo 1 >/proc/sys/net/ipv4/ip_forward
			echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
		must ip -n h1 route add default via 10.7.1.1
		must ip -n h1 route add default via fd07:1::1
		must ip -n h2 route add default via 10.7.2.1
		must ip -n h2 route add default via fd07:2::1
	fi
	h1_timely
}

into_a_container_routed() {
	container_up routed
	carried "routed over veth" mid to2
	must in_ns h1 ethtool -K eth0 gro on
	carried "routed over veth with GRO" mid to2
}

into_a_container_bridged() {
	container_up bridged
	carried "bridged over veth" mid to2
	must in_ns h1 ethtool -K eth0 gro on
	must in_ns mid ethtool -K to1 gro on
	carried "bridged over veth with GRO" mid to2
}

# With a second NIC of the host, whose clock mapping is known as well, and NICs without timestamps.
into_a_container_beside_other_nics() {
	container_up routed
	must in_ns h1 ethtool -K eth0 gro on
	new_host h3
	cable mid to3 h3 eth0
	address mid to3 1 3
	address h3 eth0 2 3
	timestamps mid to3 all
	busy mid to3 40000 -60000
	cable h2 eth5 h3 eth5
	must ip -n h3 route add default via 10.7.3.1
	must ip -n h3 route add default via fd07:3::1
	sleep 2
	watch_nics mid to2 mid to3
	{
		both_families 0.3
		both_families 0.3 3 | sed 's/to=h2/to=h3/; s/ f\([0-9]\)/ i\1/; s/ g\([0-9]\)/ j\1/'
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=200000 until_us=299000
	expect hardware_later -gt 200
	expect_truth "beside another NIC"
}

renamed_and_moved() {
	begin h1 h2 h3
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	timestamps h1 eth0 all
	busy h1 eth0
	h1_timely
	carried "before" h1 eth0
	# Renaming does not discard the clock mapping.
	if kernel_before 6.2; then
		say "not renamed under traffic: this kernel cannot rename a device that is up"
		must ip -n h1 link set eth0 down
		must ip -n h1 link set eth0 name nic7
		must ip -n h1 address flush dev nic7
		must ip -n h1 link set nic7 up
		address h1 nic7 1
	else
		watch_nics h1 eth0
		{
			both_families 0.25
			echo "0.17 run ip -n h1 link set eth0 name nic7"
		} >"$work/plan"
		traffic <"$work/plan"
		expect_flows_done
		judge after_us=120000 until_us=249000
		expect_hardware "renamed under traffic"
	fi
	must in_ns h1 "$timelyctl" nic show nic7
	carried "renamed" h1 nic7
	must ip -n h1 link set nic7 netns h3 name eth0
	address h3 eth0 1
	must tc -n h3 qdisc replace dev eth0 root timely
	timestamps h3 eth0 all
	sender=h3
	carried "moved" h3 eth0
}

# Data in both directions, with and without GRO. Packets that GRO has merged have one timestamp.
with_data_both_ways() {
	total_kbps=1500000
	begin h1 h2
	cable h1 eth0 h2 eth0
	for end in 1 2; do
		address h$end eth0 $end
		timestamps h$end eth0 all
		busy h$end eth0 5000 $((end * 30000))
		must tc -n h$end qdisc replace dev eth0 root timely
	done
	for gro in off on; do
		for end in 1 2; do
			must in_ns h$end ethtool -K eth0 gro $gro
		done
		sleep 2
		watch_nics h1 eth0 h2 eth0
		{
			both_families 0.2
			both_families 0.2 | sed 's/from=h1 to=h2/from=h2 to=h1/; s/2 cc=/1 cc=/; s/ f\([0-9]\)/ i\1/; s/ g\([0-9]\)/ j\1/'
		} >"$work/plan"
		traffic <"$work/plan"
		expect_flows_done
		judge after_us=100000 until_us=199000
		expect hardware_later -gt 200
		expect_truth "both ways, GRO $gro"
	done
}

# ACKs that wait for their socket in its backlog. A system call owns the socket for a millisecond of
# virtual time: it makes the kernel call modprobe, here a slow script, under the socket's lock.
while_the_socket_is_owned() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	timestamps h1 eth0 all
	h1_timely
	printf '#!/bin/sh\nsleep 0.001\n' >"$work/slow-modprobe"
	chmod +x "$work/slow-modprobe"
	read -r modprobe </proc/sys/kernel/modprobe
	echo "$work/slow-modprobe" >/proc/sys/kernel/modprobe
	carried "the clock is known" h1 eth0
	watch_nics h1 eth0
	for address in 10.7.2.2 fd07:2::2; do
		echo "ADDRESS = '$address'" >"$work/owned.py"
		cat >>"$work/owned.py" <<-'EOF'
			client, server = connect(ADDRESS)
			reader = os.fork()
			if not reader:
			    client.close()
			    while server.recv(1 << 20):
			        pass
			    os._exit(0)
			client.setblocking(False)
			sent = refused = 0
			for i in range(200):
			    try:
			        while True:
			            sent += client.send(bytes(65536))
			    except BlockingIOError:
			        pass
			    # ACKs of data in flight arrive during the system call.
			    time.sleep(0.00002)
			    try:
			        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"nosuch")
			    except FileNotFoundError:
			        refused += 1
			client.close()
			server.close()
			os.waitpid(reader, 0)
			result(refused=refused, sent=sent)
		EOF
		sockets <"$work/owned.py"
		expect refused -eq 200
		expect sent -ge 1000000
	done
	echo "$modprobe" >/proc/sys/kernel/modprobe
	judge
	expect hardware -gt 100
	expect late_max -ge 500000 "ns: no ACK waited for its socket"
	expect rtt_max -le 500000 "ns: an RTT includes the wait of its ACK"
	expect doubtful -le $((acks / 50)) "ACKs that waited for their socket"
	expect_truth "backlog"
	expect error_max -le $exact
}

# Connections with other congestion controls have no trace events and are not counted.
other_congestion_controls_pass() {
	must in_ns h1 "$timelyctl" -j rtt
	cp "$work/must" "$work/before"
	watch_nics h1 eth0
	both_families 0.03 >"$work/plan.timely"
	sed 's/cc=timely/cc=cubic/' "$work/plan.timely" >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge
	expect acks -eq 0
	must in_ns h1 "$timelyctl" -j rtt
	cmp -s "$work/before" "$work/must" || fail "ACKs of cubic were counted"
	grep -q '"hardware": *[1-9]' "$work/before" || fail "no counters: $(cat "$work/before")"
}

run_cases load by_itself over_a_vlan through_a_bridge over_a_bond_with_a_spare \
	over_a_bond_that_alternates into_a_container_routed into_a_container_bridged \
	into_a_container_beside_other_nics renamed_and_moved with_data_both_ways \
	while_the_socket_is_owned other_congestion_controls_pass remove_all
