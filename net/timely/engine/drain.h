/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Drains: all connections send less for a moment at the same time, so that the base RTT of
 * their paths can be seen. See net/timely/engine/drain.c.
 */
#ifndef _TIMELY_ENGINE_DRAIN_H
#define _TIMELY_ENGINE_DRAIN_H

#include <linux/types.h>

/* A drain begins when the lowest bits of the real-time clock begin anew: fifteen times a
 * second. Hosts' clocks have to agree to half a millisecond.
 */
#define TIMELY_DRAIN_PERIOD_NS	(1ULL << 26)

/* A real-time clock may be set, and may be set again and again: by CLOCK_MONOTONIC, one drain
 * does not begin sooner than this after the beginning of another.
 */
#define TIMELY_DRAIN_REST_NS	(TIMELY_DRAIN_PERIOD_NS / 4 * 3)

/* While drains do not coincide, RTTs of so many times as long count towards the base RTT. */
#define TIMELY_DRAIN_APART_LONGER	16

/* No drain is longer, and none shows in RTTs for longer: 2.5 of each 67.1 ms, 3.7 %; while a
 * clock is set again and again, of each 50.3 ms, 5 %.
 */
#define TIMELY_DRAIN_MAX_NS	2000000U
#define TIMELY_DRAIN_SETTLE_MAX_NS	2500000U

/**
 * struct timely_drain - the drains of a connection
 * @began_ns: when the last one began, CLOCK_MONOTONIC
 * @length_ns: for how long to send less, 0 if the base RTT was given
 * @shows_ns: from how long after its beginning RTTs show it
 * @settle_ns: and for how long
 * @before_ns: the last RTT before it began, 0 if that is not known or no longer needed
 */
struct timely_drain {
	u64 began_ns;
	u32 length_ns;
	u32 shows_ns;
	u32 settle_ns;
	u32 before_ns;
};

/**
 * struct timely_drain_watch - do the drains of the hosts on a path coincide?
 * @held_ns: least base RTT since they do not; 0 while it is not known
 * @fall_ns: by how much RTTs fall in drains, on average
 * @due_ns: and by how much they were above the base RTT before
 * @samples: RTTs that the averages are of
 * @apart: they do not coincide
 *
 * To start with, all zero.
 */
struct timely_drain_watch {
	u64 held_ns;
	s32 fall_ns;
	s32 due_ns;
	u16 samples;
	bool apart;
};

bool timely_drain_watch_add(struct timely_drain_watch *watch, u32 before_ns, u32 rtt_ns,
			    u32 base_ns, u32 due_ns);
u64 timely_drain_base_ns(struct timely_drain_watch *watch, u64 least_ns, u64 long_least_ns);

void timely_drain_init(struct timely_drain *drain, u64 now_ns);
void timely_drain_set(struct timely_drain *drain, u32 min_rtt_ns);
void timely_drain_look(struct timely_drain *drain, u64 now_ns, u64 real_ns, u32 rtt_ns);

/**
 * timely_drain_may_begin() - is the real-time clock to be asked?
 * @drain: the connection's
 * @now_ns: CLOCK_MONOTONIC
 *
 * Return: true if timely_drain_look() may find that a drain began.
 */
static inline bool timely_drain_may_begin(const struct timely_drain *drain, u64 now_ns)
{
	return drain->length_ns && now_ns - drain->began_ns >= TIMELY_DRAIN_REST_NS;
}

/**
 * timely_drain_is_on() - is the connection to send less now?
 * @drain: the connection's
 * @now_ns: CLOCK_MONOTONIC
 *
 * Return: true during a drain.
 */
static inline bool timely_drain_is_on(const struct timely_drain *drain, u64 now_ns)
{
	return now_ns - drain->began_ns < drain->length_ns;
}

/**
 * timely_drain_age_ns() - how long have RTTs been showing the drain?
 * @drain: the connection's
 * @now_ns: CLOCK_MONOTONIC
 *
 * Return: ns; @drain->settle_ns or more if they do not.
 */
static inline u64 timely_drain_age_ns(const struct timely_drain *drain, u64 now_ns)
{
	return now_ns - drain->began_ns - drain->shows_ns;
}

/* What to leave out of a rate meanwhile: two to five sixteenths, by any number of the
 * connection's own. Flows of equal rates would go on as they are, and who comes upon
 * another's segment would do so each time.
 */
static inline u64 timely_drain_Bps(u64 rate_Bps, u32 number)
{
	return (rate_Bps >> 4) * (2 + (number & 3));
}

#endif /* _TIMELY_ENGINE_DRAIN_H */
