/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between strip.c and strip_fit.c: straight lines between upper and lower bounds.
 * Private to the strip engine; strip.c explains the method.
 */
#ifndef _TIMELY_ENGINE_STRIP_FIT_H
#define _TIMELY_ENGINE_STRIP_FIT_H

#include <linux/limits.h>
#include <linux/types.h>

#include "hull.h"
#include "strip.h"

/* Largest height of a point above the reference, ns. Half of what hull.h allows, because the sum
 * of the heights of two points must stay in its limits.
 */
#define STRIP_HEIGHT_NS		(TIMELY_HULL_Y_NS / 2 - 1)
/* Number of parts that points are dealt out to. */
#define STRIP_PARTS		8

/**
 * struct timely_strip_set - the points of one direction in the working memory
 * @x: times, newest first and all different, ns relative to the newest point of both directions;
 *	differences of at most TIMELY_HULL_X_NS
 * @y: heights above the reference, ns, at most STRIP_HEIGHT_NS up or down; lower bounds are negated
 * @hull: indices of the points on the lower hull
 * @count: number of points
 * @hulls: number of points on the hull
 */
struct timely_strip_set {
	s64 *x;
	s64 *y;
	u16 *hull;
	u32 count;
	u32 hulls;
};

/**
 * struct timely_strip_deal - which points are left out
 * @part: number of the part that is left out: every STRIP_PARTS-th point from this one on;
 *	STRIP_PARTS: none
 * @skip: index of a point that is left out in @direction; U32_MAX: none
 * @direction: direction of @skip
 */
struct timely_strip_deal {
	u32 part;
	u32 skip;
	u32 direction;
};

#define STRIP_ALL_POINTS	((struct timely_strip_deal) { STRIP_PARTS, U32_MAX, 0 })

/**
 * struct timely_strip_line - a strip
 * @dy: slope of the strip: rise, ns
 * @dx: slope of the strip: time of the rise, above 0, ns
 * @width: height of the strip times @dx; negative if the sets overlap
 * @at_ns: height of the middle of the strip at the newest point, ns above the reference
 * @support: indices of the points on the borders
 * @ends: number of points in @support by direction, 1 or 2
 */
struct timely_strip_line {
	s64 dy;
	s64 dx;
	s64 width;
	s64 at_ns;
	u32 support[TIMELY_STRIP_DIRECTIONS][2];
	u32 ends[TIMELY_STRIP_DIRECTIONS];
};

bool timely_strip_widest(struct timely_strip_set *sets, const struct timely_strip_deal *deal,
			 struct timely_strip_line *line);
bool timely_strip_level(struct timely_strip_set *sets, const struct timely_strip_deal *deal,
			struct timely_strip_line *line);
u32 timely_strip_trim(struct timely_strip_set *sets, s64 least_ns, u32 most,
		      struct timely_strip_line *line);
s64 timely_strip_half_ns(const struct timely_strip_line *line);

#endif /* _TIMELY_ENGINE_STRIP_FIT_H */
