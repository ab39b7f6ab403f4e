/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in finding the PTP clock of a device. features.mk defines
 * HAVE_*.
 */
#ifndef _TIMELY_COMPAT_DEV_H
#define _TIMELY_COMPAT_DEV_H

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>

/* Get what "ethtool -T" shows of a device. The structure is kernel_ethtool_ts_info since Linux 6.11
 * and ethtool_ts_info before. Kernels with ethtool_get_ts_info_by_layer() also ask the device's
 * PHY.
 * Return: 0 or a negative error.
 */
#ifdef HAVE_ETHTOOL_TS_INFO_BY_LAYER
#define timely_get_ts_info(dev, info)	ethtool_get_ts_info_by_layer(dev, info)
#else
#define kernel_ethtool_ts_info ethtool_ts_info
static inline int timely_get_ts_info(struct net_device *dev,
				     struct kernel_ethtool_ts_info *info)
{
	if (!dev->ethtool_ops->get_ts_info)
		return -EOPNOTSUPP;
	return dev->ethtool_ops->get_ts_info(dev, info);
}
#endif

/* Type of the data of a match function for device_find_child(): const since Linux 6.14. */
#ifdef HAVE_DEVICE_MATCH_CONST
#define timely_match_data const void
#else
#define timely_match_data void
#endif

/* Index of the PTP clock by which the device timestamps received packets, N of /dev/ptpN; negative
 * if the device does not timestamp received packets, or has no PTP clock. Called under RTNL.
 */
static inline int timely_dev_rx_phc(struct net_device *dev)
{
	struct kernel_ethtool_ts_info info = { .phc_index = -1 };

	if (!dev->ethtool_ops || timely_get_ts_info(dev, &info) ||
	    !(info.so_timestamping & SOF_TIMESTAMPING_RX_HARDWARE))
		return -1;
	return info.phc_index;
}

#endif /* _TIMELY_COMPAT_DEV_H */
