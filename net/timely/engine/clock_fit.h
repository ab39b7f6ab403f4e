/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What clock.c and clock_fit.c share: blocks of pairs of timestamps, and the straight line that
 * is fitted to them. Private to the clock engine.
 */
#ifndef _TIMELY_ENGINE_CLOCK_FIT_H
#define _TIMELY_ENGINE_CLOCK_FIT_H

#include <linux/time64.h>
#include <linux/types.h>

#include "clock.h"

#define CLOCK_PPB		1000000000U
/* The oscillators of NICs are good to 100 ppm: 976 ppm and no more. */
#define CLOCK_MAX_DRIFT_Q32	(1LL << 22)
/* The fit looks back 17 s at most, and 134 ms up and down: products fit in 64 bits. */
#define CLOCK_MAX_X_NS		(1LL << 34)
#define CLOCK_MAX_Y_NS		(1LL << 27)
#define CLOCK_MAX_PAIRS		(1U << 20)
/* Length of a block. */
#define CLOCK_BLOCK_NS		(2 * NSEC_PER_MSEC)
/* CPUs report pairs that are not further apart. */
#define CLOCK_LATE_NS		(20 * NSEC_PER_MSEC)
/* No fit is taken for better than this: timestamps have a grain. */
#define CLOCK_GRAIN_NS		16
/* Pairs of a test whether the line is right. */
#define CLOCK_TEST_PAIRS	64
/* The density is taken for at least this, in ns times pairs. */
#define CLOCK_MIN_DENSITY	(32ULL * CLOCK_TEST_PAIRS)

/**
 * struct timely_clock_news - what a batch tells
 * @nic_ns: NIC's time of its lowest pair
 * @host_ns: and the host's
 * @now_ns: host's time of its latest pair
 * @height_ns: how far above the present line the lowest is
 * @pairs: how many there are
 */
struct timely_clock_news {
	u64 nic_ns;
	u64 host_ns;
	u64 now_ns;
	s64 height_ns;
	u32 pairs;
};

/**
 * struct timely_clock_fit - a line, beside the one that heights are measured from
 * @at_ns: its height at the newest block
 * @slope_q32: its slope
 * @error_ns: how far from the truth it is there, 99 %
 * @slope_ppb: how far its slope is
 * @density: of the pairs above it
 * @stretch_ns: how far back it was fitted
 */
struct timely_clock_fit {
	s64 at_ns;
	s64 slope_q32;
	u64 error_ns;
	u64 slope_ppb;
	u64 density;
	u64 stretch_ns;
};

static inline struct timely_clock_track *timely_clock_track(struct timely_clock *clock)
{
	return &clock->tracks[clock->track];
}

static inline struct timely_clock_track *timely_clock_trial(struct timely_clock *clock)
{
	return &clock->tracks[!clock->track];
}

static inline s64 timely_clock_height(const struct timely_clock *clock,
				      const struct timely_clock_block *block)
{
	return timely_clock_residual(&clock->line, block->nic_ns, block->host_ns);
}

bool timely_clock_track_late(const struct timely_clock_track *track, u64 nic_ns);
bool timely_clock_track_add(const struct timely_clock *clock, struct timely_clock_track *track,
			    const struct timely_clock_news *news);
u64 timely_clock_scatter(s64 a_ns, u64 a_pairs, s64 b_ns, u64 b_pairs);
u64 timely_clock_bend_ppb(const struct timely_clock *clock, u64 ns);
bool timely_clock_fit_line(struct timely_clock *clock, struct timely_clock_fit *best);

#endif /* _TIMELY_ENGINE_CLOCK_FIT_H */
