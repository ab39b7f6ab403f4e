// SPDX-License-Identifier: GPL-2.0
/*
 * The offset and the drift between two clocks, from upper and lower bounds of the offset: the
 * widest strip.
 *
 * Each forward probe gives an upper bound of the offset, each backward probe a lower bound; strip.h
 * defines them. The straight line that separates both sets of points with the widest margin is the
 * offset: probes that did not wait have the minimum delay and lie on the borders of the strip, and
 * the line in the middle is right if both directions have the same minimum delay. Half of an
 * asymmetry of the path is an error that no method can see from one path; clock_loop.c sees it from
 * loops of hosts.
 *
 * Huygens (NSDI'18) computes this line with a support vector machine. With two unknowns it is also
 * the widest strip between the lower hull of the upper bounds and the upper hull of the lower
 * bounds, exactly. For a slope b let u(b) be the lowest intercept of a line through an upper bound,
 * and l(b) the highest one through a lower bound. The height of the strip, u(b) - l(b), is concave.
 * As b falls, the touching point of the upper bounds moves from the newest point to the oldest, and
 * that of the lower bounds from the oldest to the newest. The strip is widest where the two pass
 * each other. There one border of the strip has two points and the other border one: the support.
 * All comparisons are exact, with products in 64 bits; hull.h has the limits. The heights of lower
 * bounds are negated, so that both hulls are lower hulls.
 *
 * Outliers. A probe that waits does no harm. A timestamp that is wrong in the other direction makes
 * the strip narrow, or lets the sets overlap. If the sets overlap, the point of the support whose
 * removal widens the strip most is left out, and so on, for at most 2 points and one of 32 of the
 * direction with fewer points. If they still overlap, a clock was stepped or a drift changed. If
 * the strip is less than half as wide as before, one point is left out if this restores the width;
 * if not, more than one probe was that fast, and the path has become shorter or was never free of
 * queues before. Departure from Huygens, whose support vector machine weighs outliers instead.
 *
 * Few probes without queues. If a window has only one or two of them, the widest strip may be
 * turned far from the truth. So the drift of the most exact of the latest windows is kept, and the
 * strip with this slope is computed, too. Of the two strips the one with the smaller error is
 * used. Departure from Huygens, which uses each window alone.
 *
 * No probe without queues. If a port is busy for seconds, no probe of one direction is free of
 * queues, and both strips may be wrong by half of the least queue. The fit of before, with its
 * drift, is then more exact for some time. It is held while its grown uncertainty is less than half
 * of both errors, and while no point contradicts it. Probes of the other direction keep it right:
 * no delay is below the least one, so each direction bounds the offset on one side by what its
 * fastest probes exceed the least delay. Departure from Huygens, which uses each window alone.
 *
 * Uncertainty. The points are dealt out to eight parts in turn, and the line is fitted again
 * without each of the parts (jackknife). The scatter of these fits shows the error of the fit, for
 * any distribution of delays and noise of timestamps. The uncertainty follows the mean scatter of
 * several windows. The bend of the true offset in the window, if the drift changes, is added. If
 * the probes without queues are all close to each other in time, the strip can be turned and is as
 * wide: the error of the drift is then what the strip can be turned by. If no probe of a direction
 * was free of queues, the strip is wider than before, and the error may be as large as what half of
 * its height has grown by: the uncertainty is at least that. Departure from Huygens, which states
 * no error of a single pair of clocks.
 */

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "strip_fit.h"

#define STRIP_PPB		1000000000LL

/* One of the functions that find a strip. */
typedef bool strip_finder(struct timely_strip_set *sets, const struct timely_strip_deal *deal,
			  struct timely_strip_line *line);

/* A point may be this many places out of order. */
#define STRIP_ORDER		64
/* Outliers that are left out at most: 2, and one of 32 points. */
#define STRIP_OUTLIERS		2
#define STRIP_OUTLIER_SHARE	32
/* If more than one of 8 points is far from the reference, the reference is wrong. */
#define STRIP_STRAY_SHARE	8
/* Uncertainty as a multiple of the standard deviation: with 4, 99.9 % of errors are less in
 * simulations (results/clock-sync).
 */
#define STRIP_ERROR_TIMES	4
/* Least uncertainty, ns: the resolution of timestamps. */
#define STRIP_GRAIN_NS		2
/* The mean scatter moves by a quarter of the difference in each fit. */
#define STRIP_MEAN_SHIFT	2
/* From this error on a drift is as good as unknown, ppb. */
#define STRIP_TURN_MAX_PPB	(1 << 20)
/* Least change of the drift to expect, ppb/s: oscillators in air with a changing temperature. */
#define STRIP_WANDER_PPB_S	20
#define STRIP_WANDER_MAX_PPB_S	1000000U
/* Drifts are compared over at least this time to measure their change, ns. */
#define STRIP_WANDER_NS		4000000000ULL

/* ---- points in the caller's memory ---- */

static struct timely_strip_point *ring_at(const struct timely_strip_ring *ring, u32 i)
{
	i += ring->first;
	return &ring->points[i < ring->size ? i : i - ring->size];
}

static void ring_drop_oldest(struct timely_strip_ring *ring)
{
	ring->first = ring->first + 1 < ring->size ? ring->first + 1 : 0;
	ring->count--;
}

/* Drop points from before @from_ns. */
static void ring_expire(struct timely_strip_ring *ring, u64 from_ns)
{
	while (ring->count && (s64)(ring_at(ring, 0)->at_ns - from_ns) < 0)
		ring_drop_oldest(ring);
}

/**
 * timely_strip_init() - initialise the state of a peer
 * @strip: the state
 * @points: memory for 2 * @size points, which the caller keeps and frees
 * @size: number of points per direction, TIMELY_STRIP_POINTS_MIN to TIMELY_STRIP_POINTS_MAX
 * @window_ns: age up to which points are used, TIMELY_STRIP_WINDOW_MIN_NS to
 *	TIMELY_STRIP_WINDOW_MAX_NS; 2 s is what Huygens uses
 *
 * Return: 0; -EINVAL if an argument is out of range.
 */
int timely_strip_init(struct timely_strip *strip, struct timely_strip_point *points, u32 size,
		      u64 window_ns)
{
	u32 i;

	if (size < TIMELY_STRIP_POINTS_MIN || size > TIMELY_STRIP_POINTS_MAX ||
	    window_ns < TIMELY_STRIP_WINDOW_MIN_NS || window_ns > TIMELY_STRIP_WINDOW_MAX_NS)
		return -EINVAL;
	memset(strip, 0, sizeof(*strip));
	for (i = 0; i < TIMELY_STRIP_DIRECTIONS; i++) {
		strip->rings[i].points = points + i * size;
		strip->rings[i].size = size;
	}
	strip->window_ns = window_ns;
	timely_strip_forget(strip);
	return 0;
}

/**
 * timely_strip_forget() - discard all points and the fit
 * @strip: the state of a peer; its counters go on
 *
 * To be called when the peer restarts, and when the own clock or the peer's clock is known to be
 * stepped.
 */
void timely_strip_forget(struct timely_strip *strip)
{
	u32 i;

	for (i = 0; i < TIMELY_STRIP_DIRECTIONS; i++)
		strip->rings[i].count = 0;
	memset(&strip->fit, 0, sizeof(strip->fit));
	strip->fit.uncertainty_ns = TIMELY_STRIP_UNKNOWN_NS;
	strip->variance = 0;
	strip->drift_variance = 0;
	strip->level_variance = 0;
	strip->known_error_ppb = U32_MAX;
	strip->wander_q4 = 0;
	strip->mark_error_ppb = U32_MAX;
	strip->expected_ns = 0;
}

/* Whether @a is the tighter bound. */
static bool tighter(enum timely_strip_direction direction, s64 a_ns, s64 b_ns)
{
	s64 more = (s64)((u64)a_ns - (u64)b_ns);

	return direction == TIMELY_STRIP_FORWARD ? more < 0 : more > 0;
}

/**
 * timely_strip_add() - add a bound of the offset
 * @strip: the state of the peer
 * @direction: direction of the probe
 * @point: the bound; any values
 *
 * Points may come in another order than that of their times, by up to 64 places. If the ring is
 * full, the oldest point is dropped. A point that is older than the newest by more than the window
 * shows that the own clock was set back: the strip starts again with this point.
 *
 * Return: true if the point is used; false if it is too far out of order.
 */
bool timely_strip_add(struct timely_strip *strip, enum timely_strip_direction direction,
		      const struct timely_strip_point *point)
{
	struct timely_strip_ring *ring = &strip->rings[direction];
	struct timely_strip_point *before;
	u32 at = ring->count, i;

	if (ring->count && (s64)(ring_at(ring, ring->count - 1)->at_ns - point->at_ns) >
			   (s64)strip->window_ns) {
		timely_strip_forget(strip);
		at = 0;
	}
	while (at && (s64)(ring_at(ring, at - 1)->at_ns - point->at_ns) > 0)
		at--;
	if (ring->count - at > STRIP_ORDER) {
		strip->late++;
		return false;
	}
	/* The hull needs points of different times: the tighter bound is kept. */
	before = at ? ring_at(ring, at - 1) : NULL;
	if (before && before->at_ns == point->at_ns) {
		if (tighter(direction, point->offset_ns, before->offset_ns))
			*before = *point;
		return true;
	}
	if (ring->count == ring->size) {
		strip->full++;
		if (!at)
			return true;
		ring_drop_oldest(ring);
		at--;
	}
	ring->count++;
	for (i = ring->count - 1; i > at; i--)
		*ring_at(ring, i) = *ring_at(ring, i - 1);
	*ring_at(ring, at) = *point;
	return true;
}

/* ---- from the rings to a fit ---- */

static struct timely_strip_set strip_set(struct timely_strip_work *work, u32 direction)
{
	return (struct timely_strip_set) {
		.x = work->x[direction],
		.y = work->y[direction],
		.hull = work->hull[direction],
	};
}

/* The offset at the newest point that heights are relative to, if there is no fit yet: the median
 * of three points.
 */
static s64 strip_guess(const struct timely_strip_ring *ring)
{
	s64 a = ring_at(ring, 0)->offset_ns;
	s64 b = (s64)((u64)ring_at(ring, ring->count / 2)->offset_ns - (u64)a);
	s64 c = (s64)((u64)ring_at(ring, ring->count - 1)->offset_ns - (u64)a);

	return (s64)((u64)a + (u64)clamp(0LL, min(b, c), max(b, c)));
}

/* Whether a point can be used with those of @set, which are newer. Times of points wrap, so that
 * the order of a ring does not say that all of them are in one window.
 */
static bool set_takes(const struct timely_strip_set *set, s64 x, s64 y)
{
	return x <= 0 && x >= -(s64)TIMELY_STRIP_WINDOW_MAX_NS &&
	       (!set->count || x < set->x[set->count - 1]) &&
	       y >= -STRIP_HEIGHT_NS && y <= STRIP_HEIGHT_NS;
}

/* Copy the points of a direction to the working memory, newest first, as times before the
 * reference's time and heights above the reference. Return: the number of points that are too far
 * from the reference.
 */
static u32 set_gather(const struct timely_strip_ring *ring, u32 direction,
		      const struct timely_strip_fit *reference, struct timely_strip_set *set)
{
	u32 i;

	set->count = 0;
	for (i = ring->count; i-- > 0;) {
		const struct timely_strip_point *point = ring_at(ring, i);
		s64 x = (s64)(point->at_ns - reference->at_ns);
		s64 y = (s64)((u64)point->offset_ns -
			      (u64)timely_strip_offset_ns(reference, point->at_ns));

		if (!set_takes(set, x, y))
			continue;
		set->x[set->count] = x;
		set->y[set->count++] = direction == TIMELY_STRIP_FORWARD ? y : -y;
	}
	return ring->count - set->count;
}

/* Copy the points of both directions. Return: the number of points that are too far away. */
static u32 strip_gather(const struct timely_strip *strip, struct timely_strip_work *work,
			const struct timely_strip_fit *reference, struct timely_strip_set *sets)
{
	u32 i, strays = 0;

	for (i = 0; i < TIMELY_STRIP_DIRECTIONS; i++) {
		sets[i] = strip_set(work, i);
		strays += set_gather(&strip->rings[i], i, reference, &sets[i]);
	}
	return strays;
}

/* The later or, if @later is false, the earlier of two times. */
static u64 pick(u64 a_ns, u64 b_ns, bool later)
{
	return ((s64)(a_ns - b_ns) > 0) == later ? a_ns : b_ns;
}

/* Drop old points, and find the newest. Return: TIMELY_STRIP_GOOD if the points suffice. */
static enum timely_strip_verdict strip_range(struct timely_strip *strip, u64 now_ns,
					     u64 *newest_ns)
{
	struct timely_strip_ring *forward = &strip->rings[TIMELY_STRIP_FORWARD];
	struct timely_strip_ring *backward = &strip->rings[TIMELY_STRIP_BACKWARD];
	u64 from = now_ns - strip->window_ns, ends[TIMELY_STRIP_DIRECTIONS];
	u32 i;

	/* Points may be newer than @now_ns, but the hull's products must fit. */
	for (i = 0; i < 2; i++) {
		ring_expire(forward, from);
		ring_expire(backward, from);
		if (min(forward->count, backward->count) < TIMELY_STRIP_POINTS_MIN)
			return TIMELY_STRIP_FEW;
		ends[TIMELY_STRIP_FORWARD] = ring_at(forward, forward->count - 1)->at_ns;
		ends[TIMELY_STRIP_BACKWARD] = ring_at(backward, backward->count - 1)->at_ns;
		*newest_ns = pick(ends[0], ends[1], true);
		from = pick(from, *newest_ns - strip->window_ns, true);
	}
	from = pick(ring_at(forward, 0)->at_ns, ring_at(backward, 0)->at_ns, true);
	return (s64)(pick(ends[0], ends[1], false) - from) < (s64)TIMELY_STRIP_WINDOW_MIN_NS ?
	       TIMELY_STRIP_SHORT : TIMELY_STRIP_GOOD;
}

/* A clock was stepped: discard the fit and all but the newest quarter of the window. */
static enum timely_strip_verdict strip_overlap(struct timely_strip *strip, u64 newest_ns)
{
	u32 i;

	for (i = 0; i < TIMELY_STRIP_DIRECTIONS; i++)
		ring_expire(&strip->rings[i], newest_ns - strip->window_ns / 4);
	memset(&strip->fit, 0, sizeof(strip->fit));
	strip->fit.uncertainty_ns = TIMELY_STRIP_UNKNOWN_NS;
	return TIMELY_STRIP_OVERLAP;
}

/* ---- uncertainty ---- */

/* A change of the drift, @ppb_s, bends the offset: the largest error of a straight line at the end
 * of a time, ns. Times are in units of 2^20 ns so that the square fits.
 */
static u64 bend_ns(u64 ppb_s, u64 ns)
{
	u64 units = min_t(u64, ns, TIMELY_STRIP_AGE_MAX_NS) >> 20;

	/* (2^20 ns)^2 is 1.0995 10^-6 s^2, here 1.1 10^-6 s^2. */
	return div_u64(div_u64(units * units * 1100, 1000) * ppb_s, 2 * 1000000);
}

/* Change of the drift to expect, ppb/s. */
static u32 wander_ppb_s(const struct timely_strip *strip)
{
	return STRIP_WANDER_PPB_S + (strip->wander_q4 >> 4);
}

static s64 line_slope_q32(const struct timely_strip_line *line)
{
	s64 slope = div64_s64(line->dy * (1LL << 32), line->dx);

	return clamp(slope, -2 * TIMELY_STRIP_DRIFT_MAX_Q32, 2 * TIMELY_STRIP_DRIFT_MAX_Q32);
}

static u64 square_ns(s64 ns)
{
	return (u64)(ns * ns);
}

static void mean_square(u64 *mean, u64 square)
{
	*mean = *mean ? *mean - (*mean >> STRIP_MEAN_SHIFT) + (square >> STRIP_MEAN_SHIFT) :
			square;
}

/* The jackknife's estimate of the variance, from fits without one of the parts each. */
static u64 jackknife(const s64 *values, u32 count)
{
	s64 mean = 0;
	u64 sum = 0;
	u32 i;

	for (i = 0; i < count; i++)
		mean += values[i];
	mean = div_s64(mean, count);
	for (i = 0; i < count; i++)
		sum += (u64)((values[i] - mean) * (values[i] - mean));
	return div_u64(sum * (count - 1), count);
}

/**
 * struct strip_candidate - a line that may become the fit
 * @line: the line
 * @drift_q32: its slope, Q32
 * @error_ns: error at the newest point that 99.9 % of such lines do not exceed, ns
 * @drift_error_ppb: error of the slope that 99.9 % of such lines do not exceed, ppb
 */
struct strip_candidate {
	struct timely_strip_line line;
	s64 drift_q32;
	u64 error_ns;
	u64 drift_error_ppb;
};

/* Error that 99.9 % do not exceed, from the variance now and its mean over several windows. */
static u64 likely_error(u64 variance, u64 *mean)
{
	mean_square(mean, variance);
	return STRIP_ERROR_TIMES * int_sqrt64(max(variance, *mean));
}

/* Fit without each part of the points, and compute the variances from the scatter of these fits.
 * Return: false if some of the fits are not possible.
 */
static bool strip_scatter(struct timely_strip_set *sets, strip_finder *find, u64 *variance,
			  u64 *drift_variance)
{
	struct timely_strip_deal deal = STRIP_ALL_POINTS;
	s64 at_ns[STRIP_PARTS], drift_ppb[STRIP_PARTS];
	struct timely_strip_line line;

	for (deal.part = 0; deal.part < STRIP_PARTS; deal.part++) {
		if (!find(sets, &deal, &line))
			return false;
		at_ns[deal.part] = clamp(line.at_ns, -TIMELY_HULL_Y_NS, TIMELY_HULL_Y_NS);
		drift_ppb[deal.part] = timely_strip_drift_ppb(line_slope_q32(&line));
	}
	*variance = jackknife(at_ns, STRIP_PARTS);
	*drift_variance = jackknife(drift_ppb, STRIP_PARTS);
	return true;
}

/* By how much half of a strip's height exceeds the least one, ns: the time that the probes on its
 * borders have waited, or more.
 */
static u64 strip_excess(const struct timely_strip *strip, const struct timely_strip_line *line)
{
	return max_t(s64, timely_strip_half_ns(line) - (s64)strip->expected_ns, 0);
}

/* Age of the oldest point on the border that has two, or of the older one of two points, ns. */
static u64 strip_far(const struct timely_strip_set *sets, const struct timely_strip_line *line)
{
	s64 far = 0;
	u32 i, j;

	for (i = 0; i < TIMELY_STRIP_DIRECTIONS; i++)
		for (j = 0; j < line->ends[i]; j++)
			far = max(far, -sets[i].x[line->support[i][j]]);
	return far;
}

/* Height of the strip with a slope, ns. */
static s64 strip_height(const struct timely_strip_set *sets, s64 slope_q32)
{
	s64 least[TIMELY_STRIP_DIRECTIONS] = { S64_MAX, S64_MAX };
	u32 i, j;

	for (i = 0; i < TIMELY_STRIP_DIRECTIONS; i++) {
		s64 slope = i == TIMELY_STRIP_FORWARD ? slope_q32 : -slope_q32;

		for (j = 0; j < sets[i].count; j++)
			least[i] = min(least[i], sets[i].y[j] - ((slope * sets[i].x[j]) >> 32));
	}
	return least[0] + least[1];
}

/* Error of the slope of the widest strip, ppb: @error_ppb, which its scatter shows, or more: a
 * strip that is turned by the error must be narrower, by more than @noise_ns.
 */
static u64 strip_turn(const struct timely_strip_set *sets, const struct timely_strip_line *line,
		      u64 error_ppb, s64 noise_ns)
{
	s64 least_ns = 2 * timely_strip_half_ns(line) - noise_ns;
	s64 slope = line_slope_q32(line), turn;

	for (error_ppb = max(error_ppb, 1ULL); error_ppb < STRIP_TURN_MAX_PPB; error_ppb *= 2) {
		turn = div_u64(error_ppb << 32, STRIP_PPB);
		if (strip_height(sets, slope + turn) < least_ns &&
		    strip_height(sets, slope - turn) < least_ns)
			break;
	}
	return error_ppb;
}

/* Compute the errors of the widest strip. If the probes on its borders have waited, the strip is
 * turned by that, and the error grows with the distance from the two points on one border.
 */
static void strip_free(struct timely_strip *strip, struct timely_strip_set *sets, u64 length_ns,
		       struct strip_candidate *found)
{
	u64 excess = strip_excess(strip, &found->line), wander = wander_ppb_s(strip), lever_q8;
	u64 half = timely_strip_half_ns(&found->line) + 1, far = strip_far(sets, &found->line);
	u64 variance = half * half, drift_variance = U32_MAX, scatter_ppb;

	strip_scatter(sets, timely_strip_widest, &variance, &drift_variance);
	lever_q8 = div64_u64(far << 9, found->line.dx);
	lever_q8 = clamp_t(u64, lever_q8, 1ULL << 9, 1ULL << 24);
	found->error_ns = likely_error(variance, &strip->variance) + STRIP_GRAIN_NS +
			  ((excess * lever_q8) >> 8) + bend_ns(wander, length_ns / 2);
	scatter_ppb = likely_error(drift_variance, &strip->drift_variance) +
		      div64_u64((2 * excess + STRIP_GRAIN_NS) * STRIP_PPB, found->line.dx) +
		      div_u64(wander * (length_ns >> 10), 2 * (STRIP_PPB >> 10));
	found->drift_error_ppb = strip_turn(sets, &found->line, scatter_ppb,
					    STRIP_GRAIN_NS + int_sqrt64(variance));
	found->error_ns += div_u64((far >> 10) * (found->drift_error_ppb - scatter_ppb),
				   STRIP_PPB >> 10);
}

/* Find the strip with the known drift, which is the reference's, and compute its errors. Return:
 * false if the drift is not known, or if the sets overlap at that drift.
 */
static bool strip_level(struct timely_strip *strip, struct timely_strip_set *sets, u64 newest_ns,
			struct strip_candidate *found)
{
	u64 since_ns = newest_ns - strip->known_ns, variance, unused, far;
	u32 wander = wander_ppb_s(strip);

	if (strip->known_error_ppb == U32_MAX || since_ns > TIMELY_STRIP_AGE_MAX_NS ||
	    !timely_strip_level(sets, &STRIP_ALL_POINTS, &found->line) || found->line.width < 0)
		return false;
	variance = square_ns(timely_strip_half_ns(&found->line) + 1);
	strip_scatter(sets, timely_strip_level, &variance, &unused);
	far = strip_far(sets, &found->line);
	found->drift_q32 = strip->known_drift_q32;
	found->drift_error_ppb = strip->known_error_ppb +
				 div_u64(wander * (since_ns >> 10), STRIP_PPB >> 10);
	found->error_ns = likely_error(variance, &strip->level_variance) + STRIP_GRAIN_NS +
			  strip_excess(strip, &found->line) + bend_ns(wander, far) +
			  div_u64((far >> 10) * min_t(u64, found->drift_error_ppb, U32_MAX),
				  STRIP_PPB >> 10);
	return true;
}

/* Follow the change of the drift, by which it exceeds the errors, and keep the new drift. */
static void strip_know(struct timely_strip *strip, u64 newest_ns,
		       const struct strip_candidate *found)
{
	u64 since_ns = newest_ns - strip->mark_ns, change;
	u32 wander_q4, error = min_t(u64, found->drift_error_ppb, U32_MAX - 1);

	strip->known_ns = newest_ns;
	strip->known_drift_q32 = found->drift_q32;
	strip->known_error_ppb = error;
	if (strip->mark_error_ppb != U32_MAX) {
		if (since_ns < STRIP_WANDER_NS)
			return;
		change = abs(timely_strip_drift_ppb(found->drift_q32 - strip->mark_drift_q32));
		change -= min_t(u64, change, (u64)error + strip->mark_error_ppb);
		wander_q4 = div_u64(min_t(u64, change, STRIP_WANDER_MAX_PPB_S) << 4,
				    clamp_t(u64, div_u64(since_ns, STRIP_PPB), 1, U32_MAX));
		strip->wander_q4 += ((s64)wander_q4 - strip->wander_q4) / 4;
	}
	strip->mark_ns = newest_ns;
	strip->mark_drift_q32 = found->drift_q32;
	strip->mark_error_ppb = error;
}

/* Follow the least width: queues widen the strip, and a path may become longer. The expected width
 * grows by 1 % in 1.4 s.
 */
static void strip_expect(struct timely_strip *strip, s64 half_ns, u64 newest_ns)
{
	u64 since_ns = min(newest_ns - strip->expected_at_ns, TIMELY_STRIP_WINDOW_MAX_NS);
	u64 grown_ns = strip->expected_ns + ((strip->expected_ns * (since_ns >> 10)) >> 27);

	strip->expected_ns = strip->expected_ns ? min_t(u64, half_ns + 1, grown_ns) : half_ns + 1;
	strip->expected_at_ns = newest_ns;
}

/* Continue the last fit, which the reference is, if its error is then less than half of @error_ns.
 * @level is the strip with the known drift. Half of its height exceeds that of the last fit by what
 * its probes have waited: if all of that was in one direction, the offset is at an end of this
 * range. Return: false if the last fit is not more exact, or is too far from the range.
 */
static bool strip_hold(const struct timely_strip *strip, u64 newest_ns,
		       const struct strip_candidate *level, u64 error_ns,
		       struct strip_candidate *found)
{
	s64 waited = timely_strip_half_ns(&level->line) + 1 - (s64)strip->fit.half_width_ns;
	u32 uncertainty = timely_strip_uncertainty_ns(&strip->fit, newest_ns);
	s64 at_ns;

	if (uncertainty == TIMELY_STRIP_UNKNOWN_NS || uncertainty >= error_ns / 2 || waited <= 0)
		return false;
	at_ns = clamp(0LL, level->line.at_ns - waited, level->line.at_ns + waited);
	if (abs(at_ns) > uncertainty)
		return false;
	*found = *level;
	found->line.at_ns = at_ns;
	/* Probes of a free direction touch the line. If none of either direction does, both have
	 * waited, or the offset has moved by up to this distance.
	 */
	found->error_ns = max_t(u64, uncertainty, waited - abs(level->line.at_ns - at_ns));
	return true;
}

/* Choose between the widest strip and the strip with the known drift: the one with the smaller
 * error; or hold the last fit. A drift that is more exact than the known one, or that contradicts
 * it, replaces it.
 */
static const struct strip_candidate *strip_choose(struct timely_strip *strip,
						  struct timely_strip_set *sets, u64 newest_ns,
						  struct strip_candidate *free,
						  struct strip_candidate *level,
						  struct strip_candidate *held)
{
	s64 oldest = min(sets[0].x[sets[0].count - 1], sets[1].x[sets[1].count - 1]);
	u64 apart;

	strip_expect(strip, timely_strip_half_ns(&free->line), newest_ns);
	strip_free(strip, sets, -oldest, free);
	if (!strip_level(strip, sets, newest_ns, level)) {
		strip_know(strip, newest_ns, free);
		return free;
	}
	apart = abs(timely_strip_drift_ppb(free->drift_q32 - level->drift_q32));
	if (free->drift_error_ppb < level->drift_error_ppb ||
	    apart > free->drift_error_ppb + level->drift_error_ppb)
		strip_know(strip, newest_ns, free);
	if (apart > free->drift_error_ppb + level->drift_error_ppb)
		return free;
	if (strip_hold(strip, newest_ns, level, min(free->error_ns, level->error_ns), held))
		return held;
	return level->error_ns < free->error_ns ? level : free;
}

/* Find the widest strip without outliers. Return: the number of outliers, or U32_MAX. */
static u32 strip_without_outliers(const struct timely_strip *strip, struct timely_strip_work *work,
				  const struct timely_strip_fit *reference,
				  struct timely_strip_set *sets,
				  struct timely_strip_line *line)
{
	u32 points = strip->rings[0].count + strip->rings[1].count;
	u32 strays = strip_gather(strip, work, reference, sets), out;

	if (strays > points / STRIP_STRAY_SHARE)
		return U32_MAX;
	out = timely_strip_trim(sets, strip->expected_ns / 2, 1, line);
	if (out == U32_MAX) {
		strip_gather(strip, work, reference, sets);
		points = min(sets[0].count, sets[1].count);
		out = timely_strip_trim(sets, 0, STRIP_OUTLIERS + points / STRIP_OUTLIER_SHARE,
					line);
	}
	return out == U32_MAX ? out : out + strays;
}

/* The line that heights are relative to: the last fit, or a guess, with the known drift. */
static struct timely_strip_fit strip_reference(const struct timely_strip *strip, u64 newest_ns)
{
	struct timely_strip_fit reference = { .at_ns = newest_ns };

	if (strip->fit.uncertainty_ns == TIMELY_STRIP_UNKNOWN_NS)
		reference.offset_ns = strip_guess(&strip->rings[TIMELY_STRIP_FORWARD]);
	else
		reference.offset_ns = timely_strip_offset_ns(&strip->fit, newest_ns);
	if (strip->known_error_ppb != U32_MAX)
		reference.drift_q32 = strip->known_drift_q32;
	return reference;
}

static enum timely_strip_verdict strip_solve(struct timely_strip *strip,
					     struct timely_strip_work *work, u64 now_ns)
{
	struct timely_strip_set sets[TIMELY_STRIP_DIRECTIONS];
	struct strip_candidate free, level, held;
	const struct strip_candidate *best;
	struct timely_strip_fit reference;
	enum timely_strip_verdict verdict;
	u64 newest_ns;
	u32 outliers;

	verdict = strip_range(strip, now_ns, &newest_ns);
	if (verdict != TIMELY_STRIP_GOOD)
		return verdict;
	reference = strip_reference(strip, newest_ns);
	outliers = strip_without_outliers(strip, work, &reference, sets, &free.line);
	if (outliers == U32_MAX)
		return strip_overlap(strip, newest_ns);
	free.drift_q32 = reference.drift_q32 + line_slope_q32(&free.line);
	if (abs(free.drift_q32) > TIMELY_STRIP_DRIFT_MAX_Q32)
		return strip_overlap(strip, newest_ns);
	best = strip_choose(strip, sets, newest_ns, &free, &level, &held);
	strip->fit = (struct timely_strip_fit) {
		.at_ns = newest_ns,
		.offset_ns = (s64)((u64)reference.offset_ns + (u64)best->line.at_ns),
		.drift_q32 = best->drift_q32,
		.half_width_ns = best == &held ? strip->fit.half_width_ns :
				 timely_strip_half_ns(&best->line) + 1,
		.uncertainty_ns = min_t(u64, best->error_ns, TIMELY_STRIP_UNKNOWN_NS - 1),
		.drift_error_ppb = min_t(u64, best->drift_error_ppb, U32_MAX),
		.wander_ppb_s = wander_ppb_s(strip),
		.points = { sets[0].count, sets[1].count },
		.outliers = outliers,
	};
	return TIMELY_STRIP_GOOD;
}

/**
 * timely_strip_solve() - fit the offset and the drift to the points of the window
 * @strip: the state of the peer; @strip->fit is replaced if the verdict is TIMELY_STRIP_GOOD, and
 *	unknown if the verdict is TIMELY_STRIP_OVERLAP
 * @work: working memory
 * @now_ns: current time by the own clock, ns; points older than the window are dropped
 *
 * Takes time proportional to the number of points: their hulls are computed nine times, and three
 * or four more times for each outlier; and the height of the strip once or twice, or up to 42
 * times if the points leave the drift open.
 *
 * Return: the verdict, which is also counted in @strip->counts.
 */
enum timely_strip_verdict timely_strip_solve(struct timely_strip *strip,
					     struct timely_strip_work *work, u64 now_ns)
{
	enum timely_strip_verdict verdict = strip_solve(strip, work, now_ns);

	strip->counts[verdict]++;
	return verdict;
}

/**
 * timely_strip_growth_ns() - get the uncertainty of an offset at another time
 * @uncertainty_ns: uncertainty at the reference point, ns; TIMELY_STRIP_UNKNOWN_NS: not known
 * @drift_error_ppb: error of the drift, ppb
 * @wander_ppb_s: change of the drift per second to be expected, ppb/s
 * @age_ns: time since the reference point, ns; before it, if negative
 *
 * The uncertainty grows with the time since the last measurement, as in Sundial (OSDI'20): by the
 * error of the drift, and by its change.
 *
 * Return: the uncertainty, ns; TIMELY_STRIP_UNKNOWN_NS if it is not known, larger than that, or if
 * @age_ns is more than 9 minutes.
 */
u32 timely_strip_growth_ns(u32 uncertainty_ns, u32 drift_error_ppb, u32 wander_ppb_s, s64 age_ns)
{
	u64 age = age_ns < 0 ? -(u64)age_ns : (u64)age_ns, error;

	if (uncertainty_ns == TIMELY_STRIP_UNKNOWN_NS || age > TIMELY_STRIP_AGE_MAX_NS)
		return TIMELY_STRIP_UNKNOWN_NS;
	error = uncertainty_ns + bend_ns(min(wander_ppb_s, STRIP_WANDER_MAX_PPB_S), age) +
		div_u64((age >> 10) * drift_error_ppb, STRIP_PPB >> 10);
	return min_t(u64, error, TIMELY_STRIP_UNKNOWN_NS);
}

/**
 * timely_strip_uncertainty_ns() - get the uncertainty of the offset at a time
 * @fit: the fit
 * @now_ns: time by the own clock, ns
 *
 * Return: error of timely_strip_offset_ns() that 99.9 % of readings do not exceed, ns;
 * TIMELY_STRIP_UNKNOWN_NS if there is no fit, or if it is more than 9 minutes old or too uncertain.
 */
u32 timely_strip_uncertainty_ns(const struct timely_strip_fit *fit, u64 now_ns)
{
	return timely_strip_growth_ns(fit->uncertainty_ns, fit->drift_error_ppb,
				      fit->wander_ppb_s, (s64)(now_ns - fit->at_ns));
}
