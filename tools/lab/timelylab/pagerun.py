# SPDX-License-Identifier: GPL-2.0
"""A run as a page shows it: its cells by their state, and the curves of raw results."""
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .cell import module_files, scenario_of
from .common import MS, Figures, LabError, Points, Scenario
from .results import flow_goodputs, group_names
from .samples import is_number
from .scenario import window_ns
from .series import queue_delay_points, request_cdf, rtt_cdf
from .store import load_raw

# What the use of a broken result file raises.
BROKEN = (ArithmeticError, AttributeError, EOFError, LookupError, OSError, TypeError, ValueError,
          RecursionError, zlib.error, LabError)

# A table as table_of() makes it: rows by congestion control.
Rows = dict[str, dict[str, Any]]


class Curves(NamedTuple):
    """What charts show of the raw result of a cell."""

    rtt: Points
    queue: Points
    requests: Points
    goodputs: Sequence[tuple[str, str, float]]      # group, name and Gb/s of each connection


@dataclass
class Run:
    """A run, finished or under way: its scenario, and its cells by their state.

    failures have the reason; `ended` says why a run ended early, `running` is set until it ends.
    """

    out: str
    scenario: Scenario
    cells: list[Figures] = field(default_factory=list)
    failures: list[tuple[str, int, str]] = field(default_factory=list)
    waiting: list[tuple[str, int]] = field(default_factory=list)
    more_failed: int = 0
    running: bool = False
    ended: str = ""
    curves: dict[tuple[str, int], Curves | None] = field(default_factory=dict)

    def ccs(self) -> list[str]:
        """The congestion controls and variants of all cells, in the order of the scenario."""
        found = [fig["cc"] for fig in self.cells] + \
            [cell[0] for cell in self.failures + self.waiting]
        known = [cc for cc in self.scenario["run"]["cc"] if cc in found]
        return list(dict.fromkeys(known + found))

    def own(self, cc: str) -> bool:
        """Does a congestion control or variant use a module of this project?"""
        return bool(module_files(self.scenario, cc))

    def curves_of(self, cc: str) -> Curves | None:
        """What charts show of a congestion control's first seed; None if there is no raw result."""
        seed = min(fig["seed"] for fig in self.cells if fig["cc"] == cc)
        if (cc, seed) not in self.curves:
            try:
                self.curves[cc, seed] = read_curves(self.out, self.scenario, cc, seed)
            except BROKEN:
                self.curves[cc, seed] = None
        return self.curves[cc, seed]


def read_curves(out: str, scenario: Scenario, cc: str, seed: int) -> Curves:
    """The curves in the raw result of a cell."""
    raw, own = load_raw(out, cc, seed), scenario_of(scenario, cc)
    groups = group_names(own, "flows")
    found = Curves(rtt_cdf(raw, own), queue_delay_points(own, raw, MS), request_cdf(raw),
                   [(str(groups[i]) if groups else "", name, gbit)
                    for i, (name, gbit) in enumerate(flow_goodputs(raw, *window_ns(own)))])
    values = [value for points in found[:3] for point in points for value in point]
    if not all(is_number(value) for value in values + [gbit for _, _, gbit in found.goodputs]):
        raise LabError("a value in the raw result is not a number")
    return found
