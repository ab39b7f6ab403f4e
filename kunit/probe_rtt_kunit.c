// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of base-RTT probes: when they start, how long they last, and that no behaviour of a clock
 * lengthens them.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include <timely/engine/probe_rtt.h>

#define US	NSEC_PER_USEC
#define MS	NSEC_PER_MSEC

static const u32 bases_ns[] = {
	0, 1, 10000, 17000, 120000, 250000, 250001, 500000, 2000000, 50000000, 66000000,
	200000000, U32_MAX,
};

static struct timely_probe_rtt probe_of(u32 min_rtt_ns, u64 now_ns)
{
	struct timely_probe_rtt probe;

	timely_probe_rtt_init(&probe, now_ns);
	timely_probe_rtt_set(&probe, min_rtt_ns);
	return probe;
}

static void probe_rtt__lasts_some_round_trips(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, probe_of(0, 0).length_ns, 1000000);
	KUNIT_EXPECT_EQ(test, probe_of(17000, 0).length_ns, 1000000);
	KUNIT_EXPECT_EQ(test, probe_of(17000, 0).settle_ns, 1034000);
	KUNIT_EXPECT_EQ(test, probe_of(200000, 0).length_ns, 1600000);
	KUNIT_EXPECT_EQ(test, probe_of(200000, 0).settle_ns, 2000000);
	KUNIT_EXPECT_EQ(test, probe_of(1000000000, 0).length_ns, 2000000);
}

/* On a long path, RTTs show a probe after one base RTT, for the length of the probe. */
static void probe_rtt__shows_a_round_trip_later(struct kunit *test)
{
	struct timely_probe_rtt probe = probe_of(10 * MS, 0);

	KUNIT_EXPECT_LT(test, probe.shows_ns, 10 * MS);
	KUNIT_EXPECT_GT(test, probe.shows_ns + probe.settle_ns, 10 * MS + probe.length_ns);
	KUNIT_EXPECT_EQ(test, probe_of(17000, 0).shows_ns, 0);
	KUNIT_EXPECT_LT(test, probe_of(U32_MAX, 0).shows_ns, TIMELY_PROBE_RTT_PERIOD_NS);
}

static void probe_rtt__not_before_the_first(struct kunit *test)
{
	struct timely_probe_rtt probe;

	timely_probe_rtt_init(&probe, 0);
	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_may_begin(&probe, 0));
	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_is_on(&probe, 0));
	timely_probe_rtt_set(&probe, 17000);
	KUNIT_EXPECT_TRUE(test, timely_probe_rtt_may_begin(&probe, 0));
	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_is_on(&probe, 0));
	KUNIT_EXPECT_GE(test, timely_probe_rtt_age_ns(&probe, 0), probe.settle_ns);
}

/* A look between two probes tells when the next one is due. */
static void probe_rtt__rests_until_the_next(struct kunit *test)
{
	struct timely_probe_rtt probe = probe_of(17000, 0);
	u64 now_ns = 1000 * MS;

	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_update(&probe, now_ns,
							 5 * TIMELY_PROBE_RTT_PERIOD_NS + 20 * MS));
	now_ns += TIMELY_PROBE_RTT_PERIOD_NS - 20 * MS;
	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_may_begin(&probe, now_ns - 1));
	KUNIT_EXPECT_TRUE(test, timely_probe_rtt_may_begin(&probe, now_ns));
}

static void probe_rtt__starts_with_the_low_bits(struct kunit *test)
{
	struct timely_probe_rtt probe = probe_of(17000, 1000);

	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_update(&probe, 1000,
							 5 * TIMELY_PROBE_RTT_PERIOD_NS - 1));
	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_is_on(&probe, 1000));
	KUNIT_EXPECT_TRUE(test, timely_probe_rtt_update(&probe, 1008,
							5 * TIMELY_PROBE_RTT_PERIOD_NS + 7));
	KUNIT_EXPECT_TRUE(test, timely_probe_rtt_is_on(&probe, 1008));
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_age_ns(&probe, 1008), 7);
	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_may_begin(&probe, 1008));
	KUNIT_EXPECT_TRUE(test, timely_probe_rtt_is_on(&probe, 1000 + 1000000));
	KUNIT_EXPECT_FALSE(test, timely_probe_rtt_is_on(&probe, 1001 + 1000000));
	KUNIT_EXPECT_TRUE(test, timely_probe_rtt_may_begin(&probe,
							   1001 + TIMELY_PROBE_RTT_REST_NS));
}

static u64 next_random(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/**
 * struct shares - shares of four seconds, in parts per million
 * @less: time in probes, with a reduced rate
 * @frozen: time in which RTTs do not change the rate
 */
struct shares {
	u32 less;
	u32 frozen;
};

/* A flow calls the engine every 5 us. @clock is 0: right; 1: set at random every millisecond; 2:
 * stopped in a probe; 3: 10 % fast; 4: always set back to the start of a probe.
 */
static struct shares shares_of(u32 min_rtt_ns, u32 clock)
{
	struct timely_probe_rtt probe = probe_of(min_rtt_ns, 0);
	u64 now, real = 0, random = min_rtt_ns + clock, until = 4ULL * NSEC_PER_SEC;
	u64 less = 0, frozen = 0;

	for (now = 0; now < until; now += 5 * US) {
		real += clock == 2 ? 0 : 5 * US;
		if (clock == 1 && now % MS == 0)
			real = next_random(&random) % TIMELY_PROBE_RTT_PERIOD_NS;
		if (clock == 3)
			real += US / 2;
		if (clock == 4 && (real & (TIMELY_PROBE_RTT_PERIOD_NS - 1)) > 900 * US)
			real = 0;
		if (timely_probe_rtt_may_begin(&probe, now))
			timely_probe_rtt_update(&probe, now, real);
		if (timely_probe_rtt_is_on(&probe, now))
			less += 5 * US;
		if (timely_probe_rtt_age_ns(&probe, now) < probe.settle_ns)
			frozen += 5 * US;
	}
	return (struct shares){
		.less = div_u64(less * 1000000, until),
		.frozen = div_u64(frozen * 1000000, until),
	};
}

/* Base RTTs from 10 us to 50 ms and above: 3.8 % of the time at most. */
static void probe_rtt__takes_a_bounded_share_of_time(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bases_ns); i++) {
		struct shares shares = shares_of(bases_ns[i], 0);

		KUNIT_EXPECT_LE_MSG(test, shares.less, 31000, "base RTT %u ns", bases_ns[i]);
		KUNIT_EXPECT_LE_MSG(test, shares.frozen, 38000, "base RTT %u ns", bases_ns[i]);
		KUNIT_EXPECT_GE_MSG(test, shares.less, 14000, "base RTT %u ns", bases_ns[i]);
		if (bases_ns[i] < TIMELY_PROBE_RTT_PERIOD_NS)
			KUNIT_EXPECT_GE_MSG(test, shares.frozen, 14000, "base RTT %u ns",
					    bases_ns[i]);
	}
}

/* However the clock behaves: at most 4.1 % of the time at a reduced rate, 5.1 % with a frozen rate.
 */
static void probe_rtt__wrong_clocks_take_little_more(struct kunit *test)
{
	u32 i, clock;

	for (clock = 1; clock <= 4; clock++)
		for (i = 0; i < ARRAY_SIZE(bases_ns); i++) {
			struct shares shares = shares_of(bases_ns[i], clock);

			KUNIT_EXPECT_LE_MSG(test, shares.less, 41000, "clock %u, base RTT %u ns",
					    clock, bases_ns[i]);
			KUNIT_EXPECT_LE_MSG(test, shares.frozen, 51000, "clock %u, base RTT %u ns",
					    clock, bases_ns[i]);
		}
}

/* @count probes in which RTTs fall by @fall_ns, of a queueing delay of 14 us over 17 us, which was
 * as short as 7 us before.
 */
static u32 drained(struct timely_probe_rtt_watch *watch, u32 count, s32 fall_ns)
{
	u32 found = 0;

	while (count--)
		found += timely_probe_rtt_watch_add(watch, 31000, 24000, 31000 - fall_ns,
						    17000, 14000);
	return found;
}

static void watch__coincide_at_first(struct kunit *test)
{
	struct timely_probe_rtt_watch watch = {};

	KUNIT_EXPECT_EQ(test, drained(&watch, 1000, 12000), 0);
	KUNIT_EXPECT_FALSE(test, watch.apart);
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, 20000, 15000), 20000);
}

static void watch__notices_that_rtts_do_not_fall(struct kunit *test)
{
	struct timely_probe_rtt_watch watch = {};

	KUNIT_EXPECT_EQ(test, drained(&watch, 15, 1000), 0);
	KUNIT_EXPECT_EQ(test, drained(&watch, 1000, 1000), 1);
	KUNIT_EXPECT_TRUE(test, watch.apart);
	/* Rising RTTs do not count as falling. */
	KUNIT_EXPECT_EQ(test, drained(&watch, 1000, -5000), 0);
	KUNIT_EXPECT_TRUE(test, watch.apart);
}

/* RTTs that do not vary show a longer path and no queue. */
static void watch__is_silent_about_a_longer_path(struct kunit *test)
{
	struct timely_probe_rtt_watch watch = {};
	u32 i;

	for (i = 0; i < 1000; i++)
		KUNIT_EXPECT_FALSE(test, timely_probe_rtt_watch_add(&watch, 31000, 30000, 31000,
								    17000, 14000));
	KUNIT_EXPECT_FALSE(test, watch.apart);
	/* Nor do probes that seemed not to coincide keep the former base RTT. */
	KUNIT_EXPECT_EQ(test, drained(&watch, 100, 0), 1);
	for (i = 0; i < 50; i++)
		timely_probe_rtt_watch_add(&watch, 31000, 30000, 31000, 17000, 14000);
	KUNIT_EXPECT_FALSE(test, watch.apart);
}

/* While probes do not coincide, so long a path counts, too: its connections are slow. */
static void watch__is_silent_about_a_much_longer_path(struct kunit *test)
{
	struct timely_probe_rtt_watch watch = {};
	u32 i;

	KUNIT_EXPECT_EQ(test, drained(&watch, 100, 0), 1);
	for (i = 0; i < 50; i++)
		timely_probe_rtt_watch_add(&watch, 120000, 119000, 120000, 17000, 14000);
	KUNIT_EXPECT_FALSE(test, watch.apart);
}

static void watch__notices_that_rtts_fall_again(struct kunit *test)
{
	struct timely_probe_rtt_watch watch = {};

	drained(&watch, 100, 0);
	/* A fall between the two limits changes nothing. */
	KUNIT_EXPECT_EQ(test, drained(&watch, 1000, 5000), 0);
	KUNIT_EXPECT_TRUE(test, watch.apart);
	KUNIT_EXPECT_EQ(test, drained(&watch, 50, 12000), 0);
	KUNIT_EXPECT_FALSE(test, watch.apart);
	KUNIT_EXPECT_EQ(test, drained(&watch, 1000, 5000), 0);
	KUNIT_EXPECT_FALSE(test, watch.apart);
	KUNIT_EXPECT_EQ(test, drained(&watch, 50, 0), 1);
}

/* Without a queue before the probe, or with a queue of other hosts, an RTT does not count. */
static void watch__needs_a_queue(struct kunit *test)
{
	static const u32 before_ns[] = { 15000, 17000, 23999, 73001 };
	struct timely_probe_rtt_watch watch = {};
	u32 i, j;

	for (i = 0; i < 1000; i++) {
		for (j = 0; j < ARRAY_SIZE(before_ns); j++)
			KUNIT_EXPECT_FALSE(test,
					   timely_probe_rtt_watch_add(&watch, before_ns[j], 15000,
								      before_ns[j], 17000, 14000));
		KUNIT_EXPECT_FALSE(test, timely_probe_rtt_watch_add(&watch, U32_MAX, 1, 1, 17000,
								    14000));
		KUNIT_EXPECT_FALSE(test, timely_probe_rtt_watch_add(&watch, 1, 1, U32_MAX, U32_MAX,
								    1));
	}
	KUNIT_EXPECT_EQ(test, watch.samples, 0);
}

static void watch__bears_any_numbers(struct kunit *test)
{
	u64 random = 7;
	struct timely_probe_rtt_watch watch = {};
	u32 i;

	for (i = 0; i < 100000; i++) {
		timely_probe_rtt_watch_add(&watch, next_random(&random), next_random(&random),
					   next_random(&random), next_random(&random),
					   next_random(&random));
		KUNIT_EXPECT_LE(test, watch.fall_ns, 100000000);
		KUNIT_EXPECT_GE(test, watch.fall_ns, -100000000);
		KUNIT_EXPECT_GE(test, watch.due_ns, 0);
		KUNIT_EXPECT_GE(test, watch.vary_ns, 0);
	}
}

/* If RTTs do not fall in probes, the base RTT rises to at most one and a half of its lowest value.
 */
static void watch__limits_the_base_rtt(struct kunit *test)
{
	struct timely_probe_rtt_watch watch = {};
	u64 least_ns;

	drained(&watch, 100, 0);
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, 22000, 17000), 17000);
	for (least_ns = 17000; least_ns < 1000000; least_ns += 1000)
		KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, least_ns + 5000, least_ns),
				min(least_ns, 25500ULL));
	/* A shorter path is accepted. */
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, 10000, 10000), 10000);
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, 90000, 90000), 15000);
	drained(&watch, 100, 12000);
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, 90000, 10000), 90000);
	/* The old lowest base RTT is not used again. */
	drained(&watch, 100, 0);
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, 90000, 80000), 80000);
	KUNIT_EXPECT_EQ(test, timely_probe_rtt_base_ns(&watch, U64_MAX, U64_MAX), 120000);
}

static void probe_rtt__reduces_by_some_sixteenths(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, timely_probe_rtt_cut_Bps(1600, i), 200 + i % 4 * 100);
	KUNIT_EXPECT_LT(test, timely_probe_rtt_cut_Bps(U64_MAX, 3), U64_MAX / 3);
}

static struct kunit_case timely_probe_rtt_cases[] = {
	KUNIT_CASE(probe_rtt__lasts_some_round_trips),
	KUNIT_CASE(probe_rtt__shows_a_round_trip_later),
	KUNIT_CASE(probe_rtt__not_before_the_first),
	KUNIT_CASE(probe_rtt__rests_until_the_next),
	KUNIT_CASE(probe_rtt__starts_with_the_low_bits),
	KUNIT_CASE(probe_rtt__takes_a_bounded_share_of_time),
	KUNIT_CASE(probe_rtt__wrong_clocks_take_little_more),
	KUNIT_CASE(probe_rtt__reduces_by_some_sixteenths),
	KUNIT_CASE(watch__coincide_at_first),
	KUNIT_CASE(watch__notices_that_rtts_do_not_fall),
	KUNIT_CASE(watch__is_silent_about_a_longer_path),
	KUNIT_CASE(watch__is_silent_about_a_much_longer_path),
	KUNIT_CASE(watch__notices_that_rtts_fall_again),
	KUNIT_CASE(watch__needs_a_queue),
	KUNIT_CASE(watch__bears_any_numbers),
	KUNIT_CASE(watch__limits_the_base_rtt),
	{}
};

static struct kunit_suite timely_probe_rtt_suite = {
	.name = "timely_probe_rtt",
	.test_cases = timely_probe_rtt_cases,
};

kunit_test_suite(timely_probe_rtt_suite);
