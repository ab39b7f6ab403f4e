// SPDX-License-Identifier: GPL-2.0
/*
 * Simulated files of /proc and /sys, and a simulated real-time clock, for tests of `timelyctl
 * doctor`.
 *
 * timelyctl is linked with this file and with --wrap=open, opendir, adjtimex, nanosleep and
 * mkstemp. If the environment variable FAKE_FILES is set, the files are those below the directory
 * that it names, such as $FAKE_FILES/proc/version, the clock is synchronised unless
 * $FAKE_FILES/unsync exists, and sleeping takes no time, because all that changes is simulated,
 * too.
 * If FAKE_END is set, the program gets SIGTERM as soon as it has made a temporary file.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

int __real_open(const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
__typeof__(adjtimex) __real_adjtimex;
__typeof__(nanosleep) __real_nanosleep;
__typeof__(mkstemp) __real_mkstemp;

/* Writes the path of the simulated file to @text, and returns it; @path without FAKE_FILES. */
static const char *simulated(char *text, size_t size, const char *path)
{
	const char *root = getenv("FAKE_FILES");

	if (!root)
		return path;
	snprintf(text, size, "%s%s", root, path);
	return text;
}

int __wrap_open(const char *path, int flags, ...)
{
	char text[4096];

	return __real_open(simulated(text, sizeof(text), path), flags);
}

DIR *__wrap_opendir(const char *path)
{
	char text[4096];

	return __real_opendir(simulated(text, sizeof(text), path));
}

int __wrap_adjtimex(struct timex *clock)
{
	char text[4096];

	if (!getenv("FAKE_FILES"))
		return __real_adjtimex(clock);
	clock->status = access(simulated(text, sizeof(text), "/unsync"), F_OK) ? 0 : STA_UNSYNC;
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	return getenv("FAKE_FILES") ? 0 : __real_nanosleep(time, left);
}

int __wrap_mkstemp(char *path)
{
	int fd = __real_mkstemp(path);

	if (getenv("FAKE_END"))
		raise(SIGTERM);
	return fd;
}
