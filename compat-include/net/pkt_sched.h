/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in the functions for qdiscs. features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_NET_PKT_SCHED_H
#define _TIMELY_COMPAT_NET_PKT_SCHED_H

#include_next <net/pkt_sched.h>

/* How long before its due time a packet may be passed to the device, which delays the packet by
 * itself, in ns; 0 if the device cannot delay packets. Before Linux 6.13 no device can.
 */
static inline u64 timely_offload_horizon_ns(const struct net_device *dev)
{
#ifdef HAVE_PACING_OFFLOAD
	return dev->max_pacing_offload_horizon;
#else
	return 0;
#endif
}

/* Set the number of frames of a packet, which the qdisc control block has since Linux 6.19. */
static inline void timely_set_pkt_segs(struct sk_buff *skb, u32 segs)
{
#ifdef HAVE_QDISC_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = segs;
#endif
}

/* Drop a packet. Since Linux 7.1 a qdisc gives the reason, which the tracepoint of freed packets
 * shows. REASON: name of the reason without QDISC_DROP_.
 */
#ifdef HAVE_QDISC_DROP_REASON
#define timely_qdisc_drop(skb, sch, to_free, REASON) \
	qdisc_drop_reason(skb, sch, to_free, QDISC_DROP_##REASON)
#else
#define timely_qdisc_drop(skb, sch, to_free, REASON) \
	qdisc_drop(skb, sch, to_free)
#endif

#endif /* _TIMELY_COMPAT_NET_PKT_SCHED_H */
