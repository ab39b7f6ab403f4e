/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by On-Ramp's files. Calls go from onramp.c (OR-ACKs) and onramp_rtt.c (RTTs)
 * to onramp_flow.c (departures and signals of a flow) and onramp_table.c (the flows), from these to
 * onramp_repair.c (retransmissions of trimmed packets), and from all of these to onramp_net.c
 * (state of a network namespace).
 *
 * A function that returns enum timely_onramp_counter checks a signal. TIMELY_ONRAMP_accepted means
 * that no check failed; any other value is the reason why the signal is ignored.
 */
#ifndef _TIMELY_ONRAMP_H
#define _TIMELY_ONRAMP_H

#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <net/netns/generic.h>

#include <net/timely_onramp.h>

/* Number of groups of peers, by hash of the address. OR-ACKs that have a valid tag but are not
 * accepted are limited for each group.
 */
#define ONRAMP_BAD_GROUPS	256

/**
 * struct onramp_counters - On-Ramp's counters of a network namespace on one CPU
 * @count: the counts, by enum timely_onramp_counter
 */
struct onramp_counters {
	u64 count[TIMELY_ONRAMP_COUNTER_COUNT];
};

/**
 * struct onramp_key - a key that signs OR-ACKs, read under RCU
 * @key: the secret
 * @rcu: frees the key after an RCU grace period
 */
struct onramp_key {
	struct timely_orack_key key;
	struct rcu_head rcu;
};

/**
 * struct onramp_net - On-Ramp's state of a network namespace
 * @counters: counters of each CPU
 * @lock: serialises writers of all members below except @bad_ns and @bad
 * @listeners: number of qdiscs that use OR-ACKs as signals
 * @sockets: sockets that receive OR-ACKs over IPv4 and IPv6; NULL while @listeners is 0. The socket
 *	for IPv6 is also NULL if IPv6 was not available
 * @rtt_users: number of qdiscs that use RTTs as signals
 * @used: number of the key that sent OR-ACKs are signed with; 0 for none
 * @unauthenticated: accept OR-ACKs without a key; if @used is 0, also send them
 * @bad_ns: when the present period of @bad started, CLOCK_MONOTONIC; written without a lock
 * @bad: for each group of peers, OR-ACKs of this period with a valid tag that were not accepted;
 *	written without a lock
 * @keys: keys by number; number 0 is not used
 */
struct onramp_net {
	struct onramp_counters __percpu *counters;
	struct mutex lock; /* of listeners, sockets and settings */
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
 * struct onramp_sample - a signal (an OR-ACK or an RTT) about a packet of a flow
 * @now_ns: when this host handled the signal, CLOCK_MONOTONIC
 * @sent_ns: when the packet departed, CLOCK_MONOTONIC
 * @seq: for TCP, the sequence number of a byte of the packet; for UDP, timely_udp_digest()
 * @asserted_ns: sum of all pauses of the flow asserted before the departure, low 32 bits
 * @received_ns: when the packet was received, by the receiver's clock; 0: the signal is an RTT
 * @turn_ns: with @trimmed, the packet's turn, ns, see timely_pause_turn()
 * @turnaround_ns: part of the time from @sent_ns to @now_ns that is not delay of the path. For an
 *	OR-ACK: time from the reception of the packet to the departure of the OR-ACK. For an
 *	RTT: time that the ACK waited in this host
 * @noticed: number of clock steps and unsynchronised clocks that this signal revealed, see struct
 *	timely_owd; set by timely_onramp_signal()
 * @error_ns: largest error of the delay by the error of the clocks, ns; set by
 *	timely_onramp_signal()
 * @doubted: the RTT shows that the clocks of both hosts are not synchronised; set by
 *	timely_onramp_signal()
 * @trimmed: a switch has trimmed the packet, so that its data are lost
 * @no_offset: the delay is relative and not absolute, because the offset of the peer's clock is not
 *	valid any more; set by timely_onramp_signal()
 */
struct onramp_sample {
	u64 now_ns;
	u64 sent_ns;
	u32 seq;
	u32 asserted_ns;
	u64 received_ns;
	u32 turnaround_ns;
	u32 turn_ns;
	u32 noticed;
	u64 error_ns;
	bool trimmed;
	bool doubted;
	bool no_offset;
};

/* onramp_net.c */
int timely_onramp_net_init(void);
void timely_onramp_net_exit(void);
void timely_onramp_close(struct onramp_net *on);

/* onramp_table.c */
int timely_onramp_flows_init(void);
void timely_onramp_flows_exit(void);
struct timely_onramp *timely_onramp_lookup(const struct timely_tuple *tuple);
struct timely_onramp *timely_onramp_new(const struct sock *sk);
void timely_onramp_insert(struct timely_onramp *onramp);

/* onramp_flow.c */
enum timely_onramp_counter timely_onramp_departure(const struct timely_onramp *onramp, bool whole,
						   struct onramp_sample *sample);
enum timely_onramp_counter timely_onramp_signal(struct timely_flow *flow,
						struct onramp_sample *sample);

/* onramp_repair.c */
void timely_onramp_repair_init(struct timely_onramp *onramp);
void timely_onramp_repair_stop(struct timely_onramp *onramp);
void timely_onramp_repair(struct timely_onramp *onramp, struct sock *sk,
			  const struct onramp_sample *sample);

/* onramp_rtt.c */
int timely_onramp_rtt_join(const struct net *net, struct onramp_net *on);
void timely_onramp_rtt_leave(struct onramp_net *on);
void timely_onramp_rtt_exit(void);

#endif /* _TIMELY_ONRAMP_H */
