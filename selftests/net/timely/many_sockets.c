// SPDX-License-Identifier: GPL-2.0
/*
 * Open many sockets, send data through each of them and close all of them, for tenant_memory.sh.
 *
 *	many_sockets udp ADDRESS COUNT CHUNK HOLD_MS
 *	many_sockets tcp ADDRESS COUNT CHUNK HOLD_MS NETNS [CONGESTION_CONTROL]
 *
 * At most CHUNK sockets exist at the same time; they are closed HOLD_MS after the last of them has
 * sent. UDP sockets are connected to port 9, have a pacing rate of 1 GB/s and send one datagram,
 * for which no receiver is needed. TCP connections go to a listener in the network namespace NETNS
 * and carry 100 bytes.
 *
 * Prints "opened=N" and "failed=N". A socket that cannot be opened or cannot send ends its chunk
 * and counts as failed. The status is 2 if the arguments are wrong or there is no listener or
 * memory, and otherwise 0.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in peer = { .sin_family = AF_INET };
static const char *control;
static int listener = -1;

/* Close a connection by a reset, so that no TIME_WAIT socket is left. */
static void close_at_once(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static int open_udp(int *fds)
{
	static const unsigned int rate = 1000000000;

	fds[0] = socket(AF_INET, SOCK_DGRAM, 0);
	if (fds[0] < 0)
		return -1;
	if (setsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) == 0 &&
	    connect(fds[0], (struct sockaddr *)&peer, sizeof(peer)) == 0 &&
	    send(fds[0], "datagram", 8, 0) == 8)
		return 0;
	close(fds[0]);
	return -1;
}

static int open_tcp(int *fds)
{
	static const char data[100];

	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (fds[0] < 0)
		return -1;
	if ((control &&
	     setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, control, strlen(control))) ||
	    connect(fds[0], (struct sockaddr *)&peer, sizeof(peer)))
		goto fail;
	fds[1] = accept(listener, NULL, NULL);
	if (fds[1] < 0)
		goto fail;
	if (send(fds[0], data, sizeof(data), 0) == (ssize_t)sizeof(data))
		return 0;
	close(fds[1]);
fail:
	close_at_once(fds[0]);
	return -1;
}

static int listen_in(const char *name)
{
	socklen_t length = sizeof(peer);
	char path[256];
	int home, there;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	home = open("/proc/self/ns/net", O_RDONLY);
	there = open(path, O_RDONLY);
	if (home < 0 || there < 0 || setns(there, CLONE_NEWNET))
		return -1;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (setns(home, CLONE_NEWNET) || listener < 0)
		return -1;
	close(home);
	close(there);
	peer.sin_port = 0;
	if (bind(listener, (struct sockaddr *)&peer, sizeof(peer)) || listen(listener, 100))
		return -1;
	return getsockname(listener, (struct sockaddr *)&peer, &length);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 1 << 20, 1 << 20 };
	long count, chunk, hold_ms, opened = 0, failed = 0, n, i;
	int (*open_one)(int *fds) = open_udp;
	int (*fds)[2];

	if (argc < 6 || (argc < 7 && strcmp(argv[1], "tcp") == 0) ||
	    !inet_pton(AF_INET, argv[2], &peer.sin_addr)) {
		fputs("usage: many_sockets udp ADDRESS COUNT CHUNK HOLD_MS\n"
		      "       many_sockets tcp ADDRESS COUNT CHUNK HOLD_MS NETNS [CC]\n", stderr);
		return 2;
	}
	peer.sin_port = htons(9);
	count = atol(argv[3]);
	chunk = atol(argv[4]);
	hold_ms = atol(argv[5]);
	setrlimit(RLIMIT_NOFILE, &files);
	if (strcmp(argv[1], "tcp") == 0) {
		control = argc > 7 ? argv[7] : NULL;
		if (listen_in(argv[6])) {
			perror("many_sockets: no listener in NETNS");
			return 2;
		}
		open_one = open_tcp;
	}
	fds = malloc(chunk * sizeof(*fds));
	if (!fds)
		return 2;
	while (opened + failed < count) {
		for (n = 0; n < chunk && opened < count; n++, opened++)
			if (open_one(fds[n])) {
				failed++;
				break;
			}
		usleep(hold_ms * 1000);
		for (i = 0; i < n; i++) {
			if (open_one == open_tcp)
				close_at_once(fds[i][1]);
			close_at_once(fds[i][0]);
		}
		if (!n)
			break;
	}
	printf("opened=%ld\nfailed=%ld\n", opened, failed);
	return 0;
}
