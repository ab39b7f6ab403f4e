// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of software timestamps by a real-time clock that is set.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include <timely/engine/real.h>

#define US	NSEC_PER_USEC
#define MS	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

/* CLOCK_MONOTONIC at the start of a test, and how far the real-time clock is ahead. */
#define START	(1000ULL * SEC)
#define AHEAD	(1767225600ULL * SEC)

static struct timely_real usual(void)
{
	struct timely_real real;

	timely_real_init(&real, AHEAD);
	return real;
}

static void real__is_not_set_at_first(struct kunit *test)
{
	struct timely_real real = usual();

	KUNIT_EXPECT_FALSE(test, timely_real_update(&real, AHEAD, START));
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD + START, START + 5), START);
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD + START, START), START);
	/* Timestamps of the future and of long ago are unknown. */
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD + START + 1, START), 0);
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD + START, START + SEC), START);
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD + START, START + SEC + 1), 0);
}

static void real__step_shows_in_the_offset(struct kunit *test)
{
	struct timely_real real = usual();
	u64 now = START + 10 * US;

	KUNIT_EXPECT_TRUE(test, timely_real_update(&real, AHEAD + 1, START));
	KUNIT_EXPECT_FALSE(test, timely_real_update(&real, AHEAD + 1, START));
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD + 1 + START + 5, now), START + 5);
}

/* An ACK that arrived 10 us before its clock was set back by 200 us, and is processed later. */
static void real__ambiguous_time_is_unknown(struct kunit *test)
{
	struct timely_real real = usual();
	u64 stamp = AHEAD + START - 10 * US, now;

	timely_real_update(&real, AHEAD - 200 * US, START);
	for (now = START; now < START + 2 * MS; now += US)
		KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, stamp, now), 0);
	/* A timestamp within the 200 us that occur twice may be from either time. */
	now = START + 199 * US;
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD - 200 * US + now, now), 0);
	now = START + 201 * US;
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, AHEAD - 200 * US + now, now), now);
}

/* No packet waits for a second: after a larger step back, timestamps are unambiguous. */
static void real__leap_second_is_not_ambiguous(struct kunit *test)
{
	struct timely_real real = usual();
	u64 now = START + 1, stamp = AHEAD - SEC + now;

	timely_real_update(&real, AHEAD - SEC, START);
	KUNIT_EXPECT_EQ(test, timely_real_arrival_ns(&real, stamp, now), now);
}

static u64 next_random(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Every @every_ns a packet arrives that waits for up to @wait_ns. The clock is set by @by_ns every
 * @set_every_ns, alternately forward and back or always in the same direction. Returns how many of
 * 10000 arrival times are known; none may be wrong.
 */
static u32 count_known(struct kunit *test, s64 by_ns, bool back, u64 set_every_ns, u64 every_ns,
		       u64 wait_ns)
{
	u64 random = by_ns + set_every_ns, now = START, next_ns = START + set_every_ns;
	struct timely_real real = usual();
	u64 offset = AHEAD, arrived, got, stamp;
	u32 i, count = 0, wrong = 0;

	for (i = 0; i < 10000; i++) {
		arrived = max(now, arrived = START + i * every_ns);
		for (; next_ns <= arrived; next_ns += set_every_ns) {
			offset += by_ns;
			by_ns = back ? -by_ns : by_ns;
			timely_real_update(&real, offset, next_ns + 1);
		}
		stamp = offset + arrived;
		now = arrived + next_random(&random) % wait_ns;
		/* One change may come while the packet waits. */
		if (next_ns <= now) {
			offset += by_ns;
			by_ns = back ? -by_ns : by_ns;
			timely_real_update(&real, offset, next_ns + 1);
			next_ns += set_every_ns;
		}
		got = timely_real_arrival_ns(&real, stamp, now);
		count += !!got;
		wrong += got && got != arrived;
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "by %lld each %llu", by_ns, set_every_ns);
	return count;
}

static void real__known_times_are_right(struct kunit *test)
{
	static const s64 steps[] = { 1, US, 20 * US, 200 * US, MS, 37 * MS, SEC, 3600LL * SEC };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		s64 by = steps[i];

		KUNIT_EXPECT_GT(test, count_known(test, by, true, 100 * MS, 13 * US, 50 * US),
				6000);
		KUNIT_EXPECT_GT(test, count_known(test, -by, true, 100 * MS, 13 * US, 50 * US),
				6000);
		count_known(test, by, false, 10 * MS, 13 * US, 300 * US);
		count_known(test, -by, false, 10 * MS, 13 * US, 300 * US);
	}
}

/* Even if the clock is set all the time, most timestamps are usable. */
static void real__small_steps_lose_few_timestamps(struct kunit *test)
{
	KUNIT_EXPECT_GT(test, count_known(test, US, false, 10 * MS, 13 * US, 20 * US), 9900);
	KUNIT_EXPECT_GT(test, count_known(test, -(s64)US, false, 10 * MS, 13 * US, 20 * US), 9900);
	KUNIT_EXPECT_GT(test, count_known(test, US, true, 10 * MS, 13 * US, 20 * US), 9900);
}

static struct kunit_case timely_real_cases[] = {
	KUNIT_CASE(real__is_not_set_at_first),
	KUNIT_CASE(real__step_shows_in_the_offset),
	KUNIT_CASE(real__ambiguous_time_is_unknown),
	KUNIT_CASE(real__leap_second_is_not_ambiguous),
	KUNIT_CASE(real__known_times_are_right),
	KUNIT_CASE(real__small_steps_lose_few_timestamps),
	{}
};

static struct kunit_suite timely_real_suite = {
	.name = "timely_real",
	.test_cases = timely_real_cases,
};

kunit_test_suite(timely_real_suite);
