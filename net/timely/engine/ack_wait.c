// SPDX-License-Identifier: GPL-2.0
/*
 * How long ACKs wait on their way back. An ACK waits behind data that its sender sends, at that
 * host's NIC, and behind data that this host receives, at the port of its switch. An RTT cannot
 * tell this wait from a queue on the way of the data: a connection that takes it for one slows
 * down, which does not shorten the wait, and leaves the link unused.
 *
 * The difference between the arrival of an ACK and the time at which it was sent, by the clock of
 * its sender, is the time that the ACK has been on its way, plus a constant: the difference of the
 * two clocks. The lowest difference is that of an ACK that did not wait, and what an ACK has more
 * than that is its wait. The clocks need not agree. An ACK can tell in two ways when it was sent:
 *
 *  - ACK time. The qdisc timely writes the time at which it gets a pure ACK into the IPv4 ID of the
 *    ACK (option ack_time). Packets that must not be fragmented need no ID, and their sender may
 *    choose any (RFC 6864, section 4.1). The ID has ACK_TIME_BITS bits of the time in us, and the
 *    others are a check, which is computed from the time. Other systems count packets in the ID, or
 *    write random numbers: ACK_TIME_SURE successive IDs that pass the check are ACK times, and one
 *    that does not pass shows that the receiver has changed its qdisc. The time wraps after 8 ms,
 *    and the difference of an ACK may be above or below the lowest one by half of that. So the
 *    caller leaves out ACKs whose RTT is longer than that: none is on its way for longer.
 *  - Timestamp (TSval of RFC 7323). Linux 6.7 and later write timestamps in microseconds for routes
 *    with the feature tcp_usec_ts. This also works with IPv6, and without the qdisc.
 *
 * Clocks do not run equally fast, so the lowest difference ages: it grows by 2^-14 of the time
 * since it was seen (61 us per second), more than clocks differ that NTP or PTP adjusts. If no ACK
 * comes down to the lowest difference for ACK_WAIT_AGE_US, the way back has become longer, ACKs
 * always wait, or a clock is being adjusted: the next ACK starts again. So a wait that never ends
 * counts as a part of the path.
 *
 * Times are rounded to 1 us. So a wait counts 1 us less than measured, and no RTT becomes too
 * short.
 *
 * The unit of timestamps. Most hosts write timestamps in milliseconds, whose difference from the
 * arrival says nothing. The unit is 1 us if timestamps grow by at least ACK_WAIT_UNITS, and by at
 * least two in a millisecond. A unit between 1 us and 1 ms is not in use. With another unit than
 * 1 us the waits found would be wrong, which TIMELY_ACK_WAIT_MAX_US limits.
 *
 * Pure: no socket, no clock.
 */

#include <linux/bitops.h>
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

/* Bits of the time in an ACK time, and of the check, which are the lowest ones. Another format
 * needs another check: else hosts would take each other's times for their own.
 */
#define ACK_TIME_BITS		13
#define ACK_TIME_CHECK_BITS	3
#define ACK_TIME_MASK		((1U << ACK_TIME_BITS) - 1)
#define ACK_TIME_CHECK_MASK	((1U << ACK_TIME_CHECK_BITS) - 1)
/* Factor of the check. */
#define ACK_TIME_FACTOR		2533U
/* Check of the time 0. With 0, the ID would be 0, which many systems write. */
#define ACK_TIME_CHECK_ZERO	5U
/* Successive IDs that pass the check and show that the receiver writes ACK times: random IDs pass
 * with a probability of 2^-24.
 */
#define ACK_TIME_SURE		8U

/* Start with the ACK that arrived at @arrived_us. */
static void ack_wait_start(struct timely_ack_wait *w, u32 arrived_us, u32 value, u8 source)
{
	w->least_us = value;
	w->seen_us = arrived_us;
	w->source = source;
}

/* Find out the unit of the timestamps. */
static void ack_wait_learn(struct timely_ack_wait *w, u32 arrived_us, u32 timestamp)
{
	u32 age_us = arrived_us - w->seen_us;
	u32 units = timestamp - w->least_us;

	if (w->source == TIMELY_ACK_WAIT_NEW || age_us >= ACK_WAIT_UNSURE_US)
		ack_wait_start(w, arrived_us, timestamp, TIMELY_ACK_WAIT_UNSURE);
	else if (units >= ACK_WAIT_UNITS && units < ACK_WAIT_UNSURE_US * 2 &&
		 age_us < units * ACK_WAIT_HALF_MS_US)
		ack_wait_start(w, arrived_us, arrived_us - timestamp,
			       TIMELY_ACK_WAIT_TIMESTAMP);
}

/**
 * timely_ack_wait_us() - get how long an ACK has waited on its way back
 * @w: the connection's state
 * @arrived_us: when the ACK arrived, us, by any clock; wraps
 * @timestamp: the ACK's timestamp, as the sender of the ACK wrote it, or its time from
 *	timely_ack_time_us(); wraps
 *
 * Return: the wait, us, at most TIMELY_ACK_WAIT_MAX_US; 0 if not known.
 */
u32 timely_ack_wait_us(struct timely_ack_wait *w, u32 arrived_us, u32 timestamp)
{
	u32 difference_us = arrived_us - timestamp;
	s32 age_us = arrived_us - w->seen_us;
	s32 wait_us;

	if (unlikely(!timely_ack_wait_is_known(w))) {
		ack_wait_learn(w, arrived_us, timestamp);
		return 0;
	}
	wait_us = difference_us - w->least_us - (max(age_us, 0) >> ACK_WAIT_DRIFT_SHIFT);
	if (wait_us <= 0 || age_us + ACK_WAIT_EARLY_US >= ACK_WAIT_AGE_US) {
		ack_wait_start(w, arrived_us, difference_us, w->source);
		return 0;
	}
	return min_t(u32, wait_us - 1, TIMELY_ACK_WAIT_MAX_US);
}
EXPORT_SYMBOL_GPL(timely_ack_wait_us);

/* The check of an ACK time whose bits of the time are @time. The factor is such that the IDs of a
 * counter, which grows by up to 256 from ACK to ACK, do not pass ACK_TIME_SURE times.
 */
static u32 ack_time_check(u32 time)
{
	u32 check = time * ACK_TIME_FACTOR >> (ACK_TIME_BITS - ACK_TIME_CHECK_BITS);

	return (check & ACK_TIME_CHECK_MASK) ^ ACK_TIME_CHECK_ZERO;
}

/**
 * timely_ack_time_id() - compute the IPv4 ID that has the time of an ACK
 * @now_us: when the ACK is sent, us; wraps
 *
 * Return: the ID, in the byte order of the CPU.
 */
u16 timely_ack_time_id(u32 now_us)
{
	u32 time = now_us & ACK_TIME_MASK;

	return time << ACK_TIME_CHECK_BITS | ack_time_check(time);
}
EXPORT_SYMBOL_GPL(timely_ack_time_id);

/**
 * timely_ack_time_us() - get the time of an ACK from its IPv4 ID
 * @w: the connection's state
 * @arrived_us: when the ACK arrived, us, by any clock; wraps
 * @id: the ID, in the byte order of the CPU, or TIMELY_ACK_NO_ID
 * @time_us: set to the time for timely_ack_wait_us(), us; wraps
 *
 * Return: true if the ID is known to be an ACK time; false if @time_us was not set.
 */
bool timely_ack_time_us(struct timely_ack_wait *w, u32 arrived_us, u32 id, u32 *time_us)
{
	u32 time = id >> ACK_TIME_CHECK_BITS;
	s32 above_us;

	if (id >= TIMELY_ACK_NO_ID)
		return false;
	if (timely_ack_time_id(time) != id) {
		w->ids = 0;
		if (w->source == TIMELY_ACK_WAIT_ID)
			w->source = TIMELY_ACK_WAIT_NEW;
		return false;
	}
	if (w->ids < ACK_TIME_SURE) {
		w->ids += !w->ids || id != w->id;
		w->id = id;
		return false;
	}
	if (w->source != TIMELY_ACK_WAIT_ID)
		ack_wait_start(w, arrived_us, arrived_us - time, TIMELY_ACK_WAIT_ID);
	above_us = sign_extend32(arrived_us - time - w->least_us, ACK_TIME_BITS - 1);
	*time_us = arrived_us - w->least_us - above_us;
	return true;
}
EXPORT_SYMBOL_GPL(timely_ack_time_us);
