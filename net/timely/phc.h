/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads a NIC's PTP clock from the kernel. See phc.c.
 */
#ifndef _TIMELY_PHC_H
#define _TIMELY_PHC_H

#include <linux/types.h>

struct device;
struct net_device;

struct device *timely_phc_find(const struct net_device *dev, int index);
bool timely_phc_read(struct device *phc, u64 *before_ns, u64 *phc_ns, u64 *after_ns);

#endif /* _TIMELY_PHC_H */
