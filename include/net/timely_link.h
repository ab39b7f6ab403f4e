/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The line that a connection leaves by: its speed, and how many connections share it. See
 * net/timely/link.c.
 */
#ifndef _NET_TIMELY_LINK_H
#define _NET_TIMELY_LINK_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/jiffies.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/types.h>

struct net;
struct net_device;

/* A connection looks at its line this often, jiffies: routes, bridges and veths may lead to
 * another without notice.
 */
#define TIMELY_LINK_LOOK	HZ

/**
 * struct timely_link - the link of a device with hardware below it
 * @hash: anchor in the table of all
 * @dev: the device, for as long as the link is in the table
 * @kbps: the link's speed, 0 if it is not known
 * @due: the driver is to be asked; under RTNL
 * @ref: references: one of the table, one of each connection
 * @rcu: readers of the table may still look at it
 * @senders: connections that have something to send on the link
 */
struct timely_link {
	struct hlist_node hash;
	struct net_device *dev;
	u32 kbps;
	bool due;
	refcount_t ref;
	struct rcu_head rcu;
	atomic_t senders ____cacheline_aligned_in_smp;
};

/* Is another one whenever the speed of any link has changed. */
extern u32 timely_link_epoch;

int timely_link_init(void);
void timely_link_exit(void);
void timely_link_changed(const struct net *net);
struct timely_link *timely_link_of(struct net_device *dev, u32 *kbps, bool *beyond);
struct timely_link *timely_link_get(struct timely_link *link);
void timely_link_put(struct timely_link *link);

#endif /* _NET_TIMELY_LINK_H */
