#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run scenarios and benches, and copy the tables, plots and summaries that documents need to
# results/. Raw results stay in build/results/. At the end the documents are written again.
#
#   results.sh [NAME]...	scenarios, bench-packet, bench-trim, bench-ack, bench-onramp, bench-cpu, bench-poll,
#				clock-sync, ndp-sim; by default those in the list below
#
# Environment:
#   KEEP=1		do not run benches again, because they need a quiet machine: copy their
#			last results
#   RESUME=all		keep all cells that are in build/results/
#   RESUME=peers	keep the cells there that use no module of this project
#   LAB_ARGS		more arguments for lab run, such as "--seeds 1"

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
[ $# -gt 0 ] || set -- alone table1 incast presets gains qdisc peers peers-requests successors timely-fig16 clock timely-fig1 timely-fig2 timely-fig11 timely-fig12 bench-packet bench-trim bench-ack \
	bench-onramp bench-cpu bench-poll onramp-fig5 onramp-requests onramp-clocks onramp-fig1 onramp-websearch-40 onramp-websearch \
	onramp-websearch-80 onramp-hadoop onramp-rpc onramp-fig13 onramp-fig18 onramp-fig19 \
	onramp-fig20 onramp-fig21 onramp-clockd clock-sync clockd ndp-sim ndp-incast ndp-incast-100 ndp-requests ndp-permutation \
	ndp-churn churn-websearch churn-hadoop churn-rpc churn-shuffle churn-onoff churn-calls trim-tcp

# Copy the first table of each section of table.md to a file, because documents quote these tables.
keep_bench_packet() {
	rm -rf results/bench-packet
	mkdir -p results/bench-packet
	cp "$1/table.md" "$1/cycles.svg" results/bench-packet/
	awk 'BEGIN { split("paced shuffled unpaced memory", name) }
		/^## / { n++; tables = 0 }
		/^\|/ && !inside { tables++ }
		{ inside = /^\|/ }
		inside && n && tables == 1 { print >("results/bench-packet/" name[n] ".md") }' "$1/table.md"
}

keep_bench_trim() {
	mkdir -p results/bench-trim
	cp "$1/table.md" results/bench-trim/
	awk '/^\|/ { print; found = 1; next } found { exit }' "$1/table.md" >results/bench-trim/unpaced.md
}

keep_bench_ack() {
	mkdir -p results/bench-ack
	for part in one many cold one-parts many-parts table; do
		cp "$1/$part.md" results/bench-ack/
	done
}

keep_bench_onramp() {
	mkdir -p results/bench-onramp
	for part in sender receiver single table; do
		cp "$1/$part.md" results/bench-onramp/
	done
}

keep_bench_cpu() {
	mkdir -p results/bench-cpu
	for part in sender receiver least parts counts table; do
		cp "$1/$part.md" results/bench-cpu/
	done
}

keep_bench_poll() {
	mkdir -p results/bench-poll
	cp "$1/polls.md" "$1/table.md" results/bench-poll/
}

keep_clock_sync() {
	rm -rf results/clock-sync
	mkdir -p results/clock-sync
	for part in cells.json table.md peers.md hosts.md faults.md peers.svg; do
		cp "$1/$part" results/clock-sync/
	done
}

for scenario; do
	raw=build/results/$scenario
	if [ "$scenario" = bench-packet ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/lab/bench/bench.sh
		keep_bench_packet "$raw"
		continue
	fi
	if [ "$scenario" = bench-trim ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/lab/bench/bench.sh --qdiscs pfifo,red,trim --modes unpaced \
			--flows 1,100,1000 --repeats 9
		keep_bench_trim "$raw"
		continue
	fi
	if [ "$scenario" = bench-ack ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/lab/bench/ack.sh
		keep_bench_ack "$raw"
		continue
	fi
	if [ "$scenario" = bench-onramp ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/lab/bench/onramp.sh
		keep_bench_onramp "$raw"
		continue
	fi
	if [ "$scenario" = bench-cpu ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/lab/bench/cpu.sh
		keep_bench_cpu "$raw"
		continue
	fi
	if [ "$scenario" = bench-poll ]; then
		[ "${KEEP-}" ] || OUT=$PWD/$raw tools/lab/bench/poll.sh
		keep_bench_poll "$raw"
		continue
	fi
	if [ "$scenario" = clock-sync ]; then
		tools/lab/simulator/clocks run --out "$raw"
		keep_clock_sync "$raw"
		continue
	fi
	if [ "$scenario" = ndp-sim ]; then
		tools/lab/simulator/ndp run --out results/ndp-sim
		continue
	fi
	case ${RESUME-} in
	all)	keep=--keep ;;
	peers)	keep=--keep-peers ;;
	*)	keep= ;;
	esac
	# shellcheck disable=SC2086 # no argument, or several
	tools/lab/lab run "$scenario" $keep --out "$raw" ${LAB_ARGS-}
	tools/lab/lab report "$raw"
	rm -rf "results/$scenario"
	mkdir -p "results/$scenario"
	cp "$raw/summary.json" "$raw/table.md" "$raw"/*.svg "results/$scenario/"
	for extra in events slowdown; do
		[ ! -e "$raw/$extra.md" ] || cp "$raw/$extra.md" "results/$scenario/"
	done
done
tools/docs/make.sh
