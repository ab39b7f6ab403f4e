#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The tests of smoke.sh. This script runs in the guest, as /init of its initramfs, and
# prints TAP.

/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t debugfs debug /sys/kernel/debug
mkdir /run
ip link set lo up
echo 4 >/proc/sys/kernel/printk
mkfifo /open
n=0

# test_that WHAT COMMAND...: one test, which passes if COMMAND succeeds
test_that() {
	what=$1
	shift
	n=$((n + 1))
	if "$@" >/tmp.out 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' /tmp.out
	fi
}

# refused COMMAND...: the command must fail
refused() { ! "$@"; }

# soon COMMAND...: repeat the command until it succeeds, for at most 30 s
soon() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 60 ] || return 1
		usleep 500000
	done
}

# transfer ADDRESS [COMMAND]: send 8 MB through a connection, and count the bytes at the receiver. The
# receiver is started by COMMAND (far), if given.
transfer() {
	to=$1
	shift
	# nc ends the connection at the end of its input: give it a pipe that is open both ways.
	"$@" nc -l -p 5000 <>/open >/received &
	listener=$!
	sleep 1
	# Without a connection the receiver would wait for ever.
	dd if=/dev/zero bs=65536 count=128 2>/dev/null | nc "$to" 5000 || kill "$listener"
	wait "$listener"
	echo "received $(wc -c </received) bytes"
	[ "$(wc -c </received)" -eq $((65536 * 128)) ]
}

# Send data over IPv4 and IPv6 while trace events are recorded: each event names both ends.
traced() {
	events=/sys/kernel/tracing/events/timely
	[ -e "$events" ] || mount -t tracefs trace /sys/kernel/tracing || return 1
	echo 1 >$events/enable && transfer 127.0.0.1 && transfer ::1
	sent=$?
	echo 0 >$events/enable
	for event in timely_rtt timely_rate_set; do
		for end in 127.0.0.1 '\[::1\]'; do
			grep -q "$event: net=[0-9]* src=$end:[0-9]* dest=$end:5000 " /sys/kernel/tracing/trace || {
				echo "no event $event of $end"
				grep -m 5 timely_ /sys/kernel/tracing/trace
				return 1
			}
		done
	done
	return $sent
}

# shown NUMBER: the command with this number of test_commands() has ended, and has shown an event: a count of
# perf stat, an event of perf script, or a line of a histogram by bpftrace
shown() {
	cat "/shown.$1"
	grep -qx ended "/shown.$1" &&
		grep -qE '^ +[1-9][0-9,]* +(timely|ndp):|: timely:timely_[a-z_]*: |\) +[1-9][0-9]* \|@' "/shown.$1"
}

# stream ADDRESS [COMMAND]: send 256 KB about ten times a second while the file /streaming exists. As in
# transfer(), the receiver is started by COMMAND, if given.
stream() {
	to=$1
	shift
	"$@" nc -l -p 5000 <>/open >/dev/null &
	listener=$!
	sleep 1
	while [ -e /streaming ]; do
		dd if=/dev/zero bs=65536 count=4 2>/dev/null
		usleep 100000
	done | nc "$to" 5000 || kill "$listener"
	wait $listener
}

# ndp_many COUNT: so many connections over NDP, one after another; afterwards the module must be unloadable
ndp_many() {
	connections=0
	while [ "$connections" -lt "$1" ]; do
		ndp transfer ::1 262144 || return 1
		connections=$((connections + 1))
	done
}

# Send 256 KB each way over NDP again and again while the file /streaming exists.
stream_ndp() {
	while [ -e /streaming ]; do
		ndp transfer "$1" 262144
	done
}

# test_commands -v|-e EVENT STREAM ADDRESS [COMMAND]: test the operations manual's commands without EVENT, or
# with it, all at the same time. They end by themselves. Meanwhile stream() or stream_ndp() runs with the other
# arguments.
test_commands() {
	grep "$1" "$2" /commands >/selected
	shift 2
	test_that "the manual has such commands" [ -s /selected ]
	: >/streaming
	"$@" &
	streamer=$!
	viewers=
	number=0
	while read -r command; do
		number=$((number + 1))
		sh -c "$command && echo ended" >/shown.$number 2>&1 &
		viewers="$viewers $!"
	done </selected
	# shellcheck disable=SC2086 # a list
	wait $viewers
	rm /streaming
	wait $streamer
	number=0
	while read -r command; do
		number=$((number + 1))
		test_that "$command" shown $number
	done </selected
}

# counts NAME [DEVICE]: a counter of the qdisc is more than 0
counts() {
	qdisc stats "${2:-lo}"
	[ "$(qdisc stats "${2:-lo}" | sed -n "s/^$1=//p")" -gt 0 ]
}

# No packet is in the qdisc of lo.
is_empty() {
	sleep 1
	qdisc stats lo
	[ "$(qdisc stats lo | sed -n 's/^qlen=//p')" -eq 0 ]
}

# under_load SECONDS LEAST ROUND: run the command ROUND again and again while packets are queued and sent,
# for SECONDS; repeat that until the command has run LEAST times, which takes longer on a slow machine.
under_load() {
	rounds=0
	loads=0
	while [ $rounds -lt "$2" ] && [ $loads -lt 10 ]; do
		qdisc flood "$1" &
		flood=$!
		while kill -0 $flood 2>/dev/null && [ $rounds -lt 200 ]; do
			"$3" || return 1
			rounds=$((rounds + 1))
		done
		wait $flood || return 1
		loads=$((loads + 1))
	done
	echo "$rounds rounds in $loads loads"
	[ $rounds -ge "$2" ]
}

# Replace the qdisc by another kind, and back.
replaced() {
	qdisc set lo pfifo && qdisc set lo timely
}

# Unload both modules while their packets are under way.
reloaded() {
	rmmod tcp_timely && insmod /sch_timely.ko && insmod /tcp_timely.ko &&
		qdisc set lo timely && usleep 20000 && qdisc del lo && rmmod sch_timely
}

# Unload and load both modules under load, with another congestion control for new connections.
loaded_under_load() {
	echo reno >/proc/sys/net/ipv4/tcp_congestion_control
	under_load 10 5 reloaded && echo timely >/proc/sys/net/ipv4/tcp_congestion_control
}

# ---- NDP ----

# Both connections have ended, and no packet was damaged.
ndp_counted() {
	sleep 1
	timelyctl ndp counters
	for counter in 'opened *2' 'accepted *2' 'completed *4' 'damaged *0' 'malformed *0'; do
		timelyctl ndp counters | grep -q "^$counter " || return 1
	done
	timelyctl ndp | grep 'pull queue of lo: '
}

ndp_held() {
	ndp hold 100 &
	holder=$!
	sleep 1
	refused rmmod ndp
	held=$?
	kill $holder
	wait $holder
	return $held
}

# Ended connections are freed within a moment.
ndp_unloaded() {
	for try in 1 2 3 4 5; do
		rmmod ndp && return
		echo "try $try"
		sleep 1
	done
	return 1
}

# ---- On-Ramp to another network namespace ("far") over a veth ----

# far COMMAND...: run a command in the other namespace
far() { nsenter -t "$far" -n "$@"; }

in_other_namespace() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/$$/ns/net)" ]; }

# Create the namespace, the veth and its addresses.
far_up() {
	insmod /veth.ko && ip link add near type veth || return 1
	unshare -n sleep 1000 &
	far=$!
	# Until unshare has run, the process is in this namespace.
	soon in_other_namespace "$far" || return 1
	# The kernel chose the name of the other end.
	peer=$(ip link | sed -n 's/^.*: \(veth[0-9]*\)@near:.*/\1/p')
	ip link set "$peer" netns "$far" && far ip link set "$peer" name far &&
		far ip address add 10.7.0.2/24 dev far && far ip link set far up &&
		ip address add 10.7.0.1/24 dev near && ip link set near up
}

# Are all connections closed, except for those in TIME_WAIT, on both sides? The far end listens on an
# IPv6 socket, so its connections are listed there.
no_connections() {
	! { cat /proc/net/tcp /proc/net/tcp6 && far cat /proc/net/tcp /proc/net/tcp6; } |
		grep -E '^ *[0-9]+: [^ ]+ [^ ]+ 0[^6A]'
}

# unloaded MODULE: unload a module within 30 s, or print what may use it. The wait is needed because a
# namespace is freed some time after its end, and references its default congestion control until then.
unloaded() {
	soon rmmod "$1" && return
	echo "$1 is used by $(cat "/sys/module/$1/refcnt")"
	cat /proc/net/tcp /proc/net/tcp6
	ps
	return 1
}

# Delete the veth and the namespace when no connection is open: a connection that loses its peer would
# stay open.
far_down() {
	soon no_connections && ip link del near && kill "$far" && rmmod veth
}

# Give both ends the same key.
keys() {
	(umask 077 && timelyctl key generate >/key) || return 1
	timelyctl key add 1 /key && timelyctl key use 1 &&
		far timelyctl key add 1 /key && far timelyctl key use 1
}

# acks COUNTER: a counter of received OR-ACKs is more than 0
acks() {
	timelyctl onramp
	[ "$(timelyctl -j onramp | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p")" -gt 0 ]
}

# Unload and load the receiver and the sender while data is paused.
onramp_under_load() {
	rounds=0
	for load in 1 2; do
		transfer 10.7.0.2 far &
		loading=$!
		while kill -0 $loading 2>/dev/null; do
			rmmod timely_acker && qdisc del near && rmmod sch_timely &&
				insmod /sch_timely.ko && qdisc onramp near 1000 &&
				insmod /timely_acker.ko && far timelyctl acker add 10.7.0.0/24 ||
				return 1
			rounds=$((rounds + 1))
			usleep 50000
		done
		wait $loading || return 1
	done
	echo "$rounds rounds in $load transfers"
	[ $rounds -ge 2 ]
}

# ---- timely-clockd in both network namespaces, and chrony ----

# clockd NAME [COMMAND...]: start a daemon, by COMMAND in the other namespace
clockd() {
	name=$1
	shift
	printf '%s\n' "member 10.7.0.1-10.7.0.2" "key 1 /key" "clock system" "page /$name.page" \
		"chrony /$name.sock" >"/$name.conf"
	"$@" timely-clockd -f "/$name.conf" 2>"/$name.log" &
	daemons="$daemons $!"
}

# The real-time clocks of both namespaces are the same. chronyd may set it, but has only timely-clockd as a source.
clocks_up() {
	mkdir -p /etc && echo root:x:0:0::/: >/etc/passwd && mkdir -m 750 /run/chrony || return 1
	printf '%s\n' "refclock SOCK /near.sock refid TIME poll 0 filter 1" "port 0" "cmdport 0" \
		"bindcmdaddress /run/chrony/cmd" "pidfile /run/chrony/pid" >/chrony.conf
	chronyd -d -u root -f /chrony.conf 2>/chrony.log &
	daemons=$!
	usleep 500000
	clockd near
	clockd far nsenter -t "$far" -n
	soon timelyctl clock now page /near.page && soon timelyctl clock now page /far.page && return
	cat /near.log /far.log
	return 1
}

chrony_has_selected() { chronyc -h /run/chrony/cmd -c sources | grep '^#,\*,TIME,'; }

selects_common_time() {
	soon chrony_has_selected && chronyc -h /run/chrony/cmd sources && return
	chronyc -h /run/chrony/cmd sources
	cat /chrony.log /near.log
	return 1
}

# shellcheck disable=SC2086 # a list
clocks_down() { kill $daemons && wait $daemons; }

# ---- a trial of a control group ----

group_up() { mkdir /group && mount -t cgroup2 group /group && mkdir /group/trial /group/timed /group/other; }

# ends_by_timely COUNT: this many ends of connections use timely
ends_by_timely() { [ "$(timelyctl -j flows | grep -o '"from"' | wc -l)" -eq "$1" ]; }

# flows_of GROUP COUNT: timelyctl lists this many connections of the control group and of those below
flows_of() { [ "$(timelyctl -j flows cgroup "$1" | grep -o '"from"' | wc -l)" -eq "$2" ]; }

# group_uses GROUP COUNT: of a new connection between two processes of the control group, this many ends use timely,
# which timelyctl finds in this group and those above, and not in another one
group_uses() {
	# shellcheck disable=SC2016 # for the inner shell
	sh -c 'echo 0 >"$0/cgroup.procs" && { nc -l -p 5000 <>/open >/dev/null & } && sleep 1 &&
		exec nc 127.0.0.1 5000 <>/open >/dev/null' "$1" &
	client=$!
	sleep 2
	soon grep -q ' 0100007F:1388 01 ' /proc/net/tcp && ends_by_timely "$2" && flows_of "$1" "$2" && flows_of /group "$2" &&
		flows_of /group/other 0
	status=$?
	timelyctl flows
	kill $client
	wait $client
	soon no_established && return $status
}

no_established() { ! grep -E '^ *[0-9]+: [^ ]+ [^ ]+ 0[^6A]' /proc/net/tcp /proc/net/tcp6 -h; }

no_trial() { timelyctl trial status | grep -q "There is no trial"; }

# The trial of /group/timed ends by itself, when its minute is over. soon waits for half a minute.
trial_has_ended() { soon no_trial || soon no_trial || soon no_trial; }

# The program of a confirmed trial, PATH and number, as status shows it.
attached() { timelyctl -j trial status | grep -o "\"attached\":\[{\"cgroup\":\"$1\",\"program\":[0-9]*}\]"; }
nothing_attached() { timelyctl -j trial status | grep -qF '"attached":[]'; }

# The group of a trial is deleted.
group_is_deleted() {
	timelyctl trial cgroup /group/trial && rmdir /group/trial &&
		timelyctl trial revert | grep 'the control group, or its program, does not exist any more'
}

log_is_clean() { ! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace'; }

echo "TAP version 13"
echo "# $(uname -r), $(grep -c ^processor /proc/cpuinfo) CPUs"
test_that "load timely" insmod /timely.ko
test_that "a parameter out of range is refused" refused insmod /tcp_timely.ko alpha_ppm=0
test_that "and the kernel says what is allowed" \
	sh -c 'dmesg | grep "alpha_ppm=0 refused: allowed are 10 to 1000000"'
test_that "load tcp_timely" insmod /tcp_timely.ko
test_that "choose it as the default congestion control" sh -c 'echo timely >/proc/sys/net/ipv4/tcp_congestion_control'
test_that "8 MB over IPv4" transfer 127.0.0.1
test_that "8 MB over IPv6" transfer ::1
test_that "trace events name both ends" traced
test_that "unloading is refused while it is the default" refused rmmod tcp_timely
test_that "there is no qdisc timely yet" refused qdisc set lo timely
test_that "load sch_timely" insmod /sch_timely.ko
test_that "sch_timely becomes the root qdisc of lo" qdisc set lo timely
test_that "8 MB over sch_timely by IPv4" transfer 127.0.0.1
test_that "8 MB over sch_timely by IPv6" transfer ::1
test_commands -v 'timely_pause\|ndp:' stream 127.0.0.1
test_that "sch_timely has recorded departures" counts departures
test_that "packets with pacing rates and departure times from both CPUs" qdisc flood 5
test_that "flows have waited for their departure times" counts throttled
test_that "departure times of other clocks were counted" counts wrong_clock
test_that "no packet is stuck in the qdisc" is_empty
test_that "unloading is refused while it is in use" refused rmmod sch_timely
test_that "the qdisc is replaced again and again under load" under_load 5 10 replaced
test_that "sch_timely is the default of new devices" sh -c 'echo timely >/proc/sys/net/core/default_qdisc'
test_that "unloading is refused while it is the default" refused rmmod sch_timely
test_that "another default qdisc" sh -c 'echo pfifo_fast >/proc/sys/net/core/default_qdisc'
test_that "delete the qdisc of lo" qdisc del lo
test_that "unload sch_timely" rmmod sch_timely
test_that "load sch_trim" insmod /sch_trim.ko
test_that "sch_trim becomes the root qdisc of lo" qdisc set lo trim
test_that "8 MB over sch_trim by IPv4" transfer 127.0.0.1
test_that "8 MB over sch_trim by IPv6" transfer ::1
test_that "unloading sch_trim is refused while it is in use" refused rmmod sch_trim
test_that "delete the qdisc trim of lo" qdisc del lo
test_that "unload sch_trim" rmmod sch_trim
test_that "load the module of UDP tunnels for IPv6" insmod /ip6_udp_tunnel.ko
test_that "load the module of UDP tunnels" insmod /udp_tunnel.ko
test_that "load ndp" insmod /ndp.ko
test_that "8 MB each way over NDP by IPv4" ndp transfer 127.0.0.1 8000000
test_that "8 MB each way over NDP by IPv6" ndp transfer ::1 8000000
test_that "NDP's counters" ndp_counted
test_commands -e ndp: stream_ndp ::1
test_that "100 connections over NDP" ndp_many 100
test_that "unloading ndp is refused while there is a socket" ndp_held
test_that "unload ndp" ndp_unloaded
test_that "the modules are unloaded and loaded under load" loaded_under_load
test_that "control groups" group_up
test_that "a trial of a control group for a minute" timelyctl trial cgroup /group/timed minutes 1
test_that "another network namespace" far_up
test_that "load sch_timely again" insmod /sch_timely.ko
test_that "load timely_acker" insmod /timely_acker.ko
test_that "sch_timely becomes the qdisc of a veth, with On-Ramp" qdisc onramp near 1000
test_that "a key for both ends" keys
test_that "the receiver gets a rule for the sender's network" far timelyctl acker add 10.7.0.0/24
test_that "8 MB while flows are paused" transfer 10.7.0.2 far
test_that "OR-ACKs were accepted" acks accepted
test_that "flows got signals from OR-ACKs" counts onramp_signals near
test_that "flows were paused" counts onramp_pauses near
test_commands -e timely_pause stream 10.7.0.2 far
test_that "the receiver shows its counters" far timelyctl acker
test_that "unloading sch_timely is refused while it is in use with On-Ramp" refused rmmod sch_timely
test_that "receiver and sender are unloaded and loaded under load" onramp_under_load
test_that "delete the qdisc of the veth" qdisc del near
test_that "unload sch_timely with On-Ramp" rmmod sch_timely
test_that "unload timely_acker" rmmod timely_acker
test_that "timely-clockd of both namespaces knows the common time" clocks_up
test_that "chrony selects the common time" selects_common_time
test_that "timely-clockd and chrony end" clocks_down
test_that "delete the namespace" far_down
test_that "choose another congestion control" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
test_that "the trial of a minute has ended by itself" trial_has_ended
test_that "and its program is no longer attached" nothing_attached
test_that "new connections of its control group do not use timely" group_uses /group/timed 0
test_that "connections of another control group do not use timely" group_uses /group/trial 0
test_that "a trial of the control group" timelyctl trial cgroup /group/trial minutes 5
test_that "both ends of its connections use timely" group_uses /group/trial 2
test_that "those of other control groups do not" group_uses /group 0
test_that "a second trial is refused" refused timelyctl trial cgroup /group
test_that "trial status names the group" sh -c 'timelyctl trial status | grep "/group/trial: it ends in 2"'
test_that "the trial is reverted" timelyctl trial revert
test_that "and new connections do not use timely" group_uses /group/trial 0
test_that "a trial that is confirmed" sh -c 'timelyctl trial cgroup /group/trial && timelyctl trial confirm'
test_that "stays" group_uses /group/trial 2
test_that "trial status still names the group" attached /group/trial
test_that "the control group of a trial is deleted" group_is_deleted
test_that "unload tcp_timely" unloaded tcp_timely
test_that "unload timely" rmmod timely
test_that "the kernel's log is clean" log_is_clean
echo "1..$n"
echo "# end"
poweroff -f
