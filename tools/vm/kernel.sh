#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build a kernel from Debian's kernel source for the tests that take several processors
# or another architecture, once, in the cache; print its build directory. Everything else
# goes to standard error.
#
#   kernel.sh base|debug|kcsan|cfi|rt|i386|s390x [6.12]
#
# base, debug, kcsan, cfi and rt are x86_64 kernels for tools/vm/guest.sh. i386 and s390x
# are 32-bit and big-endian: what modules need to be compiled is built, no kernel.

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
[ "$src" ] || "$here/../lab/kernel/fetch-source.sh" "$series" "$cache" >&2 || die "no source for $series"
! find_build "$@" || exit 0
# shellcheck disable=SC2086 # a list of packages
"$here/../setup.sh" libelf-dev libssl-dev $packages 9>&- || die "cannot install what the build needs"

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
# Kconfig drops what it cannot satisfy without a word: say which. A flavour without one of
# its own options would not be what it says.
# shellcheck disable=SC2086 # a list of files
[ "$target" = modules_prepare ] ||
	awk '/^CONFIG_/ { sub(/=.*/, ""); last[$0] = FILENAME } END { for (s in last) print s, last[s] }' $fragments |
	while read -r sym fragment; do
		grep -q "^$sym=" .config && continue
		[ "$fragment" = "$here/base.config" ] || die "the source cannot build $sym (${fragment##*/})"
		say "not available: $sym"
	done || exit 1
run make -C "$src" O="$out" "$@" -j"$(nproc)" "$target"
[ "$target" = modules_prepare ] || run make -C "$src" O="$out" "$@" -j"$(nproc)" modules
echo "$*" >"$out/.timely-make"
touch "$out/.timely-built"
say "built in $out"
echo "$out"
