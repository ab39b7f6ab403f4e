# SPDX-License-Identifier: GPL-2.0
"""Tests of the plan for the traffic engine."""
import random
import unittest

from support import scenario
from timelylab import plan, workload
from timelylab.common import MS, Scenario
from timelylab.scenario import load_scenario


def words(line: str) -> dict[str, str]:
    """The words KEY=VALUE of a line."""
    return dict(word.split("=", 1) for word in line.split()[1:])


def lines_of(own: Scenario, verb: str, cc: str = "timely", seed: int = 1) -> list[dict[str, str]]:
    """The words of all lines of a plan that begin with a verb."""
    return [words(line) for line in plan.make_plan(own, cc, seed).splitlines()
            if line.split()[0] == verb]


class Seeds(unittest.TestCase):
    """A plan depends on the seed, and on nothing else that is random."""

    def test_same_seed(self) -> None:
        """One seed gives one plan, in every scenario."""
        for name in ("table1", "incast", "timely-fig1", "onramp-websearch", "clos-incast"):
            with self.subTest(name):
                own = load_scenario(name)
                cc = own["run"]["cc"][0]
                first = plan.make_plan(own, cc, 5)
                random.seed(1)
                self.assertEqual(plan.make_plan(own, cc, 5), first)
                self.assertNotEqual(plan.make_plan(own, cc, 6), first)

    def test_same_traffic(self) -> None:
        """Another congestion control has the same traffic at the same times."""
        own = load_scenario("onramp-websearch")
        plans = [plan.make_plan(own, cc, 3).replace(f"cc={cc} ", "cc=X ")
                 for cc in ("cubic", "bbr")]
        self.assertEqual(*plans)


class Flows(unittest.TestCase):
    """Lines of connections"""

    def test_ports_and_times(self) -> None:
        """Each connection has a port of its own, and starts within its range of times."""
        own = scenario()
        own["flows"][0]["count"] = 3
        flows = lines_of(own, "bulk")
        self.assertEqual([flow["from"] for flow in flows], ["h1"] * 3 + ["h2"] * 3)
        self.assertEqual([int(flow["port"]) for flow in flows], list(range(5001, 5007)))
        for flow in flows:
            self.assertTrue(MS <= int(flow["start"]) <= 2 * MS)
            self.assertEqual(flow["connect"], flow["start"])
            self.assertEqual((flow["to"], flow["addr"], flow["cc"]), ("s1", "10.1.1.1", "timely"))

    def test_options(self) -> None:
        """Keys of [[flows]] become words of the engine, in its units."""
        own = scenario()
        own["run"]["connect_ms"] = 0
        own["flows"] = [{"from": 1, "to": "h2", "count": 1, "cc": "bbr", "start_ms": 3,
                         "stop_ms": 5, "max_gbit": 1, "app_gbit": 2, "sndbuf": 9}]
        self.assertEqual(lines_of(own, "bulk"), [
            {"from": "h1", "to": "h2", "addr": "10.0.2.1", "port": "5001", "cc": "bbr",
             "connect": "0", "start": "3000000", "stop": "5000000", "pace": "125000000",
             "rate": "250000000", "sndbuf": "9"}])

    def test_trains(self) -> None:
        """[[trains]] have ports after those of [[flows]]."""
        own = scenario() | {"trains": [{"from": 1, "to": 1, "count": 1, "size": 500,
                                        "every_us": 20}]}
        train, = lines_of(own, "train")
        self.assertEqual((train["port"], train["size"], train["every"]), ("5003", "500", "20000"))

    def test_pingpong(self) -> None:
        """[[pingpong]] has a line for each connection."""
        own = scenario() | {"pingpong": [{"from": [1, 2], "to": 1, "count": 2, "size": 9}]}
        del own["flows"]
        self.assertEqual([line["port"] for line in lines_of(own, "pingpong")],
                         ["5001", "5002", "5003", "5004"])


class Incast(unittest.TestCase):
    """Lines of [incast]"""

    def test_server_asks(self) -> None:
        """A server asks each host as often as "count" says, from the start of the window."""
        own = scenario() | {"incast": {"from": [1, 2], "to": 1, "count": 2, "size": 10,
                                       "every_us": 100}}
        self.assertEqual(lines_of(own, "incast"), [
            {"cc": "timely", "every": "100000", "size": "10", "start": str(10 * MS)}])
        members = lines_of(own, "member")
        self.assertEqual([member["from"] for member in members], ["h1", "h1", "h2", "h2"])
        self.assertEqual(len({member["port"] for member in members}), 4)

    def test_each_asks(self) -> None:
        """With to = "each" every host asks the others of its group, and never itself."""
        own = scenario() | {"incast": {"to": "each", "count": 3, "size": 10, "every_us": 100,
                                       "groups": [[1, 2], [3, 4]]}}
        self.assertEqual(len(lines_of(own, "incast")), 4)
        self.assertEqual([(member["from"], member["to"]) for member in lines_of(own, "member")],
                         [("h2", "h1")] * 3 + [("h1", "h2")] * 3 +
                         [("h4", "h3")] * 3 + [("h3", "h4")] * 3)


class Rest(unittest.TestCase):
    """Other lines of a plan"""

    def test_window(self) -> None:
        """The run ends just after the window."""
        self.assertIn(f"end at={30 * MS + 1000}", plan.make_plan(scenario(), "timely", 1))

    def test_ecn(self) -> None:
        """Ends and pings use ECN only in a cell with DCTCP."""
        for cc, tos in (("cubic", "0"), ("dctcp", "2")):
            ping, = lines_of(scenario(), "ping", cc)
            self.assertEqual((ping["tos"], ping["echo_tos"]), (tos, tos))
            own_plan = plan.make_plan(scenario(), cc, 1)
            self.assertEqual(own_plan.count(f"net/ipv4/tcp_ecn value={int(cc == 'dctcp')}"), 3)

    def test_samples(self) -> None:
        """The port to the server is sampled, with NICs by its ring if that is the buffer."""
        self.assertEqual(lines_of(scenario(), "queue"),
                         [{"ns": "sw", "dev": "s1", "handle": "1", "every": "50000"}])
        queue, = lines_of(scenario() | {"nic": {}}, "queue")
        self.assertEqual(queue["ring"], "/run/sys/sw/class/net/s1/hwnic/tx_queue")
        own: Scenario = scenario() | {"nic": {}}
        own["topology"] = own["topology"] | {"fabric": "all-to-all", "servers": 0}
        self.assertNotIn("ring", lines_of(own, "queue")[0])

    def test_ndp(self) -> None:
        """With NDP the qdisc trim is sampled, and pulls have the rate of the testbed's links."""
        self.assertEqual(lines_of(scenario(), "queue", "ndp")[0]["handle"], "2")
        rate = "key=net/ndp/link_rate_kbps value=10158520"
        self.assertEqual(plan.make_plan(scenario(), "ndp", 1).count(rate), 3)
        own: Scenario = scenario() | {"nic": {}}
        own["topology"] = own["topology"] | {"fabric": "all-to-all", "servers": 0}
        self.assertEqual(lines_of(own, "queue", "ndp")[0]["handle"], "1")
        self.assertNotIn("link_rate_kbps", plan.make_plan(own, "ndp", 1))

    def test_workload(self) -> None:
        """The mean time between messages makes the load."""
        own = scenario() | {"workload": {"sizes": "rpc-64k", "load": .5}}
        own["topology"] |= {"servers": 0, "fabric": "all-to-all"}
        work, = lines_of(own, "workload")
        capacity = 2 * 10 * 1448 / 1514 / 8
        self.assertAlmostEqual(workload.mean_size("rpc-64k") / int(work["every"]) / capacity, .5,
                               places=3)
        self.assertEqual(len(lines_of(own, "node")), 2)
        self.assertNotIn("on", work)
        self.assertEqual(work["late"], "1000000")

    def test_on_times(self) -> None:
        """Hosts that are on a quarter of the time get messages four times as fast while on."""
        own = scenario() | {"workload": {"sizes": "rpc-64k", "load": .5}}
        steady, = lines_of(own, "workload")
        own["workload"] |= {"on_us": 1000, "off_us": 3000, "pool": 0}
        work, = lines_of(own, "workload")
        self.assertEqual((work["on"], work["off"], work["pool"]), ("1000000", "3000000", "0"))
        self.assertAlmostEqual(int(work["every"]) * 4, int(steady["every"]), delta=4)
        self.assertEqual(work["seed"], steady["seed"])


if __name__ == "__main__":
    unittest.main()
