// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of how long a path has been quiet (net/timely/engine/quiet.h). Cases are named
 * function__case.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/types.h>

#include <timely/engine/quiet.h>

#define TARGET_NS	4000U
#define TIME_US		TIMELY_QUIET_TIME_US

/* Completions every 100 us for @us, with the delays @a_ns and @b_ns in turns. Return: the time. */
static u32 completions(struct timely_quiet *quiet, u32 now_us, u32 us, u32 a_ns, u32 b_ns)
{
	u32 end_us = now_us + us, queue_ns = a_ns;

	while (now_us != end_us) {
		now_us += 100;
		if (timely_quiet_add(quiet, now_us, queue_ns, false))
			timely_quiet_judge(quiet, now_us, TARGET_NS);
		queue_ns = queue_ns == a_ns ? b_ns : a_ns;
	}
	return now_us;
}

static void quiet__doubles_after_each_time(struct kunit *test)
{
	struct timely_quiet quiet;
	u32 now_us = U32_MAX - TIME_US, doublings;

	timely_quiet_reset(&quiet, now_us);
	for (doublings = 0; doublings < TIMELY_QUIET_DOUBLINGS; doublings++) {
		now_us = completions(&quiet, now_us, TIME_US - 100, 0, 0);
		KUNIT_EXPECT_EQ(test, quiet.doublings, doublings);
		now_us = completions(&quiet, now_us, 100, 0, 0);
		KUNIT_EXPECT_EQ(test, quiet.doublings, doublings + 1);
	}
	completions(&quiet, now_us, 10 * TIME_US, 0, 0);
	KUNIT_EXPECT_EQ(test, quiet.doublings, TIMELY_QUIET_DOUBLINGS);
}

static void quiet__mean_delay_decides(struct kunit *test)
{
	struct timely_quiet quiet;
	u32 now_us = 0;

	timely_quiet_reset(&quiet, now_us);
	now_us = completions(&quiet, now_us, 2 * TIME_US, 0, 2 * TIMELY_QUIET_MEAN_NS);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 2);
	now_us = completions(&quiet, now_us, TIME_US, 0, 2 * TIMELY_QUIET_MEAN_NS + 1);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 1);
	completions(&quiet, now_us, 2 * TIME_US, TIMELY_QUIET_LONG_NS, TIMELY_QUIET_LONG_NS);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 0);
}

/* Of a connection with a long target delay, three quarters of it. */
static void quiet__long_target(struct kunit *test)
{
	struct timely_quiet quiet;

	timely_quiet_reset(&quiet, 0);
	KUNIT_EXPECT_TRUE(test, timely_quiet_add(&quiet, TIME_US, 15000, false));
	timely_quiet_judge(&quiet, TIME_US, 20000);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 1);
	KUNIT_EXPECT_TRUE(test, timely_quiet_add(&quiet, 2 * TIME_US, 15001, false));
	timely_quiet_judge(&quiet, 2 * TIME_US, 20000);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 0);
}

/* One delay in nine may be long, but not one in seven, although the mean is short. */
static void quiet__some_long_delays(struct kunit *test)
{
	struct timely_quiet quiet;
	u32 every, i;

	for (every = 7; every <= 9; every += 2) {
		timely_quiet_reset(&quiet, 0);
		for (i = 1; i <= 63; i++)
			timely_quiet_add(&quiet, i, i % every ? 0 : TIMELY_QUIET_LONG_NS + 1,
					 false);
		timely_quiet_judge(&quiet, TIME_US, TARGET_NS);
		KUNIT_EXPECT_EQ(test, quiet.doublings, every == 9);
	}
}

/* Segments that compete count as those with a long delay. */
static void quiet__some_that_compete(struct kunit *test)
{
	struct timely_quiet quiet;
	u32 every, i;

	for (every = 7; every <= 9; every++) {
		timely_quiet_reset(&quiet, 0);
		for (i = 0; i < 72 * every; i++)
			timely_quiet_add(&quiet, i, 0, i % every == 0);
		timely_quiet_judge(&quiet, TIME_US, TARGET_NS);
		KUNIT_EXPECT_EQ(test, quiet.doublings, every > 7);
	}
}

static void quiet__longest_delay_halves_at_once(struct kunit *test)
{
	struct timely_quiet quiet;
	u32 now_us = 0;

	timely_quiet_reset(&quiet, now_us);
	now_us = completions(&quiet, now_us, 3 * TIME_US, 0, 0);
	now_us = completions(&quiet, now_us, 100, TIMELY_QUIET_MOST_NS + 1, 0);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 2);
	/* The time begins anew. */
	now_us = completions(&quiet, now_us, TIME_US - 100, 0, 0);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 2);
	now_us = completions(&quiet, now_us, 500, U32_MAX, U32_MAX);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 0);
	completions(&quiet, now_us, TIME_US, 0, 0);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 1);
}

static void quiet__reset_begins_anew(struct kunit *test)
{
	struct timely_quiet quiet = { .sum_ns = 1, .count = 1, .doublings = 5 };

	timely_quiet_reset(&quiet, 7000);
	KUNIT_EXPECT_EQ(test, quiet.doublings, 0);
	KUNIT_EXPECT_FALSE(test, timely_quiet_add(&quiet, TIME_US, 0, false));
	KUNIT_EXPECT_TRUE(test, timely_quiet_add(&quiet, 7000 + TIME_US, 0, false));
}

/* The count of delays and their sum do not overflow, however short the segments are. */
static void quiet__many_completions(struct kunit *test)
{
	struct timely_quiet quiet;
	u32 i = 0;

	timely_quiet_reset(&quiet, 0);
	while (!timely_quiet_add(&quiet, 1, TIMELY_QUIET_LONG_NS, false))
		i++;
	KUNIT_EXPECT_EQ(test, i, U16_MAX - 1);
	KUNIT_EXPECT_EQ(test, quiet.sum_ns, U16_MAX * TIMELY_QUIET_LONG_NS);
}

static struct kunit_case timely_quiet_cases[] = {
	KUNIT_CASE(quiet__doubles_after_each_time),
	KUNIT_CASE(quiet__mean_delay_decides),
	KUNIT_CASE(quiet__long_target),
	KUNIT_CASE(quiet__some_long_delays),
	KUNIT_CASE(quiet__some_that_compete),
	KUNIT_CASE(quiet__longest_delay_halves_at_once),
	KUNIT_CASE(quiet__reset_begins_anew),
	KUNIT_CASE(quiet__many_completions),
	{}
};

static struct kunit_suite timely_quiet_suite = {
	.name = "timely_quiet",
	.test_cases = timely_quiet_cases,
};

kunit_test_suite(timely_quiet_suite);
