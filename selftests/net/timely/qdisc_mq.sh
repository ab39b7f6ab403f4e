#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timely below mq: one instance for each transmit queue, and as the default qdisc.
# Topology: h1 -- h2, a veth pair with four transmit queues.

. "$(dirname "$0")/qdisc_lib.sh"

default=/proc/sys/net/core/default_qdisc

hosts() {
	pair_up 4
	load_qdisc
}

one_qdisc_for_each_queue() {
	must tc -n h1 qdisc replace dev eth0 root handle 1: mq
	for queue in 1 2 3 4; do
		must tc -n h1 qdisc replace dev eth0 parent 1:$queue timely $exact limit 100$queue
	done
	packets <<-'EOF'
		sink = Sink()
		rates = [1000000 + 100000 * i for i in range(16)]
		senders = [source(rate=rate) for rate in rates]
		for _ in range(50):
		    for index, sender in enumerate(senders):
		        sender.send(payload(index, 0, 958))
		got = sink.take(800, 2)
		late = []
		for index, rate in enumerate(rates):
		    late += lateness([p.at for p in got if p.number == index], 1000 * S / rate)
		errors("mq", late)
		seen = [q for q in qdiscs("h1").values() if q["kind"] == "timely"]
		result(instances=len(seen), used=sum(q["packets"] > 0 for q in seen),
		       packets=sum(q["packets"] for q in seen),
		       options=len({q["options"] for q in seen}))
		say("packets by queue:", *(q["packets"] for q in seen))
	EOF
	expect mq_count -eq 800
	expect mq_p99 -le 1024
	expect instances -eq 4
	expect used -ge 2 "all packets went to one queue"
	expect packets -eq 800
	expect options -eq 4 "the instances' options are the same"
}

as_default_qdisc() {
	read -r before <$default
	echo timely >$default
	must tc -n h1 qdisc replace dev eth0 root pfifo
	must tc -n h1 qdisc replace dev eth0 root mq
	echo "$before" >$default
	packets <<-'EOF'
		result(instances=sum(q["kind"] == "timely" for q in qdiscs("h1").values()))
	EOF
	expect instances -eq 4
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic bytes=3000000 verify=1
		0	flow b from=h1 to=h2 addr=$h2_v4 cc=reno cap=200000 bytes=3000000 verify=1
		0	flow c from=h1 to=h2 addr=$h2_v4 cc=bbr bytes=3000000 verify=1
	EOF
	for flow in a b c; do
		expect ${flow}_done -eq 1
		expect ${flow}_same -eq 1
	done
}

# timely_children NUMBER: the device has NUMBER qdiscs of the kind timely.
timely_children() {
	packets <<-'EOF'
		result(children=sum(q["kind"] == "timely" for q in qdiscs("h1").values()))
	EOF
	expect children -eq "$1"
}

# Installing and removing timely by default_qdisc, as the README describes it. (Where a NIC gets
# mq again, a veth has no qdisc at all.)
default_qdisc_is_set_and_reset() {
	read -r before <$default
	must tc -n h1 qdisc del dev eth0 root
	echo timely >$default
	must tc -n h1 qdisc replace dev eth0 root mq
	timely_children 4
	echo "$before" >$default
	must tc -n h1 qdisc del dev eth0 root
	timely_children 0
	echo timely >$default
	must tc -n h1 qdisc replace dev eth0 root mq
	echo "$before" >$default
}

queues_may_change() {
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=100000 verify=1
		0	flow b from=h1 to=h2 addr=$h2_v4 cc=cubic cap=100000 verify=1
		0.1	run ip netns exec h1 ethtool -L eth0 tx 1
		0.2	run ip netns exec h1 ethtool -L eth0 tx 3
		0.3	run ip netns exec h1 ethtool -L eth0 tx 4
		0.4	stop a
		0.4	stop b
	EOF
	for flow in a b; do
		expect ${flow}_done -eq 1
		expect ${flow}_same -eq 1
	done
}

# As the root of a device with several queues timely works, and tc shows the kernel's warning.
root_of_several_queues_is_warned_about() {
	warning="Warning: sch_timely: one qdisc for all transmit queues"
	must tc -n h1 qdisc replace dev eth0 root timely
	grep -q "$warning" "$work/must" || fail "no warning for four queues"
	must tc -n h1 qdisc replace dev eth0 root timely limit 5000
	! grep -q "$warning" "$work/must" || fail "a warning for a change of options"
	must tc -n h1 qdisc replace dev eth0 root handle 1: mq
	must tc -n h1 qdisc replace dev eth0 parent 1:1 timely
	! grep -q "$warning" "$work/must" || fail "a warning below mq"
	must ip netns exec h1 ethtool -L eth0 tx 1
	must tc -n h1 qdisc replace dev eth0 root timely
	! grep -q "$warning" "$work/must" || fail "a warning for one queue"
	must ip netns exec h1 ethtool -L eth0 tx 4
}

# Replacing the qdisc of one queue leaves the other queues' qdiscs.
one_queue_gets_another_qdisc() {
	must tc -n h1 qdisc replace dev eth0 root handle 1: mq
	for queue in 1 2 3 4; do
		must tc -n h1 qdisc replace dev eth0 parent 1:$queue timely
	done
	must tc -n h1 qdisc replace dev eth0 parent 1:2 fq
	packets <<-'EOF'
		result(instances=sum(q["kind"] == "timely" for q in qdiscs("h1").values()))
		sink, senders = Sink(), [source() for _ in range(20)]
		for number in range(100):
		    senders[number % 20].send(payload(number))
		result(arrived=len(sink.take(100, 1)))
	EOF
	expect instances -eq 3
	expect arrived -eq 100
}

run_cases hosts one_qdisc_for_each_queue as_default_qdisc default_qdisc_is_set_and_reset \
	queues_may_change root_of_several_queues_is_warned_about one_queue_gets_another_qdisc
