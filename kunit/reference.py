#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The rate rules of the papers in double precision: the reference for the fixed-point code of
net/timely/engine/rate.c, and with reference_window.py for swift.c and powertcp.c. It is written
from the papers, not from the engine, so that both do not have the same errors. The target-delay
rule is not included.

Without options the script writes rate_vectors.h: sequences of completions, with the rate that is
expected after each. rate_replay.h replays them on the engine. --check compares the checked-in
file with the result.

Sources of the formulas:
  [A1]   TIMELY, SIGCOMM'15, Algorithm 1 and section 4.3
  [S5]   TIMELY, section 5: limit at the link rate, application limit, updates scaled by the
         number of completions in a minimum RTT
  [SN]   code snippet by TIMELY's authors: min(1, dt / minRTT), decreases by at most a half,
         the count of falling RTTs
  [FAST] FAST TCP, ToN 2006, equation of the window, applied to the rate as in section 6.1 of
         [A1]
  [EOD]  "ECN or Delay", CoNEXT'16, section 5.1: patched TIMELY
  [ERPC] eRPC, NSDI'19: every decrease is scaled by the time that has passed

Tolerance. The gains (alpha, beta, beta_high, loss_beta) are rounded to 1/65536 here, because the
engine rounds them, too: they are parameters, not results. All other values are exact to 53 bits.
The engine rounds the smoothed difference to the nearest 1/256 ns. It rounds the gradient, the
elapsed share and the ratios of RTTs down to 1/65536 (called U below), so each of them may be too
small by up to U. A product of a share and the rate may have an error of half of U. Flow.slack adds
up the largest errors, as if all had the same sign. The tolerance of a row is this sum, but at least
10 ppm, which is less than U, and at most 100 ppm: before the sum gets there, the rate of the engine
is set to the rate of the reference (SYNC).

No expected rate can be given for a completion at which these errors could change a decision (is
the gradient above zero? is w zero? does the rate rise?), or could change the rate by more than
100 ppm (for example w, known to U, times an error of hundreds of RTTref). The reference raises
Undecided for such a completion, and no row contains one.
"""

import argparse
import copy
import os
import sys
import textwrap

import reference_window as window
from reference_window import Undecided

U = 1 / 65536
DIFF_UNIT = 1 / 512         # ns, largest rounding error of the smoothed difference
KBPS = 125                  # bytes per second
US = 1000
MS = 1000 * US
S = 1000 * MS
START_NS = 1 * S            # time at which each sequence starts
NONE, LOW, GRADIENT, HIGH = range(4)
ZONES = ('NONE', 'LOW', 'GRADIENT', 'HIGH')
SMOOTHED, RAW, INCREASES = range(3)
ALGORITHM_1, EOD, FAST_TCP, TARGET_DELAY, SWIFT, POWERTCP = range(6)
ACK, SYNC, INIT, RESEED, LOSE, RESTART = (
    'ACK', 'SYNC', 'INIT', 'RESEED', 'LOSE', 'RESTART')


def gain(ppm):
    """A gain, rounded to 1/65536 as in the engine."""
    return ((ppm * 65536 * 2 + 1000000) // 2000000) * U


class Flow:
    """One flow's rate computation. Times in ns, rates in bytes per second."""

    def __init__(self, p):
        self.p = p
        self.alpha = gain(p['alpha_ppm'])
        self.beta = gain(p['beta_ppm'])
        self.beta_high = gain(p['beta_high_ppm'])
        self.loss_beta = gain(p['loss_beta_ppm'])
        self.min_rate = p['min_rate_kbps'] * KBPS
        self.max_rate = p['max_rate_kbps'] * KBPS
        self.first_rate = p['first_rate_kbps'] * KBPS
        self.updated = 0        # ns, time of the last update
        self.init()

    def init(self):
        self.rate = min(max(self.first_rate, self.min_rate), self.max_rate)
        self.slack = 0.0        # largest error of the engine's rate, bytes per second
        self.reseed()
        window.init(self)
        self.updated = 0

    def reseed(self):
        """Forget the last RTT and the gradient."""
        self.seeded = False
        self.prev = 0           # ns, RTT of the last completion
        self.diff = 0.0         # ns, smoothed difference of RTTs
        self.diff_slack = 0.0   # ns, largest error of the engine's diff
        self.hai = 0            # completions counted towards hyperactive increase
        window.forget(self)

    def sync(self):
        """Not a function of the engine: the test sets the engine's rate to the reference's."""
        self.slack = U

    def lose(self):
        """Not in the papers, which do not treat losses."""
        self.slack = self.slack * (1 - self.loss_beta) + U
        self.rate *= 1 - self.loss_beta
        self.limit(self.min_rate, self.rate < self.min_rate)
        self.reseed()
        if self.p['rule'] == SWIFT:
            window.lost(self)

    def restart(self):
        """Not in the papers: after a long idle time the last measurements are too old."""
        first = max(self.first_rate, self.min_rate)
        self.limit(first, self.rate > first)
        self.reseed()

    def gradient(self, raw):
        """[A1]: the smoothed difference divided by the minimum RTT, and the largest error of
        the engine's gradient."""
        min_rtt = self.p['min_rtt_ns']
        self.diff += self.alpha * (raw - self.diff)
        if self.alpha == 1:
            self.diff = float(raw)
        elif raw or self.diff:
            self.diff_slack = (1 - self.alpha) * self.diff_slack + DIFF_UNIT
        return self.diff / min_rtt, self.diff_slack / min_rtt + U

    def is_sharp(self, units):
        """Whether the engine computes this quotient without an error. units is the quotient, by
        the minimum RTT, in 1/65536: it must be an integer, and the reciprocal of the minimum
        RTT must be exact, as that of a power of two is."""
        min_rtt = self.p['min_rtt_ns']
        return units in (0, 65536) or units == int(units) and not min_rtt & (min_rtt - 1)

    def rises(self, g, doubt):
        """Whether the gradient g, with an error of at most doubt, is above zero."""
        if self.diff and abs(g) < 2 * doubt:
            raise Undecided('sign of the gradient')
        return g > 0

    def is_steep(self, g, doubt):
        """Whether w is zero [EOD]."""
        sharp = self.alpha == 1 and self.is_sharp(g * 65536)
        if not sharp and abs(2 * g + 0.5) < 4 * doubt:
            raise Undecided('w == 0')
        return 2 * g + 0.5 <= 0

    def limit(self, bound, is_past, slack=0.0):
        """If is_past, set the rate to the bound. An engine's rate beyond the bound is set to it,
        too, so the error is smaller then."""
        if is_past:
            self.slack = max(slack, self.slack - abs(self.rate - bound))
            self.rate = bound

    def is_falling(self, rtt, raw, g, doubt):
        """Whether the completion counts towards hyperactive increase. INCREASES is counted later,
        by the change of the rate."""
        p = self.p
        if p['hai_below_t_low'] and rtt < p['t_low_ns']:
            return True
        if p['hai_count'] == RAW:               # [SN]
            return raw < 0
        if p['rule'] == EOD:
            return self.is_steep(g, doubt)
        return not self.rises(g, doubt) and g < 0       # [A1]

    def windowed(self, now, rtt, size, may_rise):
        """A window rule. One update may decrease the rate by more than half."""
        if self.p['rule'] == SWIFT:
            self.rate, self.slack = window.swift(self, now, rtt, size, may_rise,
                                                 (self.beta, self.loss_beta))
        else:
            self.rate, self.slack = window.powertcp(self, now, rtt, may_rise, self.alpha)
        if self.slack > 1e-4 * self.rate:
            raise Undecided('size of the change')
        self.limit(self.min_rate, self.rate < self.min_rate)
        self.limit(self.max_rate, self.rate > self.max_rate)
        self.prev, self.updated, self.seeded = rtt, now, True
        return GRADIENT

    def fast(self, now, rtt, may_rise):
        """[FAST]: the share of the queue in the RTT lowers the rate, delta raises it. There are no
        thresholds, no gradient and no steps."""
        p = self.p
        old, old_slack = self.rate, self.slack
        target = (1 - self.alpha) * old + self.alpha * (
            p['min_rtt_ns'] / rtt * old + p['delta_kbps'] * KBPS)
        slack = U
        if abs(target - old) <= slack + old_slack and not may_rise:
            raise Undecided('does the rate rise?')
        if target > old and not may_rise:                       # [S5]
            target = old
        self.rate = target
        self.slack = old_slack + slack
        self.limit(2 * old, target > 2 * old, 2 * old_slack)
        self.limit(old / 2, target < old / 2, old_slack)        # [SN]
        self.limit(self.min_rate, self.rate < self.min_rate)
        self.limit(self.max_rate, self.rate > self.max_rate)            # [S5]
        self.prev, self.updated, self.seeded = rtt, now, True
        return GRADIENT

    def update(self, now, rtt, size, may_rise):
        """A completion. Returns the zone."""
        p = self.p
        min_rtt = p['min_rtt_ns']
        rtt = max(rtt, min_rtt)
        passed = now - self.updated
        if p['once_per_rtt'] and self.seeded and 0 <= passed < self.prev:
            return NONE
        if p['rule'] == FAST_TCP:
            return self.fast(now, rtt, may_rise)
        if p['rule'] in (SWIFT, POWERTCP):
            return self.windowed(now, rtt, size, may_rise)
        raw = rtt - self.prev if self.seeded else 0
        # [S5], [SN]; if the clock runs backwards, the time counts in full.
        e = 1.0 if not self.seeded or passed < 0 else min(1.0, passed / min_rtt)
        e_slack = 0.0 if self.is_sharp(e * 65536) else U
        g, doubt = self.gradient(raw)

        mode = p['hai_count']
        if mode != INCREASES:
            falling = self.is_falling(rtt, raw, g, doubt)
            self.hai = min(255, self.hai + 1) if falling else 0
        hyper = p['hai_threshold'] != 0 and self.hai >= p['hai_threshold']
        if rtt < p['t_low_ns']:
            hyper = hyper and p['hai_below_t_low']
        elif p['rule'] == EOD:
            hyper = hyper and rtt <= p['t_high_ns'] and self.is_steep(g, doubt)
        n = p['hai_factor'] if hyper else 1

        whole = n * p['delta_kbps'] * KBPS
        if p['scale_step']:
            whole *= min(16, size / p['segment_bytes'])
        step = whole * e
        # Errors of the elapsed share, of the reciprocal of segment_bytes, and of the step in Q16.
        step_slack = whole * e_slack + step * 4e-6 + n * U

        # A decrease by a share of the rate, and its largest error: from blur, the error of the
        # share, from the error of e, and from the rounding of the product.
        def fall(share, blur, is_scaled=True):
            scale = e if is_scaled else 1.0
            product = U / 2 if share * scale else 0.0
            if is_scaled:
                product += abs(share) * e_slack
            return -self.rate * share * scale, self.rate * (blur * scale + product)

        if rtt < p['t_low_ns']:                                 # [A1]
            zone, change, slack = LOW, step, step_slack
        elif rtt > p['t_high_ns']:                              # [A1], [SN]
            zone = HIGH
            share = self.beta_high * (1 - p['t_high_ns'] / rtt)
            change, slack = fall(share, self.beta_high * U)
        else:
            zone = GRADIENT
            is_scaled = bool(p['scale_decrease'])               # [S5], [ERPC]
            if p['rule'] == EOD:                                    # [EOD]
                ref = p['rtt_ref_ns']
                error = min((rtt - ref) / ref, 256.0)
                w = min(1.0, max(0.0, 2 * g + 0.5))
                w_doubt = 2 * doubt if abs(g) < 0.25 + 2 * doubt else 0.0
                share = self.beta * w * error
                blur = self.beta * (w * U + w_doubt * abs(error)) if error else 0.0
                change, slack = fall(max(-1.0, min(1.0, share)),
                                     blur if abs(share) < 1 + blur else 0.0, is_scaled)
                change += step * (1 - w)
                slack += step_slack + step * w_doubt
            elif not self.rises(g, doubt):                      # [A1]
                change, slack = step, step_slack
            else:                                               # [A1]
                share = self.beta * g
                blur = self.beta * doubt
                change, slack = fall(min(1.0, share),
                                     blur if share < 1 + blur else 0.0, is_scaled)

        if change and abs(change) <= 2 * slack and (
                self.hai and mode != RAW or change > 0 and mode == INCREASES):
            raise Undecided('sign of the change, for the HAI counter')
        if change > 0 and not may_rise:                         # [S5]
            change = slack = 0.0
            self.hai = 0
        elif change > 0 and mode == INCREASES:
            self.hai = min(255, self.hai + 1)
        elif change < 0 and mode != RAW:
            self.hai = 0

        if slack > 1e-4 * (self.rate + max(0.0, change)):
            raise Undecided('size of the change')

        old, old_slack = self.rate, self.slack
        self.rate = old + change
        if change < 0:
            old_slack *= max(self.rate / old, 0.5)
        self.slack = old_slack + slack
        self.limit(old / 2, self.rate < old / 2, old_slack)     # [SN]
        self.limit(self.min_rate, self.rate < self.min_rate)
        self.limit(self.max_rate, self.rate > self.max_rate)            # [S5]
        self.prev, self.updated, self.seeded = rtt, now, True
        return zone


# ---- parameters ----

def params(base, **changes):
    unknown = set(changes) - set(base)
    if unknown:
        raise KeyError(', '.join(sorted(unknown)))
    return dict(base, **changes)


# The values of the paper (sections 4.3, 5, 6) and, for alpha, of its authors' code. Values that
# the paper does not give are chosen for the tests.
PAPER = {
    'min_rtt_ns': 20 * US, 't_low_ns': 50 * US, 't_high_ns': 500 * US,
    'rtt_ref_ns': 50 * US, 'alpha_ppm': 20000, 'beta_ppm': 800000,
    'beta_high_ppm': 800000, 'delta_kbps': 10000, 'segment_bytes': 16384,
    'hai_threshold': 5, 'hai_factor': 5, 'hai_count': SMOOTHED,
    'hai_below_t_low': 0, 'rule': 0, 'scale_decrease': 1, 'scale_step': 0,
    'once_per_rtt': 0, 'min_rate_kbps': 10000, 'max_rate_kbps': 10000000,
    'first_rate_kbps': 1000000, 'link_rate_kbps': 0,
    'app_limited_percent': 80, 'loss_beta_ppm': 500000, 'loss_free_ppm': 0,
}
# HPCC's simulator and its descendants.
NS3 = params(PAPER, alpha_ppm=875000, hai_count=INCREASES, scale_decrease=0,
             once_per_rtt=1, first_rate_kbps=10000000, app_limited_percent=0)
# eRPC's source.
ERPC = params(PAPER, min_rtt_ns=2 * US, t_high_ns=1 * MS, alpha_ppm=460000,
              beta_ppm=260000, beta_high_ppm=260000, delta_kbps=40000,
              hai_count=RAW, min_rate_kbps=120000, max_rate_kbps=25000000,
              first_rate_kbps=25000000, app_limited_percent=0)
# CoNEXT'16, with the paper's own beta above Thigh.
PATCHED = params(PAPER, alpha_ppm=875000, beta_ppm=8000, rule=EOD)
# A former default of the module. The vectors keep these values, whatever the default is.
LINUX = params(PATCHED, beta_ppm=30000, delta_kbps=2500, scale_step=1, hai_below_t_low=1,
               min_rate_kbps=1000, max_rate_kbps=800000000, first_rate_kbps=500000)
# The middle column of Table 1 in the TIMELY paper. The base RTT is known.
FAST = params(PAPER, alpha_ppm=500000, delta_kbps=50000, rule=FAST_TCP, once_per_rtt=1)
# A base RTT of 20 us, a base target of 25 us.
SWIFT_20US = params(PAPER, rule=SWIFT, rtt_ref_ns=25 * US, scale_step=0, min_rate_kbps=1000)
# A base RTT of 16 us, a link of 10 Gb/s, ten connections.
POWERTCP_16US = params(PAPER, rule=POWERTCP, min_rtt_ns=16384, alpha_ppm=900000,
                       delta_kbps=1000000, first_rate_kbps=10000000)
PRESETS = {'linux': LINUX, 'paper': PAPER, 'ns3': NS3, 'erpc': ERPC, 'patched': PATCHED}

# Round numbers and no smoothing, so that values exactly at the borders of decisions can be tested.
PLAIN = params(PAPER, min_rtt_ns=16384, alpha_ppm=1000000, beta_ppm=500000,
               beta_high_ppm=500000, delta_kbps=8000, rtt_ref_ns=65536)


class Dice:
    """Pseudo-random numbers that are the same on all machines (xorshift64*)."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 1) & (2**64 - 1)

    def below(self, n):
        x = self.state
        x ^= x >> 12
        x ^= (x << 25) & (2**64 - 1)
        x ^= x >> 27
        self.state = x
        return ((x * 0x2545F4914F6CDD1D) >> 20 & 0xFFFFFFFFFFF) % n

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def pick(self, *things):
        return things[self.below(len(things))]

    def scale(self, low, high):
        """A number from low to high; each power of two is equally likely."""
        bits = self.between(0, (max(high // max(low, 1), 1)).bit_length())
        return min(high, max(low, self.between(low, max(low, 1) << bits)))


class Sequence:
    """Events of one flow, and the rate that is expected after each."""

    def __init__(self, name, p):
        self.name = name
        self.p = p
        self.flow = Flow(p)
        self.now = START_NS
        self.rows = []

    def note(self, what, flow, gap=0, rtt=0, size=0, times=1, rise=True, zone=NONE):
        """Append a row for the event what, after which the state of the flow is flow."""
        ppm = flow.slack / flow.rate * 1000000
        if ppm > 100:
            self.refuse('%.0f ppm' % ppm)
        self.flow = flow
        self.now += gap * times
        self.rows.append((what, gap, rtt, size, times, int(rise), zone, flow.hai,
                          int(flow.rate * 65536 + 0.5), int(max(10, ppm + 1))))
        if ppm > 40:
            self.event(SYNC)
        return self

    def refuse(self, why):
        raise Undecided('%s, row %d: %s' % (self.name, len(self.rows), why)) from None

    def ack(self, rtt, gap=None, size=None, times=1, rise=True):
        """A number of completions (times), gap ns apart. By default each is at least a minimum RTT
        after the last one, so that it has its full effect."""
        size = size or self.p['segment_bytes']
        if gap is None:
            gap = self.p['min_rtt_ns']
            if self.p['once_per_rtt']:
                gap = max(gap, self.flow.prev, rtt if times > 1 else 0)
        flow = copy.copy(self.flow)
        for i in range(times):
            try:
                zone = flow.update(self.now + gap * (i + 1), rtt, size, rise)
            except Undecided as why:
                self.refuse(why)
        return self.note(ACK, flow, gap, rtt, size, times, rise, zone)

    def maybe(self, rtt, **more):
        """A completion, unless rounding errors decide about the result."""
        try:
            return self.ack(rtt, **more)
        except Undecided:
            return self

    def acks(self, *rtts, **more):
        """One completion for each RTT."""
        for rtt in rtts:
            self.ack(rtt, **more)
        return self

    def event(self, what):
        """An event other than a completion: SYNC, INIT, RESEED, LOSE or RESTART."""
        flow = copy.copy(self.flow)
        getattr(flow, what.lower())()
        return self.note(what, flow)


# ---- sequences ----

SEQUENCES = []


def sequence(name, p):
    SEQUENCES.append(Sequence(name, p))
    return SEQUENCES[-1]


def walk(s, seed, steps):
    """A random sequence: RTTs that drift and jump, bursts, idle times, idle applications,
    losses."""
    dice = Dice(seed)
    p = s.p
    m = p['min_rtt_ns']
    top = min(2**32 - 1, 2 * max(p['t_high_ns'], m))
    rtt = max(m, (p['t_low_ns'] + p['t_high_ns']) // 2)
    done = 0
    while done < steps:
        chance = dice.below(100)
        if chance < 2:
            s.event(dice.pick(RESEED, LOSE, RESTART))
            continue
        if chance < 12:
            aim = dice.scale(max(m // 2, 1), top)
        elif chance < 22:
            aim = dice.pick(p['t_low_ns'], p['t_high_ns'], p['rtt_ref_ns'], m) + dice.between(-1, 1)
        else:
            aim = rtt + dice.between(-m, m)
        aim = min(max(aim, 1), top)
        gap = dice.pick(m, m, m, 2 * m, m // 2, dice.between(0, m), rtt + m, 0)
        size = dice.pick(1, 3, 3, 3, 9, 60) * p['segment_bytes'] // 3
        if dice.below(20) == 0:
            size = 1
        try:
            s.ack(aim, gap=gap, size=size, rise=dice.below(10) > 0)
        except Undecided:
            continue
        rtt = max(aim, m)
        done += 1
    return s


def of_preset(name, p):
    """All branches and borders with the parameters of a preset."""
    m, low, high = p['min_rtt_ns'], p['t_low_ns'], p['t_high_ns']

    s = sequence(name + '__borders', p)
    for rtt in (low - 1, low, low + 1, high - 1, high, high + 1, m - 1, m, m + 1, 1):
        # As the first RTT, so that the gradient is 0; then after a fall and after a rise.
        s.event(INIT).ack(rtt)
        s.event(INIT).ack(rtt + 2 * m).maybe(rtt)
        s.event(INIT).ack(max(rtt - m // 3, 1)).maybe(rtt)

    s = sequence(name + '__zones', p)
    s.acks(low - low // 10, (low + high) // 2, high - m // 2, high - 2 * m, 2 * high,
           4 * high, high, low + m, low + 3 * m, low - 1)

    s = sequence(name + '__hai', p)
    fall = m * 7 // 10
    rtt = high - m
    s.ack(rtt)
    for falls, rise in ((8, m // 5), (7, m * 3), (6, 0)):
        for _ in range(falls):
            rtt -= fall
            s.ack(rtt)
        rtt += rise
        s.ack(rtt)
    s.ack(low - 2 * m if low > 3 * m else m, times=4).ack(low - 1, times=3).ack(high + m)
    s.ack(low + m)

    s = sequence(name + '__burst', p).ack(low + m)
    for part in (0, 1, m // 100, m // 8, m // 2, m - 1, m, m + 1):
        for rtt in (low + m - fall, high + m, low - 1, low + 3 * m, low + 2 * m):
            s.maybe(rtt, gap=part)

    s = sequence(name + '__halving', p).acks(low, high, low)
    s.acks(min(low + 60 * m, high), 100 * high, 4294967295, 1 * S)

    s = sequence(name + '__max', p)
    s.ack(low - 1 if low > m else m, times=1500, size=p['segment_bytes'] * 16)
    s.ack(low - 1, times=3).ack(2 * high).ack(low - 1)

    s = sequence(name + '__min_and_escape', p)
    s.ack(100 * high, times=24)
    s.ack(low - 1).ack(low - 1, times=4).ack(low - 1, times=95)

    s = sequence(name + '__app_limited', p).ack(low + 4 * m)
    for rise in (True, False, True):
        for _ in range(6):
            s.ack(s.flow.prev - m // 2, rise=rise)
        s.ack(low - 1, rise=rise).ack(low + 5 * m, rise=rise).ack(2 * high, rise=rise)
        s.ack(low + 4 * m, rise=rise)

    s = sequence(name + '__clock_back', p).ack(low + m).ack(low + 2 * m, gap=-1)
    s.ack(2 * high, gap=-300 * MS).ack(low - 1, gap=-m).ack(low + m, gap=-2 * high)

    s = sequence(name + '__forgetting', p).acks(low + m, low + 3 * m, low + 2 * m)
    for what in (RESEED, LOSE, RESTART, LOSE, LOSE, LOSE, LOSE, LOSE, LOSE, LOSE, RESTART):
        s.event(what).acks(low + m * 3 // 2, low + m, low + m // 3)

    for seed in (1, 2):
        walk(sequence('%s__walk_%d' % (name, seed), p), seed + len(name) * 10, 60)


def of_hai():
    """Hyperactive increase: each kind of count, with both rules, and the limits."""
    names = ('smoothed', 'raw', 'increases')
    for mode in (SMOOTHED, RAW, INCREASES):
        for patched in (0, 1):
            for below in (0, 1):
                p = params(PLAIN, hai_count=mode, rule=patched, hai_below_t_low=below)
                s = sequence('hai__%s%s%s' % (names[mode], '_patched' if patched else '',
                                              '_below' if below else ''), p)
                low, quarter = p['t_low_ns'], p['min_rtt_ns'] // 4
                s.ack(460000)
                # Gradients of exactly -1/4 and just beside; then RTTs below Tlow and up again.
                for _ in range(7):
                    s.ack(s.flow.prev - quarter)
                s.ack(s.flow.prev - quarter + 1).ack(s.flow.prev - quarter)
                s.ack(s.flow.prev)
                for _ in range(6):
                    s.ack(s.flow.prev - quarter - 1)
                s.ack(low - 1).ack(low - 2, times=6).ack(low).ack(low + 100)
                for _ in range(3):
                    s.ack(s.flow.prev + 2 * quarter)
                s.ack(600000).ack(590000).ack(580000)
                for _ in range(7):
                    s.ack(s.flow.prev - 2 * quarter)
                s.ack(s.flow.prev - quarter, rise=False)
                for _ in range(6):
                    s.ack(s.flow.prev - quarter - 2)
    for threshold, factor in ((0, 255), (1, 2), (255, 255)):
        for mode in (SMOOTHED, RAW, INCREASES):
            p = params(PLAIN, hai_count=mode, hai_threshold=threshold, hai_factor=factor,
                       hai_below_t_low=1, first_rate_kbps=100000)
            s = sequence('hai__threshold_%d_%s' % (threshold, names[mode]), p).ack(450000)
            s.acks(440000, 430000).ack(p['t_low_ns'] - 1, times=250)
            for _ in range(3):
                s.ack(p['t_low_ns'] - 2)
            s.ack(p['t_low_ns'] - 3, times=300)         # the counter stays at 255
            s.acks(450000, 449000, 448000, 447000)


def of_rules():
    """Each parameter that switches or limits something, one at a time."""
    for scale in (0, 1):
        for patched in (0, 1):
            p = params(PLAIN, scale_decrease=scale, rule=patched)
            s = sequence('scale_decrease__%d%s' % (scale, '_patched' if patched else ''), p)
            for gap in (16384, 8192, 4096, 1, 0, 16383, 16385):
                s.ack(90000).ack(94096, gap=gap).ack(102288, gap=gap)
    s = sequence('gradient__share_saturates', params(PLAIN, beta_ppm=1000000))
    for rise in (16384, 16385, 32768, 100000, 250000):
        for gap in (16384, 4096, 1024):
            s.event(INIT).ack(60000).ack(60000 + rise, gap=gap)
    p = params(PLAIN, scale_step=1)
    for name, q in (('', p), ('_odd_segment', params(p, segment_bytes=14480)),
                    ('_hai_patched', params(p, rule=EOD, hai_below_t_low=1))):
        s = sequence('scale_step__bytes' + name, q)
        for size in (1, 100, 8192, 16383, 16384, 16385, 16384 * 16 - 1, 16384 * 16,
                     16384 * 16 + 1, 1 << 20, 2**32 - 1):
            s.ack(49999, size=size).maybe(60000, size=size).maybe(50000, size=size)
            s.ack(49999, size=size, gap=5000)
    p = params(PLAIN, once_per_rtt=1)
    s = sequence('once_per_rtt__skips', p).ack(100000)
    s.ack(200000, gap=99999).ack(300000, gap=1).ack(60000, gap=299999)
    s.ack(500001, gap=1).ack(16384, gap=500000).ack(40000, gap=1)
    s.ack(1, gap=16384).ack(40000, gap=16383).ack(40000, gap=1).event(RESEED)
    s.ack(70000, gap=1).ack(70000, gap=69999).ack(70000, gap=-5)

    patched = params(PLAIN, rule=EOD)
    s = sequence('patched__w_borders', patched)
    quarter = 4096
    for bend in (-quarter - 1, -quarter, -quarter + 1, -1, 0, 1, quarter - 1, quarter, quarter + 1):
        # Below, at and above RTTref.
        for rtt in (60000, 65536, 65537, 400000):
            s.event(INIT).ack(rtt - bend).maybe(rtt)
    s = sequence('patched__error_saturates',
                 params(patched, rtt_ref_ns=1000, t_high_ns=2 * S, beta_ppm=1000))
    s.acks(60000, 250000, 257000, 600000, 300 * MS, 200 * MS, 1900 * MS)
    s = sequence('patched__error_below_ref',
                 params(patched, rtt_ref_ns=1 * S, t_high_ns=2 * S, beta_ppm=1000000,
                        scale_decrease=0))
    s.acks(50000, 60000, 70000, 500 * MS, 900 * MS).ack(910 * MS, rise=False)
    s.acks(999 * MS, 1 * S, 1900 * MS)
    s = sequence('patched__product_saturates',
                 params(patched, rtt_ref_ns=10000, t_high_ns=2 * S, beta_ppm=1000000))
    s.acks(50000, 60000).ack(70000, gap=4096).ack(90000, gap=1024).ack(500000, gap=2048)

    # The average of differences never gets closer to zero than its rounding allows: to 4 ns from
    # either side here. If it were always rounded down, it would end 8 ns too low. No time passes
    # until the average is at rest, so that the rate does not change meanwhile.
    q = params(patched, min_rtt_ns=1000, t_low_ns=0, rtt_ref_ns=100000, alpha_ppm=500,
               beta_ppm=10000, delta_kbps=1)
    for name, rtt in (('fall', 300000), ('rise', 100000)):
        s = sequence('patched__settled_after_' + name, q).ack(rtt)
        s.ack(200000, gap=0, times=20000).event(SYNC).ack(200000)

    for beta in (0, 1000000):
        s = sequence('beta__%d' % beta,
                     params(PLAIN, beta_ppm=beta, beta_high_ppm=beta, loss_beta_ppm=beta // 2))
        s.acks(60000, 61000, 66000, 500001, 600000, 900000, 5000000).event(LOSE)
        s.acks(400000, 399000, 407192)

    sharp = params(PLAIN, t_low_ns=100000, t_high_ns=100000)
    s = sequence('thresholds__equal', sharp)        # section 4.4
    s.acks(99999, 100000, 100001, 99999, 120000, 100000, 80000)
    s = sequence('thresholds__no_low', params(PLAIN, t_low_ns=0))
    s.acks(16384, 16385, 20000, 16384, 1, 30000)
    s = sequence('thresholds__below_min_rtt', params(PLAIN, t_low_ns=16384, t_high_ns=20000))
    s.acks(1, 16383, 16384, 16385, 19999, 20000, 20001, 1000000, 1)
    s = sequence('thresholds__high_below_min_rtt',
                 params(PLAIN, t_low_ns=0, t_high_ns=1000, min_rate_kbps=1))
    s.acks(1, 1000, 1001, 16384, 16385, 999)


def of_fast():
    """FAST*: the equation, its two bounds, and the rate in equilibrium."""
    s = sequence('fast__equation', FAST)
    for rtt in (20000, 20001, 30000, 40000, 100000, 1 * MS, 100000, 40000, 21000, 1, 20000):
        s.ack(rtt)
    s = sequence('fast__once_per_rtt', FAST).ack(100000)
    s.ack(100000, gap=99999).ack(300000, gap=1).ack(20000, gap=1).ack(20000, gap=299999)
    # In equilibrium the rate is alpha / (1 - baseRTT / RTT). With a tenth of the RTT in the queue:
    # 500 Mb/s.
    s = sequence('fast__settles', FAST)
    s.ack(22222, times=400).event(LOSE).ack(22222, times=400)
    s = sequence('fast__at_most_twice', params(FAST, min_rate_kbps=1000, first_rate_kbps=1000,
                                               alpha_ppm=1000000))
    s.acks(20000, 20000, 20000, 40000, 20000, 20000, 20000, 20000, 20000, 20000)
    for gamma in (10, 100000, 1000000):
        s = sequence('fast__gamma_%d' % gamma, params(FAST, alpha_ppm=gamma))
        s.acks(20000, 30000, 39999, 40001, 200000, 4294967295, 20000).ack(50000, times=20)
    s = sequence('fast__app_limited', FAST).ack(20000, rise=False).ack(20000)
    s.ack(400000, rise=False).ack(20000, rise=False).event(RESTART).ack(25000)
    # Thresholds, scaled steps and HAI have no effect on FAST*.
    s = sequence('fast__knows_no_thresholds',
                 params(FAST, t_low_ns=900000, t_high_ns=1 * MS, rtt_ref_ns=1 * S, beta_ppm=0,
                        beta_high_ppm=0, hai_below_t_low=1, scale_step=1))
    s.ack(100000, times=9).ack(2 * MS).ack(950000).ack(300000, size=1)
    s = sequence('fast__800g', params(FAST, max_rate_kbps=800000000, first_rate_kbps=800000000,
                                      delta_kbps=100000000))
    s.acks(20000, 21000, 40000, 4294967295, 20000, 20000, 20000, 20000, 20000)
    s = sequence('fast__1k', params(FAST, min_rate_kbps=1, first_rate_kbps=1, delta_kbps=1))
    s.acks(20000, 21000, 20000).ack(30000, times=50).ack(20000, times=50).ack(100 * MS, times=9)
    for seed in (1, 2):
        walk(sequence('fast__walk_%d' % seed, FAST), 300 + seed, 60)


def of_swift():
    """Swift: the increase and the decrease by window and RTT, and how often the window falls."""
    p = SWIFT_20US
    # Windows of 0.1 packets to 1000. The target is from 150 us to 25 us.
    for packets in (0.09, 0.1, 0.11, 0.5, 0.99, 1.01, 2, 9, 50, 99, 101, 1000):
        q = params(p, first_rate_kbps=int(packets * 1448 * 8 / 0.02), max_rate_kbps=800000000)
        s = sequence('swift__%d_packets' % (packets * 100), q)
        for rtt in (20000, 24999, 25001, 40 * US, 60 * US, 100 * US, 149 * US, 151 * US, 1 * MS):
            for size in (1448, 1, 28960):
                s.event(INIT).maybe(rtt, size=size)
        s.event(INIT).acks(*[20 * US] * 20, size=1448)
        s.acks(*[150 * US] * 9, gap=200 * US).acks(*[21 * US] * 9, size=1448)
    # At most one decrease per RTT, of at most a half, for long RTTs and for losses.
    s = sequence('swift__once_per_rtt', p)
    s.ack(100 * US).ack(100 * US, gap=99999).ack(100 * US, gap=1).ack(100 * US, gap=50 * US)
    s.ack(49999, gap=1).ack(50001, gap=1).event(LOSE).ack(100 * US, gap=99999).ack(100 * US, gap=1)
    s.event(RESEED).ack(100 * US, gap=1).ack(300 * US, gap=-5).ack(300 * US, gap=1)
    s.event(RESTART).ack(300 * US, gap=1)
    s = sequence('swift__rate_follows_the_rtt', p).ack(100 * US)
    for rtt in (150, 70, 80, 99, 200, 45):
        s.ack(rtt * US, gap=1)
    s = sequence('swift__app_limited', p).ack(20 * US, rise=False).ack(22 * US, rise=False)
    s.ack(500 * US, rise=False).ack(20 * US, rise=False).ack(20 * US)
    for ppm in (0, 1000000):
        q = params(p, beta_ppm=ppm, loss_beta_ppm=ppm // 2)
        sequence('swift__beta_%d' % ppm, q).acks(60 * US, 40 * US, 900 * US, 20 * US).event(LOSE)
    sequence('swift__falls_to_the_minimum', p).acks(*[9 * MS] * 20, gap=10 * MS).ack(20 * US)
    q = params(p, max_rate_kbps=800000000)
    sequence('swift__rises_to_the_maximum', q).acks(*[20 * US] * 4, size=2**32 - 1).ack(1 * S)
    for name, base in (('1us', 1 * US), ('1s', 1 * S)):
        q = params(p, min_rtt_ns=base, rtt_ref_ns=base, max_rate_kbps=800000000)
        s = sequence('swift__' + name, q)
        for rtt in (1, 1.5, 4, 0.5, 1):
            s.maybe(int(base * rtt)).maybe(int(base * rtt), gap=base)
    for seed in (1, 2, 3, 4):
        walk(sequence('swift__walk_%d' % seed, p), 400 + seed, 60)


def of_powertcp():
    """theta-PowerTCP: gradient, smoothing, and one update per RTT."""
    p = POWERTCP_16US
    tau = p['min_rtt_ns']
    s = sequence('powertcp__equation', p)
    for rtt in (tau, 20 * US, 30 * US, 60 * US, 60 * US, 40 * US, 30 * US, 29 * US, 20 * US, 1):
        s.ack(rtt, gap=2 * rtt + tau)
    # An RTT that falls by more than the time that passes counts as falling by half of that time.
    s = sequence('powertcp__steep_falls', p).ack(100 * US)
    for gap in (100 * US, 20 * US, 10 * US, tau - 1, 1, 0):
        s.ack(100 * US, gap=200 * US).maybe(40 * US, gap=gap).maybe(40 * US, gap=200 * US)
    s = sequence('powertcp__smoothing', p).ack(tau)
    for gap in (tau // 16, tau // 4, tau // 2, tau - 1, tau, tau + 1, 3, 0):
        for rtt in (20 * US, 25 * US, 24 * US, 26 * US):
            s.maybe(rtt, gap=gap)
    s = sequence('powertcp__once_per_rtt', p).ack(40 * US)
    s.ack(40 * US, gap=39999).ack(40 * US, gap=1).ack(50 * US, gap=40 * US).ack(50 * US, gap=9999)
    s.ack(50 * US, gap=1).event(LOSE).ack(60 * US, gap=1).event(RESEED).ack(60 * US, gap=1)
    s.ack(70 * US, gap=-5).event(RESTART).ack(40 * US, gap=1).event(INIT).ack(40 * US, gap=1)
    # In equilibrium, the rate is beta / (1 - tau / RTT): twice beta, 2 Gb/s.
    s = sequence('powertcp__settles', p).acks(*[2 * tau] * 60, gap=2 * tau)
    s.event(LOSE).acks(*[2 * tau] * 60, gap=2 * tau)
    s = sequence('powertcp__app_limited', p).ack(80 * US, rise=False)
    s.ack(60 * US, gap=80 * US, rise=False).ack(tau, gap=80 * US, rise=False).ack(tau, gap=tau)
    for gamma in (10, 500000, 1000000):
        s = sequence('powertcp__gamma_%d' % gamma, params(p, alpha_ppm=gamma))
        s.acks(*[40 * US] * 5, gap=40 * US).acks(*[tau] * 5)
    s = sequence('powertcp__power_saturates', params(p, min_rtt_ns=1000, min_rate_kbps=1))
    s.ack(255 * US).ack(258 * US, gap=1 * MS).ack(100 * MS, gap=1 * S).ack(1000, gap=1 * S)
    s.ack(4 * S, gap=1).ack(4 * S, gap=0).ack(1000, gap=5 * S).ack(1000, gap=4000)
    q = params(p, max_rate_kbps=800000000, first_rate_kbps=800000000, delta_kbps=100000000)
    sequence('powertcp__800g', q).acks(40 * US, 30 * US, tau, tau, 4294967295, gap=50 * US)
    q = params(p, min_rate_kbps=1, first_rate_kbps=1, delta_kbps=1)
    sequence('powertcp__1k', q).acks(*[tau] * 9).acks(90 * US, 1 * MS, 30 * MS, gap=100 * MS)
    for seed in (1, 2, 3, 4):
        walk(sequence('powertcp__walk_%d' % seed, p), 500 + seed, 60)


def of_ranges():
    """The least and the greatest values of rates, times and steps."""
    s = sequence('range__800g', params(PLAIN, max_rate_kbps=800000000, first_rate_kbps=800000000,
                                       delta_kbps=100000000, scale_step=1))
    s.acks(60000, 61000, 500001, 4294967295, 49999)
    s.ack(49999, size=2**32 - 1).acks(70000, 66000, 100000).event(LOSE)
    s.ack(45000, times=20)
    s = sequence('range__800g_patched', params(PATCHED, max_rate_kbps=800000000,
                                               first_rate_kbps=800000000))
    s.acks(60000, 61000, 400000, 500000, 500001, 50000, 49999, 51000, 49000)
    s = sequence('range__1k', params(PLAIN, min_rate_kbps=1, max_rate_kbps=1, delta_kbps=1))
    s.acks(1, 60000, 61000, 600000, 49999).event(LOSE).ack(49999).event(RESTART)
    s = sequence('range__1k_to_800g', params(PLAIN, min_rate_kbps=1, max_rate_kbps=800000000,
                                             first_rate_kbps=1, delta_kbps=100000000,
                                             hai_count=INCREASES, hai_factor=255,
                                             hai_below_t_low=1))
    s.ack(40000, times=4).ack(40000, times=3).ack(4294967295, times=30).ack(40000)
    s = sequence('range__first_outside', params(PLAIN, min_rate_kbps=5000, max_rate_kbps=6000,
                                                first_rate_kbps=1))
    s.ack(60000).event(RESTART).ack(60000, times=2).event(RESTART)
    s = sequence('range__first_above_max', params(PLAIN, max_rate_kbps=6000, min_rate_kbps=5000,
                                                  first_rate_kbps=800000000))
    s.ack(600000).event(RESTART).event(LOSE).event(RESTART)

    short = params(PLAIN, min_rtt_ns=1000, t_low_ns=1500, t_high_ns=10000, rtt_ref_ns=1500)
    s = sequence('range__1us', short)
    s.acks(1000, 1499, 1500, 1501, 1600, 2000, 1900, 10000, 10001, 1000000000, 1000)
    s = sequence('range__1us_patched', params(short, rule=EOD))
    s.acks(1000, 1499, 1500, 1600, 1900, 1850, 9000, 10000, 10001, 1200)
    long = params(PLAIN, min_rtt_ns=1 * S, t_low_ns=1 * S, t_high_ns=2 * S, rtt_ref_ns=1 * S)
    s = sequence('range__1s', long)
    s.acks(1, 999999999, 1 * S, 1000100000, 1500 * MS, 1400 * MS, 2 * S, 2000100000, 2**32 - 1)
    s.event(RESEED).ack(2000000001)
    s.ack(1 * S, gap=100 * MS).ack(1600 * MS, gap=1).ack(1550 * MS, gap=2 * S)
    s = sequence('range__1s_patched', params(long, rule=EOD))
    s.acks(1, 1 * S, 1100 * MS, 1500 * MS, 1400 * MS, 2 * S, 2000100000, 2**32 - 1)
    s.event(RESEED).ack(2000000001)

    # Steps of 125 bytes per second and of thousandths of it: the engine must not lose fractions.
    tiny = params(PLAIN, min_rate_kbps=1, first_rate_kbps=1, delta_kbps=1, scale_step=1)
    s = sequence('remainder__bytes', tiny)
    for size in (1, 1, 3, 131):
        s.ack(40000, size=size, times=500)
    s = sequence('remainder__time', params(tiny, scale_step=0)).ack(40000)
    for gap in (16, 1, 1, 3):
        s.ack(40000, gap=gap, times=500)
    s.ack(60000, gap=5, times=500)
    # Each completion is 1/32 of minRTT after the last one, with 1/11 of a segment.
    s = sequence('remainder__both', params(tiny, min_rtt_ns=1 << 20, t_low_ns=2 * MS,
                                           t_high_ns=5 * MS)).ack(40000)
    for size in (1448, 1448, 1448, 1):
        s.ack(40000, gap=1 << 15, size=size, times=500)
    s = sequence('remainder__fast_flow', params(tiny, first_rate_kbps=80, max_rate_kbps=800000000))
    s.ack(40000, gap=2048, size=1000, times=4000)
    s = sequence('remainder__patched', params(tiny, rule=EOD, rtt_ref_ns=1 * MS, beta_ppm=1))
    s.ack(70000).ack(70000, gap=1024, times=500)

    for name, p in PRESETS.items():
        q = params(p, min_rate_kbps=1, first_rate_kbps=1, max_rate_kbps=800000000)
        s = sequence('escape__' + name, q).ack(q['t_high_ns'] * 3, times=3)
        s.ack(q['t_low_ns'] - 1, times=10).ack(q['t_low_ns'] - 1, times=200)


def of_chance():
    """Random sequences with random parameters from their whole ranges."""
    for seed in range(1, 25):
        dice = Dice(1000 + seed)
        m = dice.scale(1000, 1 * S)
        high = min(2 * S, dice.scale(m, 40 * m))
        rate = sorted(dice.scale(1, 800000000) for _ in range(3))
        p = {
            'min_rtt_ns': m, 't_low_ns': min(1 * S, dice.between(0, high)), 't_high_ns': high,
            'rtt_ref_ns': min(1 * S, dice.scale(max(1000, m // 2), high)),
            'alpha_ppm': dice.between(5000, 1000000), 'beta_ppm': dice.scale(1000, 1000000),
            'beta_high_ppm': dice.between(0, 1000000), 'delta_kbps': dice.scale(1, 100000000),
            'segment_bytes': dice.between(512, 65536), 'hai_threshold': dice.between(0, 9),
            'hai_factor': dice.scale(1, 255), 'hai_count': dice.below(3),
            'hai_below_t_low': dice.below(2), 'rule': dice.below(2),
            'scale_decrease': dice.below(2), 'scale_step': dice.below(2),
            'once_per_rtt': int(dice.below(4) == 0), 'min_rate_kbps': rate[0],
            'max_rate_kbps': rate[2], 'first_rate_kbps': rate[1], 'link_rate_kbps': 0,
            'app_limited_percent': 0, 'loss_beta_ppm': dice.between(0, 500000), 'loss_free_ppm': 0,
        }
        walk(sequence('chance__%d' % seed, p), 2000 + seed, 40)


def build():
    """Make all sequences."""
    del SEQUENCES[:]
    for name, p in PRESETS.items():
        of_preset(name, p)
    of_hai()
    of_rules()
    of_fast()
    of_swift()
    of_powertcp()
    of_ranges()
    of_chance()
    return SEQUENCES


# ---- rate_vectors.h ----

HEADER = '''/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test vectors for the rate engine. Made by kunit/reference.py, which explains formulas and
 * tolerances; do not edit.
 *
 * %d sequences, %d rows. A row is an event. TIMELY_V_ACK stands for `repeat` completions: each
 * completes `bytes` with an RTT of rtt_ns, gap_ns after the last completion. The row ends with the
 * expected zone, HAI counter, tolerance and rate (Q16 bytes per second, correct within
 * tolerance_ppm).
 */
#ifndef _TIMELY_RATE_VECTORS_H
#define _TIMELY_RATE_VECTORS_H

#include <linux/types.h>

#include <timely/engine/rate.h>

#define TIMELY_VECTORS_START_NS	%dULL

enum timely_vector_op {
	TIMELY_V_ACK,
	TIMELY_V_SYNC,
	TIMELY_V_INIT,
	TIMELY_V_RESEED,
	TIMELY_V_LOSE,
	TIMELY_V_RESTART,
};

struct timely_vector {
	u8 op;
	s64 gap_ns;
	u32 rtt_ns;
	u32 bytes;
	u16 repeat;
	u8 may_rise;
	u8 zone;
	u8 hai;
	u8 tolerance_ppm;
	u64 rate_fp;
};

struct timely_sequence {
	const char *name;
	const struct timely_params *params;
	const struct timely_vector *vectors;
	u32 count;
};
'''


def c_params(name, p):
    """Lines of C that define parameters."""
    text = ' '.join('.%s = %d,' % item for item in p.items()).replace(' = ', '\0')
    lines = ['\t' + line.replace('\0', ' = ') for line in textwrap.wrap(text, 80)]
    return ['static const struct timely_params %s = {' % name] + lines + ['};', '']


def emit(sequences):
    """The text of rate_vectors.h."""
    names = {}
    lines = []
    table = []
    for s in sequences:
        key = tuple(s.p.items())
        if key not in names:
            names[key] = 'timely_vp_%d' % len(names)
            lines += c_params(names[key], s.p)
        lines.append('static const struct timely_vector timely_v_%s[] = {' % s.name)
        for op, gap, rtt, size, times, rise, zone, hai, rate, ppm in s.rows:
            lines.append('\t{ TIMELY_V_%s, %dLL, %dU, %dU, %d, %d, '
                         'TIMELY_ZONE_%s, %d, %d, %dULL },' %
                         (op, gap, rtt, size, times, rise, ZONES[zone], hai, ppm, rate))
        lines += ['};', '']
        table.append('\t{ "%s", &%s, timely_v_%s, %d },' %
                     (s.name, names[key], s.name, len(s.rows)))
    head = HEADER % (len(sequences), sum(len(s.rows) for s in sequences), START_NS)
    tail = ['static const struct timely_sequence timely_sequences[] = {'] + table
    tail += ['};', '', '#endif /* _TIMELY_RATE_VECTORS_H */', '']
    return head + '\n' + '\n'.join(lines + tail)


def main():
    parser = argparse.ArgumentParser(description='Write rate_vectors.h.')
    parser.add_argument('--check', action='store_true',
                        help='write nothing; exit status 1 if the file is not up to date')
    parser.add_argument('--budget', action='store_true',
                        help='write nothing; print the largest tolerance of each sequence')
    parser.add_argument('-o', '--output', default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), 'rate_vectors.h'))
    args = parser.parse_args()

    sequences = build()
    if args.budget:
        for s in sequences:
            print('%-32s %4d rows, worst %3d ppm' %
                  (s.name, len(s.rows), max(row[-1] for row in s.rows)))
        return 0
    text = emit(sequences)
    if args.check:
        with open(args.output, encoding='ascii') as file:
            same = file.read() == text
        print('%s 1 - rate_vectors.h is up to date' % ('ok' if same else 'not ok'))
        if not same:
            print('# run kunit/reference.py to write rate_vectors.h again')
        return 0 if same else 1
    with open(args.output, 'w', encoding='ascii') as file:
        file.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
