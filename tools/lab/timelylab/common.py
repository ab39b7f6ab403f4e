# SPDX-License-Identifier: GPL-2.0
"""Names that all modules of the testbed share: units, directories, types and errors."""
import fcntl
import os
import subprocess
from typing import Any

LAB = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TOP = os.path.realpath(os.path.join(LAB, "../.."))

MS = 1_000_000                          # ns
GBIT_BPS = 1e9 / 8                      # bytes per second in 1 Gb/s

# Dictionaries: a scenario as read from TOML, one of its tables, a cell's raw result (the output of
# the traffic engine), and a cell's figures. scenario.py checks the keys, so the types do not.
Scenario = dict[str, Any]
Table = dict[str, Any]
Raw = dict[str, Any]
Figures = dict[str, Any]
# Points of one curve of a plot, and curves with their names.
Points = list[tuple[float, float]]
Lines = list[tuple[str, Points]]


class LabError(Exception):
    """An error that the user can correct; the message says how."""


class ScenarioError(LabError):
    """A mistake in the scenario: every cell of the run would fail the same way."""


def build(directory: str, *targets: str) -> str:
    """Run make in a directory below TOP; the result is its output.

    Several runs may be started at the same time, and share what make builds: they take turns.
    """
    directory = os.path.join(TOP, directory)
    with open(os.path.join(directory, "Makefile"), "rb") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-s", "-C", directory, *targets], stdout=subprocess.PIPE,
                              text=True, check=False)
    if done.returncode:
        raise LabError(f"make failed in {directory}: the reason is above")
    return done.stdout.strip()
