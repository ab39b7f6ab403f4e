/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's kernel.h: what the engines and their tests use of it. */
#ifndef _USER_LINUX_KERNEL_H
#define _USER_LINUX_KERNEL_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define abs(x) ({ typeof(x) _x = (x); _x < 0 ? -_x : _x; })

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* Square root, rounded down; one bit of the root per iteration. */
static inline u32 int_sqrt64(u64 x)
{
	u64 root = 0, bit = 1ULL << 62;

	for (; bit; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = root / 2 + bit;
		} else {
			root /= 2;
		}
	}
	return root;
}

static inline unsigned long int_sqrt(unsigned long x)
{
	return int_sqrt64(x);
}

#endif /* _USER_LINUX_KERNEL_H */
