#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timelyctl trial: a route gets congctl timely for a limited time. Its other attributes stay, and
# exactly the former route comes back: at the end of the time, also without the terminal, or at
# once; unless the trial is confirmed, or somebody has changed the route meanwhile.
# The guest's kernel has no IPv4 routes with several nexthops.
# Topology: h1 -- mid -- h2, see lib.sh; other routes of h1 lead nowhere.

. "$(dirname "$0")/ctl_lib.sh"

state=/run/timely
where=$in_h1


# routes: print all routes of h1, one on each line
routes() {
	for version in -4 -6; do
		ip -n h1 $version -j -d route show | sed 's/,{"type"/,\n{"type"/g'
	done
}

# before: note the routes of h1
before() { routes >"$work/before"; }

expect_restored() {
	routes >"$work/after"
	cmp -s "$work/before" "$work/after" || {
		diff "$work/before" "$work/after" | say_lines
		fail "the routes are not those of before"
	}
}

# expect_congctl PREFIX: the route of the prefix differs from before by congctl timely only
expect_congctl() {
	routes >"$work/now"
	must "$python" -I - "$work/before" "$work/now" "$1" <<-'EOF'
		import json, sys
		def load(name):
		    with open(name, encoding="utf-8") as file:
		        return json.loads(file.read().replace("][", ",").replace("]\n[", ","))
		before, now = load(sys.argv[1]), load(sys.argv[2])
		found = 0
		for route in now:
		    for metric in route.get("metrics", []):
		        if metric.get("congestion") == "timely":
		            del metric["congestion"]
		            found += 1
		            assert route["dst"] == sys.argv[3], route
		    route["metrics"] = [m for m in route.get("metrics", []) if m]
		for route in before:
		    for metric in route.get("metrics", []):
		        metric.pop("congestion", None) if route["dst"] == sys.argv[3] else None
		    route["metrics"] = [m for m in route.get("metrics", []) if m]
		order = lambda route: json.dumps(route, sort_keys=True)
		assert found == 1, now
		assert sorted(map(order, before)) == sorted(map(order, now)), (before, now)
	EOF
}

# The process in the background ends, and nothing is left of the trial.
nothing_left() {
	within_seconds 5 no_process || fail "the process of the trial is still there"
	left=$(ls $state)
	[ -z "$left" ] || fail "state files left: $left"
}

no_process() { ! pgrep -x timelyctl >/dev/null; }

hosts() {
	hosts_up "rate 1gbit delay 10us"
	must insmod "$modules/timely.ko"
	must insmod "$modules/tcp_timely.ko"
	must ip -n h1 -batch - <<-EOF
		route add 10.9.1.0/24 via 10.7.1.1 dev eth0 src 10.7.1.2 metric 50 mtu lock 1400 window 60000 initcwnd 20 rto_min 5ms proto static
		route add 10.9.2.0/24 dev eth0 scope link congctl reno quickack 1
		route add 10.9.3.0/24 via 10.7.1.1 congctl lock reno mtu 1300
		route add 10.9.4.9 via 10.7.1.1 onlink dev eth0 realm 7
		route add 10.9.5.0/24 via 10.7.1.1 metric 10
		route add 10.9.5.0/24 via 10.7.1.1 metric 20
		route add 10.9.5.0/24 via 10.7.1.1 metric 30 table 77
		route add default via 10.7.1.1
		route add fd09:1::/64 via fd07:1::1 dev eth0 metric 77 mtu 1380 hoplimit 9 pref high
		route add fd09:2::/64 nexthop via fd07:1::1 dev eth0 weight 2 nexthop via fd07:1::7 dev eth0 weight 4
		route add default via fd07:1::1
		nexthop add id 5 via 10.7.1.1 dev eth0
		route add 10.9.6.0/24 nhid 5
		nexthop add id 6 via fd07:1::1 dev eth0
		route add fd09:6::/64 nhid 6
	EOF
	before
}

each_kind_of_route() {
	for prefix in 10.9.1.0/24 10.9.2.0/24 10.9.3.0/24 10.9.4.9 10.9.6.0/24 10.7.1.0/24 default \
		fd09:1::/64 fd09:2::/64 fd09:6::/64 fd07:1::/64 ::/0; do
		ctl 0 trial route $prefix
		shown=${prefix#::/0}
		expect_congctl "${shown:-default}"
		ctl 0 trial status
		says 'the former route is restored in [56]'
		ctl 0 trial revert
		says 'the former route is restored'
		expect_restored
		nothing_left
	done
}

# tools/lab/vm/smoke.sh tests trials of control groups: the guest's kernel has no BPF programs.
control_groups() {
	must mkdir -p "$work/cgroup"
	ctl 1 trial cgroup "$work/cgroup"
	says 'is no directory of a control group'
	ctl 1 trial cgroup "$work/nothing"
	says 'No such file or directory'
	must mount -t cgroup2 none "$work/cgroup"
	ctl 1 trial cgroup "$work/cgroup"
	says 'this kernel has no BPF programs'
	must umount "$work/cgroup"
	ctl 0 trial route 10.9.1.0/24
	ctl 1 trial cgroup "$work/cgroup"
	says 'there is a trial of the route 10.9.1.0/24'
	# A state file of a trial of a control group that does not exist, and damaged ones.
	file=$state/$(ls $state)
	cp "$file" "$work/route"
	printf 'timelyctl trial cgroup 1\n9\n77\n2f6e6f00\n5\n' >"$work/group"
	for edit in '1s/1$/2/' '2s/^/x/' '3s/^/-/' '4s/00$//' '4s/0/g/' '5s/^/x/' '5d' '5a6'; do
		sed "$edit" "$work/group" >"$file"
		ctl 1 trial revert
		says 'cannot be read'
	done
	cp "$work/group" "$file"
	ctl 0 trial status
	says 'Trial of the control group /no'
	ctl 1 trial revert
	says 'the program cannot be detached from the control group'
	cp "$work/route" "$file"
	ctl 0 trial revert
	expect_restored
	nothing_left
}

# The kernel uses the route with the lowest metric.
lowest_metric() {
	ctl 0 trial route 10.9.5.0/24
	congctl=$(ip -n h1 route show 10.9.5.0/24 | grep 'congctl timely')
	case $congctl in
	*"metric 10 "*) ;;
	*) fail "the routes are: $(ip -n h1 route show 10.9.5.0/24)" ;;
	esac
	ctl 0 trial revert
	expect_restored
}

# Another route of the same prefix does not hide the route of the trial, and stays as it is.
other_routes_appear() {
	for other in "add 10.9.1.0/24 via 10.7.1.1 metric 5" "append 10.9.1.0/24 via 10.7.1.7 metric 50 congctl timely" \
		"add fd09:1::/64 via fd07:1::1 metric 5 congctl timely"; do
		prefix=${other#* }
		prefix=${prefix%% *}
		ctl 0 trial route "$prefix"
		# shellcheck disable=SC2086 # the words of the route
		must ip -n h1 route $other
		ctl 0 trial revert
		says 'the former route is restored'
		# shellcheck disable=SC2086
		must ip -n h1 route del ${other#* }
		expect_restored
	done
	# Before a route with the same metric there is no way to restore the other one.
	ctl 0 trial route 10.9.1.0/24
	must ip -n h1 route prepend 10.9.1.0/24 via 10.7.1.7 metric 50 congctl timely
	ctl 0 trial revert
	says 'the route was changed during the trial: it stays as it is'
	must ip -n h1 route del 10.9.1.0/24 via 10.7.1.7
	expect_congctl 10.9.1.0/24
	must ip -n h1 route replace 10.9.1.0/24 via 10.7.1.1 dev eth0 src 10.7.1.2 metric 50 mtu lock 1400 window 60000 \
		initcwnd 20 rto_min 5ms proto static
	expect_restored
	nothing_left
}

# connection_uses CC: a new connection to h2 has this congestion control
connection_uses() {
	sockets <<-EOF
		listener = inside("h2", socket.socket)
		listener.bind(("$h2_v4", 0))
		listener.listen()
		client = inside("h1", socket.socket)
		client.connect(listener.getsockname())
		name = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
		result(same=name.rstrip(b"\0") == b"$1")
	EOF
	expect same -eq 1 "the connection does not use $1"
}

connections_use_timely() {
	connection_uses cubic
	ctl 0 trial route 10.7.0.0/16 minutes 1
	connection_uses timely
	ctl 0 trial revert
	connection_uses cubic
	expect_restored
}

# The program runs in a terminal that is closed at once: this ends the processes of the terminal.
ends_without_the_terminal() {
	must "$python" -I - "$ctl" <<-'EOF'
		import os, pty, sys
		pid, terminal = pty.fork()
		if pid == 0:
		    os.execvp("ip", ["ip", "netns", "exec", "h1", sys.argv[1], "trial", "route",
		                     "10.7.0.0/16", "minutes", "1"])
		text = b""
		try:
		    while b"revert restores" not in text:
		        text += os.read(terminal, 1000)
		except OSError as error:
		    print(text, error)
		# A terminal that closes earlier may end the command itself.
		assert os.waitpid(pid, 0)[1] == 0, text
		os.close(terminal)
	EOF
	expect_congctl 10.7.0.0/16
	sleep 50
	expect_congctl 10.7.0.0/16
	ctl 0 -j trial status
	json 'all["active"] and all["reverts"] and all["route"] == "10.7.0.0/16" and 0 < all["seconds_left"] <= 10'
	sleep 11
	expect_restored
	nothing_left
	ctl 0 trial
	says 'There is no trial'
}

confirmed_trial_stays() {
	ctl 0 trial route 10.7.0.0/16 minutes 1
	ctl 1 trial route 10.9.1.0/24
	says 'there is a trial of the route 10.7.0.0/16: end it first'
	ctl 0 trial confirm
	nothing_left
	sleep 70
	expect_congctl 10.7.0.0/16
	ctl 1 trial confirm
	says 'there is no trial'
	ctl 1 trial revert
	ctl 1 trial route 10.7.0.0/16
	says 'has the congestion control timely already'
	must ip -n h1 route replace 10.7.0.0/16 via 10.7.1.1
	expect_restored
}

# What an administrator changes during the trial is not overwritten.
changed_route_stays() {
	ctl 0 trial route 10.7.0.0/16 minutes 1
	must ip -n h1 route replace 10.7.0.0/16 via 10.7.1.1 mtu 1300 congctl timely
	sleep 65
	ip -n h1 route show 10.7.0.0/16 | grep -q 'mtu 1300' || fail "the route was overwritten"
	nothing_left
	must ip -n h1 route replace 10.7.0.0/16 via 10.7.1.1
	ctl 0 trial route 10.7.0.0/16
	must ip -n h1 route del 10.7.0.0/16
	ctl 0 trial revert
	says 'does not exist any more'
	must ip -n h1 route add 10.7.0.0/16 via 10.7.1.1
	before
	nothing_left
}

# listen: write the messages for the system log to $work/log, unless there is a system log.
listen() {
	[ ! -e /dev/log ] || return 0
	"$python" -I - "$work/log" <<-'EOF' &
		import os, socket, sys
		with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log, open(sys.argv[1], "wb") as file:
		    log.bind("/dev/log")
		    while text := log.recv(4096):
		        file.write(text + b"\n")
		        file.flush()
		os.unlink("/dev/log")
	EOF
	within_seconds 5 test -e /dev/log || fail "no system log"
}

# logged REGEX: the only message of the process in the background
logged() {
	[ -e "$work/log" ] || return 0
	if [ "$(grep -c . "$work/log")" -ne 1 ] || ! grep -q -- "$1" "$work/log"; then
		say_lines <"$work/log"
		fail "the log does not have, or not only: $1"
	fi
	: >"$work/log"
}

# open_files: the number of descriptors of the process in the background
open_files() { find "/proc/$(pgrep -x timelyctl)/fd" -type l | wc -l; }

# An undo that fails is tried again. It fails here because the state file is that of a control group, and then
# damaged.
failed_undo_is_repeated() {
	listen
	ctl 0 trial route 10.9.1.0/24 minutes 1
	file=$state/$(ls $state)
	cp "$file" "$work/route"
	cp "$work/group" "$file"
	sleep 65
	before_files=$(open_files)
	sleep 30
	files=$(open_files)
	expect files -eq "$before_files" "descriptors of the process after more repetitions"
	expect_congctl 10.9.1.0/24
	logged 'the control group /no is over: the program cannot be detached.*; trying again every 10 s'
	echo damaged >"$file"
	sleep 30
	logged 'the state file of the trial cannot be read'
	cp "$work/route" "$file"
	sleep 11
	expect_restored
	nothing_left
	logged 'the trial of the route 10.9.1.0/24 is over: the former route is restored$'
	# "trial revert" ends the repetition.
	ctl 0 trial route 10.9.1.0/24 minutes 1
	cp "$work/group" "$file"
	sleep 65
	cp "$work/route" "$file"
	ctl 0 trial revert
	nothing_left
	expect_restored
	[ ! -e "$work/log" ] || must "$python" -I - <<-'EOF'
		import socket
		socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"", "/dev/log")
	EOF
}

# Without its process the trial does not end by itself, and status says so.
process_is_killed() {
	ctl 0 trial route 10.7.0.0/16 minutes 1
	must pkill -x -KILL timelyctl
	within_seconds 5 no_process || fail "the process cannot be killed"
	ctl 0 trial status
	says 'WARNING: the process that would end it was killed'
	ctl 0 trial revert
	expect_restored
	nothing_left
}

bad_input_changes_nothing() {
	ctl 1 trial route 10.9.0.0/16
	says 'the main table has no route of 10.9.0.0/16: ip route get 10.9.0.0'
	ctl 2 trial route 10.9.1.1/24
	ctl 2 trial route 10.9.1.0/24 minutes 0
	must ip -n h1 -batch - <<-EOF
		route append 10.9.1.0/24 via 10.7.1.7 metric 50
		route add fd09:7::/64 via fd07:1::1 expires 3000
	EOF
	ctl 1 trial route 10.9.1.0/24
	says 'several routes of 10.9.1.0/24 with the same metric'
	ctl 1 trial route fd09:7::/64
	says 'from a router advertisement, or expires'
	must ip -n h1 -batch - <<-EOF
		route del 10.9.1.0/24 via 10.7.1.7
		route del fd09:7::/64
	EOF
	where="$in_h1 $as_nobody"
	ctl 1 trial route 10.9.1.0/24
	says 'needs root'
	where=$in_h1
	# The kernel refuses: the module cannot be found.
	must rmmod tcp_timely
	ctl 1 trial route 10.9.1.0/24
	says 'the kernel does not change the route'
	must insmod "$modules/tcp_timely.ko"
	expect_restored
	nothing_left
	# Damaged state files restore nothing.
	ctl 0 trial route 10.9.1.0/24
	file=$(ls $state)
	cp "$state/$file" "$work/good"
	# shellcheck disable=SC2016 # sed's last line
	for edit in '$d' '1s/1/2/' '2s/^/x/' '3s/^/x/' '4s/..$//' '4s/^..../0000/' '4s/.$/x/'; do
		sed "$edit" "$work/good" >"$state/$file"
		ctl 1 trial revert
		says 'cannot be read: restore the route with ip route'
	done
	cp "$work/good" "$state/$file"
	ctl 0 trial revert
	expect_restored
	nothing_left
}

run_cases hosts each_kind_of_route control_groups lowest_metric other_routes_appear connections_use_timely \
	ends_without_the_terminal confirmed_trial_stays changed_route_stays failed_undo_is_repeated process_is_killed bad_input_changes_nothing
