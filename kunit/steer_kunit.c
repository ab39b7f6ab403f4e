// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the steering rule. Values are worked out by hand from the formulas at the top
 * of steer.c; kunit/user/rate_fuzz.c compares the rule with floating point at random.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include <timely/engine/rate.h>
#include <timely/engine/steer.h>

#include "rate_flow.h"

/* A queue of 20 us at 1 Gb/s, of which 15 us are for the rate; 5 % of the rate for an
 * error of one, 40 % of the overload.
 */
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
	.rule = TIMELY_RULE_STEER,
	.damp_ppm = 400000,
	.rtt_ref_1g_ns = 15000,
	.min_rate_kbps = 100,
	.max_rate_kbps = 100000000,
	.first_rate_kbps = 1000000,
};

/* What a rate of 10^6 has become, of 1 Gb/s. */
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
		ns = timely_steer_ref_ns(&f.law, cases[i].kbps * 125 << 16) - params.rtt_ref_ns;
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
	before = timely_steer_ref_ns(&f.law, rate_fp);
	/* A hundredth of a unit at a time, over all octaves. */
	while (rate_fp < 100000000000ULL << 16) {
		ns = timely_steer_ref_ns(&f.law, rate_fp);
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
	KUNIT_EXPECT_EQ(test, timely_steer_ref_ns(&f.law, 125 << 16), 1000000000);
}

static void steer__rests_at_its_aim(struct kunit *test)
{
	struct flow f;
	int i;

	start_seeded(&f, &params, AIM_NS);
	for (i = 0; i < 1000; i++)
		ack(&f, AIM_NS);
	/* But for a nanosecond. */
	KUNIT_EXPECT_LE(test, abs(millionths(&f) - 1000000), 500);
}

static void steer__error_below_is_of_the_room_left(struct kunit *test)
{
	struct flow f;

	/* 16 us of 20: 4 us of the greater of 16 and half of min(20, 40 / 4) us. */
	start_seeded(&f, &params, 56000);
	ack(&f, 56000);
	expect_near(test, &f, 1012500);
	/* 10 us of 20: of 10. */
	start_seeded(&f, &params, 50000);
	ack(&f, 50000);
	expect_near(test, &f, 1050000);
	/* 4 us of 20: 16 us of 5, or 3.2; nothing of 20: 4. */
	start_seeded(&f, &params, 44000);
	ack(&f, 44000);
	expect_near(test, &f, 1160000);
	start_seeded(&f, &params, MIN_RTT_NS);
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1200000);
}

static void steer__error_above_is_of_the_aim(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	/* 30 us: 10 of 20, after a round trip, 10 us longer than it should be. */
	start_seeded(&f, &params, 70000);
	ack_after(&f, STEP_NS + 10000, 70000);
	expect_near(test, &f, 975000);
	/* A path of 400 us: 10 of 100. */
	p.min_rtt_ns = 400000;
	p.rtt_ref_ns = 405000;
	start_seeded(&f, &p, 430000);
	ack_after(&f, p.min_rtt_ns + 10000, 430000);
	expect_near(test, &f, 995000);
}

static void steer__error_saturates(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, 900000);
	ack_after(&f, 900000 - 20000, 900000);
	expect_near(test, &f, 800000);
}

static void steer__damps_by_the_overload(struct kunit *test)
{
	struct flow f;

	/* 4 us more in 40 us: an overload of a tenth, of which 40 % go: 1 - .04 + 3/8 * .0016. */
	start_seeded(&f, &params, AIM_NS - 4000);
	ack(&f, AIM_NS);
	expect_near(test, &f, 960600);
	/* In 80 us: of a twentieth. */
	start_seeded(&f, &params, AIM_NS - 4000);
	ack_after(&f, 2 * STEP_NS, AIM_NS);
	expect_near(test, &f, 980150);
	/* And with a queue that shrinks by as much, from a round trip of 44 us on. */
	start_seeded(&f, &params, AIM_NS + 4000);
	ack(&f, AIM_NS);
	expect_near(test, &f, 1036859);
	/* In a round trip of 80 us of an eightieth: 20 % of a twentieth, and of the error 10. */
	start_seeded(&f, &params, AIM_NS + 36000);
	ack(&f, AIM_NS + 40000);
	expect_near(test, &f, 980150 - 50000);
}

/* Completions that come faster tell of the same overload, in parts. */
static void steer__damping_adds_up(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.beta_ppm = 0;
	start_seeded(&f, &p, AIM_NS - 4000);
	for (i = 1; i <= 8; i++)
		ack_after(&f, STEP_NS / 8, AIM_NS - 4000 + i * 500);
	/* (1 - x + 3/8 x^2) ^ 8, x = .04 / 8 */
	expect_near(test, &f, 960765);
}

static void steer__takes_noise_back(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.beta_ppm = 0;
	/* The same queue at any rate. */
	p.rtt_ref_ns = AIM_NS;
	p.rtt_ref_1g_ns = 0;
	start_seeded(&f, &p, AIM_NS);
	for (i = 0; i < 100; i++) {
		ack(&f, AIM_NS + 500);
		ack(&f, AIM_NS);
	}
	/* x^2 / 4 less each time, x = .4 * .5 / 40.5 */
	expect_near(test, &f, 999391);
}

/* Where rates come late a fall counts for more than the rise before it, as noise is not known. */
static void steer__rises_by_noise_where_rates_lag(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.beta_ppm = 0;
	p.rtt_ref_ns = AIM_NS;
	p.rtt_ref_1g_ns = 0;
	start_seeded(&f, &p, AIM_NS);
	f.law.lags = true;
	for (i = 0; i < 100; i++) {
		ack(&f, AIM_NS + 500);
		ack(&f, AIM_NS);
	}
	/* 1 - .4 * .5 / 40.5 and 1 + .4 * .5 / 40 */
	expect_near(test, &f, 1003706);
}

/* A flow whose RTTs jump by far more than its queue gains nothing by it. */
static void steer__does_not_rise_by_noise(struct kunit *test)
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

static void steer__error_is_scaled_by_time(struct kunit *test)
{
	struct flow f;

	/* A round trip is 50 us, beside the queue that should be. */
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

/* Who hears of the path every now and then moves by what the queue is good for: full
 * weight up to 24 of its aims, then less.
 */
static void steer__error_is_less_for_the_rare(struct kunit *test)
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

static void steer__one_completion_is_bounded(struct kunit *test)
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

/* At the fifth of completions that come so far apart, the queue below half of its aim. */
static void expect_hyper_at_five(struct kunit *test, struct flow *f,
				 const struct timely_params *p, u64 gap_ns)
{
	int i;

	start_seeded(f, p, 49000);
	for (i = 0; i < 4; i++)
		ack_after(f, gap_ns, 49000);
	KUNIT_EXPECT_LE(test, millionths(f), 1010000);
	f->rate.rate_fp = f->law.first_rate_fp;
	ack_after(f, gap_ns, 49000);
	KUNIT_EXPECT_LE(test, abs(millionths(f) - 1100000), 1000);
}

static void steer__is_hyperactive_when_low_for_long(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	/* Without the error's share. */
	p.beta_ppm = 1000;
	p.hai_factor = 100;
	expect_hyper_at_five(test, &f, &p, STEP_NS);
	/* Not one short queue after a long time. */
	expect_hyper_at_five(test, &f, &p, 8 * STEP_NS);
	/* Once above, all over again. */
	ack(&f, 51000);
	KUNIT_EXPECT_EQ(test, f.rate.low_ns, 0);
	p.hai_threshold = 0;
	start_seeded(&f, &p, 49000);
	for (i = 0; i < 20; i++)
		ack(&f, 49000);
	KUNIT_EXPECT_LE(test, millionths(&f), 1040000);
}

static void steer__protects_buffers(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.t_high_ns = 100000;
	/* 0.8 * (1 - 100 / 200), in a round trip */
	start_seeded(&f, &p, 200000);
	ack_after(&f, 200000 - 20000, 200000);
	expect_near(test, &f, 600000);
	/* Not while it shrinks: 40 % of 10 / 190, less 20 % for the error. */
	start_seeded(&f, &p, 210000);
	ack_after(&f, 210000 - 20000, 200000);
	expect_near(test, &f, 821219);
}

static void steer__does_not_rise_unused(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, 44000);
	f.may_rise = false;
	ack(&f, 44000);
	expect_near(test, &f, 1000000);
	/* But up to the first rate. */
	f.rate.rate_fp = f.law.first_rate_fp / 2;
	ack(&f, 44000);
	KUNIT_EXPECT_GE(test, millionths(&f), 520000);
	f.rate.rate_fp = f.law.first_rate_fp - 1;
	ack(&f, 44000);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.law.first_rate_fp);
}

static void steer__now_and_then_is_not_blamed(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, 90000);
	f.app_limited = true;
	f.may_rise = false;
	ack_after(&f, 8 * STEP_NS, 90000);
	expect_near(test, &f, 1000000);
	/* Unless it uses its rate, or has no excuse, or all is lost. */
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

/* In a queue of nine round trips they last ten, of which one is the queue's that should be. */
static void steer__answers_once_a_round_trip(struct kunit *test)
{
	static const u32 queued_ns = MIN_RTT_NS + 9 * STEP_NS;
	struct timely_params p = params;
	u64 whole_fp, share_fp;
	struct flow f;
	u32 i;

	p.t_high_ns = 2000000000;
	start_seeded(&f, &p, queued_ns);
	ack_after(&f, queued_ns, queued_ns);
	whole_fp = f.law.first_rate_fp - f.rate.rate_fp;
	start_seeded(&f, &p, queued_ns);
	for (i = 0; i < 16; i++)
		ack_after(&f, queued_ns / 16, queued_ns);
	share_fp = f.law.first_rate_fp - f.rate.rate_fp;
	KUNIT_EXPECT_GT(test, share_fp, whole_fp * 9 / 10);
	KUNIT_EXPECT_LT(test, share_fp, whole_fp * 3 / 2);
	/* And of a queue that grows: .4 of 1 us in what a round trip is by then. */
	start_seeded(&f, &p, queued_ns);
	f.law.beta_q16 = 0;
	ack_after(&f, STEP_NS / 40, queued_ns + 1000);
	KUNIT_EXPECT_GT(test, millionths(&f), 1000000 - 400000 * 1000 / (queued_ns - AIM_NS));
	KUNIT_EXPECT_LT(test, millionths(&f), 1000000);
}

/* By half with each completion at most, and not below what the rule itself says. */
static void steer__falls_to_what_arrives(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.t_high_ns = 100000;
	p.beta_high_ppm = 0;
	start_seeded(&f, &p, 500000);
	f.delivered_fp = f.law.first_rate_fp * 3 / 4;
	ack_after(&f, 1000, 500000);
	expect_near(test, &f, 750000);
	f.delivered_fp = f.law.first_rate_fp / 8;
	ack_after(&f, 1000, 500000);
	expect_near(test, &f, 375000);
	for (i = 0; i < 3; i++)
		ack_after(&f, 1000, 500000);
	expect_near(test, &f, 125000);
	/* Who sends less than arrives of him does not rise. */
	f.delivered_fp = f.law.first_rate_fp;
	ack_after(&f, 1000, 500000);
	KUNIT_EXPECT_LE(test, millionths(&f), 125000);
	/* Below Thigh it does not matter. */
	start_seeded(&f, &p, 99000);
	f.delivered_fp = f.law.first_rate_fp / 8;
	ack_after(&f, 1000, 99000);
	KUNIT_EXPECT_GT(test, millionths(&f), 990000);
}

/* Of a message, 16 KB at a time. */
static void begin(struct flow *f, const struct timely_params *p, u32 rtt_ns)
{
	start_seeded(f, p, rtt_ns);
	timely_rate_begin(&f->rate, &f->law, 0);
	f->rate.seeded = 1;
}

static void begin__grows_by_a_quarter_a_round_trip(struct kunit *test)
{
	struct flow f;

	begin(&f, &params, MIN_RTT_NS);
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1250000);
	begin(&f, &params, MIN_RTT_NS);
	ack_after(&f, STEP_NS / 2, MIN_RTT_NS);
	expect_near(test, &f, 1125000);
	/* By a doubling at most, after however long. */
	begin(&f, &params, MIN_RTT_NS);
	ack_after(&f, 100 * STEP_NS, MIN_RTT_NS);
	expect_near(test, &f, 2000000);
	/* Not where it is not used. */
	begin(&f, &params, MIN_RTT_NS);
	f.may_rise = false;
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1000000);
}

/* 20 us are for the rate, 16 for the beginning. */
static void begin__bears_a_longer_queue(struct kunit *test)
{
	struct flow f;

	begin(&f, &params, MIN_RTT_NS + 36000);
	ack(&f, MIN_RTT_NS + 36000);
	expect_near(test, &f, 1000000);
	/* At half of it the growth is by the error: 18 us of 18. */
	begin(&f, &params, MIN_RTT_NS + 18000);
	ack(&f, MIN_RTT_NS + 18000);
	expect_near(test, &f, 1050000);
	begin(&f, &params, MIN_RTT_NS + 17900);
	ack(&f, MIN_RTT_NS + 17900);
	expect_near(test, &f, 1250000);
	/* Halfway 28 us. */
	begin(&f, &params, MIN_RTT_NS + 28000);
	f.rate.fresh_kb = TIMELY_STEER_FRESH_KB / 2;
	ack(&f, MIN_RTT_NS + 28000);
	expect_near(test, &f, 1000000);
}

/* 128 KB of 16 KB and what each is rounded up by: eight segments. */
static void begin__ends(struct kunit *test)
{
	struct flow f;
	int i;

	begin(&f, &params, AIM_NS);
	for (i = 0; i < 7; i++)
		ack(&f, AIM_NS);
	KUNIT_EXPECT_GT(test, f.rate.fresh_kb, 0);
	ack(&f, AIM_NS);
	KUNIT_EXPECT_EQ(test, f.rate.fresh_kb, 0);
	f.rate.rate_fp = f.law.first_rate_fp;
	ack(&f, AIM_NS);
	expect_near(test, &f, 1000000);
	/* And with a loss. */
	begin(&f, &params, AIM_NS);
	timely_rate_lose(&f.rate, &f.law);
	KUNIT_EXPECT_EQ(test, f.rate.fresh_kb, 0);
	/* A new flow is at its first message's. */
	start(&f, &params);
	KUNIT_EXPECT_EQ(test, f.rate.fresh_kb, TIMELY_STEER_FRESH_KB);
	timely_rate_lose(&f.rate, &f.law);
	timely_rate_restart(&f.rate, &f.law);
	KUNIT_EXPECT_EQ(test, f.rate.fresh_kb, TIMELY_STEER_FRESH_KB);
}

static void begin__is_at_the_first_rate_at_least(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, AIM_NS);
	f.rate.rate_fp /= 4;
	timely_rate_begin(&f.rate, &f.law, 0);
	expect_near(test, &f, 1000000);
	KUNIT_EXPECT_FALSE(test, f.rate.seeded);
	f.rate.rate_fp *= 3;
	timely_rate_begin(&f.rate, &f.law, 0);
	expect_near(test, &f, 3000000);
}

/* The line is twice the first rate. */
static void begin__shares_the_line(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &params, AIM_NS);
	f.law.share_fp = 2 * f.law.first_rate_fp;
	f.rate.rate_fp /= 100;
	timely_rate_begin(&f.rate, &f.law, 0);
	expect_near(test, &f, 1000000);
	f.rate.rate_fp /= 100;
	timely_rate_begin(&f.rate, &f.law, 6);
	expect_near(test, &f, 250000);
	/* Below a rate that is known to be good it does not begin, nor below the least. */
	timely_rate_begin(&f.rate, &f.law, 18);
	expect_near(test, &f, 250000);
	f.rate.rate_fp = 0;
	timely_rate_begin(&f.rate, &f.law, U32_MAX - 2);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.law.min_rate_fp);
	/* One that has not seen the path is a new flow. */
	start(&f, &params);
	f.law.share_fp = 20 * f.law.first_rate_fp;
	timely_rate_begin(&f.rate, &f.law, 0);
	expect_near(test, &f, 1000000);
}

static void begin__is_steerings(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.rule = TIMELY_RULE_PATCHED;
	start_seeded(&f, &p, AIM_NS);
	f.rate.rate_fp /= 4;
	timely_rate_begin(&f.rate, &f.law, 0);
	expect_near(test, &f, 250000);
}

/* Two flows at one queue, of paths as different as can be: the slower one gains. */
static void steer__meets_at_equal_rates(struct kunit *test)
{
	static const u32 bases_ns[] = { 5000, 2000000 };
	struct flow fast, slow;
	u32 i, q;

	for (i = 0; i < ARRAY_SIZE(bases_ns); i++) {
		struct timely_params p = params;

		p.min_rtt_ns = bases_ns[i];
		p.rtt_ref_ns = bases_ns[i] + 5000;
		p.t_high_ns = 2000000000;
		/* The queue at which both would rest at 1 Gb/s. */
		q = 20000;
		start_seeded(&fast, &p, bases_ns[i] + q);
		start_seeded(&slow, &p, bases_ns[i] + q);
		fast.rate.rate_fp *= 2;
		slow.rate.rate_fp /= 2;
		ack_after(&fast, bases_ns[i], bases_ns[i] + q);
		ack_after(&slow, bases_ns[i], bases_ns[i] + q);
		KUNIT_EXPECT_LT(test, fast.rate.rate_fp, 2 * fast.law.first_rate_fp);
		KUNIT_EXPECT_GT(test, slow.rate.rate_fp, slow.law.first_rate_fp / 2);
	}
}

/* 20 us of noise on average: a scale of 200 us, the least of 32 completions or so. */
static struct timely_params noisy_params(void)
{
	struct timely_params p = params;

	p.rtt_noise_ns = 20000;
	return p;
}

/* Sent 30 and 50 us apart, every second one's ACK is held for 40 us. */
static void noise__is_no_queue(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow plain, noisy;
	u32 i;

	start_seeded(&plain, &params, AIM_NS - 10000);
	start_seeded(&noisy, &p, AIM_NS - 10000);
	for (i = 0; i < 200; i++) {
		/* A queue below the aim, which its mean with the noise is above. */
		ack_after(&plain, i & 1 ? 70000 : 10000, AIM_NS + (i & 1 ? 30000 : -10000));
		ack_after(&noisy, i & 1 ? 70000 : 10000, AIM_NS + (i & 1 ? 30000 : -10000));
	}
	KUNIT_EXPECT_LT(test, millionths(&plain), 900000);
	KUNIT_EXPECT_GT(test, millionths(&noisy), 1000000);
}

static void noise__a_queue_is_seen(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow f;
	u32 i;

	start_seeded(&f, &p, AIM_NS);
	for (i = 0; i < 200; i++)
		ack(&f, AIM_NS + 20000 + (i & 1 ? 40000 : 0));
	KUNIT_EXPECT_LT(test, millionths(&f), 900000);
}

/* 31 of 32 parts of what is more remain, but it does not stick; less counts at once. */
static void noise__least_rises_by_and_by(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow f;
	u32 i;

	start_seeded(&f, &p, AIM_NS);
	KUNIT_EXPECT_EQ(test, f.law.least_shift, 5);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS);
	ack(&f, AIM_NS + 32000);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS + 1000);
	for (i = 0; i < 500; i++)
		ack(&f, AIM_NS + 32000);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS + 32000);
	ack(&f, AIM_NS);
	KUNIT_EXPECT_EQ(test, f.rate.least_ns, AIM_NS - MIN_RTT_NS);
}

/* 50 us up and down again: .4 * 50 / 200 of the rate each, but for the pull (less than 1 %);
 * without the second term it would be 1 % less each time.
 */
static void noise__opposites_cancel_out(struct kunit *test)
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

/* What came together was sent at different times, and counts by those. */
static void noise__time_is_between_departures(struct kunit *test)
{
	struct timely_params p = noisy_params();
	struct flow together, apart;

	p.damp_ppm = 0;
	start_seeded(&together, &p, AIM_NS + 40000);
	start_seeded(&apart, &p, AIM_NS + 40000);
	ack_after(&together, 0, AIM_NS);
	ack_after(&apart, 40000, AIM_NS + 40000);
	/* 40 us of the scale's 200, an error of 0 for one and of more for the other. */
	expect_near(test, &together, 1000000);
	start_seeded(&together, &p, AIM_NS + 80000);
	start_seeded(&apart, &p, AIM_NS + 40000);
	ack_after(&together, 0, AIM_NS + 40000);
	ack_after(&apart, 40000, AIM_NS + 40000);
	expect_near(test, &together, millionths(&apart));
	KUNIT_EXPECT_LT(test, millionths(&together), 990000);
}

static struct kunit_case timely_steer_cases[] = {
	KUNIT_CASE(ref__falls_by_the_root),
	KUNIT_CASE(ref__never_rises_with_the_rate),
	KUNIT_CASE(ref__is_never_above_a_second),
	KUNIT_CASE(steer__rests_at_its_aim),
	KUNIT_CASE(steer__error_below_is_of_the_room_left),
	KUNIT_CASE(steer__error_above_is_of_the_aim),
	KUNIT_CASE(steer__error_saturates),
	KUNIT_CASE(steer__damps_by_the_overload),
	KUNIT_CASE(steer__damping_adds_up),
	KUNIT_CASE(steer__takes_noise_back),
	KUNIT_CASE(steer__rises_by_noise_where_rates_lag),
	KUNIT_CASE(steer__does_not_rise_by_noise),
	KUNIT_CASE(steer__error_is_scaled_by_time),
	KUNIT_CASE(steer__error_is_less_for_the_rare),
	KUNIT_CASE(steer__one_completion_is_bounded),
	KUNIT_CASE(steer__is_hyperactive_when_low_for_long),
	KUNIT_CASE(steer__protects_buffers),
	KUNIT_CASE(steer__answers_once_a_round_trip),
	KUNIT_CASE(steer__falls_to_what_arrives),
	KUNIT_CASE(steer__does_not_rise_unused),
	KUNIT_CASE(steer__now_and_then_is_not_blamed),
	KUNIT_CASE(begin__grows_by_a_quarter_a_round_trip),
	KUNIT_CASE(begin__bears_a_longer_queue),
	KUNIT_CASE(begin__ends),
	KUNIT_CASE(begin__is_at_the_first_rate_at_least),
	KUNIT_CASE(begin__shares_the_line),
	KUNIT_CASE(begin__is_steerings),
	KUNIT_CASE(steer__meets_at_equal_rates),
	KUNIT_CASE(noise__is_no_queue),
	KUNIT_CASE(noise__a_queue_is_seen),
	KUNIT_CASE(noise__least_rises_by_and_by),
	KUNIT_CASE(noise__opposites_cancel_out),
	KUNIT_CASE(noise__time_is_between_departures),
	{}
};

static struct kunit_suite timely_steer_suite = {
	.name = "timely_steer",
	.test_cases = timely_steer_cases,
};

kunit_test_suite(timely_steer_suite);
