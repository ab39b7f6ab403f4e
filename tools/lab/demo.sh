#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run timely and other congestion controls in the testbed, and write a page that shows the results
# as they arrive:
#
#	demo.sh DIR [OPTION]...		options of lab run, for example --jobs 1
#
# The page is DIR/index.html, the results are beside it.

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { echo "usage: demo.sh DIR [OPTION]..." >&2; exit 2; }
out=$1
shift
lab=$top/tools/lab/lab
page=$out/index.html
started=$(date +%s)

# Fetch the kernel's source while the packages are installed that the demonstration needs. If this
# fails, lab run tries again and says why.
"$top/tools/setup.sh" xz-utils flex bison bc
"$top/tools/lab/uml/build.sh" source >/dev/null &
trap 'kill $! 2>/dev/null' EXIT
"$top/tools/setup.sh" gcc make libc6-dev perl binutils kmod python3 iproute2
wait || :
trap - EXIT

echo "The page with the results will be $page: open it in a browser, and results appear as they arrive."
failed=
"$lab" run demo "$@" --out "$out/demo" --page "$page" --more || failed=1
[ ! -e "$out/demo/summary.json" ] ||
	"$lab" run demo-cubic "$@" --out "$out/demo-cubic" --page "$page" --beside "$out/demo" || failed=1
# Without a second part nothing follows: let browsers stop reloading the page.
if [ -e "$page" ] && grep -q '<meta http-equiv="refresh"' "$page"; then
	"$lab" page "$out/demo" --out "$page" || failed=1
fi
seconds=$(($(date +%s) - started))
[ ! -e "$page" ] ||
	echo "The page with the results is $page: open it in a browser. The demo took $((seconds / 60)) min $((seconds % 60)) s."
[ -z "$failed" ]
