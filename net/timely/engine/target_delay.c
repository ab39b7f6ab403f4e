// SPDX-License-Identifier: GPL-2.0
/*
 * The target-delay rule, which is the default rule of tcp_timely. rate.c calls timely_target_fp()
 * for each completion.
 *
 * The rule is this project's own. It combines the RTT gradient of TIMELY, the reference RTT of
 * patched TIMELY and the flow scaling of Swift (SIGCOMM'20), so that one set of gains serves any
 * link rate, any base RTT and any number of connections.
 *
 *	q  = rtt - min_rtt			queueing delay
 *	q0 = rtt_ref - min_rtt + k / sqrt(rate)	target delay
 *	x  = damp * (rtt - prev_rtt) / T	gradient term
 *	rate *= 1 - x + 3/8 x^2 - beta * W * e
 *
 * The rate rises faster in hyperactive increase and at the start of a message, and falls faster
 * in an overload; see below.
 *
 * T is the time since the last update, but at least one round trip. One round trip is min_rtt, or
 * the longer of rtt and prev_rtt, minus q0, if that is more.
 *
 * W is the weight of one update: the time since the last update as a share of the round trip, at
 * most 1. A connection that gets completions rarely has a smaller weight: at most 24 q0 or one
 * round trip, whichever is more, divided by T. The queue that the connection sampled has drained
 * and filled again since. If all connections answered rare samples in full, the port would be empty
 * and full in turns.
 *
 * e is the error of the queueing delay, q - q0, divided by a scale; |e| is at most 4.
 *
 *	q < q0	the scale is q, but at least min(q0, min_rtt / 4) / 2
 *	q > q0	the scale is q0, but at least min_rtt / 4
 *
 * Gradient term. (rtt - prev_rtt) / T is the share by which the port is overloaded. The differences
 * of all RTTs add up to the change of the queue, however often completions come: the gradient term
 * is the proportional part of a PI controller of q. If one RTT is too long by chance, the next
 * difference cancels the error. That holds only if a rise and the following fall are divided by the
 * same T, hence the longer of the two RTTs in T. Without 3/8 x^2, an RTT that rises and falls again
 * would lower the rate: (1 - x) * (1 + x) is less than 1. The square makes up for most of this
 * loss.
 *
 * Error term. beta * W * e is the integral part of the PI controller. The smallest scale above q0,
 * min_rtt / 4, keeps the loop stable where the queue is short compared with the path: a change of
 * the rate in one round trip is seen only in the next. Below q0 the scale may be smaller, or queues
 * that are short for their path would never fill.
 *
 * Fairness. q0 falls as the rate rises and does not depend on min_rtt. So each q has exactly one
 * rate with e = 0, and connections converge to equal rates whatever their base RTTs are. The square
 * root fits N senders whose bursts arrive at random times: they queue about sqrt(N) bursts.
 *
 * Hyperactive increase. If q stays below half of q0 for hai_threshold round trips, bandwidth has
 * become free: the rate grows by hai_factor * beta per round trip.
 *
 * Long queues. A long queue makes the round trip long, and RTTs that arrive within one round trip
 * were caused before the first reaction took effect. A connection that reacted to each of these
 * RTTs would reach its minimum rate before it saw an effect, and would stay at that rate for long,
 * as slow connections get completions rarely.
 *
 * Start of a message. For its first 128 KB a message has a higher q0, by 40 % of min_rtt falling to
 * 0. Long-running connections yield to the message. While q is below half of q0 and the rate below
 * the link rate, the rate grows by a quarter per round trip: a message of ten segments has no time
 * to find its rate by small steps.
 *
 * New connection. Where many new connections meet, each would yield to those that start after it,
 * and the last part of a short message would take long. So the rate of a new connection does not
 * fall below opening_bytes per RTT, or half of the link rate if that is less, and not below a tenth
 * of the link rate. Neither limit applies to an RTT above t_high.
 *
 * Overload. Two successive queueing delays above TARGET_OVERLOAD_QUEUES target delays are an
 * overload: messages have started whose rates exceed the link rate. The rate falls by beta_high
 * times the excess of the RTT, and to the delivery rate, by at most half per update. The delivery
 * rates of all connections add up to the link rate, so this ends an overload by any number of
 * connections at once. Halving all rates once per round trip takes longer than most messages last.
 * The target delay, and with it the limit, is longer for slow connections, so a port with many
 * connections is not overloaded by their sum alone.
 *
 * Where the base RTT is long compared with the target delay, queues of TARGET_OVERLOAD_RTTS base
 * RTTs come and go within a round trip, and are no overload. Above that limit only the excess
 * counts, and the delivery rate only above t_high: after a simultaneous start, delivery rates are
 * unequal, and connections with long paths take long to converge.
 *
 * Host delay. Under fq and with TCP's internal pacing, packets that wait in the host leave at the
 * rate of the time when they were queued, so new rates take effect late. In this case (cfg->lags) T
 * is computed from the last RTT only, without prev_rtt, and x^2 is left out. So rates rise when
 * RTTs vary.
 * Connections whose receiver aggregates ACKs need this rise until the aggregation has been
 * measured, which takes longer under fq.
 *
 * Data in the other direction. Where the host also receives, the ACKs for what it sends wait behind
 * what it receives, at the port towards the host. The RTT does not tell this wait from a queue in
 * front of the data sent. A connection that took it for one would leave the link unused. So q0 is
 * higher by q0 * u^2, where u is the share of its link rate at which the host has received lately
 * (ingress.c). ACKs also wait behind what the receiver sends, at its NIC. If the receiver sends
 * to this host, too, and the host has received much at some time lately, q0 is higher by
 * TARGET_ACK_NS, and then by q0 * (u^2 + u^4): hosts send to each other. None of this applies where
 * RTTs do not include the wait of ACKs (ack_wait.c). Where the receiver marks its ACKs, so that
 * switches send them first, u counts as 0.
 *
 * A target delay that is longer than the wait of ACKs takes the rate from other connections at the
 * same port: 4 us too much can double a rate. So the target delay is longer only for what is known.
 *
 * ACK aggregation. Receivers hold ACKs back and merge ACKs, which adds to RTTs as much as a queue
 * does. Where the path is known to have aggregation (ack_aggregation_ns), q is about the minimum of
 * the recent queueing delays, the round trip in T and W is longer, the time since the last update
 * is the time between the departures of the two completed segments, and a change of the rate
 * followed by the opposite change leaves the rate as it was.
 *
 * Pure: no socket, no clock. Documentation/tuning.md has the derivation, Documentation/results.md
 * the measurements.
 */

#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "target_delay.h"

#define Q16_ONE		(1U << 16)
#define Q32_ONE		(1LL << 32)
#define INV_SHIFT	56		/* shift of timely_rate_cfg.inv_*, which are in 1/ns */

/* The largest error e of the queueing delay, Q16. With beta = 2 % an error of four changes the rate
 * by 8 % per round trip. Larger changes overshoot where the queue is short compared with the path.
 */
#define TARGET_ERROR_MAX_Q16	(4U << 16)

/* One update raises the rate by at most a quarter, except at the start of a message, and lowers the
 * rate by at most a half. Q32.
 */
#define TARGET_RISE_MAX_Q32	(Q32_ONE / 4)
#define TARGET_FALL_MAX_Q32	(Q32_ONE / 2)

/* Factor of x^2, the square of the gradient term, in eighths. With four eighths, a rise and an
 * equal fall of the RTT would cancel almost exactly. With three, a connection whose RTTs vary more
 * than the RTTs of other connections loses a little rate.
 */
#define TARGET_DAMP_EIGHTHS	3

/* An RTT represents the queue for this many times the target delay q0. Connections that get
 * completions more rarely have a smaller weight W (see the start of this file).
 */
#define TARGET_RARE_QUEUES	24

/* Overload: RTTs are longer than min_rtt by this many target delays q0, and at least by this many
 * min_rtt. With ACK aggregation this many times its mean is added to either limit.
 */
#define TARGET_OVERLOAD_QUEUES	6
#define TARGET_OVERLOAD_RTTS	2
#define TARGET_OVERLOAD_ACK_AGGS	4

/* Start of a message: the target delay q0 is higher by TARGET_START_PERCENT of min_rtt. While the
 * queue is short, the rate grows by 1 / TARGET_START_RISE per min_rtt, but at most doubles in one
 * update.
 */
#define TARGET_START_PERCENT	40
#define TARGET_START_RISE	4

/* A new connection: its rate may fall to opening_bytes per RTT, but at least to the link rate
 * divided by TARGET_OPENING_LEAST, at most to the link rate divided by TARGET_OPENING_MOST.
 */
#define TARGET_OPENING_LEAST	10
#define TARGET_OPENING_MOST	2

/* Data in both directions: the target delay q0 is longer by this time, about that of a segment at
 * 10 Gb/s, but at most by 1 / TARGET_ACK_SHARE of min_rtt: segments are shorter on short paths.
 */
#define TARGET_ACK_NS		4000U
#define TARGET_ACK_SHARE	4

/* ACK aggregation: the round trip is longer by TARGET_ACK_AGG_SPAN times the aggregation's mean. So
 * aggregation of 0 to 50 us, distributed uniformly with a mean of 25 us, changes a rate by at most
 * 10 %. With this mean, the recent minimum of the queueing delay rises to larger delays within
 * about 2^5 completions; with twice the mean, within twice as many completions. log2 of the number
 * of completions is log2 of the mean in ns, rounded up, minus TARGET_ACK_AGG_LOG2.
 */
#define TARGET_ACK_AGG_SPAN	8
#define TARGET_ACK_AGG_LOG2	10

/* Largest sum of base RTT and target delay: one second, the maximum of rtt_ref_ns, too. */
#define TARGET_REF_MAX_NS	1000000000ULL
/* Largest difference of RTTs that counts, 2 s, so that products fit 64 bits. */
#define TARGET_DIFF_MAX_NS	0x7fffffffLL

/* A longer time since the last update of the rate counts as four seconds. */
#define TARGET_SINCE_MAX_NS	U32_MAX

/* Root of 1 Gbit/s, which is 125e6 bytes per second, in Q16. rtt_ref_1g_ns times this root is
 * timely_rate_cfg.flow_term.
 */
#define TARGET_ROOT_1G		2862167U

/**
 * timely_target_cfg_init() - convert the rule's parameters to fixed point
 * @cfg: the members that only this rule uses are set
 * @params: the parameters, which timely_params_check() has accepted
 */
void timely_target_cfg_init(struct timely_rate_cfg *cfg, const struct timely_params *params)
{
	cfg->damp_q16 = div_u64(((u64)params->damp_ppm << 16) + 500000, 1000000);
	cfg->scale_ns = params->min_rtt_ns + TARGET_ACK_AGG_SPAN * params->ack_aggregation_ns;
	cfg->inv_scale = div_u64(1ULL << INV_SHIFT, cfg->scale_ns);
	if (params->ack_aggregation_ns)
		cfg->least_shift = max(fls64(params->ack_aggregation_ns), TARGET_ACK_AGG_LOG2 + 1) -
				   TARGET_ACK_AGG_LOG2;
	cfg->flow_term = (u64)params->rtt_ref_1g_ns * TARGET_ROOT_1G;
	cfg->overload_ns = params->min_rtt_ns +
			   TARGET_OVERLOAD_ACK_AGGS * params->ack_aggregation_ns;
	cfg->quiet_ns = min_t(u64, params->t_high_ns,
			      cfg->overload_ns + TARGET_OVERLOAD_RTTS * (u64)params->min_rtt_ns);
	cfg->start_ns = div_u64((u64)params->min_rtt_ns * TARGET_START_PERCENT, 100);
}

/* 1 / sqrt(@m_q14) in Q15, for @m_q14 from 1 to 4 in Q14. The first estimate is linear, with an
 * error of up to a tenth. After two steps of Newton's method the error is less than a thousandth.
 */
static u32 target_inverse_root_q15(u32 m_q14)
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
 * timely_target_ref_ns() - get the RTT at which the queueing delay is the target delay
 * @cfg: the configuration of the rule
 * @rate_fp: the connection's rate, bytes per second, Q16, at least 1 kbit/s
 *
 * Return: minRTT plus the target delay, ns, at most one second. The addition at the start of a
 * message is not included.
 */
u32 timely_target_ref_ns(const struct timely_rate_cfg *cfg, u64 rate_fp)
{
	/* rate_fp is m * 2^shift, with m from 1 to 4 */
	u32 shift = (fls64(rate_fp) - 1) & ~1U;
	u32 y = target_inverse_root_q15(rate_fp >> (shift - 14));
	u64 ns = mul_u64_u64_shr(cfg->flow_term, y, 15 + shift / 2);

	return min(ns + cfg->rtt_ref_ns, TARGET_REF_MAX_NS);
}
EXPORT_SYMBOL_GPL(timely_target_ref_ns);

/* One round trip: @rtt minus the target delay @q0, at least scale_ns. */
static u32 target_round_ns(const struct timely_rate_cfg *cfg, u32 rtt, u32 q0)
{
	return max(cfg->scale_ns, rtt - min(rtt, q0));
}

/* 2^56 / @period_ns, in 1/ns. Most updates of a rate have no other 64-bit division. */
static u64 target_inverse(const struct timely_rate_cfg *cfg, u32 period_ns)
{
	if (period_ns == cfg->scale_ns)
		return cfg->inv_scale;
	return div_u64(1ULL << INV_SHIFT, period_ns);
}

/* The gradient term x: the share of the rate to subtract from it, Q32, from -1 to 1. */
static s64 target_damp_q32(const struct timely_rate_cfg *cfg, s64 diff, u64 inv_period)
{
	u64 part = min(diff < 0 ? -diff : diff, TARGET_DIFF_MAX_NS) * cfg->damp_q16;

	part = mul_u64_u64_shr(part, inv_period, INV_SHIFT - 16);
	part = min_t(u64, part, Q32_ONE);
	return diff < 0 ? -(s64)part : part;
}

/* @n / @d in Q16, at most TARGET_ERROR_MAX_Q16. A division of 32 bits is cheaper than one of
 * 64 bits and leaves thirteen significant bits.
 */
static u32 target_ratio_q16(u32 n, u32 d)
{
	u32 shift = max(fls64(n), 16) - 16;

	if (n / (TARGET_ERROR_MAX_Q16 >> 16) >= d)
		return TARGET_ERROR_MAX_Q16;
	return ((n >> shift) << 16) / (d >> shift);
}

/* The error e of the queueing delay @q against the target delay @q0, Q16, signed. */
static s64 target_error_q16(const struct timely_rate_cfg *cfg, u32 q, u32 q0)
{
	u32 span = cfg->min_rtt_ns / 4;

	if (q < q0)
		return -(s64)target_ratio_q16(q0 - q, max3(q, min(q0, span) / 2, 1U));
	return target_ratio_q16(q - q0, max3(q0, span, 1U));
}

/* Hyperactive increase: if the queueing delay was below half of the target for hai_threshold round
 * trips, bandwidth has become free, and the rate grows by a share of itself. Return: this share,
 * Q32; without hyperactive increase -TARGET_FALL_MAX_Q32, so that the caller's max() has no effect.
 */
static s64 target_hyper_q32(struct timely_rate *r, const struct timely_rate_cfg *cfg,
			    u32 q, u32 q0, u64 dt_ns, u32 weight_q16)
{
	if (q >= q0 / 2) {
		r->low_ns = 0;
		return -TARGET_FALL_MAX_Q32;
	}
	r->low_ns = min_t(u64, r->low_ns + min_t(u64, dt_ns, cfg->scale_ns), U32_MAX);
	if (!cfg->hai_threshold || r->low_ns < (u64)cfg->hai_threshold * cfg->scale_ns)
		return -TARGET_FALL_MAX_Q32;
	return (s64)cfg->beta_q16 * cfg->hai_factor * weight_q16;
}

/* The RTT above which there is an overload for a connection with the target delay @q0, ns. */
static u32 target_overload_ns(const struct timely_rate_cfg *cfg, u32 q0)
{
	u64 ns = cfg->overload_ns + TARGET_OVERLOAD_QUEUES * (u64)q0;

	return clamp_t(u64, ns, cfg->quiet_ns, cfg->t_high_ns);
}

/* Share of the rate to subtract from it in an overload, Q32. @rtt is above the limit by @excess, 0
 * without an overload. A falling RTT shows that rates have been reduced already: the share is 0
 * then.
 */
static s64 target_overload_q32(const struct timely_rate_cfg *cfg, u32 rtt, s64 diff, u32 excess)
{
	if (!excess || diff < 0)
		return 0;
	return mul_u64_u32_shr(div_u64((u64)excess << 32, rtt), cfg->beta_high_q16, 16);
}

/* The weight W of one update, Q16. */
static u32 target_weight_q16(u32 q0, u32 round_ns, u64 dt_ns, u64 inv_period)
{
	u64 known_ns = max_t(u64, (u64)TARGET_RARE_QUEUES * q0, round_ns);

	if (dt_ns >= round_ns && dt_ns <= known_ns)
		return Q16_ONE;
	return mul_u64_u64_shr(min(dt_ns, known_ns), inv_period, INV_SHIFT - 16);
}

/* Addition to the target delay at the start of a message, ns; 0 after the start. */
static u32 target_start_ns(const struct timely_rate *r, const struct timely_rate_cfg *cfg)
{
	return (u64)cfg->start_ns * r->start_kb / TIMELY_TARGET_START_KB;
}

/* Subtract the @bytes completed, but at least 1 KB, from what is left of the start of a message. */
static void target_age(struct timely_rate *r, u32 bytes)
{
	r->start_kb -= min_t(u32, r->start_kb, (bytes >> 10) + 1);
}

/* Share of the rate to add at the start of a message while the queue is short, Q32, at most 1. */
static s64 target_start_gain_q32(const struct timely_rate_cfg *cfg, u64 dt_ns)
{
	dt_ns = min_t(u64, dt_ns, TARGET_START_RISE * (u64)cfg->min_rtt_ns);
	return mul_u64_u64_shr(dt_ns, cfg->inv_min_rtt, INV_SHIFT - 32) / TARGET_START_RISE;
}

/* With ACK aggregation: about the minimum of the recent queueing delays, ns. The result follows a
 * smaller queueing delay @q at once and a larger @q slowly. Subtracting the aggregation's mean from
 * @q instead is not possible: the mean cannot be measured while there is a queue, and connections
 * would measure different means.
 */
static u32 target_least_ns(struct timely_rate *r, const struct timely_rate_cfg *cfg, u32 q)
{
	if (!r->seeded || q <= r->least_ns)
		r->least_ns = q;
	else
		r->least_ns += ((q - r->least_ns - 1) >> cfg->least_shift) + 1;
	return r->least_ns;
}

/* @x + @eighths / 8 * @x^2, Q32. With four eighths the result is nearly e^@x - 1, so that results
 * for @x and -@x cancel out when a rate is changed by both.
 */
static s64 target_exp_q32(s64 x, u32 eighths)
{
	u64 size = x < 0 ? -x : x;

	return x + (s64)mul_u64_u64_shr(eighths * size, size, 35);
}

/* The share of the rate to add to it, Q32, signed: the sum of gradient term and error term, which
 * hyperactive increase and the start of a message raise and an overload lowers. @q0 is the target
 * delay but for the addition at the start of a message, @excess as in target_overload_q32().
 */
static s64 target_gain_q32(struct timely_rate *r, const struct timely_rate_cfg *cfg,
			   u64 now_ns, u32 rtt, u32 q0, u32 excess)
{
	u32 q = rtt - cfg->min_rtt_ns;
	u32 prev_rtt = r->seeded ? r->prev_rtt_ns : rtt;
	s64 diff = (s64)rtt - prev_rtt;
	u64 dt_ns = r->seeded ? now_ns - r->updated_ns : cfg->scale_ns;
	u32 weight_q16, round_ns;
	u64 inv_period;
	s64 gain, high;

	q0 += target_start_ns(r, cfg);
	if (cfg->least_shift) {
		q = target_least_ns(r, cfg, q);
		if (r->seeded)
			dt_ns = max_t(s64, dt_ns - diff, 0);
	}
	dt_ns = min_t(u64, dt_ns, TARGET_SINCE_MAX_NS);
	round_ns = target_round_ns(cfg, cfg->lags ? rtt : max(rtt, prev_rtt), q0);
	inv_period = target_inverse(cfg, max_t(u32, dt_ns, round_ns));
	weight_q16 = target_weight_q16(q0, round_ns, dt_ns, inv_period);
	gain = -target_damp_q32(cfg, diff, inv_period);
	if (!cfg->least_shift && !cfg->lags)
		gain = target_exp_q32(gain, TARGET_DAMP_EIGHTHS);
	gain -= target_error_q16(cfg, q, q0) * cfg->beta_q16 * weight_q16 >> 16;
	gain = max(gain, target_hyper_q32(r, cfg, q, q0, dt_ns, weight_q16));
	gain = min(gain, TARGET_RISE_MAX_Q32);
	if (r->start_kb && q < q0 / 2 && (!cfg->share_fp || r->rate_fp < cfg->share_fp))
		gain = max(gain, target_start_gain_q32(cfg, dt_ns));
	high = target_overload_q32(cfg, rtt, diff, excess) * weight_q16 >> 16;
	if (high)
		gain = min(gain, -high);
	gain = max(gain, -TARGET_FALL_MAX_Q32);
	return cfg->least_shift ? target_exp_q32(gain, 4) : gain;
}

/* The target delay @q0 plus the expected waits of ACKs, ns.
 *
 * An ACK waits for segments that the receiver sends. The target delay allows for that only if the
 * receiver sends to this host; not where new rates lag, as the target delay is longer there for
 * other reasons; and not with ACK aggregation, where the minimum of recent queueing delays counts.
 *
 * An ACK also waits behind data that this host receives. The senders of these data keep their
 * target delay at a port that they fill, so the wait is as long if the link is fully used, and
 * shorter by the square of its use if not. Their target delay is longer than @q0 itself if they
 * receive, too. If hosts send to each other, they receive about as much as this host.
 */
static u32 target_both_ways_ns(const struct timely_rate_cfg *cfg,
			       const struct timely_completion *c, u32 q0)
{
	u64 square_q32 = (u64)c->ingress_q16 * c->ingress_q16;
	u64 theirs;

	if (c->both_ways && !cfg->lags && !cfg->least_shift)
		q0 += min(cfg->min_rtt_ns / TARGET_ACK_SHARE, TARGET_ACK_NS);
	/* No overflow: q0 is less than 2^30, and theirs at most 2 * q0. */
	theirs = q0;
	if (c->both_ways)
		theirs += q0 * square_q32 >> 32;
	return q0 + (theirs * square_q32 >> 32);
}

/* The rate to which the rate of a new connection may fall, bytes per second, Q16; 0 if there is no
 * such limit.
 */
static u64 target_opening_fp(const struct timely_rate_cfg *cfg, const struct timely_completion *c,
			     u32 rtt)
{
	u64 fp;

	if (likely(!c->opening_bytes) || rtt > cfg->t_high_ns)
		return 0;
	/* No overflow: opening_bytes is at most 2^24, and an RTT at least 1000 ns. */
	fp = div_u64((u64)c->opening_bytes * NSEC_PER_SEC, rtt) << TIMELY_RATE_SHIFT;
	return clamp(fp, div_u64(cfg->share_fp, TARGET_OPENING_LEAST),
		     div_u64(cfg->share_fp, TARGET_OPENING_MOST));
}

/**
 * timely_target_fp() - compute the change of a connection's rate by the target-delay rule
 * @r: the connection's state; the members that only this rule uses are updated, and the caller
 *	updates rate_fp, prev_rtt_ns and updated_ns
 * @cfg: the configuration of the rule
 * @c: the completion
 * @rtt: the completion's RTT, ns, at least min_rtt
 *
 * Return: the change, bytes per second, Q16, signed.
 */
s64 timely_target_fp(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		     const struct timely_completion *c, u32 rtt)
{
	u32 ref = timely_target_ref_ns(cfg, r->rate_fp);
	u32 q0 = target_both_ways_ns(cfg, c, ref - min(ref, cfg->min_rtt_ns));
	u32 limit = target_overload_ns(cfg, q0);
	bool overload = rtt > limit && (!r->seeded || r->prev_rtt_ns > limit);
	s64 gain = target_gain_q32(r, cfg, c->now_ns, rtt, q0, overload ? rtt - limit : 0);
	u64 change = mul_u64_u64_shr(r->rate_fp, gain < 0 ? -gain : gain, 32);

	if (gain < 0 && c->delivered_fp &&
	    (rtt > cfg->t_high_ns || (overload && limit > cfg->quiet_ns)))
		change = max(change, r->rate_fp - min(r->rate_fp, c->delivered_fp));

	target_age(r, c->bytes);
	if (gain < 0) {
		change = min(change, r->rate_fp - min(r->rate_fp, target_opening_fp(cfg, c, rtt)));
		/* An application that sends less than the rate allows does not cause the queues
		 * that its packets meet. If these queues lowered the rate, the rate would end at
		 * the minimum rate.
		 */
		return c->app_limited && !c->may_rise && !overload ? 0 : -(s64)change;
	}
	/* If the rate could not rise while the application does not use it, a reduced rate would
	 * stay low. So the rate may rise up to the rate of a new connection.
	 */
	if (!c->may_rise) {
		r->low_ns = 0;
		change = min(change, cfg->first_rate_fp - min(cfg->first_rate_fp, r->rate_fp));
	}
	return change;
}
