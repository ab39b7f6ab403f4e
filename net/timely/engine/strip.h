/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The offset and the drift between two clocks: the widest strip between two sets of points, as in
 * Huygens (NSDI'18). strip.c explains the method.
 *
 * The own clock is one's own, the peer's clock that of another host. The offset is the peer's clock
 * minus the own clock. A probe to the peer ("forward") has the difference offset plus delay, so the
 * difference is an upper bound of the offset. A probe from the peer ("backward") has the difference
 * offset minus delay, a lower bound. The offset is a straight line over a window of some seconds,
 * between all upper and all lower bounds.
 *
 * Points are kept in the caller's memory. Time is an argument, and nothing is allocated.
 */
#ifndef _TIMELY_ENGINE_STRIP_H
#define _TIMELY_ENGINE_STRIP_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* Largest number of points per direction, and smallest number for a fit. */
#define TIMELY_STRIP_POINTS_MAX		4096
#define TIMELY_STRIP_POINTS_MIN		8
/* Longest window, and shortest time in which both directions have points, ns. */
#define TIMELY_STRIP_WINDOW_MAX_NS	(1ULL << 34)
#define TIMELY_STRIP_WINDOW_MIN_NS	100000000ULL
/* Largest drift between two clocks, Q32 (1953 ppm): a steeper strip is not used. */
#define TIMELY_STRIP_DRIFT_MAX_Q32	(1LL << 23)
/* Longest time before or after a reference point for which an offset is computed, ns (9 minutes):
 * the product with the drift fits in 64 bits.
 */
#define TIMELY_STRIP_AGE_MAX_NS		(1LL << 39)
/* Largest uncertainty, ns: that of an unknown offset. */
#define TIMELY_STRIP_UNKNOWN_NS		0xffffffffU

/**
 * struct timely_strip_point - a bound of the offset
 * @at_ns: time by the own clock: departure of a forward probe, arrival of a backward probe, ns
 * @offset_ns: forward: arrival by the peer's clock minus departure; backward: departure by the
 *	peer's clock minus arrival, ns; wraps
 */
struct timely_strip_point {
	u64 at_ns;
	s64 offset_ns;
};

/**
 * enum timely_strip_direction - the direction of probes
 * @TIMELY_STRIP_FORWARD: from the own host to the peer: upper bounds of the offset
 * @TIMELY_STRIP_BACKWARD: from the peer to the own host: lower bounds of the offset
 * @TIMELY_STRIP_DIRECTIONS: number of directions
 */
enum timely_strip_direction {
	TIMELY_STRIP_FORWARD,
	TIMELY_STRIP_BACKWARD,
	TIMELY_STRIP_DIRECTIONS
};

/**
 * enum timely_strip_verdict - whether there is a new fit
 * @TIMELY_STRIP_GOOD: there is a new fit
 * @TIMELY_STRIP_FEW: a direction has fewer than TIMELY_STRIP_POINTS_MIN points in the window
 * @TIMELY_STRIP_SHORT: the time in which both directions have points is shorter than
 *	TIMELY_STRIP_WINDOW_MIN_NS
 * @TIMELY_STRIP_OVERLAP: no straight line separates the upper from the lower bounds, or the line is
 *	steeper than TIMELY_STRIP_DRIFT_MAX_Q32: a clock was stepped, a drift changed, or a peer
 *	lies. All points except those of the newest quarter of the window were discarded, so that
 *	the offset after a step can be learned
 * @TIMELY_STRIP_VERDICTS: number of values above
 */
enum timely_strip_verdict {
	TIMELY_STRIP_GOOD,
	TIMELY_STRIP_FEW,
	TIMELY_STRIP_SHORT,
	TIMELY_STRIP_OVERLAP,
	TIMELY_STRIP_VERDICTS
};

/**
 * struct timely_strip_fit - the line in the middle of the widest strip
 * @at_ns: reference point: the time of the newest point, by the own clock, ns; 0 if @uncertainty_ns
 *	is TIMELY_STRIP_UNKNOWN_NS
 * @offset_ns: offset at @at_ns, ns; wraps
 * @drift_q32: change of the offset per nanosecond of the own clock, Q32, at most
 *	TIMELY_STRIP_DRIFT_MAX_Q32 up or down
 * @half_width_ns: half of the strip's height, ns: about half of the minimum RTT, and the largest
 *	error of @offset_ns that an asymmetric path can cause; while a fit is held, that of before
 * @uncertainty_ns: error of @offset_ns that 99.9 % of fits do not exceed if both directions have
 *	the same minimum delay, ns; TIMELY_STRIP_UNKNOWN_NS: there is no fit
 * @drift_error_ppb: error of @drift_q32 that 99.9 % of fits do not exceed, ppb
 * @wander_ppb_s: change of the drift per second to be expected, ppb/s
 * @points: number of points by direction
 * @outliers: number of points that were left out because they contradicted the others
 */
struct timely_strip_fit {
	u64 at_ns;
	s64 offset_ns;
	s64 drift_q32;
	u32 half_width_ns;
	u32 uncertainty_ns;
	u32 drift_error_ppb;
	u32 wander_ppb_s;
	u16 points[TIMELY_STRIP_DIRECTIONS];
	u16 outliers;
};

/**
 * struct timely_strip_ring - the points of one direction
 * @points: ring in the caller's memory, in the order of time
 * @size: length of @points, TIMELY_STRIP_POINTS_MIN to TIMELY_STRIP_POINTS_MAX
 * @first: index of the oldest point
 * @count: number of points
 */
struct timely_strip_ring {
	struct timely_strip_point *points;
	u32 size;
	u32 first;
	u32 count;
};

/**
 * struct timely_strip - what is known about the offset of a peer's clock
 * @rings: the points by direction
 * @window_ns: age up to which points are used, ns
 * @fit: the latest good fit; @fit.uncertainty_ns is TIMELY_STRIP_UNKNOWN_NS before the first
 * @variance: variance of the offset of the widest strip, mean of several windows, ns^2
 * @drift_variance: variance of the slope of the widest strip, mean of several windows, ppb^2
 * @level_variance: variance of the offset of the strip with the known drift, the same, ns^2
 * @known_ns: when the known drift was measured, by the own clock
 * @known_drift_q32: known drift: the most exact of the latest windows, Q32
 * @known_error_ppb: error of @known_drift_q32 at @known_ns, ppb; U32_MAX: no drift is known
 * @wander_q4: mean change of the drift per second, ppb/s, Q4
 * @mark_ns: when the drift was last recorded to measure @wander_q4, by the own clock
 * @mark_drift_q32: drift at @mark_ns, Q32
 * @mark_error_ppb: error of @mark_drift_q32, ppb; U32_MAX: none was recorded
 * @expected_ns: least half-width of the latest fits, ns; 0: none
 * @expected_at_ns: when @expected_ns was last changed, by the own clock
 * @counts: number of fits by verdict
 * @full: points that replaced an older one because a ring was full
 * @late: points that were not used because they were too old or out of order
 */
struct timely_strip {
	struct timely_strip_ring rings[TIMELY_STRIP_DIRECTIONS];
	u64 window_ns;
	struct timely_strip_fit fit;
	u64 variance;
	u64 drift_variance;
	u64 level_variance;
	u64 known_ns;
	s64 known_drift_q32;
	u32 known_error_ppb;
	u32 wander_q4;
	u64 mark_ns;
	s64 mark_drift_q32;
	u32 mark_error_ppb;
	u32 expected_ns;
	u64 expected_at_ns;
	u64 counts[TIMELY_STRIP_VERDICTS];
	u64 full;
	u64 late;
};

/**
 * struct timely_strip_work - working memory of timely_strip_solve()
 * @x: times of the points relative to the newest, newest first, ns
 * @y: heights of the points above a reference, ns; those of backward points are negated
 * @hull: indices of the points on the lower hull, newest first
 *
 * One for all strips that are never solved at the same time: 144 KiB.
 */
struct timely_strip_work {
	s64 x[TIMELY_STRIP_DIRECTIONS][TIMELY_STRIP_POINTS_MAX];
	s64 y[TIMELY_STRIP_DIRECTIONS][TIMELY_STRIP_POINTS_MAX];
	u16 hull[TIMELY_STRIP_DIRECTIONS][TIMELY_STRIP_POINTS_MAX];
};

int timely_strip_init(struct timely_strip *strip, struct timely_strip_point *points, u32 size,
		      u64 window_ns);
void timely_strip_forget(struct timely_strip *strip);
bool timely_strip_add(struct timely_strip *strip, enum timely_strip_direction direction,
		      const struct timely_strip_point *point);
enum timely_strip_verdict timely_strip_solve(struct timely_strip *strip,
					     struct timely_strip_work *work, u64 now_ns);
u32 timely_strip_uncertainty_ns(const struct timely_strip_fit *fit, u64 now_ns);
u32 timely_strip_growth_ns(u32 uncertainty_ns, u32 drift_error_ppb, u32 wander_ppb_s, s64 age_ns);

/**
 * timely_strip_offset_ns() - get the offset at a time
 * @fit: the fit
 * @now_ns: time by the own clock, ns; limited to 9 minutes before or after @fit->at_ns
 *
 * Return: the peer's clock minus the own clock, ns; wraps.
 */
static inline s64 timely_strip_offset_ns(const struct timely_strip_fit *fit, u64 now_ns)
{
	s64 since = clamp_t(s64, (s64)(now_ns - fit->at_ns), -TIMELY_STRIP_AGE_MAX_NS,
			    TIMELY_STRIP_AGE_MAX_NS);

	return (s64)((u64)fit->offset_ns + (u64)((since * fit->drift_q32) >> 32));
}

/**
 * timely_strip_drift_ppb() - convert a drift
 * @drift_q32: the drift, Q32, at most TIMELY_STRIP_DRIFT_MAX_Q32 up or down
 *
 * Return: the drift in parts per billion, rounded to the nearest.
 */
static inline s32 timely_strip_drift_ppb(s64 drift_q32)
{
	return (s32)((drift_q32 * 1000000000LL + (1LL << 31)) >> 32);
}

#endif /* _TIMELY_ENGINE_STRIP_H */
