// SPDX-License-Identifier: GPL-2.0
/*
 * NICs with hardware timestamps: which devices they are, how long their objects live, and how fast
 * their links are.
 *
 * A device is such a NIC if its driver says that it can timestamp received packets in hardware and
 * names a PTP clock. Its struct timely_nic is created when link.c first reports the device as up,
 * in any network namespace, and freed when the device is unregistered. While the device is down
 * the object keeps the administrator's settings, but no NAPI IDs and no clock mapping.
 *
 * NICs are added, changed and removed under RTNL. Code that handles packets uses the objects under
 * RCU. The clock mapping has its own lock, see nic_clock.c.
 */

#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/suspend.h>

#include <net/timely_nic.h>
#include <timely_dev.h>
#include <uapi/linux/timely.h>

#include "nic.h"

/* ---- lifetime, under RTNL ---- */

/* Computes the time that the link needs for one byte, so that no division is needed for each ACK.
 * The administrator's link rate has precedence over the driver's link rate.
 */
static void timely_nic_set_rate(struct timely_nic *nic)
{
	u32 kbps = nic->override_kbps ?: nic->link_kbps;

	WRITE_ONCE(nic->ns_per_byte_q16,
		   kbps ? min_t(u64, div_u64(8000000ULL << 16, kbps), U32_MAX) : 0);
}

/* Adds a NIC, whose PTP clock is not read yet. Returns 0 or -ENOMEM. */
static int timely_nic_add(struct net_device *dev)
{
	struct timely_nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	if (!nic)
		return -ENOMEM;
	nic->batches = alloc_percpu(struct timely_clock_batch);
	if (!nic->batches) {
		kfree(nic);
		return -ENOMEM;
	}
	nic->dev = dev;
	timely_nic_clock_init(nic);
	list_add_tail_rcu(&nic->list, &timely_nics);
	return 0;
}

/* Removes and frees a NIC. A reader that has found the NIC may still schedule phc_work. So wait
 * until no reader has the NIC, and only then cancel the work.
 */
static void timely_nic_del(struct timely_nic *nic)
{
	list_del_rcu(&nic->list);
	timely_nic_forget_napis(nic);
	synchronize_net();
	timely_nic_clock_stop(nic);
	free_percpu(nic->batches);
	kfree(nic);
}

/**
 * timely_nic_update() - handle that a device came up, or that its link changed
 * @dev: a hardware device
 * @kbps: link rate from the driver, kbit/s; 0: not known
 *
 * Adds the device to the table if it is a NIC with hardware timestamps. If there is no memory, the
 * next event of the device tries again.
 *
 * Context: RTNL, outside of notifiers: see timely_link_query_fn().
 */
void timely_nic_update(struct net_device *dev, u32 kbps)
{
	struct timely_nic *nic = timely_nic_find(dev);
	int phc = -1;

	/* A device with lower devices, such as a bond, repeats what a lower device's driver
	 * reports: the lower device is the NIC.
	 */
	if (nic || list_empty(&dev->adj_list.lower))
		phc = timely_dev_rx_phc(dev);
	if (!nic && phc >= 0 && !timely_nic_add(dev))
		nic = timely_nic_find(dev);
	if (!nic)
		return;
	timely_nic_clock_bind(nic, phc);
	timely_nic_note_napis(nic);
	WRITE_ONCE(nic->link_kbps, kbps);
	timely_nic_set_rate(nic);
}

static int timely_nic_event(struct notifier_block *nb, unsigned long event,
			    void *ptr)
{
	struct timely_nic *nic = timely_nic_find(netdev_notifier_info_to_dev(ptr));

	switch (event) {
	case NETDEV_DOWN:
		/* Meanwhile the driver may create other NAPI instances, and restart the NIC's clock
		 * or register another one.
		 */
		if (nic) {
			timely_nic_clock_unbind(nic);
			timely_nic_forget_napis(nic);
			timely_nic_clock_forget(nic);
		}
		break;
	case NETDEV_UNREGISTER:
		if (nic)
			timely_nic_del(nic);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block timely_nic_notifier = {
	.notifier_call = timely_nic_event,
};

/* Starts all clock mappings anew after suspend: CLOCK_MONOTONIC has stood still meanwhile, and the
 * NIC's clock may have lost power.
 */
static int timely_nic_pm_event(struct notifier_block *nb, unsigned long event,
			       void *ptr)
{
	struct timely_nic *nic;

	if (event != PM_POST_SUSPEND && event != PM_POST_HIBERNATION)
		return NOTIFY_DONE;
	rcu_read_lock();
	list_for_each_entry_rcu(nic, &timely_nics, list)
		timely_nic_clock_forget(nic);
	rcu_read_unlock();
	return NOTIFY_DONE;
}

static struct notifier_block timely_nic_pm_notifier = {
	.notifier_call = timely_nic_pm_event,
};

/* ---- status and settings, for netlink ---- */

/* Returns the state of a NIC as TIMELY_NIC_*. The NIC's lock is held. */
static u8 timely_nic_state(const struct timely_nic *nic)
{
	if (!nic->use)
		return TIMELY_NIC_OFF;
	switch (nic->clock.map.state) {
	case TIMELY_CLOCK_SURE:
		return TIMELY_NIC_SURE;
	case TIMELY_CLOCK_NONE:
		return TIMELY_NIC_UNSEEN;
	default:
		return TIMELY_NIC_LEARNING;
	}
}

/**
 * timely_nic_status() - read the state of a NIC
 * @dev: the device
 * @status: filled in on success
 *
 * Context: RTNL or RCU read lock.
 *
 * Return: 0, or -ENOENT if the device is not a NIC with hardware timestamps, or was never up.
 */
int timely_nic_status(const struct net_device *dev,
		      struct timely_nic_status *status)
{
	struct timely_nic *nic;
	int err = -ENOENT;

	rcu_read_lock();
	nic = timely_nic_find(dev);
	if (nic) {
		spin_lock_bh(&nic->lock);
		*status = (struct timely_nic_status) {
			.map = nic->clock.map,
			.pairs = nic->clock.pairs,
			.cross_timestamps = nic->clock.cross_timestamps,
			.steps = nic->clock.steps,
			.link_kbps = nic->link_kbps,
			.override_kbps = nic->override_kbps,
			.phc = READ_ONCE(nic->phc),
			.state = timely_nic_state(nic),
			.use = nic->use,
		};
		spin_unlock_bh(&nic->lock);
		status->uncertainty_ns =
			timely_clock_uncertainty_ns(&status->map, ktime_get_ns());
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

/**
 * timely_nic_kbps() - the link rate of a NIC: the administrator's, or else the driver's
 * @dev: the device
 *
 * Context: RTNL or RCU read lock.
 *
 * Return: kbit/s; 0 if the link rate is not known or the device is not a NIC with hardware
 * timestamps.
 */
u32 timely_nic_kbps(const struct net_device *dev)
{
	const struct timely_nic *nic = timely_nic_find(dev);

	return nic ? READ_ONCE(nic->override_kbps) ?: READ_ONCE(nic->link_kbps) : 0;
}

/**
 * timely_nic_change() - change the settings of a NIC
 * @dev: the device
 * @change: the new settings
 *
 * If the link rate was set, the caller calls timely_link_changed().
 *
 * Context: RTNL.
 *
 * Return: 0, or -ENOENT if the device is not a NIC with hardware timestamps, or was never up.
 */
int timely_nic_change(const struct net_device *dev,
		      const struct timely_nic_change *change)
{
	struct timely_nic *nic = timely_nic_find(dev);

	if (!nic)
		return -ENOENT;
	if (change->set_override) {
		WRITE_ONCE(nic->override_kbps, change->override_kbps);
		timely_nic_set_rate(nic);
	}
	if (change->set_use)
		timely_nic_clock_use(nic, change->use);
	return 0;
}

/**
 * timely_nic_init() - watch for devices that go down or are unregistered, and for resume
 *
 * NICs are added by timely_nic_update().
 *
 * Return: 0, or a negative error code.
 */
int timely_nic_init(void)
{
	int err = register_netdevice_notifier(&timely_nic_notifier);

	if (err)
		return err;
	err = register_pm_notifier(&timely_nic_pm_notifier);
	if (err)
		unregister_netdevice_notifier(&timely_nic_notifier);
	return err;
}

/** timely_nic_exit() - remove all NICs; no caller of timely_nic_arrival() is left */
void timely_nic_exit(void)
{
	struct timely_nic *nic, *next;

	unregister_pm_notifier(&timely_nic_pm_notifier);
	unregister_netdevice_notifier(&timely_nic_notifier);
	rtnl_lock();
	list_for_each_entry_safe(nic, next, &timely_nics, list)
		timely_nic_del(nic);
	rtnl_unlock();
	timely_nic_table_exit();
}
