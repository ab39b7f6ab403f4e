#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run the scenarios of Documentation/reproductions.md and hostile-networks.md, one after the
# other, and write both documents.
#
#   reproductions.sh		run scenarios that have no results yet; finished cells of an
#				interrupted run are kept
#   reproductions.sh FIGURE...	run the scenarios of these figures again; cells that use no
#				module of this project are kept
#
# With FIGURE, RESUME=all keeps all cells in build/results/, and RESUME=none keeps none.
# LAB_ARGS="--seeds 1" runs one seed only. `reproductions.py names` prints all figures.

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
if [ $# -gt 0 ]; then
	scenarios=$(tools/docs/reproductions.py scenarios "$@")
else
	scenarios=$(tools/docs/reproductions.py missing)
	RESUME=all
fi
export RESUME="${RESUME-peers}"
total=$(echo "$scenarios" | grep -c . || :)
[ "$total" -gt 0 ] || echo "All figures have results. To run some again, name them: reproductions.sh FIGURE..."
count=0
failed=
for scenario in $scenarios; do
	count=$((count + 1))
	echo "== $scenario, $count of $total, $(date +%H:%M)"
	tools/docs/results.sh "$scenario" || failed="$failed $scenario"
done
tools/docs/make.sh
[ -z "$failed" ] || { echo "scenarios that failed, missed what they expect, or do not fit the documents:$failed" >&2; exit 1; }
