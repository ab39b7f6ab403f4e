#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Parameters that change while connections run: the files of net.ipv4.timely, one set per network
# namespace, and the congestion controls that are presets by name (timely_patched, ...).
# Topology: h1 -- mid -- h2, 1 Gb/s.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod modinfo ip tc setpriv
modinfo "$modules/tcp_timely.ko" >"$work/modinfo"
of_h1=/proc/sys/net/ipv4/timely

# files CASE [NAMESPACE]...: run a case of sysctl.py
files() {
	case=$1
	shift
	"$python" -I "$here/sysctl.py" "$case" "$work/modinfo" "$@" >"$work/files" 2>&1 || {
		say_lines <"$work/files"
		fail "$case $*"
	}
}

# For plans: "run sh $work/set NAME VALUE..." sets parameters of h1.
cat >"$work/set" <<-EOF
	while [ \$# -gt 0 ]; do
		ip netns exec h1 sh -c "echo \$2 >$of_h1/\$1" || exit 1
		shift 2
	done
EOF

echo "ip netns exec h1 ss -tin | grep -qw timely_patched" >"$work/is-patched"

change() { must sh "$work/set" "$@"; }

reload_timely() {
	(unload_timely) || exit 1
	load_timely "$@"
}

hosts() {
	hosts_up "rate 1gbit delay 10us"
	load_timely
}

files_are_there() {
	reload_timely delta_kbps=3333 t_high_ns=auto
	files are_there h1
	files are_there
	reload_timely
	files are_there h2
	unload_timely
	[ ! -e $of_h1 ] || fail "the files are still there"
}

# Names of the previous release still work, and the kernel's log says which to use instead.
deprecated_names() {
	reload_timely preset=linux line_rate_kbps=10000000
	files deprecated h1
	warned_before=$(dmesg | grep -c 'tcp_timely: the name .* is deprecated') || :
	expect warned_before -ge 4
	reload_timely preset=target_delay link_rate_kbps=10000000
	warned=$(dmesg | grep -c 'tcp_timely: the name .* is deprecated') || :
	expect warned -eq "$warned_before" "new names"
}

take_both_ends() { reload_timely; files both_ends h1; }
refuse_invalid_values() { reload_timely; files refusals h1; }
refuse_contradictions() { reload_timely; files contradictions h1; }
presets_are_loaded() { reload_timely; files presets h1; }
namespaces_differ() { reload_timely; files differ h1 h2; }
permissions() { reload_timely; files permissions h1; }
unload_while_open() { reload_timely; files unload_while_open h1; }

# The kernel's log says which values are allowed.
refusals_name_the_allowed_values() {
	reload_timely
	refused ip netns exec h1 sh -c "echo 0 >$of_h1/delta_kbps"
	refused ip netns exec h1 sh -c "echo nonsense >$of_h1/preset"
	refused ip netns exec h1 sh -c "echo 2000000000 >$of_h1/t_low_ns"
	refused ip netns exec h1 sh -c "echo 1000 >$of_h1/t_high_ns"
	presets=$(sed -n 's/^par.: *preset:.*: \(.*\) (charp)$/\1/p' "$work/modinfo")
	for message in "delta_kbps=0 refused: allowed are 1 to 100000000 (kbit/s)" \
		"preset=nonsense refused: allowed are $presets" \
		"t_low_ns=2000000000 refused: allowed are 0 to 1000000000 (ns)"; do
		klog | grep -qF "$message" || fail "the kernel's log does not have: $message"
	done
}

# Connections use a new value from the next ACK on; those of other namespaces are not affected.
connections_follow() {
	for qdisc in fq noqueue timely; do
		reload_timely $steady first_rate_kbps=400000
		insmod "$modules/sch_timely.ko" 2>/dev/null
		h1_qdisc $qdisc
		traffic <<-EOF
			0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
			0	flow back from=h2 to=h1 addr=10.7.1.2 cc=timely
			0.05	goodput before flow=a for=0.05
			0.1	run sh $work/set max_rate_kbps 100000
			0.102	watch soon flow=a for=0.03 every=0.002
			0.11	goodput lower flow=a for=0.1
			0.11	goodput back_got flow=back for=0.1
			0.21	run sh $work/set max_rate_kbps 800000000 min_rate_kbps 200000
			0.22	goodput higher flow=a for=0.1
			0.33	stop a
			0.33	stop back
		EOF
		expect_near before 400000 3
		expect soon_max -le 100000 "over $qdisc"
		expect_near lower 100000 3
		expect_near higher 200000 3
		expect_near back_got 400000 3
		expect a_same -eq 1 "over $qdisc"
		h1_qdisc fq
	done
}

# The size of TCP's pacing segments follows segment_bytes, too.
segments_follow() {
	reload_timely $steady first_rate_kbps=200000 min_rate_kbps=200000
	h1_qdisc fq
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely
		0.05	counters large_old ns=h1
		0.1	counters large_new ns=h1
		0.1	run sh $work/set segment_bytes 3000
		0.12	counters small_old ns=h1
		0.17	counters small_new ns=h1
		0.17	run sh $work/set segment_bytes 16384
		0.19	counters again_old ns=h1
		0.24	counters again_new ns=h1
		0.25	end
	EOF
	large=$(((large_new_tx_bytes - large_old_tx_bytes) / (large_new_tx_packets - large_old_tx_packets)))
	small=$(((small_new_tx_bytes - small_old_tx_bytes) / (small_new_tx_packets - small_old_tx_packets)))
	again=$(((again_new_tx_bytes - again_old_tx_bytes) / (again_new_tx_packets - again_old_tx_packets)))
	expect large -ge 12000
	expect small -le 3100
	expect again -ge 12000
}

# All presets one after the other under several connections, with and without path-dependent
# parameters.
changes_under_traffic() {
	reload_timely
	h1_qdisc fq
	presets=$(sed -n 's/^par.: *preset:.*: \(.*\) (charp)$/\1/p' "$work/modinfo" | tr -d ,)
	{
		for flow in a b c; do
			echo "0 flow $flow from=h1 to=h2 addr=$h2_v4 cc=timely bytes=4000000 verify=1"
		done
		step=100
		for round in 1 2 3 4; do
			for preset in $presets; do
				echo "0.0$step run sh $work/set preset $preset"
				echo "0.0$((step + 10)) run sh $work/set t_high_ns auto segment_bytes auto"
				step=$((step + 20))
			done
		done
	} >"$work/plan"
	traffic <"$work/plan"
	for flow in a b c; do
		expect ${flow}_done -eq 1
		expect ${flow}_same -eq 1
	done
}

# All path-dependent parameters are "auto": transfers succeed even where TIMELY knows nothing of
# the path.
all_auto() {
	autos=$(sed -n 's/^par.: *\([a-z0-9_]*\):.*, or auto\]$/\1=auto/p' "$work/modinfo")
	# shellcheck disable=SC2086 # a list of them
	reload_timely $autos
	wire_to_h2 "rate 10gbit delay 10us"
	for qdisc in fq noqueue; do
		h1_qdisc $qdisc
		transfers_arrive "over $qdisc"
	done
}

# Congestion controls that are presets by name ignore the files of net.ipv4.timely.
names_of_presets() {
	reload_timely
	h1_qdisc fq
	change max_rate_kbps 50000
	for name in timely_patched timely_paper timely_fast timely_swift timely_powertcp; do
		available $name || fail "$name is not available"
		modinfo -F alias "$modules/tcp_timely.ko" | grep -qx "tcp_$name" ||
			fail "nothing loads $name by its name"
		traffic <<-EOF
			0	flow fixed from=h1 to=h2 addr=$h2_v4 cc=$name verify=1
			0	flow own from=h1 to=h2 addr=$h2_v4 cc=timely verify=1
			0.05	goodput fixed_got flow=fixed for=0.1
			0.05	goodput own_got flow=own for=0.1
			0.15	set own cc=$name
			0.17	info now flow=own
			0.17	set fixed cc=timely
			0.19	goodput fixed_then flow=fixed for=0.05
			0.25	stop fixed
			0.25	stop own
		EOF
		expect fixed_got -ge 60000 "$name"
		expect now_rate -gt 50000 "$name"
		expect own_got -le 51000 "beside $name"
		expect fixed_then -le 52000 "after $name"
		expect fixed_same -eq 1 "$name"
		expect own_same -eq 1 "$name"
	done
}

# "ip route ... congctl NAME" chooses the congestion control for new connections by that route.
names_of_routes() {
	reload_timely
	h1_qdisc fq
	change max_rate_kbps 50000
	must ip -n h1 route replace 10.7.0.0/16 via 10.7.1.1 congctl timely_patched
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4
		0.05	goodput got flow=a for=0.1
		0.05	run sh $work/is-patched
		0.16	end
	EOF
	expect got -ge 200000
	must ip -n h1 route replace 10.7.0.0/16 via 10.7.1.1 congctl timely
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4
		0.05	goodput got flow=a for=0.1
		0.16	end
	EOF
	expect got -le 51000
	expect got -ge 40000
	must ip -n h1 route replace 10.7.0.0/16 via 10.7.1.1
}

# Sockets keep a deleted namespace, and its parameters, until the last of them is closed.
namespace_goes_before_its_sockets() {
	reload_timely
	h1_qdisc fq
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=timely bytes=20000000 verify=1
		0	flow b from=h1 to=h2 addr=$h2_v4 cc=timely_fast bytes=5000000 verify=1
		0.02	run sh $work/set preset paper
		0.03	run ip netns del h1
	EOF
	expect a_done -eq 1
	expect a_same -eq 1
	expect b_same -eq 1
	hosts_down
	unload_timely
}

run_cases hosts files_are_there deprecated_names take_both_ends refuse_invalid_values \
	refuse_contradictions presets_are_loaded namespaces_differ permissions unload_while_open \
	refusals_name_the_allowed_values connections_follow segments_follow changes_under_traffic \
	all_auto names_of_presets names_of_routes namespace_goes_before_its_sockets
