#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Smoke test of the modules in a kernel that Debian distributes, with two CPUs: load the
# modules, send data from both CPUs, unload the modules, also under load; then the same
# with On-Ramp between two network namespaces. Prints TAP.
#
#   smoke.sh 6.1|6.12|7.3
#
# The guest runs under QEMU, with KVM if the processor has it. Its initramfs has only
# busybox, timelyctl, timely-clockd, the programs of qdisc.c and ndp.c, perf, bpftrace, chrony, and the tests
# (smoke-init.sh).
# Its devices are the loopback device and a veth.

set -eu

series=$1
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$top/tools/setup.sh" linux-perf bpftrace
image=$("$top/tools/lab/debian/image.sh" "$series")
modules=$("$top/tools/lab/debian/build-module.sh" --print-dir "$series" "$top")

root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$modules/timely.ko" "$modules/tcp_timely.ko" "$modules/sch_timely.ko" \
	"$modules/timely_acker.ko" "$modules/sch_trim.ko" "$modules/ndp.ko" "$root/"
for name in veth udp_tunnel ip6_udp_tunnel; do
	module=$(find "$image" -name "$name.ko*")
	case $module in
	*.xz)	xz -dc "$module" >"$root/$name.ko" ;;
	*)	cp "$module" "$root/" ;;
	esac
done
make -s -C "$top/tools/timelyctl" OUT="$root/bin"
make -s -C "$top/tools/clockd" OUT="$work/clockd"
chrony=$("$top/tools/lab/debian/chrony.sh")
cp "$work/clockd/timely-clockd" "$chrony/chronyd" "$chrony/chronyc" "$(command -v perf)" "$(command -v bpftrace)" "$root/bin/"
# Programs with shared libraries.
(cd "$root/bin" && ldd timelyctl timely-clockd chronyd chronyc perf bpftrace) | sed -n 's,^\t[^/]*\(/[^ ]*\) (.*,\1,p' | sort -u |
while read -r library; do
	mkdir -p "$root${library%/*}"
	cp -L "$library" "$root$library"
done
# The commands of the operations manual that look at trace events, for three seconds instead of ten.
sed -n 's/^    \(\(perf\|bpftrace\) .*\)/\1/p' "$top/Documentation/operations.md" |
	sed 's/sleep 10/sleep 3/; s/i:s:10/i:s:3/' >"$root/commands"
gcc -std=gnu11 -O2 -Wall -static -I"$top/include/uapi" -o "$root/bin/qdisc" "$here/qdisc.c"
gcc -std=gnu11 -O2 -Wall -static -I"$top/include/uapi" -o "$root/bin/ndp" "$here/ndp.c"
cp "$here/smoke-init.sh" "$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"

# One thread emulates all processors in turns. With one thread for each processor QEMU 7.2 may execute
# an instruction that another processor has already patched, and the kernel stops at the breakpoint
# that it uses for patching ("Oops: int3").
set -- -accel tcg,thread=single
! grep -qwE 'svm|vmx' /proc/cpuinfo || set -- -accel kvm "$@"

timeout 1500 qemu-system-x86_64 "$@" -cpu max -smp 2 -m 1024 \
	-kernel "$(find "$image/boot" -name 'vmlinuz-*')" -initrd "$work/initrd" \
	-append "console=ttyS0 panic=-1 quiet" -nographic -no-reboot \
	</dev/null >"$work/log" 2>&1 || :
# Remove carriage returns, and the firmware's escape sequences before the first line of TAP.
tr -d '\r' <"$work/log" | sed -n 's/.*TAP version/TAP version/; /^TAP/,$p' | tee "$work/tap"

if ! grep -q '^# end' "$work/tap"; then
	echo "not ok - the guest ran to the end"
	{ tail -n 20 "$work/log" && grep -m 1 -A 20 -E 'BUG|Oops|panic' "$work/log"; } |
		sed 's/^/# /'
	exit 1
fi
! grep -q '^not ok' "$work/tap"
