// SPDX-License-Identifier: GPL-2.0
/*
 * What a device's driver reports, and the setting that selects which received packets the device
 * timestamps.
 *
 * The program uses ioctl(), which every kernel and every driver supports. The newer netlink
 * requests call the same functions of drivers and need the same privileges.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "timelyctl.h"

#define BIT(n) (1U << (n))

static int device_ioctl(int fd, const char *name, unsigned long request, void *data)
{
	struct ifreq ifr = {};

	/* Names from the kernel fit. */
	memcpy(ifr.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	ifr.ifr_data = data;
	return ioctl(fd, request, &ifr) < 0 ? -errno : 0;
}

static int ethtool(int fd, const char *name, void *command)
{
	return device_ioctl(fd, name, SIOCETHTOOL, command);
}

/* Any socket can be used for these requests. */
int hardware_open(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	/* The kernel may be built without IPv4. */
	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int hardware_get_config(int fd, const char *name, struct hwtstamp_config *config)
{
	memset(config, 0, sizeof(*config));
	return device_ioctl(fd, name, SIOCGHWTSTAMP, config);
}

/* Set a configuration; @config is changed to the one that the driver has chosen. */
int hardware_set_config(int fd, const char *name, struct hwtstamp_config *config)
{
	return device_ioctl(fd, name, SIOCSHWTSTAMP, config);
}

static void get_stamping(int fd, const char *name, struct hardware *hw)
{
	struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };
	unsigned int all = BIT(HWTSTAMP_FILTER_ALL);
	unsigned int raw = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;

	hw->phc = -1;
	hw->config_err = hardware_get_config(fd, name, &hw->config);
	if (ethtool(fd, name, &info))
		return;
	hw->phc = info.phc_index;
	hw->tx_on = info.tx_types & BIT(HWTSTAMP_TX_ON);
	hw->can_stamp_tx = info.so_timestamping & SOF_TIMESTAMPING_TX_HARDWARE;
	if (info.so_timestamping & SOF_TIMESTAMPING_RX_SOFTWARE)
		hw->can_stamp = CAN_STAMP_SOFTWARE;
	if ((info.so_timestamping & raw) != raw)
		return;
	if (info.rx_filters & all)
		hw->can_stamp = CAN_STAMP_ALL;
	else if (info.rx_filters & ~BIT(HWTSTAMP_FILTER_NONE))
		hw->can_stamp = CAN_STAMP_PTP;
	/* Some drivers report less than they can do. */
	if (!hw->config_err && hw->config.rx_filter == HWTSTAMP_FILTER_ALL)
		hw->can_stamp = CAN_STAMP_ALL;
}

/* The link modes follow the fixed part, with a number of words that depends on the kernel. */
static void get_speed(int fd, const char *name, struct hardware *hw)
{
	union {
		struct ethtool_link_settings settings;
		__u32 words[sizeof(struct ethtool_link_settings) / 4 + 3 * 127];
	} link = { .settings = { .cmd = ETHTOOL_GLINKSETTINGS } };
	struct ethtool_link_settings *settings = &link.settings;

	/* A request with 0 words is answered with their number as a negative value. */
	if (ethtool(fd, name, settings) || settings->link_mode_masks_nwords >= 0)
		return;
	settings->link_mode_masks_nwords = -settings->link_mode_masks_nwords;
	settings->cmd = ETHTOOL_GLINKSETTINGS;
	if (ethtool(fd, name, settings) || settings->speed == (__u32)SPEED_UNKNOWN)
		return;
	hw->speed_mbps = settings->speed;
}

static void get_coalescing(int fd, const char *name, struct hardware *hw)
{
	struct ethtool_coalesce coalesce = { .cmd = ETHTOOL_GCOALESCE };

	if (ethtool(fd, name, &coalesce))
		return;
	hw->coalesce = true;
	hw->adaptive_rx = coalesce.use_adaptive_rx_coalesce;
	hw->rx_usecs = coalesce.rx_coalesce_usecs;
	hw->rx_frames = coalesce.rx_max_coalesced_frames;
}

static void get_queues(int fd, const char *name, struct hardware *hw)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };

	if (!ethtool(fd, name, &channels))
		hw->queues = channels.combined_count + channels.tx_count;
}

static unsigned int count_features(int fd, const char *name)
{
	union {
		struct ethtool_sset_info info;
		__u32 words[sizeof(struct ethtool_sset_info) / 4 + 1];
	} sset = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES } };

	if (ethtool(fd, name, &sset) || !sset.info.sset_mask)
		return 0;
	return sset.info.data[0];
}

/* Is the offload @wanted on? 1, 0, or -1 if the kernel does not have it. */
static int feature(const struct ethtool_gstrings *names, const struct ethtool_gfeatures *blocks,
		   const char *wanted)
{
	for (unsigned int i = 0; i < names->len; i++) {
		const char *name = (const char *)names->data + i * ETH_GSTRING_LEN;

		if (strncmp(name, wanted, ETH_GSTRING_LEN) == 0)
			return !!(blocks->features[i / 32].active & BIT(i % 32));
	}
	return -1;
}

/* Read the offloads, whose names the kernel reports. */
static void get_offloads(int fd, const char *name, struct hardware *hw)
{
	unsigned int count = count_features(fd, name);
	unsigned int words = (count + 31) / 32;
	struct ethtool_gstrings *names;
	struct ethtool_gfeatures *blocks;

	hw->gro = -1;
	hw->tso = -1;
	hw->lro = -1;
	hw->gro_hw = -1;
	if (!count || count > 4096)
		return;
	names = calloc(1, sizeof(*names) + (size_t)count * ETH_GSTRING_LEN);
	blocks = calloc(1, sizeof(*blocks) + words * sizeof(blocks->features[0]));
	if (!names || !blocks)
		out_of_memory();
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_FEATURES;
	names->len = count;
	blocks->cmd = ETHTOOL_GFEATURES;
	blocks->size = words;
	if (!ethtool(fd, name, names) && !ethtool(fd, name, blocks) && names->len <= count &&
	    names->len <= blocks->size * 32) {
		hw->gro = feature(names, blocks, "rx-gro");
		hw->tso = feature(names, blocks, "tx-tcp-segmentation");
		hw->lro = feature(names, blocks, "rx-lro");
		hw->gro_hw = feature(names, blocks, "rx-gro-hw");
	}
	free(names);
	free(blocks);
}

/*
 * Ask the driver of a device. There is no error: what the driver does not report gets the value
 * that struct hardware has for "not known".
 */
void hardware_get(int fd, const char *name, struct hardware *hw)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };

	memset(hw, 0, sizeof(*hw));
	if (!ethtool(fd, name, &driver))
		memcpy(hw->driver, driver.driver, sizeof(hw->driver) - 1);
	get_stamping(fd, name, hw);
	get_speed(fd, name, hw);
	get_queues(fd, name, hw);
	get_coalescing(fd, name, hw);
	get_offloads(fd, name, hw);
}

/* Names as ethtool -T prints them. */
const char *filter_name(int filter)
{
	static const char * const names[] = {
		[HWTSTAMP_FILTER_NONE] = "none",
		[HWTSTAMP_FILTER_ALL] = "all",
		[HWTSTAMP_FILTER_SOME] = "some",
		[HWTSTAMP_FILTER_PTP_V1_L4_EVENT] = "ptpv1-l4-event",
		[HWTSTAMP_FILTER_PTP_V1_L4_SYNC] = "ptpv1-l4-sync",
		[HWTSTAMP_FILTER_PTP_V1_L4_DELAY_REQ] = "ptpv1-l4-delay-req",
		[HWTSTAMP_FILTER_PTP_V2_L4_EVENT] = "ptpv2-l4-event",
		[HWTSTAMP_FILTER_PTP_V2_L4_SYNC] = "ptpv2-l4-sync",
		[HWTSTAMP_FILTER_PTP_V2_L4_DELAY_REQ] = "ptpv2-l4-delay-req",
		[HWTSTAMP_FILTER_PTP_V2_L2_EVENT] = "ptpv2-l2-event",
		[HWTSTAMP_FILTER_PTP_V2_L2_SYNC] = "ptpv2-l2-sync",
		[HWTSTAMP_FILTER_PTP_V2_L2_DELAY_REQ] = "ptpv2-l2-delay-req",
		[HWTSTAMP_FILTER_PTP_V2_EVENT] = "ptpv2-event",
		[HWTSTAMP_FILTER_PTP_V2_SYNC] = "ptpv2-sync",
		[HWTSTAMP_FILTER_PTP_V2_DELAY_REQ] = "ptpv2-delay-req",
		[HWTSTAMP_FILTER_NTP_ALL] = "ntp-all",
	};

	if (filter < 0 || filter >= (int)ARRAY_SIZE(names))
		return "unknown";
	return names[filter];
}

const char *tx_name(int tx_type)
{
	static const char * const names[] = {
		[HWTSTAMP_TX_OFF] = "off",
		[HWTSTAMP_TX_ON] = "on",
		[HWTSTAMP_TX_ONESTEP_SYNC] = "onestep-sync",
		[HWTSTAMP_TX_ONESTEP_P2P] = "onestep-p2p",
	};

	if (tx_type < 0 || tx_type >= (int)ARRAY_SIZE(names))
		return "unknown";
	return names[tx_type];
}
