/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp's delays: the times of a packet and of the OR-ACK about the packet in, the delay
 * that the controller acts on out. Pure, told the time. See net/timely/engine/owd.c.
 */
#ifndef _TIMELY_ENGINE_OWD_H
#define _TIMELY_ENGINE_OWD_H

#include <linux/types.h>

#include "clock.h"
#include "pause.h"

/**
 * struct timely_offset - a receiver's clock less the sender's CLOCK_MONOTONIC, as an interval
 * @low_ns: the lower end; wraps
 * @width_ns: length of the interval: a packet arrived after it departed and before the
 *	OR-ACK was heard, so the best round trip decides how narrow the interval is
 * @at_ns: when the interval was confirmed last, CLOCK_MONOTONIC; 0 if there is none
 */
struct timely_offset {
	u64 low_ns;
	u64 width_ns;
	u64 at_ns;
};

/**
 * struct timely_timeline - which receive times of a flow's OR-ACKs can be true
 * @known: offset of the receiver's clock that OR-ACKs have agreed on
 * @other: offset of OR-ACKs that contradict @known
 * @since_ns: when the first of those came
 * @count: how many of those came since an OR-ACK last agreed with @known
 *
 * To start with, all zero.
 */
struct timely_timeline {
	struct timely_offset known;
	struct timely_offset other;
	u64 since_ns;
	u32 count;
};

/**
 * struct timely_owd - what is known of the delays to a destination
 * @rtt: least round trip of the last 5 to 10 s
 * @raw: least of what a relative delay is computed from, of the last 5 to 10 s
 * @offset: offset of the destination's clock by the OR-ACK that counted last
 * @clock: the destination's clock in the sender's time; allocated and freed by the caller;
 *	NULL: a relative delay is that of the round trip
 * @batch: pairs of times for @clock
 * @steps: steps of the destination's clock that @raw knows of
 * @noticed: how often a clock was found to be stepped, or clocks to be out of step
 * @strange: absolute delays above the threshold that the round trip does not explain, since
 *	the last delay below the threshold
 * @strange_ns: when the first of those came
 * @absolute_ns: when an absolute delay came last
 * @doubted: clocks are out of step: an absolute delay is bounded by the round trip's excess
 */
struct timely_owd {
	struct timely_floor rtt;
	struct timely_floor raw;
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
 * @now_ns: when the OR-ACK was heard, CLOCK_MONOTONIC
 * @sent_ns: when the packet departed, CLOCK_MONOTONIC, not more than
 *	TIMELY_PAUSE_DELAY_MAX_NS before
 * @received_ns: when the receiver got the packet, by the receiver's CLOCK_REALTIME
 * @turnaround_ns: from then until the OR-ACK departed, not more than from @sent_ns to @now_ns
 * @real_ns: CLOCK_REALTIME less CLOCK_MONOTONIC of the sender
 */
struct timely_owd_signal {
	u64 now_ns;
	u64 sent_ns;
	u64 received_ns;
	u32 turnaround_ns;
	u64 real_ns;
};

/**
 * enum timely_owd_verdict - what a signal's times are worth
 * @TIMELY_OWD_BAD: the receive time cannot be true: ignore the signal
 * @TIMELY_OWD_GOOD: the delay is known
 * @TIMELY_OWD_DOUBTED: clocks are out of step: the delay is bounded by the round trip
 */
enum timely_owd_verdict {
	TIMELY_OWD_BAD,
	TIMELY_OWD_GOOD,
	TIMELY_OWD_DOUBTED,
};

void timely_owd_init(struct timely_owd *owd);
void timely_owd_least(struct timely_owd *owd, u64 now_ns, u64 rtt_ns);
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
