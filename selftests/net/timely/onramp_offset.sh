#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Offsets of peers' clocks that a clock daemon sets over netlink: absolute delays use them, with their
# error added to the threshold, and delays are relative while no valid offset is known.
# Topology: h1 -- h2, a veth pair; the clock of h2, as OR-ACKs report it, is 5 s ahead.

. "$(dirname "$0")/onramp_lib.sh"

pausing="timely $exact flow_limit 1000 onramp 50us owd absolute nopacing"

cat >"$work/offset.py" <<-'END'
	import socket
	from timelyctl_genl import Family, attr
	AHEAD = 5 * S
	PEER_SET, PEER = 16, 56

	def peer(to, offset=AHEAD, valid_ms=1000, age=0, drift=0, bound=0, growth=0, family=None,
	         reserved=0, flows=0, delay=0):
	    """struct timely_peer_clock: the clock is OFFSET ns ahead, measured AGE ns ago."""
	    address = packed(to)
	    if family is None:
	        family = socket.AF_INET6 if len(address) == 16 else socket.AF_INET
	    return struct.pack("=16sHHIqQiIIIQ", address, family, reserved, valid_ms, OFFSET + offset,
	                       time.monotonic_ns() - age, drift, bound, growth, flows, delay)

	with inside("h1"):
	    daemon = Family()

	def put(*args, **over):
	    """Set the offset of a peer's clock: the errno and the kernel's message."""
	    return daemon.ask(PEER_SET, attr(PEER, peer(*args, **over)))[:2]

	def ahead(packet, delay):
	    return packet.at + delay + OFFSET + AHEAD

	def pause(forger, delay):
	    """Report DELAY ns by the clock that is ahead: how long the flow is paused, ns."""
	    packet = forger.one()
	    reported = forger.report(packet, delay, received=ahead(packet, delay))
	    forger.flow.send()
	    wait(2 * MS)
	    return forger.flow.arrived()[0].at - reported

	def near(value, expected):
	    say(value, "ns, expected", expected)
	    return abs(value - expected) < EXACT
END

# Run the Python lines on standard input, with the functions above.
offset() {
	{
		cat "$work/offset.py"
		cat
	} >"$work/offset.plan"
	onramp <"$work/offset.plan"
}

hosts() {
	onramp_pair
	load_onramp
	without_keys
	new_qdisc $pausing
}

# Without an offset, the times of a clock that is 5 s ahead are impossible. With the offset, a delay of
# 400 us pauses the flow for 400 us less the threshold of 50 us and the error of the offset.
absolute_delays_use_the_offset() {
	offset <<-'END'
		for to in H2, "fd07:2::2":
		    forger = Forger(UdpFlow(to=to))
		    before = counters()
		    result(unknown=pause(forger, 400 * US) < EXACT)
		    result(bad_time=grown(before, counters()).get("bad_time", 0))
		    result(error=put(to)[0])
		    before = counters()
		    result(whole=near(pause(forger, 400 * US), 350 * US))
		    result(error2=put(to, bound=20 * US)[0])
		    result(less=near(pause(forger, 400 * US), 330 * US))
		    # 10 ms ago the clock was 100 ns less ahead, and the error 40 us less.
		    result(error3=put(to, offset=AHEAD - 100 * US, age=100 * MS, drift=1000000, bound=0,
		                      growth=400000)[0])
		    result(grown=near(pause(forger, 400 * US), 310 * US))
		    result(others=len(grown(before, counters()).keys() & {"bad_time", "no_offset", "out_of_step"}))
		    forger.close()
	END
	expect unknown -eq 1 "no pause while the offset is not known"
	expect bad_time -eq 1
	expect error -eq 0
	expect whole -eq 1 "the pause with an exact offset"
	expect error2 -eq 0
	expect less -eq 1 "the pause with an error of 20 us"
	expect error3 -eq 0
	expect grown -eq 1 "the pause with an offset that grows"
	expect others -eq 0
}

# An offset that is set before the first flow counts from the flow's first report on. A peer without
# flows is forgotten a minute after the last offset.
before_the_first_flow() {
	offset <<-'END'
		def known():
		    return sum(p["to"] == "fd07:2::3" for p in json.loads(ctl("h1", "-j", "onramp", "peers")))
		result(none=known(), error=put("fd07:2::3", valid_ms=100000)[0], one=known())
		wait(50 * S)
		put("fd07:2::3", valid_ms=100000)
		wait(50 * S)
		result(still=known())
		forger = Forger(UdpFlow(to="fd07:2::3"))
		before = counters()
		result(first=near(pause(forger, 400 * US), 350 * US))
		result(bad_time=grown(before, counters()).get("bad_time", 0))
		forger.close()
		put("10.7.2.8")
		wait(80 * S)
		result(forgotten=not any(p["to"] == "10.7.2.8"
		                         for p in json.loads(ctl("h1", "-j", "onramp", "peers"))))
	END
	expect none -eq 0
	expect error -eq 0
	expect one -eq 1 "the offset has created the peer"
	expect still -eq 1 "the second offset has kept the peer"
	expect first -eq 1 "the pause by the first report"
	expect bad_time -eq 0
	expect forgotten -eq 1
}

# Delays are relative while the offset is too old, or its error above the threshold: a delay of
# 400 us is 300 us above the minimum. When the daemon withdraws the offset, clocks count as
# synchronised again, and the times are impossible.
fallback() {
	new_qdisc $pausing
	offset <<-'END'
		forger = Forger(UdpFlow(to="10.7.2.3"))
		forger.one()
		result(error=put("10.7.2.3")[0])
		for _ in range(5):
		    packet = forger.one()
		    forger.report(packet, 100 * US, received=ahead(packet, 100 * US))
		    wait(1 * MS)
		before = counters()
		put("10.7.2.3", bound=51 * US)
		result(wide=near(pause(forger, 400 * US), 250 * US))
		result(no_offset=grown(before, counters()).get("no_offset", 0))
		put("10.7.2.3", valid_ms=5)
		wait(6 * MS)
		result(old=near(pause(forger, 400 * US), 250 * US))
		result(no_offset2=grown(before, counters()).get("no_offset", 0))
		put("10.7.2.3", bound=50 * US)
		result(again=near(pause(forger, 400 * US), 300 * US))
		before = counters()
		put("10.7.2.3", valid_ms=0)
		result(withdrawn=pause(forger, 400 * US) < EXACT)
		result(bad_time=grown(before, counters()).get("bad_time", 0))
		forger.close()
	END
	expect error -eq 0
	expect wide -eq 1 "the pause with an error above the threshold"
	expect no_offset -eq 1
	expect old -eq 1 "the pause with an old offset"
	expect no_offset2 -eq 2
	expect again -eq 1 "the pause with the largest usable error"
	expect withdrawn -eq 1
	expect bad_time -eq 1
}

# A wrong offset, such as that of a daemon that has not noticed a step of 300 us: after 16 delays, each of
# which pauses for less than a millisecond, delays are limited by the RTT.
wrong_offset() {
	new_qdisc $pausing
	offset <<-'END'
		forger = Forger(UdpFlow(to="10.7.2.4"))
		forger.one()
		put("10.7.2.4", offset=AHEAD - 300 * US)
		started, paused = time.monotonic_ns(), flow_of(forger.flow)["paused_ns"]
		while time.monotonic_ns() < started + 100 * MS:
		    forger.flow.send()
		    wait(1 * MS)
		    for packet in forger.flow.arrived()[-1:]:
		        forger.reporter.send(forger.wire(packet, 0, received=ahead(packet, 0)))
		say(flow_of(forger.flow)["paused_ns"] - paused, "ns paused;", counters())
		result(paused_us=(flow_of(forger.flow)["paused_ns"] - paused) // US)
		result(out_of_step=counters()["out_of_step"])
		forger.close()
	END
	expect paused_us -le 16000
	expect out_of_step -ge 10
}

# The peer's clock is stepped by 10 us to an hour, up and down, and the daemon has not noticed or has been
# killed. No pause is longer than 10 ms.
stepped_clock() {
	new_qdisc $pausing
	offset <<-'END'
		forger = Forger(UdpFlow(to="10.7.2.5"))
		forger.one()
		longest = pauses = 0
		for step in 10 * US, 100 * US, 1 * MS, 5 * MS, 20 * MS, 1000 * MS, 3600 * S:
		    for sign in 1, -1:
		        put("10.7.2.5", offset=AHEAD - sign * step)
		        packet = forger.one()
		        # The RTT is 3 ms: a delay up to that is possible.
		        wait(3 * MS)
		        reported = forger.report(packet, 0, received=ahead(packet, 100 * US))
		        forger.flow.send()
		        wait(30 * MS)
		        took = forger.flow.arrived()[-1].at - reported
		        say("a step of", sign * step, "ns:", took, "ns")
		        pauses += took > EXACT
		        longest = max(longest, took)
		result(longest_us=longest // US, pauses=pauses)
		# The next case begins without an offset.
		put("10.7.2.5", valid_ms=0)
		forger.close()
	END
	expect longest_us -le 10000
	expect pauses -ge 1 "no step has caused a pause: the case shows nothing"
}

shown() {
	new_qdisc $pausing
	offset <<-'END'
		forger = Forger(UdpFlow(to="10.7.2.5"))
		forger.one()
		def of(to):
		    return [p for p in json.loads(ctl("h1", "-j", "onramp", "peers")) if p["to"] == to]
		result(count=len(of("10.7.2.5")), unknown=of("10.7.2.5")[0]["clock"] is None)
		put("10.7.2.5", drift=-1000, bound=700)
		(shown,) = of("10.7.2.5")
		say(shown)
		clock = shown["clock"]
		result(flows=shown["flows"], drift=clock["drift_ppb"], bound=clock["bound_ns"], valid=clock["valid"])
		result(near=abs(clock["offset_ns"] - AHEAD) < MS)
		wait(1100 * MS)
		result(still=of("10.7.2.5")[0]["clock"]["valid"])
		forger.close()
		result(elsewhere=len(json.loads(ctl("h2", "-j", "onramp", "peers"))))
	END
	expect count -eq 1
	expect unknown -eq 1
	expect flows -eq 1
	expect drift -eq -1000
	expect bound -eq 700
	expect valid -eq 1
	expect near -eq 1
	expect still -eq 0
	expect elsewhere -eq 0
}

refusals() {
	offset <<-'END'
		import errno
		forger = Forger(UdpFlow(to="10.7.2.3"))
		forger.one()
		ok = "10.7.2.3"
		cases = [
		    ("10.7.2.99", {"valid_ms": 0}, errno.ENOENT, "no peer with this address"),
		    (ok, {"family": 0}, errno.EINVAL, "AF_INET and AF_INET6"),
		    ("fd07:2::2", {"family": socket.AF_INET}, errno.EINVAL, "has 4 bytes"),
		    (ok, {"valid_ms": 100001}, errno.EINVAL, "0 to 100000"),
		    (ok, {"age": -S}, errno.EINVAL, "past time"),
		    (ok, {"drift": 1000001}, errno.EINVAL, "drift_ppb"),
		    (ok, {"drift": -(1 << 31)}, errno.EINVAL, "drift_ppb"),
		    (ok, {"bound": 1000000001}, errno.EINVAL, "bound_ns"),
		    (ok, {"growth": 0xffffffff}, errno.EINVAL, "growth_ppb"),
		    (ok, {"reserved": 1}, errno.EINVAL, "must be 0"),
		    (ok, {"flows": 1}, errno.EINVAL, "must be 0"),
		    (ok, {"delay": 1}, errno.EINVAL, "must be 0"),
		]
		bad = 0
		for to, over, error, words in cases:
		    got = put(to, **over)
		    if got[0] != error or words not in got[1]:
		        say(to, over, got)
		        bad += 1
		bad += daemon.ask(PEER_SET)[0] != errno.EINVAL
		for wrong in b"", peer(ok) + b"1", peer(ok)[:-1]:
		    bad += daemon.ask(PEER_SET, attr(PEER, wrong))[0] not in (errno.EINVAL, errno.ERANGE)
		bad += put(ok, drift=1000000, bound=1000000000, growth=1000000, valid_ms=100000)[0] != 0
		bad += put(ok, drift=-1000000)[0] != 0
		result(bad=bad)
		forger.close()
	END
	expect bad -eq 0 "requests with another result than expected"
}

unload() {
	hosts_down
	unload_timely
}

run_cases hosts absolute_delays_use_the_offset before_the_first_flow fallback wrong_offset stepped_clock shown refusals unload
