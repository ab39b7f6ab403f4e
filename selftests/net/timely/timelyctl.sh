#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timelyctl's commands for NICs and counters, and the netlink family "timely" that they use:
# devices without hardware timestamps, all settings of the test NIC, the module loaded or not,
# privileged and unprivileged users; and the netlink family without timelyctl, also fuzzed.
# Topology: h1 == h2, test NICs (drivers/net/hwnic).
#
# tools/timelyctl/test/ tests timelyctl with answers of drivers that the test NIC does not give.
# onramp_ctl.sh tests timelyctl's commands for On-Ramp.

. "$(dirname "$0")/ctl_lib.sh"

need_tools ethtool
genl="$python -I $here/timelyctl_genl.py"

# shows DEVICE EXPRESSION: json EXPRESSION must be true for "timelyctl nic show DEVICE"
shows() {
	ctl 0 -j nic show "$1"
	json "$2"
}

# ---- devices ----

# hwtstamp DEVICE [RX TX]: read or set the device's hardware timestamp settings without timelyctl;
# print the receive filter and the type of transmit timestamps
hwtstamp() {
	# shellcheck disable=SC2086 # a command
	${where-} "$python" -I - "$@" <<-'EOF'
		import array, fcntl, socket, struct, sys
		# SIOCGHWTSTAMP, or with RX and TX SIOCSHWTSTAMP
		config = array.array("i", [0, *(int(word) for word in reversed(sys.argv[2:]))])
		config.extend([0] * (3 - len(config)))
		request = struct.pack("16sQ16x", sys.argv[1].encode(), config.buffer_info()[0])
		fcntl.ioctl(socket.socket(), 0x89b0 if len(sys.argv) > 2 else 0x89b1, request)
		print("rx", config[2], "tx", config[1])
	EOF
}

# expect_hwtstamp DEVICE "rx RX tx TX"
expect_hwtstamp() {
	now=$(hwtstamp "$1") || fail "the filter of $1 cannot be read"
	[ "$now" = "$2" ] || fail "$1: $now, expected $2"
}

# HWTSTAMP_FILTER_NONE, _ALL and _PTP_V2_EVENT of linux/net_tstamp.h
none=0
all=1
ptp=12

# h1 and h2, each with a test NIC eth0, connected by a cable
nics_up() {
	# A case that has failed may have left its NICs and modules.
	! is_loaded hwnic || nics_down
	unload_timely
	must insmod "$modules/hwnic.ko"
	must ip -batch - <<-EOF
		netns add h1
		netns add h2
		link add hw0 type hwnic
		link set hw0 netns h1 name eth0
		link set hw0p netns h2 name eth0
	EOF
	for n in 1 2; do
		must ip -n h$n -batch - <<-EOF
			address add 10.7.0.$n/24 dev eth0
			link set eth0 up
		EOF
	done
	# An interrupt for each packet of data is a lot of work for the guest.
	must $in_h2 ethtool -C eth0 rx-usecs 8 rx-frames 0
	where=$in_h1
}

nics_down() {
	must ip -all netns del
	within_seconds 10 rmmod hwnic || fail "hwnic cannot be unloaded"
}

# knob NAME VALUE: set a setting of h1's NIC, see drivers/net/hwnic/README.md
knob() {
	$in_h1 sh -c "echo $2 >/sys/class/net/eth0/hwnic/$1" || fail "the NIC refuses $1 = $2"
}

# send_for SECONDS: a connection of timely from h1 sends to h2
send_for() {
	cat >"$work/flow.py" <<-'EOF'
		import socket, sys, time
		if sys.argv[1] == "receive":
		    with socket.create_server(("", 5000)) as server:
		        open(sys.argv[2], "w").close()
		        peer, _ = server.accept()
		    while peer.recv(1 << 20):
		        pass
		else:
		    sock = socket.socket()
		    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"timely")
		    sock.connect(("10.7.0.2", 5000))
		    until = time.monotonic() + float(sys.argv[2])
		    while time.monotonic() < until:
		        sock.sendall(bytes(1 << 16))
	EOF
	rm -f "$work/listens"
	$in_h2 "$python" -I "$work/flow.py" receive "$work/listens" &
	receiver=$!
	within_seconds 10 test -e "$work/listens" || fail "the receiver does not listen"
	must $in_h1 "$python" -I "$work/flow.py" send "$1"
	wait $receiver || fail "the receiver failed"
}

# counter NAME: print a counter of timelyctl rtt
counter() {
	ctl 0 -j rtt
	"$python" -I -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' \
		"$work/out" "$1"
}

# ---- without hardware timestamps, without the module ----

devices_without_hardware_timestamps() {
	must ip netns add h1
	must ip -n h1 -batch - <<-EOF
		link add v0 type veth peer name v1
		link add d0 type dummy
	EOF
	where=$in_h1
	for dev in v0 d0 lo; do
		shows $dev 'n["can_stamp"] in ("software", "none") and n["rx_filter"] is None'
		json 'n["hardware_rtt"]["state"] == "cannot" and n["hardware_rtt"]["uncertainty_ns"] is None'
		ctl 0 nic show $dev
		says 'not possible: this device does not timestamp in hardware'
		ctl 3 nic enable $dev
		says "$dev does not timestamp received packets in hardware"
		ctl 0 nic disable $dev
	done
	ctl 0 nic
	says 'no NIC in this network namespace'
	ctl 0 -j nic
	json 'all == []'
	ctl 1 nic enable nosuch0
	says 'no device "nosuch0"'
	ctl 1 nic show d0 nosuch0
	says 'd0: '
	# A device name with characters that JSON must escape and a terminal must not get.
	odd=$(printf 'a"\\\033\303\244\377')
	must ip -n h1 link set d0 name "$odd"
	shows "$odd" 'n["ifname"] == "a\"\\\x1b\xe4\xff"'
	ctl 0 nic show "$odd"
	says '^a"\\????:'
	must ip netns del h1
}

without_the_module() {
	nics_up
	ctl 1 rtt
	says 'module timely is not loaded: modprobe tcp_timely'
	ctl 1 nic set eth0 hardware on
	says 'module timely is not loaded'
	shows eth0 'n["hardware_rtt"]["state"] == "not-enabled"'
	ctl 0 nic enable eth0
	shows eth0 'n["hardware_rtt"]["state"] == "no-module"'
	ctl 0 nic
	says 'module timely not loaded: modprobe tcp_timely'
	nics_down
}

# ---- the NIC ----

shows_the_nic() {
	nics_up
	ctl 0 -j nic
	json 'len(all) == 1 and n["ifname"] == "eth0" and n["kind"] == "hwnic" and n["up"]'
	json 'n["can_stamp"] == "hardware-all" and n["rx_filter"] == "none" and n["tx_type"] == "off"'
	json 'n["link_speed_mbps"] == 10000 and n["ptp_clock"] >= 0'
	json '[n[k] for k in ("gro", "tso", "lro", "gro_hw")] == [True, True, False, False]'
	$in_h1 ethtool -T eth0 >"$work/ethtool"
	phc=$(sed -n 's/^PTP Hardware Clock: //p; s/^Hardware timestamp provider index: //p' "$work/ethtool")
	json "n['ptp_clock'] == $phc"
	must $in_h1 ethtool -s eth0 speed 25000
	must $in_h1 ethtool -C eth0 rx-usecs 50 rx-frames 32
	must $in_h1 ethtool -K eth0 gro off tso off
	shows eth0 'n["link_speed_mbps"] == 25000 and n["rx_coalesce_usecs"] == 50 and n["rx_coalesce_frames"] == 32'
	json '[n[k] for k in ("gro", "tso")] == [False, False] and len(n["hints"]) == 1'
	ctl 0 nic
	says 'interrupt after 50 us or 32 packets'
	says 'link rate       25 Gb/s'
	must ip -n h1 link set eth0 down
	must ip -n h1 link set eth0 name lan7
	shows lan7 'n["ifname"] == "lan7" and not n["up"]'
	nics_down
}

enable_and_disable() {
	nics_up
	timestamped_before=$($in_h1 ethtool -S eth0 | sed -n 's/.*rx_stamped: //p')
	expect timestamped_before -eq 0
	ctl 0 nic enable eth0
	says 'all received packets are timestamped now (rx was none; tx is off as before)'
	expect_hwtstamp eth0 "rx $all tx 0"
	must $in_h2 "$python" -I -c 'import socket
sock = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(10): sock.sendto(b"x", ("10.7.0.1", 9))'
	sleep 0.1
	timestamped_now=$($in_h1 ethtool -S eth0 | sed -n 's/.*rx_stamped: //p')
	expect timestamped_now -ge 10
	ctl 0 nic enable eth0
	says 'timestamped already'
	ctl 0 nic disable eth0
	expect_hwtstamp eth0 "rx $none tx 0"
	ctl 0 nic disable eth0
	says 'already'
	# The settings of a PTP program
	must hwtstamp eth0 $ptp 1
	shows eth0 'n["rx_filter"] == "ptpv2-event" and n["tx_type"] == "on"'
	ctl 0 nic disable eth0
	says "rx ptpv2-event is a PTP program's filter"
	expect_hwtstamp eth0 "rx $ptp tx 1"
	ctl 0 nic enable eth0
	says 'rx was ptpv2-event; tx is on as before'
	expect_hwtstamp eth0 "rx $all tx 1"
	ctl 0 nic disable eth0
	says 'restart it'
	expect_hwtstamp eth0 "rx $none tx 1"
	nics_down
}

ptp_only() {
	nics_up
	knob stamp_all 0
	shows eth0 'n["can_stamp"] == "hardware-ptp" and n["hardware_rtt"]["state"] == "cannot"'
	for before in $none $ptp; do
		must hwtstamp eth0 $before 1
		ctl 3 nic enable eth0
		says 'timestamps PTP packets only'
		says 'Nothing was changed'
		expect_hwtstamp eth0 "rx $before tx 1"
	done
	nics_down
}

devices_on_top() {
	nics_up
	must ip link add hw1 type hwnic
	must ip link set hw1 netns h1 name eth1
	must ip -n h1 -batch - <<-EOF
		link set eth0 down
		link add bond7 type bond
		link set eth0 master bond7
		link add link bond7 name bond7.9 type vlan id 9
		link add br0 type bridge
		link set eth1 master br0
		link add empty type bridge
		link add link eth1 name eth1.4 type vlan id 4
	EOF
	for verb in enable disable; do
		ctl 1 nic $verb bond7
		says "^    timelyctl nic $verb eth0$"
		ctl 1 nic $verb bond7.9
		says 'bond7.9 is a vlan'
		says "^    timelyctl nic $verb eth0$"
		ctl 1 nic $verb br0
		says "^    timelyctl nic $verb eth1$"
		ctl 1 nic $verb eth1.4
		says "^    timelyctl nic $verb eth1$"
		ctl 1 nic $verb empty
		says 'with no device below it'
	done
	shows bond7.9 'n["hardware_rtt"]["state"] == "cannot" and "nic show eth0" in n["hints"][0]'
	# Without a name, timelyctl lists only the NICs, not the devices above them.
	ctl 0 -j nic
	json 'sorted(each["ifname"] for each in all) == ["eth0", "eth1"]'
	must ip -n h1 link set eth1.4 netns h2
	where=$in_h2 ctl 1 nic enable eth1.4
	says 'in another network namespace'
	for dev in eth0 eth1; do expect_hwtstamp $dev "rx $none tx 0"; done
	must ip link del hw1p
	nics_down
}

# ---- the module ----

in_use() {
	nics_up
	load_timely
	knob phc_drift_ppb -50000
	knob jitter_ns 5000
	ctl 0 nic enable eth0
	shows eth0 'n["hardware_rtt"]["state"] == "unseen" and n["hardware_rtt"]["pairs"] == 0'
	ctl 0 nic
	says 'waiting for ACKs'
	send_for 0.3
	shows eth0 'n["hardware_rtt"]["state"] == "in-use" and n["hardware_rtt"]["allowed"]'
	json 'n["hardware_rtt"]["pairs"] > 10000 and n["hardware_rtt"]["steps"] == 0'
	json '0 < n["hardware_rtt"]["uncertainty_ns"] < 1000'
	# drift_ppb is the host's frequency relative to the NIC's, so a slow NIC has a positive drift.
	json 'abs(n["hardware_rtt"]["drift_ppb"] - 50000) < 1000'
	# The clock mapping must agree with a later reading of the NIC's clock.
	cp "$work/out" "$work/mapping"
	$in_h1 cat /sys/class/net/eth0/hwnic/phc_now >"$work/now"
	"$python" -I - "$work/mapping" "$work/now" >"$work/off" <<-'EOF'
		import json, sys
		clock = json.load(open(sys.argv[1]))[0]["hardware_rtt"]
		phc, mono = (int(word) for word in open(sys.argv[2]).read().split())
		nic = phc - clock["map_nic_ns"]
		off = clock["map_host_ns"] + nic + (nic * clock["map_drift_q32"] >> 32) - mono
		if any(clock["map_" + key] != clock["line_" + key] for key in ("nic_ns", "host_ns", "drift_q32")):
		    sys.exit("the deprecated keys line_* differ from map_*")
		print(abs(off))
	EOF
	read -r off <"$work/off"
	expect off -le 1000
	ctl 0 nic
	says 'in use: clock mapping good to [0-9]* ns, drift +[45][0-9][.][0-9] ppm, [0-9]* pairs, 0 steps$'
	nics_down
	unload_timely
}

counters() {
	nics_up
	load_timely
	ctl 0 -j rtt
	json 'all and all.keys() >= {"hardware", "driver", "tcp"} and not any(all.values())'
	cp "$work/out" "$work/json-names"
	ctl 0 rtt
	awk '{ print $1 }' "$work/out" >"$work/names"
	"$python" -I -c 'import json, sys
names = dict.fromkeys(json.load(open(sys.argv[1])))
# The deprecated name of probes_apart is only in the JSON output.
names.pop("drains_apart")
print(*names, sep="\n")' \
		"$work/json-names" | cmp -s - "$work/names" || fail "JSON and text have different names of counters"
	[ "$(awk 'NF < 4' "$work/out")" = "" ] || fail "a counter without a description"
	ctl 0 nic enable eth0
	send_for 0.2
	hardware=$(counter hardware)
	expect hardware -gt 100
	# When the user switches hardware timestamps off, connections stop using them at once.
	ctl 0 nic set eth0 hardware off
	says 'hardware timestamps are not used'
	shows eth0 'n["hardware_rtt"]["state"] == "off" and not n["hardware_rtt"]["allowed"]'
	driver_before=$(counter driver)
	send_for 0.05
	still=$(counter hardware)
	expect still -eq "$hardware"
	driver=$(counter driver)
	expect driver -gt "$driver_before"
	ctl 0 nic set eth0 hardware on
	send_for 0.05
	again=$(counter hardware)
	expect again -gt "$hardware"
	nics_down
	unload_timely
}

settings() {
	nics_up
	load_timely
	ctl 0 nic enable eth0
	within_seconds 5 $in_h1 $genl get eth0 >"$work/get" || fail "the module does not know eth0"
	ctl 0 nic set eth0 link-rate 40000mbit
	says 'eth0: the link rate is 40 Gb/s from now on'
	shows eth0 'n["link_rate_override_kbps"] == 40000000 and n["link_speed_mbps"] == 10000'
	ctl 0 nic
	says 'link rate       40 Gb/s, set by hand; the NIC reports: 10 Gb/s'
	says 'link-rate auto'
	ctl 0 nic set eth0 link-rate 1tbit hardware off
	shows eth0 'n["link_rate_override_kbps"] == 1000000000 and not n["hardware_rtt"]["allowed"]'
	ctl 2 nic set eth0 link-rate 1.1tbit
	ctl 0 nic set eth0 link-rate auto
	shows eth0 'n["link_rate_override_kbps"] is None and not n["hardware_rtt"]["allowed"]'
	# Settings stay when the device gets another name.
	ctl 0 nic set eth0 link-rate 5gbit
	must ip -n h1 link set eth0 down
	must ip -n h1 link set eth0 name lan7
	shows lan7 'n["link_rate_override_kbps"] == 5000000'
	ctl 1 nic set lo hardware off
	says 'does not timestamp'
	nics_down
	unload_timely
}

# ---- permissions and namespaces ----

permissions() {
	nics_up
	load_timely
	within_seconds 5 $in_h1 $genl get eth0 >"$work/get" || fail "the module does not know eth0"
	where="$in_h1 $as_nobody"
	shows eth0 'n["can_stamp"] == "hardware-all" and n["link_speed_mbps"] == 10000'
	json 'n["rx_filter"] == "none" and n["gro"] and n["hardware_rtt"]["allowed"]'
	ctl 0 rtt
	ctl 1 nic enable eth0
	says 'nic enable needs root (CAP_NET_ADMIN): sudo timelyctl nic enable eth0'
	expect_hwtstamp eth0 "rx $none tx 0"
	ctl 1 nic set eth0 hardware off
	says 'needs root (CAP_NET_ADMIN)'
	where=$in_h1 ctl 0 nic enable eth0
	ctl 1 nic disable eth0
	says 'needs root (CAP_NET_ADMIN)'
	expect_hwtstamp eth0 "rx $all tx 0"
	refused $in_h1 $as_nobody $genl set eth0 1000
	grep -q EPERM "$work/refused" || fail "not refused with EPERM"
	[ "$($in_h1 $genl get eth0)" = "0 1" ] || fail "the refused request has changed a setting"
	nics_down
	unload_timely
}

namespaces() {
	nics_up
	load_timely
	within_seconds 5 $in_h1 $genl get eth0 >"$work/get" || fail "the module does not know eth0"
	# Interface indexes are numbers of one namespace: h1 must not find the device of h2.
	must ip -n h2 link add d0 index 4711 type dummy
	refused $in_h1 $genl get 4711
	grep -q ENODEV "$work/refused" || fail "not ENODEV for a device of another namespace"
	refused $genl get eth0
	grep -q ENODEV "$work/refused" || fail "not ENODEV for eth0 outside its namespace"
	must $in_h1 $genl set eth0 7000
	[ "$($in_h1 $genl get eth0)" = "7000 1" ] || fail "h1: the link rate is not set"
	[ "$($in_h2 $genl get eth0)" = "0 1" ] || fail "h2: the request of h1 has changed the NIC of h2"
	nics_down
	unload_timely
}

# The dump of 60 NICs needs several datagrams and shows each NIC once.
dump_of_many_nics() {
	nics_up
	load_timely
	i=0
	while [ $i -lt 30 ]; do
		i=$((i + 1))
		echo "link add n$i type hwnic"
		echo "link set n$i up"
		echo "link set n${i}p up"
	done >"$work/batch"
	must ip -batch "$work/batch"
	where=
	within_seconds 5 $genl get n${i}p >"$work/get" || fail "the module does not know the last NIC"
	ctl 0 -j nic
	json '[each["hardware_rtt"]["allowed"] for each in all if each["kind"] == "hwnic"] == [True] * 60'
	must $genl dump
	[ "$(sort -u "$work/must" | wc -l)" -eq 60 ] || fail "the dump does not have 60 different names"
	[ "$(wc -l <"$work/must")" -eq 60 ] || fail "the dump shows NICs twice"
	sed 's/link set .*//; s/link add \(.*\) type.*/link del \1/' "$work/batch" >"$work/unbatch"
	must ip -batch "$work/unbatch"
	nics_down
	unload_timely
}

# ---- the netlink family without timelyctl ----

refusals() {
	nics_up
	load_timely
	within_seconds 5 $in_h1 $genl get eth0 >"$work/get" || fail "the module does not know eth0"
	read -r index <<-EOF
		$($in_h1 cat /sys/class/net/eth0/ifindex)
	EOF
	$in_h1 $genl refusals "$index" >"$work/refusals" 2>&1 || {
		say_lines <"$work/refusals"
		fail "a request was not refused, or with another error or message"
	}
	nics_down
	unload_timely
}

fuzz() {
	nics_up
	load_timely
	within_seconds 5 $in_h1 $genl get eth0 >"$work/get" || fail "the module does not know eth0"
	index=$($in_h1 cat /sys/class/net/eth0/ifindex)
	for right in may may-not; do
		who=
		[ $right = may ] || who=$as_nobody
		for seed in 1 2 3; do
			# shellcheck disable=SC2086 # commands
			$in_h1 $who $genl fuzz $seed "${TIMELY_FUZZ_MESSAGES:-2000}" "$index" $right \
				>"$work/fuzz" 2>&1 || {
				say_lines <"$work/fuzz"
				fail "the fuzzer failed: seed $seed, $right"
			}
			[ -z "${TIMELY_VERBOSE:-}" ] || say_lines <"$work/fuzz"
		done
	done
	nics_down
	unload_timely
}

# Queries while the modules and a NIC come and go
queries_while_modules_come_and_go() {
	nics_up
	$genl ask 5 >"$work/asked" 2>&1 &
	asker=$!
	i=0
	while [ $i -lt 15 ]; do
		i=$((i + 1))
		load_timely
		must ip link add n0 type hwnic
		must ip link set n0 up
		sleep 0.2
		must ip link del n0
		[ $((i % 3)) -eq 0 ] || must ip link add n0 type hwnic
		unload_timely
		! ip link show n0 >/dev/null 2>&1 || must ip link del n0
	done
	wait $asker || {
		say_lines <"$work/asked"
		fail "wrong answers to queries"
	}
	read -r asked <"$work/asked"
	expect asked -ge 20
	nics_down
}

run_cases devices_without_hardware_timestamps without_the_module shows_the_nic enable_and_disable \
	ptp_only devices_on_top in_use counters settings permissions namespaces dump_of_many_nics \
	refusals fuzz queries_while_modules_come_and_go
