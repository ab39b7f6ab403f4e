#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of On-Ramp's part of the netlink family "timely", without timelyctl.

    onramp_genl.py refusals                   requests that must be refused, with their messages
    onramp_genl.py secrets                    no answer contains the secret of a key
    onramp_genl.py model SEED REQUESTS        random requests; keys and settings agree with a model
    onramp_genl.py fuzz SEED MESSAGES may|may-not
    onramp_genl.py flows IPV4 IPV6 COUNT      COUNT sockets send a datagram to each address; print
                                              their ports, keep them until standard input ends
    onramp_genl.py ask SECONDS                queries, while the modules may come and go

fuzz sends valid and malformed messages. A refused message changes nothing, and the key in use
always exists. With may-not, where the caller has no privileges, nothing changes at all.
"""

import errno
import os
import random
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from timelyctl_genl import ACK, DUMP, REQUEST, Family, attr  # noqa: E402

ONRAMP_GET, ONRAMP_SET, KEY_SET, KEY_DEL, FLOW_GET = 4, 5, 6, 7, 8
PORT, UNAUTHENTICATED, KEY, SECRET, USED = 21, 22, 23, 24, 25


def u8(kind, value):
    return attr(kind, bytes([value]))


def raw(family, command, flags):
    """The bytes of the answer to a request."""
    family.sock.send(family.message(command, b"", flags))
    return family.sock.recv(1 << 17)


def state(family):
    """([numbers of keys], the key in use or None, the flag "unauthenticated")"""
    data = raw(family, ONRAMP_GET, REQUEST)[20:]
    keys, used, flag = [], None, None
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        value = data[4:length]
        if kind == KEY:
            keys.append(value[0])
        elif kind == USED:
            used = value[0]
        elif kind == UNAUTHENTICATED:
            flag = value[0]
        data = data[(length + 3) & ~3:]
    return keys, used, flag


def refusals():
    family = Family()
    secret = attr(SECRET, bytes(range(16)))
    for number in (1, 2):
        assert family.ask(KEY_SET, u8(KEY, number) + secret)[0] == 0
    assert family.ask(ONRAMP_SET, u8(USED, 1))[0] == 0
    cases = [
        ("no number", KEY_SET, secret, errno.EINVAL, "KEY: allowed are 1 to 255"),
        ("number 0", KEY_SET, u8(KEY, 0) + secret, errno.EINVAL, "KEY: allowed are 1 to 255"),
        ("number 256", KEY_SET, attr(KEY, b"\0\1") + secret, errno.EINVAL, ""),
        ("no secret", KEY_SET, u8(KEY, 3), errno.EINVAL, "16 random bytes"),
        ("an empty secret", KEY_SET, u8(KEY, 3) + attr(SECRET, b""), errno.EINVAL, "16 random bytes"),
        ("a short secret", KEY_SET, u8(KEY, 3) + attr(SECRET, b"a" * 15), errno.EINVAL, "16 random bytes"),
        ("a long secret", KEY_SET, u8(KEY, 3) + attr(SECRET, b"a" * 17), errno.EINVAL, "16 random bytes"),
        ("a huge secret", KEY_SET, u8(KEY, 3) + attr(SECRET, b"a" * 9000), errno.EINVAL, "16 random bytes"),
        ("a secret of zeros", KEY_SET, u8(KEY, 3) + attr(SECRET, bytes(16)), errno.EINVAL, "not all 0"),
        ("a key to be used", KEY_SET, u8(KEY, 3) + secret + u8(USED, 3), errno.EINVAL, ""),
        ("delete none", KEY_DEL, b"", errno.EINVAL, "1 to 255"),
        ("delete 0", KEY_DEL, u8(KEY, 0), errno.EINVAL, "1 to 255"),
        ("delete unknown", KEY_DEL, u8(KEY, 3), errno.ENOENT, "no such key"),
        ("delete the used one", KEY_DEL, u8(KEY, 1), errno.EBUSY, "use another"),
        ("delete with secret", KEY_DEL, u8(KEY, 2) + secret, errno.EINVAL, ""),
        ("nothing to set", ONRAMP_SET, b"", errno.EINVAL, "nothing to set"),
        ("use unknown", ONRAMP_SET, u8(USED, 3), errno.ENOENT, "add it first"),
        ("one of two settings refused", ONRAMP_SET, u8(USED, 3) + u8(UNAUTHENTICATED, 1), errno.ENOENT, "add it first"),
        ("flag 2", ONRAMP_SET, u8(USED, 2) + u8(UNAUTHENTICATED, 2), errno.ERANGE, ""),
        ("a wide flag", ONRAMP_SET, attr(UNAUTHENTICATED, b"\1\0\0\0"), errno.EINVAL, ""),
        ("the port, which is read-only", ONRAMP_SET, attr(PORT, b"\1\0") + u8(USED, 2), errno.EINVAL, ""),
        ("get with an attribute", ONRAMP_GET, u8(KEY, 1), errno.EINVAL, ""),
        ("flows without a dump", FLOW_GET, b"", errno.EOPNOTSUPP, ""),
    ]
    before = state(family)
    bad = 0
    for name, command, body, error, words in cases:
        got, said, _ = family.ask(command, body)
        if got != error or words not in said:
            print(f"{name}: {errno.errorcode.get(got, got)} \"{said}\",",
                  f"expected {errno.errorcode[error]} \"{words}\"")
            bad += 1
        if state(family) != before:
            print(f"{name}: the refused request has changed keys or settings: {state(family)}")
            bad += 1
            before = state(family)
    got, said, _ = family.ask(FLOW_GET, u8(KEY, 1), REQUEST | DUMP)
    if got != errno.EINVAL:
        print(f"a dump of flows with an attribute: errno {got} \"{said}\"")
        bad += 1
    for command in (ONRAMP_GET, ONRAMP_SET, KEY_SET, KEY_DEL):
        got, said, _ = family.ask(command, b"", REQUEST | DUMP)
        if got != errno.EOPNOTSUPP:
            print(f"a dump of command {command}: errno {got} \"{said}\"")
            bad += 1
    print(f"# {len(cases) + 5} requests, {bad} not refused as they should")
    sys.exit(bad > 0)


def secrets():
    family = Family()
    secret = bytes(range(100, 116))
    assert family.ask(KEY_SET, u8(KEY, 9) + attr(SECRET, secret))[0] == 0
    for command, flags in ((ONRAMP_GET, REQUEST | ACK), (FLOW_GET, REQUEST | DUMP)):
        answer = raw(family, command, flags)
        # Neither as it was given nor with reversed bytes.
        for part in (secret[:8], secret[8:], secret[:8][::-1], secret[8:][::-1]):
            assert part not in answer, (command, answer)
    assert family.ask(KEY_DEL, u8(KEY, 9))[0] == 0


def expected(model, command, number, secret, used, flag):
    """The expected error of a well-formed request; 0 after changing the model."""
    keys, model_used, model_flag = model
    if command == KEY_SET:
        if not number or len(secret) != 16 or not any(secret):
            return errno.EINVAL
        keys.add(number)
    elif command == KEY_DEL:
        if not number:
            return errno.EINVAL
        if number not in keys:
            return errno.ENOENT
        if number == model_used:
            return errno.EBUSY
        keys.remove(number)
    else:
        if used is None and flag is None:
            return errno.EINVAL
        if used and used not in keys:
            return errno.ENOENT
        if flag is not None and flag > 1:
            return errno.ERANGE
        model[1] = model_used if used is None else used
        model[2] = model_flag if flag is None else flag
    return 0


def check_model(seed, count):
    rng = random.Random(int(seed))
    family = Family()
    keys, used, flag = state(family)
    model = [set(keys), used, flag]
    refused = 0
    for _ in range(int(count)):
        command = rng.choice([KEY_SET, KEY_SET, KEY_DEL, ONRAMP_SET])
        number = rng.choice([0, 255, rng.randrange(256), rng.randrange(8)])
        secret = rng.randbytes(rng.choice([16, 16, 16, 0, 8, 17])) if rng.random() < 0.95 else bytes(16)
        use = rng.choice([None, 0, number, rng.randrange(8)])
        unauthenticated = rng.choice([None, 0, 1])
        body = {
            KEY_SET: u8(KEY, number) + attr(SECRET, secret),
            KEY_DEL: u8(KEY, number),
            ONRAMP_SET: (b"" if use is None else u8(USED, use)) +
                        (b"" if unauthenticated is None else u8(UNAUTHENTICATED, unauthenticated)),
        }[command]
        wanted = expected(model, command, number, secret, use, unauthenticated)
        got, said, _ = family.ask(command, body)
        assert got == wanted, (command, body, got, said, wanted)
        assert not got or said, (command, body, got)
        now = state(family)
        assert now == (sorted(model[0]), model[1], model[2]), (command, body, now, model)
        refused += got != 0
    assert 0 < refused < int(count)
    print(f"# {count} requests, {refused} refused, {len(model[0])} keys at the end")


def any_attr(rng):
    kind = rng.choice([UNAUTHENTICATED, KEY, SECRET, USED, rng.randrange(60), rng.randrange(1 << 16)])
    size = {KEY: 1, USED: 1, UNAUTHENTICATED: 1, SECRET: 16}.get(kind, 4)
    if rng.random() < 0.2:
        size = rng.choice([0, 1, 2, 15, 17, rng.randrange(300)])
    data = bytes([rng.randrange(4)]) if size == 1 else rng.randbytes(size)
    whole = attr(kind, data)
    if rng.random() < 0.05:
        # A wrong length
        whole = struct.pack("=H", rng.choice([0, 1, 3, 4, 0xFFFF, rng.randrange(400)])) + whole[2:]
    return whole


def any_message(rng, family):
    command = rng.choice([ONRAMP_GET, ONRAMP_SET, KEY_SET, KEY_DEL, FLOW_GET, rng.randrange(256)])
    flags = REQUEST | ACK | rng.choice([0, 0, 0, DUMP, rng.getrandbits(16)])
    if rng.random() < 0.5:
        # A valid request, or nearly
        body = {
            KEY_SET: u8(KEY, rng.randrange(6)) + attr(SECRET, rng.randbytes(16)),
            KEY_DEL: u8(KEY, rng.randrange(6)),
            ONRAMP_SET: rng.choice([u8(USED, rng.randrange(6)), u8(UNAUTHENTICATED, rng.randrange(2))]),
        }.get(command, b"")
    else:
        body = b"".join(any_attr(rng) for _ in range(rng.randrange(4)))
    message = bytearray(family.message(command, body, flags, version=rng.choice([0, 1, 1, 255])))
    if rng.random() < 0.1:
        struct.pack_into("=I", message, 0, rng.choice([16, 17, 20, len(message), len(message) - 4]))
    if rng.random() < 0.1:
        message[rng.randrange(16, len(message))] ^= 1 << rng.randrange(8)
    return bytes(message)


def fuzz(seed, count, right):
    rng = random.Random(int(seed))
    family = Family()
    listener = Family()
    changed = refused = 0
    before = state(listener)
    for number in range(int(count)):
        message = any_message(rng, family)
        sent = family.seq
        family.sock.send(message)
        errors = family.errors_of(sent)
        after = state(listener)
        refused += any(errors)
        changed += after != before
        assert after == before or (right == "may" and 0 in errors), (number, message, errors, before, after)
        assert not after[1] or after[1] in after[0], (number, message, after)
        assert after[2] in (0, 1) and 0 not in after[0], (number, message, after)
        before = after
    print(f"# {count} messages, {refused} refused, {changed} changes, seed {seed}")
    assert refused and (changed > 0) == (right == "may"), (refused, changed, right)


def flows(v4, v6, count):
    sockets = []
    for family, address in ((socket.AF_INET, v4), (socket.AF_INET6, v6)):
        for _ in range(int(count)):
            sock = socket.socket(family, socket.SOCK_DGRAM)
            sock.connect((address, 9))
            sock.send(b"one of many")
            sockets.append(sock)
    print(*[sock.getsockname()[1] for sock in sockets], flush=True)
    sys.stdin.read()


def ask_on(seconds):
    until = time.monotonic() + float(seconds)
    asked = 0
    while time.monotonic() < until:
        # The guest's virtual time advances only while processes sleep.
        time.sleep(0.003)
        try:
            family = Family()
        except SystemExit:
            continue
        gone = (errno.ENOENT, errno.EOPNOTSUPP)
        for _ in range(20):
            error, _, answers = family.ask(ONRAMP_GET)
            assert error in gone or (not error and PORT in answers[0]), error
            asked += not error
            error, _, _ = family.ask(FLOW_GET, b"", REQUEST | DUMP)
            assert not error or error in gone, error
            error, _, _ = family.ask(KEY_SET, u8(KEY, asked % 255 + 1) + attr(SECRET, b"k" * 16))
            assert not error or error in gone, error
    print(asked)


if __name__ == "__main__":
    {"refusals": refusals, "secrets": secrets, "model": check_model, "fuzz": fuzz, "flows": flows,
     "ask": ask_on}[sys.argv[1]](*sys.argv[2:])
