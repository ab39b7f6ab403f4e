#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# An application that stops writing: after a long time the connection starts again at its first
# rate, after a short time it goes on at the rate it had.
# Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_qdisc fq
	load_timely $gig first_rate_kbps=200000
}

# pause_of SECONDS: the application stops writing for SECONDS. Sets before_rate, after_min and
# after_max, kbit/s, and again_us, the time until the goodput is back.
pause_of() {
	resume=$(awk -v pause="$1" 'BEGIN { printf "%.6f", 0.07 + pause }')
	# 10 us later: no ACK has come yet, so the rate has not risen.
	resumed=$(awk -v pause="$1" 'BEGIN { printf "%.6f", 0.07001 + pause }')
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.05	goodput usual flow=a for=0.02
		0.07	info before flow=a
		0.07	pause a
		$resume	resume a
		$resumed	watch after flow=a for=0.0001 every=0.00002
		$resume	reach again flow=a rate=usual*0.9 within=0.2 every=0.005 last=1
	EOF
	expect before_rate -ge 600000
}

long_pause_starts_again() {
	pause_of 1
	expect after_min -le 200000 "the rate after a second's pause"
	expect after_max -le 205000 "the rate after a second's pause"
	expect again_us -gt 0 "the rate did not come back"
	expect again_us -le 100000
}

short_pause_changes_nothing() {
	for pause in 0.01 0.15; do
		pause_of $pause
		# The rate oscillates, but not down to the first rate.
		expect after_min -ge $((before_rate * 4 / 10)) "after $pause s"
		expect after_min -ge 300000 "after $pause s"
		expect again_us -gt 0 "after $pause s"
		expect again_us -le 25000 "after $pause s"
	done
}

# A rate below the first rate is not raised by a time without data.
long_pause_raises_nothing() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.01	run tc -n mid qdisc change dev to2 root netem limit 10000 rate 20mbit delay 10us
		1.0	info before flow=a
		1.0	pause a
		3.0	resume a
		3.00001	watch after flow=a for=0.0001 every=0.00002
		3.01	end
	EOF
	expect before_rate -lt 100000
	expect after_max -lt 100000
}

# Requests that follow each other at once are no idle time: completions are counted across
# requests, and from the fifth in a row on the rate rises five times as fast.
requests_without_a_pause_are_one_burst() {
	wire_to_h2 "rate 1gbit delay 10us"
	must rmmod tcp_timely
	must rmmod timely
	load_timely $gig t_low_ns=400000 app_limited_percent=0 scale_step=0 delta_kbps=1000 \
		hai_threshold=5 hai_factor=5 hai_below_t_low=1 first_rate_kbps=50000
	sockets <<-END
		client, server = connect("$h2_v4")
		for _ in range(100):
		    client.sendall(bytes(2896))
		    missing = 2896
		    while missing:
		        missing -= len(server.recv(missing))
		    server.sendall(b"x")
		    client.recv(1)
		result(rate=rate(client))
		# The test ends here: wait until the sockets no longer use the namespaces.
		client.close()
		server.close()
		time.sleep(0.1)
	END
	# 50 Mb/s and 100 steps of 1 Mb/s, nearly all of them times five.
	expect rate -ge 450000
	expect rate -le 550000
}

run_cases hosts long_pause_starts_again short_pause_changes_nothing long_pause_raises_nothing \
	requests_without_a_pause_are_one_burst
