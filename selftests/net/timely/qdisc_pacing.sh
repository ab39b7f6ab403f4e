#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Pacing: sockets get their SO_MAX_PACING_RATE within 1 %, flows get at most maxrate, and packets
# are at most one slot later than with even spacing. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	pair_up
	load_qdisc
}

# paced(KEY, RATE, COUNT): one socket sends COUNT packets at once. KEY_rate is the rate at which
# they leave, bytes/s, without the first SKIP packets.
cat >"$work/paced.py" <<-'EOF'
	def paced(key, rate, count, size=958, skip=0, limit=True):
	    sink, sender = Sink(), source(rate=rate if limit else None)
	    for number in range(count):
	        sender.send(payload(number, 0, size))
	    got = sink.take(count, 2 + count * on_the_wire(size) / rate)
	    result(**{key + "_arrived": len(got)})
	    result(**{key + "_in_order": [p.number for p in got] == list(range(count))})
	    times = [p.at for p in got][skip:]
	    wire = on_the_wire(size)
	    if len(times) > 1 and times[-1] > times[0]:
	        result(**{key + "_rate": (len(times) - 1) * wire * S / (times[-1] - times[0])})
	    errors(key, lateness(times, wire * S // rate))
EOF

paced() {
	{
		cat "$work/paced.py"
		echo "paced($*)"
	} >"$work/plan"
	packets <"$work/plan"
}

# ns: a slot of 1024, and a step of 256 of the guest's clock. Without transmit times the ideal
# departures are computed from the packets' arrivals, which have the clock's resolution.
slot=1280

# 1 Mb/s to 40 Gb/s: gaps between packets of 8 ms to 200 ns.
udp_gets_its_rate() {
	h1_qdisc timely $exact flow_limit 10000
	for rate in 125000 1250000 12500000 125000000 1250000000 5000000000; do
		paced "'at_$rate', $rate, 400"
		expect at_${rate}_arrived -eq 400
		expect at_${rate}_in_order -eq 1
		expect_near at_${rate}_rate $rate 1
		expect at_${rate}_p99 -le $slot
	done
}

# With default options packets leave in bursts of the quantum, at the same average rate.
udp_gets_its_rate_by_default() {
	h1_qdisc timely flow_limit 10000
	for rate in 1250000 125000000; do
		paced "'at_$rate', $rate, 1000, skip=100"
		expect at_${rate}_arrived -eq 1000
		expect at_${rate}_in_order -eq 1
		expect_near at_${rate}_rate $rate 1
	done
}

odd_rates_and_sizes() {
	h1_qdisc timely $exact flow_limit 10000
	for rate in 1234567 98765432 777777777; do
		for size in 301 1111 1472; do
			paced "'at_$rate', $rate, 300, $size"
			expect at_${rate}_arrived -eq 300
			expect_near at_${rate}_rate $rate 1
			expect at_${rate}_p99 -le $slot
		done
	done
}

# Sixty sockets send at the same time, each at another rate.
sockets_at_once() {
	h1_qdisc timely $exact flow_limit 10000
	packets <<-'EOF'
		sink = Sink()
		rng = random.Random(3)
		rates = [rng.randrange(1000000, 50000000) for _ in range(60)]
		senders = [source(rate=rate) for rate in rates]
		for _ in range(50):
		    for index, sender in enumerate(senders):
		        sender.send(payload(index, 0, 958))
		got = sink.take(3000, 2)
		result(arrived=len(got))
		late, off = [], []
		for index, rate in enumerate(rates):
		    times = [p.at for p in got if p.number == index]
		    late += lateness(times, 1000 * S / rate)
		    off.append(abs((len(times) - 1) * 1000 * S / (times[-1] - times[0]) / rate - 1))
		errors("together", late)
		result(off_ppm=max(off) * 1e6)
	EOF
	expect arrived -eq 3000
	expect together_p99 -le $slot
	expect off_ppm -le 10000
}

maxrate_limits_each_flow() {
	h1_qdisc timely $exact flow_limit 10000 maxrate 80mbit
	paced "'alone', 10000000, 300, limit=False"
	expect_near alone_rate 10000000 1
	expect alone_p99 -le $slot
	paced "'lower', 5000000, 300"
	expect_near lower_rate 5000000 1
	paced "'higher', 10000000, 300, limit=True"
	expect_near higher_rate 10000000 1
	must tc -n h1 qdisc change dev eth0 root timely maxrate 160mbit
	paced "'raised', 20000000, 300, limit=False"
	expect_near raised_rate 20000000 1
}

# A change of the socket's rate applies to later packets. (The kernel lets the rate of a UDP socket
# only fall.)
rate_may_fall() {
	h1_qdisc timely $exact flow_limit 10000
	packets <<-'EOF'
		sink, sender = Sink(), source()
		for step, rate in enumerate((10000000, 2000000, 1000000)):
		    sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", rate))
		    for number in range(200):
		        sender.send(payload(number, 0, 958))
		    times = [p.at for p in sink.take(200, 2)]
		    result(**{f"rate_{step}": (len(times) - 1) * 1000 * S / (times[-1] - times[0])})
	EOF
	expect_near rate_0 10000000 1
	expect_near rate_1 2000000 1
	expect_near rate_2 1000000 1
}

# Packets that are queued already follow a change of the rate.
queued_follow_the_rate() {
	for lazy in lazy nolazy; do
		h1_qdisc timely $exact flow_limit 10000 $lazy
		packets <<-'EOF'
			sink, sender = Sink(), source(rate=1000000)
			for number in range(100):
			    sender.send(payload(number, 0, 958))
			early = sink.take(50, 0.0501)
			sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", 100000))
			late = sink.take(50, 2)
			result(arrived=len(early + late), early=len(early))
			times = [p.at for p in late[2:]]
			result(late=(len(times) - 1) * 1000 * S / (times[-1] - times[0]))
		EOF
		expect arrived -eq 100 $lazy
		expect early -le 51
		expect_near late 100000 2
	done
}

# With "lazy" the rate is read again when a packet is due. The gap is 250 ms; within the first gap
# the rate is halved, so that the packet's gap becomes 500 ms. With "nolazy" the packet leaves at
# its first departure time.
lazy_while_packets_wait() {
	for lazy in lazy nolazy; do
		h1_qdisc timely $exact $lazy
		packets <<-'EOF'
			sink, sender = Sink(), source(rate=4000)
			before = stats()
			for number in range(3):
			    sender.send(payload(number, 0, 958))
			first = sink.take(1, 0.1)
			time.sleep(0.1)
			sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", 2000))
			times = [p.at for p in first + sink.take(2, 8)]
			result(arrived=len(times), gap=times[1] - times[0], next=times[2] - times[1],
			       put_back=stats()["put_back"] - before["put_back"])
			say("gaps", times[1] - times[0], times[2] - times[1])
		EOF
		expect arrived -eq 3
		expect_near next 500000000 1
		if [ $lazy = lazy ]; then
			expect gap -ge 350000000 "the rate fell to a half while it waited"
			expect gap -le 500002048
			expect put_back -eq 1
		else
			expect_near gap 250000000 1
			expect put_back -eq 0
		fi
	done
}

# Below low_rate_threshold each packet is paced by itself, for any quantum.
low_rates_have_no_bursts() {
	h1_qdisc timely timer_slack 0 quantum 15140 initial_quantum 0 low_rate_threshold 10mbit
	paced "'low', 1000000, 80, skip=20"
	expect_near low_rate 1000000 1
	expect low_p99 -le $slot
	h1_qdisc timely timer_slack 0 quantum 15140 initial_quantum 0 low_rate_threshold 1mbit
	paced "'bursts', 1000000, 80, skip=20"
	expect bursts_p99 -ge 1000000 "bursts of the quantum above the threshold"
}

nopacing_ignores_rates() {
	h1_qdisc timely nopacing
	packets <<-'EOF'
		sink, sender = Sink(), source(rate=1000)
		for number in range(50):
		    sender.send(payload(number))
		got = sink.take(50, 5)
		result(arrived=len(got), span=got[-1].at - got[0].at)
	EOF
	expect arrived -eq 50
	expect span -le 1000000
}

tcp_gets_its_rate() {
	h1_qdisc timely
	for cap in 20000 200000 2000000; do
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=$cap
			0.1	goodput got flow=a for=0.5
			0.61	end
		EOF
		# TCP's rate counts data without headers.
		expect_near got $cap 1
	done
}

tcp_and_udp_together() {
	h1_qdisc timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=100000
		0	flow b from=h1 to=h2 addr=$h2_v4 cc=reno cap=300000
		0	ping p from=h1 to=h2 addr=$h2_v4 for=0.5 every=0.001
		0.1	goodput a_got flow=a for=0.4
		0.1	goodput b_got flow=b for=0.4
		0.61	end
	EOF
	expect_near a_got 100000 1
	expect_near b_got 300000 1
	expect p_lost -eq 0
	expect p_max -le 100
}

# The timer may be late by a quarter of a packet's transmission time; for packets of more than 32 KB by
# all of it, up to 6 us; a slot of the wheel comes on top. At 80 Gb/s 64 KB (44 segments) take 6.5 us,
# 29 KB (20 segments) 3 us. The lists give segments, and the least and the greatest lateness in ns.
long_packets_may_be_late() {
	for sizes in "44 4000 7100" "20 200 1800"; do
		# shellcheck disable=SC2086 # a list of words
		set -- $sizes
		h1_qdisc timely
		packets <<-EOF
			sink, sender = Sink(), source(rate=10000000000)
			sender.setsockopt(socket.IPPROTO_UDP, 103, 1458)	# UDP_SEGMENT
			for _ in range(200):
			    sender.send(b"x" * 1458 * $1)
			result(late=emptied()["unthrottle_latency_ns"])
		EOF
		expect late -ge "$2"
		expect late -le "$3"
	done
}

run_cases hosts udp_gets_its_rate udp_gets_its_rate_by_default odd_rates_and_sizes \
	sockets_at_once maxrate_limits_each_flow rate_may_fall queued_follow_the_rate \
	lazy_while_packets_wait low_rates_have_no_bursts nopacing_ignores_rates \
	tcp_gets_its_rate tcp_and_udp_together long_packets_may_be_late
