// SPDX-License-Identifier: GPL-2.0
/*
 * Drains, which let connections see the base RTT of their paths.
 *
 * A path's base RTT cannot be seen while a queue stands, and flows that steer to a queue
 * never let it go: flows that come later would take the queue for the path, and add a
 * queue of their own. So all flows send less for a moment at the same time, which is when
 * the lowest bits of the real-time clock say so.
 *
 * Only the beginning of a drain goes by the real-time clock. Its end, and the time until
 * the next one may begin, go by CLOCK_MONOTONIC, which nobody can set: whatever is done to
 * the real-time clock, the share of time that a flow spends in drains is bounded.
 *
 * An RTT shows a drain one round trip later. On long paths what is measured during the
 * drain itself is of the time before, and changes rates as at all times.
 *
 * Hosts whose real-time clocks differ drain at different times, and none of them may see the
 * path: what each takes for its base RTT has some of the queue in it, more of it by and by, for
 * ever. This shows: in a drain RTTs fall by the queue that was there before, and if they
 * do not, others did not drain. As long as this is so, the base RTT is the least RTT of some
 * seconds, and not above one and a half times the least that was seen before. A path that gets
 * longer by more than that is noticed when a flow is at its lowest rate only
 * (timely_doubt_base()). Drains go on, and once RTTs fall in them again all is as before.
 *
 * Pure: no socket, no clock.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "drain.h"

/* A drain lasts as long as clocks may differ, and some round trips. A flow's rate is lower by
 * a fifth meanwhile: a queue of 200 us goes within a millisecond.
 */
#define DRAIN_MIN_NS	1000000U
#define DRAIN_RTTS	8

/* RTTs show a drain from so long before the path's base RTT is over, and for so long after
 * the drain's end and the base RTT; but on short paths from its beginning on, for two base RTTs
 * more than it lasts.
 */
#define DRAIN_MARGIN_NS	((TIMELY_DRAIN_SETTLE_MAX_NS - TIMELY_DRAIN_MAX_NS) / 2)

/* RTTs fall in drains, or do not: on average over so many, at a share of the queue before. */
#define DRAIN_SAMPLES		16
#define DRAIN_APART_SHARE	4
#define DRAIN_TOGETHER_SHARE	2

#define DRAIN_MOST_NS		100000000

/**
 * timely_drain_init() - there was no drain yet
 * @drain: the connection's
 * @now_ns: CLOCK_MONOTONIC
 */
void timely_drain_init(struct timely_drain *drain, u64 now_ns)
{
	drain->began_ns = now_ns - TIMELY_DRAIN_PERIOD_NS;
	drain->length_ns = 0;
	drain->shows_ns = 0;
	drain->settle_ns = 0;
	drain->before_ns = 0;
}
EXPORT_SYMBOL_GPL(timely_drain_init);

/**
 * timely_drain_set() - how long drains are on a path
 * @drain: the connection's
 * @min_rtt_ns: the path's base RTT
 */
void timely_drain_set(struct timely_drain *drain, u32 min_rtt_ns)
{
	u32 margin_ns = min(min_rtt_ns, DRAIN_MARGIN_NS);

	drain->length_ns = clamp_t(u64, (u64)min_rtt_ns * DRAIN_RTTS, DRAIN_MIN_NS,
				   TIMELY_DRAIN_MAX_NS);
	drain->shows_ns = (min_rtt_ns - margin_ns) & (TIMELY_DRAIN_PERIOD_NS - 1);
	drain->settle_ns = drain->length_ns + 2 * margin_ns;
}
EXPORT_SYMBOL_GPL(timely_drain_set);

/**
 * timely_drain_look() - has a drain begun?
 * @drain: the connection's; timely_drain_may_begin()
 * @now_ns: CLOCK_MONOTONIC
 * @real_ns: the real-time clock
 * @rtt_ns: the last RTT, 0 if that is not known
 *
 * A flow that looks late finds the drain that began before, as long as its RTTs show it.
 */
void timely_drain_look(struct timely_drain *drain, u64 now_ns, u64 real_ns, u32 rtt_ns)
{
	u64 age_ns = real_ns & (TIMELY_DRAIN_PERIOD_NS - 1);

	if (age_ns >= drain->shows_ns + drain->settle_ns)
		return;
	drain->began_ns = now_ns - age_ns;
	drain->before_ns = rtt_ns;
}
EXPORT_SYMBOL_GPL(timely_drain_look);

static s32 drain_average(s32 mean, s64 value, u32 samples)
{
	value = clamp_t(s64, value, -DRAIN_MOST_NS, DRAIN_MOST_NS);
	return mean + ((s32)value - mean) / (s32)samples;
}

/**
 * timely_drain_watch_add() - an RTT in the second half of a drain
 * @watch: the path's
 * @before_ns: the flow's last RTT before the drain
 * @rtt_ns: the RTT
 * @base_ns: what the flow takes for its base RTT
 * @due_ns: the queue that the flow steers to
 *
 * An RTT counts where there was a queue before: half of what is due to four times of that.
 * A longer queue is that of others, which do not drain.
 *
 * Return: true if it turned out that drains do not coincide.
 */
bool timely_drain_watch_add(struct timely_drain_watch *watch, u32 before_ns, u32 rtt_ns,
			    u32 base_ns, u32 due_ns)
{
	s64 queue_ns = (s64)before_ns - base_ns;
	bool was_apart = watch->apart;

	if (queue_ns < due_ns / 2 || queue_ns > 4 * (s64)due_ns)
		return false;
	watch->samples = min(watch->samples + 1, DRAIN_SAMPLES);
	watch->fall_ns = drain_average(watch->fall_ns, (s64)before_ns - rtt_ns, watch->samples);
	watch->due_ns = drain_average(watch->due_ns, queue_ns, watch->samples);
	if (watch->samples < DRAIN_SAMPLES)
		return false;
	if (watch->fall_ns < watch->due_ns / DRAIN_APART_SHARE)
		watch->apart = true;
	else if (watch->fall_ns > watch->due_ns / DRAIN_TOGETHER_SHARE)
		watch->apart = false;
	if (watch->apart != was_apart)
		watch->held_ns = 0;
	return watch->apart && !was_apart;
}
EXPORT_SYMBOL_GPL(timely_drain_watch_add);

/**
 * timely_drain_base_ns() - the base RTT of a path
 * @watch: the path's
 * @least_ns: the least RTT of late
 * @long_least_ns: and of TIMELY_DRAIN_APART_LONGER times as long
 *
 * Return: ns.
 */
u64 timely_drain_base_ns(struct timely_drain_watch *watch, u64 least_ns, u64 long_least_ns)
{
	if (!watch->apart)
		return least_ns;
	watch->held_ns = min(watch->held_ns ?: U64_MAX, long_least_ns);
	return min(long_least_ns, watch->held_ns + watch->held_ns / 2);
}
EXPORT_SYMBOL_GPL(timely_drain_base_ns);
