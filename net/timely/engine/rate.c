// SPDX-License-Identifier: GPL-2.0
/*
 * TIMELY's rate computation engine: a completion in, a rate out.
 *
 * Algorithm 1 of "TIMELY: RTT-based Congestion Control for the Datacenter"
 * (SIGCOMM'15) compares the RTT of each completed segment with two thresholds
 * and, in between, follows the RTT's gradient:
 *
 *	rtt < Tlow	rate += N * delta
 *	rtt > Thigh	rate *= 1 - beta * (1 - Thigh / rtt)
 *	g <= 0		rate += N * delta
 *	g > 0		rate *= 1 - beta * g
 *
 * where g is the smoothed difference of successive RTTs over minRTT. Between
 * the thresholds, patched TIMELY ("ECN or Delay", CoNEXT'16) blends a step up
 * with a pull towards RTTref, so that flows meet at one fair rate:
 *
 *	rate = delta * (1 - w) + rate * (1 - beta * w * (rtt - RTTref) / RTTref)
 *	w = 0 for g <= -1/4, 1 for g >= 1/4, 2g + 1/2 in between
 *
 * With one threshold for both, Tlow = Thigh, the queue's length alone decides (the
 * paper's section 4.4): the rate rises below it and falls above it. And in the
 * place of all this there is what the paper compares itself with, FAST*: the
 * equation of FAST TCP (ToN 2006), on the rate, once an RTT:
 *
 *	rate = min(2 * rate, (1 - gamma) * rate + gamma * (minRTT / rtt * rate + delta))
 *
 * Differences from the papers, with their reasons in Documentation/deviations.md:
 *  - all branches shrink when completions come faster than one a minRTT (the
 *    paper's section 5; the authors' code leaves the gradient decrease out)
 *  - the additive step is scaled by the bytes completed
 *  - no update takes more than half of the rate (the authors' code)
 *  - an RTT below minRTT counts as minRTT
 *  - in the patched rule, hyperactive increase needs g <= -1/4
 *  - a loss decreases the rate; the papers are silent
 *
 * Pure: no socket, no clock, no floating point.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "rate.h"
#include "steer.h"

#define Q16_ONE		(1U << 16)
#define Q32_ONE		(1ULL << 32)
#define INV_SHIFT	56		/* of timely_rate_law.inv_* in ns */
#define DIFF_SHIFT	8		/* fraction bits of timely_rate.diff_fp */

/* Saturation: beyond these a factor no longer changes the outcome. */
#define GRADIENT_MAX_Q16	(1LL << 32)
#define ERROR_MAX_Q16		(1LL << 24)

/* One completion may stand for several segments when ACKs are stretched, but
 * not for so many that one step overwhelms the path.
 */
#define STEP_MAX_SEGMENTS	16

static u32 ppm_to_q16(u32 ppm)
{
	return div_u64(((u64)ppm << 16) + 500000, 1000000);
}

static u64 kbps_to_fp(u32 kbps)
{
	return ((u64)kbps * 125) << TIMELY_RATE_SHIFT;
}

/* Towards the nearest; a plain >> of a negative number would stick at -1. */
static s64 shift_round(s64 value, unsigned int shift)
{
	s64 half = 1LL << (shift - 1);

	return value < 0 ? -((half - value) >> shift) : (value + half) >> shift;
}

/**
 * timely_rate_law_init() - make parameters ready for the hot path
 * @law: filled in
 * @params: checked by timely_params_check()
 */
void timely_rate_law_init(struct timely_rate_law *law,
			  const struct timely_params *params)
{
	memset(law, 0, sizeof(*law));
	law->min_rtt_ns = params->min_rtt_ns;
	law->t_low_ns = params->t_low_ns;
	law->t_high_ns = params->t_high_ns;
	law->rtt_ref_ns = params->rtt_ref_ns;
	law->inv_min_rtt = div_u64(1ULL << INV_SHIFT, params->min_rtt_ns);
	law->inv_rtt_ref = div_u64(1ULL << INV_SHIFT, params->rtt_ref_ns);
	law->inv_segment = div_u64(Q32_ONE, params->segment_bytes);
	law->alpha_q16 = ppm_to_q16(params->alpha_ppm);
	law->beta_q16 = ppm_to_q16(params->beta_ppm);
	law->beta_high_q16 = ppm_to_q16(params->beta_high_ppm);
	law->loss_beta_q16 = ppm_to_q16(params->loss_beta_ppm);
	law->step_fp = kbps_to_fp(params->delta_kbps);
	law->min_rate_fp = kbps_to_fp(params->min_rate_kbps);
	law->max_rate_fp = kbps_to_fp(params->max_rate_kbps);
	law->first_rate_fp = kbps_to_fp(params->first_rate_kbps);
	law->hai_threshold = params->hai_threshold;
	law->hai_factor = params->hai_factor;
	law->hai_count = params->hai_count;
	law->hai_below_t_low = params->hai_below_t_low;
	law->rule = params->rule;
	law->scale_decrease = params->scale_decrease;
	law->scale_step = params->scale_step;
	law->once_per_rtt = params->once_per_rtt;
	timely_steer_law_init(law, params);
}
EXPORT_SYMBOL_GPL(timely_rate_law_init);

/**
 * timely_rate_init() - start a flow at the first rate
 * @r: the flow's state
 * @law: the parameters
 */
void timely_rate_init(struct timely_rate *r, const struct timely_rate_law *law)
{
	memset(r, 0, sizeof(*r));
	r->rate_fp = clamp(law->first_rate_fp, law->min_rate_fp,
			   law->max_rate_fp);
	r->fresh_kb = TIMELY_STEER_FRESH_KB;
}
EXPORT_SYMBOL_GPL(timely_rate_init);

/**
 * timely_rate_reseed() - forget the last RTT and the gradient, keep the rate
 * @r: the flow's state
 *
 * For when the next RTT says nothing of a trend: after an idle time, a timeout
 * or recovery. The next completion sees a gradient of zero.
 */
void timely_rate_reseed(struct timely_rate *r)
{
	r->diff_fp = 0;
	r->hai = 0;
	r->seeded = 0;
}
EXPORT_SYMBOL_GPL(timely_rate_reseed);

/**
 * timely_rate_lose() - react to a loss, at most once a window
 * @r: the flow's state
 * @law: the parameters
 *
 * Loss means that the RTT signal has failed or that RTTs will be missing for a
 * while; keeping the rate blindly would be wrong in either case.
 */
void timely_rate_lose(struct timely_rate *r, const struct timely_rate_law *law)
{
	u64 cut = mul_u64_u32_shr(r->rate_fp, law->loss_beta_q16, 16);

	r->rate_fp = max(r->rate_fp - cut, law->min_rate_fp);
	r->fresh_kb = 0;
	timely_rate_reseed(r);
}
EXPORT_SYMBOL_GPL(timely_rate_lose);

/* Where a message begins: a flow that has seen the path takes its part of the line, as in
 * CoNEXT'16, "ECN or Delay": C / (N + 1). One that has not is more careful, as those that
 * come up together do not see each other.
 */
static u64 timely_begin_fp(const struct timely_rate *r, const struct timely_rate_law *law,
			   u32 others)
{
	if (!law->share_fp || !r->prev_rtt_ns)
		return law->first_rate_fp;
	return max(div_u64(law->share_fp, others + 2), law->min_rate_fp);
}

/**
 * timely_rate_begin() - a message begins after an idle time
 * @r: the flow's state
 * @law: the parameters
 * @others: flows of this host that are sending, this one not among them; at most
 *	2^32 - 3
 *
 * By the steering rule it begins with its part of the line at least: what cut the rate was the
 * others of that time.
 */
void timely_rate_begin(struct timely_rate *r, const struct timely_rate_law *law, u32 others)
{
	if (law->rule == TIMELY_RULE_STEER)
		r->rate_fp = clamp(timely_begin_fp(r, law, others), r->rate_fp, law->max_rate_fp);
	r->fresh_kb = TIMELY_STEER_FRESH_KB;
	timely_rate_reseed(r);
}
EXPORT_SYMBOL_GPL(timely_rate_begin);

/**
 * timely_rate_restart() - start again after a long idle time
 * @r: the flow's state
 * @law: the parameters
 *
 * What was learnt of the path has aged: not faster than a new flow would.
 */
void timely_rate_restart(struct timely_rate *r,
			 const struct timely_rate_law *law)
{
	r->rate_fp = min(r->rate_fp, max(law->first_rate_fp, law->min_rate_fp));
	r->fresh_kb = TIMELY_STEER_FRESH_KB;
	timely_rate_reseed(r);
}
EXPORT_SYMBOL_GPL(timely_rate_restart);

/* How much of a minRTT has passed since the last update, at most 1, Q16. */
static u32 timely_elapsed_q16(const struct timely_rate *r,
			      const struct timely_rate_law *law, u64 now_ns)
{
	u64 dt = now_ns - r->updated_ns;

	if (!r->seeded || dt >= law->min_rtt_ns)
		return Q16_ONE;
	return mul_u64_u64_shr(dt, law->inv_min_rtt, INV_SHIFT - 16);
}

/* Fold a new RTT in; the smoothed gradient, Q16. */
static s64 timely_gradient_q16(struct timely_rate *r,
			       const struct timely_rate_law *law, s64 diff)
{
	s64 gap = diff * (1 << DIFF_SHIFT) - r->diff_fp;
	u64 gradient;

	r->diff_fp += shift_round(gap * law->alpha_q16, 16);
	gradient = mul_u64_u64_shr(r->diff_fp < 0 ? -r->diff_fp : r->diff_fp,
				   law->inv_min_rtt,
				   INV_SHIFT - 16 + DIFF_SHIFT);
	gradient = min_t(u64, gradient, GRADIENT_MAX_Q16);
	return r->diff_fp < 0 ? -(s64)gradient : gradient;
}

/* Patched TIMELY's weight of the pull towards RTTref, Q16. */
static u32 timely_weight_q16(s64 gradient)
{
	return clamp_t(s64, 2 * gradient + Q16_ONE / 2, 0, Q16_ONE);
}

/* Count towards hyperactive increase; "increases" are counted when known. */
static void timely_hai_observe(struct timely_rate *r,
			       const struct timely_rate_law *law,
			       u32 rtt, s64 diff, s64 gradient)
{
	bool falls;

	if (law->hai_count == TIMELY_HAI_INCREASES)
		return;
	if (law->hai_count == TIMELY_HAI_RAW)
		falls = diff < 0;
	else if (law->rule == TIMELY_RULE_PATCHED)
		falls = timely_weight_q16(gradient) == 0;
	else
		falls = gradient < 0;
	if (law->hai_below_t_low && rtt < law->t_low_ns)
		falls = true;
	r->hai = falls ? min_t(u32, r->hai + 1, U8_MAX) : 0;
}

static void timely_hai_settle(struct timely_rate *r,
			      const struct timely_rate_law *law, s64 change)
{
	if (law->hai_count == TIMELY_HAI_INCREASES && change > 0)
		r->hai = min_t(u32, r->hai + 1, U8_MAX);
	else if (law->hai_count != TIMELY_HAI_RAW && change < 0)
		r->hai = 0;
}

/* The additive step: steps x bytes completed x time covered. */
static u64 timely_step_fp(const struct timely_rate *r,
			  const struct timely_rate_law *law,
			  const struct timely_completion *c, bool hai_allowed,
			  u32 elapsed_q16)
{
	u64 weight = (u64)elapsed_q16 << 16;	/* Q32 */

	if (law->scale_step)
		weight = mul_u64_u32_shr(min_t(u64, (u64)c->bytes * law->inv_segment,
					       STEP_MAX_SEGMENTS * Q32_ONE),
					 elapsed_q16, 16);
	if (hai_allowed && law->hai_threshold && r->hai >= law->hai_threshold)
		weight *= law->hai_factor;
	return mul_u64_u64_shr(law->step_fp, weight, 32);
}

/* The share of the rate that goes in the high zone, Q32. */
static s64 timely_high_cut_q32(const struct timely_rate_law *law, u32 rtt)
{
	u64 excess_q32 = div_u64((u64)(rtt - law->t_high_ns) << 32, rtt);

	return mul_u64_u32_shr(excess_q32, law->beta_high_q16, 16);
}

/* The share that goes for a gradient above zero, Q32. */
static s64 timely_gradient_cut_q32(const struct timely_rate_law *law,
				   s64 gradient)
{
	return min_t(u64, (u64)law->beta_q16 * gradient, Q32_ONE);
}

/* The share that the patched rule takes, Q32; less than zero below RTTref. */
static s64 timely_patched_cut_q32(const struct timely_rate_law *law, u32 rtt,
				  u32 weight)
{
	s64 gap = (s64)rtt - law->rtt_ref_ns;
	s64 error;

	error = mul_u64_u64_shr(gap < 0 ? -gap : gap, law->inv_rtt_ref,
				INV_SHIFT - 16);
	error = min(error, ERROR_MAX_Q16);
	if (gap < 0)
		error = -error;
	return clamp_t(s64, shift_round((s64)law->beta_q16 * weight * error, 16),
		       -(s64)Q32_ONE, Q32_ONE);
}

static s64 timely_scale_fp(u64 rate_fp, s64 share_q32, u32 elapsed_q16)
{
	u64 share = share_q32 < 0 ? -share_q32 : share_q32;
	u64 part = mul_u64_u64_shr(rate_fp, (share * elapsed_q16) >> 16, 32);

	return share_q32 < 0 ? -(s64)part : part;
}

/* FAST's change: gamma * (delta - rate * (1 - minRTT / rtt)), at most the rate. */
static s64 timely_fast_fp(const struct timely_rate *r, const struct timely_rate_law *law,
			  u32 rtt)
{
	u64 queued_q32 = div_u64((u64)(rtt - law->min_rtt_ns) << 32, rtt);
	s64 rise = mul_u64_u32_shr(law->step_fp, law->alpha_q16, 16);

	rise -= timely_scale_fp(r->rate_fp,
				mul_u64_u32_shr(queued_q32, law->alpha_q16, 16), Q16_ONE);
	return min_t(s64, rise, r->rate_fp);
}

/* TIMELY's: Algorithm 1, or patched TIMELY between the thresholds. */
static s64 timely_change_fp(struct timely_rate *r, const struct timely_rate_law *law,
			    const struct timely_completion *c, u32 rtt,
			    enum timely_zone *zone)
{
	u32 elapsed = timely_elapsed_q16(r, law, c->now_ns);
	u32 scale = law->scale_decrease ? elapsed : Q16_ONE;
	s64 diff = r->seeded ? (s64)rtt - r->prev_rtt_ns : 0;
	s64 gradient = timely_gradient_q16(r, law, diff);
	s64 change;
	u32 w;

	timely_hai_observe(r, law, rtt, diff, gradient);
	if (rtt < law->t_low_ns) {
		*zone = TIMELY_ZONE_LOW;
		return timely_step_fp(r, law, c, law->hai_below_t_low, elapsed);
	}
	if (rtt > law->t_high_ns) {
		*zone = TIMELY_ZONE_HIGH;
		return -timely_scale_fp(r->rate_fp, timely_high_cut_q32(law, rtt), elapsed);
	}
	*zone = TIMELY_ZONE_GRADIENT;
	if (law->rule == TIMELY_RULE_PATCHED) {
		w = timely_weight_q16(gradient);
		change = mul_u64_u32_shr(timely_step_fp(r, law, c, w == 0, elapsed),
					 Q16_ONE - w, 16);
		return change - timely_scale_fp(r->rate_fp,
						timely_patched_cut_q32(law, rtt, w), scale);
	}
	if (gradient <= 0)
		return timely_step_fp(r, law, c, true, elapsed);
	return -timely_scale_fp(r->rate_fp, timely_gradient_cut_q32(law, gradient), scale);
}

/**
 * timely_rate_update() - compute a flow's rate from a completion
 * @r: the flow's state
 * @law: the parameters
 * @c: the completion
 *
 * The rate is always within the law's bounds afterwards.
 *
 * Return: the branch of Algorithm 1 that was taken; FAST* has but one.
 */
enum timely_zone timely_rate_update(struct timely_rate *r,
				    const struct timely_rate_law *law,
				    const struct timely_completion *c)
{
	u32 rtt = max(c->rtt_ns, law->min_rtt_ns);
	enum timely_zone zone = TIMELY_ZONE_GRADIENT;
	s64 change, rate;

	if (law->once_per_rtt && r->seeded &&
	    c->now_ns - r->updated_ns < r->prev_rtt_ns)
		return TIMELY_ZONE_NONE;

	if (law->rule == TIMELY_RULE_STEER)
		change = timely_steer_fp(r, law, c, rtt);
	else if (unlikely(law->rule == TIMELY_RULE_FAST))
		change = timely_fast_fp(r, law, rtt);
	else
		change = timely_change_fp(r, law, c, rtt, &zone);

	if (change > 0 && !c->may_rise && law->rule != TIMELY_RULE_STEER) {
		change = 0;
		r->hai = 0;
	}
	timely_hai_settle(r, law, change);

	rate = r->rate_fp;
	rate = max(rate + change, rate / 2);
	r->rate_fp = clamp_t(u64, rate, law->min_rate_fp, law->max_rate_fp);
	r->prev_rtt_ns = rtt;
	r->updated_ns = c->now_ns;
	r->seeded = 1;
	return zone;
}
EXPORT_SYMBOL_GPL(timely_rate_update);

/* So many losses in a row are put up with, of a share that is small: a round trip
 * is a few packets where paths are short, and a share of them says nothing. At half
 * of the share, at random, one account in a million is overdrawn.
 */
#define LOSS_CREDIT_MAX_Q16	(10U * Q16_ONE)

/**
 * timely_loss_share_q16() - a share, ready for the path of an ACK
 * @ppm: the share
 *
 * Return: the same, Q16.
 */
u32 timely_loss_share_q16(u32 ppm)
{
	return ppm_to_q16(ppm);
}
EXPORT_SYMBOL_GPL(timely_loss_share_q16);

/**
 * timely_loss_init() - open a flow's account of losses
 * @loss: the account
 * @lost: packets lost until now
 * @delivered: packets delivered until now
 */
void timely_loss_init(struct timely_loss *loss, u32 lost, u32 delivered)
{
	*loss = (struct timely_loss) { LOSS_CREDIT_MAX_Q16, lost, delivered };
}
EXPORT_SYMBOL_GPL(timely_loss_init);

/**
 * timely_loss_is_free() - draw losses on the account
 * @loss: the account
 * @share_q16: of the packets that may be lost, Q16; of what is delivered that is
 *	put in
 * @lost: packets lost until now
 * @delivered: packets delivered until now
 *
 * Networks lose packets for other reasons than queues: a policer, a dirty fibre.
 * There the RTT shows no queue, and a rate that halves for each of them ends at the
 * square root law's. Where much is lost, for whatever reason, less has to be sent.
 *
 * Return: false if the account is overdrawn: the rate has to fall.
 */
bool timely_loss_is_free(struct timely_loss *loss, u32 share_q16, u32 lost,
			 u32 delivered)
{
	u64 credit = loss->credit_q16 + (u64)(delivered - loss->delivered) * share_q16;
	u64 drawn = (u64)(lost - loss->lost) << 16;

	credit = min_t(u64, credit, LOSS_CREDIT_MAX_Q16);
	loss->credit_q16 = credit - min(credit, drawn);
	loss->lost = lost;
	loss->delivered = delivered;
	return drawn <= credit;
}
EXPORT_SYMBOL_GPL(timely_loss_is_free);
