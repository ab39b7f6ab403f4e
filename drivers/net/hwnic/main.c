// SPDX-License-Identifier: GPL-2.0
/*
 * Creates and deletes pairs of test NICs, opens and closes them, and processes their events.
 *
 *	ip link add hw0 type hwnic
 *
 * creates hw0 and the other end of the cable, hw0p. (ip accepts `peer name` only for device kinds
 * that it was built with.) Both ends may be renamed and moved to other network namespaces. Deleting
 * one end deletes the other.
 *
 * For tests only: one queue, and every packet and setting is trusted.
 */

#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <net/rtnetlink.h>

#include "hwnic.h"

#define HWNIC_FEATURES	(NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | NETIF_F_HIGHDMA | \
			 NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN | NETIF_F_GSO_UDP_L4 | \
			 NETIF_F_HW_VLAN_CTAG_TX | NETIF_F_HW_VLAN_CTAG_RX)

/* Start times of the PTP clocks, far from 0, from today and from each other: a test that confuses
 * two clocks fails.
 */
#define HWNIC_EPOCH_NS		(1000000000ULL * NSEC_PER_SEC)
#define HWNIC_PEER_EPOCH_NS	(1200000000ULL * NSEC_PER_SEC)

/* Largest age of the reference point of struct hwnic_phc: bounds the work of hwnic_phc_ns(). */
#define HWNIC_PHC_AGE_NS	NSEC_PER_SEC

static struct rtnl_link_ops hwnic_link_ops;

/* ---- events ---- */

/**
 * hwnic_catch_up() - process all departures and arrivals up to now
 * @end: the end, locked
 *
 * Return: the present time, CLOCK_MONOTONIC.
 */
u64 hwnic_catch_up(struct hwnic *end)
{
	u64 now_ns = ktime_get_ns();

	hwnic_tx_catch_up(end, now_ns);
	hwnic_rx_catch_up(end, now_ns);
	if (now_ns - end->phc.mono_ns > HWNIC_PHC_AGE_NS)
		hwnic_phc_move(&end->phc, now_ns);
	return now_ns;
}

/* When the next packet has left or the next frame is due, CLOCK_MONOTONIC; U64_MAX: never. */
static u64 hwnic_next_ns(struct hwnic *end)
{
	struct sk_buff *skb = skb_peek(&end->tx_done) ?: skb_peek(&end->tx_pending);
	u64 next_ns = hwnic_rx_next_ns(end);

	return skb ? min(next_ns, hwnic_tx_cb(skb)->done_ns) : next_ns;
}

/**
 * hwnic_arm() - set the timer to the next event
 * @end: the end, locked
 */
void hwnic_arm(struct hwnic *end)
{
	u64 next_ns = hwnic_next_ns(end);

	if (!end->up || next_ns >= end->armed_ns)
		return;
	end->armed_ns = next_ns;
	hrtimer_start(&end->timer, ns_to_ktime(next_ns), HRTIMER_MODE_ABS);
}

/* The timer's function. Runs in hard interrupt context, like the interrupt of a NIC, so that NAPI
 * polls at the end of this interrupt. A timer in softirq context would delay the poll until the
 * next softirq run. Takes no lock.
 */
static enum hrtimer_restart hwnic_interrupt(struct hrtimer *timer)
{
	struct hwnic *end = container_of(timer, struct hwnic, timer);

	end->count.interrupts++;
	napi_schedule(&end->napi);
	return HRTIMER_NORESTART;
}

/* Processes all events up to now, frees sent packets and delivers received frames. */
static int hwnic_poll(struct napi_struct *napi, int budget)
{
	struct hwnic *end = container_of(napi, struct hwnic, napi);
	struct sk_buff_head done, due;
	u64 now_ns;
	int taken;

	__skb_queue_head_init(&done);
	__skb_queue_head_init(&due);
	spin_lock_bh(&end->lock);
	now_ns = hwnic_catch_up(end);
	if (end->armed_ns <= now_ns)
		end->armed_ns = U64_MAX;
	hwnic_tx_complete(end, &done);
	taken = hwnic_rx_take(end, now_ns, budget, &due);
	spin_unlock_bh(&end->lock);

	hwnic_tx_free(end, &done, budget);
	hwnic_rx_deliver(end, &due);
	if (taken < budget) {
		napi_complete_done(napi, taken);
		spin_lock_bh(&end->lock);
		hwnic_arm(end);
		spin_unlock_bh(&end->lock);
	}
	return taken;
}

/* ---- open and close ---- */

static int hwnic_open(struct net_device *dev)
{
	struct hwnic *end = netdev_priv(dev);
	struct hwnic *peer = rtnl_dereference(end->peer);

	hwnic_phc_again(end, true);
	napi_enable(&end->napi);
	spin_lock_bh(&end->lock);
	end->armed_ns = U64_MAX;
	end->up = true;
	spin_unlock_bh(&end->lock);
	netif_start_queue(dev);
	if (peer && peer->up) {
		netif_carrier_on(dev);
		netif_carrier_on(peer->dev);
	}
	return 0;
}

static int hwnic_stop(struct net_device *dev)
{
	struct hwnic *end = netdev_priv(dev);
	struct hwnic *peer = rtnl_dereference(end->peer);

	netif_stop_queue(dev);
	netif_carrier_off(dev);
	if (peer)
		netif_carrier_off(peer->dev);
	/* hwnic_arm() does nothing from here on. */
	spin_lock_bh(&end->lock);
	end->up = false;
	spin_unlock_bh(&end->lock);
	napi_disable(&end->napi);
	hrtimer_cancel(&end->timer);

	spin_lock_bh(&end->lock);
	hwnic_tx_flush(end);
	hwnic_rx_flush(end);
	spin_unlock_bh(&end->lock);
	hwnic_phc_again(end, false);
	return 0;
}

static void hwnic_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct hwnic *end = netdev_priv(dev);

	spin_lock_bh(&end->lock);
	hwnic_catch_up(end);
	stats->rx_packets = end->count.rx_frames;
	stats->rx_bytes = end->count.rx_bytes;
	stats->rx_dropped = end->count.rx_ring_drops;
	stats->rx_length_errors = end->count.rx_length_errors;
	stats->rx_errors = end->count.rx_length_errors;
	stats->tx_packets = end->count.tx_frames;
	stats->tx_bytes = end->count.tx_bytes;
	stats->tx_dropped = end->count.tx_no_memory;
	spin_unlock_bh(&end->lock);
}

/* The NIC needs no list of addresses: it receives all frames, and the stack drops those that are
 * for other addresses.
 */
static void hwnic_set_rx_mode(struct net_device *dev)
{
}

/* ---- creation and deletion ---- */

/* Undoes hwnic_init(). */
static void hwnic_release(struct hwnic *end)
{
	hwnic_truth_remove(end);
	hwnic_phc_unregister(end);
	platform_device_unregister(end->parent);
	kvfree(end->flow_host_ns);
}

/* The net device and its PTP clock have the same parent device, as for real NICs: each can be found
 * from the other.
 */
static int hwnic_init(struct net_device *dev)
{
	struct hwnic *end = netdev_priv(dev);
	u64 epoch_ns = rtnl_dereference(end->peer) ? HWNIC_EPOCH_NS : HWNIC_PEER_EPOCH_NS;
	int err;

	end->flow_host_ns = kvcalloc(HWNIC_FLOWS, sizeof(*end->flow_host_ns), GFP_KERNEL);
	if (!end->flow_host_ns)
		return -ENOMEM;
	end->parent = platform_device_register_simple(KBUILD_MODNAME, PLATFORM_DEVID_AUTO,
						      NULL, 0);
	if (IS_ERR(end->parent)) {
		kvfree(end->flow_host_ns);
		return PTR_ERR(end->parent);
	}
	SET_NETDEV_DEV(dev, &end->parent->dev);
	err = hwnic_phc_register(end, epoch_ns);
	hwnic_truth_create(end);
	/* A fixed seed: the same random delays in each run. */
	prandom_seed_state(&end->jitter, epoch_ns);
	if (err)
		hwnic_release(end);
	return err;
}

/* Called when no reader of the sysfs files is left, or if registration fails after hwnic_init(). */
static void hwnic_destructor(struct net_device *dev)
{
	hwnic_release(netdev_priv(dev));
}

static const struct net_device_ops hwnic_netdev_ops = {
	.ndo_init = hwnic_init,
	.ndo_open = hwnic_open,
	.ndo_stop = hwnic_stop,
	.ndo_start_xmit = hwnic_xmit,
	.ndo_get_stats64 = hwnic_get_stats64,
	.ndo_set_rx_mode = hwnic_set_rx_mode,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_features_check = passthru_features_check,
	HWNIC_HWTSTAMP_NDOS,
};

static void hwnic_setup(struct net_device *dev)
{
	struct hwnic *end = netdev_priv(dev);

	ether_setup(dev);
	dev->netdev_ops = &hwnic_netdev_ops;
	dev->ethtool_ops = &hwnic_ethtool_ops;
	dev->priv_destructor = hwnic_destructor;
	dev->needs_free_netdev = true;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	dev->max_mtu = ETH_MAX_MTU;
	/* LRO can be set, for tests of programs that look at the setting, and merges nothing. */
	dev->hw_features = HWNIC_FEATURES | NETIF_F_LRO;
	dev->features = HWNIC_FEATURES;
	dev->vlan_features = HWNIC_FEATURES & ~(NETIF_F_HW_VLAN_CTAG_TX |
						NETIF_F_HW_VLAN_CTAG_RX);
	dev->sysfs_groups[0] = &hwnic_sysfs_group;

	end->dev = dev;
	spin_lock_init(&end->lock);
	mutex_init(&end->truth_lock);
	hrtimer_setup(&end->timer, hwnic_interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	__skb_queue_head_init(&end->tx_pending);
	__skb_queue_head_init(&end->tx_done);
	__skb_queue_head_init(&end->wire);
	end->hosts = RB_ROOT_CACHED;
	end->armed_ns = U64_MAX;
	end->flags = HWNIC_FLAG_BQL;
	end->speed_mbps = SPEED_10000;
	end->tx_ring = HWNIC_TX_RING;
	end->rx_ring = HWNIC_RX_RING;
	end->rx_batch_frames = 1;
	end->stamp_all = true;
	end->rx_filter = HWTSTAMP_FILTER_NONE;
	end->tx_type = HWTSTAMP_TX_OFF;
	end->truth.types = BIT(HWNIC_TRUTH_R) | BIT(HWNIC_TRUTH_T) | BIT(HWNIC_TRUTH_Q);
}

static int hwnic_register(struct net_device *dev)
{
	struct hwnic *end = netdev_priv(dev);
	int err;

	netif_carrier_off(dev);
	netif_napi_add(dev, &end->napi, hwnic_poll);
	err = register_netdevice(dev);
	if (err)
		netif_napi_del(&end->napi);
	return err;
}

/* The peer of hw0 is hw0p. If that name is too long or taken, the peer is the next hwnicN. */
static struct net_device *hwnic_new_peer(struct net_device *dev)
{
	struct net_device *peer;
	char name[IFNAMSIZ];

	if (snprintf(name, sizeof(name), "%sp", dev->name) >= sizeof(name) ||
	    __dev_get_by_name(dev_net(dev), name))
		strscpy(name, KBUILD_MODNAME "%d", sizeof(name));
	peer = alloc_netdev(sizeof(struct hwnic), name, NET_NAME_ENUM, hwnic_setup);
	if (!peer)
		return NULL;
	dev_net_set(peer, dev_net(dev));
	eth_hw_addr_random(peer);
	peer->rtnl_link_ops = &hwnic_link_ops;
	return peer;
}

DEFINE_NEWLINK(hwnic_newlink)
{
	struct hwnic *end = netdev_priv(dev);
	struct net_device *peer;
	int err;

	/* The peer's name is derived from this device's, which may still be a pattern. */
	err = strchr(dev->name, '%') ? dev_alloc_name(dev, dev->name) : 0;
	if (err < 0)
		return err;
	peer = hwnic_new_peer(dev);
	if (!peer)
		return -ENOMEM;
	err = hwnic_register(peer);
	if (err) {
		free_netdev(peer);
		return err;
	}
	if (is_zero_ether_addr(dev->dev_addr))
		eth_hw_addr_random(dev);
	rcu_assign_pointer(end->peer, netdev_priv(peer));
	err = hwnic_register(dev);
	if (err) {
		unregister_netdevice(peer);
		return err;
	}
	rcu_assign_pointer(((struct hwnic *)netdev_priv(peer))->peer, end);
	return 0;
}

static void hwnic_dellink(struct net_device *dev, struct list_head *head)
{
	struct hwnic *end = netdev_priv(dev);
	struct hwnic *peer = rtnl_dereference(end->peer);

	/* The peer is NULL if the same batch of deletions contained it. */
	RCU_INIT_POINTER(end->peer, NULL);
	unregister_netdevice_queue(dev, head);
	if (!peer)
		return;
	RCU_INIT_POINTER(peer->peer, NULL);
	unregister_netdevice_queue(peer->dev, head);
}

static struct rtnl_link_ops hwnic_link_ops = {
	.kind = KBUILD_MODNAME,
	.priv_size = sizeof(struct hwnic),
	.setup = hwnic_setup,
	.newlink = hwnic_newlink,
	.dellink = hwnic_dellink,
};

static int __init hwnic_module_init(void)
{
	int err;

	hwnic_truth_init();
	err = rtnl_link_register(&hwnic_link_ops);
	if (err)
		hwnic_truth_exit();
	return err;
}

/* Unregistering the kind deletes all pairs. */
static void __exit hwnic_module_exit(void)
{
	rtnl_link_unregister(&hwnic_link_ops);
	hwnic_truth_exit();
}

module_init(hwnic_module_init);
module_exit(hwnic_module_exit);
MODULE_ALIAS_RTNL_LINK("hwnic");
MODULE_DESCRIPTION("A pair of NICs with hardware timestamps, for tests");
MODULE_LICENSE("GPL");
