/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How fast the line is that a connection leaves by. See net/timely/link.c.
 */
#ifndef _NET_TIMELY_LINK_H
#define _NET_TIMELY_LINK_H

#include <linux/types.h>

struct net_device;

/* Is another one whenever the speed of any link has changed. */
extern u32 timely_link_epoch;

int timely_link_init(void);
void timely_link_exit(void);
void timely_link_changed(void);
u32 timely_link_kbps(struct net_device *dev);

#endif /* _NET_TIMELY_LINK_H */
