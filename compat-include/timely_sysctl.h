/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in the sysctls of a network namespace; HAVE_* come
 * from features.mk.
 */
#ifndef _TIMELY_COMPAT_SYSCTL_H
#define _TIMELY_COMPAT_SYSCTL_H

#include <linux/sysctl.h>
#include <net/net_namespace.h>

/* 6.11: handlers promise not to write to the table. */
#ifdef HAVE_CTL_TABLE_CONST
#define timely_ctl_table const struct ctl_table
#else
#define timely_ctl_table struct ctl_table
#endif

/* 6.6: the table's size is told; before, an empty entry ended it. */
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
