# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The library of the tests of the qdisc "trim", on top of qdisc_lib.sh: bursts of datagrams, and the
# statistics of the qdisc.

. "$(dirname "$0")/qdisc_lib.sh"

# Python lines before those of each case. burst() sends numbered datagrams of 1400 bytes at once,
# without UDP checksums, and arrivals() sorts what a socket received: the numbers of whole datagrams
# and those of trimmed ones, of which 86 bytes are left.
cat >"$work/burst.py" <<-'EOF'
	import json
	SO_NO_CHECK, SOL_UDP, UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX = 11, 17, 101, 102
	AF11, CS6 = 10 << 2, 48 << 2

	def sender(to, ns="h1", check=False, tos=AF11):
	    sock = source(ns=ns, to=to, tos=tos)
	    if ":" in to:
	        sock.setsockopt(SOL_UDP, UDP_NO_CHECK6_TX, not check)
	    else:
	        sock.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, not check)
	    return sock

	def sink(addr, ns="h2"):
	    receiver = Sink(ns=ns, addr=addr)
	    if ":" in addr:
	        receiver.sock.setsockopt(SOL_UDP, UDP_NO_CHECK6_RX, 1)
	    return receiver

	# A receiver and a sender, after the neighbours between them are resolved.
	def reach(addr):
	    receiver, sock = sink(addr), sender(addr)
	    burst(sock, 1)
	    receiver.take(1, 2)
	    return receiver, sock

	def burst(sock, count=60, size=1400, first=0):
	    for number in range(first, first + count):
	        sock.send(payload(number, 0, size))

	def arrivals(receiver, count=1 << 30, size=1400):
	    got = receiver.take(count, 1, quiet=0.1)
	    whole = [p.number for p in got if len(p.data) == size]
	    trimmed = [p.number for p in got if len(p.data) < size]
	    return got, whole, trimmed

	def trim(ns="mid", dev="to2"):
	    found = json.loads(tc("-s", "-j", "qdisc", "show", "dev", dev, ns=ns))
	    queue, = [q for q in found if q["kind"] == "trim"]
	    queue["left"] = sum(q["qlen"] + q["backlog"] for q in found)
	    return queue
EOF

trim_packets() {
	{
		cat "$work/burst.py"
		cat
	} >"$work/plan"
	packets <"$work/plan"
}

# below_tbf NAMESPACE DEVICE OPTION...: 100 Mb/s, and trim as the queue
below_tbf() {
	ns=$1
	dev=$2
	shift 2
	must tc -n "$ns" -batch - <<-EOF
		qdisc replace dev $dev root handle 99: pfifo
		qdisc replace dev $dev root handle 1: tbf rate 100mbit burst 1600 limit 1000000
		qdisc replace dev $dev parent 1:1 handle 2: trim $*
	EOF
}
