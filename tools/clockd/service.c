// SPDX-License-Identifier: GPL-2.0
/*
 * What timely-clockd needs of the system around it: the log, the service manager, privileges,
 * clocks and random numbers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "clockd.h"

void tell(enum level level, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* systemd reads the priority from the beginning of the line. */
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", level, text);
	else
		fprintf(stderr, "timely-clockd: %s\n", text);
}

const char *error_text(int err)
{
	return strerror(err < 0 ? -err : err);
}

/* ---- the service manager, see sd_notify(3) ---- */

void service_info(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	static bool told;
	char text[512];
	bool failed;
	size_t length;
	va_list args;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(to.sun_path))
		return;
	length = strlen(path);
	memcpy(to.sun_path, path, length);
	/* '@' stands for an abstract address. */
	if (path[0] == '@')
		to.sun_path[0] = 0;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	failed = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
			offsetof(struct sockaddr_un, sun_path) + length) < 0;
	/* Once: this function is called each second. */
	if (failed && !told)
		tell_warn("cannot notify the service manager: %s", error_text(errno));
	told = failed;
	close(fd);
}

/* ---- privileges ---- */

int drop_capabilities(bool admin)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {}, now[2];
	uint32_t keep = admin ? 1U << CAP_NET_ADMIN : 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capget, &header, now))
		return -errno;
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (cap != CAP_NET_ADMIN || !admin)
			/* Refused without CAP_SETPCAP: there is nothing to drop then. */
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	data[0].effective = now[0].permitted & keep;
	data[0].permitted = now[0].permitted & keep;
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* ---- clocks and random numbers ---- */

uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Readings of two clocks, of which the fastest is used. */
#define READINGS	4

uint32_t clock_difference(clockid_t id, clockid_t other, uint64_t *at_ns, int64_t *offset_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < READINGS; i++) {
		uint64_t before = clock_ns(id), there = clock_ns(other);
		uint64_t width = clock_ns(id) - before;

		if (width >= best)
			continue;
		best = width;
		*at_ns = before + width / 2;
		*offset_ns = difference(there, *at_ns);
	}
	return best / 2 > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)(best / 2 + 1);
}

/* A random number other than 0. */
uint64_t random_number(void)
{
	static uint64_t numbers[64];
	static size_t left;

	for (;;) {
		ssize_t bytes;

		while (left)
			if (numbers[--left])
				return numbers[left];
		bytes = getrandom(numbers, sizeof(numbers), 0);
		if (bytes == sizeof(numbers))
			left = ARRAY_LENGTH(numbers);
		else if (bytes >= 0 || errno != EINTR)
			abort();
	}
}
