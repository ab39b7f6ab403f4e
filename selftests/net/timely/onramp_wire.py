# SPDX-License-Identifier: GPL-2.0
"""Build, sign and parse OR-ACKs, and flows that OR-ACKs pause, for On-Ramp's tests.

onramp() of onramp_lib.sh runs a test's Python lines with this module and packets.py
imported. The format is that of net/timely/engine/orack.h, but no code is shared with the
modules, so that an error in one of the two is found.
"""

import collections
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import time

from packets import *
from packets import attributes, inside

ORACK_PORT = 20306
ORACK_BYTES = 36
US = 1000
SECRET = bytes(range(16))
OTHER_SECRET = bytes(range(16, 32))
TCP_NODELAY = 1
LINGER_RST = struct.pack("ii", 1, 0)
# ns: how exact a departure after a pause is: a slot of the wheel and steps of the clock
EXACT = 2 * US

# PR_SET_TIMERSLACK: time.sleep() without the default slack of 50 us
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)


# ---- SipHash-2-4 ----

MASK = (1 << 64) - 1


def rotate(value, bits):
	return (value << bits | value >> (64 - bits)) & MASK


def sip_round(v):
	a, b, c, d = v
	a = (a + b) & MASK
	b = rotate(b, 13) ^ a
	a = rotate(a, 32)
	c = (c + d) & MASK
	d = rotate(d, 16) ^ c
	a = (a + d) & MASK
	d = rotate(d, 21) ^ a
	c = (c + b) & MASK
	b = rotate(b, 17) ^ c
	c = rotate(c, 32)
	return a, b, c, d


def siphash(secret, text):
	"""SipHash-2-4 as in its reference code, as a number."""
	first, second = struct.unpack("<QQ", secret)
	v = (first ^ 0x736f6d6570736575, second ^ 0x646f72616e646f6d,
	     first ^ 0x6c7967656e657261, second ^ 0x7465646279746573)
	padded = text + bytes(7 - len(text) % 8) + bytes([len(text) & 255])
	for word in struct.unpack(f"<{len(padded) // 8}Q", padded):
		v = v[0], v[1], v[2], v[3] ^ word
		v = sip_round(sip_round(v))
		v = v[0] ^ word, v[1], v[2], v[3]
	v = v[0], v[1], v[2] ^ 255, v[3]
	for _ in range(4):
		v = sip_round(v)
	return v[0] ^ v[1] ^ v[2] ^ v[3]


# The test vector of the SipHash paper
assert siphash(bytes(range(16)), bytes(range(15))) == 0xa129ca6149be45e5


# ---- the digest that replaces a sequence number for UDP ----

def rol32(value, bits):
	return (value << bits | value >> (32 - bits)) & 0xffffffff


def jhash2(words, initial):
	"""Bob Jenkins' lookup3 over 32-bit words, the kernel's jhash2()."""
	words = list(words)
	a = b = c = (0xdeadbeef + 4 * len(words) + initial) & 0xffffffff
	while len(words) > 3:
		a, b, c = a + words[0], b + words[1], c + words[2]
		for bits in (4, 6, 8, 16, 19, 4):
			a = (a - c ^ rol32(c & 0xffffffff, bits)) & 0xffffffff
			c = (c + b) & 0xffffffff
			a, b, c = b, c, a
		words = words[3:]
	a, b, c = (x + y for x, y in zip((a, b, c), words + [0, 0, 0]))
	a, b, c = (x & 0xffffffff for x in (a, b, c))
	for bits in (14, 11, 25, 16, 4, 14, 24):
		c = (c ^ b) - rol32(b, bits) & 0xffffffff
		a, b, c = b, c, a
	# After seven rotations the kernel's c is in b.
	return b


def digest(data):
	return jhash2(struct.unpack("<4I", data[:16].ljust(16, b"\0")), len(data)) or 1


# ---- OR-ACKs ----

Tuple = collections.namedtuple("Tuple", "protocol saddr sport daddr dport")


def packed(address):
	family = socket.AF_INET6 if ":" in address else socket.AF_INET
	return socket.inet_pton(family, address)


def tag_of(flow, head, secret):
	if not secret:
		return 0
	saddr, daddr = packed(flow.saddr), packed(flow.daddr)
	family = 10 if len(saddr) == 16 else 2
	return siphash(secret, struct.pack(">H16s16s", family, saddr, daddr) + head)


def orack(flow, seq, received, turnaround=0, key=0, secret=None, flags=0, version=1,
	  magic=b"OR", reserved=0, tag=None):
	"""The 36 bytes of an OR-ACK. RECEIVED is a time of CLOCK_REALTIME, TURNAROUND a
	duration, both in ns."""
	head = struct.pack(">2sBBBBHHHIQI", magic, version, key, flow.protocol, flags,
			   flow.sport, flow.dport, reserved, seq & 0xffffffff,
			   received & MASK, turnaround & 0xffffffff)
	return head + struct.pack(">Q", tag_of(flow, head, secret) if tag is None else tag)


Orack = collections.namedtuple("Orack", "key protocol flags sport dport seq received "
			       "turnaround tag")


def parse(wire):
	"""The fields of an OR-ACK, or None if WIRE is not an OR-ACK."""
	if len(wire) != ORACK_BYTES or wire[:3] != b"OR\x01":
		return None
	return Orack(*struct.unpack(">BBBHHxxIQIQ", wire[3:]))


class Reporter:
	"""Sends OR-ACKs from an address of h2 to one of h1."""

	def __init__(self, ns="h2", addr=H2, port=ORACK_PORT, to=H1):
		family = socket.AF_INET6 if ":" in addr else socket.AF_INET
		with inside(ns):
			self.sock = socket.socket(family, socket.SOCK_DGRAM)
		self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		self.sock.bind((addr, port))
		self.sock.connect((to, ORACK_PORT))

	def send(self, wire):
		"""Send, and return the time, which is also the time of arrival."""
		try:
			self.sock.send(wire)
		except ConnectionRefusedError:
			# The ICMP error of an earlier OR-ACK, sent when no socket listened.
			self.sock.send(wire)
		return time.monotonic_ns()

	def close(self):
		self.sock.close()


# ---- flows ----

Sent = collections.namedtuple("Sent", "at seq size")


class UdpFlow:
	"""A connected UDP socket in one namespace, and its receiver in another."""

	def __init__(self, ns="h1", to=H2, port=9, rate=None, there="h2"):
		self.sink = Sink(there, to, port)
		self.sender = source(ns, to, port, rate)
		self.tuple = Tuple(17, *self.sender.getsockname()[:2], to, port)
		self.count = 0

	def send(self, count=1, size=1000):
		for _ in range(count):
			self.sender.send(payload(self.count, 0, size))
			self.count += 1

	def arrived(self):
		"""Packets that have arrived since the last call."""
		packets = []
		self.sink.drain(packets)
		return [Sent(p.at, digest(p.data), len(p.data)) for p in packets]

	def close(self):
		self.sink.sock.close()
		self.sender.close()


class TcpFlow:
	"""A TCP connection, and a tap that sees its packets arrive."""

	def __init__(self, ns="h1", to=H2, port=0, rate=None, there="h2", cc="cubic",
		     device=None, mapped=False):
		family = socket.AF_INET6 if ":" in to else socket.AF_INET
		with inside(there):
			listener = socket.socket(family)
		listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		listener.bind((to, port))
		listener.listen()
		self.tap = Tap(there)
		with inside(ns):
			self.sender = socket.socket(socket.AF_INET6 if mapped else family)
		if device:
			self.sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE,
					       device.encode())
		self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
		self.sender.setsockopt(socket.IPPROTO_TCP, TCP_NODELAY, 1)
		if rate is not None:
			self.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE,
					       struct.pack("=Q", rate))
		port = listener.getsockname()[1]
		self.sender.connect(("::ffff:" + to if mapped else to, port))
		self.receiver, peer = listener.accept()
		self.receiver.setsockopt(socket.IPPROTO_TCP, TCP_NODELAY, 1)
		listener.close()
		self.tuple = Tuple(6, *peer[:2], to, port)

	def send(self, count=1, size=1000):
		for _ in range(count):
			self.sender.send(bytes(size))

	def segments(self):
		"""Packets that have arrived since the last call, with or without data."""
		packets = []
		self.tap.drain(packets)
		return [s for s in tcp_segments(packets) if s.sport == self.tuple.sport]

	def arrived(self):
		return [Sent(s.at, s.seq, len(s.data)) for s in self.segments() if s.data]

	def reset(self):
		for sock in self.sender, self.receiver:
			sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RST)

	def close(self):
		if self.sender.fileno() >= 0:
			self.reset()
		for sock in self.sender, self.receiver, self.tap.sock:
			sock.close()


def wait(ns):
	time.sleep(ns / S)


def wait_until(at):
	wait(max(at - time.monotonic_ns(), 0))


class Forger:
	"""A receiver that reports delays of its choice to a flow's sender, by OR-ACKs.

	OR-ACKs are signed with KEY and SECRET; OVER has other arguments for orack().
	"""

	def __init__(self, flow, key=0, secret=None, **over):
		self.flow, self.key, self.secret, self.over = flow, key, secret, over
		self.reporter = Reporter("h2", flow.tuple.daddr, to=flow.tuple.saddr)

	def one(self, size=1000):
		"""Send one packet of the flow, which must not be paused."""
		# Packets that leave at the same time have only one known departure time.
		wait(20 * US)
		self.flow.send(1, size)
		wait(1 * US)
		packets = self.flow.arrived()
		assert len(packets) == 1, f"{len(packets)} packets arrived"
		return packets[0]

	def wire(self, packet, delay, **over):
		"""An OR-ACK with this one-way delay, ns, for a packet."""
		words = {"key": self.key, "secret": self.secret, **self.over, **over}
		flow = words.pop("flow", self.flow.tuple)
		seq = words.pop("seq", packet.seq)
		received = words.pop("received", packet.at + delay + OFFSET)
		return orack(flow, seq, received, **words)

	def report(self, packet, delay, **over):
		"""Send an OR-ACK with this delay, ns, for a packet that the flow has sent. Waits
		until a packet with this delay would arrive, and returns that time, ns."""
		wait_until(packet.at + delay)
		return self.reporter.send(self.wire(packet, delay, **over))

	def report_one(self, delay, **over):
		"""Send one packet of the flow and report() this delay, ns, for it. Returns the time
		of the report: a pause, if the delay causes one, starts then."""
		return self.report(self.one(), delay, **over)

	def close(self):
		self.flow.close()
		self.reporter.close()


# ---- state of the host ----

def ctl(ns, *words, text=None, refused=False):
	"""timelyctl in a namespace: its output, or its error message if it must be REFUSED."""
	with inside(ns):
		done = subprocess.run([os.environ["TIMELY_MODULES"] + "/timelyctl", *words],
				      check=False, text=True, input=text or "",
				      capture_output=True)
	if bool(done.returncode) != refused:
		raise RuntimeError(f"timelyctl {' '.join(words)}: {done.stdout}{done.stderr}")
	return done.stderr if refused else done.stdout


def counters(ns="h1"):
	return json.loads(ctl(ns, "-j", "onramp"))["counters"]


def flows_of(ns="h1"):
	return json.loads(ctl(ns, "-j", "onramp", "flows"))


def flow_of(flow, ns="h1"):
	"""On-Ramp's state of one flow."""
	t = flow.tuple
	found = [f for f in flows_of(ns) if (f["source"], f["source_port"], f["destination"],
		f["destination_port"]) == (t.saddr, t.sport, t.daddr, t.dport)]
	assert len(found) == 1, f"{len(found)} flows are {t}"
	return found[0]


def add_key(number, secret, *hosts):
	for ns in hosts or ("h1", "h2"):
		ctl(ns, "key", "add", str(number), "-", text=secret.hex() + "\n")


def grown(before, after):
	"""The counters that have changed, and by how much."""
	return {name: after[name] - before[name] for name in after if after[name] != before[name]}


def option(kind, form, value):
	data = struct.pack("=" + form, value)
	return struct.pack("=HH", 4 + len(data), kind) + data.ljust((len(data) + 3) & ~3, b"\0")


def change(options, ns="h1", dev="eth0"):
	"""Change options of the root qdisc by netlink, also those that tc itself refuses.
	Returns the kernel's errno and message."""
	with inside(ns):
		netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
		index = socket.if_nametoindex(dev)
	netlink.bind((0, 0))
	netlink.setsockopt(270, 11, 1)		# SOL_NETLINK, NETLINK_EXT_ACK
	netlink.setsockopt(270, 10, 1)		# NETLINK_CAP_ACK
	body = struct.pack("=BxxxiIII", 0, index, 0, 0xffffffff, 0)
	body += struct.pack("=HH", 4 + 7, 1) + b"timely\0\0"
	body += struct.pack("=HH", 4 + len(options), 2) + options
	netlink.send(struct.pack("=IHHII", 16 + len(body), 36, 5, 1, 0) + body)
	data = netlink.recv(1 << 16)
	netlink.close()
	error, = struct.unpack_from("=i", data, 16)
	words = dict(attributes(data[36:])).get(1, b"") if len(data) > 36 else b""
	return -error, words.rstrip(b"\0").decode()


def enumerators(prefix):
	"""Names and numbers of the header's enum that starts with PREFIX_UNSPEC."""
	header = os.path.join(os.path.dirname(os.path.abspath(__file__)),
			      "../../../include/uapi/linux/timely.h")
	with open(header, encoding="ascii") as file:
		text = file.read()
	body = text[text.index(prefix + "_UNSPEC,"):]
	names = re.findall(rf"^\t{prefix}_(\w+),", body[:body.index("}")], re.M)
	return {name: number for number, name in enumerate(names, 1)}


TCA = enumerators("TCA_TIMELY")
