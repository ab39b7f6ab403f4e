// SPDX-License-Identifier: GPL-2.0
/*
 * A NIC that timestamps packets in hardware: turning timestamps on, and reading the NIC's clock
 * beside the system clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "clockd.h"

/* Readings for one cross-timestamp, of which the fastest is used. */
#define READINGS	5

static int device_ioctl(const char *name, unsigned long request, void *data)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct ifreq ifr = { .ifr_data = data };

	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memcpy(ifr.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	if (ioctl(fd, request, &ifr))
		err = -errno;
	close(fd);
	return err;
}

/* The number of the PTP clock, if the NIC can timestamp all packets in both directions. */
static int nic_phc(const char *name)
{
	struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };
	unsigned int all = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_TX_HARDWARE |
			   SOF_TIMESTAMPING_RAW_HARDWARE;
	int err = device_ioctl(name, SIOCETHTOOL, &info);

	if (err)
		return err;
	if ((info.so_timestamping & all) != all || info.phc_index < 0 ||
	    !(info.rx_filters & 1U << HWTSTAMP_FILTER_ALL) ||
	    !(info.tx_types & 1U << HWTSTAMP_TX_ON))
		return -EOPNOTSUPP;
	return info.phc_index;
}

bool nic_usable(const char *name)
{
	return nic_phc(name) >= 0;
}

/* Turn timestamps of all packets on, unless they are. */
static int nic_enable(struct nic *nic)
{
	struct hwtstamp_config config = {};
	int err = device_ioctl(nic->name, SIOCGHWTSTAMP, &config);

	if (!err && config.rx_filter == HWTSTAMP_FILTER_ALL && config.tx_type == HWTSTAMP_TX_ON)
		return 0;
	if (!nic->changed) {
		nic->rx_filter = err ? HWTSTAMP_FILTER_NONE : config.rx_filter;
		nic->tx_type = err ? HWTSTAMP_TX_OFF : config.tx_type;
	}
	config = (struct hwtstamp_config){
		.rx_filter = HWTSTAMP_FILTER_ALL,
		.tx_type = HWTSTAMP_TX_ON,
	};
	err = device_ioctl(nic->name, SIOCSHWTSTAMP, &config);
	if (err)
		return err;
	nic->changed = true;
	return config.rx_filter == HWTSTAMP_FILTER_ALL ? 0 : -EOPNOTSUPP;
}

void nic_close(struct nic *nic)
{
	struct hwtstamp_config config = { .rx_filter = nic->rx_filter, .tx_type = nic->tx_type };
	char name[IFNAMSIZ];

	if (nic->fd >= 0)
		close(nic->fd);
	/* The NIC may have another name now, and another NIC its name. */
	if (nic->changed && if_indextoname(nic->ifindex, name))
		device_ioctl(name, SIOCSHWTSTAMP, &config);
	nic->changed = false;
	nic->fd = -1;
}

static uint64_t time_of(const struct ptp_clock_time *time)
{
	return time->sec * NS_PER_S + time->nsec;
}

static int read_precise(struct nic *nic, struct cross *cross)
{
	struct ptp_sys_offset_precise offset = {};

	if (ioctl(nic->fd, PTP_SYS_OFFSET_PRECISE, &offset))
		return -errno;
	cross->nic_ns = time_of(&offset.device);
	cross->before_ns = time_of(&offset.sys_realtime);
	cross->after_ns = cross->before_ns;
	return 0;
}

/* A reading that any other one replaces. */
#define NO_READING	((struct cross){ .after_ns = UINT64_MAX })

/* Keep the reading that took the shorter time. */
static void keep_shorter(struct cross *cross, const struct ptp_clock_time *before,
			 const struct ptp_clock_time *nic, const struct ptp_clock_time *after)
{
	struct cross next = { time_of(before), time_of(nic), time_of(after) };

	if (next.after_ns - next.before_ns < cross->after_ns - cross->before_ns)
		*cross = next;
}

static int read_extended(struct nic *nic, struct cross *cross)
{
	struct ptp_sys_offset_extended offset = { .n_samples = READINGS };

	if (ioctl(nic->fd, PTP_SYS_OFFSET_EXTENDED, &offset))
		return -errno;
	*cross = NO_READING;
	for (int i = 0; i < READINGS; i++)
		keep_shorter(cross, &offset.ts[i][0], &offset.ts[i][1], &offset.ts[i][2]);
	return cross->after_ns == UINT64_MAX ? -EIO : 0;
}

/* For drivers that have no better way to read the clock. */
static int read_basic(struct nic *nic, struct cross *cross)
{
	struct ptp_sys_offset offset = { .n_samples = READINGS };

	if (ioctl(nic->fd, PTP_SYS_OFFSET, &offset))
		return -errno;
	*cross = NO_READING;
	for (int i = 0; i < READINGS; i++)
		keep_shorter(cross, &offset.ts[2 * i], &offset.ts[2 * i + 1],
			     &offset.ts[2 * i + 2]);
	return cross->after_ns == UINT64_MAX ? -EIO : 0;
}

int nic_read(struct nic *nic, struct cross *cross)
{
	if (nic->precise && !read_precise(nic, cross))
		return 0;
	nic->precise = false;
	return read_extended(nic, cross) ? read_basic(nic, cross) : 0;
}

int nic_open(struct nic *nic, const char *name)
{
	struct cross cross;
	char path[32];
	int err;

	*nic = (struct nic){ .fd = -1, .precise = true };
	memccpy(nic->name, name, 0, IFNAMSIZ - 1);
	nic->ifindex = if_nametoindex(name);
	if (!nic->ifindex)
		return -ENODEV;
	nic->phc = nic_phc(name);
	if (nic->phc < 0)
		return nic->phc;
	err = nic_enable(nic);
	snprintf(path, sizeof(path), "/dev/ptp%d", nic->phc);
	if (!err) {
		nic->fd = open(path, O_RDONLY | O_CLOEXEC);
		err = nic->fd < 0 ? -errno : nic_read(nic, &cross);
	}
	if (err)
		nic_close(nic);
	return err;
}

int nic_check(struct nic *nic)
{
	int phc = nic_phc(nic->name);

	if (phc < 0)
		return phc;
	/* A NIC that was replaced has another index or clock; a bond may change its clock. */
	if (phc != nic->phc || if_nametoindex(nic->name) != (unsigned int)nic->ifindex)
		return -ENODEV;
	return nic_enable(nic);
}
