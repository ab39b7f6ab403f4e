# SPDX-License-Identifier: GPL-2.0
"""On-Ramp in a scenario: the hosts that pause flows, the receivers, the clocks, the statistics.

A cell runs On-Ramp if its name ends in +onramp, or if its variant has a table "onramp". Hosts
that send then have the qdisc timely with On-Ramp, and ends at which data arrives load the module
timely_acker. All ends have the same key. A receiver's clock may be wrong on purpose.
"""
import glob
import json
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

from .common import TOP, Figures, Raw, Scenario, ScenarioError, Table
from .topology import is_host, is_receiver

TIMELYCTL = os.path.join(TOP, "build/timelyctl/timelyctl")
# The keys of [onramp], and their defaults; with None the qdisc's own default holds.
DEFAULTS: Table = {
    "threshold_us": 50,
    "split": 3000,              # bytes of a sub-segment; with 0 packets are not split
    "gain": None,               # "1/16"
    "owd": "absolute",          # absolute, relative, rtt; as in the On-Ramp paper
    "pause_max_us": None,
    "strawman": False,
    "clock_error_us": None,
    "hosts": None,              # [first, last] of the hosts with On-Ramp; None: all hosts
    "trim": False,              # the ports have the qdisc trim instead of their buffers
    "trimmed": 0,               # DSCP of the trimmed packets that receivers answer; 0: none
    "flows": False,             # keep the statistics of each flow, too
}
# The keys of [clocks], about each receiver's clock, and their defaults.
CLOCKS: Table = {
    "sigma_us": 0,              # standard deviation of a constant error, drawn with the seed
    "drift_ppm": 0,             # size of the drift; the direction is drawn with the seed
}
# Words that may follow + after a congestion control, and the settings that they change.
SUFFIXES: dict[str, Table] = {
    "onramp": {},
    "strawman": {"strawman": True},
    "absolute": {"owd": "absolute"},
    "relative": {"owd": "relative"},
    "rtt": {"owd": "rtt"},
    "trim": {"trim": True},
    "trimmed": {"trim": True, "trimmed": 48},
}
KEY_NUMBER = 1
KEY = "000102030405060708090a0b0c0d0e0f"


def base_of(cc: str) -> str:
    """A cell's congestion control or variant, without the words after +."""
    return cc.partition("+")[0]


def settings(scenario: Scenario, cc: str) -> Table | None:
    """On-Ramp's settings in a cell; None in a cell without On-Ramp."""
    base, *suffixes = cc.split("+")
    own = scenario.get("variants", {}).get(base, {}).get("onramp")
    if own is None and not suffixes:
        return None
    out: Table = DEFAULTS | scenario.get("onramp", {}) | (own or {})
    for suffix in suffixes:
        if suffix not in SUFFIXES:
            raise ScenarioError(f"'{cc}': +{suffix} is unknown; known are +{', +'.join(SUFFIXES)}")
        out |= SUFFIXES[suffix]
    return out


def clocks(scenario: Scenario, cc: str) -> Table:
    """The errors of the receivers' clocks in a cell."""
    own: Table = scenario.get("variants", {}).get(base_of(cc), {}).get("clocks", {})
    out: Table = CLOCKS | scenario.get("clocks", {}) | own
    return out


def pauses(onramp: Table, name: str) -> bool:
    """Does the end of this name pause flows?"""
    hosts = onramp["hosts"]
    return is_host(name) and (not hosts or int(name[1:]) in range(hosts[0], hosts[1] + 1))


def qdisc(onramp: Table, text: str) -> str:
    """A host's qdisc with On-Ramp added. The qdisc timely keeps its options; fq is replaced."""
    words = [text if text.split()[0] == "timely" else "timely"]
    if onramp["split"] and "split" not in text.split():
        words.append(f"split {onramp['split']}")
    words.append(f"onramp {onramp['threshold_us']}us")
    for key, name, unit in (("gain", "gain", ""), ("owd", "owd", ""),
                            ("pause_max_us", "pause_max", "us"),
                            ("clock_error_us", "clock_error", "us")):
        if onramp[key] is not None:
            words.append(f"{name} {onramp[key]}{unit}")
    if onramp["strawman"]:
        words.append("strawman")
    return " ".join(words)


def timelyctl_in(name: str) -> str:
    """The command timelyctl in the namespace of an end."""
    return f"nsenter --net=/run/netns/{name} {TIMELYCTL}"


def clock_errors(scenario: Scenario, cc: str, seed: int,
                 names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The error of each receiver's clock in ns, and its drift in ppb, drawn with the seed."""
    wrong, rng = clocks(scenario, cc), random.Random(seed * 1001)
    return {name: (round(rng.gauss(0, wrong["sigma_us"] * 1000)),
                   rng.choice((-1, 1)) * round(wrong["drift_ppm"] * 1000))
            for name in names if is_receiver(scenario["topology"], name)}


def setup_lines(scenario: Scenario, cc: str, seed: int, names: Sequence[str]) -> list[str]:
    """Commands that set keys at all ends, and rules and clocks at receivers."""
    errors = clock_errors(scenario, cc, seed, names)
    own = settings(scenario, cc) or DEFAULTS
    lines = []
    for name in names:
        ctl = timelyctl_in(name)
        lines += [f"echo {KEY} | {ctl} key add {KEY_NUMBER} -", f"{ctl} key use {KEY_NUMBER}"]
        if name not in errors:
            continue
        lines.append(f"{ctl} acker add any")
        if own["trimmed"]:
            lines.append(f"{ctl} acker set trimmed {own['trimmed']}")
        offset, drift = errors[name]
        if offset or drift:
            lines.append(f"{ctl} acker set test-clock-offset {offset} test-clock-drift {drift}")
    return lines


def keep_lines(onramp: Table | None, names: Sequence[str]) -> list[str]:
    """Commands after the run that keep statistics of qdiscs and On-Ramp beside the result, $3."""
    lines = []
    for name in names:
        lines.append(f'tc -n {name} -s -j qdisc show dev eth0 >"$3.qdisc-{name}"')
        if onramp:
            lines.append(f'{timelyctl_in(name)} -j onramp >"$3.onramp-{name}"')
        if onramp and onramp["flows"]:
            lines.append(f'{timelyctl_in(name)} -j onramp flows >"$3.flows-{name}"')
    return lines


def collect(result: str, raw: Raw) -> None:
    """Add the files of keep_lines() to the raw result as "ends", by kind and namespace."""
    ends = raw.setdefault("ends", {})
    for kind in ("qdisc", "onramp", "flows"):
        for path in sorted(glob.glob(f"{result}.{kind}-*")):
            with open(path, encoding="utf-8") as file:
                ends.setdefault(kind, {})[path.rpartition("-")[2]] = json.load(file)


def numbers(tree: Any) -> Iterator[tuple[str, float]]:
    """All numbers in a tree of JSON, with their names."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                yield key, value
            else:
                yield from numbers(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from numbers(value)


def figures(raw: Raw) -> Figures:
    """Sums of the hosts' On-Ramp statistics over the run; b is the mean, weighed by signals."""
    out: Figures = {}
    weighed: float = 0
    for name, found in raw.get("ends", {}).get("qdisc", {}).items():
        mine = dict(numbers(found))
        if not is_host(name):
            continue
        weighed += mine.pop("onramp_b", 0) * mine.get("onramp_signals", 0)
        for key, value in mine.items():
            if key.startswith("onramp_"):
                out[key[7:]] = out.get(key[7:], 0) + value
    if out.get("signals"):
        out["b"] = weighed / out["signals"]
    return out
