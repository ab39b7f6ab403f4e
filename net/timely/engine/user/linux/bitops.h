/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's bitops.h. */
#ifndef _USER_LINUX_BITOPS_H
#define _USER_LINUX_BITOPS_H

#include <linux/types.h>

#define BIT_ULL(n)	(1ULL << (n))

static inline unsigned long __ffs64(u64 word)
{
	return (unsigned long)__builtin_ctzll(word);
}

static inline unsigned int fls64(u64 word)
{
	return word ? 64 - __builtin_clzll(word) : 0;
}

static inline u64 ror64(u64 word, unsigned int shift)
{
	return word >> (shift & 63) | word << (-shift & 63);
}

static inline s32 sign_extend32(u32 word, int sign_bit)
{
	return (s32)(word << (31 - sign_bit)) >> (31 - sign_bit);
}

#endif /* _USER_LINUX_BITOPS_H */
