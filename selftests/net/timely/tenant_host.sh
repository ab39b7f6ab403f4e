#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Limits of a tenant, who is root in its own user and network namespaces: a tenant cannot make the
# receiver read the packets of all namespaces, its ACKs do not change counters of other namespaces,
# and it cannot write to the host's log.
# Topology: h1 -- mid -- h2, 1 Gb/s.

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

# tenant COMMAND: run by an unprivileged user in its own user and network namespaces
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

# The first rule adds a probe to a tracepoint, and deleting the last rule removes it, but only
# seconds later: a loop does not add and remove the probe each time.
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
	expect mid -eq 0 "mid has no connections"
}

# Values that a user has written are escaped in the log, so that they cannot control the terminal of
# an administrator who reads the log. Tenants cannot write to the log at all.
tenants_cannot_write_to_the_log() {
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

unload() {
	rm -rf $shared
	hosts_down
	unload_timely
}

run_cases hosts rules_need_the_host rules_in_a_loop acks_are_counted_for_their_namespace \
	tenants_cannot_write_to_the_log unload
