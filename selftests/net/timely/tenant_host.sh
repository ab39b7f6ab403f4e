#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What a tenant, root in user and network namespaces of its own, may not do to the host: put
# a probe on the packets of all namespaces, read what the host counts, write to its log.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc unshare setpriv

ctl=$modules/timelyctl
shared=/dev/shm/timely-tenant
sysctls=/proc/sys/net/ipv4/timely

hosts() {
	hosts_up "rate 1gbit delay 10us"
	h1_qdisc fq
	load_timely $gig
	must insmod "$modules/timely_acker.ko"
	must mkdir -p $shared
	must cp "$ctl" $shared/timelyctl
	must chmod -R a+rx $shared
}

# A user without any privilege, in network and user namespaces of its own.
# tenant COMMAND
tenant() {
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all unshare -Urn sh -c "$1"
}

tenants() { echo "$1" >/sys/module/timely/parameters/tenants; }

rules_need_the_host() {
	tenants 0
	refused tenant "$shared/timelyctl acker add 10.0.0.0/8"
	grep -q 'tenants=1' "$work/refused" || {
		say_lines <"$work/refused"
		fail "the refusal does not say what to do"
	}
	tenants 1
	must tenant "$shared/timelyctl acker add 10.0.0.0/8 && $shared/timelyctl acker del 10.0.0.0/8"
	tenants 0
	must ip netns exec h2 "$ctl" acker add 10.0.0.0/8
	must ip netns exec h2 "$ctl" acker del 10.0.0.0/8
}

# Each rule is the first one, or the last: the probe stays where it is, for some seconds.
rules_in_a_loop() {
	must ip netns exec h2 sh -c "for i in \$(seq 20); do
		$ctl acker add 10.0.0.0/8 && $ctl acker del 10.0.0.0/8 || exit 1
	done"
	sleep 6
	must ip netns exec h2 "$ctl" acker add 10.0.0.0/8
	must rmmod timely_acker
	must insmod "$modules/timely_acker.ko"
}

# counted NAMESPACE: ACKs whose RTT was measured by the driver's timestamp
counted() {
	must ip netns exec "$1" "$ctl" -j rtt
	"$python" -I -c 'import json, sys; print(json.load(open(sys.argv[1]))["driver"])' "$work/must"
}

acks_are_counted_for_their_namespace() {
	transfers_arrive
	h1=$(counted h1)
	mid=$(counted mid)
	expect h1 -ge 100
	expect mid -eq 0 "no connection of timely ends there"
}

# The terminal of who reads the log obeys escape sequences.
the_log_is_the_host_s() {
	printf 'x\033[2Jy' >"$work/bytes"
	refused sh -c "cat $work/bytes >$sysctls/preset"
	klog >"$work/klog-now"
	grep -qF 'preset=x\e[2Jy refused' "$work/klog-now" || {
		tail -n 3 "$work/klog-now" | say_lines
		fail "not logged, or not escaped"
	}
	lines=$(grep -c refused "$work/klog-now")
	refused tenant "echo nonsense >$sysctls/preset"
	refused tenant "echo -7 >$sysctls/t_low_ns"
	klog >"$work/klog-now"
	after=$(grep -c refused "$work/klog-now")
	expect after -eq "$lines" "a tenant writes to the host's log"
}

goodbye() {
	rm -rf $shared
	hosts_down
	unload_timely
}

run_cases hosts rules_need_the_host rules_in_a_loop acks_are_counted_for_their_namespace \
	the_log_is_the_host_s goodbye
