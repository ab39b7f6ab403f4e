/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a congestion control and the qdisc know of the same flow and tell each
 * other without a call between them. See net/timely/flow.c.
 */
#ifndef _NET_TIMELY_FLOW_H
#define _NET_TIMELY_FLOW_H

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/llist.h>
#include <linux/prefetch.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>

#include <net/timely_law.h>
#include <net/timely_orack.h>
#include <net/timely_owd.h>
#include <net/timely_pause.h>
#include <uapi/linux/timely.h>

struct sock;
struct tcp_congestion_ops;
struct timely_budget;

/* Departures remembered: TCP keeps two segments or 122 us of them in the qdisc,
 * the network a few round trips more. Older ones are overwritten.
 */
#define TIMELY_DEPARTURES	64

/**
 * struct timely_departure - when a segment was handed to the device
 * @time_ns: CLOCK_MONOTONIC; 0 while it is written
 * @end_seq: sequence number after its last byte; of UDP, timely_udp_digest()
 * @bytes: on the wire
 */
struct timely_departure {
	u64 time_ns;
	u32 end_seq;
	u32 bytes;
};

/* And by On-Ramp, of each flow that it knows: these are of some packets each. */
#define TIMELY_SENT		128

/**
 * struct timely_sent - what departed at once, or nearly so
 * @time_ns: when it began to, CLOCK_MONOTONIC; 0 while it is written
 * @span_ns: until its last packet did
 * @end_seq: sequence number after its last byte; of UDP, timely_udp_digest()
 * @payload: bytes before that
 * @asserted_ns: pauses asserted until then, the low bits
 */
struct timely_sent {
	u64 time_ns;
	u32 span_ns;
	u32 end_seq;
	u32 payload;
	u32 asserted_ns;
};

/**
 * struct timely_onramp_law - what a qdisc wants of On-Ramp, and what came of it
 * @pause: the controller's; a threshold of 0: On-Ramp is off
 * @clock_error_ns: of clocks that are in step, added to the threshold
 * @owd: TIMELY_OWD_*
 * @b: average over signals, in 65536ths
 * @signals: that counted
 * @pauses: holds begun
 * @paused_ns: what they add up to
 * @delays: the signals, by their delay
 *
 * Settings are changed one by one while signals come.
 */
struct timely_onramp_law {
	struct timely_pause_law pause;
	u64 clock_error_ns;
	u8 owd;
	u32 b;
	atomic64_t signals;
	atomic64_t pauses;
	atomic64_t paused_ns;
	atomic64_t delays[TIMELY_ONRAMP_BINS];
};

struct timely_peer;

/**
 * struct timely_onramp - what On-Ramp knows of a flow
 * @tuple: its addresses
 * @by_tuple: anchor in the table of these
 * @flow: whose it is
 * @peer: its destination, NULL if there are too many
 * @pause: the controller's state; under the flow's lock
 * @resume: how fast it may send between holds; likewise
 * @timeline: which receive times of OR-ACKs can be true; likewise
 * @bytes: that have departed
 * @green_ns: departure of the packet that the last signal was about
 * @green_seq: its sequence number
 * @delay_ns: its delay
 * @signals: that counted
 * @pauses: holds begun
 * @paused_ns: what they add up to
 * @next: entry of @sent to be written next, counted without end
 * @budget: of its network namespace, which it is counted in
 * @sent: departures
 */
struct timely_onramp {
	struct timely_tuple tuple;
	struct rhash_head by_tuple;
	struct timely_flow *flow;
	struct timely_peer *peer;
	struct timely_pause pause;
	struct timely_resume resume;
	struct timely_timeline timeline;
	u64 bytes;
	u64 green_ns;
	u32 green_seq;
	u64 delay_ns;
	u64 signals;
	u64 pauses;
	u64 paused_ns;
	u32 next;
	struct timely_budget *budget;
	struct timely_sent sent[TIMELY_SENT];
};

/**
 * struct timely_waiter - who holds packets of flows back, a qdisc
 * @changed: flows whose rate rose or whose pause changed while they wait
 * @wake: have the waiter look at @changed soon; called with BH off
 * @onramp: by what rules flows are held while their path is overloaded
 */
struct timely_waiter {
	struct llist_head changed;
	void (*wake)(struct timely_waiter *waiter);
	struct timely_onramp_law onramp;
};

/**
 * struct timely_flow - what is shared about one connection
 * @next: entry of @ring to be written next, counted without end
 * @waiting_Bps: rate that the waiting packet's time was computed with, 0 while
 *	none waits
 * @pause_until_ns: no data leaves before, whatever its rate; 0 for none
 * @resume_Bps: On-Ramp's limit of the rate, TIMELY_RESUME_UNLIMITED for none
 * @closed: the congestion control has left; the key may name another flow
 * @changed_once: it is in the waiter's list
 * @changed: anchor there
 * @waiter: who holds packets of it, NULL for nobody
 * @queue: the waiter's own name for it
 * @lock: guards @waiter, so that it is not woken after it has gone, and @onramp
 * @onramp: what On-Ramp knows of it, NULL while it does not care; see
 *	timely_flow_onramp()
 * @key: the socket, only as a number; NULL if no congestion control asked for it
 * @hash: anchor in the table of all
 * @ref: references: the congestion control's, each qdisc's, a list's
 * @rcu: readers of the table may still look at it
 * @budget: of its network namespace, which the record is counted in
 * @own: the congestion control's, for the parameters that the path decides
 * @ring: departures
 */
struct timely_flow {
	atomic_t next;
	u64 waiting_Bps;
	u64 pause_until_ns;
	u64 resume_Bps;
	bool closed;
	bool changed_once;
	struct llist_node changed;
	struct timely_waiter *waiter;
	void *queue;
	spinlock_t lock; /* of @waiter and @onramp */
	struct timely_onramp *onramp;
	const void *key;
	struct rhash_head hash;
	refcount_t ref;
	struct rcu_head rcu;
	struct timely_budget *budget;
	struct timely_own own ____cacheline_aligned;
	struct timely_departure ring[TIMELY_DEPARTURES];
};

DECLARE_STATIC_KEY_FALSE(timely_flow_key);

int timely_flow_init(void);
void timely_flow_exit(void);
int timely_flow_register(const struct tcp_congestion_ops *ops, unsigned int count);
void timely_flow_unregister(void);
bool timely_flow_wanted_slow(const struct sock *sk);

struct timely_flow *timely_flow_new(const struct sock *sk);
struct timely_flow *timely_flow_open(const struct sock *sk);
void timely_flow_close(struct timely_flow *flow);
struct timely_flow *timely_flow_get(const struct sock *sk);
void timely_flow_put(struct timely_flow *flow);

void timely_flow_attach(struct timely_flow *flow, struct timely_waiter *waiter,
			void *queue);
void timely_flow_detach(struct timely_flow *flow, struct timely_waiter *waiter,
			const void *queue);
void *timely_flow_queue(struct timely_flow *flow, const struct timely_waiter *waiter);
void timely_flow_changed(struct timely_flow *flow);
struct timely_flow *timely_flow_take_changed(struct llist_node **list);

void timely_flow_depart(struct timely_flow *flow,
			const struct timely_departure *departure);
bool timely_flow_departure(const struct timely_flow *flow, u8 *read, u32 end_seq,
			   struct timely_departure *departure);
void timely_flow_pause(struct timely_flow *flow, u64 until_ns);

/**
 * timely_flow_wanted() - does the socket's congestion control want a record?
 * @sk: a full TCP socket; it may change its congestion control meanwhile
 *
 * Return: true if timely_flow_get() may find one. Costs nothing while no
 * congestion control is registered.
 */
static inline bool timely_flow_wanted(const struct sock *sk)
{
	return static_branch_unlikely(&timely_flow_key) &&
	       timely_flow_wanted_slow(sk);
}

/**
 * timely_flow_onramp() - what On-Ramp knows of a flow
 * @flow: the record, of which the caller has a reference
 *
 * Set once, at any time, by whoever sees the flow's first data. Readers with @flow->lock
 * held may read the member instead.
 *
 * Return: that, with all members set; NULL while On-Ramp does not know the flow.
 */
static inline struct timely_onramp *timely_flow_onramp(const struct timely_flow *flow)
{
	/* Pairs with timely_onramp_add(). */
	return smp_load_acquire(&flow->onramp);
}

/**
 * timely_flow_is_late() - does what is queued leave at the rate of when it was?
 * @flow: the record
 *
 * Return: true but under a qdisc that reads rates again, which waits for the flow.
 */
static inline bool timely_flow_is_late(const struct timely_flow *flow)
{
	return !READ_ONCE(flow->waiter);
}

/**
 * timely_flow_prefetch() - an ACK is about to be processed
 * @flow: the record
 * @read: as for timely_flow_departure()
 * @own: it has a law of its own
 *
 * With many flows the record is in none of the processor's caches.
 */
static inline void timely_flow_prefetch(const struct timely_flow *flow, u8 read, bool own)
{
	prefetch(flow);
	if (own) {
		prefetch(&flow->own.law);
		prefetch(&flow->own.law.rate.flow_term);
		prefetch(&flow->own.law.app_limited_q32);
		prefetch(&flow->own.told_ns);
	}
	prefetch(&flow->ring[(u8)(read + 1) % TIMELY_DEPARTURES]);
}

/**
 * timely_flow_rate() - the congestion control has a new rate
 * @flow: the record
 * @rate_Bps: bytes per second
 *
 * A lower rate is found when the waiting packet is due. A rate that is higher
 * by an eighth or more is told at once; less gains nothing worth a wake-up, and
 * the next packet brings it.
 */
static inline void timely_flow_rate(struct timely_flow *flow, u64 rate_Bps)
{
	u64 waiting_Bps = READ_ONCE(flow->waiting_Bps);

	if (unlikely(waiting_Bps && rate_Bps > waiting_Bps + waiting_Bps / 8))
		timely_flow_changed(flow);
}

#endif /* _NET_TIMELY_FLOW_H */
