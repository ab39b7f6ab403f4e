# SPDX-License-Identifier: GPL-2.0
"""Tests of figures.py: what it reads as a number, the values of claims, and what is reported as stale."""
import os
import tempfile
import unittest
from unittest import mock

import figures
import recorded

CELLS = [{"cc": cc, "seed": seed, "rtt_us": {"p99": p99 + seed, "count": 7}, "goodput_gbit": gbit, "jain": 1.0}
         for cc, p99, gbit in (("timely-0.2", 60, 9.5), ("timely-0.5", 80, 9.0), ("cubic-0.2", 120, 9.52),
                               ("cubic-0.5", 240, 10.0)) for seed in (1, 2, 3)]
TABLE = """# Cycles

|  Gb/s | flows |         fq |  p99 |  timely | p99 | share |
|------:|------:|-----------:|-----:|--------:|----:|------:|
|    10 |     1 | 8 (7..900) |   20 | 4 (3..5) | 30 | 12.5 % |
|    10 |   100 |          - |   21 | 5 (3..5) | 31 | 4.6 % |
|    25 |     1 |         12 |   22 | 6.4 ok  |  32 | 0.8 % |
"""


class Figures(unittest.TestCase):
    """Claims against the cells and the table above."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        os.makedirs(os.path.join(directory.name, "results/bench"))
        with open(os.path.join(directory.name, "results/bench/one.md"), "w", encoding="ascii") as file:
            file.write(TABLE)
        for module, name, value in ((figures, "TOP", directory.name), (figures, "cells", self.cells),
                                    (recorded, "cells", self.cells)):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    @staticmethod
    def cells(scenario: str) -> list[recorded.Cell]:
        """The cells of the scenario "load"; no other scenario has results."""
        return CELLS if scenario == "load" else []

    def problems(self, text: str, *lines: str) -> list[str]:
        """What is wrong with a paragraph and the lines of its comment."""
        comment = "\n".join(("<!-- figures load", *lines, "-->"))
        return list(figures.check(f"# Title\n\n{text}\n{comment}\n\nMore: 77.\n", str))

    def test_true(self) -> None:
        """Figures that results have are accepted, with fewer digits and in other units."""
        for text, claim in (
                ("timely has 62 us", "# us = rtt_us.p99 of timely-0.2"),
                ("timely has 62.0 us", "# us = rtt_us.p99 of load:timely-0.2"),
                ("timely has .062 ms", "# ms = timely-0.2@rtt_us.p99"),
                ("9500 Mb/s", "# Mb/s = goodput_gbit of timely-0.2"),
                ("62 and 82 us", "# and # us = rtt_us.p99 of timely-*"),
                ("49 and 66 % less", "# and # % less = rtt_us.p99 of less(timely-*, cubic-*)"),
                ("2.0 to 2.95 times", "# to # times = rtt_us.p99 of ends(cubic-* / timely-*)"),
                ("97 to\n195 % more", "# to # % more = rtt_us.p99 of more(cubic-*, timely-*)"),
                ("the best has 62 and 82 us", "# and # us = rtt_us.p99 of low(cubic-*, timely-*)"),
                ("62 us, later 242 us", "# us, later # us = rtt_us.p99 of all(timely-0.2, cubic-0.5)"),
                ("62 and 242 us", "# and # us = rtt_us.p99 of {timely-0.2,cubic-0.5}"),
                ("about 9000 Mb/s", "about # Mb/s = goodput_gbit of timely-0.5 - .3"),
                (".062 and .082 ms", "# and # ms = rtt_us.p99 of timely-*"),
                ("5 % less than the link", "# % less than the link = goodput_gbit of less(timely-0.2, 10Gb/s)"),
                ("7 pings", "# pings = rtt_us.count of timely-0.2"),
                ("61 to 63 us", "# to # us = rtt_us.p99, all seeds of ends(timely-0.2)"),
                ("at most 82 us", "at most # us = rtt_us.p99 of high(timely-*)"),
                ("8 cycles", '# cycles = fq of bench/one.md:"10 1"'),
                ("30 to 32", "# to # = timely p99 of ends(bench/one.md:*)"),
                ("20 and 22", '# and # = fq p99 of bench/one.md:"?? 1"'),
                ("12.5 % of a CPU", '# % = share of bench/one.md:"10 1"'),
                ("half of it, .5 times", '# times = bench/one.md:"10 1@timely" / bench/one.md:"10 1@fq"')):
            self.assertEqual(self.problems(text, claim), [], text)

    def test_stale(self) -> None:
        """A figure that is no longer in results is reported with the present one."""
        for text, claim, present in (
                ("timely has 61 us", "# us = rtt_us.p99 of timely-0.2", "= 62 us"),
                ("timely has 62.1 us", "# us = rtt_us.p99 of timely-0.2", "= 62 us"),
                ("timely has 62 ms", "# ms = rtt_us.p99 of timely-0.2", "= 62 us"),
                ("48 and 65 % less", "# and # % less = rtt_us.p99 of less(timely-*, cubic-*)", "= 0.4918, 0.6612"),
                ("82 and 62 us", "# and # us = rtt_us.p99 of timely-*", "= 62, 82 us"),
                ("62 to 82 us", "# to # us = rtt_us.p99 of ends(timely-*, cubic-*)", "= 62, 242 us"),
                ("7 cycles", '# cycles = fq of bench/one.md:"10 1"', "= 8"),
                ("4.5 % of a CPU", '# % = share of bench/one.md:"10 100"', "= 4.6 %")):
            found = self.problems(text, claim)
            self.assertEqual(len(found), 1, text)
            self.assertIn(present, found[0])

    def test_without_results(self) -> None:
        """A claim about what results do not have, or of another unit, is reported."""
        for claim in ("# us = rtt_us.p99 of vegas-*", "# us = rtt_us.p50 of timely-0.2", "# us = jain of timely-0.2",
                      "# us = rtt_us.p99 of other:timely-0.2", "# us = fq of bench/two.md:*",
                      "# us = vegas of bench/one.md:*",
                      "# us = ends(timely-0.2@rtt_us.p99, timely-0.2@jain)", "# us = rtt_us.p99 of timely-0.2 /"):
            self.assertEqual(len(self.problems("timely has 62 us", claim)), 1, claim)

    def test_numbers(self) -> None:
        """Each number has to be claimed or given, except in code, links, names and of sections."""
        claim = "# us = rtt_us.p99 of timely-0.2"
        self.assertEqual(self.problems("62 us for 2 KB", claim, "given 2"), [])
        self.assertEqual(len(self.problems("62 us for 2 KB", claim)), 1)
        self.assertEqual(len(self.problems("62 us for 2 KB, .4 of it", claim, "given 2")), 1)
        self.assertEqual(len(self.problems("62 us", claim, "given 3")), 1)
        self.assertEqual(len(self.problems("62 us, 2 KB", "# us, 2 KB = rtt_us.p99 of timely-0.2")), 1)
        self.assertEqual(self.problems("62 us [at p99](x.md#2), h11, `a 3`, Figs. 2 and 4, commit 2366433, 10.1.0.0/16",
                                       claim), [])

    def test_text(self) -> None:
        """The text of a claim has to be in the paragraph, behind the claim before."""
        self.assertEqual(len(self.problems("has 62 us", "gets # us = rtt_us.p99 of timely-0.2", "given 62")), 1)
        self.assertEqual(len(self.problems("82 us and 62 us", "# us and = rtt_us.p99 of timely-0.5",
                                           "# us = rtt_us.p99 of timely-0.5")), 1)
        self.assertEqual(self.problems("has 62 us", "# us = rtt_us.p99 of", "  timely-0.2"), [])
        self.assertEqual(self.problems("has 8", "in bench/one.md", '# = fq of "10 1"'), [])

    def test_manual(self) -> None:
        """In manual pages macros end paragraphs or set fonts, and comments have a mark of their own."""
        page = '.SH GAIN\n77 hosts\n.PP\n.BR timely (7)\nhas \\fB62\\fR \\(mcs,\n.I two\n{}.PP\nMore.\n'
        comment = '.\\" <!-- figures load\n.\\" has # us, two = rtt_us.p99 of {}\n.\\" -->\n'
        self.assertEqual(list(figures.check(figures.plain(page.format(comment.format("timely-0.2"))), str)), [])
        self.assertEqual(len(list(figures.check(figures.plain(page.format(comment.format("timely-0.5"))), str))), 1)

    def test_verdict(self) -> None:
        """A verdict with a number and without a comment is reported."""
        self.assertEqual(list(figures.check("# Title\n\nMore.\n**Verdict.** 62 us.\n\nMore.\n", str)),
                         ["3: a verdict with numbers, but without <!-- figures"])
        self.assertEqual(list(figures.check("# Title\n\n**Verdict.** Won.\n", str)), [])


if __name__ == "__main__":
    unittest.main()
