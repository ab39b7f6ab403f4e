/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flow entries: what a congestion control, the qdisc and On-Ramp share about one flow: departure
 * times, new rates and pauses. None of the three calls another.
 *
 * net/timely/flow.c implements entries; net/timely/onramp_flow.c and onramp_table.c implement
 * On-Ramp's part, struct timely_onramp.
 */
#ifndef _NET_TIMELY_FLOW_H
#define _NET_TIMELY_FLOW_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/jump_label.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>

#include <net/timely_cfg.h>
#include <uapi/linux/timely.h>
#include <timely/engine/orack.h>
#include <timely/engine/owd.h>
#include <timely/engine/pause.h>

struct net;
struct sock;
struct tcp_congestion_ops;
struct timely_budget;
struct timely_walk;

/* Number of departures that timely_flow.ring has room for. If more pacing segments are in flight,
 * as on long and fast paths, some departures are skipped, that is, not recorded: see
 * timely_flow_keep().
 */
#define TIMELY_DEPARTURES	64

/* Unit of timely_flow.skipped: 2^10 ns. */
#define TIMELY_SKIPPED_SHIFT	10

/**
 * struct timely_departure - when the qdisc passed a packet to the device
 * @time_ns: departure time, CLOCK_MONOTONIC; 0 while an element of the ring is written
 * @end_seq: sequence number after the packet's last byte; for UDP, timely_udp_digest()
 * @bytes: length of the packet with the headers of all its frames, as qdisc_pkt_len()
 *
 * If sch_timely splits a pacing segment, timely_flow.ring has the departure of the last
 * sub-segment.
 */
struct timely_departure {
	u64 time_ns;
	u32 end_seq;
	u32 bytes;
};

/**
 * struct timely_departed - when a pacing segment departed, as timely_flow_departure() found
 * @time_ns: departure time, CLOCK_MONOTONIC
 * @unsure_ns: 0 if @time_ns was recorded; if it is an estimate, the segment departed at most this
 *	time earlier
 * @bytes: length of the segment; of an estimate the likely length of the payload
 */
struct timely_departed {
	u64 time_ns;
	u32 unsure_ns;
	u32 bytes;
};

/* Number of elements of timely_onramp.sent. An element covers the packets of up to 16 us. */
#define TIMELY_SENT		128

/**
 * struct timely_sent - consecutive packets of a flow that departed within 16 us
 * @time_ns: when the first packet departed, CLOCK_MONOTONIC; 0 while this element is written
 * @span_ns: time from the departure of the first packet to that of the last, ns
 * @end_seq: sequence number after the last byte of the last packet; for UDP, timely_udp_digest()
 * @payload: TCP payload of all packets, without a FIN, bytes; 0 for UDP
 * @asserted_ns: the lower 32 bits of timely_pause.asserted_ns when the last packet departed
 */
struct timely_sent {
	u64 time_ns;
	u32 span_ns;
	u32 end_seq;
	u32 payload;
	u32 asserted_ns;
};

/**
 * struct timely_onramp_cfg - On-Ramp's settings and statistics of a qdisc
 * @pause: settings of the controller; a threshold of 0 turns On-Ramp off
 * @clock_error_ns: largest error of synchronised clocks, ns; added to the threshold if @owd is
 *	TIMELY_OWD_ABSOLUTE
 * @owd: how delays are obtained, TIMELY_OWD_*
 * @b: moving average of b over the latest signals of all flows, in 65536ths
 * @signals: signals that the controller has used
 * @pauses: pauses started
 * @paused_ns: duration of all pauses, ns
 * @delays: histogram of the signals' delays, see TIMELY_ONRAMP_BINS
 *
 * The qdisc writes the settings one by one while signals arrive: a reader may see old and new
 * settings together.
 */
struct timely_onramp_cfg {
	struct timely_pause_cfg pause;
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
 * struct timely_trimmed - a trimmed packet of a flow
 * @at_ns: when the OR-ACK about the packet arrived, CLOCK_MONOTONIC; 0: there is no packet
 * @sent_ns: when the packet departed, CLOCK_MONOTONIC
 * @seq: the packet's sequence number
 */
struct timely_trimmed {
	u64 at_ns;
	u64 sent_ns;
	u32 seq;
};

/**
 * struct timely_repair - a retransmission of trimmed packets, under the flow's lock
 * @timer: runs when the retransmission is due
 * @sk: the TCP socket, with a reference; NULL: no retransmission is due
 * @due: the packet that @timer is for
 * @last: the last trimmed packet reported after @due
 * @tries: how often @timer has found the socket in use by a process
 * @ended: the flow ends, so @timer must not be started any more
 */
struct timely_repair {
	struct hrtimer timer;
	struct sock *sk;
	struct timely_trimmed due;
	struct timely_trimmed last;
	u32 tries;
	bool ended;
};

/**
 * struct timely_onramp - On-Ramp's state of a flow
 * @tuple: the flow's addresses
 * @net_cookie: cookie of the socket's network namespace, for trace events
 * @by_tuple: node in the table that finds this state by @tuple
 * @flow: the flow's entry
 * @peer: the flow's peer; NULL if the budget of peers is used up or there is no memory
 * @pause: state of the controller, under the flow's lock
 * @resume: rate limit between pauses, under the flow's lock
 * @timeline: which receive times of OR-ACKs are possible, under the flow's lock
 * @bytes: bytes that have departed, with headers
 * @green_ns: departure time of the packet that the last signal was about, CLOCK_MONOTONIC. The
 *	paper calls this packet green.
 * @green_seq: sequence number in the last signal; for UDP, timely_udp_digest()
 * @delay_ns: delay of the last signal, ns
 * @signals: signals that the controller has used
 * @pauses: pauses started
 * @paused_ns: duration of all pauses, ns
 * @next: number of elements of @sent ever begun; the next element is @sent[@next % TIMELY_SENT]
 * @budget: budget of the network namespace that this state is counted in
 * @repair: retransmission of trimmed packets
 * @sent: ring of the departures of the flow's packets
 */
struct timely_onramp {
	struct timely_tuple tuple;
	u64 net_cookie;
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
	struct timely_repair repair;
	struct timely_sent sent[TIMELY_SENT];
};

/**
 * struct timely_notifier - a qdisc that is notified of new rates and pauses of flows
 * @changed: list of the entries of flows whose rate rose or whose pause changed while the qdisc had
 *	packets of the flow queued, linked by timely_flow.changed. See timely_flow_take_changed().
 * @wake: called to make the qdisc read @changed soon, with BH disabled and timely_flow.lock held
 * @onramp: On-Ramp's settings for the qdisc's flows, and statistics
 */
struct timely_notifier {
	struct llist_head changed;
	void (*wake)(struct timely_notifier *notifier);
	struct timely_onramp_cfg onramp;
};

/**
 * struct timely_flow - the entry of a flow
 * @next: number of departures recorded; the next departure goes to @ring[@next %
 *	TIMELY_DEPARTURES]. 0 again when no departure has been recorded for longer than any RTT
 * @keep_ns: for how long departures must be kept, ns; 0: every departure is recorded
 * @waiting_Bps: rate that the due time of the first queued packet was computed with, bytes per
 *	second; 0 if no packet waits, or a higher rate would not change the due time
 * @pause_until_ns: end of On-Ramp's pause, CLOCK_MONOTONIC, before which no data leaves at any
 *	rate; 0 for none
 * @resume_Bps: On-Ramp's limit of the rate, bytes per second; TIMELY_RESUME_UNLIMITED for none
 * @closed: timely_flow_close() was called: qdiscs release the entry, because a new socket may have
 *	the address @key
 * @in_changed: the entry is in the list timely_notifier.changed of a qdisc
 * @queued: @notifier has packets of the flow queued, so no other qdisc can replace @notifier
 * @dsfield: traffic class (DSCP and ECN) of the last recorded departure
 * @skipped: when a departure was last skipped, CLOCK_MONOTONIC in 2^TIMELY_SKIPPED_SHIFT ns; wraps
 * @changed: node in the list timely_notifier.changed
 * @notifier: the qdisc that is notified of changes; NULL for none
 * @queue: identifier of the flow that @notifier uses
 * @lock: guards @onramp, changes of @notifier and @queue, and setting @queued. timely_notifier.wake
 *	is called under this lock, so that no call comes after timely_flow_detach().
 * @onramp: On-Ramp's state of the flow, NULL if there is none; see timely_flow_onramp()
 * @key: address of the socket, never dereferenced; NULL if no congestion control asked for
 *	the entry
 * @hash: node in the table that finds entries by @key; not used if @key is NULL
 * @ref: references: one of the congestion control, one of each qdisc that has found the entry, and
 *	one of the list timely_notifier.changed while @in_changed is true
 * @rcu: frees the entry after an RCU grace period
 * @budget: budget of the network namespace that the entry is counted in
 * @path: the congestion control's state of the path
 * @ring: departures of pacing segments, if @key is not NULL; no element is in two cache lines
 */
struct timely_flow {
	atomic_t next;
	u32 keep_ns;
	u64 waiting_Bps;
	u64 pause_until_ns;
	u64 resume_Bps;
	bool closed;
	bool in_changed;
	bool queued;
	u8 dsfield;
	u32 skipped;
	struct llist_node changed;
	struct timely_notifier *notifier;
	void *queue;
	spinlock_t lock; /* of onramp, notifier, queue, and setting queued */
	struct timely_onramp *onramp;
	const void *key;
	struct rhash_head hash;
	refcount_t ref;
	struct rcu_head rcu;
	struct timely_budget *budget;
	struct timely_path_state path ____cacheline_aligned;
	struct timely_departure ring[TIMELY_DEPARTURES] ____cacheline_aligned;
};

/**
 * enum timely_departure_result - whether the departure of a pacing segment is known
 * @TIMELY_DEPARTURE_UNKNOWN: not known: no qdisc records the flow's departures, or later departures
 *	have replaced the departure in the ring
 * @TIMELY_DEPARTURE_FOUND: the departure is known, or estimated from other departures
 * @TIMELY_DEPARTURE_SKIPPED: not known: departures of the flow were skipped recently, see
 *	timely_flow_keep()
 */
enum timely_departure_result {
	TIMELY_DEPARTURE_UNKNOWN,
	TIMELY_DEPARTURE_FOUND,
	TIMELY_DEPARTURE_SKIPPED,
};

/* Describes a connection of a registered congestion control: fills in the members of @connection
 * that the congestion control knows. Called under RCU, without a lock of the socket, which may end
 * or change its congestion control meanwhile: then the caller discards @connection. Only members of
 * the socket itself and of @flow may be read. Return: false if the socket has changed its
 * congestion control.
 */
typedef bool (*timely_flow_describe)(const struct sock *sk, const struct timely_flow *flow,
				     struct timely_connection *connection);

DECLARE_STATIC_KEY_FALSE(timely_flow_key);

int timely_flow_init(void);
void timely_flow_exit(void);
int timely_flow_register(const struct tcp_congestion_ops *ops, unsigned int count,
			 timely_flow_describe describe);
void timely_flow_unregister(void);
bool timely_flow_wanted_slow(const struct sock *sk);

struct timely_flow *timely_flow_new(const struct sock *sk);
struct timely_flow *timely_flow_open(const struct sock *sk);
void timely_flow_close(struct timely_flow *flow);
struct timely_flow *timely_flow_get(const struct sock *sk);
void timely_flow_put(struct timely_flow *flow);

bool timely_flow_attach(struct timely_flow *flow, struct timely_notifier *notifier,
			void *queue);
bool timely_flow_set_queued(struct timely_flow *flow, struct timely_notifier *notifier,
			    void *queue);
void timely_flow_detach(struct timely_flow *flow, struct timely_notifier *notifier,
			const void *queue);
void *timely_flow_queue(struct timely_flow *flow, const struct timely_notifier *notifier);
void timely_flow_changed(struct timely_flow *flow);
struct timely_flow *timely_flow_take_changed(struct llist_node **list);

void timely_flow_depart(struct timely_flow *flow,
			const struct timely_departure *departure);
enum timely_departure_result timely_flow_departure(struct timely_flow *flow, u8 *read,
						   u32 done_seq, u32 end_seq, u64 now_ns,
						   struct timely_departed *departed);
void timely_flow_pause(struct timely_flow *flow, u64 until_ns);

/* For the files of module timely. */
void timely_flow_tuple(struct timely_tuple *tuple, const struct sock *sk);
struct cgroup;

/**
 * struct timely_flow_report - a connection of a walk, see timely_flow_walk_begin()
 * @connection: the connection, as user space gets it
 * @cgroup: control group of the socket, valid during the report; NULL if not known
 */
struct timely_flow_report {
	struct timely_connection connection;
	struct cgroup *cgroup;
};

struct timely_walk *timely_flow_walk_begin(const struct net *net);

/**
 * timely_flow_wanted() - check whether the socket's congestion control uses flow entries
 * @sk: a full TCP socket, which need not be locked
 *
 * While no congestion control is registered with timely_flow_register(), the check costs a static
 * branch only.
 *
 * Return: true if timely_flow_get() may find an entry.
 */
static inline bool timely_flow_wanted(const struct sock *sk)
{
	return static_branch_unlikely(&timely_flow_key) &&
	       timely_flow_wanted_slow(sk);
}

/**
 * timely_flow_onramp() - get On-Ramp's state of a flow
 * @flow: the entry, with a reference of the caller
 *
 * The qdisc that sees the first data of the flow sets the state, once. Code that holds @flow->lock
 * may read @flow->onramp directly.
 *
 * Return: the state, with all members set; NULL if the flow has none.
 */
static inline struct timely_onramp *timely_flow_onramp(const struct timely_flow *flow)
{
	/* Pairs with smp_store_release() of timely_onramp_add(). */
	return smp_load_acquire(&flow->onramp);
}

/**
 * timely_flow_rates_lag() - check whether a flow's queued packets leave at an older rate
 * @flow: the entry
 *
 * Return: false if the flow's qdisc applies new rates to queued packets, else true.
 */
static inline bool timely_flow_rates_lag(const struct timely_flow *flow)
{
	return !READ_ONCE(flow->notifier);
}

/**
 * timely_flow_keep() - set for how long departures of a flow must be kept
 * @flow: the entry
 * @rtt_ns: RTT of the flow, ns, as measured or, if it cannot be measured, an upper bound
 *
 * Departures are kept for two RTTs, so that an RTT that doubles is still measured.
 * timely_flow.keep_ns is set again only when it has become less than 1.5 or more than 4 RTTs. If
 * more pacing segments depart in this time than timely_flow.ring has elements, some departures are
 * skipped, that is, not recorded.
 */
static inline void timely_flow_keep(struct timely_flow *flow, u32 rtt_ns)
{
	u64 keep_ns = READ_ONCE(flow->keep_ns);

	if (unlikely(keep_ns * 2 < rtt_ns * 3ULL || keep_ns > rtt_ns * 4ULL))
		WRITE_ONCE(flow->keep_ns, min_t(u64, rtt_ns * 2ULL, U32_MAX));
}

/**
 * timely_flow_prefetch() - prefetch a flow entry before TCP processes an ACK
 * @flow: the entry
 * @read: the reader's position, as for timely_flow_departure()
 * @path: true if the connection uses the configuration in timely_flow.path
 *
 * With many flows, the entry is usually not in the CPU's caches.
 *
 * Where prefetch() is GCC's built-in function, GCC takes a function that only prefetches for one
 * without effect, and removes calls that are not inlined early; hence __always_inline.
 */
static __always_inline void timely_flow_prefetch(const struct timely_flow *flow, u8 read, bool path)
{
	prefetch(flow);
	if (path) {
		prefetch(&flow->path.cfg);
		prefetch(&flow->path.cfg.rate.flow_term);
		prefetch(&flow->path.cfg.app_limited_q32);
		prefetch(&flow->path.reported_ns);
		prefetch(&flow->path.rcv_nxt);
	}
	prefetch(&flow->ring[(u8)(read + 1) % TIMELY_DEPARTURES]);
}

/**
 * timely_flow_is_queued() - check whether the entry says that a qdisc has packets of a flow queued
 * @flow: the entry
 * @notifier: the qdisc
 * @queue: the qdisc's identifier of the flow
 *
 * Context: under the qdisc's lock.
 * Return: true from timely_flow_set_queued() to timely_flow_release() or timely_flow_detach() of
 * @notifier for @queue.
 */
static inline bool timely_flow_is_queued(const struct timely_flow *flow,
					 const struct timely_notifier *notifier, const void *queue)
{
	return READ_ONCE(flow->notifier) == notifier && READ_ONCE(flow->queue) == queue &&
	       READ_ONCE(flow->queued);
}

/**
 * timely_flow_wait() - request notification while the flow's first packet waits in the qdisc
 * @flow: the entry
 * @notifier: the qdisc
 * @queue: the qdisc's identifier of the flow
 * @rate_Bps: rate that the packet's due time was computed with, bytes per second; 0 if a higher
 *	rate would not change the due time, so that only changes of the pause are notified
 *
 * The qdisc was not notified of changes before this call. So the caller reads the flow's rate and
 * pause again after the call.
 *
 * Context: under the qdisc's lock.
 * Return: true if @notifier is notified of changes from now on; false if another qdisc has packets
 * of the flow queued, so that @notifier must check for changes from time to time.
 */
static inline bool timely_flow_wait(struct timely_flow *flow, struct timely_notifier *notifier,
				    void *queue, u64 rate_Bps)
{
	/* The check needs no lock: while @flow->queued is true, only @notifier clears the flag. */
	if (unlikely(!timely_flow_is_queued(flow, notifier, queue)) &&
	    !timely_flow_set_queued(flow, notifier, queue))
		return false;
	WRITE_ONCE(flow->waiting_Bps, rate_Bps);
	/* Pairs with smp_mb() of timely_flow_rate(): either the qdisc, which reads the rate again
	 * after this call, sees a new rate, or the congestion control sees waiting_Bps.
	 */
	smp_mb();
	return true;
}

/**
 * timely_flow_waited() - record that the flow's first packet does not wait in the qdisc any more
 * @flow: the entry
 * @notifier: the qdisc
 * @queue: the qdisc's identifier of the flow
 *
 * The qdisc is not notified of new rates until the next timely_flow_wait(), but still of changes of
 * the pause.
 *
 * Context: under the qdisc's lock.
 */
static inline void timely_flow_waited(struct timely_flow *flow,
				      const struct timely_notifier *notifier, const void *queue)
{
	if (timely_flow_is_queued(flow, notifier, queue))
		WRITE_ONCE(flow->waiting_Bps, 0);
}

/**
 * timely_flow_release() - record that the qdisc has no packets of the flow queued any more
 * @flow: the entry
 * @notifier: the qdisc
 * @queue: the qdisc's identifier of the flow
 *
 * A qdisc without queued packets of the flow is not notified. The qdisc stays attached until
 * another qdisc replaces this qdisc, see timely_flow_attach().
 *
 * Context: under the qdisc's lock.
 */
static inline void timely_flow_release(struct timely_flow *flow,
				       const struct timely_notifier *notifier, const void *queue)
{
	if (!timely_flow_is_queued(flow, notifier, queue))
		return;
	WRITE_ONCE(flow->waiting_Bps, 0);
	/* Pairs with smp_load_acquire() of flow_attach(): a qdisc that replaces this qdisc writes
	 * to the entry only after waiting_Bps is 0.
	 */
	smp_store_release(&flow->queued, false);
}

/**
 * timely_flow_rate() - notify the qdisc if the congestion control has raised the rate
 * @flow: the entry
 * @rate_Bps: the new rate, bytes per second, already written to the socket's sk_pacing_rate
 *
 * If the new rate is higher than the rate of the waiting packet by more than an eighth, the qdisc
 * is notified at once. A smaller rise is not worth a wake-up; the next packet uses the new rate. A
 * lower rate needs no notification: the qdisc reads the rate again when the waiting packet is due.
 */
static inline void timely_flow_rate(struct timely_flow *flow, u64 rate_Bps)
{
	u64 waiting_Bps;

	/* Pairs with smp_mb() of timely_flow_wait(): write the rate, then read waiting_Bps. */
	smp_mb();
	waiting_Bps = READ_ONCE(flow->waiting_Bps);
	if (unlikely(waiting_Bps && rate_Bps > waiting_Bps + waiting_Bps / 8))
		timely_flow_changed(flow);
}

#endif /* _NET_TIMELY_FLOW_H */
