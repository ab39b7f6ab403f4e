# SPDX-License-Identifier: GPL-2.0
"""Tables of figures: one row for each congestion control, medians and ranges over the seeds."""
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from . import slowdown, workload
from .common import Figures, Scenario
from .results import pick
from .samples import is_number

# A column's title and the path of its figure.
Column = tuple[str, str]
# Median, minimum and maximum over the seeds.
Entry = dict[str, float]
Grid = list[list[str]]

COLUMNS: tuple[Column, ...] = (
    ("Gb/s", "goodput_gbit"), ("of link", "share"), ("RTT avg us", "rtt_us.avg"),
    ("p50", "rtt_us.p50"), ("p99", "rtt_us.p99"), ("p99.9", "rtt_us.p999"), ("Jain", "jain"),
    ("retrans", "retrans"), ("drops", "drops"), ("drops before", "drops_before"),
    ("request avg us", "request_us.avg"), ("p50", "request_us.p50"), ("p90", "request_us.p90"),
    ("p99", "request_us.p99"), ("requests", "request_us.count"),
)
# Columns of every scenario with [workload], behind the scenario's own.
SLOWDOWN_COLUMNS: tuple[Column, ...] = (
    ("slowdown mean", "slowdown.mean"), ("p50", "slowdown.p50"), ("p99", "slowdown.p99"))
EVENT_COLUMNS: tuple[Column, ...] = (
    ("noticed after ms", "noticed_ms"), ("RTTs used", "used"), ("wrong by > 1 us", "used_wrong"),
    ("until ms", "wrong_until_ms"), ("largest error ns", "error_max_ns"),
    ("sure again after ms", "sure_again_ms"), ("driver timestamps impossible", "driver_outside"))


def columns_of(scenario: Scenario) -> list[Column]:
    """The columns of a scenario's table."""
    own = [(title, path) for title, path in scenario.get("report", {}).get("columns", COLUMNS)]
    if "workload" not in scenario or any(path.startswith("slowdown.") for _, path in own):
        return own
    return own + list(SLOWDOWN_COLUMNS)


def entry_of(values: Sequence[float]) -> Entry:
    """The entry of a table for the values of all seeds."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def table_of(cells: Sequence[Figures], columns: Iterable[Column]) -> dict[str, dict[str, Any]]:
    """For each congestion control: the seeds, and the entry of each column with any value."""
    columns, table = list(columns), {}
    for cc in dict.fromkeys(fig["cc"] for fig in cells):
        mine = [fig for fig in cells if fig["cc"] == cc]
        row: dict[str, Any] = {"seeds": [fig["seed"] for fig in mine]}
        for _, path in columns:
            values = [v for v in (pick(fig, path) for fig in mine) if is_number(v)]
            if values:
                row[path] = entry_of(values)
        table[cc] = row
    return table


def number(value: float | None) -> str:
    """A number with three or four digits; integers and numbers from 100 on have no fraction."""
    if value is None:
        return "-"
    if isinstance(value, int) or value >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def show(entry: Entry | None) -> str:
    """An entry as text: the median, and the range if the seeds differ."""
    if not entry:
        return "-"
    text = number(entry["median"])
    low, high = number(entry["min"]), number(entry["max"])
    return text if low == high else f"{text} ({low}..{high})"


def grid(table: dict[str, dict[str, Any]], columns: Iterable[Column]) -> Grid:
    """A table as rows of text, without the columns that have no value in any row."""
    columns = [(title, path) for title, path in columns
               if any(path in row for row in table.values())]
    head = ["", "seeds"] + [title for title, _ in columns]
    return [head] + [[cc, str(len(row["seeds"]))] + [show(row.get(path)) for _, path in columns]
                     for cc, row in table.items()]


def as_text(rows: Grid) -> str:
    """Rows with aligned columns, for the terminal."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths))
                     for row in rows)


def as_markdown(rows: Grid) -> str:
    """Rows as a table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" + "|---:" * (len(rows[0]) - 1) + "|")
    return "\n".join(lines)


def event_rows(cells: Iterable[Figures]) -> Grid:
    """The table of clocks' events over the seeds; empty without events."""
    found: dict[tuple[str, str], list[Figures]] = {}
    for fig in cells:
        for name, event in fig.get("timestamps", {}).get("events", {}).items():
            found.setdefault((fig["cc"], name), []).append(event)
    if not found:
        return []
    rows = [["", "event"] + [title for title, _ in EVENT_COLUMNS]]
    for (cc, name), events in found.items():
        row = [cc, name]
        for _, key in EVENT_COLUMNS:
            values = [event[key] for event in events if event[key] is not None]
            row.append(show(entry_of(values) if values else None))
        rows.append(row)
    return rows


def size_text(size: float) -> str:
    """A number of bytes as text."""
    for unit, name in ((1e6, "MB"), (1e3, "KB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} B"


def decile_rows(cells: Sequence[Figures]) -> tuple[Grid, Grid]:
    """Two tables of the deciles of the size: slowdowns, and mean completion times.

    Empty deciles are left out.
    """
    rows = {cc: slowdown.decile_medians(cells, cc)
            for cc in dict.fromkeys(fig["cc"] for fig in cells)}
    first = next(iter(rows.values()))
    full = [i for i in range(slowdown.DECILES)
            if any("mean" in parts[i] for parts in rows.values())]
    head = [f"up to {size_text(first[i]['size'])}" for i in full]
    ratios, times = [["", *head]], [["", *head]]
    for cc, parts in rows.items():
        ratios.append([cc] + [" / ".join(number(parts[i].get(key))
                                         for key in ("mean", *slowdown.QUANTILES)) for i in full])
        times.append([cc] + [number(parts[i].get("fct_us")) for i in full])
    return ratios, times


def one_line(fig: Figures) -> str:
    """The most important figures of a cell in one line."""
    parts = []
    if "goodput_gbit" in fig:
        parts.append(f"{fig['goodput_gbit']:.2f} Gb/s")
    if "timestamps" in fig and fig["timestamps"]["error_ns"]["count"]:
        error = fig["timestamps"]["error_ns"]
        parts.append(f"mapping error {number(error['p50'])} p50 {number(error['p99'])} p99 "
                     f"{number(error['max'])} max ns")
    if "avg" in fig["rtt_us"]:
        parts.append(f"RTT {number(fig['rtt_us']['avg'])} avg {number(fig['rtt_us']['p99'])} "
                     "p99 us")
    if "jain" in fig:
        parts.append(f"Jain {number(fig['jain'])}, {fig['retrans']} retrans")
    for name in workload.CLASSES:
        if "avg" in fig.get(name, {}):
            parts.append(f"{name[:-3]} {number(fig[name]['avg'])} avg")
    if "avg" in fig.get("request_us", {}):
        request = fig["request_us"]
        parts.append(f"request {number(request['avg'])} avg {number(request['p99'])} p99 us")
    if "slowdown" in fig:
        parts.append(f"slowdown {number(fig['slowdown']['mean'])} mean "
                     f"{number(fig['slowdown']['p99'])} p99")
    return f"{', '.join(parts)}, {fig['drops']} drops ({fig['wall_s']:.0f} s)"
