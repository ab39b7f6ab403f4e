#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Removing the qdisc, the device, the namespace or the modules (in any order) while flows are paused
# and OR-ACKs arrive. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/onramp_lib.sh"

pausing="timely $exact nopacing flow_limit 1000 onramp 50us owd absolute pause_max 500ms"

# Flows of all kinds are paused for the next 400 ms, with packets of each in the queue. more() sends
# further OR-ACKs, valid and invalid.
cat >"$work/paused.py" <<-'END'
	MANY = [Forger(kind(to=to)) for _, kind, to in KINDS]
	KNOWN = []
	def paused():
	    first = [forger.one() for forger in MANY]
	    KNOWN.extend(forger.one() for forger in MANY)
	    wait(400 * MS)
	    for forger, packet in zip(MANY, first):
	        forger.reporter.send(forger.wire(packet, 400 * MS))
	        forger.flow.send(10)
	    if stats()["qlen"] < 20:
	        raise RuntimeError("not paused")

	def more():
	    for forger, packet in zip(MANY, KNOWN):
	        forger.reporter.send(forger.wire(packet, 1 * MS))
	        forger.reporter.send(b"junk")

	def run(*words):
	    subprocess.run(words, check=True, capture_output=True)

	paused()
	more()
END

paused() {
	{
		cat "$work/kinds.py" "$work/paused.py"
		cat
	} >"$work/paused.plan"
	onramp <"$work/paused.plan"
}

# up [QUEUES]: load the modules and create the hosts if they do not exist, and a new qdisc on h1
up() {
	is_loaded sch_timely || load_onramp
	[ -e /run/netns/h1 ] || {
		onramp_pair "${1:-1}"
		without_keys
	}
	new_qdisc $pausing
}

# timely is in use by timely_acker and sch_timely. Rules do not keep timely_acker in use.
refused_while_in_use() {
	up
	refused rmmod timely
	refused rmmod sch_timely
	ctl h2 acker add any
	must rmmod timely_acker
	refused rmmod timely
	hosts_down
	unload_timely
}

qdisc_goes() {
	for how in "qdisc del dev eth0 root" "qdisc replace dev eth0 root pfifo" \
		"qdisc replace dev eth0 root fq" "qdisc replace dev eth0 root handle 1: mq"; do
		up 4
		paused <<-END
			tc(*"$how".split())
			more()
			for forger in MANY:
			    forger.flow.send(2)
			wait(1 * MS)
			more()
			result(got=sum(p.size for forger in MANY for p in forger.flow.arrived()))
		END
		# Packets in the old qdisc are lost, or TCP sends them again.
		expect got -ge 4000 "$how"
		hosts_down
	done
	unload_timely
}

# The listening socket is closed with the last qdisc, also with OR-ACKs that it has not read.
qdiscs_replaced_with_or_acks_unread() {
	up
	{
		echo "for round in range(30):"
		echo "    tc('qdisc', 'replace', 'dev', 'eth0', 'root', 'pfifo')"
		echo "    more()"
		echo "    tc(*'qdisc replace dev eth0 root $pausing'.split())"
		echo "    more()"
		echo "result(left=stats()['qlen'])"
	} >"$work/rounds"
	paused <"$work/rounds"
	expect left -eq 0
	hosts_down
	unload_timely
}

device_goes() {
	for round in 1 2 3; do
		up 4
		paused <<-'END'
			run("ip", "-n", "h1", "link", "del", "eth0")
		END
		hosts_down
	done
	unload_timely
}

device_moves() {
	up
	must ip netns add h3
	paused <<-'END'
		run("ip", "-n", "h1", "link", "set", "eth0", "netns", "h3")
		with inside("h1"):
		    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		sock.bind(("0.0.0.0", ORACK_PORT))
		result(free=1)
	END
	expect free -eq 1 "the port of a namespace without a qdisc"
	must tc -n h3 qdisc replace dev eth0 root $pausing
	must ip netns del h3
	hosts_down
	unload_timely
}

namespace_goes() {
	for round in 1 2 3; do
		up
		paused <<-'END'
			add_key(1, SECRET)
			add_key(7, OTHER_SECRET)
			ctl("h2", "acker", "add", "any")
		END
		hosts_down
	done
	unload_timely
}

# Namespaces that only have keys, or rules, are deleted.
idle_namespaces_go() {
	load_onramp
	for round in 1 2 3; do
		must ip netns add h1
		must ip netns add h2
		onramp <<-'END'
			add_key(1, SECRET)
			ctl("h1", "key", "use", "1")
			ctl("h1", "acker", "add", "any")
			ctl("h2", "acker", "add", "10.0.0.0/8", "port", "1-100")
		END
		must ip netns del h1
		must ip netns del h2
	done
	unload_timely
}

down_and_up() {
	up
	paused <<-'END'
		run("ip", "-n", "h1", "link", "set", "eth0", "down")
		down = stats()
		more()
		run("ip", "-n", "h1", "link", "set", "eth0", "up")
		result(left=down["qlen"] + down["backlog"])
	END
	expect left -eq 0
	hosts_down
	unload_timely
}

# traffic_meanwhile LINE...: four flows, and the lines of traffic.py's plan
traffic_meanwhile() {
	{
		for number in 0 1; do
			echo "0 flow f$number from=h1 to=h2 addr=$h2_v4 cc=${cc:-cubic} cap=400000 verify=1"
			echo "0 flow g$number from=h1 to=h2 addr=fd07:2::2 cc=${cc:-cubic} cap=400000 verify=1"
			echo "0.2 stop f$number"
			echo "0.2 stop g$number"
		done
		for line; do echo "$line"; done
	} >"$work/plan"
	traffic <"$work/plan"
	for number in 0 1; do
		expect f${number}_same -eq 1
		expect g${number}_same -eq 1
		expect f${number}_bytes -ge 5000000
		expect g${number}_bytes -ge 5000000
	done
}

# A threshold that is always exceeded: flows are paused all the time.
always="timely onramp 1us owd absolute pause_max 200us"

modules_go_under_load() {
	for order in "timely_acker sch_timely timely" "sch_timely timely_acker timely"; do
		onramp_pair
		load_onramp
		must insmod "$modules/tcp_timely.ko"
		without_keys
		ctl h2 acker add any
		h1_qdisc $always
		set -- "0.05 run tc -n h1 qdisc replace dev eth0 root fq"
		at=6
		for module in $order; do
			[ $module = timely ] || set -- "$@" "0.0$at run rmmod $module"
			at=$((at + 1))
		done
		traffic_meanwhile "$@"
		hosts_down
		unload_timely
	done
}

# Connections change to and from timely, which shares its flow entries with On-Ramp.
congestion_controls_switch() {
	onramp_pair
	load_onramp
	must insmod "$modules/tcp_timely.ko"
	without_keys
	ctl h2 acker add any
	h1_qdisc $always
	cc=timely
	set --
	for step in 1 2 3 4 5 6 7 8; do
		set -- "$@" "0.0${step}0 set f0 cc=cubic" "0.0${step}2 set f0 cc=timely" \
			"0.0${step}3 set g0 cc=bbr" "0.0${step}5 set g0 cc=timely" \
			"0.0${step}6 run tc -n h1 qdisc change dev eth0 root timely onramp off" \
			"0.0${step}7 run tc -n h1 qdisc change dev eth0 root timely onramp 1us"
	done
	traffic_meanwhile "$@"
	cc=cubic
	onramp <<-'END'
		say({n: v for n, v in counters().items() if v})
		result(accepted=counters()["accepted"])
	END
	expect accepted -ge 10
	hosts_down
	unload_timely
}

# Load, use and unload 20 times, in different orders.
twenty_times() {
	onramp_pair
	cat >"$work/some.py" <<-'END'
		import socket
		sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		sock.connect(("10.7.2.2", 9))
		for _ in range(20):
		    sock.send(bytes(1000))
	END
	round=0
	while [ $round -lt 20 ]; do
		round=$((round + 1))
		for module in timely sch_timely timely_acker; do
			echo "insmod $modules/$module.ko"
		done
		echo "ip netns exec h1 $modules/timelyctl onramp unauthenticated on"
		echo "ip netns exec h2 $modules/timelyctl onramp unauthenticated on"
		echo "ip netns exec h2 $modules/timelyctl acker add any"
		echo "tc -n h1 qdisc replace dev eth0 root $always"
		echo "ip netns exec h1 ping -q -c 1 -w 1 10.7.2.2 >/dev/null || true"
		echo "ip netns exec h1 $python '$work/some.py' || true"
		echo "tc -n h1 qdisc del dev eth0 root"
		case $((round % 3)) in
		0)	echo "rmmod timely_acker && rmmod sch_timely && rmmod timely" ;;
		1)	echo "rmmod sch_timely && rmmod timely_acker && rmmod timely" ;;
		2)	echo "ip netns exec h2 $modules/timelyctl acker del any"
			echo "rmmod sch_timely && rmmod timely_acker && rmmod timely" ;;
		esac
	done >"$work/rounds"
	must sh -e "$work/rounds"
	! is_loaded timely || fail "timely is still loaded"
	hosts_down
}

run_cases refused_while_in_use qdisc_goes qdiscs_replaced_with_or_acks_unread device_goes \
	device_moves namespace_goes idle_namespaces_go down_and_up modules_go_under_load \
	congestion_controls_switch twenty_times
