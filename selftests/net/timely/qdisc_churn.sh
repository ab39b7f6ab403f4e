#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# One process creates, changes, replaces and deletes the qdisc ten thousand times by netlink, while
# TCP and UDP pass through it. Topology: h1 -- h2, a veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

rounds=10000

hosts() {
	pair_up
	load_qdisc
}

# churn ROUNDS PAUSE_US: ROUNDS changes, with a pause after each one, while TCP and UDP are sent
churn() {
	packets <<-EOF
		sink = Sink()
		senders = [source(rate=1000000 + i) for i in range(10)] + [source(clock=MONOTONIC) for _ in range(10)]
		plain = source()
		for sender in senders:
		    sender.setblocking(False)
		churn = subprocess.Popen(["ip", "netns", "exec", "h1", "$modules/netlink_fuzz", "churn", "eth0",
		                          "7", "$1", "$2"], stdout=subprocess.PIPE, text=True)
		transfers = [Transfer(1 << 40, rate=20000000), Transfer(1 << 40, rate=5000000, cc="reno"),
		             Transfer(1 << 40, "h2", "h1", H1, rate=20000000)]
		sent = rounds = 0
		def meanwhile():
		    global sent, rounds
		    rounds += 1
		    for i, sender in enumerate(senders):
		        try:
		            if i < 10:
		                sender.send(payload(sent))
		            else:
		                send_at(sender, time.monotonic_ns() + i * 20000, payload(sent))
		            sent += 1
		        except OSError:
		            pass
		    time.sleep(0.0005)
		    if churn.poll() is not None:
		        # The last options may be so slow that the transfers would not end in time.
		        if not any(t.over for t in transfers):
		            subprocess.run("tc -n h1 qdisc replace dev eth0 root pfifo".split(), check=True)
		        for t in transfers:
		            t.size = t.sent
		            if t.took is None and t.sent == t.size and not t.over:
		                t.over = True
		                t.sender.shutdown(socket.SHUT_WR)
		for t in transfers:
		    t.over = False
		carry(*transfers, meanwhile=meanwhile, seconds=200, wait=0.001)
		for line in churn.stdout:
		    say(line.removeprefix("# ").rstrip())
		got = len(sink.take(seconds=0.3))
		say("TCP carried", *(t.got for t in transfers), "bytes; of", sent, "datagrams", got, "arrived")
		result(status=churn.wait(), ok=all(t.ok for t in transfers), least=min(t.got for t in transfers),
		       sent=sent, got=got)
	EOF
	expect status -eq 0
	expect ok -eq 1 "TCP's data has been changed"
	expect least -ge 10000
	expect sent -ge 200
	expect got -ge 100
}

ten_thousand_times() {
	churn $rounds 20
}

# Without a pause between the messages.
one_thousand_times_without_pauses() {
	churn 1000 0
}

works_afterwards() {
	h1_qdisc timely
	packets <<-'EOF'
		sink, sender = Sink(), source(rate=1000000)
		for number in range(50):
		    sender.send(payload(number, 0, 958))
		got = sink.take(50, 1)
		result(arrived=len(got), left=stats()["qlen"])
	EOF
	expect arrived -eq 50
	expect left -eq 0
}

unloads_afterwards() {
	must tc -n h1 qdisc del dev eth0 root
	must rmmod sch_timely
	must rmmod timely
}

run_cases hosts ten_thousand_times one_thousand_times_without_pauses works_afterwards \
	unloads_afterwards
