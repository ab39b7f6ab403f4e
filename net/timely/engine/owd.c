// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's delays, computed so that no wrong clock stalls a flow.
 *
 * An OR-ACK tells when a packet arrived, by the receiver's clock. That clock may be wrong,
 * may be stepped or slewed at any time, and may belong to an OR-ACK that somebody recorded
 * earlier and sends again. The round trip is known without any of that: the sender's
 * CLOCK_MONOTONIC measures it, which is never stepped. So a receive time is used only as
 * far as it agrees with round trips:
 *
 *  - A packet arrives after it departed and before its OR-ACK is heard. Each OR-ACK thus
 *    confines the offset between both clocks to an interval as long as the round trip, and
 *    the intervals of a flow's OR-ACKs overlap. One that does not overlap is a replay, or
 *    the receiver's clock was stepped. It is ignored; only when for some time nothing else
 *    comes, the step is believed. This orders OR-ACKs by time where the sequence number,
 *    which wraps after 4 GB, does not.
 *  - A relative delay exceeds the least one no more than the round trip exceeds the least
 *    round trip. This holds whatever the receiver's clock does.
 *  - A packet that arrived before it departed, by more than the error of the line that
 *    tells the receiver's clock, says that the line is wrong: the line is learnt anew.
 *  - An absolute delay that stays above the threshold while round trips are at their
 *    least is no queue. Then clocks are out of step, and round trips bound the delay until
 *    a delay below the threshold shows that clocks are in step again.
 *
 * Pure: no packet, no lock, no allocation, no clock.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "owd.h"

/* A least value is that of one to two times this long. */
#define OWD_FLOOR_HALF_NS	(5ULL * NSEC_PER_SEC)

/* Absolute delays beyond 0 and the round trip by more than this are wrong, whatever error
 * of clocks is allowed for.
 */
#define OWD_SLACK_NS		((s64)NSEC_PER_MSEC)

/* Receive times that a NIC stamped are off by a few us; intervals may miss by this. */
#define OWD_OFFSET_SLACK_NS	((s64)(16 * NSEC_PER_USEC))
/* Both clocks may be slewed by 500 ppm: the interval grows by 1/512, 1953 ppm. */
#define OWD_OFFSET_DRIFT_SHIFT	9
/* A step is believed after so many OR-ACKs that agree on it, and this long. */
#define OWD_STEP_SIGNALS	8
#define OWD_STEP_NS		(20 * NSEC_PER_MSEC)

/* What other flows have shown of the clock counts for a new flow for this long. Later the
 * clock may have been stepped, and the flow's first OR-ACK is believed.
 */
#define OWD_FRESH_NS		((u64)NSEC_PER_SEC)

/* Clocks are out of step after so many absolute delays, over this long, that round trips
 * do not explain. A flow is held for nothing meanwhile.
 */
#define OWD_STRANGE_SIGNALS	16
#define OWD_STRANGE_NS		(10 * NSEC_PER_MSEC)
/* Delays further apart than this and four round trips show nothing together, and cost
 * little: flows are not held for a large share of the time.
 */
#define OWD_STRANGE_GAP_NS	(5 * NSEC_PER_MSEC)
#define OWD_STRANGE_GAP_RTTS	4
/* After a silence this long clocks are taken to be in step again. */
#define OWD_DOUBT_NS		((u64)NSEC_PER_SEC)

/**
 * timely_owd_init() - begin with a destination of which nothing is known
 * @owd: what is known
 */
void timely_owd_init(struct timely_owd *owd)
{
	memset(owd, 0, sizeof(*owd));
	timely_floor_init(&owd->rtt);
	timely_floor_init(&owd->raw);
}
EXPORT_SYMBOL_GPL(timely_owd_init);

/**
 * timely_owd_least() - note a round trip that was measured otherwise
 * @owd: what is known of the destination
 * @now_ns: the time, CLOCK_MONOTONIC
 * @rtt_ns: the round trip
 */
void timely_owd_least(struct timely_owd *owd, u64 now_ns, u64 rtt_ns)
{
	timely_floor_add(&owd->rtt, now_ns, OWD_FLOOR_HALF_NS, rtt_ns);
	timely_floor_add(&owd->raw, now_ns, OWD_FLOOR_HALF_NS, rtt_ns);
}
EXPORT_SYMBOL_GPL(timely_owd_least);

/* The round trip without the receiver's turnaround. */
static u64 owd_rtt_ns(const struct timely_owd_signal *signal)
{
	return signal->now_ns - signal->sent_ns - signal->turnaround_ns;
}

/**
 * timely_owd_rtt() - by how much a round trip exceeds the least one
 * @owd: what is known of the destination
 * @signal: the round trip; the receive time is not looked at
 *
 * Return: the excess over the least round trip of the last 5 to 10 s, ns.
 */
u64 timely_owd_rtt(struct timely_owd *owd, const struct timely_owd_signal *signal)
{
	u64 rtt_ns = owd_rtt_ns(signal);

	return rtt_ns - timely_floor_add(&owd->rtt, signal->now_ns, OWD_FLOOR_HALF_NS, rtt_ns);
}
EXPORT_SYMBOL_GPL(timely_owd_rtt);

/* ---- which receive times can be true ---- */

/* Intersect a known interval with a signal's. Return: false if they do not meet. */
static bool owd_offset_meets(struct timely_offset *known, const struct timely_offset *news)
{
	s64 age_ns = max((s64)(news->at_ns - known->at_ns), 0LL);
	s64 drift_ns = age_ns >> OWD_OFFSET_DRIFT_SHIFT;
	s64 low = (s64)(news->low_ns - known->low_ns), high;

	if (low > (s64)known->width_ns + drift_ns + OWD_OFFSET_SLACK_NS)
		return false;
	high = low + (s64)news->width_ns;
	if (high < -drift_ns - OWD_OFFSET_SLACK_NS)
		return false;
	/* Within the slack: the older interval is no better than the newer. */
	if (low <= (s64)known->width_ns + drift_ns && high >= -drift_ns) {
		low = max(low, -drift_ns);
		high = min(high, (s64)known->width_ns + drift_ns);
	}
	known->low_ns += (u64)low;
	known->width_ns = (u64)(high - low);
	known->at_ns = news->at_ns;
	return true;
}

/* Have other flows to the destination told of its clock just now? */
static bool owd_is_fresh(const struct timely_owd *owd, u64 now_ns)
{
	return owd && owd->offset.at_ns &&
	       (s64)(now_ns - owd->offset.at_ns) < (s64)OWD_FRESH_NS;
}

/* Can the receive time be true, by the OR-ACKs of the flow before, or, for a flow's first
 * one, by those of other flows to the destination?
 */
static bool owd_believes(struct timely_owd *owd, struct timely_timeline *timeline,
			 const struct timely_owd_signal *signal)
{
	struct timely_offset news = {
		.low_ns = signal->received_ns + signal->turnaround_ns - signal->now_ns,
		.width_ns = owd_rtt_ns(signal),
		.at_ns = signal->now_ns,
	};

	if (!timeline->known.at_ns)
		timeline->known = owd_is_fresh(owd, signal->now_ns) ? owd->offset : news;
	if (owd_offset_meets(&timeline->known, &news)) {
		timeline->count = 0;
	} else {
		if (!timeline->count || !owd_offset_meets(&timeline->other, &news)) {
			timeline->other = news;
			timeline->since_ns = signal->now_ns;
			timeline->count = 0;
		}
		timeline->count++;
		if (timeline->count < OWD_STEP_SIGNALS ||
		    (s64)(signal->now_ns - timeline->since_ns) < (s64)OWD_STEP_NS)
			return false;
		timeline->known = timeline->other;
		timeline->count = 0;
		if (owd)
			owd->noticed++;
	}
	if (owd)
		owd->offset = timeline->known;
	return true;
}

/* ---- a relative delay ---- */

/* The residual of the departure on the line; TIMELY_CLOCK_NOWHERE if the line is not
 * sure. Less than 0 by the way there and the least way back.
 */
static s64 owd_on_line(const struct timely_clock_line *line,
		       const struct timely_owd_signal *signal)
{
	if (timely_clock_uncertainty_ns(line, signal->now_ns) == U32_MAX)
		return TIMELY_CLOCK_NOWHERE;
	return timely_clock_residual(line, signal->received_ns, signal->sent_ns);
}

/* Note the way back, which the line of the receiver's clock is fitted to. When the line
 * moves, the least way there moves with the line: else an error that the line had once is
 * a queue for as long as the least is remembered. When the receiver's clock was stepped,
 * what was computed until the step was noticed is wrong: the least round trip takes the
 * place of the least.
 */
static void owd_note_clock(struct timely_owd *owd, const struct timely_owd_signal *signal)
{
	u64 left_ns = signal->received_ns + signal->turnaround_ns;
	struct timely_clock *clock = owd->clock;
	s64 residual, before, after;

	residual = timely_clock_residual(&clock->line, left_ns, signal->now_ns);
	if (!timely_clock_batch_note(&owd->batch, &clock->line, residual, left_ns, signal->now_ns))
		return;
	before = owd_on_line(&clock->line, signal);
	timely_clock_take(clock, &owd->batch);
	after = owd_on_line(&clock->line, signal);
	if (before != TIMELY_CLOCK_NOWHERE && after != TIMELY_CLOCK_NOWHERE)
		timely_floor_shift(&owd->raw, before - after);
	if (clock->steps != owd->steps) {
		owd->steps = clock->steps;
		owd->noticed++;
		owd->raw = owd->rtt;
	}
}

/* The way there with the least way back, by the receiver's clock if that is known well,
 * else with this packet's way back. Return: false if the line cannot be right.
 */
static bool owd_raw_ns(struct timely_owd *owd, const struct timely_owd_signal *signal,
		       u64 *raw_ns)
{
	s64 residual = TIMELY_CLOCK_NOWHERE;
	u64 rtt_ns = owd_rtt_ns(signal);

	if (owd->clock) {
		owd_note_clock(owd, signal);
		residual = owd_on_line(&owd->clock->line, signal);
	}
	if (owd->clock && residual > (s64)owd->clock->line.below_ns) {
		timely_clock_forget(owd->clock);
		owd->noticed++;
		owd->raw = owd->rtt;
		return false;
	}
	*raw_ns = residual == TIMELY_CLOCK_NOWHERE ? rtt_ns :
		  min_t(u64, max(-residual, 0LL), rtt_ns);
	return true;
}

/**
 * timely_owd_relative() - by how much a delay exceeds the least one, whatever clocks show
 * @owd: what is known of the destination
 * @timeline: which receive times of the flow can be true
 * @signal: the times
 * @delay_ns: the delay, unless TIMELY_OWD_BAD is returned
 *
 * Return: TIMELY_OWD_GOOD; TIMELY_OWD_BAD for a receive time that cannot be true.
 */
enum timely_owd_verdict timely_owd_relative(struct timely_owd *owd,
					    struct timely_timeline *timeline,
					    const struct timely_owd_signal *signal,
					    u64 *delay_ns)
{
	u64 excess_ns, raw_ns, least_ns;

	if (!owd_believes(owd, timeline, signal))
		return TIMELY_OWD_BAD;
	excess_ns = timely_owd_rtt(owd, signal);
	if (!owd_raw_ns(owd, signal, &raw_ns))
		return TIMELY_OWD_BAD;
	least_ns = timely_floor_add(&owd->raw, signal->now_ns, OWD_FLOOR_HALF_NS, raw_ns);
	*delay_ns = min(raw_ns - least_ns, excess_ns);
	return TIMELY_OWD_GOOD;
}
EXPORT_SYMBOL_GPL(timely_owd_relative);

/* ---- an absolute delay ---- */

/* Are clocks out of step, as delays are above the threshold that round trips do not
 * explain? A round trip that is the least ever shows only that there was a queue before.
 */
static bool owd_doubts(struct timely_owd *owd, const struct timely_owd_signal *signal,
		       u64 delay_ns, u64 threshold_ns, u64 excess_ns, bool lowest)
{
	u64 gap_ns = OWD_STRANGE_GAP_NS + OWD_STRANGE_GAP_RTTS * owd_rtt_ns(signal);
	s64 silence_ns = (s64)(signal->now_ns - owd->absolute_ns);

	owd->absolute_ns = signal->now_ns;
	if (silence_ns > (s64)gap_ns)
		owd->strange = 0;
	if (silence_ns > (s64)OWD_DOUBT_NS)
		owd->doubted = false;
	if (delay_ns <= threshold_ns) {
		owd->strange = 0;
		owd->doubted = false;
	} else if (!lowest && delay_ns - threshold_ns > excess_ns) {
		if (!owd->strange)
			owd->strange_ns = signal->now_ns;
		owd->strange = min_t(u32, owd->strange + 1, OWD_STRANGE_SIGNALS);
		if (owd->strange == OWD_STRANGE_SIGNALS &&
		    (s64)(signal->now_ns - owd->strange_ns) >= (s64)OWD_STRANGE_NS) {
			owd->noticed += !owd->doubted;
			owd->doubted = true;
		}
	}
	return owd->doubted;
}

/**
 * timely_owd_absolute() - a delay by clocks that are in step
 * @owd: what is known of the destination; NULL if there is no room: then the delay is what
 *	clocks show
 * @timeline: which receive times of the flow can be true
 * @signal: the times
 * @error_ns: how far clocks may be apart
 * @threshold_ns: the controller's threshold, including @error_ns
 * @delay_ns: the delay, unless TIMELY_OWD_BAD is returned
 *
 * Return: TIMELY_OWD_GOOD; TIMELY_OWD_DOUBTED if clocks are out of step and the delay is
 * bounded by how much the round trip exceeds the least one; TIMELY_OWD_BAD for a receive
 * time that cannot be true.
 */
enum timely_owd_verdict timely_owd_absolute(struct timely_owd *owd,
					    struct timely_timeline *timeline,
					    const struct timely_owd_signal *signal,
					    u64 error_ns, u64 threshold_ns, u64 *delay_ns)
{
	s64 delay = (s64)(signal->received_ns - (signal->sent_ns + signal->real_ns));
	s64 slack_ns = max_t(s64, error_ns, OWD_SLACK_NS), rtt_ns = (s64)owd_rtt_ns(signal);
	u64 excess_ns;
	bool lowest;

	if (delay < -slack_ns || delay > rtt_ns + slack_ns ||
	    !owd_believes(owd, timeline, signal))
		return TIMELY_OWD_BAD;
	*delay_ns = (u64)clamp(delay, 0LL, rtt_ns);
	if (!owd)
		return TIMELY_OWD_GOOD;
	lowest = (u64)rtt_ns < min(owd->rtt.least, owd->rtt.before);
	excess_ns = timely_owd_rtt(owd, signal);
	if (!owd_doubts(owd, signal, *delay_ns, threshold_ns, excess_ns, lowest))
		return TIMELY_OWD_GOOD;
	*delay_ns = min(*delay_ns, excess_ns);
	return TIMELY_OWD_DOUBTED;
}
EXPORT_SYMBOL_GPL(timely_owd_absolute);
