# SPDX-License-Identifier: GPL-2.0
"""lab report: prints a run's tables, and writes tables and plots into the run's directory."""
import json
import os
from collections.abc import Sequence

from . import slowdown
from .common import Figures, LabError, Scenario
from .plots import make_plots
from .results import carries_gbit, compare, figures
from .store import load_raw, load_summary
from .tables import as_markdown, as_text, columns_of, decile_rows, event_rows, grid, table_of


def write_report(out: str) -> None:
    """Make everything from the raw results in the directory of a run."""
    summary = load_summary(out)
    scenario = summary["scenario"]
    raws = [load_raw(out, cell["cc"], cell["seed"]) for cell in summary["cells"]]
    if not raws:
        raise LabError(f"no cell of {out} succeeded: there is nothing to report")
    cells = [figures(scenario, raw) for raw in raws]
    compare(scenario, cells)
    table = table_of(slowdown.with_ideals(scenario, cells), columns_of(scenario))
    rows = grid(table, columns_of(scenario))
    head, note = f"{summary['name']}: {scenario.get('title', '')}", note_of(scenario)
    print(f"{head}\n{note}\n\n{as_text(rows)}")
    write(out, "table.md", f"# {head}\n\n{as_markdown(rows)}\n\n{note}.\n")
    write(out, "table.json", json.dumps(table, indent=1))
    if events := event_rows(cells):
        print(f"\n{as_text(events)}")
        write(out, "events.md", f"# {head}\n\n{as_markdown(events)}\n")
    if text := slowdown_text(scenario, cells):
        write(out, "slowdown.md", f"# {head}\n\n{text}")
    make_plots(out, scenario, raws, cells)


def slowdown_text(scenario: Scenario, cells: Sequence[Figures]) -> str:
    """The slowdowns by deciles of the size, for each group of cells with the same messages."""
    text = ""
    for name, mine in slowdown.groups(scenario, cells).items():
        ratios, times = decile_rows(mine + slowdown.ideal_cells(name, mine))
        text += (f"## Load {name}\n\n" if name else "") + \
            "Each column has a tenth of the messages, by rising size. Slowdown, mean / p50 / " \
            f"p99; several seeds: medians.\n\n{as_markdown(ratios)}\n\n" \
            f"Mean completion time, us:\n\n{as_markdown(times)}\n\n"
    return text.rstrip("\n") + "\n" if text else ""


def note_of(scenario: Scenario) -> str:
    """The window of a scenario and the capacity of its links, as text."""
    run = scenario["run"]
    return (f"{run['warmup_ms']} ms of warm-up, then {run['measure_ms']} ms measured; "
            f"the links carry at most {carries_gbit(scenario):.2f} Gb/s of payload; "
            "several seeds: median (min..max)")


def write(out: str, name: str, text: str) -> None:
    """Write a file in the directory of a run."""
    with open(os.path.join(out, name), "w", encoding="ascii") as file:
        file.write(text)
