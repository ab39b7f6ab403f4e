#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timely-clockd in a network of test NICs, whose true clocks are known: errors and bounds, steps of
# clocks, lost probes, a NIC that stops to timestamp, a host that lies, a daemon that is killed; and
# On-Ramp with the offsets. The test NICs have clocks of their own; the hosts' system clocks are the
# guest's, so they are equal in truth.
# Topology: h1 to h5, each connected by a pair of test NICs to a bridge in mid.

. "$(dirname "$0")/hw_lib.sh"

clockd=$modules/timely-clockd
hosts="h1 h2 h3 h4 h5"
members=10.7.2.1-10.7.2.5
# ppb: drifts of the NICs' clocks
drift_of() {
	case $1 in
	h1) echo 0 ;;
	h2) echo 20000 ;;
	h3) echo -35000 ;;
	h4) echo 4000 ;;
	h5) echo -1000 ;;
	esac
}

# configuration HOST [LINE]...: write the configuration of a host's daemon
configuration() {
	{
		echo "member $members"
		echo "key 1 $work/key"
		echo "page $work/$1.page"
	} >"$work/$1.conf"
	file=$work/$1.conf
	shift
	for line; do echo "$line"; done >>"$file"
}

# start HOST: start a host's daemon; its process is in $work/HOST.pid, its messages in $work/HOST.log
start() {
	ip netns exec "$1" "$clockd" -f "$work/$1.conf" 2>>"$work/$1.log" &
	echo $! >"$work/$1.pid"
}

# stop HOST [SIGNAL]
stop() {
	read -r pid <"$work/$1.pid"
	kill -"${2:-TERM}" "$pid"
	within_seconds 5 ended "$pid" || fail "the daemon of $1 has not ended"
}

ended() { ! [ -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"; }

stop_all() {
	for host in $hosts; do stop "$host"; done
}

# compare HOST...: set the variables of clockd.py
compare() {
	words=
	for host; do words="$words $host:$(drift_of "$host")"; done
	# shellcheck disable=SC2086 # several words
	(cd "$work" && "$python" -I "$here/clockd.py" "$timelyctl" $words) >"$work/compared" 2>"$work/errors" || {
		say_lines <"$work/errors"
		fail "clockd.py failed"
	}
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/compared"
	[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/compared"
}

# counter HOST NAME: set $counter to a counter of a daemon
counter() {
	counter=$("$timelyctl" -j clock page "$work/$1.page" | sed "s/.*\"$2\":\([0-9]*\).*/\1/")
}

# says HOST TEXT: the daemon's messages include a line that matches TEXT
says() {
	grep -q -- "$2" "$work/$1.log" || {
		say_lines <"$work/$1.log"
		fail "the daemon of $1 does not say: $2"
	}
}

# all_good HOST...: all hosts know each other's clock, and errors are within the bounds
all_good() {
	compare "$@"
	[ "$good" -eq $(($# * ($# - 1))) ] || for host; do
		"$timelyctl" clock page "$work/$host.page" | say_lines
		say_lines <"$work/$host.log"
	done
	pairs=$(($# * ($# - 1)))
	expect estimates -eq $pairs
	expect good -eq $pairs
	expect times -eq $#
	expect beyond -eq 0
	expect system_beyond -eq 0
}

network() {
	must insmod "$modules/hwnic.ko"
	new_host mid
	must ip -n mid link add br0 type bridge
	must ip -n mid link set br0 up
	number=0
	for host in $hosts; do
		number=$((number + 1))
		new_host "$host"
		cable "$host" eth0 mid "$host"
		must in_ns mid ethtool -C "$host" rx-usecs 0 rx-frames 1
		must ip -n mid link set "$host" master br0 up
		address "$host" eth0 $number
		knob "$host" eth0 phc_drift_ppb "$(drift_of "$host")"
	done
	(umask 077 && "$timelyctl" key generate >"$work/key")
}

hardware_timestamps() {
	for host in $hosts; do
		configuration "$host"
		start "$host"
	done
	sleep 15
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	expect error_max -le 50
	expect bound_max -le 200
	expect common_spread -le 50
	says h1 'timestamped by the clock of eth0'
	"$timelyctl" clock page "$work/h1.page" >"$work/shown"
	grep -q '^10.7.2.2 *good *hardware' "$work/shown" || fail "h1 does not show h2: $(cat "$work/shown")"
}

# metric TEXT: a line of `timelyctl metrics` is exactly TEXT
metric() {
	grep -qxF "$1" "$work/metrics" || fail "no metric $1: $(grep timely_clock "$work/metrics")"
}

# with_page HOST COMMAND...: run a command where timelyctl finds the clock page of this host
with_page() {
	mkdir -p /run/timely-clockd
	ln -s "$work/$1.page" /run/timely-clockd/clock
	shift
	"$@"
	rm -r /run/timely-clockd
}

# read_metrics HOST: `timelyctl metrics` with the clock page of this host
read_metrics() {
	with_page "$1" must "$timelyctl" metrics output "$work/metrics"
}

# doctor HOST CHECK TEXT: `timelyctl doctor` with the clock page of this host finds this
doctor() {
	with_page "$1" in_ns "$1" "$timelyctl" doctor >"$work/found"
	grep -q "^[a-z]*: $2: .*$3" "$work/found" || {
		say_lines <"$work/found"
		fail "doctor does not find $2: $3"
	}
}

metrics() {
	read_metrics h1
	metric 'timely_clock_running 1'
	metric 'timely_clock_peer_good{peer="10.7.2.2"} 1'
	metric 'timely_clock_bad_tag_total 0'
	# The common time has the rates of the NICs' clocks that were there first: -35 to 20 ppm.
	grep -qE '^timely_clock_system_offset_seconds -?0\.000[0-9]*$' "$work/metrics" ||
		fail "no system_offset_seconds: $(grep timely_clock "$work/metrics")"
	for name in bound_seconds peer_bound_seconds peer_surplus_seconds; do
		grep -qE "^timely_clock_$name(\{peer=\"10.7.2.5\"\})? -?0\.0000[0-9]*$" "$work/metrics" ||
			fail "no $name: $(grep timely_clock "$work/metrics")"
	done
	"$timelyctl" clock watch interval 200 duration 1 page "$work/h1.page" >"$work/shown" || fail "watch"
	[ "$(grep -c '^10.7.2.2 ' "$work/shown")" -eq 5 ] || fail "watch: $(cat "$work/shown")"
}

lost_probes() {
	for host in $hosts; do must tc -n "$host" qdisc replace dev eth0 root netem loss 20%; done
	sleep 8
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	counter h1 pairs_lost
	expect counter -gt 20
	for host in $hosts; do must tc -n "$host" qdisc del dev eth0 root; done
}

system_clock_step() {
	must date -u -s "+1 hour"
	sleep 3
	for host in $hosts; do
		counter "$host" system_steps
		expect counter -eq 1
		says "$host" 'the system clock was stepped by +3[56]'
	done
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	expect error_max -le 50
	must date -u -s "-1 hour"
	sleep 1
}

# A step of 2 ms could be slewing, so no daemon notices it. Until the rate of the system clock is right
# again the bounds of the offsets between system clocks contain the step, of which the hosts do not learn
# in the same moment.
small_system_clock_step() {
	counter h1 system_steps
	steps=$counter
	must "$python" -I -c 'import time
time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_REALTIME) + 2_000_000)'
	for time in 1 2 3 4 5; do
		sleep 0.5
		# shellcheck disable=SC2086 # several words
		compare $hosts
		expect system_beyond -eq 0 "reading $time after the step, errors up to $system_max ns"
	done
	counter h1 system_steps
	expect counter -eq "$steps"
	sleep 3
	# shellcheck disable=SC2086 # several words
	compare $hosts
	expect system_beyond -eq 0
	expect system_bound_max -le 2000
}

nic_clock_step() {
	knob h2 eth0 phc_step_ns 3600000000000
	sleep 15
	counter h2 nic_steps
	expect counter -eq 1
	says h2 'the clock of eth0 was stepped'
	counter h1 peer_restarts
	expect counter -eq 1
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	expect error_max -le 50
}

# width HOST: set $width to the latest minus the earliest time that programs of a host read, ns
width() {
	"$timelyctl" -j clock now page "$work/$1.page" >"$work/now" || fail "$1 has no time"
	earliest=$(sed 's/.*"earliest_ns":\([0-9]*\).*/\1/' "$work/now")
	latest=$(sed 's/.*"latest_ns":\([0-9]*\).*/\1/' "$work/now")
	width=$((latest - earliest))
}

# h2's NIC can no longer timestamp all packets, and later can.
nic_lost_and_back() {
	timestamps h2 eth0 none
	knob h2 eth0 stamp_all 0
	sleep 15
	counter h2 nic_changes
	expect counter -eq 1
	says h2 'eth0 is gone, was replaced, or does not timestamp any more'
	compare h1 h3 h4 h5
	expect good -eq 16
	in_ns h2 "$timelyctl" clock page "$work/h2.page" | grep -q 'timestamped by the kernel' ||
		fail "h2 does not use the kernel's timestamps"
	knob h2 eth0 stamp_all 1
	sleep 25
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	expect error_max -le 50
}

# second_nic NAME: give h2 a second test NIC, eth1, that is connected to NAME in mid
second_nic() {
	cable h2 eth1 mid "$1"
	must in_ns mid ethtool -C "$1" rx-usecs 0 rx-frames 1
	must ip -n mid link set "$1" master br0 up
	knob h2 eth1 phc_drift_ppb "$(drift_of h2)"
}

# rx_filter DEVICE: set $filter to the packets of h2 that get hardware timestamps: 0 for none, 1 for all
rx_filter() {
	filter=$(in_ns h2 "$python" -I -c 'import ctypes, fcntl, socket, struct, sys
config = ctypes.create_string_buffer(12)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    fcntl.ioctl(sock, 0x89b1, struct.pack("16sP16x", sys.argv[1].encode(), ctypes.addressof(config)))
print(struct.unpack("iii", config)[2])' "$1")
}

# h2's address moves to a NIC with another name, while the former NIC stays.
address_moves() {
	second_nic h2b
	must ip -n h2 address del 10.7.2.2/24 dev eth0
	address h2 eth1 2
	sleep 15
	says h2 'is on eth1 now, and no longer on eth0'
	in_ns h2 "$timelyctl" clock page "$work/h2.page" | grep -q 'timestamped by eth1' || fail "h2 does not use eth1"
	rx_filter eth0
	expect filter -eq 0 "timestamps of the former NIC"
	must ip -n h2 link del eth0
	must ip -n h2 link set eth1 down
	must ip -n h2 link set eth1 name eth0
	address_again
}

# Another NIC gets the name of h2's NIC. What is restored is the configuration of the former NIC, not that
# of the other, which had timestamps before the daemon used it.
nic_replaced() {
	second_nic h2c
	timestamps h2 eth1 all
	must ip -n h2 -batch - <<-EOF
		address del 10.7.2.2/24 dev eth0
		link set eth0 down
		link set eth0 name old0
		link set eth1 name eth0
	EOF
	address_again
	rx_filter old0
	expect filter -eq 0 "timestamps of the former NIC"
	stop h2
	rx_filter eth0
	expect filter -eq 1 "timestamps that were on before the daemon"
	must ip -n h2 link del old0
	start h2
}

# h2's eth0 is up and has its address, with a label, which the daemon notices.
address_again() {
	must ip -n h2 address replace 10.7.2.2/24 dev eth0 label eth0:1
	must ip -n h2 address replace fd07:2::2/64 dev eth0 nodad
	must ip -n h2 link set eth0 up
	sleep 25
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	expect error_max -le 50
}

killed_daemon() {
	stop h3 KILL
	sleep 1
	width h3
	first=$width
	sleep 8
	width h3
	say "width of the time 1 s after the end: $first ns, after 9 s: $width ns"
	expect first -lt 10000
	expect width -gt 1000000
	says h1 'peer 10.7.2.3 does not answer'
	all_good_without_h3
	refused "$timelyctl" clock page "$work/h3.page"
	doctor h3 clock-daemon 'timely-clockd has ended'
	doctor h1 clock-daemon 'does not know the clock of 10.7.2.3: the peer does not answer'
	read_metrics h3
	metric 'timely_clock_running 0'
	metric 'timely_clock_bad_tag_total 0'
	! grep -E "timely_clock_(bound|peer_(good|bound|surplus|system))" "$work/metrics" || fail "metrics of a daemon that is dead"
	start h3
	sleep 15
	# shellcheck disable=SC2086 # several words
	all_good $hosts
}

all_good_without_h3() {
	compare h1 h2 h4 h5
	expect good -eq 12
}

reload_configuration() {
	configuration h4 "degree 2"
	reload h4
	"$timelyctl" clock page "$work/h4.page" | grep -q ' 2 peers of 5 members' || fail "h4 has not 2 peers"
	configuration h4 "frobnicate 1"
	reload h4
	says h4 'line 4: unknown word "frobnicate"'
	says h4 'nothing was changed'
	"$timelyctl" clock page "$work/h4.page" | grep -q ' 2 peers of 5 members' || fail "h4 has not 2 peers any more"
	configuration h4
	reload h4
	sleep 15
	# shellcheck disable=SC2086 # several words
	all_good $hosts
}

# Members by name. A reload does not lose them while they are resolved again.
names() {
	printf '127.0.0.1 localhost\n' >"$work/hosts"
	for number in 1 2 3 4 5; do echo "10.7.2.$number clock$number" >>"$work/hosts"; done
	must mount --bind "$work/hosts" /etc/hosts
	configuration h4
	sed -i "s/^member .*/member clock1\nmember clock2\nmember clock3\nmember clock4\nmember clock5/" "$work/h4.conf"
	# Processes in a network namespace have their own view of mounts, as it was when they started.
	stop h4
	start h4
	sleep 15
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	counter h1 peer_restarts
	restarts=$counter
	reload h4
	sleep 5
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	counter h1 peer_restarts
	expect counter -eq "$restarts" "h4 has left at its reload"
	configuration h4
	reload h4
	must umount /etc/hosts
}

# A host that was a reference, and is none any more, averages its time again.
former_reference() {
	configuration h5 "reference yes"
	reload h5
	sleep 5
	configuration h5
	reload h5
	sleep 40
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	expect common_spread -le 50
}

# reload HOST
reload() {
	read -r pid <"$work/$1.pid"
	kill -HUP "$pid"
	sleep 2
}

# Packets of h1's address that the daemon of h1 has not sent: garbage of all lengths, and a message with
# a wrong tag. A host that is no member, mid, sends too.
hostile_packets() {
	must in_ns h1 "$python" -I -c '
import random, socket, struct
random.seed(1)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for length in range(0, 300):
        sock.sendto(random.randbytes(length), ("10.7.2.2", 20305))
    message = struct.pack("!HBBBBHQQQ", 0x5443, 1, 0, 1, 0, 200, 5, 6, 7).ljust(200, bytes(1))
    for _ in range(50):
        sock.sendto(message, ("10.7.2.2", 20305))
    sock.sendto(message[:4] + bytes([9]) + message[5:], ("10.7.2.2", 20305))'
	must ip -n mid address add 10.7.2.99/24 dev br0
	must in_ns mid "$python" -I -c '
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for _ in range(7):
        sock.sendto(b"x", ("10.7.2.2", 20305))'
	sleep 2
	for expected in malformed:300 bad_tag:50 no_key:1 stranger:7; do
		counter h2 "${expected%:*}"
		expect counter -eq "${expected#*:}" "${expected%:*}"
	done
	# shellcheck disable=SC2086 # several words
	all_good $hosts
}

# A host that is no member, mid, sends 40 000 packets per second for 9 s, three times as many as the daemon
# of h2 takes. h2 goes on to receive most of the 576 probes of its four peers on idle paths, without the
# filter three of ten, and timestamps of its own probes.
flood() {
	counter h2 received
	received=$counter
	counter h2 no_tx_timestamp
	untimed=$counter
	must in_ns mid "$python" -I -c '
import socket, time
until = time.monotonic() + 9
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.connect(("10.7.2.2", 20305))
    while time.monotonic() < until:
        for _ in range(40):
            sock.send(bytes(200))
        time.sleep(.001)'
	counter h2 received
	received=$((counter - received))
	counter h2 no_tx_timestamp
	untimed=$((counter - untimed))
	say "$received probes received, $untimed sent without a timestamp"
	expect received -ge 450
	expect untimed -le 100
	# shellcheck disable=SC2086 # several words
	all_good $hosts
	says h2 'more packets come to UDP port 20305 than can be counted'
}

# poll() fails if more files are given to it than a process may have open. The service manager starts a
# daemon again only after a failure.
daemon_that_cannot_wait() {
	stop h5
	start h5
	sleep 1
	read -r pid <"$work/h5.pid"
	must prlimit --pid "$pid" --nofile=1:1
	wait "$pid"
	status=$?
	expect status -eq 1 "exit status"
	says h5 'waiting for events is not possible: Invalid argument'
	start h5
}

lying_host() {
	stop h5
	configuration h5 "test-lie 40000"
	start h5
	sleep 40
	compare h1 h2 h3 h4
	expect good -eq 12
	expect excluded -eq 4
	says h1 'peer 10.7.2.5 is excluded'
	expect common_spread -le 50
}

# h5 reports arrivals before the departures: its timestamps contradict each other in each round. That
# does not fill the logs of the others.
impossible_lies() {
	before=$(grep -c 'timely-clockd: peer 10.7.2.5' "$work/h1.log")
	configuration h5 "test-lie -300000"
	reload h5
	sleep 20
	counter h1 overlaps
	expect counter -ge 40
	lines=$(($(grep -c 'timely-clockd: peer 10.7.2.5' "$work/h1.log") - before))
	say "$counter contradictions, $lines lines"
	expect lines -le 11
	says h1 'peer 10.7.2.5: its state changes often'
}

# restart_all LINE...: start all daemons again, with these lines in their configurations
restart_all() {
	stop_all
	for host in $hosts; do
		configuration "$host" "$@"
		: >"$work/$host.log"
		start "$host"
	done
	sleep 15
}

# reference HOST: set $reference to the reference time minus the system clock, as a host sees it, $error to
# its bound, ns, and $used to the number of references that are used
reference() {
	"$timelyctl" -j clock page "$work/$1.page" | "$python" -I -c 'import json, sys
page = json.load(sys.stdin)
print("used", page["references_used"], sep="=")
print("reference", page["system_offset_ns"] + page.get("reference_offset_ns", 0), sep="=")
print("error", page["bound_ns"] + page.get("reference_bound_ns", 0), sep="=")' >"$work/reference"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/reference"
}

# all_follow NS COUNT: all hosts see that the system clock of the references, of which COUNT are used, is
# ahead of their own by NS. In truth the hosts have one system clock.
all_follow() {
	for host in $hosts; do
		reference "$host"
		say "$host: $used references are used, $reference ns ahead, known to $error ns"
		expect used -eq "$2"
		expect reference -le $(($1 + error))
		expect reference -ge $(($1 - error))
		expect error -le 100000
	done
	# shellcheck disable=SC2086 # several words
	compare $hosts
	expect good -eq 20
	expect beyond -eq 0
	expect times -eq 5
	expect error_max -le 50
	expect common_spread -le 50
}

# h5 is the reference of all hosts, and starts after them. Its system clock is 5 ms ahead, and is then stepped
# to 3 ms behind: the others do not exclude it, and agree as before.
named_reference() {
	stop_all
	for host in $hosts; do
		configuration "$host" "reference 10.7.2.5"
		: >"$work/$host.log"
	done
	configuration h5 "reference 10.7.2.5" "test-clock 5000000"
	for host in h1 h2 h3 h4; do start "$host"; done
	sleep 12
	start h5
	sleep 18
	all_follow 5000000 1
	configuration h5 "reference 10.7.2.5" "test-clock -3000000"
	reload h5
	sleep 1
	all_follow -3000000 1
	for host in $hosts; do
		! grep 'is excluded' "$work/$host.log" | grep 10.7.2.5 || fail "$host has excluded the reference"
	done
}

# Of three references one is wrong by 5 s.
wrong_reference() {
	set -- "reference 10.7.2.3" "reference 10.7.2.4" "reference 10.7.2.5"
	for host in $hosts; do configuration "$host" "$@"; done
	configuration h5 "$@" "test-clock 5000000000"
	for host in $hosts; do
		: >"$work/$host.log"
		reload "$host"
	done
	sleep 10
	all_follow 0 2
	for host in $hosts; do says "$host" 'reference 10.7.2.5 contradicts the other references'; done
	for host in $hosts; do
		configuration "$host"
		reload "$host"
	done
}

# With IPv6.
kernel_timestamps() {
	members=fd07:2::1-fd07:2::5
	restart_all "clock system"
	# shellcheck disable=SC2086 # several words
	compare $hosts
	expect good -eq 20
	expect times -eq 5
	expect system_max -le 3000
	expect system_beyond -eq 0
}

# On-Ramp's flow from h1 to h2 gets the offset of h2's system clock, which is 0 in truth; the offset
# is taken back when the daemon of h2 has ended.
onramp_gets_offsets() {
	must insmod "$modules/timely.ko"
	must insmod "$modules/sch_timely.ko"
	must in_ns h1 tc qdisc replace dev eth0 root timely onramp 50us owd absolute
	ip netns exec h1 "$python" -I -c '
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flow:
    flow.connect(("10.7.2.2", 9))
    for _ in range(1200):
        try:
            flow.send(b"data")
        except ConnectionRefusedError:
            pass
        time.sleep(.05)' &
	flow=$!
	restart_all "clock system" "onramp yes"
	in_ns h1 "$timelyctl" -j onramp peers >"$work/peers"
	grep -qE '"to":"10.7.2.2".*"clock":.*"valid":true' "$work/peers" || fail "no offset: $(cat "$work/peers")"
	offset=$(sed 's/.*"clock":{"offset_ns":\(-*[0-9]*\).*/\1/' "$work/peers")
	expect offset -ge -3000
	expect offset -le 3000
	stop h2 KILL
	sleep 8
	in_ns h1 "$timelyctl" -j onramp peers >"$work/peers"
	grep -qE '"to":"10.7.2.2".*"clock":.*"valid":false' "$work/peers" ||
		fail "the offset is still used: $(cat "$work/peers")"
	start h2
	# The module is loaded again: it has another netlink family, and its flow gets the offset, too.
	must in_ns h1 tc qdisc del dev eth0 root
	must rmmod sch_timely timely
	must insmod "$modules/timely.ko"
	must insmod "$modules/sch_timely.ko"
	must in_ns h1 tc qdisc replace dev eth0 root timely onramp 50us owd absolute
	sleep 15
	in_ns h1 "$timelyctl" -j onramp peers >"$work/peers"
	grep -qE '"to":"10.7.2.2".*"clock":.*"valid":true' "$work/peers" ||
		fail "no offset after the module was loaded again: $(cat "$work/peers")"
	kill $flow
	wait $flow 2>/dev/null
	must in_ns h1 tc qdisc del dev eth0 root
	! grep 'does not take' "$work"/h*.log || fail "module timely has refused offsets"
}

# onramp_counter NAME: set $counter to a counter of On-Ramp of h1
onramp_counter() {
	counter=$(in_ns h1 "$timelyctl" -j onramp | sed "s/.*\"$1\":\([0-9]*\).*/\1/")
}

# disturbed NAME COMMAND...: a clock goes wrong while h1 sends to h2; within 9 s the counter NAME of h1's
# On-Ramp has grown
disturbed() {
	name=$1
	shift
	onramp_counter "$name"
	before=$counter
	must "$@"
	sleep 9
	onramp_counter "$name"
	[ "$counter" -gt "$before" ] || fail "$name has not grown after: $*"
}

# A flow from h1 to h2 in the mode absolute, with a packet each millisecond and real OR-ACKs, while clocks go
# wrong: the receiver's clock is stepped by an hour up and down and by 300 us, of which no daemon knows; all
# system clocks are; the receiver's daemon dies, and the sender's. On-Ramp never holds a packet back for more
# than 10 ms.
onramp_never_waits_long() {
	must insmod "$modules/timely_acker.ko"
	must in_ns h1 tc qdisc replace dev eth0 root timely onramp 50us owd absolute
	for host in h1 h2; do
		must in_ns $host "$timelyctl" key add 1 "$work/key"
		must in_ns $host "$timelyctl" key use 1
	done
	must in_ns h2 "$timelyctl" acker add any
	cat >"$work/flow.py" <<-'END'
		import socket, sys, time
		sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		if sys.argv[1] == "send":
		    sock.connect(("10.7.2.2", 9))
		    for _ in range(90000):
		        try:
		            sock.send(bytes(1000))
		        except ConnectionRefusedError:
		            pass
		        time.sleep(.001)
		    sys.exit()
		sock.bind(("10.7.2.2", 9))
		sock.settimeout(5)
		times = []
		try:
		    while True:
		        sock.recv(2000)
		        times.append(time.monotonic_ns())
		except TimeoutError:
		    pass
		longest = max(b - a for a, b in zip(times, times[1:]))
		print(f"packets={len(times)}\nlongest_us={longest // 1000}")
	END
	ip netns exec h2 "$python" -I "$work/flow.py" receive >"$work/flow" &
	receiver=$!
	sleep 1
	ip netns exec h1 "$python" -I "$work/flow.py" send &
	sender=$!
	sleep 3
	onramp_counter received
	expect counter -gt 1000 "OR-ACKs"
	disturbed bad_time in_ns h2 "$timelyctl" acker set test-clock-offset 300000
	must in_ns h2 "$timelyctl" acker set test-clock-offset 0
	sleep 9
	disturbed bad_time in_ns h2 "$timelyctl" acker set test-clock-offset 3600000000000
	disturbed bad_time in_ns h2 "$timelyctl" acker set test-clock-offset -3600000000000
	must in_ns h2 "$timelyctl" acker set test-clock-offset 0
	sleep 9
	disturbed clock_steps date -u -s "+1 hour"
	disturbed clock_steps date -u -s "-1 hour"
	disturbed no_offset stop h2 KILL
	start h2
	sleep 6
	disturbed no_offset stop h1 KILL
	wait $sender || fail "the sender has failed"
	wait $receiver || fail "the receiver has failed"
	# shellcheck disable=SC1091 # KEY=NUMBER lines
	. "$work/flow"
	say "$packets packets, longest wait $longest_us us"
	expect packets -gt 70000
	expect longest_us -le 11000 "a packet each millisecond, and at most 10 ms"
	start h1
	must in_ns h1 tc qdisc del dev eth0 root
	must rmmod timely_acker
}

# A connection of timely from h1 to h2 sends with 300 Mb/s for two seconds.
stream() {
	ip netns exec h2 "$python" -I -c '
import socket
with socket.create_server(("10.7.2.2", 9000)) as server:
    with server.accept()[0] as connection:
        while connection.recv(1 << 20):
            pass' &
	server=$!
	sleep 0.5
	must in_ns h1 "$python" -I -c '
import socket, time
with socket.socket() as connection:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"timely")
    connection.setsockopt(socket.SOL_SOCKET, 47, 37_500_000)     # SO_MAX_PACING_RATE
    connection.connect(("10.7.2.2", 9000))
    until = time.monotonic() + 2
    while time.monotonic() < until:
        connection.sendall(bytes(1 << 16))'
	wait $server
}

# rtt_counter NAME: set $counter to a counter of RTTs of h1
rtt_counter() {
	counter=$(in_ns h1 "$timelyctl" -j rtt | sed "s/.*\"$1\":\([0-9]*\).*/\1/")
}

# Base-RTT probes of h1 start by the common time. When the daemon has been killed they start by the system
# clock again, and this is counted.
tcp_timely_gets_common_time() {
	must insmod "$modules/tcp_timely.ko"
	restart_all "tcp-timely yes"
	stream
	rtt_counter probes_common
	expect counter -ge 5
	rtt_counter probes_unsynced
	expect counter -eq 0
	stop h1 KILL
	sleep 6
	stream
	rtt_counter probes_unsynced
	expect counter -ge 5
	doctor h1 probes-unsynced 'started by the real-time clock'
	start h1
	must rmmod tcp_timely sch_timely timely
	! grep 'does not take' "$work"/h*.log || fail "module timely has refused the common time"
}

# chronyc_shows FIELD: set $shown to a field of chrony's only source, as `chronyc -c sources` prints them
chronyc_shows() {
	line=$("$modules/chronyc" -c -h "$work/chrony/cmd" sources) || return 1
	shown=$(echo "$line" | cut -d, -f"$1")
}

selected() { chronyc_shows 1,2 && [ "$shown" = "#,*" ]; }

# sees SECONDS: chrony's last sample is SECONDS. Field 9 is the last offset as measured, positive if the
# system clock is ahead of the source.
sees() { chronyc_shows 9 && [ "${shown#"$1"}" != "$shown" ]; }

# The real chronyd, with the common time of h1 as its only source. The system clock is then set 3 ms
# ahead of the common time, and chronyd steers it back. With the kernel's timestamps, because the clocks
# of test NICs follow CLOCK_MONOTONIC, which chronyd slews.
chronyd_selects_common_time() {
	restart_all "clock system"
	configuration h1 "clock system" "chrony $work/chrony.sock"
	mkdir -m 750 "$work/chrony"
	cat >"$work/chrony.conf" <<-END
		refclock SOCK $work/chrony.sock refid TIME poll 0 filter 1
		port 0
		cmdport 0
		bindcmdaddress $work/chrony/cmd
		pidfile $work/chrony/pid
	END
	"$modules/chronyd" -n -u root -f "$work/chrony.conf" 2>"$work/chronyd.log" &
	chronyd=$!
	sleep 1
	reload h1
	within_seconds 20 selected || {
		say_lines <"$work/chronyd.log"
		say_lines <"$work/h1.log"
		fail "chrony has not selected the common time: $line"
	}
	within_seconds 20 sees 0.00000 || fail "chrony sees an offset of $shown s"
	counter h1 common_steps
	steps=$counter
	must "$python" -I -c 'import time
time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_REALTIME) + 3_000_000)'
	within_seconds 5 sees 0.003000 || fail "chrony sees an offset of $shown s, not 3.000 ms"
	selected || fail "chrony does not use the common time any more: $shown"
	sleep 15
	{ sees 0.00000 || sees -0.00000; } || fail "chrony has not steered the system clock to the common time: $line"
	counter h1 refclock_samples
	expect counter -ge 10
	counter h1 common_steps
	expect counter -eq "$steps" "the common time does not follow the system clock"
	kill $chronyd
	wait $chronyd
}

daemons_end() {
	stop_all
	"$timelyctl" clock page "$work/h1.page" | grep -q 'timely-clockd is stopped' || fail "the page does not say that the daemon has ended"
	for host in $hosts mid; do must ip netns del "$host"; done
	nics_down
	must rmmod hwnic
}

run_cases network hardware_timestamps metrics lost_probes system_clock_step \
	small_system_clock_step nic_clock_step nic_lost_and_back address_moves nic_replaced \
	killed_daemon reload_configuration names former_reference hostile_packets flood \
	daemon_that_cannot_wait lying_host impossible_lies named_reference wrong_reference \
	kernel_timestamps onramp_gets_offsets onramp_never_waits_long tcp_timely_gets_common_time \
	chronyd_selects_common_time daemons_end
