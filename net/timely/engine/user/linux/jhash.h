/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's jhash.h: Jenkins's hash of 32-bit words (lookup3, hashword())
 * with the kernel's initial value. kunit/orack_kunit.c runs in the kernel and in user space, and
 * expects the same hashes.
 */
#ifndef _USER_LINUX_JHASH_H
#define _USER_LINUX_JHASH_H

#include <linux/types.h>

static inline u32 jhash_rotate(u32 word, unsigned int by)
{
	return word << by | word >> (32 - by);
}

static inline void jhash_mix(u32 w[3])
{
	static const u8 by[] = { 4, 6, 8, 16, 19, 4 };
	int i;

	/* w[] is a, b, c: mix c into a, a into b, b into c, and the same again. */
	for (i = 0; i < 6; i++) {
		u32 *to = &w[i % 3], *from = &w[(i + 2) % 3], *sum = &w[(i + 1) % 3];

		*to = (*to - *from) ^ jhash_rotate(*from, by[i]);
		*from += *sum;
	}
}

static inline u32 jhash_final(u32 w[3])
{
	static const u8 by[] = { 14, 11, 25, 16, 4, 14, 24 };
	int i;

	/* w[] is a, b, c: mix b into c, c into a, a into b, and so on. */
	for (i = 0; i < 7; i++) {
		u32 *to = &w[(i + 2) % 3], *from = &w[(i + 1) % 3];

		*to = (*to ^ *from) - jhash_rotate(*from, by[i]);
	}
	return w[2];
}

static inline u32 jhash2(const u32 *words, u32 count, u32 first)
{
	u32 start = 0xdeadbeef + (count << 2) + first, i;
	u32 w[3] = { start, start, start };

	while (count > 3) {
		for (i = 0; i < 3; i++)
			w[i] += *words++;
		jhash_mix(w);
		count -= 3;
	}
	if (!count)
		return w[2];
	for (i = 0; i < count; i++)
		w[i] += *words++;
	return jhash_final(w);
}

#endif /* _USER_LINUX_JHASH_H */
