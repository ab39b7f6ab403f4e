#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the lab's User Mode Linux (UML) kernel once, from Debian's kernel source. Print its
# build directory; all other output goes to standard error.
#
#   build.sh [base|debug|selftests|source] [SERIES]
#
# "selftests" has what the kernel's own tests need. "source" only fetches the source, for which no
# compiler is needed, and prints its directory. SERIES is the source's version, by default 7.3 for
# "selftests", else 6.12.
# The build directory is in $TIMELY_CACHE (default ~/.cache/timely). Its name depends on the
# version of the source, the configuration, the compiler and this script's changes of
# the source: the size of the processor's extended registers, and the resolution of the clock
# and of timers.

set -eu

flavour=${1:-base}
series=6.12
hz=
here=$(cd "$(dirname "$0")" && pwd)
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}

say() { echo "lab kernel: $*" >&2; }
die() { say "$*"; exit 1; }

case $flavour in
base)	fragments=$here/base.config ;;
debug)	fragments="$here/base.config $here/debug.config" ;;
selftests)
	fragments="$here/base.config $here/selftests.config"
	series=7.3
	# The kernel's tests expect that timers expire in the right millisecond.
	hz=1000 ;;
source)	fragments= ;;
*)	die "unknown flavour '$flavour': base, debug, selftests or source" ;;
esac
series=${2:-$series}

# These variables of the caller's environment must not affect the build.
unset KCONFIG_CONFIG KBUILD_OUTPUT MAKEFLAGS MFLAGS ARCH CROSS_COMPILE

# Bytes of this processor's registers as ptrace(2) copies them, at least 2696. Up to 6.12 UML reserves
# 2696 bytes; processors with AMX need more, and no process would start.
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
[ "$flavour" = source ] || xstate=$(xstate_bytes) ||
	die "cannot find out the size of this processor's registers, see above"

# UML's clock has a resolution of 256 ns, and its timers expire after 500 ns at the earliest. Change both
# to 1 ns, the resolution of virtual time, because timestamps are measured by this clock.
clock='s,\(time_travel_time\|os_nsecs()\|NSEC_PER_SEC\) */ *TIMER_MULTIPLIER,\1,'
timer='s,\(TIMER_MIN_DELTA\) *500,\1 1,'

# Is there a source? Sets $src.
find_source() {
	src=$(find "$cache" -maxdepth 1 -name "linux-source-$series-*" -type d | sort -V | tail -n 1)
	[ "$src" ]
}

# For "source": print the directory of the source if there is one. Sets $src.
print_source() {
	[ "$flavour" = source ] && find_source && echo "$src"
}

# Print the build directory if it is complete. Sets $src and $out.
find_build() {
	[ "$fragments" ] && find_source || return 1
	# shellcheck disable=SC2086 # a list of files
	key=$({ cat $fragments; ${CC:-gcc} -dumpfullversion; echo "$xstate $clock $timer${hz:+ $hz}"; } | sha256sum | cut -c1-12)
	out=$cache/uml-${src##*/linux-source-}-$flavour-$key
	[ -e "$out/.timely-built" ] && echo "$out"
}

mkdir -p "$cache"
# An existing build or source is used without waiting for the lock.
! find_build || exit 0
! print_source || exit 0
exec 9>"$cache/lock-$series"
flock 9
find_source || "$here/fetch-source.sh" "$series" "$cache" >&2 || die "cannot fetch the source of Linux $series, see above"
! print_source || exit 0
! find_build || exit 0

mkdir -p "$out"
log=$out/build.log
say "building $flavour kernel from ${src##*/} (about 4 minutes on two cores, log $log)"
run() { "$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; die "failed: $*"; }; }
: >"$log"
sed -i "s/\(HOST_FP_SIZE\), [0-9][0-9]*)/\1, $xstate)/" "$src/arch/x86/um/user-offsets.c"
sed -i "$clock" "$src/arch/um/kernel/time.c"
sed -i "$timer" "$src/arch/um/include/linux/time-internal.h"
# UML's frequency of timer interrupts is a constant.
sed -i "/^config HZ\$/,/default/ s/default .*/default ${hz:-100}/" "$src/arch/um/Kconfig"
run make -C "$src" O="$out" ARCH=um defconfig
cd "$out"
# shellcheck disable=SC2086 # a list of files
run "$src/scripts/kconfig/merge_config.sh" -m -O "$out" "$out/.config" $fragments
run make -C "$src" O="$out" ARCH=um olddefconfig
# Kconfig silently drops options whose dependencies are missing. Report them.
# shellcheck disable=SC2086 # a list of files
awk '/^CONFIG_/ { sub(/=.*/, ""); last[$0] = 1 } END { for (s in last) print s }' $fragments |
while read -r sym; do
	grep -q "^$sym=" .config || say "option not available in $series: $sym"
done
run make -C "$src" O="$out" ARCH=um -j"$(nproc)"
touch "$out/.timely-built"
say "built in $out"
echo "$out"
