#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# NDP with little memory: each connection goes on, and no limit is exceeded by much.
# Topology: h1 -- mid -- h2, 10 Gb/s, frames of up to 9000 bytes; no switch trims.

. "$(dirname "$0")/ndp_lib.sh"

hosts() {
	load_ndp
	hosts_up "$ndp_wire" "$ndp_wire" 9000
}

# A receiver that does not read keeps at most twice SO_RCVBUF, although its first packets are short, so
# that the packets which it has told its peer to send take far more memory.
reader_stops() {
	ndp <<-'EOF'
		listener = listen()
		listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
		client, server = pair(listener=listener)
		flow = Flow(client, server, data(3000000))
		with contextlib.suppress(BlockingIOError):
		    flow.send()
		time.sleep(1)
		pulls = info(server)["pulls"]
		time.sleep(1)
		result(memory=stat("h2")["memory"], pulls=info(server)["pulls"] - pulls)
		same, us = move([flow])
		result(same=same, us=us)
	EOF
	expect memory -le 440000 "twice 200 KB, a packet, and the connection"
	expect pulls -le 10 "refused packets must not come again and again"
	expect same -eq 1
	expect us -lt 200000 "timeouts double up to 100 ms"
}

# A receive buffer that is smaller than a packet holds one packet at a time. Programs that poll for more
# than fits wake.
small_buffer() {
	ndp <<-'EOF'
		def small(bytes, **ends):
		    listener = listen()
		    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, bytes)
		    client = connect(**ends)
		    client.send(b"!")
		    server = accept(listener)
		    assert wait(server) and server.recv(1) == b"!"
		    return client, server
		same, us = move([Flow(*small(4096), data(200000))], 5)
		result(same=same, us=us, local=move([Flow(*small(32768, ns="h2"), data(3000000))], 5)[0])
		client, server = small(4096)
		assert move([Flow(client, server, data(9000), end=False)], 5)[0]
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 200)
		for part in b"x" * 100, b"y" * 100:
		    client.send(part)
		    time.sleep(0.001)
		result(woken=wait(server, seconds=1) and server.recv(200) == b"x" * 100 and
		             wait(server, seconds=1) and server.recv(200) == b"y" * 100)
	EOF
	expect same -eq 1
	expect us -lt 20000 "23 packets, each after a round trip of 40 us and with 9000 bytes"
	expect local -eq 1 "the loopback device has packets of 64 KB"
	expect woken -eq 1
}

# Where packets are lost, those out of order take no more than twice SO_RCVBUF, and the missing one is
# kept nevertheless.
out_of_order() {
	ndp_wires loss 5%
	ndp <<-'EOF'
		listener = listen()
		listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50000)
		most, pairs = 0, [pair(listener=listener) for _ in range(4)]
		flows = [Flow(c, s, data(1000000, n)) for n, (c, s) in enumerate(pairs)]
		def receive(self, plain=Flow.receive):
		    global most
		    most = max(most, stat("h2")["memory"])
		    plain(self)
		Flow.receive = receive
		same, us = move(flows)
		result(same=same, us=us, most=most)
	EOF
	expect same -eq 1
	expect us -lt 500000
	expect most -le $((4 * 240000)) "for each connection twice 100 KB, a packet, and 16 KB"
}

# 100 connections from two hosts fill the memory of the third, where packets are lost. Those out of
# order do not keep the missing ones away, and those that wait to be sent at one host those of others.
many_with_little() {
	ndp_wires loss 30%
	echo 4 >/sys/module/ndp/parameters/max_memory_mb
	ndp <<-'EOF'
		listener = listen()
		flows = []
		for number in range(100):
		    client = connect(ns=("h1", "mid")[number % 2])
		    client.send(b"!")
		    server = accept(listener)
		    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 200000)
		    flows.append(Flow(client, server, b"!" + data(200000, number)))
		    flows[-1].sent = 1
		before = stat("h2")["no_memory"]
		same, us = move(flows, 5)
		result(same=same, us=us, refused=stat("h2")["no_memory"] - before)
	EOF
	echo 0 >/sys/module/ndp/parameters/max_memory_mb
	expect same -eq 1
	expect us -lt 2000000 "without losses, and with memory, 20 MB take 16 ms"
	expect refused -ge 1
}

memory_is_given_back() {
	within_seconds 70 ndp_idle || fail "memory is not given back: $memory bytes"
}

run_cases hosts reader_stops small_buffer out_of_order many_with_little memory_is_given_back
