#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's destinations: one network namespace fills its budget and no other namespace
# notices; the idle make room; an OR-ACK that was recorded earlier does not count when its
# sequence number comes again.

. "$(dirname "$0")/onramp_lib.sh"

holding="timely $exact flow_limit 1000 onramp 50us owd relative nopacing"

# h1 and h2, and a tenant that sends to wherever it likes.
hosts() {
	onramp_pair
	load_onramp
	without_keys
	must ip netns add tenant
	must ip -n tenant -batch - <<-END
		link set lo up
		link add eth0 type dummy
		address add 10.8.0.1/16 dev eth0
		link set eth0 up
	END
	must tc -n tenant qdisc add dev eth0 root $holding
	hold_anew $holding
}

# A new destination of h1: a packet took 300 us longer than the one before.
cat >"$work/works.py" <<-'END'
	def works(to):
	    before = counters()
	    forger = Forger(UdpFlow(to=to))
	    for _ in range(3):
	        forger.hold(100 * US)
	        wait(1 * MS)
	    told = forger.hold(400 * US)
	    forger.flow.send()
	    wait(2 * MS)
	    off = forger.flow.arrived()[0].at - told
	    forger.close()
	    say(to, "held for", off, "ns:", grown(before, counters()))
	    return abs(off - 250 * US) < EXACT
	def reach(count, first=0):
	    """Datagrams of the tenant, to as many destinations."""
	    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
	    socks = []
	    for number in range(first, first + count):
	        number += 256
	        socks.append(source("tenant", f"10.8.{number // 250}.{number % 250 + 1}"))
	        socks[-1].send(bytes(100))
	    return socks
	def tenant(name):
	    return counters("tenant").get(name, 0)
END

peers() {
	{
		echo "import resource"
		cat "$work/works.py"
		cat
	} >"$work/peers.plan"
	onramp <"$work/peers.plan"
}

# 5000 destinations at once are more than the tenant may have: it does without for the rest,
# and h1 has what it needs.
others_do_not_notice() {
	hold_anew $holding
	peers <<-'END'
		socks = reach(5000)
		result(refused=tenant("peers_refused"), evicted=tenant("peers_evicted"))
		result(works=works("10.7.2.3"), refused_h1=counters().get("peers_refused", 0))
	END
	expect works -eq 1 "a tenant's destinations have left no room for others"
	expect refused_h1 -eq 0
	expect refused -eq 904
	expect evicted -eq 0
}

# Whose sockets are silent: they make room.
the_silent_make_room() {
	peers <<-'END'
		wait(1500 * MS)
		refused, evicted = tenant("peers_refused"), tenant("peers_evicted")
		socks = reach(2000, 5000)
		result(refused=tenant("peers_refused") - refused, evicted=tenant("peers_evicted") - evicted,
		       works=works("10.7.2.4"))
	END
	expect refused -eq 0
	expect evicted -ge 1
	expect works -eq 1
}

# Those without flows are forgotten first: here the flow ends with its qdisc. Two are in
# use, and stay.
the_idle_make_room() {
	limit=/sys/module/timely/parameters/max_peers
	must tc -n tenant qdisc replace dev eth0 root handle 99: pfifo
	must tc -n tenant qdisc replace dev eth0 root $holding
	sleep 80
	echo 8 >$limit
	peers <<-'END'
		socks = reach(6, 100)
		tc("qdisc", "replace", "dev", "eth0", "root", "handle", "99:", "pfifo", ns="tenant")
		tc(*"qdisc replace dev eth0 root timely onramp 50us owd relative nopacing".split(), ns="tenant")
		refused, evicted = tenant("peers_refused"), tenant("peers_evicted")
		# The six that are idle, and two that are new; six more take their place.
		socks = reach(2, 200)
		result(none=tenant("peers_evicted") - evicted)
		more = reach(6, 300)
		result(evicted=tenant("peers_evicted") - evicted, refused=tenant("peers_refused") - refused)
		again = reach(1, 400)
		result(last=tenant("peers_refused") - refused)
	END
	echo 4096 >$limit
	expect none -eq 0
	expect evicted -eq 6
	expect refused -eq 0
	expect last -eq 1
}

# A namespace ends with its destinations, and one that is made then has none of them.
namespaces_come_and_go() {
	for round in 1 2 3; do
		must ip netns del tenant
		must ip netns add tenant
		must ip -n tenant -batch - <<-END
			link set lo up
			link add eth0 type dummy
			address add 10.8.0.1/16 dev eth0
			link set eth0 up
		END
		must tc -n tenant qdisc add dev eth0 root $holding
		peers <<-'END'
			socks = reach(100)
			result(refused=tenant("peers_refused"), evicted=tenant("peers_evicted"))
		END
		expect refused -eq 0 "round $round"
		expect evicted -eq 0 "round $round"
	done
}

# The same sequence number comes again, as TCP's after 4 GB and that of equal datagrams at
# any time, and with it an OR-ACK that was recorded when it came first.
a_replay_does_not_count() {
	for owd in relative absolute; do
		hold_anew timely $exact flow_limit 1000 onramp 50us owd $owd nopacing
		onramp <<-'END'
			forger = Forger(UdpFlow(port=9))
			def genuine():
			    before = counters()
			    forger.hold(30 * US)
			    wait(200 * US)
			    return grown(before, counters()) == {"received": 1, "accepted": 1}
			taken = sum(genuine() for _ in range(200))
			count = forger.flow.count
			recorded = forger.one()
			wire = forger.wire(recorded, 30 * US)
			taken += genuine()
			wait(500 * MS)
			refused = held = same = 0
			for _ in range(20):
			    forger.flow.count = count
			    packet = forger.one()
			    same += packet.seq == recorded.seq
			    wait(3 * MS)
			    before = counters()
			    forger.teller.send(wire)
			    seen = grown(before, counters())
			    refused += seen.get("bad_time", 0) == 1 and "accepted" not in seen
			    forger.flow.count = count + 100
			    began = time.monotonic_ns()
			    forger.flow.send()
			    wait(20 * US)
			    held += not forger.flow.arrived()
			    wait(5 * MS)
			    forger.flow.arrived()
			    taken += genuine()
			result(taken=taken, same=same, refused=refused, held=held)
			# Nor did it teach anything.
			told = forger.hold(330 * US)
			forger.flow.send()
			wait(2 * MS)
			result(off=forger.flow.arrived()[0].at - told)
			forger.close()
		END
		expect same -eq 20
		expect taken -eq 221 "$owd: genuine OR-ACKs did not count"
		expect refused -eq 20 "$owd: replays that were not refused"
		expect held -eq 0 "$owd: held by a replay"
		[ $owd = absolute ] || expect_near off 250000 2
	done
}

goodbye() {
	must ip netns del tenant
	hosts_down
	unload_timely
}

run_cases hosts a_replay_does_not_count others_do_not_notice the_silent_make_room the_idle_make_room \
	namespaces_come_and_go goodbye
