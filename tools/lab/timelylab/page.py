# SPDX-License-Identifier: GPL-2.0
"""lab page: one HTML page with the tables and charts of runs, for a browser without a network.

Everything on the page comes from the result files of the runs: figures from summary.json, curves
from the raw result of each congestion control's first seed. Result files may hold anything: all
texts are escaped, and what is not a finite number is shown as missing.
"""
import base64
import hashlib
import html
import os
import re
from collections.abc import Sequence

from .cell import host_qdisc, kernel_cc
from .common import LAB, LabError
from .measures import MEASURES, Measure, difference, verdict
from .pagecharts import charts
from .pagerun import BROKEN, Rows, Run
from .results import carries_gbit
from .store import load_summary
from .tables import columns_of, show, table_of

PARTS = os.path.join(LAB, "page")
TITLE = "TIMELY beside other congestion controls"
REFRESH_S = 5                           # a page of a run under way is loaded again after this time


def load_run(out: str) -> Run:
    """The run in a directory. What does not have the form of a summary is refused."""
    summary = load_summary(out)
    try:
        run = Run(out, summary["scenario"], summary["cells"],
                  [(str(cc), int(seed), str(error))
                   for cc, seed, error in summary.get("failures", [])])
        run.more_failed = max(0, int(summary["failed"]) - len(run.failures))
        for fig in run.cells:
            if not isinstance(fig["seed"], int) or "/" in fig["cc"]:
                raise ValueError("the name or the seed of a cell")
        run_section(run, {})
    except BROKEN as error:
        raise LabError(f"{out}/summary.json is not the summary of a run ({type(error).__name__}: "
                       f"{error}): run the scenario again") from None
    return run


# --- the page -----------------------------------------------------------------

def write_page(path: str, runs: Sequence[Run]) -> None:
    """Write the page of runs in one step, so that a browser never reads a part of it."""
    new = path + ".new"
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(new, "w", encoding="ascii", errors="xmlcharrefreplace") as file:
            file.write(page(runs))
        os.replace(new, path)
    except OSError as error:
        raise LabError(f"cannot write the page {path}: {error.strerror}") from None


def page(runs: Sequence[Run]) -> str:
    """The page of runs as HTML."""
    styles: dict[str, int] = {}
    for run in runs:
        for cc in run.ccs():
            styles.setdefault(cc, len(styles))
    script = part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    running = any(run.running for run in runs)
    values = {
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "refresh": f'<meta http-equiv="refresh" content="{REFRESH_S}">' if running else "",
        "title": TITLE, "style": part("page.css"), "script": script, "state": state_of(runs),
        "runs": "\n".join(run_section(run, styles) for run in runs)}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], part("page.html"))


def part(name: str) -> str:
    """The text of a file of the page."""
    with open(os.path.join(PARTS, name), encoding="ascii") as file:
        return file.read()


def state_of(runs: Sequence[Run]) -> str:
    """How many cells of all runs have finished, failed, and not run."""
    done, failed, waiting = (sum(values) for values in zip(*(
        (len(run.cells), len(run.failures) + run.more_failed, len(run.waiting)) for run in runs)))
    text = f"{done} of {done + failed + waiting} cells have finished"
    if failed:
        text += f", {failed} failed"
    if any(run.running for run in runs) and not waiting:
        return text + f". More follows; this page reloads every {REFRESH_S} seconds."
    if any(run.running for run in runs):
        return text + f". The others are under way; this page reloads every {REFRESH_S} seconds."
    if waiting:
        text += f", {waiting} did not run"
    return html.escape(". ".join([text, *(run.ended for run in runs if run.ended)]) + ".")


def run_section(run: Run, styles: dict[str, int]) -> str:
    """The section of a run: what ran, the table, gains and losses, charts."""
    wanted = {path for _, path in columns_of(run.scenario)}
    measures = [measure for measure in MEASURES if measure.path in wanted]
    table = table_of(run.cells, [("", measure.path) for measure in measures])
    measures = [measure for measure in measures
                if any(measure.path in row for row in table.values())]
    window = run.scenario["run"]
    parts = [f"<section><h2>{html.escape(str(run.scenario.get('title', 'A run')))}</h2>",
             f"<p>{window['warmup_ms']:g} ms of warm-up, then {window['measure_ms']:g} ms "
             f"measured; the links carry {carries_gbit(run.scenario):.2f} Gb/s of payload, and a "
             "little more in a short measurement, because they let bursts pass. All figures are in "
             f"{html.escape(os.path.basename(os.path.abspath(run.out)))}/summary.json.</p>",
             main_table(run, table, measures), failures(run)]
    if measures:
        parts += [meanings(measures), verdicts(run, table, measures)]
    parts += charts(run, table, measures, styles)
    return "\n".join(parts) + "</section>"


# --- tables -------------------------------------------------------------------

def main_table(run: Run, table: Rows, measures: Sequence[Measure]) -> str:
    """The table of all figures. A cell that failed or waits is counted in its row."""
    head = ["", "hosts' qdisc", "seeds"] + [measure.label() for measure in measures]
    rows = []
    for cc in run.ccs():
        row = table.get(cc, {})
        rows.append(tr([cc, qdisc_text(run, cc), seeds_text(run, cc)]
                       + [show(row.get(measure.path)) for measure in measures], run.own(cc)))
    return (f'<div class="scroll"><table><thead>{tr(head)}</thead><tbody>{"".join(rows)}</tbody>'
            "</table></div><p>Bold rows use modules of this project. Figures are medians over the "
            "seeds (min..max)." + (" dctcp needs a switch that marks packets, and has one."
                                   if any(kernel_cc(run.scenario, cc) == "dctcp"
                                          for cc in run.ccs()) else "") + "</p>")


def tr(texts: Sequence[str], bold: bool = False) -> str:
    """A row of a table, escaped; the first column has headings."""
    cells = [f"<td>{html.escape(text)}</td>" for text in texts[1:]]
    return (f"<tr{' class=bold' if bold else ''}><th scope=row>{html.escape(texts[0])}</th>"
            + "".join(cells) + "</tr>")


def qdisc_text(run: Run, cc: str) -> str:
    """The kind of the hosts' qdisc."""
    return host_qdisc(run.scenario, cc).split()[0].replace("timely", "sch_timely")


def seeds_text(run: Run, cc: str) -> str:
    """The number of seeds that finished, and of those that failed or did not finish."""
    rest = " waiting" if run.running else " not run"
    counts = [(sum(fig["cc"] == cc for fig in run.cells), ""),
              (sum(cell[0] == cc for cell in run.failures), " failed"),
              (sum(cell[0] == cc for cell in run.waiting), rest)]
    return ", ".join(f"{count}{text}" for count, text in counts if count)


def failures(run: Run) -> str:
    """The cells that failed, with the reasons."""
    lines = [f"{cc}, seed {seed}: {error}" for cc, seed, error in run.failures]
    if run.more_failed:
        lines.append(f"{run.more_failed} cells, whose names the summary does not have")
    return "<p>Failed:</p><ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + \
        "</ul>" if lines else ""


def meanings(measures: Sequence[Measure]) -> str:
    """What the figures mean."""
    return "<dl>" + "".join(f"<dt>{html.escape(measure.title)}</dt>"
                            f"<dd>{html.escape(measure.meaning)}</dd>"
                            for measure in measures) + "</dl>"


# --- gains and losses ---------------------------------------------------------

def best_peer(run: Run, table: Rows, measure: Measure) -> str:
    """The peer with the best median of a figure; empty if no peer has the figure."""
    peers = [cc for cc, row in table.items() if not run.own(cc) and measure.path in row]
    return max(peers, default="",
               key=lambda cc: float(measure.better * table[cc][measure.path]["median"]))


def verdicts(run: Run, table: Rows, measures: Sequence[Measure]) -> str:
    """The table of gains and losses: each row of this project beside the best peer."""
    own = [cc for cc in table if run.own(cc)]
    rows, lost = [], []
    for measure in measures:
        peer = best_peer(run, table, measure)
        if not (peer and own and measure.better):
            continue
        theirs = table[peer][measure.path]
        row, losers = [measure.title, f"{peer}: {measure.show(theirs)}"], []
        for cc in own:
            if not (mine := table[cc].get(measure.path)):
                row.append("-")
                continue
            word = verdict(mine, theirs, measure.better)
            row.append(f"{word}: {measure.show(mine)}"
                       + difference(mine["median"], theirs["median"]))
            losers += [cc] if word == "lost" else []
        rows.append(tr(row))
        if losers:
            lost.append(f"{measure.title} ({peer} is better than {' and '.join(losers)})")
    if not rows:
        return ""
    told = f"Lost: {'; '.join(lost)}." if lost else "No peer is clearly better in any row."
    return (f'<h3>Gains and losses</h3><div class="scroll"><table><thead>'
            f'{tr(["", "best peer", *own])}</thead><tbody>{"".join(rows)}</tbody></table></div>'
            f"<p>{html.escape(told)} Where the ranges over the seeds overlap, there is no clear "
            "difference. The best peer of one row may be worse in other rows.</p>")
