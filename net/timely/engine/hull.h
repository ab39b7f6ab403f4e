/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lower convex hull of points, for straight lines below or between sets of points: clock_fit.c
 * and strip.c.
 */
#ifndef _TIMELY_ENGINE_HULL_H
#define _TIMELY_ENGINE_HULL_H

#include <linux/types.h>

/* Points are at most 17 s apart and have heights of at most 134 ms, so that the products of
 * differences, below 2^34 * 2^28, fit in 64 bits.
 */
#define TIMELY_HULL_X_NS	(1LL << 34)
#define TIMELY_HULL_Y_NS	(1LL << 27)

/**
 * timely_hull_above() - check whether a point is on or above the line through two other points
 * @x: times of all points, ns; differences of at most TIMELY_HULL_X_NS
 * @y: heights of all points, ns, from -TIMELY_HULL_Y_NS to TIMELY_HULL_Y_NS
 * @a: index of the newest of the three points
 * @b: index of the point to check, not newer than @a
 * @c: index of the oldest of the three points, not newer than @b
 *
 * Return: true if point @b is on or above the line, so not on the lower hull.
 */
static inline bool timely_hull_above(const s64 *x, const s64 *y, u32 a, u32 b, u32 c)
{
	return (y[b] - y[a]) * (x[a] - x[c]) >= (y[c] - y[a]) * (x[a] - x[b]);
}

/**
 * timely_hull_add() - add a point to a lower convex hull
 * @x: times of all points, ns; differences of at most TIMELY_HULL_X_NS
 * @y: heights of all points, ns, from -TIMELY_HULL_Y_NS to TIMELY_HULL_Y_NS
 * @hull: indices of the points on the hull, newest first; has room for all points
 * @count: number of points on the hull so far
 * @i: index of the point to add, which is not newer than any point before
 *
 * Return: the number of points on the hull.
 */
static inline u32 timely_hull_add(const s64 *x, const s64 *y, u16 *hull, u32 count, u32 i)
{
	while (count >= 2 && timely_hull_above(x, y, hull[count - 2], hull[count - 1], i))
		count--;
	hull[count++] = i;
	return count;
}

#endif /* _TIMELY_ENGINE_HULL_H */
