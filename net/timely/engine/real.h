/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Software stamps of the real-time clock, told by CLOCK_MONOTONIC.
 *
 * Drivers stamp packets by the real-time clock, which can be set. A stamp does not tell
 * whether it was taken before the clock was set or after. One that may be of either is not
 * used: an arrival that is told is right.
 *
 * Two changes of the clock between two looks at it are seen as one. A stamp may then be off by
 * the first of them, if that was undone by the second or the packet waited for both; the same
 * goes for a packet that waited for longer than from one change to the next.
 *
 * Pure: no clock, no socket, no lock.
 */
#ifndef _TIMELY_ENGINE_REAL_H
#define _TIMELY_ENGINE_REAL_H

#include <linux/time64.h>
#include <linux/types.h>

/* A packet does not wait longer for its socket. A stamp that says so is wrong. */
#define TIMELY_REAL_WAIT_MAX_NS	NSEC_PER_SEC

/**
 * struct timely_real - the real-time clock beside CLOCK_MONOTONIC
 * @offset_ns: how far it is ahead
 * @before_ns: how far it was ahead before it was last set
 * @set_ns: when that was noticed, CLOCK_MONOTONIC; 0 for never
 */
struct timely_real {
	u64 offset_ns;
	u64 before_ns;
	u64 set_ns;
};

/**
 * timely_real_init() - the clock as it is now
 * @real: filled in
 * @offset_ns: how far it is ahead of CLOCK_MONOTONIC
 */
static inline void timely_real_init(struct timely_real *real, u64 offset_ns)
{
	real->offset_ns = offset_ns;
	real->before_ns = offset_ns;
	real->set_ns = 0;
}

/**
 * timely_real_look() - has the clock been set?
 * @real: brought up to date
 * @offset_ns: how far it is ahead of CLOCK_MONOTONIC now
 * @now_ns: CLOCK_MONOTONIC, not before @offset_ns was read
 *
 * Return: true if it has.
 */
static inline bool timely_real_look(struct timely_real *real, u64 offset_ns, u64 now_ns)
{
	if (real->offset_ns == offset_ns)
		return false;
	real->before_ns = real->offset_ns;
	real->offset_ns = offset_ns;
	real->set_ns = now_ns;
	return true;
}

/**
 * timely_real_arrival_ns() - when did a packet arrive?
 * @real: the clock, up to date
 * @stamp_ns: the packet's stamp, real-time clock
 * @now_ns: CLOCK_MONOTONIC
 *
 * Return: CLOCK_MONOTONIC, not after @now_ns; 0 if the stamp does not tell.
 */
static inline u64 timely_real_arrival_ns(const struct timely_real *real, u64 stamp_ns, u64 now_ns)
{
	u64 arrived_ns = stamp_ns - real->offset_ns;
	u64 before_ns = stamp_ns - real->before_ns;

	if (now_ns - arrived_ns > TIMELY_REAL_WAIT_MAX_NS || arrived_ns < real->set_ns)
		return 0;
	/* The clock was set back: the stamp may be of the time before. A leap second leaves no
	 * doubt.
	 */
	if (before_ns <= real->set_ns && now_ns - before_ns < TIMELY_REAL_WAIT_MAX_NS)
		return 0;
	return arrived_ns;
}

#endif /* _TIMELY_ENGINE_REAL_H */
