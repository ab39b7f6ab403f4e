/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RTT measurement engine: computes the RTT of the pacing segment ("segment" for short) that an
 * ACK completes, and estimates ACK aggregation. rtt.c explains both. net/ipv4/tcp_timely.c fills in
 * struct timely_ack, and passes the RTT to the rate engine (rate.h).
 */
#ifndef _TIMELY_ENGINE_RTT_H
#define _TIMELY_ENGINE_RTT_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "rate.h"

/* Longest credible RTT. A longer RTT means that a timestamp is wrong. */
#define TIMELY_RTT_MAX_NS	(10ULL * NSEC_PER_SEC)

/* Results of an ACK, X(name, description). Each is a counter, and users read the descriptions.
 *
 * hardware to tcp: the ACK gave an RTT; the name says which time is the RTT's end. nothing_new to
 * too_long: the reason why the ACK gave no RTT. These are also the return values of
 * timely_rtt_measure(). clock_unsure and the following ones are counters only.
 */
#define TIMELY_RTT_COUNTERS(X)						\
	X(hardware, "RTTs that ended at a hardware timestamp")		\
	X(driver, "RTTs that ended at a driver timestamp")		\
	X(tcp, "RTTs that ended when TCP processed the ACK")		\
	X(nothing_new, "ACKs of nothing new, or for which TCP has no RTT")	\
	X(partial, "ACKs that complete no segment, or one whose departure time is not known")	\
	X(retransmitted, "ACKs of retransmitted data")			\
	X(recovery, "ACKs during or just after loss recovery")		\
	X(delayed, "ACKs that the receiver may have delayed")		\
	X(doubtful, "ACKs whose hardware timestamp contradicts the NIC's clock mapping") \
	X(negative, "ACKs that seem to arrive before their segment departed")	\
	X(too_long, "RTTs above ten seconds, not used")			\
	X(clock_unsure, "hardware timestamps not used: the NIC's clock mapping is not sure") \
	X(nic_unknown, "hardware timestamps not used: their NIC is not known")	\
	X(driver_unsure, "driver timestamps not used: the real-time clock was just set") \
	X(real_set, "how often the real-time clock was found to have been set")	\
	X(probes_apart, "paths whose RTTs ceased to fall in base-RTT probes: hosts' clocks differ")\
	X(probes_common, "base-RTT probes that started by the common time of timely-clockd") \
	X(probes_unsynced, "base-RTT probes by the real-time clock: common time old or not exact")

#define TIMELY_RTT_ENUM(name, doc)	TIMELY_RTT_##name,

/* The result of an ACK, and the index of its counter. */
enum timely_rtt_result {
	TIMELY_RTT_COUNTERS(TIMELY_RTT_ENUM)
	TIMELY_RTT_COUNTER_COUNT
};

/**
 * struct timely_ack - what is known about an ACK
 * @now_ns: when TCP processes the ACK, CLOCK_MONOTONIC
 * @arrived_ns: when the ACK arrived, by a timestamp, CLOCK_MONOTONIC; 0 for none
 * @sent_ns: when the segment was passed to the device, CLOCK_MONOTONIC; 0 if not recorded
 * @unsure_ns: 0 if @sent_ns was recorded; if it is an estimate, the segment was passed to the
 *	device at most this time earlier
 * @scheduled_ns: when TCP had scheduled the segment to leave, CLOCK_MONOTONIC
 * @source: if @arrived_ns is not 0, its source: TIMELY_RTT_hardware or TIMELY_RTT_driver.
 *	TIMELY_RTT_doubtful if the hardware timestamp contradicts the clock mapping: no RTT
 * @una: all data before this sequence number are acknowledged
 * @end_seq: end of the newest data that this ACK is the first to confirm, by acknowledgment or SACK
 * @delivered: packets of the connection delivered so far, including those that this ACK confirms
 * @mss: payload bytes of a packet
 * @segment_bytes: length of the segment that ends at @end_seq: the length on the wire, or an
 *	estimate of it, if @sent_ns is known, else the largest possible length
 * @in_flight: packets in flight before the ACK
 * @acked: packets that this ACK is the first to confirm
 * @ns_per_byte_q16: serialization time of a byte at the link rate, ns, Q16; 0 if not known
 * @least_ns: base RTT of the path if the ACK has a hardware timestamp and waited for its socket:
 *	an RTT shorter than this shows that the timestamp is wrong; 0: no such check
 * @tail_limit_ns: longest RTT that an ACK gives if the receiver may have delayed it, see
 *	timely_rtt_lone()
 * @new: the ACK confirms new data, and TCP has an RTT of these data
 * @skipped: the qdisc sent the segment but had no room to record the departure. (If departures are
 *	not recorded at all, @sent_ns is 0 and @skipped is false.)
 * @retransmitted: the confirmed data were sent more than once
 * @recovery: TCP repairs losses now, or did so at the previous ACK
 * @delayed: TCP regards the ACK as delayed
 * @sacked: SACK confirms packets beyond @una
 */
struct timely_ack {
	u64 now_ns;
	u64 arrived_ns;
	u64 sent_ns;
	u64 scheduled_ns;
	enum timely_rtt_result source;
	u32 unsure_ns;
	u32 una;
	u32 end_seq;
	u32 delivered;
	u32 mss;
	u32 segment_bytes;
	u32 in_flight;
	u32 acked;
	u32 ns_per_byte_q16;
	u32 least_ns;
	u32 tail_limit_ns;
	bool new;
	bool skipped;
	bool retransmitted;
	bool recovery;
	bool delayed;
	bool sacked;
};

/**
 * struct timely_rtt - the RTT measurement engine's state of a connection
 * @seq: all data before this sequence number have been counted as completed
 * @delivered: packets delivered when @seq was reached
 */
struct timely_rtt {
	u32 seq;
	u32 delivered;
};

/**
 * struct timely_ack_agg - estimate of what ACK aggregation adds to the RTTs of a path
 * @seen_ns: time of the last RTT that was added to the estimate, CLOCK_MONOTONIC
 * @probe_queue_ns: the last RTT that was added, minus the base RTT of the path
 * @least_ns: the lowest of these differences in the last base-RTT probe
 * @jump_ns: average difference of successive RTTs
 * @fall_ns: average by which an RTT is lower than the RTT before; 0 counts for one that is higher
 * @due_ns: average target delay of the connections, to compare @mean_ns with; of connections
 *	whose new rates do not apply to queued packets, a fifth of the target delay
 * @samples: number of RTTs in the averages @jump_ns and @due_ns, at most 64
 * @past_first: the path's first base-RTT probe is over
 * @mean_ns: mean of what ACK aggregation adds; 0 if there is none, or too little to be
 *	distinguished from a queue
 */
struct timely_ack_agg {
	u64 seen_ns;
	u32 probe_queue_ns;
	u32 least_ns;
	u32 jump_ns;
	u32 fall_ns;
	u32 due_ns;
	u32 samples;
	bool past_first;
	u32 mean_ns;
};

/**
 * struct timely_probe_sample - an RTT that was measured in a base-RTT probe
 * @now_ns: time of the RTT, CLOCK_MONOTONIC
 * @probe_queue_ns: the RTT minus the base RTT of the path
 * @before_ns: the connection's previous RTT minus the base RTT of the path
 * @due_ns: target delay of the connection
 * @rates_lag: new rates of the connection do not apply to queued packets
 */
struct timely_probe_sample {
	u64 now_ns;
	u32 probe_queue_ns;
	u32 before_ns;
	u32 due_ns;
	bool rates_lag;
};

enum timely_rtt_result timely_rtt_refusal(const struct timely_ack *ack);
void timely_ack_agg_add(struct timely_ack_agg *ack_agg, const struct timely_probe_sample *sample);

/* Whether TCP sequence number @a is after @b; sequence numbers wrap. */
static inline bool timely_seq_after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

/* An RTT by a NIC's clock may be shorter than the base RTT of the path by this error of the NIC's
 * clock mapping: a mapping with a larger error, above 2 us, is not sure (clock.c).
 */
#define TIMELY_RTT_LEAST_SLACK_NS	2000U

/* Bytes completed since the last completion. Data that SACK confirmed out of order are counted in
 * packets; the last packet may be shorter than an MSS, which the sequence numbers show.
 */
static inline u32 timely_rtt_bytes(const struct timely_rtt *rtt,
				   const struct timely_ack *ack)
{
	u64 delivered = (u64)(u32)(ack->delivered - rtt->delivered) * ack->mss;
	u32 acked = ack->una - rtt->seq;

	if (!ack->sacked && acked && acked < delivered)
		return acked;
	return clamp_t(u64, delivered, 1, U32_MAX);
}

/* Bytes of the segment that the RTT belongs to. @bytes: result of timely_rtt_bytes(), used if the
 * segment's departure was not recorded.
 */
static inline u32 timely_rtt_segment(const struct timely_ack *ack, u32 bytes)
{
	return ack->sent_ns ? ack->segment_bytes : min(bytes, ack->segment_bytes);
}

/* Whether the receiver had less than two packets to acknowledge and no other packet was in flight,
 * so that the receiver may have delayed the ACK until its delayed-ACK timer expired.
 */
static inline bool timely_rtt_lone(const struct timely_ack *ack, u32 bytes)
{
	return ack->in_flight <= 1 ||
	       (ack->acked >= ack->in_flight && bytes <= ack->mss);
}

/**
 * timely_rtt_measure() - measure an RTT from an ACK
 * @rtt: the connection's state; updated if there is an RTT
 * @ack: the ACK
 * @completion: now_ns, rtt_ns and bytes are set if there is an RTT; else unchanged
 *
 * RTTs are from 0 to TIMELY_RTT_MAX_NS. RTTs above U32_MAX ns (4.3 s) are stored as U32_MAX. The
 * function is inline because it runs for each ACK.
 *
 * Return: TIMELY_RTT_hardware, TIMELY_RTT_driver or TIMELY_RTT_tcp, the source of the RTT's end; or
 * the reason why there is no RTT.
 */
static inline enum timely_rtt_result
timely_rtt_measure(struct timely_rtt *rtt, const struct timely_ack *ack,
		   struct timely_completion *completion)
{
	u64 end_ns = ack->arrived_ns ?: ack->now_ns;
	u64 sent_ns = ack->sent_ns ?: ack->scheduled_ns;
	enum timely_rtt_result result = timely_rtt_refusal(ack);
	u64 rtt_ns, serialisation_ns;
	u32 bytes;

	if (result != TIMELY_RTT_COUNTER_COUNT)
		return result;
	if (end_ns < sent_ns)
		return TIMELY_RTT_negative;
	rtt_ns = end_ns - sent_ns;
	if (rtt_ns > TIMELY_RTT_MAX_NS)
		return TIMELY_RTT_too_long;
	bytes = timely_rtt_bytes(rtt, ack);
	if (rtt_ns > ack->tail_limit_ns && timely_rtt_lone(ack, bytes))
		return TIMELY_RTT_delayed;

	serialisation_ns = (u64)timely_rtt_segment(ack, bytes) * ack->ns_per_byte_q16 >> 16;
	rtt_ns -= min(rtt_ns, serialisation_ns);
	/* If the NIC's clock was set back, an ACK seems to arrive too early, and the RTT is shorter
	 * than the base RTT.
	 */
	if (rtt_ns + TIMELY_RTT_LEAST_SLACK_NS < ack->least_ns)
		return TIMELY_RTT_doubtful;
	completion->now_ns = ack->now_ns;
	completion->rtt_ns = min_t(u64, rtt_ns, U32_MAX);
	completion->bytes = bytes;

	rtt->seq = ack->una;
	rtt->delivered = ack->delivered;
	return ack->arrived_ns ? ack->source : TIMELY_RTT_tcp;
}

#endif /* _TIMELY_ENGINE_RTT_H */
