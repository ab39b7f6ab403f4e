#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The guest's side of smoke.sh: /init of its initramfs.

/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
ip link set lo up
echo 4 >/proc/sys/kernel/printk
mkfifo /hold
n=0

# test WHAT COMMAND...: TAP for a command that should succeed
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

refused() { ! "$@"; }

# soon COMMAND...: within half a minute
soon() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 60 ] || return 1
		usleep 500000
	done
}

# 8 MB through a connection, counted at its end.
# transfer ADDRESS [FAR...]: the command that runs another where the address is
transfer() {
	to=$1
	shift
	# An end of its input would make it hang up: a pipe open both ways.
	"$@" nc -l -p 5000 <>/hold >/received &
	listener=$!
	sleep 1
	dd if=/dev/zero bs=65536 count=128 2>/dev/null | nc "$to" 5000
	wait "$listener"
	echo "received $(wc -c </received) bytes"
	[ "$(wc -c </received)" -eq $((65536 * 128)) ]
}

# counts NAME [DEVICE]: the qdisc's counter is not 0
counts() {
	qdisc stats "${2:-lo}"
	[ "$(qdisc stats "${2:-lo}" | sed -n "s/^$1=//p")" -gt 0 ]
}

is_empty() {
	sleep 1
	qdisc stats lo
	[ "$(qdisc stats lo | sed -n 's/^qlen=//p')" -eq 0 ]
}

# under_load SECONDS LEAST ROUND: a command again and again while packets wait and leave,
# for so many seconds at a time; a slow machine needs several for its LEAST rounds.
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

# Another kind and back.
replaced() {
	qdisc set lo pfifo && qdisc set lo timely
}

# Both that have something to unload, while their packets are under way.
reloaded() {
	rmmod tcp_timely && insmod /sch_timely.ko && insmod /tcp_timely.ko &&
		qdisc set lo timely && usleep 20000 && qdisc del lo && rmmod sch_timely
}

loaded_under_load() {
	echo reno >/proc/sys/net/ipv4/tcp_congestion_control
	under_load 10 5 reloaded && echo timely >/proc/sys/net/ipv4/tcp_congestion_control
}

# ---- On-Ramp: here and another namespace, joined by a veth ----

far() { nsenter -t "$far" -n "$@"; }

far_up() {
	insmod /veth.ko && ip link add near type veth || return 1
	unshare -n sleep 1000 &
	far=$!
	# The kernel has named the other end.
	peer=$(ip link | sed -n 's/^.*: \(veth[0-9]*\)@near:.*/\1/p')
	ip link set "$peer" netns "$far" && far ip link set "$peer" name far &&
		far ip address add 10.7.0.2/24 dev far && far ip link set far up &&
		ip address add 10.7.0.1/24 dev near && ip link set near up
}

# None but what waits for its time to be over, on either side. The far one listens by
# IPv6, and what it accepts is there.
no_connections() {
	! { cat /proc/net/tcp /proc/net/tcp6 && far cat /proc/net/tcp /proc/net/tcp6; } |
		grep -E '^ *[0-9]+: [^ ]+ [^ ]+ 0[^6A]'
}

# Namespaces go by and by, and each has a default of its own. What was in the way?
unloaded() {
	soon rmmod "$1" && return
	echo "$1 is used by $(cat "/sys/module/$1/refcnt")"
	cat /proc/net/tcp /proc/net/tcp6
	ps
	return 1
}

# Once all has been sent, as connections without a peer stay.
far_down() {
	soon no_connections && ip link del near && kill "$far" && rmmod veth
}

# Both ends have the same one.
keys() {
	(umask 077 && timelyctl key generate >/key) || return 1
	timelyctl key add 1 /key && timelyctl key use 1 &&
		far timelyctl key add 1 /key && far timelyctl key use 1
}

# acks COUNTER: what became of OR-ACKs
acks() {
	timelyctl onramp
	[ "$(timelyctl -j onramp | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p")" -gt 0 ]
}

# The receiver and the sender go and come while data is held.
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

log_is_clean() { ! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace'; }

echo "TAP version 13"
echo "# $(uname -r), $(grep -c ^processor /proc/cpuinfo) CPUs"
test_that "load timely" insmod /timely.ko
test_that "a parameter out of range is refused" refused insmod /tcp_timely.ko alpha_ppm=0
test_that "and the kernel says what is allowed" \
	sh -c 'dmesg | grep "alpha_ppm=0 refused: allowed are 10 to 1000000"'
test_that "load tcp_timely" insmod /tcp_timely.ko
test_that "choose it" sh -c 'echo timely >/proc/sys/net/ipv4/tcp_congestion_control'
test_that "8 MB over IPv4" transfer 127.0.0.1
test_that "8 MB over IPv6" transfer ::1
test_that "unloading is refused while it is the default" refused rmmod tcp_timely
test_that "there is no qdisc timely yet" refused qdisc set lo timely
test_that "load sch_timely" insmod /sch_timely.ko
test_that "it becomes the root qdisc of lo" qdisc set lo timely
test_that "8 MB over it by IPv4" transfer 127.0.0.1
test_that "8 MB over it by IPv6" transfer ::1
test_that "it has recorded departures" counts departures
test_that "paced and stamped packets from both CPUs" qdisc flood 5
test_that "flows have waited for their time" counts throttled
test_that "other clocks' stamps were noticed" counts wrong_clock
test_that "nothing is stuck in it" is_empty
test_that "unloading is refused while it is in use" refused rmmod sch_timely
test_that "it is replaced again and again under load" under_load 5 10 replaced
test_that "it is the default of new devices" sh -c 'echo timely >/proc/sys/net/core/default_qdisc'
test_that "unloading is refused while it is the default" refused rmmod sch_timely
test_that "another default" sh -c 'echo pfifo_fast >/proc/sys/net/core/default_qdisc'
test_that "delete it" qdisc del lo
test_that "unload sch_timely" rmmod sch_timely
test_that "the modules come and go under load" loaded_under_load
test_that "another network namespace" far_up
test_that "load sch_timely again" insmod /sch_timely.ko
test_that "load timely_acker" insmod /timely_acker.ko
test_that "it becomes the qdisc of a veth, with On-Ramp" qdisc onramp near 1000
test_that "a key for both ends" keys
test_that "the receiver is told from where" far timelyctl acker add 10.7.0.0/24
test_that "8 MB while flows are held" transfer 10.7.0.2 far
test_that "OR-ACKs were heard" acks accepted
test_that "flows were judged by them" counts onramp_signals near
test_that "and held" counts onramp_pauses near
test_that "the receiver has counted them" far timelyctl acker
test_that "unloading sch_timely is refused while it holds" refused rmmod sch_timely
test_that "receiver and sender come and go under load" onramp_under_load
test_that "delete it" qdisc del near
test_that "unload sch_timely with On-Ramp" rmmod sch_timely
test_that "unload timely_acker" rmmod timely_acker
test_that "the namespace goes" far_down
test_that "choose another" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
test_that "unload tcp_timely" unloaded tcp_timely
test_that "unload timely" rmmod timely
test_that "the kernel's log is clean" log_is_clean
echo "1..$n"
echo "# end"
poweroff -f
