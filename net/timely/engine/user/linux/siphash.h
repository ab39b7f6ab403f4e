/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's siphash.h: SipHash-2-4 (Aumasson and Bernstein, 2012). The key
 * is two numbers, as in the kernel, and the words of the text are little-endian.
 * kunit/orack_kunit.c checks the function with the test vectors of the reference implementation.
 */
#ifndef _USER_LINUX_SIPHASH_H
#define _USER_LINUX_SIPHASH_H

#include <linux/types.h>

struct siphash_key {
	u64 key[2];
};

#define siphash_key_t	struct siphash_key

static inline u64 siphash_rotate(u64 word, unsigned int by)
{
	return word << by | word >> (64 - by);
}

/* SipRound, @rounds times. */
static inline void siphash_mix(u64 v[4], unsigned int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = siphash_rotate(v[1], 13) ^ v[0];
		v[3] = siphash_rotate(v[3], 16) ^ v[2];
		v[0] = siphash_rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = siphash_rotate(v[1], 17) ^ v[2];
		v[3] = siphash_rotate(v[3], 21) ^ v[0];
		v[2] = siphash_rotate(v[2], 32);
	}
}

/* Compression: add a word of the text to the state. */
static inline void siphash_take(u64 v[4], u64 word)
{
	v[3] ^= word;
	siphash_mix(v, 2);
	v[0] ^= word;
}

static inline u64 siphash(const void *text, size_t bytes, const siphash_key_t *key)
{
	/* SipHash's constants, in ASCII: "somepseudorandomlygeneratedbytes" */
	u64 v[4] = {
		key->key[0] ^ 0x736f6d6570736575ULL, key->key[1] ^ 0x646f72616e646f6dULL,
		key->key[0] ^ 0x6c7967656e657261ULL, key->key[1] ^ 0x7465646279746573ULL,
	};
	const u8 *byte = (const u8 *)text;
	u64 word = 0;
	size_t i;

	for (i = 0; i < bytes; i++) {
		word |= (u64)byte[i] << 8 * (i % 8);
		if (i % 8 == 7) {
			siphash_take(v, word);
			word = 0;
		}
	}
	/* The highest byte of the last word is the length. */
	siphash_take(v, word | (u64)bytes << 56);
	v[2] ^= 0xff;
	siphash_mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif /* _USER_LINUX_SIPHASH_H */
