/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in using sockets from within.
 */
#ifndef _TIMELY_COMPAT_SOCKET_H
#define _TIMELY_COMPAT_SOCKET_H

#include <linux/net.h>

/* 6.19: an address whose length is told apart has a type of its own. */
#ifdef HAVE_SOCKADDR_UNSIZED
#define timely_kernel_bind(sock, addr, len) \
	kernel_bind(sock, (struct sockaddr_unsized *)(addr), len)
#else
#define timely_kernel_bind(sock, addr, len) \
	kernel_bind(sock, (struct sockaddr *)(addr), len)
#endif

#endif /* _TIMELY_COMPAT_SOCKET_H */
