#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Two guests with two processors each, joined by a wire, do random things to the modules
# for some hours: every kind of traffic, qdiscs, namespaces and devices that come and go,
# clocks that are set, modules that are unloaded, multi-queue devices, congestion controls
# that change.
#
#	soak.sh HOURS [SEED [FLAVOUR]]
#
# HOURS may be a fraction, FLAVOUR is one of kernel.sh's, debug if none is given. The seed is printed; the same one draws the same actions. Logs
# are in build/soak/FLAVOUR/. Ends in two lines of TAP; fails if a kernel complained or something
# hung.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
hours=${1:?usage: soak.sh HOURS [SEED [FLAVOUR]]}
seed=${2:-$(date +%s)}
flavour=${3:-debug}
seconds=$(awk -v hours="$hours" 'BEGIN { printf "%d", hours * 3600 }')
[ "$seconds" -gt 0 ] || { echo "soak.sh: HOURS must be more than 0" >&2; exit 2; }

kernel=$("$here/kernel.sh" "$flavour")
# shellcheck disable=SC2046 # make's arguments
modules=$("$top/tools/lab/modules.sh" "$kernel" $(cat "$kernel/.timely-make"))
out=$top/build/soak/$flavour
rm -rf "$out"
mkdir -p "$out"
trap 'kill $(jobs -p) 2>/dev/null || :' EXIT INT TERM

echo "# seed $seed, $seconds s, logs in build/soak/$flavour"
for host in 1 2; do
	mkdir "$out/modules-$host"
	find "$modules" -name '*.ko' -exec cp {} "$out/modules-$host" \;
	make -s -C "$top/tools/tc" OUT="$out/modules-$host"
	make -s -C "$top/tools/timelyctl" OUT="$out/modules-$host"
	server=on
	[ "$host" -eq 1 ] || server=off
	"$here/guest.sh" -k "$kernel" -m 2048 -t $((seconds + 1200)) -e "TC_LIB_DIR=$out/modules-$host" \
		-q "-netdev stream,id=wire,server=$server,addr.type=unix,addr.path=$out/wire" \
		-q "-device virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0$host" \
		"$here/soak.py" "$seed" "$seconds" "$host" "$out/modules-$host" >"$out/host-$host.log" 2>&1 &
	pids="${pids-} $!"
	# The client wants to find the socket.
	while [ "$host" -eq 1 ] && [ ! -S "$out/wire" ]; do sleep 1; done
done

failed=0
for pid in $pids; do
	wait "$pid" || failed=$((failed + 1))
done
for host in 1 2; do
	grep -E '^(not )?ok |^# soak' "$out/host-$host.log" ||
		{ echo "not ok - host $host did not come to its end"; tail -n 40 "$out/host-$host.log" | sed 's/^/# /'; }
done
[ "$failed" -eq 0 ]
