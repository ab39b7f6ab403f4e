# SPDX-License-Identifier: GPL-2.0
"""Tests of slowdowns: figures of a cell, groups of cells, rows of tables, lines of plots."""
import os
import tempfile
import unittest
from typing import Any
from unittest import mock

from support import raw_result, scenario
from timelylab import plots, report, results, slowdown, tables
from timelylab.common import MS, Figures, Raw, Scenario
from timelylab.store import cells_dir, save_raw, save_summary

# The time alone of 14 480 bytes, ten frames, at 10 Gb/s and with a delay of 5000 ns.
SIZE, ALONE = 14_480, 10 * 1211 + 5000


def own_scenario(**workload: Any) -> Scenario:
    """The small scenario with two hosts that send messages to each other."""
    out = scenario() | {"workload": {"sizes": "rpc-64k", "load": .5} | workload}
    out["topology"] |= {"servers": 0, "fabric": "all-to-all"}
    del out["flows"]
    return out


def raw_with(messages: list[list[int]], cc: str = "timely", seed: int = 1) -> Raw:
    """A raw result with messages. A row: arrival, size, time, sender, receiver."""
    return raw_result() | {"cc": cc, "seed": seed, "flows": [], "workloads": [
        {"retrans": 0, "connections": 2, "messages": messages}],
        "queues": [{"dev": "h1", "samples": [[t * MS, 0, 0, 0] for t in range(31)]}]}


def many(factor: int, count: int = 40) -> list[list[int]]:
    """Messages of rising sizes that never meet, with multiples of their time alone."""
    return [[10 * MS + i * MS // 2, (i + 1) * 14_480, factor * ((i + 1) * 12_110 + 5000), 1, 2]
            for i in range(count)]


class Figured(unittest.TestCase):
    """figures()"""

    def test_slowdown(self) -> None:
        """A time divided by the time alone; messages of the warm-up do not count."""
        rows = [[5 * MS, SIZE, 99, 1, 2], [12 * MS, SIZE, 3 * ALONE, 1, 2],
                [20 * MS, SIZE, 5 * ALONE, 2, 1]]
        found = results.figures(own_scenario(), raw_with(rows))
        self.assertEqual(found["slowdown"]["count"], 2)
        self.assertEqual([found["slowdown"][key] for key in ("min", "mean", "p50", "p99")],
                         [3, 4, 3, 5])
        self.assertEqual(found["slowdown"]["medium"]["mean"], 4)
        self.assertEqual(found["slowdown"]["small"], {"count": 0})
        for name in ("ideal_fair", "ideal_srpt"):
            self.assertEqual(found[name]["slowdown"]["p99"], 1)
            self.assertEqual(found[name]["medium_us"]["avg"], ALONE / 1000)

    def test_warm_up_is_there(self) -> None:
        """Messages of the warm-up take capacity in the ideal networks."""
        rows = [[10 * MS - 1, SIZE, 99, 1, 2], [10 * MS, SIZE, 2 * ALONE, 1, 2]]
        found = results.figures(own_scenario(), raw_with(rows))
        self.assertAlmostEqual(found["ideal_srpt"]["slowdown"]["mean"], (2 * 12_110 + 4999) / ALONE)

    def test_under_way(self) -> None:
        """A message without an end counts with its age, but with a slowdown of at least 1."""
        rows = [[30 * MS - 2 * ALONE, SIZE, 0, 1, 2], [30 * MS - 10, SIZE, 0, 1, 2]]
        found = results.figures(own_scenario(), raw_with(rows))
        self.assertEqual((found["slowdown"]["p50"], found["slowdown"]["p99"]), (1, 2))
        self.assertEqual(found["messages_unfinished"], 2)
        self.assertEqual(found["ideal_fair"]["messages_unfinished"], 1)
        self.assertEqual(found["ideal_fair"]["medium_us"]["p50"], .01)

    def test_deciles(self) -> None:
        """Ten parts by size, each with sizes, slowdowns and the mean time."""
        parts = results.figures(own_scenario(), raw_with(many(2)))["slowdown_deciles"]
        self.assertEqual([part["size"] for part in parts], [4 * i * SIZE for i in range(1, 11)])
        self.assertEqual({part["count"] for part in parts}, {4})
        self.assertEqual({part["p99"] for part in parts}, {2})
        self.assertEqual(parts[0]["fct_us"], 2 * (2.5 * 12_110 + 5000) / 1000)

    def test_one_size(self) -> None:
        """Messages of one size are in one part, whatever their order."""
        rows = [[11 * MS + i, SIZE, ALONE, 1, 2] for i in range(30)]
        parts = results.figures(own_scenario(), raw_with(rows))["slowdown_deciles"]
        self.assertEqual([part["count"] for part in parts], [30] + [0] * 9)

    def test_no_messages(self) -> None:
        """A result without messages, of an older or another scenario, has no slowdowns."""
        self.assertNotIn("slowdown", results.figures(scenario(), raw_result()))
        self.assertNotIn("slowdown", results.figures(own_scenario(), raw_with([])))


class Rows(unittest.TestCase):
    """Rows of tables and lines of plots"""

    def setUp(self) -> None:
        self.scenario: Scenario = own_scenario() | {"variants": {
            f"{cc}-{load}": {"cc": cc, "workload": {"load": load}}
            for load in (.2, .5) for cc in ("cubic", "bbr")}}
        self.raws = [raw_with(many(factor), cc, seed) for seed in (1, 2)
                     for cc, factor in (("cubic-0.2", 2), ("bbr-0.2", 3), ("cubic-0.5", 5))]
        self.cells = [results.figures(self.scenario, raw) for raw in self.raws]

    def test_groups(self) -> None:
        """Cells with one load are a group."""
        found = slowdown.groups(self.scenario, self.cells)
        self.assertEqual({name: sorted({fig["cc"] for fig in mine})
                          for name, mine in found.items()},
                         {"0.2": ["bbr-0.2", "cubic-0.2"], "0.5": ["cubic-0.5"]})
        self.assertEqual(list(slowdown.groups(own_scenario(), self.cells[:2])), [""])
        without: Figures = {"cc": "cubic", "seed": 1}
        self.assertEqual(slowdown.groups(scenario(), [without]), {})

    def test_same_load(self) -> None:
        """Workloads that differ otherwise are groups, too."""
        self.scenario["variants"]["bbr-0.2"]["workload"]["pool"] = 0
        self.assertEqual(list(slowdown.groups(self.scenario, self.cells)),
                         ["cubic-0.2", "bbr-0.2", "0.5"])

    def test_ideal_rows(self) -> None:
        """The ideal networks are rows behind the cells with their load."""
        columns = tables.columns_of(self.scenario | {"report": {"columns": [["drops", "drops"]]}})
        cells = slowdown.with_ideals(self.scenario, self.cells)
        rows = tables.grid(tables.table_of(cells, columns), columns)
        self.assertEqual(rows[0], ["", "seeds", "drops", "slowdown mean", "p50", "p99"])
        self.assertEqual([row[0] for row in rows[1:]], [
            "cubic-0.2", "bbr-0.2", "ideal, fair-0.2", "ideal, shortest first-0.2", "cubic-0.5",
            "ideal, fair-0.5", "ideal, shortest first-0.5"])
        self.assertEqual(rows[2][2:], ["0", "3.000", "3.000", "3.000"])
        self.assertEqual(rows[3][2:], ["-", "1.000", "1.000", "1.000"])

    def test_decile_rows(self) -> None:
        """Slowdowns and times by deciles. Empty deciles are left out."""
        ratios, times = tables.decile_rows(self.cells[:1])
        self.assertEqual((ratios[0][1], ratios[0][10]), ("up to 57.9 KB", "up to 579 KB"))
        self.assertEqual(ratios[1][:2], ["cubic-0.2", "2.000 / 2.000 / 2.000"])
        self.assertEqual(times[1][:2], ["cubic-0.2", "70.55"])
        same = results.figures(self.scenario, raw_with([[11 * MS, SIZE, ALONE, 1, 2]], "cubic-0.2"))
        self.assertEqual(tables.decile_rows([same])[0],
                         [["", "up to 14.5 KB"], ["cubic-0.2", "1.000 / 1.000 / 1.000"]])

    def test_size_text(self) -> None:
        """Sizes in tables"""
        for size, text in ((331, "331 B"), (1000, "1 KB"), (1_048_576, "1.05 MB")):
            self.assertEqual(tables.size_text(size), text)

    def test_plots(self) -> None:
        """A plot for each load, and a line for each congestion control and ideal network."""
        with mock.patch.object(plots, "plot") as plot:
            plots.slowdown_plots("DIR", self.scenario, self.cells)
        self.assertEqual([os.path.basename(call.args[0]) for call in plot.call_args_list],
                         ["slowdown-p50-0.2", "slowdown-p99-0.2", "slowdown-p50-0.5",
                          "slowdown-p99-0.5"])
        lines = dict(plot.call_args_list[1].args[4])
        one_size = results.figures(self.scenario,
                                   raw_with([[11 * MS, SIZE, ALONE, 1, 2]], "cubic-0.2"))
        with mock.patch.object(plots, "plot") as plot:
            plots.slowdown_plots("DIR", self.scenario, [one_size])
        plot.assert_not_called()
        self.assertEqual(list(lines), ["cubic-0.2", "bbr-0.2", "ideal, fair-0.2",
                                       "ideal, shortest first-0.2"])
        self.assertEqual(lines["bbr-0.2"][0], (4 * SIZE, 3))

    def test_sweep(self) -> None:
        """The ideal networks are lines over the load."""
        self.scenario["report"] = {"sweep": {"x": "workload.load", "y": [["slowdown.p99", "p99"]]}}
        with mock.patch.object(plots, "plot") as plot:
            plots.sweep_plot("DIR", self.scenario, self.cells)
        lines = dict(plot.call_args.args[4])
        self.assertEqual(lines["cubic"], [(.2, 2), (.5, 5)])
        self.assertEqual([round(y, 9) for _, y in lines["ideal, fair"]], [1, 1])

    def test_report(self) -> None:
        """lab report makes tables of deciles from the raw results."""
        with tempfile.TemporaryDirectory() as out, mock.patch("builtins.print"), \
                mock.patch.object(plots, "plot"):
            os.mkdir(cells_dir(out))
            for raw in self.raws:
                save_raw(out, raw)
            save_summary(out, "test", self.scenario, "base", 1, [], self.cells)
            report.write_report(out)
            with open(os.path.join(out, "slowdown.md"), encoding="ascii") as file:
                text = file.read()
        self.assertIn("\n## Load 0.2\n", text)
        self.assertIn("| ideal, shortest first-0.5 | 1.000 / 1.000 / 1.000 |", text)


if __name__ == "__main__":
    unittest.main()
