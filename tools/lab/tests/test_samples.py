# SPDX-License-Identifier: GPL-2.0
"""Tests of quantiles and summaries of samples."""
import unittest

import support   # noqa: F401, sets the path of the package
from timelylab import samples


class Quantile(unittest.TestCase):
    """quantile()"""

    def test_is_a_sample(self) -> None:
        """A quantile is the least sample that enough samples do not exceed."""
        ordered = [10, 20, 30, 40]
        for share, value in ((0, 10), (.25, 10), (.26, 20), (.5, 20), (.51, 30), (.99, 40),
                             (1, 40)):
            self.assertEqual(samples.quantile(ordered, share), value, share)

    def test_of_one_sample(self) -> None:
        """All quantiles of one sample are the sample."""
        for share in (0, .01, .5, .999, 1):
            self.assertEqual(samples.quantile([7], share), 7)


class Spread(unittest.TestCase):
    """spread() and spread_with_range()"""

    def test_units(self) -> None:
        """Mean and quantiles are in units of scale; the number of samples is not."""
        found = samples.spread(range(1000, 101_000, 1000), 1000)
        self.assertEqual(found, {"count": 100, "avg": 50.5, "p50": 50, "p90": 90, "p95": 95,
                                 "p99": 99, "p999": 100})

    def test_order_does_not_matter(self) -> None:
        """Samples need no order."""
        self.assertEqual(samples.spread([3, 1, 2], 1), samples.spread([1, 2, 3], 1))

    def test_empty(self) -> None:
        """Without samples there is the number only."""
        self.assertEqual(samples.spread([], 1), {"count": 0})
        self.assertEqual(samples.spread_with_range([]), {"count": 0})

    def test_range(self) -> None:
        """spread_with_range() adds minimum, maximum and low quantiles."""
        found = samples.spread_with_range(range(1, 101))
        self.assertEqual(found, {"count": 100, "min": 1, "max": 100, "avg": 50.5, "p1": 1,
                                 "p10": 10, "p50": 50, "p90": 90, "p99": 99, "p999": 100})

    def test_own_quantiles(self) -> None:
        """The caller chooses the quantiles."""
        self.assertEqual(samples.spread([1, 2], 1, {"p50": .5}), {"count": 2, "avg": 1.5, "p50": 1})


class Cdf(unittest.TestCase):
    """cdf_points()"""

    def test_points(self) -> None:
        """Points are pairs of value and share."""
        self.assertEqual(samples.cdf_points([4000, 2000], [.5, 1], 1000), [(2, .5), (4, 1)])
        self.assertEqual(samples.cdf_points([], [.5, 1], 1000), [])


if __name__ == "__main__":
    unittest.main()
