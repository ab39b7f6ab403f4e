// SPDX-License-Identifier: GPL-2.0
/*
 * The steering rule: hold a queue that is just long enough, whatever the line, the
 * path and the number of flows. Not in the papers; what it is made of is TIMELY's
 * gradient, patched TIMELY's reference and the flow scaling of Swift (SIGCOMM'20).
 *
 *	q = rtt - minRTT			the queueing delay
 *	q0 = RTTref - minRTT + k / sqrt(rate)	where it should be
 *	rate *= 1 - x + 3/8 x^2 - beta * T' * e,  x = damp * (rtt - previous rtt) / T
 *
 * T is the time since the last update, at least a round trip: minRTT, or what the longer of
 * the two RTTs is beyond q0 if that is longer. The first term is the share by which the path
 * is overloaded, which is what the gradient was meant to tell. Between completions that come
 * faster than that it adds up to the same, as the differences do: it is the proportional part
 * of a controller of q, of which the second term is the integral part. Thus noise in an RTT is
 * taken back with the next one, and so is a passing burst. Nearly exactly: were T of the last
 * RTT alone, a fall would count for more than the rise before it, and flows whose RTTs vary
 * would take far more than their share; without x^2 they would lose the product of the two
 * each time, and not fill a line. T' is the time as a share of the round trip, at most 1, and
 * less again for flows that hear of the path rarely: at most 24 q0 / T, or minRTT / T.
 *
 * Where rates come late, as under fq, T is of the last RTT and x^2 is left out: flows to a
 * receiver that holds ACKs learn of it late there, and the rise by noise is what keeps them
 * up until then.
 *
 * In a long queue a round trip is long, and what is heard within it is of the time before
 * the first answer: who took each completion for news would be at the least rate by the time
 * that his answer is felt, and there for long, as he hears of the path so rarely.
 *
 * e is q's error, q - q0, as a share of what there is room for:
 *
 *	below q0	of q, but at least of min(q0, minRTT / 4) / 2
 *	above q0	of q0, but at least of minRTT / 4
 *
 * The quarters are what makes it stable on paths that are long for their queue: what
 * is done within a round trip is felt only after it. Upwards the room may be less, or
 * queues that are short for their path would never fill.
 *
 * q0 grows as the rate falls: N sources' bursts meet in queues of sqrt(N) of them; and
 * as there is but one rate for each q where e is 0, and it does not depend on minRTT,
 * flows meet at equal rates, no matter how long their paths are.
 *
 * A message has the right of way at its beginning: for its first 128 KB q0 is longer, by a
 * share of minRTT that goes as they do, so that flows that send for long make room. While
 * the queue is below half of that the rate grows by a quarter a round trip: who sends ten
 * segments has no time to find his rate by small steps.
 *
 * Above Thigh a rate falls to what arrives, by half with each completion at most. What arrives
 * adds up to the line, however many they are, while halving rates once a round trip takes longer
 * than most messages do.
 *
 * Receivers hold ACKs back and merge them, for less than makes them delayed: noise of
 * the size of a queue. Where it is known, q is about the least of late, so that what is
 * left of it is small; T' and the least T are as much longer as keeps the gradient from
 * being the noise's; T is the time between the two segments' departures, as ACKs
 * that come together say nothing of it; and changes are such that two opposite ones leave
 * the rate as it was.
 *
 * Pure, like rate.c.
 */

#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "steer.h"

#define Q16_ONE		(1U << 16)
#define Q32_ONE		(1LL << 32)
#define INV_SHIFT	56		/* of timely_rate_law.inv_min_rtt */

/* An error counts as four at most, with beta of 2 % for a twelfth of the rate in a
 * round trip; more would be late where queues are short for their path.
 */
#define STEER_ERROR_MAX_Q16	(4U << 16)

/* One completion does not raise a rate by more, or lower it. */
#define STEER_RISE_MAX_Q32	(Q32_ONE / 4)
#define STEER_FALL_MAX_Q32	(Q32_ONE / 2)

/* Of x^2: half of it would take a rise and a fall back exactly. Flows whose RTTs vary by more
 * than others' are to lose by it a little rather than to gain.
 */
#define STEER_DAMP_EIGHTHS	3

/* What one completion says of the queue is good for the time in which so many queues
 * as long as q0 pass. Where flows hear of it more rarely, all that answered it in full
 * would have the port empty and full in turns.
 */
#define STEER_RARE_QUEUES	24

/* At the beginning of a message: q0 is longer by this share of minRTT; the rate grows by one
 * in so many a round trip, and by no more than all of it at a time.
 */
#define STEER_FRESH_PERCENT	40
#define STEER_FRESH_RISE	4

/* So many times its mean the noise's part in the scale is: 50 us, evenly, then change
 * a rate by 10 % at most. What is late counts 2^5 completions for that noise, twice as
 * many for twice as much.
 */
#define STEER_NOISE_SPAN	8
#define STEER_NOISE_LOG2	10

#define STEER_REF_MAX_NS	1000000000ULL
#define STEER_DIFF_MAX_NS	0x7fffffffLL

/* A longer time since the last update counts as this one: four seconds. */
#define STEER_SINCE_MAX_NS	U32_MAX

/* sqrt(125e6 bytes/s, Q16): timely_rate_law.flow_term is for a rate of 1. */
#define STEER_ROOT_1G		2862167U

/**
 * timely_steer_law_init() - what the rule needs of the parameters
 * @law: filled in
 * @params: checked by timely_params_check()
 */
void timely_steer_law_init(struct timely_rate_law *law, const struct timely_params *params)
{
	law->damp_q16 = div_u64(((u64)params->damp_ppm << 16) + 500000, 1000000);
	law->scale_ns = params->min_rtt_ns + STEER_NOISE_SPAN * params->rtt_noise_ns;
	law->inv_scale = div_u64(1ULL << INV_SHIFT, law->scale_ns);
	if (params->rtt_noise_ns)
		law->least_shift = max(fls64(params->rtt_noise_ns), STEER_NOISE_LOG2 + 1) -
				   STEER_NOISE_LOG2;
	law->flow_term = (u64)params->rtt_ref_1g_ns * STEER_ROOT_1G;
	law->fresh_ns = div_u64((u64)params->min_rtt_ns * STEER_FRESH_PERCENT, 100);
}

/* 1 / sqrt(@m_q14) for 1 to 4, Q15: a line that is off by a tenth, and Newton's
 * rule twice, after which it is off by less than a thousandth.
 */
static u32 steer_inverse_root_q15(u32 m_q14)
{
	u32 y = 34406 - (m_q14 * 4751 >> 14);
	u32 i, one;

	for (i = 0; i < 2; i++) {
		one = (m_q14 * y >> 14) * y >> 15;
		y = y * (3 * 32768 - one) >> 16;
	}
	return y;
}

/**
 * timely_steer_ref_ns() - the RTT that a flow steers to
 * @law: the parameters
 * @rate_fp: its rate, bytes per second, Q16, at least 1 kbit/s
 *
 * Return: ns.
 */
u32 timely_steer_ref_ns(const struct timely_rate_law *law, u64 rate_fp)
{
	/* rate_fp is m * 2^shift, with m from 1 to 4 */
	u32 shift = (fls64(rate_fp) - 1) & ~1U;
	u32 y = steer_inverse_root_q15(rate_fp >> (shift - 14));
	u64 ns = mul_u64_u64_shr(law->flow_term, y, 15 + shift / 2);

	return min(ns + law->rtt_ref_ns, STEER_REF_MAX_NS);
}
EXPORT_SYMBOL_GPL(timely_steer_ref_ns);

/* A round trip, as it is now but for a queue as long as it should be. */
static u32 steer_round_ns(const struct timely_rate_law *law, u32 rtt, u32 q0)
{
	return max(law->scale_ns, rtt - min(rtt, q0));
}

/* 2^56 / @period_ns: what one completion needs of divisions by times. */
static u64 steer_inverse(const struct timely_rate_law *law, u32 period_ns)
{
	if (period_ns == law->scale_ns)
		return law->inv_scale;
	return div_u64(1ULL << INV_SHIFT, period_ns);
}

/* The share to take off for the gradient, Q32. */
static s64 steer_damp_q32(const struct timely_rate_law *law, s64 diff, u64 inv_period)
{
	u64 part = min(diff < 0 ? -diff : diff, STEER_DIFF_MAX_NS) * law->damp_q16;

	part = mul_u64_u64_shr(part, inv_period, INV_SHIFT - 16);
	part = min_t(u64, part, Q32_ONE);
	return diff < 0 ? -(s64)part : part;
}

/* @n / @d, Q16, at most STEER_ERROR_MAX_Q16: a division of 32 bits is the cheaper one, and
 * leaves thirteen that count.
 */
static u32 steer_ratio_q16(u32 n, u32 d)
{
	u32 shift = max(fls64(n), 16) - 16;

	if (n / (STEER_ERROR_MAX_Q16 >> 16) >= d)
		return STEER_ERROR_MAX_Q16;
	return ((n >> shift) << 16) / (d >> shift);
}

/* The queue's error as a share of the room it has, Q16. */
static s64 steer_error_q16(const struct timely_rate_law *law, u32 q, u32 q0)
{
	u32 span = law->min_rtt_ns / 4;

	if (q < q0)
		return -(s64)steer_ratio_q16(q0 - q, max3(q, min(q0, span) / 2, 1U));
	return steer_ratio_q16(q - q0, max3(q0, span, 1U));
}

/* Has the queue been short for long, so that bandwidth must have become free? Then
 * the rate grows by shares: hyperactive increase, for lines of any speed.
 */
static s64 steer_hyper_q32(struct timely_rate *r, const struct timely_rate_law *law,
			   u32 q, u32 q0, u64 dt_ns, u32 weight_q16)
{
	if (q >= q0 / 2) {
		r->low_ns = 0;
		return -STEER_FALL_MAX_Q32;
	}
	r->low_ns = min_t(u64, r->low_ns + min_t(u64, dt_ns, law->scale_ns), U32_MAX);
	if (!law->hai_threshold || r->low_ns < (u64)law->hai_threshold * law->scale_ns)
		return -STEER_FALL_MAX_Q32;
	return (s64)law->beta_q16 * law->hai_factor * weight_q16;
}

/* The share above the threshold that protects buffers, Q32; not while the queue
 * shrinks, as then the rates have come down already.
 */
static s64 steer_high_q32(const struct timely_rate_law *law, u32 rtt, s64 diff)
{
	if (rtt <= law->t_high_ns || diff < 0)
		return 0;
	return mul_u64_u32_shr(div_u64((u64)(rtt - law->t_high_ns) << 32, rtt),
			       law->beta_high_q16, 16);
}

/* How much of its weight an error has, Q16: for a round trip, as it is asked each time. */
static u32 steer_weight_q16(u32 q0, u32 round_ns, u64 dt_ns, u64 inv_period)
{
	u64 known_ns = max_t(u64, (u64)STEER_RARE_QUEUES * q0, round_ns);

	if (dt_ns >= round_ns && dt_ns <= known_ns)
		return Q16_ONE;
	return mul_u64_u64_shr(min(dt_ns, known_ns), inv_period, INV_SHIFT - 16);
}

/* How much longer the queue may be for what is at the beginning of a message. */
static u32 steer_fresh_ns(const struct timely_rate *r, const struct timely_rate_law *law)
{
	return (u64)law->fresh_ns * r->fresh_kb / TIMELY_STEER_FRESH_KB;
}

static void steer_age(struct timely_rate *r, u32 bytes)
{
	r->fresh_kb -= min_t(u32, r->fresh_kb, (bytes >> 10) + 1);
}

/* What such a flow gains as long as there is hardly a queue. */
static s64 steer_fresh_gain_q32(const struct timely_rate_law *law, u64 dt_ns)
{
	dt_ns = min_t(u64, dt_ns, STEER_FRESH_RISE * (u64)law->min_rtt_ns);
	return mul_u64_u64_shr(dt_ns, law->inv_min_rtt, INV_SHIFT - 32) / STEER_FRESH_RISE;
}

/* Among noise, about the least queue of late: down at once, up by and by. A mean of the
 * noise to take off cannot be had while there is a queue, nor one that all flows share.
 */
static u32 steer_least_ns(struct timely_rate *r, const struct timely_rate_law *law, u32 q)
{
	if (!r->seeded || q <= r->least_ns)
		r->least_ns = q;
	else
		r->least_ns += ((q - r->least_ns - 1) >> law->least_shift) + 1;
	return r->least_ns;
}

/* e^@x - 1, nearly, with 4 eighths: a rise and a fall of the same size cancel out. */
static s64 steer_exp_q32(s64 x, u32 eighths)
{
	u64 size = x < 0 ? -x : x;

	return x + (s64)mul_u64_u64_shr(eighths * size, size, 35);
}

/* The share of its rate that a flow gains, Q32. */
static s64 steer_gain_q32(struct timely_rate *r, const struct timely_rate_law *law,
			  u64 now_ns, u32 rtt)
{
	u32 q0 = timely_steer_ref_ns(law, r->rate_fp), q = rtt - law->min_rtt_ns;
	u32 prev_rtt = r->seeded ? r->prev_rtt_ns : rtt;
	s64 diff = (s64)rtt - prev_rtt;
	u64 dt_ns = r->seeded ? now_ns - r->updated_ns : law->scale_ns;
	u32 weight_q16, round_ns;
	u64 inv_period;
	s64 gain, high;

	q0 -= min(q0, law->min_rtt_ns);
	q0 += steer_fresh_ns(r, law);
	if (law->least_shift) {
		q = steer_least_ns(r, law, q);
		if (r->seeded)
			dt_ns = max_t(s64, dt_ns - diff, 0);
	}
	dt_ns = min_t(u64, dt_ns, STEER_SINCE_MAX_NS);
	round_ns = steer_round_ns(law, law->lags ? rtt : max(rtt, prev_rtt), q0);
	inv_period = steer_inverse(law, max_t(u32, dt_ns, round_ns));
	weight_q16 = steer_weight_q16(q0, round_ns, dt_ns, inv_period);
	gain = -steer_damp_q32(law, diff, inv_period);
	if (!law->least_shift && !law->lags)
		gain = steer_exp_q32(gain, STEER_DAMP_EIGHTHS);
	gain -= steer_error_q16(law, q, q0) * law->beta_q16 * weight_q16 >> 16;
	gain = max(gain, steer_hyper_q32(r, law, q, q0, dt_ns, weight_q16));
	gain = min(gain, STEER_RISE_MAX_Q32);
	if (r->fresh_kb && q < q0 / 2)
		gain = max(gain, steer_fresh_gain_q32(law, dt_ns));
	high = steer_high_q32(law, rtt, diff) * weight_q16 >> 16;
	if (high)
		gain = min(gain, -high);
	gain = max(gain, -STEER_FALL_MAX_Q32);
	return law->least_shift ? steer_exp_q32(gain, 4) : gain;
}

/**
 * timely_steer_fp() - the change of a flow's rate by the steering rule
 * @r: the flow's state
 * @law: the parameters
 * @c: the completion
 * @rtt: its RTT, at least minRTT
 *
 * Return: bytes per second, Q16.
 */
s64 timely_steer_fp(struct timely_rate *r, const struct timely_rate_law *law,
		    const struct timely_completion *c, u32 rtt)
{
	s64 gain = steer_gain_q32(r, law, c->now_ns, rtt);
	u64 change = mul_u64_u64_shr(r->rate_fp, gain < 0 ? -gain : gain, 32);

	if (gain < 0 && c->delivered_fp && rtt > law->t_high_ns)
		change = max(change, r->rate_fp - min(r->rate_fp, c->delivered_fp));

	steer_age(r, c->bytes);
	/* What an application sends now and then, less than it may, is not what makes the
	 * queues that it meets: its rate would fall with each until it was slow, too.
	 */
	if (gain < 0)
		return c->app_limited && !c->may_rise && rtt <= law->t_high_ns ?
		       0 : -(s64)change;
	/* Nor would it win back what it lost: up to a new flow's rate it may. */
	if (!c->may_rise) {
		r->low_ns = 0;
		change = min(change, law->first_rate_fp - min(law->first_rate_fp, r->rate_fp));
	}
	return change;
}
