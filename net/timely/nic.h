/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NICs with hardware timestamps: the object that describes one NIC, and the functions by which the
 * files below share the work. Private to module timely. A file calls only files that stand below it
 * and are indented further:
 *
 *	nic.c			which devices are such NICs, their lifetime and link rates
 *	  nic_clock.c		converts hardware timestamps to the host's time
 *	    phc.c		reads a NIC's PTP clock
 *	    nic_table.c		finds a NIC by its device or by a NAPI ID
 */
#ifndef _TIMELY_NIC_H
#define _TIMELY_NIC_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <timely/engine/clock.h>

/**
 * struct timely_nic - a NIC that timestamps received packets in hardware
 * @map: the clock mapping that readers use: a copy of @clock.map, but with a state other than
 *	TIMELY_CLOCK_SURE while @use is false
 * @seq: lets readers of @map notice an update during the reading, and read again
 * @ns_per_byte_q16: time that the link needs for one byte, ns in Q16; 0: not known
 * @batches: for each CPU, timestamp pairs collected and not yet handed to @clock
 * @lock: protects @clock, @map, @use and changes of @phc_dev
 * @clock: the engine that fits the clock mapping, see engine/clock.c
 * @list: entry in timely_nics
 * @dev: the network device; valid while this NIC is in timely_nics
 * @link_kbps: link rate as the driver reported it, kbit/s; 0: not known
 * @override_kbps: link rate that the administrator set, kbit/s; 0: none, use @link_kbps
 * @phc: index of the PTP clock when the device last came up or changed, as in /dev/ptpN; -1: none
 * @phc_dev: device of the PTP clock; NULL if the clock was not found, or the device is down
 * @phc_work: work item that reads the PTP clock
 * @phc_pairs: value of @clock.pairs when the PTP clock was last read
 * @napis: number of NAPI IDs in timely_napis that point to this NIC
 * @use: the administrator allows the use of hardware timestamps; false after
 *	`timelyctl nic set ... hardware off`
 *
 * Members above @lock are read for each packet and written rarely.
 */
struct timely_nic {
	struct timely_clock_map map;
	seqcount_spinlock_t seq;
	u32 ns_per_byte_q16;
	struct timely_clock_batch __percpu *batches;

	spinlock_t lock ____cacheline_aligned; /* clock, map, use, phc_dev */
	struct timely_clock clock;
	struct list_head list;
	struct net_device *dev;
	u32 link_kbps;
	u32 override_kbps;
	int phc;
	struct device *phc_dev;
	struct delayed_work phc_work;
	u64 phc_pairs;
	u32 napis;
	bool use;
};

/* nic_table.c */
extern struct list_head timely_nics;
extern struct xarray timely_napis;
extern u32 timely_napi_searched;

struct timely_nic *timely_nic_find(const struct net_device *dev);
void timely_nic_note_napis(struct timely_nic *nic);
void timely_nic_forget_napis(struct timely_nic *nic);
void timely_nic_search_napi(u32 id);
void timely_nic_table_exit(void);

/* nic_clock.c */
void timely_nic_clock_init(struct timely_nic *nic);
void timely_nic_clock_bind(struct timely_nic *nic, int phc);
void timely_nic_clock_unbind(struct timely_nic *nic);
void timely_nic_clock_stop(struct timely_nic *nic);
void timely_nic_clock_forget(struct timely_nic *nic);
void timely_nic_clock_use(struct timely_nic *nic, bool use);

/**
 * timely_nic_of_napi() - find the NIC that a packet came through
 * @id: NAPI ID of the packet, not 0
 * @foreign: set to true if no NIC with hardware timestamps has this NAPI ID; false if the NIC was
 *	found, or if a search for the NAPI ID has been requested
 *
 * Runs for each ACK with a hardware timestamp. Context: RCU read lock.
 *
 * Return: the NIC, or NULL.
 */
static inline struct timely_nic *timely_nic_of_napi(u32 id, bool *foreign)
{
	struct timely_nic *nic = xa_load(&timely_napis, id);

	*foreign = !nic && id <= READ_ONCE(timely_napi_searched);
	if (likely(nic || *foreign))
		return nic;
	timely_nic_search_napi(id);
	return NULL;
}

#endif /* _TIMELY_NIC_H */
