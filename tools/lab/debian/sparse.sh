#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Print the path of a version of sparse that understands the newest kernel headers: the
# installed one, or else that of Debian unstable, unpacked in $TIMELY_CACHE with its libc.
#
#   sparse.sh

set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=debian.sh
. "$here/debian.sh"

apt=$cache/apt-sparse

# Does this sparse know two features that <linux/module.h> of 7.x uses? Version 0.6.4 knows neither.
able() {
	command -v "$1" >/dev/null && [ -z "$(echo '
		static inline int u(const int *q) { __typeof_unqual__(*q) v = *q; return v; }
		_Static_assert(sizeof("ab") - 1 == __builtin_strlen("ab"), "");' | "$1" - 2>&1)" ]
}

if able sparse; then
	command -v sparse
	exit 0
fi

mkdir -p "$cache"
exec 9>"$cache/lock-sparse"
flock 9
dir=$cache/sparse
if ! able "$dir/usr/bin/sparse"; then
	use_suites sid
	tmp=$(mktemp -d -p "$cache")
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	unpack "$tmp/new" sparse libc6
	with_libc "$dir" "$tmp/new/usr/bin/sparse"
	rm -rf "$dir"
	mv "$tmp/new" "$dir"
	able "$dir/usr/bin/sparse" || die "sparse of Debian unstable does not work on this machine"
fi
echo "$dir/usr/bin/sparse"
