// SPDX-License-Identifier: GPL-2.0
/*
 * The table of paths: what the connections on a path have measured together. This is the base RTT,
 * how much ACK aggregation adds to RTTs, and whether the peer sends data. tcp_timely reports and
 * reads all of them (net/ipv4/tcp_timely_path.c).
 *
 * The base RTT is the recent minimum of the RTTs of all connections on the path. A connection that
 * starts while there is a queue measures no RTT without the queue. Alone, the connection would use
 * a base RTT that includes the queue, and add another queue. The next connection would do the same,
 * until packets are dropped. Connections that measured the path before the queue prevent this
 * error.
 *
 * ACK aggregation is shared because a connection that sends little would measure ACK aggregation
 * late, and would have lost its share of the link by then.
 *
 * A path is identified by a keyed 64-bit hash of the peer's address, the network namespace and the
 * device. The table has a fixed size, so that nobody can make it grow: the hash selects one of
 * PATH_SETS sets, and the path has one of the PATH_WAYS entries of the set. A new path replaces an
 * entry without recent reports. If the set has none, it replaces one of the network namespace that
 * has the most entries in the set, so that a tenant with many connections, for example to addresses
 * of its loopback device, replaces its own paths and not those of others. A connection on a path
 * without an entry starts with what it measures itself.
 *
 * Connections report only what they measured, never what they read here. Otherwise a value would
 * never expire, and a path that has become longer would keep its old base RTT.
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

/* The table has 2048 entries and takes 288 KiB. */
#define PATH_SETS	256
#define PATH_WAYS	8

/* The base RTT of a path without a report for this long, 4.3 s, has expired: any namespace may have
 * the entry.
 */
#define PATH_AGE_NS	(2ULL * TIMELY_PROBE_RTT_APART_LONGER * TIMELY_BASE_HALF_NS)

/* A peer that has sent data within this time, one second, is one that sends. */
#define PATH_RECEIVES_NS	1000000000LL

/**
 * struct path_entry - a path
 * @key: hash that identifies the path, see path_key()
 * @net: cookie of the network namespace
 * @reported_ns: time of the last reported RTT, CLOCK_MONOTONIC; 0 for an unused entry
 * @received_ns: when connections last told that the peer sends data, CLOCK_MONOTONIC; 0 for never
 * @filter: minimum filter of recent RTTs, ns
 * @long_filter: minimum filter of RTTs over a longer time, ns, used while base-RTT probes of the
 *	hosts do not coincide
 * @probes: whether base-RTT probes of the hosts coincide
 * @ack_agg: how much ACK aggregation by the peer adds to RTTs
 */
struct path_entry {
	u64 key;
	u64 net;
	u64 reported_ns;
	u64 received_ns;
	struct timely_min_filter filter;
	struct timely_min_filter long_filter;
	struct timely_probe_rtt_watch probes;
	struct timely_ack_agg ack_agg;
};

static struct path_set {
	spinlock_t lock; /* guards @ways */
	struct path_entry ways[PATH_WAYS];
} ____cacheline_aligned_in_smp path_sets[PATH_SETS];

static siphash_key_t path_secret __ro_after_init;

/* Return: the key of the socket's path. The device of a socket without a route counts as 0. */
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
		if (entry->key == key && entry->reported_ns)
			return entry;
	return NULL;
}

static bool path_is_used(const struct path_entry *entry, u64 now_ns)
{
	return entry->reported_ns && (s64)(now_ns - entry->reported_ns) < (s64)PATH_AGE_NS;
}

/* Return: number of the set's used entries of the network namespace @net. */
static u32 path_count(const struct path_set *set, u64 net, u64 now_ns)
{
	const struct path_entry *entry;
	u32 count = 0;

	for (entry = set->ways; entry < set->ways + PATH_WAYS; entry++)
		count += entry->net == net && path_is_used(entry, now_ns);
	return count;
}

/* Return: the entry that a new path of the network namespace @net replaces: one that is not used,
 * or else one of the namespace with the most entries, counting the new one. Of several such
 * entries, the one with the oldest last report.
 */
static struct path_entry *path_replaced(struct path_set *set, u64 net, u64 now_ns)
{
	struct path_entry *entry, *found = set->ways;
	u32 count, most = 0;

	for (entry = set->ways; entry < set->ways + PATH_WAYS; entry++) {
		count = PATH_WAYS + 1;
		if (path_is_used(entry, now_ns))
			count = path_count(set, entry->net, now_ns) + (entry->net == net);
		if (count > most || (count == most && entry->reported_ns < found->reported_ns)) {
			found = entry;
			most = count;
		}
	}
	return found;
}

/* Make an entry for a path of the network namespace @net. The caller sets reported_ns. */
static struct path_entry *path_add(struct path_set *set, u64 key, u64 net, u64 now_ns)
{
	struct path_entry *entry = path_replaced(set, net, now_ns);

	entry->key = key;
	entry->net = net;
	entry->received_ns = 0;
	timely_min_filter_init(&entry->filter);
	timely_min_filter_init(&entry->long_filter);
	entry->probes = (struct timely_probe_rtt_watch){};
	entry->ack_agg = (struct timely_ack_agg){};
	return entry;
}

/* Add an RTT to the minimum filters; for TIMELY_PATH_ASK, add none. Return: the base RTT of the
 * path, ns.
 */
static u32 path_base_ns(struct path_entry *entry, u64 now_ns, u32 rtt_ns)
{
	u64 least_ns = timely_min_filter_add(&entry->filter, now_ns, TIMELY_BASE_HALF_NS, rtt_ns);
	u64 long_ns = timely_min_filter_add(&entry->long_filter, now_ns,
				       TIMELY_PROBE_RTT_APART_LONGER * TIMELY_BASE_HALF_NS, rtt_ns);

	return timely_probe_rtt_base_ns(&entry->probes, least_ns, long_ns);
}

/**
 * timely_path_exchange() - report an RTT, and read what connections on the path reported
 * @sk: a connected TCP socket
 * @now_ns: current time, CLOCK_MONOTONIC
 * @rtt_ns: RTT that the connection measured, without the serialization time of the segment, ns;
 *	TIMELY_PATH_ASK for none
 * @report: filled in; if the path has no entry, the base RTT is not known and the rest is 0
 *
 * A reported RTT counts for one to two times TIMELY_BASE_HALF_NS. While base-RTT probes of the
 * hosts do not coincide, it counts for TIMELY_PROBE_RTT_APART_LONGER times as long.
 *
 * Context: under the socket's lock and RCU.
 */
void timely_path_exchange(struct sock *sk, u64 now_ns, u32 rtt_ns,
			  struct timely_path_report *report)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;

	*report = (struct timely_path_report){ .base_ns = U32_MAX };
	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	/* What was found with a base RTT that has expired may be of another path. */
	if (entry && !path_is_used(entry, now_ns))
		entry->probes = (struct timely_probe_rtt_watch){};
	if (rtt_ns != TIMELY_PATH_ASK) {
		entry = entry ?: path_add(set, key, sock_net(sk)->net_cookie, now_ns);
		entry->reported_ns = now_ns;
	}
	if (entry) {
		report->base_ns = path_base_ns(entry, now_ns, rtt_ns);
		report->ack_agg_ns = entry->ack_agg.mean_ns;
		report->apart = entry->probes.apart;
	}
	spin_unlock_bh(&set->lock);
}
EXPORT_SYMBOL_GPL(timely_path_exchange);

/**
 * timely_path_probed() - report RTTs before and in a base-RTT probe, to check whether RTTs fall
 * @sk: a connected TCP socket
 * @probe: RTTs, base RTT and target delay of the connection
 *
 * Without an entry of the path, the report is ignored.
 *
 * Context: under the socket's lock and RCU.
 * Return: true if this report is the first to show that base-RTT probes of the hosts on the path do
 * not coincide.
 */
bool timely_path_probed(struct sock *sk, const struct timely_path_probe *probe)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;
	bool apart = false, was_apart;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry) {
		was_apart = entry->probes.apart;
		apart = timely_probe_rtt_watch_add(&entry->probes, probe->before_ns,
						   probe->least_ns, probe->rtt_ns,
						   probe->base_ns, probe->due_ns);
		/* The minimum over the longer time may be from before the path became longer. */
		if (was_apart && !entry->probes.apart)
			timely_min_filter_init(&entry->long_filter);
	}
	spin_unlock_bh(&set->lock);
	return apart;
}
EXPORT_SYMBOL_GPL(timely_path_probed);

/**
 * timely_path_forget() - discard a path's minimum of RTTs over the longer time (long_filter)
 * @sk: a connected TCP socket
 *
 * The minimum may be from before the path became longer, or from another path to the same address.
 * Whether base-RTT probes of the hosts coincide is measured again. The minimum of recent RTTs is
 * kept, as it expires soon.
 *
 * Context: under the socket's lock and RCU.
 */
void timely_path_forget(struct sock *sk)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry) {
		timely_min_filter_init(&entry->long_filter);
		entry->probes = (struct timely_probe_rtt_watch){};
	}
	spin_unlock_bh(&set->lock);
}
EXPORT_SYMBOL_GPL(timely_path_forget);

/**
 * timely_path_received() - report that the peer sends data to this host
 * @sk: a connected TCP socket
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * Without an entry of the path, the report is ignored: no connection sends to the peer.
 *
 * Context: under the socket's lock and RCU.
 */
void timely_path_received(struct sock *sk, u64 now_ns)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry)
		entry->received_ns = now_ns;
	spin_unlock_bh(&set->lock);
}
EXPORT_SYMBOL_GPL(timely_path_received);

/**
 * timely_path_receives() - check whether the peer sends data to this host
 * @sk: a connected TCP socket
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * Context: under the socket's lock and RCU.
 * Return: true if timely_path_received() was called for the path in the last second.
 */
bool timely_path_receives(struct sock *sk, u64 now_ns)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;
	u64 received_ns = 0;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry)
		received_ns = entry->received_ns;
	spin_unlock_bh(&set->lock);
	return received_ns && (s64)(now_ns - received_ns) < PATH_RECEIVES_NS;
}
EXPORT_SYMBOL_GPL(timely_path_receives);

/**
 * timely_path_probe_sample() - report an RTT in a base-RTT probe, to measure ACK aggregation
 * @sk: a connected TCP socket
 * @sample: the RTT and the connection's target delay
 *
 * Without an entry of the path, the report is ignored.
 *
 * Context: under the socket's lock and RCU.
 */
void timely_path_probe_sample(struct sock *sk, const struct timely_probe_sample *sample)
{
	u64 key = path_key(sk);
	struct path_set *set = &path_sets[key % PATH_SETS];
	struct path_entry *entry;

	spin_lock_bh(&set->lock);
	entry = path_find(set, key);
	if (entry)
		timely_ack_agg_add(&entry->ack_agg, sample);
	spin_unlock_bh(&set->lock);
}
EXPORT_SYMBOL_GPL(timely_path_probe_sample);

/**
 * timely_path_init() - initialise the table of paths when the module is loaded
 */
void __init timely_path_init(void)
{
	struct path_set *set;

	get_random_bytes(&path_secret, sizeof(path_secret));
	for (set = path_sets; set < path_sets + PATH_SETS; set++)
		spin_lock_init(&set->lock);
}
