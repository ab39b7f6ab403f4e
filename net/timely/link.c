// SPDX-License-Identifier: GPL-2.0
/*
 * Links: how fast the line is that a connection leaves by, and how many connections have
 * something to send on it, in all network namespaces.
 *
 * A driver tells its link's speed under RTNL only, which the path of an ACK cannot take.
 * So the driver is asked when its device comes up or changes, and the answer is kept here,
 * to be read under RCU. An event of a device concerns that device only; devices without
 * hardware below them, which any user can create in a user namespace, are not looked at.
 *
 * What a veth, a tunnel or a bridge says of its own speed is made up. Of a VLAN, a
 * macvlan, a bond, a bridge and such, the lines are those of the devices below, and the
 * fastest of them is the line. A veth, a container's most often, leads to its peer. Where
 * the peer is enslaved to a bridge the line is the fastest below the bridge. Else routes
 * decide, and the line is known if the peer's namespace has one NIC that is up, or one
 * bond of such. Elsewhere the line is not known.
 *
 * A NIC whose stamps are in use may have been given another speed (timelyctl nic), which
 * goes before the driver's.
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

/* Beyond this a speed in kbit/s is no number of 32 bits, and SPEED_UNKNOWN. */
#define TIMELY_LINK_MAX_MBPS	(U32_MAX / 1000)

/* Devices looked at for one answer; the line of a bridge of more ports may remain unknown. */
#define TIMELY_LINK_STEPS	256

/* Written under RTNL. */
static DEFINE_HASHTABLE(timely_links, 6);

u32 timely_link_epoch;
EXPORT_SYMBOL_GPL(timely_link_epoch);

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
 * timely_link_changed() - the line of a device may be another than before; under RTNL
 * @net: the device's network namespace
 *
 * All connections of the host look at their lines again. Who administers a namespace
 * without being the host's administrator could make them do so in a loop: such
 * namespaces' connections look by themselves, see TIMELY_LINK_LOOK.
 */
void timely_link_changed(const struct net *net)
{
	if (net->user_ns == &init_user_ns)
		WRITE_ONCE(timely_link_epoch, timely_link_epoch + 1);
}

/**
 * timely_link_put() - give a reference back
 * @link: from timely_link_get(); NULL is allowed
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

static void timely_link_read(struct timely_link *link)
{
	struct net_device *dev = link->dev;
	struct ethtool_link_ksettings settings;
	u32 kbps = 0;

	if (!netif_running(dev))
		return;
	if (!__ethtool_get_link_ksettings(dev, &settings) &&
	    settings.base.speed <= TIMELY_LINK_MAX_MBPS)
		kbps = settings.base.speed * 1000;
	timely_nic_look(dev, kbps);
	if (link->kbps == kbps)
		return;
	WRITE_ONCE(link->kbps, kbps);
	timely_link_changed(dev_net(dev));
}

/* Drivers are not asked in the notifier, where some kernels hold the device's own lock and
 * some do not.
 */
static void timely_link_read_fn(struct work_struct *work)
{
	struct timely_link *link;
	int bucket;

	rtnl_lock();
	hash_for_each(timely_links, bucket, link, hash)
		if (link->due) {
			link->due = false;
			timely_link_read(link);
		}
	rtnl_unlock();
}

static DECLARE_WORK(timely_link_work, timely_link_read_fn);

/* The device came up or changed: its driver is to be asked. */
static void timely_link_due(struct net_device *dev)
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

static void timely_link_forget(const struct net_device *dev)
{
	struct timely_link *link = timely_link_find(dev);

	if (!link)
		return;
	timely_link_del(link);
	timely_link_changed(dev_net(dev));
}

/* ---- readers ---- */

/**
 * struct timely_link_search - which line do packets leave by?
 * @link: the best link so far, NULL if none was found
 * @kbps: the speed of @link
 * @steps: devices that may still be looked at
 */
struct timely_link_search {
	struct timely_link *link;
	u32 kbps;
	u32 steps;
};

/* A user's word for a link's speed, or the driver's. */
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

static int timely_link_consider(struct net_device *dev, struct netdev_nested_priv *priv)
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

/* The device's own link if its speed is known, or else the fastest below. */
static void timely_link_below(struct net_device *dev, struct timely_link_search *search)
{
	struct netdev_nested_priv priv = { .data = search };

	timely_link_consider(dev, &priv);
	if (!search->kbps)
		netdev_walk_all_lower_dev_rcu(dev, timely_link_consider, &priv);
}

/* The only link of a namespace that is up; or the fastest of those that are enslaved to the
 * only master.
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

/* The other end of a veth: where do packets go that arrive there? */
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
 * timely_link_of() - which line do packets leave by that are sent by a device?
 * @dev: the device, that of a route perhaps; under RCU
 * @kbps: set to the line's speed, kbit/s, 0 if that is not known
 * @beyond: set if the line is not below @dev, but where a veth leads to; what stays on the
 *	host does not leave by it, and may be faster
 *
 * At most TIMELY_LINK_STEPS devices are looked at: not for each packet or ACK.
 *
 * Return: the link, for the rest of the RCU section or for timely_link_get(); NULL if it
 * is not known.
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
 * timely_link_get() - keep a link
 * @link: from timely_link_of(), in the same RCU section; NULL is allowed
 *
 * The reference keeps the record, not the device.
 *
 * Return: @link, to be given to timely_link_put(); NULL if its device is gone.
 */
struct timely_link *timely_link_get(struct timely_link *link)
{
	return link && refcount_inc_not_zero(&link->ref) ? link : NULL;
}
EXPORT_SYMBOL_GPL(timely_link_get);

/* ---- events ---- */

/* A device was enslaved or released. Of a device that is not up nobody's packets leave. */
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
		timely_link_due(dev);
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
	cancel_work_sync(&timely_link_work);
	hash_for_each_safe(timely_links, bucket, next, link, hash)
		timely_link_del(link);
}
