// SPDX-License-Identifier: GPL-2.0
/*
 * The common time of each network namespace: the time that this host and others agree on, as an
 * offset from CLOCK_MONOTONIC. A clock daemon sets the offset over netlink. tcp_timely starts
 * base-RTT probes by the common time, so that the probes of hosts coincide whose real-time clocks
 * differ.
 */

#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/seqlock.h>
#include <linux/time64.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include <net/timely_common_time.h>
#include <timely/engine/owd.h>

#include <uapi/linux/timely.h>

/**
 * struct common_time_net - the common time of a network namespace
 * @lock: guards @sync
 * @sync: common time minus CLOCK_MONOTONIC
 */
struct common_time_net {
	seqlock_t lock; /* guards @sync */
	struct timely_sync sync;
};

static unsigned int common_time_net_id __read_mostly;

/**
 * timely_common_time() - get the common time
 * @net: network namespace
 * @now_ns: current time, CLOCK_MONOTONIC
 * @bound_max_ns: largest error of the common time that the caller can use, ns
 * @offset_ns: set to the common time minus CLOCK_MONOTONIC, ns, if the result is
 *	TIMELY_COMMON_KNOWN
 *
 * Context: any but hard interrupt.
 * Return: whether the common time can be used.
 */
enum timely_common_state timely_common_time(const struct net *net, u64 now_ns, u64 bound_max_ns,
					    s64 *offset_ns)
{
	struct common_time_net *common = net_generic(net, common_time_net_id);
	struct timely_sync sync;
	unsigned int seq;
	u64 bound_ns;

	do {
		seq = read_seqbegin(&common->lock);
		sync = common->sync;
	} while (read_seqretry(&common->lock, seq));
	if (!sync.at_ns)
		return TIMELY_COMMON_NONE;
	/* The caller may have read @now_ns before a daemon on another CPU read @sync.at_ns. */
	return timely_sync_get(&sync, max(now_ns, sync.at_ns), bound_max_ns, offset_ns, &bound_ns) ?
	       TIMELY_COMMON_KNOWN : TIMELY_COMMON_LOST;
}
EXPORT_SYMBOL_GPL(timely_common_time);

/**
 * timely_common_time_set() - set the common time
 * @net: network namespace
 * @time: the common time; values outside of their ranges have been refused. With a @time->valid_ms
 *	of 0 there is no common time
 */
void timely_common_time_set(const struct net *net, const struct timely_common_time *time)
{
	struct common_time_net *common = net_generic(net, common_time_net_id);
	struct timely_sync sync = {};

	if (time->valid_ms) {
		sync.at_ns = time->at_ns;
		sync.offset_ns = time->offset_ns;
		sync.valid_ns = (u64)time->valid_ms * NSEC_PER_MSEC;
		sync.bound_ns = time->bound_ns;
		timely_sync_set(&sync, time->drift_ppb, time->growth_ppb);
	}
	write_seqlock_bh(&common->lock);
	common->sync = sync;
	write_sequnlock_bh(&common->lock);
}

static int __net_init common_time_net_init(struct net *net)
{
	struct common_time_net *common = net_generic(net, common_time_net_id);

	seqlock_init(&common->lock);
	return 0;
}

static struct pernet_operations common_time_net_ops = {
	.init = common_time_net_init,
	.id = &common_time_net_id,
	.size = sizeof(struct common_time_net),
};

/**
 * timely_common_time_init() - add the common time to network namespaces when the module is loaded
 *
 * Return: 0, or a negative error code.
 */
int timely_common_time_init(void)
{
	return register_pernet_subsys(&common_time_net_ops);
}

/**
 * timely_common_time_exit() - remove the common time from network namespaces at unloading
 */
void timely_common_time_exit(void)
{
	unregister_pernet_subsys(&common_time_net_ops);
}
