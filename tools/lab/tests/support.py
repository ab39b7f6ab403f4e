# SPDX-License-Identifier: GPL-2.0
"""Shared by the tests: the path of the package, a small scenario, and a small raw result."""
import copy
import os
import sys

LAB = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, LAB)

# The package is known only from here on.
from timelylab.common import MS, Raw, Scenario   # noqa: E402

SCENARIO: Scenario = {
    "title": "two hosts and a server",
    "topology": {"hosts": 2, "servers": 1, "host_gbit": 10, "server_gbit": 10,
                 "buffer_bytes": 100_000, "delay_ns": 5_000, "mtu": 1500, "mark_bytes": 30_000,
                 "host_qdisc": "fq"},
    "run": {"warmup_ms": 10, "measure_ms": 20, "cc": ["timely", "cubic"], "seeds": [1, 2],
            "peer_seeds": [1], "start_ms": [1, 2]},
    "flows": [{"from": [1, 2], "to": 1, "count": 1}],
    "ping": {"from": 1, "to": 1, "every_us": 50, "size": 16},
    "sample": {"queue_us": 50, "flows_ms": 10},
}


def scenario() -> Scenario:
    """A copy of the small scenario, which a test may change."""
    return copy.deepcopy(SCENARIO)


def flow(host: int, rates_gbit: list[float]) -> Raw:
    """A connection that receives data at a rate in each interval of 10 ms."""
    received, samples = 0, [[0, 0, 0, 0, 0]]
    for i, rate in enumerate(rates_gbit):
        received += round(rate / 8 * 10 * MS)
        samples.append([received, round(rate * 1e9 / 8), 100 + i, 0, i])
    return {"from": f"h{host}", "port": 5000 + host, "stop_ns": 0, "samples": samples}


def raw_result() -> Raw:
    """A raw result of the small scenario: samples at 0, 10, 20 and 30 ms, two connections.

    In the measured window one connection gets 6 Gb/s and the other 2 Gb/s. The queue is empty in
    every second sample, and 12 500 bytes, which are 10 us of the port's time, in the others.
    """
    times = range(0, 30 * MS + 1, MS // 20)
    return {
        "cc": "timely", "seed": 1, "wall_s": 1.5, "end_ns": 30 * MS,
        "flow_times": [[i * 10 * MS] for i in range(4)],
        "flows": [flow(1, [1, 6, 6]), flow(2, [1, 2, 2])],
        "queues": [{"dev": "s1", "samples": [[t, 12_500 * (i % 2), 0, i // 100]
                                             for i, t in enumerate(times)]}],
        "pings": [{"samples": [[5 * MS, 99_000], [12 * MS, 20_000], [13 * MS, 30_000],
                               [9 * MS, 0], [29 * MS, 0]]}],
        "incasts": [],
    }
