# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Functions that find and unpack packages of any Debian suite. Other scripts source this
# file. The apt sources and lists of the machine are not changed.

# shellcheck disable=SC2034 # used by scripts that source this file
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Variables of a calling make must not affect the kernel's make.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES ARCH CROSS_COMPILE KCONFIG_CONFIG KBUILD_OUTPUT KBUILD_EXTMOD

say() { echo "kernels: $*" >&2; }
die() { say "$*"; exit 1; }

# Print the suites that have kernels of a series. The suites of one line are searched together; a
# later line is searched only if the earlier lines have no such kernel. Earlier lines are nearer to
# Debian 12, so that a compiler like that of their kernel is more likely installed.
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

# Print the URI of the mirror that this machine uses for the archive with the label $1.
mirror() {
	# shellcheck disable=SC2016 # $(...) is apt's
	uri=$(apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		sed -n "s/^$1|//p" | head -n 1)
	[ -n "$uri" ] || die "apt has no lists of the archive '$1': run apt-get update as root"
	echo "$uri"
}

# own TOOL ARGUMENT...: run a tool of apt with separate sources and lists in the directory $apt, which
# the caller sets. Installed packages are ignored. The tool runs as the present user, because
# the user _apt may have no access to the cache.
own() {
	tool=$1
	shift
	# shellcheck disable=SC2154 # apt is the caller's
	"$tool" -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$apt" \
		-o Acquire::Languages=none -o Acquire::PDiffs=false -o Acquire::Retries=3 \
		-o APT::Sandbox::User=root "$@" 9>&-
}

# use_suites SUITE...: download the package lists of these suites into $apt.
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
	own apt-get update >&2 || say "some of the lists could not be downloaded"
}

# newest START END: print "NAME VERSION" of the newest package whose name starts and ends with
# these strings. The kernel's flavours cloud and rt are left out.
newest() {
	names=$(own apt-cache pkgnames "$1" | grep -e "$2\$" | grep -vE -e '-(cloud|rt)-' || :)
	# shellcheck disable=SC2086 # a list of names
	[ -z "$names" ] || own apt-cache madison $names | awk '{ print $1, $3 }' | sort -k 2,2V | tail -n 1
}

# have NAME=VERSION: is there such a package? apt-cache's status does not say so: it is 0, too, if other
# packages merely refer to the name.
have() { own apt-cache show "$1" 2>/dev/null | grep -q '^Package: '; }

# needs NAME=VERSION PATTERN: print the packages that it depends on and whose names match.
needs() {
	own apt-cache show "$1" | sed -n 's/^Depends: //p' | tr ',|' '\n' | awk '{ print $1 }' | grep -E "$2" || :
}

# unpack DIR NAME[=VERSION]...: download packages and unpack them into DIR. Symbolic links with
# absolute targets are changed to relative links inside DIR.
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

# with_libc DIR PROGRAM: make a program of a newer Debian run on this machine. It gets the loader and
# the libc that are unpacked in DIR, and this machine's other libraries.
with_libc() {
	libs=$1/usr/lib/x86_64-linux-gnu
	mv "$2" "$2.elf"
	cat >"$2" <<-EOF
	#!/bin/sh
	exec '$libs/ld-linux-x86-64.so.2' --library-path '$libs' "\$0.elf" "\$@"
	EOF
	chmod +x "$2"
}
