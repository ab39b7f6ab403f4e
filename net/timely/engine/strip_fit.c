// SPDX-License-Identifier: GPL-2.0
/*
 * Finds straight lines between upper and lower bounds of an offset: the widest strip, the strip
 * with a known slope, and points that contradict the others. strip.c explains the method.
 */

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "strip_fit.h"

/* Whether a point counts. */
static bool deals(const struct timely_strip_deal *deal, u32 direction, u32 i)
{
	return i % STRIP_PARTS != deal->part && (i != deal->skip || direction != deal->direction);
}

/* Compute the lower hulls of the points that count. */
static void strip_hulls(struct timely_strip_set *sets, const struct timely_strip_deal *deal)
{
	u32 direction, i;

	for (direction = 0; direction < TIMELY_STRIP_DIRECTIONS; direction++) {
		struct timely_strip_set *set = &sets[direction];

		set->hulls = 0;
		for (i = 0; i < set->count; i++)
			if (deals(deal, direction, i))
				set->hulls = timely_hull_add(set->x, set->y, set->hull,
							     set->hulls, i);
	}
}

/* Point @i of the hull. */
static s64 hull_x(const struct timely_strip_set *set, u32 i)
{
	return set->x[set->hull[i]];
}

static s64 hull_y(const struct timely_strip_set *set, u32 i)
{
	return set->y[set->hull[i]];
}

/* Compute width and middle of a strip whose slope and support are known. */
static void line_finish(const struct timely_strip_set *up, const struct timely_strip_set *down,
			struct timely_strip_line *line)
{
	u32 u = line->support[TIMELY_STRIP_FORWARD][0], d = line->support[TIMELY_STRIP_BACKWARD][0];
	s64 at;

	line->width = (up->y[u] + down->y[d]) * line->dx - line->dy * (up->x[u] - down->x[d]);
	at = up->y[u] - down->y[d] - div64_s64(line->dy * (up->x[u] + down->x[d]), line->dx);
	line->at_ns = at >> 1;
}

/**
 * timely_strip_widest() - find the widest strip
 * @sets: the points by direction; their hulls are computed
 * @deal: which points are left out
 * @line: set to the widest strip
 *
 * The slope falls from one edge of the hulls to the next, until the touching points pass each
 * other.
 *
 * Return: false if the two directions do not overlap in time, so that the strip could be turned
 * without limit.
 */
bool timely_strip_widest(struct timely_strip_set *sets, const struct timely_strip_deal *deal,
			 struct timely_strip_line *line)
{
	struct timely_strip_set *up = &sets[TIMELY_STRIP_FORWARD];
	struct timely_strip_set *down = &sets[TIMELY_STRIP_BACKWARD];
	u32 u = 0, d, from_u, from_d;

	strip_hulls(sets, deal);
	if (!up->hulls || !down->hulls)
		return false;
	d = down->hulls - 1;
	if (hull_x(up, u) <= hull_x(down, d))
		return false;
	do {
		s64 up_y = 0, up_x = 0, down_y = 0, down_x = 0;

		if (u + 1 < up->hulls) {
			up_y = hull_y(up, u) - hull_y(up, u + 1);
			up_x = hull_x(up, u) - hull_x(up, u + 1);
		}
		if (d) {
			down_y = hull_y(down, d) - hull_y(down, d - 1);
			down_x = hull_x(down, d - 1) - hull_x(down, d);
		}
		if (!up_x && !down_x)
			return false;
		from_u = u;
		from_d = d;
		if (!down_x || (up_x && up_y * down_x >= down_y * up_x)) {
			line->dy = up_y;
			line->dx = up_x;
			u++;
		} else {
			line->dy = down_y;
			line->dx = down_x;
			d--;
		}
	} while (hull_x(up, u) > hull_x(down, d));
	line->support[TIMELY_STRIP_FORWARD][0] = up->hull[u];
	line->support[TIMELY_STRIP_FORWARD][1] = up->hull[from_u];
	line->ends[TIMELY_STRIP_FORWARD] = 1 + (u != from_u);
	line->support[TIMELY_STRIP_BACKWARD][0] = down->hull[d];
	line->support[TIMELY_STRIP_BACKWARD][1] = down->hull[from_d];
	line->ends[TIMELY_STRIP_BACKWARD] = 1 + (d != from_d);
	line_finish(up, down, line);
	return true;
}

/**
 * timely_strip_level() - find the strip with the slope of the reference
 * @sets: the points by direction
 * @deal: which points are left out
 * @line: set to the strip
 *
 * Return: false if a direction has no points.
 */
bool timely_strip_level(struct timely_strip_set *sets, const struct timely_strip_deal *deal,
			struct timely_strip_line *line)
{
	u32 direction, i, lowest[TIMELY_STRIP_DIRECTIONS];

	for (direction = 0; direction < TIMELY_STRIP_DIRECTIONS; direction++) {
		struct timely_strip_set *set = &sets[direction];

		lowest[direction] = U32_MAX;
		for (i = 0; i < set->count; i++) {
			if (!deals(deal, direction, i))
				continue;
			if (lowest[direction] == U32_MAX || set->y[i] < set->y[lowest[direction]])
				lowest[direction] = i;
		}
		if (lowest[direction] == U32_MAX)
			return false;
		line->support[direction][0] = lowest[direction];
		line->ends[direction] = 1;
	}
	line->dy = 0;
	line->dx = 1;
	line_finish(&sets[TIMELY_STRIP_FORWARD], &sets[TIMELY_STRIP_BACKWARD], line);
	return true;
}

/**
 * timely_strip_half_ns() - get half of the height of a strip
 * @line: the strip
 *
 * Return: half of the height, ns, rounded down; negative if the sets overlap.
 */
s64 timely_strip_half_ns(const struct timely_strip_line *line)
{
	return div64_s64(line->width, 2 * line->dx) - (line->width < 0);
}

/* ---- outliers ---- */

static void set_remove(struct timely_strip_set *set, u32 i)
{
	set->count--;
	memmove(&set->x[i], &set->x[i + 1], (set->count - i) * sizeof(*set->x));
	memmove(&set->y[i], &set->y[i + 1], (set->count - i) * sizeof(*set->y));
}

/* Leave out the point of the support whose removal widens the strip most. Return: false if none
 * can be left out.
 */
static bool strip_leave_out(struct timely_strip_set *sets, struct timely_strip_line *line)
{
	struct timely_strip_deal deal = STRIP_ALL_POINTS, best = STRIP_ALL_POINTS;
	struct timely_strip_line without, widest;
	u32 i;

	for (deal.direction = 0; deal.direction < TIMELY_STRIP_DIRECTIONS; deal.direction++) {
		if (sets[deal.direction].count <= TIMELY_STRIP_POINTS_MIN)
			continue;
		for (i = 0; i < line->ends[deal.direction]; i++) {
			deal.skip = line->support[deal.direction][i];
			if (!timely_strip_widest(sets, &deal, &without))
				continue;
			if (best.skip != U32_MAX &&
			    timely_strip_half_ns(&without) <= timely_strip_half_ns(&widest))
				continue;
			best = deal;
			widest = without;
		}
	}
	if (best.skip == U32_MAX)
		return false;
	set_remove(&sets[best.direction], best.skip);
	return timely_strip_widest(sets, &STRIP_ALL_POINTS, line);
}

/**
 * timely_strip_trim() - find the widest strip, and leave out points until it is wide enough
 * @sets: the points by direction; those that are left out are removed
 * @least_ns: least half of the strip's height, ns
 * @most: number of points that may be left out
 * @line: set to the strip
 *
 * Return: the number of points that were left out; U32_MAX if there is no such strip.
 */
u32 timely_strip_trim(struct timely_strip_set *sets, s64 least_ns, u32 most,
		      struct timely_strip_line *line)
{
	u32 out;

	if (!timely_strip_widest(sets, &STRIP_ALL_POINTS, line))
		return U32_MAX;
	for (out = 0; timely_strip_half_ns(line) < least_ns; out++)
		if (out == most || !strip_leave_out(sets, line))
			return U32_MAX;
	return out;
}
