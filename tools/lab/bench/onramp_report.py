#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Make tables from the raw results of onramp.sh.

    onramp_report.py DIR    raw.jsonl -> raw.json, table.md, one file for each table

The cost in a run is the mean of the middle half of its sorted samples. Tables show
the median over the repeats. A ratio is computed in each repeat, with On-Ramp to
without; tables show the median.
"""
import collections
import statistics
import sys

from report import markdown, read_runs, spread, write_tables

CASES = {"one": "1 flow", "polls": "1 flow, 10 packets a poll", "many": "100 flows",
         "cold": "100 flows, cold caches"}
GRO = ("off", "on")
FLOOD = 1_000_000  # packets per second


class Invalid(Exception):
    """The number of OR-ACKs shows that a run did not measure what it should."""


def counted(line, side):
    """Increase of On-Ramp's counters during the run."""
    before, after = (status["counters"] for status in line[side])
    return {name: after[name] - before[name] for name in after}


def check(line):
    sender, receiver = counted(line, "sender"), counted(line, "receiver")
    if line["mode"] != "on":
        if receiver["sent"] or sender["received"]:
            raise Invalid(f"OR-ACKs were sent or received in mode {line['mode']}")
        return
    if sender["accepted"] < 0.95 * receiver["sent"] or receiver["send_errors"]:
        raise Invalid(f"OR-ACKs were not accepted: {sender}, {receiver}")
    if sender["flooded"]:
        raise Invalid(f"the limit of bad OR-ACKs dropped {sender['flooded']} OR-ACKs")


class Results:
    """Cells by case, GRO and mode; each is a dictionary of runs by repeat."""

    def __init__(self, lines):
        self.cells = collections.defaultdict(dict)
        for line in lines:
            check(line)
            cell = line["case"], line["run"]["gro"], line["mode"]
            self.cells[cell][line["repeat"]] = line["run"]

    def cases(self):
        return [(case, gro) for case in CASES for gro in (0, 1)
                if (case, gro, "on") in self.cells]

    def costs(self, case, gro, mode, parts):
        """Cycles per packet of data, by repeat."""
        return {repeat: sum(run[part]["middle"] for part in parts) / run["packets"]
                for repeat, run in self.cells[case, gro, mode].items()}

    def single(self, case, what):
        """Cycles of one packet, by repeat. Without GRO only: GRO merges packets."""
        return {repeat: run[what]["middle"]
                for repeat, run in self.cells.get((case, 0, "on"), {}).items()}

    def sent(self, case):
        """Cycles to send an OR-ACK: the additional work after the poll, by repeat."""
        runs = self.cells[case, 0, "on"]
        without = self.cells[case, 0, "off"]
        return {repeat: (run["after"]["middle"] - without[repeat]["after"]["middle"]) *
                run["segments"] / run["orack"]["count"] for repeat, run in runs.items()}


def more(costs, without):
    return {repeat: costs[repeat] - without[repeat] for repeat in costs}


def ratio(costs, without):
    values = [costs[repeat] / without[repeat] for repeat in costs]
    return f"{statistics.median(values):.2f} ({min(values):.2f}..{max(values):.2f})"


def middle(costs):
    return f"{statistics.median(costs.values()):.0f}"


def sender_table(results):
    rows = []
    for case, gro in results.cases():
        off, on = (results.costs(case, gro, mode, ("send", "hear")) for mode in ("off", "on"))
        send_off, send_on = (results.costs(case, gro, mode, ("send",)) for mode in ("off", "on"))
        rows.append([CASES[case], GRO[gro], middle(off), middle(on), spread(more(on, off)),
                     ratio(on, off), spread(more(send_on, send_off)), ratio(send_on, send_off)])
    return markdown(["", "GRO", "without", "with", "more", "ratio", "sending: more",
                     "sending: ratio"], rows)


def receiver_table(results):
    rows = []
    for case, gro in results.cases():
        off, idle, on = (results.costs(case, gro, mode, ("receive",))
                         for mode in ("off", "idle", "on"))
        read_off, read_on = (results.costs(case, gro, mode, ("receive", "read"))
                             for mode in ("off", "on"))
        rows.append([CASES[case], GRO[gro], middle(off), middle(idle), middle(on),
                     spread(more(on, off)), ratio(idle, off), ratio(on, off),
                     ratio(read_on, read_off)])
    return markdown(["", "GRO", "without", "no rule", "with", "more", "no rule: ratio",
                     "with: ratio", "with reading: ratio"], rows)


def single_table(results, mhz):
    sink = results.single("one", "sink")
    forged = results.single("one", "forged")
    forgotten = results.single("one", "old")
    rows = [["sent", spread(results.sent("one")), "-", "-"],
            ["accepted", spread(results.single("one", "orack")), "-", "-"],
            ["for comparison: an ACK of TCP", spread(results.single("one", "ack")), "-", "-"]]
    for name, costs in (
            ("for comparison: UDP to a socket that discards it", sink),
            ("replayed", results.single("many", "old")),
            ("replayed, of a packet that is no longer remembered", forgotten),
            ("forged", forged)):
        if not costs:
            continue
        extra = more(costs, sink)
        share = FLOOD * statistics.median(extra.values()) / (mhz * 1e6)
        rows.append([name, spread(costs), middle(extra), f"{100 * share:.1f} %"])
    return markdown(["an OR-ACK", "cycles", "more than UDP", "1 Mpps, of a CPU"], rows)


def main():
    out = sys.argv[1]
    runs, facts = read_runs(out)
    results = Results(runs)
    write_tables(out, ["# What On-Ramp costs", "", "TSC cycles, median (min..max) of runs; "
                       "of sender and receiver per packet of 1500 bytes."],
                 (("sender", "Sender", sender_table(results)),
                  ("receiver", "Receiver", receiver_table(results)),
                  ("single", "One OR-ACK", single_table(results, float(facts["mhz"])))), facts)


if __name__ == "__main__":
    main()
