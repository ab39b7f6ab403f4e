# SPDX-License-Identifier: GPL-2.0
"""Slowdown of messages: figures, rows of tables, and lines of plots.

The slowdown of a message is its completion time divided by its time alone on an idle network, so
the least slowdown is 1. Two ideal networks get the same messages, as a limit to compare with
(see ideal.py). The figures ideal_fair and ideal_srpt of a cell have completion times and slowdowns
of these networks.
"""
import bisect
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from . import ideal, samples, workload
from .cell import scenario_of
from .common import Figures, Lines, Raw, Scenario
from .samples import quantile
from .scenario import window_ns
from .topology import burst_bytes, ends

QUANTILES = {"p50": .5, "p99": .99}
# Names of classes in "slowdown", by their names among completion times.
CLASSES = {name.removesuffix("_us"): limits for name, limits in workload.CLASSES.items()
           if name != "all_us"}
DECILES = 10
# Names of the ideal networks in tables and plots.
TITLES = {"ideal_fair": "ideal, fair", "ideal_srpt": "ideal, shortest first"}


class Row(NamedTuple):
    """A message of the measured window."""

    size: int
    took: float                 # ns; of a message that has not ended: its age at the end of the run
    slowdown: float


# --- figures of a cell ----------------------------------------------------------

def figures(scenario: Scenario, raw: Raw) -> Figures:
    """Slowdowns in a cell and in ideal networks, from the cell's scenario; empty without messages.

    A message that has not ended counts with its age, but at least with a slowdown of 1.
    """
    work = next(iter(raw.get("workloads", [])), None)
    start, end = window_ns(scenario)
    if not work or not any(start <= row[0] < end for row in work["messages"]):
        return {}
    load = workload.settings(scenario)
    net = ideal.network_of(scenario, load["reply"], load["pool"])
    messages = [(at, size, sender, receiver)
                for at, size, _, sender, receiver in work["messages"]]
    out = summary(rows_of(net, messages, [row[2] for row in work["messages"]], raw["end_ns"],
                          start, end))
    for name, times in ideal.all_times(net, messages, raw["end_ns"]).items():
        ended = [0 if took == float("inf") else took for took in times]
        rows = rows_of(net, messages, ended, raw["end_ns"], start, end)
        out[name] = summary(rows) | workload.class_figures((row.size, row.took) for row in rows)
        out[name]["messages_unfinished"] = sum(
            not took for took, row in zip(ended, messages) if start <= row[0] < end)
    return out


def request_figures(scenario: Scenario, incasts: Iterable[Raw]) -> dict[str, float]:
    """Times of the requests of [incast], divided by the least time on an idle network."""
    topo, net, out = scenario["topology"], ideal.network_of(scenario, False, 1), []
    rates = {end.name: end.gbit for end in ends(topo)}
    for incast in incasts:
        gbit = rates[incast["to"]]
        least = ideal.request_ns(net._replace(gbit=gbit), incast["members"], incast["size"],
                                 0 if net.stored else burst_bytes(topo, gbit))
        out += [took / least for _, took in incast["requests"]]
    return samples.spread(out, 1)


def rows_of(net: ideal.Network, messages: Iterable[ideal.Message], times: Iterable[float],
            run_end: int, start: int, end: int) -> list[Row]:
    """The messages that arrived in a window. times: 0 for a message that has not ended."""
    out = []
    for (at, size, sender, receiver), took in zip(messages, times):
        if start <= at < end:
            alone = ideal.alone_ns(net, size, sender, receiver)
            out.append(Row(size, took or run_end - at,
                           took / alone if took else max(1, (run_end - at) / alone)))
    return out


def spread(slowdowns: Iterable[float]) -> dict[str, float]:
    """Count, mean and quantiles of slowdowns."""
    ordered = sorted(slowdowns)
    out: dict[str, float] = {"count": len(ordered)}
    if ordered:
        out["mean"] = statistics.fmean(ordered)
        out |= {name: quantile(ordered, share) for name, share in QUANTILES.items()}
    return out


def summary(rows: Sequence[Row]) -> Figures:
    """Slowdowns of all messages, by class, and by deciles of the size."""
    found: Figures = dict(spread(row.slowdown for row in rows))
    found["min"] = min(row.slowdown for row in rows)
    for name, (low, high) in CLASSES.items():
        found[name] = spread(row.slowdown for row in rows if low < row.size <= high)
    return {"slowdown": found, "slowdown_deciles": deciles(rows)}


def deciles(rows: Sequence[Row]) -> list[Figures]:
    """Slowdown and mean completion time in ten parts of the messages, by rising size.

    "size" is the largest size of the part. Messages of one size are in one part, so that a part
    may be empty.
    """
    sizes = sorted(row.size for row in rows)
    edges = [quantile(sizes, (i + 1) / DECILES) for i in range(DECILES)]
    parts: list[list[Row]] = [[] for _ in edges]
    for row in rows:
        parts[bisect.bisect_left(edges, row.size)].append(row)
    out: list[Figures] = []
    for edge, part in zip(edges, parts):
        out.append({"size": edge} | spread(row.slowdown for row in part))
        if part:
            out[-1]["fct_us"] = statistics.fmean(row.took for row in part) / 1000
    return out


# --- all cells of a run ---------------------------------------------------------

def groups(scenario: Scenario, cells: Sequence[Figures]) -> dict[str, list[Figures]]:
    """The cells that have slowdowns, by their messages. Cells with one workload are one group.

    A group's name is its load, or a congestion control if several workloads have the same load; a
    run's only group has the name "".
    """
    found: dict[Any, list[Figures]] = {}
    for fig in cells:
        if "slowdown" in fig:
            own = scenario_of(scenario, fig["cc"])
            load = workload.settings(own)
            key = (load["load"], str(load),
                   ideal.network_of(own, load["reply"], load["pool"]))
            found.setdefault(key, []).append(fig)
    loads = [key[0] for key in found]
    names = [str(key[0]) if loads.count(key[0]) == 1 else mine[0]["cc"]
             for key, mine in found.items()]
    return dict(zip(names if len(names) > 1 else [""], found.values()))


def ideal_cells(name: str, cells: Sequence[Figures]) -> list[Figures]:
    """The figures of the ideal networks in a group of cells, as cells of their own.

    "of": a congestion control of the group. Cells of one seed have the same ideal figures.
    """
    by_seed = {fig["seed"]: fig for fig in reversed(cells)}
    return [{"cc": title + (f"-{name}" if name else ""), "seed": seed, "of": cells[0]["cc"],
             **by_seed[seed][key]} for key, title in TITLES.items() for seed in sorted(by_seed)]


def with_ideals(scenario: Scenario, cells: Sequence[Figures]) -> list[Figures]:
    """All cells by congestion control, with those of the ideal networks behind each group."""
    order = list(dict.fromkeys(fig["cc"] for fig in cells))
    behind: dict[str, list[Figures]] = {}
    for name, mine in groups(scenario, cells).items():
        last = max((fig["cc"] for fig in mine), key=order.index)
        behind.setdefault(last, []).extend(ideal_cells(name, mine))
    return [fig for cc in order
            for fig in [fig for fig in cells if fig["cc"] == cc] + behind.get(cc, [])]


def decile_medians(cells: Sequence[Figures], cc: str) -> list[Figures]:
    """The deciles of a congestion control: the median over the seeds of each number."""
    lists = [fig["slowdown_deciles"] for fig in cells if fig["cc"] == cc]
    return [{key: statistics.median(part[key] for part in parts if key in part)
             for key in dict.fromkeys(key for part in parts for key in part)}
            for parts in zip(*lists)]


def plot_lines(cells: Sequence[Figures], figure: str, shown: Iterable[str]) -> Lines:
    """A figure of the deciles over their sizes, for these congestion controls."""
    return [(cc, [(part["size"], part[figure]) for part in decile_medians(cells, cc)
                  if figure in part]) for cc in shown]
