#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A second implementation of NDP's engines, for tests. It is written from the NDP paper (SIGCOMM'17,
section 3.2) and from the comments in net/timely/engine/ndp_*.h, not from the C code: packets are in
sets and dictionaries, and numbers do not wrap.

Without options the script writes ndp_vectors.h:
  headers with their bytes on the wire, with SipHash and jhash2 of its own;
  checksums of payload;
  sequences of events at a sender and at a receiver, with the result of each event.

    reference_ndp.py [--check]      --check: write nothing; fail if ndp_vectors.h is not up to date
"""

import argparse
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
M32, M64 = 2**32 - 1, 2**64 - 1
SEQUENCES, EVENTS = 24, 40
DATA, ACK, NACK, PULL, PROBE, RESET, COOKIE = range(1, 8)
SYN, LAST, FIN, RTX, INITIATOR, COOKIED, TRIMMED, TAGGED = (1 << i for i in range(8))


# ---- hashes ----

def rotate(x, by, bits):
    return (x << by | x >> (bits - by)) & (2**bits - 1)


def siphash(text, k0, k1):
    """SipHash-2-4 (Aumasson and Bernstein)."""
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
         k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & M64
            v[1] = rotate(v[1], 13, 64) ^ v[0]
            v[0] = rotate(v[0], 32, 64)
            v[2] = (v[2] + v[3]) & M64
            v[3] = rotate(v[3], 16, 64) ^ v[2]
            v[0] = (v[0] + v[3]) & M64
            v[3] = rotate(v[3], 21, 64) ^ v[0]
            v[2] = (v[2] + v[1]) & M64
            v[1] = rotate(v[1], 17, 64) ^ v[2]
            v[2] = rotate(v[2], 32, 64)

    padded = text + b'\0' * (7 - len(text) % 8) + bytes([len(text) & 255])
    for word, in struct.iter_unpack('<Q', padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def jhash2(words, start):
    """Bob Jenkins' lookup3, as in the kernel."""
    a = b = c = (0xdeadbeef + 4 * len(words) + start) & M32
    words = list(words)
    while len(words) > 3:
        a, b, c = (a + words[0]) & M32, (b + words[1]) & M32, (c + words[2]) & M32
        words = words[3:]
        for by in ((4, 6, 8), (16, 19, 4)):
            a = ((a - c) & M32) ^ rotate(c, by[0], 32)
            c = (c + b) & M32
            b = ((b - a) & M32) ^ rotate(a, by[1], 32)
            a = (a + c) & M32
            c = ((c - b) & M32) ^ rotate(b, by[2], 32)
            b = (b + a) & M32
    if not words:
        return c
    words += [0] * (3 - len(words))
    a, b, c = (a + words[0]) & M32, (b + words[1]) & M32, (c + words[2]) & M32
    for by in ((14, 11, 25), (16, 4, 14)):
        c = ((c ^ b) - rotate(b, by[0], 32)) & M32
        a = ((a ^ c) - rotate(c, by[1], 32)) & M32
        b = ((b ^ a) - rotate(a, by[2], 32)) & M32
    return ((c ^ b) - rotate(b, 24, 32)) & M32


def payload_sum(data):
    """The checksum of payload: four lanes of words of 64 bits, zeros after the end, the length."""
    factor = 0x9e3779b97f4a7c15

    def step(lane, word):
        return rotate((lane ^ word) * factor & M64, 64 - 27, 64)

    lanes = [i * factor & M64 for i in (1, 2, 3, 4)]
    padded = data + b'\0' * (32 - len(data) % 32)
    for i, (word,) in enumerate(struct.iter_unpack('<Q', padded)):
        lanes[i % 4] = step(lanes[i % 4], word)
    mix = len(data)
    for lane in lanes:
        mix = step(mix, lane)
    return (mix ^ mix >> 32) & M32


# ---- headers ----

def encode(h, family, saddr, daddr, key):
    """The bytes of a header, see ndp_wire.h."""
    kind = h['type']
    answer = kind in (ACK, NACK, PULL)
    numbered = kind in (DATA, ACK, NACK)
    credits = h['credits'] if kind <= PROBE else 0
    difference = h['limit'] - h['cum'] if answer else credits - h['seen'] if kind in (DATA, PROBE) else 0
    head = struct.pack('>BBHHBBQ', 3 << 4 | kind, h['flags'] | (TAGGED if key else 0), h['sport'], h['dport'],
                       h['path'] if numbered else 0, h['tries'] if numbered else 0, h['conn'])
    head += struct.pack('>IIIHH', h['seq'] if numbered else 0, credits,
                        h['cum'] if answer else h['sum'] if kind == DATA else 0,
                        h['owed'] if answer else h['length'] if kind == DATA else 0, difference & 0xffff)
    number = struct.pack('>Bxxx', h['key']) if key else b''
    cookie = struct.pack('>Q', h['cookie']) if kind == COOKIE or h['flags'] & COOKIED else b''
    last = struct.pack('>I', h['arrived']) if answer else cookie
    signed = struct.pack('>H', family) + saddr + daddr + head + b'\0\0\0\0' + number + bytes(8) + last
    tag = struct.pack('>Q', siphash(signed, *key)) if key else b''
    rest = number + tag + last
    mixed = bytes(a ^ b for a, b in zip(saddr, daddr))
    text = mixed + head + b'\0\0\0\0' + rest
    check = jhash2([word for word, in struct.iter_unpack('>I', text)], family)
    return head + struct.pack('>I', check) + rest


def headers(rng):
    """Random headers of all types."""
    allowed = {DATA: SYN | LAST | FIN | RTX | INITIATOR | COOKIED, ACK: INITIATOR, NACK: INITIATOR | TRIMMED,
               PULL: INITIATOR, PROBE: SYN | INITIATOR | COOKIED, RESET: INITIATOR, COOKIE: INITIATOR}
    for i in range(42):
        kind = 1 + i % 7
        h = {name: rng.getrandbits(bits) for name, bits in (
            ('conn', 64), ('cookie', 64), ('seq', 32), ('credits', 32), ('cum', 32), ('arrived', 32),
            ('sum', 32), ('owed', 16), ('path', 8), ('tries', 8))}
        h.update(type=kind, flags=rng.getrandbits(7) & allowed[kind], length=rng.randrange(65452),
                 sport=rng.randrange(1, 65536), dport=rng.randrange(1, 65536),
                 seen=h['credits'] - rng.getrandbits(16) & M32, limit=h['cum'] + rng.getrandbits(16) & M32)
        family = 2 if i % 2 else 10
        size = 4 if i % 2 else 16
        saddr, daddr = (rng.randbytes(size) + bytes(16 - size) for _ in range(2))
        key = (rng.getrandbits(64), rng.getrandbits(64)) if i % 3 else None
        h['key'] = rng.randrange(1, 256) if key else 0
        yield h, family, saddr, daddr, key, encode(h, family, saddr, daddr, key)


# ---- the receiver ----

class Receiver:
    """What arrived, as a set of numbers."""

    def __init__(self, span, limit):
        self.span, self.limit, self.told = span, limit, limit
        self.arrived = set()
        self.used = self.granted = self.seen = 0
        self.highest, self.last, self.fin = -1, False, None

    def cum(self):
        n = 0
        while n in self.arrived:
            n += 1
        return n

    def wanted(self):
        """Owed credits, but not more than packets that can come and are not yet asked for."""
        end = min(self.highest + 1, self.limit) if self.last else self.limit
        missing = sum(n not in self.arrived for n in range(end))
        return max(0, min(self.used - self.granted, missing - (self.granted - self.seen)))

    def possible(self, credits, seen):
        return seen <= self.granted and not (credits > self.used and credits - self.granted > 32768)

    def hear(self, credits, seen):
        self.used = max(self.used, credits)
        self.seen = max(self.seen, seen)

    def finish(self):
        """All has arrived and the sender has no more: grant what is owed."""
        if self.last and self.cum() == self.highest + 1:
            self.granted = self.used

    def answer(self):
        self.told = self.limit
        cum = self.cum()
        arrived = sum(1 << i for i in range(32) if cum + 1 + i in self.arrived)
        return self.granted, min(self.used - self.granted, 65535), cum, arrived, self.limit

    def data(self, seq, credits, seen, flags, payload):
        refused = not self.possible(credits, seen) or seq - self.cum() >= 65536
        refused |= self.fin is not None and (seq > self.fin or (flags & FIN and seq != self.fin))
        refused |= bool(flags & FIN) and self.fin is None and seq < self.highest
        if refused:
            return ('refused', 0, 0) + (0,) * 5
        self.hear(credits, seen)
        if seq >= self.highest:
            self.highest, self.last = seq, bool(flags & LAST)
        if flags & FIN:
            self.fin = seq
        if seq in self.arrived:
            verdict = 'repeated'
        elif payload != 'whole' or seq >= self.limit:
            verdict = 'missed'
        else:
            verdict = 'received'
            self.arrived.add(seq)
        self.finish()
        cut = TRIMMED if verdict == 'missed' and payload == 'cut' else 0
        return (verdict, NACK if verdict == 'missed' else ACK, cut) + self.answer()

    def probe(self, credits, seen):
        if not self.possible(credits, seen):
            return ('refused', 0, 0) + (0,) * 5
        self.hear(credits, seen)
        self.finish()
        return ('received', PULL, 0) + self.answer()

    def room(self, limit):
        stalled = self.highest + 1 >= self.told and self.used == self.granted
        limit = min(limit, self.cum() + self.span)
        if limit <= self.limit:
            return ('refused', 0, 0) + (0,) * 5
        self.limit = limit
        return ('received', PULL, 0) + self.answer() if stalled else ('refused', 0, 0) + (0,) * 5

    def pull(self, pulls):
        self.granted += min(pulls, self.used - self.granted)
        return ('received', PULL, 0) + self.answer()


def receiver_rows(rng):
    """Random events at a receiver, and their results."""
    limit = rng.randrange(1, 65)
    r = Receiver(64, limit)
    total = rng.randrange(1, 60)
    rows = []
    credits = 0
    for _ in range(EVENTS):
        credits += rng.randrange(3)
        seen = r.granted - rng.randrange(3) if rng.random() < .9 else r.granted + 1
        seen = max(seen, 0)
        used = credits if rng.random() < .95 else rng.choice([0, credits + 32769 + r.granted])
        what = rng.choices(['data', 'probe', 'room', 'pull'], [10, 1, 2, 4])[0]
        seq = flags = 0
        payload = 'whole'
        if what == 'data':
            seq = min(r.cum() + rng.randrange(8), total - 1)
            if rng.random() < .05:
                seq = rng.choice([0, total, r.cum() + 65536, r.limit])
            flags = (LAST if seq == total - 1 else 0) | (FIN if seq == total - 1 and rng.random() < .7 else 0)
            if rng.random() < .04:
                flags |= FIN
            payload = rng.choices(['whole', 'cut', 'bad'], [6, 3, 1])[0]
            got = r.data(seq, used, seen, flags, payload)
        elif what == 'probe':
            got = r.probe(used, seen)
        elif what == 'room':
            used = r.cum() + rng.randrange(80)
            got = r.room(used)
        else:
            used = rng.randrange(r.wanted() + 1)
            got = r.pull(used)
        rows.append((what, seq, used, seen, flags, payload, *got, r.wanted(), r.cum()))
    return limit, rows


# ---- the sender ----

class Sender:
    """The packets in flight and those to be sent again are lists of numbers, oldest first."""
    RTO, BACKOFF_MAX = 1000000, 100000000
    RTO_MIN = 400000

    def __init__(self, window, span):
        self.window, self.span, self.limit = window, span, window
        self.una = self.next = self.end = 0
        self.used = self.granted = self.promised = self.pulled = 0
        self.flight, self.again, self.sent, self.tries = [], [], {}, {}
        self.acked = set()
        self.free = 0
        self.srtt = self.var = self.newest = 0
        self.wait = self.gap = self.last_pull = 0
        self.backoff = self.share = 0
        self.probing = self.answered = self.trims = self.graceful = False
        self.fin = None

    def waits(self):
        return bool(self.again) or self.next < self.end

    def rto(self):
        if not self.srtt:
            return self.RTO
        return min(max(2 * self.srtt + 4 * self.var, self.RTO_MIN), max(self.RTO, 2 * self.srtt))

    def due(self):
        """When the timer fires; None: never."""
        if self.flight:
            return self.sent[self.flight[0]] + min(self.rto() << self.backoff, self.BACKOFF_MAX)
        if not self.waits():
            return None
        wait = self.rto()
        if self.promised > self.granted:
            wait = max(wait, 4 * self.gap)
        return self.wait + min(wait << self.backoff, self.BACKOFF_MAX)

    def queue(self, packets, now):
        if not self.flight and not self.waits():
            self.wait, self.pulled = now, 0
        self.end += packets

    def finish(self, now):
        if self.fin is not None:
            return
        if self.next == self.end:
            self.queue(1, now)
        self.fin = self.end - 1

    def pay(self):
        self.used += 1
        self.pulled = max(0, self.pulled - 1)

    def take(self, now):
        """The next packet: type, number, flags, transmission; None if nothing may be sent."""
        if self.probing:
            self.probing = False
            return PROBE, 0, 0 if self.answered else SYN, 0
        if not self.again:
            self.free = 0
        seq = None
        if self.again and (self.free or self.pulled):
            seq = self.una if self.una in self.again else self.again[0]
            self.again.remove(seq)
        again = seq is not None
        if again:
            self.tries[seq] += 1
            if self.free:
                self.free -= 1
            else:
                self.pay()
        else:
            room = self.next < self.end and self.next < self.limit and self.next - self.una < self.span
            if not room or self.window + self.granted == self.used:
                return None
            seq = self.next
            self.next += 1
            self.tries[seq] = 0
            self.pay()
        self.flight.append(seq)
        self.sent[seq] = now
        self.wait = now
        flags = (0 if self.answered else SYN) | (LAST if seq == self.end - 1 else 0) | \
            (FIN if seq == self.fin else 0) | (RTX if again else 0)
        return DATA, seq, flags, self.tries[seq]

    def lose(self):
        self.again.append(self.flight.pop(0))
        self.graceful = not self.trims

    def timeout(self, now):
        if self.due() is None or now < self.due():
            return
        rto = min(self.rto() << self.backoff, self.BACKOFF_MAX)
        self.wait = now
        while self.flight and self.sent[self.flight[0]] + rto <= now:
            self.lose()
        if self.again and self.promised == self.granted:
            self.free = max(self.free, 1)
        elif not self.flight:
            self.probing = True
        self.backoff = min(self.backoff + 1, 16)

    def sample(self, rtt):
        """RFC 6298, with shifts as in TCP."""
        if not self.srtt:
            self.srtt, self.var = max(rtt, 1), rtt // 2
            return
        self.var += (abs(rtt - self.srtt) - self.var) >> 2
        self.srtt = max(self.srtt + ((rtt - self.srtt) >> 3), 1)

    def count(self, ack):
        """Smoothed share of ACKs, of 255."""
        if ack:
            self.share += (255 - self.share + 4) >> 3
        else:
            self.share -= (self.share + 4) >> 3

    def answer(self, h, now):
        """An ACK, NACK or PULL. Return: whether it is possible."""
        kind, seq, credits, owed, cum, limit, flags, tries, arrived = h
        if cum > self.next or (arrived and cum + arrived.bit_length() >= self.next) or credits > self.used or not 0 <= limit - cum < 65536 or \
                (kind != PULL and seq >= self.next):
            return False
        self.answered = True
        self.wait = now
        progress = False
        flying, waiting = seq in self.flight, seq in self.again
        if kind == ACK and (flying or waiting):
            if tries == self.tries[seq]:
                self.sample(now - self.sent[seq])
                self.newest = max(self.newest, self.sent[seq])
            else:                       # the timeout was too short
                self.sample(now - self.sent[seq] + self.rto())
            self.count(True)
            (self.flight if flying else self.again).remove(seq)
            self.acked.add(seq)
            progress = True
        elif kind == NACK and flying and tries == self.tries[seq]:
            if flags & TRIMMED:
                self.trims, self.graceful = True, False
            self.sample(now - self.sent[seq])
            self.count(False)
            self.flight.remove(seq)
            self.again.append(seq)
            progress = True
        while self.una < cum:
            self.also_arrived(self.una)
            self.una += 1
            progress = True
        for seq in (cum + 1 + i for i in range(32) if arrived >> i & 1):
            if seq in self.flight or seq in self.again:
                self.also_arrived(seq)
                self.acked.add(seq)
                progress = True
        progress |= self.take_credits(credits, owed, now)
        if limit > self.limit:
            self.limit = limit
            progress = True
        if progress:
            self.backoff = 0
        while self.graceful and self.flight and self.sent[self.flight[0]] + (self.srtt >> 2) < self.newest:
            self.lose()
        return True

    def also_arrived(self, seq):
        """One answer may do for several packets."""
        if seq in self.flight:
            self.count(True)
            if not self.tries[seq]:
                self.newest = max(self.newest, self.sent[seq])
        for where in (self.flight, self.again):
            if seq in where:
                where.remove(seq)

    def take_credits(self, credits, owed, now):
        if self.promised <= self.granted:
            self.last_pull = now        # from now on credits are expected
        self.promised = max(self.promised, min(credits + owed, self.used))
        if credits <= self.granted:
            return False
        self.pulled += credits - self.granted
        self.granted = credits
        self.promised = max(self.promised, credits)
        self.gap = (self.gap + now - self.last_pull) // 2
        self.last_pull = now
        return True

    def returned(self, seq, tries, now):
        if seq not in self.flight or tries != self.tries[seq]:
            return
        acks = self.share >= 192
        self.flight.remove(seq)
        self.again.append(seq)
        self.count(False)
        self.trims, self.graceful = True, False
        self.wait = now
        self.backoff = min(self.backoff, 3)
        if acks or (not tries and not self.flight and self.promised == self.granted):
            self.free += 1


def sender_answer(rng, s):
    """A random answer, most often a possible one."""
    kind = rng.choices([ACK, NACK, PULL], [4, 3, 4])[0]
    known = s.flight + s.again or [max(s.next - 1, 0)]
    seq = rng.choice(known) if rng.random() < .95 else s.next + rng.randrange(3)
    credits = min(s.used, s.granted + rng.choices([0, 1, 2], [3, 5, 1])[0])
    if kind != PULL and rng.random() < .8:
        credits = s.granted
    if rng.random() < .03:
        credits = s.used + 1
    owed = rng.randrange(max(s.used - credits, 0) + 2)
    cum = s.una
    while cum in s.acked or (kind == ACK and cum == seq):
        cum += 1
    if rng.random() < .05:
        cum = rng.choice([0, s.next + 1])
    limit = max(s.limit, cum) + rng.choice([0, 0, 1, 5]) if rng.random() < .9 else cum
    flags = TRIMMED if kind == NACK and rng.random() < .7 else 0
    tries = s.tries.get(seq, 0) if rng.random() < .95 else 3
    behind = [n for n in range(cum + 1, min(cum + 33, s.next)) if n in s.acked or rng.random() < .15]
    arrived = sum(1 << n - cum - 1 for n in behind) if rng.random() < .5 else 0
    if rng.random() < .03:
        arrived |= 1 << min(max(s.next - cum - 1, 0), 31)
    return kind, seq, credits, owed, cum, limit, flags, tries, arrived


def sender_rows(rng):
    """Random events at a sender, and their results."""
    window = rng.randrange(1, 20)
    s = Sender(window, 32)
    now = 1000
    rows = []
    while len(rows) < EVENTS:
        now += rng.choice([0, 1000, 20000, 100000])
        what = rng.choices(['queue', 'finish', 'answer', 'returned', 'timeout'], [3, .3, 10, 1, 2])[0]
        h = (0,) * 9
        result = 1
        if what == 'queue':
            if s.fin is not None:
                continue
            h = (0, 0, rng.randrange(1, 12)) + (0,) * 6
            s.queue(h[2], now)
        elif what == 'finish':
            s.finish(now)
        elif what == 'answer':
            h = sender_answer(rng, s)
            result = int(s.answer(h, now))
        elif what == 'returned':
            seq = rng.choice(s.flight or [0])
            h = (0, seq, 0, 0, 0, 0, 0, s.tries.get(seq, 0), 0)
            s.returned(seq, h[7], now)
        else:
            if s.due() is not None and rng.random() < .7:
                now = max(now, s.due())
            s.timeout(now)
        rows.append((what, now, h, result, s.una, len(s.flight), len(s.again), s.due(), s.graceful))
        while True:
            sent = s.take(now)
            rows.append(('next', now, (sent or (0,) * 4)[:1] + (sent or (0,) * 4)[1:2] + (s.used, 0, 0, 0) +
                         (sent or (0,) * 4)[2:] + (0,), int(sent is not None), s.una, len(s.flight), len(s.again),
                         s.due(), s.graceful))
            if not sent:
                break
    return window, rows


# ---- ndp_vectors.h ----

HEAD = '''/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test vectors for NDP's engines. Made by kunit/reference_ndp.py, which explains them; do not edit.
 */
#ifndef _TIMELY_NDP_VECTORS_H
#define _TIMELY_NDP_VECTORS_H

#include <linux/types.h>

#include <timely/engine/ndp_receiver.h>

struct ndp_wire_vector {
	struct timely_ndp_header header;
	u16 family;
	u8 saddr[16];
	u8 daddr[16];
	bool keyed;
	u64 key[2];
	u32 bytes;
	u8 wire[TIMELY_NDP_MAX_BYTES];
};

/* Checksum of the bytes 3, 10, 17, ... modulo 256. */
struct ndp_sum_vector {
	u32 bytes;
	u32 sum;
};

enum ndp_vector_event {
	NDP_V_DATA, NDP_V_PROBE, NDP_V_ROOM, NDP_V_PULL,
	NDP_V_QUEUE, NDP_V_FINISH, NDP_V_ANSWER, NDP_V_RETURNED, NDP_V_TIMEOUT, NDP_V_NEXT,
};

/* An event at a receiver with its arguments; the verdict, or for a PROBE and room whether there is an
 * answer; the answer's type, flags, credits, owed, cum, arrived and limit; the pulls wanted and cum afterwards.
 */
struct ndp_receiver_vector {
	u8 event;
	u32 seq;
	u32 credits;
	u32 seen;
	u16 flags;
	u8 payload;
	u8 result;
	u8 type;
	u16 answer_flags;
	u32 granted;
	u16 owed;
	u32 cum;
	u32 arrived;
	u32 limit;
	u32 wanted;
	u32 cum_after;
};

/* An event at a sender at a time, with a header's fields; for NDP_V_NEXT these are results, and credits
 * is the number of credits used. Then the result, and the sender's state: first packet missing, packets in
 * flight and to be sent again, the time of the timer (0: never), whether the network does not trim.
 */
struct ndp_sender_vector {
	u8 event;
	u64 now_ns;
	u8 type;
	u32 seq;
	u32 credits;
	u16 owed;
	u32 cum;
	u32 limit;
	u16 flags;
	u8 tries;
	u32 arrived;
	u8 result;
	u32 una;
	u32 flight;
	u32 again;
	u64 due_ns;
	bool graceful;
};

'''


def octets(data):
    return '{ ' + ', '.join('0x%02x' % x for x in data) + ' }'


def write_headers(out, rng):
    out.append('static const struct ndp_wire_vector ndp_wire_vectors[] __maybe_unused = {')
    for h, family, saddr, daddr, key, wire in headers(rng):
        fields = ', '.join('.%s = %#x%s' % (name, value, 'ULL' if value > M32 else '') for name, value in h.items())
        k0, k1 = key or (0, 0)
        out.append('\t{ { %s }, %d,\n\t  %s,\n\t  %s, %d, { %#xULL, %#xULL }, %d,\n\t  %s },' % (
            fields, family, octets(saddr), octets(daddr), bool(key), k0, k1, len(wire), octets(wire)))
    out.append('};\n')
    out.append('static const struct ndp_sum_vector ndp_sum_vectors[] __maybe_unused = {')
    for size in [*range(0, 70), 255, 256, 1448, 8920, 65000]:
        out.append('\t{ %d, %#x },' % (size, payload_sum(bytes((3 + 7 * i) & 255 for i in range(size)))))
    out.append('};\n')


VERDICTS = {'received': 0, 'repeated': 1, 'missed': 2, 'refused': 3}
PAYLOADS = {'whole': 0, 'cut': 1, 'bad': 2}


def write_receivers(out, rng):
    out.append('static const u32 ndp_receiver_limits[] __maybe_unused = {')
    rows = []
    for _ in range(SEQUENCES):
        limit, more = receiver_rows(rng)
        out.append('\t%d,' % limit)
        rows += more
    out.append('};\n')
    out.append('#define NDP_V_RECEIVER_ROWS\t%d\n' % EVENTS)
    out.append('static const struct ndp_receiver_vector ndp_receiver_vectors[] __maybe_unused = {')
    for what, seq, used, seen, flags, payload, verdict, *rest in rows:
        result = VERDICTS[verdict] if what == 'data' else int(verdict == 'received')
        out.append('\t{ NDP_V_%s, %d, %d, %d, %d, %d, %d, %s },' % (
            what.upper(), seq, used, seen, flags, PAYLOADS[payload], result, ', '.join(map(str, rest))))
    out.append('};\n')


def write_senders(out, rng):
    starts = []
    out.append('static const struct ndp_sender_vector ndp_sender_vectors[] __maybe_unused = {')
    count = 0
    for _ in range(SEQUENCES):
        window, rows = sender_rows(rng)
        starts.append((window, count))
        for what, now, h, result, una, flight, again, due, graceful in rows:
            out.append('\t{ NDP_V_%s, %d, %s, %d, %d, %d, %d, %d, %d },' % (
                what.upper(), now, ', '.join(map(str, h)), result, una, flight, again, due or 0, graceful))
        count += len(rows)
    out.append('};\n')
    out.append('static const struct { u32 window, first; } ndp_sender_starts[] __maybe_unused = {')
    out.extend('\t{ %d, %d },' % start for start in starts)
    out.append('};\n')


def text():
    """The text of ndp_vectors.h."""
    rng = random.Random(2017)
    out = []
    write_headers(out, rng)
    write_receivers(out, rng)
    write_senders(out, rng)
    return HEAD + '\n'.join(out) + '\n#endif /* _TIMELY_NDP_VECTORS_H */\n'


def main():
    parser = argparse.ArgumentParser(description='Write ndp_vectors.h.')
    parser.add_argument('--check', action='store_true', help='only check that the file is up to date')
    args = parser.parse_args()
    path = os.path.join(HERE, 'ndp_vectors.h')
    new = text()
    if not args.check:
        with open(path, 'w', encoding='ascii') as file:
            file.write(new)
        return 0
    with open(path, encoding='ascii') as file:
        same = file.read() == new
    print('%s 1 - ndp_vectors.h is up to date' % ('ok' if same else 'not ok'))
    print('1..1')
    if not same:
        print('# run kunit/reference_ndp.py to write ndp_vectors.h again')
    return 0 if same else 1


if __name__ == '__main__':
    sys.exit(main())
