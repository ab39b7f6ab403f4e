// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of Swift's rule. Expected values are computed by hand from the formulas at the top of
 * swift.c. rate_flow.h has the functions that simulate completions. rate_kunit.c replays the test
 * vectors of reference_window.py, and kunit/user/rate_fuzz.c compares the rule with floating point
 * for random completions.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include <timely/engine/rate.h>
#include <timely/engine/swift.h>

#include "rate_flow.h"

#define MIN_RTT_NS	20000
#define BASE_NS		25000		/* base target */
#define PACKET		1000		/* bytes */

static const struct timely_params params = {
	.min_rtt_ns = MIN_RTT_NS,
	.t_low_ns = BASE_NS,
	.t_high_ns = 1000000,
	.rtt_ref_ns = BASE_NS,
	.alpha_ppm = 875000,
	.beta_ppm = 800000,
	.delta_kbps = 1,
	.segment_bytes = 16384,
	.rule = TIMELY_RULE_SWIFT,
	.min_rate_kbps = 1,
	.max_rate_kbps = 800000000,
	.first_rate_kbps = 1000000,
	.loss_beta_ppm = 500000,
};

/* Start a connection with a window of @milli thousandths of a packet. */
static void start_window(struct flow *f, u32 milli)
{
	struct timely_params p = params;

	/* bits per us are thousandths of a kbit/s */
	p.first_rate_kbps = div_u64(milli * 8000000ULL, MIN_RTT_NS) * PACKET / 1000;
	start(f, &p);
	timely_swift_cfg_packet(&f->cfg, PACKET);
}

/* The window in thousandths of a packet. */
static u32 window(const struct flow *f)
{
	return div_u64(timely_rate_window(&f->rate, &f->cfg) * 1000, PACKET);
}

static void expect_window(struct kunit *test, const struct flow *f, u32 milli)
{
	KUNIT_EXPECT_GE(test, window(f) + milli / 10000 + 1, milli);
	KUNIT_EXPECT_LE(test, window(f), milli + milli / 10000 + 2);
}

static void swift__rises_by_a_packet_per_rtt(struct kunit *test)
{
	struct flow f;
	u32 i;

	start_window(&f, 10000);
	ack_bytes(&f, MIN_RTT_NS, MIN_RTT_NS, 10 * PACKET);
	expect_window(test, &f, 11000);
	/* Ten packets one by one: 11 + 1 / 11 + 1 / 11.09 and so on */
	for (i = 0; i < 10; i++)
		ack_bytes(&f, 1000, MIN_RTT_NS, PACKET);
	expect_window(test, &f, 11878);
	/* A larger window rises by as much. */
	start_window(&f, 90000);
	ack_bytes(&f, MIN_RTT_NS, MIN_RTT_NS, 90 * PACKET);
	expect_window(test, &f, 91000);
}

static void swift__rises_by_what_was_acked_below_a_packet(struct kunit *test)
{
	struct flow f;

	start_window(&f, 100);
	ack_bytes(&f, MIN_RTT_NS, MIN_RTT_NS, PACKET / 2);
	expect_window(test, &f, 600);
	ack_bytes(&f, MIN_RTT_NS, MIN_RTT_NS, PACKET / 2);
	expect_window(test, &f, 1100);
	/* 1.1 + .5 / 1.1 */
	ack_bytes(&f, MIN_RTT_NS, MIN_RTT_NS, PACKET / 2);
	expect_window(test, &f, 1555);
}

/* With a hundred packets or more, the target is the base target. */
static void swift__falls_by_the_excess(struct kunit *test)
{
	struct flow f;

	start_window(&f, 200000);
	/* 1 - .8 * 25 / 50 */
	ack_bytes(&f, MIN_RTT_NS, 2 * BASE_NS, PACKET);
	expect_window(test, &f, 120000);
	/* 1 - .8 * 6.25 / 31.25 */
	ack_bytes(&f, 2 * BASE_NS, 31250, PACKET);
	expect_window(test, &f, 100800);
}

static void swift__falls_by_at_most_max_mdf(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	start_window(&f, 200000);
	ack(&f, 3 * BASE_NS);
	expect_window(test, &f, 100000);
	p.loss_beta_ppm = 250000;
	p.first_rate_kbps = 80000000;
	start(&f, &p);
	timely_swift_cfg_packet(&f.cfg, PACKET);
	ack(&f, NSEC_PER_SEC);
	expect_window(test, &f, 150000);
}

static void swift__falls_once_per_rtt(struct kunit *test)
{
	struct flow f;

	start_window(&f, 800000);
	ack(&f, 100000);
	expect_window(test, &f, 400000);
	/* A completion that does not change the window does not start a new RTT. */
	ack_after(&f, 50000, 100000);
	ack_after(&f, 49999, 100000);
	expect_window(test, &f, 400000);
	ack_after(&f, 1, 100000);
	expect_window(test, &f, 200000);
	/* The present RTT counts, not the RTT of the decrease. */
	ack_after(&f, 60000, 60000);
	expect_window(test, &f, 200000 - 200000 * 8 / 10 * 35 / 60);
}

/* The first completion may decrease the window: there was no decrease before. */
static void swift__falls_at_once_after_the_start(struct kunit *test)
{
	struct flow f;

	start_window(&f, 200000);
	ack_after(&f, 0, 100000);
	expect_window(test, &f, 100000);
	timely_rate_reseed(&f.rate);
	ack_after(&f, 1, 100000);
	expect_window(test, &f, 50000);
	timely_rate_init(&f.rate, &f.cfg);
	ack_after(&f, 1, 100000);
	expect_window(test, &f, 100000);
}

static void swift__loss_is_a_decrease(struct kunit *test)
{
	struct flow f;

	start_window(&f, 800000);
	ack(&f, MIN_RTT_NS);
	timely_rate_loss(&f.rate, &f.cfg);
	expect_window(test, &f, 400010);
	ack_after(&f, 99999, 100000);
	expect_window(test, &f, 400010);
	ack_after(&f, 1, 100000);
	expect_window(test, &f, 200005);
}

static void swift__minimum_after_timeouts(struct kunit *test)
{
	struct flow f;

	start_window(&f, 800000);
	timely_rate_minimum(&f.rate, &f.cfg);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
	KUNIT_EXPECT_FALSE(test, f.rate.seeded);
	ack_after(&f, 50000, MIN_RTT_NS);
	KUNIT_EXPECT_GT(test, f.rate.rate_fp, f.cfg.min_rate_fp);
}

/* Flow scaling: RTTs that are too long for a large window are below the target of a small one. */
static void swift__target_falls_with_the_window(struct kunit *test)
{
	/* a is 125 us / 3.0623: 40.82 us. The target is 25 us + a * (1 / sqrt(window) - .1). */
	static const struct {
		u32 milli;
		u32 target_ns;
	} cases[] = {
		{ 1, 150000 }, { 100, 150000 }, { 250, 102559 }, { 1000, 61738 }, { 4000, 41328 },
		{ 25000, 29082 }, { 81000, 25454 }, { 100000, 25000 }, { 400000, 25000 },
	};
	u32 i, before;
	struct flow f;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start_window(&f, cases[i].milli);
		before = window(&f);
		ack_bytes(&f, MIN_RTT_NS, cases[i].target_ns - 5, PACKET);
		KUNIT_EXPECT_GT_MSG(test, window(&f) + 1, before, "%u", cases[i].milli);
		start_window(&f, cases[i].milli);
		ack_bytes(&f, MIN_RTT_NS, cases[i].target_ns + cases[i].target_ns / 50, PACKET);
		KUNIT_EXPECT_LE_MSG(test, window(&f), before, "%u", cases[i].milli);
	}
}

static void swift__rate_is_window_by_rtt(struct kunit *test)
{
	struct flow f;

	/* 100 packets of 1000 bytes in 100 us are 1 GB/s; the decrease was an RTT of 1 ns ago. */
	start_window(&f, 200000);
	ack(&f, 100000);
	KUNIT_EXPECT_LE(test, abs((s64)timely_rate_Bps(&f.rate) - 1000000000), 1000);
	ack_after(&f, 1, 300000);
	expect_window(test, &f, 100000);
	KUNIT_EXPECT_LE(test, abs((s64)timely_rate_Bps(&f.rate) - 333333333), 1000);
}

static void swift__counts_in_packets(struct kunit *test)
{
	struct flow f;

	start_window(&f, 10000);
	timely_swift_cfg_packet(&f.cfg, 2 * PACKET);
	/* Five packets: five acked packets add one. */
	ack_bytes(&f, MIN_RTT_NS, MIN_RTT_NS, 10 * PACKET);
	expect_window(test, &f, 12000);
	/* Sizes are limited to those of packets. */
	timely_swift_cfg_packet(&f.cfg, 0);
	KUNIT_EXPECT_EQ(test, f.cfg.inv_packet, 1U << 26);
	timely_swift_cfg_packet(&f.cfg, U32_MAX);
	KUNIT_EXPECT_EQ(test, f.cfg.inv_packet, 65537);
}

static void swift__app_limited_does_not_rise(struct kunit *test)
{
	struct flow f;

	start_window(&f, 10000);
	f.app_limited = true;
	ack(&f, MIN_RTT_NS);
	expect_window(test, &f, 10000);
	f.app_limited = false;
	f.may_rise = false;
	ack(&f, MIN_RTT_NS);
	expect_window(test, &f, 10000);
	/* It falls. */
	f.app_limited = true;
	ack(&f, NSEC_PER_MSEC);
	expect_window(test, &f, 5000);
}

static void swift__stays_within_the_limits(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	u32 i;

	p.min_rate_kbps = 8000;
	p.max_rate_kbps = 8000000;
	start(&f, &p);
	for (i = 0; i < 100; i++)
		ack_after(&f, NSEC_PER_MSEC, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
	for (i = 0; i < 1000; i++)
		ack(&f, MIN_RTT_NS);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.max_rate_fp);
}

/* A window of 281475977 bytes and an RTT of 1 us make a rate of 2^64 plus 1 GB/s, Q16. */
static void swift__rate_does_not_wrap(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.min_rtt_ns = 1000;
	p.first_rate_kbps = 8000000;
	start(&f, &p);
	ack_bytes(&f, 1, 1000, 281475977 - 1000);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.max_rate_fp);
}

/* In a base-RTT probe, the window may fall, and never rises. */
static void probe__never_raises_the_window(struct kunit *test)
{
	struct timely_completion c = { .rtt_ns = MIN_RTT_NS, .bytes = PACKET, .may_rise = true };
	struct flow f;

	start_window(&f, 10000);
	c.now_ns = f.now_ns + 1000;
	timely_rate_probe(&f.rate, &f.cfg, &c);
	expect_window(test, &f, 10000);
	KUNIT_EXPECT_TRUE(test, f.rate.seeded);
	c.now_ns += 1000;
	c.rtt_ns = NSEC_PER_MSEC;
	timely_rate_probe(&f.rate, &f.cfg, &c);
	expect_window(test, &f, 5000);
}

/* Four connections at a link of 10 Gb/s, one of which has the whole link at first. In each step, a
 * connection gets the ACKs of what it has sent in the step's RTT.
 */
static void swift__connections_share_a_link(struct kunit *test)
{
	u64 sum, least = U64_MAX, most = 0, mean = 0;
	struct flow f[4];
	u32 i, n, rtt;

	for (i = 0; i < ARRAY_SIZE(f); i++)
		start_window(&f[i], i ? 1000 : 30000);
	for (n = 0; n < 4000; n++) {
		for (i = 0, sum = 0; i < ARRAY_SIZE(f); i++)
			sum += timely_rate_window(&f[i].rate, &f[i].cfg);
		/* 1.25 bytes per ns */
		rtt = max_t(u32, div_u64(sum * 4, 5), MIN_RTT_NS);
		for (i = 0; i < ARRAY_SIZE(f); i++)
			ack_bytes(&f[i], rtt, rtt, max_t(u32, window(&f[i]), 1));
		if (n >= 3000)
			mean += rtt;
	}
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		least = min_t(u64, least, window(&f[i]));
		most = max_t(u64, most, window(&f[i]));
	}
	KUNIT_EXPECT_LE(test, most, least * 5 / 4);
	/* The target for ten packets is 34 us, and a sawtooth of 4 packets takes 3.2 us. */
	mean = div_u64(mean, 1000);
	KUNIT_EXPECT_GE(test, mean, 30000);
	KUNIT_EXPECT_LE(test, mean, 38000);
}

static struct kunit_case timely_swift_cases[] = {
	KUNIT_CASE(swift__rises_by_a_packet_per_rtt),
	KUNIT_CASE(swift__rises_by_what_was_acked_below_a_packet),
	KUNIT_CASE(swift__falls_by_the_excess),
	KUNIT_CASE(swift__falls_by_at_most_max_mdf),
	KUNIT_CASE(swift__falls_once_per_rtt),
	KUNIT_CASE(swift__falls_at_once_after_the_start),
	KUNIT_CASE(swift__loss_is_a_decrease),
	KUNIT_CASE(swift__minimum_after_timeouts),
	KUNIT_CASE(swift__target_falls_with_the_window),
	KUNIT_CASE(swift__rate_is_window_by_rtt),
	KUNIT_CASE(swift__counts_in_packets),
	KUNIT_CASE(swift__app_limited_does_not_rise),
	KUNIT_CASE(swift__stays_within_the_limits),
	KUNIT_CASE(swift__rate_does_not_wrap),
	KUNIT_CASE(probe__never_raises_the_window),
	KUNIT_CASE(swift__connections_share_a_link),
	{}
};

static struct kunit_suite timely_swift_suite = {
	.name = "timely_swift",
	.test_cases = timely_swift_cases,
};

kunit_test_suite(timely_swift_suite);
