# SPDX-License-Identifier: GPL-2.0
"""The plan of a cell: lines that tell the traffic engine when to send, change and sample.

All random choices of a plan are drawn with the seed, in a fixed order.
"""
import random

from . import clos, faults, ndp, nicbed, workload
from .cell import has_ecn, kernel_cc, nic_of, port_queue
from .common import GBIT_BPS, MS, Scenario, Table
from .scenario import connections, host_range, tables_of, window_ns
from .topology import address_of, ends

# The port of the first connection of each kind.
PING_PORT, PINGPONG_PORT, FLOW_PORT, INCAST_PORT = 4000, 5001, 5001, 6000
# More than the greatest "count" of [incast] with one server.
INCAST_PORTS_PER_HOST = 16


def make_plan(scenario: Scenario, cc: str, seed: int) -> str:
    """The whole plan of a cell."""
    rng = random.Random(seed)
    _, end = window_ns(scenario)
    lines = sysctl_lines(scenario, cc) + [f"end at={end + 1000}"] + flow_lines(scenario, cc, rng)
    lines += pingpong_lines(scenario, cc, rng)
    if nic := nic_of(scenario, cc):
        lines += nicbed.plan_lines(scenario, nic)
    lines += faults.plan_lines(scenario)
    lines += incast_lines(scenario, cc, rng)
    lines += workload.plan_lines(scenario, kernel_cc(scenario, cc), seed)
    lines += ping_lines(scenario, cc, rng)
    return "\n".join(lines + sample_lines(scenario, cc) + [""])


def sysctl_lines(scenario: Scenario, cc: str) -> list[str]:
    """Settings of switches and ends.

    Socket buffers are never the limit, and the kernel remembers nothing between connections. With
    TSO off a qdisc handles whole segments and the wire carries single packets, as with a NIC that
    does TSO.
    """
    settings = {"net.ipv4.tcp_rmem": "4096\t4194304\t33554432",
                "net.ipv4.tcp_wmem": "4096\t4194304\t33554432",
                "net.ipv4.tcp_no_metrics_save": 1,
                "net.ipv4.tcp_ecn": int(has_ecn(scenario, cc)),
                "net.ipv6.conf.all.disable_ipv6": 1, **scenario.get("sysctl", {})}
    topo, trim = scenario["topology"], port_queue(scenario, cc) == "trim"
    lines = [f"sysctl ns={switch} key={key} value=1" for switch in clos.switches(topo)
             for key in ("net/ipv4/ip_forward", "net/ipv6/conf/all/disable_ipv6")]
    for end in ends(topo):
        own = ndp.sysctls(topo, "nic" in scenario, end.gbit) if trim else {}
        lines += [f"sysctl ns={end.name} key={key.replace('.', '/')} value={value}"
                  for key, value in (own | settings).items()]
        if "nic" not in scenario:
            lines.append(f"tso_off ns={end.name} dev=eth0")
    return lines


def at_ns(value: float | list[float], rng: random.Random) -> int:
    """A time in ns, given a time in ms or a range of times to draw from."""
    low, high = value if isinstance(value, list) else (value, value)
    return int(rng.uniform(low * MS, high * MS))


def flow_lines(scenario: Scenario, cc: str, rng: random.Random) -> list[str]:
    """Lines for [[flows]], then for [[trains]], which send their first message at any time."""
    parts = [("bulk", *pair) for pair in connections(scenario, "flows")] + \
            [("train", *pair) for pair in connections(scenario, "trains")]
    return [flow_line(scenario, cc, rng, verb, flow, host, port)
            for port, (verb, flow, host) in enumerate(parts, FLOW_PORT)]


def flow_line(scenario: Scenario, cc: str, rng: random.Random, verb: str, flow: Table, host: int,
              port: int) -> str:
    """The line for one connection of [[flows]] or [[trains]]."""
    run = scenario["run"]
    to, addr = address_of(flow["to"])
    start = at_ns(flow.get("start_ms", run["start_ms"]), rng)
    connect = run.get("connect_ms")
    if connect is None:
        connect = start
    else:
        connect = at_ns(connect, rng) if isinstance(connect, list) else int(connect * MS)
    line = (f"{verb} from=h{host} to={to} addr={addr} port={port} "
            f"cc={flow.get('cc', kernel_cc(scenario, cc))} connect={connect} start={start}")
    if "stop_ms" in flow:
        line += f" stop={at_ns(flow['stop_ms'], rng)}"
    for key, name in (("max_gbit", "pace"), ("app_gbit", "rate")):
        if key in flow:
            line += f" {name}={int(flow[key] * GBIT_BPS)}"
    for key in ("sndbuf", "rcvbuf", "size"):
        if key in flow:
            line += f" {key}={flow[key]}"
    if "dscp" in flow:
        line += f" tos={flow['dscp'] << 2}"
    if verb == "train":
        line += f" every={int(flow['every_us'] * 1000)}"
    return line


def pingpong_lines(scenario: Scenario, cc: str, rng: random.Random) -> list[str]:
    """Lines for [[pingpong]]."""
    pairs = connections(scenario, "pingpong")
    return [f"pingpong from=h{host} to=s{pong['to']} addr=10.1.{pong['to']}.1 "
            f"port={port} cc={kernel_cc(scenario, cc)} connect=0 "
            f"start={at_ns(scenario['run']['start_ms'], rng)} size={pong['size']}"
            for port, (pong, host) in enumerate(pairs, PINGPONG_PORT)]


def incast_lines(scenario: Scenario, cc: str, rng: random.Random) -> list[str]:
    """Lines for [incast]: a server asks hosts; with to = "each" every host asks the others."""
    incast = scenario.get("incast")
    if not incast:
        return []
    start, _ = window_ns(scenario)
    every = incast["every_us"] * 1000
    head = (f"incast cc={incast.get('cc', kernel_cc(scenario, cc))} every={every} "
            f"size={incast['size']}")
    if "priority" in incast:
        head += f" priority={incast['priority']}"
    if incast["to"] == "each":
        return mutual_incast_lines(scenario, head, start, every, rng)
    to, addr = address_of(incast["to"])
    return [f"{head} start={start}"] + \
           [f"member from=h{host} to={to} addr={addr} "
            f"port={INCAST_PORT + INCAST_PORTS_PER_HOST * host + i}"
            for host in host_range(incast["from"]) for i in range(incast["count"])]


def mutual_incast_lines(scenario: Scenario, head: str, start: int, every: int,
                        rng: random.Random) -> list[str]:
    """Lines for [incast] in which every host asks the others of its group for "count" answers.

    Each host asks at a phase of its own, drawn with the seed.
    """
    incast = scenario["incast"]
    lines, groups = [], incast.get("groups", [[1, scenario["topology"]["hosts"]]])
    for to, group in [(host, group) for group in groups for host in host_range(group)]:
        others = [host for host in host_range(group) if host != to]
        lines.append(f"{head} start={start + rng.randrange(every)}")
        lines += [f"member from=h{others[i % len(others)]} to=h{to} addr=10.0.{to}.1 "
                  f"port={INCAST_PORT + i}" for i in range(incast["count"])]
    return lines


def ping_lines(scenario: Scenario, cc: str, rng: random.Random) -> list[str]:
    """Lines for [ping], or for each [[ping]]."""
    lines = []
    for i, ping in enumerate(tables_of(scenario.get("ping", []))):
        every, tos = ping["every_us"] * 1000, 2 if has_ecn(scenario, cc) else 0
        to, addr = address_of(ping["to"])
        lines.append(f"ping from=h{ping['from']} to={to} addr={addr} "
                     f"port={PING_PORT + i} start={MS + int(rng.uniform(0, every))} every={every} "
                     f"size={ping['size']} tos={tos | ping.get('dscp', 0) << 2} "
                     f"echo_tos={tos | ping.get('echo_dscp', 0) << 2} "
                     f"seed={rng.randrange(1 << 16)}")
    return lines


def sample_lines(scenario: Scenario, cc: str) -> list[str]:
    """Lines for [sample]: the ports whose queue is sampled, and how often connections are.

    On the testbed of veth devices tbf also counts packets that the qdisc trim below it returns as
    drops, so the qdisc trim is sampled.
    """
    sample, lines = scenario["sample"], []
    handle = 2 if port_queue(scenario, cc) == "trim" and "nic" not in scenario else 1
    for ns, dev, _ in clos.buffered_ports(scenario["topology"]):
        in_ring = "nic" in scenario and not nicbed.has_qdiscs(scenario["topology"])
        ring = f" ring={nicbed.sysfs('sw', dev)}/tx_queue" if in_ring else ""
        lines.append(f"queue ns={ns} dev={dev} handle={handle} "
                     f"every={sample['queue_us'] * 1000}{ring}")
    return lines + [f"flows every={sample['flows_ms'] * MS}"]
