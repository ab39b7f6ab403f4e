// SPDX-License-Identifier: GPL-2.0
/*
 * The table of NICs with hardware timestamps: finds a NIC by its device or by a NAPI ID.
 *
 * A received packet carries no reference to the NIC that wrote its hardware timestamp: bridges,
 * VLANs and bonds replace skb->dev. The packet keeps the ID of the NAPI instance (the receive
 * queue) that polled it. An xarray maps NAPI IDs to NICs. NAPI IDs are stored when a NIC comes up
 * or its link changes. As a driver may create NAPI instances at any time, a packet with an unknown
 * NAPI ID starts a search through all NICs.
 *
 * Any user can create virtual devices with NAPI instances in a user namespace. So nothing is stored
 * for NAPI IDs of devices that are not in the table. The kernel assigns new NAPI IDs in ascending
 * order: an ID that is not in the xarray and not above timely_napi_searched belongs to no NIC of
 * the table.
 *
 * Without CONFIG_NET_RX_BUSY_POLL packets carry no NAPI ID, and the xarray stays empty.
 */

#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/busy_poll.h>

#include "nic.h"

/* Maximum number of NAPI IDs stored for one NIC. IDs of deleted NAPI instances stay in the xarray,
 * which is harmless because the kernel does not assign an ID again soon. At the limit all IDs of
 * the NIC are removed, and those of its present NAPI instances are stored again.
 */
#define TIMELY_NAPIS_MAX	4096

/* Shortest time between two searches for NAPI IDs, jiffies: packets with unknown NAPI IDs cost at
 * most ten searches a second.
 */
#define TIMELY_NAPI_SEARCH	msecs_to_jiffies(100)

/* All NICs with hardware timestamps, and the xarray from NAPI ID to NIC. Both are written under
 * RTNL and read under RCU.
 */
LIST_HEAD(timely_nics);
DEFINE_XARRAY(timely_napis);

/* The highest NAPI ID that a received packet had and the xarray did not have. */
static u32 timely_napi_unknown;
/* Value of timely_napi_unknown when the latest completed search for NAPI IDs began. */
u32 timely_napi_searched;

/* When the latest search for NAPI IDs ended, jiffies. */
static unsigned long timely_napi_search_end;

/**
 * timely_nic_find() - find the NIC object of a device
 * @dev: the device
 *
 * Context: RTNL or RCU read lock.
 *
 * Return: the NIC, or NULL if the device does not timestamp received packets in hardware, was never
 * up, or could not be added for lack of memory.
 */
struct timely_nic *timely_nic_find(const struct net_device *dev)
{
	struct timely_nic *nic;

	list_for_each_entry_rcu(nic, &timely_nics, list, lockdep_rtnl_is_held())
		if (nic->dev == dev)
			return nic;
	return NULL;
}

/**
 * timely_nic_forget_napis() - remove all NAPI IDs of a NIC
 * @nic: the NIC
 *
 * Context: RTNL.
 */
void timely_nic_forget_napis(struct timely_nic *nic)
{
	unsigned long id;
	void *entry;

	xa_for_each(&timely_napis, id, entry)
		if (entry == nic)
			xa_erase(&timely_napis, id);
	nic->napis = 0;
}

#ifdef CONFIG_NET_RX_BUSY_POLL
/* Returns the first NAPI ID of the NIC that is not in the xarray yet, 0 if all are. */
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

/**
 * timely_nic_note_napis() - store the NAPI IDs that a NIC has now
 * @nic: the NIC
 *
 * If there is no memory, the remaining IDs are missing until the next call. A packet with a missing
 * ID above timely_napi_searched requests a search, which makes this call.
 *
 * Context: RTNL, may sleep.
 */
void timely_nic_note_napis(struct timely_nic *nic)
{
	int left = TIMELY_NAPIS_MAX;
	u32 id;

	/* xa_store() may sleep, so each ID is stored after the RCU walk that has found it. A NIC
	 * may have more than TIMELY_NAPIS_MAX instances: the rest waits for a packet that has its
	 * ID.
	 */
	while (left-- && (id = timely_nic_new_napi(nic))) {
		if (nic->napis >= TIMELY_NAPIS_MAX)
			timely_nic_forget_napis(nic);
		if (xa_err(xa_store(&timely_napis, id, nic, GFP_KERNEL)))
			return;
		nic->napis++;
	}
}

/* Returns the time until the next search for NAPI IDs may start, jiffies. */
static unsigned long timely_napi_search_delay(void)
{
	unsigned long since = jiffies - READ_ONCE(timely_napi_search_end);

	return since < TIMELY_NAPI_SEARCH ? TIMELY_NAPI_SEARCH - since : 0;
}

static void timely_napi_search_fn(struct work_struct *work)
{
	/* Read this first: the search may miss IDs that appear in packets meanwhile. */
	u32 unknown = READ_ONCE(timely_napi_unknown);
	struct timely_nic *nic;

	rtnl_lock();
	list_for_each_entry(nic, &timely_nics, list)
		timely_nic_note_napis(nic);
	WRITE_ONCE(timely_napi_searched, unknown);
	rtnl_unlock();
	WRITE_ONCE(timely_napi_search_end, jiffies);
}

static DECLARE_DELAYED_WORK(timely_napi_search, timely_napi_search_fn);

/**
 * timely_nic_search_napi() - request a search for an unknown NAPI ID
 * @id: the NAPI ID
 *
 * One search covers all unknown NAPI IDs. Searches are at least TIMELY_NAPI_SEARCH apart.
 *
 * Context: any.
 */
void timely_nic_search_napi(u32 id)
{
	if (id > READ_ONCE(timely_napi_unknown))
		WRITE_ONCE(timely_napi_unknown, id);
	if (!delayed_work_pending(&timely_napi_search))
		schedule_delayed_work(&timely_napi_search, timely_napi_search_delay());
}

/**
 * timely_nic_table_exit() - end searches for NAPI IDs and free the table of NICs
 *
 * The caller does not hold RTNL. All NICs have been removed, and no packet can request a search.
 */
void timely_nic_table_exit(void)
{
	cancel_delayed_work_sync(&timely_napi_search);
	xa_destroy(&timely_napis);
}
