/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common parts of the fuzzers: random numbers, promises, and a main() that prints TAP. Include this
 * file after three definitions: enum promise, which ends with PROMISES; promises[], which describes
 * each promise; FUZZ_ROUND, which describes a round.
 */
#ifndef _KUNIT_USER_FUZZ_H
#define _KUNIT_USER_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include <kunit/test.h>

/* Random numbers: from a generator, or from the input of libFuzzer. */
static struct {
	u64 state;
	const u8 *input;
	size_t left;
} dice;

/* How often each promise was tested, and how often it was broken. */
static struct {
	u64 tested;
	u64 broken;
} fuzz_seen[PROMISES];

static void promise(enum promise which, bool kept)
{
	fuzz_seen[which].tested++;
	fuzz_seen[which].broken += !kept;
#ifdef TIMELY_LIBFUZZER
	if (!kept) {
		printf("# broken: %s\n", promises[which]);
		abort();
	}
#endif
}

static u64 roll(void)
{
	u64 x = 0;

	if (dice.input) {
		for (int i = 0; i < 4 && dice.left; i++, dice.left--)
			x = x << 8 | *dice.input++;
		return x;
	}
	/* xorshift64* */
	x = dice.state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	dice.state = x;
	return x * 0x2545f4914f6cdd1dULL >> 16;
}

static u32 below(u32 n)
{
	return (u32)roll() % n;
}

/* The fuzzer defines what happens in a round, and what with the dice of one input of libFuzzer. */
static void fuzz_round(void);
static void fuzz_input(void);

#ifdef TIMELY_LIBFUZZER
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	(void)fuzz_round;
	dice.input = data;
	dice.left = size;
	fuzz_input();
	return 0;
}
#else
/* Run the KUnit suites, then as many rounds as the first argument says, by default 1000. The second
 * argument is the seed. Return: 0 if all cases pass and all promises are kept, or else 1.
 */
int main(int argc, char **argv)
{
	u32 rounds = argc > 1 ? (u32)strtoul(argv[1], NULL, 0) : 1000;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20210412;
	u32 number = 0, i;
	bool good;

	(void)fuzz_input;
	/* Output must be visible when a sanitizer ends the program. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	good = kunit_run(&number);

	printf("# %u times %s, seed %llu\n", rounds, FUZZ_ROUND, seed);
	dice.state = seed | 1ULL << 63;
	for (i = 0; i < rounds; i++)
		fuzz_round();
	for (i = 0; i < PROMISES; i++) {
		/* A promise that was never tested counts as broken. */
		bool kept = !fuzz_seen[i].broken && (fuzz_seen[i].tested || !rounds);

		printf("%sok %u - random: %s # %llu times, broken %llu times\n",
		       kept ? "" : "not ", ++number, promises[i], fuzz_seen[i].tested,
		       fuzz_seen[i].broken);
		good &= kept;
	}
	printf("1..%u\n", number);
	return good ? 0 : 1;
}
#endif

#endif /* _KUNIT_USER_FUZZ_H */
