// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the path-dependent parameters (tune.c): properties that hold for all paths, and values
 * computed by hand for some paths.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <timely/engine/rate.h>
#include <timely/engine/tune.h>

#define MSS	1448

/* Paths from one end of the ranges to the other; 0 is unknown. */
static const u32 links_kbps[] = {
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
	return timely_preset_find("target_delay")->params;
}

static struct timely_params tuned(u32 base_rtt_ns, u32 link_kbps, u32 mss)
{
	struct timely_params params = defaults();

	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = base_rtt_ns, .link_kbps = link_kbps, .mss = mss,
	});
	return params;
}

/* If the link rate is not known, parameters follow from the likely link rate, which does not limit
 * the rate of a connection. If the link rate is known, the likely one does not count.
 */
static void tune__likely_link_rate(struct kunit *test)
{
	struct timely_params known = tuned(20000, 25000000, MSS), params = defaults();

	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = 20000, .likely_kbps = 25000000, .mss = MSS,
	});
	KUNIT_EXPECT_EQ(test, params.link_rate_kbps, 0);
	KUNIT_EXPECT_EQ(test, params.max_rate_kbps,
			timely_param_descs[TIMELY_P_max_rate_kbps].max);
	KUNIT_EXPECT_EQ(test, params.first_rate_kbps, known.first_rate_kbps);
	KUNIT_EXPECT_EQ(test, params.segment_bytes, known.segment_bytes);
	KUNIT_EXPECT_EQ(test, params.rtt_ref_ns, known.rtt_ref_ns);

	params = defaults();
	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = 20000, .link_kbps = 25000000, .likely_kbps = 1000000, .mss = MSS,
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
		for (j = 0; j < ARRAY_SIZE(links_kbps); j++)
			for (k = 0; k < ARRAY_SIZE(sizes); k++) {
				path = (struct timely_path){
					.base_rtt_ns = bases_ns[i],
					.link_kbps = links_kbps[j],
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
		KUNIT_EXPECT_FALSE(test, timely_params_any_auto(&params));
		KUNIT_EXPECT_EQ_MSG(test, timely_params_check(&params, &wrong), 0,
				    "%s: %s, base %u link %u mss %u", timely_presets[i].name,
				    timely_param_descs[wrong].name, path->base_rtt_ns,
				    path->link_kbps, path->mss);
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

static void tune__values_for_the_testbed(struct kunit *test)
{
	/* 20 us and 10 Gb/s, in packets of 1538 bytes on the wire: 1230 ns each. */
	struct timely_params params = tuned(20000, 10000000, MSS);

	KUNIT_EXPECT_EQ(test, params.min_rtt_ns, 20000);
	/* 5 us are 6250 bytes: four packets. */
	KUNIT_EXPECT_EQ(test, params.segment_bytes, 4 * MSS);
	/* Three packets are less than 4 us. */
	KUNIT_EXPECT_EQ(test, params.rtt_ref_ns, 20000 + 4000);
	/* Half of the segment's 4921 ns at 10 Gb/s, times sqrt(10) = 3.162 for 1 Gb/s. */
	KUNIT_EXPECT_EQ(test, params.rtt_ref_1g_ns, 7780);
	KUNIT_EXPECT_EQ(test, params.t_high_ns, 8 * 20000 + 40 * 1230);
	KUNIT_EXPECT_EQ(test, params.max_rate_kbps, 10000000);
	KUNIT_EXPECT_EQ(test, params.first_rate_kbps, 500000);
	KUNIT_EXPECT_EQ(test, params.min_rate_kbps, 2000);
	KUNIT_EXPECT_EQ(test, params.link_rate_kbps, 10000000);
}

static void tune__takes_an_unknown_link_for_10g(struct kunit *test)
{
	struct timely_params unknown = tuned(17000, 0, MSS), known = tuned(17000, 10000000, MSS);

	KUNIT_EXPECT_EQ(test, unknown.link_rate_kbps, 0);
	KUNIT_EXPECT_EQ(test, unknown.max_rate_kbps,
			timely_param_descs[TIMELY_P_max_rate_kbps].max);
	unknown.link_rate_kbps = known.link_rate_kbps;
	unknown.max_rate_kbps = known.max_rate_kbps;
	KUNIT_EXPECT_EQ(test, memcmp(&unknown, &known, sizeof(known)), 0);
}

static void tune__uses_given_link_and_base_rtt(struct kunit *test)
{
	struct timely_params params = defaults(), path = tuned(100000, 25000000, MSS);

	params.link_rate_kbps = 25000000;
	params.min_rtt_ns = 100000;
	timely_tune(&params, &(struct timely_path){
		.base_rtt_ns = 5000, .link_kbps = 1000000, .mss = MSS,
	});
	KUNIT_EXPECT_EQ(test, memcmp(&params, &path, sizeof(path)), 0);
}

static void tune__is_gentler_where_rates_lag(struct kunit *test)
{
	struct timely_params lag = defaults(), soon = tuned(20000, 10000000, MSS);

	timely_tune(&lag, &(struct timely_path){
		.base_rtt_ns = 20000, .link_kbps = 10000000, .mss = MSS, .lag = TIMELY_RATE_LAG,
	});
	KUNIT_EXPECT_EQ(test, lag.beta_ppm, 7000);
	KUNIT_EXPECT_EQ(test, lag.segment_bytes, soon.segment_bytes / 2);
	/* Segments are half as long, and TUNE_LAG_QUEUE is 3; the product is rounded. */
	KUNIT_EXPECT_LE(test, lag.rtt_ref_1g_ns, soon.rtt_ref_1g_ns * 3 / 2 + 5);
	KUNIT_EXPECT_GE(test, lag.rtt_ref_1g_ns + 5, soon.rtt_ref_1g_ns * 3 / 2);
	lag.beta_ppm = soon.beta_ppm;
	lag.segment_bytes = soon.segment_bytes;
	lag.rtt_ref_1g_ns = soon.rtt_ref_1g_ns;
	KUNIT_EXPECT_EQ(test, memcmp(&lag, &soon, sizeof(soon)), 0);
}

static void tune__allows_for_the_slack_of_fq(struct kunit *test)
{
	struct timely_params lag = defaults(), slack = defaults();
	struct timely_path path = {
		.base_rtt_ns = 20000, .link_kbps = 10000000, .mss = MSS, .lag = TIMELY_RATE_LAG,
	};

	timely_tune(&lag, &path);
	path.lag = TIMELY_RATE_LAG_SLACK;
	timely_tune(&slack, &path);
	KUNIT_EXPECT_EQ(test, slack.rtt_ref_ns, lag.rtt_ref_ns + 10000);
	KUNIT_EXPECT_EQ(test, slack.t_low_ns, lag.t_low_ns + 10000);
	slack.rtt_ref_ns = lag.rtt_ref_ns;
	slack.t_low_ns = lag.t_low_ns;
	KUNIT_EXPECT_EQ(test, memcmp(&lag, &slack, sizeof(slack)), 0);
}

static void tune__allows_for_ack_aggregation(struct kunit *test)
{
	struct timely_params quiet = tuned(20000, 10000000, MSS);
	struct timely_params aggregated = defaults(), given = defaults();
	struct timely_path path = {
		.base_rtt_ns = 20000, .link_kbps = 10000000, .mss = MSS, .ack_agg_ns = 25000,
	};

	KUNIT_EXPECT_EQ(test, quiet.ack_aggregation_ns, 0);
	timely_tune(&aggregated, &path);
	KUNIT_EXPECT_EQ(test, aggregated.ack_aggregation_ns, 25000);
	KUNIT_EXPECT_EQ(test, aggregated.t_high_ns, quiet.t_high_ns + 4 * 25000);
	KUNIT_EXPECT_EQ(test, aggregated.rtt_ref_ns, quiet.rtt_ref_ns);
	given.ack_aggregation_ns = 0;
	timely_tune(&given, &path);
	KUNIT_EXPECT_EQ(test, given.ack_aggregation_ns, 0);
	/* A measurement that is far too high is limited to 1 ms. */
	path.ack_agg_ns = U32_MAX;
	aggregated = defaults();
	timely_tune(&aggregated, &path);
	KUNIT_EXPECT_EQ(test, aggregated.ack_aggregation_ns, 1000000);
}

/* A segment of 64 KB takes 9.3 s at 60 kbit/s, more than 32 bits of nanoseconds. Expected: 65536
 * bytes with the headers of packets are 69609 bytes, so 9281200000 ns, x 7 (the square root of 60,
 * rounded down) / 2000.
 */
static void tune__times_may_exceed_32_bits(struct kunit *test)
{
	struct timely_params params = defaults();

	params.segment_bytes = 65536;
	params.link_rate_kbps = 60;
	timely_tune(&params, &(struct timely_path){ .base_rtt_ns = 20000, .mss = MSS });
	KUNIT_EXPECT_EQ(test, params.rtt_ref_1g_ns, 32484200);
}

static void tune__has_even_segments_of_5_us(struct kunit *test)
{
	static const struct {
		u32 kbps;
		u32 mss;
		u32 packets;
	} cases[] = {
		{ 1000000, MSS, 2 }, { 10000000, MSS, 4 }, { 25000000, MSS, 10 },
		{ 40000000, MSS, 16 }, { 100000000, MSS, 40 },
		/* At most 64 KB */
		{ 400000000, MSS, 44 },
		{ 10000000, 8948, 2 }, { 100000000, 8948, 6 }, { 400000000, 8948, 6 },
	};
	u32 i;

	/* At most a third of the base RTT: 2 us of 6 us. */
	KUNIT_EXPECT_EQ(test, tuned(6000, 25000000, MSS).segment_bytes, 4 * MSS);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, tuned(20000, cases[i].kbps, cases[i].mss).segment_bytes,
				    cases[i].packets * cases[i].mss, "%u kbit/s, %u bytes",
				    cases[i].kbps, cases[i].mss);
}

static void tune__slow_flows_have_short_segments(struct kunit *test)
{
	/* The packets sent in 244 us, rounded down to an even number, from 2 to the path's maximum.
	 */
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

	/* Base RTTs beyond the ranges give values at the ends of the ranges. */
	for (j = 0; j < ARRAY_SIZE(links_kbps); j++)
		for (i = 1; i < ARRAY_SIZE(bases_ns); i++) {
			struct timely_params near = tuned(max(bases_ns[i - 1], 1U), links_kbps[j],
							  MSS);
			struct timely_params far = tuned(bases_ns[i], links_kbps[j], MSS);

			KUNIT_EXPECT_GE(test, far.min_rtt_ns, near.min_rtt_ns);
			KUNIT_EXPECT_GE(test, far.rtt_ref_ns, near.rtt_ref_ns);
			KUNIT_EXPECT_GE(test, far.t_high_ns, near.t_high_ns);
			KUNIT_EXPECT_GE(test, far.segment_bytes, near.segment_bytes);
			KUNIT_EXPECT_GE(test, far.rtt_ref_1g_ns, near.rtt_ref_1g_ns);
		}
}

static void tune__grows_with_the_link_rate(struct kunit *test)
{
	u32 j;

	for (j = 2; j < ARRAY_SIZE(links_kbps); j++) {
		struct timely_params slow = tuned(20000, links_kbps[j - 1], MSS);
		struct timely_params fast = tuned(20000, links_kbps[j], MSS);

		KUNIT_EXPECT_GE(test, fast.segment_bytes, slow.segment_bytes);
		KUNIT_EXPECT_GE(test, fast.first_rate_kbps, slow.first_rate_kbps);
		KUNIT_EXPECT_GE(test, fast.min_rate_kbps, slow.min_rate_kbps);
		KUNIT_EXPECT_GE(test, fast.max_rate_kbps, slow.max_rate_kbps);
		/* The serialization of a packet takes less time. */
		KUNIT_EXPECT_LE(test, fast.rtt_ref_ns, slow.rtt_ref_ns);
		KUNIT_EXPECT_LE(test, fast.t_high_ns, slow.t_high_ns);
	}
}

static void tune__thresholds_are_in_order(struct kunit *test)
{
	u32 i, j;

	for (i = 3; i < 9; i++)
		for (j = 2; j < 10; j++) {
			struct timely_params params = tuned(bases_ns[i], links_kbps[j], MSS);

			KUNIT_EXPECT_LT(test, params.min_rtt_ns, params.rtt_ref_ns);
			KUNIT_EXPECT_LT(test, params.rtt_ref_ns, params.t_high_ns);
			KUNIT_EXPECT_LE(test, params.t_low_ns, params.t_high_ns);
			KUNIT_EXPECT_LT(test, params.min_rate_kbps, params.first_rate_kbps);
			KUNIT_EXPECT_LT(test, params.first_rate_kbps, params.max_rate_kbps);
		}
}

static struct timely_params tuned_preset(const char *name, const struct timely_path *path)
{
	struct timely_params params = timely_preset_find(name)->params;

	timely_tune(&params, path);
	return params;
}

static void tune__values_for_swift(struct kunit *test)
{
	struct timely_path path = { .base_rtt_ns = 20000, .link_kbps = 10000000, .mss = MSS };
	struct timely_params params = tuned_preset("swift", &path);

	/* Ten packets in 20 us; a packet per segment; the base target of the default rule */
	KUNIT_EXPECT_EQ(test, params.first_rate_kbps, 10 * MSS * 8 / 20 * 1000);
	KUNIT_EXPECT_EQ(test, params.segment_bytes, MSS);
	KUNIT_EXPECT_EQ(test, params.rtt_ref_ns, 20000 + 4000);
	KUNIT_EXPECT_EQ(test, params.max_rate_kbps, 10000000);
	KUNIT_EXPECT_EQ(test, params.min_rate_kbps, 2000);
	/* At most the link rate */
	path.base_rtt_ns = 10000;
	KUNIT_EXPECT_EQ(test, tuned_preset("swift", &path).first_rate_kbps, 10000000);
}

static void tune__values_for_powertcp(struct kunit *test)
{
	struct timely_path path = { .base_rtt_ns = 20000, .link_kbps = 25000000, .mss = MSS };
	struct timely_params params = tuned_preset("powertcp", &path);

	KUNIT_EXPECT_EQ(test, params.first_rate_kbps, 25000000);
	KUNIT_EXPECT_EQ(test, params.max_rate_kbps, 25000000);
	KUNIT_EXPECT_EQ(test, params.delta_kbps, 2500000);
	KUNIT_EXPECT_EQ(test, params.segment_bytes, MSS);
	/* A link that is not known counts as 10 Gb/s, or as the likely one. */
	path.link_kbps = 0;
	KUNIT_EXPECT_EQ(test, tuned_preset("powertcp", &path).max_rate_kbps, 10000000);
	path.likely_kbps = 40000000;
	KUNIT_EXPECT_EQ(test, tuned_preset("powertcp", &path).max_rate_kbps, 40000000);
}

static void first_base__has_a_segment_in_it(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, timely_first_base_ns(17000, 0), 17000);
	/* A segment of 6250 bytes takes 5 us at 10 Gb/s. */
	KUNIT_EXPECT_EQ(test, timely_first_base_ns(17000, 6250), 22000);
	KUNIT_EXPECT_EQ(test, timely_first_base_ns(U32_MAX, 65536), U32_MAX);
}

static struct kunit_case timely_tune_cases[] = {
	KUNIT_CASE(tune__likely_link_rate),
	KUNIT_CASE(tune__is_always_in_range),
	KUNIT_CASE(tune__keeps_what_was_given),
	KUNIT_CASE(tune__values_for_the_testbed),
	KUNIT_CASE(tune__takes_an_unknown_link_for_10g),
	KUNIT_CASE(tune__uses_given_link_and_base_rtt),
	KUNIT_CASE(tune__is_gentler_where_rates_lag),
	KUNIT_CASE(tune__allows_for_the_slack_of_fq),
	KUNIT_CASE(tune__allows_for_ack_aggregation),
	KUNIT_CASE(tune__times_may_exceed_32_bits),
	KUNIT_CASE(tune__has_even_segments_of_5_us),
	KUNIT_CASE(tune__slow_flows_have_short_segments),
	KUNIT_CASE(tune__grows_with_the_path),
	KUNIT_CASE(tune__grows_with_the_link_rate),
	KUNIT_CASE(tune__thresholds_are_in_order),
	KUNIT_CASE(tune__values_for_swift),
	KUNIT_CASE(tune__values_for_powertcp),
	KUNIT_CASE(first_base__has_a_segment_in_it),
	{}
};

static struct kunit_suite timely_tune_suite = {
	.name = "timely_tune",
	.test_cases = timely_tune_cases,
};

kunit_test_suite(timely_tune_suite);
