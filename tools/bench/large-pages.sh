# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Sourced by a bench, with its arguments and say().
#
# A kernel has its memory mapped by large pages; the guest has its own from a
# file in /dev/shm, which may come by 4 KB, with many more TLB misses: give it
# one with large pages, seen by this run only.
if [ -z "${BENCH_LARGE_PAGES-}" ]; then
	private="unshare --mount"
	[ "$(id -u)" -eq 0 ] || private="unshare --mount --map-root-user"
	mount_shm="mount -t tmpfs -o huge=always,mode=1777,size=90% tmpfs /dev/shm"
	if $private sh -c "$mount_shm" 2>/dev/null; then
		# shellcheck disable=SC2016 # expanded by the inner shell
		exec $private sh -c "$mount_shm"' && BENCH_LARGE_PAGES=yes exec "$0" "$@"' "$0" "$@"
	fi
	say "no large pages for the guest: many flows will cost more than in life"
fi
export BENCH_LARGE_PAGES="${BENCH_LARGE_PAGES:-no}"
