// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's destinations: what flows to the same address share.
 *
 * A destination is created by its first flow and remembered for a while after its last
 * one, so that a new flow knows the path. Who may send datagrams chooses how many there
 * are; hence each network namespace has a budget, a lock and lists of its own, and memory
 * is charged to the sender's memory control group. In a full namespace a new destination
 * takes the place of
 *
 *  - the one without flows that was used longest ago, or if there is none,
 *  - one whose flows have been silent for a second. They keep the destination for
 *    themselves, without the receiver's clock, which is most of the memory; so delays are
 *    those of round trips.
 *
 * If all are in use the new flow has no destination: it is not held by relative delays.
 */

#include <linux/jiffies.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include <net/timely_onramp.h>
#include <net/timely_peer.h>
#include <net/timely_tenant.h>
#include <timely/engine/clock.h>
#include <timely/engine/orack.h>

/* For how long a destination is remembered after its last flow, and how often to look. */
#define PEER_AGE		(60 * HZ)
#define PEER_SWEEP		(PEER_AGE / 4)
/* Destinations freed at a time with the lock held. */
#define PEER_SWEEP_BATCH	64

/* Flows are silent when nothing has been heard of them for this long. */
#define PEER_SILENT_NS		((u64)NSEC_PER_SEC)
/* Destinations with flows that are looked at for a silent one, each time. */
#define PEER_LOOK		8

/**
 * struct timely_peers - the destinations of a network namespace
 * @ref: one reference for the namespace and one for each destination
 * @lock: of what follows, and of members of the destinations
 * @net: the namespace; NULL when it has gone
 * @idle: destinations without flows, the one that was left first is first
 * @busy: destinations with flows; a flow that joins moves its destination to the end
 * @sweep: forgets what was left long ago
 * @rcu: a packet's processing may have found these while the namespace goes
 */
struct timely_peers {
	refcount_t ref;
	spinlock_t lock; /* of what follows */
	struct net *net;
	struct list_head idle;
	struct list_head busy;
	struct delayed_work sweep;
	struct rcu_head rcu;
};

static const struct rhashtable_params peer_params = {
	.key_len	= sizeof_field(struct timely_peer, key),
	.key_offset	= offsetof(struct timely_peer, key),
	.head_offset	= offsetof(struct timely_peer, hash),
	.automatic_shrinking = true,
};

static struct rhashtable peer_table;
static unsigned int peer_net_id __read_mostly;

/* Under RCU. NULL when the namespace has gone. */
static struct timely_peers *peers_of(const struct net *net)
{
	struct timely_peers **peers = net_generic(net, peer_net_id);

	return READ_ONCE(*peers);
}

static void peers_put(struct timely_peers *peers)
{
	if (refcount_dec_and_test(&peers->ref))
		kfree_rcu(peers, rcu);
}

static void peer_free(struct rcu_head *rcu)
{
	struct timely_peer *peer = container_of(rcu, struct timely_peer, rcu);

	kfree(peer->owd.clock);
	kfree(peer);
}

/* ---- with the lock of the namespace's destinations held ---- */

/* Take a destination out of the table. Its flows, if there are any, may go on with it. */
static void peer_forget(struct timely_peer *peer)
{
	rhashtable_remove_fast(&peer_table, &peer->hash, peer_params);
	list_del(&peer->list);
	timely_budget_return(peer->budget);
	/* Pairs with timely_peer_want_clock(). */
	WRITE_ONCE(peer->gone, true);
	if (!peer->flows) {
		refcount_dec(&peer->key.peers->ref);
		call_rcu(&peer->rcu, peer_free);
		return;
	}
	spin_lock(&peer->lock);
	kfree(peer->owd.clock);
	peer->owd.clock = NULL;
	spin_unlock(&peer->lock);
}

static bool peer_is_silent(const struct timely_peer *peer, u64 now_ns)
{
	u64 last_ns = max(READ_ONCE(peer->heard_ns), peer->joined_ns);

	return (s64)(now_ns - last_ns) > (s64)PEER_SILENT_NS;
}

/* Make room for one destination. */
static void peers_evict(struct timely_peers *peers, u64 now_ns)
{
	struct timely_peer *peer;
	int i;

	peer = list_first_entry_or_null(&peers->idle, struct timely_peer, list);
	for (i = 0; !peer && i < PEER_LOOK && !list_empty(&peers->busy); i++) {
		peer = list_first_entry(&peers->busy, struct timely_peer, list);
		if (!peer_is_silent(peer, now_ns)) {
			list_move_tail(&peer->list, &peers->busy);
			peer = NULL;
		}
	}
	if (!peer)
		return;
	peer_forget(peer);
	timely_onramp_count(peers->net, TIMELY_ONRAMP_peers_evicted);
}

static struct timely_peer *peer_find(const struct timely_peer_key *key)
{
	struct timely_peer *peer;

	rcu_read_lock();
	peer = rhashtable_lookup(&peer_table, key, peer_params);
	rcu_read_unlock();
	return peer;
}

static void peer_join(struct timely_peer *peer, u64 now_ns)
{
	peer->flows++;
	peer->joined_ns = now_ns;
	list_move_tail(&peer->list, &peer->key.peers->busy);
}

static bool peer_insert(struct timely_peers *peers, struct timely_peer *peer, u64 now_ns)
{
	struct timely_budget_status budget;

	timely_budget_status(peers->net, TIMELY_BUDGET_peers, &budget);
	if (budget.used >= budget.limit)
		peers_evict(peers, now_ns);
	peer->budget = timely_budget_take(peers->net, TIMELY_BUDGET_peers);
	if (!peer->budget)
		return false;
	if (rhashtable_insert_fast(&peer_table, &peer->hash, peer_params)) {
		timely_budget_return(peer->budget);
		return false;
	}
	refcount_inc(&peers->ref);
	return true;
}

/* ---- without ---- */

static struct timely_peer *peer_alloc(const struct timely_peer_key *key)
{
	struct timely_peer *peer = kzalloc(sizeof(*peer), GFP_ATOMIC | __GFP_ACCOUNT |
							  __GFP_NOWARN);

	if (!peer)
		return NULL;
	peer->key = *key;
	INIT_LIST_HEAD(&peer->list);
	spin_lock_init(&peer->lock);
	timely_owd_init(&peer->owd);
	return peer;
}

static struct timely_peer *peer_get(struct timely_peers *peers, const struct timely_tuple *tuple)
{
	struct timely_peer_key key = { .peers = peers, .family = tuple->family };
	struct timely_peer *peer, *new = NULL;
	u64 now_ns = ktime_get_ns();

	memcpy(key.addr, tuple->daddr, sizeof(key.addr));
	spin_lock_bh(&peers->lock);
	peer = peer_find(&key);
	if (!peer && peers->net) {
		spin_unlock_bh(&peers->lock);
		new = peer_alloc(&key);
		spin_lock_bh(&peers->lock);
		/* Another processor may have been faster. */
		peer = peer_find(&key);
		if (!peer && new && peers->net && peer_insert(peers, new, now_ns)) {
			peer = new;
			new = NULL;
		}
	}
	if (peer)
		peer_join(peer, now_ns);
	else if (peers->net)
		timely_onramp_count(peers->net, TIMELY_ONRAMP_peers_refused);
	spin_unlock_bh(&peers->lock);
	kfree(new);
	return peer;
}

/**
 * timely_peer_get() - the destination of a new flow
 * @net: the flow's network namespace
 * @tuple: the flow's addresses
 *
 * Return: the destination, to be released with timely_peer_put(); NULL if there are as
 * many as there may be and all are in use, or if there is no memory.
 */
struct timely_peer *timely_peer_get(struct net *net, const struct timely_tuple *tuple)
{
	struct timely_peer *peer = NULL;
	struct timely_peers *peers;

	rcu_read_lock();
	peers = peers_of(net);
	if (peers)
		peer = peer_get(peers, tuple);
	rcu_read_unlock();
	return peer;
}

/**
 * timely_peer_put() - a flow has ended
 * @peer: its destination, or NULL
 *
 * RCU readers of the flow may still look at the destination.
 */
void timely_peer_put(struct timely_peer *peer)
{
	struct timely_peers *peers;
	bool last;

	if (!peer)
		return;
	peers = peer->key.peers;
	spin_lock_bh(&peers->lock);
	last = !--peer->flows;
	if (last && !peer->gone) {
		peer->left = jiffies;
		list_move_tail(&peer->list, &peers->idle);
		/* Does nothing while the work is pending. */
		schedule_delayed_work(&peers->sweep, PEER_SWEEP);
	}
	last &= peer->gone;
	spin_unlock_bh(&peers->lock);
	if (last) {
		call_rcu(&peer->rcu, peer_free);
		peers_put(peers);
	}
}

/**
 * timely_peer_want_clock() - have a relative delay follow the destination's clock
 * @peer: the destination, with its lock held
 *
 * Without memory, and when the destination has left the table, the delay is that of round
 * trips.
 */
void timely_peer_want_clock(struct timely_peer *peer)
{
	struct timely_clock *clock;

	if (peer->owd.clock || READ_ONCE(peer->gone))
		return;
	clock = kmalloc(sizeof(*clock), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!clock)
		return;
	timely_clock_init(clock);
	peer->owd.steps = 0;
	peer->owd.batch = (struct timely_clock_batch) { };
	peer->owd.clock = clock;
}

/* Forget the first destinations that were left long ago. Return: true if there may be
 * more of them.
 */
static bool peers_sweep(struct timely_peers *peers)
{
	struct timely_peer *peer;
	int i;

	spin_lock_bh(&peers->lock);
	for (i = 0; i < PEER_SWEEP_BATCH; i++) {
		peer = list_first_entry_or_null(&peers->idle, struct timely_peer, list);
		if (!peer || !time_after(jiffies, peer->left + PEER_AGE))
			break;
		peer_forget(peer);
	}
	spin_unlock_bh(&peers->lock);
	return i == PEER_SWEEP_BATCH;
}

static void peers_work(struct work_struct *work)
{
	struct timely_peers *peers = container_of(work, struct timely_peers, sweep.work);

	while (peers_sweep(peers))
		cond_resched();
	spin_lock_bh(&peers->lock);
	if (!list_empty(&peers->idle))
		schedule_delayed_work(&peers->sweep, PEER_SWEEP);
	spin_unlock_bh(&peers->lock);
}

/* ---- namespaces, and loading ---- */

static int __net_init peers_net_init(struct net *net)
{
	struct timely_peers **place = net_generic(net, peer_net_id);
	struct timely_peers *peers = kzalloc(sizeof(*peers), GFP_KERNEL_ACCOUNT);

	if (!peers)
		return -ENOMEM;
	refcount_set(&peers->ref, 1);
	spin_lock_init(&peers->lock);
	peers->net = net;
	INIT_LIST_HEAD(&peers->idle);
	INIT_LIST_HEAD(&peers->busy);
	INIT_DELAYED_WORK(&peers->sweep, peers_work);
	*place = peers;
	return 0;
}

/* Flows may outlive the namespace for a moment, and their destinations with them. */
static void __net_exit peers_net_exit(struct net *net)
{
	struct timely_peers **place = net_generic(net, peer_net_id), *peers = *place;
	struct timely_peer *peer, *next;

	WRITE_ONCE(*place, NULL);
	spin_lock_bh(&peers->lock);
	peers->net = NULL;
	list_splice_init(&peers->busy, &peers->idle);
	list_for_each_entry_safe(peer, next, &peers->idle, list)
		peer_forget(peer);
	spin_unlock_bh(&peers->lock);
	cancel_delayed_work_sync(&peers->sweep);
	peers_put(peers);
}

static struct pernet_operations peer_net_ops = {
	.init = peers_net_init,
	.exit = peers_net_exit,
	.id = &peer_net_id,
	.size = sizeof(struct timely_peers *),
};

/**
 * timely_peer_init() - make ready
 *
 * Return: 0 or a negative error.
 */
int timely_peer_init(void)
{
	int err = rhashtable_init(&peer_table, &peer_params);

	if (err)
		return err;
	err = register_pernet_subsys(&peer_net_ops);
	if (err)
		rhashtable_destroy(&peer_table);
	return err;
}

/** timely_peer_exit() - all flows have been put */
void timely_peer_exit(void)
{
	unregister_pernet_subsys(&peer_net_ops);
	rcu_barrier();
	rhashtable_destroy(&peer_table);
}
