// SPDX-License-Identifier: GPL-2.0
/*
 * What connections to a destination know of it together.
 *
 * The least round trip of late, of all connections that lead there. One
 * that begins while a queue stands sees no round trip without it: by itself it would take
 * the queue for the path and add one of its own, and so would the next, until packets are
 * dropped. Those who knew the path before know better.
 *
 * A destination is a keyed hash of its address, the namespace and the device, of 64
 * bits. It has a place in one of a fixed number of sets, where a new one takes the place of the
 * one that has not been told of for longest: nothing is allocated, and nothing that
 * anybody sends makes it grow. Who finds nothing begins with what it sees, as if alone.
 *
 * And what its receivers add to round trips: who sends little would learn it late and lose
 * his share meanwhile.
 *
 * Told is only what was measured, never what was heard here, or hearsay would keep a path
 * short that has become longer.
 */

#include <linux/cache.h>
#include <linux/export.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <net/dst.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include <net/timely_path.h>
#include <timely/engine/pause.h>
#include <timely/engine/rtt.h>
#include <timely/engine/tune.h>

/* Two thousand destinations, in 256 KiB. */
#define PATH_SETS	256
#define PATH_WAYS	8

/**
 * struct path_entry - a destination
 * @key: its hash
 * @told_ns: when it was last told of, CLOCK_MONOTONIC
 * @floor: round trips of late, ns
 * @long_floor: and of longer, for as long as the hosts' drains do not coincide
 * @drains: whether they do
 * @noise: what the destination's receivers add to them
 */
struct path_entry {
	u64 key;
	u64 told_ns;
	struct timely_floor floor;
	struct timely_floor long_floor;
	struct timely_drain_watch drains;
	struct timely_noise noise;
};

static struct path_set {
	spinlock_t lock; /* of @ways */
	struct path_entry ways[PATH_WAYS];
} ____cacheline_aligned_in_smp path_sets[PATH_SETS];

static siphash_key_t path_secret __ro_after_init;

static u64 path_key(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	struct {
		struct in6_addr to;
		u64 net;
		u64 device;
	} path = {
		.net = sock_net(sk)->net_cookie,
		.device = dst ? dst->dev->ifindex : 0,
	};

	if (sk->sk_family == AF_INET)
		ipv6_addr_set_v4mapped(sk->sk_daddr, &path.to);
#if IS_ENABLED(CONFIG_IPV6)
	else
		path.to = sk->sk_v6_daddr;
#endif
	return siphash(&path, sizeof(path), &path_secret);
}

static struct path_entry *path_find(struct path_set *set, u64 key)
{
	struct path_entry *entry;

	for (entry = set->ways; entry < set->ways + PATH_WAYS; entry++)
		if (entry->key == key && entry->told_ns)
			return entry;
	return NULL;
}

static struct path_entry *path_add(struct path_set *set, u64 key)
{
	struct path_entry *entry, *oldest = set->ways;

	for (entry = oldest + 1; entry < set->ways + PATH_WAYS; entry++)
		if (entry->told_ns < oldest->told_ns)
			oldest = entry;
	oldest->key = key;
	timely_floor_init(&oldest->floor);
	timely_floor_init(&oldest->long_floor);
	oldest->drains = (struct timely_drain_watch){};
	oldest->noise = (struct timely_noise){};
	return oldest;
}

/* The base RTT of a path, with one more RTT, or TIMELY_PATH_ASK for none. */
static u32 path_base_ns(struct path_entry *entry, u64 now_ns, u32 rtt_ns)
{
	u64 least_ns = timely_floor_add(&entry->floor, now_ns, TIMELY_BASE_HALF_NS, rtt_ns);
	u64 long_ns = timely_floor_add(&entry->long_floor, now_ns,
				       TIMELY_DRAIN_APART_LONGER * TIMELY_BASE_HALF_NS, rtt_ns);

	return timely_drain_base_ns(&entry->drains, least_ns, long_ns);
}

/**
 * timely_path_tell() - tell of a round trip, and hear what others know
 * @sk: a TCP socket whose destination is known; under its lock, and RCU
 * @now_ns: CLOCK_MONOTONIC
 * @rtt_ns: as the connection measured it, without the segment's time on the line;
 *	TIMELY_PATH_ASK if it did not
 * @news: filled in
 *
 * An RTT that is told counts for one to two times TIMELY_BASE_HALF_NS; while the drains of
 * hosts do not coincide, for TIMELY_DRAIN_APART_LONGER times as long.
 */
void timely_path_tell(struct sock *sk, u64 now_ns, u32 rtt_ns, struct timely_path_news *news)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;

	*news = (struct timely_path_news){ .base_ns = U32_MAX };
	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (rtt_ns != TIMELY_PATH_ASK) {
		entry = entry ?: path_add(set, key);
		entry->told_ns = now_ns;
	}
	if (entry) {
		news->base_ns = path_base_ns(entry, now_ns, rtt_ns);
		news->noise_ns = entry->noise.mean_ns;
		news->apart = entry->drains.apart;
	}
	spin_unlock_bh(&set->lock);
}
EXPORT_SYMBOL_GPL(timely_path_tell);

/**
 * timely_path_drained() - tell of a drain
 * @sk: a TCP socket whose destination is known; under its lock, and RCU
 * @drain: what its connection saw
 *
 * Return: true if it turned out that the drains of the hosts on the path do not coincide.
 */
bool timely_path_drained(struct sock *sk, const struct timely_path_drain *drain)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;
	bool apart = false;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry)
		apart = timely_drain_watch_add(&entry->drains, drain->before_ns, drain->rtt_ns,
					       drain->base_ns, drain->due_ns);
	spin_unlock_bh(&set->lock);
	return apart;
}
EXPORT_SYMBOL_GPL(timely_path_drained);

/**
 * timely_path_forget() - the base RTT that was kept may be of another path
 * @sk: a TCP socket whose destination is known; under its lock, and RCU
 */
void timely_path_forget(struct sock *sk)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry) {
		timely_floor_init(&entry->long_floor);
		entry->drains = (struct timely_drain_watch){};
	}
	spin_unlock_bh(&set->lock);
}
EXPORT_SYMBOL_GPL(timely_path_forget);

/**
 * timely_path_late() - tell of a round trip in a drain
 * @sk: a TCP socket whose destination is known; under its lock, and RCU
 * @late: the round trip
 *
 * Where nobody has told of the destination yet it is not remembered.
 */
void timely_path_late(struct sock *sk, const struct timely_late *late)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry)
		timely_noise_add(&entry->noise, late);
	spin_unlock_bh(&set->lock);
}
EXPORT_SYMBOL_GPL(timely_path_late);

/** timely_path_init() - before anything is told */
void __init timely_path_init(void)
{
	struct path_set *set;

	get_random_bytes(&path_secret, sizeof(path_secret));
	for (set = path_sets; set < path_sets + PATH_SETS; set++)
		spin_lock_init(&set->lock);
}
