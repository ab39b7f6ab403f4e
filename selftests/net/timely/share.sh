#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What connections of a host share: the number of connections with data to send, from which the
# start of a message gets its share of the link rate; and the base RTT of a destination, so that
# a new connection does not take a standing queue for part of it.
# Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_qdisc fq
	load_timely preset=target_delay
}

# Connections probe the base RTT for 1 ms of each 2^26 ns of the real time. They send less then,
# and ignore RTTs of messages ACKed then, so a test that needs RTTs waits until the probe is over.
calm='
def calm():
    age_ns = time.time_ns() % (1 << 26)
    if not 5000000 < age_ns < 40000000:
        time.sleep(((5000000 - age_ns) % (1 << 26)) / 1e9)
'

# begins COUNT: set the rates, kbit/s, at which messages start: first of a new connection, alone
# while COUNT other connections have no data, among while the others send, and after when the others
# have stopped.
begins() {
	sockets <<-EOF
		$calm
		def message(client, server):
		    client.sendall(bytes(2896))
		    got = rate(client)
		    server.recv(2896, socket.MSG_WAITALL)
		    time.sleep(.01)
		    return got
		def fill():
		    for n, (sock, _) in enumerate(others):
		        try:
		            while True:
		                unread[n] += sock.send(bytes(65536), socket.MSG_DONTWAIT)
		        except BlockingIOError:
		            pass
		def read_all():
		    while any(unread):
		        for n, (_, sock) in enumerate(others):
		            try:
		                while unread[n]:
		                    unread[n] -= len(sock.recv(1 << 20, socket.MSG_DONTWAIT))
		            except BlockingIOError:
		                pass
		        time.sleep(.002)
		    time.sleep(.01)
		# A connection keeps a rate that caused no queue, so each case has its own.
		pairs = [connect("$h2_v4") for _ in range(3)]
		others = [connect("$h2_v4") for _ in range($1)]
		unread = [0] * len(others)
		calm()
		first = [message(*pair) for pair in pairs][0]
		calm()
		alone = message(*pairs[0])
		# A connection that was idle for an RTO does not keep its rate.
		time.sleep(.4)
		calm()
		fill()
		among = message(*pairs[1])
		read_all()
		# The third connection may have been idle for so long that it starts anew.
		calm()
		message(*pairs[2])
		after = message(*pairs[2])
		result(first=first, alone=alone, among=among, after=after)
	EOF
}

# An unknown link rate counts as 10 Gb/s. A message starts with it, divided by one more than the
# number of other connections that have data to send.
message_starts_with_its_share() {
	begins 8
	expect first -ge 9800000
	expect first -le 10010000
	expect alone -ge 9800000
	expect alone -le 10010000
	expect among -ge 1100000
	expect among -le 1120000
	expect after -ge 9800000
	expect after -le 10010000
}

# Connections that are closed, or change their congestion control, while they have unsent data no
# longer count as sending.
closed_connections_do_not_count() {
	sockets <<-EOF
		$calm
		a, b = connect("$h2_v4")
		calm()
		a.sendall(bytes(2896))
		others = [connect("$h2_v4") for _ in range(8)]
		for sock, _ in others:
		    try:
		        while sock.send(bytes(65536), socket.MSG_DONTWAIT):
		            pass
		    except BlockingIOError:
		        pass
		time.sleep(.02)
		for n, (sock, peer) in enumerate(others):
		    if n % 2:
		        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
		        sock.close()
		    else:
		        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
		time.sleep(.02)
		calm()
		a.sendall(bytes(2896))
		result(again=rate(a))
	EOF
	expect again -ge 9800000
	expect again -le 10010000
}

# The first ten packets of a connection do not wait for an ACK, like those of any TCP, in either
# direction: they arrive after the delay of one way, and ACKs would take two ways more.
first_ten_packets_wait_for_no_ack() {
	wire_to_h2 "rate 10gbit delay 5ms"
	sockets <<-EOF
		def ms(sender, receiver):
		    begin = time.monotonic()
		    sender.sendall(bytes(10 * 1448))
		    receiver.recv(10 * 1448, socket.MSG_WAITALL)
		    return round((time.monotonic() - begin) * 1000)
		client, server = connect("$h2_v4")
		result(there=ms(client, server), back=ms(server, client))
	EOF
	expect there -le 7
	expect back -le 7
	wire_to_h2 "rate 10gbit delay 10us"
}

# The host's connections that have data to send share 20 packets before the first ACK: beside 20
# others a new one sends two segments, which are four packets.
first_packets_are_shared() {
	wire_to_h2 "rate 10gbit delay 5ms"
	sockets <<-EOF
		$calm
		client, server = connect("$h2_v6")
		others = [connect("$h2_v4") for _ in range(20)]
		calm()
		for sock, _ in others:
		    sock.sendall(bytes(65536))
		begin = time.monotonic()
		client.sendall(bytes(10 * 1428))
		server.recv(4 * 1428, socket.MSG_WAITALL)
		four = time.monotonic() - begin
		server.recv(6 * 1428, socket.MSG_WAITALL)
		ten = time.monotonic() - begin
		result(four=round(four * 1000), ten=round(ten * 1000))
	EOF
	expect four -le 7
	expect ten -ge 9
	expect ten -le 20
	wire_to_h2 "rate 10gbit delay 10us"
	# The change of the wire may lose a FIN, which is sent again after a timeout.
	sleep 1
}

# A connection that starts while a queue stands uses the base RTT that another connection to the
# same destination has measured. The IPv6 address is another destination, without a measurement.
base_rtt_is_known_in_a_queue() {
	wire_to_h2 "rate 1gbit delay 10us"
	# Wait until earlier RTTs are too old. Only whole pacing segments give new RTTs.
	sleep 0.5
	traffic <<-EOF
		0	flow old from=h1 to=h2 addr=$h2_v4 cc=timely rate=24000 every=0.002
		0.05	flow bulk from=h1 to=h2 addr=$h2_v4 cc=cubic
		0.1	flow four from=h1 to=h2 addr=$h2_v4 cc=timely
		0.13	info four flow=four
		0.13	stop four
		0.14	flow six from=h1 to=h2 addr=$h2_v6 cc=timely
		0.17	info six flow=six
		0.18	end
	EOF
	expect four_rate -le 50000
	expect six_rate -ge 200000 "the base RTT to this address is unknown"
}

# derived NAME: a path-dependent parameter of a connection, from the last trace event
derived() {
	sed -n "s/.*timely_computed: .* $1=\([0-9]*\).*/\1/p" $tracing/trace | tail -n 1
}

# flow_over NETEM...: a connection over a link with these options, without measurements of the
# previous link
flow_over() {
	wire_to_h2 "$1"
	sleep 0.5
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	end
	EOF
}

trace_event_shows_path_parameters() {
	tracing_up
	echo 1 >$tracing/events/timely/timely_computed/enable
	flow_over "rate 10gbit delay 10us"
	near_ns=$(derived min_rtt_ns)
	flow_over "rate 10gbit delay 500us"
	far_ns=$(derived min_rtt_ns)
	aggregation_ns=$(derived ack_aggregation_ns)
	rates_lag=$(derived rates_lag)
	echo 0 >$tracing/events/timely/timely_computed/enable
	expect near_ns -ge 20000
	expect near_ns -le 30000
	expect far_ns -ge 510000
	expect far_ns -le 520000
	expect aggregation_ns -eq 0
	expect rates_lag -eq 2
}

run_cases hosts message_starts_with_its_share first_ten_packets_wait_for_no_ack \
	first_packets_are_shared closed_connections_do_not_count base_rtt_is_known_in_a_queue \
	trace_event_shows_path_parameters
