/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long a path has been quiet, that is, without a queue. Short pacing segments keep queues short
 * where connections share a link, but each segment costs TCP, the qdisc and the driver about the
 * same, whatever its length. So segments grow while the path is quiet, up to TCP's usual 64 KB: a
 * sender then needs about as many cycles for a byte as with other congestion controls. (TIMELY's
 * segments have one size, 16 or 64 KB.)
 *
 * Pure: no packet, socket or clock.
 */
#ifndef _TIMELY_ENGINE_QUIET_H
#define _TIMELY_ENGINE_QUIET_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* Queueing delays up to TIMELY_QUIET_MEAN_NS on average are no queue: interrupts of two hosts are
 * moderated, 8 us each is usual. An eighth of the segments may have a delay above
 * TIMELY_QUIET_LONG_NS, or compete with other connections; none may have a delay above
 * TIMELY_QUIET_MOST_NS.
 */
#define TIMELY_QUIET_MEAN_NS	12000U
#define TIMELY_QUIET_LONG_NS	30000U
#define TIMELY_QUIET_MOST_NS	60000U

/* Segments double after each time of this length, us, that the path has been quiet, up to
 * TIMELY_QUIET_DOUBLINGS times. A busy network is never quiet for so long: with a limit of a few
 * round trips small messages among search RPCs took a quarter longer, as they wait in the host for
 * the segments of large ones.
 */
#define TIMELY_QUIET_TIME_US	8000U
#define TIMELY_QUIET_DOUBLINGS	5U

/**
 * struct timely_quiet - how long a path has been quiet
 * @since_us: when the present time began, us; wraps
 * @sum_ns: sum of the queueing delays since then, ns
 * @count: number of these delays
 * @against: number of these segments that show that the path is not quiet
 * @doublings: how many times segments are doubled
 */
struct timely_quiet {
	u32 since_us;
	u32 sum_ns;
	u16 count;
	u16 against;
	u8 doublings;
};

/* Begin a new time. */
static inline void timely_quiet_begin(struct timely_quiet *quiet, u32 now_us)
{
	quiet->since_us = now_us;
	quiet->sum_ns = 0;
	quiet->count = 0;
	quiet->against = 0;
}

/**
 * timely_quiet_reset() - begin with short segments
 * @quiet: the state
 * @now_us: current time, us; wraps
 */
static inline void timely_quiet_reset(struct timely_quiet *quiet, u32 now_us)
{
	timely_quiet_begin(quiet, now_us);
	quiet->doublings = 0;
}

/**
 * timely_quiet_add() - a segment was acknowledged
 * @quiet: the state
 * @now_us: current time, us; wraps
 * @queue_ns: queueing delay of the segment, ns
 * @competes: the connection competes with others of this host for its link
 *
 * A delay above TIMELY_QUIET_MOST_NS halves segments and begins a new time.
 *
 * Return: true if the present time is over; the caller then calls timely_quiet_judge().
 */
static inline bool timely_quiet_add(struct timely_quiet *quiet, u32 now_us, u32 queue_ns,
				    bool competes)
{
	if (queue_ns > TIMELY_QUIET_MOST_NS) {
		timely_quiet_begin(quiet, now_us);
		quiet->doublings -= quiet->doublings > 0;
		return false;
	}
	quiet->sum_ns += queue_ns;
	quiet->count++;
	quiet->against += competes || queue_ns > TIMELY_QUIET_LONG_NS;
	return now_us - quiet->since_us >= TIMELY_QUIET_TIME_US || quiet->count == U16_MAX;
}

/**
 * timely_quiet_judge() - double or halve segments after a time
 * @quiet: the state
 * @now_us: current time, us; wraps
 * @target_ns: target delay of the connection, ns, at most a second
 *
 * Connections that share a full link have queueing delays near their target. The path was quiet if
 * the mean of the delays is well below it.
 */
static inline void timely_quiet_judge(struct timely_quiet *quiet, u32 now_us, u32 target_ns)
{
	u64 most_ns = max(target_ns / 4 * 3, TIMELY_QUIET_MEAN_NS);

	if (quiet->sum_ns <= most_ns * quiet->count && quiet->against <= quiet->count / 8)
		quiet->doublings += quiet->doublings < TIMELY_QUIET_DOUBLINGS;
	else
		quiet->doublings -= quiet->doublings > 0;
	timely_quiet_begin(quiet, now_us);
}

#endif /* _TIMELY_ENGINE_QUIET_H */
