# SPDX-License-Identifier: GPL-2.0
"""The bed of NICs: hosts, servers and switch joined by hwnic pairs.

    h1 eth0 ===== sw:h1 -> routing -> sw:s1 ===== eth0 s1

Each line is a pair of test NICs (selftests/hwnic), each with a clock of its own. A
frame is serialised by whoever sends it. The other bed delays it by delay_ns on its way
to the switch; here half of that is spent in each line, so that RTTs compare. The ring
of the port to a server is the switch's buffer. The switch itself coalesces nothing and
merges nothing.
"""
import os
import random
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
HWNIC = os.path.realpath(os.path.join(HERE, "../../selftests/hwnic"))
# What [nic] may say, and what it is otherwise.
DEFAULTS = {
    "stamps": True,             # hosts' NICs stamp what they receive
    "noise_ns": 0,              # the most that a host sees a frame late
    "noise_from_ms": 0,         # from when on
    "server_noise_ns": 0,
    "rx_usecs": 0,              # interrupt moderation
    "server_rx_usecs": 0,
    "drift_ppb": [-50_000, 50_000],     # of the hosts' clocks, to draw from
    "wander_ppb_per_s": 0,
    "cross_timestamps": 0,      # of module timely: may it read the NICs' clocks?
    "watch": [],                # hosts whose ACKs are looked at
    "truth_records": 2_000_000,
    "queue_truth": False,       # the port's queue at each change
    "trace_filter": "",         # which events are kept, as the kernel's trace filters say
    "quiet": [],                # hosts without noise and moderation
}
# Ring of frames at ports that nothing waits at.
RING = 4096


def ends(topo):
    return [(f"h{i}", f"10.0.{i}", topo["host_gbit"]) for i in range(1, topo["hosts"] + 1)] + \
           [(f"s{i}", f"10.1.{i}", topo["server_gbit"]) for i in range(1, topo["servers"] + 1)]


def sysfs(ns, dev):
    return f"/run/sys/{ns}/class/net/{dev}/hwnic"


def buffer_frames(topo):
    return topo["buffer_bytes"] // (topo["mtu"] + 14)


def build(kernel):
    """The directory of hwnic.ko."""
    done = subprocess.run([os.path.join(HWNIC, "build.sh"), kernel], stdout=subprocess.PIPE,
                          text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def end_lines(topo, nic, rng, name, net, gbit, qdisc):
    """Commands for one pair: the end in its own namespace, and the switch's."""
    server = name[0] == "s"
    who = "server_" if server else ""
    noise_ns, rx_usecs = (0 if name in nic["quiet"] else nic[who + key]
                          for key in ("noise_ns", "rx_usecs"))
    ring = buffer_frames(topo) if server else RING
    inside, outside = f"nsenter --net=/run/netns/{name}", "nsenter --net=/run/netns/sw"
    lines = [f"ip netns add {name}", f"ip link add x-{name} type hwnic",
             f"ip link set x-{name} netns {name} name eth0",
             f"ip link set x-{name}p netns sw name {name}",
             f"mkdir -p /run/sys/{name}",
             f"{inside} mount -t sysfs sys /run/sys/{name}",
             f"{inside} ethtool -s eth0 speed {int(gbit * 1000)} duplex full autoneg off",
             f"{outside} ethtool -s {name} speed {int(gbit * 1000)} duplex full autoneg off",
             f"{outside} ethtool -G {name} tx {ring}",
             f"{outside} ethtool --set-priv-flags {name} bql off",
             f"{outside} ethtool -K {name} gro off tso off gso off",
             f"{inside} ethtool -C eth0 rx-usecs {rx_usecs} rx-frames {0 if rx_usecs else 1}"]
    values = {"delay_ns": topo["delay_ns"] // 2,
              "noise_ns": 0 if nic["noise_from_ms"] else noise_ns,
              "phc_set_ns": rng.randrange(1, 1 << 60),
              "phc_drift_ppb": rng.randint(*nic["drift_ppb"]),
              "phc_wander_ppb_per_s": nic["wander_ppb_per_s"], "noise_seed": rng.randrange(1 << 60)}
    lines += [f"echo {value} >{sysfs(name, 'eth0')}/{key}" for key, value in values.items()]
    lines += [f"echo {topo['delay_ns'] // 2} >{sysfs('sw', name)}/delay_ns",
              f"ip -n {name} addr add {net}.1/24 dev eth0",
              f"ip -n {name} link set eth0 mtu {topo['mtu']} up",
              f"ip -n sw addr add {net}.254/24 dev {name}",
              f"ip -n sw link set {name} mtu {topo['mtu']} up",
              f"ip -n {name} route add default via {net}.254",
              # What finds the ring full is dropped.
              f"tc -n sw qdisc replace dev {name} root handle 1: pfifo limit 1"]
    if not server or qdisc != "fq":
        lines.append(f"tc -n {name} qdisc replace dev eth0 root {qdisc}")
    return lines


def watch_lines(nic):
    """Truth and trace from before the first packet."""
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


def truth_lines(ns, dev, types, records):
    return [truth_dir(ns, dev), f"echo {types} >$t/truth_types",
            f"echo {records} >$t/truth_enable"]


def truth_dir(ns, dev):
    """Sets t to where the NIC's log is."""
    return f"t=$(cat {sysfs(ns, dev)}/truth_dir)"


def trace_filter(nic):
    # An event that has no filter takes 0 for "none".
    return f"'{nic['trace_filter'] or 0}'"


def keep_lines(nic):
    """After the run: what was seen goes beside the engine's result, $3."""
    lines = []
    if nic["watch"]:
        lines += ["echo 0 >/sys/kernel/tracing/tracing_on",
                  'cat /sys/kernel/tracing/trace >"$3.trace"']
    seen = [(host, "eth0") for host in nic["watch"]]
    if nic["queue_truth"]:
        seen.append(("sw", "s1"))
    for ns, dev in seen:
        lines += [truth_dir(ns, dev), f'cat $t/truth >"$3.truth-{ns}"',
                  f'[ "$(cat $t/truth_lost)" = 0 ] || echo "traffic: {ns} kept too few records"']
    return lines


def setup_script(topo, nic, seed, qdisc, loads, hwnic):
    """@loads: lines that load our modules."""
    rng = random.Random(seed * 1000)
    lines = ["set -e", f"insmod {hwnic}/hwnic.ko", *loads, "ip netns add sw",
             "mkdir -p /run/sys/sw",
             "nsenter --net=/run/netns/sw mount -t sysfs sys /run/sys/sw"]
    for name, net, gbit in ends(topo):
        lines += end_lines(topo, nic, rng, name, net, gbit, qdisc)
    lines += watch_lines(nic) + ['"$1" "$2" "$3"'] + keep_lines(nic)
    return "\n".join(lines + [""])


def plan_lines(scenario, nic):
    """What the engine does: stamping on, and the events."""
    topo = scenario["topology"]
    lines = [f"stamp ns=h{i + 1} dev=eth0" for i in range(topo["hosts"]) if nic["stamps"]]
    if nic["noise_from_ms"]:
        lines += [f"write path={sysfs(name, 'eth0')}/noise_ns value={nic['noise_ns']} "
                  f"at={nic['noise_from_ms'] * 1_000_000}"
                  for name, _, _ in ends(topo) if name[0] == "h" and name not in nic["quiet"]]
    for event in scenario.get("events", []):
        at = int(event["at_ms"] * 1_000_000)
        if "real_step_ns" in event:
            lines.append(f"set_clock at={at} by={event['real_step_ns']}")
        for key in ("step_ns", "set_ns", "drift_ppb", "wander_ppb_per_s"):
            if key in event:
                lines.append(f"write path={sysfs(event['host'], 'eth0')}/phc_{key} "
                             f"value={event[key]} at={at}")
    return lines
