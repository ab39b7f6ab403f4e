// SPDX-License-Identifier: GPL-2.0
/*
 * The ethtool interface: link rate, rings, interrupt moderation, counters, and timestamping
 * capabilities; and the ndo callbacks that configure hardware timestamps.
 */

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/ptp_clock_kernel.h>

#include "hwnic.h"

static void hwnic_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct hwnic *end = netdev_priv(dev);

	strscpy(info->driver, KBUILD_MODNAME, sizeof(info->driver));
	strscpy(info->bus_info, dev_name(&end->parent->dev), sizeof(info->bus_info));
	info->n_priv_flags = 1;
}

/* ---- link ---- */

static int hwnic_get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *cmd)
{
	struct hwnic *end = netdev_priv(dev);

	end->queries++;
	cmd->base.speed = end->speed_mbps;
	cmd->base.duplex = DUPLEX_FULL;
	cmd->base.port = PORT_FIBRE;
	cmd->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static int hwnic_set_link_ksettings(struct net_device *dev,
				    const struct ethtool_link_ksettings *cmd)
{
	struct hwnic *end = netdev_priv(dev);

	if (!cmd->base.speed || cmd->base.speed > HWNIC_SPEED_MBPS_MAX ||
	    cmd->base.duplex != DUPLEX_FULL || cmd->base.autoneg != AUTONEG_DISABLE)
		return -EINVAL;
	spin_lock_bh(&end->lock);
	end->speed_mbps = cmd->base.speed;
	spin_unlock_bh(&end->lock);
	/* A real NIC would negotiate and then report a change. */
	netdev_state_change(dev);
	return 0;
}

/* ---- rings, interrupt moderation ---- */

static void hwnic_get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
				struct kernel_ethtool_ringparam *kernel_ring,
				struct netlink_ext_ack *extack)
{
	struct hwnic *end = netdev_priv(dev);

	ring->tx_max_pending = HWNIC_RING_MAX;
	ring->rx_max_pending = HWNIC_RING_MAX;
	ring->tx_pending = end->tx_ring;
	ring->rx_pending = end->rx_ring;
}

static int hwnic_set_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kernel_ring,
			       struct netlink_ext_ack *extack)
{
	struct hwnic *end = netdev_priv(dev);

	if (!ring->tx_pending || !ring->rx_pending)
		return -EINVAL;
	spin_lock_bh(&end->lock);
	end->tx_ring = ring->tx_pending;
	end->rx_ring = ring->rx_pending;
	/* The queue wakes at the next completion, or now if the ring has been enlarged. */
	if (end->up && netif_queue_stopped(dev) && end->tx_used < end->tx_ring)
		netif_wake_queue(dev);
	spin_unlock_bh(&end->lock);
	return 0;
}

static int hwnic_get_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			      struct kernel_ethtool_coalesce *kernel_coalesce,
			      struct netlink_ext_ack *extack)
{
	struct hwnic *end = netdev_priv(dev);

	coalesce->rx_coalesce_usecs = end->rx_usecs;
	coalesce->rx_max_coalesced_frames = end->rx_batch_frames;
	return 0;
}

static int hwnic_set_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			      struct kernel_ethtool_coalesce *kernel_coalesce,
			      struct netlink_ext_ack *extack)
{
	struct hwnic *end = netdev_priv(dev);

	if (coalesce->rx_coalesce_usecs > HWNIC_USECS_MAX ||
	    coalesce->rx_max_coalesced_frames > HWNIC_RING_MAX)
		return -ERANGE;
	/* Without a time and without a number of frames, no interrupt would ever come. */
	if (!coalesce->rx_coalesce_usecs && !coalesce->rx_max_coalesced_frames)
		return -EINVAL;
	spin_lock_bh(&end->lock);
	end->rx_usecs = coalesce->rx_coalesce_usecs;
	end->rx_batch_frames = coalesce->rx_max_coalesced_frames;
	spin_unlock_bh(&end->lock);
	return 0;
}

/* ---- counters, flags ---- */

/* In the order of struct hwnic_counters. */
static const char hwnic_counter_names[][ETH_GSTRING_LEN] = {
	"rx_frames",
	"rx_bytes",
	"rx_stamped",
	"rx_jitter_max_ns",
	"rx_ring_drops",
	"rx_ring_max",
	"rx_length_errors",
	"rx_interrupts",
	"tx_packets",
	"tx_frames",
	"tx_bytes",
	"tx_stamped",
	"tx_ring_full",
	"tx_ring_max",
	"tx_no_memory",
	"wire_lost",
	"interrupts",
};

static const char hwnic_flag_names[][ETH_GSTRING_LEN] = {
	"bql",
};

static int hwnic_get_sset_count(struct net_device *dev, int set)
{
	BUILD_BUG_ON(ARRAY_SIZE(hwnic_counter_names) !=
		     sizeof(struct hwnic_counters) / sizeof(u64));
	switch (set) {
	case ETH_SS_STATS:
		return ARRAY_SIZE(hwnic_counter_names);
	case ETH_SS_PRIV_FLAGS:
		return ARRAY_SIZE(hwnic_flag_names);
	default:
		return -EOPNOTSUPP;
	}
}

static void hwnic_get_strings(struct net_device *dev, u32 set, u8 *data)
{
	if (set == ETH_SS_STATS)
		memcpy(data, hwnic_counter_names, sizeof(hwnic_counter_names));
	else if (set == ETH_SS_PRIV_FLAGS)
		memcpy(data, hwnic_flag_names, sizeof(hwnic_flag_names));
}

static void hwnic_get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats,
				    u64 *data)
{
	struct hwnic *end = netdev_priv(dev);

	spin_lock_bh(&end->lock);
	hwnic_catch_up(end);
	memcpy(data, &end->count, sizeof(end->count));
	spin_unlock_bh(&end->lock);
}

static u32 hwnic_get_priv_flags(struct net_device *dev)
{
	struct hwnic *end = netdev_priv(dev);

	return end->flags;
}

static int hwnic_set_priv_flags(struct net_device *dev, u32 flags)
{
	struct hwnic *end = netdev_priv(dev);

	/* Packets in the ring are not affected: hwnic_tx_cb.bql_bytes says if BQL counts them. */
	spin_lock_bh(&end->lock);
	end->flags = flags & HWNIC_FLAG_BQL;
	spin_unlock_bh(&end->lock);
	return 0;
}

/* ---- timestamps ---- */

static int hwnic_get_ts_info(struct net_device *dev, struct kernel_ethtool_ts_info *info)
{
	struct hwnic *end = netdev_priv(dev);

	end->queries++;
	info->so_timestamping = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
				SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_TX_HARDWARE |
				SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
	info->tx_types = BIT(HWTSTAMP_TX_OFF) | BIT(HWTSTAMP_TX_ON);
	info->rx_filters = BIT(HWTSTAMP_FILTER_NONE) | BIT(HWTSTAMP_FILTER_PTP_V2_EVENT);
	if (end->stamp_all)
		info->rx_filters |= BIT(HWTSTAMP_FILTER_ALL);
	info->phc_index = end->ptp ? ptp_clock_index(end->ptp) : -1;
	return 0;
}

/* Returns the narrowest filter of this NIC that covers all wanted frames, or -ERANGE. */
static int hwnic_filter_for(const struct hwnic *end, int wanted)
{
	switch (wanted) {
	case HWTSTAMP_FILTER_NONE:
		return HWTSTAMP_FILTER_NONE;
	case HWTSTAMP_FILTER_PTP_V2_EVENT:
	case HWTSTAMP_FILTER_PTP_V2_SYNC:
	case HWTSTAMP_FILTER_PTP_V2_DELAY_REQ:
	case HWTSTAMP_FILTER_PTP_V2_L2_EVENT:
	case HWTSTAMP_FILTER_PTP_V2_L2_SYNC:
	case HWTSTAMP_FILTER_PTP_V2_L2_DELAY_REQ:
	case HWTSTAMP_FILTER_PTP_V2_L4_EVENT:
	case HWTSTAMP_FILTER_PTP_V2_L4_SYNC:
	case HWTSTAMP_FILTER_PTP_V2_L4_DELAY_REQ:
		return HWTSTAMP_FILTER_PTP_V2_EVENT;
	default:
		return end->stamp_all ? HWTSTAMP_FILTER_ALL : -ERANGE;
	}
}

int hwnic_hwtstamp_get(struct net_device *dev, struct kernel_hwtstamp_config *config)
{
	struct hwnic *end = netdev_priv(dev);

	config->flags = 0;
	config->tx_type = end->tx_type;
	config->rx_filter = end->rx_filter;
	return 0;
}

int hwnic_hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *config,
		       struct netlink_ext_ack *extack)
{
	struct hwnic *end = netdev_priv(dev);
	int rx_filter;

	if (config->flags)
		return -EINVAL;
	if (config->tx_type != HWTSTAMP_TX_OFF && config->tx_type != HWTSTAMP_TX_ON)
		return -ERANGE;
	spin_lock_bh(&end->lock);
	rx_filter = hwnic_filter_for(end, config->rx_filter);
	if (rx_filter >= 0) {
		/* Frames that have arrived by now are timestamped by the old filter. */
		hwnic_catch_up(end);
		end->rx_filter = rx_filter;
		end->tx_type = config->tx_type;
		config->rx_filter = rx_filter;
	}
	spin_unlock_bh(&end->lock);
	return min(rx_filter, 0);
}

const struct ethtool_ops hwnic_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS |
				     ETHTOOL_COALESCE_RX_MAX_FRAMES,
	.get_drvinfo = hwnic_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = hwnic_get_link_ksettings,
	.set_link_ksettings = hwnic_set_link_ksettings,
	.get_ringparam = hwnic_get_ringparam,
	.set_ringparam = hwnic_set_ringparam,
	.get_coalesce = hwnic_get_coalesce,
	.set_coalesce = hwnic_set_coalesce,
	.get_sset_count = hwnic_get_sset_count,
	.get_strings = hwnic_get_strings,
	.get_ethtool_stats = hwnic_get_ethtool_stats,
	.get_priv_flags = hwnic_get_priv_flags,
	.set_priv_flags = hwnic_set_priv_flags,
	.get_ts_info = hwnic_get_ts_info,
};
