# SPDX-License-Identifier: GPL-2.0
"""Plots of a run, drawn by gnuplot as SVG and PNG.

A scenario's [report] may list the plots; without a list a run has the RTTs' CDF, the queue, and
the rates of one congestion control. A plot of single cells shows each congestion control's first
seed. A scenario with [workload] has plots of slowdowns, too.
"""
import os
import subprocess
from collections.abc import Sequence

from . import slowdown, timestamp_figures
from .cell import nic_of, scenario_of, variant
from .common import GBIT_BPS, Figures, LabError, Lines, Raw, Scenario
from .results import pick
from .scenario import window_ns
from .series import (info_lines, queue_delay_points, queue_points, rate_lines, request_cdf,
                     rtt_cdf)
from .tables import table_of

# Plots of hardware timestamps: CDFs, with the label of the x axis.
TIMESTAMP_PLOTS = {
    "error": "error of a NIC's timestamp in the host's time, ns",
    "rtt": "RTT, us",
    "native": "RTT, us",
    "queue": "queueing delay, us",
}
# Plots of TCP_INFO: column of a sample, label of the y axis, unit.
INFO_PLOTS = {"pacing": (1, "paced rate, Gb/s", GBIT_BPS), "srtt": (2, "TCP's smoothed RTT, us", 1)}
# Figures that a sweep shows if [report] names no others.
SWEEP_FIGURES = (("goodput_gbit", "goodput, Gb/s"), ("rtt_us.p99", "RTT p99, us"))
KEY_BELOW = "set key below"

# A run's first raw result of each congestion control.
Firsts = dict[str, Raw]


def plot(path: str, title: str, xlabel: str, ylabel: str, lines: Lines,
         extra: Sequence[str] = (), key: bool = True) -> None:
    """Draw one plot; path has no ending. The plot's data are kept in a file beside the plot."""
    lines = [line for line in lines if line[1]]
    if not lines:
        return
    with open(path + ".dat", "w", encoding="ascii") as file:
        for name, points in lines:
            file.write(f"# {name}\n" + "".join(f"{x:.6g} {y:.6g}\n" for x, y in points) + "\n\n")
    try:
        subprocess.run(["gnuplot"], input=gnuplot_script(path, title, xlabel, ylabel, lines, extra,
                                                         key), text=True, check=True)
    except FileNotFoundError:
        raise LabError("the plots need gnuplot: install the package gnuplot-nox") from None
    except subprocess.CalledProcessError:
        raise LabError(f"gnuplot failed for {path}: the reason is above") from None


def gnuplot_script(path: str, title: str, xlabel: str, ylabel: str, lines: Lines,
                   extra: Sequence[str], key: bool) -> str:
    """The commands for gnuplot that draw a plot from its file of data."""
    parts = [f'"{path}.dat" index {i} with lines lw {2 if key else 1} title "{name}"'
             for i, (name, _) in enumerate(lines)]
    body = [f'set title "{title}" noenhanced', f'set xlabel "{xlabel}" noenhanced',
            f'set ylabel "{ylabel}" noenhanced',
            "set grid", "set key outside right noenhanced" if key else "unset key", *extra]
    script = []
    for terminal, suffix in (("svg size 900,520 background rgb 'white'", "svg"),
                             ("pngcairo size 900,520", "png")):
        script += [f"set terminal {terminal}", f'set output "{path}.{suffix}"', *body,
                   "plot " + ", ".join(parts), "unset output"]
    return "\n".join(script)


def make_plots(out: str, scenario: Scenario, raws: Sequence[Raw],
               cells: Sequence[Figures]) -> None:
    """Draw all plots of a run into a directory."""
    firsts: Firsts = {}
    for raw in raws:
        firsts.setdefault(raw["cc"], raw)
    report = scenario.get("report", {})
    slowdown_plots(out, scenario, [fig for fig in cells
                                   if fig["cc"] in report.get("shown", firsts)])
    if not report.get("plots"):
        default_plots(out, scenario, firsts)
        return
    firsts = {cc: raw for cc, raw in firsts.items() if cc in report.get("shown", firsts)}
    for what in report["plots"]:
        if what in CELL_PLOTS:
            CELL_PLOTS[what](out, scenario, firsts)
        elif what in INFO_PLOTS:
            info_plot(out, scenario, firsts, what)
        elif what == "sweep":
            sweep_plot(out, scenario, cells)
        elif what == "jitter":
            jitter_plot(out, scenario, [cell for cell in cells if cell["cc"] in firsts])
        else:
            timestamp_plot(out, scenario, firsts, what)


def default_plots(out: str, scenario: Scenario, firsts: Firsts) -> None:
    """Draw the plots of a scenario that lists none."""
    title = scenario.get("title", "")
    rtt_plot(out, scenario, firsts)
    plot(os.path.join(out, "queue"), f"Queue at the switch, 1 ms averages: {title}", "time, ms",
         "queue, KB", [(cc, queue_points(raw)) for cc, raw in firsts.items()],
         ["set yrange [0:1<*]"])
    shown = "timely" if "timely" in firsts else next(iter(firsts))
    rate_plot(out, scenario, shown, firsts[shown], "set yrange [0:0.1<*]")


# --- plots of single cells ----------------------------------------------------

def rtt_plot(out: str, scenario: Scenario, firsts: Firsts) -> None:
    """The CDF of the pings' RTTs."""
    plot(os.path.join(out, "rtt-cdf"), f"RTT of the pinger: {scenario.get('title', '')}",
         "RTT, us", "CDF",
         [(cc, rtt_cdf(raw, scenario_of(scenario, cc))) for cc, raw in firsts.items()],
         ["set logscale x", "set yrange [0:1]"])


def queue_delay_plot(out: str, scenario: Scenario, firsts: Firsts) -> None:
    """The queueing delay at the first port over time."""
    plot(os.path.join(out, "queue-us"), f"Queue at the switch: {scenario.get('title', '')}",
         "time, ms", "queue, us",
         [(cc, queue_delay_points(scenario_of(scenario, cc), raw))
          for cc, raw in firsts.items()],
         ["set yrange [1:*]", "set logscale y", KEY_BELOW])


def request_plot(out: str, scenario: Scenario, firsts: Firsts) -> None:
    """The CDF of the requests' completion times."""
    plot(os.path.join(out, "requests"), f"Requests: {scenario.get('title', '')}",
         "request completion time, us", "CDF",
         [(cc, request_cdf(raw)) for cc, raw in firsts.items()],
         ["set logscale x", "set yrange [0:1]", KEY_BELOW])


def rate_plot(out: str, scenario: Scenario, cc: str, raw: Raw, yrange: str) -> None:
    """The goodput of each connection of one cell over time."""
    plot(os.path.join(out, f"rates-{cc}"),
         f"Rate of each flow, {cc}: {scenario.get('title', '')}",
         "time, ms", "goodput, Gb/s", rate_lines(raw), [yrange], key=False)


def rate_plots(out: str, scenario: Scenario, firsts: Firsts) -> None:
    """The goodput of each connection over time, one plot for each congestion control."""
    for cc, raw in firsts.items():
        rate_plot(out, scenario, cc, raw, "set yrange [0:*]")


def info_plot(out: str, scenario: Scenario, firsts: Firsts, what: str) -> None:
    """Four connections' pacing rate or smoothed RTT over time."""
    column, ylabel, unit = INFO_PLOTS[what]
    for cc, raw in firsts.items():
        plot(os.path.join(out, f"{what}-{cc}"), f"{cc}: {scenario.get('title', '')}", "time, ms",
             ylabel, info_lines(scenario_of(scenario, cc), raw, column, unit),
             ["set yrange [0:*]", KEY_BELOW])


CELL_PLOTS = {"queue-us": queue_delay_plot, "requests": request_plot, "rates": rate_plots,
              "rtt-cdf": rtt_plot}


def timestamp_plot(out: str, scenario: Scenario, firsts: Firsts, what: str) -> None:
    """CDFs of hardware timestamps."""
    lines: Lines = []
    for cc, raw in firsts.items():
        found = timestamp_figures.plot_lines(scenario, raw, *window_ns(scenario), what)
        lines += [(f"{cc}: {name}" if len(firsts) > 1 else name, points) for name, points in found]
    plot(os.path.join(out, what), scenario.get("title", ""), TIMESTAMP_PLOTS[what], "CDF", lines,
         [KEY_BELOW, "set yrange [0:1]"])


# --- plots of all cells -------------------------------------------------------

def jitter_plot(out: str, scenario: Scenario, cells: Sequence[Figures]) -> None:
    """Throughput over the host's jitter, with hardware timestamps and without."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for cc, row in table_of(cells, [("", "goodput_gbit")]).items():
        nic = nic_of(scenario, cc)
        if nic is None:
            raise LabError("the plot jitter needs a scenario with [nic]")
        name = "hardware timestamps" if nic["timestamps"] else "software timestamps"
        lines.setdefault(name, []).append((nic["jitter_ns"] / 1000, row["goodput_gbit"]["median"]))
    plot(os.path.join(out, "jitter"), scenario.get("title", ""), "jitter of the host, up to us",
         "throughput, Gb/s", [(name, sorted(points)) for name, points in lines.items()],
         [KEY_BELOW, "set yrange [0:*]"])


def slowdown_plots(out: str, scenario: Scenario, cells: Sequence[Figures]) -> None:
    """Median and p99 of the slowdown over the size of messages, with the ideal networks.

    Each group of cells with the same messages has plots of its own; messages of one size have none.
    """
    for name, mine in slowdown.groups(scenario, cells).items():
        mine = mine + slowdown.ideal_cells(name, mine)
        shown = list(dict.fromkeys(fig["cc"] for fig in mine))
        for figure in slowdown.QUANTILES:
            lines = slowdown.plot_lines(mine, figure, shown)
            if max(len(points) for _, points in lines) > 1:
                plot(os.path.join(out, f"slowdown-{figure}" + (f"-{name}" if name else "")),
                     scenario.get("title", ""), "size of messages up to, bytes",
                     f"slowdown, {figure}", lines,
                     ["set logscale xy", "set yrange [1:*]", KEY_BELOW])


def sweep_plot(out: str, scenario: Scenario, cells: Sequence[Figures]) -> None:
    """Figures over the setting that the variants vary, as [report] sweep says.

    Variants whose names differ only after the last - are one line. The ideal networks have lines,
    too.
    """
    sweep = scenario["report"]["sweep"]
    cells = slowdown.with_ideals(scenario, cells)
    variants = {fig["cc"]: variant(scenario, fig.get("of", fig["cc"])) for fig in cells}
    for path, label in sweep.get("y", SWEEP_FIGURES):
        lines: dict[str, list[tuple[float, float]]] = {}
        for cc, row in table_of(cells, [("", path)]).items():
            x = pick(variants[cc], sweep["x"])
            if x is not None and path in row:
                lines.setdefault(cc.rpartition("-")[0], []).append(
                    (x / sweep.get("per", 1), row[path]["median"]))
        plot(os.path.join(out, "sweep-" + path.replace(".", "-").replace("_", "-")),
             scenario.get("title", ""), sweep.get("xlabel", sweep["x"]), label,
             [(name, sorted(points)) for name, points in lines.items()],
             ["set yrange [0:*]", KEY_BELOW])
