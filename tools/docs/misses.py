#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Say in documents which expectations of their scenarios stored results miss.

    misses.py    print a line for each scenario whose results miss any: its name, a tab, and the sentence that
                 stands below its table in a document
"""
import math
import os
import sys

from recorded import TOP, summary_path

sys.path.insert(0, os.path.join(TOP, "tools/lab"))
sys.dont_write_bytecode = True

from timelylab.store import load_summary   # noqa: E402, the path above has to be known first
from timelylab.tables import number   # noqa: E402
from timelylab.verify import expectations   # noqa: E402


def bounds(low: float, high: float) -> str:
    """The bounds of an expectation."""
    if high == math.inf:
        return f"at least {number(low)}"
    return f"at most {number(high)}" if low == -math.inf else f"{number(low)} to {number(high)}"


def sentence(scenario: str) -> str:
    """What the results of a scenario miss; empty if they miss nothing, or if there are none."""
    if not os.path.exists(summary_path(scenario)):
        return ""
    missed: dict[str, list[str]] = {}
    for expect, seeds, value in expectations(load_summary(os.path.dirname(summary_path(scenario)))):
        low, high = expect.get("min", -math.inf), expect.get("max", math.inf)
        if value is None or not low <= value <= high:
            what = f"`{expect['figure']}` of `{expect['cc']}`, expected {bounds(low, high)}"
            missed.setdefault(what, []).append(f"{number(value)} ({seeds})")
    texts = [f"{what}: {', '.join(found)}" for what, found in missed.items()]
    return f"**Misses what the scenario expects**: {'; '.join(texts)}." if texts else ""


def main() -> None:
    """Print what all stored results miss."""
    for name in sorted(os.listdir(os.path.join(TOP, "results"))):
        if found := sentence(name):
            print(f"{name}\t{found}")


if __name__ == "__main__":
    main()
