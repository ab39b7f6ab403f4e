#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Links of a host with network namespaces (pods). Events of other namespaces' devices must not cause
# work for the host's NIC and connections, and connections that start are counted per link over all
# namespaces. Topology: h1 == h2, test NICs; with pods as namespaces behind a bridge or router in
# h1.

. "$(dirname "$0")/hw_lib.sh"

load() {
	load_hw preset=target_delay
	# An event each time a connection computes its path-dependent parameters.
	echo 1 >$tracing/events/timely/timely_computed/enable
}

begin() {
	pods_down
	nics_down
	for ns; do new_host "$ns"; done
}

one_link() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	sleep 2
}

# ---- segments ----

# segments [OPTION]: send for 250 ms, as fast as the link allows but for the option. Sets mean_bytes,
# the mean length of the segments of the last 100 ms.
segments() {
	echo "tc -n h1 -s -j qdisc show dev eth0 >$work/before" >"$work/look"
	sed 's/before/after/' "$work/look" >"$work/look-again"
	traffic <<-END
		0	flow flow from=h1 to=h2 addr=$h2_v4 cc=timely ${1-}
		0.15	run sh $work/look
		0.25	run sh $work/look-again
		0.26	end
	END
	mean_bytes=$(python3 -c 'import json, sys
def read(name):
    qdisc = json.load(open(name))[0]
    return qdisc["bytes"], qdisc["departures"]
before, after = read(sys.argv[1]), read(sys.argv[2])
print((after[0] - before[0]) // (after[1] - before[1]))' "$work/before" "$work/after") ||
		fail "no statistics of the qdisc"
}

# On a quiet path segments grow to 64 KB, unless the user has given their length.
segments_grow_on_a_quiet_path() {
	one_link
	must tc -n h1 qdisc replace dev eth0 root timely
	segments
	expect mean_bytes -ge 60000
	# A segment takes at most 8 ms at the rate of its connection.
	segments cap=10000
	expect mean_bytes -ge 7000
	expect mean_bytes -le 11000
	ip netns exec h1 sysctl -qw net.ipv4.timely.segment_bytes=5792 || fail "cannot set segment_bytes"
	segments
	expect mean_bytes -le 6200
}

# Where several connections keep the host's link full, long segments would wait for each other, and
# the rates would vary: until segments of such connections stayed short, the link carried 8.4 Gb/s.
segments_of_competitors_stay_short() {
	one_link
	must tc -n h1 qdisc replace dev eth0 root timely
	{
		for flow in 1 2 3 4; do
			echo "0 flow f$flow from=h1 to=h2 addr=$h2_v4 cc=timely"
			echo "0.5 stop f$flow"
			echo "0.2 goodput kbps$flow flow=f$flow for=0.2"
		done
	} >"$work/plan"
	traffic <"$work/plan"
	sum=$((kbps1 + kbps2 + kbps3 + kbps4))
	# The link carries 9.415 Gb/s of payload.
	expect sum -ge 9300000 "kbit/s of all"
	for flow in 1 2 3 4; do
		eval "got=\$kbps$flow"
		expect got -ge $((sum * 95 / 400)) "kbit/s of connection $flow"
	done
	# A lone connection has long segments.
	segments
	expect mean_bytes -ge 60000
}

# ---- events of other devices ----

# queries [DEVICE]: how often the driver of h1's NIC was asked so far
queries() {
	in_ns h1 cat "/sys/class/net/${1:-eth0}/hwnic/queries"
}

# count_during COMMAND...: run the command while a connection of h1 is open. Sets derived, how often
# the connection computed its parameters, and queried, how often the NIC's driver was asked.
count_during() {
	before=$(queries)
	echo >$tracing/trace
	echo "$*" >"$work/during"
	echo "(sh $work/during && : >$work/went-well) >/dev/null 2>&1 &" >"$work/background"
	rm -f "$work/went-well"
	# Without any event, a connection computes its parameters every eighth of a second.
	traffic <<-END
		0	flow flow from=h1 to=h2 addr=$h2_v4 cc=timely rate=100000
		0.05	run sh $work/background
		0.2	end
	END
	within_seconds 5 test -e "$work/went-well" || fail "failed: $*"
	derived=$(grep -c timely_computed: $tracing/trace)
	queried=$(($(queries) - before))
}

# Sets usual: how often a connection computes its parameters without any event, plus two, as
# base-RTT probes may cause more.
usual_count() {
	count_during true
	usual=$((derived + 2))
}

# tenant: reads commands of ip from standard input. "sh $work/as-tenant" then runs them in new user
# and network namespaces, as any user can.
tenant() {
	echo "unshare -Urn ip -batch $work/tenant" >"$work/as-tenant"
	cat >"$work/tenant"
}

others_devices_ask_no_nic() {
	one_link
	usual_count
	for kind in lo dummy veth; do
		{
			device=d0
			case $kind in
			lo) device=lo ;;
			dummy) echo "link add d0 type dummy" ;;
			veth) echo "link add d0 type veth peer name d1" ;;
			esac
			count=0
			while [ $count -lt 1000 ]; do
				echo "link set $device up"
				echo "link set $device down"
				count=$((count + 1))
			done
		} | tenant
		count_during sh -e "$work/as-tenant"
		say "$kind up and down 1000 times: NIC asked $queried times, parameters computed $derived times"
		expect queried -eq 0 "$kind: the NIC's driver was asked"
		expect derived -le "$usual" "$kind: parameters were computed anew"
	done
}

# Enslaving a device without hardware below it changes no link rate.
enslaving_changes_no_link_rate() {
	one_link
	usual_count
	{
		echo "link add br0 type bridge"
		echo "link set br0 up"
		echo "link add d0 type dummy"
		count=0
		while [ $count -lt 10 ]; do
			echo "link set d0 master br0"
			echo "link set d0 nomaster"
			count=$((count + 1))
		done
	} | tenant
	echo "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sh -e $work/as-tenant; sleep .001; done" >"$work/often"
	count_during sh -e "$work/often"
	expect derived -le "$usual" "a dummy's bridge: parameters were computed anew"
}

# A tenant that has a macvlan above the host's NIC enslaves it repeatedly.
tenants_macvlan_changes_no_link_rate() {
	one_link
	usual_count
	must ip -n h1 link add link eth0 name mv0 type macvlan mode bridge
	cat >"$work/enslave" <<-'END'
		ip link add br0 type bridge
		ip link set br0 up
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
			ip link set mv0 master br0
			ip link set mv0 nomaster
			sleep .001
		done
	END
	cat >"$work/owner.py" <<-END
		import os, subprocess, time
		tenant = subprocess.Popen(["unshare", "-Urn", "sh", "-ec",
		    "until ip link show mv0; do sleep .0001; done; exec sh -e $work/enslave"],
		    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		time.sleep(.001)
		subprocess.check_call(["ip", "-n", "h1", "link", "set", "mv0", "netns", str(tenant.pid)])
		assert not tenant.wait()
	END
	# (queried is not checked: the bridge itself asks its ports for their speeds.)
	count_during "$python" -I "$work/owner.py"
	expect derived -le "$usual" "a tenant's macvlan: parameters were computed anew"
}

# Only the NIC of an event is asked, not the host's other NICs.
only_the_devices_own_nic_is_asked() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	cable h1 eth1 h2 eth1
	address h1 eth0 1
	address h1 eth1 1 3
	address h2 eth0 2
	address h2 eth1 2 3
	sleep 2
	before0=$(queries eth0)
	before1=$(queries eth1)
	must ip -n h1 link set eth1 down
	must ip -n h1 link set eth1 up
	sleep 0.1
	asked0=$(($(queries eth0) - before0))
	asked1=$(($(queries eth1) - before1))
	expect asked0 -eq 0 "queries of eth0, which had no event"
	expect asked1 -ge 1 "queries of eth1"
}

# ---- connections that share a link ----

# pods COUNT: namespaces p1, p2, ..., each behind a veth; h1 bridges the veths to its NIC
pods() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	{
		echo "link add br0 type bridge forward_delay 0"
		echo "link set eth0 master br0"
		echo "link set eth0 up"
		echo "link set br0 up"
	} >"$work/bridge"
	must ip -n h1 -batch "$work/bridge"
	address h2 eth0 2
	pod=0
	while [ $pod -lt "$1" ]; do
		pod=$((pod + 1))
		echo "netns add p$pod"
		echo "link add eth0 netns p$pod type veth peer name to$pod netns h1"
	done | must ip -batch -
	pod=0
	while [ $pod -lt "$1" ]; do
		pod=$((pod + 1))
		${attach:-must ip -n h1 link set to$pod master br0}
		must ip -n h1 link set to$pod up
		ip -n p$pod -batch - <<-END
			link set lo up
			address add 10.7.2.$((pod + 10))/24 dev eth0
			link set eth0 up
		END
	done
	sleep 2
}

pods_down() {
	pod=0
	while [ -e /run/netns/p$((pod + 1)) ]; do
		pod=$((pod + 1))
		echo "netns del p$pod"
	done >"$work/pods"
	[ ! -s "$work/pods" ] || must ip -batch "$work/pods"
}

# Run the Python lines on standard input, with from_to(NAMESPACE, ADDRESS), a connection to h2;
# rest(), which lets connections become idle; and begin_message(), which starts a message of an idle
# connection and returns its rate, kbit/s. result() sets shell variables. calm() waits until no
# base-RTT probe is near, as share.sh explains.
messages() {
	{
		cat <<-'EOF'
			def calm():
			    age_ns = time.time_ns() % (1 << 26)
			    if not 5000000 < age_ns < 40000000:
			        time.sleep(((5000000 - age_ns) % (1 << 26)) / 1e9)
			listeners = {}
			def from_to(ns, address):
			    if address not in listeners:
			        listener = inside("h2", socket.socket)
			        listener.bind((address, 0))
			        listener.listen(1000)
			        listeners[address] = listener
			    client = inside(ns, socket.socket)
			    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"timely")
			    client.connect(listeners[address].getsockname())
			    server, _ = listeners[address].accept()
			    return client, server
			def begin_message(client):
			    client.send(bytes(65536), socket.MSG_DONTWAIT)
			    return rate(client)
			def rest(pairs):
			    # Each connection measures an RTT; afterwards nothing is in flight. After
			    # the idle time of an RTO the rate is at most a twentieth of the link rate.
			    for client, server in pairs:
			        calm()
			        client.sendall(bytes(2896))
			        server.recv(2896, socket.MSG_WAITALL)
			    time.sleep(.4)
			    calm()
		EOF
		cat
	} >"$work/messages.py"
	sockets <"$work/messages.py"
	# Receivers close with unread data, which resets the connections. Wait for that: without a
	# link senders would retransmit for long.
	sleep 1
}

# Connections of 100 pods start one after the other, each with its share of the link rate.
hundred_pods_share_a_link() {
	pods 100
	messages <<-END
		pairs = [from_to(f"p{pod}", "10.7.2.2") for pod in range(1, 101)]
		rest(pairs)
		rates = [begin_message(client) for client, _ in pairs]
		result(first_mbps=rates[0] / 1000, last_mbps=rates[-1] / 1000, sum_mbps=sum(rates) / 1000)
	END
	say "100 pods: the first starts at $first_mbps Mb/s, the last at $last_mbps, all of them at $sum_mbps"
	expect first_mbps -ge 9800
	# They start with the link rate, a half of it, a third and so on, but at least with a
	# twentieth. Counted per namespace the sum would be a hundred times the link rate.
	expect last_mbps -le 510
	expect sum_mbps -le 77000
}

# 20 connections send; 20 more start, each with a twentieth of the link rate.
newcomers_see_the_other_pods() {
	pods 20
	messages <<-END
		pairs = [from_to(f"p{pod}", "10.7.2.2") for pod in range(1, 21)]
		more = [from_to(f"p{pod}", "10.7.2.2") for pod in range(1, 21)]
		rest(pairs + more)
		for client, _ in pairs:
		    begin_message(client)
		rates = [begin_message(client) for client, _ in more]
		result(sum_mbps=sum(rates) / 1000)
	END
	say "20 more beside 20 pods: they start at $sum_mbps Mb/s together"
	expect sum_mbps -ge 9500
	expect sum_mbps -le 10100
}

# Pods behind h1 as a router, without a bridge. h1 has one NIC.
routed_pods_share_a_link() {
	attach=true
	pods 20
	attach=
	# shellcheck disable=SC2016 # for the inner shell
	must in_ns h1 sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	must ip -n h1 -batch - <<-END
		link del br0
		address add 10.7.2.1/24 dev eth0
	END
	pod=0
	while [ $pod -lt 20 ]; do
		pod=$((pod + 1))
		must ip -n p$pod address flush dev eth0
		must ip -n p$pod address add 10.8.$pod.2/24 dev eth0
		must ip -n h1 address add 10.8.$pod.1/24 dev to$pod
		must ip -n p$pod route add default via 10.8.$pod.1
	done
	must ip -n h2 route add 10.8.0.0/16 via 10.7.2.1
	messages <<-END
		pairs = [from_to(f"p{pod}", "10.7.2.2") for pod in range(1, 21)]
		rest(pairs)
		rates = [begin_message(client) for client, _ in pairs]
		result(first_mbps=rates[0] / 1000, last_mbps=rates[-1] / 1000, sum_mbps=sum(rates) / 1000)
	END
	say "20 routed pods: the first starts at $first_mbps Mb/s, the last at $last_mbps, all of them at $sum_mbps"
	expect first_mbps -ge 9800
	expect last_mbps -le 510
	expect sum_mbps -le 37000
}

# Connections of one namespace by different NICs are counted apart. A VLAN shares the link of its
# NIC.
two_nics_do_not_share() {
	begin h1 h2
	for net in 2 3; do
		cable h1 eth$net h2 eth$net
		address h1 eth$net 1 $net
		address h2 eth$net 2 $net
	done
	for end in 1 2; do
		must ip -n h$end link add link eth3 name eth3.7 type vlan id 7
		address h$end eth3.7 $end 4
	done
	sleep 2
	messages <<-END
		near = [from_to("h1", "10.7.2.2") for _ in range(8)]
		far = [from_to("h1", "10.7.3.2"), from_to("h1", "10.7.4.2")]
		rest(near + far)
		for client, _ in near:
		    last = begin_message(client)
		first, second = [begin_message(client) for client, _ in far]
		result(last_mbps=last / 1000, first_mbps=first / 1000, second_mbps=second / 1000)
	END
	expect last_mbps -ge 1230
	expect last_mbps -le 1260 "an eighth of the link rate"
	expect first_mbps -ge 9800 "the first on the other link"
	expect second_mbps -ge 4900 "the second, on a VLAN"
	expect second_mbps -le 5010 "the second, on a VLAN"
}

# A NIC is removed while connections are counted on its link.
links_go_under_senders() {
	pods 3
	messages <<-END
		import subprocess
		pairs = [from_to(f"p{pod}", "10.7.2.2") for pod in range(1, 4)]
		rest(pairs)
		for client, _ in pairs:
		    begin_message(client)
		subprocess.check_call("ip -n h1 link del eth0".split())
		# Reset instead of FIN: FINs would be retransmitted for long.
		for client, server in pairs:
		    for sock in client, server:
		        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
		        sock.close()
		result(gone=1)
	END
	expect gone -eq 1
	pods_down
	nics_down
	# The count of a new link starts at 0.
	one_link
	messages <<-END
		pairs = [from_to("h1", "10.7.2.2")]
		rest(pairs)
		result(first_mbps=begin_message(pairs[0][0]) / 1000)
	END
	expect first_mbps -ge 4900
}

run_cases load segments_grow_on_a_quiet_path segments_of_competitors_stay_short \
	others_devices_ask_no_nic enslaving_changes_no_link_rate \
	tenants_macvlan_changes_no_link_rate only_the_devices_own_nic_is_asked \
	hundred_pods_share_a_link newcomers_see_the_other_pods routed_pods_share_a_link \
	two_nics_do_not_share links_go_under_senders remove_all
