#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Limits, ECN marks, round robin and weights of bands, and counters: each packet has left, is queued
# or was dropped, and the counters agree. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	pair_up
	load_qdisc
}

flow_limit() {
	h1_qdisc timely timer_slack 0 flow_limit 50
	packets <<-'EOF'
		sink, full, other = Sink(), source(clock=MONOTONIC), source(clock=MONOTONIC)
		due = time.monotonic_ns() + 20 * MS
		for number in range(80):
		    send_at(full, due, payload(number, 0, 958))
		for number in range(20):
		    send_at(other, due, payload(1000 + number, 0, 958))
		queued = stats()
		got = sink.take(100, 0.2)
		after = stats()
		result(arrived=len(got), first=sum(p.number < 50 for p in got), qlen=queued["qlen"],
		       backlog=queued["backlog"], drops=after["drops"], plimit=after["flows_plimit"],
		       bands=sum(queued[f"band_pkt_count_{i}"] for i in range(3)), left=after["qlen"],
		       backlog_left=after["backlog"], packets=after["packets"], bytes=after["bytes"],
		       bands_left=sum(after[f"band_pkt_count_{i}"] for i in range(3)))
	EOF
	expect arrived -eq 70
	expect first -eq 50 "not the first of the flow"
	expect qlen -eq 70
	expect backlog -eq 70000
	expect bands -eq 70
	expect drops -eq 30
	expect plimit -eq 30
	expect left -eq 0
	expect backlog_left -eq 0
	expect bands_left -eq 0
	expect packets -eq 70
	expect bytes -eq 70000
}

# The limit applies to each band: priorities 6, 0 and 1 map to bands 0, 1 and 2.
limit_of_a_band() {
	h1_qdisc timely timer_slack 0 limit 30 flow_limit 1000
	packets <<-'EOF'
		sink, before = Sink(), stats()
		due = time.monotonic_ns() + 20 * MS
		for priority, count in (6, 40), (0, 50), (1, 60):
		    sender = source(clock=MONOTONIC, priority=priority)
		    for number in range(count):
		        send_at(sender, due, payload(priority))
		queued, got = stats(), sink.take(150, 0.2)
		after = stats()
		for band, priority in enumerate((6, 0, 1)):
		    result(**{f"band_{band}": sum(p.number == priority for p in got),
		              f"drops_{band}": after[f"band_drops_{band}"],
		              f"queued_{band}": queued[f"band_pkt_count_{band}"]})
		result(drops=after["drops"], left=after["qlen"])
	EOF
	for band in 0 1 2; do
		expect band_$band -eq 30
		expect queued_$band -eq 30
		expect drops_$band -eq $((band * 10 + 10))
	done
	expect drops -eq 60
	expect left -eq 0
}

# ECN-capable packets that wait longer than ce_threshold are marked, other packets are not. The
# parent, tbf, peeks at packets before it dequeues them.
ce_threshold() {
	h1_qdisc handle 1: tbf rate 80mbit burst 2000 limit 10000000
	must tc -n h1 qdisc replace dev eth0 parent 1:1 handle 10: timely ce_threshold 5ms flow_limit 1000
	packets <<-'EOF'
		sink, able, not_able = Sink(), source(tos=2), source(tos=0)
		sent = time.monotonic_ns()
		for number in range(100):
		    able.send(payload(number, 0, 958))
		    not_able.send(payload(1000 + number, 0, 958))
		got = sink.take(200, 1)
		seen = next(q for q in qdiscs("h1").values() if q["kind"] == "timely")
		marked = [p for p in got if p.tos & 3 == 3]
		late = [p for p in got if p.number < 1000 and p.at - sent > 5.3 * MS]
		early = [p for p in got if p.number < 1000 and p.at - sent < 4.7 * MS]
		result(arrived=len(got), marked=len(marked), late=len(late), early=len(early),
		       late_marked=sum(p.tos & 3 == 3 for p in late),
		       early_marked=sum(p.tos & 3 == 3 for p in early),
		       others=sum(p.tos for p in got if p.number >= 1000), counted=seen["ce_mark"],
		       packets=seen["packets"], left=seen["qlen"], backlog=seen["backlog"])
	EOF
	expect arrived -eq 200
	expect late -ge 50
	expect late_marked -eq "$late"
	expect early -ge 20
	expect early_marked -eq 0
	expect others -eq 0 "not ECN-capable, but marked"
	expect counted -eq "$marked"
	expect packets -eq 200
	expect left -eq 0
	expect backlog -eq 0
}

# Deficit round robin: on a slow link flows with small and with large packets get the same number
# of bytes, and bands get shares by their weights.
round_robin_is_fair() {
	h1_qdisc handle 1: tbf rate 80mbit burst 2000 limit 10000000
	must tc -n h1 qdisc replace dev eth0 parent 1:1 handle 10: timely limit 100000 flow_limit 10000
	packets <<-'EOF'
		sink, sizes = Sink(), (158, 458, 958, 1458)
		senders = [source() for _ in sizes]
		for number in range(6000):
		    for index, size in enumerate(sizes):
		        if number * size < 1000000:
		            senders[index].send(payload(index, 0, size))
		got = sink.take(seconds=0.2)
		# The first quanta are larger.
		shares = [sum(on_the_wire(len(p.data)) for p in got[100:] if p.number == i) for i in range(4)]
		say("bytes of flows with small and large packets:", *shares)
		result(most=max(shares), least=min(shares))
	EOF
	expect least -ge 300000
	expect most -le $((least * 103 / 100 + 4000))
	h1_qdisc handle 1: tbf rate 80mbit burst 2000 limit 10000000
	must tc -n h1 qdisc replace dev eth0 parent 1:1 handle 10: timely limit 100000 flow_limit 10000 \
		weights 60000 40000 20000
	packets <<-'EOF'
		sink = Sink()
		senders = [source(priority=priority) for priority in (6, 0, 1)]
		for number in range(2000):
		    for index, sender in enumerate(senders):
		        sender.send(payload(index, 0, 958))
		got = sink.take(seconds=0.2)
		shares = [sum(p.number == i for p in got) for i in range(3)]
		say("packets of bands with weights 3, 2, 1:", *shares)
		result(first=shares[0] * 1000 // shares[2], second=shares[1] * 1000 // shares[2])
	EOF
	expect_near first 3000 10
	expect_near second 2000 10
}

# A lower limit takes effect at once; packets beyond it are dropped and counted.
limit_lowered() {
	h1_qdisc timely timer_slack 0 flow_limit 1000
	packets <<-'EOF'
		sink, sender = Sink(), source(clock=MONOTONIC)
		due = time.monotonic_ns() + 300 * MS
		for number in range(100):
		    send_at(sender, due, payload(number, 0, 958))
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "limit", "40")
		queued = stats()
		got = sink.take(100, 1)
		after = stats()
		result(arrived=len(got), qlen=queued["qlen"], backlog=queued["backlog"],
		       drops=after["drops"], left=after["qlen"], backlog_left=after["backlog"],
		       bands=sum(after[f"band_pkt_count_{i}"] for i in range(3)))
	EOF
	expect arrived -eq 40
	expect qlen -eq 40
	expect backlog -eq 40000
	expect drops -eq 60
	expect left -eq 0
	expect backlog_left -eq 0
	expect bands -eq 0
}

# Idle flows are freed when new flows come; a flow with queued packets is kept.
idle_flows_are_freed() {
	h1_qdisc timely buckets 2 orphan_mask 4294967295
	packets <<-'EOF'
		sink, waiting = Sink(), source(clock=MONOTONIC)
		with inside("h1"):
		    many = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		many.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", MONOTONIC, 0))
		def flows(first, count):
		    """A packet to each of COUNT ports, which are flows of one unconnected socket."""
		    for port in range(first, first + count):
		        txtime = struct.pack("=Q", time.monotonic_ns() + 5 * MS)
		        many.sendmsg([b"x"], [(socket.SOL_SOCKET, SCM_TXTIME, txtime)], 0, (H2, port))
		for number in range(5):
		    send_at(waiting, time.monotonic_ns() + 9 * S, payload(number))
		flows(1000, 500)
		early = stats()
		most = 0
		for step in range(1, 20):
		    time.sleep(4)
		    flows(1000 + step * 500, 500)
		    most = max(most, stats()["flows"])
		late, got = stats(), sink.take(5, 1)
		say("of 10000 flows at most", most, "existed,", late["gc_flows"], "were freed")
		result(early=early["flows"], most=most, gone=late["gc_flows"], arrived=len(got),
		       drops=late["drops"], errors=late["allocation_errors"])
	EOF
	expect early -ge 500
	expect arrived -eq 5
	expect gone -ge 5000
	expect most -le 5000
	expect drops -eq 0
	expect errors -eq 0
}

# 300 flows with random packets: afterwards the counters agree, and queues and backlog are empty.
counters_agree() {
	for options in "" "$exact maxrate 100mbit" "lazy split 8192 ack_first" "limit 300 flow_limit 7"; do
		h1_qdisc timely $options
		packets <<-'EOF'
			rng, sink = random.Random(5), Sink()
			senders = [source(clock=MONOTONIC) if i % 3 else source(rate=100000 + i * 1000) for i in range(300)]
			for number in range(3000):
			    sender = rng.choice(senders)
			    data = payload(number, 0, rng.randrange(50, 1400))
			    try:
			        if rng.random() < 0.5:
			            send_at(sender, time.monotonic_ns() + rng.randrange(100 * MS), data)
			        else:
			            sender.send(data)
			    except OSError:
			        # This socket has no SO_TXTIME.
			        sender.send(data)
			middle = stats()
			got = sink.take(3000, 20, quiet=2)
			after = stats()
			result(waiting=middle["qlen"], arrived=len(got), drops=after["drops"], packets=after["packets"],
			       left=after["qlen"], backlog=after["backlog"],
			       of_drops=after["flows_plimit"] + sum(after[f"band_drops_{i}"] for i in range(3)) +
			       after["horizon_drops"] + after["wrong_clock_drops"] + after["allocation_errors"],
			       bands=sum(after[f"band_pkt_count_{i}"] for i in range(3)),
			       busy=after["flows"] - after["inactive_flows"], throttled=after["throttled_flows"],
			       bytes=after["bytes"] - sum(on_the_wire(len(p.data)) for p in got))
			say("waited", middle["qlen"], "arrived", len(got), "dropped", after["drops"])
		EOF
		expect waiting -ge 100
		expect arrived -eq $((3000 - drops)) "$options"
		expect of_drops -eq "$drops" "drops that no detailed counter has: $options"
		expect packets -eq "$arrived"
		expect bytes -eq 0
		expect left -eq 0
		expect backlog -eq 0
		expect bands -eq 0
		expect busy -eq 0
		expect throttled -eq 0
		case $options in
		limit*) expect drops -ge 100 ;;
		*) expect drops -eq 0 ;;
		esac
	done
}

# Below classful qdiscs: the counters of parent and child agree, also when a change drops packets.
below_classful_qdiscs() {
	for parent in "prio" "htb default 1" "tbf rate 80mbit burst 2000 limit 1000000" "netem delay 100us limit 1000"; do
			h1_qdisc handle 1: $parent
		case $parent in
		htb*) must tc -n h1 class add dev eth0 parent 1: classid 1:1 htb rate 80mbit ;;
		esac
		class=1:1
		[ "$parent" != prio ] || class=1:2
		must tc -n h1 qdisc replace dev eth0 parent $class handle 10: timely flow_limit 1000
		packets <<-'EOF'
			sink, sender, paced = Sink(), source(), source(rate=1000000)
			for number in range(100):
			    sender.send(payload(number, 0, 958))
			    paced.send(payload(number, 0, 958))
			tc("qdisc", "change", "dev", "eth0", "handle", "10:", "parent",
			   next(h for h in ("1:2", "1:1") if h in tc("qdisc", "show", "dev", "eth0")), "timely", "limit", "80")
			both = qdiscs("h1")
			root = both[0xffffffff]
			child = next(q for q in both.values() if q["kind"] == "timely")
			got = sink.take(200, 1)
			both = qdiscs("h1")
			result(qlen=root["qlen"] - child["qlen"], waiting=child["qlen"], arrived=len(got),
			       left=both[0xffffffff]["qlen"], child_left=next(q for q in both.values() if q["kind"] == "timely")["qlen"],
			       drops=next(q for q in both.values() if q["kind"] == "timely")["drops"])
		EOF
		expect arrived -eq $((200 - drops)) "under $parent"
		expect left -eq 0 "under $parent"
		expect child_left -eq 0 "under $parent"
		case $parent in
		netem*) ;;
		*)	expect waiting -ge 50
			expect qlen -eq 0 "the parent $parent has another queue length" ;;
		esac
	done
}

run_cases hosts flow_limit limit_of_a_band ce_threshold round_robin_is_fair limit_lowered \
	idle_flows_are_freed counters_agree below_classful_qdiscs
