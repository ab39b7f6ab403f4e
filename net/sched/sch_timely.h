/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data structures of the qdisc "timely", and the inline functions that its files share.
 *
 * The module sch_timely has several files. In this list a file calls only files further down:
 *
 *	sch_timely.c		the path of a packet; creating and destroying a qdisc
 *	sch_timely_options.c	options, statistics
 *	sch_timely_flow.c	creating and freeing flows; shared flows
 *	sch_timely_table.c	buckets of the flow table
 *	sch_timely_entry.c	flow entries shared with TCP and On-Ramp
 *	sch_timely_split.c	GSO packets split into sub-segments
 *	sch_timely_packet.c	kinds of packets
 *	sch_timely_pace.h	when a flow's first packet may leave (inline)
 *	sch_timely.h		this file
 *
 * Functions that run for every packet are in sch_timely.c, or inline in the headers.
 */

#ifndef _SCH_TIMELY_H
#define _SCH_TIMELY_H

#include <linux/hash.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/workqueue.h>
#include <net/pkt_sched.h>
#include <net/sock.h>

#include <net/timely_flow.h>
#include <net/timely_qdisc.h>
#include <net/timely_tenant.h>
#include <uapi/linux/timely.h>
#include <timely/engine/drain.h>
#include <timely/engine/wheel.h>

/* The only clock of the qdisc, CLOCK_MONOTONIC. KUnit tests replace this clock. */
static inline u64 timely_clock_ns(void)
{
#ifdef TIMELY_CLOCK_NS
	return TIMELY_CLOCK_NS();
#else
	return ktime_get_ns();
#endif
}

/* The flow table has at most 2^20 buckets, 8 MB. With more flows, hash chains become longer. */
#define TQ_BUCKETS_MAX		(1U << 20)

/* Upper limit of a packet's transmission time at the flow's rate: 1 s, as in fq. Without the limit
 * a flow whose rate was very low for a moment would wait for long after the rate has risen.
 */
#define TQ_PACE_MAX_NS		((u64)NSEC_PER_SEC)
/* Fraction bits of transmission times per byte: Q24, in ns. */
#define TQ_PACE_SHIFT		24

/* A rate without a limit, or a time that never comes. */
#define TQ_UNLIMITED		(~0ULL)

/**
 * struct tq_skb_cb - the qdisc's private part of a packet's control block
 * @time_ns: earliest departure, CLOCK_MONOTONIC: the packet's timestamp, or its arrival if there is
 *	no timestamp; tq_lazy_time() if tq_is_lazy(); in a sub-segment set by tq_time_next_subseg()
 * @original: in the last sub-segment of a packet: the packet itself, kept so that TCP sees
 *	that the packet is still on this host; NULL in all other packets
 * @segs: frames that the device makes of the packet
 * @band: band whose tq_band.packets counts the packet
 * @subseg: the packet is a sub-segment; sub-segments leave before the flow's other packets
 * @more: further sub-segments of the same packet follow
 * @burst: sub-segment that leaves at @time_ns, whatever the flow's rate is
 * @waited: the flow has been in the timing wheel because of this packet
 * @paused: the packet has been counted as delayed by a pause
 * @tcp: TCP without encapsulation; set only if On-Ramp is on or the flow has a flow entry
 * @udp: UDP without encapsulation; set only in the cases in which @tcp may be set
 * @data: the packet is TCP with a payload, UDP or an IP fragment, so On-Ramp may pause it; set only
 *	in the cases in which @tcp may be set
 * @tcp_tstamp: the packet carries a timestamp that TCP has set
 * @charge: the flow has a rate, or may have one when the packet leaves: the next packet waits for
 *	this packet's transmission time
 * @bits: @band and all members after it as one number, to clear them with one instruction
 */
struct tq_skb_cb {
	u64 time_ns;
	struct sk_buff *original;
	u16 segs;
	union {
		struct {
			u8 band:2,
			   subseg:1,
			   more:1,
			   burst:1,
			   waited:1,
			   paused:1,
			   tcp:1,
			   udp:1,
			   data:1,
			   tcp_tstamp:1,
			   charge:1;
		};
		u16 bits;
	};
} __packed __aligned(4); /* 20 bytes; QDISC_CB_PRIV_LEN, 20, is the maximum */

/**
 * enum tq_state - where a flow is
 * @TQ_IDLE: in no list: the flow has no packets
 * @TQ_READY: in a round-robin list of its band; the flow may have no packets any more
 * @TQ_THROTTLED: in the timing wheel until its first packet is due
 */
enum tq_state {
	TQ_IDLE,
	TQ_READY,
	TQ_THROTTLED,
};

/**
 * struct tq_flow - a flow: packets that are queued, paced and paused as one
 * @node: THROTTLED: place in the timing wheel. READY: @node.next is the next flow of the
 *	round-robin list. IDLE: @node.due_ns is when the flow became idle
 * @sk: key: the socket's address, or a hash with bit 0 set. The socket may be gone, so the
 *	address is valid only while one of the socket's packets is handled
 * @hash_next: next flow of the same bucket of the flow table
 * @head: list of packets; the prev pointer of the first packet points to the last packet
 * @credit: bytes that the flow may send before the next flow of its round-robin list, as in fq; may
 *	be below 0
 * @qlen: packets; a split packet counts as one until its last sub-segment has left
 * @socket_hash: sk_hash of the socket; another value shows that another socket has the address @sk
 * @state: enum tq_state
 * @band: band of the packet that was queued last
 * @paced: @clock_ns and @owed are valid: the last packet was sent at a rate
 * @has_entry: @entry is not NULL
 * @has_cc: @entry belongs to a congestion control, which measures RTTs from departures;
 *	clear if @entry exists for On-Ramp only
 * @has_early: @early is not empty
 * @foreign: the flow is part of a struct tq_foreign
 * @shared: sockets beyond their network namespace's budget share the flow; no budget counts
 *	this flow
 * @clock_ns: pacing clock: when the last paced packet was due; later if this packet left so late
 *	that the flow does not make up for all of the lateness, see tq_charge()
 * @owed: bytes sent at @clock_ns; the next packet waits for their transmission time
 * @last_lookup: jiffies, low 32 bits, of the last search for a flow entry that failed, or that
 *	followed a change of the destination
 * @rate_Bps: rate that @ns_per_byte was computed from, bytes per second
 * @ns_per_byte: transmission time of a byte at @rate_Bps, Q24
 * @entry: flow entry, or NULL
 * @early: packets with earlier timestamps than a packet before them, ordered by time
 * @tstamp_ns: TCP's timestamp of the last packet that had such a timestamp and has left
 * @departed_ns: when the packet with the timestamp @tstamp_ns left
 *
 * A flow has two cache lines, as in fq. The path of a packet uses only the first line if the flow
 * has no rate and no flow entry, and its packets arrive in the order of their timestamps.
 */
struct tq_flow {
	struct timely_wheel_node node;
	struct sock *sk;
	struct tq_flow *hash_next;
	struct sk_buff *head;
	s32 credit;
	u32 qlen;
	u32 socket_hash;
	u8 state;
	u8 band;
	u8 paced:1,
	   has_entry:1,
	   has_cc:1,
	   has_early:1,
	   foreign:1,
	   shared:1;
	/* second cache line */
	u64 clock_ns;
	u32 owed;
	u32 last_lookup;
	u64 rate_Bps;
	u64 ns_per_byte;
	struct timely_flow *entry;
	struct rb_root early;
	u64 tstamp_ns;
	u64 departed_ns;
};

/**
 * struct tq_foreign - flow of a socket whose network namespace is not the device's
 * @flow: the flow
 * @budget: budget of the socket's namespace, which counts the flow
 *
 * Packets of such sockets come through devices like macvlan. All other flows are counted in
 * tq_sched.budget. They have no pointer to their budget, because struct tq_flow fills its two cache
 * lines.
 */
struct tq_foreign {
	struct tq_flow flow;
	struct timely_budget *budget;
};

/**
 * struct tq_round - a round-robin list of flows
 * @first: flow that sends next; NULL if the list is empty
 * @last: last flow, behind which flows are added; valid if @first is not NULL
 */
struct tq_round {
	struct tq_flow *first;
	struct tq_flow *last;
};

/**
 * struct tq_band - the ready flows of a class of priorities
 * @new_flows: flows that were idle; they send before @old_flows
 * @old_flows: flows that have used up their credit (tq_flow.credit), that come from the timing
 *	wheel, or that became empty as new flows (tq_leave_round())
 * @credit: bytes that the band may send before the next band
 * @packets: packets queued in flows; the option limit is their maximum
 */
struct tq_band {
	struct tq_round new_flows;
	struct tq_round old_flows;
	s32 credit;
	u32 packets;
};

/**
 * struct tq_table - the flow table, a hash table of flows by key
 * @buckets: number of buckets
 * @half: greatest power of two that is not above @buckets
 * @pages: TQ_PAGES pointers to pages of buckets; NULL for pages that no bucket uses
 */
struct tq_table {
	u32 buckets;
	u32 half;
	struct tq_flow ***pages;
};

#define TQ_PAGE_BUCKETS		(PAGE_SIZE / sizeof(struct tq_flow *))
#define TQ_PAGES		(TQ_BUCKETS_MAX / TQ_PAGE_BUCKETS)

/* The numeric options of <net/timely_qdisc.h>, as indices of tables. */
#define TQ_OPTION_INDEX(field, ...)	TQ_O_##field,
enum tq_option {
	TIMELY_QDISC_OPTIONS(TQ_OPTION_INDEX)
	TQ_O_COUNT
};

/**
 * struct tq_options - the options in the units of netlink, as tc shows them
 * @value: numeric options, by enum tq_option
 * @priomap: band of each priority
 * @weights: bytes that each band may send before the next band
 */
struct tq_options {
	u64 value[TQ_O_COUNT];
	struct tc_prio_qopt priomap;
	s32 weights[TIMELY_BANDS];
};

/**
 * struct tq_config - the options in the units of the path of a packet
 * @horizon_ns: how far in the future a packet's timestamp may be
 * @offload_ns: packets due within this time go to the device, which delays them itself
 * @maxrate_Bps: highest rate of a flow, bytes per second; TQ_UNLIMITED for none
 * @ce_threshold_ns: packets that leave more than this after their due time are marked CE
 * @refill_ns: idle time after which a flow has a full quantum of credit again
 * @split_ns_per_byte: transmission time of a byte between sub-segments of a packet, Q24;
 *	0 to use the flow's rate
 * @flow_limit: packets that a flow may queue
 * @quantum: bytes of credit that a flow gets at a time
 * @initial_quantum: bytes of credit that a new flow gets first
 * @orphan_mask: mask of the hash that makes flows of packets without a connected socket
 * @low_rate_Bps: flows with this rate or less are paced by packets, and not by quanta; bytes per
 *	second
 * @timer_slack_ns: longest delay that the kernel may add to the timer, to share interrupts
 * @catch_up_ns: lateness of a departure that the next packet always makes up for: tq_charge()
 * @split: largest sub-segment, bytes; 0: packets are not split
 * @pacing: enforce the rates of flows
 * @lazy: read rates again when packets are due
 * @horizon_drop: drop packets with timestamps beyond the horizon; 0: delay them to the horizon
 * @ack_first: pure ACKs leave before all other packets
 * @ack_time: pure ACKs get the time as their IPv4 ID
 * @ack_thin: a pure ACK replaces an earlier one of its connection that still waits
 * @ack_special: one of the options ack_time, ack_first, ack_dscp and ack_priority is set
 * @wrong_clock_drop: drop packets with timestamps of another clock; 0: remove the timestamps
 * @onramp: On-Ramp is on
 * @ack_dscp: DSCP of pure ACKs, or TIMELY_DSCP_KEEP
 * @ack_priority: skb priority of pure ACKs, or TIMELY_PRIORITY_KEEP
 * @prio2band: band of each priority
 * @weights: bytes that each band may send before the next band
 *
 * tq_apply() computes the values from struct tq_options, under the qdisc's lock.
 */
struct tq_config {
	u64 horizon_ns;
	u64 offload_ns;
	u64 maxrate_Bps;
	u64 ce_threshold_ns;
	u64 refill_ns;
	u64 split_ns_per_byte;
	u32 flow_limit;
	u32 quantum;
	u32 initial_quantum;
	u32 orphan_mask;
	u32 low_rate_Bps;
	u32 timer_slack_ns;
	u32 catch_up_ns;
	u32 split;
	u8 pacing:1,
	   lazy:1,
	   horizon_drop:1,
	   ack_first:1,
	   ack_time:1,
	   ack_thin:1,
	   ack_special:1,
	   wrong_clock_drop:1,
	   onramp:1;
	u8 ack_dscp;
	u8 ack_priority;
	u8 prio2band[TC_PRIO_MAX + 1];
	s32 weights[TIMELY_BANDS];
};

/**
 * struct tq_sched - private part of a qdisc
 * @config: options as the path of a packet reads them
 * @table: flow table
 * @wheel: timing wheel of the throttled flows
 * @band_nr: band that sends now
 * @bypass: bypass list: packets that leave before those of all flows; the prev pointer of the first
 *	packet points to the last packet
 * @bypass_qlen: packets of @bypass
 * @bypass_flow: flow of the first packet of @bypass, if this packet's departure must be recorded;
 *	else NULL
 * @flows: flows in @table
 * @inactive: flows without packets
 * @throttled: flows in @wheel
 * @ready: flows in round-robin lists, with and without packets
 * @bands: ready flows by band
 * @notifier: where flow entries report changed rates and pauses
 * @watchdog: timer that runs the qdisc when the next flow is due
 * @stats: counters; tq_dump_stats() adds the values that are computed
 * @slack_ns: how late the timer may expire for the flows throttled lately, see tq_throttle()
 * @unthrottle_ns: moving average of how long after their due time flows leave the wheel
 * @drain: what the device has got and not yet sent
 * @options: options as tc shows them
 * @joined: 1 + TIMELY_OWD_* if the qdisc has joined On-Ramp with this kind of delay, else 0
 * @sweep: bucket in which the last new flow freed idle flows; the next new flow uses the
 *	next bucket
 * @budget: budget of the device's network namespace; valid while the budget counts a flow
 * @reap: work that frees idle flows, see tq_reap()
 * @reap_lock: excludes @reap during a reset, which may run without the qdisc's lock; the path
 *	of a packet and @reap hold the qdisc's lock
 * @reap_at: bucket where @reap continues
 * @reaping: @reap is scheduled
 * @reserved: number of buckets whose pages stay allocated (option buckets)
 * @sch: the qdisc
 */
struct tq_sched {
	struct tq_config config;

	struct tq_table table;
	struct timely_wheel *wheel;
	u32 band_nr;
	struct sk_buff *bypass;
	u32 bypass_qlen;
	struct tq_flow *bypass_flow;
	u32 flows;
	u32 inactive;
	u32 throttled;
	u32 ready;
	struct tq_band bands[TIMELY_BANDS];
	struct timely_notifier notifier;
	struct qdisc_watchdog watchdog;
	struct tc_timely_stats stats;
	u32 slack_ns;
	u64 unthrottle_ns;
	struct timely_drain drain;

	struct tq_options options;
	u8 joined;
	u32 sweep;
	struct timely_budget *budget;
	struct delayed_work reap;
	spinlock_t reap_lock; /* excludes @reap while the qdisc is reset */
	u32 reap_at;
	bool reaping;
	u32 reserved;
	struct Qdisc *sch;
};

/* sch_timely_packet.c */
u32 tq_headers(const struct sk_buff *skb);
u8 tq_plain_protocol(const struct sk_buff *skb);
void tq_set_kind(const struct sk_buff *skb);
bool tq_replaces_ack(const struct sk_buff *ack, const struct sk_buff *earlier);

/* sch_timely_split.c */
struct sk_buff *tq_split(struct Qdisc *sch, struct tq_flow *f,
			 struct sk_buff *skb);
void tq_time_next_subseg(struct tq_sched *q, struct tq_flow *f,
			 const struct sk_buff *skb, u64 due);

/* sch_timely_entry.c */
void tq_forget_entry(struct tq_sched *q, struct tq_flow *f);
bool tq_has_moved(const struct tq_flow *f, const struct sk_buff *skb);
void tq_find_entry(struct tq_sched *q, struct tq_flow *f, const struct sk_buff *skb,
		   bool wanted, bool onramp);
void tq_wake(struct timely_notifier *notifier);
void tq_take_changed(struct tq_sched *q);

/* sch_timely_table.c */
void tq_table_grow(struct tq_table *table, u32 flows);
void tq_table_merge(struct tq_table *table, u32 reserved);
bool tq_reserve_buckets(struct Qdisc *sch, u32 buckets);
void tq_add_buckets(struct tq_table *table, u32 buckets);

/* sch_timely_flow.c */
extern struct kmem_cache *tq_flow_cache;
void tq_free_flow(struct tq_sched *q, struct tq_flow *f);
void tq_reap(struct work_struct *work);
struct tq_flow *tq_new_flow(struct tq_sched *q, struct sk_buff *skb,
			    struct sock *key, u64 now);
void tq_replace_socket(struct tq_sched *q, struct tq_flow *f, struct sock *sk);

/* sch_timely_options.c */
void tq_default_options(struct tq_options *options, const struct Qdisc *sch);
void tq_onramp_leave(struct Qdisc *sch, u8 joined);
int tq_apply(struct Qdisc *sch, const struct tq_options *options,
	     struct netlink_ext_ack *extack);
int tq_change(struct Qdisc *sch, struct nlattr *opt,
	      struct netlink_ext_ack *extack);
int tq_dump(struct Qdisc *sch, struct sk_buff *skb);
int tq_dump_stats(struct Qdisc *sch, struct gnet_dump *d);

/* ---- packets ---- */

static inline struct tq_skb_cb *tq_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct tq_skb_cb));
	return (struct tq_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* @skb leaves or is dropped: if it is the last sub-segment of a packet, free the packet, too. */
static inline void tq_free_original(struct sk_buff *skb)
{
	struct sk_buff *original = tq_cb(skb)->original;

	if (likely(!original))
		return;
	tq_cb(skb)->original = NULL;
	consume_skb(original);
}

/* Bytes of the transport header of a TCP packet or of a UDP GSO packet. */
static inline u32 tq_transport_header(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4 ? sizeof(struct udphdr) :
							    tcp_hdrlen(skb);
}

/* Payload bytes of a TCP packet or of a UDP GSO packet. */
static inline u32 tq_payload(const struct sk_buff *skb)
{
	return skb->len - skb_transport_offset(skb) - tq_transport_header(skb);
}

/* ---- lists of packets: the prev pointer of the first packet points to the last packet ---- */

static inline void tq_list_add(struct sk_buff **head, struct sk_buff *skb)
{
	struct sk_buff *first = *head;

	skb->next = NULL;
	if (first) {
		first->prev->next = skb;
		first->prev = skb;
	} else {
		skb->prev = skb;
		*head = skb;
	}
}

/* Put the packets from @first to @last before all others of the list. */
static inline void tq_list_push(struct sk_buff **head, struct sk_buff *first,
				struct sk_buff *last)
{
	last->next = *head;
	first->prev = *head ? (*head)->prev : last;
	*head = first;
}

/* Remove and return the first packet of a list that is not empty. */
static inline struct sk_buff *tq_list_pop(struct sk_buff **head)
{
	struct sk_buff *skb = *head;

	*head = skb->next;
	if (skb->next)
		skb->next->prev = skb->prev;
	skb->next = NULL;
	skb->prev = NULL;
	return skb;
}

/* ---- a flow's packets ---- */

/* The flow's packet that leaves next: a sub-segment, or the packet with the earliest timestamp. */
static inline struct sk_buff *tq_peek(const struct tq_flow *f)
{
	struct sk_buff *early;

	if (likely(!f->has_early))
		return f->head;
	early = skb_rb_first(&f->early);
	if (!f->head)
		return early;
	if (tq_cb(f->head)->subseg ||
	    tq_cb(f->head)->time_ns <= tq_cb(early)->time_ns)
		return f->head;
	return early;
}

/* The flow's last packet has left: another qdisc may handle the flow entry from now on. */
static inline void tq_emptied(struct tq_sched *q, struct tq_flow *f)
{
	q->inactive++;
	if (f->has_entry)
		timely_flow_release(f->entry, &q->notifier, f);
}

/* Remove the packet that tq_peek() has returned. */
static inline void tq_unqueue(struct Qdisc *sch, struct tq_flow *f, struct sk_buff *skb)
{
	if (likely(skb == f->head)) {
		tq_list_pop(&f->head);
		return;
	}
	rb_erase(&skb->rbnode, &f->early);
	f->has_early = !RB_EMPTY_ROOT(&f->early);
	/* These members share their memory with skb->rbnode, which has overwritten them. */
	skb->next = NULL;
	skb->prev = NULL;
	skb->dev = qdisc_dev(sch);
}

/* ---- round-robin lists ---- */

static inline void tq_round_add(struct tq_round *round, struct tq_flow *f)
{
	f->node.next = NULL;
	if (round->first)
		round->last->node.next = &f->node;
	else
		round->first = f;
	round->last = f;
}

/* The flow behind @f in its list; NULL if @f is the last. */
static inline struct tq_flow *tq_round_after(const struct tq_flow *f)
{
	return f->node.next ? container_of(f->node.next, struct tq_flow, node) : NULL;
}

/* The flow has left its round-robin list without packets. */
static inline void tq_make_idle(struct tq_sched *q, struct tq_flow *f, u64 now)
{
	f->state = TQ_IDLE;
	f->node.due_ns = now;
	q->ready--;
}

static inline void tq_make_ready(struct tq_sched *q, struct tq_flow *f,
				 struct tq_round *round)
{
	f->state = TQ_READY;
	q->ready++;
	tq_round_add(round, f);
}

/* The flow has left the timing wheel. */
static inline void tq_unthrottle(struct tq_sched *q, struct tq_flow *f)
{
	q->throttled--;
	if (f->has_entry)
		timely_flow_waited(f->entry, &q->notifier, f);
	tq_make_ready(q, f, &q->bands[f->band].old_flows);
}

/* ---- the flow table, see sch_timely_table.c ---- */

static inline struct tq_flow **tq_table_bucket(const struct tq_table *table, u32 nr)
{
	return &table->pages[nr / TQ_PAGE_BUCKETS][nr % TQ_PAGE_BUCKETS];
}

/* Hash of a flow's key. Sockets of the same slab of 32 KB get neighbouring buckets: flows that send
 * one after the other then share cache lines of the table. hash_long() spreads the slabs, so hash
 * chains are not longer than with a hash of the whole key.
 */
static inline u32 tq_hash(unsigned long key)
{
	if (key & 1)
		return hash_long(key, 32);
	return hash_long(key >> 15, 32) ^ (key >> 10 & 31);
}

static inline struct tq_flow **tq_bucket(const struct tq_table *table, const void *key)
{
	u32 nr = tq_hash((unsigned long)key) & (2 * table->half - 1);

	/* Bucket nr does not exist yet: its flows are in the bucket that will be split. */
	if (nr >= table->buckets)
		nr -= table->half;
	return tq_table_bucket(table, nr);
}

/* The flow with this key; NULL if there is none. */
static inline struct tq_flow *tq_find(const struct tq_table *table, const struct sock *key)
{
	struct tq_flow *f = *tq_bucket(table, key);

	while (f && f->sk != key)
		f = f->hash_next;
	return f;
}

/* Visit all flows @f of a table. @nr: u32, number of the bucket. The body must not remove flows
 * from the table.
 */
#define tq_for_each_flow(table, nr, f)				\
	for ((nr) = 0; (nr) < (table)->buckets; (nr)++)		\
		for ((f) = *tq_table_bucket(table, nr); (f); (f) = (f)->hash_next)

/* ---- sockets ---- */

/* Whether @key, the key of the packet's flow, is the packet's socket and not a hash. */
static inline bool tq_is_socket(const struct sk_buff *skb, const struct sock *key)
{
	return skb->sk == key;
}

/* Tell TCP that the qdisc paces the socket's packets, so that TCP does not. */
static inline void tq_claim_pacing(const struct tq_sched *q, struct sock *sk)
{
	if (!q->config.pacing || READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ)
		return;
	/* TCP reads the status without the qdisc's lock. */
	smp_store_release(&sk->sk_pacing_status, SK_PACING_FQ);
}

#endif /* _SCH_TIMELY_H */
