// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's controller: how long a flow is paused after a delay was measured (owd.c), and how fast
 * the flow may send after the pause.
 *
 * "Breaking the Transience-Equilibrium Nexus: A New Approach to Datacenter Packet Transport"
 * (NSDI'21), section 3: when the sender learns that the one-way delay O of a packet is above the
 * threshold T, the flow sends nothing until the queue has had time to drain:
 *
 *	if O - b * P > T:	until = now + O - b * P - T
 *
 * The paper calls this packet green. P is the sum of the pauses that were asserted since the green
 * packet departed; the packet's delay does not show these pauses yet. Without P (b = 0, the paper's
 * strawman), the same queue would cause pauses again and again for an RTT, and the link would
 * become idle. By which part of P the delay will fall depends on the other flows. So b is measured,
 * with the packet of the previous signal, which the paper calls black:
 *
 *	b_m = (O_B - O_G) / P_BG	limited to 0 and 1, if P_BG > 0
 *	b = (1 - g) * b + g * b_m
 *
 * P_BG is the sum of the pauses asserted between the departures of the two packets. P and P_BG are
 * differences of one sum, C: each flow adds up all its pauses, and each departure is recorded with
 * C.
 *
 * Differences from the paper, each with its reason at the code:
 *  - The first b is 1/2; the paper gives no value.
 *  - A pause has a longest duration.
 *  - A packet leaves between two pauses.
 *  - After a pause, the flow's rate is limited to little more than its average.
 *
 * The engine knows no packet and no clock, and uses no floating point.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "pause.h"

/* Number of fraction bits of b and of the gain. */
#define PAUSE_SHIFT	16

/**
 * timely_pause_init() - initialise a flow without pauses
 * @pause: the flow's state
 */
void timely_pause_init(struct timely_pause *pause)
{
	memset(pause, 0, sizeof(*pause));
	/* The paper gives no first value of b. With b = 0 the flow would answer a queue twice, with
	 * b = 1 perhaps not at all. One half is between these errors, and a few signals correct b.
	 */
	pause->b = TIMELY_PAUSE_FIRST_B;
}
EXPORT_SYMBOL_GPL(timely_pause_init);

/* Measure b from the delays of the black and the green packet, and from @asserted_ns, the pauses
 * between their departures, above 0.
 */
static u32 pause_measured_b(u64 black_ns, u64 green_ns, u64 asserted_ns)
{
	/* A delay is at most TIMELY_PAUSE_DELAY_MAX_NS, and cannot fall by more. Fits 32 bits. */
	u32 asserted = min_t(u64, asserted_ns, TIMELY_PAUSE_DELAY_MAX_NS);

	if (black_ns <= green_ns)
		return 0;
	if (black_ns - green_ns >= asserted)
		return TIMELY_PAUSE_ONE;
	return div_u64((black_ns - green_ns) << PAUSE_SHIFT, asserted);
}

/* Update b from the black and the green packet. The green packet becomes the black one. */
static void pause_learn(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
			const struct timely_pause_signal *signal)
{
	u64 asserted_ns = signal->asserted_ns - pause->black_asserted_ns;
	u32 gain = min(cfg->gain, TIMELY_PAUSE_ONE);

	if (!cfg->strawman && pause->have_black && (s64)asserted_ns > 0) {
		u32 b = pause_measured_b(pause->black_delay_ns, signal->delay_ns, asserted_ns);

		pause->b = ((u64)pause->b * (TIMELY_PAUSE_ONE - gain) + (u64)b * gain +
			    TIMELY_PAUSE_ONE / 2) >> PAUSE_SHIFT;
	}
	pause->black_delay_ns = signal->delay_ns;
	pause->black_asserted_ns = signal->asserted_ns;
	pause->have_black = true;
}

/* Pause the flow for @excess_ns from now, within limits. Return: whether until_ns changed. */
static bool pause_assert(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
			 const struct timely_pause_signal *signal, u64 excess_ns)
{
	u64 now_ns = signal->now_ns, before_ns = pause->until_ns;
	u64 rest_ns = before_ns > now_ns ? before_ns - now_ns : 0;
	u64 paused_ns = 0;

	/* The limits are not in the paper. Signals make a flow stop, and an attacker may be able to
	 * forge or repeat signals. So that nobody can stop a flow permanently, a pause ends after
	 * pause_max_ns, and a packet of the flow leaves before the next pause starts.
	 */
	if (rest_ns) {
		paused_ns = now_ns > pause->since_ns ? now_ns - pause->since_ns : 0;
	} else {
		if (before_ns && signal->departures == pause->departures)
			return false;
		pause->since_ns = now_ns;
		pause->departures = signal->departures;
	}
	excess_ns = min(excess_ns, cfg->pause_max_ns - min(cfg->pause_max_ns, paused_ns));
	/* until_ns must not wrap. */
	excess_ns = min(excess_ns, U64_MAX - now_ns);
	pause->until_ns = now_ns + excess_ns;
	pause->asserted_ns += excess_ns - rest_ns;
	return pause->until_ns != before_ns;
}

/**
 * timely_pause_update() - pause the flow if a measured delay requires it
 * @pause: the flow's state
 * @cfg: the parameters
 * @signal: the delay of a packet, and C at the packet's departure
 *
 * A pause replaces the rest of the present pause, which may therefore end earlier or later. If the
 * delay requires no pause, the present pause stays unchanged. A delay above
 * TIMELY_PAUSE_DELAY_MAX_NS is ignored.
 *
 * Return: whether @pause->until_ns changed.
 */
bool timely_pause_update(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
			 const struct timely_pause_signal *signal)
{
	u64 pending_ns, seen_ns;

	if (signal->delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)
		return false;

	pause_learn(pause, cfg, signal);

	pending_ns = pause->asserted_ns - signal->asserted_ns;
	/* C at the departure exceeds the present C: a pause has been shortened since, or C was
	 * recorded wrongly.
	 */
	if ((s64)pending_ns < 0)
		pending_ns = 0;
	seen_ns = cfg->strawman ? 0 : mul_u64_u32_shr(pending_ns, pause->b, PAUSE_SHIFT);
	if (signal->delay_ns <= seen_ns || signal->delay_ns - seen_ns <= cfg->threshold_ns)
		return false;
	return pause_assert(pause, cfg, signal,
			    signal->delay_ns - seen_ns - cfg->threshold_ns);
}
EXPORT_SYMBOL_GPL(timely_pause_update);

/**
 * timely_pause_start() - pause a flow that starts, by the delay of another flow to the same peer
 * @pause: the state of the flow that starts
 * @cfg: the parameters
 * @signal: delay_ns of the other flow; now_ns; departures of the flow that starts; asserted_ns
 *	is not used
 * @age_ns: how long ago the delay was measured, ns
 *
 * Section 5.2.1 of the paper: a flow need not wait for an RTT to react to a queue that is known
 * already. A queue drains by at most one ns per ns, so @age_ns is subtracted from the delay.
 *
 * Return: whether @pause->until_ns changed.
 */
bool timely_pause_start(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
			const struct timely_pause_signal *signal, u64 age_ns)
{
	u64 delay_ns = signal->delay_ns;

	if (delay_ns > TIMELY_PAUSE_DELAY_MAX_NS || signal->now_ns < pause->until_ns)
		return false;
	if (delay_ns <= age_ns || delay_ns - age_ns <= cfg->threshold_ns)
		return false;
	return pause_assert(pause, cfg, signal, delay_ns - age_ns - cfg->threshold_ns);
}
EXPORT_SYMBOL_GPL(timely_pause_start);

/**
 * timely_pause_turn() - pause a flow that a switch has trimmed a packet of, until its turn
 * @pause: the flow's state
 * @cfg: the parameters
 * @signal: now_ns, and departures of the flow; the other members are not used
 * @turn_ns: how long the receiver's link is busy with data that were trimmed before, ns
 *
 * The queue of a switch that trims is always short, so a trimmed packet's delay does not show by
 * how much the senders exceed the link rate. The receiver computes this: each trimmed packet takes
 * a turn on its link. There is no threshold, because the queue was full, and b is not learned. A
 * present pause stays unchanged: the first turn is early enough for the first packet, and each
 * packet that comes too early may be trimmed and gets another turn.
 *
 * Return: whether @pause->until_ns changed.
 */
bool timely_pause_turn(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
		       const struct timely_pause_signal *signal, u64 turn_ns)
{
	return turn_ns && signal->now_ns >= pause->until_ns &&
	       pause_assert(pause, cfg, signal, turn_ns);
}
EXPORT_SYMBOL_GPL(timely_pause_turn);

/* After a pause, the flow's rate is limited to 7/4 of its average. */
#define RESUME_QUARTERS		7
/* The limit of the rate is at least this many bytes per round trip: four packets. */
#define RESUME_MIN_BYTES	6000ULL
/* The limit grows by a half two round trips after the pause, and by a half in each later one. */
#define RESUME_FIRST_RTTS	2
/* If the previous pause started more than this many round trips ago, a pause sets no limit. */
#define RESUME_STALE_RTTS	16
/* A limit that grows above this rate, 800 Gb/s in bytes per second, is removed. */
#define RESUME_MAX_BPS		100000000000ULL
/* For the average rate, a period counts at most 1 s and 8 GB, so that products fit 64 bits. */
#define RESUME_MAX_NS		((u64)NSEC_PER_SEC)
#define RESUME_MAX_BYTES	(1ULL << 33)

/**
 * timely_resume_init() - initialise a flow without recent pauses
 * @resume: the flow's state
 */
void timely_resume_init(struct timely_resume *resume)
{
	*resume = (struct timely_resume) { .rate_Bps = TIMELY_RESUME_UNLIMITED };
}
EXPORT_SYMBOL_GPL(timely_resume_init);

/**
 * timely_resume_pause() - set the limit of the flow's rate when a pause starts
 * @resume: the flow's state
 * @now_ns: current time, CLOCK_MONOTONIC
 * @until_ns: end of the pause, CLOCK_MONOTONIC
 * @rtt_ns: time from a packet's departure to the arrival of the signal that caused the pause, ns
 * @bytes: bytes that the flow has sent since its creation
 *
 * The limit is not in the paper, whose flows send after a pause as before. After a pause, a flow
 * sends for a round trip before it learns the effect. A window that grew without losses allows a
 * rate of more than twice the flow's share of the link. Then each pause is followed by a longer
 * queue, and each queue by a longer pause. The limit prevents this growth. If pauses are close
 * together, the rate from the start of one pause to the start of the next is about the flow's
 * share. If pauses are far apart, the flow may have been idle in between, so its share is not known
 * and there is no limit.
 */
void timely_resume_pause(struct timely_resume *resume, u64 now_ns, u64 until_ns,
			 u64 rtt_ns, u64 bytes)
{
	u64 period_ns = min(now_ns - resume->begun_ns, RESUME_MAX_NS);
	u64 sent = min(bytes - resume->begun_bytes, RESUME_MAX_BYTES);
	u64 rate_Bps;

	if (period_ns > RESUME_STALE_RTTS * rtt_ns) {
		timely_resume_init(resume);
	} else if (resume->begun_ns && period_ns) {
		rate_Bps = div64_u64(sent * NSEC_PER_SEC, period_ns);
		rate_Bps = min(rate_Bps, RESUME_MAX_BPS);
		if (resume->average_Bps)
			rate_Bps = (3 * resume->average_Bps + rate_Bps) / 4;
		resume->average_Bps = max(rate_Bps, 1ULL);
		resume->rate_Bps = max(RESUME_QUARTERS * rate_Bps / 4,
				       div64_u64(RESUME_MIN_BYTES * NSEC_PER_SEC,
						 clamp(rtt_ns, 1000ULL, RESUME_MAX_NS)));
	}
	resume->begun_ns = now_ns;
	resume->begun_bytes = bytes;
	resume->grow_ns = until_ns + RESUME_FIRST_RTTS * rtt_ns;
}
EXPORT_SYMBOL_GPL(timely_resume_pause);

/**
 * timely_resume_grow() - raise the limit of the flow's rate after a signal that started no pause
 * @resume: the flow's state
 * @now_ns: current time, CLOCK_MONOTONIC
 * @rtt_ns: time from a packet's departure to the arrival of the signal about the packet, ns
 *
 * The limit grows at most once per round trip.
 */
void timely_resume_grow(struct timely_resume *resume, u64 now_ns, u64 rtt_ns)
{
	if (resume->rate_Bps == TIMELY_RESUME_UNLIMITED || now_ns < resume->grow_ns)
		return;
	resume->grow_ns = now_ns + rtt_ns;
	resume->rate_Bps += resume->rate_Bps / 2 + 1;
	if (resume->rate_Bps > RESUME_MAX_BPS)
		timely_resume_init(resume);
}
EXPORT_SYMBOL_GPL(timely_resume_grow);

/**
 * timely_min_filter_init() - initialise a minimum filter without values
 * @filter: the filter
 */
void timely_min_filter_init(struct timely_min_filter *filter)
{
	filter->half_ns = 0;
	filter->least = U64_MAX;
	filter->before = U64_MAX;
}
EXPORT_SYMBOL_GPL(timely_min_filter_init);

/**
 * timely_min_filter_add() - add a value, and get the minimum of the window
 * @filter: the filter
 * @now_ns: current time, by the same clock in all calls
 * @half_length_ns: half of the window's length, ns
 * @value: the value, less than U64_MAX
 *
 * A value counts for one to two times @half_length_ns.
 *
 * Return: the minimum of the window, including @value.
 */
u64 timely_min_filter_add(struct timely_min_filter *filter, u64 now_ns, u64 half_length_ns,
			  u64 value)
{
	/* CPUs may call with times that are slightly out of order. If @now_ns is before the present
	 * half by less than half a window, @value counts in the present half. An earlier @now_ns
	 * means that the clock was set back, and starts a new window.
	 */
	bool back = (s64)(now_ns - filter->half_ns) < 0;
	u64 gone_ns = back ? filter->half_ns - now_ns : now_ns - filter->half_ns;

	if (gone_ns >= half_length_ns) {
		if (back || gone_ns - half_length_ns >= half_length_ns) {
			filter->before = U64_MAX;
			filter->half_ns = now_ns;
		} else {
			filter->before = filter->least;
			filter->half_ns += half_length_ns;
		}
		filter->least = U64_MAX;
	}
	filter->least = min(filter->least, value);
	return min(filter->least, filter->before);
}
EXPORT_SYMBOL_GPL(timely_min_filter_add);

/* @least + @more, limited to 0 to U64_MAX - 1. U64_MAX, which means no value, stays unchanged. */
static u64 min_filter_shifted(u64 least, s64 more)
{
	u64 room = U64_MAX - 1 - least;

	if (least == U64_MAX)
		return least;
	return more < 0 ? least - min(least, -(u64)more) : least + min_t(u64, more, room);
}

/**
 * timely_min_filter_shift() - add @more to all values, because their reference point has moved
 * @filter: the filter
 * @more: the amount to add; values stay between 0 and U64_MAX - 1
 */
void timely_min_filter_shift(struct timely_min_filter *filter, s64 more)
{
	filter->least = min_filter_shifted(filter->least, more);
	filter->before = min_filter_shifted(filter->before, more);
}
EXPORT_SYMBOL_GPL(timely_min_filter_shift);
