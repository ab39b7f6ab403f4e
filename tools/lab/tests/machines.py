# SPDX-License-Identifier: GPL-2.0
"""Tests of runs on other machines. machines.sh starts the ssh servers and Slurm, and calls this.

The directory $work/here has the results of the same cells on this machine.
"""
import contextlib
import glob
import gzip
import json
import os
import pwd
import shutil
import signal
import subprocess
import time
import unittest
from typing import Any

from support import LAB

WORK = os.environ["work"]
HERE = os.path.join(WORK, "here")
OUT = os.path.join(WORK, "out")
HOSTS = ("alpha", "beta")
SHORT = ["--set", "run.warmup_ms=20", "--set", "run.measure_ms=30", "--jobs", "1"]
RUN = [os.path.join(LAB, "lab"), "run", "alone", *SHORT, "--out", OUT]
CLOCKD = [os.path.join(LAB, "lab"), "run", "clockd", *SHORT, "--set",
          "sample.flows_ms=10", "--cc", "9-load0"]
ALL = ["--cc", "timely,cubic+onramp,cubic", "--seeds", "1"]
ONE = ["--cc", "cubic", "--seeds", "1"]


def without_durations(value: Any) -> Any:
    """A value from JSON, without the wall time of runs and cells."""
    if isinstance(value, dict):
        return {key: without_durations(part) for key, part in value.items() if key != "wall_s"}
    return [without_durations(part) for part in value] if isinstance(value, list) else value


def results(out: str) -> dict[str, Any]:
    """The content of the files of a run by name."""
    found = {}
    for name in ["summary.json", *(f"cells/{name}" for name in os.listdir(f"{out}/cells"))]:
        with open(f"{out}/{name}", "rb") as file:
            data = file.read()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        found[name] = without_durations(json.loads(text)) if "json" in name else text
    return found


def lab(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run the cells with options."""
    return subprocess.run([*RUN, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def on_host(host: str, script: str) -> None:
    """Let a script of the shell handle the commands that come to a host from now on."""
    path = f"/home/{host}/command"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{script}\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n")
    os.chmod(path, 0o755)


def commands_seen(host: str) -> int:
    """The number of commands that a script on a host has seen."""
    with open(f"/home/{host}/seen", encoding="ascii") as file:
        return len(file.readlines())


def processes(user: str) -> list[str]:
    """The commands that a user runs, except ssh servers."""
    listed = subprocess.run(["ps", "-o", "stat=,args=", "-u", user], stdout=subprocess.PIPE,
                            text=True, check=False).stdout.splitlines()
    return [line for line in listed if "sshd" not in line and not line.startswith("Z")]


def temporary(user: str) -> list[str]:
    """A user's temporary files of runs, cells and guests."""
    uid = pwd.getpwnam(user).pw_uid
    return [path for path in glob.glob("/tmp/timely-*") if os.stat(path).st_uid == uid]


class Machines(unittest.TestCase):
    """What all cases share"""

    maxDiff = 2000

    def setUp(self) -> None:
        shutil.rmtree(OUT, ignore_errors=True)
        for host in HOSTS:
            for path in (f"/home/{host}/command", f"/home/{host}/seen"):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)

    def succeeds(self, *words: str) -> str:
        """The output of a run that must succeed with the results of this machine."""
        done = lab(*ALL, *words)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(results(OUT), results(HERE))
        return done.stdout

    def fails(self, message: str, *words: str) -> str:
        """The output of a run that must fail with a message."""
        done = lab(*words)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, message)
        return done.stdout

    def clean(self) -> None:
        """Hosts soon run nothing any more, and have no files of runs."""
        for host in HOSTS:
            for _ in range(100):
                if not processes(host):
                    break
                time.sleep(.2)
            self.assertEqual(processes(host), [])
            self.assertEqual(temporary(host), [])
            self.assertEqual(os.listdir(f"/home/{host}/.cache/timely"), [])

    def interrupt(self, *words: str) -> None:
        """Interrupt a run after its first cell."""
        with subprocess.Popen([*RUN, *ALL, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as run:
            output = ""
            for line in run.stdout or ():
                output += line
                if " seed " in line:
                    run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(), 1)
        self.assertIn("lab: interrupted", output)
        self.assertFalse(os.path.exists(f"{OUT}/bundle"))

    def continues(self, *words: str) -> None:
        """Interrupt a run, then run its other cells: no cell runs twice."""
        self.interrupt(*words)
        before = {path: os.stat(path).st_ino for path in glob.glob(f"{OUT}/cells/*.json.gz")}
        self.assertIn(len(before), (1, 2))
        self.succeeds("--keep", *words)
        self.assertEqual({path: os.stat(path).st_ino for path in before}, before)


class Ssh(Machines):
    """lab run --on"""

    def tearDown(self) -> None:
        self.clean()

    def test_same_results(self) -> None:
        """Two hosts give the results of this machine, and both run cells."""
        for host in HOSTS:
            on_host(host, "echo >>~/seen")
        self.succeeds("--on", "alpha,beta")
        for host in HOSTS:
            self.assertGreater(commands_seen(host), len(("copy", "check", "removal")))

    def test_clockd(self) -> None:
        """Hosts of a cell run a program of the checkout, and another one records their clocks."""
        here = f"{WORK}/clockd"
        for words in (["--out", here], ["--out", OUT, "--on", "alpha"]):
            done = subprocess.run([*CLOCKD, *words], stdin=subprocess.DEVNULL, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(results(OUT), results(here))
        self.assertTrue(results(here)["cells/9-load0-1.json.gz"]["clock_messages"])

    def test_host_dies(self) -> None:
        """Cells of a host whose connections break after the first checks run on the other host."""
        on_host("beta", "echo >>~/seen\n[ $(wc -l <~/seen) -le 2 ] || kill -9 $PPID")
        self.succeeds("--on", "beta,alpha")
        self.assertGreater(commands_seen("beta"), 2)

    def test_cell_fails(self) -> None:
        """A cell that fails on every host is reported with the end of its log; others succeed."""
        self.fails(r"nosuch-1: failed with status \d+: traffic: .* \(see cells/nosuch-1.log\) on "
                   r"(.*\n)*lab: 1 of 2 cells failed", "--cc", "nosuch,cubic", "--seeds", "1",
                   "--on", "alpha,beta")
        found = results(OUT)
        self.assertIn("traffic: ", found["cells/nosuch-1.log"])
        self.assertEqual([cell["cc"] for cell in found["summary.json"]["cells"]], ["cubic"])
        self.assertEqual(found["summary.json"]["failures"][0][:2], ["nosuch", 1])

    def test_other_files(self) -> None:
        """A host whose copy has another kernel is refused, and no cell runs."""
        on_host("beta", "for kernel in ~/.cache/timely/cells-*/kernel/linux; do\n"
                        "\t[ ! -e $kernel ] || echo >>$kernel\ndone")
        said = self.fails(r"beta\tlab: .* has other files than this run(.*\n)*"
                          "lab: a host cannot run cells", *ONE, "--on", "alpha,beta")
        self.assertNotIn("alpha\t", said)
        self.assertEqual(os.listdir(f"{OUT}/cells"), [])

    def test_other_programs(self) -> None:
        """A host is refused if programs behave differently there, and no cell runs.

        Where the dynamic linker's cache cannot be read, one more system call fails in each program.
        """
        cache = "/etc/ld.so.cache"
        shutil.chown(cache, group="alpha")
        os.chmod(cache, 0o640)
        try:
            self.fails(r"beta\tlab: programs such as ip and tc behave differently(.*\n)*"
                       "lab: a host cannot run cells", *ONE, "--on", "alpha,beta")
        finally:
            os.chmod(cache, 0o644)
        self.assertEqual(os.listdir(f"{OUT}/cells"), [])

    def test_no_connection(self) -> None:
        """A host without an ssh server is named."""
        self.fails(r"nowhere(.*\n)*lab: a host got no copy", *ONE, "--on", "alpha,nowhere")

    def test_interrupted(self) -> None:
        """An interrupted run stops its guests on all hosts, and can continue."""
        self.continues("--on", "alpha,beta")


class Slurm(Machines):
    """lab run --slurm"""

    def tearDown(self) -> None:
        for _ in range(100):
            queue = subprocess.run(["squeue", "-h"], stdout=subprocess.PIPE, check=True).stdout
            if not queue:
                break
            time.sleep(.2)
        self.assertEqual(queue, b"")

    def test_same_results(self) -> None:
        """An array job gives the results of this machine."""
        self.assertIn("--array=0-2%1", self.succeeds("--slurm"))
        self.assertEqual(sorted(os.listdir(OUT)), ["cells", "summary.json"])

    def test_cell_fails(self) -> None:
        """A cell that fails is reported with the end of its log."""
        self.fails(r"nosuch-1: failed with status \d+: traffic: ", "--cc", "nosuch", "--seeds", "1",
                   "--slurm")

    def test_other_files(self) -> None:
        """A node that sees other files runs no cell, and the output of its task is kept."""
        with open("/run/spoil", "w", encoding="ascii") as file:
            file.write(f"{OUT}/bundle/traffic")
        try:
            self.fails(r"task 0: lab: .* has other files than this run(.*\n)*"
                       "lab: cubic-1: no result came", *ONE, "--slurm")
        finally:
            os.remove("/run/spoil")
        self.assertEqual(sorted(os.listdir(f"{OUT}/slurm")), ["0.err", "0.out"])

    def test_bad_option(self) -> None:
        """An option that sbatch refuses ends the run."""
        self.fails(r"invalid partition(.*\n)*lab: sbatch submitted no job", *ONE,
                   "--slurm=--partition=none")

    def test_interrupted(self) -> None:
        """An interrupted run cancels the job, and can continue."""
        self.continues("--slurm")


if __name__ == "__main__":
    unittest.main()
