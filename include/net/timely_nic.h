/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NICs whose hardware stamps end RTTs: which NIC a stamp is from, and what it
 * is on the host's clock. See net/timely/nic.c.
 */
#ifndef _NET_TIMELY_NIC_H
#define _NET_TIMELY_NIC_H

#include <linux/types.h>

#include <timely/engine/clock.h>

struct net_device;
struct sk_buff;

/**
 * struct timely_nic_status - what netlink tells of a NIC
 * @line: its clock's line
 * @pairs: pairs of stamps seen in traffic
 * @brackets: times its PTP clock was read
 * @steps: steps noticed
 * @uncertainty_ns: of a time on the line, now
 * @line_kbps: of the link, 0 if not known
 * @override_kbps: set to count instead, 0 if not
 * @phc: index of its PTP clock, -1 for none
 * @state: TIMELY_NIC_*
 * @use: hardware stamps may be used
 */
struct timely_nic_status {
	struct timely_clock_line line;
	u64 pairs;
	u64 brackets;
	u32 steps;
	u32 uncertainty_ns;
	u32 line_kbps;
	u32 override_kbps;
	int phc;
	u8 state;
	bool use;
};

/**
 * struct timely_nic_change - what netlink asks to be changed
 * @override_kbps: line rate that counts, 0 for the link's
 * @use: may hardware stamps be used?
 * @set_override: @override_kbps was given
 * @set_use: @use was given
 */
struct timely_nic_change {
	u32 override_kbps;
	bool use;
	bool set_override;
	bool set_use;
};

int timely_nic_init(void);
void timely_nic_exit(void);
int timely_nic_arrival(u32 napi_id, u64 stamp_ns, u64 now_ns, u64 *arrived_ns,
		       u32 *ns_per_byte_q16);
void timely_nic_look(struct net_device *dev, u32 kbps);
u32 timely_nic_kbps(const struct net_device *dev);
u64 timely_nic_stamp(const struct sk_buff *skb, u32 napi_id);
int timely_nic_status(const struct net_device *dev,
		      struct timely_nic_status *status);
int timely_nic_change(const struct net_device *dev,
		      const struct timely_nic_change *change);

#endif /* _NET_TIMELY_NIC_H */
