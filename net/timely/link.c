// SPDX-License-Identifier: GPL-2.0
/*
 * Link rates: which link a connection's packets leave by, how fast the link is, and how many
 * connections have data to send on the link, in all network namespaces.
 *
 * A link is a hardware device: a device with a parent in sysfs, such as a PCI function. The driver
 * may be asked for the link rate under RTNL only, and code that handles ACKs cannot take RTNL. So a
 * work item asks the driver when the device comes up or changes. The answer is stored in struct
 * timely_link, which is read under RCU. Virtual devices have no struct timely_link. Any user can
 * create them in a user namespace, so their events must not cause work.
 *
 * The device of a connection's route is often virtual, and the rate that it reports says nothing
 * about the link. timely_link_of() finds the link:
 *
 * - For a VLAN, macvlan, bond, bridge and the like: the fastest link below the device.
 * - For a veth or netkit, which mostly belongs to a container: a link of the peer device's
 *   namespace. If the peer device is a port of a bridge, the fastest link below the bridge.
 *   Otherwise routes decide, which are not looked up. The result is then the only link of the
 *   namespace that is up, or, if all such links belong to one bond or bridge, the fastest of them.
 * - Otherwise the link is not known.
 *
 * For a NIC with hardware timestamps the administrator may set a link rate (timelyctl nic set),
 * which replaces the driver's link rate.
 */

#include <linux/ethtool.h>
#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/if.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include <net/timely_link.h>
#include <net/timely_nic.h>

/* Highest link rate, Mb/s, whose value in kbit/s fits 32 bits: 4.29 Tb/s. A higher value, such as
 * SPEED_UNKNOWN, counts as a link rate that is not known.
 */
#define TIMELY_LINK_MAX_MBPS	(U32_MAX / 1000)

/* Maximum number of devices that one search for a link visits, which limits the time of a search.
 * The link of a bridge with more ports, for example, may remain unknown.
 */
#define TIMELY_LINK_STEPS	256

/* All links, by device. Written under RTNL, read under RCU. */
static DEFINE_HASHTABLE(timely_links, 6);

u32 timely_link_epoch;
EXPORT_SYMBOL_GPL(timely_link_epoch);

/* Finds the link of a device; NULL if the device is virtual or was never up. Under RTNL or RCU. */
static struct timely_link *timely_link_find(const struct net_device *dev)
{
	struct timely_link *link;

	hash_for_each_possible_rcu(timely_links, link, hash, (unsigned long)dev,
				   lockdep_rtnl_is_held())
		if (link->dev == dev)
			return link;
	return NULL;
}

/**
 * timely_link_changed() - make connections look up their links again
 * @net: network namespace of the device whose link or link rate changed
 *
 * All connections of the host repeat the lookup. A tenant could cause changes in a loop and load
 * the host. So changes in a network namespace that the initial user namespace does not own are
 * ignored here; connections find these changes within TIMELY_LINK_LOOK.
 *
 * Context: RTNL.
 */
void timely_link_changed(const struct net *net)
{
	if (net->user_ns == &init_user_ns)
		WRITE_ONCE(timely_link_epoch, timely_link_epoch + 1);
}

/**
 * timely_link_put() - release a reference to a link
 * @link: the link, from timely_link_get(); NULL is allowed
 */
void timely_link_put(struct timely_link *link)
{
	if (link && refcount_dec_and_test(&link->ref))
		kfree_rcu(link, rcu);
}
EXPORT_SYMBOL_GPL(timely_link_put);

static void timely_link_del(struct timely_link *link)
{
	hash_del_rcu(&link->hash);
	timely_link_put(link);
}

static struct timely_link *timely_link_add(struct net_device *dev)
{
	struct timely_link *link = kzalloc(sizeof(*link), GFP_KERNEL);

	if (!link)
		return NULL;
	link->dev = dev;
	refcount_set(&link->ref, 1);
	hash_add_rcu(timely_links, &link->hash, (unsigned long)dev);
	return link;
}

/* Asks a link's driver for link rate and hardware timestamps, if the device is up. Under RTNL. */
static void timely_link_query(struct timely_link *link)
{
	struct net_device *dev = link->dev;
	struct ethtool_link_ksettings settings;
	u32 kbps = 0;

	if (!netif_running(dev))
		return;
	if (!__ethtool_get_link_ksettings(dev, &settings) &&
	    settings.base.speed <= TIMELY_LINK_MAX_MBPS)
		kbps = settings.base.speed * 1000;
	timely_nic_update(dev, kbps);
	if (link->kbps == kbps)
		return;
	WRITE_ONCE(link->kbps, kbps);
	timely_link_changed(dev_net(dev));
}

/* Asks the drivers of all links for which timely_link.due is set. The function is a work item,
 * because a notifier cannot ask drivers: some kernels call notifiers with the device's own lock
 * held, and some without.
 */
static void timely_link_query_fn(struct work_struct *work)
{
	struct timely_link *link;
	int bucket;

	rtnl_lock();
	hash_for_each(timely_links, bucket, link, hash)
		if (link->due) {
			link->due = false;
			timely_link_query(link);
		}
	rtnl_unlock();
}

static DECLARE_WORK(timely_link_work, timely_link_query_fn);

/* Makes the work item ask the driver of a device that came up or changed for link rate and hardware
 * timestamps. Without memory for a new link, the next event of the device tries again.
 */
static void timely_link_query_later(struct net_device *dev)
{
	struct timely_link *link;

	if (!dev->dev.parent)
		return;
	link = timely_link_find(dev) ?: timely_link_add(dev);
	if (!link)
		return;
	link->due = true;
	schedule_work(&timely_link_work);
}

/* Removes the link of a device that is unregistered. */
static void timely_link_forget(const struct net_device *dev)
{
	struct timely_link *link = timely_link_find(dev);

	if (!link)
		return;
	timely_link_del(link);
	timely_link_changed(dev_net(dev));
}

/* ---- finding the link of a device, under RCU ---- */

/**
 * struct timely_link_search - state of one search for a link
 * @link: the fastest link found so far; NULL: none
 * @kbps: rate of @link, kbit/s; 0: not known
 * @steps: how many more devices the search may visit
 */
struct timely_link_search {
	struct timely_link *link;
	u32 kbps;
	u32 steps;
};

/* Returns the administrator's or else the driver's link rate, kbit/s; 0: not known. */
static u32 timely_link_kbps(const struct timely_link *link)
{
	return timely_nic_kbps(link->dev) ?: READ_ONCE(link->kbps);
}

static void timely_link_take_faster(struct timely_link_search *search, struct timely_link *link)
{
	u32 kbps = timely_link_kbps(link);

	if (search->link && kbps <= search->kbps)
		return;
	search->link = link;
	search->kbps = kbps;
}

/* Compares the link of one device, if the device has one, with the fastest link found so far.
 * Returns 1 to end the walk when the search may visit no more devices, else 0.
 */
static int timely_link_visit(struct net_device *dev, struct netdev_nested_priv *priv)
{
	struct timely_link_search *search = priv->data;
	struct timely_link *link;

	if (!search->steps)
		return 1;
	search->steps--;
	link = dev->dev.parent ? timely_link_find(dev) : NULL;
	if (link)
		timely_link_take_faster(search, link);
	return 0;
}

/* Finds the link of @dev itself if the rate of that link is known, or else the fastest link among
 * that link and the links of all devices below @dev.
 */
static void timely_link_below(struct net_device *dev, struct timely_link_search *search)
{
	struct netdev_nested_priv priv = { .data = search };

	timely_link_visit(dev, &priv);
	if (!search->kbps)
		netdev_walk_all_lower_dev_rcu(dev, timely_link_visit, &priv);
}

/* Finds the only link of a namespace that is up. The links of one bond or bridge count as one link,
 * and the fastest of these is the result. If several links are up, routes would decide between the
 * links, so the result is that no link is known.
 */
static void timely_link_only(const struct net *net, struct timely_link_search *search)
{
	const struct net_device *only = NULL;
	struct timely_link *link;
	int bucket;

	hash_for_each_rcu(timely_links, bucket, link, hash) {
		struct net_device *dev = link->dev;

		if (!search->steps)
			goto unknown;
		search->steps--;
		if (!net_eq(dev_net(dev), net) || !netif_running(dev) || !netif_carrier_ok(dev))
			continue;
		dev = netdev_master_upper_dev_get_rcu(dev) ?: dev;
		if (only && only != dev)
			goto unknown;
		only = dev;
		timely_link_take_faster(search, link);
	}
	return;
unknown:
	search->link = NULL;
	search->kbps = 0;
}

/* Finds the link for a device that passes packets to a peer device, such as a veth: the link by
 * which these packets leave the host.
 */
static void timely_link_beyond(struct net_device *dev, struct timely_link_search *search)
{
	const struct net_device_ops *ops = dev->netdev_ops;
	struct net_device *peer = ops->ndo_get_peer_dev ? ops->ndo_get_peer_dev(dev) : NULL;
	struct net_device *master;

	if (!peer)
		return;
	master = netdev_master_upper_dev_get_rcu(peer);
	if (master)
		timely_link_below(master, search);
	if (!search->link)
		timely_link_only(dev_net(peer), search);
}

/**
 * timely_link_of() - find the link that a device's packets leave by
 * @dev: the device, such as a route's
 * @kbps: set to the rate of the link, kbit/s; 0: not known
 * @beyond: set to true if @dev has no link itself or below it, so that a link can only be found
 *	through the peer device of a veth. Packets to other containers of this host do not use that
 *	link then, and may be faster.
 *
 * The search visits up to TIMELY_LINK_STEPS devices: too slow for each packet or ACK.
 *
 * Context: RCU read lock.
 *
 * Return: the link, valid in this RCU section or for timely_link_get(); NULL if not known.
 */
struct timely_link *timely_link_of(struct net_device *dev, u32 *kbps, bool *beyond)
{
	struct timely_link_search search = { .steps = TIMELY_LINK_STEPS };

	*kbps = 0;
	*beyond = false;
	if (dev->flags & IFF_LOOPBACK)
		return NULL;
	timely_link_below(dev, &search);
	if (!search.link) {
		*beyond = true;
		timely_link_beyond(dev, &search);
	}
	*kbps = search.kbps;
	return search.link;
}
EXPORT_SYMBOL_GPL(timely_link_of);

/**
 * timely_link_get() - take a reference to a link
 * @link: the link, from timely_link_of() in the same RCU section; NULL is allowed
 *
 * The reference keeps struct timely_link, but not the device: do not use @link->dev.
 *
 * Return: @link, to be released by timely_link_put(); NULL if the link's device is gone.
 */
struct timely_link *timely_link_get(struct timely_link *link)
{
	return link && refcount_inc_not_zero(&link->ref) ? link : NULL;
}
EXPORT_SYMBOL_GPL(timely_link_get);

/* ---- events ---- */

/* A device joined or left an upper device, such as a bond. This changes the links of connections
 * only if the upper device is up and there is a link at or below the device.
 */
static void timely_link_upper_changed(struct net_device *dev, const struct net_device *upper)
{
	struct timely_link_search search = { .steps = TIMELY_LINK_STEPS };

	if (!netif_running(upper))
		return;
	rcu_read_lock();
	timely_link_below(dev, &search);
	rcu_read_unlock();
	if (search.link)
		timely_link_changed(dev_net(upper));
}

static int timely_link_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	const struct netdev_notifier_changeupper_info *upper = ptr;

	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
		timely_link_query_later(dev);
		break;
	case NETDEV_CHANGEUPPER:
		timely_link_upper_changed(dev, upper->upper_dev);
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

/**
 * timely_link_init() - start to watch for devices that come up, change or are unregistered
 *
 * The kernel repeats the events of devices that are up already for the new notifier.
 *
 * Return: 0, or a negative error code.
 */
int timely_link_init(void)
{
	return register_netdevice_notifier(&timely_link_notifier);
}

/** timely_link_exit() - remove all links; no caller of timely_link_of() is left */
void timely_link_exit(void)
{
	struct timely_link *link;
	struct hlist_node *next;
	int bucket;

	unregister_netdevice_notifier(&timely_link_notifier);
	cancel_work_sync(&timely_link_work);
	hash_for_each_safe(timely_links, bucket, next, link, hash)
		timely_link_del(link);
}
