#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A thousand short connections, 60 at a time, over IPv4 and IPv6: all data arrives and the module
# can be unloaded afterwards. Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc
references=/sys/module/tcp_timely/refcnt

is_unused() {
	read -r count <$references
	[ "$count" -eq 0 ]
}

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_qdisc fq
	load_timely
}

all_complete() {
	traffic <<-EOF
		0	many four from=h1 to=h2 addr=$h2_v4 cc=timely count=500 parallel=30 min=1000 max=30000
		0	many six from=h1 to=h2 addr=$h2_v6 cc=timely count=500 parallel=30 min=1000 max=30000
	EOF
	for many in four six; do
		expect ${many}_done -eq 500
		expect ${many}_same -eq 500
	done
}

# Closed sockets do not keep the module in use, though their namespace still exists.
closed_sockets_do_not_use_the_module() {
	within_seconds 5 is_unused || {
		read -r count <$references
		fail "$count references are left"
	}
	must rmmod tcp_timely
	must rmmod timely
}

run_cases hosts all_complete closed_sockets_do_not_use_the_module
