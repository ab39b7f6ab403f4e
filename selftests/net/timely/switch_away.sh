#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timely-switch moves sysctls, qdiscs and routes of several network namespaces away from timely and
# back, reports who uses the modules, and replaces loaded modules by a new version.
# Topology: h1 -- mid -- h2, 1 Gb/s, and a namespace without a name.

. "$(dirname "$0")/ctl_lib.sh"

need_tools insmod rmmod ip tc ss modprobe depmod setpriv unshare
export PATH="$modules:$PATH" MODPROBE_OPTIONS="-d $work/root"
sysctls=/proc/sys/net
installed=$work/root/lib/modules/$(uname -r)

# run STATUS COMMAND: timely-switch must exit with STATUS. Its output is in $work/out.
run() {
	got=0
	${where-} "$here/../../../packaging/timely-switch" "$2" >"$work/out" 2>&1 || got=$?
	[ $got -eq "$1" ] || {
		say_lines <"$work/out"
		fail "status $got, expected $1: timely-switch $2"
	}
	: >"$work/err"
}

says_not() { ! grep -q -- "$1" "$work/out" || fail "the output has: $1"; }

# settings: print all that timely-switch may change, qdiscs on lines of their own and without handles that the
# kernel has chosen.
settings() {
	grep . $sysctls/core/default_qdisc $sysctls/ipv4/tcp_allowed_congestion_control
	grep -s . /sys/module/timely/parameters/* /sys/module/ndp/parameters/*
	for ns in /proc/1/ns/net /run/netns/*; do
		nsenter --net="$ns" sh -c '
			grep -H . /proc/sys/net/ipv4/tcp_congestion_control
			grep -rs . /proc/sys/net/ipv4/timely /proc/sys/net/ndp
			tc -j qdisc show
			ip -d route show table all; ip -d -6 route show table all'
	done | sed 's/^\[//; s/\]$//; s/,{"kind"/\n{"kind"/g' |
		sed 's/"handle":"\(0\|8[0-9a-f]*\):"/"handle":"any"/; s/"parent":"8[0-9a-f]*:/"parent":":/' | sort
}

# No module is installed for this kernel: that is reported, sysctl sets the rest, and TCP works.
unsupported_kernel() {
	run 1 check
	says "no modules of TIMELY for the kernel $(uname -r)"
	says "install its kernel headers: linux-headers-$(uname -r)"
	hosts_up "rate 1gbit delay 10us"
	printf '%s\n' net.ipv4.tcp_congestion_control=timely net.core.default_qdisc=timely \
		net.ipv4.tcp_no_metrics_save=1 >"$work/sysctl.conf"
	refused ip netns exec h1 sysctl -p "$work/sysctl.conf"
	must ip netns exec h1 grep -x 1 $sysctls/ipv4/tcp_no_metrics_save
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic bytes=1000000 verify=1
	EOF
	expect a_same -eq 1
	run 0 back
	says "nothing to restore"
}

install_modules() {
	must mkdir -p "$installed"
	must cp "$modules/timely.ko" "$modules/tcp_timely.ko" "$modules/sch_timely.ko" \
		"$modules/timely_acker.ko" "$modules/ndp.ko" "$installed"
	must depmod -b "$work/root"
	run 0 check
	run 0 status
	says "tcp_timely is not loaded"
	run 0 reload
	for word in bad "" "away back"; do
		# shellcheck disable=SC2086 # words
		run 2 "$word"
		says "usage:"
	done
	where="$as_nobody"
	run 1 away
	says "needs root"
}

# in_session COMMAND: timely-switch in a session of its own, whose number is in $work/session, with the programs of
# $work/bin
in_session() {
	# shellcheck disable=SC2016 # for the inner shell
	PATH=$work/bin:$PATH setsid -w sh -c 'echo $$ >"$1"; exec "$2" "$3"' sh "$work/session" \
		"$here/../../../packaging/timely-switch" "$1"
}

# Only one timely-switch runs at a time: here it waits for nsenter.
another_one_runs() {
	lock=/run/timely-switch.lock
	chmod 644 $lock
	must mkdir -p "$work/bin"
	printf '#!/bin/sh\nsleep 1000\n' >"$work/bin/nsenter"
	chmod +x "$work/bin/nsenter"
	in_session status >"$work/other" 2>&1 &
	sleep 1
	[ "$(stat -c %a $lock)" = 600 ] || fail "other users can open the lock"
	run 1 back
	says "process $(cat "$work/session") (.*timely-switch status *) has held $lock for 60 seconds"
	kill -KILL "-$(cat "$work/session")"
	wait || :
	run 0 back
}

# Everything of which the modules can be part, with options that tc's text rounds.
configure() {
	cat $sysctls/core/default_qdisc >"$work/default_qdisc"
	must modprobe tcp_timely
	must modprobe sch_timely
	must modprobe ndp
	echo timely >$sysctls/ipv4/tcp_congestion_control
	echo timely >$sysctls/core/default_qdisc
	must ip netns exec h1 sh -ec "
		echo timely >$sysctls/ipv4/tcp_congestion_control
		echo 123456 >$sysctls/ipv4/timely/min_rtt_ns
		echo 12 >$sysctls/ndp/data_dscp
		echo 0 >$sysctls/ndp/proof_s"
	echo 1 >/sys/module/timely/parameters/tenants
	echo 7777 >/sys/module/timely/parameters/max_flows
	echo 33 >/sys/module/ndp/parameters/max_memory_mb
	must tc -n h1 qdisc replace dev eth0 root handle 77: timely refill_delay 12345us \
		maxrate 123456789bit ack_first ack_dscp keep split 20000 horizon_cap onramp 123456ns gain 1/16 nolazy
	must tc -n h2 qdisc replace dev eth0 root handle 1: prio
	must tc -n h2 qdisc replace dev eth0 parent 1:2 handle 20: timely limit 1234
	must ip -n mid link add ifb1 numtxqueues 3 type ifb
	must ip -n mid link set ifb1 up
	must ip -n mid link add ifb2 numtxqueues 2 type ifb
	must ip -n mid link set ifb2 up
	must tc -n mid qdisc replace dev ifb2 root handle 5: mq
	must tc -n mid qdisc replace dev ifb2 parent 5:2 timely quantum 5000
	must ip -n h1 route add 10.9.0.0/16 via 10.7.1.1 mtu 1400 congctl timely
	must ip -n h1 route add 10.10.0.0/16 metric 5 congctl lock timely_patched initcwnd 20 \
		via 10.7.1.1
	must ip -n h1 -6 route add fd09::/16 via fd07:1::1 congctl timely
	must ip -n h1 route add 10.11.0.0/16 via 10.7.1.1 congctl cubic
	# Nexthop objects, as routing daemons use them, with and without other metrics.
	must ip -n h1 -batch - <<-EOF
		nexthop add id 5 via 10.7.1.1 dev eth0
		nexthop add id 6 via fd07:1::1 dev eth0
		nexthop add id 7 via fd07:1::7 dev eth0
		nexthop add id 8 group 6/7
		nexthop add id 9 via fd07:1::1 dev eth0 onlink
		route add 10.13.0.0/16 nhid 5 congctl timely
		route add 10.14.0.0/16 nhid 5 proto static metric 20 mtu 1400 congctl timely
		route add 10.15.0.0/16 nhid 5
		route add 10.16.0.0/16 nhid 9 congctl timely
		route add fd0a::/16 nhid 6 congctl timely
		route add fd0b::/16 nhid 8 congctl timely initcwnd 20
	EOF
	must ip netns add "a name"
	unshare -n sleep 100000 &
	echo $! >"$work/sleep"
	settings >"$work/before"
	for setting in '"kind":"timely","handle":"77:"' refill_delay.:12345 congctl 'tcp_congestion_control:timely$' \
		'min_rtt_ns:123456' 'data_dscp:12' 'proof_s:0' 'tenants:Y' 'max_flows:7777' 'max_memory_mb:33'; do
		grep -q -- "$setting" "$work/before" || fail "not configured: $setting"
	done
}

# Sockets keep the modules in use until they are closed. They are reported with their processes.
reports_sockets() {
	look() {
		run 1 status
		says "namespace h1: the default congestion control is timely"
		says "^timely-switch: the default qdisc is timely"
		says "namespace of process $(cat "$work/sleep") (sleep): the default congestion control is timely"
		says "namespace a name: the default congestion control is timely"
		says "namespace h1: qdisc timely of eth0: root"
		says "namespace mid: qdisc timely of ifb1: :3"
		says "namespace h1: route: .*10.9.0.0/16"
		says 'namespace h1: socket: ESTAB 10.7.1.2:[0-9]* 10.7.2.2:[0-9]* ("python3",pid='
		says "1 more sockets, which are neither"
		run 1 away
		says "namespace h1: socket: ESTAB 10.7.1.2"
		says "cannot be unloaded yet"
		says_not "qdisc timely"
		says_not "route"
		refused rmmod tcp_timely
	}
	with_connections <<-EOF
		pair = connect("$h2_v4")
		loose = inside("h1", socket.socket)
		loose.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"timely")
		look()
	EOF
}

# NDP sockets, which ss does not list, keep the module ndp in use, also one that is not connected.
reports_ndp_sockets() {
	look() {
		run 1 status
		says "NDP sockets use the module ndp"
		says_not "socket: "
		run 1 unload
		says "NDP sockets use the module ndp"
		says "cannot be unloaded yet"
		is_loaded ndp || fail "the module ndp was unloaded"
	}
	run 0 status
	with_connections <<-EOF
		lone = inside("h1", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 259))
		look()
	EOF
}

# Between away and back nothing uses the modules, so that they can be unloaded.
away_and_back() {
	run 0 unload
	settings >"$work/between"
	! grep -e '"kind":"timely' -e congctl.*timely -e 'control:timely' "$work/between" || fail "still in use"
	for module in sch_timely ndp tcp_timely timely; do
		! is_loaded $module || fail "$module is loaded"
	done
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 bytes=1000000 verify=1
	EOF
	expect a_same -eq 1
	run 0 back
	settings >"$work/after"
	diff "$work/before" "$work/after" >"$work/diff" || {
		say_lines <"$work/diff"
		fail "back did not restore these settings"
	}
	run 0 back
	says "nothing to restore"
}

# Parameters of modules and sysctls of NDP that were changed between away and back remain as they are.
parameters_changed_between() {
	run 0 away
	echo 8888 >/sys/module/timely/parameters/max_flows
	must ip netns exec h1 sh -c "echo 13 >$sysctls/ndp/data_dscp"
	run 0 back
	must grep -x 8888 /sys/module/timely/parameters/max_flows
	must ip netns exec h1 grep -x 13 $sysctls/ndp/data_dscp
	must ip netns exec h1 grep -x 0 $sysctls/ndp/proof_s
	# A parameter that the new version does not have is reported, and does not keep the others from being restored.
	run 0 unload
	must sed -i 's/ max_flows=/ max_old=3&/' /run/timely-switch
	run 0 back
	says "module timely no longer has the parameter max_old, which was 3"
	must grep -x 8888 /sys/module/timely/parameters/max_flows
	echo 7777 >/sys/module/timely/parameters/max_flows
}

# A trial is over before its route loses timely: back does not make it permanent.
trial_ends() {
	must ip -n h1 route add 10.12.0.0/16 via 10.7.1.1
	must ip netns exec h1 timelyctl trial route 10.12.0.0/16 minutes 10
	run 0 away
	says "namespace h1: the trial was reverted: Trial of the route 10.12.0.0/16"
	run 0 back
	! ip -n h1 route show 10.12.0.0/16 | grep congctl || fail "the trial has become permanent"
	[ -z "$(find /run/timely -name 'trial*')" ] || fail "there is still a trial"
	must ip -n h1 route del 10.12.0.0/16
}

# A trial that cannot be reverted keeps its route, and nothing else, on timely.
trial_stays() {
	must ip -n h1 route add 10.12.0.0/16 via 10.7.1.1
	must ip netns exec h1 timelyctl trial route 10.12.0.0/16 minutes 10
	must ip netns exec h1 sysctl -qw net.ipv4.tcp_congestion_control=timely
	timelyctl=$(command -v timelyctl)
	mkdir -p "$work/trial"
	printf '#!/bin/sh\n[ "$*" != "trial revert" ] && exec %s "$@"\n' "$timelyctl" >"$work/trial/timelyctl"
	chmod +x "$work/trial/timelyctl"
	where="env PATH=$work/trial:$PATH"
	run 1 away
	where=
	says "namespace h1: the trial cannot be reverted"
	says "namespace h1: route: .*10.12.0.0/16 .*congctl timely"
	says_not "the default congestion control is"
	! grep -q "route.*10.12" /run/timely-switch || fail "back would make the trial permanent"
	run 0 back
	[ "$(ip netns exec h1 cat $sysctls/ipv4/tcp_congestion_control)" = timely ] || fail "the default was not restored"
	must ip netns exec h1 timelyctl trial revert
	must ip netns exec h1 sysctl -qw net.ipv4.tcp_congestion_control=cubic
	must ip -n h1 route del 10.12.0.0/16
}

# Between away and back a setup would save the qdiscs of away as those to restore, and a teardown would not find the
# qdiscs of the setup.
setup_and_teardown_wait() {
	control="ip netns exec mid cat $sysctls/ipv4/tcp_congestion_control"
	before=$($control)
	must ip -n mid link add ifb4 type ifb
	must ip -n mid link set ifb4 up
	must tc -n mid qdisc replace dev ifb4 root handle 9: fq limit 77
	where="ip netns exec mid"
	ctl 0 setup ifb4 congctl
	where=
	run 0 away
	where="ip netns exec mid"
	for command in teardown setup; do
		ctl 1 $command ifb4
		says 'run timely-switch back first'
	done
	where=
	run 0 back
	where="ip netns exec mid"
	ctl 0 setup ifb4
	ctl 0 teardown ifb4
	where=
	tc -n mid qdisc show dev ifb4 | grep -q '^qdisc fq 9: .* limit 77p' || fail "not restored"
	case $before,$($control) in
	timely,*)		fail "timely was the default before the setup" ;;
	"$before,$before")	;;
	*)			fail "the default is $($control), was $before" ;;
	esac
	must ip -n mid link del ifb4
}

# As the packages do when they are removed: the qdiscs from before timelyctl setup are there, also after away.
removed() {
	must ip -n mid link add ifb5 type ifb
	must ip -n mid link set ifb5 up
	for first in status away; do
		must tc -n h1 qdisc replace dev eth0 root handle 9: fq limit 77
		must tc -n mid qdisc replace dev ifb5 root fq
		must ip netns exec h1 timelyctl setup eth0
		must ip netns exec mid timelyctl setup ifb5
		run $((${#first} == 6)) $first
		run 0 remove
		says "namespace h1: timelyctl setup of eth0 is undone"
		says "namespace mid: timelyctl setup of ifb5 is undone"
		tc -n h1 qdisc show dev eth0 | grep -q '^qdisc fq 9: .* limit 77p' || fail "not restored"
		[ -z "$(find /run/timely -type f)" ] || fail "state files are left"
		for module in sch_timely tcp_timely timely; do
			! is_loaded $module || fail "$module is loaded"
		done
		run 0 back
	done
	must ip -n mid link del ifb5
}

# killed WHEN TEXT: away is killed before or after its first change whose words have TEXT, and back restores all. Changes
# are made by nsenter, which kills the session of timely-switch.
killed() {
	must mkdir -p "$work/bin"
	cat >"$work/bin/nsenter" <<-EOF
		#!/bin/sh
		kill_now() { kill -KILL "-\$(cat "$work/session")"; }
		case \$* in
		*'$2'*)
			[ $1 = after ] || kill_now
			$(command -v nsenter) "\$@"
			kill_now ;;
		esac
		exec $(command -v nsenter) "\$@"
	EOF
	chmod +x "$work/bin/nsenter"
	in_session away >"$work/out" 2>&1
	[ $? -eq 137 ] || {
		say_lines <"$work/out"
		fail "away was not killed $1 $2"
	}
	run 0 back
	says_not .
	settings >"$work/after"
	diff "$work/before" "$work/after" >"$work/diff" || {
		say_lines <"$work/diff"
		fail "killed $1 $2: back did not restore these settings"
	}
}

killed_half_way() {
	# The kernel has made this mq: away replaces it.
	must ip -n mid link add ifb3 numtxqueues 2 type ifb
	must ip -n mid link set ifb3 up
	settings >"$work/before"
	killed after ' ipv4/tcp_congestion_control '
	killed after 'dev ifb3 root mq'
	killed before 'dev ifb3 parent'
	killed after 'dev eth0 root fq'
	killed after '-6 route change'
	# Nothing is changed without a record.
	must mkdir /run/timely-switch
	run 1 away
	says "/run/timely-switch cannot be written"
	must rmdir /run/timely-switch
	settings | diff "$work/before" - >"$work/diff" || fail "changed without a record"
}

# What was changed between away and back remains as it is.
changed_between() {
	run 0 away
	must ip netns exec h1 sh -c "echo reno >$sysctls/ipv4/tcp_congestion_control"
	must tc -n h1 qdisc replace dev eth0 root pfifo
	must ip -n h1 route del 10.9.0.0/16
	must ip netns del h2
	must ip -n h1 -6 route change fd09::/16 via fd07:1::1 mtu 1300
	run 0 back
	says "namespace h1: the qdisc of eth0 was changed since"
	says "namespace h1: the route was changed since.*10.9.0.0"
	says "namespace h1: the route was changed since.*fd09::"
	must ip netns exec h1 grep -x reno $sysctls/ipv4/tcp_congestion_control
	tc -n h1 qdisc show dev eth0 | grep -q ^"qdisc pfifo " || fail "the qdisc was replaced"
	grep -qx timely $sysctls/ipv4/tcp_congestion_control || fail "the default was not restored"
	hosts_down
	hosts_up "rate 1gbit delay 10us"
}

# install FIELD DIGIT: install modules that differ in the field version or srcversion of modinfo.
install() {
	for module in timely tcp_timely sch_timely timely_acker ndp; do
		sed -i "s/\<$1=./$1=$2/" "$installed/$module.ko"
	done
	must depmod -b "$work/root"
}

# A transfer by cubic goes on while the modules are replaced.
reload_under_traffic() {
	must ip netns exec h1 sh -ec "
		echo 123456 >$sysctls/ipv4/timely/min_rtt_ns
		echo 0 >$sysctls/ndp/proof_s"
	must ip netns exec h2 sh -c "echo cubic >$sysctls/ipv4/tcp_congestion_control"
	h1_qdisc timely limit 4321
	install srcversion F
	traffic <<-EOF
		0	flow a from=h1 to=h2 addr=$h2_v4 cc=cubic cap=100000 verify=1
		0.05	run $here/../../../packaging/timely-switch reload
		0.1	stop a
	EOF
	expect a_done -eq 1
	expect a_same -eq 1
	for module in timely tcp_timely sch_timely; do
		grep -q ^F /sys/module/$module/srcversion || fail "$module was not replaced"
	done
	tc -n h1 qdisc show dev eth0 | grep -q '^qdisc timely .* limit 4321p' || fail "no qdisc timely"
	must ip netns exec h1 grep -x 123456 $sysctls/ipv4/timely/min_rtt_ns
	must ip netns exec h1 grep -x 0 $sysctls/ndp/proof_s
	must grep -x 7777 /sys/module/timely/parameters/max_flows
}

# Modules in use are not replaced, and everything is as before. The kernel computes srcversion from some of the source
# files only, so that two versions may have the same.
reload_refused() {
	install version 8
	settings >"$work/before"
	look() {
		# Nobody reads the messages.
		"$here/../../../packaging/timely-switch" reload 2>&1 | true
		run 1 reload
		says "socket: ESTAB"
		says "that were loaded before remain in use"
	}
	with_connections <<-EOF
		pair = connect("$h2_v4")
		look()
	EOF
	settings >"$work/after"
	diff "$work/before" "$work/after" >"$work/diff" || {
		say_lines <"$work/diff"
		fail "not as before"
	}
	! grep -q ^8 /sys/module/tcp_timely/version || fail "replaced"
}

# An upgrade of the packages, which calls reload, does not end an away.
reload_keeps_away() {
	settings >"$work/before"
	run 0 away
	settings >"$work/between"
	cp /run/timely-switch "$work/record"
	run 1 reload
	says "away is in force: run timely-switch back or, to stay away, rm /run/timely-switch;"
	settings | diff "$work/between" - >"$work/diff" || {
		say_lines <"$work/diff"
		fail "reload has changed these settings"
	}
	cmp "$work/record" /run/timely-switch >"$work/diff" || fail "reload has changed the record"
	! grep -q ^8 /sys/module/tcp_timely/version || fail "replaced"
	run 0 back
	settings | diff "$work/before" - >"$work/diff" || {
		say_lines <"$work/diff"
		fail "back did not restore these settings"
	}
}

# lost TEXT: reload is refused because of a setting that the new modules would not have.
lost() {
	run 1 reload
	says "lost if the modules are unloaded: $1"
}

reload_would_lose_settings() {
	must ip netns exec h1 "$ctl" key add 7 - <<-EOF
		0123456789abcdef0123456789abcdef
	EOF
	lost "keys of On-Ramp"
	says "namespace h1: lost"
	must ip netns exec h1 "$ctl" key del 7
	must modprobe timely_acker
	must "$ctl" acker add 10.0.0.0/8
	lost "rules of On-Ramp's receiver"
	must "$ctl" acker del 10.0.0.0/8
	must ip netns exec h1 "$ctl" onramp unauthenticated on
	lost "that OR-ACKs without a key are accepted"
	must ip netns exec h1 "$ctl" onramp unauthenticated off
	must insmod "$modules/hwnic.ko"
	must ip link add hw type hwnic
	must ip link set hw up
	must "$ctl" nic enable hw
	for setting in "link-rate 1gbit" "link-rate auto hardware off"; do
		# shellcheck disable=SC2086 # words
		must "$ctl" nic set hw $setting
		lost "settings of NICs"
	done
	# Root may have a PATH without the directory into which make install puts timelyctl.
	cat >"$work/installed.sh" <<-EOF
		mount --bind "$modules" /usr/local/sbin && PATH=/sbin:/bin:/usr/sbin:/usr/bin exec "\$@"
	EOF
	where="unshare -m sh $work/installed.sh"
	lost "settings of NICs"
	where=
	must ip link del hw
	must rmmod hwnic
	run 0 reload
	must ip netns exec h1 grep -x 0 $sysctls/ndp/proof_s
	must grep -x 7777 /sys/module/timely/parameters/max_flows
	for module in timely tcp_timely sch_timely timely_acker; do
		grep -q ^8 /sys/module/$module/version || fail "$module was not replaced"
	done
}

finish() {
	run 0 away
	kill "$(cat "$work/sleep")"
	must ip netns del "a name"
	rm -f /run/timely-switch
	cat "$work/default_qdisc" >$sysctls/core/default_qdisc
}

run_cases unsupported_kernel install_modules another_one_runs configure reports_sockets reports_ndp_sockets \
	away_and_back parameters_changed_between trial_ends trial_stays setup_and_teardown_wait killed_half_way \
	changed_between reload_under_traffic reload_refused reload_keeps_away reload_would_lose_settings removed finish
