#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timelyctl setup and teardown: devices with one and with several queues, bonds, VLANs and bridges;
# a teardown restores exactly what tc showed before; what cannot be restored is refused, and a setup
# that fails half way leaves nothing changed.
# Topology: devices without a link in the namespaces h1 and h2.

. "$(dirname "$0")/ctl_lib.sh"

need_tools ethtool

state=/run/timely
default=/proc/sys/net/core/default_qdisc
allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control
where=$in_h1

# One line for each qdisc of h1, sorted: the kernel does not keep their order.
qdiscs() { tc -n h1 -j qdisc show "$@" | sed 's/},{"kind"/},\n{"kind"/g; s/[][]$//; s/^[][]//; s/}$/},/' | sort; }

# before DEVICE: note the qdiscs of h1's device
before() { qdiscs dev "$1" >"$work/before.$1"; }

# expect_restored DEVICE...: the qdiscs are those that before() has noted
expect_restored() {
	for device; do
		qdiscs dev "$device" >"$work/after"
		cmp -s "$work/before.$device" "$work/after" || {
			cat "$work/before.$device" "$work/after" | say_lines
			fail "the qdiscs of $device are not those of before"
		}
	done
}

# has_timely DEVICE NUMBER: NUMBER qdiscs of h1's device are of the kind timely
has_timely() {
	instances=$(tc -n h1 qdisc show dev "$1" | grep -c '^qdisc timely') || :
	expect instances -eq "$2" "qdiscs timely of $1"
}

# no_state: there is no state file
no_state() {
	left=$(ls $state)
	[ -z "$left" ] || fail "state files left: $left"
}

# there_and_back DEVICE NUMBER: setup installs NUMBER qdiscs, and teardown restores what was before
there_and_back() {
	before "$1"
	ctl 0 setup "$1"
	has_timely "$1" "$2"
	ctl 0 teardown "$1"
	expect_restored "$1"
	no_state
}

devices_up() {
	must insmod "$modules/timely.ko"
	must insmod "$modules/tcp_timely.ko"
	must insmod "$modules/sch_timely.ko"
	must ip netns add h1
	must ip netns add h2
	must ip -n h1 -batch - <<-EOF
		link set lo up
		link add one type ifb
		link add four numtxqueues 4 numrxqueues 4 type ifb
		link add v4 numtxqueues 4 numrxqueues 4 type veth peer name v4 netns h2
		link add d1 type dummy
		link add d2 numtxqueues 2 numrxqueues 2 type dummy
		link set one up
		link set four up
		link set v4 up
		link set d1 up
		link set d2 up
	EOF
}

# qdisc DEVICE WORD...: put a new qdisc on h1's device
qdisc() {
	must tc -n h1 qdisc replace dev "$1" root handle 99: pfifo
	device=$1
	shift
	must tc -n h1 qdisc replace dev "$device" root "$@"
}

no_qdisc() { must tc -n h1 qdisc del dev "$1" root; }

one_queue() {
	there_and_back one 1
	qdisc one handle 5: fq_codel limit 999 target 7ms
	there_and_back one 1
	qdisc one handle 5: fq limit 777 flow_limit 55 maxrate 1gbit
	there_and_back one 1
	qdisc one pfifo_fast
	there_and_back one 1
	no_qdisc one
}

# Filters of packets that are received, and of all that are sent, are no part of the qdiscs.
filters_stay() {
	must tc -n h1 qdisc add dev four clsact
	for direction in ingress egress; do
		must tc -n h1 filter add dev four $direction matchall classid 1:1
	done
	filters=$(tc -n h1 filter show dev four ingress; tc -n h1 filter show dev four egress)
	[ "$(echo "$filters" | grep -c '^filter .* handle')" -eq 2 ] || fail "the filters are: $filters"
	there_and_back four 4
	ctl 0 setup four
	[ "$(tc -n h1 filter show dev four ingress; tc -n h1 filter show dev four egress)" = "$filters" ] ||
		fail "the filters have changed"
	ctl 0 teardown four
	[ "$(tc -n h1 filter show dev four ingress; tc -n h1 filter show dev four egress)" = "$filters" ] ||
		fail "the filters have changed"
	must tc -n h1 qdisc del dev four clsact
}

several_queues() {
	there_and_back four 4
	# An administrator's mq stays, with the kernel's or other qdiscs below.
	qdisc four handle 9: mq
	there_and_back four 4
	must tc -n h1 qdisc replace dev four parent 9:2 handle 22: fq limit 333
	must tc -n h1 qdisc replace dev four parent 9:3 fq_codel flows 64
	there_and_back four 4
	# One qdisc for all queues becomes one for each.
	qdisc four handle 1: fq buckets 64
	there_and_back four 4
	qdisc four handle 1: timely limit 555 split 16k ack_dscp CS6
	there_and_back four 4
	ctl 0 setup four
	kept=$(tc -n h1 qdisc show dev four | grep '^qdisc timely .* limit 555p ' | grep -c ' split 16') || :
	expect kept -eq 4 "queues with the options of the former root"
	ctl 0 teardown four
	no_qdisc four
	there_and_back v4 4
}

# A device that is down has no qdisc after the teardown; the kernel makes it when the device is up.
device_is_down() {
	before four
	must ip -n h1 link set four down
	ctl 0 setup four
	has_timely four 4
	ctl 0 teardown four
	must ip -n h1 link set four up
	expect_restored four
	no_state
}

# The kernel's default for new qdiscs was another one at the time of the setup.
default_qdisc_changes() {
	read -r kind <$default
	before four
	ctl 0 setup four
	echo fq >$default
	ctl 0 teardown four
	echo "$kind" >$default
	kinds=$(tc -n h1 qdisc show dev four | awk '{ print $2 }' | sort | xargs)
	[ "$kinds" = "mq $kind $kind $kind $kind" ] || fail "the qdiscs are $kinds"
	no_qdisc four
	expect_restored four
	no_state
}

dry_run_changes_nothing() {
	before four
	ctl 0 setup four --dry-run
	[ ! -s $state ] || no_state
	cp "$work/out" "$work/script"
	expect_restored four
	# The output is a script that does the same.
	must $in_h1 sh "$work/script"
	has_timely four 4
	no_qdisc four
	ctl 0 setup four
	grep -v '^#' "$work/out" >"$work/done"
	grep -v '^#' "$work/script" | cmp -s - "$work/done" || fail "setup and --dry-run print different commands"
	before four
	ctl 0 --dry-run teardown four
	says '^tc qdisc del dev four root$'
	expect_restored four
	ctl 0 teardown four
}

# Repeated commands change nothing more; a queue that has lost timely gets it back.
twice_is_once() {
	before four
	ctl 0 setup four
	before_again=$(qdiscs dev four)
	ctl 0 setup four
	says 'four has timely on each of its queues already'
	[ "$before_again" = "$(qdiscs dev four)" ] || fail "the second setup changed something"
	must tc -n h1 qdisc replace dev four parent 1:2 fq
	ctl 0 setup four
	has_timely four 4
	ctl 0 teardown four
	expect_restored four
	ctl 0 teardown four
	says 'four: nothing to restore'
	expect_restored four
	no_state
}

# Queues that have timely by the sysctl stay as they are.
default_qdisc_is_timely() {
	read -r kind <$default
	echo timely >$default
	qdisc four pfifo
	no_qdisc four
	before four
	ctl 0 setup four
	echo "$kind" >$default
	says 'four has timely on each of its queues already'
	has_timely four 4
	expect_restored four
	ctl 0 teardown four
	expect_restored four
	qdisc four pfifo
	no_qdisc four
	no_state
}

# What an administrator changes after the setup is not overwritten.
later_changes_stay() {
	ctl 0 setup one
	qdisc one handle 7: codel limit 88
	before one
	ctl 0 teardown one
	says 'changed after the setup: they stay'
	expect_restored one
	no_state
	no_qdisc one
}

configured_qdiscs_are_refused() {
	while read -r kind options; do
		# shellcheck disable=SC2086 # a list of options
		qdisc one handle 3: $kind $options
		before one
		ctl 1 setup one
		says "qdisc $kind was configured by an administrator; --force"
		expect_restored one
		ctl 0 setup one --force
		has_timely one 1
		ctl 0 teardown one
		expect_restored one
		no_qdisc one
	done <<-EOF
		cake bandwidth 100mbit rtt 30ms overhead 18 mpu 64
		codel limit 555 target 1ms interval 33ms ce_threshold 100us ecn
		pfifo limit 123
		bfifo limit 123456
	EOF
	qdisc one handle 1: htb default 10
	must tc -n h1 class add dev one parent 1: classid 1:10 htb rate 1gbit
	before one
	for force in "" --force; do
		# shellcheck disable=SC2086 # no word if it is empty
		ctl 1 setup one $force
		says 'one: the qdisc htb has parts that timelyctl cannot restore'
	done
	expect_restored one
	qdisc one handle 1: fq_codel
	must tc -n h1 filter add dev one parent 1: matchall classid 1:1
	ctl 1 setup one --force
	says 'qdisc fq_codel has filters'
	no_qdisc one
	must tc -n h1 qdisc add dev one stab overhead 24 linklayer ethernet root fq
	ctl 1 setup one
	says 'qdisc fq has a size table'
	no_qdisc one
	# One queue of several.
	qdisc four handle 1: mq
	must tc -n h1 qdisc replace dev four parent 1:3 tbf rate 1gbit burst 32k latency 1ms
	before four
	ctl 1 setup four
	says 'four: the qdisc tbf has parts'
	expect_restored four
	no_qdisc four
	no_state
}

# Without sch_timely the new mq gets no children: mq is removed again.
failure_half_way_is_undone() {
	must rmmod sch_timely
	qdisc d2 handle 6: fq_codel limit 444
	for device in one four d2; do before $device; done
	ctl 1 setup four
	says 'modprobe sch_timely'
	says 'undoing the changes of four'
	ctl 1 setup one
	expect_restored one four
	must ip -n h1 -batch - <<-EOF
		link add b0 type bridge
		link set four master b0
		link set d2 master b0
	EOF
	ctl 1 setup b0
	expect_restored four d2
	no_state
	must insmod "$modules/sch_timely.ko"
	# There is room for the state of one device only: the second one fails, and the first is restored.
	must mount -t tmpfs -o size=4k,mode=700 state $state
	ctl 1 setup b0
	says 'cannot be saved in a file, and the device was not changed: No space left'
	says 'undoing the changes of'
	expect_restored four d2
	no_state
	must umount $state
	# A teardown that fails keeps timely and the state, so that it can be repeated.
	ctl 0 setup d2
	cp "$work/before.d2" "$work/before"
	before d2
	file=$(ls $state)
	cp "$state/$file" "$work/good"
	sed -i 's/ fq_codel .*/ fq_codel 08000500ffffffff/' "$state/$file"
	ctl 1 teardown d2
	says 'the kernel does not install the qdisc fq_codel'
	expect_restored d2
	cp "$work/good" "$state/$file"
	cp "$work/before" "$work/before.d2"
	ctl 0 teardown d2
	expect_restored d2
	must ip -n h1 link del b0
	no_qdisc d2
	no_state
}

# What works against the setup is reported with the remedy.
advice() {
	ctl 0 setup four
	ctl 0 teardown four
	says '^# four: connections that timely has paced send in bursts under'
	must $in_h1 sysctl -qw net.ipv4.tcp_pacing_ca_ratio=90
	ctl 0 setup one --dry-run
	says 'sysctl -w net.ipv4.tcp_pacing_ca_ratio=120'
	must $in_h1 sysctl -qw net.ipv4.tcp_pacing_ca_ratio=120
	least=$($in_h1 sysctl -n net.ipv4.tcp_rto_min_us)
	must $in_h1 sysctl -qw net.ipv4.tcp_rto_min_us=5000
	ctl 0 setup one --dry-run
	says 'tcp_rto_min_us is 5000: .*sysctl -w net.ipv4.tcp_rto_min_us=25000'
	must $in_h1 sysctl -qw net.ipv4.tcp_rto_min_us="$least"
	where=
	must ip link add name nic numtxqueues 2 numrxqueues 2 type dummy
	ctl 0 setup nic --dry-run
	says '^# nic: queues that ethtool -L adds later get the qdisc'
	says 'sysctl -w net.ipv4.tcp_allowed_congestion_control=".* timely"'
	# Another rule of the module has a name that begins in the same way.
	read -r list <$allowed
	echo "$list timely_patched" >$allowed
	ctl 0 setup nic --dry-run
	says 'sysctl -w net.ipv4.tcp_allowed_congestion_control=".* timely_patched timely"'
	echo "$list timely" >$allowed
	ctl 0 setup nic --dry-run
	! grep tcp_allowed_congestion_control "$work/out" || fail "advice that was followed"
	echo "$list" >$allowed
	must ip link del nic
	must insmod "$modules/hwnic.ko"
	must ip link add hw type hwnic
	ctl 0 setup hw --dry-run
	! grep LRO "$work/out" || fail "advice about LRO, which is off"
	must ethtool -K hw lro on
	ctl 0 setup hw --dry-run
	says '^# hw: LRO .*ethtool -K hw lro off'
	must ip link del hw
	must rmmod hwnic
	where=$in_h1
}

devices_on_top_of_others() {
	must ip -n h1 -batch - <<-EOF
		link add bond0 type bond mode active-backup
		link set d1 down
		link set d1 master bond0
		link set d2 down
		link set d2 master bond0
		link set bond0 up
		link add link bond0 name bond0.7 type vlan id 7
		link set bond0.7 up
	EOF
	for device in bond0.7 bond0 d1 d2; do before $device; done
	ctl 0 setup bond0.7
	says '^# bond0.7 is a vlan: packets wait in the qdiscs of'
	has_timely d1 1
	has_timely d2 2
	has_timely bond0 0
	has_timely bond0.7 0
	ctl 0 teardown bond0
	expect_restored bond0.7 bond0 d1 d2
	# A port that has left the bond is named.
	ctl 0 setup bond0
	must ip -n h1 link set d2 nomaster
	must ip -n h1 link set d2 up
	ctl 0 teardown bond0
	says '^# d2 was set up, too, and is not below this device: timelyctl teardown d2$'
	has_timely d2 2
	ctl 0 teardown d2
	expect_restored bond0 d1 d2
	no_state
	must ip -n h1 link del bond0
	# The veth of a bridge leads to a container.
	must ip -n h1 -batch - <<-EOF
		link add br0 type bridge
		link set v4 master br0
	EOF
	before v4
	ctl 1 setup br0
	says 'v4 leads to a container'
	says 'br0 is a bridge, and no device below it sends packets to a network'
	must ip -n h1 link set four master br0
	ctl 0 setup br0
	has_timely four 4
	has_timely v4 0
	ctl 0 teardown br0
	expect_restored four v4
	# A tunnel has no queue: its packets come to another device.
	must ip -n h1 -batch - <<-EOF
		link add vx type vxlan id 5 dstport 4789
		link set vx up
		link set vx master br0
	EOF
	ctl 0 setup br0
	says '^# vx has no queue: skipped$'
	says 'packets wait in the qdiscs of four$'
	has_timely four 4
	ctl 0 teardown br0
	expect_restored four
	must ip -n h1 link set four nomaster
	ctl 1 setup br0
	says 'br0 is a bridge, and no device below it has a queue'
	no_state
	must ip -n h1 -batch - <<-EOF
		link del vx
		link del br0
		link add link four name four.8 netns h2 type vlan id 8
	EOF
	where=$in_h2
	ctl 1 setup four.8
	says 'the device below it is in another network namespace'
	where=$in_h1
	must ip -n h2 link del four.8
	# Two ways lead to the same device: it is set up once.
	must ip -n h1 -batch - <<-EOF
		link add br0 type bridge
		link add link one name one.1 type vlan id 1
		link add link one name one.2 type vlan id 2
		link set one.1 master br0
		link set one.2 master br0
	EOF
	qdisc one handle 5: fq limit 4444
	before one
	ctl 0 setup br0
	says 'packets wait in the qdiscs of one$'
	has_timely one 1
	ctl 0 teardown br0
	expect_restored one
	must ip -n h1 -batch - <<-EOF
		link del one.1
		link del one.2
		link del br0
	EOF
	no_qdisc one
	ctl 1 setup lo
	says 'lo has no queue of its own'
	no_state
}

# The sysctl is changed only if that is asked for, and restored with the device that changed it.
congestion_control() {
	read_cc="$in_h1 cat /proc/sys/net/ipv4/tcp_congestion_control"
	cc=$($read_cc)
	ctl 0 setup one
	says "default congestion control is $cc: connections use timely only by a route"
	[ "$($read_cc)" = "$cc" ] || fail "the congestion control was changed"
	# A namespace may use only what the host allows.
	ctl 1 setup four congctl
	says 'the congestion control cannot be set to timely\|no congestion control timely'
	has_timely four 0
	allowed_before=$(cat $allowed)
	echo "$allowed_before timely" >$allowed
	ctl 0 setup one congctl
	[ "$($read_cc)" = timely ] || fail "the congestion control was not changed"
	ctl 0 setup four congctl
	ctl 0 teardown four
	[ "$($read_cc)" = timely ] || fail "the wrong teardown restored the congestion control"
	ctl 0 teardown one
	[ "$($read_cc)" = "$cc" ] || fail "the congestion control was not restored"
	ctl 0 setup one congctl
	must $in_h1 sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
	ctl 0 teardown one
	says 'changed to reno after the setup: it stays'
	must $in_h1 sh -c "echo $cc >/proc/sys/net/ipv4/tcp_congestion_control"
	# A repeated setup keeps it, also if somebody has replaced the qdisc between.
	ctl 0 setup one congctl
	no_qdisc one
	ctl 0 setup one congctl
	ctl 0 teardown one
	[ "$($read_cc)" = "$cc" ] || fail "the second setup lost the congestion control"
	# A congestion control in BPF, which does not exist any more.
	ctl 0 setup one congctl
	file=$state/$(ls $state)
	sed -i 's/^congctl .*/congctl bpf_a.b/' "$file"
	ctl 1 teardown one
	says 'congestion control bpf_a.b'
	sed -i "s/^congctl .*/congctl $cc/" "$file"
	ctl 0 teardown one
	[ "$($read_cc)" = "$cc" ] || fail "the congestion control was not restored"
	echo "$allowed_before" >$allowed
	no_state
}

# The device "one" gets another interface index, as when its driver is loaded again.
register_again() {
	must ip -n h1 -batch - <<-EOF
		link del one
		link add one type ifb
		link set one up
	EOF
}

# A device that was registered again has another interface index: its state file is named.
device_is_registered_again() {
	read_cc="$in_h1 cat /proc/sys/net/ipv4/tcp_congestion_control"
	cc=$($read_cc)
	allowed_before=$(cat $allowed)
	echo "$allowed_before timely" >$allowed
	ctl 0 setup one congctl
	file=$state/$(ls $state)
	register_again
	ctl 0 teardown four
	says "^# $file belongs to a device that no longer exists"
	ctl 0 teardown one
	says '^# one: nothing to restore'
	says "^# $file belongs to a device .*: sysctl -w net.ipv4.tcp_congestion_control=$cc; rm $file$"
	sed -n "s,^# $file .* its setup: ,,p" "$work/out" >"$work/script"
	must $in_h1 sh -e "$work/script"
	[ "$($read_cc)" = "$cc" ] || fail "the congestion control was not restored"
	# Without the option congctl the file is all that is left.
	ctl 0 setup one
	file=$state/$(ls $state)
	register_again
	ctl 0 teardown one
	says "^# $file belongs to a device .* before its setup: rm $file$"
	rm "$file"
	echo "$allowed_before" >$allowed
	no_state
}

# interrupt SIGNAL ARG...: timelyctl gets the signal after its first change: its output is a pipe that has room for
# the first line only, so it waits before the second change. Ends when timelyctl has ended.
interrupt() {
	must "$python" -I - "$ctl" "$@" <<-'EOF'
		import fcntl, os, signal, subprocess, sys, time
		reader, writer = os.pipe()
		fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
		os.write(writer, bytes(4096 - 60))
		number = getattr(signal, "SIG" + sys.argv[2])
		program = subprocess.Popen(["ip", "netns", "exec", "h1", "stdbuf", "-oL", sys.argv[1], *sys.argv[3:]],
		                           stdout=writer)
		os.close(writer)
		# Virtual time advances when all processes wait.
		time.sleep(.1)
		program.send_signal(number)
		time.sleep(.1)
		output = b""
		while text := os.read(reader, 4096):
		    output += text
		lines = output.lstrip(bytes(1)).decode().splitlines()
		assert program.wait() == -number, (program.returncode, lines)
		assert (len(lines) == 1) == (number == signal.SIGKILL), lines
	EOF
}

# A signal ends the command only after its last change. If the command is killed, the next one goes on.
interrupted_commands() {
	qdisc four handle 1: fq limit 4444
	before four
	for signal in HUP INT TERM; do
		interrupt $signal setup four
		has_timely four 4
		interrupt $signal teardown four
		expect_restored four
		no_state
	done
	interrupt KILL setup four
	ctl 0 teardown four
	expect_restored four
	no_state
	interrupt KILL setup four
	ctl 0 setup four
	has_timely four 4
	interrupt KILL teardown four
	ctl 0 teardown four
	expect_restored four
	no_state
	# What an administrator does then is not overwritten.
	interrupt KILL setup four
	qdisc four handle 7: codel limit 88
	before four
	ctl 0 teardown four
	says 'changed after the setup: they stay'
	expect_restored four
	no_state
	no_qdisc four
}

bad_input_changes_nothing() {
	before one
	ctl 2 setup
	ctl 2 setup one two
	ctl 2 setup one --fast
	ctl 2 teardown one --force
	ctl 2 -j setup one
	must ip -n h1 link add 'a;b' type dummy
	ctl 1 setup 'a;b'
	says 'has special characters'
	must ip -n h1 link del 'a;b'
	ctl 1 setup nosuch
	says 'no device "nosuch"'
	where="$in_h1 $as_nobody"
	ctl 1 setup one
	says 'needs root'
	where=$in_h1
	expect_restored one
	# State files that are damaged, or that another user could have written, restore nothing.
	ctl 0 setup one
	file=$(ls $state)
	cp "$state/$file" "$work/good"
	# shellcheck disable=SC2016 # sed's last line
	for edit in '$d' '1s/1/2/' 's/^qdisc/qdiscs/' 's/.$//' 's/ ffffffff/ xyz/' 's/ pfifo_fast/ ..\/../'; do
		sed "$edit" "$work/good" >"$state/$file"
		ctl 1 teardown one
		says 'cannot be read: restore the qdiscs with tc'
		has_timely one 1
	done
	cp "$work/good" "$state/$file"
	chmod 777 $state
	ctl 1 teardown one
	says 'must belong to root and be writable by root only'
	chmod 700 $state
	ctl 0 teardown one
	expect_restored one
	no_state
}

devices_down() {
	must ip netns del h1
	must ip netns del h2
}

run_cases devices_up one_queue several_queues filters_stay device_is_down default_qdisc_changes \
	dry_run_changes_nothing twice_is_once default_qdisc_is_timely later_changes_stay \
	configured_qdiscs_are_refused failure_half_way_is_undone advice devices_on_top_of_others \
	congestion_control device_is_registered_again interrupted_commands bad_input_changes_nothing devices_down
