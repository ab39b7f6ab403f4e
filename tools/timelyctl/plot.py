#!/usr/bin/python3 -I
# SPDX-License-Identifier: GPL-2.0
"""timely-plot: draws a recording of `timelyctl record`: SVG, an HTML page or PNG.

Needs only Python's standard library, but for PNG rsvg-convert. If a recording has more connections than
a plot can show, those with the longest queueing delays are drawn.
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


class Wrong(Exception):
    """The file is not a recording."""


def number(text, line):
    """The number in a field, or None for an empty field."""
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not 0 <= value < math.inf:
        raise Wrong(f"line {line}: {text[:40]!r} is no number of a recording")
    return value


def read(file):
    """Return the readings, a list of dicts of numbers, by connection."""
    rows = csv.DictReader(file)
    missing = [name for name in KEY + NUMBERS if name not in (rows.fieldnames or [])]
    if missing:
        raise Wrong(f"the first line does not name the column {missing[0]}: "
                    "is this a file of timelyctl record?")
    readings = {}
    for row in rows:
        if None in row.values():
            raise Wrong(f"line {rows.line_num} is too short; if the recording was interrupted, "
                        "remove this line")
        values = {name: number(row[name], rows.line_num) for name in NUMBERS}
        if None in (values["unix_time_s"], values["rate_bps"], values["paused_ns"]):
            raise Wrong(f"line {rows.line_num}: a number is missing")
        readings.setdefault(tuple(row[name] for name in KEY), []).append(values)
    if not readings:
        raise Wrong("the recording has no connections")
    return readings


def worst(readings):
    """The connections to draw, the longest mean queueing delay first."""
    def delay(key):
        delays = [row["queue_ns"] for row in readings[key] if row["queue_ns"] is not None]
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
    start, span, top, high = panel
    places = [f"{LEFT + (time - start) / span * (WIDTH - LEFT - RIGHT):.1f},"
              f"{top + PANEL - value / high * PANEL:.1f}" for time, value in line]
    places += places[:1] if len(places) == 1 else []
    return (f'<polyline points="{" ".join(places)}" fill="none" stroke-width="1.5" '
            f'stroke-linecap="round" {style}/>')


def draw_panel(title, top, lines, start, span):
    """A panel: its title, the scale of its values, and a line for each connection."""
    high = round_up(max((value for line in lines for _, value in line), default=0) or 1)
    yield f'<text x="{LEFT}" y="{top - 8}">{title}</text>'
    for part in range(5):
        y = top + PANEL - part * PANEL / 4
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{high * part / 4:g}</text>'
    for index, line in enumerate(lines):
        if line:
            yield polyline(line, (start, span, top, high), style_of(index))


def style_of(index):
    """Colour and dashes of a line."""
    return f'stroke="{COLOURS[index]}" stroke-dasharray="{DASHES[index % len(DASHES)]}"'


def end_name(address, port):
    """An address and a port as timelyctl writes them."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def draw(readings):
    """Return the plot, as SVG."""
    keys = worst(readings)
    chosen = [readings[key] for key in keys]
    start = min(row["unix_time_s"] for rows in chosen for row in rows)
    span = max(row["unix_time_s"] for rows in chosen for row in rows) - start or 1
    panels = (("rate, Mb/s", [points(rows, "rate_bps", 1e-6) for rows in chosen]),
              ("RTT, us", [points(rows, "rtt_ns", 1e-3) for rows in chosen]),
              ("queueing delay, us", [points(rows, "queue_ns", 1e-3) for rows in chosen]),
              ("paused by On-Ramp, % of the time", [list(paused(rows)) for rows in chosen]))
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
        name = html.escape(f"{end_name(*key[1:3])} to {end_name(*key[3:])}")
        text.append(f'<path d="M{LEFT} {y}h40" stroke-width="1.5" {style_of(index)}/>')
        text.append(f'<text x="{LEFT + 50}" y="{y + 4}">{name}</text>')
    if len(readings) > len(keys):
        text.append(f'<text x="{LEFT}" y="{y + 24}">{len(keys)} of {len(readings)} connections: '
                    'those with the longest mean queueing delays</text>')
    return "\n".join(text + ["</svg>", ""])


def page(readings):
    """Return an HTML page that needs no other file: the plot, and a table of the connections in it."""
    rows = []
    for key in worst(readings):
        cells = [end_name(*key[1:3]), end_name(*key[3:])]
        for column, scale in (("rate_bps", 1e-6), ("rtt_ns", 1e-3), ("queue_ns", 1e-3)):
            values = [value for _, value in points(readings[key], column, scale)]
            cells += [f"{sum(values) / len(values):.1f}", f"{max(values):.1f}"] if values else ["-"] * 2
        rows.append("<tr><td>" + "<td>".join(html.escape(cell) for cell in cells))
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en"><meta charset="utf-8">', "<title>timelyctl record</title>",
        "<style>body{font-family:sans-serif} td,th{padding:.2em .8em} td{text-align:right}</style>",
        "<h1>Connections that use timely</h1>", draw(readings),
        "<table><tr><th>from<th>to<th>mean rate, Mb/s<th>maximum<th>mean RTT, us<th>maximum"
        "<th>mean queueing delay, us<th>maximum", *rows, "</table></html>", ""])


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
