# SPDX-License-Identifier: GPL-2.0
"""lab verify: compares the figures of a run with the bounds that the scenario expects."""
import math
import statistics
from collections.abc import Iterator
from typing import Any

from .common import Figures, LabError, Table
from .results import pick
from .store import load_summary


def expectations(summary: Figures) -> Iterator[tuple[Table, str, Any]]:
    """Each [[expect]] with the seeds and the value found: of each seed, or the seeds' median.

    A figure that a seed lacks is None, and so is the median of these seeds.
    """
    for expect in summary["scenario"].get("expect", []):
        found = [(f"seed {fig['seed']}", pick(fig, expect["figure"]))
                 for fig in summary["cells"] if fig["cc"] == expect["cc"]]
        values = [value for _, value in found]
        if expect.get("median") and found:
            found = [("median", None if None in values else statistics.median(values))]
        yield from ((expect, seeds, value) for seeds, value in found)


def verify(out: str) -> None:
    """Print TAP, one test for each expectation; raise an error if a test or a cell failed."""
    summary = load_summary(out)
    expected = list(expectations(summary))
    print(f"TAP version 13\n1..{len(expected)}")
    bad = summary["failed"]
    for number, (expect, seeds, value) in enumerate(expected, 1):
        low, high = expect.get("min", -math.inf), expect.get("max", math.inf)
        good = value is not None and low <= value <= high
        bad += not good
        print(f"{'ok' if good else 'not ok'} {number} - {expect['cc']}, {seeds}: "
              f"{expect['figure']} = {value}, expected {low} to {high}")
    if bad or not expected:
        raise LabError(f"{bad} of {len(expected)} expectations failed")
