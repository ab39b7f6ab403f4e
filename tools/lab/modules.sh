#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the modules for the lab's kernel and print the directory that holds
# them. Each kernel has a copy of the sources in the cache, so that builds for
# several kernels do not meet; an unchanged source is not built again.
#
#   modules.sh [base|debug|DIR [MAKE-ARGUMENT]...]

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "lab modules: $*" >&2; }
die() { say "$*"; exit 1; }

case ${1:-base} in
/*)	kernel=$1 ;;
*)	kernel=$("$here/kernel/build.sh" "${1:-base}") || die "no kernel to build for" ;;
esac
[ -f "$top/Kbuild" ] || die "no Kbuild in $top: there are no modules to build yet"

[ $# -eq 0 ] || shift

# Two checkouts must not share a copy either, nor builds with other arguments.
out=$cache/modules-$(basename "$kernel")-$(printf %s "$top" "$@" | sha256sum | cut -c1-8)
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9

# What is new or differs is copied; what is gone from the checkout goes.
cd "$top"
for part in Kbuild include net compat-include kunit; do
	[ -e "$part" ] || continue
	find "$part" -type f \( -name '*.[chS]' -o -name Kbuild -o -name '*.mk' -o -name 'Makefile*' \) ! -name '*.mod.c'
done >"$out/.sources"
(cd "$out" && find . -type f -name '*.[chS]' ! -name '*.mod.c') | sed 's,^\./,,' |
while read -r file; do
	[ -e "$file" ] || rm -f "$out/$file"
done
while read -r file; do
	cmp -s "$file" "$out/$file" && continue
	mkdir -p "$out/$(dirname "$file")"
	cp "$file" "$out/$file"
done <"$out/.sources"

# What another run is about to load stays as it is.
built=$({ echo "$@"; (cd "$out" && xargs sha256sum) <"$out/.sources"; } | sha256sum)
if [ "$built" = "$(cat "$out/.built" 2>/dev/null)" ]; then
	echo "$out"
	exit
fi
rm -f "$out/.built"

unset KBUILD_OUTPUT KCONFIG_CONFIG MAKEFLAGS MFLAGS ARCH CROSS_COMPILE
# A module may have moved.
find "$out" -name "*.ko" -delete
make -C "$kernel" ARCH=um M="$out" -j"$(nproc)" "$@" modules >"$out/build.log" 2>&1 || {
	grep -E -A 5 'error|Error|undefined' "$out/build.log" >&2 || tail -n 20 "$out/build.log" >&2
	die "the modules do not build for $(basename "$kernel"): $out/build.log"
}
grep -i 'warning' "$out/build.log" >&2 || :
echo "$built" >"$out/.built"
echo "$out"
