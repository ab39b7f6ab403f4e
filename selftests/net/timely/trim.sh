#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The qdisc "trim" with real traffic: UDP and TCP, IPv4 and IPv6, VLAN, VXLAN and GSO; below classful
# qdiscs; changes, removal and unloading under load; return to sender.
# Topology: h1 -- mid -- h2; mid routes. The link from mid to h2 has 100 Mb/s, so that a packet of
# 1442 bytes takes 115 us, and mid's qdisc towards h2 is trim.

. "$(dirname "$0")/trim_lib.sh"

# The module needs no other module of this project.
hosts() {
	must insmod "$modules/sch_trim.ko"
	hosts_up "limit 10000"
	traffic <<-EOF
		0	ping four from=h1 to=h2 addr=$h2_v4 for=0.5 every=0.1
		0	ping six from=h1 to=h2 addr=$h2_v6 for=0.5 every=0.1
	EOF
	below_tbf mid to2
}

# Each datagram arrives once, whole or trimmed. Trimmed ones overtake the others.
every_packet_arrives_once() {
	for addr in $h2_v4 $h2_v6; do
		for victim in random arrival tail; do
			below_tbf mid to2 victim $victim
			trim_packets <<-EOF
				receiver, sock = sink("$addr"), sender("$addr")
				burst(sock)
				got, whole, trimmed = arrivals(receiver, 60)
				q = trim()
				result(all=sorted(whole + trimmed) == list(range(60)), whole=len(whole), trimmed=len(trimmed),
				       counted=q["trim_packets"], sent=q["tx_trim_packets"], tail=q["trim_tail"], left=q["left"],
				       removed=q["trim_bytes"] // max(q["trim_packets"], 1), drops=q["drops"],
				       marked=":" in "$addr" or all((p.tos == CS6) == (len(p.data) < 1400) for p in got),
				       early=max(p.at for p in got if len(p.data) < 1400) < max(p.at for p in got))
				say("$addr, victim $victim:", len(whole), "whole,", len(trimmed), "trimmed")
			EOF
			expect all -eq 1 "a datagram was lost or came twice"
			expect whole -ge 8
			expect trimmed -ge 30
			expect counted -eq "$trimmed"
			expect sent -eq "$trimmed"
			expect drops -eq 0
			expect left -eq 0
			expect marked -eq 1
			expect early -eq 1
			case $addr in
			*:*)	expect removed -eq $((1462 - 128)) ;;
			*)	expect removed -eq $((1442 - 128)) ;;
			esac
			case $victim in
			random)	expect tail -ge $((trimmed / 5)); expect tail -le $((trimmed * 4 / 5)) ;;
			arrival) expect tail -eq 0 ;;
			tail)	expect tail -eq "$trimmed" ;;
			esac
		done
	done
}

# Trimmed packets with UDP checksums do not reach the socket: their checksum is that of the whole
# datagram. A program sees a shortened datagram only if the checksum is off.
checksums_protect_others() {
	for addr in $h2_v4 $h2_v6; do
		below_tbf mid to2
		trim_packets <<-EOF
			receiver, sock = Sink(addr="$addr"), sender("$addr", check=True)
			burst(sock)
			got, whole, trimmed = arrivals(receiver)
			result(whole=len(whole), trimmed=len(trimmed), counted=trim()["trim_packets"])
		EOF
		expect trimmed -eq 0
		expect counted -ge 30
		expect whole -eq $((60 - counted))
	done
}

# The sender's own qdisc: the device would compute the checksum of the trimmed packet.
local_sender() {
	below_tbf h1 eth0
	trim_packets <<-EOF
		receiver, sock = Sink(addr="$h2_v4"), sender("$h2_v4", check=True)
		burst(sock)
		got, whole, trimmed = arrivals(receiver)
		result(whole=len(whole), trimmed=len(trimmed), counted=trim("h1", "eth0")["trim_packets"])
	EOF
	expect trimmed -eq 0
	expect counted -ge 30
	expect whole -eq $((60 - counted))
	must tc -n h1 qdisc del dev eth0 root
}

options_decide() {
	below_tbf mid to2 limit 4 header_limit 512 size 200 dscp 5 trimmable AF11 control EF
	trim_packets <<-EOF
		receiver = sink("$h2_v4")
		data, other, control = (sender("$h2_v4", tos=t) for t in (AF11, 0, 46 << 2))
		burst(data, 12)
		burst(other, 3, first=12)
		burst(control, 5, size=60, first=15)
		got, whole, trimmed = arrivals(receiver)
		small = [p for p in got if len(p.data) == 60]
		q = trim()
		result(small=len(small), intact=all(p.tos == 46 << 2 for p in small), other=q["dropped_dscp"],
		       lengths={len(p.data) for p in got} == {1400, 158, 60}, control=q["control"],
		       dropped=q["dropped_control"] + q["dropped_trim_packets"],
		       marked=all(p.tos == 5 << 2 for p in got if len(p.data) == 158))
	EOF
	expect lengths -eq 1
	expect other -ge 1
	expect control -ge 1
	expect small -eq "$control"
	expect intact -eq 1
	expect marked -eq 1
	expect dropped -ge 1 "the header queue has no limit"
}

vlan() {
	must ip -n mid -batch - <<-EOF
		link add link to2 name to2.5 type vlan id 5
		address add 10.9.5.1/24 dev to2.5
		link set to2.5 up
	EOF
	must ip -n h2 -batch - <<-EOF
		link add link eth0 name eth0.5 type vlan id 5
		address add 10.9.5.2/24 dev eth0.5
		link set eth0.5 up
	EOF
	must ip -n h1 route add 10.9.0.0/16 via 10.7.1.1
	below_tbf mid to2
	trim_packets <<-EOF
		receiver, sock = reach("10.9.5.2")
		burst(sock)
		got, whole, trimmed = arrivals(receiver, 60)
		result(all=sorted(whole + trimmed) == list(range(60)), trimmed=len(trimmed), counted=trim()["trim_packets"])
	EOF
	expect all -eq 1
	expect trimmed -ge 30
	expect counted -eq "$trimmed"
}

# Only the outer headers change, and the inner packet is too short for the length of its IP header:
# the host at the end of the tunnel drops it. Whole packets pass.
vxlan() {
	must ip -n mid -batch - <<-EOF
		link add vx type vxlan id 7 local 10.7.2.1 remote 10.7.2.2 dstport 4789 dev to2
		address add 10.10.0.1/24 dev vx
		link set vx up
	EOF
	must ip -n h2 -batch - <<-EOF
		link add vx type vxlan id 7 local 10.7.2.2 remote 10.7.2.1 dstport 4789 dev eth0
		address add 10.10.0.2/24 dev vx
		link set vx up
	EOF
	must ip -n h1 route add 10.10.0.0/16 via 10.7.1.1
	below_tbf mid to2
	trim_packets <<-EOF
		receiver, sock = reach("10.10.0.2")
		tap = Tap()
		burst(sock, size=1300)
		got, whole, trimmed = arrivals(receiver, size=1300)
		short = [p.data for p in tap.take(seconds=0.1) if len(p.data) == 128]
		good = [f for f in short if checksum(f[14:34]) == 0xffff and f[16:18] == struct.pack(">H", 114) and
		        f[15] == CS6 and f[36:40] == struct.pack(">HH", 4789, 94)]
		result(whole=len(whole), trimmed=len(trimmed), counted=trim()["trim_packets"], short=len(short), good=len(good))
	EOF
	expect counted -ge 30
	expect whole -eq $((60 - counted))
	expect trimmed -eq 0
	expect short -eq "$counted"
	expect good -eq "$counted"
	must ip -n h1 route del 10.10.0.0/16
}

# prio_or_htb PARENT NAMESPACE DEVICE OPTION...: 100 Mb/s, and trim as the queue of the class 3:2
# of prio below tbf, or of htb
prio_or_htb() {
	case $1 in
	prio)	echo "qdisc replace dev $3 root handle 1: tbf rate 100mbit burst 1600 limit 1000000"
		echo "qdisc replace dev $3 parent 1:1 handle 3: prio priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1" ;;
	htb)	echo "qdisc replace dev $3 root handle 3: htb default 2"
		echo "class replace dev $3 parent 3: classid 3:2 htb rate 100mbit burst 1600 cburst 1600" ;;
	esac >"$work/parent"
	ns=$2
	dev=$3
	shift 3
	must tc -n "$ns" qdisc replace dev "$dev" root handle 99: pfifo
	must tc -n "$ns" -batch "$work/parent"
	must tc -n "$ns" qdisc replace dev "$dev" parent 3:2 handle 2: trim "$@"
}

# TCP takes a trimmed segment for a lost one. GSO packets are segmented before they are queued.
tcp() {
	for place in "mid to2" "h1 eth0"; do
		prio_or_htb htb $place limit 20
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic bytes=2000000 verify=1
			0	flow b from=h1 to=h2 addr=$h2_v6 cc=reno bytes=2000000 verify=1
		EOF
		for flow in a b; do
			expect ${flow}_done -eq 1
			expect ${flow}_same -eq 1
			expect ${flow}_us -lt 5000000
		done
		trim_packets <<-EOF
			q = trim(*"$place".split())
			result(left=q["left"], trimmed=q["trim_packets"], segmented=q["segmented"],
			       more=q["segments"] > q["segmented"])
		EOF
		expect left -eq 0
		expect trimmed -ge 1
		expect segmented -ge 1
		expect more -eq 1
		below_tbf mid to2
	done
	must tc -n h1 qdisc del dev eth0 root
}

# Parents count the same packets and bytes, also when trim has shortened and displaced packets.
below_classful_qdiscs() {
	for parent in prio htb; do
		prio_or_htb $parent mid to2 header_limit 1000 limit 1
		trim_packets <<-EOF
			receiver, sock = sink("$h2_v4"), sender("$h2_v4")
			for first in range(0, 400, 40):
			    burst(sock, 40, first=first)
			    time.sleep(0.001)
			got, whole, trimmed = arrivals(receiver)
			q = trim()
			result(left=q["left"], trimmed=len(trimmed), lost=q["dropped_trim_packets"],
			       all=len(got) + q["dropped_trim_packets"])
		EOF
		expect left -eq 0 "$parent"
		expect trimmed -ge 50
		expect lost -ge 1
		expect all -eq 400
	done
	below_tbf mid to2
}

# returned NAMESPACE DEVICE TO: the packets that came back to the sender's socket
returned() {
	trim_packets <<-EOF
		receiver, sock = reach("$3")
		if ":" in "$3":
		    sock.setsockopt(SOL_UDP, UDP_NO_CHECK6_RX, 1)
		sock.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
		back = Receiver(sock)
		burst(sock)
		got, whole, trimmed = arrivals(receiver)
		mine, _, returned = arrivals(back)
		q = trim("$1", "$2")
		result(all=sorted(whole + trimmed + returned) == list(range(60)), returned=len(returned), trimmed=len(trimmed),
		       counted=q["returned"], failed=q["return_failed"], drops=q["drops"], left=q["left"],
		       marked=":" in "$3" or all(p.tos == CS6 and len(p.data) == 86 for p in mine))
		say("$1 $2:", len(whole), "whole,", len(trimmed), "trimmed,", len(returned), "returned")
	EOF
	expect all -eq 1 "a datagram was lost or came twice"
	expect returned -ge 20
	expect counted -eq "$returned"
	expect trimmed -ge 1
	expect failed -eq 0
	expect drops -eq 0
	expect left -eq 0
	expect marked -eq 1
}

return_to_sender() {
	for addr in $h2_v4 $h2_v6; do
		below_tbf mid to2 header_limit 400 return
		returned mid to2 $addr
		# The sender itself.
		below_tbf h1 eth0 header_limit 400 return
		returned h1 eth0 $addr
		must tc -n h1 qdisc del dev eth0 root
	done
	below_tbf mid to2 header_limit 400
	trim_packets <<-EOF
		receiver, sock = sink("$h2_v4"), sender("$h2_v4")
		burst(sock)
		got, whole, trimmed = arrivals(receiver)
		q = trim()
		result(all=len(got) + q["dropped_trim_packets"], lost=q["dropped_trim_packets"], returned=q["returned"],
		       back=len(Receiver(sock).take(seconds=0.1)))
	EOF
	expect all -eq 60
	expect lost -ge 20
	expect returned -eq 0
	expect back -eq 0
}

# mid is a bridge, which forwards a returned packet to the port of its sender.
return_by_a_bridge() {
	must ip -n mid -batch - <<-EOF
		address flush dev to1
		address flush dev to2
		link add br0 type bridge
		link set to1 master br0
		link set to2 master br0
		link set br0 up
	EOF
	must ip -n h1 address add 10.8.0.1/24 dev eth0
	must ip -n h2 address add 10.8.0.2/24 dev eth0
	below_tbf mid to2 header_limit 400 return
	returned mid to2 10.8.0.2
	hosts_down
}

# under_load: run the Python lines on standard input, in which more() sends 20 packets
under_load() {
	trim_packets <<-EOF
		receiver, sock = reach("$h2_v4")
		sock.setblocking(False)
		rng = random.Random(7)
		sent = 0
		def more():
		    global sent
		    try:
		        burst(sock, 20)
		        sent += 20
		    except OSError:
		        pass
		$(cat)
		time.sleep(0.1)
		got = receiver.take(seconds=0.3, quiet=0.1)
		result(sent=sent, got=len(got))
	EOF
	expect sent -ge 100
	expect got -ge 1
}

changes_under_load() {
	hosts_up "limit 10000"
	below_tbf mid to2
	under_load <<-'EOF'
		for _ in range(60):
		    more()
		    tc("qdisc", "change", "dev", "to2", "parent", "1:1", "handle", "2:", "trim",
		       "limit", str(rng.randrange(1, 30)), "header_limit", str(rng.randrange(100, 5000)),
		       "size", str(rng.randrange(64, 400)), "ratio", str(rng.randrange(1, 20)),
		       "victim", rng.choice(["random", "arrival", "tail"]), rng.choice(["return", "noreturn"]),
		       "dscp", str(rng.randrange(64)), ns="mid")
		time.sleep(0.1)
		result(left=trim()["left"])
	EOF
	expect left -eq 0
}

replaced_under_load() {
	below_tbf mid to2
	under_load <<-'EOF'
		for kind in ["pfifo", "trim"] * 20:
		    more()
		    tc("qdisc", "replace", "dev", "to2", "parent", "1:1", "handle", "2:" if kind == "trim" else "3:", kind,
		       ns="mid")
		    more()
	EOF
}

refused_while_in_use() {
	below_tbf mid to2
	refused rmmod sch_trim
	must tc -n mid qdisc del dev to2 root
	must rmmod sch_trim
	must insmod "$modules/sch_trim.ko"
}

# The qdisc, the device and the namespace go while packets are queued; returned packets are on
# their way, too.
goes_with_packets() {
	for what in "tc -n mid qdisc del dev to2 root" "ip -n mid link del to2" "ip netns del mid"; do
		hosts_down
		hosts_up "limit 10000"
		below_tbf mid to2 limit 100 return
		under_load <<-EOF
			for _ in range(10):
			    more()
			subprocess.run("$what".split(), check=True)
		EOF
		hosts_down
		within_seconds 10 rmmod sch_trim || fail "sch_trim cannot be unloaded after: $what"
		must insmod "$modules/sch_trim.ko"
	done
}

fifty_times() {
	must rmmod sch_trim
	hosts_up "limit 10000"
	round=0
	while [ $round -lt 50 ]; do
		round=$((round + 1))
		echo "insmod $modules/sch_trim.ko"
		echo "tc -n mid qdisc replace dev to2 root trim"
		echo "ip netns exec h1 ping -q -c 1 -w 1 $h2_v4 >/dev/null || true"
		echo "tc -n mid qdisc del dev to2 root"
		echo "rmmod sch_trim"
	done >"$work/rounds"
	must sh -e "$work/rounds"
	! is_loaded sch_trim || fail "sch_trim is still loaded"
}

run_cases hosts every_packet_arrives_once checksums_protect_others local_sender options_decide vlan vxlan \
	tcp below_classful_qdiscs return_to_sender return_by_a_bridge changes_under_load \
	replaced_under_load refused_while_in_use goes_with_packets fifty_times
