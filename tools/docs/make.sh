#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Generate the documents, and the parts of documents, that are made from other files:
#
#   Documentation/parameters.md	by params.c, from the tables of the modules' sources
#   Documentation/reproductions.md, hostile-networks.md
#				by reproductions.py, from reproductions.toml and results/
#   Documentation/verdicts.md	by verdicts.py, from verdicts.toml and results/
#   results/README.md		by index.py, from results/ and the documents that quote it
#   tables in README.md and Documentation/*.md, between the lines
#   <!-- table: FILE --> and <!-- end -->
#				from the tables of FILE, a file in results/; if FILE is
#				"scorecard", from the output of verdicts.py scorecard.
#				Below results/*/table.md, the expectations that the results miss, by misses.py
#   man/*			the version in the header, from include/uapi/linux/timely_version.h
#
#   make.sh		write what has changed, and print the names of the files
#   make.sh --check	write nothing; print the files that are not up to date, and fail
#
# Fails, too, if two documents have the same title, or if a document quotes figures that results/ does not have
# (figures.py).

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stale=0

# settle FILE: replace FILE by $work/new if they differ; with --check only report the difference.
settle() {
	cmp -s "$work/new" "$1" && return
	if [ "$check" ]; then
		echo "$1 is not up to date: run make docs" >&2
		stale=1
	else
		cp "$work/new" "$1"
		echo "$1"
	fi
}

check=
[ "${1-}" != --check ] || check=1

"${CC:-gcc}" -Wall -Inet/timely/engine/user -Inet -Iinclude -o "$work/params" \
	tools/docs/params.c net/timely/engine/params.c
"$work/params" >"$work/new"
settle Documentation/parameters.md

for page in reproductions hostile-networks; do
	tools/docs/reproductions.py page "$page" >"$work/new"
	settle "Documentation/$page.md"
done

tools/docs/verdicts.py page >"$work/new"
settle Documentation/verdicts.md
tools/docs/verdicts.py scorecard >"$work/scorecard"
tools/docs/misses.py >"$work/misses"

for page in README.md Documentation/*.md; do
	awk -v scorecard="$work/scorecard" -v misses="$work/misses" '
		BEGIN {
			FS = "\t"
			while ((getline <misses) > 0)
				missed["results/" $1 "/table.md"] = $2
			FS = " "
		}
		/^<!-- end -->$/ { skip = 0 }
		!skip { print }
		/^<!-- table: .* -->$/ {
			skip = 1
			file = $3 == "scorecard" ? scorecard : $3
			while ((status = (getline row < file)) > 0)
				if (row ~ /^\|/)
					print row
			if (status < 0) {
				print FILENAME ": cannot read " file > "/dev/stderr"
				exit 1
			}
			close(file)
			if (file in missed)
				print "\n" missed[file]
		}' "$page" >"$work/new"
	settle "$page"
done

tools/docs/index.py >"$work/new"
settle results/README.md

version=$(sed -n 's/.*TIMELY_VERSION "\(.*\)".*/\1/p' include/uapi/linux/timely_version.h)
for page in man/*; do
	sed "s/^\(\.TH .*\"TIMELY for Linux\)[^\"]*\"/\1 $version\"/" "$page" >"$work/new"
	settle "$page"
done

same=$(head -q -n 1 ./*.md Documentation/*.md | sort | uniq -d)
if [ "$same" ]; then
	echo "two documents have the title '$same': has one overwritten the other?" >&2
	stale=1
fi

tools/docs/figures.py README.md CHANGELOG.md Documentation/*.md man/* || stale=1
exit $stale
