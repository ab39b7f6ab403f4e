// SPDX-License-Identifier: GPL-2.0
/* Tests of NDP's list of paths (ndp_paths.c). Cases are named function__case. */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>

#include <timely/engine/ndp_paths.h>

#define PATHS		36
#define ROUND		64	/* most paths of a round */
#define NONE		TIMELY_NDP_MAX_PATHS
/* The first time that a path is left out. */
#define OUT_NS		1000000ULL

struct bed {
	struct timely_ndp_paths p;
	struct timely_ndp_path memory[TIMELY_NDP_MAX_PATHS];
};

static void set_up(struct kunit *test, struct bed *bed, u32 count)
{
	KUNIT_ASSERT_EQ(test, timely_ndp_paths_init(&bed->p, bed->memory, count, 12345), 0);
}

static struct bed *make_bed(struct kunit *test, u32 count)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	set_up(test, bed, count);
	return bed;
}

/* Bit i is set if path i is used in a round. */
static u64 round_of(struct bed *bed, u64 now_ns)
{
	u64 used = 0;

	do {
		used |= 1ULL << timely_ndp_paths_next(&bed->p, now_ns, NONE);
	} while (bed->p.at < bed->p.used);
	return used;
}

static void init__checks_the_number(struct kunit *test)
{
	struct bed *bed = make_bed(test, 1);

	KUNIT_EXPECT_EQ(test, timely_ndp_paths_init(&bed->p, bed->memory, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_paths_init(&bed->p, bed->memory,
						    TIMELY_NDP_MAX_PATHS + 1, 1), -EINVAL);
	/* A seed of 0 is no valid state of the random numbers. */
	KUNIT_EXPECT_EQ(test, timely_ndp_paths_init(&bed->p, bed->memory,
						    TIMELY_NDP_MAX_PATHS, 0), 0);
	KUNIT_EXPECT_TRUE(test, bed->p.random != 0);
}

static void next__each_path_once_in_a_round(struct kunit *test)
{
	struct bed *bed = make_bed(test, PATHS);
	u32 i;

	for (i = 0; i < 100; i++) {
		KUNIT_EXPECT_EQ(test, round_of(bed, 0), (1ULL << PATHS) - 1);
		KUNIT_EXPECT_EQ(test, bed->p.at, PATHS);
	}
}

/* Each path is about equally often the first one of a list. */
static void next__in_random_order(struct kunit *test)
{
	struct bed *bed = make_bed(test, 8);
	u32 first[8] = {}, i;

	for (i = 0; i < 8000; i++) {
		KUNIT_ASSERT_EQ(test, timely_ndp_paths_init(&bed->p, bed->memory, 8,
							    i * 0x9e3779b97f4a7c15ULL), 0);
		first[timely_ndp_paths_next(&bed->p, 0, NONE)]++;
	}
	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_GT(test, first[i], 850);
		KUNIT_EXPECT_LT(test, first[i], 1150);
	}
}

/* Without NACKs all rounds have the same order. */
static void next__keeps_the_order(struct kunit *test)
{
	struct bed *bed = make_bed(test, PATHS);
	u8 order[PATHS];
	u32 i;

	for (i = 0; i < PATHS; i++)
		order[i] = timely_ndp_paths_next(&bed->p, 0, NONE);
	for (i = 0; i < 10 * PATHS; i++)
		KUNIT_EXPECT_EQ(test, timely_ndp_paths_next(&bed->p, i, NONE), order[i % PATHS]);
}

/* A round has 64 of 256 paths, and others come in for those with NACKs. */
static void next__some_of_many_paths(struct kunit *test)
{
	struct bed *bed = make_bed(test, TIMELY_NDP_MAX_PATHS);
	u8 order[ROUND];
	u32 i, moved = 0;

	for (i = 0; i < ROUND; i++)
		order[i] = timely_ndp_paths_next(&bed->p, 0, NONE);
	for (i = 0; i < ROUND; i++)
		KUNIT_EXPECT_EQ(test, timely_ndp_paths_next(&bed->p, 0, NONE), order[i]);
	for (i = 0; i < ROUND; i++)
		timely_ndp_paths_nack(&bed->p, order[i]);
	for (i = 0; i < ROUND; i++)
		moved += !memchr(order, timely_ndp_paths_next(&bed->p, 0, NONE), ROUND);
	/* Three quarters on average. */
	KUNIT_EXPECT_GT(test, moved, ROUND / 2);
	/* A NACK for a path that is not in the round moves none. */
	KUNIT_EXPECT_EQ(test, bed->p.used, TIMELY_NDP_MAX_PATHS);
	timely_ndp_paths_nack(&bed->p, bed->memory[TIMELY_NDP_MAX_PATHS - 1].order);
	for (i = 0; i < ROUND; i++)
		order[i] = timely_ndp_paths_next(&bed->p, 0, NONE);
	timely_ndp_paths_nack(&bed->p, bed->memory[TIMELY_NDP_MAX_PATHS - 1].order);
	for (i = 0; i < ROUND; i++)
		KUNIT_EXPECT_EQ(test, timely_ndp_paths_next(&bed->p, 0, NONE), order[i]);
}

/* The path of a trimmed packet changes places with a random one. */
static void nack__moves_the_path(struct kunit *test)
{
	struct bed *bed = make_bed(test, PATHS);
	u32 i, j, first, moved = 0;

	for (i = 0; i < 100; i++) {
		first = timely_ndp_paths_next(&bed->p, 0, NONE);
		while (bed->p.at < bed->p.used)
			timely_ndp_paths_next(&bed->p, 0, NONE);
		/* A few NACKs among many ACKs make no outlier. */
		for (j = 0; j < 16 * PATHS; j++)
			timely_ndp_paths_ack(&bed->p, j % PATHS);
		timely_ndp_paths_nack(&bed->p, first);
		moved += bed->memory[0].order != first;
		KUNIT_EXPECT_EQ(test, round_of(bed, 0), (1ULL << PATHS) - 1);
	}
	/* One of 36 does not move, on average. */
	KUNIT_EXPECT_GT(test, moved, 85);
}

static void next__avoids_a_path(struct kunit *test)
{
	struct bed *bed = make_bed(test, 1);
	u32 count, i, path;

	for (count = 1; count < 6; count++) {
		set_up(test, bed, count);
		for (i = 0; i < 1000; i++) {
			path = timely_ndp_paths_next(&bed->p, 0, i % count);
			KUNIT_EXPECT_TRUE(test, path != i % count || count == 1);
			KUNIT_EXPECT_LT(test, path, count);
		}
	}
}

static void answers__of_unknown_paths_are_ignored(struct kunit *test)
{
	struct bed *bed = make_bed(test, 2);

	timely_ndp_paths_ack(&bed->p, 2);
	timely_ndp_paths_nack(&bed->p, U32_MAX);
	timely_ndp_paths_loss(&bed->p, TIMELY_NDP_MAX_PATHS);
	KUNIT_EXPECT_EQ(test, bed->p.answers, 0);
	KUNIT_EXPECT_EQ(test, bed->memory[2].acks, 0);
}

/* Path 3 has many NACKs and the others have none. */
static void outlier__many_nacks(struct kunit *test)
{
	struct bed *bed = make_bed(test, PATHS);
	u32 i;

	for (i = 0; i < 4 * PATHS; i++) {
		if (i % PATHS == 3)
			timely_ndp_paths_nack(&bed->p, 3);
		else
			timely_ndp_paths_ack(&bed->p, i % PATHS);
	}
	KUNIT_EXPECT_EQ(test, round_of(bed, 100), ((1ULL << PATHS) - 1) & ~(1ULL << 3));
	KUNIT_EXPECT_EQ(test, bed->p.outliers, 1);
	KUNIT_EXPECT_EQ(test, round_of(bed, 99 + OUT_NS), ((1ULL << PATHS) - 1) & ~(1ULL << 3));
	/* Then the path is tried again, with an empty scoreboard. */
	KUNIT_EXPECT_EQ(test, round_of(bed, 100 + OUT_NS), (1ULL << PATHS) - 1);
	KUNIT_EXPECT_EQ(test, bed->memory[3].nacks, 0);
}

static void outlier__few_nacks_are_none(struct kunit *test)
{
	struct bed *bed = make_bed(test, PATHS);
	u32 i;

	for (i = 0; i < PATHS; i++)
		timely_ndp_paths_ack(&bed->p, i);
	for (i = 0; i < 3; i++)
		timely_ndp_paths_nack(&bed->p, 3);
	KUNIT_EXPECT_EQ(test, round_of(bed, 0), (1ULL << PATHS) - 1);
}

/* In an incast most packets of all paths are trimmed. */
static void outlier__not_if_all_are_trimmed(struct kunit *test)
{
	struct bed *bed = make_bed(test, PATHS);
	u32 i;

	for (i = 0; i < 10 * PATHS; i++) {
		if (i % 10 == 0)
			timely_ndp_paths_ack(&bed->p, i % PATHS);
		else
			timely_ndp_paths_nack(&bed->p, i % PATHS);
	}
	KUNIT_EXPECT_EQ(test, round_of(bed, 0), (1ULL << PATHS) - 1);
	KUNIT_EXPECT_EQ(test, bed->p.outliers, 0);
}

static void outlier__losses(struct kunit *test)
{
	struct bed *bed = make_bed(test, 2);

	timely_ndp_paths_loss(&bed->p, 1);
	KUNIT_EXPECT_EQ(test, round_of(bed, 0), 3);
	timely_ndp_paths_loss(&bed->p, 1);
	KUNIT_EXPECT_EQ(test, round_of(bed, 0), 1);
	/* A retransmission has no other path then. */
	KUNIT_EXPECT_EQ(test, timely_ndp_paths_next(&bed->p, 0, 0), 0);
	set_up(test, bed, 4);
	timely_ndp_paths_loss(&bed->p, 0);
	timely_ndp_paths_loss(&bed->p, 1);
	timely_ndp_paths_loss(&bed->p, 1);
	timely_ndp_paths_loss(&bed->p, 2);
	timely_ndp_paths_loss(&bed->p, 3);
	KUNIT_EXPECT_EQ(test, round_of(bed, 0), 15);
}

/* Of 256 paths the 64 of a round lose one packet each, and one of them three: less than three times
 * the mean of the others, plus one.
 */
static void outlier__losses_of_a_round(struct kunit *test)
{
	struct bed *bed = make_bed(test, TIMELY_NDP_MAX_PATHS);
	u32 i;

	for (i = 0; i < ROUND; i++)
		timely_ndp_paths_loss(&bed->p, timely_ndp_paths_next(&bed->p, 0, NONE));
	for (i = 0; i < 2; i++)
		timely_ndp_paths_loss(&bed->p, bed->memory[0].order);
	timely_ndp_paths_next(&bed->p, 0, NONE);
	KUNIT_EXPECT_EQ(test, bed->p.outliers, 0);
	/* With five it is an outlier. */
	for (i = 0; i < 2; i++)
		timely_ndp_paths_loss(&bed->p, bed->memory[0].order);
	while (bed->p.at < ROUND)
		timely_ndp_paths_next(&bed->p, 0, NONE);
	timely_ndp_paths_next(&bed->p, 0, NONE);
	KUNIT_EXPECT_EQ(test, bed->p.outliers, 1);
}

/* At least half of the paths stay: of three outliers among five, only two are left out. */
static void outlier__never_more_than_half(struct kunit *test)
{
	static const u32 losses[] = { 32, 10, 3, 0, 0 };
	struct bed *bed = make_bed(test, ARRAY_SIZE(losses));
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(losses); i++)
		for (j = 0; j < losses[i]; j++)
			timely_ndp_paths_loss(&bed->p, i);
	KUNIT_EXPECT_EQ(test, round_of(bed, 0), 0x1c);
	KUNIT_EXPECT_EQ(test, round_of(bed, 1), 0x1c);
}

/* A path that is an outlier again and again is left out for up to 64 ms. */
static void outlier__for_longer_each_time(struct kunit *test)
{
	struct bed *bed = make_bed(test, PATHS);
	u64 now = 0, until;
	u32 i, times;

	for (times = 0; times < 10; times++) {
		for (i = 0; i < 4; i++)
			timely_ndp_paths_loss(&bed->p, 7);
		round_of(bed, now);
		until = bed->memory[7].out_until_ns;
		KUNIT_EXPECT_EQ_MSG(test, until - now, OUT_NS << min(times, 6U), "time %u", times);
		now = until;
		round_of(bed, now);
	}
	/* Later answers make up for it. */
	for (i = 0; i < 16 * PATHS * 3; i++)
		timely_ndp_paths_ack(&bed->p, i % PATHS);
	KUNIT_EXPECT_EQ(test, bed->memory[7].strikes, 3);
	/* The scoreboard was halved, so old answers lose weight. */
	KUNIT_EXPECT_LT(test, bed->memory[7].acks, 17);
}

/* One of 16 paths is dead, and a packet leaves every 1.2 us for 300 ms. ACKs need 100 us, a loss is
 * known after 400 us. The path is left out for 1, 2, 4, ... 64 ms, so few packets are lost.
 */
static void outlier__a_dead_path_costs_little(struct kunit *test)
{
	enum { DEAD = 5, ACK_AFTER = 83, LOSS_AFTER = 333, PACKETS = 250000 };
	struct bed *bed = make_bed(test, 16);
	u8 took[512] = {};
	u32 i, lost = 0;

	for (i = 0; i < PACKETS; i++) {
		u8 path = timely_ndp_paths_next(&bed->p, i * 1200ULL, NONE);

		took[i % 512] = path;
		lost += path == DEAD;
		path = took[(i - ACK_AFTER) % 512];
		if (i >= ACK_AFTER && path != DEAD)
			timely_ndp_paths_ack(&bed->p, path);
		if (i >= LOSS_AFTER && took[(i - LOSS_AFTER) % 512] == DEAD)
			timely_ndp_paths_loss(&bed->p, DEAD);
	}
	KUNIT_EXPECT_EQ(test, bed->memory[DEAD].strikes, 6);
	KUNIT_EXPECT_LT(test, lost, 400);
}

static struct kunit_case ndp_paths_cases[] = {
	KUNIT_CASE(init__checks_the_number),
	KUNIT_CASE(next__each_path_once_in_a_round),
	KUNIT_CASE(next__in_random_order),
	KUNIT_CASE(next__keeps_the_order),
	KUNIT_CASE(next__some_of_many_paths),
	KUNIT_CASE(next__avoids_a_path),
	KUNIT_CASE(nack__moves_the_path),
	KUNIT_CASE(answers__of_unknown_paths_are_ignored),
	KUNIT_CASE(outlier__many_nacks),
	KUNIT_CASE(outlier__few_nacks_are_none),
	KUNIT_CASE(outlier__not_if_all_are_trimmed),
	KUNIT_CASE(outlier__losses),
	KUNIT_CASE(outlier__losses_of_a_round),
	KUNIT_CASE(outlier__never_more_than_half),
	KUNIT_CASE(outlier__for_longer_each_time),
	KUNIT_CASE(outlier__a_dead_path_costs_little),
	{}
};

static struct kunit_suite ndp_paths_suite = {
	.name = "timely_ndp_paths",
	.test_cases = ndp_paths_cases,
};

kunit_test_suite(ndp_paths_suite);
