#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Transmit times (SO_TXTIME) of other clocks, and such that cannot be right: in the past, years ahead
# or beyond the horizon. Wrong times are counted, and no packet waits for them. Topology: h1 -- h2, a
# veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	pair_up
	load_qdisc
	# The guest's monotonic clock starts near 0: wait, so that there are times in the past.
	sleep 5
}

# txtimes(KEY, CLOCK, [TXTIME...]): send ten packets with each transmit time, between good packets
# of the same host. Sets KEY_passed, KEY_late and others, and by how much the counters have grown.
cat >"$work/txtimes.py" <<-'EOF'
	NAMES = "wrong_clock", "wrong_clock_drops", "horizon_drops", "horizon_caps", "drops"

	def txtimes(key, clock, values, seconds=0.5):
	    wrong, good = Sink(), Sink(port=10)
	    before = stats()
	    sender, plain, timed = source(clock=clock), source(port=10), source(port=10, clock=MONOTONIC)
	    # In the guest only readings of the clock take virtual time.
	    began = time.monotonic_ns()
	    count = goods = 0
	    for value in values:
	        for _ in range(10):
	            send_at(sender, value & (1 << 64) - 1, payload(count))
	            now = time.monotonic_ns()
	            plain.send(payload(goods, now))
	            send_at(timed, now + MS, payload(goods, now + MS))
	            count += 1
	            goods += 2
	    got, beside = wrong.take(count, seconds), good.take(goods, seconds)
	    after = stats()
	    result(**{f"{key}_{name}": after[name] - before[name] for name in NAMES})
	    result(**{key + "_sent": count, key + "_passed": len(got), key + "_goods": goods,
	              key + "_beside": len(beside),
	              key + "_beside_late": max([p.at - p.txtime for p in beside] or [0]),
	              key + "_late": max([p.at - began for p in got] or [0]),
	              key + "_soon": min([p.at - began for p in got] or [0]), key + "_left": after["qlen"]})
	    # A later packet of the socket with the wrong times must leave, too.
	    send_at(sender, 0, payload(count))
	    result(**{key + "_next": len(wrong.take(1, 0.3))})
	    say(f"{key}: {len(got)} of {count} passed, wrong_clock {after['wrong_clock'] - before['wrong_clock']},",
	        f"horizon_drops {after['horizon_drops'] - before['horizon_drops']}")
	    wrong.sock.close()
	    good.sock.close()
EOF

txtimes() {
	{
		cat "$work/txtimes.py"
		echo "txtimes($*)"
	} >"$work/plan"
	packets <"$work/plan"
}

# other_packets_pass KEY: packets without a wrong time are neither lost nor delayed, and nothing
# stays in the queue.
other_packets_pass() {
	number_of "${1}_goods"
	expect "${1}_beside" -eq "$value" "good packets were lost"
	expect "${1}_beside_late" -le 2000 "good packets were delayed"
	expect "${1}_left" -eq 0 "packets are stuck"
	expect "${1}_next" -eq 1 "the socket is stuck"
}

# counted_and send|drop KEY: all packets with a wrong time were counted, and sent at once or dropped
counted_and() {
	number_of "${2}_sent"
	sent=$value
	expect "${2}_wrong_clock" -eq "$sent"
	expect "${2}_horizon_drops" -eq 0
	if [ "$1" = drop ]; then
		expect "${2}_passed" -eq 0
		expect "${2}_wrong_clock_drops" -eq "$sent"
		expect "${2}_drops" -eq "$sent"
	else
		expect "${2}_passed" -eq "$sent"
		expect "${2}_late" -le 2000000 "not sent at once"
		expect "${2}_wrong_clock_drops" -eq 0
		expect "${2}_drops" -eq 0
	fi
	other_packets_pass "$2"
}

# converted KEY CLOCK: transmit times of CLOCK are converted to the monotonic clock. OFFSET is exact
# to a reading of a clock, 256 ns.
converted() {
	h1_qdisc timely timer_slack 0 wrong_clock drop flow_limit 1000
	packets <<-EOF
		sink, sender = Sink(), source(clock=$2)
		before = stats()
		for number in range(200):
		    txtime = time.monotonic_ns() + 5 * MS + number * 100000
		    send_at(sender, OFFSET + txtime, payload(number, txtime))
		errors("$1", [p.at - p.txtime for p in sink.take(200, 1)])
		result($1_wrong_clock=stats()["wrong_clock"] - before["wrong_clock"])
	EOF
	expect "$1_count" -eq 200
	expect "$1_min" -ge -256 "left before its time"
	expect "$1_p99" -le $((1024 + 256)) "left after its time"
	expect "$1_wrong_clock" -eq 0
	txtimes "'$1', $2, [OFFSET + time.monotonic_ns()]"
	expect "$1_passed" -eq 10
	expect "$1_late" -le 2000000 "not sent at once"
	expect "$1_wrong_clock" -eq 0
	expect "$1_drops" -eq 0
	other_packets_pass "$1"
	# The horizon is that of the monotonic clock.
	h1_qdisc timely timer_slack 0 horizon 100ms horizon_cap flow_limit 1000
	txtimes "'$1', $2, [OFFSET + time.monotonic_ns() + 20 * S]"
	expect "$1_horizon_caps" -eq 10
	expect "$1_soon" -ge 100000000
	expect "$1_late" -le 101000000
	expect "$1_wrong_clock" -eq 0
	other_packets_pass "$1"
}

real_time() {
	if timestamps_have_clocks; then
		converted real REALTIME
		return
	fi
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		txtimes "'real', REALTIME, [OFFSET + time.monotonic_ns(), OFFSET + 5 * S]"
		counted_and $what real
	done
}

tai() {
	if timestamps_have_clocks; then
		converted tai TAI
		return
	fi
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		txtimes "'tai', TAI, [OFFSET + time.monotonic_ns(), OFFSET + time.monotonic_ns() + 37 * S]"
		counted_and $what tai
	done
}

# Times of the monotonic clock, as the qdisc expects, but more than a day ahead
beyond_a_day() {
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		txtimes "'day', MONOTONIC, [2 * 86400 * S, 400 * 86400 * S, OFFSET + 1, (1 << 63) - 1]"
		counted_and $what day
	done
}

# A packet with a time in the past leaves at once. A negative time is counted as another clock's.
past() {
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		txtimes "'ago', MONOTONIC, [time.monotonic_ns() - 1, time.monotonic_ns() - MS, time.monotonic_ns() - 100 * MS]"
		expect ago_passed -eq 30 "a little late is not another clock"
		expect ago_late -le 2000000
		expect ago_wrong_clock -eq 0
		other_packets_pass ago
		txtimes "'past', MONOTONIC, [1 << 63, -1, -(1 << 40), 1]"
		expect past_late -le 2000000
		expect past_wrong_clock -ge 20 "negative transmit times"
		if [ $what = drop ]; then
			expect past_wrong_clock_drops -eq "$past_wrong_clock"
		else
			expect past_wrong_clock_drops -eq 0
		fi
		expect past_passed -eq $((40 - past_wrong_clock_drops))
		expect past_drops -eq "$past_wrong_clock_drops"
		other_packets_pass past
	done
}

# Between the horizon and a day ahead: horizon_drop and horizon_cap decide.
beyond_the_horizon() {
	ahead="[time.monotonic_ns() + 150 * MS, time.monotonic_ns() + 20 * S, time.monotonic_ns() + 80000 * S]"
	h1_qdisc timely timer_slack 0 horizon 100ms horizon_drop
	txtimes "'gone', MONOTONIC, $ahead"
	expect gone_passed -eq 0
	expect gone_horizon_drops -eq 30
	expect gone_drops -eq 30
	expect gone_wrong_clock -eq 0
	other_packets_pass gone
	h1_qdisc timely timer_slack 0 horizon 100ms horizon_cap flow_limit 1000
	txtimes "'capped', MONOTONIC, $ahead"
	expect capped_passed -eq 30
	expect capped_horizon_caps -eq 30
	expect capped_horizon_drops -eq 0
	expect capped_soon -ge 100000000
	expect capped_late -le 101000000
	expect capped_wrong_clock -eq 0
	other_packets_pass capped
}

# The horizon is exact, within 2 us.
horizon_is_exact() {
	h1_qdisc timely timer_slack 0 horizon 100ms horizon_drop
	packets <<-'EOF'
		sink, sender = Sink(), source(clock=MONOTONIC)
		# Reading the clock takes virtual time, so the times differ from the limit by 2 us.
		for number, ahead in enumerate((99 * MS, 100 * MS - 2000, 100 * MS + 2000, 101 * MS)):
		    send_at(sender, time.monotonic_ns() + ahead, payload(number))
		got = sink.take(4, 0.5)
		result(passed=len(got), which=sum(1 << p.number for p in got))
	EOF
	expect passed -eq 2
	expect which -eq 3
}

# Packets with a wrong time are paced at the socket's rate, like packets without a time.
paced_as_without_txtime() {
	h1_qdisc timely $exact flow_limit 1000
	packets <<-'EOF'
		sink, sender = Sink(), source(clock=MONOTONIC, rate=1000000)
		for number in range(300):
		    send_at(sender, 2 * 86400 * S + time.monotonic_ns(), payload(number, 0, 958))
		times = [p.at for p in sink.take(300, 1)]
		errors("paced", lateness(times, 1 * MS))
	EOF
	expect paced_count -eq 300
	expect paced_p99 -le 1024
}

run_cases hosts real_time tai beyond_a_day past beyond_the_horizon horizon_is_exact \
	paced_as_without_txtime
