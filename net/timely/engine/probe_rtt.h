/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base-RTT probes ("probes" for short): all connections reduce their rates at the same time, so
 * that RTTs show the base RTT of their paths. probe_rtt.c explains why and how.
 * net/ipv4/tcp_timely.c probes for each connection; net/timely/path.c has what the connections of a
 * path share.
 */
#ifndef _TIMELY_ENGINE_PROBE_RTT_H
#define _TIMELY_ENGINE_PROBE_RTT_H

#include <linux/types.h>

/* A probe starts when the low 26 bits of the common time of the hosts, in ns, become zero: every
 * 67.1 ms. Without a clock daemon the common time is the real-time clock. The clocks of two hosts
 * must agree to half a millisecond, so each may differ from the common time by half of that.
 */
#define TIMELY_PROBE_RTT_PERIOD_NS	(1ULL << 26)
#define TIMELY_PROBE_RTT_ERROR_MAX_NS	250000

/* Shortest time between the starts of two probes, by CLOCK_MONOTONIC: 50.3 ms. This limits the
 * number of probes if the real-time clock is set again and again.
 */
#define TIMELY_PROBE_RTT_REST_NS	(TIMELY_PROBE_RTT_PERIOD_NS / 4 * 3)

/* While probes of the hosts do not coincide, the window of the base RTT's minimum filter is longer
 * by this factor. Otherwise the window is one to two times TIMELY_BASE_HALF_NS.
 */
#define TIMELY_PROBE_RTT_APART_LONGER	16

/* Longest length of a probe, and longest time for which RTTs show a probe: 2.5 ms of every 67.1 ms,
 * which is 3.7 % of the time; if the real-time clock is set again and again, 2.5 ms of every
 * 50.3 ms, which is 5 %.
 */
#define TIMELY_PROBE_RTT_MAX_NS	2000000U
#define TIMELY_PROBE_RTT_SETTLE_MAX_NS	2500000U

/**
 * struct timely_probe_rtt - base-RTT probes of a connection
 * @began_ns: when the last probe started, CLOCK_MONOTONIC
 * @length_ns: length of a probe; 0 if the connection does not probe, because its base RTT is
 *	configured or timely_probe_rtt_set() was not called yet
 * @shows_ns: time from the start of a probe until RTTs show the probe
 * @settle_ns: for how long RTTs show a probe
 * @rest_ns: time from @began_ns until the common time must be read: the earliest start of the next
 *	probe, as the common time told when it was last read
 */
struct timely_probe_rtt {
	u64 began_ns;
	u32 length_ns;
	u32 shows_ns;
	u32 settle_ns;
	u32 rest_ns;
};

/**
 * struct timely_probe_rtt_watch - whether base-RTT probes of the hosts on a path coincide
 * @held_ns: lowest base RTT since the probes ceased to coincide; 0 if not known or they coincide
 * @fall_ns: average of the last RTT before a probe minus an RTT in the probe
 * @due_ns: average of the last RTT before a probe minus the base RTT: the expected @fall_ns
 * @vary_ns: average of the last RTT before a probe minus the lowest recent RTT
 * @samples: number of RTTs in the averages, at most 16
 * @apart: the probes do not coincide
 *
 * The initial state is all zero.
 */
struct timely_probe_rtt_watch {
	u64 held_ns;
	s32 fall_ns;
	s32 due_ns;
	s32 vary_ns;
	u16 samples;
	bool apart;
};

bool timely_probe_rtt_watch_add(struct timely_probe_rtt_watch *watch, u32 before_ns, u32 least_ns,
				u32 rtt_ns, u32 base_ns, u32 due_ns);
u64 timely_probe_rtt_base_ns(struct timely_probe_rtt_watch *watch, u64 least_ns, u64 long_least_ns);

void timely_probe_rtt_init(struct timely_probe_rtt *probe, u64 now_ns);
void timely_probe_rtt_set(struct timely_probe_rtt *probe, u32 min_rtt_ns);
bool timely_probe_rtt_update(struct timely_probe_rtt *probe, u64 now_ns, u64 common_ns);

/**
 * timely_probe_rtt_may_begin() - check whether a probe may have started
 * @probe: the connection's state
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * Return: true if the caller must read the common time and call timely_probe_rtt_update().
 */
static inline bool timely_probe_rtt_may_begin(const struct timely_probe_rtt *probe, u64 now_ns)
{
	return probe->length_ns && now_ns - probe->began_ns >= probe->rest_ns;
}

/**
 * timely_probe_rtt_is_on() - check whether the connection must send less now
 * @probe: the connection's state
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * Return: true during a probe.
 */
static inline bool timely_probe_rtt_is_on(const struct timely_probe_rtt *probe, u64 now_ns)
{
	return now_ns - probe->began_ns < probe->length_ns;
}

/**
 * timely_probe_rtt_age_ns() - get the time for which RTTs have shown the last probe
 * @probe: the connection's state
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * Return: the time, ns; @probe->settle_ns or more if RTTs do not show the probe. (Before RTTs show
 * the probe, the difference wraps and is large.)
 */
static inline u64 timely_probe_rtt_age_ns(const struct timely_probe_rtt *probe, u64 now_ns)
{
	return now_ns - probe->began_ns - probe->shows_ns;
}

/* Reduction of a connection's rate during a probe, bytes per second: two to five sixteenths of the
 * rate, depending on @number, a hash that differs between connections. With equal reductions, the
 * segments of connections with equal rates would keep their distances, and segments that collide
 * once would collide each time.
 */
static inline u64 timely_probe_rtt_cut_Bps(u64 rate_Bps, u32 number)
{
	return (rate_Bps >> 4) * (2 + (number & 3));
}

#endif /* _TIMELY_ENGINE_PROBE_RTT_H */
