# SPDX-License-Identifier: GPL-2.0
"""Tests of pages: axes, verdicts, cells that failed or are missing, and hostile result files."""
import contextlib
import html.parser
import io
import json
import math
import os
import re
import tempfile
import threading
import unittest
from collections.abc import Sequence
from typing import Any
from unittest import mock

from support import raw_result, scenario
from timelylab import chart, measures, page, results, run
from timelylab.common import Figures, LabError, Scenario, ScenarioError
from timelylab.guest import Tools
from timelylab.store import Failure, cells_dir, raw_path, save_raw, save_summary

EVIL = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>{{script}}\u2028\x00"
VOID = ("meta", "img", "br")


class Reader(html.parser.HTMLParser):
    """Reads a page: its elements, its text, and whether elements are nested properly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"</{tag}> does not end the last element")

    def handle_data(self, data: str) -> None:
        self.words += data

    def count(self, tag: str) -> int:
        """The number of elements with a tag."""
        return sum(name == tag for name, _ in self.elements)


def cell(cc: str, seed: int, **figures: Any) -> Figures:
    """The figures of a cell."""
    return {"cc": cc, "seed": seed, "goodput_gbit": 9., "jain": .9, "retrans": 0, "drops": 0,
            "rtt_us": {"avg": 20., "p50": 18., "p99": 30.}} | figures


class Charts(unittest.TestCase):
    """Axes and charts"""

    def test_share(self) -> None:
        """A value beyond an end of the axis is drawn at this end."""
        line, log = chart.Axis("", 0, 10), chart.Axis("", 1, 100, True)
        self.assertEqual([line.share(x) for x in (-1, 0, 5, 10, 1e18)], [0, 0, .5, 1, 1])
        self.assertEqual([log.share(x) for x in (-1, 0, 1, 10, 1e18)], [0, 0, 0, .5, 1])

    def test_ticks(self) -> None:
        """Marks are at round values between the ends."""
        self.assertEqual(chart.Axis("", 0, 1).ticks(), [0, .2, .4, .6000000000000001, .8, 1])
        self.assertEqual(chart.Axis("", 30, 900, True).ticks(), [50, 100, 200, 500])
        for high in (1e-6, .3, 7, 99, 1e17):
            self.assertTrue(3 <= len(chart.Axis("", 0, high).ticks()) <= 12, high)

    def test_no_values(self) -> None:
        """An axis without values, or with zeros only, still has two ends."""
        rows: list[list[float]] = [[], [0], [0, 0], [-1]]
        for values in rows:
            for log in (False, True):
                axis = chart.axis_over("", values, log)
                self.assertLess(axis.low, axis.high)
                self.assertTrue(math.isfinite(axis.share(0)))

    def test_no_colour(self) -> None:
        """Lines differ by more than their colour."""
        looks = {(chart.MARKERS[i % len(chart.MARKERS)], chart.DASHES[i % len(chart.DASHES)])
                 for i in range(chart.STYLES)}
        self.assertEqual(len(looks), chart.STYLES)


class Verdicts(unittest.TestCase):
    """verdict() and difference()"""

    def test_verdict(self) -> None:
        """A value wins or loses only if the ranges are apart."""
        def entry(low: float, median: float, high: float) -> dict[str, float]:
            return {"min": low, "median": median, "max": high}
        for mine, better, word in ((entry(7, 8, 9), 1, "lost"), (entry(7, 8, 9), -1, "won"),
                                   (entry(21, 22, 23), 1, "won"), (entry(21, 22, 23), -1, "lost"),
                                   (entry(5, 11, 15), -1, "no clear difference"),
                                   (entry(11, 12, 12.0001), 1, "equal")):
            self.assertEqual(measures.verdict(mine, entry(10, 12, 13), better), word)

    def test_difference(self) -> None:
        """Differences are in per cent, large ones as a factor; a peer's 0 has none."""
        for mine, peer, text in ((98, 100, ", 2 % less"), (150, 100, ", 50 % more"), (5, 5, ""),
                                 (900, 100, ", 9 times as much"), (3, 0, ""), (0, 0, "")):
            self.assertEqual(measures.difference(mine, peer), text)


class Pages(unittest.TestCase):
    """Pages of runs in a directory"""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = directory.name
        os.mkdir(cells_dir(self.out))
        self.cells = [cell("timely", 1), cell("timely", 2, goodput_gbit=8.),
                      cell("cubic", 1, goodput_gbit=9.5, rtt_us={"avg": 90., "p99": 120.})]
        self.failures: list[Failure] = []
        self.scenario = scenario()

    def read(self) -> Reader:
        """Save the summary, and read the page of the run."""
        save_summary(self.out, "test", self.scenario, "base", 1, self.failures, self.cells)
        path = os.path.join(self.out, "index.html")
        page.write_page(path, [page.load_run(self.out)])
        with open(path, encoding="ascii") as file:
            self.text = file.read()
        reader = Reader(self.text)
        self.assertEqual(reader.open, [])
        return reader

    def row(self, name: str) -> list[str]:
        """The texts of a row of the first table."""
        found = re.search(rf"<tr[^>]*><th scope=row>{name}</th>(.*?)</tr>", self.text)
        assert found
        return re.findall("<td>(.*?)</td>", found[1])

    def test_figures(self) -> None:
        """The table has the figures of summary.json; the page says where the peer is better."""
        words = self.read().words
        self.assertEqual(self.row("timely"), ["fq", "2", "8.500 (8.000..9.000)", "20.00", "30.00",
                                              "0.900", "0", "0"])
        self.assertIn("3 of 3 cells have finished.", words)
        self.assertIn("lost: 8.500 (8.000..9.000) Gb/s, 11 % less", words)
        self.assertIn("won: 30.00 us, 75 % less", words)
        self.assertIn("Lost: goodput (cubic is better than timely).", words)
        self.assertIn("No raw result can be read for timely, cubic", words)

    def test_curves(self) -> None:
        """With a raw result there are charts of curves, with the values at each point."""
        for cc in ("timely", "cubic"):
            save_raw(self.out, raw_result() | {"cc": cc})
        reader = self.read()
        self.assertNotIn("No raw result", reader.words)
        self.assertEqual(reader.count("figure"), 5)
        self.assertIn("timely, h1 5001: 6.000 Gb/s", reader.words)
        lines = [attrs for tag, attrs in reader.elements if tag == "polyline"]
        values = next(attrs["data-values"] or "" for attrs in lines if "data-values" in attrs)
        self.assertTrue(values.startswith("20,0.005 ") and values.endswith(" 30,1"))
        self.assertTrue(any("data-values" not in attrs for attrs in lines), "the legend")

    def test_self_contained(self) -> None:
        """The page loads nothing, and its policy forbids to; a finished run is not reloaded."""
        reader = self.read()
        policy = next(attrs["content"] or "" for _, attrs in reader.elements
                      if attrs.get("http-equiv") == "Content-Security-Policy")
        self.assertTrue(policy.startswith("default-src 'none';"))
        self.assertNotIn("refresh", [attrs.get("http-equiv") for _, attrs in reader.elements])
        for tag, attrs in reader.elements:
            self.assertFalse({"src", "href", "srcset", "data"} & set(attrs), tag)
        self.assertNotRegex(self.text, r"url\(|@import|https?://")

    def test_failures(self) -> None:
        """A cell that failed is shown with the reason, also if no other cell has its name."""
        self.failures = [("cubic", 2, "guest: the guest crashed"), ("bbr", 1, EVIL)]
        words = self.read().words
        self.assertIn("3 of 5 cells have finished, 2 failed.", words)
        self.assertIn("cubic, seed 2: guest: the guest crashed", words)
        self.assertEqual(self.row("cubic")[1], "1, 1 failed")
        self.assertEqual(self.row("bbr"), ["fq", "1 failed", "-", "-", "-", "-", "-", "-"])

    def test_all_failed(self) -> None:
        """A run without any result is a page without charts."""
        self.cells, self.failures = [], [("timely", 1, "no output")]
        reader = self.read()
        self.assertIn("0 of 1 cells have finished, 1 failed.", reader.words)
        self.assertEqual(reader.count("figure"), 0)

    def test_hostile_texts(self) -> None:
        """Texts of result files make no elements."""
        plain = self.read()
        self.scenario["title"] = EVIL
        self.scenario["flows"][0]["group"] = EVIL
        self.scenario["report"] = {"columns": [[EVIL, "goodput_gbit"]]}
        name = EVIL.replace("/", "").replace("\x00", "")
        self.cells.append(cell(name, 1, goodput_gbit=10.))
        for cc in ("timely", name):
            save_raw(self.out, raw_result() | {
                "cc": cc, "flows": [raw_result()["flows"][0] | {"from": EVIL}]})
        reader = self.read()
        self.assertEqual((reader.count("script"), reader.count("img")), (1, plain.count("img")))
        self.assertIn("alert(1)", reader.words)
        self.assertFalse([attrs for _, attrs in reader.elements if "onerror" in attrs])

    def test_hostile_figures(self) -> None:
        """What is not a finite number is missing; the figures beside it are still there."""
        for value in (math.nan, math.inf, -math.inf, 10 ** 400, "7", None, True, [], {"p99": 1}):
            self.cells = [cell("timely", 1, goodput_gbit=value, rtt_us=value), cell("cubic", 1)]
            self.read()
            self.assertEqual(self.row("timely")[2], "-", value)
            self.assertEqual(self.row("timely")[5], "0.900", value)
            self.assertEqual(self.row("cubic")[2], "9.000", value)

    def test_hostile_raw(self) -> None:
        """A raw result that cannot be used leaves out the curves, not the figures."""
        changes: list[Figures] = [
            {"pings": [{"samples": [[15_000_000, "x"]]}]}, {"queues": []}, {"flows": 7},
            {"flow_times": []}, {"pings": [{"samples": [[15_000_000, math.nan]]}]}]
        for change in changes:
            save_raw(self.out, raw_result() | change)
            self.assertIn("No raw result can be read for timely, cubic", self.read().words)
        with open(raw_path(self.out, "timely", 1), "wb") as file:
            file.write(b"\x1f\x8b not gzip")
        self.assertIn("No raw result can be read for timely, cubic", self.read().words)

    def test_hostile_summaries(self) -> None:
        """A file that is not a summary is an error that names the file, and writes no page."""
        save_summary(self.out, "test", self.scenario, "base", 1, [], self.cells)
        path = os.path.join(self.out, "summary.json")
        with open(path, encoding="ascii") as file:
            good = json.load(file)
        bad: list[Any] = [[], 7, "x", {}, good | {"cells": 7}, good | {"cells": [{}]},
                          good | {"scenario": []}, good | {"failed": "many"},
                          good | {"failures": [["cubic"]]},
                          good | {"cells": [cell("../../x", 1)]},
                          good | {"cells": [good["cells"][0] | {"seed": "1/2"}]}]
        for text in [json.dumps(value) for value in bad] + ["", "{", "[" * 100_000, "\xff"]:
            with open(path, "w", encoding="latin-1") as file:
                file.write(text)
            with self.assertRaisesRegex(LabError, "summary.json", msg=text[:60]):
                page.load_run(self.out)

    def test_no_directory(self) -> None:
        """A page that cannot be written is an error that says why."""
        self.read()
        with self.assertRaisesRegex(LabError, "cannot write the page .*: File exists"):
            page.write_page(os.path.join(self.out, "summary.json", "x"), [])


class Live(unittest.TestCase):
    """lab run --page, with guests replaced by fixed results"""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = os.path.join(directory.name, "run")
        self.path = os.path.join(directory.name, "pages", "index.html")
        self.cells = 0
        self.pages: list[str] = []
        self.breaks: BaseException | None = None

    def cell(self, own: Scenario, cc: str, seed: int, out: str, *_: object) -> Figures:
        """The result of a cell, as soon as the page shows the cell before it."""
        assert self.turn.acquire(timeout=10)
        self.cells += 1
        if cc == "cubic":
            raise LabError("cubic-1: failed with status 126")
        if seed == 2 and self.breaks:
            self.turn.release()
            raise self.breaks
        raw = raw_result() | {"cc": cc, "seed": seed}
        save_raw(out, raw)
        return results.figures(own, raw)

    def page(self) -> str:
        """The text of the page."""
        with open(self.path, encoding="ascii") as file:
            return file.read()

    def start(self, beside: Sequence[str] = (), more: bool = False) -> str:
        """Run the small scenario; the result is the message of the error that ended it."""
        options = run.Options("small", None, None, self.out, False, False, (), (), "base", 1,
                              self.path, beside, more=more)
        self.turn, write = threading.Semaphore(), run.Progress.write

        def write_and_read(progress: run.Progress) -> None:
            write(progress)
            self.pages.append(self.page())
            self.turn.release()

        with mock.patch.multiple(run, load_scenario=lambda *_: scenario(), run_cell=self.cell,
                                 scenario_path=lambda name: name,
                                 prepare=lambda *_: Tools("kernel", "", "", "")), \
                mock.patch.object(run.Progress, "write", write_and_read), \
                contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            try:
                run.run_scenario(options)
            except (LabError, KeyboardInterrupt) as error:
                return str(error) or "interrupted"
        return ""

    def test_states(self) -> None:
        """The page is rewritten after each cell; at the end `lab page` writes the same page."""
        self.assertEqual(self.start(), "1 of 3 cells failed")
        states = [re.findall(r'class="state">(.*?)</p>', text)[0] for text in self.pages]
        more = "The others are under way; this page reloads every 5 seconds."
        self.assertEqual(states, [f"1 of 3 cells have finished. {more}",
                                  f"2 of 3 cells have finished. {more}",
                                  "2 of 3 cells have finished, 1 failed. More follows; this page "
                                  "reloads every 5 seconds.",
                                  "2 of 3 cells have finished, 1 failed."])
        *live, last = self.pages
        self.assertTrue(all('http-equiv="refresh"' in text for text in live))
        self.assertIn("cubic, seed 1: cubic-1: failed with status 126", last)
        self.assertNotIn('http-equiv="refresh"', last)
        page.write_page(self.path, [page.load_run(self.out)])
        self.assertEqual(last, self.page())

    def test_earlier_run(self) -> None:
        """The page shows an earlier run above this one; a wrong directory starts no cell."""
        self.start()
        first, self.out = self.out, self.out + "-2"
        self.start([first])
        self.assertEqual(self.page().count("<section>"), 3)
        self.assertIn("4 of 6 cells have finished, 2 failed.", self.page())
        self.assertIn("no summary.json", self.start([os.path.dirname(self.path)]))
        self.assertEqual(self.cells, 6)

    def test_more_follows(self) -> None:
        """Between two runs browsers go on reloading the page, and at the end of the last not."""
        self.start(more=True)
        self.assertIn('http-equiv="refresh"', self.page())
        self.assertIn("More follows", self.page())
        first, self.out = self.out, self.out + "-2"
        self.start([first])
        self.assertNotIn('http-equiv="refresh"', self.page())

    def test_ended_early(self) -> None:
        """A run that ends early leaves a page that says so and is not reloaded."""
        errors: dict[str, BaseException] = {"The run was interrupted": KeyboardInterrupt(),
                                            "no such key": ScenarioError("no such key")}
        for told, self.breaks in errors.items():
            self.start()
            self.assertIn(f"1 of 3 cells have finished, 2 did not run. {told}.", self.page())
            self.assertNotIn('http-equiv="refresh"', self.page())

    def test_page_fails(self) -> None:
        """A page that cannot be written ends a run at the start, but not later."""
        os.makedirs(self.path)
        self.assertIn("cannot write the page", self.start())
        self.assertEqual(self.cells, 0)
        os.rmdir(self.path)
        with mock.patch.object(run, "write_page", side_effect=[None] + [LabError("full")] * 4):
            self.path = os.devnull
            self.assertEqual(self.start(), "1 of 3 cells failed")
        self.assertTrue(os.path.exists(os.path.join(self.out, "summary.json")))


if __name__ == "__main__":
    unittest.main()
