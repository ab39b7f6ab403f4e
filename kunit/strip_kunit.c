// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the widest strip (strip.c): a pair of clocks with a known offset and drift, and probes
 * in both directions with random delays. kunit/user/strip_fuzz.c compares the strip with all lines
 * through two points. Cases are named function__case.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/time64.h>

#include <timely/engine/strip.h>

#define US		1000LL
#define MS		1000000LL
#define POINTS		256
#define WINDOW_NS	(2ULL * NSEC_PER_SEC)
#define BASE_NS		(5 * US)

/**
 * struct bed - two clocks, and the path between their hosts
 * @strip: the engine
 * @points: memory of @strip
 * @work: working memory
 * @now_ns: the own clock
 * @offset_ns: the peer's clock minus the own one
 * @drift_ppb: change of @offset_ns, ns per second
 * @there_ns: minimum forward delay
 * @back_ns: minimum backward delay
 * @queue_ns: three of four probes wait for up to this time
 * @every_ns: time from one probe to the next, of both directions
 * @rest: part of @offset_ns below 1 ns
 * @dice: state of the random numbers
 */
struct bed {
	struct timely_strip strip;
	struct timely_strip_point points[2 * POINTS];
	struct timely_strip_work work;
	u64 now_ns;
	s64 offset_ns;
	s64 drift_ppb;
	s64 there_ns;
	s64 back_ns;
	u32 queue_ns;
	u64 every_ns;
	s64 rest;
	u32 dice;
};

static struct bed *make_bed(struct kunit *test)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	KUNIT_ASSERT_EQ(test, timely_strip_init(&bed->strip, bed->points, POINTS, WINDOW_NS), 0);
	bed->now_ns = 1000ULL * NSEC_PER_SEC;
	bed->offset_ns = -123456789012345LL;
	bed->drift_ppb = 30000;
	bed->there_ns = BASE_NS;
	bed->back_ns = BASE_NS;
	bed->queue_ns = 50 * US;
	bed->every_ns = 10 * MS;
	bed->dice = 1;
	return bed;
}

static u32 below(struct bed *bed, u32 n)
{
	bed->dice = bed->dice * 1664525 + 1013904223;
	return n ? (bed->dice >> 8) % n : 0;
}

/* Add a point whose probe has the minimum delay and @late_ns more. */
static bool point(struct bed *bed, enum timely_strip_direction direction, s64 late_ns)
{
	s64 delay = direction == TIMELY_STRIP_FORWARD ? bed->there_ns + late_ns :
							-bed->back_ns - late_ns;

	return timely_strip_add(&bed->strip, direction, &(struct timely_strip_point){
		.at_ns = bed->now_ns, .offset_ns = (s64)((u64)bed->offset_ns + (u64)delay),
	});
}

static s64 late(struct bed *bed)
{
	return below(bed, 4) ? below(bed, bed->queue_ns) : 0;
}

/* Let time pass. */
static void pass(struct bed *bed, u64 ns)
{
	s64 gain = (s64)ns * bed->drift_ppb + bed->rest, whole = div_s64(gain, NSEC_PER_SEC);

	bed->now_ns += ns;
	bed->offset_ns = (s64)((u64)bed->offset_ns + (u64)whole);
	bed->rest = gain - whole * NSEC_PER_SEC;
}

static void probe_for(struct bed *bed, u64 ns)
{
	u64 end_ns = bed->now_ns + ns;

	while ((s64)(bed->now_ns - end_ns) < 0) {
		pass(bed, bed->every_ns / 2);
		point(bed, TIMELY_STRIP_FORWARD, late(bed));
		pass(bed, bed->every_ns - bed->every_ns / 2);
		point(bed, TIMELY_STRIP_BACKWARD, late(bed));
	}
}

static enum timely_strip_verdict solve(struct bed *bed)
{
	return timely_strip_solve(&bed->strip, &bed->work, bed->now_ns);
}

static s64 error_ns(const struct bed *bed)
{
	return (s64)((u64)timely_strip_offset_ns(&bed->strip.fit, bed->now_ns) -
		     (u64)bed->offset_ns);
}

static void init__refuses_wrong_sizes(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	struct timely_strip *strip = &bed->strip;

	KUNIT_EXPECT_EQ(test, timely_strip_init(strip, bed->points, TIMELY_STRIP_POINTS_MIN - 1,
						WINDOW_NS), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_strip_init(strip, bed->points, TIMELY_STRIP_POINTS_MAX + 1,
						WINDOW_NS), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_strip_init(strip, bed->points, POINTS,
						TIMELY_STRIP_WINDOW_MIN_NS - 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_strip_init(strip, bed->points, POINTS,
						TIMELY_STRIP_WINDOW_MAX_NS + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_strip_init(strip, bed->points, POINTS,
						TIMELY_STRIP_WINDOW_MAX_NS), 0);
}

static void add__keeps_the_order_of_time(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	struct timely_strip_ring *ring = &bed->strip.rings[TIMELY_STRIP_FORWARD];
	struct timely_strip_point p = {};
	u32 i;

	for (i = 0; i < 60; i++) {
		p.at_ns = 1000 + (i * 7) % 60;
		KUNIT_EXPECT_TRUE(test, timely_strip_add(&bed->strip, TIMELY_STRIP_FORWARD, &p));
	}
	KUNIT_EXPECT_EQ(test, ring->count, 60);
	for (i = 0; i < ring->count; i++)
		KUNIT_EXPECT_EQ(test, ring->points[ring->first + i].at_ns, 1000 + i);
	p.at_ns = 1000 + 100;
	for (i = 0; i < 64; i++, p.at_ns++)
		timely_strip_add(&bed->strip, TIMELY_STRIP_FORWARD, &p);
	p.at_ns = 1099;
	KUNIT_EXPECT_TRUE(test, timely_strip_add(&bed->strip, TIMELY_STRIP_FORWARD, &p));
	p.at_ns = 1098;
	KUNIT_EXPECT_FALSE(test, timely_strip_add(&bed->strip, TIMELY_STRIP_FORWARD, &p));
	KUNIT_EXPECT_EQ(test, bed->strip.late, 1);
}

static void add__keeps_the_tighter_bound(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	const struct timely_strip_ring *rings = bed->strip.rings;
	u32 i;

	for (i = 0; i < TIMELY_STRIP_DIRECTIONS; i++) {
		point(bed, i, 500);
		point(bed, i, 200);
		point(bed, i, 900);
		KUNIT_EXPECT_EQ(test, rings[i].count, 1);
	}
	KUNIT_EXPECT_EQ(test, rings[0].points->offset_ns - bed->offset_ns, BASE_NS + 200);
	KUNIT_EXPECT_EQ(test, rings[1].points->offset_ns - bed->offset_ns, -BASE_NS - 200);
}

static void add__full_ring_drops_the_oldest(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	struct timely_strip_ring *ring = &bed->strip.rings[TIMELY_STRIP_BACKWARD];
	u64 first_ns = bed->now_ns;
	u32 i;

	for (i = 0; i < POINTS + 10; i++, bed->now_ns++)
		KUNIT_EXPECT_TRUE(test, point(bed, TIMELY_STRIP_BACKWARD, 0));
	KUNIT_EXPECT_EQ(test, ring->count, POINTS);
	KUNIT_EXPECT_EQ(test, ring->points[ring->first].at_ns, first_ns + 10);
	KUNIT_EXPECT_EQ(test, bed->strip.full, 10);
}

static void add__own_clock_set_back(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	bed->now_ns -= 3600ULL * NSEC_PER_SEC;
	bed->offset_ns += 3600LL * NSEC_PER_SEC;
	KUNIT_EXPECT_TRUE(test, point(bed, TIMELY_STRIP_FORWARD, 0));
	KUNIT_EXPECT_EQ(test, bed->strip.rings[0].count, 1);
	KUNIT_EXPECT_EQ(test, bed->strip.rings[1].count, 0);
	KUNIT_EXPECT_EQ(test, timely_strip_uncertainty_ns(&bed->strip.fit, bed->now_ns),
			TIMELY_STRIP_UNKNOWN_NS);
	probe_for(bed, WINDOW_NS);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_LE(test, abs(error_ns(bed)), 2);
}

static void solve__needs_points_and_time(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_FEW);
	bed->every_ns = MS;
	probe_for(bed, 7 * MS);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_FEW);
	probe_for(bed, MS);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_SHORT);
	probe_for(bed, 91 * MS);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_SHORT);
	probe_for(bed, 3 * MS);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_EQ(test, bed->strip.counts[TIMELY_STRIP_SHORT], 2);
	KUNIT_EXPECT_EQ(test, bed->strip.counts[TIMELY_STRIP_FEW], 2);
	/* Old points do not count. */
	pass(bed, WINDOW_NS);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_FEW);
}

static void solve__directions_apart_in_time(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	for (i = 0; i < 400; i++) {
		pass(bed, 4 * MS);
		point(bed, i < 200 ? TIMELY_STRIP_FORWARD : TIMELY_STRIP_BACKWARD, 0);
	}
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_SHORT);
}

static void solve__offset_and_drift(struct kunit *test)
{
	static const s64 drifts[] = { 0, 1, -1, 77, -30000, 500000, -1000000, 1900000 };
	static const s64 offsets[] = { 0, -1, 1LL << 62, S64_MAX, S64_MIN + 5000 };
	struct bed *bed = make_bed(test);
	struct timely_strip_fit *fit = &bed->strip.fit;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(drifts); i++) {
		timely_strip_forget(&bed->strip);
		bed->drift_ppb = drifts[i];
		bed->offset_ns = offsets[i % ARRAY_SIZE(offsets)];
		probe_for(bed, WINDOW_NS);
		KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
		KUNIT_EXPECT_LE(test, abs(error_ns(bed)), 2);
		KUNIT_EXPECT_LE(test, abs(timely_strip_drift_ppb(fit->drift_q32) - drifts[i]), 3);
		KUNIT_EXPECT_LE(test, abs((s64)fit->half_width_ns - BASE_NS), 3);
		KUNIT_EXPECT_LE(test, fit->uncertainty_ns, 100);
		KUNIT_EXPECT_GE(test, fit->uncertainty_ns, abs(error_ns(bed)));
		KUNIT_EXPECT_EQ(test, fit->outliers, 0);
		KUNIT_EXPECT_EQ(test, fit->points[0], 200);
	}
}

static void solve__too_steep(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	bed->drift_ppb = 2000000;
	probe_for(bed, WINDOW_NS);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_OVERLAP);
}

static void solve__asymmetric_path(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	bed->there_ns += 3000;
	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_LE(test, abs(error_ns(bed) - 1500), 2);
	KUNIT_EXPECT_LE(test, error_ns(bed), bed->strip.fit.half_width_ns);
}

static void solve__outliers(struct kunit *test)
{
	static const s64 values[] = { -6000, -20000, -1000000, -60000000, -3600000000000LL };
	struct bed *bed = make_bed(test);
	u32 i;

	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		probe_for(bed, WINDOW_NS / 2);
		point(bed, i % 2, values[i]);
		probe_for(bed, WINDOW_NS / 2);
		KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
		KUNIT_EXPECT_LE(test, abs(error_ns(bed)), 3);
		KUNIT_EXPECT_EQ(test, bed->strip.fit.outliers, 1);
	}
}

static void solve__shorter_path_is_no_outlier(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	bed->there_ns = 20 * US;
	bed->back_ns = 20 * US;
	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	bed->there_ns = 5 * US;
	bed->back_ns = 5 * US;
	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_EQ(test, bed->strip.fit.outliers, 0);
	KUNIT_EXPECT_LE(test, abs((s64)bed->strip.fit.half_width_ns - BASE_NS), 3);
}

static void solve__longer_path(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	/* The path is longer in one direction: the fit of before is held, which is right. */
	bed->there_ns = 20 * US;
	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_LE(test, abs(error_ns(bed)), 3);
	KUNIT_EXPECT_LE(test, bed->strip.fit.uncertainty_ns, 500);
	KUNIT_EXPECT_LE(test, abs((s64)bed->strip.fit.half_width_ns - BASE_NS), 3);
	/* Without such a fit the error may be as large as the width has grown. */
	bed->back_ns = 20 * US;
	probe_for(bed, WINDOW_NS);
	bed->strip.fit.uncertainty_ns = 20 * US;
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_GE(test, bed->strip.fit.uncertainty_ns, 14000);
}

/* Probe for two seconds while one direction is busy. */
static void probe_while_busy(struct bed *bed)
{
	u32 i;

	for (i = 0; i < 200; i++) {
		pass(bed, 10 * MS);
		point(bed, TIMELY_STRIP_FORWARD, 8000 + below(bed, 50000));
		point(bed, TIMELY_STRIP_BACKWARD, late(bed));
	}
}

/* For a time all forward probes wait, and both strips are wrong by half of the least wait. */
static void solve__a_direction_that_is_busy(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i, j;

	probe_for(bed, 2 * WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	for (i = 0; i < 16; i++) {
		for (j = 0; j < 50; j++) {
			pass(bed, 10 * MS);
			point(bed, TIMELY_STRIP_FORWARD, 8000 + below(bed, 50000));
			point(bed, TIMELY_STRIP_BACKWARD, late(bed));
		}
		/* The drift wanders by less than expected; the free direction shows part of it. */
		bed->drift_ppb += i < 8 ? 4 : -4;
		KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
		KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
		KUNIT_EXPECT_LE(test, abs(error_ns(bed)), 300);
	}
	/* The free direction contradicts the fit that was held: the clock has gained 2 us. */
	bed->offset_ns += 2000;
	probe_while_busy(bed);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
}

/* No probe contradicts the fit that is held, but none touches its line: the clock has lost 2 us. */
static void solve__a_free_direction_that_is_late(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	probe_for(bed, 2 * WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	for (i = 0; i < 3; i++) {
		probe_while_busy(bed);
		KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	}
	KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
	bed->offset_ns -= 2000;
	for (i = 0; i < 3; i++)
		probe_while_busy(bed);
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
}

/* The probes without queues are close to each other in time. All later ones, of both
 * directions, wait for 1.4 us, so strips with drifts of 0.7 ppm more and less are as wide.
 */
static void solve__a_drift_that_is_left_open(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	for (i = 0; i < 100; i++) {
		bool is_free = i < 10;

		point(bed, TIMELY_STRIP_FORWARD, (is_free ? 0 : 1400) + below(bed, 5));
		point(bed, TIMELY_STRIP_BACKWARD, (is_free ? 0 : 1400) + below(bed, 5));
		pass(bed, is_free ? 20 * US : 20 * MS);
	}
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_GE(test, bed->strip.fit.drift_error_ppb, 700);
	KUNIT_EXPECT_GE(test, bed->strip.fit.drift_error_ppb,
			abs(timely_strip_drift_ppb(bed->strip.fit.drift_q32) - 30000));
	KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
}

static void solve__step_is_noticed_and_learnt(struct kunit *test)
{
	static const s64 values[] = {
		20000, -20000, MS, -50 * MS, NSEC_PER_SEC, -3600LL * NSEC_PER_SEC
	};
	struct bed *bed = make_bed(test);
	u32 i;

	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		bed->offset_ns += values[i];
		probe_for(bed, WINDOW_NS / 4);
		KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_OVERLAP);
		KUNIT_EXPECT_EQ(test, timely_strip_uncertainty_ns(&bed->strip.fit, bed->now_ns),
				TIMELY_STRIP_UNKNOWN_NS);
		probe_for(bed, WINDOW_NS / 4);
		KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
		KUNIT_EXPECT_LE(test, abs(error_ns(bed)), 3);
		probe_for(bed, WINDOW_NS);
		solve(bed);
	}
	KUNIT_EXPECT_EQ(test, bed->strip.counts[TIMELY_STRIP_OVERLAP], ARRAY_SIZE(values));
}

static void solve__drift_that_jumps(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	bed->drift_ppb = -30000;
	for (i = 0; i < 12; i++) {
		probe_for(bed, WINDOW_NS / 4);
		/* If there is a fit, the truth is within its uncertainty. */
		if (solve(bed) == TIMELY_STRIP_GOOD)
			KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
	}
	KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	KUNIT_EXPECT_LE(test, abs(timely_strip_drift_ppb(bed->strip.fit.drift_q32) + 30000), 10);
}

/* With few probes that did not wait, the known drift keeps the line from turning. */
static void solve__known_drift(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	s64 worst = 0;
	u32 i, j;

	probe_for(bed, WINDOW_NS);
	KUNIT_ASSERT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
	for (i = 0; i < 20; i++) {
		for (j = 0; j < 200; j++) {
			pass(bed, 10 * MS);
			point(bed, TIMELY_STRIP_FORWARD, j == 20 ? 0 : 5000 + below(bed, 50000));
			point(bed, TIMELY_STRIP_BACKWARD, j == 40 ? 0 : 5000 + below(bed, 50000));
		}
		KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
		KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
		worst = max_t(s64, worst, abs(error_ns(bed)));
	}
	KUNIT_EXPECT_LE(test, worst, 50);
}

static void solve__drift_that_wanders(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	probe_for(bed, WINDOW_NS);
	for (i = 0; i < 80; i++) {
		KUNIT_EXPECT_EQ(test, solve(bed), TIMELY_STRIP_GOOD);
		/* The change of the drift is known after some windows. */
		if (i >= 40)
			KUNIT_EXPECT_LE(test, abs(error_ns(bed)), bed->strip.fit.uncertainty_ns);
		bed->drift_ppb += 50;
		probe_for(bed, WINDOW_NS / 4);
	}
	/* The known drift is at most a few windows old. */
	KUNIT_EXPECT_LE(test, abs(timely_strip_drift_ppb(bed->strip.known_drift_q32) -
				  bed->drift_ppb), 500);
	KUNIT_EXPECT_GE(test, bed->strip.fit.wander_ppb_s, 50);
}

static void uncertainty__grows(struct kunit *test)
{
	struct timely_strip_fit fit = {
		.at_ns = 5000000000000ULL, .uncertainty_ns = 30, .drift_error_ppb = 100,
		.wander_ppb_s = 20,
	};
	u64 at = fit.at_ns;

	KUNIT_EXPECT_EQ(test, timely_strip_uncertainty_ns(&fit, at), 30);
	/* After 10 s: 30 + 10 * 100 + 20 * 100 / 2, rounded. */
	KUNIT_EXPECT_GE(test, timely_strip_uncertainty_ns(&fit, at + 10ULL * NSEC_PER_SEC), 2025);
	KUNIT_EXPECT_LE(test, timely_strip_uncertainty_ns(&fit, at + 10ULL * NSEC_PER_SEC), 2035);
	KUNIT_EXPECT_GE(test, timely_strip_uncertainty_ns(&fit, at - 10ULL * NSEC_PER_SEC), 2025);
	KUNIT_EXPECT_EQ(test, timely_strip_uncertainty_ns(&fit, at + TIMELY_STRIP_AGE_MAX_NS + 1),
			TIMELY_STRIP_UNKNOWN_NS);
	KUNIT_EXPECT_EQ(test, timely_strip_growth_ns(0, U32_MAX, U32_MAX,
						     TIMELY_STRIP_AGE_MAX_NS),
			TIMELY_STRIP_UNKNOWN_NS);
	KUNIT_EXPECT_EQ(test, timely_strip_growth_ns(TIMELY_STRIP_UNKNOWN_NS, 0, 0, 0),
			TIMELY_STRIP_UNKNOWN_NS);
	KUNIT_EXPECT_EQ(test, timely_strip_growth_ns(1, 1, 1, S64_MIN), TIMELY_STRIP_UNKNOWN_NS);
}

static void drift__is_rounded(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, timely_strip_drift_ppb(0), 0);
	KUNIT_EXPECT_EQ(test, timely_strip_drift_ppb(4), 1);
	KUNIT_EXPECT_EQ(test, timely_strip_drift_ppb(-4), -1);
	KUNIT_EXPECT_EQ(test, timely_strip_drift_ppb(2), 0);
	KUNIT_EXPECT_EQ(test, timely_strip_drift_ppb(-2), 0);
	KUNIT_EXPECT_EQ(test, timely_strip_drift_ppb(TIMELY_STRIP_DRIFT_MAX_Q32), 1953125);
	KUNIT_EXPECT_EQ(test, timely_strip_drift_ppb(-TIMELY_STRIP_DRIFT_MAX_Q32), -1953125);
}

static struct kunit_case strip_cases[] = {
	KUNIT_CASE(init__refuses_wrong_sizes),
	KUNIT_CASE(add__keeps_the_order_of_time),
	KUNIT_CASE(add__keeps_the_tighter_bound),
	KUNIT_CASE(add__full_ring_drops_the_oldest),
	KUNIT_CASE(add__own_clock_set_back),
	KUNIT_CASE(solve__needs_points_and_time),
	KUNIT_CASE(solve__directions_apart_in_time),
	KUNIT_CASE(solve__offset_and_drift),
	KUNIT_CASE(solve__too_steep),
	KUNIT_CASE(solve__asymmetric_path),
	KUNIT_CASE(solve__outliers),
	KUNIT_CASE(solve__shorter_path_is_no_outlier),
	KUNIT_CASE(solve__longer_path),
	KUNIT_CASE(solve__a_direction_that_is_busy),
	KUNIT_CASE(solve__a_free_direction_that_is_late),
	KUNIT_CASE(solve__a_drift_that_is_left_open),
	KUNIT_CASE(solve__step_is_noticed_and_learnt),
	KUNIT_CASE(solve__drift_that_jumps),
	KUNIT_CASE(solve__known_drift),
	KUNIT_CASE(solve__drift_that_wanders),
	KUNIT_CASE(uncertainty__grows),
	KUNIT_CASE(drift__is_rounded),
	{}
};

static struct kunit_suite strip_suite = {
	.name = "timely_strip",
	.test_cases = strip_cases,
};

kunit_test_suite(strip_suite);
