#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Unpack Debian's package linux-source of a series into the directory CACHE, without
# installing it. Print the directory of the source.
#
#   fetch-source.sh SERIES CACHE		for example: fetch-source.sh 6.12 ~/.cache/timely

set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../debian/debian.sh
. "$here/../debian/debian.sh"
series=$1
cache=$2
apt=$cache/apt-$series
tmp=$(mktemp -d -p "$cache")
trap 'rm -rf "$tmp"' EXIT

version=
groups=$(suites "$series")
while read -r group; do
	# shellcheck disable=SC2086 # a list of suites
	use_suites $group
	version=$(newest "linux-source-$series" "$series")
	version=${version#* }
	[ -z "$version" ] || break
done <<EOF
$groups
EOF
[ -n "$version" ] || die "no linux-source-$series in: $(echo "$groups" | tr '\n' ' ')"
unpack "$tmp" "linux-source-$series=$version"
tar -C "$tmp" -xf "$tmp"/usr/src/linux-source-*.tar.*
dir=$cache/linux-source-$series-$version
mv "$tmp"/linux-source-*/ "$dir"
echo "$dir"
