// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's peers: the state that flows to the same IP address share. This is the state of the
 * delay computation (engine/owd.c), such as the minimum RTT and the mapping of the receiver's
 * clock, and the last delay, which tells a new flow about the path.
 *
 * The first flow to an address creates the peer, or a clock daemon that sets the offset of the
 * peer's clock. So the offset is known when the first flow starts. After the last flow and the last
 * offset, the peer is kept for a minute, for new flows. A process that sends datagrams to many
 * addresses can create any number of peers. Therefore each network namespace has its own budget,
 * lock and lists, and the memory is charged to the memory control group of the first sender, or of
 * the daemon. This includes the mapping of the receiver's clock, which is allocated when an OR-ACK
 * arrives. When the budget is used up, a new peer replaces
 *
 *  - the peer that has been without flows and new offsets for longest; or if all peers have flows,
 *  - a peer whose flows have had no signal for a second. These flows keep the peer's state, but
 *    without the mapping of the receiver's clock, which takes most of the memory. Their relative
 *    delay is then the excess of the RTT.
 *
 * If no peer can be replaced, a new flow has no peer, and only absolute delays can pause the flow.
 */

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include <net/timely_onramp.h>
#include <net/timely_peer.h>
#include <net/timely_tenant.h>
#include <timely/engine/clock.h>
#include <timely/engine/orack.h>

#include <uapi/linux/timely.h>

#include <timely_memcg.h>

#include "walk.h"

/* How long a peer is kept after its last flow (60 s), and how often expired peers are removed (15
 * s), in jiffies.
 */
#define PEER_AGE		(60 * HZ)
#define PEER_SWEEP		(PEER_AGE / 4)
/* Number of expired peers that are removed while timely_peers.lock is held once. */
#define PEER_SWEEP_BATCH	64

/* If all flows to a peer have had no signal for this long, another peer may replace the peer. */
#define PEER_SILENT_NS		((u64)NSEC_PER_SEC)
/* Maximum number of peers with flows that are checked for such silence per new peer. */
#define PEER_LOOK		8

/**
 * struct timely_peers - the peers of a network namespace
 * @ref: one reference for the namespace and one for each peer
 * @lock: guards the members below, and the members of each peer that struct timely_peer lists
 * @net: the namespace; NULL after its end
 * @idle: peers without flows, in the order of struct timely_peer.left
 * @busy: peers with flows; a new flow moves its peer to the end
 * @sweep: work item that removes expired peers
 * @rcu: frees the structure after an RCU grace period: packets may be processed while the
 *	namespace exits
 */
struct timely_peers {
	refcount_t ref;
	spinlock_t lock; /* guards the members below */
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

/* Get the peers of a network namespace; NULL after the end of the namespace. The caller is in an
 * RCU read-side critical section.
 */
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
	mem_cgroup_put(peer->memcg);
	kfree(peer);
}

/* ---- under timely_peers.lock ---- */

/* Remove a peer from the table. Flows that have the peer keep it until they end, without the
 * mapping of the receiver's clock.
 */
static void peer_forget(struct timely_peer *peer)
{
	rhashtable_remove_fast(&peer_table, &peer->hash, peer_params);
	list_del(&peer->list);
	timely_budget_return(peer->budget);
	/* timely_peer_want_clock() allocates no mapping when it sees gone under peer->lock. */
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

/* Whether no flow to a peer was added or had a signal in the last PEER_SILENT_NS. */
static bool peer_is_silent(const struct timely_peer *peer, u64 now_ns)
{
	u64 last_ns = max(READ_ONCE(peer->signal_at_ns), peer->joined_ns);

	return (s64)(now_ns - last_ns) > (s64)PEER_SILENT_NS;
}

/* Make room for one peer, if a peer can be replaced. */
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

/* Find a peer. timely_peers.lock keeps the peer in the table. Return: NULL if there is none. */
static struct timely_peer *peer_find(const struct timely_peer_key *key)
{
	struct timely_peer *peer;

	rcu_read_lock();
	peer = rhashtable_lookup(&peer_table, key, peer_params);
	rcu_read_unlock();
	return peer;
}

/* Count a new flow to a peer, and move the peer to the end of the list busy. */
static void peer_join(struct timely_peer *peer, u64 now_ns)
{
	peer->flows++;
	peer->joined_ns = now_ns;
	list_move_tail(&peer->list, &peer->key.peers->busy);
}

/* Add a new peer to the table, in place of another peer if the budget is used up. Return: false if
 * there is no room or no memory; the caller frees the peer.
 */
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

/* ---- without timely_peers.lock ---- */

static struct timely_peer *peer_alloc(const struct timely_peer_key *key, const struct sock *sk)
{
	struct mem_cgroup *before = timely_charge_begin(sk);
	struct timely_peer *peer = kzalloc(sizeof(*peer), GFP_ATOMIC | __GFP_ACCOUNT |
							  __GFP_NOWARN);

	timely_charge_end(before);
	if (!peer)
		return NULL;
	peer->memcg = timely_memcg_get(sk);
	peer->key = *key;
	INIT_LIST_HEAD(&peer->list);
	spin_lock_init(&peer->lock);
	timely_owd_init(&peer->owd);
	return peer;
}

/* Find or create a peer, with timely_peers.lock held, which is released meanwhile. The caller puts
 * the peer into the list idle or busy before it releases the lock. Return: NULL if there is no
 * room or no memory, or if the namespace has ended.
 */
static struct timely_peer *peer_find_or_add(struct timely_peers *peers, const struct sock *sk,
					    const struct timely_peer_key *key, u64 now_ns)
{
	struct timely_peer *peer = peer_find(key), *new;

	if (peer || !peers->net)
		return peer;
	spin_unlock_bh(&peers->lock);
	new = peer_alloc(key, sk);
	spin_lock_bh(&peers->lock);
	/* Another CPU may have created the peer while the lock was released. */
	peer = peer_find(key);
	if (!peer && new && peers->net && peer_insert(peers, new, now_ns))
		return new;
	if (new)
		peer_free(&new->rcu);
	return peer;
}

/* Put a peer without flows to the end of the list idle, with timely_peers.lock held. */
static void peer_rest(struct timely_peers *peers, struct timely_peer *peer)
{
	peer->left = jiffies;
	list_move_tail(&peer->list, &peers->idle);
	/* If the work is pending already, its time does not change. */
	schedule_delayed_work(&peers->sweep, PEER_SWEEP);
}

static struct timely_peer *peer_get(struct timely_peers *peers, const struct sock *sk,
				    const struct timely_tuple *tuple)
{
	struct timely_peer_key key = { .peers = peers, .family = tuple->family };
	struct timely_peer *peer;
	u64 now_ns = ktime_get_ns();

	memcpy(key.addr, tuple->daddr, sizeof(key.addr));
	spin_lock_bh(&peers->lock);
	peer = peer_find_or_add(peers, sk, &key, now_ns);
	if (peer)
		peer_join(peer, now_ns);
	else if (peers->net)
		timely_onramp_count(peers->net, TIMELY_ONRAMP_peers_refused);
	spin_unlock_bh(&peers->lock);
	return peer;
}

/**
 * timely_peer_get() - find or create the peer of a new flow
 * @sk: the socket that sends the flow; a new peer counts against the budget of the socket's network
 *	namespace, and its memory is charged to the socket's memory control group
 * @tuple: the flow's addresses; the destination address is the peer's
 *
 * Return: the peer, to be released with timely_peer_put(); NULL if the budget is used up and no
 * peer can be replaced, if there is no memory, or if the namespace has ended.
 */
struct timely_peer *timely_peer_get(const struct sock *sk, const struct timely_tuple *tuple)
{
	struct timely_peer *peer = NULL;
	struct timely_peers *peers;

	rcu_read_lock();
	peers = peers_of(sock_net(sk));
	if (peers)
		peer = peer_get(peers, sk, tuple);
	rcu_read_unlock();
	return peer;
}

/**
 * timely_peer_put() - release the peer of a flow that has ended
 * @peer: the peer, or NULL
 *
 * RCU readers of the flow may still use the peer, so the peer is freed after an RCU grace period.
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
	if (last && !peer->gone)
		peer_rest(peers, peer);
	last &= peer->gone;
	spin_unlock_bh(&peers->lock);
	if (last) {
		call_rcu(&peer->rcu, peer_free);
		peers_put(peers);
	}
}

/**
 * timely_peer_want_clock() - allocate the mapping of a peer's clock, for relative delays
 * @peer: the peer, with @peer->lock held
 *
 * Nothing happens if the peer has the mapping, if there is no memory, or if the peer was removed
 * from the table. Without the mapping, the relative delay is the excess of the RTT.
 *
 * The caller handles an OR-ACK in softirq, where nobody would be charged.
 */
void timely_peer_want_clock(struct timely_peer *peer)
{
	struct timely_clock *clock;
	struct mem_cgroup *before;

	if (peer->owd.clock || READ_ONCE(peer->gone))
		return;
	before = set_active_memcg(peer->memcg);
	clock = kmalloc(sizeof(*clock), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	timely_charge_end(before);
	if (!clock)
		return;
	timely_clock_init(clock);
	peer->owd.steps = 0;
	peer->owd.batch = (struct timely_clock_batch) { };
	peer->owd.clock = clock;
}

/* Remove up to PEER_SWEEP_BATCH expired peers. Return: true if more peers may be expired. */
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

/* Remove expired peers, and run again while there are peers that will expire. */
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

/* ---- the offset of a peer's clock ---- */

/* Set the offset of a peer's clock; an offset that is not withdrawn creates the peer. */
static bool peer_set_clock(struct timely_peers *peers, const struct sock *sk,
			   const struct timely_peer_clock *clock, const struct timely_sync *sync)
{
	struct timely_peer_key key = { .peers = peers, .family = clock->family };
	struct timely_peer *peer;

	memcpy(key.addr, clock->address, sizeof(key.addr));
	spin_lock_bh(&peers->lock);
	if (clock->valid_ms)
		/* At time 0 no peer is silent: an offset replaces only peers without flows. */
		peer = peer_find_or_add(peers, sk, &key, 0);
	else
		peer = peer_find(&key);
	if (peer) {
		if (clock->valid_ms && !peer->flows)
			peer_rest(peers, peer);
		spin_lock(&peer->lock);
		peer->sync = *sync;
		spin_unlock(&peer->lock);
	}
	spin_unlock_bh(&peers->lock);
	return peer;
}

/**
 * timely_peer_set_clock() - set the offset of a peer's clock, as a clock daemon measured it
 * @sk: the daemon's socket, in whose network namespace the peer is; a new peer counts against the
 *	budget of this namespace, and its memory is charged to the socket's memory control group
 * @clock: the peer's address and the offset; values outside of their ranges have been refused
 *
 * Absolute delays of flows to the peer use the offset while the offset is valid, else they are
 * relative.
 * With a @clock->valid_ms of 0, absolute delays trust CLOCK_REALTIME of both hosts again.
 *
 * Return: 0; -ENOENT if On-Ramp has no peer with this address, and @clock->valid_ms is 0 or there
 * is no room for another peer.
 */
int timely_peer_set_clock(const struct sock *sk, const struct timely_peer_clock *clock)
{
	struct timely_sync sync = {};
	struct timely_peers *peers;
	bool found = false;

	if (clock->valid_ms) {
		sync.at_ns = clock->at_ns;
		sync.offset_ns = clock->offset_ns;
		sync.valid_ns = (u64)clock->valid_ms * NSEC_PER_MSEC;
		sync.bound_ns = clock->bound_ns;
		timely_sync_set(&sync, clock->drift_ppb, clock->growth_ppb);
	}
	rcu_read_lock();
	peers = peers_of(sock_net(sk));
	if (peers)
		found = peer_set_clock(peers, sk, clock, &sync);
	rcu_read_unlock();
	return found ? 0 : -ENOENT;
}

/* Describes a peer, for timely_walk(). */
static int peer_visit(void *object, const struct net *net, timely_report report, void *arg)
{
	struct timely_peer *peer = object;
	struct timely_peer_clock clock = { .family = peer->key.family };
	struct timely_sync sync;

	if (READ_ONCE(peer->key.peers->net) != net)
		return 0;
	memcpy(clock.address, peer->key.addr, sizeof(clock.address));
	clock.flows = READ_ONCE(peer->flows);
	clock.delay_ns = READ_ONCE(peer->delay_ns);
	spin_lock_bh(&peer->lock);
	sync = peer->sync;
	spin_unlock_bh(&peer->lock);
	if (sync.at_ns) {
		clock.valid_ms = div_u64(sync.valid_ns, NSEC_PER_MSEC);
		clock.at_ns = sync.at_ns;
		clock.offset_ns = sync.offset_ns;
		clock.bound_ns = sync.bound_ns;
		clock.drift_ppb = timely_sync_ppb(sync.drift_q32);
		clock.growth_ppb = timely_sync_ppb(sync.growth_q32);
	}
	return report(&clock, arg);
}

/**
 * timely_peer_walk_begin() - start a walk through the peers of a network namespace
 * @net: the namespace, which outlives the walk
 *
 * timely_walk() reports each peer as a struct timely_peer_clock.
 *
 * Return: the walk, to be given to timely_walk_end(); NULL if there is no memory.
 */
struct timely_walk *timely_peer_walk_begin(const struct net *net)
{
	return timely_walk_begin(&peer_table, net, peer_visit);
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

/* Flows and their peers may outlive the network namespace for a short time. */
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
 * timely_peer_init() - create the table of peers when the module is loaded
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

/**
 * timely_peer_exit() - destroy the table of peers when the module is unloaded
 *
 * Before the call, all flow entries have been released.
 */
void timely_peer_exit(void)
{
	unregister_pernet_subsys(&peer_net_ops);
	rcu_barrier();
	rhashtable_destroy(&peer_table);
}
