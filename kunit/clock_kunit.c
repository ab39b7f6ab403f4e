// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the clock engine: verdicts and batches with hand-made values, then a simulated NIC
 * and host whose true clocks are known (clock_model.h), packet by packet.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/time64.h>

#include <timely/engine/clock.h>

#include "clock_model.h"

#define SEEDS	3

static struct clock_model *model(struct kunit *test)
{
	struct clock_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	return m;
}

/* A model with a sure mapping: 76 000 packets per second, each handled 0 to 100 us after arrival,
 * and a drift of 50 ppm.
 */
static void model_sure(struct kunit *test, struct clock_model *m, u64 seed)
{
	clock_model_init(m, seed, 76000);
	m->drift_ppb = 50000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	clock_model_recount(m);
	KUNIT_ASSERT_EQ(test, m->was_sure, true);
}

static void expect_promises(struct kunit *test, const struct clock_model *m)
{
	u32 i;

	for (i = 0; i < CLOCK_PROMISES; i++)
		KUNIT_EXPECT_EQ_MSG(test, m->broken[i], 0, "%s", clock_promises[i]);
}

/* ---- the verdict on a timestamp ---- */

static struct timely_clock_map sure_map(void)
{
	return (struct timely_clock_map) {
		.nic_ns = 5000000000000ULL,
		.host_ns = 70000000000ULL,
		.drift_q32 = 214748,	/* 50 ppm */
		.sure_ns = NSEC_PER_SEC,
		.below_ns = 300,
		.gate_ns = 120000,
		.spread_ns = 100000,
		.high_ns = 50000,
		.batch_ns = 2000000,
		.uncertainty_ns = 40,
		.growth_ppb = 2000,
		.batch_pairs = 256,
		.epoch = 3,
		.state = TIMELY_CLOCK_SURE,
	};
}

static void judge__mapping_not_sure(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	u64 arrived = 77;

	map.state = TIMELY_CLOCK_NONE;
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, map.nic_ns, map.host_ns, &arrived),
			TIMELY_TSTAMP_UNSURE);
	map.state = TIMELY_CLOCK_LEARNING;
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, map.nic_ns, map.host_ns, &arrived),
			TIMELY_TSTAMP_UNSURE);
	map.state = TIMELY_CLOCK_DOUBT;
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, map.nic_ns, map.host_ns, &arrived),
			TIMELY_TSTAMP_DOUBTFUL);
	KUNIT_EXPECT_EQ(test, arrived, 77);
}

static void judge__maps_by_offset_and_drift(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	u64 arrived;

	/* 10 ms of the NIC's clock are 10 ms and 500 ns of the host's, rounded down in Q32. */
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, map.nic_ns + 10000000,
						 map.host_ns + 10010000, &arrived),
			TIMELY_TSTAMP_GOOD);
	KUNIT_EXPECT_EQ(test, arrived - map.host_ns, 10000499);
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, map.nic_ns - 10000000,
						 map.host_ns - 9990000, &arrived),
			TIMELY_TSTAMP_GOOD);
	KUNIT_EXPECT_EQ(test, map.host_ns - arrived, 10000500);
}

static void judge__gate_and_below(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	u64 nic = map.nic_ns, host = map.host_ns, arrived;

	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, nic, host + 120000, &arrived),
			TIMELY_TSTAMP_GOOD);
	KUNIT_EXPECT_EQ(test, arrived, host);
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, nic, host + 120001, &arrived),
			TIMELY_TSTAMP_DOUBTFUL);
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, nic, host - 301, &arrived),
			TIMELY_TSTAMP_DOUBTFUL);
	/* A packet cannot be handled before it arrived. */
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, nic, host - 300, &arrived),
			TIMELY_TSTAMP_GOOD);
	KUNIT_EXPECT_EQ(test, arrived, host - 300);
	map.unreliable = true;
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, nic, host + 120001, &arrived),
			TIMELY_TSTAMP_UNSURE);
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, nic, host - 301, &arrived),
			TIMELY_TSTAMP_UNSURE);
	map.state = TIMELY_CLOCK_DOUBT;
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, nic, host, &arrived),
			TIMELY_TSTAMP_UNSURE);
}

static void judge__old_mapping(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	u64 arrived;

	map.drift_q32 = 0;
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, map.nic_ns + NSEC_PER_SEC,
						 map.host_ns + NSEC_PER_SEC, &arrived),
			TIMELY_TSTAMP_GOOD);
	KUNIT_EXPECT_EQ(test, timely_clock_judge(&map, map.nic_ns + NSEC_PER_SEC,
						 map.host_ns + NSEC_PER_SEC + 1, &arrived),
			TIMELY_TSTAMP_UNSURE);
}

static void judge__beyond_the_range(struct kunit *test)
{
	static const u64 strange[] = { 0, U64_MAX, 1ULL << 63, (1ULL << 63) - 1, 1ULL << 62 };
	struct timely_clock_map map = sure_map();
	u64 nic = map.nic_ns, host = map.host_ns, arrived;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(strange); i++) {
		KUNIT_EXPECT_TRUE(test, timely_clock_judge(&map, strange[i], host, &arrived) !=
				  TIMELY_TSTAMP_GOOD);
		KUNIT_EXPECT_TRUE(test, timely_clock_judge(&map, nic, strange[i], &arrived) !=
				  TIMELY_TSTAMP_GOOD);
		KUNIT_EXPECT_EQ(test, timely_clock_residual(&map, nic + strange[i], host) ==
				TIMELY_CLOCK_NOWHERE, strange[i] && ~strange[i]);
	}
	KUNIT_EXPECT_EQ(test, timely_clock_residual(&map, nic, host + (1ULL << 63)),
			TIMELY_CLOCK_NOWHERE);
	KUNIT_EXPECT_EQ(test, timely_clock_residual(&map, nic, host + (1ULL << 63) - 1),
			TIMELY_CLOCK_NOWHERE);
	KUNIT_EXPECT_EQ(test, timely_clock_residual(&map, nic + (1ULL << 40) + 1, host),
			TIMELY_CLOCK_NOWHERE);
	KUNIT_EXPECT_TRUE(test, timely_clock_residual(&map, nic + (1ULL << 40), host) !=
			  TIMELY_CLOCK_NOWHERE);
}

static void uncertainty__grows(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	u64 host = map.host_ns;

	KUNIT_EXPECT_EQ(test, timely_clock_uncertainty_ns(&map, host), 40);
	KUNIT_EXPECT_EQ(test, timely_clock_uncertainty_ns(&map, host + 500000000), 1040);
	KUNIT_EXPECT_EQ(test, timely_clock_uncertainty_ns(&map, host + NSEC_PER_SEC), 2040);
	KUNIT_EXPECT_EQ(test, timely_clock_uncertainty_ns(&map, host + NSEC_PER_SEC + 1),
			U32_MAX);
	KUNIT_EXPECT_EQ(test, timely_clock_uncertainty_ns(&map, host - NSEC_PER_SEC), 40);
	map.state = TIMELY_CLOCK_DOUBT;
	KUNIT_EXPECT_EQ(test, timely_clock_uncertainty_ns(&map, host), U32_MAX);
}

/* ---- batches ---- */

/* Add a pair to a batch that was emptied at the mapping's reference point. */
static bool add(struct timely_clock_batch *batch, const struct timely_clock_map *map,
		u64 later_ns, s64 residual_ns)
{
	struct timely_clock_map flat = *map;

	flat.drift_q32 = 0;
	return timely_clock_batch_add(batch, &flat, map->nic_ns + later_ns - residual_ns,
				      map->host_ns + later_ns);
}

static void batch__is_due_when_full(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	struct timely_clock_batch batch = { .since_ns = map.host_ns };
	u32 i;

	for (i = 1; i < 256; i++)
		KUNIT_EXPECT_FALSE(test, add(&batch, &map, i, 10000));
	KUNIT_EXPECT_TRUE(test, add(&batch, &map, i, 10000));
	/* The batch stays due. */
	KUNIT_EXPECT_TRUE(test, add(&batch, &map, i, 10000));
	KUNIT_EXPECT_EQ(test, batch.count, 257);
}

static void batch__is_due_when_old(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	struct timely_clock_batch batch = { .since_ns = map.host_ns };

	KUNIT_EXPECT_FALSE(test, add(&batch, &map, 1999999, 10000));
	KUNIT_EXPECT_TRUE(test, add(&batch, &map, 2000000, 10000));
	/* A pair that was handled before the batch began makes the batch due, too. */
	batch.count = 0;
	KUNIT_EXPECT_TRUE(test, add(&batch, &map, -5ULL, 10000));
}

static void batch__is_due_when_it_contradicts(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	struct timely_clock_batch batch = { .since_ns = map.host_ns };
	u32 i;

	KUNIT_EXPECT_FALSE(test, add(&batch, &map, 1, -300));
	KUNIT_EXPECT_TRUE(test, add(&batch, &map, 2, -301));
	KUNIT_EXPECT_TRUE(test, add(&batch, &map, 3, 10000));
	batch.count = 0;
	for (i = 1; i < TIMELY_CLOCK_HIGH_PAIRS; i++)
		KUNIT_EXPECT_FALSE(test, add(&batch, &map, 3 + i, 50001));
	KUNIT_EXPECT_TRUE(test, add(&batch, &map, 3 + i, 50001));
	KUNIT_EXPECT_FALSE(test, add(&batch, &map, 4 + i, 50000));
}

static void batch__keeps_the_lowest(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	struct timely_clock_batch batch = { .since_ns = map.host_ns };

	add(&batch, &map, 1000, 20000);
	add(&batch, &map, 2000, 10000);
	add(&batch, &map, 3000, 100000);
	add(&batch, &map, 4000, 100001);
	KUNIT_EXPECT_EQ(test, batch.min_ns, 10000);
	KUNIT_EXPECT_EQ(test, batch.host_ns, map.host_ns + 2000);
	KUNIT_EXPECT_EQ(test, batch.nic_ns, map.nic_ns - 8000);
	KUNIT_EXPECT_EQ(test, batch.last_ns, map.host_ns + 4000);
	KUNIT_EXPECT_EQ(test, batch.above, 1);
	KUNIT_EXPECT_EQ(test, batch.count, 4);
}

static void batch__starts_again_with_a_new_mapping(struct kunit *test)
{
	struct timely_clock_map map = sure_map();
	struct timely_clock_batch batch = { .since_ns = map.host_ns };

	add(&batch, &map, 1000, 5000);
	add(&batch, &map, 2000, 200000);
	map.epoch++;
	add(&batch, &map, 3000, 20000);
	KUNIT_EXPECT_EQ(test, batch.count, 1);
	KUNIT_EXPECT_EQ(test, batch.min_ns, 20000);
	KUNIT_EXPECT_EQ(test, batch.above, 0);
}

static void take__empty_or_outdated_batch(struct kunit *test)
{
	struct clock_model *m = model(test);
	struct timely_clock_batch batch = {};
	struct timely_clock_map map;

	model_sure(test, m, 1);
	map = m->clock.map;
	KUNIT_EXPECT_FALSE(test, timely_clock_take(&m->clock, &batch));
	/* A pair that is compared with an invalid mapping is only counted. */
	timely_clock_batch_add(&batch, &map, m->nic_ns, m->now_ns - 50000);
	batch.epoch--;
	KUNIT_EXPECT_FALSE(test, timely_clock_take(&m->clock, &batch));
	KUNIT_EXPECT_EQ(test, batch.count, 0);
	KUNIT_EXPECT_EQ(test, batch.since_ns, m->now_ns - 50000);
	KUNIT_EXPECT_EQ(test, m->clock.map.state, TIMELY_CLOCK_SURE);
}

/* ---- the error of the mapping ---- */

/**
 * struct shape - traffic, and requirements for its mapping
 * @name: name of the case
 * @rate: packets per second
 * @delay: distribution of the host's delays
 * @min_handling_ns: minimum delay
 * @span_ns: maximum or mean delay, depending on @delay
 * @drift_ppb: drift of the NIC's clock
 * @wander_ppb_s: change of the drift per second
 * @cpus: CPUs that handle packets
 * @sure_ms: when the mapping must be sure
 * @warm_ms: when errors start to count
 * @run_ms: duration
 * @p99_ns: limit of the error's 99th percentile
 * @good_permille: least share of good timestamps
 */
struct shape {
	const char *name;
	u32 rate;
	enum clock_model_delay delay;
	u32 min_handling_ns;
	u32 span_ns;
	s64 drift_ppb;
	s64 wander_ppb_s;
	u32 cpus;
	u32 sure_ms;
	u32 warm_ms;
	u32 run_ms;
	u32 p99_ns;
	u32 good_permille;
};

static const struct shape shapes[] = {
	{ "76k uniform", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, 0, 1, 100, 500, 2000, 200, 990 },
	{ "76k slow", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  -500000, 0, 1, 100, 500, 1000, 200, 990 },
	{ "76k fast", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  500000, 0, 1, 100, 500, 1000, 200, 990 },
	{ "76k 8 CPUs", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, 0, 8, 100, 500, 1000, 200, 990 },
	{ "76k exponential", 76000, CLOCK_DELAY_EXPONENTIAL, 2000, 20000,
	  50000, 0, 1, 100, 500, 1000, 100, 970 },
	{ "76k outliers", 76000, CLOCK_DELAY_OUTLIERS, 0, 100000,
	  50000, 0, 1, 100, 500, 1000, 200, 970 },
	{ "76k constant", 76000, CLOCK_DELAY_CONSTANT, 5000, 0,
	  50000, 0, 1, 100, 500, 1000, 8, 1000 },
	{ "76k moderated", 76000, CLOCK_DELAY_MODERATED, 200, 50000,
	  50000, 0, 1, 100, 500, 1000, 100, 980 },
	{ "76k 1 ppm/s", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, 1000, 1, 100, 500, 2000, 200, 990 },
	{ "76k -1 ppm/s", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, -1000, 1, 100, 500, 2000, 200, 990 },
	{ "76k 10 ppm/s", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, 10000, 1, 100, 2500, 2000, 300, 990 },
	{ "76k -10 ppm/s", 76000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, -10000, 1, 100, 2500, 2000, 300, 990 },
	{ "500k uniform", 500000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, 0, 1, 50, 500, 500, 50, 990 },
	{ "10k uniform", 10000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, 0, 1, 200, 2000, 5000, 200, 990 },
	{ "10k exponential", 10000, CLOCK_DELAY_EXPONENTIAL, 2000, 20000,
	  50000, 0, 1, 200, 2000, 5000, 100, 970 },
	{ "1k uniform", 1000, CLOCK_DELAY_UNIFORM, 0, 100000,
	  50000, 0, 1, 5000, 10000, 20000, 1000, 900 },
	{ "1k exponential", 1000, CLOCK_DELAY_EXPONENTIAL, 2000, 20000,
	  50000, 0, 1, 3000, 10000, 20000, 300, 950 },
	{ "100 exponential", 100, CLOCK_DELAY_EXPONENTIAL, 2000, 20000,
	  50000, 0, 1, 30000, 30000, 50000, 1000, 700 },
	{ "100 constant", 100, CLOCK_DELAY_CONSTANT, 5000, 0,
	  50000, 0, 1, 1000, 5000, 20000, 8, 1000 },
};

static void shape_name(const struct shape *shape, char *to)
{
	strscpy(to, shape->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

static void shape__sure_and_right(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct clock_model *m = model(test);
	u64 began_ns;

	clock_model_init(m, 20150817, shape->rate);
	m->delay = shape->delay;
	m->min_handling_ns = shape->min_handling_ns;
	/* The poll takes 200 ns per packet. */
	m->bias_ns = shape->min_handling_ns + (m->delay == CLOCK_DELAY_MODERATED ? 200 : 0);
	m->span_ns = shape->span_ns;
	m->drift_ppb = shape->drift_ppb;
	m->wander_ppb_s = shape->wander_ppb_s;
	m->cpus = shape->cpus;
	began_ns = m->now_ns;
	clock_model_run(m, (u64)shape->sure_ms * NSEC_PER_MSEC);
	KUNIT_EXPECT_GT(test, m->sure_ns, began_ns);
	KUNIT_EXPECT_LE(test, m->wrong * 100, m->good);
	clock_model_run(m, (u64)(shape->warm_ms - shape->sure_ms) * NSEC_PER_MSEC);
	clock_model_recount(m);
	clock_model_run(m, (u64)shape->run_ms * NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, clock_model_error(m, 990), shape->p99_ns);
	KUNIT_EXPECT_GE(test, m->good * 1000, m->total * shape->good_permille);
	if (!shape->wander_ppb_s)
		KUNIT_EXPECT_LE(test, m->beyond * 50, m->good);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	KUNIT_EXPECT_EQ(test, m->clock.restarts, 1);
	expect_promises(test, m);
}

/* Under interrupt moderation a packet waits for span_ns if it is alone, as nearly all ACKs at
 * regular times are, and less if it follows another one. Each mapping is wrong for some of them.
 * RTTs must go on, with driver timestamps.
 */
static void moderated__regular_packets(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 i;

	clock_model_init(m, 3, 76000);
	m->delay = CLOCK_DELAY_MODERATED;
	m->span_ns = 8000;
	m->min_handling_ns = 500;
	for (i = 0; i < 120000; i++) {
		if (i == 40000)
			clock_model_recount(m);
		clock_model_arrive(m, clock_below(m, 400) ? 23000 + clock_below(m, 2000) :
							    1000 + clock_below(m, 8000));
	}
	KUNIT_EXPECT_GT(test, m->clock.steps, 3);
	KUNIT_EXPECT_LE(test, m->doubtful * 50, m->total);
	KUNIT_EXPECT_GT(test, m->unsure * 4, m->total);
	/* A burst of traffic later, the mapping is reliable again. */
	clock_model_run(m, 3ULL * NSEC_PER_SEC);
	clock_model_recount(m);
	clock_model_run(m, NSEC_PER_SEC);
	KUNIT_EXPECT_FALSE(test, m->map.unreliable);
	KUNIT_EXPECT_GE(test, m->good * 100, m->total * 98);
	expect_promises(test, m);
}

static void drift__steps_of_a_servo(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 i;

	model_sure(test, m, 7);
	for (i = 0; i < 10; i++) {
		m->drift_ppb += i & 1 ? -10000 : 10000;
		clock_model_run(m, 300 * NSEC_PER_MSEC);
	}
	KUNIT_EXPECT_LE(test, clock_model_error(m, 990), 800);
	KUNIT_EXPECT_GE(test, m->good * 100, m->total * 99);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
}

static void drift__that_jumps(struct kunit *test)
{
	struct clock_model *m = model(test);

	/* The previously known drift is wrong by 1000 ppm. */
	clock_model_init(m, 9, 76000);
	m->drift_ppb = 500000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	m->drift_ppb = -500000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	KUNIT_EXPECT_TRUE(test, m->was_sure);
	clock_model_recount(m);
	clock_model_run(m, NSEC_PER_SEC / 5);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_GE(test, m->good * 100, m->total * 98);
}

static void drift__change_is_measured(struct kunit *test)
{
	struct clock_model *m = model(test);

	clock_model_init(m, 10, 76000);
	m->wander_ppb_s = 10000;
	clock_model_run(m, 4ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_GT(test, m->clock.wander_ppb_s, 5000);
	KUNIT_EXPECT_LT(test, m->clock.wander_ppb_s, 20000);
	m->wander_ppb_s = 0;
	clock_model_run(m, 10ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_LT(test, m->clock.wander_ppb_s, 2000);
}

static void drift__becomes_known(struct kunit *test)
{
	struct clock_model *m = model(test);

	model_sure(test, m, 8);
	clock_model_run(m, NSEC_PER_SEC);
	/* A NIC that is 50 ppm fast makes its nanoseconds 50 ppm short: 214737. */
	KUNIT_EXPECT_GT(test, m->map.drift_q32, -214737 - 4300);
	KUNIT_EXPECT_LT(test, m->map.drift_q32, -214737 + 4300);
}

/* ---- steps ---- */

static const struct step {
	const char *name;
	s64 nic_ns;
	s64 host_ns;
	/* The largest number of good timestamps that may be wrong by 1 us or more. */
	u32 wrong;
} steps[] = {
	{ "nic +20 us", 20000, 0, 100 },
	{ "nic -20 us", -20000, 0, 450 },
	{ "host +20 us", 0, 20000, 450 },
	{ "host -20 us", 0, -20000, 100 },
	{ "nic +50 us", 50000, 0, 50 },
	{ "nic -50 us", -50000, 0, 400 },
	{ "host +50 us", 0, 50000, 400 },
	{ "host -50 us", 0, -50000, 50 },
	{ "nic +200 us", 200000, 0, 0 },
	{ "nic -200 us", -200000, 0, 0 },
	{ "nic +1 ms", 1000000, 0, 0 },
	{ "nic -1 ms", -1000000, 0, 0 },
	{ "host +1 ms", 0, 1000000, 0 },
	{ "host -1 ms", 0, -1000000, 0 },
	{ "nic +1 s", 1000000000, 0, 0 },
	{ "nic -1 s", -1000000000, 0, 0 },
	{ "host +1 s", 0, 1000000000, 0 },
	{ "host -1 s", 0, -1000000000, 0 },
	{ "nic +1 h", 3600000000000, 0, 0 },
	{ "nic -1 h", -3600000000000, 0, 0 },
	{ "host +1 h", 0, 3600000000000, 0 },
	{ "host -1 h", 0, -3600000000000, 0 },
	{ "nic to 0", -1600000000000000000, 0, 0 },
	{ "both +1 s", 1000000000, 1000000000, 0 },
};

static void step_name(const struct step *step, char *to)
{
	strscpy(to, step->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(step, steps, step_name);

/* Milliseconds until the mapping is not sure any more. */
static u32 lost_after_ms(struct clock_model *m, u32 most_ms)
{
	u32 ms = 0;

	do {
		clock_model_run(m, NSEC_PER_MSEC);
		ms++;
	} while (m->was_sure && ms < most_ms);
	return ms;
}

static void step__is_noticed_and_learnt(struct kunit *test)
{
	const struct step *step = test->param_value;
	struct clock_model *m = model(test);
	u32 restarts, seed, ms;

	for (seed = 0; seed < SEEDS; seed++) {
		model_sure(test, m, 1000 + seed);
		restarts = m->clock.restarts;
		clock_model_deliver(m, U64_MAX);
		m->nic_ns += step->nic_ns;
		m->host_offset_ns += step->host_ns;
		ms = lost_after_ms(m, 10);
		KUNIT_EXPECT_FALSE(test, m->was_sure);
		clock_model_run(m, (100 - ms) * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		KUNIT_EXPECT_LE(test, m->wrong, step->wrong);
		KUNIT_EXPECT_GT(test, m->clock.restarts, restarts);
		clock_model_run(m, 100 * NSEC_PER_MSEC);
		clock_model_recount(m);
		clock_model_run(m, 200 * NSEC_PER_MSEC);
		KUNIT_EXPECT_LE(test, clock_model_error(m, 990), 400);
		KUNIT_EXPECT_GE(test, m->good * 100, m->total * 99);
	}
	expect_promises(test, m);
}

static void step__the_nic_restarts_at(struct kunit *test)
{
	static const u64 values[] = {
		0, 1, 1ULL << 32, 1ULL << 40, 1ULL << 62, (1ULL << 63) - 50000000,
		(1ULL << 63) + 5, U64_MAX - 150000000, U64_MAX
	};
	struct clock_model *m = model(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		model_sure(test, m, 2000 + i);
		clock_model_deliver(m, U64_MAX);
		m->nic_ns = values[i];
		KUNIT_EXPECT_LT(test, lost_after_ms(m, 10), 10);
		clock_model_run(m, 100 * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		KUNIT_EXPECT_EQ(test, m->wrong, 0);
		/* Some of the values make the NIC's time wrap in this run. */
		clock_model_run(m, 200 * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		KUNIT_EXPECT_EQ(test, m->wrong, 0);
	}
	expect_promises(test, m);
}

static void step__while_learning(struct kunit *test)
{
	static const s64 values[] = {
		-20000, 20000, -1000000, 1000000, -1000000000, 1000000000, -3600000000000
	};
	struct clock_model *m = model(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		clock_model_init(m, 3000 + i, 76000);
		clock_model_run(m, 8 * NSEC_PER_MSEC);
		KUNIT_EXPECT_FALSE(test, m->was_sure);
		m->nic_ns += values[i];
		clock_model_run(m, 150 * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		/* A step that is smaller than the spread is detected after some time only. */
		KUNIT_EXPECT_LE(test, m->wrong, i < 2 ? 1000 : 0);
	}
}

/* Add a batch whose lowest pair has this height above the mapping. */
static void take_at(struct clock_model *m, s64 height_ns, u32 pairs)
{
	struct timely_clock_batch batch = {
		.count = pairs,
		.epoch = m->clock.map.epoch,
	};

	clock_model_advance(m, NSEC_PER_MSEC);
	batch.nic_ns = m->nic_ns;
	batch.host_ns = m->now_ns + height_ns;
	batch.last_ns = batch.host_ns;
	timely_clock_take(&m->clock, &batch);
}

/* The height of a pair from before the step says nothing about the host's delays. */
static void step__within_a_batch(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 i;

	model_sure(test, m, 5);
	clock_model_deliver(m, U64_MAX);
	take_at(m, 30000, 256);
	KUNIT_EXPECT_EQ(test, m->clock.map.state, TIMELY_CLOCK_DOUBT);
	for (i = 0; i < 20; i++) {
		take_at(m, 1000000 + 100 * i, 64);
		KUNIT_EXPECT_EQ(test, m->clock.map.state, TIMELY_CLOCK_DOUBT);
	}
	for (i = 0; i < 30; i++)
		take_at(m, 1000000 + 100 * i, 64);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 1);
	KUNIT_EXPECT_EQ(test, m->clock.doubts, 0);
}

/* A few blocks may fit a mapping by chance, so the mapping becomes sure only after some time. */
static void sure__when_the_density_is_known(struct kunit *test)
{
	struct clock_model *m = model(test);

	clock_model_init(m, 5, 76000);
	m->span_ns = 5000;
	clock_model_run(m, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_FALSE(test, m->was_sure);
	clock_model_run(m, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, m->was_sure);
}

/* ---- hosts that handle packets late, and times without packets ---- */

static void hiccup__keeps_the_mapping(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 i;

	model_sure(test, m, 4);
	for (i = 0; i < 5; i++) {
		m->late_ns = 5000000;
		clock_model_run(m, 20 * NSEC_PER_MSEC);
		/* No timestamp of a late packet is used. */
		KUNIT_EXPECT_EQ(test, m->map.state, TIMELY_CLOCK_DOUBT);
		m->late_ns = 0;
		clock_model_run(m, 15 * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		clock_model_run(m, 80 * NSEC_PER_MSEC);
	}
	KUNIT_EXPECT_EQ(test, m->unsure, 0);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_GE(test, m->clock.doubts, 5);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	KUNIT_EXPECT_EQ(test, m->clock.restarts, 1);
	KUNIT_EXPECT_LE(test, clock_model_error(m, 990), 200);
	KUNIT_EXPECT_GE(test, m->good * 100, m->total * 70);
}

static void hiccup__of_a_single_packet(struct kunit *test)
{
	struct clock_model *m = model(test);
	u64 nic;

	model_sure(test, m, 5);
	nic = m->nic_ns;
	/* No other packet arrives, so the batch has only the late packet. */
	clock_model_pause(m, 5 * NSEC_PER_MSEC);
	m->batches[0].count = 0;
	m->clock.run_pairs = 0;
	clock_model_handle(m, nic, m->now_ns, m->now_ns);
	KUNIT_EXPECT_EQ(test, m->map.state, TIMELY_CLOCK_SURE);
	KUNIT_EXPECT_EQ(test, m->doubtful, 1);
}

static void hiccup__with_a_wrong_timestamp(struct kunit *test)
{
	struct clock_model *m = model(test);

	model_sure(test, m, 6);
	m->late_ns = 5000000;
	clock_model_run(m, 15 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, m->map.state, TIMELY_CLOCK_DOUBT);
	clock_model_handle(m, 0, m->now_ns, m->now_ns);
	KUNIT_EXPECT_EQ(test, m->map.state, TIMELY_CLOCK_DOUBT);
	m->late_ns = 0;
	clock_model_run(m, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, m->was_sure);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
}

static void hiccup__and_host_clock_set_back(struct kunit *test)
{
	struct clock_model *m = model(test);

	model_sure(test, m, 7);
	m->late_ns = 5000000;
	clock_model_run(m, 15 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, m->map.state, TIMELY_CLOCK_DOUBT);
	m->late_ns = 0;
	m->host_offset_ns -= NSEC_PER_SEC;
	clock_model_run(m, 120 * NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, m->was_sure);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
}

static void hiccup__that_lasts_becomes_a_step(struct kunit *test)
{
	struct clock_model *m = model(test);

	model_sure(test, m, 5);
	m->late_ns = 5000000;
	clock_model_run(m, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 1);
	m->late_ns = 0;
	clock_model_run(m, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, m->was_sure);
	clock_model_recount(m);
	clock_model_run(m, 200 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_LE(test, clock_model_error(m, 990), 400);
}

static void ack_agg__rises_and_falls(struct kunit *test)
{
	struct clock_model *m = model(test);

	clock_model_init(m, 6, 76000);
	m->span_ns = 5000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	clock_model_recount(m);
	m->span_ns = 200000;
	clock_model_run(m, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, m->was_sure);
	KUNIT_EXPECT_GE(test, m->good * 100, m->total * 60);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_GE(test, m->map.gate_ns, 190000);
	m->span_ns = 5000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	KUNIT_EXPECT_LE(test, m->map.gate_ns, 12000);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
}

/* The error of a mapping from many pairs grows when pairs become rare. */
static void rate__that_falls(struct kunit *test)
{
	struct clock_model *m = model(test);
	u64 good = 0, beyond = 0;
	u32 i;

	for (i = 0; i < 40; i++) {
		clock_model_init(m, 80 + i, 30000);
		m->span_ns = 30000;
		m->drift_ppb = 50000;
		clock_model_run(m, 60 * NSEC_PER_MSEC);
		clock_model_recount(m);
		m->rate = 3000;
		clock_model_run(m, 200 * NSEC_PER_MSEC);
		KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
		good += m->good;
		beyond += m->beyond;
	}
	KUNIT_EXPECT_GE(test, good, 20000);
	KUNIT_EXPECT_LE(test, beyond * 100, good * 5);
}

/* Rare packets for seconds, so that all blocks are in use, then a high rate. */
static void rate__that_rises_from_almost_zero(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 seed;

	for (seed = 1; seed <= 4 * SEEDS; seed++) {
		clock_model_init(m, seed, 76000);
		m->drift_ppb = 50000;
		m->span_ns = 50000;
		clock_model_run(m, 30 * NSEC_PER_MSEC);
		m->rate = 25;
		clock_model_run(m, 5ULL * NSEC_PER_SEC);
		clock_model_recount(m);
		m->rate = 76000;
		clock_model_run(m, 60 * NSEC_PER_MSEC);
		KUNIT_EXPECT_EQ(test, m->wrong, 0);
	}
}

static void pause__of_a_tenth_of_a_second(struct kunit *test)
{
	struct clock_model *m = model(test);

	model_sure(test, m, 9);
	clock_model_pause(m, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GT(test, timely_clock_uncertainty_ns(&m->map, m->now_ns),
			m->map.uncertainty_ns + 190);
	clock_model_run(m, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, m->unsure, 0);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
}

static void pause__of_a_second_and_more(struct kunit *test)
{
	static const u32 seconds[] = { 1, 10, 60, 3600, 86400 };
	struct clock_model *m = model(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(seconds); i++) {
		model_sure(test, m, 10 + i);
		/* Temperature: 5 ppm an hour. */
		m->wander_ppb_s = seconds[i] <= 3600 ? 2 : 0;
		clock_model_pause(m, seconds[i] * (u64)NSEC_PER_SEC);
		m->wander_ppb_s = 0;
		KUNIT_EXPECT_EQ(test, timely_clock_uncertainty_ns(&m->map, m->now_ns), U32_MAX);
		m->sure_ns = 0;
		clock_model_run(m, 100 * NSEC_PER_MSEC);
		KUNIT_EXPECT_GT(test, m->unsure, 0);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		KUNIT_EXPECT_EQ(test, m->wrong, 0);
		KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	}
}

/* ---- forget ---- */

static void forget__until_seen_again(struct kunit *test)
{
	struct clock_model *m = model(test);
	u64 began_ns;
	u16 epoch;

	model_sure(test, m, 20);
	epoch = m->map.epoch;
	m->delay = CLOCK_DELAY_EXPONENTIAL;
	m->span_ns = 20000;
	timely_clock_forget(&m->clock);
	m->map = m->clock.map;
	/* Pairs in batches are invalid now, and again with the new mapping. */
	KUNIT_EXPECT_EQ(test, m->map.epoch, (u16)(epoch + 1));
	/* A suspended host. */
	m->host_offset_ns -= 1000000000;
	began_ns = m->now_ns + m->host_offset_ns;
	clock_model_run(m, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GT(test, m->unsure, 0);
	KUNIT_EXPECT_TRUE(test, m->was_sure);
	KUNIT_EXPECT_LT(test, m->sure_ns - began_ns, 50 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	KUNIT_EXPECT_EQ(test, m->clock.restarts, 2);
	KUNIT_EXPECT_EQ(test, m->map.epoch, (u16)(epoch + 2));
}

/* ---- cross-timestamps ---- */

static void cross_timestamp__shows_the_minimum_delay(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 i;

	clock_model_init(m, 30, 76000);
	m->drift_ppb = 50000;
	m->min_handling_ns = 3000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	KUNIT_EXPECT_GE(test, clock_model_error(m, 10), 2000);
	for (i = 0; i < 10; i++) {
		clock_model_cross_timestamp(m, 1000);
		clock_model_run(m, 20 * NSEC_PER_MSEC);
	}
	KUNIT_EXPECT_LE(test, m->clock.min_handling_ns, 4000);
	KUNIT_EXPECT_GE(test, m->clock.min_handling_ns, 2000);
	KUNIT_EXPECT_EQ(test, m->clock.cross_timestamps, 10);
	clock_model_recount(m);
	clock_model_run(m, NSEC_PER_SEC / 2);
	KUNIT_EXPECT_LE(test, clock_model_error(m, 990), 1000);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	KUNIT_EXPECT_EQ(test, m->clock.restarts, 1);
	expect_promises(test, m);
}

static void cross_timestamp__after_the_minimum_delay_falls(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 i;

	clock_model_init(m, 31, 76000);
	m->min_handling_ns = 50000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	for (i = 0; i < 10; i++) {
		clock_model_cross_timestamp(m, 500);
		clock_model_run(m, 20 * NSEC_PER_MSEC);
	}
	clock_model_recount(m);
	/* Interrupt moderation is turned off: pairs are lower than ever, but above the mapping. */
	m->min_handling_ns = 2000;
	clock_model_run(m, NSEC_PER_SEC / 2);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_LE(test, m->clock.min_handling_ns, 3000);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
}

/* As nic_clock.c does, read the NIC's clock every 20 ms, and at once if the mapping is not sure. */
static void run_with_cross_timestamps(struct clock_model *m, u32 ms)
{
	u32 i;

	for (i = 0; i < ms; i++) {
		clock_model_run(m, NSEC_PER_MSEC);
		if (m->map.state != TIMELY_CLOCK_SURE || i % 20 == 0)
			clock_model_cross_timestamp(m, 600);
	}
}

static void cross_timestamp__after_the_minimum_delay_rises(struct kunit *test)
{
	struct clock_model *m = model(test);

	clock_model_init(m, 34, 76000);
	m->min_handling_ns = 500;
	m->span_ns = 200;
	run_with_cross_timestamps(m, 500);
	/* Interrupt moderation is turned on. */
	m->min_handling_ns = 8500;
	run_with_cross_timestamps(m, 200);
	clock_model_recount(m);
	run_with_cross_timestamps(m, 500);
	KUNIT_EXPECT_GE(test, m->good * 100, m->total * 96);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	expect_promises(test, m);
}

static void cross_timestamp__ends_a_doubt(struct kunit *test)
{
	struct clock_model *m = model(test);

	model_sure(test, m, 32);
	m->late_ns = 5000000;
	clock_model_run(m, 10 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, m->map.state, TIMELY_CLOCK_DOUBT);
	clock_model_cross_timestamp(m, 1000);
	KUNIT_EXPECT_EQ(test, m->map.state, TIMELY_CLOCK_SURE);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	KUNIT_EXPECT_EQ(test, m->clock.doubts, 1);
}

/* One in a hundred errors is larger than the uncertainty. So a difference of up to twice the
 * uncertainty is not a step.
 */
static void cross_timestamp__within_twice_the_uncertainty(struct kunit *test)
{
	struct clock_model *m = model(test);
	u64 before;
	s64 low;

	model_sure(test, m, 32);
	low = 2 * timely_clock_uncertainty_ns(&m->map, m->now_ns);
	before = m->now_ns - timely_clock_residual(&m->map, m->nic_ns, m->now_ns);
	KUNIT_EXPECT_TRUE(test, timely_clock_cross_timestamp(&m->clock, before + low, m->nic_ns,
							     before + low + 200));
	KUNIT_EXPECT_EQ(test, m->clock.map.state, TIMELY_CLOCK_SURE);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	/* The mapping goes through the cross-timestamp. */
	low = timely_clock_residual(&m->clock.map, m->nic_ns, before + low);
	KUNIT_EXPECT_LE(test, low, 0);
	KUNIT_EXPECT_GE(test, low, -200);
	model_sure(test, m, 32);
	low = 2 * timely_clock_uncertainty_ns(&m->map, m->now_ns) + 300;
	KUNIT_EXPECT_TRUE(test, timely_clock_cross_timestamp(&m->clock, before + low, m->nic_ns,
							     before + low + 200));
	KUNIT_EXPECT_EQ(test, m->clock.steps, 1);
}

static void cross_timestamp__detects_a_step(struct kunit *test)
{
	static const s64 values[] = {
		5000, -200000, 200000, -1000000000, 1000000000, -1600000000000000000
	};
	struct clock_model *m = model(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		model_sure(test, m, 33 + i);
		clock_model_deliver(m, U64_MAX);
		m->nic_ns -= values[i];
		clock_model_cross_timestamp(m, 600);
		KUNIT_EXPECT_EQ(test, m->clock.steps, 1);
		/* This may be a step or a change of the drift. */
		KUNIT_EXPECT_FALSE(test, clock_model_sure(m, m->now_ns));
		clock_model_run(m, 20 * NSEC_PER_MSEC);
		clock_model_cross_timestamp(m, 600);
		KUNIT_EXPECT_TRUE(test, clock_model_sure(m, m->now_ns));
		clock_model_recount(m);
		clock_model_run(m, 200 * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		KUNIT_EXPECT_EQ(test, m->wrong, 0);
		KUNIT_EXPECT_EQ(test, m->unsure, 0);
		KUNIT_EXPECT_LE(test, clock_model_error(m, 990), 700);
		KUNIT_EXPECT_EQ(test, m->clock.steps, 1);
	}
	expect_promises(test, m);
}

/* A small step may be taken for delays, but not for drift. */
static void cross_timestamp__small_step_is_not_drift(struct kunit *test)
{
	static const s64 values[] = { 5000, 20000, 50000, 90000 };
	struct clock_model *m = model(test);
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		model_sure(test, m, 33 + i);
		for (j = 0; j < 3; j++) {
			clock_model_cross_timestamp(m, 600);
			clock_model_run(m, 100 * NSEC_PER_MSEC);
		}
		clock_model_deliver(m, U64_MAX);
		m->nic_ns += values[i];
		clock_model_cross_timestamp(m, 600);
		clock_model_recount(m);
		for (j = 0; j < 3; j++) {
			clock_model_run(m, 20 * NSEC_PER_MSEC);
			clock_model_cross_timestamp(m, 600);
		}
		KUNIT_EXPECT_EQ(test, m->wrong, 0);
		KUNIT_EXPECT_LE(test, clock_model_error(m, 990), 1000);
	}
}

static void cross_timestamp__unusable(struct kunit *test)
{
	struct clock_model *m = model(test);
	struct timely_clock *clock;
	u64 nic, now;

	clock_model_init(m, 40, 76000);
	clock = &m->clock;
	KUNIT_EXPECT_FALSE(test, timely_clock_cross_timestamp(clock, 1000, 5000, 2000));
	KUNIT_EXPECT_EQ(test, clock->map.state, TIMELY_CLOCK_NONE);
	clock_model_run(m, 2 * NSEC_PER_MSEC);
	/* The drift is not known. */
	KUNIT_EXPECT_FALSE(test, timely_clock_cross_timestamp(clock, m->now_ns, m->nic_ns,
							      m->now_ns));
	model_sure(test, m, 40);
	nic = m->nic_ns;
	now = m->now_ns;
	KUNIT_EXPECT_FALSE(test, timely_clock_cross_timestamp(clock, now, nic, now - 1));
	KUNIT_EXPECT_FALSE(test, timely_clock_cross_timestamp(clock, now - 50001, nic,
							      now + 50000));
	KUNIT_EXPECT_FALSE(test, timely_clock_cross_timestamp(clock, 0, nic, U64_MAX));
	KUNIT_EXPECT_EQ(test, clock->cross_timestamps, 0);
	/* A cross-timestamp of 100 us, the longest usable one, that agrees: nothing changes. */
	KUNIT_EXPECT_FALSE(test, timely_clock_cross_timestamp(clock, now - 50000, nic,
							      now + 50000));
	KUNIT_EXPECT_EQ(test, clock->cross_timestamps, 1);
	KUNIT_EXPECT_EQ(test, clock->map.state, TIMELY_CLOCK_SURE);
}

/* ---- hostile timestamps ---- */

static void stray__is_not_a_step(struct kunit *test)
{
	static const u64 strays[] = {
		0, 1, U64_MAX, 1ULL << 63, 1600000000000000000ULL, 1600000000400000000ULL
	};
	struct clock_model *m = model(test);
	u32 i;

	model_sure(test, m, 50);
	for (i = 0; i < ARRAY_SIZE(strays); i++) {
		clock_model_handle(m, strays[i], m->now_ns, m->now_ns);
		clock_model_run(m, 20 * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
	}
	/* Wrong times of the host, too. */
	for (i = 0; i < 3; i++) {
		clock_model_handle(m, m->nic_ns, strays[i], strays[i]);
		clock_model_run(m, 100 * NSEC_PER_MSEC);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
	}
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
	expect_promises(test, m);
}

static void stray__one_in_a_thousand(struct kunit *test)
{
	struct clock_model *m = model(test);
	u32 i;

	model_sure(test, m, 51);
	for (i = 0; i < 40; i++) {
		clock_model_run(m, 13 * NSEC_PER_MSEC);
		clock_model_handle(m, clock_roll(m), m->now_ns, m->now_ns);
	}
	clock_model_run(m, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, m->good * 100, m->total * 75);
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_EQ(test, m->clock.steps, 0);
}

static void hostile__random_timestamps(struct kunit *test)
{
	struct clock_model *m = model(test);
	u64 nic, host;
	u32 i, j;

	for (j = 0; j < 8; j++) {
		model_sure(test, m, 60 + j);
		for (i = 0; i < 20000; i++) {
			nic = j & 1 ? clock_roll(m) : m->nic_ns;
			nic += j & 2 ? clock_roll(m) >> clock_below(m, 64) : 0;
			host = j & 4 ? clock_roll(m) : m->now_ns + i * 1000;
			clock_model_handle(m, nic, host, host);
		}
		clock_model_pause(m, 20000 * 1000);
		clock_model_run(m, NSEC_PER_SEC / 2);
		KUNIT_EXPECT_TRUE(test, m->was_sure);
		clock_model_recount(m);
		clock_model_run(m, NSEC_PER_SEC / 5);
		KUNIT_EXPECT_EQ(test, m->wrong, 0);
		KUNIT_EXPECT_GE(test, m->good * 100, m->total * 95);
	}
	expect_promises(test, m);
}

static void hostile__time_stands_still(struct kunit *test)
{
	struct clock_model *m = model(test);
	u64 nic, now;
	u32 i;

	clock_model_init(m, 70, 76000);
	nic = m->nic_ns;
	now = m->now_ns;
	for (i = 0; i < 100000; i++)
		clock_model_handle(m, nic, now + i * 1000, 0);
	KUNIT_EXPECT_EQ(test, m->good, 0);
	for (i = 0; i < 100000; i++)
		clock_model_handle(m, nic + i * 1000, now, 0);
	for (i = 0; i < 100000; i++)
		clock_model_handle(m, nic, now, 0);
	for (i = 0; i < 100000; i++)
		clock_model_handle(m, nic - i * 1000, now - i * 1000, 0);
	expect_promises(test, m);
}

static struct kunit_case clock_cases[] = {
	KUNIT_CASE(judge__mapping_not_sure),
	KUNIT_CASE(judge__maps_by_offset_and_drift),
	KUNIT_CASE(judge__gate_and_below),
	KUNIT_CASE(judge__old_mapping),
	KUNIT_CASE(judge__beyond_the_range),
	KUNIT_CASE(uncertainty__grows),
	KUNIT_CASE(batch__is_due_when_full),
	KUNIT_CASE(batch__is_due_when_old),
	KUNIT_CASE(batch__is_due_when_it_contradicts),
	KUNIT_CASE(batch__keeps_the_lowest),
	KUNIT_CASE(batch__starts_again_with_a_new_mapping),
	KUNIT_CASE(take__empty_or_outdated_batch),
	KUNIT_CASE_PARAM(shape__sure_and_right, shape_gen_params),
	KUNIT_CASE(moderated__regular_packets),
	KUNIT_CASE(drift__steps_of_a_servo),
	KUNIT_CASE(drift__that_jumps),
	KUNIT_CASE(drift__change_is_measured),
	KUNIT_CASE(drift__becomes_known),
	KUNIT_CASE_PARAM(step__is_noticed_and_learnt, step_gen_params),
	KUNIT_CASE(step__the_nic_restarts_at),
	KUNIT_CASE(step__while_learning),
	KUNIT_CASE(step__within_a_batch),
	KUNIT_CASE(sure__when_the_density_is_known),
	KUNIT_CASE(hiccup__keeps_the_mapping),
	KUNIT_CASE(hiccup__of_a_single_packet),
	KUNIT_CASE(hiccup__with_a_wrong_timestamp),
	KUNIT_CASE(hiccup__and_host_clock_set_back),
	KUNIT_CASE(hiccup__that_lasts_becomes_a_step),
	KUNIT_CASE(ack_agg__rises_and_falls),
	KUNIT_CASE(rate__that_falls),
	KUNIT_CASE(rate__that_rises_from_almost_zero),
	KUNIT_CASE(pause__of_a_tenth_of_a_second),
	KUNIT_CASE(pause__of_a_second_and_more),
	KUNIT_CASE(forget__until_seen_again),
	KUNIT_CASE(cross_timestamp__shows_the_minimum_delay),
	KUNIT_CASE(cross_timestamp__after_the_minimum_delay_falls),
	KUNIT_CASE(cross_timestamp__after_the_minimum_delay_rises),
	KUNIT_CASE(cross_timestamp__ends_a_doubt),
	KUNIT_CASE(cross_timestamp__within_twice_the_uncertainty),
	KUNIT_CASE(cross_timestamp__detects_a_step),
	KUNIT_CASE(cross_timestamp__small_step_is_not_drift),
	KUNIT_CASE(cross_timestamp__unusable),
	KUNIT_CASE(stray__is_not_a_step),
	KUNIT_CASE(stray__one_in_a_thousand),
	KUNIT_CASE(hostile__random_timestamps),
	KUNIT_CASE(hostile__time_stands_still),
	{}
};

static struct kunit_suite clock_suite = {
	.name = "timely_clock",
	.test_cases = clock_cases,
};

kunit_test_suite(clock_suite);
