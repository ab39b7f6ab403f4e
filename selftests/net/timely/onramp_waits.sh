#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's RTTs without a receiver ("owd rtt"): time that an ACK waits in the sender's own host,
# for example for a late interrupt, must not look like a queue. Topology: h1 == h2, test NICs with
# hardware timestamps.

. "$(dirname "$0")/hw_lib.sh"

hosts() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $fixed
	nics_up
	timestamps h1 eth0 all
}

# delays_of SECONDS: four flows. Sets signals, the number of delays, and late, the percentage of
# delays of 16 us and more.
delays_of() {
	must tc -n h1 qdisc replace dev eth0 root pfifo
	must tc -n h1 qdisc replace dev eth0 root timely split 3000 onramp 1s owd rtt
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

# An idle host, for comparison: few delays are long.
idle_host() {
	busy h1 eth0 0
	delays_of 0.5
	expect signals -ge 500
	expect late -le 10
}

# A busy host. The NIC's clock mapping is not known in the first tenths of a second.
busy_host_is_no_queue() {
	busy h1 eth0 100000
	delays_of 1
	expect signals -ge 500
	expect late -le 25 "percent of delays that include the host's delay"
}

run_cases hosts idle_host busy_host_is_no_queue remove_all
