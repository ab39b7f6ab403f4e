/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's string.h: the C library's, and two more functions. */
#ifndef _USER_LINUX_STRING_H
#define _USER_LINUX_STRING_H

#include <stdio.h>
#include <string.h>

/* Clears memory that is not read again. The compiler would omit a plain memset(); the asm statement
 * prevents this.
 */
static inline void memzero_explicit(void *s, size_t bytes)
{
	memset(s, 0, bytes);
	__asm__ __volatile__("" : : "r"(s) : "memory");
}

#define strscpy(to, from, size)	snprintf(to, size, "%s", from)

#endif /* _USER_LINUX_STRING_H */
