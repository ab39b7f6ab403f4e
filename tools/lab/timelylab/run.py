# SPDX-License-Identifier: GPL-2.0
"""lab run: selects the cells of a scenario, runs several at a time, and writes the summary."""
import concurrent.futures
import contextlib
import functools
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from .cell import kernel_cc, module_files
from .common import Figures, LabError, Scenario, ScenarioError
from .elsewhere import Results, Start, by_slurm, by_ssh, check_programs, results_elsewhere
from .guest import Guests, Tools, prepare, run_cell
from .onramp import base_of
from .onramp import settings as onramp_settings
from .page import load_run, write_page
from .pagerun import Run
from .results import compare
from .scenario import load_scenario, scenario_path
from .store import Cell, cells_dir, raw_path, save_summary
from .tables import one_line


class Options(NamedTuple):
    """The options of lab run."""

    scenario: str
    cc: str | None
    seeds: str | None
    out: str | None
    keep: bool
    keep_peers: bool
    settings: Sequence[str]
    params: Sequence[str]
    kernel: str
    jobs: int | None
    page: str | None
    beside: Sequence[str]
    hosts: Sequence[str] = ()
    slurm: Sequence[str] | None = None      # options of sbatch
    more: bool = False                      # another run will go on with the page


class Progress:
    """A run under way, and the page with this run and earlier ones if the options name one."""

    def __init__(self, scenario: Scenario, cells: Sequence[Cell], out: str,
                 options: Options) -> None:
        self.run = Run(out, scenario, waiting=list(cells), running=True)
        self.order = {cell: i for i, cell in enumerate(cells)}
        self.path = options.page
        self.runs = [*(load_run(other) for other in options.beside), self.run]
        if self.path:
            write_page(self.path, self.runs)

    def ended(self, cell: Cell, result: Figures | LabError) -> None:
        """A cell ended, with its figures or with an error."""
        self.run.waiting.remove(cell)
        if isinstance(result, LabError):
            self.run.failures.append((*cell, str(result)))
        else:
            self.run.cells.append(result)
            self.run.cells.sort(key=lambda fig: self.order[fig["cc"], fig["seed"]])
            compare(self.run.scenario, self.run.cells)
        self.write()

    def stop(self, reason: str = "", more: bool = False) -> None:
        """The run ended, early if there is a reason. With `more`, browsers go on reloading."""
        self.run.running, self.run.ended = more, reason
        self.write()

    def write(self) -> None:
        """Write the page. An error does not end the run: `lab page` can write the page later."""
        try:
            if self.path:
                write_page(self.path, self.runs)
        except LabError as error:
            print(f"lab: {error}", file=sys.stderr, flush=True)


def cells_of(scenario: Scenario, cc_list: str | None, seed_list: str | None) -> list[Cell]:
    """The cells to run: those of the scenario, or of lists that are separated by commas."""
    run = scenario["run"]
    ccs = cc_list.split(",") if cc_list else run["cc"]
    for cc in ccs:
        base = base_of(cc)
        if not re.fullmatch(r"[a-z0-9_-]{1,15}", base) and base not in scenario.get("variants", {}):
            raise LabError(f"'{base}' is neither a variant of the scenario nor a possible name of "
                           "a congestion control")
        onramp_settings(scenario, cc)
    if seed_list:
        try:
            seeds = [int(seed) for seed in seed_list.split(",")]
        except ValueError:
            raise LabError(f"--seeds needs numbers and commas, not '{seed_list}'") from None
        return [(cc, seed) for seed in seeds for cc in ccs]
    return [(cc, seed) for cc in ccs
            for seed in (run["seeds"] if kernel_cc(scenario, cc) == "timely"
                         else run.get("peer_seeds", run["seeds"]))]


def results_here(run: Run, cells: Sequence[Cell], tools: Tools, jobs: int | None) -> Results:
    """Run cells in guests on this machine; the results are in the order in which the cells end."""
    guests = Guests()
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        futures = {pool.submit(run_cell, run.scenario, *cell, run.out, tools, guests): cell
                   for cell in cells}
        try:
            for future in concurrent.futures.as_completed(futures):
                result: Figures | LabError
                try:
                    result = future.result()
                except ScenarioError:
                    raise
                except LabError as error:
                    result = error
                yield futures[future], result
        except (KeyboardInterrupt, GeneratorExit):
            pool.shutdown(wait=False, cancel_futures=True)
            guests.stop()
            raise


def results_of(run: Run, tools: Tools, options: Options) -> Results:
    """Run the cells that wait, here or on other machines. A raw result that exists is used."""
    cells = list(run.waiting)
    start: Start
    if options.hosts:
        start = functools.partial(by_ssh, options.hosts, options.jobs)
    elif options.slurm is not None:
        start = functools.partial(by_slurm, options.slurm, options.jobs)
    else:
        yield from results_here(run, cells, tools, options.jobs)
        return
    kept = [cell for cell in cells if os.path.exists(raw_path(run.out, *cell))]
    yield from results_here(run, kept, tools, options.jobs)
    if rest := [cell for cell in cells if cell not in kept]:
        yield from results_elsewhere(run.scenario, rest, run.out, tools, start)


def run_cells(progress: Progress, tools: Tools, options: Options) -> None:
    """Run the cells that wait, and report each when it ends."""
    with contextlib.closing(results_of(progress.run, tools, options)) as results:
        for cell, result in results:
            progress.ended(cell, result)
            if isinstance(result, LabError):
                print(f"lab: {result}", file=sys.stderr, flush=True)
            else:
                print(f"{cell[0]:>8} seed {cell[1]}: {one_line(result)}", flush=True)


def drop_project_cells(scenario: Scenario, cells: Sequence[Cell], out: str) -> None:
    """Remove the raw results of cells that use modules of this project.

    The other cells (peers) would have the same results again, whatever changed in the modules.
    """
    for cc, seed in cells:
        if module_files(scenario, cc) and os.path.exists(raw_path(out, cc, seed)):
            os.remove(raw_path(out, cc, seed))


def clear(scenario: Scenario, cells: Sequence[Cell], out: str, options: Options) -> None:
    """Remove the results of an earlier run that the options do not keep."""
    if not os.path.isdir(out) or not os.listdir(out):
        return
    if not os.path.isdir(cells_dir(out)):
        raise LabError(f"{out} exists and is not the directory of a run: choose another --out")
    if options.keep_peers:
        drop_project_cells(scenario, cells, out)
    elif not options.keep:
        shutil.rmtree(out)


def check_options(options: Options) -> None:
    """Refuse options with which no cell could run, before an earlier run is removed."""
    if options.jobs is not None and options.jobs < 1:
        raise LabError(f"--jobs needs a number above 0, not {options.jobs}")
    if options.hosts:
        check_programs("--on", "parallel rsync ssh", "parallel rsync openssh-client")
    if options.slurm is not None:
        check_programs("--slurm", "sbatch scancel", "slurm-client")


def run_scenario(options: Options) -> None:
    """Run the cells of a scenario."""
    check_options(options)
    scenario = load_scenario(options.scenario, options.settings, options.params)
    cells = cells_of(scenario, options.cc, options.seeds)
    name = os.path.splitext(os.path.basename(scenario_path(options.scenario)))[0]
    out = options.out or os.path.join("lab-out", time.strftime(f"{name}-%Y%m%d-%H%M%S"))
    clear(scenario, cells, out, options)
    os.makedirs(cells_dir(out), exist_ok=True)
    progress = Progress(scenario, cells, out, options)
    run = progress.run
    try:
        tools = prepare(options.kernel, scenario, [cc for cc, _ in cells])
        started = time.monotonic()
        run_cells(progress, tools, options)
        wall_s = time.monotonic() - started
        save_summary(out, name, scenario, os.path.basename(tools.kernel), round(wall_s, 1),
                     run.failures, run.cells)
    except BaseException as error:
        progress.stop(str(error) or "The run was interrupted")
        raise
    progress.stop(more=options.more)
    print(f"{len(run.cells)} cells in {wall_s:.0f} s, results in {out}"
          + (f", page in {options.page}" if options.page else ""))
    if run.failures:
        raise LabError(f"{len(run.failures)} of {len(cells)} cells failed")
