# SPDX-License-Identifier: GPL-2.0
"""The figures of a cell, made from the raw result over the measured window."""
import statistics
from collections.abc import Sequence
from typing import Any

from . import clockd, clos, faults, ndp, onramp, slowdown, timestamp_figures, workload
from .cell import clockd_of, scenario_of, variant
from .common import MS, Figures, LabError, Raw, Scenario, Table
from .samples import quantile, spread
from .scenario import connections, host_range, window_ns
from .series import bulk_flows, flow_name, queue_delay_points, window_rtts
from .topology import ends, is_receiver, link_headers, payload_bytes

# Completion times whose gain is a figure, too: of "request_us.p99" as "gain.request_us_p99".
GAINS = [f"request_us.{part}" for part in ("avg", "p50", "p90", "p95", "p99")] + \
        [f"{name}.{part}" for name in workload.CLASSES for part in ("avg", "p50", "p95", "p99")]
# Messages and pings sent within these times before the end of the window do not count as lost,
# because they may still be under way at the end of the run.
LATE_MESSAGES_NS, LATE_PINGS_NS = 100 * MS, 20 * MS


def figures(scenario: Scenario, raw: Raw) -> Figures:
    """All figures of a cell, from the scenario of the run."""
    daemons = clockd_of(scenario, raw["cc"])
    scenario = scenario_of(scenario, raw["cc"])
    start, end = window_ns(scenario)
    out: Figures = {"cc": raw["cc"], "seed": raw["seed"], "wall_s": raw["wall_s"]}
    if daemons:
        out["clockd"] = clockd.figures(raw, daemons, start, end)
    if bulk_flows(raw):
        out |= flow_figures(scenario, raw, start, end)
    out |= train_figures(scenario, raw, start, end)
    out |= queue_figures(scenario, raw, start, end)
    out |= ping_figures(raw, start, end)
    if found := timestamp_figures.figures(scenario, raw, start, end):
        out["timestamps"] = found
    if raw["incasts"]:
        out |= request_figures(raw["incasts"])
        out["request_slowdown"] = slowdown.request_figures(scenario, raw["incasts"])
    out |= workload_figures(scenario, raw, start, end)
    out |= group_figures(scenario, raw, start, end)
    if "settle" in scenario:
        out["settle_ms"] = settle_ms(scenario, raw)
    if "reach" in scenario:
        out["reach_ms"] = reach_ms(scenario, raw)
    if counted := onramp.figures(raw):
        out["onramp"] = counted
    if trimmed := ndp.figures(raw):
        out["trim"] = trimmed
    return out


def edges(times: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Indices of the samples that open and close a window."""
    first = next((i for i, t in enumerate(times) if t >= start), None)
    last = max((i for i, t in enumerate(times) if t <= end + MS), default=None)
    if first is None or last is None or first >= last:
        raise LabError("the result has no samples in the measured window")
    return first, last


def carries_gbit(scenario: Scenario) -> float:
    """Payload that the receivers' links can carry, in Gb/s."""
    topo = scenario["topology"]
    frame = topo["mtu"] + link_headers(scenario)
    rates = sum(end.gbit for end in ends(topo) if is_receiver(topo, end.name))
    return float(rates * payload_bytes(topo) / frame)


# --- connections --------------------------------------------------------------

def flow_figures(scenario: Scenario, raw: Raw, start: int, end: int) -> Figures:
    """Goodput, fairness, smoothness and retransmissions of the connections of [[flows]]."""
    times = [row[0] for row in raw["flow_times"]]
    first, last = edges(times, start, end)
    span, flows = times[last] - times[first], bulk_flows(raw)
    got = [flow["samples"][last][0] - flow["samples"][first][0] for flow in flows]
    out = share_figures(got, span) | smoothness(flows, times, first, last)
    out |= {"share": out["goodput_gbit"] / carries_gbit(scenario),
            "retrans": sum(flow["samples"][last][4] - flow["samples"][first][4]
                           for flow in flows),
            "retrans_before": sum(flow["samples"][first][4] for flow in flows),
            "srtt_us": srtt_figures(flows, first, last)}
    names = group_names(scenario, "flows")
    for name in dict.fromkeys(names):
        mine = [i for i, other in enumerate(names) if other == name]
        out.setdefault("groups", {})[name] = share_figures([got[i] for i in mine], span) | {
            "srtt_us": srtt_figures([flows[i] for i in mine], first, last)}
    rates = [sum(flow["samples"][i + 1][0] - flow["samples"][i][0] for flow in flows) /
             (times[i + 1] - times[i]) for i in range(len(times) - 1)]
    recovered = faults.recovery_ms(scenario, times, rates)
    return out | ({} if recovered is None else {"recovery_ms": recovered})


def share_figures(got: Sequence[int], span: int) -> Figures:
    """Goodput and fairness of connections; got: bytes that each received within span ns."""
    squares = sum(x * x for x in got)
    return {"goodput_gbit": sum(got) * 8 / span,
            "jain": sum(got) ** 2 / (len(got) * squares) if squares else None,
            "flow_gbit_min": min(got) * 8 / span, "flow_gbit_max": max(got) * 8 / span}


def flow_goodputs(raw: Raw, start: int, end: int) -> list[tuple[str, float]]:
    """The name of each connection of [[flows]], and its goodput in the window in Gb/s."""
    times = [row[0] for row in raw["flow_times"]]
    first, last = edges(times, start, end)
    return [(flow_name(flow), (flow["samples"][last][0] - flow["samples"][first][0]) * 8 /
             (times[last] - times[first])) for flow in bulk_flows(raw)]


def srtt_figures(flows: Sequence[Table], first: int, last: int) -> dict[str, float]:
    """TCP's smoothed RTT in us, over all samples from first to last."""
    return spread([row[2] for flow in flows for row in flow["samples"][first:last + 1] if row[2]],
                  1)


def variation(rates: Sequence[float]) -> float | None:
    """Standard deviation over mean."""
    mean = statistics.fmean(rates)
    return statistics.pstdev(rates) / mean if mean else None


def smoothness(flows: Sequence[Table], times: Sequence[int], first: int, last: int) -> Figures:
    """Variation of the median connection's pacing rate and goodput, over mean."""
    paced = [variation([row[1] for row in flow["samples"][first:last]]) for flow in flows]
    got = [variation([(b[0] - a[0]) / (t1 - t0) for a, b, t0, t1 in
                      zip(flow["samples"][first:last], flow["samples"][first + 1:last + 1],
                          times[first:last], times[first + 1:last + 1])]) for flow in flows]
    return {name: statistics.median(values) for name, found in
            (("pacing_cv", paced), ("rate_cv", got))
            if (values := [value for value in found if value is not None])}


def group_names(scenario: Scenario, section: str) -> list[str | None]:
    """The group of each connection of a section; empty if there is no group at all."""
    names = [table.get("group") for table, _ in connections(scenario, section)]
    return names if any(names) else []


# --- messages, requests, pings ------------------------------------------------

def train_figures(scenario: Scenario, raw: Raw, start: int, end: int) -> Figures:
    """Completion times of the messages of [[trains]] that were sent in the window.

    A message that never arrived counts with its age at the end of the run.
    """
    def took(trains: Sequence[Table]) -> dict[str, float]:
        return spread([age or raw["end_ns"] - sent for train in trains
                       for sent, age in train["train"] if start <= sent < end], 1000)

    trains = [flow for flow in raw["flows"] if "train" in flow]
    if not trains:
        return {}
    out: Figures = {
        "message_us": took(trains),
        "messages_lost": sum(not age for train in trains for sent, age in train["train"]
                             if sent < end - LATE_MESSAGES_NS),
        "messages_retrans": sum(train["samples"][-1][4] for train in trains)}
    names = group_names(scenario, "trains")
    for name in dict.fromkeys(names):
        out[f"message_{name}_us"] = took([train for train, other in zip(trains, names)
                                          if other == name])
    return out


def request_figures(incasts: Sequence[Table]) -> Figures:
    """Completion times of the requests of [incast]."""
    return {"request_us": spread([took for incast in incasts for _, took in incast["requests"]],
                                 1000),
            "requests_skipped": sum(incast["skipped"] for incast in incasts),
            "request_unfinished": sum(bool(incast["unfinished_since_ns"]) for incast in incasts)}


def ping_figures(raw: Raw, start: int, end: int) -> Figures:
    """RTTs of the pings sent in the window, and how many pings were lost.

    Pings of the last 20 ms may still be under way, so that they are not lost.
    """
    return {"rtt_us": spread(window_rtts(raw, start, end), 1000),
            "pings_lost": sum(1 for ping in raw["pings"] for sent, rtt in ping["samples"]
                              if start <= sent < end - LATE_PINGS_NS and not rtt)}


def workload_figures(scenario: Scenario, raw: Raw, start: int, end: int) -> Figures:
    """Figures of [workload], with slowdowns.

    accepted: payload that arrived, as a share of the links' capacity.
    """
    out = workload.figures(raw, start, end)
    if "workload_gbit" in out:
        directions = 2 if scenario["workload"].get("reply") else 1
        out["accepted"] = directions * out["workload_gbit"] / carries_gbit(scenario)
    return out | slowdown.figures(scenario, raw)


def group_figures(scenario: Scenario, raw: Raw, start: int, end: int) -> Figures:
    """Requests and messages of each group of hosts in [incast]."""
    out = {}
    for i, group in enumerate(scenario.get("incast", {}).get("groups", []), 1):
        names = [f"h{host}" for host in host_range(group)]
        mine = [incast for incast in raw["incasts"] if incast["to"] in names]
        out[f"group{i}"] = request_figures(mine) | \
            workload.figures(raw, start, end, host_range(group))
    return out


# --- queues -------------------------------------------------------------------

def queue_figures(scenario: Scenario, raw: Raw, start: int, end: int) -> Figures:
    """Drops and queues of the ports. queue_empty: share of samples without a queue."""
    out: Figures = {"drops": 0, "drops_before": 0, "drops_after_100ms": 0, "queue_bytes_avg": 0,
                    "queue_bytes_max": 0}
    gbit = {port.device: port.gbit for port in clos.buffered_ports(scenario["topology"])}
    delays: list[float] = []
    for queue in raw["queues"]:
        rows = queue["samples"]
        times = [row[0] for row in rows]
        first, last = edges(times, start, end)
        started, _ = edges(times, min(100 * MS, start), end)
        sizes = [row[1] for row in rows[first:last + 1]]
        out["drops"] += rows[last][3] - rows[first][3]
        out["drops_before"] += rows[first][3]
        out["drops_after_100ms"] += rows[last][3] - rows[started][3]
        out["queue_bytes_avg"] = max(out["queue_bytes_avg"], statistics.fmean(sizes))
        out["queue_bytes_max"] = max(out["queue_bytes_max"], max(sizes))
        delays += [size * 8 / gbit[queue["dev"]] for size in sizes]
    out["queue_us"] = spread(delays, 1000)
    delays.sort()
    out["queue_us"] |= {"p1": quantile(delays, .01) / 1000, "p5": quantile(delays, .05) / 1000,
                        "max": delays[-1] / 1000}
    out["queue_empty"] = sum(not delay for delay in delays) / len(delays)
    return out


def settle_ms(scenario: Scenario, raw: Raw) -> float:
    """Time after at_ms at which the first port's queue, 0.1 ms averages, is last above below_us."""
    settle = scenario["settle"]
    late = [t for t, delay in queue_delay_points(scenario, raw)
            if t >= settle["at_ms"] and delay > settle["below_us"]]
    return float(late[-1] + .1 - settle["at_ms"]) if late else 0


def reach_ms(scenario: Scenario, raw: Raw) -> Figures:
    """Time after at_ms at which connections that do not stop first have a mean pacing rate."""
    reach = scenario["reach"]
    stay = [flow["samples"] for flow in bulk_flows(raw) if not flow["stop_ns"]]
    times = [row[0] / MS for row in raw["flow_times"]]
    out: Figures = {}
    for mbit in reach["mbit"]:
        late = [t - reach["at_ms"] for i, t in enumerate(times) if t >= reach["at_ms"] and
                statistics.fmean(rows[i][1] for rows in stay) * 8e-6 >= mbit]
        out[f"{mbit}_mbit"] = late[0] if late else None
    return out


# --- cells beside each other --------------------------------------------------

def pick(tree: Any, path: str) -> Any:
    """The value at a path like "rtt_us.p99"; None if there is no such value."""
    for key in path.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def compare(scenario: Scenario, cells: Sequence[Figures]) -> None:
    """Add to each cell's figures the comparison with the cell that it is relative to.

    The other cell has the same seed. Its name is the variant's key relative_to, by default the same
    name without On-Ramp. Goodput is compared as a ratio. A gain is the other cell's time divided
    by this cell's time.
    """
    by_cell = {(fig["cc"], fig["seed"]): fig for fig in cells}
    for fig in cells:
        base = onramp.base_of(fig["cc"])
        name = variant(scenario, base).get("relative_to", base)
        other = by_cell.get((name, fig["seed"]))
        if not other or other is fig:
            continue
        if other.get("goodput_gbit"):
            fig["goodput_relative"] = fig["goodput_gbit"] / other["goodput_gbit"]
        if other.get("accepted"):
            fig["accepted_relative"] = fig["accepted"] / other["accepted"]
        gains = {path: pick(other, path) / pick(fig, path) for path in GAINS
                 if pick(other, path) and pick(fig, path)}
        if gains:
            fig["gain"] = {path.replace(".", "_"): gain for path, gain in gains.items()}
