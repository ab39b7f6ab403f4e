/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _USER_LINUX_STRING_H
#define _USER_LINUX_STRING_H

#include <stdio.h>
#include <string.h>

/* The compiler must not drop it: the memory is not read again. */
static inline void memzero_explicit(void *s, size_t bytes)
{
	memset(s, 0, bytes);
	__asm__ __volatile__("" : : "r"(s) : "memory");
}

#define strscpy(to, from, size)	snprintf(to, size, "%s", from)

#endif /* _USER_LINUX_STRING_H */
