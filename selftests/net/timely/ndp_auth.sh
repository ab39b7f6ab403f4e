#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Authentication of NDP's packets by the keys of On-Ramp: net.ndp.authentication.
# Topology: h1 -- mid -- h2.

. "$(dirname "$0")/ndp_lib.sh"

ctl=$modules/timelyctl
# The directory of tc's plugin for trim
export TC_LIB_DIR="$modules"

# key HOST NUMBER DIGIT: a key of 32 equal hex digits
key() {
	printf '%032d\n' 0 | tr 0 "$3" | ip netns exec "$1" "$ctl" key add "$2" - >/dev/null 2>&1 || fail "no key $2"
}

uses() {
	must ip netns exec "$1" "$ctl" key use "$2"
}

# auth VALUE OF H1, VALUE OF H2
auth() {
	must ip netns exec h1 sysctl -qw net.ndp.authentication="$1"
	must ip netns exec h2 sysctl -qw net.ndp.authentication="$2"
}

# tries: h1 opens a connection to h2 and sends; sets $accepted, and the growth of h2's counters
tries() {
	ndp <<-'EOF'
		before = stat("h2")
		listener = listen()
		client = connect()
		client.send(b"hello")
		accepted = bool(wait(listener, seconds=0.05))
		now = stat("h2")
		result(accepted=accepted, **{name: now[name] - before[name] for name in ("untagged", "bad_tag", "unknown")})
	EOF
}

hosts() {
	must insmod "$modules/sch_trim.ko"
	ndp_hosts
	for host in h1 h2; do
		key $host 1 1
		uses $host 1
	done
}

# One host signs already, the other one not yet. A packet that is too short for an answer with a tag gets one
# without: the COOKIE for a few bytes of data, and for no data, and the RESET where nobody listens.
one_host_signs() {
	auth 0 1
	must ip -n h1 address add 10.7.1.9/24 dev eth0
	must ip -n h1 address add 10.7.1.10/24 dev eth0
	ndp <<-'EOF'
		listener = listen()
		def opens(address, text, port=PORT):
		    client = ndp_socket("h1")
		    client.bind((address, 0))
		    client.connect((V4, port))
		    if text:
		        client.send(text)
		    else:
		        wait(client, seconds=0)
		    return client
		before = stat("h2")["challenged"]
		clients = [opens("10.7.1.9", b"hello")]
		result(data=bool(wait(listener, seconds=0.05)))
		accept(listener)
		clients.append(opens("10.7.1.10", b""))
		result(nothing=bool(wait(listener, seconds=0.05)), challenged=stat("h2")["challenged"] - before)
		nobody = opens("10.7.1.9", b"", PORT + 1)
		result(refused=wait(nobody, seconds=0.05) & select.POLLERR and error(nobody.recv, 1) == errno.ECONNREFUSED)
	EOF
	must ip -n h1 address del 10.7.1.9/24 dev eth0
	must ip -n h1 address del 10.7.1.10/24 dev eth0
	expect data -eq 1
	expect nothing -eq 1
	expect challenged -ge 2
	expect refused -eq 1
}

carries_streams() {
	auth 2 2
	for addr in V4 V6 MAPPED; do
		ndp <<-EOF
			same, us, infos = both_ways($addr)
			result(same=same, lost=sum(i["lost"] for i in infos),
			       refused=sum(stat(ns)[name] for ns in ("h1", "h2") for name in ("untagged", "bad_tag", "malformed")))
		EOF
		expect same -eq 1
		expect lost -eq 0
		expect refused -eq 0
	done
}

# Packets that a switch trims or returns keep their tags.
trimmed_and_returned() {
	must tc -n mid qdisc replace dev to1 root netem limit 10000 delay 10us
	must tc -n mid qdisc replace dev to2 root handle 1: tbf rate 10gbit burst 1600 limit 10000000
	must tc -n mid qdisc replace dev to2 parent 1:1 trim header_limit 500 return
	ndp <<-'EOF'
		listener = listen()
		pairs = [pair(listener=listener) for _ in range(9)]
		same, _ = move([Flow(c, s, data(40000), end=False) for c, s in pairs])
		result(same=same, trimmed=sum(info(s)["trimmed"] for _, s in pairs),
		       returned=sum(info(c)["returned"] for c, _ in pairs),
		       refused=sum(stat(ns)[name] for ns in ("h1", "h2") for name in ("untagged", "bad_tag")))
	EOF
	wire_to_h2 "$ndp_wire"
	expect same -eq 1
	expect trimmed -ge 1
	expect returned -ge 1
	expect refused -eq 0
}

# A host without tags, with another key of the same number, or with a key that the peer does not have.
refuses() {
	auth 0 2
	tries
	expect accepted -eq 0
	expect untagged -ge 1
	key h1 2 2
	key h2 2 3
	key h1 3 4
	auth 2 2
	for number in 2 3; do
		uses h1 $number
		tries
		expect accepted -eq 0
		expect bad_tag -ge 1
		expect untagged -eq 0
	done
	# A wrong tag is wrong also where tags are not required.
	auth 2 0
	tries
	expect accepted -eq 0
	expect bad_tag -ge 1
	uses h1 1
	auth 2 2
	tries
	expect accepted -eq 1
	# The refused connections repeat their packets, and a RESET answers these now.
	within_seconds 2 ndp_idle || fail "connections are left: $memory bytes"
}

# Without tags nobody ends a connection, though the number of the connection is right.
reset_without_tag() {
	ndp <<-'EOF'
		client, server = pair()
		sysctl("h1", "authentication", 0)
		client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		client.close()
		time.sleep(0.01)
		result(alive=info(server)["state"] == ESTABLISHED)
		sysctl("h1", "authentication", 2)
		# The answer to the server's data is a RESET with a tag.
		server.send(b"x")
		result(reset=wait(server) & select.POLLERR and error(server.recv, 1) == errno.ECONNRESET)
	EOF
	expect alive -eq 1
	expect reset -eq 1
}

# Authentication begins, and keys are replaced, while data flows.
rotation() {
	auth 0 0
	for host in h1 h2; do
		key $host 4 5
	done
	ndp <<-EOF
		def wrong_tags():
		    return sum(stat(ns)["bad_tag"] for ns in ("h1", "h2"))
		client, server = pair()
		flow, before = Flow(client, server, data(20000000)), wrong_tags()
		def step(*words):
		    for host in "h1", "h2":
		        with inside(host):
		            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
		    move([flow], 0.001)
		for value in "1", "2":
		    step("sysctl", "-qw", "net.ndp.authentication=" + value)
		step("$ctl", "key", "use", "4")
		step("$ctl", "key", "del", "1")
		running = not flow.done
		same, _ = move([flow])
		result(running=running, same=same, bad=wrong_tags() - before)
	EOF
	expect running -eq 1
	expect same -eq 1
	expect bad -eq 0 "packets with a wrong tag"
	# A connection whose end is still on its way when the hosts are deleted would remain for half a minute.
	within_seconds 1 ndp_idle || fail "connections are left: $memory bytes"
}

run_cases hosts one_host_signs carries_streams trimmed_and_returned refuses reset_without_tag rotation
