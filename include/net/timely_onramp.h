/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp in the sender, and what it shares with the receiver. See
 * net/timely/onramp.c.
 */
#ifndef _NET_TIMELY_ONRAMP_H
#define _NET_TIMELY_ONRAMP_H

#include <linux/types.h>

#include <timely/engine/orack.h>

struct net;
struct sock;
struct timely_departure;
struct timely_flow;
struct timely_onramp;
struct timely_onramp_walk;

/* UDP port of OR-ACKs, unless timely.orack_port says otherwise: "OR". */
#define TIMELY_ORACK_PORT	20306

/* OR-ACKs of a network namespace, X(name, doc). */
#define TIMELY_ONRAMP_COUNTERS(X)					\
	X(sent, "OR-ACKs sent")						\
	X(send_errors, "OR-ACKs not sent: no memory, route or key")	\
	X(send_limited, "OR-ACKs not sent: the peer's rate, or too many waiting") \
	X(received, "OR-ACKs received")					\
	X(accepted, "OR-ACKs that counted")				\
	X(flooded, "OR-ACKs with a right tag not looked up: too many useless ones from there") \
	X(malformed, "OR-ACKs of a wrong length or form")		\
	X(unknown_key, "OR-ACKs with a key that is not known, or none")	\
	X(bad_tag, "OR-ACKs whose tag is wrong: forged, or of another key") \
	X(no_flow, "OR-ACKs of no flow that is alive here")		\
	X(not_in_flight, "OR-ACKs of no packet in flight")		\
	X(old, "OR-ACKs replayed, overtaken, or of no packet sent since the last that counted") \
	X(bad_time, "OR-ACKs of a time that cannot be: replayed, or a clock was stepped") \
	X(rtt_lookups, "ACKs whose flow was looked up, without a receiver") \
	X(rtts, "RTTs that counted, without a receiver")		\
	X(out_of_step, "OR-ACKs that counted by their RTT only: clocks are out of step") \
	X(clock_steps, "steps of a clock, and clocks out of step, as flows noticed")	\
	X(peers_evicted, "destinations forgotten early to make room for others") \
	X(peers_refused, "flows without a destination: too many in use, or no memory")

#define TIMELY_ONRAMP_ENUM(name, doc)	TIMELY_ONRAMP_##name,

enum timely_onramp_counter {
	TIMELY_ONRAMP_COUNTERS(TIMELY_ONRAMP_ENUM)
	TIMELY_ONRAMP_COUNTER_COUNT
};

extern const char * const timely_onramp_counter_names[TIMELY_ONRAMP_COUNTER_COUNT];
extern const char * const timely_onramp_counter_docs[TIMELY_ONRAMP_COUNTER_COUNT];

/**
 * struct timely_onramp_status - On-Ramp in a network namespace
 * @keys: bit for each key that is known
 * @used: key that OR-ACKs are made with, 0 for none
 * @unauthenticated: OR-ACKs without a key count, and are sent if none is used
 * @counters: over all CPUs
 */
struct timely_onramp_status {
	unsigned long keys[256 / (8 * sizeof(long))];
	u8 used;
	bool unauthenticated;
	u64 counters[TIMELY_ONRAMP_COUNTER_COUNT];
};

/**
 * struct timely_onramp_flow_status - what On-Ramp knows of a flow
 * @tuple: the flow, as its data packets name it
 * @delay_ns: as the last signal told
 * @signals: OR-ACKs or RTTs that counted
 * @pauses: holds begun
 * @paused_ns: what they add up to
 * @left_ns: of a hold at present, 0 if there is none
 * @b: in 65536ths
 */
struct timely_onramp_flow_status {
	struct timely_tuple tuple;
	u64 delay_ns;
	u64 signals;
	u64 pauses;
	u64 paused_ns;
	u64 left_ns;
	u32 b;
};

typedef int (*timely_onramp_tell)(const struct timely_onramp_flow_status *status, void *arg);

int timely_onramp_init(void);
void timely_onramp_exit(void);
u16 timely_onramp_port(void);

/* For the qdisc. */
int timely_onramp_join(struct net *net, u8 owd);
void timely_onramp_leave(struct net *net, u8 owd);
struct timely_flow *timely_onramp_flow(const struct timely_tuple *tuple, const struct sock *sk);
bool timely_onramp_add(struct timely_flow *flow, const struct timely_tuple *tuple,
		       const struct sock *sk);
void timely_onramp_least(struct timely_flow *flow, u64 now_ns, u64 rtt_ns);
void timely_onramp_recall(struct timely_flow *flow, u64 now_ns);
void timely_onramp_unheard(struct timely_flow *flow, u64 now_ns);
void timely_onramp_depart(struct timely_onramp *onramp,
			  const struct timely_departure *departure, u32 payload);

/* For flow.c. */
void timely_onramp_drop(struct timely_onramp *onramp);
void timely_onramp_free(struct timely_onramp *onramp);

/* For the receiver, in softirq: see timely_acker.c. */
bool timely_onramp_sign(struct net *net, struct timely_orack *orack, u8 *wire);
void timely_onramp_count(struct net *net, enum timely_onramp_counter index);

/* For netlink. */
void timely_onramp_status(struct net *net, struct timely_onramp_status *status);
int timely_onramp_key_set(struct net *net, u8 number, const struct timely_orack_key *key);
int timely_onramp_key_del(struct net *net, u8 number);
int timely_onramp_set(struct net *net, const u8 *used, const bool *unauthenticated);
/*
 * Tell of the flows of a namespace from *position on, which is 0 at first. When
 * tell() returns other than 0 that is returned at once, and *position stands for
 * the flow that it refused: a dump goes on there.
 */
struct timely_onramp_walk *timely_onramp_walk_begin(const struct net *net);
void timely_onramp_walk_end(struct timely_onramp_walk *walk);
int timely_onramp_walk(struct timely_onramp_walk *walk, timely_onramp_tell tell, void *arg);

#endif /* _NET_TIMELY_ONRAMP_H */
