// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of theta-PowerTCP's rule. Expected values are computed by hand from the formulas at the top
 * of powertcp.c. rate_flow.h has the functions that simulate completions. rate_kunit.c replays the
 * test vectors of reference_window.py, and kunit/user/rate_fuzz.c compares the rule with floating
 * point for random completions.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include <timely/engine/rate.h>

#include "rate_flow.h"

/* Base RTT 16.4 us, link rate 8 Gb/s, ten connections: beta / tau is 100 MB/s. */
#define TAU_NS		16384
#define HOST_MBPS	1000
#define BETA_MBPS	100

static const struct timely_params params = {
	.min_rtt_ns = TAU_NS,
	.t_low_ns = TAU_NS,
	.t_high_ns = 1000000,
	.rtt_ref_ns = TAU_NS,
	.alpha_ppm = 900000,
	.delta_kbps = 800000,
	.segment_bytes = 16384,
	.rule = TIMELY_RULE_POWERTCP,
	.min_rate_kbps = 8000,
	.max_rate_kbps = 80000000,
	.first_rate_kbps = 8000000,
	.loss_beta_ppm = 500000,
};

/* Compare the rate with @kBps, in units of 1000 bytes per second. */
static void expect_kBps(struct kunit *test, const struct flow *f, u32 kBps)
{
	s64 got = div_u64(timely_rate_Bps(&f->rate), 1000);

	KUNIT_EXPECT_LE_MSG(test, abs(got - kBps), kBps / 10000 + 1, "%lld, not %u", got, kBps);
}

/* An RTT that does not change: power is the RTT divided by the base RTT. */
static void power__is_the_length_of_the_queue(struct kunit *test)
{
	struct flow f;

	/* Without a queue: 1000 + .9 * 100 */
	start(&f, &params);
	ack(&f, TAU_NS);
	expect_kBps(test, &f, 1090000);
	/* .9 * (1000 / 2 + 100) + .1 * 1000 */
	start(&f, &params);
	ack(&f, 2 * TAU_NS);
	expect_kBps(test, &f, 640000);
	/* .9 * (640 / 2 + 100) + .1 * 640 */
	ack_after(&f, 2 * TAU_NS, 2 * TAU_NS);
	expect_kBps(test, &f, 442000);
	/* An RTT below the base RTT counts as the base RTT. */
	start(&f, &params);
	ack(&f, 1);
	expect_kBps(test, &f, 1090000);
}

static void power__knows_the_gradient(struct kunit *test)
{
	struct flow f;

	/* The rate is 640, and the RTT rises by a base RTT in three: power is (1 / 3 + 1) * 3 = 4.
	 * .9 * (640 / 4 + 100) + 64
	 */
	start(&f, &params);
	ack(&f, 2 * TAU_NS);
	ack_after(&f, 3 * TAU_NS, 3 * TAU_NS);
	expect_kBps(test, &f, 298000);
	/* In four: (1 / 4 + 1) * 3 = 3.75, .9 * (640 / 3.75 + 100) + 64 */
	start(&f, &params);
	ack(&f, 2 * TAU_NS);
	ack_after(&f, 4 * TAU_NS, 3 * TAU_NS);
	expect_kBps(test, &f, 307600);
	/* The RTT falls by a base RTT in four: (-1 / 4 + 1) * 2 = 1.5 */
	ack_after(&f, 4 * TAU_NS, 2 * TAU_NS);
	expect_kBps(test, &f, 9 * (307600 * 2 / 3 + 100000) / 10 + 30760);
}

/* A fall of the RTT in less time than the fall counts as a fall by half of the time. */
static void power__is_at_least_half_of_the_length(struct kunit *test)
{
	struct flow f;

	start(&f, &params);
	ack(&f, 6 * TAU_NS);
	expect_kBps(test, &f, 9 * (1000000 / 6 + 100000) / 10 + 100000);
	/* .5 * 2 = 1 */
	ack_after(&f, 2 * TAU_NS, 2 * TAU_NS);
	expect_kBps(test, &f, 340000 + 90000);
}

static void power__is_smoothed_over_a_base_rtt(struct kunit *test)
{
	struct flow f;

	start(&f, &params);
	ack(&f, TAU_NS);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, 1U << 24);
	/* A quarter: 1 * 3 / 4 + (1 + 1) * 1.25 / 4 = 1.375 */
	ack_after(&f, TAU_NS / 4, TAU_NS * 5 / 4);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, 11U << 21);
	/* A base RTT later, the past does not count. */
	ack_after(&f, TAU_NS, TAU_NS * 5 / 4);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, 5U << 22);
	/* No time has passed: a rise counts, a fall does not. */
	ack_after(&f, 0, TAU_NS * 3 / 2);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, (5U << 22) + (3U << 21));
	ack_after(&f, 0, TAU_NS);
	KUNIT_EXPECT_LE(test, (5U << 22) + (3U << 21) - f.rate.power_q24, 1);
}

static void power__saturates(struct kunit *test)
{
	struct flow f;

	start(&f, &params);
	ack(&f, 300 * TAU_NS);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, U32_MAX);
	ack_after(&f, 1, U32_MAX);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, U32_MAX);
	/* The time between the completions counts, too: one second. */
	ack_after(&f, NSEC_PER_SEC, TAU_NS);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, 1U << 23);
}

/* Without a limit, the product of these terms would be 2^66, and its lower 64 bits 0. */
static void power__does_not_wrap(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.min_rtt_ns = 1024;
	start(&f, &p);
	ack(&f, 1024);
	ack_after(&f, 1024, 1U << 31);
	KUNIT_EXPECT_EQ(test, f.rate.power_q24, U32_MAX);
}

static void powertcp__changes_once_per_rtt(struct kunit *test)
{
	struct flow f;

	start(&f, &params);
	ack(&f, 2 * TAU_NS);
	expect_kBps(test, &f, 640000);
	ack_after(&f, TAU_NS, 2 * TAU_NS);
	ack_after(&f, TAU_NS - 1, 2 * TAU_NS);
	expect_kBps(test, &f, 640000);
	ack_after(&f, 1, 2 * TAU_NS);
	expect_kBps(test, &f, 442000);
	/* After a loss, the next completion counts, and has no gradient. */
	timely_rate_loss(&f.rate, &f.cfg);
	expect_kBps(test, &f, 221000);
	ack_after(&f, 1, TAU_NS);
	expect_kBps(test, &f, 311000);
}

/* Where the RTT is twice the base RTT, the rate comes to rest at twice beta / tau. */
static void powertcp__settles_where_beta_is_queued(struct kunit *test)
{
	struct flow f;
	u32 i;

	start(&f, &params);
	for (i = 0; i < 50; i++)
		ack_after(&f, 2 * TAU_NS, 2 * TAU_NS);
	expect_kBps(test, &f, 200000);
	timely_rate_loss(&f.rate, &f.cfg);
	for (i = 0; i < 50; i++)
		ack_after(&f, 2 * TAU_NS, 2 * TAU_NS);
	expect_kBps(test, &f, 200000);
}

static void powertcp__stays_within_the_limits(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	u32 i;

	p.delta_kbps = 1;
	start(&f, &p);
	for (i = 0; i < 20; i++)
		ack_after(&f, NSEC_PER_MSEC, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
	start(&f, &params);
	for (i = 0; i < 200; i++)
		ack(&f, TAU_NS);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.max_rate_fp);
}

static void powertcp__keeps_the_rate_if_it_may_not_rise(struct kunit *test)
{
	struct flow f;

	start(&f, &params);
	f.may_rise = false;
	ack(&f, TAU_NS);
	expect_kBps(test, &f, 1000000);
	ack_after(&f, 2 * TAU_NS, 2 * TAU_NS);
	KUNIT_EXPECT_LT(test, f.rate.rate_fp, f.cfg.first_rate_fp);
}

static void powertcp__window_is_rate_times_base_rtt(struct kunit *test)
{
	struct flow f;

	start(&f, &params);
	/* 1 GB/s * 16384 ns, rounded up */
	KUNIT_EXPECT_LE(test, abs((s64)timely_rate_window(&f.rate, &f.cfg) - 16385), 1);
	ack(&f, 2 * TAU_NS);
	/* 640 MB/s, whatever the RTT is */
	KUNIT_EXPECT_LE(test, abs((s64)timely_rate_window(&f.rate, &f.cfg) - 10486), 1);
}

/* Four connections at a link of 8 Gb/s, one of which has the whole link at first. Theory: the queue
 * is the sum of the betas, 400 MB/s times the base RTT. gamma is 1/2 here: with one completion per
 * RTT, as here, and gamma 9/10 all windows rise and fall in turns.
 */
static void powertcp__connections_share_a_link(struct kunit *test)
{
	u64 sum, least = U64_MAX, most = 0;
	struct timely_params p = params;
	struct flow f[4];
	u32 i, n, rtt = 0;

	p.alpha_ppm = 500000;
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		start(&f[i], &p);
		p.first_rate_kbps = 80000;
	}
	for (n = 0; n < 400; n++) {
		for (i = 0, sum = 0; i < ARRAY_SIZE(f); i++)
			sum += timely_rate_window(&f[i].rate, &f[i].cfg);
		rtt = max_t(u32, sum, TAU_NS);		/* a byte per ns */
		for (i = 0; i < ARRAY_SIZE(f); i++)
			ack_after(&f[i], rtt, rtt);
	}
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		least = min(least, timely_rate_Bps(&f[i].rate));
		most = max(most, timely_rate_Bps(&f[i].rate));
	}
	KUNIT_EXPECT_LE(test, most, least + least / 100);
	KUNIT_EXPECT_LE(test, abs((s32)rtt - TAU_NS * 14 / 10), TAU_NS / 100);
}

static struct kunit_case timely_powertcp_cases[] = {
	KUNIT_CASE(power__is_the_length_of_the_queue),
	KUNIT_CASE(power__knows_the_gradient),
	KUNIT_CASE(power__is_at_least_half_of_the_length),
	KUNIT_CASE(power__is_smoothed_over_a_base_rtt),
	KUNIT_CASE(power__saturates),
	KUNIT_CASE(power__does_not_wrap),
	KUNIT_CASE(powertcp__changes_once_per_rtt),
	KUNIT_CASE(powertcp__settles_where_beta_is_queued),
	KUNIT_CASE(powertcp__stays_within_the_limits),
	KUNIT_CASE(powertcp__keeps_the_rate_if_it_may_not_rise),
	KUNIT_CASE(powertcp__window_is_rate_times_base_rtt),
	KUNIT_CASE(powertcp__connections_share_a_link),
	{}
};

static struct kunit_suite timely_powertcp_suite = {
	.name = "timely_powertcp",
	.test_cases = timely_powertcp_cases,
};

kunit_test_suite(timely_powertcp_suite);
