// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of the timing wheel, then millions of random operations, compared with the
 * simple model of ../wheel_model.h. For any order of operations, and however late the wheel is
 * called, its promises must hold. Built with ASan and UBSan.
 *
 *   wheel_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS initial states with STEPS operations each, over all widths of slots. Prints TAP.
 * Built with -DTIMELY_LIBFUZZER, the random numbers are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/limits.h>

#include <timely/engine/wheel.h>

#include "../wheel_model.h"

#define STEPS	4096

static struct wheel_model model;

/* Any initial time: zero, a realistic time, or more than a signed number can hold. */
static u64 random_start(void)
{
	static const u64 near[] = { 0, 1ULL << 40, 1700000000000000000ULL, 1ULL << 63 };

	return near[wheel_below(&model.dice, ARRAY_SIZE(near))] +
	       wheel_below(&model.dice, 2) * (wheel_roll(&model.dice) & 0xffffffff);
}

static void one_round(u32 steps)
{
	u32 span = TIMELY_WHEEL_MAX_SHIFT - TIMELY_WHEEL_MIN_SHIFT + 1;
	u8 shift = (u8)(TIMELY_WHEEL_MIN_SHIFT + wheel_below(&model.dice, span));

	wheel_model_init(&model, shift, random_start());
	while (steps--)
		wheel_model_step(&model);
}

#ifdef TIMELY_LIBFUZZER
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	model.dice.input = data;
	model.dice.left = size;
	one_round((u32)(size / 8) + 1);
	if (model.broke_at) {
		printf("# broken: %s\n", wheel_promises[model.broke]);
		abort();
	}
	return 0;
}
#else
int main(int argc, char **argv)
{
	u32 rounds = argc > 1 ? (u32)strtoul(argv[1], NULL, 0) : 1000;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20170821;
	u32 number = 0, i;
	bool good;

	/* Output must be visible when a sanitizer ends the program. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	good = kunit_run(&number);

	printf("# %u starts, %u operations each, seed %llu\n", rounds, STEPS, seed);
	model.dice.state = seed | 1ULL << 63;
	for (i = 0; i < rounds && !model.broke_at; i++)
		one_round(STEPS);
	if (model.broke_at)
		printf("# broken first in operation %llu of round %u, slots of 2^%u ns: %s\n",
		       model.broke_at, i, model.wheel.shift, wheel_promises[model.broke]);
	for (i = 0; i < WHEEL_PROMISES; i++) {
		/* A promise that was never tested counts as broken. */
		bool kept = !model.broken[i] && (model.kept[i] || !rounds);

		printf("%sok %u - random: %s # %llu times\n", kept ? "" : "not ",
		       ++number, wheel_promises[i], model.kept[i]);
		good &= kept;
	}
	printf("1..%u\n", number);
	return good ? 0 : 1;
}
#endif
