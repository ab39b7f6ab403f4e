#!/usr/bin/python3 -I
# SPDX-License-Identifier: GPL-2.0
"""Compare what timely-clockd says with the true clocks of the test NICs.

	clockd.py TIMELYCTL HOST:DRIFT_PPB...

HOST is a network namespace whose eth0 is a test NIC, and whose daemon's clock page is HOST.page in
the current directory. Prints KEY=NUMBER:

estimates	number of offsets that are known
good		number of peers in the state good
excluded	number of peers in the state excluded
error_max	largest error of an offset between two NICs' clocks, ns
bound_max	largest bound of these offsets, ns
beyond		number of offsets whose error is larger than their bound
system_max	largest difference of two hosts' system clocks, ns, which is 0 in truth
system_bound_max	largest bound of these differences, ns
system_beyond	number of these that are larger than their bound
common_spread	largest difference between two hosts' common times, ns
times		number of hosts that know the common time
"""

import json
import subprocess
import sys


class Host:
    """A host: its clock page, and its NIC's clock as a line over CLOCK_MONOTONIC."""

    def __init__(self, timelyctl, word):
        self.name, _, drift = word.partition(":")
        self.drift = int(drift) * 1e-9
        shown = subprocess.run(
            ["ip", "netns", "exec", self.name, "sh", "-c",
             f"{timelyctl} -j clock page {self.name}.page; cat /sys/class/net/eth0/hwnic/phc_now"],
            check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.page = json.loads(shown[0])
        self.nic_ns, self.mono_ns = map(int, shown[1].split())

    def mono(self, nic_ns):
        """CLOCK_MONOTONIC when the NIC's clock shows a time, relative to self.mono_ns."""
        return (nic_ns - self.nic_ns) / (1 + self.drift)

    def nic_after(self, ns):
        """The NIC's clock at this time after self.mono_ns, relative to self.nic_ns."""
        return ns * (1 + self.drift)


def error(host, peer, offset_ns):
    """Error of host's estimate of peer's clock."""
    since = host.mono(host.page["probe_ns"]) + host.mono_ns - peer.mono_ns
    return offset_ns - (peer.nic_ns - host.page["probe_ns"]) - peer.nic_after(since)


def main():
    """Print the comparison."""
    hosts = {}
    for word in sys.argv[2:]:
        host = Host(sys.argv[1], word)
        hosts[host.page["address"]] = host
    seen = [(host, peer) for host in hosts.values() for peer in host.page["peers"]]
    known = [(abs(error(host, hosts[peer["address"]], peer["offset_ns"])), peer["bound_ns"])
             for host, peer in seen if peer["bound_ns"] is not None and peer["address"] in hosts]
    system = [(abs(peer["system_offset_ns"]), peer["system_bound_ns"])
              for _, peer in seen if peer["system_bound_ns"] is not None]
    # All hosts of the guest have the same CLOCK_MONOTONIC_RAW.
    raw_ns = max(host.page["raw_ns"] for host in hosts.values())
    times = [host.page["common_ns"] + (raw_ns - host.page["raw_ns"]) * (10**9 + host.page["rate_ppb"])
             // 10**9 for host in hosts.values() if host.page["time_ns"]]
    for key, value in {
            "estimates": len(known),
            "good": sum(peer["state"] == "good" for _, peer in seen),
            "excluded": sum(peer["state"] == "excluded" for _, peer in seen),
            "error_max": max((off for off, _ in known), default=-1),
            "bound_max": max((bound for _, bound in known), default=-1),
            "beyond": sum(off > bound for off, bound in known),
            "system_max": max((off for off, _ in system), default=-1),
            "system_bound_max": max((bound for _, bound in system), default=-1),
            "system_beyond": sum(off > bound for off, bound in system),
            "common_spread": max(times) - min(times) if times else 0,
            "times": len(times)}.items():
        print(f"{key}={round(value)}")


main()
