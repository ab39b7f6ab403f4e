// SPDX-License-Identifier: GPL-2.0
/*
 * Computes parameters with the value "auto" from what is known about the path: base RTT, link rate,
 * MSS, ACK aggregation, and whether new rates apply to queued packets. tcp_timely passes the result
 * to the rate engine (rate.c). Documentation/tuning.md has the derivation and the measurements.
 *
 * The engine knows no socket and no clock. It does not run for each ACK, but once for a new
 * connection and again when its path changes.
 */

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "rate.h"
#include "tune.h"

/* Link rate, base RTT and MSS assumed for a path where they are not known. Linux servers mostly
 * have 10 Gb/s or more. If the assumed link rate is too low, queues are longer, but connections
 * still share and fill the link.
 */
#define TUNE_LINK_KBPS		10000000U
#define TUNE_BASE_RTT_NS	20000U
#define TUNE_MSS		1448U

/* Bytes of a frame on the wire besides its payload, for IPv4: IP and TCP headers with timestamps
 * (52), Ethernet header and checksum (18), preamble and inter-packet gap (20).
 */
#define TUNE_HEADERS		90U

/* The serialization of a segment at the link rate takes at most
 *  - 5 us, because N connections queue about sqrt(N) segments;
 *  - a third of the base RTT, because otherwise two connections that fill a port do not share the
 *    port evenly.
 */
#define TUNE_SEGMENT_NS		5000U
#define TUNE_SEGMENT_SHARE	3	/* of the base RTT */

/* Target delay of a single connection: the longer of TUNE_QUEUE_PACKETS packets and TUNE_QUEUE_NS,
 * because timestamps and timers of hosts have errors of this size. With N connections the target
 * delay is longer by half of a segment times sqrt(N): N bursts at random times make an average
 * queue of .63 sqrt(N) bursts on a fully used link.
 */
#define TUNE_QUEUE_PACKETS	3
#define TUNE_QUEUE_NS		4000U

/* t_high is the sum of three parts. It is far above the queues of N connections, and within the
 * shallow buffers of switches.
 */
#define TUNE_HIGH_RTTS		8	/* times the base RTT */
#define TUNE_HIGH_PACKETS	40	/* times the serialization of a packet */
#define TUNE_HIGH_ACK_AGGS	4	/* times the mean of the ACK aggregation */

/* Minimum rate of a connection: the link rate divided by this number, but at least 100 kb/s. */
#define TUNE_MIN_RATE_SHARE	5000
#define TUNE_MIN_RATE_KBPS	100U

/* Values for all rules but the default, found with the patched rule on a testbed with 20 Gb/s:
 * delta is the link rate divided by 8000.
 */
#define TUNE_STEP_SHARE		8000
#define TUNE_OTHER_BETA_PPM		25000
/* target-delay rule: share of the rate per round trip, for an error of one */
#define TUNE_BETA_PPM		20000

/* theta-PowerTCP: the window grows by what the host's link carries in a base RTT, divided by this
 * number of connections that are expected at once (N; 10 in the authors' code for Linux).
 */
#define TUNE_POWERTCP_FLOWS		10
/* Swift: the window of a new connection, packets. The paper gives none; TCP's is 10 (RFC 6928). */
#define TUNE_SWIFT_PACKETS		10

/* Where new rates do not apply to queued packets, the segments that wait in the host are a delay in
 * the control loop. Shorter segments make this delay shorter, and a smaller beta suits the delay
 * that remains. The rates vary more, and need a target delay that falls more steeply to converge.
 */
#define TUNE_LAG_BETA_PPM	7000
#define TUNE_LAG_SEGMENTS	2	/* segments are shorter by this factor */
#define TUNE_LAG_QUEUE		3	/* factor of the target delay's part for N connections */

/* fq's timer expires up to its timer_slack of 10 us late, and then releases all packets that have
 * become due. So even a connection that is alone on the link measures nearly 10 us of queueing
 * delay, and the target delay is longer by the slack. If ack_aggregation_ns were longer instead,
 * connections would react too slowly to bursts of messages.
 */
#define TUNE_SLACK_NS		10000U

/* Set a parameter that is "auto" to the computed value, limited to the parameter's range. */
static void tune_one(u32 *value, u64 computed, u32 min, u32 max)
{
	if (*value == TIMELY_AUTO)
		*value = clamp_t(u64, computed, min, max);
}

#define tune(params, field, computed)					\
	tune_one(&(params)->field, computed,				\
		 timely_param_descs[TIMELY_P_##field].min,		\
		 timely_param_descs[TIMELY_P_##field].max)

/* Serialization time of @bytes at a rate of @kbps, ns. */
static u64 tune_ns(u64 bytes, u32 kbps)
{
	return div_u64(bytes * 8000000, kbps);
}

/* Number of packets of @packet bytes that are sent in @ns at a rate of @kbps, rounded down. */
static u32 tune_packets(u32 ns, u32 kbps, u32 packet)
{
	return div_u64(div_u64((u64)ns * kbps, 8000000), packet);
}

/* Packets of a segment: an even number, because receivers acknowledge every second packet.
 *
 * With a window rule, a segment is a packet, as in the papers. The window of one of many
 * connections is two or three packets. If segments were longer, RTTs of single packets would not
 * count for the base RTT where RTTs include serialization. (tcp_timely sends two packets at once
 * all the same if the window allows.)
 */
static u32 tune_segment_packets(const struct timely_params *params, u32 kbps, u32 mss, bool lag)
{
	u32 base_ns = params->min_rtt_ns;
	u32 ns = min(base_ns / TUNE_SEGMENT_SHARE, TUNE_SEGMENT_NS);
	u32 packet = mss + TUNE_HEADERS;
	u32 packets = tune_packets(ns, kbps, packet);

	if (params->rule > TIMELY_RULE_TARGET_DELAY)
		return 1;
	packets = min(packets, timely_param_descs[TIMELY_P_segment_bytes].max / mss);
	if (lag)
		packets /= TUNE_LAG_SEGMENTS;
	return max(packets & ~1U, TIMELY_SEGMENT_PACKETS);
}

/* Compute the thresholds t_low_ns and t_high_ns, and the parameters of the target delay, rtt_ref_ns
 * and rtt_ref_1g_ns, from the serialization times of packets and segments at the link rate.
 */
static void tune_queue(struct timely_params *params, u32 kbps, u32 mss,
		       enum timely_rate_lag lag)
{
	u64 packet_ns = tune_ns(mss + TUNE_HEADERS, kbps);
	u64 wire_bytes = div_u64((u64)params->segment_bytes * (mss + TUNE_HEADERS), mss);
	u64 segment_ns = tune_ns(wire_bytes, kbps);
	u64 base_ns = params->min_rtt_ns;
	u32 root = int_sqrt(kbps);	/* 1000 for 1 Gb/s */

	tune(params, rtt_ref_ns,
	     base_ns + max(TUNE_QUEUE_PACKETS * packet_ns, (u64)TUNE_QUEUE_NS) +
	     (lag == TIMELY_RATE_LAG_SLACK ? TUNE_SLACK_NS : 0));
	tune(params, rtt_ref_1g_ns,
	     div_u64(segment_ns * root * (lag ? TUNE_LAG_QUEUE : 1), 2 * 1000));
	tune(params, t_high_ns,
	     max_t(u64, TUNE_HIGH_RTTS * base_ns + TUNE_HIGH_PACKETS * packet_ns +
		   TUNE_HIGH_ACK_AGGS * (u64)params->ack_aggregation_ns,
		   params->t_low_ns == TIMELY_AUTO ? 0 : params->t_low_ns));
	tune(params, t_low_ns, min(params->rtt_ref_ns, params->t_high_ns));
}

/* Rates of the window rules. theta-PowerTCP's largest window, and the window of a new connection,
 * is what the host's link carries in a base RTT. (The authors' simulator has this maximum.)
 */
static void tune_window(struct timely_params *params, u32 kbps, u32 mss)
{
	u32 min_rate = params->min_rate_kbps == TIMELY_AUTO ? 0 : params->min_rate_kbps;

	if (params->rule == TIMELY_RULE_POWERTCP) {
		tune(params, max_rate_kbps, max(kbps, min_rate));
		tune(params, first_rate_kbps, kbps);
		tune(params, delta_kbps, kbps / TUNE_POWERTCP_FLOWS);
	} else if (params->rule == TIMELY_RULE_SWIFT) {
		tune(params, first_rate_kbps,
		     min_t(u64, div_u64(TUNE_SWIFT_PACKETS * 8000000ULL * mss, params->min_rtt_ns),
			   kbps));
	}
}

/* Compute a connection's maximum, minimum and first rate, and the additive step delta_kbps. */
static void tune_rates(struct timely_params *params, u32 kbps)
{
	u32 min_rate = params->min_rate_kbps == TIMELY_AUTO ? 0 : params->min_rate_kbps;

	tune(params, max_rate_kbps, max(params->link_rate_kbps ?: U32_MAX, min_rate));
	tune(params, min_rate_kbps,
	     min(max(kbps / TUNE_MIN_RATE_SHARE, TUNE_MIN_RATE_KBPS), params->max_rate_kbps));
	tune(params, first_rate_kbps, kbps / TIMELY_FIRST_SHARE);
	tune(params, delta_kbps, kbps / TUNE_STEP_SHARE);
}

/**
 * timely_tune() - replace each TIMELY_AUTO by a value
 * @params: parameters that timely_params_check() accepts, before and after the call
 * @path: what the connection knows about its path
 *
 * Given values are not changed. Computed values do not contradict given ones: a given link rate,
 * base RTT or segment size replaces the measured one.
 *
 * Return: the link rate that the values were computed for, kbit/s; never 0.
 */
u32 timely_tune(struct timely_params *params, const struct timely_path *path)
{
	u32 mss = clamp(path->mss ?: TUNE_MSS, 64U, 65535U);
	u32 kbps;

	tune(params, link_rate_kbps, path->link_kbps);
	kbps = params->link_rate_kbps ?: path->link_kbps ?: path->likely_kbps ?: TUNE_LINK_KBPS;
	tune(params, min_rtt_ns, path->base_rtt_ns ?: TUNE_BASE_RTT_NS);
	tune(params, ack_aggregation_ns, path->ack_agg_ns);
	tune(params, segment_bytes,
	     (u64)tune_segment_packets(params, kbps, mss, path->lag) * mss);
	tune(params, beta_ppm, params->rule != TIMELY_RULE_TARGET_DELAY ? TUNE_OTHER_BETA_PPM :
			       path->lag ? TUNE_LAG_BETA_PPM : TUNE_BETA_PPM);
	tune_window(params, kbps, mss);
	tune_rates(params, kbps);
	tune_queue(params, kbps, mss, path->lag);
	return kbps;
}
EXPORT_SYMBOL_GPL(timely_tune);

/**
 * timely_first_base_ns() - estimate the base RTT from the RTT of the handshake
 * @handshake_ns: an RTT of packets without data, ns
 * @segment_bytes: length of a whole segment if its serialization time is not subtracted
 *	from its RTT; else 0
 *
 * RTTs of segments are longer than the RTT of the handshake by the segments' serialization. If that
 * is not subtracted, the link rate is not known, and 10 Gb/s is assumed.
 *
 * Return: the estimate, ns, at most U32_MAX.
 */
u32 timely_first_base_ns(u32 handshake_ns, u32 segment_bytes)
{
	return min_t(u64, handshake_ns + tune_ns(segment_bytes, TUNE_LINK_KBPS), U32_MAX);
}
EXPORT_SYMBOL_GPL(timely_first_base_ns);
