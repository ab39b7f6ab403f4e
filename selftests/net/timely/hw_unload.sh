#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# NICs, modules, links and namespaces are removed in any order, while connections use hardware
# timestamps, and nothing is left. Topology: h1 == h2, test NICs.

. "$(dirname "$0")/hw_lib.sh"

total_kbps=2000000

load() {
	# shellcheck disable=SC2086 # several arguments
	load_hw $fixed
	nics_up
	busy h1 eth0
}

# churn SECONDS: 8 connections over IPv4 and IPv6, and more lines of a plan from standard input
churn() {
	{
		plan_flows "$1" $h2_v4 4
		plan_flows "$1" $h2_v6 4 | sed 's/ f\([0-9]\)/ g\1/'
		cat
	} | sed "s/ cc=timely cap/ cc=${churn_as:-timely} cap/" >"$work/plan"
	traffic <"$work/plan"
}

# All connections have delivered their data.
all_done() {
	for flow in f0 f1 f2 f3 g0 g1 g2 g3; do
		expect ${flow}_done -eq 1 "$*"
	done
}

refused_under_traffic() {
	cat >"$work/try-unload" <<-'EOF'
		for module in sch_timely tcp_timely timely; do
			! rmmod $module 2>/dev/null && [ -d /sys/module/$module ] || exit 1
		done
	EOF
	churn 0.1 <<-EOF
		0.05 run sh $work/try-unload
	EOF
	all_done
}

# The module reads timestamps at a tracepoint, which it joins again each time it is loaded.
loaded_again_and_again() {
	for _ in 1 2 3; do
		# shellcheck disable=SC2086 # several arguments
		reload_hw $fixed
		watch_nics h1 eth0
		churn 0.15 </dev/null
		all_done
		judge after_us=130000 until_us=149000
		expect hardware -gt 20
		expect_truth
	done
}

# After unloading, the kernel does not call the module at its tracepoint.
other_congestion_controls_go_on_without_the_modules() {
	must tc -n h1 qdisc del dev eth0 root
	churn_as=cubic
	churn 0.1 <<-EOF
		0.03 run rmmod sch_timely
		0.05 run rmmod tcp_timely
		0.07 run rmmod timely
	EOF
	all_done
	# shellcheck disable=SC2086 # several arguments
	load_hw $fixed
	h1_qdisc timely
}

# Driver timestamps (the kernel's netstamp) are enabled while sockets need them, and disabled again.
driver_timestamps_are_off_again() {
	cat >"$work/timestamp.py" <<-'EOF'
		import socket, struct, sys, time
		# Does a packet on lo get a timestamp at its arrival? If not, the kernel takes the
		# time of the read, 10 ms later.
		rx = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		rx.bind(("127.0.0.1", 0))
		tx = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		tx.sendto(b"x", rx.getsockname())
		sent = time.clock_gettime_ns(time.CLOCK_REALTIME)
		time.sleep(0.01)
		# This enables timestamps for later packets only.
		rx.setsockopt(socket.SOL_SOCKET, 35, 1) # SO_TIMESTAMPNS
		_, ancillary, _, _ = rx.recvmsg(16, 256)
		seconds, ns = struct.unpack("qq", ancillary[0][2])
		late = seconds * 10**9 + ns - sent
		print(f"timestamp_late_us={late // 1000}")
	EOF
	echo "$python -I $work/timestamp.py >$work/timestamp" >"$work/look"
	for wanted in before during after; do
		if [ $wanted = during ]; then
			timestamps h1 eth0 none
			churn 0.05 <<-EOF
				0.02 run sh $work/look
			EOF
			timestamps h1 eth0 all
		else
			sh "$work/look"
		fi
		# shellcheck disable=SC1091 # a KEY=NUMBER line
		. "$work/timestamp"
		say "$wanted: the packet's timestamp is $timestamp_late_us us after it was sent"
		if [ $wanted = during ]; then
			expect timestamp_late_us -le 1000 "no driver timestamps while sockets need them"
		else
			expect timestamp_late_us -ge 9000 "driver timestamps though no socket needs them: $wanted"
		fi
	done
}

congestion_control_switches() {
	for step in 2 3 4 5 6 7 8 9; do
		for flow in f0 f1 g0 g1; do
			echo "0.0${step}0 set $flow cc=cubic"
			echo "0.0${step}2 set $flow cc=timely"
			echo "0.0${step}4 set $flow cc=reno"
			echo "0.0${step}6 set $flow cc=timely"
			echo "0.0${step}6 set $flow cc=timely"
		done
	done >"$work/switches"
	watch_nics h1 eth0
	churn 0.15 <"$work/switches"
	all_done
	judge
	expect_truth "switched"
	expect hardware -gt 50
}

link_down_and_up() {
	watch_nics h1 eth0
	churn 0.5 <<-EOF
		0.1 run ip -n h1 link set eth0 down
		0.101 run ip -n h1 link set eth0 up
		0.101 run ip -n h1 address replace fd07:2::1/64 dev eth0 nodad
		0.15 run ip -n h2 link set eth0 down
		0.151 run ip -n h2 link set eth0 up
		0.151 run ip -n h2 address replace fd07:2::2/64 dev eth0 nodad
	EOF
	all_done
	judge
	expect_truth "link down and up"
	# Hardware timestamps are used again on a new clock mapping.
	sleep 1
	watch_nics h1 eth0
	churn 0.15 </dev/null
	judge after_us=120000 until_us=149000
	expect hardware_later -gt 20
	expect_truth
}

cross_timestamps_come_and_go() {
	switch=/sys/module/timely/parameters/cross_timestamps
	echo "grep -q Y $switch && echo 0 >$switch || echo 1 >$switch" >"$work/toggle"
	watch_nics h1 eth0
	for at in 10 11 12 13 14 15 16 17 18; do
		echo "0.$at run sh $work/toggle"
	done >"$work/toggles"
	churn 0.2 <"$work/toggles"
	all_done
	judge after_us=150000 until_us=199000
	expect hardware_later -gt 20
	expect_truth
	echo 0 >$switch
}

# phc_readings: how often the PTP clock of h1's NIC was read for the clock mapping
phc_readings() {
	must in_ns h1 "$timelyctl" -j nic show eth0
	sed -n 's/.*"cross_timestamps": *\([0-9]*\).*/\1/p' "$work/must" | head -n 1
}

phc_index() {
	in_ns h1 ls /sys/class/net/eth0/device/ptp 2>/dev/null
}

# A driver may register another PTP clock each time the device comes up, like stmmac. The other
# clock is read, too, and has the name of the first.
another_ptp_clock_at_each_up() {
	echo 1 >/sys/module/timely/parameters/cross_timestamps
	knob h1 eth0 phc_again 1
	index=$(phc_index)
	[ -n "$index" ] || fail "no PTP clock"
	for _ in 1 2; do
		must ip -n h1 link set eth0 down
		[ -z "$(phc_index)" ] || fail "the driver has not removed its PTP clock"
		must ip -n h1 link set eth0 up
		must ip -n h1 address replace fd07:2::1/64 dev eth0 nodad
		[ "$(phc_index)" = "$index" ] || fail "the PTP clock was $index and is $(phc_index)"
		sleep 1
		before=$(phc_readings)
		churn 0.15 </dev/null
		all_done
		readings=$(($(phc_readings) - before))
		expect readings -ge 2 "readings of the PTP clock that was registered again"
	done
	knob h1 eth0 phc_again 0
	echo 0 >/sys/module/timely/parameters/cross_timestamps
}

# The NIC of connections is removed while packets with timestamps are being received.
the_nic_goes_under_traffic() {
	for how in "ip -n h1 link del eth0" "ip -n h2 link del eth0"; do
		churn 0.3 <<-EOF
			0.15 run $how
			0.2 end
		EOF
		nics_down
		nics_up
	done
	churn 0.05 </dev/null
	all_done
}

namespaces_go_under_traffic() {
	for ns in h1 h2; do
		churn 0.3 <<-EOF
			0.1 run ip netns del $ns
			0.15 end
		EOF
		nics_down
		nics_up
	done
	watch_nics h1 eth0
	churn 0.15 </dev/null
	all_done
	judge after_us=120000 until_us=149000
	expect hardware_later -gt 20
	expect_truth
}

# The test NIC's module is unloaded while TIMELY uses its PTP clock.
the_driver_goes() {
	churn 0.15 <<-EOF
		0.1 run rmmod hwnic
		0.12 end
	EOF
	nics_down
	must insmod "$modules/hwnic.ko"
	nics_up
	churn 0.05 </dev/null
	all_done
}

# TIMELY's modules are unloaded and loaded while the NICs exist.
modules_in_any_order() {
	for _ in 1 2 3; do
		must tc -n h1 qdisc del dev eth0 root
		unload_timely
		timestamps h1 eth0 none
		timestamps h1 eth0 all
		# shellcheck disable=SC2086 # several arguments
		load_hw $fixed
		h1_qdisc timely
	done
	# Also with a second NIC that was never used.
	cable h1 eth1 h2 eth1
	address h1 eth1 1 3
	timestamps h1 eth1 all
	must tc -n h1 qdisc del dev eth0 root
	unload_timely
}

run_cases load refused_under_traffic loaded_again_and_again \
	other_congestion_controls_go_on_without_the_modules driver_timestamps_are_off_again \
	congestion_control_switches link_down_and_up cross_timestamps_come_and_go \
	another_ptp_clock_at_each_up the_nic_goes_under_traffic namespaces_go_under_traffic \
	the_driver_goes modules_in_any_order remove_all
