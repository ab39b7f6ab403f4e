#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Write what is made from other files:
#
#   Documentation/parameters.md	from the modules' own table
#   Documentation/paper.md	from paper.toml and results/
#   tables in README.md and Documentation/*.md, between the lines
#   <!-- table: FILE --> and <!-- end -->, from FILE
#
#   make.sh [--check]	only say which of them are not up to date

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stale=0

# Put $work/new in place of $1, or complain.
settle() {
	cmp -s "$work/new" "$1" && return
	if [ "$check" ]; then
		echo "$1 is not what it is made from: run make docs" >&2
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

tools/docs/paper.py page >"$work/new"
settle Documentation/paper.md

for page in README.md Documentation/*.md; do
	awk '
		/^<!-- end -->$/ { skip = 0 }
		!skip { print }
		/^<!-- table: .* -->$/ {
			skip = 1
			file = $3
			while ((status = (getline row < file)) > 0)
				if (row ~ /^\|/)
					print row
			if (status < 0) {
				print "no " file > "/dev/stderr"
				exit 1
			}
			close(file)
		}' "$page" >"$work/new"
	settle "$page"
done
exit $stale
