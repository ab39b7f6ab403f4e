#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's sender and its host: options that only the host's administrator may switch on, effects
# on other namespaces, and effects of the host's settings and sockets. Topology: h1 -- h2, a veth
# pair.

. "$(dirname "$0")/onramp_lib.sh"

need_tools unshare setpriv ethtool

plugin=/dev/shm/timely-tc
rtt="onramp 50us owd rtt"

hosts() {
	onramp_pair
	load_onramp
	without_keys
	must mkdir -p $plugin
	must cp "$modules/q_timely.so" $plugin
	must chmod 755 $plugin $plugin/q_timely.so
}

# tenant COMMAND: run by an unprivileged user in its own user and network namespaces
tenant() {
	TC_LIB_DIR=$plugin setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all \
		unshare -Urn sh -c "$1"
}

tenants() { echo "$1" >/sys/module/timely/parameters/tenants; }

# ---- options that cost the host ----

rtt_needs_the_host() {
	tenants 0
	refused tenant "tc qdisc add dev lo root timely $rtt"
	for words in "ask its administrator" "tenants=1" "owd relative"; do
		grep -q "$words" "$work/refused" || {
			say_lines <"$work/refused"
			fail "the refusal does not say what to do"
		}
	done
	# Also refused as a change from another kind of delay, and in a user namespace of root.
	refused tenant "tc qdisc add dev lo root timely onramp 50us owd relative &&
		tc qdisc change dev lo root timely owd rtt"
	grep -q "tenants=1" "$work/refused" || fail "refused for another reason"
	refused unshare -Urn tc qdisc add dev lo root timely $rtt
	# Options that affect only the tenant are accepted.
	must tenant "tc qdisc add dev lo root timely onramp 50us owd relative"
	must tenant "tc qdisc add dev lo root timely"
	# The host's root may use the option in every network namespace.
	must ip netns exec h1 tc qdisc replace dev eth0 root timely $rtt
	must ip netns exec h1 tc qdisc del dev eth0 root
}

tenants_may_with_the_parameter() {
	tenants 1
	must tenant "tc qdisc add dev lo root timely $rtt"
	tenants 0
	refused tenant "tc qdisc add dev lo root timely $rtt"
}

# timely as the default qdisc does not switch On-Ramp on.
default_qdisc_has_no_onramp() {
	read -r before </proc/sys/net/core/default_qdisc
	echo timely >/proc/sys/net/core/default_qdisc
	must tenant "ip link add name dum0 type dummy && ip link set dum0 up &&
		tc qdisc show dev dum0"
	must tenant "ip link add name dum0 numtxqueues 2 type dummy &&
		ip link set dum0 up && ! tc qdisc show dev dum0 | grep onramp"
	echo "$before" >/proc/sys/net/core/default_qdisc
}

# Data in both directions; only h1 uses "owd rtt".
others_are_not_looked_up() {
	h1_qdisc "timely $rtt"
	must tc -n h2 qdisc replace dev eth0 root timely
	onramp <<-'END'
		flow = TcpFlow()
		before = counters("h1"), counters("h2")
		for _ in range(50):
		    flow.send(1, 6000)
		    flow.receiver.send(bytes(4000))
		    wait(200 * US)
		    flow.sender.recv(1 << 16)
		    flow.receiver.recv(1 << 16)
		mine, others = grown(before[0], counters("h1")), grown(before[1], counters("h2"))
		say("h1", mine, "h2", others)
		result(mine=mine.get("rtt_lookups", 0), counted=mine.get("rtts", 0),
		       others=others.get("rtt_lookups", 0))
		flow.close()
	END
	expect mine -ge 50
	expect counted -ge 50
	expect others -eq 0 "ACKs of another namespace are looked up"
	must tc -n h2 qdisc del dev eth0 root
}

# No change waits for an RCU grace period while it holds RTNL. Nothing else in a change takes
# virtual time.
loop_waits_for_nothing() {
	h1_qdisc timely onramp 50us owd relative
	onramp <<-'END'
		def took(*words):
		    began = time.monotonic_ns()
		    tc(*words)
		    return time.monotonic_ns() - began
		change = "qdisc", "change", "dev", "eth0", "root", "timely", "owd"
		plain = max(took(*change, "relative") for _ in range(10))
		result(worst=max(max(took(*change, kind) for kind in ("rtt", "relative"))
		                 for _ in range(30)) - plain)
	END
	expect worst -le 100000 "a change waits under RTNL, ns"
}

# RTTs are measured again after "owd rtt" was off for longer than the tracepoint's probe stays.
rtt_comes_back() {
	for _ in 1 2; do
		h1_qdisc "timely $rtt"
		onramp <<-'END'
			flow = TcpFlow()
			before = counters()
			for _ in range(10):
			    flow.send(1, 6000)
			    wait(200 * US)
			result(counted=grown(before, counters()).get("rtts", 0))
			flow.close()
		END
		expect counted -ge 9
		h1_qdisc pfifo
		sleep 6
	done
}

# ---- the UDP port ----

# If another socket has the port, On-Ramp is refused; the message and the log name the port.
port_in_use() {
	h1_qdisc pfifo
	onramp <<-'END'
		count = 0
		for name, address in (("any", "0.0.0.0"), ("one", H1), ("six", "::"), ("six_one", "fd07:2::1")):
		    with inside("h1"):
		        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET,
		                             socket.SOCK_DGRAM)
		    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		    sock.setsockopt(socket.SOL_SOCKET, 15, 1)	# SO_REUSEPORT
		    sock.bind((address, ORACK_PORT))
		    with inside("h1"):
		        done = subprocess.run(["tc", "qdisc", "replace", "dev", "eth0", "root", "timely",
		                               "onramp", "50us"], capture_output=True, text=True)
		    say(name, done.returncode, done.stderr.strip())
		    # On kernels that cannot format messages (6.1) the parameter is named instead.
		    named = "port 20306" in done.stderr or "port timely.orack_port" in done.stderr
		    count += done.returncode != 0 and named and "ss -ulpn" in done.stderr
		    sock.close()
		result(refused=count)
	END
	expect refused -eq 4
	klog | grep -q "UDP port 20306.*ss -ulpn" || fail "the log does not name the port"
	h1_qdisc timely onramp 50us
}

# The message of tc names the port, but a tenant writes nothing to the host's log.
port_in_use_of_a_tenant() {
	lines=$(klog | grep -c "On-Ramp refused")
	cat >$plugin/in_use.py <<-'END'
		import socket, subprocess, sys
		sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		sock.bind(("", 20306))
		sys.exit(subprocess.run("tc qdisc add dev lo root timely onramp 50us".split()).returncode)
	END
	chmod 644 $plugin/in_use.py
	refused tenant "python3 $plugin/in_use.py"
	grep -q "ss -ulpn" "$work/refused" || {
		say_lines <"$work/refused"
		fail "refused for another reason"
	}
	after=$(klog | grep -c "On-Ramp refused")
	expect after -eq "$lines" "a tenant writes to the host's log"
}

# No socket can bind to the port while On-Ramp listens, by any address, device or option.
port_is_kept() {
	h1_qdisc timely onramp 50us
	onramp <<-'END'
		taken = 0
		for address in "0.0.0.0", H1, "127.0.0.1", "::", "fd07:2::1", "::1":
		    for device in b"", b"eth0", b"lo":
		        with inside("h1"):
		            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET,
		                                 socket.SOCK_DGRAM)
		        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		        sock.setsockopt(socket.SOL_SOCKET, 15, 1)
		        if device:
		            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
		        try:
		            sock.bind((address, ORACK_PORT))
		            taken += 1
		            say("taken:", address, device)
		        except OSError:
		            pass
		        sock.close()
		result(taken=taken)
	END
	expect taken -eq 0
}

# ---- the host's settings ----

# The first OR-ACK sets the NAPI ID of On-Ramp's socket. A packet by another device must not
# busy-poll this NAPI. A busy poll has a budget of 8 packets, other polls of 64.
busy_read_polls_nothing() {
	tracing_up
	read -r before </proc/sys/net/core/busy_read
	echo 50 >/proc/sys/net/core/busy_read
	must ip netns exec h1 ethtool -K eth0 gro on
	h1_qdisc pfifo
	h1_qdisc timely onramp 50us
	echo >$tracing/trace
	echo 1 >$tracing/events/napi/napi_poll/enable
	onramp <<-'END'
		before = counters()
		for _ in range(5):
		    Reporter("h2", H2).send(b"junk")
		    wait(1 * MS)
		    Reporter("h1", "127.0.0.1", 0, "127.0.0.1").send(b"junk")
		    wait(1 * MS)
		result(received=grown(before, counters()).get("received", 0))
	END
	echo 0 >$tracing/events/napi/napi_poll/enable
	echo "$before" >/proc/sys/net/core/busy_read
	expect received -eq 10
	polls=$(grep -c "napi poll on" $tracing/trace || :)
	nested=$(grep -c "budget 8$" $tracing/trace || :)
	say "$polls polls, $nested of them busy"
	expect polls -ge 5
	expect nested -eq 0 "a NAPI instance is polled within another poll"
}

unload() {
	rm -rf $plugin
	hosts_down
	unload_timely
}

run_cases hosts rtt_needs_the_host tenants_may_with_the_parameter default_qdisc_has_no_onramp \
	others_are_not_looked_up loop_waits_for_nothing rtt_comes_back port_in_use port_in_use_of_a_tenant \
	port_is_kept busy_read_polls_nothing unload
