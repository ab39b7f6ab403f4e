/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NICs with hardware timestamps, for the rest of TIMELY: conversion of hardware timestamps to the
 * host's time (net/timely/nic_clock.c), and status and settings of a NIC (net/timely/nic.c).
 */
#ifndef _NET_TIMELY_NIC_H
#define _NET_TIMELY_NIC_H

#include <linux/types.h>

#include <timely/engine/clock.h>

struct net_device;
struct sk_buff;

/**
 * struct timely_nic_status - the state of a NIC, as netlink shows it
 * @map: clock mapping of the NIC
 * @pairs: timestamp pairs received so far
 * @cross_timestamps: cross-timestamps (readings of the PTP clock) used so far
 * @steps: number of detected steps of the NIC's or the host's clock
 * @uncertainty_ns: error of the clock mapping now, ns, not exceeded with 99 % probability; U32_MAX
 *	while the mapping is not sure
 * @link_kbps: link rate as the driver reported it, kbit/s; 0: not known
 * @override_kbps: link rate that the administrator set, kbit/s; 0: none
 * @phc: index of the NIC's PTP clock, as in /dev/ptpN
 * @state: whether hardware timestamps are used now, TIMELY_NIC_*
 * @use: the administrator allows the use of hardware timestamps
 */
struct timely_nic_status {
	struct timely_clock_map map;
	u64 pairs;
	u64 cross_timestamps;
	u32 steps;
	u32 uncertainty_ns;
	u32 link_kbps;
	u32 override_kbps;
	int phc;
	u8 state;
	bool use;
};

/**
 * struct timely_nic_change - new settings of a NIC
 * @override_kbps: link rate that replaces the driver's link rate, kbit/s; 0: use the driver's
 * @use: allow the use of hardware timestamps
 * @set_override: apply @override_kbps; false: keep the present setting
 * @set_use: apply @use; false: keep the present setting
 */
struct timely_nic_change {
	u32 override_kbps;
	bool use;
	bool set_override;
	bool set_use;
};

int timely_nic_init(void);
void timely_nic_exit(void);
int timely_nic_arrival(u32 napi_id, u64 hardware_ns, u64 now_ns, u64 *arrived_ns,
		       u32 *ns_per_byte_q16);
void timely_nic_update(struct net_device *dev, u32 kbps);
u32 timely_nic_kbps(const struct net_device *dev);
u64 timely_nic_timestamp(const struct sk_buff *skb, u32 napi_id);
int timely_nic_status(const struct net_device *dev,
		      struct timely_nic_status *status);
int timely_nic_change(const struct net_device *dev,
		      const struct timely_nic_change *change);

#endif /* _NET_TIMELY_NIC_H */
