# SPDX-License-Identifier: GPL-2.0
"""Messages of random sizes between all hosts at random times: the plan's lines and the figures.

Sizes are drawn from a table data/NAME.cdf. Arrivals are a Poisson process; with on_us and off_us
they are one only in the on-times of the sender. Sizes and times depend on the seed alone: with
another congestion control the same messages are sent at the same times.
"""
import math
import os
import random
from collections.abc import Container, Iterable

from .common import LAB, MS, Figures, Raw, Scenario, ScenarioError, Table
from .samples import spread
from .topology import link_headers, payload_bytes

# The keys of [workload], and their defaults.
DEFAULTS: Table = {
    "sizes": None,              # name of a table in data/
    "load": None,               # payload sent, as a share of the capacity of all hosts' links
    "pool": 4,                  # connections of each pair of hosts that are open at the start;
                                # 0: each message opens a connection, which then closes
    "start_ms": 1,
    "reply": False,             # the receiver sends as many bytes back: a remote procedure call
    "group": 1,                 # hosts per group: no messages within a group
    "on_us": 0,                 # mean length of the times in which a host gets messages to send;
                                # 0: always
    "off_us": 0,                # mean length of the times between these
    "late_us": 1000,            # a message that is sent later than so much late is an error
}
NEEDED = ("sizes", "load")
# Classes of messages by size, as in On-Ramp's paper; from more than so many bytes up to so many.
CLASSES: dict[str, tuple[float, float]] = {
    "small_us": (0, 10_000),
    "medium_us": (10_000, 1_000_000),
    "large_us": (1_000_000, math.inf),
    "all_us": (0, math.inf),
}
QUANTILES = {"p50": .5, "p90": .9, "p95": .95, "p99": .99}
FIRST_PORT = 10_000


def table_path(sizes: str) -> str:
    """The file with a distribution of sizes."""
    return os.path.join(LAB, "data", sizes + ".cdf")


def mean_size(sizes: str) -> float:
    """The mean of a distribution of sizes, in bytes."""
    with open(table_path(sizes), encoding="ascii") as file:
        points = [tuple(map(float, line.split())) for line in file]
    return sum((p1 - p0) / 100 * (s0 + s1) / 2 for (s0, p0), (s1, p1) in zip(points, points[1:]))


def settings(scenario: Scenario) -> Table:
    """The table [workload] of a cell's scenario, with defaults."""
    table: Table = DEFAULTS | scenario["workload"]
    if bool(table["on_us"]) != bool(table["off_us"]):
        raise ScenarioError("[workload] needs both on_us and off_us, or neither")
    return table


def every_ns(scenario: Scenario) -> float:
    """The mean time between two messages of the whole network while all hosts are on.

    The load is the mean over on-times and off-times.
    """
    load, topo = settings(scenario), scenario["topology"]
    frame = topo["mtu"] + link_headers(scenario)
    payload_per_ns = topo["host_gbit"] * payload_bytes(topo) / frame / 8
    size = mean_size(load["sizes"]) * (2 if load["reply"] else 1)
    on, off = (load["on_us"], load["off_us"]) if load["on_us"] else (1, 0)
    return float(size / (load["load"] * topo["hosts"] * payload_per_ns) * on / (on + off))


def plan_lines(scenario: Scenario, cc: str, seed: int) -> list[str]:
    """Lines of the plan, with the name of a congestion control that the kernel knows."""
    if "workload" not in scenario:
        return []
    load, topo, run = settings(scenario), scenario["topology"], scenario["run"]
    rng = random.Random(seed * 1002)
    on = f" on={int(load['on_us'] * 1000)} off={int(load['off_us'] * 1000)}" * bool(load["on_us"])
    return [f"workload cc={cc} cdf={table_path(load['sizes'])} every={round(every_ns(scenario))} "
            f"start={int(load['start_ms'] * MS)} "
            f"stop={(run['warmup_ms'] + run['measure_ms']) * MS} "
            f"seed={rng.randrange(1 << 16)} port={FIRST_PORT} pool={load['pool']} "
            f"reply={int(load['reply'])} group={load['group']}{on} "
            f"late={int(load['late_us'] * 1000)}"] + \
           [f"node ns=h{i} addr=10.0.{i}.1" for i in range(1, topo["hosts"] + 1)]


def figures(raw: Raw, start: int, end: int,
            senders: Container[int] = range(1, 1000)) -> Figures:
    """Completion times and rate of the messages that those hosts got to send in the window.

    A message that is under way at the end of the run counts with the time until the end, which
    is the least that the message takes.
    """
    out: Figures = {}
    for work in raw.get("workloads", []):
        rows = [(size, took or raw["end_ns"] - at, took)
                for at, size, took, host, _ in work["messages"]
                if start <= at < end and host in senders]
        out |= class_figures((size, age) for size, age, _ in rows)
        out["messages_unfinished"] = sum(not took for _, _, took in rows)
        done = sum(size for at, size, took, host, _ in work["messages"]
                   if took and start <= at + took < end and host in senders)
        out["workload_gbit"] = done * 8 / (end - start)
        out["workload_retrans"] = work["retrans"]
        out["connections"] = work["connections"]
    return out


def class_figures(rows: Iterable[tuple[int, float]]) -> Figures:
    """Completion times in us by class, from sizes and times in ns."""
    rows = list(rows)
    return {name: spread([took for size, took in rows if low < size <= high], 1000, QUANTILES)
            for name, (low, high) in CLASSES.items()}
