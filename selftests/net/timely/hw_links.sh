#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Devices of other network namespaces cost a host's NICs and connections nothing, and
# connections that begin are counted for each line, whatever namespaces they are in.

. "$(dirname "$0")/hw_lib.sh"

load() {
	load_hw preset=linux
	# The law of each connection, as it is derived.
	echo 1 >$tracing/events/timely/timely_derived/enable
}

begin() {
	pods_down
	nics_down
	for ns; do new_host "$ns"; done
}

one_line() {
	begin h1 h2
	cable h1 eth0 h2 eth0
	address h1 eth0 1
	address h2 eth0 2
	sleep 2
}

# ---- events of other devices ----

# How often the driver of h1's NIC was asked, and how often h1's connection derived its law.
queries() {
	in_ns h1 cat "/sys/class/net/${1:-eth0}/hwnic/queries"
}

# quiet_during COMMAND...: while a connection of h1 is open; sets derived and queried
quiet_during() {
	before=$(queries)
	echo >$tracing/trace
	echo "$*" >"$work/during"
	echo "(sh $work/during && : >$work/went-well) >/dev/null 2>&1 &" >"$work/background"
	rm -f "$work/went-well"
	# A connection looks at its path by itself as well, each eighth of a second.
	traffic <<-END
		0	flow flow from=h1 to=h2 addr=$h2_v4 cc=timely rate=100000
		0.05	run sh $work/background
		0.2	end
	END
	within_seconds 5 test -e "$work/went-well" || fail "failed: $*"
	derived=$(grep -c timely_derived: $tracing/trace)
	queried=$(($(queries) - before))
}

# usual is how many laws there are without any event: two more or less by when drains are.
usual_laws() {
	quiet_during true
	usual=$((derived + 2))
}

# In user and network namespaces of its own, as any user can have them.
# tenant COMMAND...: of ip, in one batch
tenant() {
	echo "unshare -Urn ip -batch $work/tenant" >"$work/as-tenant"
	cat >"$work/tenant"
}

others_devices_ask_no_nic() {
	one_line
	usual_laws
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
		quiet_during sh -e "$work/as-tenant"
		say "$kind up and down 1000 times: the NIC was asked $queried times, $derived laws"
		expect queried -eq 0 "$kind: the NIC's driver was asked"
		expect derived -le "$usual" "$kind: laws were derived anew"
	done
}

# Without hardware below a device no line changes.
enslaving_changes_no_line() {
	one_line
	usual_laws
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
	quiet_during sh -e "$work/often"
	expect derived -le "$usual" "a dummy's bridge: laws were derived anew"
}

# A tenant may have got a device above the host's NIC, and do with it as it likes.
tenants_macvlan_changes_no_line() {
	one_line
	usual_laws
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
	# (A bridge asks its ports for their speeds itself.)
	quiet_during "$python" -I "$work/owner.py"
	expect derived -le "$usual" "a tenant's macvlan: laws were derived anew"
}

# The device of an event is looked at, and no other NIC.
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
	expect asked0 -eq 0 "of eth0, which nothing happened to"
	expect asked1 -ge 1 "of eth1"
}

# ---- how many share a line ----

# pods COUNT: h1, p1, p2 ...: each a namespace behind a veth, on a bridge with the host's NIC
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

# Lines of Python: from_to(NAMESPACE, ADDRESS) is a connection; begin_message() lets a
# connection that has rested begin with its part, and gives its rate. Sets what is result()ed.
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
			    # A round trip is known, and nothing is under way.
			    for client, server in pairs:
			        calm()
			        client.sendall(bytes(2896))
			        server.recv(2896, socket.MSG_WAITALL)
			    time.sleep(.01)
			    calm()
		EOF
		cat
	} >"$work/messages.py"
	sockets <"$work/messages.py"
	# Receivers that did not read reset connections: before their network goes, or senders
	# would try for long.
	sleep 1
}

# As a share of the line: what a connection of each pod begins with while all others send.
hundred_pods_share_a_line() {
	pods 100
	messages <<-END
		pairs = [from_to(f"p{pod}", "10.7.2.2") for pod in range(1, 101)]
		rest(pairs)
		rates = [begin_message(client) for client, _ in pairs]
		result(first_mbps=rates[0] / 1000, last_mbps=rates[-1] / 1000, sum_mbps=sum(rates) / 1000)
	END
	say "100 pods: the first begins at $first_mbps Mb/s, the last at $last_mbps, all of them at $sum_mbps"
	expect first_mbps -ge 4900
	# One after another they begin with a half of the line, a third, and so on, but with a
	# new connection's twentieth at least. By themselves they were fifty lines.
	expect last_mbps -le 510
	expect sum_mbps -le 67000
}

# Twenty that send, and as many that begin: a new connection's twentieth each.
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
	say "20 more beside 20 pods: they begin at $sum_mbps Mb/s together"
	expect sum_mbps -ge 9500
	expect sum_mbps -le 10100
}

# Without a bridge the host's routes decide, and it has one NIC.
routed_pods_share_a_line() {
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
	say "20 routed pods: the first begins at $first_mbps Mb/s, the last at $last_mbps, all of them at $sum_mbps"
	expect first_mbps -ge 4900
	expect last_mbps -le 510
	expect sum_mbps -le 27000
}

# Lines are told apart, though their connections are of one namespace; and a VLAN is no
# line of its own.
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
	expect last_mbps -ge 1090
	expect last_mbps -le 1120 "the eighth of a line"
	expect first_mbps -ge 4900 "the first of the other line"
	expect second_mbps -ge 3300 "the second, on a VLAN"
	expect second_mbps -le 3400 "the second, on a VLAN"
}

# Links go while connections are counted on them.
lines_go_under_senders() {
	pods 3
	messages <<-END
		import subprocess
		pairs = [from_to(f"p{pod}", "10.7.2.2") for pod in range(1, 4)]
		rest(pairs)
		for client, _ in pairs:
		    begin_message(client)
		subprocess.check_call("ip -n h1 link del eth0".split())
		# Nobody answers a FIN any more, which would be repeated for long.
		for client, server in pairs:
		    for sock in client, server:
		        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
		        sock.close()
		result(gone=1)
	END
	expect gone -eq 1
	pods_down
	nics_down
	# The next one's line is counted from nothing.
	one_line
	messages <<-END
		pairs = [from_to("h1", "10.7.2.2")]
		rest(pairs)
		result(first_mbps=begin_message(pairs[0][0]) / 1000)
	END
	expect first_mbps -ge 4900
}

run_cases load others_devices_ask_no_nic enslaving_changes_no_line \
	tenants_macvlan_changes_no_line only_the_devices_own_nic_is_asked \
	hundred_pods_share_a_line newcomers_see_the_other_pods routed_pods_share_a_line \
	two_nics_do_not_share lines_go_under_senders all_goes
