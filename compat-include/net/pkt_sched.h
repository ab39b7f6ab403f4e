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

/* Since Linux 6.11 a packet's timestamp has a type: the clock that it is of. */
#ifdef HAVE_SKB_TSTAMP_TYPE
#define TIMELY_TSTAMP_MONOTONIC	SKB_CLOCK_MONOTONIC
#else
#define TIMELY_TSTAMP_MONOTONIC	true
#endif

/* Timestamps of CLOCK_REALTIME up to this time, 30 years after 1970, are of CLOCK_MONOTONIC: BPF
 * programs may set a timestamp without its type, and CLOCK_REALTIME is type 0.
 */
#define TIMELY_TSTAMP_UNTYPED_NS	(30LL * 365 * 24 * 3600 * NSEC_PER_SEC)

/* Get a packet's timestamp, which is not 0, as CLOCK_MONOTONIC, in ns. fq converts timestamps in
 * this way since Linux 7.3. Before Linux 6.11 the clock of a timestamp is not known, and the
 * timestamp is returned as it is.
 */
static inline s64 timely_tstamp_ns(const struct sk_buff *skb)
{
#ifdef HAVE_SKB_TSTAMP_TYPE
	if (unlikely(skb->tstamp_type == SKB_CLOCK_TAI))
		return skb->tstamp - ktime_mono_to_any(0, TK_OFFS_TAI);
	if (unlikely(skb->tstamp_type == SKB_CLOCK_REALTIME &&
		     skb->tstamp > TIMELY_TSTAMP_UNTYPED_NS))
		return skb->tstamp - ktime_mono_to_real(0);
#endif
	return skb->tstamp;
}

/* Set a packet's timestamp to a time of CLOCK_MONOTONIC that is not 0, ns. */
static inline void timely_set_tstamp_ns(struct sk_buff *skb, u64 time_ns)
{
	skb_set_delivery_time(skb, time_ns, TIMELY_TSTAMP_MONOTONIC);
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
