# SPDX-License-Identifier: GPL-2.0
"""The directory of a run: raw results, plans and logs of cells, and the summary.

    cells/CC-SEED.json.gz       the raw result of a cell
    cells/CC-SEED.plan, .log    the plan for the traffic engine, and the guest's output
    summary.json                the scenario, and the figures of all cells
"""
import gzip
import json
import os

from .common import Figures, LabError, Raw, Scenario

# A cell: congestion control or variant, and seed.
Cell = tuple[str, int]
# A cell that failed: congestion control, seed, and the reason.
Failure = tuple[str, int, str]
# The endings of the files that running a cell makes; with the last, the raw result, it is complete.
PARTS = (".log", ".json.gz")


def cells_dir(out: str) -> str:
    """The directory of the cells' files."""
    return os.path.join(out, "cells")


def cell_base(out: str, cc: str, seed: int) -> str:
    """The path of a cell's files without their endings."""
    return os.path.join(cells_dir(out), f"{cc}-{seed}")


def raw_path(out: str, cc: str, seed: int) -> str:
    """The file of a cell's raw result."""
    return cell_base(out, cc, seed) + ".json.gz"


def load_raw(out: str, cc: str, seed: int) -> Raw:
    """The raw result of a cell."""
    with gzip.open(raw_path(out, cc, seed)) as file:
        raw: Raw = json.load(file)
        return raw


def save_raw(out: str, raw: Raw) -> None:
    """Write the raw result of a cell, in one step: a file that is there is complete."""
    new = cell_base(out, raw["cc"], raw["seed"]) + ".new"
    with gzip.open(new, "wt", encoding="ascii", compresslevel=6) as file:
        json.dump(raw, file, separators=(",", ":"))
    os.rename(new, raw_path(out, raw["cc"], raw["seed"]))


def save_part(path: str, data: bytes) -> None:
    """Write a file of a cell in one step."""
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.rename(path + ".new", path)


def last_line(path: str) -> str:
    """The line of a log that best says why a cell failed: an error message, or the last line."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return next((line for line in lines if line.startswith(("traffic:", "guest:"))),
                lines[-1] if lines else "no output")


def save_summary(out: str, name: str, scenario: Scenario, kernel: str, wall_s: float,
                 failures: list[Failure], cells: list[Figures]) -> None:
    """Write the summary of a run. kernel: name of the kernel's build directory."""
    with open(os.path.join(out, "summary.json"), "w", encoding="ascii") as file:
        json.dump({"name": name, "scenario": scenario, "kernel": kernel, "wall_s": wall_s,
                   "failed": len(failures), "failures": failures, "cells": cells}, file, indent=1)


def load_summary(out: str) -> Figures:
    """The summary of a run."""
    try:
        with open(os.path.join(out, "summary.json"), encoding="ascii") as file:
            summary: Figures = json.load(file)
            return summary
    except FileNotFoundError:
        raise LabError(f"no summary.json in {out}: is it the --out of a lab run?") from None
    except (OSError, ValueError, RecursionError) as error:
        raise LabError(f"cannot read {out}/summary.json: {error}") from None
