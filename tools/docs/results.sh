#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run scenarios and benches, and copy the tables, plots and summaries that documents need to
# results/. Raw results stay in build/results/. At the end the documents are written again.
# Results that miss what their scenario expects are stored like others, and named: results.sh fails at
# the end.
#
#   results.sh [NAME]...	scenarios, bench-packet, bench-trim, bench-ack, bench-onramp, bench-cpu, bench-ndp,
#				bench-poll, bench-clockd, clock-sync, ndp-sim; by default those in the list below
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
[ $# -gt 0 ] || set -- alone table1 incast presets gains qdisc peers peers-requests timely-fig16 clock timely-fig1 timely-fig2 timely-fig11 timely-fig12 bench-packet bench-trim bench-ack \
	bench-onramp bench-cpu bench-ndp bench-poll bench-clockd onramp-fig5 onramp-requests onramp-clocks onramp-fig1 onramp-websearch-40 onramp-websearch \
	onramp-websearch-80 onramp-hadoop onramp-rpc onramp-fig13 onramp-fig18 onramp-fig19 \
	onramp-fig20 onramp-fig21 onramp-clockd onramp-clockd-errors clock-sync clockd clockd-load ndp-sim ndp-incast ndp-incast-100 ndp-incast-432 ndp-requests ndp-permutation \
	ndp-churn ndp-churn-hadoop ndp-churn-rpc churn-websearch churn-hadoop churn-rpc churn-shuffle churn-onoff churn-calls trim-tcp

missed=

# expect COMMAND...: run a command that tests the results of this name by TAP; print failed tests, and remember the name
expect() {
	tap=$("$@" 2>&1) && return
	case $tap in
	*"lab: 0 of 0 expectations failed")	# a scenario without expectations
		return 0 ;;
	esac
	echo "$name misses what is expected:" >&2
	echo "$tap" | grep -v -e '^ok' -e '^TAP' -e '^1\.\.' >&2 || :
	missed="$missed $name"
}

# measure BENCH [ARGUMENT]...: run a bench of tools/lab/bench
measure() {
	bench=$1
	shift
	[ "${KEEP-}" ] || OUT=$PWD/$raw "tools/lab/bench/$bench.sh" "$@"
}

# keep FILE...: replace the results of this name by these files of the raw results
keep() {
	rm -rf "results/$name"
	mkdir -p "results/$name"
	for file; do
		cp "$raw/$file" "results/$name/"
	done
}

# Copy the first table of each section of table.md to a file, because documents quote these tables.
tables_of_sections() {
	awk 'BEGIN { split("paced shuffled unpaced memory", name) }
		/^## / { n++; tables = 0 }
		/^\|/ && !inside { tables++ }
		{ inside = /^\|/ }
		inside && n && tables == 1 { print >("results/bench-packet/" name[n] ".md") }' "$raw/table.md"
}

first_table() { awk '/^\|/ { print; found = 1; next } found { exit }' "$raw/table.md"; }

scenario() {
	case ${RESUME-} in
	all)	resume=--keep ;;
	peers)	resume=--keep-peers ;;
	*)	resume= ;;
	esac
	# shellcheck disable=SC2086 # no argument, or several
	tools/lab/lab run "$name" $resume --out "$raw" ${LAB_ARGS-}
	tools/lab/lab report "$raw"
	set -- summary.json table.md
	for file in "$raw"/*.svg "$raw/events.md" "$raw/slowdown.md"; do
		[ ! -e "$file" ] || set -- "$@" "${file##*/}"
	done
	keep "$@"
	expect tools/lab/lab verify "$raw"
}

for name; do
	raw=build/results/$name
	case $name in
	bench-packet)
		measure bench
		keep table.md cycles.svg
		tables_of_sections ;;
	bench-trim)
		measure bench --qdiscs pfifo,red,trim --modes unpaced --flows 1,100,1000 --repeats 9
		keep table.md
		first_table >results/bench-trim/unpaced.md ;;
	bench-ack)
		measure ack
		keep one.md many.md cold.md one-parts.md many-parts.md table.md ;;
	bench-onramp)
		measure onramp
		keep sender.md receiver.md single.md table.md ;;
	bench-cpu)
		measure cpu
		keep sender.md receiver.md least.md parts.md counts.md table.md ;;
	bench-ndp)
		# A byte of NDP beside TCP's, with packets of 1500 and 9000 bytes.
		measure cpu --lanes cubic/fq,bbr/fq,dctcp/fq,timely/timely,ndp/fq,cubic/fq@9000,ndp/fq@9000 \
			--flows 1,10 --links 10 --repeats 5
		keep sender.md receiver.md least.md parts.md counts.md table.md ;;
	bench-poll)
		measure poll
		keep polls.md table.md ;;
	bench-clockd)
		measure clockd
		keep table.md ;;
	clock-sync)
		tools/lab/simulator/clocks run --out "$raw"
		keep cells.json table.md peers.md hosts.md faults.md peers.svg
		expect tools/lab/simulator/clocks verify "$raw" ;;
	ndp-sim)
		tools/lab/simulator/ndp run --out results/ndp-sim
		expect tools/lab/simulator/ndp verify results/ndp-sim ;;
	*)	scenario ;;
	esac
done
[ -z "$missed" ] || echo "These results miss what is expected:$missed" >&2
tools/docs/make.sh
[ -z "$missed" ]
