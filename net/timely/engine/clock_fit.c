// SPDX-License-Identifier: GPL-2.0
/*
 * The line that fits the pairs of timestamps of a NIC's clock and the host's: see clock.c for
 * what a pair is.
 *
 * Of each block of time the lowest pair is kept. The lower convex hull of these
 * has an edge under the middle of any stretch of time that ends now: the
 * likeliest line, if heights above it are distributed exponentially near to it.
 * A long stretch gives a steady line, a short one follows a drift that changes.
 * So several are tried, each twice as long as the one before. Those whose line
 * agrees with the lines of all shorter ones as far as their errors allow
 * (Lepski's rule) may be taken; that with the smallest error is.
 *
 * Errors are known from how thinly pairs lie above the line, which their scatter
 * shows, and from how fast the drift was seen to change.
 */

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "clock_fit.h"

#define CLOCK_Q32		(1LL << 32)
/* Slopes are relative to the present fit, which may itself be off by the most there is. */
#define CLOCK_MAX_SLOPE_Q32	(2 * CLOCK_MAX_DRIFT_Q32)
/* Ages in units of 65 us, so that squares of those of all pairs fit. */
#define CLOCK_AGE_SHIFT		16

/* Length of the first blocks of a track, and how many those are; how far back blocks are kept. */
#define CLOCK_FIRST_BLOCK_NS	(NSEC_PER_MSEC / 2)
#define CLOCK_FIRST_BLOCKS	16
#define CLOCK_TRACK_NS		(8ULL * NSEC_PER_SEC)

/* The shortest stretch has 8 blocks. Errors that 99 % of lines keep within, in
 * the height that the lowest of all pairs has on average: simulated, for an edge
 * of the hull, its slope over half of the stretch, and for a line of known slope.
 */
#define CLOCK_FIT_POINTS	8
#define CLOCK_EDGE_ERROR	12
#define CLOCK_FLAT_ERROR	4
/* Neighbours that show the density, and how many the one known before counts. */
#define CLOCK_NEIGHBOURS	32U
#define CLOCK_PRIOR		32U

/**
 * struct fit_range - heights that lines agree on
 * @low_ns: the least
 * @high_ns: the largest
 */
struct fit_range {
	s64 low_ns;
	s64 high_ns;
};

/**
 * struct fit_work - how far a fit has come
 * @hull: points on the hull so far
 * @pairs: behind all points so far
 * @age: of all these pairs, summed up, in units of CLOCK_AGE_SHIFT
 * @age_square: and their squares
 * @scatter: of neighbours, summed up
 * @scatters: how many
 * @density: of the newest neighbours
 * @middle: of the shortest stretch
 * @next: where the next stretch begins, at the latest
 * @now: what lines agree on at the newest point
 * @then: and in the middle of the shortest stretch
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
 * timely_clock_track_late() - is a pair older than what a track has?
 * @track: the track
 * @nic_ns: NIC's time of the pair
 *
 * Return: true if the pair is older by more than CPUs may be apart.
 */
bool timely_clock_track_late(const struct timely_clock_track *track, u64 nic_ns)
{
	return track->count &&
	       (s64)(track->blocks[track->count - 1].nic_ns - nic_ns) > CLOCK_LATE_NS;
}

/* Is it time for another block? Blocks are in order of the NIC's time. */
static bool track_full(const struct timely_clock_track *track,
		       const struct timely_clock_news *news)
{
	const struct timely_clock_block *last;
	u64 length_ns = track->count < CLOCK_FIRST_BLOCKS ? CLOCK_FIRST_BLOCK_NS :
							    CLOCK_BLOCK_NS;

	if (!track->count)
		return true;
	last = &track->blocks[track->count - 1];
	return news->now_ns - last->opened_ns >= length_ns &&
	       (s64)(news->nic_ns - last->nic_ns) > 0;
}

/* More pairs for a block, and the lowest of them. */
static void track_lower(const struct timely_clock *clock,
			struct timely_clock_block *block, u64 nic_ns, u64 host_ns,
			u32 pairs)
{
	block->pairs = min(block->pairs + pairs, CLOCK_MAX_PAIRS);
	if (timely_clock_residual(&clock->line, nic_ns, host_ns) >=
	    timely_clock_height(clock, block))
		return;
	block->nic_ns = nic_ns;
	block->host_ns = host_ns;
}

/* The block that is shortest with its successor, for its age. */
static u32 track_shortest(const struct timely_clock_track *track, u64 now_ns)
{
	u64 best_span = U32_MAX, best_age = 1, age, span;
	u32 i, best = 0;

	for (i = 0; i + 2 < track->count; i++) {
		/* About us; of what hostile clocks make of them the rest is cut. */
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

/* Drop the oldest block, or make one block of two. */
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
 * timely_clock_track_add() - add a batch's lowest pair to a track
 * @clock: the clock
 * @track: one of its tracks
 * @news: the batch
 *
 * The pair may be older than others in the track, as CPUs report at different times.
 *
 * Return: true if the pair opened a block.
 */
bool timely_clock_track_add(const struct timely_clock *clock, struct timely_clock_track *track,
			    const struct timely_clock_news *news)
{
	struct timely_clock_block *block;

	if (track_full(track, news)) {
		if (track->count == TIMELY_CLOCK_BLOCKS)
			track_make_room(clock, track, news->now_ns);
		track->blocks[track->count++] = (struct timely_clock_block) {
			.nic_ns = news->nic_ns,
			.host_ns = news->host_ns,
			.opened_ns = news->now_ns,
			.pairs = news->pairs,
		};
		return true;
	}
	block = &track->blocks[track->count - 1];
	while (block > track->blocks && (s64)(news->nic_ns - block[-1].nic_ns) <= 0)
		block--;
	track_lower(clock, block, news->nic_ns, news->host_ns, news->pairs);
	return false;
}

/* ---- the fit ---- */

/* The points to fit to, newest first: how many. */
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

/* Does point @b lie on or above the straight line from @a to @c? */
static bool fit_above(const struct timely_clock *clock, u32 a, u32 b, u32 c)
{
	const s64 *x = clock->x, *y = clock->y;

	return (y[b] - y[a]) * (x[a] - x[c]) >= (y[c] - y[a]) * (x[a] - x[b]);
}

/**
 * timely_clock_scatter() - how thinly pairs lie above the line, by two of its blocks
 * @a_ns: height of the lowest pair of one block
 * @a_pairs: pairs of that block
 * @b_ns: height of the lowest pair of the other block
 * @b_pairs: pairs of that block
 *
 * If heights are distributed exponentially, the lowest pairs of two blocks of equally many
 * pairs differ as much in height as they are high, on average, whatever the line is. Two pairs
 * are added, as the lowest of few pairs says little of what is lower.
 *
 * Return: the density: mean height times pairs, ns.
 */
u64 timely_clock_scatter(s64 a_ns, u64 a_pairs, s64 b_ns, u64 b_pairs)
{
	u64 pairs = div64_u64(a_pairs * b_pairs * (a_pairs + b_pairs),
			      a_pairs * a_pairs + b_pairs * b_pairs);

	return abs(a_ns - b_ns) * (pairs + 2);
}

/* Point @i and its neighbour. What differs wildly from what is known already counts
 * in part: a block may have a single pair yet, and that be late.
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

/* Another point: the density and the lower hull with it. */
static void fit_add(struct timely_clock *clock, struct fit_work *work, u32 i)
{
	u64 age = (u64)-clock->x[i] >> CLOCK_AGE_SHIFT;

	work->pairs += clock->n[i];
	work->age += age * clock->n[i];
	work->age_square += age * age * clock->n[i];
	if (i)
		fit_scatter(clock, work, i);
	while (work->hull >= 2 && fit_above(clock, clock->hull[work->hull - 2],
					    clock->hull[work->hull - 1], i))
		work->hull--;
	clock->hull[work->hull++] = i;
}

/* More, as the density is known from few points. */
static u64 fit_error(u64 density, u64 pairs, u32 count, u32 times)
{
	u64 error = div64_u64(density * times, pairs);

	return error + div_u64(4 * error, count) + CLOCK_GRAIN_NS;
}

/**
 * timely_clock_bend_ppb() - what a changing drift changes by in half of a stretch
 * @clock: the clock
 * @ns: length of the stretch
 *
 * Return: that, ppb.
 */
u64 timely_clock_bend_ppb(const struct timely_clock *clock, u64 ns)
{
	return div_u64(clock->wander_ppb_s * (ns >> 10), 2 * (CLOCK_PPB >> 10));
}

static u64 fit_bend_ns(const struct timely_clock *clock, u64 ns)
{
	return div_u64(timely_clock_bend_ppb(clock, ns) * (ns >> 10), CLOCK_PPB >> 10);
}

/* The error of a line is what it is for pairs that come evenly, and an edge half as
 * long as the stretch. A shorter edge turns more easily, and more so at its far end. If
 * most pairs are old, as the rate has fallen, or close together, the line is drawn
 * further from where it is known: in proportion to how far from now they are, and to
 * how close to each other.
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

/* Pairs that an edge of the hull rests on: at most four times those of the older half of the
 * stretch. Where pairs came rarely for a long time and come often now, the far end of an edge
 * is as high as the lowest of a few is, however many there are at its near end. The opposite
 * is the lever's business.
 */
static u64 fit_edge_pairs(const struct timely_clock *clock, const struct fit_work *work,
			  u32 count, s64 middle)
{
	u64 old = 0;

	while (count-- > 0 && clock->x[count] <= middle)
		old += clock->n[count];
	return min(4 * old, work->pairs);
}

/* The edge of the hull under the middle of the first @count points. */
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
	/* Hulls of pairs above a line are above it. */
	fit->at_ns -= div64_u64(2 * fit->density, work->pairs);
	fit->error_ns = fit_error(fit->density, pairs, count, CLOCK_EDGE_ERROR);
	fit->slope_ppb = div64_u64(min_t(u64, fit->error_ns, CLOCK_MAX_Y_NS) * 2 * CLOCK_PPB,
				   -x[count - 1]);
	fit_lever(work, -x[count - 1], -x[a], x[a] - x[b], fit);
}

/* A line under the lowest point, of the slope that the present one has. */
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

/* Does a line meet all those of shorter stretches, as far as errors allow? */
static bool fit_meets(struct fit_range *range, s64 y, u64 slack_ns)
{
	range->low_ns = max(range->low_ns, y - (s64)slack_ns);
	range->high_ns = min(range->high_ns, y + (s64)slack_ns);
	return range->low_ns <= range->high_ns;
}

/* A line for the first @count points. Return: true if it agrees with the others,
 * not only now, where one may be by chance that crosses them.
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
	/* There is a fit each 2 ms, and what falls out leaves the shortest stretches. */
	slack = fit->error_ns * 3 / 2 + bend;
	fit->error_ns += bend;
	then = fit->at_ns + ((fit->slope_q32 * work->middle) >> 32);
	return fit_meets(&work->now, fit->at_ns, slack) &&
	       fit_meets(&work->then, then, slack);
}

/**
 * timely_clock_fit_line() - fit a line to the present track
 * @clock: the clock
 * @best: set to the line
 *
 * Longer and longer stretches are tried, as long as their lines agree. The line with the
 * smallest error is taken.
 *
 * Return: false if there are too few blocks for a line.
 */
bool timely_clock_fit_line(struct timely_clock *clock, struct timely_clock_fit *best)
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
	/* Or the drift is not what it was, that some lines take for known. */
	if (!agree)
		best->slope_ppb *= 2;
	/* Of what is in long blocks only a test of few pairs knows nothing. */
	best->density = work.density;
	return best->error_ns != U64_MAX;
}
