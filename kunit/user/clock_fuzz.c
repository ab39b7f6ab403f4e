// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of the clock engine, then random traffic, steps, pauses, cross-timestamps
 * and hostile timestamps, compared with the model of ../clock_model.h. The engine must keep its
 * promises for any input. Built with ASan and UBSan.
 *
 *   clock_fuzz [ROUNDS [SEED]]
 *
 * Prints TAP. Built with -DTIMELY_LIBFUZZER, the random numbers are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/time64.h>

#include <timely/engine/clock.h>

#include "../clock_model.h"

#define STEPS	24

static struct clock_model model;

/* Any number: small, large, or near a limit. */
static u64 random_number(void)
{
	static const u64 edges[] = {
		0, 1ULL << 27, 1ULL << 32, 1ULL << 40, 1ULL << 62, 1ULL << 63
	};

	if (clock_below(&model, 3) == 0)
		return edges[clock_below(&model, ARRAY_SIZE(edges))] + clock_below(&model, 5) - 2;
	return clock_roll(&model) >> clock_below(&model, 64);
}

/* Timestamps that are unrelated or nearly so. */
static void hostile(void)
{
	u32 kind = clock_below(&model, 8), count = 1 << clock_below(&model, 10), i;
	u64 nic = model.nic_ns, host = model.now_ns + model.host_offset_ns;

	for (i = 0; i < count; i++) {
		if (kind & 1)
			nic = random_number();
		else
			nic += random_number() >> 20;
		if (kind & 2)
			host = random_number();
		else
			host += 1 + (random_number() >> 40);
		if (kind & 4)
			nic = host + 12345;
		clock_model_handle(&model, nic, host, host);
	}
}

static void cross_timestamps(void)
{
	u64 now = model.now_ns + model.host_offset_ns;

	switch (clock_below(&model, 4)) {
	case 0:
		if (timely_clock_cross_timestamp(&model.clock, random_number(), random_number(),
						 random_number()))
			clock_model_publish(&model);
		break;
	case 1:
		if (timely_clock_cross_timestamp(&model.clock, now, model.nic_ns + random_number(),
						 now + clock_below(&model, 200000)))
			clock_model_publish(&model);
		break;
	default:
		clock_model_cross_timestamp(&model, clock_below(&model, 20000));
	}
}

static void traffic(u32 most_ms)
{
	static const u32 rates[] = { 100, 1000, 10000, 76000, 300000 };

	model.rate = rates[clock_below(&model, ARRAY_SIZE(rates))];
	model.delay = clock_below(&model, CLOCK_DELAY_MODERATED + 1);
	model.span_ns = clock_below(&model, 200000);
	model.min_handling_ns = clock_below(&model, 5000);
	model.cpus = 1 + clock_below(&model, CLOCK_MODEL_CPUS);
	clock_model_run(&model, (1 + clock_below(&model, most_ms)) * NSEC_PER_MSEC);
}

static void one_step(u32 most_ms)
{
	switch (clock_below(&model, 10)) {
	case 0:
		model.nic_ns += random_number();
		break;
	case 1:
		model.host_offset_ns = (s64)(model.host_offset_ns + random_number());
		break;
	case 2:
		hostile();
		break;
	case 3:
		cross_timestamps();
		break;
	case 4:
		timely_clock_forget(&model.clock);
		clock_model_publish(&model);
		break;
	case 5:
		clock_model_pause(&model, clock_below(&model, U32_MAX) *
				  (1ULL << clock_below(&model, 10)));
		break;
	case 6:
		model.late_ns = clock_below(&model, 2) * clock_below(&model, 10000000);
		break;
	case 7:
		model.drift_ppb = (s64)clock_below(&model, 1000001) - 500000;
		break;
	default:
		traffic(most_ms);
	}
}

#ifdef TIMELY_LIBFUZZER
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 i;

	clock_model_init(&model, 1, 76000);
	model.input = data;
	model.left = size;
	while (model.left)
		one_step(2);
	for (i = 0; i < CLOCK_PROMISES; i++) {
		if (!model.broken[i])
			continue;
		printf("# broken: %s\n", clock_promises[i]);
		abort();
	}
	return 0;
}
#else
/* After any history, the clock must become sure and right soon with normal traffic. A false
 * cross-timestamp is believed until a true one contradicts it.
 */
static void recover(void)
{
	u32 i;

	model.late_ns = 0;
	model.delay = CLOCK_DELAY_UNIFORM;
	model.span_ns = 100000;
	model.min_handling_ns = 0;
	model.rate = 76000;
	model.cpus = 1;
	for (i = 0; i < 10; i++) {
		clock_model_run(&model, NSEC_PER_SEC / 20);
		if (model.clock.cross_timestamps)
			clock_model_cross_timestamp(&model, 500);
	}
	clock_model_recount(&model);
	clock_model_run(&model, NSEC_PER_SEC / 20);
	clock_promise(&model, CLOCK_RECOVERS, model.was_sure &&
		      model.good * 10 >= model.total * 9 && model.wrong * 100 <= model.good);
}

int main(int argc, char **argv)
{
	u32 rounds = argc > 1 ? (u32)strtoul(argv[1], NULL, 0) : 1000;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20150821;
	u64 kept[CLOCK_PROMISES] = {}, broken[CLOCK_PROMISES] = {};
	u32 number = 0, i, j;
	bool good;

	/* Output must be visible when a sanitizer ends the program. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	good = kunit_run(&number);

	printf("# %u starts, %u operations each, seed %llu\n", rounds, STEPS, seed);
	for (i = 0; i < rounds; i++) {
		clock_model_init(&model, seed + i * 0x9e3779b97f4a7c15ULL, 76000);
		for (j = 0; j < STEPS; j++)
			one_step(20);
		recover();
		for (j = 0; j < CLOCK_PROMISES; j++) {
			if (model.broken[j] && !broken[j])
				printf("# broken first in round %u: %s\n", i, clock_promises[j]);
			kept[j] += model.kept[j];
			broken[j] += model.broken[j];
		}
	}
	for (j = 0; j < CLOCK_PROMISES; j++) {
		/* A promise that was never tested counts as broken. */
		bool right = !broken[j] && (kept[j] || !rounds);

		printf("%sok %u - random: %s # %llu times\n", right ? "" : "not ",
		       ++number, clock_promises[j], kept[j]);
		good &= right;
	}
	printf("1..%u\n", number);
	return good ? 0 : 1;
}
#endif
