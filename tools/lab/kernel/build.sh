#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the lab's User Mode Linux kernel from Debian's kernel source, once, in
# the cache; print its build directory. Everything else goes to standard error.
#
#   build.sh [base|debug] [6.12]
#
# The cache is $TIMELY_CACHE, or ~/.cache/timely; a build is keyed by the
# source's version, the configuration, the compiler and what is changed in the
# source: the size of the host's extended registers, the resolution of the clock
# and of its timers.

set -eu

flavour=${1:-base}
series=${2:-6.12}
here=$(cd "$(dirname "$0")" && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "lab kernel: $*" >&2; }
die() { say "$*"; exit 1; }

case $flavour in
base)	fragments=$here/base.config ;;
debug)	fragments="$here/base.config $here/debug.config" ;;
*)	die "unknown flavour '$flavour': base or debug" ;;
esac

# KCONFIG_CONFIG and friends from the caller's environment must not leak in.
unset KCONFIG_CONFIG KBUILD_OUTPUT MAKEFLAGS MFLAGS ARCH CROSS_COMPILE

# Up to 6.12 UML takes it for granted that the registers that ptrace(2) moves
# fit 2696 bytes. With AMX they do not, and no process starts.
xstate_bytes() {
	probe=$(mktemp)
	${CC:-gcc} -x c -o "$probe" - <<-EOF
	#include <cpuid.h>
	#include <stdio.h>
	int main(void)
	{
		unsigned int a, bytes, c, d;

		__cpuid_count(0xd, 0, a, bytes, c, d);
		return printf("%u\\n", bytes > 2696 ? bytes : 2696) < 0;
	}
	EOF
	"$probe"
	rm -f "$probe"
}
xstate=$(xstate_bytes) || die "cannot tell the size of this processor's registers"

# UML's clock reads in steps of 256 ns, and its timers fire 500 ns ahead at the
# soonest; virtual time is exact to one, and stamps are measured against it.
clock='s,\(time_travel_time\|os_nsecs()\|NSEC_PER_SEC\) */ *TIMER_MULTIPLIER,\1,'
timer='s,\(TIMER_MIN_DELTA\) *500,\1 1,'

# Print the directory of the build, if it is there; set $src and $out.
find_build() {
	src=$(find "$cache" -maxdepth 1 -name "linux-source-$series-*" -type d | sort -V | tail -n 1)
	[ "$src" ] || return 1
	# shellcheck disable=SC2086 # a list of files
	key=$({ cat $fragments; ${CC:-gcc} -dumpfullversion; echo "$xstate $clock $timer"; } | sha256sum | cut -c1-12)
	out=$cache/uml-${src##*/linux-source-}-$flavour-$key
	[ -e "$out/.timely-built" ] && echo "$out"
}

mkdir -p "$cache"
# One that is there is not kept waiting while another is made.
! find_build || exit 0
exec 9>"$cache/lock-$series"
flock 9
[ "$src" ] || "$here/fetch-source.sh" "$series" "$cache" >&2 || die "no source for $series"
! find_build || exit 0

mkdir -p "$out"
log=$out/build.log
say "building $flavour kernel from ${src##*/} (about 4 minutes on two cores, log $log)"
run() { "$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; die "failed: $*"; }; }
: >"$log"
sed -i "s/\(HOST_FP_SIZE\), [0-9][0-9]*)/\1, $xstate)/" "$src/arch/x86/um/user-offsets.c"
sed -i "$clock" "$src/arch/um/kernel/time.c"
sed -i "$timer" "$src/arch/um/include/linux/time-internal.h"
run make -C "$src" O="$out" ARCH=um defconfig
cd "$out"
# shellcheck disable=SC2086 # a list of files
run "$src/scripts/kconfig/merge_config.sh" -m -O "$out" "$out/.config" $fragments
run make -C "$src" O="$out" ARCH=um olddefconfig
# Kconfig drops what it cannot satisfy without a word: say which.
# shellcheck disable=SC2086 # a list of files
awk '/^CONFIG_/ { sub(/=.*/, ""); last[$0] = 1 } END { for (s in last) print s }' $fragments |
while read -r sym; do
	grep -q "^$sym=" .config || say "not available in $series: $sym"
done
run make -C "$src" O="$out" ARCH=um -j"$(nproc)"
touch "$out/.timely-built"
say "built in $out"
echo "$out"
