# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The library of the tests of timelyctl, on top of lib.sh: runs timelyctl and looks at its output.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip tc setpriv
ctl=$modules/timelyctl
export TC_LIB_DIR="$modules"
# Commands that run a program as an unprivileged user and in a network namespace.
# shellcheck disable=SC2034 # for the tests
{
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all"
in_h1="ip netns exec h1"
in_h2="ip netns exec h2"
}

# ctl STATUS ARG...: timelyctl must exit with STATUS. It runs by the command $where if that is set
# (another namespace or user). Its output is in $work/out and $work/err.
ctl() {
	wanted=$1
	shift
	got=0
	${where-} "$ctl" "$@" >"$work/out" 2>"$work/err" || got=$?
	[ $got -eq "$wanted" ] || {
		cat "$work/out" "$work/err" | say_lines
		fail "status $got, expected $wanted: timelyctl $*"
	}
}

# says REGEX: the last output of ctl must match
says() {
	grep -q -- "$1" "$work/out" "$work/err" || {
		cat "$work/out" "$work/err" | say_lines
		fail "the output does not have: $1"
	}
}

# json EXPRESSION: a Python expression that must be true for the last JSON output of ctl: all is the
# whole output, and n the first element if the output is a list
json() {
	"$python" -I -c '
import json, sys
all = json.load(open(sys.argv[1]))
n = all[0] if isinstance(all, list) and all else None
assert eval(sys.argv[2]), all' "$work/out" "$1" 2>"$work/json" || {
		say_lines <"$work/json"
		fail "not true: $1"
	}
}

# with_connections LINES...: run the shell function "look" while the Python lines on standard input,
# see sockets() in lib.sh, have connections open: at their line "look()"
with_connections() {
	rm -f "$work/ready" "$work/seen"
	{
		cat <<-EOF
			# Sockets end at once, with a reset: data that were not sent would keep them.
			connect_and_stay = connect
			def connect(*args):
			    pair = connect_and_stay(*args)
			    for sock in pair:
			        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1] + [0] * 7))
			    return pair
			def look():
			    open("$work/ready", "w").close()
			    while not os.path.exists("$work/seen"):
			        time.sleep(.001)
			def send(client, server, size):
			    sent = 0
			    while sent < size:
			        sent += client.send(bytes(min(size - sent, 65536)))
			        while True:
			            try:
			                server.recv(1 << 20, socket.MSG_DONTWAIT)
			            except BlockingIOError:
			                break
		EOF
		cat
	} >"$work/plan"
	(sockets <"$work/plan") &
	within_seconds 20 test -e "$work/ready" || fail "the connections are not ready"
	(look)
	looked=$?
	: >"$work/seen"
	wait $! || exit 1
	[ $looked -eq 0 ] || exit 1
}
