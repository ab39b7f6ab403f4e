// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's delays: the delay of a packet, for the controller (pause.c), from the receive time that
 * an OR-ACK reports. The delay is the one-way delay ("absolute"), its excess above the minimum
 * ("relative"), or without OR-ACKs the excess of the RTT ("owd rtt"). A wrong clock must not stop a
 * flow for long. onramp_flow.c calls this file.
 *
 * The receive time is by the receiver's clock. This clock may be wrong, and may be stepped or
 * slewed at any time. The OR-ACK may be an old one that somebody recorded and sends again. The RTT
 * from the packet's departure to the OR-ACK's arrival is measured with the sender's CLOCK_MONOTONIC
 * alone, which is never stepped. So a receive time is used only as far as it agrees with RTTs:
 *
 *  - A packet arrives after it departed and before its OR-ACK arrives. So each OR-ACK limits the
 *    offset between both clocks to an interval as long as the RTT, and the intervals of a flow's
 *    OR-ACKs overlap. An OR-ACK without overlap is a replay, or the receiver's clock was stepped.
 *    Such an OR-ACK is ignored. A step is accepted only after 8 OR-ACKs over at least 20 ms have
 *    agreed on the step and none has contradicted it. This check also finds old OR-ACKs whose
 *    sequence number, which wraps after 4 GB, looks new.
 *  - A relative delay does not exceed its minimum by more than the RTT exceeds the minimum RTT.
 *    This holds for any behaviour of the receiver's clock.
 *  - A packet that seems to arrive before its departure, by more than the error of the receiver's
 *    clock mapping, shows that the mapping is wrong. The mapping is then fitted again from new
 *    timestamp pairs.
 *  - An absolute delay that stays above the threshold while RTTs are near their minimum is not
 *    caused by a queue. Then the clocks are not synchronised, and the delay is limited to the
 *    excess of the RTT until a delay below the threshold shows that the clocks are synchronised
 *    again.
 *
 * A clock daemon may have measured the offset of the receiver's clock (struct timely_sync). Then
 * absolute delays use this offset, so the clocks need not be synchronised. While the offset is too
 * old or its error too large, the caller computes relative delays.
 *
 * The engine knows no packet, lock or clock, and allocates nothing.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "owd.h"

/* Half of a minimum filter's window: a value counts for one to two times this long. */
#define OWD_FILTER_HALF_NS	(5ULL * NSEC_PER_SEC)

/* An absolute delay may be below 0 or above the RTT by the configured clock error, and by at least
 * this. Other absolute delays are wrong.
 */
#define OWD_SLACK_NS		((s64)NSEC_PER_MSEC)

/* Receive times from NIC timestamps have errors of a few us, so intervals of the offset that are up
 * to 16 us apart count as overlapping.
 */
#define OWD_OFFSET_SLACK_NS	((s64)(16 * NSEC_PER_USEC))
/* Both hosts' clocks may be slewed by 500 ppm, together 1000 ppm. So both ends of an interval of
 * the offset move outward by 1/512 of its age, 1953 ppm: 1/1024, 977 ppm, would be too little.
 */
#define OWD_OFFSET_DRIFT_SHIFT	9
/* A clock step is accepted after this many successive OR-ACKs, over this time, agree on it. */
#define OWD_STEP_SIGNALS	8
#define OWD_STEP_NS		(20 * NSEC_PER_MSEC)

/* The first OR-ACK of a flow must agree with the clock offset that other flows have measured within
 * this time. An older offset is not used, because the clock may have been stepped since: any first
 * OR-ACK is accepted then.
 */
#define OWD_FRESH_NS		((u64)NSEC_PER_SEC)

/* Clocks count as not synchronised after this many absolute delays, over at least this time, that
 * RTTs do not explain. Until then, flows are paused without need.
 */
#define OWD_STRANGE_SIGNALS	16
#define OWD_STRANGE_NS		(10 * NSEC_PER_MSEC)
/* If an absolute delay is measured more than 5 ms plus four RTTs after the last, the count of
 * unexplained delays restarts. Such rare delays pause flows for a small share of the time only.
 */
#define OWD_STRANGE_GAP_NS	(5 * NSEC_PER_MSEC)
#define OWD_STRANGE_GAP_RTTS	4
/* Without any absolute delay for this time, clocks count as synchronised again. */
#define OWD_DOUBT_NS		((u64)NSEC_PER_SEC)

/**
 * timely_owd_init() - initialise the state of an unknown peer
 * @owd: the state
 */
void timely_owd_init(struct timely_owd *owd)
{
	memset(owd, 0, sizeof(*owd));
	timely_min_filter_init(&owd->rtt);
	timely_min_filter_init(&owd->raw);
}
EXPORT_SYMBOL_GPL(timely_owd_init);

/**
 * timely_owd_add_rtt() - add an RTT that was not measured with an OR-ACK
 * @owd: state of the peer
 * @now_ns: current time, CLOCK_MONOTONIC
 * @rtt_ns: the RTT, ns
 *
 * The RTT also counts as a raw delay: it is the forward delay plus a reverse delay.
 */
void timely_owd_add_rtt(struct timely_owd *owd, u64 now_ns, u64 rtt_ns)
{
	timely_min_filter_add(&owd->rtt, now_ns, OWD_FILTER_HALF_NS, rtt_ns);
	timely_min_filter_add(&owd->raw, now_ns, OWD_FILTER_HALF_NS, rtt_ns);
}
EXPORT_SYMBOL_GPL(timely_owd_add_rtt);

/* The RTT of a packet without the receiver's turnaround, ns. */
static u64 owd_rtt_ns(const struct timely_owd_signal *signal)
{
	return signal->now_ns - signal->sent_ns - signal->turnaround_ns;
}

/**
 * timely_owd_rtt() - add an RTT, and get its excess over the minimum RTT
 * @owd: state of the peer
 * @signal: times of the packet; the receive time is not used
 *
 * Return: excess of the RTT over the minimum RTT of the last 5 to 10 s, ns.
 */
u64 timely_owd_rtt(struct timely_owd *owd, const struct timely_owd_signal *signal)
{
	u64 rtt_ns = owd_rtt_ns(signal);

	return rtt_ns - timely_min_filter_add(&owd->rtt, signal->now_ns, OWD_FILTER_HALF_NS,
					      rtt_ns);
}
EXPORT_SYMBOL_GPL(timely_owd_rtt);

/* ---- the offset that a clock daemon measured ---- */

/**
 * timely_sync_set() - set the drift and the growth of the error of an offset
 * @sync: the offset; the caller has set the other members
 * @drift_ppb: growth of the offset, ns per second, at most TIMELY_SYNC_DRIFT_MAX_PPB up or down
 * @growth_ppb: growth of the error, ns per second, at most TIMELY_SYNC_DRIFT_MAX_PPB
 */
void timely_sync_set(struct timely_sync *sync, s32 drift_ppb, u32 growth_ppb)
{
	sync->drift_q32 = div_s64((s64)drift_ppb * (1LL << 32), NSEC_PER_SEC);
	sync->growth_q32 = div_u64(((u64)growth_ppb << 32) + NSEC_PER_SEC - 1, NSEC_PER_SEC);
}
EXPORT_SYMBOL_GPL(timely_sync_set);

/**
 * timely_sync_ppb() - undo the conversion of timely_sync_set()
 * @q32: drift_q32 or growth_q32
 *
 * Return: the value that was set, ns per second.
 */
s32 timely_sync_ppb(s64 q32)
{
	return (q32 * NSEC_PER_SEC + (1LL << 31)) >> 32;
}
EXPORT_SYMBOL_GPL(timely_sync_ppb);

/**
 * timely_sync_get() - get the offset of a receiver's clock now
 * @sync: the offset that a clock daemon measured
 * @now_ns: current time, CLOCK_MONOTONIC
 * @bound_max_ns: largest error that the caller can use, ns
 * @offset_ns: set to the receiver's clock minus the sender's CLOCK_MONOTONIC, ns
 * @bound_ns: set to the largest error of @offset_ns, ns
 *
 * Return: true; false if there is no offset, the offset is too old, or the error is too large.
 */
bool timely_sync_get(const struct timely_sync *sync, u64 now_ns, u64 bound_max_ns,
		     s64 *offset_ns, u64 *bound_ns)
{
	u64 age_ns = now_ns - sync->at_ns;

	/* An age of at most 100 s has 37 bits, a drift of 10^6 ppb has 23: products fit 64 bits. */
	if (age_ns >= sync->valid_ns)
		return false;
	*bound_ns = sync->bound_ns + (age_ns * sync->growth_q32 >> 32);
	*offset_ns = (s64)((u64)sync->offset_ns + (u64)((s64)age_ns * sync->drift_q32 >> 32));
	return *bound_ns <= bound_max_ns;
}
EXPORT_SYMBOL_GPL(timely_sync_get);

/* ---- which receive times are possible ---- */

/* Intersect @known, an interval of the offset, with @sample, the interval of a signal. If the
 * intervals do not overlap, return false and leave @known unchanged.
 */
static bool owd_offset_meets(struct timely_offset *known, const struct timely_offset *sample)
{
	s64 age_ns = max((s64)(sample->at_ns - known->at_ns), 0LL);
	s64 drift_ns = age_ns >> OWD_OFFSET_DRIFT_SHIFT;
	s64 low = (s64)(sample->low_ns - known->low_ns), high;

	if (low > (s64)known->width_ns + drift_ns + OWD_OFFSET_SLACK_NS)
		return false;
	high = low + (s64)sample->width_ns;
	if (high < -drift_ns - OWD_OFFSET_SLACK_NS)
		return false;
	/* Intervals that overlap only because of the slack have no intersection: the newer interval
	 * replaces the older one.
	 */
	if (low <= (s64)known->width_ns + drift_ns && high >= -drift_ns) {
		low = max(low, -drift_ns);
		high = min(high, (s64)known->width_ns + drift_ns);
	}
	known->low_ns += (u64)low;
	known->width_ns = (u64)(high - low);
	known->at_ns = sample->at_ns;
	return true;
}

/* Whether any flow to the peer has measured the offset of the peer's clock within OWD_FRESH_NS. */
static bool owd_is_fresh(const struct timely_owd *owd, u64 now_ns)
{
	return owd && owd->offset.at_ns &&
	       (s64)(now_ns - owd->offset.at_ns) < (s64)OWD_FRESH_NS;
}

/* Whether the receive time is possible: its interval of the offset overlaps with the intervals of
 * the flow's earlier OR-ACKs or, for the flow's first OR-ACK, with that of other flows to the peer.
 * If @owd is NULL, other flows are not known.
 */
static bool owd_believes(struct timely_owd *owd, struct timely_timeline *timeline,
			 const struct timely_owd_signal *signal)
{
	struct timely_offset sample = {
		.low_ns = signal->received_ns + signal->turnaround_ns - signal->now_ns,
		.width_ns = owd_rtt_ns(signal),
		.at_ns = signal->now_ns,
	};

	if (!timeline->known.at_ns)
		timeline->known = owd_is_fresh(owd, signal->now_ns) ? owd->offset : sample;
	if (owd_offset_meets(&timeline->known, &sample)) {
		timeline->count = 0;
	} else {
		if (!timeline->count || !owd_offset_meets(&timeline->other, &sample)) {
			timeline->other = sample;
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

/* The packet's departure minus its converted receive time, ns; TIMELY_CLOCK_NOWHERE if the mapping
 * is not sure. The mapping is fitted to departures and arrivals of OR-ACKs, so converted times are
 * later by the minimum reverse delay. The result is minus the sum of the packet's forward delay and
 * the minimum reverse delay.
 */
static s64 owd_on_map(const struct timely_clock_map *map,
		      const struct timely_owd_signal *signal)
{
	if (timely_clock_uncertainty_ns(map, signal->now_ns) == U32_MAX)
		return TIMELY_CLOCK_NOWHERE;
	return timely_clock_residual(map, signal->received_ns, signal->sent_ns);
}

/* Add the departure and arrival of the OR-ACK as a timestamp pair, which the mapping of the peer's
 * clock is fitted to. When the mapping moves, the minimum raw delay is shifted by the same amount:
 * otherwise an error that the mapping had before would look like a queue until the minimum expires.
 * After a step of the peer's clock, raw delays computed before the detection are wrong: their
 * minimum restarts from the minimum RTT.
 */
static void owd_note_clock(struct timely_owd *owd, const struct timely_owd_signal *signal)
{
	u64 left_ns = signal->received_ns + signal->turnaround_ns;
	struct timely_clock *clock = owd->clock;
	s64 residual, before, after;

	residual = timely_clock_residual(&clock->map, left_ns, signal->now_ns);
	if (!timely_clock_batch_note(&owd->batch, &clock->map, residual, left_ns, signal->now_ns))
		return;
	before = owd_on_map(&clock->map, signal);
	timely_clock_take(clock, &owd->batch);
	after = owd_on_map(&clock->map, signal);
	if (before != TIMELY_CLOCK_NOWHERE && after != TIMELY_CLOCK_NOWHERE)
		timely_min_filter_shift(&owd->raw, before - after);
	if (clock->steps != owd->steps) {
		owd->steps = clock->steps;
		owd->noticed++;
		owd->raw = owd->rtt;
	}
}

/* Compute the raw delay @raw_ns: the forward delay plus the minimum reverse delay, if the mapping
 * of the peer's clock is sure. Otherwise the RTT, which is the forward delay plus the reverse delay
 * of this OR-ACK. Return: false if the mapping cannot be right, because the packet seems to arrive
 * before its departure.
 */
static bool owd_raw_ns(struct timely_owd *owd, const struct timely_owd_signal *signal,
		       u64 *raw_ns)
{
	s64 residual = TIMELY_CLOCK_NOWHERE;
	u64 rtt_ns = owd_rtt_ns(signal);

	if (owd->clock) {
		owd_note_clock(owd, signal);
		residual = owd_on_map(&owd->clock->map, signal);
	}
	if (owd->clock && residual > (s64)owd->clock->map.below_ns) {
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
 * timely_owd_relative() - get the excess of a one-way delay over its minimum, with any clocks
 * @owd: state of the peer
 * @timeline: which receive times of the flow are possible
 * @signal: times of the packet and of its OR-ACK
 * @delay_ns: set to the excess of the one-way delay, ns, at most the excess of the RTT; unchanged
 *	with TIMELY_OWD_BAD
 *
 * Return: TIMELY_OWD_GOOD; TIMELY_OWD_BAD if the receive time is impossible or the mapping wrong.
 */
enum timely_owd_verdict timely_owd_relative(struct timely_owd *owd,
					    struct timely_timeline *timeline,
					    const struct timely_owd_signal *signal,
					    u64 *delay_ns)
{
	u64 excess_ns, raw_ns, least_ns;

	if (!owd_believes(owd, timeline, signal))
		return TIMELY_OWD_BAD;
	/* Absolute delays before this one have kept the minimum RTT, but no minimum raw delay. */
	if (owd->absolute_ns) {
		owd->raw = owd->rtt;
		owd->absolute_ns = 0;
	}
	excess_ns = timely_owd_rtt(owd, signal);
	if (!owd_raw_ns(owd, signal, &raw_ns))
		return TIMELY_OWD_BAD;
	least_ns = timely_min_filter_add(&owd->raw, signal->now_ns, OWD_FILTER_HALF_NS, raw_ns);
	*delay_ns = min(raw_ns - least_ns, excess_ns);
	return TIMELY_OWD_GOOD;
}
EXPORT_SYMBOL_GPL(timely_owd_relative);

/* ---- an absolute delay ---- */

/* Whether the clocks count as not synchronised: for OWD_STRANGE_NS or longer, delays have been
 * above the threshold by more than the RTT was above its minimum. A queue would have lengthened
 * both. A signal with a new minimum RTT (@lowest) is not counted: its excess is 0 by definition,
 * even if there is a queue.
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
 * timely_owd_absolute() - get a one-way delay by synchronised clocks
 * @owd: state of the peer; NULL if the budget of peers is used up: then unsynchronised clocks are
 *	not detected
 * @timeline: which receive times of the flow are possible
 * @signal: times of the packet and of its OR-ACK
 * @error_ns: largest difference of synchronised clocks, ns; with an offset that a clock daemon
 *	measured, the largest error of this offset. Then @signal->real_ns is the offset
 * @threshold_ns: the controller's threshold, including @error_ns, ns
 * @delay_ns: set to the delay, ns, from 0 to the RTT; undefined with TIMELY_OWD_BAD
 *
 * Return: TIMELY_OWD_GOOD; TIMELY_OWD_DOUBTED if the clocks are not synchronised and the delay is
 * limited to the excess of the RTT; TIMELY_OWD_BAD for an impossible receive time.
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
