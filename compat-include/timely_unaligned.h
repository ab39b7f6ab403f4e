/* SPDX-License-Identifier: GPL-2.0 */
/*
 * 6.12: numbers at any address have a header for all architectures.
 */
#ifndef _TIMELY_COMPAT_UNALIGNED_H
#define _TIMELY_COMPAT_UNALIGNED_H

#ifdef HAVE_LINUX_UNALIGNED_H
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif /* _TIMELY_COMPAT_UNALIGNED_H */
