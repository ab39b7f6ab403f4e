#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The test NIC itself (drivers/net/hwnic): link rate and cable delay to the nanosecond, rings,
# interrupt moderation, random delay, timestamps and PTP clocks, compared with its settings and its
# log. Times on the link are exact. Times in a host have the guest's clock, with steps of 256 ns and
# timers up to half a microsecond late. Topology: hw0 == hw0p in one namespace; for TCP h1 == h2.

. "$(dirname "$0")/qdisc_lib.sh"

need_tools ethtool

# ns: the error of the guest's clock and timers
slack_ns=1100

# Load the module again, without anything that an earlier case has left.
load_hwnic() {
	! is_loaded hwnic || must rmmod hwnic
	hosts_down
	must insmod "$modules/hwnic.ko"
}

# hw0 and hw0p in this namespace, without IPv6, so that all packets are the test's own
nic_up() {
	load_hwnic
	must ip link add hw0 type hwnic
	for nic in hw0 hw0p; do
		echo 1 >/proc/sys/net/ipv6/conf/$nic/disable_ipv6
	done
	must ip -batch - <<-EOF
		link set hw0 address 02:00:00:00:00:01 up
		link set hw0p address 02:00:00:00:00:02 up
	EOF
}

nic_down() {
	must ip link del hw0
	[ ! -e /sys/class/net/hw0p ] || fail "hw0p outlives hw0"
}

# knob NAME [VALUE [NIC]]: read a setting of hw0, or write one of NIC (by default hw0)
knob() {
	if [ $# -eq 1 ]; then
		cat "/sys/class/net/hw0/hwnic/$1"
	else
		echo "$2" 2>/dev/null >"/sys/class/net/${3:-hw0}/hwnic/$1"
	fi
}

# counter NAME [NIC]: print a counter of "ethtool -S", by default of hw0p
counter() {
	ethtool -S "${2:-hw0p}" | awk -v name="$1:" '$1 == name { print $2 }'
}

# Python code for the cases, in addition to packets.py
cat >"$work/nic.py" <<-'EOF'
	import array, errno, fcntl, statistics

	US = 1000
	NONE, ALL, PTP = 0, 1, 12
	# SO_TIMESTAMPING and its flags
	SO_TIMESTAMPING = 37
	TX_HARD, TX_SOFT, RX_HARD, RX_SOFT, SOFT, RAW_HARD = (1 << i for i in (0, 1, 2, 3, 4, 6))
	OTHER = bytes.fromhex("0200000000ff")

	class Nic:
	    def __init__(self, name):
	        self.name = name
	        self.truth_dir = self.read("truth_dir")

	    def knob(self, name):
	        return f"/sys/class/net/{self.name}/hwnic/{name}"

	    def read(self, name):
	        with open(self.knob(name)) as file:
	            return file.read().strip()

	    def write(self, name, value):
	        with open(self.knob(name), "w") as file:
	            file.write(str(value))

	    def phc_now(self):
	        return [int(word) for word in self.read("phc_now").split()]

	    def log(self, types, records=100000):
	        with open(self.truth_dir + "/truth_types", "w") as file:
	            file.write(types)
	        with open(self.truth_dir + "/truth_enable", "w") as file:
	            file.write(str(records))

	    def truth(self):
	        with open(self.truth_dir + "/truth") as file:
	            lines = [line.split() for line in file]
	        return [(line[0], *map(int, line[1:])) for line in lines]

	    def counter(self, name):
	        out = subprocess.run(["ethtool", "-S", self.name], capture_output=True, text=True, check=True)
	        return int(re.search(rf"\b{name}: (\d+)", out.stdout).group(1))

	    def ethtool(self, option, *words):
	        subprocess.run(["ethtool", option, self.name, *map(str, words)], check=True)

	    def hwtstamp(self, rx=None, tx=0):
	        """Set the receive filter (and TX timestamps), or read the filter if RX is None.
	        Returns the filter in force, or -errno."""
	        config = array.array("i", [0, tx, rx or 0])
	        request = struct.pack("16sP", self.name.encode(), config.buffer_info()[0]).ljust(40, b"\0")
	        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
	            try:
	                fcntl.ioctl(sock, 0x89b1 if rx is None else 0x89b0, request)
	            except OSError as error:
	                return -error.errno
	        return config[2]

	    def port(self, timestamping=0):
	        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
	        sock.bind((self.name, ETH_P_ALL))
	        sock.setblocking(False)
	        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
	        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
	        if timestamping:
	            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, timestamping)
	            # The kernel enables timestamps in a work item, a little later.
	            time.sleep(0.002)
	        return sock

	a, b = Nic("hw0"), Nic("hw0p")

	def tcp(sport=1, seq=0, size=1514, dport=2):
	    """A TCP frame to a MAC address that no host has."""
	    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size - 14, 0, 0, 64, 6, 0, bytes(4), bytes(4))
	    head = struct.pack(">HHIIBBHHH", sport, dport, seq, 7, 0x50, 0x10, 0, 0, 0)
	    return (OTHER + OTHER + b"\x08\x00" + ip + head).ljust(size, b"\0")

	def udp(dport, data):
	    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, bytes(4), bytes(4))
	    return OTHER + OTHER + b"\x08\x00" + ip + struct.pack(">HHHH", 5, dport, 8 + len(data), 0) + data

	def timestamps_in(ancillary):
	    """When the host received the packet (CLOCK_MONOTONIC), and the hardware timestamp."""
	    for _, kind, value in ancillary:
	        if kind == SO_TIMESTAMPING:
	            words = struct.unpack("=6q", value)
	            return words[0] * S + words[1] - OFFSET if words[0] else 0, words[4] * S + words[5]
	    return 0, 0

	def drain(sock, flags=0):
	    """[(data, host_ns, hardware timestamp)] of packets that the socket has not sent itself."""
	    got = []
	    while True:
	        try:
	            data, ancillary, _, address = sock.recvmsg(1 << 17, 512, flags)
	        except BlockingIOError:
	            return got
	        if flags or address[2] != socket.PACKET_OUTGOING:
	            got.append((data, *timestamps_in(ancillary)))
EOF

# Run the Python lines on standard input, with packets.py and the code above.
nic() {
	{
		cat "$work/nic.py"
		cat
	} >"$work/nic.plan"
	packets <"$work/nic.plan"
}

# ---- creation and deletion ----

pair_comes_and_goes() {
	nic_up
	for nic in hw0 hw0p; do
		[ "$(cat /sys/class/net/$nic/carrier)" = 1 ] || fail "no carrier on $nic"
		ls /sys/class/net/$nic/device/ptp/ptp? >/dev/null || fail "no PTP clock of $nic"
	done
	must ip link set hw0p down
	[ "$(cat /sys/class/net/hw0/carrier)" = 0 ] || fail "carrier though the other end is down"
	must ip link set hw0p up
	[ "$(cat /sys/class/net/hw0/carrier)" = 1 ] || fail "no carrier after the other end is up again"
	truth=$(knob truth_dir)
	# Kernels before 6.2 cannot rename a device that is up.
	must ip link set hw0 down
	must ip link set hw0 name card
	[ "$(cat /sys/class/net/card/hwnic/truth_dir)" = "$truth" ] || fail "renaming has moved the log"
	must ip link del card
	[ ! -e "$truth" ] || fail "the deleted NIC's log is left"
	left=$(list_links | grep -c '^hw')
	expect left -eq 0
	left=$(find /sys/bus/platform/devices/ -name 'hwnic*' | wc -l)
	expect left -eq 0
}

names_do_not_collide() {
	load_hwnic
	must ip -batch - <<-EOF
		link add hw0 type hwnic
		link add hw1 type hwnic
		link add type hwnic
		link add fifteen_letters type hwnic
		link add hw type hwnic
		link del hw
		link add taken type dummy
	EOF
	for nic in hw0 hw0p hw1 hw1p hwnic0 hwnic0p hwnic1; do
		[ -e /sys/class/net/$nic ] || fail "no $nic"
	done
	must ip link set taken name nicp
	must ip link add nic type hwnic
	[ -e /sys/class/net/hwnic2 ] || fail "no name for nic's peer"
	refused ip link add hw0 type hwnic
	must ip -batch - <<-EOF
		link del nicp
		link del nic
		link del hw0p
		link del hw1
		link del hwnic0
		link del hwnic1
	EOF
	left=$(list_links | grep -cE '^(hw|nic|fifteen)')
	expect left -eq 0
}

# Can this kernel make allocations fail (failslab)?
can_fail() {
	failslab=/sys/kernel/debug/failslab
	[ -d $failslab ] || {
		say "this kernel does not fail allocations"
		return 1
	}
	echo N >$failslab/ignore-gfp-wait
	echo 0 >$failslab/verbose
}

# When any allocation of a creation fails, both ends or none exist, and nothing is left.
creation_may_fail() {
	can_fail || return 0
	load_hwnic
	packets <<-'EOF'
		def attribute(kind, data):
		    return (struct.pack("=HH", 4 + len(data), kind) + data).ljust(-(-(4 + len(data)) // 4) * 4, b"\0")
		body = bytes(16) + attribute(3, b"hw7\0") + attribute(18, attribute(1, b"hwnic\0"))
		request = struct.pack("=IHHII", 16 + len(body), 16, 0x605, 1, 0) + body
		sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
		fail = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
		failed = made = odd = number = 0
		reached = True
		while reached:
		    number += 7
		    # Fail the allocation of this number, counted from now on in this thread.
		    os.pwrite(fail, str(number).encode(), 0)
		    try:
		        sock.send(request)
		    except OSError:
		        pass
		    reached = os.pread(fail, 16, 0).strip(b"\0\n") == b"0"
		    os.pwrite(fail, b"0", 0)
		    try:
		        sock.recv(4096, socket.MSG_DONTWAIT)
		    except OSError:
		        pass
		    ends = [os.path.exists("/sys/class/net/" + name) for name in ("hw7", "hw7p")]
		    odd += ends[0] != ends[1]
		    failed += not ends[0]
		    made += ends[0]
		    if ends[0]:
		        subprocess.run(["ip", "link", "del", "hw7"], check=True)
		say("up to", number, "allocations;", failed, "failed creations")
		result(failed=failed, made=made, odd=odd)
	EOF
	expect failed -ge 20
	expect made -ge 1
	expect odd -eq 0 "pairs with one end only"
	left=$(find /sys/bus/platform/devices/ /sys/class/ptp/ -name 'hwnic*' | wc -l)
	expect left -eq 0
	must rmmod hwnic
}

pair_in_namespaces() {
	load_hwnic
	for way in name end; do
		must ip -batch - <<-EOF
			netns add h1
			netns add h2
			link add hw0 type hwnic
			link set hw0 netns h1 name eth0
			link set hw0p netns h2
			netns exec h2 ip link set hw0p name eth0
		EOF
		for end in 1 2; do
			must ip -n h$end address add 10.9.0.$end/24 dev eth0
			must ip -n h$end link set eth0 up
		done
		must "$python" -I - <<-EOF
			import ctypes, os, socket
			def sock(ns):
			    file = os.open("/run/netns/" + ns, os.O_RDONLY)
			    assert not ctypes.CDLL(None).setns(file, 0)
			    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
			here, there = sock("h1"), sock("h2")
			there.bind(("10.9.0.2", 7))
			there.settimeout(5)
			here.sendto(b"word", ("10.9.0.2", 7))
			assert there.recv(9) == b"word"
		EOF
		if [ $way = name ]; then
			must ip -n h2 link del eth0
			! ip -n h1 link show eth0 >/dev/null 2>&1 || fail "the other end is left"
			must ip netns del h1
		else
			# Deleting one end's namespace deletes both ends.
			must ip netns del h1
			within_seconds 5 eval '! ip -n h2 link show eth0 >/dev/null 2>&1' ||
				fail "the other end is left"
		fi
		must ip netns del h2
	done
}

# ---- link, cable, rings ----

# Each departure is exact, where fractions of a nanosecond add up from the first frame on; each
# arrival; and the queue length after each change.
link_is_exact() {
	nic_up
	knob delay_ns 12345
	must ethtool --set-priv-flags hw0 bql off
	for speed in 10000 100000 7777 1000 10; do
		must ethtool -s hw0 speed $speed
		must ethtool -G hw0 tx 1024
		nic <<-EOF
			from fractions import Fraction
			sizes = [1514, 60, 61, 42, 590, 1500, 1514] * 12
			a.log("TQ"), b.log("R")
			sock = a.port()
			before = time.monotonic_ns()
			for number, size in enumerate(sizes):
			    sock.send(tcp(seq=number, size=max(size, 54)))
			waiting = [int(word) for word in a.read("tx_queue").split()]
			after = time.monotonic_ns()
			sizes = [max(size, 60) for size in sizes]
			time.sleep(sum(sizes) * 8 / $speed / 1e6 * 2 + 0.01)
			truth = a.truth()
			left = [line for line in truth if line[0] == "T"]
			queue = [line for line in truth if line[0] == "Q"]
			came = b.truth()
			# An increase of the queue is a new packet, which waits for the link or
			# starts at once.
			ups = [(line[1], line[2] - k[2]) for k, line in zip([(0, 0, 0)] + queue, queue) if line[2] > k[2]]
			free = wrong = 0
			for (at, size), line, there in zip(ups, left, came):
			    free = max(free, Fraction(at)) + Fraction((size + 24) * 8000, $speed)
			    wrong += line[1] != int(free)
			    wrong += there[1] != line[1] + 12345 or line[5] != there[5]
			wrong += [size for _, size in ups] != sizes
			lengths = sum(line[7] != 1460 for line in left[::7])
			# The queue decreases with each departure.
			level, downs = 0, iter(left)
			for _, at, bytes in queue:
			    if bytes < level:
			        wrong += at != next(downs)[1]
			    level = bytes
			result(frames=len(left), arrived=len(came), wrong=wrong, lengths=lengths, level=level,
			       early=before - ups[0][0], late=ups[-1][0] - after,
			       idle=sum(not size for _, _, size in queue), waiting_frames=waiting[1],
			       waited_more=waiting[0] > sum(sizes))
		EOF
		expect frames -eq 84
		expect arrived -eq 84
		expect wrong -eq 0 "at $speed Mb/s"
		expect lengths -eq 0
		expect level -eq 0
		expect early -le 256
		expect late -le 0
		expect waited_more -eq 0
		# Otherwise the link was idle too often to show anything.
		expect idle -le 10
		[ $speed -gt 10000 ] || expect waiting_frames -ge 82
	done
	nic_down
}

# A change of the speed is announced by netlink, so that readers know when to read it again.
speed_is_announced() {
	nic_up
	nic <<-'EOF'
		sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
		sock.bind((0, 1))
		sock.settimeout(0.1)
		def announced():
		    try:
		        return struct.unpack_from("=IH", sock.recv(65536))[1] == 16
		    except OSError:
		        return False
		result(before=announced())
		a.ethtool("-s", "speed", 1000)
		result(after=announced())
	EOF
	expect before -eq 0
	expect after -eq 1
	nic_down
}

# A GSO packet of TCP leaves as frames back to back, with the right sequence numbers.
gso_packets_become_frames() {
	tcp_up
	must ip netns exec h1 ethtool -C eth0 rx-usecs 8 rx-frames 0
	truth1=$(ip netns exec h1 cat /sys/class/net/eth0/hwnic/truth_dir)
	truth2=$(ip netns exec h2 cat /sys/class/net/eth0/hwnic/truth_dir)
	for dir in "$truth1" "$truth2"; do
		echo RT >"$dir/truth_types"
		echo 100000 >"$dir/truth_enable"
	done
	transfer h1 h2 10.7.2.2 0.02
	cat "$truth1/truth" >"$work/truth1"
	cat "$truth2/truth" >"$work/truth2"
	packets <<-EOF
		def lines(name, kind, port):
		    with open("$work/" + name) as file:
		        words = [line.split() for line in file if line[0] == kind]
		    return [list(map(int, line[1:])) for line in words if line[port] == "9"]
		left, came = lines("truth1", "T", 4), lines("truth2", "R", 4)
		result(frames=len(left), same=[l[2:] for l in left] == [c[2:] for c in came],
		       delays=len({c[0] - l[0] for l, c in zip(left, came)}),
		       delay=came[0][0] - left[0][0],
		       longest=max(l[6] for l in left),
		       # Gaps are at least the time of a full frame, and mostly just that.
		       close=sum(1230 > l[0] - k[0] for k, l in zip(left, left[1:]) if l[6] == 1448),
		       back=sum(l[0] - k[0] <= 1231 for k, l in zip(left, left[1:])) * 100 // len(left),
		       # Sequence numbers wrap.
		       gaps=sum((l[4] - l[6] - k[4]) % 2**32 != 0 for k, l in zip(left, left[1:])))
	EOF
	expect frames -ge 5000
	expect same -eq 1 "the frames that arrived are not those that left"
	expect delays -eq 1
	expect delay -eq 2000
	expect longest -eq 1448
	expect close -eq 0
	expect back -ge 90
	# The FIN counts as one byte.
	expect gaps -eq 1
	tcp_down
}

ring_stops_and_wakes() {
	nic_up
	must ethtool -s hw0 speed 100
	must ethtool -G hw0 tx 4
	must ethtool --set-priv-flags hw0 bql off
	# With BQL the ring may hold only one packet; the link then is idle until the timer fires.
	for bql in off on; do
		must ethtool --set-priv-flags hw0 bql $bql
		full=$(counter tx_ring_full hw0)
		nic <<-EOF
			a.log("T")
			sock = a.port()
			for number in range(40):
			    sock.send(tcp(seq=number))
			bytes, frames = map(int, a.read("tx_queue").split())
			with open("/sys/class/net/hw0/queues/tx-0/byte_queue_limits/inflight") as file:
			    flying = int(file.read())
			time.sleep(0.01)
			left = a.truth()
			each = (1514 + 24) * 80
			result(bytes=bytes, frames=frames, left=len(left), flying=flying,
			       time=left[-1][1] - left[0][1] - 39 * each)
		EOF
		expect left -eq 40
		if [ $bql = off ]; then
			expect flying -eq 0
			full=$(($(counter tx_ring_full hw0) - full))
			expect full -ge 1
			slack=0
			expect frames -eq 4
			expect bytes -eq $((4 * 1514))
		else
			expect flying -ge 1514
			slack=$((39 * slack_ns))
		fi
		expect time -le $slack "ns in which the link was idle"
	done
	max=$(counter tx_ring_max hw0)
	expect max -eq 4
	refused ethtool -G hw0 tx 0
	refused ethtool -G hw0 tx 65537
	refused ethtool -G hw0 rx 0
	must ethtool -G hw0 tx 65536 rx 65536
	nic_down
}

# Twelve frames arrive before the interrupt at a ring of eight: four are lost.
rx_ring_overflows() {
	nic_up
	must ethtool -G hw0p rx 8
	must ethtool -C hw0p rx-usecs 1000 rx-frames 0
	nic <<-EOF
		sock, sink = a.port(), b.port()
		for number in range(12):
		    sock.send(tcp(seq=number))
		time.sleep(0.01)
		got = drain(sink)
		first = [struct.unpack_from(">I", data, 38)[0] for data, _, _ in got]
		result(got=len(got), first=first == list(range(8)))
		sock.send(tcp())
		time.sleep(0.01)
		result(after=len(drain(sink)))
	EOF
	expect got -eq 8
	expect first -eq 1
	expect after -eq 1
	drops=$(counter rx_ring_drops)
	expect drops -eq 4
	drops=$(cat /sys/class/net/hw0p/statistics/rx_dropped)
	expect drops -eq 4
	nic_down
}

too_long_is_an_error() {
	nic_up
	must ip link set hw0 mtu 2000
	nic <<-EOF
		sock, sink = a.port(), b.port()
		sock.send(tcp(size=1514))
		sock.send(tcp(size=2014))
		time.sleep(0.01)
		result(got=len(drain(sink)))
	EOF
	expect got -eq 1
	errors=$(counter rx_length_errors)
	expect errors -eq 1
	nic_down
}

# ---- interrupts ----

moderation() {
	nic_up
	knob delay_ns 1000
	# rx-usecs, rx-frames; for each of twelve frames, the frame whose arrival (or the time after
	# it, us) triggers the interrupt that delivers it; number of interrupts
	while read -r usecs frames after wait_us interrupts; do
		must ethtool -C hw0p rx-usecs "$usecs" rx-frames "$frames"
		before=$(counter rx_interrupts)
		nic <<-EOF
			sink = b.port(SOFT | RX_SOFT)
			b.log("R")
			sock = a.port()
			for number in range(12):
			    sock.send(tcp(seq=number))
			time.sleep(0.02)
			arrivals = [line[1] for line in b.truth()]
			hosts = [host for _, host, _ in drain(sink)]
			late = [host - arrivals[after] - $wait_us * 1000
			        for host, after in zip(hosts, [$after])]
			result(seen=len(hosts), soon=min(late), late=max(late))
		EOF
		say "rx-usecs $usecs rx-frames $frames: $soon..$late ns late"
		interrupts=$(($(counter rx_interrupts) - before - interrupts))
		expect interrupts -eq 0 "rx-usecs $usecs rx-frames $frames"
		expect seen -eq 12
		expect soon -ge -600
		expect late -le $slack_ns
	done <<-EOF
		0 1 0,1,2,3,4,5,6,7,8,9,10,11 0 12
		50 1 0,1,2,3,4,5,6,7,8,9,10,11 0 12
		0 64 0,1,2,3,4,5,6,7,8,9,10,11 0 12
		50 0 0,0,0,0,0,0,0,0,0,0,0,0 50 1
		1000 12 11,11,11,11,11,11,11,11,11,11,11,11 0 1
		1000 5 4,4,4,4,4,9,9,9,9,9 0 3
		1000 5 4,4,4,4,4,9,9,9,9,9 0 3
	EOF
	refused ethtool -C hw0p rx-usecs 0 rx-frames 0
	refused ethtool -C hw0p rx-usecs 1000001
	refused ethtool -C hw0p tx-usecs 5
	nic_down
}

# jitter_ns: packets of different flows have random delays up to this limit; packets of one flow keep
# their order.
random_delay() {
	nic_up
	knob jitter_ns 100000 hw0p
	nic <<-EOF
		sink, sock = b.port(SOFT | RX_SOFT), a.port()
		b.log("R")
		for number in range(3000):
		    sock.send(tcp(sport=number))
		    time.sleep(0.00002)
		time.sleep(0.01)
		arrivals = {line[3]: line[1] for line in b.truth()}
		got = [(struct.unpack_from(">H", data, 34)[0], host) for data, host, _ in drain(sink)]
		late = [host - arrivals[port] for port, host in got]
		low, middle, high = statistics.quantiles(late)
		ports = [port for port, _ in got]
		say("late by", min(late), round(low), round(middle), round(high), max(late), "ns")
		result(got=len(got), low=low, middle=middle, high=high, least=min(late), most=max(late),
		       overtook=sum(x > y for x, y in zip(ports, ports[1:])))
		b.truth()
		for number in range(1000):
		    sock.send(tcp(seq=number))
		    if number % 10 == 0:
		        time.sleep(0.00002)
		# A packet that is delayed when the random delay is switched off is not overtaken by
		# its flow.
		b.write("jitter_ns", 0)
		sock.send(tcp(seq=1000))
		time.sleep(0.01)
		order = [struct.unpack_from(">I", data, 38)[0] for data, _, _ in drain(sink)]
		result(order=order == list(range(1001)))
		sock.send(tcp())
		time.sleep(0.01)
		result(quiet=drain(sink)[0][1] - b.truth()[-1][1])
	EOF
	expect got -eq 3000
	expect_near middle 50000 5
	expect low -ge 22500
	expect low -le 27500
	expect high -ge 72500
	expect high -le 77500
	expect least -ge -600
	expect least -le 1000
	expect most -ge 99000
	expect most -le $((100000 + slack_ns))
	expect overtook -ge 100
	expect order -eq 1
	expect quiet -le $slack_ns
	most=$(counter rx_jitter_max_ns)
	expect most -ge 99900
	expect most -le 100000
	nic_down
}

# ---- timestamps ----

# A hardware timestamp is the time of the receiving NIC's clock at the arrival, also if the host
# handles the packet later, or if the clock is stepped or the filter is changed while frames wait.
rx_timestamps_are_exact() {
	nic_up
	knob delay_ns 5000
	knob jitter_ns 50000 hw0p
	knob phc_drift_ppb 50000 hw0p
	knob phc_drift_ppb -300000 hw0
	nic <<-EOF
		sink, sock = b.port(RX_HARD | RAW_HARD), a.port()
		b.log("R")
		time.sleep(10)
		result(off=b.hwtstamp(), without_filter=0)
		sock.send(tcp())
		time.sleep(0.001)
		result(without_filter=drain(sink)[0][2], on=b.hwtstamp(ALL), is_on=b.hwtstamp())
		b.truth()
		phc, mono = b.phc_now()
		for number in range(500):
		    sock.send(tcp(sport=number))
		    time.sleep(0.00003)
		time.sleep(0.001)
		timestamps = {struct.unpack_from(">H", data, 34)[0]: timestamp for data, _, timestamp in drain(sink)}
		truth = b.truth()
		expected = lambda at: phc + (at - mono) * 1000050000 // 1000000000
		result(with_timestamp=len(timestamps), wrong=sum(timestamps[port] != timestamp for _, _, timestamp, port, *_ in truth),
		       clock_error=max(abs(timestamp - expected(at)) for _, at, timestamp, *_ in truth))
		# At the step the first frame has arrived and waits in the ring; the second is in
		# the cable.
		for nic in a, b:
		    nic.ethtool("-C", "rx-usecs", 500, "rx-frames", 0)
		a.write("delay_ns", 200000)
		b.write("jitter_ns", 0)
		sock.send(tcp(sport=1)), time.sleep(0.0003), sock.send(tcp(sport=2))
		b.write("phc_step_ns", 10**9)
		time.sleep(0.01)
		old, new = [timestamp for _, _, timestamp in drain(sink)]
		(_, at, said, *_), (_, at2, said2, *_) = b.truth()
		result(step=round((said2 - said - (at2 - at)) / 10**6), same=(said, said2) == (old, new))
		# The filter at the arrival decides.
		sock.send(tcp(sport=1)), time.sleep(0.0003), sock.send(tcp(sport=2))
		b.hwtstamp(NONE)
		time.sleep(0.01)
		old, new = [timestamp for _, _, timestamp in drain(sink)]
		result(before=old != 0, now=new)
	EOF
	expect off -eq 0
	expect without_filter -eq 0
	expect on -eq 1
	expect is_on -eq 1
	expect with_timestamp -eq 500
	expect wrong -eq 0
	expect clock_error -le 1
	expect step -eq 1000
	expect same -eq 1 "timestamps of packets and of the log"
	expect before -eq 1
	expect now -eq 0
	nic_down
}

tx_timestamps_are_exact() {
	nic_up
	knob phc_drift_ppb -300000
	must ethtool -s hw0 speed 100
	nic <<-EOF
		a.log("T")
		sock = a.port(TX_HARD | RAW_HARD)
		sock.send(tcp())
		time.sleep(0.01)
		result(unasked=len(drain(sock, socket.MSG_ERRQUEUE)), tx=a.hwtstamp(NONE, tx=1))
		a.truth()
		for number in range(5):
		    sock.send(tcp(seq=number))
		time.sleep(0.01)
		sent = [timestamp for _, _, timestamp in drain(sock, socket.MSG_ERRQUEUE)]
		result(timestamps=len(sent), same=sent == [timestamp for _, _, timestamp, *_ in a.truth()],
		       one_step=a.hwtstamp(NONE, tx=2))
	EOF
	expect unasked -eq 0
	expect tx -eq 0
	expect timestamps -eq 5
	expect same -eq 1
	expect one_step -eq -34
	nic_down
}

# stamp_host: timestamps by the NIC's clock of the times at which the host handles a frame: those of
# received frames are with the kernel's, and those of sent packets do not wait for the link.
timestamps_of_the_host() {
	nic_up
	must ethtool -s hw0 speed 100
	must ethtool --set-priv-flags hw0 bql off
	knob stamp_host 1
	knob stamp_host 1 hw0p
	knob jitter_ns 50000 hw0p
	nic <<-EOF
		sock, sink = a.port(TX_HARD | RAW_HARD), b.port(SOFT | RX_SOFT | RX_HARD | RAW_HARD)
		b.log("R")
		result(tx=a.hwtstamp(NONE, tx=1), rx=b.hwtstamp(ALL))
		given = []
		for number in range(50):
		    phc, mono = a.phc_now()
		    sock.send(tcp(sport=number))
		    given.append(phc)
		time.sleep(0.02)
		sent = [timestamp for _, _, timestamp in drain(sock, socket.MSG_ERRQUEUE)]
		result(sent=len(sent), late=max(at - begun for at, begun in zip(sent, given)))
		phc, mono = b.phc_now()
		got = [(host - mono, timestamp - phc) for _, host, timestamp in drain(sink)]
		arrived = {timestamp - phc for _, _, timestamp, *_ in b.truth()}
		result(got=len(got), apart=max(abs(host - timestamp) for host, timestamp in got),
		       on_the_link=sum(timestamp in arrived for _, timestamp in got))
	EOF
	expect tx -eq 0
	expect rx -eq 1
	expect sent -eq 50
	expect late -le 10000 "packets of 123 us each that wait for the link"
	expect got -eq 50
	expect apart -le $slack_ns
	expect on_the_link -eq 0
	nic_down
}

# stamp_step_ns: timestamps are the last multiple of it before the time that the log has for the packet
# or frame.
timestamps_count_in_steps() {
	nic_up
	must ethtool -s hw0 speed 100
	knob phc_drift_ppb 50000 hw0p
	knob stamp_step_ns 1000
	knob stamp_step_ns 1000 hw0p
	nic <<-EOF
		sock, sink = a.port(TX_HARD | RAW_HARD), b.port(RX_HARD | RAW_HARD)
		a.log("T"), b.log("R")
		result(tx=a.hwtstamp(NONE, tx=1), rx=b.hwtstamp(ALL))
		for number in range(50):
		    sock.send(tcp(sport=number))
		time.sleep(0.02)
		sent = [timestamp for _, _, timestamp in drain(sock, socket.MSG_ERRQUEUE)]
		got = [timestamp for _, _, timestamp in drain(sink)]
		for name, stamps, truth in ("sent", sent, a.truth()), ("got", got, b.truth()):
		    late = [exact - stamp for stamp, (_, _, exact, *_) in zip(stamps, truth)]
		    result(**{name: len(stamps), name + "_rest": sum(stamp % 1000 for stamp in stamps),
			      name + "_least": min(late), name + "_most": max(late)})
	EOF
	for end in sent got; do
		expect $end -eq 50
		expect ${end}_rest -eq 0
		expect ${end}_least -ge 0
		expect ${end}_most -ge 500
		expect ${end}_most -le 999
	done
	nic_down
}

filters() {
	nic_up
	nic <<-'EOF'
		sink, sock = b.port(RX_HARD | RAW_HARD), a.port()
		def ptp(kind, version=2):
		    return bytes([kind, version, 0, 44]) + bytes(40)
		def with_timestamp(data):
		    sock.send(data)
		    time.sleep(0.001)
		    return drain(sink)[0][2] != 0
		l2 = OTHER + OTHER + b"\x88\xf7"
		cases = {"tcp": tcp(), "sync": l2 + ptp(0), "delay": l2 + ptp(1), "announce": l2 + ptp(11),
		         "follow_up": l2 + ptp(8), "udp_sync": udp(319, ptp(0)), "udp_other": udp(320, ptp(11)),
		         "version_1": l2 + ptp(0, 1)}
		for name, filter in ("none", NONE), ("all", ALL), ("ptp", PTP):
		    result(**{name: b.hwtstamp(filter)})
		    for case, data in cases.items():
		        result(**{name + "_" + case: with_timestamp(data)})
		# A request for part of a filter gives the whole filter.
		result(v2_sync=b.hwtstamp(13), ntp=b.hwtstamp(15), v1=b.hwtstamp(3), nonsense=b.hwtstamp(99))
		try:
		    b.write("stamp_all", 0)
		except OSError as error:
		    result(busy=error.errno == errno.EBUSY)
		b.hwtstamp(PTP)
		b.write("stamp_all", 0)
		result(weak_all=b.hwtstamp(ALL), weak_ntp=b.hwtstamp(15), weak_ptp=b.hwtstamp(PTP), weak_is=b.hwtstamp())
	EOF
	for case in tcp sync delay announce follow_up udp_sync udp_other version_1; do
		expect none_$case -eq 0
		expect all_$case -eq 1
	done
	for case in tcp announce follow_up udp_other version_1; do
		expect ptp_$case -eq 0
	done
	for case in sync delay udp_sync; do
		expect ptp_$case -eq 1
	done
	expect v2_sync -eq 12
	expect ntp -eq 1
	expect v1 -eq 1
	expect nonsense -eq -34
	expect busy -eq 1
	expect weak_all -eq -34
	expect weak_ntp -eq -34
	expect weak_ptp -eq 12
	expect weak_is -eq 12
	ethtool -T hw0p >"$work/weak"
	ethtool -T hw0 >"$work/able"
	! grep -q '^[[:space:]]*all' "$work/weak" || fail "ethtool -T shows the filter all without stamp_all"
	for word in hardware-transmit hardware-receive hardware-raw-clock ptpv2-event all; do
		grep -q "^[[:space:]]*$word" "$work/able" || fail "ethtool -T does not show $word"
	done
	clock=$(sed -n 's/^PTP Hardware Clock: //p' "$work/able")
	[ -e "/sys/class/net/hw0/device/ptp/ptp$clock" ] || fail "ethtool -T shows another NIC's clock"
	nic_down
}

# ---- clocks ----

clock_runs_as_set() {
	nic_up
	nic <<-'EOF'
		def runs(drift, seconds):
		    """The clock's error after SECONDS with this drift, ns."""
		    a.write("phc_drift_ppb", drift)
		    (phc, mono), _ = a.phc_now(), time.sleep(seconds)
		    phc2, mono2 = a.phc_now()
		    return abs(phc2 - phc - (mono2 - mono) * (10**9 + drift) // 10**9)
		off = max(runs(drift, seconds) for seconds in (0.001, 3.3, 3600)
		          for drift in (0, 1, -1, 50000, -50000, 499999, 1000000, -1000000))
		# 3000 readings and writes of the drift add no error.
		a.write("phc_drift_ppb", 123457)
		phc, mono = a.phc_now()
		for _ in range(3000):
		    time.sleep(0.0123)
		    a.phc_now()
		    a.write("phc_drift_ppb", 123457)
		phc2, mono2 = a.phc_now()
		result(off=off, drifted=abs(phc2 - phc - (mono2 - mono) * (10**9 + 123457) // 10**9))
		a.write("phc_drift_ppb", 0)
		for name, ns in ("back", -10**18), ("on", 5), ("off_again", -20000):
		    (phc, mono), _ = a.phc_now(), a.write("phc_step_ns", ns)
		    phc2, mono2 = a.phc_now()
		    result(**{name: phc2 - phc - (mono2 - mono) - ns})
		before = time.monotonic_ns()
		a.write("phc_set_ns", 0)
		phc, mono = a.phc_now()
		result(set=0 <= mono - phc - before <= 100000)
	EOF
	expect off -le 1
	expect drifted -le 1
	expect back -eq 0
	expect on -eq 0
	expect off_again -eq 0
	expect set -eq 1
	nic_down
}

# phc_wander_ppb_per_s: the drift changes every 10 ms by a hundredth of this value.
clock_wanders() {
	nic_up
	nic <<-'EOF'
		from fractions import Fraction
		for name, start, wander, seconds in (("warm", 0, 10000, 10), ("cold", 50000, -1234, 33.337),
		                                     ("odd", 0, 7, 20)):
		    a.write("phc_wander_ppb_per_s", 0)
		    a.write("phc_drift_ppb", start)
		    phc, mono = a.phc_now()
		    a.write("phc_wander_ppb_per_s", wander)
		    began = (mono + a.phc_now()[1]) // 2
		    time.sleep(seconds)
		    phc2, mono2 = a.phc_now()
		    gain, at, drift = Fraction(start * (began - mono), 10**9), began, Fraction(start)
		    while at + 10**7 <= mono2:
		        gain += drift * 10**7 / 10**9
		        drift += Fraction(wander, 100)
		        at += 10**7
		    gain += drift * (mono2 - at) / 10**9
		    say(name, "gained", round(gain), "ns")
		    result(**{name: abs(phc2 - phc - (mono2 - mono) - gain) * 1000,
		              name + "_drift": abs(int(a.read("phc_drift_ppb")) - drift) * 100})
		# The drift stops at its limit.
		a.write("phc_wander_ppb_per_s", 1000000)
		time.sleep(3)
		result(most=int(a.read("phc_drift_ppb")))
	EOF
	for name in warm cold odd; do
		# ps, and hundredths of a ppb. The start of the change is known within about 100 us.
		expect ${name} -le 3000
		expect ${name}_drift -le 12500
	done
	expect most -eq 1000000
	nic_down
}

clock_is_a_ptp_clock() {
	nic_up
	nic <<-'EOF'
		device = os.listdir("/sys/class/net/hw0/device/ptp")[0]
		file = os.open("/dev/" + device, os.O_RDWR)
		clock = ~file << 3 | 3
		def adjust(modes, ppm=0, ns=0):
		    # struct timex: modes, offset, freq, ... time.tv_sec, tv_usec
		    words = [modes, 0, int(ppm * 65536), 0, 0, 0, 0, 0, 0, ns // S, ns % S]
		    timex = array.array("q", words + [0] * 20)
		    if libc.clock_adjtime(clock, ctypes.c_void_p(timex.buffer_info()[0])) < 0:
		        return ctypes.get_errno()
		    return 0
		a.write("phc_drift_ppb", 50000)
		result(fine=adjust(2, ppm=-75))
		phc, mono = a.phc_now()
		time.sleep(1000)
		phc2, mono2 = a.phc_now()
		result(ran=phc2 - phc - (mono2 - mono) + (mono2 - mono) * 25 // 10**6)
		result(too_fast=adjust(2, ppm=1001), at_most=adjust(2, ppm=1000), normal=adjust(2))
		before = time.clock_gettime_ns(clock)
		result(step=adjust(0x2100, ns=-3 * S))
		result(stepped=before - 3 * S <= time.clock_gettime_ns(clock) <= before - 3 * S + 100000)
		time.clock_settime_ns(clock, 77 * S)
		result(is_set=77 * S <= time.clock_gettime_ns(clock) <= 77 * S + 100000)
		# The NIC is deleted while a process has its clock open.
		subprocess.run(["ip", "link", "del", "hw0"], check=True)
		try:
		    time.clock_gettime_ns(clock)
		except OSError as error:
		    result(gone=error.errno == errno.ENODEV)
	EOF
	expect fine -eq 0
	expect ran -ge -1
	expect ran -le 1
	expect too_fast -eq 34
	expect at_most -eq 0
	expect normal -eq 0
	expect step -eq 0
	expect stepped -eq 1
	expect is_set -eq 1
	expect gone -eq 1
}

# ---- refusals ----

invalid_values_are_refused() {
	nic_up
	knob delay_ns 777
	while read -r name values; do
		for value in $values; do
			! knob "$name" "$value" || fail "$name takes '$value'"
		done
	done <<-EOF
		delay_ns -1 1000000001 x 1.5 99999999999999999999 0x
		jitter_ns -1 1000000001 many
		jitter_seed -1 x
		phc_drift_ppb 1000001 -1000001 fast
		phc_wander_ppb_per_s 1000001 -1000001 x
		phc_step_ns x 9223372036854775807 -9223372036854775808 9223372036854775808
		phc_set_ns -1 9000000000000000001 9223372036854775807 now
		stamp_all 2 -1 yes
		stamp_host 2 -1 yes
		stamp_step_ns -1 1000001 x
		stamp_wrong -1 1000001 x
		phc_now 1
		tx_queue 1
	EOF
	knob phc_set_ns 9000000000000000000 || fail "phc_set_ns refuses its maximum"
	[ "$(knob delay_ns)" = 777 ] || fail "a refusal has changed delay_ns"
	for speed in 0 1000001; do
		refused ethtool -s hw0 speed $speed
	done
	refused ethtool -s hw0 duplex half
	refused ethtool -s hw0 autoneg on
	speed=$(cat /sys/class/net/hw0/speed)
	expect speed -eq 10000
	truth=$(knob truth_dir)
	for value in -1 16777217 x; do
		! echo $value 2>/dev/null >"$truth/truth_enable" || fail "truth_enable takes $value"
	done
	! echo RX 2>/dev/null >"$truth/truth_types" || fail "truth_types takes RX"
	[ "$(cat "$truth/truth_types")" = RTQ ] || fail "truth_types is $(cat "$truth/truth_types")"
	nic_down
}

# The log keeps the newest entries, in order; reading removes entries.
log_keeps_the_newest() {
	nic_up
	nic <<-'EOF'
		b.log("R", 100)
		sock = a.port()
		for number in range(250):
		    sock.send(tcp(seq=number))
		time.sleep(0.01)
		with open(b.truth_dir + "/truth_lost") as file:
		    lost = int(file.read())
		seqs = [line[5] for line in b.truth()]
		result(lost=lost, newest=seqs == [number + 1460 for number in range(150, 250)], again=len(b.truth()))
		b.log("R", 0)
		sock.send(tcp())
		time.sleep(0.01)
		result(off=len(b.truth()))
		# A reader with small reads, which still has the file open when the NIC is deleted.
		b.log("RT", 1000)
		for number in range(300):
		    sock.send(tcp(seq=number))
		time.sleep(0.01)
		with open(b.truth_dir + "/truth", "rb", buffering=0) as file:
		    text = b"".join(iter(lambda: file.read(7), b""))
		    result(lines=text.count(b"\n"), whole=text.endswith(b"\n"))
		    subprocess.run(["ip", "link", "del", "hw0"], check=True)
		    try:
		        result(after=len(file.read(10)))
		    except OSError as error:
		        result(after=0)
	EOF
	expect lost -eq 150
	expect newest -eq 1
	expect again -eq 0
	expect off -eq 0
	expect lines -eq 300
	expect whole -eq 1
	expect after -eq 0
}

# ---- TCP ----

tcp_up() {
	load_hwnic
	must ip -batch - <<-EOF
		netns add h1
		netns add h2
		link add hw0 type hwnic
		link set hw0 netns h1 name eth0 address 02:00:00:00:00:01
		link set hw0p netns h2 name eth0 address 02:00:00:00:00:02
	EOF
	for end in 1 2; do
		must ip netns exec h$end sh -c "
			echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6
			echo 2000 >/sys/class/net/eth0/hwnic/delay_ns
			ethtool -C eth0 rx-usecs 8 rx-frames 0
			echo '4096 4194304 8388608' >/proc/sys/net/ipv4/tcp_rmem
			echo '4096 1048576 8388608' >/proc/sys/net/ipv4/tcp_wmem
			ip -batch - <<-EOF
				address add 10.7.2.$end/24 dev eth0
				link set eth0 up
				neighbour add 10.7.2.$((3 - end)) dev eth0 lladdr 02:00:00:00:00:0$((3 - end)) nud permanent
			EOF"
	done
}

tcp_down() {
	must ip -n h1 link del eth0
	hosts_down
}

# transfer FROM TO ADDRESS SECONDS: a TCP transfer; sets goodput, Mb/s, of the receiver, and intact:
# 1 if the data is unchanged
transfer() {
	packets <<-EOF
		import hashlib, threading
		with inside("$2"):
		    listener = socket.socket()
		    listener.bind(("$3", 9))
		    listener.listen()
		with inside("$1"):
		    sender = socket.socket()
		sender.connect(("$3", 9))
		receiver, _ = listener.accept()
		receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 17)
		sent, came, marks = hashlib.md5(), hashlib.md5(), []
		block = random.Random(1).randbytes(1 << 18)
		def send():
		    end = time.monotonic() + $4
		    while time.monotonic() < end:
		        sender.sendall(block)
		        sent.update(block)
		    sender.close()
		thread = threading.Thread(target=send)
		thread.start()
		total = 0
		while data := receiver.recv(1 << 20):
		    total += len(data)
		    came.update(data)
		    marks.append((time.monotonic_ns(), total))
		thread.join()
		(at, bytes), (at2, bytes2) = marks[len(marks) // 8], marks[-2]
		result(goodput=(bytes2 - bytes) * 8000 // (at2 - at), intact=sent.digest() == came.digest())
	EOF
}

# Payload is 1448 of the 1538 bytes that a frame takes.
tcp_fills_the_link() {
	tcp_up
	for way in "h1 h2 10.7.2.2" "h2 h1 10.7.2.1"; do
		# shellcheck disable=SC2086 # three words
		transfer $way 0.3
		expect intact -eq 1
		say "$way: $goodput Mb/s"
		expect goodput -ge 9400
		expect goodput -le 9440
	done
	# With GRO a receiver ACKs many frames at once; with TSO a packet becomes many frames.
	for ns in h1 h2; do
		eval "$(ip netns exec $ns ethtool -S eth0 | sed -n 's/^ *\([rt]x_[a-z]*\): \(.*\)/\1=\2/p')"
		# shellcheck disable=SC2154 # rx_frames, tx_packets, tx_frames
		say "$ns: $rx_frames frames in, $tx_packets packets of $tx_frames frames out"
		# shellcheck disable=SC2154
		many=$((tx_frames / tx_packets))
		expect many -ge 4
	done
	must ip netns exec h2 ethtool -K eth0 gro off
	must ip netns exec h1 ethtool -K eth0 tso off gso off
	transfer h1 h2 10.7.2.2 0.05
	expect intact -eq 1
	expect goodput -ge 9000
	tcp_down
}

tcp_over_vlan_with_random_delay() {
	tcp_up
	for end in 1 2; do
		must ip -n h$end -batch - <<-EOF
			link add v5 link eth0 type vlan id 5
			address add 10.7.5.$end/24 dev v5
			link set v5 up
		EOF
		must ip netns exec h$end sh -c 'echo 30000 >/sys/class/net/eth0/hwnic/jitter_ns'
	done
	truth2=$(ip netns exec h2 cat /sys/class/net/eth0/hwnic/truth_dir)
	echo R >"$truth2/truth_types"
	echo 100000 >"$truth2/truth_enable"
	transfer h1 h2 10.7.5.2 0.05
	expect intact -eq 1
	say "$goodput Mb/s"
	expect goodput -ge 9000
	seen=$(wc -l <"$truth2/truth")
	expect seen -ge 30000
	for ns in h1 h2; do
		reordered=$(ip netns exec $ns sh -c "awk '/^TcpExt/ { for (i = 1; i <= NF; i++)
			if (name[i] == \"TCPOFOQueue\") print \$i; else name[i] = \$i }' /proc/net/netstat")
		expect reordered -eq 0
	done
	tcp_down
}

# A packet is lost as a whole if memory for it cannot be allocated.
sending_may_fail() {
	can_fail || return 0
	tcp_up
	packets <<-'EOF'
		with inside("h2"):
		    listener = socket.socket()
		    listener.bind(("10.7.2.2", 9))
		    listener.listen()
		with inside("h1"):
		    sender = socket.socket()
		sender.connect(("10.7.2.2", 9))
		receiver, _ = listener.accept()
		fail = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
		lost = sent = 0
		came = b""
		data = random.Random(1).randbytes(1 << 16)
		for number in range(1, 80):
		    os.pwrite(fail, str(number).encode(), 0)
		    try:
		        sent += sender.send(data[sent % 65536:])
		    except OSError:
		        pass
		    os.pwrite(fail, b"0", 0)
		    while len(came) < sent:
		        came += receiver.recv(1 << 20)
		result(sent=sent, intact=all(came[at:at + 65536] == data[:len(came) - at] for at in range(0, sent, 65536)))
	EOF
	expect intact -eq 1
	expect sent -ge 1000000
	lost=$(ip netns exec h1 ethtool -S eth0 | awk '$1 == "tx_no_memory:" { print $2 }')
	say "$lost packets were lost without memory"
	expect lost -ge 5
	tcp_down
}

# The link goes down and up, rings and settings change, and at last the module is unloaded, all
# under traffic.
unload_under_traffic() {
	tcp_up
	"$python" -I - >"$work/background" 2>&1 <<-'EOF' &
		import ctypes, os, socket, threading
		def inside(ns):
		    file = os.open("/run/netns/" + ns, os.O_RDONLY)
		    assert not ctypes.CDLL(None).setns(file, 0)
		    return socket.socket()
		listener, sender = inside("h2"), inside("h1")
		listener.bind(("10.7.2.2", 9))
		listener.listen()
		sender.connect(("10.7.2.2", 9))
		receiver, _ = listener.accept()
		def work(step):
		    try:
		        while step():
		            pass
		    except OSError:
		        pass
		for step in lambda: receiver.recv(1 << 20), lambda: sender.send(bytes(1 << 18)):
		    threading.Thread(target=work, args=[step], daemon=True).start()
		threading.Event().wait()
	EOF
	traffic_pid=$!
	sleep 0.05
	bql=on
	for round in 1 2 3; do
		[ $bql = off ] && bql=on || bql=off
		must ip netns exec h1 ethtool -C eth0 rx-usecs $((round * 7)) rx-frames $((round * 3 - 2))
		must ip netns exec h2 ethtool -G eth0 tx $((round * 40)) rx $((round * 40))
		must ip netns exec h1 ethtool --set-priv-flags eth0 bql $bql
		must ip netns exec h1 ethtool -s eth0 speed $((round * 333))
		must ip netns exec h2 sh -c "echo $((round * 1000)) >/sys/class/net/eth0/hwnic/jitter_ns"
		must ip netns exec h1 sh -c "echo $((9000 - round * 2000)) >/sys/class/net/eth0/hwnic/delay_ns"
		sleep 0.02
		must ip -n h$((round % 2 + 1)) link set eth0 down
		sleep 0.01
		must ip -n h$((round % 2 + 1)) link set eth0 up
		must ip -n h$((round % 2 + 1)) neighbour replace 10.7.2.$((2 - round % 2)) dev eth0 \
			lladdr 02:00:00:00:00:0$((2 - round % 2)) nud permanent
		# Wait for TCP's retransmission.
		sleep 0.3
	done
	before=$(ip netns exec h2 cat /sys/class/net/eth0/statistics/rx_bytes)
	sleep 0.05
	moved=$(($(ip netns exec h2 cat /sys/class/net/eth0/statistics/rx_bytes) - before))
	expect moved -ge 1000000 "bytes received after the changes"
	must rmmod hwnic
	! ip -n h1 link show eth0 >/dev/null 2>&1 || fail "h1's end is left"
	[ ! -e /sys/kernel/debug/hwnic ] || fail "the NICs' logs are left"
	{ kill $traffic_pid && wait $traffic_pid; } 2>/dev/null
	hosts_down
}

module_goes() {
	load_hwnic
	must ip link add hw0 type hwnic
	must rmmod hwnic
	left=$(list_links | grep -c '^hw')
	expect left -eq 0
}

run_cases pair_comes_and_goes names_do_not_collide creation_may_fail pair_in_namespaces \
	link_is_exact speed_is_announced gso_packets_become_frames ring_stops_and_wakes \
	rx_ring_overflows too_long_is_an_error moderation random_delay rx_timestamps_are_exact \
	tx_timestamps_are_exact timestamps_of_the_host timestamps_count_in_steps filters \
	clock_runs_as_set clock_wanders clock_is_a_ptp_clock invalid_values_are_refused \
	log_keeps_the_newest tcp_fills_the_link tcp_over_vlan_with_random_delay sending_may_fail \
	unload_under_traffic module_goes
