#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Install, observe, upgrade and remove timely as an administrator does, in a Debian system with two CPUs that QEMU
# emulates. The tests are in walk-guest.sh. Prints TAP, with the seconds that each test took. Needs root. Takes an
# hour on a machine with other load.
#
#   walk.sh [--keep] [--only] bookworm|trixie [STAGE]
#   walk.sh --short bookworm|trixie
#
# The system is connected to a second one by a NIC with two queues. It boots in these stages:
#
#   install	with the kernel of its Debian release, to install the packages and to upgrade them in use
#   examples	to apply the files of packaging/examples; what this boot writes to the disk is not kept
#   upgrade	to set timely up at boot, and to upgrade the kernel to that of backports
#   signature	with the new kernel and the restriction to signed modules
#   kernel	with the new kernel as it is; to remove the packages
#
# The logs are in build/walk/SUITE. With --keep the system's state before each stage is kept there too, up to 3 GB
# each; a later call can start with such a stage, with the same packages, and with --only it ends after this stage.
#
# With --short the system boots once, in the stage "short": it installs, uses and removes the packages, without upgrades.
#
# If WALK_END is set, seconds since 1970, and the stages that are left would end later on this machine, they are
# reported as skipped.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)

# machine HOST ARGUMENTS OPTION...: run QEMU with the NIC of this host and these arguments of the kernel. One thread
# emulates all processors, because of a bug of QEMU 7.2; see smoke.sh. Without erms and fsrm the kernel and libc copy
# memory by loops, which take less time than `rep movsb` where QEMU emulates them byte by byte.
machine() {
	host=$1
	arguments=$2
	shift 2
	accel=tcg,thread=single
	! grep -qwE 'svm|vmx' /proc/cpuinfo || accel=kvm
	exec timeout -k 10 14400 qemu-system-x86_64 -accel $accel -cpu max,-erms,-fsrm -smp 2 -nographic -no-reboot "$@" \
		-append "root=/dev/vda ro console=ttyS0 net.ifnames=0 no_timer_check mitigations=off quiet $arguments" \
		-netdev "tap,id=wire,ifname=host$host,queues=2,script=no,downscript=no" \
		-device "virtio-net-pci,netdev=wire,mq=on,vectors=6,mac=52:54:00:00:00:0$host" \
		-device virtio-rng-pci </dev/null >"$out/console$host" 2>&1
}

# boot STAGE: boot the system, and print the results of the tests.
boot() {
	share=$work/share1
	: >"$share/tap"
	[ -z "$keep" ] || [ "$1" = "$resumed" ] || save "$out/before-$1" || return 1
	snapshot=off
	arguments="walk=$1"
	case $1 in
	examples)	snapshot=on ;;
	signature)	arguments="$arguments cloud-init=disabled module.sig_enforce=1" ;;
	*)		arguments="$arguments cloud-init=disabled" ;;
	esac
	(machine 1 "$arguments" -m 2048 -kernel "$share/vmlinuz" -initrd "$share/initrd" \
		-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe,snapshot=$snapshot" \
		-drive "driver=vvfat,dir=$work/seed,label=cidata,if=virtio,read-only=on" \
		-fsdev "local,id=share,path=$share,security_model=none" -device virtio-9p-pci,fsdev=share,mount_tag=share) || :
	cp "$out/console1" "$out/console-$1"
	cat "$share/tap"
	grep -q "^# end of $1\$" "$share/tap" && return
	echo "not ok - $1: the system ran to the end; its last messages:"
	tail -n 40 "$out/console1" | tr -d '\r' | sed 's/^/# /'
	return 1
}

# save DIR: copy the state of the system, its disk and what is shared with it.
save() {
	rm -rf "$1"
	mkdir "$1" && cp --sparse=always "$work/disk" "$1" && cp -r "$work/share1" "$1"
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

# Seconds that a stage takes on two processors with other work (results/walk).
stage_seconds() {
	case $1 in
	install)	echo 602 ;;
	examples)	echo 253 ;;
	upgrade)	echo 442 ;;
	signature)	echo 35 ;;
	*)		echo 170 ;;
	esac
}

# is_late BEGAN DONE LEFT: DONE seconds of stage_seconds() are done since BEGAN, and LEFT are left.
is_late() {
	[ "${WALK_END-}" ] && [ "$2" -gt 0 ] || return 1
	now=$(date +%s)
	[ $((now + (now - $1) * $3 / $2)) -gt "$WALK_END" ]
}

walk() {
	wire || exit 1
	(machine 2 "init=/usr/local/sbin/answer" -m 512 -drive "file=$disk/disk,format=raw,if=virtio,snapshot=on" \
		-kernel "$disk/vmlinuz" -initrd "$disk/initrd") &
	trap 'kill $!' EXIT
	began=$(date +%s)
	ended=0
	left=0
	for stage in $stages; do
		left=$((left + $(stage_seconds "$stage")))
	done
	for stage in $stages; do
		! is_late "$began" "$ended" "$left" || {
			echo "ok - $stage: this stage and those after it # SKIP it is late"
			return
		}
		boot "$stage" || return 1
		ended=$((ended + $(stage_seconds "$stage")))
		left=$((left - $(stage_seconds "$stage")))
	done
}

case ${1-} in
--walk)		walk; exit ;;
--fill-cache)	fill_cache; exit ;;
esac

keep=
only=
all='install examples upgrade signature kernel'
while :; do
	case ${1-} in
	--keep)	keep=1 ;;
	--only)	only=1 ;;
	--short) all=short ;;
	*)	break ;;
	esac
	shift
done
usage='usage: walk.sh [--keep] [--only] bookworm|trixie [install|examples|upgrade|signature|kernel]
       walk.sh --short bookworm|trixie'
suite=${1:?$usage}
resumed=${2-}
first=${resumed:-${all%% *}}
stages=
for stage in $all; do
	[ -z "$stages" ] && [ "$stage" != "$first" ] || stages="$stages $stage"
done
[ -n "$stages" ] || { echo "$usage" >&2; exit 2; }
[ -z "$only" ] || stages=$first
last=${stages##* }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
out=$top/build/walk/$suite
disk=$("$top/tools/lab/debian/disk.sh" "$suite")
export work out disk keep resumed stages

# Build the packages, prepare the system's disk and what is shared with it.
prepare() {
	share=$work/share1
	mkdir "$share"
	version=$(sed -n 's/.* TIMELY_VERSION "\(.*\)"/\1/p' "$top/include/uapi/linux/timely_version.h")
	TIMELY_PACKAGES=$share/packages "$top/packaging/build.sh" deb
	[ "$all" = short ] || TIMELY_PACKAGES=$share/newer TIMELY_VERSION=$version.1 "$top/packaging/build.sh" deb
	echo "$version" >"$share/version"
	cp "$here/walk-guest.sh" "$share/run"
	cp -r "$top/packaging/monitoring" "$disk/vmlinuz" "$disk/initrd" "$share"
	cp --sparse=always "$disk/disk" "$work/disk"
	unshare -m "$0" --fill-cache >"$out/fill-cache" 2>&1 || { tail -n 20 "$out/fill-cache" >&2; exit 1; }
	rm "$work/copy"
}

if [ -z "$resumed" ]; then
	rm -rf "$out"
	mkdir -p "$out"
	prepare
else
	cp --sparse=always "$out/before-$resumed/disk" "$work"
	cp -r "$out/before-$resumed/share1" "$work"
	cp "$here/walk-guest.sh" "$work/share1/run"
fi
rm -rf "$work/share1/examples"
cp -r "$top/packaging/examples" "$work/share1"
# The disk with the user data of cloud-init, which reads it in the stage examples only.
mkdir "$work/seed"
cp "$top/packaging/examples/cloud-init/user-data.yaml" "$work/seed/user-data"
echo 'instance-id: walk' >"$work/seed/meta-data"

unshare -n "$0" --walk >"$out/tap" || :
cat "$out/tap"
! grep -q '^not ok' "$out/tap" && grep -q "^# end of $last\$" "$out/tap"
