# SPDX-License-Identifier: GPL-2.0
"""Messages of random sizes between all hosts, at random times: the plan's lines and the figures.

Sizes come from a table data/NAME.cdf, arrivals are Poisson's, and both depend on the seed
alone: with another congestion control the same messages are sent at the same times.
"""
import math
import os
import random
import statistics

HERE = os.path.dirname(os.path.realpath(__file__))
MS = 1_000_000
# What [workload] may say, and what it is otherwise.
DEFAULTS = {
    "sizes": None,              # name of a table in data/
    "load": None,               # payload sent, of what all hosts' links carry
    "pool": 4,                  # connections of each pair that are open at the start
    "start_ms": 1,
    "reply": False,             # as much comes back, and counts: a remote procedure call
    "group": 1,                 # of so many hosts: no messages within one
}
NEEDED = ("sizes", "load")
# Flow completion times by size, as On-Ramp's paper has them.
CLASSES = {
    "small_us": (0, 10_000),
    "medium_us": (10_000, 1_000_000),
    "large_us": (1_000_000, math.inf),
    "all_us": (0, math.inf),
}
FIRST_PORT = 10_000


def table(sizes):
    return os.path.join(HERE, "data", sizes + ".cdf")


def mean_size(sizes):
    with open(table(sizes), encoding="ascii") as file:
        points = [tuple(map(float, line.split())) for line in file]
    return sum((p1 - p0) / 100 * (s0 + s1) / 2 for (s0, p0), (s1, p1) in zip(points, points[1:]))


def plan_lines(scenario, cc, seed):
    if "workload" not in scenario:
        return []
    load, topo, run = DEFAULTS | scenario["workload"], scenario["topology"], scenario["run"]
    carried = topo["host_gbit"] * (topo["mtu"] - 52) / (topo["mtu"] + 14) / 8      # bytes per ns
    size = mean_size(load["sizes"]) * (2 if load["reply"] else 1)
    every = size / (load["load"] * topo["hosts"] * carried)
    rng = random.Random(seed * 1002)
    return [f"workload cc={cc} cdf={table(load['sizes'])} every={round(every)} "
            f"start={int(load['start_ms'] * MS)} "
            f"stop={(run['warmup_ms'] + run['measure_ms']) * MS} "
            f"seed={rng.randrange(1 << 16)} port={FIRST_PORT} pool={load['pool']} "
            f"reply={int(load['reply'])} group={load['group']}"] + \
           [f"node ns=h{i} addr=10.0.{i}.1" for i in range(1, topo["hosts"] + 1)]


def spread(values):
    ordered = sorted(values)
    out = {"count": len(ordered)}
    if ordered:
        out["avg"] = statistics.fmean(ordered) / 1000
        for name, q in (("p50", .5), ("p90", .9), ("p95", .95), ("p99", .99)):
            out[name] = ordered[max(0, math.ceil(q * len(ordered)) - 1)] / 1000
    return out


def figures(raw, start, end, senders=range(1, 1000)):
    """Of those hosts' messages that arrived in the window. One that is under way at the end
    counts with what it took until then: the least that it will have taken."""
    out = {}
    for work in raw.get("workloads", []):
        rows = [(size, took or raw["end_ns"] - at, took)
                for at, size, took, host, _ in work["messages"]
                if start <= at < end and host in senders]
        for name, (low, high) in CLASSES.items():
            out[name] = spread([age for size, age, _ in rows if low < size <= high])
        out["messages_unfinished"] = sum(not took for _, _, took in rows)
        done = sum(size for at, size, took, host, _ in work["messages"]
                   if took and start <= at + took < end and host in senders)
        out["workload_gbit"] = done * 8 / (end - start)
        out["workload_retrans"] = work["retrans"]
        out["connections"] = work["connections"]
    return out
