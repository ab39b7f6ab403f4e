/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's types.h, and of a few macros that the kernel defines
 * elsewhere. The headers in this directory have only what the engines and their tests use.
 */
#ifndef _USER_LINUX_TYPES_H
#define _USER_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>

/* The same C types as in the kernel: u64 is unsigned long long, so that %llu prints it. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
#define __force

typedef u16 __be16;
typedef u32 __be32;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define __aligned(bytes)	__attribute((aligned(bytes)))

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#endif /* _USER_LINUX_TYPES_H */
