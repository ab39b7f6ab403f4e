#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timely as a replacement of fq: the same command lines, options and counters, and replacing one
# by the other under traffic. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

hosts() {
	pair_up
	load_qdisc
}

# timely accepts and shows all options of fq.
command_lines_of_fq() {
	packets <<-'EOF'
		import json
		LINES = """
		limit 1234
		flow_limit 77
		quantum 3000
		initial_quantum 30000
		quantum 4096 initial_quantum 40960
		maxrate 100mbit
		maxrate 12345680bit
		maxrate 12gbit
		buckets 4096
		buckets 1
		pacing
		nopacing
		refill_delay 100ms
		refill_delay 20ms
		orphan_mask 255
		low_rate_threshold 1mbit
		ce_threshold 5ms
		ce_threshold 300us
		timer_slack 50us
		timer_slack 0
		horizon 2s
		horizon 100us
		horizon_cap
		horizon_drop
		limit 100 flow_limit 10 buckets 64 orphan_mask 3 quantum 1514 initial_quantum 15140 maxrate 1gbit nopacing low_rate_threshold 1kbit refill_delay 10ms timer_slack 1us horizon 1ms horizon_cap ce_threshold 1ms
		"""
		def options(kind, words):
		    tc("qdisc", "replace", "dev", "eth0", "root", kind, *words)
		    return json.loads(tc("-j", "qdisc", "show", "dev", "eth0"))[0]["options"]
		lines = bad = 0
		for line in ["", *LINES.split("\n")]:
		    words = line.split()
		    if words == ["buckets", "1"]:
		        continue	# fq takes it; a logarithm of 0 is below timely's range
		    tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		    theirs = options("fq", words)
		    tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		    ours = options("timely", words)
		    lines += 1
		    for key, value in theirs.items():
		        if key not in ours or ours[key] != value:
		            bad += 1
		            say(f"'{line}': fq shows {key} {value}, timely {ours.get(key, 'nothing')}")
		result(lines=lines, bad=bad)
	EOF
	expect lines -ge 20
	expect bad -eq 0
}

counters_of_fq() {
	packets <<-'EOF'
		import json
		def counters(kind):
		    tc("qdisc", "replace", "dev", "eth0", "root", kind)
		    sink, sender = Sink(), source(rate=1000000)
		    for number in range(20):
		        sender.send(payload(number))
		    sink.take(20, 1)
		    sink.sock.close()
		    return json.loads(tc("-s", "-j", "qdisc", "show", "dev", "eth0"))[0]
		tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		theirs, ours = counters("fq"), counters("timely")
		# Since Linux 6.7 the field that tc shows as highprio has another counter.
		names = {"highprio": "fastpath"}
		missing = [key for key in theirs if key not in ours and names.get(key) not in ours]
		say("fq's:", *theirs)
		if missing:
		    say("missing:", *missing)
		result(missing=len(missing), many=len(theirs), packets=ours["packets"],
		       flows=ours.get("flows", -1), throttled=ours.get("throttled", -1))
		text = tc("-s", "qdisc", "show", "dev", "eth0")
		result(text=all(word in text for word in ("flows", "throttled")))
	EOF
	expect missing -eq 0
	expect many -ge 15 "fq shows fewer counters than it should"
	expect packets -eq 20
	expect flows -ge 1
	expect throttled -ge 1
	expect text -eq 1
}

# Every option set to another value than its default is shown with this value.
options_are_shown_as_set() {
	packets <<-'EOF'
		import json
		WANTED = {"limit": 1111, "flow_limit": 222, "quantum": 3333, "initial_quantum": 44444,
		          "pacing": False, "maxrate": 125000000, "buckets": 512, "refill_delay": 66000,
		          "orphan_mask": 127, "low_rate_threshold": 1250, "ce_threshold": 777,
		          "timer_slack": 888, "horizon": 999000, "offload_horizon": 0, "slot": 2048,
		          "split": 8192, "split_rate": 250000000, "ack_first": True, "ack_dscp": 46,
		          "ack_priority": 6, "ack_time": False, "ack_thin": False, "wrong_clock": "drop", "lazy": False,
		          "weights": [100000, 50000, 20000],
		          "priomap": [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]}
		words = """limit 1111 flow_limit 222 quantum 3333 initial_quantum 44444 nopacing
		    maxrate 1gbit buckets 512 refill_delay 66ms orphan_mask 127 low_rate_threshold 10kbit
		    ce_threshold 777us timer_slack 888 horizon 999ms horizon_cap offload_horizon 0
		    slot 2048ns split 8192 split_rate 2gbit ack_first ack_dscp 46 ack_priority 6
		    noack_time noack_thin wrong_clock drop nolazy weights 100000 50000 20000
		    bands 3 priomap 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0""".split()
		def shown():
		    return json.loads(tc("-j", "qdisc", "show", "dev", "eth0"))[0]["options"]
		tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		tc("qdisc", "replace", "dev", "eth0", "root", "handle", "5:", "timely")
		before = shown()
		tc("qdisc", "change", "dev", "eth0", "root", "timely", *words)
		seen, bad = shown(), 0
		for key, value in WANTED.items():
		    # Some flags are shown only if they differ from the default.
		    got = seen.get(key, True if value is True else False if value is False else None)
		    if got != value:
		        bad += 1
		        say(f"{key} is {seen.get(key)}, expected {value}")
		bad += "horizon_cap" not in seen
		result(bad=bad, wanted=len(WANTED), same=seen == before)
		# Changing one option leaves the others as they are.
		tc("qdisc", "change", "dev", "eth0", "root", "timely", "limit", "4321")
		changed = shown()
		others = {k: v for k, v in changed.items() if seen.get(k) != v}
		say("changed by 'limit 4321':", others)
		result(others=len(others), limit=changed["limit"])
		tc("qdisc", "change", "dev", "eth0", "root", "timely")
		result(by_nothing=shown() != changed)
	EOF
	expect wanted -ge 24
	expect bad -eq 0
	expect same -eq 0
	expect others -eq 1
	expect limit -eq 4321
	expect by_nothing -eq 0
}

# A refused change has a message of timely and leaves all options as they were.
refusals_change_nothing() {
	packets <<-'EOF'
		tc("qdisc", "replace", "dev", "eth0", "root", "timely", "limit", "777")
		before, bad = stats()["options"], 0
		for words in ("limit 0", "limit -1", "quantum 1048577", "slot 100ns", "slot 2ms",
		              "split 524289", "ack_dscp 64", "ack_priority 16", "wrong_clock maybe",
		              "weights 1 1 1", "bands 3 priomap 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3",
		              "buckets 524288", "maxrate 0", "offload_horizon 1ms", "nonsense 1", "limit"):
		    message = fails("qdisc", "change", "dev", "eth0", "root", "timely", *words.split())
		    if "timely" not in message:
		        bad += 1
		        say(f"{words}: the message is {message!r}, without \"timely\"")
		    if stats()["options"] != before:
		        bad += 1
		        say(f"{words}: the refused change has changed the options")
		result(bad=bad)
	EOF
	expect bad -eq 0
}

# timely and fq replace each other 20 times while TCP runs. No UDP packet of an unpaced socket is
# lost: it finds an empty queue and has left before the next command.
replaced_under_traffic() {
	h1_qdisc fq
	{
		echo "0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=200000 verify=1"
		echo "0	flow b from=h2 to=h1 addr=10.7.2.1 cc=cubic cap=200000 verify=1"
		echo "0	ping p from=h1 to=h2 addr=$h2_v4 for=0.5 every=0.0005"
		for step in 01 03 05 07 09 11 13 15 17 19; do
			echo "0.${step}	run tc -n h1 qdisc replace dev eth0 root timely"
			echo "0.${step}7	run tc -n h1 qdisc replace dev eth0 root fq"
		done
		echo "0.5	stop a"
		echo "0.5	stop b"
	} >"$work/plan"
	traffic <"$work/plan"
	expect a_done -eq 1
	expect a_same -eq 1
	expect b_done -eq 1
	expect b_same -eq 1
	expect p_lost -eq 0 "unpaced packets"
}

# Only the packets that wait in the old qdisc are lost: the kernel drops these for any qdisc.
replaced_with_a_queue() {
	packets <<-'EOF'
		for old, new in ("fq", "timely"), ("timely", "fq"), ("timely", "timely"):
		    tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		    tc("qdisc", "replace", "dev", "eth0", "root", "handle", "7:", old)
		    sink, sender = Sink(), source(clock=MONOTONIC)
		    for number in range(50):
		        send_at(sender, time.monotonic_ns() + 100 * MS, payload(number))
		    waiting = stats()["qlen"]
		    tc("qdisc", "replace", "dev", "eth0", "root", "handle", "8:", new)
		    for number in range(50, 90):
		        send_at(sender, time.monotonic_ns() + 50 * MS, payload(number))
		    got = sink.take(90, 1)
		    say(f"{old} by {new}: {waiting} waited, {len(got)} of 90 arrived")
		    key = f"{old}_{new}"
		    result(**{key + "_waiting": waiting, key + "_arrived": len(got),
		              key + "_late": max(p.number for p in got)})
		    sink.sock.close()
	EOF
	for pair in fq_timely timely_fq timely_timely; do
		expect ${pair}_waiting -eq 50
		expect ${pair}_arrived -eq 40
		expect ${pair}_late -eq 89
	done
}

# A change of any option keeps the queued packets and their transmit times.
change_keeps_packets() {
	packets <<-'EOF'
		CHANGES = """quantum 5000
		initial_quantum 1000
		buckets 1024
		buckets 65536
		buckets 2
		limit 500
		flow_limit 200
		refill_delay 1ms
		orphan_mask 1
		low_rate_threshold 100mbit
		ce_threshold 1s
		timer_slack 0
		horizon 20s
		horizon_cap
		lazy
		nolazy
		split 4096
		split_rate 1gbit
		ack_first
		ack_dscp 46
		ack_priority 1
		noack_time
		wrong_clock drop
		offload_horizon 0
		weights 20000 20000 20000
		bands 3 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
		nopacing
		pacing
		slot 256ns
		slot 1ms
		slot 65536ns
		slot 1024ns""".split("\n")
		tc("qdisc", "replace", "dev", "eth0", "root", "pfifo")
		tc("qdisc", "replace", "dev", "eth0", "root", "timely", "timer_slack", "0")
		sink, senders = Sink(), [source(clock=MONOTONIC) for _ in range(4)]
		begin = time.monotonic_ns() + 100 * MS
		for number in range(200):
		    txtime = begin + number * MS // 2
		    send_at(senders[number % 4], txtime, payload(number, txtime))
		for change in CHANGES:
		    tc("qdisc", "change", "dev", "eth0", "root", "timely", *change.split())
		    # Half of the changes come while packets leave.
		    time.sleep(0.006)
		got = sink.take(200, 1)
		result(arrived=len(got))
		# With the slot of a millisecond a packet may be late by a millisecond.
		errors("changed", [p.at - p.txtime for p in got])
	EOF
	expect arrived -eq 200
	expect changed_min -ge 0
	expect changed_max -le $((1048576 + 1024))
}

run_cases hosts command_lines_of_fq counters_of_fq options_are_shown_as_set \
	refusals_change_nothing replaced_under_traffic \
	replaced_with_a_queue change_keeps_packets
