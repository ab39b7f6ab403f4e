#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Long test with random actions (soak.py) on the modules in two connected guests with two
# processors each. The actions are all kinds of traffic; creation and removal of qdiscs, network
# namespaces and devices; changes of clocks, parameters and congestion controls; unloading
# of modules.
#
#	soak.sh HOURS [SEED [FLAVOUR]]
#
# HOURS may be a fraction. FLAVOUR is a flavour of kernel.sh, by default debug. The seed is
# printed, by default the current time; the same seed gives the same sequence of actions. Logs
# are in build/soak/FLAVOUR/. The output has a result for each guest at the end. The run
# fails if a kernel's log has a warning, or if a command hangs.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
hours=${1:?usage: soak.sh HOURS [SEED [FLAVOUR]]}
seed=${2:-$(date +%s)}
flavour=${3:-debug}
seconds=$(awk -v hours="$hours" 'BEGIN { printf "%d", hours * 3600 }')
[ "$seconds" -gt 0 ] || { echo "soak.sh: HOURS must be a number above 0" >&2; exit 2; }

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
	# Wait until the server's socket exists: the client fails without it.
	while [ "$host" -eq 1 ] && [ ! -S "$out/wire" ]; do sleep 1; done
done

failed=0
for pid in $pids; do
	wait "$pid" || failed=$((failed + 1))
done
for host in 1 2; do
	grep -E '^(not )?ok |^# soak' "$out/host-$host.log" ||
		{ echo "not ok - the guest of host $host did not run to the end; its last output:"; tail -n 40 "$out/host-$host.log" | sed 's/^/# /'; }
done
[ "$failed" -eq 0 ]
