// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the table of parameters (params.h), of the check of their values, and of the presets.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <timely/engine/rate.h>

#define FIELD_NAME(field, unit, min, max, source, doc) #field,
static const char * const field_names[] = { TIMELY_PARAMS(FIELD_NAME) };

/* Values of presets that are stated in the sources of the presets. This project has chosen the
 * other values.
 */
static const struct stated {
	const char *preset;
	enum timely_param_index index;
	u32 value;
} stated[] = {
	/* SIGCOMM'15 sections 4.3, 5 and 6; alpha is from code that the authors published. */
	{ "paper", TIMELY_P_min_rtt_ns, 20000 },
	{ "paper", TIMELY_P_t_low_ns, 50000 },
	{ "paper", TIMELY_P_t_high_ns, 500000 },
	{ "paper", TIMELY_P_alpha_ppm, 20000 },
	{ "paper", TIMELY_P_beta_ppm, 800000 },
	{ "paper", TIMELY_P_beta_high_ppm, 800000 },
	{ "paper", TIMELY_P_delta_kbps, 10000 },
	{ "paper", TIMELY_P_segment_bytes, 16384 },
	{ "paper", TIMELY_P_hai_threshold, 5 },
	{ "paper", TIMELY_P_hai_factor, 5 },
	{ "paper", TIMELY_P_hai_count, TIMELY_HAI_SMOOTHED },
	{ "paper", TIMELY_P_rule, TIMELY_RULE_GRADIENT },
	{ "paper", TIMELY_P_once_per_rtt, 0 },
	{ "paper", TIMELY_P_app_limited_percent, 80 },
	/* The ns-3 simulator of HPCC */
	{ "ns3", TIMELY_P_min_rtt_ns, 20000 },
	{ "ns3", TIMELY_P_t_low_ns, 50000 },
	{ "ns3", TIMELY_P_t_high_ns, 500000 },
	{ "ns3", TIMELY_P_alpha_ppm, 875000 },
	{ "ns3", TIMELY_P_beta_ppm, 800000 },
	{ "ns3", TIMELY_P_beta_high_ppm, 800000 },
	{ "ns3", TIMELY_P_hai_threshold, 5 },
	{ "ns3", TIMELY_P_hai_count, TIMELY_HAI_INCREASES },
	{ "ns3", TIMELY_P_rule, TIMELY_RULE_GRADIENT },
	{ "ns3", TIMELY_P_once_per_rtt, 1 },
	{ "ns3", TIMELY_P_app_limited_percent, 0 },
	/* The source of eRPC */
	{ "erpc", TIMELY_P_min_rtt_ns, 2000 },
	{ "erpc", TIMELY_P_t_low_ns, 50000 },
	{ "erpc", TIMELY_P_t_high_ns, 1000000 },
	{ "erpc", TIMELY_P_alpha_ppm, 460000 },
	{ "erpc", TIMELY_P_beta_ppm, 260000 },
	{ "erpc", TIMELY_P_beta_high_ppm, 260000 },
	{ "erpc", TIMELY_P_delta_kbps, 40000 },
	{ "erpc", TIMELY_P_hai_threshold, 5 },
	{ "erpc", TIMELY_P_rule, TIMELY_RULE_GRADIENT },
	{ "erpc", TIMELY_P_scale_decrease, 1 },
	{ "erpc", TIMELY_P_min_rate_kbps, 120000 },
	/* CoNEXT'16; beta above Thigh is TIMELY's. */
	{ "patched", TIMELY_P_min_rtt_ns, 20000 },
	{ "patched", TIMELY_P_rtt_ref_ns, 50000 },
	{ "patched", TIMELY_P_alpha_ppm, 875000 },
	{ "patched", TIMELY_P_beta_ppm, 8000 },
	{ "patched", TIMELY_P_beta_high_ppm, 800000 },
	{ "patched", TIMELY_P_delta_kbps, 10000 },
	{ "patched", TIMELY_P_segment_bytes, 16384 },
	{ "patched", TIMELY_P_rule, TIMELY_RULE_PATCHED },
	/* SIGCOMM'15 section 6.1, middle column of Table 1 */
	{ "fast", TIMELY_P_rule, TIMELY_RULE_FAST },
	{ "fast", TIMELY_P_min_rtt_ns, TIMELY_AUTO },
	{ "fast", TIMELY_P_delta_kbps, 50000 },
	{ "fast", TIMELY_P_once_per_rtt, 1 },
	{ "fast", TIMELY_P_app_limited_percent, 80 },
	/* htsim, a simulator: SIGCOMM'20 names no values */
	{ "swift", TIMELY_P_rule, TIMELY_RULE_SWIFT },
	{ "swift", TIMELY_P_beta_ppm, 800000 },
	{ "swift", TIMELY_P_loss_beta_ppm, 500000 },
	{ "swift", TIMELY_P_loss_free_ppm, 0 },
	/* NSDI'22 */
	{ "powertcp", TIMELY_P_rule, TIMELY_RULE_POWERTCP },
	{ "powertcp", TIMELY_P_alpha_ppm, 900000 },
	{ "powertcp", TIMELY_P_delta_kbps, TIMELY_AUTO },
	{ "powertcp", TIMELY_P_first_rate_kbps, TIMELY_AUTO },
	{ "powertcp", TIMELY_P_app_limited_percent, 0 },
};

static u32 value_of(struct timely_params params, u32 index)
{
	return *timely_param_ref(&params, index);
}

/* Valid parameters, in which any one value can be changed within its range. */
static struct timely_params widest(void)
{
	struct timely_params params = timely_preset_find("paper")->params;

	params.t_low_ns = timely_param_descs[TIMELY_P_t_low_ns].min;
	params.t_high_ns = timely_param_descs[TIMELY_P_t_high_ns].max;
	params.min_rate_kbps = timely_param_descs[TIMELY_P_min_rate_kbps].min;
	params.max_rate_kbps = timely_param_descs[TIMELY_P_max_rate_kbps].max;
	return params;
}

static void expect_check(struct kunit *test, const struct timely_params *params,
			 int want, u32 want_index)
{
	u32 index = TIMELY_P_COUNT;
	int got = timely_params_check(params, &index);

	KUNIT_EXPECT_EQ_MSG(test, got, want, "for %s", field_names[want_index]);
	if (want)
		KUNIT_EXPECT_EQ_MSG(test, index, want_index, "for %s", field_names[want_index]);
}

static void descs__follow_the_table(struct kunit *test)
{
	u32 i;

	for (i = 0; i < TIMELY_P_COUNT; i++) {
		const struct timely_param_desc *desc = &timely_param_descs[i];

		KUNIT_EXPECT_STREQ(test, desc->name, field_names[i]);
		KUNIT_EXPECT_LE(test, desc->min, desc->max);
		KUNIT_EXPECT_GT(test, (int)strlen(desc->unit), 0);
		KUNIT_EXPECT_GT(test, (int)strlen(desc->doc), 0);
	}
	KUNIT_EXPECT_EQ(test, timely_param_descs[TIMELY_P_min_rtt_ns].min, 1000);
	KUNIT_EXPECT_EQ(test, timely_param_descs[TIMELY_P_max_rate_kbps].max, 800000000);
}

static void ref__is_the_field(struct kunit *test)
{
	struct timely_params params;

#define EXPECT_REF(field, unit, min, max, source, doc) \
	KUNIT_EXPECT_PTR_EQ(test, timely_param_ref(&params, TIMELY_P_##field), &params.field);
	TIMELY_PARAMS(EXPECT_REF)
}

static void check__ends_of_ranges(struct kunit *test)
{
	u32 i;

	for (i = 0; i < TIMELY_P_COUNT; i++) {
		const struct timely_param_desc *desc = &timely_param_descs[i];
		struct timely_params params = widest();
		u32 *value = timely_param_ref(&params, i);

		/* t_low must not be above t_high, nor min_rate above max_rate. */
		*value = desc->min;
		params.t_low_ns = min(params.t_low_ns, params.t_high_ns);
		params.min_rate_kbps = min(params.min_rate_kbps, params.max_rate_kbps);
		expect_check(test, &params, 0, i);
		*value = desc->max;
		expect_check(test, &params, 0, i);
	}
}

static void check__out_of_range(struct kunit *test)
{
	u32 i;

	for (i = 0; i < TIMELY_P_COUNT; i++) {
		const struct timely_param_desc *desc = &timely_param_descs[i];
		struct timely_params params = widest();
		u32 *value = timely_param_ref(&params, i);

		if (desc->min > 0) {
			*value = desc->min - 1;
			expect_check(test, &params, -ERANGE, i);
			*value = 0;
			expect_check(test, &params, -ERANGE, i);
		}
		*value = desc->max + 1;
		expect_check(test, &params, -ERANGE, i);
		*value = U32_MAX - 1;
		expect_check(test, &params, -ERANGE, i);
	}
}

/* Parameters that do not depend on the path must have a value. */
static void check__auto_where_allowed(struct kunit *test)
{
	u32 i, allowed = 0;

	for (i = 0; i < TIMELY_P_COUNT; i++) {
		const struct timely_param_desc *desc = &timely_param_descs[i];
		struct timely_params params = widest();

		KUNIT_EXPECT_FALSE(test, timely_params_any_auto(&params));
		*timely_param_ref(&params, i) = TIMELY_AUTO;
		KUNIT_EXPECT_TRUE(test, timely_params_any_auto(&params));
		KUNIT_EXPECT_EQ(test, timely_param_allowed(i, TIMELY_AUTO), desc->may_be_auto);
		expect_check(test, &params, desc->may_be_auto ? 0 : -ERANGE, i);
		allowed += desc->may_be_auto;
	}
	KUNIT_EXPECT_TRUE(test, timely_param_allowed(TIMELY_P_t_high_ns, TIMELY_AUTO));
	KUNIT_EXPECT_FALSE(test, timely_param_allowed(TIMELY_P_rule, TIMELY_AUTO));
	KUNIT_EXPECT_LT(test, allowed, TIMELY_P_COUNT);
}

/* A threshold or rate that is "auto" is not compared with the other one. */
static void check__auto_is_in_order(struct kunit *test)
{
	struct timely_params params = widest();

	params.t_low_ns = 1000000000;
	params.t_high_ns = TIMELY_AUTO;
	params.min_rate_kbps = 800000000;
	params.max_rate_kbps = TIMELY_AUTO;
	expect_check(test, &params, 0, TIMELY_P_t_low_ns);
	params.t_low_ns = TIMELY_AUTO;
	params.t_high_ns = 1000;
	expect_check(test, &params, 0, TIMELY_P_t_low_ns);
}

static void check__thresholds_in_order(struct kunit *test)
{
	struct timely_params params = widest();

	params.t_low_ns = 100001;
	params.t_high_ns = 100000;
	expect_check(test, &params, -EINVAL, TIMELY_P_t_low_ns);
	/* Equal thresholds are valid: SIGCOMM'15 section 4.4. */
	params.t_low_ns = 100000;
	expect_check(test, &params, 0, TIMELY_P_t_low_ns);
}

static void check__rates_in_order(struct kunit *test)
{
	struct timely_params params = widest();

	params.min_rate_kbps = 5001;
	params.max_rate_kbps = 5000;
	expect_check(test, &params, -EINVAL, TIMELY_P_min_rate_kbps);
	params.min_rate_kbps = 5000;
	expect_check(test, &params, 0, TIMELY_P_min_rate_kbps);
	/* A first rate outside of min_rate and max_rate is valid: the engine clamps it. */
	params.first_rate_kbps = 1;
	expect_check(test, &params, 0, TIMELY_P_first_rate_kbps);
	params.first_rate_kbps = 800000000;
	expect_check(test, &params, 0, TIMELY_P_first_rate_kbps);
}

/* A value out of its range is reported before a wrong order of two values. */
static void check__range_before_order(struct kunit *test)
{
	struct timely_params params = widest();

	params.t_low_ns = 2000;
	params.t_high_ns = 999;
	expect_check(test, &params, -ERANGE, TIMELY_P_t_high_ns);
	params = widest();
	params.min_rate_kbps = 2;
	params.max_rate_kbps = 0;
	expect_check(test, &params, -ERANGE, TIMELY_P_max_rate_kbps);
}

static void presets__are_valid(struct kunit *test)
{
	u32 i, index;

	for (i = 0; i < timely_preset_count; i++) {
		const struct timely_preset *preset = &timely_presets[i];

		index = TIMELY_P_COUNT;
		KUNIT_EXPECT_EQ_MSG(test, timely_params_check(&preset->params, &index), 0,
				    "%s: parameter %u", preset->name, index);
		KUNIT_EXPECT_GT(test, (int)strlen(preset->doc), 0);
	}
}

static void presets__are_the_named_ones(struct kunit *test)
{
	char *names = kunit_kzalloc(test, 256, GFP_KERNEL);
	u32 i, used = 0;

	KUNIT_ASSERT_NOT_NULL(test, names);
	for (i = 0; i < timely_preset_count; i++)
		used += scnprintf(names + used, 256 - used, "%s%s", i ? ", " : "",
				  timely_presets[i].name);
	KUNIT_EXPECT_STREQ(test, names, TIMELY_PRESET_NAMES);
}

static void presets__agree_with_their_sources(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(stated); i++) {
		const struct stated *s = &stated[i];
		const struct timely_preset *preset = timely_preset_find(s->preset);

		KUNIT_ASSERT_NOT_NULL(test, preset);
		KUNIT_EXPECT_EQ_MSG(test, value_of(preset->params, s->index), s->value,
				    "%s: %s", s->preset, field_names[s->index]);
	}
}

static void find__knows_each_name(struct kunit *test)
{
	u32 i;

	for (i = 0; i < timely_preset_count; i++)
		KUNIT_EXPECT_PTR_EQ(test, timely_preset_find(timely_presets[i].name),
				    &timely_presets[i]);
}

static void find__needs_the_whole_name(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, timely_preset_find(""));
	KUNIT_EXPECT_NULL(test, timely_preset_find("pape"));
	KUNIT_EXPECT_NULL(test, timely_preset_find("papers"));
	KUNIT_EXPECT_NULL(test, timely_preset_find("no such preset"));
}

static struct kunit_case params_cases[] = {
	KUNIT_CASE(descs__follow_the_table),
	KUNIT_CASE(ref__is_the_field),
	KUNIT_CASE(check__ends_of_ranges),
	KUNIT_CASE(check__out_of_range),
	KUNIT_CASE(check__auto_where_allowed),
	KUNIT_CASE(check__auto_is_in_order),
	KUNIT_CASE(check__thresholds_in_order),
	KUNIT_CASE(check__rates_in_order),
	KUNIT_CASE(check__range_before_order),
	KUNIT_CASE(presets__are_valid),
	KUNIT_CASE(presets__are_the_named_ones),
	KUNIT_CASE(presets__agree_with_their_sources),
	KUNIT_CASE(find__knows_each_name),
	KUNIT_CASE(find__needs_the_whole_name),
	{}
};

static struct kunit_suite params_suite = {
	.name = "timely_params",
	.test_cases = params_cases,
};

kunit_test_suite(params_suite);
