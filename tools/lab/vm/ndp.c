// SPDX-License-Identifier: GPL-2.0
/*
 * Sends data over an NDP connection of this host to itself, for smoke-init.sh:
 *
 *	ndp transfer ADDRESS BYTES	send BYTES each way; fails unless all arrive intact
 *	ndp hold SECONDS		keep an NDP socket open
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ndp.h>

#define PORT 5001

static int give_up(const char *what)
{
	fprintf(stderr, "ndp: %s: %s\n", what, strerror(errno));
	return 1;
}

/* A pattern that differs from packet to packet. */
static unsigned char byte_at(size_t at)
{
	return at ^ at >> 8 ^ at >> 16;
}

static bool send_all(int fd, size_t bytes)
{
	unsigned char part[65536];
	size_t sent = 0;

	while (sent < bytes) {
		size_t count = bytes - sent < sizeof(part) ? bytes - sent : sizeof(part);
		ssize_t done;

		for (size_t i = 0; i < count; i++)
			part[i] = byte_at(sent + i);
		done = send(fd, part, count, MSG_NOSIGNAL);
		if (done <= 0)
			return false;
		sent += done;
	}
	return !shutdown(fd, SHUT_WR);
}

static bool receive_all(int fd, size_t bytes)
{
	unsigned char part[65536];
	size_t got = 0;
	ssize_t count;

	while ((count = recv(fd, part, sizeof(part), 0)) > 0)
		for (ssize_t i = 0; i < count; i++)
			if (part[i] != byte_at(got++))
				return false;
	return !count && got == bytes;
}

/* Answers a connection with as many bytes as it has brought. */
static int serve(int listener, size_t bytes)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		return give_up("accept");
	if (!receive_all(fd, bytes) || !send_all(fd, bytes))
		return give_up("the server's stream");
	return 0;
}

static int transfer(const char *address, size_t bytes)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	bool is_v6 = strchr(address, ':');
	struct sockaddr *to = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t length = is_v6 ? sizeof(v6) : sizeof(v4);
	int listener = socket(to->sa_family, SOCK_STREAM, IPPROTO_NDP);
	int fd = socket(to->sa_family, SOCK_STREAM, IPPROTO_NDP);
	int status = 1;

	inet_pton(AF_INET, address, &v4.sin_addr);
	inet_pton(AF_INET6, address, &v6.sin6_addr);
	if (listener < 0 || fd < 0)
		return give_up("socket");
	if (bind(listener, to, length) || listen(listener, 1))
		return give_up("listen");
	if (!fork())
		_exit(serve(listener, bytes));
	if (connect(fd, to, length))
		return give_up("connect");
	if (!send_all(fd, bytes) || !receive_all(fd, bytes))
		return give_up("the client's stream");
	wait(&status);
	return status != 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "transfer") == 0)
		return transfer(argv[2], strtoul(argv[3], NULL, 0));
	if (argc == 3 && strcmp(argv[1], "hold") == 0) {
		if (socket(AF_INET, SOCK_STREAM, IPPROTO_NDP) < 0)
			return give_up("socket");
		sleep(atoi(argv[2]));
		return 0;
	}
	fputs("usage: ndp transfer ADDRESS BYTES | ndp hold SECONDS\n", stderr);
	return 2;
}
