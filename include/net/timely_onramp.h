/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp at the sender, which pauses a flow while the delay of the flow's path is above a
 * threshold: functions that sch_timely (the qdisc), flow.c, timely_acker (the receiver) and
 * netlink.c call. net/timely/onramp.c explains On-Ramp.
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
struct timely_peer_clock;
struct timely_walk;

/* Default UDP port of OR-ACKs, the module parameter orack_port of timely: "OR" in ASCII. */
#define TIMELY_ORACK_PORT	20306

/* Counters of On-Ramp in a network namespace, X(name, description). A function that checks an
 * OR-ACK or RTT returns the counter of the result; "accepted" means that no check has failed.
 */
#define TIMELY_ONRAMP_COUNTERS(X)					\
	X(sent, "OR-ACKs sent")						\
	X(send_errors, "OR-ACKs not sent: no memory, route or key")	\
	X(send_limited, "OR-ACKs not sent: rate limit of the peer, or the CPU's queue is full") \
	X(trimmed, "trimmed packets received that OR-ACKs report as trimmed")	\
	X(trimmed_refused, "packets with trimmed packets' DSCP that are not answered") \
	X(received, "OR-ACKs received")					\
	X(accepted, "OR-ACKs accepted")					\
	X(flooded, "OR-ACKs with a valid tag dropped: too many of that group were refused") \
	X(malformed, "OR-ACKs with a wrong length or format")	\
	X(unknown_key, "OR-ACKs with an unknown key, or without a key")	\
	X(bad_tag, "OR-ACKs with a wrong tag: forged, or made with another key") \
	X(no_flow, "OR-ACKs that match no flow of this host that OR-ACKs can pause")	\
	X(not_in_flight, "OR-ACKs that match no packet in flight")	\
	X(old, "OR-ACKs replayed, reordered, or about a packet before the last accepted one") \
	X(bad_time, "OR-ACKs with an impossible time: replayed, or a clock was stepped") \
	X(accepted_trimmed, "OR-ACKs accepted about packets that a switch has trimmed")	\
	X(repairs, "retransmissions started because a switch has trimmed packets")	\
	X(rtt_lookups, "ACKs whose flow was looked up (owd rtt)") \
	X(rtts, "RTTs accepted (owd rtt)")				\
	X(out_of_step, "OR-ACKs whose delay was limited by the RTT: the hosts' clocks differ") \
	X(no_offset, "OR-ACKs whose delay is relative, not absolute: no valid clock offset") \
	X(clock_steps, "clock steps and unsynchronised clocks that flows detected")	\
	X(peers_evicted, "peers removed early to make room for others") \
	X(peers_refused, "flows without state of their peer: too many peers in use, or no memory")

#define TIMELY_ONRAMP_ENUM(name, doc)	TIMELY_ONRAMP_##name,

enum timely_onramp_counter {
	TIMELY_ONRAMP_COUNTERS(TIMELY_ONRAMP_ENUM)
	TIMELY_ONRAMP_COUNTER_COUNT
};

extern const char * const timely_onramp_counter_names[TIMELY_ONRAMP_COUNTER_COUNT];
extern const char * const timely_onramp_counter_docs[TIMELY_ONRAMP_COUNTER_COUNT];

/**
 * struct timely_onramp_status - On-Ramp's settings and counters of a network namespace
 * @keys: bitmap of the numbers of existing keys
 * @used: number of the key that sent OR-ACKs are signed with; 0 for none
 * @unauthenticated: OR-ACKs without a key are accepted; if @used is 0, OR-ACKs without a key are
 *	also sent
 * @counters: counters, by enum timely_onramp_counter, summed over all CPUs
 */
struct timely_onramp_status {
	unsigned long keys[256 / (8 * sizeof(long))];
	u8 used;
	bool unauthenticated;
	u64 counters[TIMELY_ONRAMP_COUNTER_COUNT];
};

/**
 * struct timely_onramp_flow_status - On-Ramp's state of a flow, as netlink shows it
 * @tuple: the flow's addresses, as in its data packets
 * @delay_ns: delay of the last signal. The qdisc's option owd selects the one-way delay, its
 *	excess, or the excess of the RTT
 * @signals: number of accepted OR-ACKs or RTTs
 * @pauses: number of pauses started
 * @paused_ns: sum of the lengths of all pauses
 * @left_ns: time until the present pause ends; 0 for no pause
 * @b: the paper's b, 0 to 1, in 65536ths
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

int timely_onramp_init(void);
void timely_onramp_exit(void);
u16 timely_onramp_port(void);

/* For the qdisc. */
int timely_onramp_join(struct net *net, u8 owd);
void timely_onramp_leave(struct net *net, u8 owd);
struct timely_flow *timely_onramp_flow(const struct timely_tuple *tuple, const struct sock *sk);
bool timely_onramp_add(struct timely_flow *flow, const struct timely_tuple *tuple,
		       const struct sock *sk);
void timely_onramp_first_rtt(struct timely_flow *flow, u64 now_ns, u64 rtt_ns);
void timely_onramp_start(struct timely_flow *flow, u64 now_ns);
void timely_onramp_no_signal(struct timely_flow *flow, u64 now_ns);
void timely_onramp_depart(struct timely_onramp *onramp,
			  const struct timely_departure *departure, u32 payload);

/* For flow.c, when the last reference to a flow entry is released. */
void timely_onramp_drop(struct timely_onramp *onramp);
void timely_onramp_free(struct timely_onramp *onramp);

/* For the receiver, in softirq: see net/ipv4/timely_acker.c. */
bool timely_onramp_sign(struct net *net, struct timely_orack *orack, u8 *wire);
void timely_onramp_count(struct net *net, enum timely_onramp_counter index);

/* For netlink. */
void timely_onramp_status(struct net *net, struct timely_onramp_status *status);
int timely_onramp_key_set(struct net *net, u8 number, const struct timely_orack_key *key);
int timely_onramp_key_del(struct net *net, u8 number);
const struct timely_orack_key *timely_onramp_key(struct net *net, u8 number);
u8 timely_onramp_key_used(struct net *net);
int timely_onramp_set(struct net *net, const u8 *used, const bool *unauthenticated);
struct timely_walk *timely_onramp_walk_begin(const struct net *net);
int timely_peer_set_clock(const struct sock *sk, const struct timely_peer_clock *clock);
struct timely_walk *timely_peer_walk_begin(const struct net *net);

#endif /* _NET_TIMELY_ONRAMP_H */
