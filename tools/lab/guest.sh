#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run a script in a User Mode Linux guest with a virtual clock and one processor.
#
#   guest.sh [-k base|debug|DIR] [-m MEM] [-t SECONDS] [-s SEED] [-w] [-a ARGUMENT]... [-e KEY=VALUE]... SCRIPT [ARG]...
#
# The guest's root directory is the host's, through hostfs; /run, /dev/shm and the directory
# $TIMELY_WORK are in the guest's memory. The script runs as root in the caller's directory,
# with lo up. Its output is printed, and its exit status is that of guest.sh. If
# $TIMELY_GUEST_WRAP is set, this command runs instead, with the script as arguments.
# The real-time clock starts at 2026-01-01, and random numbers in the guest come from SEED
# (default $TIMELY_SEED, or 1), so that a run can be repeated exactly. -m is the guest's memory
# (default 2048M). -a adds an ARGUMENT to the kernel's command line, -e sets a variable for
# the script. guest.sh itself exits with:
#   125  the script succeeded, but the kernel's log has a warning or a report of a sanitizer
#        (ignored with -w)
#   126  the guest crashed or did not start
#   124  the guest was stopped after SECONDS of wall time (default 900, or
#        $TIMELY_GUEST_TIMEOUT)

set -eu

here=$(cd "$(dirname "$0")" && pwd)
flavour=base
mem=2048M
limit=${TIMELY_GUEST_TIMEOUT:-900}
seed=${TIMELY_SEED:-1}
tolerant=
env=
arguments=

say() { echo "guest: $*" >&2; }
die() { say "$*"; exit 126; }
quote() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

while getopts k:m:t:s:wa:e: opt; do
	case $opt in
	k)	flavour=$OPTARG ;;
	m)	mem=$OPTARG ;;
	t)	limit=$OPTARG ;;
	s)	seed=$OPTARG ;;
	w)	tolerant=1 ;;
	a)	arguments="$arguments $OPTARG" ;;
	e)	case ${OPTARG%%=*} in
		"$OPTARG"|*[!A-Za-z0-9_]*|[0-9]*|'') die "-e needs KEY=VALUE, not '$OPTARG'" ;;
		esac
		env="$env
export ${OPTARG%%=*}=$(quote "${OPTARG#*=}")" ;;
	*)	sed -n '6p' "$0" >&2; exit 126 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || die "no script to run: guest.sh [-k base|debug|DIR] ... SCRIPT"
[ -f "$1" ] || die "no such script: $1"
script=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift

case $flavour in
/*)	kernel=$flavour ;;
*)	kernel=$("$here/uml/build.sh" "$flavour") || die "cannot build the kernel $flavour, see above" ;;
esac
case $seed in
''|*[!0-9]*) die "-s and TIMELY_SEED need a number, not '$seed'" ;;
esac
[ -x "$kernel/linux" ] || die "no kernel at $kernel/linux"

work=$(mktemp -d "${TMPDIR:-/tmp}/timely-guest.XXXXXX")
uml=
# timeout(1) makes a process group of the guest and its helpers, and passes on SIGTERM to the group.
trap '[ -z "$uml" ] || kill -TERM "$uml" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$work/private"
${CC:-gcc} -O2 -Wall -shared -fPIC -o "$work/seed.so" "$here/seed.c" || die "cannot compile seed.c, see above"

# A file carries the script's environment, because the kernel's command line is short.
{
	echo "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	echo "export HOME=/root LC_ALL=C.UTF-8 TIMELY_WORK=$(quote "$work/private")"
	echo "$env"
} >"$work/env"

command=$(quote "$script")
for arg; do command="$command $(quote "$arg")"; done
runner=
[ -x "$script" ] || runner=/bin/sh

# The guest has no init system to shut down: perl, which every Debian has, calls reboot(2).
cat >"$work/init" <<-INIT
	#!/bin/sh
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin
	# A system call that fails takes 1 us of virtual time. As root mount(8) may write to the host's /run/mount;
	# give other users a directory where they may write, so that guests of all users are the same.
	export LIBMOUNT_UTAB=$(quote "$work/utab")
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t debugfs debug /sys/kernel/debug
	grep -q '^[^ ]* /dev ' /proc/mounts || mount -t devtmpfs dev /dev
	mkdir -p /dev/shm /dev/pts
	mount -t tmpfs shm /dev/shm
	mount -t devpts pts /dev/pts
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	mount -t tmpfs run /run
	unset LIBMOUNT_UTAB
	mount -t tmpfs private $(quote "$work/private")
	ip link set lo up
	exec </dev/null >/dev/console 2>&1
	stty -opost </dev/console
	echo "guest: up"
	(
		. $(quote "$work/env")
		cd $(quote "$PWD")
		exec ${TIMELY_GUEST_WRAP-} $runner $command
	)
	status=\$?
	dmesg >$(quote "$work/dmesg")
	echo \$status >$(quote "$work/status")
	sync
	perl -e 'syscall 169, 0xfee1dead, 672274793, 0x4321fedc'
INIT
chmod +x "$work/init"

# The processes of a guest take turns, and on a busy machine a guest takes four times as long if they move
# between processors. So a guest has one processor: one that no other guest has, if there is one.
# The lock ends with the guest, whose processes have file 4.
count=$(nproc --all)
cpu=0
while [ "$cpu" -lt "$count" ]; do
	[ -d /sys/devices/system/cpu/cpu$cpu ] || break
	exec 4</sys/devices/system/cpu/cpu$cpu
	! taskset -c "$cpu" true 2>/dev/null || ! flock -n 4 || break
	cpu=$((cpu + 1))
done
[ "$cpu" -lt "$count" ] || cpu=$(($$ % count))
taskset -c "$cpu" true 2>/dev/null && pin="taskset -c $cpu" || pin=

# The kernel mixes its command line into its random numbers, so $work has a constant name there.
exec 3<"$work"
work_name=/proc/self/fd/3
# The real-time clock of the guest starts at 2026-01-01.
start_ns=$((1767225600000000000 + seed % 1000 * 12345678901))
# The guest's memory is a sparse file: keep it in /dev/shm if there is room.
[ -w /dev/shm ] && memdir=/dev/shm || memdir=$work
mkfifo "$work/console"
# The kernel's boot messages are shown only if the script fails.
tee "$work/log" <"$work/console" | sed -u '1,/^guest: up/d; /^reboot: Power down$/d' &
reader=$!
# shellcheck disable=SC2086 # lists of words
TMPDIR=$memdir TIMELY_SEED=$seed LD_PRELOAD=$work/seed.so \
	timeout -k 10 "$limit" $pin "$kernel/linux" mem="$mem" \
	rootfstype=hostfs rw init=$work_name/init time-travel=inf-cpu time-travel-start=$start_ns \
	uml_dir=$work_name/ umid=guest con=null con0=null,fd:1 panic=-1 quiet $arguments \
	</dev/null >"$work/console" 2>&1 &
uml=$!
rc=0
wait "$uml" || rc=$?
uml=
wait "$reader" || :

complaint='BUG:|WARNING:|Oops|KASAN:|UBSAN:|INFO: (possible|task|suspicious)|ODEBUG:|kmemleak: [0-9]+ new'
if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then
	say "stopped after $limit s of wall time; the end of its console:"
	tail -n 30 "$work/log" >&2
	exit 124
elif [ ! -s "$work/status" ]; then
	say "crashed (exit status $rc); the end of its console:"
	tail -n 60 "$work/log" >&2
	exit 126
fi
status=$(cat "$work/status")
if [ -z "$tolerant" ] && grep -Eq "$complaint" "$work/dmesg"; then
	say "warnings in the kernel's log:"
	grep -E -A 30 "$complaint" "$work/dmesg" | head -n 80 >&2
	[ "$status" -ne 0 ] || status=125
fi
exit "$status"
