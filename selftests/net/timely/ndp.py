# SPDX-License-Identifier: GPL-2.0
"""NDP sockets in several network namespaces, for the tests ndp*.sh.

ndp() of ndp_lib.sh runs a test's Python lines with this module imported. All sockets are those
of this one process and do not block: move() sends and receives on all of them with poll(), in
the guest's virtual time. result() prints KEY=NUMBER for the shell.
"""

import contextlib
import ctypes
import errno
import hashlib
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time

IPPROTO_NDP = 259
SOL_NDP, NDP_INFO = 0x4e44, 1
ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE, CLOSE_WAIT, LAST_ACK = 1, 4, 5, 7, 8, 9
INFO = "=8I12Q"
INFO_NAMES = ("state flags payload rtt_us unacked credits room pull_kbps sent nacked returned lost "
	      "timeouts pulled received repeated trimmed damaged no_room pulls").split()
ANSWERED, GRACEFUL = 1, 2
SYN, RTX, INITIATOR = 1, 8, 0x10
SUM_OF_X = 0x1c3627cf		# timely_ndp_sum() of the payload "x"
PR_SET_TIMERSLACK = 29
V4, V6, MAPPED = "10.7.2.2", "fd07:2::2", "::ffff:10.7.2.2"
PORT = 5000

libc = ctypes.CDLL(None, use_errno=True)
home = os.open("/proc/self/ns/net", os.O_RDONLY)


def result(**results):
	for key, value in results.items():
		print(f"{key}={int(value)}")


def setns(fd):
	if libc.setns(fd, 0) < 0:
		raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(ns):
	there = os.open("/run/netns/" + ns, os.O_RDONLY)
	setns(there)
	os.close(there)
	try:
		yield
	finally:
		setns(home)


def stat(ns):
	"""The counters of a namespace."""
	with inside(ns), open("/proc/thread-self/net/ndp_stat") as file:
		return {name: int(value) for name, value in map(str.split, file)}


def sysctl(ns, name, value):
	with inside(ns), open("/proc/sys/net/ndp/" + name, "w") as file:
		file.write(str(value))


def command(*words):
	subprocess.run(words, check=True)


def ndp_socket(ns, address=V4):
	family = socket.AF_INET6 if ":" in address else socket.AF_INET
	with inside(ns):
		sock = socket.socket(family, socket.SOCK_STREAM, IPPROTO_NDP)
	sock.setblocking(False)
	return sock


def listen(ns="h2", address="", port=PORT, backlog=1000):
	"""A listener; without an address for IPv4, with "::" for both families."""
	sock = ndp_socket(ns, address)
	sock.bind((address, port))
	sock.listen(backlog)
	return sock


def connect(address=V4, ns="h1", port=PORT):
	sock = ndp_socket(ns, address)
	sock.connect((address, port))
	return sock


def wait(sock, events=select.POLLIN, seconds=5):
	"""The events of a socket, after at most so many seconds; 0: none."""
	poll = select.poll()
	poll.register(sock, events)
	found = poll.poll(seconds * 1000)
	return found[0][1] if found else 0


def accept(listener, seconds=5):
	assert wait(listener, seconds=seconds), "no connection to accept"
	sock, _ = listener.accept()
	sock.setblocking(False)
	return sock


def pair(address=V4, listener=None):
	"""A connection from h1 to h2: both sockets. The first byte opens it."""
	own = listener or listen(address="::" if ":" in address else "")
	client = connect(address)
	client.send(b"!")
	server = accept(own)
	assert wait(server) and server.recv(1) == b"!"
	if not listener:
		own.close()
	return client, server


def info(sock):
	data = sock.getsockopt(SOL_NDP, NDP_INFO, struct.calcsize(INFO))
	return dict(zip(INFO_NAMES, struct.unpack(INFO, data)))


def data(count, seed=1):
	return random.Random(seed).randbytes(count)


def error(function, *args):
	"""The error of a call; 0 if it succeeds."""
	try:
		function(*args)
	except OSError as failure:
		return failure.errno
	return 0


def rotate(x, by):
	return (x << by | x >> (32 - by)) & 0xffffffff


def jhash2(words, start):
	"""The kernel's jhash2(), for a number of words that is no multiple of three."""
	a = b = c = (0xdeadbeef + 4 * len(words) + start) & 0xffffffff
	for i in range(0, len(words), 3):
		x, y, z = (words[i:i + 3] + [0, 0])[:3]
		a, b, c = a + x & 0xffffffff, b + y & 0xffffffff, c + z & 0xffffffff
		for one, two, three in ((4, 6, 8), (16, 19, 4)) if i + 3 < len(words) else ():
			a, c = a - c & 0xffffffff ^ rotate(c, one), c + b & 0xffffffff
			b, a = b - a & 0xffffffff ^ rotate(a, two), a + c & 0xffffffff
			c, b = c - b & 0xffffffff ^ rotate(b, three), b + a & 0xffffffff
	for one, two, three in (14, 11, 25), (16, 4, 14):
		c = (c ^ b) - rotate(b, one) & 0xffffffff
		a = (a ^ c) - rotate(c, two) & 0xffffffff
		b = (b ^ a) - rotate(a, three) & 0xffffffff
	return (c ^ b) - rotate(b, 24) & 0xffffffff


def forged_packet(source, target, number, credits, length, conn=1, flags=0, sum=0):
	"""The header of a first packet to PORT: number, credits used, length of its payload."""
	start = struct.pack("!BBHHBBQIIIHH", 0x31, SYN | INITIATOR | flags, 1, PORT, 0, 0, conn, number,
			    credits, sum, length, credits & 0xffff)
	ends = [struct.unpack("!I", socket.inet_aton(address))[0] for address in (source, target)]
	words = [ends[0] ^ ends[1], 0, 0, 0, *struct.unpack("!8I", start), 0]
	return start + struct.pack("!I", jhash2(words, socket.AF_INET))


class Flow:
	"""Sends DATA from one socket to another, then ends the stream unless END is false."""

	def __init__(self, sender, receiver, data, end=True):
		self.sender, self.receiver, self.data, self.end = sender, receiver, data, end
		self.sent, self.got = 0, 0
		self.hash = hashlib.sha256()
		self.done = False

	def send(self):
		if self.sent < len(self.data):
			self.sent += self.sender.send(self.data[self.sent:self.sent + (1 << 20)])
		if self.sent == len(self.data) and self.end:
			self.sender.shutdown(socket.SHUT_WR)
			self.end = None

	def receive(self):
		part = self.receiver.recv(1 << 20)
		self.hash.update(part)
		self.got += len(part)
		if not part or (self.end is False and self.got == len(self.data)):
			self.done = True

	def same(self):
		return self.done and self.hash.digest() == hashlib.sha256(self.data).digest()


def move(flows, seconds=20):
	"""Carries out flows until all are done. Returns whether all data arrived once and intact,
	and the time, us."""
	began = time.monotonic()
	senders = {flow.sender.fileno(): flow for flow in flows}
	receivers = {flow.receiver.fileno(): flow for flow in flows}
	while time.monotonic() - began < seconds:
		poll = select.poll()
		for fd in senders.keys() | receivers.keys():
			poll.register(fd, (select.POLLIN if fd in receivers else 0) |
					  (select.POLLOUT if fd in senders else 0))
		if not receivers:
			break
		for fd, events in poll.poll(1000):
			with contextlib.suppress(BlockingIOError):
				if events & ~select.POLLOUT and fd in receivers:
					flow = receivers[fd]
					flow.receive()
					if flow.done:
						del receivers[fd]
			with contextlib.suppress(BlockingIOError):
				if events & select.POLLOUT and fd in senders:
					flow = senders[fd]
					flow.send()
					if flow.end is None or flow.sent == len(flow.data):
						del senders[fd]
	return all(flow.same() for flow in flows), (time.monotonic() - began) * 1e6


def both_ways(address=V4, count=1000000, seconds=20):
	"""A connection that carries COUNT bytes in each direction."""
	client, server = pair(address)
	same, us = move([Flow(client, server, data(count, 1)), Flow(server, client, data(count, 2))],
			seconds)
	infos = info(client), info(server)
	client.close()
	server.close()
	return same, us, infos
