#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# NDP over a switch that trims packets: the qdisc trim, with eight packets, at mid's link to h2.
# Topology: h1 -- mid -- h2. h1 sends faster than the link to h2, which has 10 Gb/s, so many
# connections of h1 are an incast.

. "$(dirname "$0")/ndp_lib.sh"

# The directory of tc's plugin for trim
export TC_LIB_DIR="$modules"

hosts() {
	[ -e "$modules/sch_trim.ko" ] || fail "no sch_trim.ko in $modules"
	must insmod "$modules/sch_trim.ko"
	ndp_hosts
	must tc -n mid qdisc replace dev to1 root netem limit 10000 delay 10us
}

# trims [OPTION...]: the link to h2 has a qdisc trim with these options
trims() {
	must tc -n mid qdisc replace dev to2 root handle 1: tbf rate 10gbit burst 1600 limit 10000000
	must tc -n mid qdisc replace dev to2 parent 1:1 trim "$@"
}

# incast CONNECTIONS BYTES: all connections send at the same time
incast() {
	ndp <<-EOF
		count, size = $1, $2
		listener = listen()
		clients = [connect() for _ in range(count)]
		texts = [data(size, seed) for seed in range(count)]
		began = time.monotonic()
		for client, text in zip(clients, texts):
		    client.send(text[:1 << 20])
		servers = {}
		while len(servers) < count:
		    server, address = listener.accept() if wait(listener) else sys.exit("a connection is missing")
		    server.setblocking(False)
		    servers[address[1]] = server
		flows = [Flow(c, servers[c.getsockname()[1]], t, end=False) for c, t in zip(clients, texts)]
		for flow in flows:
		    flow.sent = min(size, 1 << 20)
		same, _ = move(flows, 5)
		us = (time.monotonic() - began) * 1e6
		sent = [info(c) for c in clients]
		# A packet of 1436 bytes takes 1514 bytes of the link; the first ones have 1428 bytes.
		ideal = count * size / 1436 * 1514 * 8 / 10e9 * 1e6
		result(same=same, us=us, percent=100 * us / ideal, trimmed=sum(info(s)["trimmed"] for s in servers.values()),
		       nacked=sum(i["nacked"] for i in sent), lost=sum(i["lost"] for i in sent),
		       returned=sum(i["returned"] for i in sent), graceful=sum(i["flags"] & GRACEFUL > 0 for i in sent),
		       data=sum(i["sent"] for i in sent), packets=count * -(-size // 1428))
	EOF
	expect same -eq 1
	within_seconds 2 ndp_idle || fail "connections are left: $memory bytes"
	say "$1 x $2 bytes: $us us, $percent % of the ideal time; trimmed $trimmed, lost $lost, returned $returned, sent $data of $packets"
}

# No packet is lost, and the last byte arrives nearly as soon as the link allows.
incasts() {
	# The packets of h1 arrive at once, and the headers of all of them must have place.
	trims header_limit 1000000
	incast 7 10000
	expect lost -eq 0
	incast 7 100000
	expect trimmed -ge 50
	expect nacked -eq "$trimmed"
	expect lost -eq 0
	expect graceful -eq 0
	expect percent -le 120
	incast 100 45000
	expect lost -eq 0
	expect percent -le 120
}

# Pulls for short packets are as close together as these packets, even if the connection has sent longer ones.
short_packets() {
	trims header_limit 1000000
	ndp <<-'EOF'
		listener = listen()
		flows = []
		for i in range(40):
		    client, server = pair(listener=listener)
		    flows.append(Flow(client, server, data(3000, i), end=False))
		same, _ = move(flows)
		result(long=same)
		# 300 bytes of data, for which the link takes 378 bytes, or 0.30 us.
		for flow in flows:
		    flow.data += data(300)
		    flow.done = False
		    flow.hash = hashlib.sha256()
		    flow.hash.update(flow.data[:3000])
		same, us = move(flows)
		result(short=same, us=us, trimmed=sum(info(f.receiver)["trimmed"] for f in flows))
	EOF
	expect long -eq 1
	expect short -eq 1
	expect trimmed -ge 20
	expect us -le 50
}

# The queue for headers has place for few, and the switch returns the others.
returned_packets() {
	trims header_limit 2000 return
	# The last packet has 412 bytes of data: packets that are too short to be trimmed are dropped.
	incast 50 30400
	expect returned -ge 50
	expect lost -eq 0
}

run_cases hosts incasts short_packets returned_packets
