#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build a kernel once, from Debian's kernel source, for tests that need several processors
# or another architecture. Print its build directory, which is in $TIMELY_CACHE; all other
# output goes to standard error.
#
#   kernel.sh FLAVOUR [SERIES]
#
# The flavours base, debug, kcsan, cfi and rt are x86_64 kernels for tools/lab/vm/guest.sh;
# FLAVOUR.config describes each. i386 (32-bit) and s390x (big-endian) are not built
# completely: only the files that are needed to compile modules. SERIES is the version of
# the source (default 6.12).

set -eu

flavour=${1:?usage: kernel.sh base|debug|kcsan|cfi|rt|i386|s390x [SERIES]}
series=${2:-6.12}
here=$(cd "$(dirname "$0")" && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "vm kernel: $*" >&2; }
die() { say "$*"; exit 1; }

unset KCONFIG_CONFIG KBUILD_OUTPUT MAKEFLAGS MFLAGS ARCH CROSS_COMPILE

fragments=$here/base.config
set -- ARCH=x86_64
target=bzImage
packages=
case $flavour in
base)	;;
debug|kcsan|rt)
	fragments="$fragments $here/$flavour.config" ;;
cfi)	fragments="$fragments $here/cfi.config"
	# The first clang of Debian 12 that has kCFI.
	packages="clang-16 lld-16 llvm-16"
	set -- ARCH=x86_64 LLVM=-16 ;;
i386)	set -- ARCH=i386 CROSS_COMPILE=i686-linux-gnu-
	packages=gcc-i686-linux-gnu
	target=modules_prepare ;;
s390x)	set -- ARCH=s390 CROSS_COMPILE=s390x-linux-gnu-
	packages=gcc-s390x-linux-gnu
	target=modules_prepare ;;
*)	die "unknown flavour '$flavour'" ;;
esac

find_build() {
	src=$(find "$cache" -maxdepth 1 -name "linux-source-$series-*" -type d | sort -V | tail -n 1)
	[ "$src" ] || return 1
	# shellcheck disable=SC2086 # a list of files
	key=$({ cat $fragments; echo "$*"; ${CC:-gcc} -dumpfullversion; } | sha256sum | cut -c1-12)
	out=$cache/vm-${src##*/linux-source-}-$flavour-$key
	[ -e "$out/.timely-built" ] && echo "$out"
}

mkdir -p "$cache"
! find_build "$@" || exit 0
exec 9>"$cache/lock-vm-$flavour-$series"
flock 9
[ "$src" ] || "$here/../uml/fetch-source.sh" "$series" "$cache" >&2 || die "cannot fetch the source of Linux $series, see above"
! find_build "$@" || exit 0
# shellcheck disable=SC2086 # a list of packages
"$here/../../setup.sh" libelf-dev libssl-dev $packages 9>&- || die "cannot install the packages that the build needs, see above"

mkdir -p "$out"
log=$out/build.log
say "building $flavour from ${src##*/} (minutes, log $log)"
run() { "$@" >>"$log" 2>&1 9>&- || { tail -n 30 "$log" >&2; die "failed: $*"; }; }
: >"$log"
run make -C "$src" O="$out" "$@" tinyconfig
cd "$out"
# shellcheck disable=SC2086 # a list of files
run "$src/scripts/kconfig/merge_config.sh" -m -O "$out" "$out/.config" $fragments
run make -C "$src" O="$out" "$@" olddefconfig
# Kconfig silently drops options whose dependencies are missing. Report them. A missing option of the
# flavour's own file is an error, because the flavour would not check what it should.
# shellcheck disable=SC2086 # a list of files
[ "$target" = modules_prepare ] ||
	awk '/^CONFIG_/ { sub(/=.*/, ""); last[$0] = FILENAME } END { for (s in last) print s, last[s] }' $fragments |
	while read -r sym fragment; do
		grep -q "^$sym=" .config && continue
		[ "$fragment" = "$here/base.config" ] || die "this kernel cannot have $sym, which ${fragment##*/} asks for"
		say "option not available in this kernel: $sym"
	done || exit 1
run make -C "$src" O="$out" "$@" -j"$(nproc)" "$target"
[ "$target" = modules_prepare ] || run make -C "$src" O="$out" "$@" -j"$(nproc)" modules
echo "$*" >"$out/.timely-make"
touch "$out/.timely-built"
say "built in $out"
echo "$out"
