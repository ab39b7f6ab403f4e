/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family "timely". See net/timely/netlink.c.
 */
#ifndef _NET_TIMELY_NETLINK_H
#define _NET_TIMELY_NETLINK_H

int timely_netlink_init(void);
void timely_netlink_exit(void);

#endif /* _NET_TIMELY_NETLINK_H */
