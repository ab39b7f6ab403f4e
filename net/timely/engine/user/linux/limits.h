/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's limits.h. The C library's <limits.h> also includes
 * <linux/limits.h>, so the system's header of this name is included first.
 */
#include_next <linux/limits.h>

#ifndef _USER_LINUX_LIMITS_H
#define _USER_LINUX_LIMITS_H

#include <linux/types.h>

#define U8_MAX	((u8)~0U)
#define U16_MAX	((u16)~0U)
#define U32_MAX	((u32)~0U)
#define U64_MAX	((u64)~0ULL)
#define S32_MAX	((s32)(U32_MAX >> 1))
#define S64_MAX	((s64)(U64_MAX >> 1))
#define S64_MIN	((s64)(-S64_MAX - 1))

#endif /* _USER_LINUX_LIMITS_H */
