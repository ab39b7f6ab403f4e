# SPDX-License-Identifier: GPL-2.0
"""Tests of figures, made from a small raw result."""
import unittest

from support import raw_result, scenario
from timelylab import results, series, timestamp_figures, workload
from timelylab.common import MS, LabError, Scenario
from timelylab.timestamps import Queue, Truth, joined_row


class Windows(unittest.TestCase):
    """edges()"""

    def test_edges(self) -> None:
        """The window opens with the first sample in it; its last sample may be 1 ms late."""
        times = [0, 10 * MS, 20 * MS, 30 * MS + MS // 2, 40 * MS]
        self.assertEqual(results.edges(times, 10 * MS, 30 * MS), (1, 3))
        self.assertEqual(results.edges(times, 5 * MS, 29 * MS), (1, 2))

    def test_no_samples(self) -> None:
        """A window with less than two samples is an error."""
        for start, end in ((50 * MS, 60 * MS), (10 * MS, 10 * MS)):
            with self.assertRaisesRegex(LabError, "no samples in the measured window"):
                results.edges([0, 10 * MS], start, end)


class Figures(unittest.TestCase):
    """figures()"""

    def setUp(self) -> None:
        self.fig = results.figures(scenario(), raw_result())

    def test_rates(self) -> None:
        """Goodput is what all connections received; warm-up does not count."""
        self.assertAlmostEqual(self.fig["goodput_gbit"], 8)
        self.assertAlmostEqual(self.fig["flow_gbit_min"], 2)
        self.assertAlmostEqual(self.fig["flow_gbit_max"], 6)
        self.assertAlmostEqual(self.fig["jain"], 64 / (2 * 40))
        self.assertAlmostEqual(self.fig["share"], 8 / (10 * 1448 / 1514))
        self.assertEqual((self.fig["retrans"], self.fig["retrans_before"]), (4, 0))

    def test_smoothness(self) -> None:
        """A constant rate does not vary."""
        self.assertEqual(self.fig["rate_cv"], 0)

    def test_queue(self) -> None:
        """The queueing delay is the port's time for the bytes in the queue."""
        queue = self.fig["queue_us"]
        self.assertEqual(queue["count"], 401)
        self.assertEqual((queue["p1"], queue["p99"], queue["max"]), (0, 10, 10))
        self.assertAlmostEqual(self.fig["queue_empty"], 201 / 401)
        self.assertEqual(self.fig["queue_bytes_max"], 12_500)
        self.assertEqual((self.fig["drops_before"], self.fig["drops"]), (2, 4))

    def test_pings(self) -> None:
        """Only pings of the window count, and those of the last 20 ms are not lost."""
        self.assertEqual(self.fig["rtt_us"]["count"], 2)
        self.assertEqual(self.fig["rtt_us"]["avg"], 25)
        self.assertEqual(self.fig["pings_lost"], 0)

    def test_groups(self) -> None:
        """Groups of connections have figures of their own."""
        own = scenario()
        own["flows"] = [{"from": 1, "to": 1, "count": 1, "group": "a"},
                        {"from": 2, "to": 1, "count": 1, "group": "b"}]
        groups = results.figures(own, raw_result())["groups"]
        self.assertAlmostEqual(groups["a"]["goodput_gbit"], 6)
        self.assertAlmostEqual(groups["b"]["goodput_gbit"], 2)

    def test_requests(self) -> None:
        """A request without an end is counted. A slowdown is relative to the least time."""
        raw = raw_result() | {"incasts": [{"to": "s1", "requests": [[0, 3000], [9, 5000]],
                                           "members": 2, "size": 14_480,
                                           "skipped": 1, "unfinished_since_ns": 7}]}
        fig = results.figures(scenario(), raw)
        self.assertEqual(fig["request_us"]["avg"], 4)
        self.assertEqual((fig["requests_skipped"], fig["request_unfinished"]), (1, 1))
        self.assertEqual(series.request_cdf(raw), [(3, 1 / 3), (5, 2 / 3)])
        # Two delays, the frames of request and answers, but one frame less for the port's burst.
        self.assertAlmostEqual(fig["request_slowdown"]["avg"] * (10_000 + 104 + 19 * 1211), 4000,
                               delta=2)

    def test_trimmed(self) -> None:
        """What switches trimmed and dropped is summed over all ports."""
        self.assertNotIn("trim", results.figures(scenario(), raw_result()))
        port = [{"kind": "tbf", "drops": 9},
                {"kind": "trim", "drops": 3, "trim_packets": 5, "returned": 1, "return_failed": 1,
                 "dropped_control": 2, "dropped_trim_packets": 0}]
        raw = raw_result() | {"ends": {"trim": {"s1": port, "l1p1": port}}}
        self.assertEqual(results.figures(scenario(), raw)["trim"],
                         {"trimmed": 10, "returned": 2, "dropped": 6})

    def test_trains(self) -> None:
        """A message that never arrived counts with its age."""
        raw = raw_result()
        raw["flows"].append({"from": "h1", "port": 9, "samples": [[0] * 5] * 4,
                             "train": [[5 * MS, 1000], [15 * MS, 2000], [20 * MS, 0]]})
        fig = results.figures(scenario(), raw)
        self.assertEqual(fig["message_us"]["count"], 2)
        self.assertEqual(fig["message_us"]["avg"], (2 + 10_000) / 2)
        self.assertAlmostEqual(fig["goodput_gbit"], 8)

    def test_settle_and_reach(self) -> None:
        """Both are times after at_ms."""
        own = scenario() | {"settle": {"at_ms": 10, "below_us": 4},
                            "reach": {"at_ms": 5, "mbit": [1000, 4000, 9000]}}
        fig = results.figures(own, raw_result())
        self.assertAlmostEqual(fig["settle_ms"], 20, places=1)
        self.assertEqual(fig["reach_ms"], {"1000_mbit": 5, "4000_mbit": 15, "9000_mbit": None})


class Compare(unittest.TestCase):
    """compare()"""

    def test_suffix(self) -> None:
        """A cell with On-Ramp is compared with the cell without, of the same seed."""
        cells = [{"cc": "cubic", "seed": 1, "goodput_gbit": 8, "request_us": {"p99": 900}},
                 {"cc": "cubic+onramp", "seed": 1, "goodput_gbit": 6, "request_us": {"p99": 300}},
                 {"cc": "cubic+onramp", "seed": 2, "goodput_gbit": 6}]
        results.compare(scenario(), cells)
        self.assertNotIn("goodput_relative", cells[0])
        self.assertEqual(cells[1]["goodput_relative"], .75)
        self.assertEqual(cells[1]["gain"], {"request_us_p99": 3})
        self.assertNotIn("goodput_relative", cells[2])

    def test_relative_to(self) -> None:
        """A variant says with which cell it is compared."""
        own = scenario() | {"variants": {"slow": {"relative_to": "timely"}}}
        cells = [{"cc": "timely", "seed": 1, "goodput_gbit": 8},
                 {"cc": "slow", "seed": 1, "goodput_gbit": 4}]
        results.compare(own, cells)
        self.assertEqual(cells[1]["goodput_relative"], .5)

    def test_pick(self) -> None:
        """A path without a value gives None."""
        self.assertEqual(results.pick({"a": {"b": 1}}, "a.b"), 1)
        self.assertIsNone(results.pick({"a": {"b": 1}}, "a.c"))
        self.assertIsNone(results.pick({"a": None}, "a.b.c"))


class Workload(unittest.TestCase):
    """Figures of messages of random sizes"""

    def test_messages(self) -> None:
        """Messages are in classes by size; one under way counts with its time so far."""
        raw = {"end_ns": 1000, "workloads": [{"retrans": 3, "connections": 4, "messages": [
            [100, 5000, 50, 1, 2], [200, 10_001, 0, 2, 1], [990, 1, 5, 1, 2]]}]}
        fig = workload.figures(raw, 100, 900)
        self.assertEqual((fig["small_us"]["avg"], fig["medium_us"]["avg"]), (.05, .8))
        self.assertEqual(fig["large_us"], {"count": 0})
        self.assertEqual((fig["messages_unfinished"], fig["workload_gbit"]), (1, 50))
        self.assertEqual(workload.figures(raw, 100, 900, range(2, 3))["all_us"]["count"], 1)


def row(t: int, result: str, rtt: int = 0, error: int | None = None, late: int = 0) -> list[object]:
    """A row about an ACK."""
    return [t, 0, result, rtt, error, late, None, rtt + late, None]


class Timestamps(unittest.TestCase):
    """Figures of hardware timestamps"""

    def test_figures(self) -> None:
        """Only RTTs by hardware timestamps have errors; doubtful ACKs are refused."""
        own: Scenario = scenario() | {"nic": {}}
        raw = {"acks": [row(5, "learning"), row(15, "hardware", 1000, -30, 500),
                        row(16, "hardware", 3000, 2000, 0), row(17, "doubtful"),
                        row(18, "driver", 5000, 7)]}
        fig = timestamp_figures.figures(own, raw, 10, 20)
        self.assertEqual(fig["results"], {"hardware": 2, "doubtful": 1, "driver": 1})
        self.assertEqual((fig["hardware_share"], fig["refused_share"]), (2 / 3, 1 / 4))
        self.assertEqual(fig["error_ns"]["max"], 2000)
        self.assertEqual((fig["bias_ns"], fig["used_wrong"]), (985, 1))
        self.assertEqual((fig["hardware_us"]["avg"], fig["used_us"]["avg"]), (2, 3))
        self.assertEqual(fig["sure_after_ms"], 10 / MS)

    def test_event(self) -> None:
        """An event is noticed by the first ACK that uses no hardware timestamp."""
        rows = [row(1 * MS, "hardware", 9, 5), row(2 * MS, "hardware", 9, 5000),
                row(3 * MS, "doubtful"), row(4 * MS, "hardware", 9, 5)]
        fig = timestamp_figures.event_figures(rows, 2 * MS, 9 * MS)
        self.assertEqual((fig["noticed_ms"], fig["sure_again_ms"]), (1, 2))
        self.assertEqual((fig["used"], fig["used_wrong"], fig["error_max_ns"]), (2, 1, 5000))

    def test_step_kinds(self) -> None:
        """A step's kind depends on the jitter that may hide the step."""
        for event, kind in (({"step_ns": -101}, "large"), ({"step_ns": 100}, "small"),
                            ({"step_ns": 25}, "tiny"), ({"set_ns": 0}, "large"),
                            ({"real_step_ns": 500}, "real")):
            self.assertEqual(timestamp_figures.step_kind(event, 100), kind)

    def test_joined_row(self) -> None:
        """An ACK's row has the difference to the NICs' records."""
        truth, queue = Truth("/dev/null"), Queue("/dev/null")
        truth.by_timestamp[700, 1, 2] = 1500
        truth.left[1, 2, 99] = (1000, 200)
        queue.times, queue.bytes = [900, 1060], [10, 20]
        event = {"now_ns": "1600", "arrived_ns": "1510", "sent_ns": "900", "rtt_ns": "610",
                 "hw_timestamp_ns": "700", "sport": "1", "dport": "2", "una": "99", "end_seq": "99",
                 "result": "hardware"}
        self.assertEqual(joined_row(event, 0, truth, queue, 100, 50),
                         [1500, 0, "hardware", 610, 10, 100, 500, 700, 10])

    def test_histogram(self) -> None:
        """A queue is sampled at each step."""
        queue = Queue("/dev/null")
        queue.times, queue.bytes = [10, 20], [100, 0]
        self.assertEqual(queue.histogram(0, 40, 5), [(0, 6), (100, 2)])


if __name__ == "__main__":
    unittest.main()
