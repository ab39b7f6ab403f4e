// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of the widest strip, then random points, whose strip is compared with all
 * lines through two points, random pairs of clocks with queues, asymmetric loads, lost probes,
 * outliers and steps, and hostile points. Built with ASan and UBSan.
 *
 *   strip_fuzz [ROUNDS [SEED]]
 *
 * Each round is a set of random points and a pair of clocks. Prints TAP. Built with
 * -DTIMELY_LIBFUZZER, the random numbers are the fuzzer's input.
 */
#include <math.h>

#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <timely/engine/strip_fit.h>

#define POINTS		256
#define WINDOW_NS	2000000000ULL
/* Errors are counted in blocks of this many readings. Not more than one of 100 may be outside of an
 * uncertainty that 99.9 % do not exceed: readings of one window are not independent.
 */
#define BLOCK		500

enum promise { WIDEST, OUTSIDE, TIGHT, COVERED, STEPPED, ORDERED, LIMITS, PROMISES };

static const char * const promises[PROMISES] = {
	[WIDEST] = "no strip between the points is wider",
	[OUTSIDE] = "no point is inside the strip, and the border has three points",
	[TIGHT] = "without queues the error is at most 2 ns",
	[COVERED] = "errors are within the uncertainty",
	[STEPPED] = "a step is noticed in two windows, and the uncertainty holds afterwards",
	[ORDERED] = "points are in the order of time, and not more than the ring holds",
	[LIMITS] = "drift and uncertainty are within their limits",
};

#define FUZZ_ROUND	"points and a pair of clocks"
#include "fuzz.h"

static struct timely_strip_work work;

static struct {
	struct timely_strip strip;
	struct timely_strip_point points[2 * POINTS];
	u64 now_ns;
	s64 far_ns;		/* the offset is this and @offset */
	double offset;
	double drift;		/* ns per ns */
	double wander;		/* change of the drift per window, ns per ns */
	u32 queue_ns;
	u32 busy[2];		/* percentage of probes that wait, by direction */
	u32 noise_ns;
} net;

static u64 readings, beyond;

static u64 any(void)
{
	return (roll() << 32 ^ roll()) >> below(64);
}

static s64 wide(void)
{
	return (s64)((roll() << 16 ^ roll()) >> 1);
}

/* ---- the widest strip of random points ---- */

/* Height of the strip of slope @b, ns. */
static long double height(const struct timely_strip_set *sets, long double b)
{
	long double low[2] = { INFINITY, INFINITY };

	for (u32 d = 0; d < 2; d++)
		for (u32 i = 0; i < sets[d].count; i++)
			low[d] = fminl(low[d], sets[d].y[i] - (d ? -b : b) * sets[d].x[i]);
	return low[0] + low[1];
}

/* Height of the widest strip: of all slopes through two points of a direction. */
static long double brute(const struct timely_strip_set *sets)
{
	long double best = -INFINITY;

	for (u32 d = 0; d < 2; d++)
		for (u32 i = 0; i < sets[d].count; i++)
			for (u32 j = i + 1; j < sets[d].count; j++) {
				long double b = (long double)(sets[d].y[i] - sets[d].y[j]) /
						(sets[d].x[i] - sets[d].x[j]);

				best = fmaxl(best, height(sets, d ? -b : b));
			}
	return best;
}

/* Draw the points of a direction, newest first. */
static void draw(struct timely_strip_set *set, u32 direction, u32 x_bits, u32 y_bits)
{
	s64 step = max((1LL << x_bits) / 16, 2LL), x = -(s64)below(step);
	u32 count = 1 + below(14);

	*set = (struct timely_strip_set) {
		.x = work.x[direction], .y = work.y[direction], .hull = work.hull[direction],
	};
	while (set->count < count) {
		set->x[set->count] = x;
		set->y[set->count++] = wide() % (1LL << y_bits);
		x -= 1 + wide() % (step - 1);
		if (below(2))
			set->y[set->count - 1] = -set->y[set->count - 1];
	}
}

static void random_points(void)
{
	long double b, slack, width;
	struct timely_strip_set sets[2];
	struct timely_strip_line line;
	struct timely_strip_deal all = STRIP_ALL_POINTS;
	u32 x_bits = 5 + below(30), y_bits = 1 + below(26), d, i, on = 0;

	draw(&sets[0], 0, x_bits, y_bits);
	draw(&sets[1], 1, x_bits, y_bits);
	if (!timely_strip_widest(sets, &all, &line)) {
		/* Then one direction is before the other. */
		promise(WIDEST, sets[0].x[0] <= sets[1].x[sets[1].count - 1] ||
			sets[1].x[0] <= sets[0].x[sets[0].count - 1]);
		return;
	}
	b = (long double)line.dy / line.dx;
	width = (long double)line.width / line.dx;
	slack = (1 << y_bits) / 1e9L + 1 / 1e6L;
	promise(WIDEST, fabsl(width - brute(sets)) <= slack &&
		fabsl(width - height(sets, b)) <= slack);
	for (d = 0; d < 2; d++)
		for (i = 0; i < sets[d].count; i++) {
			long double y = sets[d].y[i] - (d ? -b : b) * sets[d].x[i];
			long double middle = d ? -(long double)line.at_ns : line.at_ns;

			on += fabsl(y - middle - width / 2) <= slack + 1;
			promise(OUTSIDE, y - middle >= width / 2 - slack - 1);
		}
	promise(OUTSIDE, on >= 3 && line.ends[0] + line.ends[1] == 3);
}

/* ---- pairs of clocks ---- */

static s64 offset_now(void)
{
	return (s64)((u64)net.far_ns + (u64)(s64)floor(net.offset));
}

static void net_start(void)
{
	memset(&net, 0, sizeof(net));
	timely_strip_init(&net.strip, net.points, POINTS, WINDOW_NS);
	net.now_ns = roll() << 20;
	net.far_ns = (s64)any();
	net.drift = ((s32)below(200001) - 100000) / 1e9;
	net.queue_ns = 1000 + below(300000);
	net.busy[0] = below(90);
	net.busy[1] = below(90);
	net.noise_ns = below(20);
	net.wander = ((s32)below(21) - 10) / 1e9;
}

static s64 delay(u32 direction)
{
	return 5000 + below(net.noise_ns + 1) +
	       (below(100) < net.busy[direction] ? below(net.queue_ns) : 0);
}

/* Probes of both directions for a time. One of 16 is lost. */
static void net_run(u64 ns)
{
	u64 end_ns = net.now_ns + ns;

	while ((s64)(net.now_ns - end_ns) < 0) {
		u64 step = 1000000 + below(9000000);
		u32 d = below(2);

		net.now_ns += step;
		net.offset += step * net.drift;
		net.drift += net.wander * step / WINDOW_NS;
		if (!below(16))
			continue;
		timely_strip_add(&net.strip, d, &(struct timely_strip_point){
			.at_ns = net.now_ns,
			.offset_ns = (s64)((u64)offset_now() + (u64)(d ? -delay(d) : delay(d))),
		});
	}
}

/* Compare the fit with the truth. Return: whether the error is within the uncertainty. */
static bool net_read(void)
{
	const struct timely_strip_fit *fit = &net.strip.fit;
	u32 uncertainty = timely_strip_uncertainty_ns(fit, net.now_ns);
	s64 error = (s64)((u64)timely_strip_offset_ns(fit, net.now_ns) - (u64)offset_now());

	promise(LIMITS, abs(fit->drift_q32) <= TIMELY_STRIP_DRIFT_MAX_Q32 &&
		uncertainty >= fit->uncertainty_ns);
	if (!net.busy[0] && !net.busy[1] && !net.noise_ns)
		promise(TIGHT, abs(error) <= 2 + 4);
	return abs(error) <= uncertainty + 1;
}

static void count_reading(bool within)
{
	readings++;
	beyond += !within;
	if (readings < BLOCK)
		return;
	promise(COVERED, beyond * 100 <= readings);
	readings = 0;
	beyond = 0;
}

static void clocks(void)
{
	bool known = false;
	u32 i;

	net_start();
	if (!below(8)) {
		net.busy[0] = 0;
		net.busy[1] = 0;
		net.noise_ns = 0;
		net.wander = 0;
	}
	net_run(WINDOW_NS);
	for (i = 0; i < 8; i++) {
		net_run(WINDOW_NS / 4);
		known = timely_strip_solve(&net.strip, &work, net.now_ns) == TIMELY_STRIP_GOOD;
		if (known)
			count_reading(net_read());
	}
	if (!known || below(2))
		return;
	/* A step that is longer than the queues. */
	net.offset += (below(2) ? 1 : -1) * (1000000.0 + below(1000000000));
	for (i = 0; i < 8; i++) {
		net_run(WINDOW_NS / 4);
		timely_strip_solve(&net.strip, &work, net.now_ns);
	}
	promise(STEPPED, net.strip.counts[TIMELY_STRIP_OVERLAP] &&
		abs((s64)((u64)timely_strip_offset_ns(&net.strip.fit, net.now_ns) -
		(u64)offset_now())) <= 4LL * net.queue_ns);
}

/* ---- hostile points ---- */

static void check_ring(const struct timely_strip_ring *ring)
{
	bool ordered = ring->count <= ring->size;
	u32 i;

	for (i = 1; i < ring->count; i++)
		ordered &= (s64)(ring->points[(ring->first + i) % ring->size].at_ns -
				 ring->points[(ring->first + i - 1) % ring->size].at_ns) > 0;
	promise(ORDERED, ordered);
}

static void hostile(void)
{
	u32 size = TIMELY_STRIP_POINTS_MIN + below(POINTS - TIMELY_STRIP_POINTS_MIN), i, kind;
	u64 window = TIMELY_STRIP_WINDOW_MIN_NS +
		     (any() & (TIMELY_STRIP_WINDOW_MAX_NS / 2 - 1)), at = any();

	net_start();
	timely_strip_init(&net.strip, net.points, size, window);
	kind = below(16);
	for (i = 0; i < 300; i++) {
		u64 offset = kind & 1 ? any() : (u64)net.far_ns + (any() >> 36);

		at = kind & 2 && !below(16) ? any() : at + (any() >> (kind & 4 ? 20 : 36));
		timely_strip_add(&net.strip, below(2), &(struct timely_strip_point){
			at, kind & 8 ? (s64)(offset - below(2) * 100000000) : (s64)offset });
		if (below(32))
			continue;
		timely_strip_solve(&net.strip, &work, below(8) ? at : any());
		promise(LIMITS, abs(net.strip.fit.drift_q32) <= TIMELY_STRIP_DRIFT_MAX_Q32);
		timely_strip_uncertainty_ns(&net.strip.fit, any());
		timely_strip_offset_ns(&net.strip.fit, any());
	}
	check_ring(&net.strip.rings[0]);
	check_ring(&net.strip.rings[1]);
}

static void fuzz_input(void)
{
	random_points();
	hostile();
}

static void fuzz_round(void)
{
	for (u32 i = 0; i < 8; i++)
		random_points();
	clocks();
	hostile();
}
