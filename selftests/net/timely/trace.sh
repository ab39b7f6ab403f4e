#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The trace events of timely: each names its connection and says what was decided and why.
# Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools ip tc insmod rmmod sysctl
events=$tracing/events/timely
export TC_LIB_DIR="$modules"

# record EVENT...: empty the trace, and record these events; if $filter is set, of the connections
# that this filter of the kernel selects
record() {
	echo 0 >$events/enable
	: >$tracing/trace
	for event; do
		echo "${filter:-0}" >"$events/$event/filter"
		echo 1 >"$events/$event/enable"
	done
}

# seen REGEX: the trace has an event that matches
seen() {
	grep -q -- "$1" $tracing/trace || {
		grep -o 'timely_.*' $tracing/trace | tail -n 5 | say_lines
		fail "no trace event matches: $1"
	}
}

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_without_tso
	h1_qdisc fq
	load_timely preset=target_delay link_rate_kbps=1000000
	tracing_up
}

# with_connection LINES...: run the Python lines on standard input, see sockets() in lib.sh, which
# can also use
#	send(CLIENT, SERVER, BYTES)	send and receive
#	wire(NETEM)			other options for the link to h2, without loss of packets
with_connection() {
	{
		cat <<-'EOF'
			import subprocess
			def send(client, server, size):
			    client.sendall(bytes(size))
			    while size:
			        size -= len(server.recv(min(size, 1 << 20)))
			def wire(options):
			    subprocess.run(["tc", "-n", "mid", "qdisc", "change", "dev", "to2", "root", "netem",
			                    "limit", "10000", *options.split()], check=True)
		EOF
		cat
	} >"$work/plan"
	sockets <"$work/plan"
}

addresses_of() {
	record timely_rtt timely_computed timely_rate_set
	with_connection <<-EOF
		client, server = connect("$1")
		send(client, server, 100000)
		result(from_port=client.getsockname()[1], to_port=server.getsockname()[1])
	EOF
	for event in timely_rtt timely_computed timely_rate_set; do
		seen "$event: net=[1-9][0-9]* src=$2:$from_port dest=$3:$to_port "
	done
	seen "timely_rate_set: .* cause=start rate_Bps=[1-9][0-9]* cwnd=[1-9][0-9]*$"
}

addresses() {
	hosts
	addresses_of $h2_v4 10.7.1.2 $h2_v4
	addresses_of $h2_v6 '\[fd07:1::2\]' "\[$h2_v6\]"
}

# The kernel's filters select connections by port and network namespace.
filters() {
	filter="dport == 1"
	record timely_rtt
	with_connection <<-EOF
		send(*connect("$h2_v4"), 100000)
	EOF
	[ "$(grep -c timely_rtt: $tracing/trace)" -eq 0 ] || fail "events of another port"
	filter="dport != 1 && net_cookie != 0"
	record timely_rtt
	with_connection <<-EOF
		send(*connect("$h2_v4"), 100000)
	EOF
	seen timely_rtt:
	filter=
	record timely_rtt
}

# cause NAME: the trace has an event for this cause
cause() { seen "timely_rate_set: .* dest=$h2_v4:[0-9]* cause=$1 rate_Bps=[1-9][0-9]* cwnd="; }

losses() {
	record timely_rate_set
	with_connection <<-EOF
		client, server = connect("$h2_v4")
		send(client, server, 400000)
		wire("rate 1gbit delay 10us loss 10%")
		send(client, server, 1000000)
		wire("rate 1gbit delay 10us loss 0%")
	EOF
	cause start
	cause loss
}

timeouts() {
	record timely_rate_set
	with_connection <<-EOF
		client, server = connect("$h2_v4")
		send(client, server, 400000)
		wire("rate 1gbit delay 10us loss 100%")
		client.sendall(bytes(100000))
		time.sleep(.3)
		wire("rate 1gbit delay 10us loss 0%")
		left = 100000
		while left:
		    left -= len(server.recv(left))
	EOF
	cause timeout
}

ecn_echoes() {
	for host in h1 h2; do
		must ip netns exec $host sysctl -qw net.ipv4.tcp_ecn=1
	done
	record timely_rate_set
	# The SYN cannot be marked and would be lost. TCP would then try again without ECN.
	with_connection <<-EOF
		client, server = connect("$h2_v4")
		wire("rate 1gbit delay 10us loss 10% ecn")
		send(client, server, 1000000)
	EOF
	wire_to_h2 "rate 1gbit delay 10us"
	cause ecn
	if grep -q cause=loss $tracing/trace; then fail "a mark counts as a loss"; fi
}

# Each loss decreases the rate, as for Swift. TCP counts them as lost; a later mark is no loss.
marks_after_losses() {
	must ip netns exec h1 sysctl -qw net.ipv4.timely.loss_free_ppm=0
	record timely_rate_set
	with_connection <<-EOF
		client, server = connect("$h2_v4")
		send(client, server, 400000)
		wire("rate 1gbit delay 10us loss 5%")
		send(client, server, 400000)
		wire("rate 1gbit delay 10us loss 0%")
		send(client, server, 400000)
		open("$tracing/trace_marker", "w").write("marks begin")
		wire("rate 1gbit delay 10us loss 10% ecn")
		send(client, server, 400000)
	EOF
	must ip netns exec h1 sysctl -qw net.ipv4.timely.loss_free_ppm=20000
	wire_to_h2 "rate 1gbit delay 10us"
	cause loss
	cause ecn
	if sed '1,/marks begin/d' $tracing/trace | grep -q cause=loss; then fail "a mark counts as a loss"; fi
}

# The delay rises so much that TCP retransmits data that are not lost; then their ACK arrives.
undone_timeouts() {
	record timely_rate_set
	with_connection <<-EOF
		client, server = connect("$h2_v4")
		send(client, server, 400000)
		wire("rate 1gbit delay 300ms")
		send(client, server, 100000)
		time.sleep(.5)
		wire("rate 1gbit delay 10us")
	EOF
	cause timeout
	cause undone
}

# Probes of the path begin every 67 ms, by the real-time clock.
probes() {
	record timely_probe
	with_connection <<-EOF
		client, server = connect("$h2_v4")
		end = time.monotonic() + .5
		while time.monotonic() < end:
		    send(client, server, 100000)
	EOF
	seen "timely_probe: net=[1-9][0-9]* src=10.7.1.2:[0-9]* dest=$h2_v4:[0-9]* clock_offset_ns=[1-9][0-9]* common=0 cwnd=[1-9]"
	probes=$(grep -c 'timely_probe: ' $tracing/trace)
	expect probes -ge 4
	expect probes -le 9
}

# On-Ramp pauses a flow of CUBIC that builds a queue in the network.
pauses() {
	must insmod "$modules/sch_timely.ko"
	h1_qdisc timely onramp 50us owd rtt
	record timely_pause
	with_connection <<-EOF
		send(*connect("$h2_v4", b"cubic"), 4000000)
	EOF
	seen "timely_pause: net=[1-9][0-9]* src=10.7.1.2:[0-9]* dest=$h2_v4:[0-9]* delay_ns=[1-9][0-9]* threshold_ns=50000 pause_ns=[1-9][0-9]* begun=1"
	echo 0 >$events/enable
	least=$(sed -n 's/.*delay_ns=\([0-9]*\) .*begun=1/\1/p' $tracing/trace | sort -n | head -n 1)
	expect least -gt 50000 "the shortest delay that begins a pause"
	hosts_down
	unload_timely
}

run_cases addresses filters losses timeouts ecn_echoes marks_after_losses undone_timeouts probes pauses
