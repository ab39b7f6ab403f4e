// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of the RTT measurement engine, then ACKs with implausible timestamps: alone
 * (../rtt_model.h), and through the whole chain of timestamps: hostile or plausible clock, clock.c,
 * rtt.c, rate.c. For any input, RTTs must be from 0 to ten seconds and rates within their limits.
 * Built with ASan and UBSan.
 *
 *   rtt_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS flows with STEPS ACKs each; the whole chain gets 16 times as many. Prints TAP. Built
 * with -DTIMELY_LIBFUZZER, the random numbers are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/limits.h>

#include <timely/engine/clock.h>
#include <timely/engine/rtt.h>
#include <timely/engine/tune.h>

#include "../rtt_model.h"

#define STEPS	2048

enum chain_promise {
	CHAIN_ARRIVED, CHAIN_USED, CHAIN_UNUSED, CHAIN_PROMISES
};

static const char * const chain_promises[CHAIN_PROMISES] = {
	[CHAIN_ARRIVED] = "a good timestamp is never later than now",
	[CHAIN_USED] = "an RTT ends at a good timestamp",
	[CHAIN_UNUSED] = "no RTT ends at a doubtful or unsure timestamp",
};

static struct rtt_model model;

/* A NIC, its clock as the engine sees it, and how wrong the two clocks are. */
static struct {
	struct timely_clock clock;
	struct timely_clock_batch batch;
	u64 nic_ns;
	u32 madness;	/* of 1024 ACKs, how many have a random timestamp */
	u64 kept[CHAIN_PROMISES];
	u64 broken[CHAIN_PROMISES];
} chain;

static void chain_promised(enum chain_promise promise, bool kept)
{
	chain.kept[promise]++;
	chain.broken[promise] += !kept;
}

static struct timely_params random_params(void)
{
	struct rtt_dice *dice = &model.dice;
	struct timely_params p = timely_presets[rtt_below(dice, timely_preset_count)].params;
	u32 i, n = rtt_below(dice, 6);

	timely_tune(&p, &(struct timely_path){});
	while (n--) {
		const struct timely_param_desc *desc;

		i = rtt_below(dice, TIMELY_P_COUNT);
		desc = &timely_param_descs[i];
		*timely_param_ref(&p, i) = (u32)clamp(rtt_any(dice), (u64)desc->min,
						      (u64)desc->max);
	}
	p.t_low_ns = min(p.t_low_ns, p.t_high_ns);
	p.min_rate_kbps = min(p.min_rate_kbps, p.max_rate_kbps);
	return p;
}

static void chain_init(void)
{
	static const u32 madness[] = { 0, 1, 16, 256, 1024 };

	timely_clock_init(&chain.clock);
	memset(&chain.batch, 0, sizeof(chain.batch));
	chain.nic_ns = rtt_any(&model.dice);
	chain.madness = madness[rtt_below(&model.dice, ARRAY_SIZE(madness))];
}

/* Time passes; the NIC's clock deviates by up to 500 ppm. Either clock may be set to any time. */
static void chain_time(void)
{
	struct rtt_dice *dice = &model.dice;
	u64 passed_ns = rtt_below(dice, 64) ? rtt_below(dice, 20000) :
			rtt_any(dice) >> rtt_below(dice, 64);

	model.now_ns += passed_ns;
	chain.nic_ns += passed_ns + passed_ns / 20000;
	if (rtt_below(dice, 1 << 16) < chain.madness)
		chain.nic_ns = rtt_time(dice, chain.nic_ns);
	if (rtt_below(dice, 1 << 18) < chain.madness)
		model.now_ns = rtt_time(dice, model.now_ns);
}

/* Now and then make a timestamp wrong, take a random cross-timestamp, or forget the mapping. */
static void chain_others(u64 *nic_ns, u64 *host_ns)
{
	struct rtt_dice *dice = &model.dice;

	if (rtt_below(dice, 1024) < chain.madness)
		*nic_ns = rtt_time(dice, *nic_ns);
	if (rtt_below(dice, 1024) < chain.madness / 4)
		*host_ns = rtt_time(dice, *host_ns);
	if (!rtt_below(dice, 200))
		timely_clock_cross_timestamp(&chain.clock, rtt_time(dice, model.now_ns),
					     rtt_time(dice, chain.nic_ns),
					     rtt_time(dice, model.now_ns));
	if (!rtt_below(dice, 50000))
		timely_clock_forget(&chain.clock);
}

/* An ACK through the whole chain, as in tcp_timely.c and nic_clock.c. */
static void chain_step(void)
{
	enum timely_clock_verdict verdict;
	u64 nic_ns, host_ns, arrived_ns = 0;
	struct timely_clock_map map;

	chain_time();
	nic_ns = chain.nic_ns;
	host_ns = model.now_ns + rtt_below(&model.dice, 100000);
	chain_others(&nic_ns, &host_ns);
	map = chain.clock.map;
	verdict = timely_clock_judge(&map, nic_ns, host_ns, &arrived_ns);
	if (timely_clock_batch_add(&chain.batch, &map, nic_ns, host_ns) &&
	    rtt_below(&model.dice, 8))
		timely_clock_take(&chain.clock, &chain.batch);
	timely_clock_uncertainty_ns(&map, host_ns);

	model.ack = rtt_random_ack(&model);
	model.ack.now_ns = host_ns;
	model.ack.sent_ns = host_ns - rtt_below(&model.dice, 1000000);
	model.ack.scheduled_ns = rtt_time(&model.dice, model.ack.sent_ns);
	model.ack.source = TIMELY_RTT_driver;
	model.ack.arrived_ns = rtt_time(&model.dice, host_ns);
	if (verdict == TIMELY_TSTAMP_GOOD) {
		chain_promised(CHAIN_ARRIVED, arrived_ns <= host_ns);
		model.ack.source = TIMELY_RTT_hardware;
		model.ack.arrived_ns = arrived_ns;
	} else if (verdict == TIMELY_TSTAMP_DOUBTFUL) {
		model.ack.source = TIMELY_RTT_doubtful;
		model.ack.arrived_ns = 0;
	}
	rtt_model_measure(&model);
	if (verdict == TIMELY_TSTAMP_GOOD && model.result <= TIMELY_RTT_tcp)
		chain_promised(CHAIN_USED, model.result == TIMELY_RTT_hardware || !arrived_ns);
	if (verdict != TIMELY_TSTAMP_GOOD)
		chain_promised(CHAIN_UNUSED, model.result != TIMELY_RTT_hardware);
}

static void one_round(u32 steps)
{
	struct timely_params params = random_params();
	bool whole = rtt_below(&model.dice, 2);

	rtt_model_init(&model, &params);
	chain_init();
	/* A clock needs some time to become sure. */
	if (whole && !model.dice.input)
		steps *= 16;
	while (steps--) {
		if (whole)
			chain_step();
		else
			rtt_model_step(&model);
	}
}

#ifdef TIMELY_LIBFUZZER
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 i;

	model.dice.input = data;
	model.dice.left = size;
	one_round((u32)(size / 32) + 1);
	for (i = 0; i < RTT_PROMISES + CHAIN_PROMISES; i++) {
		if (!(i < RTT_PROMISES ? model.broken[i] : chain.broken[i - RTT_PROMISES]))
			continue;
		printf("# broken: %s\n", i < RTT_PROMISES ? rtt_promises[i] :
		       chain_promises[i - RTT_PROMISES]);
		abort();
	}
	return 0;
}
#else
static bool report(u32 *number, const char *promise, u64 kept, u64 broken)
{
	/* A promise that was never tested counts as broken. */
	bool good = kept && !broken;

	printf("%sok %u - random: %s # %llu times, broken %llu times\n", good ? "" : "not ",
	       ++*number, promise, kept, broken);
	return good;
}

int main(int argc, char **argv)
{
	u32 rounds = argc > 1 ? (u32)strtoul(argv[1], NULL, 0) : 4000;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20150817;
	u32 number = 0, i;
	bool good;

	/* Output must be visible when a sanitizer ends the program. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	good = kunit_run(&number);

	printf("# %u flows, %u ACKs each or 16 times that, seed %llu\n", rounds, STEPS, seed);
	model.dice.state = seed | 1ULL << 63;
	for (i = 0; i < rounds; i++)
		one_round(STEPS);
	for (i = 0; i < RTT_PROMISES; i++)
		good &= report(&number, rtt_promises[i], model.kept[i], model.broken[i]);
	for (i = 0; i < CHAIN_PROMISES; i++)
		good &= report(&number, chain_promises[i], chain.kept[i], chain.broken[i]);
	printf("1..%u\n", number);
	return good ? 0 : 1;
}
#endif
