#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Test timely-clockd without a network, with the address and undefined-behaviour sanitizers: see
# unit.c. TAP on standard output; messages of the tested code in case of a failure.
#
#	test.sh [ROUNDS [SEED]]
#
# selftests/net/timely/clockd.sh tests the daemon in a network of test NICs.

set -u

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

make -s -C "$here/.." OUT="$work" CFLAGS="-O1 -g" \
	EXTRA_CFLAGS="-Werror -fsanitize=address,undefined -fno-sanitize-recover=all" \
	LDFLAGS="-fsanitize=address,undefined" "$work/unit" "$work/timely-clockd" || exit 1
"$work/unit" "$work" "${1:-100000}" "${2:-20180409}" 2>"$work/messages" || {
	tail -n 20 "$work/messages" | sed 's/^/# /'
	exit 1
}
