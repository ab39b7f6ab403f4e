# SPDX-License-Identifier: GPL-2.0
"""Tests of runs on other machines, without other machines: what lab sends, and what it accepts."""
import base64
import contextlib
import gzip
import io
import json
import os
import platform
import re
import tempfile
import unittest
from typing import Any
from unittest import mock

from support import raw_result, scenario
from timelylab import bundle, cli, elsewhere, guest, nicbed
from timelylab.cell import scenario_of
from timelylab.common import TOP, Figures, LabError
from timelylab.guest import Tools
from timelylab.network import cell_script
from timelylab.results import figures
from timelylab.scenario import load_scenario, scenario_path
from timelylab.store import Cell, cells_dir, load_raw

CELLS: list[Cell] = [("timely", 1), ("cubic", 1)]


def line(cell: Any, raw: Any, **more: Any) -> str:
    """What lab cell prints for a cell with this raw result."""
    files = {".json.gz": base64.b64encode(gzip.compress(json.dumps(raw).encode())).decode(),
             ".log": base64.b64encode(b"the log").decode()}
    return json.dumps({"cell": cell, "host": "h", "error": "", "files": files} | more) + "\n"


class Hosts(unittest.TestCase):
    """hosts_of() and the command line refuse what is no name of a host."""

    def test_names(self) -> None:
        """Names may have a user; a host that is named twice is one host."""
        self.assertEqual(elsewhere.hosts_of("a1,me@b-2.example,a1"), ["a1", "me@b-2.example"])

    def test_refused(self) -> None:
        """Options, spaces, ports, and what GNU parallel or a shell would understand."""
        for name in ("", "-oProxyCommand=x", "me@-x", "a b", "a,", "4/a", ":", "..", "a:22", "a\n",
                     "@group", "a;b", "$(b)", "me@you@a"):
            with self.subTest(name), self.assertRaisesRegex(LabError, "is no name of a host"):
                elsewhere.hosts_of(name)

    def test_nothing_is_removed(self) -> None:
        """A wrong option ends the command before an earlier run is removed."""
        with tempfile.TemporaryDirectory() as out:
            os.mkdir(cells_dir(out))
            for words, message in ((["--on=a b"], "no name of a host"),
                                   (["--jobs", "0"], "above 0"),
                                   (["--slurm=--comment='"], "--slurm=--comment=': No closing"),
                                   (["--on", "a"], "needs the programs parallel rsync ssh"),
                                   (["--slurm"], "needs the programs sbatch scancel")):
                with mock.patch("sys.argv", ["lab", "run", "idle", "--out", out, *words]), \
                        mock.patch("shutil.which", lambda _: None), \
                        self.assertRaisesRegex(SystemExit, message):
                    cli.main()
                self.assertTrue(os.path.exists(cells_dir(out)))


class Results(unittest.TestCase):
    """results_elsewhere() with lines that other machines might send"""

    def setUp(self) -> None:
        out = tempfile.TemporaryDirectory()
        self.addCleanup(out.cleanup)
        self.out = out.name
        os.mkdir(cells_dir(self.out))
        self.closed = False

    def results(self, *lines: str) -> dict[Cell, Figures | LabError]:
        """The results if other machines send these lines."""
        def start(where: str, digest: str, count: int) -> elsewhere.Lines:
            self.assertEqual((where, digest, count),
                             (os.path.realpath(f"{self.out}/bundle"), "digest", 2))
            yield from lines

        with mock.patch.object(elsewhere, "make_bundle", lambda *_: "digest"), \
                contextlib.redirect_stderr(io.StringIO()) as self.said:
            return dict(elsewhere.results_elsewhere(scenario(), CELLS, self.out,
                                                    Tools("", "", "", ""), start))

    def test_good(self) -> None:
        """The result is that of this machine, and the files are kept."""
        raw = raw_result()
        got = self.results(line(0, raw), line(1, raw | {"cc": "cubic"}))
        self.assertEqual(got, {("timely", 1): figures(scenario(), raw),
                               ("cubic", 1): figures(scenario(), raw | {"cc": "cubic"})})
        self.assertEqual(sorted(os.listdir(cells_dir(self.out))),
                         [f"{cc}-1.{part}" for cc in ("cubic", "timely")
                          for part in ("json.gz", "log", "plan")])

    def test_second_try(self) -> None:
        """A cell that fails and then succeeds has succeeded; more results change nothing."""
        raw = raw_result()
        got = self.results(line(0, raw, files={}, error="timely-1: failed"), line(0, raw),
                           line(0, raw | {"queues": 3}))
        self.assertEqual(got["timely", 1], figures(scenario(), raw))
        self.assertEqual(load_raw(self.out, "timely", 1), raw)
        self.assertRegex(str(got["cubic", 1]), "cubic-1: no result came")

    def test_failure(self) -> None:
        """The error of a cell has the host, and the log is kept."""
        got = self.results(line(0, {}, files={".log": "eA=="}, error="timely-1:\x1b failed"))
        self.assertEqual(str(got["timely", 1]), "timely-1: failed on h")
        self.assertEqual(sorted(os.listdir(cells_dir(self.out))), ["timely-1.log", "timely-1.plan"])

    def test_not_results(self) -> None:
        """Lines that are no results are shown in quotes, and change nothing."""
        raw = raw_result()
        for text in ("Welcome to this host\n", "{}\n", "[]\n", "7\n", "[" * 100_000,
                     line(2, raw), line(-1, raw), line([], raw), line("../x", raw),
                     line(0, raw, files=3), line(0, raw, files={".log": "not base64"}),
                     "\x1b[2J{}\n"):
            with self.subTest(text[:50]):
                got = self.results(text)
                self.assertTrue(all(isinstance(value, LabError) for value in got.values()))
                self.assertIn("lab: not a result: ", self.said.getvalue())
                self.assertNotIn("\x1b", self.said.getvalue())
                self.assertEqual(os.listdir(cells_dir(self.out)), [])

    def test_broken_results(self) -> None:
        """A raw result that is broken, or of another cell, is removed."""
        raw = raw_result()
        for text in (line(0, {}), line(0, []), line(0, raw | {"cc": "cubic"}),
                     line(0, raw | {"queues": 3}), line(0, raw, files={".json.gz": "eA=="}),
                     line(0, raw, files={})):
            with self.subTest(text[:200]):
                self.assertRegex(str(self.results(text)["timely", 1]),
                                 "timely-1: another machine sent a broken result")
                self.assertFalse([name for name in os.listdir(cells_dir(self.out))
                                  if name.endswith(".gz")])


class Bundle(unittest.TestCase):
    """Bundles of other runs are refused."""

    def test_digest(self) -> None:
        """The digest changes with the content and with the name of any file."""
        with tempfile.TemporaryDirectory() as where:
            digests = [bundle.digest_of(where)]
            os.mkdir(f"{where}/a")
            for name, text in (("a/b", "x"), ("a/b", "y"), ("a/c", "y")):
                with open(f"{where}/{name}", "w", encoding="ascii") as file:
                    file.write(text)
                digests.append(bundle.digest_of(where))
            os.rename(f"{where}/a", f"{where}/d")
            digests.append(bundle.digest_of(where))
        self.assertEqual(len(set(digests)), 5)

    def test_refused(self) -> None:
        """Other files, processors and programs are refused; a checkout is no bundle."""
        mine = platform.machine()
        with mock.patch.multiple(bundle, digest_of=lambda _: "1", guest_clock=lambda _: "2"):
            bundle.check_machine("1", mine, "2")
            for words, message in ((("3", mine, "2"), "has other files than this run"),
                                   (("1", "vax", "2"), "the run's kernel is for vax"),
                                   (("1", mine, "3"), "such as ip and tc behave differently")):
                with self.assertRaisesRegex(LabError, message):
                    bundle.check_machine(*words)
        with self.assertRaisesRegex(LabError, "lab cell works only in the bundles"):
            bundle.run_in_bundle("1", 0)

    def test_complete(self) -> None:
        """What the script of a cell uses of the checkout is in the bundle."""
        for name, cc, program in (("clockd", "16-load0", "timely-clockd"),
                                  ("alone", "cubic+onramp", "timelyctl"),
                                  ("qdisc", "timely", "q_timely.so")):
            own = load_scenario(scenario_path(name), [], [])
            with mock.patch.multiple(guest, build=lambda *_: "", built_path=lambda *_: "/built"), \
                    mock.patch.object(nicbed, "build", lambda _: "/built"):
                tools = guest.prepare("base", own, [cc])
            script = cell_script(scenario_of(own, cc), cc, 1, tools.modules, tools.hwnic)
            used = set(re.findall(rf"{re.escape(TOP)}/([\w./-]+)", script)) - {"build/tc"}
            copied = (*bundle.CHECKOUT, *tools.programs)
            with self.subTest(name):
                self.assertTrue(any(path.endswith(program) for path in tools.programs))
                self.assertEqual(used - set(copied), set())

    def test_missing(self) -> None:
        """A program that was not built ends the run here, not in each cell on other machines."""
        with tempfile.TemporaryDirectory() as where:
            tools = Tools("/none", "/none", "", "", ["build/no-such-program"])
            with self.assertRaises(FileNotFoundError):
                bundle.make_bundle(f"{where}/bundle", scenario(), CELLS, tools)


if __name__ == "__main__":
    unittest.main()
