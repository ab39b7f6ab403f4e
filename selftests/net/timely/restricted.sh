#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Permission to choose timely, if tcp_allowed_congestion_control does not list it. setsockopt() then
# needs CAP_NET_ADMIN over the network namespace, and no namespace but the initial one can have
# timely as its default, not even by root. Two namespaces, no traffic.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod ip setpriv
allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control

cat >"$work/choose" <<-'EOF'
	import errno, socket, sys
	sock = socket.socket()
	try:
	    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"timely")
	except OSError as error:
	    sys.exit(errno.errorcode[error.errno])
	name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
	sys.exit(None if name.rstrip(b"\0") == b"timely" else "another was chosen")
EOF

# may_choose yes|no NAMESPACE|"" COMMAND...: a process started by COMMAND (setpriv, or nothing)
# may or may not choose timely for a socket in the namespace.
may_choose() {
	wanted=$1
	where=${2:+ip netns exec $2}
	shift 2
	if $where "$@" "$python" -I - <"$work/choose" 2>"$work/chosen"; then
		[ "$wanted" = yes ] || fail "may choose timely, but must not: $where $*"
	else
		read -r why <"$work/chosen"
		[ "$wanted" = no ] || fail "may not choose timely ($why): $where $*"
		[ "$why" = EPERM ] || fail "expected EPERM, not $why: $where $*"
	fi
}

as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
as_lesser_root="setpriv --bounding-set=-net_admin --inh-caps=-net_admin"
read -r before <$allowed

restricted_unless_listed() {
	must ip netns add h1
	load_timely
	for ns in "" h1; do
		may_choose yes "$ns"
		may_choose no "$ns" $as_nobody
		may_choose no "$ns" $as_lesser_root
	done
	echo "$before timely" >$allowed
	for ns in "" h1; do
		may_choose yes "$ns" $as_nobody
	done
	echo "$before" >$allowed
	may_choose no h1 $as_nobody
}

default_in_h1() {
	ip netns exec h1 sh -c "echo timely >/proc/sys/net/ipv4/tcp_congestion_control" 2>/dev/null
}

# Before 6.12 the kernel itself leaks a reference to the module when it refuses the default, and
# the module can no longer be unloaded.
default_of_a_namespace() {
	echo "$before" >$allowed
	if kernel_before 6.12; then
		say "skipped: when this kernel refuses, it leaks a reference to the module"
	else
		! default_in_h1 || fail "h1 accepts timely as its default, though timely is not listed"
	fi
	refused ip netns exec h1 sh -c "echo timely >$allowed"
	echo "$before timely" >$allowed
	default_in_h1 || fail "h1 refuses timely as its default, though timely is listed"
	# New sockets of the namespace now use timely, also those of unprivileged users.
	must ip netns exec h1 $as_nobody "$python" -I -c \
		'import socket; assert socket.socket().getsockopt(6, 13, 7) == b"timely\0"'
	echo "$before" >$allowed
	refused rmmod tcp_timely
	must ip netns del h1
	unload_timely
}

run_cases restricted_unless_listed default_of_a_namespace
