// SPDX-License-Identifier: GPL-2.0
/*
 * How long ACKs wait on their way back. An ACK waits behind data that its sender sends, at that
 * host's NIC, and behind data that this host receives, at the port of its switch. An RTT cannot
 * tell this wait from a queue on the way of the data: a connection that takes it for one slows
 * down, which does not shorten the wait, and leaves the link unused.
 *
 * An ACK has a timestamp of its sender (TSval of RFC 7323). Linux 6.7 and later write timestamps in
 * microseconds for routes with the feature tcp_usec_ts. Then the difference between the arrival of
 * an ACK and its timestamp is the time that the ACK has been on its way, plus a constant: the
 * difference of the two clocks. The lowest difference is that of an ACK that did not wait, and what
 * an ACK has more than that is its wait. The clocks need not agree.
 *
 * Clocks do not run equally fast, so the lowest difference ages: it grows by 2^-14 of the time
 * since it was seen (61 us per second), more than clocks differ that NTP or PTP adjusts. If no ACK
 * comes down to the lowest difference for ACK_WAIT_AGE_US, the way back has become longer, ACKs
 * always wait, or a clock is being adjusted: the next ACK starts again. So a wait that never ends
 * counts as a part of the path.
 *
 * Timestamps are rounded to 1 us. So a wait counts 1 us less than measured, and no RTT becomes too
 * short.
 *
 * The unit of timestamps. Most hosts write timestamps in milliseconds, whose difference from the
 * arrival says nothing. The unit is 1 us if timestamps grow by at least ACK_WAIT_UNITS, and by at
 * least two in a millisecond. A unit between 1 us and 1 ms is not in use. With another unit than
 * 1 us the waits found would be wrong, which TIMELY_ACK_WAIT_MAX_US limits.
 *
 * Pure: no socket, no clock.
 */

#include <linux/export.h>
#include <linux/minmax.h>

#include "ack_wait.h"

/* Age at which the lowest difference is forgotten, us. */
#define ACK_WAIT_AGE_US		250000U
/* ACKs may seem to arrive this much earlier than the one before, us: NICs' clocks are adjusted. */
#define ACK_WAIT_EARLY_US	1000U
/* log2 of the age that makes the lowest difference 1 us larger, us. */
#define ACK_WAIT_DRIFT_SHIFT	14

/* Growth of timestamps that shows their unit. */
#define ACK_WAIT_UNITS		16U
/* Half of the time of a timestamp in ms, us. */
#define ACK_WAIT_HALF_MS_US	500U
/* Time after which the unit of timestamps that have not shown it is measured again, us. */
#define ACK_WAIT_UNSURE_US	(ACK_WAIT_UNITS * ACK_WAIT_HALF_MS_US)

/* Start with the ACK that arrived at @arrived_us. */
static void ack_wait_start(struct timely_ack_wait *w, u32 arrived_us, u32 value, u8 unit)
{
	w->least_us = value;
	w->seen_us = arrived_us;
	w->unit = unit;
}

/* Find out the unit of the timestamps. */
static void ack_wait_learn(struct timely_ack_wait *w, u32 arrived_us, u32 timestamp)
{
	u32 age_us = arrived_us - w->seen_us;
	u32 units = timestamp - w->least_us;

	if (w->unit == TIMELY_ACK_WAIT_NEW || age_us >= ACK_WAIT_UNSURE_US)
		ack_wait_start(w, arrived_us, timestamp, TIMELY_ACK_WAIT_UNSURE);
	else if (units >= ACK_WAIT_UNITS && units < ACK_WAIT_UNSURE_US * 2 &&
		 age_us < units * ACK_WAIT_HALF_MS_US)
		ack_wait_start(w, arrived_us, arrived_us - timestamp, TIMELY_ACK_WAIT_US);
}

/**
 * timely_ack_wait_us() - get how long an ACK has waited on its way back
 * @w: the connection's state
 * @arrived_us: when the ACK arrived, us, by any clock; wraps
 * @timestamp: the ACK's timestamp, as the sender of the ACK wrote it; wraps
 *
 * Return: the wait, us, at most TIMELY_ACK_WAIT_MAX_US; 0 if not known.
 */
u32 timely_ack_wait_us(struct timely_ack_wait *w, u32 arrived_us, u32 timestamp)
{
	u32 difference_us = arrived_us - timestamp;
	s32 age_us = arrived_us - w->seen_us;
	s32 wait_us;

	if (unlikely(w->unit != TIMELY_ACK_WAIT_US)) {
		ack_wait_learn(w, arrived_us, timestamp);
		return 0;
	}
	wait_us = difference_us - w->least_us - (max(age_us, 0) >> ACK_WAIT_DRIFT_SHIFT);
	if (wait_us <= 0 || age_us + ACK_WAIT_EARLY_US >= ACK_WAIT_AGE_US) {
		ack_wait_start(w, arrived_us, difference_us, TIMELY_ACK_WAIT_US);
		return 0;
	}
	return min_t(u32, wait_us - 1, TIMELY_ACK_WAIT_MAX_US);
}
EXPORT_SYMBOL_GPL(timely_ack_wait_us);
