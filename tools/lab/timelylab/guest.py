# SPDX-License-Identifier: GPL-2.0
"""Runs cells in guests: builds what guests need, runs a guest for a cell, keeps the raw result."""
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import clockd, ndp, nicbed, onramp, timestamps
from .cell import clockd_of, module_files, nic_of, port_queue, qdiscs_used, scenario_of
from .common import LAB, Figures, LabError, Raw, Scenario, build
from .network import cell_script
from .plan import make_plan
from .results import figures
from .store import cell_base, last_line, load_raw, raw_path, save_raw


@dataclass(frozen=True)
class Tools:
    """Paths of what was built for a run: directories, and the traffic engine's program.

    programs: further programs that the cells use, relative to the checkout
    """

    kernel: str
    traffic: str
    modules: str
    hwnic: str
    programs: Sequence[str] = ()


def built_path(argv: Sequence[str], what: str) -> str:
    """Run a build command; the last line of its output is the path of the result."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LabError(f"{what} failed: the reason is above")
    return done.stdout.strip().splitlines()[-1]


def prepare(kernel: str, scenario: Scenario, ccs: Iterable[str]) -> Tools:
    """Build everything that the cells of these congestion controls need."""
    ccs = list(ccs)
    kernel_dir = kernel if kernel.startswith("/") else \
        built_path([os.path.join(LAB, "uml", "build.sh"), kernel], "building the lab's kernel")
    traffic = build("tools/lab", "path")
    modules = ""
    if any(module_files(scenario, cc) for cc in ccs):
        modules = built_path([os.path.join(LAB, "modules.sh"), kernel], "building the modules")
    programs: list[str] = []
    if any(onramp.settings(scenario, cc) for cc in ccs):
        build("tools/timelyctl")
        programs.append("build/timelyctl/timelyctl")
    if any(clockd_of(scenario, cc) for cc in ccs):
        build("tools/clockd")
        programs.append("build/clockd/timely-clockd")
    if any("timely" in qdiscs_used(scenario, cc) or port_queue(scenario, cc) == "trim"
           for cc in ccs):
        build("tools/tc")
        programs += ["build/tc/q_timely.so", "build/tc/q_trim.so"]
    return Tools(kernel_dir, traffic, modules,
                 nicbed.build(kernel) if "nic" in scenario else "", programs)


class Guests:
    """The guests that are running; an interrupted run stops them."""

    def __init__(self) -> None:
        self.children: set[subprocess.Popen[bytes]] = set()

    def call(self, argv: Sequence[str], log: str) -> int:
        """Run a command to its end with its output in a log; the result is the exit status."""
        with open(log, "wb") as out:
            child = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL)
        self.children.add(child)
        try:
            return child.wait()
        finally:
            self.children.discard(child)

    def stop(self) -> None:
        """Stop all guests."""
        for child in list(self.children):
            child.terminate()


def run_cell(scenario: Scenario, cc: str, seed: int, out: str, tools: Tools,
             guests: Guests) -> Figures:
    """The figures of a cell. A cell with a raw result in the directory out is not run again."""
    if os.path.exists(raw_path(out, cc, seed)):
        return figures(scenario, load_raw(out, cc, seed))
    started = time.monotonic()
    own = scenario_of(scenario, cc)
    with tempfile.TemporaryDirectory(prefix="timely-cell.") as work:
        raw = raw_result(own, cc, seed, cell_base(out, cc, seed), work, tools, guests)
    raw |= {"cc": cc, "seed": seed, "wall_s": round(time.monotonic() - started, 1)}
    save_raw(out, raw)
    return figures(own, raw)


def save_plan(scenario: Scenario, cc: str, seed: int, base: str) -> None:
    """Write the plan of a cell. base: path without endings."""
    with open(base + ".plan", "w", encoding="ascii") as file:
        file.write(make_plan(scenario, cc, seed))


def raw_result(scenario: Scenario, cc: str, seed: int, base: str, work: str, tools: Tools,
               guests: Guests) -> Raw:
    """Run a guest and collect the raw result. base: path of plan and log without endings."""
    script, result = os.path.join(work, "setup.sh"), os.path.join(work, "raw.json")
    with open(script, "w", encoding="ascii") as file:
        file.write(cell_script(scenario, cc, seed, tools.modules, tools.hwnic))
    save_plan(scenario, cc, seed, base)
    status = guests.call([os.path.join(LAB, "guest.sh"), "-k", tools.kernel, "-s", str(seed),
                          script, tools.traffic, os.path.realpath(base + ".plan"), result],
                         base + ".log")
    if status:
        raise LabError(f"{os.path.basename(base)}: failed with status {status}: "
                       f"{last_line(base + '.log')} (see {base}.log)")
    with open(result, "rb") as file:
        raw: Raw = json.load(file)
    if clockd_of(scenario, cc):
        clockd.collect(result, scenario["topology"], raw)
    ndp.collect(result, raw)
    if nic := nic_of(scenario, cc):
        if onramp.settings(scenario, cc):
            onramp.collect(result, raw)
        timestamps.collect(result, scenario, nic, raw)
    else:
        onramp.collect(result, raw)
    return raw
