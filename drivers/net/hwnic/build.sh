#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the test NIC for a kernel of the lab, and print the directory that holds hwnic.ko. Like
# tools/lab/modules.sh it builds in a copy in the cache, and only what has changed.
#
#   build.sh [base|debug|DIR [MAKE-ARGUMENT]...]

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "hwnic: $*" >&2; }
die() { say "$*"; exit 1; }

case ${1:-base} in
/*)	kernel=$1 ;;
*)	kernel=$("$top/tools/lab/uml/build.sh" "${1:-base}") || die "the kernel did not build: see the messages above" ;;
esac
[ $# -eq 0 ] || shift

# Each checkout has its own copy.
out=$cache/hwnic-$(basename "$kernel")-$(printf %s "$top" | sha256sum | cut -c1-8)
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9

# The compatibility headers are not copied: make is told where they are, compat=.
for file in "$here"/*.[ch] "$here/Kbuild"; do
	cmp -s "$file" "$out/${file##*/}" || cp "$file" "$out"
done
for file in "$out"/*.[ch]; do
	case $file in
	*.mod.c)	;;
	*)		[ -e "$here/${file##*/}" ] || rm -f "$file" ;;
	esac
done

unset KBUILD_OUTPUT KCONFIG_CONFIG MAKEFLAGS MFLAGS ARCH CROSS_COMPILE
make -C "$kernel" ARCH=um M="$out" compat="$top/compat-include" "$@" modules >"$out/build.log" 2>&1 9>&- || {
	grep -E -A 5 'error|Error|undefined' "$out/build.log" >&2 || tail -n 20 "$out/build.log" >&2
	die "hwnic.ko does not build for $(basename "$kernel"): see $out/build.log"
}
grep -i 'warning' "$out/build.log" >&2 || :
echo "$out"
