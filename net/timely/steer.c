// SPDX-License-Identifier: GPL-2.0
/*
 * The steering rule: hold a queue that is just long enough, whatever the line, the
 * path and the number of flows. Not in the papers; what it is made of is TIMELY's
 * gradient, patched TIMELY's reference and the flow scaling of Swift (SIGCOMM'20).
 *
 *	q = rtt - minRTT			the queueing delay
 *	q0 = RTTref - minRTT + k / sqrt(rate)	where it should be
 *	rate *= 1 - damp * (rtt - previous rtt) / T - beta * T' * e
 *
 * T is the time since the last update, at least minRTT: the first term is the share
 * by which the path is overloaded, which is what the gradient was meant to tell.
 * Between completions that come faster than minRTT it adds up to the same, as the
 * differences do: it is the proportional part of a controller of q, of which the
 * second term is the integral part. Thus noise in an RTT is taken back with the next
 * one, and so is a passing burst. T' is the time as a share of minRTT, at most 1.
 *
 * e is q's error, q - q0, as a share of what there is room for:
 *
 *	below q0	of q, but at least of min(q0, minRTT / 4)
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
 * Pure, like rate.c.
 */

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include <net/timely_steer.h>

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

#define STEER_REF_MAX_NS	1000000000ULL
#define STEER_DIFF_MAX_NS	0x7fffffffLL

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
	law->flow_term = (u64)params->rtt_ref_1g_ns * STEER_ROOT_1G;
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

/* The share to take off for the gradient, Q32. */
static s64 steer_damp_q32(const struct timely_rate_law *law, s64 diff, u64 dt_ns)
{
	u64 part = min(diff < 0 ? -diff : diff, STEER_DIFF_MAX_NS) * law->damp_q16;

	if (dt_ns > law->min_rtt_ns)
		part = div_u64(part << 16, min_t(u64, dt_ns, U32_MAX));
	else
		part = mul_u64_u64_shr(part, law->inv_min_rtt, INV_SHIFT - 16);
	part = min_t(u64, part, Q32_ONE);
	return diff < 0 ? -(s64)part : part;
}

/* The queue's error as a share of the room it has, Q16. */
static s64 steer_error_q16(const struct timely_rate_law *law, u32 q, u32 q0)
{
	u32 span = law->min_rtt_ns / 4;
	u64 error;

	if (q < q0) {
		error = div_u64((u64)(q0 - q) << 16, max3(q, min(q0, span), 1U));
		return -(s64)min_t(u64, error, STEER_ERROR_MAX_Q16);
	}
	error = div_u64((u64)(q - q0) << 16, max3(q0, span, 1U));
	return min_t(u64, error, STEER_ERROR_MAX_Q16);
}

/* Has the queue been short for long, so that bandwidth must have become free? Then
 * the rate grows by shares: hyperactive increase, for lines of any speed.
 */
static s64 steer_hyper_q32(struct timely_rate *r, const struct timely_rate_law *law,
			   u32 q, u32 q0, u64 dt_ns, u32 elapsed_q16)
{
	if (q >= q0 / 2) {
		r->low_ns = 0;
		return -STEER_FALL_MAX_Q32;
	}
	r->low_ns = min_t(u64, r->low_ns + dt_ns, U32_MAX);
	if (!law->hai_threshold || r->low_ns < (u64)law->hai_threshold * law->min_rtt_ns)
		return -STEER_FALL_MAX_Q32;
	return (s64)law->beta_q16 * law->hai_factor * elapsed_q16;
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

/* The share of its rate that a flow gains, Q32. */
static s64 steer_gain_q32(struct timely_rate *r, const struct timely_rate_law *law,
			  u64 now_ns, u32 rtt)
{
	u32 q0 = timely_steer_ref_ns(law, r->rate_fp), q = rtt - law->min_rtt_ns;
	u64 dt_ns = r->seeded ? now_ns - r->updated_ns : law->min_rtt_ns;
	s64 diff = r->seeded ? (s64)rtt - r->prev_rtt_ns : 0;
	u32 elapsed_q16 = Q16_ONE;
	s64 gain, high;

	q0 -= min(q0, law->min_rtt_ns);
	if (dt_ns < law->min_rtt_ns)
		elapsed_q16 = mul_u64_u64_shr(dt_ns, law->inv_min_rtt, INV_SHIFT - 16);
	gain = -steer_damp_q32(law, diff, dt_ns);
	gain -= steer_error_q16(law, q, q0) * law->beta_q16 * elapsed_q16 >> 16;
	gain = max(gain, steer_hyper_q32(r, law, q, q0, dt_ns, elapsed_q16));
	high = steer_high_q32(law, rtt, diff) * elapsed_q16 >> 16;
	if (high)
		gain = min(gain, -high);
	return clamp(gain, -STEER_FALL_MAX_Q32, STEER_RISE_MAX_Q32);
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
