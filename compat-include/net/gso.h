/* SPDX-License-Identifier: GPL-2.0 */
/*
 * 6.5: GSO's functions have a header of their own; HAVE_* come from features.mk.
 */
#ifndef _TIMELY_COMPAT_NET_GSO_H
#define _TIMELY_COMPAT_NET_GSO_H

#ifdef HAVE_NET_GSO_H
#include_next <net/gso.h>
#else
#include <linux/netdevice.h>
#endif

#endif /* _TIMELY_COMPAT_NET_GSO_H */
