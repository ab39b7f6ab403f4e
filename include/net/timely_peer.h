/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp's destinations: what flows to the same address share. Internal to timely.ko. See
 * net/timely/peer.c.
 */
#ifndef _NET_TIMELY_PEER_H
#define _NET_TIMELY_PEER_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>

#include <timely/engine/owd.h>

struct net;
struct timely_budget;
struct timely_peers;
struct timely_tuple;

/**
 * struct timely_peer_key - what names a destination
 * @peers: the network namespace's destinations; the address is not used again as long as
 *	one of them exists, so that no other namespace finds them
 * @addr: address, as in struct timely_tuple
 * @family: AF_INET or AF_INET6
 *
 * Without gaps, to be hashed and compared as bytes.
 */
struct timely_peer_key {
	struct timely_peers *peers;
	__be32 addr[4];
	unsigned long family;
};

/**
 * struct timely_peer - a destination
 * @key: what names the destination
 * @hash: anchor in the table
 * @list: anchor in a list of @key.peers; of that lock, as the next four
 * @flows: how many flows refer to the destination
 * @gone: no longer in the table, and freed with the last flow
 * @left: jiffies when the last flow left
 * @joined_ns: when a flow joined last, CLOCK_MONOTONIC
 * @budget: to be returned when the destination leaves the table
 * @lock: of @owd
 * @delay_ns: last delay measured by any flow
 * @heard_ns: when that was, CLOCK_MONOTONIC
 * @owd: what is known of delays
 * @rcu: readers of the table, or of a flow, may still look at the destination
 */
struct timely_peer {
	struct timely_peer_key key;
	struct rhash_head hash;
	struct list_head list;
	u32 flows;
	bool gone;
	unsigned long left;
	u64 joined_ns;
	struct timely_budget *budget;
	spinlock_t lock; /* of @owd */
	u64 delay_ns;
	u64 heard_ns;
	struct timely_owd owd;
	struct rcu_head rcu;
};

struct timely_peer *timely_peer_get(struct net *net, const struct timely_tuple *tuple);
void timely_peer_put(struct timely_peer *peer);
void timely_peer_want_clock(struct timely_peer *peer);

int timely_peer_init(void);
void timely_peer_exit(void);

#endif /* _NET_TIMELY_PEER_H */
