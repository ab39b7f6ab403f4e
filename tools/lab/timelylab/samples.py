# SPDX-License-Identifier: GPL-2.0
"""Quantiles of samples, and the summaries of samples that figures hold."""
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Names of quantiles in figures.
QUANTILES = {"p50": .5, "p90": .9, "p95": .95, "p99": .99, "p999": .999}
RANGE_QUANTILES = {"p1": .01, "p10": .1, "p50": .5, "p90": .9, "p99": .99, "p999": .999}
# Shares at which a plot shows a CDF: even steps, and finer steps above 99 %.
TAIL_SHARES = [.99 + i / 2000 for i in range(21)]


def is_number(value: Any) -> bool:
    """Is this a finite number? Result files may hold anything; no figure is above 1e18."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


def quantile(ordered: Sequence[float], share: float) -> float:
    """The least sample that a share of the samples, which are in rising order, does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Iterable[float], scale: float,
           quantiles: Mapping[str, float] = QUANTILES) -> dict[str, float]:
    """Count, mean and quantiles of samples, divided by scale; without samples only the count."""
    ordered = sorted(values)
    out: dict[str, float] = {"count": len(ordered)}
    if ordered:
        out["avg"] = statistics.fmean(ordered) / scale
        for name, share in quantiles.items():
            out[name] = quantile(ordered, share) / scale
    return out


def spread_with_range(values: Iterable[float], scale: float = 1) -> dict[str, float]:
    """Count, minimum, maximum, mean and quantiles of samples, divided by scale."""
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}
    return {"count": len(ordered), "min": ordered[0] / scale, "max": ordered[-1] / scale,
            "avg": sum(ordered) / len(ordered) / scale,
            **{name: quantile(ordered, share) / scale for name, share in RANGE_QUANTILES.items()}}


def cdf_points(values: Iterable[float], shares: Sequence[float],
               scale: float) -> list[tuple[float, float]]:
    """The CDF of samples at some shares, with the samples divided by scale."""
    ordered = sorted(values)
    return [(quantile(ordered, share) / scale, share) for share in shares] if ordered else []
