#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run the scenarios that the documents quote (or those named) and keep what they
# need in results/; raw results stay in build/results. With KEEP=1 the benches, which
# want a quiet machine, are not run again: their last results are taken. With RESUME=all
# cells that are in build/results are kept, with RESUME=peers those that had no part of ours.
# LAB_ARGS: more for lab run, such as "--seeds 1".

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
[ $# -gt 0 ] || set -- alone table1 incast presets gains qdisc fig16 clock fig1 fig2 fig11 fig12 bench ack \
	onramp-cost onramp-fig5 onramp-requests onramp-clocks onramp-fig1 onramp-websearch-40 onramp-websearch \
	onramp-websearch-80 onramp-hadoop onramp-rpc onramp-fig13 onramp-fig18 onramp-fig19 \
	onramp-fig20 onramp-fig21

# The first table of each section is what a document quotes.
keep_bench() {
	rm -rf results/bench
	mkdir -p results/bench
	cp "$1/table.md" "$1/cycles.svg" results/bench/
	awk 'BEGIN { split("paced shuffled unpaced memory", name) }
		/^## / { n++; tables = 0 }
		/^\|/ && !inside { tables++ }
		{ inside = /^\|/ }
		inside && n && tables == 1 { print >("results/bench/" name[n] ".md") }' "$1/table.md"
}

keep_ack() {
	mkdir -p results/ack
	for part in one many cold one-parts many-parts table; do
		cp "$1/$part.md" results/ack/
	done
}

keep_onramp_cost() {
	mkdir -p results/onramp-cost
	for part in sender receiver single table; do
		cp "$1/$part.md" results/onramp-cost/
	done
}

for scenario; do
	raw=build/results/$scenario
	if [ "$scenario" = bench ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/bench/bench.sh
		keep_bench "$raw"
		continue
	fi
	if [ "$scenario" = ack ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/bench/ack.sh
		keep_ack "$raw"
		continue
	fi
	if [ "$scenario" = onramp-cost ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/bench/onramp.sh
		keep_onramp_cost "$raw"
		continue
	fi
	case ${RESUME-} in
	all)	keep=--keep ;;
	peers)	keep=--keep-peers ;;
	*)	keep= ;;
	esac
	# shellcheck disable=SC2086 # none or several words
	tools/lab/lab run "$scenario" $keep --out "$raw" ${LAB_ARGS-}
	tools/lab/lab report "$raw"
	rm -rf "results/$scenario"
	mkdir -p "results/$scenario"
	cp "$raw/summary.json" "$raw/table.md" "$raw"/*.svg "results/$scenario/"
	[ ! -e "$raw/events.md" ] || cp "$raw/events.md" "results/$scenario/"
done
tools/docs/make.sh
