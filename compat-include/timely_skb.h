/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in packet buffers. features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_SKB_H
#define _TIMELY_COMPAT_SKB_H

#include <linux/skbuff.h>

/* Whether the CPU can read the payload. Since Linux 6.12 it may be in the memory of a device. */
static inline bool timely_frags_readable(const struct sk_buff *skb)
{
#ifdef HAVE_SKB_FRAGS_READABLE
	return skb_frags_readable(skb);
#else
	return true;
#endif
}

#endif /* _TIMELY_COMPAT_SKB_H */
