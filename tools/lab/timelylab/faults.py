# SPDX-License-Identifier: GPL-2.0
"""Faults of real paths: loss, reordering, delayed ACKs, policers, blackouts, routes, pauses.

The table [path] has the faults of the network from the time from_ms on. A table [[events]] says
how the network changes at one time. Every change is a script of tc commands. The guest writes
the scripts before the run, and the traffic engine runs each script at its time, so that changes
are exact in virtual time.
"""
from collections.abc import Iterator, Sequence
from typing import Any

from . import nicbed
from .common import MS, Scenario, ScenarioError, Table
from .topology import ends, is_host

# The keys of [path], and their defaults.
DEFAULTS: Table = {
    "from_ms": 0.9,             # connections are open by then: a lost SYN costs 1 s
    "loss_percent": 0,          # of the packets that hosts send, on the hosts' links
    "reorder_percent": 0,       # share of a port's packets that arrive late
    "reorder_us": 50,           # how late these packets arrive
    "ack_loss_percent": 0,      # of the packets that servers send
    "ack_every_us": 0,          # packets of servers leave together, once in this time
    "police_gbit": 0,           # rate of a policer (without a queue) at the ports; 0: none
    "police_burst_bytes": 65_536,
    "gro_us": 0,                # receivers merge packets that arrive within this time
    "ack_dscp": 0,              # ports send packets with this DSCP before all others
    "class_dscp": 0,            # packets with this DSCP share each port evenly with all others
    "pause_us": 0,              # on the testbed of NICs: how long ports to servers stop sending
    "pause_every_us": 1_000,    # time between the beginnings of two pauses
}
# The keys of [path] for the testbed of NICs, which has no tc on the path.
NIC_KEYS = ("pause_us", "pause_every_us")
# Parameters of tcp_timely for tests: how far the hosts' real-time clocks are apart, and how many
# such clocks there are.
CLOCK_FILES = {"probe_rtt_offset_ns": "/sys/module/tcp_timely/parameters/test_probe_rtt_offset_ns",
               "probe_rtt_clocks": "/sys/module/tcp_timely/parameters/test_probe_rtt_clocks"}
EVENTS = ("blackout_ms", "extra_delay_us", *CLOCK_FILES)


def settings(scenario: Scenario) -> Table:
    """The table [path] with defaults. A key of the other bed is an error."""
    path: Table = scenario.get("path", {})
    for key in path:
        if ("nic" in scenario) != (key in NIC_KEYS):
            raise ScenarioError(f"path.{key} needs a scenario " +
                                ("with [nic]" if key in NIC_KEYS else "without [nic]"))
    return DEFAULTS | path


def link_options(topo: Table, path: Table, name: str, extra_delay_us: float = 0,
                 dark: bool = False) -> str:
    """netem's options for packets from one end, where the packets enter the switch.

    dark: the link loses all packets, as in a blackout.
    """
    gbit = next(end.gbit for end in ends(topo) if end.name == name)
    words = [f"rate {gbit}gbit delay {topo['delay_ns'] / 1000 + extra_delay_us}us limit 1000000"]
    loss = path.get("loss_percent" if is_host(name) else "ack_loss_percent", 0)
    if dark or loss:
        words.append(f"loss {100 if dark else loss}%")
    if not is_host(name) and path.get("ack_every_us"):
        words.append(f"slot {path['ack_every_us']}us {path['ack_every_us']}us")
    return " ".join(words)


def reorder_lines(path: Table, name: str) -> list[str]:
    """Commands that delay some packets between the port and its receiver."""
    if not path["reorder_percent"]:
        return []
    in_order = 100 - path["reorder_percent"]
    return [f"ip -n {name} link add wire type ifb", f"ip -n {name} link set wire up",
            f"tc -n {name} qdisc add dev eth0 handle ffff: ingress",
            f"tc -n {name} filter add dev eth0 parent ffff: protocol all matchall "
            "action mirred egress redirect dev wire",
            f"tc -n {name} qdisc add dev wire root netem delay {path['reorder_us']}us "
            f"reorder {in_order}% limit 1000000"]


def gro_lines(path: Table, name: str) -> list[str]:
    """Commands that let a receiver merge packets.

    veth's GRO polls before the next packet has arrived, unless gro_flush_timeout makes GRO wait.
    GRO takes no packets from a device that makes segments itself, so the switch's side has no TSO.
    """
    if not path["gro_us"]:
        return []
    inside = f"nsenter --net=/run/netns/{name}"
    sys = f"/run/sys/{name}"
    return [f"nsenter --net=/run/netns/sw ethtool -K {name} tso off",
            f"{inside} ethtool -K eth0 gro on", f"mkdir -p {sys}",
            f"{inside} mount -t sysfs sys {sys}",
            f"echo {path['gro_us'] * 1000} >{sys}/class/net/eth0/gro_flush_timeout",
            f"echo 100 >{sys}/class/net/eth0/napi_defer_hard_irqs"]


def receiver_lines(scenario: Scenario, name: str) -> list[str]:
    """Commands in the namespace of a receiver."""
    path = settings(scenario)
    return reorder_lines(path, name) + gro_lines(path, name)


def policer(path: Table, dev: str) -> list[str]:
    """tc commands of a token bucket without a queue: a packet that finds no tokens is dropped."""
    return [f"qdisc add dev {dev} root handle 1: tbf rate {path['police_gbit']}gbit "
            f"burst {path['police_burst_bytes']} limit 1600"]


def classes(path: Table, topo: Table, dev: str, gbit: float, burst: int) -> list[str]:
    """tc commands for a port with two classes of equal rates; packets with the DSCP take the first.

    Each class has the whole buffer, and the rate that the other class does not use.
    """
    mark, limit = path["class_dscp"] << 2, topo["buffer_bytes"]
    bursts = f"burst {burst} cburst {burst}"
    lines = [f"qdisc add dev {dev} root handle 1: htb default 2",
             f"class add dev {dev} parent 1: classid 1:9 htb rate {gbit}gbit {bursts}"]
    for i in (1, 2):
        lines += [f"class add dev {dev} parent 1:9 classid 1:{i} htb rate {gbit / 2}gbit "
                  f"ceil {gbit}gbit {bursts} quantum {topo['mtu'] + 14}",
                  f"qdisc add dev {dev} parent 1:{i} bfifo limit {limit}"]
    return lines + [f"filter add dev {dev} parent 1: protocol ip prio 1 u32 "
                    f"match ip dsfield {mark:#x} 0xfc flowid 1:1"]


def priority(path: Table, topo: Table, dev: str) -> list[str]:
    """tc commands for two bands below the port's tbf; packets with the DSCP take the first band."""
    mark = path["ack_dscp"] << 2
    limit = topo["buffer_bytes"]
    return [f"qdisc add dev {dev} parent 1:1 handle 2: prio bands 2 "
            "priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
            f"filter add dev {dev} parent 2: protocol ip prio 1 u32 "
            f"match ip dsfield {mark:#x} 0xfc flowid 2:1",
            f"qdisc add dev {dev} parent 2:1 bfifo limit {limit}",
            f"qdisc add dev {dev} parent 2:2 bfifo limit {limit}"]


def change_steps(scenario: Scenario) -> list[tuple[float, Table]]:
    """Times in ms at which links change, each with the new parts of the links' state."""
    path = settings(scenario)
    steps: list[tuple[float, Table]] = [(path["from_ms"], {"path": path})]
    for event in scenario.get("events", []):
        if "blackout_ms" in event:
            steps += [(event["at_ms"], {"dark": True}),
                      (event["at_ms"] + event["blackout_ms"], {"dark": False})]
        if "extra_delay_us" in event:
            steps.append((event["at_ms"], {"extra_delay_us": event["extra_delay_us"]}))
    return sorted(steps, key=lambda pair: pair[0])


def changes(scenario: Scenario) -> Iterator[tuple[float, dict[str, str]]]:
    """The times, in ms, at which links change, each with netem's new options by end."""
    topo = scenario["topology"]
    names = [end.name for end in ends(topo)]
    now: dict[str, Any] = {"path": {}, "extra_delay_us": 0, "dark": False}
    before = {name: link_options(topo, {}, name) for name in names}
    for at, step in change_steps(scenario):
        now |= step
        state = {name: link_options(topo, now["path"], name,
                                    now["extra_delay_us"] if is_host(name) else 0, now["dark"])
                 for name in names}
        if changed := {name: text for name, text in state.items() if text != before[name]}:
            yield at, changed
        before = state


def script_lines(scenario: Scenario) -> list[str]:
    """Commands in the guest that write a script for each change, which the engine runs."""
    lines = []
    for i, (_, state) in enumerate(changes(scenario)):
        lines += [f"cat >/run/change-{i} <<'CHANGE'", "tc -n sw -batch - <<END",
                  *(f"qdisc change dev in-{name} root handle 1: netem {text}"
                    for name, text in state.items()), "END", "CHANGE",
                  f"chmod +x /run/change-{i}"]
    return lines


def clock_lines(scenario: Scenario) -> list[str]:
    """Lines of the plan that set tcp_timely's test parameters for clocks that differ."""
    return [f"write path={path} value={event[key]} at={int(event['at_ms'] * MS)}"
            for event in scenario.get("events", []) for key, path in CLOCK_FILES.items()
            if key in event]


def path_lines(scenario: Scenario) -> list[str]:
    """Lines of the plan that change links, or on the testbed of NICs stop ports."""
    path = settings(scenario)
    if "nic" not in scenario:
        return [f"run file=/run/change-{i} at={int(at * MS)}"
                for i, (at, _) in enumerate(changes(scenario))]
    every = int(path["pause_every_us"] * 1000)
    return [f"write path={nicbed.sysfs('sw', end.name)}/pause_ns "
            f"value={int(path['pause_us'] * 1000)} at={MS} every={every}"
            for end in ends(scenario["topology"])
            if not is_host(end.name) and path["pause_us"]]


def plan_lines(scenario: Scenario) -> list[str]:
    """All lines of the plan that cause faults."""
    return clock_lines(scenario) + path_lines(scenario)


def recovery_ms(scenario: Scenario, times: Sequence[int], rates: Sequence[float]) -> float | None:
    """Time from the end of the last blackout until goodput has recovered; None without blackouts.

    Goodput has recovered at 90 % of its mean in the second half of the time before the first
    blackout. rates[i] is the goodput between times[i] and times[i + 1], which are in ns.
    """
    dark = [event for event in scenario.get("events", []) if "blackout_ms" in event]
    if not dark:
        return None
    begin = dark[0]["at_ms"] * MS
    end: float = (dark[-1]["at_ms"] + dark[-1]["blackout_ms"]) * MS
    usual = [rate for t, rate in zip(times[1:], rates) if begin / 2 <= t <= begin]
    for t, rate in zip(times[1:], rates):
        if t > end and rate >= .9 * sum(usual) / len(usual):
            return (t - end) / MS
    return (times[-1] - end) / MS
