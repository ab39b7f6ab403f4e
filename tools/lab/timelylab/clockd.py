# SPDX-License-Identifier: GPL-2.0
"""timely-clockd on the testbed of NICs: a daemon for each host, and its errors by the true clocks.

clockrecord.py reads the clock pages of all daemons and the true clocks at the same time. Errors are
those of the offsets in the pages, extrapolated to the time of the reading, as a program would use
them.
"""
import itertools
import json
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .common import LAB, MS, TOP, Figures, Raw, Table
from .samples import spread
from .topology import ends, is_host

DIRECTORY = os.path.join(TOP, "build/clockd")
# The keys of [clockd], and their defaults.
DEFAULTS: Table = {
    "degree": 10,               # number of peers
    "pairs": 16,                # pairs of probes per second to each peer
    "clock": "auto",            # auto: the NIC's clock; system: the kernel's timestamps
    "record_ms": 50,            # interval of readings
    "longer_ns": 0,             # h1's packets to h2 take this much longer than those from h2 to h1
    "lines": {},                # more lines of the configuration of a host: {h1 = ["test-lie 9000"]}
    "daemon": {},               # shell commands for a host's daemon: {h1 = "sleep 9; kill $daemon"}
    "ignore": [],               # hosts whose offsets do not count, and those of them in others
}
KEY = "000102030405060708090a0b0c0d0e0f"
# Bytes of a probe on the wire: 200 of payload, UDP, IPv4, Ethernet with preamble, CRC and gap.
PROBE_BYTES = 200 + 8 + 20 + 38
# The columns of a reading of a peer's clock. Times are in ns. bound_ns is None while the offset is not
# known. The system columns are about the hosts' CLOCK_REALTIME, whose true offset is 0.
READING = ("t_ns", "host", "peer", "state", "error_ns", "bound_ns", "system_error_ns",
           "system_bound_ns")
# The columns of a reading of the common time: the time minus CLOCK_MONOTONIC_RAW.
COMMON = ("t_ns", "host", "common_ns", "bound_ns", "sent")
GOOD, EXCLUDED = 2, 3
UNKNOWN_NS = (1 << 64) - 1


def hosts_of(topo: Table) -> list[str]:
    """The names of the hosts, each of which has a daemon."""
    return [end.name for end in ends(topo) if is_host(end.name)]


def host_lines(topo: Table, clockd: Table, host: str, own: Sequence[str]) -> list[str]:
    """Commands that configure and start the daemon of a host; its messages are in $3.clockd-HOST."""
    conf = f"/run/clockd/{host}.conf"
    words = [f"member {end.network}.1" for end in ends(topo) if is_host(end.name)] + \
        ["key 1 /run/clockd/key", f"page /run/clockd/pages/{host}", f"clock {clockd['clock']}",
         f"degree {clockd['degree']}", f"pairs {clockd['pairs']}", *clockd["lines"].get(host, []), *own]
    lines = [f"cat >{conf} <<END", *words, "END",
             f"nsenter --net=/run/netns/{host} {DIRECTORY}/timely-clockd -f {conf} "
             f'2>"$3.clockd-{host}" &', "daemon=$!"]
    if host in clockd["daemon"]:
        lines.append(f"( {clockd['daemon'][host]} ) &")
    return lines


def longer_lines(topo: Table, clockd: Table) -> list[str]:
    """Commands that make the path from h1 to h2 longer in this direction."""
    if not clockd["longer_ns"]:
        return []
    to = next(end.network for end in ends(topo) if end.name == "h2")
    return ["ip -n sw link add longer type ifb", "ip -n sw link set longer up",
            f"tc -n sw qdisc add dev longer root netem limit 10000 delay {clockd['longer_ns'] / 1000}us",
            "tc -n sw qdisc add dev h1 ingress",
            f"tc -n sw filter add dev h1 parent ffff: protocol ip u32 match ip dst {to}.1/32 "
            "action mirred egress redirect dev longer"]


def setup_lines(topo: Table, clockd: Table, own: Mapping[str, Sequence[str]]) -> list[str]:
    """Commands that start all daemons, and the record in $3.clocks.

    own: further lines of the configuration of hosts.
    """
    lines = ["mkdir -p /run/clockd/pages", f"(umask 077; echo {KEY} >/run/clockd/key)"]
    lines += longer_lines(topo, clockd)
    for host in hosts_of(topo):
        lines += host_lines(topo, clockd, host, own.get(host, ()))
    return lines + [f"{LAB}/clockrecord.py {clockd['record_ms']} /run/clockd/pages "
                    f'{" ".join(hosts_of(topo))} >"$3.clocks" &', "record=$!"]


def keep_lines() -> list[str]:
    """Commands after the run that end the record."""
    return ["kill $record", "wait $record || true"]


# --- errors -------------------------------------------------------------------

def instants(path: str, hosts: int) -> Iterator[list[Any]]:
    """The lines of a record in groups: one line for each host that has a page, at one time."""
    with open(path, encoding="ascii") as file:
        lines = [json.loads(line) for line in file if line.endswith("]\n")]
    for _, group in itertools.groupby(lines, lambda line: int(line[0]) // MS):
        found = list(group)
        if len(found) <= hosts:
            yield found


def known(ns: int) -> int | None:
    """A bound of the page, or None."""
    return None if ns == UNKNOWN_NS else ns


def readings(lines: list[Any], zero: int) -> Iterator[list[Any]]:
    """The readings of all peers' clocks at one time. The clocks drift too little to move between lines."""
    own = {line[4]: line for line in lines}
    for line in lines:
        mono, phc, nic, age = line[0], line[1], line[5], line[2] - line[3][5]
        for peer in line[8]:
            if not (other := own.get(peer[0])):
                continue
            offset = peer[3] + peer[4] * age // 10**9
            truth = other[1] - (other[0] - mono) - phc if nic else 0
            system = peer[6] + peer[7] * age // 10**9
            yield [mono - zero, line[4], peer[0], peer[1], offset - truth, known(peer[5]), system,
                   known(peer[8])]


def common(line: list[Any], zero: int) -> list[Any]:
    """The reading of a common time that is known."""
    raw, head = line[2], line[3]
    raw_ns, common_ns, rate, bound, growth = head[5:10]
    age = raw - raw_ns
    return [line[0] - zero, line[4], common_ns - raw_ns + age * rate // 10**9,
            bound + age * growth // 10**9, line[7][0]]


def collect(base: str, topo: Table, raw: Raw) -> None:
    """Add the readings to the raw result. Hosts have numbers from 0 on."""
    names = {f"{0:020x}ffff0a00{int(name[1:]):02x}01": i for i, name in enumerate(hosts_of(topo))}
    rows: list[list[Any]] = []
    times: list[list[Any]] = []
    zero = raw["zero_ns"]
    for lines in instants(base + ".clocks", len(names)):
        rows += readings(lines, zero)
        times += [common(line, zero) for line in lines if line[3][6]]
    for row in rows:
        row[1:3] = names[row[1]], names[row[2]]
    for row in times:
        row[1] = names[row[1]]
    raw["clock_columns"], raw["clock_readings"] = READING, rows
    raw["common_columns"], raw["common_readings"] = COMMON, times
    raw["clock_messages"] = {}
    for name in hosts_of(topo):
        with open(f"{base}.clockd-{name}", encoding="utf-8", errors="replace") as file:
            raw["clock_messages"][name] = file.read().splitlines()[-200:]


def error_figures(pairs: Iterable[tuple[int, int | None]]) -> Figures:
    """Figures of errors with their bounds. within: the share of known readings within the bound."""
    pairs = list(pairs)
    both = [(abs(error), bound) for error, bound in pairs if bound is not None]
    out: Figures = {"error_ns": spread((error for error, _ in both), 1),
                    "bound_ns": spread((bound for _, bound in both), 1),
                    "known": len(both) / len(pairs) if pairs else 0}
    if both:
        out["within"] = sum(error <= bound for error, bound in both) / len(both)
        out["bound_over_p99"] = out["bound_ns"]["p50"] / max(out["error_ns"]["p99"], 1)
    return out


def common_figures(rows: list[list[Any]], ignored: set[int]) -> Figures:
    """Differences of the common times of all pairs of hosts; the bound is the sum of both bounds."""
    pairs = []
    for _, group in itertools.groupby(rows, lambda row: int(row[0]) // MS):
        mine = [row for row in group if row[1] not in ignored]
        pairs += [(a[2] - b[2], a[3] + b[3]) for a, b in itertools.combinations(mine, 2)]
    return error_figures(pairs)


def sent_mbit(rows: list[list[Any]]) -> float:
    """What a host sends in probes, Mb/s, on average over the hosts."""
    rates: list[float] = []
    for host in {row[1] for row in rows}:
        mine = [row for row in rows if row[1] == host]
        if mine[-1][0] > mine[0][0]:
            rates.append((mine[-1][4] - mine[0][4]) * PROBE_BYTES * 8e3 /
                         (mine[-1][0] - mine[0][0]))
    return statistics.fmean(rates) if rates else 0


def figures(raw: Raw, clockd: Table, start: int, end: int) -> Figures:
    """Errors over the window. Hosts in "ignore" count as excluded directions only."""
    if "clock_readings" not in raw:
        return {}
    ignored = {int(name[1:]) - 1 for name in clockd["ignore"]}
    rows = [row for row in raw["clock_readings"] if start <= row[0] < end]
    others = [row for row in rows if row[1] not in ignored and row[2] not in ignored]
    times = [row for row in raw["common_readings"] if start <= row[0] < end]
    last = max((row[0] for row in rows), default=0)
    out = error_figures((row[4], row[5]) for row in others)
    out["system"] = error_figures((row[6], row[7]) for row in others)
    out["common"] = common_figures(times, ignored)
    out["good"] = sum(row[3] == GOOD for row in others) / max(len(others), 1)
    out["excluded"] = sum(row[3] == EXCLUDED for row in rows if row[0] // MS == last // MS)
    out["sent_mbit"] = sent_mbit(times)
    out["wrong_ms"] = wrong_ms(rows)
    return out


def wrong_ms(rows: list[list[Any]]) -> float:
    """Time from the window's start to the last reading beyond its bound, ms; 0 if there is none."""
    late = [row[0] for row in rows if row[5] is not None and abs(row[4]) > row[5]]
    return float(max(late) - min(row[0] for row in rows)) / MS if late else 0
