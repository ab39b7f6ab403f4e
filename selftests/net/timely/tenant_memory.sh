#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What sockets cost the host's memory: half a million of them come and go, and ten
# seconds later the memory is as it was; a memory control group contains what its
# sockets cost; a network namespace that has used up its budgets leaves another one on
# the same qdisc unaffected.

. "$(dirname "$0")/onramp_lib.sh"

cgroups=$work/cgroup
parameters=/sys/module/timely/parameters

# That many exist at a time. Their memory is used again by the next, which is another
# case than sockets that die for good; both are here.
chunk=25000

# On the debug kernel a socket takes ten times as long.
rounds=10
[ ! -w /sys/kernel/debug/kmemleak ] || rounds=1

storm() { ip netns exec h1 "$modules/many_sockets" "$@"; }

# Of the kernel's memory in kB, with caches shrunk that keep empty slabs.
memory_kb() {
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
	awk '/^(Slab|Percpu|KernelStack|PageTables):/ { kb += $2 } END { print kb }' /proc/meminfo
}

# Objects of ours that are in use.
objects() {
	awk '/^timely_(flow|record|onramp) / { n += $2 } END { print n + 0 }' /proc/slabinfo
}

hosts() {
	onramp_pair
	load_onramp
	must insmod "$modules/tcp_timely.ko" preset=testbed
	without_keys
	ip netns exec h1 sysctl -qw net.ipv4.ip_local_port_range="1024 65000"
	must mkdir "$cgroups"
	must mount -t cgroup2 none "$cgroups"
	echo +memory >"$cgroups/cgroup.subtree_control"
	mount -t debugfs none /sys/kernel/debug 2>/dev/null || :
}

# UDP and TCP, nine to one.
come_and_go() {
	must storm udp 10.7.2.2 $((rounds * 45000)) $chunk 100
	grep -q '^failed=0' "$work/must" || say_lines <"$work/must"
	must storm tcp 10.7.2.2 $((rounds * 5000)) 5000 100 h2 timely
	grep -q '^failed=0' "$work/must" || fail "TCP: $(cat "$work/must")"
}

# The second time the kernel's own tables and caches have the size that sockets take.
# comes_back QDISC...
comes_back() {
	h1_qdisc "$@"
	must storm udp 10.7.2.2 $chunk $chunk 100
	must storm tcp 10.7.2.2 5000 5000 100 h2 timely
	h1_qdisc "$@"
	sleep 20
	before=$(memory_kb)
	come_and_go
	peak=$(objects)
	sleep 10
	after=$(memory_kb)
	left=$(objects)
	more=$((after - before))
	say "$*: $((rounds * 50000)) sockets, $peak objects at their end; 10 s later $left and $more kB more"
	expect left -eq 0
	expect more -lt 1024
}

memory_comes_back() {
	comes_back timely
}

memory_comes_back_with_onramp() {
	comes_back timely onramp 50us owd relative
}

run_cases hosts memory_comes_back memory_comes_back_with_onramp
