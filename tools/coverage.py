#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Merge the counts of gcov from several guests into one report; see coverage.sh.

    coverage.py RESULTS REASONS MODULES...

RESULTS has a directory for each guest, with files .gcda at the path of the object file.
REASONS has a line FILE FUNCTION REASON for each function (or group of functions by a pattern)
with blocks that tests do not execute. MODULES are the directories in which the modules were
built, with gcov's files .gcno.
"""
import collections
import fnmatch
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

LEAST_PERCENT = 90


def counts_of(notes, data):
    """Yield (file, line, function, count) for the lines of one object file in one guest."""
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(notes, f"{work}/unit.gcno")
        shutil.copy(data, f"{work}/unit.gcda")
        subprocess.run(["gcov", "--json-format", "unit.gcda"], cwd=work, check=True,
                       stdout=subprocess.DEVNULL)
        with gzip.open(f"{work}/unit.gcov.json.gz") as file:
            found = json.load(file)
    for source in found["files"]:
        for line in source["lines"]:
            yield source["file"], line["line_number"], line.get("function_name", ""), line["count"]


def merged(builds, results):
    """Counts over all guests: {file: {line: [function, count]}}."""
    total = collections.defaultdict(dict)
    for guest in sorted(os.scandir(results), key=lambda entry: entry.name):
        base = guest.path
        for folder, _, names in os.walk(base):
            for name in names:
                data = os.path.join(folder, name)
                source = os.path.relpath(data, base).removesuffix(".gcda")
                modules = next((build for build in builds
                                if f"/{source}".startswith(f"{build}/")), None)
                if not name.endswith(".gcda") or not modules:
                    continue
                for file, line, function, count in counts_of(f"/{source}.gcno", data):
                    file = os.path.relpath(file, modules) if os.path.isabs(file) else file
                    if file.startswith("net/"):
                        total[file].setdefault(line, [function, 0])[1] += count
    return total


def blocks(lines):
    """Yield the blocks of successive lines that were not executed, each line with its function."""
    run = []
    for line in sorted(lines):
        function, count = lines[line]
        if run and (count or run[-1][1] != function):
            yield run
            run = []
        if count == 0:
            run.append((line, function))
    if run:
        yield run


def main():
    results, reasons_file, *builds = sys.argv[1:]
    reasons = []
    with open(reasons_file) as file:
        for text in file:
            if text.strip() and not text.startswith("#"):
                reasons.append(text.split(None, 2))
    total = merged(builds, results)
    every = sum(len(lines) for lines in total.values())
    if not every:
        sys.exit(f"coverage: no counts of net/ in {results}")
    hit = 0
    print(f"{'file':40} {'lines':>6} {'run':>6} {'%':>6}")
    for file, lines in sorted(total.items()):
        run = sum(count > 0 for _, count in lines.values())
        hit += run
        print(f"{file:40} {len(lines):6} {run:6} {100 * run / len(lines):6.1f}")
    print(f"{'all':40} {every:6} {hit:6} {100 * hit / every:6.1f}\n")
    unexplained = 0
    for file, lines in sorted(total.items()):
        for run in blocks(lines):
            function = run[0][1]
            reason = next((text.strip() for where, what, text in reasons
                           if fnmatch.fnmatch(file, where) and fnmatch.fnmatch(function, what)), None)
            unexplained += reason is None
            print(f"{file}:{run[0][0]}-{run[-1][0]} {function}: {reason or 'NO REASON GIVEN'}")
    print(f"\n{'ok' if 100 * hit >= LEAST_PERCENT * every else 'not ok'} 1 - {LEAST_PERCENT} % of the lines")
    print(f"{'not ok' if unexplained else 'ok'} 2 - a reason for each block that was not executed")
    print(f"# blocks without a reason: {unexplained}")
    sys.exit(100 * hit < LEAST_PERCENT * every or unexplained > 0)


main()
