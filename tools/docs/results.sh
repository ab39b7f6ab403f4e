#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run the scenarios that the documents quote (or those named) and keep what they
# need in results/; raw results stay in build/results.

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
[ $# -gt 0 ] || set -- table1 incast presets gains qdisc fig16

for scenario; do
	raw=build/results/$scenario
	rm -rf "$raw"
	tools/lab/lab run "$scenario" --out "$raw"
	tools/lab/lab report "$raw"
	mkdir -p "results/$scenario"
	cp "$raw/summary.json" "$raw/table.md" "$raw"/*.svg "results/$scenario/"
done
tools/docs/make.sh
