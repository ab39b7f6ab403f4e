# SPDX-License-Identifier: GPL-2.0
"""On-Ramp in a scenario: who holds, who acknowledges, by which clocks; what they counted.

A cell whose name ends in +onramp, or whose variant has a table "onramp", runs the qdisc
timely with On-Ramp on the hosts that send, and the module timely_acker where data
arrives. Every end has the same key. A receiver's clock may be wrong on purpose.
"""
import glob
import json
import os
import random
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "../.."))
TIMELYCTL = os.path.join(TOP, "build/timelyctl/timelyctl")
# What [onramp] may say, and what it is otherwise; None: as the qdisc has it.
DEFAULTS = {
    "threshold_us": 50,
    "segment": 3000,            # bytes of a piece; 0: GSO's segments are held whole
    "gain": None,               # "1/16"
    "owd": None,                # absolute, relative, rtt
    "pause_max_us": None,
    "strawman": False,
    "clock_error_us": None,
    "hosts": None,              # [first, last] of those that hold; otherwise all
    "flows": False,             # keep what each flow did, too
}
# What [clocks] may say: of each receiver, drawn with the seed.
CLOCKS = {
    "sigma_us": 0,              # standard deviation of a constant error
    "drift_ppm": 0,             # its clock goes faster by that, or slower
}
# +NAME after a congestion control.
SUFFIXES = {
    "onramp": {},
    "strawman": {"strawman": True},
    "absolute": {"owd": "absolute"},
    "relative": {"owd": "relative"},
    "rtt": {"owd": "rtt"},
}
KEY_NUMBER = 1
KEY = "000102030405060708090a0b0c0d0e0f"


class OnrampError(Exception):
    pass


def base_of(cc):
    """A cell's congestion control, or variant, without what stands after +."""
    return cc.partition("+")[0]


def settings(scenario, cc):
    """How a cell's hosts hold; None if they do not."""
    base, *suffixes = cc.split("+")
    own = scenario.get("variants", {}).get(base, {}).get("onramp")
    if own is None and not suffixes:
        return None
    out = DEFAULTS | scenario.get("onramp", {}) | (own or {})
    for suffix in suffixes:
        if suffix not in SUFFIXES:
            raise OnrampError(f"'{cc}': after + comes one of {', '.join(SUFFIXES)}")
        out |= SUFFIXES[suffix]
    return out


def clocks(scenario, cc):
    own = scenario.get("variants", {}).get(base_of(cc), {}).get("clocks", {})
    return CLOCKS | scenario.get("clocks", {}) | own


def is_receiver(topo, name):
    """Data arrives at servers; at all where any host sends to any."""
    return name[0] == "s" or "fabric" in topo


def holds(settings_, name):
    hosts = settings_["hosts"]
    return name[0] == "h" and (not hosts or hosts[0] <= int(name[1:]) <= hosts[1])


def qdisc(settings_, text):
    """The host's qdisc @text, with On-Ramp: fq's place is taken, timely keeps its options."""
    words = [text if text.split()[0] == "timely" else "timely"]
    if settings_["segment"] and "segment" not in text.split():
        words.append(f"segment {settings_['segment']}")
    words.append(f"onramp {settings_['threshold_us']}us")
    for key, name, unit in (("gain", "gain", ""), ("owd", "owd", ""),
                            ("pause_max_us", "pause_max", "us"),
                            ("clock_error_us", "clock_error", "us")):
        if settings_[key] is not None:
            words.append(f"{name} {settings_[key]}{unit}")
    if settings_["strawman"]:
        words.append("strawman")
    return " ".join(words)


def build():
    subprocess.run(["make", "-s", "-C", os.path.join(TOP, "tools/timelyctl")], check=True,
                   stdout=subprocess.DEVNULL)


def inside(name):
    return f"nsenter --net=/run/netns/{name} {TIMELYCTL}"


def setup_lines(scenario, cc, seed, names):
    """Keys everywhere; rules and clocks where data arrives."""
    topo, wrong, rng = scenario["topology"], clocks(scenario, cc), random.Random(seed * 1001)
    lines = []
    for name in names:
        ctl = inside(name)
        lines += [f"echo {KEY} | {ctl} key add {KEY_NUMBER} -", f"{ctl} key use {KEY_NUMBER}"]
        if not is_receiver(topo, name):
            continue
        lines.append(f"{ctl} acker add any")
        offset = round(rng.gauss(0, wrong["sigma_us"] * 1000))
        drift = rng.choice((-1, 1)) * round(wrong["drift_ppm"] * 1000)
        if offset or drift:
            lines.append(f"{ctl} acker set test-clock-offset {offset} test-clock-drift {drift}")
    return lines


def keep_lines(settings_, names):
    """After the run: what the qdiscs and On-Ramp counted goes beside the engine's result, $3."""
    lines = []
    for name in names:
        lines.append(f'tc -n {name} -s -j qdisc show dev eth0 >"$3.qdisc-{name}"')
        if settings_:
            lines.append(f'{inside(name)} -j onramp >"$3.onramp-{name}"')
        if settings_ and settings_["flows"]:
            lines.append(f'{inside(name)} -j onramp flows >"$3.flows-{name}"')
    return lines


def collect(result, raw):
    """Puts what keep_lines() kept into the raw result: "ends", by kind and namespace."""
    ends = raw["ends"] = {}
    for kind in ("qdisc", "onramp", "flows"):
        for path in sorted(glob.glob(f"{result}.{kind}-*")):
            with open(path, encoding="utf-8") as file:
                ends.setdefault(kind, {})[path.rpartition("-")[2]] = json.load(file)


def numbers(tree):
    """All numbers in a tree of JSON, by name."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                yield key, value
            else:
                yield from numbers(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from numbers(value)


def figures(raw):
    """The hosts' statistics of On-Ramp, over the whole run: sums, and b by signals."""
    out, weighed = {}, 0
    for name, found in raw.get("ends", {}).get("qdisc", {}).items():
        mine = dict(numbers(found))
        if name[0] != "h":
            continue
        weighed += mine.pop("onramp_b", 0) * mine.get("onramp_signals", 0)
        for key, value in mine.items():
            if key.startswith("onramp_"):
                out[key[7:]] = out.get(key[7:], 0) + value
    if out.get("signals"):
        out["b"] = weighed / out["signals"]
    return out
