# SPDX-License-Identifier: GPL-2.0
"""Helpers for acker.sh, which tests On-Ramp's receiver: netlink requests, frames that the
receiver should or should not answer, and a parser of its OR-ACKs.

A packet socket in h1 sends hand-made frames, and a tap on the same device receives the
OR-ACKs, so each frame's answer is known.
"""

import errno

from packets import *

ETHERNET_TO_H2 = bytes.fromhex("020000000002020000000001")
PORT = 20306
H1_V6, H2_V6 = "fd07:2::1", "fd07:2::2"
REAL = time.CLOCK_REALTIME
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

# ---- generic netlink ----

(ONRAMP_GET, ONRAMP_SET, KEY_SET, KEY_DEL, FLOW_GET,
 ACKER_GET, ACKER_SET, RULE_ADD, RULE_DEL) = range(4, 13)


def uapi_attributes():
	"""Numbers of the attributes TIMELY_A_*, read from the header."""
	header = os.path.join(os.path.dirname(os.path.abspath(__file__)),
			      "../../../include/uapi/linux/timely.h")
	with open(header, encoding="ascii") as file:
		text = file.read()
	body = re.search(r"enum \{\s+TIMELY_A_UNSPEC,(.*?)__TIMELY_A_MAX", text, re.S)[1]
	return {name: number for number, name in
		enumerate(re.findall(r"^\s+TIMELY_A_(\w+),", body, re.M), 1)}


A = uapi_attributes()


def attr(kind, data):
	return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def unnested(data):
	return dict(attributes(data))


class Refused(Exception):
	def __init__(self, error, words):
		super().__init__(f"{errno.errorcode.get(error, error)} \"{words}\"")
		self.error, self.words = error, words


class Family:
	"""A socket of a generic netlink family in a namespace."""

	def __init__(self, name="timely_acker", ns="h2"):
		with inside(ns):
			self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
		self.sock.bind((0, 0))
		for option in (11, 10):		# NETLINK_EXT_ACK, NETLINK_CAP_ACK
			self.sock.setsockopt(270, option, 1)
		self.seq = 0
		self.id = 16
		answer = dict(self.ask(3, attr(2, name.encode() + b"\0"))[0])
		self.id, = struct.unpack("=H", answer[1])

	def ask(self, command, body=b""):
		"""Send a request. Returns the attributes of each answer, or raises Refused."""
		self.seq += 1
		message = struct.pack("=BBH", command, 1, 0) + body
		self.sock.send(struct.pack("=IHHII", 16 + len(message), self.id, 5,
					   self.seq, 0) + message)
		answers = []
		while True:
			data = self.sock.recv(1 << 17)
			while len(data) >= 16:
				length, kind, flags, _, _ = struct.unpack_from("=IHHII", data)
				payload = data[16:length]
				data = data[(length + 3) & ~3:]
				if kind != 2:
					answers.append(list(attributes(payload[4:])))
					continue
				error = -struct.unpack_from("=i", payload)[0]
				words = unnested(payload[20:]).get(1, b"\0") if flags & 0x200 else b"\0"
				if error:
					raise Refused(error, words[:-1].decode())
				return answers

	def refused(self, command, body=b""):
		"""The errno and the message of a request, or (0, "") if it succeeds."""
		try:
			self.ask(command, body)
		except Refused as refused:
			return refused.error, refused.words
		return 0, ""


def u8(name, value):
	return attr(A[name], struct.pack("=B", value))


def u16(name, value):
	return attr(A[name], struct.pack("=H", value))


def u32(name, value):
	return attr(A[name], struct.pack("=I", value))


def s32(name, value):
	return attr(A[name], struct.pack("=i", value))


def s64(name, value):
	return attr(A[name], struct.pack("=q", value))


def packed(address):
	return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def rule(prefix, first=None, last=None):
	"""The attributes of a rule; PREFIX is ADDRESS/LENGTH."""
	address, _, length = prefix.partition("/")
	body = attr(A["RULE_PREFIX"], packed(address)) + u8("RULE_LENGTH", int(length))
	if first is not None:
		body += u16("RULE_PORT_FIRST", first)
	if last is not None:
		body += u16("RULE_PORT_LAST", last)
	return body


def add(prefix, first=None, last=None, ns="h2"):
	Family(ns=ns).ask(RULE_ADD, rule(prefix, first, last))


def delete(prefix, first=None, last=None, ns="h2"):
	Family(ns=ns).ask(RULE_DEL, rule(prefix, first, last))


def settings(ns="h2"):
	"""(every, rate, offset, drift), [(prefix, length, first, last)]"""
	every = rate = offset = drift = None
	rules = []
	for kind, data in Family(ns=ns).ask(ACKER_GET)[0]:
		if kind == A["ACKER_EVERY"]:
			every, = struct.unpack("=I", data)
		elif kind == A["ACKER_RATE"]:
			rate, = struct.unpack("=I", data)
		elif kind == A["ACKER_TEST_OFFSET_NS"]:
			offset, = struct.unpack("=q", data)
		elif kind == A["ACKER_TEST_DRIFT_PPB"]:
			drift, = struct.unpack("=i", data)
		elif kind == A["RULE"]:
			one = unnested(data)
			prefix = one[A["RULE_PREFIX"]]
			family = socket.AF_INET6 if len(prefix) == 16 else socket.AF_INET
			rules.append((socket.inet_ntop(family, prefix), one[A["RULE_LENGTH"]][0],
				      *(struct.unpack("=H", one[A[name]])[0]
					for name in ("RULE_PORT_FIRST", "RULE_PORT_LAST"))))
	return (every, rate, offset, drift), rules


def set_acker(body, ns="h2"):
	Family(ns=ns).ask(ACKER_SET, body)


def without_rules(ns="h2"):
	family = Family(ns=ns)
	for prefix, length, first, last in settings(ns)[1]:
		family.ask(RULE_DEL, rule(f"{prefix}/{length}", first, last))


def forget(ns="h2"):
	"""Change the rules, so that the receiver treats all flows as new."""
	if os.path.exists("/run/netns/" + ns):
		add("192.0.2.0/24", 1, ns=ns)
		delete("192.0.2.0/24", 1, ns=ns)


def without_key(yes=True, ns="h2"):
	Family("timely", ns).ask(ONRAMP_SET, u8("UNAUTHENTICATED", int(yes)) + u8("KEY_USED", 0))


def with_key(number, secret, ns="h2"):
	family = Family("timely", ns)
	family.ask(KEY_SET, u8("KEY", number) + attr(A["KEY_SECRET"], secret))
	family.ask(ONRAMP_SET, u8("UNAUTHENTICATED", 0) + u8("KEY_USED", number))


def counters(ns="h2"):
	"""On-Ramp's counters: sent, send_errors, send_limited and others."""
	found = {}
	for kind, data in Family("timely", ns).ask(ONRAMP_GET)[0]:
		if kind == A["COUNTER"]:
			one = unnested(data)
			name = one[A["COUNTER_NAME"]].rstrip(b"\0").decode()
			found[name], = struct.unpack("=Q", one[A["COUNTER_VALUE"]])
	return found


# ---- frames ----

def negated(data):
	return ~checksum(data) & 0xffff


def v4(kind, body, saddr=H1, daddr=H2, tos=0, options=b"", fragment=0, total=None):
	header = struct.pack(">BBHHHBBH4s4s", 0x45 + len(options) // 4, tos,
			     total or 20 + len(options) + len(body), 7, fragment, 64, kind, 0,
			     packed(saddr), packed(daddr)) + options
	return header[:10] + struct.pack(">H", negated(header)) + header[12:] + body


def v6(kind, body, saddr=H1_V6, daddr=H2_V6, tos=0, total=None):
	return struct.pack(">IHBB", 6 << 28 | tos << 20, total or len(body), kind, 64) + \
		packed(saddr) + packed(daddr) + body


def frame(packet, vlan=None, destination=ETHERNET_TO_H2[:6]):
	kind = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\0"
	if vlan is not None:
		kind = struct.pack(">HH", 0x8100, vlan) + kind
	return destination + ETHERNET_TO_H2[6:] + kind + packet


def tcp(data=1460, sport=1000, dport=2000, seq=1, flags=ACK, options=b""):
	"""A TCP segment with DATA bytes; its checksum stays 0."""
	return struct.pack(">HHIIBBHHH", sport, dport, seq & 0xffffffff, 1,
			   (20 + len(options)) // 4 << 4, flags, 100, 0, 0) + options + bytes(data)


def udp(data=b"", sport=1000, dport=2000):
	return struct.pack(">HHHH", sport, dport, 8 + len(data), 0) + data


def segment(*words, **more):
	return frame(v4(6, tcp(*words, **more)))


# ---- answers ----

class Answer:
	"""An OR-ACK, parsed from a frame that a tap received."""

	def __init__(self, packet):
		self.at = packet.at
		ip = packet.data[14:]
		six = ip[0] >> 4 == 6
		header = 40 if six else 20
		addresses = ip[8:40] if six else ip[12:20]
		half = len(addresses) // 2
		self.saddr, self.daddr = addresses[:half], addresses[half:]
		self.six = six
		self.tos = (struct.unpack_from(">H", ip)[0] >> 4) & 255 if six else ip[1]
		self.ttl = ip[7] if six else ip[8]
		self.length = 40 + struct.unpack_from(">H", ip, 4)[0] if six else \
			struct.unpack_from(">H", ip, 2)[0]
		datagram = ip[header:self.length]
		self.ports = struct.unpack_from(">HH", datagram)
		pseudo = addresses + struct.pack(">IHBB", len(datagram), 0, 0, 17)
		self.sums_ok = checksum(pseudo + datagram) == 0xffff and datagram[6:8] != b"\0\0" \
			and (six or checksum(ip[:20]) == 0xffff)
		self.wire = wire = datagram[8:]
		(self.magic, self.version, self.key, self.protocol, self.flags, self.sport, self.dport,
		 self.zero, self.seq, self.received, self.turnaround, self.tag) = \
			struct.unpack(">HBBBBHHHIQIQ", wire)

	def tag_of(self, secret):
		"""The right tag, computed from the data's addresses and the OR-ACK itself."""
		text = struct.pack(">H", socket.AF_INET6 if self.six else socket.AF_INET)
		text += self.daddr.ljust(16, b"\0") + self.saddr.ljust(16, b"\0") + self.wire[:28]
		return siphash(secret, text)


def siphash(secret, text):
	mask = (1 << 64) - 1
	k0, k1 = struct.unpack("<QQ", secret)
	v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
	     k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

	def rotate(value, bits):
		return (value << bits | value >> (64 - bits)) & mask

	def rounds(count):
		for _ in range(count):
			v[0] = (v[0] + v[1]) & mask
			v[1] = rotate(v[1], 13) ^ v[0]
			v[0] = rotate(v[0], 32)
			v[2] = (v[2] + v[3]) & mask
			v[3] = rotate(v[3], 16) ^ v[2]
			v[0] = (v[0] + v[3]) & mask
			v[3] = rotate(v[3], 21) ^ v[0]
			v[2] = (v[2] + v[1]) & mask
			v[1] = rotate(v[1], 17) ^ v[2]
			v[2] = rotate(v[2], 32)

	end = len(text) & ~7
	words = [*struct.unpack(f"<{end // 8}Q", text[:end]),
		 int.from_bytes(text[end:], "little") | (len(text) & 255) << 56]
	for word in words:
		v[3] ^= word
		rounds(2)
		v[0] ^= word
	v[2] ^= 0xff
	rounds(4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]


def is_orack(packet):
	"""UDP to On-Ramp's port? Other frames are ARP or IPv6 neighbour discovery."""
	data = packet.data[14:]
	kind, = struct.unpack_from(">H", packet.data, 12)
	if kind == 0x0800 and len(data) >= 28 and data[9] == 17:
		return struct.unpack_from(">H", data, 22)[0] == PORT
	if kind == 0x86dd and len(data) >= 48 and data[6] == 17:
		return struct.unpack_from(">H", data, 42)[0] == PORT
	return False


class Wire:
	"""h1's device: sends frames and receives OR-ACKs."""

	def __init__(self, ns="h1", dev="eth0"):
		with inside(ns):
			self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
		self.sock.bind((dev, 0))
		self.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
		self.tap = Tap(ns, dev)

	def answers(self):
		packets = []
		time.sleep(0.0001)
		self.tap.drain(packets)
		return [Answer(packet) for packet in packets if is_orack(packet)]

	def ask(self, *frames):
		"""Send the frames, and return the OR-ACKs that answer them."""
		for one in frames:
			self.sock.send(one)
		return self.answers()

	def count(self, *frames):
		return len(self.ask(*frames))


def ports():
	"""Source ports that were not used before, for new flows."""
	number = 10000
	while True:
		number = number + 1 if number < 60000 else 10000
		yield number


fresh = ports()
