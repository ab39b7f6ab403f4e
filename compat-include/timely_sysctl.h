/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in the sysctls of a network namespace. features.mk defines
 * HAVE_*.
 */
#ifndef _TIMELY_COMPAT_SYSCTL_H
#define _TIMELY_COMPAT_SYSCTL_H

#include <linux/sysctl.h>
#include <net/net_namespace.h>

/* Type of the table that a handler gets: const since Linux 6.11. */
#ifdef HAVE_CTL_TABLE_CONST
#define timely_ctl_table const struct ctl_table
#else
#define timely_ctl_table struct ctl_table
#endif

/* Register @size sysctls. The table must end with an additional empty entry: before Linux 6.6 this
 * entry shows the end, and @size is not used. Return: NULL if there is no memory.
 */
static inline struct ctl_table_header *
timely_register_sysctl(struct net *net, const char *path, struct ctl_table *table, size_t size)
{
#ifdef HAVE_NET_SYSCTL_SIZE
	return register_net_sysctl_sz(net, path, table, size);
#else
	return register_net_sysctl(net, path, table);
#endif
}

#endif /* _TIMELY_COMPAT_SYSCTL_H */
