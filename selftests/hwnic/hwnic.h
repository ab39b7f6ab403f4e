/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hwnic: a pair of network cards and the cable between them, for tests.
 *
 * All times are CLOCK_MONOTONIC, in ns, and are worked out when a packet is
 * sent: when each of its frames is wholly out of the sender's port (departure),
 * when it is wholly in the receiver's (arrival), and when the receiver's host
 * gets to see it (host). One hrtimer for each end fires when the next thing is
 * due; what has happened meanwhile is caught up with then, in order and at the
 * times that it had, by hwnic_catch_up(). So nothing that is measured depends on
 * when a timer or a poll really ran.
 */
#ifndef _HWNIC_H
#define _HWNIC_H

#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/prandom.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>

#include <hwnic_compat.h>

/* On the wire beside the frame: preamble 8, CRC 4, gap 12 bytes. */
#define HWNIC_WIRE_BYTES	24
#define HWNIC_SPEED_MBPS_MAX	1000000u
#define HWNIC_RING_MAX		65536u
#define HWNIC_TX_RING		1024u
#define HWNIC_RX_RING		4096u
#define HWNIC_USECS_MAX		1000000u
#define HWNIC_DELAY_NS_MAX	NSEC_PER_SEC
#define HWNIC_NOISE_NS_MAX	NSEC_PER_SEC
/* What is sent but not yet in the receiver's hands, whatever rate and delay. */
#define HWNIC_FLIGHT_MAX	1048576u
#define HWNIC_FLOWS		4096u
#define HWNIC_PPB_MAX		1000000
#define HWNIC_TRUTH_MAX		16777216u

enum {
	HWNIC_FLAG_BQL = 1u << 0,
};

/**
 * struct hwnic_phc - a clock that runs at a rate of its own
 * @mono_ns: where the line begins that the clock is now
 * @ns: the clock there
 * @frac: and the rest of it, in 1/HWNIC_PHC_UNIT ns
 * @drift: how much faster than CLOCK_MONOTONIC, in 2^-16 ppb
 * @fine: what adjfine has put on top, the same unit
 * @wander_ppb_per_s: how the drift moves
 * @wander_ns: when it moves next
 * @wander_rest: what did not fit in @drift, in hundredths of its unit
 */
struct hwnic_phc {
	u64 mono_ns;
	u64 ns;
	u64 frac;
	s64 drift;
	s64 fine;
	s64 wander_ppb_per_s;
	u64 wander_ns;
	u64 wander_rest;
};

/* One packet that is sent: its frames but the last are of one size. */
struct hwnic_tx_cb {
	u64 start_ns;		/* its first bit; once all is out: the PHC at @done_ns */
	u64 done_ns;		/* its last */
	u32 rest;		/* @start_ns' fraction, in 1/@speed_mbps ns */
	u32 speed_mbps;
	u32 frame_bytes;
	u32 last_bytes;
	u32 bql_bytes;		/* told to BQL, 0 if nothing was */
	u16 frames;
	u16 gone;		/* of @frames, those that are out */
	bool stamp;		/* tell the sender when it was out */
};

/* One frame on its way to the receiver's host. */
struct hwnic_rx_cb {
	u64 arrival_ns;
	u64 host_ns;
	union {
		struct rb_node node;	/* in hosts */
		struct sk_buff *next;	/* in the batch */
	};
	bool dropped;		/* the ring was full; freed when it would be due */
};

/* Counters, in the order of hwnic_counter_names[]. */
struct hwnic_counters {
	u64 rx_frames;
	u64 rx_bytes;
	u64 rx_stamped;
	u64 rx_noise_max_ns;
	u64 rx_ring_drops;
	u64 rx_ring_max;
	u64 rx_length_errors;
	u64 rx_interrupts;
	u64 tx_packets;
	u64 tx_frames;
	u64 tx_bytes;
	u64 tx_stamped;
	u64 tx_ring_full;
	u64 tx_ring_max;
	u64 tx_no_memory;
	u64 wire_lost;
	u64 interrupts;
};

enum hwnic_truth_type {
	HWNIC_TRUTH_R,
	HWNIC_TRUTH_T,
	HWNIC_TRUTH_Q,
};

/* A line of the truth. */
struct hwnic_record {
	u64 mono_ns;
	u64 value;		/* R, T: the PHC; Q: bytes */
	u32 seq_end;
	u32 ack_seq;
	u16 sport;
	u16 dport;
	u32 len : 24;
	u32 type : 8;
};

/* A ring that forgets its oldest. */
struct hwnic_truth {
	struct hwnic_record *ring;
	u32 size;
	u32 first;
	u32 count;
	u32 types;		/* bits of enum hwnic_truth_type */
	u64 lost;
};

/**
 * struct hwnic - one end
 * @dev: its net device
 * @peer: the other end, NULL once the pair is being taken apart; RTNL, RCU
 * @parent: device that is the parent of @dev and of @ptp
 * @napi: the only one: completions and arrivals
 * @timer: fires at @armed_ns
 * @lock: all below
 * @up: between open and stop
 * @armed_ns: when @timer fires; U64_MAX: not at all
 * @flags: HWNIC_FLAG_*
 * @speed_mbps: of what is sent from here
 * @delay_ns: what a frame sent from here spends in the cable
 * @tx_ring: frames that fit
 * @tx_used: frames in it, until their packet is completed
 * @tx_frames: frames in it that are not out yet
 * @tx_bytes: their bytes
 * @tx_pending: packets that are not wholly out
 * @tx_done: packets that are, for the next poll to complete
 * @line_ns: when the line gets free
 * @line_rest: and its fraction, in 1/@line_speed_mbps ns
 * @line_speed_mbps: speed of the last packet
 * @rx_ring: frames that fit between arrival and host
 * @rx_used: frames in it
 * @rx_usecs: how long an interrupt may wait
 * @rx_batch_frames: how many frames it may wait for, 0: any number
 * @noise_ns: the most that the host is late
 * @noise: where noise comes from
 * @noise_until_ns: the last of the times that noise has postponed something to
 * @wire: frames by arrival, until they arrive
 * @last_arrival_ns: of the last frame in @wire, which later ones do not pass
 * @hosts: frames by host_ns
 * @batch: first of the frames that wait for an interrupt to be decided, linked by
 *	hwnic_rx_cb.next
 * @batch_tail: last of them
 * @batch_frames: their number
 * @batch_ns: when their interrupt comes at the latest
 * @flow_host_ns: last host_ns of each flow, by hash
 * @phc: this end's clock
 * @ptp: its face to user space
 * @ptp_info: and what that calls
 * @stamp_all: can stamp any frame, not only PTP's
 * @rx_filter: HWTSTAMP_FILTER_*
 * @tx_type: HWTSTAMP_TX_*
 * @queries: how often the driver was asked for its link's speed or what it can stamp,
 *	which real cards may have to ask their firmware for; under RTNL
 * @truth: log of what happened
 * @truth_lock: mutex for who changes or reads it
 * @truth_dir: its directory in debugfs
 * @count: for ethtool -S
 */
struct hwnic {
	struct net_device *dev;
	struct hwnic __rcu *peer;
	struct platform_device *parent;
	struct napi_struct napi;
	struct hrtimer timer;

	spinlock_t lock; /* see above */
	bool up;
	u64 armed_ns;
	u32 flags;

	u32 speed_mbps;
	u32 delay_ns;
	u32 tx_ring;
	u32 tx_used;
	u32 tx_frames;
	u32 tx_bytes;
	struct sk_buff_head tx_pending;
	struct sk_buff_head tx_done;
	u64 line_ns;
	u32 line_rest;
	u32 line_speed_mbps;

	u32 rx_ring;
	u32 rx_used;
	u32 rx_usecs;
	u32 rx_batch_frames;
	u32 noise_ns;
	struct rnd_state noise;
	u64 noise_until_ns;
	struct sk_buff_head wire;
	u64 last_arrival_ns;
	struct rb_root_cached hosts;
	struct sk_buff *batch;
	struct sk_buff *batch_tail;
	u32 batch_frames;
	u64 batch_ns;
	u64 *flow_host_ns;

	struct hwnic_phc phc;
	struct ptp_clock *ptp;
	struct ptp_clock_info ptp_info;
	bool stamp_all;
	int rx_filter;
	int tx_type;
	u32 queries;

	struct hwnic_truth truth;
	struct mutex truth_lock; /* see above */
	struct dentry *truth_dir;

	struct hwnic_counters count;
};

static inline struct hwnic_tx_cb *hwnic_tx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct hwnic_tx_cb) > sizeof(skb->cb));
	return (struct hwnic_tx_cb *)skb->cb;
}

static inline struct hwnic_rx_cb *hwnic_rx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct hwnic_rx_cb) > sizeof(skb->cb));
	return (struct hwnic_rx_cb *)skb->cb;
}

static inline bool hwnic_truth_wants(const struct hwnic *end, enum hwnic_truth_type type)
{
	return end->truth.ring && end->truth.types & BIT(type);
}

/* main.c */
u64 hwnic_catch_up(struct hwnic *end);
void hwnic_arm(struct hwnic *end);

/* tx.c */
netdev_tx_t hwnic_xmit(struct sk_buff *skb, struct net_device *dev);
void hwnic_tx_catch_up(struct hwnic *end, u64 now_ns);
void hwnic_tx_complete(struct hwnic *end, struct sk_buff_head *done);
void hwnic_tx_free(struct hwnic *end, struct sk_buff_head *done, int budget);
void hwnic_tx_flush(struct hwnic *end);

/* rx.c */
void hwnic_rx_send(struct hwnic *end, struct sk_buff *frames);
void hwnic_rx_catch_up(struct hwnic *end, u64 now_ns);
int hwnic_rx_take(struct hwnic *end, u64 now_ns, int budget, struct sk_buff_head *due);
void hwnic_rx_deliver(struct hwnic *end, struct sk_buff_head *due);
u64 hwnic_rx_next_ns(const struct hwnic *end);
void hwnic_rx_flush(struct hwnic *end);

/* phc.c */
u64 hwnic_phc_ns(const struct hwnic_phc *phc, u64 mono_ns);
void hwnic_phc_move(struct hwnic_phc *phc, u64 mono_ns);
int hwnic_phc_set(struct hwnic *end, s64 ns);
int hwnic_phc_step(struct hwnic *end, s64 ns);
void hwnic_phc_drift(struct hwnic *end, s64 ppb);
void hwnic_phc_wander(struct hwnic *end, s64 ppb_per_s);
s64 hwnic_phc_drift_ppb(struct hwnic *end);
int hwnic_phc_register(struct hwnic *end, u64 epoch_ns);
void hwnic_phc_unregister(struct hwnic *end);

/* ethtool.c */
extern const struct ethtool_ops hwnic_ethtool_ops;
int hwnic_hwtstamp_get(struct net_device *dev, struct kernel_hwtstamp_config *config);
int hwnic_hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *config,
		       struct netlink_ext_ack *extack);

/* sysfs.c */
extern const struct attribute_group hwnic_sysfs_group;

/* truth.c */
void hwnic_truth_tcp(struct hwnic *end, enum hwnic_truth_type type, struct sk_buff *skb,
		     u64 mono_ns, u32 index);
void hwnic_truth_queue(struct hwnic *end, u64 mono_ns);
void hwnic_truth_create(struct hwnic *end);
void hwnic_truth_remove(struct hwnic *end);
void hwnic_truth_init(void);
void hwnic_truth_exit(void);

#endif /* _HWNIC_H */
