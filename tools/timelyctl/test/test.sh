#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Test timelyctl without a NIC and without modules: its command line, its output, and the requests
# that it sends. fake.c simulates drivers, and fake_family.c the netlink families of the modules.
# fake_files.c has files of /proc and /sys.
# timelyctl is built with the address and undefined-behaviour sanitizers. TAP on standard output.
#
# selftests/net/timely/timelyctl.sh tests timelyctl with a kernel and the modules.

set -u

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
PATH=$PATH:/usr/sbin:/sbin
python=/usr/bin/python3
number=0
failed=0
# The program as it is installed, and the program that is linked with the simulated kernel.
real=$work/real/timelyctl
fake=$work/fake/timelyctl
# A device that every host has: the simulated driver answers for all devices.
dev=lo

# result STATUS NAME: report a test; STATUS is that of the command before
result() {
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		for file in output errors log; do
			[ ! -s "$work/$file" ] || sed "s/^/# $file: /" "$work/$file"
		done
		failed=$((failed + 1))
	fi
}

# run "KEY=NUMBER..." ARG...: run timelyctl with a driver that fake.c simulates by these values. The
# exit status is in $status, the text in $work/output and $work/errors, and $work/log has the
# configurations or requests that timelyctl sent.
run() {
	rm -f "$work/log"
	: >"$work/log"
	knobs=$1
	shift
	FAKE_NIC=$knobs FAKE_LOG=$work/log "$fake" "$@" >"$work/output" 2>"$work/errors"
	status=$?
}

# ends STATUS: the exit status was STATUS, and no sanitizer reported an error
ends() {
	[ $status -eq "$1" ] && ! grep -qE 'Sanitizer|runtime error' "$work/errors"
}

says() { grep -q -- "$1" "$work/output"; }
warns() { grep -q -- "$1" "$work/errors"; }
quiet() { [ ! -s "$work/errors" ]; }
# set_was TEXT: the log is exactly TEXT, such as "rx 1 tx 0"
set_was() { printf '%s' "${1:+$1
}" | cmp -s - "$work/log"; }

# ---- the command line ----

# usage TEXT ARG...: timelyctl refuses its arguments with a message that matches TEXT
usage() {
	text=$1
	shift
	run "" "$@"
	ends 2 && warns "$text" && set_was ""
	result $? "wrong usage: timelyctl $*"
}

command_line() {
	usage 'Usage: timelyctl'
	usage 'unknown command "nick"' nick
	usage 'rtt: unexpected word "x"' rtt x
	usage 'limits: unexpected word "x"' limits x
	usage 'teardown: unexpected word "--force"' teardown a --force
	usage 'setup: -j is only for commands that show something' -j setup a
	usage 'limits: unexpected word "--force"' --force limits
	usage 'metrics: unexpected word "x": allowed are all, output, http' metrics x
	usage 'metrics: unexpected word "x"' metrics all http x
	usage "metrics output: the file's name is missing" metrics output
	usage 'metrics: unexpected word "x"' metrics all output "$work/metrics" x
	usage 'metrics: -j is not possible' -j metrics
	usage 'trial: allowed are route, cgroup, confirm, revert and status, not "stop"' trial stop
	usage 'trial confirm: unexpected word "x"' trial confirm x
	usage 'trial revert: -j is only for commands that show something' -j trial revert
	usage 'trial route: the prefix is missing' trial route
	usage 'trial route: allowed are default and prefixes, not "eth0"' trial route eth0
	usage '10.1.1.0/16: the bits after the prefix length must be 0' trial route 10.1.1.0/16
	usage 'trial route: unexpected word "for"' trial route 10.1.0.0/16 for 5
	usage 'minutes: a value is missing' trial route 10.1.0.0/16 minutes
	usage 'minutes: 1 to 1440 are allowed, not "1441"' trial route default minutes 1441
	usage 'trial route: unexpected word "x"' trial route default minutes 5 x
	usage 'trial cgroup: the directory of the control group is missing' trial cgroup
	usage 'trial cgroup: unexpected word "for"' trial cgroup /sys/fs/cgroup for 5
	usage 'minutes: 1 to 1440 are allowed, not "0"' trial cgroup /sys/fs/cgroup minutes 0
	usage 'doctor: give one device, not "b" as well' doctor a b
	usage 'unrecognized option' --jason nic
	usage "setup: the device's name is missing" setup --dry-run
	usage 'setup: unexpected word "b"' setup a b
	usage 'teardown: unexpected word "congctl"' teardown a congctl
	usage "the device's name is missing" nic enable
	usage "the device's name is missing" nic disable
	usage "the device's name is missing" nic set
	usage 'give one device, not "b" as well' nic enable a b
	usage 'nic enable: -j is only for commands that show something' -j nic enable $dev
	usage 'a setting is missing: link-rate or hardware' nic set $dev
	usage 'nic set: allowed are link-rate and hardware, not "speed"' nic set $dev speed 10gbit
	usage 'link-rate: a value is missing' nic set $dev link-rate
	usage 'hardware: allowed are on and off, not "yes"' nic set $dev hardware yes
	usage 'hardware: allowed are on and off, not "On"' nic set $dev link-rate auto hardware On
	for rate in '' 0 0bit 400bit 1e3 0x10 inf nan 10gb 10gbitx 1.2.3gbit .gbit gbit 1001gbit 2tbit \
		99999999999999999999999999999999999999 '1 gbit'; do
		usage "link-rate: allowed are auto and rates up to 1tbit" nic set $dev link-rate "$rate"
	done
	run "" nic set nosuch0 line-rate 25gbit
	ends 1 && warns 'line-rate is deprecated and will be removed in the next release: use link-rate' &&
		warns 'no device "nosuch0"'
	result $? 'line-rate is deprecated'
	# Valid rates are accepted: the error is that the device does not exist.
	for rate in 1kbit 1000 10gbit 25Gbit 40000mbit 1.5gbit 3.125gbps 2.5GBIT 1tbit 1gibit 0.001mbit; do
		run "" nic set nosuch0 link-rate $rate
		ends 1 && warns 'no device "nosuch0"'
		result $? "link-rate $rate"
	done
	for args in help --help -h "nic --help"; do
		# shellcheck disable=SC2086 # words
		run "" $args
		ends 0 && quiet && says 'nic enable'
		result $? "timelyctl $args"
	done
	run "" --version
	ends 0 && says '^timelyctl [0-9]'
	result $? "timelyctl --version"
	run "" doctor nosuch0
	ends 1 && warns 'no device "nosuch0"'
	result $? "doctor: a device that does not exist"
	run "" nic show nosuch0
	ends 1 && warns 'no device "nosuch0"'
	result $? "show: a device that does not exist"
	for verb in enable disable; do
		run "" nic $verb nosuch0
		ends 1 && warns 'no device "nosuch0"' && set_was ""
		result $? "$verb: a device that does not exist"
		run "" nic $verb "$(printf 'a\033[2Jb')"
		ends 1 && warns 'no device "a?\[2Jb"' && set_was ""
		result $? "$verb: control characters of a name are not printed"
	done
	onramp_command_line
	! "$real" -j nic show $dev >/dev/full 2>"$work/errors" && warns 'cannot write'
	result $? "output that cannot be written is an error"
}

onramp_command_line() {
	usage 'onramp: allowed are show, flows, peers and unauthenticated, not "flow"' onramp flow
	usage 'onramp flows: unexpected word "x"' onramp flows x
	usage 'ndp: "sort" is unknown: allowed are show, paths, counters, from, to, port, limit' ndp paths sort rate
	usage 'ndp port: allowed are 1 to 65535, not "0"' ndp port 0
	usage 'ndp: a value is missing after "to"' ndp to
	usage 'give on or off' onramp unauthenticated
	usage 'allowed are on and off, not "1"' onramp unauthenticated 1
	usage 'onramp unauthenticated: -j is only to show' -j onramp unauthenticated on
	usage 'key: unknown command "rotate": allowed are' key rotate
	usage 'key list: unexpected word "x"' key list x
	usage 'key generate: unexpected word "x"' key generate x
	usage 'key generate: -j is only for' -j key generate
	usage 'the number of the key is missing' key add
	usage 'the number of the key is missing' key use
	usage 'the number of the key is missing' key del
	for key in 0 256 -1 1x '' none; do
		usage 'key add: allowed are 1 to 255, not' key add "$key"
		usage 'key del: allowed are 1 to 255, not' key del "$key"
	done
	usage 'key use: allowed are 1 to 255 and none, not "0"' key use 0
	usage 'key use: unexpected word "2"' key use 1 2
	usage 'key add: unexpected word "x"' key add 1 - x
	usage 'acker: unknown command "rules": allowed are' acker rules
	usage 'acker show: unexpected word "x"' acker show x
	usage 'acker add: -j is only for' -j acker add any
	usage "the data's source is missing" acker add
	for prefix in '' 10 10.0.0.0.0 10.0.0.0/33 10.0.0.0/-1 10.0.0.0/ 10.0.0.0/8x fd00::/129 fd00::g Any \
		fd00:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000; do
		usage 'acker add: allowed are any and prefixes' acker add "$prefix"
	done
	usage '10.0.0.1/8: the bits after the prefix length must be 0' acker del 10.0.0.1/8
	usage 'fd00::1/127: the bits after the prefix length must be 0' acker add fd00::1/127
	usage 'unexpected word "ports": only port may follow' acker add any ports 5
	usage 'port: a value is missing' acker add any port
	for ports in 0 65536 5-4 5- -5 x 1-2-3 100000-5 ''; do
		usage 'port: allowed are 1 to 65535 and ranges such as 80-90, not' acker add any port "$ports"
	done
	usage 'acker add: unexpected word "x"' acker add any port 5 x
	usage 'acker set: a setting is missing' acker set
	usage 'unknown setting "speed": allowed are every' acker set speed 5
	usage 'every: a value is missing' acker set rate 5 every
	usage 'every: 0 to 4294967295 are allowed, not "-1"' acker set every -1
	usage 'rate: 0 to 4294967295 are allowed, not "1.5"' acker set rate 1.5
	usage 'test-clock-drift: -2147483648 to' acker set test-clock-drift 2147483648
	usage 'give each setting once' acker set rate 1 rate 1 rate 1 rate 1 rate 1 rate 1 rate 1
}

# ---- show ----

# shows "KEY=NUMBER..." TEXT: a line of `nic show` matches TEXT
shows() {
	run "$1" nic show $dev
	ends 0 && quiet && says "$2"
	result $? "show: $1: $2"
}

# show_json "KEY=NUMBER..." EXPRESSION: EXPRESSION is true for the device n of `-j nic show`
show_json() {
	run "$1" -j nic show $dev
	ends 0 && quiet && "$python" -I -c '
import json, sys
n, = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), n' "$work/output" "$2" 2>>"$work/errors"
	result $? "show -j: $1: $2"
}

show() {
	shows "" 'hardware RTTs   not enabled: timelyctl nic enable lo$'
	shows "" 'can timestamp   in hardware all packets; clock /dev/ptp0$'
	shows "" 'timestamps now  rx none, tx off$'
	shows "" 'link rate       25 Gb/s$'
	shows "speed=2500" 'link rate       2.5 Gb/s$'
	shows "speed=100" 'link rate       100 Mb/s$'
	shows "speed=-1" 'link rate       not known$'
	shows "rx=1" 'hardware RTTs   module timely not loaded: modprobe tcp_timely$'
	shows "rx=12 tx=1" 'timestamps now  rx ptpv2-event, tx on$'
	shows "rx=99 tx=99" 'timestamps now  rx unknown, tx unknown$'
	shows "rx=1 get_errno=95" 'timestamps now  the driver does not report it$'
	shows "rx=1 get_errno=95" 'hardware RTTs   module timely not loaded'
	shows "get_errno=19" 'timestamps now  unknown: No such device$'
	shows "phc=-1" 'can timestamp   in hardware all packets$'
	shows "filters=0x1001" 'hardware RTTs   not possible: this NIC timestamps PTP packets only$'
	shows "filters=0x1001" 'can timestamp   in hardware PTP packets only, in software all; '
	shows "filters=0x1001 rx=1" 'can timestamp   in hardware all packets'
	shows "filters=1 so=0x1f" 'hardware RTTs   not possible: this device does not timestamp in hardware$'
	shows "so=0x18 phc=-1" 'can timestamp   in software only$'
	shows "so=0 phc=-1" 'can timestamp   nothing$'
	shows "info_errno=95" 'can timestamp   nothing$'
	shows "" 'coalescing      none, an interrupt for each packet$'
	shows "usecs=50 frames=0" 'coalescing      interrupt after 50 us$'
	shows "usecs=50 frames=32 adaptive=1" 'adapts to the load, now: interrupt after 50 us or 32 packets$'
	shows "usecs=0 frames=32" 'coalescing      interrupt after 32 packets$'
	shows "coalesce_errno=95" 'coalescing      not known$'
	shows "usecs=50 frames=0" 'coalescing of 50 us is part of RTTs that end with driver timestamps: ethtool -C lo '
	shows "on=0xf" 'offloads        GRO on, TSO on, LRO on, GRO-HW on$'
	shows "on=0" 'offloads        GRO off, TSO off, LRO off, GRO-HW off$'
	shows "features=2" 'offloads        GRO on, TSO on, LRO unknown, GRO-HW unknown$'
	shows "features=0" 'offloads        GRO unknown, '
	shows "on=0xf" '\* LRO merges .*ethtool -K lo lro off$'
	shows "on=0xf" '\* GRO-HW merges .*ethtool -K lo rx-gro-hw off$'

	show_json "" 'n["ifname"] == "lo" and n["driver"] == "fake" and n["up"] in (True, False)'
	show_json "" 'n["can_stamp"] == "hardware-all" and n["can_stamp_tx"] and n["ptp_clock"] == 0'
	show_json "" 'n["rx_filter"] == "none" and n["tx_type"] == "off"'
	show_json "" 'n["hardware_rtt"]["state"] == "not-enabled" and n["hardware_rtt"]["drift_ppb"] is None'
	show_json "rx=1" 'n["hardware_rtt"]["state"] == "no-module"'
	# For one release, JSON has the old names too.
	show_json "" 'n["hardware_rtt"]["cross_timestamps"] == n["hardware_rtt"]["brackets"] == 0'
	show_json "filters=0x1001 phc=-1" 'n["can_stamp"] == "hardware-ptp" and n["ptp_clock"] is None'
	show_json "get_errno=95" 'n["rx_filter"] is None and n["tx_type"] is None'
	show_json "" 'n["link_speed_mbps"] == 25000 and n["line_rate_override_kbps"] is None'
	show_json "speed=-1" 'n["link_speed_mbps"] is None'
	show_json "usecs=7 frames=9 adaptive=1" \
		'(n["rx_coalesce_usecs"], n["rx_coalesce_frames"], n["rx_coalesce_adaptive"]) == (7, 9, True)'
	show_json "coalesce_errno=95" 'n["rx_coalesce_usecs"] is None and n["rx_coalesce_adaptive"] is None'
	show_json "on=5" '[n[k] for k in ("gro", "tso", "lro", "gro_hw")] == [True, False, True, False]'
	show_json "features=1" 'n["gro"] and n["tso"] is None'
	show_json "usecs=50 frames=0" 'len(n["hints"]) == 1 and "50 us" in n["hints"][0]'
}

# Whatever a driver answers, timelyctl succeeds, and prints valid JSON and printable text.
random_drivers() {
	seed=0
	bad=0
	while [ $seed -lt 100 ]; do
		seed=$((seed + 1))
		run "random=$seed features=$((seed * 37 % 5000))" -j nic show $dev $dev
		ends 0 && "$python" -I -m json.tool "$work/output" >/dev/null 2>>"$work/errors" || bad=$((bad + 1))
		run "random=$seed features=$((seed % 70))" nic show $dev
		# Text has no control characters.
		ends 0 && ! LC_ALL=C grep -q '[^ -~]' "$work/output" || bad=$((bad + 1))
		[ $bad -eq 0 ] || break
	done
	[ $bad -eq 0 ]
	result $? "show: drivers with random answers, 100 seeds"
}

# ---- enable, disable ----

# does "KEY=NUMBER..." VERB STATUS "SET..." TEXT: `nic VERB` ends with STATUS, sets the configurations
# SET, and prints TEXT
does() {
	run "$1" nic "$2" $dev
	ends "$3" && set_was "$4" && cat "$work/output" "$work/errors" | grep -q -- "$5"
	result $? "$2: $1: status $3, $5"
}

changes() {
	does "" enable 0 "rx 1 tx 0" 'all received packets are timestamped now (rx was none; tx is off as before)'
	does "tx=1" enable 0 "rx 1 tx 1" 'tx is on as before'
	does "rx=1" enable 0 "" 'timestamped already'
	does "rx=12 tx=1" enable 0 "rx 1 tx 1" 'A PTP program had set the filter ptpv2-event; the filter all includes'
	does "filters=0x1001" enable 3 "" 'timestamps PTP packets only, not all'
	does "filters=1" enable 3 "" 'does not timestamp received packets in hardware'
	does "so=0x18" enable 3 "" 'does not timestamp received packets in hardware'
	does "info_errno=95" enable 3 "" 'does not timestamp received packets in hardware'
	does "set_errno=34" enable 3 "" 'Nothing was changed'
	does "narrow=12" enable 3 "rx 12 tx 0
rx 0 tx 0" 'the driver chose ptpv2-event, .* Nothing was changed (rx none)'
	does "narrow=12 lies=1 rx=9 tx=1" enable 3 "rx 12 tx 1
rx 9 tx 1" 'the driver chose ptpv2-event, .* Nothing was changed (rx ptpv2-l2-event)'
	does "narrow=12 stuck=1 rx=9" enable 3 "rx 12 tx 0" 'its filter ptpv2-l2-event could not be restored'
	does "get_errno=95" enable 0 "rx 1 tx 1" 'the driver does not report the previous setting'
	does "get_errno=95 tx_types=1" enable 0 "rx 1 tx 0" 'the driver does not report the previous setting'
	does "get_errno=95 narrow=12" enable 3 "rx 12 tx 1
rx 0 tx 1" 'the driver chose ptpv2-event'
	does "tx_made=1" enable 0 "rx 1 tx 1" 'The driver changed the timestamps of sent packets: tx was off and is on'
	does "set_errno=1" enable 1 "" 'nic enable needs root (CAP_NET_ADMIN): sudo timelyctl nic enable lo'
	does "set_errno=95" enable 1 "" 'has no setting for hardware timestamps'
	does "set_errno=16" enable 1 "" 'the driver is busy'
	does "set_errno=19" enable 1 "" 'ip link set lo up'
	does "set_errno=5" enable 1 "" 'the driver refused: Input/output error'

	does "rx=1" disable 0 "rx 0 tx 0" 'not timestamped any more'
	does "rx=1 tx=1" disable 0 "rx 0 tx 1" 'if a PTP program uses this NIC, restart it'
	does "" disable 0 "" 'already'
	does "so=0x18" disable 0 "" 'already'
	does "rx=12" disable 0 "" "rx ptpv2-event is a PTP program's filter"
	does "get_errno=95" disable 0 "rx 0 tx 1" 'not timestamped any more'
	does "rx=1 set_errno=1" disable 1 "" 'sudo timelyctl nic disable lo'
}

# ---- On-Ramp ----

# onramp "KEY=NUMBER..." STATUS TEXT ARG...: with modules that fake_family.c simulates by these values,
# timelyctl ends with STATUS and prints a line that matches TEXT; an empty TEXT: prints nothing
onramp() {
	knobs=$1
	wanted=$2
	text=$3
	shift 3
	FAKE_FAMILY=$knobs
	export FAKE_FAMILY
	run "" "$@"
	unset FAKE_FAMILY
	cat "$work/output" "$work/errors" >"$work/all"
	if [ -z "$text" ]; then ends "$wanted" && [ ! -s "$work/all" ]
	else ends "$wanted" && grep -q -- "$text" "$work/all"; fi
	result $? "$*: $knobs: status $wanted, $text"
}

# sends "KEY=NUMBER..." "COMMAND ATTR=HEX..." ARG...: timelyctl sends exactly these requests, and
# succeeds without an error message
sends() {
	knobs=$1
	request=$2
	shift 2
	FAKE_FAMILY=$knobs
	export FAKE_FAMILY
	run "" "$@"
	unset FAKE_FAMILY
	ends 0 && quiet && set_was "$request"
	result $? "$*: sends $request"
}

# onramp_json "KEY=NUMBER..." EXPRESSION ARG...: EXPRESSION is true for the output n of `timelyctl -j`
onramp_json() {
	knobs=$1
	expression=$2
	shift 2
	FAKE_FAMILY=$knobs
	export FAKE_FAMILY
	run "" -j "$@"
	unset FAKE_FAMILY
	ends 0 && quiet && "$python" -I -c '
import json, sys
n = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), n' "$work/output" "$expression" 2>>"$work/errors"
	result $? "-j $*: $knobs: $expression"
}

show_onramp() {
	onramp "" 0 'OR-ACKs at UDP port 20306' onramp
	onramp "" 0 'keys             none$' onramp show
	onramp "keys=3 used=2" 0 'keys             1, 2 (used), 3$' onramp
	onramp "" 0 'there is no key: OR-ACKs are neither accepted nor sent' onramp
	onramp "keys=1" 0 'no key is used: this host sends no OR-ACKs' onramp
	onramp "unauthenticated=1" 0 'unauthenticated  ON$' onramp
	onramp "unauthenticated=1" 0 'WARNING: OR-ACKs without a key are accepted: anyone' onramp
	onramp "count=18446744073709551615" 0 'sent .* 9223372036854775807  what it counts$' onramp
	onramp "count=7" 0 'do all hosts have the same keys' onramp
	onramp "count=7" 0 'because of impossible times' onramp
	onramp "timely=0" 1 'not loaded: modprobe sch_timely where data is sent, timely_acker' onramp
	onramp "errno=95" 1 'has no On-Ramp: it is older' onramp
	onramp "" 0 'On-Ramp has no flows' onramp flows
	onramp "flows=2" 0 'tcp   \[a00:1::1\]:1001       \[ac00:1::1\]:80 .*50 us  0.50        10        1   1000 us     20 us$' onramp flows
	onramp "flows=1" 0 'udp   10.0.0.0:1000         172.0.0.0:80 .*0 ns         -$' onramp flows
	onramp "flows=5 interrupted=3" 0 '1004' onramp flows
	onramp "flows=5 interrupted=99" 1 'Interrupted' onramp flows
	onramp "errno=1" 1 'sudo timelyctl onramp flows' onramp flows
	onramp "errno=22 why=1" 1 'timelyctl: because of the moon$' onramp flows
	onramp "" 0 'On-Ramp has no peers' onramp peers
	onramp "peers=2" 0 '^172.0.0.9  *7  *15 us  *-  *-  *-$' onramp peers
	onramp "peers=2" 0 '^ac00:9::1  *8  *16 us  *-[0-9]* s  *0 ns  *too old$' onramp peers
	onramp "errno=1" 1 'sudo timelyctl onramp peers' onramp peers
	onramp "keys=2 used=1" 0 '^1 (used), 2$' key
	onramp "" 0 '^none$' key list

	onramp_json "keys=2 used=1 count=5" 'n["keys"] == [1, 2] and n["used"] == 1 and n["port"] == 20306' onramp
	onramp_json "count=5" 'n["counters"]["sent"] == 5 and n["used"] is None and n["keys"] == []' onramp
	onramp_json "unauthenticated=1" 'n["unauthenticated"] and len(n["hints"]) == 1' onramp
	onramp_json "" 'n == []' onramp flows
	onramp_json "flows=40 interrupted=2" '[f["paused_ns"] for f in n] == [1000000 * i for i in range(39, -1, -1)]' onramp flows
	onramp_json "flows=1" 'n[0]["source"] == "10.0.0.0" and n[0]["source_port"] == 1000 and n[0]["b"] == .5' onramp flows
	onramp_json "" 'n == []' onramp peers
	onramp_json "peers=2 interrupted=2" 'n[0] == {"to": "172.0.0.9", "flows": 7, "delay_ns": 15000, "clock": None}' onramp peers
	onramp_json "peers=2" 'n[1]["to"] == "ac00:9::1" and n[1]["clock"]["drift_ppb"] == -5 and not n[1]["clock"]["valid"]' onramp peers
	onramp_json "keys=255 used=255" 'len(n["keys"]) == 255 and n["used"] == 255' key list
}

ndp() {
	onramp "ndp=0" 1 'module ndp is not loaded: modprobe ndp' ndp
	onramp "ndp=1 errno=95" 1 'a request to module ndp failed' ndp
	onramp "ndp=1" 0 'no program has an NDP socket' ndp
	onramp "ndp=1" 0 '^pull queue of lo: 10 Gb/s, 3 connections wait, 77 pulls$' ndp
	onramp "ndp=1" 0 '^memory of connections: 16384 of 1000000 bytes$' ndp
	onramp "ndp=1 ndp_sockets=1" 0 '^10.0.0.1:5000 *- *LISTEN *3 of 8 connections wait to be accepted$' ndp
	onramp "ndp=1 ndp_sockets=2" 0 '^\[a00:1::1\]:5001 *\[ac00::\]:80 *ESTAB *40 us *5 *12/30 *10 Gb/s *1000 *1 *7 *0 15/16 no-room$' ndp
	onramp "ndp=1 ndp_sockets=3" 0 '15/16 graceful$' ndp
	onramp "ndp=1 ndp_sockets=4 interrupted=2" 0 '15/16 unanswered$' ndp
	onramp "ndp=1 ndp_sockets=2" 0 ':80 *20308 *0 *0 *6 *2 1500 us$' ndp paths
	onramp "ndp=1" 0 '^received *1000  what it counts$' ndp counters
	onramp_json "ndp=1 ndp_sockets=9 interrupted=1" '[s["from_port"] for s in n["sockets"]] == [5008 - i for i in range(9)]' ndp
	onramp_json "ndp=1 ndp_sockets=9" '[s["from_port"] for s in n["sockets"]] == [5008, 5006]' ndp to 172.0.0.0/8 limit 2
	onramp_json "ndp=1 ndp_sockets=9" '[s["from_port"] for s in n["sockets"]] == [5003]' ndp show port 5003 from a00::/8
	onramp_json "ndp=1 ndp_sockets=1" 'n["sockets"][0] == {"from": "10.0.0.1", "from_port": 5000, "state": "LISTEN", "uid": 7, "inode": 99, "waiting": 3, "backlog": 8}' ndp
	onramp_json "ndp=1 ndp_sockets=2 trimmed=5" 'n["counters"] == {"received": 1000, "trimmed": 5} and n["sockets"][0]["paths"][1]["left_out_ns"] == 1500000 and n["sockets"][0]["pulled_bps"] == 10**10' ndp
}

limits() {
	onramp "" 0 'used      limit      refused$' limits
	onramp "count=9" 0 '^flows  *100  *100  *9  objects of a kind$' limits
	onramp "count=9" 0 '^queues  *7  *100  *0  objects of a kind$' limits
	onramp "count=9" 0 'flows: the limit was reached; .*/parameters/max_flows$' limits
	onramp "timely=0" 1 'not loaded: modprobe' limits
	onramp "errno=95" 1 'does not report limits: it is older' limits
	onramp "errno=22 why=1" 1 'because of the moon' limits
	onramp_json "count=9" 'n["flows"] == {"used": 100, "limit": 100, "refused": 9}' limits
	onramp_json "" 'list(n) == ["flows", "queues"] and n["queues"]["used"] == 7' limits
}

connections() {
	onramp "" 0 'no connection uses timely, or none matches' flows
	onramp "connections=2" 0 '^\[a00:1::1\]:1001 *\[ac00:9::1\]:80 *16 Mb/s *31 us *30 us *1000 ns *15 us driver *5 sending cuts:loss=1$' flows
	onramp "connections=1" 0 '^10.0.0.1:1000 *172.0.0.9:80 *8 Mb/s *- *30 us *- *15 us - *- sending$' flows
	# The last RTT of connection 1002 is old, and 1000 has had none.
	onramp_json "connections=30" '[f["from_port"] for f in n][:-2] == [*range(1029, 1002, -1), 1001]' flows
	onramp_json "connections=30" '[f["from_port"] for f in n] == [1000, 1001, 1002]' flows sort rate limit 3
	onramp_json "connections=30" '[f["from_port"] for f in n] == [1009, 1007, 1005, 1003, 1001]' flows to ac00:9::/32
	# The worst connections come last here, and with "sort rate" first.
	onramp_json "connections=200" '[f["from_port"] for f in n] == list(range(1199, 1192, -1))' flows limit 7
	onramp_json "connections=200" '[f["from_port"] for f in n] == list(range(1000, 1007))' flows sort rate limit 7
	onramp_json "connections=200" '[f["from_port"] for f in n] == [1199]' flows sort cuts limit 1
	onramp_json "connections=200" '[f["from_port"] for f in n] == [1008, 1006]' flows to 172.0.0.0/24 limit 2
	onramp_json "connections=200 interrupted=2" '[f["from_port"] for f in n] == list(range(1199, 1099, -1))' flows limit 100
	onramp_json "connections=200" 'len(n) == 200' flows limit 300
	onramp_json "connections=30 chooses=1" '[f["from_port"] for f in n] == [1009]' flows port 1009

	usage 'top: unknown word "x"' top x y
	usage 'top prefix: allowed are 1 to 128, not "0"' top prefix 0
	usage 'top: a value is missing after "prefix"' top prefix
	usage 'flows: unknown word "prefix"' flows prefix 8
	onramp "" 0 'no connection uses timely, or none matches' top
	onramp "errno=1" 1 'sudo timelyctl top' top
	onramp "connections=30" 0 '^172.0.0.9 *5 *5 *200 Mb/s *36 us *6000 ns *8000 ns *20 *0 *-$' top
	onramp "connections=30" 0 '^ac00::/12 *15 *15 *1.92 Gb/s *45 us *15 us *29 us *225 *5 *100 us$' top prefix 12
	onramp_json "connections=30" '[(d["to"], d["length"]) for d in n] == [("ac00:209::1", 128), ("172.0.2.9", 32)]' top limit 2
	onramp_json "connections=30" 'n[0]["rate_bps"] == 200000000 and len(n) == 6' top sort rate
	onramp_json "connections=30" 'n[0]["pauses"] == 5 and n[0]["paused_ns"] == 100000' top sort pauses
	onramp_json "connections=30" '[d["cuts"] for d in n] == [225, 210]' top prefix 8 sort cuts
	onramp_json "connections=30" '[d["connections"] for d in n] == [5] and n[0]["to"] == "172.0.1.9"' top to 172.0.1.0/24
	# The first connection has had no RTT, so that of its destination is not known.
	onramp_json "connections=1" 'n[0]["rtt_ns"] is None and n[0]["queue_max_ns"] is None' top
}

# Use the program at a pseudo-terminal.
watch() {
	usage 'watch: -j is not possible' -j watch
	usage 'watch interval: allowed are 10 to 3600000 ms, not "9"' watch interval 9
	onramp "connections=1" 1 'watch needs a terminal; timelyctl flows prints once' watch
	for case in shows fits sorts scrolls resizes signals stops hangs_up; do
		FAKE_FAMILY="connections=30" "$python" -I "$here/watch.py" "$fake" $case \
			>"$work/output" 2>"$work/errors"
		result $? "watch: $case"
	done
}

# draws EXPRESSION: timely-plot draws the recording $work/r.csv, and EXPRESSION is true for the elements
# of the plot: lists of the texts and of the points of each line
draws() {
	"$python" -I "$here/../plot.py" "$work/r.csv" >"$work/output" 2>"$work/errors" && quiet &&
		"$python" -I -c '
import sys
from xml.etree import ElementTree
root = ElementTree.parse(sys.argv[1]).getroot()
texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
lines = [one.get("points").split() for one in root.iter("{http://www.w3.org/2000/svg}polyline")]
assert eval(sys.argv[2]), (texts, lines)' "$work/output" "$1" 2>"$work/errors"
	result $? "timely-plot: $1"
}

# refuses TEXT: timely-plot refuses the recording $work/r.csv with a message that matches TEXT
refuses() {
	! "$python" -I "$here/../plot.py" "$work/r.csv" >"$work/output" 2>"$work/errors" &&
		warns "^timely-plot: .*$1" && [ ! -s "$work/output" ]
	result $? "timely-plot refuses: $1"
}

# on_page STATUS TEXT ARG...: timelyctl clock ARG... with the clock page ends with STATUS, and its output or
# its messages match TEXT
on_page() {
	expected=$1
	text=$2
	shift 2
	run "" "$@" page "$work/page"
	ends "$expected" && cat "$work/output" "$work/errors" | grep -qE -- "$text"
	result $? "$*: $text"
}

# page_json EXPRESSION ARG...: EXPRESSION is true for the JSON n
page_json() {
	expression=$1
	shift
	run "" -j clock "$@" page "$work/page"
	ends 0 && quiet && "$python" -I -c '
import json, sys
n = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), n' "$work/output" "$expression" 2>>"$work/errors"
	result $? "clock -j: $expression"
}

clock() {
	usage 'clock: "x" is unknown: allowed are show, now, watch, record' clock x
	usage 'clock show: unexpected word "x"' clock show x
	usage 'clock now: unexpected word "interval"' clock now interval 50
	usage 'clock show: a value is missing after "page"' clock page
	usage "clock record: the file's name is missing" clock record
	usage 'interval: 10 to 1000000 are allowed, not "9"' clock watch interval 9
	usage 'duration: 1 to 1000000 are allowed, not "x"' clock record - duration x
	usage 'clock watch: -j is only for show and now' -j clock watch
	rm -f "$work/page"
	on_page 1 'there is no ".*page": timely-clockd has not run since the boot' clock now
	: >"$work/page"
	on_page 1 'is not the clock page of this version' clock
	rm "$work/page"
	mkfifo "$work/page"
	on_page 1 'is not the clock page of this version' clock
	rm "$work/page"
	"$work/fake_page" "$work/page"
	on_page 0 '^10.0.0.1: timely-clockd is running, probes are timestamped by eth0, 2 peers of 30 members$' clock
	on_page 0 '^common time 2023-11-14T22:13:2.*Z, known to [0-9]* (us|ms|s); the system clock differs by \+1500 ns$' clock
	on_page 0 '^reference time 2023-.*, known to .*; the system clock differs by -1998 us; 1 of 2 references are used$' clock
	on_page 0 '^10.0.0.2 *good *hardware *-2500 ns *900 ns *-20000 *35 ns *\+12 ns *30 *8 *2$' clock show
	on_page 0 '^fd00::9 *silent *kernel *- *- *0 *- *- *0 *0 *0$' clock show
	on_page 0 '^bad_tag *12 *packets ignored: wrong tag' clock
	on_page 0 '^earliest *2023-11-14T22:13:[0-9.]*Z$' clock now
	on_page 0 '^reference earliest *2023-11-14T22:13:[0-9.]*Z$' clock now
	page_json 'n["reference_time_ns"] == n["time_ns"] + 2000000' now
	page_json 'n["reference_latest_ns"] - n["latest_ns"] == 2000000 + 700' now
	page_json 'n["references"] == 2 and n["reference_offset_ns"] == 2000000'
	page_json 'n["peers"][0]["offset_ns"] == 123456789012 and n["peers"][0]["half_width_ns"] == 500'
	page_json 'n["peers"][1]["bound_ns"] is None and "offset_ns" not in n["peers"][1]'
	page_json 'n["counters"]["bad_tag"] == 12 and n["probe_ns"] == 77 and n["system_offset_ns"] == -1500'
	page_json 'n["state"] == "running" and n["page_age_ns"] < 3e9'
	page_json 'n["latest_ns"] - n["earliest_ns"] >= 80000 and n["earliest_ns"] < n["time_ns"] < n["latest_ns"]' now
	run "" clock record "$work/r.csv" interval 400 duration 1 page "$work/page"
	ends 0 && quiet && grep -qE '^[0-9.]*,10.0.0.2,good,123456789012,-20000,35,-2500,900,12,30,8,2$' "$work/r.csv" &&
		grep -qE '^[0-9.]*,fd00::9,silent,,,,,,,0,0,0$' "$work/r.csv"
	result $? "clock record: each peer at each reading"
	draws '"10.0.0.2" in texts and "bound of the offset between the probe clocks, us" in texts and len(lines) == 3'
	"$python" -I "$here/../plot.py" "$work/r.csv" -o "$work/r.html" 2>"$work/errors" && quiet &&
		grep -q '<td>10.0.0.2<td>-2.500<td>-2.500<td>0.035<td>0.035<td>0.012<td>0.012' "$work/r.html" &&
		grep -q '<h1>Clocks of other hosts' "$work/r.html"
	result $? "timely-plot: the page has a row for each peer"
	echo '1.5,10.0.0.2,good,1,1,-5,1,1,1,1,1,1' >>"$work/r.csv"
	refuses "line [0-9]*: '-5' is no number of a recording"
	rm -f "$work/r.csv"
	# The daemon has been killed: its page stays, but is not written any more.
	"$work/fake_page" "$work/page" 60
	on_page 1 '^10.0.0.1: timely-clockd is dead \(all of this is 6[0-9] s old\), probes ' clock
	on_page 1 '"state":"dead","page_age_ns":6[0-9]{10},' -j clock
	on_page 0 '^earliest ' clock now
	on_page 0 'timely-clockd is dead' clock watch interval 400 duration 1
	run "" clock record "$work/r.csv" interval 400 duration 1 page "$work/page"
	ends 0 && [ "$(wc -l <"$work/r.csv")" -eq 1 ]
	result $? "clock record: nothing of a daemon that is dead"
	rm -f "$work/r.csv"
}

record() {
	usage "record: the file's name is missing" record
	usage 'record: unknown word "x"' record - x y
	usage 'record duration: allowed are 1 to' record - duration 0
	usage 'record interval: allowed are 10 to' record - interval x
	usage 'record: -j is not possible' -j record -
	onramp "" 1 'cannot create ".*output": File exists: give the name of a new file' record "$work/output"
	onramp "" 1 'cannot create "/nonexistent/r": No such file' record /nonexistent/r
	onramp "errno=1" 1 'sudo timelyctl record' record "$work/r.csv"
	[ ! -e "$work/r.csv" ]
	result $? "record: without privilege there is no file"
	onramp "connections=12" 0 '' record "$work/r.csv" interval 400 duration 1
	"$python" -I -c '
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
# A busy machine may miss readings.
assert 1 <= len({row["unix_time_s"] for row in rows}) <= 3 and len(rows) % 12 == 0, rows
assert rows == sorted(rows, key=lambda row: float(row["unix_time_s"]))
one = {row["from_port"]: row for row in rows[:12]}
assert one["1001"] == dict(one["1001"], to="ac00:9::1", to_port="80", rate_bps="16000000", rtt_ns="31000",
    queue_ns="1000", target_ns="15000", cuts="1", pauses="5", paused_ns="100000", net_cookie="1"), one
assert one["1000"]["rtt_ns"] == one["1000"]["queue_ns"] == ""' "$work/r.csv" 2>"$work/errors"
	result $? "record: each connection at each reading"
	draws 'len(lines) in (3 * 8, 4 * 8) and "8 of 12 connections: those with the longest mean queueing delays" in texts'
	draws '"10.0.0.1:1010 to 172.0.1.9:80" in texts and "[a00:1::1]:1011 to [ac00:109::1]:80" in texts'
	plot_formats
	# A connection without an RTT has lines of its rate and pauses only.
	{ head -n 1 "$work/r.csv"; echo 1.5,a,1,b,2,5,,,0,0,0,0,1; echo 2.5,a,1,b,2,5,,,0,0,0,0,1; } >"$work/two"
	cp "$work/two" "$work/r.csv"
	draws 'len(lines) == 2 and "RTT, us" in texts'
	plot_refuses
	: >"$work/output"	# the lines of another command would end the wait below
	FAKE_FAMILY="connections=3" "$fake" record - interval 50 >"$work/output" 2>"$work/errors" &
	until [ "$(wc -l <"$work/output")" -gt 6 ]; do sleep .05; done
	kill -TERM $!
	wait $! && quiet && [ "$(tail -c 1 "$work/output" | wc -l)" -eq 1 ]
	result $? "record: a signal ends the recording after a complete line"
	! FAKE_FAMILY="connections=3" "$fake" record - >/dev/full 2>"$work/errors" && warns 'cannot write: No space left'
	result $? "record: a full disk is an error"
}

# The formats that -o writes; a test without rsvg-convert sees the message that names its package.
plot_formats() {
	for end in svg html png; do
		rm -f "$work/r.$end"
		"$python" -I "$here/../plot.py" "$work/r.csv" -o "$work/r.$end" >"$work/output" 2>"$work/errors" &&
			quiet && [ ! -s "$work/output" ]
		result $? "timely-plot -o r.$end"
	done
	"$python" -I "$here/../plot.py" - <"$work/r.csv" | cmp - "$work/r.svg"
	result $? "timely-plot prints what -o r.svg writes"
	"$python" -I - "$work/r.html" <<-'EOF'
		import html.parser, sys
		class Page(html.parser.HTMLParser):
		    rows, tags, urls = [], [], []
		    def handle_starttag(self, tag, attributes):
		        self.tags.append(tag)
		        self.urls += [value for name, value in attributes if name in ("src", "href")]
		        if tag == "tr":
		            self.rows.append([])
		    def handle_data(self, data):
		        if self.tags and self.tags[-1] in ("td", "th"):
		            self.rows[-1].append(data.strip())
		page = Page()
		page.feed(open(sys.argv[1]).read())
		assert len(page.rows) == 9 and not page.urls and "svg" in page.tags, page.rows
		assert page.rows[1][0].rsplit(":", 1)[1].isdigit() and float(page.rows[1][2]) > 0, page.rows
	EOF
	result $? "timely-plot: the page has a plot, a row for each connection, and needs no other file"
	[ "$(head -c 4 "$work/r.png" | tail -c 3)" = PNG ]
	result $? "timely-plot: r.png is PNG"
	! PATH=/nonexistent "$python" -I "$here/../plot.py" "$work/r.csv" -o "$work/r.png" 2>"$work/errors" &&
		warns 'PNG needs the program rsvg-convert: install'
	result $? "timely-plot: PNG without rsvg-convert"
	! "$python" -I "$here/../plot.py" "$work/r.csv" -o "$work/r.csv" 2>"$work/errors" &&
		warns 'the name must end with .svg, .html or .png'
	result $? "timely-plot -o refuses other names"
	! "$python" -I "$here/../plot.py" "$work/r.csv" -o /dev/null/r.svg 2>"$work/errors" && warns "/dev/null/r.svg: "
	result $? "timely-plot -o: a file that cannot be written is an error"
}

plot_refuses() {
	head -n 1 "$work/r.csv" >"$work/head"
	cp "$work/head" "$work/r.csv"
	refuses 'the recording has no connections'
	: >"$work/r.csv"
	refuses 'does not name the column net_cookie: is this a file of timelyctl record?'
	for row in '1.5,a,1,b,2,-5,,,0,0,0,0,1' '1.5,a,1,b,2,5,nan,,0,0,0,0,1' '1.5,a,1,b,2,x,,,0,0,0,0,1'; do
		{ cat "$work/head"; echo "$row"; } >"$work/r.csv"
		refuses 'line 2: .* is no number of a recording'
	done
	{ cat "$work/head"; echo '1.5,a,1,b'; } >"$work/r.csv"
	refuses 'line 2 is too short; if the recording was interrupted, remove this line'
	{ cat "$work/head"; echo '1.5,a,1,b,2,,,,0,0,0,0,1'; } >"$work/r.csv"
	refuses 'line 2: a number is missing'
	cp "$fake" "$work/r.csv"
	refuses 'decode'
	{ cat "$work/head"; echo '1.5,<x>&,1,b,2,5e300,1e-300,0,0,0,0,0,1'; } >"$work/r.csv"
	draws '"<x>&:1 to b:2" in texts and len(lines) == 3'
}

metrics() {
	all="count=9 connections=4 nics=1 qdiscs=2"
	onramp "timely=0 acker=0" 0 '^timely_module_loaded{module="timely"} 0$' metrics
	! says timely_connections
	result $? "metrics: without the module there are no other metrics"
	onramp "acker=0" 0 '^timely_module_loaded{module="timely_acker"} 0$' metrics
	onramp "$all" 0 '^# HELP timely_rtt_too_long_total what it counts$' metrics
	for line in 'timely_rtt_hardware_total 9' 'timely_onramp_bad_time_total 9' \
		'timely_limit_refused_total{limit="flows"} 9' \
		'timely_nic_clock_error_seconds{device="lo"} 0.000000085' \
		'timely_qdisc_sent_bytes_total{device="lo",parent="8001:2"} 10000000000' \
		'timely_qdisc_unthrottle_latency_seconds{device="lo",parent="8001:1"} 0.000001500' \
		'timely_qdisc_band_drops_total{device="lo",parent="8001:1",band="2"} 3' \
		'timely_qdisc_onramp_delay_seconds_bucket{device="lo",parent="8001:1",le="4.096e-06"} 3' \
		'timely_qdisc_onramp_delay_seconds_count{device="lo",parent="8001:2"} 6' \
		'timely_connections 4' 'timely_connections_paused 1' \
		'timely_connections_rate_bytes_per_second 10000000' \
		'timely_connections_in_state{state="sending"} 4' \
		'timely_connections_rtt_seconds_bucket{le="2e-05"} 0' \
		'timely_connections_queueing_delay_seconds_bucket{le="2e-06"} 1' \
		'timely_connections_queueing_delay_seconds_sum 0.000004000'; do
		grep -qxF "$line" "$work/output"
		result $? "metrics: $line"
	done
	metrics_file
	! grep -q timely_ndp_ "$work/before"
	result $? "metrics: without module ndp there are none of NDP"
	onramp "timely=0 ndp=1 ndp_sockets=4" 0 '^timely_ndp_connections 3$' metrics
	healthy_files
	rm -r "$work/root/sys/module/sch_timely"
	FAKE_FILES="$work/root" FAKE_FAMILY=timely=0 "$fake" metrics >"$work/output" 2>"$work/errors"
	says '^timely_module_loaded{module="tcp_timely"} 1$' && says '^timely_module_loaded{module="sch_timely"} 0$'
	result $? "metrics: whether modules without a netlink family are loaded"
	metrics_of_clocks
	onramp "$all ndp=1 ndp_sockets=4 trimmed=6" 0 '^# HELP timely_ndp_trimmed_total what it counts$' metrics
	for line in 'timely_module_loaded{module="ndp"} 1' 'timely_ndp_received_total 1000' 'timely_ndp_trimmed_total 6' \
		'timely_ndp_memory_bytes 16384' 'timely_ndp_max_memory_bytes 1000000' 'timely_ndp_connections 3' \
		'timely_ndp_connections_graceful 1' 'timely_ndp_paths_left_out 3'; do
		grep -qxF "$line" "$work/output"
		result $? "metrics: $line"
	done
	onramp "connections=7 interrupted=3" 0 '^timely_connections 7$' metrics
	onramp "errno=1" 1 'needs CAP_NET_ADMIN.* sudo timelyctl metrics' metrics
	onramp "errno=95" 1 'older than timelyctl' metrics
	onramp "errno=22 why=1" 1 'because of the moon' metrics
}

# clock_metrics ARG...: timelyctl metrics with the clock page that fake_page writes with these arguments
clock_metrics() {
	"$work/fake_page" "$work/root/run/timely-clockd/clock" "$@"
	FAKE_FILES="$work/root" FAKE_FAMILY=timely=0 "$fake" metrics >"$work/output" 2>"$work/errors"
	status=$?
	ends 0
}

# Only a daemon that runs has measurements.
metrics_of_clocks() {
	mkdir -p "$work/root/run/timely-clockd"
	clock_metrics 0 && says '^timely_clock_running 1$' && says '^timely_clock_bad_tag_total 12$' &&
		says '^timely_clock_bound_seconds 0.000040000$' && says '^timely_clock_peer_good{peer="10.0.0.2"} 1$' &&
		says '^timely_clock_references_used 1$' && says '^timely_clock_reference_offset_seconds 0.002000000$'
	result $? "metrics: timely-clockd"
	clock_metrics 0 1 && says '^timely_clock_peer_bound_seconds{peer="fd00::9"} 0.000000060$' &&
		says '^timely_clock_peer_surplus_seconds{peer="10.0.0.2"} 0.000000012$' &&
		! says 'surplus_seconds{peer="fd00::9"}'
	result $? "metrics: a surplus that is not known is left out"
	for state in "60 0 1" "0 0 0" "0 0 2"; do
		# shellcheck disable=SC2086 # words
		clock_metrics $state && says '^timely_clock_running 0$' && says '^timely_clock_bad_tag_total 12$' &&
			! says '^timely_clock_.*\(_seconds\|{peer=\)'
		result $? "metrics: timely-clockd that is dead, starts, or has ended: $state"
	done
	rm -r "$work/root/run"
}

# answers STATUS REQUEST: timelyctl metrics http answers the text, in which \\r and \\n are bytes, with STATUS
answers() {
	# shellcheck disable=SC2059 # the format is the request
	printf "$2" | FAKE_FAMILY=$all "$fake" metrics http >"$work/output" 2>"$work/errors"
	status=$?
	ends 0 && [ "$(head -n 1 "$work/output" | cut -d ' ' -f 1-2)" = "HTTP/1.0 $1" ]
	result $? "metrics http: $1: $2"
}

metrics_http() {
	all="connections=4"
	for end in '\r\n' '\n'; do
		answers 200 "GET /metrics HTTP/1.1${end}Host: x$end$end"
		sed '1,/^\r$/d' "$work/output" >"$work/body"
		FAKE_FAMILY=$all "$fake" metrics | cmp - "$work/body" &&
			grep -q '^Content-Type: text/plain; version=0.0.4' "$work/output"
		result $? "metrics http: the answer has what is printed otherwise"
	done
	answers 200 'GET /metrics?collect=x HTTP/1.0\r\n\r\nrest'
	answers 404 'GET / HTTP/1.1\r\n\r\n'
	answers 404 'GET /metrics/ HTTP/1.1\r\n\r\n'
	answers 405 'POST /metrics HTTP/1.1\r\n\r\n'
	grep -q '^Allow: GET' "$work/output"
	result $? "metrics http: 405 names what is allowed"
	for bad in '' '\r\n\r\n' 'GET\r\n\r\n' 'GET /metrics\r\n\r\n' 'GET /metrics HTTP/2\r\n\r\n' \
		'GET /metrics HTTP/1.1 x\r\n\r\n' 'GET /metrics HTTP/1.1\r\n' 'GET /metrics\000 HTTP/1.1\r\n\r\n' \
		"GET /metrics HTTP/1.1\\r\\nX: $(head -c 9000 /dev/zero | tr '\000' x)\\r\\n\\r\\n"; do
		answers 400 "$bad"
	done
	# A client that sends nothing, and stays.
	{ printf 'GET /me'; sleep 8; } | "$fake" metrics http | grep -q '^HTTP/1.0 400 Bad Request'
	result $? "metrics http: a request that takes too long"
	printf 'GET /metrics HTTP/1.1\r\n\r\n' | FAKE_FAMILY=errno=1 "$fake" metrics http >"$work/output" 2>"$work/errors"
	[ $? -eq 1 ] && says '^HTTP/1.0 500 ' && warns 'needs CAP_NET_ADMIN'
	result $? "metrics http: the metrics cannot be read"
}

# The file is complete and readable for all users, or unchanged.
metrics_file() {
	mkdir "$work/dir"
	cp "$work/output" "$work/before"
	onramp "$all" 0 '' metrics output "$work/dir/file"
	cmp -s "$work/before" "$work/dir/file" && [ "$(stat -c %a "$work/dir/file")" = 644 ]
	result $? "metrics: the file has what is printed otherwise"
	onramp "errno=1" 1 'needs CAP_NET_ADMIN' metrics output "$work/dir/file"
	onramp "" 1 'cannot write "/nonexistent/file": No such file' metrics output /nonexistent/file
	onramp "" 1 'cannot write "/dev/full": File exists' metrics output /dev/full
	onramp "" 1 'cannot write ".*": Is a directory' metrics output "$work/dir"
	# Without the signal the error is EFBIG.
	(
		trap '' XFSZ
		ulimit -f 1
		FAKE_FAMILY=$all "$fake" metrics output "$work/dir/file" 2>"$work/errors"
	)
	[ $? -eq 1 ] && warns 'cannot write ".*/file": File too large'
	result $? "metrics: a file that cannot be written completely is not replaced"
	cmp -s "$work/before" "$work/dir/file" && [ "$(ls "$work/dir")" = file ] && [ -c /dev/full ]
	result $? "metrics: after an error the file is as before, and there is no other"
	rm "$work/dir/file"
	FAKE_END=1 FAKE_FAMILY=$all "$fake" metrics output "$work/dir/file"
	[ $? -eq 143 ] && [ "$(ls "$work/dir")" = file ] && cmp -s "$work/before" "$work/dir/file"
	result $? "metrics: a program that is ended completes the file first"
}

secret=000102030405060708090a0b0c0d0eFf
wire=000102030405060708090a0b0c0d0eff

keys() {
	umask 077
	echo $secret >"$work/key"
	printf ' %s\r\n' $secret >"$work/key2"
	printf %s $secret >"$work/key3"
	for file in key key2 key3; do
		sends "" "key-set key=07 secret=$wire" key add 7 "$work/$file"
	done
	sends "" "key-set key=ff secret=$wire" key add 255 - <"$work/key"
	sends "" "key-set key=01 secret=$wire" key add 1 <"$work/key"
	onramp "keys=7" 1 'key 7 exists: .*KEY ROTATION' key add 7 "$work/key" && set_was ""
	result $? "key add: does not replace a key"
	for bad in '' 00 ${secret}0 "$secret $secret" "g${secret#?}" "$secret
$secret"; do
		printf '%s\n' "$bad" >"$work/bad"
		case $bad in
		*"
"*)	sends "" "key-set key=01 secret=$wire" key add 1 "$work/bad" ;;
		*)	onramp "" 1 'a key is one line of 32 hex digits' key add 1 "$work/bad" ;;
		esac
		[ -z "$bad" ] || ! grep -qw -- "$bad" "$work/output" "$work/errors"
		result $? "key add: the text that was read is not printed"
	done
	onramp "" 1 'a key is one line of 32 hex digits' key add 1 /dev/null
	onramp "" 1 'cannot read "/nonexistent": No such file' key add 1 /nonexistent
	onramp "" 1 'every user can read a key on the command line' key add 1 $secret
	! grep -qi $secret "$work/output" "$work/errors"
	result $? "key add: a key on the command line is not printed"
	chmod 644 "$work/key"
	onramp "" 0 'other users may read ".*/key": chmod 600' key add 1 "$work/key"
	sends "keys=7" "onramp-set used=07" key use 7
	sends "keys=7" "onramp-set used=00" key use none
	sends "keys=7" "key-del key=07" key del 7
	onramp "errno=16 why=1" 1 'because of the moon' key del 7
	onramp "errno=1" 1 'sudo timelyctl key use' key use 7
	onramp "timely=0" 1 'module timely is not loaded' key add 7
	onramp "" 0 'WARNING: OR-ACKs without a key are accepted now' onramp unauthenticated on
	set_was "onramp-set unauthenticated=01"
	result $? "onramp unauthenticated on"
	sends "" "onramp-set unauthenticated=00" onramp unauthenticated off
	run "" key generate
	ends 0 && quiet && grep -qxE '[0-9a-f]{32}' "$work/output" && cp "$work/output" "$work/first"
	result $? "key generate: 32 hex digits"
	run "" key generate
	! cmp -s "$work/output" "$work/first"
	result $? "key generate: another one each time"
}

acker() {
	onramp "rules=3 keys=1 used=1" 0 '^an OR-ACK for each 15000 bytes of a flow, at most 1000000 a second' acker
	onramp "rules=3" 0 '^    10.0.0.0/8$' acker
	onramp "rules=3" 0 '^    a00::/8 port 80$' acker show
	onramp "rules=3" 0 '^    10.0.0.0/8 port 80-81$' acker
	onramp "rules=3" 0 '^rules: 3 of 256$' acker
	onramp "" 0 'there is no rule, so no data is answered by OR-ACKs: timelyctl acker add' acker
	onramp "rules=1" 0 'no key is used, so no OR-ACKs are sent' acker
	onramp "rules=1 unauthenticated=1" 0 'WARNING: OR-ACKs are sent without a key' acker
	onramp "trimmed=48" 0 'that a switch has trimmed (DSCP 48), with turns on a link of 10000000 kbit/s$' acker
	onramp_json "trimmed=48 used=1 keys=1" 'n["trimmed_dscp"] == 48 and n["link_kbps"] == 10000000' acker
	onramp "offset=-500 drift=-7" 0 'test clock: offset -500 ns, drift -7 ppb$' acker
	onramp "acker=0" 1 'not loaded: modprobe timely_acker' acker
	onramp "errno=1" 1 'sudo timelyctl acker add' acker add any
	onramp "errno=22 why=1" 1 'because of the moon' acker set every 5
	onramp_json "rules=2 used=1 keys=1 offset=-500 drift=-7" \
		'n["rules"][0] == {"prefix": "10.0.0.0", "length": 8, "port_first": None, "port_last": None}' acker
	onramp_json "rules=3 used=1 keys=1" '(n["rules"][2]["port_first"], n["rules"][2]["port_last"]) == (80, 81)' acker
	onramp_json "rules=3 used=1 keys=1" 'n["hints"] == [] and n["every_bytes"] == 15000 and n["rate"] == 1000000 and n["rules_max"] == 256' acker
	onramp_json "offset=-500 drift=-7" 'n["test_clock_offset_ns"] == -500 and n["test_clock_drift_ppb"] == -7' acker

	sends "" "rule-add prefix=0a000000 length=08" acker add 10.0.0.0/8
	sends "" "rule-add prefix=0a000001 length=20" acker add 10.0.0.1
	sends "" "rule-del prefix=fd000000000000000000000000000001 length=80" acker del fd00::1
	sends "" "rule-add prefix=0a000000 length=08 first=5000 last=5a00" acker add 10.0.0.0/8 port 80-90
	sends "" "rule-add prefix=00000000 length=00 first=ffff last=ffff" acker add 0.0.0.0/0 port 65535
	sends "" "rule-add prefix=00000000 length=00
rule-add prefix=00000000000000000000000000000000 length=00" acker add any
	# One of the two rules exists already (EEXIST), or does not exist (ENOENT).
	sends "exists4=17" "rule-add prefix=00000000 length=00
rule-add prefix=00000000000000000000000000000000 length=00" acker add any
	onramp "exists6=17" 0 '' acker add any
	onramp "exists4=17 exists6=17" 1 'File exists' acker add any
	onramp "exists4=2" 0 '' acker del any
	onramp "exists4=2 exists6=2" 1 'No such file' acker del any
	onramp "exists6=28" 1 'No space' acker add any
	sends "" "acker-set every=b80b0000" acker set every 3000
	sends "" "acker-set trimmed=30000000 link=40787d01" acker set trimmed 48 link-rate 25000000
	sends "" "acker-set every=dc050000 rate=01000000 offset=0cfeffffffffffff drift=f9ffffff" \
		acker set every 1500 rate 1 test-clock-offset -500 test-clock-drift -7
}

# Whatever the modules answer, timelyctl succeeds, and prints valid JSON and printable text.
random_modules() {
	seed=0
	bad=0
	: >"$work/json"
	while [ $seed -lt 60 ] && [ $bad -eq 0 ]; do
		seed=$((seed + 1))
		export FAKE_FAMILY="random=$seed flows=$((seed % 30)) connections=$((seed % 30)) ndp=1 ndp_sockets=$((seed % 30))"
		for args in "onramp" "onramp flows" "onramp peers" "key" "acker" "limits" "flows" "top" "top prefix 9" "ndp" "ndp paths" "ndp counters"; do
			# shellcheck disable=SC2086 # words
			run "" -j $args
			ends 0 || bad=$((bad + 1))
			cat "$work/output" >>"$work/json"
			# shellcheck disable=SC2086
			run "" $args
			ends 0 && ! LC_ALL=C grep -q '[^ -~]' "$work/output" || bad=$((bad + 1))
		done
	done
	unset FAKE_FAMILY
	"$python" -I -c '
import json, sys
for line in open(sys.argv[1]):
    json.loads(line)' "$work/json" 2>>"$work/errors" && [ $bad -eq 0 ]
	result $? "modules with random answers, 60 seeds"
}

# Whatever the modules answer, the metrics are valid, and no metric or sample comes twice.
random_metrics() {
	bad=0
	for seed in $(seq 60); do
		export FAKE_FAMILY="random=$seed connections=$((seed % 30)) nics=1 qdiscs=3"
		run "" metrics
		ends 0 && quiet || bad=1
		"$python" -I -c '
import re, sys
text = open(sys.argv[1]).read()
value = re.compile(r"""[a-z][a-z0-9_]*(\{([a-z]+="([ !#-\[\]-~]|\\[\\"n])*"(,|(?=\})))+\})? [0-9.]+\n""")
comment = re.compile(r"# (HELP [a-z0-9_]+ [ -~]*|TYPE [a-z0-9_]+ (gauge|counter|histogram))\n")
lines = text.splitlines(keepends=True)
for line in lines:
    assert (comment if line[0] == "#" else value).fullmatch(line), line
keys = [line.rpartition(" ")[0] for line in lines if line[0] != "#" or "# TYPE" in line]
assert len(set(keys)) == len(keys)' "$work/output" 2>>"$work/errors" || bad=1
		[ $bad -eq 0 ] || break
	done
	unset FAKE_FAMILY
	result $bad "metrics: modules with random answers, 60 seeds"
}

# ---- doctor ----

# file PATH TEXT: the simulated file PATH has TEXT
file() {
	mkdir -p "$work/root/${1%/*}"
	printf '%s\n' "$2" >"$work/root/$1"
}

# The files of a host where everything is right.
healthy_files() {
	rm -rf "$work/root"
	version=$("$real" --version)
	for module in timely tcp_timely sch_timely timely_acker; do
		file sys/module/$module/version "${version#timelyctl }"
	done
	file sys/module/module/parameters/sig_enforce N
	file sys/kernel/security/lockdown '[none] integrity confidentiality'
	file proc/sys/kernel/osrelease 6.12.9-amd64
	file proc/sys/kernel/tainted 12288
	file proc/sys/net/ipv4/tcp_congestion_control timely
	file proc/sys/net/ipv4/tcp_allowed_congestion_control "reno cubic timely"
	file proc/sys/net/ipv4/tcp_rto_min_us 200000
	file proc/sys/net/ipv4/timely/preset target_delay
	file proc/sys/net/ipv4/timely/min_rtt_ns auto
	file proc/sys/net/ipv4/timely/link_rate_kbps auto
	file proc/sys/net/core/default_qdisc timely
	file proc/net/udp '  sl  local_address rem_address'
	file proc/net/udp6 '  sl  local_address rem_address'
}

# doctor "DRIVER'S KEY=NUMBER..." "MODULES' KEY=NUMBER..." STATUS [CHECK...]: doctor ends with STATUS and
# finds exactly what these checks look for
doctor() {
	knobs=$1
	export FAKE_FILES="$work/root" FAKE_FAMILY="flows_used=7 $2"
	wanted=$3
	shift 3
	run "$knobs" -j doctor $dev
	ends "$wanted" && quiet && "$python" -I -c '
import json, sys
n = json.load(open(sys.argv[1]))
assert [f["check"] for f in n["findings"]] == sys.argv[2].split(), n
assert not [f for f in n["findings"] if not f["evidence"] or not f["remedy"]], n' \
		"$work/output" "$*" 2>>"$work/errors"
	result $? "doctor: $knobs: $FAKE_FAMILY: status $wanted, finds ${*:-nothing}"
	unset FAKE_FILES FAKE_FAMILY
}

# breaks PATH TEXT STATUS [CHECK...]: doctor's result if one file of a healthy host has TEXT
breaks() {
	healthy_files
	file "$1" "$2"
	shift 2
	doctor "rx=1" "" "$@"
	healthy_files
}

doctors() {
	healthy_files
	doctor "rx=1" "" 0
	breaks proc/sys/net/ipv4/tcp_allowed_congestion_control "reno timely_paper" 0 allowed-control
	doctor "rx=1 on=7" "" 4 merged-packets
	doctor "rx=1 on=0xb" "" 4 merged-packets
	doctor "rx=1 usecs=50 frames=0" "" 4 coalescing
	doctor "rx=1 usecs=9 frames=0" "" 0
	doctor "rx=1 speed=-1" "mtu=1500" 4 link-rate
	says 'sysctl -w net.ipv4.timely.link_rate_kbps=KBPS'
	result $? "doctor: the link rate of a device that the module does not know"
	doctor "rx=1 speed=-1" "mtu=1500 reports=1" 4 link-rate
	says 'timelyctl nic set lo link-rate RATE'
	result $? "doctor: the link rate of one NIC"
	doctor "rx=1 speed=-1" "mtu=1500 carrier=0" 0
	doctor "rx=1" "mtu=1500 qdiscs=16" 0
	doctor "rx=1" "mtu=1500 qdiscs=16 unpaced=8" 4 qdisc-unpaced
	says '8 of 16 transmit queues have a qdisc that does not pace, such as pfifo'
	result $? "doctor: some queues do not pace"
	doctor "rx=1" "mtu=1500 qdiscs=16 unpaced=16" 4 qdisc-unpaced
	says '16 of 16 transmit queues have a qdisc that does not pace, such as pfifo'
	result $? "doctor: no queue paces"
	doctor "rx=1" "errno=1" 0 incomplete incomplete incomplete incomplete incomplete
	doctor "rx=1" "errno=95" 4 incomplete incomplete incomplete incomplete incomplete
	doctor "rx=1" "errno=12" 4 incomplete incomplete incomplete incomplete incomplete
	doctor "rx=1" "alike=3" 0
	doctor "rx=1" "alike=3 mtu=1500" 0
	doctor "rx=1" "alike=3 mtu=1501" 4 mtu
	doctor "rx=1" "alike=3 mtu=1520 md5=1" 0
	doctor "rx=1" "alike=3 mtu=1521 md5=1" 4 mtu
	doctor "rx=1" "alike=3 state=34" 4 probes-apart
	doctor "rx=1" "alike=3 mapped=1 state=34" 4 probes-apart
	doctor "rx=1" "probes_unsynced=1 grows=1" 4 probes-unsynced
	doctor "rx=1" "probes_unsynced=1" 0 probes-unsynced
	says 'this was earlier, and not in the last second'
	result $? "doctor: a note says that counters do not grow"
	doctor "rx=1" "alike=3 base=30001" 4 filled-queue
	doctor "rx=1" "alike=3 base=30000" 0
	doctor "rx=1" "alike=3 base=30001 target=0" 0
	file proc/sys/net/ipv4/timely/min_rtt_ns 30001
	doctor "rx=1" "alike=3 base=30001" 0
	healthy_files
	doctor "rx=1" "alike=3 base=2000000 min_rtt=2000" 4 long-path
	doctor "rx=1" "alike=3 min_rtt=4294967295" 0
	doctor "rx=1" "alike=3 state=66" 4 minimum-rate
	says 'because queueing delays'
	result $? "doctor: minimum-rate without a cause to reduce the rate at once"
	doctor "rx=1" "alike=3 state=66 losses=1000 marks=5 grows=1" 4 minimum-rate
	says '(ECN)'
	result $? "doctor: minimum-rate names the cause of the last second"
	doctor "rx=1" "flows_used=90" 4 limits
	doctor "rx=1" "ndp=1 ndp_sockets=2" 0
	doctor "rx=1" "ndp=1 ndp_sockets=3" 4 ndp-trim
	doctor "rx=1" "flows_used=89" 0
	doctor "rx=1" "flows_used=0 flows_max=0" 0
	doctor "rx=1" "count=1" 0 limits
	doctor "rx=1" "hardware=9000 doubtful=1000 grows=1" 4 rejected-rtts
	doctor "rx=1" "hardware=9000 doubtful=1000" 0 rejected-rtts
	doctor "rx=1" "hardware=9000 doubtful=800 tcp=700" 0
	doctor "rx=1" "hardware=9000 tcp=9001 grows=1" 4 late-rtts
	doctor "rx=1" "hardware=9000 tcp=9001" 0 late-rtts
	doctor "rx=1" "hardware=9000 tcp=8999" 0
	doctor "rx=1" "reports=1" 0
	doctor "rx=1" "reports=1 steps=11 grows=1" 4 nic-clock-steps
	doctor "rx=1" "reports=1 steps=11" 0 nic-clock-steps
	doctor "rx=1" "reports=1 nic=1" 0
	doctor "rx=1" "reports=1 nic=1 alike=1" 4 nic-clock
	doctor "rx=1" "reports=1 nic=1 alike=1 pairs=900" 0
	doctor "rx=1" "reports=1 override=10000000" 4 link-rate-set
	doctor "rx=1" "reports=1 override=25000000" 0
	doctor "rx=1" "keys=1 used=1 rules=1" 0
	doctor "rx=1" "keys=1 used=1" 4 acker-rule
	doctor "rx=1" "rules=1" 1 acker-key
	doctor "rx=1" "rules=1 unauthenticated=1" 4 onramp-unauthenticated
	doctor "rx=1" "rules=1 keys=1 used=1 drift=1" 1 acker-clock
	doctor "rx=1" "rules=1 keys=1 used=1 send_errors=100 grows=1" 4 acker-errors
	doctor "rx=1" "rules=1 keys=1 used=1 send_errors=100" 0 acker-errors
	doctor "rx=1" "rules=1 keys=1 used=1 send_errors=99" 0
	doctor "rx=1" "received=1000 bad_tag=11 grows=1" 4 onramp-refused
	doctor "rx=1" "received=1000 bad_tag=11" 0 onramp-refused
	doctor "rx=1" "received=1000 bad_tag=10" 0
	doctor "rx=1" "received=1000 bad_tag=501 grows=1" 1 onramp-refused
	doctor "rx=1" "received=1000 bad_tag=501" 0 onramp-refused
	doctor "rx=1" "received=1000 old=500" 0
	doctor "rx=1" "received=1000 old=501 grows=1" 1 onramp-refused
	rm -r "$work/root/sys/module/timely_acker"
	doctor "rx=1" "keys=1 used=1" 4 acker-module
	healthy_files
	udp='   12: 00000000:4F52 00000000:0000 07 00000000:00000000 00:00000000 00000000     0'
	breaks proc/net/udp "$udp" 4 onramp-port
	breaks proc/net/udp "$(echo "$udp" | sed s/4F52/4F51/)" 0
	breaks proc/net/udp6 "$(echo "$udp" | sed s/0:4F52/0000000000000000000000000:4F52/)" 4 onramp-port
	breaks proc/sys/kernel/osrelease 5.10.0 1 kernel-version
	breaks proc/sys/kernel/osrelease 6.0.1 1 kernel-version
	breaks proc/sys/kernel/osrelease 6.120.1 0 kernel-version
	breaks proc/sys/kernel/osrelease nonsense 0
	for bit in 1 3 4 5 7 9 14; do
		breaks proc/sys/kernel/tainted $((12288 + (1 << bit))) 4 kernel-taint
	done
	breaks proc/sys/net/ipv4/tcp_rto_min_us 24999 4 rto-min
	breaks proc/sys/net/ipv4/tcp_rto_min_us 25000 0
	breaks proc/sys/net/ipv4/tcp_congestion_control cubic 4 unused
	breaks proc/sys/net/ipv4/timely/preset swift 0 preset
	breaks proc/sys/net/ipv4/timely/link_rate_kbps 25000000 0
	for module in timely tcp_timely sch_timely timely_acker; do
		breaks sys/module/$module/version 0.0.1 4 module-version
	done
	touch "$work/root/unsync"
	doctor "rx=1" "" 4 clock
	# timely-clockd has one peer that is good, and one that is learning, silent, or excluded.
	mkdir -p "$work/root/run/timely-clockd"
	for state in "0 1 0" "0 0 4 clock-daemon" "0 3 4 clock-daemon" "60 1 4 clock clock-daemon"; do
		# shellcheck disable=SC2086 # words
		set -- $state
		"$work/fake_page" "$work/root/run/timely-clockd/clock" "$1" "$2" 1 2
		shift 2
		doctor "rx=1" "" "$@"
	done
	"$work/fake_page" "$work/root/run/timely-clockd/clock" 0 1 1 1
	doctor "rx=1" "" 4 clock-references
	says 'uses only 1 of the 2 references'
	result $? "doctor: a reference that is not used"
	"$work/fake_page" "$work/root/run/timely-clockd/clock" 0 1 1 0
	doctor "rx=1" "" 4 clock-references
	says 'does not know the reference time'
	result $? "doctor: no reference is used"
	# A daemon that has not joined writes nothing.
	"$work/fake_page" "$work/root/run/timely-clockd/clock" 0 1 0
	doctor "rx=1" "" 4 clock
	"$work/fake_page" "$work/root/run/timely-clockd/clock" 4 1 0
	doctor "rx=1" "" 4 clock clock-daemon
	says 'has not joined the other hosts'
	result $? "doctor: timely-clockd has not joined"
	healthy_files
	rm -r "$work/root/sys/module/tcp_timely" "$work/root/sys/module/sch_timely" \
		"$work/root/sys/module/timely_acker"
	doctor "rx=1" "" 1 modules-loaded
	for module in sch_trim ndp; do
		file sys/module/$module/version "${version#timelyctl }"
		doctor "rx=1" "" 0
		rm -r "$work/root/sys/module/$module"
	done
	file sys/kernel/security/lockdown 'none [integrity] confidentiality'
	doctor "rx=1" "" 1 module-signature
	file sys/kernel/security/lockdown '[none] integrity confidentiality'
	file sys/module/module/parameters/sig_enforce Y
	doctor "rx=1" "" 1 module-signature
	healthy_files
	export FAKE_FILES="$work/root" FAKE_FAMILY="flows_used=7"
	run "rx=1 usecs=50 frames=0" doctor $dev
	unset FAKE_FILES FAKE_FAMILY
	ends 4 && says '^warning: coalescing: lo: interrupts are delayed by 50 us' &&
		says '^    remedy: ethtool -C lo ' && says '^errors: 0, warnings: 1, notes: 0$'
	result $? "doctor: text"
}

# Whatever files, drivers and modules say, doctor prints valid JSON and printable text.
random_hosts() {
	healthy_files
	seed=0
	bad=0
	while [ $seed -lt 60 ] && [ $bad -eq 0 ]; do
		seed=$((seed + 1))
		find "$work/root" -type f | sort | "$python" -I -c '
import random, sys
random.seed(sys.argv[1])
for path in sys.stdin:
    with open(path.rstrip("\n"), "wb") as file:
        file.write(random.randbytes(random.choice([0, 9, 40, 9999])))' $seed
		export FAKE_FILES="$work/root" FAKE_FAMILY="random=$seed flows=$((seed % 30)) alike=$((seed % 20)) reports=$((seed % 3))"
		run "random=$seed features=$((seed % 70))" -j doctor
		[ $status -ne 2 ] && ends $status && "$python" -I -m json.tool "$work/output" \
			>/dev/null 2>>"$work/errors" || bad=$((bad + 1))
		run "random=$seed features=$((seed % 70))" doctor
		[ $status -ne 2 ] && ends $status && ! LC_ALL=C grep -q '[^ -~]' "$work/output" ||
			bad=$((bad + 1))
	done
	unset FAKE_FILES FAKE_FAMILY
	[ $bad -eq 0 ]
	result $? "doctor: random files, drivers and modules, 60 seeds"
}

# ---- the shell ----

# offers "WORD..." ARG...: for the command line ARG..., the completion of the last ARG offers every WORD
offers() {
	wanted=$1
	shift
	# shellcheck disable=SC2016 # for bash
	bash -c '
		. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_timelyctl
		printf "%s\n" "${COMPREPLY[@]}"' complete "$here/../completion/timelyctl" "$@" \
		>"$work/output" 2>"$work/errors"
	missing=
	for word in $wanted; do
		grep -qx -- "$word" "$work/output" || missing="$missing $word"
	done
	[ -z "$missing" ] && quiet
	result $? "completion: $* -> $wanted"
}

completion() {
	offers "all output http" timelyctl metrics ''
	offers "output http" timelyctl metrics all ''
	offers "all from to port cgroup sort limit prefix" timelyctl top ''
	offers "delay rate cuts pauses" timelyctl top sort ''
	offers "all from to port cgroup sort limit interval" timelyctl watch ''
	offers "all from to port cgroup sort limit interval duration" timelyctl record file ''
	offers "show paths counters from to port limit" timelyctl ndp ''
	offers "from to port limit" timelyctl ndp paths to 10.0.0.0/8 ''
	offers "nic rtt flows top watch record clock ndp metrics onramp key acker limits setup teardown trial doctor help" timelyctl ''
	offers "show flows unauthenticated" timelyctl onramp ''
	offers "route cgroup confirm revert status" timelyctl trial ''
	offers "on off" timelyctl onramp unauthenticated ''
	offers "list add use del generate" timelyctl key ''
	offers "none" timelyctl key use ''
	offers "show add del set" timelyctl acker ''
	offers "any" timelyctl acker add ''
	offers "port" timelyctl acker add any ''
	offers "every rate trimmed link-rate test-clock-offset test-clock-drift" timelyctl acker set ''
	offers "nic" timelyctl -j n
	offers "show enable disable set" timelyctl nic ''
	offers "link-rate hardware" timelyctl nic set eth0 ''
	offers "on off" timelyctl nic set eth0 link-rate auto hardware ''
	offers "auto 25gbit" timelyctl nic set eth0 link-rate ''
	# Names of files are not run.
	mkdir "$work/names"
	# shellcheck disable=SC2016 # a name
	: >"$work/names/"'a$(date>run)'
	cd "$work/names" || exit 1
	# shellcheck disable=SC2016 # a name, quoted
	offers 'a\\$\\(date\\>run\\)' timelyctl record a
	cd "$here" || exit 1
	[ ! -e "$work/names/run" ]
	result $? "completion: runs no names of files"
}

# The manual explains each check of doctor.
manual_of_checks() {
	sed -n 's/^\t{ "\([a-z-]*\)", \.[hd].*/\1/p' "$here/../doctor.c" >"$work/checks"
	sed 's/\\-/-/g' "$here/../../../man/timelyctl.8" >"$work/page"
	while read -r check; do
		grep -q "^\.B.* *$check" "$work/page" || echo "$check is not in the manual"
	done <"$work/checks" >"$work/errors"
	[ "$(wc -l <"$work/checks")" -ge 20 ] && quiet
	result $? "the manual names all checks of doctor"
}

# `timelyctl help` has each command with the words that the manual's synopsis has.
synopsis() {
	run "" help
	"$python" -I -c '
import re, shlex, sys
lines = re.search(r"\.SH SYNOPSIS\n\.nf\n(.*?)\.fi\n", open(sys.argv[2]).read(), re.S)[1].splitlines()
# The first word is the macro of the fonts, which alternate between the others.
manual = ["".join(shlex.split(re.sub(r"\\f.", "", line).replace("\\-", "-"))[1:]) for line in lines]
usage = open(sys.argv[1]).read().removeprefix("Usage: ").split("\n\n")[0]
pair = [" ".join(text.split()).split("timelyctl ") for text in (" ".join(manual), usage)]
assert pair[0] == pair[1], [words for words in zip(*pair) if words[0] != words[1]]' \
		"$work/output" "$here/../../../man/timelyctl.8" 2>"$work/errors" && quiet
	result $? "help and the manual have the same synopsis"
}

# The manual has the commands, and each key of the JSON output.
manual() {
	synopsis
	for word in 'nic enable' 'nic disable' link-rate 'hardware off' rtt json hwts_filter \
		'onramp flows' 'onramp peers' 'key generate' 'key rotation' unauthenticated 'acker set' test-clock-drift limits refused \
		timely_connections timely_connections_in_state queueing_delay_seconds doctor; do
		grep -qi -- "$word" "$here/../../../man/timelyctl.8" || echo "$word is not in the manual"
	done >"$work/output"
	run "" -j nic show $dev
	"$python" -I -c '
import json, sys
def keys(value):
    for key, below in value.items():
        yield key
        if isinstance(below, dict):
            yield from keys(below)
page = open(sys.argv[2]).read()
missing = [key for key in keys(json.load(open(sys.argv[1]))[0]) if key not in page]
assert not missing, missing' "$work/output" "$here/../../../man/timelyctl.8" 2>"$work/errors" && quiet
	result $? "the manual names all keys of JSON"
	for args in onramp "onramp flows" "onramp peers" key acker flows top ndp; do
		export FAKE_FAMILY="keys=1 flows=1 rules=1 connections=1 ndp=1 ndp_sockets=2"
		# shellcheck disable=SC2086 # words
		run "" -j $args
		unset FAKE_FAMILY
		tr '{,[' '\n' <"$work/output" | sed -n 's/^"\([^"]*\)":.*/\1/p' |
			grep -vxE 'sent|unknown_key|bad_time|received|bad_tag|old|send_errors|retransmitted|delayed|doubtful|negative|too_long' | while read -r key; do
			grep -q -- "$key" "$here/../../../man/timelyctl.8" || echo "$key is not in the manual"
		done >"$work/errors"
		[ -s "$work/output" ] && quiet
		result $? "the manual names all keys of JSON: $args"
	done
}

echo "TAP version 13"
make -s -C "$here/.." OUT="$work/real" EXTRA_CFLAGS=-Werror >"$work/output" 2>&1
result $? "timelyctl builds"
make -s -C "$here/.." OUT="$work/fake" EXTRA_SOURCES="test/fake.c test/fake_family.c test/fake_files.c" \
	EXTRA_CFLAGS="-Werror -Wl,--wrap=ioctl,--wrap=mnl_socket_sendto,--wrap=mnl_socket_recvfrom \
	-Wl,--wrap=open,--wrap=opendir,--wrap=adjtimex,--wrap=nanosleep,--wrap=mkstemp \
	-fsanitize=address,undefined -fno-sanitize-recover=all" \
	>"$work/output" 2>&1
result $? "timelyctl builds with the simulated kernel, with sanitizers"
cc -std=gnu2x -Wall -Wextra -Werror -o "$work/fake_page" "$here/fake_page.c" >"$work/output" 2>&1
result $? "the program that writes a clock page builds"
: >"$work/output"
"$real" -j nic show >"$work/output" 2>"$work/errors" &&
	"$python" -I -m json.tool "$work/output" >/dev/null 2>>"$work/errors" && quiet
result $? "show works with this machine's devices"
command_line
show
random_drivers
changes
show_onramp
ndp
limits
keys
acker
random_modules
connections
watch
clock
record
metrics
metrics_http
random_metrics
doctors
random_hosts
completion
manual_of_checks
manual
echo "1..$number"
echo "# $((number - failed)) passed, $failed failed"
[ $failed -eq 0 ]
