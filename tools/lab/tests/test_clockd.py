# SPDX-License-Identifier: GPL-2.0
"""Tests of timely-clockd on the testbed of NICs: the guest's script, and the errors."""
import json
import os
import tempfile
import unittest

from support import scenario
from timelylab import clockd, network
from timelylab.common import MS, Raw, Scenario

TOPO = {"hosts": 2, "servers": 0, "host_gbit": 1, "server_gbit": 1}


def line(mono: int, host: int, phc: int, offset: int, state: int = 2) -> list[object]:
    """A line of the record: a host with one peer, whose page is 1 ms old and has a drift of 1 ppm."""
    own, peer = (f"{0:020x}ffff0a00{number:02x}01" for number in (host, 3 - host))
    head = [0, 1, 0, 0, 1, mono - MS, mono - MS + 5_000, 0, 20, 1_000, 0, 0]
    return [mono, phc, mono, head, own, "eth0", phc - MS, [100],
            [[peer, state, 1, offset, 1_000, 30, 7, 0, 900] + [0] * 8]]


def collected(lines: list[list[object]]) -> Raw:
    """The raw result of a record."""
    raw: Raw = {"zero_ns": 0}
    with tempfile.TemporaryDirectory() as work:
        base = os.path.join(work, "raw")
        with open(base + ".clocks", "w", encoding="ascii") as file:
            for row in lines:
                file.write(json.dumps(row) + "\n")
            file.write("[1, 2")         # the process was killed here
        for host in clockd.hosts_of(TOPO):
            with open(f"{base}.clockd-{host}", "w", encoding="ascii") as file:
                file.write("a message\n")
        clockd.collect(base, TOPO, raw)
    return raw


class Errors(unittest.TestCase):
    """Errors of what daemons say"""

    def test_error(self) -> None:
        """The offset is extrapolated to the reading, and compared with the clocks at that time."""
        # The clock of h2 is 1000 ns ahead. It is read 600 ns later. h1 says 1003 ns, and 1 ns by its drift.
        raw = collected([line(10 * MS, 1, 10 * MS, 1_003),
                         line(10 * MS + 600, 2, 10 * MS + 1_600, -1_050)])
        self.assertEqual([row[1:6] for row in raw["clock_readings"]],
                         [[0, 1, 2, 4, 30], [1, 0, 2, -49, 30]])
        found = clockd.figures(raw, clockd.DEFAULTS, 0, 20 * MS)
        self.assertEqual(found["error_ns"]["p99"], 49)
        self.assertEqual((found["within"], found["good"], found["known"]), (.5, 1, 1))
        self.assertEqual(found["system"]["error_ns"]["p99"], 7)
        self.assertEqual(found["common"]["within"], 1)
        self.assertEqual(raw["clock_messages"]["h2"], ["a message"])

    def test_ignored(self) -> None:
        """Hosts to ignore count as excluded directions only."""
        raw = collected([line(10 * MS, 1, 10 * MS, 0, clockd.EXCLUDED),
                         line(10 * MS + 600, 2, 10 * MS + 600, 0)])
        found = clockd.figures(raw, clockd.DEFAULTS | {"ignore": ["h1"]}, 0, 20 * MS)
        self.assertEqual((found["error_ns"]["count"], found["excluded"]), (0, 1))


class Script(unittest.TestCase):
    """The guest's script"""

    def test_daemons(self) -> None:
        """Each host has a daemon with all hosts as members, and On-Ramp gets the daemon's offsets."""
        own: Scenario = scenario() | {"nic": {}, "clockd": {"lines": {"h1": ["test-lie 5"]}},
                                      "clocks": {"sigma_us": 5}}
        own["topology"] = own["topology"] | {"fabric": "all-to-all", "servers": 0}
        text = network.cell_script(own, "timely+onramp", 1, "/modules", "/hwnic")
        self.assertEqual(text.count("member 10.0.2.1\n"), 2)
        self.assertEqual(text.count("test-lie 5\n"), 1)
        self.assertEqual(text.count("onramp yes\ntest-clock "), 2)
        self.assertLess(text.index("clockrecord.py"), text.index(network.RUN_ENGINE))
        self.assertLess(text.index(network.RUN_ENGINE), text.index("kill $record"))


if __name__ == "__main__":
    unittest.main()
