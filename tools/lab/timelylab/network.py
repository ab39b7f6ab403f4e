# SPDX-License-Identifier: GPL-2.0
"""The guest's script: makes the network of a cell, then runs the traffic engine.

Hosts and servers are namespaces around a switch, which is the namespace sw or, in a Clos
network, several namespaces. A host's link is serialised where packets enter the switch, so that the
host's root qdisc stays free for the qdisc under test. veth does no GRO: a server sees every packet
and acknowledges every second packet, as with a NIC that has no interrupt moderation. NAPI's GRO
would change nothing, as in virtual time NAPI polls before the next packet has arrived.
"""
import os

from . import clockd, clos, faults, ndp, nicbed, onramp
from .cell import clockd_of, host_qdisc, module_files, nic_of, port_queue
from .common import TOP, Scenario, Table
from .topology import (End, burst_bytes, ends, is_host, is_receiver, queue_qdisc,
                       timestamp_lines)

TC_PLUGIN = os.path.join(TOP, "build/tc")
# The kernel notices the carrier of further devices only 1 s later.
ENDS_AT_ONCE = 60
RUN_ENGINE = '"$1" "$2" "$3"'


def cell_script(scenario: Scenario, cc: str, seed: int, modules: str, hwnic: str) -> str:
    """The script of a cell, on either bed. modules, hwnic: directories of the modules."""
    nic, topo, queue = nic_of(scenario, cc), scenario["topology"], port_queue(scenario, cc)
    if not nic:
        script = setup_script(scenario, cc, seed, modules)
    else:
        script = nic_script(scenario, cc, seed, modules, hwnic, nic)
    return script + "".join(f"{line}\n" for line in ndp.keep_lines(topo) if queue == "trim")


def nic_script(scenario: Scenario, cc: str, seed: int, modules: str, hwnic: str,
               nic: Table) -> str:
    """The script of a cell on the testbed of NICs."""
    topo = scenario["topology"]
    names = [end.name for end in ends(topo)]
    before: list[str] = []
    after: list[str] = []
    if settings := onramp.settings(scenario, cc):
        before += onramp.setup_lines(scenario, cc, seed, names)
        after += onramp.keep_lines(settings, names)
    if daemons := clockd_of(scenario, cc):
        own = daemon_lines(scenario, cc, seed, names) if settings else {}
        before += clockd.setup_lines(topo, daemons, own)
        after += clockd.keep_lines()
    return nicbed.setup_script(topo, nic, seed, host_qdisc(scenario, cc),
                               port_queue(scenario, cc), load_lines(scenario, cc, modules), hwnic,
                               before, after)


def daemon_lines(scenario: Scenario, cc: str, seed: int, names: list[str]) -> dict[str, list[str]]:
    """Lines of the configuration of each daemon that On-Ramp uses: the error of its host's clock."""
    return {name: ["onramp yes", f"test-clock {offset}"]
            for name, (offset, _) in onramp.clock_errors(scenario, cc, seed, names).items()}


def setup_script(scenario: Scenario, cc: str, seed: int, modules: str) -> str:
    """The script of a cell on the testbed of veth devices."""
    topo = scenario["topology"]
    names = [end.name for end in ends(topo)]
    settings = onramp.settings(scenario, cc)
    lines = ["set -e", *load_lines(scenario, cc, modules), *link_lines(topo)]
    for end in ends(topo):
        lines += end_lines(scenario, cc, end)
    for switch in clos.switches(topo):
        lines += switch_lines(scenario, cc, switch)
    lines += clos.setup_lines(topo, seed, lambda dev, gbit:
                              port_lines(scenario, dev, gbit, port_queue(scenario, cc)))
    if port_queue(scenario, cc) == "trim":
        lines += ndp.path_lines(topo)
    lines += faults.script_lines(scenario)
    if len(names) > ENDS_AT_ONCE:
        lines.append("sleep 2       # the kernel notices the last devices' carriers after a second")
    if settings:
        lines += onramp.setup_lines(scenario, cc, seed, names)
    return "\n".join(lines + [RUN_ENGINE] + onramp.keep_lines(settings, names) + [""])


def load_lines(scenario: Scenario, cc: str, modules: str) -> list[str]:
    """Commands that load modules. The kernel ignores unknown parameters, so the script checks."""
    loads = module_files(scenario, cc)
    lines = [f"export TC_LIB_DIR={TC_PLUGIN}"] + [f"insmod {modules}/{name}" for name in loads]
    if any("tcp_timely" in name for name in loads):
        lines += [f"[ -e /sys/module/tcp_timely/parameters/{name} ] || "
                  f"{{ echo 'traffic: tcp_timely has no parameter {name}'; exit 1; }}"
                  for name in scenario.get("module_params", {})]
    return lines


def link_lines(topo: Table) -> list[str]:
    """Commands that make switches, ends, and the links between them."""
    rows = [f"netns add {switch}" for switch in clos.switches(topo)]
    for name, _, _ in ends(topo):
        switch = clos.switch_of(topo, name)
        rows += [f"netns add {name}",
                 f"link add name {name} netns {switch} type veth peer name eth0 netns {name}",
                 f"link add name in-{name} netns {switch} type ifb"]
    return ["ip -batch - <<END", *rows, "END"]


def end_lines(scenario: Scenario, cc: str, end: End) -> list[str]:
    """Commands in the namespace of an end: address, route, root qdisc, and a receiver's faults."""
    topo, name = scenario["topology"], end.name
    lines = [f"ip -n {name} -batch - <<END", f"addr add {end.network}.1/24 dev eth0",
             f"link set eth0 mtu {topo['mtu']} up", f"route add default via {end.network}.254",
             "END", *timestamp_lines(topo, end)]
    qdisc = host_qdisc(scenario, cc, name)
    if is_host(name) or qdisc != "fq":
        lines.append(f"tc -n {name} qdisc replace dev eth0 root {qdisc}")
    if "gso_bytes" in topo:
        lines.append(f"ip -n {name} link set eth0 gso_max_size {topo['gso_bytes']}")
    if is_receiver(topo, name):
        lines += faults.receiver_lines(scenario, name)
    return lines


def switch_lines(scenario: Scenario, cc: str, switch: str) -> list[str]:
    """Commands in the namespace of a switch: the ports to ends, with link rate and buffer."""
    topo = scenario["topology"]
    addresses, qdiscs = [], []
    for name, net, gbit in ends(topo):
        if clos.switch_of(topo, name) != switch:
            continue
        addresses += [f"addr add {net}.254/24 dev {name}", f"link set in-{name} up",
                      f"link set {name} mtu {topo['mtu']} up"]
        qdiscs += [f"qdisc add dev {name} handle ffff: ingress",
                   f"filter add dev {name} parent ffff: protocol all matchall "
                   f"action mirred egress redirect dev in-{name}",
                   f"qdisc add dev in-{name} root handle 1: netem "
                   f"{faults.link_options(topo, {}, name)}"]
        if is_receiver(topo, name):
            qdiscs += port_lines(scenario, name, gbit, port_queue(scenario, cc))
    if not addresses:
        return []
    return [f"ip -n {switch} -batch - <<END", *addresses, "END",
            f"tc -n {switch} -batch - <<END", *qdiscs, "END"]


def port_lines(scenario: Scenario, dev: str, gbit: float, queue: str) -> list[str]:
    """tc commands of a port with a buffer.

    With the queue red the port is a DCTCP switch's, with trim an NDP switch's.
    """
    topo, path = scenario["topology"], faults.settings(scenario)
    if path["police_gbit"]:
        return faults.policer(path, dev)
    if path["class_dscp"]:
        return faults.classes(path, topo, dev, gbit, burst_bytes(topo, gbit))
    lines = [f"qdisc add dev {dev} root handle 1: tbf rate {gbit}gbit "
             f"burst {burst_bytes(topo, gbit)} limit {topo['buffer_bytes']}"]
    if path["ack_dscp"]:
        return lines + faults.priority(path, topo, dev)
    if queue:
        lines.append(f"qdisc add dev {dev} parent 1:1 handle 2: {queue_qdisc(topo, queue, gbit)}")
    return lines
