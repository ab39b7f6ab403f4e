# SPDX-License-Identifier: GPL-2.0
"""What real paths do to packets: loss, reordering, held ACKs, policers, blackouts, routes that
change, switches that pause, receivers that merge.

[path] says what is wrong with the network, from from_ms on; [[events]] what happens to it at a
time. Each change is a script of tc commands, written before the run and run by the
engine at its time, so that it is exact in virtual time.
"""
import nicbed

MS = 1_000_000
# What [path] may say, and what it is otherwise.
DEFAULTS = {
    "from_ms": 0.9,             # connections are open by then: a lost SYN costs a second
    "loss_percent": 0,          # of what hosts send, on their links
    "reorder_percent": 0,       # so many of a port's packets
    "reorder_us": 50,           # reach the receiver so much later than the others
    "ack_loss_percent": 0,      # of what servers send
    "ack_every_us": 0,          # what servers send is held, and let go together
    "police_gbit": 0,           # the ports' rate, without a queue
    "police_burst_bytes": 65_536,
    "gro_us": 0,                # receivers merge what arrives within
    "ack_dscp": 0,              # ports send packets with this mark before all others
    "pause_us": 0,              # on the bed of NICs: ports stop for so long
    "pause_every_us": 1_000,
}
# On the bed of NICs there is no tc on the way.
NICS_TOO = ("pause_us", "pause_every_us")
# Of tcp_timely: how far hosts' real-time clocks are apart, and how many of them there are.
DRAINS = {"drain_offset_ns": "/sys/module/tcp_timely/parameters/test_drain_offset_ns",
          "drain_clocks": "/sys/module/tcp_timely/parameters/test_drain_clocks"}
EVENTS = ("blackout_ms", "extra_delay_us", *DRAINS)


class FaultsError(Exception):
    pass


def settings(scenario):
    path = scenario.get("path", {})
    for key in path:
        if ("nic" in scenario) != (key in NICS_TOO):
            raise FaultsError(f"path.{key} is not for this bed")
    return DEFAULTS | path


def line_options(topo, path, name, extra_delay_us=0, dark=False):
    """netem's options for what enters the switch from that end."""
    gbit = next(gbit for end, _, gbit in nicbed.ends(topo) if end == name)
    words = [f"rate {gbit}gbit delay {topo['delay_ns'] / 1000 + extra_delay_us}us limit 1000000"]
    loss = path.get("loss_percent" if name[0] == "h" else "ack_loss_percent", 0)
    if dark or loss:
        words.append(f"loss {100 if dark else loss}%")
    if name[0] == "s" and path.get("ack_every_us"):
        words.append(f"slot {path['ack_every_us']}us {path['ack_every_us']}us")
    return " ".join(words)


def wire_lines(path, name):
    """Between the port and its receiver, which sees some packets late. For tc's batch there."""
    late = 100 - path["reorder_percent"]
    return [f"ip -n {name} link add wire type ifb", f"ip -n {name} link set wire up",
            f"tc -n {name} qdisc add dev eth0 handle ffff: ingress",
            f"tc -n {name} filter add dev eth0 parent ffff: protocol all matchall "
            "action mirred egress redirect dev wire",
            f"tc -n {name} qdisc add dev wire root netem delay {path['reorder_us']}us "
            f"reorder {late}% limit 1000000"] if path["reorder_percent"] else []


def gro_lines(path, name):
    """veth's GRO polls before the next packet is there, unless it is told to wait."""
    if not path["gro_us"]:
        return []
    inside = f"nsenter --net=/run/netns/{name}"
    sys = f"/run/sys/{name}"
    # And takes nothing from a device that would make segments itself.
    return [f"nsenter --net=/run/netns/sw ethtool -K {name} tso off",
            f"{inside} ethtool -K eth0 gro on", f"mkdir -p {sys}",
            f"{inside} mount -t sysfs sys {sys}",
            f"echo {path['gro_us'] * 1000} >{sys}/class/net/eth0/gro_flush_timeout",
            f"echo 100 >{sys}/class/net/eth0/napi_defer_hard_irqs"]


def receiver_lines(scenario, name):
    path = settings(scenario)
    return wire_lines(path, name) + gro_lines(path, name)


def policer(path, dev):
    """A token bucket without a queue: what finds no tokens is dropped."""
    return [f"qdisc add dev {dev} root handle 1: tbf rate {path['police_gbit']}gbit "
            f"burst {path['police_burst_bytes']} limit 1600"]


def priority(path, topo, dev):
    """Below the port's tbf: two bands, of which marked packets take the first."""
    mark = path["ack_dscp"] << 2
    limit = topo["buffer_bytes"]
    return [f"qdisc add dev {dev} parent 1:1 handle 2: prio bands 2 "
            "priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
            f"filter add dev {dev} parent 2: protocol ip prio 1 u32 "
            f"match ip dsfield {mark:#x} 0xfc flowid 2:1",
            f"qdisc add dev {dev} parent 2:1 bfifo limit {limit}",
            f"qdisc add dev {dev} parent 2:2 bfifo limit {limit}"]


def changes(scenario):
    """What each end's line is like from when on: (ms, {netem's options by end})."""
    topo, path = scenario["topology"], settings(scenario)
    names = [name for name, _, _ in nicbed.ends(topo)]
    now = {"path": {}, "extra_delay_us": 0, "dark": False}
    steps = [(path["from_ms"], {"path": path})]
    for event in scenario.get("events", []):
        if "blackout_ms" in event:
            steps += [(event["at_ms"], {"dark": True}),
                      (event["at_ms"] + event["blackout_ms"], {"dark": False})]
        if "extra_delay_us" in event:
            steps.append((event["at_ms"], {"extra_delay_us": event["extra_delay_us"]}))
    before = {name: line_options(topo, {}, name) for name in names}
    for at, step in sorted(steps, key=lambda pair: pair[0]):
        now |= step
        state = {name: line_options(topo, now["path"], name,
                                    now["extra_delay_us"] if name[0] == "h" else 0, now["dark"])
                 for name in names}
        if changed := {name: text for name, text in state.items() if text != before[name]}:
            yield at, changed
        before = state


def script_lines(scenario):
    """The guest's: a script for each change, kept where the engine finds it."""
    lines = []
    for i, (_, state) in enumerate(changes(scenario)):
        lines += [f"cat >/run/change-{i} <<'CHANGE'", "tc -n sw -batch - <<END",
                  *(f"qdisc change dev in-{name} root handle 1: netem {text}"
                    for name, text in state.items()), "END", "CHANGE",
                  f"chmod +x /run/change-{i}"]
    return lines


def offset_lines(scenario):
    return [f"write path={path} value={event[key]} at={int(event['at_ms'] * MS)}"
            for event in scenario.get("events", []) for key, path in DRAINS.items()
            if key in event]


def plan_lines(scenario):
    """The engine's."""
    return offset_lines(scenario) + path_lines(scenario, settings(scenario))


def path_lines(scenario, path):
    if "nic" in scenario:
        every = int(path["pause_every_us"] * 1000)
        return [f"write path={nicbed.sysfs('sw', name)}/pause_ns "
                f"value={int(path['pause_us'] * 1000)} at={MS} every={every}"
                for name, _, _ in nicbed.ends(scenario["topology"])
                if name[0] == "s" and path["pause_us"]]
    return [f"run file=/run/change-{i} at={int(at * MS)}"
            for i, (at, _) in enumerate(changes(scenario))]


def recovery_ms(scenario, times, rates):
    """How long after the last blackout's end the goodput is first 90 % again of what it was before
    the first. rates[i] is that between times[i] and times[i + 1], in ns."""
    dark = [event for event in scenario.get("events", []) if "blackout_ms" in event]
    if not dark:
        return None
    begin = dark[0]["at_ms"] * MS
    end = (dark[-1]["at_ms"] + dark[-1]["blackout_ms"]) * MS
    usual = [rate for t, rate in zip(times[1:], rates) if begin / 2 <= t <= begin]
    for t, rate in zip(times[1:], rates):
        if t > end and rate >= .9 * sum(usual) / len(usual):
            return (t - end) / MS
    return (times[-1] - end) / MS
