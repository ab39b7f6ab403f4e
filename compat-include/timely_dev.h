/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in asking a device for what it can stamp.
 */
#ifndef _TIMELY_COMPAT_DEV_H
#define _TIMELY_COMPAT_DEV_H

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>

/* 6.11: the kernel's copy of what ethtool -T asks for has a name of its own; with
 * it came a function that asks the PHY as well.
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

/* 6.14: device_find_child() promises not to write what it looks for. */
#ifdef HAVE_DEVICE_MATCH_CONST
#define timely_match_data const void
#else
#define timely_match_data void
#endif

/* Index of the PTP clock that stamps what the device receives; negative if it
 * does not. Called under RTNL.
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
