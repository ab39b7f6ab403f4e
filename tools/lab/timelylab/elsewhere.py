# SPDX-License-Identifier: GPL-2.0
"""Runs cells on other machines: by GNU parallel over ssh, or as an array job of Slurm.

Both run `lab cell` in the run's bundle or a copy of it, and give the lines that `lab cell` prints.
"""
import base64
import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Generator, Sequence

from .bundle import make_bundle
from .cell import scenario_of
from .common import Figures, LabError, Scenario
from .guest import Tools, save_plan
from .pagerun import BROKEN
from .results import figures
from .store import PARTS, Cell, cell_base, last_line, load_raw, raw_path, save_part

HOST = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9_][A-Za-z0-9_.-]*")
# A host that does not answer for a minute is given up.
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
# How often a cell is tried: each time on another host, if there are as many hosts.
TRIES = "3"
# An ssh server refuses logins if there are more than about ten at once.
SSH_DELAY_S = "0.1"
# Lines that `lab cell` printed; functions that run the cells of a bundle, given the bundle, its
# digest and the number of cells; cells with their figures.
Lines = Generator[str, None, None]
Start = Callable[[str, str, int], Lines]
Results = Generator[tuple[Cell, Figures | LabError], None, None]
# Seconds between looks for the results of Slurm's tasks.
LOOK_S = 1


def hosts_of(text: str) -> list[str]:
    """The hosts in a list that is separated by commas."""
    hosts = text.split(",")
    for host in hosts:
        if not HOST.fullmatch(host):
            raise LabError(f"'{host}' is no name of a host: --on needs names and commas, as in "
                           "--on host1,user@host2; ports and addresses belong in ~/.ssh/config")
    return list(dict.fromkeys(hosts))


def options_of(text: str) -> list[str]:
    """The options of sbatch in a text, which may have quotes as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise LabError(f"--slurm={text}: {error}") from None


def check_programs(option: str, programs: str, packages: str) -> None:
    """Refuse an option for which this machine lacks a program."""
    if not all(map(shutil.which, programs.split())):
        raise LabError(f"{option} needs the programs {programs}: apt-get install {packages}")


def parallel(problem: str, *words: str) -> Lines:
    """The lines that GNU parallel prints. If it fails, the problem is reported unless empty.

    If its lines are not read to the end, GNU parallel is stopped with all its jobs.
    """
    with subprocess.Popen(["parallel", "--plain", "--will-cite", *words], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          env=os.environ | {"PARALLEL_SSH": SSH, "RSYNC_RSH": SSH},
                          start_new_session=True) as child:
        try:
            yield from child.stdout or ()
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            raise
    if problem and child.returncode:
        raise LabError(f"{problem}, for the reason above: correct this, or leave the host out")


def by_ssh(hosts: Sequence[str], jobs: int | None, bundle: str, digest: str,
           count: int) -> Lines:
    """Run the cells of a bundle on hosts, each of which gets a copy of it."""
    where = f".cache/timely/cells-{digest}-{secrets.token_hex(4)}"
    cell = f"cd {where} && exec tools/lab/lab cell {digest}"
    login = ("--sshlogin", ",".join(hosts))
    try:
        sys.stderr.writelines(parallel(
            "a host got no copy", "--tag", "--jobs", "0", "rsync", "-rptz", "--mkpath",
            shlex.quote(bundle + "/"), f"{{}}:{where}/", ":::", *hosts))
        sys.stderr.writelines(parallel(
            "a host cannot run cells", "--tag", "--nonall", *login, cell))
        yield from parallel("", *login, "--jobs", str(jobs or "100%"), "--retries", TRIES,
                            "--sshdelay", SSH_DELAY_S, cell, ":::", *map(str, range(count)))
    finally:
        sys.stderr.writelines(parallel("", "--tag", "--nonall", *login, f"rm -rf {where}"))


def by_slurm(options: Sequence[str], jobs: int | None, bundle: str, digest: str,
             count: int) -> Lines:
    """Run the cells of a bundle, which the nodes see at the same path, as an array job."""
    where = os.path.join(os.path.dirname(bundle), "slurm")
    shutil.rmtree(where, ignore_errors=True)
    os.mkdir(where)
    # A file that is there already is found at once on a network file system, too.
    for task in range(count):
        for ending in (".out", ".err"):
            with open(os.path.join(where, f"{task}{ending}"), "w", encoding="ascii"):
                pass
    program = shlex.quote(os.path.join(bundle, "tools/lab/lab"))
    command = ["sbatch", "--wait", "--parsable", "--job-name=timely-lab", f"--chdir={where}",
               "--output=%a.out", "--error=%a.err", *options,
               f"--array=0-{count - 1}" + (f"%{jobs}" if jobs else ""),
               f"--wrap=exec {program} cell {digest} $SLURM_ARRAY_TASK_ID"]
    print(shlex.join(command), flush=True)
    with subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          start_new_session=True) as sbatch:
        job = ""
        try:
            job = sbatch.stdout.readline().strip().split(";")[0] if sbatch.stdout else ""
            if not job:
                raise LabError("sbatch submitted no job, for the reason above")
            left = yield from task_lines(sbatch, where, count)
        except BaseException:
            if job:
                subprocess.run(["scancel", job], check=False)
            raise
        finally:
            sbatch.terminate()      # sbatch looks for the end of a job only every 32 s
    if not left:
        shutil.rmtree(where)


def task_lines(sbatch: "subprocess.Popen[str]", where: str,
               count: int) -> Generator[str, None, list[int]]:
    """The results that tasks write into a directory until sbatch ends; the tasks without one."""
    tasks = list(range(count))
    ended = False
    while tasks and not ended:
        ended = sbatch.poll() is not None
        for task in tasks[:]:
            with open(os.path.join(where, f"{task}.out"), encoding="utf-8",
                      errors="replace") as file:
                text = file.read()
            if text.endswith("}\n"):
                tasks.remove(task)
                yield text.splitlines()[-1]
        time.sleep(0 if ended else LOOK_S)
    for task in tasks:
        print(f"task {task}: {last_line(os.path.join(where, f'{task}.err'))}", file=sys.stderr)
    return tasks


def save_result(line: str, cells: Sequence[Cell], left: Collection[Cell],
                out: str) -> tuple[Cell, str]:
    """Write the files of a cell that another machine ran; the cell, and why it failed or ""."""
    sent = json.loads(line)
    cell = dict(enumerate(cells))[sent["cell"]]
    if cell not in left:
        raise LabError("this cell has a result")
    for ending in PARTS:
        if ending in sent["files"]:
            save_part(cell_base(out, *cell) + ending,
                      base64.b64decode(sent["files"][ending], validate=True))
    failure = f"{sent['error']} on {sent['host']}" if sent["error"] else ""
    return cell, "".join(filter(str.isprintable, failure))


def checked_figures(scenario: Scenario, cell: Cell, out: str) -> Figures:
    """The figures of a cell that another machine ran. A broken result is removed."""
    try:
        raw = load_raw(out, *cell)
        if (raw["cc"], raw["seed"]) != cell:
            raise LabError("the result is another cell's")
        return figures(scenario, raw)
    except BROKEN as error:
        with contextlib.suppress(FileNotFoundError):
            os.remove(raw_path(out, *cell))
        raise LabError(f"{cell[0]}-{cell[1]}: another machine sent a broken result: "
                       f"{error!r}") from None


def results_elsewhere(scenario: Scenario, cells: Sequence[Cell], out: str, tools: Tools,
                      start: Start) -> Results:
    """Run cells on other machines; results are in the order in which they come, failures last."""
    bundle = os.path.join(os.path.realpath(out), "bundle")
    left = {cell: LabError(f"{cell[0]}-{cell[1]}: no result came from another machine, for the "
                           "reason above") for cell in cells}
    try:
        digest = make_bundle(bundle, scenario, cells, tools)
        with contextlib.closing(start(bundle, digest, len(cells))) as lines:
            for line in lines:
                try:
                    cell, failure = save_result(line, cells, left, out)
                except BROKEN:
                    print(f"lab: not a result: {line[:200]!r}", file=sys.stderr)
                    continue
                # The plan names files of this machine.
                save_plan(scenario_of(scenario, cell[0]), *cell, cell_base(out, *cell))
                try:
                    if failure:
                        raise LabError(failure)
                    result = checked_figures(scenario, cell, out)
                except LabError as error:
                    left[cell] = error
                    continue
                del left[cell]
                yield cell, result
    finally:
        shutil.rmtree(bundle, ignore_errors=True)
    yield from left.items()
