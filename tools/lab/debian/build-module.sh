#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build external modules for one of Debian's kernels, in a copy of their directory, so
# that builds for several kernels do not disturb each other. The compiler's messages go
# to standard error. --print-dir prints the path of the copy, which is not built again if the last build
# was of the same files.
#
#   build-module.sh [--werror] [--sparse] [--print-dir] SERIES SRCDIR [make argument]...
#
# The exit status is make's. It is 1 if --werror is given and there was any warning, or if
# --sparse is given and sparse has a message about a file of SRCDIR. sparse's messages about
# the kernel's headers are shown, but are no error.

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

# copy [OPTION]...: copy the sources by rsync
copy() {
	rsync -aO --delete --exclude=.git --exclude=build/ --exclude='*.o' --exclude='*.ko' --exclude='*.mod' \
		--exclude='*.mod.c' --exclude='.*.cmd' --exclude='.*.d' --exclude='.module-common.*' \
		--exclude=.tmp_versions --exclude=Module.symvers --exclude=modules.order "$@" "$src/" "$build/"
}

# Build from scratch each time, because a file that is not compiled gives no warning. But where only the
# modules are wanted, those of an earlier build of the same files will do.
if [ -n "$print" ] && [ -z "$werror$sparse" ] && [ -e "$build.built" ] && [ -z "$(copy -ni)" ]; then
	echo "$build"
	exit
fi
rm -f "$build.built"
copy --delete-excluded

log=$build.log
status=0
# Messages in English; kbuild unsets LC_ALL, so LANG and LC_MESSAGES are set too.
LC_ALL='' LC_MESSAGES=C LANG=C make -C "$headers" M="$build" -j"$(nproc)" "$@" modules >"$log" 2>&1 9>&- || status=$?
# Remove make's progress messages, and make paths relative to SRCDIR.
sed -i "/^make/d; /^ *[A-Z][A-Z]* /d; s|$build/||g" "$log"
cat "$log" >&2
[ "$status" -eq 0 ] || exit "$status"
touch "$build.built"

grep -iE '(warning|error):|: No such file' "$log" >"$log.complaints" || :
if [ -n "$werror" ] && [ -s "$log.complaints" ]; then
	say "$series: the compiler has warnings, see above"
	exit 1
fi
if [ -n "$sparse" ]; then
	# Count messages about files in the copy only. Paths of the kernel's files are absolute
	# or relative to the kernel's directory, depending on the series.
	while IFS=: read -r file _; do
		[ ! -e "$build/$file" ] || status=1
	done <"$log.complaints"
	[ "$status" -eq 0 ] || say "$series: sparse has messages, see above"
fi
[ "$status" -ne 0 ] || [ -z "$print" ] || echo "$build"
exit "$status"
