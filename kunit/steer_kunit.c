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

#include <net/timely.h>
#include <net/timely_steer.h>

/* A queue of 20 us at 1 Gb/s, of which 15 us are for the rate; 5 % of the rate for an
 * error of one, 40 % of the overload.
 */
#define MIN_RTT_NS	40000
#define AIM_NS		60000
#define STEP_NS		MIN_RTT_NS
#define START_NS	1000000000ULL

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

struct flow {
	struct timely_rate_law law;
	struct timely_rate rate;
	u64 now_ns;
};

static void start(struct flow *f, const struct timely_params *p)
{
	timely_rate_law_init(&f->law, p);
	timely_rate_init(&f->rate, &f->law);
	f->now_ns = START_NS;
}

static void ack_as(struct flow *f, u64 after_ns, u32 rtt_ns, bool may_rise, bool app_limited)
{
	f->now_ns += after_ns;
	timely_rate_update(&f->rate, &f->law, &(struct timely_completion){
		.now_ns = f->now_ns, .rtt_ns = rtt_ns, .bytes = 16384,
		.may_rise = may_rise, .app_limited = app_limited,
	});
}

static void ack(struct flow *f, u32 rtt_ns)
{
	ack_as(f, STEP_NS, rtt_ns, true, false);
}

/* With the last RTT as given, and the first rate. */
static void start_at(struct flow *f, const struct timely_params *p, u32 rtt_ns)
{
	start(f, p);
	ack(f, rtt_ns);
	f->rate.rate_fp = f->law.first_rate_fp;
	f->rate.low_ns = 0;
}

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

	start_at(&f, &params, AIM_NS);
	for (i = 0; i < 1000; i++)
		ack(&f, AIM_NS);
	/* But for a nanosecond. */
	KUNIT_EXPECT_LE(test, abs(millionths(&f) - 1000000), 500);
}

static void steer__error_below_is_of_the_room_left(struct kunit *test)
{
	struct flow f;

	/* 16 us of 20: 4 us of the greater of 16 and min(20, 40 / 4) us. */
	start_at(&f, &params, 56000);
	ack(&f, 56000);
	expect_near(test, &f, 1012500);
	/* 4 us of 20: 16 us of 10. */
	start_at(&f, &params, 44000);
	ack(&f, 44000);
	expect_near(test, &f, 1080000);
}

static void steer__error_above_is_of_the_aim(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	/* 30 us: 10 of 20. */
	start_at(&f, &params, 70000);
	ack(&f, 70000);
	expect_near(test, &f, 975000);
	/* A path of 400 us: 10 of 100. */
	p.min_rtt_ns = 400000;
	p.rtt_ref_ns = 405000;
	start_at(&f, &p, 430000);
	ack_as(&f, p.min_rtt_ns, 430000, true, false);
	expect_near(test, &f, 995000);
}

static void steer__error_saturates(struct kunit *test)
{
	struct flow f;

	start_at(&f, &params, 900000);
	ack(&f, 900000);
	expect_near(test, &f, 800000);
}

static void steer__damps_by_the_overload(struct kunit *test)
{
	struct flow f;

	/* 4 us more in 40 us: an overload of a tenth, of which 40 % go. */
	start_at(&f, &params, AIM_NS - 4000);
	ack(&f, AIM_NS);
	expect_near(test, &f, 960000);
	/* In 80 us: of a twentieth. */
	start_at(&f, &params, AIM_NS - 4000);
	ack_as(&f, 2 * STEP_NS, AIM_NS, true, false);
	expect_near(test, &f, 980000);
	/* And with a queue that shrinks by as much. */
	start_at(&f, &params, AIM_NS + 4000);
	ack(&f, AIM_NS);
	expect_near(test, &f, 1040000);
}

/* Completions that come faster tell of the same overload, in parts. */
static void steer__damping_adds_up(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.beta_ppm = 0;
	start_at(&f, &p, AIM_NS - 4000);
	for (i = 1; i <= 8; i++)
		ack_as(&f, STEP_NS / 8, AIM_NS - 4000 + i * 500, true, false);
	/* (1 - 0.04 / 8) ^ 8 */
	expect_near(test, &f, 960692);
}

static void steer__takes_noise_back(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	p.beta_ppm = 0;
	start_at(&f, &p, AIM_NS);
	for (i = 0; i < 100; i++) {
		ack(&f, AIM_NS + 500);
		ack(&f, AIM_NS);
	}
	/* 1 - 0.005^2 each time */
	expect_near(test, &f, 997503);
}

static void steer__error_is_scaled_by_time(struct kunit *test)
{
	struct flow f;

	start_at(&f, &params, 70000);
	ack_as(&f, STEP_NS / 4, 70000, true, false);
	expect_near(test, &f, 993750);
	/* More than a round trip counts as one. */
	start_at(&f, &params, 70000);
	ack_as(&f, 10 * STEP_NS, 70000, true, false);
	expect_near(test, &f, 975000);
}

static void steer__one_completion_is_bounded(struct kunit *test)
{
	struct flow f;

	start_at(&f, &params, MIN_RTT_NS);
	ack(&f, 900000);
	expect_near(test, &f, 500000);
	start_at(&f, &params, 900000);
	ack(&f, MIN_RTT_NS);
	expect_near(test, &f, 1250000);
}

static void steer__is_hyperactive_when_low_for_long(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;
	int i;

	/* Below half of the aim; without the error's share. */
	p.beta_ppm = 1000;
	p.hai_factor = 100;
	start_at(&f, &p, 49000);
	for (i = 0; i < 4; i++)
		ack(&f, 49000);
	KUNIT_EXPECT_LE(test, millionths(&f), 1010000);
	f.rate.rate_fp = f.law.first_rate_fp;
	ack(&f, 49000);
	KUNIT_EXPECT_LE(test, abs(millionths(&f) - 1100000), 1000);
	/* Once above, all over again. */
	ack(&f, 51000);
	KUNIT_EXPECT_EQ(test, f.rate.low_ns, 0);
	p.hai_threshold = 0;
	start_at(&f, &p, 49000);
	for (i = 0; i < 20; i++)
		ack(&f, 49000);
	KUNIT_EXPECT_LE(test, millionths(&f), 1040000);
}

static void steer__protects_buffers(struct kunit *test)
{
	struct timely_params p = params;
	struct flow f;

	p.t_high_ns = 100000;
	/* 0.8 * (1 - 100 / 200) */
	start_at(&f, &p, 200000);
	ack(&f, 200000);
	expect_near(test, &f, 600000);
	/* Not while it shrinks: 40 % of 10 / 40, less 20 % for the error. */
	start_at(&f, &p, 210000);
	ack(&f, 200000);
	expect_near(test, &f, 900000);
}

static void steer__does_not_rise_unused(struct kunit *test)
{
	struct flow f;

	start_at(&f, &params, 44000);
	ack_as(&f, STEP_NS, 44000, false, false);
	expect_near(test, &f, 1000000);
	/* But up to the first rate. */
	f.rate.rate_fp = f.law.first_rate_fp / 2;
	ack_as(&f, STEP_NS, 44000, false, false);
	KUNIT_EXPECT_GE(test, millionths(&f), 520000);
	f.rate.rate_fp = f.law.first_rate_fp - 1;
	ack_as(&f, STEP_NS, 44000, false, false);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.law.first_rate_fp);
}

static void steer__now_and_then_is_not_blamed(struct kunit *test)
{
	struct flow f;

	start_at(&f, &params, 90000);
	ack_as(&f, 100 * STEP_NS, 90000, false, true);
	expect_near(test, &f, 1000000);
	/* Unless it uses its rate, or has no excuse, or all is lost. */
	ack_as(&f, 100 * STEP_NS, 90000, true, true);
	KUNIT_EXPECT_LT(test, millionths(&f), 960000);
	start_at(&f, &params, 90000);
	ack_as(&f, 100 * STEP_NS, 90000, false, false);
	KUNIT_EXPECT_LT(test, millionths(&f), 960000);
	start_at(&f, &params, 1100000);
	ack_as(&f, 100 * STEP_NS, 1100000, false, true);
	KUNIT_EXPECT_LT(test, millionths(&f), 960000);
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
		start_at(&fast, &p, bases_ns[i] + q);
		start_at(&slow, &p, bases_ns[i] + q);
		fast.rate.rate_fp *= 2;
		slow.rate.rate_fp /= 2;
		ack_as(&fast, bases_ns[i], bases_ns[i] + q, true, false);
		ack_as(&slow, bases_ns[i], bases_ns[i] + q, true, false);
		KUNIT_EXPECT_LT(test, fast.rate.rate_fp, 2 * fast.law.first_rate_fp);
		KUNIT_EXPECT_GT(test, slow.rate.rate_fp, slow.law.first_rate_fp / 2);
	}
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
	KUNIT_CASE(steer__error_is_scaled_by_time),
	KUNIT_CASE(steer__one_completion_is_bounded),
	KUNIT_CASE(steer__is_hyperactive_when_low_for_long),
	KUNIT_CASE(steer__protects_buffers),
	KUNIT_CASE(steer__does_not_rise_unused),
	KUNIT_CASE(steer__now_and_then_is_not_blamed),
	KUNIT_CASE(steer__meets_at_equal_rates),
	{}
};

static struct kunit_suite timely_steer_suite = {
	.name = "timely_steer",
	.test_cases = timely_steer_cases,
};

kunit_test_suite(timely_steer_suite);
