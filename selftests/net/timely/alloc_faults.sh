#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Each allocation of the modules is made to fail. An operation without memory is refused with ENOMEM
# and changes nothing, or succeeds with less service, as documented; afterwards everything works.
# The last case prints how often each allocation site has failed, and fails if one never has. Needs
# a kernel with fault injection: the debug kernel. Topology: h1 -- h2, a veth pair with four
# transmit queues.

. "$(dirname "$0")/onramp_lib.sh"

injection=/sys/kernel/debug

kernel_can_fail_allocations() {
	for each in failslab fail_page_alloc; do
		[ -e $injection/$each/require-start ] ||
			fail "this kernel cannot fail allocations of one function: use the debug kernel"
	done
	[ -e /proc/self/fail-nth ] || fail "this kernel has no /proc/PID/fail-nth: use the debug kernel"
	rm -f "$work/alloc_faults.counts"
}

# Run the Python lines on standard input, with alloc_faults.py imported.
faults() {
	{
		echo 'from alloc_faults import *'
		echo 'learn()'
		cat
	} >"$work/faults.plan"
	packets <"$work/faults.plan"
}

# With a second namespace, so that a failure in the second one must undo the first one. A module has
# other addresses each time it is loaded, so sites are selected by functions of the kernel.
# Allocations of namespaces are tested below. Without sysfs_slab_add(), where the kernel leaks
# memory on failure.
modules_load_or_do_not() {
	must ip netns add h1
	faults <<-'EOF'
		def loads(name, where, module="timely", **how):
		    load = insmod(module, "preset=testbed" if module == "tcp_timely" else "")
		    sweep(name, load, where, undo=lambda: rmmod(module), unchanged=loaded, **how)
		def all_of(module):
		    loads(module + "'s init", "do_one_initcall", module, but="sysfs_slab_add", kinds=SLAB + PAGES,
		          lesser=True)
		loads(("timely_flow_init: cache", "timely_onramp_flows_init: cache"), "__kmem_cache_create_args",
		      but="sysfs_slab_add", lesser=True)
		# Without memory for its initial size, a table starts smaller.
		loads(("timely_flow_init: table", "timely_onramp_flows_init: table", "timely_peer_init: table"),
		      "rhashtable_init_noprof", lesser=True)
		loads("timely_netlink_init", "genl_register_family", lesser=True)
		all_of("timely")
		assert not insmod("timely")()
		loads("tq_load: cache", "__kmem_cache_create_args", "sch_timely", but="sysfs_slab_add", lesser=True)
		all_of("sch_timely")
		loads("timely_hooks_join", "tracepoint_add_func", "tcp_timely")
		all_of("tcp_timely")
		loads("acker_load", "genl_register_family", "timely_acker", lesser=True)
		all_of("timely_acker")
		rmmod("timely")
	EOF
	must ip netns del h1
}

# The kernel allocates a chunk of percpu memory only when existing chunks are full, so these are
# used up first.
modules_load_without_percpu_memory_or_do_not() {
	must ip link set dummy0 up
	faults <<-'EOF'
		load, percpu = insmod("timely"), Percpu()
		percpu.use_up()
		say(percpu.routes, "routes use up the percpu memory")
		refused = []
		while True:
		    failures, error = attempt(load, CHUNK, loaded, times=MANY)
		    if not error:
		        break
		    refused.append(failures)
		    percpu.give(2)
		rmmod("timely")
		percpu.give(1 << 20)
		assert len(refused) >= 2, refused
		# In the first attempt the first allocation fails, in the last refused one the
		# second.
		count("tenant_net_init: counters", refused[0], 1, 1)
		count("timely's percpu memory", sum(refused[1:-1]), len(refused) - 2, len(refused) - 2)
		count("onramp_net_init: counters", refused[-1], 1, 1)
	EOF
	must ip link set dummy0 down
}

hosts() {
	[ ! -e /run/netns/h1 ] || must ip netns del h1
	(unload_timely) || exit 1
	onramp_pair 4
	load_onramp
	must insmod "$modules/tcp_timely.ko" preset=testbed
	without_keys
}

namespaces_come_or_do_not() {
	faults <<-'EOF'
		sweep("tenant_net_init: budget", new_namespace, "tenant_net_init", but="pcpu_alloc_noprof", lesser=True)
		sweep("peers_net_init", new_namespace, "peers_net_init")
		sweep("timely_net_init: setting", new_namespace, "timely_net_init", last=1)
		sweep("timely_sysctl_table", new_namespace, "timely_net_init", first=2, last=2)
		sweep("timely_net_init: sysctl", new_namespace, "timely_net_init", first=3)
		sweep("a namespace", new_namespace, TEXT, kinds=SLAB + PAGES, lesser=True)
	EOF
}

requests_are_answered_or_refused() {
	faults <<-'EOF'
		timely, acker = Family("timely", "h1"), Family("timely_acker", "h2")
		def keys():
		    return [value for kind, value in timely.ask(ONRAMP_GET)[0] if kind == A["KEY"]]
		sweep("tn_rtt_get", asked(timely, 3), "tn_rtt_get", lesser=True)
		sweep("tn_onramp_get", asked(timely, ONRAMP_GET), "tn_onramp_get", lesser=True)
		sweep("tn_limits_get", asked(timely, LIMITS_GET), "tn_limits_get", lesser=True)
		sweep("timely_onramp_walk_begin", dumped(timely, FLOW_GET), "timely_onramp_walk_begin")
		key = u8("KEY", 7)
		sweep("timely_onramp_key_set", asked(timely, KEY_SET, key + attr(A["KEY_SECRET"], bytes(range(16)))),
		      "timely_onramp_key_set", unchanged=keys, undo=lambda: timely.ask(KEY_DEL, key))

		any_source = rule("0.0.0.0/0")
		def forget_rule():
		    acker.ask(RULE_DEL, any_source)
		    # The tracepoint's probe is removed some seconds later.
		    time.sleep(6)
		add_rule = asked(acker, RULE_ADD, any_source)
		sweep("timely_acker_hooks_join", add_rule, "acker_replace", but="__kvmalloc_node_noprof",
		      undo=forget_rule, unchanged=settings, lesser=True)
		burst("acker_alloc_cpus", add_rule, "acker_replace", but="tracepoint_add_func",
		      undo=forget_rule, unchanged=settings)
		sweep("acker_copy", add_rule, "acker_copy", undo=forget_rule, unchanged=settings)
		add("10.0.0.0/8")
		sweep("acker_copy", asked(acker, ACKER_SET, u32("ACKER_EVERY", 3000)), "acker_copy", unchanged=settings)
		sweep("acker_copy", asked(acker, RULE_DEL, rule("10.0.0.0/8")), "acker_copy", unchanged=settings)
		sweep("acker_get", asked(acker, ACKER_GET), "acker_get", lesser=True)

		with inside("h1"):
		    for name, value in ("t_low_ns", b"20000"), ("preset", b"testbed"):
		        path = "/proc/sys/net/ipv4/timely/" + name
		        def read():
		            return open(path).read()
		        def write():
		            try:
		                os.write(file, value)
		            except OSError as error:
		                return error.errno
		            return 0
		        file = os.open(path, os.O_WRONLY)
		        sweep("timely_net_change", write, "timely_net_change", unchanged=read)
		        assert read().encode().strip() == value
	EOF
}

qdiscs_come_and_change_or_do_not() {
	faults <<-'EOF'
		rt = Rtnetlink()
		rt.plain()
		large = rt.qdisc(option(TCA["BUCKETS_LOG"], "I", 12), 0x500)
		with_onramp = option(TCA["ONRAMP"], "I", 50000) + option(TCA["ONRAMP_OWD"], "B", 1)
		kept = options_of()
		sweep("tq_reserve_page", large, "tq_apply", but="__kvmalloc_node_noprof", undo=rt.plain,
		      unchanged=kept, lesser=True)
		# kvcalloc() falls back to memory of single pages once.
		burst("tq_reserve_buckets", large, "tq_apply", undo=rt.plain, unchanged=kept, kinds=PAGES)
		sweep("onramp_listen", rt.qdisc(with_onramp, 0x500), "onramp_listen", undo=rt.plain,
		      unchanged=kept)
		sweep("a qdisc", rt.qdisc(with_onramp, 0x500), TEXT, undo=rt.plain, unchanged=kept,
		      kinds=SLAB + PAGES, lesser=True)
		assert not rt.qdisc(b"", 0x500)()
		slots = [rt.qdisc(option(TCA["SLOT"], "I", slot)) for slot in (2048, 1024)]
		burst("tq_prepare: wheel", slots[0], "tq_apply", undo=slots[1], unchanged=kept)
		sweep("a change", rt.qdisc(with_onramp + option(TCA["SLOT"], "I", 4096) +
		                           option(TCA["BUCKETS_LOG"], "I", 13)),
		      TEXT, undo=rt.qdisc(option(TCA["SLOT"], "I", 1024) + option(TCA["ONRAMP"], "I", 0)),
		      unchanged=kept, kinds=SLAB + PAGES, lesser=True)
		arrives()
		def default(kind):
		    with open("/proc/sys/net/core/default_qdisc", "w", encoding="ascii") as file:
		        file.write(kind)
		with open("/proc/sys/net/core/default_qdisc", encoding="ascii") as file:
		    before = file.read().strip()
		default("timely")
		rt.plain()
		sweep("mq of four", rt.qdisc(b"", 0x500, kind=b"mq"), TEXT, undo=rt.plain, unchanged=kept,
		      kinds=SLAB + PAGES, lesser=True)
		assert not rt.qdisc(b"", 0x500, kind=b"mq")()
		arrives()
		default(before)
		rt.plain()
	EOF
}

# The tracepoint is joined in a work item, which cannot refuse an operation: RTTs are used later.
rtts_are_seen_later() {
	faults <<-'EOF'
		rt = Rtnetlink()
		with_onramp = option(TCA["ONRAMP"], "I", 1000000) + option(TCA["ONRAMP_OWD"], "B", 2)
		add_qdisc = rt.qdisc(with_onramp, 0x500)
		def operate():
		    error = add_qdisc()
		    time.sleep(0.5)
		    return error
		def looked_up():
		    before = counters("h1")["rtt_lookups"]
		    transfer = Transfer(300000)
		    carry(transfer)
		    assert transfer.ok
		    return counters("h1")["rtt_lookups"] > before
		def gone():
		    assert not looked_up(), "no failure"
		    time.sleep(4)
		    assert looked_up(), "no RTT is seen once there is memory again"
		    rt.plain()
		    # The probe is removed five seconds after the last qdisc.
		    time.sleep(8)
		burst("onramp_probe_join", operate, "onramp_probe_work", undo=gone, times=(1, 2, 3))
	EOF
}

packets_go_with_less_service() {
	must ip netns add mid
	must ip -n h1 link add link eth0 name up1 netns mid type macvlan mode bridge
	must ip netns exec mid sh -c "
		echo 1 >/proc/sys/net/ipv6/conf/up1/disable_ipv6
		ip -batch - <<-EOF
			link set lo up
			address add 10.7.2.11/24 dev up1
			link set up1 up
			neighbour add 10.7.2.2 dev up1 lladdr 02:00:00:00:00:02 nud permanent
		EOF"
	faults <<-'EOF'
		rt = Rtnetlink()
		rt.plain()
		plain = rt.qdisc(b"", 0x500)
		with_onramp = rt.qdisc(option(TCA["ONRAMP"], "I", 50000) +
		                       option(TCA["ONRAMP_OWD"], "B", 1), 0x500)
		sinks = {to: Sink(addr=to, port=98) for to in (H2, "10.7.2.3", "10.7.2.4", "10.7.2.5")}
		def first(to=H2, ns="h1", count=1):
		    def operate():
		        new = [source(ns=ns, to=to, port=98, rate=10000000) for _ in range(count)]
		        for index, sock in enumerate(new):
		            sock.send(payload(index))
		        got = len(sinks[to].take(count, 1))
		        for sock in new:
		            sock.close()
		        assert got == count, f"{got} of {count} datagrams arrive"
		        return 0
		    return operate
		assert not plain()
		sweep("tq_alloc_flow", first(), "tq_alloc_flow", lesser=True)
		burst("tq_alloc_flow", first(count=20), "tq_alloc_flow")
		say(stats()["allocation_errors"], "allocation errors,", stats()["drops"], "drops")
		sweep("tq_alloc_foreign", first(ns="mid"), "tq_alloc_flow", lesser=True)
		result(errors=stats()["allocation_errors"])
		arrives()
		for times in 1, 3:
		    rt.plain()
		    assert not rt.qdisc(option(TCA["BUCKETS_LOG"], "I", 3), 0x500)()
		    burst("tq_table_reserve", first(count=700), "tq_add_flow", but="tq_alloc_flow", times=(times,))
		rt.plain()
		assert not with_onramp()
		sweep("timely_flow_new", first(), "timely_flow_new", lesser=True)
		sweep("timely_onramp_new", first(), "timely_onramp_add", but="timely_peer_get", lesser=True)
		sweep("peer_alloc", first("10.7.2.3"), "timely_peer_get", lesser=True)
		sweep("a new flow", first("10.7.2.4"), TEXT, kinds=SLAB + PAGES, lesser=True)
		burst(GROWS, first(count=1000), "bucket_table_alloc", times=(3,))
		arrives()

		# OR-ACKs are sent by the receiver and accepted by the sender.
		add("0.0.0.0/0")
		def answered(to):
		    def operate():
		        sock = source(to=to, port=98, rate=100000000)
		        for index in range(40):
		            sock.send(payload(index))
		        got = len(sinks[to].take(40, 1))
		        sock.close()
		        assert got == 40, f"{got} of 40 datagrams arrive"
		        return 0
		    return operate
		before = counters("h2")["send_errors"]
		burst("acker_build", answered(H2), "acker_build")
		assert counters("h2")["send_errors"] > before, "OR-ACKs not sent are not counted"
		sent = counters("h2")["sent"]
		burst("timely_peer_want_clock", answered("10.7.2.5"), "timely_peer_want_clock", times=(2,))
		sweep("a flow with OR-ACKs", answered("10.7.2.3"), TEXT, kinds=SLAB + PAGES, lesser=True)
		assert counters("h2")["sent"] > sent, "no OR-ACK is sent when there is memory again"
		without_rules()

		# Connections of timely, and a connection that switches to timely
		burst("timely_flow_new", lambda: TcpFlow(cc="timely").close() or 0, "timely_flow_new", times=(1, 2, 3))
		flow = TcpFlow(cc="cubic")
		def switch(cc):
		    def operate():
		        try:
		            flow.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc)
		        except OSError as error:
		            return error.errno
		        flow.send(5)
		        return 0
		    return operate
		sweep("timely_flow_new", switch(b"timely"), "timely_flow_new", undo=switch(b"cubic"), lesser=True)
		sweep("a connection's switch", switch(b"timely"), TEXT, undo=switch(b"cubic"), kinds=SLAB + PAGES,
		      lesser=True)
		flow.close()
		carry(*(transfers := [Transfer(1000000, cc="timely"), Transfer(1000000, cc="cubic")]))
		assert all(t.ok for t in transfers)
		rt.plain()
	EOF
	must ip netns del mid
	expect errors -ge 20
}

packets_leave_whole() {
	# Copies of all packets wait in another qdisc, so that their data is shared.
	must ip -n h1 -batch - <<-EOF
		link add away type dummy
		link set away up
	EOF
	must tc -n h1 qdisc add dev away root netem delay 500ms limit 100000
	faults <<-'EOF'
		rt = Rtnetlink()
		rt.plain()
		assert not rt.qdisc(option(TCA["SPLIT"], "I", 4200), 0x500)()
		def carried():
		    transfer = Transfer(1000000, rate=25000000)
		    carry(transfer)
		    assert transfer.ok
		    sink, sender = Sink(port=97), source(port=97, rate=10000000)
		    sender.setsockopt(17, 103, 1000)	# UDP_SEGMENT
		    sender.send(b"".join(payload(n) for n in range(40)))
		    got = [packet.number for packet in sink.take(40, 1)]
		    assert got == list(range(40)), f"{len(got)} of 40 datagrams arrive"
		    sink.sock.close()
		    return 0
		burst("tq_segment", carried, "tq_dequeue", but="pskb_expand_head", times=(1, 2, 3, 10, 100, 10000))
		tc("qdisc", "add", "dev", "eth0", "clsact")
		tc("filter", "add", "dev", "eth0", "egress", "matchall", "action", "mirred", "egress", "mirror",
		   "dev", "away")
		burst("tq_unshare_gso_size", carried, "tq_dequeue", but="__skb_gso_segment")
		tc("qdisc", "del", "dev", "eth0", "clsact")
		say(stats()["segment_errors"], "packets left whole,", stats()["segmented"], "were split")
		result(whole=stats()["segment_errors"], split=stats()["segmented"])
		rt.plain()
	EOF
	must ip -n h1 link del away
	expect whole -ge 10
	expect split -ge 10
}

nics_are_known_later() {
	must insmod "$modules/hwnic.ko"
	faults <<-'EOF'
		def host(*words):
		    done = subprocess.run(words, check=False, text=True, capture_output=True)
		    assert not done.returncode, done.stderr
		script = HERE + "/hw_timestamps.py"
		def create():
		    host("ip", "link", "add", "hw", "type", "hwnic")
		    for end in "hw", "hwp":
		        with open(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6", "w", encoding="ascii") as file:
		            file.write("1")
		    host(sys.executable, "-I", script, "filter", "hw", "all")
		def up():
		    for end in "hw", "hwp":
		        host("ip", "link", "set", end, "up")
		    time.sleep(0.3)
		    return 0
		known_here = Family("timely", None)
		name = attr(A["IFNAME"], b"hw\0")
		def again():
		    for end in "hw", "hwp":
		        host("ip", "link", "set", end, "down")
		    up()
		    error = known_here.refused(1, name)
		    assert not error[0], error
		    host("ip", "link", "del", "hw")
		    create()
		create()
		burst("timely_link_add", up, "timely_link_event", undo=again)
		burst("timely_nic_add: record", up, "timely_nic_update", but="timely_nic_note_napis", undo=again)
		burst("timely_nic_note_napis", up, "timely_nic_note_napis", undo=again)
		host("ip", "link", "set", "dummy0", "up")
		percpu = Percpu()
		percpu.use_up()
		burst("timely_nic_add: batches", up, CHUNK, times=(MANY,))
		assert known_here.refused(1, name)[0] == errno.ENOENT, "a NIC without memory is known"
		percpu.give(1 << 20)
		again()
		host("ip", "link", "set", "dummy0", "down")
		up()
		sweep("tn_nic_get", asked(known_here, 1, name), "tn_nic_get", lesser=True)
		host("ip", "link", "del", "hw")
	EOF
	must rmmod hwnic
}

every_site_was_failed() {
	faults <<-'EOF'
		report()
	EOF
	expect sites -ge 40
	expect strangers -eq 0 "calls that allocate and are not in SITES of alloc_faults.py"
	expect gone -eq 0 "entries of SITES that are not in the source"
	expect never -eq 0 "entries of SITES that have not failed"
}

if [ -e $injection/fail_page_alloc/require-start ]; then
	run_cases kernel_can_fail_allocations modules_load_or_do_not \
		modules_load_without_percpu_memory_or_do_not hosts namespaces_come_or_do_not \
		requests_are_answered_or_refused qdiscs_come_and_change_or_do_not rtts_are_seen_later \
		packets_go_with_less_service packets_leave_whole nics_are_known_later every_site_was_failed
else
	run_cases kernel_can_fail_allocations
fi
