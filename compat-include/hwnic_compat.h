/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions for the driver of the test NIC, drivers/net/hwnic.
 * features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_HWNIC_H
#define _TIMELY_COMPAT_HWNIC_H

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <net/rtnetlink.h>

#include <timely_dev.h>

/* Since Linux 6.13 hrtimer_setup() initialises a timer with its function. */
#ifndef HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

/* Head of a function for rtnl_link_ops.newlink: since Linux 6.15 a structure has the arguments. */
#ifdef HAVE_NEWLINK_PARAMS
#define DEFINE_NEWLINK(name)						\
	static int name(struct net_device *dev,				\
			struct rtnl_newlink_params *params,		\
			struct netlink_ext_ack *extack)
#else
#define DEFINE_NEWLINK(name)						\
	static int name(struct net *src_net, struct net_device *dev,	\
			struct nlattr *tb[], struct nlattr *data[],	\
			struct netlink_ext_ack *extack)
#endif

/* Operations of the device that set and show hardware timestamping. Since Linux 6.6 there is an
 * operation for each. Before, hwnic_ioctl() handles SIOCSHWTSTAMP and SIOCGHWTSTAMP: it copies the
 * settings from and to user space and calls hwnic_hwtstamp_set() or hwnic_hwtstamp_get().
 */
#ifdef HAVE_NDO_HWTSTAMP
#define HWNIC_HWTSTAMP_NDOS				\
	.ndo_hwtstamp_get = hwnic_hwtstamp_get,		\
	.ndo_hwtstamp_set = hwnic_hwtstamp_set
#else
struct kernel_hwtstamp_config {
	int flags;
	int tx_type;
	int rx_filter;
};

int hwnic_hwtstamp_get(struct net_device *dev, struct kernel_hwtstamp_config *config);
int hwnic_hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *config,
		       struct netlink_ext_ack *extack);

static inline int hwnic_ioctl(struct net_device *dev, struct ifreq *ifr, int cmd)
{
	struct kernel_hwtstamp_config kernel = {};
	struct hwtstamp_config user = {};
	int err;

	if (cmd != SIOCGHWTSTAMP && cmd != SIOCSHWTSTAMP)
		return -EOPNOTSUPP;
	if (cmd == SIOCGHWTSTAMP) {
		err = hwnic_hwtstamp_get(dev, &kernel);
	} else {
		if (copy_from_user(&user, ifr->ifr_data, sizeof(user)))
			return -EFAULT;
		kernel.flags = user.flags;
		kernel.tx_type = user.tx_type;
		kernel.rx_filter = user.rx_filter;
		err = hwnic_hwtstamp_set(dev, &kernel, NULL);
	}
	if (err)
		return err;
	user.flags = kernel.flags;
	user.tx_type = kernel.tx_type;
	user.rx_filter = kernel.rx_filter;
	return copy_to_user(ifr->ifr_data, &user, sizeof(user)) ? -EFAULT : 0;
}

#define HWNIC_HWTSTAMP_NDOS	.ndo_eth_ioctl = hwnic_ioctl
#endif

#endif /* _TIMELY_COMPAT_HWNIC_H */
