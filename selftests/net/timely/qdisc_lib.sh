# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The library of the tests of the qdisc "timely", on top of lib.sh: loading sch_timely, tc with
# its plugin, two hosts with a direct link, and Python code that sends and times single packets.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc ethtool
# run-in-guest.sh puts tc's plugin into the directory of the modules. Without the plugin tc itself must
# know the qdisc.
[ ! -e "$modules/q_timely.so" ] || export TC_LIB_DIR="$modules"

load_qdisc() {
	is_loaded timely || must insmod "$modules/timely.ko"
	must insmod "$modules/sch_timely.ko" "$@"
}

# A packet says which clock its timestamp is of, so that the qdisc can convert the timestamp.
timestamps_have_clocks() { ! kernel_before 6.11; }

# Options with which each packet leaves alone at its own time: no timer slack, and too little
# credit for a burst.
exact="timer_slack 0 quantum 256 initial_quantum 0"

# pair_up [QUEUES [MTU]]: h1 eth0 -- eth0 h2, a veth pair with QUEUES transmit queues and no
# delay: a packet arrives at h2 when it leaves h1's qdisc. IPv6 is off and neighbours are
# permanent, so all packets are the test's own.
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

# Create a new qdisc. A pfifo comes between, because tc only changes the options when it replaces
# a qdisc by one of the same kind.
h1_qdisc() {
	must tc -n h1 -batch - <<-EOF
		qdisc replace dev eth0 root handle 99: pfifo
		qdisc replace dev eth0 root $*
	EOF
}

# Run the Python lines on standard input, with packets.py imported. result(NAME=NUMBER) sets
# shell variables; say() prints diagnostics. Results of the previous call are unset first.
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
		fail "the Python code failed"
	}
	sed -n 's/^# //p' "$work/packets.out" | say_lines
	sed '/^#/d' "$work/packets.out" >"$work/packets"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/packets"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/packets"
}

# stats_of NAME [NAMESPACE]: set NAME_counter for each counter of the root qdisc of eth0.
stats_of() {
	packets <<-EOF
		for name, value in stats("${2:-h1}").items():
		    if isinstance(value, int):
		        result(**{"$1_" + name: value})
	EOF
}
