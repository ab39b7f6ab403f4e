// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the target-delay rule. Expected values are computed by hand from the formulas at the top
 * of target_delay.c. Comments use its symbols: q is the queueing delay, q0 the target delay, x the
 * gradient term, e the error. rate_flow.h has the functions that simulate completions.
 * kunit/user/rate_fuzz.c compares the rule with floating point for random completions.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include <timely/engine/rate.h>
#include <timely/engine/target_delay.h>

#include "rate_flow.h"

/* The first rate is 1 Gb/s, where q0 is 20 us: 5 us for any rate (rtt_ref - min_rtt) and 15 us that
 * fall with the square root of the rate. beta is 5 %, damp is 40 %.
 */
/* Base RTT; RTT with a queue at its target delay; and the default time between completions. */
#define MIN_RTT_NS	40000
#define AIM_NS		60000
#define STEP_NS		MIN_RTT_NS

static const struct timely_params params = {
	.min_rtt_ns = MIN_RTT_NS,
	.t_low_ns = 45000,
	.t_high_ns = 1000000,
	.rtt_ref_ns = 45000,
	.alpha_ppm = 875000,
	.beta_ppm = 50000,
	.beta_high_ppm = 800000,
	.delta_kbps = 1,
	.segment_bytes = 16384,
	.hai_threshold = 5,
	.hai_factor = 3,
	.rule = TIMELY_RULE_TARGET_DELAY,
	.damp_ppm = 400000,
	.rtt_ref_1g_ns = 15000,
	.min_rate_kbps = 100,
	.max_rate_kbps = 100000000,
	.first_rate_kbps = 1000000,
};

/* The rate in millionths of the first rate, 1 Gb/s. */
static s64 millionths(const struct flow *f)
{
	return (div_u64(f->rate.rate_fp * 8, 1000) + 32768) >> 16;
}

static void expect_near(struct kunit *test, const struct flow *f, s64 want)
{
	KUNIT_EXPECT_GE(test, millionths(f), want - 60);
	KUNIT_EXPECT_LE(test, millionths(f), want + 60);
}

static void ref__falls_by_the_root(struct kunit *test)
{
	static const struct {
		u64 kbps;
		u32 ns;
	} cases[] = {
		{ 1000000, 15000 }, { 4000000, 7500 }, { 250000, 30000 }, { 10000000, 4743 },
		{ 100000, 47434 }, { 100000000, 1500 }, { 1000, 474342 }, { 2000000, 10607 },
		{ 3000000, 8660 }, { 800000000, 530 }, { 1, 15000000 },
	};
	struct flow f;
	u32 i, ns;

	start(&f, &params);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ns = timely_target_ref_ns(&f.cfg, cases[i].kbps * 125 << 16) - params.rtt_ref_ns;
		KUNIT_EXPECT_LE_MSG(test, abs((s64)ns - cases[i].ns), cases[i].ns / 1000 + 1,
				    "%llu kbit/s: %u ns", cases[i].kbps, ns);
	}
}

static void ref__never_rises_with_the_rate(struct kunit *test)
{
	u64 rate_fp = 125 << 16;
	u32 before, ns;
	struct flow f;

	start(&f, &params);
	before = timely_target_ref_ns(&f.cfg, rate_fp);
	/* From 1 kbit/s to 800 Gb/s in steps of 1 %. */
	while (rate_fp < 100000000000ULL << 16) {
		ns = timely_target_ref_ns(&f.cfg, rate_fp);
		KUNIT_EXPECT_LE(test, ns, before + before / 1000);
		before = ns;
		rate_fp += rate_fp / 100;
	}
}

static void ref__is_never_above_a_second(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.rtt_ref_1g_ns = 1000000000;
	p.rtt_ref_ns = 1000000000;
	start(&f, &p);
	KUNIT_EXPECT_EQ(test, timely_target_ref_ns(&f.cfg, 125 << 16), 1000000000);
}

static void target__keeps_the_rate_at_the_target(struct kunit *test)
{
	struct flow f;
	int i;

	start_seeded(&f, &params, AIM_NS);
	for (i = 0; i < 1000; i++)
		ack(&f, AIM_NS);
	/* The target delay is rounded to whole nanoseconds. */
	KUNIT_EXPECT_LE(test, abs(millionths(&f) - 1000000), 500);
}

static void target__error_below_is_relative_to_the_queue(struct kunit *test)
{
	struct flow f;

	/* q = 16 us: the scale is q, as it is above min(q0, min_rtt / 4) / 2 = 5 us. e = -4 / 16.
	 */
	start_seeded(&f, &params, 56000);
	ack(&f, 56000);
	expect_near(test, &f, 1012500);
	/* q = 10 us: e = -10 / 10. */
	start_seeded(&f, &params, 50000);
	ack(&f, 50000);
	expect_near(test, &f, 1050000);
	/* q = 4 us: the scale is 5 us, e = -16 / 5. q = 0: e = -20 / 5. */
	start_seeded(&f, &params, 44000);
	ack(&f, 44000);
	expect_near(test, &f, 1160000);
	start_seeded(&f, &params, MIN_RTT_NS);
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1200000);
}

static void target__error_above_is_relative_to_the_target(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	/* q = 30 us: e = 10 / 20. A round trip is RTT - q0 = 50 us, 10 us longer than min_rtt. */
	start_seeded(&f, &params, 70000);
	ack_after(&f, STEP_NS + 10000, 70000);
	expect_near(test, &f, 975000);
	/* A base RTT of 400 us: the scale is min_rtt / 4 = 100 us, e = 10 / 100. */
	p.min_rtt_ns = 400000;
	p.rtt_ref_ns = 405000;
	start_seeded(&f, &p, 430000);
	ack_after(&f, p.min_rtt_ns + 10000, 430000);
	expect_near(test, &f, 995000);
}

static void target__error_saturates(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	/* Without the decrease in an overload. */
	p.beta_high_ppm = 0;
	start_seeded(&f, &p, 900000);
	ack_after(&f, 900000 - 20000, 900000);
	expect_near(test, &f, 800000);
}

static void target__damps_by_the_overload(struct kunit *test)
{
	struct flow f;

	/* The RTT rises by 4 us in 40 us: x = .4 * 4 / 40 = .04, the factor 1 - x + 3/8 x^2. */
	start_seeded(&f, &params, AIM_NS - 4000);
	ack(&f, AIM_NS);
	expect_near(test, &f, 960600);
	/* The same rise in 80 us: x = .02. */
	start_seeded(&f, &params, AIM_NS - 4000);
	ack_after(&f, 2 * STEP_NS, AIM_NS);
	expect_near(test, &f, 980150);
	/* The RTT falls by 4 us; a round trip is the longer RTT - q0 = 44 us: x = -.4 * 4 / 44. */
	start_seeded(&f, &params, AIM_NS + 4000);
	ack(&f, AIM_NS);
	expect_near(test, &f, 1036859);
	/* The RTT rises to 100 us, a round trip is 80 us: x = .4 * 4 / 80. And e = 40 / 20 counts
	 * for half of a round trip: .05 * 2 / 2.
	 */
	start_seeded(&f, &params, AIM_NS + 36000);
	ack(&f, AIM_NS + 40000);
	expect_near(test, &f, 980150 - 50000);
}

/* Eight completions that share a rise of the RTT reduce the rate as much as one with all of it. */
static void target__damping_adds_up(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.beta_ppm = 0;
	start_seeded(&f, &p, AIM_NS - 4000);
	for (i = 1; i <= 8; i++)
		ack_after(&f, STEP_NS / 8, AIM_NS - 4000 + i * 500);
	/* (1 - x + 3/8 x^2)^8 with x = .04 / 8 */
	expect_near(test, &f, 960765);
}

/* A flow without the error term, whose target delay is the same at any rate. Its RTT rises by
 * 500 ns and falls again, 100 times.
 */
static void jitter(struct flow *f, bool lags)
{
	struct timely_params p = params;
	int i;

	p.beta_ppm = 0;
	p.rtt_ref_ns = AIM_NS;
	p.rtt_ref_1g_ns = 0;
	start_seeded(f, &p, AIM_NS);
	f->cfg.lags = lags;
	for (i = 0; i < 100; i++) {
		ack(f, AIM_NS + 500);
		ack(f, AIM_NS);
	}
}

static void target__jitter_cancels_out(struct kunit *test)
{
	struct flow f;

	jitter(&f, false);
	/* The rate falls by x^2 / 4 with each pair of RTTs, x = .4 * .5 / 40.5. */
	expect_near(test, &f, 999391);
}

/* If rates lag, a fall of the RTT counts for more than the rise before it, which is divided by a
 * longer RTT. So the rate rises when RTTs vary; see "Host delay" in target_delay.c.
 */
static void target__rises_by_jitter_if_rates_lag(struct kunit *test)
{
	struct flow f;

	jitter(&f, true);
	/* Each pair of RTTs: 1 - .4 * .5 / 40.5 times 1 + .4 * .5 / 40. */
	expect_near(test, &f, 1003706);
}

/* Random changes of RTTs do not raise the rate, even if they are much larger than the queue. */
static void target__does_not_rise_by_jitter(struct kunit *test)
{
	struct timely_params p = params;
	u32 up_ns, gap_ns;
	struct flow f;
	int i;

	p.beta_ppm = 0;
	p.rtt_ref_ns = AIM_NS;
	p.rtt_ref_1g_ns = 0;
	for (up_ns = 1000; up_ns <= 100000; up_ns *= 10) {
		for (gap_ns = 1000; gap_ns <= 1000000; gap_ns *= 10) {
			start_seeded(&f, &p, AIM_NS);
			for (i = 0; i < 100; i++) {
				ack_after(&f, gap_ns, AIM_NS + up_ns / 2);
				ack_after(&f, gap_ns, AIM_NS + up_ns);
				ack_after(&f, gap_ns, AIM_NS);
			}
			KUNIT_EXPECT_LE_MSG(test, millionths(&f), 1000000, "%u ns each %u ns",
					    up_ns, gap_ns);
		}
	}
}

static void target__error_is_scaled_by_time(struct kunit *test)
{
	struct flow f;

	/* A round trip is RTT - q0 = 50 us. */
	start_seeded(&f, &params, 70000);
	ack_after(&f, 10000, 70000);
	expect_near(test, &f, 995000);
	start_seeded(&f, &params, 50000);
	ack_after(&f, STEP_NS / 4, 50000);
	expect_near(test, &f, 1012500);
	/* More than a round trip counts as one. */
	start_seeded(&f, &params, 70000);
	ack_after(&f, 8 * STEP_NS, 70000);
	expect_near(test, &f, 975000);
}

/* The error term has its full weight for up to 24 q0 after the last completion. Later the weight is
 * 24 q0 divided by that time.
 */
static void target__rare_completions_weigh_less(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, 70000);
	ack_after(&f, 24 * (AIM_NS - MIN_RTT_NS), 70000);
	expect_near(test, &f, 975000);
	start_seeded(&f, &params, 70000);
	ack_after(&f, 48 * (AIM_NS - MIN_RTT_NS), 70000);
	expect_near(test, &f, 987500);
	start_seeded(&f, &params, 70000);
	ack_after(&f, 1ULL << 40, 70000);
	expect_near(test, &f, 1000000);
}

static void target__one_completion_is_bounded(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.damp_ppm = 1000000;
	start_seeded(&f, &p, MIN_RTT_NS);
	ack(&f, 900000);
	expect_near(test, &f, 500000);
	start_seeded(&f, &p, 900000);
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1250000);
}

/* With q below half of q0 and completions every @gap_ns, the fifth completion is the first with a
 * hyperactive increase.
 */
static void expect_hyper_at_five(struct kunit *test, struct flow *f,
				 const struct timely_params *p, u64 gap_ns)
{
	int i;

	start_seeded(f, p, 49000);
	for (i = 0; i < 4; i++)
		ack_after(f, gap_ns, 49000);
	KUNIT_EXPECT_LE(test, millionths(f), 1010000);
	f->rate.rate_fp = f->cfg.first_rate_fp;
	ack_after(f, gap_ns, 49000);
	KUNIT_EXPECT_LE(test, abs(millionths(f) - 1100000), 1000);
}

static void target__is_hyperactive_when_low_for_long(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	/* A beta so small that the error term hardly changes the rate. */
	p.beta_ppm = 1000;
	p.hai_factor = 100;
	expect_hyper_at_five(test, &f, &p, STEP_NS);
	/* A long time between completions does not count for more than a round trip. */
	expect_hyper_at_five(test, &f, &p, 8 * STEP_NS);
	/* One queueing delay above half of q0 starts the count again. */
	ack(&f, 51000);
	KUNIT_EXPECT_EQ(test, f.rate.low_ns, 0);
	p.hai_threshold = 0;
	start_seeded(&f, &p, 49000);
	for (i = 0; i < 20; i++)
		ack(&f, 49000);
	KUNIT_EXPECT_LE(test, millionths(&f), 1040000);
}

static void target__protects_buffers(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.t_high_ns = 100000;
	/* RTT of twice t_high, one round trip: the rate falls by .8 * (1 - 100 / 200). */
	start_seeded(&f, &p, 200000);
	ack_after(&f, 200000 - 20000, 200000);
	expect_near(test, &f, 600000);
	/* Not while the RTT falls: x = -.4 * 10 / 190, and the error term is .2. */
	start_seeded(&f, &p, 210000);
	ack_after(&f, 210000 - 20000, 200000);
	expect_near(test, &f, 821219);
}

static void target__does_not_rise_if_app_limited(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, 44000);
	f.may_rise = false;
	ack(&f, 44000);
	expect_near(test, &f, 1000000);
	/* Below the first rate it may rise. */
	f.rate.rate_fp = f.cfg.first_rate_fp / 2;
	ack(&f, 44000);
	KUNIT_EXPECT_GE(test, millionths(&f), 520000);
	f.rate.rate_fp = f.cfg.first_rate_fp - 1;
	ack(&f, 44000);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.first_rate_fp);
}

static void target__rare_sender_keeps_its_rate(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, 90000);
	f.app_limited = true;
	f.may_rise = false;
	ack_after(&f, 8 * STEP_NS, 90000);
	expect_near(test, &f, 1000000);
	/* The rate falls if it may rise, if the flow is not app-limited, or in an overload. */
	f.may_rise = true;
	ack_after(&f, 8 * STEP_NS, 90000);
	KUNIT_EXPECT_LT(test, millionths(&f), 960000);
	start_seeded(&f, &params, 90000);
	f.may_rise = false;
	ack_after(&f, 8 * STEP_NS, 90000);
	KUNIT_EXPECT_LT(test, millionths(&f), 960000);
	start_seeded(&f, &params, 1100000);
	f.app_limited = true;
	f.may_rise = false;
	ack_after(&f, 8 * STEP_NS, 1100000);
	KUNIT_EXPECT_LT(test, millionths(&f), 960000);
}

/* With a queue of nine base RTTs, a round trip (RTT - q0) is almost ten base RTTs. 16 completions
 * within this time reduce the rate about as much as one completion at its end.
 */
static void target__reacts_once_per_round_trip(struct kunit *test)
{
	static const u32 queued_ns = MIN_RTT_NS + 9 * STEP_NS;
	struct timely_params p = params;
	u64 whole_fp, share_fp;
	struct flow f;
	u32 i;

	p.beta_high_ppm = 0;
	start_seeded(&f, &p, queued_ns);
	ack_after(&f, queued_ns, queued_ns);
	whole_fp = f.cfg.first_rate_fp - f.rate.rate_fp;
	start_seeded(&f, &p, queued_ns);
	for (i = 0; i < 16; i++)
		ack_after(&f, queued_ns / 16, queued_ns);
	share_fp = f.cfg.first_rate_fp - f.rate.rate_fp;
	KUNIT_EXPECT_GT(test, share_fp, whole_fp * 9 / 10);
	KUNIT_EXPECT_LT(test, share_fp, whole_fp * 3 / 2);
	/* The gradient term, too: less than .4 * 1 us divided by the round trip. */
	start_seeded(&f, &p, queued_ns);
	f.cfg.beta_q16 = 0;
	ack_after(&f, STEP_NS / 40, queued_ns + 1000);
	KUNIT_EXPECT_GT(test, millionths(&f), 1000000 - 400000 * 1000 / (queued_ns - AIM_NS));
	KUNIT_EXPECT_LT(test, millionths(&f), 1000000);
}

/* In an overload the rate falls to the delivery rate, by at most half with each completion. */
static void target__falls_to_the_delivery_rate(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.t_high_ns = 100000;
	p.beta_high_ppm = 0;
	start_seeded(&f, &p, 500000);
	f.delivered_fp = f.cfg.first_rate_fp * 3 / 4;
	ack_after(&f, 1000, 500000);
	expect_near(test, &f, 750000);
	f.delivered_fp = f.cfg.first_rate_fp / 8;
	ack_after(&f, 1000, 500000);
	expect_near(test, &f, 375000);
	for (i = 0; i < 3; i++)
		ack_after(&f, 1000, 500000);
	expect_near(test, &f, 125000);
	/* A rate below the delivery rate does not rise. */
	f.delivered_fp = f.cfg.first_rate_fp;
	ack_after(&f, 1000, 500000);
	KUNIT_EXPECT_LE(test, millionths(&f), 125000);
	/* Below t_high the delivery rate does not count. */
	start_seeded(&f, &p, 99000);
	f.delivered_fp = f.cfg.first_rate_fp / 8;
	ack_after(&f, 1000, 99000);
	KUNIT_EXPECT_GT(test, millionths(&f), 990000);
}

/* Whether an RTT of @rtt_ns is an overload for a connection with a rate of @kbps. */
static bool is_overload(const struct timely_params *p, u32 kbps, u32 rtt_ns)
{
	u64 before_fp = kbps * 125ULL << TIMELY_RATE_SHIFT;
	struct flow f;

	start_seeded(&f, p, rtt_ns);
	f.rate.rate_fp = before_fp;
	/* Without the error term, the rate falls in an overload only. */
	f.cfg.beta_q16 = 0;
	ack_after(&f, MIN_RTT_NS, rtt_ns);
	return f.rate.rate_fp < before_fp;
}

static void target__overload_begins_at_six_targets(struct kunit *test)
{
	struct timely_params p = params;

	/* The target delay is 5 us, and 15 us for each 1 / sqrt(Gb/s). */
	KUNIT_EXPECT_FALSE(test, is_overload(&p, 1000000, MIN_RTT_NS + 119800));
	KUNIT_EXPECT_TRUE(test, is_overload(&p, 1000000, MIN_RTT_NS + 120200));
	KUNIT_EXPECT_FALSE(test, is_overload(&p, 250000, MIN_RTT_NS + 209700));
	KUNIT_EXPECT_TRUE(test, is_overload(&p, 250000, MIN_RTT_NS + 210300));
	/* At t_high at the latest, and two base RTTs above the base RTT at the earliest. */
	p.t_high_ns = 150000;
	KUNIT_EXPECT_FALSE(test, is_overload(&p, 1000000, 150000));
	KUNIT_EXPECT_TRUE(test, is_overload(&p, 1000000, 150001));
	p.rtt_ref_1g_ns = 0;
	KUNIT_EXPECT_FALSE(test, is_overload(&p, 1000000, 3 * MIN_RTT_NS));
	KUNIT_EXPECT_TRUE(test, is_overload(&p, 1000000, 3 * MIN_RTT_NS + 1));
	p.t_high_ns = 100000;
	KUNIT_EXPECT_FALSE(test, is_overload(&p, 1000000, 100000));
	KUNIT_EXPECT_TRUE(test, is_overload(&p, 1000000, 100001));
}

/* Held ACKs are no overload. */
static void target__overload_knows_ack_aggregation(struct kunit *test)
{
	struct timely_params p = params;

	p.ack_aggregation_ns = 25000;
	KUNIT_EXPECT_FALSE(test, is_overload(&p, 1000000, MIN_RTT_NS + 219800));
	KUNIT_EXPECT_TRUE(test, is_overload(&p, 1000000, MIN_RTT_NS + 220200));
	p.rtt_ref_1g_ns = 0;
	KUNIT_EXPECT_FALSE(test, is_overload(&p, 1000000, 3 * MIN_RTT_NS + 100000));
	KUNIT_EXPECT_TRUE(test, is_overload(&p, 1000000, 3 * MIN_RTT_NS + 100001));
}

static void target__one_rtt_is_no_overload(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	start_seeded(&f, &p, 150000);
	f.cfg.beta_q16 = 0;
	f.cfg.damp_q16 = 0;
	ack(&f, 200000);
	expect_near(test, &f, 1000000);
	ack(&f, 200000);
	/* A round trip is 180 us: beta_high * (1 - 160 / 200) * 40 / 180. */
	expect_near(test, &f, 964444);
}

/* After a simultaneous start on long paths, delivery rates would stay unequal for long. */
static void target__delivery_rate_counts_on_short_paths(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	start_seeded(&f, &p, 200000);
	f.delivered_fp = f.cfg.first_rate_fp * 3 / 4;
	ack_after(&f, 1000, 200000);
	expect_near(test, &f, 750000);
	/* The target delay is so short that the limit is three base RTTs. */
	p.rtt_ref_1g_ns = 0;
	start_seeded(&f, &p, 200000);
	f.delivered_fp = f.cfg.first_rate_fp * 3 / 4;
	ack_after(&f, 1000, 200000);
	KUNIT_EXPECT_GT(test, millionths(&f), 990000);
	start_seeded(&f, &p, 1100000);
	f.delivered_fp = f.cfg.first_rate_fp * 3 / 4;
	ack_after(&f, 1000, 1100000);
	expect_near(test, &f, 750000);
}

/* The caller computes a delivery rate only for RTTs that can be an overload. */
static void target__quiet_rtts_need_no_delivery_rate(struct kunit *test)
{
	struct timely_params p = params;
	struct timely_rate_cfg cfg;

	timely_rate_cfg_init(&cfg, &p);
	KUNIT_EXPECT_EQ(test, cfg.quiet_ns, 3 * MIN_RTT_NS);
	p.t_high_ns = 100000;
	timely_rate_cfg_init(&cfg, &p);
	KUNIT_EXPECT_EQ(test, cfg.quiet_ns, 100000);
	p.rule = TIMELY_RULE_PATCHED;
	timely_rate_cfg_init(&cfg, &p);
	KUNIT_EXPECT_EQ(test, cfg.quiet_ns, U32_MAX);
}

/* A flow at the start of a message. Its next completion has a gradient, from an RTT of @rtt_ns. */
static void begin(struct flow *f, const struct timely_params *p, u32 rtt_ns)
{
	start_seeded(f, p, rtt_ns);
	timely_rate_start(&f->rate, &f->cfg, 0);
	f->rate.seeded = 1;
}

/* At the first rate the target delay q0 is 20 us. Where the host receives at a share u of its link
 * rate, it is q0 * (1 + u^2).
 */
static void ingress__raises_the_target(struct kunit *test)
{
	static const struct {
		u32 ingress_q16;
		u32 aim_ns;
	} cases[] = {
		{ 0, AIM_NS }, { 1, AIM_NS }, { 1U << 14, AIM_NS + 1250 },
		{ 1U << 15, AIM_NS + 5000 }, { 1U << 16, AIM_NS + 20000 },
	};
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start_seeded(&f, &params, cases[i].aim_ns);
		f.ingress_q16 = cases[i].ingress_q16;
		ack(&f, cases[i].aim_ns);
		expect_near(test, &f, 1000000);
		start_seeded(&f, &params, cases[i].aim_ns + 1000);
		f.ingress_q16 = cases[i].ingress_q16;
		ack(&f, cases[i].aim_ns + 1000);
		KUNIT_EXPECT_LT(test, millionths(&f), 999500);
		start_seeded(&f, &params, cases[i].aim_ns - 1000);
		f.ingress_q16 = cases[i].ingress_q16;
		ack(&f, cases[i].aim_ns - 1000);
		KUNIT_EXPECT_GT(test, millionths(&f), 1000500);
	}
}

/* Without data in the other direction, RTTs above min_rtt + 6 q0, 160 us, are an overload, in which
 * the rate falls faster than by four times beta. With a target delay of 2 q0, this is no overload.
 */
static void ingress__raises_the_limit_of_an_overload(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, 270000);
	ack_after(&f, 270000, 270000);
	KUNIT_EXPECT_LT(test, millionths(&f), 700000);
	start_seeded(&f, &params, 270000);
	f.ingress_q16 = 1U << 16;
	ack_after(&f, 270000, 270000);
	expect_near(test, &f, 800000);
}

/* Data in both directions: the target delay is 4 us longer, before the host's ingress counts, and
 * multiplied by 1 + u^2 + u^4.
 */
static void both_ways__raise_the_target(struct kunit *test)
{
	static const struct {
		u32 min_rtt_ns;
		u32 ack_agg_ns;
		u32 ingress_q16;
		bool lags;
		u32 more_ns;
	} cases[] = {
		{ MIN_RTT_NS, 0, 0, false, 4000 }, { 12000, 0, 0, false, 3000 },
		{ MIN_RTT_NS, 0, 1U << 15, false, 6250 + 5250 },
		{ MIN_RTT_NS, 0, 1U << 15, true, 6250 },
		{ MIN_RTT_NS, 0, 0, true, 0 }, { MIN_RTT_NS, 25000, 0, false, 0 },
	};
	struct timely_params p = params;
	struct flow f;
	u32 i, aim_ns;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		p.min_rtt_ns = cases[i].min_rtt_ns;
		p.rtt_ref_ns = p.min_rtt_ns + 5000;
		p.ack_aggregation_ns = cases[i].ack_agg_ns;
		aim_ns = p.min_rtt_ns + 20000 + cases[i].more_ns;
		start_seeded(&f, &p, aim_ns);
		f.cfg.lags = cases[i].lags;
		f.both_ways = true;
		f.ingress_q16 = cases[i].ingress_q16;
		ack(&f, aim_ns);
		expect_near(test, &f, 1000000);
	}
}

static void start__grows_by_a_quarter_per_round_trip(struct kunit *test)
{
	struct flow f;

	begin(&f, &params, MIN_RTT_NS);
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1250000);
	begin(&f, &params, MIN_RTT_NS);
	ack_after(&f, STEP_NS / 2, MIN_RTT_NS);
	expect_near(test, &f, 1125000);
	/* At most twice the rate, however long ago the last completion was. */
	begin(&f, &params, MIN_RTT_NS);
	ack_after(&f, 100 * STEP_NS, MIN_RTT_NS);
	expect_near(test, &f, 2000000);
	/* A rate above the link rate grows by small steps. */
	begin(&f, &params, MIN_RTT_NS);
	f.cfg.share_fp = f.rate.rate_fp + 1;
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1250000);
	ack(&f, MIN_RTT_NS);
	KUNIT_EXPECT_LT(test, millionths(&f), 1520000);
	/* An app-limited flow does not grow. */
	begin(&f, &params, MIN_RTT_NS);
	f.may_rise = false;
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1000000);
}

/* q0 is 36 us: 20 us for the rate, and 16 us (40 % of min_rtt) for the start of a message. */
static void start__tolerates_a_longer_queue(struct kunit *test)
{
	struct flow f;

	begin(&f, &params, MIN_RTT_NS + 36000);
	ack(&f, MIN_RTT_NS + 36000);
	expect_near(test, &f, 1000000);
	/* At half of q0 only the error term counts, e = -18 / 18. Below, the growth is a quarter.
	 */
	begin(&f, &params, MIN_RTT_NS + 18000);
	ack(&f, MIN_RTT_NS + 18000);
	expect_near(test, &f, 1050000);
	begin(&f, &params, MIN_RTT_NS + 17900);
	ack(&f, MIN_RTT_NS + 17900);
	expect_near(test, &f, 1250000);
	/* After half of the start, q0 is 28 us. */
	begin(&f, &params, MIN_RTT_NS + 28000);
	f.rate.start_kb = TIMELY_TARGET_START_KB / 2;
	ack(&f, MIN_RTT_NS + 28000);
	expect_near(test, &f, 1000000);
}

/* The start of a message is 128 KB: eight segments of 16 KB. */
static void start__ends(struct kunit *test)
{
	struct flow f;
	int i;

	begin(&f, &params, AIM_NS);
	for (i = 0; i < 7; i++)
		ack(&f, AIM_NS);
	KUNIT_EXPECT_GT(test, f.rate.start_kb, 0);
	ack(&f, AIM_NS);
	KUNIT_EXPECT_EQ(test, f.rate.start_kb, 0);
	f.rate.rate_fp = f.cfg.first_rate_fp;
	ack(&f, AIM_NS);
	expect_near(test, &f, 1000000);
	/* A loss ends the start, too. */
	begin(&f, &params, AIM_NS);
	timely_rate_loss(&f.rate, &f.cfg);
	KUNIT_EXPECT_EQ(test, f.rate.start_kb, 0);
	/* A new flow is at the start of its first message, also after a loss and a restart. */
	start(&f, &params);
	KUNIT_EXPECT_EQ(test, f.rate.start_kb, TIMELY_TARGET_START_KB);
	timely_rate_loss(&f.rate, &f.cfg);
	timely_rate_restart(&f.rate, &f.cfg);
	KUNIT_EXPECT_EQ(test, f.rate.start_kb, TIMELY_TARGET_START_KB);
}

static void start__not_below_the_first_rate(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, AIM_NS);
	f.rate.rate_fp /= 4;
	timely_rate_start(&f.rate, &f.cfg, 0);
	expect_near(test, &f, 1000000);
	KUNIT_EXPECT_FALSE(test, f.rate.seeded);
	f.rate.rate_fp *= 3;
	timely_rate_start(&f.rate, &f.cfg, 0);
	expect_near(test, &f, 3000000);
}

/* The rate that the host's flows share is twice the first rate. A flow starts with the shared rate
 * divided by the number of flows, with or without an RTT.
 */
static void start__shares_the_link(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, AIM_NS);
	f.cfg.share_fp = 2 * f.cfg.first_rate_fp;
	f.rate.rate_fp /= 100;
	timely_rate_start(&f.rate, &f.cfg, 0);
	expect_near(test, &f, 2000000);
	f.rate.rate_fp /= 100;
	timely_rate_start(&f.rate, &f.cfg, 7);
	expect_near(test, &f, 250000);
	/* The start lowers no rate, and is not below the minimum rate. */
	timely_rate_start(&f.rate, &f.cfg, 18);
	expect_near(test, &f, 250000);
	f.rate.rate_fp = 0;
	timely_rate_start(&f.rate, &f.cfg, U32_MAX - 1);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
	start(&f, &params);
	f.cfg.share_fp = 20 * f.cfg.first_rate_fp;
	timely_rate_start(&f.rate, &f.cfg, 3);
	expect_near(test, &f, 5000000);
}

/* A new connection, at 1 Gb/s on a link of 4 Gb/s, has a queue of four times its target. Without
 * opening_bytes it has less than 700 Mb/s afterwards.
 */
static void begin_opening(struct flow *f, u32 opening_bytes)
{
	begin(f, &params, MIN_RTT_NS);
	f->rate.start_kb = 0;
	f->cfg.share_fp = 4 * f->cfg.first_rate_fp;
	f->opening_bytes = opening_bytes;
}

/* 12000 bytes per RTT of 120 us are 800 Mb/s. */
static void opening__keeps_bytes_per_rtt(struct kunit *test)
{
	struct flow f;

	begin_opening(&f, 0);
	ack(&f, 3 * MIN_RTT_NS);
	KUNIT_EXPECT_LT(test, millionths(&f), 700000);
	begin_opening(&f, 12000);
	ack(&f, 3 * MIN_RTT_NS);
	expect_near(test, &f, 800000);
	/* It is no rate to rise to. */
	begin_opening(&f, 20000);
	ack(&f, 3 * MIN_RTT_NS);
	expect_near(test, &f, 1000000);
}

/* From a tenth to a half of the link rate. */
static void opening__keeps_a_share_of_the_link(struct kunit *test)
{
	struct flow f;
	int i;

	begin_opening(&f, 1);
	for (i = 0; i < 20; i++)
		ack(&f, (3 + i) * MIN_RTT_NS);
	expect_near(test, &f, 400000);
	begin_opening(&f, 1 << 24);
	f.rate.rate_fp *= 4;
	for (i = 0; i < 20; i++)
		ack(&f, (3 + i) * MIN_RTT_NS);
	expect_near(test, &f, 2000000);
	/* A first rate that was given does not show the link rate. */
	begin_opening(&f, 1 << 24);
	f.cfg.share_fp = 0;
	ack(&f, 3 * MIN_RTT_NS);
	KUNIT_EXPECT_LT(test, millionths(&f), 700000);
}

static void opening__yields_above_t_high(struct kunit *test)
{
	struct flow f;

	begin_opening(&f, 1 << 24);
	ack(&f, params.t_high_ns);
	expect_near(test, &f, 1000000);
	ack(&f, params.t_high_ns + 1);
	KUNIT_EXPECT_LT(test, millionths(&f), 1000000);
}

static void start__only_with_target_delay(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.rule = TIMELY_RULE_PATCHED;
	start_seeded(&f, &p, AIM_NS);
	f.rate.rate_fp /= 4;
	timely_rate_start(&f.rate, &f.cfg, 0);
	expect_near(test, &f, 250000);
}

/* Two flows share a queue, one faster and one slower than the rate that fits the queue. The faster
 * one falls, the slower one rises, on a very short and on a very long path.
 */
static void target__converges_to_equal_rates(struct kunit *test)
{
	static const u32 bases_ns[] = { 5000, 2000000 };
	struct flow fast, slow;
	u32 i, q;

	for (i = 0; i < ARRAY_SIZE(bases_ns); i++) {
		struct timely_params p = params;

		p.min_rtt_ns = bases_ns[i];
		p.rtt_ref_ns = bases_ns[i] + 5000;
		p.t_high_ns = 2000000000;
		/* The queueing delay that is the target delay at 1 Gb/s. */
		q = 20000;
		start_seeded(&fast, &p, bases_ns[i] + q);
		start_seeded(&slow, &p, bases_ns[i] + q);
		fast.rate.rate_fp *= 2;
		slow.rate.rate_fp /= 2;
		ack_after(&fast, bases_ns[i], bases_ns[i] + q);
		ack_after(&slow, bases_ns[i], bases_ns[i] + q);
		KUNIT_EXPECT_LT(test, fast.rate.rate_fp, 2 * fast.cfg.first_rate_fp);
		KUNIT_EXPECT_GT(test, slow.rate.rate_fp, slow.cfg.first_rate_fp / 2);
	}
}

/* ACK aggregation adds 20 us on average: the scale of time is 200 us, and the rule uses about the
 * minimum queueing delay of the last 32 completions.
 */
static struct timely_params noisy_params(void)
{
	struct timely_params p = params;

	p.ack_aggregation_ns = 20000;
	return p;
}

/* Segments leave alternately 30 and 50 us apart; the receiver delays every second ACK by 40 us. */
static void ack_agg__no_queue(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow plain, noisy;
	u32 i;

	start_seeded(&plain, &params, AIM_NS - 10000);
	start_seeded(&noisy, &p, AIM_NS - 10000);
	for (i = 0; i < 200; i++) {
		/* The queueing delay is below its target; the mean with ACK aggregation is above.
		 */
		ack_after(&plain, i & 1 ? 70000 : 10000, AIM_NS + (i & 1 ? 30000 : -10000));
		ack_after(&noisy, i & 1 ? 70000 : 10000, AIM_NS + (i & 1 ? 30000 : -10000));
	}
	KUNIT_EXPECT_LT(test, millionths(&plain), 900000);
	KUNIT_EXPECT_GT(test, millionths(&noisy), 1000000);
}

static void ack_agg__a_queue_is_seen(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow f;
	u32 i;

	start_seeded(&f, &p, AIM_NS);
	for (i = 0; i < 200; i++)
		ack(&f, AIM_NS + 20000 + (i & 1 ? 40000 : 0));
	KUNIT_EXPECT_LT(test, millionths(&f), 900000);
}

/* With each completion, the recent minimum rises by 1/32 of its difference to the queueing delay.
 * It falls at once.
 */
static void ack_agg__recent_minimum_rises_slowly(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow f;
	u32 i;

	start_seeded(&f, &p, AIM_NS);
	KUNIT_EXPECT_EQ(test, f.cfg.least_shift, 5);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS);
	ack(&f, AIM_NS + 32000);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS + 1000);
	for (i = 0; i < 500; i++)
		ack(&f, AIM_NS + 32000);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS + 32000);
	ack(&f, AIM_NS);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS);
}

/* RTTs rise and fall by 50 us: x is .4 * 50 / 200 = .1, and the rate moves by less than 1 % in 22
 * completions. Without the square in the factor, each rise and fall would lower the rate by 1 %.
 */
static void ack_agg__opposites_cancel_out(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow f;
	u32 i;

	p.beta_ppm = 0;
	start_seeded(&f, &p, AIM_NS);
	ack(&f, AIM_NS + 50000);
	expect_near(test, &f, 905000);
	for (i = 0; i < 21; i++)
		ack(&f, AIM_NS + (i & 1 ? 50000 : 0));
	KUNIT_EXPECT_GE(test, millionths(&f), 990000);
	KUNIT_EXPECT_LE(test, millionths(&f), 1010000);
}

/* ACKs that arrive together complete segments that left at different times. The update counts the
 * time between the departures.
 */
static void ack_agg__time_is_between_departures(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow together, apart;

	p.damp_ppm = 0;
	start_seeded(&together, &p, AIM_NS + 40000);
	start_seeded(&apart, &p, AIM_NS + 40000);
	ack_after(&together, 0, AIM_NS);
	ack_after(&apart, 40000, AIM_NS + 40000);
	/* First, @together has a queueing delay at its target. Then both have the same queueing
	 * delay above their targets, and the same 40 us between departures.
	 */
	expect_near(test, &together, 1000000);
	start_seeded(&together, &p, AIM_NS + 80000);
	start_seeded(&apart, &p, AIM_NS + 40000);
	ack_after(&together, 0, AIM_NS + 40000);
	ack_after(&apart, 40000, AIM_NS + 40000);
	expect_near(test, &together, millionths(&apart));
	KUNIT_EXPECT_LT(test, millionths(&together), 990000);
}

static struct kunit_case timely_target_cases[] = {
	KUNIT_CASE(ref__falls_by_the_root),
	KUNIT_CASE(ref__never_rises_with_the_rate),
	KUNIT_CASE(ref__is_never_above_a_second),
	KUNIT_CASE(target__keeps_the_rate_at_the_target),
	KUNIT_CASE(target__error_below_is_relative_to_the_queue),
	KUNIT_CASE(target__error_above_is_relative_to_the_target),
	KUNIT_CASE(target__error_saturates),
	KUNIT_CASE(target__damps_by_the_overload),
	KUNIT_CASE(target__damping_adds_up),
	KUNIT_CASE(target__jitter_cancels_out),
	KUNIT_CASE(target__rises_by_jitter_if_rates_lag),
	KUNIT_CASE(target__does_not_rise_by_jitter),
	KUNIT_CASE(target__error_is_scaled_by_time),
	KUNIT_CASE(target__rare_completions_weigh_less),
	KUNIT_CASE(target__one_completion_is_bounded),
	KUNIT_CASE(target__is_hyperactive_when_low_for_long),
	KUNIT_CASE(target__protects_buffers),
	KUNIT_CASE(target__reacts_once_per_round_trip),
	KUNIT_CASE(target__falls_to_the_delivery_rate),
	KUNIT_CASE(target__overload_begins_at_six_targets),
	KUNIT_CASE(target__overload_knows_ack_aggregation),
	KUNIT_CASE(target__one_rtt_is_no_overload),
	KUNIT_CASE(target__delivery_rate_counts_on_short_paths),
	KUNIT_CASE(target__quiet_rtts_need_no_delivery_rate),
	KUNIT_CASE(target__does_not_rise_if_app_limited),
	KUNIT_CASE(target__rare_sender_keeps_its_rate),
	KUNIT_CASE(ingress__raises_the_target),
	KUNIT_CASE(ingress__raises_the_limit_of_an_overload),
	KUNIT_CASE(both_ways__raise_the_target),
	KUNIT_CASE(start__grows_by_a_quarter_per_round_trip),
	KUNIT_CASE(start__tolerates_a_longer_queue),
	KUNIT_CASE(start__ends),
	KUNIT_CASE(start__not_below_the_first_rate),
	KUNIT_CASE(start__shares_the_link),
	KUNIT_CASE(start__only_with_target_delay),
	KUNIT_CASE(opening__keeps_bytes_per_rtt),
	KUNIT_CASE(opening__keeps_a_share_of_the_link),
	KUNIT_CASE(opening__yields_above_t_high),
	KUNIT_CASE(target__converges_to_equal_rates),
	KUNIT_CASE(ack_agg__no_queue),
	KUNIT_CASE(ack_agg__a_queue_is_seen),
	KUNIT_CASE(ack_agg__recent_minimum_rises_slowly),
	KUNIT_CASE(ack_agg__opposites_cancel_out),
	KUNIT_CASE(ack_agg__time_is_between_departures),
	{}
};

static struct kunit_suite timely_target_suite = {
	.name = "timely_target_delay",
	.test_cases = timely_target_cases,
};

kunit_test_suite(timely_target_suite);
