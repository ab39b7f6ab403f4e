# SPDX-License-Identifier: GPL-2.0
"""Switches: one for all ends, or a two-tier Clos network of leaf and spine switches.

    h1 ... h6 --- leaf1 ===== spine1
    h7 ...    --- leaf2 ===== spine2

Every leaf has a link to every spine. The spine that carries a leaf's packets to a host is fixed for
each pair of leaf and host, and drawn with the seed. A real switch spreads flows by a hash in the
same way; the testbed's kernel has no multipath routes. All delay is in the hosts' links. Every
port between switches has the buffer of the topology and the rate of the uplinks.
"""
import random
from collections.abc import Callable
from typing import NamedTuple

from .common import Table
from .topology import Port, ends, is_receiver


class Link(NamedTuple):
    """A link between a leaf and a spine, both by number, with the device at each side."""

    leaf: int
    leaf_port: str
    spine: int
    spine_port: str
    network: str


def is_clos(topo: Table) -> bool:
    """Does the topology have leaf and spine switches?"""
    return topo.get("fabric") == "clos"


def hosts_per_leaf(topo: Table) -> int:
    """How many hosts are below each leaf."""
    return int(topo["hosts"] // topo["leafs"])


def switch_of(topo: Table, name: str) -> str:
    """Namespace of the switch that an end has its link to."""
    if not is_clos(topo):
        return "sw"
    return f"leaf{(int(name[1:]) - 1) // hosts_per_leaf(topo) + 1}"


def switches(topo: Table) -> list[str]:
    """Namespaces of all switches."""
    if not is_clos(topo):
        return ["sw"]
    return [f"leaf{leaf}" for leaf in range(1, topo["leafs"] + 1)] + \
           [f"spine{spine}" for spine in range(1, topo["spines"] + 1)]


def links(topo: Table) -> list[Link]:
    """All links between switches."""
    if not is_clos(topo):
        return []
    return [Link(leaf, f"l{leaf}p{spine}", spine, f"p{spine}l{leaf}", f"10.{100 + spine}.{leaf}")
            for leaf in range(1, topo["leafs"] + 1) for spine in range(1, topo["spines"] + 1)]


def buffered_ports(topo: Table) -> list[Port]:
    """The ports that have a buffer: those to receivers, then those between switches."""
    out = [Port(switch_of(topo, end.name), end.name, end.gbit) for end in ends(topo)
           if is_receiver(topo, end.name)]
    for link in links(topo):
        out += [Port(f"leaf{link.leaf}", link.leaf_port, topo["uplink_gbit"]),
                Port(f"spine{link.spine}", link.spine_port, topo["uplink_gbit"])]
    return out


def setup_lines(topo: Table, seed: int,
                port_lines: Callable[[str, float], list[str]]) -> list[str]:
    """Commands that make the links between switches and the routes over these links.

    port_lines(device, gbit) gives the tc commands of one port.
    """
    if not is_clos(topo):
        return []
    lines = []
    for link in links(topo):
        lines += link_lines(topo, link, port_lines)
    for namespace, rows in routes(topo, seed).items():
        lines += [f"ip -n {namespace} -batch - <<END", *rows, "END"] if rows else []
    return lines


def link_lines(topo: Table, link: Link,
               port_lines: Callable[[str, float], list[str]]) -> list[str]:
    """Commands that make one link between a leaf and a spine."""
    lines = [f"ip link add name {link.leaf_port} netns leaf{link.leaf} type veth "
             f"peer name {link.spine_port} netns spine{link.spine}"]
    for namespace, device, number in ((f"leaf{link.leaf}", link.leaf_port, 1),
                                      (f"spine{link.spine}", link.spine_port, 2)):
        lines += [f"ip -n {namespace} addr add {link.network}.{number}/24 dev {device}",
                  f"ip -n {namespace} link set {device} mtu {topo['mtu']} up",
                  f"tc -n {namespace} -batch - <<END", *port_lines(device, topo["uplink_gbit"]),
                  "END"]
    return lines


def routes(topo: Table, seed: int) -> dict[str, list[str]]:
    """Routes of each switch. A leaf's route to a host goes by a spine drawn with the seed."""
    rng = random.Random(seed * 1003)
    out: dict[str, list[str]] = {namespace: [] for namespace in switches(topo)}
    for link in links(topo):
        out[f"spine{link.spine}"] += [f"route add {end.network}.0/24 via {link.network}.1"
                                      for end in ends(topo)
                                      if switch_of(topo, end.name) == f"leaf{link.leaf}"]
    for leaf in range(1, topo["leafs"] + 1):
        out[f"leaf{leaf}"] += [
            f"route add {end.network}.0/24 via 10.{100 + rng.randint(1, topo['spines'])}.{leaf}.2"
            for end in ends(topo) if switch_of(topo, end.name) != f"leaf{leaf}"]
    return out
