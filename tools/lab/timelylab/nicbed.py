# SPDX-License-Identifier: GPL-2.0
"""The testbed of NICs: hosts, servers and the switch have links between pairs of test NICs.

    h1 eth0 ===== sw:h1 -> routing -> sw:s1 ===== eth0 s1

Every link is a pair of test NICs (drivers/net/hwnic), each NIC with a clock of its own. The
sender of a frame serialises the frame. The other bed delays a frame by delay_ns before the
switch; here each link has half of delay_ns, so that RTTs of both beds compare. A host's NIC stops
the host's qdisc when it has enough to send (byte queue limits), which veth devices never do. The
switch has no interrupt moderation and merges no packets.

The ring of the port to a server is the switch's buffer. With fabric = "all-to-all" each host's port
has a ring of two frames, and its buffer is a qdisc, which can also mark or trim packets.
"""
import os
import random
import subprocess
from collections.abc import Sequence

from .common import MS, TOP, Scenario, ScenarioError, Table
from .topology import End, ends, frame_bytes, is_host, queue_qdisc, timestamp_lines

HWNIC = os.path.join(TOP, "drivers/net/hwnic")
# The keys of [nic], and their defaults.
DEFAULTS: Table = {
    "timestamps": True,         # the hosts' NICs give hardware timestamps
    "stamp_host": False,        # they are of the times at which the host handles a frame
    "stamp_step_ns": 0,         # hosts' timestamps are multiples of this; 0: they are exact
    "jitter_ns": 0,             # host jitter: the longest random delay of a received frame
    "jitter_from_ms": 0,        # time at which the hosts' jitter begins
    "server_jitter_ns": 0,      # the same of servers
    "rx_usecs": 0,              # interrupt moderation of hosts
    "server_rx_usecs": 0,       # interrupt moderation of servers
    "drift_ppb": [-50_000, 50_000],     # range from which the clocks' drift is drawn
    "wander_ppb_per_s": 0,      # how fast the drift changes
    "cross_timestamps": 0,      # parameter of module timely: 1: read the NICs' clocks
    "watch": [],                # hosts whose ACKs are recorded and traced
    "truth_records": 2_000_000, # records that a NIC keeps of frames or of the queue
    "queue_truth": False,       # keep every change of the port's queue
    "trace_filter": "",         # the trace events to keep, as the kernel's filters are written
    "quiet": [],                # hosts without jitter and interrupt moderation
}
# Frames in the ring of a port that has no queue, and of a port whose queue is a qdisc.
RING = 4096
RING_BELOW_QDISC = 2


def sysfs(namespace: str, dev: str) -> str:
    """The directory with the attributes of a test NIC."""
    return f"/run/sys/{namespace}/class/net/{dev}/hwnic"


def has_qdiscs(topo: Table) -> bool:
    """Are the buffers of the switch's ports qdiscs? Otherwise they are rings."""
    return "fabric" in topo


def port_ring(topo: Table, name: str) -> int:
    """Frames in the ring of the switch's port to an end."""
    if has_qdiscs(topo):
        return RING_BELOW_QDISC
    return RING if is_host(name) else int(topo["buffer_bytes"] // frame_bytes(topo))


def port_qdisc(topo: Table, gbit: float, queue: str) -> str:
    """The qdisc of the switch's port to an end. A ring that is the buffer needs none above it."""
    if not has_qdiscs(topo):
        if queue == "trim":
            raise ScenarioError('NDP on the testbed of NICs needs fabric = "all-to-all"')
        return "pfifo limit 1"
    return queue_qdisc(topo, queue, gbit) if queue else f"bfifo limit {topo['buffer_bytes']}"


def build(kernel: str) -> str:
    """Build the driver of the test NICs for a kernel; the result is the driver's directory."""
    done = subprocess.run([os.path.join(HWNIC, "build.sh"), kernel], stdout=subprocess.PIPE,
                          text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def device_lines(topo: Table, nic: Table, end: End) -> list[str]:
    """Commands that make the pair of NICs of one end, with link rate, ring and moderation."""
    name, speed = end.name, int(end.gbit * 1000)
    rx_usecs = 0 if name in nic["quiet"] else nic[prefix(name) + "rx_usecs"]
    inside, outside = f"nsenter --net=/run/netns/{name}", "nsenter --net=/run/netns/sw"
    return [f"ip netns add {name}", f"ip link add x-{name} type hwnic",
            f"ip link set x-{name} netns {name} name eth0",
            f"ip link set x-{name}p netns sw name {name}",
            f"mkdir -p /run/sys/{name}",
            f"{inside} mount -t sysfs sys /run/sys/{name}",
            f"{inside} ethtool -s eth0 speed {speed} duplex full autoneg off",
            f"{outside} ethtool -s {name} speed {speed} duplex full autoneg off",
            f"{outside} ethtool -G {name} tx {port_ring(topo, name)}",
            f"{outside} ethtool --set-priv-flags {name} bql off",
            f"{outside} ethtool -K {name} gro off tso off gso off",
            f"{inside} ethtool -C eth0 rx-usecs {rx_usecs} rx-frames {0 if rx_usecs else 1}"]


def prefix(name: str) -> str:
    """The prefix of keys in [nic] that are for this kind of end."""
    return "" if is_host(name) else "server_"


def attribute_lines(topo: Table, nic: Table, rng: random.Random, name: str) -> list[str]:
    """Commands that set delay, jitter and clock of the NICs of one end."""
    jitter_ns = 0 if name in nic["quiet"] else nic[prefix(name) + "jitter_ns"]
    values = {"delay_ns": topo["delay_ns"] // 2,
              "jitter_ns": 0 if nic["jitter_from_ms"] else jitter_ns,
              "phc_set_ns": rng.randrange(1, 1 << 60),
              "phc_drift_ppb": rng.randint(*nic["drift_ppb"]),
              "phc_wander_ppb_per_s": nic["wander_ppb_per_s"],
              "stamp_host": int(nic["stamp_host"] and is_host(name)),
              "stamp_step_ns": nic["stamp_step_ns"] if is_host(name) else 0,
              "jitter_seed": rng.randrange(1 << 60)}
    return [f"echo {value} >{sysfs(name, 'eth0')}/{key}" for key, value in values.items()] + \
           [f"echo {topo['delay_ns'] // 2} >{sysfs('sw', name)}/delay_ns"]


def address_lines(topo: Table, end: End, qdisc: str, queue: str) -> list[str]:
    """Commands that set addresses, routes and qdiscs of one link.

    The switch's port drops a packet that finds its buffer full.
    """
    name, net = end.name, end.network
    lines = [f"ip -n {name} addr add {net}.1/24 dev eth0",
             f"ip -n {name} link set eth0 mtu {topo['mtu']} up",
             f"ip -n sw addr add {net}.254/24 dev {name}",
             f"ip -n sw link set {name} mtu {topo['mtu']} up",
             f"ip -n {name} route add default via {net}.254",
             f"tc -n sw qdisc replace dev {name} root handle 1: "
             f"{port_qdisc(topo, end.gbit, queue)}",
             *timestamp_lines(topo, end)]
    if is_host(name) or qdisc != "fq":
        lines.append(f"tc -n {name} qdisc replace dev eth0 root {qdisc}")
    return lines


def watch_lines(nic: Table) -> list[str]:
    """Commands that start the NICs' records and the trace, before the first packet."""
    lines = []
    for host in nic["watch"]:
        lines += truth_lines(host, "eth0", "RT", nic["truth_records"])
    if nic["queue_truth"]:
        lines += truth_lines("sw", "s1", "Q", nic["truth_records"])
    if nic["watch"]:
        trace = "/sys/kernel/tracing"
        lines += [f"[ -e {trace}/events ] || mount -t tracefs trace {trace}",
                  f"echo 400000 >{trace}/buffer_size_kb",
                  f"echo {trace_filter(nic)} >{trace}/events/timely/timely_rtt/filter",
                  f"echo 1 >{trace}/events/timely/timely_rtt/enable"]
    return lines


def truth_lines(namespace: str, dev: str, types: str, records: int) -> list[str]:
    """Commands that start the records of one NIC."""
    return [truth_dir(namespace, dev), f"echo {types} >$t/truth_types",
            f"echo {records} >$t/truth_enable"]


def truth_dir(namespace: str, dev: str) -> str:
    """A command that sets the shell's variable t to the directory of a NIC's records."""
    return f"t=$(cat {sysfs(namespace, dev)}/truth_dir)"


def trace_filter(nic: Table) -> str:
    """The trace filter in quotes. The kernel takes 0 for "no filter"."""
    return f"'{nic['trace_filter'] or 0}'"


def keep_lines(nic: Table) -> list[str]:
    """Commands after the run that keep trace and records beside the engine's result, $3."""
    lines = []
    if nic["watch"]:
        lines += ["echo 0 >/sys/kernel/tracing/tracing_on",
                  'cat /sys/kernel/tracing/trace >"$3.trace"']
    seen = [(host, "eth0") for host in nic["watch"]]
    if nic["queue_truth"]:
        seen.append(("sw", "s1"))
    for namespace, dev in seen:
        lines += [truth_dir(namespace, dev), f'cat $t/truth >"$3.truth-{namespace}"',
                  '[ "$(cat $t/truth_lost)" = 0 ] || '
                  f'echo "traffic: {namespace}: nic.truth_records is too small"']
    return lines


def setup_script(topo: Table, nic: Table, seed: int, qdisc: str, queue: str, loads: list[str],
                 hwnic: str, before: Sequence[str] = (), after: Sequence[str] = ()) -> str:
    """The guest's script.

    qdisc: of the hosts; queue: see cell.port_queue(); loads: lines that load modules; hwnic: the
    driver's directory; before, after: commands before and after the run.
    """
    rng = random.Random(seed * 1000)
    lines = ["set -e", f"insmod {hwnic}/hwnic.ko", *loads, "ip netns add sw",
             "mkdir -p /run/sys/sw",
             "nsenter --net=/run/netns/sw mount -t sysfs sys /run/sys/sw"]
    for end in ends(topo):
        lines += device_lines(topo, nic, end) + attribute_lines(topo, nic, rng, end.name) + \
            address_lines(topo, end, qdisc, queue)
    lines += [*watch_lines(nic), *before, '"$1" "$2" "$3"', *keep_lines(nic), *after]
    return "\n".join(lines + [""])


def plan_lines(scenario: Scenario, nic: Table) -> list[str]:
    """Lines of the plan: hardware timestamps on, jitter on, and the clocks' events."""
    topo = scenario["topology"]
    lines = [f"timestamp ns=h{i + 1} dev=eth0" for i in range(topo["hosts"]) if nic["timestamps"]]
    if nic["jitter_from_ms"]:
        lines += [f"write path={sysfs(end.name, 'eth0')}/jitter_ns value={nic['jitter_ns']} "
                  f"at={nic['jitter_from_ms'] * MS}"
                  for end in ends(topo) if is_host(end.name) and end.name not in nic["quiet"]]
    for event in scenario.get("events", []):
        at = int(event["at_ms"] * MS)
        if "real_step_ns" in event:
            lines.append(f"set_clock at={at} by={event['real_step_ns']}")
        for key in ("step_ns", "set_ns", "drift_ppb", "wander_ppb_per_s"):
            if key in event:
                lines.append(f"write path={sysfs(event['host'], 'eth0')}/phc_{key} "
                             f"value={event[key]} at={at}")
    return lines
