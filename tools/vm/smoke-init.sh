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

# 8 MB through a connection, counted at its end.
transfer() {
	# An end of its input would make it hang up: a pipe open both ways.
	nc -l -p 5000 <>/hold >/received &
	listener=$!
	sleep 1
	dd if=/dev/zero bs=65536 count=128 2>/dev/null | nc "$1" 5000
	wait "$listener"
	echo "received $(wc -c </received) bytes"
	[ "$(wc -c </received)" -eq $((65536 * 128)) ]
}

# counts NAME: the qdisc's counter is not 0
counts() {
	qdisc stats lo
	[ "$(qdisc stats lo | sed -n "s/^$1=//p")" -gt 0 ]
}

is_empty() {
	sleep 1
	qdisc stats lo
	[ "$(qdisc stats lo | sed -n 's/^qlen=//p')" -eq 0 ]
}

# Another kind and back while packets wait and leave.
replaced_under_load() {
	qdisc flood 5 &
	flood=$!
	rounds=0
	while kill -0 $flood 2>/dev/null && [ $rounds -lt 200 ]; do
		qdisc set lo pfifo && qdisc set lo timely || return 1
		rounds=$((rounds + 1))
	done
	wait $flood || return 1
	echo "$rounds rounds"
	[ $rounds -ge 10 ]
}

# Both that have something to unload, while their packets are under way.
loaded_under_load() {
	echo reno >/proc/sys/net/ipv4/tcp_congestion_control
	qdisc flood 10 &
	flood=$!
	rounds=0
	while kill -0 $flood 2>/dev/null && [ $rounds -lt 100 ]; do
		rmmod tcp_timely && insmod /sch_timely.ko && insmod /tcp_timely.ko &&
			qdisc set lo timely && usleep 20000 && qdisc del lo &&
			rmmod sch_timely || return 1
		rounds=$((rounds + 1))
	done
	wait $flood || return 1
	echo "$rounds rounds"
	[ $rounds -ge 5 ] && echo timely >/proc/sys/net/ipv4/tcp_congestion_control
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
test_that "it is replaced again and again under load" replaced_under_load
test_that "it is the default of new devices" sh -c 'echo timely >/proc/sys/net/core/default_qdisc'
test_that "unloading is refused while it is the default" refused rmmod sch_timely
test_that "another default" sh -c 'echo pfifo_fast >/proc/sys/net/core/default_qdisc'
test_that "delete it" qdisc del lo
test_that "unload sch_timely" rmmod sch_timely
test_that "the modules come and go under load" loaded_under_load
test_that "choose another" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
sleep 1
test_that "unload tcp_timely" rmmod tcp_timely
test_that "unload timely" rmmod timely
test_that "the kernel's log is clean" log_is_clean
echo "1..$n"
echo "# end"
poweroff -f
