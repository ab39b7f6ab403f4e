#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# NDP sockets: the calls of programs, states, ends of connections, limits, unloading.
# Topology: h1 -- mid -- h2; mid routes, the links have 10 Gb/s and no switch trims.

. "$(dirname "$0")/ndp_lib.sh"

# Without the module there are no NDP sockets, and socket() does not load the module.
not_without_the_module() {
	refused "$python" -I -c 'import socket; socket.socket(type=socket.SOCK_STREAM, proto=259)'
	grep -q "not supported" "$work/refused" || fail "another error: $(tail -n 1 "$work/refused")"
	refused insmod "$modules/ndp.ko" port=0
	ndp_hosts
}

# What NDP does not have is refused with the usual errors.
refuses() {
	ndp <<-'EOF'
		s = ndp_socket("h1")
		result(kind=error(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, IPPROTO_NDP)) ==
		            errno.EPROTONOSUPPORT or
		            error(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, IPPROTO_NDP)) ==
		            errno.ESOCKTNOSUPPORT,
		       unconnected=error(s.send, b"x") in (errno.ENOTCONN, errno.EPIPE),
		       receive=error(s.recv, 1) == errno.ENOTCONN,
		       multicast=error(s.connect, ("224.0.0.1", PORT)) == errno.ENETUNREACH,
		       no_port=error(s.connect, (V4, 0)) == errno.EADDRNOTAVAIL,
		       option=error(s.setsockopt, SOL_NDP, 77, 1) == errno.ENOPROTOOPT,
		       tcp_option=error(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_CONGESTION, 1) ==
		                  errno.ENOPROTOOPT,
		       nodelay=error(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) == 0,
		       urgent=error(s.send, b"x", socket.MSG_OOB) == errno.EOPNOTSUPP,
		       zeros=not any(list(info(s).values())[3:]))
		s.connect((V4, PORT))
		result(again=error(s.connect, (V4, PORT)) == errno.EISCONN,
		       listen=error(s.listen) == errno.EINVAL)
	EOF
	for what in kind unconnected receive multicast no_port option tcp_option nodelay urgent zeros again \
			listen; do
		expect $what -eq 1
	done
}

# Both families, and IPv4 by a socket of IPv6; names of both ends; data in both directions.
carries_streams() {
	for addr in V4 V6 MAPPED; do
		ndp <<-EOF
			listener = listen(address="" if $addr == V4 else "::")
			client, server = pair($addr, listener)
			result(names=client.getsockname()[:2] == server.getpeername()[:2] and
			             client.getpeername()[:2] == server.getsockname()[:2] == ($addr, PORT))
			same, us = move([Flow(client, server, data(3000000, 1)), Flow(server, client, data(2000000, 2))])
			result(same=same, us=us, pulls=info(server)["pulls"], lost=info(client)["lost"],
			       kbps=info(server)["pull_kbps"])
		EOF
		expect same -eq 1
		expect names -eq 1
		expect us -lt 5000 "3 MB take 2400 us at 10 Gb/s"
		expect lost -eq 0
		expect pulls -ge 1000
		expect kbps -eq 0 "the connection has ended"
	done
	within_seconds 1 ndp_idle || fail "memory is not given back: $memory bytes"
}

# Both sockets are on one host, at one of its addresses.
same_host() {
	for addr in V4 V6; do
		ndp <<-EOF
			listener = listen(address="" if $addr == V4 else "::")
			client = connect($addr, ns="h2")
			client.send(b"!")
			server = accept(listener)
			assert wait(server) and server.recv(1) == b"!"
			same, us = move([Flow(client, server, data(300000, 1)), Flow(server, client, data(200000, 2))])
			result(same=same, returned=stat("h2")["returned"])
		EOF
		expect same -eq 1
		expect returned -eq 0
	done
}

# Data travels in the first packets: a request and its answer need one round trip of 40 us.
needs_no_handshake() {
	ndp <<-'EOF'
		listener = listen()
		client = ndp_socket("h1")
		began = time.monotonic()
		client.connect((V4, PORT))
		client.send(b"request")
		server = accept(listener)
		assert wait(server) and server.recv(100) == b"request"
		server.send(b"answer")
		assert wait(client) and client.recv(100) == b"answer"
		result(us=(time.monotonic() - began) * 1e6)
		# MSG_FASTOPEN connects and sends in one call.
		client = ndp_socket("h1")
		client.sendto(b"fast", socket.MSG_FASTOPEN, (V4, PORT))
		server = accept(listener)
		result(fast=wait(server) and server.recv(100) == b"fast")
	EOF
	expect us -lt 80
	expect fast -eq 1
}

# A program that polls for input wakes when SO_RCVLOWAT bytes have arrived, or the end of the stream.
# A program that waits in recv() for the rest of SO_RCVLOWAT bytes gets it.
polls_for_enough() {
	ndp <<-'EOF'
		client, server = pair()
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 3000)
		client.send(data(2999))
		result(few=wait(server, seconds=0.01))
		client.send(b"x")
		result(enough=wait(server))
		server.recv(1000)
		result(less=wait(server, seconds=0.01))
		poll = select.epoll()
		poll.register(server, select.EPOLLIN)
		result(idle=len(poll.poll(0.01)))
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 2000)
		result(lowered=len(poll.poll(0.01)))
		server.recv(1000)
		server.setblocking(True)
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1500)
		child = os.fork()
		if not child:
		    time.sleep(0.01)
		    client.send(data(500))
		    os._exit(0)
		result(rest=len(server.recv(2000)))
		os.waitpid(child, 0)
		client.send(b"y")
		client.shutdown(socket.SHUT_WR)
		result(end=wait(server))
	EOF
	expect few -eq 0
	expect enough -eq 1
	expect less -eq 0
	expect idle -eq 0
	expect lowered -eq 1
	expect rest -eq 1500
	expect end -ge 1
}

# Programs that poll for more than the namespace has memory for wake when half of the memory is used: here 30
# connections with 100 KB each and a limit of 4 MB, which counts the packets' memory.
polls_without_memory() {
	echo 4 >/sys/module/ndp/parameters/max_memory_mb
	ndp <<-'EOF'
		poll, clients, servers = select.poll(), [], {}
		for port in range(PORT, PORT + 30):
		    listener = listen(port=port)
		    clients.append(connect(port=port))
		    clients[-1].send(b"!")
		    server = accept(listener)
		    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 20)
		    servers[server.fileno()] = server
		    poll.register(server, select.POLLIN)
		for turn in range(10):
		    for client in clients:
		        client.send(data(10000))
		    time.sleep(0.001)
		for client in clients:
		    client.shutdown(socket.SHUT_WR)
		got, began = 0, time.monotonic()
		while servers and time.monotonic() - began < 2:
		    for fd, _ in poll.poll(100):
		        part = len(servers[fd].recv(1 << 20))
		        got += part
		        if not part:
		            poll.unregister(fd)
		            servers.pop(fd).close()
		result(got=got, memory=stat("h2")["no_memory"])
	EOF
	echo 0 >/sys/module/ndp/parameters/max_memory_mb
	expect got -eq 3000030
	expect memory -ge 1 "there was memory for all packets: the case shows nothing"
}

# A client that waits for the server's first word is accepted before it has sent data.
server_speaks_first() {
	ndp <<-'EOF'
		listener = listen()
		client = connect()
		result(not_yet=not select.select([listener], [], [], 0.0005)[0])
		poll = select.poll()
		poll.register(client, select.POLLIN)
		assert not poll.poll(0)
		server = accept(listener)
		server.send(b"welcome")
		result(spoken=wait(client) and client.recv(100) == b"welcome")
		# A client that closes without a word is accepted, too.
		connect().close()
		server = accept(listener)
		result(ended=wait(server) and server.recv(1) == b"")
	EOF
	expect not_yet -eq 1
	expect spoken -eq 1
	expect ended -eq 1
}

# A program that has connected and does not send, receive or poll: its peer learns of it after 1 ms.
opens_without_data() {
	ndp <<-'EOF'
		listener = listen()
		client = ndp_socket("h1")
		client.connect((V4, PORT))
		result(early=select.select([listener], [], [], 0.0009)[0] != [])
		result(opened=select.select([listener], [], [], 0.001)[0] != [])
		server = accept(listener)
		client.send(b"late")
		result(late=wait(server) and server.recv(100) == b"late")
		before = stat("h2")["received"]
		other = ndp_socket("h1")
		other.connect((V4, PORT))
		other.send(b"data")
		served = accept(listener)
		time.sleep(0.01)
		result(packets=stat("h2")["received"] - before)
	EOF
	expect early -eq 0
	expect opened -eq 1
	expect late -eq 1
	expect packets -eq 1 "a connection with data needs no packet to open"
}

# The first packet to a port without a listener is answered by a RESET.
refused_connection() {
	ndp <<-'EOF'
		for key, address in ("four", V4), ("six", V6):
		    client = connect(address, port=1)
		    client.send(b"x")
		    events = wait(client)
		    result(**{key: events & select.POLLERR and error(client.recv, 1) == errno.ECONNREFUSED})
		result(counted=stat("h2")["refused"])
	EOF
	expect four -eq 1
	expect six -eq 1
	expect counted -eq 2
}

# Each stream ends by itself. The states are those of TCP.
half_close() {
	ndp <<-'EOF'
		client, server = pair()
		client.send(b"question")
		client.shutdown(socket.SHUT_WR)
		time.sleep(0.01)
		result(fin_wait=info(client)["state"] == FIN_WAIT2, close_wait=info(server)["state"] == CLOSE_WAIT,
		       pipe=error(client.send, b"x") == errno.EPIPE)
		result(question=server.recv(100) == b"question", end=server.recv(100) == b"")
		result(same=move([Flow(server, client, data(1000000))])[0])
		time.sleep(0.01)
		result(closed=info(client)["state"] == info(server)["state"] == CLOSE)
	EOF
	for what in fin_wait close_wait pipe question end same closed; do
		expect $what -eq 1
	done
}

# poll() and calls that do not wait; SO_RCVTIMEO; MSG_PEEK, MSG_WAITALL; SIOCINQ.
non_blocking() {
	ndp <<-'EOF'
		import fcntl, termios
		client, server = pair()
		result(empty=error(server.recv, 1) == errno.EAGAIN, out=wait(client, select.POLLOUT),
		       silent=not wait(server, seconds=0.01))
		client.send(b"abcdef")
		result(readable=wait(server), peeked=server.recv(3, socket.MSG_PEEK) == b"abc",
		       queued=struct.unpack("i", fcntl.ioctl(server, termios.FIONREAD, b"0000"))[0],
		       read=server.recv(3) == b"abc", rest=server.recv(100) == b"def")
		client.send(b"12")
		server.setblocking(True)
		server.settimeout(None)
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
		began = time.monotonic()
		result(partial=server.recv(10, socket.MSG_WAITALL) == b"12",
		       ms=(time.monotonic() - began) * 1000)
		peek = lambda count: server.recv(count, socket.MSG_PEEK | socket.MSG_WAITALL)
		def peer():
		    for text in b"34", b"56", b"7":
		        time.sleep(0.02)
		        client.send(text)
		thread = threading.Thread(target=peer)
		thread.start()
		result(all=peek(4) == b"3456" and server.recv(4) == b"3456")
		began = time.monotonic()
		result(few=peek(4) == b"7", peek_ms=(time.monotonic() - began) * 1000)
		thread.join()
		client.shutdown(socket.SHUT_WR)
		result(end=peek(4) == b"7" and server.recv(4) == b"7" and peek(4) == b"")
		listener = listen()
		listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50000)
		client, server = pair(listener=listener)
		flow = Flow(client, server, data(200000))
		flow.send()
		server.setblocking(True)
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 2, 0))
		began = time.monotonic()
		result(full=len(peek(100000)), full_ms=(time.monotonic() - began) * 1000)
		server.setblocking(False)
		result(same=move([flow])[0])
	EOF
	for what in empty silent readable peeked read rest partial all few end same full; do
		expect $what -ge 1
	done
	expect out -ge 4
	expect queued -eq 6
	expect_near ms 50 30
	expect_near peek_ms 50 30
	expect full -lt 100000 "the receive buffer has 100 KB, and packets take more than their data"
	expect full_ms -lt 100 "a call that looks at data must not wait for data that has no room"
}

# Calls that write little fill up the last packet while it waits to be sent. If a program writes to two sockets by
# turns, the data of a packet lies in page fragments, of which there are three at most.
fills_packets() {
	ndp <<-'EOF'
		client, server = pair()
		flow = Flow(client, server, data(240000))
		for flow.sent in range(600, 240001, 600):
		    client.send(flow.data[flow.sent - 600:flow.sent])
		same, us = move([flow])
		result(same=same, us=us, sent=info(client)["sent"])
		flows = [Flow(*pair(), data(120000, seed)) for seed in range(2)]
		for sent in range(100, 120001, 100):
		    for flow in flows:
		        flow.sender.send(flow.data[sent - 100:sent])
		        flow.sent = sent
		result(turns_same=move(flows)[0], turns=info(flows[0].sender)["sent"])
	EOF
	expect same -eq 1
	expect turns_same -eq 1
	expect turns -ge 390 "a packet has three page fragments"
	expect turns -le 430 "30 packets of 100 bytes are sent at once; the rest are 390 packets of 300 bytes"
	expect sent -le 200 "30 packets of 600 bytes are sent at once; the rest are 157 full packets of 1428 or 1436 bytes"
	expect us -le 300 "240 KB take 230 us"
}

# A message of 400 KB is pulled before three streams of which more has arrived; with short_first=0 it gets a quarter.
short_first() {
	ndp <<-'EOF'
		def message_us(value):
		    sysctl("h2", "short_first", value)
		    longs = [Flow(*pair(), data(4000000, seed)) for seed in range(3)]
		    move(longs, 0.005)
		    message = Flow(*pair(), data(400000))
		    same, us = move([message])
		    result(same=same and move(longs)[0])
		    return us
		result(first=message_us(1))
		result(fair=message_us(0))
		sysctl("h2", "short_first", 1)
	EOF
	expect same -eq 1
	# A quarter of 9.2 Gb/s; the first windows of all four connections wait in the network.
	expect_near fair 1350 15
	expect first -le $((fair * 6 / 10)) "seven of eight pulls are for the message"
}

# A receiver that does not read stops the sender, and memory stays bounded. The stream goes on when
# the receiver reads again.
reader_stops() {
	ndp <<-'EOF'
		listener = listen()
		listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
		client, server = pair(listener=listener)
		flow = Flow(client, server, data(20000000))
		began = time.monotonic()
		while time.monotonic() - began < 0.5:
		    if wait(client, select.POLLOUT, 0.05):
		        try:
		            flow.send()
		        except BlockingIOError:
		            pass
		    else:
		        break
		time.sleep(2)
		result(sent=flow.sent, room=info(client)["room"], memory=stat("h2")["memory"],
		       own=stat("h1")["memory"], state=info(client)["state"])
		result(same=move([flow])[0])
	EOF
	expect sent -lt 2000000
	expect room -eq 0
	expect memory -lt 300000 "the receive buffer has 200 KB"
	expect own -lt 3000000 "the send buffer has 1 MB"
	expect state -eq 1
	expect same -eq 1
}

# A call that sends no bytes fails where one that sends some would.
sends_nothing() {
	ndp <<-'EOF'
		client, server = pair()
		result(unconnected=error(ndp_socket("h1").send, b"") == errno.ENOTCONN,
		       connected=client.send(b"") == 0 and not wait(server, seconds=0.01))
		client.shutdown(socket.SHUT_WR)
		result(ended=error(client.send, b"") == errno.EPIPE)
		client, server = pair()
		client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		client.close()
		result(told=wait(server), reset=error(server.send, b"") == errno.ECONNRESET,
		       closed=error(server.send, b"") == errno.EPIPE)
	EOF
	for what in unconnected connected ended reset closed; do
		expect $what -eq 1
	done
}

# The RESET is lost. The next packet that a peer sends which only receives is answered by another one.
lost_reset() {
	ndp <<-'EOF'
		listener = listen()
		client = ndp_socket("h1")
		client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50000)
		client.connect((V4, PORT))
		client.send(b"!")
		server = accept(listener)
		assert wait(server) and server.recv(1) == b"!"
		with contextlib.suppress(BlockingIOError):
		    server.send(bytes(1000000))
		time.sleep(0.05)
		before = stat("h1")["resets_received"]
		to_h1 = "tc", "-n", "mid", "qdisc", "replace", "dev", "to1", "root", "netem"
		command(*to_h1, "loss", "100%")
		server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		server.close()
		time.sleep(0.01)
		command(*to_h1, "rate", "10gbit", "delay", "10us", "limit", "10000")
		result(lost=stat("h1")["resets_received"] == before and info(client)["state"] == ESTABLISHED)
		got, began, reset = 0, time.monotonic(), 0
		while not reset and wait(client, seconds=2):
		    try:
		        got += len(client.recv(100000))
		    except ConnectionResetError:
		        reset = 1
		result(got=got, reset=reset, ms=(time.monotonic() - began) * 1000)
	EOF
	expect lost -eq 1
	expect got -ge 10000
	expect reset -eq 1
	expect ms -lt 100
}

# A reset after a part of the data: the call returns that part, and the next one the error.
reset_after_data() {
	ndp <<-'EOF'
		client, server = pair()
		server.setblocking(True)
		def peer():
		    time.sleep(0.05)
		    client.send(b"x" * 100)
		    time.sleep(0.05)
		    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		    client.close()
		thread = threading.Thread(target=peer)
		thread.start()
		result(part=len(server.recv(1000, socket.MSG_WAITALL)), reset=error(server.recv, 1) == errno.ECONNRESET)
		thread.join()
	EOF
	expect part -eq 100
	expect reset -eq 1
}

# Data that arrives while close() waits for the peer (SO_LINGER) is lost, so the peer gets a reset.
data_during_close() {
	ndp <<-'EOF'
		before = stat("h2")["resets_sent"]
		client, server = pair()
		server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
		server.setblocking(True)
		sent = 0
		with contextlib.suppress(BlockingIOError):
		    while sent < 20000000:
		        sent += server.send(bytes(100000), socket.MSG_DONTWAIT)
		        time.sleep(0.001)
		thread = threading.Thread(target=server.close)
		thread.start()
		time.sleep(0.1)
		waits = thread.is_alive()
		client.send(b"late")
		time.sleep(0.05)
		got = 0
		with contextlib.suppress(ConnectionResetError):
		    while wait(client) and (part := client.recv(1 << 20)):
		        got += len(part)
		thread.join()
		time.sleep(0.05)
		result(waits=waits, all=got == sent, resets=stat("h2")["resets_sent"] - before,
		       told=error(client.send, b"x") in (errno.ECONNRESET, errno.EPIPE))
	EOF
	expect waits -eq 1
	expect all -eq 1
	expect resets -eq 1
	expect told -eq 1
}

# Data of a closed socket arrives even if the peer takes far more than a minute, as long as it takes some.
slow_reader_of_a_closed_socket() {
	ndp <<-'EOF'
		listener = listen()
		listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50000)
		client, server = pair(listener=listener)
		sent = 0
		with contextlib.suppress(BlockingIOError):
		    while sent < 500000:
		        sent += client.send(bytes(500000 - sent))
		client.close()
		began, got = time.monotonic(), 0
		with contextlib.suppress(ConnectionResetError):
		    while part := wait(server) and server.recv(100000):
		        got += len(part)
		        time.sleep(45)
		result(seconds=time.monotonic() - began, all=got == sent == 500000)
	EOF
	expect all -eq 1
	expect seconds -ge 130 "longer than two minutes, each with less than 200 KB"
}

# accept() ends when another thread makes the listener an ordinary socket with connect(AF_UNSPEC).
listener_disconnected() {
	ndp <<-'EOF'
		listener = listen()
		listener.setblocking(True)
		errors = []
		thread = threading.Thread(target=lambda: errors.append(error(listener.accept)), daemon=True)
		thread.start()
		time.sleep(0.05)
		libc.connect(listener.fileno(), bytes(16), 16)
		thread.join(2)
		result(ended=errors == [errno.EINVAL], accepts=error(listener.accept) == errno.EINVAL)
	EOF
	expect ended -eq 1
	expect accepts -eq 1
}

# A listener that stops to listen keeps the port of bind(), and can listen again. One without bind() has another port.
listens_again() {
	ndp <<-'EOF'
		listener = listen()
		listener.shutdown(socket.SHUT_RD)
		result(stopped=error(listener.accept) == errno.EINVAL, kept=error(listen) == errno.EADDRINUSE)
		listener.listen()
		result(port=listener.getsockname()[1] == PORT, works=error(pair, V4, listener) == 0)
		unbound = ndp_socket("h2")
		unbound.listen()
		unbound.shutdown(socket.SHUT_RD)
		result(released=unbound.getsockname()[1] == 0)
		unbound.listen()
		result(chosen=unbound.getsockname()[1] > 0)
	EOF
	for what in stopped kept port works released chosen; do
		expect $what -eq 1
	done
}

# A program that closes a socket with unread data, or with SO_LINGER 0, resets the connection.
resets() {
	ndp <<-'EOF'
		before = stat("h1")["resets_received"]
		for key, linger in ("unread", False), ("linger", True):
		    client, server = pair()
		    if linger:
		        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		    else:
		        client.send(b"x" * 100000)
		        time.sleep(0.01)
		    server.close()
		    result(**{key: wait(client) & select.POLLERR and error(client.recv, 1) == errno.ECONNRESET,
		              key + "_pipe": error(client.send, b"x") == errno.EPIPE})
		result(counted=stat("h1")["resets_received"] - before)
	EOF
	expect unread -eq 1
	expect linger -eq 1
	expect unread_pipe -eq 1
	expect linger_pipe -eq 1
	expect counted -eq 2
}

# A peer that does not answer any more: with data after timeout_ms, without data only if SO_KEEPALIVE
# is set. A link that is down for a second loses nothing.
dead_peer() {
	ndp <<-'EOF'
		sysctl("h1", "timeout_ms", 2000)
		sysctl("h1", "keepalive_ms", 3000)
		client, server = pair()
		idle, idle_server = pair()
		asks, asks_server = pair()
		asks.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
		down = lambda: command("ip", "-n", "mid", "link", "set", "to2", "down")
		time.sleep(5)
		result(alive=info(asks)["state"] == ESTABLISHED)
		down()
		client.send(b"hello")
		time.sleep(1)
		command("ip", "-n", "mid", "link", "set", "to2", "up")
		result(survived=wait(server) and server.recv(100) == b"hello")
		time.sleep(0.5)
		down()
		client.send(b"anybody?")
		began = time.monotonic()
		result(dead=wait(client, seconds=10) & select.POLLERR and
		            error(client.recv, 1) == errno.ETIMEDOUT,
		       ms=(time.monotonic() - began) * 1000)
		result(asked=wait(asks, seconds=10) & select.POLLERR and error(asks.recv, 1) == errno.ETIMEDOUT,
		       idle=info(idle)["state"] == ESTABLISHED)
		command("ip", "-n", "mid", "link", "set", "to2", "up")
	EOF
	expect alive -eq 1
	expect survived -eq 1
	expect dead -eq 1
	expect_near ms 2000 10
	expect asked -eq 1
	expect idle -eq 1
}

# Ports: one listener for each address and port; a connection's port is free when it has closed. A socket without a
# port gets one of the namespace's range, as long as one is free.
ports() {
	ndp <<-'EOF'
		def local_ports(new):
		    path = "/proc/sys/net/ipv4/ip_local_port_range"
		    with open(path) as file:
		        usual = file.read()
		    with open(path, "w") as file:
		        file.write(new)
		    return usual
		listener = listen()
		again = lambda address: error(lambda: listen(address=address))
		result(same=again("") == errno.EADDRINUSE, one=again(V4) == errno.EADDRINUSE,
		       both=again("::") == errno.EADDRINUSE, other=error(lambda: listen(port=PORT + 1)) == 0)
		client, server = pair(listener=listener)
		listener.close()
		result(reopened=error(lambda: listen()) == 0)
		bound = ndp_socket("h1")
		bound.bind(("", 7777))
		bound.connect((V4, PORT))
		result(number=bound.getsockname() == ("10.7.1.2", 7777))
		with inside("h1"):
		    usual = local_ports("40000 40003")
		chosen = [ndp_socket("h1") for _ in range(4)]
		for sock in chosen:
		    sock.bind(("", 0))
		result(all=sorted(sock.getsockname()[1] for sock in chosen) == list(range(40000, 40004)),
		       none=error(ndp_socket("h1").bind, ("", 0)) == errno.EADDRINUSE)
		chosen.pop(2).close()
		result(freed=connect().getsockname()[1] in range(40000, 40004))
		with inside("h1"):
		    local_ports(usual)
	EOF
	for what in same one both other reopened number all none freed; do
		expect $what -eq 1
	done
}

# Sockets with SO_REUSEADDR share a port, but not without end: each bind() looks at all of them.
many_sockets_of_a_port() {
	ndp <<-'EOF'
		import resource
		resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
		def bind(port=6000):
		    sock = ndp_socket("h1")
		    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		    sock.bind(("", port))
		    return sock
		bound = [bind() for _ in range(1024)]
		result(full=error(bind) == errno.EADDRINUSE, other=error(bind, 6001) == 0)
		listener = listen()
		bound[0].connect((V4, PORT))
		bound[0].send(b"x")
		result(used=accept(listener).getpeername() == ("10.7.1.2", 6000))
		bound.pop().close()
		result(free=error(bind) == 0)
	EOF
	for what in full other used free; do
		expect $what -eq 1
	done
}

# 400 connections at once: all data arrives.
many_connections() {
	ndp <<-'EOF'
		listener = listen()
		clients = [connect() for _ in range(400)]
		text = [data(20000, seed) for seed in range(400)]
		for client, part in zip(clients, text):
		    assert client.send(part) == len(part)
		    client.shutdown(socket.SHUT_WR)
		seen = []
		poll = select.poll()
		poll.register(listener, select.POLLIN)
		began = time.monotonic()
		got = {}
		done = []
		while len(done) < 400 and time.monotonic() - began < 10:
		    for fd, _ in poll.poll(1000):
		        if fd == listener.fileno():
		            server = listener.accept()[0]
		            server.setblocking(False)
		            got[server.fileno()] = [server, b""]
		            poll.register(server, select.POLLIN)
		            continue
		        part = got[fd][0].recv(100000)
		        got[fd][1] += part
		        if not part:
		            poll.unregister(fd)
		            done.append(got[fd][1])
		result(ended=len(done), same=sorted(done) == sorted(text), accepted=len(got))
	EOF
	expect ended -eq 400
	expect same -eq 1
	expect accepted -eq 400
	within_seconds 2 ndp_idle || fail "memory is not given back: $memory bytes"
}

# A new address is answered by a cookie and must return it, which costs a round trip. Then its
# connections need no additional round trip, until the proof ends. proof_s=0 needs no proof.
proof_of_the_address() {
	must ip -n h1 address add 10.7.1.9/24 dev eth0
	ndp <<-'EOF'
		listener = listen()
		def ask(key, text=b"request"):
		    before = stat("h2")
		    client = ndp_socket("h1")
		    client.bind(("10.7.1.9", 0))
		    client.connect((V4, PORT))
		    began = time.monotonic()
		    client.send(text)
		    server = accept(listener)
		    got = b""
		    while len(got) < len(text):
		        assert wait(server)
		        got += server.recv(100000)
		    result(**{key + "_us": (time.monotonic() - began) * 1e6, key + "_same": got == text,
		              key + "_cookies": stat("h2")["challenged"] - before["challenged"]})
		sysctl("h2", "proof_s", 2)
		ask("first")
		ask("second")
		time.sleep(3)
		ask("late", data(30000))
		time.sleep(3)
		sysctl("h2", "proof_s", 0)
		ask("free")
		sysctl("h2", "proof_s", 60)
		result(wrong=stat("h2")["bad_cookie"])
	EOF
	for ask in first second late free; do
		expect ${ask}_same -eq 1
	done
	expect first_cookies -eq 1
	expect second_cookies -eq 0
	expect second_us -lt 60
	expect first_us -ge $((second_us + 18)) "a round trip of 20 us more"
	expect first_us -lt $((second_us + 40))
	expect late_cookies -ge 10 "each packet of the initial window is answered"
	expect late_us -lt 400
	expect free_cookies -eq 0
	expect wrong -eq 0
}

# Headers of trimmed packets that say that the packets had 64 KB, though the MTU is 1500: the 255 pulls that they
# cause may delay those of another connection by their own 1.2 us each, not by 52 us.
length_beyond_the_mtu() {
	ndp <<-'EOF'
		sysctl("h2", "proof_s", 0)
		listener = listen()
		client, server = pair(listener=listener)
		with inside("mid"):
		    forger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for number, length in (0, 1000), (1, 65000):
		    forger.sendto(forged_packet("10.7.2.1", V4, number, 256, length), (V4, 20307))
		same, us = move([Flow(client, server, data(1000000))])
		forged = accept(listener)
		result(same=same, us=us, trimmed=info(forged)["trimmed"], pulls=info(forged)["pulls"])
		sysctl("h2", "proof_s", 60)
	EOF
	expect same -eq 1
	expect trimmed -eq 2
	expect pulls -ge 250
	expect us -le 1600 "1 MB takes 860 us, 256 packets take 310 us"
}

# Headers that say 64 KB, and short packets of the same connection afterwards: each gives back at most the 1.2 us that
# a pull of it has taken, not 52 us. So 512 pulls of two other connections stay paced.
short_packets_give_back_little() {
	ndp <<-'EOF'
		libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
		sysctl("h2", "proof_s", 0)
		listener = listen()
		with inside("mid"):
		    forger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		def forge(conn, number, length, payload=b"", **others):
		    header = forged_packet("10.7.2.1", V4, number, 256, length, conn, **others)
		    forger.sendto(header + payload, (V4, 20307))
		for number, length in (0, 1000), (1, 65000):
		    forge(11, number, length)
		time.sleep(0.002)
		first = accept(listener)
		guessed = info(first)["pulls"]
		for conn in 12, 13:
		    forge(conn, 0, 1000)
		began = time.monotonic()
		for number in range(2, 42):
		    forge(11, number, 1, b"x", flags=RTX, sum=SUM_OF_X)
		    time.sleep(0.000005)
		us = (time.monotonic() - began) * 1e6
		others = [accept(listener) for _ in range(2)]
		result(guessed=guessed, us=us, received=info(first)["received"], pulls=sum(info(other)["pulls"] for other in others))
		sysctl("h2", "proof_s", 60)
	EOF
	expect guessed -ge 250
	expect received -ge 39
	expect us -le 300
	# A pull takes 0.894 us. The short packets give back 40 x 1.135 us; the timer makes up for 10 us.
	expect pulls -ge $((us * 1000 / 894 - 20)) "the pulls have waited"
	expect pulls -le $(((us + 46 + 10) * 1000 / 894 + 2))
}

# 3000 connections of a proved address end within the half second in which they are remembered. No new connection
# needs a cookie.
many_ended_connections() {
	ndp <<-'EOF'
		listener = listen()
		proof = pair(listener=listener)
		before, began = stat("h2"), time.monotonic()
		for _ in range(30):
		    clients = [connect() for _ in range(100)]
		    for client in clients:
		        client.send(b"x")
		        client.shutdown(socket.SHUT_WR)
		    for client in clients:
		        server = accept(listener)
		        server.shutdown(socket.SHUT_WR)
		        assert wait(server) and server.recv(10) == b"x"
		        server.close()
		    for client in clients:
		        assert wait(client) and client.recv(1) == b""
		        client.close()
		result(ms=(time.monotonic() - began) * 1000, ended=stat("h2")["completed"] - before["completed"],
		       cookies=stat("h2")["challenged"] - before["challenged"])
	EOF
	expect ended -eq 3000
	expect ms -lt 500
	expect cookies -eq 0
}

# A listener whose queue is full drops first packets, and accepts them later.
full_queue() {
	ndp <<-'EOF'
		listener = listen(backlog=4)
		clients = [connect() for _ in range(20)]
		for client in clients:
		    client.send(b"x")
		time.sleep(0.2)
		result(overflowed=stat("h2")["overflowed"])
		result(accepted=sum(wait(accept(listener)) > 0 for _ in range(20)))
	EOF
	expect overflowed -ge 15
	expect accepted -eq 20
}

# Connections of a device that is removed end by a timeout; a new device works.
device_removed() {
	ndp <<-'EOF'
		sysctl("h1", "timeout_ms", 500)
		sysctl("h2", "timeout_ms", 500)
		client, server = pair()
		assert move([Flow(server, client, data(1000000), end=False)])[0]
		client.send(b"x" * 1000000)
		command("ip", "-n", "h2", "link", "del", "eth0")
		# mid has no route to h2 any more, and says so by ICMP.
		result(ended=wait(client, seconds=5) & select.POLLERR and error(client.recv, 1) == errno.ENETUNREACH)
	EOF
	expect ended -eq 1
	hosts_down
	hosts_up "$ndp_wire" "$ndp_wire"
	ndp <<-'EOF'
		result(same=both_ways()[0])
	EOF
	expect same -eq 1
}

# A namespace that is deleted while connections of closed sockets are in it.
namespace_deleted() {
	ndp <<-'EOF'
		sysctl("h1", "timeout_ms", 500)
		sysctl("h2", "timeout_ms", 500)
		client, server = pair()
		client.send(b"x" * 500000)
		command("ip", "-n", "mid", "link", "set", "to2", "down")
		client.close()
		server.close()
	EOF
	hosts_down
	within_seconds 10 rmmod ndp || fail "connections of the deleted namespace are left"
	must insmod "$modules/ndp.ko"
	hosts_up "$ndp_wire" "$ndp_wire"
}

# The module cannot be unloaded while there is a socket or connection, and can be at any time
# afterwards, with packets on their way.
unload_under_load() {
	ndp <<-EOF
		for turn in range(10):
		    client, server = pair()
		    flow = Flow(client, server, data(2000000))
		    refused = 0
		    for step in range(20):
		        with contextlib.suppress(BlockingIOError):
		            flow.send()
		        time.sleep(0.00002 * turn)
		        refused += subprocess.run(["rmmod", "ndp"], stderr=subprocess.DEVNULL).returncode != 0
		    assert refused == 20
		    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		    client.close()
		    server.close()
		    began = time.monotonic()
		    while subprocess.run(["rmmod", "ndp"], stderr=subprocess.DEVNULL).returncode:
		        assert time.monotonic() - began < 5, "the module cannot be unloaded"
		        time.sleep(0.01)
		    command("insmod", "$modules/ndp.ko")
		result(turns=turn + 1)
	EOF
	expect turns -eq 10
}

run_cases not_without_the_module refuses carries_streams same_host needs_no_handshake polls_for_enough \
	polls_without_memory server_speaks_first opens_without_data refused_connection half_close \
	non_blocking fills_packets short_first reader_stops resets sends_nothing lost_reset reset_after_data data_during_close slow_reader_of_a_closed_socket \
	listener_disconnected listens_again dead_peer ports many_sockets_of_a_port many_connections \
	proof_of_the_address length_beyond_the_mtu short_packets_give_back_little many_ended_connections full_queue device_removed namespace_deleted unload_under_load
