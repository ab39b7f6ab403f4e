#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the project's modules for a kernel of the lab, and print the directory with the
# modules. It is in $TIMELY_CACHE; each kernel has one, with a copy of the sources, so that
# builds for several kernels do not disturb each other. Unchanged sources are not built again.
#
#   modules.sh [base|debug|DIR [MAKE-ARGUMENT]...]
#
# base (default) and debug are flavours of uml/build.sh; DIR is a kernel's build directory.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "lab modules: $*" >&2; }
die() { say "$*"; exit 1; }

case ${1:-base} in
/*)	kernel=$1 ;;
*)	kernel=$("$here/uml/build.sh" "${1:-base}") || die "cannot build the kernel, see above" ;;
esac
[ -f "$top/Kbuild" ] || die "there is no $top/Kbuild"

[ $# -eq 0 ] || shift

# Other source trees and builds with other arguments have directories of their own.
out=$cache/modules-$(basename "$kernel")-$(printf %s "$top" "$@" | sha256sum | cut -c1-8)
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9

# Copy new and changed files to the copy, and delete files that are no longer in the checkout.
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

# Build only if the sources or arguments changed: another run may be about to load the modules.
built=$({ echo "$@"; (cd "$out" && xargs sha256sum) <"$out/.sources"; } | sha256sum)
if [ "$built" = "$(cat "$out/.built" 2>/dev/null)" ]; then
	echo "$out"
	exit
fi
rm -f "$out/.built"

unset KBUILD_OUTPUT KCONFIG_CONFIG MAKEFLAGS MFLAGS ARCH CROSS_COMPILE
# Delete modules that are left from an earlier layout.
find "$out" -name "*.ko" -delete
make -C "$kernel" ARCH=um M="$out" -j"$(nproc)" "$@" modules >"$out/build.log" 2>&1 || {
	grep -E -A 5 'error|Error|undefined' "$out/build.log" >&2 || tail -n 20 "$out/build.log" >&2
	die "cannot build the modules for $(basename "$kernel"), log: $out/build.log"
}
grep -i 'warning' "$out/build.log" >&2 || :
echo "$built" >"$out/.built"
echo "$out"
