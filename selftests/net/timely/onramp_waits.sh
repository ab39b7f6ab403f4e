#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# RTTs of On-Ramp without a receiver: what an ACK waits in the sender's own host, for a
# late interrupt for example, is no queue on the path.

. "$(dirname "$0")/hw_lib.sh"

hosts() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $fixed
	nics_up
	stamps h1 eth0 all
}

# Sets signals, and late: how many delays were of 16 us and more, percent.
delays_of() {
	must tc -n h1 qdisc replace dev eth0 root pfifo
	must tc -n h1 qdisc replace dev eth0 root timely segment 3000 onramp 1s owd rtt
	total_kbps=200000
	flows "$1" "$h2_v4" 4
	tc -n h1 -s -j qdisc show dev eth0 >"$work/shown"
	"$python" - "$work/shown" >"$work/delays" <<-'END'
		import json, sys
		(shown,) = json.load(open(sys.argv[1]))
		delays = shown["onramp_delays"]
		print(f"signals={sum(delays)}\nlate={100 * sum(delays[4:]) // max(sum(delays), 1)}")
		print("#", *delays)
	END
	say_lines <"$work/delays"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/delays"
}

# An idle host: what follows is by its waits.
idle_host() {
	busy h1 eth0 0
	delays_of 0.5
	expect signals -ge 500
	expect late -le 10
}

# The first tenths of a second go by until the NIC's clock is known.
busy_host_is_no_queue() {
	busy h1 eth0 100000
	delays_of 1
	expect signals -ge 500
	expect late -le 25 "percent of delays that are the host's own"
}

run_cases hosts idle_host busy_host_is_no_queue all_goes
