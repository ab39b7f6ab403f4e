#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What "timelyctl ndp" shows: sockets, paths, pull queues and counters of a network namespace.
# Topology: h1 -- mid -- h2; mid routes, the links have 10 Gb/s.

. "$(dirname "$0")/ndp_lib.sh"

need_tools setpriv
ctl=$modules/timelyctl

# As ndp() of ndp_lib.sh. The Python lines can also use
#	show(NAMESPACE, WORD...)	the JSON output of timelyctl ndp
#	conn(NAMESPACE, SOCKET)		the entry of this socket
shows() {
	{
		cat <<-EOF
			import json
			ctl = "$ctl"
			as_nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all".split()
			def show(ns, *words, user=[]):
			    with inside(ns):
			        return json.loads(subprocess.check_output([*user, ctl, "-j", "ndp", *words]))
			def conn(ns, sock):
			    found = [s for s in show(ns)["sockets"] if s["from_port"] == sock.getsockname()[1] and "to" in s]
			    assert len(found) == 1, found
			    return found[0]
		EOF
		cat
	} >"$work/lines"
	ndp <"$work/lines"
}

hosts() {
	must insmod "$modules/timely.ko"
	refused "$ctl" ndp
	grep -q "module ndp is not loaded: modprobe ndp" "$work/refused" ||
		fail "another error: $(tail -n 1 "$work/refused")"
	must insmod "$modules/ndp.ko"
	hosts_up "$ndp_wire" "$ndp_wire"
	shows <<-'EOF'
		got = show("h1")
		result(empty=got["sockets"] == [] and got["queues"] == [] and not any(got["counters"].values()))
	EOF
	expect empty -eq 1
}

# Both ends of a connection: addresses, states, and the counters of NDP_INFO.
connections() {
	for addr in V4 V6 MAPPED; do
		shows <<-EOF
			listener = listen(address="" if $addr == V4 else "::")
			client, server = pair($addr, listener)
			flow = Flow(client, server, data(1000000), end=False)
			same, _ = move([flow])
			time.sleep(0.01)
			c, s = conn("h1", client), conn("h2", server)
			wanted = $addr.replace("::ffff:", "")
			l = [s for s in show("h2")["sockets"] if s["state"] == "LISTEN"]
			result(same=same, names=c["to"] == s["from"] == wanted and c["from"] == s["to"] and
			             c["to_port"] == PORT == s["from_port"] and s["to_port"] == c["from_port"],
			       listener=len(l) == 1 and (l[0]["from_port"], l[0]["waiting"], l[0]["backlog"]) == (PORT, 0, 1000),
			       state=c["state"] == s["state"] == "ESTAB" and c["initiator"] and not s["initiator"],
			       counters=all(end[key] == value for end, sock in ((c, client), (s, server))
			                    for key, value in info(sock).items() if key not in ("state", "flags")),
			       arrived=c["sent"] >= s["received"] >= 700 and not c["lost"] and c["answered"] and not c["graceful"],
			       inodes=c["inode"] == os.fstat(client.fileno()).st_ino and
			              s["inode"] == os.fstat(server.fileno()).st_ino,
			       paths=len(c["paths"]), left_out=sum(p["left_out_ns"] for p in c["paths"]),
			       ports=[p["udp_port"] for p in c["paths"]] == list(range(20307, 20323)))
			queues = show("h2")["queues"]
			result(queues=len(queues) == 1 and queues[0]["ifname"] == "eth0" and queues[0]["waiting"] == 0 and
			              queues[0]["pulls"] >= s["pulls"] >= 600 and queues[0]["link_kbps"] == s["pull_kbps"] and
			              queues[0]["ifindex"] == s["ifindex"])
		EOF
		for what in same names listener state counters arrived inodes ports queues; do
			expect $what -eq 1
		done
		expect paths -eq 16
		expect left_out -eq 0
	done
}

# In the middle of a transfer the peer pulls at the rate of the link.
rate_of_pulls() {
	shows <<-'EOF'
		client, server = pair()
		flow = Flow(client, server, data(6000000), end=False)
		move([flow], 0.003)
		c, s = conn("h1", client), conn("h2", server)
		result(unacked=c["unacked"], mbps=c["pulled_bps"] / 1e6, wanted=s["pulls_wanted"],
		       waiting=sum(q["waiting"] for q in show("h2")["queues"]), same=move([flow])[0])
	EOF
	expect unacked -ge 1
	expect mbps -ge 8500 "the link has 10 Gb/s"
	expect mbps -le 10500
	expect wanted -ge 1
	expect waiting -eq 1
	expect same -eq 1
}

# Any user sees the sockets of the network namespace, and no other's. Words choose some.
users_and_words() {
	shows <<-'EOF'
		listener = listen()
		pairs = [pair(listener=listener) for _ in range(5)]
		client = pairs[2][0]
		port = str(client.getsockname()[1])
		ports = lambda *words: len(show("h1", *words)["sockets"])
		mine = show("h1", user=as_nobody)["sockets"]
		result(all=ports(), nobody=len(mine), uid=sum(s["uid"] for s in mine), other=len(show("mid")["sockets"]),
		       port=ports("port", port), to=ports("to", "10.7.2.0/24"), elsewhere=ports("to", "10.8.0.0/16"),
		       source=ports("from", "10.7.1.2"), limit=ports("limit", "2"))
		counters = show("h1", user=as_nobody)["counters"]
		result(counters=counters == {k: v for k, v in stat("h1").items()
		                                     if k not in ("memory", "max_memory")},
		       memory=show("h1")["memory"] == stat("h1")["memory"] > 0)
		# What would let somebody forge packets is not shown.
		result(secret=any(key in mine[0] for key in ("conn", "cookie", "seq")))
	EOF
	for what in all nobody to source; do
		expect $what -eq 5
	done
	for what in other elsewhere uid secret; do
		expect $what -eq 0
	done
	expect port -eq 1
	expect limit -eq 2
	expect counters -eq 1
	expect memory -eq 1
}

# The words paths and counters, and the table of sockets, for people.
text() {
	shows <<-EOF
		listener = listen()
		client, server = pair(listener=listener)
		def text(*words):
		    with inside("h1"):
		        return subprocess.check_output(["$ctl", "ndp", *words], text=True).splitlines()
		port = client.getsockname()[1]
		lines, paths, counters = text(), text("paths"), text("counters")
		result(headings=lines[0].split()[:3] == ["from", "to", "state"],
		       line=lines[1].split()[:3] == [f"10.7.1.2:{port}", f"{V4}:{PORT}", "ESTAB"],
		       paths=len(paths) == 17 and paths[1].split()[2] == "20307" and paths[1].split()[-1] == "-",
		       counters=any(line.split()[0] == "opened" and line.endswith("connections that this host opened")
		                    for line in counters))
	EOF
	for what in headings line paths counters; do
		expect $what -eq 1
	done
}

# A path that loses all packets is left out, and the scoreboard says so.
path_left_out() {
	must tc -n mid -batch - <<-EOF
		qdisc replace dev to2 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
		qdisc add dev to2 parent 1:1 netem loss 100%
		qdisc add dev to2 parent 1:2 netem limit 10000 $ndp_wire
		filter add dev to2 parent 1: protocol ip u32 match ip sport 20310 0xffff flowid 1:1
	EOF
	shows <<-'EOF'
		client, server = pair()
		same, _ = move([Flow(client, server, data(3000000), end=False)], 20)
		c = conn("h1", client)
		out = [p["udp_port"] for p in c["paths"] if p["left_out_ns"]]
		bad = c["paths"][3]
		result(same=same, out=out == [20310], strikes=bad["strikes"],
		       losses=c["lost"], other=sum(p["losses"] for p in c["paths"] if p is not bad))
	EOF
	wire_to_h2 "$ndp_wire"
	expect same -eq 1
	expect out -eq 1
	expect strikes -ge 1
	expect losses -ge 1
	expect other -eq 0
}

# Dumps of many sockets have each socket once, and dumps while sockets come and go end.
many() {
	shows <<-'EOF'
		import resource
		resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
		listener = listen()
		clients = [connect() for _ in range(1500)]
		for client in clients:
		    client.send(b"x")
		want = sorted(c.getsockname()[1] for c in clients)
		got = sorted(s["from_port"] for s in show("h1")["sockets"])
		result(once=got == want, accepted=len(show("h2")["sockets"]))
		with inside("h1"):
		    dumps = subprocess.Popen(["sh", "-c", f"for i in $(seq 20); do {ctl} -j ndp >/dev/null || exit 1; done"])
		turns = 0
		while dumps.poll() is None:
		    for i in range(turns % 50, 1500, 50):
		        clients[i].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		        clients[i].close()
		        clients[i] = connect()
		        clients[i].send(b"x")
		    turns += 1
		    time.sleep(0.0001)
		result(status=dumps.returncode, turns=turns)
		# The dump holds no socket.
		for client in clients:
		    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		    client.close()
	EOF
	expect once -eq 1
	expect accepted -ge 1000 "the listener accepts 1000"
	expect status -eq 0
	expect turns -ge 1
	within_seconds 2 ndp_idle || fail "memory is not given back: $memory bytes"
}

run_cases hosts connections rate_of_pulls users_and_words text path_left_out many
