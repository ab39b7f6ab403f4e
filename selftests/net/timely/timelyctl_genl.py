#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the netlink family "timely" without timelyctl, for timelyctl.sh.

    timelyctl_genl.py get IFINDEX|NAME        print the NIC's LINK_OVERRIDE_KBPS and NIC_USE; if
                                              refused, the errno and the kernel's message
    timelyctl_genl.py dump                    print the names of all NICs
    timelyctl_genl.py set IFINDEX|NAME KBPS   set LINK_OVERRIDE_KBPS, any value of 32 bits
    timelyctl_genl.py refusals IFINDEX        requests that must be refused, with their messages
    timelyctl_genl.py fuzz SEED MESSAGES IFINDEX may|may-not
    timelyctl_genl.py ask SECONDS             queries, while the modules may come and go
    timelyctl_genl.py chosen PREFIX/LENGTH PORT
                                              print how many connections a CHOICE of this range of
                                              remote addresses and this port lists; port 0 is any

fuzz sends valid and malformed messages: unknown commands, and attributes of any type, length and
content, truncated, repeated and nested. A refused message changes nothing, and accepted values are
in their ranges. With may-not, where the caller has no privileges, nothing changes at all.

onramp_genl.py and tenant_fuzz.py use this module, too.
"""

import errno
import random
import socket
import struct
import sys
import time

NETLINK_GENERIC = 16
SOL_NETLINK, NETLINK_EXT_ACK, NETLINK_CAP_ACK = 270, 11, 10
ERROR, DONE = 2, 3
REQUEST, MULTI, ACK, DUMP = 1, 2, 4, 0x300
CAPPED, TLVS = 0x100, 0x200
NIC_GET, NIC_SET, RTT_GET = 1, 2, 3
IFINDEX, IFNAME, STATE, USE, KBPS, OVERRIDE = 1, 2, 3, 4, 5, 6
CONNECTION_GET = 14
COUNTER, CHOICE = 16, 55
MAX_KBPS = 1000000000


def attr(kind, data):
    length = 4 + len(data)
    return struct.pack("=HH", length, kind) + data + bytes(-length % 4)


def u32(kind, value):
    return attr(kind, struct.pack("=I", value))


def which(device):
    if device.isdigit():
        return u32(IFINDEX, int(device))
    return attr(IFNAME, device.encode() + b"\0")


def attrs(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def netlink_socket(protocol):
    """A netlink socket. The kernel's refusals have error messages, and no copy of the request."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    sock.bind((0, 0))
    sock.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
    sock.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
    return sock


class Family:
    """A socket for requests to the family "timely"."""

    def __init__(self):
        self.sock = netlink_socket(NETLINK_GENERIC)
        self.seq = 0
        self.id = 0
        error, _, answers = self.ask(3, attr(2, b"timely\0"), family=16)
        if error:
            sys.exit(errno.errorcode[error])
        self.id = struct.unpack("=H", answers[0][1])[0]

    def message(self, command, body, flags=REQUEST | ACK, family=None, version=1):
        self.seq += 1
        body = struct.pack("=BBH", command, version, 0) + body
        return struct.pack("=IHHII", 16 + len(body), self.id if family is None else family,
                           flags, self.seq, 0) + body

    def receive(self, flags=0, size=1 << 17):
        """Receive a datagram: (type, flags, sequence number, payload) of each message."""
        data = self.sock.recv(size, flags)
        while len(data) >= 16:
            length, kind, flags, seq, _ = struct.unpack_from("=IHHII", data)
            yield kind, flags, seq, data[16:length]
            data = data[(length + 3) & ~3:]

    def ask(self, command, body=b"", flags=REQUEST | ACK, family=None):
        """Send a request. Returns the errno or 0, the kernel's error message, and a dict of
        attributes for each answer."""
        self.sock.send(self.message(command, body, flags, family))
        answers = []
        while True:
            for kind, flags, seq, payload in self.receive():
                if seq != self.seq:
                    continue
                if kind not in (ERROR, DONE):
                    answers.append(attrs(payload[4:]))
                    continue
                error = -struct.unpack_from("=i", payload)[0]
                tail = payload[4:] if kind == DONE else payload[20:]
                words = attrs(tail).get(1, b"\0") if flags & TLVS else b"\0"
                return error, words[:-1].decode(), answers

    def errors_of(self, sent):
        """The errnos, negative or 0, in the answers to the request with this sequence number."""
        errors = []
        while True:
            try:
                errors += [struct.unpack_from("=i", payload)[0]
                           for kind, _, seq, payload in self.receive(socket.MSG_DONTWAIT)
                           if kind == ERROR and seq == sent]
            except BlockingIOError:
                return errors

    def state(self, device):
        """(LINK_OVERRIDE_KBPS, NIC_USE) of a device"""
        error, words, answers = self.ask(NIC_GET, which(device))
        assert not error, (error, words)
        return (struct.unpack("=I", answers[0][OVERRIDE])[0], answers[0][USE][0])


def dump():
    family = Family()
    # The kernel fills datagrams up to the size of the largest buffer with which this socket has
    # received, so a new socket with a small buffer gets several datagrams.
    small = Family()
    small.sock.close()
    small.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    small.sock.bind((0, 0))
    small.id = family.id
    small.sock.send(small.message(NIC_GET, b"", REQUEST | DUMP))
    datagrams = 0
    while True:
        datagrams += 1
        for kind, _, _, payload in small.receive(size=4096):
            if kind in (ERROR, DONE):
                assert datagrams > 2, "the dump fits into one datagram: the case shows nothing"
                return
            print(attrs(payload[4:])[IFNAME][:-1].decode())


def refusals(index):
    family = Family()
    here = u32(IFINDEX, int(index))
    cases = [
        ("no device", NIC_GET, b"", errno.EINVAL, "either IFINDEX or IFNAME"),
        ("two devices", NIC_GET, here + attr(IFNAME, b"lo\0"), errno.EINVAL, "either IFINDEX or IFNAME"),
        ("unknown index", NIC_GET, u32(IFINDEX, 0x7FFFFFFF), errno.ENODEV, "no such device"),
        ("index of 32 bits", NIC_GET, u32(IFINDEX, 0xFFFFFFFF), errno.ENODEV, "no such device"),
        ("index 0", NIC_GET, u32(IFINDEX, 0), errno.ERANGE, ""),
        ("unknown name", NIC_GET, attr(IFNAME, b"nosuch0\0"), errno.ENODEV, "no such device"),
        ("no hardware timestamps", NIC_GET, attr(IFNAME, b"lo\0"), errno.ENOENT, "does not timestamp"),
        ("a name without a NUL", NIC_GET, attr(IFNAME, b"lo"), errno.EINVAL, ""),
        ("a long name", NIC_GET, attr(IFNAME, b"a" * 200 + b"\0"), errno.EINVAL, ""),
        ("index of 2 bytes", NIC_GET, attr(IFINDEX, b"\1\0"), errno.EINVAL, ""),
        ("index of 8 bytes", NIC_GET, attr(IFINDEX, bytes(8)), errno.EINVAL, ""),
        ("get with a setting", NIC_GET, here + attr(USE, b"\1"), errno.EINVAL, ""),
        ("nothing to set", NIC_SET, here, errno.EINVAL, "nothing to set"),
        ("use 2", NIC_SET, here + attr(USE, b"\2"), errno.ERANGE, ""),
        ("above 1 Tb/s", NIC_SET, here + u32(OVERRIDE, MAX_KBPS + 1), errno.ERANGE, "0 to 1000000000"),
        ("all bits set", NIC_SET, here + u32(OVERRIDE, 0xFFFFFFFF), errno.ERANGE, "0 to 1000000000"),
        ("one of two values out of range", NIC_SET, here + attr(USE, b"\0") + u32(OVERRIDE, MAX_KBPS + 1),
         errno.ERANGE, "0 to 1000000000"),
        ("a read-only attribute", NIC_SET, here + attr(USE, b"\1") + u32(KBPS, 5), errno.EINVAL, ""),
        ("an unknown attribute", NIC_SET, here + attr(USE, b"\1") + attr(77, b""), errno.EINVAL, ""),
        ("set lo", NIC_SET, attr(IFNAME, b"lo\0") + attr(USE, b"\1"), errno.ENOENT, "does not timestamp"),
        ("a get with an attribute", RTT_GET, here, errno.EINVAL, ""),
        ("an unknown command", 9, b"", errno.EOPNOTSUPP, ""),
    ]
    bad = 0
    before = family.state(index)
    for name, command, body, error, words in cases:
        got, said, _ = family.ask(command, body)
        if got != error or words not in said:
            print(f"{name}: {errno.errorcode.get(got, got)} \"{said}\",",
                  f"expected {errno.errorcode[error]} \"{words}\"")
            bad += 1
    for name, data, error, words in (
            ("33 bits of IPv4", choice(socket.AF_INET, 33), errno.EINVAL, "CHOICE: allowed are"),
            ("another family", choice(9, 0), errno.EINVAL, "CHOICE: allowed are"),
            ("no family", choice(0, 1), errno.EINVAL, "CHOICE: allowed are"),
            ("a short choice", bytes(8), errno.ERANGE, ""),
            ("a long choice", bytes(56), errno.ERANGE, "")):
        got, said, _ = family.ask(CONNECTION_GET, attr(CHOICE, data), REQUEST | DUMP)
        if got != error or words not in said:
            print(f"{name}: errno {got} \"{said}\"")
            bad += 1
    got, said, _ = family.ask(NIC_GET, here, REQUEST | DUMP)
    if got != errno.EINVAL:
        print(f"a dump with an index: errno {got} \"{said}\"")
        bad += 1
    for command in (NIC_SET, RTT_GET):
        got, said, _ = family.ask(command, here, REQUEST | DUMP)
        if got != errno.EOPNOTSUPP:
            print(f"a dump of command {command}: errno {got} \"{said}\"")
            bad += 1
    if family.state(index) != before:
        print("a refused request has changed the NIC's settings:", before, family.state(index))
        bad += 1
    print(f"# {len(cases) + 3} requests, {bad} not refused as they should")
    sys.exit(bad > 0)


def any_attr(rng, index, depth=0):
    kind = rng.choice([IFINDEX, IFNAME, USE, OVERRIDE, OVERRIDE, rng.randrange(24), rng.randrange(1 << 16)])
    if rng.random() < 0.6:
        data = {
            IFINDEX: struct.pack("=I", rng.choice([index, index, index, 0, 1, 1 << 31, rng.getrandbits(32)])),
            IFNAME: rng.choice([b"lo\0", b"eth0\0", b"\0", b"a" * rng.randrange(200) + b"\0"]),
            USE: bytes([rng.choice([0, 1, 1, 2, 255])]),
            OVERRIDE: struct.pack("=I", rng.choice([0, 1, MAX_KBPS, MAX_KBPS + 1, rng.getrandbits(30),
                                                    rng.getrandbits(32)])),
        }.get(kind, b"")
    elif depth < 3 and rng.random() < 0.3:
        kind |= 0x8000
        data = b"".join(any_attr(rng, index, depth + 1) for _ in range(rng.randrange(4)))
    else:
        data = rng.randbytes(rng.choice([0, 1, 2, 3, 4, 8, rng.randrange(300)]))
    whole = attr(kind & 0xFFFF, data)
    if rng.random() < 0.05:
        # A wrong length
        whole = struct.pack("=H", rng.choice([0, 1, 3, 4, 0xFFFF, rng.randrange(400)])) + whole[2:]
    return whole


def any_message(rng, family, index):
    command = rng.choice([NIC_GET, NIC_SET, NIC_SET, NIC_SET, RTT_GET, rng.randrange(256)])
    flags = REQUEST | ACK | rng.choice([0, 0, 0, DUMP, 0x100, 0x200, rng.getrandbits(16)])
    if rng.random() < 0.6:
        body = u32(IFINDEX, index) + rng.choice([
            attr(USE, bytes([rng.randrange(2)])), u32(OVERRIDE, rng.randrange(MAX_KBPS + 1)), b""])
    else:
        body = b"".join(any_attr(rng, index) for _ in range(rng.randrange(6)))
    message = bytearray(family.message(command, body, flags, version=rng.choice([0, 1, 1, 255])))
    if rng.random() < 0.1:
        struct.pack_into("=I", message, 0, rng.choice([16, 17, 20, len(message), len(message) - 4]))
    if rng.random() < 0.1:
        at = rng.randrange(16, len(message))
        message[at] ^= 1 << rng.randrange(8)
    return bytes(message)


def fuzz(seed, count, index, right):
    rng = random.Random(int(seed))
    family = Family()
    may = right == "may"
    changed = 0
    refused = 0
    before = family.state(index)
    for number in range(int(count)):
        message = any_message(rng, family, int(index))
        sent = family.seq
        family.sock.send(message)
        errors = family.errors_of(sent)
        after = family.state(index)
        refused += any(errors)
        changed += after != before
        assert after == before or (may and 0 in errors), (number, message, errors, before, after)
        assert after[0] <= MAX_KBPS and after[1] in (0, 1), (number, message, after)
        before = after
    print(f"# {count} messages, {refused} refused, {changed} changes, seed {seed}")
    # Without accepted and refused messages the run would test nothing.
    assert refused and (changed > 0) == may, (refused, changed, may)


def choice(family, bits, remote=b"", port=0):
    """struct timely_choice"""
    return struct.pack("=8x16x16sH2sBBH", remote, family, struct.pack("!H", port), 0, bits, 0)


def chosen(prefix, port):
    address, _, bits = prefix.partition("/")
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    data = choice(kind, int(bits), socket.inet_pton(kind, address), int(port))
    error, words, answers = Family().ask(CONNECTION_GET, attr(CHOICE, data), REQUEST | DUMP)
    assert not error, (error, words)
    print(len(answers))


def ask_on(seconds):
    """Send queries for this time. Without the module they fail; answers must be complete."""
    until = time.monotonic() + float(seconds)
    asked = 0
    while time.monotonic() < until:
        # The guest's virtual time advances only while processes sleep.
        time.sleep(0.003)
        try:
            family = Family()
        except SystemExit:
            continue
        for _ in range(20):
            error, _, _ = family.ask(NIC_GET, b"", REQUEST | DUMP)
            assert error in (0, errno.ENOENT, errno.EOPNOTSUPP), error
            error, _, answers = family.ask(RTT_GET)
            assert error in (0, errno.ENOENT) and (error or COUNTER in answers[0]), error
            asked += not error
    print(asked)


def main(verb, *args):
    if verb == "get":
        error, words, answers = Family().ask(NIC_GET, which(args[0]))
        if error:
            sys.exit(f"{errno.errorcode[error]} {words}")
        print(struct.unpack("=I", answers[0][OVERRIDE])[0], answers[0][USE][0])
    elif verb == "set":
        error, words, _ = Family().ask(NIC_SET, which(args[0]) + u32(OVERRIDE, int(args[1])))
        if error:
            sys.exit(f"{errno.errorcode[error]} {words}")
    elif verb == "dump":
        dump()
    else:
        {"refusals": refusals, "fuzz": fuzz, "ask": ask_on, "chosen": chosen}[verb](*args)


if __name__ == "__main__":
    main(*sys.argv[1:])
