#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Raw sockets that send packets with TCP headers: the qdisc must not use such a socket as a TCP
# socket. A raw socket is smaller, and KASAN of the debug kernel reports a read beyond its end, for
# which leaves_nothing_behind searches the log. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/onramp_lib.sh"

hosts() {
	onramp_pair
	load_onramp
	without_keys
}

# raw_data OWD: packets with a TCP header and a payload, over both IP versions.
raw_data() {
	h1_qdisc timely onramp 50us owd "$1"
	packets <<-'EOF'
		header = struct.pack(">HHIIBBHHH", 4000, 4001, 1, 0, 5 << 4, 0x10, 1000, 0, 0)
		for to in H2, "fd07:2::2":
		    family = socket.AF_INET6 if ":" in to else socket.AF_INET
		    with inside("h1"):
		        sock = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)
		    sock.connect((to, 0))
		    for _ in range(100):
		        sock.send(header + bytes(500))
		    sock.close()
		time.sleep(0.1)
		seen = stats()
		result(packets=seen["packets"], qlen=seen["qlen"], drops=seen["drops"])
	EOF
	expect packets -ge 200
	expect qlen -eq 0
	expect drops -eq 0
}

relative() {
	raw_data relative
}

absolute() {
	raw_data absolute
}

round_trips() {
	raw_data rtt
}

run_cases hosts relative absolute round_trips
