// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a NIC's PTP clock from the kernel, for cross-timestamps (nic_clock.c). This is the only
 * file of the project that depends on how a kernel subsystem is implemented, because the kernel has
 * no interface for reading the PTP clock of another driver.
 *
 * Why there is no better way (6.1 to 7.3). A module can only use a PTP clock that the module
 * registered: the functions of <linux/ptp_clock_kernel.h> take a struct ptp_clock, which only its
 * driver has, or return a clock's index, or convert timestamps of virtual clocks. The system calls
 * clock_gettime() and ioctl(PTP_SYS_OFFSET) need a file descriptor of /dev/ptpN and memory of a
 * user process; the functions behind them are not exported. A daemon could read the clock, but the
 * module must not depend on one.
 *
 * What this file relies on:
 *
 * 1. The PTP clock is a child of the device that is the parent of the network device. The child's
 *    name is ptpN, where N is the index that `ethtool -T` shows.
 * 2. The driver data of this child is the struct ptp_clock, as set by ptp_clock_register(), and the
 *    first member of struct ptp_clock is the struct posix_clock.
 * 3. struct posix_clock has the members ops.clock_gettime, dev, rwsem and zombie. While rwsem is
 *    held and zombie is false, the driver does not remove the clock. posix-clock.c uses the members
 *    in the same way.
 *
 * How a change of the kernel would be noticed:
 *
 * - A renamed or removed member of struct posix_clock (assumption 3) is a compile error here.
 * - If the driver data is another object (assumption 2), timely_phc_find() rejects the object,
 *   because it does not point back to its device as a POSIX clock does. For this check the object
 *   is read as if it were a struct posix_clock. The KUnit case phc__is_found_and_read, which
 *   registers a PTP clock, fails.
 * - If no clock is found (assumptions 1 and 2), `timelyctl -j nic show` keeps showing 0 readings of
 *   the PTP clock ("cross_timestamps").
 *
 * Without readings the clock mapping is fitted to timestamps of received packets alone. Converted
 * times are then too late by the shortest time that the host takes to handle a packet
 * (engine/clock.c).
 */

#include <linux/device.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/posix-clock.h>
#include <linux/rwsem.h>

#include <timely_dev.h>

#include "phc.h"

/* Whether @dev is a device of a class, such as ptp, and has the name @name. */
static int phc_has_name(struct device *dev, timely_match_data *name)
{
	return dev->class && !strcmp(dev_name(dev), name);
}

/**
 * timely_phc_find() - find a NIC's PTP clock
 * @dev: the network device
 * @index: index of the PTP clock, as in /dev/ptpN; negative: the device has none
 *
 * Return: the device of the PTP clock with a reference, to be released by put_device(); NULL if
 * there is no such device, or if its driver data is not a POSIX clock.
 */
struct device *timely_phc_find(const struct net_device *dev, int index)
{
	struct posix_clock *clock;
	struct device *phc;
	char name[16];

	if (index < 0 || !dev->dev.parent)
		return NULL;
	snprintf(name, sizeof(name), "ptp%d", index);
	phc = device_find_child(dev->dev.parent, name, phc_has_name);
	if (!phc)
		return NULL;
	clock = dev_get_drvdata(phc);
	/* Check that the driver data is a POSIX clock (assumption 2 at the top of this file). */
	if (clock && clock->dev == phc && clock->ops.clock_gettime)
		return phc;
	put_device(phc);
	return NULL;
}

/**
 * timely_phc_read() - read a PTP clock between two readings of the host's clock (a cross-timestamp)
 * @phc: device of the PTP clock, from timely_phc_find()
 * @before_ns: set to the host's time before the reading, CLOCK_MONOTONIC
 * @phc_ns: set to the time of the PTP clock, ns
 * @after_ns: set to the host's time after the reading, CLOCK_MONOTONIC
 *
 * Context: process context; may sleep, because drivers may.
 *
 * Return: true on success; false if the driver has removed the clock or fails to read it, or if the
 * clock's time is negative.
 */
bool timely_phc_read(struct device *phc, u64 *before_ns, u64 *phc_ns, u64 *after_ns)
{
	struct posix_clock *clock = dev_get_drvdata(phc);
	struct timespec64 time;
	int err = -ENODEV;

	down_read(&clock->rwsem);
	if (!clock->zombie) {
		*before_ns = ktime_get_ns();
		err = clock->ops.clock_gettime(clock, &time);
		*after_ns = ktime_get_ns();
	}
	up_read(&clock->rwsem);
	if (err || time.tv_sec < 0)
		return false;
	*phc_ns = timespec64_to_ns(&time);
	return true;
}
