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

# finds STATUS [CHECK...]: timelyctl doctor, run by $where, ends with STATUS and has findings of these checks
finds() {
	finds_status=$1
	shift
	ctl "$finds_status" -j doctor
	json '[f["check"] for f in all["findings"]] == "'"$*"'".split()'
	json 'not [f for f in all["findings"] if not f["evidence"] or not f["remedy"]]'
}

# The kernel takes its real-time clock for synchronised, or not: status 0 or 64 (STA_UNSYNC).
clock_status() {
	must "$python" -I - "$1" <<-'EOF'
		import ctypes, struct, sys
		# struct timex: modes ADJ_STATUS and ADJ_MAXERROR
		timex = bytearray(256)
		struct.pack_into("i", timex, 0, 0x10 | 0x4)
		struct.pack_into("i", timex, 40, int(sys.argv[1]))
		buffer = (ctypes.c_char * 256).from_buffer(timex)
		assert ctypes.CDLL(None).adjtimex(buffer) >= 0
	EOF
}

# with_connections LINES...: run the shell function "look" while the Python lines on standard input,
# see sockets() in lib.sh, have connections open: at their line "look()". The lines can also use
#	send(CLIENT, SERVER, SIZE)	write bytes, and read those that have arrived
#	finish(PAIR)			wait until all bytes are acknowledged
with_connections() {
	rm -f "$work/ready" "$work/seen"
	{
		cat <<-EOF
			import fcntl, termios
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
			def finish(pair):
			    waiting = bytearray(4)
			    while fcntl.ioctl(pair[0], termios.TIOCOUTQ, waiting) or any(waiting):
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
