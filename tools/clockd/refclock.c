// SPDX-License-Identifier: GPL-2.0
/*
 * The common time as a source for chrony (refclock SOCK) and ntpd (SHM driver).
 *
 * Both get the offset of the common time from the system clock once per second. The formats are
 * those of chrony's documentation of the SOCK driver, and of ntpd's of driver 28, mode 1: the
 * reader accepts a segment if the count is the same before and after.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/shm.h>
#include <sys/time.h>
#include <sys/un.h>

#include "clockd.h"

#define SOCK_MAGIC	0x534f434b
#define SHM_KEY		0x4e545030
/* Units 0 and 1 are for programs of root only. */
#define SHM_ROOT_UNITS	2

/* A sample, as chrony's SOCK driver reads it from the socket. */
struct sock_sample {
	struct timeval tv;
	double offset;
	int pulse;
	int leap;
	int _pad;
	int magic;
};

/* The segment of ntpd's SHM driver. */
struct shm_time {
	int mode;
	int count;
	time_t clock_s;
	int clock_us;
	time_t receive_s;
	int receive_us;
	int leap;
	int precision;
	int nsamples;
	int valid;
	unsigned int clock_ns;
	unsigned int receive_ns;
	int dummy[8];
};

void refclock_open(struct refclock *refclock, const struct config *config)
{
	int mode = config->shm < SHM_ROOT_UNITS ? 0600 : 0666, id;

	*refclock = (struct refclock){ .fd = -1 };
	if (config->shm < 0)
		return;
	id = shmget(SHM_KEY + config->shm, sizeof(struct shm_time), IPC_CREAT | mode);
	refclock->shm = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	if (refclock->shm == (void *)-1) {
		tell_warn("NTP SHM unit %d cannot be used: %s: ipcs -m shows whether another user or program has its key 0x%x",
			  config->shm, error_text(errno), SHM_KEY + config->shm);
		refclock->shm = NULL;
	}
}

void refclock_close(struct refclock *refclock)
{
	if (refclock->fd >= 0)
		close(refclock->fd);
	if (refclock->shm)
		shmdt(refclock->shm);
	*refclock = (struct refclock){ .fd = -1 };
}

static int put_shm(struct shm_time *shm, uint64_t real_ns, int64_t offset_ns, uint64_t error_ns)
{
	uint64_t clock_ns = real_ns + offset_ns;
	int precision = -30;

	while (precision < -1 && (NS_PER_S >> -precision) < error_ns)
		precision++;
	shm->mode = 1;
	__atomic_store_n(&shm->valid, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shm->count, shm->count + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	shm->clock_s = clock_ns / NS_PER_S;
	shm->clock_ns = clock_ns % NS_PER_S;
	shm->clock_us = shm->clock_ns / 1000;
	shm->receive_s = real_ns / NS_PER_S;
	shm->receive_ns = real_ns % NS_PER_S;
	shm->receive_us = shm->receive_ns / 1000;
	shm->leap = 0;
	shm->precision = precision;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&shm->count, shm->count + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&shm->valid, 1, __ATOMIC_RELEASE);
	return 1;
}

static int connect_sock(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	memccpy(to.sun_path, path, 0, sizeof(to.sun_path) - 1);
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Give a sample to chrony. Each attempt connects again, until chrony is there. */
static int put_sock(struct refclock *refclock, const char *path, uint64_t real_ns,
		    int64_t offset_ns)
{
	struct sock_sample sample = {
		.tv = { real_ns / NS_PER_S, real_ns % NS_PER_S / 1000 },
		.magic = SOCK_MAGIC,
	};
	int err = 0;

	/* The time has no digits below 1 us: the offset is for the time as it is written. */
	sample.offset = offset_ns / 1e9;
	if (refclock->fd < 0)
		refclock->fd = connect_sock(path);
	if (refclock->fd < 0)
		err = refclock->fd;
	else if (send(refclock->fd, &sample, sizeof(sample), MSG_NOSIGNAL) != sizeof(sample))
		err = -errno;
	if (!err) {
		if (refclock->failed)
			tell_notice("chrony takes samples from \"%s\" now", path);
		refclock->failed = false;
		return 1;
	}
	if (refclock->fd >= 0)
		close(refclock->fd);
	refclock->fd = -1;
	if (!refclock->failed)
		tell_warn("chrony does not take samples from \"%s\": %s; chrony.conf needs: refclock SOCK %s; it is tried again each second",
			  path, error_text(err), path);
	refclock->failed = true;
	return 0;
}

int refclock_put(struct refclock *refclock, const struct config *config, int64_t offset_ns,
		 uint64_t error_ns)
{
	uint64_t real_ns = clock_ns(CLOCK_REALTIME);
	int given = 0;

	if (refclock->shm)
		given += put_shm(refclock->shm, real_ns, offset_ns, error_ns);
	if (config->sock[0])
		given += put_sock(refclock, config->sock, real_ns, offset_ns);
	return given;
}
