# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The library of TIMELY's functional tests: KTAP output, expectations, loading and unloading of
# the modules, two hosts with an emulated link between them, and plans of traffic.
#
# A test file sources this file, defines one function for each case and ends with
#
#	run_cases CASE...
#
# Each case runs in a subshell, which ends at the first expectation that is not met. Variables
# that one case sets are therefore unknown to the next; namespaces and modules stay. The case
# leaves_nothing_behind is added to each file: it removes namespaces and modules, and fails if
# anything else is left or if the kernel has complained.

set -u

here=$(cd "$(dirname "$0")" && pwd)
theme=$(basename "$0" .sh)
work=${TIMELY_WORK:-$(mktemp -d)}
# run.sh sets TIMELY_MODULES. Without run.sh the installed modules are tested.
modules=${TIMELY_MODULES:-$work/modules}
[ "${TIMELY_MODULES-}" ] || sh "$here/installed.sh" "$modules" || exit $?
export TIMELY_MODULES="$modules"
# run.sh sets the indentation: KTAP nests the results of a file below those of run.sh.
indent=${TIMELY_INDENT:-}
python=/usr/bin/python3
# Only emergencies on the console: many cases provoke error messages. The log has all of them.
echo 1 >/proc/sys/kernel/printk

# ---- KTAP ----

say() { printf '%s# %s\n' "$indent" "$*"; }

fail() {
	say "$*"
	exit 1
}

# kernel_before VERSION, such as 6.12: is the running kernel older? A few cases depend on what
# the kernel itself does.
kernel_before() {
	newest=$(printf '%s\n' "$1" "$(uname -r)" | sort -V | tail -n 1)
	[ "$newest" = "$1" ]
}

# Prints standard input as diagnostics. In a subshell: the results of a case may have any name, also "line".
say_lines() (
	while IFS= read -r line; do
		say "$line"
	done
)

need_tools() {
	for tool; do
		command -v "$tool" >/dev/null || fail "no $tool here: install it"
	done
}

# The plan "1..N" comes first, so a file that ends early is noticed.
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

# number_of NAME: sets $value to the variable's value, which must be an integer. A variable that
# a plan of traffic did not set is an error, not 0.
number_of() {
	eval "value=\${$1-}"
	case $value in
	''|-|*[!0-9-]*) fail "$1 is '$value', not a number" ;;
	esac
}

# expect NAME OPERATOR NUMBER [WHY...]: compare the value of the variable NAME by an operator of
# test(1), such as -eq. WHY is added to the message of a failure.
expect() {
	number_of "$1"
	expected_name=$1
	expected_test=$2
	expected_value=$3
	shift 3
	test "$value" "$expected_test" "$expected_value" ||
		fail "$expected_name is $value, expected $expected_test $expected_value${1:+: $*}"
}

# expect_near NAME VALUE PERCENT: the variable differs from VALUE by PERCENT at most.
expect_near() {
	expect "$1" -ge $(($2 * (100 - $3) / 100))
	expect "$1" -le $(($2 * (100 + $3) / 100))
}

# refused COMMAND...: the command must fail. Its output is in $work/refused.
refused() {
	if "$@" >"$work/refused" 2>&1; then
		fail "succeeded, but must be refused: $*"
	fi
}

# must COMMAND...: the command must succeed. Its output is in $work/must.
must() {
	"$@" >"$work/must" 2>&1 || {
		say "failed: $*"
		say_lines <"$work/must"
		exit 1
	}
}

# within_seconds SECONDS COMMAND...: repeat the command until it succeeds, for up to SECONDS of
# virtual time.
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

# Mount tracefs, if it is not mounted, and record events, which an earlier test may have stopped.
tracing_up() {
	[ -e $tracing/events ] || must mount -t tracefs trace $tracing
	echo 1 >$tracing/tracing_on
}

# ---- the kernel's log ----

# Write a mark to the log: messages after it belong to this test file.
klog_begin() {
	klog_mark="timely selftest $theme $$ begins"
	echo "$klog_mark" >/dev/kmsg
}

# klog [MARK]: print the kernel's messages after the mark, or all of them if the log has dropped
# the mark
klog() {
	dmesg | awk -v mark="${1:-$klog_mark}" 'index($0, mark) { n = 0; next } { line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
}

# Messages of the debug kernel's checkers, and warnings and oopses of any kernel.
complaints='BUG:|WARNING:|Oops|KASAN|UBSAN|ODEBUG|INFO: (possible|task|trying|suspicious|rcu)'
complaints="$complaints|suspicious|inconsistent lock state|circular locking|recursive locking"
complaints="$complaints|sleeping function called|scheduling while atomic|unreferenced object"
complaints="$complaints|kmemleak: [1-9]|refcount_t:|(list_add|list_del) corruption"
complaints="$complaints|general protection|unregister_netdevice: waiting|Modules linked in"

# kmemleak reports only objects older than five seconds. Objects that only a leaked object points
# to may need a second scan.
kmemleak_scan() {
	sleep 6
	echo scan >$kmemleak
	sleep 6
	echo scan >$kmemleak
}

# ---- the modules ----

# Parameters of tcp_timely under which only losses change the rate.
steady="delta_kbps=1 hai_threshold=0 beta_ppm=0 beta_high_ppm=0"
# Parameters for a link of 1 Gb/s, where a segment of 3000 bytes takes 24 us. One of 16 KB, the
# preset's, would take 131 us, which is above the preset's t_low_ns of 50 us.
gig="segment_bytes=3000 delta_kbps=450 min_rtt_ns=20000 t_low_ns=100000"
gig="$gig rtt_ref_ns=150000 t_high_ns=500000"

# transfers_arrive [WHY]: three connections of timely, over IPv4 and IPv6 and in both directions,
# deliver 8 MB each unchanged within a second. WHY is added to the message of a failure.
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

# load_timely [NAME=VALUE...]: load tcp_timely with the preset testbed, whose parameters are
# constants that tests can compute with. The default preset computes some of them from the path.
load_timely() {
	must insmod "$modules/timely.ko"
	must insmod "$modules/tcp_timely.ko" preset=testbed "$@"
}

# is_loaded MODULE
is_loaded() { [ -d "/sys/module/$1" ]; }

# Removing a module is tried for 10 s: sockets of a deleted namespace are freed a little later. A module
# that is used for longer is a failure. Wait for it all the same, so that the next tests do not fail, too.
unload_timely() {
	stuck=
	for module in timely_acker tcp_timely sch_timely sch_trim ndp timely; do
		is_loaded $module || continue
		within_seconds 10 rmmod $module && continue
		say_lines <"$work/last-try"
		stuck="$stuck $module"
		within_seconds 60 rmmod $module
	done
	[ -z "$stuck" ] || fail "cannot be unloaded within 10 s:$stuck"
}

# available NAME: is NAME a registered congestion control?
available() {
	read -r names </proc/sys/net/ipv4/tcp_available_congestion_control
	case " $names " in
	*" $1 "*) ;;
	*) return 1 ;;
	esac
}

# ---- two hosts and an emulated link ----

# Three network namespaces with veth devices: h1 -- mid -- h2. mid is a router. The netem qdisc
# of mid's device to2 delays and shapes packets to h2, the one of to1 packets to h1. The qdiscs of
# h1 and h2 are free for the tests.
h2_v4=10.7.2.2
h2_v6=fd07:2::2

# hosts_up NETEM_TO_H2 [NETEM_TO_H1 [MTU]]: create the hosts; options of netem such as
# "rate 1gbit delay 10us"
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
	# IPv6 needs a while until its addresses and routes can be used.
	sleep 2
}

# host_up NAMESPACE NUMBER: set up eth0 with the addresses of this number, and the route to mid
host_up() {
	# Fixed limits of socket buffers, large enough for the tests' links.
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

# wire_to_h2 NETEM...: other options for the link to h2. The netem is replaced, not changed: a
# change would keep options that are not given, such as "corrupt". Packets in flight are lost.
wire_to_h2() {
	must tc -n mid -batch - <<-EOF
		qdisc replace dev to2 root pfifo
		qdisc replace dev to2 root netem limit 10000 $1
	EOF
}

# h1_qdisc QDISC [OPTION...]: replace the qdisc of h1's device
h1_qdisc() {
	must tc -n h1 qdisc replace dev eth0 root "$@"
}

# Without TSO the link carries single frames, so a loss is the loss of one frame.
h1_without_tso() {
	must ip netns exec h1 ethtool -K eth0 tso off gso on
}

hosts_down() {
	for ns in h1 mid h2; do
		[ ! -e /run/netns/$ns ] || echo "netns del $ns"
	done >"$work/down"
	[ ! -s "$work/down" ] || must ip -batch "$work/down"
}

# usable NAMESPACE ADDRESS: wait until an IPv6 address just added can be used. The kernel makes it
# usable in a work item, which waits while other namespaces are being removed.
usable() {
	tries=0
	until ip -n "$1" -6 route show table local | grep -q "^local $2 "; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || fail "$2 of $1 cannot be used after a second"
		sleep .01
	done
}

# Carry out the plan of traffic on standard input, see traffic.py, and set its results as
# variables. Results of the previous plan are unset first.
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

# Run the Python lines on standard input. They can use
#	connect(ADDRESS, [CC])	connect h1 to h2 with congestion control CC, timely by default;
#				returns the sockets in h1 and h2
#	rate(SOCKET)		pacing rate in kbit/s
#	result(NAME=NUMBER...)	set shell variables
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

# Print the network devices of the initial namespace.
list_links() { ls /sys/class/net; }

# Prints processes that a test may have left running. Reads /proc itself: starting a process is
# expensive under User Mode Linux.
processes_left() {
	for proc in /proc/[0-9]*; do
		read -r comm 2>/dev/null <"$proc/comm" || continue
		case $comm in
		python3*|traffic.py|ip|tc|insmod|rmmod|netlink_fuzz|many_sockets|packet_fuzz|ndp_fuzz|timelyctl|timely-clockd|chronyd|curl|iperf3|qperf)
			echo "$comm (${proc#/proc/})" ;;
		esac
	done
}

leaves_nothing_behind() {
	hosts_down
	(unload_timely) || exit 1
	for module in timely tcp_timely sch_timely sch_trim timely_acker ndp; do
		! is_loaded $module || fail "module $module is still loaded"
	done
	! available timely || fail "timely is still registered"
	# A cache that is left has objects that were not freed. The kernel base merges the cache timely_flow with another
	# cache, so only the debug kernel shows it.
	! grep -E '^(timely_|NDP)' /proc/slabinfo >"$work/slabs" || fail "slab caches left: $(cat "$work/slabs")"
	left=$(ip netns list)
	[ -z "$left" ] || fail "namespaces left: $left"
	links=$(list_links)
	[ "$links" = "$links_before" ] || fail "interfaces left: $links"
	left=$(processes_left)
	[ -z "$left" ] || fail "processes left: $left"
	klog >"$work/klog"
	if grep -qE "$complaints" "$work/klog"; then
		say "the kernel's log has complaints:"
		grep -E -A 40 "$complaints" "$work/klog" | head -n 100 | say_lines
		exit 1
	fi
}
