/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in the arguments of tracepoints.
 */
#ifndef _TIMELY_COMPAT_PROBE_H
#define _TIMELY_COMPAT_PROBE_H

#include <linux/skbuff.h>

/* The packet of tcp_probe: const since 7.0. Probes must have just this type. */
#ifdef HAVE_TCP_PROBE_CONST
typedef const struct sk_buff timely_probe_skb;
#else
typedef struct sk_buff timely_probe_skb;
#endif

#endif /* _TIMELY_COMPAT_PROBE_H */
