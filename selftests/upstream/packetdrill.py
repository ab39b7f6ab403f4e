#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run scripts in the language of packetdrill, which tests TCP packet by packet.

    packetdrill.py [-i IPVERSION]... SCRIPT...

Debian has no package of packetdrill, so this program reads the part of the language that the
kernel's selftests use (tools/testing/selftests/net/packetdrill). A script has events with times:
system calls on the socket under test, packets that the peer sends (<), packets that the kernel must
send (>), shell commands (`...`) and Python assertions about struct tcp_info (%{ ... }%). Each
script runs in a network namespace of its own, whose tun device is the network.

An event may be at most 4 ms, or 1 % of its delay, early or late. A packet in the script may be
several packets of equal sizes on the wire, the last of which counts, as in packetdrill. Times are
those of the real-time clock, so the program needs a guest with virtual time. IPVERSION is ipv4,
ipv6 or ipv4-mapped-ipv6, by default all three, unless the script names one.

Prints TAP; the exit status is 0 only if all cases have passed.
"""
import argparse
import ctypes
import errno
import fcntl
import os
import re
import select
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time

TOLERANCE_US = 4000
PROBE_PERIOD_NS = 1 << 26   # of base-RTT probes
PORT = 8080                 # of the server, on either side
CLIENT_PORT = 50000         # of the first client that the script plays
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16, "U": 32, "E": 64, "W": 128, "A": 256}
JOINED = 1 | 8 | 128        # FIN, PSH and CWR may differ in packets that are joined
ACE = 448                   # the flags E, W and A as one number, the AccECN counter
ECN = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3}
VERSIONS = {
    "ipv4": {"local": "192.168.0.1", "remote": "192.0.2.1", "mtu": 1500,
             "TFO_COOKIE": "3021b9d889017eeb", "TFO_COOKIE_ZERO": "b7c12350a90dc8f5",
             "CMSG_LEVEL_IP": socket.SOL_IP, "CMSG_TYPE_RECVERR": 11},
    "ipv6": {"local": "fd3d:a0b:17d6::1", "remote": "fd3d:fa7b:d17d::1", "mtu": 1520,
             "TFO_COOKIE": "c1d1e9742a47a9bc", "TFO_COOKIE_ZERO": "82af1a8f9a205c34",
             "CMSG_LEVEL_IP": 41, "CMSG_TYPE_RECVERR": 25},
}
VERSIONS["ipv4-mapped-ipv6"] = {**VERSIONS["ipv4"], "CMSG_LEVEL_IP": 41, "CMSG_TYPE_RECVERR": 25}

# Constants that the modules of Python do not have, from the kernel's headers.
CONSTANTS = {
    "NULL": None, "SOL_TCP": 6, "SOL_IP": 0, "MSG_ZEROCOPY": 0x4000000, "MSG_FASTOPEN": 0x20000000,
    "SO_ZEROCOPY": 60, "SO_TIMESTAMPING": 37, "SCM_TIMESTAMPING": 37, "TCP_INQ": 36,
    "TCP_CM_INQ": 36, "TCP_FASTOPEN_CONNECT": 30, "TCP_FASTOPEN_KEY": 33, "IP_FREEBIND": 15,
    "IP_MTU_DISCOVER": 10, "IP_PMTUDISC_DONT": 0, "SIOCINQ": 0x541B, "ENOMSG": errno.ENOMSG,
    "SOF_TIMESTAMPING_TX_SOFTWARE": 2, "SOF_TIMESTAMPING_SOFTWARE": 16,
    "SOF_TIMESTAMPING_OPT_ID": 128, "SOF_TIMESTAMPING_TX_SCHED": 256,
    "SOF_TIMESTAMPING_TX_ACK": 512, "SO_EE_ORIGIN_TIMESTAMPING": 4, "SO_EE_ORIGIN_ZEROCOPY": 5,
    "SO_EE_CODE_ZEROCOPY_COPIED": 1, "SCM_TSTAMP_SND": 0, "SCM_TSTAMP_SCHED": 1,
    "SCM_TSTAMP_ACK": 2, "EPOLL_CTL_ADD": 1, "EPOLL_CTL_MOD": 3,
}
STATES = ("ESTABLISHED SYN_SENT SYN_RECV FIN_WAIT1 FIN_WAIT2 TIME_WAIT CLOSE CLOSE_WAIT LAST_ACK "
          "LISTEN CLOSING NEW_SYN_RECV").split()
ASSERTED = {"TCP_" + name: number for number, name in enumerate(STATES, 1)}
ASSERTED |= {"TCP_CA_" + name: number for number, name in
             enumerate("Open Disorder CWR Recovery Loss".split())}
ASSERTED |= {"TCPI_OPT_" + name: 1 << bit for bit, name in
             enumerate("TIMESTAMPS SACK WSCALE ECN ECN_SEEN SYN_DATA".split())}

# struct tcp_info: the numbers of bytes of the fields, in order. do_code() unpacks fields of bits.
INFO = [(1, "state ca_state retransmits probes backoff options wscales bits"),
        (4, "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent "
            "last_ack_sent last_data_recv last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh "
            "snd_cwnd advmss reordering rcv_rtt rcv_space total_retrans"),
        (8, "pacing_rate max_pacing_rate bytes_acked bytes_received"),
        (4, "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
        (8, "delivery_rate busy_time rwnd_limited sndbuf_limited"),
        (4, "delivered delivered_ce"),
        (8, "bytes_sent bytes_retrans"),
        (4, "dsack_dups reord_seen rcv_ooopack snd_wnd rcv_wnd rehash"),
        (2, "total_rto total_rto_recoveries"),
        (4, "total_rto_time received_ce delivered_e1_bytes delivered_e0_bytes delivered_ce_bytes "
            "received_e1_bytes received_e0_bytes received_ce_bytes")]

libc = ctypes.CDLL(None, use_errno=True)
kept = []                   # buffers of MSG_ZEROCOPY, which the kernel may read later


class Failure(Exception):
    """The kernel did something else than the script says, or the script cannot be run."""


def now_us():
    return time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000


def constant(name, version):
    for known in (version, CONSTANTS):
        if name in known:
            return known[name]
    for module in (socket, errno, os, fcntl, select):
        if hasattr(module, name):
            return int(getattr(module, name))
    raise Failure(f"unknown constant {name}")


# ---- reading a script ----

NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
TIME = re.compile(rf"(\*|(\+?){NUMBER})(?:\s*~\s*\+?({NUMBER}))?(?:\s*\.\.\.\s*({NUMBER}))?\s*")
KEPT_OR_COMMENT = re.compile(r'`[^`]*`|%\{.*?\}%|"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.S)
PACKET = re.compile(
    r"([<>])\s*(?:\[(\w+)\])?\s*([-FSRPUEWA.0-9]+)\s+(\d+):\d+\((\d+)\)(?:\s+ack\s+(\d+))?"
    r"(?:\s+win\s+(\d+))?(?:\s+urg\s+(\d+))?\s*(?:<(.*)>)?[ \t]*(?=\n|$)")
ICMP = re.compile(r"<\s*icmp\s+(\w+)(?:\s+(?!mtu)(\w+))?(?:\s+mtu\s+(\d+))?\s+\[(\d+):\d+\(\d+\)\]")
RESULT = re.compile(r"\s*=[ \t]*(-?\w+)[ \t]*([A-Z]\w*)?[ \t]*(?:\([^)\n]*\))?")
TOKEN = re.compile(r'\s*(\.\.\.|"(?:\\.|[^"])*"|-?\w+|[\[\]{}(),=|])')


class Event:
    def __init__(self, line, kind, data, times):
        self.line, self.kind, self.data = line, kind, data
        start, plus, end_of_range, end_of_call = times
        self.any, self.relative = start == "*", plus == "+"
        self.start = 0 if self.any else round(float(start) * 1e6)
        self.until = round(float(end_of_range) * 1e6) if end_of_range else self.start
        self.call_end = round(float(end_of_call) * 1e6) if end_of_call else None


class Arguments:
    """Reads the arguments of a system call; gives numbers, bytes, lists, dictionaries and "..."."""

    def __init__(self, text, position, version):
        self.text, self.at, self.version = text, position, version

    def take(self):
        match = TOKEN.match(self.text, self.at)
        if not match:
            raise Failure(f"cannot read: {self.text[self.at:self.at + 40]!r}")
        self.at = match.end()
        return match[1]

    def peek(self):
        at = self.at
        token = self.take()
        self.at = at
        return token

    def values(self, end):
        found = []
        named = {}
        while self.peek() != end:
            value = self.value()
            if self.peek() == "=":
                self.take()
                named[value] = self.value()
            else:
                found.append(value)
            if self.peek() == ",":
                self.take()
        self.take()
        return named or found

    def value(self):
        token = self.take()
        if token == "[":
            return self.values("]")
        if token == "{":
            return self.values("}")
        if token == "...":
            return token
        if token[0] == '"':
            return token[1:-1].encode().decode("unicode_escape").encode("latin1")
        if self.peek() == "(":          # msg_iov(2)
            self.take(), self.take(), self.take()
            return token
        if self.peek() == "=":          # a member's name
            return token
        value = self.number(token)
        while self.peek() == "|":
            self.take()
            value |= self.number(self.take())
        return value

    def number(self, token):
        return int(token, 0) if token.lstrip("-")[0].isdigit() else constant(token, self.version)


def read_script(text, version):
    """Return the options and the events of a script."""
    text = KEPT_OR_COMMENT.sub(
        lambda m: re.sub(r"[^\n]", " ", m[0]) if m[0][0] == "/" else m[0], text)
    options, events, at = {}, [], 0
    while True:
        at += len(text[at:]) - len(text[at:].lstrip())
        if at == len(text):
            return options, events
        line = text.count("\n", 0, at) + 1
        if text.startswith("--", at):
            name, _, value = text[at + 2:].split("\n", 1)[0].strip().partition("=")
            options[name] = value
            at = (text + "\n").index("\n", at)
            continue
        times = ("*", "", None, None)
        if text[at] != "`":
            match = TIME.match(text, at)
            if not match:
                raise Failure(f"line {line}: expected a time")
            times, at = match.groups(), match.end()
        event, at = read_event(text, at, line, times, version)
        events.append(event)


def read_event(text, at, line, times, version):
    for kind, pattern in (("command", r"`([^`]*)`"), ("code", r"(?s:%\{(.*?)\}%)")):
        match = re.compile(pattern).match(text, at)
        if match:
            return Event(line, kind, match[1], times), match.end()
    for kind, pattern in (("icmp", ICMP), ("packet", PACKET)):
        match = pattern.match(text, at)
        if match:
            return Event(line, kind, match.groups(), times), match.end()
    match = re.compile(r"(\w+)\(").match(text, at)
    if not match:
        raise Failure(f"line {line}: cannot read this event")
    arguments = Arguments(text, match.end(), version)
    values = arguments.values(")")
    result = RESULT.match(text, arguments.at)
    call = match[1], values, int(result[1], 0), result[2]
    return Event(line, "call", call, times), result.end()


# ---- packets ----

def read_options(text, version):
    """Return TCP options as (kind, data) from a script's text."""
    found = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, *rest = word.split()
        if name in ("nop", "eol"):
            found.append((int(name == "nop"), b""))
        elif name == "mss":
            found.append((2, struct.pack(">H", int(rest[0]))))
        elif name == "wscale":
            found.append((3, bytes([int(rest[0])])))
        elif name == "sackOK":
            found.append((4, b""))
        elif name == "sack":
            edges = [int(edge) for block in rest for edge in block.split(":")]
            found.append((5, struct.pack(f">{len(edges)}I", *edges)))
        elif name == "TS":
            found.append((8, struct.pack(">II", int(rest[1]), int(rest[3]))))
        elif name == "md5":
            found.append((19, bytes.fromhex(rest[0])))
        elif name in ("FO", "FOEXP"):
            cookie = bytes.fromhex(version.get(rest[0], rest[0])) if rest else b""
            found.append((34, cookie) if name == "FO" else (254, b"\xf9\x89" + cookie))
        elif name == "ECN":
            data = b"".join(int(number).to_bytes(3, "big") for number in rest[1::2])
            found.append((174 if rest[0] == "e1b" else 172, data))
        else:
            raise Failure(f"unknown TCP option {word}")
    return found


def parse_options(data):
    found, at = [], 0
    while at < len(data):
        length = 1 if data[at] < 2 else data[at + 1]
        found.append((data[at], data[at + 2:at + length]))
        at += max(length, 1)
    return found


def pack_options(options):
    data = b"".join(bytes([kind]) if kind < 2 else bytes([kind, len(value) + 2]) + value
                    for kind, value in options)
    return data + bytes(-len(data) % 4)


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Packet:
    """A TCP packet that the kernel has sent."""

    def __init__(self, data, time_us):
        self.time_us = time_us
        if data[0] >> 4 == 4:
            self.ecn, header = data[1] & 3, (data[0] & 15) * 4
            self.is_tcp = data[9] == 6
            self.source, self.target = data[12:16], data[16:20]
            length = struct.unpack(">H", data[2:4])[0]
        else:
            self.ecn, header = data[1] >> 4 & 3, 40
            self.is_tcp = data[6] == 6
            self.source, self.target = data[8:24], data[24:40]
            length = struct.unpack(">H", data[4:6])[0] + 40
        if not self.is_tcp:
            return
        (self.sport, self.dport, self.seq, self.ack, flags, self.win, _,
         self.urg) = struct.unpack(">HHIIHHHH", data[header:header + 20])
        self.flags = flags & 511
        start = header + (flags >> 12) * 4
        self.options = parse_options(data[header + 20:start])
        self.payload = data[start:length]
        self.size = len(self.payload)


    def append(self, following):
        """Join the packet that followed: TCP may divide data at any full segment."""
        size = len(following.payload)
        last = self.seq + len(self.payload) == following.seq and 0 < size
        if not last or self.flags & ~JOINED != following.flags & ~JOINED or size > self.size:
            raise Failure(f"after {len(self.payload)} bytes, a packet with {size} bytes that do "
                          "not follow")
        self.payload += following.payload
        self.size = size
        self.flags = following.flags & ~FLAGS["W"] | self.flags & FLAGS["W"]
        self.options = following.options
        self.time_us = following.time_us


class Connection:
    """The socket under test: its addresses, and how the script's numbers map to the kernel's."""

    def __init__(self, state):
        self.state = state              # listening, connecting or open
        self.fd = self.local_port = self.remote_port = None
        self.script_isn = self.live_isn = self.remote_isn = self.script_remote_isn = 0
        self.first_ts = None            # (script, kernel)
        self.ts = {}

    def local_offset(self, syn):
        return self.live_isn - (self.script_isn if syn else 0)

    def remote_offset(self, syn):
        return self.remote_isn - (self.script_remote_isn if syn else 0)


# ---- running a script ----

class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint32), ("iov", ctypes.c_void_p),
                ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p),
                ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]


class Calls:
    """The system calls. Each method returns the result and checks what the call has written."""

    def __init__(self, runner):
        self.runner = runner
        self.fds = {}
        self.entered = False            # whether the present call is in the kernel, or has been

    def run(self, name, values, result, error):
        if not hasattr(self, name):
            raise Failure(f"unknown system call {name}")
        got = getattr(self, name)(*values)
        code = ctypes.get_errno()
        shown = f"{got} {errno.errorcode.get(code)}" if got < 0 else str(got)
        if name in ("socket", "accept", "open", "epoll_create") and result >= 0 and got >= 0:
            self.fds[result] = got
        elif got != result or (error and errno.errorcode.get(code) != error):
            raise Failure(f"{name}: expected {result} {error or ''}, got {shown}")

    def c(self, name, *values):
        function = getattr(libc, name)
        function.restype = ctypes.c_long
        self.entered = True
        got = function(*(ctypes.c_long(value) if isinstance(value, int) else value
                         for value in values))
        return ctypes.c_int(got).value if name not in ("read", "write", "splice") else got

    def buffer(self, size):
        data = ctypes.create_string_buffer(max(size, 1))
        kept.append(data)
        return data

    def address(self, remote):
        family, packed = self.runner.family, self.runner.packed
        ip = packed["remote" if remote else "local"]
        if family == socket.AF_INET:
            data = struct.pack("=H", family) + struct.pack(">H", PORT) + ip + bytes(8)
        else:
            ip = ip if len(ip) == 16 else bytes(10) + b"\xff\xff" + ip
            data = struct.pack("=H", family) + struct.pack(">HI", PORT, 0) + ip + bytes(4)
        return data, len(data)

    def socket(self, _family, kind, protocol):
        return self.c("socket", int(self.runner.family), kind, protocol)

    def bind(self, fd, *_):
        return self.c("bind", self.fds[fd], *self.address(False))

    def listen(self, fd, backlog):
        self.runner.connection = Connection("listening")
        return self.c("listen", self.fds[fd], backlog)

    def connecting(self, fd):
        self.runner.connection = Connection("connecting")
        self.runner.connection.fd = self.fds[fd]
        self.runner.connection.remote_port = PORT

    def connect(self, fd, family, _size):
        if family == 0:                 # AF_UNSPEC ends a connection
            return self.c("connect", self.fds[fd], bytes(16), 16)
        self.connecting(fd)
        return self.c("connect", self.fds[fd], *self.address(True))

    def accept(self, fd, *_):
        address, size = self.buffer(32), ctypes.c_int(32)
        got = self.c("accept", self.fds[fd], address, ctypes.byref(size))
        connection = self.runner.connection
        if got >= 0 and connection.remote_port == struct.unpack(">H", address.raw[2:4])[0]:
            connection.fd = got
        return got

    def close(self, fd):
        return self.c("close", self.fds.pop(fd))

    def shutdown(self, fd, how):
        return self.c("shutdown", self.fds[fd], how)

    def fcntl(self, fd, command, flags=0):
        return self.c("fcntl", self.fds[fd], command, flags)

    def ioctl(self, fd, request, expected):
        value = ctypes.c_int()
        got = self.c("ioctl", self.fds[fd], request, ctypes.byref(value))
        self.same("ioctl", value.value, expected[0])
        return got

    def setsockopt(self, fd, level, name, value, size):
        data = struct.pack("=i", value[0]) if isinstance(value, list) else value
        return self.c("setsockopt", self.fds[fd], level, name, data, size)

    def getsockopt(self, fd, level, name, value, size):
        data, length = ctypes.c_int(), ctypes.c_int(size[0])
        got = self.c("getsockopt", self.fds[fd], level, name, ctypes.byref(data),
                     ctypes.byref(length))
        self.same("getsockopt", data.value, value[0])
        return got

    def same(self, what, got, expected):
        if got != expected:
            raise Failure(f"{what}: expected {expected}, got {got}")

    def data(self, given, size):
        return given if given is None else self.buffer(size)

    def read(self, fd, data, size):
        return self.c("read", self.fds[fd], self.data(data, size), size)

    def write(self, fd, data, size):
        return self.c("write", self.fds[fd], self.data(data, size), size)

    def send(self, fd, data, size, flags):
        return self.c("send", self.fds[fd], self.data(data, size), size, flags)

    def recv(self, fd, data, size, flags):
        return self.c("recv", self.fds[fd], self.data(data, size), size, flags)

    def recvfrom(self, fd, data, size, flags, *_):
        return self.c("recvfrom", self.fds[fd], self.data(data, size), size, flags, None, None)

    def sendto(self, fd, data, size, flags, *_):
        if flags & CONSTANTS["MSG_FASTOPEN"]:
            self.connecting(fd)
        return self.c("sendto", self.fds[fd], self.data(data, size), size, flags,
                      *self.address(True))

    def message(self, fields):
        vectors = (Iovec * len(fields["msg_iov"]))()
        for vector, (_, size) in zip(vectors, fields["msg_iov"]):
            vector.base, vector.len = ctypes.addressof(self.buffer(size)), size
        kept.append(vectors)
        return Msghdr(iov=ctypes.addressof(vectors), iovlen=len(vectors))

    def sendmsg(self, fd, fields, flags):
        return self.c("sendmsg", self.fds[fd], ctypes.byref(self.message(fields)), flags)

    def recvmsg(self, fd, fields, flags):
        message, control = self.message(fields), self.buffer(512)
        message.control, message.controllen = ctypes.addressof(control), 512
        got = self.c("recvmsg", self.fds[fd], ctypes.byref(message), flags)
        code = ctypes.get_errno()
        if got >= 0:
            self.same("msg_flags", message.flags, fields["msg_flags"])
            self.controls(control.raw[:message.controllen], fields.get("msg_control") or [])
        ctypes.set_errno(code)
        return got

    def controls(self, data, expected):
        at = 0
        for fields in expected:
            if at + 16 > len(data):
                raise Failure("a control message is missing")
            size, level, kind = struct.unpack("=Qii", data[at:at + 16])
            content = data[at + 16:at + size]
            self.same("control message", (level, kind), (fields["cmsg_level"], fields["cmsg_type"]))
            wanted = fields["cmsg_data"]
            if isinstance(wanted, int):
                self.same("control data", struct.unpack("=i", content[:4])[0], wanted)
            elif "scm_sec" in wanted:
                seconds, nanoseconds = struct.unpack("=qq", content[:16])
                late = (seconds * 1000000 + nanoseconds // 1000 - self.runner.began -
                        wanted["scm_sec"] * 1000000 - wanted["scm_nsec"] // 1000)
                if abs(late) > self.runner.tolerance:
                    raise Failure(f"the kernel's timestamp is {late} us late")
            else:
                names = "ee_errno", "ee_origin", "ee_type", "ee_code", "ee_info", "ee_data"
                got = dict(zip(names, struct.unpack("=IBBBxII", content[:16])))
                self.same("extended error", got, wanted)
            at += (size + 7) & ~7
        if at < len(data):
            raise Failure("there are more control messages than expected")

    def epoll_create(self, size):
        return self.c("epoll_create", size)

    def epoll_ctl(self, fd, operation, other, event):
        data = struct.pack("=Iq", event["events"], event["fd"])
        return self.c("epoll_ctl", self.fds[fd], operation, self.fds[other], data)

    def epoll_wait(self, fd, expected, number, timeout):
        data = self.buffer(12)
        got = self.c("epoll_wait", self.fds[fd], data, number, timeout)
        if got > 0:
            self.same("epoll events", struct.unpack("=I", data.raw[:4])[0], expected["events"])
        return got

    def pipe(self, numbers):
        ends = os.pipe()
        self.fds.update(zip(numbers, ends))
        return 0

    def splice(self, source, _a, target, _b, size, flags):
        return self.c("splice", self.fds[source], None, self.fds[target], None, size, flags)

    def open(self, path, flags):
        return self.c("open", path, flags)

    def sendfile(self, target, source, offset, size):
        return self.c("sendfile", self.fds[target], self.fds[source],
                      ctypes.byref(ctypes.c_long(offset[0])), size)


class Runner:
    def __init__(self, text, version):
        self.version = VERSIONS[version]
        self.options, self.events = read_script(text, self.version)
        self.tolerance = int(self.options.get("tolerance_usecs", TOLERANCE_US))
        wire = socket.AF_INET6 if version == "ipv6" else socket.AF_INET
        self.family = socket.AF_INET if version == "ipv4" else socket.AF_INET6
        self.packed = {end: socket.inet_pton(wire, self.version[end])
                       for end in ("local", "remote")}
        self.connection = None
        self.clients = 0
        self.calls = Calls(self)
        self.thread = self.error = None
        self.began = self.last = 0
        self.inbound = False

    def open_network(self):
        """Make a tun device like an Ethernet NIC with segmentation offload."""
        self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        flags = 0x0001 | 0x1000 | 0x4000    # IFF_TUN, IFF_NO_PI, IFF_VNET_HDR
        fcntl.ioctl(self.tun, 0x400454ca, struct.pack("=16sH22x", b"tun0", flags))
        fcntl.ioctl(self.tun, 0x400454d0, 1 | 2 | 4 | 8)    # checksums, TSO of IPv4, IPv6, with ECN
        v4 = len(self.packed["local"]) == 4
        bits, net = (24, "192.0.2.0") if v4 else (48, "fd3d:fa7b:d17d::")
        subprocess.run(["ip", "-batch", "-"], check=True, text=True, input=f"""
            link set tun0 mtu {self.version["mtu"]} up
            addr add {self.version["local"]}/{bits} dev tun0 {"" if v4 else "nodad"}
            route add {net}/{bits} dev tun0""")
        self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.wire.bind(("tun0", 3))
        self.wire.setsockopt(socket.SOL_SOCKET, 35, 1)      # SO_TIMESTAMPNS

    def run(self):
        self.open_network()
        for event in self.events:
            try:
                self.run_event(event)
            except Failure as failure:
                raise Failure(f"line {event.line}: {failure}") from None
        self.finish_call()

    def run_event(self, event):
        if event.kind == "command" and event.any:
            self.command(event.data)
            return
        if not self.began:
            self.wait_for_phase()
            self.began = now_us()
        # Inbound packets in a row are relative to times in the script: delays do not add up.
        inbound = event.kind == "icmp" or (event.kind == "packet" and event.data[0] == "<")
        base = self.last if inbound and self.inbound else now_us() - self.began
        if event.relative or event.any:
            event.start += base
            event.until += base
            if event.call_end is not None:
                event.call_end += base
        event.tolerance = self.tolerance_of(event.start - base)
        self.inbound, self.last = inbound, event.start
        if event.kind == "packet" and not inbound:
            self.outbound(event)
            return
        wait = event.start + self.began - now_us()
        if wait > 0:
            time.sleep(wait / 1e6)
        self.check_time(event, now_us())
        getattr(self, "do_" + event.kind)(event)

    @staticmethod
    def wait_for_phase():
        """Start scripts early in a period of base-RTT probes, and in the middle of a jiffy.

        All hosts of timely send less for 1 ms of each period, by the real-time clock.
        """
        time.sleep((5000000 - time.clock_gettime_ns(time.CLOCK_REALTIME)) % PROBE_PERIOD_NS / 1e9)
        time.sleep((500000 - time.monotonic_ns()) % 1000000 / 1e9)

    def tolerance_of(self, delay):
        """The kernel's timers of 1 s and more expire up to a sixteenth late."""
        return max(self.tolerance, delay // (100 if delay < 1000000 else 16))

    def check_time(self, event, at):
        at -= self.began
        early, late = event.start - event.tolerance, event.until + event.tolerance
        if not event.any and not early <= at <= late:
            expected = f"{event.start / 1e6:.6f}"
            if event.until != event.start:
                expected += f" to {event.until / 1e6:.6f}"
            raise Failure(f"expected at {expected} s, happened at {at / 1e6:.6f} s")

    def command(self, text):
        environment = {**os.environ, "PACKETDRILL_PID": str(os.getpid())}
        if subprocess.run(text, shell=True, env=environment, stdin=subprocess.DEVNULL).returncode:
            raise Failure(f"the command failed: {text.strip()}")

    def do_command(self, event):
        self.command(event.data)

    def do_code(self, event):
        data = bytearray(512)
        live = socket.socket(fileno=os.dup(self.connection.fd))
        got = live.getsockopt(socket.IPPROTO_TCP, 11, 512)      # TCP_INFO
        data[:len(got)] = got
        names, at = dict(ASSERTED), 0
        for size, fields in INFO:
            for field in fields.split():
                names["tcpi_" + field] = int.from_bytes(data[at:at + size], "little")
                at += size
        names["tcpi_snd_wscale"] = names["tcpi_wscales"] & 15
        names["tcpi_rcv_wscale"] = names["tcpi_wscales"] >> 4
        memory = live.getsockopt(socket.SOL_SOCKET, 55, 64)     # SO_MEMINFO
        names["SK_MEMINFO_RCVBUF"] = struct.unpack("=II", memory[:8])[1]
        try:
            exec(textwrap.dedent(event.data).strip() + "\n\n", names)
        except AssertionError as error:
            raise Failure(f"{event.data.strip()}: it is {error}") from None

    # A system call with a time for its end is made by a thread, while the script goes on.
    def do_call(self, event):
        self.finish_call()
        if event.call_end is None:
            self.calls.run(*event.data)
            return

        def call():
            try:
                self.calls.run(*event.data)
                late = now_us() - self.began - event.call_end
                if abs(late) > self.tolerance_of(event.call_end - event.start):
                    raise Failure(f"{event.data[0]} ended {late} us late")
            except Failure as failure:
                self.error = f"line {event.line}: {failure}"

        self.calls.entered = False
        self.thread = threading.Thread(target=call, daemon=True)
        self.thread.start()
        # Let the thread run until it has ended or waits in the call.
        for _ in range(10000):
            if not self.thread.is_alive() or (self.calls.entered and self.sleeps(self.thread)):
                break
            time.sleep(0)

    @staticmethod
    def sleeps(thread):
        with open(f"/proc/self/task/{thread.native_id}/stat", encoding="ascii") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] == "S"

    def finish_call(self):
        if self.thread:
            self.thread.join(60)
            if self.thread.is_alive():
                raise Failure("the blocking system call before did not end")
            self.thread = None
        if self.error:
            raise Failure(self.error)

    def do_packet(self, event):
        """Send a packet of the peer to the kernel."""
        _, ecn, flags, seq, length, ack, win, urg, options = event.data
        connection = self.connection
        bits = self.flags(flags)
        syn = bool(bits & 2)
        if connection is None or connection.state == "listening":
            connection = self.connection = Connection("open")
            connection.local_port, connection.remote_port = PORT, CLIENT_PORT + self.clients
            connection.remote_isn = connection.script_remote_isn = int(seq)
            self.clients += 1
        elif connection.state == "connecting" and bits & 18 == 18:
            connection.state = "open"
            connection.remote_isn = connection.script_remote_isn = int(seq)
        encoded = []
        for kind, data in read_options(options or "", self.version):
            if kind == 5:
                edges = struct.unpack(f">{len(data) // 4}I", data)
                data = struct.pack(f">{len(edges)}I", *(
                    (edge + connection.local_offset(syn)) & 0xffffffff for edge in edges))
            elif kind == 8 and bits & 16:
                value, echo = struct.unpack(">II", data)
                if connection.first_ts:
                    script, live = connection.first_ts
                    echo = connection.ts.get(echo, (echo - script + live) & 0xffffffff)
                data = struct.pack(">II", value, echo)
            encoded.append((kind, data))
        encoded = pack_options(encoded)
        tcp = struct.pack(
            ">HHIIHHHH", connection.remote_port, connection.local_port,
            (int(seq) + connection.remote_offset(syn)) & 0xffffffff,
            (int(ack) + connection.local_offset(syn)) & 0xffffffff if ack else 0,
            (5 + len(encoded) // 4) << 12 | bits, int(win or 0), 0, int(urg or 0)) + encoded
        length = int(length)
        ends = self.packed["remote"] + self.packed["local"]
        total = checksum(ends + struct.pack(">II", len(tcp) + length, 6) + tcp)
        tcp = tcp[:16] + struct.pack(">H", total) + tcp[18:] + bytes(length)
        mss = int(self.options.get("mss", 0))
        gso = (1 if len(ends) == 8 else 4) if mss else 0
        self.send(6, tcp, ECN.get(ecn, 0), struct.pack("=BBHHHH", 0, gso, 0, mss, 0, 0))

    def send(self, protocol, data, tos=0, header=bytes(10)):
        os.write(self.tun, header + self.ip_header(protocol, len(data), tos) + data)

    def ip_header(self, protocol, length, tos=0, outbound=False):
        ends = self.packed["remote"] + self.packed["local"]
        if outbound:
            ends = self.packed["local"] + self.packed["remote"]
        if len(ends) == 32:
            return struct.pack(">IHBB", 6 << 28 | tos << 20, length, protocol, 64) + ends
        header = struct.pack(">BBHHHBBH", 0x45, tos, length + 20, 0, 0, 64, protocol, 0) + ends
        return header[:10] + struct.pack(">H", checksum(header)) + header[12:]

    def do_icmp(self, event):
        """Send an ICMP error about a packet that the kernel has sent."""
        kind, code, mtu, seq = event.data
        connection = self.connection
        numbers = {("unreachable", None): (3, 0), ("unreachable", "host_unreachable"): (3, 1),
                   ("unreachable", "frag_needed"): (3, 4), ("packet_too_big", None): (2, 0)}
        if (kind, code) not in numbers:
            raise Failure(f"unknown ICMP message {kind} {code}")
        quoted = self.ip_header(6, 20, outbound=True) + struct.pack(
            ">HHI12x", connection.local_port, connection.remote_port,
            (int(seq) + connection.local_offset(False)) & 0xffffffff)
        icmp = struct.pack(">BBHI", *numbers[kind, code], 0, int(mtu or 0)) + quoted
        v6 = len(self.packed["local"]) == 16
        ends = self.packed["remote"] + self.packed["local"] + struct.pack(">II", len(icmp), 58)
        icmp = icmp[:2] + struct.pack(">H", checksum((ends if v6 else b"") + icmp)) + icmp[4:]
        self.send(58 if v6 else 1, icmp)

    def flags(self, text):
        bits = sum(FLAGS[letter] for letter in text if letter in FLAGS)
        count = re.search(r"\d", text)
        return bits & ~ACE | int(count[0]) << 6 if count else bits

    def next_packet(self, event):
        """Wait for a packet that the kernel sends on the connection under test."""
        patience = (event.until + self.began - now_us() + event.tolerance) / 1e6 + 3
        deadline = time.monotonic() + patience
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.wire], [], [], left)[0]:
                raise Failure("the kernel sent no packet")
            data, control, _, address = self.wire.recvmsg(100000, 512)
            try:
                os.read(self.tun, 11)     # the header and one byte
            except BlockingIOError:
                pass
            if address[2] != socket.PACKET_OUTGOING:
                continue
            stamp = next(value for level, kind, value in control if kind == 35)
            seconds, nanoseconds = struct.unpack("=qq", stamp)
            packet = Packet(data, seconds * 1000000 + nanoseconds // 1000)
            if packet.is_tcp and self.is_ours(packet):
                return packet

    def is_ours(self, packet):
        connection = self.connection
        if not connection or (packet.source, packet.target) != (self.packed["local"],
                                                                 self.packed["remote"]):
            return False
        if connection.state == "connecting" and packet.flags & 18 == 2 and packet.dport == PORT:
            connection.local_port = packet.sport
        return (packet.sport, packet.dport) == (connection.local_port, connection.remote_port)

    def outbound(self, event):
        """Compare the next packet of the kernel with the script."""
        _, ecn, flags, seq, length, ack, win, urg, options = event.data
        connection, bits = self.connection, self.flags(flags)
        packet = self.next_packet(event)
        while len(packet.payload) < int(length):
            packet.append(self.next_packet(event))
        syn = bool(packet.flags & 2)
        if syn:
            connection.live_isn, connection.script_isn = packet.seq, int(seq)
        got = {"flags": packet.flags, "length": len(packet.payload),
               "seq": (packet.seq - connection.local_offset(syn)) & 0xffffffff,
               "ack": (packet.ack - connection.remote_offset(syn)) & 0xffffffff
                      if packet.flags & 16 else 0,
               "urg": packet.urg, "payload is zeros": not any(packet.payload)}
        expected = {"flags": bits, "length": int(length), "seq": int(seq), "ack": int(ack or 0),
                    "urg": int(urg or 0), "payload is zeros": True}
        if win is not None:
            got["win"], expected["win"] = packet.win, int(win)
        if ecn:
            got["ecn"], expected["ecn"] = packet.ecn, ECN[ecn]
        wrong = [f"{field} {got[field]}, not {expected[field]}" for field in expected
                 if got[field] != expected[field]]
        if wrong:
            at = (packet.time_us - self.began) / 1e6
            raise Failure(f"a packet at {at:.6f} s with " + ", ".join(wrong))
        if options != "...":
            self.compare_options(packet, read_options(options or "", self.version), syn)
        self.check_time(event, packet.time_us)

    def compare_options(self, packet, expected, syn):
        connection, got = self.connection, []
        tick = int(self.options.get("tcp_ts_tick_usecs", 0))
        wanted = dict(expected)
        for kind, data in packet.options:
            if kind == 5:
                edges = struct.unpack(f">{len(data) // 4}I", data)
                data = struct.pack(f">{len(edges)}I", *(
                    (edge - connection.remote_offset(syn)) & 0xffffffff for edge in edges))
            elif kind == 8 and 8 in wanted:
                live, script = (struct.unpack(">II", value)[0] for value in (data, wanted[8]))
                if not connection.first_ts:
                    connection.first_ts = (script, live)
                connection.ts[script] = live
                first_script, first_live = connection.first_ts
                late = ((live - first_live) - (script - first_script)) * tick
                if abs(late) > self.tolerance:
                    raise Failure(f"the packet's timestamp is {late} us late")
                data = wanted[8]
            got.append((kind, data))
        if got != expected:
            raise Failure(f"expected the TCP options {expected}, got {got}")


def run_case(path, version):
    """Run a script in a process with its own network namespace; return an error's text, or ""."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as stream:
            text = stream.read()
        os.waitpid(child, 0)
        return "" if text == "passed" else text or "the process died"
    text = "passed"
    try:
        if libc.unshare(0x40000000):        # CLONE_NEWNET
            raise Failure("no permission for a network namespace")
        libc.prctl(29, 1, 0, 0, 0)          # PR_SET_TIMERSLACK, in ns
        with open(path, encoding="utf-8") as stream:
            script = stream.read()
        os.chdir(os.path.dirname(path) or ".")
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        Runner(script, version).run()
    except Failure as failure:
        text = str(failure)
    except Exception as error:              # pylint: disable=broad-except
        text = f"{type(error).__name__}: {error}"
    os.write(writing, text.encode())
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("-i", action="append", choices=VERSIONS, metavar="IPVERSION")
    parser.add_argument("scripts", nargs="+")
    arguments = parser.parse_args()
    cases = []
    for path in arguments.scripts:
        with open(path, encoding="utf-8") as stream:
            own = re.findall(r"^--ip_version=(\S+)", stream.read(), re.M)
        chosen = arguments.i or list(VERSIONS)
        cases += [(path, version) for version in (own or chosen) if version in chosen]
    print("TAP version 13")
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for number, (path, version) in enumerate(cases, 1):
        error = run_case(path, version)
        failed += bool(error)
        for line in error.splitlines():
            print("#", line)
        name = os.path.basename(path).removesuffix(".pkt")
        print(f"{'not ok' if error else 'ok'} {number} {name} {version}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
