#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the kernel for benchmarks once, and print its build directory, which is in
# $TIMELY_CACHE. It is the lab's kernel, but compiled as Debian's kernels are: without frame
# pointers, with 128-bit integers.
#
#   kernel.sh

set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "bench kernel: $*" >&2; }
die() { say "$*"; exit 1; }

base=$("$here/../uml/build.sh" base) || die "cannot build the lab's kernel, see above"
src=$(readlink -f "$base/source")
fragment=$here/native.config
key=$(cat "$base/.config" "$fragment" | sha256sum | cut -c1-12)
out=$cache/$(basename "$base" | sed 's/-base-.*//')-native-$key
[ ! -e "$out/.timely-built" ] || { echo "$out"; exit 0; }

exec 9>"$cache/lock-native"
flock 9
[ ! -e "$out/.timely-built" ] || { echo "$out"; exit 0; }

unset KCONFIG_CONFIG KBUILD_OUTPUT MAKEFLAGS MFLAGS ARCH CROSS_COMPILE
mkdir -p "$out"
log=$out/build.log
say "building in $out (some minutes)"
run() { "$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; die "failed: $*"; }; }
: >"$log"
cp "$base/.config" "$out/.config"
cd "$out"
run "$src/scripts/kconfig/merge_config.sh" -m -O "$out" "$out/.config" "$fragment"
run make -C "$src" O="$out" ARCH=um olddefconfig
# User Mode Linux does not select this option, although x86_64 supports it. Modules must be compiled
# with the same flag.
echo -DCONFIG_ARCH_SUPPORTS_INT128=1 >.timely-kcflags
run nice -n 5 make -C "$src" O="$out" ARCH=um -j"$(nproc)" KCFLAGS="$(cat .timely-kcflags)"
touch "$out/.timely-built"
echo "$out"
