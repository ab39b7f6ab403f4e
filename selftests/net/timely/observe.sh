#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timelyctl's commands that observe a host, compared with what the modules and tc show.
# Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/ctl_lib.sh"

hosts() {
	hosts_up "rate 1gbit delay 10us"
	load_timely preset=target_delay link_rate_kbps=1000000
	must insmod "$modules/sch_timely.ko"
	h1_qdisc timely
	where=$in_h1
	ctl 0 metrics
	metrics 'm["timely_connections"] == 0 and m["timely_qdisc_flows" + eth0] >= 0'
}

# metrics EXPRESSION: a Python expression that must be true for the last output of "timelyctl
# metrics": m is a dict from the text of a sample to its value, eth0 the labels of h1's qdisc
metrics() {
	"$python" -I - "$work/out" "$1" "$work/rtt" "$work/tc" 2>"$work/json" <<-'EOF' || {
		import json, sys
		eth0 = '{device="eth0",parent="root"}'
		rows = [line.rsplit(" ", 1) for line in open(sys.argv[1]) if line[0] != "#"]
		m = {key: float(value) for key, value in rows}
		load = lambda name: json.load(open(name))
		rtt, tc = sys.argv[3:]
		assert len(m) == len(rows) and eval(sys.argv[2]), m
	EOF
		say_lines <"$work/json"
		fail "not true: $1"
	}
}

metrics_agree() {
	look() {
		where=$in_h1
		ctl 0 -j rtt
		cp "$work/out" "$work/rtt"
		$in_h1 tc -s -j qdisc show dev eth0 >"$work/tc" || fail "tc has failed"
		ctl 0 metrics
		metrics 'm["timely_connections"] == 3 and m["timely_rtt_driver_total"] > 0'
		metrics 'all(m[f"timely_rtt_{key}_total"] == value for key, value in load(rtt).items()
			if key != "drains_apart")'
		metrics 'all(m[f"timely_qdisc_{key}_total{eth0}"] == load(tc)[0][key]
			for key in ("departures", "throttled", "drops", "put_back", "segmented"))'
		metrics 'm["timely_qdisc_sent_packets_total" + eth0] == load(tc)[0]["packets"] > 100'
		metrics 'm["timely_qdisc_sent_bytes_total" + eth0] == load(tc)[0]["bytes"]'
		metrics 'm["timely_limit_used{limit=\"flows\"}"] >= 3'
		# The third connection has sent nothing, so it has had no RTT.
		metrics 'm["timely_connections_rtt_seconds_count"] == 2'
		metrics '4e-5 < m["timely_connections_rtt_seconds_sum"] < 2e-2'
		metrics 'm["timely_connections_rtt_seconds_bucket{le=\"2e-05\"}"] == 0'
		metrics 'm["timely_connections_rtt_seconds_bucket{le=\"0.01\"}"] == 2'
		cp "$work/out" "$work/printed"
		ctl 0 metrics output "$work/file.prom"
		cmp "$work/printed" "$work/file.prom" || fail "the file differs from the output"
		# The RTTs of a minute ago do not count any more.
		sleep 61
		ctl 0 metrics
		metrics 'm["timely_connections"] == 3 and m["timely_connections_rtt_seconds_count"] == 0'
	}
	with_connections <<-EOF
		pairs = [connect("$h2_v4"), connect("$h2_v6")]
		for pair in pairs:
		    send(*pair, 400000)
		pairs.append(connect("$h2_v4"))
		time.sleep(.05)
		look()
	EOF
}

metrics_of_namespaces() {
	look() {
		where=
		ctl 0 metrics
		metrics 'm["timely_connections"] == 0'
		ctl 0 metrics all
		metrics 'm["timely_connections"] == 2'
		where=$as_nobody
		ctl 1 metrics
		says 'needs CAP_NET_ADMIN'
		[ ! -s "$work/out" ] || fail "there is incomplete output"
	}
	with_connections <<-EOF
		pairs = [connect("$h2_v4") for _ in range(2)]
		look()
	EOF
}

# The sums are those of "timelyctl flows". Nothing is sent between the commands.
top_agrees() {
	look() {
		where=$in_h1
		ctl 0 -j flows
		cp "$work/out" "$work/flows"
		ctl 0 -j top
		json '{d["to"]: d["connections"] for d in all} == {"'$h2_v4'": 3, "'$h2_v6'": 2}'
		json '[d["rate_bps"] for d in all] == [sum(f["rate_bps"]
			for f in json.load(open("'"$work/flows"'")) if f["to"] == d["to"]) for d in all]'
		json 'n["queue_ns"] <= n["queue_max_ns"] == max(f["queue_ns"] or 0
			for f in json.load(open("'"$work/flows"'")))'
		ctl 0 -j top prefix 16 to 10.0.0.0/8
		json 'len(all) == 1 and n["to"] == "10.7.0.0" and n["connections"] == 3'
		ctl 0 top
		says "^$h2_v4  *3 "
	}
	with_connections <<-EOF
		pairs = [connect("$h2_v4") for _ in range(3)] + [connect("$h2_v6") for _ in range(2)]
		for pair in pairs:
		    send(*pair, 100000)
		time.sleep(.05)
		look()
	EOF
}

# The view at a pseudo-terminal is drawn again with new values.
watch_shows() {
	look() {
		$in_h1 "$python" -I - "$ctl" $h2_v4 <<-'EOF' || fail "see above"
			import fcntl, os, pty, re, struct, sys, termios
			pid, end = pty.fork()
			if not pid:
			    os.read(0, 1)
			    os.execv(sys.argv[1], [sys.argv[1], "watch", "interval", "50", "sort", "rate"])
			fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
			os.write(end, b"\n")
			text = ""
			while text.count("q: quit") < 4:
			    text += os.read(end, 65536).decode()
			os.write(end, b"q")
			_, status = os.waitpid(pid, 0)
			assert status == 0, (status, text)
			screens = text.split("\033[H")[1:]
			assert all(re.search(f" [MG]b/s .*us .* {sys.argv[2]}:[0-9]+ +[0-9.]+:[0-9]+ ", screen)
			           for screen in screens[:3]), text
		EOF
	}
	with_connections <<-EOF
		pair = connect("$h2_v4")
		send(*pair, 100000)
		look()
	EOF
}

# A recording has the connection at each reading. What it has last is what "timelyctl flows" shows.
record_agrees() {
	look() {
		where=$in_h1
		rm -f "$work/r.csv"
		ctl 0 record "$work/r.csv" interval 100 duration 2
		ctl 0 -j flows
		"$python" -I - "$work/r.csv" "$work/out" <<-'EOF' || fail "see above"
			import csv, json, sys
			rows = list(csv.DictReader(open(sys.argv[1])))
			times = [float(row["unix_time_s"]) for row in rows]
			assert len(rows) == 20 and abs(times[-1] - times[0] - 1.9) < .01, times
			flow = json.load(open(sys.argv[2]))[0]
			keys = ("from", "from_port", "to", "rate_bps", "rtt_ns", "queue_ns", "target_ns", "net_cookie")
			assert all(rows[-1][key] == str(flow[key]) for key in keys), (rows[-1], flow)
		EOF
		"$python" -I "$here/../../../tools/timelyctl/plot.py" "$work/r.csv" >"$work/r.svg" ||
			fail "timely-plot has failed"
	}
	with_connections <<-EOF
		pair = connect("$h2_v4")
		send(*pair, 100000)
		time.sleep(.05)
		look()
	EOF
}

# Counters grow with traffic, and no metric disappears. The files are kept in the directory
# TIMELY_METRICS, if set, for the tests of packaging/monitoring.
metrics_grow() {
	h1_qdisc timely onramp 10us owd rtt
	dir=${TIMELY_METRICS:-$work}
	look() {
		where=$in_h1
		number=$((number + 1))
		ctl 0 metrics output "$dir/$number.prom"
	}
	number=0
	(look)
	for number in 1 2 3; do
		with_connections <<-EOF
			pairs = [connect("$h2_v4") for _ in range(3)]
			for pair in pairs:
			    send(*pair, 400000)
			look()
		EOF
	done
	"$python" -I - "$dir" <<-'EOF' || fail "see above"
		import sys
		files = [[line.rsplit(" ", 1) for line in open(f"{sys.argv[1]}/{n}.prom") if line[0] != "#"]
		         for n in (1, 2, 3, 4)]
		files = [{key: float(value) for key, value in rows} for rows in files]
		for before, after in zip(files, files[1:]):
		    counters = {key for key in before if key.split("{")[0].endswith("_total")}
		    assert len(counters) > 70 and before.keys() <= after.keys(), before.keys() - after.keys()
		    assert all(before[key] <= after[key] for key in counters), (before, after)
		    for name in ("sent_bytes_total", "departures_total", "onramp_signals_total",
		                 "onramp_pauses_total", "onramp_paused_seconds_total"):
		        key = f"timely_qdisc_{name}{{device=\"eth0\",parent=\"root\"}}"
		        assert before[key] < after[key], (key, after)
	EOF
}

run_cases hosts metrics_agree metrics_of_namespaces top_agrees watch_shows record_agrees metrics_grow
