/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a congestion control and the qdisc know of the same flow and tell each
 * other without a call between them. See net/timely/flow.c.
 */
#ifndef _NET_TIMELY_FLOW_H
#define _NET_TIMELY_FLOW_H

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>

#include <net/timely_law.h>
#include <uapi/linux/timely.h>
#include <timely/engine/orack.h>
#include <timely/engine/owd.h>
#include <timely/engine/pause.h>

struct sock;
struct tcp_congestion_ops;
struct timely_budget;

/* Departures remembered. Where more segments are in flight, as on long and fast paths, not
 * each is noted: see timely_flow_keep().
 */
#define TIMELY_DEPARTURES	64

/* timely_flow.skipped counts in 2^10 ns. */
#define TIMELY_SKIPPED_SHIFT	10

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
 * @keep_ns: departures are remembered for so long; 0: none of them is skipped
 * @waiting_Bps: rate that the waiting packet's time was computed with; 0 while no
 *	packet waits for the rate
 * @pause_until_ns: no data leaves before, whatever its rate; 0 for none
 * @resume_Bps: On-Ramp's limit of the rate, TIMELY_RESUME_UNLIMITED for none
 * @closed: the congestion control has left; the key may name another flow
 * @changed_once: it is in the waiter's list
 * @skipped: when a departure was last not noted, in 2^TIMELY_SKIPPED_SHIFT ns
 * @changed: anchor there
 * @waiter: the qdisc that is told of changes; NULL for none
 * @held: packets of the flow wait in @waiter, which cannot be replaced until none does
 * @queue: the waiter's own name for it
 * @lock: guards @waiter, so that it is not woken after it has gone, @held on its way
 *	to true, and @onramp
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
	u32 keep_ns;
	u64 waiting_Bps;
	u64 pause_until_ns;
	u64 resume_Bps;
	bool closed;
	bool changed_once;
	bool held;
	u32 skipped;
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

/**
 * enum timely_noted - what is known of when a segment departed
 * @TIMELY_NOT_SEEN: nothing: no qdisc notes the flow's departures, or it was too long ago
 * @TIMELY_NOTED: the time
 * @TIMELY_SKIPPED: a qdisc saw it and had no room for it
 */
enum timely_noted {
	TIMELY_NOT_SEEN,
	TIMELY_NOTED,
	TIMELY_SKIPPED,
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

bool timely_flow_attach(struct timely_flow *flow, struct timely_waiter *waiter,
			void *queue);
bool timely_flow_hold(struct timely_flow *flow, struct timely_waiter *waiter, void *queue);
void timely_flow_detach(struct timely_flow *flow, struct timely_waiter *waiter,
			const void *queue);
void *timely_flow_queue(struct timely_flow *flow, const struct timely_waiter *waiter);
void timely_flow_changed(struct timely_flow *flow);
struct timely_flow *timely_flow_take_changed(struct llist_node **list);

void timely_flow_depart(struct timely_flow *flow,
			const struct timely_departure *departure);
enum timely_noted timely_flow_departure(const struct timely_flow *flow, u8 *read,
					u32 end_seq, u64 now_ns,
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
 * timely_flow_keep() - for how long departures have to be remembered
 * @flow: the record
 * @rtt_ns: of the flow, as measured or, while it cannot be, as it may be
 *
 * For two round trips, or an RTT that doubles would be of a departure that is forgotten. If
 * more segments than there is room for depart in that time, some are not noted.
 */
static inline void timely_flow_keep(struct timely_flow *flow, u32 rtt_ns)
{
	u64 keep_ns = READ_ONCE(flow->keep_ns);

	if (unlikely(keep_ns * 2 < rtt_ns * 3ULL || keep_ns > rtt_ns * 4ULL))
		WRITE_ONCE(flow->keep_ns, min_t(u64, rtt_ns * 2ULL, U32_MAX));
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
 * timely_flow_is_held() - does this queue of this qdisc hold packets of the flow?
 * @flow: the record
 * @waiter: the qdisc, under its own lock
 * @queue: what the qdisc calls the flow
 *
 * Return: true from timely_flow_hold() to timely_flow_release().
 */
static inline bool timely_flow_is_held(const struct timely_flow *flow,
				       const struct timely_waiter *waiter, const void *queue)
{
	return READ_ONCE(flow->waiter) == waiter && READ_ONCE(flow->queue) == queue &&
	       READ_ONCE(flow->held);
}

/**
 * timely_flow_wait() - a packet waits for a time that the flow's rate and pause gave
 * @flow: the record
 * @waiter: the qdisc, under its own lock
 * @queue: what the qdisc calls the flow
 * @rate_Bps: the rate, bytes per second; 0 if no other rate changes the time
 *
 * The caller reads rate and pause again after this call: a change that came before it
 * has told nobody.
 *
 * Return: true if @waiter is told of changes from now on; false while another qdisc
 * holds packets of the flow, and @waiter has to look again by itself.
 */
static inline bool timely_flow_wait(struct timely_flow *flow, struct timely_waiter *waiter,
				    void *queue, u64 rate_Bps)
{
	/* Only @waiter itself ends a hold: what it sees here stays. */
	if (unlikely(!timely_flow_is_held(flow, waiter, queue)) &&
	    !timely_flow_hold(flow, waiter, queue))
		return false;
	WRITE_ONCE(flow->waiting_Bps, rate_Bps);
	/* Pairs with timely_flow_rate(): either the qdisc's second look sees the new rate,
	 * or the congestion control sees the rate that the packet waits with.
	 */
	smp_mb();
	return true;
}

/**
 * timely_flow_waited() - the packet waits no more; others may
 * @flow: the record
 * @waiter: the qdisc
 * @queue: what the qdisc calls the flow
 */
static inline void timely_flow_waited(struct timely_flow *flow,
				      const struct timely_waiter *waiter, const void *queue)
{
	if (timely_flow_is_held(flow, waiter, queue))
		WRITE_ONCE(flow->waiting_Bps, 0);
}

/**
 * timely_flow_release() - the qdisc holds no packets of the flow any more
 * @flow: the record
 * @waiter: the qdisc; it is still told of changes until it holds packets again, unless
 *	another qdisc takes its place
 * @queue: what the qdisc calls the flow
 */
static inline void timely_flow_release(struct timely_flow *flow,
				       const struct timely_waiter *waiter, const void *queue)
{
	if (!timely_flow_is_held(flow, waiter, queue))
		return;
	WRITE_ONCE(flow->waiting_Bps, 0);
	/* What this qdisc wrote is there before what the next one writes. */
	smp_store_release(&flow->held, false);
}

/**
 * timely_flow_rate() - the congestion control has a new rate
 * @flow: the record
 * @rate_Bps: bytes per second, already written to the socket's sk_pacing_rate
 *
 * A lower rate is found when the waiting packet is due. A rate that is higher
 * by an eighth or more is told at once; less gains nothing worth a wake-up, and
 * the next packet brings it.
 */
static inline void timely_flow_rate(struct timely_flow *flow, u64 rate_Bps)
{
	u64 waiting_Bps;

	/* Pairs with timely_flow_wait(): the rate is written before the question whether a
	 * packet waits.
	 */
	smp_mb();
	waiting_Bps = READ_ONCE(flow->waiting_Bps);
	if (unlikely(waiting_Bps && rate_Bps > waiting_Bps + waiting_Bps / 8))
		timely_flow_changed(flow);
}

#endif /* _NET_TIMELY_FLOW_H */
