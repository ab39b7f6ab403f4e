// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what a device has got and not yet sent (net/timely/engine/drain.h). Cases are named
 * function__case.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/types.h>

#include <timely/engine/drain.h>

/* A link with a byte per ns, and packets of 1000 bytes. */

#define BYTE_Q16	(1U << 16)

static u64 add(struct timely_drain *drain, u32 queued, u32 completed, u64 now_ns)
{
	return timely_drain_add(drain, queued, &completed, 1000, BYTE_Q16, now_ns);
}

static void drain__idle_link_sends_at_once(struct kunit *test)
{
	struct timely_drain drain = {};

	KUNIT_EXPECT_EQ(test, add(&drain, 5, 5, 100), 100);
	KUNIT_EXPECT_EQ(test, add(&drain, 1005, 1005, 1100), 1100);
	KUNIT_EXPECT_EQ(test, add(&drain, 2005, 2005, 9000), 9000);
}

static void drain__packets_wait_for_those_before(struct kunit *test)
{
	/* The driver's counts wrap. */
	u32 start = U32_MAX - 1500;
	struct timely_drain drain = {};

	KUNIT_EXPECT_EQ(test, add(&drain, start, start, 0), 0);
	KUNIT_EXPECT_EQ(test, add(&drain, start + 1000, start, 10), 1000);
	KUNIT_EXPECT_EQ(test, add(&drain, start + 2000, start, 20), 2000);
	/* The driver has not learnt yet that all packets are sent. */
	KUNIT_EXPECT_EQ(test, add(&drain, start + 3000, start, 5000), 5000);
}

/* The kernel takes several packets from the qdisc before the driver counts them. */
static void drain__packets_taken_at_once(struct kunit *test)
{
	struct timely_drain drain = {};

	KUNIT_EXPECT_EQ(test, add(&drain, 7, 7, 0), 0);
	KUNIT_EXPECT_EQ(test, add(&drain, 7, 7, 0), 1000);
	KUNIT_EXPECT_EQ(test, add(&drain, 7, 7, 0), 2000);
	KUNIT_EXPECT_EQ(test, add(&drain, 3007, 7, 0), 3000);
}

/* The link is four times as fast as it seems: only what the driver has can wait. */
static void drain__unsent_bytes_limit_the_wait(struct kunit *test)
{
	struct timely_drain drain = {};

	KUNIT_EXPECT_EQ(test, add(&drain, 1, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, add(&drain, 1001, 1, 0), 1000);
	KUNIT_EXPECT_EQ(test, add(&drain, 2001, 2001, 600), 600);
	KUNIT_EXPECT_EQ(test, add(&drain, 3001, 2501, 700), 1200);
}

static void drain__driver_that_does_not_count(struct kunit *test)
{
	struct timely_drain drain = {};
	u32 i;

	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, add(&drain, 0, 0, 10), 10);
}

static void drain__unknown_link_rate(struct kunit *test)
{
	struct timely_drain drain = {};
	u32 completed = 1;

	add(&drain, 1, completed, 0);
	KUNIT_EXPECT_EQ(test, timely_drain_add(&drain, 1001, &completed, 1000, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, timely_drain_add(&drain, 2001, &completed, 1000, 0, 6), 6);
}

static struct kunit_case timely_drain_cases[] = {
	KUNIT_CASE(drain__idle_link_sends_at_once),
	KUNIT_CASE(drain__packets_wait_for_those_before),
	KUNIT_CASE(drain__packets_taken_at_once),
	KUNIT_CASE(drain__unsent_bytes_limit_the_wait),
	KUNIT_CASE(drain__driver_that_does_not_count),
	KUNIT_CASE(drain__unknown_link_rate),
	{}
};

static struct kunit_suite timely_drain_suite = {
	.name = "timely_drain",
	.test_cases = timely_drain_cases,
};

kunit_test_suite(timely_drain_suite);
