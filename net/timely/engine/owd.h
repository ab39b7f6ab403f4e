/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp's delays: compute the delay that the controller (pause.h) uses from the times of a packet
 * and of the OR-ACK about the packet. onramp_flow.c calls these functions. See
 * net/timely/engine/owd.c.
 */
#ifndef _TIMELY_ENGINE_OWD_H
#define _TIMELY_ENGINE_OWD_H

#include <linux/types.h>

#include "clock.h"
#include "pause.h"

/**
 * struct timely_offset - an interval that contains the offset of a receiver's clock
 * @low_ns: lower end of the interval; wraps
 * @width_ns: length of the interval. A packet arrives after it departed and before its
 *	OR-ACK arrives, so the length is about the shortest RTT or less
 * @at_ns: when an OR-ACK last agreed with the interval, CLOCK_MONOTONIC; 0: there is no interval
 *
 * The offset is the receiver's clock minus the sender's CLOCK_MONOTONIC, in ns.
 */
struct timely_offset {
	u64 low_ns;
	u64 width_ns;
	u64 at_ns;
};

/**
 * struct timely_timeline - which receive times of a flow's OR-ACKs are possible
 * @known: offset of the receiver's clock by the OR-ACKs that were accepted
 * @other: offset by the latest OR-ACKs if these contradict @known but not each other
 * @since_ns: when the first OR-ACK of @other arrived, CLOCK_MONOTONIC
 * @count: number of OR-ACKs in @other; 0 if the last OR-ACK was accepted
 *
 * The initial state is all zero.
 */
struct timely_timeline {
	struct timely_offset known;
	struct timely_offset other;
	u64 since_ns;
	u32 count;
};

/* Largest values that timely_sync_set() accepts. */
#define TIMELY_SYNC_VALID_MAX_NS	(100ULL * 1000000000)
#define TIMELY_SYNC_DRIFT_MAX_PPB	1000000
#define TIMELY_SYNC_BOUND_MAX_NS	1000000000

/**
 * struct timely_sync - offset of a receiver's clock, as a clock daemon measured it
 * @at_ns: when the offset was @offset_ns, CLOCK_MONOTONIC; 0: no daemon has measured an offset
 * @offset_ns: the receiver's clock minus the sender's CLOCK_MONOTONIC at @at_ns, ns
 * @valid_ns: how long after @at_ns the offset may be used, ns
 * @drift_q32: growth of @offset_ns, 2^-32 ns per ns
 * @growth_q32: growth of @bound_ns, 2^-32 ns per ns
 * @bound_ns: largest error of @offset_ns at @at_ns, ns
 *
 * The sender's CLOCK_MONOTONIC is never stepped, so a step of the sender's CLOCK_REALTIME does not
 * make the offset wrong.
 */
struct timely_sync {
	u64 at_ns;
	s64 offset_ns;
	u64 valid_ns;
	s32 drift_q32;
	u32 growth_q32;
	u32 bound_ns;
};

/**
 * struct timely_owd - what is known about the delays to a peer
 * @rtt: minimum RTT of the last 5 to 10 s
 * @raw: minimum raw delay of the last 5 to 10 s: forward delay plus a reverse delay that is as
 *	constant as possible (owd_raw_ns())
 * @offset: offset of the peer's clock by the last accepted OR-ACK of any flow
 * @clock: mapping of the peer's clock to the sender's CLOCK_MONOTONIC; allocated and freed by
 *	the caller; NULL: a relative delay is computed from RTTs alone
 * @batch: timestamp pairs for @clock
 * @steps: @clock->steps, the steps of the peer's clock, when @raw was last restarted for a step
 * @noticed: how often a clock step, a wrong mapping or unsynchronised clocks were detected
 * @strange: number of absolute delays above the threshold that the RTT does not explain,
 *	since the last delay below the threshold
 * @strange_ns: when the first of the @strange delays was measured, CLOCK_MONOTONIC
 * @absolute_ns: when the last absolute delay was measured, CLOCK_MONOTONIC
 * @doubted: the clocks are not synchronised: absolute delays are limited to the excess of the
 *	RTT
 */
struct timely_owd {
	struct timely_min_filter rtt;
	struct timely_min_filter raw;
	struct timely_offset offset;
	struct timely_clock *clock;
	struct timely_clock_batch batch;
	u32 steps;
	u32 noticed;
	u32 strange;
	u64 strange_ns;
	u64 absolute_ns;
	bool doubted;
};

/**
 * struct timely_owd_signal - times of a packet and of the OR-ACK about the packet
 * @now_ns: when the OR-ACK arrived, CLOCK_MONOTONIC
 * @sent_ns: when the packet departed, CLOCK_MONOTONIC, at most TIMELY_PAUSE_DELAY_MAX_NS earlier
 * @received_ns: when the receiver got the packet, by the receiver's CLOCK_REALTIME
 * @turnaround_ns: time from @received_ns to the departure of the OR-ACK, at most the time
 *	from @sent_ns to @now_ns
 * @real_ns: CLOCK_REALTIME minus CLOCK_MONOTONIC of the sender, by which absolute delays take the
 *	receiver's clock for the sender's; or the offset of timely_sync_get()
 */
struct timely_owd_signal {
	u64 now_ns;
	u64 sent_ns;
	u64 received_ns;
	u32 turnaround_ns;
	u64 real_ns;
};

/**
 * enum timely_owd_verdict - whether the times of a signal are usable
 * @TIMELY_OWD_BAD: the receive time is impossible: ignore the signal
 * @TIMELY_OWD_GOOD: the delay is known
 * @TIMELY_OWD_DOUBTED: the clocks are not synchronised: the delay is at most the excess of the RTT
 */
enum timely_owd_verdict {
	TIMELY_OWD_BAD,
	TIMELY_OWD_GOOD,
	TIMELY_OWD_DOUBTED,
};

void timely_sync_set(struct timely_sync *sync, s32 drift_ppb, u32 growth_ppb);
s32 timely_sync_ppb(s64 q32);
bool timely_sync_get(const struct timely_sync *sync, u64 now_ns, u64 bound_max_ns,
		     s64 *offset_ns, u64 *bound_ns);
void timely_owd_init(struct timely_owd *owd);
void timely_owd_add_rtt(struct timely_owd *owd, u64 now_ns, u64 rtt_ns);
u64 timely_owd_rtt(struct timely_owd *owd, const struct timely_owd_signal *signal);
enum timely_owd_verdict timely_owd_relative(struct timely_owd *owd,
					    struct timely_timeline *timeline,
					    const struct timely_owd_signal *signal,
					    u64 *delay_ns);
enum timely_owd_verdict timely_owd_absolute(struct timely_owd *owd,
					    struct timely_timeline *timeline,
					    const struct timely_owd_signal *signal,
					    u64 error_ns, u64 threshold_ns, u64 *delay_ns);

#endif /* _TIMELY_ENGINE_OWD_H */
