// SPDX-License-Identifier: GPL-2.0
/*
 * The C interface to the time of timely-clockd, for programs: see timely_clock.h.
 *
 * The page is read as the kernel's sequence counters are: a copy is valid if the sequence number is
 * even and the same before and after. The common time is a straight line over CLOCK_MONOTONIC_RAW,
 * which neither steps nor is slewed, so a reading stays right while chrony corrects the system
 * clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "timely_clock.h"

#define NS_PER_S	1000000000ULL
/* Difference of CLOCK_BOOTTIME and CLOCK_MONOTONIC that reading them in turn can cause, ns. */
#define SUSPEND_NS	10000000ULL
/* Attempts to read both without an interruption of the program. */
#define READINGS	4
/* Attempts to copy the page while the daemon writes it, which takes a microsecond. If the daemon
 * was interrupted meanwhile, further attempts follow at intervals of PAUSE_NS, for 100 ms.
 */
#define ATTEMPTS	1000
#define PAUSES		500
#define PAUSE_NS	200000
/* CLOCK_MONOTONIC_RAW may differ by this between processors, ns. A page of the future is of another
 * boot.
 */
#define FUTURE_NS	1000000
/* The kernel's identifier of the boot: bytes, and hex digits with four '-'. */
#define BOOT_ID_BYTES	16
#define BOOT_ID_CHARS	36

/**
 * struct timely_clock - a handle
 * @path: path of the page
 * @page: the mapped page
 * @inode: the file's inode number
 */
struct timely_clock {
	char *path;
	const struct timely_clock_page *page;
	ino_t inode;
};

#define COUNTERS(x) \
	x(SENT, "sent", "probes sent") \
	x(RECEIVED, "received", "probes accepted") \
	x(MALFORMED, "malformed", "packets ignored: not in the format of this version") \
	x(STRANGER, "stranger", "packets ignored: from an address that is none of the peers") \
	x(NO_KEY, "no_key", "packets ignored: signed with a key that this host does not have") \
	x(BAD_TAG, "bad_tag", "packets ignored: wrong tag, so forged or damaged") \
	x(REFLECTED, "reflected", "packets ignored: this host's own, sent back to it") \
	x(REPLAYED, "replayed", "packets ignored: received before, or of an earlier session") \
	x(UNPROVEN, "unproven", "packets whose times were ignored: not proven to be recent") \
	x(NO_TX_TIMESTAMP, "no_tx_timestamp", "probes sent without a timestamp") \
	x(NO_RX_TIMESTAMP, "no_rx_timestamp", "probes received without a timestamp") \
	x(BAD_TIMESTAMP, "bad_timestamp", "timestamps out of range") \
	x(NOT_SENT, "not_sent", "packets that the kernel refused to send") \
	x(PAIRS_PURE, "pairs_pure", "pairs used: they kept their spacing") \
	x(PAIRS_SPREAD, "pairs_spread", "pairs rejected: they arrived further apart") \
	x(PAIRS_CLOSER, "pairs_closer", "pairs rejected: they arrived closer together") \
	x(PAIRS_SPACING, "pairs_spacing", "pairs rejected: they were sent too far apart") \
	x(PAIRS_LOST, "pairs_lost", "pairs of which one probe never came") \
	x(FITS, "fits", "estimates computed") \
	x(OVERLAPS, "overlaps", "estimates refused: bounds contradict each other") \
	x(EXCLUDED, "excluded", "estimates excluded: they contradict those of other peers") \
	x(PEER_RESTARTS, "peer_restarts", "peers that started again, or changed their clock") \
	x(SYSTEM_STEPS, "system_steps", "steps of this host's system clock") \
	x(NIC_STEPS, "nic_steps", "steps of the NIC's clock") \
	x(NIC_CHANGES, "nic_changes", "changes of the NIC whose clock is used") \
	x(SUSPENDS, "suspends", "times that this host was suspended") \
	x(COMMON_STEPS, "common_steps", "steps of the common time") \
	x(REFCLOCK_SAMPLES, "refclock_samples", "samples given to chrony or ntpd") \
	x(REFCLOCK_ERRORS, "refclock_errors", "samples that chrony did not take")

#define NAME(id, name, doc) \
	[TIMELY_CLOCK_##id] = name,
#define DOC(id, name, doc) \
	[TIMELY_CLOCK_##id] = doc,

const char * const timely_clock_counter_names[TIMELY_CLOCK_COUNTERS] = { COUNTERS(NAME) };
const char * const timely_clock_counter_docs[TIMELY_CLOCK_COUNTERS] = { COUNTERS(DOC) };

static uint64_t now_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void timely_clock_boot(uint8_t *boot)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[BOOT_ID_CHARS + 1] = "", *digit = text;
	unsigned int byte;

	memset(boot, 0, BOOT_ID_BYTES);
	if (fd < 0)
		return;
	if (read(fd, text, BOOT_ID_CHARS) == BOOT_ID_CHARS)
		for (int i = 0; i < BOOT_ID_BYTES; i++, digit += 2) {
			digit += *digit == '-';
			if (sscanf(digit, "%2x", &byte) == 1)
				boot[i] = byte;
		}
	close(fd);
}

/* CLOCK_MONOTONIC_RAW begins again at each boot, and may have come further than the page. */
static bool of_another_boot(const struct timely_clock_page *page)
{
	static const uint8_t unknown[BOOT_ID_BYTES];
	uint8_t boot[BOOT_ID_BYTES];

	timely_clock_boot(boot);
	return memcmp(page->boot, unknown, sizeof(boot)) && memcmp(boot, unknown, sizeof(boot)) &&
	       memcmp(page->boot, boot, sizeof(boot));
}

static int page_map(struct timely_clock *clock)
{
	/* The daemon's user may put a FIFO here, which must not stop a reader with more rights. */
	int fd = open(clock->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct timely_clock_page *page;
	struct stat stat;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &stat))
		err = -errno;
	else if (stat.st_size < (off_t)sizeof(*page))
		err = -EPROTO;
	page = err ? MAP_FAILED : mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, fd, 0);
	if (!err && page == MAP_FAILED)
		err = -errno;
	close(fd);
	if (err)
		return err;
	if (page->magic != TIMELY_CLOCK_MAGIC || page->version != TIMELY_CLOCK_VERSION)
		err = -EPROTO;
	else if (of_another_boot(page))
		err = -ENOENT;
	if (err) {
		munmap(page, sizeof(*page));
		return err;
	}
	clock->page = page;
	clock->inode = stat.st_ino;
	return 0;
}

static void page_unmap(struct timely_clock *clock)
{
	if (clock->page)
		munmap((void *)clock->page, sizeof(*clock->page));
	clock->page = NULL;
}

int timely_clock_open(struct timely_clock **clock, const char *path)
{
	struct timely_clock *new = calloc(1, sizeof(*new));
	int err = -ENOMEM;

	if (new)
		new->path = strdup(path ?: TIMELY_CLOCK_PAGE);
	if (new && new->path)
		err = page_map(new);
	if (err) {
		timely_clock_close(new);
		return err;
	}
	*clock = new;
	return 0;
}

void timely_clock_close(struct timely_clock *clock)
{
	if (!clock)
		return;
	page_unmap(clock);
	free(clock->path);
	free(clock);
}

static int page_copy(const struct timely_clock_page *from, struct timely_clock_page *to)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (int i = 0; i < ATTEMPTS + PAUSES; i++) {
		uint32_t before = __atomic_load_n(&from->sequence, __ATOMIC_ACQUIRE);

		if (i >= ATTEMPTS)
			nanosleep(&pause, NULL);
		if (before & 1)
			continue;
		memcpy(to, from, sizeof(*to));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&from->sequence, __ATOMIC_RELAXED) == before)
			return 0;
	}
	return -EAGAIN;
}

/* Whether the path names another file now: the daemon has started again and created the page. */
static bool page_replaced(const struct timely_clock *clock)
{
	struct stat now;

	return !stat(clock->path, &now) && now.st_ino != clock->inode;
}

int timely_clock_read(struct timely_clock *clock, struct timely_clock_page *page)
{
	int err = clock->page ? page_copy(clock->page, page) : -EAGAIN;

	if (!err && page->state == TIMELY_CLOCK_RUNNING &&
	    now_ns(CLOCK_MONOTONIC_RAW) - page->raw_ns < TIMELY_CLOCK_FRESH_NS)
		return 0;
	if (clock->page && !page_replaced(clock))
		return err;
	page_unmap(clock);
	err = page_map(clock);
	return err ?: page_copy(clock->page, page);
}

int timely_clock_at(const struct timely_clock_page *page, uint64_t raw_ns, uint64_t suspended_ns,
		    struct timely_clock_time *now)
{
	uint64_t age = raw_ns > page->raw_ns ? raw_ns - page->raw_ns : 0;
	int64_t slept = suspended_ns - page->suspended_ns;
	uint64_t bound;

	if (!page->common_ns || page->bound_ns == TIMELY_CLOCK_UNKNOWN_NS)
		return -ENODATA;
	if (page->raw_ns > raw_ns + FUTURE_NS || age > TIMELY_CLOCK_EXPIRE_NS ||
	    slept > (int64_t)SUSPEND_NS || slept < -(int64_t)SUSPEND_NS)
		return -ESTALE;
	bound = page->bound_ns + page->growth_ppb * (age / 1000) / 1000000;
	if (age > TIMELY_CLOCK_FRESH_NS)
		bound += (age - TIMELY_CLOCK_FRESH_NS) / 1000 * TIMELY_CLOCK_STALE_PPB / 1000000;
	now->time_ns = page->common_ns + age + page->rate_ppb * (int64_t)(age / 1000) / 1000000;
	now->earliest_ns = now->time_ns - bound;
	now->latest_ns = now->time_ns + bound;
	now->age_ns = age;
	return 0;
}

int timely_clock_reference_at(const struct timely_clock_page *page, uint64_t raw_ns,
			      uint64_t suspended_ns, struct timely_clock_time *now)
{
	int err = timely_clock_at(page, raw_ns, suspended_ns, now);
	uint64_t bound;

	if (err)
		return err;
	if (!page->references_used)
		return -ENODATA;
	bound = now->latest_ns - now->time_ns + page->reference_bound_ns +
		page->reference_growth_ppb * (now->age_ns / 1000) / 1000000;
	now->time_ns += page->reference_offset_ns +
			page->reference_rate_ppb * (now->age_ns / 1000) / 1000000;
	now->earliest_ns = now->time_ns - bound;
	now->latest_ns = now->time_ns + bound;
	return 0;
}

uint64_t timely_clock_suspended_ns(void)
{
	uint64_t least = UINT64_MAX, suspended_ns = 0;

	for (int i = 0; i < READINGS && least > SUSPEND_NS / 2; i++) {
		uint64_t before = now_ns(CLOCK_MONOTONIC), boot = now_ns(CLOCK_BOOTTIME);
		uint64_t width = now_ns(CLOCK_MONOTONIC) - before;

		if (width >= least)
			continue;
		least = width;
		suspended_ns = boot - before;
	}
	return suspended_ns;
}

/* Read a time that @at computes from the page. */
static int read_now(struct timely_clock *clock, struct timely_clock_time *now,
		    int (*at)(const struct timely_clock_page *page, uint64_t raw_ns,
			      uint64_t suspended_ns, struct timely_clock_time *now))
{
	struct timely_clock_page page;
	uint64_t suspended_ns;
	int err = timely_clock_read(clock, &page);

	if (err)
		return err;
	suspended_ns = timely_clock_suspended_ns();
	return at(&page, now_ns(CLOCK_MONOTONIC_RAW), suspended_ns, now);
}

int timely_clock_now(struct timely_clock *clock, struct timely_clock_time *now)
{
	return read_now(clock, now, timely_clock_at);
}

int timely_clock_reference_now(struct timely_clock *clock, struct timely_clock_time *now)
{
	return read_now(clock, now, timely_clock_reference_at);
}
