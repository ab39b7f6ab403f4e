#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the test NIC for the lab's kernel and print the directory that holds
# hwnic.ko. As tools/lab/modules.sh: from a copy in the cache, only what changed.
#
#   build.sh [base|debug|DIR [MAKE-ARGUMENT]...]

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "hwnic: $*" >&2; }
die() { say "$*"; exit 1; }

case ${1:-base} in
/*)	kernel=$1 ;;
*)	kernel=$("$top/tools/lab/kernel/build.sh" "${1:-base}") || die "no kernel to build for" ;;
esac
[ $# -eq 0 ] || shift

# Two checkouts must not share a copy.
out=$cache/hwnic-$(basename "$kernel")-$(printf %s "$top" | sha256sum | cut -c1-8)
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9

# The shims come along; Kbuild finds them one up from where it expects them.
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
	die "it does not build for $(basename "$kernel"): $out/build.log"
}
grep -i 'warning' "$out/build.log" >&2 || :
echo "$out"
