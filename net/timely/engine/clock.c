// SPDX-License-Identifier: GPL-2.0
/*
 * The clock of a NIC, told in the host's time.
 *
 * A NIC stamps packets by a clock of its own, which runs from an epoch of its
 * own and a little too fast or too slow. Each packet gives a pair of stamps: the
 * NIC's, and when the host handled it, which is never before it came. So over
 * the NIC's time the pairs lie above a line, the one that is sought, and the
 * lowest of them close to it. (TIMELY, SIGCOMM'15, section 5 joins the clocks by
 * a line but does not say how.)
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
 *
 * What contradicts a line: a pair below it, which no delay can explain, and
 * pairs that are all too high. Either puts the line in doubt. It comes back when
 * pairs lie on it again, else it goes and the pairs since make the next one.
 *
 * Lowest pairs are handled late too, by a floor that nothing in traffic tells
 * from the clock's offset. A cross-timestamp (a bracket) does: the host's time
 * before and after the NIC's clock was read.
 */

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "clock.h"

#define CLOCK_Q32		(1LL << 32)
#define CLOCK_PPB		1000000000U
/* The oscillators of NICs are good to 100 ppm: 976 ppm and no more. */
#define CLOCK_MAX_DRIFT_Q32	(1LL << 22)
#define CLOCK_MAX_SLOPE_Q32	(2 * CLOCK_MAX_DRIFT_Q32)
#define CLOCK_UNKNOWN_PPB	1000000ULL
/* The fit looks back 17 s at most, and 134 ms up and down: products fit. */
#define CLOCK_MAX_X_NS		(1LL << 34)
#define CLOCK_MAX_Y_NS		(1LL << 27)
#define CLOCK_MAX_PAIRS		(1U << 20)
/* Ages in units of 65 us, so that squares of those of all pairs fit. */
#define CLOCK_AGE_SHIFT		16

/* A block's length, and that of the first ones; how far back blocks are kept. */
#define CLOCK_BLOCK_NS		(2 * NSEC_PER_MSEC)
#define CLOCK_FIRST_BLOCK_NS	(NSEC_PER_MSEC / 2)
#define CLOCK_FIRST_BLOCKS	16
#define CLOCK_TRACK_NS		(8ULL * NSEC_PER_SEC)
/* A batch, in pairs and ns, while the line is sure and while it is not. */
#define CLOCK_SURE_BATCH	256
#define CLOCK_SURE_BATCH_NS	(2 * NSEC_PER_MSEC)
#define CLOCK_BATCH		64
#define CLOCK_BATCH_NS		(NSEC_PER_MSEC / 2)
/* After a pause of this length what was known of an unsure line is of no use. */
#define CLOCK_PAUSE_NS		(200 * NSEC_PER_MSEC)
/* CPUs tell of pairs that are not further apart. */
#define CLOCK_LATE_NS		(20 * NSEC_PER_MSEC)

/* Sure up to this error, from so many blocks on, as the density, on which the error
 * depends, is not known from fewer; with all the blocks there can be, up to this; and
 * no longer from there.
 */
#define CLOCK_SURE_NS		500
#define CLOCK_SURE_POINTS	24
#define CLOCK_LATE_SURE_NS	1500
#define CLOCK_UNSURE_NS		2000
/* No line is taken for better than this: stamps have a grain. */
#define CLOCK_GRAIN_NS		16
/* Lower than on the line by twice its error and this: not by chance. */
#define CLOCK_BELOW_NS		250
#define CLOCK_LEARNING_BELOW_NS	10000

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

/* A drift is marked once a second. What it changes by each second, ppb: until
 * two marks tell, and within what. What a servo may do between two fits.
 */
#define CLOCK_MARK_NS		NSEC_PER_SEC
#define CLOCK_FIRST_WANDER_PPB_S	1000
#define CLOCK_MIN_WANDER_PPB_S	20ULL
#define CLOCK_MAX_WANDER_PPB_S	20000ULL
#define CLOCK_SERVO_PPB		2000
/* What a drift may have changed by when a line is begun anew, or after sleep. */
#define CLOCK_STEP_PPB		1000
#define CLOCK_SLEEP_PPB		10000

/* The spread is looked at anew after this many pairs. What is later than a
 * quarter more, and this, is refused.
 */
#define CLOCK_SPREAD_PAIRS	32
#define CLOCK_MIN_SPREAD_NS	512
#define CLOCK_GATE_NS		1000

/* The lowest of 64 pairs is measured in what it should be on average. What is in
 * excess of 2 adds up; from 16 on the line is in doubt: by chance once in 300 000
 * tests. One pair counts 4 at most, as a single one may be late for any reason.
 */
#define CLOCK_EVIDENCE		16
#define CLOCK_EVIDENCE_LEAK	2
#define CLOCK_EVIDENCE_PAIR	4
#define CLOCK_TEST_PAIRS	64
#define CLOCK_MIN_DENSITY	(32ULL * CLOCK_TEST_PAIRS)
/* A host that is late for so long was not late: a clock was stepped. */
#define CLOCK_DOUBT_NS		(40 * NSEC_PER_MSEC)

/* A bracket that is wider is none, and a floor that is higher is a step. One makes
 * a line if it is this narrow and the drift known this well.
 */
#define CLOCK_MAX_BRACKET_NS	100000
#define CLOCK_MAX_FLOOR_NS	100000
#define CLOCK_ANCHOR_NS		3000
#define CLOCK_ANCHOR_PPB	60000
/* Two tell the drift if they are so far apart; the older one is kept so long. */
#define CLOCK_BRACKETS_MIN_NS	(10 * NSEC_PER_MSEC)
#define CLOCK_BRACKETS_MAX_NS	(4ULL * NSEC_PER_SEC)

/**
 * struct clock_news - what a batch tells
 * @nic_ns: NIC's time of its lowest pair
 * @host_ns: and the host's
 * @now_ns: host's time of its latest pair
 * @height_ns: how far above the present line the lowest is
 * @pairs: how many there are
 */
struct clock_news {
	u64 nic_ns;
	u64 host_ns;
	u64 now_ns;
	s64 height_ns;
	u32 pairs;
};

/**
 * struct clock_fit - a line, beside the one that heights are measured from
 * @at_ns: its height at the newest block
 * @slope_q32: its slope
 * @error_ns: how far from the truth it is there, 99 %
 * @slope_ppb: how far its slope is
 * @density: of the pairs above it
 * @stretch_ns: how far back it was fitted
 */
struct clock_fit {
	s64 at_ns;
	s64 slope_q32;
	u64 error_ns;
	u64 slope_ppb;
	u64 density;
	u64 stretch_ns;
};

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

static struct timely_clock_track *clock_track(struct timely_clock *clock)
{
	return &clock->tracks[clock->track];
}

static struct timely_clock_track *clock_trial(struct timely_clock *clock)
{
	return &clock->tracks[!clock->track];
}

static s64 clock_height(const struct timely_clock *clock,
			const struct timely_clock_block *block)
{
	return timely_clock_residual(&clock->line, block->nic_ns, block->host_ns);
}

/* ---- tracks ---- */

/* From before what is there already, by more than CPUs are apart? */
static bool track_late(const struct timely_clock_track *track, u64 nic_ns)
{
	return track->count &&
	       (s64)(track->blocks[track->count - 1].nic_ns - nic_ns) > CLOCK_LATE_NS;
}

/* Is it time for another block? Blocks are in order of the NIC's time. */
static bool track_full(const struct timely_clock_track *track,
		       const struct clock_news *news)
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
	    clock_height(clock, block))
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

/* The pair may be earlier than others already there, as CPUs tell at different
 * times. Return: true if it opened a block.
 */
static bool track_add(const struct timely_clock *clock,
		      struct timely_clock_track *track,
		      const struct clock_news *news)
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
	const struct timely_clock_track *track = clock_track(clock);
	const struct timely_clock_block *newest = &track->blocks[track->count - 1];
	u32 i, count = 0;
	s64 x, y;

	for (i = track->count; i-- > 0;) {
		x = (s64)(track->blocks[i].nic_ns - newest->nic_ns);
		y = clock_height(clock, &track->blocks[i]);
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

/* How thinly pairs lie above the line. If they do so exponentially, two blocks of
 * equally many differ as much in height as they are high, on average, whatever
 * the line. Two pairs more, as the lowest of few says little of what is lower.
 */
static u64 clock_scatter(s64 a_ns, u64 a_pairs, s64 b_ns, u64 b_pairs)
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
	u64 scatter = clock_scatter(clock->y[i], clock->n[i],
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

/* What a changing drift changes by in half of a stretch, and the line meanwhile. */
static u64 fit_bend_ppb(const struct timely_clock *clock, u64 ns)
{
	return div_u64(clock->wander_ppb_s * (ns >> 10), 2 * (CLOCK_PPB >> 10));
}

static u64 fit_bend_ns(const struct timely_clock *clock, u64 ns)
{
	return div_u64(fit_bend_ppb(clock, ns) * (ns >> 10), CLOCK_PPB >> 10);
}

/* The error of a line is what it is for pairs that come evenly, and an edge half as
 * long as the stretch. A shorter edge turns more easily, and more so at its far end. If
 * most pairs are old, as the rate has fallen, or close together, the line is drawn
 * further from where it is known: in proportion to how far from now they are, and to
 * how close to each other.
 */
static void fit_lever(const struct fit_work *work, u64 stretch_ns, u64 since_ns,
		      u64 edge_ns, struct clock_fit *fit)
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
		     u32 count, struct clock_fit *fit)
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
		     u32 count, struct clock_fit *fit)
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
			u32 count, struct clock_fit *fit)
{
	s64 x = clock->x[count - 1], then;
	u64 bend = fit_bend_ns(clock, -x), slack;
	struct clock_fit flat;

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

/* Longer and longer stretches, as long as their lines agree: the best of these. */
static bool fit_line(struct timely_clock *clock, struct clock_fit *best)
{
	struct fit_work work = {
		.scatter = CLOCK_PRIOR * clock->density,
		.scatters = clock->density ? CLOCK_PRIOR : 0,
		.now = { S64_MIN, S64_MAX },
		.then = { S64_MIN, S64_MAX },
	};
	u32 count = fit_points(clock), i;
	struct clock_fit fit;
	bool agree = true;

	*best = (struct clock_fit) { .error_ns = U64_MAX };
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

/* ---- the line ---- */

/* How far from the truth it is at a time, 99 %. */
static u32 line_off_ns(const struct timely_clock_line *line, u64 now_ns)
{
	s64 age_ns = (s64)(now_ns - line->host_ns);

	return line->uncertainty_ns +
	       (u32)div_u64((u64)max(age_ns, 0LL) * line->growth_ppb, CLOCK_PPB);
}

/* How fast the drift changes: by what it did since it was marked, less what may be
 * an error.
 */
static void clock_wander(struct timely_clock *clock, const struct clock_fit *fit)
{
	u64 middle_ns = clock->line.host_ns - fit->stretch_ns / 2;
	u64 ns = middle_ns - clock->mark_ns, error = fit->slope_ppb + clock->mark_error_ppb;
	s64 drift = clock->line.drift_q32, change;
	u64 wander = 0;

	if (ns < fit->stretch_ns || ns < CLOCK_MARK_NS)
		return;
	change = abs(drift - clock->mark_drift_q32);
	change = (change * CLOCK_PPB) >> 32;
	if (ns < 2 * CLOCK_MAX_X_NS && change > error)
		wander = div64_u64((change - error) * CLOCK_PPB, ns);
	wander = max(wander, clock->wander_ppb_s - clock->wander_ppb_s / 4);
	clock->wander_ppb_s = clamp(wander, CLOCK_MIN_WANDER_PPB_S, CLOCK_MAX_WANDER_PPB_S);
	clock->mark_ns = middle_ns;
	clock->mark_drift_q32 = drift;
	clock->mark_error_ppb = fit->slope_ppb;
}

/* All but a 32nd of the pairs should be within the spread. Counted are those that
 * were above the published one, so it is changed only as it is published.
 */
static void clock_spread(struct timely_clock *clock)
{
	struct timely_clock_line *line = &clock->line;
	s64 spread = line->spread_ns, above = clock->spread_above;
	u32 pairs = clock->spread_pairs;

	if (pairs >= CLOCK_SPREAD_PAIRS) {
		spread += div_s64(spread * (above * 32 - pairs), 32 * pairs);
		line->spread_ns = clamp_t(s64, spread, CLOCK_MIN_SPREAD_NS, CLOCK_MAX_Y_NS);
		clock->spread_pairs = 0;
		clock->spread_above = 0;
	}
	line->gate_ns = line->spread_ns + line->spread_ns / 4 + CLOCK_GATE_NS;
}

/* A line that is not sure is asked for often, and never says below. */
static void line_unsure(struct timely_clock_line *line)
{
	line->state = TIMELY_CLOCK_LEARNING;
	line->below_ns = CLOCK_LEARNING_BELOW_NS;
	line->high_ns = U32_MAX;
	line->batch_pairs = CLOCK_BATCH;
	line->batch_ns = CLOCK_BATCH_NS;
}

/* How good the line is, for how long, and what contradicts it. */
static void line_error(struct timely_clock *clock, u64 error_ns, u64 slope_ppb)
{
	struct timely_clock_line *line = &clock->line;
	u64 density = max_t(u64, clock->density, CLOCK_MIN_DENSITY), high;
	u32 limit = CLOCK_SURE_NS;

	if (line->state == TIMELY_CLOCK_SURE)
		limit = CLOCK_UNSURE_NS;
	else if (clock_track(clock)->count == TIMELY_CLOCK_BLOCKS)
		limit = CLOCK_LATE_SURE_NS;
	else if (clock_track(clock)->count < CLOCK_SURE_POINTS)
		limit = 0;
	slope_ppb = min(slope_ppb + CLOCK_SERVO_PPB, CLOCK_UNKNOWN_PPB);
	line->uncertainty_ns = min_t(u64, error_ns, CLOCK_MAX_Y_NS);
	line->growth_ppb = slope_ppb;
	if (error_ns > limit) {
		line_unsure(line);
		return;
	}
	line->state = TIMELY_CLOCK_SURE;
	clock->stepped = false;
	line->sure_ns = div64_u64((CLOCK_UNSURE_NS - error_ns) * CLOCK_PPB, slope_ppb) + 1;
	line->below_ns = 2 * error_ns + CLOCK_BELOW_NS +
			 div_u64(2 * CLOCK_BLOCK_NS * slope_ppb, CLOCK_PPB);
	high = div_u64((CLOCK_EVIDENCE + CLOCK_EVIDENCE_LEAK + 1) * density,
		       TIMELY_CLOCK_HIGH_PAIRS);
	line->high_ns = min_t(u64, high + error_ns + clock->floor_ns, U32_MAX);
	line->batch_pairs = CLOCK_SURE_BATCH;
	line->batch_ns = CLOCK_SURE_BATCH_NS;
}

/* What the floor is, if a bracket's line is known and the lowest pairs are at a height.
 * That line stays until there is a better one.
 */
static bool clock_floor(struct timely_clock *clock, const struct clock_fit *fit, u64 now_ns)
{
	if (!clock->anchored)
		return true;
	if (fit->error_ns > timely_clock_uncertainty_ns(&clock->line, now_ns))
		return false;
	clock->floor_ns = clamp(fit->at_ns, 0LL, CLOCK_MAX_FLOOR_NS);
	clock->anchored = false;
	return true;
}

/* Fit the line to its track: true if there is another one. */
static bool clock_fit(struct timely_clock *clock)
{
	const struct timely_clock_track *track = clock_track(clock);
	const struct timely_clock_block *newest = &track->blocks[track->count - 1];
	struct timely_clock_line *line = &clock->line;
	s64 height = clock_height(clock, newest);
	struct clock_fit fit;

	clock->blocks++;
	if (height == TIMELY_CLOCK_NOWHERE || !fit_line(clock, &fit))
		return false;
	clock->density = fit.density;
	if (!clock_floor(clock, &fit, newest->host_ns))
		return false;
	line->nic_ns = newest->nic_ns;
	line->host_ns = newest->host_ns - height + fit.at_ns - clock->floor_ns;
	line->drift_q32 = clamp(line->drift_q32 + fit.slope_q32, -CLOCK_MAX_DRIFT_Q32,
				CLOCK_MAX_DRIFT_Q32);
	clock->drift_error_ppb = min(fit.slope_ppb + CLOCK_STEP_PPB, CLOCK_UNKNOWN_PPB);
	clock_wander(clock, &fit);
	line_error(clock, fit.error_ns, fit.slope_ppb + fit_bend_ppb(clock, fit.stretch_ns));
	clock_spread(clock);
	return true;
}

/* Begin anew from a point. What is known of the drift stays. */
static void clock_begin(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 error_ppb)
{
	struct timely_clock_line *line = &clock->line;

	line->nic_ns = nic_ns;
	line->host_ns = host_ns;
	line->uncertainty_ns = CLOCK_MAX_Y_NS;
	line->epoch++;
	line_unsure(line);
	clock->drift_error_ppb = min(clock->drift_error_ppb + error_ppb, CLOCK_UNKNOWN_PPB);
	clock->anchored = false;
	clock->evidence = 0;
	clock->run_pairs = 0;
	clock->spread_pairs = 0;
	clock->spread_above = 0;
	clock->restarts++;
}

/* Begin anew from a pair, the first one or after a pause. */
static void clock_restart(struct timely_clock *clock, const struct clock_news *news)
{
	u64 idle_ns = news->host_ns - clock->line.host_ns;

	if (clock->line.state == TIMELY_CLOCK_NONE)
		idle_ns = 0;
	/* Temperature: 1 ppm each second. */
	clock_begin(clock, news->nic_ns, news->host_ns, div_u64(idle_ns, 1000000));
	clock_track(clock)->count = 0;
	track_add(clock, clock_track(clock), news);
}

/* ---- doubt ---- */

/* Is the lowest of the pairs since the last test too high? */
static bool clock_too_high(struct timely_clock *clock, const struct clock_news *news)
{
	s64 height = news->height_ns - clock->floor_ns - clock->line.uncertainty_ns;
	s64 density = max_t(s64, clock->density, CLOCK_MIN_DENSITY);
	s64 evidence;

	/* A bracket's line knows nothing of delays but the gate. */
	if (clock->anchored)
		return news->height_ns > (s64)clock->line.gate_ns;
	height = clamp(height, 0LL, CLOCK_EVIDENCE_PAIR * density);
	if (!clock->run_pairs || height < clock->run_min_ns)
		clock->run_min_ns = height;
	clock->run_pairs += news->pairs;
	evidence = clock->evidence + clock->run_min_ns * clock->run_pairs -
		   CLOCK_EVIDENCE_LEAK * density;
	if (clock->run_pairs >= CLOCK_TEST_PAIRS) {
		clock->evidence = max(evidence, 0LL);
		clock->run_pairs = 0;
	}
	return evidence > CLOCK_EVIDENCE * density;
}

static void clock_doubt(struct timely_clock *clock, const struct clock_news *news, u32 below)
{
	struct timely_clock_line *line = &clock->line;

	line->state = TIMELY_CLOCK_DOUBT;
	line->batch_pairs = CLOCK_BATCH;
	line->batch_ns = CLOCK_BATCH_NS;
	clock->doubted_ns = news->now_ns;
	clock->doubt_pairs = 0;
	clock->below = below;
	clock->near = 0;
	clock->scatter = 0;
	clock->scatters = 0;
	/* Some of these pairs may be from before a step: they are no measure. */
	clock->run_pairs = 0;
	clock->evidence = CLOCK_MAX_Y_NS;
	clock_trial(clock)->count = 0;
}

/* Is the line back? Pairs are as near to it as the lowest of 64 is, or they scatter
 * so widely by now that their being high shows nothing.
 */
static bool doubt_near(struct timely_clock *clock, const struct clock_news *news)
{
	s64 height = clamp(news->height_ns, -CLOCK_MAX_Y_NS, CLOCK_MAX_Y_NS);
	s64 floor = (s64)clock->floor_ns + clock->line.uncertainty_ns;
	u64 density;

	if (clock->run_pairs) {
		clock->scatter += clock_scatter(height, news->pairs, clock->run_min_ns,
						clock->run_pairs);
		clock->scatters++;
	}
	clock->run_min_ns = height;
	clock->run_pairs = news->pairs;
	clock->evidence = min(clock->evidence, height);
	density = max(clock->density, CLOCK_MIN_DENSITY);
	if (height - floor <= (s64)(density / CLOCK_TEST_PAIRS))
		return true;
	if (clock->scatters < 4 || clock->below)
		return false;
	density = div_u64(clock->scatter, clock->scatters);
	if (clock->evidence - floor > (s64)div_u64(2 * density, clock->doubt_pairs))
		return false;
	clock->density = density;
	return true;
}

/* The line is right after all. */
static void clock_trust(struct timely_clock *clock)
{
	struct timely_clock_line *line = &clock->line;

	line->state = TIMELY_CLOCK_SURE;
	line->batch_pairs = CLOCK_SURE_BATCH;
	line->batch_ns = CLOCK_SURE_BATCH_NS;
	clock->evidence = 0;
	clock->run_pairs = 0;
	clock->doubts++;
}

/* The line is wrong: its place takes what the pairs since say, of the drift too,
 * which may be what has changed.
 */
static void clock_step(struct timely_clock *clock, const struct clock_news *news)
{
	clock->steps++;
	clock->stepped = true;
	clock->bracket_width_ns = 0;
	clock->track = !clock->track;
	clock_begin(clock, news->nic_ns, news->host_ns, CLOCK_UNKNOWN_PPB);
	track_add(clock, clock_track(clock), news);
	clock_fit(clock);
}

/* Pairs on the line and pairs below it: it is not low enough. */
static void clock_lower(struct timely_clock *clock, const struct clock_news *news)
{
	clock->doubts++;
	clock->evidence = 0;
	clock->run_pairs = 0;
	line_unsure(&clock->line);
	track_add(clock, clock_track(clock), news);
	clock->line.host_ns += news->height_ns;
	clock_fit(clock);
}

/* ---- a batch, in each state ---- */

/* Has nothing come for so long that the line is sure no more? If it was sure for a
 * short time only, and pairs do come, it is not known well: that is all.
 */
static bool clock_expired(struct timely_clock *clock, const struct clock_news *news)
{
	const struct timely_clock_track *track = clock_track(clock);
	struct timely_clock_line *line = &clock->line;

	if (line->state == TIMELY_CLOCK_LEARNING ||
	    (s64)(news->host_ns - line->host_ns) <= (s64)line->sure_ns)
		return false;
	if (line->state == TIMELY_CLOCK_DOUBT || !track->count ||
	    news->host_ns - track->blocks[track->count - 1].host_ns > CLOCK_PAUSE_NS)
		return true;
	line_unsure(line);
	return false;
}

static bool take_learning(struct timely_clock *clock, const struct clock_news *news)
{
	if (abs(news->height_ns) > CLOCK_MAX_Y_NS ||
	    track_late(clock_track(clock), news->nic_ns)) {
		clock_restart(clock, news);
		return true;
	}
	if (track_add(clock, clock_track(clock), news) && clock_fit(clock))
		return true;
	if (news->height_ns >= 0)
		return false;
	clock->line.host_ns += news->height_ns;
	return true;
}

/* Lower than ever, yet above a line that brackets have shown to be far below: the
 * host has become faster, the line is right.
 */
static void take_sunk(struct timely_clock *clock, const struct clock_news *news)
{
	if (news->height_ns >= (s64)clock->floor_ns - (s64)clock->line.below_ns)
		return;
	clock->floor_ns = max(news->height_ns, 0LL);
	clock->anchored = true;
	clock_track(clock)->count = 0;
}

static bool take_sure(struct timely_clock *clock, const struct clock_news *news)
{
	bool below = news->height_ns < -(s64)clock->line.below_ns;

	if (below || clock_too_high(clock, news)) {
		clock_doubt(clock, news, below);
		return true;
	}
	if (clock->floor_ns)
		take_sunk(clock, news);
	return track_add(clock, clock_track(clock), news) && clock_fit(clock);
}

/* Below the line once more: no stray, unless of a host that handles few pairs as
 * soon as it can.
 */
static void doubt_below(struct timely_clock *clock, const struct clock_news *news)
{
	if (clock->near && news->height_ns > -CLOCK_MAX_Y_NS)
		clock_lower(clock, news);
	else
		clock_step(clock, news);
}

static bool take_doubt(struct timely_clock *clock, const struct clock_news *news)
{
	bool below = news->height_ns < -(s64)clock->line.below_ns;

	/* Another CPU's, from before. */
	if (clock->doubted_ns - news->host_ns < CLOCK_LATE_NS)
		return false;
	if (track_late(clock_trial(clock), news->nic_ns))
		clock_trial(clock)->count = 0;
	clock->doubt_pairs = below ? 0 : min(clock->doubt_pairs + news->pairs, CLOCK_MAX_PAIRS);
	if (below && clock->below++) {
		doubt_below(clock, news);
		return true;
	}
	if (!below && doubt_near(clock, news))
		clock->near++;
	if (clock->near && (!clock->below || clock->doubt_pairs >= CLOCK_TEST_PAIRS)) {
		clock_trust(clock);
		return true;
	}
	track_add(clock, clock_trial(clock), news);
	if (news->now_ns - clock_trial(clock)->blocks[0].opened_ns < CLOCK_DOUBT_NS ||
	    clock->doubt_pairs < CLOCK_TEST_PAIRS)
		return false;
	clock_step(clock, news);
	return true;
}

/* ---- brackets ---- */

/* The drift between this bracket and one before: within what, ppb, or 0 if that
 * cannot be told.
 */
static u64 bracket_drift(const struct timely_clock *clock, u64 nic_ns, u64 host_ns,
			 u64 width_ns, s64 *drift_q32)
{
	s64 nic = (s64)(nic_ns - clock->bracket_nic_ns);
	s64 host = (s64)(host_ns - clock->bracket_host_ns);

	if (!clock->bracket_width_ns || host < (s64)CLOCK_BRACKETS_MIN_NS ||
	    host > (s64)CLOCK_BRACKETS_MAX_NS || nic < host / 2 || nic > host * 2)
		return 0;
	if (abs(host - nic) > host / 512)
		return 0;
	*drift_q32 = clamp(div64_s64((host - nic) * CLOCK_Q32, nic),
			   -CLOCK_MAX_DRIFT_Q32, CLOCK_MAX_DRIFT_Q32);
	return div64_u64((width_ns + clock->bracket_width_ns + 2 * CLOCK_GRAIN_NS) *
			 (CLOCK_PPB / 2), host) + 1;
}

static void bracket_keep(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 width_ns)
{
	u64 age_ns = host_ns - clock->bracket_host_ns;

	if (clock->bracket_width_ns && age_ns < CLOCK_MARK_NS)
		return;
	clock->bracket_nic_ns = nic_ns;
	clock->bracket_host_ns = host_ns;
	clock->bracket_width_ns = width_ns + 1;
}

/* Is a drift by two brackets what the line's may be? If not, one of both clocks was stepped
 * in between, by too little to show, or the drift has changed: the next bracket tells.
 */
static bool bracket_agrees(struct timely_clock *clock, s64 drift_q32, u64 drift_ppb)
{
	u64 off_ppb = (abs(drift_q32 - clock->line.drift_q32) * CLOCK_PPB) >> 32;

	if (off_ppb <= clock->drift_error_ppb + drift_ppb + CLOCK_SERVO_PPB)
		return true;
	clock->drift_error_ppb = min(clock->drift_error_ppb + off_ppb, CLOCK_UNKNOWN_PPB);
	return false;
}

/* The line goes through a bracket, of @width_ns, from now on. */
static void bracket_line(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 width_ns)
{
	struct timely_clock_line *line = &clock->line;

	line->nic_ns = nic_ns;
	line->host_ns = host_ns;
	clock->anchored = true;
	line->state = TIMELY_CLOCK_SURE;
	line_error(clock, width_ns / 2 + CLOCK_GRAIN_NS, clock->drift_error_ppb);
	/* Of what is below it pairs know better than half of the bracket. */
	line->below_ns += width_ns;
}

/* A line through a bracket, if the drift is known. */
static bool clock_anchor(struct timely_clock *clock, u64 nic_ns, u64 host_ns,
			 u64 width_ns, u64 error_ppb)
{
	bool good = width_ns <= CLOCK_ANCHOR_NS && !clock->stepped &&
		    clock->drift_error_ppb <= CLOCK_ANCHOR_PPB;

	if (!good && clock->line.state == TIMELY_CLOCK_LEARNING)
		return false;
	clock_begin(clock, nic_ns, host_ns, error_ppb);
	clock_track(clock)->count = 0;
	if (good)
		bracket_line(clock, nic_ns, host_ns, width_ns);
	return true;
}

/* Move the line into a bracket that lies at @low_ns to @high_ns from it. */
static bool clock_squeeze(struct timely_clock *clock, s64 low_ns, s64 high_ns)
{
	s64 move = low_ns > 0 ? low_ns : min(high_ns, 0LL);

	clock->line.host_ns += move;
	clock->floor_ns = clamp(clock->floor_ns - move, 0LL, CLOCK_MAX_FLOOR_NS);
	return move;
}

/**
 * timely_clock_bracket() - learn from a cross-timestamp
 * @clock: the clock, locked
 * @before_ns: host's time before the NIC's clock was read
 * @nic_ns: what it read
 * @after_ns: host's time after
 *
 * It tells the floor of delays, which traffic alone does not, and ends a doubt.
 * Two that are narrow tell the drift, and so make a line, which stays as long as
 * that of the pairs is not better.
 *
 * Return: true if @clock->line has changed and is to be published.
 */
bool timely_clock_bracket(struct timely_clock *clock, u64 before_ns,
			  u64 nic_ns, u64 after_ns)
{
	struct timely_clock_line *line = &clock->line;
	s64 low = timely_clock_residual(line, nic_ns, before_ns);
	u64 width = after_ns - before_ns, host_ns = before_ns + width / 2;
	u64 drift_ppb = 0;
	s64 error, drift_q32;
	bool doubt;

	if (width > CLOCK_MAX_BRACKET_NS || line->state == TIMELY_CLOCK_NONE)
		return false;
	clock->brackets++;
	if (width <= CLOCK_ANCHOR_NS) {
		drift_ppb = bracket_drift(clock, nic_ns, host_ns, width, &drift_q32);
		bracket_keep(clock, nic_ns, host_ns, width);
	}
	if (line->state == TIMELY_CLOCK_LEARNING ||
	    (s64)(after_ns - line->host_ns) > (s64)line->sure_ns) {
		if (drift_ppb && (clock->stepped || drift_ppb < clock->drift_error_ppb)) {
			line->drift_q32 = drift_q32;
			clock->drift_error_ppb = drift_ppb;
			clock->stepped = drift_ppb > CLOCK_ANCHOR_PPB;
		}
		return clock_anchor(clock, nic_ns, host_ns, width, 0);
	}
	/* A line is wrong by more than its error once in a hundred times: as long as
	 * that may be chance the bracket mends the line, and nothing was stepped.
	 */
	error = 2 * (s64)line_off_ns(line, after_ns) + CLOCK_BELOW_NS;
	if (low > (s64)clock->floor_ns + error ||
	    low + (s64)width < (s64)clock->floor_ns - CLOCK_MAX_FLOOR_NS - error) {
		/* Or it is the drift that has changed: the next one tells. */
		clock->steps++;
		clock->stepped = true;
		clock->bracket_width_ns = 0;
		if (width <= CLOCK_ANCHOR_NS)
			bracket_keep(clock, nic_ns, host_ns, width);
		return clock_anchor(clock, nic_ns, host_ns, width, CLOCK_SLEEP_PPB);
	}
	doubt = line->state == TIMELY_CLOCK_DOUBT;
	if (doubt)
		clock_trust(clock);
	if (drift_ppb && timely_clock_uncertainty_ns(line, after_ns) > width / 2 + CLOCK_GRAIN_NS) {
		if (bracket_agrees(clock, drift_q32, drift_ppb)) {
			line->drift_q32 = drift_q32;
			clock->drift_error_ppb = drift_ppb;
		} else {
			clock->bracket_width_ns = 0;
			bracket_keep(clock, nic_ns, host_ns, width);
		}
		bracket_line(clock, nic_ns, host_ns, width);
		return true;
	}
	return clock_squeeze(clock, low, low + (s64)width) || doubt;
}
EXPORT_SYMBOL_GPL(timely_clock_bracket);

/* ---- and the rest ---- */

/**
 * timely_clock_init() - make a clock that nothing is known of
 * @clock: the clock
 */
void timely_clock_init(struct timely_clock *clock)
{
	memset(clock, 0, sizeof(*clock));
	line_unsure(&clock->line);
	clock->line.state = TIMELY_CLOCK_NONE;
	clock->line.spread_ns = CLOCK_MIN_SPREAD_NS;
	clock_spread(clock);
	clock->drift_error_ppb = CLOCK_UNKNOWN_PPB;
	clock->wander_ppb_s = CLOCK_FIRST_WANDER_PPB_S;
}
EXPORT_SYMBOL_GPL(timely_clock_init);

/**
 * timely_clock_take() - learn from a batch of pairs
 * @clock: the clock, locked
 * @batch: the batch, emptied thereby
 *
 * Return: true if @clock->line has changed and is to be published.
 */
bool timely_clock_take(struct timely_clock *clock, struct timely_clock_batch *batch)
{
	struct timely_clock_line *line = &clock->line;
	struct clock_news news = {
		.nic_ns = batch->nic_ns,
		.host_ns = batch->host_ns,
		.now_ns = batch->last_ns,
		/* Above the line as it is now. */
		.height_ns = timely_clock_residual(line, batch->nic_ns, batch->host_ns),
		.pairs = min(batch->count, CLOCK_MAX_PAIRS),
	};

	batch->count = 0;
	batch->since_ns = batch->last_ns;
	clock->pairs += news.pairs;
	if (!news.pairs || batch->epoch != line->epoch)
		return false;
	if (line->state == TIMELY_CLOCK_NONE || clock_expired(clock, &news)) {
		clock_restart(clock, &news);
		return true;
	}
	if (line->state == TIMELY_CLOCK_DOUBT)
		return take_doubt(clock, &news);
	clock->spread_pairs = min(clock->spread_pairs + news.pairs, CLOCK_MAX_PAIRS);
	clock->spread_above = min(clock->spread_above + batch->above, CLOCK_MAX_PAIRS);
	if (line->state == TIMELY_CLOCK_SURE)
		return take_sure(clock, &news);
	return take_learning(clock, &news);
}
EXPORT_SYMBOL_GPL(timely_clock_take);

/**
 * timely_clock_forget() - the clocks may have gone apart: suspend, link down
 * @clock: the clock, locked
 *
 * Nothing is sure until pairs show it anew. Publish @clock->line afterwards.
 */
void timely_clock_forget(struct timely_clock *clock)
{
	line_unsure(&clock->line);
	clock->line.state = TIMELY_CLOCK_NONE;
	clock->line.epoch++;
	clock->drift_error_ppb = min(clock->drift_error_ppb + CLOCK_SLEEP_PPB,
				     CLOCK_UNKNOWN_PPB);
}
EXPORT_SYMBOL_GPL(timely_clock_forget);

/**
 * timely_clock_uncertainty_ns() - how far from the truth times on a line are
 * @line: a copy of the published line
 * @now_ns: the time
 *
 * Return: that, 99 %, now; all ones if the line is not sure.
 */
u32 timely_clock_uncertainty_ns(const struct timely_clock_line *line, u64 now_ns)
{
	s64 age_ns = (s64)(now_ns - line->host_ns);

	if (line->state != TIMELY_CLOCK_SURE || age_ns > (s64)line->sure_ns)
		return U32_MAX;
	return line_off_ns(line, now_ns);
}
EXPORT_SYMBOL_GPL(timely_clock_uncertainty_ns);
