# SPDX-License-Identifier: GPL-2.0
"""Tests of the network: ends, switches, Clos networks, ports, faults, and the guest's script."""
import re
import unittest

from support import scenario
from timelylab import clos, faults, network, topology
from timelylab.common import MS, Scenario, ScenarioError, Table

CLOS: Table = {"hosts": 6, "servers": 0, "host_gbit": 10, "server_gbit": 10, "mtu": 1500,
               "buffer_bytes": 100_000, "delay_ns": 1000, "host_qdisc": "fq", "fabric": "clos",
               "leafs": 3, "spines": 2, "uplink_gbit": 20}


def script(own: Scenario, cc: str = "cubic", seed: int = 1) -> str:
    """The guest's script of a scenario."""
    return network.cell_script(own, cc, seed, "/modules", "/hwnic")


class Ends(unittest.TestCase):
    """Hosts and servers"""

    def test_ends(self) -> None:
        """Hosts come first; each end has a network of its own."""
        found = topology.ends(scenario()["topology"])
        self.assertEqual([(end.name, end.network) for end in found],
                         [("h1", "10.0.1"), ("h2", "10.0.2"), ("s1", "10.1.1")])

    def test_address(self) -> None:
        """A number is a server."""
        self.assertEqual(topology.address_of(2), ("s2", "10.1.2.1"))
        self.assertEqual(topology.address_of("h13"), ("h13", "10.0.13.1"))

    def test_receivers(self) -> None:
        """Hosts receive data only with a fabric."""
        self.assertFalse(topology.is_receiver(scenario()["topology"], "h1"))
        self.assertTrue(topology.is_receiver(scenario()["topology"], "s1"))
        self.assertTrue(topology.is_receiver(CLOS, "h1"))


class Clos(unittest.TestCase):
    """A two-tier Clos network"""

    def test_switches(self) -> None:
        """Hosts are divided among the leaves in order."""
        self.assertEqual(clos.switches(CLOS), ["leaf1", "leaf2", "leaf3", "spine1", "spine2"])
        self.assertEqual([clos.switch_of(CLOS, f"h{i}") for i in range(1, 7)],
                         ["leaf1", "leaf1", "leaf2", "leaf2", "leaf3", "leaf3"])

    def test_links(self) -> None:
        """Every leaf has a link to every spine, with a network of its own."""
        found = clos.links(CLOS)
        self.assertEqual({(link.leaf, link.spine) for link in found},
                         {(leaf, spine) for leaf in (1, 2, 3) for spine in (1, 2)})
        self.assertEqual(len({link.network for link in found}), 6)

    def test_ports(self) -> None:
        """Ports to hosts and both ends of links between switches have buffers."""
        found = clos.buffered_ports(CLOS)
        self.assertEqual(len(found), 6 + 2 * 6)
        self.assertEqual(len({port.device for port in found}), 18)
        self.assertEqual({port.gbit for port in found if port.device[0] != "h"}, {20})

    def test_routes(self) -> None:
        """A switch has one route to each host that is not below the switch."""
        found = clos.routes(CLOS, 1)
        for switch, rows in found.items():
            nets = [row.split()[2] for row in rows]
            own = {f"10.0.{i}.0/24" for i in range(1, 7)
                   if clos.switch_of(CLOS, f"h{i}") == switch}
            self.assertEqual(sorted(nets), sorted({f"10.0.{i}.0/24" for i in range(1, 7)} - own))
        for row in found["leaf2"]:
            self.assertRegex(row, r"via 10\.10[12]\.2\.2$")
        self.assertIn("route add 10.0.3.0/24 via 10.101.2.1", found["spine1"])

    def test_seed(self) -> None:
        """The seed decides which spine carries packets."""
        self.assertEqual(clos.routes(CLOS, 4), clos.routes(CLOS, 4))
        self.assertGreater(len({str(clos.routes(CLOS, seed)) for seed in range(8)}), 1)

    def test_one_switch(self) -> None:
        """Other topologies have one switch and no links between switches."""
        topo = scenario()["topology"]
        self.assertEqual(clos.switches(topo), ["sw"])
        self.assertEqual(clos.links(topo), [])
        self.assertEqual(clos.buffered_ports(topo), [("sw", "s1", 10)])


class Script(unittest.TestCase):
    """The guest's script"""

    def test_modules(self) -> None:
        """Modules are loaded only where they are used; unknown parameters stop the script."""
        self.assertNotIn("insmod", script(scenario()))
        own = script(scenario() | {"module_params": {"preset": "paper"}}, "timely")
        self.assertIn("insmod /modules/tcp_timely.ko preset=paper", own)
        self.assertIn("tcp_timely has no parameter preset", own)

    def test_port(self) -> None:
        """The port has the link's rate and the buffer; with DCTCP the port marks packets."""
        self.assertIn("dev s1 root handle 1: tbf rate 10gbit burst 3028 limit 100000",
                      script(scenario()))
        self.assertNotIn("red limit", script(scenario()))
        self.assertIn("red limit 100000 min 30000 max 31514", script(scenario(), "dctcp"))

    def test_batches(self) -> None:
        """Every batch of commands has an end, and the engine runs after all of them."""
        for own in (scenario(), scenario() | {"topology": CLOS}, scenario() | {"nic": {}}):
            text = script(own, "timely+onramp")
            self.assertEqual(len(re.findall("<<END$", text, re.M)),
                             len(re.findall("^END$", text, re.M)))
            self.assertGreater(text.index(network.RUN_ENGINE), text.rindex("\nip "))

    def test_nics(self) -> None:
        """On the testbed of NICs clocks are drawn with the seed."""
        own: Scenario = scenario() | {"nic": {}}
        self.assertIn("insmod /hwnic/hwnic.ko", script(own))
        self.assertEqual(script(own, seed=2), script(own, seed=2))
        self.assertNotEqual(script(own, seed=2), script(own, seed=3))

    def test_buffers_of_nics(self) -> None:
        """The buffer is the port's ring, or with a fabric a qdisc, which can mark packets."""
        own: Scenario = scenario() | {"nic": {}}
        self.assertIn("ethtool -G s1 tx 66\n", script(own, "dctcp"))
        self.assertIn("dev s1 root handle 1: pfifo limit 1\n", script(own, "dctcp"))
        own["topology"] = own["topology"] | {"fabric": "all-to-all", "servers": 0}
        self.assertIn("ethtool -G h1 tx 2\n", script(own))
        self.assertIn("dev h1 root handle 1: bfifo limit 100000\n", script(own))
        self.assertIn("dev h1 root handle 1: red limit 100000 min 30000", script(own, "dctcp"))


class Ndp(unittest.TestCase):
    """Cells with NDP sockets"""

    def test_modules(self) -> None:
        """NDP needs the core, the transport and the qdisc, in this order."""
        self.assertEqual(re.findall(r"insmod /modules/(\w+)", script(scenario(), "ndp")),
                         ["timely", "sch_trim", "ndp"])

    def test_ports(self) -> None:
        """Ports trim packets, also where flows of another cell use NDP, and statistics are kept."""
        mixed = scenario()
        mixed["flows"][0]["cc"] = "ndp"
        for own, cc in ((scenario(), "ndp"), (mixed, "dctcp")):
            text = script(own, cc)
            self.assertIn("dev s1 parent 1:1 handle 2: trim return\n", text)
            self.assertNotIn("red limit", text)
            self.assertIn('dev s1 >"$3.trim-s1"\n', text)
            self.assertGreater(text.index("trim-s1"), text.index(network.RUN_ENGINE))
        own = scenario() | {"nic": {}}
        with self.assertRaisesRegex(ScenarioError, "all-to-all"):
            script(own, "ndp")
        own["topology"] |= {"fabric": "all-to-all", "servers": 0, "trim": "size 64"}
        self.assertIn("dev h1 root handle 1: trim size 64\n", script(own, "ndp"))

    def test_paths(self) -> None:
        """Source ports select the spine: each port to a spine passes on those of the others."""
        own: Scenario = scenario() | {"topology": CLOS | {"spines": 4}, "flows": []}
        text = script(own, "ndp")
        self.assertEqual(len(re.findall("link set p[1-4]l[1-3] address 02:", text)), 3 * 4)
        filters = re.findall(r"dev l2p3 egress .* match u16 (\d) 0x3 at 20 .* dev l2p(\d)\n", text)
        self.assertEqual(filters, [("0", "1"), ("1", "2"), ("3", "4")])
        self.assertNotIn("clsact", script(own))
        own["topology"] = CLOS | {"spines": 3}
        with self.assertRaisesRegex(ScenarioError, "power of two"):
            script(own, "ndp")


class Faults(unittest.TestCase):
    """Faults of paths"""

    def test_no_faults(self) -> None:
        """Without faults no link changes."""
        self.assertEqual(list(faults.changes(scenario())), [])

    def test_loss(self) -> None:
        """Loss begins at from_ms, on the hosts' links only."""
        (at, state), = faults.changes(scenario() | {"path": {"from_ms": 3, "loss_percent": 2}})
        self.assertEqual((at, sorted(state)), (3, ["h1", "h2"]))
        self.assertTrue(state["h1"].endswith("loss 2%"))

    def test_blackout(self) -> None:
        """A blackout stops all links, and then gives them their options back."""
        own: Scenario = scenario() | {"events": [{"at_ms": 5, "blackout_ms": 2}]}
        (begin, dark), (end, back) = faults.changes(own)
        self.assertEqual((begin, end), (5, 7))
        self.assertEqual(sorted(dark), ["h1", "h2", "s1"])
        self.assertTrue(all(text.endswith("loss 100%") for text in dark.values()))
        self.assertEqual(back["h1"], faults.link_options(own["topology"], {}, "h1"))
        self.assertEqual(faults.plan_lines(own), ["run file=/run/change-0 at=5000000",
                                                  "run file=/run/change-1 at=7000000"])

    def test_recovery(self) -> None:
        """Goodput has recovered with 90 % of the rate before the blackout."""
        own = scenario() | {"events": [{"at_ms": 40, "blackout_ms": 10}]}
        times = [i * 10 * MS for i in range(9)]
        rates = [1, 10, 10, 10, 0, 5, 9.5, 10]
        self.assertEqual(faults.recovery_ms(own, times, rates), 20)
        self.assertEqual(faults.recovery_ms(own, times, [1, 10, 10, 10, 0, 0, 0, 0]), 30)
        self.assertIsNone(faults.recovery_ms(scenario(), times, rates))


if __name__ == "__main__":
    unittest.main()
