#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What users see of connections: "timelyctl flows" and the netlink command behind it, and the answer
# of inet_diag that an unmodified ss shows.
# Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/ctl_lib.sh"

need_tools ss

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_qdisc fq
	load_timely preset=target_delay link_rate_kbps=1000000
}

without_the_module() {
	ctl 1 flows
	says 'module timely is not loaded: modprobe tcp_timely'
	hosts
	ctl 0 flows
	says 'no connection uses timely'
	ctl 0 -j flows
	json 'all == []'
}

wrong_words() {
	ctl 2 flows x
	says 'a value is missing after "x"'
	ctl 2 flows x y
	says 'unknown word "x"'
	ctl 2 flows port 65536
	says '1 to 65535'
	ctl 2 flows from 10.0.0.0/33
	says 'no PREFIX/LENGTH'
	ctl 2 flows to fd00::/129
	says 'no PREFIX/LENGTH'
	ctl 2 flows sort age
	says 'delay, rate, cuts, pauses'
	ctl 2 flows limit 0
	ctl 2 flows cgroup /proc/version
	says 'no directory of a control group'
}

# Each member of a description, compared with what TCP itself knows.
one_connection() {
	look() {
		where=$in_h1
		ctl 0 -j flows
		json 'len(all) == 1 and n["from"] == "10.7.1.2" and n["to"] == "'$h2_v4'"'
		json 'n["control"] == "timely" and n["rtt_by"] == "driver"'
		json '20000 <= n["base_rtt_ns"] < 200000 and 20000 <= n["rtt_ns"] < 10**7'
		json 'n["queue_ns"] == max(0, n["rtt_ns"] - n["base_rtt_ns"])'
		json '0 < n["rtt_age_ns"] < 10**9 and n["target_ns"] > 0 and n["t_high_ns"] > 0'
		json '0 < n["pacing_bps"] <= n["rate_bps"] < 1.1e9'
		json 'n["states"] == ["other-qdisc"]'
		json 'sum(n["cuts"].values()) == n["cuts"]["queue"] and sum(n["rejected"].values()) == 0'
		json 'n["pauses"] == 0 and n["net_cookie"] > 0'
		# ss divides the window by the RTT that the congestion control reports.
		$in_h1 ss -tni dst $h2_v4 >"$work/ss"
		"$python" -I - "$work/out" "$work/ss" <<-'EOF' || fail "ss: $(cat "$work/ss")"
			import json, re, sys
			text = open(sys.argv[2]).read()
			assert " timely " in text, text
			cwnd, mss, send = (int(re.search(rf"[ :]{key}[: ](\d+)", text)[1])
			                   for key in ("cwnd", "mss", "send"))
			rtt_us = json.load(open(sys.argv[1]))[0]["rtt_ns"] // 1000
			assert abs(send - cwnd * mss * 8e6 / rtt_us) < 9, (send, cwnd, mss, rtt_us)
		EOF
		ctl 0 flows
		says '^10.7.1.2:[0-9]* *10.7.2.2:[0-9]* '
		where=$in_h2
		ctl 0 -j flows
		json 'all == []'
	}
	with_connections <<-EOF
		client, server = connect("$h2_v4")
		send(client, server, 400000)
		time.sleep(.05)
		look()
	EOF
}

# chosen PREFIX/LENGTH PORT COUNT: the module lists this many connections in h1
chosen() {
	count=$($in_h1 "$python" -I "$here/timelyctl_genl.py" chosen "$1" "$2") || fail "the request failed"
	expect count -eq "$3"
}

filters() {
	look() {
		where=$in_h1
		ctl 0 -j flows
		json 'len(all) == 6 and {f["to"] for f in all} == {"'$h2_v4'", "'$h2_v6'"}'
		ctl 0 -j flows to 10.7.2.0/24
		json 'len(all) == 4 and {f["to"] for f in all} == {"'$h2_v4'"}'
		ctl 0 -j flows to 10.7.2.0/31
		json 'all == []'
		ctl 0 -j flows from fd07:1::/32 to fd07:2::2
		json 'len(all) == 2'
		ctl 0 flows to fd07::/16
		says "^\[fd07:1::2\]:[0-9]* *\[$h2_v6\]:[0-9]* "
		ctl 0 -j flows from 11.0.0.0/8
		json 'all == []'
		ctl 0 -j flows limit 2
		json 'len(all) == 2'
		ctl 0 -j flows to $h2_v4
		port=$("$python" -I -c 'import json, sys
print(json.load(open(sys.argv[1]))[0]["to_port"])' "$work/out")
		ctl 0 -j flows port "$port"
		json 'len(all) == 1'
		# The module itself chooses, and timelyctl again.
		chosen 10.7.2.0/24 0 4
		chosen 10.7.2.0/31 0 0
		chosen fd07:2::/32 0 2
		chosen 0.0.0.0/0 "$port" 1
		chosen ::/0 "$port" 0
		for key in delay rate cuts pauses; do
			ctl 0 -j flows sort $key
			json 'len(all) == 6'
		done
		ctl 0 -j flows sort rate
		json '[f["rate_bps"] for f in all] == sorted(f["rate_bps"] for f in all)'
		ctl 0 -j flows
		json '[-(f["queue_ns"] or 0) for f in all] == sorted(-(f["queue_ns"] or 0) for f in all)'
		# Patched TIMELY has no target delay. Sockets with cubic and reno are not listed.
		json '[f["target_ns"] for f in all if f["control"] == "timely_patched"] == [0]'
		json '{f["control"] for f in all} == {"timely", "timely_patched"}'
	}
	with_connections <<-EOF
		pairs = [connect("$h2_v4") for _ in range(3)] + [connect("$h2_v6") for _ in range(2)]
		pairs += [connect("$h2_v4", b"timely_patched")]
		other = [connect("$h2_v4", b"cubic"), connect("$h2_v6", b"reno")]
		for pair in pairs + other:
		    send(*pair, 100000)
		look()
	EOF
}

# A connection is seen in its own namespace, and with "all" by the host's administrator.
namespaces() {
	look() {
		ctl 0 -j flows
		json 'all == []'
		ctl 0 -j flows all
		json 'len(all) == 3 and len({f["net_cookie"] for f in all}) == 1'
		where="$as_nobody"
		ctl 1 flows
		says 'needs CAP_NET_ADMIN'
		ctl 1 flows all
		says 'root on the host'
		where="unshare -Urn"
		ctl 0 -j flows
		json 'all == []'
		ctl 1 flows all
		says 'root on the host'
	}
	with_connections <<-EOF
		pairs = [connect("$h2_v4") for _ in range(3)]
		look()
	EOF
}

# The test kernel does not know the control group of a socket: no connection is in any.
groups() {
	must mkdir -p "$work/cgroup"
	must mount -t cgroup2 none "$work/cgroup"
	look() {
		where=$in_h1
		ctl 0 -j flows cgroup "$work/cgroup"
		json 'all == []'
		ctl 0 -j flows
		json '[f["cgroup"] for f in all] == [0]'
	}
	with_connections <<-EOF
		pair = connect("$h2_v4")
		look()
	EOF
	must umount "$work/cgroup"
}

# Losses, timeouts and long queues are counted by reason.
reasons() {
	h1_without_tso
	wire_to_h2 "rate 1gbit delay 10us loss 15%"
	look() {
		where=$in_h1
		ctl 0 -j flows
		json 'n["cuts"]["loss"] + n["cuts"]["timeout"] > 0 and n["cuts"]["ecn"] == 0'
		json 'n["rejected"]["recovery"] > 0 and n["rejected"]["negative"] == 0'
		ctl 0 flows
		says 'cuts:loss='
		says 'rejected:recovery='
	}
	with_connections <<-EOF
		client, server = connect("$h2_v4")
		send(client, server, 400000)
		look()
	EOF
	wire_to_h2 "rate 1gbit delay 10us"
	look() {
		where=$in_h1
		ctl 0 -j flows
		json 'n["cuts"]["queue"] > 0 and n["cuts"]["loss"] == 0'
	}
	# CUBIC without pacing fills the queue of the link.
	with_connections <<-EOF
		client, server = connect("$h2_v4")
		other = connect("$h2_v4", b"cubic")
		for _ in range(20):
		    send(*other, 1000000)
		    send(client, server, 20000)
		look()
	EOF
	must ip netns exec h1 ethtool -K eth0 tso on
}

# Connections begin, end and change their congestion control while they are listed.
coming_and_going() {
	cat >"$work/plan" <<-EOF
		for n in range(30):
		    pairs = [connect("$h2_v4") for _ in range(10)]
		    for client, server in pairs:
		        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1] + [0] * 7))
		        client.send(bytes(20000))
		    for client, server in pairs[:5]:
		        for cc in (b"cubic", b"timely_paper", b"timely"):
		            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc)
		    for client, server in pairs:
		        client.close()
		        server.close()
		    time.sleep(.01)
	EOF
	(sockets <"$work/plan") &
	where=$in_h1
	lists=0
	while kill -0 $! 2>/dev/null; do
		ctl 0 -j flows
		json 'all == [] or all[0]["control"].startswith("timely")'
		lists=$((lists + 1))
		sleep .003
	done
	wait $! || fail "the connections failed"
	expect lists -ge 10
}

# All of many connections are listed, once each.
two_thousand() {
	look() {
		where=$in_h1
		ctl 0 -j flows
		json 'len(all) == 2000'
		json 'len({(f["from_port"], f["to_port"]) for f in all}) == 2000'
		ctl 0 -j flows limit 10 sort rate
		json 'len(all) == 10'
	}
	with_connections <<-EOF
		import resource
		resource.setrlimit(resource.RLIMIT_NOFILE, (10000, 10000))
		pairs = [connect("$h2_v4") for _ in range(2000)]
		look()
	EOF
}

# The module is unloaded while connections are listed.
unloading() {
	hosts_down
	within_seconds 10 rmmod tcp_timely || fail "tcp_timely cannot be unloaded"
	where=
	(for _ in 0 1 2 3 4 5 6 7 8 9; do ctl 0 flows all; done) &
	for _ in 0 1 2; do
		must insmod "$modules/tcp_timely.ko"
		within_seconds 10 rmmod tcp_timely || fail "tcp_timely cannot be unloaded"
	done
	wait $! || fail "listing failed"
}

run_cases without_the_module wrong_words one_connection filters namespaces groups reasons \
	coming_and_going two_thousand unloading
