/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's prefetch.h. */
#ifndef _USER_LINUX_PREFETCH_H
#define _USER_LINUX_PREFETCH_H

#define prefetch(address)	__builtin_prefetch(address)
#define prefetchw(address)	__builtin_prefetch(address, 1)

#endif /* _USER_LINUX_PREFETCH_H */
