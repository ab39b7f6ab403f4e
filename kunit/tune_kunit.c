// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the parameters that are derived from the path: what they promise over the
 * whole range of paths, and values worked out by hand.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <timely/engine/rate.h>
#include <timely/engine/tune.h>

#define MSS	1448

static const u32 lines_kbps[] = {
	0, 1000, 1000000, 2500000, 10000000, 25000000, 40000000, 100000000, 200000000,
	400000000, 800000000, U32_MAX,
};

static const u32 bases_ns[] = {
	0, 1, 999, 5000, 17000, 20000, 100000, 500000, 2000000, 200000000, 1000000000,
	U32_MAX,
};

static const u32 sizes[] = { 0, 1, 536, MSS, 8948, 65535 };

static struct timely_params defaults(void)
{
	return timely_preset_find("linux")->params;
}

static struct timely_params tuned(u32 base_rtt_ns, u32 line_kbps, u32 mss)
{
	struct timely_params params = defaults();

	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = base_rtt_ns, .line_kbps = line_kbps, .mss = mss,
	});
	return params;
}

/* A line that is likely is a measure where the line is not known, but bounds nothing. */
static void tune__likely_line(struct kunit *test)
{
	struct timely_params known = tuned(20000, 25000000, MSS), params = defaults();

	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = 20000, .likely_kbps = 25000000, .mss = MSS,
	});
	KUNIT_EXPECT_EQ(test, params.line_rate_kbps, 0);
	KUNIT_EXPECT_EQ(test, params.max_rate_kbps,
			timely_param_descs[TIMELY_P_max_rate_kbps].max);
	KUNIT_EXPECT_EQ(test, params.first_rate_kbps, known.first_rate_kbps);
	KUNIT_EXPECT_EQ(test, params.segment_bytes, known.segment_bytes);
	KUNIT_EXPECT_EQ(test, params.rtt_ref_ns, known.rtt_ref_ns);

	params = defaults();
	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = 20000, .line_kbps = 25000000, .likely_kbps = 1000000, .mss = MSS,
	});
	KUNIT_EXPECT_EQ(test, memcmp(&params, &known, sizeof(params)), 0);
}

/* Call @check for all paths. */
static void all_paths(struct kunit *test,
		      void (*check)(struct kunit *test, const struct timely_path *path))
{
	struct timely_path path;
	u32 i, j, k;

	for (i = 0; i < ARRAY_SIZE(bases_ns); i++)
		for (j = 0; j < ARRAY_SIZE(lines_kbps); j++)
			for (k = 0; k < ARRAY_SIZE(sizes); k++) {
				path = (struct timely_path){
					.base_rtt_ns = bases_ns[i],
					.line_kbps = lines_kbps[j],
					.mss = sizes[k],
				};
				check(test, &path);
			}
}

static void check_range(struct kunit *test, const struct timely_path *path)
{
	u32 i, wrong;

	for (i = 0; i < timely_preset_count; i++) {
		struct timely_params params = timely_presets[i].params;

		timely_tune(&params, path);
		KUNIT_EXPECT_FALSE(test, timely_params_are_auto(&params));
		KUNIT_EXPECT_EQ_MSG(test, timely_params_check(&params, &wrong), 0,
				    "%s: %s, base %u line %u mss %u", timely_presets[i].name,
				    timely_param_descs[wrong].name, path->base_rtt_ns,
				    path->line_kbps, path->mss);
	}
}

static void tune__is_always_in_range(struct kunit *test)
{
	all_paths(test, check_range);
}

static void check_given(struct kunit *test, const struct timely_path *path)
{
	u32 i, j, wrong;

	for (i = 0; i < TIMELY_P_COUNT; i++) {
		u32 values[] = { timely_param_descs[i].min, timely_param_descs[i].max };

		for (j = 0; j < ARRAY_SIZE(values); j++) {
			struct timely_params params = defaults();

			*timely_param_ref(&params, i) = values[j];
			timely_tune(&params, path);
			KUNIT_EXPECT_EQ(test, *timely_param_ref(&params, i), values[j]);
			KUNIT_EXPECT_EQ_MSG(test, timely_params_check(&params, &wrong), 0,
					    "%s = %u", timely_param_descs[i].name, values[j]);
		}
	}
}

static void tune__keeps_what_was_given(struct kunit *test)
{
	all_paths(test, check_given);
}

static void tune__knows_the_testbed(struct kunit *test)
{
	/* 20 us and 10 Gb/s, in packets of 1538 bytes on the wire: 1230 ns each. */
	struct timely_params params = tuned(20000, 10000000, MSS);

	KUNIT_EXPECT_EQ(test, params.min_rtt_ns, 20000);
	/* 5 us are 6250 bytes: four packets. */
	KUNIT_EXPECT_EQ(test, params.segment_bytes, 4 * MSS);
	/* Three packets are less than 4 us. */
	KUNIT_EXPECT_EQ(test, params.rtt_ref_ns, 20000 + 4000);
	/* Half of the segment's 4921 ns, times sqrt(10) at 1 Gb/s, which is 3.162. */
	KUNIT_EXPECT_EQ(test, params.rtt_ref_1g_ns, 7780);
	KUNIT_EXPECT_EQ(test, params.t_high_ns, 8 * 20000 + 40 * 1230);
	KUNIT_EXPECT_EQ(test, params.max_rate_kbps, 10000000);
	KUNIT_EXPECT_EQ(test, params.first_rate_kbps, 500000);
	KUNIT_EXPECT_EQ(test, params.min_rate_kbps, 2000);
	KUNIT_EXPECT_EQ(test, params.line_rate_kbps, 10000000);
}

static void tune__takes_an_unknown_line_for_10g(struct kunit *test)
{
	struct timely_params unknown = tuned(17000, 0, MSS), known = tuned(17000, 10000000, MSS);

	KUNIT_EXPECT_EQ(test, unknown.line_rate_kbps, 0);
	KUNIT_EXPECT_EQ(test, unknown.max_rate_kbps,
			timely_param_descs[TIMELY_P_max_rate_kbps].max);
	unknown.line_rate_kbps = known.line_rate_kbps;
	unknown.max_rate_kbps = known.max_rate_kbps;
	KUNIT_EXPECT_EQ(test, memcmp(&unknown, &known, sizeof(known)), 0);
}

static void tune__goes_by_what_was_given(struct kunit *test)
{
	struct timely_params params = defaults(), path = tuned(100000, 25000000, MSS);

	params.line_rate_kbps = 25000000;
	params.min_rtt_ns = 100000;
	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = 5000, .line_kbps = 1000000, .mss = MSS,
	});
	KUNIT_EXPECT_EQ(test, memcmp(&params, &path, sizeof(path)), 0);
}

static void tune__is_gentler_where_rates_come_late(struct kunit *test)
{
	struct timely_params late = defaults(), soon = tuned(20000, 10000000, MSS);

	timely_tune(&late, &(struct timely_path){
		.base_rtt_ns = 20000, .line_kbps = 10000000, .mss = MSS, .late = TIMELY_LATE,
	});
	KUNIT_EXPECT_EQ(test, late.beta_ppm, 7000);
	KUNIT_EXPECT_EQ(test, late.segment_bytes, soon.segment_bytes / 2);
	/* Three times that of half a segment, but for rounding. */
	KUNIT_EXPECT_LE(test, late.rtt_ref_1g_ns, soon.rtt_ref_1g_ns * 3 / 2 + 5);
	KUNIT_EXPECT_GE(test, late.rtt_ref_1g_ns + 5, soon.rtt_ref_1g_ns * 3 / 2);
	late.beta_ppm = soon.beta_ppm;
	late.segment_bytes = soon.segment_bytes;
	late.rtt_ref_1g_ns = soon.rtt_ref_1g_ns;
	KUNIT_EXPECT_EQ(test, memcmp(&late, &soon, sizeof(soon)), 0);
}

static void tune__allows_for_the_slack_of_fq(struct kunit *test)
{
	struct timely_params late = defaults(), slack = defaults();
	struct timely_path path = {
		.base_rtt_ns = 20000, .line_kbps = 10000000, .mss = MSS, .late = TIMELY_LATE,
	};

	timely_tune(&late, &path);
	path.late = TIMELY_LATE_BY_SLACK;
	timely_tune(&slack, &path);
	KUNIT_EXPECT_EQ(test, slack.rtt_ref_ns, late.rtt_ref_ns + 10000);
	KUNIT_EXPECT_EQ(test, slack.t_low_ns, late.t_low_ns + 10000);
	slack.rtt_ref_ns = late.rtt_ref_ns;
	slack.t_low_ns = late.t_low_ns;
	KUNIT_EXPECT_EQ(test, memcmp(&late, &slack, sizeof(slack)), 0);
}

static void tune__goes_by_what_receivers_add(struct kunit *test)
{
	struct timely_params quiet = tuned(20000, 10000000, MSS);
	struct timely_params held = defaults(), given = defaults();
	struct timely_path path = {
		.base_rtt_ns = 20000, .line_kbps = 10000000, .mss = MSS, .noise_ns = 25000,
	};

	KUNIT_EXPECT_EQ(test, quiet.rtt_noise_ns, 0);
	timely_tune(&held, &path);
	KUNIT_EXPECT_EQ(test, held.rtt_noise_ns, 25000);
	KUNIT_EXPECT_EQ(test, held.t_high_ns, quiet.t_high_ns + 4 * 25000);
	KUNIT_EXPECT_EQ(test, held.rtt_ref_ns, quiet.rtt_ref_ns);
	given.rtt_noise_ns = 0;
	timely_tune(&given, &path);
	KUNIT_EXPECT_EQ(test, given.rtt_noise_ns, 0);
	/* Far more than any receiver adds. */
	path.noise_ns = U32_MAX;
	held = defaults();
	timely_tune(&held, &path);
	KUNIT_EXPECT_EQ(test, held.rtt_noise_ns, 1000000);
}

static void tune__has_even_segments_of_5_us(struct kunit *test)
{
	static const struct {
		u32 kbps;
		u32 mss;
		u32 packets;
	} cases[] = {
		{ 1000000, MSS, 2 }, { 10000000, MSS, 4 }, { 25000000, MSS, 10 },
		/* 16 KB from here on */
		{ 40000000, MSS, 10 }, { 100000000, MSS, 10 },
		/* 1.25 us */
		{ 400000000, MSS, 40 },
		{ 10000000, 8948, 2 }, { 100000000, 8948, 2 }, { 400000000, 8948, 6 },
	};
	u32 i;

	/* Of a path of 6 us no more than 2 us. */
	KUNIT_EXPECT_EQ(test, tuned(6000, 25000000, MSS).segment_bytes, 4 * MSS);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, tuned(20000, cases[i].kbps, cases[i].mss).segment_bytes,
				    cases[i].packets * cases[i].mss, "%u kbit/s, %u bytes",
				    cases[i].kbps, cases[i].mss);
}

static void tune__slow_flows_have_short_segments(struct kunit *test)
{
	/* What it sends in 244 us, an even number, 2 at least, no more than the line's. */
	KUNIT_EXPECT_EQ(test, timely_segment_packets(0, 4), 2);
	KUNIT_EXPECT_EQ(test, timely_segment_packets(3, 4), 2);
	KUNIT_EXPECT_EQ(test, timely_segment_packets(4, 4), 4);
	KUNIT_EXPECT_EQ(test, timely_segment_packets(7, 10), 6);
	KUNIT_EXPECT_EQ(test, timely_segment_packets(65535, 10), 10);
	KUNIT_EXPECT_EQ(test, timely_segment_packets(65535, 2), 2);
}

static void tune__grows_with_the_path(struct kunit *test)
{
	u32 i, j;

	/* Beyond both ends all is at the ends of ranges. */
	for (j = 0; j < ARRAY_SIZE(lines_kbps); j++)
		for (i = 1; i < ARRAY_SIZE(bases_ns); i++) {
			struct timely_params near = tuned(max(bases_ns[i - 1], 1U), lines_kbps[j],
							  MSS);
			struct timely_params far = tuned(bases_ns[i], lines_kbps[j], MSS);

			KUNIT_EXPECT_GE(test, far.min_rtt_ns, near.min_rtt_ns);
			KUNIT_EXPECT_GE(test, far.rtt_ref_ns, near.rtt_ref_ns);
			KUNIT_EXPECT_GE(test, far.t_high_ns, near.t_high_ns);
			KUNIT_EXPECT_GE(test, far.segment_bytes, near.segment_bytes);
			KUNIT_EXPECT_GE(test, far.rtt_ref_1g_ns, near.rtt_ref_1g_ns);
		}
}

static void tune__grows_with_the_line(struct kunit *test)
{
	u32 j;

	for (j = 2; j < ARRAY_SIZE(lines_kbps); j++) {
		struct timely_params slow = tuned(20000, lines_kbps[j - 1], MSS);
		struct timely_params fast = tuned(20000, lines_kbps[j], MSS);

		KUNIT_EXPECT_GE(test, fast.segment_bytes, slow.segment_bytes);
		KUNIT_EXPECT_GE(test, fast.first_rate_kbps, slow.first_rate_kbps);
		KUNIT_EXPECT_GE(test, fast.min_rate_kbps, slow.min_rate_kbps);
		KUNIT_EXPECT_GE(test, fast.max_rate_kbps, slow.max_rate_kbps);
		/* A packet takes less time. */
		KUNIT_EXPECT_LE(test, fast.rtt_ref_ns, slow.rtt_ref_ns);
		KUNIT_EXPECT_LE(test, fast.t_high_ns, slow.t_high_ns);
	}
}

static void tune__thresholds_are_in_order(struct kunit *test)
{
	u32 i, j;

	for (i = 3; i < 9; i++)
		for (j = 2; j < 10; j++) {
			struct timely_params params = tuned(bases_ns[i], lines_kbps[j], MSS);

			KUNIT_EXPECT_LT(test, params.min_rtt_ns, params.rtt_ref_ns);
			KUNIT_EXPECT_LT(test, params.rtt_ref_ns, params.t_high_ns);
			KUNIT_EXPECT_LE(test, params.t_low_ns, params.t_high_ns);
			KUNIT_EXPECT_LT(test, params.min_rate_kbps, params.first_rate_kbps);
			KUNIT_EXPECT_LT(test, params.first_rate_kbps, params.max_rate_kbps);
		}
}

static void first_base__has_a_segment_in_it(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, timely_first_base_ns(17000, 0), 17000);
	/* At 10 Gb/s. */
	KUNIT_EXPECT_EQ(test, timely_first_base_ns(17000, 6250), 22000);
	KUNIT_EXPECT_EQ(test, timely_first_base_ns(U32_MAX, 65536), U32_MAX);
}

static struct kunit_case timely_tune_cases[] = {
	KUNIT_CASE(tune__likely_line),
	KUNIT_CASE(tune__is_always_in_range),
	KUNIT_CASE(tune__keeps_what_was_given),
	KUNIT_CASE(tune__knows_the_testbed),
	KUNIT_CASE(tune__takes_an_unknown_line_for_10g),
	KUNIT_CASE(tune__goes_by_what_was_given),
	KUNIT_CASE(tune__is_gentler_where_rates_come_late),
	KUNIT_CASE(tune__allows_for_the_slack_of_fq),
	KUNIT_CASE(tune__goes_by_what_receivers_add),
	KUNIT_CASE(tune__has_even_segments_of_5_us),
	KUNIT_CASE(tune__slow_flows_have_short_segments),
	KUNIT_CASE(tune__grows_with_the_path),
	KUNIT_CASE(tune__grows_with_the_line),
	KUNIT_CASE(tune__thresholds_are_in_order),
	KUNIT_CASE(first_base__has_a_segment_in_it),
	{}
};

static struct kunit_suite timely_tune_suite = {
	.name = "timely_tune",
	.test_cases = timely_tune_cases,
};

kunit_test_suite(timely_tune_suite);
