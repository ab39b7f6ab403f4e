/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What On-Ramp's files share. Calls go from onramp.c (OR-ACKs) and onramp_rtt.c (RTTs) to
 * onramp_flow.c (flows, and what is heard of their packets), and from all of these to
 * onramp_net.c (what a network namespace has).
 */
#ifndef _TIMELY_ONRAMP_H
#define _TIMELY_ONRAMP_H

#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <net/netns/generic.h>

#include <net/timely_onramp.h>

/* Groups of addresses whose useless OR-ACKs are counted together. */
#define ONRAMP_BAD_GROUPS	256

/**
 * struct onramp_counters - of one CPU
 * @count: by enum timely_onramp_counter
 */
struct onramp_counters {
	u64 count[TIMELY_ONRAMP_COUNTER_COUNT];
};

/**
 * struct onramp_key - a key, under RCU
 * @key: the secret
 * @rcu: readers may still look at it
 */
struct onramp_key {
	struct timely_orack_key key;
	struct rcu_head rcu;
};

/**
 * struct onramp_net - On-Ramp in a network namespace
 * @counters: per CPU
 * @lock: guards changes of what follows
 * @listeners: qdiscs that want OR-ACKs
 * @sockets: that receive them, of IPv4 and IPv6; NULL while nobody wants any
 * @rtt_users: qdiscs that want RTTs, without a receiver
 * @used: key that OR-ACKs are made with
 * @unauthenticated: do without keys
 * @bad_ns: when the present period began
 * @bad: bad OR-ACKs since, by group of addresses
 * @keys: by number
 */
struct onramp_net {
	struct onramp_counters __percpu *counters;
	struct mutex lock; /* of the settings */
	u32 listeners;
	struct socket *sockets[2];
	u32 rtt_users;
	u8 used;
	bool unauthenticated;
	u64 bad_ns;
	u16 bad[ONRAMP_BAD_GROUPS];
	struct onramp_key __rcu *keys[256];
};

extern unsigned int timely_onramp_net_id;

static inline struct onramp_net *onramp_net(const struct net *net)
{
	return net_generic(net, timely_onramp_net_id);
}

/**
 * struct onramp_news - what came of a flow's packet
 * @now_ns: when it was heard, CLOCK_MONOTONIC
 * @sent_ns: when the packet departed
 * @seq: its sequence number
 * @asserted_ns: pauses asserted until then, the low bits
 * @received_ns: when it was received, by the receiver's clock; 0: this is an RTT
 * @turnaround_ns: of the receiver
 * @noticed: how often a clock was found to be wrong; set by timely_onramp_hear()
 * @doubted: the round trip shows that clocks are out of step; set by timely_onramp_hear()
 */
struct onramp_news {
	u64 now_ns;
	u64 sent_ns;
	u32 seq;
	u32 asserted_ns;
	u64 received_ns;
	u32 turnaround_ns;
	u32 noticed;
	bool doubted;
};

/* onramp_net.c */
int timely_onramp_net_init(void);
void timely_onramp_net_exit(void);
void timely_onramp_deafen(struct onramp_net *on);

/* onramp_flow.c */
int timely_onramp_flows_init(void);
void timely_onramp_flows_exit(void);
struct timely_onramp *timely_onramp_lookup(const struct timely_tuple *tuple);
enum timely_onramp_counter timely_onramp_departure(const struct timely_onramp *onramp, bool whole,
						   struct onramp_news *news);
enum timely_onramp_counter timely_onramp_hear(struct timely_flow *flow, struct onramp_news *news);

/* onramp_rtt.c */
int timely_onramp_rtt_join(const struct net *net, struct onramp_net *on);
void timely_onramp_rtt_leave(struct onramp_net *on);
void timely_onramp_rtt_exit(void);

#endif /* _TIMELY_ONRAMP_H */
