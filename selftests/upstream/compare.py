#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare the results of one suite of tests for the kernel's module and for ours.

    compare.py SUITE PEER.tap OURS.tap

The files have TAP, PEER's with cubic or fq and OURS with timely. differences.txt beside this
program lists the cases that may differ, with the reasons, and the number of cases that must pass
with PEER, in all and of parts of the suite. Prints TAP with one result for each case that passes
with PEER or with OURS. It fails if
  - a case differs that is not listed,
  - a case that is listed does not differ,
  - a case is missing in one of the files,
  - fewer cases pass with PEER than there must, in all or of a part that has run.
A case that passes with neither is not counted: the guest cannot run it. The exit status is 0 only
if nothing has failed.
"""
import fnmatch
import os
import re
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "differences.txt")


def results(path):
    """Return {case: passed} and {case: the lines of diagnostics before its result}."""
    passed, reasons, lines = {}, {}, []
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            match = re.match(r"(not )?ok \d+ (?:- )?(.*?)\s*(#.*)?$", line)
            if match:
                skipped = re.match(r"# SKIP", match[3] or "", re.I)
                passed[match[2]] = not match[1] and not skipped
                reasons[match[2]], lines = lines, []
            elif line.startswith("#"):
                lines.append(line.rstrip())
    return passed, reasons


def expectations(suite):
    """Return {pattern: number that must pass with the peer}, {pattern: (who passes, reason)}."""
    least, listed = {}, {}
    with open(TABLE, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split("|")]
            floor = re.match(r"at least\b *(.*)", fields[1]) if len(fields) == 3 else None
            if floor and fields[2].isdigit():
                if fields[0] == suite:
                    least[floor[1] or "*"] = int(fields[2])
            elif len(fields) == 4 and fields[2] in ("peer", "ours") and fields[3]:
                if fields[0] == suite:
                    listed[fields[1]] = fields[2:]
            else:
                sys.exit(f"{TABLE}:{number}: expected SUITE | at least PATTERN | NUMBER, or "
                         "SUITE | CASE | peer or ours, who passes | REASON")
    if "*" not in least:
        sys.exit(f"{TABLE}: no line '{suite} | at least | NUMBER'")
    return least, listed


def judge(case, peer, ours, expected, reason):
    """Return an error's text, or "", and a remark."""
    if case not in peer or case not in ours:
        return ("it did not run with " +
                " and ".join(name for name, ran in (("the peer", peer), ("timely", ours))
                             if case not in ran)), ""
    winner = "" if peer[case] == ours[case] else "peer" if peer[case] else "ours"
    if winner == expected:
        return "", f" # expected difference: {reason}" if expected else ""
    if not winner:
        return "differences.txt lists it, but there is no difference: remove the line", ""
    return f"it passes only with {'the peer' if winner == 'peer' else 'timely'}", ""


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.split("\n\n")[1].strip())
    suite, (peer, peers_reasons), (ours, our_reasons) = sys.argv[1], *map(results, sys.argv[2:])
    least, listed = expectations(suite)
    number = failed = 0
    print("TAP version 13")
    cases = sorted({*peer, *ours})
    listed = {case: entry for pattern, entry in listed.items()
              for case in fnmatch.filter(cases, pattern) or [pattern]}
    for case in sorted({*cases, *listed}):
        if not (peer.get(case, True) or ours.get(case, True) or case in listed):
            print(f"# passes with neither: {case}")
            continue
        number += 1
        error, remark = judge(case, peer, ours, *listed.get(case, ("", "")))
        if error:
            failed += 1
            for line in [f"# {error}"] + peers_reasons.get(case, []) + our_reasons.get(case, []):
                print(line)
        print(f"{'not ok' if error else 'ok'} {number} {case}{remark}")
    print(f"# with the peer {sum(peer.values())} of {len(peer)} pass, "
          f"with timely {sum(ours.values())}")
    for pattern, floor in least.items():
        part = fnmatch.filter(peer, pattern)
        if pattern != "*" and not part:
            continue
        number += 1
        few = sum(peer[case] for case in part) < floor
        failed += few
        result = "not ok" if few else "ok"
        print(f"{result} {number} at least {floor} cases pass with the peer: {pattern}")
    print(f"1..{number}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
