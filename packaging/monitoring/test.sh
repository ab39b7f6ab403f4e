#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Test the alert rules and the dashboard with metrics of a guest: promtool checks the metrics and the rules,
# and a Prometheus server reads the metrics, loads the rules and answers each query of the dashboard. TAP on
# standard output.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
"$top/tools/setup.sh" prometheus
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

TIMELY_METRICS=$work "$top/selftests/run-in-guest.sh" base observe >"$work/guest" 2>&1 || {
	sed 's/^/# /' "$work/guest"
	echo "not ok 1 - metrics of a guest"
	exit 1
}
make -s -C "$top/tools/timelyctl" OUT="$work" >"$work/make" 2>&1 || { sed 's/^/# /' "$work/make"; exit 1; }
private="unshare --net"
[ "$(id -u)" -eq 0 ] || private="$private --map-root-user"
# shellcheck disable=SC2016 # for the inner shell
$private sh -c 'PATH=$PATH:/sbin:/usr/sbin ip link set lo up && exec "$@"' sh /usr/bin/python3 -I "$here/test.py" "$work"
