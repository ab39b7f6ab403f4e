#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Clock synchronisation, computed independently of the engines: the reference for
net/timely/engine/strip_fit.c and clock_loop.c.

    reference_clock.py [ROUNDS [SEED]]	compare the engines with the reference, print TAP

The widest strip is a linear programme: find the slope b and the intercepts of two parallel lines
such that all upper bounds are on or above one line, all lower bounds on or below the other, and the
difference of the intercepts is largest. An optimum is at a slope through two points of one
direction, so all of these slopes are tried, in exact arithmetic with fractions. The engine's strip
has to have exactly this height.

The offsets of a graph are the minimum-norm solution of numpy's least squares. The engine may differ
by the rounding to ns. Surpluses of triangles are computed from a matrix.

The engines are compiled into a shared library and called by ctypes.
"""

import ctypes
import itertools
import os
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy

HERE = os.path.dirname(os.path.realpath(__file__))
ENGINE = os.path.join(HERE, "../net/timely/engine")
HOSTS_MAX = 64
NONE = 2**32 - 1


class Set(ctypes.Structure):
    """struct timely_strip_set"""
    _fields_ = [("x", ctypes.POINTER(ctypes.c_int64)), ("y", ctypes.POINTER(ctypes.c_int64)),
                ("hull", ctypes.POINTER(ctypes.c_uint16)), ("count", ctypes.c_uint32),
                ("hulls", ctypes.c_uint32)]


class Deal(ctypes.Structure):
    """struct timely_strip_deal"""
    _fields_ = [(name, ctypes.c_uint32) for name in ("part", "skip", "direction")]


class Line(ctypes.Structure):
    """struct timely_strip_line"""
    _fields_ = [*((name, ctypes.c_int64) for name in ("dy", "dx", "width", "at_ns")),
                ("support", ctypes.c_uint32 * 4), ("ends", ctypes.c_uint32 * 2)]


class Edge(ctypes.Structure):
    """struct timely_loop_edge"""
    _fields_ = [("a", ctypes.c_uint16), ("b", ctypes.c_uint16), ("offset_ns", ctypes.c_int64),
                ("loops", ctypes.c_uint32), ("surplus_ns", ctypes.c_uint64),
                ("excluded", ctypes.c_bool), ("residual_ns", ctypes.c_int64)]


class Surplus(ctypes.Structure):
    """struct timely_loop_surplus"""
    _fields_ = [("loops", ctypes.c_uint32), ("p50_ns", ctypes.c_uint64),
                ("p99_ns", ctypes.c_uint64), ("max_ns", ctypes.c_uint64),
                ("edges", ctypes.c_uint32), ("excluded", ctypes.c_uint32)]


class Work(ctypes.Structure):
    """struct timely_loop_work"""
    _fields_ = [("edge", ctypes.c_uint16 * HOSTS_MAX * HOSTS_MAX),
                ("degree", ctypes.c_uint16 * HOSTS_MAX), ("counts", ctypes.c_uint32 * 1024),
                ("rest_q16", ctypes.c_int64 * HOSTS_MAX)]


def engines(directory):
    """Compile the engines. Return the library."""
    path = os.path.join(directory, "engines.so")
    sources = [os.path.join(ENGINE, name) for name in ("strip.c", "strip_fit.c", "clock_loop.c")]
    subprocess.run(["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-I", os.path.join(ENGINE, "user"),
                    "-o", path, *sources], check=True)
    library = ctypes.CDLL(path)
    library.timely_strip_widest.restype = ctypes.c_bool
    return library


# ---- the widest strip ----

def draw_points(random):
    """The points of both directions: times, newest first, and heights; lower bounds are negated."""
    sets = []
    x_most, y_most = 2 ** int(random.integers(6, 34)), 2 ** int(random.integers(1, 26))
    for _ in range(2):
        count = int(random.integers(1, 12))
        x = sorted({int(v) for v in random.integers(-x_most, 1, count)}, reverse=True)
        sets.append((x, [int(v) for v in random.integers(-y_most, y_most, len(x))]))
    return sets


def height(sets, slope):
    """Height of the strip of a slope."""
    (up_x, up_y), (down_x, down_y) = sets
    return min(y - slope * x for x, y in zip(up_x, up_y)) + \
        min(y + slope * x for x, y in zip(down_x, down_y))


def widest(sets):
    """Height of the widest strip; None if there is no limit."""
    (up_x, _), (down_x, _) = sets
    if max(up_x) <= min(down_x) or max(down_x) <= min(up_x):
        return None
    slopes = [sign * Fraction(y[i] - y[j], x[i] - x[j])
              for (x, y), sign in zip(sets, (1, -1))
              for i, j in itertools.combinations(range(len(x)), 2)]
    return max(height(sets, slope) for slope in slopes)


def strip_agrees(library, random):
    """Compare one random set of points."""
    sets, line = draw_points(random), Line()
    both = (Set * 2)()
    for one, (x, y) in zip(both, sets):
        one.x, one.y = (ctypes.c_int64 * len(x))(*x), (ctypes.c_int64 * len(y))(*y)
        one.hull, one.count = (ctypes.c_uint16 * len(x))(), len(x)
    found = library.timely_strip_widest(both, ctypes.byref(Deal(8, NONE, 0)), ctypes.byref(line))
    expected = widest(sets)
    if expected is None or not found:
        return expected is None and not found
    return Fraction(line.width, line.dx) == expected == \
        height(sets, Fraction(line.dy, line.dx))


# ---- graphs ----

def draw_graph(random):
    """A connected graph: number of hosts, and edges with a measured offset."""
    hosts = int(random.integers(2, HOSTS_MAX + 1))
    true = random.integers(-2**55, 2**55, hosts)
    most = 2 ** int(random.integers(1, 20))
    density = random.random()
    edges = []
    for a in range(hosts):
        for b in range(a):
            if b == a - 1 or random.random() < density:
                edges.append((a, b, int(true[b] - true[a]) + int(random.integers(-most, most))))
    return hosts, edges


def graph_agrees(library, random):
    """Compare one random graph. Return whether least squares and triangles agree."""
    hosts, edges = draw_graph(random)
    work, surplus = Work(), Surplus()
    array = (Edge * len(edges))(*(Edge(a, b, offset) for a, b, offset in edges))
    offsets = (ctypes.c_int64 * HOSTS_MAX)()
    if library.timely_loop_least_squares(array, len(edges), hosts, ctypes.byref(work), offsets):
        return False, False
    # Relative to one path, so that doubles are exact enough.
    base = [0] * hosts
    for a, b, offset in edges:
        if b == a - 1:
            base[a] = base[b] - offset
    matrix = numpy.zeros((len(edges), hosts))
    values = numpy.zeros(len(edges))
    for i, (a, b, offset) in enumerate(edges):
        matrix[i, a], matrix[i, b] = -1, 1
        values[i] = offset - (base[b] - base[a])
    solution = numpy.linalg.lstsq(matrix, values, rcond=None)[0]
    worst = max(abs(offsets[i] - base[i] - (solution[i] - solution[0])) for i in range(hosts))

    library.timely_loop_triangles(array, len(edges), ctypes.byref(work), ctypes.byref(surplus))
    by_pair = {(a, b): offset for a, b, offset in edges}
    sums = sorted(abs(by_pair[a, b] + by_pair[b, c] - by_pair[a, c])
                  for a, b, c in itertools.combinations(range(hosts - 1, -1, -1), 3)
                  if {(a, b), (b, c), (a, c)} <= by_pair.keys())
    same = surplus.loops == len(sums)
    if sums:
        median = sums[(len(sums) + 1) // 2 - 1]
        same &= surplus.max_ns == sums[-1] and median * 15 / 16 <= surplus.p50_ns <= median
    return worst <= 0.6, same


def main():
    """Compare, and print TAP."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2018
    random = numpy.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as directory:
        library = engines(directory)
        strips = [strip_agrees(library, random) for _ in range(rounds)]
        graphs = [graph_agrees(library, random) for _ in range(rounds // 8 + 1)]
    results = [("the widest strip", strips),
               ("least squares", [one for one, _ in graphs]),
               ("surpluses of triangles", [one for _, one in graphs])]
    print(f"TAP version 13\n1..{len(results)}\n# seed {seed}")
    for i, (text, agree) in enumerate(results, 1):
        print(f"{'ok' if all(agree) else 'not ok'} {i} - {text} # {sum(agree)} of {len(agree)} agree")
    return 0 if all(all(agree) for _, agree in results) else 1


if __name__ == "__main__":
    sys.exit(main())
