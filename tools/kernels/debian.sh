# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# To be sourced, not run: find and unpack packages of Debian suites that the
# machine's own apt sources need not name. Those are left alone.

# shellcheck disable=SC2034 # used by those who source this
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# A make that calls these scripts must not reach into the kernel's.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES ARCH CROSS_COMPILE KCONFIG_CONFIG KBUILD_OUTPUT KBUILD_EXTMOD

say() { echo "kernels: $*" >&2; }
die() { say "$*"; exit 1; }

# Suites that have a series: those of a line are searched together, a later line
# only when the earlier ones have nothing. The first is the nearest to Debian
# 12, so its kernel was built with a compiler that is at hand.
suites() {
	case $1 in
	6.1)	echo bookworm bookworm-security ;;
	6.12)	echo bookworm-security bookworm-backports
		echo trixie trixie-security ;;
	7.3)	echo trixie trixie-backports # trixie is for its libc
		echo sid ;;
	*)	die "unknown series '$1': 6.1, 6.12 or 7.3" ;;
	esac
}

# The mirror that this machine uses for the archive with a label.
mirror() {
	# shellcheck disable=SC2016 # $(...) is apt's
	uri=$(apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		sed -n "s/^$1|//p" | head -n 1)
	[ -n "$uri" ] || die "apt has no lists of the archive '$1': run apt-get update"
	echo "$uri"
}

# apt with sources and lists of its own in $apt, which the caller sets. What the machine has installed does not
# matter, and the cache may be where apt's own user cannot go.
own() {
	tool=$1
	shift
	# shellcheck disable=SC2154 # apt is the caller's
	"$tool" -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$apt" \
		-o Acquire::Languages=none -o Acquire::PDiffs=false -o Acquire::Retries=3 \
		-o APT::Sandbox::User=root "$@" 9>&-
}

# Get the lists of some suites into $apt.
use_suites() {
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	for suite; do
		case $suite in
		*-security)	uri=$(mirror Debian-Security) || exit 1 ;;
		*)		uri=$(mirror Debian) || exit 1 ;;
		esac
		echo "deb [signed-by=$keyring] $uri $suite main"
	done >"$apt/sources.list"
	say "reading the lists of $*"
	own apt-get update >&2 || say "not all of the lists could be had"
}

# The newest package whose name starts and ends with two strings, as "name
# version"; of a kernel's flavours only the plain one.
newest() {
	names=$(own apt-cache pkgnames "$1" | grep -e "$2\$" | grep -vE -e '-(cloud|rt)-' || :)
	# shellcheck disable=SC2086 # a list of names
	[ -z "$names" ] || own apt-cache madison $names | awk '{ print $1, $3 }' | sort -k 2,2V | tail -n 1
}

# Is there NAME=VERSION?
have() { own apt-cache show "$1" >/dev/null 2>&1; }

# The packages that NAME=VERSION depends on and whose names match a pattern.
needs() {
	own apt-cache show "$1" | sed -n 's/^Depends: //p' | tr ',|' '\n' | awk '{ print $1 }' | grep -E "$2" || :
}

# unpack DIR NAME[=VERSION]...: download packages and unpack them into DIR. Links
# to absolute paths would lead out of it: they are made to stay inside.
unpack() {
	into=$1
	shift
	mkdir -p "$into"
	# shellcheck disable=SC2154 # tmp is the caller's, as apt is
	debs=$(mktemp -d -p "$tmp")
	say "downloading $*"
	(cd "$debs" && own apt-get download "$@" >&2) || die "could not download $*"
	for deb in "$debs"/*.deb; do
		dpkg-deb -x "$deb" "$into"
	done
	rm -rf "$debs"
	find "$into" -type l -lname '/*' | while read -r link; do
		ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$into$(readlink "$link")")" "$link"
	done
}

# Have a program of a newer Debian run here: with the loader and the libc of its
# own, unpacked in DIR, and the other libraries of this machine.
#   with_libc DIR PROGRAM
with_libc() {
	libs=$1/usr/lib/x86_64-linux-gnu
	mv "$2" "$2.elf"
	cat >"$2" <<-EOF
	#!/bin/sh
	exec '$libs/ld-linux-x86-64.so.2' --library-path '$libs' "\$0.elf" "\$@"
	EOF
	chmod +x "$2"
}
