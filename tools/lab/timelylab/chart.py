# SPDX-License-Identifier: GPL-2.0
"""Charts in SVG for pages: lines, and rows of points. All text is escaped.

A series has a colour, a dash pattern and a marker, so that colours are not needed to tell series
apart. Each line has its values as an attribute, from which the page's script shows the value below
the pointer; each point of a row has a title, which browsers show without a script.
"""
import html
import math
from collections.abc import Sequence
from typing import NamedTuple

from .common import Points

STYLES = 10                             # the page's style sheet has as many colours
WIDTH, HEIGHT = 760, 340                # of a chart of lines; units of the SVG
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 46
NAMES, TEXTS = 140, 200                 # width of the texts beside rows of points
ROW = 24                                # height of a row
# Markers, as paths around 0,0.
MARKERS = ("M-4,-4h8v8h-8z", "M0,-5L5,4H-5z", "M0,-5.5L5,0L0,5.5L-5,0z", "M-4,-4L4,4M-4,4L4,-4",
           "M0,5L5,-4H-5z", "M-5,0H5M0,-5V5", "M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0")
DASHES = ("", "9 4", "3 3", "12 3 3 3", "6 2", "2 5", "14 5", "9 2 2 2 2 2", "1 3", "5 5")


class Axis(NamedTuple):
    """An axis: its label with the unit, and the values at its ends."""

    label: str
    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """The place of a value between the ends, 0 to 1. Values beyond an end are at this end."""
        low, high, value = (math.log10(max(x, 1e-9)) if self.log else x
                            for x in (self.low, self.high, value))
        return min(1., max(0., (value - low) / (high - low)))

    def ticks(self) -> list[float]:
        """The values with a mark: at steps of 1, 2 or 5 times a power of ten."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1,) if len(powers) > 4 else (1, 2, 5)
            found = [step * 10. ** power for power in powers for step in steps]
        else:
            step = 10. ** math.floor(math.log10((self.high - self.low) / 4))
            step *= max(k for k in (1, 2, 5) if k * step * 4 <= self.high - self.low)
            first = math.ceil(self.low / step)
            found = [i * step for i in range(first, first + 12)]
        return [x for x in found if self.low * (1 - 1e-9) <= x <= self.high * (1 + 1e-9)]


class Series(NamedTuple):
    """A line: its name, the number of its style, whether it is drawn bold, its points."""

    name: str
    style: int
    bold: bool
    points: Points


class Row(NamedTuple):
    """A row of points: values with titles, the range that a line shows, and the text beside it."""

    name: str
    style: int
    bold: bool
    values: Sequence[tuple[float, str]]
    span: tuple[float, float] | None
    text: str


def axis_over(label: str, values: Sequence[float], log: bool = False) -> Axis:
    """An axis that has all values on it: from 0, or with a logarithmic scale from the least one."""
    high = max(values, default=1.)
    if not log:
        return Axis(label, 0, high * 1.05 if high > 0 else 1)
    low = min((value for value in values if value > 0), default=1.)
    return Axis(label, low / 1.2, max(high, low) * 1.2, True)


def tick_text(value: float) -> str:
    """The text at a mark."""
    return f"{value:.10g}" if abs(value) < 1e6 else f"{value:.0e}"


def line_chart(title: str, x: Axis, y: Axis, lines: Sequence[Series]) -> str:
    """A chart of lines with a legend. Lines without points are only in the legend."""
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    drawn = [f'<g class="grid">{grid_lines(x, y, across, down)}</g>']
    for line in lines:
        places = [(LEFT + x.share(a) * across, TOP + (1 - y.share(b)) * down)
                  for a, b in line.points]
        values = " ".join(f"{a:.5g},{b:.5g}" for a, b in line.points)
        drawn.append(f'<g class="{classes(line)}" data-name="{html.escape(line.name)}">'
                     f'<polyline stroke-dasharray="{dash(line)}" data-values="{values}" points="' +
                     " ".join(f"{a:.1f},{b:.1f}" for a, b in places) + '"/>' +
                     "".join(marker(line.style, *place) for place in some_of(places, line.style)) +
                     "</g>")
    attributes = f' data-x="{html.escape(x.label)}" data-y="{html.escape(y.label)}"'
    return svg(title, WIDTH, HEIGHT, "".join(drawn), attributes) + legend(lines)


def grid_lines(x: Axis, y: Axis, across: float, down: float) -> str:
    """The marks and labels of both axes."""
    parts = []
    for value in x.ticks():
        at = LEFT + x.share(value) * across
        parts.append(f'<path d="M{at:.1f},{TOP}v{down}"/>'
                     + text(at, TOP + down + 16, tick_text(value), "middle"))
    for value in y.ticks():
        at = TOP + (1 - y.share(value)) * down
        parts.append(f'<path d="M{LEFT},{at:.1f}h{across}"/>'
                     + text(LEFT - 6, at + 4, tick_text(value), "end"))
    parts.append(text(LEFT + across / 2, HEIGHT - 8, x.label, "middle"))
    parts.append(f'<g transform="translate(14 {TOP + down / 2}) rotate(-90)">'
                 + text(0, 0, y.label, "middle") + "</g>")
    return "".join(parts)


def row_chart(title: str, x: Axis, rows: Sequence[Row]) -> str:
    """A chart with one row for each congestion control."""
    across, height = WIDTH - NAMES - TEXTS, ROW * len(rows) + 40
    parts = ['<g class="grid">']
    for value in x.ticks():
        at = NAMES + x.share(value) * across
        parts.append(f'<path d="M{at:.1f},0V{height - 36}"/>'
                     + text(at, height - 22, tick_text(value), "middle"))
    parts.append(text(NAMES + across / 2, height - 4, x.label, "middle") + "</g>")
    for i, row in enumerate(rows):
        y = ROW * (i + .5)
        parts.append(f'<g class="{classes(row)}">'
                     + text(NAMES - 10, y + 4, row.name, "end")
                     + text(NAMES + across + 10, y + 4, row.text, "start"))
        if row.span:
            low, high = (NAMES + x.share(value) * across for value in row.span)
            parts.append(f'<path class="span" d="M{low:.1f},{y}H{high:.1f}"/>')
        for value, name in row.values:
            parts.append(f'<g class="point"><title>{html.escape(name)}</title>'
                         + marker(row.style, NAMES + x.share(value) * across, y) + "</g>")
        parts.append("</g>")
    return svg(title, WIDTH, height, "".join(parts))


def svg(title: str, width: float, height: float, inner: str, attributes: str = "") -> str:
    """An SVG image with a title for readers that cannot see it."""
    return (f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(title)}"'
            f'{attributes}>{inner}</svg>')


def text(x: float, y: float, content: str, anchor: str) -> str:
    """A text in an SVG image."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(content)}</text>'


def marker(style: int, x: float, y: float) -> str:
    """The marker of a style at a place."""
    path = MARKERS[style % len(MARKERS)]
    return f'<path class="marker" d="{path}" transform="translate({x:.1f} {y:.1f})"/>'


def classes(series: Series | Row) -> str:
    """The classes of a series in the style sheet."""
    return f"series s{series.style % STYLES}" + (" bold" if series.bold else "")


def dash(line: Series) -> str:
    """The dash pattern of a line; bold lines are not dashed."""
    return "" if line.bold else DASHES[line.style % len(DASHES)]


def some_of(places: Points, style: int) -> Points:
    """The places of a line's markers: about six, shifted by the style so that few overlap."""
    step = max(1, len(places) // 6)
    return places[style * step // STYLES::step]


def legend(lines: Sequence[Series]) -> str:
    """The names of lines, each with a piece of its line."""
    parts = []
    for line in lines:
        sample = (f'<svg viewBox="0 0 44 14" aria-hidden="true"><g class="{classes(line)}">'
                  f'<polyline stroke-dasharray="{dash(line)}" points="0,7 44,7"/>'
                  f'{marker(line.style, 22, 7)}</g></svg>')
        parts.append(f"<li>{sample} {html.escape(line.name)}"
                     + ("" if line.points else " (no data)") + "</li>")
    return f'<ul class="legend">{"".join(parts)}</ul>'
