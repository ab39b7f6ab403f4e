// SPDX-License-Identifier: GPL-2.0
/*
 * One request of HTTP at standard input and its answer at standard output, for `timelyctl metrics
 * http`. systemd listens, and starts the command for each connection.
 *
 * Clients are not trusted: a request has a limited size and time, and nothing of it is used but the
 * method and the path.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "timelyctl.h"

/* Longest request, bytes, and longest time for it, ms. Prometheus sends some 300 bytes at once. */
#define MAX_BYTES	8192
#define MAX_MS		5000

static __u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* Read up to the empty line that ends a request. Returns false if that does not come. */
static bool read_request(char *text, size_t size)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	__u64 end_ms = now_ms() + MAX_MS, now;
	size_t used = 0;

	text[0] = 0;
	while (!strstr(text, "\r\n\r\n") && !strstr(text, "\n\n")) {
		ssize_t bytes;

		now = now_ms();
		if (used + 1 == size || now >= end_ms)
			return false;
		if (poll(&input, 1, end_ms - now) <= 0)
			continue;
		bytes = read(STDIN_FILENO, text + used, size - used - 1);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes <= 0)
			return false;
		used += bytes;
		text[used] = 0;
		/* No request has a byte 0, which would hide what follows. */
		if (strlen(text) != used)
			return false;
	}
	return true;
}

/* The request line is METHOD PATH HTTP/VERSION. Returns the status of the answer. */
static int judge(char *line)
{
	char *method, *path, *version;

	line[strcspn(line, "\r\n")] = 0;
	method = strtok(line, " ");
	path = strtok(NULL, " ");
	version = strtok(NULL, " ");
	if (!version || strtok(NULL, " ") || strncmp(version, "HTTP/1.", strlen("HTTP/1.")) != 0)
		return 400;
	path[strcspn(path, "?")] = 0;
	if (strcmp(path, "/metrics") != 0)
		return 404;
	return strcmp(method, "GET") == 0 ? 200 : 405;
}

/* Read a request for /metrics. Returns the status of its answer: 200 if the request is right. */
int http_read(void)
{
	char text[MAX_BYTES];

	return read_request(text, sizeof(text)) ? judge(text) : 400;
}

/* Start the answer; the text follows. */
void http_start(int status)
{
	const char *reason = "OK";

	switch (status) {
	case 400:
		reason = "Bad Request";
		break;
	case 404:
		reason = "Not Found";
		break;
	case 405:
		reason = "Method Not Allowed";
		break;
	case 500:
		reason = "Internal Server Error";
		break;
	}
	printf("HTTP/1.0 %d %s\r\n%sContent-Type: text/plain; version=0.0.4\r\n"
	       "Connection: close\r\n\r\n", status, reason, status == 405 ? "Allow: GET\r\n" : "");
	if (status != 200)
		printf("%s: GET /metrics has the metrics of timely\n", reason);
}
