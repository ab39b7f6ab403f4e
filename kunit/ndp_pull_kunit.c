// SPDX-License-Identifier: GPL-2.0
/* Tests of NDP's pull queue (ndp_pull.c). Cases are named function__case. */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/string.h>

#include <timely/engine/ndp_pull.h>

#define FLOWS	4
/* At 10 Gb/s a byte takes .8 ns. */
#define KBPS	10000000
#define BYTES	1000
#define NS	800

struct bed {
	struct timely_ndp_pull q;
	struct timely_ndp_pull_flow flows[FLOWS];
};

static struct bed *make_bed(struct kunit *test, u32 slack_ns)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, bed);
	KUNIT_ASSERT_EQ(test, timely_ndp_pull_init(&bed->q, KBPS, slack_ns), 0);
	for (i = 0; i < FLOWS; i++)
		bed->flows[i].bytes = BYTES;
	return bed;
}

/* Index of the stream that gets the pull at @now_ns; -1 if none does. */
static int next(struct bed *bed, u64 now_ns)
{
	struct timely_ndp_pull_flow *flow = timely_ndp_pull_next(&bed->q, now_ns);

	return flow ? flow - bed->flows : -1;
}

static void init__needs_a_rate(struct kunit *test)
{
	struct timely_ndp_pull q;

	KUNIT_EXPECT_EQ(test, timely_ndp_pull_init(&q, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_pull_init(&q, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, timely_ndp_pull_set_rate(&q, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, q.rate_kbps, 1);
	KUNIT_EXPECT_EQ(test, timely_ndp_pull_due_ns(&q), U64_MAX);
}

static void next__at_the_link_rate(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);
	u64 now = 1000000;
	u32 i;

	KUNIT_EXPECT_EQ(test, next(bed, now), -1);
	timely_ndp_pull_set(&bed->q, &bed->flows[0], 1000);
	for (i = 0; i < 1000; i++) {
		KUNIT_EXPECT_LE(test, timely_ndp_pull_due_ns(&bed->q), now);
		KUNIT_EXPECT_EQ(test, next(bed, now), 0);
		KUNIT_EXPECT_EQ(test, next(bed, now + NS - 2), -1);
		now += NS;
	}
	KUNIT_EXPECT_EQ(test, bed->flows[0].wanted, 0);
	KUNIT_EXPECT_EQ(test, timely_ndp_pull_due_ns(&bed->q), U64_MAX);
	KUNIT_EXPECT_EQ(test, bed->q.pulls, 1000);
}

/* 400 Gb/s: a packet of 1538 bytes takes 30.76 ns, and no part of a ns is lost. */
static void next__keeps_parts_of_a_ns(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);
	u32 i;

	timely_ndp_pull_set_rate(&bed->q, 400000000);
	bed->flows[0].bytes = 1538;
	timely_ndp_pull_set(&bed->q, &bed->flows[0], U32_MAX);
	for (i = 0; i < 100000; i++)
		KUNIT_ASSERT_EQ(test, next(bed, timely_ndp_pull_due_ns(&bed->q)), 0);
	KUNIT_EXPECT_GE(test, timely_ndp_pull_due_ns(&bed->q), 3075990);
	KUNIT_EXPECT_LE(test, timely_ndp_pull_due_ns(&bed->q), 3076000);
}

static void next__the_longest_packet_at_the_lowest_rate(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);

	timely_ndp_pull_set_rate(&bed->q, 1);
	bed->flows[0].bytes = U32_MAX;
	timely_ndp_pull_set(&bed->q, &bed->flows[0], 2);
	KUNIT_EXPECT_EQ(test, next(bed, 0), 0);
	KUNIT_EXPECT_EQ(test, timely_ndp_pull_due_ns(&bed->q), 65536 * 8000000ULL);
}

static void next__in_turn(struct kunit *test)
{
	static const int turns[] = { 0, 1, 2, 0, 2, 0, 2, 2 };
	struct bed *bed = make_bed(test, 0);
	u32 i;

	timely_ndp_pull_set(&bed->q, &bed->flows[0], 3);
	timely_ndp_pull_set(&bed->q, &bed->flows[1], 1);
	timely_ndp_pull_set(&bed->q, &bed->flows[2], 4);
	for (i = 0; i < ARRAY_SIZE(turns); i++)
		KUNIT_EXPECT_EQ_MSG(test, next(bed, i * NS), turns[i], "turn %u", i);
	KUNIT_EXPECT_EQ(test, next(bed, 100 * NS), -1);
}

static void next__a_new_stream_is_last(struct kunit *test)
{
	static const int turns[] = { 1, 0, 2, 1, 0, 2 };
	struct bed *bed = make_bed(test, 0);
	u32 i;

	timely_ndp_pull_set(&bed->q, &bed->flows[0], 10);
	timely_ndp_pull_set(&bed->q, &bed->flows[1], 10);
	KUNIT_EXPECT_EQ(test, next(bed, 0), 0);
	timely_ndp_pull_set(&bed->q, &bed->flows[2], 10);
	/* The number of pulls may change without another turn. */
	timely_ndp_pull_set(&bed->q, &bed->flows[1], 20);
	for (i = 0; i < ARRAY_SIZE(turns); i++)
		KUNIT_EXPECT_EQ_MSG(test, next(bed, (i + 1) * NS), turns[i], "turn %u", i);
}

static void next__by_priority(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);

	bed->flows[1].priority = 1;
	timely_ndp_pull_set(&bed->q, &bed->flows[0], 2);
	timely_ndp_pull_set(&bed->q, &bed->flows[1], 2);
	KUNIT_EXPECT_EQ(test, next(bed, 0), 1);
	KUNIT_EXPECT_EQ(test, next(bed, NS), 1);
	KUNIT_EXPECT_EQ(test, next(bed, 2 * NS), 0);
	/* A stream in the queue changes its priority; one outside only notes it. */
	timely_ndp_pull_set(&bed->q, &bed->flows[2], 1);
	timely_ndp_pull_move(&bed->q, &bed->flows[2], 200, 200);
	KUNIT_EXPECT_EQ(test, bed->flows[2].priority, TIMELY_NDP_PRIORITIES - 1);
	KUNIT_EXPECT_EQ(test, bed->flows[2].age, TIMELY_NDP_AGES - 1);
	timely_ndp_pull_move(&bed->q, &bed->flows[3], 3, 0);
	KUNIT_EXPECT_EQ(test, bed->q.flows, 2);
	KUNIT_EXPECT_EQ(test, next(bed, 3 * NS), 2);
	KUNIT_EXPECT_EQ(test, next(bed, 4 * NS), 0);
}

static void age__grows_with_the_message(struct kunit *test)
{
	static const struct {
		u64 bytes;
		u8 age;
	} ages[] = {
		{ 0, 0 }, { 16383, 0 }, { 16384, 1 }, { 131071, 1 }, { 131072, 2 },
		{ 1048575, 2 }, { 1048576, 3 }, { U64_MAX, 3 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ages); i++)
		KUNIT_EXPECT_EQ(test, timely_ndp_pull_age(ages[i].bytes), ages[i].age);
}

/* Count the pulls that each stream gets out of the next 64. */
static void count_pulls(struct bed *bed, u32 *pulls)
{
	u32 i;

	memset(pulls, 0, FLOWS * sizeof(*pulls));
	for (i = 0; i < 64; i++)
		pulls[next(bed, timely_ndp_pull_due_ns(&bed->q))]++;
}

/* Of eight pulls one is left to the streams of higher ages, of these again one of eight. */
static void next__short_messages_first(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);
	u32 pulls[FLOWS], i;

	for (i = 0; i < FLOWS; i++)
		timely_ndp_pull_set(&bed->q, &bed->flows[i], 1000);
	timely_ndp_pull_move(&bed->q, &bed->flows[2], 0, 1);
	timely_ndp_pull_move(&bed->q, &bed->flows[3], 0, 3);
	count_pulls(bed, pulls);
	KUNIT_EXPECT_EQ(test, pulls[0], 28);
	KUNIT_EXPECT_EQ(test, pulls[1], 28);
	KUNIT_EXPECT_EQ(test, pulls[2], 7);
	KUNIT_EXPECT_EQ(test, pulls[3], 1);

	/* Pulls of a higher priority do not use up a turn of the long message. */
	timely_ndp_pull_set(&bed->q, &bed->flows[1], 0);
	timely_ndp_pull_set(&bed->q, &bed->flows[3], 0);
	for (i = 0; i < 64; i++) {
		timely_ndp_pull_move(&bed->q, &bed->flows[1], 6, 0);
		timely_ndp_pull_set(&bed->q, &bed->flows[1], i % 8 == 0);
		pulls[next(bed, timely_ndp_pull_due_ns(&bed->q))]++;
	}
	KUNIT_EXPECT_EQ(test, pulls[1], 28 + 8);
	KUNIT_EXPECT_EQ(test, pulls[2], 7 + 7);
	timely_ndp_pull_move(&bed->q, &bed->flows[1], 0, 0);
	timely_ndp_pull_set(&bed->q, &bed->flows[1], 1000);
	timely_ndp_pull_set(&bed->q, &bed->flows[3], 1000);

	/* The only stream of a priority gets all pulls, whatever its age. */
	timely_ndp_pull_move(&bed->q, &bed->flows[3], 1, 3);
	count_pulls(bed, pulls);
	KUNIT_EXPECT_EQ(test, pulls[3], 64);

	/* Streams of the same age get the same. */
	for (i = 0; i < FLOWS; i++)
		timely_ndp_pull_move(&bed->q, &bed->flows[i], 0, 2);
	count_pulls(bed, pulls);
	for (i = 0; i < FLOWS; i++)
		KUNIT_EXPECT_EQ(test, pulls[i], 16);
}

static void next__makes_up_for_a_late_caller(struct kunit *test)
{
	struct bed *bed = make_bed(test, 5 * NS);
	u32 i;

	timely_ndp_pull_set(&bed->q, &bed->flows[0], 100);
	KUNIT_EXPECT_EQ(test, next(bed, 1000 * NS), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, next(bed, 1000 * NS), 0);
	KUNIT_EXPECT_EQ(test, next(bed, 1000 * NS), -1);
	/* A caller that is three packets late sends three more. */
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, next(bed, 1004 * NS), 0);
	KUNIT_EXPECT_EQ(test, next(bed, 1004 * NS), -1);
}

static void leave_room__for_other_packets(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);

	timely_ndp_pull_set(&bed->q, &bed->flows[0], 100);
	KUNIT_EXPECT_EQ(test, next(bed, 1000 * NS), 0);
	timely_ndp_pull_leave_room(&bed->q, BYTES, 2000 * NS);
	KUNIT_EXPECT_EQ(test, timely_ndp_pull_due_ns(&bed->q), 2001 * NS);
	KUNIT_EXPECT_EQ(test, next(bed, 2001 * NS - 1), -1);
	KUNIT_EXPECT_EQ(test, next(bed, 2001 * NS), 0);
}

/* The time of a packet that was shorter than its pull: at most the slack is made up for. */
static void give_back__what_a_short_packet_left(struct kunit *test)
{
	struct bed *bed = make_bed(test, 5 * NS);
	u64 due;
	u32 i;

	timely_ndp_pull_give_back(&bed->q, BYTES);
	timely_ndp_pull_set(&bed->q, &bed->flows[0], 100);
	KUNIT_EXPECT_EQ(test, next(bed, 1000 * NS), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, next(bed, 1000 * NS), 0);
	due = timely_ndp_pull_due_ns(&bed->q);
	timely_ndp_pull_give_back(&bed->q, BYTES - 100);
	KUNIT_EXPECT_GE(test, due - timely_ndp_pull_due_ns(&bed->q), NS * 9 / 10 - 1);
	KUNIT_EXPECT_LE(test, due - timely_ndp_pull_due_ns(&bed->q), NS * 9 / 10);
	timely_ndp_pull_give_back(&bed->q, U32_MAX);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, next(bed, 1001 * NS), 0);
	KUNIT_EXPECT_EQ(test, next(bed, 1001 * NS), -1);
}

/* More than the link rate arrives: pulls wait for little more than the slack. */
static void leave_room__of_a_wrong_rate(struct kunit *test)
{
	struct bed *bed = make_bed(test, 5 * NS);
	u32 i;

	timely_ndp_pull_set(&bed->q, &bed->flows[0], 100);
	for (i = 0; i < 1000; i++)
		timely_ndp_pull_leave_room(&bed->q, BYTES, 1000 * NS);
	KUNIT_EXPECT_GE(test, timely_ndp_pull_due_ns(&bed->q), 1005 * NS);
	KUNIT_EXPECT_LE(test, timely_ndp_pull_due_ns(&bed->q), 1006 * NS);
}

/* A stream of the lowest age counts with each priority; an empty queue has no long messages. */
static void only_long__of_all_priorities(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);
	u32 i;

	KUNIT_EXPECT_FALSE(test, timely_ndp_pull_only_long(&bed->q));
	timely_ndp_pull_move(&bed->q, &bed->flows[0], 3, 1);
	timely_ndp_pull_set(&bed->q, &bed->flows[0], 1);
	KUNIT_EXPECT_TRUE(test, timely_ndp_pull_only_long(&bed->q));
	for (i = 0; i < TIMELY_NDP_PRIORITIES; i++) {
		timely_ndp_pull_move(&bed->q, &bed->flows[1], i, 0);
		timely_ndp_pull_set(&bed->q, &bed->flows[1], 1);
		KUNIT_EXPECT_FALSE(test, timely_ndp_pull_only_long(&bed->q));
		timely_ndp_pull_set(&bed->q, &bed->flows[1], 0);
		KUNIT_EXPECT_TRUE(test, timely_ndp_pull_only_long(&bed->q));
	}
}

static void set__0_takes_a_stream_out(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);
	u32 i;

	/* The first, the last and the only stream. */
	for (i = 0; i < 3; i++)
		timely_ndp_pull_set(&bed->q, &bed->flows[i], 5);
	timely_ndp_pull_set(&bed->q, &bed->flows[0], 0);
	KUNIT_EXPECT_EQ(test, next(bed, 0), 1);
	timely_ndp_pull_set(&bed->q, &bed->flows[1], 0);
	KUNIT_EXPECT_EQ(test, next(bed, NS), 2);
	timely_ndp_pull_set(&bed->q, &bed->flows[2], 0);
	KUNIT_EXPECT_EQ(test, bed->q.flows, 0);
	KUNIT_EXPECT_EQ(test, next(bed, 2 * NS), -1);
	timely_ndp_pull_set(&bed->q, &bed->flows[2], 0);
	KUNIT_EXPECT_EQ(test, bed->q.flows, 0);
}

static struct kunit_case ndp_pull_cases[] = {
	KUNIT_CASE(init__needs_a_rate),
	KUNIT_CASE(next__at_the_link_rate),
	KUNIT_CASE(next__keeps_parts_of_a_ns),
	KUNIT_CASE(next__the_longest_packet_at_the_lowest_rate),
	KUNIT_CASE(next__in_turn),
	KUNIT_CASE(next__a_new_stream_is_last),
	KUNIT_CASE(next__by_priority),
	KUNIT_CASE(age__grows_with_the_message),
	KUNIT_CASE(next__short_messages_first),
	KUNIT_CASE(next__makes_up_for_a_late_caller),
	KUNIT_CASE(leave_room__for_other_packets),
	KUNIT_CASE(leave_room__of_a_wrong_rate),
	KUNIT_CASE(only_long__of_all_priorities),
	KUNIT_CASE(give_back__what_a_short_packet_left),
	KUNIT_CASE(set__0_takes_a_stream_out),
	{}
};

static struct kunit_suite ndp_pull_suite = {
	.name = "timely_ndp_pull",
	.test_cases = ndp_pull_cases,
};

kunit_test_suite(ndp_pull_suite);
