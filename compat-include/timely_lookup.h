/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in looking up a TCP socket by its addresses. features.mk
 * defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_LOOKUP_H
#define _TIMELY_COMPAT_LOOKUP_H

#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>

/* Before Linux 6.18 the lookup functions have the table of sockets as a second argument, which this
 * macro adds with its comma.
 */
#ifdef HAVE_LOOKUP_HASHINFO
#define timely_hashinfo(net)	(net)->ipv4.tcp_death_row.hashinfo,
#else
#define timely_hashinfo(net)
#endif

#define timely_inet_lookup(net, ...) \
	__inet_lookup_established(net, timely_hashinfo(net) __VA_ARGS__)
#define timely_inet6_lookup(net, ...) \
	__inet6_lookup_established(net, timely_hashinfo(net) __VA_ARGS__)

#endif /* _TIMELY_COMPAT_LOOKUP_H */
