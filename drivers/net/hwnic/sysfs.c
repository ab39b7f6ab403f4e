// SPDX-License-Identifier: GPL-2.0
/*
 * Settings that real NICs do not have, in /sys/class/net/IFACE/hwnic/. README.md lists them.
 */

#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/sysfs.h>

#include "hwnic.h"

static struct hwnic *sysfs_end(struct device *dev)
{
	return netdev_priv(to_net_dev(dev));
}

/* Parses a decimal number from @low to @high. */
static int sysfs_number(const char *text, s64 low, s64 high, s64 *number)
{
	int err = kstrtos64(text, 10, number);

	if (err)
		return err;
	return *number < low || *number > high ? -ERANGE : 0;
}

/* Sets a field from a decimal number from 0 to @high. Returns @len or an error. */
static ssize_t sysfs_store_u32(struct hwnic *end, u32 *field, u32 high, const char *text,
			       size_t len)
{
	s64 number;
	int err = sysfs_number(text, 0, high, &number);

	if (err)
		return err;
	spin_lock_bh(&end->lock);
	*field = number;
	spin_unlock_bh(&end->lock);
	return len;
}

/* An attribute that shows and sets the field of this name, from 0 to @high. */
#define SYSFS_U32(name, high)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr,		\
			   char *text)							\
{											\
	return sysfs_emit(text, "%u\n", sysfs_end(dev)->name);				\
}											\
											\
static ssize_t name##_store(struct device *dev, struct device_attribute *attr,		\
			    const char *text, size_t len)				\
{											\
	struct hwnic *end = sysfs_end(dev);						\
											\
	return sysfs_store_u32(end, &end->name, high, text, len);			\
}											\
static DEVICE_ATTR_RW(name)

SYSFS_U32(delay_ns, HWNIC_DELAY_NS_MAX);
SYSFS_U32(jitter_ns, HWNIC_JITTER_NS_MAX);

/* Stops the link for the time that is written, as a PAUSE frame does. Packets that are in the TX
 * ring leave before, because their departures have been computed.
 */
static ssize_t pause_ns_store(struct device *dev, struct device_attribute *attr,
			      const char *text, size_t len)
{
	struct hwnic *end = sysfs_end(dev);
	s64 pause_ns;
	int err = sysfs_number(text, 0, HWNIC_DELAY_NS_MAX, &pause_ns);

	if (err)
		return err;
	spin_lock_bh(&end->lock);
	end->link_free_ns = max(end->link_free_ns, ktime_get_ns()) + pause_ns;
	spin_unlock_bh(&end->lock);
	return len;
}
static DEVICE_ATTR_WO(pause_ns);

static ssize_t jitter_seed_store(struct device *dev, struct device_attribute *attr,
				 const char *text, size_t len)
{
	struct hwnic *end = sysfs_end(dev);
	u64 seed;
	int err = kstrtou64(text, 10, &seed);

	if (err)
		return err;
	spin_lock_bh(&end->lock);
	prandom_seed_state(&end->jitter, seed);
	spin_unlock_bh(&end->lock);
	return len;
}
static DEVICE_ATTR_WO(jitter_seed);

static ssize_t phc_drift_ppb_show(struct device *dev, struct device_attribute *attr,
				  char *text)
{
	return sysfs_emit(text, "%lld\n", hwnic_phc_drift_ppb(sysfs_end(dev)));
}

static ssize_t phc_drift_ppb_store(struct device *dev, struct device_attribute *attr,
				   const char *text, size_t len)
{
	s64 ppb;
	int err = sysfs_number(text, -HWNIC_PPB_MAX, HWNIC_PPB_MAX, &ppb);

	if (err)
		return err;
	hwnic_phc_drift(sysfs_end(dev), ppb);
	return len;
}
static DEVICE_ATTR_RW(phc_drift_ppb);

static ssize_t phc_wander_ppb_per_s_show(struct device *dev, struct device_attribute *attr,
					 char *text)
{
	return sysfs_emit(text, "%lld\n", sysfs_end(dev)->phc.wander_ppb_per_s);
}

static ssize_t phc_wander_ppb_per_s_store(struct device *dev, struct device_attribute *attr,
					  const char *text, size_t len)
{
	s64 ppb_per_s;
	int err = sysfs_number(text, -HWNIC_PPB_MAX, HWNIC_PPB_MAX, &ppb_per_s);

	if (err)
		return err;
	hwnic_phc_wander(sysfs_end(dev), ppb_per_s);
	return len;
}
static DEVICE_ATTR_RW(phc_wander_ppb_per_s);

static ssize_t phc_step_ns_store(struct device *dev, struct device_attribute *attr,
				 const char *text, size_t len)
{
	s64 ns;
	int err = kstrtos64(text, 10, &ns);

	if (!err)
		err = hwnic_phc_step(sysfs_end(dev), ns);
	return err ?: len;
}
static DEVICE_ATTR_WO(phc_step_ns);

static ssize_t phc_set_ns_store(struct device *dev, struct device_attribute *attr,
				const char *text, size_t len)
{
	s64 ns;
	int err = kstrtos64(text, 10, &ns);

	if (!err)
		err = hwnic_phc_set(sysfs_end(dev), ns);
	return err ?: len;
}
static DEVICE_ATTR_WO(phc_set_ns);

SYSFS_U32(phc_again, 1);

static ssize_t phc_now_show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct hwnic *end = sysfs_end(dev);
	u64 mono_ns, phc_ns;

	spin_lock_bh(&end->lock);
	mono_ns = ktime_get_ns();
	phc_ns = hwnic_phc_ns(&end->phc, mono_ns);
	spin_unlock_bh(&end->lock);
	return sysfs_emit(text, "%llu %llu\n", phc_ns, mono_ns);
}
static DEVICE_ATTR_RO(phc_now);

static ssize_t stamp_all_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%d\n", sysfs_end(dev)->stamp_all);
}

static ssize_t stamp_all_store(struct device *dev, struct device_attribute *attr,
			       const char *text, size_t len)
{
	struct hwnic *end = sysfs_end(dev);
	s64 able;
	int err = sysfs_number(text, 0, 1, &able);

	if (err)
		return err;
	spin_lock_bh(&end->lock);
	/* The NIC cannot lose the capability while all frames are timestamped. */
	if (!able && end->rx_filter == HWTSTAMP_FILTER_ALL)
		err = -EBUSY;
	else
		end->stamp_all = able;
	spin_unlock_bh(&end->lock);
	return err ?: len;
}
static DEVICE_ATTR_RW(stamp_all);

static ssize_t stamp_host_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%d\n", sysfs_end(dev)->stamp_host);
}

static ssize_t stamp_host_store(struct device *dev, struct device_attribute *attr,
				const char *text, size_t len)
{
	struct hwnic *end = sysfs_end(dev);
	s64 on;
	int err = sysfs_number(text, 0, 1, &on);

	if (err)
		return err;
	spin_lock_bh(&end->lock);
	end->stamp_host = on;
	spin_unlock_bh(&end->lock);
	return len;
}
static DEVICE_ATTR_RW(stamp_host);

SYSFS_U32(stamp_step_ns, HWNIC_STAMP_STEP_NS_MAX);
SYSFS_U32(stamp_wrong, HWNIC_STAMP_WRONG_MAX);

static ssize_t tx_queue_show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct hwnic *end = sysfs_end(dev);
	u32 bytes, frames;

	spin_lock_bh(&end->lock);
	hwnic_catch_up(end);
	bytes = end->tx_bytes;
	frames = end->tx_frames;
	spin_unlock_bh(&end->lock);
	return sysfs_emit(text, "%u %u\n", bytes, frames);
}
static DEVICE_ATTR_RO(tx_queue);

static ssize_t queries_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(sysfs_end(dev)->queries));
}
static DEVICE_ATTR_RO(queries);

static ssize_t truth_dir_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "/sys/kernel/debug/%s/%s\n", KBUILD_MODNAME,
			  dev_name(&sysfs_end(dev)->parent->dev));
}
static DEVICE_ATTR_RO(truth_dir);

static struct attribute *hwnic_attributes[] = {
	&dev_attr_delay_ns.attr,
	&dev_attr_jitter_ns.attr,
	&dev_attr_pause_ns.attr,
	&dev_attr_jitter_seed.attr,
	&dev_attr_phc_drift_ppb.attr,
	&dev_attr_phc_wander_ppb_per_s.attr,
	&dev_attr_phc_step_ns.attr,
	&dev_attr_phc_set_ns.attr,
	&dev_attr_phc_again.attr,
	&dev_attr_phc_now.attr,
	&dev_attr_stamp_all.attr,
	&dev_attr_stamp_host.attr,
	&dev_attr_stamp_step_ns.attr,
	&dev_attr_stamp_wrong.attr,
	&dev_attr_tx_queue.attr,
	&dev_attr_queries.attr,
	&dev_attr_truth_dir.attr,
	NULL,
};

const struct attribute_group hwnic_sysfs_group = {
	.name = KBUILD_MODNAME,
	.attrs = hwnic_attributes,
};
