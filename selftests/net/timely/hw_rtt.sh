#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# RTTs that end with a hardware timestamp are right: on a busy host, with delayed ACKs, losses and
# two NICs, and when clocks are stepped or drift. Topology: h1 == h2, test NICs; for losses
# h1 == mid == h2.

. "$(dirname "$0")/hw_lib.sh"

hosts() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $fixed
	nics_up
	busy h1 eth0
}

# The state from which each case starts.
as_usual() {
	timestamps h1 eth0 all
	busy h1 eth0
}

learns_within_100_ms() {
	as_usual
	knob h1 eth0 jitter_ns 100000
	for cross in 1 0; do
		rm -f "$work/sure"
		for _ in 1 2 3; do
			# shellcheck disable=SC2086 # several arguments
			reload_hw $fixed
			watch_nics h1 eth0
			flows 0.2
			judge after_us=130000 until_us=199000
			expect sure_us -ge 0 "hardware RTTs were never used, cross_timestamps=$cross"
			echo "$sure_us" >>"$work/sure"
			expect_hardware "cross_timestamps=$cross"
			# (The lab measures the average error of clock mappings.)
			expect error_p99 -le 800 "cross_timestamps=$cross"
			# The host's random delay was there, but is not in the RTTs.
			expect late_max -ge 90000
			expect rtt_max -le 60000
			# The qdisc hands a segment over just before it leaves.
			expect early_min -le 1000
		done
		# The time depends on the random delays: 100 ms for half of the runs, 130 ms for
		# all.
		{ read -r _; read -r median_us; read -r longest_us; } <<-EOF
			$(sort -n "$work/sure")
		EOF
		expect median_us -le 100000 "cross_timestamps=$cross"
		expect longest_us -le 130000 "cross_timestamps=$cross"
	done
}

no_hardware_rtts_without_timestamps() {
	as_usual
	for filter in none ptp; do
		timestamps h1 eth0 $filter
		watch_nics h1 eth0
		flows 0.03
		judge until_us=29000
		expect measured -gt 200 "$filter"
		expect hardware -eq 0 "$filter"
		expect doubtful -eq 0 "$filter"
		expect driver_later -ge $((measured - measured / 50)) "$filter"
		# The driver's timestamp is late by the random delay, and by no more.
		expect software_min -ge -$exact "$filter"
		expect software_max -ge 45000 "$filter"
		expect software_max -le 52000 "$filter"
	done
	timestamps h1 eth0 all
}

serialization_is_subtracted() {
	as_usual
	knob h1 eth0 jitter_ns 0
	for mbps in 1000 25000 100000 10000; do
		must in_ns h1 ethtool -s eth0 speed $mbps duplex full autoneg off
		watch_nics h1 eth0
		total_kbps=800000
		flows 0.03 $h2_v4 4
		judge until_us=29000
		expect measured -gt 50
		# TCP counts a segment without its headers.
		expect serial_all_max -le $((8000000 / mbps)) "ps per byte at $mbps Mb/s"
		expect serial_all_min -ge $((8000000 * 94 / 100 / mbps - 1)) "ps per byte at $mbps Mb/s"
	done
	must in_ns h1 "$timelyctl" nic set eth0 link-rate 40gbit
	watch_nics h1 eth0
	flows 0.03 $h2_v4 4
	judge until_us=29000
	expect serial_all_max -le 200 "ps per byte at 40 Gb/s, set by the user"
	expect serial_all_min -ge 187 "ps per byte at 40 Gb/s, set by the user"
	must in_ns h1 "$timelyctl" nic set eth0 link-rate auto
}

not_used_when_switched_off() {
	as_usual
	must in_ns h1 "$timelyctl" nic set eth0 hardware off
	watch_nics h1 eth0
	flows 0.03
	must in_ns h1 "$timelyctl" nic set eth0 hardware on
	judge until_us=29000
	expect measured -gt 200
	expect hardware -eq 0
	expect driver_later -ge $((measured - measured / 50))
	expect_truth
}

# An RTT with a delayed ACK is not used.
delayed_acks_are_not_counted() {
	as_usual
	watch_nics h1 eth0
	sockets <<-'EOF'
		# Writes that leave as single packets or odd numbers of packets.
		TAILS = ([1448], [100], [2 * 1448], [3 * 1448], [3 * 1448 + 100], [100] * 2,
			 [100] * 3, [1448, 100], [100, 1448], [11 * 1448 + 1])
		client, server = connect("10.7.2.2")
		server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 20)
		sent = 0
		for i in range(20):
		    client.sendall(bytes(1448))
		    time.sleep(0.06)
		    sent += 1448
		for sizes in TAILS * 2 + ([100] * 3,) * 20 + ([600] * 2,) * 10:
		    for size in sizes:
		        client.sendall(bytes(size))
		        sent += size
		    time.sleep(0.06)
		got = 0
		server.setblocking(False)
		while got < sent:
		    got += len(server.recv(1 << 20))
		result(tails_same=got == sent)
	EOF
	judge
	expect tails_same -eq 1
	expect acks -gt 60
	expect delayed -gt 10
	expect rtt_max -le 1000000 "ns: a delayed ACK was counted"
}

half_closed_connections_work() {
	as_usual
	watch_nics h1 eth0
	sockets <<-'EOF'
		client, server = connect("10.7.2.2")
		client.sendall(bytes(100000))
		time.sleep(0.01)
		server.shutdown(socket.SHUT_WR)
		time.sleep(0.01)
		result(eof=client.recv(1) == b"")
		client.setblocking(False)
		server.setblocking(False)
		sent = got = 0
		end = time.monotonic() + 0.05
		while time.monotonic() < end or got < sent + 100000:
		    try:
		        if time.monotonic() < end:
		            sent += client.send(bytes(65536))
		    except BlockingIOError:
		        pass
		    try:
		        got += len(server.recv(1 << 20))
		    except BlockingIOError:
		        time.sleep(0.0001)
		result(half_sent=sent, half_lost=sent + 100000 - got)
	EOF
	judge after_us=15000
	expect eof -eq 1
	expect half_sent -gt 1000000
	expect half_lost -eq 0
	# After the FIN, packets do not pass the tracepoint before TCP processes them. Timestamps of
	# earlier packets must not be used.
	expect tcp_later -gt 50
	expect hardware_later -eq 0 "RTTs that ended with an earlier packet's timestamp"
	expect tcp_min -ge -$exact
	expect_truth
}

# ---- clocks ----

# Create a script for plans: "run ... sh $work/step NAME VALUE FILE" appends the time to FILE and
# writes a setting of the NIC.
write_step_script() {
	cat >"$work/step" <<-'EOF'
		cd /sys/class/net/eth0/hwnic
		cat phc_now >>"$3"
		echo "$2" >"$1"
	EOF
}

# steps_plan NAME VALUE...: a plan that sets the setting to the next value every 150 ms
steps_plan() {
	steps_knob=$1
	shift
	steps_at=200
	for value; do
		echo "0.$steps_at run ip netns exec h1 sh $work/step $steps_knob $value $work/steps"
		steps_at=$((steps_at + 150))
	done
	[ $steps_at -le 950 ] || fail "too many steps for a second"
	plan_flows 0.$steps_at
}

# steps NAME VALUE...: each step of the NIC's clock is noticed, and then the clock is learnt again.
steps() {
	write_step_script
	rm -f "$work/steps"
	truth_types=R
	watch_nics h1 eth0
	steps_plan "$@" >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge
	expect unjoined -eq 0
	shift
	while read -r _ mono; do
		judge_again step_ns="$mono"
		say "$steps_knob $1: noticed after $noticed_us us, known after $back_us us"
		expect noticed_us -ge 0 "step $1"
		expect noticed_us -le 10000 "step $1"
		expect back_us -ge 0 "step $1"
		# 100 ms, and the time until the next segment is ACKed.
		expect back_us -le 120000 "step $1"
		shift
	done <"$work/steps"
	expect hardware -ge 1000
	say "$error_wrong of $hardware RTTs off by more than 1 us, at most $error_max ns"
}

# RTTs that use the old clock mapping would be wrong by the step.
no_rtts_by_the_old_clock() {
	# From timestamp pairs alone, the new mapping is learnt within about 40 ms. At first it may
	# be wrong by some us.
	expect error_max -le 10000 "RTTs by the old clock"
	expect error_wrong -le $((hardware / 20)) "RTTs off by more than 1 us"
}

a_step_of_the_nic_is_noticed() {
	as_usual
	steps phc_step_ns 1000000000 -1000000000 1000000 -1000000
	no_rtts_by_the_old_clock
	steps phc_step_ns 300000 -300000 100000000 -100000000
	no_rtts_by_the_old_clock
}

a_restart_of_the_nic_is_noticed() {
	as_usual
	steps phc_set_ns 0 1 4000000000000000000 1700000000000000000
	no_rtts_by_the_old_clock
}

# A step smaller than the host's random delay, which no single packet shows.
a_step_within_the_random_delay_is_noticed() {
	as_usual
	steps phc_step_ns 20000 50000 -50000
	expect error_wrong -le 300
}

# A small step back looks like a larger delay of the host. RTTs are wrong by no more than the step,
# until the PTP clock is read.
a_small_step_is_found_by_reading_the_clock() {
	as_usual
	cross=1
	knob h1 eth0 jitter_ns 100000
	# shellcheck disable=SC2086 # several arguments
	reload_hw $fixed
	write_step_script
	truth_types=R
	total_kbps=2000000
	watch_nics h1 eth0
	{
		plan_flows 0.7
		echo "0.3 run ip netns exec h1 sh $work/step phc_step_ns -20000 $work/steps"
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge
	say "$error_wrong of $hardware RTTs off by more than 1 us, at most $error_max ns"
	expect error_max -le 21000
	judge_again after_us=600000 until_us=699000
	expect hardware_later -gt 50
	expect error_wrong -eq 0 "300 ms after a small step"
	cross=0
	# shellcheck disable=SC2086 # several arguments
	reload_hw $fixed
}

drift_that_changes_is_followed() {
	as_usual
	knob h1 eth0 phc_wander_ppb_per_s 10000
	watch_nics h1 eth0
	truth_types=R
	plan_flows 0.4 >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=100000 until_us=399000
	knob h1 eth0 phc_wander_ppb_per_s 0
	expect_hardware
	for ppb in -500000 500000; do
		knob h1 eth0 phc_drift_ppb $ppb
		watch_nics h1 eth0
		flows 0.25
		judge after_us=150000 until_us=249000
		expect_hardware "drift of $ppb ppb"
	done
}

# Steps of the real-time clock, which driver timestamps use.
the_real_clock_may_be_set() {
	as_usual
	timestamps h1 eth0 none
	cat >"$work/set-clock.py" <<-'EOF'
		import sys, time
		time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_REALTIME) + int(sys.argv[1]))
	EOF
	watch_nics h1 eth0
	{
		plan_flows 0.09
		at=20
		for by in 3600000000000 -3600000000000 1000000 -1000000 50000 -50000; do
			echo "0.0$at run $python -I $work/set-clock.py $by"
			at=$((at + 10))
		done
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	timestamps h1 eth0 all
	judge until_us=89000
	expect driver_later -ge $((measured * 9 / 10))
	expect software_min -ge -$exact
	expect software_max -le 52000
	[ -z "${tcp_max-}" ] || expect tcp_max -le 52000
	expect hardware -eq 0
}

# Steps of the real-time clock have no effect on hardware timestamps.
the_real_clock_does_not_matter() {
	as_usual
	watch_nics h1 eth0
	{
		plan_flows 0.2
		for at in 110 130 150 170; do
			echo "0.$at run $python -I $work/set-clock.py ${at}000000000"
		done
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=100000 until_us=199000
	expect_hardware
}

# ---- two NICs ----

two_nics_two_clocks() {
	as_usual
	cable h1 eth1 h2 eth1
	address h1 eth1 1 3
	address h2 eth1 2 3
	must tc -n h1 qdisc replace dev eth1 root timely
	timestamps h1 eth1 all
	busy h1 eth1 30000 -80000
	sleep 2
	watch_nics h1 eth0 h1 eth1
	total_kbps=3000000
	{
		plan_flows 0.25
		plan_flows 0.25 10.7.3.2 32 | sed 's/ f\([0-9]\)/ g\1/'
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	# Each clock mapping is learnt from half of the packets.
	judge after_us=150000 until_us=249000
	expect_hardware
}

# The ACKs of connections change from one NIC to the other.
from_nic_to_nic() {
	watch_nics h1 eth0 h1 eth1
	{
		plan_flows 0.25
		plan_flows 0.25 10.7.3.2 32 | sed 's/ f\([0-9]\)/ g\1/'
		for at in 12 16 20; do
			echo "0.${at}0 run ip -n h2 route replace 10.7.2.1/32 dev eth1"
			echo "0.${at}0 run ip -n h2 route replace 10.7.3.1/32 dev eth0"
			echo "0.${at}2 run ip -n h2 route del 10.7.2.1/32"
			echo "0.${at}2 run ip -n h2 route del 10.7.3.1/32"
		done
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=100000 until_us=249000
	expect_hardware
	must ip -n h1 link del eth1
}

# ---- interrupt moderation ----

# From some time on each ACK waits for an interrupt, longer than any ACK before. Readings of the NIC's
# clock show that no clock was stepped, so the hardware timestamps are right.
moderated_acks_give_rtts() {
	as_usual
	knob h1 eth0 jitter_ns 0
	cross=1
	# shellcheck disable=SC2086 # several arguments
	reload_hw $fixed
	watch_nics h1 eth0
	{
		plan_flows 0.4
		echo "0.1 run ip netns exec h1 ethtool -C eth0 rx-usecs 8 rx-frames 0"
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=200000 until_us=390000
	expect_hardware
	must in_ns h1 ethtool -C eth0 rx-usecs 0 rx-frames 1
	cross=0
}

# ---- long paths ----

# With default parameters, 10 Gb/s and a base RTT of 2 ms: more segments are in flight than
# departure times are stored, and the qdisc sends earlier than TCP has planned, as rates rise.
rtts_of_long_paths_begin_at_departures() {
	as_usual
	knob h1 eth0 jitter_ns 0
	knob h1 eth0 delay_ns 1000000
	knob h2 eth0 delay_ns 1000000
	must tc -n h1 qdisc del dev eth0 root
	unload_timely
	must insmod "$modules/timely.ko" cross_timestamps=0
	must insmod "$modules/tcp_timely.ko"
	must insmod "$modules/sch_timely.ko"
	must tc -n h1 qdisc replace dev eth0 root timely
	truth_types=R
	total_kbps=10000000
	watch_nics h1 eth0
	flows 0.6 $h2_v4 1
	judge until_us=590000
	unset total_kbps
	expect measured -ge 5000
	say "$estimated of $measured RTTs are from estimated departures"
	expect estimated -gt 100
	# The clock mapping is learnt here, and RTTs have its error.
	expect error_max -le $almost
	expect rtt_min -ge $((2000000 - exact)) "RTTs that start after the departure"
	knob h1 eth0 delay_ns 5000
	knob h2 eth0 delay_ns 5000
	# shellcheck disable=SC2086 # several arguments
	reload_hw $fixed
}

# ---- losses ----

# A path with losses: h1 eth0 == to1 mid to2 == eth0 h2; mid has a netem.
a_lossy_path() {
	nics_down
	for ns in h1 h2 mid; do new_host $ns; done
	cable h1 eth0 mid to1
	cable mid to2 h2 eth0
	address h1 eth0 2 1
	address mid to1 1 1
	address mid to2 1 2
	address h2 eth0 2 2
	must ip -n h1 route add 10.7.2.0/24 via 10.7.1.1
	must ip -n h2 route add 10.7.1.0/24 via 10.7.2.1
	must in_ns mid sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	# Without GRO single frames are lost.
	must in_ns mid ethtool -K to1 gro off
	must tc -n h1 qdisc replace dev eth0 root timely
	timestamps h1 eth0 all
	busy h1 eth0 50000 -30000
	sleep 2
}

# under TEXT COMMAND...: connections, and a command that changes the netem after they have started
under() {
	text=$1
	shift
	wire_to_h2 "delay 10us"
	must tc -n mid qdisc replace dev to1 root pfifo
	watch_nics h1 eth0
	{
		plan_flows 0.15
		echo "0.03 run $*"
	} >"$work/plan"
	traffic <"$work/plan"
	expect_flows_done
	judge after_us=100000 until_us=149000
	say "$text: $measured RTTs, $sacked by SACK; not used: $retransmitted of retransmissions, $recovery in recovery"
	expect hardware_later -gt 50 "$text"
	expect_truth "$text"
}

under_loss_and_reordering() {
	total_kbps=2000000
	netem="tc -n mid qdisc replace dev to2 root netem limit 10000"
	under "loss" "$netem loss 1%"
	expect recovery -gt 20
	under "loss and duplicates" "$netem loss 0.5% duplicate 2%"
	expect recovery -gt 20
	under "jitter" "$netem delay 40us 30us"
	expect sacked -gt 5
	under "reordering" "$netem delay 20us reorder 90% 50% gap 3"
	expect sacked -gt 0
	netem="tc -n mid qdisc replace dev to1 root netem limit 10000"
	under "ACKs lost and out of order" "$netem delay 40us 30us loss 2%"
}

run_cases hosts learns_within_100_ms no_hardware_rtts_without_timestamps \
	serialization_is_subtracted not_used_when_switched_off delayed_acks_are_not_counted \
	half_closed_connections_work a_step_of_the_nic_is_noticed a_restart_of_the_nic_is_noticed \
	a_step_within_the_random_delay_is_noticed a_small_step_is_found_by_reading_the_clock \
	drift_that_changes_is_followed the_real_clock_may_be_set the_real_clock_does_not_matter \
	two_nics_two_clocks from_nic_to_nic moderated_acks_give_rtts \
	rtts_of_long_paths_begin_at_departures a_lossy_path under_loss_and_reordering remove_all
