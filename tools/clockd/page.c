// SPDX-License-Identifier: GPL-2.0
/*
 * The clock page: a file that programs map, see timely_clock.h. It is written as a sequence counter
 * of the kernel is. The file remains when the daemon ends, and the next daemon continues to use it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "clockd.h"

/* Create the directory of the page, if it is the default one. */
static void make_directory(const char *path)
{
	if (strcmp(path, TIMELY_CLOCK_PAGE) == 0)
		mkdir("/run/timely-clockd", 0755);
}

/* Open or create the file, and lock it. Prints an error if another daemon uses it. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		tell_err("cannot write \"%s\": %s", path, error_text(errno));
	/* Closing the file would end the lock. */
	if (fd < 0 || !lockf(fd, F_TLOCK, 0))
		return fd;
	tell_err("\"%s\" is used by another timely-clockd: stop it first, or give this one another page",
		 path);
	close(fd);
	return -1;
}

/* Whether a daemon or the host died before the daemon had written anything: the file has zeros. */
static bool is_unwritten(int fd, const struct timely_clock_page *page)
{
	static const struct timely_clock_page zeros;
	struct stat stat;

	return !fstat(fd, &stat) && stat.st_size == sizeof(*page) &&
	       memcmp(page, &zeros, sizeof(zeros)) == 0;
}

/* Open the file for this version. Programs of another version that have mapped the file keep it,
 * and do not misread it. Prints an error if the file is no clock page.
 */
static int open_for_this_version(const char *path)
{
	struct timely_clock_page page = {};
	int fd = open_file(path);
	ssize_t bytes = fd < 0 ? 0 : read(fd, &page, offsetof(struct timely_clock_page, sequence));

	if (!bytes || (bytes > 0 && is_unwritten(fd, &page)) ||
	    (page.magic == TIMELY_CLOCK_MAGIC && page.version == TIMELY_CLOCK_VERSION &&
	     page.bytes == sizeof(page)))
		return fd;
	if (page.magic == TIMELY_CLOCK_MAGIC) {
		unlink(path);
		close(fd);
		return open_file(path);
	}
	tell_err("\"%s\" is no clock page: give another file after the word page", path);
	close(fd);
	return -1;
}

/* The line of the daemon before remains, unless it is of another boot. */
static void keep_line(struct timely_clock_page *page)
{
	uint8_t boot[sizeof(page->boot)];

	timely_clock_boot(boot);
	if (memcmp(boot, page->boot, sizeof(boot)) != 0 ||
	    page->raw_ns > clock_ns(CLOCK_MONOTONIC_RAW))
		page->common_ns = 0;
	memcpy(page->boot, boot, sizeof(boot));
}

struct timely_clock_page *page_open(const char *path)
{
	struct timely_clock_page *page = MAP_FAILED;
	int fd;

	make_directory(path);
	fd = open_for_this_version(path);
	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, sizeof(*page)))
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		tell_err("cannot write \"%s\": %s", path, error_text(errno));
		close(fd);
		return NULL;
	}
	page_begin(page);
	page->magic = TIMELY_CLOCK_MAGIC;
	page->version = TIMELY_CLOCK_VERSION;
	page->bytes = sizeof(*page);
	page->state = TIMELY_CLOCK_STARTING;
	/* The measurements and the counters of the daemon before have ended with it. */
	page->peer_count = 0;
	memset(page->peers, 0, sizeof(page->peers));
	memset(page->counters, 0, sizeof(page->counters));
	keep_line(page);
	page_end(page);
	return page;
}

/* Begin to change the page. A daemon that died in between has left an odd number. */
void page_begin(struct timely_clock_page *page)
{
	__atomic_store_n(&page->sequence, page->sequence | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

void page_end(struct timely_clock_page *page)
{
	__atomic_store_n(&page->sequence, page->sequence + 1, __ATOMIC_RELEASE);
}

/* Replace the contents, apart from magic, version, size and sequence. Readers wait meanwhile, so
 * the contents are computed before.
 */
void page_write(struct timely_clock_page *page, const struct timely_clock_page *contents)
{
	size_t from = offsetof(struct timely_clock_page, state);

	page_begin(page);
	memcpy((char *)page + from, (const char *)contents + from, sizeof(*page) - from);
	page_end(page);
}
