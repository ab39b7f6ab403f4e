#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Removing the qdisc, its device, its namespace or its module while packets are queued, and changes
# of the device under load. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

# fill(): a hundred packets are queued, due within the next two seconds; returns their sockets,
# which outlive the packets. A case's commands run meanwhile.
cat >"$work/full.py" <<-'EOF'
	def fill(count=100):
	    senders = [source(clock=MONOTONIC) for _ in range(5)]
	    for number in range(count):
	        send_at(senders[number % 5], time.monotonic_ns() + (number + 1) * 20 * MS, payload(number))
	    if stats()["qlen"] != count:
	        raise RuntimeError("not queued")
	    return senders

	def run(*words):
	    subprocess.run(words, check=True, capture_output=True)
EOF

full() {
	{
		cat "$work/full.py"
		cat
	} >"$work/plan"
	packets <"$work/plan"
}

refused_while_in_use() {
	load_qdisc
	pair_up
	h1_qdisc timely
	refused rmmod sch_timely
	refused rmmod timely
	is_loaded sch_timely || fail "unloaded though it is in use"
	must tc -n h1 qdisc replace dev eth0 root handle 1: prio
	must tc -n h1 qdisc replace dev eth0 parent 1:2 timely
	refused rmmod sch_timely
	must tc -n h1 qdisc del dev eth0 root
	must rmmod sch_timely
	must rmmod timely
	hosts_down
}

refused_as_the_default() {
	load_qdisc
	read -r before </proc/sys/net/core/default_qdisc
	echo timely >/proc/sys/net/core/default_qdisc
	refused rmmod sch_timely
	echo "$before" >/proc/sys/net/core/default_qdisc
	must rmmod sch_timely
}

qdisc_goes_with_packets() {
	load_qdisc
	pair_up
	for round in 1 2 3; do
		h1_qdisc timely
		full <<-'EOF'
			senders = fill()
			tc("qdisc", "del", "dev", "eth0", "root")
			# The sockets are closed after their packets are freed.
		EOF
	done
	must rmmod sch_timely
	hosts_down
}

device_goes_with_packets() {
	load_qdisc
	for round in 1 2 3; do
		pair_up 4
		h1_qdisc timely
		full <<-'EOF'
			senders = fill()
			run("ip", "-n", "h1", "link", "del", "eth0")
		EOF
		hosts_down
	done
	must rmmod sch_timely
}

namespace_goes_with_packets() {
	load_qdisc
	for round in 1 2 3; do
		pair_up
		h1_qdisc timely
		full <<-'EOF'
			for sender in fill():
			    sender.close()
		EOF
		hosts_down
	done
	unload_timely
}

# Setting the device down drops the queued packets; after setting it up the qdisc works.
down_and_up() {
	load_qdisc
	pair_up
	h1_qdisc timely
	full <<-'EOF'
		senders = fill()
		run("ip", "-n", "h1", "link", "set", "eth0", "down")
		down = stats()
		run("ip", "-n", "h1", "link", "set", "eth0", "up")
		run("ip", "-n", "h1", "neigh", "replace", H2, "dev", "eth0", "lladdr", "02:00:00:00:00:02", "nud", "permanent")
		sink, sender = Sink(), source(rate=1000000)
		for number in range(50):
		    sender.send(payload(number, 0, 958))
		got = sink.take(50, 0.2)
		after = stats()
		result(down=down["qlen"] + down["backlog"], arrived=len(got), left=after["qlen"],
		       bands=sum(down[f"band_pkt_count_{i}"] for i in range(3)))
	EOF
	expect down -eq 0
	expect bands -eq 0
	expect arrived -eq 50
	expect left -eq 0
}

mtu_changes_under_load() {
	h1_qdisc timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=200000 verify=1
		0	flow b from=h2 to=h1 addr=10.7.2.1 cc=cubic cap=200000 verify=1
		0.05	run ip -n h2 link set eth0 mtu 9000
		0.05	run ip -n h1 link set eth0 mtu 9000
		0.1	run ip -n h1 link set eth0 mtu 1500
		0.15	run ip -n h1 link set eth0 mtu 576
		0.2	run ip -n h1 link set eth0 mtu 1500
		0.25	run ip -n h1 link set eth0 mtu 4000
		0.3	run ip -n h1 link set eth0 mtu 1500
		0.4	goodput late flow=a for=0.3
		0.8	stop a
		0.8	stop b
	EOF
	expect a_done -eq 1
	expect a_same -eq 1
	expect b_same -eq 1
	expect_near late 200000 3
	must ip -n h2 link set eth0 mtu 1500
}

congestion_control_switches_under_load() {
	must insmod "$modules/tcp_timely.ko"
	h1_qdisc timely $exact
	{
		echo "0 flow a from=h1 to=h2 addr=$h2_v4 cc=timely cap=500000 verify=1"
		echo "0 flow b from=h1 to=h2 addr=$h2_v4 cc=timely cap=100000 verify=1"
		for step in 0 1 2 3 4 5 6 7 8 9; do
			for half in 0 5; do
				echo "0.0${step}${half}0 set a cc=cubic"
				echo "0.0${step}${half}1 set a cc=timely"
				echo "0.0${step}${half}2 set a cc=bbr"
				echo "0.0${step}${half}3 set a cc=dctcp"
				echo "0.0${step}${half}4 set a cc=timely"
			done
		done
		echo "0.2 goodput a_got flow=a for=0.2"
		echo "0.2 goodput b_got flow=b for=0.2"
		echo "0.4 stop a"
		echo "0.4 stop b"
	} >"$work/plan"
	traffic <"$work/plan"
	expect a_done -eq 1
	expect a_same -eq 1
	expect b_same -eq 1
	expect_near a_got 500000 3
	expect_near b_got 100000 3
	hosts_down
	unload_timely
}

# Load, use and unload 50 times: the modules may get other addresses each time.
fifty_times() {
	pair_up
	round=0
	while [ $round -lt 50 ]; do
		round=$((round + 1))
		echo "insmod $modules/timely.ko && insmod $modules/sch_timely.ko"
		echo "tc -n h1 qdisc replace dev eth0 root timely maxrate 1mbit"
		echo "ip netns exec h1 ping -q -c 1 -w 1 10.7.2.2 >/dev/null || true"
		echo "tc -n h1 qdisc del dev eth0 root"
		echo "rmmod sch_timely && rmmod timely"
	done >"$work/rounds"
	must sh -e "$work/rounds"
	! is_loaded sch_timely || fail "sch_timely is still loaded"
}

run_cases refused_while_in_use refused_as_the_default qdisc_goes_with_packets \
	device_goes_with_packets namespace_goes_with_packets down_and_up \
	mtu_changes_under_load congestion_control_switches_under_load fifty_times
