# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# What the tests of the qdisc "timely" share, beside lib.sh: its module, tc with
# its plugin, and two hosts with nothing between them.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc ethtool
# run-in-guest.sh puts tc's plugin where the modules are.
export TC_LIB_DIR="$modules"

load_qdisc() {
	is_loaded timely || must insmod "$modules/timely.ko"
	must insmod "$modules/sch_timely.ko" "$@"
}

# Each packet by itself at its time: no slack, and no credit that lets a flow
# send several at once.
exact="timer_slack 0 quantum 256 initial_quantum 0"

# h1 eth0 -- eth0 h2, with QUEUES transmit queues: what leaves h1's qdisc is at
# h2 in no time. No IPv6, no ARP: nothing is sent but what a test sends.
# pair_up [QUEUES [MTU]]
pair_up() {
	queues="numtxqueues ${1:-1} numrxqueues ${1:-1}"
	must ip -batch - <<-EOF
		netns add h1
		netns add h2
		link add name eth0 netns h1 mtu ${2:-1500} address 02:00:00:00:00:01 $queues type veth peer name eth0 netns h2 mtu ${2:-1500} address 02:00:00:00:00:02 $queues
	EOF
	for end in 1 2; do
		must ip netns exec h$end sh -c "
			echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6
			echo '4096 4194304 8388608' >/proc/sys/net/ipv4/tcp_rmem
			echo '4096 262144 8388608' >/proc/sys/net/ipv4/tcp_wmem
			ip -batch - <<-EOF
				link set lo up
				address add 10.7.2.$end/24 dev eth0
				link set eth0 up
				neighbour add 10.7.2.$((3 - end)) dev eth0 lladdr 02:00:00:00:00:0$((3 - end)) nud permanent
			EOF"
	done
}

# A new one: to replace a qdisc by its own kind is a change of what it is told.
h1_qdisc() {
	must tc -n h1 -batch - <<-EOF
		qdisc replace dev eth0 root handle 99: pfifo
		qdisc replace dev eth0 root $*
	EOF
}

# Lines of Python on standard input, with packets.py's words; what they
# result() are variables afterwards, what they say() is shown.
packets() {
	if [ -e "$work/packets" ]; then
		while IFS='=' read -r key _; do
			unset "$key"
		done <"$work/packets"
	fi
	cat >"$work/plan.py"
	"$python" -I -c '
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from packets import *
with open(sys.argv[2], encoding="utf-8") as file:
	exec(compile(file.read(), "plan", "exec"))
' "$here" "$work/plan.py" >"$work/packets.out" 2>"$work/packets.errors" || {
		say_lines <"$work/packets.out"
		say_lines <"$work/packets.errors"
		fail "the plan failed"
	}
	sed -n 's/^# //p' "$work/packets.out" | say_lines
	sed '/^#/d' "$work/packets.out" >"$work/packets"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/packets"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/packets"
}

# Of the root qdisc of a namespace's eth0: members of the kernel's statistics as
# NAME_member.
# stats_of NAME [NAMESPACE]
stats_of() {
	packets <<-EOF
		for name, value in stats("${2:-h1}").items():
		    if isinstance(value, int):
		        result(**{"$1_" + name: value})
	EOF
}
