#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The fuzzers of netlink and sysctls, run by a tenant: an unprivileged user who is root in its own
# user and network namespaces. No message of the tenant changes the host's settings or writes to the
# host's log. Topology: a veth pair in the tenant's namespace.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc unshare setpriv

ctl=$modules/timelyctl
shared=/dev/shm/timely-tenant-fuzz
messages=${TIMELY_FUZZ_MESSAGES:-4000}
seed=${TIMELY_FUZZ_SEED:-1}

hosts() {
	load_timely
	must insmod "$modules/sch_timely.ko"
	must insmod "$modules/timely_acker.ko"
	# netlink_fuzz needs a large receive buffer.
	echo 16777216 >/proc/sys/net/core/rmem_max
	must mkdir -p $shared
	must cp "$modules/netlink_fuzz" "$here/timelyctl_genl.py" "$here/onramp_genl.py" \
		"$here/tenant_fuzz.py" "$here/../../../include/uapi/linux/timely.h" $shared
	must chmod -R a+rX $shared
	must chmod a+x $shared/netlink_fuzz
	must "$ctl" key add 3 - <<-END
		$key
	END
	must "$ctl" key use 3
	state_of_host >"$work/host"
}

key=000102030405060708090a0b0c0d0e0f

# Print the settings of the initial network namespace, which a tenant must not change, without
# counters.
state_of_host() {
	for each in onramp "onramp flows" acker nic; do
		# shellcheck disable=SC2086 # words
		echo "$each: $("$ctl" -j $each 2>&1 | sed 's/"counters": *{[^}]*}//')"
	done
	grep -r . /proc/sys/net/ipv4/timely /sys/module/timely/parameters
	tc qdisc show
}

# tenant COMMAND: run as a tenant with a device d0; the host's settings must stay the same
tenant() {
	klog_lines=$(klog | wc -l)
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all unshare -Urn sh -c "
		ip link set lo up &&
		ip link add d0 type veth peer name d1 &&
		ip link set d0 up && ip link set d1 up && $1" >"$work/tenant" 2>&1 || {
		tail -n 20 "$work/tenant" | say_lines
		fail "as a tenant: $1"
	}
	sed -n 's/^# //p' "$work/tenant" | say_lines
	state_of_host >"$work/host-now"
	cmp -s "$work/host" "$work/host-now" || {
		diff "$work/host" "$work/host-now" | say_lines
		fail "the host's settings have changed: $1"
	}
	klog | tail -n +$((klog_lines + 1)) | grep -E 'timely: .*refused' >"$work/refusals" || return 0
	head -n 5 "$work/refusals" | say_lines
	fail "a tenant writes to the host's log: $1"
}

python_of_tenant="$python -I $shared"

qdisc_options() {
	tenant "$shared/netlink_fuzz fuzz d0 $seed $((messages * 5))"
}

nic_settings() {
	tenant "$python_of_tenant/tenant_fuzz.py nic $seed $((messages / 2)) \$(ip -o link show d0 | cut -d: -f1)"
}

onramp_settings() {
	tenant "$python_of_tenant/onramp_genl.py fuzz $seed $((messages / 2)) may"
}

acker_settings() {
	tenant "$python_of_tenant/tenant_fuzz.py acker $seed $((messages / 2)) may-not"
	echo 1 >/sys/module/timely/parameters/tenants
	state_of_host >"$work/host"
	tenant "$python_of_tenant/tenant_fuzz.py acker $seed $((messages / 2)) may"
	echo 0 >/sys/module/timely/parameters/tenants
	state_of_host >"$work/host"
}

sysctls() {
	tenant "$python_of_tenant/tenant_fuzz.py sysctl $seed $((messages / 2))"
}

# A privileged process writes a request to a netlink socket that a tenant has opened. (A tenant may
# redirect the output of a privileged program to such a socket.) The kernel checks the privileges of
# the tenant, too, so the request is refused.
no_deputy() {
	for what in rule rtt; do
		must timeout 10 "$python" -I $shared/tenant_fuzz.py deputy $what
		say "$(cat "$work/must")"
		grep -q "^EPERM .*timely.tenants=1" "$work/must" ||
			fail "$what: the request by a tenant's socket was not refused"
	done
}

unload() {
	rm -rf $shared
	must "$ctl" onramp unauthenticated off
	unload_timely
}

run_cases hosts qdisc_options nic_settings onramp_settings acker_settings sysctls no_deputy unload
