# SPDX-License-Identifier: GPL-2.0
"""Figures and plots of hardware timestamps, from the rows that timestamps.py makes.

The figures compare RTTs by hardware timestamps with RTTs by software, by the NIC's clock alone,
and with the queue that the port's ring held.
"""
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .common import MS, Figures, Lines, Points, Raw, Scenario, Table
from .samples import TAIL_SHARES, cdf_points, quantile, spread_with_range
from .timestamps import ACK, COMPLETIONS, Row
from .topology import WIRE_BYTES, frame_bytes, link_headers

# Results that say that a clock's step was noticed: none of them uses a hardware timestamp.
NOTICED = ("doubtful", "driver", "tcp")
# The size of a pure ACK.
ACK_BYTES = 66
CDF_SHARES = [i / 200 for i in range(1, 198)] + TAIL_SHARES


def columns(rows: Iterable[Row], *names: str) -> Iterator[Any]:
    """Some columns of the rows in which all of these columns are known; one column as values."""
    indices = [ACK.index(name) for name in names]
    for row in rows:
        picked = [row[i] for i in indices]
        if None not in picked:
            yield picked if len(picked) > 1 else picked[0]


def with_results(rows: Iterable[Row], *results: str) -> list[Row]:
    """The rows with one of some results."""
    return [row for row in rows if row[2] in results]


# --- events of clocks ---------------------------------------------------------

def event_name(event: Table) -> str:
    """The name of a clock's event in figures: the key and the value."""
    for key in ("step_ns", "set_ns", "real_step_ns", "drift_ppb", "wander_ppb_per_s"):
        if key in event:
            return f"{key} {event[key]:+d}" if "step" in key else f"{key} {event[key]}"
    return "?"


def event_figures(rows: Sequence[Row], start: int, end: int) -> Figures:
    """Figures of the ACKs that arrived in [start, end), after an event at start."""
    mine = [row for row in rows if row[5] is not None and start <= row[0] - row[5] < end]
    noticed = next((row[0] for row in mine if row[2] in NOTICED), None)
    used = [(row[0], abs(row[4])) for row in mine if row[2] == "hardware"]
    wrong = [t for t, error in used if error > 1000]
    again = next((t for t, error in used if noticed is not None and t > noticed and error <= 1000),
                 None)
    return {"noticed_ms": None if noticed is None else (noticed - start) / MS,
            "sure_again_ms": None if again is None else (again - start) / MS,
            "used": len(used), "used_wrong": len(wrong),
            "wrong_until_ms": (max(wrong) - start) / MS if wrong else 0,
            "error_max_ns": max((error for _, error in used), default=0),
            "driver_outside": sum(1 for row in mine if row[2] == "driver"
                                  and row[4] is not None and not 0 <= row[4] <= row[5])}


def step_kind(event: Table, jitter_ns: float) -> str:
    """The kind of a clock's step.

    real: the real-time clock's. large: one packet shows the step. small: the step is hidden among
    late packets. tiny: the step is as good as a change of the host's delay.
    """
    if "real_step_ns" in event:
        return "real"
    step = abs(event.get("step_ns", event.get("set_ns", 0) or jitter_ns + 1))
    if not step:
        return "real"
    if step > jitter_ns:
        return "large"
    return "small" if step > jitter_ns / 4 else "tiny"


def worst(scenario: Scenario, found: dict[str, Figures]) -> dict[str, Figures]:
    """The greatest of each figure over all events of a kind; None if one event has none."""
    out: dict[str, Figures] = {}
    for event in scenario["events"]:
        mine = out.setdefault(step_kind(event, scenario["nic"].get("jitter_ns", 0)), {})
        for key, value in found[event_name(event)].items():
            known = mine.get(key, value)
            mine[key] = None if value is None or known is None else max(value, known)
    return out


def all_event_figures(scenario: Scenario, rows: Sequence[Row], end: int) -> Figures:
    """Figures of each event until the next event, and the worst figures of each kind."""
    happened = scenario.get("events")
    if not happened:
        return {}
    times = [event["at_ms"] * MS for event in happened] + [end]
    found = {event_name(event): event_figures(rows, at, until)
             for event, at, until in zip(happened, times, times[1:])}
    return {"events": found, "worst": worst(scenario, found)}


# --- the measured window ------------------------------------------------------

def result_figures(window: Sequence[Row], span_ns: int) -> Figures:
    """How many ACKs had each result. Every ACK gives a timestamp pair, also a doubtful one."""
    results: dict[str, int] = {}
    for row in window:
        results[row[2]] = results.get(row[2], 0) + 1
    hardware = results.get("hardware", 0)
    completions = sum(results.get(result, 0) for result in COMPLETIONS)
    return {"results": results, "hardware_share": hardware / max(1, completions),
            "refused_share": results.get("doubtful", 0) / max(1, len(window)),
            "pairs_per_s": round(len(window) * 1e9 / span_ns) if hardware else None}


def rtt_figures(window: Sequence[Row]) -> Figures:
    """Errors of the clock mapping, host delays, and RTTs by each method."""
    hardware, completions = with_results(window, "hardware"), with_results(window, *COMPLETIONS)
    errors = list(columns(hardware, "error_ns"))
    return {
        "error_ns": spread_with_range([abs(e) for e in errors]),
        "bias_ns": sum(errors) / len(errors) if errors else None,
        "used_wrong": sum(1 for e in errors if abs(e) > 1000),
        "late_us": spread_with_range(columns(window, "late_ns"), 1000),
        "used_us": spread_with_range(columns(completions, "rtt_ns"), 1000),
        "hardware_us": spread_with_range(columns(hardware, "rtt_ns"), 1000),
        "native_us": spread_with_range(columns(completions, "native_ns"), 1000),
        "software_us": spread_with_range(columns(completions, "software_ns"), 1000),
        "nic_queue_us": spread_with_range(
            [rtt - native for rtt, native, _ in
             columns(hardware, "rtt_ns", "native_ns", "error_ns")], 1000)}


def figures(scenario: Scenario, raw: Raw, start: int, end: int) -> Figures:
    """All figures of hardware timestamps; nothing for a cell without rows."""
    rows = raw.get("acks")
    if not rows:
        return {}
    window = [row for row in rows if start <= row[0] < end]
    out = result_figures(window, end - start) | rtt_figures(window)
    first = min(row[0] for row in rows)
    sure = next((row[0] for row in rows if row[2] == "hardware"), None)
    out["sure_after_ms"] = None if sure is None else (sure - first) / MS
    out |= all_event_figures(scenario, rows, end)
    if "queue_bytes_counts" in raw:
        out |= queue_figures(scenario, raw, with_results(window, "hardware"))
    return out


# --- RTTs beside the port's queue ---------------------------------------------

def cdf_of_counts(counts: Sequence[tuple[int, int]]) -> list[tuple[int, float]]:
    """The CDF of values in rising order, of which each has a count."""
    total, seen, out = sum(n for _, n in counts), 0, []
    for value, n in counts:
        seen += n
        out.append((value, seen / total))
    return out


def inverse(cdf: Sequence[tuple[float, float]], share: float) -> float:
    """The value at which a CDF reaches a share."""
    return next(value for value, reached in cdf if reached >= share)


def queue_ns(size: float, scenario: Scenario) -> float:
    """Time that the port to a server needs to send so many bytes of full frames."""
    topo = scenario["topology"]
    frame = frame_bytes(topo)
    return float(size * (frame + WIRE_BYTES) / frame * 8 / topo["server_gbit"])


def base_ns(scenario: Scenario) -> float:
    """The base RTT without the time that the NIC needs to send the segment.

    The sum of the links' delays, the port's time for the last frame, and two links' time for a
    pure ACK.
    """
    topo = scenario["topology"]
    frame, ack = (topo["mtu"] + link_headers(scenario)) * 8, (ACK_BYTES + WIRE_BYTES) * 8
    return float(2 * topo["delay_ns"] + frame / topo["server_gbit"] +
                 ack / topo["server_gbit"] + ack / topo["host_gbit"])


def queue_figures(scenario: Scenario, raw: Raw, hardware: Sequence[Row]) -> Figures:
    """Queueing delays by RTTs beside the queue in the port's ring."""
    queue = [(queue_ns(size, scenario), share) for size, share in
             cdf_of_counts(raw["queue_bytes_counts"])]
    base = base_ns(scenario)
    waits = sorted(rtt - base for rtt in columns(hardware, "rtt_ns"))
    distance = {q: quantile(waits, q / 100) - inverse(queue, q / 100) for q in range(10, 100)}
    own = [rtt - base - queue_ns(size, scenario)
           for rtt, size in columns(hardware, "rtt_ns", "queue_bytes")]
    farthest = max(distance, key=lambda q: abs(distance[q]))
    return {"queueing_us": spread_with_range(waits, 1000),
            "queue_us": {f"p{q}": inverse(queue, q / 100) / 1000 for q in (1, 10, 50, 90, 99)},
            "cdf_distance_us": abs(distance[farthest]) / 1000, "cdf_distance_at": f"p{farthest}",
            "own_queue_difference_us": spread_with_range(own, 1000)}


# --- lines of plots -----------------------------------------------------------

def thinned(points: Points) -> Points:
    """As many points of a CDF as a plot can show."""
    out, last = [], -1.
    for value, share in points:
        if share >= last + .005 or value == points[-1][0]:
            out.append((value, share))
            last = share
    return out


def queue_lines(scenario: Scenario, raw: Raw, hardware: Sequence[Row]) -> Lines:
    """CDFs of the queueing delay by RTTs, and of the queue in the port's ring."""
    base = base_ns(scenario)
    waits = [rtt - base for rtt in columns(hardware, "rtt_ns")]
    return [("queueing delay by RTTs", cdf_points(waits, CDF_SHARES, 1000)),
            ("queue at the switch, each us",
             thinned([(queue_ns(size, scenario) / 1000, share)
                      for size, share in cdf_of_counts(raw["queue_bytes_counts"])]))]


def plot_lines(scenario: Scenario, raw: Raw, start: int, end: int, what: str) -> Lines:
    """CDFs of one cell for the plot error, queue, native or rtt."""
    window = [row for row in raw.get("acks", []) if start <= row[0] < end]
    hardware, completions = with_results(window, "hardware"), with_results(window, *COMPLETIONS)

    def cdf(rows: Sequence[Row], column: str) -> Points:
        return cdf_points(columns(rows, column), CDF_SHARES, 1000)

    if what == "error":
        return [("|mapped - true|",
                 cdf_points([abs(e) for e in columns(hardware, "error_ns")], CDF_SHARES, 1))]
    if what == "queue":
        return queue_lines(scenario, raw, hardware)
    lines = [("hardware timestamps", cdf(hardware, "rtt_ns")),
             ("software timestamps", cdf(completions, "software_ns"))]
    if what == "native":
        lines.insert(1, ("NIC's clock alone", cdf(completions, "native_ns")))
    return lines
