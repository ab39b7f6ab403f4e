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
test_that "choose another" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
sleep 1
test_that "unload tcp_timely" rmmod tcp_timely
test_that "unload timely" rmmod timely
test_that "the kernel's log is clean" log_is_clean
echo "1..$n"
echo "# end"
poweroff -f
