#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the packages timely-dkms and timely-tools in build/packages:
#
#	build.sh deb|rpm
#
# The same sources give identical packages. They carry the time SOURCE_DATE_EPOCH, in seconds since 1970; by
# default that of the commit or, without git, that of CHANGELOG.md, which git archive sets to the same time.
#
# Environment:
#	TIMELY_MAINTAINER="NAME <ADDRESS>"	the packages' maintainer
#	TIMELY_PACKAGES=DIR			put the packages there
#	TIMELY_VERSION=VERSION			give the packages this version, to test upgrades

set -eu
umask 022
export LC_ALL=C TZ=UTC

top=$(cd "$(dirname "$0")/.." && pwd)
out=${TIMELY_PACKAGES:-$top/build/packages}
header=include/uapi/linux/timely_version.h
version=${TIMELY_VERSION:-$(sed -n 's/^#define TIMELY_VERSION "\(.*\)"$/\1/p' "$top/$header")}
maintainer=${TIMELY_MAINTAINER:-TIMELY for Linux <timely@invalid.invalid>}

say() { echo "packages: $*" >&2; }
die() { say "$*"; exit 1; }

# needs PROGRAM PACKAGE: is the program installed?
needs() { command -v "$1" >/dev/null || die "needs $1: install the package $2"; }

case ${1-} in
deb)	needs dh debhelper
	needs dh_dkms dh-dkms
	needs dpkg-buildpackage dpkg-dev ;;
rpm)	needs rpmbuild "rpm (Debian) or rpm-build" ;;
*)	echo "usage: build.sh deb|rpm" >&2
	exit 2 ;;
esac
needs python3 python3
make -s -C "$top" tools-dependencies
[ -n "$version" ] || die "there is no version in $header"
[ -n "${SOURCE_DATE_EPOCH-}" ] ||
	SOURCE_DATE_EPOCH=$({ [ -e "$top/.git" ] && git -C "$top" log -1 --format=%ct; } ||
		stat -c %Y "$top/CHANGELOG.md")
export SOURCE_DATE_EPOCH
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM

# Copy the sources of modules, tools and manuals, without what a build leaves beside them.
source=$tmp/timely-$version
mkdir -p "$source" "$out"
cd "$top"
find Makefile Kbuild COPYING CHANGELOG.md README.md SECURITY.md Documentation LICENSES include net compat-include man packaging \
	tools/clockd tools/ndp tools/tc tools/timelyctl -type f \
	! -name '*.o' ! -name '*.ko' ! -name '*.mod' ! -name '*.mod.c' ! -name '*.cmd' ! -name '*.d' ! -name '*~' |
	LC_ALL=C sort | tar -cf - -T - | tar -C "$source" -xf -
sed -i "s/^#define TIMELY_VERSION .*/#define TIMELY_VERSION \"$version\"/" "$source/$header"
# dpkg-deb replaces only times of files that are later than SOURCE_DATE_EPOCH.
find "$source" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +

deb() {
	cp -r packaging/debian "$source"
	sed -i "s/^Maintainer: .*/Maintainer: $maintainer/" "$source/debian/control"
	cat >"$source/debian/changelog" <<-CHANGELOG
		timely ($version) unstable; urgency=medium

		  * New release.

		 -- $maintainer  $(date -R -d "@$SOURCE_DATE_EPOCH")
	CHANGELOG
	(cd "$source" && dpkg-buildpackage -b -us -uc >"$tmp/log" 2>&1) || {
		tail -n 30 "$tmp/log" >&2
		die "dpkg-buildpackage failed, see above"
	}
	# Names of files have the version: with packages of two versions apt-get would get both.
	rm -f "$out"/timely-*.deb "$out"/timely_*.changes "$out"/timely_*.buildinfo
	mv "$tmp"/*.deb "$tmp"/*.changes "$tmp"/*.buildinfo "$out"
}

rpm() {
	tar -C "$tmp" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		-cf "$tmp/timely-$version.tar" "timely-$version"
	{
		cat packaging/timely.spec
		printf '\n%%changelog\n* %s %s - %s-1\n- New release.\n' \
			"$(date -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')" "$maintainer" "$version"
	} >"$tmp/timely.spec"
	# Debian has other names for the packages that the build needs; this script has looked for the programs.
	nodeps=
	[ ! -e /etc/debian_version ] || nodeps=--nodeps
	rpmbuild -bb $nodeps --define "_topdir $tmp/rpm" \
		--define "_sourcedir $tmp" --define "timely_version $version" --define "packager $maintainer" \
		--define "_buildhost localhost" --define "use_source_date_epoch_as_buildtime 1" \
		--define "clamp_mtime_to_source_date_epoch 1" "$tmp/timely.spec" >"$tmp/log" 2>&1 || {
		tail -n 30 "$tmp/log" >&2
		die "rpmbuild failed, see above"
	}
	rm -f "$out"/timely-*.rpm
	mv "$tmp"/rpm/RPMS/*/*.rpm "$out"
}

"$1"
say "the packages are in $out"
