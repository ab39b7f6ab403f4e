// SPDX-License-Identifier: GPL-2.0
/*
 * NICs that stamp what they receive: which of them a stamp is from, what it is
 * on the host's clock, and at what rate the NIC's line runs.
 *
 * A stamp carries no name. What is left of the NIC when TCP sees a packet is
 * the number of the NAPI instance it came through, over bridges, VLANs and
 * bonds; it is looked up here. Where that is lost as well, as a packet sent on by a
 * veth does on machines with several CPUs, the stamp is believed if one NIC's clock,
 * and only one, can have made it.
 *
 * Each NIC has a line from its clock to the host's, kept by the engine
 * clock.c. Pairs of stamps are collected by each CPU for itself and given to
 * the line some thousand times a second, so that the path of an ACK takes no
 * lock and writes nothing that CPUs share.
 *
 * Where the NIC's PTP clock can be found it is read now and then as well.
 *
 * Records are made for devices that are up and stamp received packets, in all
 * network namespaces. They belong to the device, whatever it is called.
 */

#include <linux/device.h>
#include <linux/export.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/posix-clock.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/busy_poll.h>
#include <net/net_namespace.h>

#include <net/timely_link.h>
#include <net/timely_nic.h>
#include <timely_dev.h>
#include <uapi/linux/timely.h>

/* NAPI instances remembered of a NIC; ids are not reused soon, so that those of queues that
 * are no more pile up. A NIC that has had more starts again with those that it has.
 */
#define TIMELY_NAPIS_MAX	4096

/* Packets with an unknown NAPI instance have NICs looked through this often at most. */
#define TIMELY_NAPIS_EVERY	msecs_to_jiffies(100)

/* How often a PTP clock is read while its NIC is in use: often while the line
 * is not sure.
 */
#define TIMELY_BRACKET_SURE	msecs_to_jiffies(100)
#define TIMELY_BRACKET_UNSURE	msecs_to_jiffies(20)

/**
 * struct timely_nic - a NIC that stamps received packets
 * @line: its clock's line, for readers; a copy of the clock's own, never sure
 *	where stamps may not be used
 * @seq: guards @line
 * @ns_per_byte_q16: time of a byte on its line, 0 if not known
 * @batches: pairs of stamps each CPU has seen
 * @lock: guards @clock
 * @clock: the engine's
 * @list: anchor in timely_nics
 * @dev: the device, for as long as the record is in the list
 * @line_kbps: of the link
 * @override_kbps: counts instead, unless 0
 * @phc: index of the PTP clock
 * @phc_dev: the PTP clock's device, NULL if it was not found
 * @bracket: reads the PTP clock
 * @pairs_then: pairs when it was read last
 * @napis: NAPI instances in timely_napis that are the NIC's
 * @use: hardware stamps may be used
 */
struct timely_nic {
	struct timely_clock_line line;
	seqcount_spinlock_t seq;
	u32 ns_per_byte_q16;
	struct timely_clock_batch __percpu *batches;

	spinlock_t lock ____cacheline_aligned; /* of clock */
	struct timely_clock clock;
	struct list_head list;
	struct net_device *dev;
	u32 line_kbps;
	u32 override_kbps;
	int phc;
	struct device *phc_dev;
	struct delayed_work bracket;
	u64 pairs_then;
	u32 napis;
	bool use;
};

/* Both are written under RTNL. */
static LIST_HEAD(timely_nics);
static DEFINE_XARRAY(timely_napis);	/* id of a NAPI instance: its NIC */

/* Of the NAPI instances that are in no NIC's list: the highest id that a packet came with,
 * and the highest when NICs were last looked through. Ids are given in rising order, so
 * that what is below the latter is known not to be a NIC's: nothing is remembered of
 * devices that do not stamp, however many instances a tenant makes.
 */
static u32 timely_napi_asked;
static u32 timely_napi_seen;

static bool cross_timestamps = true;
module_param(cross_timestamps, bool, 0644);
MODULE_PARM_DESC(cross_timestamps, "read NICs' PTP clocks now and then, besides the stamps in traffic");

/* ---- the line ---- */

/* What a stamp is worth, and how long after its time on the line it is now. That
 * may be long for a packet that waited for its socket, and no reason for doubt.
 */
static enum timely_clock_verdict timely_nic_judge(const struct timely_nic *nic,
						  u64 stamp_ns, u64 now_ns,
						  u64 *arrived_ns, s64 *residual_ns)
{
	enum timely_clock_verdict verdict;
	unsigned int seq;
	s64 waited_ns;

	do {
		seq = read_seqcount_begin(&nic->seq);
		*residual_ns = timely_clock_residual(&nic->line, stamp_ns, now_ns);
		waited_ns = in_softirq() ? 0 : max(*residual_ns, 0LL);
		verdict = timely_clock_verdict(&nic->line, *residual_ns - waited_ns,
					       now_ns - waited_ns, arrived_ns);
	} while (read_seqcount_retry(&nic->seq, seq));
	return verdict;
}

static void timely_nic_publish(struct timely_nic *nic)
{
	write_seqcount_begin(&nic->seq);
	nic->line = nic->clock.line;
	if (!nic->use)
		nic->line.state = TIMELY_CLOCK_LEARNING;
	write_seqcount_end(&nic->seq);
}

/* A packet that waited for its socket tells nothing of the clock. What is read
 * of the line meanwhile only says how soon the batch is due.
 */
static void timely_nic_pair(struct timely_nic *nic, s64 residual_ns,
			    u64 stamp_ns, u64 now_ns)
{
	struct timely_clock_batch *batch;
	u8 state;

	if (!in_softirq())
		return;
	batch = this_cpu_ptr(nic->batches);
	if (!timely_clock_batch_note(batch, &nic->line, residual_ns, stamp_ns, now_ns))
		return;
	/* Whoever has it is at work on the line; there will be another batch. */
	if (!spin_trylock(&nic->lock))
		return;
	state = nic->clock.line.state;
	if (timely_clock_take(&nic->clock, batch))
		timely_nic_publish(nic);
	/* The PTP clock knows whether the doubt is justified. */
	if (nic->clock.line.state != state && nic->phc_dev &&
	    nic->clock.line.state != TIMELY_CLOCK_SURE)
		mod_delayed_work(system_wq, &nic->bracket, 0);
	spin_unlock(&nic->lock);
}

/* One clock can have made the stamp, or none. */
static struct timely_nic *timely_nic_by_stamp(u64 stamp_ns, u64 now_ns)
{
	struct timely_nic *nic, *found = NULL;
	u64 arrived_ns;
	s64 residual_ns;

	list_for_each_entry_rcu(nic, &timely_nics, list) {
		if (list_is_singular(&timely_nics))
			return nic;
		switch (timely_nic_judge(nic, stamp_ns, now_ns, &arrived_ns,
					 &residual_ns)) {
		case TIMELY_STAMP_GOOD:
			if (found)
				return NULL;
			found = nic;
			break;
		case TIMELY_STAMP_UNSURE:
			return NULL;
		case TIMELY_STAMP_DOUBTFUL:
			break;
		}
	}
	return found;
}

/* When NICs were last looked through for their NAPI instances, jiffies. */
static unsigned long timely_nic_resolved;

static unsigned long timely_nic_resolve_delay(void)
{
	unsigned long since = jiffies - READ_ONCE(timely_nic_resolved);

	return since < TIMELY_NAPIS_EVERY ? TIMELY_NAPIS_EVERY - since : 0;
}

static void timely_nic_resolve_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(timely_nic_resolve, timely_nic_resolve_fn);

/* NULL: it is not known yet, or what is known is that it is none of a NIC's. */
static struct timely_nic *timely_nic_of_napi(u32 id, bool *none)
{
	struct timely_nic *nic = xa_load(&timely_napis, id);

	*none = !nic && id <= READ_ONCE(timely_napi_seen);
	if (likely(nic || *none))
		return nic;
	if (id > READ_ONCE(timely_napi_asked))
		WRITE_ONCE(timely_napi_asked, id);
	/* Others' ids wait for the same run, which looks at all. */
	if (!delayed_work_pending(&timely_nic_resolve))
		schedule_delayed_work(&timely_nic_resolve, timely_nic_resolve_delay());
	return NULL;
}

/**
 * timely_nic_arrival() - when a packet arrived, by its hardware stamp
 * @napi_id: NAPI instance it came through, 0 if not known
 * @stamp_ns: the stamp, on the NIC's clock
 * @now_ns: CLOCK_MONOTONIC
 * @arrived_ns: set to when it arrived, CLOCK_MONOTONIC, if the stamp is good
 * @ns_per_byte_q16: set to the time of a byte on the NIC's line, Q16, if that is
 *	known
 *
 * Under RCU.
 *
 * Return: enum timely_clock_verdict, or -ENOENT if it is not known what NIC the
 * stamp is from.
 */
int timely_nic_arrival(u32 napi_id, u64 stamp_ns, u64 now_ns, u64 *arrived_ns,
		       u32 *ns_per_byte_q16)
{
	enum timely_clock_verdict verdict;
	struct timely_nic *nic = NULL;
	bool none = true;
	s64 residual_ns;
	u64 time_ns;

	if (napi_id)
		nic = timely_nic_of_napi(napi_id, &none);
	if (!nic && none)
		nic = timely_nic_by_stamp(stamp_ns, now_ns);
	if (!nic)
		return -ENOENT;
	if (nic->ns_per_byte_q16)
		*ns_per_byte_q16 = nic->ns_per_byte_q16;
	verdict = timely_nic_judge(nic, stamp_ns, now_ns, &time_ns, &residual_ns);
	if (verdict == TIMELY_STAMP_GOOD)
		*arrived_ns = time_ns;
	timely_nic_pair(nic, residual_ns, stamp_ns, now_ns);
	return verdict;
}
EXPORT_SYMBOL_GPL(timely_nic_arrival);

/**
 * timely_nic_stamp() - the hardware stamp of a packet that only its driver reads
 * @skb: a received packet, marked SKBTX_HW_TSTAMP_NETDEV
 * @napi_id: NAPI instance it came through
 *
 * Return: the stamp on the NIC's clock, 0 if the NIC is not known (yet).
 */
u64 timely_nic_stamp(const struct sk_buff *skb, u32 napi_id)
{
	struct timely_nic *nic;
	u64 stamp_ns = 0;
	bool none;

	rcu_read_lock();
	nic = napi_id ? timely_nic_of_napi(napi_id, &none) : NULL;
	if (nic)
		stamp_ns = ktime_to_ns(netdev_get_tstamp(nic->dev,
							 &skb_shinfo(skb)->hwtstamps,
							 false));
	rcu_read_unlock();
	return stamp_ns;
}
EXPORT_SYMBOL_GPL(timely_nic_stamp);

/* ---- the PTP clock ---- */

static int timely_is_ptp(struct device *dev, timely_match_data *name)
{
	return dev->class && !strcmp(dev_name(dev), name);
}

/* Another device of the same parent, by the name that ethtool's index makes.
 *
 * A PTP clock's driver data begins with its POSIX clock, of which the kernel
 * tells us nothing; that it points back at the device shows that this is so.
 */
static struct device *timely_find_phc(const struct net_device *dev, int index)
{
	struct posix_clock *clock;
	struct device *phc;
	char name[16];

	if (index < 0 || !dev->dev.parent)
		return NULL;
	snprintf(name, sizeof(name), "ptp%d", index);
	phc = device_find_child(dev->dev.parent, name, timely_is_ptp);
	if (!phc)
		return NULL;
	clock = dev_get_drvdata(phc);
	if (clock && clock->dev == phc && clock->ops.clock_gettime)
		return phc;
	put_device(phc);
	return NULL;
}

static bool timely_nic_read_phc(struct timely_nic *nic, u64 *before_ns,
				u64 *nic_ns, u64 *after_ns)
{
	struct posix_clock *clock = dev_get_drvdata(nic->phc_dev);
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
	*nic_ns = timespec64_to_ns(&time);
	return true;
}

/* The next one comes before the line that this one makes is unsure again. */
static unsigned long timely_nic_bracket_delay(const struct timely_nic *nic)
{
	const struct timely_clock_line *line = &nic->clock.line;

	if (line->state != TIMELY_CLOCK_SURE)
		return TIMELY_BRACKET_UNSURE;
	return clamp(nsecs_to_jiffies(line->sure_ns / 2), TIMELY_BRACKET_UNSURE,
		     TIMELY_BRACKET_SURE);
}

static void timely_nic_bracket_fn(struct work_struct *work)
{
	struct timely_nic *nic = container_of(to_delayed_work(work),
					      struct timely_nic, bracket);
	unsigned long delay = TIMELY_BRACKET_SURE;
	u64 before_ns, nic_ns, after_ns;

	/* Only while its stamps are in use. */
	if (READ_ONCE(cross_timestamps) && nic->pairs_then != nic->clock.pairs &&
	    timely_nic_read_phc(nic, &before_ns, &nic_ns, &after_ns)) {
		spin_lock_bh(&nic->lock);
		if (timely_clock_bracket(&nic->clock, before_ns, nic_ns, after_ns))
			timely_nic_publish(nic);
		nic->pairs_then = nic->clock.pairs;
		delay = timely_nic_bracket_delay(nic);
		spin_unlock_bh(&nic->lock);
	}
	schedule_delayed_work(&nic->bracket, delay);
}

/* ---- records, under RTNL ---- */

static struct timely_nic *timely_nic_find(const struct net_device *dev)
{
	struct timely_nic *nic;

	list_for_each_entry_rcu(nic, &timely_nics, list, lockdep_rtnl_is_held())
		if (nic->dev == dev)
			return nic;
	return NULL;
}

static void timely_nic_set_rate(struct timely_nic *nic)
{
	u32 kbps = nic->override_kbps ?: nic->line_kbps;

	WRITE_ONCE(nic->ns_per_byte_q16,
		   kbps ? min_t(u64, div_u64(8000000ULL << 16, kbps), U32_MAX) : 0);
}

static int timely_nic_add(struct net_device *dev, int phc)
{
	struct timely_nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	if (!nic)
		return -ENOMEM;
	nic->batches = alloc_percpu(struct timely_clock_batch);
	if (!nic->batches) {
		kfree(nic);
		return -ENOMEM;
	}
	spin_lock_init(&nic->lock);
	seqcount_spinlock_init(&nic->seq, &nic->lock);
	timely_clock_init(&nic->clock);
	nic->line = nic->clock.line;
	nic->use = true;
	nic->dev = dev;
	nic->phc = phc;
	nic->phc_dev = timely_find_phc(dev, phc);
	INIT_DELAYED_WORK(&nic->bracket, timely_nic_bracket_fn);
	list_add_tail_rcu(&nic->list, &timely_nics);
	if (nic->phc_dev)
		schedule_delayed_work(&nic->bracket, 0);
	return 0;
}

static void timely_nic_forget_napis(struct timely_nic *nic)
{
	unsigned long id;
	void *entry;

	xa_for_each(&timely_napis, id, entry)
		if (entry == nic)
			xa_erase(&timely_napis, id);
	nic->napis = 0;
}

#ifdef CONFIG_NET_RX_BUSY_POLL
/* The id of the NIC's first NAPI instance that is not remembered, 0 if all are. */
static u32 timely_nic_new_napi(const struct timely_nic *nic)
{
	struct napi_struct *napi;
	u32 id = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(napi, &nic->dev->napi_list, dev_list) {
		u32 napi_id = READ_ONCE(napi->napi_id);

		if (napi_id >= MIN_NAPI_ID && xa_load(&timely_napis, napi_id) != nic) {
			id = napi_id;
			break;
		}
	}
	rcu_read_unlock();
	return id;
}
#else
static u32 timely_nic_new_napi(const struct timely_nic *nic)
{
	return 0;
}
#endif

static void timely_nic_note_napis(struct timely_nic *nic)
{
	u32 id;

	while ((id = timely_nic_new_napi(nic))) {
		if (nic->napis >= TIMELY_NAPIS_MAX)
			timely_nic_forget_napis(nic);
		if (xa_err(xa_store(&timely_napis, id, nic, GFP_KERNEL)))
			return;
		nic->napis++;
	}
}

/* The bracket is armed by whoever has the record in hand: first nobody may have it any
 * more, then the bracket is cancelled, for good.
 */
static void timely_nic_del(struct timely_nic *nic)
{
	list_del_rcu(&nic->list);
	timely_nic_forget_napis(nic);
	synchronize_net();
	cancel_delayed_work_sync(&nic->bracket);
	put_device(nic->phc_dev);
	free_percpu(nic->batches);
	kfree(nic);
}

static void timely_nic_forget(struct timely_nic *nic)
{
	spin_lock_bh(&nic->lock);
	timely_clock_forget(&nic->clock);
	timely_nic_publish(nic);
	spin_unlock_bh(&nic->lock);
}

/**
 * timely_nic_look() - a device came up, or its link changed
 * @dev: the device, which has hardware below it; under RTNL, but not in a notifier
 * @kbps: its link's speed, 0 if it is not known
 */
void timely_nic_look(struct net_device *dev, u32 kbps)
{
	struct timely_nic *nic = timely_nic_find(dev);
	int phc;

	/* What lies on other devices only repeats what those say. */
	if (!nic && list_empty(&dev->adj_list.lower)) {
		phc = timely_dev_rx_phc(dev);
		if (phc >= 0 && !timely_nic_add(dev, phc))
			nic = timely_nic_find(dev);
	}
	if (!nic)
		return;
	timely_nic_note_napis(nic);
	WRITE_ONCE(nic->line_kbps, kbps);
	timely_nic_set_rate(nic);
}

static void timely_nic_resolve_fn(struct work_struct *work)
{
	u32 asked = READ_ONCE(timely_napi_asked);
	struct timely_nic *nic;

	rtnl_lock();
	list_for_each_entry(nic, &timely_nics, list)
		timely_nic_note_napis(nic);
	WRITE_ONCE(timely_napi_seen, asked);
	rtnl_unlock();
	WRITE_ONCE(timely_nic_resolved, jiffies);
}

static int timely_nic_event(struct notifier_block *nb, unsigned long event,
			    void *ptr)
{
	struct timely_nic *nic = timely_nic_find(netdev_notifier_info_to_dev(ptr));

	switch (event) {
	case NETDEV_DOWN:
		/* Drivers make their NAPI instances anew, and may restart the clock. */
		if (nic) {
			timely_nic_forget_napis(nic);
			timely_nic_forget(nic);
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

/* CLOCK_MONOTONIC stood still, or the NIC was without power. */
static int timely_nic_pm_event(struct notifier_block *nb, unsigned long event,
			       void *ptr)
{
	struct timely_nic *nic;

	if (event != PM_POST_SUSPEND && event != PM_POST_HIBERNATION)
		return NOTIFY_DONE;
	rcu_read_lock();
	list_for_each_entry_rcu(nic, &timely_nics, list)
		timely_nic_forget(nic);
	rcu_read_unlock();
	return NOTIFY_DONE;
}

static struct notifier_block timely_nic_pm_notifier = {
	.notifier_call = timely_nic_pm_event,
};

/* ---- what netlink asks ---- */

static u8 timely_nic_state(const struct timely_nic *nic)
{
	if (!nic->use)
		return TIMELY_NIC_OFF;
	switch (nic->clock.line.state) {
	case TIMELY_CLOCK_SURE:
		return TIMELY_NIC_SURE;
	case TIMELY_CLOCK_NONE:
		return TIMELY_NIC_UNSEEN;
	default:
		return TIMELY_NIC_LEARNING;
	}
}

/**
 * timely_nic_status() - tell all about a NIC
 * @dev: the device; under RTNL or RCU
 * @status: to be filled in
 *
 * Return: 0, or -ENOENT if the device does not stamp what it receives.
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
			.line = nic->clock.line,
			.pairs = nic->clock.pairs,
			.brackets = nic->clock.brackets,
			.steps = nic->clock.steps,
			.line_kbps = nic->line_kbps,
			.override_kbps = nic->override_kbps,
			.phc = nic->phc,
			.state = timely_nic_state(nic),
			.use = nic->use,
		};
		spin_unlock_bh(&nic->lock);
		status->uncertainty_ns =
			timely_clock_uncertainty_ns(&status->line, ktime_get_ns());
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

/**
 * timely_nic_kbps() - the speed of a NIC's line
 * @dev: the device; under RTNL or RCU
 *
 * Return: kbit/s; 0 if that is not known, or the device stamps nothing.
 */
u32 timely_nic_kbps(const struct net_device *dev)
{
	const struct timely_nic *nic = timely_nic_find(dev);

	return nic ? READ_ONCE(nic->override_kbps) ?: READ_ONCE(nic->line_kbps) : 0;
}

/**
 * timely_nic_change() - set what can be set of a NIC
 * @dev: the device, under RTNL
 * @change: what to set
 *
 * Return: 0, or -ENOENT if the device does not stamp what it receives.
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
		timely_link_changed(dev_net(dev));
	}
	if (change->set_use) {
		spin_lock_bh(&nic->lock);
		nic->use = change->use;
		timely_nic_publish(nic);
		spin_unlock_bh(&nic->lock);
	}
	return 0;
}

/**
 * timely_nic_init() - follow the NICs from now on
 *
 * Return: 0 or a negative error.
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

/** timely_nic_exit() - and no more; nobody asks for arrivals any longer */
void timely_nic_exit(void)
{
	struct timely_nic *nic, *next;

	unregister_pm_notifier(&timely_nic_pm_notifier);
	unregister_netdevice_notifier(&timely_nic_notifier);
	cancel_delayed_work_sync(&timely_nic_resolve);
	rtnl_lock();
	list_for_each_entry_safe(nic, next, &timely_nics, list)
		timely_nic_del(nic);
	rtnl_unlock();
	xa_destroy(&timely_napis);
}
