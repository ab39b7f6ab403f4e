#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Make tables from the raw results of ack.sh.

    ack_report.py DIR                           raw.jsonl -> raw.json, table.md,
                                                one file for each table
    ack_report.py --profile RAW KALLSYMS HZ     perf's samples on standard input -> text

The cost of a lane in a run is the median over the run's chunks of the mean cycles
for an ACK. Tables show the median over the runs. A ratio is computed in each run,
to bbr in the same run; tables show the median.
"""
import collections
import json
import statistics
import sys

from report import environment, markdown, read_runs, read_samples, spread, write_tables

TITLES = {
    "one": "One flow of 10 Gb/s each",
    "many": "1000 flows each, 10 Gb/s in all",
    "cold": "The same, caches emptied before each ACK",
}
STAMPS = {0: "", 1: "", 2: ", hardware timestamps"}
QDISCS = ("fq", "sch_timely")


def name(lane):
    """The name of a lane in tables."""
    if lane["cc"] != "timely":
        return lane["cc"]
    return f"timely over {QDISCS[lane['dev']]}{STAMPS[lane['stamps']]}"


def mean(lane, what):
    """Cycles of an interval of the kind `what` (enum ab_what); None if there was none."""
    means = [c[what]["sum"] / c[what]["timed"] for c in lane["chunks"] if what in c]
    return statistics.median(means) if means else None


def percentile(lanes, what, key):
    values = [c[what][key] for lane in lanes for c in lane["chunks"] if what in c]
    return f"{statistics.median(values):.0f}" if values else "-"


class Results:
    """Runs by case; a run is a dictionary of lanes by name."""

    def __init__(self, lines):
        self.cases = collections.defaultdict(list)
        for line in lines:
            lanes = {name(lane): lane for lane in line["run"]["lanes"]}
            self.cases[line["case"]].append(lanes)

    def names(self, case):
        return list(self.cases[case][0]) if self.cases.get(case) else []

    def lanes(self, case, lane):
        return [run[lane] for run in self.cases[case]]

    def costs(self, case, lane, what="whole", less=None):
        """Cycles in each run; the difference to the lane `less` of the same run, if given."""
        costs = {}
        for number, run in enumerate(self.cases.get(case, [])):
            cost = mean(run[lane], what)
            if cost is not None:
                costs[number] = cost - (mean(run[less], what) if less else 0)
        return costs

    def ratio(self, case, lane, peer="bbr", what="whole"):
        ours, theirs = self.costs(case, lane, what), self.costs(case, peer, what)
        both = [ours[i] / theirs[i] for i in ours if i in theirs]
        return f"{statistics.median(both):.3f}" if both else "-"


def cost_table(results, case):
    """Costs of an ACK that completes a segment, and of one that does not."""
    half = case + "-half"
    peers = results.names(case)
    rows = []
    for lane in peers:
        lanes = results.lanes(case, lane)
        row = [lane, spread(results.costs(case, lane)),
               percentile(lanes, "whole", "p50"), percentile(lanes, "whole", "p99")]
        row.append(spread(results.costs(case, lane, less="reno")) if "reno" in peers else "-")
        row.append(results.ratio(case, lane) if "bbr" in peers else "-")
        if half in results.cases:
            row += [spread(results.costs(half, lane, "part")),
                    results.ratio(half, lane, what="part") if "bbr" in peers else "-"]
        rows.append(row)
    head = ["", "cycles per ACK", "p50", "p99", "more than reno", "to bbr"]
    if half in results.cases:
        head += ["completes no segment", "to bbr"]
    return markdown(head, rows)


def parts_table(results, case):
    rows = []
    for lane in results.names(case):
        probe, hooks = (results.costs(case, lane, what) for what in ("probe", "hooks"))
        both = {i: probe[i] + hooks[i] for i in probe if i in hooks}
        rows.append([lane, spread(probe), spread(hooks), spread(both)])
    return markdown(["", "tcp_probe", "hooks", "both"], rows)


def tables(results):
    """File name, heading and text of each table."""
    made = []
    for case, title in TITLES.items():
        if results.names(case):
            made.append((case, title, cost_table(results, case)))
    for case, title in TITLES.items():
        if results.names(case + "-parts"):
            made.append((case + "-parts", "Parts of an ACK, timed separately: " + title[0].lower() + title[1:],
                         parts_table(results, case + "-parts")))
    return made


def profile(raw, kallsyms, hz):
    """Print cycles per ACK by function, from samples of the guest's kernel (perf script
    -F comm,ip, on standard input). Sending of segments and the bench's own work are
    among them."""
    with open(raw, encoding="ascii") as lines:
        run = json.loads(list(lines)[-1])["run"]
    acks = sum(lane["processed"] for lane in run["lanes"])
    cycles = float(environment()["mhz"]) * 1e6 / hz / acks
    counter = collections.Counter(function for function, _ in read_samples(kallsyms))
    print(f"{sum(counter.values())} samples, {acks} ACKs: cycles per ACK")
    for function, n in counter.most_common(60):
        print(f"{n * cycles:8.1f}  {function}")


def main():
    if sys.argv[1] == "--profile":
        profile(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    out = sys.argv[1]
    runs, facts = read_runs(out)
    write_tables(out, ["# What an ACK costs", "",
                       "TSC cycles of tcp_v4_do_rcv(), median (min..max) of runs."],
                 tables(Results(runs)), facts)


if __name__ == "__main__":
    main()
