#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# "timelyctl doctor" and On-Ramp: each case sets up a sender and a receiver, breaks one link of the
# chain from qdisc to OR-ACK, and doctor must find exactly that, on the right host.
# Topology: h1 == h2, test NICs (drivers/net/hwnic). h1 sends by cubic over sch_timely with On-Ramp.

. "$(dirname "$0")/ctl_lib.sh"
. "$(dirname "$0")/hw_lib.sh"

key=000102030405060708090a0b0c0d0e0f

modules() {
	must insmod "$modules/hwnic.ko"
	must insmod "$modules/timely.ko"
	must insmod "$modules/sch_timely.ko"
	must insmod "$modules/timely_acker.ko"
	clock_status 0
}

# in_host NAMESPACE ARG...: timelyctl in a namespace, which must succeed
in_host() {
	where="ip netns exec $1"
	shift
	ctl 0 "$@"
}

# add_key NAMESPACE NUMBER [KEY]: add a key and sign OR-ACKs with it
add_key() {
	echo "${3-$key}" >"$work/key"
	in_host "$1" key add "$2" "$work/key"
	in_host "$1" key use "$2"
}

# onramp OPTION...: h1's qdisc
onramp() {
	must tc -n h1 qdisc replace dev eth0 root pfifo
	must tc -n h1 qdisc replace dev eth0 root timely "$@"
}

# New hosts, with new counters. Both have the key 1, unless the words no_h1 or no_h2 are given.
hosts() {
	nics_down
	nics_up
	timestamps h2 eth0 all
	[ "${1-}" = no_h1 ] || add_key h1 1
	[ "${1-}" = no_h2 ] || add_key h2 1
	in_host h2 acker add 10.7.0.0/16
	onramp split 16k onramp 50us
}

# While h1 sends data, h1 and h2 find nothing, or what is given as "STATUS CHECK..." for each:
# $burst bytes, then $message bytes every $pause seconds
burst=4000000
message=100000
pause=.005
data() {
	look() {
		where=$in_h1
		# shellcheck disable=SC2086 # words
		finds ${h1_finds:-0}
		where=$in_h2
		# shellcheck disable=SC2086
		finds ${h2_finds:-0}
	}
	with_connections <<-EOF
		import threading
		pair = connect("$h2_v4", b"cubic")
		send(*pair, $burst)
		looking = True
		def go_on():
		    while looking:
		        send(*pair, $message)
		        time.sleep($pause)
		thread = threading.Thread(target=go_on, daemon=True)
		thread.start()
		time.sleep(.1)
		look()
		# OR-ACKs that arrive after the connection has ended would be refused.
		looking = False
		thread.join()
		finish(pair)
		time.sleep(.1)
	EOF
}

healthy() {
	hosts
	data
	where=$in_h1
	ctl 0 -j onramp
	json 'all["counters"]["accepted"] >= 100'
	onramp split 16k onramp 50us owd rtt
	data
}

# ---- the sender ----

key_missing() {
	hosts no_h1
	h1_finds="1 onramp-key onramp-refused"
	data
}

unauthenticated() {
	hosts
	in_host h1 onramp unauthenticated on
	h1_finds="4 onramp-unauthenticated"
	data
}

port_taken() {
	hosts no_h1
	must tc -n h1 qdisc replace dev eth0 root timely onramp off
	$in_h1 "$python" -I -c '
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 20306))
open(sys.argv[1], "w").close()
time.sleep(10)' "$work/bound" &
	within_seconds 5 test -e "$work/bound" || fail "the port cannot be bound"
	where=$in_h1
	finds 4 onramp-port
	kill $!
	wait $! 2>/dev/null
	finds 0
}

clocks_not_synchronised() {
	hosts
	onramp split 16k onramp 50us owd absolute
	where=$in_h1
	finds 0
	clock_status 64
	finds 1 onramp-clock
	# With the offsets of a daemon this is a note.
	start_clockd h1 /run/timely-clockd/clock
	start_clockd h2 "$work/clock"
	within_seconds 20 common_time || fail "the daemon does not know the common time"
	finds 0 onramp-clock
	stop_clockd h1
	stop_clockd h2
	rm -f /run/timely-clockd/clock
	clock_status 0
}

# start_clockd HOST PAGE, stop_clockd HOST
start_clockd() {
	printf "%s\n" "member 10.7.2.1-10.7.2.2" "key 1 $work/clock.key" "page $2" >"$work/$1.conf"
	echo "$key" >"$work/clock.key"
	chmod 600 "$work/clock.key"
	mkdir -p /run/timely-clockd
	ip netns exec "$1" "$modules/timely-clockd" -f "$work/$1.conf" 2>"$work/$1.log" &
	echo $! >"$work/$1.pid"
}

stop_clockd() {
	kill "$(cat "$work/$1.pid")"
	wait "$(cat "$work/$1.pid")" || fail "timely-clockd of $1 failed"
}

common_time() { $in_h1 "$timelyctl" clock now >/dev/null 2>&1; }

# A receiver without a rule sends no OR-ACKs.
no_rule() {
	hosts
	in_host h2 acker del 10.7.0.0/16
	h1_finds="1 onramp-silent"
	h2_finds="4 acker-rule"
	data
}

# UDP has no RTTs.
no_rtts() {
	hosts
	onramp split 16k onramp 50us owd rtt
	must $in_h1 "$python" -I -c '
import socket, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect(("10.7.2.2", 9))
for number in range(1200):
    try:
        sock.send(bytes(1000))
    except ConnectionRefusedError:
        pass
    time.sleep(.00001)'
	where=$in_h1
	finds 1 onramp-silent
}

keys_differ() {
	hosts no_h2
	add_key h2 1 ffffffffffffffffffffffffffffffff
	h1_finds="1 onramp-refused"
	tracing_up
	echo 1 >$tracing/events/timely/timely_orack_refused/enable
	data
	echo 0 >$tracing/events/timely/timely_orack_refused/enable
	grep -q "timely_orack_refused: net=[1-9][0-9]* src=10.7.2.1:[0-9]* dest=$h2_v4:[0-9]* reason=bad_tag" $tracing/trace ||
		fail "no trace event names the flow and the reason"
	where=$in_h1
	# Without traffic it is not known whether the cause has gone.
	finds 0 onramp-refused
	json '"bad_tag" in all["findings"][0]["evidence"] and "was earlier" in all["findings"][0]["evidence"]'
}

# A flow that leaves by another qdisc
no_flow() {
	hosts
	must ip -n h1 link add d0 type dummy
	must ip -n h1 link set d0 up
	must tc -n h1 qdisc replace dev d0 root timely split 16k onramp 50us
	must tc -n h1 qdisc replace dev eth0 root fq
	h1_finds="1 onramp-refused"
	data
	where=$in_h1
	finds 0 onramp-refused
	json '"no_flow" in all["findings"][0]["evidence"]'
}

# Each message is alone on the path: if packets wait behind others, their OR-ACKs arrive while the flow
# is paused, and about half of the signals pause it.
threshold_too_low() {
	hosts
	burst=0 message=30000 pause=.0005
	onramp split 16k onramp 1us
	h1_finds="4 onramp-threshold"
	data
}

without_split() {
	hosts
	onramp onramp 50us
	h1_finds="0 onramp-split"
	data
}

queues_differ() {
	hosts
	must ip -n h1 link add q0 numtxqueues 2 numrxqueues 2 type veth peer name q1
	must ip -n h1 link set q0 up
	must tc -n h1 -batch - <<-EOF
		qdisc replace dev q0 root handle 1: mq
		qdisc replace dev q0 parent 1:1 timely split 16k onramp 50us
		qdisc replace dev q0 parent 1:2 timely split 16k onramp 60us
	EOF
	where=$in_h1
	finds 4 onramp-queues
	must tc -n h1 qdisc change dev q0 parent 1:2 timely onramp 50us
	finds 0
}

# ---- the receiver ----

receivers_key_missing() {
	hosts no_h2
	h1_finds="1 onramp-silent"
	h2_finds="1 acker-key"
	data
}

acker_module() {
	hosts
	in_host h2 acker del 10.7.0.0/16
	must rmmod timely_acker
	where=$in_h2
	finds 4 acker-module
	must insmod "$modules/timely_acker.ko"
	finds 4 acker-rule
}

# The receiver has no route back to the sender of UDP packets.
acker_errors() {
	hosts
	must ip -n h2 route add blackhole 10.7.2.1/32
	$in_h1 "$python" -I -c '
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect(("10.7.2.2", 9))
while True:
    sock.send(bytes(1000))
    time.sleep(.0001)' &
	sleep 0.5
	where=$in_h2
	finds 4 acker-errors
	kill $!
	wait $! 2>/dev/null
	finds 0 acker-errors
}

test_clock() {
	hosts
	in_host h2 acker set test-clock-drift 100
	h2_finds="1 acker-clock"
	data
}

rate_limit() {
	hosts
	in_host h2 acker set rate 1
	h2_finds="4 acker-limited"
	data
}

run_cases modules healthy key_missing unauthenticated port_taken clocks_not_synchronised no_rule \
	no_rtts keys_differ no_flow threshold_too_low without_split queues_differ \
	receivers_key_missing acker_module acker_errors test_clock rate_limit remove_all
