#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Collects what the tests use, where run.sh is not used, as in the kernel's kselftest:
#
#	installed.sh DIRECTORY
#
# DIRECTORY receives links to the installed modules, to timelyctl, to the programs beside the tests,
# and to tc's plugins if TC_LIB_DIR is their directory. The exit status is 4, which means
# "skipped" to kselftest, if a module is not installed or if the user is not root. INSTALL_MOD_PATH
# is that of make modules_install.

skip() {
	echo "1..0 # SKIP $*"
	exit 4
}

here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" -eq 0 ] || skip "needs root"
mkdir -p "$1"
for module in timely tcp_timely sch_timely sch_trim timely_acker; do
	file=$(modinfo -b "${INSTALL_MOD_PATH:-/}" -n $module 2>/dev/null) ||
		skip "module $module is not installed"
	[ -f "$file" ] || skip "$module is no module: the tests load and unload it"
	ln -sf "$file" "$1/$module.ko"
done
for file in "$here/netlink_fuzz" "$here/packet_fuzz" "$here/many_sockets" \
	"${TC_LIB_DIR-}/q_timely.so" "${TC_LIB_DIR-}/q_trim.so" "$(command -v timelyctl)"; do
	[ ! -f "$file" ] || ln -sf "$file" "$1"
done
