# SPDX-License-Identifier: GPL-2.0
"""The window rules in double precision: the reference for net/timely/engine/swift.c and
powertcp.c. reference.py imports this file, and explains tolerances. The functions are written from
the papers, not from the engine.

Sources of the formulas:
  [SW]   Swift, SIGCOMM'20, Algorithm 1 and section 3.5. Values that the paper does not give are
         those of htsim, a public simulator
  [PT]   PowerTCP, NSDI'22, Algorithm 2 (theta-PowerTCP), and its parameters
  [PTS]  the authors' simulator of PowerTCP: the term with the gradient is at least 1/2

The engine stores a rate. Swift's window is the rate times the last RTT, theta-PowerTCP's the rate
times the base RTT. The engine computes 1 / sqrt(window) with a relative error of at most 10^-6,
and RTTs, windows, powers and their quotients with errors of at most 10^-7.
"""

import math

PACKET = 1448               # bytes
AI = 1                      # packets per RTT
FS_RANGE = 5                # base targets
FS_MIN, FS_MAX = 0.1, 100   # packets
ROOT_ERROR = 1e-6
ERROR = 1e-7
POWER_UNIT = 2.0 ** -24
POWER_MAX = 2.0 ** 8 - POWER_UNIT
TERM_MAX = 2.0 ** 16
LONGEST = 2**32 - 1         # ns; a longer time counts as this


class Undecided(Exception):
    """Rounding errors of the engine decide about the result of this completion."""


def init(flow):
    flow.last_rtt = flow.p['min_rtt_ns']
    forget(flow)


def forget(flow):
    """After reseed: whatever happened was long ago."""
    flow.changed = None         # ns, the last decrease [SW] or update [PT] of the window
    flow.power = 0.0
    flow.power_slack = 0.0


def lost(flow):
    """[SW]: a loss counts as a decrease, here since the last completion."""
    flow.changed = flow.updated


def is_due(flow, now, rtt):
    """Whether the last decrease or update was at least an RTT ago. If the clock runs backwards, the
    time is not known, and counts as long."""
    if now < flow.updated:
        flow.changed = None
    return flow.changed is None or now - flow.changed >= rtt


def target(p, cwnd):
    """[SW]: the target delay, ns. Its coefficient a is a parameter, rounded as in the engine."""
    base = p['rtt_ref_ns']
    a = math.floor(FS_RANGE * base * 0.326554)
    b = -a / math.sqrt(FS_MAX)
    exact = 1 / (1 / math.sqrt(FS_MIN) - 1 / math.sqrt(FS_MAX))
    assert abs(exact - 0.326554) < ROOT_ERROR
    return base + min(max(a / math.sqrt(max(cwnd, FS_MIN)) + b, 0), FS_RANGE * base), a


def swift(flow, now, rtt, size, rise, gains):
    """[SW]: the new rate and the largest error of the engine's."""
    beta, max_mdf = gains
    cwnd = flow.rate * flow.last_rtt / 1e9 / PACKET
    blur = flow.slack / flow.rate + ERROR + 2.0 ** -23 / (cwnd * PACKET)
    delay, a = target(flow.p, cwnd)
    vague = a / math.sqrt(max(cwnd, FS_MIN)) * (ROOT_ERROR + blur) + 0.001
    if abs(rtt - delay) <= vague:
        raise Undecided('is the RTT at the target?')
    due = is_due(flow, now, rtt)
    if rtt < delay:
        if rise:
            gain = AI * size / PACKET / max(cwnd, 1)
            blur = (blur * cwnd + gain * (blur + 3 * ROOT_ERROR)) / (cwnd + gain)
            cwnd += gain
    elif due:
        factor = max(1 - beta * (rtt - delay) / rtt, 1 - max_mdf)
        blur += (beta * vague / rtt + ERROR) / factor
        cwnd *= factor
        flow.changed = now
    flow.last_rtt = rtt
    rate = cwnd * PACKET * 1e9 / rtt
    return rate, rate * (blur + ERROR) + 2.0 ** -16


def smooth(flow, now, rtt):
    """[PT], [PTS]: update the smoothed power."""
    tau = flow.p['min_rtt_ns']
    dt = min((now - flow.updated) % 2**64, LONGEST) if flow.seeded else tau
    diff = rtt - flow.prev if flow.seeded else 0
    part = min(dt, tau)
    # The term with the gradient times the weight of the completion.
    term = max((diff + dt) / dt, 0.5) * part / tau if dt else max(diff, 0) / tau
    term = min(term, TERM_MAX)
    power = term * rtt / tau
    kept = 1 - part / tau
    flow.power_slack = (flow.power_slack + flow.power * ERROR) * kept + \
        power * 2 * ERROR + POWER_UNIT * (3 + rtt / tau)
    flow.power = min(flow.power * kept + power, POWER_MAX)


def powertcp(flow, now, rtt, rise, gamma):
    """[PT]: the new rate and the largest error of the engine's. cwnd_old is the present window: the
    completed packet was sent after the last update. All windows are divided by the base RTT."""
    smooth(flow, now, rtt)
    old, slack = flow.rate, flow.slack
    if not is_due(flow, now, rtt):
        return old, slack
    flow.changed = now
    power = max(flow.power, 0.5)
    beta = flow.p['delta_kbps'] * 125
    rate = gamma * (old / power + beta) + (1 - gamma) * old
    slack = slack * (gamma / power + 1 - gamma) + \
        gamma * old / power * (flow.power_slack / power + ERROR) + 2.0 ** -14
    if not rise:
        if abs(rate - old) <= slack:
            raise Undecided('does the rate rise?')
        if rate > old:
            return old, flow.slack
    return rate, slack
