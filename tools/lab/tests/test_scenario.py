# SPDX-License-Identifier: GPL-2.0
"""Tests of scenarios: reading, changing and checking them."""
import contextlib
import io
import os
import tempfile
import unittest

from support import scenario
from timelylab import cell, scenario as scenarios
from timelylab.common import MS, LabError, Scenario, ScenarioError
from timelylab.faults import settings as path_settings
from timelylab.onramp import settings as onramp_settings
from timelylab.run import cells_of


class Check(unittest.TestCase):
    """check() refuses mistakes, and says how to correct them."""

    def test_good(self) -> None:
        """A complete scenario passes."""
        scenarios.check(scenario())

    def test_unknown_section(self) -> None:
        """The message names the unknown section and the known ones."""
        bad: Scenario = scenario() | {"links": {}}
        with self.assertRaisesRegex(LabError, r"unknown section \[links\]: topology, run"):
            scenarios.check(bad)

    def test_unknown_key(self) -> None:
        """The message names section and key, and the known keys."""
        bad = scenario()
        bad["ping"]["size_bytes"] = 16
        with self.assertRaisesRegex(LabError, r"\[ping\] has no key size_bytes: its keys are from"):
            scenarios.check(bad)

    def test_missing_section(self) -> None:
        """Required sections have to be there."""
        for section in scenarios.REQUIRED:
            bad = scenario()
            del bad[section]
            with self.assertRaisesRegex(LabError, rf"the scenario has no \[{section}\]"):
                scenarios.check(bad)

    def test_missing_key(self) -> None:
        """Required keys have to be there, in every table of a section."""
        bad = scenario()
        bad["flows"].append({"from": 1, "to": 1})
        with self.assertRaisesRegex(LabError, r"\[flows\] lacks the key count"):
            scenarios.check(bad)

    def test_variant_in_part(self) -> None:
        """A variant's table may have few keys, but none that is unknown."""
        good = scenario() | {"variants": {"far": {"topology": {"delay_ns": 1}}}}
        scenarios.check(good)
        bad = scenario() | {"variants": {"far": {"topology": {"delay": 1}}}}
        with self.assertRaisesRegex(LabError, r"\[topology\] has no key delay"):
            scenarios.check(bad)

    def test_variant_whole_flows(self) -> None:
        """A variant's connections replace the scenario's, and so are complete."""
        bad = scenario() | {"variants": {"few": {"flows": [{"from": 1, "to": 1}]}}}
        with self.assertRaisesRegex(LabError, r"\[flows\] lacks the key count"):
            scenarios.check(bad)

    def test_window_of_samples(self) -> None:
        """The window begins and ends with a sample."""
        bad = scenario()
        bad["run"]["warmup_ms"] = 15
        with self.assertRaisesRegex(LabError, "run.warmup_ms must be a multiple of sample.flow"):
            scenarios.check(bad)

    def test_on_times(self) -> None:
        """A workload has on-times and off-times, or neither."""
        load = {"sizes": "rpc-64k", "load": .5, "on_us": 1000}
        with self.assertRaisesRegex(LabError, "both on_us and off_us, or neither"):
            scenarios.check(scenario() | {"workload": load})
        scenarios.check(scenario() | {"workload": load | {"off_us": 9}})

    def test_all_scenarios(self) -> None:
        """Every scenario of the directory passes, and so does every cell of each."""
        for name in scenarios.scenario_names():
            with self.subTest(name):
                loaded = scenarios.load_scenario(name)
                for cc in loaded["run"]["cc"]:
                    scenarios.check(cell.scenario_of(loaded, cc))

    def test_key_of_the_other_bed(self) -> None:
        """A fault that the bed cannot have is refused."""
        nics: Scenario = scenario() | {"nic": {}}
        for own, key in ((scenario(), "pause_us"), (nics, "loss_percent")):
            with self.assertRaisesRegex(ScenarioError, f"path.{key} needs a scenario with"):
                path_settings(own | {"path": {key: 1}})

    def test_clos_of_nics(self) -> None:
        """The testbed of NICs has no Clos."""
        bad: Scenario = scenarios.load_scenario("clos") | {"nic": {}}
        with self.assertRaisesRegex(LabError, "has one switch"):
            scenarios.check(bad)


class Read(unittest.TestCase):
    """load_scenario(): files, --set and --module-param."""

    def file(self, text: str) -> str:
        """The path of a file with a text."""
        path = os.path.join(tempfile.mkdtemp(), "own.toml")
        self.addCleanup(os.rmdir, os.path.dirname(path))
        self.addCleanup(os.remove, path)
        with open(path, "w", encoding="ascii") as out:
            out.write(text)
        return path

    def test_unknown_name(self) -> None:
        """The message says where names are from."""
        with self.assertRaisesRegex(LabError, "no scenario 'NOSUCH': 'lab list' shows all"):
            scenarios.load_scenario("NOSUCH")

    def test_old_name(self) -> None:
        """A scenario's former name leads to the scenario, with a notice."""
        with contextlib.redirect_stderr(io.StringIO()) as notice:
            self.assertEqual(scenarios.scenario_path("pauses"), scenarios.scenario_path("pfc"))
        self.assertIn("is now called 'pfc'", notice.getvalue())

    def test_bad_toml(self) -> None:
        """The message names file and line."""
        with self.assertRaisesRegex(LabError, r"own.toml: Invalid value .*line 1"):
            scenarios.load_scenario(self.file("title = \n"))

    def test_base(self) -> None:
        """Tables are laid over those of the base; lists of tables replace them."""
        own = self.file('base = "table1"\ntitle = "own"\n[topology]\ndelay_ns = 7\n'
                        '[[flows]]\nfrom = 1\nto = 1\ncount = 2\n')
        base, loaded = scenarios.load_scenario("table1"), scenarios.load_scenario(own)
        self.assertEqual(loaded["title"], "own")
        self.assertEqual(loaded["topology"], base["topology"] | {"delay_ns": 7})
        self.assertEqual(loaded["flows"], [{"from": 1, "to": 1, "count": 2}])
        self.assertEqual(loaded["ping"], base["ping"])

    def test_sweep(self) -> None:
        """[sweep] makes a variant of each cell's name for each value."""
        own = self.file("""base = "onramp-websearch"
[sweep]
key = "workload.load"
values = [0.2, 0.5]
[run]
cc = ["timely", "slow", "cubic+onramp"]
[report]
shown = ["slow"]
[variants]
slow = {cc = "bbr", workload = {pool = 1}, relative_to = "timely"}
""")
        loaded = scenarios.load_scenario(own)
        self.assertEqual(loaded["run"]["cc"], ["timely-0.2", "slow-0.2", "cubic-0.2+onramp",
                                               "timely-0.5", "slow-0.5", "cubic-0.5+onramp"])
        self.assertEqual(loaded["report"]["shown"], ["slow-0.2", "slow-0.5"])
        self.assertEqual(loaded["variants"]["slow-0.5"], {
            "cc": "bbr", "workload": {"pool": 1, "load": .5}, "relative_to": "timely-0.5"})
        for name, kernel in (("timely-0.2", "timely"), ("cubic-0.5+onramp", "cubic")):
            self.assertEqual(cell.kernel_cc(loaded, name), kernel)
        self.assertEqual(cell.scenario_of(loaded, "timely-0.2")["workload"],
                         {"sizes": "websearch", "load": .2})
        self.assertEqual(scenarios.load_scenario(own, ["sweep.values=[0.3]"])["run"]["cc"][0],
                         "timely-0.3")

    def test_bad_sweep(self) -> None:
        """Only what a variant may change can be swept."""
        for key in ("sample.queue_us", "flows.count", "workload"):
            with self.assertRaisesRegex(LabError, "sweep.key must be a key of a section"):
                scenarios.expand_sweep(scenario() | {"sweep": {"key": key, "values": [1]}})

    def test_set(self) -> None:
        """A value is TOML or else text; every table of a section is changed."""
        changed = scenarios.load_scenario(
            "table1", ["run.start_ms=[1, 1]", "topology.host_qdisc=timely", "flows.count=2"])
        self.assertEqual(changed["run"]["start_ms"], [1, 1])
        self.assertEqual(changed["topology"]["host_qdisc"], "timely")
        self.assertEqual({flow["count"] for flow in changed["flows"]}, {2})

    def test_set_without_key(self) -> None:
        """The message shows the form."""
        for setting in ("mtu=9000", "topology.mtu"):
            with self.assertRaisesRegex(LabError, "--set needs section.key=value, not"):
                scenarios.load_scenario("table1", [setting])

    def test_module_param(self) -> None:
        """Parameters go to [module_params]."""
        changed = scenarios.load_scenario("table1", params=["preset=paper"])
        self.assertEqual(changed["module_params"], {"preset": "paper"})
        with self.assertRaisesRegex(LabError, "--module-param needs name=value, not 'preset'"):
            scenarios.load_scenario("table1", params=["preset"])


class Window(unittest.TestCase):
    """window_ns() and host_range()"""

    def test_window(self) -> None:
        """The window begins after the warm-up."""
        self.assertEqual(scenarios.window_ns(scenario()), (10 * MS, 30 * MS))

    def test_host_range(self) -> None:
        """"from" is a host, or the first and the last host."""
        self.assertEqual(list(scenarios.host_range(3)), [3])
        self.assertEqual(list(scenarios.host_range([3, 5])), [3, 4, 5])


class Cells(unittest.TestCase):
    """The cells of a run, and what a variant changes."""

    def test_seeds(self) -> None:
        """Other congestion controls than timely have seeds of their own."""
        self.assertEqual(cells_of(scenario(), None, None),
                         [("timely", 1), ("timely", 2), ("cubic", 1)])
        self.assertEqual(cells_of(scenario(), "bbr,nv", "7,8"),
                         [("bbr", 7), ("nv", 7), ("bbr", 8), ("nv", 8)])

    def test_bad_lists(self) -> None:
        """Bad names and seeds are refused."""
        for cc, seeds, message in (("A b", None, "'A b' is neither a variant"),
                                   ("timely", "one", "--seeds needs numbers"),
                                   ("cubic+no", None, r"\+no.* known are \+onramp, \+strawman")):
            with self.assertRaisesRegex(LabError, message):
                cells_of(scenario(), cc, seeds)

    def test_variant(self) -> None:
        """A variant is tcp_timely with parameters, or another congestion control."""
        own = scenario() | {"variants": {
            "paper": {"preset": "paper", "run": {"measure_ms": 10}},
            "far": {"cc": "cubic", "topology": {"delay_ns": 9}}}}
        self.assertEqual(cell.kernel_cc(own, "paper"), "timely")
        self.assertEqual(cell.kernel_cc(own, "far+onramp"), "cubic")
        self.assertEqual(cell.kernel_cc(own, "bbr"), "bbr")
        self.assertEqual(cell.module_files(own, "paper"),
                         ["timely.ko", "tcp_timely.ko preset=paper"])
        self.assertEqual(cell.module_files(own, "far"), [])
        self.assertEqual(cell.scenario_of(own, "far")["topology"]["delay_ns"], 9)
        self.assertEqual(cell.scenario_of(own, "paper")["run"]["measure_ms"], 10)
        self.assertEqual(own["run"]["measure_ms"], 20)

    def test_onramp(self) -> None:
        """A suffix adds On-Ramp, the qdisc timely and the receiver's module."""
        self.assertIsNone(onramp_settings(scenario(), "cubic"))
        self.assertEqual(cell.host_qdisc(scenario(), "cubic+rtt"),
                         "timely split 3000 onramp 50us owd rtt")
        self.assertEqual(cell.module_files(scenario(), "cubic+onramp"),
                         ["timely.ko", "sch_timely.ko", "timely_acker.ko"])
        some = scenario() | {"onramp": {"hosts": [2, 2], "split": 0}}
        self.assertEqual(cell.host_qdisc(some, "cubic+onramp", "h1"), "fq")
        self.assertEqual(cell.host_qdisc(some, "cubic+onramp", "h2"), "timely onramp 50us owd absolute")

    def test_ecn(self) -> None:
        """One connection with DCTCP is enough for ECN."""
        self.assertFalse(cell.has_ecn(scenario(), "cubic"))
        own = scenario()
        own["flows"][0]["cc"] = "dctcp"
        self.assertTrue(cell.has_ecn(own, "cubic"))


if __name__ == "__main__":
    unittest.main()
