#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ACKs that never end at the end of a pacing segment must still give RTTs. The receiver ACKs every
# second packet and a pacing segment has two packets. After one single packet, each ACK ends in
# the middle of a segment. Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_without_tso
	load_qdisc
	must insmod "$modules/tcp_timely.ko" segment_bytes=2896
}

# streams ODD: send ODD bytes, then a stream, at first capped at 4 Mbit/s. After the cap is lifted
# the rate must rise, which needs RTTs.
streams() {
	sockets <<-EOF
		def cap(kbps):
		    a.setsockopt(socket.SOL_SOCKET, 47, (kbps * 125).to_bytes(8, "little"))
		def fill():
		    try:
		        while a.send(bytes(2896), socket.MSG_DONTWAIT):
		            pass
		    except BlockingIOError:
		        pass
		a, b = connect("$h2_v4")
		# Without this option the first packets are ACKed one by one.
		b.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
		cap(4000)
		if $1:
		    a.sendall(bytes($1))
		fill()
		time.sleep(.03)
		capped = rate(a)
		cap(10000000)
		time.sleep(.03)
		result(capped=capped, after=rate(a))
	EOF
	expect capped -eq 4000
	expect after -ge 100000
}

# Segments have two packets at any rate. With and without a single packet before the stream: in
# one of the two cases ACKs end within segments.
over() {
	h1_qdisc "$1"
	streams 0
	streams 1448
}

over_timely() { over timely; }
over_fq() { over fq; }

run_cases hosts over_timely over_fq
