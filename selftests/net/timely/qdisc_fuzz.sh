#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A million netlink messages, valid, invalid and malformed, change the qdisc's options: see
# netlink_fuzz.c. TIMELY_FUZZ_MESSAGES and TIMELY_FUZZ_SEED set the number of messages and the
# seed; a kernel with KASAN, which is 20 times slower, gets fewer by default. Topology: h1 -- h2, a
# veth pair.

. "$(dirname "$0")/qdisc_lib.sh"

zcat /proc/config.gz | grep -q '^CONFIG_KASAN=y' && kasan=1 || kasan=
messages=${TIMELY_FUZZ_MESSAGES:-$([ -n "$kasan" ] && echo 60000 || echo 1000000)}
seed=${TIMELY_FUZZ_SEED:-1}

hosts() {
	pair_up
	load_qdisc
}

fuzz() {
	ip netns exec h1 "$modules/netlink_fuzz" fuzz eth0 "$1" "$2" >"$work/fuzz"
	status=$?
	sed -n 's/^# //p' "$work/fuzz" | say_lines
	[ $status -eq 0 ] || fail "netlink_fuzz has failed: $status"
	sent=$(sed -n 's/^# \([0-9]*\) messages.*/\1/p' "$work/fuzz")
	expect sent -ge "$2"
}

a_million_messages() {
	fuzz "$seed" "$messages"
	accepted=$(sed -n 's/.* \([0-9]*\) accepted.*/\1/p' "$work/fuzz")
	explained=$(sed -n 's/.*refused, \([0-9]*\) of them.*/\1/p' "$work/fuzz")
	# Both accepted and refused messages must be frequent, or the fuzzer tests little.
	expect accepted -ge $((messages / 5))
	expect accepted -le $((messages * 9 / 10))
	expect explained -ge $((messages / 50))
}

# Messages while packets are queued and sent.
under_traffic() {
	packets <<-EOF
		sink = Sink()
		senders = [source(rate=1000000 + i) for i in range(20)] + [source(clock=MONOTONIC) for _ in range(20)]
		for sender in senders:
		    sender.setblocking(False)
		fuzzer = subprocess.Popen(["ip", "netns", "exec", "h1", "$modules/netlink_fuzz", "fuzz", "eth0",
		                           "$((seed + 1))", "$((messages / 50))", "20"], stdout=subprocess.PIPE, text=True)
		sent = 0
		while fuzzer.poll() is None:
		    for i, sender in enumerate(senders):
		        try:
		            if i < 20:
		                sender.send(payload(sent))
		            else:
		                send_at(sender, time.monotonic_ns() + i * 100000, payload(sent))
		            sent += 1
		        except OSError:
		            pass
		    time.sleep(0.001)
		got = len(sink.take(seconds=0.5))
		for line in fuzzer.stdout:
		    say(line.removeprefix("# ").rstrip())
		# Options of the last messages may delay packets by a second or two.
		left = emptied()["qlen"]
		say(sent, "packets sent meanwhile,", got, "arrived")
		result(status=fuzzer.returncode, sent=sent, got=got, left=left)
	EOF
	expect status -eq 0
	expect sent -ge 100
	expect got -ge 1
	expect left -eq 0
}

run_cases hosts a_million_messages under_traffic
