# SPDX-License-Identifier: GPL-2.0
"""The charts of a run on a page, each with a text that says what the chart means."""
import html
from collections.abc import Sequence
from . import chart
from .measures import Measure
from .pagerun import Curves, Rows, Run
from .tables import number, table_of

def charts(run: Run, table: Rows, measures: Sequence[Measure], styles: dict[str, int]) -> list[str]:
    """All charts of a run for which there are results."""
    out = [measure_chart(run, table, measure, styles) for measure in measures if measure.scale]
    curves = {cc: found for cc in table if (found := run.curves_of(cc))}
    missing = [cc for cc in table if cc not in curves]
    if missing:
        out.append(f"<p>No raw result can be read for {html.escape(', '.join(missing))}: the "
                   "charts of curves and connections do not have them.</p>")

    def lines(which: str) -> list[chart.Series]:
        return [chart.Series(cc, styles.get(cc, 0), run.own(cc), getattr(found, which))
                for cc, found in curves.items() if getattr(found, which)]

    if rtts := lines("rtt"):
        out.append(rtt_chart(run, rtts))
    if queues := lines("queue"):
        out.append(queue_chart(run, queues))
    if requests := lines("requests"):
        out.append(request_chart(requests))
    if any(found.goodputs for found in curves.values()):
        out.append(fairness_chart(run, curves, styles))
    return out


def figure(image: str, title: str, meaning: str) -> str:
    """A chart with its title and what the chart means."""
    return (f"<figure><h3>{html.escape(title)}</h3>{image}"
            f"<figcaption>{html.escape(meaning)}</figcaption></figure>")


def ranking(run: Run, path: str, unit: str) -> str:
    """The medians of a figure in rising order, as text."""
    table = table_of(run.cells, [("", path)])
    found = sorted((row[path]["median"], cc) for cc, row in table.items() if path in row)
    return ", ".join(f"{number(value)} {unit} with {cc}" for value, cc in found) or "no figure"


def measure_chart(run: Run, table: Rows, measure: Measure, styles: dict[str, int]) -> str:
    """A figure of all congestion controls: median and range over the seeds."""
    entries = {cc: row[measure.path] for cc, row in table.items() if measure.path in row}
    rows = [chart.Row(cc, styles.get(cc, 0), run.own(cc),
                      [(entry["median"], f"{cc}: {measure.show(entry)}")],
                      (entry["min"], entry["max"]), measure.show(entry))
            for cc, entry in entries.items()]
    ends = [entry[end] for entry in entries.values() for end in ("min", "max")]
    axis = chart.axis_over(measure.label(), ends, measure.scale == "log")
    side = {1: "Further right is better.", -1: "Further left is better.", 0: ""}[measure.better]
    return figure(chart.row_chart(measure.title, axis, rows), measure.title,
                  f"{measure.meaning} {side} A point is the median over the seeds, the line behind "
                  "the point reaches from the least to the greatest value.")


def rtt_chart(run: Run, lines: Sequence[chart.Series]) -> str:
    """The CDF of the RTTs."""
    axis = chart.axis_over("RTT, us", [x for line in lines for x, _ in line.points], True)
    return figure(
        chart.line_chart("RTTs", axis, chart.Axis("share of packets", 0, 1), lines),
        "Distribution of RTTs",
        "A curve shows the share of the small packets that were back within the time below. A "
        "curve further left means shorter queues, a steep curve means equal delays. Half of the "
        f"packets were back within {ranking(run, 'rtt_us.p50', 'us')} (medians over the seeds).")


def queue_chart(run: Run, lines: Sequence[chart.Series]) -> str:
    """The queue of the first port over time."""
    most = max(y for line in lines for _, y in line.points)
    until = max(x for line in lines for x, _ in line.points)
    return figure(
        chart.line_chart("queue", chart.Axis("time, ms", 0, max(until, 1)),
                         chart.Axis("waiting time, us", 1, max(most * 1.2, 10), True), lines),
        "Queue at the shared port",
        "The time that the packets in the queue take to leave, in averages of 1 ms; values below 1 "
        "us are drawn at 1 us. A high line means that every packet waits, whoever sent it. The "
        f"measurement starts at {run.scenario['run']['warmup_ms']:g} ms. On average over the "
        f"measurement packets wait {ranking(run, 'queue_us.avg', 'us')} (medians over the seeds). "
        "timely sends less for 1 ms of each 67 ms, so that queues drain and the RTT without queues "
        "can be measured: these are dips in its line.")


def request_chart(lines: Sequence[chart.Series]) -> str:
    """The CDF of the requests' times."""
    axis = chart.axis_over("time of a request, us", [x for line in lines for x, _ in line.points],
                           True)
    return figure(
        chart.line_chart("requests", axis, chart.Axis("share of requests", 0, 1), lines),
        "Distribution of the requests' times",
        "A curve shows the share of the requests that were answered completely within the time "
        "below. A curve further left means faster answers.")


def fairness_chart(run: Run, curves: dict[str, Curves], styles: dict[str, int]) -> str:
    """The goodput of each connection, one row for each group of connections."""
    rows = []
    for cc, found in curves.items():
        for group in dict.fromkeys(group for group, _, _ in found.goodputs):
            mine = [(gbit, f"{cc}, {name}: {number(gbit)} Gb/s")
                    for other, name, gbit in found.goodputs if other == group]
            rows.append(chart.Row(f"{cc}: {group}" if group else cc, styles.get(cc, 0),
                                  run.own(cc), mine, None,
                                  f"{number(min(mine)[0])} to {number(max(mine)[0])} Gb/s"))
    axis = chart.axis_over("goodput of a connection, Gb/s",
                           [value for row in rows for value, _ in row.values])
    return figure(chart.row_chart("goodput of each connection", axis, rows),
                  "Goodput of each connection",
                  "Each point is a connection, over the measured window. Points close together "
                  "mean that the connections share the port evenly. On the right are the slowest "
                  "and the fastest connection.")
