#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The operations manual (Documentation/operations.md): each indented block runs as a script, in the order of the
# manual, and all commands must succeed. A case is a section of the manual. Functions before_SECTION_NUMBER prepare
# what a block needs: SECTION is the heading in lower case with _, NUMBER counts the section's blocks.
# Where the manual says what an output shows, an entry of the list shows compares it.
# Topology: eth0 of the initial namespace == eth0 of the namespace peer, a pair of test NICs.

. "$(dirname "$0")/ctl_lib.sh"

need_tools bash ethtool modprobe depmod nstat ss nft
top=$here/../../..
manual=$top/Documentation/operations.md
blocks=$work/blocks
# Directories of the machine to which blocks write. Files there are in the guest's memory instead.
written="/etc/modules-load.d /etc/sysctl.d"
export PATH="$modules:$top/packaging:$PATH" MODPROBE_OPTIONS="-d $work/root"

# Commands that do not run here, and why. They are checked for syntax.
not_run="
apt-get: the guest has the machine's root directory, which must not change; packaging/test.sh runs these commands
make: the guest has the machine's root directory, which must not change; packaging/test.sh runs these commands
perf: User Mode Linux has no perf events; tools/lab/vm/smoke.sh runs these commands
bpftrace: User Mode Linux has no BPF programs; tools/lab/vm/smoke.sh runs these commands
"
nft list tables >"$work/tables" 2>&1 || not_run="${not_run}nft: this kernel has no nf_tables; make check runs this test with one that has
"
# Commands that end with another status than 0, and why.
fails="
timelyctl doctor: 4, as nothing synchronises the guest's clock
timely-switch status: 1, as connections use timely
timely-switch away: 1, as connections use timely
"
# What blocks show, as the manual says: the block and a regular expression.
shows="
1_one_route.1: Trial of the route 10.1.0.0/16: the former route is restored in 600 s
1_one_route.2: ^10.1.2.2:.* other-qdisc
1_one_route.2: ^10.1.2.0/24 
1_one_route.2: timely .*pacing_rate
1_one_route.3: the former route is restored
2_one_host.2: ^tc qdisc replace dev eth0 root timely
2_one_host.2: ^sysctl -w net.ipv4.tcp_congestion_control=timely
2_one_host.4: hardware RTTs +in use
2_one_host.4: ^qdisc timely
2_one_host.4: latency [0-9]+ns
clocks.1: ^Stratum +: 10
clocks.1: ^probes_apart +0 
incidents.1: ^errors: 0, 
connections_do_not_use_timely.1: congctl timely
low_throughput_and_a_long_queue.1: ^10.1.2.0/24 
low_throughput_on_busy_hosts.1: ^driver +[0-9]
hardware_timestamps_are_not_used.1: hardware RTTs +in use
the_assumed_link_rate_is_wrong.1: \"link_kbps\":10000000,
the_assumed_link_rate_is_wrong.1: Speed: 10000Mb/s
one_qdisc_for_all_queues.2: has timely on each of its queues
drops_in_the_host_s_qdisc.1: ^qdisc timely
a_budget_is_used_up.1: ^flows +[0-9]+ +65536 +0 
a_module_cannot_be_unloaded.1: timely-switch: socket: ESTAB 10.1.2.2
everything_is_gone_after_a_reboot.1: ^tcp_timely 
a_trial_does_not_end.1: Trial of the route 10.1.0.0/16
turning_everything_off.1: There is no trial
turning_everything_off.2: timely-switch: socket: ESTAB 10.1.2.2
"

# Write each block to a file SECTION.NUMBER, and their names to the file list.
mkdir -p "$blocks"
awk -v dir="$blocks/" '
	/^#/ { section = tolower($0); sub(/^#+ */, "", section); gsub(/[^a-z0-9]+/, "_", section); number = 0 }
	/^    / && !inside { inside = 1; file = section "." ++number; print file >(dir "list") }
	!/^    / { inside = 0 }
	inside { print substr($0, 5) >(dir file) }' "$manual"

# ---- the host of the manual ----

# Keep 20 connections open, which send 1 MB/s in all; every 2 s a new one replaces the oldest one.
connections() {
	work=$work/connections
	mkdir "$work"
	sockets <<-END
		listener = inside("peer", socket.socket)
		listener.bind(("10.1.2.3", 0))
		listener.listen()
		pairs = []
		while not os.path.exists("$work/stop"):
		    client = socket.socket()
		    client.connect(listener.getsockname())
		    pairs = [*pairs[-19:], (client, listener.accept()[0])]
		    for _ in range(2):
		        for client, server in pairs:
		            client.send(bytes(50000))
		            time.sleep(.05)
		            server.recv(1 << 20)
	END
}

host_up() {
	must mkdir -p "$work/root/lib/modules/$(uname -r)"
	must cp "$modules/timely.ko" "$modules/tcp_timely.ko" "$modules/sch_timely.ko" "$modules/timely_acker.ko" \
		"$work/root/lib/modules/$(uname -r)"
	must depmod -b "$work/root"
	for dir in $written; do
		must mount -t tmpfs manual "$dir"
	done
	must insmod "$modules/hwnic.ko"
	must ip netns add peer
	must ip link add hw type hwnic
	must ip link set hw name eth0
	must ip link set hwp netns peer name eth0
	must ip -n peer -batch - <<-END
		address add 10.1.2.3/16 dev eth0
		address add 10.1.0.1/16 dev eth0
		link set eth0 up
	END
	must ip -batch - <<-END
		address add 10.1.2.2/16 dev eth0
		link set eth0 up
		route add default via 10.1.0.1
	END
	must sysctl -w "net.ipv4.tcp_allowed_congestion_control=reno cubic"
	(settings) >"$work/settings"
	clock_daemon
	connections &
	sleep 1
}

# Settings of other programs, which the manual changes and restores.
settings() {
	ip -4 route show
	cd /proc/sys/net/ipv4 && grep . tcp_congestion_control tcp_allowed_congestion_control tcp_reflect_tos
	nft list tables 2>/dev/null || :
}

# A clock daemon for chronyc, which has no source of time and leaves the guest's clock alone.
clock_daemon() {
	cat >"$work/chrony.conf" <<-END
		local stratum 10
		port 0
		cmdport 0
		pidfile $work/chrony.pid
	END
	must "$modules/chronyd" -x -u root -f "$work/chrony.conf"
}

# Stop the connections, as when their processes are restarted.
stop_connections() {
	: >"$work/connections/stop"
	within_seconds 5 no_connections || fail "the connections are still there"
}

no_clock_daemon() { ! pgrep -x chronyd >/dev/null; }
no_connections() { ! pgrep -x python3 >/dev/null; }

host_down() {
	stop_connections
	must kill "$(cat "$work/chrony.pid")"
	within_seconds 5 no_clock_daemon || fail "chronyd is still there"
	must ip netns del peer
	must rmmod hwnic
	for dir in $written; do
		must umount "$dir"
	done
}

# ---- preparations ----

before_1_one_route_4() { ctl 0 trial route 10.1.0.0/16; }
before_on_ramp_pauses_without_a_queue_1() { ctl 0 setup eth0; }
before_a_trial_does_not_end_1() { ctl 0 trial route 10.1.0.0/16; }
before_turning_everything_off_3() { fails=; stop_connections; }
before_turning_everything_off_4() { must cp /run/timely.prom "$work"; }

# ---- running ----

# listed LIST LINE: print why the line is in the list; fail if it is not
listed() {
	while IFS= read -r entry; do
		command=${entry%%: *}
		[ "$command" ] || continue
		case "$2 " in
		"$command "*)
			echo "$command" >>"$work/used"
			echo "${entry#*: }"
			return ;;
		esac
	done <<-END
		$1
	END
	return 1
}

# script BLOCK: print the block as a script
script() {
	echo "set -eu -o pipefail"
	while IFS= read -r line; do
		if why=$(listed "$not_run" "$line"); then
			say "not run, as $why: $line" >&3
		elif why=$(listed "$fails" "$line"); then
			printf '%s && exit 99 || [ $? -eq %s ]\n' "$line" "${why%%,*}"
		else
			printf '%s\n' "$line"
		fi
	done <"$1"
}

# shows_all BLOCK: the output of the block has a match of each of its entries in the list shows
shows_all() {
	while IFS= read -r entry; do
		[ "${entry%%: *}" = "$1" ] || continue
		echo "$1" >>"$work/used"
		grep -v '^+' "$work/must" | grep -qE -- "${entry#*: }" || {
			say_lines <"$work/must"
			fail "the output of $1 does not show: ${entry#*: }"
		}
	done <<-END
		$shows
	END
}

# section NAME: run all blocks of the section
section() {
	grep "^$1[.]" "$blocks/list" | while read -r block; do
		must bash -n "$blocks/$block"
		# New connections begin, by the present settings.
		sleep 3
		before=before_$(echo "$block" | tr . _)
		if command -v "$before" >/dev/null; then
			echo "$before" >>"$work/used"
			"$before"
		fi
		{ script "$blocks/$block" >"$work/script"; } 3>&1
		cd "$top" || exit 1
		must timeout 120 bash -x "$work/script" </dev/null
		shows_all "$block"
		[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/must"
	done || exit 1
}

# After the last section nothing is left of the modules.
everything_is_off() {
	for module in timely tcp_timely sch_timely timely_acker; do
		! is_loaded $module || fail "$module is still loaded"
	done
	for file in /run/timely* /run/timely/* /etc/modules-load.d/* /etc/sysctl.d/*; do
		[ -d "$file" ] || [ ! -e "$file" ] || fail "$file was left"
	done
	(settings) >"$work/settings-left"
	must diff "$work/settings" "$work/settings-left"
}

# Each entry of the lists and each preparation is for a command or block of the manual.
nothing_is_superfluous() {
	{
		echo "$not_run$fails$shows" | sed 's/: .*//'
		grep -o '^before_[a-z0-9_]*' "$0"
	} | sort -u | while read -r name; do
		[ -z "$name" ] || grep -qxF "$name" "$work/used" || fail "the manual has no use for: $name"
	done || exit 1
}

# Names of counters, parameters, metrics and tests are those of the man pages, timelyctl metrics and the list of tests.
names_exist() {
	# shellcheck disable=SC2016 # no expansion
	grep -v '^    ' "$manual" | grep -o '`[^`]*`' | grep -oE '[a-z0-9]+(_[a-z0-9]+)+' | sort -u >"$work/names"
	grep -q '^timely_connections [1-9]' "$work/timely.prom" || fail "no connection used timely"
	[ "$(wc -l <"$work/names")" -gt 20 ] || fail "the manual has no names"
	sed 's/_bucket//; s/{.*//' "$work/timely.prom" | cat - "$top"/man/* "$top/selftests/README.md" >"$work/known"
	while read -r name; do
		grep -qwF -- "${name%_bucket}" "$work/known" || fail "no man page, metric or test has the name $name"
	done <"$work/names"
}

# Links to sections of the manual lead to a heading.
links_lead_somewhere() {
	sed -n 's/^##* //p' "$manual" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n-' >"$work/headings"
	grep -o '](#[^)]*' "$manual" | sed 's/..#//' | while read -r link; do
		grep -qxF -- "$link" "$work/headings" || fail "no section #$link"
	done || exit 1
}

sections=
for name in $(sed 's/\..*//' "$blocks/list" | uniq); do
	eval "section_$name() { section $name; }"
	sections="$sections section_$name"
done
# shellcheck disable=SC2086 # a list
run_cases host_up $sections everything_is_off nothing_is_superfluous names_exist links_lead_somewhere host_down
