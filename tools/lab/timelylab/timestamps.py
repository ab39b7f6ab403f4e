# SPDX-License-Identifier: GPL-2.0
"""Joins the kernel's RTTs with the records of the test NICs: one row for each ACK.

The kernel's side is a trace event of tcp_timely for each ACK that completes a pacing segment.
The NICs' records say when each frame arrived (R) and departed (T), and how many bytes the ring of
the port held (Q). An ACK belongs to the record R with the same hardware timestamp, and to the
record T with the sequence number that ends the ACK's segment. All figures are made from the rows.
"""
import bisect
import os
from collections.abc import Iterator
from typing import Any

from .common import MS, Raw, Scenario, Table

# The columns of a row, which is about one ACK. Times are in ns; None: not known.
ACK = ("t_ns",          # when TCP processed the ACK, from the start of the experiment
       "host",          # index into "watch"
       "result",        # the clock that gave the RTT, or the reason why there is no RTT
       "rtt_ns",        # the RTT that TCP used, 0 if none
       "error_ns",      # the ACK's arrival by the clock mapping minus the true arrival
       "late_ns",       # when TCP processed the ACK minus the true arrival
       "native_ns",     # by the NIC's clock: arrival of the ACK minus departure of the segment
       "software_ns",   # the RTT if it ended when TCP processed the ACK
       "queue_bytes")   # what the port's ring held when the end of the segment arrived there
# Results with an RTT.
COMPLETIONS = ("hardware", "driver", "tcp")
# An ACK by its row.
Row = list[Any]
# Source port and destination port.
Ports = tuple[int, int]


def events(path: str) -> Iterator[dict[str, str]]:
    """The trace events of a file, as texts by field."""
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file:
            _, found, fields = line.partition("timely_rtt: ")
            if found:
                event = dict(field.split("=", 1) for field in fields.split())
                event["sport"] = event["src"].rpartition(":")[2]
                event["dport"] = event["dest"].rpartition(":")[2]
                yield event


class Truth:
    """A host's records R and T.

    Ports are in the host's order: own port first. A sequence number is that of a segment's end.
    """

    def __init__(self, path: str) -> None:
        self.by_timestamp: dict[tuple[int, int, int], int] = {}
        self.by_ack: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.left: dict[tuple[int, int, int], tuple[int, int]] = {}
        with open(path, encoding="ascii") as file:
            for line in file:
                word = line.split()
                if not word or word[0] not in "RT":
                    continue
                mono, phc, sport, dport, seq, ack = map(int, word[1:7])
                if word[0] == "T":
                    self.left.setdefault((sport, dport, seq), (mono, phc))
                else:
                    self.by_timestamp[phc, dport, sport] = mono
                    self.by_ack.setdefault((dport, sport, ack), (mono, phc))

    def arrival(self, timestamp_ns: int, ports: Ports, una: int) -> tuple[int, int] | None:
        """When an ACK arrived, by the host's clock and by the NIC's clock; None if not known."""
        mono = self.by_timestamp.get((timestamp_ns, *ports)) if timestamp_ns else None
        return (mono, timestamp_ns) if mono else self.by_ack.get((*ports, una))

    def departure(self, ports: Ports, end_seq: int) -> tuple[int, int] | None:
        """When a segment's last frame departed, by both clocks; None if not known."""
        return self.left.get((*ports, end_seq))


class Queue:
    """Bytes in the ring of a port over time."""

    def __init__(self, path: str) -> None:
        self.times: list[int] = []
        self.bytes: list[int] = []
        with open(path, encoding="ascii") as file:
            for line in file:
                word = line.split()
                if word and word[0] == "Q":
                    self.times.append(int(word[1]))
                    self.bytes.append(int(word[2]))

    def at(self, mono: int) -> int:
        """Bytes in the ring at one time."""
        i = bisect.bisect_right(self.times, mono) - 1
        return self.bytes[i] if i >= 0 else 0

    def histogram(self, start: int, end: int, step: int) -> list[tuple[int, int]]:
        """Sizes of the queue, and how many of the samples at each step (ns) have each size."""
        counts: dict[int, int] = {}
        i, size = bisect.bisect_right(self.times, start) - 1, 0
        for now in range(start, end, step):
            while i + 1 < len(self.times) and self.times[i + 1] <= now:
                i += 1
            size = self.bytes[i] if i >= 0 else 0
            counts[size] = counts.get(size, 0) + 1
        return sorted(counts.items())


def joined_row(event: dict[str, str], host: int, truth: Truth, queue: Queue | None, zero: int,
               to_port_ns: int) -> Row:
    """The row of one ACK. zero: start of the experiment; to_port_ns: a frame's way to the port."""
    now, arrived, sent = (int(event[key]) for key in ("now_ns", "arrived_ns", "sent_ns"))
    rtt, timestamp = int(event["rtt_ns"]), int(event["hw_timestamp_ns"])
    ports = int(event["sport"]), int(event["dport"])
    came = truth.arrival(timestamp, ports, int(event["una"]))
    left = truth.departure(ports, int(event["end_seq"]))
    used = event["result"] in COMPLETIONS
    out: Row = [now - zero, host, event["result"], rtt, None, None, None, None, None]
    if came:
        out[4] = arrived - came[0] if arrived and used else None
        out[5] = now - came[0]
    if came and left and used:
        out[6] = came[1] - left[1]
    if used and sent:
        out[7] = rtt + now - (arrived or now)
    if queue and left:
        out[8] = queue.at(left[0] + to_port_ns)
    return out


def joined_rows(base: str, scenario: Scenario, nic: Table, raw: Raw,
                queue: Queue | None) -> list[Row]:
    """The rows of all ACKs that arrived at the hosts in "watch" while connections were open.

    The destination port of an event tells the connection, and so the host.
    """
    if not nic["watch"]:
        return []
    truths = [Truth(f"{base}.truth-{host}") for host in nic["watch"]]
    owner = {flow["port"]: nic["watch"].index(flow["from"]) for flow in raw["flows"]
             if flow["from"] in nic["watch"]}
    zero, rows = raw["zero_ns"], []
    for event in events(base + ".trace"):
        host = owner.get(int(event["dport"]))
        if host is not None and int(event["now_ns"]) < zero + raw["end_ns"]:
            rows.append(joined_row(event, host, truths[host], queue, zero,
                                   scenario["topology"]["delay_ns"] // 2))
    return rows


def collect(base: str, scenario: Scenario, nic: Table, raw: Raw) -> None:
    """Add the rows of a cell to the raw result, and remove the files that the cell left.

    The names of these files begin with base and a dot.
    """
    queue = Queue(base + ".truth-sw") if nic["queue_truth"] else None
    raw["acks_columns"], raw["acks"] = ACK, joined_rows(base, scenario, nic, raw, queue)
    if queue:
        run = scenario["run"]
        start = raw["zero_ns"] + run["warmup_ms"] * MS
        raw["queue_bytes_counts"] = queue.histogram(start, start + run["measure_ms"] * MS, 1000)
    directory = os.path.dirname(base)
    for name in os.listdir(directory):
        if name.startswith(os.path.basename(base) + "."):
            os.unlink(os.path.join(directory, name))
