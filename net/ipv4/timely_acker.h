/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two files of timely_acker share: timely_acker.c, the path of a packet, and
 * timely_acker_ctl.c, what namespaces have set.
 */
#ifndef _TIMELY_ACKER_H
#define _TIMELY_ACKER_H

#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

struct net;

/**
 * struct acker_rule - data that OR-ACKs are sent for
 * @prefix: source addresses; of IPv4 the first word only
 * @family: AF_INET, AF_INET6
 * @length: bits of @prefix that count
 * @port_first: local ports, host byte order; 0 for all
 * @port_last: 0 for all
 *
 * Without gaps, to be compared as bytes.
 */
struct acker_rule {
	__be32 prefix[4];
	u16 family;
	u16 length;
	u16 port_first;
	u16 port_last;
};

/**
 * struct acker_config - what a namespace has set; never changed, only replaced
 * @rcu: for its end
 * @interval_ns: of OR-ACKs to a peer
 * @test_since_ns: when the pretended clock was set, CLOCK_MONOTONIC; 0 if it is not
 * @test_offset_ns: what it was ahead then
 * @test_drift_ppb: how much faster it goes
 * @every: bytes for an OR-ACK
 * @rate: OR-ACKs a second to a peer
 * @generation: of the rules, a number that no other namespace has
 * @count: of @rules
 * @rules: in the order in which they were added
 */
struct acker_config {
	struct rcu_head rcu;
	u64 interval_ns;
	u64 test_since_ns;
	s64 test_offset_ns;
	s32 test_drift_ppb;
	u32 every;
	u32 rate;
	u32 generation;
	u32 count;
	struct acker_rule rules[];
};

/**
 * struct acker_net - a namespace's
 * @config: NULL as long as nothing was set, and when the namespace is going
 */
struct acker_net {
	struct acker_config __rcu *config;
};

extern unsigned int timely_acker_net_id;
extern struct mutex timely_acker_mutex;

void timely_acker_init(void);
void timely_acker_stop(void);
void timely_acker_exit(void);
bool timely_acker_has_points(void);
int timely_acker_get(void);
void timely_acker_put(void);
void timely_acker_forget(void);

#endif /* _TIMELY_ACKER_H */
