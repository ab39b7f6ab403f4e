/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pseudo-random numbers for the fuzzers. chance_state is the seed: the same seed gives the same
 * sequence.
 */
#ifndef _TIMELY_CHANCE_H
#define _TIMELY_CHANCE_H

#include <linux/types.h>
#include <stdbool.h>

static __u64 chance_state;

/* 64 random bits, by the generator splitmix64 */
static inline __u64 chance(void)
{
	__u64 z = chance_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline unsigned int below(unsigned int n)
{
	return chance() % n;
}

static inline bool one_in(unsigned int n)
{
	return below(n) == 0;
}

#endif /* _TIMELY_CHANCE_H */
