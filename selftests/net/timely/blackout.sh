#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A second of nothing in the middle of a transfer.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_qdisc fq
	load_timely $gig
}

# comes_back ADDRESS COMMAND-THAT-ENDS-IT COMMAND-THAT-RESUMES-IT
comes_back() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$1 cc=timely verify=1
		0.06	goodput before flow=a for=0.04
		0.11	run $2
		0.2	goodput nothing flow=a for=0.9
		0.2	reach again flow=a rate=before*0.9 within=1 every=0.01 acked=1 last=1
		1.11	run $3
	EOF
	expect before -ge 800000
	expect nothing -eq 0
	expect again_began_us -gt 1110000
	expect again_began_us -le 1170000 "TCP did not try again soon"
	expect again_us -gt 0 "the rate did not come back"
	expect again_us -le 200000 "us after the first ACK"
	expect a_done -eq 1
	expect a_same -eq 1
}

after_all_is_lost() {
	comes_back $h2_v6 \
		"tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us loss 100%" \
		"tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us"
}

after_the_link_was_down() {
	comes_back $h2_v4 "ip -n mid link set to2 down" "ip -n mid link set to2 up"
}

# Only ACKs are lost: data arrives, and nobody hears of it.
after_no_ack_came() {
	comes_back $h2_v4 \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us loss 100%" \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us"
}

# A SYN's timer is TCP's own: its tries are few, and a second apart.
syns_are_tried_as_ever() {
	wire_to_h2 "rate 1gbit delay 10us loss 100%"
	traffic <<-EOF
		0	counters old ns=h1
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=1000000 verify=1
		2.5	counters new ns=h1
		2.5	run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us
	EOF
	tries=$((new_TCPSynRetrans - old_TCPSynRetrans))
	expect tries -ge 1
	expect tries -le 3
	expect a_done -eq 1
	expect a_same -eq 1
}

# Nor is it ours where the congestion control is chosen while they are under way; and
# a SYN that is lost sets no rate.
syns_are_tried_as_ever_by_others() {
	wire_to_h2 "rate 1gbit delay 10us loss 100%"
	traffic <<-EOF
		0	counters old ns=h1
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=1000000 verify=1
		0	flow b from=h1 to=h2 addr=$h2_v4 cc=cubic bytes=1000000 verify=1
		0.1	set b cc=timely
		2.5	info lost flow=a
		2.5	counters new ns=h1
		2.5	run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us
	EOF
	tries=$((new_TCPSynRetrans - old_TCPSynRetrans))
	expect tries -ge 2
	expect tries -le 6
	expect lost_rate -ge 1000000000 "a rate before there is a connection"
	for flow in a b; do
		expect ${flow}_done -eq 1
		expect ${flow}_same -eq 1
	done
}

# A timeout while losses are being repaired begins a silence as any.
after_losses() {
	netem="run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us loss"
	wire_to_h2 "rate 1gbit delay 10us"
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
		0.1	$netem 100%
		0.1003	$netem 0%
		0.1005	$netem 100%
		0.2	info quiet flow=a
		0.2	reach again flow=a rate=100000 within=1 every=0.01 acked=1 last=1
		0.45	$netem 0%
	EOF
	# In recovery, or this shows nothing.
	expect quiet_ca_state -eq 3
	expect again_began_us -gt 450000
	expect again_began_us -le 510000 "TCP did not try again soon"
	expect a_done -eq 1
	expect a_same -eq 1
}

# A router that gives up the host, after a while, says so: TCP then goes back by one
# doubling of its timer, which must not be more than there were.
after_a_router_said_so() {
	wire_to_h2 "rate 1gbit delay 10us"
	# They know each other, whatever is lost.
	must ip -n mid neighbour replace $h2_v4 dev to2 nud permanent \
		lladdr "$(ip netns exec h2 cat /sys/class/net/eth0/address)"
	must ip -n h2 neighbour replace 10.7.2.1 dev eth0 nud permanent \
		lladdr "$(ip netns exec mid cat /sys/class/net/to2/address)"
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us loss 100%
		0.9	run ip -n mid route add unreachable $h2_v4
		1.2	run ip -n mid route del unreachable $h2_v4
		1.2	run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us
		1.45	goodput again flow=a for=0.1
		1.6	end
	EOF
	# TCP's least timer is 200 ms.
	expect again -ge 100000
}

# Nor is a receiver silent that has no room.
while_the_receiver_has_no_room() {
	wire_to_h2 "rate 1gbit delay 10us"
	sockets <<-END
		client, server = connect("$h2_v4")
		client.sendall(bytes(4000))
		time.sleep(0.01)
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
		client.sendall(bytes(20000))
		time.sleep(4)
		# tcpi_retransmits .. and tcpi_total_retrans
		info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
		result(tries=int.from_bytes(info[100:104], "little"),
		       window=int.from_bytes(info[228:232], "little"))
	END
	expect window -eq 0
	expect tries -ge 2
	expect tries -le 10
}

run_cases hosts after_all_is_lost after_the_link_was_down after_no_ack_came \
	after_losses after_a_router_said_so while_the_receiver_has_no_room \
	syns_are_tried_as_ever syns_are_tried_as_ever_by_others
