/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family "timely": loading and unloading. See net/timely/netlink.c; messages
 * and attributes are in <linux/timely.h>.
 */
#ifndef _NET_TIMELY_NETLINK_H
#define _NET_TIMELY_NETLINK_H

int timely_netlink_init(void);
void timely_netlink_exit(void);

#endif /* _NET_TIMELY_NETLINK_H */
