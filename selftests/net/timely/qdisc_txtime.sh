#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# SO_TXTIME: packets leave at the time they are stamped with, never before it,
# and of a hundred 99 at most a slot after it.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	pair_up
	load_qdisc
}

# From COUNT packets of FLOWS sockets, stamped at random in the next SPAN ns.
cat >"$work/stamped.py" <<-'EOF'
	def stamped(key, count, flows, span, seed=1, size=200):
	    rng = random.Random(seed)
	    sink = Sink()
	    senders = [source(clock=MONOTONIC) for _ in range(flows)]
	    begin = time.monotonic_ns() + 2 * MS
	    for number in range(count):
	        stamp = begin + rng.randrange(span)
	        send_at(senders[number % flows], stamp, payload(number, stamp, size))
	    if time.monotonic_ns() > begin:
	        raise RuntimeError("the first stamp is over before the last is given")
	    got = sink.take(count, span / S + 1)
	    errors(key, [p.at - p.stamp for p in got])
	    return got
EOF

# stamped ARGUMENTS...
stamped() {
	{
		cat "$work/stamped.py"
		echo "stamped($*)"
	} >"$work/plan"
	packets <"$work/plan"
}

# on_time KEY COUNT SLOT
on_time() {
	expect "$1_count" -eq "$2"
	expect "$1_min" -ge 0 "left before its time"
	expect "$1_p99" -le "$3"
}

one_flow() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	stamped "'one', 500, 1, 50 * MS"
	on_time one 500 1024
}

many_flows() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	stamped "'many', 2000, 50, 100 * MS"
	on_time many 2000 1024
}

# A thousand in each millisecond.
close_together() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	stamped "'close', 2000, 20, 2 * MS"
	on_time close 2000 1024
}

every_slot() {
	for slot in 256 512 2048 16384 131072 1048576; do
		h1_qdisc timely timer_slack 0 flow_limit 10000 slot ${slot}ns
		stamped "'slot_$slot', 500, 10, 50 * MS"
		on_time slot_$slot 500 $slot
	done
}

# To the end of the horizon, beyond what the smallest slots reach.
seconds_ahead() {
	for slot in 256 1024 65536; do
		h1_qdisc timely timer_slack 0 flow_limit 10000 slot ${slot}ns
		stamped "'ahead_$slot', 500, 10, 9900 * MS"
		on_time ahead_$slot 500 $slot
	done
}

# The timer may be late by its slack, and no more.
slack_adds() {
	for slack in 10 100; do
		h1_qdisc timely timer_slack ${slack}us flow_limit 10000
		stamped "'slack_$slack', 500, 10, 200 * MS"
		# To look at a clock takes 256 ns in the guest.
		on_time slack_$slack 500 $((slack * 1000 + 1024 + 256))
	done
	h1_qdisc timely flow_limit 10000
	stamped "'as_it_comes', 500, 10, 200 * MS"
	on_time as_it_comes 500 11280
}

# Stamped in any order, a socket's packets leave in that of their stamps.
by_stamps_not_as_sent() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	{
		cat "$work/stamped.py"
		cat <<-'EOF'
			got = stamped('order', 300, 1, 300 * MS)
			gaps = zip(got, got[1:])
			result(swapped=sum(b.stamp + 1024 < a.stamp for a, b in gaps))
			result(as_sent=sum(b.number > a.number for a, b in zip(got, got[1:])))
		EOF
	} >"$work/plan"
	packets <"$work/plan"
	on_time order 300 1024
	expect swapped -eq 0
	expect as_sent -lt 250 "they were not sent in any order"
}

# maxrate holds what is stamped too.
maxrate_holds() {
	h1_qdisc timely $exact flow_limit 1000 maxrate 8mbit
	packets <<-'EOF'
		sink, sender = Sink(), source(clock=MONOTONIC)
		for number in range(300):
		    stamp = time.monotonic_ns() + 1 * MS
		    send_at(sender, stamp, payload(number, stamp, 958))
		got = sink.take(300, 2)
		errors("maxrate", lateness([p.at for p in got], 1 * MS))
		result(span=got[-1].at - got[0].at)
	EOF
	on_time maxrate 300 1024
	expect_near span 299000000 1
}

# Packets of other sockets that have no stamp go ahead of those that wait.
unstamped_pass() {
	h1_qdisc timely timer_slack 0 flow_limit 10000
	packets <<-'EOF'
		sink, stamping, plain = Sink(), source(clock=MONOTONIC), source()
		now = time.monotonic_ns()
		for number in range(100):
		    stamp = now + 50 * MS + number
		    send_at(stamping, stamp, payload(number, stamp))
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
	by_stamps_not_as_sent maxrate_holds unstamped_pass
