# SPDX-License-Identifier: GPL-2.0
"""NDP in a scenario: cells whose connections are NDP sockets, over switches that trim packets.

In a cell with the congestion control "ndp" all ports with a buffer have the qdisc trim instead of
the buffer, and the leaf switches of a Clos spread NDP's packets over all spines.
"""
import glob
import json
from collections.abc import Iterator

from . import clos
from .common import Figures, Raw, ScenarioError, Table
from .onramp import numbers
from .topology import WIRE_BYTES, ends, frame_bytes

# The name of the transport in place of a congestion control.
CC = "ndp"
UDP_PORT_AT = 20                # offset of the UDP source port in an IPv4 packet without options


def sysctls(topo: Table, nic: bool, gbit: float) -> Table:
    """Settings of an end with a link of a rate.

    Pulls count all bytes on the wire. The links of veth devices count frames, so they carry more
    bytes than their rate. The rates of test NICs are known to the kernel.
    """
    if nic:
        return {}
    frame = frame_bytes(topo)
    return {"net.ndp.link_rate_kbps": int(gbit * 1e6 * (frame + WIRE_BYTES) / frame)}


def path_lines(topo: Table) -> list[str]:
    """Commands by which leaf switches spread NDP's packets over the spines.

    The routes of a leaf lead to one spine for each host. Filters at each port to a spine move the
    packets whose UDP source port selects another spine. All ports of spines have the same address,
    so the other spine accepts the packets.
    """
    spines = topo.get("spines", 0)
    if spines & (spines - 1):
        raise ScenarioError(f"NDP needs a number of spines that is a power of two, not {spines}")
    lines = [f"ip -n spine{link.spine} link set {link.spine_port} address 02:00:00:00:00:01"
             for link in clos.links(topo)]
    for link in clos.links(topo):
        lines += [f"tc -n leaf{link.leaf} -batch - <<END",
                  f"qdisc add dev {link.leaf_port} clsact",
                  *(f"filter add dev {link.leaf_port} egress protocol ip u32 "
                    f"match ip protocol 17 0xff match u16 {spine} {spines - 1:#x} at {UDP_PORT_AT} "
                    f"action mirred egress redirect dev l{link.leaf}p{spine + 1}"
                    for spine in range(spines) if spine + 1 != link.spine), "END"]
    return lines


def keep_lines(topo: Table) -> list[str]:
    """Commands after the run that keep statistics of switches and ends beside the result, $3."""
    return [f'tc -n {port.namespace} -s -j qdisc show dev {port.device} >"$3.trim-{port.device}"'
            for port in clos.buffered_ports(topo)] + \
           [f'nsenter --net=/run/netns/{end.name} cat /proc/net/ndp_stat >"$3.ndp-{end.name}"'
            for end in ends(topo)]


def kept_files(result: str, kind: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each file of keep_lines()."""
    for path in sorted(glob.glob(f"{result}.{kind}-*")):
        with open(path, encoding="ascii") as file:
            yield path.rpartition("-")[2], file.read()


def collect(result: str, raw: Raw) -> None:
    """Add the files of keep_lines() to the raw result as "ends", by kind and device or end."""
    kept = {"trim": {name: json.loads(text) for name, text in kept_files(result, "trim")},
            "ndp": {name: {key: int(value) for key, value in map(str.split, text.splitlines())}
                    for name, text in kept_files(result, "ndp")}}
    if kept["trim"]:
        raw["ends"] = kept


def figures(raw: Raw) -> Figures:
    """Packets that the switches trimmed, returned and dropped, in the whole run."""
    out: Figures = {}
    for found in raw.get("ends", {}).get("trim", {}).values():
        for key, value in numbers([qdisc for qdisc in found if qdisc["kind"] == "trim"]):
            name = {"trim_packets": "trimmed", "returned": "returned",
                    "return_failed": "dropped"}.get(key)
            if key.startswith("dropped_"):
                name = "dropped"
            if name:
                out[name] = out.get(name, 0) + value
    return out
