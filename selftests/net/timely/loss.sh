#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Wires that lose, swap, double and spoil packets. First the reaction to one
# event, with parameters under which nothing else moves the rate; then
# transfers that must come through.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc ethtool

hosts() {
	hosts_up "delay 10us"
	h1_without_tso
	h1_qdisc fq
}

# for_an_instant NETEM...: a plan's lines, 60 us from 0.02 s, some four packets
for_an_instant() {
	echo "0.02000 run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us $*"
	echo "0.02006 run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us"
}

# one_event NETEM...: sets before_rate, during_min, after_rate and what TCP counted
one_event() {
	{
		echo "0	counters old ns=h1"
		echo "0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=3500000 verify=1"
		echo "0.0199	info before flow=a"
		for_an_instant "$@"
		echo "0.02	watch during flow=a for=0.03 every=0.0001"
		echo "0.06	info after flow=a"
		echo "0.06	counters new ns=h1"
	} >"$work/plan"
	traffic <"$work/plan"
	expect a_done -eq 1
	expect a_same -eq 1
}

# Any loss is answered, unless it is told otherwise.
new_loss_parameters() {
	unload_timely
	load_timely $gig $steady first_rate_kbps=400000 loss_free_ppm=0 "$@"
}

# Several packets of one window, one halving.
a_loss_halves_once() {
	new_loss_parameters
	one_event loss 100%
	expect_near before_rate 400000 1
	expect after_retrans -ge 2
	expect_near after_rate 200000 1
	expect during_min -ge 198000
}

a_loss_takes_what_it_is_told() {
	new_loss_parameters loss_beta_ppm=250000
	one_event loss 100%
	expect_near after_rate 300000 1
	new_loss_parameters loss_beta_ppm=0
	one_event loss 100%
	expect_near after_rate 400000 1
}

# As it is by default.
few_losses_are_free() {
	new_loss_parameters loss_free_ppm=20000
	one_event loss 100%
	expect after_retrans -ge 2
	expect during_min -ge 396000
	expect_near after_rate 400000 1
}

# lossy PERCENT: of all packets, for a second's fifth; sets during_min, after_retrans
lossy() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
		0.02	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us loss $1
		0.02	watch during flow=a for=0.2 every=0.001
		0.22	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us
		0.22	info after flow=a
		0.23	stop a
	EOF
	expect a_done -eq 1
	expect a_same -eq 1
}

# Some 6000 packets: 1 % at random is below the share, 10 % above.
a_small_share_is_free() {
	new_loss_parameters loss_free_ppm=20000
	lossy 1%
	expect after_retrans -ge 30
	expect during_min -ge 396000
	lossy 10%
	expect during_min -le 100000
	new_loss_parameters
	lossy 1%
	expect during_min -le 100000
}

# So many in one window are none too few: one halving.
many_losses_halve_once() {
	new_loss_parameters loss_free_ppm=20000
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=3500000 verify=1
		0.02	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us loss 100%
		0.02	watch during flow=a for=0.03 every=0.0001
		0.0206	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us
		0.06	info after flow=a
	EOF
	expect after_retrans -ge 15
	expect during_min -ge 198000
	expect_near after_rate 200000 1
	expect a_same -eq 1
}

# An echo is no loss.
an_ecn_echo_halves_once() {
	new_loss_parameters loss_free_ppm=20000
	for ns in h1 h2; do
		must ip netns exec $ns sh -c "echo 1 >/proc/sys/net/ipv4/tcp_ecn"
	done
	one_event loss 100% ecn
	expect after_retrans -eq 0
	expect_near after_rate 200000 1
	for ns in h1 h2; do
		must ip netns exec $ns sh -c "echo 2 >/proc/sys/net/ipv4/tcp_ecn"
	done
}

# Packets that come late look lost; when TCP learns better the rate is back.
reordering_is_undone() {
	new_loss_parameters
	one_event delay 3ms
	expect_near before_rate 400000 1
	expect during_min -le 202000 "TCP has not taken the late packets for lost"
	undone=$((new_TCPFullUndo + new_TCPPartialUndo + new_TCPDSACKUndo + new_TCPLossUndo -
		old_TCPFullUndo - old_TCPPartialUndo - old_TCPDSACKUndo - old_TCPLossUndo))
	expect undone -ge 1 "TCP has undone nothing"
	expect_near after_rate 400000 1
}

# For the time of a segment: which packets those are is not left to chance, nor are
# they those that repair it.
# every_second_packet_lost AT_SECONDS SEGMENT_US
every_second_packet_lost() {
	awk -v at="$1" -v us="$2" 'BEGIN {
		netem = "run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us"
		printf "%.6f %s loss gemodel 100%% 100%%\n", at, netem
		printf "%.6f %s\n", at + us / 1e6, netem
	}'
}

# Among its neighbours' big segments the small lost packet must not starve, not
# at a high rate nor at a low one.
losses_are_repaired_at_once() {
	for rate in 2000000 250000 20000; do
		unload_timely
		load_timely $steady loss_beta_ppm=0 first_rate_kbps=$rate
		# Of 16 KB and at this rate; losses in three of sixty.
		segment_us=$((16384 * 8000 / rate))
		time=$(awk -v us=$segment_us 'BEGIN { printf "%.6f", us * 60 / 1e6 }')
		every=$(awk -v us=$segment_us 'BEGIN { printf "%.6f", us / 4 / 1e6 }')
		end=$(awk -v time="$time" 'BEGIN { printf "%.6f", 0.02 + time }')
		{
			echo "0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1"
			echo "0	counters old ns=h1"
			echo "0.02	watch repair flow=a every=$every for=$time"
			for segment in 5 20 35; do
				at=$(awk -v us=$((segment * segment_us)) 'BEGIN { printf "%.6f", 0.02 + us / 1e6 }')
				every_second_packet_lost "$at" $segment_us
			done
			echo "$end	info now flow=a"
			echo "$end	counters new ns=h1"
			echo "$end	stop a"
		} >"$work/plan"
		traffic <"$work/plan"
		expect now_retrans -ge 6 "at $rate kbit/s"
		expect repair_lost_us -gt 0 "at $rate kbit/s"
		expect repair_lost_us -le $((6 * segment_us + 500)) "at $rate kbit/s"
		timeouts=$((new_TCPTimeouts - old_TCPTimeouts))
		expect timeouts -eq 0 "at $rate kbit/s"
		expect a_same -eq 1
	done
}

# comes_through NETEM PERCENT: content, and a share of the lossless goodput. The
# handshake is over before anything happens to packets: a lost SYN takes a second.
comes_through() {
	wire_to_h2 "rate 1gbit delay 10us"
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=4000000 verify=1
		.0005	run tc -n mid qdisc change dev to2 root netem limit 10000 rate 1gbit $1
	EOF
	expect a_done -eq 1 "$1"
	expect a_same -eq 1 "$1"
	goodput=$((32000000 / (a_us / 1000)))
	[ "$2" -ne 100 ] || echo "$goodput" >"$work/lossless"
	read -r lossless <"$work/lossless"
	expect goodput -ge $((lossless * $2 / 100)) "with $1"
}

# 32 Mbit take 32 ms at line rate.
comes_through_a_perfect_wire() {
	unload_timely
	load_timely $gig
	comes_through "delay 10us" 100
	expect goodput -ge 750000
}

comes_through_loss() {
	comes_through "delay 10us loss 0.1%" 50
	comes_through "delay 10us loss 1%" 50
}

comes_through_reordering() {
	comes_through "delay 1ms reorder 99%" 20
	comes_through "delay 50us 20us" 80
}

comes_through_duplication() {
	comes_through "delay 10us duplicate 2%" 80
}

comes_through_corruption() {
	comes_through "delay 10us corrupt 0.1%" 20
}

run_cases hosts a_loss_halves_once a_loss_takes_what_it_is_told few_losses_are_free \
	a_small_share_is_free many_losses_halve_once an_ecn_echo_halves_once \
	reordering_is_undone losses_are_repaired_at_once comes_through_a_perfect_wire comes_through_loss \
	comes_through_reordering comes_through_duplication comes_through_corruption
