// SPDX-License-Identifier: GPL-2.0
/*
 * State files, from which `timelyctl teardown` and `trial revert` restore what was before.
 *
 * The files are in /run, because a reboot ends what they describe: the kernel forgets qdiscs,
 * routes and sysctls, too. A file belongs to a network namespace, whose cookie is in the file's
 * name: until the next reboot the kernel gives no other namespace the same cookie.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "setup.h"

/* Larger files are refused. 4096 queues with options of 100 bytes each have 1 MB. */
#define STATE_MAX (8 << 20)

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

static int tell_directory(const char *what, int err)
{
	tell_err("cannot %s the directory " STATE_DIR "%s: %s", what,
		 err == -EACCES ? ", which needs root" : "", error_text(err));
	return err;
}

/* Another user must not be able to choose what root restores. */
static bool is_private(int dir)
{
	struct stat stat;

	return !fstat(dir, &stat) && stat.st_uid == geteuid() && !(stat.st_mode & 022);
}

int state_open(bool create)
{
	int dir, err;

	if (create && mkdir(STATE_DIR, 0700) && errno != EEXIST)
		return tell_directory("create", -errno);
	dir = open(STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0) {
		err = -errno;
		return !create && err == -ENOENT ? err : tell_directory("open", err);
	}
	if (!is_private(dir)) {
		tell_err("%s must belong to root and be writable by root only: chown root %s; chmod 700 %s",
			 STATE_DIR, STATE_DIR, STATE_DIR);
		close(dir);
		return -EPERM;
	}
	if (flock(dir, LOCK_EX)) {
		err = tell_directory("lock", -errno);
		close(dir);
		return err;
	}
	return dir;
}

/* Write the name of a state file of this network namespace to STATE_NAME bytes. */
int state_name(char *name, const char *what, int ifindex)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	__u64 cookie;
	socklen_t bytes = sizeof(cookie);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &bytes))
		err = -errno;
	else
		snprintf(name, STATE_NAME, "%s.%llu.%d", what, (unsigned long long)cookie, ifindex);
	close(fd);
	return err;
}

char *state_read(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text = NULL;
	struct stat stat;
	ssize_t bytes;

	if (fd < 0)
		return NULL;
	errno = EBADMSG;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size <= STATE_MAX) {
		text = calloc(1, stat.st_size + 1);
		if (!text)
			out_of_memory();
		bytes = read(fd, text, stat.st_size);
		if (bytes != stat.st_size) {
			errno = bytes < 0 ? errno : EBADMSG;
			free(text);
			text = NULL;
		}
	}
	close(fd);
	return text;
}

/* Write the file completely, or leave it as it is. */
int state_write(int dir, const char *name, const char *text)
{
	int fd = openat(dir, "new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t bytes = strlen(text);
	int err = 0;

	if (fd < 0)
		return -errno;
	errno = ENOSPC;
	if (write(fd, text, bytes) != bytes || fsync(fd))
		err = -errno;
	close(fd);
	if (!err && renameat(dir, "new", dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, "new", 0);
	return err;
}

int state_remove(int dir, const char *name)
{
	return unlinkat(dir, name, 0) ? -errno : 0;
}

/* Bytes as hex digits, "-" for none. The caller frees the text. */
char *hex_text(const unsigned char *bytes, size_t count)
{
	char *text = malloc(count * 2 + 2);

	if (!text)
		out_of_memory();
	memcpy(text, "-", sizeof("-"));
	for (size_t i = 0; i < count; i++)
		sprintf(text + i * 2, "%02x", bytes[i]);
	return text;
}

static unsigned int hex_digit(char digit)
{
	return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

/* The reverse of hex_text(). The caller frees *bytes. */
bool parse_hex(const char *text, unsigned char **bytes, size_t *count)
{
	size_t digits = strcmp(text, "-") == 0 ? 0 : strlen(text);

	*count = digits / 2;
	if (digits % 2 || strspn(text, "0123456789abcdef") < digits)
		return false;
	*bytes = malloc(*count + 1);
	if (!*bytes)
		out_of_memory();
	for (size_t i = 0; i < *count; i++)
		(*bytes)[i] = hex_digit(text[i * 2]) << 4 | hex_digit(text[i * 2 + 1]);
	return true;
}
