#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Loss, reordering, duplication and corruption. First the reaction of the rate to one loss or ECN
# echo, with parameters under which nothing else changes the rate; then transfers that must
# succeed. Topology: h1 -- mid -- h2; mid's netem spoils packets to h2.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc ethtool

hosts() {
	hosts_up "delay 10us"
	h1_without_tso
	h1_qdisc fq
}

# for_an_instant NETEM...: lines of a plan that apply the netem options for 60 us from 0.02 s on,
# to about four packets
for_an_instant() {
	echo "0.02000 run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us $*"
	echo "0.02006 run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us"
}

# one_event NETEM...: a transfer with the netem options applied once. Sets before_rate,
# during_min, after_rate and TCP's counters old_* and new_*.
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

# Every loss lowers the rate (loss_free_ppm=0), unless the caller sets loss_free_ppm.
new_loss_parameters() {
	unload_timely
	load_timely $gig $steady first_rate_kbps=400000 loss_free_ppm=0 "$@"
}

# The loss of several packets of one window halves the rate once.
a_loss_halves_once() {
	new_loss_parameters
	one_event loss 100%
	expect_near before_rate 400000 1
	expect after_retrans -ge 2
	expect_near after_rate 200000 1
	expect during_min -ge 198000
}

a_loss_takes_loss_beta() {
	new_loss_parameters loss_beta_ppm=250000
	one_event loss 100%
	expect_near after_rate 300000 1
	new_loss_parameters loss_beta_ppm=0
	one_event loss 100%
	expect_near after_rate 400000 1
}

# A loss below loss_free_ppm, here the default of 2 %, does not lower the rate.
few_losses_are_free() {
	new_loss_parameters loss_free_ppm=20000
	one_event loss 100%
	expect after_retrans -ge 2
	expect during_min -ge 396000
	expect_near after_rate 400000 1
}

# lossy PERCENT: random loss for 0.2 s. Sets during_min and after_retrans.
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

# Of about 6000 packets 1 % are lost, which is below loss_free_ppm, and 10 %, which is above.
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

# At 5 %, recoveries follow each other, and several begin with a packet that was found lost in the
# recovery before. Such a packet is no ECN echo, although TCP counts no further loss.
successive_recoveries_are_free() {
	new_loss_parameters loss_free_ppm=500000
	lossy 5%
	expect after_retrans -ge 150
	expect during_min -ge 396000
}

# The loss of a large part of one window, above loss_free_ppm, halves the rate once.
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

# ecn_of_hosts NUMBER: the value of the sysctl tcp_ecn; 1: ask for ECN, 2: the kernel's default
ecn_of_hosts() {
	for ns in h1 h2; do
		must ip netns exec $ns sh -c "echo $1 >/proc/sys/net/ipv4/tcp_ecn"
	done
}

# An ECN echo halves the rate: loss_free_ppm applies to losses only.
an_ecn_echo_halves_once() {
	new_loss_parameters loss_free_ppm=20000
	ecn_of_hosts 1
	one_event loss 100% ecn
	ecn_of_hosts 2
	expect after_retrans -eq 0
	expect_near after_rate 200000 1
}

# A large part of a window is lost, and some of the retransmissions. The rate is halved once. 1300
# packets later, of which 2 % cover the lost retransmissions, an ECN echo halves the rate again.
an_echo_after_losses_halves_again() {
	new_loss_parameters loss_free_ppm=20000
	wire_to_h2 "delay 10us"		# without the option ecn, which a change would keep
	ecn_of_hosts 1
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=5000000 verify=1
		0.02	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us loss 100%
		0.0206	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us
		0.0209	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us loss 100%
		0.0212	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us
		0.0999	info before flow=a
		0.1	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us loss 100% ecn
		0.10012	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us
		0.14	info after flow=a
	EOF
	ecn_of_hosts 2
	expect before_retrans -ge 15
	expect_near before_rate 200000 1
	expect after_retrans -eq "$before_retrans"
	expect_near after_rate 100000 1
	expect a_same -eq 1
}

# tail_losses: messages of one packet, of which one is lost, each half a second. Only a tail loss
# probe repairs the loss, and TCP reacts to it at the first ACK of the next message. Sets after_rate.
tail_losses() {
	traffic <<-EOF
		0	counters old ns=h1
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely rate=16 every=0.5
		0.45	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us loss 100%
		0.55	run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us
		0.95	info before flow=a
		1.2	info after flow=a
		1.2	counters new ns=h1
		1.2	end
	EOF
	probes=$((new_TCPLossProbeRecovery - old_TCPLossProbeRecovery))
	expect probes -eq 1
	expect_near before_rate 400000 1
}

# The loss counts as one packet, although TCP does not count it. It is no ECN echo.
a_tail_loss_is_free() {
	new_loss_parameters loss_free_ppm=20000
	tail_losses
	expect_near after_rate 400000 1
	new_loss_parameters
	tail_losses
	expect_near after_rate 200000 1
}

# Reordered packets look lost and halve the rate. When TCP undoes its reduction, so does the rate.
reordering_is_undone() {
	new_loss_parameters
	one_event delay 3ms
	expect_near before_rate 400000 1
	expect during_min -le 202000 "TCP has not taken the reordered packets for lost"
	undone=$((new_TCPFullUndo + new_TCPPartialUndo + new_TCPDSACKUndo + new_TCPLossUndo -
		old_TCPFullUndo - old_TCPPartialUndo - old_TCPDSACKUndo - old_TCPLossUndo))
	expect undone -ge 1 "TCP has undone nothing"
	expect_near after_rate 400000 1
}

# every_second_packet_lost AT_SECONDS SEGMENT_US: lines of a plan that lose every second packet
# for the time of one segment. No randomness: it is certain which packets are lost, and the
# retransmissions come later and are not among them.
every_second_packet_lost() {
	awk -v at="$1" -v us="$2" 'BEGIN {
		netem = "run tc -n mid qdisc change dev to2 root netem limit 10000 delay 10us"
		printf "%.6f %s loss gemodel 100%% 100%%\n", at, netem
		printf "%.6f %s\n", at + us / 1e6, netem
	}'
}

# Retransmissions are single packets between large segments of 16 KB. They must not be delayed,
# at high rates and at low ones: losses are repaired within the time of a few segments.
losses_are_repaired_at_once() {
	for rate in 2000000 250000 20000; do
		unload_timely
		load_timely $steady loss_beta_ppm=0 first_rate_kbps=$rate
		# Segments of 16 KB at this rate; losses in three of sixty segments.
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

# comes_through NETEM PERCENT: the data arrives unchanged, at PERCENT of the goodput without
# impairment or more. Impairment starts after the handshake, as a lost SYN takes a second.
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

# 32 Mbit take 32 ms at the link rate.
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

run_cases hosts a_loss_halves_once a_loss_takes_loss_beta few_losses_are_free \
	a_small_share_is_free successive_recoveries_are_free many_losses_halve_once \
	an_ecn_echo_halves_once an_echo_after_losses_halves_again a_tail_loss_is_free \
	reordering_is_undone losses_are_repaired_at_once comes_through_a_perfect_wire \
	comes_through_loss comes_through_reordering comes_through_duplication comes_through_corruption
