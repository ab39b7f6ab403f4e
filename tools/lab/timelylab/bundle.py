# SPDX-License-Identifier: GPL-2.0
"""The bundle of a run: a directory by which another machine can run the run's cells.

    tools/lab, build/                   files of the checkout
    kernel/, modules/, hwnic/, traffic  what lab run built
    run.json                            the scenario and the cells that wait

`lab cell` runs one of these cells on the other machine and prints the result as a line of JSON.
"""
import base64
import hashlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from .common import LAB, TOP, LabError, Scenario
from .guest import Guests, Tools, run_cell
from .store import PARTS, Cell, cell_base, cells_dir, last_line

CHECKOUT = ("tools/lab/lab", "tools/lab/guest.sh", "tools/lab/seed.c", "tools/lab/data",
            "tools/lab/clockrecord.py", "tools/lab/timelylab")
# Debian's packages of the programs that a cell needs.
PACKAGES = "gcc libc6-dev perl python3 iproute2 ethtool kmod"
# Commands like those of a cell. System calls that fail take virtual time, so the time at the end
# is another one on a machine whose programs make other calls.
TEST = """set -e
{ ip netns add a
ip -n a link add name v type veth peer name w
ip -n a link set v up
tc -n a qdisc add dev v root tbf rate 1gbit burst 3000 limit 30000
nsenter --net=/run/netns/a ethtool -K v tso off
insmod -V; } >/dev/null
date -u +%s%N"""


def copy(source: str, target: str) -> None:
    """Copy a file or a directory, but not Python's compiled files. It must exist."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


def make_bundle(where: str, scenario: Scenario, cells: Sequence[Cell], tools: Tools) -> str:
    """Make a bundle; the result is its digest. `prepare` has built what the cells use."""
    shutil.rmtree(where, ignore_errors=True)
    for path in (*CHECKOUT, *tools.programs):
        copy(os.path.join(TOP, path), os.path.join(where, path))
    copy(tools.traffic, os.path.join(where, "traffic"))
    for part in ("modules", "hwnic"):
        built: str = getattr(tools, part)
        for name in os.listdir(built) if built else ():
            if name.endswith(".ko"):
                copy(os.path.join(built, name), os.path.join(where, part, name))
    # Nine tenths of the kernel's file are debug information.
    os.mkdir(os.path.join(where, "kernel"))
    subprocess.run(["strip", "-g", "-o", os.path.join(where, "kernel/linux"),
                    os.path.join(tools.kernel, "linux")], check=True)
    with open(os.path.join(where, "run.json"), "w", encoding="ascii") as file:
        json.dump({"machine": platform.machine(), "clock": guest_clock(tools.kernel),
                   "scenario": scenario, "cells": cells}, file)
    return digest_of(where)


def digest_of(where: str) -> str:
    """A digest of the names and the content of all files below a directory."""
    total = hashlib.sha256()
    for folder, folders, names in os.walk(where):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{os.path.relpath(path, where)}\n{content}\n".encode())
    return total.hexdigest()[:16]


def guest_clock(kernel: str) -> str:
    """The time in a guest after commands like those of a cell."""
    guests = Guests()
    with tempfile.NamedTemporaryFile("r", prefix="timely-run.", encoding="utf-8") as log:
        try:
            status = guests.call([os.path.join(LAB, "guest.sh"), "-k", kernel,
                                  "/bin/sh", "-c", TEST], log.name)
        except KeyboardInterrupt:
            guests.stop()
            raise
        if status:
            raise LabError(f"guests do not run on {socket.gethostname()}: {last_line(log.name)}; "
                           f"they need Debian's packages {PACKAGES}")
        return log.read().strip()


def check_machine(digest: str, machine: str, clock: str) -> None:
    """Refuse files of another run, and a machine on which cells would have other results."""
    if digest_of(TOP) != digest:
        raise LabError(f"{TOP} has other files than this run: a kernel, module or script differs, "
                       "perhaps because it is from another commit")
    if platform.machine() != machine:
        raise LabError(f"{socket.gethostname()} has a processor {platform.machine()}, and the "
                       f"run's kernel is for {machine}")
    if guest_clock(os.path.join(TOP, "kernel")) != clock:
        raise LabError("programs such as ip and tc behave differently on the machine that started "
                       f"this run and on {socket.gethostname()}, so results would differ: install "
                       f"the same release of Debian, with {PACKAGES}")


def run_in_bundle(digest: str, number: int | None) -> None:
    """lab cell: run a cell of the bundle with this program; without a number check the machine."""
    # The end of the ssh connection interrupts like ^C.
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        with open(os.path.join(TOP, "run.json"), encoding="ascii") as file:
            run = json.load(file)
    except FileNotFoundError:
        raise LabError("lab cell works only in the bundles that lab run makes for other machines; "
                       "here use lab run --cc NAME --seeds SEED") from None
    check_machine(digest, run["machine"], run["clock"])
    if number is None:
        return
    tools = Tools(*(os.path.join(TOP, part) for part in ("kernel", "traffic", "modules", "hwnic")))
    cc, seed = run["cells"][number]
    result = {"cell": number, "host": socket.gethostname(), "error": ""}
    with tempfile.TemporaryDirectory(prefix="timely-run.") as out:
        os.mkdir(cells_dir(out))
        guests = Guests()
        try:
            run_cell(run["scenario"], cc, seed, out, tools, guests)
        except LabError as error:
            result["error"] = str(error).replace(out + "/", "")
        except KeyboardInterrupt:
            guests.stop()
            raise
        print(json.dumps(result | {"files": files_of(cell_base(out, cc, seed))}), flush=True)
    sys.exit(bool(result["error"]))


def files_of(base: str) -> dict[str, str]:
    """The files of a cell by their endings, as base64."""
    files = {}
    for ending in PARTS:
        if os.path.exists(base + ending):
            with open(base + ending, "rb") as file:
                files[ending] = base64.b64encode(file.read()).decode()
    return files
