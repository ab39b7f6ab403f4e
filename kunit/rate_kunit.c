// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the rate computation engine: sequences computed in double precision by reference.py, and
 * hand-made cases for everything the engine does. Cases are named function__case.
 *
 * In the hand-made cases a flow has round numbers: minRTT is 16384 ns, so an RTT difference of 4096
 * ns is a gradient of 1/4; there is no smoothing, so the gradient is the last difference; gains are
 * one half; the first rate is 100 MB/s and a step is 1 MB/s.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include <timely/engine/rate.h>
#include <timely/engine/tune.h>

#include "rate_flow.h"
#include "rate_replay.h"

#define FIRST_BPS	100000000ULL
#define STEP_BPS	1000000ULL
#define MIN_RTT_NS	16384
#define T_LOW_NS	50000
#define T_HIGH_NS	500000
/* An RTT between the thresholds, far from both. */
#define MIDDLE_NS	200000

static const struct timely_params plain = {
	.min_rtt_ns = MIN_RTT_NS,
	.t_low_ns = T_LOW_NS,
	.t_high_ns = T_HIGH_NS,
	.rtt_ref_ns = 65536,
	.alpha_ppm = 1000000,
	.beta_ppm = 500000,
	.beta_high_ppm = 500000,
	.delta_kbps = 8000,
	.segment_bytes = 16384,
	.hai_threshold = 5,
	.hai_factor = 5,
	.scale_decrease = 1,
	.min_rate_kbps = 8000,
	.max_rate_kbps = 8000000,
	.first_rate_kbps = 800000,
	.loss_beta_ppm = 500000,
};

/* 10 ppm: one rounding of a factor to 1/65536 is at most 7.6. */
#define expect_Bps(test, f, Bps) \
	KUNIT_EXPECT_TRUE_MSG(test, \
			      timely_rate_is_near((f)->rate.rate_fp, (u64)(Bps) << 16, 10), \
			      "rate is %llu, not %llu bytes per second", \
			      (unsigned long long)timely_rate_Bps(&(f)->rate), \
			      (unsigned long long)(Bps))

/* ---- sequences of reference.py ---- */

static void sequence_name(const struct timely_sequence *s, char *desc)
{
	strscpy(desc, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sequence, timely_sequences, sequence_name);

static void update__follows_the_reference(struct kunit *test)
{
	const struct timely_sequence *s = test->param_value;
	struct timely_miss miss;
	u32 index = 0;

	KUNIT_ASSERT_EQ_MSG(test, timely_params_check(s->params, &index), 0,
			    "parameter %u", index);
	KUNIT_EXPECT_TRUE_MSG(test, timely_replay(s, &miss),
			      "row %u: %s is %llu, not %llu", miss.row, miss.what,
			      (unsigned long long)miss.got, (unsigned long long)miss.want);
}

/* ---- setting up ---- */

static void cfg__is_in_bytes_per_second(struct kunit *test)
{
	struct timely_rate_cfg cfg;

	timely_rate_cfg_init(&cfg, &plain);
	KUNIT_EXPECT_EQ(test, cfg.first_rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
	KUNIT_EXPECT_EQ(test, cfg.min_rate_fp, 1000000ULL << TIMELY_RATE_SHIFT);
	KUNIT_EXPECT_EQ(test, cfg.max_rate_fp, 1000000000ULL << TIMELY_RATE_SHIFT);
	KUNIT_EXPECT_EQ(test, cfg.step_fp, STEP_BPS << TIMELY_RATE_SHIFT);
	KUNIT_EXPECT_EQ(test, cfg.beta_q16, 32768);
	KUNIT_EXPECT_EQ(test, cfg.alpha_q16, 65536);
}

static void cfg__rounds_gains(struct kunit *test)
{
	struct timely_params params = plain;
	struct timely_rate_cfg cfg;

	params.alpha_ppm = 20000;
	params.beta_ppm = 8000;
	params.beta_high_ppm = 800000;
	params.loss_beta_ppm = 260000;
	timely_rate_cfg_init(&cfg, &params);
	KUNIT_EXPECT_EQ(test, cfg.alpha_q16, 1311);
	KUNIT_EXPECT_EQ(test, cfg.beta_q16, 524);
	KUNIT_EXPECT_EQ(test, cfg.beta_high_q16, 52429);
	KUNIT_EXPECT_EQ(test, cfg.loss_beta_q16, 17039);
}

/* The sizes that the headers promise: the state in icsk_ca_priv, two cache lines of parameters. */
static void cfg__layout(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (u32)sizeof(struct timely_rate), 32);
	KUNIT_EXPECT_EQ(test, (u32)offsetof(struct timely_rate_cfg, rtt_ref_ns), 64);
	KUNIT_EXPECT_EQ(test, (u32)sizeof(struct timely_rate_cfg), 128);
}

static void init__starts_at_the_first_rate(struct kunit *test)
{
	struct flow f;

	start(&f, &plain);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 0);
	KUNIT_EXPECT_FALSE(test, f.rate.seeded);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, 0);
}

static void init__clamps_the_first_rate(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.first_rate_kbps = 7999;
	start(&f, &params);
	expect_Bps(test, &f, 1000000);
	params.first_rate_kbps = 8000001;
	start(&f, &params);
	expect_Bps(test, &f, 1000000000);
}

static void init__forgets_everything(struct kunit *test)
{
	struct flow f, fresh;

	start(&f, &plain);
	start(&fresh, &plain);
	ack(&f, MIDDLE_NS);
	ack(&f, MIDDLE_NS - 100);
	timely_rate_init(&f.rate, &f.cfg);
	f.now_ns = fresh.now_ns;
	ack(&f, MIDDLE_NS);
	ack(&fresh, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, fresh.rate.rate_fp);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, fresh.rate.diff_fp);
	KUNIT_EXPECT_EQ(test, f.rate.hai, fresh.rate.hai);
}

/* ---- zones ---- */

static void update__below_t_low(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, T_LOW_NS - 1);
	KUNIT_EXPECT_EQ(test, ack(&f, T_LOW_NS - 1), TIMELY_ZONE_LOW);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
	/* The gradient does not count. */
	start_seeded(&f, &plain, MIN_RTT_NS);
	KUNIT_EXPECT_EQ(test, ack(&f, T_LOW_NS - 1), TIMELY_ZONE_LOW);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
}

static void update__at_t_low(struct kunit *test)
{
	struct flow f;

	/* A gradient of 1/4 and beta = 1/2: a decrease of 1/8. */
	start_seeded(&f, &plain, T_LOW_NS - 4096);
	KUNIT_EXPECT_EQ(test, ack(&f, T_LOW_NS), TIMELY_ZONE_GRADIENT);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 8);
}

static void update__at_t_high(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, T_HIGH_NS + 4096);
	KUNIT_EXPECT_EQ(test, ack(&f, T_HIGH_NS), TIMELY_ZONE_GRADIENT);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
}

static void update__above_t_high(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, T_HIGH_NS + 4096);
	KUNIT_EXPECT_EQ(test, ack(&f, T_HIGH_NS + 1), TIMELY_ZONE_HIGH);
	KUNIT_EXPECT_LE(test, f.rate.rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
	/* The last RTT counts, not an average. The gradient does not count. */
	start_seeded(&f, &plain, 8 * T_HIGH_NS);
	KUNIT_EXPECT_EQ(test, ack(&f, 2 * T_HIGH_NS), TIMELY_ZONE_HIGH);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 4);
}

static void update__one_threshold(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.t_low_ns = 100000;
	params.t_high_ns = 100000;
	start(&f, &params);
	KUNIT_EXPECT_EQ(test, ack(&f, 99999), TIMELY_ZONE_LOW);
	KUNIT_EXPECT_EQ(test, ack(&f, 100000), TIMELY_ZONE_GRADIENT);
	KUNIT_EXPECT_EQ(test, ack(&f, 100001), TIMELY_ZONE_HIGH);
}

static void update__rtt_below_min_rtt(struct kunit *test)
{
	struct flow f, g;

	start(&f, &plain);
	start(&g, &plain);
	ack(&f, 20000);
	ack(&g, 20000);
	KUNIT_EXPECT_EQ(test, ack(&f, 0), ack(&g, MIN_RTT_NS));
	KUNIT_EXPECT_EQ(test, f.rate.prev_rtt_ns, MIN_RTT_NS);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, g.rate.diff_fp);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, g.rate.rate_fp);
}

/* ---- the gradient ---- */

static void update__first_has_no_gradient(struct kunit *test)
{
	struct flow f;

	start(&f, &plain);
	KUNIT_EXPECT_EQ(test, ack(&f, MIDDLE_NS), TIMELY_ZONE_GRADIENT);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, 0);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
}

static void update__flat_gradient_rises(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	ack(&f, MIDDLE_NS);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
}

static void update__rising_gradient_falls(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	ack(&f, MIDDLE_NS + MIN_RTT_NS / 2);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 4);
}

static void update__smooths_the_difference(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.alpha_ppm = 500000;
	start_seeded(&f, &params, MIDDLE_NS);
	ack(&f, MIDDLE_NS + 8192);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, 4096 * 256);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 8);
	ack(&f, MIDDLE_NS + 8192);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, 2048 * 256);
	ack(&f, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, (1024 - 4096) * 256);
}

/* Rounding down would leave every falling average one unit too low permanently. */
static void update__smooths_both_signs_alike(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow up, down;
	int i;

	params.alpha_ppm = 20000;
	start_seeded(&up, &params, MIDDLE_NS);
	start_seeded(&down, &params, MIDDLE_NS);
	ack(&up, MIDDLE_NS + 777);
	ack(&down, MIDDLE_NS - 777);
	for (i = 0; i < 1000; i++) {
		KUNIT_ASSERT_EQ(test, up.rate.diff_fp, -down.rate.diff_fp);
		ack(&up, MIDDLE_NS + 777);
		ack(&down, MIDDLE_NS - 777);
	}
	/* The average is below 1/1000 of minRTT. */
	KUNIT_EXPECT_LT(test, up.rate.diff_fp, 16 * 256);
}

static void update__small_differences_count(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	/* A difference of 10 ns with a weight of 1/50: 0.2 ns, or 51.2 in units of 1/256 ns. */
	params.alpha_ppm = 20000;
	start_seeded(&f, &params, MIDDLE_NS);
	ack(&f, MIDDLE_NS + 10);
	KUNIT_EXPECT_GE(test, f.rate.diff_fp, 51);
	KUNIT_EXPECT_LE(test, f.rate.diff_fp, 52);
}

/* ---- time passed ---- */

static void update__no_time_no_change(struct kunit *test)
{
	static const u32 rtts[] = {
		T_LOW_NS - 1, MIDDLE_NS, MIDDLE_NS + 4096, T_HIGH_NS + 1, 8 * T_HIGH_NS
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rtts); i++) {
		struct flow f;

		start_seeded(&f, &plain, MIDDLE_NS);
		ack_after(&f, 0, rtts[i]);
		KUNIT_EXPECT_EQ(test, f.rate.rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
		KUNIT_EXPECT_EQ(test, f.rate.prev_rtt_ns, rtts[i]);
		KUNIT_EXPECT_EQ(test, f.rate.diff_fp, ((s64)rtts[i] - MIDDLE_NS) * 256);
	}
}

static void update__part_of_min_rtt(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	ack_after(&f, MIN_RTT_NS / 4, T_LOW_NS - 1);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS / 4);
	start_seeded(&f, &plain, MIDDLE_NS);
	ack_after(&f, MIN_RTT_NS / 4, 2 * T_HIGH_NS);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 16);
	start_seeded(&f, &plain, MIDDLE_NS);
	ack_after(&f, MIN_RTT_NS / 4, MIDDLE_NS + MIN_RTT_NS / 2);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 16);
}

static void update__more_than_min_rtt_is_one(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	ack_after(&f, 3600ULL * 1000000000, T_LOW_NS - 1);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
}

static void update__burst_is_worth_its_time(struct kunit *test)
{
	struct flow f;
	int i;

	start_seeded(&f, &plain, T_LOW_NS - 1);
	for (i = 0; i < 64; i++)
		ack_after(&f, MIN_RTT_NS / 64, T_LOW_NS - 1);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
}

static void update__gradient_decrease_unscaled(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.scale_decrease = 0;
	start_seeded(&f, &params, MIDDLE_NS);
	ack_after(&f, 1, MIDDLE_NS + MIN_RTT_NS / 2);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 4);
	/* Increases and decreases above Thigh are still scaled by time. */
	start_seeded(&f, &params, MIDDLE_NS);
	ack_after(&f, MIN_RTT_NS / 4, 2 * T_HIGH_NS);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 16);
	start_seeded(&f, &params, MIDDLE_NS);
	ack_after(&f, MIN_RTT_NS / 4, MIDDLE_NS);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS / 4);
}

static void update__first_counts_in_full(struct kunit *test)
{
	struct flow f;

	start(&f, &plain);
	f.now_ns = 0;
	ack_after(&f, 0, T_LOW_NS - 1);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
}

static void update__clock_runs_backwards(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	ack_after(&f, -1ULL, T_LOW_NS - 1);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
	/* The next gap is measured from the earlier time. */
	ack_after(&f, MIN_RTT_NS / 4, T_LOW_NS - 1);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS + STEP_BPS / 4);
}

static void update__once_per_rtt(struct kunit *test)
{
	struct timely_params params = plain;
	struct timely_rate before;
	struct flow f;

	params.once_per_rtt = 1;
	start(&f, &params);
	KUNIT_EXPECT_EQ(test, ack_after(&f, 0, MIDDLE_NS), TIMELY_ZONE_GRADIENT);
	before = f.rate;
	KUNIT_EXPECT_EQ(test, ack_after(&f, MIDDLE_NS - 1, 4 * T_HIGH_NS), TIMELY_ZONE_NONE);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &f.rate, sizeof(before)), 0);
	KUNIT_EXPECT_EQ(test, ack_after(&f, 1, MIDDLE_NS), TIMELY_ZONE_GRADIENT);
	KUNIT_EXPECT_GT(test, f.rate.rate_fp, before.rate_fp);
	/* After timely_rate_reseed() the next completion is not skipped. */
	timely_rate_reseed(&f.rate);
	KUNIT_EXPECT_EQ(test, ack_after(&f, 0, MIDDLE_NS), TIMELY_ZONE_GRADIENT);
}

/* ---- bounds ---- */

static void update__at_most_halves(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.beta_ppm = 1000000;
	params.beta_high_ppm = 1000000;
	start_seeded(&f, &params, MIDDLE_NS);
	ack(&f, 0xffffffff);
	expect_Bps(test, &f, FIRST_BPS / 2);
	start_seeded(&f, &params, MIDDLE_NS);
	ack(&f, MIDDLE_NS + 10 * MIN_RTT_NS);
	expect_Bps(test, &f, FIRST_BPS / 2);
	params.rule = TIMELY_RULE_PATCHED;
	params.rtt_ref_ns = 1000;
	start_seeded(&f, &params, MIDDLE_NS);
	ack(&f, MIDDLE_NS + MIN_RTT_NS);
	expect_Bps(test, &f, FIRST_BPS / 2);
}

static void update__stays_above_min(struct kunit *test)
{
	struct flow f;
	int i;

	start(&f, &plain);
	for (i = 0; i < 100; i++)
		ack(&f, 100 * T_HIGH_NS);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
}

static void update__stays_below_max(struct kunit *test)
{
	struct flow f;
	int i;

	start(&f, &plain);
	for (i = 0; i < 1000; i++)
		ack(&f, T_LOW_NS - 1);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.max_rate_fp);
}

static void update__rises_from_the_minimum(struct kunit *test)
{
	u32 i, n;

	for (i = 0; i < timely_preset_count; i++) {
		struct timely_params params = timely_presets[i].params;
		struct flow f;

		timely_tune(&params, &(struct timely_path){});
		params.first_rate_kbps = params.min_rate_kbps;
		start(&f, &params);
		for (n = 0; n < 10; n++)
			ack_bytes(&f, 1000000, params.min_rtt_ns, params.segment_bytes);
		/* FAST* doubles the rate at most five times, then adds half of alpha each time. */
		if (params.rule == TIMELY_RULE_FAST) {
			KUNIT_EXPECT_GE(test, timely_rate_Bps(&f.rate),
					5ULL * params.delta_kbps * 125 / 2);
			continue;
		}
		/* theta-PowerTCP adds 9/10 of its step each time. */
		if (params.rule == TIMELY_RULE_POWERTCP) {
			KUNIT_EXPECT_GE(test, timely_rate_Bps(&f.rate),
					9ULL * params.delta_kbps * 124);
			continue;
		}
		/* The target-delay rule raises the rate by a share of the rate, Swift by what was
		 * completed.
		 */
		if (params.rule >= TIMELY_RULE_TARGET_DELAY) {
			KUNIT_EXPECT_GE(test, timely_rate_Bps(&f.rate),
					2ULL * params.min_rate_kbps * 125);
			continue;
		}
		/* Ten whole steps. */
		KUNIT_EXPECT_GE_MSG(test, timely_rate_Bps(&f.rate),
				    (u64)(params.min_rate_kbps + 10 * params.delta_kbps) * 125 - 10,
				    "%s", timely_presets[i].name);
	}
}

/* Steps of a millionth of the usual step: one byte per second, or less. */
static void update__parts_of_a_byte_add_up(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;
	int i;

	params.min_rate_kbps = 1;
	params.first_rate_kbps = 1;
	params.delta_kbps = 1;
	start_seeded(&f, &params, T_LOW_NS - 1);
	for (i = 0; i < MIN_RTT_NS; i++)
		ack_after(&f, 1, T_LOW_NS - 1);
	KUNIT_EXPECT_TRUE(test, timely_rate_is_near(f.rate.rate_fp, 250ULL << 16, 100));

	params.scale_step = 1;
	start_seeded(&f, &params, T_LOW_NS - 1);
	for (i = 0; i < 16384; i++)
		ack_bytes(&f, MIN_RTT_NS, T_LOW_NS - 1, 1);
	KUNIT_EXPECT_TRUE(test, timely_rate_is_near(f.rate.rate_fp, 250ULL << 16, 100));
}

/* ---- the additive step ---- */

static void update__step_by_bytes(struct kunit *test)
{
	static const struct {
		u32 bytes;
		u64 steps_by_4;
	} cases[] = {
		{ 4096, 1 }, { 8192, 2 }, { 16384, 4 }, { 5 * 16384, 20 }, { 16 * 16384, 64 },
		{ 17 * 16384, 64 }, { 0xffffffff, 64 },
	};
	struct timely_params params = plain;
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		params.scale_step = 1;
		start_seeded(&f, &params, MIDDLE_NS);
		ack_bytes(&f, MIN_RTT_NS, MIDDLE_NS, cases[i].bytes);
		expect_Bps(test, &f, FIRST_BPS + cases[i].steps_by_4 * STEP_BPS / 4);
		params.scale_step = 0;
		start_seeded(&f, &params, MIDDLE_NS);
		ack_bytes(&f, MIN_RTT_NS, MIDDLE_NS, cases[i].bytes);
		expect_Bps(test, &f, FIRST_BPS + STEP_BPS);
	}
}

static void update__decrease_is_not_by_bytes(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.scale_step = 1;
	start_seeded(&f, &params, MIDDLE_NS);
	ack_bytes(&f, MIN_RTT_NS, 2 * T_HIGH_NS, 1);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 4);
}

/* ---- hyperactive increase ---- */

/* Index of the first completion that rises by five steps; 0 for none. */
static int first_hyper(struct flow *f, u32 rtt_ns, s32 each_ns, int acks)
{
	int i;

	for (i = 1; i <= acks; i++) {
		u64 before = f->rate.rate_fp;

		rtt_ns += each_ns;
		ack(f, rtt_ns);
		if (f->rate.rate_fp > before &&
		    f->rate.rate_fp - before > 3 * (STEP_BPS << TIMELY_RATE_SHIFT))
			return i;
	}
	return 0;
}

static void hai__counts_falling_gradients(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	/* The fifth completion is counted before the counter is compared: the fifth rises faster.
	 */
	params.hai_count = TIMELY_HAI_SMOOTHED;
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, -100, 20), 5);
	/* A flat RTT is not falling. */
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, 0, 20), 0);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 0);
}

static void hai__smoothed_outlives_one_rise(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.alpha_ppm = 20000;
	start_seeded(&f, &params, MIDDLE_NS);
	ack(&f, MIDDLE_NS - 10000);
	ack(&f, MIDDLE_NS - 10000 + 100);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 2);

	params.hai_count = TIMELY_HAI_RAW;
	start_seeded(&f, &params, MIDDLE_NS);
	ack(&f, MIDDLE_NS - 10000);
	ack(&f, MIDDLE_NS - 10000 + 100);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 0);
}

static void hai__counts_falling_rtts(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.hai_count = TIMELY_HAI_RAW;
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, -100, 20), 5);
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, 0, 20), 0);
}

static void hai__counts_increases(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	/* The counter is compared before an increase is counted: the sixth rises faster. */
	params.hai_count = TIMELY_HAI_INCREASES;
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, 0, 20), 6);
	/* Increases below Tlow are counted, but their steps are not multiplied. */
	start_seeded(&f, &params, T_LOW_NS - 1);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, T_LOW_NS - 1, 0, 20), 0);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 20);
}

static void hai__below_t_low(struct kunit *test)
{
	struct timely_params params = plain;
	static const int first[] = { 5, 5, 6 };
	struct flow f;
	u32 mode;

	for (mode = TIMELY_HAI_SMOOTHED; mode <= TIMELY_HAI_INCREASES; mode++) {
		params.hai_count = mode;
		params.hai_below_t_low = 0;
		start_seeded(&f, &params, T_LOW_NS - 1);
		KUNIT_EXPECT_EQ(test, first_hyper(&f, T_LOW_NS - 1, 0, 20), 0);
		params.hai_below_t_low = 1;
		start_seeded(&f, &params, T_LOW_NS - 1);
		KUNIT_EXPECT_EQ_MSG(test, first_hyper(&f, T_LOW_NS - 1, 0, 20),
				    first[mode], "mode %u", mode);
		/* The RTT may even rise. */
		start_seeded(&f, &params, T_LOW_NS - 10000);
		KUNIT_EXPECT_EQ_MSG(test, first_hyper(&f, T_LOW_NS - 10000, 100, 20),
				    first[mode], "mode %u", mode);
	}
}

static void hai__patched_needs_a_steep_fall(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.rule = TIMELY_RULE_PATCHED;
	params.beta_ppm = 0;
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, -4095, 20), 0);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 0);
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, -4096, 20), 5);

	/* Increases are counted at any gradient. The counter is used only if the gradient is steep.
	 */
	params.hai_count = TIMELY_HAI_INCREASES;
	start_seeded(&f, &params, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS, -4000, 8), 0);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 8);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, MIDDLE_NS - 8 * 4000, -4096, 1), 1);
}

static void hai__decrease_ends_it(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;
	u32 mode;

	/* The RTT falls, but is above Thigh, so the rate decreases. Mode raw counts such an RTT. */
	for (mode = TIMELY_HAI_SMOOTHED; mode <= TIMELY_HAI_INCREASES; mode++) {
		params.hai_count = mode;
		start_seeded(&f, &params, 2 * T_HIGH_NS);
		f.rate.hai = 7;
		KUNIT_EXPECT_EQ(test, ack(&f, 2 * T_HIGH_NS - 4096), TIMELY_ZONE_HIGH);
		KUNIT_EXPECT_EQ_MSG(test, f.rate.hai, mode == TIMELY_HAI_RAW ? 8 : 0,
				    "mode %u", mode);
	}
}

static void hai__saturates(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;
	u32 mode;
	int i;

	params.hai_below_t_low = 1;
	params.max_rate_kbps = 800000000;
	for (mode = TIMELY_HAI_SMOOTHED; mode <= TIMELY_HAI_INCREASES; mode++) {
		params.hai_count = mode;
		start(&f, &params);
		for (i = 0; i < 255; i++)
			ack(&f, T_LOW_NS - 1);
		KUNIT_EXPECT_EQ(test, f.rate.hai, 255);
		KUNIT_EXPECT_EQ(test, first_hyper(&f, T_LOW_NS - 1, 0, 1), 1);
		KUNIT_EXPECT_EQ(test, f.rate.hai, 255);
	}
}

static void hai__zero_threshold_is_never(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.hai_threshold = 0;
	params.hai_below_t_low = 1;
	start(&f, &params);
	KUNIT_EXPECT_EQ(test, first_hyper(&f, T_LOW_NS - 1, 0, 300), 0);
}

static void hai__zero_sample_keeps_it(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	/* Neither an increase nor a decrease. */
	params.hai_count = TIMELY_HAI_INCREASES;
	start_seeded(&f, &params, MIDDLE_NS);
	f.rate.hai = 4;
	ack_after(&f, 0, MIDDLE_NS + 4096);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 4);
}

/* ---- the age of the rate ---- */

static void age__is_the_time_since_the_last_completion(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, timely_rate_age_ns(&f.rate, f.now_ns), 0);
	KUNIT_EXPECT_EQ(test, timely_rate_age_ns(&f.rate, f.now_ns + 1), 1);
	KUNIT_EXPECT_EQ(test, timely_rate_age_ns(&f.rate, f.now_ns + T_HIGH_NS), T_HIGH_NS);
}

/* TCP's time in microseconds may be up to 999 ns before the ACK that TCP has just processed. */
static void age__is_zero_if_the_clock_is_behind(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	KUNIT_EXPECT_EQ(test, timely_rate_age_ns(&f.rate, f.now_ns - 1), 0);
	KUNIT_EXPECT_EQ(test, timely_rate_age_ns(&f.rate, f.now_ns - 999), 0);
}

/* ---- an application that does not use its rate ---- */

static void may_rise__keeps_the_rate(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	f.may_rise = false;
	KUNIT_EXPECT_EQ(test, ack(&f, MIDDLE_NS - 100), TIMELY_ZONE_GRADIENT);
	KUNIT_EXPECT_EQ(test, ack(&f, T_LOW_NS - 1), TIMELY_ZONE_LOW);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
	/* The RTTs are recorded nevertheless. */
	KUNIT_EXPECT_EQ(test, f.rate.prev_rtt_ns, T_LOW_NS - 1);
	KUNIT_EXPECT_EQ(test, f.rate.updated_ns, f.now_ns);
}

static void may_rise__lets_it_fall(struct kunit *test)
{
	struct flow f;

	start_seeded(&f, &plain, MIDDLE_NS);
	f.may_rise = false;
	ack(&f, 2 * T_HIGH_NS);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 4);
}

static void may_rise__ends_hai(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;
	u32 mode;

	for (mode = TIMELY_HAI_SMOOTHED; mode <= TIMELY_HAI_INCREASES; mode++) {
		params.hai_count = mode;
		start_seeded(&f, &params, MIDDLE_NS);
		f.rate.hai = 7;
		f.may_rise = false;
		ack(&f, MIDDLE_NS - 100);
		KUNIT_EXPECT_EQ(test, f.rate.hai, 0);
	}
}

static void may_rise__keeps_patched_from_rising(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	/* Below RTTref the error is negative, so the error term alone would raise the rate. */
	params.rule = TIMELY_RULE_PATCHED;
	params.rtt_ref_ns = 400000;
	start_seeded(&f, &params, MIDDLE_NS);
	f.may_rise = false;
	ack(&f, MIDDLE_NS + 4096);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
}

/* ---- patched TIMELY ---- */

static void patched__blends_by_w(struct kunit *test)
{
	static const struct {
		s32 diff_ns;
		u64 w_by_4;
	} cases[] = {
		{ -8192, 0 }, { -4096, 0 }, { -2048, 1 }, { 0, 2 }, { 2048, 3 }, { 4096, 4 },
		{ 8192, 4 },
	};
	struct timely_params params = plain;
	struct flow f;
	u32 i;

	params.rule = TIMELY_RULE_PATCHED;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 w = cases[i].w_by_4;

		/* RTTref is 65536 ns: the error at 81920 ns is 1/4. beta is 1/2. */
		start_seeded(&f, &params, 81920 - cases[i].diff_ns);
		ack(&f, 81920);
		expect_Bps(test, &f, FIRST_BPS + STEP_BPS * (4 - w) / 4 - FIRST_BPS * w / 32);
	}
}

static void patched__rises_below_ref(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.rule = TIMELY_RULE_PATCHED;
	params.rtt_ref_ns = 262144;
	/* The error is -1/4 and w is 1. */
	start_seeded(&f, &params, 196608 - 8192);
	ack(&f, 196608);
	expect_Bps(test, &f, FIRST_BPS + FIRST_BPS / 8);
}

static void patched__error_saturates(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.rule = TIMELY_RULE_PATCHED;
	params.rtt_ref_ns = 1000;
	params.t_high_ns = 2000000000;
	params.beta_ppm = 1000;
	/* The error is 1999 and counts as 256; beta is 66/65536 in fixed point. */
	start_seeded(&f, &params, 1000000);
	ack(&f, 2000000);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS * 66 * 256 / 65536);
}

static void patched__product_saturates(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	/* beta 1 and error 2 take all of the rate, here for a quarter of the time. */
	params.rule = TIMELY_RULE_PATCHED;
	params.beta_ppm = 1000000;
	start_seeded(&f, &params, 3 * 65536 - 8192);
	ack_after(&f, MIN_RTT_NS / 4, 3 * 65536);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 4);
}

/* ---- FAST* ---- */

/* FAST's gamma is one half (alpha_ppm), and its alpha is 1 MB/s (delta_kbps). */
static const struct timely_params fast = {
	.min_rtt_ns = MIN_RTT_NS,
	.t_low_ns = T_LOW_NS,
	.t_high_ns = T_HIGH_NS,
	.rtt_ref_ns = 65536,
	.alpha_ppm = 500000,
	.delta_kbps = 8000,
	.segment_bytes = 16384,
	.rule = TIMELY_RULE_FAST,
	.once_per_rtt = 1,
	.min_rate_kbps = 8000,
	.max_rate_kbps = 8000000,
	.first_rate_kbps = 800000,
	.loss_beta_ppm = 500000,
};

static void fast__moves_half_way(struct kunit *test)
{
	struct flow f;

	/* An empty path: alpha must be kept in the queue, and half of it is added now. */
	start(&f, &fast);
	ack(&f, MIN_RTT_NS);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS / 2);
	/* Half of the RTT is queueing delay: halfway to half of the rate plus alpha. */
	start(&f, &fast);
	ack(&f, 2 * MIN_RTT_NS);
	expect_Bps(test, &f, (FIRST_BPS + FIRST_BPS / 2 + STEP_BPS) / 2);
	/* An RTT below minRTT counts as minRTT. */
	start(&f, &fast);
	ack(&f, 1);
	expect_Bps(test, &f, FIRST_BPS + STEP_BPS / 2);
}

/* The rate settles where the flow's queue is alpha: 100 MB/s times 1/100 of the RTT. */
static void fast__settles_where_alpha_is_queued(struct kunit *test)
{
	u32 rtt_ns = MIN_RTT_NS * 100 / 99, i;
	struct flow f;

	start(&f, &fast);
	for (i = 0; i < 5000; i++)
		ack_after(&f, 2 * MIN_RTT_NS, rtt_ns);
	KUNIT_EXPECT_GE(test, timely_rate_Bps(&f.rate), FIRST_BPS * 98 / 100);
	KUNIT_EXPECT_LE(test, timely_rate_Bps(&f.rate), FIRST_BPS * 102 / 100);
}

static void fast__at_most_doubles(struct kunit *test)
{
	struct timely_params params = fast;
	struct flow f;

	params.first_rate_kbps = 8000;
	params.delta_kbps = 80000;
	start(&f, &params);
	ack(&f, MIN_RTT_NS);
	expect_Bps(test, &f, 2 * STEP_BPS);
	ack(&f, MIN_RTT_NS);
	expect_Bps(test, &f, 4 * STEP_BPS);
	ack(&f, MIN_RTT_NS);
	expect_Bps(test, &f, 8 * STEP_BPS);
	/* Half of alpha (10 MB/s) is less than the rate now. */
	ack(&f, MIN_RTT_NS);
	expect_Bps(test, &f, 13 * STEP_BPS);
}

static void fast__once_an_rtt(struct kunit *test)
{
	struct flow f;

	start(&f, &fast);
	KUNIT_EXPECT_EQ(test, ack(&f, 100000), TIMELY_ZONE_GRADIENT);
	KUNIT_EXPECT_EQ(test, ack_after(&f, 99999, 20000), TIMELY_ZONE_NONE);
	KUNIT_EXPECT_EQ(test, ack_after(&f, 1, 20000), TIMELY_ZONE_GRADIENT);
}

static void fast__keeps_the_rate_if_it_may_not_rise(struct kunit *test)
{
	struct flow f;

	start(&f, &fast);
	f.may_rise = false;
	ack(&f, MIN_RTT_NS);
	expect_Bps(test, &f, FIRST_BPS);
	ack(&f, 2 * MIN_RTT_NS);
	KUNIT_EXPECT_LT(test, f.rate.rate_fp, f.cfg.first_rate_fp);
}

/* ---- what is not an update ---- */

static void reseed__forgets_the_gradient(struct kunit *test)
{
	struct flow f;

	start(&f, &plain);
	ack(&f, MIDDLE_NS);
	ack(&f, MIDDLE_NS - 100);
	timely_rate_reseed(&f.rate);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 0);
	expect_Bps(test, &f, FIRST_BPS + 2 * STEP_BPS);
	/* The next completion counts as a first one: gradient 0, full weight. */
	ack_after(&f, 0, MIDDLE_NS + 8192);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, 0);
	expect_Bps(test, &f, FIRST_BPS + 3 * STEP_BPS);
}

static void lose__takes_its_share(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.loss_beta_ppm = 250000;
	start_seeded(&f, &params, MIDDLE_NS);
	ack_after(&f, 0, MIDDLE_NS - 100);
	timely_rate_loss(&f.rate, &f.cfg);
	expect_Bps(test, &f, FIRST_BPS - FIRST_BPS / 4);
	KUNIT_EXPECT_EQ(test, f.rate.hai, 0);
	ack_after(&f, 0, MIDDLE_NS + 8192);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, 0);
}

static void lose__stays_above_min(struct kunit *test)
{
	struct flow f;
	int i;

	start(&f, &plain);
	for (i = 0; i < 100; i++)
		timely_rate_loss(&f.rate, &f.cfg);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
}

static void lose__may_be_switched_off(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.loss_beta_ppm = 0;
	start(&f, &params);
	timely_rate_loss(&f.rate, &f.cfg);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
}

/* ---- tolerated losses ---- */

/* Lose one of @packets packets, @times times. Returns how often the account was exceeded. */
static u32 lose_one_of(struct timely_loss *loss, u32 share_q16, u32 packets, u32 times)
{
	u32 lost = loss->lost, delivered = loss->delivered, overdrawn = 0;

	while (times--) {
		lost++;
		delivered += packets - 1;
		overdrawn += !timely_loss_is_free(loss, share_q16, lost, delivered);
	}
	return overdrawn;
}

static void loss__share_is_free(struct kunit *test)
{
	u32 share = timely_loss_share_q16(20000);
	struct timely_loss loss;

	KUNIT_EXPECT_EQ(test, share, 1311);
	timely_loss_init(&loss, 7, 100);
	KUNIT_EXPECT_EQ(test, lose_one_of(&loss, share, 100, 10000), 0);
	/* 2.5 % are lost and 2 % are free: one loss in five exceeds the account. */
	KUNIT_EXPECT_GT(test, lose_one_of(&loss, share, 40, 10000), 1800);
	/* Exceeding the account leaves no debt. */
	KUNIT_EXPECT_EQ(test, lose_one_of(&loss, share, 100, 10000), 0);
}

static void loss__burst_of_ten_is_free(struct kunit *test)
{
	u32 share = timely_loss_share_q16(20000);
	struct timely_loss loss;

	timely_loss_init(&loss, 0, 0);
	KUNIT_EXPECT_TRUE(test, timely_loss_is_free(&loss, share, 10, 0));
	KUNIT_EXPECT_FALSE(test, timely_loss_is_free(&loss, share, 11, 0));
	timely_loss_init(&loss, 0, 0);
	KUNIT_EXPECT_FALSE(test, timely_loss_is_free(&loss, share, 11, 0));
	KUNIT_EXPECT_FALSE(test, timely_loss_is_free(&loss, share, 12, 0));
	/* The credit has a maximum of ten losses, which a thousand packets reach. */
	KUNIT_EXPECT_TRUE(test, timely_loss_is_free(&loss, share, 22, 1000));
	KUNIT_EXPECT_FALSE(test, timely_loss_is_free(&loss, share, 23, 1010));
}

static void loss__counters_wrap(struct kunit *test)
{
	u32 share = timely_loss_share_q16(500000);
	struct timely_loss loss;

	timely_loss_init(&loss, U32_MAX - 1, U32_MAX - 10);
	KUNIT_EXPECT_TRUE(test, timely_loss_is_free(&loss, share, 8, 10));
	KUNIT_EXPECT_EQ(test, loss.credit_q16, 0);
	KUNIT_EXPECT_TRUE(test, timely_loss_is_free(&loss, share, 8, U32_MAX));
	KUNIT_EXPECT_EQ(test, loss.credit_q16, 10 << 16);
	KUNIT_EXPECT_FALSE(test, timely_loss_is_free(&loss, share, 7, U32_MAX));
}

static void limit__only_decreases(struct kunit *test)
{
	struct flow f;
	u64 rate_fp;

	start(&f, &plain);
	ack(&f, MIDDLE_NS);
	rate_fp = f.rate.rate_fp;
	/* A rate that is not above the limit stays, and the gradient with it. */
	KUNIT_EXPECT_FALSE(test, timely_rate_limit(&f.rate, &f.cfg, 2 * rate_fp));
	KUNIT_EXPECT_TRUE(test, f.rate.seeded);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, rate_fp);
	KUNIT_EXPECT_TRUE(test, timely_rate_limit(&f.rate, &f.cfg, rate_fp / 2));
	KUNIT_EXPECT_FALSE(test, f.rate.seeded);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, rate_fp / 2);
	KUNIT_EXPECT_TRUE(test, timely_rate_limit(&f.rate, &f.cfg, 0));
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
	KUNIT_EXPECT_FALSE(test, timely_rate_limit(&f.rate, &f.cfg, 0));
}

static void restart__is_at_most_the_first_rate(struct kunit *test)
{
	struct flow f;

	start(&f, &plain);
	ack(&f, MIDDLE_NS);
	timely_rate_restart(&f.rate, &f.cfg);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, FIRST_BPS << TIMELY_RATE_SHIFT);
	/* A lower rate stays; the gradient never does. */
	timely_rate_loss(&f.rate, &f.cfg);
	ack(&f, MIDDLE_NS);
	timely_rate_restart(&f.rate, &f.cfg);
	expect_Bps(test, &f, FIRST_BPS / 2 + STEP_BPS);
	ack_after(&f, 0, MIDDLE_NS + 8192);
	KUNIT_EXPECT_EQ(test, f.rate.diff_fp, 0);
}

static void restart__stays_above_min(struct kunit *test)
{
	struct timely_params params = plain;
	struct flow f;

	params.first_rate_kbps = 1;
	start(&f, &params);
	ack(&f, T_LOW_NS - 1);
	timely_rate_restart(&f.rate, &f.cfg);
	KUNIT_EXPECT_EQ(test, f.rate.rate_fp, f.cfg.min_rate_fp);
}

static struct kunit_case rate_cases[] = {
	KUNIT_CASE(cfg__is_in_bytes_per_second),
	KUNIT_CASE(cfg__rounds_gains),
	KUNIT_CASE(cfg__layout),
	KUNIT_CASE(init__starts_at_the_first_rate),
	KUNIT_CASE(init__clamps_the_first_rate),
	KUNIT_CASE(init__forgets_everything),
	KUNIT_CASE(update__below_t_low),
	KUNIT_CASE(update__at_t_low),
	KUNIT_CASE(update__at_t_high),
	KUNIT_CASE(update__above_t_high),
	KUNIT_CASE(update__one_threshold),
	KUNIT_CASE(update__rtt_below_min_rtt),
	KUNIT_CASE(update__first_has_no_gradient),
	KUNIT_CASE(update__flat_gradient_rises),
	KUNIT_CASE(update__rising_gradient_falls),
	KUNIT_CASE(update__smooths_the_difference),
	KUNIT_CASE(update__smooths_both_signs_alike),
	KUNIT_CASE(update__small_differences_count),
	KUNIT_CASE(update__no_time_no_change),
	KUNIT_CASE(update__part_of_min_rtt),
	KUNIT_CASE(update__more_than_min_rtt_is_one),
	KUNIT_CASE(update__burst_is_worth_its_time),
	KUNIT_CASE(update__gradient_decrease_unscaled),
	KUNIT_CASE(update__first_counts_in_full),
	KUNIT_CASE(update__clock_runs_backwards),
	KUNIT_CASE(update__once_per_rtt),
	KUNIT_CASE(update__at_most_halves),
	KUNIT_CASE(update__stays_above_min),
	KUNIT_CASE(update__stays_below_max),
	KUNIT_CASE(update__rises_from_the_minimum),
	KUNIT_CASE(update__parts_of_a_byte_add_up),
	KUNIT_CASE(update__step_by_bytes),
	KUNIT_CASE(update__decrease_is_not_by_bytes),
	KUNIT_CASE(hai__counts_falling_gradients),
	KUNIT_CASE(hai__smoothed_outlives_one_rise),
	KUNIT_CASE(hai__counts_falling_rtts),
	KUNIT_CASE(hai__counts_increases),
	KUNIT_CASE(hai__below_t_low),
	KUNIT_CASE(hai__patched_needs_a_steep_fall),
	KUNIT_CASE(hai__decrease_ends_it),
	KUNIT_CASE(hai__saturates),
	KUNIT_CASE(hai__zero_threshold_is_never),
	KUNIT_CASE(hai__zero_sample_keeps_it),
	KUNIT_CASE(age__is_the_time_since_the_last_completion),
	KUNIT_CASE(age__is_zero_if_the_clock_is_behind),
	KUNIT_CASE(may_rise__keeps_the_rate),
	KUNIT_CASE(may_rise__lets_it_fall),
	KUNIT_CASE(may_rise__ends_hai),
	KUNIT_CASE(may_rise__keeps_patched_from_rising),
	KUNIT_CASE(patched__blends_by_w),
	KUNIT_CASE(patched__rises_below_ref),
	KUNIT_CASE(patched__error_saturates),
	KUNIT_CASE(patched__product_saturates),
	KUNIT_CASE(fast__moves_half_way),
	KUNIT_CASE(fast__settles_where_alpha_is_queued),
	KUNIT_CASE(fast__at_most_doubles),
	KUNIT_CASE(fast__once_an_rtt),
	KUNIT_CASE(fast__keeps_the_rate_if_it_may_not_rise),
	KUNIT_CASE(reseed__forgets_the_gradient),
	KUNIT_CASE(lose__takes_its_share),
	KUNIT_CASE(lose__stays_above_min),
	KUNIT_CASE(lose__may_be_switched_off),
	KUNIT_CASE(loss__share_is_free),
	KUNIT_CASE(loss__burst_of_ten_is_free),
	KUNIT_CASE(loss__counters_wrap),
	KUNIT_CASE(limit__only_decreases),
	KUNIT_CASE(restart__is_at_most_the_first_rate),
	KUNIT_CASE(restart__stays_above_min),
	KUNIT_CASE_PARAM(update__follows_the_reference, sequence_gen_params),
	{}
};

static struct kunit_suite rate_suite = {
	.name = "timely_rate",
	.test_cases = rate_cases,
};

kunit_test_suite(rate_suite);

MODULE_DESCRIPTION("Tests of TIMELY's engines");
MODULE_LICENSE("GPL");
