#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run the guest of poll.sh, measure its CPU time, and make a table.

    poll_report.py DIR COMMAND...    raw.jsonl, raw.json, table.md and polls.md in DIR

COMMAND runs the guest. Its lines "begin NAME" and "end NAME POLLS" are the start and
the end of a measurement. The guest's clocks are virtual, so its CPU time is that of
its processes on the host.
"""
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys

from report import markdown, read_runs, write_tables

START = "--version"  # the command that only starts the program


def cpu_seconds(top):
    """CPU time of a process and its descendants, and of those that they have waited for."""
    ticks, parents = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # man 5 proc: the parent has number 4; utime, stime, cutime and cstime have 14 to 17.
        process = int(path.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))

    def is_below(process):
        while process != top and process in parents:
            process = parents[process]
        return process == top
    return sum(ticks[process] for process in ticks if is_below(process)) / os.sysconf("SC_CLK_TCK")


def measure(raw, command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as guest:
        start = 0.0
        for line in guest.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "begin":
                start = cpu_seconds(guest.pid)
            elif word == "end":
                name, _, polls = rest.rpartition(" ")
                seconds = cpu_seconds(guest.pid) - start
                raw.write(json.dumps({"command": name, "polls": int(polls),
                                      "cpu_s": round(seconds, 2)}) + "\n")
            else:
                print(line, end="")
    return guest.returncode


def polls_table(runs):
    """CPU time of a poll, with and without the start of the program (START)."""
    costs = collections.defaultdict(list)
    for run in runs:
        costs[run["command"]].append(1000 * run["cpu_s"] / run["polls"])
    least = {command: min(ms) for command, ms in costs.items()}
    rows = []
    for command, ms in costs.items():
        starts = command != START and not command.startswith(("record", "watch"))
        beyond = f"{(least[command] - least[START]) / 10:.2f} %" if starts else "-"
        rows.append([f"timelyctl {command}", f"{least[command]:.1f}",
                     f"{statistics.median(ms):.1f} (..{max(ms):.1f})",
                     f"{least[command] / 10:.2f} %", beyond])
    return markdown(["a poll", "least, ms", "median (..most), ms", "each second: of a CPU",
                     "without the start"], rows)


def main():
    out = sys.argv[1]
    with open(f"{out}/raw.jsonl", "w", encoding="ascii") as raw:
        status = measure(raw, sys.argv[2:])
    if status:
        sys.exit(status)
    runs, facts = read_runs(out)
    write_tables(out, ["# What looking at connections costs", "",
                       "CPU time of kernel and timelyctl together, least and median of repeats."],
                 (("polls", "A poll", polls_table(runs)),), facts)


if __name__ == "__main__":
    main()
