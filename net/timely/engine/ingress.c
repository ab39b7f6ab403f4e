// SPDX-License-Identifier: GPL-2.0
/*
 * How busy the link towards this host has been lately. ACKs of data that the host sends wait behind
 * data that it receives, at the port of its switch. The RTT cannot tell this queue from a queue on
 * the way of the data. target_delay.c raises the target delay where such a queue is likely.
 *
 * Pure: no socket, no clock.
 */

#include <linux/export.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "ingress.h"

/* The share is averaged over about this time: several round trips, and less than a long message
 * takes.
 */
#define INGRESS_MEAN_NS		100000U
/* A longer period counts as this, so that products fit in 64 bits. */
#define INGRESS_PERIOD_MAX_NS	1000000000ULL
/* A link of one kbit/s takes this many ns for a byte. */
#define INGRESS_KBPS_NS		8000000U

/**
 * timely_ingress_q16() - add a period to the average share of the link rate that arrives
 * @old_q16: the average before the period, Q16
 * @bytes: bytes that arrived in the period
 * @period_ns: length of the period, ns
 * @link_kbps: link rate, kbit/s; 0: not known
 *
 * Return: the average, Q16, at most 65536; 0 if the link rate is not known.
 */
u32 timely_ingress_q16(u32 old_q16, u64 bytes, u64 period_ns, u32 link_kbps)
{
	u64 whole;
	s64 share_q16;

	if (!link_kbps)
		return 0;
	period_ns = min(period_ns, INGRESS_PERIOD_MAX_NS);
	whole = div_u64(period_ns * link_kbps, INGRESS_KBPS_NS);
	share_q16 = bytes >= whole ? 1 << 16 : div64_u64(bytes << 16, whole);
	if (period_ns >= INGRESS_MEAN_NS)
		return share_q16;
	return old_q16 + div_s64((share_q16 - old_q16) * (s64)period_ns, INGRESS_MEAN_NS);
}
EXPORT_SYMBOL_GPL(timely_ingress_q16);
