#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run a command in an overlay over this machine's root directory: what the command installs and writes
# is gone afterwards, and the machine does not change. Installed packages start no services. Needs root.
#
#	overlay.sh COMMAND [ARGUMENT]...		COMMAND needs an absolute path

set -eu

if [ "${1-}" = --inside ]; then
	mount -t tmpfs tmpfs "$2"
	cd "$2"
	shift 2
	mkdir upper work root
	mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
	mount -t proc proc root/proc
	mount --rbind /dev root/dev
	mount --rbind /sys root/sys
	printf '#!/bin/sh\nexit 101\n' >root/usr/sbin/policy-rc.d
	chmod +x root/usr/sbin/policy-rc.d
	exec chroot root "$@"
fi

dir=$(mktemp -d)
trap 'rmdir "$dir"' EXIT
trap 'exit 130' HUP INT TERM
unshare -m "$0" --inside "$dir" "$@"
