#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Generate the documents about the paper's figures and about hostile networks.

The input is reproductions.toml, which has texts and names of scenarios, and results/. A figure is
one section of a document; its results come from one or more scenarios.

    reproductions.py names                  print the names of all figures
    reproductions.py scenarios [FIGURE...]  print the scenarios of these figures, or of all
    reproductions.py missing [FIGURE...]    print those scenarios that have no results
    reproductions.py page NAME              print the document Documentation/NAME.md
"""
import os
import statistics
import sys
import tomllib

from misses import sentence
from recorded import TOP, summary_path, values

HERE = os.path.dirname(os.path.realpath(__file__))
COMMON = """
`make reproductions` runs what is missing in [results/](../results/README.md) and writes this page; `make reproductions
FIGURES="table1 loss"` runs these figures again, and a wrong name prints all names. The results in `ack-path`,
`limited`, `many`, `qdisc`, `reorder` and `table1` are of commit 695ed93, those in `reverse` of 96359a0, in `coexist` of 8b1b047,
in `pfc` and `route` of bdb02c2, in `clos` and `clos-incast` of 2f95d14, and all others of 2366433 or older where no other commit is
named. [The testbed](../tools/lab/README.md) runs in virtual time. RTT is the round-trip time of a small UDP packet that is sent
through the bottleneck and back, 17 us in the idle testbed. Several seeds are shown as median (min..max). Gb/s are
payload, of which a 20 Gb/s port carries 19.13 Gb/s. [Results](results.md#columns) explains the other columns. `fq`
and `sch_timely` are the hosts' qdiscs under `tcp_timely`. [Parameters](parameters.md) lists the parameters,
[deviations](deviations.md) says where the design differs from the papers.
"""
INTRO = {
    "reproductions": """# Reproductions of the TIMELY paper's figures

This page has each figure of the TIMELY paper (SIGCOMM'15) beside what this project measures, with the reason where they
differ. Most figures come out as in the paper, with shorter RTTs where the default rule is measured. Not reproduced:
full goodput with a target of 500 us (Fig. 9), the p99 of few connections with the paper's rule (Fig. 17), the gain of
hyperactive increase (Fig. 18), short calls over a Clos (Figs. 19 to 21), where the baseline is another one, and the
paper's goodput with the paper's rule under fq (Figs. 9, 15 and 17). In the tables the column `the paper` has what the
paper's text or tables say; it is empty where the paper has a plot only. On pages of their own: [hardware
timestamps](reproductions-timestamps.md) (Figs. 1, 2, 11 and 12 in detail) and [On-Ramp](reproductions-onramp.md)
(NSDI'21).
""" + COMMON,
    "hostile-networks": """# Hostile networks

This page shows what timely and its peers (bbr, cubic, dctcp, vegas) do where packets are lost, reordered or policed,
where routes change, ACKs are late, or other congestion controls use the same queue. timely keeps its short queues where
packets are lost or reordered and where routes change. It loses beside loss-based congestion control in the same queue,
where ports pause for 100 us or more of each ms, where ACKs are held back for 200 us, where links are policed, after a
blackout (to bbr), and with 1000 connections under fq. Unless a section says otherwise, the network is the testbed of
Table 1: 40 connections of ten hosts into one 20 Gb/s port with a buffer of 2 MB. Rows `timely` are under sch_timely,
rows `timely-fq` under fq, and peers under fq; in [results](results.md#columns) `timely` is under fq.
""" + COMMON,
}


def read_figures():
    with open(os.path.join(HERE, "reproductions.toml"), "rb") as file:
        return tomllib.load(file)["figure"]


def chosen(figures, names):
    """The figures with these names; all figures without names."""
    known = {fig["name"] for fig in figures}
    for name in names:
        if name not in known:
            sys.exit(f"reproductions: no figure '{name}'; the figures are: "
                     f"{', '.join(sorted(known))}")
    return [fig for fig in figures if not names or fig["name"] in names]


def scenarios(figures):
    return list(dict.fromkeys(name for fig in figures for name in fig["scenarios"]))


def number(value):
    if isinstance(value, int) or value >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def entry(where, path):
    """Text of a figure: median (min..max) over the seeds. where: "SCENARIO:CC", path: "rtt_us.p99"."""
    found = values(where, path)
    if not found:
        return "-"
    texts = [number(f(found)) for f in (statistics.median, min, max)]
    return texts[0] if texts[1] == texts[2] else "{} ({}..{})".format(*texts)


def comparison(fig):
    """The table of a figure: a row for each quantity, columns for the paper and for measured cells."""
    columns = fig["columns"]
    lines = ["| | the paper | " + " | ".join(columns) + " |",
             "|---|---:" + "|---:" * len(columns) + "|"]
    for row in fig["rows"]:
        found = [entry(where.format(x=row.get("x", "")), row["figure"])
                 for where in columns.values()]
        lines.append(f"| {row['what']} | {row.get('paper', '')} | " + " | ".join(found) + " |")
    return lines


def scenario_table(scenario):
    """The rows of results/SCENARIO/table.md."""
    with open(os.path.join(TOP, "results", scenario, "table.md"), encoding="ascii") as file:
        return [line.rstrip("\n") for line in file if line.startswith("|")]


def section(fig):
    """The lines of a figure's section: verdict, description, tables, explanation, plots."""
    links = ", ".join(f"[{name}](../results/{name}/)" for name in fig["scenarios"])
    lines = ["", f"## {fig['title']}", "", fig["about"].strip(), "", f"Results: {links}.", ""]
    if "verdict" in fig:
        lines[3:3] = [f"**Verdict.** {fig['verdict'].strip()}", ""]
    missing = [name for name in fig["scenarios"] if not os.path.exists(summary_path(name))]
    if missing:
        lines += [f"Not run: `make reproductions FIGURES={fig['name']}`."]
    if "rows" in fig and len(missing) < len(fig["scenarios"]):
        lines += comparison(fig)
    for scenario in fig.get("tables", []):
        if scenario not in missing:
            lines += scenario_table(scenario)
    for missed in filter(None, map(sentence, fig["scenarios"])):
        lines += ["", missed]
    if "why" in fig:
        lines += ["", fig["why"].strip()]
    plots = [path for path in fig.get("plots", [])
             if os.path.exists(os.path.join(TOP, "results", path))]
    return lines + [""] * bool(plots) + [f"![{path}](../results/{path})" for path in plots]


def page(figures, name):
    lines = [INTRO[name].rstrip("\n")]
    for fig in figures:
        if fig.get("page", "reproductions") == name:
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
    elif what == "page" and len(names) == 1 and names[0] in INTRO:
        sys.stdout.write(page(figures, names[0]))
    else:
        sys.exit(__doc__)


main()
