/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RTT measurement engine: an ACK in, a completion or nothing out. See
 * net/timely/engine/rtt.c.
 */
#ifndef _TIMELY_ENGINE_RTT_H
#define _TIMELY_ENGINE_RTT_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "rate.h"

/* The longest RTT there is: what exceeds it is a wrong stamp. */
#define TIMELY_RTT_MAX_NS	(10ULL * NSEC_PER_SEC)

/* What becomes of an ACK, X(name, doc): first the RTTs by what ended them, then
 * the reasons for none. Each is a counter, and a result of
 * timely_rtt_measure(); the last ones only count.
 */
#define TIMELY_RTT_COUNTERS(X)						\
	X(hardware, "RTTs that ended with a NIC's stamp")		\
	X(driver, "RTTs that ended when the driver passed the ACK on")	\
	X(tcp, "RTTs that ended when TCP processed the ACK")		\
	X(nothing_new, "ACKs that complete nothing")			\
	X(partial, "ACKs that finish no segment, or one whose departure was not noted")	\
	X(retransmitted, "ACKs of what was sent twice")			\
	X(recovery, "ACKs in or just after loss recovery")		\
	X(delayed, "ACKs the receiver may have kept back")		\
	X(doubtful, "ACKs whose hardware stamp contradicts the NIC's clock line") \
	X(negative, "RTTs that would have ended before they began")	\
	X(too_long, "RTTs above ten seconds")				\
	X(clock_unsure, "hardware stamps not used, the NIC's clock line being unsure") \
	X(nic_unknown, "hardware stamps not used, their NIC being unknown")	\
	X(driver_unsure, "driver's stamps not used, as the real-time clock has just been set") \
	X(real_set, "times that the real-time clock was found to have been set") \
	X(drains_apart, "paths whose RTTs ceased to fall in drains: hosts' clocks differ")

#define TIMELY_RTT_ENUM(name, doc)	TIMELY_RTT_##name,

/* What became of an ACK, and the index of its counter. */
enum timely_rtt_result {
	TIMELY_RTT_COUNTERS(TIMELY_RTT_ENUM)
	TIMELY_RTT_COUNTER_COUNT
};

/**
 * struct timely_ack - what is known of an ACK
 * @now_ns: when TCP processes it, CLOCK_MONOTONIC
 * @arrived_ns: when it arrived, by a stamp; 0 if there is none
 * @sent_ns: when the segment was handed to the device; 0 if that was not seen
 * @scheduled_ns: when TCP had planned it to be
 * @source: what @arrived_ns is from: TIMELY_RTT_hardware, _driver; or
 *	TIMELY_RTT_doubtful if the stamp is not to be believed
 * @una: everything before is acknowledged
 * @end_seq: end of what was sent last of what this ACK is the first to confirm,
 *	by acknowledgment or SACK
 * @delivered: packets delivered so far
 * @mss: bytes of a packet
 * @segment_bytes: of the segment that ends at @end_seq: on the wire if @sent_ns
 *	is known, else the most there can be
 * @in_flight: packets in flight before the ACK
 * @acked: packets that it is the first to confirm
 * @ns_per_byte_q16: serialisation at the NIC's line rate, Q16; 0: not known
 * @least_ns: for an ACK that waited for its socket, which a NIC's stamp cannot be checked by:
 *	the path's base RTT; 0: not known, or it did not wait
 * @tail_limit_ns: an ACK of the last that was in flight, an MSS at most, that took
 *	longer may have been waiting for the receiver's timer
 * @new: it confirms something, and TCP has an RTT for it
 * @skipped: when it was handed to the device is one of the times not noted
 * @retransmitted: that was sent more than once
 * @recovery: TCP repairs losses, now or at the previous ACK
 * @delayed: TCP takes it for a delayed ACK
 * @sacked: packets are confirmed by SACK beyond @una
 */
struct timely_ack {
	u64 now_ns;
	u64 arrived_ns;
	u64 sent_ns;
	u64 scheduled_ns;
	enum timely_rtt_result source;
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
 * struct timely_rtt - RTT measurement state of one flow
 * @seq: everything before has been counted as completed
 * @delivered: packets delivered when @seq was reached
 */
struct timely_rtt {
	u32 seq;
	u32 delivered;
};

/**
 * struct timely_noise - what receivers of a path add to RTTs by holding ACKs
 * @seen_ns: time of the last RTT
 * @late_ns: what that was beyond the path's base
 * @jump_ns: by how much RTTs differ from those just before, on average
 * @due_ns: the queue that flows steer to, or what counts of it, on average
 * @samples: RTTs that the averages are of
 * @mean_ns: of the noise; 0 while it is not known from a queue
 */
struct timely_noise {
	u64 seen_ns;
	u32 late_ns;
	u32 jump_ns;
	u32 due_ns;
	u32 samples;
	u32 mean_ns;
};

/**
 * struct timely_late - an RTT that was measured while the path's flows drain
 * @now_ns: when
 * @late_ns: what it is beyond the path's base RTT
 * @before_ns: and what the flow's one before was
 * @due_ns: the queue that the flow steers to
 * @rates_lag: new rates of the flow are not in force for what waits in the host
 */
struct timely_late {
	u64 now_ns;
	u32 late_ns;
	u32 before_ns;
	u32 due_ns;
	bool rates_lag;
};

enum timely_rtt_result timely_rtt_refusal(const struct timely_ack *ack);
void timely_noise_add(struct timely_noise *noise, const struct timely_late *late);

static inline bool timely_seq_after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

/* What the path's base RTT and an RTT by a NIC's clock may be off by. */
#define TIMELY_RTT_LEAST_SLACK_NS	2000U

/* Bytes completed since the last completion. Packets count where SACK confirmed
 * them out of order; the last of them may be short of an MSS, as the sequence
 * numbers tell.
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

/* Bytes of the segment whose round trip it is, of which @bytes were completed. */
static inline u32 timely_rtt_segment(const struct timely_ack *ack, u32 bytes)
{
	return ack->sent_ns ? ack->segment_bytes : min(bytes, ack->segment_bytes);
}

/* Had the receiver less than two packets' worth to acknowledge, and no more to
 * expect? Then it may have waited for its timer.
 */
static inline bool timely_rtt_lone(const struct timely_ack *ack, u32 bytes)
{
	return ack->in_flight <= 1 ||
	       (ack->acked >= ack->in_flight && bytes <= ack->mss);
}

/**
 * timely_rtt_measure() - make a completion of an ACK
 * @rtt: the flow's state; brought up to date if the ACK is one
 * @ack: what is known of the ACK
 * @completion: on success its now_ns, rtt_ns and bytes
 *
 * RTTs are between 0 and TIMELY_RTT_MAX_NS, of which rtt_ns holds what fits.
 * Inline, as it is on the path of each ACK.
 *
 * Return: TIMELY_RTT_hardware, _driver or _tcp, the source of t_completion; or
 * the reason why there is none.
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
	/* By a NIC's clock that was set back an ACK arrives earlier than it did. */
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
