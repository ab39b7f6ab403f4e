// SPDX-License-Identifier: GPL-2.0
/*
 * The rule of theta-PowerTCP, Algorithm 2 of "PowerTCP: Pushing the Performance Limits of
 * Datacenter Networks" (NSDI'22): PowerTCP for senders that know RTTs only. rate.c calls
 * timely_powertcp_fp() for each completion.
 *
 * Power is the product of the length of the queue and its growth. Each completion updates the
 * smoothed power, where tau is the base RTT and dt the time since the last completion:
 *
 *	power = ((rtt - previous rtt) / dt + 1) * rtt / tau
 *	smoothed = (smoothed * (tau - dt) + power * dt) / tau,	dt at most tau
 *
 * Once per RTT the window follows, where old is the window of one RTT ago:
 *
 *	window = gamma * (old / smoothed + beta) + (1 - gamma) * window
 *
 * The rate is window / tau. The base RTT is constant, so the engine stores the rate only, and
 * computes with beta / tau:
 *
 *	constant	value, unit		source
 *	gamma		alpha_ppm, .9		paper
 *	beta / tau	delta_kbps, kbit/s	paper: rate of the host / N
 *	N		10 connections		authors' code for Linux
 *	first rate	first_rate_kbps, kbit/s	paper: rate of the host
 *
 * The update is made when the first packet that was sent after the last update is acknowledged. So
 * the window of one RTT ago is the present one, and need not be stored.
 *
 * Differences from the paper, with their reasons in Documentation/deviations.md:
 *  - (rtt - previous rtt) / dt + 1 counts as at least 1/2, as in the authors' simulator. So the
 *    smoothed power is at least 1/2, too, and the rate at most doubles in an RTT, plus beta.
 *  - "Sent after the last update" is decided by time: at least an RTT since the last update.
 *
 * Pure: no socket, no clock.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "powertcp.h"

#define INV_SHIFT	56		/* shift of timely_rate_cfg.inv_min_rtt, which is in 1/ns */
#define POWER_SHIFT	24		/* fraction bits of timely_rate.power_q24 */

/* Least smoothed power, Q24: 1/2. Without this limit, rounding might make the power 0. */
#define POWERTCP_LEAST_Q24	(1U << (POWER_SHIFT - 1))

/* The term with the gradient counts as at most 2^16, Q24, so that products fit 64 bits. */
#define POWERTCP_TERM_MAX_Q24	(1ULL << (POWER_SHIFT + 16))

/* The term with the gradient, (rtt - previous rtt) / dt + 1, times min(dt, tau) / tau, Q24. @dt_ns
 * is the time since the last completion, @diff_ns the change of the RTT. No division is needed if
 * completions are less than a base RTT apart.
 */
static u64 powertcp_term_q24(const struct timely_rate_cfg *cfg, s64 diff_ns, u32 dt_ns)
{
	u64 twice_ns = max_t(s64, 2 * (diff_ns + dt_ns), dt_ns), term;

	if (dt_ns < cfg->min_rtt_ns)
		term = mul_u64_u64_shr(twice_ns, cfg->inv_min_rtt, INV_SHIFT - POWER_SHIFT + 1);
	else
		term = div_u64(twice_ns << (POWER_SHIFT - 1), dt_ns);
	return min(term, POWERTCP_TERM_MAX_Q24);
}

/* Smoothed power after a completion, Q24. Without a previous RTT, the RTT counts as constant for a
 * base RTT.
 */
static u32 powertcp_power_q24(const struct timely_rate *r, const struct timely_rate_cfg *cfg,
			      u64 now_ns, u32 rtt)
{
	u32 dt_ns = r->seeded ? min_t(u64, now_ns - r->updated_ns, U32_MAX) : cfg->min_rtt_ns;
	s64 diff_ns = r->seeded ? (s64)rtt - r->prev_rtt_ns : 0;
	u64 length = mul_u64_u64_shr(rtt, cfg->inv_min_rtt, INV_SHIFT - POWER_SHIFT);
	u64 power = mul_u64_u64_shr(powertcp_term_q24(cfg, diff_ns, dt_ns), length, POWER_SHIFT);

	if (dt_ns < cfg->min_rtt_ns)
		power += mul_u64_u64_shr((u64)r->power_q24 * (cfg->min_rtt_ns - dt_ns),
					 cfg->inv_min_rtt, INV_SHIFT);
	return min_t(u64, power, U32_MAX);
}

/* The new rate for the smoothed power, bytes per second, Q16. */
static u64 powertcp_rate_fp(const struct timely_rate *r, const struct timely_rate_cfg *cfg)
{
	u64 inv_power_q32 = div_u64(1ULL << (32 + POWER_SHIFT),
				    max(r->power_q24, POWERTCP_LEAST_Q24));
	u64 aim = mul_u64_u64_shr(r->rate_fp, inv_power_q32, 32);

	aim += cfg->step_fp;
	if (aim < r->rate_fp)
		return r->rate_fp - mul_u64_u32_shr(r->rate_fp - aim, cfg->alpha_q16, 16);
	return r->rate_fp + mul_u64_u32_shr(aim - r->rate_fp, cfg->alpha_q16, 16);
}

/**
 * timely_powertcp_fp() - compute a connection's rate by theta-PowerTCP's rule
 * @r: the connection's state; power_q24 and recent_ns are updated, and the caller updates the other
 *	members
 * @cfg: the configuration of the rule
 * @c: the completion
 * @rtt: the completion's RTT, ns, at least min_rtt
 *
 * Return: the new rate, bytes per second, Q16, without the limits of the rate.
 */
u64 timely_powertcp_fp(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		       const struct timely_completion *c, u32 rtt)
{
	u64 rate_fp;

	r->power_q24 = powertcp_power_q24(r, cfg, c->now_ns, rtt);
	r->recent_ns -= min_t(u64, r->recent_ns, c->now_ns - r->updated_ns);
	if (U32_MAX - r->recent_ns < rtt)
		return r->rate_fp;
	r->recent_ns = U32_MAX;
	rate_fp = powertcp_rate_fp(r, cfg);
	return c->may_rise ? rate_fp : min(rate_fp, r->rate_fp);
}
