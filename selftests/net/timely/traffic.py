#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Traffic for TIMELY's functional tests.

Reads a plan from standard input, one event per line:

	SECONDS VERB KEY [NAME=VALUE]...

carries out the plan in the guest's virtual time and prints the results, one
KEY_NAME=NUMBER per line, for the shell to evaluate. All senders and receivers are
sockets of this one process, in several network namespaces: under User Mode Linux a
system call takes no virtual time, but starting a process takes much real time.
The verbs:

flow KEY from= to= addr= [cc=] [bytes=] [mss=] [cap=] [rate=] [every=] [verify=]
	a connection from one namespace to another, which sends BYTES or, without
	bytes=, until it is stopped. With rate=, the application writes RATE kbit/s, in
	parts every EVERY seconds; without, as much as fits. CAP, kbit/s, is
	SO_MAX_PACING_RATE. Gives KEY_done, KEY_bytes, KEY_us and, with verify=1,
	KEY_same: 1 if the receiver's hash equals the sender's.
stop KEY, pause KEY, resume KEY
	the flow's application ends, stops writing, writes again
set KEY [cc=] [cap=]
	setsockopt on the flow's sender
info KEY flow=
	KEY_rate, kbit/s: the pacing rate, and other members of TCP_INFO
goodput KEY flow= for=
	KEY, kbit/s: the average rate of the receiver in that time
watch KEY flow= for= every=
	KEY_min, KEY_max, kbit/s: lowest and highest pacing rate; KEY_lost_us: the longest
	time for which TCP counted packets as lost that were not yet repaired
reach KEY flow= rate= within= every= [acked=] [last=]
	KEY_us: the time until the receiver's rate over EVERY seconds was RATE, -1 if
	never; RATE is a number or another verb's KEY, times a factor: g*0.9. With acked=1
	the time starts at the next ACK of new data, KEY_began_us. With last=1 the
	flow's application ends afterwards
ping KEY from= to= addr= for= every= [size=]
	KEY_min, KEY_p50, KEY_p99, KEY_max, us: UDP round trips; KEY_lost
rpc KEY from= to= addr= cc= count= [request=] [response=] [think=]
	COUNT requests on one connection, each answered after THINK seconds; several
	values with commas are used in turn. Gives KEY_done, the number of answers, and
	KEY_min, kbit/s: the lowest pacing rate of all answers
many KEY from= to= addr= cc= count= parallel= min= max=
	COUNT connections of MIN to MAX bytes, PARALLEL at a time; the receiver answers
	each with the CRC of the data. Gives KEY_done, KEY_same
counters KEY ns=
	counters of the namespace: KEY_name for each of /proc/net/netstat, and
	KEY_tx_bytes and KEY_tx_packets of eth0, which counts a GSO packet as one
reload KEY dir= count=
	load and unload timely and tcp_timely COUNT times. Gives KEY_done
run WORDS...
	run a command, which must succeed
end	end the plan; without it the plan ends when all of its flows have ended
"""

import ctypes
import hashlib
import heapq
import itertools
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
import zlib

LIMIT_S = 100			# no plan is longer, in virtual time
CHUNK = 256 << 10		# bytes of one write
LOWAT = 128 << 10		# bytes; one wake-up per packet would make the guest 10x slower
TCP_NOTSENT_LOWAT = 25
FINIT_MODULE, DELETE_MODULE = 313, 176	# of x86-64, as User Mode Linux
TCP_INFO_FORMAT = "=8B24I4Q6I4Q2I2Q4I"
TCP_INFO_NAMES = {"state": 0, "ca_state": 1, "mss": 10, "unacked": 12,
		  "lost": 14, "pmtu": 21, "rtt": 23, "cwnd": 26,
		  "retrans": 31, "min_rtt": 39}
PACING_RATE, BYTES_ACKED, BYTES_RECEIVED = 32, 34, 35

# Random data: a segment in the wrong place changes the hash.
DATA = memoryview(random.Random(1).randbytes(1 << 20) * 2)
SCRATCH = bytearray(1 << 20)

libc = ctypes.CDLL(None, use_errno=True)
results = {}
streams = []


def check(result):
	if result < 0:
		raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
	return result


class Loop:
	"""An event loop for sockets that become ready and for calls at a time, in ns."""

	def __init__(self):
		self.epoll = select.epoll()
		self.timer = check(libc.timerfd_create(time.CLOCK_MONOTONIC, 0))
		self.epoll.register(self.timer, select.EPOLLIN)
		self.ready = {}
		self.calls = []
		self.order = 0
		self.busy = 0
		self.over = False
		self.start = time.monotonic_ns()

	def now(self):
		return (time.monotonic_ns() - self.start) / 1e9

	def at(self, when, call, *args):
		self.order += 1
		heapq.heappush(self.calls, (when, self.order, call, args))

	def watch(self, sock, call, events=select.EPOLLIN):
		if sock.fileno() in self.ready:
			self.epoll.modify(sock, events)
		else:
			self.epoll.register(sock, events)
		self.ready[sock.fileno()] = call

	def forget(self, sock):
		if self.ready.pop(sock.fileno(), None):
			self.epoll.unregister(sock)

	def run(self):
		armed = None
		while not self.over and (self.calls or self.busy):
			if self.now() > LIMIT_S:
				break
			while self.calls and self.calls[0][0] <= self.now():
				_, _, call, args = heapq.heappop(self.calls)
				call(*args)
				if self.over:
					return
			when = self.calls[0][0] if self.calls else LIMIT_S + 1
			if when != armed:
				at = self.start + max(int(when * 1e9), 1)
				spec = struct.pack("qqqq", 0, 0, at // 10**9, at % 10**9)
				check(libc.timerfd_settime(self.timer, 1, spec, None))
				armed = when
			for fd, _ in self.epoll.poll():
				if fd in self.ready:
					self.ready[fd]()
				elif fd == self.timer:
					os.read(fd, 8)


loop = Loop()
home = os.open("/proc/self/ns/net", os.O_RDONLY)


def call_in(ns, call, *args):
	there = os.open("/run/netns/" + ns, os.O_RDONLY)
	check(libc.setns(there, 0))
	try:
		return call(*args)
	finally:
		check(libc.setns(home, 0))
		os.close(there)


def socket_in(ns, kind, addr):
	"""A non-blocking socket in a namespace, of the family of ADDR."""
	family = socket.AF_INET6 if ":" in addr else socket.AF_INET
	sock = call_in(ns, socket.socket, family, kind)
	sock.setblocking(False)
	if kind == socket.SOCK_STREAM:
		streams.append(sock)
	return sock


def abort_all():
	"""Reset all connections. A closed socket with unsent data would keep its namespace
	and the module in use for minutes."""
	for sock in streams:
		if sock.fileno() >= 0:
			sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
					struct.pack("ii", 1, 0))
			sock.close()
	# Sockets that have already sent a FIN need this time to finish.
	time.sleep(1)


def listen_in(ns, addr, backlog=1):
	sock = socket_in(ns, socket.SOCK_STREAM, addr)
	sock.bind((addr, 0))
	sock.listen(backlog)
	return sock


def set_options(sock, cc=None, cap=None, mss=None):
	if cc:
		sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
	if cap:
		sock.setsockopt(socket.SOL_SOCKET, 47, # SO_MAX_PACING_RATE
				struct.pack("=Q", int(cap) * 125))
	if mss:
		sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, int(mss))


def tcp_info(sock):
	size = struct.calcsize(TCP_INFO_FORMAT)
	info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
	return struct.unpack(TCP_INFO_FORMAT, info.ljust(size, b"\0"))


def pacing_kbps(sock):
	return tcp_info(sock)[PACING_RATE] // 125


def connect(sock, server):
	try:
		sock.connect(server.getsockname()[:2])
	except BlockingIOError:
		pass


class Flow:
	"""The verb flow: a sender and a receiver"""

	def __init__(self, key, addr, bytes=None, cc=None, cap=None, mss=None,
		     rate=None, every="0.001", verify=None, **ends):
		self.key = key
		self.left = int(bytes) if bytes else 1 << 60
		# With rate=: bytes that the application writes every EVERY seconds
		self.burst = int(int(rate) * 125 * float(every)) if rate else None
		self.every = float(every)
		self.due = 0		# bytes to be written now, with rate=
		self.next_tick = 0
		self.silent = False
		self.sent = 0
		self.got = 0
		self.hashes = (hashlib.sha256(), hashlib.sha256()) if verify else None
		self.server = listen_in(ends["to"], addr)
		self.sender = socket_in(ends["from"], socket.SOCK_STREAM, addr)
		self.sender.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, CHUNK)
		if self.burst:
			self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		set_options(self.sender, cc, cap, mss)
		self.receiver = None
		self.began = loop.now()
		loop.busy += 1
		loop.watch(self.server, self.accept)
		connect(self.sender, self.server)

	def accept(self):
		self.receiver, _ = self.server.accept()
		self.receiver.setblocking(False)
		self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LOWAT)
		loop.forget(self.server)
		self.server.close()
		loop.watch(self.receiver, self.receive)
		self.resume()

	def resume(self):
		self.silent = False
		if self.burst:
			self.next_tick = loop.now()
			self.tick()
		else:
			loop.watch(self.sender, self.send, select.EPOLLOUT)

	def pause(self):
		self.silent = True
		loop.forget(self.sender)

	def tick(self):
		if self.silent or not self.left:
			return
		self.due += self.burst
		self.send()
		self.next_tick += self.every
		loop.at(self.next_tick, self.tick)

	def send(self):
		while self.left:
			size = min(self.left, CHUNK, self.due if self.burst else CHUNK)
			if not size:
				return
			at = self.sent % (1 << 20)
			try:
				size = self.sender.send(DATA[at:at + size])
			except BlockingIOError:
				return
			if self.hashes:
				self.hashes[0].update(DATA[at:at + size])
			self.sent += size
			self.left -= size
			if self.burst:
				self.due -= size
		self.stop()

	def stop(self):
		self.left = 0
		loop.forget(self.sender)
		self.sender.shutdown(socket.SHUT_WR)

	def receive(self):
		while True:
			try:
				size = self.receiver.recv_into(SCRATCH)
			except BlockingIOError:
				return
			if not size:
				return self.finish()
			self.got += size
			if self.hashes:
				self.hashes[1].update(memoryview(SCRATCH)[:size])

	def finish(self):
		loop.forget(self.receiver)
		results[self.key + "_done"] = int(not self.left)
		results[self.key + "_bytes"] = self.got
		results[self.key + "_us"] = int((loop.now() - self.began) * 1e6)
		if self.hashes:
			same = self.hashes[0].digest() == self.hashes[1].digest()
			results[self.key + "_same"] = int(same)
		loop.busy -= 1

	def received(self):
		return tcp_info(self.receiver)[BYTES_RECEIVED] if self.receiver else 0


class Ping:
	"""The verb ping: UDP datagrams and their echoes"""

	def __init__(self, key, addr, every, size="64", **rest):
		self.key = key
		self.rtts = []
		self.size = int(size)
		self.every = float(every)
		self.until = loop.now() + float(rest["for"])
		self.server = socket_in(rest["to"], socket.SOCK_DGRAM, addr)
		self.server.bind((addr, 0))
		self.client = socket_in(rest["from"], socket.SOCK_DGRAM, addr)
		self.client.connect(self.server.getsockname()[:2])
		self.count = 0
		loop.watch(self.server, self.echo)
		loop.watch(self.client, self.answer)
		loop.busy += 1
		self.tick()

	def tick(self):
		if loop.now() >= self.until:
			loop.at(loop.now() + 0.1, self.finish)
			return
		self.count += 1
		self.client.send(struct.pack("=d", loop.now()).ljust(self.size, b"\0"))
		loop.at(loop.now() + self.every, self.tick)

	def echo(self):
		data, peer = self.server.recvfrom(2048)
		self.server.sendto(data, peer)

	def answer(self):
		sent, = struct.unpack("=d", self.client.recv(2048)[:8])
		self.rtts.append(int((loop.now() - sent) * 1e6))

	def finish(self):
		rtts = sorted(self.rtts) or [-1]
		results[self.key + "_min"] = rtts[0]
		results[self.key + "_p50"] = rtts[len(rtts) // 2]
		results[self.key + "_p99"] = rtts[len(rtts) * 99 // 100]
		results[self.key + "_max"] = rtts[-1]
		results[self.key + "_lost"] = self.count - len(self.rtts)
		loop.forget(self.server)
		loop.forget(self.client)
		loop.busy -= 1


class Rpc:
	"""The verb rpc: one request at a time on one connection"""

	def __init__(self, key, addr, cc, count, request="100", response="100",
		     think="0", **ends):
		self.key = key
		self.left = int(count)
		self.request = int(request)
		self.response = int(response)
		self.thinks = itertools.cycle(float(t) for t in think.split(","))
		self.asked = self.answered = self.done = 0
		self.lowest = 1 << 60
		self.listener = listen_in(ends["to"], addr)
		self.client = socket_in(ends["from"], socket.SOCK_STREAM, addr)
		set_options(self.client, cc)
		self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		self.server = None
		loop.busy += 1
		loop.watch(self.listener, self.accept)
		connect(self.client, self.listener)

	def accept(self):
		self.server, _ = self.listener.accept()
		self.server.setblocking(False)
		self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		loop.forget(self.listener)
		loop.watch(self.server, self.serve)
		loop.watch(self.client, self.receive)
		self.ask()

	def ask(self):
		self.client.send(DATA[:self.request])

	def serve(self):
		self.asked += self.server.recv_into(SCRATCH)
		if self.asked >= self.request:
			self.asked = 0
			loop.at(loop.now() + next(self.thinks), self.reply)

	def reply(self):
		self.server.send(DATA[:self.response])

	def receive(self):
		self.answered += self.client.recv_into(SCRATCH)
		if self.answered < self.response:
			return
		self.answered = 0
		self.done += 1
		self.left -= 1
		self.lowest = min(self.lowest, pacing_kbps(self.client))
		if self.left:
			return self.ask()
		results[self.key + "_done"] = self.done
		results[self.key + "_min"] = self.lowest
		loop.forget(self.client)
		loop.forget(self.server)
		self.client.close()
		self.server.close()
		loop.busy -= 1


class Many:
	"""The verb many: short connections to one listener"""

	def __init__(self, key, addr, cc, count, parallel, min, max, **ends):
		self.key = key
		self.addr = addr
		self.cc = cc
		self.ns = ends["from"]
		self.left = int(count)
		self.open = self.done = self.same = 0
		self.sizes = (int(min), int(max))
		self.random = random.Random(2)
		self.listener = listen_in(ends["to"], addr, int(parallel))
		loop.watch(self.listener, self.accept)
		loop.busy += 1
		for _ in range(int(parallel)):
			self.begin()

	def begin(self):
		self.left -= 1
		self.open += 1
		sock = socket_in(self.ns, socket.SOCK_STREAM, self.addr)
		set_options(sock, self.cc)
		connect(sock, self.listener)
		loop.watch(sock, lambda: self.send(sock), select.EPOLLOUT)

	def send(self, sock):
		size = self.random.randint(*self.sizes)
		at = self.random.randrange(1 << 20)
		if sock.send(DATA[at:at + size]) != size:
			raise RuntimeError("a short write into an empty buffer")
		sock.shutdown(socket.SHUT_WR)
		crc = zlib.crc32(DATA[at:at + size])
		loop.watch(sock, lambda: self.receive(sock, crc))

	def accept(self):
		sock, _ = self.listener.accept()
		sock.setblocking(False)
		sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LOWAT)
		crc = [0]
		loop.watch(sock, lambda: self.serve(sock, crc))

	def serve(self, sock, crc):
		while True:
			try:
				size = sock.recv_into(SCRATCH)
			except BlockingIOError:
				return
			if not size:
				break
			crc[0] = zlib.crc32(memoryview(SCRATCH)[:size], crc[0])
		sock.send(struct.pack("=I", crc[0]))
		loop.forget(sock)
		sock.close()

	def receive(self, sock, crc):
		self.done += 1
		self.same += sock.recv(8) == struct.pack("=I", crc)
		loop.forget(sock)
		sock.close()
		self.open -= 1
		if self.left:
			self.begin()
		elif not self.open:
			results[self.key + "_done"] = self.done
			results[self.key + "_same"] = self.same
			loop.forget(self.listener)
			self.listener.close()
			loop.busy -= 1


flows = {}


def goodput_kbps(flow, since, before):
	return int((flow.received() - before) * 8e-3 / (loop.now() - since))


def do_flow(key, **args):
	flows[key] = Flow(key, **args)


def do_info(key, flow):
	info = tcp_info(flows[flow].sender)
	results[key + "_rate"] = info[PACING_RATE] // 125
	for name, index in TCP_INFO_NAMES.items():
		results[key + "_" + name] = info[index]


def do_goodput(key, flow, **args):
	flow = flows[flow]
	since = loop.now()
	before = flow.received()

	def finish():
		results[key] = goodput_kbps(flow, since, before)

	loop.at(since + float(args["for"]), finish)


def do_watch(key, flow, every, **args):
	flow = flows[flow]
	until = loop.now() + float(args["for"])
	rates = []
	whole_us = [0]

	# WHOLE_AT: the last time at which TCP counted no packet as lost
	def sample(whole_at):
		now = loop.now()
		info = tcp_info(flow.sender)
		rates.append(info[PACING_RATE] // 125)
		if info[TCP_INFO_NAMES["lost"]]:
			whole_us.append(int((now - whole_at) * 1e6))
		else:
			whole_at = now
		if now < until:
			return loop.at(now + float(every), sample, whole_at)
		results[key + "_min"] = min(rates)
		results[key + "_max"] = max(rates)
		results[key + "_lost_us"] = max(whole_us)

	sample(loop.now())


def kbps_of(rate):
	rate, _, factor = rate.partition("*")
	return int(results[rate] if rate in results else rate) * float(factor or 1)


def do_reach(key, flow, rate, within, every, acked=None, last=None):
	flow = flows[flow]
	wanted = kbps_of(rate)

	def begin():
		began = loop.now()
		results[key + "_began_us"] = int(began * 1e6)
		loop.at(began + float(every), sample, began, began, flow.received())

	def sample(began, since, before):
		now = loop.now()
		if goodput_kbps(flow, since, before) >= wanted:
			results[key + "_us"] = int((now - began) * 1e6)
		elif now - began > float(within):
			results[key + "_us"] = -1
		else:
			return loop.at(now + float(every), sample, began, now,
				       flow.received())
		if last:
			flow.stop()

	def wait(before):
		if tcp_info(flow.sender)[BYTES_ACKED] > before:
			return begin()
		loop.at(loop.now() + 0.001, wait, before)

	if acked:
		wait(tcp_info(flow.sender)[BYTES_ACKED])
	else:
		begin()


def read_counters():
	with open("/proc/thread-self/net/netstat", encoding="ascii") as file:
		for line in file:
			names, values = line.split(), next(file).split()
			yield from zip(names[1:], values[1:])
	with open("/proc/thread-self/net/dev", encoding="ascii") as file:
		for line in file:
			words = line.split()
			if words[0] == "eth0:":
				yield from (("tx_bytes", words[9]),
					    ("tx_packets", words[10]))


def do_counters(key, ns):
	for name, value in call_in(ns, lambda: list(read_counters())):
		results[f"{key}_{name}"] = value


def do_reload(key, dir, count):
	names = ("timely", "tcp_timely")
	files = [os.open(f"{dir}/{name}.ko", os.O_RDONLY) for name in names]
	results[key + "_done"] = 0
	for _ in range(int(count)):
		for file in files:
			check(libc.syscall(FINIT_MODULE, file, b"", 0))
		for name in reversed(names):
			check(libc.syscall(DELETE_MODULE, name.encode(), os.O_NONBLOCK))
		results[key + "_done"] += 1


def do_end():
	def end():
		loop.over = True

	# Later than other events of the same time.
	loop.at(loop.now() + 0.001, end)


def do_run(*words):
	subprocess.run(words, check=True, stdin=subprocess.DEVNULL,
		       stdout=subprocess.DEVNULL)


VERBS = {
	"flow": do_flow, "info": do_info, "goodput": do_goodput,
	"watch": do_watch, "reach": do_reach, "counters": do_counters, "reload": do_reload,
	"ping": Ping, "rpc": Rpc, "many": Many,
	"stop": lambda key: flows[key].stop(),
	"pause": lambda key: flows[key].pause(),
	"resume": lambda key: flows[key].resume(),
	"set": lambda key, **args: set_options(flows[key].sender, **args),
	"end": do_end,
}


def read_plan(lines):
	for line in lines:
		words = line.split()
		if not words or words[0].startswith("#"):
			continue
		when, verb = float(words[0]), words[1]
		if verb == "run":
			loop.at(when, do_run, *words[2:])
			continue
		args = dict(word.split("=", 1) for word in words[3:])
		loop.at(when, lambda call, key, args: call(*key, **args),
			VERBS[verb], words[2:3], args)


read_plan(sys.stdin.readlines())
loop.start = time.monotonic_ns()
loop.run()
abort_all()
for key, value in results.items():
	print(f"{key}={value}")
