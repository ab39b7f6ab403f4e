#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The netlink family "timely", spoken without timelyctl.

    timelyctl_genl.py get IFINDEX|NAME        its line rate override and use, or the refusal
    timelyctl_genl.py dump                    all names, in datagrams as small as they come
    timelyctl_genl.py set IFINDEX|NAME KBPS   an override of any 32 bits
    timelyctl_genl.py refusals IFINDEX        requests that must be refused, and why
    timelyctl_genl.py fuzz SEED MESSAGES IFINDEX may|may-not
    timelyctl_genl.py ask SECONDS             questions, whether there is a module or not

fuzz sends messages of every kind: right ones, unknown commands, attributes of any
type, length and content, cut short, repeated, nested. It must hold that a refused
one changes nothing, and that what is set stays in its range; and where the caller may
not change anything, that nothing changes at all.
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
COUNTER = 16
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
    """One that is told the kernel's words, and not its own message again."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    sock.bind((0, 0))
    sock.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
    sock.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
    return sock


class Family:
    """A socket, and the family's number."""

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

    def hear(self, flags=0, size=1 << 17):
        """The messages of a datagram: type, flags, seq, payload."""
        data = self.sock.recv(size, flags)
        while len(data) >= 16:
            length, kind, flags, seq, _ = struct.unpack_from("=IHHII", data)
            yield kind, flags, seq, data[16:length]
            data = data[(length + 3) & ~3:]

    def ask(self, command, body=b"", flags=REQUEST | ACK, family=None):
        """A right message: its error, the kernel's words, the attributes of the answers."""
        self.sock.send(self.message(command, body, flags, family))
        answers = []
        while True:
            for kind, flags, seq, payload in self.hear():
                if seq != self.seq:
                    continue
                if kind not in (ERROR, DONE):
                    answers.append(attrs(payload[4:]))
                    continue
                error = -struct.unpack_from("=i", payload)[0]
                tail = payload[4:] if kind == DONE else payload[20:]
                words = attrs(tail).get(1, b"\0") if flags & TLVS else b"\0"
                return error, words[:-1].decode(), answers

    def state(self, device):
        """Override and use."""
        error, words, answers = self.ask(NIC_GET, which(device))
        assert not error, (error, words)
        return (struct.unpack("=I", answers[0][OVERRIDE])[0], answers[0][USE][0])


def dump():
    family = Family()
    # The kernel makes datagrams as large as what it was last asked to fill.
    small = Family()
    small.sock.close()
    small.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    small.sock.bind((0, 0))
    small.id = family.id
    small.sock.send(small.message(NIC_GET, b"", REQUEST | DUMP))
    datagrams = 0
    while True:
        datagrams += 1
        for kind, _, _, payload in small.hear(size=4096):
            if kind in (ERROR, DONE):
                assert datagrams > 2, "all in one datagram"
                return
            print(attrs(payload[4:])[IFNAME][:-1].decode())


def refusals(index):
    family = Family()
    here = u32(IFINDEX, int(index))
    cases = [
        ("no device", NIC_GET, b"", errno.EINVAL, "IFINDEX or by IFNAME"),
        ("two devices", NIC_GET, here + attr(IFNAME, b"lo\0"), errno.EINVAL, "IFINDEX or by IFNAME"),
        ("no such number", NIC_GET, u32(IFINDEX, 0x7FFFFFFF), errno.ENODEV, "no such device"),
        ("a huge number", NIC_GET, u32(IFINDEX, 0xFFFFFFFF), errno.ENODEV, "no such device"),
        ("number 0", NIC_GET, u32(IFINDEX, 0), errno.ERANGE, ""),
        ("no such name", NIC_GET, attr(IFNAME, b"nosuch0\0"), errno.ENODEV, "no such device"),
        ("no stamps", NIC_GET, attr(IFNAME, b"lo\0"), errno.ENOENT, "does not stamp"),
        ("a name without end", NIC_GET, attr(IFNAME, b"lo"), errno.EINVAL, ""),
        ("a long name", NIC_GET, attr(IFNAME, b"a" * 200 + b"\0"), errno.EINVAL, ""),
        ("a short number", NIC_GET, attr(IFINDEX, b"\1\0"), errno.EINVAL, ""),
        ("a long number", NIC_GET, attr(IFINDEX, bytes(8)), errno.EINVAL, ""),
        ("get with a setting", NIC_GET, here + attr(USE, b"\1"), errno.EINVAL, ""),
        ("nothing to set", NIC_SET, here, errno.EINVAL, "nothing to set"),
        ("use 2", NIC_SET, here + attr(USE, b"\2"), errno.ERANGE, ""),
        ("above 1 Tb/s", NIC_SET, here + u32(OVERRIDE, MAX_KBPS + 1), errno.ERANGE, "0 to 1000000000"),
        ("far above", NIC_SET, here + u32(OVERRIDE, 0xFFFFFFFF), errno.ERANGE, "0 to 1000000000"),
        ("half right", NIC_SET, here + attr(USE, b"\0") + u32(OVERRIDE, MAX_KBPS + 1),
         errno.ERANGE, "0 to 1000000000"),
        ("what is told", NIC_SET, here + attr(USE, b"\1") + u32(KBPS, 5), errno.EINVAL, ""),
        ("unknown", NIC_SET, here + attr(USE, b"\1") + attr(77, b""), errno.EINVAL, ""),
        ("set lo", NIC_SET, attr(IFNAME, b"lo\0") + attr(USE, b"\1"), errno.ENOENT, "does not stamp"),
        ("counters with a wish", RTT_GET, here, errno.EINVAL, ""),
        ("no command", 9, b"", errno.EOPNOTSUPP, ""),
    ]
    bad = 0
    before = family.state(index)
    for name, command, body, error, words in cases:
        got, said, _ = family.ask(command, body)
        if got != error or words not in said:
            print(f"{name}: {errno.errorcode.get(got, got)} \"{said}\", not {errno.errorcode[error]}")
            bad += 1
    got, said, _ = family.ask(NIC_GET, here, REQUEST | DUMP)
    if got != errno.EINVAL:
        print(f"a dump of one: {got} \"{said}\"")
        bad += 1
    for command in (NIC_SET, RTT_GET):
        got, said, _ = family.ask(command, here, REQUEST | DUMP)
        if got != errno.EOPNOTSUPP:
            print(f"dump of {command}: {got} \"{said}\"")
            bad += 1
    if family.state(index) != before:
        print("a refused request has changed something")
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
        # A length that lies.
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
        errors = []
        while True:
            try:
                errors += [struct.unpack_from("=i", payload)[0]
                           for kind, _, seq, payload in family.hear(socket.MSG_DONTWAIT)
                           if kind == ERROR and seq == sent]
            except BlockingIOError:
                break
        after = family.state(index)
        refused += any(errors)
        changed += after != before
        assert after == before or (may and 0 in errors), (number, message, errors, before, after)
        assert after[0] <= MAX_KBPS and after[1] in (0, 1), (number, message, after)
        before = after
    print(f"# {count} messages, {refused} refused, {changed} changes, seed {seed}")
    # A fuzzer that never gets through to anything proves nothing.
    assert refused and (changed > 0) == may, (refused, changed, may)


def ask_on(seconds):
    """Questions until the time is over, of whatever family is there."""
    until = time.monotonic() + float(seconds)
    asked = 0
    while time.monotonic() < until:
        # The guest's time stands still while somebody computes.
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
        {"refusals": refusals, "fuzz": fuzz, "ask": ask_on}[verb](*args)


if __name__ == "__main__":
    main(*sys.argv[1:])
