#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Unpack this Debian's chrony in the cache, and print the directory that holds chronyd and chronyc.
# The package is not installed: it would replace this machine's clock daemon, and steer this
# machine's clock. The guests of the lab run the programs. tools/setup.sh installs the libraries.
#
#   chrony.sh

set -eu

cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "chrony: $*" >&2; }
die() { say "$*"; exit 1; }

download() { apt-get -qq -o APT::Sandbox::User=root download chrony; }

# Images of containers have no lists of packages.
download_after_update() {
	say "reading the lists of packages"
	apt-get -qq update && download
}

mkdir -p "$cache"
exec 9>"$cache/lock-chrony"
flock 9
programs=$cache/chrony/usr
if [ ! -x "$programs/sbin/chronyd" ]; then
	tmp=$(mktemp -d -p "$cache")
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 130' INT TERM HUP
	say "downloading the package"
	(cd "$tmp" && { download || download_after_update; } >&2) ||
		die "the package cannot be downloaded: run apt-get update as root"
	dpkg-deb -x "$tmp"/chrony_*.deb "$tmp/root"
	mkdir -p "$tmp/root/usr/sbin"
	ln -sf ../bin/chronyc "$tmp/root/usr/sbin/chronyc"
	rm -rf "$cache/chrony"
	mv "$tmp/root" "$cache/chrony"
fi
ldd "$programs/sbin/chronyd" "$programs/sbin/chronyc" | grep 'not found' >&2 &&
	die "libraries are missing: run tools/setup.sh"
echo "$programs/sbin"
