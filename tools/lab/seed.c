// SPDX-License-Identifier: GPL-2.0
/*
 * Repeatable random numbers for a guest. A User Mode Linux kernel asks the host for random numbers
 * by getrandom(). guest.sh preloads this library, which replaces getrandom(): it returns the same
 * numbers for the same value of the environment variable TIMELY_SEED (default 0).
 */

#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t state;

__attribute__((constructor)) static void seed(void)
{
	const char *text = getenv("TIMELY_SEED");

	state = text ? strtoull(text, NULL, 0) : 0;
}

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators). */
static uint8_t next_byte(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z >> 56;
}

ssize_t getrandom(void *buf, size_t length, unsigned int flags)
{
	uint8_t *byte = buf;
	size_t i;

	(void)flags;
	for (i = 0; i < length; i++)
		byte[i] = next_byte();
	return length;
}
