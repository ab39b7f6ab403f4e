#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Kernel memory of flows. After half a million sockets all of it is freed within ten seconds; a
# memory control group limits the memory of its sockets; a network namespace that has used up its
# budgets does not affect another one on the same qdisc. Topology: h1 -- h2, a veth pair, and
# namespaces behind macvlans of h1's device.

. "$(dirname "$0")/onramp_lib.sh"

cgroups=$work/cgroup
parameters=/sys/module/timely/parameters
# An address that no host has
nobody=10.7.2.99

# Number of sockets that exist at the same time. The next ones reuse memory of earlier ones; the
# last ones' memory must be freed.
chunk=25000

# On the debug kernel a socket takes ten times as long, and the checkers keep freed memory for some
# time (KASAN's quarantine, kmemleak), so the limit of memory is larger there.
rounds=10
slack_kb=1024
if [ -w /sys/kernel/debug/kmemleak ]; then
	rounds=1
	slack_kb=8192
fi

storm() { ip netns exec h1 "$modules/many_sockets" "$@"; }

# Print the kernel's memory, kB, after shrinking caches that keep empty slabs.
memory_kb() {
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
	awk '/^(Slab|Percpu|KernelStack|PageTables):/ { kb += $2 } END { print kb }' /proc/meminfo
}

# Print the number of objects in h1's budgets: queues, flow entries, On-Ramp's states of flows. (The
# kernel may merge slab caches of equal size, so /proc/slabinfo does not tell.)
objects() {
	ip netns exec h1 "$modules/timelyctl" -j limits >"$work/limits"
	"$python" -I -c 'import json, sys
limits = json.load(open(sys.argv[1]))
print(sum(limits[name]["used"] for name in ("queues", "flows", "onramp_flows")))' "$work/limits"
}

expect_no_objects() {
	left=$(objects)
	expect left -eq 0 "objects are left"
}

hosts() {
	onramp_pair 4
	load_onramp
	must insmod "$modules/tcp_timely.ko" preset=testbed
	without_keys
	must ip -n h1 neighbour replace $nobody dev eth0 lladdr 02:00:00:00:00:99
	must ip netns exec h1 sh -c 'echo 1024 65000 >/proc/sys/net/ipv4/ip_local_port_range'
	must mkdir "$cgroups"
	must mount -t cgroup2 none "$cgroups"
	echo +memory >"$cgroups/cgroup.subtree_control"
}

# comes_back QDISC...: UDP and TCP sockets, nine to one, leave no objects and little memory. A
# smaller run before lets the kernel's own tables and caches grow.
comes_back() {
	h1_qdisc "$@"
	must storm udp $nobody $chunk $chunk 100
	must storm tcp 10.7.2.2 5000 5000 100 h2 timely
	h1_qdisc "$@"
	sleep 20
	before=$(memory_kb)
	must storm udp $nobody $((rounds * 45000)) $chunk 100
	grep -q '^failed=0' "$work/must" || fail "UDP: $(cat "$work/must")"
	must storm tcp 10.7.2.2 $((rounds * 5000)) 5000 100 h2 timely
	grep -q '^failed=0' "$work/must" || fail "TCP: $(cat "$work/must")"
	made=$(objects)
	at_end=$(memory_kb)
	sleep 10
	after=$(memory_kb)
	left=$(objects)
	more=$((after - before))
	say "$*: $((rounds * 50000)) sockets; at their end $made objects, $((at_end - before)) kB more;" \
		"10 s later $left objects, $more kB more"
	expect made -ge $chunk
	expect left -eq 0
	expect more -lt $slack_kb
}

memory_comes_back() {
	comes_back timely
}

memory_comes_back_with_onramp() {
	comes_back timely onramp 50us owd relative
}

# slab_of GROUP: print the bytes of kernel objects that are charged to the control group
slab_of() { awk '$1 == "slab" { print $2 }' "$cgroups/$1/memory.stat"; }

# within GROUP COMMAND...: run the command in the control group
within() {
	group=$1
	shift
	# shellcheck disable=SC2016 # for the inner shell
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cgroups/$group" "$@"
}

# charged_under QDISC...: set $charged to the bytes that 5000 sockets add to their control group
charged_under() {
	h1_qdisc "$@"
	must mkdir "$cgroups/tenant"
	within tenant ip netns exec h1 "$modules/many_sockets" udp $nobody 5000 5000 3000 >"$work/storm" 2>&1 &
	sleep 1
	charged=$(slab_of tenant)
	wait $! || fail "many_sockets: $(cat "$work/storm")"
	sleep 10
	left=$(slab_of tenant)
	must rmdir "$cgroups/tenant"
	expect left -lt 300000 "bytes are still charged"
}

charged_to_the_sender() {
	charged_under pfifo
	plain=$charged
	charged_under timely onramp 50us owd relative
	each=$(((charged - plain) / 5000))
	say "with timely and On-Ramp a UDP socket's group is charged $each bytes more"
	# A queue, a flow entry and On-Ramp's state.
	expect each -ge 4800
	expect each -le 6500
}

# peers_charged OWD NET: set $charged to the bytes that sockets to 200 addresses of 10.9.NET.0/24,
# which all answer with OR-ACKs, add to their control group
peers_charged() {
	h1_qdisc timely onramp 50us owd "$1"
	cat >"$work/peers.py" <<-EOF
		import socket, time
		socks = []
		for number in range(1, 201):
		    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    sock.connect((f"10.9.$2.{number}", 9))
		    socks.append(sock)
		for _ in range(3):
		    for sock in socks:
		        sock.send(bytes(1000))
		    time.sleep(0.1)
		time.sleep(3)
	EOF
	must mkdir "$cgroups/tenant"
	within tenant ip netns exec h1 "$python" -I "$work/peers.py" >"$work/storm" 2>&1 &
	sleep 2
	charged=$(slab_of tenant)
	wait $!
	[ ! -s "$work/storm" ] || fail "$(cat "$work/storm")"
	must rmdir "$cgroups/tenant"
}

# Also the mapping of a peer's clock, for relative delays, is charged to the sender, although an
# OR-ACK causes its allocation.
mappings_are_charged_to_the_sender() {
	ctl h2 acker add any
	must ip -n h2 route add local 10.9.0.0/16 dev lo
	must ip -n h1 route add 10.9.0.0/16 via 10.7.2.2
	ip netns exec h2 "$python" -I -c '
import socket, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 9))
time.sleep(15)' &
	sleep 0.5
	peers_charged absolute 0
	without=$charged
	peers_charged relative 1
	wait
	each=$(((charged - without) / 200))
	say "a mapping of a peer's clock charges $each bytes"
	expect each -ge 7000
	expect each -le 12000
	ctl h2 acker del any
}

# A control group with little memory limits the number of its sockets, and so of TIMELY's objects.
contained_in_a_group() {
	h1_qdisc timely onramp 50us owd relative
	must mkdir "$cgroups/tenant"
	echo 48M >"$cgroups/tenant/memory.max"
	within tenant ip netns exec h1 "$modules/many_sockets" udp $nobody 50000 50000 100 >"$work/storm" 2>&1
	made=$(objects)
	peak=$(cat "$cgroups/tenant/memory.peak")
	kills=$(awk '$1 == "oom_kill" { print $2 }' "$cgroups/tenant/memory.events")
	say "limit 48 MB: at most $((peak >> 20)) MB used, $made objects left at its end, $kills killed"
	expect kills -ge 1
	expect peak -le $((50 << 20))
	# Each socket has three objects.
	expect made -ge 3000
	expect made -le 30000
	sleep 10
	expect_no_objects
	must rmdir "$cgroups/tenant"
}

# Two network namespaces send through h1's qdisc, each by a macvlan.
tenants_up() {
	for nr in 1 2; do
		must ip netns add t$nr
		must ip -n h1 link add link eth0 name up$nr netns t$nr type macvlan mode bridge
		must ip netns exec t$nr sh -c "
			echo 1 >/proc/sys/net/ipv6/conf/up$nr/disable_ipv6
			ip -batch - <<-EOF
				link set lo up
				address add 10.7.2.1$nr/24 dev up$nr
				link set up$nr up
				neighbour add 10.7.2.2 dev up$nr lladdr 02:00:00:00:00:02 nud permanent
			EOF"
	done
}

tenants_down() {
	must ip netns del t1
	must ip netns del t2
}

set_limits() {
	for pair; do
		echo "${pair#*=}" >"$parameters/max_${pair%%=*}"
	done
}

# tenant_plan: run the Python lines on standard input with helpers: sockets that send packets of
# 1000 bytes at 1 MB/s, and how late packets are compared with even spacing.
tenant_plan() {
	{
		cat <<-'EOF'
			import json
			RATE, SIZE = 1000000, 1000
			INTERVAL = on_the_wire(SIZE) * S // RATE
			def limits(ns):
			    return json.loads(ctl(ns, "-j", "limits"))
			def open_all(ns, count, first):
			    return [(first + i, source(ns=ns, rate=RATE)) for i in range(count)]
			def send_all(senders, packets):
			    for _ in range(packets):
			        for number, sender in senders:
			            sender.send(payload(number, 0, SIZE))
			def times(got, senders):
			    at = {number: [] for number, _ in senders}
			    for packet in got:
			        if packet.number in at:
			            at[packet.number].append(packet.at)
			    return list(at.values())
			def worst(all_times):
			    return max(max(lateness(sorted(t), INTERVAL, len(t))) for t in all_times)
		EOF
		cat
	} >"$work/tenants.plan"
	onramp <"$work/tenants.plan"
}

# The first namespace has used up all its budgets; the second one is not affected.
a_full_budget_affects_only_its_namespace() {
	h1_qdisc timely onramp 50us owd relative limit 100000
	tenants_up
	set_limits queues=100 flows=80 onramp_flows=60
	tenant_plan <<-'EOF'
		sink = Sink()
		few = open_all("t2", 20, 0)
		send_all(few, 50)
		alone = times(sink.take(20 * 50, 2), few)
		time.sleep(10)
		many = open_all("t1", 300, 1000)
		send_all(many, 1)
		time.sleep(0.05)
		send_all(many, 1)
		send_all(few, 50)
		time.sleep(0.01)
		t1, t2, h1 = limits("t1"), limits("t2"), limits("h1")
		watched = len(flows_of("t2"))
		got = sink.take(20 * 50 + 600, 5)
		beside, crowd = times(got, few), times(got, many)
		say("namespace 1:", t1)
		say("namespace 2:", t2)
		result(alone=sum(map(len, alone)), alone_late=worst(alone), beside=sum(map(len, beside)),
		       beside_late=worst(beside), crowd=sum(map(len, crowd)), watched=watched,
		       shared=stats()["shared_packets"])
		for name in "queues", "flows", "onramp_flows":
		    result(**{"t1_" + name: t1[name]["used"], "t1_refused_" + name: t1[name]["refused"],
		              "t2_" + name: t2[name]["used"], "t2_refused_" + name: t2[name]["refused"],
		              "h1_" + name: h1[name]["used"]})
		time.sleep(10)
		t1, t2 = limits("t1"), limits("t2")
		result(left=sum(t[name]["used"] for t in (t1, t2) for name in ("queues", "flows", "onramp_flows")))
	EOF
	set_limits queues=1048576 flows=65536 onramp_flows=65536
	expect t1_queues -eq 100
	expect t1_flows -le 80
	expect t1_onramp_flows -eq 60
	expect t1_refused_queues -ge 200
	expect t1_refused_onramp_flows -ge 40
	expect shared -ge 200
	expect crowd -eq 600 "packets that arrive, also of flows that share a queue"
	for name in queues flows onramp_flows; do
		expect t2_$name -eq 20
		expect t2_refused_$name -eq 0
		expect h1_$name -eq 0
	done
	expect watched -eq 20
	expect alone -eq 1000
	expect beside -eq 1000
	expect beside_late -le $((alone_late + 20000)) "ns, beside a namespace with 300 flows"
	expect left -eq 0
	tenants_down
}

# With all budgets 0, TCP has no flow entries, queues and On-Ramp states, but still works.
budgets_of_zero() {
	h1_qdisc timely onramp 50us owd relative
	set_limits queues=0 flows=0 onramp_flows=0
	packets <<-'EOF'
		transfers = [Transfer(4000000, rate=20000000), Transfer(4000000, cc="timely")]
		carry(*transfers)
		result(ok=all(t.ok for t in transfers))
		result(**{"took_ms_" + str(i): t.took // MS for i, t in enumerate(transfers)})
	EOF
	set_limits queues=1048576 flows=65536 onramp_flows=65536
	expect ok -eq 1
	# 4 MB at 20 MB/s, by TCP's departure times.
	expect took_ms_0 -ge 190
	expect took_ms_0 -le 300
	expect took_ms_1 -le 2000
}

limits_are_checked() {
	for value in -1 1073741825 4294967296 many; do
		refused sh -c "echo $value >$parameters/max_flows"
	done
	grep -qx 65536 "$parameters/max_flows" || fail "max_flows has changed"
	set_limits flows=1073741824
	set_limits flows=65536
	ctl h2 limits
	grep -q '^queues .*per-flow queues' "$work/must" || fail "timelyctl limits: $(cat "$work/must")"
	# Every user may read the limits of the own namespace.
	must ip netns exec h2 setpriv --reuid=65534 --clear-groups "$modules/timelyctl" limits
}

# The qdisc is changed, reset, replaced and deleted while it frees idle flows.
qdisc_goes_while_it_frees() {
	for how in "qdisc replace dev eth0 root timely buckets 1024 limit 20000" \
		"qdisc replace dev eth0 root pfifo" "qdisc del dev eth0 root" down; do
		for wait in 0.3 3.2 0.5; do
			h1_qdisc timely onramp 50us owd relative buckets 8
			must storm udp $nobody 3000 3000 100
			sleep $wait
			if [ "$how" = down ]; then
				must ip -n h1 link set eth0 down
				must ip -n h1 link set eth0 up
			else
				# shellcheck disable=SC2086 # words
				must tc -n h1 $how
			fi
		done
	done
	must ip -n h1 neighbour replace 10.7.2.2 dev eth0 lladdr 02:00:00:00:00:02
	must ip -n h1 neighbour replace $nobody dev eth0 lladdr 02:00:00:00:00:99
	sleep 8
	expect_no_objects
}

# Idle flows are freed also below htb, which dequeues from a class only while it knows of packets.
frees_in_a_class() {
	must tc -n h1 -batch - <<-EOF
		qdisc replace dev eth0 root handle 1: htb default 1
		class add dev eth0 parent 1: classid 1:1 htb rate 10gbit
		qdisc add dev eth0 parent 1:1 handle 2: timely
	EOF
	must storm udp $nobody 2000 2000 0
	made=$(objects)
	expect made -ge 2000
	sleep 8
	expect_no_objects
	# The class's qdisc is replaced while it frees flows.
	must storm udp $nobody 2000 2000 0
	sleep 3.1
	must tc -n h1 qdisc replace dev eth0 parent 1:1 handle 3: pfifo
	must tc -n h1 qdisc replace dev eth0 root pfifo
	expect_no_objects
}

# Below mq, the qdisc of each transmit queue frees its flows.
frees_under_mq() {
	must tc -n h1 -batch - <<-EOF
		qdisc replace dev eth0 root handle 1: mq
		qdisc replace dev eth0 parent 1:1 timely buckets 8
		qdisc replace dev eth0 parent 1:2 timely buckets 8
		qdisc replace dev eth0 parent 1:3 timely buckets 8
		qdisc replace dev eth0 parent 1:4 timely buckets 8
	EOF
	must storm udp $nobody 8000 8000 0
	packets <<-EOF
		busy = [q for q in qdiscs("h1").values() if q.get("flows", 0) > 1000]
		result(busy=len(busy), buckets=max(q["buckets_log"] for q in busy))
	EOF
	expect busy -eq 4
	expect buckets -ge 10
	sleep 8
	expect_no_objects
	packets <<-EOF
		all_four = [q for q in qdiscs("h1").values() if q["kind"] == "timely"]
		result(count=len(all_four), flows=sum(q["flows"] for q in all_four),
		       buckets=max(q["buckets_log"] for q in all_four))
	EOF
	expect count -eq 4
	expect flows -eq 0
	expect buckets -eq 3
}

# The module is unloaded while the work item that frees flows is pending.
unloaded_while_it_frees() {
	h1_qdisc timely onramp 50us owd relative
	must storm udp $nobody 5000 5000 0
	sleep 3.1
	must tc -n h1 qdisc del dev eth0 root
	must rmmod timely_acker sch_timely
	must insmod "$modules/sch_timely.ko"
	must insmod "$modules/timely_acker.ko"
	sleep 2
}

# Allocations fail while sockets are opened and closed; afterwards everything works as before.
without_memory() {
	failslab=/sys/kernel/debug/failslab
	[ -d $failslab ] || {
		say "skipped: this kernel has no failslab"
		return
	}
	h1_qdisc timely onramp 50us owd relative
	echo N >$failslab/ignore-gfp-wait
	echo 0 >$failslab/verbose
	echo -1 >$failslab/times
	echo 97 >$failslab/interval
	echo 100 >$failslab/probability
	storm udp $nobody 5000 500 10 >"$work/storm" 2>&1
	storm tcp 10.7.2.2 500 50 10 h2 timely >>"$work/storm" 2>&1
	echo 0 >$failslab/probability
	sleep 8
	expect_no_objects
	must storm udp $nobody 500 500 0
	sleep 8
	expect_no_objects
}

unload() {
	must umount "$cgroups"
	hosts_down
	unload_timely
}

run_cases hosts memory_comes_back memory_comes_back_with_onramp charged_to_the_sender \
	mappings_are_charged_to_the_sender contained_in_a_group a_full_budget_affects_only_its_namespace budgets_of_zero limits_are_checked \
	qdisc_goes_while_it_frees frees_in_a_class frees_under_mq unloaded_while_it_frees \
	without_memory unload
