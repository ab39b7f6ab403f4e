# SPDX-License-Identifier: GPL-2.0
"""Send single packets through a qdisc and record when each one left, for the qdisc's tests.

packets() of qdisc_lib.sh runs a test's Python lines with this module imported. A
sender can give each packet a transmit time (SO_TXTIME), set a pacing rate, or set a
priority or DSCP. A receiver at the other end of the veth pair records when each packet
arrived. In the guest's virtual time that is the time at which the packet left the qdisc.
result() prints KEY=NUMBER for the shell; say() prints a diagnostic line.
"""

import contextlib
import ctypes
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import time

SO_MAX_PACING_RATE = 47
SO_TXTIME = 61
SO_TIMESTAMPNS = 35
SCM_TXTIME = SO_TXTIME
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
MONOTONIC, REALTIME, TAI = time.CLOCK_MONOTONIC, time.CLOCK_REALTIME, 11
ETH_P_ALL = 3
ETHERNET, IPV4, UDP = 14, 20, 8
H1, H2 = "10.7.2.1", "10.7.2.2"
MS, S = 10**6, 10**9

libc = ctypes.CDLL(None, use_errno=True)
home = os.open("/proc/self/ns/net", os.O_RDONLY)


def result(**results):
	for key, value in results.items():
		print(f"{key}={int(value)}")


def say(*words):
	print("#", *words)


def setns(fd):
	if libc.setns(fd, 0) < 0:
		raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(ns):
	if ns:
		there = os.open("/run/netns/" + ns, os.O_RDONLY)
		setns(there)
		os.close(there)
	try:
		yield
	finally:
		setns(home)


def realtime_offset():
	"""CLOCK_REALTIME minus CLOCK_MONOTONIC, ns. Each reading of a clock takes the
	same virtual time, so the real time is read in the middle of the other two."""
	before = time.monotonic_ns()
	real = time.clock_gettime_ns(REALTIME)
	after = time.monotonic_ns()
	return real - (before + after) // 2


OFFSET = realtime_offset()


# ---- sending ----

def source(ns=None, to=H2, port=9, rate=None, clock=None, priority=None, tos=None,
	   kind=socket.SOCK_DGRAM):
	"""A connected UDP socket. RATE, bytes/s, is SO_MAX_PACING_RATE; CLOCK is that
	of the socket's transmit times (SO_TXTIME)."""
	family = socket.AF_INET6 if ":" in to else socket.AF_INET
	with inside(ns or "h1"):
		sock = socket.socket(family, kind)
	sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
	if priority is not None:
		sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
	if tos is not None:
		sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
	if rate is not None:
		sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE,
				struct.pack("=Q", rate))
	if clock is not None:
		sock.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", clock, 0))
	if kind == socket.SOCK_DGRAM:
		sock.connect((to, port))
	return sock


def send_at(sock, txtime, data):
	"""Send a packet with a transmit time, ns of the socket's clock."""
	sock.sendmsg([data], [(socket.SOL_SOCKET, SCM_TXTIME, struct.pack("=Q", txtime))])


def payload(number, txtime=0, size=1000):
	"""Data from which the receiver reads the packet's number and transmit time."""
	return struct.pack("=QQ", number, txtime).ljust(size, b"\0")


def on_the_wire(size):
	"""Bytes that a qdisc counts for a UDP packet with SIZE bytes of data."""
	return size + UDP + IPV4 + ETHERNET


# ---- receiving ----

class Packet:
	def __init__(self, at, data, tos=0, kind=0):
		self.at = at		# CLOCK_MONOTONIC, ns
		self.data = data
		self.tos = tos
		self.kind = kind

	@property
	def number(self):
		return struct.unpack_from("=Q", self.data)[0]

	@property
	def txtime(self):
		return struct.unpack_from("=Q", self.data, 8)[0]


class Receiver:
	def __init__(self, sock):
		self.sock = sock
		sock.setblocking(False)
		sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
		sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
		# The kernel enables receive timestamps in a work item, a little later.
		time.sleep(0.002)

	def keep(self, packet):
		return True

	def take(self, count=1 << 30, seconds=1.0, quiet=None, every=0.0100137):
		"""Receive until there are COUNT packets, or SECONDS are over, or none came for
		QUIET seconds. Sleeps in between: waking up for each packet would take virtual
		time and delay the next one."""
		packets = []
		end = time.monotonic() + seconds
		last = time.monotonic()
		while len(packets) < count and time.monotonic() < end:
			time.sleep(max(0, min(every, end - time.monotonic())))
			every = min(2 * every, 0.32)
			before = len(packets)
			self.drain(packets)
			if len(packets) > before:
				last = time.monotonic()
			elif quiet is not None and time.monotonic() - last > quiet:
				break
		return packets

	def drain(self, packets):
		while True:
			try:
				data, ancillary, _, address = self.sock.recvmsg(1 << 19, 256)
			except BlockingIOError:
				return
			at = tos = 0
			for _, kind, value in ancillary:
				if kind == SO_TIMESTAMPNS:
					seconds, ns = struct.unpack("=qq", value[:16])
					at = seconds * S + ns - OFFSET
				elif kind == socket.IP_TOS:
					tos = value[0]
			kind = address[2] if self.sock.family == socket.AF_PACKET else 0
			packet = Packet(at, data, tos, kind)
			if self.keep(packet):
				packets.append(packet)


class Sink(Receiver):
	"""A UDP socket in a namespace."""

	def __init__(self, ns="h2", addr=H2, port=9):
		family = socket.AF_INET6 if ":" in addr else socket.AF_INET
		with inside(ns):
			sock = socket.socket(family, socket.SOCK_DGRAM)
		sock.bind((addr, port))
		sock.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
		super().__init__(sock)


class Tap(Receiver):
	"""A packet socket: all frames that a device receives (or sends, with OUTGOING)."""

	def __init__(self, ns="h2", dev="eth0", outgoing=False):
		with inside(ns):
			sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
					     socket.htons(ETH_P_ALL))
		sock.bind((dev, ETH_P_ALL))
		self.outgoing = outgoing
		super().__init__(sock)

	def keep(self, packet):
		return (packet.kind == 4) == self.outgoing	# PACKET_OUTGOING


def checksum(data):
	if len(data) % 2:
		data += b"\0"
	total = sum(struct.unpack(f">{len(data) // 2}H", data))
	while total >> 16:
		total = (total & 0xffff) + (total >> 16)
	return total


class Segment:
	"""A TCP segment over IPv4 or IPv6, parsed from a frame that a Tap received."""

	def __init__(self, packet):
		frame = packet.data
		self.at = packet.at
		self.is_tcp = False
		self.length = len(frame)
		protocol, = struct.unpack_from(">H", frame, 12)
		self.v6 = protocol == 0x86dd
		if protocol == 0x0800:
			ip = frame[14:]
			header = (ip[0] & 15) * 4
			self.tos = ip[1]
			total, = struct.unpack_from(">H", ip, 2)
			# The length of a BIG TCP packet does not fit, and is 0.
			total = total or len(ip)
			kind = ip[9]
			self.ip_ok = checksum(ip[:header]) == 0xffff
			addresses = ip[12:20]
		elif self.v6:
			ip = frame[14:]
			header = 40
			self.tos = (struct.unpack_from(">H", ip)[0] >> 4) & 255
			total = 40 + struct.unpack_from(">H", ip, 4)[0]
			kind = ip[6]
			# BIG TCP: the length is in a hop-by-hop option (jumbo payload).
			if not kind and ip[42:44] == b"\xc2\x04":
				kind, header, total = ip[40], 48, len(ip)
			self.ip_ok = True
			addresses = ip[8:40]
		else:
			return
		if kind != 6:
			return
		self.is_tcp = True
		tcp = ip[header:total]
		self.sport, self.dport, self.seq, self.ack = struct.unpack_from(">HHII", tcp)
		self.flags = tcp[13]
		self.data = tcp[(tcp[12] >> 4) * 4:]
		pseudo = addresses + struct.pack(">IHBB", len(tcp), 0, 0, 6)
		self.tcp_ok = checksum(pseudo + tcp) == 0xffff

	@property
	def pure_ack(self):
		return not self.data and self.flags & 0x17 == 0x10


def tcp_segments(packets):
	return [s for s in map(Segment, packets) if s.is_tcp]


# ---- results ----

def errors(key, values):
	"""Print the distribution of VALUES, how late packets were in ns, and set KEY_p50,
	KEY_p99, KEY_max, KEY_min and KEY_count."""
	values = sorted(values)
	if not values:
		return result(**{key + "_count": 0})
	at = {"p50": values[len(values) // 2],
	      "p99": values[min(len(values) - 1, len(values) * 99 // 100)],
	      "max": values[-1], "min": values[0]}
	say(f"{key:24} {len(values):6} packets, late by ns: "
	    f"p50 {at['p50']:6} p99 {at['p99']:6} max {at['max']:6} min {at['min']:6}")
	result(**{f"{key}_{name}": value for name, value in at.items()})
	result(**{key + "_count": len(values)})


def lateness(times, interval, together=100):
	"""How late each of TIMES is compared with even spacing at INTERVAL, ns.

	The spacing is placed as late as possible without any packet ahead of it. This is done
	for TOGETHER packets at a time: the kernel's rates are fixed-point numbers, whose small
	errors would add up. Whether the average rate is right is tested separately."""
	late = []
	for begin in range(0, len(times), together):
		some = times[begin:begin + together]
		first = min(at - i * int(interval) for i, at in enumerate(some))
		late += [at - i * int(interval) - first for i, at in enumerate(some)]
	return late


# ---- statistics of qdiscs ----

def stats_fields():
	"""struct format and names of the members of struct tc_timely_stats."""
	header = os.path.join(os.path.dirname(os.path.abspath(__file__)),
			      "../../../include/uapi/linux/timely.h")
	with open(header, encoding="ascii") as file:
		text = file.read()
	body = re.search(r"struct tc_timely_stats \{(.*?)\n\};", text, re.S)
	# "@": with C's alignment.
	form, names = "@", []
	for kind, name, array in re.findall(r"__([us]\d\d)\s+(\w+)(?:\[(\w+)\])?;", body[1]):
		letter = {"u64": "Q", "s64": "q", "u32": "I"}[kind]
		count = re.search(rf"#define {array}\s+(\d+)", text)[1] if array else 1
		for i in range(int(count)):
			form += letter
			names.append(f"{name}_{i}" if array else name)
	return form, names


def attributes(data):
	while len(data) >= 4:
		length, kind = struct.unpack_from("=HH", data)
		if length < 4:
			return
		yield kind & 0x3fff, data[4:length]
		data = data[(length + 3) & ~3:]


def qdiscs(ns, dev="eth0"):
	"""The qdiscs of a device by RTM_GETQDISC: {parent: {counter: value}}."""
	with inside(ns):
		netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
		index = socket.if_nametoindex(dev)
	netlink.bind((0, 0))
	netlink.send(struct.pack("=IHHIIBxxxiIII", 36, 38, 0x301, 1, 0, 0, index, 0, 0, 0))
	found = {}
	while True:
		data = netlink.recv(1 << 20)
		while data:
			length, kind = struct.unpack_from("=IH", data)
			if kind == 3:
				netlink.close()
				return found
			_, at, handle, parent, _ = struct.unpack_from("=BxxxiIII", data, 16)
			if at == index:
				found[parent] = qdisc_of(handle, dict(attributes(data[36:length])))
			data = data[(length + 3) & ~3:]


def qdisc_of(handle, attrs):
	seen = {"handle": handle, "kind": attrs[1].rstrip(b"\0").decode(),
		"options": attrs.get(2, b"")}
	nested = dict(attributes(attrs.get(7, b"")))
	seen["bytes"], seen["packets"] = struct.unpack_from("=QI", nested[1])
	seen["qlen"], seen["backlog"], seen["drops"], seen["requeues"], seen["overlimits"] = \
		struct.unpack_from("=5I", nested[3])
	if seen["kind"] == "timely":
		form, names = stats_fields()
		values = struct.unpack_from(form, nested[4].ljust(struct.calcsize(form), b"\0"))
		seen.update(zip(names, values))
	return seen


def stats(ns="h1", dev="eth0"):
	"""Counters and options of the root qdisc."""
	return qdiscs(ns, dev)[0xffffffff]


def emptied(seconds=10):
	"""Counters of the root qdisc as soon as no packet is queued, or after @seconds."""
	until = time.monotonic() + seconds
	while (seen := stats())["qlen"] and time.monotonic() < until:
		time.sleep(0.01)
	return seen


def stats_sum(ns, dev, name):
	return sum(q.get(name, 0) for q in qdiscs(ns, dev).values() if q["kind"] == "timely")


def tc(*words, ns="h1"):
	done = subprocess.run(["tc", "-n", ns, *words], check=False, text=True,
			      capture_output=True)
	if done.returncode:
		raise RuntimeError("tc " + " ".join(words) + ": " + done.stderr)
	return done.stdout


def fails(*words, ns="h1"):
	"""The error message of a tc command that must fail."""
	done = subprocess.run(["tc", "-n", ns, *words], check=False, text=True,
			      capture_output=True)
	if not done.returncode:
		raise RuntimeError("succeeded, but must be refused: " + " ".join(words))
	return done.stdout + done.stderr


# ---- connections ----

DATA = random.Random(1).randbytes(1 << 20)


class Transfer:
	"""A TCP connection that carries SIZE bytes between namespaces and compares them."""

	def __init__(self, size, ns="h1", to="h2", addr=H2, rate=None, cc=None):
		family = socket.AF_INET6 if ":" in addr else socket.AF_INET
		with inside(to):
			listener = socket.socket(family)
		listener.bind((addr, 0))
		with inside(ns):
			self.sender = socket.socket(family)
		for sock in (listener, self.sender) if cc else ():
			sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
		listener.listen()
		if rate is not None:
			self.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE,
					       struct.pack("=Q", rate))
		self.sender.connect(listener.getsockname()[:2])
		self.receiver, _ = listener.accept()
		listener.close()
		self.sender.setblocking(False)
		self.receiver.setblocking(False)
		self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 16)
		self.size = size
		self.sent = self.got = 0
		self.same = True
		self.began = time.monotonic_ns()
		self.took = None

	def send(self):
		while self.sent < self.size:
			at = self.sent % len(DATA)
			try:
				self.sent += self.sender.send(DATA[at:at + min(
					1 << 18, self.size - self.sent)])
			except BlockingIOError:
				return
		self.sender.shutdown(socket.SHUT_WR)

	def receive(self):
		while True:
			at = self.got % len(DATA)
			try:
				data = self.receiver.recv(min(1 << 18, len(DATA) - at))
			except BlockingIOError:
				return
			if not data:
				self.took = time.monotonic_ns() - self.began
				return
			self.same &= data == DATA[at:at + len(data)]
			self.got += len(data)

	def close(self):
		for sock in self.sender, self.receiver:
			sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
					struct.pack("ii", 1, 0))
			sock.close()

	@property
	def ok(self):
		return self.same and self.got == self.size


def carry(*transfers, seconds=20, tap=None, meanwhile=None, wait=0.5):
	"""Run all transfers at the same time. Returns the packets that TAP received."""
	packets = []
	end = time.monotonic() + seconds
	while time.monotonic() < end:
		readers = [t.receiver for t in transfers if t.took is None]
		if not readers:
			break
		writers = [t.sender for t in transfers if t.sent < t.size]
		watched = readers + ([tap.sock] if tap else [])
		ready, writable, _ = select.select(watched, writers, [], wait)
		for t in transfers:
			if t.sender in writable:
				t.send()
			if t.receiver in ready:
				t.receive()
		if tap:
			tap.drain(packets)
		if meanwhile:
			meanwhile()
	for t in transfers:
		t.close()
	return packets
