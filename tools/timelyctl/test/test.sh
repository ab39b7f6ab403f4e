#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timelyctl without a NIC: its command line, and what it says and does with every
# kind of driver, of which fake.c is one. Built with the address and
# undefined-behaviour sanitizers. TAP on standard output.
#
# With the kernel and the module it is tested in selftests/net/timely/timelyctl.sh.

set -u

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
PATH=$PATH:/usr/sbin:/sbin
python=/usr/bin/python3
number=0
failed=0
# Of the real program and of the one with the fake driver.
real=$work/real/timelyctl
fake=$work/fake/timelyctl
# Any device that there is: the fake driver answers for all.
dev=lo

# result STATUS NAME: of the command before
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

# run "KEY=NUMBER..." ARG...: $status, and what was said and set
run() {
	rm -f "$work/log"
	: >"$work/log"
	knobs=$1
	shift
	FAKE_NIC=$knobs FAKE_LOG=$work/log "$fake" "$@" >"$work/output" 2>"$work/errors"
	status=$?
}

# ends STATUS: as it should, and no sanitizer has spoken
ends() {
	[ $status -eq "$1" ] && ! grep -qE 'Sanitizer|runtime error' "$work/errors"
}

says() { grep -q -- "$1" "$work/output"; }
warns() { grep -q -- "$1" "$work/errors"; }
quiet() { [ ! -s "$work/errors" ]; }
# What was set, all of it: "rx 1 tx 0" and so on
set_was() { printf '%s' "${1:+$1
}" | cmp -s - "$work/log"; }

# ---- the command line ----

# usage TEXT ARG...
usage() {
	text=$1
	shift
	run "" "$@"
	ends 2 && warns "$text" && set_was ""
	result $? "wrong usage: timelyctl $*"
}

command_line() {
	usage 'Usage: timelyctl'
	usage 'what is "nick"' nick
	usage 'what is "x"' rtt x
	usage 'unrecognized option' --jason nic
	usage 'which device' nic enable
	usage 'which device' nic disable
	usage 'which device' nic set
	usage 'one device, not "b" as well' nic enable a b
	usage 'is for show and rtt' -j nic enable $dev
	usage 'line-rate or hardware' nic set $dev
	usage 'what is "speed"' nic set $dev speed 10gbit
	usage 'line-rate: a value is missing' nic set $dev line-rate
	usage 'hardware: allowed are on and off, not "yes"' nic set $dev hardware yes
	usage 'hardware: allowed are on and off, not "On"' nic set $dev line-rate auto hardware On
	for rate in '' 0 0bit 400bit 1e3 0x10 inf nan 10gb 10gbitx 1.2.3gbit .gbit gbit 1001gbit 2tbit \
		99999999999999999999999999999999999999 '1 gbit'; do
		usage "line-rate: allowed are auto and rates up to 1tbit" nic set $dev line-rate "$rate"
	done
	# Good ones get as far as the device.
	for rate in 1kbit 1000 10gbit 25Gbit 40000mbit 1.5gbit 3.125gbps 2.5GBIT 1tbit 1gibit 0.001mbit; do
		run "" nic set nosuch0 line-rate $rate
		ends 1 && warns 'no device "nosuch0"'
		result $? "line-rate $rate"
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
	run "" nic show nosuch0
	ends 1 && warns 'no device "nosuch0"'
	result $? "show: a device that is not there"
	for verb in enable disable; do
		run "" nic $verb nosuch0
		ends 1 && warns 'no device "nosuch0"' && set_was ""
		result $? "$verb: a device that is not there"
		run "" nic $verb "$(printf 'a\033[2Jb')"
		ends 1 && warns 'no device "a?\[2Jb"' && set_was ""
		result $? "$verb: nothing in a name reaches the terminal"
	done
	! "$real" -j nic show $dev >/dev/full 2>"$work/errors" && warns 'cannot write'
	result $? "output that cannot be written is an error"
}

# ---- show ----

# shows "KEY=NUMBER..." TEXT: a line of what show says
shows() {
	run "$1" nic show $dev
	ends 0 && quiet && says "$2"
	result $? "show: $1: $2"
}

# show_json "KEY=NUMBER..." EXPRESSION: true of the object n
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
	shows "" 'can stamp       in hardware all packets; clock /dev/ptp0$'
	shows "" 'stamps now      rx none, tx off$'
	shows "" 'line rate       25 Gb/s$'
	shows "speed=2500" 'line rate       2.5 Gb/s$'
	shows "speed=100" 'line rate       100 Mb/s$'
	shows "speed=-1" 'line rate       not known$'
	shows "rx=1" 'hardware RTTs   module timely not loaded: modprobe tcp_timely$'
	shows "rx=12 tx=1" 'stamps now      rx ptpv2-event, tx on$'
	shows "rx=99 tx=99" 'stamps now      rx unknown, tx unknown$'
	shows "rx=1 get_errno=95" 'stamps now      the driver does not tell$'
	shows "rx=1 get_errno=95" 'hardware RTTs   module timely not loaded'
	shows "get_errno=19" 'stamps now      unknown: No such device$'
	shows "phc=-1" 'can stamp       in hardware all packets$'
	shows "filters=0x1001" 'hardware RTTs   not possible: this NIC stamps PTP packets only$'
	shows "filters=0x1001" 'can stamp       in hardware PTP packets only, in software all; '
	shows "filters=0x1001 rx=1" 'can stamp       in hardware all packets'
	shows "filters=1 so=0x1f" 'hardware RTTs   not possible: this device does not stamp in hardware$'
	shows "so=0x18 phc=-1" 'can stamp       in software only$'
	shows "so=0 phc=-1" 'can stamp       nothing$'
	shows "info_errno=95" 'can stamp       nothing$'
	shows "" 'coalescing      none, an interrupt for each packet$'
	shows "usecs=50 frames=0" 'coalescing      interrupt after 50 us$'
	shows "usecs=50 frames=32 adaptive=1" 'adapts to the load, now: interrupt after 50 us or 32 packets$'
	shows "usecs=0 frames=32" 'coalescing      interrupt after 32 packets$'
	shows "coalesce_errno=95" 'coalescing      not known$'
	shows "usecs=50 frames=0" 'coalescing of 50 us is part of software RTTs: ethtool -C lo '
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

# Whatever a driver answers: no fault, and valid JSON.
noise() {
	seed=0
	bad=0
	while [ $seed -lt 100 ]; do
		seed=$((seed + 1))
		run "random=$seed features=$((seed * 37 % 5000))" -j nic show $dev $dev
		ends 0 && "$python" -I -m json.tool "$work/output" >/dev/null 2>>"$work/errors" || bad=$((bad + 1))
		run "random=$seed features=$((seed % 70))" nic show $dev
		# What a terminal obeys does not get through.
		ends 0 && ! LC_ALL=C grep -q '[^ -~]' "$work/output" || bad=$((bad + 1))
		[ $bad -eq 0 ] || break
	done
	[ $bad -eq 0 ]
	result $? "show: drivers that answer noise, 100 seeds"
}

# ---- enable, disable ----

# does "KEY=NUMBER..." VERB STATUS "SET..." TEXT
does() {
	run "$1" nic "$2" $dev
	ends "$3" && set_was "$4" && cat "$work/output" "$work/errors" | grep -q -- "$5"
	result $? "$2: $1: status $3, $5"
}

changes() {
	does "" enable 0 "rx 1 tx 0" 'all received packets are stamped now (rx was none; tx is off as before)'
	does "tx=1" enable 0 "rx 1 tx 1" 'tx is on as before'
	does "rx=1" enable 0 "" 'stamped already'
	does "rx=12 tx=1" enable 0 "rx 1 tx 1" 'A PTP program had asked for ptpv2-event, which all includes'
	does "filters=0x1001" enable 3 "" 'stamps PTP packets only, not all'
	does "filters=1" enable 3 "" 'does not stamp received packets in hardware'
	does "so=0x18" enable 3 "" 'does not stamp received packets in hardware'
	does "info_errno=95" enable 3 "" 'does not stamp received packets in hardware'
	does "set_errno=34" enable 3 "" 'Nothing was changed'
	does "narrow=12" enable 3 "rx 12 tx 0
rx 0 tx 0" 'the driver chose ptpv2-event: .* Nothing was changed (rx none)'
	does "narrow=12 lies=1 rx=9 tx=1" enable 3 "rx 12 tx 1
rx 9 tx 1" 'the driver chose ptpv2-event: .* Nothing was changed (rx ptpv2-l2-event)'
	does "narrow=12 stuck=1 rx=9" enable 3 "rx 12 tx 0" 'its filter ptpv2-l2-event could not be restored'
	does "get_errno=95" enable 0 "rx 1 tx 1" 'the driver does not tell what was before'
	does "get_errno=95 tx_types=1" enable 0 "rx 1 tx 0" 'the driver does not tell what was before'
	does "get_errno=95 narrow=12" enable 3 "rx 12 tx 1
rx 0 tx 1" 'the driver chose ptpv2-event'
	does "tx_made=1" enable 0 "rx 1 tx 1" 'The driver made tx on of off'
	does "set_errno=1" enable 1 "" 'it takes root (CAP_NET_ADMIN): sudo timelyctl nic enable lo'
	does "set_errno=95" enable 1 "" 'does not let its stamps be set'
	does "set_errno=16" enable 1 "" 'the driver is busy'
	does "set_errno=19" enable 1 "" 'ip link set lo up'
	does "set_errno=5" enable 1 "" 'the driver refused: Input/output error'

	does "rx=1" disable 0 "rx 0 tx 0" 'not stamped any more'
	does "rx=1 tx=1" disable 0 "rx 0 tx 1" 'if a PTP program uses this NIC, restart it'
	does "" disable 0 "" 'already'
	does "so=0x18" disable 0 "" 'already'
	does "rx=12" disable 0 "" "rx ptpv2-event is a PTP program's filter"
	does "get_errno=95" disable 0 "rx 0 tx 1" 'not stamped any more'
	does "rx=1 set_errno=1" disable 1 "" 'sudo timelyctl nic disable lo'
}

# ---- the shell ----

# offers "WORD..." WORD...: of what is offered for the last word, all of the first
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
	offers "nic rtt help" timelyctl ''
	offers "nic" timelyctl -j n
	offers "show enable disable set" timelyctl nic ''
	offers "line-rate hardware" timelyctl nic set eth0 ''
	offers "on off" timelyctl nic set eth0 line-rate auto hardware ''
	offers "auto 25gbit" timelyctl nic set eth0 line-rate ''
}

# Each word that the program knows is in the manual.
manual() {
	for word in 'nic enable' 'nic disable' line-rate 'hardware off' rtt json hwts_filter; do
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
}

echo "TAP version 13"
make -s -C "$here/.." OUT="$work/real" EXTRA_CFLAGS=-Werror >"$work/output" 2>&1
result $? "timelyctl builds"
make -s -C "$here/.." OUT="$work/fake" EXTRA_SOURCES=test/fake.c \
	EXTRA_CFLAGS="-Werror -Wl,--wrap=ioctl -fsanitize=address,undefined -fno-sanitize-recover=all" \
	>"$work/output" 2>&1
result $? "timelyctl builds with the fake driver, under sanitizers"
: >"$work/output"
"$real" -j nic show >"$work/output" 2>"$work/errors" &&
	"$python" -I -m json.tool "$work/output" >/dev/null 2>>"$work/errors" && quiet
result $? "show works with this machine's devices"
command_line
show
noise
changes
completion
manual
echo "1..$number"
echo "# $((number - failed)) passed, $failed failed"
[ $failed -eq 0 ]
