#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# On-Ramp's receiver and the qdisc trim: packets of TCP that a switch has trimmed are answered with
# OR-ACKs at once, and their data are sent again without a timeout.
# Topology: h1 -- mid -- h2. The link to h2 has 10 Gb/s and the qdisc trim with eight packets; h1
# sends faster, so several connections of h1 are an incast.

. "$(dirname "$0")/onramp_lib.sh"

dscp=48

hosts() {
	[ -e "$modules/sch_trim.ko" ] || fail "no sch_trim.ko in $modules"
	must insmod "$modules/sch_trim.ko"
	hosts_up "delay 10us" "delay 10us"
	must tc -n mid qdisc replace dev to2 root handle 1: tbf rate 10gbit burst 1600 limit 10000000
	TC_LIB_DIR="$modules" must tc -n mid qdisc replace dev to2 parent 1:1 trim trimmable any header_limit 1000000
	load_onramp
	must insmod "$modules/tcp_timely.ko"
	new_qdisc timely onramp 50us owd relative
	onramp <<-'END'
		add_key(1, SECRET)
		for ns in "h1", "h2":
		    ctl(ns, "key", "use", "1")
		ctl("h2", "acker", "add", "any")
	END
}

cat >"$work/incast.py" <<-'EOF'
	def tcp_counters(ns="h1"):
	    with inside(ns):
	        text = open("/proc/self/net/netstat").read() + open("/proc/self/net/snmp").read()
	    lines = [line.split() for line in text.splitlines()]
	    return {name: int(value) for names, values in zip(lines[::2], lines[1::2])
	            for name, value in zip(names[1:], values[1:])}

	# All connections send SIZE bytes at the same time.
	def incast(count, size, cc="cubic", addr=H2, rounds=3):
	    before, oracks, answered = tcp_counters(), counters(), counters("h2")
	    last = []
	    whole = 1
	    for _ in range(rounds):
	        flows = [Transfer(size, cc=cc, addr=addr) for _ in range(count)]
	        time.sleep(0.05)
	        began = time.monotonic_ns()
	        for flow in flows:
	            flow.began = began
	        carry(*flows, seconds=20)
	        whole &= all(flow.ok for flow in flows)
	        last.append(max(flow.took or 20 * S for flow in flows) // 1000)
	    after = tcp_counters()
	    last.sort()
	    h1, h2 = grown(oracks, counters()), grown(answered, counters("h2"))
	    result(whole=whole, last_us=last[rounds // 2], worst_us=last[-1],
	           timeouts=after["TCPTimeouts"] - before["TCPTimeouts"],
	           probes=after["TCPLossProbes"] - before["TCPLossProbes"],
	           spurious=after["TCPDSACKRecv"] - before["TCPDSACKRecv"],
	           retrans=after["RetransSegs"] - before["RetransSegs"],
	           trimmed=h2.get("trimmed", 0), limited=h2.get("send_limited", 0), refused=h2.get("trimmed_refused", 0), repairs=h1.get("repairs", 0),
	           accepted=h1.get("accepted_trimmed", 0), malformed=h1.get("malformed", 0))
	    say("h1", h1, "h2", h2)
EOF

# incast COUNT BYTES CC [ADDRESS]
incast() {
	{
		cat "$work/incast.py"
		echo "incast($1, $2, '$3', '${4:-$h2_v4}')"
	} >"$work/incast.plan"
	onramp <"$work/incast.plan"
	say "$* trimmed DSCP $now: last $last_us us (worst $worst_us), ideal $(($1 * $2 * 8 / 9400)) us, timeouts $timeouts, loss probes $probes, retransmissions $retrans, spurious $spurious, trimmed $trimmed, accepted $accepted, repairs $repairs"
	expect whole -eq 1
}

bridge() {
	now=$1
	ctl h2 acker set trimmed "$1" rate 100000000
}

# Short answers: without OR-ACKs about trimmed packets TCP waits for timeouts, with them for the link.
requests() {
	for cc in cubic timely; do
		bridge 0
		incast 40 2048 $cc
		expect timeouts -ge 10
		expect trimmed -eq 0
		bridge $dscp
		incast 40 2048 $cc
		expect trimmed -ge 50
		expect repairs -ge 20
		expect timeouts -eq 0
		expect malformed -eq 0
		expect refused -eq 0
		expect limited -eq 0
		expect worst_us -le 400
	done
}

ipv6() {
	bridge $dscp
	incast 40 2048 cubic "$h2_v6"
	expect repairs -ge 20
	expect timeouts -eq 0
	expect worst_us -le 400
}

long_answers() {
	for shape in "40 20000" "8 1000000"; do
		for on in 0 $dscp; do
			bridge $on
			# shellcheck disable=SC2086 # two words
			incast $shape cubic
		done
		expect repairs -ge 20
	done
}

# The receiver's module, and then the sender's qdisc, are removed while packets are trimmed.
unload_under_load() {
	bridge $dscp
	for what in "rmmod timely_acker" "tc -n h1 qdisc del dev eth0 root"; do
		onramp <<-END
			flows = [Transfer(2000000, cc="cubic") for _ in range(20)]
			calls = []
			def meanwhile():
			    calls.append(0)
			    if len(calls) == 20:
			        subprocess.run("$what".split(), check=True)
			carry(*flows, seconds=20, meanwhile=meanwhile)
			result(whole=int(all(flow.ok for flow in flows)), calls=len(calls))
		END
		expect calls -ge 20
		expect whole -eq 1 "after $what"
	done
}

run_cases hosts requests ipv6 long_answers unload_under_load
