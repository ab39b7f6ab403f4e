// SPDX-License-Identifier: GPL-2.0
/*
 * Fits the mapping of a NIC's clock to timestamp pairs. clock.c explains mapping and pairs, and
 * decides when to fit.
 *
 * The lowest pair of each block of time is kept: a point of the fit. The lower convex hull of these
 * points has an edge under the middle of any period that ends now. That edge is the most likely
 * mapping if the heights of pairs above the true mapping are distributed exponentially near the
 * mapping. A long period gives a stable fit; a short one follows a drift that changes. So several
 * periods are tried, each twice as long as the previous one. A fit is used only if it agrees with
 * the fits of all shorter periods within their errors (Lepski's rule). Of these fits, the one with
 * the smallest error becomes the mapping.
 *
 * Errors follow from the density of pairs above the mapping and from the measured change of the
 * drift. The density is the mean height of the lowest of n pairs, times n. The scatter of the
 * points shows the density.
 */

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "clock_fit.h"

/* Largest slope of a fit relative to the present mapping, whose drift may be the opposite one. */
#define CLOCK_MAX_SLOPE_Q32	(2 * CLOCK_MAX_DRIFT_Q32)
/* Ages of pairs are in units of 65 us, so that the sum of the squared ages fits in 64 bits. */
#define CLOCK_AGE_SHIFT		16

/* Shortest length of the first blocks of a track, and the number of these shorter blocks. */
#define CLOCK_FIRST_BLOCK_NS	(NSEC_PER_MSEC / 2)
#define CLOCK_FIRST_BLOCKS	16
/* In a full track, a block older than this is removed. */
#define CLOCK_TRACK_NS		(8ULL * NSEC_PER_SEC)

/* Number of blocks in the shortest period for which a fit is computed. */
#define CLOCK_FIT_POINTS	8
/* Errors that 99 % of fits do not exceed, as multiples of the mean height of the lowest of all
 * pairs, from simulations: for an edge of the hull (its height, and its rise over half of the
 * period), and for a fit whose drift is known.
 */
#define CLOCK_EDGE_ERROR	12
#define CLOCK_FLAT_ERROR	4
/* The density with which clock.c tests the mapping is computed from the newest CLOCK_NEIGHBOURS
 * blocks, and from the density before, which has the weight of CLOCK_PRIOR blocks.
 */
#define CLOCK_NEIGHBOURS	32U
#define CLOCK_PRIOR		32U

/**
 * struct fit_range - heights above the present mapping that all fits so far agree on
 * @low_ns: the lowest of these heights
 * @high_ns: the highest of these heights
 */
struct fit_range {
	s64 low_ns;
	s64 high_ns;
};

/**
 * struct fit_work - state while periods are tried
 * @hull: number of points on the lower convex hull so far
 * @pairs: number of pairs in the blocks of all points so far
 * @age: sum of the ages of the @pairs pairs, in 2^CLOCK_AGE_SHIFT ns
 * @age_square: sum of the squared ages of the @pairs pairs
 * @scatter: sum of the estimates of the density, each from two neighbouring points, ns
 * @scatters: number of estimates in @scatter
 * @density: density of pairs from the newest CLOCK_NEIGHBOURS points, ns
 * @middle: middle of the shortest period, ns relative to the newest point; 0 if not known yet
 * @next: the next period starts here or earlier, ns relative to the newest point
 * @now: heights at the newest point that all fits so far agree on
 * @then: heights in the middle of the shortest period that all fits so far agree on
 */
struct fit_work {
	u32 hull;
	u64 pairs;
	u64 age;
	u64 age_square;
	u64 scatter;
	u32 scatters;
	u64 density;
	s64 middle;
	s64 next;
	struct fit_range now;
	struct fit_range then;
};

/* ---- tracks ---- */

/**
 * timely_clock_track_late() - check whether a pair is too old for a track
 * @track: the track
 * @nic_ns: hardware timestamp of the pair
 *
 * Return: true if the pair is older than the track's newest block by more than CLOCK_LATE_NS, the
 * longest time between pairs that CPUs report together.
 */
bool timely_clock_track_late(const struct timely_clock_track *track, u64 nic_ns)
{
	return track->count &&
	       (s64)(track->blocks[track->count - 1].nic_ns - nic_ns) > CLOCK_LATE_NS;
}

/* Whether to open another block for a sample: the last block is long enough, and the sample's pair
 * is newer than the last block's pair, so that blocks stay in order of the NIC's time.
 */
static bool track_needs_block(const struct timely_clock_track *track,
			      const struct timely_clock_sample *sample)
{
	const struct timely_clock_block *last;
	u64 length_ns = track->count < CLOCK_FIRST_BLOCKS ? CLOCK_FIRST_BLOCK_NS :
							    CLOCK_BLOCK_NS;

	if (!track->count)
		return true;
	last = &track->blocks[track->count - 1];
	return sample->now_ns - last->opened_ns >= length_ns &&
	       (s64)(sample->nic_ns - last->nic_ns) > 0;
}

/* Add @pairs pairs, the lowest of which is given, to a block. The block keeps its lowest pair. */
static void track_lower(const struct timely_clock *clock,
			struct timely_clock_block *block, u64 nic_ns, u64 host_ns,
			u32 pairs)
{
	block->pairs = min(block->pairs + pairs, CLOCK_MAX_PAIRS);
	if (timely_clock_residual(&clock->map, nic_ns, host_ns) >=
	    timely_clock_height(clock, block))
		return;
	block->nic_ns = nic_ns;
	block->host_ns = host_ns;
}

/* Index of the block to merge with the next block: both are shortest relative to their age. */
static u32 track_shortest(const struct timely_clock_track *track, u64 now_ns)
{
	u64 best_span = U32_MAX, best_age = 1, age, span;
	u32 i, best = 0;

	for (i = 0; i + 2 < track->count; i++) {
		/* Units of 1024 ns. Blocks are at most 8 s old, so ages fit in 32 bits and products
		 * in 64. Truncation keeps them there if CPUs report batches in another order, which
		 * can make a difference negative.
		 */
		age = (u32)((now_ns - track->blocks[i].opened_ns) >> 10);
		span = (u32)((track->blocks[i + 2].opened_ns -
			      track->blocks[i].opened_ns) >> 10);
		if (span * best_age < best_span * age) {
			best_span = span;
			best_age = age;
			best = i;
		}
	}
	return best;
}

/* Make room for a block in a full track: remove the oldest block, or merge two blocks. */
static void track_make_room(const struct timely_clock *clock,
			    struct timely_clock_track *track, u64 now_ns)
{
	struct timely_clock_block *gone = track->blocks;
	u32 i;

	if (now_ns - gone->opened_ns < CLOCK_TRACK_NS) {
		i = track_shortest(track, now_ns);
		gone = &track->blocks[i + 1];
		track_lower(clock, &track->blocks[i], gone->nic_ns, gone->host_ns,
			    gone->pairs);
	}
	track->count--;
	memmove(gone, gone + 1,
		(track->count - (gone - track->blocks)) * sizeof(*gone));
}

/**
 * timely_clock_track_add() - add the lowest pair of a batch to a track
 * @clock: the clock
 * @track: one of the clock's tracks
 * @sample: the batch
 *
 * CPUs report batches at different times, so the pair may belong to a block before the newest.
 *
 * Return: true if a block was opened for the pair.
 */
bool timely_clock_track_add(const struct timely_clock *clock, struct timely_clock_track *track,
			    const struct timely_clock_sample *sample)
{
	struct timely_clock_block *block;

	if (track_needs_block(track, sample)) {
		if (track->count == TIMELY_CLOCK_BLOCKS)
			track_make_room(clock, track, sample->now_ns);
		track->blocks[track->count++] = (struct timely_clock_block) {
			.nic_ns = sample->nic_ns,
			.host_ns = sample->host_ns,
			.opened_ns = sample->now_ns,
			.pairs = sample->pairs,
		};
		return true;
	}
	block = &track->blocks[track->count - 1];
	while (block > track->blocks && (s64)(sample->nic_ns - block[-1].nic_ns) <= 0)
		block--;
	track_lower(clock, block, sample->nic_ns, sample->host_ns, sample->pairs);
	return false;
}

/* ---- the fit ---- */

/* Collect the points of the fit, newest first: the lowest pairs of the track's blocks, as far as
 * their ages and heights are within the limits. Return: the number of points.
 */
static u32 fit_points(struct timely_clock *clock)
{
	const struct timely_clock_track *track = timely_clock_track(clock);
	const struct timely_clock_block *newest = &track->blocks[track->count - 1];
	u32 i, count = 0;
	s64 x, y;

	for (i = track->count; i-- > 0;) {
		x = (s64)(track->blocks[i].nic_ns - newest->nic_ns);
		y = timely_clock_height(clock, &track->blocks[i]);
		if (x < -CLOCK_MAX_X_NS || x > 0)
			break;
		if (y < -CLOCK_MAX_Y_NS || y > CLOCK_MAX_Y_NS)
			continue;
		clock->x[count] = x;
		clock->y[count] = y;
		clock->n[count++] = track->blocks[i].pairs;
	}
	return count;
}

/**
 * timely_clock_scatter() - estimate the density of pairs above the mapping from two blocks
 * @a_ns: height of the lowest pair of one block
 * @a_pairs: pairs of that block, at least 1
 * @b_ns: height of the lowest pair of the other block
 * @b_pairs: pairs of that block, at least 1
 *
 * Take two blocks of n pairs each, whose heights above the true mapping are distributed
 * exponentially. The lowest heights of the two blocks differ, on average, by the mean height of the
 * lowest of n pairs. So the difference shows this mean, although the true mapping is not known. For
 * blocks with different numbers of pairs, an equivalent n is computed. Two is added to n because
 * the lowest of few pairs shows little about lower heights.
 *
 * Return: the density: mean height of the lowest of n pairs, times n, ns.
 */
u64 timely_clock_scatter(s64 a_ns, u64 a_pairs, s64 b_ns, u64 b_pairs)
{
	u64 pairs = div64_u64(a_pairs * b_pairs * (a_pairs + b_pairs),
			      a_pairs * a_pairs + b_pairs * b_pairs);

	return abs(a_ns - b_ns) * (pairs + 2);
}

/* Add an estimate of the density, from point @i and its newer neighbour. The estimate is limited to
 * about eight times the known density: a block may still have only one pair, and a late one.
 */
static void fit_scatter(const struct timely_clock *clock, struct fit_work *work, u32 i)
{
	u64 scatter = timely_clock_scatter(clock->y[i], clock->n[i],
				    clock->y[i - 1], clock->n[i - 1]);

	if (clock->density)
		scatter = min(scatter, 8 * clock->density + CLOCK_MIN_DENSITY);
	work->scatter += scatter;
	work->scatters++;
	if (i <= CLOCK_NEIGHBOURS)
		work->density = div_u64(work->scatter, work->scatters);
}

/* Add point @i, which is older than all points so far, to the sums and to the lower hull. */
static void fit_add(struct timely_clock *clock, struct fit_work *work, u32 i)
{
	u64 age = (u64)-clock->x[i] >> CLOCK_AGE_SHIFT;

	work->pairs += clock->n[i];
	work->age += age * clock->n[i];
	work->age_square += age * age * clock->n[i];
	if (i)
		fit_scatter(clock, work, i);
	work->hull = timely_hull_add(clock->x, clock->y, clock->hull, work->hull, i);
}

/* Error of a fit, ns: the mean height of the lowest of @pairs pairs, multiplied by @times. If
 * @count, the number of points that the density is known from, is small, the error is larger.
 */
static u64 fit_error(u64 density, u64 pairs, u32 count, u32 times)
{
	u64 error = div64_u64(density * times, pairs);

	return error + div_u64(4 * error, count) + CLOCK_GRAIN_NS;
}

/**
 * timely_clock_bend_ppb() - get the change of the drift to expect within half of a period
 * @clock: the clock
 * @ns: length of the period
 *
 * Return: the change, ppb: @clock->wander_ppb_s times half of the period.
 */
u64 timely_clock_bend_ppb(const struct timely_clock *clock, u64 ns)
{
	return div_u64(clock->wander_ppb_s * (ns >> 10), 2 * (CLOCK_PPB >> 10));
}

/* By how much a fit, which is a straight line, may be wrong at the end of a period of length @ns
 * because the drift changes within the period, ns.
 */
static u64 fit_bend_ns(const struct timely_clock *clock, u64 ns)
{
	return div_u64(timely_clock_bend_ppb(clock, ns) * (ns >> 10), CLOCK_PPB >> 10);
}

/* Increase the errors of a fit from an edge of the hull, where the edge or the pairs are less
 * favourable than fit_edge() assumed: pairs at regular intervals, and an edge of half of the
 * period's length. A shorter edge is less stable, in particular at its far end. If most pairs are
 * old, because packets have become rare, or are close together, the fit is extrapolated: the error
 * grows with the distance from the pairs to the present, relative to the time that the pairs cover.
 *
 * @stretch_ns is the length of the period, @since_ns the age of the edge's newer end, and @edge_ns
 * the length of the edge. The factors are Q8.
 */
static void fit_lever(const struct fit_work *work, u64 stretch_ns, u64 since_ns,
		      u64 edge_ns, struct timely_clock_fit *fit)
{
	u64 mean = div64_u64(work->age, work->pairs);
	u64 square = div64_u64(work->age_square, work->pairs);
	u64 age = stretch_ns >> CLOCK_AGE_SHIFT, variance, times;

	variance = max(square - mean * mean, 1ULL);
	times = max(div64_u64(square << 8, 4 * variance),
		    div64_u64((edge_ns + 2 * since_ns) << 7, edge_ns));
	times = clamp(times, 1ULL << 8, 1ULL << 16);
	fit->error_ns = (min_t(u64, fit->error_ns, CLOCK_MAX_Y_NS) * times) >> 8;
	times = max(div64_u64((age * age) << 8, 12 * variance),
		    div64_u64(stretch_ns << 7, edge_ns));
	times = clamp(times, 1ULL << 8, 1ULL << 16);
	fit->slope_ppb = (fit->slope_ppb * times) >> 8;
}

/* Number of pairs that the error of an edge of the hull is computed from: all, but at most four
 * times the pairs of the older half of the period. If pairs were rare for a long time and are
 * frequent now, the edge's old end is as high as the lowest of few pairs, however many pairs are at
 * its new end. fit_lever() covers the opposite case: pairs that have become rare.
 */
static u64 fit_edge_pairs(const struct timely_clock *clock, const struct fit_work *work,
			  u32 count, s64 middle)
{
	u64 old = 0;

	while (count-- > 0 && clock->x[count] <= middle)
		old += clock->n[count];
	return min(4 * old, work->pairs);
}

/* Compute @fit from the edge of the hull under the middle of the period, which has the first @count
 * points.
 */
static void fit_edge(const struct timely_clock *clock, const struct fit_work *work,
		     u32 count, struct timely_clock_fit *fit)
{
	const s64 *x = clock->x, *y = clock->y;
	s64 middle = x[count - 1] / 2, slope;
	u64 pairs = fit_edge_pairs(clock, work, count, middle);
	u32 i = 0, a, b;

	while (i + 2 < work->hull && x[clock->hull[i + 1]] > middle)
		i++;
	a = clock->hull[i];
	b = clock->hull[i + 1];
	slope = div64_s64((y[a] - y[b]) * CLOCK_Q32, x[a] - x[b]);
	fit->slope_q32 = clamp(slope, -CLOCK_MAX_SLOPE_Q32, CLOCK_MAX_SLOPE_Q32);
	fit->at_ns = y[a] - ((fit->slope_q32 * x[a]) >> 32);
	/* All pairs are above the true mapping, so the hull is too high. */
	fit->at_ns -= div64_u64(2 * fit->density, work->pairs);
	fit->error_ns = fit_error(fit->density, pairs, count, CLOCK_EDGE_ERROR);
	fit->slope_ppb = div64_u64(min_t(u64, fit->error_ns, CLOCK_MAX_Y_NS) * 2 * CLOCK_PPB,
				   -x[count - 1]);
	fit_lever(work, -x[count - 1], -x[a], x[a] - x[b], fit);
}

/* Compute @fit with the drift of the present mapping, at the height of the lowest of the first
 * @count points. The error of the fit includes the error of this drift over the period.
 */
static void fit_flat(const struct timely_clock *clock, const struct fit_work *work,
		     u32 count, struct timely_clock_fit *fit)
{
	u64 slip = div_u64(-clock->x[count - 1] * clock->drift_error_ppb, CLOCK_PPB);
	u32 i;

	fit->slope_q32 = 0;
	fit->at_ns = clock->y[0];
	for (i = 1; i < count; i++)
		fit->at_ns = min(fit->at_ns, clock->y[i]);
	fit->at_ns -= div64_u64(fit->density, work->pairs);
	fit->error_ns = fit_error(fit->density, work->pairs, count, CLOCK_FLAT_ERROR) + slip;
	fit->slope_ppb = clock->drift_error_ppb;
}

/* Whether a fit of height @y, with error @slack_ns, agrees with the fits of all shorter periods. */
static bool fit_meets(struct fit_range *range, s64 y, u64 slack_ns)
{
	range->low_ns = max(range->low_ns, y - (s64)slack_ns);
	range->high_ns = min(range->high_ns, y + (s64)slack_ns);
	return range->low_ns <= range->high_ns;
}

/* Fit to the period that has the first @count points. Return: true if the fit agrees with the fits
 * of all shorter periods, both at the newest point and in the middle of the shortest period.
 * Agreement at one of these points would not suffice: two different fits may cross there by chance.
 */
static bool fit_stretch(const struct timely_clock *clock, struct fit_work *work,
			u32 count, struct timely_clock_fit *fit)
{
	s64 x = clock->x[count - 1], then;
	u64 bend = fit_bend_ns(clock, -x), slack;
	struct timely_clock_fit flat;

	work->next = 2 * x;
	if (!work->middle)
		work->middle = x / 2;
	fit->stretch_ns = -x;
	fit->density = div_u64(work->scatter, work->scatters);
	flat = *fit;
	fit_edge(clock, work, count, fit);
	fit_flat(clock, work, count, &flat);
	if (flat.error_ns < fit->error_ns)
		*fit = flat;
	/* With a fit every 2 ms, fits would often disagree by chance, and then only the fits of the
	 * shortest periods could be used. So fits may differ by one and a half times the error.
	 */
	slack = fit->error_ns * 3 / 2 + bend;
	fit->error_ns += bend;
	then = fit->at_ns + ((fit->slope_q32 * work->middle) >> 32);
	return fit_meets(&work->now, fit->at_ns, slack) &&
	       fit_meets(&work->then, then, slack);
}

/**
 * timely_clock_fit_map() - fit the mapping to its track
 * @clock: the clock; its track has at least one block
 * @best: set to the fit with the smallest error
 *
 * Longer and longer periods are tried while their fits agree. The mapping itself is not changed.
 *
 * Return: false if there are too few blocks for a fit.
 */
bool timely_clock_fit_map(struct timely_clock *clock, struct timely_clock_fit *best)
{
	struct fit_work work = {
		.scatter = CLOCK_PRIOR * clock->density,
		.scatters = clock->density ? CLOCK_PRIOR : 0,
		.now = { S64_MIN, S64_MAX },
		.then = { S64_MIN, S64_MAX },
	};
	u32 count = fit_points(clock), i;
	struct timely_clock_fit fit;
	bool agree = true;

	*best = (struct timely_clock_fit) { .error_ns = U64_MAX };
	for (i = 0; i < count && (agree || i <= CLOCK_NEIGHBOURS); i++) {
		fit_add(clock, &work, i);
		if (!agree || i + 1 < CLOCK_FIT_POINTS ||
		    (clock->x[i] > work.next && i + 1 < count))
			continue;
		agree = fit_stretch(clock, &work, i + 1, &fit);
		if (agree && fit.error_ns < best->error_ns)
			*best = fit;
	}
	/* Fits may disagree because the drift has changed, but fit_flat() assumes a constant drift.
	 * So the error of the drift is doubled.
	 */
	if (!agree)
		best->slope_ppb *= 2;
	/* clock.c tests the mapping with few pairs, so the density of recent blocks counts. */
	best->density = work.density;
	return best->error_ns != U64_MAX;
}
