# SPDX-License-Identifier: GPL-2.0
"""Tests of results.sh with a testbed that only pretends, and of the sentences of misses.py."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import misses

HERE = os.path.dirname(os.path.realpath(__file__))
# lab run and report write files; lab verify fails for scenarios named bad* and for plain, which expects nothing.
LAB = """#!/bin/sh
case $1:$2 in
run:*)		mkdir -p "build/results/$2"; touch "build/results/$2/summary.json" "build/results/$2/table.md" ;;
verify:*/bad*)	printf 'TAP version 13\\n1..2\\nok 1 - fine\\nnot ok 2 - too slow\\n'
		echo 'lab: 1 of 2 expectations failed' >&2; exit 1 ;;
verify:*/plain)	printf 'TAP version 13\\n1..0\\n'; echo 'lab: 0 of 0 expectations failed' >&2; exit 1 ;;
verify:*/torn)	echo 'lab: no such file' >&2; exit 1 ;;
esac
"""


class Results(unittest.TestCase):
    """results.sh stores all results, and fails at the end if some miss what their scenario expects."""

    def run_with(self, *names: str) -> tuple[int, str, list[str]]:
        """The exit status, the errors and the stored directories after results.sh with these scenarios."""
        with tempfile.TemporaryDirectory() as top:
            for path, text in (("tools/lab/lab", LAB), ("tools/docs/make.sh", "#!/bin/sh\n")):
                os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
                with open(os.path.join(top, path), "w", encoding="ascii") as file:
                    file.write(text)
                os.chmod(file.name, 0o755)
            shutil.copy(os.path.join(HERE, "results.sh"), os.path.join(top, "tools/docs"))
            ran = subprocess.run([os.path.join(top, "tools/docs/results.sh"), *names], capture_output=True, text=True,
                                 check=False)
            return ran.returncode, ran.stderr, sorted(os.listdir(os.path.join(top, "results")))

    def test_missed(self) -> None:
        """A miss does not keep later results from being stored, and is named at the end."""
        self.assertEqual(self.run_with("good", "plain"), (0, "", ["good", "plain"]))
        status, errors, stored = self.run_with("bad1", "good", "bad2", "torn")
        self.assertEqual((status, stored), (1, ["bad1", "bad2", "good", "torn"]))
        self.assertIn("not ok 2 - too slow", errors)
        self.assertIn("miss what is expected: bad1 bad2 torn\n", errors)
        self.assertNotIn("fine", errors)

    def test_sentence(self) -> None:
        """The sentence below a table has the figure, the bounds and the values of the seeds that miss them."""
        summary = {"failed": 0, "cells": [{"cc": "timely", "seed": seed, "jain": jain, "rtt_us": {"p99": 70.0}}
                                          for seed, jain in ((1, .7), (2, .9), (3, .65))],
                   "scenario": {"expect": [{"cc": "timely", "figure": "jain", "min": .8},
                                           {"cc": "timely", "figure": "rtt_us.p99", "max": 80},
                                           {"cc": "timely", "figure": "rtt_us.p99", "max": 60, "median": True}]}}
        with tempfile.TemporaryDirectory() as top, mock.patch.object(
                misses, "summary_path", lambda name: os.path.join(top, name, "summary.json")):
            os.mkdir(os.path.join(top, "load"))
            with open(os.path.join(top, "load/summary.json"), "w", encoding="ascii") as file:
                json.dump(summary, file)
            self.assertEqual(misses.sentence("load"),
                             "**Misses what the scenario expects**: `jain` of `timely`, expected at least 0.800: "
                             "0.700 (seed 1), 0.650 (seed 3); `rtt_us.p99` of `timely`, expected at most 60: "
                             "70.00 (median).")
            self.assertEqual(misses.sentence("other"), "")


if __name__ == "__main__":
    unittest.main()
