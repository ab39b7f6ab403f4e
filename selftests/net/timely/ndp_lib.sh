# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The library of NDP's tests, on top of lib.sh: loading of the module, two hosts, and Python code
# that uses ndp.py.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc

# The link of the hosts: 10 Gb/s, 10 us in each direction.
ndp_wire="rate 10gbit delay 10us"

load_ndp() {
	must insmod "$modules/timely.ko"
	must insmod "$modules/ndp.ko" "$@"
}

ndp_hosts() {
	load_ndp "$@"
	hosts_up "$ndp_wire" "$ndp_wire"
}

# ndp_wires NETEM...: other options for both directions of the link
ndp_wires() {
	wire_to_h2 "$ndp_wire $*"
	must tc -n mid -batch - <<-EOF
		qdisc replace dev to1 root pfifo
		qdisc replace dev to1 root netem limit 10000 $ndp_wire $*
	EOF
}

# Run the Python lines on standard input, with ndp.py imported, and set their results as variables.
ndp() {
	if [ -e "$work/ndp" ]; then
		while IFS='=' read -r key _; do
			unset "$key"
		done <"$work/ndp"
	fi
	{
		echo 'from ndp import *'
		cat
	} >"$work/plan.py"
	"$python" -I -c '
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
with open(sys.argv[2], encoding="utf-8") as file:
    exec(compile(file.read(), "plan", "exec"))' "$here" "$work/plan.py" \
		>"$work/ndp" 2>"$work/ndp.errors" || {
		say_lines <"$work/ndp"
		say_lines <"$work/ndp.errors"
		fail "ndp.py failed"
	}
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/ndp"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/ndp"
}

# ndp_memory NAMESPACE: sets $memory to the bytes that NDP uses in the namespace
ndp_memory() {
	# shellcheck disable=SC2016 # awk's field
	memory=$(ip netns exec "$1" awk '$1 == "memory" { print $2 }' /proc/net/ndp_stat)
}

# Whether no connection is left, in both namespaces.
ndp_idle() {
	for ns in h1 h2; do
		ndp_memory $ns
		[ "$memory" -eq 0 ] || return 1
	done
}
