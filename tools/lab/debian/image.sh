#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Unpack the kernel whose headers headers.sh has unpacked, with its modules, into
# $TIMELY_CACHE, without installing it. Print the directory with boot/vmlinuz-* and
# lib/modules; all other output goes to standard error.
#
#   image.sh 6.1|6.12|7.3

set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=debian.sh
. "$here/debian.sh"

series=${1:?usage: image.sh 6.1|6.12|7.3}
apt=$cache/apt-$series

headers=$("$here/headers.sh" "$series")
release=${headers##*/linux-headers-}
version=$(cat "$headers/../../../version")
tree=$cache/image-$series-$version

# Use the package lists that headers.sh has downloaded.
exec 9>"$cache/lock-headers-$series"
flock 9
if [ -e "$tree" ]; then
	echo "$tree"
	exit 0
fi

# The kernel may be signed or unsigned. Since 7.x the kernel, its modules and its map are in separate
# packages, of which the signed ones may be published later.
for name in "linux-image-$release" "linux-image-$release-unsigned" \
	"linux-binary-$release" "linux-binary-unsigned-$release" ''; do
	[ -z "$name" ] || ! have "$name=$version" || break
done
[ -n "$name" ] || die "Debian no longer has the kernel for these headers ($version): run headers.sh --update $series"

tmp=$(mktemp -d -p "$cache")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

packages=$name=$version
case $name in
linux-binary-*)	others="linux-modules-$release linux-base-$release" ;;
*)		others=$(needs "$name=$version" '^linux-(binary|modules|base)-') ;;
esac
for package in $others; do
	packages="$packages $package=$version"
done
# shellcheck disable=SC2086 # a list of packages
unpack "$tmp/tree" $packages

# Since 7.x all files are in usr/lib/modules. Make links at the places of earlier series.
if [ ! -e "$tmp/tree/lib" ]; then
	ln -s usr/lib "$tmp/tree/lib"
	mkdir "$tmp/tree/boot"
	for file in "$tmp/tree/lib/modules/$release"/vmlinuz*; do
		ln -s "../lib/modules/$release/${file##*/}" "$tmp/tree/boot/vmlinuz-$release"
	done
fi
[ -e "$tmp/tree/boot/vmlinuz-$release" ] || die "no vmlinuz in the packages $packages"

# Write the modules' dependencies, which an installation would do.
PATH=$PATH:/sbin:/usr/sbin depmod -b "$tmp/tree" "$release"
mv "$tmp/tree" "$tree"
say "the kernel $version is in $tree"
echo "$tree"
