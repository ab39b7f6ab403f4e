#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Stamps that cannot be meant: of another clock, of yesterday, of next year, and
# those beyond the horizon. All are counted, none is waited for.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	pair_up
	load_qdisc
	# The guest's monotonic clock begins near 0; let there be a past.
	sleep 5
}

# stamps(KEY, CLOCK, [STAMP]): ten packets of each between good ones of the same
# host; how many passed at once, later or never, and what was counted.
cat >"$work/stamps.py" <<-'EOF'
	NAMES = "wrong_clock", "wrong_clock_drops", "horizon_drops", "horizon_caps", "drops"

	def stamps(key, clock, values, seconds=0.5):
	    wrong, good = Sink(), Sink(port=10)
	    before = stats()
	    sender, plain, timed = source(clock=clock), source(port=10), source(port=10, clock=MONOTONIC)
	    # Python may take the time of the clocks it reads, not of what it does.
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
	              key + "_beside_late": max([p.at - p.stamp for p in beside] or [0]),
	              key + "_late": max([p.at - began for p in got] or [0]),
	              key + "_soon": min([p.at - began for p in got] or [0]), key + "_left": after["qlen"]})
	    # And its own socket is not stuck.
	    send_at(sender, 0, payload(count))
	    result(**{key + "_next": len(wrong.take(1, 0.3))})
	    say(f"{key}: {len(got)} of {count} passed, wrong_clock {after['wrong_clock'] - before['wrong_clock']},",
	        f"horizon_drops {after['horizon_drops'] - before['horizon_drops']}")
	    wrong.sock.close()
	    good.sock.close()
EOF

stamps() {
	{
		cat "$work/stamps.py"
		echo "stamps($*)"
	} >"$work/plan"
	packets <"$work/plan"
}

# Others go on, nothing stays: whatever the stamp was.
nobody_waits() {
	number_of "${1}_goods"
	expect "${1}_beside" -eq "$value" "packets beside it were lost"
	expect "${1}_beside_late" -le 2000 "packets beside it were held up"
	expect "${1}_left" -eq 0 "packets are stuck"
	expect "${1}_next" -eq 1 "the socket is stuck"
}

# counted_and WHAT KEY
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
	nobody_waits "$2"
}

real_time() {
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		stamps "'real', REALTIME, [OFFSET + time.monotonic_ns(), OFFSET + 5 * S]"
		counted_and $what real
	done
}

tai() {
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		stamps "'tai', TAI, [OFFSET + time.monotonic_ns(), OFFSET + time.monotonic_ns() + 37 * S]"
		counted_and $what tai
	done
}

# In the right clock's name: no packet is meant for the day after tomorrow, nor
# for the time before the machine was started.
beyond_a_day() {
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		stamps "'day', MONOTONIC, [2 * 86400 * S, 400 * 86400 * S, OFFSET + 1, (1 << 63) - 1]"
		counted_and $what day
	done
}

# What is past leaves now. Where it is so far that it counts as another clock's,
# it is counted.
past() {
	for what in send drop; do
		h1_qdisc timely timer_slack 0 wrong_clock $what
		stamps "'ago', MONOTONIC, [time.monotonic_ns() - 1, time.monotonic_ns() - MS, time.monotonic_ns() - 100 * MS]"
		expect ago_passed -eq 30 "a little late is not another clock"
		expect ago_late -le 2000000
		expect ago_wrong_clock -eq 0
		nobody_waits ago
		stamps "'past', MONOTONIC, [1 << 63, -1, -(1 << 40), 1]"
		expect past_late -le 2000000
		expect past_wrong_clock -ge 20 "negative stamps"
		if [ $what = drop ]; then
			expect past_wrong_clock_drops -eq "$past_wrong_clock"
		else
			expect past_wrong_clock_drops -eq 0
		fi
		expect past_passed -eq $((40 - past_wrong_clock_drops))
		expect past_drops -eq "$past_wrong_clock_drops"
		nobody_waits past
	done
}

# Between the horizon and a day: what horizon_drop says.
beyond_the_horizon() {
	ahead="[time.monotonic_ns() + 150 * MS, time.monotonic_ns() + 20 * S, time.monotonic_ns() + 80000 * S]"
	h1_qdisc timely timer_slack 0 horizon 100ms horizon_drop
	stamps "'gone', MONOTONIC, $ahead"
	expect gone_passed -eq 0
	expect gone_horizon_drops -eq 30
	expect gone_drops -eq 30
	expect gone_wrong_clock -eq 0
	nobody_waits gone
	h1_qdisc timely timer_slack 0 horizon 100ms horizon_cap flow_limit 1000
	stamps "'capped', MONOTONIC, $ahead"
	expect capped_passed -eq 30
	expect capped_horizon_caps -eq 30
	expect capped_horizon_drops -eq 0
	expect capped_soon -ge 100000000
	expect capped_late -le 101000000
	expect capped_wrong_clock -eq 0
	nobody_waits capped
}

# To the ns.
horizon_is_exact() {
	h1_qdisc timely timer_slack 0 horizon 100ms horizon_drop
	packets <<-'EOF'
		sink, sender = Sink(), source(clock=MONOTONIC)
		# Looking at the clock takes time, of which half is over in the qdisc.
		for number, ahead in enumerate((99 * MS, 100 * MS - 2000, 100 * MS + 2000, 101 * MS)):
		    send_at(sender, time.monotonic_ns() + ahead, payload(number))
		got = sink.take(4, 0.5)
		result(passed=len(got), which=sum(1 << p.number for p in got))
	EOF
	expect passed -eq 2
	expect which -eq 3
}

# The socket's rate holds for what had a wrong stamp: it goes as if unstamped.
sent_as_if_unstamped() {
	h1_qdisc timely $exact flow_limit 1000
	packets <<-'EOF'
		sink, sender = Sink(), source(clock=TAI, rate=1000000)
		for number in range(300):
		    send_at(sender, OFFSET + time.monotonic_ns(), payload(number, 0, 958))
		times = [p.at for p in sink.take(300, 1)]
		errors("paced", lateness(times, 1 * MS))
	EOF
	expect paced_count -eq 300
	expect paced_p99 -le 1024
}

run_cases hosts real_time tai beyond_a_day past beyond_the_horizon horizon_is_exact \
	sent_as_if_unstamped
