// SPDX-License-Identifier: GPL-2.0
/*
 * The clock mapping of a NIC: converts hardware timestamps to the host's time, CLOCK_MONOTONIC.
 *
 * The engine (engine/clock.c) fits the mapping to timestamp pairs: the hardware timestamp of a
 * packet and the time at which the host handled the packet. Each CPU collects pairs in its own
 * batch and hands the batch to the engine after 0.5 to 2 ms or 64 to 256 pairs, or sooner if pairs
 * contradict the mapping. An ACK that does not make a batch due takes no lock and writes no memory
 * that CPUs share.
 *
 * If the NIC's PTP clock is found (phc.c), a work item reads the clock up to 50 times a second
 * while packets arrive. Timestamp pairs alone cannot distinguish the clocks' offset from the
 * shortest time that the host takes to handle a packet; these readings (cross-timestamps) can.
 *
 * timely_nic_arrival() is the entry for each packet with a hardware timestamp. Readers of the
 * mapping use a seqcount; the engine runs under the NIC's lock.
 */

#include <linux/device.h>
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/seqlock.h>
#include <linux/workqueue.h>

#include <net/timely_nic.h>

#include "nic.h"
#include "phc.h"

/* Time between two readings of a PTP clock, jiffies: TIMELY_PHC_INTERVAL is the longest,
 * TIMELY_PHC_INTERVAL_UNSURE the shortest. The latter applies while the clock mapping is not sure:
 * the drift can be computed from two readings at least 10 ms apart (engine/clock.c).
 */
#define TIMELY_PHC_INTERVAL		msecs_to_jiffies(100)
#define TIMELY_PHC_INTERVAL_UNSURE	msecs_to_jiffies(20)

static bool cross_timestamps = true;
module_param(cross_timestamps, bool, 0644);
MODULE_PARM_DESC(cross_timestamps,
		 "read the PTP clocks of NICs, up to 50 times a second; 0: fit clock mappings to timestamps of received packets only");

/* ---- timestamps of packets ---- */

/* Checks a hardware timestamp against the clock mapping.
 *
 * @residual_ns is set to the time from the packet's arrival, converted by the mapping, to @now_ns.
 * Outside of softirq the packet has waited in its socket's backlog for an unknown time, so a large
 * residual does not contradict the mapping: the packet is checked as if it were handled when it
 * arrived.
 */
static enum timely_clock_verdict timely_nic_judge(const struct timely_nic *nic,
						  u64 hardware_ns, u64 now_ns,
						  u64 *arrived_ns, s64 *residual_ns)
{
	enum timely_clock_verdict verdict;
	unsigned int seq;
	s64 waited_ns;

	do {
		seq = read_seqcount_begin(&nic->seq);
		*residual_ns = timely_clock_residual(&nic->map, hardware_ns, now_ns);
		waited_ns = in_softirq() ? 0 : max(*residual_ns, 0LL);
		verdict = timely_clock_verdict(&nic->map, *residual_ns - waited_ns,
					       now_ns - waited_ns, arrived_ns);
	} while (read_seqcount_retry(&nic->seq, seq));
	return verdict;
}

/* Copies the engine's clock mapping to the clock mapping that readers use. If the administrator
 * does not allow the use of hardware timestamps, the copy is not sure. The NIC's lock is held.
 */
static void timely_nic_publish(struct timely_nic *nic)
{
	write_seqcount_begin(&nic->seq);
	nic->map = nic->clock.map;
	if (!nic->use)
		nic->map.state = TIMELY_CLOCK_LEARNING;
	write_seqcount_end(&nic->seq);
}

/* Adds a timestamp pair to this CPU's batch, and hands the batch to the engine when the batch is
 * due: full, old enough, or in contradiction to the mapping. A packet that waited in its socket's
 * backlog gives no pair, because @now_ns is not the time at which the host received the packet. The
 * mapping is read without the seqcount, because it only decides how soon the batch is due.
 */
static void timely_nic_note_pair(struct timely_nic *nic, s64 residual_ns,
				 u64 hardware_ns, u64 now_ns)
{
	struct timely_clock_batch *batch;
	u8 state;

	if (!in_softirq())
		return;
	batch = this_cpu_ptr(nic->batches);
	if (!timely_clock_batch_note(batch, &nic->map, residual_ns, hardware_ns, now_ns))
		return;
	/* If another CPU runs the engine, the batch stays due, and the next packet tries again. */
	if (!spin_trylock(&nic->lock))
		return;
	state = nic->clock.map.state;
	if (timely_clock_take(&nic->clock, batch))
		timely_nic_publish(nic);
	/* If the mapping has changed to a state other than sure, read the PTP clock at once: a
	 * cross-timestamp corrects the mapping faster than pairs.
	 */
	if (nic->clock.map.state != state && nic->phc_dev &&
	    nic->clock.map.state != TIMELY_CLOCK_SURE)
		mod_delayed_work(system_power_efficient_wq, &nic->phc_work, 0);
	spin_unlock(&nic->lock);
}

/* Finds the NIC that wrote a timestamp if the packet's NAPI ID does not identify the NIC. The
 * result is the only NIC of the host, or else the only NIC whose clock mapping agrees with the
 * timestamp. NULL if several mappings agree or none does, or if a mapping is not sure, because the
 * NIC of that mapping could have written the timestamp.
 */
static struct timely_nic *timely_nic_by_timestamp(u64 hardware_ns, u64 now_ns)
{
	struct timely_nic *nic, *found = NULL;
	u64 arrived_ns;
	s64 residual_ns;

	list_for_each_entry_rcu(nic, &timely_nics, list) {
		if (list_is_singular(&timely_nics))
			return nic;
		switch (timely_nic_judge(nic, hardware_ns, now_ns, &arrived_ns,
					 &residual_ns)) {
		case TIMELY_TSTAMP_GOOD:
			if (found)
				return NULL;
			found = nic;
			break;
		case TIMELY_TSTAMP_UNSURE:
			return NULL;
		case TIMELY_TSTAMP_DOUBTFUL:
			break;
		}
	}
	return found;
}

/**
 * timely_nic_arrival() - convert a hardware timestamp to the host's time
 * @napi_id: NAPI ID of the packet; 0: not known
 * @hardware_ns: hardware timestamp of the packet, ns of the NIC's clock
 * @now_ns: the present time, CLOCK_MONOTONIC
 * @arrived_ns: set to the arrival of the packet, CLOCK_MONOTONIC, if the result is
 *	TIMELY_TSTAMP_GOOD; else unchanged
 * @ns_per_byte_q16: set to the time that the NIC's link needs for one byte, ns in Q16; unchanged
 *	if the NIC or its link rate is not known
 *
 * Each call from softirq also adds a timestamp pair to the fit of the clock mapping.
 *
 * A packet may have lost its NAPI ID or got the NAPI ID of a virtual device, for example of a veth
 * that has forwarded the packet. The NIC is then the one whose clock mapping agrees with the
 * timestamp.
 *
 * Context: RCU read lock; softirq, or process context for packets of a socket's backlog.
 *
 * Return: enum timely_clock_verdict, which says whether the hardware timestamp is usable; -ENOENT
 * if the NIC is not known.
 */
int timely_nic_arrival(u32 napi_id, u64 hardware_ns, u64 now_ns, u64 *arrived_ns,
		       u32 *ns_per_byte_q16)
{
	enum timely_clock_verdict verdict;
	struct timely_nic *nic = NULL;
	bool foreign = true;
	s64 residual_ns;
	u64 time_ns;

	if (napi_id)
		nic = timely_nic_of_napi(napi_id, &foreign);
	if (!nic && foreign)
		nic = timely_nic_by_timestamp(hardware_ns, now_ns);
	if (!nic)
		return -ENOENT;
	if (nic->ns_per_byte_q16)
		*ns_per_byte_q16 = nic->ns_per_byte_q16;
	verdict = timely_nic_judge(nic, hardware_ns, now_ns, &time_ns, &residual_ns);
	if (verdict == TIMELY_TSTAMP_GOOD)
		*arrived_ns = time_ns;
	timely_nic_note_pair(nic, residual_ns, hardware_ns, now_ns);
	return verdict;
}
EXPORT_SYMBOL_GPL(timely_nic_arrival);

/**
 * timely_nic_timestamp() - read a hardware timestamp that only the NIC's driver can decode
 * @skb: a received packet, marked SKBTX_HW_TSTAMP_NETDEV
 * @napi_id: NAPI ID of the packet; 0: not known
 *
 * Return: the hardware timestamp, ns of the NIC's clock; 0 if the NIC is not known, or not known
 * yet because the search for its NAPI ID has not ended.
 */
u64 timely_nic_timestamp(const struct sk_buff *skb, u32 napi_id)
{
	struct timely_nic *nic;
	u64 hardware_ns = 0;
	bool foreign;

	rcu_read_lock();
	nic = napi_id ? timely_nic_of_napi(napi_id, &foreign) : NULL;
	if (nic)
		hardware_ns = ktime_to_ns(netdev_get_tstamp(nic->dev,
							    &skb_shinfo(skb)->hwtstamps,
							    false));
	rcu_read_unlock();
	return hardware_ns;
}
EXPORT_SYMBOL_GPL(timely_nic_timestamp);

/* ---- cross-timestamps ---- */

/* Time to the next reading of the PTP clock, jiffies: half of the time for which the clock mapping
 * stays sure, so that the mapping is renewed in time. The NIC's lock is held.
 */
static unsigned long timely_nic_phc_interval(const struct timely_nic *nic)
{
	const struct timely_clock_map *map = &nic->clock.map;

	if (map->state != TIMELY_CLOCK_SURE)
		return TIMELY_PHC_INTERVAL_UNSURE;
	return clamp(nsecs_to_jiffies(map->sure_ns / 2), TIMELY_PHC_INTERVAL_UNSURE,
		     TIMELY_PHC_INTERVAL);
}

/* Passes a reading of the PTP clock @phc to the engine, unless the NIC has another clock by now.
 * Returns the time to the next reading, jiffies.
 */
static unsigned long timely_nic_take_reading(struct timely_nic *nic, const struct device *phc,
					     u64 before_ns, u64 phc_ns, u64 after_ns)
{
	unsigned long interval;

	spin_lock_bh(&nic->lock);
	if (nic->phc_dev == phc &&
	    timely_clock_cross_timestamp(&nic->clock, before_ns, phc_ns, after_ns))
		timely_nic_publish(nic);
	nic->phc_pairs = nic->clock.pairs;
	interval = timely_nic_phc_interval(nic);
	spin_unlock_bh(&nic->lock);
	return interval;
}

/* Reads a NIC's PTP clock, and schedules the next reading. A NIC that has no clock now is not read
 * again before timely_nic_clock_bind().
 */
static void timely_nic_phc_fn(struct work_struct *work)
{
	struct timely_nic *nic = container_of(to_delayed_work(work),
					      struct timely_nic, phc_work);
	unsigned long interval = TIMELY_PHC_INTERVAL;
	u64 before_ns, phc_ns, after_ns;
	struct device *phc;

	spin_lock_bh(&nic->lock);
	phc = get_device(nic->phc_dev);
	spin_unlock_bh(&nic->lock);
	if (!phc)
		return;
	/* An idle NIC needs no mapping: read the clock only if new pairs have come. */
	if (READ_ONCE(cross_timestamps) && nic->phc_pairs != nic->clock.pairs &&
	    timely_phc_read(phc, &before_ns, &phc_ns, &after_ns))
		interval = timely_nic_take_reading(nic, phc, before_ns, phc_ns, after_ns);
	put_device(phc);
	schedule_delayed_work(&nic->phc_work, interval);
}

/* ---- lifetime and settings ---- */

/**
 * timely_nic_clock_init() - prepare the clock mapping of a new NIC
 * @nic: the NIC, not yet in timely_nics; @nic->dev and @nic->batches are set, the rest is zero
 */
void timely_nic_clock_init(struct timely_nic *nic)
{
	spin_lock_init(&nic->lock);
	seqcount_spinlock_init(&nic->seq, &nic->lock);
	timely_clock_init(&nic->clock);
	nic->map = nic->clock.map;
	nic->use = true;
	nic->phc = -1;
	INIT_DELAYED_WORK(&nic->phc_work, timely_nic_phc_fn);
}

/* Replaces the device of the PTP clock by @phc, whose reference is the NIC's from now on; NULL for
 * none. Timestamps of another clock contradict the mapping, so the mapping starts anew. Returns
 * whether the device is another one.
 */
static bool timely_nic_set_phc(struct timely_nic *nic, struct device *phc)
{
	struct device *former;

	spin_lock_bh(&nic->lock);
	former = nic->phc_dev;
	nic->phc_dev = phc;
	if (former && phc && former != phc) {
		timely_clock_forget(&nic->clock);
		timely_nic_publish(nic);
	}
	spin_unlock_bh(&nic->lock);
	put_device(former);
	return former != phc;
}

/**
 * timely_nic_clock_bind() - read a NIC's PTP clock from now on, if the clock is found
 * @nic: the NIC
 * @phc: index of the NIC's PTP clock, as in /dev/ptpN; negative for none
 *
 * Some drivers, such as stmmac, register another PTP clock whenever the device comes up or is
 * configured. So each event of the device calls this function again.
 *
 * Context: RTNL.
 */
void timely_nic_clock_bind(struct timely_nic *nic, int phc)
{
	struct device *dev = timely_phc_find(nic->dev, phc);

	WRITE_ONCE(nic->phc, phc);
	if (timely_nic_set_phc(nic, dev) && dev)
		schedule_delayed_work(&nic->phc_work, 0);
}

/**
 * timely_nic_clock_unbind() - stop reading the PTP clock of a NIC that is down
 * @nic: the NIC
 *
 * The driver may have removed the clock. While somebody has a reference to a removed clock, the
 * kernel gives its index to no other clock: the NIC's next clock would not be the same /dev/ptpN.
 *
 * Context: RTNL.
 */
void timely_nic_clock_unbind(struct timely_nic *nic)
{
	timely_nic_set_phc(nic, NULL);
}

/**
 * timely_nic_clock_stop() - stop reading a NIC's PTP clock, and release the clock
 * @nic: the NIC
 *
 * The caller ensures that no reader has the NIC any more, because timely_nic_arrival() may schedule
 * phc_work again.
 */
void timely_nic_clock_stop(struct timely_nic *nic)
{
	cancel_delayed_work_sync(&nic->phc_work);
	put_device(nic->phc_dev);
}

/**
 * timely_nic_clock_forget() - start the clock mapping of a NIC anew
 * @nic: the NIC
 *
 * For a NIC that was down or without power, because the NIC's clock may have restarted.
 */
void timely_nic_clock_forget(struct timely_nic *nic)
{
	spin_lock_bh(&nic->lock);
	timely_clock_forget(&nic->clock);
	timely_nic_publish(nic);
	spin_unlock_bh(&nic->lock);
}

/**
 * timely_nic_clock_use() - allow or forbid the use of hardware timestamps
 * @nic: the NIC
 * @use: true: allow; false: forbid, so that the clock mapping is still fitted but not sure for
 *	readers
 */
void timely_nic_clock_use(struct timely_nic *nic, bool use)
{
	spin_lock_bh(&nic->lock);
	nic->use = use;
	timely_nic_publish(nic);
	spin_unlock_bh(&nic->lock);
}
