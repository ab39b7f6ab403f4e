# SPDX-License-Identifier: GPL-2.0
"""A cell: one congestion control or variant of a scenario, with one seed.

A variant has a name. It changes parameters, the qdisc or sections of the scenario for its cells.
Its congestion control is tcp_timely unless it has the key "cc".
"""
from . import clockd, ndp, nicbed, onramp
from .common import Scenario, Table
from .scenario import OWN_SECTIONS
from .topology import ends

# Keys of a variant that are not parameters of tcp_timely.
NOT_PARAMS = ("cc", "host_qdisc", "nic", "relative_to", "onramp", "clocks", "clockd",
              *OWN_SECTIONS)


def variant(scenario: Scenario, cc: str) -> Table:
    """The table of a variant; empty for a congestion control that is not a variant."""
    table: Table = scenario.get("variants", {}).get(onramp.base_of(cc), {})
    return table


def kernel_cc(scenario: Scenario, cc: str) -> str:
    """The kernel's name of a cell's congestion control."""
    base = onramp.base_of(cc)
    if base not in scenario.get("variants", {}):
        return base
    return str(variant(scenario, cc).get("cc", "timely"))


def scenario_of(scenario: Scenario, cc: str) -> Scenario:
    """The scenario of a cell: the sections of the variant are laid over the scenario's."""
    out = dict(scenario)
    for key, value in variant(scenario, cc).items():
        if key in OWN_SECTIONS:
            out[key] = scenario.get(key, {}) | value if isinstance(value, dict) else value
    return out


def nic_of(scenario: Scenario, cc: str) -> Table | None:
    """The settings of the testbed of test NICs; None on the testbed of veth devices."""
    if "nic" not in scenario:
        return None
    settings: Table = nicbed.DEFAULTS | scenario["nic"] | variant(scenario, cc).get("nic", {})
    return settings


def clockd_of(scenario: Scenario, cc: str) -> Table | None:
    """The settings of timely-clockd; None if no daemons run."""
    own = variant(scenario, cc).get("clockd")
    if own is None and "clockd" not in scenario:
        return None
    settings: Table = clockd.DEFAULTS | scenario.get("clockd", {}) | (own or {})
    return settings


def host_qdisc(scenario: Scenario, cc: str, name: str = "h1") -> str:
    """The root qdisc of an end (a host or a server), with options."""
    text: str = variant(scenario, cc).get("host_qdisc", scenario["topology"]["host_qdisc"])
    settings = onramp.settings(scenario, cc)
    return onramp.qdisc(settings, text) if settings and onramp.pauses(settings, name) else text


def qdiscs_used(scenario: Scenario, cc: str) -> set[str]:
    """The kinds of the ends' root qdiscs."""
    return {host_qdisc(scenario, cc, end.name).split()[0] for end in ends(scenario["topology"])}


def ccs_used(scenario: Scenario, cc: str) -> set[str]:
    """The kernel's names of all congestion controls of a cell: flows may name others."""
    parts = scenario.get("flows", []) + scenario.get("trains", []) + \
        [scenario.get("incast", {})]
    return {kernel_cc(scenario, cc)} | {part["cc"] for part in parts if "cc" in part}


def has_ecn(scenario: Scenario, cc: str) -> bool:
    """Do switches mark packets, and do ends use ECN? With DCTCP in the cell they do."""
    return "dctcp" in ccs_used(scenario, cc)


def port_queue(scenario: Scenario, cc: str) -> str:
    """The kind of qdisc that the switches' ports have instead of their buffers, "" for none."""
    own = onramp.settings(scenario, cc)
    if ndp.CC in ccs_used(scenario, cc) or (own and own["trim"]):
        return "trim"
    return "red" if has_ecn(scenario, cc) else ""


def module_files(scenario: Scenario, cc: str) -> list[str]:
    """The modules to load, in order, with parameters; empty if a cell uses none of this project."""
    wanted = []
    if "timely" in ccs_used(scenario, cc):
        params = scenario.get("module_params", {}) | {
            key: value for key, value in variant(scenario, cc).items() if key not in NOT_PARAMS}
        wanted.append(" ".join(["tcp_timely.ko"] +
                               [f"{key}={value}" for key, value in params.items()]))
    if "timely" in qdiscs_used(scenario, cc):
        wanted.append("sch_timely.ko")
    if onramp.settings(scenario, cc):
        wanted.append("timely_acker.ko")
    if port_queue(scenario, cc) == "trim":
        wanted += ["sch_trim.ko", "ndp.ko"]
    if not wanted:
        return []
    nic = nic_of(scenario, cc)
    core = f"timely.ko cross_timestamps={nic['cross_timestamps']}" if nic else "timely.ko"
    return [core] + wanted
