#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Programs that know nothing of NDP, run by "ndp run": Python's web server with curl, iperf3, and
# qperf.
# Topology: h1 -- mid -- h2, 10 Gb/s.

. "$(dirname "$0")/ndp_lib.sh"

need_tools curl iperf3 qperf
export NDP_PRELOAD="$modules/ndp_preload.so"

# by_ndp NAMESPACE COMMAND...
by_ndp() {
	by_ns=$1
	shift
	ip netns exec "$by_ns" "$modules/ndp" run "$@"
}

hosts() {
	refused "$modules/ndp" run true
	grep -q "modprobe ndp" "$work/refused" || fail "does not say what to do"
	ndp_hosts
}

listens() {
	by_ndp h1 curl -s -o "$work/page" "http://$h2_v4:8000/"
}

web_server() {
	mkdir -p "$work/web"
	head -c 3000000 /dev/urandom >"$work/web/file"
	# Not by_ndp: the shell would run the function in a process of its own, which kill would end.
	ip netns exec h2 "$modules/ndp" run "$python" -I -m http.server -d "$work/web" 8000 >"$work/server" 2>&1 &
	server=$!
	trap 'kill $server' EXIT
	within_seconds 10 listens || fail "no answer of the web server: $(cat "$work/server")"
	for round in 1 2 3; do
		must by_ndp h1 curl -s -S -o "$work/file$round" "http://$h2_v4:8000/file"
		must cmp "$work/file$round" "$work/web/file"
	done
	refused by_ndp h1 curl -s -S "http://$h2_v4:8001/"
	refused ip netns exec h1 curl -s -S "http://$h2_v4:8000/"
	ip netns exec h2 grep -q "^completed [4-9]" /proc/net/ndp_stat || fail "the connections were not NDP's"
}

# throughput OPTION...: 200 MB by iperf3, at 85 % of the link's rate or more
throughput() {
	ip netns exec h2 "$modules/ndp" run timeout 20 iperf3 -s -1 >"$work/iperf-server" 2>&1 &
	server=$!
	sleep 1
	must by_ndp h1 iperf3 -c $h2_v4 -n 200M -J "$@"
	wait $server || fail "the server failed: $(cat "$work/iperf-server")"
	mbps=$("$python" -I -c '
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    print(int(json.load(file)["end"]["sum_received"]["bits_per_second"] / 1e6))' "$work/must")
	say "iperf3 $*: $mbps Mb/s"
	expect mbps -ge 8500 "full packets carry 92 % data"
}

iperf() {
	throughput
	throughput -P 4
	throughput -R
}

# no_clients_left SERVER: of qperf's processes only the server is left
no_clients_left() { [ "$(processes_left | grep '^qperf')" = "qperf ($1)" ]; }

# of_qperf NAME: prints a result of qperf
of_qperf() { awk -v name="$1" '$1 == name { print $3 }' "$work/must"; }

# Bandwidth and latency by qperf. Its client connects and waits for the server on another
# connection, and the server waits in accept(): the connection must open without data.
qperf_results() {
	ip netns exec h2 "$modules/ndp" run qperf >"$work/qperf-server" 2>&1 &
	server=$!
	trap 'kill $server' EXIT
	must by_ndp h1 qperf -uu -t 1 --wait_server 5 $h2_v4 tcp_bw tcp_lat
	mbps=$(($(of_qperf bw) * 8 / 1000000))
	latency_ns=$(of_qperf latency)
	say "qperf: $mbps Mb/s, $latency_ns ns"
	expect mbps -ge 8500 "full packets carry 92 % data"
	expect latency_ns -ge 10000 "the link's delay"
	expect latency_ns -le 15000 "half a round trip"
	within_seconds 5 no_clients_left $server || fail "left: $(processes_left)"
}

run_cases hosts web_server iperf qperf_results
