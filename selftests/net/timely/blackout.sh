#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A path that carries nothing for a second in the middle of a transfer: how the retransmission
# timer backs off, how retransmissions of many connections spread, and how soon the rate is back;
# with and without linear_timeouts. Topology: h1 -- mid -- h2, 1 Gb/s. The guest's kernel has a
# jiffy of 10 ms (CONFIG_HZ=100), the unit of TCP's timer.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

jiffy_us=10000
# TCP's minimum retransmission timeout, by default
rto_min_us=200000

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_qdisc fq
	load_timely $gig
}

set_h1() { must ip netns exec h1 sh -c "echo $2 >/proc/sys/net/ipv4/$1"; }

# least_timer US [ROUTE-OPTION]...: set TCP's minimum timeout of the IPv4 route and of new sockets.
# Kernels before 6.11 have no setting for sockets: there it is set for the IPv6 route.
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

# linear_timeouts 20 and a minimum timeout of 25 ms: 20 timeouts of 50 ms or more last for a
# second.
retry_often() {
	set_h1 timely/linear_timeouts 20
	least_timer 25000 rto_min 25ms
}

retry_by_default() {
	set_h1 timely/linear_timeouts 0
	least_timer $rto_min_us
}

good_wire() { echo "tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit delay 10us"; }
lossy_wire() { echo "$(good_wire) loss 100%"; }

# comes_back ADDRESS STOP-COMMAND RESUME-COMMAND: with TCP's own timer. A retransmission may come
# up to 1.25 times the outage's length after its end.
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
	# A tail loss probe, then timeouts after 210, 420 to 525 and 840 to 1050 ms, rounded up
	expect again_began_us -le 2050000 "TCP did not try again"
	expect again_us -gt 0 "the rate did not come back"
	expect again_us -le 200000 "us after the first ACK"
	expect a_done -eq 1
	expect a_same -eq 1
}

# comes_back_soon ADDRESS STOP-COMMAND RESUME-COMMAND: with linear_timeouts, 90 % of the goodput
# is back within 200 ms after the end of the outage.
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
	retry_by_default
	expect before -ge 800000
	expect nothing -eq 0
	expect again_us -gt 0 "the rate did not come back"
	expect again_us -le 200000 "us after the outage"
	expect a_done -eq 1
	expect a_same -eq 1
}

after_all_is_lost() { comes_back $h2_v6 "$(lossy_wire)" "$(good_wire)"; }

after_the_link_was_down() {
	comes_back $h2_v4 "ip -n mid link set to2 down" "ip -n mid link set to2 up"
}

# Only ACKs are lost: data arrives, but the sender does not know.
after_no_ack_came() {
	comes_back $h2_v4 \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us loss 100%" \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us"
}

soon_after_all_is_lost() { comes_back_soon $h2_v6 "$(lossy_wire)" "$(good_wire)"; }

soon_after_the_link_was_down() {
	comes_back_soon $h2_v4 "ip -n mid link set to2 down" "ip -n mid link set to2 up"
}

soon_after_no_ack_came() {
	comes_back_soon $h2_v4 \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us loss 100%" \
		"tc -n mid qdisc change dev to1 root netem limit 10000 delay 10us"
}

# ---- retransmissions during an outage ----

# silence CC FLOWS SECONDS: FLOWS connections send one packet each, at the same time, into a link
# that loses everything for SECONDS. Sets
#	arrived		connections whose data has arrived after the outage
#	tries		retransmissions during the outage of the connection with the fewest
#	wait_1 ...	us from one packet of the first connection to its next
#	share_1 ...	of the first (second, ...) retransmissions of all connections, percent: the
#			largest share that leaves within 10 ms
# Tail loss probes are off, so each retransmission follows a timeout.
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
		subprocess.run("$(lossy_wire)".split(), check=True)
		put("trace", "")
		put("trace_clock", "mono")
		put("buffer_size_kb", "16384")
		put("events/tcp/tcp_retransmit_skb/enable", "1")
		begin = time.monotonic()
		for client, _ in pairs:
		    client.sendall(bytes(1000))
		time.sleep($3)
		put("events/tcp/tcp_retransmit_skb/enable", "0")
		subprocess.run("$(good_wire)".split(), check=True)
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

# After long RTTs a connection resumes with two packets of 1448 bytes per smoothed RTT, which rises a little after it was
# read. With the RTTs of before it has half of the first rate, which is a twentieth of the link rate.
long_rtts_make_the_rate_low() {
	set_h1 timely/preset target_delay
	set_h1 tcp_early_retrans 0
	sockets <<-END
		import subprocess
		client, server = connect("$h2_v4")
		def info():
		    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
		def transfer(size):
		    client.sendall(bytes(size))
		    server.recv(size, socket.MSG_WAITALL)
		def outage(name):
		    result(**{f"{name}_srtt": int.from_bytes(info()[68:72], sys.byteorder)})
		    subprocess.run("$(lossy_wire)".split(), check=True)
		    client.sendall(bytes(1000))
		    while info()[2] < 3:
		        time.sleep(0.01)
		    result(**{f"{name}_rate": rate(client)})
		    subprocess.run("$(good_wire)".split(), check=True)
		    server.recv(1000, socket.MSG_WAITALL)
		transfer(200000)
		outage("short")
		subprocess.run("$(good_wire)".replace("10us", "5ms").split(), check=True)
		for _ in range(2):
		    transfer(20000)
		outage("long")
	END
	set_h1 tcp_early_retrans 3
	set_h1 timely/preset patched
	for parameter in $gig; do
		set_h1 "timely/${parameter%%=*}" "${parameter#*=}"
	done
	expect short_rate -ge 24000
	expect long_srtt -ge 1000
	most=$((2 * 1448 * 8 * 1000 / long_srtt))
	expect long_rate -le $((most + most / 50))
	expect long_rate -ge $((most - most / 5))
}

# RFC 6298 5.5: the timer doubles at each timeout. The first doubling adds a random part of up to
# a quarter, which later doublings double as well. The kernel rounds timers up, those above 640 ms
# to a multiple of 80 ms.
timer_doubles() {
	for control in timely timely_patched; do
		silence $control 1 4.5
		expect tries -ge 4 $control
		least=$rto_min_us
		for number in 1 2 3 4; do
			expect wait_$number -ge $least $control
			least=$((2 * least))
		done
		# TCP's timer is its minimum plus the RTT, which is rounded up to a jiffy.
		most=$(((rto_min_us + jiffy_us) * 5 / 4))
		for number in 1 2 3 4; do
			expect wait_$number -le $((most + 9 * jiffy_us)) $control
			most=$((2 * most))
		done
	done
}

# The first timeout always doubles the timer. With linear_timeouts=3 the next three timeouts do not;
# later ones double it again.
timer_does_not_double() {
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

# Retransmissions are never closer than twice the minimum timeout, and at most 20 in a second.
timer_stays_at_least_twice_the_minimum() {
	retry_often
	silence timely 1 1
	retry_by_default
	expect tries -ge 8
	expect tries -le 21
	expect wait_1 -ge 25000
	for number in 2 3 4 5 6 7 8; do
		expect wait_$number -ge 50000
		expect wait_$number -le $((125000 + jiffy_us))
	done
}

# Congestion controls that are presets by name (timely_patched) ignore linear_timeouts.
timer_of_presets_doubles() {
	set_h1 timely/linear_timeouts 20
	silence timely_patched 1 2
	set_h1 timely/linear_timeouts 0
	expect tries -le 3
	expect wait_3 -ge $((4 * rto_min_us))
}

# A thousand connections have their first timeout within one jiffy. Their later retransmissions
# are spread in time; those of cubic are not.
a_thousand_spread() {
	silence timely 1000 2.2
	expect tries -ge 3
	expect share_2 -le 25 "% of the second retransmissions within 10 ms"
	expect share_3 -le 40 "% of the third retransmissions within 10 ms"
	silence cubic 1000 2.2
	expect tries -ge 3
	expect share_2 -ge 90 "% of the second retransmissions of cubic"
	expect share_3 -ge 90 "% of the third retransmissions of cubic"
}

# Retransmissions of SYNs keep TCP's own timer: few, and a second apart.
syns_are_retried_by_default() {
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

# The same when a connection changes to timely during the handshake. A lost SYN sets no rate.
syns_are_retried_by_default_after_a_switch() {
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

# A timeout during loss recovery (TCP_CA_Recovery) starts the same back-off: the timer doubles.
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
	# The case is valid only in recovery.
	expect quiet_ca_state -eq 3
	# Retransmissions 200 ms after the start of the outage and, doubled, 400 to 500 ms later
	expect again_began_us -ge $((100000 + 3 * rto_min_us))
	expect again_began_us -le $((100000 + rto_min_us + (rto_min_us + jiffy_us) * 5 / 2 + 50000))
	expect a_done -eq 1
	expect a_same -eq 1
}

# A router without a route answers each retransmission by "ICMP unreachable". TCP then reverts
# its back-off (RFC 6069), so retransmissions come at TCP's minimum timeout, without any setting.
after_icmp_unreachable() {
	known_hosts
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	run $(lossy_wire)
		0.25	run ip -n mid route add unreachable $h2_v4
		1.1	run ip -n mid route del unreachable $h2_v4
		1.1	run $(good_wire)
		1.1	reach again flow=a rate=100000 within=1 every=0.01 last=1
	EOF
	echo $((1000000 / jiffy_us)) >/proc/sys/net/ipv4/route/error_cost
	expect again_us -gt 0
	expect again_us -le $((rto_min_us + 5 * jiffy_us))
}

# The same with linear_timeouts: icsk_backoff has to agree with the timer.
after_icmp_unreachable_with_linear_timeouts() {
	known_hosts
	set_h1 timely/linear_timeouts 20
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.1	run $(lossy_wire)
		0.9	run ip -n mid route add unreachable $h2_v4
		1.6	run ip -n mid route del unreachable $h2_v4
		1.6	run $(good_wire)
		1.6	reach again flow=a rate=100000 within=1 every=0.01 last=1
	EOF
	echo $((1000000 / jiffy_us)) >/proc/sys/net/ipv4/route/error_cost
	set_h1 timely/linear_timeouts 0
	expect again_us -gt 0
	expect again_us -le $((rto_min_us + 5 * jiffy_us))
}

# Permanent neighbours, so that no ARP is lost, and no rate limit for ICMP errors. The kernel has
# one error_cost, which limits these errors, for all namespaces: by default a second, in jiffies.
known_hosts() {
	wire_to_h2 "rate 1gbit delay 10us"
	must ip netns exec mid sh -c "echo 0 >/proc/sys/net/ipv4/icmp_ratelimit"
	echo 0 >/proc/sys/net/ipv4/route/error_cost
	must ip -n mid neighbour replace $h2_v4 dev to2 nud permanent \
		lladdr "$(ip netns exec h2 cat /sys/class/net/eth0/address)"
	must ip -n h2 neighbour replace 10.7.2.1 dev eth0 nud permanent \
		lladdr "$(ip netns exec mid cat /sys/class/net/to2/address)"
}

# A receiver whose window is full still answers, so linear_timeouts does not make TCP's window
# probes more frequent. The receiver of Linux 6.1 drops packets that do not fit without an answer,
# which its sender cannot distinguish from an outage.
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

# A link that goes down loses its IPv6 addresses, so the cases that need IPv6 come first.
run_cases hosts after_all_is_lost soon_after_all_is_lost \
	after_the_link_was_down after_no_ack_came soon_after_the_link_was_down soon_after_no_ack_came \
	after_losses after_icmp_unreachable after_icmp_unreachable_with_linear_timeouts \
	timer_doubles timer_does_not_double timer_stays_at_least_twice_the_minimum \
	timer_of_presets_doubles long_rtts_make_the_rate_low \
	a_thousand_spread while_the_receiver_has_no_room \
	syns_are_retried_by_default syns_are_retried_by_default_after_a_switch
