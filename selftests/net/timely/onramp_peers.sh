#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's table of destinations: one namespace that fills its budget does not affect others, and
# idle destinations make room. Also: a replayed OR-ACK does not count when its sequence number is
# used again. Topology: h1 -- h2, a veth pair, and a namespace "tenant" with a dummy device.

. "$(dirname "$0")/onramp_lib.sh"

pausing="timely $exact flow_limit 1000 onramp 50us owd relative nopacing"

# h1 and h2, and a tenant that can send to many destinations
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
	must tc -n tenant qdisc add dev eth0 root $pausing
	new_qdisc $pausing
}

# works(TO): On-Ramp works for a new destination of h1: a packet with 300 us more delay causes a
# pause of 250 us. reach(COUNT): the tenant sends datagrams to COUNT destinations.
cat >"$work/works.py" <<-'END'
	def works(to):
	    before = counters()
	    forger = Forger(UdpFlow(to=to))
	    for _ in range(3):
	        forger.report_one(100 * US)
	        wait(1 * MS)
	    reported = forger.report_one(400 * US)
	    forger.flow.send()
	    wait(2 * MS)
	    off = forger.flow.arrived()[0].at - reported
	    forger.close()
	    say(to, "paused for", off, "ns:", grown(before, counters()))
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

# The tenant sends to 5000 destinations at once, more than its budget of 4096. The rest is refused;
# h1 is not affected.
other_namespaces_are_not_affected() {
	new_qdisc $pausing
	peers <<-'END'
		socks = reach(5000)
		result(refused=tenant("peers_refused"), evicted=tenant("peers_evicted"))
		result(works=works("10.7.2.3"), refused_h1=counters().get("peers_refused", 0))
	END
	expect works -eq 1 "a new destination of h1, while the tenant's budget is used up"
	expect refused_h1 -eq 0
	expect refused -eq 904
	expect evicted -eq 0
}

# Destinations of open sockets that do not send make room for new ones.
silent_destinations_make_room() {
	peers <<-'END'
		wait(1500 * MS)
		refused, evicted = tenant("peers_refused"), tenant("peers_evicted")
		socks = reach(2000, 5000)
		result(refused=tenant("peers_refused") - refused,
		       evicted=tenant("peers_evicted") - evicted, works=works("10.7.2.4"))
	END
	expect refused -eq 0
	expect evicted -ge 1
	expect works -eq 1
}

# With a budget of 8, destinations without flows are freed first; the flows end with their qdisc.
# Destinations in use stay.
idle_destinations_make_room() {
	limit=/sys/module/timely/parameters/max_peers
	must tc -n tenant qdisc replace dev eth0 root handle 99: pfifo
	must tc -n tenant qdisc replace dev eth0 root $pausing
	sleep 80
	echo 8 >$limit
	peers <<-'END'
		socks = reach(6, 100)
		for kind in "handle 99: pfifo", "timely onramp 50us owd relative nopacing":
		    tc(*f"qdisc replace dev eth0 root {kind}".split(), ns="tenant")
		refused, evicted = tenant("peers_refused"), tenant("peers_evicted")
		# Two new destinations fill the budget; six more replace the six idle ones.
		socks = reach(2, 200)
		result(none=tenant("peers_evicted") - evicted)
		more = reach(6, 300)
		result(evicted=tenant("peers_evicted") - evicted,
		       refused=tenant("peers_refused") - refused)
		again = reach(1, 400)
		result(last=tenant("peers_refused") - refused)
	END
	echo 4096 >$limit
	expect none -eq 0
	expect evicted -eq 6
	expect refused -eq 0
	expect last -eq 1
}

# Deleting a namespace frees its destinations; a new namespace of the same name has none.
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
		must tc -n tenant qdisc add dev eth0 root $pausing
		peers <<-'END'
			socks = reach(100)
			result(refused=tenant("peers_refused"), evicted=tenant("peers_evicted"))
		END
		expect refused -eq 0 "round $round"
		expect evicted -eq 0 "round $round"
	done
}

# A sequence number is used again: TCP's after 4 GB, the digest of UDP for equal datagrams. An
# OR-ACK that was recorded at its first use is replayed, and must be refused.
a_replay_does_not_count() {
	for owd in relative absolute; do
		new_qdisc timely $exact flow_limit 1000 onramp 50us owd $owd nopacing
		onramp <<-'END'
			forger = Forger(UdpFlow(port=9))
			def genuine():
			    before = counters()
			    forger.report_one(30 * US)
			    wait(200 * US)
			    return grown(before, counters()) == {"received": 1, "accepted": 1}
			taken = sum(genuine() for _ in range(200))
			count = forger.flow.count
			recorded = forger.one()
			wire = forger.wire(recorded, 30 * US)
			taken += genuine()
			wait(500 * MS)
			refused = paused = same = 0
			for _ in range(20):
			    forger.flow.count = count
			    packet = forger.one()
			    same += packet.seq == recorded.seq
			    wait(3 * MS)
			    before = counters()
			    forger.reporter.send(wire)
			    seen = grown(before, counters())
			    refused += seen.get("bad_time", 0) == 1 and "accepted" not in seen
			    forger.flow.count = count + 100
			    began = time.monotonic_ns()
			    forger.flow.send()
			    wait(20 * US)
			    paused += not forger.flow.arrived()
			    wait(5 * MS)
			    forger.flow.arrived()
			    taken += genuine()
			result(taken=taken, same=same, refused=refused, paused=paused)
			# The replays have not changed the minimum filter.
			reported = forger.report_one(330 * US)
			forger.flow.send()
			wait(2 * MS)
			result(off=forger.flow.arrived()[0].at - reported)
			forger.close()
		END
		expect same -eq 20
		expect taken -eq 221 "$owd: genuine OR-ACKs that were accepted"
		expect refused -eq 20 "$owd: replays that were refused"
		expect paused -eq 0 "$owd: pauses by a replay"
		[ $owd = absolute ] || expect_near off 250000 2
	done
}

unload() {
	must ip netns del tenant
	hosts_down
	unload_timely
}

run_cases hosts a_replay_does_not_count other_namespaces_are_not_affected \
	silent_destinations_make_room idle_destinations_make_room namespaces_come_and_go unload
