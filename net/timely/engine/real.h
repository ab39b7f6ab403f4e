/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Converts driver timestamps from the real-time clock to CLOCK_MONOTONIC. The engine knows no
 * clock, socket or lock; net/ipv4/tcp_timely_realtime.c reads the clocks and locks the state.
 *
 * Drivers timestamp packets with the real-time clock, which can be set. A timestamp does not show
 * whether it was taken before or after the clock was set. A timestamp that may be from either time
 * is not used, so that every arrival time is right.
 *
 * There is one exception: two changes of the clock between two calls of timely_real_update() count
 * as one, or as none if the second change undoes the first. The arrival time of a packet that was
 * timestamped between the two changes may then be wrong by the second change.
 */
#ifndef _TIMELY_ENGINE_REAL_H
#define _TIMELY_ENGINE_REAL_H

#include <linux/time64.h>
#include <linux/types.h>

/* Longest time that a packet may wait for its socket. Timestamps older than this are not used. */
#define TIMELY_REAL_WAIT_MAX_NS	NSEC_PER_SEC

/**
 * struct timely_real - the real-time clock relative to CLOCK_MONOTONIC
 * @offset_ns: real-time clock minus CLOCK_MONOTONIC, ns
 * @before_ns: @offset_ns before the real-time clock was last set
 * @set_ns: when timely_real_update() last detected a setting, CLOCK_MONOTONIC; 0 for never
 */
struct timely_real {
	u64 offset_ns;
	u64 before_ns;
	u64 set_ns;
};

/**
 * timely_real_init() - initialise the state for a real-time clock that was not set yet
 * @real: the state
 * @offset_ns: real-time clock minus CLOCK_MONOTONIC now, ns
 */
static inline void timely_real_init(struct timely_real *real, u64 offset_ns)
{
	real->offset_ns = offset_ns;
	real->before_ns = offset_ns;
	real->set_ns = 0;
}

/**
 * timely_real_update() - detect that the real-time clock was set
 * @real: the state
 * @offset_ns: real-time clock minus CLOCK_MONOTONIC now, ns
 * @now_ns: CLOCK_MONOTONIC, read after @offset_ns
 *
 * Return: true if the clock was set since the last call.
 */
static inline bool timely_real_update(struct timely_real *real, u64 offset_ns, u64 now_ns)
{
	if (real->offset_ns == offset_ns)
		return false;
	real->before_ns = real->offset_ns;
	real->offset_ns = offset_ns;
	real->set_ns = now_ns;
	return true;
}

/**
 * timely_real_arrival_ns() - convert a packet's driver timestamp to CLOCK_MONOTONIC
 * @real: the current state
 * @timestamp_ns: driver timestamp of the packet, real-time clock
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * Return: time of arrival, CLOCK_MONOTONIC, not after @now_ns; 0 if the timestamp is ambiguous, in
 * the future or older than TIMELY_REAL_WAIT_MAX_NS.
 */
static inline u64 timely_real_arrival_ns(const struct timely_real *real, u64 timestamp_ns,
					 u64 now_ns)
{
	u64 arrived_ns = timestamp_ns - real->offset_ns;
	u64 before_ns = timestamp_ns - real->before_ns;

	if (now_ns - arrived_ns > TIMELY_REAL_WAIT_MAX_NS || arrived_ns < real->set_ns)
		return 0;
	/* If the clock was set back, a timestamp may be from before or after the setting. If the
	 * clock was set back by a second or more, as for a leap second, a timestamp from before
	 * would be older than any packet waits, so the timestamp must be from after the setting.
	 */
	if (before_ns <= real->set_ns && now_ns - before_ns < TIMELY_REAL_WAIT_MAX_NS)
		return 0;
	return arrived_ns;
}

#endif /* _TIMELY_ENGINE_REAL_H */
