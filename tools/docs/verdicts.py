#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Generate the tables of verdicts: where timely wins and loses against the best other congestion
control (peer), from verdicts.toml and results/.

    verdicts.py page         print Documentation/verdicts.md
    verdicts.py scorecard    print the rows of the README's scorecard

All verdicts are computed from medians over the seeds. Figures that differ by at most the share
TOLERANCE count as even.
"""
import os
import re
import statistics
import sys
import tomllib
from collections.abc import Callable

from recorded import values

HERE = os.path.dirname(os.path.realpath(__file__))
TOLERANCE = 0.02
INTRO = """# Verdicts

Where timely wins and where it loses. A peer is another congestion control; the best one counts. Each row has timely's
figures, the best peer's, the limit that the network sets or the fair share, the paper's figure where the paper has one,
and the verdict: won, lost, or even (within {percent} %). Where the verdict depends on the set-up, each set-up has its own.
`make docs` computes this page from [results/](../results/README.md); figures are medians over the seeds, in the
virtual-time testbed. Two limits can be passed a little: the port's token bucket lets 0.3 % more through in a measurement,
and a peer may take more than the fair share.

**{won} claims won, {even} even, {lost} lost, {mixed} depend on the set-up.**

{table}

Costs beside these: [an ACK](results.md#what-an-ack-costs) takes more CPU cycles than with bbr, and
[a byte](results.md#what-a-byte-costs) up to twice the sender's cycles of cubic; [a
packet](results.md#what-a-packet-costs) takes fewer under sch_timely than under fq. Without hardware timestamps, hosts
that are late [lose goodput](reproductions-timestamps.md). The rows are a selection: [hostile networks](hostile-networks.md) and the
[reproductions](reproductions.md) have more, each with its verdict.

The losses have these causes:

- Where hosts send and receive at once, ACKs wait behind data, and RTTs do not tell this wait from a queue in front of the
  data. New messages are served before long ones ([messages that come and go](churn.md)).
- Loss-based congestion control in the same queue takes most of the port, because timely reacts to the queue that the
  others build.
- Where a policer drops packets without a queue, RTTs do not show what a connection may send.
"""


def median(where: str, path: str) -> float:
    """The median over the seeds of a figure. where: "SCENARIO:CC", path: "rtt_us.p99"."""
    found = values(where, path)
    if not found:
        sys.exit(f"verdicts: results/ has no figure {path} of {where}")
    return statistics.median(found)


def text(value: float, row: dict) -> str:
    """A figure with two or three digits and its unit."""
    value /= row.get("scale", 1)
    digits = f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2f}"
    if row["unit"] == "Gb/s":
        digits = f"{value:.2f}"
    return f"{digits} {row['unit']}".rstrip()


def compare(mine: float, theirs: float, choose: Callable[..., float]) -> str:
    """The verdict of one figure of timely's beside the best peer's; choose: min or max."""
    if abs(mine - theirs) <= TOLERANCE * max(abs(mine), abs(theirs)):
        return "even"
    return "won" if choose(mine, theirs) == mine else "**lost**"


def judge(row: dict) -> tuple[str, str, str]:
    """Texts of timely's figures and the best peer's, and the verdict."""
    ours = [median(where, row["figure"]) for where in row["ours"]]
    peers = {where: median(where, row["figure"]) for where in row["peers"]}
    choose = min if row["better"] == "less" else max
    best = choose(peers, key=peers.get)
    theirs = peers[best]
    verdicts = [compare(value, theirs, choose) for value in ours]
    verdict = verdicts[0] if len(set(verdicts)) == 1 else ", ".join(
        f"{word} {name}" for word, name in zip(verdicts, row["names"], strict=True))
    shown = ", ".join(f"{text(value, row)} {name}".rstrip()
                      for value, name in zip(ours, row["names"], strict=True))
    peer = re.sub(r"-0\.\d$", "", best.partition(":")[2])
    return shown, f"{text(theirs, row)} ({peer})", verdict


def limit(row: dict) -> str:
    """What no congestion control can pass."""
    if "limit_figure" not in row:
        return row["limit"] or "-"
    return row["limit"].format(text(median(row["ours"][0], row["limit_figure"]), row))


def page(rows: list[dict]) -> str:
    """The whole document."""
    lines = ["| claim | timely | best peer | limit | paper | verdict | table |",
             "|---|---|---|---|---|---|---|"]
    judged = [judge(row) for row in rows]
    for row, (ours, peer, verdict) in zip(rows, judged, strict=True):
        lines.append(f"| {row['claim']} | {ours} | {peer} | {limit(row)} | {row['paper'] or '-'} "
                     f"| {verdict} | [table]({row['link']}) |")
    verdicts = [verdict.strip("*") for *_, verdict in judged]
    count = {word: verdicts.count(word) for word in ("won", "even", "lost")}
    return INTRO.format(percent=round(100 * TOLERANCE), table="\n".join(lines),
                        mixed=len(verdicts) - sum(count.values()), **count)


def scorecard(rows: list[dict]) -> str:
    """The README's table."""
    lines = ["| in the testbed, medians | timely | best peer | |", "|---|---|---|---|"]
    for row in rows:
        if row.get("scorecard"):
            ours, peer, verdict = judge(row)
            lines.append(f"| [{row['claim']}](Documentation/{row['link']}) | {ours} | {peer} | {verdict} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the output that the command line names."""
    with open(os.path.join(HERE, "verdicts.toml"), "rb") as file:
        rows = tomllib.load(file)["row"]
    what = {"page": page, "scorecard": scorecard}.get(sys.argv[1] if len(sys.argv) == 2 else "")
    if not what:
        sys.exit(__doc__)
    sys.stdout.write(what(rows))


main()
