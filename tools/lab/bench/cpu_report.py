#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Make tables from the raw results of cpu.sh.

    cpu_report.py DIR                                   raw.jsonl -> raw.json, table.md,
                                                        one file for each table
    cpu_report.py --profile RAW KALLSYMS HZ WARM_MS     perf's samples on standard input
                                                        -> text

The cost in a run is the median over the run's parts of the cycles per byte of
payload. Tables show the median over the repeats. A ratio is computed in each
repeat, to cubic over fq in the same repeat; tables show the median.
"""
import collections
import json
import statistics
import sys

from report import environment, markdown, read_runs, read_samples, write_tables

BASE = "cubic/fq"
# Highest ratio of a sender to cubic over fq that the project aims at.
TARGET = 1.1
SENDER = ("write", "timer", "done", "ack")
RECEIVER = ("receive", "read")
# TCP's timers are those of the sender's qdisc; NDP's are those of the receiver's pulls.
NDP_SENDER = ("write", "done", "ack")
NDP_RECEIVER = ("receive", "read", "timer")
QDISCS = {"timely": "sch_timely"}


def name(lane):
    """The name of a lane in tables."""
    lane, _, mtu = lane.partition("@")
    cc, qdisc, segment, split = (lane.split("/") + ["", ""])[:4]
    text = f"{cc} over {QDISCS.get(qdisc, qdisc)}"
    if segment not in ("", "auto"):
        text += ", large segments" if int(segment) > 60000 else f", segments of {segment}"
    if split not in ("", "0"):
        text += ", split" if split == "auto" else f", split {split}"
    return text + (f", MTU {mtu}" if mtu else "")


def cycles(run, chunk, part):
    """Cycles of a part, without those of reading the TSC and of the empty steps of the clock.
    Intervals in which the host took the processor away count with the mean of the others."""
    total, pieces, lost = chunk[part]
    total -= pieces * run["piece_cycles"]
    total *= 1 + lost / max(1, pieces)
    if part == "timer":
        total -= chunk["steps"] * run["step_cycles"]
    return max(total, 0)


def cost(run, parts):
    """Cycles per byte of payload."""
    side = "bytes_sent" if parts[0] in SENDER else "bytes_read"
    return statistics.median(sum(cycles(run, c, p) for p in parts) / c[side]
                             for c in run["chunks"])


def number(run, key, side="bytes_sent"):
    """Events per megabyte of payload."""
    return 1e6 * sum(c[key] for c in run["chunks"]) / sum(c[side] for c in run["chunks"])


class Results:
    """Runs by link, flows and lane; each is a dictionary of runs by repeat."""

    def __init__(self, lines):
        self.cells = collections.defaultdict(dict)
        for line in lines:
            cell = line["link_gbit"], line["flows"], line["lane"]
            self.cells[cell][line["repeat"]] = line["run"]
        self.lanes = list(dict.fromkeys(line["lane"] for line in lines if line["repeat"] == 1))
        self.places = list(dict.fromkeys((line["link_gbit"], line["flows"]) for line in lines))

    def costs(self, place, lane, parts):
        if lane.startswith("ndp/"):
            parts = {SENDER: NDP_SENDER, RECEIVER: NDP_RECEIVER}.get(parts, parts)
        return {repeat: cost(run, parts) for repeat, run in self.cells[*place, lane].items()}

    def ratios(self, place, lane, parts):
        """Ratios to cubic over fq, in each repeat."""
        ours, base = self.costs(place, lane, parts), self.costs(place, BASE, parts)
        return [ours[repeat] / base[repeat] for repeat in ours if repeat in base]

    def least_ratio(self, place, lane, parts):
        """Ratio of the cheapest run to the cheapest run of cubic over fq."""
        ours, base = self.costs(place, lane, parts), self.costs(place, BASE, parts)
        return min(ours.values()) / min(base.values())

    def middle(self, place, lane, figure):
        return statistics.median(figure(run) for run in self.cells[*place, lane].values())


def spread(values, form):
    if not values:
        return "-"
    text = form.format(statistics.median(values))
    if len(values) > 1:
        text += f" ({form.format(min(values))}..{form.format(max(values))})"
    return text


def verdict(ratios):
    return "ok" if ratios and statistics.median(ratios) <= TARGET else "MISSED"


def ratio_table(results, parts, goal):
    """Cycles per byte of cubic over fq, and the other lanes' ratios to that."""
    others = [lane for lane in results.lanes if lane != BASE]
    rows = []
    for place in results.places:
        row = [str(place[0]), str(place[1]),
               spread(list(results.costs(place, BASE, parts).values()), "{:.3f}")]
        for lane in others:
            ratios = results.ratios(place, lane, parts)
            row.append(spread(ratios, "{:.2f}"))
            if goal and lane.startswith("timely/"):
                row[-1] += f" {verdict(ratios)}"
        rows.append(row)
    return markdown(["Gb/s", "flows", f"{name(BASE)}, cycles per byte"] +
                    [name(lane) for lane in others], rows)


def least_table(results):
    """Ratios of the cheapest runs, sender / receiver. Other load disturbs these least."""
    others = [lane for lane in results.lanes if lane != BASE]
    rows = []
    for place in results.places:
        rows.append([str(place[0]), str(place[1])] + [
            " / ".join(f"{results.least_ratio(place, lane, parts):.2f}"
                       for parts in (SENDER, RECEIVER)) for lane in others])
    return markdown(["Gb/s", "flows"] + [name(lane) for lane in others], rows)


def parts_table(results):
    """Cycles per 1000 bytes, by part."""
    rows = []
    for place in results.places:
        for lane in results.lanes:
            rows.append([str(place[0]), str(place[1]), name(lane)] + [
                f"{1000 * statistics.median(results.costs(place, lane, (part,)).values()):.0f}"
                for part in SENDER + RECEIVER])
    return markdown(["Gb/s", "flows", "", "write", "timers", "freeing", "ACKs", "receive", "read"],
                    rows)


def rate(run):
    """Payload that was read, Gb/s of virtual time."""
    return 8 * sum(c["bytes_read"] for c in run["chunks"]) / sum(c["ns"] for c in run["chunks"])


def size(run):
    """Mean payload of a packet to the driver, KB."""
    return 1000 / number(run, "packets")


def timers(run):
    return 1e6 * run["traced"]["timers"] / run["traced"]["bytes_sent"]


def counts_table(results):
    """What happens for each megabyte: events explain the cost."""
    figures = ((rate, "{:.2f}"), (size, "{:.1f}"),
               (lambda run: number(run, "packets"), "{:.0f}"),
               (timers, "{:.0f}"),
               (lambda run: number(run, "acks"), "{:.0f}"),
               (lambda run: number(run, "interrupts"), "{:.0f}"),
               (lambda run: number(run, "rx_interrupts", "bytes_read"), "{:.0f}"),
               (lambda run: number(run, "writes"), "{:.0f}"),
               (lambda run: number(run, "reads", "bytes_read"), "{:.0f}"))
    rows = []
    for place in results.places:
        for lane in results.lanes:
            rows.append([str(place[0]), str(place[1]), name(lane)] + [
                form.format(results.middle(place, lane, figure)) for figure, form in figures])
    return markdown(["Gb/s", "flows", "", "payload Gb/s", "KB per packet", "packets", "timers",
                     "ACKs", "interrupts", "receiver's", "writes", "reads"], rows)


def profile(raw, kallsyms, hz, warm_ms):
    """Print cycles per 1000 bytes by function, from samples of the guest's kernel (perf script
    -F comm,ip, on standard input). The bench's own work is among them."""
    with open(raw, encoding="ascii") as lines:
        run = json.loads(list(lines)[-1])["run"]
    measured = sum(c["bytes_read"] for c in run["chunks"] + [run["traced"]])
    warm = warm_ms * 1e-3 * rate(run) * 1e9 / 8
    cycles_of_sample = float(environment()["mhz"]) * 1e6 / hz / (measured + warm) * 1000
    counter = collections.Counter(function for function, _ in read_samples(kallsyms))
    print(f"{sum(counter.values())} samples: cycles per 1000 bytes")
    for function, n in counter.most_common(45):
        print(f"{n * cycles_of_sample:8.1f}  {function}")


def main():
    if sys.argv[1] == "--profile":
        profile(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        return
    out = sys.argv[1]
    runs, facts = read_runs(out)
    results = Results(runs)
    tables = [("parts", "Cycles per 1000 bytes, by part", parts_table(results)),
              ("counts", "Events per megabyte", counts_table(results))]
    if BASE in results.lanes:
        tables = [("sender", "Sender: ratio to cubic over fq",
                   ratio_table(results, SENDER, goal=True)),
                  ("receiver", "Receiver: ratio to cubic over fq",
                   ratio_table(results, RECEIVER, goal=False)),
                  ("least", "Cheapest runs: ratio to cubic over fq, sender / receiver",
                   least_table(results))] + tables
    write_tables(out, ["# What a byte costs a sender and a receiver", "",
                       "TSC cycles per byte of payload, median (min..max) of runs. ok: at most "
                       f"{TARGET} times cubic over fq; MISSED: more."], tables, facts)


if __name__ == "__main__":
    main()
