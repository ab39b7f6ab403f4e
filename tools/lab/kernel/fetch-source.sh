#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Unpack Debian's linux-source package of a series into the cache, without
# installing it; print the directory.
#
#   fetch-source.sh SERIES CACHE

set -eu

series=$1
cache=$2
deb_dir=$cache/deb

say() { echo "lab kernel: $*" >&2; }

mkdir -p "$deb_dir"
cd "$deb_dir"
say "downloading linux-source-$series"
apt-get download "linux-source-$series" >&2
deb=$(find . -maxdepth 1 -name "linux-source-${series}_*.deb" | sort -V | tail -n 1)
version=$(dpkg-deb -f "$deb" Version)
dir=$cache/linux-source-$series-$version
tmp=$(mktemp -d -p "$cache")
trap 'rm -rf "$tmp"' EXIT
say "unpacking $version"
dpkg-deb -x "$deb" "$tmp"
tar -C "$tmp" -xf "$tmp"/usr/src/linux-source-*.tar.*
mv "$tmp"/linux-source-*/ "$dir"
rm -f "$deb"
echo "$dir"
