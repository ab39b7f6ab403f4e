// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the average share of the link rate that arrives (net/timely/engine/ingress.c). Cases are
 * named function__case.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/time64.h>

#include <timely/engine/ingress.h>

#define US	NSEC_PER_USEC
#define WHOLE	(1U << 16)
#define KBPS	10000000U	/* 1.25 bytes per ns */

static void ingress__of_a_long_period(struct kunit *test)
{
	static const struct {
		u64 bytes;
		u64 period_ns;
		u32 share_q16;
	} cases[] = {
		{ 0, 100 * US, 0 }, { 125000, 100 * US, WHOLE }, { 62500, 100 * US, WHOLE / 2 },
		{ 124999, 100 * US, WHOLE - 1 }, { U64_MAX, 100 * US, WHOLE },
		{ 312500, NSEC_PER_MSEC, WHOLE / 4 }, { 1250000000, U64_MAX, WHOLE },
		{ 625000000, U64_MAX, WHOLE / 2 },
	};
	u32 i;

	/* A period of 100 us or more replaces the average. */
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 bytes = cases[i].bytes, period_ns = cases[i].period_ns;

		KUNIT_EXPECT_EQ(test, timely_ingress_q16(0, bytes, period_ns, KBPS),
				cases[i].share_q16);
		KUNIT_EXPECT_EQ(test, timely_ingress_q16(WHOLE, bytes, period_ns, KBPS),
				cases[i].share_q16);
	}
}

static void ingress__is_averaged(struct kunit *test)
{
	u32 share_q16 = 0, i;

	KUNIT_EXPECT_EQ(test, timely_ingress_q16(0, 25000, 20 * US, KBPS), WHOLE / 5);
	KUNIT_EXPECT_EQ(test, timely_ingress_q16(WHOLE, 0, 20 * US, KBPS), WHOLE - WHOLE / 5);
	for (i = 0; i < 100; i++)
		share_q16 = timely_ingress_q16(share_q16, 12500, 20 * US, KBPS);
	KUNIT_EXPECT_GE(test, share_q16, WHOLE / 2 - 8);
	KUNIT_EXPECT_LE(test, share_q16, WHOLE / 2);
	KUNIT_EXPECT_EQ(test, timely_ingress_q16(share_q16, 0, 0, KBPS), share_q16);
}

static void ingress__needs_a_link_rate(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, timely_ingress_q16(WHOLE / 2, 1000, 20 * US, 0), 0);
	KUNIT_EXPECT_EQ(test, timely_ingress_q16(WHOLE, 1000, NSEC_PER_SEC, 1), WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ingress_q16(0, 0, NSEC_PER_SEC, U32_MAX), 0);
	KUNIT_EXPECT_EQ(test, timely_ingress_q16(0, U64_MAX, NSEC_PER_SEC, U32_MAX), WHOLE);
}

static struct kunit_case timely_ingress_cases[] = {
	KUNIT_CASE(ingress__of_a_long_period),
	KUNIT_CASE(ingress__is_averaged),
	KUNIT_CASE(ingress__needs_a_link_rate),
	{}
};

static struct kunit_suite timely_ingress_suite = {
	.name = "timely_ingress",
	.test_cases = timely_ingress_cases,
};

kunit_test_suite(timely_ingress_suite);
