#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's options of the qdisc: what is refused and in which words, changes while
# flows are held, the port, several qdiscs.

. "$(dirname "$0")/onramp_lib.sh"

holding="timely $exact nopacing flow_limit 1000 onramp 50us"

hosts() {
	onramp_pair 4
	load_onramp
	without_keys
}

refused_with_words() {
	h1_qdisc $holding
	onramp <<-'END'
		bad = 0
		before = stats()["options"]
		right = option(TCA["ONRAMP"], "I", 70000)
		for name, form, values in (
		        ("ONRAMP", "I", (1, 999, 1000000001, 0xffffffff)),
		        ("ONRAMP_GAIN", "I", (0, 65537, 0xffffffff)),
		        ("ONRAMP_OWD", "B", (3, 255)),
		        ("ONRAMP_PAUSE_MAX", "I", (0, 1, 999, 1000000001)),
		        ("ONRAMP_STRAWMAN", "B", (2, 255)),
		        ("ONRAMP_CLOCK_ERROR", "I", (1000000001, 0xffffffff)),
		        ("ONRAMP", "B", (200,)), ("ONRAMP_OWD", "H", (256,))):
		    for value in values:
		        wrong = option(TCA[name], form, value)
		        # Of two of a name the last one counts.
		        whole = (wrong, right + wrong, wrong + right)
		        for what in whole[:2] if name == "ONRAMP" else whole:
		            error, words = change(what)
		            if not error or not words or stats()["options"] != before:
		                say(f"{name} {value}: {error} {words!r}")
		                bad += 1
		error, words = change(option(TCA["ONRAMP_PAUSE_MAX"], "I", 999))
		say(words)
		# That it would not have been refused anyway.
		error, words = change(right)
		result(bad=bad, right=error, changed=stats()["options"] != before)
	END
	expect bad -eq 0
	expect right -eq 0
	expect changed -eq 1
}

# Options that are not named stay; off keeps the others for when it is on again.
what_is_not_named_stays() {
	h1_qdisc $holding gain 1/8 owd relative pause_max 3ms strawman clock_error 5us
	onramp <<-'END'
		def shown():
		    return json.loads(tc("-j", "qdisc", "show", "dev", "eth0"))[0]["options"]
		first = shown()
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "60us")
		second = shown()
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "off")
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "50us")
		third = shown()
		say(first)
		differ = [name for name in first if first[name] != second.get(name)]
		result(differ=len(differ), named=differ == ["onramp"], again=third == first)
	END
	expect differ -eq 1
	expect named -eq 1
	expect again -eq 1
}

# What is held leaves at once when On-Ramp is turned off, and is held again after.
off_releases() {
	hold_anew $holding pause_max 100ms
	every_kind <<-'END'
		for name, forger in forgers():
		    forger.hold(50 * MS)
		    forger.flow.send(5)
		    wait(1 * MS)
		    held = not forger.flow.arrived()
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "off")
		    wait(20 * US)
		    got = forger.flow.arrived()
		    told = forger.hold(300 * US)
		    free = forger.one().at - told - 20 * US
		    # Until the destination's delay is forgotten.
		    wait(60 * MS)
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "50us")
		    told = forger.hold(300 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    result(**{name + "_held": held, name + "_bytes": sum(p.size for p in got),
		              name + "_free": free,
		              name + "_again": abs(forger.flow.arrived()[0].at - told - 250 * US)})
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_held -eq 1
		expect ${kind}_bytes -eq 5000 "held still though it is off"
		expect ${kind}_free -le 2000
		expect ${kind}_again -le 2000
	done
}

# A qdisc in its place, or none: nothing is lost.
another_qdisc_releases() {
	for after in "qdisc change dev eth0 root timely nopacing onramp off" \
		"qdisc change dev eth0 root timely owd rtt" ; do
		hold_anew $holding pause_max 100ms
		onramp <<-END
			forger = Forger(UdpFlow())
			forger.hold(50 * MS)
			forger.flow.send(5)
			wait(1 * MS)
			tc(*"$after".split())
			wait(100 * MS)
			result(got=len(forger.flow.arrived()), left=stats()["qlen"])
		END
		expect got -eq 5
		expect left -eq 0
	done
}

# The threshold counts for the next signal.
threshold_changes() {
	hold_anew $holding
	onramp <<-'END'
		forger = Forger(UdpFlow())
		worst = 0
		for threshold in 50, 400, 1, 100:
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", f"{threshold}us")
		    told = forger.hold(500 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    worst = max(worst, abs(forger.flow.arrived()[0].at - told - (500 - threshold) * US))
		result(worst=worst)
	END
	expect worst -le 2000
}

# Kinds come and go: the socket is there while somebody wants OR-ACKs, and no longer.
kinds_change() {
	hold_anew $holding
	onramp <<-'END'
		def bound(family=socket.AF_INET, addr="0.0.0.0"):
		    with inside("h1"):
		        sock = socket.socket(family, socket.SOCK_DGRAM)
		    try:
		        if family == socket.AF_INET6:
		            sock.setsockopt(41, 26, 1)
		        sock.bind((addr, ORACK_PORT))
		        return sock
		    except OSError:
		        sock.close()
		        return None
		def owd(kind):
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", "owd", kind)
		wrong = bound() is not None
		owd("relative")
		wrong += bound() is not None
		wrong += bound(socket.AF_INET6, "::") is not None
		owd("rtt")
		for family, addr in (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"):
		    sock = bound(family, addr)
		    wrong += sock is None
		    before = stats()["options"]
		    said = fails("qdisc", "change", "dev", "eth0", "root", "timely", "owd", "absolute")
		    say(said.strip())
		    wrong += "port" not in said
		    wrong += stats()["options"] != before
		    sock.close()
		owd("absolute")
		forger = Forger(UdpFlow())
		told = forger.hold(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(wrong=wrong, off=abs(forger.flow.arrived()[0].at - told - 250 * US))
	END
	expect wrong -eq 0
	expect off -le 2000
}

# What the first signal tells of is a queue, if the handshake met none.
least_delay_is_the_handshakes() {
	hold_anew $holding owd relative
	onramp <<-'END'
		def held(flow):
		    forger = Forger(flow)
		    told = forger.hold(300 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    return forger.flow.arrived()[0].at - told
		# A guest's own process may take a tick to begin, and the handshake with it.
		def quick():
		    for _ in range(30):
		        flow = TcpFlow()
		        info = flow.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 152)
		        if struct.unpack_from("=I", info, 148)[0] < 50:	# tcpi_min_rtt, us
		            return flow
		        flow.close()
		result(tcp=held(quick()), udp=held(UdpFlow(to="10.7.2.3")))
	END
	expect tcp -ge 190000
	expect tcp -le 260000
	expect udp -le 20000
}

port_in_use() {
	must tc -n h1 qdisc replace dev eth0 root pfifo
	onramp <<-'END'
		with inside("h1"):
		    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		sock.bind(("127.0.0.1", ORACK_PORT))
		said = fails("qdisc", "replace", "dev", "eth0", "root", "timely", "onramp", "50us")
		say(said.strip())
		tc("qdisc", "replace", "dev", "eth0", "root", "timely", "onramp", "50us", "owd", "rtt")
		tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		tc("qdisc", "replace", "dev", "eth0", "root", "timely")
		again = fails("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "50us")
		result(words="port" in said and "port" in again, kept=stats()["kind"] == "timely")
		sock.close()
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "50us")
	END
	expect words -eq 1
	expect kept -eq 1
}

# Two qdiscs in a namespace: one goes, the other hears on.
two_qdiscs() {
	hold_anew $holding
	must ip -n h1 link add dummy0 type dummy
	must tc -n h1 qdisc replace dev dummy0 root $holding
	must tc -n h1 qdisc del dev dummy0 root
	onramp <<-'END'
		forger = Forger(UdpFlow())
		told = forger.hold(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=abs(forger.flow.arrived()[0].at - told - 250 * US))
	END
	expect off -le 2000
	must tc -n h1 qdisc replace dev dummy0 root $holding
	must ip -n h1 link del dummy0
	onramp <<-'END'
		forger = Forger(UdpFlow())
		told = forger.hold(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=abs(forger.flow.arrived()[0].at - told - 250 * US))
	END
	expect off -le 2000
}

# Under mq there is an instance for each queue; flows find theirs.
under_mq() {
	sleep 1.1
	must tc -n h1 qdisc replace dev eth0 root handle 1: mq
	for queue in 1 2 3 4; do
		must tc -n h1 qdisc replace dev eth0 parent 1:$queue $holding
	done
	onramp <<-'END'
		flows = [Forger(UdpFlow(to=f"10.7.2.{2 + i % 4}", port=100 + i)) for i in range(16)]
		worst = 0
		for forger in flows:
		    told = forger.hold(300 * US)
		    forger.flow.send(2)
		    wait(1 * MS)
		    got = forger.flow.arrived()
		    worst = max(worst, abs(got[0].at - told - 250 * US))
		    forger.teller.close()
		seen = [q for q in qdiscs("h1").values() if q["kind"] == "timely"]
		say("pauses by queue:", *(q["onramp_pauses"] for q in seen))
		result(worst=worst, pauses=sum(q["onramp_pauses"] for q in seen),
		       used=sum(q["onramp_pauses"] > 0 for q in seen))
	END
	expect worst -le 2000
	expect pauses -eq 16
	expect used -ge 2
	must tc -n h1 qdisc replace dev eth0 root pfifo
}

# What TCP has in the qdisc stays bounded while the flow is held: TSQ.
held_bytes_are_bounded() {
	hold_anew timely onramp 50us pause_max 30ms
	onramp <<-'END'
		flow = TcpFlow(rate=125000000)
		forger = Forger(flow)
		flow.sender.setblocking(False)
		def fill():
		    try:
		        while True:
		            flow.sender.send(bytes(65536))
		    except BlockingIOError:
		        pass
		flow.receiver.setblocking(False)
		def drain():
		    try:
		        while flow.receiver.recv(1 << 20):
		            pass
		    except BlockingIOError:
		        pass
		for _ in range(30):
		    fill()
		    wait(1 * MS)
		    drain()
		last = flow.arrived()[-1]
		told = forger.tell(last, 11 * MS)
		most = 0
		flow.arrived()
		for _ in range(10):
		    fill()
		    wait(1 * MS)
		    drain()
		    most = max(most, stats()["backlog"])
		early = len(flow.arrived())
		for _ in range(5):
		    wait(1 * MS)
		    fill()
		    drain()
		got = flow.arrived()
		first = sum(p.size for p in got if p.at < got[0].at + 1 * MS)
		all_bytes = sum(p.size for p in got)
		say("backlog", most, "bytes; first ms", first, "first at", got[0].at - told, "all", all_bytes)
		result(most=most, early=early, first=first, off=got[0].at - told - 10950 * US)
		forger.close()
	END
	expect early -eq 0
	expect most -ge 1000
	# TSQ: a millisecond of the rate, or two segments.
	expect most -le 400000
	expect first -le 260000 "a burst at the end of a pause"
	expect off -ge -500
	expect off -le 20000
}

another_port() {
	hosts_down
	unload_timely
	refused insmod "$modules/timely.ko" orack_port=0
	must insmod "$modules/timely.ko" orack_port=4711
	must insmod "$modules/sch_timely.ko"
	onramp_pair
	ctl h1 onramp unauthenticated on
	h1_qdisc $holding
	onramp <<-'END'
		import onramp_wire
		onramp_wire.ORACK_PORT = 4711
		forger = Forger(UdpFlow())
		told = forger.hold(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=abs(forger.flow.arrived()[0].at - told - 250 * US))
	END
	expect off -le 2000
}

goodbye() {
	hosts_down
	unload_timely
}

run_cases hosts refused_with_words what_is_not_named_stays off_releases another_qdisc_releases \
	threshold_changes kinds_change least_delay_is_the_handshakes port_in_use two_qdiscs \
	under_mq held_bytes_are_bounded another_port goodbye
