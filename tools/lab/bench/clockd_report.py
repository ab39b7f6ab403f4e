#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run timely-clockd between processes of this machine, measure its CPU time, and make a table.

    clockd_report.py DIR PROGRAMS SECONDS REPEATS    raw.json and table.md in DIR

A host is a process with an address of 127.0.0.0/8. Loopback delivers a packet in the system call
that sends it, so the CPU time of the processes contains that of the kernel's network, too.
"""
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from report import markdown

# Cells: number of peers of each host, pairs of probes per second to each.
CELLS = ((10, 16), (10, 60), (32, 16))
WARMUP_S = 12       # the daemons find each other, and their windows fill
# Bytes of a probe on the wire: 200 of payload, UDP, IPv4, Ethernet with preamble, CRC and gap.
PROBE_BYTES = 200 + 8 + 20 + 38
KEY = "000102030405060708090a0b0c0d0e0f"


@contextlib.contextmanager
def daemons(programs: pathlib.Path, work: pathlib.Path, peers: int, pairs: int) -> Iterator[Any]:
    """One daemon more than a host has peers: the processes with the paths of their pages."""
    key = work / "key"
    key.write_text(KEY + "\n", encoding="ascii")
    key.chmod(0o600)
    running = []
    try:
        for host in range(1, peers + 2):
            conf, page = work / f"{host}.conf", work / f"{host}.page"
            lines = [f"member 127.20.26.1-127.20.26.{peers + 1}", f"own 127.20.26.{host}",
                     f"key 1 {key}", f"page {page}", "clock system", f"degree {peers}",
                     f"pairs {pairs}", ""]
            conf.write_text("\n".join(lines), encoding="ascii")
            with open(work / f"{host}.log", "wb") as log:
                running.append((subprocess.Popen([programs / "timely-clockd", "-f", conf],
                                                 stderr=log), page))
        yield running
    finally:
        for process, _ in running:
            process.terminate()
        for process, _ in running:
            process.wait()


def state(programs: pathlib.Path, process: Any, page: pathlib.Path) -> dict[str, int]:
    """CPU time, memory and counters of a daemon."""
    proc = pathlib.Path(f"/proc/{process.pid}")
    words = (proc / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
    shown = json.loads(subprocess.run([programs / "timelyctl", "-j", "clock", "page", page],
                                      stdout=subprocess.PIPE, check=True).stdout)
    resident = next(line.split()[1] for line in (proc / "status").read_text().splitlines()
                    if line.startswith("VmRSS:"))
    # man 5 proc: utime and stime have the numbers 14 and 15.
    return {"cpu_ns": int((proc / "schedstat").read_text(encoding="ascii").split()[0]),
            "user_ticks": int(words[11]), "kernel_ticks": int(words[12]),
            "resident_kb": int(resident), "sent": shown["counters"]["sent"],
            "good": sum(peer["state"] == "good" for peer in shown["peers"])}


def measure(programs: pathlib.Path, seconds: int, peers: int, pairs: int) -> list[dict[str, float]]:
    """The figures of each daemon of a cell."""
    with tempfile.TemporaryDirectory(prefix="timely-clockd.") as work, \
            daemons(programs, pathlib.Path(work), peers, pairs) as running:
        time.sleep(WARMUP_S)
        begun = time.monotonic()
        before = [state(programs, *one) for one in running]
        time.sleep(seconds)
        elapsed = time.monotonic() - begun
        after = [state(programs, *one) for one in running]
    for found in after:
        if found["good"] < peers:
            sys.exit(f"clockd bench: a host has {found['good']} good peers of {peers}: "
                     "the machine is too busy, or port 20305 is used")
    return [{"cpu_percent": (b["cpu_ns"] - a["cpu_ns"]) / elapsed / 1e7,
             "kernel_percent": 100 * (b["kernel_ticks"] - a["kernel_ticks"]) /
             max(sum(b[key] - a[key] for key in ("user_ticks", "kernel_ticks")), 1),
             "mbit": (b["sent"] - a["sent"]) * PROBE_BYTES * 8 / elapsed / 1e6,
             "resident_kb": b["resident_kb"]} for a, b in zip(before, after)]


def row(runs: list[dict[str, Any]]) -> list[str]:
    """The row of a cell: medians over the daemons and repeats, and the highest CPU time."""
    hosts = [host for run in runs for host in run["hosts"]]
    middle = {key: statistics.median(host[key] for host in hosts) for key in hosts[0]}
    return [str(runs[0]["peers"]), str(runs[0]["pairs"]), f"{middle['cpu_percent']:.2f} %",
            f"{max(host['cpu_percent'] for host in hosts):.2f} %",
            f"{middle['kernel_percent']:.0f} %", f"{middle['mbit']:.2f}",
            f"{middle['resident_kb'] / 1000:.1f} MB"]


def main(out: str, programs: str, seconds: str, repeats: str) -> None:
    """Measure all cells; write raw.json and table.md."""
    runs = [{"peers": peers, "pairs": pairs,
             "hosts": measure(pathlib.Path(programs), int(seconds), peers, pairs)}
            for _ in range(int(repeats)) for peers, pairs in CELLS]
    directory = pathlib.Path(out)
    (directory / "raw.json").write_text(json.dumps(runs, indent=1) + "\n", encoding="ascii")
    names = ["peers", "pairs per second", "CPU time of a host", "highest", "in the kernel",
             "sent Mb/s", "memory"]
    rows = [row([run for run in runs if (run["peers"], run["pairs"]) == cell]) for cell in CELLS]
    text = markdown(names, rows) + "\n"
    (directory / "table.md").write_text(text, encoding="ascii")
    print(text, end="")


main(*sys.argv[1:])
