// SPDX-License-Identifier: GPL-2.0
/*
 * Files of /proc and /sys that have one line, and signals.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "timelyctl.h"

/*
 * Read the first line of a file, at most @size - 1 bytes, without bytes that are not printable
 * ASCII. Returns false and writes "" if the file cannot be read.
 */
bool read_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[bytes < 0 ? 0 : bytes] = 0;
	text[strcspn(text, "\n")] = 0;
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return bytes >= 0;
}

/* Read a file that has a number only. */
bool read_number(const char *path, __s64 *value)
{
	char text[32];

	return read_line(path, text, sizeof(text)) &&
	       parse_number(text, INT64_MIN, INT64_MAX, value);
}

/* Does a list of words with spaces between them have this word? */
bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (*list) {
		size_t size = strcspn(list, " ");

		if (size == length && strncmp(list, word, size) == 0)
			return true;
		list += size;
		list += strspn(list, " ");
	}
	return false;
}

/* Write to an existing file. Returns 0 or a negative errno. */
int write_line(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/*
 * Let signals that end or stop the program wait, also those of a terminal or a reader of the output
 * that has ended. sigprocmask(SIG_SETMASK, before, NULL) lets them come.
 */
void hold_signals(sigset_t *before)
{
	static const int waiting[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP };
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
		sigaddset(&signals, waiting[i]);
	sigprocmask(SIG_BLOCK, &signals, before);
}
