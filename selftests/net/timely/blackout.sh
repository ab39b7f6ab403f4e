#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A second of nothing in the middle of a transfer: how the retransmission timer backs off, how
# connections spread, and how soon the rate is back. The guest's kernel has a jiffy of 10 ms
# (CONFIG_HZ=100), and TCP's timer counts jiffies.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

jiffy_us=10000
# TCP's least timer, by default
rto_min_us=200000

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_qdisc fq
	load_timely $gig
}

set_h1() { must ip netns exec h1 sh -c "echo $2 >/proc/sys/net/ipv4/$1"; }

# least_timer US [ROUTE-OPTION]...: of the IPv4 route, and of new sockets; of the IPv6 route where
# the kernel has no such setting for sockets, before 6.11
least_timer() {
	least_us=$1
	shift
	must ip -n h1 route change 10.7.0.0/16 via 10.7.1.1 "$@"
	if [ -e /proc/sys/net/ipv4/tcp_rto_min_us ]; then
		set_h1 tcp_rto_min_us "$least_us"
	else
		must ip -n h1 -6 route change fd07::/16 via fd07:1::1 "$@"
	fi
}

# With the setting, and a least timer of 25 ms: 20 timeouts that do not double a timer of at
# least 50 ms bridge a second.
retry_often() {
	set_h1 timely/linear_timeouts 20
	least_timer 25000 rto_min 25ms
}

retry_as_ever() {
	set_h1 timely/linear_timeouts 0
	least_timer $rto_min_us
}

wire_light() { echo "tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us"; }
wire_dark() { echo "$(wire_light) loss 100%"; }

# comes_back ADDRESS COMMAND-THAT-ENDS-IT COMMAND-THAT-RESUMES-IT: by TCP's own timer, which
# waits for up to as long again, and a quarter, as the silence was
comes_back() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$1 cc=timely verify=1
		0.06	goodput before flow=a for=0.04
		0.11	run $2
		0.2	goodput nothing flow=a for=0.9
		0.2	reach again flow=a rate=before*0.9 within=2.5 every=0.01 acked=1 last=1
		1.11	run $3
	EOF
	expect before -ge 800000
	expect nothing -eq 0
	expect again_began_us -gt 1110000
	# A tail loss probe; 210, 420 to 525 and 840 to 1050 ms, with what the timers round up
	expect again_began_us -le 2050000 "TCP did not try again"
	expect again_us -gt 0 "the rate did not come back"
	expect again_us -le 200000 "us after the first ACK"
	expect a_done -eq 1
	expect a_same -eq 1
}

# comes_back_soon ADDRESS COMMAND-THAT-ENDS-IT COMMAND-THAT-RESUMES-IT: with the setting,
# 90 % of the rate are back within 200 ms after the end
comes_back_soon() {
	retry_often
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$1 cc=timely verify=1
		0.06	goodput before flow=a for=0.04
		0.11	run $2
		0.2	goodput nothing flow=a for=0.9
		1.11	run $3
		1.11	reach again flow=a rate=before*0.9 within=0.5 every=0.01 last=1
	EOF
	retry_as_ever
	expect before -ge 800000
	expect nothing -eq 0
	expect again_us -gt 0 "the rate did not come back"
	expect again_us -le 200000 "us after the silence"
	expect a_done -eq 1
	expect a_same -eq 1
}

after_all_is_lost() { comes_back $h2_v6 "$(wire_dark)" "$(wire_light)"; }

after_the_link_was_down() {
	comes_back $h2_v4 "ip -n mid link set to2 down" "ip -n mid link set to2 up"
}

# Only ACKs are lost: data arrives, and nobody hears of it.
after_no_ack_came() {
	comes_back $h2_v4 \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us loss 100%" \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us"
}

soon_after_all_is_lost() { comes_back_soon $h2_v6 "$(wire_dark)" "$(wire_light)"; }

soon_after_the_link_was_down() {
	comes_back_soon $h2_v4 "ip -n mid link set to2 down" "ip -n mid link set to2 up"
}

soon_after_no_ack_came() {
	comes_back_soon $h2_v4 \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us loss 100%" \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us"
}

# ---- what is sent into the silence ----

# silence CC FLOWS SECONDS: so many connections send a packet each, at once, into a wire that
# loses all for so long. Sets
#	arrived		connections whose data came in the end
#	tries		retransmissions of the connection with the fewest, until then
#	wait_1 ...	us from each packet of the first connection to the next
#	share_1 ...	of all connections' first retransmissions, second, ...: the most, percent,
#			that leave within 10 ms
# There are no tail loss probes: each retransmission is a timeout's.
silence() {
	tracing_up
	set_h1 tcp_early_retrans 0
	wire_to_h2 "rate 1gbit delay 10us"
	sockets <<-END
		import re, resource, subprocess
		resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
		def put(name, text):
		    with open("$tracing/" + name, "w") as file:
		        file.write(text)
		pairs = [connect("$h2_v4", b"$1") for _ in range($2)]
		for client, server in pairs:
		    client.sendall(bytes(1000))
		    server.recv(1000)
		time.sleep(0.5)
		subprocess.run("$(wire_dark)".split(), check=True)
		put("trace", "")
		put("trace_clock", "mono")
		put("buffer_size_kb", "16384")
		put("events/tcp/tcp_retransmit_skb/enable", "1")
		begin = time.monotonic()
		for client, _ in pairs:
		    client.sendall(bytes(1000))
		time.sleep($3)
		put("events/tcp/tcp_retransmit_skb/enable", "0")
		subprocess.run("$(wire_light)".split(), check=True)
		arrived = 0
		for client, server in pairs:
		    server.settimeout(10)
		    arrived += len(server.recv(1000)) == 1000
		tries = {client.getsockname()[1]: [begin] for client, _ in pairs}
		line = re.compile(r" ([0-9]+[.][0-9]+): tcp_retransmit_skb: .* sport=([0-9]+) ")
		for found in map(line.search, open("$tracing/trace")):
		    if found and int(found[2]) in tries:
		        tries[int(found[2])].append(float(found[1]))
		put("trace", "")
		put("trace_clock", "local")
		fewest = min(map(len, tries.values())) - 1
		result(arrived=arrived, tries=fewest)
		first = tries[pairs[0][0].getsockname()[1]]
		for number in range(1, len(first)):
		    result(**{f"wait_{number}": (first[number] - first[number - 1]) * 1e6})
		for number in range(1, fewest + 1):
		    at = sorted(each[number] for each in tries.values())
		    most = max(sum(0 <= each - start < 0.01 for each in at) for start in set(at))
		    result(**{f"share_{number}": most * 100 / len(at)})
	END
	set_h1 tcp_early_retrans 3
	expect arrived -eq "$2"
}

# RFC 6298 5.5: the timer doubles at each timeout. The first doubling adds up to a quarter,
# which the later ones double, too. The kernel rounds timers up, above 640 ms to 80 ms.
timer_doubles() {
	for control in timely timely_patched; do
		silence $control 1 4.5
		expect tries -ge 4 $control
		least=$rto_min_us
		for number in 1 2 3 4; do
			expect wait_$number -ge $least $control
			least=$((2 * least))
		done
		# TCP's timer is the RTT more than its least: a jiffy.
		most=$(((rto_min_us + jiffy_us) * 5 / 4))
		for number in 1 2 3 4; do
			expect wait_$number -le $((most + 9 * jiffy_us)) $control
			most=$((2 * most))
		done
	done
}

# The setting is of timeouts after the first: that one always doubles the timer.
timer_is_held() {
	set_h1 timely/linear_timeouts 3
	silence timely 1 4.5
	set_h1 timely/linear_timeouts 0
	expect tries -ge 6
	expect wait_1 -ge $rto_min_us
	expect wait_2 -ge $((2 * rto_min_us))
	expect wait_2 -le $(((rto_min_us + jiffy_us) * 5 / 2 + jiffy_us))
	for number in 3 4 5; do
		expect wait_$number -ge $((wait_2 - jiffy_us))
		expect wait_$number -le $((wait_2 + 2 * jiffy_us))
	done
	expect wait_6 -ge $((2 * wait_2 - 2 * jiffy_us))
}

# Never sooner than twice the least timer, and no more than 20 of a second's.
timer_is_held_above_the_route_s() {
	retry_often
	silence timely 1 1
	retry_as_ever
	expect tries -ge 8
	expect tries -le 21
	expect wait_1 -ge 25000
	for number in 2 3 4 5 6 7 8; do
		expect wait_$number -ge 50000
		expect wait_$number -le $((125000 + jiffy_us))
	done
}

# Presets by name have no such setting.
timer_of_presets_is_not_held() {
	set_h1 timely/linear_timeouts 20
	silence timely_patched 1 2
	set_h1 timely/linear_timeouts 0
	expect tries -le 3
	expect wait_3 -ge $((4 * rto_min_us))
}

# A thousand connections time out within a jiffy, and do not retransmit together from then on.
# Others do, all of them.
a_thousand_spread() {
	silence timely 1000 2.2
	expect tries -ge 3
	expect share_2 -le 25 "% of the second retransmissions within 10 ms"
	expect share_3 -le 40 "% of the third retransmissions within 10 ms"
	silence cubic 1000 2.2
	expect tries -ge 3
	expect share_2 -ge 90 "% of cubic's"
	expect share_3 -ge 90 "% of cubic's"
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

# A timeout while losses are being repaired begins a silence as any, and the timer doubles.
after_losses() {
	netem="run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us loss"
	wire_to_h2 "rate 1gbit delay 10us"
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
		0.1	$netem 100%
		0.1003	$netem 0%
		0.1005	$netem 100%
		0.2	info quiet flow=a
		0.2	reach again flow=a rate=100000 within=1.5 every=0.01 acked=1 last=1
		0.45	$netem 0%
	EOF
	# In recovery, or this shows nothing.
	expect quiet_ca_state -eq 3
	# Retransmissions 200 ms into the silence and, doubled, 400 to 500 ms later
	expect again_began_us -ge $((100000 + 3 * rto_min_us))
	expect again_began_us -le $((100000 + rto_min_us + (rto_min_us + jiffy_us) * 5 / 2 + 50000))
	expect a_done -eq 1
	expect a_same -eq 1
}

# A router that has no way to the host says so for each retransmission, and TCP takes the
# back-off of that one back (RFC 6069): without any setting, retransmissions come at TCP's
# least timer then.
after_a_router_said_so() {
	known_hosts
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	run $(wire_dark)
		0.25	run ip -n mid route add unreachable $h2_v4
		1.1	run ip -n mid route del unreachable $h2_v4
		1.1	run $(wire_light)
		1.1	reach again flow=a rate=100000 within=1 every=0.01 last=1
	EOF
	echo $((1000000 / jiffy_us)) >/proc/sys/net/ipv4/route/error_cost
	expect again_us -gt 0
	expect again_us -le $((rto_min_us + 5 * jiffy_us))
}

# So it is with the setting, where icsk_backoff has to agree with the timer.
after_a_router_said_so_to_a_held_timer() {
	known_hosts
	set_h1 timely/linear_timeouts 20
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	run $(wire_dark)
		0.9	run ip -n mid route add unreachable $h2_v4
		1.6	run ip -n mid route del unreachable $h2_v4
		1.6	run $(wire_light)
		1.6	reach again flow=a rate=100000 within=1 every=0.01 last=1
	EOF
	echo $((1000000 / jiffy_us)) >/proc/sys/net/ipv4/route/error_cost
	set_h1 timely/linear_timeouts 0
	expect again_us -gt 0
	expect again_us -le $((rto_min_us + 5 * jiffy_us))
}

# They know each other, whatever is lost; and routers answer each packet: nothing is charged to
# the hosts that they answer. The kernel has one such charge for all namespaces, a second's jiffies.
known_hosts() {
	wire_to_h2 "rate 1gbit delay 10us"
	must ip netns exec mid sh -c "echo 0 >/proc/sys/net/ipv4/icmp_ratelimit"
	echo 0 >/proc/sys/net/ipv4/route/error_cost
	must ip -n mid neighbour replace $h2_v4 dev to2 nud permanent \
		lladdr "$(ip netns exec h2 cat /sys/class/net/eth0/address)"
	must ip -n h2 neighbour replace 10.7.2.1 dev eth0 nud permanent \
		lladdr "$(ip netns exec mid cat /sys/class/net/to2/address)"
}

# A receiver without room answers: its connection is in no silence, and no setting makes TCP ask
# it more often. The receiver of 6.1 drops what it has no room for without an answer, and its
# sender cannot tell that from a silence.
while_the_receiver_has_no_room() {
	wire_to_h2 "rate 1gbit delay 10us"
	set_h1 timely/linear_timeouts 20
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
	set_h1 timely/linear_timeouts 0
	expect tries -ge 2
	if kernel_before 6.12; then
		expect window -gt 0 "the receiver answers"
		expect tries -le 30
	else
		expect window -eq 0
		expect tries -le 10
	fi
}

# A link that goes down takes its IPv6 addresses along: what needs them comes first.
run_cases hosts after_all_is_lost soon_after_all_is_lost \
	after_the_link_was_down after_no_ack_came soon_after_the_link_was_down soon_after_no_ack_came \
	after_losses after_a_router_said_so after_a_router_said_so_to_a_held_timer \
	timer_doubles timer_is_held timer_is_held_above_the_route_s timer_of_presets_is_not_held \
	a_thousand_spread while_the_receiver_has_no_room \
	syns_are_tried_as_ever syns_are_tried_as_ever_by_others
