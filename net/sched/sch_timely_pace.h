/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The due time: when the first packet of a flow may leave.
 *
 * tq_due() computes this time from the packet's timestamp, the flow's rate and On-Ramp's pause.
 * The rate and the pause may change while the packet waits in the timing wheel. tq_watch_entry()
 * asks for reports of changes, and tq_move() computes the due time again after a report.
 * The functions are inline, because they run for every packet.
 */

#ifndef _SCH_TIMELY_PACE_H
#define _SCH_TIMELY_PACE_H

#include "sch_timely.h"

/* While another qdisc gets the reports about a flow entry, this qdisc reads rate and pause again
 * after this time: 1 ms.
 */
#define TQ_RECHECK_NS		((u64)NSEC_PER_MSEC)

/* tq_spaced() keeps three quarters of the distance between two timestamps. Distances above 1 ms
 * count as 1 ms, so tq_spaced() delays no packet for longer than 0.75 ms after the previous packet.
 */
#define TQ_SPACE_MAX_NS		((u64)NSEC_PER_MSEC)

/* Whether TCP's timestamps are ignored and the socket's rate in force counts when a packet is due:
 * lazy rate enforcement, for flows whose congestion control has a flow entry.
 */
static inline bool tq_is_lazy(const struct tq_sched *q, const struct tq_flow *f)
{
	return f->has_cc && q->config.lazy && q->config.pacing;
}

/* The rate that the qdisc enforces for a packet, bytes per second; TQ_UNLIMITED for none. TCP has
 * computed a timestamp from the socket's rate, so this rate counts only for packets without a
 * timestamp, and for flows whose timestamps are ignored (tq_is_lazy()). In flows of several sockets
 * it does not count: packets of other sockets would wait for it.
 */
static inline u64 tq_rate_Bps(const struct tq_sched *q, const struct tq_flow *f,
			      const struct sk_buff *skb)
{
	u64 rate_Bps = q->config.maxrate_Bps;
	unsigned long socket_Bps;

	if (tq_is_socket(skb, f->sk) && (!skb->tstamp || tq_is_lazy(q, f))) {
		socket_Bps = READ_ONCE(skb->sk->sk_pacing_rate);
		if (socket_Bps != ~0UL)
			rate_Bps = min_t(u64, rate_Bps, socket_Bps);
	}
	/* On-Ramp limits the rate after a pause (resume_Bps), but not if the congestion control has
	 * a flow entry: its RTTs start at departures, so pauses do not disturb its rates.
	 */
	if (unlikely(q->config.onramp) && f->has_entry && !f->has_cc)
		rate_Bps = min(rate_Bps, READ_ONCE(f->entry->resume_Bps));
	return rate_Bps;
}

/* Transmission time of @bytes at @rate_Bps, at most TQ_PACE_MAX_NS. Only a new rate costs a
 * division.
 */
static inline u64 tq_pace_ns(struct tq_flow *f, u32 bytes, u64 rate_Bps)
{
	if (rate_Bps == TQ_UNLIMITED)
		return 0;
	if (unlikely(f->rate_Bps != rate_Bps)) {
		f->rate_Bps = rate_Bps;
		f->ns_per_byte = div64_u64((u64)NSEC_PER_SEC << TQ_PACE_SHIFT,
					   max(rate_Bps, 1ULL));
	}
	return min(mul_u64_u32_shr(f->ns_per_byte, bytes, TQ_PACE_SHIFT),
		   TQ_PACE_MAX_NS);
}

/* Earliest departure of a packet after the flow's previous packet; 0 for no limit. Packets keep
 * three quarters of the distance that TCP's timestamps gave them. Packets that gathered during a
 * pause then do not leave in a burst, and the flow catches up with its timestamps. At the full
 * distance the flow would stay behind its timestamps; TCP would see longer RTTs and slow down.
 */
static inline u64 tq_spaced(const struct tq_flow *f, const struct tq_skb_cb *cb)
{
	if (f->has_cc || !cb->tcp_tstamp || cb->burst || cb->time_ns <= f->tstamp_ns)
		return 0;
	return f->departed_ns + min(cb->time_ns - f->tstamp_ns, TQ_SPACE_MAX_NS) * 3 / 4;
}

/* When the flow's first packet, @skb, may leave, CLOCK_MONOTONIC.
 *
 * Lazy rate enforcement (TIMELY, section 5): the qdisc calls this function again when the packet is
 * due, and the rate in force at this time counts. TCP's timestamps are fixed at transmit time and
 * cannot follow later rate changes. tq_lazy_time() therefore ignores them in flows of tcp_timely.
 * Timestamps of others count as under fq: SO_TXTIME or BPF may have set them.
 */
static inline u64 tq_due(struct tq_sched *q, struct tq_flow *f, const struct sk_buff *skb)
{
	const struct tq_skb_cb *cb = tq_cb(skb);
	u64 due = cb->time_ns;
	u64 rate_Bps, pause;

	if (f->paced && !cb->burst) {
		rate_Bps = q->config.lazy ? tq_rate_Bps(q, f, skb) : f->rate_Bps;
		due = max(due, f->clock_ns + tq_pace_ns(f, f->owed, rate_Bps));
	}
	if (f->has_entry && cb->data) {
		due = max(due, tq_spaced(f, cb));
		pause = READ_ONCE(f->entry->pause_until_ns);
		due = max(due, pause);
	}
	return due;
}

/* The rate, bytes per second, from which a throttled flow's due time was computed; 0 if a higher
 * rate would not change the due time, because the flow is not paced or has reached maxrate.
 */
static inline u64 tq_waiting_Bps(const struct tq_sched *q, const struct tq_flow *f)
{
	return f->paced && f->rate_Bps < q->config.maxrate_Bps ? f->rate_Bps : 0;
}

/* Ask the congestion control and On-Ramp to report changes to this qdisc while the flow's first
 * packet waits until @due. Only one qdisc at a time gets reports about a flow entry. A second
 * qdisc with packets of the same socket, for example after the socket has moved to another
 * transmit queue under mq, reads rate and pause again after TQ_RECHECK_NS.
 *
 * Return: when to compute the due time again.
 */
static inline u64 tq_watch_entry(struct tq_sched *q, struct tq_flow *f, u64 due)
{
	u64 sooner;

	if (!timely_flow_wait(f->entry, &q->notifier, f, tq_waiting_Bps(q, f)))
		return min(due, timely_clock_ns() + TQ_RECHECK_NS);
	/* Changes between the computation of @due and timely_flow_wait() were not reported, so the
	 * due time is computed again.
	 */
	sooner = tq_due(q, f, tq_peek(f));
	if (likely(sooner >= due))
		return due;
	/* Only rates above the rate that tq_due() has just read need to be reported from now on. */
	WRITE_ONCE(f->entry->waiting_Bps, tq_waiting_Bps(q, f));
	return sooner;
}

/* Compute a throttled flow's due time again. Only an earlier due time moves the flow: a later one
 * is computed when the flow has left the timing wheel.
 */
static inline void tq_move(struct tq_sched *q, struct tq_flow *f)
{
	u64 due = tq_due(q, f, tq_peek(f));

	if (due >= f->node.due_ns)
		return;
	if (f->has_entry) {
		due = tq_watch_entry(q, f, due);
		q->stats.brought_forward++;
	}
	timely_wheel_move(q->wheel, &f->node, due);
}

#endif /* _SCH_TIMELY_PACE_H */
