// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the timing wheel: hand-made cases for each promise of <timely/engine/wheel.h>, then
 * random operations compared with a simple model (wheel_model.h). Cases are named function__case.
 *
 * In the hand-made cases, times are counted in slots (ticks) of the wheel, plus or minus a ns.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>

#include <timely/engine/wheel.h>

#include "wheel_model.h"

#define NODES		1024
#define BLOCK		((u64)TIMELY_WHEEL_SLOTS)
/* Random operations for each width of slot. */
#define STEPS		20000
#define HOUR_NS		3600000000000ULL
#define DAY_NS		(24 * HOUR_NS)
#define SHIFT		10

struct bed {
	struct timely_wheel wheel;
	struct timely_wheel_node nodes[NODES];
};

/* Initial slots: the first, the ends of a block and of the wheel's range, a late time. */
static const u64 starts[] = {
	0, 1, BLOCK - 1, BLOCK, 5000, (BLOCK - 1) * BLOCK, BLOCK * BLOCK - 1, BLOCK * BLOCK,
	(1ULL << 43) - 1, 1ULL << 43, (1ULL << 43) + BLOCK - 1,
};

/* Distances in slots on both sides of each limit. */
static const u64 distances[] = {
	0, 1, 2, 63, 64, 65, BLOCK - 65, BLOCK - 64, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1,
	2 * BLOCK - 2, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1,
	3 * BLOCK + 77, 63 * BLOCK, 64 * BLOCK, 65 * BLOCK - 1, (BLOCK - 2) * BLOCK,
	(BLOCK - 1) * BLOCK - 1, (BLOCK - 1) * BLOCK, (BLOCK - 1) * BLOCK + 1, BLOCK * BLOCK - 1,
	BLOCK * BLOCK, BLOCK * BLOCK + 1, (BLOCK + 1) * BLOCK - 1, (BLOCK + 1) * BLOCK,
	(BLOCK + 1) * BLOCK + 1, 2 * BLOCK * BLOCK - 1,
	2 * BLOCK * BLOCK, 5 * BLOCK * BLOCK + 12345,
};

static struct bed *make_bed(struct kunit *test, u8 shift, u64 tick)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	timely_wheel_init(&bed->wheel, shift, tick << shift);
	return bed;
}

static u64 time_of(const struct bed *bed, u64 tick)
{
	return tick << bed->wheel.shift;
}

static void add_at(struct bed *bed, u32 i, u64 tick)
{
	timely_wheel_add(&bed->wheel, &bed->nodes[i], time_of(bed, tick));
}

/* Index of the node that expires; NODES for none. */
static u32 expire_ns(struct bed *bed, u64 now_ns)
{
	struct timely_wheel_node *node = timely_wheel_expire(&bed->wheel, now_ns);

	return node ? (u32)(node - bed->nodes) : NODES;
}

static u32 expire_at(struct bed *bed, u64 tick)
{
	return expire_ns(bed, time_of(bed, tick));
}

static u32 drain(struct bed *bed, u64 now_ns)
{
	u32 n = 0;

	while (n <= NODES && expire_ns(bed, now_ns) < NODES)
		n++;
	return n;
}

static void start_again(struct bed *bed, u8 shift, u64 tick)
{
	memset(bed->nodes, 0, sizeof(bed->nodes));
	timely_wheel_init(&bed->wheel, shift, tick << shift);
}

#define EXPECT_NEXT(test, bed, tick) \
	KUNIT_EXPECT_EQ(test, timely_wheel_next_ns(&(bed)->wheel), time_of(bed, tick))

#define EXPECT_EMPTY(test, bed) \
	KUNIT_EXPECT_EQ(test, timely_wheel_next_ns(&(bed)->wheel), U64_MAX)

/* Node i expires at the start of that slot and not a ns earlier, and no other node expires. */
#define EXPECT_ONLY(test, bed, i, tick) do {				\
	KUNIT_EXPECT_EQ(test, expire_ns(bed, time_of(bed, tick) - 1), NODES); \
	KUNIT_EXPECT_EQ(test, expire_at(bed, tick), i);			\
	KUNIT_EXPECT_FALSE(test, timely_wheel_queued(&(bed)->nodes[i]));	\
	KUNIT_EXPECT_EQ(test, expire_at(bed, tick), NODES);		\
	EXPECT_EMPTY(test, bed);					\
} while (0)

/*
 * Sleep until next_ns and call expire, until a node expires. Counts calls without a node, and gives
 * up when next_ns does not change.
 */
static u32 sleep_and_ask(struct bed *bed, u64 *now_ns, u32 *vain)
{
	u32 i = NODES;

	while (i == NODES && *vain < 1000) {
		u64 next_ns = timely_wheel_next_ns(&bed->wheel);

		if (next_ns == U64_MAX)
			break;
		*now_ns = max(*now_ns, next_ns);
		i = expire_ns(bed, *now_ns);
		*vain += i == NODES;
	}
	return i;
}

/* ---- an empty wheel ---- */

static void init__is_empty(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i;
	u8 shift;

	for (shift = TIMELY_WHEEL_MIN_SHIFT; shift <= TIMELY_WHEEL_MAX_SHIFT; shift++) {
		for (i = 0; i < ARRAY_SIZE(starts); i++) {
			/* The wheel must not depend on what its memory contains. */
			memset(&bed->wheel, 0xa5, sizeof(bed->wheel));
			start_again(bed, shift, starts[i]);
			EXPECT_EMPTY(test, bed);
			KUNIT_EXPECT_EQ(test, expire_at(bed, starts[i]), NODES);
			KUNIT_EXPECT_EQ(test, expire_at(bed, starts[i] + WHEEL_SPAN), NODES);
			EXPECT_EMPTY(test, bed);
		}
	}
}

static void init__forgets_what_was_in_it(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 5);

	add_at(bed, 0, 6);
	add_at(bed, 1, 5 + 2 * BLOCK);
	start_again(bed, SHIFT, 5);
	EXPECT_EMPTY(test, bed);
	KUNIT_EXPECT_EQ(test, expire_at(bed, WHEEL_SPAN), NODES);
}

static void init__in_the_middle_of_a_slot(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);

	timely_wheel_init(&bed->wheel, SHIFT, time_of(bed, 7) + 500);
	timely_wheel_add(&bed->wheel, &bed->nodes[0], time_of(bed, 7) + 501);
	EXPECT_ONLY(test, bed, 0, 8);
}

static void queued__from_add_to_the_end(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	struct timely_wheel_node *node = &bed->nodes[0];

	KUNIT_EXPECT_FALSE(test, timely_wheel_queued(node));
	add_at(bed, 0, 3);
	KUNIT_EXPECT_TRUE(test, timely_wheel_queued(node));
	timely_wheel_move(&bed->wheel, node, time_of(bed, 3 * BLOCK));
	KUNIT_EXPECT_TRUE(test, timely_wheel_queued(node));
	timely_wheel_del(&bed->wheel, node);
	KUNIT_EXPECT_FALSE(test, timely_wheel_queued(node));
	add_at(bed, 0, 3);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 2), NODES);
	KUNIT_EXPECT_TRUE(test, timely_wheel_queued(node));
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3), 0);
	KUNIT_EXPECT_FALSE(test, timely_wheel_queued(node));
}

/* ---- the slot of a time ---- */

static void add__is_rounded_up_to_a_slot(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u8 shift;

	for (shift = TIMELY_WHEEL_MIN_SHIFT; shift <= TIMELY_WHEEL_MAX_SHIFT; shift++) {
		u64 slot = 1ULL << shift;
		const struct {
			u64 due_ns;
			u64 tick;
		} cases[] = {
			{ 10 * slot - 1, 10 }, { 10 * slot, 10 }, { 10 * slot + 1, 11 },
			{ 11 * slot - 1, 11 }, { 11 * slot, 11 },
		};
		u32 i;

		for (i = 0; i < ARRAY_SIZE(cases); i++) {
			start_again(bed, shift, 3);
			timely_wheel_add(&bed->wheel, &bed->nodes[0], cases[i].due_ns);
			EXPECT_NEXT(test, bed, cases[i].tick);
			KUNIT_EXPECT_EQ(test, bed->nodes[0].due_ns, cases[i].due_ns);
			EXPECT_ONLY(test, bed, 0, cases[i].tick);
		}
	}
}

static void add__keeps_to_its_slot_from_everywhere(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 s, d;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		for (d = 0; d < ARRAY_SIZE(distances); d++) {
			u64 tick = starts[s] + distances[d];

			if (!tick)
				continue;
			/* A ns before the slot starts, nothing expires. */
			start_again(bed, SHIFT, starts[s]);
			add_at(bed, 0, tick);
			EXPECT_ONLY(test, bed, 0, tick);
			/* One call, in the last ns of the slot. */
			start_again(bed, SHIFT, starts[s]);
			timely_wheel_add(&bed->wheel, &bed->nodes[0], time_of(bed, tick) - 1);
			KUNIT_EXPECT_EQ(test, expire_ns(bed, time_of(bed, tick + 1) - 1), 0);
			EXPECT_EMPTY(test, bed);
		}
	}
}

static void add__at_the_start_of_time(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);

	timely_wheel_add(&bed->wheel, &bed->nodes[0], 0);
	EXPECT_NEXT(test, bed, 0);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, 0), 0);
	timely_wheel_add(&bed->wheel, &bed->nodes[0], 1);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, 0), NODES);
	EXPECT_ONLY(test, bed, 0, 1);
}

static void add__past_time_is_due_now(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 5000);
	static const u64 past[] = { 0, 1, BLOCK - 1, BLOCK, 4999, 5000 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(past); i++) {
		add_at(bed, 0, past[i]);
		EXPECT_NEXT(test, bed, 5000);
		KUNIT_EXPECT_EQ(test, expire_at(bed, 5000), 0);
		KUNIT_EXPECT_EQ(test, bed->nodes[0].due_ns, time_of(bed, past[i]));
		EXPECT_EMPTY(test, bed);
	}
	/* The same for a wheel that a call has moved to a later time. */
	KUNIT_EXPECT_EQ(test, expire_at(bed, 70000), NODES);
	add_at(bed, 0, 5001);
	EXPECT_NEXT(test, bed, 70000);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 70000), 0);
}

/* A time within the present slot is rounded up: never early, less than a slot late. */
static void add__of_the_present_slot(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 9);
	u64 now_ns = time_of(bed, 9) + 300;

	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns), NODES);
	timely_wheel_add(&bed->wheel, &bed->nodes[0], now_ns - 300);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns), 0);
	timely_wheel_add(&bed->wheel, &bed->nodes[0], now_ns);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, time_of(bed, 10) - 1), NODES);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 10), 0);
}

static void add__never(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 1000);
	u64 now_ns = time_of(bed, 1000);
	u32 i;

	timely_wheel_add(&bed->wheel, &bed->nodes[0], U64_MAX);
	for (i = 0; i < 20; i++, now_ns += DAY_NS) {
		KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns), NODES);
		KUNIT_EXPECT_GT(test, timely_wheel_next_ns(&bed->wheel), now_ns);
	}
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + 365 * DAY_NS), NODES);
	KUNIT_EXPECT_TRUE(test, timely_wheel_queued(&bed->nodes[0]));
	timely_wheel_del(&bed->wheel, &bed->nodes[0]);
	EXPECT_EMPTY(test, bed);
}

/* One turn of the near ring, with a node in every fourth slot, across the wrap of the ring. */
static void add__wraps_the_near_level(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 4000);
	u32 i;

	for (i = 0; i < NODES; i++)
		add_at(bed, i, 4000 + 4 * (NODES - 1 - i));
	for (i = NODES; i--; ) {
		u64 tick = 4000 + 4 * (u64)(NODES - 1 - i);

		EXPECT_NEXT(test, bed, tick);
		KUNIT_EXPECT_EQ(test, expire_at(bed, tick), i);
		KUNIT_EXPECT_EQ(test, expire_at(bed, tick + 3), NODES);
	}
	EXPECT_EMPTY(test, bed);
}

/* One turn of the far ring, with a node in every fourth block. */
static void add__wraps_the_far_level(struct kunit *test)
{
	u64 start = 4000 * BLOCK + 17;
	struct bed *bed = make_bed(test, SHIFT, start);
	u64 now_ns = time_of(bed, start);
	u32 i, vain = 0;

	for (i = 0; i < NODES; i++)
		add_at(bed, i, start + 4 * BLOCK * (NODES - 1 - i) + i);
	for (i = NODES; i--; ) {
		u64 tick = start + 4 * BLOCK * (NODES - 1 - i) + i;

		vain = 0;
		KUNIT_EXPECT_EQ(test, sleep_and_ask(bed, &now_ns, &vain), i);
		KUNIT_EXPECT_EQ(test, now_ns, time_of(bed, tick));
		KUNIT_EXPECT_LE(test, vain, 1);
	}
	EXPECT_EMPTY(test, bed);
}

/* Many turns: no node is left behind for a later turn. */
static void add__no_node_is_left_after_many_turns(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u64 tick = 0;
	u32 i;

	for (i = 0; i < 20000; i++) {
		u64 to = tick + distances[i % ARRAY_SIZE(distances)] + i % 7;

		add_at(bed, i % NODES, to);
		if (to > tick)
			KUNIT_ASSERT_EQ(test, expire_ns(bed, time_of(bed, to) - 1), NODES);
		KUNIT_ASSERT_EQ(test, expire_at(bed, to), i % NODES);
		tick = to;
	}
	EXPECT_EMPTY(test, bed);
}

static void add__many_in_one_slot(struct kunit *test)
{
	static const u64 ticks[] = { 7, BLOCK - 1, BLOCK, 12345, WHEEL_SPAN + 5 };
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i, n;

	for (n = 0; n < ARRAY_SIZE(ticks); n++) {
		start_again(bed, SHIFT, 0);
		for (i = 0; i < NODES; i++)
			timely_wheel_add(&bed->wheel, &bed->nodes[i],
					 time_of(bed, ticks[n]) - i % (1 << SHIFT));
		KUNIT_EXPECT_EQ(test, drain(bed, time_of(bed, ticks[n]) - 1), 0);
		KUNIT_EXPECT_EQ(test, drain(bed, time_of(bed, ticks[n])), NODES);
		EXPECT_EMPTY(test, bed);
	}
}

/* ---- next ---- */

static void next__is_exact_within_the_near_level(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 s, d;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		start_again(bed, SHIFT, starts[s]);
		for (d = 0; d < BLOCK; d++) {
			add_at(bed, 0, starts[s] + d);
			if (timely_wheel_next_ns(&bed->wheel) != time_of(bed, starts[s] + d))
				break;
			timely_wheel_del(&bed->wheel, &bed->nodes[0]);
		}
		KUNIT_EXPECT_EQ(test, d, BLOCK);
	}
}

/* A far node costs one additional wake-up for its block; a node beyond the range costs one per
 * turn.
 */
static void next__looks_once_at_a_far_block(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 s, d;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		for (d = 0; d < ARRAY_SIZE(distances); d++) {
			u64 tick = starts[s] + distances[d], now_ns = time_of(bed, starts[s]);
			u32 vain = 0;

			start_again(bed, SHIFT, starts[s]);
			add_at(bed, 0, tick);
			KUNIT_EXPECT_EQ(test, sleep_and_ask(bed, &now_ns, &vain), 0);
			KUNIT_EXPECT_EQ(test, now_ns, time_of(bed, tick));
			KUNIT_EXPECT_LE(test, vain, 1 + div64_u64(distances[d] + BLOCK,
								  WHEEL_SPAN - BLOCK));
		}
	}
}

static void next__is_the_earliest(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 100);

	add_at(bed, 0, 100 + 3 * BLOCK);
	KUNIT_EXPECT_LE(test, timely_wheel_next_ns(&bed->wheel), time_of(bed, 100 + 3 * BLOCK));
	KUNIT_EXPECT_GT(test, timely_wheel_next_ns(&bed->wheel), time_of(bed, 100 + BLOCK));
	add_at(bed, 1, 900);
	EXPECT_NEXT(test, bed, 900);
	add_at(bed, 2, 1000);
	EXPECT_NEXT(test, bed, 900);
	add_at(bed, 3, 899);
	EXPECT_NEXT(test, bed, 899);
	timely_wheel_del(&bed->wheel, &bed->nodes[3]);
	EXPECT_NEXT(test, bed, 900);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 900), 1);
	EXPECT_NEXT(test, bed, 1000);
	timely_wheel_del(&bed->wheel, &bed->nodes[2]);
	KUNIT_EXPECT_GT(test, timely_wheel_next_ns(&bed->wheel), time_of(bed, 100 + BLOCK));
	timely_wheel_del(&bed->wheel, &bed->nodes[0]);
	EXPECT_EMPTY(test, bed);
}

/* A block with nodes that were added when it was far, and nodes that were added when it was near.
 */
static void next__between_far_and_near(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);

	add_at(bed, 0, 3 * BLOCK + 3);
	add_at(bed, 1, 3 * BLOCK + 7);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 2 * BLOCK + 100), NODES);
	/* Block 3 is the next one now, so these nodes are added to the near ring. */
	add_at(bed, 2, 3 * BLOCK + 5);
	add_at(bed, 3, 3 * BLOCK + 9);
	KUNIT_EXPECT_LE(test, timely_wheel_next_ns(&bed->wheel), time_of(bed, 3 * BLOCK + 3));
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK), NODES);
	EXPECT_NEXT(test, bed, 3 * BLOCK + 3);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 3), 0);
	EXPECT_NEXT(test, bed, 3 * BLOCK + 5);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 5), 2);
	EXPECT_NEXT(test, bed, 3 * BLOCK + 7);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 7), 1);
	EXPECT_NEXT(test, bed, 3 * BLOCK + 9);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 9), 3);
	EXPECT_EMPTY(test, bed);
}

/* The next time is that of nodes in the far ring, though a later node is in the near ring. */
static void next__far_before_near(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i;

	for (i = 0; i < 20; i++)
		add_at(bed, i, 3 * BLOCK + 3);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 2 * BLOCK + 100), NODES);
	add_at(bed, 20, 3 * BLOCK + 5);
	KUNIT_EXPECT_LE(test, timely_wheel_next_ns(&bed->wheel), time_of(bed, 3 * BLOCK + 3));
	KUNIT_EXPECT_EQ(test, drain(bed, time_of(bed, 3 * BLOCK + 3)), 20);
	EXPECT_ONLY(test, bed, 20, 3 * BLOCK + 5);
}

/* ---- moving nodes to the near ring ---- */

static u32 count_far(const struct bed *bed, u64 block)
{
	const struct timely_wheel_node *node;
	u32 n = 0;

	for (node = bed->wheel.far[block % TIMELY_WHEEL_SLOTS]; node; node = node->next)
		n++;
	return n;
}

/*
 * Nodes of the next block move to the near ring in calls of add and expire: at most one node per
 * call, so that no call takes long, and all nodes before they are due.
 */
static void spread__a_node_with_each_call(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i, left, before = NODES - 1;

	for (i = 1; i < NODES; i++)
		add_at(bed, i, 3 * BLOCK + i);
	KUNIT_EXPECT_EQ(test, count_far(bed, 3), NODES - 1);
	/* No node moves before its block is the next one. */
	KUNIT_EXPECT_EQ(test, expire_at(bed, BLOCK), NODES);
	add_at(bed, 0, BLOCK + 1);
	KUNIT_EXPECT_EQ(test, expire_at(bed, BLOCK + 1), 0);
	KUNIT_EXPECT_EQ(test, count_far(bed, 3), NODES - 1);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 2 * BLOCK), NODES);
	/* A node that is added and expires repeatedly makes two calls each time. */
	for (i = 0; i < NODES / 2; i++) {
		add_at(bed, 0, 2 * BLOCK + 1 + i);
		left = count_far(bed, 3);
		KUNIT_EXPECT_GE(test, left + 1, before);
		KUNIT_EXPECT_EQ(test, expire_at(bed, 2 * BLOCK + 1 + i), 0);
		before = count_far(bed, 3);
		KUNIT_EXPECT_GE(test, before + 1, left);
	}
	KUNIT_EXPECT_EQ(test, before, 0);
	for (i = 1; i < NODES; i++)
		KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + i), i);
	EXPECT_EMPTY(test, bed);
}

/* ---- delete ---- */

static void del__from_every_place(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 s, d;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		for (d = 0; d < ARRAY_SIZE(distances); d++) {
			u64 tick = starts[s] + distances[d];

			start_again(bed, SHIFT, starts[s]);
			add_at(bed, 0, tick);
			timely_wheel_del(&bed->wheel, &bed->nodes[0]);
			KUNIT_EXPECT_FALSE(test, timely_wheel_queued(&bed->nodes[0]));
			EXPECT_EMPTY(test, bed);
			KUNIT_EXPECT_EQ(test, expire_at(bed, tick + 1), NODES);
			/* After the nodes of its block have moved to the near ring. */
			add_at(bed, 0, tick + BLOCK + 10);
			KUNIT_EXPECT_EQ(test, expire_at(bed, tick + BLOCK + 9), NODES);
			timely_wheel_del(&bed->wheel, &bed->nodes[0]);
			EXPECT_EMPTY(test, bed);
			KUNIT_EXPECT_EQ(test, expire_at(bed, tick + 2 * BLOCK), NODES);
		}
	}
}

/* Three nodes in a slot, deleted one by one in each order. */
static void del__of_several_in_a_slot(struct kunit *test)
{
	static const u8 orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	static const u64 ticks[] = { 10, 2 * BLOCK + 10, WHEEL_SPAN + BLOCK + 10 };
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i, t, gone;

	for (i = 0; i < ARRAY_SIZE(orders) * 3 * ARRAY_SIZE(ticks); i++) {
		const u8 *order = orders[i / 3 % ARRAY_SIZE(orders)];
		u64 tick = ticks[i / 3 / ARRAY_SIZE(orders)];

		start_again(bed, SHIFT, 0);
		for (t = 0; t < 3; t++)
			add_at(bed, t, tick);
		for (gone = 0; gone <= i % 3; gone++)
			timely_wheel_del(&bed->wheel, &bed->nodes[order[gone]]);
		for (t = 0; t < 3; t++)
			KUNIT_EXPECT_EQ(test, timely_wheel_queued(&bed->nodes[order[t]]),
					t >= gone);
		KUNIT_EXPECT_EQ(test, drain(bed, time_of(bed, tick) - 1), 0);
		KUNIT_EXPECT_EQ(test, drain(bed, time_of(bed, tick)), 3 - gone);
		EXPECT_EMPTY(test, bed);
	}
}

/* Nodes in the slots before and after a deleted node stay. */
static void del__leaves_the_neighbours(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, BLOCK - 6);

	add_at(bed, 0, BLOCK - 1);
	add_at(bed, 1, BLOCK);
	add_at(bed, 2, BLOCK + 1);
	timely_wheel_del(&bed->wheel, &bed->nodes[1]);
	EXPECT_NEXT(test, bed, BLOCK - 1);
	KUNIT_EXPECT_EQ(test, expire_at(bed, BLOCK), 0);
	KUNIT_EXPECT_EQ(test, expire_at(bed, BLOCK), NODES);
	EXPECT_ONLY(test, bed, 2, BLOCK + 1);
}

/* ---- move ---- */

static void move__from_everywhere_to_everywhere(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 s, d, e;

	for (s = 0; s < ARRAY_SIZE(starts); s += 2) {
		for (d = 0; d < ARRAY_SIZE(distances); d++) {
			for (e = 0; e < ARRAY_SIZE(distances); e++) {
				u64 to = starts[s] + distances[e] + 1;

				start_again(bed, SHIFT, starts[s]);
				add_at(bed, 0, starts[s] + distances[d]);
				if (e & 1)
					timely_wheel_next_ns(&bed->wheel);
				timely_wheel_move(&bed->wheel, &bed->nodes[0], time_of(bed, to));
				EXPECT_ONLY(test, bed, 0, to);
			}
		}
	}
}

static void move__earlier_and_later(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 50);

	add_at(bed, 0, 100);
	add_at(bed, 1, 100);
	timely_wheel_move(&bed->wheel, &bed->nodes[0], time_of(bed, 80));
	EXPECT_NEXT(test, bed, 80);
	timely_wheel_move(&bed->wheel, &bed->nodes[0], time_of(bed, 120));
	EXPECT_NEXT(test, bed, 100);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 119), 1);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 119), NODES);
	timely_wheel_move(&bed->wheel, &bed->nodes[0], time_of(bed, 3));
	EXPECT_NEXT(test, bed, 119);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 119), 0);
	EXPECT_EMPTY(test, bed);
}

static void move__to_the_same_time(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 50);

	add_at(bed, 0, 100);
	timely_wheel_move(&bed->wheel, &bed->nodes[0], time_of(bed, 100));
	EXPECT_NEXT(test, bed, 100);
	/* Within its slot. */
	timely_wheel_move(&bed->wheel, &bed->nodes[0], time_of(bed, 100) - 1);
	KUNIT_EXPECT_EQ(test, bed->nodes[0].due_ns, time_of(bed, 100) - 1);
	EXPECT_ONLY(test, bed, 0, 100);
}

/* ---- expire ---- */

static void expire__by_slots_when_late(struct kunit *test)
{
	static const u64 lateness[] = { 1, 64, BLOCK, 100 * BLOCK, 2 * WHEEL_SPAN };
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 l, i;

	for (l = 0; l < ARRAY_SIZE(lateness); l++) {
		u64 before = 0, last;

		start_again(bed, SHIFT, 0);
		/* 389 and 1024 are coprime: the nodes are added in irregular order. */
		for (i = 0; i < NODES; i++)
			add_at(bed, i, 100 + div64_u64(lateness[l] * (i * 389 % NODES), NODES));
		last = 100 + lateness[l];
		for (i = 0; i < NODES; i++) {
			u32 n = expire_at(bed, last);

			KUNIT_ASSERT_LT(test, n, NODES);
			KUNIT_ASSERT_GE(test, bed->nodes[n].due_ns, before);
			before = bed->nodes[n].due_ns;
		}
		KUNIT_EXPECT_EQ(test, expire_at(bed, last), NODES);
		EXPECT_EMPTY(test, bed);
	}
}

static void expire__hours_late(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 1234567);
	u64 now_ns = time_of(bed, 1234567);

	timely_wheel_add(&bed->wheel, &bed->nodes[0], now_ns + 1000);
	timely_wheel_add(&bed->wheel, &bed->nodes[1], now_ns + 5 * HOUR_NS);
	timely_wheel_add(&bed->wheel, &bed->nodes[2], now_ns + 7 * HOUR_NS);
	now_ns += 6 * HOUR_NS;
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns), 0);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns), 1);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns), NODES);
	timely_wheel_add(&bed->wheel, &bed->nodes[0], now_ns + 1000);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + 3000), 0);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + HOUR_NS - 1), NODES);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + HOUR_NS + (1 << SHIFT)), 2);
	EXPECT_EMPTY(test, bed);
}

static void expire__after_days_of_idleness(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 77);
	u64 now_ns = 30 * DAY_NS, slot = 1 << SHIFT;

	/* A call after the idle time moves the wheel to the present: the node is added near. */
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns), NODES);
	timely_wheel_add(&bed->wheel, &bed->nodes[0], now_ns + 20 * slot);
	KUNIT_EXPECT_LT(test, timely_wheel_next_ns(&bed->wheel), now_ns + 21 * slot);
	KUNIT_EXPECT_GE(test, timely_wheel_next_ns(&bed->wheel), now_ns + 20 * slot);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + 21 * slot), 0);
	/* Without such a call, nodes expire on time nevertheless. */
	now_ns += 30 * DAY_NS;
	timely_wheel_add(&bed->wheel, &bed->nodes[0], now_ns);
	timely_wheel_add(&bed->wheel, &bed->nodes[1], now_ns + 2 * slot);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns - 1), NODES);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + slot), 0);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + slot), NODES);
	KUNIT_EXPECT_EQ(test, expire_ns(bed, now_ns + 3 * slot), 1);
	EXPECT_EMPTY(test, bed);
}

static void expire__earlier_time_expires_nothing(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 3 * BLOCK);

	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 100), NODES);
	add_at(bed, 0, 3 * BLOCK + 50);
	add_at(bed, 1, 3 * BLOCK + 101);
	add_at(bed, 2, 9 * BLOCK);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 99), NODES);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK - 1), NODES);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 0), NODES);
	EXPECT_NEXT(test, bed, 3 * BLOCK + 100);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 100), 0);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 100), NODES);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 3 * BLOCK + 101), 1);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 5), NODES);
	EXPECT_ONLY(test, bed, 2, 9 * BLOCK);
}

/* Each expired node is added again, for a later time so that the loop ends. */
static void expire__node_added_again(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 round, i, n;

	for (i = 0; i < 64; i++)
		add_at(bed, i, 10 + i % 4);
	for (round = 1; round <= 50; round++) {
		u64 tick = 13 + (round - 1) * 700;

		for (n = 0; (i = expire_at(bed, tick)) < NODES && n < 100; n++)
			add_at(bed, i, 10 + i % 4 + round * 700);
		KUNIT_ASSERT_EQ(test, n, 64);
	}
}

/* The first of three nodes in a slot expires, and the caller deletes the other two. */
static void expire__other_nodes_deleted_in_the_loop(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i, first;

	for (i = 0; i < 3; i++)
		add_at(bed, i, 10);
	for (i = 3; i < 6; i++)
		add_at(bed, i, 11);
	first = expire_at(bed, 20);
	KUNIT_ASSERT_LT(test, first, 3);
	for (i = 0; i < 5; i++)
		if (i != first)
			timely_wheel_del(&bed->wheel, &bed->nodes[i]);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 20), 5);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 20), NODES);
	EXPECT_EMPTY(test, bed);
}

/* A node has expired; this node and another one of its slot are deleted and added again. */
static void expire__nodes_deleted_and_added_again(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i, first;

	for (i = 0; i < 3; i++)
		add_at(bed, i, 10);
	first = expire_at(bed, 10);
	KUNIT_ASSERT_LT(test, first, 3);
	i = (first + 1) % 3;
	timely_wheel_del(&bed->wheel, &bed->nodes[i]);
	add_at(bed, i, 10);
	add_at(bed, first, 10);
	timely_wheel_del(&bed->wheel, &bed->nodes[first]);
	add_at(bed, first, 11);
	KUNIT_EXPECT_EQ(test, drain(bed, time_of(bed, 10)), 2);
	EXPECT_ONLY(test, bed, first, 11);
}

/* Nodes are added in a loop at slot 100, after the node of slot 50 has expired. */
static void expire__nodes_added_for_other_times(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);

	add_at(bed, 0, 50);
	add_at(bed, 1, 90);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100), 0);
	add_at(bed, 2, 10);
	add_at(bed, 3, 95);
	add_at(bed, 4, 60);
	add_at(bed, 5, 101);
	add_at(bed, 6, 100);
	add_at(bed, 7, 3 * BLOCK);
	/* Times in the past count as the present slot of the wheel, slot 50: before all others. */
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100), 2);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100), 4);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100), 1);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100), 3);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100), 6);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100), NODES);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 101), 5);
	EXPECT_ONLY(test, bed, 7, 3 * BLOCK);
}

/* A loop that stops early is continued by the next one. */
static void expire__a_loop_left_half_way(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u32 i;

	for (i = 0; i < 10; i++)
		add_at(bed, i, 3000 * (u64)(i + 1));
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, expire_at(bed, 100000), i);
	KUNIT_EXPECT_LE(test, timely_wheel_next_ns(&bed->wheel), time_of(bed, 18000));
	for (; i < 10; i++)
		KUNIT_EXPECT_EQ(test, expire_at(bed, 100000), i);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 100000), NODES);
}

/* ---- advance ---- */

static void advance__stops_at_a_due_node(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	struct timely_wheel *w = &bed->wheel;

	add_at(bed, 0, BLOCK - 1096);
	add_at(bed, 1, 3 * BLOCK + 5);
	KUNIT_EXPECT_TRUE(test, timely_wheel_advance(w, time_of(bed, BLOCK - 1096) - 1));
	KUNIT_EXPECT_FALSE(test, timely_wheel_advance(w, time_of(bed, BLOCK - 1096)));
	KUNIT_EXPECT_FALSE(test, timely_wheel_advance(w, time_of(bed, 2 * BLOCK + 808)));
	KUNIT_EXPECT_EQ(test, expire_at(bed, 2 * BLOCK + 808), 0);
	KUNIT_EXPECT_EQ(test, expire_at(bed, 2 * BLOCK + 808), NODES);
	KUNIT_EXPECT_FALSE(test, timely_wheel_advance(w, time_of(bed, 4 * BLOCK)));
	KUNIT_EXPECT_TRUE(test, timely_wheel_queued(&bed->nodes[1]));
	EXPECT_ONLY(test, bed, 1, 3 * BLOCK + 5);
}

static void advance__places_the_next_node_near(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	u64 far = 1000 * WHEEL_SPAN + 777;

	KUNIT_EXPECT_TRUE(test, timely_wheel_advance(&bed->wheel, time_of(bed, far)));
	add_at(bed, 0, far + BLOCK - 96);
	EXPECT_NEXT(test, bed, far + BLOCK - 96);
	/* An earlier time is accepted and changes nothing. */
	KUNIT_EXPECT_TRUE(test, timely_wheel_advance(&bed->wheel, 5));
	add_at(bed, 1, 6);
	EXPECT_NEXT(test, bed, far);
	KUNIT_EXPECT_EQ(test, expire_at(bed, far), 1);
	EXPECT_ONLY(test, bed, 0, far + BLOCK - 96);
}

/* ---- use by a pacer ---- */

/*
 * Flows that send repeatedly at their own rates; expire is called at next_ns. Nodes may be late by
 * less than a slot.
 */
static void pace__less_than_a_slot_late(struct kunit *test)
{
	struct bed *bed = make_bed(test, SHIFT, 0);
	struct wheel_dice dice = { .state = 20170829 };
	u8 shift;
	u32 i, n;

	for (shift = TIMELY_WHEEL_MIN_SHIFT; shift <= TIMELY_WHEEL_MAX_SHIFT; shift += 4) {
		u64 slot = 1ULL << shift, worst = 0, sum = 0, now_ns = 0;
		u32 vain = 0, early = 0;

		start_again(bed, shift, 0);
		for (i = 0; i < 200; i++)
			timely_wheel_add(&bed->wheel, &bed->nodes[i], wheel_roll(&dice) % 1000000);
		for (n = 0; n < 20000; n++) {
			i = sleep_and_ask(bed, &now_ns, &vain);
			KUNIT_ASSERT_LT(test, i, NODES);
			early += now_ns < bed->nodes[i].due_ns;
			worst = max(worst, now_ns - bed->nodes[i].due_ns);
			sum += now_ns - bed->nodes[i].due_ns;
			vain = 0;
			timely_wheel_add(&bed->wheel, &bed->nodes[i], bed->nodes[i].due_ns +
					 ((u64)(i + 20) << (shift >> 1)) +
					 wheel_roll(&dice) % (20 * slot));
			/* A node that was due when it was added does not count as late. */
			if (bed->nodes[i].due_ns <= now_ns)
				timely_wheel_move(&bed->wheel, &bed->nodes[i], now_ns + 1);
		}
		KUNIT_EXPECT_EQ(test, early, 0);
		KUNIT_EXPECT_LT(test, worst, slot);
		/* About half a slot on average; times are not spread evenly over slots. */
		KUNIT_EXPECT_GT(test, sum, 20000 * slot / 4);
		KUNIT_EXPECT_LT(test, sum, 20000 * slot / 4 * 3);
	}
}

/* ---- random operations ---- */

static void shift_name(const u8 *shift, char *desc)
{
	scnprintf(desc, KUNIT_PARAM_DESC_SIZE, "slots of 2^%u ns", *shift);
}

static const u8 shifts[] = { 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 };
KUNIT_ARRAY_PARAM(shift, shifts, shift_name);

static void all__beside_the_model(struct kunit *test)
{
	const u8 *shift = test->param_value;
	struct wheel_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	static const u64 origins[] = { 0, 1ULL << 63, 1700000000000000000ULL };
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->dice.state = 20170821ULL << 20 | *shift;
	for (i = 0; i < STEPS; i++) {
		if (i % (STEPS / 4) == 0)
			wheel_model_init(m, *shift, origins[i / (STEPS / 4) % 3]);
		wheel_model_step(m);
	}
	for (i = 0; i < WHEEL_PROMISES; i++) {
		KUNIT_EXPECT_EQ_MSG(test, m->broken[i], 0, "%s: first in step %llu",
				    wheel_promises[i], m->broke_at);
		KUNIT_EXPECT_GT_MSG(test, m->kept[i], 0, "%s", wheel_promises[i]);
	}
}

static struct kunit_case wheel_cases[] = {
	KUNIT_CASE(init__is_empty),
	KUNIT_CASE(init__forgets_what_was_in_it),
	KUNIT_CASE(init__in_the_middle_of_a_slot),
	KUNIT_CASE(queued__from_add_to_the_end),
	KUNIT_CASE(add__is_rounded_up_to_a_slot),
	KUNIT_CASE(add__keeps_to_its_slot_from_everywhere),
	KUNIT_CASE(add__at_the_start_of_time),
	KUNIT_CASE(add__past_time_is_due_now),
	KUNIT_CASE(add__of_the_present_slot),
	KUNIT_CASE(add__never),
	KUNIT_CASE(add__wraps_the_near_level),
	KUNIT_CASE(add__wraps_the_far_level),
	KUNIT_CASE(add__no_node_is_left_after_many_turns),
	KUNIT_CASE(add__many_in_one_slot),
	KUNIT_CASE(next__is_exact_within_the_near_level),
	KUNIT_CASE(next__looks_once_at_a_far_block),
	KUNIT_CASE(next__is_the_earliest),
	KUNIT_CASE(next__between_far_and_near),
	KUNIT_CASE(next__far_before_near),
	KUNIT_CASE(spread__a_node_with_each_call),
	KUNIT_CASE(del__from_every_place),
	KUNIT_CASE(del__of_several_in_a_slot),
	KUNIT_CASE(del__leaves_the_neighbours),
	KUNIT_CASE(move__from_everywhere_to_everywhere),
	KUNIT_CASE(move__earlier_and_later),
	KUNIT_CASE(move__to_the_same_time),
	KUNIT_CASE(expire__by_slots_when_late),
	KUNIT_CASE(expire__hours_late),
	KUNIT_CASE(expire__after_days_of_idleness),
	KUNIT_CASE(expire__earlier_time_expires_nothing),
	KUNIT_CASE(expire__node_added_again),
	KUNIT_CASE(expire__other_nodes_deleted_in_the_loop),
	KUNIT_CASE(expire__nodes_deleted_and_added_again),
	KUNIT_CASE(expire__nodes_added_for_other_times),
	KUNIT_CASE(expire__a_loop_left_half_way),
	KUNIT_CASE(advance__stops_at_a_due_node),
	KUNIT_CASE(advance__places_the_next_node_near),
	KUNIT_CASE(pace__less_than_a_slot_late),
	KUNIT_CASE_PARAM(all__beside_the_model, shift_gen_params),
	{}
};

static struct kunit_suite wheel_suite = {
	.name = "timely_wheel",
	.test_cases = wheel_cases,
};

kunit_test_suite(wheel_suite);
