#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Test tc's plugins without the kernel modules, with two versions of tc: the one of this
# machine, and a newer one from Debian, which is unpacked in the cache.
#
#	test.sh [--newer]
#
# TAP on standard output. --newer only prints the path of the newer tc. No device is changed:
# command lines name a device that does not exist, which tc notices after it has parsed the
# options; and the qdisc that tc shows is simulated by test/fake.c.

set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../lab/debian/debian.sh
. "$here/../lab/debian/debian.sh"

# This suite has an iproute2 newer than 6.9, which changed the types of the callbacks.
suite=trixie

# Unpack the newer tc with its libraries, which are newer than those of this machine.
newer_tc() {
	newer=$cache/tc-$suite
	mkdir -p "$cache"
	exec 9>"$cache/lock-tc"
	flock 9
	if [ ! -e "$newer" ]; then
		apt=$cache/apt-tc
		tmp=$(mktemp -d -p "$cache") || exit 1
		trap 'rm -rf "$tmp"' EXIT
		use_suites "$suite"
		unpack "$tmp/tree" iproute2 libc6 libbpf1 libelf1t64
		mv "$tmp/tree" "$newer"
		with_libc "$newer" "$newer/usr/sbin/tc"
	fi
	exec 9>&-
	echo "$newer/usr/sbin/tc"
}

if [ "${1:-}" = --newer ]; then
	newer_tc
	exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
PATH=$PATH:/usr/sbin:/sbin
number=0
failed=0

# result STATUS NAME: report a test; STATUS is that of the command before
result() {
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		[ ! -s "$work/output" ] || sed 's/^/# /' "$work/output"
		failed=$((failed + 1))
	fi
}

# ---- the plugin in a tc ----

# The qdisc that the functions below test.
kind=timely

# run_tc ARG...: have tc parse options; its messages are in $work/output, its exit status in
# $status
run_tc() {
	TC_LIB_DIR=$plugins "$tc" qdisc add dev nosuch0 root "$kind" "$@" >"$work/output" 2>&1
	status=$?
}

accepts() {
	run_tc "$@"
	[ $status -eq 1 ] && [ "$(cat "$work/output")" = 'Cannot find device "nosuch0"' ]
	result $? "$name: $kind accepts: $*"
}

# warns TEXT ARG...: tc accepts the options, and prints only TEXT and about the device
warns() {
	text=$1
	shift
	run_tc "$@"
	[ $status -eq 1 ] && printf 'timely: %s\nCannot find device "nosuch0"\n' "$text" |
		cmp -s - "$work/output"
	result $? "$name: accepts with a notice: $*"
}

# refuses TEXT ARG...: the first line of tc's messages is TEXT
refuses() {
	text=$1
	shift
	run_tc "$@"
	[ $status -eq 1 ] && [ "$(head -n 1 "$work/output")" = "$kind: $text" ]
	result $? "$name: $kind refuses: $*"
}

# The plugin of the qdisc $kind uses only symbols that libc or tc define, and defines only one for tc.
resolves() {
	elf=$tc
	[ ! -e "$tc.elf" ] || elf=$tc.elf
	nm -D --defined-only "$elf" | awk '{ print $3 }' | sort -u >"$work/has"
	nm -D --undefined-only "$plugins/q_$kind.so" | awk '$1 == "U" { print $2 }' |
		grep -v '@GLIBC' | sort -u >"$work/wants"
	comm -13 "$work/has" "$work/wants" >"$work/output"
	[ -s "$work/wants" ] && [ ! -s "$work/output" ]
	result $? "$name: exports all symbols that the plugin of $kind uses"
	nm -D --defined-only "$plugins/q_$kind.so" | awk '{ print $3 }' >"$work/output"
	[ "$(cat "$work/output")" = "${kind}_qdisc_util" ]
	result $? "the plugin of $kind defines no symbol that could take the place of one of tc"
}

# Without the plugin tc must fail in another way than with it: otherwise the tests above
# and below would pass without the plugin.
loads() {
	TC_LIB_DIR=$work/none "$tc" qdisc add dev nosuch0 root "$kind" limit 5 >"$work/output" 2>&1
	grep -q "Unknown qdisc \"$kind\"" "$work/output"
	result $? "$name: does not know $kind without the plugin"
	run_tc limit 5
	! grep -q 'Unknown qdisc' "$work/output"
	result $? "$name: loads the plugin of $kind"
}

# helps WORD...: the usage has every option
helps() {
	run_tc help
	[ $status -eq 1 ] && head -n 1 "$work/output" | grep -q "^Usage: ... $kind "
	result $? "$name: $kind help prints the usage"
	for word; do
		grep -q "\[ $word " "$work/output" || grep -q " $word " "$work/output" ||
			echo "the usage does not have $word"
	done >"$work/missing"
	cp "$work/missing" "$work/output"
	[ ! -s "$work/missing" ]
	result $? "$name: $kind help names every option"
}

arguments() {
	helps limit flow_limit quantum initial_quantum maxrate buckets '\[no\]pacing' \
		refill_delay priomap weights low_rate_threshold orphan_mask timer_slack \
		ce_threshold horizon 'horizon_{cap|drop}' offload_horizon slot '\[no\]lazy' \
		split split_rate '\[no\]ack_first' ack_dscp ack_priority '\[no\]ack_time' '\[no\]ack_thin' \
		wrong_clock onramp gain owd pause_max '\[no\]strawman' clock_error
	map='2 1 0 2 1 0 2 1 0 2 1 0 2 1 0 2'
	accepts
	accepts limit 1 flow_limit 4294967295 quantum 0x100 initial_quantum 0 buckets 1000
	accepts maxrate 1.5gbit low_rate_threshold 1000 split_rate 10GBit
	accepts maxrate none ce_threshold none
	accepts refill_delay 40 horizon 1.5s timer_slack 10000 ce_threshold 1msec
	accepts pacing nopacing horizon 1s horizon_cap horizon_drop offload_horizon 0
	# shellcheck disable=SC2086 # a list
	accepts bands 3 priomap $map weights 16384 20000 2147483647
	accepts slot 256 slot 1048576ns lazy nolazy split 512k split 0
	accepts ack_first noack_first ack_dscp 46 ack_dscp af41 ack_dscp keep
	accepts ack_priority 15 ack_priority keep ack_time noack_time ack_thin noack_thin
	accepts wrong_clock send wrong_clock drop
	accepts onramp 50us onramp 1000 onramp 1s onramp off
	accepts onramp 50us gain 1/16 owd relative pause_max 10ms strawman clock_error 0
	accepts gain .0625 gain 1 gain 1/65536 gain 3/48 owd absolute owd rtt nostrawman

	refuses 'limit: allowed are 1 to 4294967295 packets, not "0"' limit 0
	refuses 'limit: allowed are 1 to 4294967295 packets, not "4294967296"' limit 4294967296
	refuses 'limit: allowed are 1 to 4294967295 packets, not "99999999999999999999"' \
		limit 99999999999999999999
	refuses 'limit: allowed are 1 to 4294967295 packets, not "-1"' limit -1
	refuses 'limit: allowed are 1 to 4294967295 packets, not ""' limit ''
	refuses 'limit: a value is missing' flow_limit 5 limit
	refuses 'refill_delay: allowed are 0 to 4294967295 us, not "2h"' refill_delay 2h
	refuses 'horizon: allowed are 0 to 4294967295 us, not "inf"' horizon inf
	refuses 'horizon: allowed are 0 to 4294967295 us, not "4295s"' horizon 4295s
	refuses 'slot: allowed are 256 to 1048576 ns, not "255"' slot 255
	refuses 'slot: allowed are 256 to 1048576 ns, not "1.1ms"' slot 1.1ms
	refuses 'split: allowed are 0 to 524288 bytes, not "1m"' split 1m
	refuses 'maxrate: allowed are 1 to 18446744073709551615 bytes/s, not "0"' maxrate 0
	refuses 'split_rate: allowed are 0 to 18446744073709551615 bytes/s, not "none"' split_rate none
	refuses 'bands: the qdisc has 3 bands, not "2"' bands 2
	refuses 'bands: "priomap" and 16 bands must follow' bands 3
	refuses 'priomap: 16 of 16 bands are missing' bands 3 priomap
	refuses 'weights: 2 of 3 weights are missing' weights 20000
	refuses 'wrong_clock: allowed are send and drop, not "tai"' wrong_clock tai
	refuses 'onramp: allowed are 1000 to 1000000000 ns, not "50"' onramp 50
	refuses 'onramp: allowed are 1000 to 1000000000 ns, not "0"' onramp 0
	refuses 'onramp: allowed are 1000 to 1000000000 ns, not "1.1s"' onramp 1.1s
	refuses 'onramp: a value is missing' onramp
	for gain in 0 1/0 1.1 2/1 -1 / 1/ /16 1/16x .5.5 1/131073 inf ''; do
		refuses "gain: allowed are 1/65536 to 1, such as 1/16 or .0625, not \"$gain\"" gain "$gain"
	done
	refuses 'owd: allowed are absolute, relative and rtt, not "1"' owd 1
	refuses 'pause_max: allowed are 1000 to 1000000000 ns, not "off"' pause_max off
	refuses 'clock_error: allowed are 0 to 1000000000 ns, not "2s"' clock_error 2s
	refuses 'unknown option "fast"' limit 5 fast
	refuses 'defrate: allowed are rates such as 1mbit, which are ignored, not "fast"' defrate fast

	warns 'defrate: ignored, as fq ignores it' defrate 1mbit
	warns 'segment is deprecated and will be removed in the next release: use split' \
		limit 5 segment 16k
	warns 'segment_rate is deprecated and will be removed in the next release: use split_rate' \
		segment_rate 5gbit limit 5
	refuses 'segment is deprecated and will be removed in the next release: use split' segment 1m
	grep -qx 'timely: split: allowed are 0 to 524288 bytes, not "1m"' "$work/output"
	result $? "$name: refuses a wrong value of a deprecated option"
}

trim_arguments() {
	helps limit header_limit size dscp trimmable control ratio victim '\[no\]return'
	accepts
	accepts limit 1 limit 1000000 header_limit auto header_limit 4294967295 header_limit 1k
	accepts size 64 size 65535 size 1kb dscp 0 dscp 63 dscp cs6 dscp EF
	accepts trimmable any trimmable none trimmable AF11 trimmable 0-63 trimmable af11,AF12,40-47,1
	accepts control none control EF,CS7 control CS1-CS3
	accepts ratio 1 ratio 100000 victim random victim arrival victim tail return noreturn

	refuses 'limit: allowed are 1 to 1000000 packets, not "0"' limit 0
	refuses 'limit: allowed are 1 to 1000000 packets, not "1k"' limit 1k
	refuses 'limit: a value is missing' size 100 limit
	refuses 'header_limit: allowed are 0 to 4294967295 bytes, not "4g"' header_limit 4g
	refuses 'header_limit: allowed are 0 to 4294967295 bytes, not "-1"' header_limit -1
	refuses 'size: allowed are 64 to 65535 bytes, not "63"' size 63
	refuses 'size: allowed are 64 to 65535 bytes, not "64k"' size 64k
	for dscp in 64 -1 keep AF44 '' 'CS6,'; do
		refuses "dscp: allowed are 0 to 63 and a name such as CS6, AF41 or EF, not \"$dscp\"" dscp "$dscp"
	done
	for list in '' ',' 'AF11,' ',1' '1,,2' 64 7-0 1- -1 1-2-3 all 'any,1'; do
		refuses "trimmable: allowed are DSCPs such as AF11,AF12,40-47, any and none, not \"$list\"" \
			trimmable "$list"
	done
	refuses 'ratio: allowed are 1 to 1000000 packets, not "0"' ratio 0
	refuses 'victim: allowed are random, arrival and tail, not "head"' victim head
	refuses 'unknown option "noratio"' noratio
	refuses 'unknown option "flow_limit"' flow_limit 5
}

# ---- the output, for a qdisc that fake.c simulates ----

# show_tc "KEY=NUMBER..." ARG...: `tc ARG... qdisc show`; fake.c explains the keys
show_tc() {
	FAKE_QDISC=$1
	export FAKE_QDISC
	shift
	TC_LIB_DIR=$plugins LD_PRELOAD=$work/fake.so "$tc" "$@" qdisc show dev lo >"$work/output" 2>&1
	status=$?
}

# shows "KEY=NUMBER..." LINE: one line of `tc -s qdisc show` is LINE
shows() {
	show_tc "$1" -s
	[ $status -eq 0 ] && sed 's/ *$//' "$work/output" | grep -qxF -- "$2"
	result $? "$name: shows: $1: $2"
}

# hides "KEY=NUMBER..." TEXT: `tc -s qdisc show` does not contain TEXT
hides() {
	show_tc "$1" -s
	[ $status -eq 0 ] && grep -q 'departures 77' "$work/output" && ! grep -q -- "$2" "$work/output"
	result $? "$name: does not show: $1: $2"
}

# shows_json "KEY=NUMBER..." EXPRESSION: EXPRESSION is true for the qdisc q and its options o
shows_json() {
	show_tc "$1" -s -j
	cp "$work/output" "$work/json"
	/usr/bin/python3 -I -c '
import json, sys
q, = json.load(open(sys.argv[1]))
o = q["options"]
assert eval(sys.argv[2]), q' "$work/json" "$2" 2>>"$work/output"
	result $? "$name: shows -j: $1: $2"
}

show() {
	counts='signals=2 pauses=5 paused_ns=12345678 b=32768 acks=3'
	shows onramp=50000 'qdisc timely 1: root limit 10000p lazy onramp 50us gain 1/16 owd relative pause_max 10ms nostrawman clock_error 0ns'
	shows 'onramp=1000000 gain=65536 owd=2 strawman=1' \
		'qdisc timely 1: root limit 10000p lazy onramp 1ms gain 1 owd rtt pause_max 10ms strawman clock_error 0ns'
	shows 'onramp=1000 gain=1 owd=0 pause_max=1000000000 clock_error=2000' \
		'qdisc timely 1: root limit 10000p lazy onramp 1us gain 1/65536 owd absolute pause_max 1s nostrawman clock_error 2us'
	shows 'onramp=1000 gain=3 owd=9' \
		'qdisc timely 1: root limit 10000p lazy onramp 1us gain 4.57764e-05 owd 9 pause_max 10ms nostrawman clock_error 0ns'
	shows 'split=0' 'qdisc timely 1: root limit 10000p lazy split 0b'
	shows 'split=16384 split_rate=625000000' \
		'qdisc timely 1: root limit 10000p lazy split 16Kb split_rate 5Gbit'
	hides 'split=16384 split_rate=625000000' 'segment [0-9]'
	# For one release, JSON has the old names too.
	shows_json 'split=16384 split_rate=625000000' '(o["split"], o["split_rate"]) == (16384, 625000000)'
	shows_json 'split=16384 split_rate=625000000' '(o["segment"], o["segment_rate"]) == (16384, 625000000)'
	shows_json 'split=0' 'o["split"] == o["segment"] == 0 and not {"split_rate", "segment_rate"} & o.keys()'
	# This time in ns has more than 32 bits.
	shows next=10000000000 '  flows 3 (inactive 0 throttled 0) band0_pkts 0 band1_pkts 0 band2_pkts 0 next_packet_delay 10s buckets 1024'
	shows_json next=10000000000 'q["next_packet_delay"] == 10000000000'
	shows onramp=0 'qdisc timely 1: root limit 10000p lazy'
	shows old=1 'qdisc timely 1: root limit 10000p lazy'
	hides onramp=0 onramp
	hides 'old=1 signals=9' onramp
	shows onramp=50000 '  onramp: signals 0 pauses 0 paused_time 0ns b 0.00 acks_passed 0'
	hides onramp=50000 'onramp delays'
	# Statistics of On-Ramp are shown after On-Ramp was turned off, too.
	shows "$counts" '  onramp: signals 32 pauses 5 paused_time 12.3ms b 0.50 acks_passed 3'
	shows "$counts" '  onramp delays: <2us 2 <4us 2 <8us 2 <16us 2 <32us 2 <64us 2 <128us 2 <256us 2 <512us 2 <1ms 2 <2ms 2 <4ms 2 <8ms 2 <16ms 2 <32ms 2 >=32ms 2'
	shows_json 'onramp=50000 owd=1' 'o["onramp"] == 50000 and o["owd"] == "relative" and o["gain"] == .0625'
	shows_json 'onramp=50000 clock_error=700' \
		'o["pause_max"] == 10000000 and o["strawman"] is False and o["clock_error"] == 700'
	shows_json '' '"onramp" not in o and "gain" not in o and q["onramp_signals"] == 0'
	shows_json "$counts" 'q["onramp_delays"] == [2] * 16 and q["onramp_signals"] == 32 and q["onramp_b"] == .5'
	shows_json "$counts" 'q["onramp_pauses"] == 5 and q["onramp_paused_ns"] == 12345678 and q["onramp_acks_passed"] == 3'
	shows 'timed=12 thinned=7' '  acks_first 0 acks_marked 0 acks_timed 12 acks_thinned 7 wrong_clock 0 wrong_clock_drops 0'
	shows 'shared=12' '  gc 0 throttled 0 shared 12'
	hides '' shared
	shows_json 'shared=12' 'q["shared"] == 12'
	shows_json 'old=1 signals=9' 'q["departures"] == 77 and q["onramp_delays"] == [0] * 16 and q["buckets"] == 1024'
}

test_tc() {
	tc=$1
	name=$("$tc" -V 2>/dev/null | sed 's/.*iproute2-\([^,]*\).*/\1/')
	[ -n "$name" ]
	result $? "${name:-tc} runs"
	for kind in trim timely; do
		resolves
		loads
	done
	arguments
	show
	kind=trim
	trim_arguments
	kind=timely
}

# ---- the shell ----

# complete_words WORD...: the words that bash would offer for the last WORD
complete_words() {
	# The functions that bash-completion provides, reduced to what is needed here.
	# shellcheck disable=SC2016 # for bash
	bash -c '
		_init_completion() {
			words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
			cur=${words[cword]} prev=${words[cword-1]}
		}
		_available_interfaces() { COMPREPLY+=(eth0); }
		file=$1
		shift
		for again in 1 2; do . "$file"; done
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_tc
		printf "%s\n" "${COMPREPLY[@]}"' complete "$here/completion/tc-timely" "$@" \
		>"$work/output" 2>&1
}

# offers WORD OTHER ARG...: for the command line ARG..., WORD is offered, OTHER is not
offers() {
	word=$1
	other=$2
	shift 2
	complete_words "$@"
	grep -qx -- "$word" "$work/output" && ! grep -qx -- "$other" "$work/output"
	result $? "completion: $* -> $word"
}

completion() {
	offers timely limit tc qdisc add dev eth0 root ''
	offers timely fq tc qdisc add dev eth0 root ti
	offers slot target tc qdisc add dev eth0 root timely ''
	offers ack_dscp ack_first tc qdisc replace dev eth0 root timely ack_first ack_
	offers split_rate segment_rate tc qdisc change dev eth0 root timely slot 1us s
	offers CS6 slot tc qdisc add dev eth0 root timely ack_dscp C
	offers drop slot tc qdisc add dev eth0 root timely wrong_clock ''
	offers 10us slot tc qdisc add dev eth0 root timely slot 10
	offers none slot tc qdisc add dev eth0 root timely maxrate ''
	offers nolazy slot tc qdisc add dev eth0 root timely limit 5 no
	offers off slot tc qdisc add dev eth0 root timely onramp ''
	offers relative slot tc qdisc add dev eth0 root timely onramp 50us owd r
	offers 10ms slot tc qdisc change dev eth0 root timely pause_max 10
	offers 1/16 slot tc qdisc change dev eth0 root timely gain ''
	offers nostrawman nolazy tc qdisc change dev eth0 root timely nos
	offers trim timely tc qdisc add dev eth0 root tr
	offers header_limit slot tc qdisc add dev eth0 root trim ''
	offers tail slot tc qdisc add dev eth0 root trim victim ''
	offers EF slot tc qdisc add dev eth0 root trim control ''
	offers any keep tc qdisc add dev eth0 root trim trimmable ''
	offers noreturn ratio tc qdisc change dev eth0 root trim no
	# Completion of iproute2's own qdiscs is unchanged.
	offers flow_limit slot tc qdisc add dev eth0 root fq ''
	offers target slot tc qdisc add dev eth0 root codel ''
	offers add timely tc qdisc ''
	TC_COMPLETION=$work/none complete_words tc qdisc add dev eth0 root ''
	! grep -q timely "$work/output"
	result $? "completion: adds nothing where iproute2's is missing"
}

echo "TAP version 13"
plugins=$work/plugins
make -s -C "$here" OUT="$plugins" EXTRA_CFLAGS=-Werror >"$work/output" 2>&1
result $? "the plugins build"
${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -O2 -fPIC -shared -I"$here/../../include/uapi" \
	-o "$work/fake.so" "$here/test/fake.c" >"$work/output" 2>&1
result $? "the fake qdisc builds"
: >"$work/output"
test_tc "$(command -v tc)"
if newer=$(newer_tc 2>"$work/output"); then
	test_tc "$newer"
else
	result 1 "the newer tc can be downloaded"
fi
completion
echo "1..$number"
echo "# $((number - failed)) passed, $failed failed"
[ $failed -eq 0 ]
