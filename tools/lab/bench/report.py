#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Make tables and a plot from the raw results of bench.sh.

    report.py DIR                       raw.jsonl -> raw.json, table.md, cycles.svg
    report.py --profile RAW KALLSYMS    perf's samples on standard input -> text

A cell is one combination of flows, mode and qdisc. The cost in a repeat is the
median over its chunks of the cycles of all calls of the qdisc, for each enqueued
packet. Tables show the median over the repeats. A ratio is computed in each
repeat, to fq in the same repeat; tables show the median.
"""
import bisect
import collections
import json
import os
import platform
import statistics
import subprocess
import sys

# Highest ratio of sch_timely to fq that the project aims at, by the number of flows, all paced.
TARGETS = {1: 1.0, 100: 1.0, 1000: 0.8, 10_000: 0.6, 100_000: 0.35, 1_000_000: 0.25}
# Highest ratio of sch_trim to red.
TRIM_TARGET = 1.2
CALLS = ("enqueue", "dequeue", "empty")
TITLES = {
    "paced": "All flows paced, 100 Gb/s in all",
    "shuffled": "The same, flows in another order than they lie in memory",
    "unpaced": "No pacing, all flows backlogged",
}
ORDER = ("pfifo", "red", "trim", "fq", "fq-tuned", "timely")


def cost(run, calls=CALLS):
    """Cycles per packet. Interrupted calls, which are not timed, count with the mean of the timed."""
    def of_chunk(chunk):
        total = sum(chunk[c]["cycles"] * chunk[c]["calls"] / max(1, chunk[c]["timed"])
                    for c in calls)
        return total / chunk["enqueue"]["calls"]
    return statistics.median(of_chunk(chunk) for chunk in run["chunks"])


class Results:
    """Cells by flows, mode and qdisc; each is a dictionary of results by repeat."""

    def __init__(self, lines):
        self.cells = collections.defaultdict(dict)
        self.skipped = {}
        for line in lines:
            if "skipped" in line:
                self.skipped[line["skipped"]] = line["why"]
            else:
                key = line["run"]["flows"], line["mode"], line["qdisc"]
                self.cells[key][line["repeat"]] = line

    def costs(self, flows, mode, qdisc, calls=CALLS):
        repeats = self.cells.get((flows, mode, qdisc), {})
        return {r: cost(line["run"], calls) for r, line in repeats.items()}

    def ratio(self, flows, mode, qdisc, calls=CALLS, to="fq"):
        ours = self.costs(flows, mode, qdisc, calls)
        peer = self.costs(flows, mode, to, calls)
        both = [ours[r] / peer[r] for r in ours if r in peer]
        return statistics.median(both) if both else None

    def flows(self):
        return sorted({key[0] for key in self.cells} | set(self.skipped))

    def qdiscs(self):
        there = {key[2] for key in self.cells}
        return [q for q in ORDER if q in there]

    def slab(self, flows, qdisc):
        """Bytes of slab per flow; None below 10 000 flows, which do not fill their slabs."""
        repeats = self.cells.get((flows, "paced", qdisc), {})
        if flows < 10_000 or not repeats:
            return None
        return statistics.median(line["slab_bytes"] / flows for line in repeats.values())


def spread(costs):
    if not costs:
        return "-"
    values = list(costs.values())
    text = f"{statistics.median(values):.0f}"
    if len(values) > 1:
        text += f" ({min(values):.0f}..{max(values):.0f})"
    return text


def number(value, form="{:.2f}"):
    return "-" if value is None else form.format(value)


def verdict(flows, ratio):
    if ratio is None or flows not in TARGETS:
        return "-"
    return f"{TARGETS[flows]:.2f} {'ok' if ratio <= TARGETS[flows] else 'MISSED'}"


def trim_cells(ratio):
    if ratio is None:
        return ["-", "-"]
    return [f"{ratio:.2f}", f"{TRIM_TARGET:.2f} {'ok' if ratio <= TRIM_TARGET else 'MISSED'}"]


def markdown(head, rows):
    widths = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]

    def line(cells):
        return "| " + " | ".join(c.rjust(w) for c, w in zip(cells, widths)) + " |"
    rule = "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|"
    return "\n".join([line(head), rule] + [line(row) for row in rows])


def cost_table(results, mode, calls):
    qdiscs = results.qdiscs()
    compare = "timely" in qdiscs and "fq" in qdiscs
    head = ["flows"] + qdiscs + (["timely/fq"] if compare else [])
    goal = compare and mode != "unpaced"
    head += ["target"] if goal else []
    trim = "trim" in qdiscs and "red" in qdiscs
    head += ["trim/red", "target"] if trim else []
    rows = []
    for flows in results.flows():
        if flows in results.skipped:
            rows.append([str(flows), "left out: " + results.skipped[flows]] +
                        ["-"] * (len(head) - 2))
            continue
        costs = [results.costs(flows, mode, q, calls) for q in qdiscs]
        if not any(costs):
            continue
        ratio = results.ratio(flows, mode, "timely", calls)
        rows.append([str(flows)] + [spread(c) for c in costs] +
                    ([number(ratio)] if compare else []) +
                    ([verdict(flows, ratio)] if goal else []) +
                    (trim_cells(results.ratio(flows, mode, "trim", calls, "red")) if trim else []))
    return markdown(head, rows) if rows else None


def detail_table(results, mode):
    """Cycles by kind of call, and with the bench's own work (column all)."""
    rows = []
    for flows in results.flows():
        for qdisc in results.qdiscs():
            lines = list(results.cells.get((flows, mode, qdisc), {}).values())
            if not lines:
                continue
            parts = [statistics.median(cost(l["run"], (c,)) for l in lines) for c in CALLS]
            chunks = [c for l in lines for c in l["run"]["chunks"]]
            packets = sum(c["enqueue"]["calls"] for c in chunks)
            around = statistics.median(c["elapsed"] / c["enqueue"]["calls"] for c in chunks)
            rows.append([str(flows), qdisc] + [f"{p:.0f}" for p in parts] +
                        [f"{around:.0f}", f"{sum(c['empty']['calls'] for c in chunks) / packets:.2f}",
                         f"{sum(c['wakes'] for c in chunks) / packets:.4f}",
                         f"{max(l['run']['late_ns'] for l in lines)}"])
    head = ["flows", "qdisc", "enqueue", "dequeue", "NULL", "all", "NULLs/packet", "wake-ups/packet",
            "latest ns"]
    return markdown(head, rows) if rows else None


def memory_table(results):
    rows = []
    for flows in results.flows():
        sizes = [results.slab(flows, q) for q in ("fq", "timely")]
        if any(sizes):
            rows.append([str(flows)] + [number(s, "{:.0f}") for s in sizes])
    return markdown(["flows", "fq", "timely"], rows) if rows else None


def report(results):
    parts = ["# What a packet costs in the qdisc", "",
             "TSC cycles per packet for enqueue and dequeue, median (min..max) of repeats.", ""]
    for mode, title in TITLES.items():
        table = cost_table(results, mode, CALLS)
        if not table:
            continue
        parts += [f"## {title}", "", table, ""]
        if mode != "unpaced":
            parts += ["Without the calls that return NULL:", "",
                      cost_table(results, mode, CALLS[:2]), ""]
        parts += ["By kind of call:", "", detail_table(results, mode), ""]
    memory = memory_table(results)
    if memory:
        parts += ["## Memory of a flow", "", "Bytes of slab for each.", "", memory, ""]
    return "\n".join(parts)


def plot(results, path):
    """Plot cycles over the number of flows, both logarithmic, with a curve for each qdisc."""
    data, curves = [], []
    for qdisc in results.qdiscs():
        points = [(f, statistics.median(c.values())) for f in results.flows()
                  if (c := results.costs(f, "paced", qdisc))]
        if points:
            name = f"$q{len(data)}"
            data.append(f"{name} << END\n" + "\n".join(f"{x} {y}" for x, y in points) + "\nEND")
            curves.append(f"{name} using 1:2 with linespoints lw 2 title '{qdisc}'")
    if not curves:
        return
    script = ["set terminal svg size 720,480 background '#ffffff'", f"set output '{path}'",
              "set logscale xy", "set key top left", "set grid", "set xlabel 'flows'",
              "set format x '10^{%T}'",
              "set ylabel 'cycles per packet: enqueue, dequeue'"] + data
    script.append("plot " + ", ".join(curves))
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def environment():
    """A description of the machine that the figures were measured on."""
    with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
        facts = dict(map(str.strip, line.split(":", 1)) for line in cpuinfo if ":" in line)
    return {"processor": facts.get("model name"), "mhz": facts.get("cpu MHz"),
            "host": platform.release(), "processors": os.cpu_count(),
            "large_pages": os.environ.get("BENCH_LARGE_PAGES", "unknown")}


def read_runs(out):
    """The results in the directory out, and a description of the machine; keeps both in raw.json."""
    with open(f"{out}/raw.jsonl", encoding="ascii") as lines:
        runs = [json.loads(line) for line in lines]
    facts = environment()
    with open(f"{out}/raw.json", "w", encoding="ascii") as raw:
        json.dump({"environment": facts, "runs": runs}, raw, indent=1)
    return runs, facts


def write_tables(out, head, tables, facts):
    """Write a file for each table and one with all, and print that. tables: (file, title, table)"""
    text = head + [""]
    for file, title, table in tables:
        text += [f"## {title}", "", table, ""]
        with open(f"{out}/{file}.md", "w", encoding="ascii") as part:
            part.write(f"{title}\n\n{table}\n")
    text.append(", ".join(f"{key}: {value}" for key, value in facts.items()))
    with open(f"{out}/table.md", "w", encoding="ascii") as table:
        table.write("\n".join(text) + "\n")
    print("\n".join(text))


def read_symbols(kallsyms):
    symbols = []
    with open(kallsyms, encoding="ascii") as lines:
        for line in lines:
            address, kind, name = line.split()[:3]
            if kind in "tT":
                symbols.append((int(address, 16), name))
    return sorted(symbols)


def read_samples(kallsyms):
    """Yield function and offset of each sample of the guest's kernel (perf script
    -F comm,ip, on standard input)."""
    symbols = read_symbols(kallsyms)
    starts = [s[0] for s in symbols]
    for line in sys.stdin:
        words = line.split()
        if len(words) < 2 or not words[0].startswith("linux"):
            continue
        address = int(words[-1], 16)
        index = bisect.bisect_right(starts, address) - 1
        offset = address - starts[index] if index >= 0 else 1 << 20
        if offset < 0x10000:
            yield symbols[index][1], offset


def profile(raw, kallsyms):
    """Print the share of samples by function, then by instruction. The bench's own work is included."""
    functions, places = collections.Counter(), collections.Counter()
    for function, offset in read_samples(kallsyms):
        functions[function] += 1
        places[f"{function}+{offset:#x}"] += 1
    total = max(1, sum(functions.values()))
    print(f"{total} samples of the guest's kernel, by function and by place")
    for counter, shown in (functions, 25), (places, 25):
        for name, n in counter.most_common(shown):
            print(f"  {100 * n / total:5.1f} %  {name}")
        print()
    with open(raw, encoding="ascii") as lines:
        results = Results([json.loads(list(lines)[-1])])
    for mode in TITLES:
        table = detail_table(results, mode)
        if table:
            print(table)


def main():
    if sys.argv[1] == "--profile":
        profile(*sys.argv[2:])
        return
    out = sys.argv[1]
    with open(f"{out}/raw.jsonl", encoding="ascii") as lines:
        cells = [json.loads(line) for line in lines]
    with open(f"{out}/raw.json", "w", encoding="ascii") as raw:
        json.dump({"environment": environment(), "cells": cells}, raw, indent=1)
    results = Results(cells)
    text = report(results) + "\n" + ", ".join(
        f"{name}: {value}" for name, value in environment().items()) + "\n"
    with open(f"{out}/table.md", "w", encoding="ascii") as table:
        table.write(text)
    print(text)
    plot(results, f"{out}/cycles.svg")


if __name__ == "__main__":
    main()
