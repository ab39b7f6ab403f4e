#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Fuzzers of netlink and sysctls, run by a tenant: root in its own user and network namespaces.

    tenant_fuzz.py nic SEED MESSAGES IFINDEX          settings of NICs; the device is not a NIC
    tenant_fuzz.py acker SEED MESSAGES may|may-not    the netlink family "timely_acker"
    tenant_fuzz.py sysctl SEED WRITES                 the files of net.ipv4.timely
    tenant_fuzz.py deputy rule|rtt                    a request by a privileged process

acker: a refused message changes nothing; with may-not no rule can be added.
sysctl: a refused write changes no file, and each file can be read afterwards.
deputy: run by the host's root, which writes a request to a socket that a tenant has opened. The
kernel must check the tenant's privileges as well. The request adds a rule of the receiver, or a
qdisc with "owd rtt". Prints the errno and the kernel's message.
"""

import ctypes
import errno
import os
import random
import socket
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from timelyctl_genl import (  # noqa: E402
    ACK, DUMP, REQUEST, Family, any_message as any_nic_message, attr, netlink_socket, u32)

RTM_NEWQDISC, TCA_KIND, TCA_OPTIONS, TC_H_ROOT, OWD_RTT = 36, 1, 2, 0xFFFFFFFF, 2
CREATE, REPLACE = 0x400, 0x100
ACKER_GET, ACKER_SET, RULE_ADD, RULE_DEL = 9, 10, 11, 12
DIRECTORY = "/proc/sys/net/ipv4/timely/"
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
NOBODY = 65534


def uapi_attributes(prefix):
    """Numbers of attributes, read from a copy of the header beside this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "timely.h"), encoding="ascii") as file:
        text = file.read()
    body = text[text.index(f"\t{prefix}UNSPEC,"):text.index(f"__{prefix}MAX")]
    words = body.replace("\t", " ").split("\n")[1:]
    names = [word.split(",")[0].strip() for word in words if word.strip().startswith(prefix)]
    return {name[len(prefix):]: number for number, name in enumerate(names, 1)}


class Acker(Family):
    def __init__(self):
        super().__init__()
        error, _, answers = self.ask(3, attr(2, b"timely_acker\0"), family=16)
        assert not error, error
        self.id = struct.unpack("=H", answers[0][1])[0]

    def state(self):
        """The family's answer with all rules and settings, as bytes."""
        self.sock.send(self.message(ACKER_GET, b"", REQUEST))
        return self.sock.recv(1 << 17)[20:]


# ---- the receiver's family ----

def right_body(rng, number, command):
    if command in (RULE_ADD, RULE_DEL):
        length = rng.choice([0, 8, 24])
        prefix = bytes([10, 7, rng.randrange(4)])[:length // 8].ljust(rng.choice([4, 16]), b"\0")
        return attr(number["RULE_PREFIX"], prefix) + attr(number["RULE_LENGTH"], bytes([length]))
    if command == ACKER_SET:
        return rng.choice([u32(number["ACKER_EVERY"], rng.choice([1500, 15000, 0, 1499, 10**7 + 1])),
                           u32(number["ACKER_RATE"], rng.choice([1, 10**6, 0, 10**8 + 1]))])
    return b""


def any_attr(rng, number):
    kind = rng.choice([*number.values(), rng.randrange(60), rng.randrange(1 << 16)])
    data = rng.randbytes(rng.choice([0, 1, 2, 4, 4, 8, 16, rng.randrange(300)]))
    if rng.random() < 0.1:
        data = attr(rng.choice([*number.values()]), data)
        kind |= 0x8000
    whole = attr(kind, data)
    if rng.random() < 0.05:
        whole = struct.pack("=H", rng.choice([0, 1, 3, 0xFFFF, rng.randrange(400)])) + whole[2:]
    return whole


def any_message(rng, family, number):
    command = rng.choice([ACKER_GET, ACKER_SET, RULE_ADD, RULE_ADD, RULE_DEL, rng.randrange(256)])
    flags = REQUEST | ACK | rng.choice([0, 0, 0, DUMP, rng.getrandbits(16)])
    body = right_body(rng, number, command)
    if rng.random() < 0.5:
        body = b"".join(any_attr(rng, number) for _ in range(rng.randrange(5)))
    message = bytearray(family.message(command, body, flags, version=rng.choice([0, 1, 1, 255])))
    if rng.random() < 0.1:
        message[rng.randrange(16, len(message))] ^= 1 << rng.randrange(8)
    return bytes(message)


def acker(seed, count, right):
    rng = random.Random(int(seed))
    family, listener, number = Acker(), Acker(), uapi_attributes("TIMELY_A_")
    rule = struct.pack("=H", number["RULE"] | 0x8000)
    before = listener.state()
    refused = changed = 0
    for at in range(int(count)):
        message = any_message(rng, family, number)
        sent = family.seq
        family.sock.send(message)
        errors = family.errors_of(sent)
        after = listener.state()
        refused += any(errors)
        changed += after != before
        assert after == before or 0 in errors, (at, message, errors, before, after)
        assert right == "may" or rule not in after, (at, message, after)
        before = after
    print(f"# {count} messages, {refused} refused, {changed} changes, seed {seed}")
    assert refused and changed


# ---- the family of NICs ----

def nic(seed, count, index):
    rng = random.Random(int(seed))
    family, listener = Family(), Family()
    refused = 0
    for at in range(int(count)):
        message = any_nic_message(rng, family, int(index))
        sent = family.seq
        family.sock.send(message)
        refused += any(family.errors_of(sent))
        error, _, answers = listener.ask(1, b"", REQUEST | DUMP)
        assert not error and not answers, (at, message, error, answers)
    print(f"# {count} messages, {refused} refused, seed {seed}")
    assert refused


# ---- sysctls ----

def read_all(names):
    values = []
    for name in names:
        with open(DIRECTORY + name, "rb") as file:
            values.append(file.read())
    return values


def any_value(rng):
    return rng.choice([
        str(rng.randrange(100)), str(rng.getrandbits(rng.randrange(1, 70))), "auto", "paper", "linux",
        "-1", "0x10", "", " ", "\n", "\0", "%s%n%p", "\x1b[2J", "x" * rng.randrange(1, 5000),
        "1\n2\n", "12 34", str(1 << 32), str(1 << 64),
    ]).encode() + rng.choice([b"\n", b"", rng.randbytes(rng.randrange(6))])


def sysctl(seed, count):
    rng = random.Random(int(seed))
    names = sorted(os.listdir(DIRECTORY))
    before = read_all(names)
    refused = 0
    for at in range(int(count)):
        name, value = rng.choice(names), any_value(rng)
        fd = os.open(DIRECTORY + name, os.O_WRONLY)
        error = None
        try:
            # A write at another offset than 0
            if rng.random() < 0.05:
                os.pwrite(fd, value, rng.randrange(1, 1 << 20))
            else:
                os.write(fd, value)
        except OSError as wrong:
            error = wrong.errno
        finally:
            os.close(fd)
        after = read_all(names)
        assert error is None or after == before, (at, name, value, error)
        assert all(text.endswith(b"\n") for text in after), (at, name, value, after)
        refused += error is not None
        before = after
    print(f"# {count} writes, {refused} refused, seed {seed}")
    assert 0 < refused < int(count)


# ---- a deputy ----

class Qdiscs(Family):
    """Messages about qdiscs."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.sock = netlink_socket(socket.NETLINK_ROUTE)
        self.seq = self.id = 0

    def message(self, command, body, flags=REQUEST | ACK, family=None, version=1):
        self.seq += 1
        # struct tcmsg: the root of the loopback device
        body = struct.pack("=BxxxiIII", 0, 1, 0, TC_H_ROOT, 0) + body
        return struct.pack("=IHHII", 16 + len(body), command, flags | CREATE | REPLACE,
                           self.seq, 0) + body


def tenants_socket(kind):
    """A netlink socket that an unprivileged user has opened in its own user and network
    namespaces: a pair of sockets to the user's process, its PID, the family's ID and the
    descriptor."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    child = os.fork()
    if not child:
        ours.close()
        libc = ctypes.CDLL(None, use_errno=True)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
            os._exit(1)
        family = kind()
        socket.send_fds(theirs, [struct.pack("=H", family.id)], [family.sock.fileno()])
        # Stay alive: the kernel checks the privileges in this process's namespace.
        theirs.recv(1)
        os._exit(0)
    theirs.close()
    data, fds, _, _ = socket.recv_fds(ours, 2, 1)
    assert fds, "the tenant has failed"
    return ours, child, struct.unpack("=H", data)[0], fds[0]


def deputy(what):
    kind = {"rule": Acker, "rtt": Qdiscs}[what]
    ours, child, family_id, fd = tenants_socket(kind)
    family = kind.__new__(kind)
    family.sock, family.seq, family.id = socket.socket(fileno=fd), 0, family_id
    if what == "rule":
        number = uapi_attributes("TIMELY_A_")
        error, words, _ = family.ask(RULE_ADD, attr(number["RULE_PREFIX"], bytes(4)) +
                                     attr(number["RULE_LENGTH"], b"\0"))
    else:
        number = uapi_attributes("TCA_TIMELY_")
        options = u32(number["ONRAMP"], 50000) + attr(number["ONRAMP_OWD"], bytes([OWD_RTT]))
        error, words, _ = family.ask(RTM_NEWQDISC, attr(TCA_KIND, b"timely\0") +
                                     attr(TCA_OPTIONS | 0x8000, options))
    print(errno.errorcode.get(error, error), words)
    ours.close()
    os.waitpid(child, 0)


if __name__ == "__main__":
    {"nic": nic, "acker": acker, "sysctl": sysctl, "deputy": deputy}[sys.argv[1]](*sys.argv[2:])
