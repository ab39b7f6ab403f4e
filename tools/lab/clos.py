# SPDX-License-Identifier: GPL-2.0
"""A two-tier Clos of namespaces: hosts below leaf switches, each leaf joined to each spine.

    h1 ... h6 --- leaf1 ===== spine1
    h7 ...    --- leaf2 ===== spine2

Which spine takes a leaf's packets is fixed for each destination and drawn with the seed, as a
switch's hash would spread flows: the kernel of the lab has no multipath routes. A link's
delay is all in the hosts' links; a port has the buffer and the rate of its link.
"""
import random

import nicbed


def is_clos(topo):
    return topo.get("fabric") == "clos"


def per_leaf(topo):
    return topo["hosts"] // topo["leafs"]


def switch_of(topo, name):
    """The namespace that an end is joined to."""
    if not is_clos(topo):
        return "sw"
    return f"leaf{(int(name[1:]) - 1) // per_leaf(topo) + 1}"


def switches(topo):
    if not is_clos(topo):
        return ["sw"]
    return [f"leaf{leaf}" for leaf in range(1, topo["leafs"] + 1)] + \
           [f"spine{spine}" for spine in range(1, topo["spines"] + 1)]


def links(topo):
    """(leaf, its port, spine, its port, network) of each pair."""
    return [(leaf, f"l{leaf}p{spine}", spine, f"p{spine}l{leaf}", f"10.{100 + spine}.{leaf}")
            for leaf in range(1, topo["leafs"] + 1) for spine in range(1, topo["spines"] + 1)] \
        if is_clos(topo) else []


def inner_ports(topo):
    """(namespace, device, Gb/s) of the ports between switches."""
    return [(ns, dev, topo["uplink_gbit"]) for leaf, up, spine, down, _ in links(topo)
            for ns, dev in ((f"leaf{leaf}", up), (f"spine{spine}", down))]


def setup_lines(topo, seed, port_lines):
    """Links between switches and the routes over them. port_lines(dev, gbit): for tc."""
    if not is_clos(topo):
        return []
    rng = random.Random(seed * 1003)
    lines, routes = [], {ns: [] for ns in switches(topo)}
    for leaf, up, spine, down, net in links(topo):
        lines += [f"ip link add name {up} netns leaf{leaf} type veth peer name {down} "
                  f"netns spine{spine}"]
        for ns, dev, last in ((f"leaf{leaf}", up, 1), (f"spine{spine}", down, 2)):
            lines += [f"ip -n {ns} addr add {net}.{last}/24 dev {dev}",
                      f"ip -n {ns} link set {dev} mtu {topo['mtu']} up",
                      f"tc -n {ns} -batch - <<END", *port_lines(dev, topo["uplink_gbit"]), "END"]
        routes[f"spine{spine}"] += [f"route add {host_net}.0/24 via {net}.1"
                                    for host, host_net, _ in nicbed.ends(topo)
                                    if switch_of(topo, host) == f"leaf{leaf}"]
    for leaf in range(1, topo["leafs"] + 1):
        routes[f"leaf{leaf}"] += [
            f"route add {host_net}.0/24 via 10.{100 + rng.randint(1, topo['spines'])}.{leaf}.2"
            for host, host_net, _ in nicbed.ends(topo) if switch_of(topo, host) != f"leaf{leaf}"]
    for ns, rows in routes.items():
        lines += [f"ip -n {ns} -batch - <<END", *rows, "END"] if rows else []
    return lines
