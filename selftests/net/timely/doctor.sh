#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# "timelyctl doctor": each case breaks the set-up of a host in one way, and doctor must find exactly
# that. On the unbroken host it must find nothing.
# Topology: h1 == h2, test NICs (drivers/net/hwnic); h1 sends by timely over sch_timely.
#
# tools/timelyctl/test/ tests what a guest cannot break, such as a kernel that wants signed modules.

. "$(dirname "$0")/ctl_lib.sh"
. "$(dirname "$0")/hw_lib.sh"

# instead PATH TEXT: commands run as $where read TEXT from the file PATH
instead() {
	echo "$2" >"$work/instead"
	cat >"$work/instead.sh" <<-EOF
		mount --bind "$work/instead" "$1" && exec "\$@"
	EOF
	where="$in_h1 sh $work/instead.sh"
}

# sysctl_h1 NAME VALUE: set net/NAME in h1
sysctl_h1() {
	# shellcheck disable=SC2016 # for the inner shell
	must in_ns h1 sh -c 'echo "$2" >"/proc/sys/net/$1"' sysctl "$1" "$2"
}

where=$in_h1

# ---- modules and kernel ----

no_module() {
	where=
	finds 1 modules-loaded
	ctl 1 doctor
	says '^error: modules-loaded: none of the modules'
	says '^    remedy: modprobe tcp_timely'
	says '^errors: 1, warnings: 0, notes: 0$'
	ctl 2 doctor a b
	ctl 1 doctor nosuch0
	says 'no device "nosuch0"'
}

healthy() {
	must insmod "$modules/hwnic.ko"
	must insmod "$modules/timely.ko"
	must insmod "$modules/tcp_timely.ko"
	must insmod "$modules/sch_timely.ko"
	echo reno cubic timely >/proc/sys/net/ipv4/tcp_allowed_congestion_control
	nics_up
	# Modules remember paths. Cases that change the path have a destination of their own.
	must ip -n h2 -batch - <<-EOF
		address add 10.7.2.3/24 dev eth0
		address add 10.7.2.4/24 dev eth0
		address add 10.7.2.5/24 dev eth0
		address add 10.7.2.6/24 dev eth0
		address add 10.7.2.7/24 dev eth0
		address add 10.7.2.8/24 dev eth0
	EOF
	clock_status 0
	sysctl_h1 ipv4/tcp_congestion_control timely
	finds 0
	flows 0.3 "$h2_v4" 4
	finds 0
	ctl 0 doctor
	says '^errors: 0, warnings: 0, notes: 0$'
}

module_version() {
	instead /sys/module/sch_timely/version 0.8.7
	finds 4 module-version
	json '"sch_timely has version 0.8.7" in all["findings"][0]["evidence"]'
}

kernel_version() {
	instead /proc/sys/kernel/osrelease 5.10.0-28-amd64
	finds 1 kernel-version
	instead /proc/sys/kernel/osrelease 6.8.0
	finds 0 kernel-version
	json 'all["findings"][0]["severity"] == "note"'
}

kernel_taint() {
	# An out-of-tree module, and a warning.
	instead /proc/sys/kernel/tainted 4608
	finds 4 kernel-taint
	instead /proc/sys/kernel/tainted 4096
	finds 0
}

without_privilege() {
	where="$in_h1 $as_nobody"
	finds 0 incomplete
	json 'all["users"] == [] and not all["users_complete"]'
}

# ---- settings ----

unused() {
	sysctl_h1 ipv4/tcp_congestion_control cubic
	finds 4 unused
	must ip -n h1 route add 10.9.0.0/16 via $h2_v4 congctl timely
	finds 0
	must ip -n h1 route del 10.9.0.0/16
	sysctl_h1 ipv4/tcp_congestion_control timely
}

route_control() {
	must ip -n h1 route add 10.9.0.0/16 via $h2_v4 congctl cubic
	finds 0 route-control
	json '"10.9.0.0/16 has congctl cubic" in all["findings"][0]["evidence"]'
	must ip -n h1 route change 10.9.0.0/16 via $h2_v4 congctl timely_paper
	finds 0
	must ip -n h1 route del 10.9.0.0/16
	# The manual advises this for a route to the Internet.
	must ip -n h1 route add default via $h2_v4 congctl cubic
	finds 0
	must ip -n h1 route del default
	sysctl_h1 ipv4/tcp_congestion_control cubic
	must ip -n h1 route add 10.9.0.0/16 via $h2_v4 congctl timely
	must ip -n h1 route add 10.9.7.0/24 via $h2_v4
	finds 0 route-control
	json '"10.9.0.0/16" in all["findings"][0]["evidence"] and "10.9.7.0/24" in all["findings"][0]["remedy"]'
	must ip -n h1 route change 10.9.7.0/24 via $h2_v4 congctl timely
	finds 0
	must ip -n h1 route del 10.9.7.0/24
	must ip -n h1 route del 10.9.0.0/16
	sysctl_h1 ipv4/tcp_congestion_control timely
}

# Root of the first namespace may choose timely, but other users may not.
allowed_control() {
	allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control
	echo reno cubic >$allowed
	where=
	finds 4 unused allowed-control
	json '"reno cubic" in all["findings"][1]["evidence"]'
	echo reno cubic timely >$allowed
}

preset() {
	sysctl_h1 ipv4/timely/preset paper
	finds 0 preset
	sysctl_h1 ipv4/timely/preset target_delay
	sysctl_h1 ipv4/timely/min_rtt_ns 20000
	finds 0
	sysctl_h1 ipv4/timely/loss_free_ppm 77
	finds 0 preset
	json '"loss_free_ppm is 77" in all["findings"][0]["evidence"]'
	sysctl_h1 ipv4/timely/preset target_delay
}

rto_min() {
	before=$(in_ns h1 cat /proc/sys/net/ipv4/tcp_rto_min_us)
	sysctl_h1 ipv4/tcp_rto_min_us 5000
	finds 4 rto-min
	sysctl_h1 ipv4/tcp_rto_min_us "$before"
	must ip -n h1 route add 10.9.0.0/16 via $h2_v4 rto_min 5ms
	finds 4 rto-min
	must ip -n h1 route change 10.9.0.0/16 via $h2_v4 rto_min 25ms
	finds 0
	must ip -n h1 route del 10.9.0.0/16
}

clock() {
	clock_status 64
	finds 4 clock
	sysctl_h1 ipv4/timely/min_rtt_ns 20000
	finds 0
	sysctl_h1 ipv4/timely/min_rtt_ns auto
	clock_status 0
}

# ---- devices ----

device_down() {
	must ip -n h1 link set eth0 down
	finds 4 device-down
	json 'all["findings"][0]["ifname"] == "eth0"'
	must ip -n h1 link set eth0 up
	finds 0
}

# timely_queues NAMESPACE: q0 has four transmit queues, each with a qdisc timely
timely_queues() {
	must tc -n "$1" -batch - <<-EOF
		qdisc replace dev q0 root handle 1: mq
		qdisc replace dev q0 parent 1:1 timely
		qdisc replace dev q0 parent 1:2 timely
		qdisc replace dev q0 parent 1:3 timely
		qdisc replace dev q0 parent 1:4 timely
	EOF
}

queues() {
	must ip -n h1 link add q0 numtxqueues 4 numrxqueues 4 type veth peer name q1
	must ip -n h1 link set q0 up
	must tc -n h1 qdisc replace dev q0 root timely
	finds 4 qdisc-root
	timely_queues h1
	finds 0
	must tc -n h1 qdisc replace dev q0 parent 1:3 fq
	finds 4 qdisc-mixed
	json '"3 of 4" in all["findings"][0]["evidence"] and all["findings"][0]["ifname"] == "q0"'
	must ip -n h1 link del q0
}

# net.core.default_qdisc can be read in the first namespace only.
default_qdisc() {
	where=
	read -r before </proc/sys/net/core/default_qdisc
	read -r control </proc/sys/net/ipv4/tcp_congestion_control
	echo timely >/proc/sys/net/ipv4/tcp_congestion_control
	must ip link add q0 numtxqueues 4 numrxqueues 4 type veth peer name q1
	must ip link set q0 up
	echo timely >/proc/sys/net/core/default_qdisc
	must tc qdisc replace dev q0 root mq
	finds 0
	echo fq >/proc/sys/net/core/default_qdisc
	finds 0 default-qdisc
	echo "$before" >/proc/sys/net/core/default_qdisc
	echo "$control" >/proc/sys/net/ipv4/tcp_congestion_control
	must ip link del q0
}

qdisc_unpaced() {
	must tc -n h1 qdisc replace dev eth0 root pfifo
	finds 4 qdisc-unpaced
	must tc -n h1 qdisc replace dev eth0 root fq
	finds 0
	# timely below a shaper
	must tc -n h1 qdisc replace dev eth0 root handle 1: tbf rate 5gbit burst 100k latency 10ms
	must tc -n h1 qdisc replace dev eth0 parent 1:1 timely
	finds 0
	must tc -n h1 qdisc replace dev eth0 root timely
}

# Only some of the queues of a NIC pace.
queues_unpaced() {
	must ip link add hw numtxqueues 4 type hwnic
	must ip -batch - <<-EOF
		link set hw netns h1 name n0
		link set hwp netns h2 name n0
	EOF
	must ip -n h2 link set n0 up
	must ip -n h1 link set n0 up
	timestamps h1 n0 all
	must tc -n h1 -batch - <<-EOF
		qdisc replace dev n0 root handle 1: mq
		qdisc replace dev n0 parent 1:1 fq
		qdisc replace dev n0 parent 1:2 fq
		qdisc replace dev n0 parent 1:3 fq_codel
		qdisc replace dev n0 parent 1:4 handle 4: tbf rate 5gbit burst 100k latency 10ms
	EOF
	finds 4 qdisc-unpaced
	json '"2 of 4" in all["findings"][0]["evidence"]'
	must tc -n h1 qdisc replace dev n0 parent 4:1 fq
	finds 4 qdisc-unpaced
	json '"1 of 4" in all["findings"][0]["evidence"] and "fq_codel" in all["findings"][0]["evidence"] and all["findings"][0]["ifname"] == "n0"'
	must tc -n h1 qdisc replace dev n0 parent 1:3 fq
	finds 0
	must tc -n h1 qdisc replace dev n0 parent 1:1 timely
	must tc -n h1 qdisc replace dev n0 parent 1:2 fq_codel
	finds 4 qdisc-mixed
	must ip -n h1 link del n0
}

no_carrier() { ip -n h1 link show d0 | grep -q NO-CARRIER; }

link_rate() {
	must ip -n h1 link add d0 type dummy
	must ip -n h1 link set d0 up
	must tc -n h1 qdisc replace dev d0 root timely
	finds 4 link-rate
	must ip -n h1 link set d0 carrier off
	within_seconds 20 no_carrier || fail "d0 still has a carrier"
	finds 0
	must ip -n h1 link del d0
	must ip -n h1 link add d0 type dummy
	must ip -n h1 link set d0 up
	must tc -n h1 qdisc replace dev d0 root timely
	finds 4 link-rate
	sysctl_h1 ipv4/timely/link_rate_kbps 10000000
	finds 0
	must ip -n h1 link del d0
	sysctl_h1 ipv4/timely/link_rate_kbps 1000000
	finds 4 link-rate-set
	sysctl_h1 ipv4/timely/link_rate_kbps auto
	ctl 0 nic set eth0 link-rate 40gbit
	finds 4 link-rate-set
	ctl 0 nic set eth0 link-rate auto
}

timestamps_of_the_nic() {
	timestamps h1 eth0 none
	finds 4 timestamps
	timestamps h1 eth0 all
	ctl 0 nic set eth0 hardware off
	finds 4 timestamps
	ctl 0 nic set eth0 hardware on
	timestamps h1 eth0 ptp
	knob h1 eth0 stamp_all 0
	finds 0 timestamps
	json '"PTP packets only" in all["findings"][0]["evidence"]'
	knob h1 eth0 stamp_all 1
	timestamps h1 eth0 all
}

settings_of_the_driver() {
	must in_ns h1 ethtool -C eth0 rx-usecs 50 rx-frames 0
	finds 4 coalescing
	must in_ns h1 ethtool -C eth0 rx-usecs 8 rx-frames 0
	finds 0
	must in_ns h1 ethtool -K eth0 gro off
	finds 0 offloads
	must in_ns h1 ethtool -K eth0 gro on lro on
	finds 4 merged-packets
	must in_ns h1 ethtool -K eth0 lro off
	must in_ns h1 ethtool -C eth0 rx-usecs 0 rx-frames 1
}

# Steps of the NIC's clock, each of which the module notices. Steps that were earlier are a note.
clock_of_the_nic() {
	echo "echo 5000000 >/sys/class/net/eth0/hwnic/phc_step_ns" >"$work/step"
	total_kbps=400000
	plan_flows 6.5 "$h2_v4" 4 >"$work/plan"
	for step in $(seq 2 30); do
		echo "$((step / 5)).$((step * 2 % 10)) run $in_h1 sh $work/step"
	done >>"$work/plan"
	(traffic <"$work/plan") &
	sleep 3
	# RTTs change with the kind of their timestamps, so doctor may also find that probes are apart.
	ctl 4 -j doctor
	json '("nic-clock-steps", "warning") in [(one["check"], one["severity"]) for one in all["findings"]]'
	wait $! || exit 1
	finds 0 nic-clock-steps
}

# has CHECK SEVERITY: the last output of doctor has this finding, among others
has() {
	json "('$1', '$2') in [(one['check'], one['severity']) for one in all['findings']]"
}

# while_sending RATE_KBPS: run doctor while connections from h1 send, from their third second on
while_sending() {
	total_kbps=$1
	plan_flows 6.5 "$h2_v4" 4 >"$work/plan"
	(traffic <"$work/plan") &
	sleep 3
	ctl 4 -j doctor
	sending=$!
}

# A NIC whose timestamps are wrong for one packet in five.
wrong_timestamps() {
	knob h1 eth0 stamp_wrong 5
	while_sending 2000000
	has rejected-rtts warning
	wait $sending || exit 1
	knob h1 eth0 stamp_wrong 0
}

# A program steps the NIC's clock 50 times per second, so its mapping is never sure.
clock_that_is_never_sure() {
	echo 0 >/sys/module/timely/parameters/cross_timestamps
	cat >"$work/steps" <<-END
		while [ -e $work/stepping ]; do
			echo 2000000 >/sys/class/net/eth0/hwnic/phc_step_ns
			sleep 0.02
		done
	END
	: >"$work/stepping"
	in_ns h1 sh "$work/steps" &
	steps=$!
	while_sending 2000000
	has nic-clock warning
	rm "$work/stepping"
	wait $steps
	wait $sending || exit 1
	echo 1 >/sys/module/timely/parameters/cross_timestamps
}

# ---- connections ----

# bottleneck NETEM...: what h2 receives passes a new netem qdisc, without options of a former one
bottleneck() {
	[ -e "$work/bottleneck" ] || {
		must ip -n h2 link add ifb0 type ifb
		must ip -n h2 link set ifb0 up
		must tc -n h2 qdisc add dev eth0 ingress
		must tc -n h2 filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
		: >"$work/bottleneck"
	}
	must tc -n h2 qdisc replace dev ifb0 root pfifo
	must tc -n h2 qdisc replace dev ifb0 root netem limit 1000 "$@"
}

# Python: feed(PAIR) lets a thread send all the time, and another thread receive
feed='
import threading
def feed(pair):
    def send():
        while True:
            pair[0].send(bytes(65536))
    def receive():
        while pair[1].recv(1 << 20):
            pass
    for work in send, receive:
        threading.Thread(target=work, daemon=True).start()
'

loss_based_traffic() {

	bottleneck rate 1gbit
	look() {
		finds 4 filled-queue other-traffic
		json '"cubic" in all["findings"][1]["evidence"]'
	}
	with_connections <<-EOF
		$feed
		feed(connect("10.7.2.4"))
		time.sleep(.05)
		feed(connect("10.7.2.4", b"cubic"))
		time.sleep(.5)
		look()
	EOF
}

# Connections of other congestion controls one after the other, without a queue
other_traffic() {
	bottleneck
	look() {
		finds 4 other-traffic
	}
	with_connections <<-EOF
		for cc in b"timely", b"reno":
		    pair = connect("$h2_v4", cc)
		    send(*pair, 2000000)
		    globals()[cc.decode()] = pair
		    finish(pair)
		look()
	EOF
	# DCTCP on both hosts, so that they agree on ECN.
	must ip -n h2 route replace 10.7.2.1/32 dev eth0 congctl dctcp
	look() {
		finds 0
	}
	with_connections <<-EOF
		one = connect("$h2_v4")
		other = connect("10.7.2.3", b"cubic")
		third = connect("$h2_v4", b"dctcp")
		for pair in one, other, third:
		    send(*pair, 2000000)
		    finish(pair)
		look()
	EOF
	must ip -n h2 route del 10.7.2.1/32
}

# Connections of the host with itself reach no queue. Their RTTs may end with a tick of 10 ms in this kernel, which
# doctor takes for a long path.
traffic_inside() {
	look() {
		# shellcheck disable=SC2086 # a command and its arguments
		$where "$ctl" -j doctor >"$work/out" || [ $? -eq 4 ] || fail "doctor reports an error"
		json 'not [f for f in all["findings"] if f["check"] == "other-traffic"]'
	}
	with_connections <<-EOF
		def pair_inside(address, control):
		    listener = inside("h1", socket.socket)
		    listener.bind((address, 0))
		    listener.listen()
		    client = inside("h1", socket.socket)
		    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control)
		    client.connect(listener.getsockname())
		    return client, listener.accept()[0]
		pairs = [pair_inside(address, control) for address in ("127.0.0.1", "10.7.2.1")
		         for control in (b"timely", b"cubic")]
		for pair in pairs:
		    send(*pair, 2000000)
		    finish(pair)
		look()
	EOF
}

# The connections of another network namespace
users() {
	look() {
		where=
		ctl 0 doctor
		says 'connections that use timely: 0 in this network namespace, 3 in all (1 namespaces)'
		ctl 0 -j doctor
		json '[one["connections"] for one in all["users"]] == [3] and all["users_complete"]'
		ctl 0 -j flows all
		json 'len({one["net_cookie"] for one in all}) == 1'
	}
	with_connections <<-EOF
		pairs = [connect("$h2_v4") for _ in range(3)]
		look()
	EOF
}

# A rule without a target delay keeps a queue itself, which no other traffic fills.
no_target() {
	bottleneck rate 1gbit
	sysctl_h1 ipv4/timely/preset patched
	look() {
		finds 0 preset
	}
	with_connections <<-EOF
		$feed
		feed(connect("10.7.2.8"))
		time.sleep(.5)
		look()
	EOF
	sysctl_h1 ipv4/timely/preset target_delay
	bottleneck
}

# A switch that marks nearly all packets
minimum_rate() {
	sysctl_h1 ipv4/tcp_ecn 1
	bottleneck
	look() {
		bottleneck loss 90% ecn
		sleep 0.5
		finds 4 minimum-rate
		json '"(ECN)" in all["findings"][0]["evidence"]'
	}
	with_connections <<-EOF
		$feed
		feed(connect("10.7.2.5"))
		look()
	EOF
	bottleneck
	sysctl_h1 ipv4/tcp_ecn 2
}

long_path() {
	bottleneck delay 2ms
	look() {
		finds 4 long-path
	}
	with_connections <<-EOF
		pair = connect("10.7.2.6")
		send(*pair, 400000)
		look()
	EOF
	# The IPv4 connection of an IPv6 socket, as servers that listen on [::] have them
	look() {
		finds 4 long-path
		json '"10.7.2.6:" in all["findings"][0]["evidence"]'
	}
	with_connections <<-EOF
		pair = connect("::ffff:10.7.2.6")
		send(*pair, 400000)
		look()
	EOF
	bottleneck
}

mtu() {
	must ip -n h2 link set eth0 mtu 1400
	look() {
		finds 4 mtu
		json '"at most 1400 bytes" in all["findings"][0]["evidence"]'
	}
	with_connections <<-EOF
		pair = connect("$h2_v4")
		send(*pair, 400000)
		look()
	EOF
	must ip -n h2 link set eth0 mtu 1500
	look() {
		finds 0
	}
	with_connections <<-EOF
		pair = connect("$h2_v4")
		send(*pair, 400000)
		look()
	EOF
	# Packets to the host itself are smaller than the MTU of the loopback device, and those to a
	# peer with a small window are smaller than any MTU. Their RTTs may end with a tick of 10 ms
	# in this kernel, which doctor takes for a long path.
	look() {
		# shellcheck disable=SC2086 # a command and its arguments
		$where "$ctl" -j doctor >"$work/out" || [ $? -eq 4 ] || fail "doctor reports an error"
		json 'not [f for f in all["findings"] if f["check"] == "mtu"]'
	}
	with_connections <<-EOF
		def pair_of(host, address, window):
		    listener = inside(host, socket.socket)
		    if window:
		        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
		    listener.bind((address, 0))
		    listener.listen()
		    client = inside("h1", socket.socket)
		    client.connect(listener.getsockname())
		    return client, listener.accept()[0]
		pairs = [pair_of("h1", "127.0.0.1", 0), pair_of("h1", "10.7.2.1", 0),
		         pair_of("h2", "$h2_v4", 2000)]
		for pair in pairs:
		    send(*pair, 100000)
		look()
	EOF
}

no_flows() {
	(ctl 0 -j limits && json 'all["flows"]["used"] == 0') >"$work/last-look"
}

# After clock_of_the_nic. Steps and refusals are counted as long as the namespace exists.
limits() {
	# The kernel may still be closing the connections of clock_of_the_nic.
	within_seconds 20 no_flows || fail "flows of closed connections remain"
	echo 3 >/sys/module/timely/parameters/max_flows
	look() {
		finds 4 limits nic-clock-steps
		json '"3 of 3 flows are in use" in all["findings"][0]["evidence"]'
	}
	with_connections <<-EOF
		pairs = [connect("10.7.2.7") for _ in range(5)]
		for pair in pairs:
		    send(*pair, 100000)
		look()
	EOF
	echo 65536 >/sys/module/timely/parameters/max_flows
	finds 0 limits nic-clock-steps
	json '"refused earlier" in all["findings"][0]["evidence"]'
}

# ---- the end ----

# Many checks at once, and the device of the command line only.
all_at_once() {
	must ip -n h1 link set eth0 down
	must ip -n h1 link add d0 type dummy
	must tc -n h1 qdisc replace dev d0 root timely
	ctl 4 -j doctor d0
	json '[(f["check"], f["ifname"]) for f in all["findings"]] == [("device-down", "d0")]'
	must ip -n h1 link set eth0 up
	must ip -n h1 link del d0
}

run_cases no_module healthy module_version kernel_version kernel_taint without_privilege unused route_control \
	allowed_control preset rto_min clock device_down queues default_qdisc qdisc_unpaced queues_unpaced link_rate \
	timestamps_of_the_nic settings_of_the_driver users loss_based_traffic no_target other_traffic traffic_inside \
	minimum_rate long_path mtu all_at_once clock_of_the_nic limits wrong_timestamps clock_that_is_never_sure remove_all
