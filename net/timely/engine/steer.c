// SPDX-License-Identifier: GPL-2.0
/*
 * The target-delay rule, which is the default rule of tcp_timely.
 *
 * The rule is this project's own. It combines the RTT gradient of TIMELY, the reference RTT of
 * patched TIMELY and the flow scaling of Swift (SIGCOMM'20), so that one set of gains serves any
 * link rate, any base RTT and any number of flows.
 *
 *	q  = rtt - min_rtt			queueing delay
 *	q0 = rtt_ref - min_rtt + k / sqrt(rate)	target delay
 *	x  = damp * (rtt - prev_rtt) / T	gradient term
 *	rate *= 1 - x + 3/8 x^2 - beta * W * e
 *
 * T is the time since the last update, but at least one round trip. One round trip is min_rtt, or
 * the longer of the two RTTs minus q0 if that is more.
 *
 * W is the weight of one update: the time since the last update as a share of the round trip, at
 * most 1. A flow that gets completions rarely has a smaller weight: at most 24 q0 / T or
 * min_rtt / T, whichever is more. The queue that the flow sampled has drained and filled again
 * since, and if all flows answered rare samples in full the port would be empty and full in turns.
 *
 * e is the error of the queueing delay, q - q0, divided by the room that there is, at most 4:
 *
 *	q < q0	the room is q, but at least min(q0, min_rtt / 4) / 2
 *	q > q0	the room is q0, but at least min_rtt / 4
 *
 * Gradient term. (rtt - prev_rtt) / T is the share by which the port is overloaded. The
 * differences of all RTTs add up to the change of the queue, however often completions come: the
 * gradient term is the proportional part of a PI controller of q. Noise in one RTT is taken back by
 * the next RTT. That holds only if a rise and the following fall are divided by the same T, hence
 * the longer of the two RTTs in T. The square makes up for most of the product of a rise and a
 * fall, which flows would lose each time.
 *
 * Error term. This is the integral part. The floor of min_rtt / 4 keeps the loop stable where the
 * queue is short compared with the path: a change made within one round trip is seen only in the
 * next. The room below q0 may be smaller, or queues that are short for their path would never fill.
 *
 * Fairness. q0 falls as the rate rises and does not depend on min_rtt. So each q has exactly one
 * rate with e = 0, and flows converge to equal rates whatever their base RTTs are. The square root
 * is for N senders whose bursts arrive at random times: they queue about sqrt(N) bursts.
 *
 * Long queues. A round trip is long then, and RTTs that arrive within one round trip were caused
 * before the first reaction took effect. A flow that reacted to each of them would reach its
 * minimum rate before it saw an effect, and would stay there for long, as slow flows get
 * completions rarely.
 *
 * Start of a message. For its first 128 KB a message has a higher q0, by 40 % of min_rtt falling to
 * 0. Long-running flows yield to the message. While q is below half of q0 the rate grows by a
 * quarter per round trip: a message of ten segments has no time to find its rate by small steps.
 *
 * Above t_high the rate falls to the delivery rate, by at most half per update. The delivery rates
 * of all flows add up to the link rate, so this ends an overload by any number of flows at once.
 * Halving all rates once per round trip takes longer than most messages last.
 *
 * Host delay. Under fq, packets that wait in the host leave at the rate of the time when they were
 * queued, so new rates take effect late. T is computed from the last RTT only and the square is
 * left out then, which lets rates rise by the variation of RTTs. Flows whose receiver aggregates
 * ACKs need that until the aggregation is known, which takes longer under fq.
 *
 * ACK aggregation. Receivers hold ACKs back and merge ACKs, which adds to RTTs as much as a queue
 * does. Where the path is known to do so (rtt_noise_ns), q is about the least recent queueing
 * delay, T and W are computed for a longer round trip, T is the time between the departures of the
 * two segments, and a change followed by its opposite leaves the rate as it was.
 *
 * Pure: no socket, no clock. Documentation/tuning.md has the derivation, Documentation/results.md
 * the measurements.
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

/* The largest error e, Q16. With beta = 2 % an error of four changes the rate by a twelfth per
 * round trip. Larger changes overshoot where the queue is short compared with the path.
 */
#define STEER_ERROR_MAX_Q16	(4U << 16)

/* One update raises the rate by at most a quarter and lowers the rate by at most a half, Q32. */
#define STEER_RISE_MAX_Q32	(Q32_ONE / 4)
#define STEER_FALL_MAX_Q32	(Q32_ONE / 2)

/* Factor of x^2, in eighths. With four eighths a rise and a fall of the same size would cancel
 * exactly. With three, flows whose RTTs vary more than those of others lose a little.
 */
#define STEER_DAMP_EIGHTHS	3

/* A completion tells the state of the queue for this many times q0. Flows that get completions
 * more rarely have a smaller weight: see W above.
 */
#define STEER_RARE_QUEUES	24

/* Start of a message: q0 is higher by this percentage of min_rtt. The rate grows by one part in
 * STEER_FRESH_RISE per round trip, and at most doubles in one update.
 */
#define STEER_FRESH_PERCENT	40
#define STEER_FRESH_RISE	4

/* ACK aggregation: the round trip is longer by this many times the mean of the aggregation, so
 * that RTTs that vary evenly by 50 us change a rate by 10 % at most. The minimum of the queueing
 * delay forgets over 2^5 completions for that mean, and over twice as many for twice the mean.
 */
#define STEER_NOISE_SPAN	8
#define STEER_NOISE_LOG2	10

#define STEER_REF_MAX_NS	1000000000ULL
#define STEER_DIFF_MAX_NS	0x7fffffffLL

/* The longest time since the last update that counts: four seconds. */
#define STEER_SINCE_MAX_NS	U32_MAX

/* sqrt(125e6 bytes/s in Q16), 1 Gbit/s: timely_rate_law.flow_term is for a rate of 1. */
#define STEER_ROOT_1G		2862167U

/**
 * timely_steer_law_init() - convert the rule's parameters to fixed point
 * @law: the members that only this rule uses are set
 * @params: the parameters, which timely_params_check() has accepted
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

/* 1 / sqrt(@m_q14) in Q15, for 1 to 4 in Q14: a linear estimate, which is off by up to a tenth, and
 * two steps of Newton's method, after which the result is off by less than a thousandth.
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
 * timely_steer_ref_ns() - the RTT that belongs to a flow's target delay
 * @law: the configuration of the rule
 * @rate_fp: the flow's rate, bytes per second, Q16, at least 1 kbit/s
 *
 * Return: that RTT, ns, at most one second.
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

/* One round trip: the present RTT without the target delay, at least the configured minimum. */
static u32 steer_round_ns(const struct timely_rate_law *law, u32 rtt, u32 q0)
{
	return max(law->scale_ns, rtt - min(rtt, q0));
}

/* 2^56 / @period_ns: the only 64-bit division of most updates. */
static u64 steer_inverse(const struct timely_rate_law *law, u32 period_ns)
{
	if (period_ns == law->scale_ns)
		return law->inv_scale;
	return div_u64(1ULL << INV_SHIFT, period_ns);
}

/* The gradient term x: the share of the rate to take off, Q32. */
static s64 steer_damp_q32(const struct timely_rate_law *law, s64 diff, u64 inv_period)
{
	u64 part = min(diff < 0 ? -diff : diff, STEER_DIFF_MAX_NS) * law->damp_q16;

	part = mul_u64_u64_shr(part, inv_period, INV_SHIFT - 16);
	part = min_t(u64, part, Q32_ONE);
	return diff < 0 ? -(s64)part : part;
}

/* @n / @d in Q16, at most STEER_ERROR_MAX_Q16. A division of 32 bits is cheaper than one of 64 bits
 * and leaves thirteen significant bits.
 */
static u32 steer_ratio_q16(u32 n, u32 d)
{
	u32 shift = max(fls64(n), 16) - 16;

	if (n / (STEER_ERROR_MAX_Q16 >> 16) >= d)
		return STEER_ERROR_MAX_Q16;
	return ((n >> shift) << 16) / (d >> shift);
}

/* The error e of the queueing delay @q, Q16, signed. */
static s64 steer_error_q16(const struct timely_rate_law *law, u32 q, u32 q0)
{
	u32 span = law->min_rtt_ns / 4;

	if (q < q0)
		return -(s64)steer_ratio_q16(q0 - q, max3(q, min(q0, span) / 2, 1U));
	return steer_ratio_q16(q - q0, max3(q0, span, 1U));
}

/* Hyperactive increase: if the queueing delay was below half of the target for hai_threshold round
 * trips, bandwidth has become free, and the rate grows by a share of itself. Return: that share,
 * Q32; the largest fall if there is no such increase.
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

/* The share to take off above t_high, which protects switch buffers, Q32. Nothing is taken off
 * while RTTs fall, as rates have been reduced already then.
 */
static s64 steer_high_q32(const struct timely_rate_law *law, u32 rtt, s64 diff)
{
	if (rtt <= law->t_high_ns || diff < 0)
		return 0;
	return mul_u64_u32_shr(div_u64((u64)(rtt - law->t_high_ns) << 32, rtt),
			       law->beta_high_q16, 16);
}

/* The weight W of one update, Q16. */
static u32 steer_weight_q16(u32 q0, u32 round_ns, u64 dt_ns, u64 inv_period)
{
	u64 known_ns = max_t(u64, (u64)STEER_RARE_QUEUES * q0, round_ns);

	if (dt_ns >= round_ns && dt_ns <= known_ns)
		return Q16_ONE;
	return mul_u64_u64_shr(min(dt_ns, known_ns), inv_period, INV_SHIFT - 16);
}

/* How much higher the target delay is at the start of a message, ns. */
static u32 steer_fresh_ns(const struct timely_rate *r, const struct timely_rate_law *law)
{
	return (u64)law->fresh_ns * r->fresh_kb / TIMELY_STEER_FRESH_KB;
}

/* @bytes more of the message were completed. */
static void steer_age(struct timely_rate *r, u32 bytes)
{
	r->fresh_kb -= min_t(u32, r->fresh_kb, (bytes >> 10) + 1);
}

/* The share that a flow gains at the start of a message while the queue is short, Q32. */
static s64 steer_fresh_gain_q32(const struct timely_rate_law *law, u64 dt_ns)
{
	dt_ns = min_t(u64, dt_ns, STEER_FRESH_RISE * (u64)law->min_rtt_ns);
	return mul_u64_u64_shr(dt_ns, law->inv_min_rtt, INV_SHIFT - 32) / STEER_FRESH_RISE;
}

/* Where ACKs are aggregated: about the least recent queueing delay. The value follows a smaller
 * delay at once and a larger one slowly. The mean of the aggregation cannot be subtracted instead:
 * the mean cannot be measured while there is a queue, and flows would not agree on one.
 */
static u32 steer_least_ns(struct timely_rate *r, const struct timely_rate_law *law, u32 q)
{
	if (!r->seeded || q <= r->least_ns)
		r->least_ns = q;
	else
		r->least_ns += ((q - r->least_ns - 1) >> law->least_shift) + 1;
	return r->least_ns;
}

/* @x + @eighths / 8 * @x^2, Q32. With four eighths that is nearly e^@x - 1, so that a rise and a
 * fall of the same size cancel out.
 */
static s64 steer_exp_q32(s64 x, u32 eighths)
{
	u64 size = x < 0 ? -x : x;

	return x + (s64)mul_u64_u64_shr(eighths * size, size, 35);
}

/* The share of the rate to add, Q32, signed. */
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
 * timely_steer_fp() - the change of a flow's rate by the target-delay rule
 * @r: the flow's state
 * @law: the configuration of the rule
 * @c: the completion
 * @rtt: the completion's RTT, ns, at least min_rtt
 *
 * Return: the change, bytes per second, Q16, signed.
 */
s64 timely_steer_fp(struct timely_rate *r, const struct timely_rate_law *law,
		    const struct timely_completion *c, u32 rtt)
{
	s64 gain = steer_gain_q32(r, law, c->now_ns, rtt);
	u64 change = mul_u64_u64_shr(r->rate_fp, gain < 0 ? -gain : gain, 32);

	if (gain < 0 && c->delivered_fp && rtt > law->t_high_ns)
		change = max(change, r->rate_fp - min(r->rate_fp, c->delivered_fp));

	steer_age(r, c->bytes);
	/* An application that sends less than its rate allows does not cause the queues that its
	 * packets meet. If its rate fell for them, the rate would end at the minimum.
	 */
	if (gain < 0)
		return c->app_limited && !c->may_rise && rtt <= law->t_high_ns ?
		       0 : -(s64)change;
	/* Such an application could not regain a lost rate either, so its rate may rise up to the
	 * rate of a new flow.
	 */
	if (!c->may_rise) {
		r->low_ns = 0;
		change = min(change, law->first_rate_fp - min(law->first_rate_fp, r->rate_fp));
	}
	return change;
}
