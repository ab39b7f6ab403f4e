// SPDX-License-Identifier: GPL-2.0
/*
 * Flow entries: what the congestion control, the qdisc and On-Ramp share about a flow. None of the
 * three calls another.
 *
 *	qdisc			writes the departure time of each pacing segment
 *	congestion control	reads departure times, at which RTTs begin (t_send in TIMELY), and
 *				notifies the qdisc of higher rates
 *	On-Ramp			sets a pause and notifies the qdisc
 *
 * There are two kinds of entries. The congestion controls of tcp_timely create an entry for each of
 * their sockets; a qdisc finds this entry by the socket, under RCU. A qdisc with On-Ramp creates an
 * entry for every other TCP or UDP flow of a local socket; On-Ramp finds the state of both kinds by
 * the flow's addresses (onramp_table.c). An entry lives as long as it has references: the qdisc may
 * have packets of a connection that has ended.
 *
 * Departures are in a ring without a lock. The qdisc that sends writes elements of the ring, and
 * the congestion control reads them. Two qdiscs may write, when a socket's route changes: each
 * takes another element. A writer sets the time of an element to 0 first and to the departure time
 * last. A reader accepts an element if its time is not 0 and is the same before and after the other
 * members are read. An element is used again only TIMELY_DEPARTURES departures later, with a later
 * time.
 */

#include <linux/cgroup.h>
#include <linux/export.h>
#include <linux/math64.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include <net/timely_flow.h>
#include <net/timely_onramp.h>
#include <net/timely_tenant.h>
#include <timely/engine/rtt.h>

#include <timely_memcg.h>

#include "walk.h"

DEFINE_STATIC_KEY_FALSE(timely_flow_key);
EXPORT_SYMBOL_GPL(timely_flow_key);

/* Array of the operations of the congestion controls whose sockets get entries, and its size in
 * bytes. While a socket uses one of these congestion controls, icsk_ca_ops of the socket points
 * into the array.
 */
static const struct tcp_congestion_ops *timely_flow_ops;
static size_t timely_flow_ops_size;

/* Describes a connection of these congestion controls; NULL while none are registered. */
static timely_flow_describe flow_describe;

/* Entries have their own slab cache. kmalloc() would place them at multiples of a power of two, and
 * the frequently used cache lines of all entries would share a few sets of the CPU's caches.
 */
static struct kmem_cache *timely_flow_cache;

static struct rhashtable timely_flows;

static const struct rhashtable_params timely_flows_params = {
	.key_len	= sizeof_field(struct timely_flow, key),
	.key_offset	= offsetof(struct timely_flow, key),
	.head_offset	= offsetof(struct timely_flow, hash),
	.automatic_shrinking = true,
};

/**
 * timely_flow_init() - create the cache and the table of entries when the module is loaded
 *
 * Return: 0 or -ENOMEM.
 */
int timely_flow_init(void)
{
	int err;

	timely_flow_cache = kmem_cache_create("timely_entry", sizeof(struct timely_flow), 0,
					      SLAB_HWCACHE_ALIGN, NULL);
	if (!timely_flow_cache)
		return -ENOMEM;
	err = rhashtable_init(&timely_flows, &timely_flows_params);
	if (err)
		kmem_cache_destroy(timely_flow_cache);
	return err;
}

/**
 * timely_flow_exit() - clean up when the module is unloaded; all entries have been released
 */
void timely_flow_exit(void)
{
	rcu_barrier();
	rhashtable_destroy(&timely_flows);
	kmem_cache_destroy(timely_flow_cache);
}

/**
 * timely_flow_register() - register the congestion controls whose sockets get entries
 * @ops: array of their operations, which must exist until timely_flow_unregister()
 * @count: number of elements in @ops
 * @describe: describes a connection, for timely_flow_walk_begin()
 *
 * Return: 0, or -EBUSY if congestion controls are registered already.
 */
int timely_flow_register(const struct tcp_congestion_ops *ops, unsigned int count,
			 timely_flow_describe describe)
{
	if (timely_flow_ops)
		return -EBUSY;
	WRITE_ONCE(flow_describe, describe);
	WRITE_ONCE(timely_flow_ops_size, count * sizeof(*ops));
	WRITE_ONCE(timely_flow_ops, ops);
	static_branch_enable(&timely_flow_key);
	return 0;
}
EXPORT_SYMBOL_GPL(timely_flow_register);

/**
 * timely_flow_unregister() - unregister the congestion controls
 *
 * The caller has closed all entries of the congestion controls. Qdiscs may still have references to
 * some of the entries.
 *
 * Context: process context, may sleep.
 */
void timely_flow_unregister(void)
{
	static_branch_disable(&timely_flow_key);
	WRITE_ONCE(timely_flow_ops, NULL);
	WRITE_ONCE(flow_describe, NULL);
	/* Wait for timely_flow_get() and flow_visit() on other CPUs, which may have seen
	 * timely_flow_ops or flow_describe.
	 */
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(timely_flow_unregister);

/**
 * timely_flow_wanted_slow() - the part of timely_flow_wanted() behind its static key
 * @sk: a full TCP socket
 *
 * Return: true if the socket uses one of the registered congestion controls.
 */
bool timely_flow_wanted_slow(const struct sock *sk)
{
	unsigned long first = (unsigned long)READ_ONCE(timely_flow_ops);

	return first && (unsigned long)READ_ONCE(inet_csk(sk)->icsk_ca_ops) - first <
			READ_ONCE(timely_flow_ops_size);
}
EXPORT_SYMBOL_GPL(timely_flow_wanted_slow);

/* Frees an entry that no reader can find. */
static void timely_flow_discard(struct timely_flow *flow)
{
	struct timely_budget *budget = flow->budget;

	kmem_cache_free(timely_flow_cache, flow);
	timely_budget_return(budget);
}

/**
 * timely_flow_new() - create an entry that timely_flow_get() does not find
 * @sk: the socket that sends the flow; the entry counts against the budget of the socket's network
 *	namespace, and the memory is charged to the socket's memory control group
 *
 * Return: the entry, to be released with timely_flow_put(); NULL if there is no memory or the
 * budget is used up. A flow works without an entry.
 */
struct timely_flow *timely_flow_new(const struct sock *sk)
{
	struct timely_budget *budget = timely_budget_take(sock_net(sk), TIMELY_BUDGET_flows);
	struct mem_cgroup *before;
	struct timely_flow *flow;

	if (!budget)
		return NULL;
	before = timely_charge_begin(sk);
	flow = kmem_cache_zalloc(timely_flow_cache, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	timely_charge_end(before);
	if (!flow) {
		timely_budget_return(budget);
		return NULL;
	}
	flow->budget = budget;
	flow->resume_Bps = TIMELY_RESUME_UNLIMITED;
	refcount_set(&flow->ref, 1);
	spin_lock_init(&flow->lock);
	return flow;
}

/**
 * timely_flow_open() - create an entry that timely_flow_get() finds, for a congestion control
 * @sk: the socket that uses the congestion control; locked, without an entry
 *
 * Return: the entry, to be closed with timely_flow_close(); NULL if there is no memory or the
 * budget is used up. A flow works without an entry.
 */
struct timely_flow *timely_flow_open(const struct sock *sk)
{
	struct timely_flow *flow = timely_flow_new(sk);

	if (!flow)
		return NULL;
	flow->key = sk;
	if (rhashtable_insert_fast(&timely_flows, &flow->hash, timely_flows_params)) {
		timely_flow_discard(flow);
		return NULL;
	}
	return flow;
}
EXPORT_SYMBOL_GPL(timely_flow_open);

/**
 * timely_flow_close() - end the use of an entry by the congestion control
 * @flow: the entry, from timely_flow_open()
 *
 * Releases the congestion control's reference. Qdiscs release their references when they see
 * timely_flow.closed.
 */
void timely_flow_close(struct timely_flow *flow)
{
	WRITE_ONCE(flow->closed, true);
	smp_wmb(); /* pairs with smp_rmb() of flow_visit(): the socket may be freed after this */
	rhashtable_remove_fast(&timely_flows, &flow->hash, timely_flows_params);
	timely_flow_put(flow);
}
EXPORT_SYMBOL_GPL(timely_flow_close);

/**
 * timely_flow_get() - find the entry of a socket
 * @sk: the socket
 *
 * Return: the entry, to be released with timely_flow_put(); NULL if the socket has none.
 */
struct timely_flow *timely_flow_get(const struct sock *sk)
{
	struct timely_flow *flow = NULL;

	rcu_read_lock();
	/* Look up no entry after timely_flow_unregister(), which waits for this RCU section. */
	if (READ_ONCE(timely_flow_ops))
		flow = rhashtable_lookup(&timely_flows, &sk, timely_flows_params);
	if (flow && !refcount_inc_not_zero(&flow->ref))
		flow = NULL;
	rcu_read_unlock();
	return flow;
}
EXPORT_SYMBOL_GPL(timely_flow_get);

static void timely_flow_free(struct rcu_head *rcu)
{
	struct timely_flow *flow = container_of(rcu, struct timely_flow, rcu);

	timely_onramp_free(flow->onramp);
	timely_flow_discard(flow);
}

/**
 * timely_flow_put() - release a reference to an entry
 * @flow: the entry
 */
void timely_flow_put(struct timely_flow *flow)
{
	if (!refcount_dec_and_test(&flow->ref))
		return;
	if (flow->onramp)
		timely_onramp_drop(flow->onramp);
	call_rcu(&flow->rcu, timely_flow_free);
}
EXPORT_SYMBOL_GPL(timely_flow_put);

/* Does timely_flow_attach() with the flow's lock held. */
static bool flow_attach(struct timely_flow *flow, struct timely_notifier *notifier, void *queue)
{
	bool same = flow->notifier == notifier && flow->queue == queue;

	/* Pairs with smp_store_release() of timely_flow_release(). */
	if (!same && smp_load_acquire(&flow->queued))
		return false;
	WRITE_ONCE(flow->notifier, notifier);
	WRITE_ONCE(flow->queue, queue);
	return true;
}

/**
 * timely_flow_attach() - select the qdisc that is notified of new rates and pauses of a flow
 * @flow: the entry, with a reference of the caller
 * @notifier: the qdisc; replaces the qdisc that the flow's packets went through before
 * @queue: the qdisc's identifier of the flow
 *
 * Return: true if the qdisc is attached; false if another qdisc is, and has packets of the flow
 * queued. An attached qdisc with another identifier of the flow counts as another qdisc.
 */
bool timely_flow_attach(struct timely_flow *flow, struct timely_notifier *notifier,
			void *queue)
{
	bool attached;

	spin_lock_bh(&flow->lock);
	attached = flow_attach(flow, notifier, queue);
	spin_unlock_bh(&flow->lock);
	return attached;
}
EXPORT_SYMBOL_GPL(timely_flow_attach);

/**
 * timely_flow_set_queued() - attach a qdisc and record that it has packets of a flow queued
 * @flow: the entry
 * @notifier: the qdisc
 * @queue: the qdisc's identifier of the flow
 *
 * timely_flow_wait() calls this function.
 *
 * Return: true on success; false if another qdisc has packets of the flow queued, as in
 * timely_flow_attach().
 */
bool timely_flow_set_queued(struct timely_flow *flow, struct timely_notifier *notifier, void *queue)
{
	bool attached;

	spin_lock_bh(&flow->lock);
	attached = flow_attach(flow, notifier, queue);
	if (attached)
		WRITE_ONCE(flow->queued, true);
	spin_unlock_bh(&flow->lock);
	return attached;
}
EXPORT_SYMBOL_GPL(timely_flow_set_queued);

/**
 * timely_flow_detach() - end the notification of a qdisc about a flow
 * @flow: the entry
 * @notifier: the qdisc; does not have to be attached
 * @queue: the qdisc's identifier of the flow
 *
 * Does nothing if another qdisc is attached, or the same qdisc with another identifier. In all
 * cases @notifier is not notified about @queue after the call.
 */
void timely_flow_detach(struct timely_flow *flow, struct timely_notifier *notifier,
			const void *queue)
{
	spin_lock_bh(&flow->lock);
	if (flow->notifier == notifier && flow->queue == queue) {
		WRITE_ONCE(flow->notifier, NULL);
		WRITE_ONCE(flow->queue, NULL);
		WRITE_ONCE(flow->waiting_Bps, 0);
		WRITE_ONCE(flow->queued, false);
	}
	spin_unlock_bh(&flow->lock);
}
EXPORT_SYMBOL_GPL(timely_flow_detach);

/**
 * timely_flow_queue() - get a qdisc's identifier of a flow
 * @flow: the entry
 * @notifier: the qdisc
 *
 * Return: the identifier that @notifier gave to timely_flow_attach() or timely_flow_wait(); NULL if
 * @notifier is not attached.
 */
void *timely_flow_queue(struct timely_flow *flow, const struct timely_notifier *notifier)
{
	void *queue;

	spin_lock_bh(&flow->lock);
	queue = flow->notifier == notifier ? flow->queue : NULL;
	spin_unlock_bh(&flow->lock);
	return queue;
}
EXPORT_SYMBOL_GPL(timely_flow_queue);

/**
 * timely_flow_changed() - notify the attached qdisc of a new rate or pause
 * @flow: the entry
 *
 * The qdisc then computes again when the flow's first packet may leave. No notification is needed,
 * and none happens, if no qdisc is attached, if the qdisc has no packets of the flow queued, or if
 * the qdisc has not read the previous notification yet.
 */
void timely_flow_changed(struct timely_flow *flow)
{
	spin_lock_bh(&flow->lock);
	if (flow->notifier && flow->queued && !xchg(&flow->in_changed, true)) {
		refcount_inc(&flow->ref);
		llist_add(&flow->changed, &flow->notifier->changed);
		flow->notifier->wake(flow->notifier);
	}
	spin_unlock_bh(&flow->lock);
}
EXPORT_SYMBOL_GPL(timely_flow_changed);

/**
 * timely_flow_take_changed() - get the next flow entry from a qdisc's notifications
 * @list: result of llist_del_all() on timely_notifier.changed; set to the rest of the list
 *
 * Return: the entry, to be released with timely_flow_put(); NULL at the end of the list.
 */
struct timely_flow *timely_flow_take_changed(struct llist_node **list)
{
	struct timely_flow *flow;

	if (!*list)
		return NULL;
	flow = llist_entry(*list, struct timely_flow, changed);
	*list = (*list)->next;
	/* A change of rate or pause after this point adds the entry to timely_notifier.changed
	 * again.
	 */
	xchg(&flow->in_changed, false);
	return flow;
}
EXPORT_SYMBOL_GPL(timely_flow_take_changed);

/* Whether to skip the departure at @now_ns. A departure is skipped if the ring would otherwise
 * cover less than twice timely_flow.keep_ns, and if the last recorded departure is less than
 * keep_ns / TIMELY_DEPARTURES old. So the recorded departures cover at least keep_ns.
 */
static bool flow_skips(const struct timely_flow *flow, u32 next, u64 now_ns)
{
	u64 keep_ns = READ_ONCE(flow->keep_ns);
	u64 oldest_ns = READ_ONCE(flow->ring[next % TIMELY_DEPARTURES].time_ns);
	u64 newest_ns = READ_ONCE(flow->ring[(next - 1) % TIMELY_DEPARTURES].time_ns);

	return now_ns - oldest_ns < 2 * keep_ns &&
	       now_ns - newest_ns < keep_ns / TIMELY_DEPARTURES;
}

/* A departure may be recorded for a time that is later than now by this, in units of
 * timely_flow.skipped: 1 s.
 */
#define FLOW_AHEAD	((u32)(NSEC_PER_SEC >> TIMELY_SKIPPED_SHIFT))

/* Whether a departure of the flow was skipped in the last timely_flow.keep_ns. The time of a
 * departure may be later than now, if the device has a backlog.
 */
static bool flow_skipped(const struct timely_flow *flow, u64 now_ns)
{
	u32 age = (u32)(now_ns >> TIMELY_SKIPPED_SHIFT) - READ_ONCE(flow->skipped);

	return age + FLOW_AHEAD <= (READ_ONCE(flow->keep_ns) >> TIMELY_SKIPPED_SHIFT) + FLOW_AHEAD;
}

/**
 * timely_flow_depart() - record that a pacing segment is passed to the device
 * @flow: the entry
 * @departure: sequence number, size and departure time; the time is not 0
 *
 * The departure may be skipped, see timely_flow_keep().
 */
void timely_flow_depart(struct timely_flow *flow,
			const struct timely_departure *departure)
{
	struct timely_departure *entry;

	if (unlikely(flow_skips(flow, atomic_read(&flow->next), departure->time_ns))) {
		WRITE_ONCE(flow->skipped, departure->time_ns >> TIMELY_SKIPPED_SHIFT);
		return;
	}
	entry = &flow->ring[(u32)atomic_fetch_inc_relaxed(&flow->next) % TIMELY_DEPARTURES];
	WRITE_ONCE(entry->time_ns, 0);
	smp_wmb(); /* the time is 0 first; pairs with last smp_rmb() of timely_flow_departure() */
	WRITE_ONCE(entry->end_seq, departure->end_seq);
	WRITE_ONCE(entry->bytes, departure->bytes);
	smp_wmb(); /* time is set last; pairs with first smp_rmb() of timely_flow_departure() */
	WRITE_ONCE(entry->time_ns, departure->time_ns);
}
EXPORT_SYMBOL_GPL(timely_flow_depart);

/* First sequence number of a recorded segment, or a little more: at least 15 of 16 bytes are
 * payload where the MTU is 1500 bytes or longer.
 */
static u32 flow_start_seq(const struct timely_departure *departure)
{
	return departure->end_seq - (departure->bytes - departure->bytes / 16);
}

/* Estimate when a skipped segment, which ends at @end_seq, departed, from the recorded departures
 * before and after it, @before and @after. A time of 0 is unknown. A segment is skipped only within
 * keep_ns / TIMELY_DEPARTURES of the recorded departure before it.
 *
 * Times of departure are those of the segments' starts, so the estimate is between the starts. The
 * segment is taken to be as long as the longer one of the two, if there is so much between them.
 * Return: whether there is an estimate.
 */
static bool flow_estimate(const struct timely_flow *flow, const struct timely_departure *before,
			  const struct timely_departure *after, u32 end_seq,
			  struct timely_departed *departed)
{
	u64 most_ns = READ_ONCE(flow->keep_ns) / TIMELY_DEPARTURES;
	u32 longest = max(before->bytes, after->bytes);
	u32 bytes = min(longest, end_seq - before->end_seq);
	u32 first = flow_start_seq(before), span = flow_start_seq(after) - first;
	u32 offset = end_seq - bytes - first;
	u64 gap_ns;

	if (!before->time_ns || after->time_ns < before->time_ns)
		return false;
	/* After a retransmission the ring has an earlier segment behind a later one. */
	if ((s32)offset < 0 || (s32)(span - offset) <= 0)
		return false;
	gap_ns = min_t(u64, after->time_ns - before->time_ns, U32_MAX);
	departed->unsure_ns = min(div_u64(gap_ns * offset, span), most_ns);
	departed->time_ns = before->time_ns + departed->unsure_ns;
	departed->bytes = bytes;
	return true;
}

/* Forget all departures if the newest one is older than any RTT: the connection's packets leave by
 * another qdisc, which records none. Otherwise each completion would search the whole ring, and
 * after 4 GB a sequence number might be that of an old departure. The next departure is that after
 * @read again. @next is the number of departures at the start of the search.
 */
static void flow_forget_departures(struct timely_flow *flow, u32 next, u8 *read, u64 now_ns)
{
	u64 newest_ns = READ_ONCE(flow->ring[(next - 1) % TIMELY_DEPARTURES].time_ns);

	if (!newest_ns || (s64)(now_ns - newest_ns) <= (s64)TIMELY_RTT_MAX_NS)
		return;
	if (atomic_cmpxchg_relaxed(&flow->next, next, 0) == (int)next)
		*read = U8_MAX;
}

/**
 * timely_flow_departure() - find when a pacing segment was passed to the device
 * @flow: the entry
 * @read: the reader's position: low 8 bits of the index of the last departure found; initially 0
 * @done_seq: the caller has used the departures of data before this sequence number, or does not
 *	need them any more
 * @end_seq: sequence number after the last byte of the segment
 * @now_ns: current time, CLOCK_MONOTONIC
 * @departed: set to the departure if the result is TIMELY_DEPARTURE_FOUND; else undefined
 *
 * The search begins after the last departure found: segments are mostly acknowledged in the order
 * of departure.
 *
 * If many segments are in flight and an ACK acknowledges many of them, the last one is one of those
 * whose departures were skipped. If this was so for each ACK, the connection would measure no RTT
 * at all, and its rate would never change again. So if the ACK also acknowledges a segment whose
 * departure was recorded and not used, the departure of @end_seq is estimated from the recorded
 * departures before and after it.
 *
 * Return: TIMELY_DEPARTURE_FOUND, or the reason why the departure is not known.
 */
enum timely_departure_result timely_flow_departure(struct timely_flow *flow, u8 *read,
						   u32 done_seq, u32 end_seq, u64 now_ns,
						   struct timely_departed *departed)
{
	struct timely_departure before = {}, departure;
	u32 next = atomic_read(&flow->next);
	/* Number of departures recorded after the last one found, as far as the ring has them. */
	u8 since = min_t(u8, next - *read - 1, TIMELY_DEPARTURES);
	const struct timely_departure *entry;
	bool skipped;
	u32 i;

	/* No departure was recorded, as with qdiscs other than sch_timely. */
	if (!next)
		return TIMELY_DEPARTURE_UNKNOWN;
	skipped = flow_skipped(flow, now_ns);
	for (i = next - since; i != next - since + TIMELY_DEPARTURES; i++) {
		entry = &flow->ring[i % TIMELY_DEPARTURES];
		departure.time_ns = READ_ONCE(entry->time_ns);
		smp_rmb(); /* pairs with the second smp_wmb() of timely_flow_depart() */
		departure.end_seq = READ_ONCE(entry->end_seq);
		departure.bytes = READ_ONCE(entry->bytes);
		smp_rmb(); /* pairs with the first smp_wmb() of timely_flow_depart() */
		if (departure.time_ns != READ_ONCE(entry->time_ns))
			departure.time_ns = 0; /* written at the same time */
		if (departure.end_seq == end_seq && departure.time_ns) {
			*read = (s32)(i - next) < 0 ? i : i - TIMELY_DEPARTURES;
			departed->time_ns = departure.time_ns;
			departed->unsure_ns = 0;
			departed->bytes = departure.bytes;
			return TIMELY_DEPARTURE_FOUND;
		}
		/* The entry is the departure of data after @end_seq. If departures are skipped,
		 * that of @end_seq was most likely skipped, too: do not search the rest of the
		 * ring.
		 */
		if (skipped && (s32)(departure.end_seq - end_seq) > 0) {
			if (!flow_estimate(flow, &before, &departure, end_seq, departed))
				break;
			*read = (s32)(i - next) < 0 ? i - 1 : i - 1 - TIMELY_DEPARTURES;
			return TIMELY_DEPARTURE_FOUND;
		}
		if ((s32)(departure.end_seq - done_seq) > 0)
			before = departure;
	}
	if (skipped)
		return TIMELY_DEPARTURE_SKIPPED;
	flow_forget_departures(flow, next, read, now_ns);
	return TIMELY_DEPARTURE_UNKNOWN;
}
EXPORT_SYMBOL_GPL(timely_flow_departure);

/**
 * timely_flow_pause() - pause a flow until a time
 * @flow: the entry
 * @until_ns: new end of the pause, CLOCK_MONOTONIC; may be earlier or later than the present end;
 *	0 ends the pause
 */
void timely_flow_pause(struct timely_flow *flow, u64 until_ns)
{
	WRITE_ONCE(flow->pause_until_ns, until_ns);
	timely_flow_changed(flow);
}
EXPORT_SYMBOL_GPL(timely_flow_pause);

/* ---- listing connections ---- */

/**
 * timely_flow_tuple() - get the addresses of the data packets that a connection sends
 * @tuple: the addresses
 * @sk: the TCP socket, which need not be locked, and may be one that is just being created
 */
void timely_flow_tuple(struct timely_tuple *tuple, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
#if IS_ENABLED(CONFIG_IPV6)
	const struct ipv6_pinfo *np = READ_ONCE(inet->pinet6);
#endif

	memset(tuple, 0, sizeof(*tuple));
	tuple->net = (unsigned long)sock_net(sk);
	tuple->sport = inet->inet_sport;
	tuple->dport = inet->inet_dport;
	tuple->protocol = IPPROTO_TCP;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && np && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		tuple->family = AF_INET6;
		memcpy(tuple->saddr, &np->saddr, sizeof(tuple->saddr));
		memcpy(tuple->daddr, &sk->sk_v6_daddr, sizeof(tuple->daddr));
		return;
	}
#endif
	tuple->family = AF_INET;
	tuple->saddr[0] = inet->inet_saddr;
	tuple->daddr[0] = inet->inet_daddr;
}

/* Fill in which connection it is. Pointers are NULL in a socket that is just being created, whose
 * memory was that of the flow's socket, see flow_visit().
 */
static void flow_describe_socket(struct sock *sk, struct timely_flow_report *report)
{
	struct timely_connection *connection = &report->connection;
	const struct net *net = sock_net(sk);
	struct timely_tuple tuple;

#ifdef CONFIG_SOCK_CGROUP_DATA
	report->cgroup = sock_cgroup_ptr(&sk->sk_cgrp_data);
	connection->cgroup = report->cgroup ? cgroup_id(report->cgroup) : 0;
#endif
	timely_flow_tuple(&tuple, sk);
	connection->net_cookie = net ? net->net_cookie : 0;
	connection->family = tuple.family;
	connection->sport = tuple.sport;
	connection->dport = tuple.dport;
	memcpy(connection->saddr, tuple.saddr, sizeof(connection->saddr));
	memcpy(connection->daddr, tuple.daddr, sizeof(connection->daddr));
}

/* Fill in what On-Ramp has done. */
static void flow_describe_pauses(struct timely_flow *flow, struct timely_connection *connection)
{
	struct timely_onramp *onramp;

	if (!timely_flow_onramp(flow))
		return;
	spin_lock_bh(&flow->lock);
	onramp = flow->onramp;
	connection->pauses = onramp->pauses;
	connection->paused_ns = onramp->paused_ns;
	connection->pause_left_ns = max((s64)(onramp->pause.until_ns - ktime_get_ns()), 0LL);
	spin_unlock_bh(&flow->lock);
}

static int flow_visit(void *object, const struct net *net, timely_report report, void *arg)
{
	timely_flow_describe describe = READ_ONCE(flow_describe);
	struct timely_flow_report one = {};
	struct timely_flow *flow = object;
	struct sock *sk = (struct sock *)flow->key;

	if (!describe || READ_ONCE(flow->closed) || (net && !net_eq(sock_net(sk), net)))
		return 0;
	flow_describe_socket(sk, &one);
	flow_describe_pauses(flow, &one.connection);
	if (!describe(sk, flow, &one.connection))
		return 0;
	/* If the entry is open, the socket still existed, with the same congestion control. If it
	 * is closed, the socket may have been freed, and its memory may be that of another TCP
	 * socket: such memory is not returned before the RCU read-side critical section ends.
	 */
	smp_rmb(); /* pairs with smp_wmb() of timely_flow_close() */
	if (READ_ONCE(flow->closed))
		return 0;
	return report(&one, arg);
}

/**
 * timely_flow_walk_begin() - start a walk through the connections of a network namespace
 * @net: the namespace, which outlives the walk; NULL for all namespaces
 *
 * timely_walk() reports each connection as a struct timely_flow_report.
 *
 * Return: the walk, to be given to timely_walk_end(); NULL if there is no memory.
 */
struct timely_walk *timely_flow_walk_begin(const struct net *net)
{
	return timely_walk_begin(&timely_flows, net, flow_visit);
}
