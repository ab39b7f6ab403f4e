#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's options of the qdisc: ranges and error messages, defaults, changes while flows are
# paused, the UDP port for OR-ACKs, and several qdiscs in a namespace. Topology: h1 -- h2, a veth
# pair with four transmit queues.

. "$(dirname "$0")/onramp_lib.sh"

pausing="timely $exact nopacing flow_limit 1000 onramp 50us owd absolute"

hosts() {
	onramp_pair 4
	load_onramp
	without_keys
}

# Values out of range are refused with a message, and change no option.
refusals_have_messages() {
	h1_qdisc $pausing
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
		        # Of two attributes of one type the kernel uses the last one, so a later valid
		        # value may hide the wrong one.
		        whole = (wrong, right + wrong, wrong + right)
		        for what in whole[:2] if name == "ONRAMP" else whole:
		            error, words = change(what)
		            if not error or not words or stats()["options"] != before:
		                say(f"{name} {value}: {error} {words!r}")
		                bad += 1
		error, words = change(option(TCA["ONRAMP_PAUSE_MAX"], "I", 999))
		say(words)
		# A valid change is accepted, so the refusals above have the values as their reason.
		error, words = change(right)
		result(bad=bad, right=error, changed=stats()["options"] != before)
	END
	expect bad -eq 0
	expect right -eq 0
	expect changed -eq 1
}

# A change leaves options that it does not contain as they are. "onramp off" keeps the other options
# for the next time that On-Ramp is switched on.
options_not_given_stay() {
	h1_qdisc $pausing gain 1/8 owd relative pause_max 3ms strawman clock_error 5us
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

# Without "owd" the delay is relative: if On-Ramp is on from the start, if On-Ramp is switched on
# later, and if a netlink message has no such attribute. A kind of delay that was chosen before stays
# when only the threshold is changed.
relative_unless_owd_is_given() {
	h1_qdisc timely onramp 50us
	onramp <<-'END'
		def owd():
		    return json.loads(tc("-j", "qdisc", "show", "dev", "eth0"))[0]["options"]["owd"]
		at_once = owd()
		tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		tc("qdisc", "replace", "dev", "eth0", "root", "timely")
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "50us")
		later = owd()
		tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		tc("qdisc", "replace", "dev", "eth0", "root", "timely")
		error, words = change(option(TCA["ONRAMP"], "I", 50000))
		by_netlink = owd()
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "owd", "absolute")
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "60us")
		changed = owd()
		tc("qdisc", "replace", "dev", "eth0", "root", "timely", "onramp", "70us")
		replaced = owd()
		say(at_once, later, error, words, by_netlink, changed, replaced)
		result(relative=[at_once, later, by_netlink].count("relative"),
		       kept=[changed, replaced].count("absolute"))
	END
	expect relative -eq 3 "without owd the delay is not relative"
	expect kept -eq 2 "a change of the threshold has changed owd"
}

# When On-Ramp is switched off, paused packets leave at once. After On-Ramp is switched on again,
# flows are paused again.
off_ends_pauses() {
	new_qdisc $pausing pause_max 100ms
	every_kind <<-'END'
		for name, forger in forgers():
		    forger.report_one(50 * MS)
		    forger.flow.send(5)
		    wait(1 * MS)
		    paused = not forger.flow.arrived()
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "off")
		    wait(20 * US)
		    got = forger.flow.arrived()
		    reported = forger.report_one(300 * US)
		    free = forger.one().at - reported - 20 * US
		    # Wait until the delay of the destination, 50 ms, has expired.
		    wait(60 * MS)
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", "50us")
		    reported = forger.report_one(300 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    result(**{name + "_paused": paused, name + "_bytes": sum(p.size for p in got),
		              name + "_free": free,
		              name + "_again": abs(forger.flow.arrived()[0].at - reported - 250 * US)})
	END
	for kind in udp4 udp6 tcp4 tcp6; do
		expect ${kind}_paused -eq 1
		expect ${kind}_bytes -eq 5000 "still paused though On-Ramp is off"
		expect ${kind}_free -le 2000
		expect ${kind}_again -le 2000
	done
}

# Switching On-Ramp off, or to RTTs ("owd rtt"), loses no paused packet.
changes_lose_no_packets() {
	for after in "qdisc change dev eth0 root timely nopacing onramp off" \
		"qdisc change dev eth0 root timely owd rtt" ; do
		new_qdisc $pausing pause_max 100ms
		onramp <<-END
			forger = Forger(UdpFlow())
			forger.report_one(50 * MS)
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

# A new threshold applies from the next signal on.
threshold_changes() {
	new_qdisc $pausing
	onramp <<-'END'
		forger = Forger(UdpFlow())
		worst = 0
		for threshold in 50, 400, 1, 100:
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", "onramp", f"{threshold}us")
		    reported = forger.report_one(500 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    worst = max(worst, abs(forger.flow.arrived()[0].at - reported - (500 - threshold) * US))
		result(worst=worst)
	END
	expect worst -le 2000
}

# On-Ramp's sockets for OR-ACKs exist only while a qdisc uses OR-ACKs: not with "owd rtt". If another
# socket has the port, the change back to OR-ACKs is refused and changes no option.
sockets_follow_owd() {
	new_qdisc $pausing
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
		reported = forger.report_one(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(wrong=wrong, off=abs(forger.flow.arrived()[0].at - reported - 250 * US))
	END
	expect wrong -eq 0
	expect off -le 2000
}

# The RTT of TCP's handshake starts the minimum filter of the delay. So the first signal of a
# connection can already show a queue and cause a pause. For UDP the first signal starts the filter.
handshake_starts_the_minimum_filter() {
	new_qdisc $pausing owd relative
	onramp <<-'END'
		def pause_of(flow):
		    forger = Forger(flow)
		    reported = forger.report_one(300 * US)
		    forger.flow.send()
		    wait(1 * MS)
		    return forger.flow.arrived()[0].at - reported
		# A connection whose handshake was quick: in the guest a process may start a timer tick
		# late, which makes the handshake's RTT long.
		def quick():
		    for _ in range(30):
		        flow = TcpFlow()
		        info = flow.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 152)
		        if struct.unpack_from("=I", info, 148)[0] < 50:	# tcpi_min_rtt, us
		            return flow
		        flow.close()
		result(tcp=pause_of(quick()), udp=pause_of(UdpFlow(to="10.7.2.3")))
	END
	expect tcp -ge 190000
	expect tcp -le 260000
	expect udp -le 20000
}

# If another socket has the port, On-Ramp is refused, except with "owd rtt", and the qdisc stays.
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

# Two qdiscs of a namespace share the socket: after one qdisc is deleted, the other one still gets
# OR-ACKs.
two_qdiscs() {
	new_qdisc $pausing
	must ip -n h1 link add dummy0 type dummy
	must tc -n h1 qdisc replace dev dummy0 root $pausing
	must tc -n h1 qdisc del dev dummy0 root
	onramp <<-'END'
		forger = Forger(UdpFlow())
		reported = forger.report_one(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=abs(forger.flow.arrived()[0].at - reported - 250 * US))
	END
	expect off -le 2000
	must tc -n h1 qdisc replace dev dummy0 root $pausing
	must ip -n h1 link del dummy0
	onramp <<-'END'
		forger = Forger(UdpFlow())
		reported = forger.report_one(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=abs(forger.flow.arrived()[0].at - reported - 250 * US))
	END
	expect off -le 2000
}

# Below mq each transmit queue has a qdisc; an OR-ACK pauses its flow in the right one.
under_mq() {
	sleep 1.1
	must tc -n h1 qdisc replace dev eth0 root handle 1: mq
	for queue in 1 2 3 4; do
		must tc -n h1 qdisc replace dev eth0 parent 1:$queue $pausing
	done
	onramp <<-'END'
		flows = [Forger(UdpFlow(to=f"10.7.2.{2 + i % 4}", port=100 + i)) for i in range(16)]
		worst = 0
		for forger in flows:
		    reported = forger.report_one(300 * US)
		    forger.flow.send(2)
		    wait(1 * MS)
		    got = forger.flow.arrived()
		    worst = max(worst, abs(got[0].at - reported - 250 * US))
		    forger.reporter.close()
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

# While a flow is paused, TCP's limit for data in the qdisc (TSQ, TCP Small Queues) still applies, so
# few bytes wait and no long burst leaves at the end of the pause.
bytes_of_a_paused_flow_are_bounded() {
	new_qdisc timely onramp 50us owd absolute pause_max 30ms
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
		reported = forger.report(last, 11 * MS)
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
		say("backlog", most, "bytes; first ms", first, "first at", got[0].at - reported, "all", all_bytes)
		result(most=most, early=early, first=first, off=got[0].at - reported - 10950 * US)
		forger.close()
	END
	expect early -eq 0
	expect most -ge 1000
	# TSQ allows about a millisecond of the rate, here 125 KB, or two packets if these are more.
	expect most -le 400000
	expect first -le 260000 "a burst at the end of a pause"
	expect off -ge -500
	expect off -le 20000
}

# timely.orack_port chooses another UDP port.
another_port() {
	hosts_down
	unload_timely
	refused insmod "$modules/timely.ko" orack_port=0
	must insmod "$modules/timely.ko" orack_port=4711
	must insmod "$modules/sch_timely.ko"
	onramp_pair
	ctl h1 onramp unauthenticated on
	h1_qdisc $pausing
	onramp <<-'END'
		import onramp_wire
		onramp_wire.ORACK_PORT = 4711
		forger = Forger(UdpFlow())
		reported = forger.report_one(300 * US)
		forger.flow.send()
		wait(1 * MS)
		result(off=abs(forger.flow.arrived()[0].at - reported - 250 * US))
	END
	expect off -le 2000
}

unload() {
	hosts_down
	unload_timely
}

run_cases hosts refusals_have_messages options_not_given_stay relative_unless_owd_is_given \
	off_ends_pauses changes_lose_no_packets threshold_changes sockets_follow_owd \
	handshake_starts_the_minimum_filter port_in_use two_qdiscs under_mq \
	bytes_of_a_paused_flow_are_bounded another_port unload
