#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A receiver that acknowledges every second packet is out of step with segments of two once a
# packet came alone: each of its ACKs ends within a segment, and the flow must still hear.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_without_tso
	load_qdisc
	must insmod "$modules/tcp_timely.ko" segment_bytes=2896
}

# streams ODD: kbit/s, capped at 4 Mbit/s behind ODD bytes, and after the cap is lifted
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
		# Else each packet is acknowledged at first.
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

# Segments are of two packets, whatever the rate; behind none and one, one of the streams is out
# of step.
over() {
	h1_qdisc "$1"
	streams 0
	streams 1448
}

over_timely() { over timely; }
over_fq() { over fq; }

run_cases hosts over_timely over_fq
