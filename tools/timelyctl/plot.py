#!/usr/bin/python3 -I
# SPDX-License-Identifier: GPL-2.0
"""timely-plot: draws a recording of `timelyctl record` or `timelyctl clock record`: SVG, an HTML page or PNG.

Needs only Python's standard library, but for PNG rsvg-convert. If a recording has more connections than
a plot can show, those with the longest queueing delays are drawn; of the peers of timely-clockd, those
with the largest bounds.
"""

import argparse
import csv
import html
import math
import os
import subprocess
import sys

LINES = 8       # connections in a plot, one for each colour
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
DASHES = ("none", "8 3", "3 3", "12 3 3 3")     # so that lines differ without colours, too
WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 960, 180, 80, 20, 40, 45
KEY = ("net_cookie", "from", "from_port", "to", "to_port")
NUMBERS = ("unix_time_s", "rate_bps", "rtt_ns", "queue_ns", "pauses", "paused_ns")
CLOCK_KEY = ("peer",)
CLOCK_SIGNED = ("system_offset_ns", "surplus_ns")
CLOCK_NUMBERS = ("unix_time_s", "bound_ns") + CLOCK_SIGNED


class Wrong(Exception):
    """The file is not a recording."""


def number(text, line, least=0):
    """The number in a field, or None for an empty field."""
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not least <= value < math.inf:
        raise Wrong(f"line {line}: {text[:40]!r} is no number of a recording")
    return value


def read(file):
    """Return the readings, a list of dicts of numbers, by connection or by peer of timely-clockd."""
    rows = csv.DictReader(file)
    clocks = "peer" in (rows.fieldnames or [])
    key, numbers = (CLOCK_KEY, CLOCK_NUMBERS) if clocks else (KEY, NUMBERS)
    needed = ("unix_time_s",) if clocks else ("unix_time_s", "rate_bps", "paused_ns")
    missing = [name for name in key + numbers if name not in (rows.fieldnames or [])]
    if missing:
        raise Wrong(f"the first line does not name the column {missing[0]}: "
                    "is this a file of timelyctl record?")
    readings = {}
    for row in rows:
        if None in row.values():
            raise Wrong(f"line {rows.line_num} is too short; if the recording was interrupted, "
                        "remove this line")
        values = {name: number(row[name], rows.line_num, -1e18 if name in CLOCK_SIGNED else 0)
                  for name in numbers}
        if None in (values[name] for name in needed):
            raise Wrong(f"line {rows.line_num}: a number is missing")
        readings.setdefault(tuple(row[name] for name in key), []).append(values)
    if not readings:
        raise Wrong(f"the recording has no {'peers' if clocks else 'connections'}")
    return readings


def of_clocks(readings):
    """Whether the readings are of peers of timely-clockd."""
    return len(next(iter(readings))) == len(CLOCK_KEY)


def worst(readings):
    """The connections to draw, the longest mean queueing delay first; the peers, the largest bound first."""
    column = "bound_ns" if of_clocks(readings) else "queue_ns"

    def delay(key):
        delays = [row[column] for row in readings[key] if row[column] is not None]
        return sum(delays) / len(delays) if delays else -1
    return sorted(readings, key=delay, reverse=True)[:LINES]


def paused(rows):
    """Points of the share of time that On-Ramp has paused a connection."""
    for before, row in zip(rows, rows[1:]):
        seconds = row["unix_time_s"] - before["unix_time_s"]
        if seconds > 0:
            share = (row["paused_ns"] - before["paused_ns"]) / 1e7 / seconds
            yield row["unix_time_s"], min(max(share, 0), 100)


def points(rows, column, scale):
    """Points of a column; a connection has no RTT at first."""
    return [(row["unix_time_s"], row[column] * scale) for row in rows if row[column] is not None]


def round_up(value):
    """The next number of the kind 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * .999)


def polyline(line, panel, style):
    """A line of a panel. A point alone is a short line."""
    start, span, top, low, high = panel
    places = [f"{LEFT + (time - start) / span * (WIDTH - LEFT - RIGHT):.1f},"
              f"{top + PANEL - (value - low) / (high - low) * PANEL:.1f}" for time, value in line]
    places += places[:1] if len(places) == 1 else []
    return (f'<polyline points="{" ".join(places)}" fill="none" stroke-width="1.5" '
            f'stroke-linecap="round" {style}/>')


def draw_panel(title, top, lines, start, span):
    """A panel: its title, the scale of its values, and a line for each connection."""
    values = [value for line in lines for _, value in line]
    high = round_up(max(map(abs, values), default=0) or 1)
    low = -high if min(values, default=0) < 0 else 0
    yield f'<text x="{LEFT}" y="{top - 8}">{title}</text>'
    for part in range(5):
        y = top + PANEL - part * PANEL / 4
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#ddd"/>'
        label = low + (high - low) * part / 4
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{label:g}</text>'
    for index, line in enumerate(lines):
        if line:
            yield polyline(line, (start, span, top, low, high), style_of(index))


def style_of(index):
    """Colour and dashes of a line."""
    return f'stroke="{COLOURS[index]}" stroke-dasharray="{DASHES[index % len(DASHES)]}"'


def end_name(address, port):
    """An address and a port as timelyctl writes them."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def name_of(key):
    """What the key below the plot says about a line."""
    return f"{end_name(*key[1:3])} to {end_name(*key[3:])}" if len(key) == len(KEY) else key[0]


def panels_of(readings, chosen):
    """The titles of the panels, and the lines in them."""
    if of_clocks(readings):
        return (("system clock of the peer minus that of this host, us",
                 [points(rows, "system_offset_ns", 1e-3) for rows in chosen]),
                ("bound of the offset between the probe clocks, us",
                 [points(rows, "bound_ns", 1e-3) for rows in chosen]),
                ("surplus of loops, us", [points(rows, "surplus_ns", 1e-3) for rows in chosen]))
    return (("rate, Mb/s", [points(rows, "rate_bps", 1e-6) for rows in chosen]),
            ("RTT, us", [points(rows, "rtt_ns", 1e-3) for rows in chosen]),
            ("queueing delay, us", [points(rows, "queue_ns", 1e-3) for rows in chosen]),
            ("paused by On-Ramp, % of the time", [list(paused(rows)) for rows in chosen]))


def draw(readings):
    """Return the plot, as SVG."""
    keys = worst(readings)
    chosen = [readings[key] for key in keys]
    start = min(row["unix_time_s"] for rows in chosen for row in rows)
    span = max(row["unix_time_s"] for rows in chosen for row in rows) - start or 1
    panels = panels_of(readings, chosen)
    height = TOP + len(panels) * (PANEL + GAP) + 20 * len(keys) + 20
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for index, (title, lines) in enumerate(panels):
        text += draw_panel(title, TOP + index * (PANEL + GAP), lines, start, span)
    y = TOP + len(panels) * (PANEL + GAP) - 25
    for part in range(5):
        x = LEFT + part / 4 * (WIDTH - LEFT - RIGHT)
        text.append(f'<text x="{x}" y="{y}" text-anchor="middle">{span * part / 4:.6g} s</text>')
    for index, key in enumerate(keys):
        y += 20
        name = html.escape(name_of(key))
        text.append(f'<path d="M{LEFT} {y}h40" stroke-width="1.5" {style_of(index)}/>')
        text.append(f'<text x="{LEFT + 50}" y="{y + 4}">{name}</text>')
    if len(readings) > len(keys):
        what = ("peers: those with the largest mean bounds" if of_clocks(readings) else
                "connections: those with the longest mean queueing delays")
        text.append(f'<text x="{LEFT}" y="{y + 24}">{len(keys)} of {len(readings)} {what}</text>')
    return "\n".join(text + ["</svg>", ""])


def table_of(readings):
    """Lines of the page's table: its head, and the connections or peers of the plot."""
    clocks = of_clocks(readings)
    columns = ((("system_offset_ns", 1e-3), ("bound_ns", 1e-3), ("surplus_ns", 1e-3)) if clocks else
               (("rate_bps", 1e-6), ("rtt_ns", 1e-3), ("queue_ns", 1e-3)))
    yield ("<table><tr><th>peer<th>mean offset of the system clock, us<th>maximum<th>mean bound, us"
           "<th>maximum<th>mean surplus, us<th>maximum" if clocks else
           "<table><tr><th>from<th>to<th>mean rate, Mb/s<th>maximum<th>mean RTT, us<th>maximum"
           "<th>mean queueing delay, us<th>maximum")
    for key in worst(readings):
        cells = list(key) if clocks else [end_name(*key[1:3]), end_name(*key[3:])]
        for column, scale in columns:
            values = [value for _, value in points(readings[key], column, scale)]
            cells += ([f"{sum(values) / len(values):.{3 if clocks else 1}f}",
                       f"{max(values):.{3 if clocks else 1}f}"] if values else ["-"] * 2)
        yield "<tr><td>" + "<td>".join(html.escape(cell) for cell in cells)
    yield "</table></html>"


def page(readings):
    """Return an HTML page that needs no other file: the plot, and a table of what is in it."""
    title = "Clocks of other hosts" if of_clocks(readings) else "Connections that use timely"
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en"><meta charset="utf-8">', "<title>timelyctl record</title>",
        "<style>body{font-family:sans-serif} td,th{padding:.2em .8em} td{text-align:right}</style>",
        f"<h1>{title}</h1>", draw(readings), *table_of(readings), ""])


def png(readings):
    """Return the plot as PNG."""
    try:
        return subprocess.run(["rsvg-convert"], input=draw(readings).encode(), check=True,
                              stdout=subprocess.PIPE).stdout
    except FileNotFoundError:
        raise Wrong("PNG needs the program rsvg-convert: install librsvg2-bin (Debian) or "
                    "librsvg2-tools (Fedora), or write .svg or .html") from None
    except subprocess.CalledProcessError as error:
        raise Wrong(f"rsvg-convert has failed with status {error.returncode}") from None


FORMATS = {".svg": lambda readings: draw(readings).encode(),
           ".html": lambda readings: page(readings).encode(), ".png": png}


def main():
    """Read the recording and write the plot."""
    parser = argparse.ArgumentParser(
        prog="timely-plot", description="Draw a recording of timelyctl record.")
    parser.add_argument("file", metavar="FILE", help="the recording, or - for standard input")
    parser.add_argument("-o", metavar="OUTPUT", dest="output",
                        help="write this file, whose name ends with .svg, .html or .png; "
                             "by default, SVG is printed")
    words = parser.parse_args()
    make = FORMATS.get(os.path.splitext(words.output)[1] if words.output else ".svg")
    if not make:
        parser.error(f"-o {words.output}: the name must end with .svg, .html or .png")
    name = words.file
    try:
        with open(0 if name == "-" else name, encoding="utf-8", newline="") as file:
            plot = make(read(file))
        name = words.output or "standard output"
        with open(words.output or 1, "wb") as file:
            file.write(plot)
    except (OSError, UnicodeDecodeError, csv.Error, Wrong) as error:
        sys.exit(f"timely-plot: {name}: {error}")


main()
