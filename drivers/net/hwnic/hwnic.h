/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hwnic: a simulated pair of Ethernet NICs ("ends") joined by a cable, for tests. Each end has a
 * PTP clock and hardware timestamps. README.md has the settings and the limits.
 *
 *	main.c		creates and deletes pairs; one timer and one NAPI instance for each end
 *	tx.c		from the stack to the cable
 *	rx.c		from the cable to the stack
 *	phc.c		the PTP clock of an end
 *	ethtool.c	settings and counters that real NICs have
 *	sysfs.c		settings that real NICs do not have
 *	truth.c		a log of exact times, with which tests compare what they measure
 *
 * All times are CLOCK_MONOTONIC, ns, unless they are said to be of the PTP clock. They are computed
 * when a packet is sent: when the last bit of each frame leaves the sender's port (departure), when
 * it has reached the receiver's port (arrival), and when the receiver's host can see the frame
 * (host time). Each end has one hrtimer that expires at the next of these times. hwnic_catch_up()
 * then processes all events up to now, in order and with the times that were computed. So no
 * measured time depends on when a timer or a poll really ran.
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

/* Bytes that a frame takes on the link besides the skb's: preamble 8, CRC 4, gap 12. */
#define HWNIC_WIRE_BYTES	24
/* Largest values of settings; README.md describes the settings. Rings are in frames. */
#define HWNIC_SPEED_MBPS_MAX	1000000u
#define HWNIC_RING_MAX		65536u
#define HWNIC_USECS_MAX		1000000u
#define HWNIC_DELAY_NS_MAX	NSEC_PER_SEC
#define HWNIC_JITTER_NS_MAX	NSEC_PER_SEC
#define HWNIC_STAMP_STEP_NS_MAX	1000000
#define HWNIC_STAMP_WRONG_MAX	1000000
#define HWNIC_WRONG_NS		NSEC_PER_MSEC
#define HWNIC_PPB_MAX		1000000
#define HWNIC_TRUTH_MAX		16777216u
/* Default sizes of the rings, frames. */
#define HWNIC_TX_RING		1024u
#define HWNIC_RX_RING		4096u
/* Largest number of frames in the cable, to bound memory; further frames are lost. */
#define HWNIC_FLIGHT_MAX	1048576u
/* Entries of the hash table that keeps the frames of a flow in order; a power of two. */
#define HWNIC_FLOWS		4096u

/* Private flags of ethtool. */
enum {
	HWNIC_FLAG_BQL = 1u << 0,
};

/**
 * struct hwnic_phc - the PTP clock of one end: a linear function of CLOCK_MONOTONIC
 * @mono_ns: reference point of the function, CLOCK_MONOTONIC
 * @ns: time of the PTP clock at @mono_ns
 * @frac: fraction of a nanosecond to add to @ns, in units of 1/HWNIC_PHC_UNIT ns
 * @drift: how much faster than CLOCK_MONOTONIC the clock runs, in units of 2^-16 ppb
 * @fine: correction that adjfine adds to @drift, in the same unit
 * @wander_ppb_per_s: change of @drift, ppb per second
 * @wander_ns: when @drift changes next, CLOCK_MONOTONIC
 * @wander_rest: remainder of the latest change of @drift, in hundredths of its unit
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

/**
 * struct hwnic_tx_cb - a packet in the TX ring, in skb->cb
 * @start_ns: when the first bit leaves; if @stamp and all frames have left, the time of the PTP
 *	clock at @done_ns
 * @done_ns: when the last bit leaves
 * @rest: fraction of a nanosecond to add to @start_ns, in units of 1/@speed_mbps ns
 * @speed_mbps: link rate at which the packet is sent, Mb/s
 * @frame_bytes: size of each frame but the last, bytes without HWNIC_WIRE_BYTES
 * @last_bytes: size of the last frame
 * @bql_bytes: bytes that were reported to BQL; 0: BQL was off
 * @early_ns: the timestamp is of this time before @done_ns, see hwnic.stamp_host
 * @frames: number of frames
 * @gone: number of frames that have left
 * @stamp: the sender gets a TX hardware timestamp
 */
struct hwnic_tx_cb {
	u64 start_ns;
	u64 done_ns;
	u32 rest;
	u32 speed_mbps;
	u32 frame_bytes;
	u32 last_bytes;
	u32 bql_bytes;
	u32 early_ns;
	u16 frames;
	u16 gone;
	bool stamp;
};

/**
 * struct hwnic_rx_cb - a frame on its way to the receiver's host, in skb->cb
 * @arrival_ns: when the last bit reaches the receiver's port
 * @host_ns: when the receiver's host can see the frame: the interrupt plus the random delay
 * @node: node in hwnic.hosts, once @host_ns is known
 * @next: next frame in hwnic.batch, until then
 * @dropped: the frame was too long, or the RX ring was full; it is freed at @host_ns
 */
struct hwnic_rx_cb {
	u64 arrival_ns;
	u64 host_ns;
	union {
		struct rb_node node;
		struct sk_buff *next;
	};
	bool dropped;
};

/* Counters for ethtool -S, in the order of hwnic_counter_names[]. */
struct hwnic_counters {
	u64 rx_frames;
	u64 rx_bytes;
	u64 rx_stamped;
	u64 rx_jitter_max_ns;
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

/* Types of log records. README.md has their text. */
enum hwnic_truth_type {
	HWNIC_TRUTH_R,		/* a TCP frame has arrived */
	HWNIC_TRUTH_T,		/* a TCP frame has left */
	HWNIC_TRUTH_Q,		/* the bytes in the TX ring have changed */
};

/* A record of the log; R and T have TCP's numbers and ports in host byte order. */
struct hwnic_record {
	u64 mono_ns;		/* time of the event, CLOCK_MONOTONIC */
	u64 value;		/* R, T: PTP clock; Q: bytes */
	u32 seq_end;
	u32 ack_seq;
	u16 sport;
	u16 dport;
	u32 len : 24;		/* TCP payload, bytes */
	u32 type : 8;		/* enum hwnic_truth_type */
};

/**
 * struct hwnic_truth - the log: a ring that overwrites its oldest record
 * @ring: the records; NULL: nothing is logged
 * @size: size of @ring, records
 * @first: index of the oldest record
 * @count: number of records
 * @types: types that are logged, bits of enum hwnic_truth_type
 * @lost: number of records that were overwritten
 */
struct hwnic_truth {
	struct hwnic_record *ring;
	u32 size;
	u32 first;
	u32 count;
	u32 types;
	u64 lost;
};

/**
 * struct hwnic - one end of a pair
 * @dev: its net device
 * @peer: the other end; NULL once the pair is being deleted; RTNL, RCU
 * @parent: device that is the parent of @dev and of @ptp
 * @napi: the only NAPI instance: completes sent packets and receives frames
 * @timer: expires at @armed_ns
 * @lock: protects all members below
 * @up: the device is open
 * @armed_ns: when @timer expires; U64_MAX: not armed
 * @flags: HWNIC_FLAG_*
 * @speed_mbps: link rate of this direction, Mb/s
 * @delay_ns: delay of the cable from this end to the other end
 * @tx_ring: size of the TX ring, frames
 * @tx_used: frames in the TX ring, until their packet is completed
 * @tx_frames: frames in the TX ring that have not left
 * @tx_bytes: bytes of @tx_frames
 * @tx_pending: packets that have not left completely
 * @tx_done: packets that have left, to be completed by the next poll
 * @link_free_ns: when the link can send the next packet: it has sent all packets of the TX ring,
 *	and a pause (pause_ns in sysfs) is over
 * @link_free_rest: fraction of @link_free_ns, in units of 1/@link_free_mbps ns
 * @link_free_mbps: link rate at which the last packet was sent
 * @rx_ring: size of the RX ring, frames
 * @rx_used: frames in the RX ring, between arrival and host time
 * @rx_usecs: interrupt moderation: longest time from a frame's arrival to its interrupt, us
 * @rx_batch_frames: interrupt moderation: frames that cause an interrupt at once; 0: no limit
 * @jitter_ns: longest random delay between interrupt and host time
 * @jitter: random number generator for that delay
 * @jitter_until_ns: the latest host time of all frames that have got a random delay
 * @wire: frames in the cable, in order of arrival
 * @last_arrival_ns: arrival of the frame that was put into @wire last; the next frames do
 *	not arrive earlier
 * @hosts: frames in order of hwnic_rx_cb.host_ns; a frame in the cable is also in @wire
 * @batch: first of the frames that wait for an interrupt, linked by hwnic_rx_cb.next
 * @batch_tail: last of these frames
 * @batch_frames: number of these frames
 * @batch_ns: latest time of their interrupt
 * @flow_host_ns: the latest host time of each flow's frames, by hash; HWNIC_FLOWS entries
 * @phc: the clock of this end
 * @ptp: the PTP clock that shows @phc
 * @ptp_info: operations of @ptp
 * @phc_again: each time the end comes up, the driver registers another PTP clock
 * @phc_gone: @ptp was removed because of @phc_again; under RTNL
 * @stamp_all: the NIC can timestamp all received frames; false: only those of PTP
 * @stamp_host: timestamps are of the times at which the host gives or sees a frame, as those of the
 *	kernel; false: of the times on the link
 * @stamp_step_ns: timestamps are multiples of this, rounded down, ns; 0: they are exact
 * @stamp_wrong: N: of N received frames one has a timestamp of HWNIC_WRONG_NS before its arrival;
 *	0: none
 * @stamped: received frames with a timestamp, modulo @stamp_wrong
 * @rx_filter: HWTSTAMP_FILTER_*
 * @tx_type: HWTSTAMP_TX_*
 * @queries: how often the driver was asked for its link rate or timestamping capabilities, which
 *	makes real drivers ask their firmware; under RTNL
 * @truth: the log
 * @truth_lock: mutex for changing and reading the log
 * @truth_dir: directory of the log in debugfs
 * @count: counters for ethtool -S
 */
struct hwnic {
	struct net_device *dev;
	struct hwnic __rcu *peer;
	struct platform_device *parent;
	struct napi_struct napi;
	struct hrtimer timer;

	spinlock_t lock; /* protects all members below */
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
	u64 link_free_ns;
	u32 link_free_rest;
	u32 link_free_mbps;

	u32 rx_ring;
	u32 rx_used;
	u32 rx_usecs;
	u32 rx_batch_frames;
	u32 jitter_ns;
	struct rnd_state jitter;
	u64 jitter_until_ns;
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
	u32 phc_again;
	bool phc_gone;
	bool stamp_all;
	bool stamp_host;
	u32 stamp_step_ns;
	u32 stamp_wrong;
	u32 stamped;
	int rx_filter;
	int tx_type;
	u32 queries;

	struct hwnic_truth truth;
	struct mutex truth_lock; /* changes and reads of truth */
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

/* Are records of this type logged? */
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
u64 hwnic_stamp_ns(const struct hwnic *end, u64 mono_ns);
void hwnic_phc_move(struct hwnic_phc *phc, u64 mono_ns);
int hwnic_phc_set(struct hwnic *end, s64 ns);
int hwnic_phc_step(struct hwnic *end, s64 ns);
void hwnic_phc_drift(struct hwnic *end, s64 ppb);
void hwnic_phc_wander(struct hwnic *end, s64 ppb_per_s);
s64 hwnic_phc_drift_ppb(struct hwnic *end);
int hwnic_phc_register(struct hwnic *end, u64 epoch_ns);
void hwnic_phc_again(struct hwnic *end, bool up);
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
