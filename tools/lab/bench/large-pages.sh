# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Give the guest memory with large pages. A bench sources this file; it must define
# say(). The bench's script is executed again, with the same arguments, in a mount
# namespace in which /dev/shm has large pages.
#
# Reason: a kernel's memory is mapped by large pages. The guest's memory is a file in
# /dev/shm, which may have pages of 4 KB, with many more TLB misses. Sets
# BENCH_LARGE_PAGES to yes or no.
if [ -z "${BENCH_LARGE_PAGES-}" ]; then
	private="unshare --mount"
	[ "$(id -u)" -eq 0 ] || private="unshare --mount --map-root-user"
	mount_shm="mount -t tmpfs -o huge=always,mode=1777,size=90% tmpfs /dev/shm"
	if $private sh -c "$mount_shm" 2>/dev/null; then
		# shellcheck disable=SC2016 # expanded by the inner shell
		exec $private sh -c "$mount_shm"' && BENCH_LARGE_PAGES=yes exec "$0" "$@"' "$0" "$@"
	fi
	say "cannot mount a tmpfs with large pages: many flows will cost more cycles than on a real host"
fi
export BENCH_LARGE_PAGES="${BENCH_LARGE_PAGES:-no}"
