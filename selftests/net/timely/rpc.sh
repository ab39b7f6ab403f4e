#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Requests and responses whose ACKs are the receiver's to delay, for 40 ms: that
# is no queue, and the rate must not fall for it.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

hosts() {
	hosts_up "rate 10gbit delay 10us"
	h1_qdisc fq
	load_timely
	read -r first_rate </sys/module/tcp_timely/parameters/first_rate_kbps
	echo "$first_rate" >"$work/first_rate"
}

# answered SIZE THINK COUNT: the rate is never less than the first one
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

# Less than an MSS, and one; and more, which a receiver need not wait for.
short="100 1448"
long="1500 2896 14480"

# After two prompt answers the receiver expects a third to carry its ACK; that
# one takes longer than the receiver waits.
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
