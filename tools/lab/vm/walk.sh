#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Install, observe, upgrade and remove timely as an administrator does, in a Debian system with two CPUs that QEMU
# emulates. The tests are in walk-guest.sh. Prints TAP. Needs root. Takes about an hour.
#
#   walk.sh bookworm|trixie
#
# The system is connected to a second one by a NIC with two queues. It boots three times: with the kernel of its
# Debian release, to install the packages and to upgrade the kernel to that of backports; with the new kernel and
# the restriction to signed modules; with the new kernel as it is. The logs are in build/walk/SUITE.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)

# machine HOST ARGUMENTS OPTION...: run QEMU with the NIC of this host and these arguments of the kernel. One thread
# emulates all processors, because of a bug of QEMU 7.2; see smoke.sh.
machine() {
	host=$1
	arguments=$2
	shift 2
	accel=tcg,thread=single
	! grep -qwE 'svm|vmx' /proc/cpuinfo || accel=kvm
	exec timeout -k 10 14400 qemu-system-x86_64 -accel $accel -cpu max -smp 2 -m 2048 -nographic -no-reboot "$@" \
		-append "root=/dev/vda ro console=ttyS0 net.ifnames=0 no_timer_check quiet $arguments" \
		-netdev "tap,id=wire,ifname=host$host,queues=2,script=no,downscript=no" \
		-device "virtio-net-pci,netdev=wire,mq=on,vectors=6,mac=52:54:00:00:00:0$host" \
		-fsdev "local,id=share,path=$work/share$host,security_model=none" \
		-device virtio-9p-pci,fsdev=share,mount_tag=share -device virtio-rng-pci \
		</dev/null >"$out/console$host" 2>&1
}

# boot STAGE [ARGUMENT]...: boot the system, and print the results of the tests.
boot() {
	share=$work/share1
	: >"$share/tap"
	(machine 1 "walk=$*" -drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
		-kernel "$share/vmlinuz" -initrd "$share/initrd") || :
	cp "$out/console1" "$out/console-$1"
	cat "$share/tap"
	grep -q "^# end of $1\$" "$share/tap" && return
	echo "not ok - $1: the system ran to the end; its last messages:"
	tail -n 40 "$out/console1" | tr -d '\r' | sed 's/^/# /'
	return 1
}

# Install the packages and the kernel in a copy of the system, in this machine's kernel and without emulation. That
# fills ccache's cache, in which the compiler of the emulated system finds what DKMS lets it compile. Without the cache
# DKMS takes a quarter of an hour there for each version and kernel.
fill_cache() {
	root=$work/root
	mkdir "$root" "$work/share1/ccache"
	cp --sparse=always "$disk/disk" "$work/copy"
	mount -o loop "$work/copy" "$root" && mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" &&
		mount --bind "$work/share1" "$root/share" &&
		env -u TMPDIR chroot "$root" /bin/sh /share/run fill
}

# The NICs of both systems are ports of a bridge, in a network namespace of its own.
wire() {
	ip link add wire type bridge && ip link set wire up || return 1
	for host in 1 2; do
		ip tuntap add dev "host$host" mode tap multi_queue && ip link set "host$host" master wire up || return 1
	done
}

walk() {
	wire || exit 1
	(machine 2 "" -drive "file=$disk/disk,format=raw,if=virtio,snapshot=on" -kernel "$disk/vmlinuz" \
		-initrd "$disk/initrd") &
	trap 'kill $!' EXIT
	boot install && boot signature module.sig_enforce=1 && boot kernel
}

case ${1-} in
--walk)		walk; exit ;;
--fill-cache)	fill_cache; exit ;;
esac

suite=${1:?usage: walk.sh bookworm|trixie}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
out=$top/build/walk/$suite
disk=$("$top/tools/lab/debian/disk.sh" "$suite")
export work out disk
rm -rf "$out"
mkdir -p "$out" "$work/share1" "$work/share2"

version=$(sed -n 's/.* TIMELY_VERSION "\(.*\)"/\1/p' "$top/include/uapi/linux/timely_version.h")
TIMELY_PACKAGES=$work/share1/packages "$top/packaging/build.sh" deb
TIMELY_PACKAGES=$work/share1/newer TIMELY_VERSION=$version.1 "$top/packaging/build.sh" deb
echo "$version" >"$work/share1/version"
cp "$here/walk-guest.sh" "$work/share1/run"
cp -r "$top/packaging/examples" "$top/packaging/monitoring" "$disk/vmlinuz" "$disk/initrd" "$work/share1"
cp --sparse=always "$disk/disk" "$work/disk"
# The other system answers each connection with the SHA-256 of what it has received.
echo 'exec socat -t 3600 TCP-LISTEN:5000,fork,reuseaddr SYSTEM:sha256sum' >"$work/share2/run"

unshare -m "$0" --fill-cache >"$out/fill-cache" 2>&1 || { tail -n 20 "$out/fill-cache" >&2; exit 1; }
rm "$work/copy"
unshare -n "$0" --walk >"$out/tap" || :
cat "$out/tap"
! grep -q '^not ok' "$out/tap" && grep -q '^# end of kernel$' "$out/tap"
