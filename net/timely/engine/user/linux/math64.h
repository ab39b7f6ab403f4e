/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's math64.h. As in the kernel, divisors must not be 0. */
#ifndef _USER_LINUX_MATH64_H
#define _USER_LINUX_MATH64_H

#include <linux/types.h>

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline s64 div64_s64(s64 dividend, s64 divisor)
{
	return dividend / divisor;
}

/* a * mul >> shift, computed with 128 bits. As with the kernel's function, bits of the result above
 * the lowest 64 are lost.
 */
static inline u64 mul_u64_u64_shr(u64 a, u64 mul, unsigned int shift)
{
	u64 low = (u64)(u32)a * (u32)mul, high = (a >> 32) * (mul >> 32);
	u64 mid1 = (a >> 32) * (u32)mul, mid2 = (u32)a * (mul >> 32);
	u64 carry = (low >> 32) + (u32)mid1 + (u32)mid2;

	low = (u32)low | carry << 32;
	high += (mid1 >> 32) + (mid2 >> 32) + (carry >> 32);
	if (!shift)
		return low;
	return shift < 64 ? low >> shift | high << (64 - shift) : high >> (shift - 64);
}

/* Kernels for 32-bit machines support a @shift of at most 32. */
static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift)
{
	return mul_u64_u64_shr(a, mul, shift);
}

#endif /* _USER_LINUX_MATH64_H */
