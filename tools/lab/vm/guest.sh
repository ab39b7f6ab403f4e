#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run a script in a QEMU guest with several processors that run at the same time, by the
# real clock. Use it to find races. For measurements use tools/lab/guest.sh, whose guest
# has one processor and virtual time.
#
#	guest.sh [-k FLAVOUR|DIR] [-c CPUS] [-m MEM] [-t SECONDS] [-w] [-e KEY=VALUE]... [-q QEMU-OPTION]... SCRIPT [ARG]...
#
# FLAVOUR is a flavour of kernel.sh (default debug), DIR a kernel's build directory. Defaults
# are 2 CPUs, 2048 MB of memory, 1800 seconds. The guest's root directory is the host's;
# writes go to the guest's memory. The directory $TIMELY_WORK is shared with the host, and
# removed when the guest has ended. The script runs as root. guest.sh exits with the script's
# status, or with
#	125  the script succeeded, but the kernel's log has a warning or worse (ignored with -w)
#	126  the guest did not start, crashed, or was stopped after SECONDS

set -eu

here=$(cd "$(dirname "$0")" && pwd)
flavour=debug
cpus=2
mem=2048
limit=1800
tolerant=
env=
qemu=

say() { echo "guest: $*" >&2; }
die() { say "$*"; exit 126; }
quote() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

while getopts k:c:m:t:we:q: opt; do
	case $opt in
	k)	flavour=$OPTARG ;;
	c)	cpus=$OPTARG ;;
	m)	mem=$OPTARG ;;
	t)	limit=$OPTARG ;;
	w)	tolerant=1 ;;
	e)	env="$env
export ${OPTARG%%=*}=$(quote "${OPTARG#*=}")" ;;
	q)	qemu="$qemu $OPTARG" ;;
	*)	sed -n '8p' "$0" >&2; exit 126 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || die "no script to run"
[ -f "$1" ] || die "no such script: $1"
script=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift

case $flavour in
/*)	kernel=$flavour ;;
*)	kernel=$("$here/kernel.sh" "$flavour") || die "no $flavour kernel" ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/timely-vm.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$work/root/bin" "$work/share"
share=$work/share

command=$(quote "$script")
for arg; do command="$command $(quote "$arg")"; done
runner=
[ -x "$script" ] || runner=/bin/sh

# The initramfs makes the root directory: an overlay of memory (upper) over the host's root (lower).
cp "$(command -v busybox)" "$work/root/bin/busybox"
cat >"$work/root/init" <<-INIT
	#!/bin/busybox sh
	/bin/busybox mkdir -p /proc /sys /dev /lower /rw /new
	/bin/busybox mount -t devtmpfs dev /dev
	/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 root /lower
	/bin/busybox mount -t tmpfs rw /rw
	/bin/busybox mkdir /rw/up /rw/work
	/bin/busybox mount -t overlay -o lowerdir=/lower,upperdir=/rw/up,workdir=/rw/work overlay /new
	/bin/busybox mkdir -p /new$share
	/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,cache=none work /new$share
	exec /bin/busybox switch_root /new $share/init
INIT
cat >"$share/init" <<-INIT
	#!/bin/sh
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t debugfs debug /sys/kernel/debug
	mount -t devtmpfs dev /dev
	mkdir -p /dev/shm /dev/pts
	mount -t tmpfs shm /dev/shm
	mount -t devpts pts /dev/pts
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	mount -t tmpfs run /run
	ip link set lo up
	exec </dev/null >/dev/console 2>&1
	stty -opost </dev/console
	echo "guest: up"
	(
		export HOME=/root LC_ALL=C.UTF-8 TIMELY_WORK=$(quote "$share")$env
		cd $(quote "$PWD")
		exec $runner $command
	)
	status=\$?
	dmesg >$share/dmesg
	echo \$status >$share/status
	sync
	perl -e 'syscall 169, 0xfee1dead, 672274793, 0x1234567'
INIT
chmod +x "$work/root/init" "$share/init"
(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/initrd"

# One thread emulates all processors in turns, because of a bug of QEMU 7.2; see smoke.sh.
accel=tcg,thread=single
! grep -qwE 'svm|vmx' /proc/cpuinfo || accel=kvm
# On a busy host the emulator delivers timer interrupts too late for the kernel's check of the TSC.
# The machine is q35: the ACPI tables of QEMU's older machine take the debug kernel's interpreter
# longer than its limit of 30 s.
# shellcheck disable=SC2086 # options
timeout -k 10 "$limit" qemu-system-x86_64 -accel $accel -cpu max -smp "$cpus" -m "$mem" \
	-kernel "$kernel/arch/x86/boot/bzImage" -initrd "$work/initrd" \
	-machine q35 -append "console=ttyS0 panic=-1 oops=panic quiet no_timer_check" -nographic -no-reboot -nic none \
	-device virtio-rng-pci \
	-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
	-device virtio-9p-pci,fsdev=root,mount_tag=root \
	-fsdev local,id=work,path="$share",security_model=none \
	-device virtio-9p-pci,fsdev=work,mount_tag=work \
	$qemu </dev/null 2>&1 | stdbuf -oL tr -d '\r' | tee "$work/log" | sed -u '1,/guest: up/d' || :

complaint='BUG:|WARNING:|Oops|KASAN:|KCSAN:|UBSAN:|INFO: (possible|task|suspicious)|ODEBUG:|kmemleak: [0-9]+ new|CFI failure'
if [ ! -s "$share/status" ]; then
	say "the guest did not start, crashed, or was stopped after $limit s; the end of its console:"
	tail -n 60 "$work/log" >&2
	exit 126
fi
status=$(cat "$share/status")
awk -f "$here/ours.awk" "$share/dmesg" >"$work/ours"
tail -n 1 "$work/ours" | grep 'elsewhere in the kernel$' >&2 || :
if [ -z "$tolerant" ] && grep -Eq "$complaint" "$work/ours"; then
	say "warnings in the kernel's log:"
	grep -E -A 40 "$complaint" "$work/ours" | head -n 120 >&2
	[ "$status" -ne 0 ] || status=125
fi
exit "$status"
