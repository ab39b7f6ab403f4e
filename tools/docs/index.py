#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Write the index of results/: for each directory its subject and the documents that quote it.

    index.py    write results/README.md to standard output
"""
import json
import os
import re

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "../.."))
INTRO = """# Results

Each directory has the results of one scenario or bench: `summary.json` (all figures of all cells), `table.md`
(the table that documents quote) and plots. `make results` or `make reproductions` writes them again:
`tools/docs/results.sh NAME` for one of them. The pages that quote a directory are in the last column.

| directory | what it is | quoted by |
|---|---|---|
"""
# Directories without summary.json.
BENCHES = {"bench-packet": "cycles per packet of qdiscs: `make bench`",
           "bench-trim": "cycles per packet of the qdisc trim: `tools/docs/results.sh bench-trim`",
           "bench-ack": "cycles per ACK of congestion controls: `make bench`",
           "bench-onramp": "cycles of On-Ramp's sender and receiver: `make bench`",
           "bench-poll": "CPU time of looking at 10 000 connections: `make bench`",
           "bench-clockd": "CPU time and packets of timely-clockd: "
                           "`tools/docs/results.sh bench-clockd`",
           "bench-cpu": "cycles per byte of sender and receiver: `make bench`",
           "bench-ndp": "the same with NDP: `tools/docs/results.sh bench-ndp`",
           "clock-sync": "clock synchronisation of many hosts in the simulator: "
                         "`tools/lab/simulator/clocks run`",
           "ndp-sim": "NDP in a simulator: `tools/docs/results.sh ndp-sim`",
           "walk": "installation, upgrades and removal in booted Debian systems, by `tools/lab/vm/walk.sh`: TAP with "
                   "the seconds that each test took",
           "matrix": "the default rule on links and paths beyond the testbed: `make matrix`"}


def title(name: str) -> str:
    """The command and the title of a directory of results/."""
    path = os.path.join(TOP, "results", name, "summary.json")
    if not os.path.exists(path):
        return BENCHES.get(name, "")
    with open(path, encoding="ascii") as file:
        return f"`tools/lab/lab run {name}`: " + json.load(file)["scenario"]["title"]


def pages() -> dict[str, str]:
    """The texts of README.md and Documentation/*.md, by path from the top directory."""
    found = {}
    documents = os.path.join(TOP, "Documentation")
    for name in ["README.md", *(f"Documentation/{name}" for name in sorted(os.listdir(documents)))]:
        if name.endswith(".md"):
            with open(os.path.join(TOP, name), encoding="utf-8") as file:
                found[name] = file.read()
    return found


def main() -> None:
    """Print the index."""
    documents = pages()
    lines = []
    for name in sorted(os.listdir(os.path.join(TOP, "results"))):
        if not os.path.isdir(os.path.join(TOP, "results", name)):
            continue
        quoted = [page for page, text in documents.items()
                  if re.search(rf"results/{re.escape(name)}/|`{re.escape(name)}`", text)]
        links = ", ".join(f"[{os.path.basename(page)}](../{page})" for page in quoted) or "-"
        lines.append(f"| [{name}]({name}/) | {title(name)} | {links} |")
    print(INTRO + "\n".join(lines))


main()
