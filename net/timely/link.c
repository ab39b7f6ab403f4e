// SPDX-License-Identifier: GPL-2.0
/*
 * Speeds of links, for who may not ask for them: a driver tells its link's speed
 * under RTNL only, which the path of an ACK cannot take. So it is asked whenever
 * a link comes up or changes, and what it said is kept here, to be read under RCU.
 *
 * Only devices with hardware below them count: what a veth, a tunnel or a bridge
 * says of itself is made up. Of a VLAN, a bond, a bridge and such, the lines are
 * those of the devices below, and the fastest of them is the line; a veth's end is
 * not known, as what it leads to is a matter of routes. A NIC whose stamps are in
 * use may have been given another speed (timelyctl nic), which goes before its own.
 */

#include <linux/ethtool.h>
#include <linux/hashtable.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include <net/timely_link.h>
#include <net/timely_nic.h>

/* Beyond this a speed in kbit/s is no number of 32 bits, and SPEED_UNKNOWN. */
#define TIMELY_LINK_MAX_MBPS	(U32_MAX / 1000)

/**
 * struct timely_link - the link of a device
 * @hash: anchor in the table of all
 * @dev: the device, only as a number
 * @kbps: its speed, 0 if it is not known
 * @rcu: readers of the table may still look at it
 */
struct timely_link {
	struct hlist_node hash;
	const struct net_device *dev;
	u32 kbps;
	struct rcu_head rcu;
};

/* Written under RTNL. */
static DEFINE_HASHTABLE(timely_links, 6);

u32 timely_link_epoch;

static struct timely_link *timely_link_find(const struct net_device *dev)
{
	struct timely_link *link;

	hash_for_each_possible_rcu(timely_links, link, hash, (unsigned long)dev,
				   lockdep_rtnl_is_held())
		if (link->dev == dev)
			return link;
	return NULL;
}

/** timely_link_changed() - what was said of any line may be another; under RTNL */
void timely_link_changed(void)
{
	WRITE_ONCE(timely_link_epoch, timely_link_epoch + 1);
}

static void timely_link_forget(const struct net_device *dev)
{
	struct timely_link *link = timely_link_find(dev);

	if (!link)
		return;
	hash_del_rcu(&link->hash);
	kfree_rcu(link, rcu);
	timely_link_changed();
}

static void timely_link_read(struct net_device *dev)
{
	struct timely_link *link = timely_link_find(dev);
	struct ethtool_link_ksettings settings;
	u32 kbps = 0;

	if (!__ethtool_get_link_ksettings(dev, &settings) &&
	    settings.base.speed <= TIMELY_LINK_MAX_MBPS)
		kbps = settings.base.speed * 1000;
	if (!link && kbps) {
		link = kzalloc(sizeof(*link), GFP_KERNEL);
		if (!link)
			return;
		link->dev = dev;
		hash_add_rcu(timely_links, &link->hash, (unsigned long)dev);
	}
	if (link && link->kbps != kbps) {
		WRITE_ONCE(link->kbps, kbps);
		timely_link_changed();
	}
}

/* Not in the notifier, where some kernels hold the device's own lock and some do
 * not.
 */
static void timely_link_scan_fn(struct work_struct *work)
{
	struct net_device *dev;
	struct net *net;

	rtnl_lock();
	down_read(&net_rwsem);
	for_each_net(net)
		for_each_netdev(net, dev)
			if (dev->dev.parent && netif_running(dev))
				timely_link_read(dev);
	up_read(&net_rwsem);
	rtnl_unlock();
}

static DECLARE_WORK(timely_link_scan, timely_link_scan_fn);

static int timely_link_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
		if (dev->dev.parent)
			schedule_work(&timely_link_scan);
		break;
	case NETDEV_CHANGEUPPER:
		timely_link_changed();
		break;
	case NETDEV_UNREGISTER:
		timely_link_forget(dev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block timely_link_notifier = {
	.notifier_call = timely_link_event,
};

/* ---- readers ---- */

/* A driver's word for it, or a user's. */
static u32 timely_link_own_kbps(const struct net_device *dev)
{
	const struct timely_link *link;
	u32 kbps = timely_nic_kbps(dev);

	if (kbps)
		return kbps;
	link = timely_link_find(dev);
	return link ? READ_ONCE(link->kbps) : 0;
}

static int timely_link_lower(struct net_device *dev, struct netdev_nested_priv *priv)
{
	u32 *most = priv->data;

	*most = max(*most, timely_link_own_kbps(dev));
	return 0;
}

/**
 * timely_link_kbps() - how fast is the line that a device sends by
 * @dev: the device, that of a route perhaps; under RCU
 *
 * Return: kbit/s, 0 if that is not known.
 */
u32 timely_link_kbps(struct net_device *dev)
{
	u32 kbps = timely_link_own_kbps(dev);
	struct netdev_nested_priv priv = { .data = &kbps };

	if (!kbps)
		netdev_walk_all_lower_dev_rcu(dev, timely_link_lower, &priv);
	return kbps;
}

/**
 * timely_link_init() - follow the links from now on
 *
 * Return: 0 or a negative error.
 */
int timely_link_init(void)
{
	return register_netdevice_notifier(&timely_link_notifier);
}

/** timely_link_exit() - nobody asks for speeds any longer */
void timely_link_exit(void)
{
	struct timely_link *link;
	struct hlist_node *next;
	int bucket;

	unregister_netdevice_notifier(&timely_link_notifier);
	cancel_work_sync(&timely_link_scan);
	hash_for_each_safe(timely_links, bucket, next, link, hash) {
		hash_del_rcu(&link->hash);
		kfree_rcu(link, rcu);
	}
}
