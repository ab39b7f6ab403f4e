#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Requests and responses whose ACKs the receiver delays by up to 40 ms. A delayed ACK is no
# queue, so the rate must not fall. Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_qdisc fq
	load_timely
	read -r first_rate </sys/module/tcp_timely/parameters/first_rate_kbps
	echo "$first_rate" >"$work/first_rate"
}

# answered SIZE THINK COUNT: COUNT requests of SIZE bytes, answered after THINK seconds. The rate
# must never fall by more than a tenth below the first rate. Sets delayed: the number of ACKs
# that h2 delayed.
answered() {
	read -r first_rate <"$work/first_rate"
	traffic <<-EOF
		0	counters old ns=h2
		0	rpc a from=h1 to=h2 addr=$h2_v4 cc=timely count=$3 request=$1 think=$2
		9.9	counters new ns=h2
	EOF
	expect a_done -eq "$3" "requests of $1 bytes"
	expect a_min -ge $((first_rate * 9 / 10)) "requests of $1 bytes"
	delayed=$((new_DelayedACKs - old_DelayedACKs))
}

# Requests of one MSS and less, whose ACK a receiver may delay; larger ones are ACKed at once.
short="100 1448"
long="1500 2896 14480"

# After two quick answers the receiver delays the ACK of the third request, expecting the answer
# to carry it. The third answer takes 100 ms, longer than the receiver waits.
delayed_acks() {
	for size in $long; do
		answered "$size" 0.005,0.005,0.1 60
	done
	for size in $short; do
		answered "$size" 0.005,0.005,0.1 60
		expect delayed -ge 10 "ACKs delayed, of requests of $size bytes"
	done
}

# The ACK comes with the answer, at once or in less than 40 ms.
acks_with_answers() {
	for size in $short $long; do
		answered "$size" 0 100
		answered "$size" 0.03 60
	done
}

run_cases hosts delayed_acks acks_with_answers
