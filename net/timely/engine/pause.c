// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's controller: how long a flow is held when a delay was measured.
 *
 * "Breaking the Transience-Equilibrium Nexus: A New Approach to Datacenter
 * Packet Transport" (NSDI'21), section 3: when a packet's one-way delay O comes
 * to be known at the sender and is above the threshold T, the flow sends
 * nothing until the queue has had the time to drain:
 *
 *	if O - b * P > T:	until = now + O - b * P - T
 *
 * P are the pauses that were asserted since that packet (the green one) left:
 * the delay does not show them yet. Without them (b = 0, the strawman) the same
 * queue is answered again and again for an RTT, and the link runs dry. How much
 * of P will show depends on the other flows, so b is learnt from the packet that
 * was acknowledged before (the black one):
 *
 *	b_m = (O_B - O_G) / P_BG	within 0 and 1, if P_BG > 0
 *	b = (1 - g) * b + g * b_m
 *
 * where P_BG are the pauses asserted between the departures of the two. All of
 * them are differences of one sum, C, that a flow counts and that its packets
 * note when they leave.
 *
 * Differences from the paper, each with its reason at the code:
 *  - the first b is 1/2; the paper does not say
 *  - a hold has a longest duration
 *  - between two holds a packet leaves
 *  - after a hold a flow sends little faster than it did on average
 *
 * Pure: no packet, no clock, no floating point.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "pause.h"

/* b and the gain have so many fraction bits. */
#define PAUSE_SHIFT	16

/**
 * timely_pause_init() - start a flow that was never held
 * @pause: the flow's state
 */
void timely_pause_init(struct timely_pause *pause)
{
	memset(pause, 0, sizeof(*pause));
	/* The paper does not say. Half is as far from either mistake: to answer
	 * a queue twice, or not at all; a few signals put it right.
	 */
	pause->b = TIMELY_PAUSE_FIRST_B;
}
EXPORT_SYMBOL_GPL(timely_pause_init);

/* What one pair of packets tells of b. @asserted_ns is above 0. */
static u32 pause_measured_b(u64 black_ns, u64 green_ns, u64 asserted_ns)
{
	/* No delay is longer, so no more can have shown; and it fits 32 bits. */
	u32 asserted = min_t(u64, asserted_ns, TIMELY_PAUSE_DELAY_MAX_NS);

	if (black_ns <= green_ns)
		return 0;
	if (black_ns - green_ns >= asserted)
		return TIMELY_PAUSE_ONE;
	return div_u64((black_ns - green_ns) << PAUSE_SHIFT, asserted);
}

/* Learn b from the black packet and the green one, which then is the black. */
static void pause_learn(struct timely_pause *pause, const struct timely_pause_law *law,
			const struct timely_pause_signal *signal)
{
	u64 asserted_ns = signal->asserted_ns - pause->black_asserted_ns;
	u32 gain = min(law->gain, TIMELY_PAUSE_ONE);

	if (!law->strawman && pause->heard && (s64)asserted_ns > 0) {
		u32 b = pause_measured_b(pause->black_delay_ns, signal->delay_ns, asserted_ns);

		pause->b = ((u64)pause->b * (TIMELY_PAUSE_ONE - gain) + (u64)b * gain +
			    TIMELY_PAUSE_ONE / 2) >> PAUSE_SHIFT;
	}
	pause->black_delay_ns = signal->delay_ns;
	pause->black_asserted_ns = signal->asserted_ns;
	pause->heard = true;
}

/* Hold the flow for @excess_ns from now, as far as the bounds allow. */
static bool pause_assert(struct timely_pause *pause, const struct timely_pause_law *law,
			 const struct timely_pause_signal *signal, u64 excess_ns)
{
	u64 now_ns = signal->now_ns, before_ns = pause->until_ns;
	u64 rest_ns = before_ns > now_ns ? before_ns - now_ns : 0;
	u64 held_ns = 0;

	/* Not in the paper. A signal is an instruction from the network to stop.
	 * Whoever may forge or repeat it must not stop a flow for good: a hold
	 * ends, and before the next one a packet leaves.
	 */
	if (rest_ns) {
		held_ns = now_ns > pause->since_ns ? now_ns - pause->since_ns : 0;
	} else {
		if (before_ns && signal->departures == pause->departures)
			return false;
		pause->since_ns = now_ns;
		pause->departures = signal->departures;
	}
	excess_ns = min(excess_ns, law->pause_max_ns - min(law->pause_max_ns, held_ns));
	/* The end of time: no wrap. */
	excess_ns = min(excess_ns, U64_MAX - now_ns);
	pause->until_ns = now_ns + excess_ns;
	pause->asserted_ns += excess_ns - rest_ns;
	return pause->until_ns != before_ns;
}

/**
 * timely_pause_hear() - a delay was measured: hold the flow, or not
 * @pause: the flow's state
 * @law: the parameters
 * @signal: the delay, and when its packet departed
 *
 * The end of a present hold may move either way. Where no pause is due it stays
 * as it is.
 *
 * Return: whether @pause->until_ns changed.
 */
bool timely_pause_hear(struct timely_pause *pause, const struct timely_pause_law *law,
		       const struct timely_pause_signal *signal)
{
	u64 pending_ns, seen_ns;

	if (signal->delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)
		return false;

	pause_learn(pause, law, signal);

	pending_ns = pause->asserted_ns - signal->asserted_ns;
	/* A packet that left with more than was ever asserted: a wrong note, or
	 * a hold that has been shortened since.
	 */
	if ((s64)pending_ns < 0)
		pending_ns = 0;
	seen_ns = law->strawman ? 0 : mul_u64_u32_shr(pending_ns, pause->b, PAUSE_SHIFT);
	if (signal->delay_ns <= seen_ns || signal->delay_ns - seen_ns <= law->threshold_ns)
		return false;
	return pause_assert(pause, law, signal,
			    signal->delay_ns - seen_ns - law->threshold_ns);
}
EXPORT_SYMBOL_GPL(timely_pause_hear);

/**
 * timely_pause_start() - hold a flow that starts, by what another one measured
 * @pause: the flow's state
 * @law: the parameters
 * @signal: the other's delay; its asserted_ns is of no use here
 * @age_ns: how long ago it was measured
 *
 * The paper's section 5.2.1: a flow need not wait an RTT to learn of a queue
 * that is known already. What has drained since is taken off.
 *
 * Return: whether @pause->until_ns changed.
 */
bool timely_pause_start(struct timely_pause *pause, const struct timely_pause_law *law,
			const struct timely_pause_signal *signal, u64 age_ns)
{
	u64 delay_ns = signal->delay_ns;

	if (delay_ns > TIMELY_PAUSE_DELAY_MAX_NS || signal->now_ns < pause->until_ns)
		return false;
	if (delay_ns <= age_ns || delay_ns - age_ns <= law->threshold_ns)
		return false;
	return pause_assert(pause, law, signal, delay_ns - age_ns - law->threshold_ns);
}
EXPORT_SYMBOL_GPL(timely_pause_start);

/* A flow that was held may send so much faster than it did on average, in
 * quarters, and so many bytes in a round trip anyway; two round trips after the
 * hold it is half as much again, and again with every round trip.
 */
#define RESUME_QUARTERS		7
#define RESUME_MIN_BYTES	6000ULL
#define RESUME_FIRST_RTTS	2
/* A hold so many round trips ago says nothing of the present one. */
#define RESUME_STALE_RTTS	16
/* What exceeds this need not be limited: 800 Gb/s. */
#define RESUME_MAX_BPS		100000000000ULL
/* Of a period that is longer so much counts: products fit. */
#define RESUME_MAX_NS		((u64)NSEC_PER_SEC)
#define RESUME_MAX_BYTES	(1ULL << 33)

/**
 * timely_resume_init() - start a flow that was not held of late
 * @resume: the flow's state
 */
void timely_resume_init(struct timely_resume *resume)
{
	*resume = (struct timely_resume) { .rate_Bps = TIMELY_RESUME_UNLIMITED };
}
EXPORT_SYMBOL_GPL(timely_resume_init);

/**
 * timely_resume_hold() - a hold begins
 * @resume: the flow's state
 * @now_ns: the time
 * @until_ns: when it is going to end
 * @rtt_ns: how long the signal took from the packet's departure on
 * @bytes: what the flow has sent since it was made
 *
 * Not in the paper, whose flows go on as they did before a hold. Each sends for a
 * round trip until it hears what came of it. If that is at more than twice its
 * share, as a window that grew while nothing was lost allows, queues and holds
 * only grow with each other. What a flow sent from hold to hold is its share, if
 * they are close: over a long time much of it may have been idle.
 */
void timely_resume_hold(struct timely_resume *resume, u64 now_ns, u64 until_ns,
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
EXPORT_SYMBOL_GPL(timely_resume_hold);

/**
 * timely_resume_go_on() - a signal, and no hold begins
 * @resume: the flow's state
 * @now_ns: the time
 * @rtt_ns: as for timely_resume_hold()
 */
void timely_resume_go_on(struct timely_resume *resume, u64 now_ns, u64 rtt_ns)
{
	if (resume->rate_Bps == TIMELY_RESUME_UNLIMITED || now_ns < resume->grow_ns)
		return;
	resume->grow_ns = now_ns + rtt_ns;
	resume->rate_Bps += resume->rate_Bps / 2 + 1;
	if (resume->rate_Bps > RESUME_MAX_BPS)
		timely_resume_init(resume);
}
EXPORT_SYMBOL_GPL(timely_resume_go_on);

/**
 * timely_floor_init() - a window without values
 * @floor: the window
 */
void timely_floor_init(struct timely_floor *floor)
{
	floor->half_ns = 0;
	floor->least = U64_MAX;
	floor->before = U64_MAX;
}
EXPORT_SYMBOL_GPL(timely_floor_init);

/**
 * timely_floor_add() - a value, and the least of the window
 * @floor: the window
 * @now_ns: the time
 * @half_length_ns: half of the window's length
 * @value: the value
 *
 * A value counts for one to two times @half_length_ns.
 *
 * Return: the least value of the window, this one included.
 */
u64 timely_floor_add(struct timely_floor *floor, u64 now_ns, u64 half_length_ns, u64 value)
{
	/* CPUs may tell the time out of order: that much belongs to this half.
	 * A time that was set back by more is a new one.
	 */
	bool back = (s64)(now_ns - floor->half_ns) < 0;
	u64 gone_ns = back ? floor->half_ns - now_ns : now_ns - floor->half_ns;

	if (gone_ns >= half_length_ns) {
		if (back || gone_ns - half_length_ns >= half_length_ns) {
			floor->before = U64_MAX;
			floor->half_ns = now_ns;
		} else {
			floor->before = floor->least;
			floor->half_ns += half_length_ns;
		}
		floor->least = U64_MAX;
	}
	floor->least = min(floor->least, value);
	return min(floor->least, floor->before);
}
EXPORT_SYMBOL_GPL(timely_floor_add);

static u64 floor_shifted(u64 least, s64 more)
{
	u64 room = U64_MAX - 1 - least;

	if (least == U64_MAX)
		return least;
	return more < 0 ? least - min(least, -(u64)more) : least + min_t(u64, more, room);
}

/**
 * timely_floor_shift() - what values are measured from has moved
 * @floor: the window
 * @more: how much greater the same value is now; it does not become less than 0
 */
void timely_floor_shift(struct timely_floor *floor, s64 more)
{
	floor->least = floor_shifted(floor->least, more);
	floor->before = floor_shifted(floor->before, more);
}
EXPORT_SYMBOL_GPL(timely_floor_shift);
