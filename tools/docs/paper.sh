#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run what Documentation/paper.md is made from, a scenario at a time, and write it.
#
#   paper.sh		what has no results yet; cells of an interrupted run are kept
#   paper.sh FIGURE...	those figures' scenarios, again; cells of peers are kept
#
# RESUME=all keeps all cells of build/results/ for named figures as well, RESUME=none none.
# LAB_ARGS="--seeds 1" does with one seed.

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
if [ $# -gt 0 ]; then
	scenarios=$(tools/docs/paper.py scenarios "$@")
else
	scenarios=$(tools/docs/paper.py missing)
	RESUME=all
fi
export RESUME="${RESUME-peers}"
total=$(echo "$scenarios" | grep -c . || :)
[ "$total" -gt 0 ] || echo "All figures have results; name some to run them again."
count=0
failed=
for scenario in $scenarios; do
	count=$((count + 1))
	echo "== $scenario, $count of $total, $(date +%H:%M)"
	tools/docs/results.sh "$scenario" || failed="$failed $scenario"
done
tools/docs/make.sh
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
