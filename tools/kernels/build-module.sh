#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build external modules against one of Debian's kernels, in a copy of their
# directory, so that the outputs of several kernels do not collide. What the
# compiler says goes to standard error; --print-dir prints the copy's path.
#
#   build-module.sh [--werror] [--sparse] [--print-dir] SERIES SRCDIR [make argument]...
#
# The exit status is make's; or 1 when there was a warning, from whomever, and
# --werror forbids it, or when sparse names a file of ours (--sparse). What it
# says of the kernel's headers is shown and tolerated.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=debian.sh
. "$here/debian.sh"

werror=
sparse=
print=
while :; do
	case ${1:-} in
	--werror)	werror=1 ;;
	--sparse)	sparse=1 ;;
	--print-dir)	print=1 ;;
	-*)		die "unknown option $1" ;;
	*)		break ;;
	esac
	shift
done
[ $# -ge 2 ] || die "usage: build-module.sh [--werror] [--sparse] [--print-dir] SERIES SRCDIR [make argument]..."
series=$1
src=$(cd "$2" && pwd)
shift 2

headers=$("$here/headers.sh" "$series")
if [ -n "$sparse" ]; then
	checker=$("$here/sparse.sh")
	set -- C=2 CHECK="$checker" "$@"
fi

release=${headers##*/linux-headers-}
build=$cache/modules/$release-$(echo "$src" | cksum | cut -d ' ' -f 1)
mkdir -p "$build"
exec 9>"$build.lock"
flock 9

# From scratch each time: what is not compiled does not warn.
rsync -a --delete --delete-excluded --exclude=.git --exclude=build/ --exclude='*.o' --exclude='*.ko' \
	--exclude='*.mod' --exclude='*.mod.c' --exclude='.*.cmd' --exclude='.*.d' --exclude='.module-common.*' \
	--exclude=.tmp_versions --exclude=Module.symvers --exclude=modules.order "$src/" "$build/"

log=$build.log
status=0
# In English, which kbuild's unsetting of LC_ALL must not undo.
LC_ALL='' LC_MESSAGES=C LANG=C make -C "$headers" M="$build" -j"$(nproc)" "$@" modules >"$log" 2>&1 9>&- || status=$?
# Without make's progress, and with paths as they are in SRCDIR.
sed -i "/^make/d; /^ *[A-Z][A-Z]* /d; s|$build/||g" "$log"
cat "$log" >&2
[ "$status" -eq 0 ] || exit "$status"

grep -iE '(warning|error):' "$log" >"$log.complaints" || :
if [ -n "$werror" ] && [ -s "$log.complaints" ]; then
	say "$series: warnings"
	exit 1
fi
if [ -n "$sparse" ]; then
	# A file is ours if it is in the copy: paths of the kernel's are absolute
	# or relative to its directory, depending on the series.
	while IFS=: read -r file _; do
		[ ! -e "$build/$file" ] || status=1
	done <"$log.complaints"
	[ "$status" -eq 0 ] || say "$series: sparse complains"
fi
[ "$status" -ne 0 ] || [ -z "$print" ] || echo "$build"
exit "$status"
