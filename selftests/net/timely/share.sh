#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What connections of a host know of each other: how many have something to send, by
# which a message begins with its part of the line; and the path to a destination, without
# the queue that stands when they begin.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_qdisc fq
	load_timely preset=linux
}

# Flows drain for 1 ms of each 2^26 ns of the real time. They send less then, and of a message
# that is acknowledged then nothing is learnt: a connection's next one begins like its first.
calm='
def calm():
    age_ns = time.time_ns() % (1 << 26)
    if not 5000000 < age_ns < 40000000:
        time.sleep(((5000000 - age_ns) % (1 << 26)) / 1e9)
'

# begins COUNT: a message's rate in kbit/s: a new connection's, and with COUNT others silent,
# sending, and silent again
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
		def drain():
		    while any(unread):
		        for n, (_, sock) in enumerate(others):
		            try:
		                while unread[n]:
		                    unread[n] -= len(sock.recv(1 << 20, socket.MSG_DONTWAIT))
		            except BlockingIOError:
		                pass
		        time.sleep(.002)
		    time.sleep(.01)
		# A rate that was good is kept: each begins once.
		pairs = [connect("$h2_v4") for _ in range(3)]
		others = [connect("$h2_v4") for _ in range($1)]
		unread = [0] * len(others)
		calm()
		first = [message(*pair) for pair in pairs][0]
		calm()
		alone = message(*pairs[0])
		calm()
		fill()
		among = message(*pairs[1])
		drain()
		# It may have been idle for too long meanwhile.
		calm()
		message(*pairs[2])
		after = message(*pairs[2])
		result(first=first, alone=alone, among=among, after=after)
	EOF
}

# The line is 10 Gb/s where it is not known; a new flow's part a twentieth.
message_begins_with_its_part() {
	begins 8
	expect first -ge 490000
	expect first -le 510000
	expect alone -ge 4900000
	expect alone -le 5010000
	expect among -ge 990000
	expect among -le 1010000
	expect after -ge 4900000
	expect after -le 5010000
}

# Those that end while they wait for their receivers no longer count.
who_is_gone_does_not_count() {
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
	expect again -ge 4900000
	expect again -le 5010000
}

# A connection that begins in a queue knows the path if another one has seen it; the other
# family's address is another destination, of which nobody knows.
path_is_known_in_a_queue() {
	wire_to_h2 "rate 1gbit delay 10us"
	# Whole segments tell; and what was told before is forgotten.
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
	expect six_rate -ge 200000 "nobody could know"
}

# derived NAME: what a connection made of its path, by the last trace event
derived() {
	sed -n "s/.*timely_derived: .* $1=\([0-9]*\).*/\1/p" $tracing/trace | tail -n 1
}

# flow_over WIRE_TO_H2: a connection that knows nothing of another path
flow_over() {
	wire_to_h2 "$1"
	sleep 0.5
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	end
	EOF
}

what_was_derived_shows() {
	tracing_up
	echo 1 >$tracing/events/timely/timely_derived/enable
	flow_over "rate 10gbit delay 10us"
	near_ns=$(derived min_rtt_ns)
	flow_over "rate 10gbit delay 500us"
	far_ns=$(derived min_rtt_ns)
	noise_ns=$(derived rtt_noise_ns)
	late=$(derived late)
	echo 0 >$tracing/events/timely/timely_derived/enable
	expect near_ns -ge 20000
	expect near_ns -le 30000
	expect far_ns -ge 510000
	expect far_ns -le 520000
	expect noise_ns -eq 0
	expect late -eq 2
}

run_cases hosts message_begins_with_its_part who_is_gone_does_not_count \
	path_is_known_in_a_queue what_was_derived_shows
