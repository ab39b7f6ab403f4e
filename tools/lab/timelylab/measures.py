# SPDX-License-Identifier: GPL-2.0
"""The figures that a page explains and compares: what each means, and which of two is better."""
from typing import NamedTuple

from .tables import Entry, number, show


class Measure(NamedTuple):
    """A figure on the page. better: 1 if more is better, -1 if less is better, 0 if neither is.

    scale: "linear" or "log" if there is a chart of the figure.
    """

    path: str
    title: str
    unit: str
    better: int
    meaning: str
    scale: str = ""

    def label(self) -> str:
        """The title with the unit."""
        return self.title + (f", {self.unit}" if self.unit else "")

    def show(self, entry: Entry) -> str:
        """An entry of a table with the unit."""
        return show(entry) + (f" {self.unit}" if self.unit else "")


MEASURES = (
    Measure("goodput_gbit", "goodput", "Gb/s", 1,
            "Payload that the receivers got, of all connections together.", "linear"),
    Measure("rtt_us.avg", "RTT, mean", "us", -1,
            "Mean round-trip time of a small packet through the shared port and back."),
    Measure("rtt_us.p99", "RTT, p99", "us", -1,
            "99 % of these packets came back within this time, most of which is in queues.", "log"),
    Measure("jain", "fairness", "", 1,
            "Jain's index: 1 if all connections get the same goodput, 1/n if one of n gets all."),
    Measure("request_us.p99", "request, p99", "us", -1,
            "99 % of the requests that ended were answered completely within this time.", "log"),
    Measure("slowdown.mean", "slowdown, mean", "", -1,
            "Time of a message divided by its time alone on an idle network."),
    Measure("slowdown.p99", "slowdown, p99", "", -1,
            "99 % of the messages have at most this slowdown.", "log"),
    Measure("groups.own.goodput_gbit", "own goodput", "Gb/s", 1,
            "Goodput of the connections that use the congestion control of the row.", "linear"),
    Measure("groups.own.jain", "own fairness", "", 1,
            "Jain's index of the connections that use the congestion control of the row."),
    Measure("groups.cubic.goodput_gbit", "cubic's goodput", "Gb/s", 0,
            "Goodput of the connections beside them, which use cubic."),
    Measure("retrans", "retransmissions", "", -1,
            "Segments that were sent again, during the measurement."),
    Measure("drops", "drops", "", -1,
            "Packets that the shared port dropped, during the measurement."),
)


def verdict(mine: Entry, peer: Entry, better: int) -> str:
    """Is a figure better than a peer's? Ranges over the seeds that overlap decide nothing."""
    if number(mine["median"]) == number(peer["median"]):
        return "equal"
    low, high = sorted((mine, peer), key=lambda entry: entry["median"])
    if low["max"] >= high["min"]:
        return "no clear difference"
    return "won" if (mine is high) == (better > 0) else "lost"


def difference(mine: float, peer: float) -> str:
    """A value beside a peer's, as text; empty if the peer's value is 0."""
    if not peer or number(mine) == number(peer):
        return ""
    ratio = mine / peer
    if ratio >= 2:
        return f", {ratio:.3g} times as much"
    return f", {abs(ratio - 1) * 100:.2g} % {'more' if ratio > 1 else 'less'}"
