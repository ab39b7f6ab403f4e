// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of the flows of the qdisc "timely": how flows are made, and how idle ones are freed.
 *
 * Flows count against the budget (max_queues) of their socket's network namespace, see
 * net/timely/tenant.c. When this budget is used up, the namespace's new sockets share a few flows:
 * tq_shared_flow(). Flows that have been idle for TQ_GC_AGE_NS are freed when new flows arrive, and
 * in the background whether new flows arrive or not: tq_reap().
 */

#include <linux/slab.h>
#include <linux/workqueue.h>

#include <timely_memcg.h>

#include "sch_timely.h"

/* Flows are freed after they have been idle for 3 s, as in fq. A new flow frees at most 8 flows
 * of each of two buckets, so that its first packet is not delayed.
 */
#define TQ_GC_AGE_NS		(3ULL * NSEC_PER_SEC)
#define TQ_GC_MAX		8

/* The background search for idle flows runs once per second. Each run searches a third of the
 * buckets (TQ_REAP_RUNS), but at least 1024 (TQ_REAP_MIN). The qdisc is locked for 64 buckets
 * (TQ_REAP_BUCKETS) at a time, about 10 us. An idle flow is thus freed within eight seconds.
 */
#define TQ_REAP_TICK		HZ
#define TQ_REAP_RUNS		3
#define TQ_REAP_MIN		1024
#define TQ_REAP_BUCKETS		64

/* Number of flows that the sockets of a network namespace share when its budget is used up. The key
 * of a shared flow is the address of the namespace, whose low bits are 0, with the number of the
 * flow in bits 1 to 3, and bit 0 set as in hashes.
 */
#define TQ_SHARED_FLOWS		8

struct kmem_cache *tq_flow_cache __read_mostly;

static struct tq_foreign *tq_foreign(struct tq_flow *f)
{
	return container_of(f, struct tq_foreign, flow);
}

/* Allocate a flow that has a pointer to its budget. Return: NULL if there is no memory. */
static struct tq_flow *tq_alloc_foreign(struct timely_budget *budget)
{
	struct tq_foreign *foreign;

	foreign = kzalloc(sizeof(*foreign), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!foreign)
		return NULL;
	foreign->flow.foreign = 1;
	foreign->budget = budget;
	return &foreign->flow;
}

/* Allocate a flow that @budget counts; @budget is NULL for a shared flow. @foreign: the socket's
 * network namespace is not the device's. Return: NULL if there is no memory; @budget is then
 * returned.
 */
static struct tq_flow *tq_alloc_flow(struct tq_sched *q, bool foreign,
				     struct timely_budget *budget)
{
	struct tq_flow *f;

	if (unlikely(foreign))
		f = tq_alloc_foreign(budget);
	else
		f = kmem_cache_zalloc(tq_flow_cache, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (unlikely(!f)) {
		timely_budget_return(budget);
		q->stats.allocation_errors++;
		return NULL;
	}
	f->shared = !budget;
	if (budget && !foreign)
		q->budget = budget;
	return f;
}

/**
 * tq_free_flow() - free a flow
 * @q: the qdisc, locked
 * @f: the flow, not in the flow table any more, without packets
 */
void tq_free_flow(struct tq_sched *q, struct tq_flow *f)
{
	struct timely_budget *budget = f->shared ? NULL : q->budget;

	tq_forget_entry(q, f);
	if (unlikely(f->foreign)) {
		budget = tq_foreign(f)->budget;
		kfree(tq_foreign(f));
	} else {
		kmem_cache_free(tq_flow_cache, f);
	}
	timely_budget_return(budget);
}

/* Free flows of a bucket that have been idle for TQ_GC_AGE_NS, but at most @most of them. @link:
 * the bucket.
 */
static void tq_gc(struct tq_sched *q, struct tq_flow **link, u64 now, u32 most)
{
	struct tq_flow *f;
	u32 freed = 0;

	while ((f = *link) && freed < most) {
		if (f->state != TQ_IDLE || now - f->node.due_ns < TQ_GC_AGE_NS) {
			link = &f->hash_next;
			continue;
		}
		*link = f->hash_next;
		tq_free_flow(q, f);
		freed++;
	}
	q->flows -= freed;
	q->inactive -= freed;
	q->stats.gc_flows += freed;
}

/* The flow has a new socket: store how to recognise it, allow a search for a flow entry in this
 * jiffy, and have the socket paced by the qdisc.
 */
static void tq_set_socket(struct tq_sched *q, struct tq_flow *f, struct sock *sk)
{
	f->socket_hash = sk->sk_hash;
	f->last_lookup = (u32)jiffies - 1;
	tq_claim_pacing(q, sk);
}

/* ---- freeing idle flows in the background ---- */

/* A flow whose packets have all left stays in its round-robin list until dequeue finds the flow
 * there. While the qdisc has no packets, dequeue does not read the lists. Make up to
 * TQ_REAP_BUCKETS of these flows idle here.
 */
static void tq_leave_rounds(struct tq_sched *q, u64 now)
{
	u32 i, left = TQ_REAP_BUCKETS;
	struct tq_round *round;
	struct tq_flow *f;

	for (i = 0; i < 2 * TIMELY_BANDS; i++) {
		round = i % 2 ? &q->bands[i / 2].old_flows : &q->bands[i / 2].new_flows;
		while ((f = round->first) && left) {
			round->first = tq_round_after(f);
			tq_make_idle(q, f, now);
			left--;
		}
	}
}

/* Free idle flows of bucket @nr, and release flow entries that idle flows do not need. */
static void tq_reap_bucket(struct tq_sched *q, u32 nr, u64 now)
{
	struct tq_flow *f;

	tq_gc(q, tq_table_bucket(&q->table, nr), now, U32_MAX);
	/* A closed entry is needed only while its flow has packets; idle flows have none. */
	for (f = *tq_table_bucket(&q->table, nr); f; f = f->hash_next)
		if (f->state == TQ_IDLE && f->has_entry && READ_ONCE(f->entry->closed))
			tq_forget_entry(q, f);
}

/* One step of tq_reap(), under the qdisc's lock and reap_lock: search up to TQ_REAP_BUCKETS
 * buckets, and remove up to TQ_REAP_BUCKETS buckets if the flow table has too many. @left: buckets
 * that the run still has to search.
 * Return: true if the run needs another step.
 */
static bool tq_reap_part(struct tq_sched *q, u32 *left)
{
	u32 least = 1U << q->options.value[TQ_O_buckets_log];
	u32 wanted = max(2 * min(q->flows, TQ_BUCKETS_MAX), least);
	u64 now = timely_clock_ns();
	u32 i;

	/* Each report in this list has a reference to a flow entry, and dequeue does not release it
	 * while the qdisc is idle.
	 */
	if (!llist_empty(&q->notifier.changed))
		tq_take_changed(q);
	if (!q->sch->q.qlen && q->ready)
		tq_leave_rounds(q, now);
	for (i = 0; i < TQ_REAP_BUCKETS && *left; i++, --*left) {
		if (q->reap_at >= q->table.buckets)
			q->reap_at = 0;
		tq_reap_bucket(q, q->reap_at++, now);
	}
	for (i = 0; i < TQ_REAP_BUCKETS && q->table.buckets > wanted; i++) {
		/* The last bucket is searched before its flows move to another bucket, which this
		 * run may have searched already.
		 */
		tq_reap_bucket(q, q->table.buckets - 1, now);
		tq_table_merge(&q->table, q->reserved);
	}
	if (*left || q->table.buckets > wanted)
		return true;
	q->reaping = q->flows || q->table.buckets > least;
	return false;
}

/**
 * tq_reap() - free idle flows and buckets that are not needed any more
 * @work: tq_sched.reap; process context, takes the qdisc's lock
 *
 * Nobody tells the qdisc that a socket was closed. The flow of a closed socket becomes idle and is
 * freed here. The work runs once per second while there are flows, or more buckets than the option
 * buckets asks for.
 */
void tq_reap(struct work_struct *work)
{
	struct tq_sched *q = container_of(to_delayed_work(work), struct tq_sched, reap);
	u32 left = max(READ_ONCE(q->table.buckets) / TQ_REAP_RUNS + 1, TQ_REAP_MIN);
	struct Qdisc *root;
	bool more = true;

	while (more) {
		rcu_read_lock();
		root = qdisc_root_sleeping(q->sch);
		spin_lock_bh(qdisc_lock(root));
		/* A root qdisc is replaced under its own lock. If this has happened before the
		 * lock was taken, the next run uses the new root.
		 */
		more = false;
		if (root == qdisc_root_sleeping(q->sch)) {
			spin_lock(&q->reap_lock);
			more = tq_reap_part(q, &left);
			spin_unlock(&q->reap_lock);
		}
		spin_unlock_bh(qdisc_lock(root));
		rcu_read_unlock();
		cond_resched();
	}
	if (READ_ONCE(q->reaping))
		queue_delayed_work(system_power_efficient_wq, &q->reap, TQ_REAP_TICK);
}

/* ---- new flows ---- */

/* Initialise a flow and add it to the flow table. Idle flows of the same bucket are freed. */
static void tq_add_flow(struct tq_sched *q, struct tq_flow *f, const struct sk_buff *skb,
			struct sock *key, u64 now)
{
	struct tq_flow **bucket;

	f->sk = key;
	f->credit = q->config.initial_quantum;
	f->rate_Bps = TQ_UNLIMITED;
	f->state = TQ_IDLE;
	f->node.due_ns = now;
	if (tq_is_socket(skb, key))
		tq_set_socket(q, f, skb->sk);
	tq_table_grow(&q->table, q->flows + 1);
	bucket = tq_bucket(&q->table, key);
	tq_gc(q, bucket, now, TQ_GC_MAX);
	f->hash_next = *bucket;
	*bucket = f;
	q->flows++;
	q->inactive++;
	if (!q->reaping) {
		q->reaping = true;
		queue_delayed_work(system_power_efficient_wq, &q->reap, TQ_REAP_TICK);
	}
}

/* The shared flow for a packet of a network namespace whose budget is used up; NULL if there is no
 * memory. All sockets of the namespace that have no flow share TQ_SHARED_FLOWS flows, chosen by
 * hash; other namespaces use other flows. The bypass list is no alternative: it would let these
 * packets overtake those of all flows and leave without pacing. In a shared flow packets leave in
 * the order of their timestamps, so TCP keeps its rates. Departures of a shared flow's packets are
 * not recorded, and On-Ramp does not pause the flow.
 */
static struct tq_flow *tq_shared_flow(struct tq_sched *q, struct sk_buff *skb,
				      const struct net *net, u64 now)
{
	unsigned long hash = skb_get_hash(skb) % TQ_SHARED_FLOWS;
	struct sock *key = (struct sock *)((unsigned long)net | hash << 1 | 1);
	struct tq_flow *f = tq_find(&q->table, key);

	q->stats.shared_packets++;
	if (f)
		return f;
	f = tq_alloc_flow(q, false, NULL);
	if (f)
		tq_add_flow(q, f, skb, key, now);
	return f;
}

/**
 * tq_new_flow() - make the flow of a packet
 * @q: the qdisc, locked
 * @skb: the packet
 * @key: key of the flow, which is not in the flow table
 * @now: current time, ns, CLOCK_MONOTONIC
 *
 * Each new flow also frees some flows that have been idle for TQ_GC_AGE_NS.
 *
 * Return: the flow, or a shared flow if the budget is used up; NULL if there is no memory.
 */
struct tq_flow *tq_new_flow(struct tq_sched *q, struct sk_buff *skb,
			    struct sock *key, u64 now)
{
	const struct net *home = dev_net(qdisc_dev(q->sch));
	const struct net *net = tq_is_socket(skb, key) ? sock_net(key) : home;
	struct timely_budget *budget;
	struct mem_cgroup *before;
	struct tq_flow *f;

	if (++q->sweep >= q->table.buckets)
		q->sweep = 0;
	tq_gc(q, tq_table_bucket(&q->table, q->sweep), now, TQ_GC_MAX);
	before = timely_charge_begin(skb->sk);
	budget = timely_budget_take(net, TIMELY_BUDGET_queues);
	if (unlikely(!budget)) {
		f = tq_shared_flow(q, skb, net, now);
	} else {
		f = tq_alloc_flow(q, net != home, budget);
		if (f)
			tq_add_flow(q, f, skb, key, now);
	}
	timely_charge_end(before);
	return f;
}

/* Count a flow of struct tq_foreign in the budget of its new socket's network namespace, unless
 * this budget is used up. Any other flow stays counted in the budget of the device's namespace
 * until the flow is freed, whatever the namespace of the new socket is.
 */
static void tq_move_to_budget(struct tq_flow *f, const struct sock *sk)
{
	struct timely_budget *budget;

	if (likely(!f->foreign))
		return;
	budget = timely_budget_take(sock_net(sk), TIMELY_BUDGET_queues);
	if (!budget)
		return;
	timely_budget_return(tq_foreign(f)->budget);
	tq_foreign(f)->budget = budget;
}

/**
 * tq_replace_socket() - give a flow to the socket that has the address of the former socket
 * @q: the qdisc, locked
 * @f: the flow, whose socket is gone; its packets stay, and are due at their timestamps
 * @sk: the new socket
 */
void tq_replace_socket(struct tq_sched *q, struct tq_flow *f, struct sock *sk)
{
	tq_forget_entry(q, f);
	tq_move_to_budget(f, sk);
	tq_set_socket(q, f, sk);
	f->credit = q->config.initial_quantum;
	f->paced = 0;
	if (f->state == TQ_THROTTLED) {
		timely_wheel_del(q->wheel, &f->node);
		tq_unthrottle(q, f);
	}
}
