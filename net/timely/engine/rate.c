// SPDX-License-Identifier: GPL-2.0
/*
 * The rate computation engine: computes a connection's rate from each completion, which is an
 * acknowledged segment with its RTT (rtt.c). tcp_timely paces the connection at this rate. This
 * file has TIMELY's rules, FAST* and the common frame of all rules. The default rule is in
 * target_delay.c, Swift in swift.c, theta-PowerTCP in powertcp.c.
 *
 * Algorithm 1 of "TIMELY: RTT-based Congestion Control for the Datacenter" (SIGCOMM'15) compares
 * the RTT with two thresholds. Between the thresholds, the RTT's gradient g decides:
 *
 *	rtt < Tlow	rate += N * delta
 *	rtt > Thigh	rate *= 1 - beta * (1 - Thigh / rtt)
 *	g <= 0		rate += N * delta
 *	g > 0		rate *= 1 - beta * g
 *
 * g is the smoothed difference of successive RTTs, divided by minRTT. Between the thresholds,
 * patched TIMELY ("ECN or Delay", CoNEXT'16) combines a step up with a pull towards RTTref, so that
 * flows converge to one fair rate:
 *
 *	rate = delta * (1 - w) + rate * (1 - beta * w * (rtt - RTTref) / RTTref)
 *	w = 0 for g <= -1/4, 1 for g >= 1/4, 2g + 1/2 in between
 *
 * With Tlow = Thigh, the length of the queue alone decides (section 4.4 of the paper): the rate
 * rises below the threshold and falls above it.
 *
 * The rule FAST* uses none of the above. The TIMELY paper compares itself with FAST* (section 6.1).
 * FAST* applies the equation of FAST TCP (ToN 2006) to the rate, once per RTT:
 *
 *	rate = min(2 * rate, (1 - gamma) * rate + gamma * (minRTT / rtt * rate + delta))
 *
 * Differences from the papers, with their reasons in Documentation/deviations.md:
 *  - The changes of all branches are smaller when completions arrive more often than once per
 *    minRTT (section 5 of the paper). In the authors' code, the decrease for g > 0 is not smaller;
 *    nor is it in this code with scale_decrease = 0.
 *  - The additive step is scaled by the bytes completed if scale_step is set.
 *  - No update decreases the rate by more than half (authors' code). Window rules are an exception.
 *  - An RTT below minRTT counts as minRTT.
 *  - In the patched rule, hyperactive increase needs g <= -1/4.
 *  - A loss decreases the rate; the papers do not treat losses.
 *
 * The engine knows no socket and no clock, and uses no floating point.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "powertcp.h"
#include "rate.h"
#include "swift.h"
#include "target_delay.h"

#define Q16_ONE		(1U << 16)
#define Q32_ONE		(1ULL << 32)
#define INV_SHIFT	56		/* shift of timely_rate_cfg.inv_*, which are in 1/ns */
#define DIFF_SHIFT	8		/* fraction bits of timely_rate.diff_fp */

/* The gradient counts as at most 65536 and (rtt - RTTref) / RTTref as at most 256, so that products
 * with beta fit 64 bits. A larger gradient would change nothing: 65536 times the smallest beta,
 * 2^-16, already is a decrease by the whole rate, and no update decreases the rate by more than
 * half. A larger error would change nothing unless beta is below 1/256.
 */
#define GRADIENT_MAX_Q16	(1LL << 32)
#define ERROR_MAX_Q16		(1LL << 24)

/* With stretched ACKs, one completion stands for several segments. The additive step counts at most
 * this many segments, so that a single step does not overload the path.
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

/* @value / 2^@shift, rounded to the nearest integer. A plain >> rounds down, so an average
 * updated with a plain >> would come to rest below the true value.
 */
static s64 shift_round(s64 value, unsigned int shift)
{
	s64 half = 1LL << (shift - 1);

	return value < 0 ? -((half - value) >> shift) : (value + half) >> shift;
}

/**
 * timely_rate_cfg_init() - prepare parameters for the code that handles ACKs
 * @cfg: the prepared parameters
 * @params: parameters that timely_params_check() has accepted
 */
void timely_rate_cfg_init(struct timely_rate_cfg *cfg,
			  const struct timely_params *params)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->min_rtt_ns = params->min_rtt_ns;
	cfg->t_low_ns = params->t_low_ns;
	cfg->t_high_ns = params->t_high_ns;
	cfg->rtt_ref_ns = params->rtt_ref_ns;
	cfg->inv_min_rtt = div_u64(1ULL << INV_SHIFT, params->min_rtt_ns);
	cfg->inv_segment = div_u64(Q32_ONE, params->segment_bytes);
	cfg->alpha_q16 = ppm_to_q16(params->alpha_ppm);
	cfg->beta_q16 = ppm_to_q16(params->beta_ppm);
	cfg->beta_high_q16 = ppm_to_q16(params->beta_high_ppm);
	cfg->loss_beta_q16 = ppm_to_q16(params->loss_beta_ppm);
	cfg->step_fp = kbps_to_fp(params->delta_kbps);
	cfg->min_rate_fp = kbps_to_fp(params->min_rate_kbps);
	cfg->max_rate_fp = kbps_to_fp(params->max_rate_kbps);
	cfg->first_rate_fp = kbps_to_fp(params->first_rate_kbps);
	cfg->hai_threshold = params->hai_threshold;
	cfg->hai_factor = params->hai_factor;
	cfg->hai_count = params->hai_count;
	cfg->hai_below_t_low = params->hai_below_t_low;
	cfg->rule = params->rule;
	cfg->scale_decrease = params->scale_decrease;
	cfg->scale_step = params->scale_step;
	cfg->once_per_rtt = params->once_per_rtt;
	timely_target_cfg_init(cfg, params);
	if (cfg->rule != TIMELY_RULE_TARGET_DELAY) {
		cfg->inv_rtt_ref = div_u64(1ULL << INV_SHIFT, params->rtt_ref_ns);
		cfg->quiet_ns = U32_MAX;
	}
	if (params->rule == TIMELY_RULE_SWIFT)
		timely_swift_cfg_init(cfg, params);
}
EXPORT_SYMBOL_GPL(timely_rate_cfg_init);

/* A message starts. Only the target-delay rule treats its first bytes differently. */
static void timely_begin_message(struct timely_rate *r, const struct timely_rate_cfg *cfg)
{
	r->start_kb = cfg->rule == TIMELY_RULE_TARGET_DELAY ? TIMELY_TARGET_START_KB : 0;
}

/**
 * timely_rate_init() - set a new connection to the first rate
 * @r: the connection's state
 * @cfg: the parameters
 */
void timely_rate_init(struct timely_rate *r, const struct timely_rate_cfg *cfg)
{
	memset(r, 0, sizeof(*r));
	r->rate_fp = clamp(cfg->first_rate_fp, cfg->min_rate_fp,
			   cfg->max_rate_fp);
	timely_begin_message(r, cfg);
}
EXPORT_SYMBOL_GPL(timely_rate_init);

/**
 * timely_rate_reseed() - discard the last RTT and the gradient, and keep the rate
 * @r: the connection's state
 *
 * After an idle time, a timeout or recovery, the difference between the next RTT and the last one
 * says nothing about the queue. The next completion has a gradient of zero.
 */
void timely_rate_reseed(struct timely_rate *r)
{
	r->diff_fp = 0;
	r->hai = 0;
	r->seeded = 0;
}
EXPORT_SYMBOL_GPL(timely_rate_reseed);

/**
 * timely_rate_loss() - decrease the rate for a loss
 * @r: the connection's state
 * @cfg: the parameters
 *
 * A loss means that the RTT did not show the congestion in time, or that RTTs will be missing for a
 * while. Call this function at most once per window: the losses of one window have one cause.
 */
void timely_rate_loss(struct timely_rate *r, const struct timely_rate_cfg *cfg)
{
	u64 cut = mul_u64_u32_shr(r->rate_fp, cfg->loss_beta_q16, 16);

	r->rate_fp = max(r->rate_fp - cut, cfg->min_rate_fp);
	r->start_kb = 0;
	timely_rate_reseed(r);
	/* Swift decreases its window at most once per RTT, for a loss or for a long RTT. */
	if (cfg->rule == TIMELY_RULE_SWIFT)
		r->recent_ns = U32_MAX;
}
EXPORT_SYMBOL_GPL(timely_rate_loss);

/**
 * timely_rate_limit() - decrease the rate to a limit
 * @r: the connection's state
 * @cfg: the parameters
 * @limit_fp: the limit, bytes per second, Q16; the minimum rate counts if it is higher
 *
 * Return: whether the rate was decreased.
 */
bool timely_rate_limit(struct timely_rate *r, const struct timely_rate_cfg *cfg, u64 limit_fp)
{
	limit_fp = max(limit_fp, cfg->min_rate_fp);
	if (r->rate_fp <= limit_fp)
		return false;
	r->rate_fp = limit_fp;
	timely_rate_reseed(r);
	return true;
}
EXPORT_SYMBOL_GPL(timely_rate_limit);

/**
 * timely_rate_minimum() - decrease the rate to the minimum
 * @r: the connection's state
 * @cfg: the parameters
 *
 * Swift does this after TIMELY_SWIFT_TIMEOUTS successive timeouts.
 */
void timely_rate_minimum(struct timely_rate *r, const struct timely_rate_cfg *cfg)
{
	timely_rate_loss(r, cfg);
	r->rate_fp = cfg->min_rate_fp;
}
EXPORT_SYMBOL_GPL(timely_rate_minimum);

/* Rate at the start of a message: the connection takes its share of the link rate, C / (N + 1), as
 * in "ECN or Delay" (CoNEXT'16). N is @others. Connections of several hosts that start at the same
 * time do not know of each other, so the caller limits the window of a connection that has no
 * measurement yet.
 */
static u64 timely_start_fp(const struct timely_rate_cfg *cfg, u32 others)
{
	if (!cfg->share_fp)
		return cfg->first_rate_fp;
	return max(div_u64(cfg->share_fp, others + 1), cfg->min_rate_fp);
}

/**
 * timely_rate_start() - start a message: the first of a connection, or after an idle time
 * @r: the connection's state
 * @cfg: the parameters
 * @others: number of other connections of this host that have data to send; at most 2^32 - 2
 *
 * With the target-delay rule, the connection starts at no less than its share of the link rate: the
 * queue that reduced the rate before the idle time may be gone. The other rules keep the rate.
 */
void timely_rate_start(struct timely_rate *r, const struct timely_rate_cfg *cfg, u32 others)
{
	if (cfg->rule == TIMELY_RULE_TARGET_DELAY)
		r->rate_fp = clamp(timely_start_fp(cfg, others), r->rate_fp, cfg->max_rate_fp);
	timely_begin_message(r, cfg);
	timely_rate_reseed(r);
}
EXPORT_SYMBOL_GPL(timely_rate_start);

/**
 * timely_rate_restart() - restart after a long idle time
 * @r: the connection's state
 * @cfg: the parameters
 *
 * The last measurements of the path are too old, so the connection gets at most the first rate.
 */
void timely_rate_restart(struct timely_rate *r,
			 const struct timely_rate_cfg *cfg)
{
	r->rate_fp = min(r->rate_fp, max(cfg->first_rate_fp, cfg->min_rate_fp));
	timely_begin_message(r, cfg);
	timely_rate_reseed(r);
}
EXPORT_SYMBOL_GPL(timely_rate_restart);

/* Time since the last update divided by minRTT, at most 1, Q16. */
static u32 timely_elapsed_q16(const struct timely_rate *r,
			      const struct timely_rate_cfg *cfg, u64 now_ns)
{
	u64 dt = now_ns - r->updated_ns;

	if (!r->seeded || dt >= cfg->min_rtt_ns)
		return Q16_ONE;
	return mul_u64_u64_shr(dt, cfg->inv_min_rtt, INV_SHIFT - 16);
}

/* Add @diff, the difference of two successive RTTs, to the average. Return: the smoothed gradient,
 * Q16.
 */
static s64 timely_gradient_q16(struct timely_rate *r,
			       const struct timely_rate_cfg *cfg, s64 diff)
{
	s64 gap = diff * (1 << DIFF_SHIFT) - r->diff_fp;
	u64 gradient;

	r->diff_fp += shift_round(gap * cfg->alpha_q16, 16);
	gradient = mul_u64_u64_shr(r->diff_fp < 0 ? -r->diff_fp : r->diff_fp,
				   cfg->inv_min_rtt,
				   INV_SHIFT - 16 + DIFF_SHIFT);
	gradient = min_t(u64, gradient, GRADIENT_MAX_Q16);
	return r->diff_fp < 0 ? -(s64)gradient : gradient;
}

/* Weight w of patched TIMELY's pull towards RTTref, Q16. */
static u32 timely_weight_q16(s64 gradient)
{
	return clamp_t(s64, 2 * gradient + Q16_ONE / 2, 0, Q16_ONE);
}

/* Count a completion towards hyperactive increase by its RTT, before the change of the rate is
 * computed. For TIMELY_HAI_INCREASES, timely_hai_settle() counts.
 */
static void timely_hai_observe(struct timely_rate *r,
			       const struct timely_rate_cfg *cfg,
			       u32 rtt, s64 diff, s64 gradient)
{
	bool falls;

	if (cfg->hai_count == TIMELY_HAI_INCREASES)
		return;
	if (cfg->hai_count == TIMELY_HAI_RAW)
		falls = diff < 0;
	else if (cfg->rule == TIMELY_RULE_PATCHED)
		falls = timely_weight_q16(gradient) == 0;
	else
		falls = gradient < 0;
	if (cfg->hai_below_t_low && rtt < cfg->t_low_ns)
		falls = true;
	r->hai = falls ? min_t(u32, r->hai + 1, U8_MAX) : 0;
}

/* Count a completion towards hyperactive increase by the change of the rate. A decrease of the rate
 * sets the count to 0, except with TIMELY_HAI_RAW (authors' code).
 */
static void timely_hai_settle(struct timely_rate *r,
			      const struct timely_rate_cfg *cfg, s64 change)
{
	if (cfg->hai_count == TIMELY_HAI_INCREASES && change > 0)
		r->hai = min_t(u32, r->hai + 1, U8_MAX);
	else if (cfg->hai_count != TIMELY_HAI_RAW && change < 0)
		r->hai = 0;
}

/* The additive increase, bytes per second, Q16: delta, times hai_factor in hyperactive increase,
 * times the segments completed (scale_step), times the part of a minRTT since the last update.
 */
static u64 timely_step_fp(const struct timely_rate *r,
			  const struct timely_rate_cfg *cfg,
			  const struct timely_completion *c, bool hai_allowed,
			  u32 elapsed_q16)
{
	u64 weight = (u64)elapsed_q16 << 16;	/* Q32 */

	if (cfg->scale_step)
		weight = mul_u64_u32_shr(min_t(u64, (u64)c->bytes * cfg->inv_segment,
					       STEP_MAX_SEGMENTS * Q32_ONE),
					 elapsed_q16, 16);
	if (hai_allowed && cfg->hai_threshold && r->hai >= cfg->hai_threshold)
		weight *= cfg->hai_factor;
	return mul_u64_u64_shr(cfg->step_fp, weight, 32);
}

/* Share of the rate to subtract from it for an RTT above Thigh, Q32. */
static s64 timely_high_cut_q32(const struct timely_rate_cfg *cfg, u32 rtt)
{
	u64 excess_q32 = div_u64((u64)(rtt - cfg->t_high_ns) << 32, rtt);

	return mul_u64_u32_shr(excess_q32, cfg->beta_high_q16, 16);
}

/* Share of the rate to subtract from it for a gradient above zero, Q32, at most 1. */
static s64 timely_gradient_cut_q32(const struct timely_rate_cfg *cfg,
				   s64 gradient)
{
	return min_t(u64, (u64)cfg->beta_q16 * gradient, Q32_ONE);
}

/* Share of the rate that the patched rule subtracts from it, Q32, from -1 to 1; negative for an RTT
 * below RTTref, where the rate rises.
 */
static s64 timely_patched_cut_q32(const struct timely_rate_cfg *cfg, u32 rtt,
				  u32 weight)
{
	s64 gap = (s64)rtt - cfg->rtt_ref_ns;
	s64 error;

	error = mul_u64_u64_shr(gap < 0 ? -gap : gap, cfg->inv_rtt_ref,
				INV_SHIFT - 16);
	error = min(error, ERROR_MAX_Q16);
	if (gap < 0)
		error = -error;
	return clamp_t(s64, shift_round((s64)cfg->beta_q16 * weight * error, 16),
		       -(s64)Q32_ONE, Q32_ONE);
}

/* The share @share_q32 of @rate_fp, multiplied by @elapsed_q16, bytes per second, Q16. */
static s64 timely_scale_fp(u64 rate_fp, s64 share_q32, u32 elapsed_q16)
{
	u64 share = share_q32 < 0 ? -share_q32 : share_q32;
	u64 part = mul_u64_u64_shr(rate_fp, (share * elapsed_q16) >> 16, 32);

	return share_q32 < 0 ? -(s64)part : part;
}

/* Change of the rate by FAST*: gamma * (delta - rate * (1 - minRTT / rtt)); at most doubles it. */
static s64 timely_fast_fp(const struct timely_rate *r, const struct timely_rate_cfg *cfg,
			  u32 rtt)
{
	u64 queued_q32 = div_u64((u64)(rtt - cfg->min_rtt_ns) << 32, rtt);
	s64 rise = mul_u64_u32_shr(cfg->step_fp, cfg->alpha_q16, 16);

	rise -= timely_scale_fp(r->rate_fp,
				mul_u64_u32_shr(queued_q32, cfg->alpha_q16, 16), Q16_ONE);
	return min_t(s64, rise, r->rate_fp);
}

/* Change of the rate by TIMELY: Algorithm 1, or patched TIMELY between the thresholds. */
static s64 timely_change_fp(struct timely_rate *r, const struct timely_rate_cfg *cfg,
			    const struct timely_completion *c, u32 rtt,
			    enum timely_zone *zone)
{
	u32 elapsed = timely_elapsed_q16(r, cfg, c->now_ns);
	u32 scale = cfg->scale_decrease ? elapsed : Q16_ONE;
	s64 diff = r->seeded ? (s64)rtt - r->prev_rtt_ns : 0;
	s64 gradient = timely_gradient_q16(r, cfg, diff);
	s64 change;
	u32 w;

	timely_hai_observe(r, cfg, rtt, diff, gradient);
	if (rtt < cfg->t_low_ns) {
		*zone = TIMELY_ZONE_LOW;
		return timely_step_fp(r, cfg, c, cfg->hai_below_t_low, elapsed);
	}
	if (rtt > cfg->t_high_ns) {
		*zone = TIMELY_ZONE_HIGH;
		return -timely_scale_fp(r->rate_fp, timely_high_cut_q32(cfg, rtt), elapsed);
	}
	*zone = TIMELY_ZONE_GRADIENT;
	if (cfg->rule == TIMELY_RULE_PATCHED) {
		w = timely_weight_q16(gradient);
		change = mul_u64_u32_shr(timely_step_fp(r, cfg, c, w == 0, elapsed),
					 Q16_ONE - w, 16);
		return change - timely_scale_fp(r->rate_fp,
						timely_patched_cut_q32(cfg, rtt, w), scale);
	}
	if (gradient <= 0)
		return timely_step_fp(r, cfg, c, true, elapsed);
	return -timely_scale_fp(r->rate_fp, timely_gradient_cut_q32(cfg, gradient), scale);
}

/* The update by a window rule. The rate is the window divided by the RTT (Swift) or by the base RTT
 * (theta-PowerTCP). One update may decrease the rate by more than half: with a limit, Swift's
 * window would grow if the RTT more than doubled.
 */
static enum timely_zone timely_window_update(struct timely_rate *r,
					     const struct timely_rate_cfg *cfg,
					     const struct timely_completion *c, u32 rtt)
{
	u64 rate_fp;

	if (cfg->rule == TIMELY_RULE_SWIFT)
		rate_fp = timely_swift_fp(r, cfg, c, rtt);
	else
		rate_fp = timely_powertcp_fp(r, cfg, c, rtt);
	r->rate_fp = clamp(rate_fp, cfg->min_rate_fp, cfg->max_rate_fp);
	r->prev_rtt_ns = rtt;
	r->updated_ns = c->now_ns;
	r->seeded = 1;
	return TIMELY_ZONE_GRADIENT;
}

/**
 * timely_rate_probe() - handle a completion whose RTT shows a base-RTT probe
 * @r: the connection's state
 * @cfg: the parameters
 * @c: the completion; may_rise is cleared
 *
 * In a probe, RTTs fall because all connections send less. So the rate does not change. The window
 * rules may still decrease the window: the rates of their connections vary much in a round trip,
 * and all connections together may send more than the path carries at the start of the probe.
 */
void timely_rate_probe(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		       struct timely_completion *c)
{
	c->may_rise = false;
	if (timely_rate_has_window(cfg))
		timely_rate_update(r, cfg, c);
	else
		timely_rate_reseed(r);
}
EXPORT_SYMBOL_GPL(timely_rate_probe);

/**
 * timely_rate_window() - get the congestion window of a window rule
 * @r: the connection's state
 * @cfg: the parameters, of a window rule
 *
 * Swift's window is the rate times the last RTT, theta-PowerTCP's the rate times the base RTT.
 *
 * Return: bytes, rounded up.
 */
u64 timely_rate_window(const struct timely_rate *r, const struct timely_rate_cfg *cfg)
{
	u32 rtt = cfg->min_rtt_ns;

	if (cfg->rule == TIMELY_RULE_SWIFT && r->prev_rtt_ns)
		rtt = r->prev_rtt_ns;
	return mul_u64_u64_shr(r->rate_fp, rtt * TIMELY_NS_Q60, TIMELY_RATE_SHIFT + 60) + 1;
}
EXPORT_SYMBOL_GPL(timely_rate_window);

/**
 * timely_rate_update() - compute a connection's rate from a completion
 * @r: the connection's state
 * @cfg: the parameters
 * @c: the completion
 *
 * The result is limited to the lowest and the highest rate of @cfg. With once_per_rtt, a completion
 * less than an RTT after the last update changes nothing.
 *
 * Return: the branch of Algorithm 1 that was taken; for the other rules see enum timely_zone.
 */
enum timely_zone timely_rate_update(struct timely_rate *r,
				    const struct timely_rate_cfg *cfg,
				    const struct timely_completion *c)
{
	u32 rtt = max(c->rtt_ns, cfg->min_rtt_ns);
	enum timely_zone zone = TIMELY_ZONE_GRADIENT;
	s64 change, rate;

	if (cfg->once_per_rtt && r->seeded &&
	    c->now_ns - r->updated_ns < r->prev_rtt_ns)
		return TIMELY_ZONE_NONE;

	if (cfg->rule == TIMELY_RULE_TARGET_DELAY) {
		change = timely_target_fp(r, cfg, c, rtt);
	} else if (unlikely(cfg->rule >= TIMELY_RULE_FAST)) {
		if (timely_rate_has_window(cfg))
			return timely_window_update(r, cfg, c, rtt);
		change = timely_fast_fp(r, cfg, rtt);
	} else {
		change = timely_change_fp(r, cfg, c, rtt, &zone);
	}

	if (change > 0 && !c->may_rise && cfg->rule != TIMELY_RULE_TARGET_DELAY) {
		change = 0;
		r->hai = 0;
	}
	timely_hai_settle(r, cfg, change);

	rate = r->rate_fp;
	rate = max(rate + change, rate / 2);
	r->rate_fp = clamp_t(u64, rate, cfg->min_rate_fp, cfg->max_rate_fp);
	r->prev_rtt_ns = rtt;
	r->updated_ns = c->now_ns;
	r->seeded = 1;
	return zone;
}
EXPORT_SYMBOL_GPL(timely_rate_update);

/* The credit for losses is at most ten packets: up to ten successive losses do not decrease the
 * rate. A lower limit would be exceeded by chance: with independent losses of half the tolerated
 * share, about one check in a million exceeds ten. The losses of one round trip cannot be compared
 * with the tolerated share, because on short paths a round trip is a few packets.
 */
#define LOSS_CREDIT_MAX_Q16	(10U * Q16_ONE)

/**
 * timely_loss_share_q16() - convert the tolerated share of losses to fixed point
 * @ppm: the share in ppm (loss_free_ppm)
 *
 * Return: the share, Q16.
 */
u32 timely_loss_share_q16(u32 ppm)
{
	return ppm_to_q16(ppm);
}
EXPORT_SYMBOL_GPL(timely_loss_share_q16);

/**
 * timely_loss_init() - start a connection with the full credit for losses
 * @loss: the connection's credit for losses
 * @lost: packets lost until now
 * @delivered: packets delivered until now
 */
void timely_loss_init(struct timely_loss *loss, u32 lost, u32 delivered)
{
	*loss = (struct timely_loss) { LOSS_CREDIT_MAX_Q16, lost, delivered };
}
EXPORT_SYMBOL_GPL(timely_loss_init);

/**
 * timely_loss_is_free() - take the losses since the last call from the credit
 * @loss: the connection's credit for losses
 * @share_q16: tolerated share of the packets, Q16; each delivered packet adds this share to the
 *	credit
 * @lost: packets lost until now; wraps
 * @delivered: packets delivered until now; wraps
 *
 * Networks also lose packets without a queue, because of policers or dirty fibres. RTTs do not show
 * such losses. If each loss halved the rate, the rate would be limited to a multiple of
 * 1 / sqrt(loss ratio). If many packets are lost, for any reason, the connection must send less.
 *
 * Return: true if the credit covers the losses; false if it does not, and the rate must fall.
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
