#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# SO_TXTIME: packets never leave before their transmit time, and 99 % of them at most one slot
# after it. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	pair_up
	load_qdisc
}

# timed(KEY, COUNT, FLOWS, SPAN): COUNT packets of FLOWS sockets, with random transmit times in the
# next SPAN ns. Sets how late they are: KEY_p99, KEY_max, ...
cat >"$work/timed.py" <<-'EOF'
	def timed(key, count, flows, span, seed=1, size=200):
	    rng = random.Random(seed)
	    sink = Sink()
	    senders = [source(clock=MONOTONIC) for _ in range(flows)]
	    begin = time.monotonic_ns() + 2 * MS
	    for number in range(count):
	        txtime = begin + rng.randrange(span)
	        send_at(senders[number % flows], txtime, payload(number, txtime, size))
	    if time.monotonic_ns() > begin:
	        raise RuntimeError("the first packet is due before the last is sent")
	    got = sink.take(count, span / S + 1)
	    errors(key, [p.at - p.txtime for p in got])
	    return got
EOF

# timed ARGUMENTS...
timed() {
	{
		cat "$work/timed.py"
		echo "timed($*)"
	} >"$work/plan"
	packets <"$work/plan"
}

# on_time KEY COUNT SLOT: all packets left, none early, 99 % of them at most SLOT ns late
on_time() {
	expect "$1_count" -eq "$2"
	expect "$1_min" -ge 0 "left before its time"
	expect "$1_p99" -le "$3"
}

one_flow() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	timed "'one', 500, 1, 50 * MS"
	on_time one 500 1024
}

many_flows() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	timed "'many', 2000, 50, 100 * MS"
	on_time many 2000 1024
}

# A thousand packets per millisecond.
close_together() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	timed "'close', 2000, 20, 2 * MS"
	on_time close 2000 1024
}

every_slot() {
	for slot in 256 512 2048 16384 131072 1048576; do
		h1_qdisc timely timer_slack 0 flow_limit 10000 slot ${slot}ns
		timed "'slot_$slot', 500, 10, 50 * MS"
		on_time slot_$slot 500 $slot
	done
}

# Up to the end of the horizon of 10 s, beyond the reach of the timing wheel with small slots.
seconds_ahead() {
	for slot in 256 1024 65536; do
		h1_qdisc timely timer_slack 0 flow_limit 10000 slot ${slot}ns
		timed "'ahead_$slot', 500, 10, 9900 * MS"
		on_time ahead_$slot 500 $slot
	done
}

# The timer may be late by timer_slack, but no more.
slack_adds() {
	for slack in 10 100; do
		h1_qdisc timely timer_slack ${slack}us flow_limit 10000
		timed "'slack_$slack', 500, 10, 200 * MS"
		# A reading of the clock takes 256 ns in the guest.
		on_time slack_$slack 500 $((slack * 1000 + 1024 + 256))
	done
	h1_qdisc timely flow_limit 10000
	timed "'as_it_comes', 500, 10, 200 * MS"
	on_time as_it_comes 500 11280
}

# A socket's packets leave in the order of their transmit times, not in the order of sending.
in_order_of_txtimes() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	{
		cat "$work/timed.py"
		cat <<-'EOF'
			got = timed('order', 300, 1, 300 * MS)
			gaps = zip(got, got[1:])
			result(swapped=sum(b.txtime + 1024 < a.txtime for a, b in gaps))
			result(as_sent=sum(b.number > a.number for a, b in zip(got, got[1:])))
		EOF
	} >"$work/plan"
	packets <"$work/plan"
	on_time order 300 1024
	expect swapped -eq 0
	expect as_sent -lt 250 "the transmit times were nearly in the order of sending"
}

# maxrate also limits packets with transmit times.
maxrate_limits() {
	h1_qdisc timely $exact flow_limit 1000 maxrate 8mbit
	packets <<-'EOF'
		sink, sender = Sink(), source(clock=MONOTONIC)
		for number in range(300):
		    txtime = time.monotonic_ns() + 1 * MS
		    send_at(sender, txtime, payload(number, txtime, 958))
		got = sink.take(300, 2)
		errors("maxrate", lateness([p.at for p in got], 1 * MS))
		result(span=got[-1].at - got[0].at)
	EOF
	on_time maxrate 300 1024
	expect_near span 299000000 1
}

# A packet without a transmit time does not wait for the packets with transmit times of another
# socket.
packets_without_txtime_pass() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	packets <<-'EOF'
		sink, later, plain = Sink(), source(clock=MONOTONIC), source()
		now = time.monotonic_ns()
		for number in range(100):
		    txtime = now + 50 * MS + number
		    send_at(later, txtime, payload(number, txtime))
		now = time.monotonic_ns()
		plain.send(payload(1000, now))
		got = sink.take(101, 1)
		result(first=got[0].number, late=got[0].at - now, all=len(got))
	EOF
	expect all -eq 101
	expect first -eq 1000
	expect late -le 1024
}

run_cases hosts one_flow many_flows close_together every_slot seconds_ahead slack_adds \
	in_order_of_txtimes maxrate_limits packets_without_txtime_pass
