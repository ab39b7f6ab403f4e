#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The wait of ACKs: where the receiver's qdisc writes the time into the IPv4 IDs of ACKs (ack_time),
# or the receiver writes TCP timestamps in microseconds (the feature tcp_usec_ts of its route), RTTs
# do not include how long ACKs wait on their way back. Topology:
# h1 -- mid -- h2, 10 Gb/s. The queue towards h1 has room for 100 packets, which bursts of h2's data
# fill for a part of the time: ACKs of h1's data wait up to 121 us.

. "$(dirname "$0")/ctl_lib.sh"

need_tools insmod rmmod ip tc ethtool

hosts() {
	hosts_up "rate 10gbit delay 10us" "rate 10gbit delay 10us limit 100"
	must ip netns exec h2 ethtool -K eth0 tso off gso off
	h1_qdisc fq
	load_timely preset=target_delay link_rate_kbps=10000000
}

# microseconds NAMESPACE GATEWAY: the host writes timestamps in microseconds to the other host.
# iproute2 before 6.7 cannot set the feature of a route.
microseconds() {
	ip -n "$1" route replace 10.7.0.0/16 via "$2" features tcp_usec_ts 2>"$work/ip" ||
		must ip netns exec "$1" /usr/bin/python3 -c "
import pyroute2
pyroute2.IPRoute().route('replace', dst='10.7.0.0/16', gateway='$2', metrics={'features': 1 << 4})"
}

# A connection from h1 to h2. Data from h2 to h1 start later: sets sent, in kbit/s.
both_ways() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.02	flow back from=h2 to=h1 addr=10.7.1.2 cc=cubic
		0.05	goodput back flow=back for=0.15
		0.05	goodput sent flow=a for=0.15
		0.26	end
	EOF
}

# Ask timelyctl ten times: sets longest, the longest wait in ns, and seen, how often it knew the
# connection.
ask_for_waits() {
	longest=0 seen=0
	where=$in_h1
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		ctl 0 -j flows
		shown=$(sed -n 's/.*"ack_wait_ns":\([0-9]*\).*/\1/p' "$work/out")
		[ -z "$shown" ] || seen=$((seen + 1))
		[ "${shown:-0}" -le "$longest" ] || longest=$shown
		sleep "$1"
	done
}

# The longest wait that timelyctl shows beside data in the other direction: sets longest, in ns.
look_at_waits() {
	traffic <<-EOF &
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.02	flow back from=h2 to=h1 addr=10.7.1.2 cc=cubic
		0.6	end
	EOF
	sleep 0.1
	ask_for_waits 0.02
	wait $! || fail "the transfers failed"
	expect seen -eq 10 "timelyctl did not show the connection"
}

milliseconds_do_not_tell() {
	both_ways
	say "milliseconds: $sent kbit/s, back $back"
	look_at_waits
	expect longest -eq 0
}

ack_times_tell() {
	must insmod "$modules/sch_timely.ko"
	must tc -n h2 qdisc replace dev eth0 root timely noack_time
	look_at_waits
	expect longest -eq 0
	must tc -n h2 qdisc change dev eth0 root timely ack_time
	both_ways
	say "ACK times: $sent kbit/s, back $back"
	expect sent -ge 8500000 "the wait of ACKs slows the connection down"
	expect back -ge 8500000
	look_at_waits
	expect longest -ge 10000 "no ACK has waited"
	timed=$(tc -n h2 -s qdisc show dev eth0 | sed -n 's/.* acks_timed \([0-9]*\) .*/\1/p')
	expect timed -ge 1000
}

# TCP shows nobody the packets of a half-closed connection: the ID of an earlier ACK must not count.
half_closed() {
	must tc -n h2 qdisc replace dev eth0 root timely
	traffic <<-EOF &
		0	flow back from=h2 to=h1 addr=10.7.1.2 cc=cubic
		0.8	end
	EOF
	back=$!
	sockets <<-'EOF' &
		client, server = connect("10.7.2.2")
		client.setsockopt(socket.SOL_SOCKET, 32, 1 << 25)	# SO_SNDBUFFORCE
		client.setsockopt(socket.SOL_SOCKET, 47, 30000000)	# SO_MAX_PACING_RATE
		client.sendall(bytes(3000000))
		got = 0
		while got < 3000000:
		    got += len(server.recv(1 << 20))
		client.sendall(bytes(15000000))
		client.shutdown(socket.SHUT_WR)
		while data := server.recv(1 << 20):
		    got += len(data)
		result(half_got=got)
	EOF
	half=$!
	sleep 0.25
	ask_for_waits 0.01
	wait $half || fail "the half-closed connection failed"
	wait $back || fail "the transfer failed"
	expect seen -ge 5 "timelyctl did not show the connection"
	expect longest -eq 0
	must tc -n h2 qdisc replace dev eth0 root pfifo
}

# A receiver that changes its qdisc during a connection.
ack_times_end() {
	must tc -n h2 qdisc replace dev eth0 root timely
	traffic <<-EOF &
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		1	end
	EOF
	sleep 0.3
	where=$in_h1
	ctl 0 -j flows
	json 'len(all) == 1 and "acks-timed" in n["states"]'
	must tc -n h2 qdisc replace dev eth0 root pfifo
	sleep 0.1
	ctl 0 -j flows
	json 'len(all) == 1 and "acks-timed" not in n["states"]'
	must tc -n h2 qdisc replace dev eth0 root timely
	sleep 0.1
	ctl 0 -j flows
	json 'len(all) == 1 and "acks-timed" in n["states"]'
	wait $! || fail "the transfer failed"
	must tc -n h2 qdisc replace dev eth0 root pfifo
}

microseconds_tell() {
	microseconds h2 10.7.2.1
	both_ways
	say "microseconds: $sent kbit/s, back $back"
	expect sent -ge 8500000 "the wait of ACKs slows the connection down"
	expect back -ge 8500000
	look_at_waits
	expect longest -ge 10000 "no ACK has waited"
}

flows_shows_the_state() {
	traffic <<-EOF &
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		1	end
	EOF
	sleep 0.5
	where=$in_h1
	ctl 0 -j flows
	json 'len(all) == 1 and "acks-timed" in n["states"]'
	wait $! || fail "the transfer failed"
}

run_cases hosts milliseconds_do_not_tell ack_times_tell half_closed ack_times_end microseconds_tell flows_shows_the_state
