// SPDX-License-Identifier: GPL-2.0
/*
 * Records of flows: what the congestion control and the qdisc know about the
 * same connection, so that neither has to call the other.
 *
 *	the qdisc writes	when each segment was handed to the device
 *	the congestion control	reads that as t_send, and tells when the rate rose
 *	On-Ramp			sets a pause, kept apart from the pacing clock
 *
 * A record exists for sockets whose congestion control asked for it, and is found
 * by the socket under RCU. A qdisc with On-Ramp makes one for each socket that
 * sends data, to be found by the flow's addresses (onramp.c). A record lives as
 * long as anybody refers to it: the qdisc may keep packets of a connection that is
 * gone.
 *
 * Departures go through a ring without a lock. Entries are written by the qdisc
 * that sends (two may, when a socket's route changes) and read by the
 * congestion control. A reader trusts an entry whose time it saw twice, before
 * and after the sequence number: writers clear the time first, and no two
 * departures have the same.
 */

#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include <net/timely_flow.h>
#include <net/timely_onramp.h>
#include <net/timely_tenant.h>

#include <timely_memcg.h>

DEFINE_STATIC_KEY_FALSE(timely_flow_key);
EXPORT_SYMBOL_GPL(timely_flow_key);

/* The congestion controls whose sockets are recorded: so many bytes of them. */
static const struct tcp_congestion_ops *timely_flow_ops;
static size_t timely_flow_ops_size;

/* Of their own size: in one of a power of two the hot lines of all of them would
 * fall into the same few sets of the processor's caches.
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
 * timely_flow_init() - make ready for records
 *
 * Return: 0 or -ENOMEM.
 */
int timely_flow_init(void)
{
	int err;

	timely_flow_cache = kmem_cache_create("timely_record", sizeof(struct timely_flow), 0,
					      SLAB_HWCACHE_ALIGN, NULL);
	if (!timely_flow_cache)
		return -ENOMEM;
	err = rhashtable_init(&timely_flows, &timely_flows_params);
	if (err)
		kmem_cache_destroy(timely_flow_cache);
	return err;
}

/** timely_flow_exit() - all have been put */
void timely_flow_exit(void)
{
	rcu_barrier();
	rhashtable_destroy(&timely_flows);
	kmem_cache_destroy(timely_flow_cache);
}

/**
 * timely_flow_register() - congestion controls will ask for records
 * @ops: the first of them; sockets that use one are recorded
 * @count: how many there are, one after the other
 *
 * Return: 0, -EBUSY if there are some already.
 */
int timely_flow_register(const struct tcp_congestion_ops *ops, unsigned int count)
{
	if (timely_flow_ops)
		return -EBUSY;
	WRITE_ONCE(timely_flow_ops_size, count * sizeof(*ops));
	WRITE_ONCE(timely_flow_ops, ops);
	static_branch_enable(&timely_flow_key);
	return 0;
}
EXPORT_SYMBOL_GPL(timely_flow_register);

/**
 * timely_flow_unregister() - no more records are asked for
 *
 * All have been closed; qdiscs may still refer to some.
 */
void timely_flow_unregister(void)
{
	static_branch_disable(&timely_flow_key);
	WRITE_ONCE(timely_flow_ops, NULL);
	/* Nobody takes a socket for one of them any more. */
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(timely_flow_unregister);

/**
 * timely_flow_wanted_slow() - timely_flow_wanted(), past its static key
 * @sk: a full TCP socket
 *
 * Return: true if its congestion control is one of those registered.
 */
bool timely_flow_wanted_slow(const struct sock *sk)
{
	unsigned long first = (unsigned long)READ_ONCE(timely_flow_ops);

	return first && (unsigned long)READ_ONCE(inet_csk(sk)->icsk_ca_ops) - first <
			READ_ONCE(timely_flow_ops_size);
}
EXPORT_SYMBOL_GPL(timely_flow_wanted_slow);

static void timely_flow_discard(struct timely_flow *flow)
{
	struct timely_budget *budget = flow->budget;

	kmem_cache_free(timely_flow_cache, flow);
	timely_budget_return(budget);
}

/**
 * timely_flow_new() - make a record that cannot be found by its socket
 * @sk: the socket that sends the flow: its network namespace's budget is used, and the
 *	memory is charged to its memory control group
 *
 * Return: the record, to be released with timely_flow_put(); NULL if there is
 * no memory or the budget is used up, and the flow does without.
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
 * timely_flow_open() - make the record of a socket, for its congestion control
 * @sk: the socket, locked; it has none
 *
 * Return: the record, to be closed with timely_flow_close(); NULL if there is
 * no memory or its namespace's budget is used up, and the flow does without.
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
 * timely_flow_close() - the congestion control leaves its socket
 * @flow: its record, not to be used by it any more
 */
void timely_flow_close(struct timely_flow *flow)
{
	WRITE_ONCE(flow->closed, true);
	rhashtable_remove_fast(&timely_flows, &flow->hash, timely_flows_params);
	timely_flow_put(flow);
}
EXPORT_SYMBOL_GPL(timely_flow_close);

/**
 * timely_flow_get() - find the record of a socket
 * @sk: the socket
 *
 * Return: the record, to be released with timely_flow_put(); NULL if there is
 * none.
 */
struct timely_flow *timely_flow_get(const struct sock *sk)
{
	struct timely_flow *flow = NULL;

	rcu_read_lock();
	/* Seen with RCU held, so unregister waits for us. */
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
 * timely_flow_put() - release a record
 * @flow: the record
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

static bool flow_attach(struct timely_flow *flow, struct timely_waiter *waiter, void *queue)
{
	bool same = flow->waiter == waiter && flow->queue == queue;

	/* Pairs with timely_flow_discard(). */
	if (!same && smp_load_acquire(&flow->held))
		return false;
	WRITE_ONCE(flow->waiter, waiter);
	WRITE_ONCE(flow->queue, queue);
	return true;
}

/**
 * timely_flow_attach() - the flow's packets go over this qdisc from now on
 * @flow: a record it has a reference to
 * @waiter: the qdisc; it takes the place of another one, over which the flow's
 *	packets went before
 * @queue: what the qdisc calls the flow
 *
 * Return: false while another qdisc holds packets of the flow, and is told of changes.
 */
bool timely_flow_attach(struct timely_flow *flow, struct timely_waiter *waiter,
			void *queue)
{
	bool attached;

	spin_lock_bh(&flow->lock);
	attached = flow_attach(flow, waiter, queue);
	spin_unlock_bh(&flow->lock);
	return attached;
}
EXPORT_SYMBOL_GPL(timely_flow_attach);

/**
 * timely_flow_hold() - timely_flow_wait(), for the first packet that waits
 * @flow: the record
 * @waiter: the qdisc
 * @queue: what the qdisc calls the flow
 *
 * Return: false while another qdisc holds packets of the flow.
 */
bool timely_flow_hold(struct timely_flow *flow, struct timely_waiter *waiter, void *queue)
{
	bool attached;

	spin_lock_bh(&flow->lock);
	attached = flow_attach(flow, waiter, queue);
	if (attached)
		WRITE_ONCE(flow->held, true);
	spin_unlock_bh(&flow->lock);
	return attached;
}
EXPORT_SYMBOL_GPL(timely_flow_hold);

/**
 * timely_flow_detach() - and no more
 * @flow: the record
 * @waiter: the qdisc; not woken for this flow after the call
 * @queue: what it called the flow; another one with the same addresses may have
 *	taken its place
 */
void timely_flow_detach(struct timely_flow *flow, struct timely_waiter *waiter,
			const void *queue)
{
	spin_lock_bh(&flow->lock);
	if (flow->waiter == waiter && flow->queue == queue) {
		WRITE_ONCE(flow->waiter, NULL);
		WRITE_ONCE(flow->queue, NULL);
		WRITE_ONCE(flow->waiting_Bps, 0);
		WRITE_ONCE(flow->held, false);
	}
	spin_unlock_bh(&flow->lock);
}
EXPORT_SYMBOL_GPL(timely_flow_detach);

/**
 * timely_flow_queue() - what a qdisc calls the flow
 * @flow: the record
 * @waiter: the qdisc
 *
 * Return: as given to timely_flow_attach(); NULL if another qdisc is attached.
 */
void *timely_flow_queue(struct timely_flow *flow, const struct timely_waiter *waiter)
{
	void *queue;

	spin_lock_bh(&flow->lock);
	queue = flow->waiter == waiter ? flow->queue : NULL;
	spin_unlock_bh(&flow->lock);
	return queue;
}
EXPORT_SYMBOL_GPL(timely_flow_queue);

/**
 * timely_flow_changed() - have the waiting packet's time computed again
 * @flow: the record; nobody is told while no packet of it waits
 */
void timely_flow_changed(struct timely_flow *flow)
{
	spin_lock_bh(&flow->lock);
	if (flow->waiter && flow->held && !xchg(&flow->changed_once, true)) {
		refcount_inc(&flow->ref);
		llist_add(&flow->changed, &flow->waiter->changed);
		flow->waiter->wake(flow->waiter);
	}
	spin_unlock_bh(&flow->lock);
}
EXPORT_SYMBOL_GPL(timely_flow_changed);

/**
 * timely_flow_take_changed() - for a waiter: the next flow to look at again
 * @list: what llist_del_all() gave of its list; becomes the rest
 *
 * Return: a record to be released with timely_flow_put(); NULL at the end.
 */
struct timely_flow *timely_flow_take_changed(struct llist_node **list)
{
	struct timely_flow *flow;

	if (!*list)
		return NULL;
	flow = llist_entry(*list, struct timely_flow, changed);
	*list = (*list)->next;
	/* What changes from here on is told again. */
	xchg(&flow->changed_once, false);
	return flow;
}
EXPORT_SYMBOL_GPL(timely_flow_take_changed);

/* Is there too little room to note all, with another one noted just before? Those that are
 * noted are spread over the time that they are needed for, and so they are twice as long.
 */
static bool flow_skips(const struct timely_flow *flow, u32 next, u64 now_ns)
{
	u64 keep_ns = READ_ONCE(flow->keep_ns);
	u64 oldest_ns = READ_ONCE(flow->ring[next % TIMELY_DEPARTURES].time_ns);
	u64 newest_ns = READ_ONCE(flow->ring[(next - 1) % TIMELY_DEPARTURES].time_ns);

	return now_ns - oldest_ns < 2 * keep_ns &&
	       now_ns - newest_ns < keep_ns / TIMELY_DEPARTURES;
}

static bool flow_skipped(const struct timely_flow *flow, u64 now_ns)
{
	u32 age = (u32)(now_ns >> TIMELY_SKIPPED_SHIFT) - READ_ONCE(flow->skipped);

	return age <= READ_ONCE(flow->keep_ns) >> TIMELY_SKIPPED_SHIFT;
}

/**
 * timely_flow_depart() - a segment is handed to the device
 * @flow: the record
 * @departure: which, how large, and when
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
	smp_wmb(); /* the old time is gone before the new sequence number */
	WRITE_ONCE(entry->end_seq, departure->end_seq);
	WRITE_ONCE(entry->bytes, departure->bytes);
	smp_wmb(); /* and that is there before the new time */
	WRITE_ONCE(entry->time_ns, departure->time_ns);
}
EXPORT_SYMBOL_GPL(timely_flow_depart);

/**
 * timely_flow_departure() - when a segment was handed to the device
 * @flow: the record
 * @read: the reader's note of where it found the last one, 0 to start with
 * @end_seq: sequence number after its last byte
 * @now_ns: CLOCK_MONOTONIC
 * @departure: set to what was noted, if something was
 *
 * Return: TIMELY_NOTED if @departure is set, or why not.
 */
enum timely_noted timely_flow_departure(const struct timely_flow *flow, u8 *read,
					u32 end_seq, u64 now_ns,
					struct timely_departure *departure)
{
	u32 next = atomic_read(&flow->next);
	/* Noted since then, of which the ring has the last ones. */
	u8 since = min_t(u8, next - *read - 1, TIMELY_DEPARTURES);
	const struct timely_departure *entry;
	bool skipped;
	u32 i;

	/* None is recorded under another qdisc. */
	if (!next)
		return TIMELY_NOT_SEEN;
	skipped = flow_skipped(flow, now_ns);
	/* Segments are acknowledged in the order they left, mostly. */
	for (i = next - since; i != next - since + TIMELY_DEPARTURES; i++) {
		entry = &flow->ring[i % TIMELY_DEPARTURES];
		departure->time_ns = READ_ONCE(entry->time_ns);
		smp_rmb(); /* pairs with both of timely_flow_depart() */
		departure->end_seq = READ_ONCE(entry->end_seq);
		departure->bytes = READ_ONCE(entry->bytes);
		smp_rmb(); /* likewise */
		if (departure->end_seq == end_seq && departure->time_ns &&
		    departure->time_ns == READ_ONCE(entry->time_ns)) {
			*read = (s32)(i - next) < 0 ? i : i - TIMELY_DEPARTURES;
			return TIMELY_NOTED;
		}
		/* Most are not there then: no more is asked than the next that was noted. */
		if (skipped && (s32)(departure->end_seq - end_seq) > 0)
			break;
	}
	return skipped ? TIMELY_SKIPPED : TIMELY_NOT_SEEN;
}
EXPORT_SYMBOL_GPL(timely_flow_departure);

/**
 * timely_flow_pause() - hold the flow's packets until a time
 * @flow: the record
 * @until_ns: CLOCK_MONOTONIC, earlier or later than before; 0 ends the pause
 */
void timely_flow_pause(struct timely_flow *flow, u64 until_ns)
{
	WRITE_ONCE(flow->pause_until_ns, until_ns);
	timely_flow_changed(flow);
}
EXPORT_SYMBOL_GPL(timely_flow_pause);
