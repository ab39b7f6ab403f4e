#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The trace events of NDP: packets, repairs and paths, each with the addresses of its connection.
# Topology: h1 -- mid -- h2; the link to h2 has 10 Gb/s.

. "$(dirname "$0")/ndp_lib.sh"

events=$tracing/events/ndp
# The directory of tc's plugin for trim
export TC_LIB_DIR="$modules"

# record EVENT[=FILTER]...: empty the trace, and record these events if the kernel's filter selects them
record() {
	echo 0 >$events/enable
	: >$tracing/trace
	for event; do
		case $event in
		*=*)	echo "${event#*=}" >"$events/${event%%=*}/filter" ;;
		*)	echo 0 >"$events/$event/filter" ;;
		esac
		echo 1 >"$events/${event%%=*}/enable"
	done
}

# count_events REGEX: sets $count to the number of events that match
count_events() {
	count=$(grep -c -- "$1" $tracing/trace)
}

# As ndp() of ndp_lib.sh. The Python lines can also use off(), which ends the recording: the end of the
# lines closes the sockets, which sends further packets.
traced() {
	{
		cat <<-EOF
			def off():
			    with open("$events/enable", "w") as file:
			        file.write("0")
		EOF
		cat
	} >"$work/lines"
	ndp <"$work/lines"
}

# seen REGEX: the trace has an event that matches
seen() {
	count_events "$1"
	[ "$count" -gt 0 ] || {
		grep -o 'ndp_.*' $tracing/trace | tail -n 5 | say_lines
		fail "no trace event matches: $1"
	}
}

hosts() {
	must insmod "$modules/sch_trim.ko"
	ndp_hosts
	tracing_up
}

# Both ends see each packet, with their own address first.
packets_of() {
	record ndp_sent ndp_received
	traced <<-EOF
		client, server = pair("$1")
		same, _ = move([Flow(client, server, data(100000), end=False)])
		time.sleep(0.01)
		off()
		result(same=same, port=client.getsockname()[1], sent=info(client)["sent"], got=info(server)["received"],
		       pulled=info(client)["pulled"])
	EOF
	expect same -eq 1
	seen "ndp_sent: net=[1-9][0-9]* src=$2:$port dest=$3:5000 type=DATA seq=0 credits=1 path=[0-9]* tries=0 length=1 flags=0x[0-9a-f]* trimmed=0$"
	count_events "ndp_sent: .* src=$2:$port .* type=DATA "
	[ "$count" -eq "$sent" ] || fail "$count events for $sent sent packets"
	count_events "ndp_received: .* src=$3:5000 dest=$2:$port type=DATA "
	[ "$count" -eq "$got" ] || fail "$count events for $got received packets"
	seen "ndp_received: .* src=$2:$port dest=$3:5000 type=ACK seq=0 "
	# The last number of granted credits is the number of pulls, in the events of either end.
	for event in "ndp_sent: .* src=$3:5000" "ndp_received: .* src=$2:$port"; do
		granted=$(grep "$event" $tracing/trace | grep -E 'type=(ACK|NACK|PULL) ' |
			sed 's/.* credits=\([0-9]*\) .*/\1/' | sort -n | tail -n 1)
		[ "$granted" -eq "$pulled" ] || fail "$granted credits instead of $pulled: $event"
	done
}

packets() {
	packets_of 10.7.2.2 10.7.1.2 10.7.2.2
	seen "ndp_received: .* type=COOKIE "
	packets_of fd07:2::2 '\[fd07:1::2\]' '\[fd07:2::2\]'
	packets_of ::ffff:10.7.2.2 10.7.1.2 10.7.2.2
}

# The kernel's filters choose types of packets and connections.
filters() {
	record "ndp_sent=type == 2 && dport == 1" "ndp_received=type == 1 && sport == 5000"
	ndp <<-'EOF'
		client, server = pair()
		move([Flow(client, server, data(100000))])
	EOF
	echo 0 >$events/enable
	seen "ndp_received: .* type=DATA "
	count_events 'ndp_sent:\|ndp_received: .* type=ACK'
	[ "$count" -eq 0 ] || fail "$count events that the filter does not choose"
}

# Without events that are switched on nothing is recorded.
off() {
	record
	ndp <<-'EOF'
		client, server = pair()
		move([Flow(client, server, data(100000))])
	EOF
	count_events ndp_
	[ "$count" -eq 0 ] || fail "$count events"
}

# The kernel's event of dropped packets does not show packets that were read, nor ACKs and PULLs.
no_drops() {
	: >$tracing/trace
	echo 1 >$tracing/events/skb/kfree_skb/enable
	ndp <<-'EOF'
		client, server = pair()
		result(same=move([Flow(client, server, data(100000))])[0], received=info(server)["received"])
	EOF
	echo 0 >$tracing/events/skb/kfree_skb/enable
	expect same -eq 1
	expect received -ge 70
	count_events 'kfree_skb: .* protocol=2048 '
	expect count -le 5 "each end receives about 70 packets"
}

# trims OPTION...: the link to h2 has a qdisc trim, and h1 sends faster than this link
trims() {
	must tc -n mid qdisc replace dev to1 root netem limit 10000 delay 10us
	must tc -n mid qdisc replace dev to2 root handle 1: tbf rate 10gbit burst 1600 limit 10000000
	must tc -n mid qdisc replace dev to2 parent 1:1 trim "$@"
}

# Nine connections at once overload the link.
incast() {
	traced <<-'EOF'
		listener = listen()
		pairs = [pair(listener=listener) for _ in range(9)]
		same, _ = move([Flow(c, s, data(40000), end=False) for c, s in pairs])
		time.sleep(0.01)
		off()
		sent, got = [info(c) for c, _ in pairs], [info(s) for _, s in pairs]
		result(same=same, trimmed=sum(i["trimmed"] for i in got), nacked=sum(i["nacked"] for i in sent),
		       returned=sum(i["returned"] for i in sent))
	EOF
	expect same -eq 1
}

# A trimmed packet, the NACK at both ends, and the retransmission.
trimmed_packets() {
	trims header_limit 1000000
	record ndp_sent ndp_received
	incast
	expect trimmed -ge 10
	count_events 'ndp_received: .* type=DATA .* trimmed=1$'
	[ "$count" -eq "$trimmed" ] || fail "$count events for $trimmed trimmed packets"
	for event in ndp_sent ndp_received; do
		count_events "$event: .* type=NACK .* trimmed=1$"
		[ "$count" -eq "$trimmed" ] || fail "$count events $event of a NACK for $trimmed trimmed packets"
	done
	count_events 'ndp_sent: .* type=DATA .* tries=1 '
	[ "$count" -ge 10 ] || fail "$count events for $nacked retransmissions"
}

returned_packets() {
	trims header_limit 500 return
	record ndp_returned
	incast
	expect returned -ge 1
	count_events 'ndp_returned: .* src=10.7.1.2:[0-9]* dest=10.7.2.2:5000 type=DATA .* trimmed=1$'
	[ "$count" -ge "$returned" ] || fail "$count events for $returned returned packets"
}

# Losses that a timeout and that gaps find, and a path that loses all packets.
repairs() {
	must tc -n mid -batch - <<-EOF
		qdisc replace dev to2 root pfifo
		qdisc replace dev to2 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
		qdisc add dev to2 parent 1:1 netem loss 100%
		qdisc add dev to2 parent 1:2 netem limit 10000 $ndp_wire
		filter add dev to2 parent 1: protocol ip u32 match ip sport 20310 0xffff flowid 1:1
	EOF
	record ndp_repair ndp_path_out
	traced <<-'EOF'
		client, server = pair()
		same, _ = move([Flow(client, server, data(3000000), end=False)])
		off()
		result(same=same, lost=info(client)["lost"], port=client.getsockname()[1])
	EOF
	expect same -eq 1
	# shellcheck disable=SC2154 # set by ndp
	ends="net=[1-9][0-9]* src=10.7.1.2:$port dest=10.7.2.2:5000"
	seen "ndp_repair: $ends lost=[1-9][0-9]* by_gap=[1-9][0-9]* timeouts=0 una="
	seen "ndp_path_out: $ends path=3 udp_port=20310 acks=0 nacks=0 losses=[1-9][0-9]* strikes=1 left_ns=[1-9][0-9]*$"
	count_events 'ndp_path_out: .* udp_port=203\(0[7-9]\|1[1-9]\|2\)'
	[ "$count" -eq 0 ] || fail "$count events of other paths"
	count=$(sed -n 's/.*ndp_repair: .* lost=\([0-9]*\) .*/\1/p' $tracing/trace | awk '{ sum += $1 } END { print sum }')
	expect count -eq "$lost" "the events' sum of lost packets"
	# If the end of a stream was lost on path 3, it would be repeated in vain from now on, and the
	# module would stay in use for up to a minute.
	within_seconds 1 ndp_idle || fail "connections are left: $memory bytes in $ns"
	must tc -n mid qdisc replace dev to2 root netem loss 100%
	record ndp_repair
	ndp <<-'EOF'
		client = connect()
		client.send(b"x")
		time.sleep(0.1)
		result(port=client.getsockname()[1])
		client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
	EOF
	seen "ndp_repair: net=[1-9][0-9]* src=10.7.1.2:$port dest=10.7.2.2:5000 lost=1 by_gap=0 timeouts=1 una=0 backoff=[1-9]"
	echo 0 >$events/enable
}

run_cases hosts packets filters off no_drops trimmed_packets returned_packets repairs
