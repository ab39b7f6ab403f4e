#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Boot one of Debian's own kernels with two CPUs, load the modules, send data
# through them from both, unload them, also under load; then with On-Ramp to another
# network namespace and back. Prints TAP.
#
#   smoke.sh 6.1|6.12|7.3
#
# QEMU emulates, unless the processor has what KVM needs. The guest is an
# initramfs with busybox, timelyctl and nothing else; its devices are the loopback and
# a veth.

set -eu

series=$1
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

image=$("$top/tools/kernels/image.sh" "$series")
modules=$("$top/tools/kernels/build-module.sh" --print-dir "$series" "$top")

root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$modules/timely.ko" "$modules/tcp_timely.ko" "$modules/net/sched/sch_timely.ko" \
	"$modules/timely_acker.ko" "$root/"
veth=$(find "$image" -name 'veth.ko*')
case $veth in
*.xz)	xz -dc "$veth" >"$root/veth.ko" ;;
*)	cp "$veth" "$root/" ;;
esac
make -s -C "$top/tools/timelyctl" OUT="$root/bin"
# It is linked with libmnl, of which Debian has no static one.
ldd "$root/bin/timelyctl" | grep -o '/[^ ]*' | while read -r library; do
	mkdir -p "$root${library%/*}"
	cp -L "$library" "$root$library"
done
gcc -std=gnu11 -O2 -Wall -static -I"$top/include/uapi" -o "$root/bin/qdisc" "$here/qdisc.c"
cp "$here/smoke-init.sh" "$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"

# An emulator that runs each processor in a thread of its own may execute an instruction
# that another one has patched since: the kernel then stops at the breakpoint it patches
# with (QEMU 7.2, "Oops: int3"). One thread takes the processors in turn.
set -- -accel tcg,thread=single
! grep -qwE 'svm|vmx' /proc/cpuinfo || set -- -accel kvm "$@"

timeout 600 qemu-system-x86_64 "$@" -cpu max -smp 2 -m 512 \
	-kernel "$(find "$image/boot" -name 'vmlinuz-*')" -initrd "$work/initrd" \
	-append "console=ttyS0 panic=-1 quiet" -nographic -no-reboot \
	</dev/null >"$work/log" 2>&1 || :
# The firmware's escape sequences share a line with the first words.
tr -d '\r' <"$work/log" | sed -n 's/.*TAP version/TAP version/; /^TAP/,$p' | tee "$work/tap"

if ! grep -q '^# end' "$work/tap"; then
	echo "not ok - the guest came to its end"
	{ tail -n 20 "$work/log" && grep -m 1 -A 20 -E 'BUG|Oops|panic' "$work/log"; } |
		sed 's/^/# /'
	exit 1
fi
! grep -q '^not ok' "$work/tap"
