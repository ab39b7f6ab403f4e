// SPDX-License-Identifier: GPL-2.0
/*
 * The rule of Swift: "Swift: Delay is Simple and Effective for Congestion Control in the
 * Datacenter" (SIGCOMM'20). rate.c calls timely_swift_fp() for each completion.
 *
 * Swift changes a window until the RTT is at a target, which is longer for smaller windows:
 *
 *	target = base target + clamp(a / sqrt(window) + b, 0, fs_range)
 *	a = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)),	b = -a / sqrt(fs_max_cwnd)
 *
 *	rtt < target:	window += ai * acked / window for a window of at least one packet,
 *			else ai * acked
 *	otherwise, if the last decrease was at least one RTT ago:
 *			window *= max(1 - beta * (rtt - target) / rtt, 1 - max_mdf)
 *
 * Windows and acked are in packets. The rate is window / RTT: a connection with a window below one
 * packet sends one packet each RTT / window, as in the paper.
 *
 *	constant	value, unit		source
 *	ai		1 packet per RTT	htsim and other public simulators
 *	beta		beta_ppm, .8		the same
 *	max_mdf		loss_beta_ppm, .5	the same
 *	fs_min_cwnd	.1 packets		the same
 *	fs_max_cwnd	100 packets		the same
 *	fs_range	5 base targets, ns	htsim
 *	base target	rtt_ref_ns		base RTT plus a queue allowance (tune.c)
 *
 * The engine stores the rate and the last RTT. The window is their product, in bytes.
 *
 * Differences from the paper, with their reasons in Documentation/deviations.md:
 *  - The target has no term for the number of hops, which a TCP sender does not know. Switches and
 *    links without a queue are in the base RTT.
 *  - There is one window. The paper has a second window, for the delay in the receiving host, which
 *    the receiver echoes in a header.
 *  - A window of one packet or more is paced, too.
 *  - The limits of the window are those of the rate: min_rate_kbps and max_rate_kbps.
 *  - The window of an app-limited connection does not grow.
 *
 * Pure: no socket, no clock.
 */

#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "swift.h"

#define Q31_ONE		(1ULL << 31)
#define WINDOW_SHIFT	24		/* fraction bits of a window in bytes or packets */
#define SECOND_SHIFT	34		/* shift of the reciprocal of an RTT, which is in 1/s */
#define NS_SHIFT	60		/* shift of TIMELY_NS_Q60 */

/* Packet size until the caller sets the connection's: that of an Ethernet frame. */
#define SWIFT_PACKET_BYTES	1448

/* Flow scaling: fs_range in base targets; fs_min_cwnd in packets, Q24; 1 / sqrt(fs_max_cwnd), Q31;
 * and a / fs_range in millionths.
 */
#define SWIFT_FS_RANGE		5
#define SWIFT_FS_MIN_Q24	((1ULL << WINDOW_SHIFT) / 10)
#define SWIFT_FS_MAX_ROOT_Q31	(Q31_ONE / 10)
#define SWIFT_FS_MILLIONTHS	326554U

/**
 * timely_swift_cfg_packet() - set the packet size that Swift's window counts in
 * @cfg: the configuration; members of other rules change if it is not Swift's
 * @packet_bytes: payload of a packet, limited to 64 to 65535 bytes
 */
void timely_swift_cfg_packet(struct timely_rate_cfg *cfg, u32 packet_bytes)
{
	cfg->inv_packet = div_u64(1ULL << 32, clamp(packet_bytes, 64U, 65535U));
}
EXPORT_SYMBOL_GPL(timely_swift_cfg_packet);

/**
 * timely_swift_cfg_init() - convert the rule's parameters to fixed point
 * @cfg: the members that only this rule uses are set
 * @params: the parameters, which timely_params_check() has accepted
 */
void timely_swift_cfg_init(struct timely_rate_cfg *cfg, const struct timely_params *params)
{
	u64 range_ns = (u64)params->rtt_ref_ns * SWIFT_FS_RANGE;

	cfg->fs_ns = div_u64(range_ns * SWIFT_FS_MILLIONTHS, 1000000);
	timely_swift_cfg_packet(cfg, SWIFT_PACKET_BYTES);
}

/* 1 / sqrt(@window), Q31, for a @window in packets, Q24, from 2^20 to 2^57. The first estimate is
 * linear, with an error of up to a tenth. Each step of Newton's method squares the error, so that
 * after three steps the error is below 10^-6.
 */
static u64 swift_inverse_root_q31(u64 window_q24)
{
	/* window_q24 is m * 2^shift, with m from 1 to 4 */
	u32 shift = (fls64(window_q24) - 1) & ~1U;
	u64 m_q28 = shift < 28 ? window_q24 << (28 - shift) : window_q24 >> (shift - 28);
	u64 y_q31 = (34406ULL << 16) - (m_q28 * 4751 >> 12);
	u32 i;

	for (i = 0; i < 3; i++)
		y_q31 = y_q31 * (3 * Q31_ONE - ((y_q31 * y_q31 >> 31) * m_q28 >> 28)) >> 32;
	return shift < WINDOW_SHIFT ? y_q31 << (WINDOW_SHIFT - shift) / 2 :
				      y_q31 >> (shift - WINDOW_SHIFT) / 2;
}

/* The window of a rate, bytes, Q24: the rate times @rtt. */
static u64 swift_window_q24(u64 rate_fp, u32 rtt)
{
	return mul_u64_u64_shr(rate_fp, rtt * TIMELY_NS_Q60,
			       TIMELY_RATE_SHIFT + NS_SHIFT - WINDOW_SHIFT);
}

/* Target delay, ns, Q16, for a window whose 1 / sqrt() is @root_q31. */
static u64 swift_target_q16(const struct timely_rate_cfg *cfg, u64 root_q31)
{
	u64 above_q31 = max(root_q31, SWIFT_FS_MAX_ROOT_Q31) - SWIFT_FS_MAX_ROOT_Q31;

	return ((u64)cfg->rtt_ref_ns << 16) + mul_u64_u64_shr(cfg->fs_ns, above_q31, 15);
}

/* Additive increase of a window for @acked bytes, bytes, Q24. */
static u64 swift_rise_q24(u32 acked, u64 root_q31)
{
	u64 rise_q24 = (u64)acked << WINDOW_SHIFT;

	if (root_q31 >= Q31_ONE)
		return rise_q24;
	return mul_u64_u64_shr(mul_u64_u64_shr(rise_q24, root_q31, 31), root_q31, 31);
}

/* Multiplicative decrease: the share of the window to subtract from it, Q32. @over_q16 is how far
 * the RTT is above the target, ns, Q16; @inv_rtt is 2^34 / RTT in 1/s.
 */
static u64 swift_fall_q32(const struct timely_rate_cfg *cfg, u64 over_q16, u64 inv_rtt)
{
	u64 share = mul_u64_u64_shr(over_q16, inv_rtt, 16);

	share = mul_u64_u64_shr(share, TIMELY_NS_Q60, NS_SHIFT + SECOND_SHIFT - 32);
	share = mul_u64_u32_shr(share, cfg->beta_q16, 16);
	return min(share, (u64)cfg->loss_beta_q16 << 16);
}

/**
 * timely_swift_fp() - compute a connection's rate by Swift's rule
 * @r: the connection's state; recent_ns is updated, and the caller updates the other members
 * @cfg: the configuration of the rule
 * @c: the completion
 * @rtt: the completion's RTT, ns, at least min_rtt
 *
 * Return: the new rate, bytes per second, Q16, at most the maximum rate.
 */
u64 timely_swift_fp(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		    const struct timely_completion *c, u32 rtt)
{
	u64 window_q24 = swift_window_q24(r->rate_fp, r->prev_rtt_ns ?: cfg->min_rtt_ns);
	u64 packets_q24 = mul_u64_u32_shr(window_q24, cfg->inv_packet, 32);
	u64 root_q31 = swift_inverse_root_q31(max(packets_q24, SWIFT_FS_MIN_Q24));
	u64 inv_rtt = div_u64((u64)NSEC_PER_SEC << SECOND_SHIFT, rtt);
	s64 over_q16 = ((u64)rtt << 16) - swift_target_q16(cfg, root_q31);

	r->recent_ns -= min_t(u64, r->recent_ns, c->now_ns - r->updated_ns);
	if (over_q16 < 0) {
		if (c->may_rise && !c->app_limited)
			window_q24 += swift_rise_q24(c->bytes, root_q31);
	} else if (U32_MAX - r->recent_ns >= rtt) {
		window_q24 -= mul_u64_u64_shr(window_q24, swift_fall_q32(cfg, over_q16, inv_rtt),
					      32);
		r->recent_ns = U32_MAX;
	}
	if (window_q24 >= swift_window_q24(cfg->max_rate_fp, rtt))
		return cfg->max_rate_fp;
	return mul_u64_u64_shr(window_q24, inv_rtt,
			       SECOND_SHIFT + WINDOW_SHIFT - TIMELY_RATE_SHIFT);
}
