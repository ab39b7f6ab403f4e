# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# What TIMELY's functional tests share: KTAP, two hosts and a wire, the modules,
# and a look at what a test leaves behind.
#
# A test file sources this, defines a function for each case and ends with
#
#	run_cases CASE...
#
# Each case runs in a subshell that ends at the first expectation that is not
# met. One more case is added: that all is gone what the file has created and
# that the kernel has not complained.

set -u

here=$(cd "$(dirname "$0")" && pwd)
theme=$(basename "$0" .sh)
modules=${TIMELY_MODULES:?the directory with timely.ko and tcp_timely.ko}
work=${TIMELY_WORK:-$(mktemp -d)}
# run.sh indents the files' results under its own.
indent=${TIMELY_INDENT:-}
python=/usr/bin/python3
# Refusals are wanted here; the log keeps them.
echo 1 >/proc/sys/kernel/printk

# ---- KTAP ----

say() { printf '%s# %s\n' "$indent" "$*"; }

fail() {
	say "$*"
	exit 1
}

# Prints its input as diagnostics.
# kernel_before 6.12: a few cases depend on what the kernel itself does.
kernel_before() {
	newest=$(printf '%s\n' "$1" "$(uname -r)" | sort -V | tail -n 1)
	[ "$newest" = "$1" ]
}

say_lines() {
	while IFS= read -r line; do
		say "$line"
	done
}

need_tools() {
	for tool; do
		command -v "$tool" >/dev/null || fail "no $tool here: install it"
	done
}

# The first line names all that is to come, so that a file cut short is seen.
run_cases() {
	printf '%sKTAP version 1\n%s1..%s\n' "$indent" "$indent" $(($# + 1))
	number=0
	failed=0
	klog_begin
	links_before=$(list_links)
	for name in "$@" leaves_nothing_behind; do
		number=$((number + 1))
		if ("$name"); then
			printf '%sok %s %s__%s\n' "$indent" "$number" "$theme" "$name"
		else
			printf '%snot ok %s %s__%s\n' "$indent" "$number" "$theme" "$name"
			failed=$((failed + 1))
		fi
	done
	echo "$number $failed" >"$work/$theme.result"
	[ "$failed" -eq 0 ]
}

# ---- expectations ----

# Is it a number at all? What a plan did not get to see is not there.
number_of() {
	eval "value=\${$1-}"
	case $value in
	''|-|*[!0-9-]*) fail "$1 is '$value', not a number" ;;
	esac
}

# expect NAME TEST NUMBER [WHY...]: the variable's value, by test's -eq and such
expect() {
	number_of "$1"
	expected_name=$1
	expected_test=$2
	expected_value=$3
	shift 3
	test "$value" "$expected_test" "$expected_value" ||
		fail "$expected_name is $value, expected $expected_test $expected_value${1:+: $*}"
}

# expect_near NAME VALUE PERCENT
expect_near() {
	expect "$1" -ge $(($2 * (100 - $3) / 100))
	expect "$1" -le $(($2 * (100 + $3) / 100))
}

# A command that must fail.
refused() {
	if "$@" >"$work/refused" 2>&1; then
		fail "worked, but must be refused: $*"
	fi
}

must() {
	"$@" >"$work/must" 2>&1 || {
		say "failed: $*"
		say_lines <"$work/must"
		exit 1
	}
}

# Until it works; what waits for is in virtual time.
within_seconds() {
	tries=$(($1 * 20))
	shift
	until "$@" 2>"$work/last-try"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.05
	done
}

# ---- trace events ----

tracing=/sys/kernel/tracing

tracing_up() { [ -e $tracing/events ] || must mount -t tracefs trace $tracing; }

# ---- the kernel's log ----

# A line of the log, after which all is this file's.
klog_begin() {
	klog_mark="timely selftest $theme $$ begins"
	echo "$klog_mark" >/dev/kmsg
}

# klog [MARK]: what came after it, or all that is left if the mark is not
klog() {
	dmesg | awk -v mark="${1:-$klog_mark}" 'index($0, mark) { n = 0; next } { line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
}

# Reports of every checker that the debug kernel has, and of the kernel proper.
complaints='BUG:|WARNING:|Oops|KASAN|UBSAN|ODEBUG|INFO: (possible|task|trying|suspicious|rcu)'
complaints="$complaints|suspicious|inconsistent lock state|circular locking|recursive locking"
complaints="$complaints|sleeping function called|scheduling while atomic|unreferenced object"
complaints="$complaints|kmemleak: [1-9]|refcount_t:|(list_add|list_del) corruption"
complaints="$complaints|general protection|unregister_netdevice: waiting|Modules linked in"

# kmemleak believes what is older than five seconds, and may need two scans to
# see what only a leaked object pointed to.
kmemleak_scan() {
	sleep 6
	echo scan >$kmemleak
	sleep 6
	echo scan >$kmemleak
}

# ---- the modules ----

# Only losses move the rate.
steady="delta_kbps=1 hai_threshold=0 beta_ppm=0 beta_high_ppm=0"
# For the wire of 1 Gb/s: a segment is on it for 24 us, and two of 16 KB each
# for more than the default thresholds.
gig="segment_bytes=3000 delta_kbps=450 min_rtt_ns=20000 t_low_ns=100000"
gig="$gig rtt_ref_ns=150000 t_high_ns=500000"

# Connections of timely over both families and both ways: what arrives is what was
# sent, and soon.
# transfers_arrive [HOW]
transfers_arrive() {
	traffic <<-EOF
		0	flow four from=h1 to=h2 addr=$h2_v4 cc=timely bytes=8000000 verify=1
		0	flow six from=h1 to=h2 addr=$h2_v6 cc=timely bytes=8000000 verify=1
		0	flow back from=h2 to=h1 addr=10.7.1.2 cc=timely bytes=8000000 verify=1
	EOF
	for flow in four six back; do
		expect ${flow}_done -eq 1 "${1-}"
		expect ${flow}_same -eq 1 "${1-}"
		expect ${flow}_us -lt 1000000 "${1-}"
	done
}

# With constants, which is what tests reckon with; those of the default are derived.
load_timely() {
	must insmod "$modules/timely.ko"
	must insmod "$modules/tcp_timely.ko" preset=testbed "$@"
}

is_loaded() { [ -d "/sys/module/$1" ]; }

# Sockets of a namespace that is gone go a little later.
unload_timely() {
	for module in timely_acker tcp_timely sch_timely timely; do
		is_loaded $module || continue
		within_seconds 10 rmmod $module || {
			say_lines <"$work/last-try"
			fail "$module cannot be unloaded"
		}
	done
}

available() {
	read -r names </proc/sys/net/ipv4/tcp_available_congestion_control
	case " $names " in
	*" $1 "*) ;;
	*) return 1 ;;
	esac
}

# ---- two hosts and a wire ----

# h1 -- mid -- h2: what h1 sends meets a netem on mid's way to h2, and what comes
# back one on its way to h1; the hosts' own qdiscs stay free.
h2_v4=10.7.2.2
h2_v6=fd07:2::2

# hosts_up WIRE_TO_H2 [WIRE_TO_H1 [MTU]]
hosts_up() {
	mtu=${3:-1500}
	must ip -batch - <<-EOF
		netns add h1
		netns add mid
		netns add h2
		link add eth0 netns h1 mtu $mtu type veth peer name to1 netns mid mtu $mtu
		link add eth0 netns h2 mtu $mtu type veth peer name to2 netns mid mtu $mtu
	EOF
	host_up h1 1
	host_up h2 2
	# shellcheck disable=SC2016 # for the inner shell
	must ip netns exec mid sh -c '
		cd /proc/sys/net
		echo 1 >ipv4/ip_forward
		for each in to1 to2; do echo 0 >ipv6/conf/$each/accept_dad; done
		echo 1 >ipv6/conf/all/forwarding
		ip -batch - <<-EOF
			address add 10.7.1.1/24 dev to1
			address add 10.7.2.1/24 dev to2
			address add fd07:1::1/64 dev to1 nodad
			address add fd07:2::1/64 dev to2 nodad
			link set to1 up
			link set to2 up
		EOF'
	wire_to_h2 "$1"
	must tc -n mid qdisc add dev to1 root netem limit 10000 ${2:-delay 10us}
	# IPv6 takes its time to settle.
	sleep 2
}

host_up() {
	# The receivers' wish for ever larger windows must not be in the way.
	# shellcheck disable=SC2016 # for the inner shell
	must ip netns exec "$1" sh -c '
		echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
		echo "4096 4194304 8388608" >/proc/sys/net/ipv4/tcp_rmem
		echo "4096 262144 8388608" >/proc/sys/net/ipv4/tcp_wmem
		ip -batch - <<-EOF
			link set lo up
			address add 10.7.$1.2/24 dev eth0
			address add fd07:$1::2/64 dev eth0 nodad
			link set eth0 up
			route add 10.7.0.0/16 via 10.7.$1.1
			route add fd07::/16 via fd07:$1::1
		EOF' host_up "$2"
}

# What is on the wire is lost. (A netem that is only changed keeps, for one,
# its corruption.)
wire_to_h2() {
	must tc -n mid -batch - <<-EOF
		qdisc replace dev to2 root pfifo
		qdisc replace dev to2 root netem limit 10000 $1
	EOF
}

h1_qdisc() {
	must tc -n h1 qdisc replace dev eth0 root "$@"
}

# The wire gets packets, not segments: what is lost is one packet.
h1_without_tso() {
	must ip netns exec h1 ethtool -K eth0 tso off gso on
}

hosts_down() {
	for ns in h1 mid h2; do
		[ ! -e /run/netns/$ns ] || echo "netns del $ns"
	done >"$work/down"
	[ ! -s "$work/down" ] || must ip -batch "$work/down"
}

# Wait until the last address added to a namespace can be used. A work item sees to that,
# which waits for namespaces that are being removed.
usable() {
	tries=0
	until ip -n "$1" -6 route show table local | grep -q "^local $2 "; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || fail "$2 of $1 cannot be used after a second"
		sleep .01
	done
}

# Plan on standard input; sets what traffic.py prints as variables. What an
# earlier plan has seen is forgotten.
traffic() {
	if [ -e "$work/traffic" ]; then
		while IFS='=' read -r key _; do
			unset "$key"
		done <"$work/traffic"
	fi
	"$python" -I "$here/traffic.py" >"$work/traffic" 2>"$work/traffic.errors" || {
		say_lines <"$work/traffic.errors"
		fail "traffic.py failed"
	}
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/traffic"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/traffic"
}

# Lines of Python on standard input: connect(ADDRESS) gives a connection that uses
# timely, its end in h1 and its end in h2; rate(SOCKET) its pacing rate, kbit/s; what they
# result() are variables then.
sockets() {
	cat >"$work/sockets.py"
	must "$python" -I - "$work/sockets.py" <<-'EOF'
		import ctypes, os, socket, sys, time
		libc = ctypes.CDLL(None)
		def inside(ns, call, *args):
		    home = os.open("/proc/self/ns/net", os.O_RDONLY)
		    there = os.open("/run/netns/" + ns, os.O_RDONLY)
		    try:
		        assert libc.setns(there, 0) == 0
		        return call(*args)
		    finally:
		        libc.setns(home, 0)
		        os.close(home)
		        os.close(there)
		def connect(address, cc=b"timely"):
		    family = socket.AF_INET6 if ":" in address else socket.AF_INET
		    listener = inside("h2", socket.socket, family)
		    listener.bind((address, 0))
		    listener.listen()
		    client = inside("h1", socket.socket, family)
		    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc)
		    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		    client.connect(listener.getsockname()[:2])
		    server, _ = listener.accept()
		    return client, server
		def rate(sock):
		    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
		    return int.from_bytes(info[104:112], "little") // 125
		def result(**results):
		    for key, value in results.items():
		        print(f"{key}={int(value)}")
		exec(compile(open(sys.argv[1]).read(), "sockets", "exec"))
	EOF
	cp "$work/must" "$work/results"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/results"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/results"
}

# ---- the end ----

list_links() { ls /sys/class/net; }

# What a test may have started. Without a process of its own for each.
processes_left() {
	for proc in /proc/[0-9]*; do
		read -r comm 2>/dev/null <"$proc/comm" || continue
		case $comm in
		python3*|traffic.py|ip|tc|insmod|rmmod|netlink_fuzz|many_sockets|packet_fuzz) echo "$comm (${proc#/proc/})" ;;
		esac
	done
}

leaves_nothing_behind() {
	hosts_down
	(unload_timely) || exit 1
	for module in timely tcp_timely sch_timely timely_acker; do
		! is_loaded $module || fail "module $module is still loaded"
	done
	! available timely || fail "timely is still registered"
	left=$(ip netns list)
	[ -z "$left" ] || fail "namespaces left: $left"
	links=$(list_links)
	[ "$links" = "$links_before" ] || fail "interfaces left: $links"
	left=$(processes_left)
	[ -z "$left" ] || fail "processes left: $left"
	klog >"$work/klog"
	if grep -qE "$complaints" "$work/klog"; then
		say "the kernel complained:"
		grep -E -A 40 "$complaints" "$work/klog" | head -n 100 | say_lines
		exit 1
	fi
}
