// SPDX-License-Identifier: GPL-2.0
/*
 * The table of On-Ramp's flows: finds the state of a flow by the flow's addresses, allocates and
 * frees it, and lists the flows of a network namespace.
 *
 * A flow entry (flow.c) has a pointer to On-Ramp's state of the flow, and releases the state when
 * the flow ends. A signal has only the flow's addresses and finds the state in this table. This
 * file calls neither flow.c nor onramp_flow.c: they call this file.
 */

#include <linux/ktime.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include <net/timely_flow.h>
#include <net/timely_peer.h>
#include <net/timely_tenant.h>

#include <timely_memcg.h>

#include "onramp.h"
#include "walk.h"

static int onramp_compare(struct rhashtable_compare_arg *arg, const void *object)
{
	const struct timely_onramp *onramp = object;

	return !timely_tuple_equal(&onramp->tuple, arg->key);
}

static const struct rhashtable_params onramp_tuples_params = {
	.key_len	= sizeof(struct timely_tuple),
	.key_offset	= offsetof(struct timely_onramp, tuple),
	.head_offset	= offsetof(struct timely_onramp, by_tuple),
	.obj_cmpfn	= onramp_compare,
	.automatic_shrinking = true,
};

/* A flow's state takes about 3.3 KB. kmalloc() would use 4 KB, so the state has its own cache. */
static struct kmem_cache *onramp_cache;
static struct rhashtable onramp_tuples;

/**
 * timely_onramp_lookup() - find On-Ramp's state of a flow
 * @tuple: the flow's addresses
 *
 * Context: any, under RCU as long as the caller uses the state.
 * Return: the state; NULL if On-Ramp has none for these addresses.
 */
struct timely_onramp *timely_onramp_lookup(const struct timely_tuple *tuple)
{
	return rhashtable_lookup(&onramp_tuples, tuple, onramp_tuples_params);
}

/**
 * timely_onramp_new() - allocate On-Ramp's state of a flow
 * @sk: the socket that sends the flow; the state counts against the budget of the socket's network
 *	namespace, and the memory is charged to the socket's memory control group
 *
 * Return: the state, zeroed but for its budget; NULL if the budget is used up or there is no
 * memory.
 */
struct timely_onramp *timely_onramp_new(const struct sock *sk)
{
	struct timely_budget *budget = timely_budget_take(sock_net(sk),
							  TIMELY_BUDGET_onramp_flows);
	struct timely_onramp *onramp;
	struct mem_cgroup *before;

	if (!budget)
		return NULL;
	before = timely_charge_begin(sk);
	onramp = kmem_cache_zalloc(onramp_cache, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	timely_charge_end(before);
	if (onramp)
		onramp->budget = budget;
	else
		timely_budget_return(budget);
	return onramp;
}

/**
 * timely_onramp_free() - free On-Ramp's state of a flow
 * @onramp: the state, which no reader uses any more; NULL is allowed
 */
void timely_onramp_free(struct timely_onramp *onramp)
{
	struct timely_budget *budget;

	if (!onramp)
		return;
	budget = onramp->budget;
	/* The timer may have been set again while its function ran: timely_onramp_repair_stop()
	 * could not cancel it then, but nothing has set it since.
	 */
	hrtimer_cancel(&onramp->repair.timer);
	kmem_cache_free(onramp_cache, onramp);
	timely_budget_return(budget);
}

/**
 * timely_onramp_insert() - add On-Ramp's state of a flow to the table
 * @onramp: the state; in the table it replaces the state of another flow with the same addresses,
 *	which belongs to another qdisc or to a connection that has ended
 *
 * If there is no memory for the table to grow, the state is not added: no signal finds the flow,
 * and only timely_onramp_start() can pause the flow.
 */
void timely_onramp_insert(struct timely_onramp *onramp)
{
	struct timely_onramp *old;

	rcu_read_lock();
	old = timely_onramp_lookup(&onramp->tuple);
	if (old)
		rhashtable_remove_fast(&onramp_tuples, &old->by_tuple, onramp_tuples_params);
	rhashtable_insert_fast(&onramp_tuples, &onramp->by_tuple, onramp_tuples_params);
	rcu_read_unlock();
}

/**
 * timely_onramp_drop() - remove On-Ramp's state of a flow from the table, and release its peer
 * @onramp: the state of a flow entry whose last reference was released; the caller frees the state
 *	after an RCU grace period
 */
void timely_onramp_drop(struct timely_onramp *onramp)
{
	rhashtable_remove_fast(&onramp_tuples, &onramp->by_tuple, onramp_tuples_params);
	timely_onramp_repair_stop(onramp);
	timely_peer_put(onramp->peer);
}

/* ---- listing flows ---- */

static void onramp_flow_status(struct timely_onramp *onramp,
			       struct timely_onramp_flow_status *status)
{
	struct timely_flow *flow = onramp->flow;
	u64 now_ns = ktime_get_ns();

	spin_lock_bh(&flow->lock);
	*status = (struct timely_onramp_flow_status) {
		.tuple = onramp->tuple,
		.delay_ns = onramp->delay_ns,
		.signals = onramp->signals,
		.pauses = onramp->pauses,
		.paused_ns = onramp->paused_ns,
		.left_ns = max((s64)(onramp->pause.until_ns - now_ns), 0LL),
		.b = onramp->pause.b,
	};
	spin_unlock_bh(&flow->lock);
}

static int onramp_visit(void *object, const struct net *net, timely_report report, void *arg)
{
	struct timely_onramp *onramp = object;
	struct timely_onramp_flow_status status;

	if (onramp->tuple.net != (unsigned long)net)
		return 0;
	onramp_flow_status(onramp, &status);
	return report(&status, arg);
}

/**
 * timely_onramp_walk_begin() - start a walk through the flows of a network namespace
 * @net: the namespace, which outlives the walk
 *
 * timely_walk() reports each flow as a struct timely_onramp_flow_status.
 *
 * Return: the walk, to be given to timely_walk_end(); NULL if there is no memory.
 */
struct timely_walk *timely_onramp_walk_begin(const struct net *net)
{
	return timely_walk_begin(&onramp_tuples, net, onramp_visit);
}

/* ---- loading ---- */

/**
 * timely_onramp_flows_init() - create the table of On-Ramp's flows
 *
 * Return: 0 or -ENOMEM.
 */
int timely_onramp_flows_init(void)
{
	int err;

	onramp_cache = kmem_cache_create("timely_onramp", sizeof(struct timely_onramp), 0,
					 SLAB_HWCACHE_ALIGN, NULL);
	if (!onramp_cache)
		return -ENOMEM;
	err = rhashtable_init(&onramp_tuples, &onramp_tuples_params);
	if (err)
		kmem_cache_destroy(onramp_cache);
	return err;
}

/**
 * timely_onramp_flows_exit() - destroy the table of On-Ramp's flows
 *
 * Before the call, all flow entries have been released, and their RCU callbacks have run.
 */
void timely_onramp_flows_exit(void)
{
	rhashtable_destroy(&onramp_tuples);
	kmem_cache_destroy(onramp_cache);
}
