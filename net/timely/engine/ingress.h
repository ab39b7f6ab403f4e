/* SPDX-License-Identifier: GPL-2.0 */
/* How busy the link towards this host is. See net/timely/engine/ingress.c. */
#ifndef _TIMELY_ENGINE_INGRESS_H
#define _TIMELY_ENGINE_INGRESS_H

#include <linux/types.h>

/* Shortest time between two updates of a link's share, ns. */
#define TIMELY_INGRESS_PERIOD_NS	20000U

/* A host that has received at this share of its link rate at some time in the last
 * TIMELY_INGRESS_MUCH_NS has data in both directions.
 */
#define TIMELY_INGRESS_MUCH_Q16		(1U << 13)	/* an eighth */
#define TIMELY_INGRESS_MUCH_NS		50000000U

u32 timely_ingress_q16(u32 old_q16, u64 bytes, u64 period_ns, u32 link_kbps);

#endif /* _TIMELY_ENGINE_INGRESS_H */
