# SPDX-License-Identifier: GPL-2.0
"""Series of a raw result: RTTs, queues, rates and requests, over time or as CDFs.

A sample of a connection is [bytes received, pacing rate, smoothed RTT in us, ..., retransmitted
segments at index 4]. A sample of a queue is [time, bytes, ..., dropped packets at index 3]. Times
are in ns from the start of the experiment.
"""
import statistics

from . import clos
from .common import MS, Lines, Points, Raw, Scenario, Table
from .samples import TAIL_SHARES, cdf_points
from .scenario import window_ns

CDF_SHARES = [i / 200 for i in range(1, 199)] + TAIL_SHARES


def bulk_flows(raw: Raw) -> list[Table]:
    """The connections of [[flows]], without those of [[trains]]."""
    return [flow for flow in raw["flows"] if "train" not in flow]


def window_rtts(raw: Raw, start: int, end: int) -> list[int]:
    """RTTs of the pings sent in a window, in ns. A lost ping has no RTT."""
    return [rtt for ping in raw["pings"] for sent, rtt in ping["samples"]
            if start <= sent < end and rtt]


def rtt_cdf(raw: Raw, scenario: Scenario) -> Points:
    """CDF of the pings' RTTs in the measured window, in us."""
    return cdf_points(window_rtts(raw, *window_ns(scenario)), CDF_SHARES, 1000)


def queue_points(raw: Raw, step: int = MS) -> Points:
    """The queue of the first port in KB over ms, as averages of step ns.

    With a step of 1 ms a plot has no more points than pixels.
    """
    bins: dict[int, list[int]] = {}
    for t, size, _, _ in raw["queues"][0]["samples"]:
        bins.setdefault(t // step, []).append(size)
    return [(i * step / MS, statistics.fmean(sizes) / 1000) for i, sizes in sorted(bins.items())]


def queue_delay_points(scenario: Scenario, raw: Raw, step: int = MS // 10) -> Points:
    """The queueing delay at the first port in us over ms, as averages of step ns."""
    name = raw["queues"][0]["dev"]
    gbit = next(port.gbit for port in clos.buffered_ports(scenario["topology"])
                if port.device == name)
    return [(t, size * 8 / gbit) for t, size in queue_points(raw, step)]


def request_cdf(raw: Raw) -> Points:
    """CDF of the requests' times in us. A request without an end is beyond the CDF's end."""
    took = sorted(took for incast in raw["incasts"] for _, took in incast["requests"])
    total = len(took) + sum(bool(incast["unfinished_since_ns"]) for incast in raw["incasts"])
    return [(t / 1000, (i + 1) / total) for i, t in enumerate(took)]


def flow_name(flow: Table) -> str:
    """The name of a connection in plots."""
    return f"{flow['from']} {flow['port']}"


def rate_lines(raw: Raw) -> Lines:
    """The goodput of each connection in Gb/s over ms."""
    times = [row[0] for row in raw["flow_times"]]
    return [(flow_name(flow),
             [(t1 / MS, (b[0] - a[0]) * 8 / (t1 - t0))
              for t0, t1, a, b in zip(times, times[1:], flow["samples"], flow["samples"][1:])])
            for flow in bulk_flows(raw)]


def info_lines(scenario: Scenario, raw: Raw, column: int, unit: float, flows: int = 4,
               span_ns: int = 100 * MS) -> Lines:
    """A column of TCP_INFO over ms, of some connections in the first part of the window.

    Four connections and 100 ms are as much as a reader can tell apart.
    """
    start, _ = window_ns(scenario)
    times = [row[0] for row in raw["flow_times"]]
    return [(flow_name(flow),
             [(t / MS, row[column] / unit) for t, row in zip(times, flow["samples"])
              if start <= t <= start + span_ns]) for flow in bulk_flows(raw)[::8][:flows]]
