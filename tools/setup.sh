#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Install the Debian packages that the project's commands need and that this machine lacks.
# Does nothing if all of them are installed.
#
#	setup.sh [PACKAGE]...	install these packages instead; jobs that are rarely run need some

set -eu

# One line each for building kernels and modules, for the lab, for tests, for kernels in QEMU, for
# the kernel's own tests and the operations manual, for programs that run over NDP. The last line has the library of chronyc
# that not every Debian has; tools/lab/debian/chrony.sh unpacks chrony, because the installed package would
# replace this machine's clock daemon.
packages="
	gcc make flex bison bc libc6-dev xz-utils kmod rsync util-linux perl
	python3 python3-pyroute2 binutils iproute2 ethtool gnuplot-nox
	sparse shellcheck codespell mypy libmnl-dev librsvg2-bin
	qemu-system-x86 busybox-static cpio
	python3-scapy iptables nftables iputils-ping
	curl iperf3 qperf
	libedit2
"
[ $# -eq 0 ] || packages="$*"

missing=
for package in $packages; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
# Jobs that run at the same time may call this script: apt-get fails while another one is running.
exec 9<"$0"
flock 9

echo "setup: installing$missing" >&2
sudo=
if [ "$(id -u)" -ne 0 ]; then
	sudo=$(command -v sudo) || {
		echo "setup: needs root or sudo; run as root: apt-get install$missing" >&2
		exit 1
	}
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# Jobs run at the same time, and apt-get fails at once while another one has its lock.
# shellcheck disable=SC2086,SC2016 # a list of packages; sh expands "$@"
if ! $sudo flock /var/lib/dpkg sh -c 'apt-get update && apt-get install -y --no-install-recommends "$@"' sh \
	$missing >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "setup: the installation failed, see above; run as root: apt-get install$missing" >&2
	exit 1
fi
