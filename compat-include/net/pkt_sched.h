/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in the functions for qdiscs. features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_NET_PKT_SCHED_H
#define _TIMELY_COMPAT_NET_PKT_SCHED_H

#include_next <net/pkt_sched.h>
#include <linux/ktime.h>
#include <linux/skbuff.h>

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

/* Get a packet's timestamp, which is not 0, as CLOCK_MONOTONIC, in ns. fq converts timestamps in
 * this way since Linux 7.3. Before Linux 6.11 the clock of a timestamp is not known, and the
 * timestamp is returned as it is.
 *
 * BPF programs may set a time of CLOCK_MONOTONIC without its type, and type 0 is CLOCK_REALTIME:
 * a time of this type is taken for CLOCK_MONOTONIC up to 30 years after 1970.
 */
static inline s64 timely_tstamp_ns(const struct sk_buff *skb)
{
#ifdef HAVE_SKB_TSTAMP_TYPE
	if (unlikely(skb->tstamp_type == SKB_CLOCK_TAI))
		return skb->tstamp - ktime_mono_to_any(0, TK_OFFS_TAI);
	if (unlikely(skb->tstamp_type == SKB_CLOCK_REALTIME &&
		     skb->tstamp > 30LL * 365 * 24 * 3600 * NSEC_PER_SEC))
		return skb->tstamp - ktime_mono_to_real(0);
#endif
	return skb->tstamp;
}

/* Set a packet's timestamp to a time of CLOCK_MONOTONIC, ns, or to 0 for none. */
static inline void timely_set_tstamp_ns(struct sk_buff *skb, u64 time_ns)
{
#ifdef HAVE_SKB_TSTAMP_TYPE
	skb_set_delivery_time(skb, time_ns, SKB_CLOCK_MONOTONIC);
#else
	skb_set_delivery_time(skb, time_ns, true);
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
