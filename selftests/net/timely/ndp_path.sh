#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The path of NDP's packets: frames of 9000 bytes, MTUs of devices, routes and paths that change, ICMP
# errors, real and forged, and a dead path of 16. Cases run over IPv4 and IPv6.
# Topology: h1 -- mid -- h2, 10 Gb/s; no switch trims. In mid nobody uses NDP.

. "$(dirname "$0")/ndp_lib.sh"

hosts() {
	load_ndp
	hosts_up "$ndp_wire" "$ndp_wire" 9000
	# mid must send as many ICMP errors as it likes.
	# shellcheck disable=SC2016 # for the inner shell
	must ip netns exec mid sh -c 'cd /proc/sys/net
		echo 0 >ipv4/icmp_ratelimit
		echo 0 >ipv6/icmp/ratelimit
		echo 1000000 >ipv4/icmp_msgs_per_sec 2>/dev/null || :'
}

# The path has the MTU of the devices again.
path_is_whole() {
	must ip -n mid link set to2 mtu 9000
	must ip -n h1 link set eth0 mtu 9000
	must ip -n h1 route flush cache
	must ip -n h1 -6 route flush cache
	sleep 0.1
}

# fast ADDRESS MTU: 10 MB take the time that packets of full length need; 3 % are left for packets
# without data and for the beginning
fast() {
	must ip -n h1 link set eth0 mtu "$2"
	ndp <<-EOF
		client, server = pair($1)
		payload = info(client)["payload"]
		same, us = move([Flow(client, server, data(10000000))])
		ideal = 10000000 / payload * ($2 + 14) * 8 / 10e9 * 1e6
		result(same=same, payload=payload, mbps=10000000 * 8 / us, permille=1000 * us / ideal)
	EOF
	say "frames of $2 bytes: $mbps Mb/s"
	expect same -eq 1
	expect permille -le 1030
}

frames_of_9000() {
	for addr in V4 V6; do
		fast $addr 9000
		expect mbps -ge 9500
		fast $addr 1500
		expect mbps -ge 9000
	done
	path_is_whole
}

# New packets follow the MTU of the sender's device and route at once. The pulls follow the length of
# packets, so the link is used after a change.
mtu_of_the_sender_changes() {
	for addr in V4 V6; do
		ndp <<-EOF
			def change(*words):
			    command("ip", "-n", "h1", *words)
			route = ("10.7.0.0/16", "via", "10.7.1.1") if $addr == V4 else ("fd07::/16", "via", "fd07:1::1")
			client, server = pair($addr)
			def part(**name):
			    flow = Flow(client, server, data(5000000), end=False)
			    same, us = move([flow])
			    result(same=same, **{key: info(client)["payload"] for key in name},
			           **{key + "_us": us for key in name})
			    assert same
			part(whole=1)
			change("link", "set", "eth0", "mtu", "1500")
			part(short=1)
			change("link", "set", "eth0", "mtu", "9000")
			part(again=1)
			change("route", "replace", *route, "mtu", "3000")
			part(route=1)
			change("route", "replace", *route)
			part(last=1)
		EOF
		headers=64
		[ $addr = V4 ] || headers=84
		expect whole -eq $((9000 - headers))
		expect short -eq $((1500 - headers))
		expect again -eq $((9000 - headers))
		expect route -eq $((3000 - headers))
		expect last -eq $((9000 - headers))
		expect short_us -le 5200 "5 MB take 4287 us in frames of 1514 bytes, and 4346 us over IPv6"
	done
}

# path_falls ADDRESS: a link on the way gets an MTU of 1500 between two parts of a transfer
path_falls() {
	ndp <<-EOF
		client, server = pair($1)
		before = stat("h1")["errors"]
		assert move([Flow(client, server, data(1000000), end=False)])[0]
		command("ip", "-n", "mid", "link", "set", "to2", "mtu", "1500")
		same, us = move([Flow(client, server, data(5000000, 1))])
		result(same=same, us=us, payload=info(client)["payload"], errors=stat("h1")["errors"] - before,
		       lost=info(client)["lost"], bad=stat("h1")["bad_errors"])
	EOF
	expect same -eq 1
	expect errors -ge 1
	expect us -lt 20000 "5 MB take 4300 us"
}

mtu_of_the_path_falls() {
	path_falls V4
	expect payload -eq 1436
	path_is_whole
	path_falls V6
	expect payload -eq 1416
	path_is_whole
}

# mid has no NDP, and says so: with data, and with the empty packet of a program that waits for data.
# The program learns it soon.
nobody_there() {
	for addr in 10.7.1.1 fd07:1::1; do
		ndp <<-EOF
			began = time.monotonic()
			client = connect("$addr")
			client.send(b"x" * 10000)
			events = wait(client)
			result(us=(time.monotonic() - began) * 1e6,
			       refused=events & select.POLLERR and error(client.recv, 1) == errno.ECONNREFUSED,
			       pipe=error(client.send, b"x") == errno.EPIPE)
			client = connect("$addr")
			wait(client)
			result(waiting=error(client.recv, 1) == errno.ECONNREFUSED)
		EOF
		expect refused -eq 1
		expect pipe -eq 1
		expect waiting -eq 1
		expect us -lt 2000 "over IPv6 after the first timeout, 1 ms"
	done
	ndp_memory h1
	expect memory -eq 0
}

# A connection survives the time in which its peer cannot be reached. If this takes too long, the
# error says what is wrong.
peer_unreachable() {
	for addr in V4 V6; do
		ndp <<-EOF
			def unreachable(what):
			    command("ip", "-n", "mid", "route", what, "unreachable", $addr + "/128" * ($addr == V6))
			sysctl("h1", "timeout_ms", 500)
			client, server = pair($addr)
			# The kernel sends one such error in a second to a host.
			time.sleep(3)
			before = stat("h1")
			unreachable("add")
			client.send(b"x" * 100)
			lost = wait(server, seconds=0.1) == 0 and wait(client, seconds=0.1) == 0
			errors = stat("h1")["errors"] - before["errors"]
			unreachable("del")
			result(survived=lost and wait(server) and server.recv(1000) == b"x" * 100, errors=errors)
			time.sleep(3)
			unreachable("add")
			client.send(b"y")
			result(reason=wait(client, seconds=2) & select.POLLERR and
			              error(client.recv, 1) in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES))
			unreachable("del")
			sysctl("h1", "timeout_ms", 30000)
		EOF
		expect survived -eq 1
		expect errors -ge 1
		expect reason -eq 1
	done
}

# Errors that quote no packet in flight have no effect: another connection, a packet that has arrived,
# less than the header. The same error with a packet in flight has.
forged() {
	for addr in V4 V6; do
		ndp <<-EOF
			six = $addr == V6
			with inside("mid"):
			    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86dd if six else 0x800))
			    packets.bind(("to1", 0))
			    packets.setblocking(False)
			    raw = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_RAW, 58 if six else 1)
			def caught():
			    found = []
			    with contextlib.suppress(BlockingIOError):
			        while True:
			            packet, (_, _, kind, *_) = packets.recvfrom(10000)
			            if kind == 0 and packet[6 if six else 9] == 17:
			                found.append(packet)
			    return found
			def checksum(text):
			    return 65535 - sum(struct.unpack(f"!{len(text) // 2}H", text)) % 65535
			def send(quoted, too_big=False):
			    quoted = quoted[:min(500, len(quoted) & ~1)]
			    # Port unreachable, or too big for an MTU of 1300 bytes.
			    kind = ((2, 0) if six else (3, 4)) if too_big else ((1, 4) if six else (3, 3))
			    rest = struct.pack("!HH", 0, 1300 if too_big else 0)
			    text = bytes(kind) + struct.pack("!H", checksum(bytes(kind) + rest + quoted)) + rest + quoted
			    raw.sendto(text, ("fd07:1::2" if six else "10.7.1.2", 0))
			    time.sleep(0.001)
			at = 48 if six else 28
			def changed(packet, byte):
			    return packet[:at + byte] + bytes([packet[at + byte] ^ 1]) + packet[at + byte + 1:]
			client, server = pair($addr)
			time.sleep(0.01)
			old = [packet for packet in caught()]
			result(old=len(old))
			before = stat("h1")
			send(old[0])
			send(old[0], too_big=True)
			command("tc", "-n", "mid", "qdisc", "replace", "dev", "to2", "root", "netem", "loss", "100%")
			caught()
			fresh = connect($addr)
			fresh.send(b"x" * 400)
			time.sleep(0.0005)
			packet = caught()[0]
			whole = info(fresh)["payload"]
			for wrong in changed(packet, 15), changed(packet, 35), packet[:at + 20]:
			    send(wrong)
			    if not six:
			        send(wrong, too_big=True)
			after = stat("h1")
			result(unmoved=wait(fresh, seconds=0) == 0 and wait(client, seconds=0) == 0, errors=after["errors"] - before["errors"],
			       bad=after["bad_errors"] - before["bad_errors"], payload=six or info(fresh)["payload"] == whole)
			send(packet, too_big=True)
			result(shorter=info(fresh)["payload"] < 1300, still=wait(fresh, seconds=0) == 0)
			send(packet)
			result(refused=wait(fresh, seconds=0) & select.POLLERR and error(fresh.recv, 1) == errno.ECONNREFUSED)
			command("tc", "-n", "mid", "qdisc", "replace", "dev", "to2", "root", "netem", "rate", "10gbit", "limit", "10000")
			result(same=move([Flow(client, server, data(100000))])[0])
		EOF
		expect old -ge 1
		expect unmoved -eq 1
		expect errors -eq 0
		expect bad -ge 5
		expect payload -eq 1
		expect shorter -eq 1
		expect still -eq 1
		expect refused -eq 1
		expect same -eq 1
		path_is_whole
	done
}

# dead_port DEVICE: mid loses all packets from NDP's first UDP port on their way to DEVICE
dead_port() {
	must tc -n mid -batch - <<-EOF
		qdisc replace dev $1 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
		qdisc add dev $1 parent 1:1 netem loss 100%
		qdisc add dev $1 parent 1:2 netem limit 10000 $ndp_wire
		filter add dev $1 parent 1: prio 1 protocol ip u32 match ip sport 20307 0xffff flowid 1:1
		filter add dev $1 parent 1: prio 2 protocol ipv6 u32 match ip6 sport 20307 0xffff flowid 1:1
	EOF
}

# One of 16 paths leads to a dead link, in one direction. Packets without data, which are repeated until they are
# answered, take other paths: a proof of the address, the empty packet of a program that waits for data, a RESET, and
# the pulls of an incast.
dead_path() {
	for dev in to1 to2; do
		dead_port $dev
		for addr in V4 V6; do
			ndp <<-EOF
				# The proof of the address ends.
				time.sleep(61)
				listener = listen(address="::" if ":" in $addr else "")
				began = time.monotonic()
				waiting = connect($addr)
				wait(waiting, seconds=0)
				served = accept(listener)
				served.send(b"welcome")
				result(spoken=wait(waiting) and waiting.recv(100) == b"welcome", us=(time.monotonic() - began) * 1e6)
				refused = connect($addr, port=1)
				refused.send(b"x")
				result(refused=wait(refused) & select.POLLERR and error(refused.recv, 1) == errno.ECONNREFUSED)
				pairs = [pair($addr, listener) for _ in range(40)]
				flows = [Flow(c, s, data(50000, n)) for n, (c, s) in enumerate(pairs)]
				same, incast_us = move(flows)
				result(same=same, incast_us=incast_us)
			EOF
			say "dead path to $dev, $addr: opened in $us us, incast $incast_us us"
			expect spoken -eq 1
			expect us -lt 50000
			expect refused -eq 1
			expect same -eq 1
			expect incast_us -lt 100000 "2 MB take 1.7 ms; timeouts double from 1 ms"
		done
		must tc -n mid qdisc del dev $dev root
		must tc -n mid qdisc add dev $dev root netem limit 10000 $ndp_wire
	done
}

# The packets to h2 take another link, of 1 Gb/s, in the middle of a transfer: the pulls are paced by its rate.
route_moves() {
	must ip link add eth1 netns h2 mtu 9000 type veth peer name to3 netns mid mtu 9000
	must ip -n h2 address add 10.7.3.2/24 dev eth1
	must ip -n h2 link set eth1 up
	must ip -n mid address add 10.7.3.1/24 dev to3
	must ip -n mid link set to3 up
	must tc -n mid qdisc add dev to3 root netem limit 10000 rate 1gbit delay 10us
	ndp <<-'EOF'
		client, server = pair()
		def part():
		    same, us = move([Flow(client, server, data(2000000), end=False)])
		    assert same
		    return us
		result(before_us=part(), before=info(server)["pull_kbps"])
		# For interfaces whose rate is not known.
		sysctl("h2", "link_rate_kbps", 1000000)
		command("ip", "-n", "mid", "route", "add", "10.7.2.2", "via", "10.7.3.2")
		result(after_us=part(), after=info(server)["pull_kbps"])
		command("ip", "-n", "mid", "route", "del", "10.7.2.2")
		sysctl("h2", "link_rate_kbps", 10000000)
		result(back_us=part(), back=info(server)["pull_kbps"])
	EOF
	must ip -n h2 link del eth1
	expect before -eq 10000000
	expect after -eq 1000000
	expect back -eq 10000000
	expect after_us -le 17500 "2 MB take 16.2 ms at 1 Gb/s"
}

memory_is_given_back() {
	within_seconds 70 ndp_idle || fail "memory is not given back: $memory bytes"
}

run_cases hosts frames_of_9000 mtu_of_the_sender_changes mtu_of_the_path_falls nobody_there peer_unreachable \
	forged dead_path route_moves memory_is_given_back
