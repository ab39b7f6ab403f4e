# SPDX-License-Identifier: GPL-2.0
"""Scenarios: reads TOML files, lays them over each other, and checks every key."""
import functools
import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from . import clockd, clos, faults, nicbed, onramp, workload
from .common import LAB, MS, LabError, Scenario, Table

SCENARIOS = os.path.join(LAB, "scenarios")
# Former names of scenarios, which are accepted until the next release.
OLD_NAMES = {"pauses": "pfc"} | {f"fig{n}": f"timely-fig{n}"
                                 for n in (1, 2, 9, 10, 11, 12, 13, 15, 16, 17, 18)}

# The sections of a scenario and their keys; True: the key is required. None: any key.
KEYS: dict[str, dict[str, bool] | None] = {
    "topology": {"hosts": True, "servers": True, "host_gbit": True, "server_gbit": True,
                 "buffer_bytes": True, "delay_ns": True, "mtu": True, "mark_bytes": False,
                 "host_qdisc": True, "fabric": False, "gso_bytes": False, "microseconds": False,
                 "leafs": False, "spines": False, "uplink_gbit": False, "trim": False},
    "run": {"warmup_ms": True, "measure_ms": True, "cc": True, "seeds": True,
            "peer_seeds": False, "start_ms": True, "connect_ms": False},
    "flows": {"from": True, "to": True, "count": True, "cc": False, "start_ms": False,
              "stop_ms": False, "max_gbit": False, "app_gbit": False, "group": False,
              "sndbuf": False, "rcvbuf": False, "dscp": False},
    "trains": {"from": True, "to": True, "count": True, "size": True, "every_us": True,
               "cc": False, "start_ms": False, "group": False, "sndbuf": False,
               "rcvbuf": False},
    "incast": {"from": False, "to": True, "count": True, "size": True, "every_us": True,
               "cc": False, "groups": False, "priority": False},
    "settle": {"at_ms": True, "below_us": True},
    "reach": {"at_ms": True, "mbit": True},
    "workload": {key: key in workload.NEEDED for key in workload.DEFAULTS},
    "pingpong": {"from": True, "to": True, "count": True, "size": True},
    "ping": {"from": True, "to": True, "every_us": True, "size": True, "dscp": False,
             "echo_dscp": False},
    "path": {key: False for key in faults.DEFAULTS},
    "sample": {"queue_us": True, "flows_ms": True},
    "nic": {key: False for key in nicbed.DEFAULTS},
    "onramp": {key: False for key in onramp.DEFAULTS},
    "clocks": {key: False for key in onramp.CLOCKS},
    "clockd": {key: False for key in clockd.DEFAULTS},
    "events": {"at_ms": True, "host": False, "step_ns": False, "set_ns": False,
               "real_step_ns": False, "drift_ppb": False, "wander_ppb_per_s": False,
               **{key: False for key in faults.EVENTS}},
    "sweep": {"key": True, "values": True},
    "report": {"columns": False, "plots": False, "shown": False, "sweep": False},
    "module_params": None,
    "variants": None,
    "sysctl": None,
    "expect": {"cc": True, "figure": True, "min": False, "max": False, "median": False},
}
REQUIRED = ("topology", "run", "sample")
# The sections that a variant may change for itself, and those of them that are whole tables.
OWN_SECTIONS = ("topology", "run", "events", "flows", "trains", "incast", "workload", "path",
                "ping", "sysctl")
WHOLE_TABLES = ("flows", "trains")


@functools.cache
def scenario_path(name: str) -> str:
    """The file of a scenario, given the file or a name from the directory of scenarios."""
    if os.path.isfile(name):
        return name
    if name in OLD_NAMES:
        print(f"lab: the scenario '{name}' is now called '{OLD_NAMES[name]}'", file=sys.stderr)
        name = OLD_NAMES[name]
    path = os.path.join(SCENARIOS, name + ".toml")
    if not os.path.exists(path):
        raise LabError(f"no scenario '{name}': 'lab list' shows all, or give the path of a file")
    return path


def scenario_names() -> list[str]:
    """The names of all scenarios."""
    return [name[:-5] for name in sorted(os.listdir(SCENARIOS)) if name.endswith(".toml")]


def override(scenario: Scenario, setting: str) -> None:
    """Change a key of a scenario by "section.key=value".

    The value is TOML, or else text. In a section with several tables every table is changed.
    """
    key, eq, text = setting.partition("=")
    if not eq or "." not in key:
        raise LabError(f"--set needs section.key=value, not '{setting}'")
    value: Any
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    section, _, key = key.partition(".")
    for table in tables_of(scenario.setdefault(section, {})):
        table[key] = value


def tables_of(section: Any) -> list[Table]:
    """The tables of a section: several with [[name]], one with [name]."""
    return section if isinstance(section, list) else [section]


def section_tables(scenario: Scenario) -> Iterator[tuple[str, Table, bool]]:
    """All tables with the names of their sections; True: required keys have to be there.

    Last come the tables of variants, which are laid over sections and so may have few keys.
    """
    for section, tables in scenario.items():
        if section != "title":
            yield from ((section, table, True) for table in tables_of(tables))
    for own in scenario.get("variants", {}).values():
        for section, tables in own.items():
            if section in (*OWN_SECTIONS, "onramp", "clocks", "clockd", "nic"):
                yield from ((section, table, section in WHOLE_TABLES)
                            for table in tables_of(tables))


def check_table(section: str, table: Table, whole: bool) -> None:
    """Refuse a table with an unknown key, or without a required key if the table is whole."""
    if section not in KEYS:
        raise LabError(f"the scenario has an unknown section [{section}]: "
                       f"{', '.join(KEYS)} are known")
    known = KEYS[section]
    if known is None:
        return
    for key in table:
        if key not in known:
            raise LabError(f"[{section}] has no key {key}: its keys are {', '.join(known)}")
    for key, needed in known.items():
        if needed and whole and key not in table:
            raise LabError(f"[{section}] lacks the key {key}")


def check(scenario: Scenario) -> None:
    """Refuse a scenario that is not complete or has unknown keys."""
    for section in REQUIRED:
        if section not in scenario:
            raise LabError(f"the scenario has no [{section}]")
    for section, table, whole in section_tables(scenario):
        check_table(section, table, whole)
    if "workload" in scenario:
        workload.settings(scenario)
    if "nic" in scenario and clos.is_clos(scenario["topology"]):
        raise LabError('a scenario with [nic] has one switch: fabric = "clos" is not possible')
    if "clockd" in scenario and "nic" not in scenario:
        raise LabError("a scenario with [clockd] needs [nic]")
    sample, run = scenario["sample"], scenario["run"]
    for key in ("warmup_ms", "measure_ms"):
        if run[key] % sample["flows_ms"]:
            raise LabError(f"run.{key} must be a multiple of sample.flows_ms")


def read_scenario(name: str) -> Scenario:
    """A scenario's file, laid over the file of the scenario that the key base names."""
    with open(scenario_path(name), "rb") as file:
        try:
            scenario = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise LabError(f"{file.name}: {error}") from None
    if "base" not in scenario:
        return scenario
    merged = read_scenario(scenario.pop("base"))
    for section, tables in scenario.items():
        if isinstance(tables, dict):
            tables = merged.get(section, {}) | tables
        merged[section] = tables
    return merged


def expand_sweep(scenario: Scenario) -> None:
    """Take [sweep] out of a scenario: replace each cell NAME by variants NAME-VALUE.

    A variant is like NAME, with the value as the key that is swept.
    """
    sweep = scenario.pop("sweep", None)
    if not sweep:
        return
    section, _, key = sweep["key"].partition(".")
    if section not in OWN_SECTIONS or section in WHOLE_TABLES or not key:
        raise LabError(f"sweep.key must be a key of a section that variants can change, "
                       f"as in workload.load, not '{sweep['key']}'")
    run, report, old = scenario["run"], scenario.get("report", {}), scenario.get("variants", {})
    new: dict[str, Table] = {}
    for value in sweep["values"]:
        for base in dict.fromkeys(onramp.base_of(cc) for cc in run["cc"]):
            own = dict(old.get(base, {} if base == "timely" else {"cc": base}))
            own[section] = own.get(section, {}) | {key: value}
            if "relative_to" in own:
                own["relative_to"] += f"-{value}"
            new[f"{base}-{value}"] = own
    for table, where in ((run, "cc"), (report, "shown")):
        if where in table:
            table[where] = [swept_name(cc, value) for value in sweep["values"]
                            for cc in table[where]]
    scenario["variants"] = old | new


def swept_name(cc: str, value: Any) -> str:
    """The name of a cell with a value of [sweep]; words after + stay at the end."""
    base = onramp.base_of(cc)
    return f"{base}-{value}{cc[len(base):]}"


def load_scenario(name: str, settings: Sequence[str] = (),
                  params: Sequence[str] = ()) -> Scenario:
    """A checked scenario, changed by settings (--set) and by tcp_timely's parameters."""
    scenario = read_scenario(name)
    for setting in settings:
        override(scenario, setting)
    for param in params:
        if "=" not in param:
            raise LabError(f"--module-param needs name=value, not '{param}'")
        key, _, value = param.partition("=")
        scenario.setdefault("module_params", {})[key] = value
    check(scenario)
    expand_sweep(scenario)
    return scenario


def window_ns(scenario: Scenario) -> tuple[int, int]:
    """Start and end of the measured window, in ns from the start of the experiment."""
    run = scenario["run"]
    return run["warmup_ms"] * MS, (run["warmup_ms"] + run["measure_ms"]) * MS


def host_range(value: int | list[int]) -> range:
    """The numbers of hosts that "from" gives: one host, or the first and the last."""
    first, last = value if isinstance(value, list) else (value, value)
    return range(first, last + 1)


def connections(scenario: Scenario, section: str) -> list[tuple[Table, int]]:
    """The table and the host of each connection of [[flows]] or [[trains]], in the plan's order."""
    return [(table, host) for table in scenario.get(section, [])
            for host in host_range(table["from"]) for _ in range(table["count"])]
