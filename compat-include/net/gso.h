/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declares the functions of GSO. They are in <net/gso.h> since Linux 6.5, and in
 * <linux/netdevice.h> before. features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_NET_GSO_H
#define _TIMELY_COMPAT_NET_GSO_H

#ifdef HAVE_NET_GSO_H
#include_next <net/gso.h>
#else
#include <linux/netdevice.h>
#endif

#endif /* _TIMELY_COMPAT_NET_GSO_H */
