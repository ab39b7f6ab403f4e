/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between clock.c and clock_fit.c: tracks, which are sequences of blocks of timestamp
 * pairs, and fits of the clock mapping to a track. Private to the clock engine; clock.h defines the
 * terms.
 */
#ifndef _TIMELY_ENGINE_CLOCK_FIT_H
#define _TIMELY_ENGINE_CLOCK_FIT_H

#include <linux/time64.h>
#include <linux/types.h>

#include "clock.h"
#include "hull.h"

/* The number 1 in Q32, and in parts per billion. */
#define CLOCK_Q32		(1LL << 32)
#define CLOCK_PPB		1000000000U
/* Largest drift, 976 ppm: the oscillators of NICs are accurate to 100 ppm. */
#define CLOCK_MAX_DRIFT_Q32	(1LL << 22)
/* The fit uses pairs up to 17 s old and up to 134 ms above or below the mapping: see hull.h. */
#define CLOCK_MAX_X_NS		TIMELY_HULL_X_NS
#define CLOCK_MAX_Y_NS		TIMELY_HULL_Y_NS
/* Larger counts of pairs are limited to this. */
#define CLOCK_MAX_PAIRS		(1U << 20)
/* Shortest length of a block of time. */
#define CLOCK_BLOCK_NS		(2 * NSEC_PER_MSEC)
/* Longest time between two pairs that CPUs report at the same time. */
#define CLOCK_LATE_NS		(20 * NSEC_PER_MSEC)
/* Smallest error of a fit: the resolution of timestamps. */
#define CLOCK_GRAIN_NS		16
/* Number of pairs in one test of whether pairs are too high above a sure mapping. */
#define CLOCK_TEST_PAIRS	64
/* Smallest density, ns: the lowest of 64 pairs is 32 ns above the mapping on average. */
#define CLOCK_MIN_DENSITY	(32ULL * CLOCK_TEST_PAIRS)

/**
 * struct timely_clock_sample - the result of a batch
 * @nic_ns: the lowest pair: hardware timestamp
 * @host_ns: the lowest pair: time by the host's clock
 * @now_ns: the latest pair: time by the host's clock
 * @height_ns: the lowest pair: height above the present mapping, negative if below it, ns
 * @pairs: number of pairs in the batch
 */
struct timely_clock_sample {
	u64 nic_ns;
	u64 host_ns;
	u64 now_ns;
	s64 height_ns;
	u32 pairs;
};

/**
 * struct timely_clock_fit - a candidate for the mapping, relative to the present mapping
 * @at_ns: height of the fit at the newest block, ns above the present mapping
 * @slope_q32: drift of the fit minus drift of the present mapping, Q32
 * @error_ns: error of @at_ns, not exceeded with 99 % probability
 * @slope_ppb: error of @slope_q32, ppb
 * @density: density of the pairs above the fit, ns: see struct timely_clock
 * @stretch_ns: length of the period whose pairs the fit is computed from
 */
struct timely_clock_fit {
	s64 at_ns;
	s64 slope_q32;
	u64 error_ns;
	u64 slope_ppb;
	u64 density;
	u64 stretch_ns;
};

/* The track that the mapping is fitted to. */
static inline struct timely_clock_track *timely_clock_track(struct timely_clock *clock)
{
	return &clock->tracks[clock->track];
}

/* The track that the mapping is not fitted to: in doubt, the pairs since the doubt started. */
static inline struct timely_clock_track *timely_clock_trial(struct timely_clock *clock)
{
	return &clock->tracks[!clock->track];
}

/* Height of a block's lowest pair above the present mapping, ns. */
static inline s64 timely_clock_height(const struct timely_clock *clock,
				      const struct timely_clock_block *block)
{
	return timely_clock_residual(&clock->map, block->nic_ns, block->host_ns);
}

bool timely_clock_track_late(const struct timely_clock_track *track, u64 nic_ns);
bool timely_clock_track_add(const struct timely_clock *clock, struct timely_clock_track *track,
			    const struct timely_clock_sample *sample);
u64 timely_clock_scatter(s64 a_ns, u64 a_pairs, s64 b_ns, u64 b_pairs);
u64 timely_clock_bend_ppb(const struct timely_clock *clock, u64 ns);
bool timely_clock_fit_map(struct timely_clock *clock, struct timely_clock_fit *best);

#endif /* _TIMELY_ENGINE_CLOCK_FIT_H */
