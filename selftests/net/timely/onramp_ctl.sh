#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timelyctl's commands for On-Ramp: keys, settings, flows and the receiver's rules; permissions and
# network namespaces; and the netlink family without timelyctl, compared with a model and fuzzed.
# Topology: some cases h1 -- mid -- h2.
#
# tools/timelyctl/test/ tests timelyctl with answers that the kernel does not give.

. "$(dirname "$0")/ctl_lib.sh"

genl="$python -I $here/onramp_genl.py"

# knows "KEY, ..." USED: the keys that exist, and the one in use
knows() {
	ctl 0 -j key list
	json "all['keys'] == [$1] and all['used'] == $2"
}

fresh_key() {
	umask 077
	"$ctl" key generate >"$work/key" || fail "no key was generated"
}

# speak ARG...: run onramp_genl.py, which uses the netlink family without timelyctl
speak() {
	# shellcheck disable=SC2086 # commands
	${where-} $genl "$@" >"$work/spoken" 2>&1 || {
		say_lines <"$work/spoken"
		fail "onramp_genl.py $*"
	}
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/spoken"
}

load() {
	must insmod "$modules/timely.ko"
	for module; do
		must insmod "$modules/$module.ko"
	done
}

# ---- cases ----

without_the_module() {
	for command in onramp "onramp flows" key "key use none"; do
		# shellcheck disable=SC2086 # words
		ctl 1 $command
		says 'module timely is not loaded: modprobe sch_timely'
	done
	ctl 1 acker
	says 'modprobe timely_acker'
	load
	ctl 1 acker add any
	says 'modprobe timely_acker'
	unload_timely
}

keys() {
	load
	ctl 0 onramp
	says 'there is no key'
	says 'UDP port 20306'
	knows "" None
	fresh_key
	ctl 0 key add 1 "$work/key"
	ctl 0 key add 255 - <"$work/key"
	knows "1, 255" None
	ctl 0 onramp
	says 'no key is used'
	ctl 1 key add 1 "$work/key"
	says 'KEY ROTATION'
	ctl 1 key use 2
	says 'add it first'
	ctl 0 key use 255
	knows "1, 255" 255
	ctl 1 key del 255
	says 'use another'
	ctl 0 key use none
	ctl 0 key del 255
	ctl 1 key del 255
	says 'no such key'
	knows 1 None
	echo 00000000000000000000000000000000 >"$work/key"
	ctl 1 key add 2 "$work/key"
	says 'not all 0'
	knows 1 None
	unload_timely
	load
	knows "" None
	unload_timely
}

rotation() {
	load
	fresh_key
	ctl 0 key add 1 "$work/key"
	ctl 0 key use 1
	fresh_key
	ctl 0 key add 2 "$work/key"
	knows "1, 2" 1
	ctl 0 key use 2
	knows "1, 2" 2
	ctl 0 key del 1
	knows 2 2
	unload_timely
}

unauthenticated() {
	load
	ctl 0 onramp unauthenticated on
	says 'WARNING'
	ctl 0 -j onramp
	json 'all["unauthenticated"] is True and "WARNING" in all["hints"][0]'
	ctl 0 onramp unauthenticated off
	ctl 0 -j onramp
	json 'all["unauthenticated"] is False and set(all["counters"].values()) == {0}'
	unload_timely
}

permissions() {
	load timely_acker
	fresh_key
	chmod 644 "$work/key"
	ctl 0 key add 1 "$work/key"
	ctl 0 key use 1
	where=$as_nobody
	ctl 0 onramp
	ctl 0 key
	ctl 0 acker
	for command in "key add 2 -" "key use none" "key del 1" "onramp unauthenticated on" "onramp flows" \
		"acker add any" "acker set rate 5"; do
		# shellcheck disable=SC2086 # words
		ctl 1 $command <"$work/key"
		says 'needs root (CAP_NET_ADMIN)'
	done
	where=
	knows 1 1
	ctl 0 -j acker
	json 'all["rules"] == [] and all["rate"] == 1000000'
	unload_timely
}

namespaces() {
	hosts_up "delay 10us"
	load timely_acker
	fresh_key
	where=$in_h1
	ctl 0 key add 1 "$work/key"
	ctl 0 key use 1
	ctl 0 acker add 10.0.0.0/8
	where=$in_h2
	knows "" None
	ctl 0 -j acker
	json 'all["rules"] == []'
	ctl 0 key add 7 "$work/key"
	ctl 0 onramp unauthenticated on
	where=
	knows "" None
	where=$in_h1
	knows 1 1
	ctl 0 -j onramp
	json 'all["unauthenticated"] is False'
	# Keys and rules go with their namespace.
	hosts_down
	unload_timely
}

# The dump of 300 flows, in several datagrams, shows each flow once.
flows() {
	hosts_up "delay 10us"
	load sch_timely
	h1_qdisc timely onramp 1s owd relative
	mkfifo "$work/end"
	# shellcheck disable=SC2086 # commands
	$in_h1 $genl flows $h2_v4 $h2_v6 150 <"$work/end" >"$work/ports" 2>"$work/errors" &
	sender=$!
	exec 8>"$work/end"
	within_seconds 20 grep -q . "$work/ports" || fail "onramp_genl.py does not send"
	where=$in_h1
	ctl 0 -j onramp flows
	json 'len(all) == 300 and len({(f["source"], f["source_port"]) for f in all}) == 300'
	json 'sum(f["destination"] == "'$h2_v6'" for f in all) == 150'
	json '{(f["protocol"], f["destination_port"], f["pauses"], f["pause_left_ns"]) for f in all} == {("udp", 9, 0, 0)}'
	"$python" -I -c '
import json, sys
flows = json.load(open(sys.argv[1]))
assert {str(f["source_port"]) for f in flows} == set(open(sys.argv[2]).read().split())' "$work/out" "$work/ports" ||
		fail "other ports"
	ctl 0 onramp flows
	says "$h2_v4:9"
	says "\[$h2_v6\]:9"
	where=$in_h2
	ctl 0 -j onramp flows
	json 'all == []'
	where=
	exec 8>&-
	wait $sender || fail "onramp_genl.py: $(cat "$work/errors")"
	must tc -n h1 qdisc change dev eth0 root timely onramp off
	where=$in_h1
	ctl 0 -j onramp flows
	json 'all == []'
	hosts_down
	unload_timely
}

rules() {
	load timely_acker
	ctl 0 acker
	says 'no data is answered'
	ctl 0 acker add any
	ctl 0 acker add 10.0.0.0/8 port 80-90
	ctl 0 acker add fd00::/16 port 5
	ctl 0 -j acker
	json 'len(all["rules"]) == 4'
	json '{"prefix": "10.0.0.0", "length": 8, "port_first": 80, "port_last": 90} in all["rules"]'
	json '{"prefix": "fd00::", "length": 16, "port_first": 5, "port_last": 5} in all["rules"]'
	json '{"prefix": "::", "length": 0, "port_first": None, "port_last": None} in all["rules"]'
	ctl 1 acker add any
	ctl 1 acker add 10.0.0.0/8 port 80-90
	ctl 1 acker del 10.0.0.0/8
	ctl 0 acker del 0.0.0.0/0
	# "any" means the rules of both IP versions, of which one was deleted.
	ctl 0 acker add any
	ctl 0 acker del any
	ctl 1 acker del any
	ctl 0 acker del fd00::/16 port 5
	ctl 0 acker del 10.0.0.0/8 port 80-90
	ctl 1 acker set every 1499
	says '1500 to 10000000'
	ctl 1 acker set rate 0
	ctl 0 acker set every 3000 rate 7 test-clock-offset -5000000000 test-clock-drift -500
	ctl 0 -j acker
	json 'all["rules"] == [] and all["rules_max"] == 256'
	json 'all["every_bytes"] == 3000 and all["rate"] == 7'
	json 'all["test_clock_offset_ns"] == -5000000000 and all["test_clock_drift_ppb"] == -500'
	ctl 0 acker
	says 'OR-ACKs report wrong times, because a test clock is set'
	unload_timely
}

refusals() {
	load
	speak refusals
	speak secrets
	unload_timely
}

model() {
	load
	for seed in 1 2 3; do
		speak model $seed 2000
	done
	unload_timely
}

fuzz() {
	load sch_timely
	must ip link add d0 type dummy
	must tc qdisc add dev d0 root timely onramp 50us
	for seed in 1 2 3; do
		where=
		speak fuzz $seed "${TIMELY_FUZZ_MESSAGES:-2000}" may
		where=$as_nobody
		speak fuzz $seed "${TIMELY_FUZZ_MESSAGES:-2000}" may-not
	done
	must ip link del d0
	unload_timely
}

# Queries and keys while the modules are loaded and unloaded.
queries_while_modules_come_and_go() {
	# shellcheck disable=SC2086 # commands
	$genl ask 5 >"$work/asked" 2>&1 &
	asker=$!
	i=0
	while [ $i -lt 15 ]; do
		i=$((i + 1))
		load sch_timely timely_acker
		must ip link add d0 type dummy
		must tc qdisc add dev d0 root timely onramp 50us
		sleep 0.2
		must ip link del d0
		unload_timely
	done
	wait $asker || {
		say_lines <"$work/asked"
		fail "wrong answers to queries"
	}
	read -r asked <"$work/asked"
	expect asked -ge 20
}

run_cases without_the_module keys rotation unauthenticated permissions namespaces flows rules refusals \
	model fuzz queries_while_modules_come_and_go
