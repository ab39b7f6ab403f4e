#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The papers' figures beside ours: Documentation/paper.md, from paper.toml and results/.

    paper.py names                 of all figures
    paper.py scenarios [NAME...]   that those figures are made from
    paper.py missing [NAME...]     of those, the ones without results
    paper.py page                  the document
"""
import functools
import json
import os
import statistics
import sys
import tomllib

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "../.."))
INTRO = """# The papers' figures, and hostile networks

Made by `make paper`: runs what is missing in `results/` and writes this page; `make paper
FIGURES="fig9 table1"` runs those again. Figures are those of
[the testbed](../tools/lab/README.md) in virtual time: RTT is that of a small UDP ping-pong
through the bottleneck, several seeds are median (min..max), goodput is payload, of which a
20 Gb/s port carries 19.13 Gb/s.
`fq` and `sch_timely` are the hosts' qdiscs under `tcp_timely`. What the parameters are is in
[parameters](parameters.md), where the design differs from the papers' in
[deviations](deviations.md).
"""


def read_figures():
    with open(os.path.join(HERE, "paper.toml"), "rb") as file:
        return tomllib.load(file)["figure"]


def chosen(figures, names):
    known = {fig["name"] for fig in figures}
    for name in names:
        if name not in known:
            sys.exit(f"paper: no figure '{name}': {', '.join(sorted(known))}")
    return [fig for fig in figures if not names or fig["name"] in names]


def scenarios(figures):
    return list(dict.fromkeys(name for fig in figures for name in fig["scenarios"]))


def summary_path(scenario):
    return os.path.join(TOP, "results", scenario, "summary.json")


@functools.cache
def cells(scenario):
    try:
        with open(summary_path(scenario), encoding="ascii") as file:
            return json.load(file)["cells"]
    except FileNotFoundError:
        return []


def number(value):
    if isinstance(value, int) or value >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def entry(where, path):
    """@where: "SCENARIO:CC"; the figure's median and range over the seeds."""
    scenario, _, cc = where.partition(":")
    values = []
    for cell in cells(scenario):
        value = cell if cell["cc"] == cc else None
        for key in path.split("."):
            value = value.get(key) if value else None
        if value is not None:
            values.append(value)
    if not values:
        return "-"
    texts = [number(f(values)) for f in (statistics.median, min, max)]
    return texts[0] if texts[1] == texts[2] else "{} ({}..{})".format(*texts)


def comparison(fig):
    """Rows are what is compared; columns the paper, ours, others."""
    columns = fig["columns"]
    lines = ["| | the paper | " + " | ".join(columns) + " |",
             "|---|---:" + "|---:" * len(columns) + "|"]
    for row in fig["rows"]:
        found = [entry(where.format(x=row.get("x", "")), row["figure"])
                 for where in columns.values()]
        lines.append(f"| {row['what']} | {row.get('paper', '')} | " + " | ".join(found) + " |")
    return lines


def own_table(scenario):
    with open(os.path.join(TOP, "results", scenario, "table.md"), encoding="ascii") as file:
        return [line.rstrip("\n") for line in file if line.startswith("|")]


def section(fig):
    lines = ["", f"## {fig['title']}", "", fig["about"].strip(), ""]
    missing = [name for name in fig["scenarios"] if not os.path.exists(summary_path(name))]
    if missing:
        lines += [f"Not run: `make paper FIGURES={fig['name']}`."]
    if "rows" in fig and len(missing) < len(fig["scenarios"]):
        lines += comparison(fig)
    for scenario in fig.get("tables", []):
        if scenario not in missing:
            lines += own_table(scenario)
    if "why" in fig:
        lines += ["", fig["why"].strip()]
    plots = [path for path in fig.get("plots", [])
             if os.path.exists(os.path.join(TOP, "results", path))]
    return lines + [""] * bool(plots) + [f"![{path}](../results/{path})" for path in plots]


def page(figures):
    lines = [INTRO.rstrip("\n")]
    for fig in figures:
        lines += section(fig)
    return "\n".join(lines) + "\n"


def main():
    what, names = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    figures = read_figures()
    if what == "names":
        print("\n".join(fig["name"] for fig in figures))
    elif what == "scenarios":
        print("\n".join(scenarios(chosen(figures, names))))
    elif what == "missing":
        print("\n".join(name for name in scenarios(chosen(figures, names))
                        if not os.path.exists(summary_path(name))))
    elif what == "page":
        sys.stdout.write(page(figures))
    else:
        sys.exit(__doc__)


main()
