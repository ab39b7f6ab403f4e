/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in <net/pkt_sched.h> and what a qdisc knows of
 * its device; HAVE_* come from features.mk.
 */
#ifndef _TIMELY_COMPAT_NET_PKT_SCHED_H
#define _TIMELY_COMPAT_NET_PKT_SCHED_H

#include_next <net/pkt_sched.h>

/* 6.13: a device may pace packets that are due within some time by itself. */
static inline u64 timely_offload_horizon_ns(const struct net_device *dev)
{
#ifdef HAVE_PACING_OFFLOAD
	return dev->max_pacing_offload_horizon;
#else
	return 0;
#endif
}

/* 6.19: the count of packets on the wire is kept beside the packet's length. */
static inline void timely_set_pkt_segs(struct sk_buff *skb, u32 segs)
{
#ifdef HAVE_QDISC_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = segs;
#endif
}

/* 7.1: the tracepoint of freed packets shows why a qdisc dropped one. REASON is the name
 * without QDISC_DROP_.
 */
#ifdef HAVE_QDISC_DROP_REASON
#define timely_qdisc_drop(skb, sch, to_free, REASON) \
	qdisc_drop_reason(skb, sch, to_free, QDISC_DROP_##REASON)
#else
#define timely_qdisc_drop(skb, sch, to_free, REASON) \
	qdisc_drop(skb, sch, to_free)
#endif

#endif /* _TIMELY_COMPAT_NET_PKT_SCHED_H */
