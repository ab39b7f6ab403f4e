/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in the use of sockets by the kernel. features.mk defines
 * HAVE_*.
 */
#ifndef _TIMELY_COMPAT_SOCKET_H
#define _TIMELY_COMPAT_SOCKET_H

#include <linux/net.h>

/* Bind a kernel socket. Since Linux 6.19 addresses with a separate length have their own type. */
#ifdef HAVE_SOCKADDR_UNSIZED
#define timely_kernel_bind(sock, addr, len) \
	kernel_bind(sock, (struct sockaddr_unsized *)(addr), len)
#else
#define timely_kernel_bind(sock, addr, len) \
	kernel_bind(sock, (struct sockaddr *)(addr), len)
#endif

#endif /* _TIMELY_COMPAT_SOCKET_H */
