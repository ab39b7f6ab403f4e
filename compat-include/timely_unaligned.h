/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declares get_unaligned_be16() and the like. Since Linux 6.12 their header is the same for all
 * architectures. features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_UNALIGNED_H
#define _TIMELY_COMPAT_UNALIGNED_H

#ifdef HAVE_LINUX_UNALIGNED_H
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif /* _TIMELY_COMPAT_UNALIGNED_H */
