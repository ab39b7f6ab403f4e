#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Unloading of tcp_timely and timely: refused while a socket, a default or a module uses them, and
# possible otherwise. Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc
references=/sys/module/tcp_timely/refcnt

# A command for plans: fails unless rmmod refuses both modules as "in use".
cat >"$work/try-unload" <<-'EOF'
	for module in tcp_timely timely; do
		rmmod $module 2>&1 | grep -q "in use" && [ -d /sys/module/$module ] || exit 1
	done
EOF

is_unused() {
	read -r count <$references
	[ "$count" -eq 0 ]
}

refused_under_a_socket() {
	hosts_up "rate 1gbit delay 10us"
	load_timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=2000000 verify=1
		0.005	run sh $work/try-unload
	EOF
	expect a_done -eq 1
	expect a_same -eq 1
	within_seconds 1 is_unused || fail "still in use when the socket is gone"
	must rmmod tcp_timely
	must rmmod timely
}

refused_under_an_idle_socket() {
	load_timely
	must "$python" -I - "$work/try-unload" <<-'EOF'
		import socket, subprocess, sys
		TIMELY, OTHER = b"timely", b"cubic"
		def choose(sock, name):
		    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
		def modules_are_in_use():
		    subprocess.run(["sh", sys.argv[1]], check=True)
		# Set, set again, changed and set once more, without any connection.
		never_connected = socket.socket()
		for name in TIMELY, TIMELY, OTHER, TIMELY:
		    choose(never_connected, name)
		modules_are_in_use()
		choose(never_connected, OTHER)
		listener = socket.socket()
		choose(listener, TIMELY)
		listener.bind(("127.0.0.1", 0))
		listener.listen()
		modules_are_in_use()
	EOF
	within_seconds 1 is_unused || fail "still in use when the sockets are gone"
	must rmmod tcp_timely
	must rmmod timely
}

refused_as_the_default() {
	load_timely
	read -r before </proc/sys/net/ipv4/tcp_congestion_control
	echo timely >/proc/sys/net/ipv4/tcp_congestion_control
	refused rmmod tcp_timely
	is_loaded tcp_timely || fail "unloaded though timely is the default"
	echo "$before" >/proc/sys/net/ipv4/tcp_congestion_control
	must rmmod tcp_timely
	must rmmod timely
}

timely_refused_under_tcp_timely() {
	load_timely
	refused rmmod timely
	is_loaded timely || fail "timely is unloaded though tcp_timely uses it"
	must rmmod tcp_timely
	must rmmod timely
}

a_hundred_times() {
	traffic <<-EOF
		0	reload r dir=$modules count=100
	EOF
	expect r_done -eq 100
	! available timely || fail "timely is still registered"
	load_timely
	available timely || fail "timely cannot be registered any more"
	unload_timely
}

run_cases refused_under_a_socket refused_under_an_idle_socket refused_as_the_default \
	timely_refused_under_tcp_timely a_hundred_times
