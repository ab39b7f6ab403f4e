# SPDX-License-Identifier: GPL-2.0
"""The figures in results/, for the generated documents."""
import functools
import json
import os
from typing import Any

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))


def summary_path(scenario: str) -> str:
    """The file with the results of a scenario."""
    return os.path.join(TOP, "results", scenario, "summary.json")


# The figures of one run of a scenario.
Cell = dict[str, Any]


@functools.cache
def cells(scenario: str) -> list[Cell]:
    """The figures of all cells of a scenario; empty if there are no results."""
    try:
        with open(summary_path(scenario), encoding="ascii") as file:
            found: list[Cell] = json.load(file)["cells"]
            return found
    except FileNotFoundError:
        return []


def values(where: str, path: str) -> list[Any]:
    """A figure of each seed that has it. where: "SCENARIO:CC", path: "rtt_us.p99"."""
    scenario, _, cc = where.partition(":")
    found = []
    for cell in cells(scenario):
        value: Any = cell if cell["cc"] == cc else None
        for key in path.split("."):
            value = value.get(key) if value else None
        if value is not None:
            found.append(value)
    return found
