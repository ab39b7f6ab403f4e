#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# NDP over links that lose, duplicate, reorder and damage packets, in both directions: every byte
# arrives once and intact. Topology: h1 -- mid -- h2; no switch trims.

. "$(dirname "$0")/ndp_lib.sh"

# both_ways_arrive MICROSECONDS: 1 MB in each direction arrives, over both families, within the time
both_ways_arrive() {
	for addr in V4 V6; do
		ndp <<-EOF
			same, us, infos = both_ways($addr)
			result(same=same, us=us, lost=sum(i["lost"] for i in infos),
			       graceful=all(i["flags"] & GRACEFUL for i in infos),
			       repeated=sum(i["repeated"] for i in infos))
		EOF
		expect same -eq 1
		expect us -lt "$1"
	done
}

lost() {
	ndp_wires loss 0.1%
	both_ways_arrive 20000
	ndp_wires loss 1%
	both_ways_arrive 20000
	ndp_wires loss 10%
	both_ways_arrive 100000
	expect lost -ge 50
	expect graceful -eq 1 "packets were lost and none was trimmed"
}

# timelyctl doctor finds connections that have lost packets, while they are open, and no switch that trims.
doctor() {
	ndp_wires loss 3%
	ndp <<-EOF
		client, server = pair()
		move([Flow(client, server, data(1000000), end=False)])
		found = subprocess.run(["ip", "netns", "exec", "h1", "$modules/timelyctl", "-j", "doctor"],
		                       stdout=subprocess.PIPE).stdout
		result(found='"check":"ndp-trim"' in found.decode())
	EOF
	expect found -eq 1
}

duplicated() {
	ndp_wires duplicate 20%
	both_ways_arrive 20000
	expect repeated -ge 100
	expect lost -eq 0
}

reordered() {
	ndp_wires delay 100us 90us distribution normal
	both_ways_arrive 100000
	ndp_wires reorder 30% 50%
	both_ways_arrive 20000
}

damaged() {
	ndp_wires corrupt 5%
	both_ways_arrive 200000
	ndp <<-'EOF'
		result(headers=stat("h2")["damaged"] + stat("h2")["malformed"])
	EOF
	expect headers -ge 10
}

all_at_once() {
	ndp_wires delay 50us 20us loss 3% duplicate 3% corrupt 1%
	both_ways_arrive 500000
}

# 200 short connections one after the other, with losses: each request is delivered once.
short_connections() {
	ndp_wires loss 5% duplicate 5%
	ndp <<-'EOF'
		listener = listen()
		good = 0
		for number in range(200):
		    client = connect()
		    client.send(b"%d" % number)
		    client.shutdown(socket.SHUT_WR)
		    server = accept(listener)
		    text = b""
		    while wait(server):
		        part = server.recv(100)
		        if not part:
		            break
		        text += part
		    server.send(text)
		    server.close()
		    assert wait(client)
		    good += client.recv(100) == text == b"%d" % number
		    client.close()
		time.sleep(1)
		result(good=good, more=wait(listener, seconds=0.1), opened=stat("h1")["opened"],
		       accepted=stat("h2")["accepted"])
	EOF
	expect good -eq 200
	expect more -eq 0 "a connection was opened twice"
	expect accepted -eq "$opened"
}

# No packet arrives for a second, in both directions, in the middle of a transfer.
blackout() {
	ndp_wires
	ndp <<-'EOF'
		client, server = pair()
		flow = Flow(client, server, data(5000000))
		while flow.got < 1000000:
		    if wait(client, select.POLLOUT, 0):
		        with contextlib.suppress(BlockingIOError):
		            flow.send()
		    if wait(server, seconds=0.001):
		        flow.receive()
		for name in "to1", "to2":
		    command("tc", "-n", "mid", "qdisc", "replace", "dev", name, "root", "netem", "loss", "100%")
		move([flow], 1)
		result(stopped=flow.got < 5000000)
		for name in "to1", "to2":
		    command("tc", "-n", "mid", "qdisc", "replace", "dev", name, "root", "netem", "rate", "10gbit",
		            "limit", "10000")
		same, us = move([flow])
		result(same=same, us=us)
	EOF
	expect stopped -eq 1
	expect same -eq 1
	expect us -lt 300000 "timeouts double up to 100 ms"
}

hosts() {
	ndp_hosts
}

run_cases hosts lost doctor duplicated reordered damaged all_at_once short_connections blackout
