# SPDX-License-Identifier: GPL-2.0
"""Hosts and servers of a scenario: their names, networks, addresses and link rates.

Hosts are h1, h2, ..., servers are s1, s2, ... Both are called ends. Each end is a network
namespace with one device, eth0, and a network of its own.
"""
import math
from typing import NamedTuple

from .common import Scenario, Table


TCP_HEADERS = 52                # bytes of IP and TCP with timestamps
ETHERNET = 14                   # bytes of the Ethernet header, which tc counts
WIRE_BYTES = 24                 # bytes of a frame's preamble, checksum and gap, not in tc's count


class End(NamedTuple):
    """A host or a server."""

    name: str
    network: str                # the first three numbers of the addresses: "10.0.1"
    gbit: float                 # link rate


class Port(NamedTuple):
    """A switch's port that has a buffer."""

    namespace: str
    device: str
    gbit: float


def ends(topo: Table) -> list[End]:
    """All hosts, then all servers."""
    return [End(f"h{i}", f"10.0.{i}", topo["host_gbit"]) for i in range(1, topo["hosts"] + 1)] + \
           [End(f"s{i}", f"10.1.{i}", topo["server_gbit"]) for i in range(1, topo["servers"] + 1)]


def is_host(name: str) -> bool:
    """Is the end of this name a host? Otherwise the end is a server."""
    return name[0] == "h"


def is_receiver(topo: Table, name: str) -> bool:
    """Does data arrive at this end? With a fabric at every end, otherwise at servers."""
    return not is_host(name) or "fabric" in topo


def address_of(to: int | str) -> tuple[str, str]:
    """Name and address of an end, given a server's number or an end's name like "h3"."""
    name = to if isinstance(to, str) else f"s{to}"
    return name, f"10.{int(not is_host(name))}.{name[1:]}.1"


def timestamp_lines(topo: Table, end: End) -> list[str]:
    """Commands that make an end write TCP timestamps in microseconds (the feature tcp_usec_ts).

    Debian 12's ip cannot set the feature.
    """
    if not topo.get("microseconds"):
        return []
    route = f"'replace', dst='default', gateway='{end.network}.254', metrics={{'features': 1 << 4}}"
    return [f"nsenter --net=/run/netns/{end.name} /usr/bin/python3 -c "
            f'"import pyroute2; pyroute2.IPRoute().route({route})"']


def frame_bytes(topo: Table) -> int:
    """Size of the largest frame as tc counts frames: with the Ethernet header."""
    return int(topo["mtu"] + ETHERNET)


def payload_bytes(topo: Table) -> int:
    """Payload of the largest frame."""
    return int(topo["mtu"] - TCP_HEADERS)


def link_headers(scenario: Scenario) -> int:
    """Bytes of a frame besides the IP packet, as the rates of links count them.

    On the testbed of veth devices tc counts frames, on the testbed of NICs all bytes on the wire.
    """
    return ETHERNET + (WIRE_BYTES if "nic" in scenario else 0)


def burst_bytes(topo: Table, gbit: float) -> int:
    """Bytes that a port of the testbed of veth devices, idle before, sends at once: two frames.

    At 100 Gb/s two frames give a rate 8 % too low, because the unit of tbf's clock is 64 ns, half
    of a frame's time.
    """
    return frame_bytes(topo) * (2 if gbit < 40 else 32)


def queue_qdisc(topo: Table, kind: str, gbit: float) -> str:
    """The qdisc that a port has instead of its buffer: red or trim, with options."""
    if kind == "red":
        return f"red {red_options(topo, gbit)}"
    return f"trim {topo.get('trim', 'return')}"


def red_options(topo: Table, gbit: float) -> str:
    """Options of the qdisc red with which a port marks packets as a DCTCP switch does.

    The switch marks packets above an instantaneous queue of mark_bytes: red gets the least burst
    that tc accepts, with which the average queue has the least memory.
    """
    k, frame = topo["mark_bytes"], frame_bytes(topo)
    return (f"limit {topo['buffer_bytes']} min {k} max {k + frame} probability 1 avpkt {frame} "
            f"burst {math.ceil(k / frame)} bandwidth {gbit}gbit ecn")
