/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp's peers: the state that flows to the same IP address share. Only timely.ko uses this
 * header. See net/timely/peer.c.
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
 * struct timely_peer_key - the identity of a peer
 * @peers: the peers of the network namespace; the pointer stands for the namespace. Each peer has a
 *	reference to @peers, so no other namespace gets the same pointer
 * @addr: IP address of the peer, in the format of struct timely_tuple
 * @family: AF_INET or AF_INET6
 *
 * The structure has no padding, so that keys can be hashed and compared as bytes.
 */
struct timely_peer_key {
	struct timely_peers *peers;
	__be32 addr[4];
	unsigned long family;
};

/**
 * struct timely_peer - the state that flows to the same IP address share
 * @key: identity of the peer
 * @hash: entry in the table of all peers
 * @list: entry in the list idle or busy of @key.peers
 * @flows: number of flows that have a reference to the peer
 * @gone: the peer was removed from the table, and is freed when its last flow ends
 * @left: without flows: when the last flow ended, or later a daemon set @sync, jiffies
 * @joined_ns: when the newest flow to the peer was added, CLOCK_MONOTONIC
 * @budget: budget of the network namespace that the peer is counted in while it is in the table
 * @memcg: memory control group that is charged for the peer; NULL for none
 * @lock: guards @owd and @sync
 * @delay_ns: delay of the last signal of any flow to the peer; written without a lock
 * @error_ns: largest error of @delay_ns by the error of the clocks, ns; written without a lock
 * @signal_at_ns: when the signal of @delay_ns arrived, CLOCK_MONOTONIC; written without a lock
 * @owd: state of the computation of delays to the peer
 * @sync: offset of the peer's clock, as a clock daemon measured it
 * @rcu: frees the peer after an RCU grace period
 *
 * The lock of @key.peers guards @list, @flows, @gone, @left, @joined_ns and @budget.
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
	struct mem_cgroup *memcg;
	spinlock_t lock; /* of @owd and @sync */
	u64 delay_ns;
	u64 error_ns;
	u64 signal_at_ns;
	struct timely_owd owd;
	struct timely_sync sync;
	struct rcu_head rcu;
};

struct timely_peer *timely_peer_get(const struct sock *sk, const struct timely_tuple *tuple);
void timely_peer_put(struct timely_peer *peer);
void timely_peer_want_clock(struct timely_peer *peer);

int timely_peer_init(void);
void timely_peer_exit(void);

#endif /* _NET_TIMELY_PEER_H */
