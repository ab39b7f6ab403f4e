/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Links: which link a connection's packets leave by, the link rate, and how many connections share
 * the link. See net/timely/link.c.
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

/* Longest time between two lookups of a connection's link, jiffies (one second). These lookups find
 * link changes that do not change timely_link_epoch, such as those of veths and tenants' devices.
 */
#define TIMELY_LINK_LOOK	HZ

/**
 * struct timely_load - how connections use a link
 * @senders: number of connections that have data to send; only connections with the target-delay
 *	rule and first_rate_kbps "auto" are counted
 * @received: bytes that connections have received
 * @ingress_q16: average share of the link rate at which connections receive, Q16
 * @seen: @received when @ingress_q16 was computed
 * @seen_ns: when @ingress_q16 was computed, CLOCK_MONOTONIC
 * @much_ns: when @ingress_q16 was last at least TIMELY_INGRESS_MUCH_Q16, CLOCK_MONOTONIC; 0: never
 *
 * Only connections with a configuration computed for their path count. Connections write @senders
 * and @received often; each completion reads the members after them, which change at most once in
 * some 20 us. So both have a cache line of their own.
 */
struct timely_load {
	atomic_t senders ____cacheline_aligned_in_smp;
	atomic64_t received;
	u32 ingress_q16 ____cacheline_aligned_in_smp;
	u64 seen;
	atomic64_t seen_ns;
	u64 much_ns;
};

/**
 * struct timely_link - the link of a hardware device, which is a device with a parent in sysfs
 * @hash: entry in the table of all links
 * @dev: the device; valid while this link is in the table
 * @kbps: link rate as the driver reported it, kbit/s; 0: not known
 * @due: the work item timely_link_work has to ask the driver for the link rate; protected by RTNL
 * @ref: references: one of the table, one of each connection that uses the link
 * @rcu: frees the link after an RCU grace period
 * @load: how the connections of all namespaces use the link
 */
struct timely_link {
	struct hlist_node hash;
	struct net_device *dev;
	u32 kbps;
	bool due;
	refcount_t ref;
	struct rcu_head rcu;
	struct timely_load load;
};

/* Counter that is increased when any link or link rate may have changed: timely_link_changed(). */
extern u32 timely_link_epoch;

int timely_link_init(void);
void timely_link_exit(void);
void timely_link_changed(const struct net *net);
struct timely_link *timely_link_of(struct net_device *dev, u32 *kbps, bool *beyond);
struct timely_link *timely_link_get(struct timely_link *link);
void timely_link_put(struct timely_link *link);

#endif /* _NET_TIMELY_LINK_H */
