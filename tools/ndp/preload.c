// SPDX-License-Identifier: GPL-2.0
/*
 * Makes NDP sockets where a program asks for TCP sockets. "ndp run COMMAND" loads this library into
 * COMMAND and the programs that it starts, by LD_PRELOAD. Programs that are linked statically, or
 * that call the kernel without the C library, still get TCP.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/ndp.h>
#include <netinet/in.h>
#include <sys/socket.h>

int socket(int domain, int type, int protocol)
{
	int (*real)(int domain, int type, int protocol) = dlsym(RTLD_NEXT, "socket");
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if ((domain == AF_INET || domain == AF_INET6) && kind == SOCK_STREAM &&
	    (protocol == 0 || protocol == IPPROTO_TCP))
		protocol = IPPROTO_NDP;
	return real(domain, type, protocol);
}
