# SPDX-License-Identifier: GPL-2.0
"""Tests of tables: numbers, entries, rows, Markdown, and the bounds of lab verify."""
import contextlib
import io
import json
import os
import tempfile
import unittest

import support   # noqa: F401, sets the path of the package
from timelylab import tables, verify
from timelylab.common import Figures, LabError

CELLS = [{"cc": "timely", "seed": 1, "goodput_gbit": 9.5, "rtt_us": {"p99": 61.24}, "drops": 0},
         {"cc": "timely", "seed": 2, "goodput_gbit": 9.7, "rtt_us": {"p99": 59.0}, "drops": 0},
         {"cc": "timely", "seed": 3, "goodput_gbit": 9.6, "rtt_us": {"p99": 60.0}, "drops": 4},
         {"cc": "cubic", "seed": 1, "goodput_gbit": 9.9, "rtt_us": {"count": 0}, "drops": 1234}]
UNFINISHED = [{"cc": "bbr", "seed": 1, "drops": 0}, {"cc": "bbr", "seed": 2}]
COLUMNS = [("Gb/s", "goodput_gbit"), ("p99", "rtt_us.p99"), ("drops", "drops"), ("none", "jain")]


class Numbers(unittest.TestCase):
    """number() and show()"""

    def test_number(self) -> None:
        """A number has three or four digits, an integer all digits and no fraction."""
        for value, text in ((None, "-"), (0, "0"), (0., "0"), (7, "7"), (12345, "12345"),
                            (.12345, "0.123"), (9.9994, "9.999"), (10., "10.00"),
                            (99.994, "99.99"), (100.4, "100"), (123456.7, "123457")):
            self.assertEqual(tables.number(value), text)

    def test_show(self) -> None:
        """An entry shows a range only if the texts of minimum and maximum differ."""
        self.assertEqual(tables.show(None), "-")
        self.assertEqual(tables.show({"median": 5, "min": 5, "max": 5}), "5")
        self.assertEqual(tables.show({"median": 5, "min": 4, "max": 6}), "5 (4..6)")
        self.assertEqual(tables.show({"median": 200.1, "min": 200.0, "max": 200.2}), "200")


class Tables(unittest.TestCase):
    """table_of(), grid() and the forms of a table."""

    def test_table(self) -> None:
        """Each row has the seeds, and the entries of figures that exist."""
        table = tables.table_of(CELLS, COLUMNS)
        self.assertEqual(list(table), ["timely", "cubic"])
        self.assertEqual(table["timely"]["goodput_gbit"], {"median": 9.6, "min": 9.5, "max": 9.7})
        self.assertEqual(table["timely"]["seeds"], [1, 2, 3])
        self.assertNotIn("rtt_us.p99", table["cubic"])

    def test_grid(self) -> None:
        """A column without any value is left out; a missing value is a dash."""
        self.assertEqual(tables.grid(tables.table_of(CELLS, COLUMNS), COLUMNS),
                         [["", "seeds", "Gb/s", "p99", "drops"],
                          ["timely", "3", "9.600 (9.500..9.700)", "60.00 (59.00..61.24)",
                           "0 (0..4)"],
                          ["cubic", "1", "9.900", "-", "1234"]])

    def test_text(self) -> None:
        """Columns are aligned at the right."""
        self.assertEqual(tables.as_text([["", "a"], ["bbb", "cc"]]), "      a\nbbb  cc")

    def test_markdown(self) -> None:
        """The first column is aligned at the left, the others at the right."""
        self.assertEqual(tables.as_markdown([["", "a", "b"], ["x", "1", "2"]]),
                         "|  | a | b |\n|---|---:|---:|\n| x | 1 | 2 |")

    def test_columns(self) -> None:
        """[report] names the columns; otherwise the table has the usual ones."""
        own = {"report": {"columns": [["drops", "drops"]]}}
        self.assertEqual(tables.columns_of(own), [("drops", "drops")])
        self.assertEqual(tables.columns_of({}), list(tables.COLUMNS))

    def test_events(self) -> None:
        """Events of clocks are a table of their own, over the seeds."""
        event = {key: 1 for _, key in tables.EVENT_COLUMNS}
        cells = [{"cc": "steps", "timestamps": {"events": {"step_ns +5": event | {
            "noticed_ms": noticed, "sure_again_ms": None}}}} for noticed in (3, 1, 2)]
        rows = tables.event_rows(cells)
        self.assertEqual(rows[1], ["steps", "step_ns +5", "2 (1..3)", "1", "1", "1", "1", "-", "1"])
        self.assertEqual(tables.event_rows([{"cc": "timely"}]), [])


class Verify(unittest.TestCase):
    """verify() prints TAP."""

    def tap(self, expect: list[Figures], failed: int = 0) -> list[str]:
        """The lines of TAP for expectations of the cells above; the last line is an error."""
        with tempfile.TemporaryDirectory() as out:
            with open(os.path.join(out, "summary.json"), "w", encoding="ascii") as file:
                json.dump({"scenario": {"expect": expect}, "cells": CELLS + UNFINISHED,
                           "failed": failed}, file)
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                try:
                    verify.verify(out)
                except LabError as error:
                    print(error)
        return text.getvalue().splitlines()

    def test_each_seed(self) -> None:
        """Without "median" every seed has to be in the bounds."""
        self.assertEqual(self.tap([{"cc": "timely", "figure": "rtt_us.p99", "max": 60}]), [
            "TAP version 13", "1..3",
            "not ok 1 - timely, seed 1: rtt_us.p99 = 61.24, expected -inf to 60",
            "ok 2 - timely, seed 2: rtt_us.p99 = 59.0, expected -inf to 60",
            "ok 3 - timely, seed 3: rtt_us.p99 = 60.0, expected -inf to 60",
            "1 of 3 expectations failed"])

    def test_median(self) -> None:
        """With "median" one line tells about all seeds."""
        self.assertEqual(self.tap([{"cc": "timely", "figure": "goodput_gbit", "median": True,
                                    "min": 9.6}])[2:],
                         ["ok 1 - timely, median: goodput_gbit = 9.6, expected 9.6 to inf"])

    def test_missing_value(self) -> None:
        """A figure that is not there is a failure."""
        self.assertEqual(self.tap([{"cc": "cubic", "figure": "jain", "min": 0}])[2],
                         "not ok 1 - cubic, seed 1: jain = None, expected 0 to inf")
        self.assertEqual(self.tap([{"cc": "bbr", "figure": "drops", "median": True, "max": 0}])[2],
                         "not ok 1 - bbr, median: drops = None, expected -inf to 0")

    def test_nothing_expected(self) -> None:
        """A run with failed cells, or without any expectation, does not pass."""
        self.assertEqual(self.tap([])[-1], "0 of 0 expectations failed")
        good = [{"cc": "cubic", "figure": "drops", "min": 0}]
        self.assertEqual(self.tap(good, failed=1)[-1], "1 of 1 expectations failed")


if __name__ == "__main__":
    unittest.main()
