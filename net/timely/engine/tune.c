// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters that nobody gave: derived from the path's base RTT and the line's rate.
 * Documentation/tuning.md has the derivation, and what it was measured with.
 *
 * Pure, like rate.c. Not on the path of an ACK: once for a connection, and again when
 * its path changes.
 */

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "rate.h"
#include "tune.h"

/* Where nothing is known: Linux's hosts are on 10 Gb/s and more, and what is taken for
 * slower than it is keeps longer queues, but shares and fills the line.
 */
#define TUNE_LINE_KBPS		10000000U
#define TUNE_BASE_RTT_NS	20000U
#define TUNE_MSS		1448U

/* Headers, checksum and gap of a packet on the wire, beyond its payload. */
#define TUNE_HEADERS		90U

/* A segment is short for the line, as queues are some roots of N of them: 5 us; and short
 * for the path, or two flows that come at the rate of the port do not share it. Beyond
 * 25 Gb/s that many bytes are not needed to save the CPU time of smaller ones: there
 * 16 KB, or 1.25 us.
 */
#define TUNE_SEGMENT_NS		5000U
#define TUNE_SEGMENT_SHARE	3	/* of the base RTT */
#define TUNE_SEGMENT_FAST_NS	1250U
#define TUNE_SEGMENT_FAST_BYTES	16384U

/* A flow alone keeps so many packets waiting, or so long a queue where that is less than
 * what hosts' stamps and timers are off by. N flows keep half of a segment times sqrt(N)
 * more: N bursts at random times make a queue of .63 sqrt(N) on average on a line that
 * is always busy.
 */
#define TUNE_QUEUE_PACKETS	3
#define TUNE_QUEUE_NS		4000U

/* Far above what N flows queue, and within shallow buffers: in RTTs, and packets. */
#define TUNE_HIGH_RTTS		8
#define TUNE_HIGH_PACKETS	40
#define TUNE_HIGH_NOISES	4	/* times its mean: twice the most, if it is even */

/* The least share of the line that a flow falls to. */
#define TUNE_LEAST_SHARE	5000
#define TUNE_LEAST_KBPS		100U

/* patched TIMELY's, found on the testbed at 20 Gb/s: delta is the line's 8000th. */
#define TUNE_STEP_SHARE		8000
#define TUNE_PULL_PPM		25000
/* steering's: of the rate, for an error of one, in a round trip */
#define TUNE_STEER_PPM		20000

/* Where new rates are not in force for what waits in the host, some segments of the
 * flow, that is a part of the loop: shorter ones wait for less, a weaker pull fits the
 * longer delay, and flows that move about more need more of a slope to meet.
 */
#define TUNE_LATE_STEER_PPM	7000
#define TUNE_LATE_SEGMENTS	2	/* for one elsewhere */
#define TUNE_LATE_QUEUE		3	/* times the segment's part of the queue */

/* fq's timer goes off up to its timer_slack of 10 us late, and then all leaves that has
 * become due: to a flow that fills a line alone its own segments look like a queue of
 * nearly that. (As rtt_noise_ns it would make flows slow to answer to messages' bursts.)
 */
#define TUNE_SLACK_NS		10000U

static void tune_one(u32 *value, u64 derived, u32 min, u32 max)
{
	if (*value == TIMELY_AUTO)
		*value = clamp_t(u64, derived, min, max);
}

#define tune(params, field, derived)					\
	tune_one(&(params)->field, derived,				\
		 timely_param_descs[TIMELY_P_##field].min,		\
		 timely_param_descs[TIMELY_P_##field].max)

static u32 tune_ns(u64 bytes, u32 kbps)
{
	return div_u64(bytes * 8000000, kbps);
}

static u32 tune_packets(u32 ns, u32 kbps, u32 packet)
{
	return div_u64(div_u64((u64)ns * kbps, 8000000), packet);
}

/* Packets of a segment: an even number, as every second one is acknowledged. */
static u32 tune_segment_packets(u32 base_ns, u32 kbps, u32 mss, bool late)
{
	u32 ns = min(base_ns / TUNE_SEGMENT_SHARE, TUNE_SEGMENT_NS);
	u32 packet = mss + TUNE_HEADERS;
	u32 fast = max(tune_packets(TUNE_SEGMENT_FAST_NS, kbps, packet),
		       TUNE_SEGMENT_FAST_BYTES / packet);
	u32 packets = min(tune_packets(ns, kbps, packet), fast);

	packets = min(packets, timely_param_descs[TIMELY_P_segment_bytes].max / mss);
	if (late)
		packets /= TUNE_LATE_SEGMENTS;
	return max(packets & ~1U, TIMELY_SEGMENT_PACKETS);
}

/* Thresholds: the base RTT, and queues that the line makes of packets and segments. */
static void tune_queue(struct timely_params *params, u32 kbps, u32 mss,
		       enum timely_lateness late)
{
	u32 packet_ns = tune_ns(mss + TUNE_HEADERS, kbps);
	u64 wire_bytes = div_u64((u64)params->segment_bytes * (mss + TUNE_HEADERS), mss);
	u32 segment_ns = tune_ns(wire_bytes, kbps);
	u64 base_ns = params->min_rtt_ns;
	u32 root = int_sqrt(kbps);	/* 1000 for 1 Gb/s */

	tune(params, rtt_ref_ns,
	     base_ns + max(TUNE_QUEUE_PACKETS * (u64)packet_ns, (u64)TUNE_QUEUE_NS) +
	     (late == TIMELY_LATE_BY_SLACK ? TUNE_SLACK_NS : 0));
	tune(params, rtt_ref_1g_ns,
	     div_u64((u64)segment_ns * root * (late ? TUNE_LATE_QUEUE : 1), 2 * 1000));
	tune(params, t_high_ns,
	     max_t(u64, TUNE_HIGH_RTTS * base_ns + TUNE_HIGH_PACKETS * (u64)packet_ns +
		   TUNE_HIGH_NOISES * (u64)params->rtt_noise_ns,
		   params->t_low_ns == TIMELY_AUTO ? 0 : params->t_low_ns));
	tune(params, t_low_ns, min(params->rtt_ref_ns, params->t_high_ns));
}

static void tune_rates(struct timely_params *params, u32 kbps)
{
	u32 least = params->min_rate_kbps == TIMELY_AUTO ? 0 : params->min_rate_kbps;

	tune(params, max_rate_kbps, max(params->line_rate_kbps ?: U32_MAX, least));
	tune(params, min_rate_kbps,
	     min(max(kbps / TUNE_LEAST_SHARE, TUNE_LEAST_KBPS), params->max_rate_kbps));
	tune(params, first_rate_kbps, kbps / TIMELY_FIRST_SHARE);
	tune(params, delta_kbps, kbps / TUNE_STEP_SHARE);
}

/**
 * timely_tune() - put a value in the place of each TIMELY_AUTO
 * @params: checked by timely_params_check(), which they pass afterwards too
 * @path: what is known of the path
 *
 * Values that were given stay as they are, and what is derived goes by them: a rate of
 * the line, a base RTT or a segment size that was given is the path's.
 */
void timely_tune(struct timely_params *params, const struct timely_path *path)
{
	u32 mss = clamp(path->mss ?: TUNE_MSS, 64U, 65535U);
	u32 kbps;

	tune(params, line_rate_kbps, path->line_kbps);
	kbps = params->line_rate_kbps ?: path->line_kbps ?: path->likely_kbps ?: TUNE_LINE_KBPS;
	tune(params, min_rtt_ns, path->base_rtt_ns ?: TUNE_BASE_RTT_NS);
	tune(params, rtt_noise_ns, path->noise_ns);
	tune(params, segment_bytes,
	     (u64)tune_segment_packets(params->min_rtt_ns, kbps, mss, path->late) * mss);
	tune(params, beta_ppm, params->rule != TIMELY_RULE_STEER ? TUNE_PULL_PPM :
			       path->late ? TUNE_LATE_STEER_PPM : TUNE_STEER_PPM);
	tune_rates(params, kbps);
	tune_queue(params, kbps, mss, path->late);
}
EXPORT_SYMBOL_GPL(timely_tune);

/**
 * timely_first_base_ns() - the base RTT that the handshake's tells
 * @handshake_ns: a round trip of packets without data
 * @segment_bytes: of a whole segment, if its time on the line is not taken off its
 *	RTT; else 0
 *
 * Return: ns.
 */
u32 timely_first_base_ns(u32 handshake_ns, u32 segment_bytes)
{
	return min_t(u64, (u64)handshake_ns + tune_ns(segment_bytes, TUNE_LINE_KBPS), U32_MAX);
}
EXPORT_SYMBOL_GPL(timely_first_base_ns);
