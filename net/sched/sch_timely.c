// SPDX-License-Identifier: GPL-2.0
/*
 * The qdisc "timely": TIMELY's rate control engine, and a drop-in for fq.
 *
 * A packet's life:
 *
 *	enqueue -> flow -> [timing wheel] -> round robin -> [split] -> device
 *
 * Flows are sockets, or hashes of what has none. A flow is IDLE without
 * packets; READY when its first packet may leave, waiting for its turn in one
 * of three bands; THROTTLED in the wheel until its first packet is due. Due is
 * the latest of
 *
 *	its stamp	EDT of TCP, SO_TXTIME, BPF
 *	its pacing	the end of the packet before it, at the flow's rate
 *	its pause	On-Ramp's, kept apart from the pacing clock
 *
 * What is as in fq: all of its options, with their meaning and defaults; three
 * bands with weights, deficit round robin with new flows before old ones;
 * pacing that allows for the timer being late by up to half a packet. What is
 * not:
 *  - A timing wheel holds the throttled flows (net/timely/engine/wheel.c): constant
 *    time, in slots of a microsecond. Flows are found in a hash table that
 *    grows with them.
 *  - Flows whose congestion control keeps a record (net/timely/flow.c) are
 *    paced by what their rate is when a packet is due, not when TCP stamped it
 *    (paper, section 5): see tq_due(). Their departures are recorded. To others
 *    it would be harm: their RTTs would grow by what they wait here.
 *  - GSO packets may be split into pieces that are paced one by one (section
 *    6, Fig. 16): tq_split().
 *  - Pure ACKs may jump the queue and be marked (section 2, Figs 4 and 5).
 *  - Flows may be held while their path is overloaded (On-Ramp, NSDI'21): the
 *    pause comes from net/timely/onramp.c by the flow's record, which every socket
 *    that sends data has then.
 *  - A stamp of another clock cannot stall a flow: tq_check_stamp().
 *  - Queues of each network namespace are counted, see net/timely/tenant.c. Flows for
 *    which the budget leaves no queue share a few: tq_shared_flow(). Idle queues are
 *    freed in the background, whether new flows come or not: tq_reap().
 */

#include <linux/hash.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/prefetch.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/dsfield.h>
#include <net/gso.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sock.h>
#include <net/tcp.h>

#include <net/timely_flow.h>
#include <net/timely_onramp.h>
#include <net/timely_qdisc.h>
#include <net/timely_tenant.h>
#include <uapi/linux/timely.h>
#include <timely/engine/wheel.h>

#include <timely_extack.h>
#include <timely_memcg.h>

/* The qdisc's only clock; a test may put its own in place. */
static inline u64 timely_clock_ns(void)
{
#ifdef TIMELY_CLOCK_NS
	return TIMELY_CLOCK_NS();
#else
	return ktime_get_ns();
#endif
}

/* Idle flows are forgotten after 3 s, as fq's; at most so many at a time. */
#define TQ_GC_AGE_NS		(3ULL * NSEC_PER_SEC)
#define TQ_GC_MAX		8

/* Idle flows are looked for in the background: once in a second in a third of the table,
 * or in 1024 buckets if that is more. The qdisc is locked for so many buckets at a time,
 * some 10 us. So an idle flow is freed within eight seconds.
 */
#define TQ_REAP_TICK		HZ
#define TQ_REAP_RUNS		3
#define TQ_REAP_LEAST		1024
#define TQ_REAP_BUCKETS		64

/* Queues that all flows share which a network namespace's budget leaves without one;
 * their number fits into the low bits of the namespace's address.
 */
#define TQ_SHARED_QUEUES	8

/* The table of flows grows to 8 MB. */
#define TQ_BUCKETS_MAX		(1U << 20)

/* While flows are due, so many packets may pass without a flow of their own. */
#define TQ_FASTPATH_MAX		8

/* While another queue is told of a flow's changes, this one looks again that often. */
#define TQ_SHARED_NS		((u64)NSEC_PER_MSEC)

/* Packets of a flow that was held are not kept further apart than this. */
#define TQ_SPACE_MAX_NS		((u64)NSEC_PER_MSEC)

/* And so many ACKs data that is held. */
#define TQ_PASS_MAX		1000

/* No stamp of the monotonic clock is that far ahead, or that long past; one of
 * the real-time clock is half a century ahead.
 */
#define TQ_FOREIGN_NS		(24ULL * 3600 * NSEC_PER_SEC)
#define TQ_PAST_NS		(10ULL * NSEC_PER_SEC)

/* A packet's time at the flow's rate is cut to this: rates change. */
#define TQ_PACE_MAX_NS		((u64)NSEC_PER_SEC)
#define TQ_PACE_SHIFT		24

/* No more lateness is made good than this, however much slack is asked for. */
#define TQ_LATE_MAX_NS		((u64)NSEC_PER_MSEC)

/* No size table makes a packet longer than this. */
#define TQ_TABLE_BYTES_MAX	(1 << 24)

#define TQ_UNLIMITED		(~0ULL)

/**
 * struct tq_skb_cb - what the qdisc notes on a packet
 * @time_ns: stamp or arrival: not to leave before
 * @original: of a packet's last sub-segment: the packet itself, for TCP to find that it
 *	has not left yet; NULL otherwise
 * @segs: packets it makes on the wire
 * @band: whose count it is in
 * @piece: what is left of a split packet: leaves before all of its flow
 * @more: further pieces of the same packet follow
 * @burst: a piece that leaves at @time_ns, whatever the flow's rate
 * @waited: it has been in the wheel
 * @paused: it has waited for a pause
 * @tcp: a TCP packet of a flow with a record, and no tunnel's
 * @udp: likewise of UDP
 * @data: it has a payload, or is a fragment: On-Ramp may hold it
 * @stamped: @time_ns is TCP's stamp
 * @charge: its flow has a rate: its time has to pass before the next packet
 */
struct tq_skb_cb {
	u64 time_ns;
	struct sk_buff *original;
	u16 segs;
	u8 band:2,
	   piece:1,
	   more:1,
	   burst:1,
	   waited:1,
	   paused:1,
	   tcp:1,
	   udp:1,
	   data:1,
	   stamped:1,
	   charge:1;
} __packed __aligned(4); /* 20 bytes, QDISC_CB_PRIV_LEN, are all there is room for */

enum tq_state {
	TQ_IDLE,
	TQ_READY,
	TQ_THROTTLED,
};

/**
 * struct tq_flow - a flow's queue
 * @node: in the wheel while THROTTLED; its @next links the turns while READY;
 *	its @due_ns tells since when while IDLE
 * @sk: socket, only as a number; or a hash and a low bit of one
 * @hash_next: next in the same bucket
 * @head: first packet; its prev is the last one
 * @credit: bytes left of the flow's turn
 * @qlen: packets, a split one counting as one until its last piece has left
 * @socket_hash: tells that @sk's memory has become another socket
 * @state: enum tq_state
 * @band: where its turns are
 * @paced: @owed counts
 * @recorded: it has a @record
 * @driven: for a congestion control, which goes by departures; else for On-Ramp only
 * @has_early: @early is not empty
 * @guest: it is in a struct tq_guest
 * @shared: by flows without a queue of their own; counted in no budget
 * @clock_ns: when the last paced packet should have left
 * @owed: bytes sent then: their time has to pass before the next packet
 * @looked: jiffies of the last time a record was looked for
 * @rate_Bps: the rate that @ns_per_byte stands for, bytes per second
 * @ns_per_byte: of @rate_Bps, Q24
 * @record: what is shared with the congestion control, or NULL
 * @early: packets stamped earlier than one before them, by time
 * @stamp_ns: stamp of the packet that left last, if On-Ramp may hold the flow
 * @left_ns: when it left
 *
 * Two cache lines, as fq's; a flow whose packets come stamped in order needs
 * the first one only.
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
	   recorded:1,
	   driven:1,
	   has_early:1,
	   guest:1,
	   shared:1;
	/* the second line */
	u64 clock_ns;
	u32 owed;
	u32 looked;
	u64 rate_Bps;
	u64 ns_per_byte;
	struct timely_flow *record;
	struct rb_root early;
	u64 stamp_ns;
	u64 left_ns;
};

/**
 * struct tq_guest - the queue of a socket of another network namespace than the device's
 * @flow: the queue
 * @budget: of that namespace, which the queue is counted in
 *
 * Such packets come through devices like macvlan. Queues of the device's own namespace
 * have no room for the pointer, and need none.
 */
struct tq_guest {
	struct tq_flow flow;
	struct timely_budget *budget;
};

/**
 * struct tq_turns - flows in the order of their turns
 * @first: whose turn it is
 * @last: where to add
 */
struct tq_turns {
	struct tq_flow *first;
	struct tq_flow *last;
};

/**
 * struct tq_band - the turns of a class of priorities
 * @new_flows: flows that had no packets before; they go first
 * @old_flows: flows that have had their turn
 * @credit: bytes left of the band's round
 * @packets: packets queued, against the limit
 */
struct tq_band {
	struct tq_turns new_flows;
	struct tq_turns old_flows;
	s32 credit;
	u32 packets;
};

/**
 * struct tq_table - flows by key
 * @buckets: how many there are
 * @half: the greatest power of two that is not more
 * @pages: buckets, chains of flows, in pages made as needed; room for all
 */
struct tq_table {
	u32 buckets;
	u32 half;
	struct tq_flow ***pages;
};

#define TQ_PAGE_BUCKETS		(PAGE_SIZE / sizeof(struct tq_flow *))
#define TQ_PAGES		(TQ_BUCKETS_MAX / TQ_PAGE_BUCKETS)

#define TQ_OPTION_INDEX(field, ...)	TQ_O_##field,
enum tq_option {
	TIMELY_QDISC_OPTIONS(TQ_OPTION_INDEX)
	TQ_O_COUNT
};

/**
 * struct tq_options - the options as they were given, and as they are shown
 * @value: the numeric ones, by enum tq_option
 * @priomap: bands of the priorities
 * @weights: bytes of the bands in a round
 */
struct tq_options {
	u64 value[TQ_O_COUNT];
	struct tc_prio_qopt priomap;
	s32 weights[TIMELY_BANDS];
};

/**
 * struct tq_config - the options as a packet's path wants them
 * @horizon_ns: how far ahead a stamp may lie, ns
 * @offload_ns: what is due within this goes to the device, ns
 * @maxrate_Bps: highest rate of a flow, bytes per second
 * @ce_threshold_ns: ECN marks from this much waiting on, ns
 * @refill_ns: idle time that refills credit, ns
 * @segment_ns_per_byte: pace of the pieces of a packet, Q24; 0 for the flow's
 * @flow_limit: packets of a flow
 * @quantum: bytes of a turn
 * @initial_quantum: bytes of a new flow's first turn
 * @orphan_mask: of the hash of packets without a socket
 * @low_rate_Bps: below, each packet is paced, bytes per second
 * @timer_slack_ns: how late the timer may be, ns
 * @late_ns: how late a packet may leave without anybody being slow, ns
 * @segment: bytes of a piece, 0 to leave packets whole
 * @pacing: enforce rates
 * @lazy: read rates when packets are due
 * @horizon_drop: drop what lies beyond the horizon
 * @ack_first: pure ACKs jump the queue
 * @ack_special: some option of pure ACKs is set
 * @wrong_clock_drop: drop what another clock stamped
 * @onramp: flows are held while their path is overloaded
 * @ack_dscp: of pure ACKs, or TIMELY_DSCP_KEEP
 * @ack_priority: of pure ACKs, or TIMELY_PRIORITY_KEEP
 * @prio2band: band of each priority
 * @weights: bytes of each band in a round
 *
 * Made up beside the one in force, which it replaces when all is accepted.
 */
struct tq_config {
	u64 horizon_ns;
	u64 offload_ns;
	u64 maxrate_Bps;
	u64 ce_threshold_ns;
	u64 refill_ns;
	u64 segment_ns_per_byte;
	u32 flow_limit;
	u32 quantum;
	u32 initial_quantum;
	u32 orphan_mask;
	u32 low_rate_Bps;
	u32 timer_slack_ns;
	u32 late_ns;
	u32 segment;
	u8 pacing:1,
	   lazy:1,
	   horizon_drop:1,
	   ack_first:1,
	   ack_special:1,
	   wrong_clock_drop:1,
	   onramp:1;
	u8 ack_dscp;
	u8 ack_priority;
	u8 prio2band[TC_PRIO_MAX + 1];
	s32 weights[TIMELY_BANDS];
};

/**
 * struct tq_sched - an instance
 * @config: read by every packet
 * @table: flows by key
 * @wheel: throttled flows
 * @band_nr: band whose round it is
 * @bypass: packets that need no flow, the first of them; its prev is the last
 * @bypass_qlen: how many
 * @passing: the flow of the only one, if its departure is to be noted
 * @flows: flows known
 * @inactive: those without packets
 * @throttled: those in the wheel
 * @ready: those waiting for their turn, some without packets
 * @bands: turns
 * @waiter: where flows' records tell of a change
 * @watchdog: runs the qdisc when the next flow is due
 * @stats: what is shown, but for what is computed then
 * @unthrottle_ns: average lateness of a flow's turn, ns
 * @options: as they are shown
 * @joined: 1 + TIMELY_OWD_* if On-Ramp was joined, by that kind of delay
 * @sweep: next bucket to look for idle flows in, when a flow is new
 * @budget: of the device's network namespace; valid while there is a flow
 * @reap: looks for idle flows while there are any
 * @reap_lock: keeps @reap away from a reset, which need not hold the qdisc's lock;
 *	packets hold that one, and so does @reap
 * @reap_at: next bucket for @reap
 * @reaping: @reap is going to run
 * @reserved: pages for so many buckets stay
 * @sch: the qdisc it is the private part of
 */
struct tq_sched {
	struct tq_config config;

	struct tq_table table;
	struct timely_wheel *wheel;
	u32 band_nr;
	struct sk_buff *bypass;
	u32 bypass_qlen;
	struct tq_flow *passing;
	u32 flows;
	u32 inactive;
	u32 throttled;
	u32 ready;
	struct tq_band bands[TIMELY_BANDS];
	struct timely_waiter waiter;
	struct qdisc_watchdog watchdog;
	struct tc_timely_stats stats;
	u64 unthrottle_ns;

	struct tq_options options;
	u8 joined;
	u32 sweep;
	struct timely_budget *budget;
	struct delayed_work reap;
	spinlock_t reap_lock; /* of the flows, while the qdisc is reset */
	u32 reap_at;
	bool reaping;
	u32 reserved;
	struct Qdisc *sch;
};

static struct kmem_cache *tq_flow_cache __read_mostly;

static struct tq_skb_cb *tq_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct tq_skb_cb));
	return (struct tq_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* The packet whose last sub-segment this is has left with it. */
static void tq_free_original(struct sk_buff *skb)
{
	struct sk_buff *original = tq_cb(skb)->original;

	if (likely(!original))
		return;
	tq_cb(skb)->original = NULL;
	consume_skb(original);
}

/* ---- a list of packets whose first one knows the last ---- */

static void tq_list_add(struct sk_buff **head, struct sk_buff *skb)
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

/* Put a chain before all others. */
static void tq_list_push(struct sk_buff **head, struct sk_buff *first,
			 struct sk_buff *last)
{
	last->next = *head;
	first->prev = *head ? (*head)->prev : last;
	*head = first;
}

static struct sk_buff *tq_list_pop(struct sk_buff **head)
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

/* Packets stamped earlier than one before them are few: they have a tree. */
static void tq_queue_early(struct tq_flow *f, struct sk_buff *skb)
{
	struct rb_node **p = &f->early.rb_node, *parent = NULL;

	while (*p) {
		parent = *p;
		if (tq_cb(skb)->time_ns >= tq_cb(rb_to_skb(parent))->time_ns)
			p = &parent->rb_right;
		else
			p = &parent->rb_left;
	}
	rb_link_node(&skb->rbnode, parent, p);
	rb_insert_color(&skb->rbnode, &f->early);
	f->has_early = 1;
}

static void tq_queue(struct tq_flow *f, struct sk_buff *skb)
{
	const struct tq_skb_cb *last = f->head ? tq_cb(f->head->prev) : NULL;

	/* Pieces go before everything, whatever their time. */
	if (unlikely(last && tq_cb(skb)->time_ns < last->time_ns && !last->piece))
		tq_queue_early(f, skb);
	else
		tq_list_add(&f->head, skb);
}

static struct sk_buff *tq_peek(const struct tq_flow *f)
{
	struct sk_buff *early;

	if (likely(!f->has_early))
		return f->head;
	early = skb_rb_first(&f->early);
	if (!f->head)
		return early;
	if (tq_cb(f->head)->piece ||
	    tq_cb(f->head)->time_ns <= tq_cb(early)->time_ns)
		return f->head;
	return early;
}

/* The flow's last packet has left. */
static void tq_emptied(struct tq_sched *q, struct tq_flow *f)
{
	q->inactive++;
	if (f->recorded)
		timely_flow_release(f->record, &q->waiter, f);
}

/* Take out what tq_peek() gave. */
static void tq_unqueue(struct Qdisc *sch, struct tq_flow *f, struct sk_buff *skb)
{
	if (likely(skb == f->head)) {
		tq_list_pop(&f->head);
		return;
	}
	rb_erase(&skb->rbnode, &f->early);
	f->has_early = !RB_EMPTY_ROOT(&f->early);
	/* All of these share memory with the tree's node. */
	skb->next = NULL;
	skb->prev = NULL;
	skb->dev = qdisc_dev(sch);
}

/* ---- turns ---- */

static void tq_turn_add(struct tq_turns *turns, struct tq_flow *f)
{
	f->node.next = NULL;
	if (turns->first)
		turns->last->node.next = &f->node;
	else
		turns->first = f;
	turns->last = f;
}

static struct tq_flow *tq_turn_after(const struct tq_flow *f)
{
	return f->node.next ? container_of(f->node.next, struct tq_flow, node) : NULL;
}

static void tq_make_idle(struct tq_sched *q, struct tq_flow *f, u64 now)
{
	f->state = TQ_IDLE;
	f->node.due_ns = now;
	q->ready--;
}

static void tq_make_ready(struct tq_sched *q, struct tq_flow *f,
			  struct tq_turns *turns)
{
	f->state = TQ_READY;
	q->ready++;
	tq_turn_add(turns, f);
}

/* It has left the wheel. */
static void tq_unthrottle(struct tq_sched *q, struct tq_flow *f)
{
	q->throttled--;
	if (f->recorded)
		timely_flow_waited(f->record, &q->waiter, f);
	tq_make_ready(q, f, &q->bands[f->band].old_flows);
}

/* ---- pacing ---- */

static bool tq_is_lazy(const struct tq_sched *q, const struct tq_flow *f)
{
	return f->driven && q->config.lazy && q->config.pacing;
}

/* What the flow may send a second. A stamped packet carries its socket's rate
 * already, unless the stamp does not count.
 */
static u64 tq_rate_Bps(const struct tq_sched *q, const struct tq_flow *f,
		       const struct sk_buff *skb)
{
	u64 rate_Bps = q->config.maxrate_Bps;
	unsigned long socket_Bps;

	if (skb->sk && (!skb->tstamp || tq_is_lazy(q, f))) {
		socket_Bps = READ_ONCE(skb->sk->sk_pacing_rate);
		if (socket_Bps != ~0UL)
			rate_Bps = min_t(u64, rate_Bps, socket_Bps);
	}
	/* One that goes by departures sees what its rate does, and needs no help. */
	if (unlikely(q->config.onramp) && f->recorded && !f->driven)
		rate_Bps = min(rate_Bps, READ_ONCE(f->record->resume_Bps));
	return rate_Bps;
}

/* The time of so many bytes. The division is made once for each rate. */
static u64 tq_pace_ns(struct tq_flow *f, u32 bytes, u64 rate_Bps)
{
	if (rate_Bps == TQ_UNLIMITED)
		return 0;
	if (unlikely(f->rate_Bps != rate_Bps)) {
		f->rate_Bps = rate_Bps;
		f->ns_per_byte = div64_u64((u64)NSEC_PER_SEC << TQ_PACE_SHIFT,
					   max(rate_Bps, 1ULL));
	}
	return min(mul_u64_u32_shr(f->ns_per_byte, bytes, TQ_PACE_SHIFT),
		   TQ_PACE_MAX_NS);
}

/* A packet of a flow that was held keeps three quarters of its distance to the one
 * before, as TCP stamped them: what gathered meanwhile does not leave in a burst, and
 * yet the flow is late no more after a while. At the full distance it would be late
 * for good, which TCP takes for the network's delay, and goes slower.
 */
static u64 tq_spaced(const struct tq_flow *f, const struct tq_skb_cb *cb)
{
	if (f->driven || !cb->stamped || cb->burst || cb->time_ns <= f->stamp_ns)
		return 0;
	return f->left_ns + min(cb->time_ns - f->stamp_ns, TQ_SPACE_MAX_NS) * 3 / 4;
}

/* When the packet, the flow's first, may leave.
 *
 * This is lazy rate enforcement (paper, section 5): asked for again when the
 * time it gave has come, it reads the rate as it is by then. For flows with a
 * record that replaces TCP's stamp, which a lower rate would no longer move,
 * and a higher one neither. Other flows keep their stamps, as under fq: they
 * may have been set by more than TCP.
 */
static u64 tq_due(struct tq_sched *q, struct tq_flow *f, const struct sk_buff *skb)
{
	const struct tq_skb_cb *cb = tq_cb(skb);
	u64 due = cb->time_ns;
	u64 rate_Bps, pause;

	if (f->paced && !cb->burst) {
		rate_Bps = q->config.lazy ? tq_rate_Bps(q, f, skb) : f->rate_Bps;
		due = max(due, f->clock_ns + tq_pace_ns(f, f->owed, rate_Bps));
	}
	if (f->recorded && cb->data) {
		due = max(due, tq_spaced(f, cb));
		pause = READ_ONCE(f->record->pause_until_ns);
		due = max(due, pause);
	}
	return due;
}

/* At maxrate a higher rate changes nothing. */
static u64 tq_waiting_Bps(const struct tq_sched *q, const struct tq_flow *f)
{
	return f->paced && f->rate_Bps < q->config.maxrate_Bps ? f->rate_Bps : 0;
}

/* Have the congestion control and On-Ramp tell this queue of changes while the flow's
 * first packet waits until @due. One queue at a time is told. Another queue that holds
 * packets of the same socket, as when the socket changes its queue under mq, looks again
 * by itself.
 *
 * Return: when to look at the flow again.
 */
static u64 tq_tell_waiting(struct tq_sched *q, struct tq_flow *f, u64 due)
{
	u64 sooner;

	if (!timely_flow_wait(f->record, &q->waiter, f, tq_waiting_Bps(q, f)))
		return min(due, timely_clock_ns() + TQ_SHARED_NS);
	/* A change between the first look and the notice has told nobody. */
	sooner = tq_due(q, f, tq_peek(f));
	if (likely(sooner >= due))
		return due;
	/* Rates that are told from here on are higher than the one just read. */
	WRITE_ONCE(f->record->waiting_Bps, tq_waiting_Bps(q, f));
	return sooner;
}

/* A packet waits for a pause once, however often the pause is made longer meanwhile. */
static void tq_count_pause(struct tq_sched *q, struct tq_flow *f, u64 due)
{
	struct tq_skb_cb *cb = tq_cb(tq_peek(f));

	if (likely(READ_ONCE(f->record->pause_until_ns) != due) || !cb->data || cb->paused)
		return;
	cb->paused = 1;
	q->stats.paused++;
}

static void tq_throttle(struct tq_sched *q, struct tq_flow *f, u64 due)
{
	f->state = TQ_THROTTLED;
	q->throttled++;
	q->stats.throttled++;
	if (f->recorded) {
		tq_count_pause(q, f, due);
		due = tq_tell_waiting(q, f, due);
	}
	timely_wheel_add(q->wheel, &f->node, due);
}

static u32 tq_transport_header(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4 ? sizeof(struct udphdr) :
							    tcp_hdrlen(skb);
}

/* Of TCP, or of a UDP packet to be split. */
static u32 tq_payload(const struct sk_buff *skb)
{
	return skb->len - skb_transport_offset(skb) - tq_transport_header(skb);
}

/* Bytes before a packet's payload, 0 if its headers are not to be trusted: it
 * may have been forwarded.
 */
static u32 tq_headers(const struct sk_buff *skb)
{
	bool udp = skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4;
	u32 least = udp ? sizeof(struct udphdr) : sizeof(struct tcphdr);
	u32 offset, length;

	if (!skb_transport_header_was_set(skb) ||
	    skb_transport_offset(skb) < skb_network_offset(skb))
		return 0;
	offset = skb_transport_offset(skb);
	if (skb_headlen(skb) < offset + least)
		return 0;
	length = tq_transport_header(skb);
	if (length < least || skb_headlen(skb) < offset + length)
		return 0;
	return offset + length;
}

/* What is behind IPv6's extension headers: users can ask for some of them, and BIG TCP
 * has one where the kernel writes it. The transport header is where the stack says.
 */
static u8 tq_ipv6_protocol(const struct sk_buff *skb)
{
	u8 protocol = ipv6_hdr(skb)->nexthdr;
	__be16 frag_off;
	int offset;

	if (likely(protocol == IPPROTO_TCP || protocol == IPPROTO_UDP))
		return protocol;
	offset = ipv6_skip_exthdr(skb, skb_network_offset(skb) + sizeof(struct ipv6hdr),
				  &protocol, &frag_off);
	if (offset >= 0 && frag_off & htons(IP6_OFFSET | IP6_MF))
		return IPPROTO_FRAGMENT;
	return offset == skb_transport_offset(skb) ? protocol : 0;
}

/* The protocol of a socket's own packet, as the record counts them; 0 for others.
 * IPPROTO_FRAGMENT stands for a part of a datagram, of IPv4 too: what is read there as a
 * header may be payload, and the receiver sees the whole datagram only.
 */
static u8 tq_plain_protocol(const struct sk_buff *skb)
{
	if (skb->encapsulation || !skb_transport_header_was_set(skb))
		return 0;
	switch (skb->protocol) {
	case htons(ETH_P_IP):
		return ip_is_fragment(ip_hdr(skb)) ? IPPROTO_FRAGMENT : ip_hdr(skb)->protocol;
	case htons(ETH_P_IPV6):
		return tq_ipv6_protocol(skb);
	}
	return 0;
}

static bool tq_is_plain_tcp(const struct sk_buff *skb)
{
	return tq_plain_protocol(skb) == IPPROTO_TCP && tq_headers(skb);
}

static bool tq_is_plain_udp(const struct sk_buff *skb)
{
	return tq_plain_protocol(skb) == IPPROTO_UDP &&
	       skb_headlen(skb) >= skb_transport_offset(skb) + sizeof(struct udphdr);
}

/* The packet left at @now, was due at @due: what follows has to wait.
 *
 * What the wheel and the timer's slack make it late is our own fault and made
 * good, and so is up to half the packet's time, as by fq and TCP; more would be
 * a burst.
 */
static void tq_charge(struct tq_sched *q, struct tq_flow *f,
		      const struct sk_buff *skb, u64 now, u64 due)
{
	u64 rate_Bps = tq_rate_Bps(q, f, skb);
	u32 bytes = qdisc_pkt_len(skb);
	u64 ns;

	if (tq_is_lazy(q, f)) {
		/* TCP's rates are of payload. */
		if (tq_cb(skb)->tcp)
			bytes = tq_payload(skb);
	} else if (!skb->tstamp && !tq_cb(skb)->piece) {
		if (rate_Bps <= q->config.low_rate_Bps) {
			f->credit = 0;
		} else {
			bytes = max(bytes, q->config.quantum);
			if (f->credit > 0)
				return;
		}
	}
	if (rate_Bps == TQ_UNLIMITED) {
		f->paced = 0;
		return;
	}
	/* Paid for after the last piece, as if all had left with the first. */
	if (tq_cb(skb)->burst) {
		f->owed += bytes;
		return;
	}
	ns = tq_pace_ns(f, bytes, rate_Bps);
	if (unlikely(ns == TQ_PACE_MAX_NS))
		q->stats.pkts_too_long++;
	f->clock_ns = due;
	if (now > due)
		f->clock_ns = now - min(now - due, max(ns / 2, q->config.late_ns));
	f->owed = bytes;
	f->paced = 1;
}

/* ---- records shared with congestion controls ---- */

static void tq_forget_record(struct tq_sched *q, struct tq_flow *f)
{
	if (!f->recorded)
		return;
	timely_flow_detach(f->record, &q->waiter, f);
	timely_flow_put(f->record);
	f->record = NULL;
	f->recorded = 0;
	f->driven = 0;
}

/* The flow's addresses. Ports are at the same place in both protocols. */
static void tq_tuple(const struct sk_buff *skb, struct timely_tuple *tuple)
{
	memset(tuple, 0, sizeof(*tuple));
	tuple->net = (unsigned long)sock_net(skb->sk);
	tuple->sport = udp_hdr(skb)->source;
	tuple->dport = udp_hdr(skb)->dest;
	tuple->protocol = tq_plain_protocol(skb);
	if (skb->protocol == htons(ETH_P_IPV6)) {
		tuple->family = AF_INET6;
		memcpy(tuple->saddr, &ipv6_hdr(skb)->saddr, sizeof(tuple->saddr));
		memcpy(tuple->daddr, &ipv6_hdr(skb)->daddr, sizeof(tuple->daddr));
	} else {
		tuple->family = AF_INET;
		tuple->saddr[0] = ip_hdr(skb)->saddr;
		tuple->daddr[0] = ip_hdr(skb)->daddr;
	}
}

/* What is it, and does it have a payload that On-Ramp may hold? */
static void tq_note_kind(const struct sk_buff *skb)
{
	struct tq_skb_cb *cb = tq_cb(skb);

	cb->tcp = tq_is_plain_tcp(skb);
	cb->udp = !cb->tcp && tq_is_plain_udp(skb);
	cb->data = cb->udp || (cb->tcp ? !!tq_payload(skb) :
			       tq_plain_protocol(skb) == IPPROTO_FRAGMENT);
}

/* The least round trip that TCP knows of, in whole us; all ones if it knows none. A raw
 * socket may send packets that say TCP: only the socket tells whether it is one of TCP.
 */
static u64 tq_least_rtt_ns(const struct sk_buff *skb)
{
	u32 rtt_us = sk_is_tcp(skb->sk) ? tcp_min_rtt(tcp_sk(skb->sk)) : ~0U;

	return rtt_us == ~0U ? U64_MAX : (u64)rtt_us * NSEC_PER_USEC;
}

/* Have On-Ramp know of the flow, and of us as who holds it. Return: false if there
 * is no memory.
 */
static bool tq_onramp_record(struct tq_sched *q, struct tq_flow *f,
			     const struct sk_buff *skb)
{
	u64 now = timely_clock_ns();
	struct timely_tuple tuple;

	tq_tuple(skb, &tuple);
	if (!f->record)
		f->record = timely_onramp_flow(&tuple, skb->sk);
	else if (!timely_onramp_add(f->record, &tuple, skb->sk))
		return false;
	if (!f->record)
		return false;
	timely_flow_attach(f->record, &q->waiter, f);
	timely_onramp_least(f->record, now, tq_least_rtt_ns(skb));
	/* It may be the flow's first data, or a new connection's in an old place. */
	timely_onramp_recall(f->record, now);
	return true;
}

/* The socket's packets went over another queue before: this queue is told now, and its
 * On-Ramp settings count.
 */
static void tq_take_over(struct tq_sched *q, struct tq_flow *f)
{
	struct timely_waiter *waiter = READ_ONCE(f->record->waiter);

	if (unlikely(waiter && waiter != &q->waiter && !f->qlen))
		timely_flow_attach(f->record, &q->waiter, f);
}

/* Is a record there, and the right one? */
static bool tq_has_record(struct tq_sched *q, struct tq_flow *f, bool wanted, bool onramp)
{
	if (!f->recorded)
		return false;
	/* The congestion control has left, or come. */
	if (unlikely(READ_ONCE(f->record->closed) || (wanted && !f->record->key))) {
		tq_forget_record(q, f);
		return false;
	}
	tq_take_over(q, f);
	return !onramp || timely_flow_onramp(f->record);
}

/* The record is made when a connection is established, the flow with its first
 * SYN. Where there was no memory for one it is not looked for with all data.
 * On-Ramp wants one for whatever sends data.
 */
static void tq_look_for_record(struct tq_sched *q, struct tq_flow *f,
			       const struct sk_buff *skb)
{
	bool wanted = sk_is_tcp(f->sk) && timely_flow_wanted(f->sk);
	bool onramp = unlikely(q->config.onramp) && tq_cb(skb)->data &&
		      (tq_cb(skb)->tcp | tq_cb(skb)->udp);

	if (tq_has_record(q, f, wanted, onramp) || (!wanted && !onramp) ||
	    f->looked == (u32)jiffies)
		return;
	if (wanted && !f->recorded)
		f->record = timely_flow_get(f->sk);
	if ((!wanted || f->record) && onramp && !tq_onramp_record(q, f, skb))
		f->looked = (u32)jiffies;
	f->recorded = !!f->record;
	f->driven = f->record && f->record->key;
	if (f->recorded && unlikely(f->state == TQ_THROTTLED))
		timely_flow_wait(f->record, &q->waiter, f, tq_waiting_Bps(q, f));
	if (f->recorded)
		return;
	if (!q->config.onramp)
		tq_note_kind(skb);
	if (tq_cb(skb)->data)
		f->looked = (u32)jiffies;
}

/* As the receiver sees the first datagram of it. */
static u32 tq_udp_digest(const struct sk_buff *skb)
{
	u32 offset = skb_transport_offset(skb) + sizeof(struct udphdr);
	u32 bytes = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len - offset;
	u8 payload[TIMELY_UDP_DIGEST_BYTES];

	if (skb_copy_bits(skb, offset, payload, min_t(u32, bytes, sizeof(payload))))
		return 0;
	return timely_udp_digest(payload, bytes);
}

static void tq_record(struct tq_sched *q, struct tq_flow *f,
		      const struct sk_buff *skb, u64 now)
{
	struct timely_departure departure = {
		.time_ns = now,
		.bytes = qdisc_pkt_len(skb),
	};
	struct timely_onramp *onramp;
	u32 payload = 0;

	if (tq_cb(skb)->tcp) {
		payload = tq_payload(skb);
		if (!payload)
			return;
		departure.end_seq = ntohl(tcp_hdr(skb)->seq) + payload + tcp_hdr(skb)->fin;
	} else {
		departure.end_seq = tq_udp_digest(skb);
	}
	onramp = timely_flow_onramp(f->record);
	if (onramp)
		timely_onramp_depart(onramp, &departure, payload);
	/* The congestion control goes by segments. */
	if (f->driven && !tq_cb(skb)->more)
		timely_flow_depart(f->record, &departure);
	q->stats.departures++;
}

/* Are pieces of a packet departures of their own? */
static bool tq_departs(const struct tq_flow *f, const struct sk_buff *skb)
{
	if (!f->recorded || !(tq_cb(skb)->tcp | tq_cb(skb)->udp))
		return false;
	return !tq_cb(skb)->more || timely_flow_onramp(f->record);
}

static void tq_wake(struct timely_waiter *waiter)
{
	struct tq_sched *q = container_of(waiter, struct tq_sched, waiter);

	rcu_read_lock();
	__netif_schedule(qdisc_root(q->sch));
	rcu_read_unlock();
}

/* A throttled flow's time may be another one now. */
static void tq_move(struct tq_sched *q, struct tq_flow *f)
{
	u64 due = tq_due(q, f, tq_peek(f));

	if (due >= f->node.due_ns)
		return;
	if (f->recorded) {
		due = tq_tell_waiting(q, f, due);
		q->stats.brought_forward++;
	}
	timely_wheel_move(q->wheel, &f->node, due);
}

/* Records whose rate or pause has changed. A notice that was on its way while another
 * queue took over the flow goes on to that queue.
 */
static void tq_take_changed(struct tq_sched *q)
{
	struct llist_node *list = llist_del_all(&q->waiter.changed);
	struct timely_flow *record;
	struct tq_flow *f;

	while ((record = timely_flow_take_changed(&list))) {
		f = timely_flow_queue(record, &q->waiter);
		if (!f)
			timely_flow_changed(record);
		else if (f->state == TQ_THROTTLED)
			tq_move(q, f);
		timely_flow_put(record);
	}
}

/* ---- the table of flows ----
 *
 * Linear hashing (Litwin, 1980): the table grows by one bucket with each new
 * flow, which takes half of the flows of one other bucket. So it is never
 * rebuilt, and needs a page of memory at a time. Buckets that are not needed any
 * more are merged in the opposite order, and their pages freed.
 */

static struct tq_flow **tq_table_bucket(const struct tq_table *table, u32 nr)
{
	return &table->pages[nr / TQ_PAGE_BUCKETS][nr % TQ_PAGE_BUCKETS];
}

/* Sockets lie in slabs. Those of a slab of 32 KB have neighbouring buckets, so
 * that flows which send in turn share cache lines of the table; slabs are spread
 * at random, so that chains are no longer than with any other hash.
 */
static u32 tq_hash(unsigned long key)
{
	if (key & 1)
		return hash_long(key, 32);
	return hash_long(key >> 15, 32) ^ (key >> 10 & 31);
}

static struct tq_flow **tq_bucket(const struct tq_table *table, const void *key)
{
	u32 nr = tq_hash((unsigned long)key) & (2 * table->half - 1);

	/* Not split yet: it is where its lower half is. */
	if (nr >= table->buckets)
		nr -= table->half;
	return tq_table_bucket(table, nr);
}

/* Have a page for the bucket. */
static bool tq_table_reserve(struct tq_table *table, u32 nr)
{
	struct tq_flow ***page = &table->pages[nr / TQ_PAGE_BUCKETS];

	if (!*page)
		*page = kzalloc(PAGE_SIZE, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	return *page;
}

/* One bucket more, for which there is a page. */
static void tq_table_split(struct tq_table *table)
{
	struct tq_flow **link = tq_table_bucket(table, table->buckets - table->half);
	struct tq_flow **to = tq_table_bucket(table, table->buckets);
	struct tq_flow *f;

	table->buckets++;
	while ((f = *link)) {
		if (tq_bucket(table, f->sk) != to) {
			link = &f->hash_next;
			continue;
		}
		*link = f->hash_next;
		f->hash_next = *to;
		*to = f;
	}
	if (table->buckets == 2 * table->half)
		table->half = table->buckets;
}

/* Without memory the chains become longer. */
static void tq_table_grow(struct tq_table *table, u32 flows)
{
	if (flows > table->buckets && table->buckets < TQ_BUCKETS_MAX &&
	    tq_table_reserve(table, table->buckets))
		tq_table_split(table);
}

/* One bucket less: its flows go back to the bucket that it was split from. */
static void tq_table_merge(struct tq_table *table, u32 reserved)
{
	struct tq_flow **from, **to;
	u32 nr;

	if (table->buckets == table->half)
		table->half /= 2;
	nr = --table->buckets;
	from = tq_table_bucket(table, nr);
	to = tq_table_bucket(table, nr - table->half);
	while (*to)
		to = &(*to)->hash_next;
	*to = *from;
	*from = NULL;
	if (nr >= reserved && !(nr % TQ_PAGE_BUCKETS)) {
		kfree(table->pages[nr / TQ_PAGE_BUCKETS]);
		table->pages[nr / TQ_PAGE_BUCKETS] = NULL;
	}
}

static struct tq_guest *tq_guest(struct tq_flow *f)
{
	return container_of(f, struct tq_guest, flow);
}

static struct tq_flow *tq_alloc_guest(struct timely_budget *budget)
{
	struct tq_guest *guest = kzalloc(sizeof(*guest), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);

	if (!guest)
		return NULL;
	guest->flow.guest = 1;
	guest->budget = budget;
	return &guest->flow;
}

/* Memory for a queue that is counted in a budget; NULL for one that is shared. */
static struct tq_flow *tq_alloc_flow(struct tq_sched *q, bool guest,
				     struct timely_budget *budget)
{
	struct tq_flow *f;

	if (unlikely(guest))
		f = tq_alloc_guest(budget);
	else
		f = kmem_cache_zalloc(tq_flow_cache, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (unlikely(!f)) {
		timely_budget_return(budget);
		q->stats.allocation_errors++;
		return NULL;
	}
	f->shared = !budget;
	if (budget && !guest)
		q->budget = budget;
	return f;
}

static void tq_free_flow(struct tq_sched *q, struct tq_flow *f)
{
	struct timely_budget *budget = f->shared ? NULL : q->budget;

	tq_forget_record(q, f);
	if (unlikely(f->guest)) {
		budget = tq_guest(f)->budget;
		kfree(tq_guest(f));
	} else {
		kmem_cache_free(tq_flow_cache, f);
	}
	timely_budget_return(budget);
}

/* Forget flows of a chain that have been idle for long. */
static void tq_gc(struct tq_sched *q, struct tq_flow **link, u64 now, u32 most)
{
	struct tq_flow *f;
	u32 freed = 0;

	while ((f = *link) && freed < most) {
		if (f->state != TQ_IDLE || now - f->node.due_ns < TQ_GC_AGE_NS) {
			link = &f->hash_next;
			continue;
		}
		*link = f->hash_next;
		tq_free_flow(q, f);
		freed++;
	}
	q->flows -= freed;
	q->inactive -= freed;
	q->stats.gc_flows += freed;
}

static bool tq_is_socket(const struct sk_buff *skb, const struct sock *key)
{
	return skb->sk == key;
}

/* Have the socket leave pacing to us. */
static void tq_take_pacing(const struct tq_sched *q, struct sock *sk)
{
	if (!q->config.pacing || READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ)
		return;
	/* TCP reads it without a lock of ours. */
	smp_store_release(&sk->sk_pacing_status, SK_PACING_FQ);
}

/* The socket is new to the flow. */
static void tq_adopt(struct tq_sched *q, struct tq_flow *f, struct sock *sk)
{
	f->socket_hash = sk->sk_hash;
	f->looked = (u32)jiffies - 1;
	tq_take_pacing(q, sk);
}

/* ---- freeing what is idle ---- */

/* Flows of which all packets have left get no turn until the next packet comes, and
 * are not idle meanwhile. While no flow has a packet, end some of their turns here.
 */
static void tq_end_turns(struct tq_sched *q, u64 now)
{
	u32 i, left = TQ_REAP_BUCKETS;
	struct tq_turns *turns;
	struct tq_flow *f;

	for (i = 0; i < 2 * TIMELY_BANDS; i++) {
		turns = i % 2 ? &q->bands[i / 2].old_flows : &q->bands[i / 2].new_flows;
		while ((f = turns->first) && left) {
			turns->first = tq_turn_after(f);
			tq_make_idle(q, f, now);
			left--;
		}
	}
}

static void tq_reap_bucket(struct tq_sched *q, u32 nr, u64 now)
{
	struct tq_flow *f;

	tq_gc(q, tq_table_bucket(&q->table, nr), now, U32_MAX);
	/* A closed record is only kept for packets, which an idle flow has not. */
	for (f = *tq_table_bucket(&q->table, nr); f; f = f->hash_next)
		if (f->state == TQ_IDLE && f->recorded && READ_ONCE(f->record->closed))
			tq_forget_record(q, f);
}

/* A part of what tq_reap() does, under both locks. Return: is there more to do in this
 * run?
 */
static bool tq_reap_part(struct tq_sched *q, u32 *left)
{
	u32 least = 1U << q->options.value[TQ_O_buckets_log];
	u32 wanted = max(2 * min(q->flows, TQ_BUCKETS_MAX), least);
	u64 now = timely_clock_ns();
	u32 i;

	/* A record in this list is kept by its reference there. */
	if (!llist_empty(&q->waiter.changed))
		tq_take_changed(q);
	if (!q->sch->q.qlen && q->ready)
		tq_end_turns(q, now);
	for (i = 0; i < TQ_REAP_BUCKETS && *left; i++, --*left) {
		if (q->reap_at >= q->table.buckets)
			q->reap_at = 0;
		tq_reap_bucket(q, q->reap_at++, now);
	}
	for (i = 0; i < TQ_REAP_BUCKETS && q->table.buckets > wanted; i++) {
		/* Its flows may go where this round has been already. */
		tq_reap_bucket(q, q->table.buckets - 1, now);
		tq_table_merge(&q->table, q->reserved);
	}
	if (*left || q->table.buckets > wanted)
		return true;
	q->reaping = q->flows || q->table.buckets > least;
	return false;
}

/* Free flows that have been idle for some seconds, with their records, and buckets that
 * are not needed any more. A dead socket sends nothing, so its flow goes as well, though
 * nobody tells of its death. Runs once in a second while there are flows.
 */
static void tq_reap(struct work_struct *work)
{
	struct tq_sched *q = container_of(to_delayed_work(work), struct tq_sched, reap);
	u32 left = max(READ_ONCE(q->table.buckets) / TQ_REAP_RUNS + 1, TQ_REAP_LEAST);
	struct Qdisc *root;
	bool more = true;

	while (more) {
		rcu_read_lock();
		root = qdisc_root_sleeping(q->sch);
		spin_lock_bh(qdisc_lock(root));
		/* The root is replaced under its own lock. If this happened while the lock
		 * was waited for, the next run finds the new root.
		 */
		more = false;
		if (root == qdisc_root_sleeping(q->sch)) {
			spin_lock(&q->reap_lock);
			more = tq_reap_part(q, &left);
			spin_unlock(&q->reap_lock);
		}
		spin_unlock_bh(qdisc_lock(root));
		rcu_read_unlock();
		cond_resched();
	}
	if (READ_ONCE(q->reaping))
		queue_delayed_work(system_power_efficient_wq, &q->reap, TQ_REAP_TICK);
}

/* ---- new flows ---- */

static void tq_add_flow(struct tq_sched *q, struct tq_flow *f, const struct sk_buff *skb,
			struct sock *key, u64 now)
{
	struct tq_flow **bucket;

	f->sk = key;
	f->credit = q->config.initial_quantum;
	f->rate_Bps = TQ_UNLIMITED;
	f->state = TQ_IDLE;
	f->node.due_ns = now;
	if (tq_is_socket(skb, key))
		tq_adopt(q, f, skb->sk);
	tq_table_grow(&q->table, q->flows + 1);
	bucket = tq_bucket(&q->table, key);
	tq_gc(q, bucket, now, TQ_GC_MAX);
	f->hash_next = *bucket;
	*bucket = f;
	q->flows++;
	q->inactive++;
	if (!q->reaping) {
		q->reaping = true;
		queue_delayed_work(system_power_efficient_wq, &q->reap, TQ_REAP_TICK);
	}
}

static struct tq_flow *tq_find(const struct tq_table *table, const struct sock *key)
{
	struct tq_flow *f = *tq_bucket(table, key);

	while (f && f->sk != key)
		f = f->hash_next;
	return f;
}

/* The network namespace has as many queues as it may: its other flows share a few,
 * by their hash, with nobody else. To let them pass without a queue would put them before
 * everybody's packets, and free them of their rates. In a shared queue packets leave in
 * the order of their stamps, which hold TCP to its rates; nothing is recorded, and
 * nothing held by On-Ramp.
 */
static struct tq_flow *tq_shared_flow(struct tq_sched *q, struct sk_buff *skb,
				      const struct net *net, u64 now)
{
	unsigned long hash = skb_get_hash(skb) % TQ_SHARED_QUEUES;
	struct sock *key = (struct sock *)((unsigned long)net | hash << 1 | 1);
	struct tq_flow *f = tq_find(&q->table, key);

	q->stats.shared_packets++;
	if (f)
		return f;
	f = tq_alloc_flow(q, false, NULL);
	if (f)
		tq_add_flow(q, f, skb, key, now);
	return f;
}

static struct tq_flow *tq_new_flow(struct tq_sched *q, struct sk_buff *skb,
				   struct sock *key, u64 now)
{
	const struct net *home = dev_net(qdisc_dev(q->sch));
	const struct net *net = tq_is_socket(skb, key) ? sock_net(key) : home;
	struct timely_budget *budget;
	struct mem_cgroup *before;
	struct tq_flow *f;

	if (++q->sweep >= q->table.buckets)
		q->sweep = 0;
	tq_gc(q, tq_table_bucket(&q->table, q->sweep), now, TQ_GC_MAX);
	before = timely_charge_begin(skb->sk);
	budget = timely_budget_take(net, TIMELY_BUDGET_queues);
	if (unlikely(!budget)) {
		f = tq_shared_flow(q, skb, net, now);
	} else {
		f = tq_alloc_flow(q, net != home, budget);
		if (f)
			tq_add_flow(q, f, skb, key, now);
	}
	timely_charge_end(before);
	return f;
}

/* Count the queue in the budget of its new socket's network namespace. One that was made
 * for a socket of the device's own namespace stays counted there until it is freed.
 */
static void tq_recount(struct tq_flow *f, const struct sock *sk)
{
	struct timely_budget *budget;

	if (likely(!f->guest))
		return;
	budget = timely_budget_take(sock_net(sk), TIMELY_BUDGET_queues);
	if (!budget)
		return;
	timely_budget_return(tq_guest(f)->budget);
	tq_guest(f)->budget = budget;
}

/* The memory of a socket has become another socket. */
static void tq_renew_flow(struct tq_sched *q, struct tq_flow *f, struct sock *sk)
{
	tq_forget_record(q, f);
	tq_recount(f, sk);
	tq_adopt(q, f, sk);
	f->credit = q->config.initial_quantum;
	f->paced = 0;
	if (f->state == TQ_THROTTLED) {
		timely_wheel_del(q->wheel, &f->node);
		tq_unthrottle(q, f);
	}
}

/* Sockets are flows. What has none, or one that is no connection of its own, is
 * a flow by its headers: SYN-ACKs, what TIME-WAIT answers, what is forwarded,
 * unconnected UDP. The low bit tells these keys from sockets.
 */
static struct sock *tq_key(const struct tq_sched *q, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	bool sender = sk && sk_fullsock(sk) && sk->sk_state != TCP_LISTEN;
	unsigned long hash;

	if (likely(sender && sk->sk_state != TCP_CLOSE))
		return sk;
	hash = skb_get_hash(skb) & q->config.orphan_mask;
	if (!sender)
		skb_orphan(skb);
	return (struct sock *)((hash << 1) | 1UL);
}

/* A FIN or RST has a sequence number after that of data which may be held: were it to
 * pass the data, the receiver would see a loss. Nothing is sent before a SYN.
 */
static bool tq_ends_data(const struct sk_buff *skb)
{
	return tq_cb(skb)->tcp && (tcp_hdr(skb)->fin || tcp_hdr(skb)->rst);
}

/* With nothing else to send and no rate to keep to, a flow is of no use. */
static bool tq_may_bypass(const struct Qdisc *sch, struct tq_sched *q,
			  const struct sk_buff *skb, const struct sock *key, u64 now)
{
	if (tq_cb(skb)->time_ns > now || q->config.maxrate_Bps != TQ_UNLIMITED)
		return false;
	if (sch->q.qlen) {
		if (q->flows != q->inactive + q->throttled ||
		    q->bypass_qlen >= TQ_FASTPATH_MAX)
			return false;
		/* A flow may be due, and unserved as yet. */
		if (!timely_wheel_advance(q->wheel, now + q->config.offload_ns))
			return false;
	}
	/* Pieces of an earlier packet may still wait. */
	if (q->config.segment)
		return false;
	if (!skb->sk)
		return true;
	if (tq_cb(skb)->data || tq_ends_data(skb))
		return false;
	if (!sk_is_tcp(skb->sk))
		return READ_ONCE(skb->sk->sk_max_pacing_rate) == ~0UL;
	return !tq_is_socket(skb, key) || !timely_flow_wanted(skb->sk);
}

/* The flow of a packet, NULL if it needs none or there is no memory for one. */
static struct tq_flow *tq_classify(struct Qdisc *sch, struct sk_buff *skb,
				   struct sock *key, struct tq_flow **bucket, u64 now)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_flow *f;

	if (tq_may_bypass(sch, q, skb, key, now)) {
		q->stats.fastpath_packets++;
		if (tq_is_socket(skb, key))
			tq_take_pacing(q, key);
		return NULL;
	}
	for (f = *bucket; f && f->sk != key; f = f->hash_next)
		;
	if (unlikely(!f)) {
		f = tq_new_flow(q, skb, key, now);
		if (!f)
			return NULL;
	}
	if (tq_is_socket(skb, f->sk)) {
		if (unlikely(f->socket_hash != key->sk_hash))
			tq_renew_flow(q, f, key);
		if (f->recorded || q->config.onramp ||
		    (sk_is_tcp(key) && timely_flow_wanted(key)))
			tq_look_for_record(q, f, skb);
	}
	return f;
}

/* ---- enqueue ---- */

static bool tq_stamp_is_sane(const struct tq_sched *q, s64 stamp, u64 now)
{
	return stamp - now + TQ_PAST_NS <= q->config.horizon_ns + TQ_PAST_NS &&
	       stamp > 0;
}

/* A stamp that is not within the horizon. Beyond it, the horizon's own rule
 * applies; what no monotonic clock has shown, or will show soon, was set by
 * another clock: a forwarded packet's time of arrival, say. fq drops those or
 * holds each for the whole horizon.
 *
 * Return: false if the packet is to be dropped.
 */
static bool tq_check_stamp(struct tq_sched *q, struct sk_buff *skb, u64 now)
{
	s64 ahead = skb->tstamp - now;

	if (ahead > 0 && ahead < TQ_FOREIGN_NS) {
		if (q->config.horizon_drop) {
			q->stats.horizon_drops++;
			return false;
		}
		q->stats.horizon_caps++;
		skb->tstamp = now + q->config.horizon_ns;
		return true;
	}
	q->stats.wrong_clock++;
	if (q->config.wrong_clock_drop) {
		q->stats.wrong_clock_drops++;
		return false;
	}
	skb->tstamp = 0;
	return true;
}

static bool tq_set_dscp(struct sk_buff *skb, u8 dscp)
{
	u32 offset = skb_network_offset(skb);

	switch (skb->protocol) {
	case htons(ETH_P_IP):
		if (skb_ensure_writable(skb, offset + sizeof(struct iphdr)))
			return false;
		ipv4_change_dsfield(ip_hdr(skb), INET_ECN_MASK, dscp << 2);
		return true;
	case htons(ETH_P_IPV6):
		if (skb_ensure_writable(skb, offset + sizeof(struct ipv6hdr)))
			return false;
		ipv6_change_dsfield(ipv6_hdr(skb), INET_ECN_MASK, dscp << 2);
		return true;
	}
	return false;
}

/* Pure ACKs carry the congestion signal of the other direction (paper, section
 * 2): they need not wait behind data here, nor in a network that knows the mark.
 *
 * Return: true if the packet may jump the queue.
 */
static bool tq_ack(struct tq_sched *q, struct sk_buff *skb)
{
	if (q->config.ack_priority != TIMELY_PRIORITY_KEEP)
		skb->priority = q->config.ack_priority;
	if (q->config.ack_dscp != TIMELY_DSCP_KEEP &&
	    tq_set_dscp(skb, q->config.ack_dscp))
		q->stats.acks_marked++;
	return q->config.ack_first;
}

static void tq_account(struct Qdisc *sch, const struct sk_buff *skb)
{
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
}

static int tq_bypass(struct Qdisc *sch, struct tq_sched *q, struct sk_buff *skb)
{
	tq_list_add(&q->bypass, skb);
	q->bypass_qlen++;
	tq_account(sch, skb);
	return NET_XMIT_SUCCESS;
}

/* The flow's first packet since it was idle. */
static void tq_start(struct tq_sched *q, struct tq_flow *f, struct sk_buff *skb,
		     u64 now)
{
	u64 ahead = now + q->config.offload_ns;
	u64 due;

	if (now - f->node.due_ns > q->config.refill_ns)
		f->credit = max_t(s32, f->credit, q->config.quantum);
	if (unlikely(q->config.onramp) && f->recorded && tq_cb(skb)->data &&
	    timely_flow_onramp(f->record))
		timely_onramp_recall(f->record, now);
	due = tq_due(q, f, skb);
	if (due <= ahead) {
		tq_make_ready(q, f, &q->bands[f->band].new_flows);
		return;
	}
	tq_cb(skb)->waited = 1;
	timely_wheel_advance(q->wheel, ahead);
	tq_throttle(q, f, due);
}

/* What only the flow tells of the packet, and what is asked of its socket and
 * headers: here they are in the cache, when the packet leaves they are not.
 */
static void tq_note(const struct tq_sched *q, const struct tq_flow *f,
		    const struct sk_buff *skb, u64 now)
{
	struct tq_skb_cb *cb = tq_cb(skb);

	/* Not before what was queued while stamps did count. */
	if (tq_is_lazy(q, f))
		cb->time_ns = f->head ? max(now, tq_cb(f->head->prev)->time_ns) : now;
	if (f->recorded) {
		if (!q->config.onramp)
			tq_note_kind(skb);
		cb->stamped = cb->tcp && skb->tstamp;
	}
	cb->charge = q->config.pacing &&
		     (f->recorded || tq_rate_Bps(q, f, skb) != TQ_UNLIMITED);
}

/* An ACK is not held: it passes the flow's data that is. */
static bool tq_passes(const struct tq_sched *q, const struct tq_flow *f,
		      const struct sk_buff *skb, u64 now)
{
	return f->recorded && f->qlen && READ_ONCE(f->record->pause_until_ns) > now &&
	       skb_is_tcp_pure_ack(skb) && q->bypass_qlen < TQ_PASS_MAX;
}

/* A flow that On-Ramp watches, but nothing holds, and with nothing else to send: its
 * packet only has to be noted when it leaves. One that was idle gets a turn first.
 */
static bool tq_may_pass(const struct Qdisc *sch, const struct tq_sched *q,
			const struct tq_flow *f, const struct sk_buff *skb, u64 now)
{
	const struct tq_skb_cb *cb = tq_cb(skb);

	if (sch->q.qlen || f->state != TQ_READY || !f->recorded || f->driven || f->paced ||
	    q->config.segment || cb->time_ns > now)
		return false;
	return READ_ONCE(f->record->pause_until_ns) <= now && tq_spaced(f, cb) <= now &&
	       tq_rate_Bps(q, f, skb) == TQ_UNLIMITED;
}

static int tq_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		      struct sk_buff **to_free)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct sock *key = tq_key(q, skb);
	struct tq_flow **bucket = tq_bucket(&q->table, key);
	bool first = false;
	struct tq_flow *f;
	u64 now;
	u8 band;

	/* With many flows neither is in the cache: what comes first takes as
	 * long as they do.
	 */
	prefetch(bucket);
	now = timely_clock_ns();
	prefetchw(*bucket);

	if (unlikely(q->config.ack_special) && skb_is_tcp_pure_ack(skb))
		first = tq_ack(q, skb);
	band = q->config.prio2band[skb->priority & TC_PRIO_MAX];
	if (unlikely(q->bands[band].packets >= sch->limit)) {
		q->stats.band_drops[band]++;
		return timely_qdisc_drop(skb, sch, to_free, BAND_LIMIT);
	}
	if (skb->tstamp && unlikely(!tq_stamp_is_sane(q, skb->tstamp, now)) &&
	    !tq_check_stamp(q, skb, now))
		return timely_qdisc_drop(skb, sch, to_free, HORIZON_LIMIT);
	*tq_cb(skb) = (struct tq_skb_cb) {
		.time_ns = skb->tstamp ? : now,
		.segs = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1,
		.band = band,
	};
	if (unlikely(q->config.onramp) && tq_is_socket(skb, key))
		tq_note_kind(skb);
	if (first && q->bypass_qlen < sch->limit) {
		q->stats.acks_first++;
		return tq_bypass(sch, q, skb);
	}

	f = tq_classify(sch, skb, key, bucket, now);
	if (!f)
		return tq_bypass(sch, q, skb);
	if (unlikely(q->config.onramp) && f->recorded && timely_flow_onramp(f->record) &&
	    READ_ONCE(f->record->resume_Bps) != TIMELY_RESUME_UNLIMITED)
		timely_onramp_unheard(f->record, now);
	if (unlikely(tq_passes(q, f, skb, now))) {
		q->stats.onramp_acks_passed++;
		return tq_bypass(sch, q, skb);
	}
	if (unlikely(f->qlen >= q->config.flow_limit)) {
		q->stats.flows_plimit++;
		return timely_qdisc_drop(skb, sch, to_free, FLOW_LIMIT);
	}
	tq_note(q, f, skb, now);
	if (tq_may_pass(sch, q, f, skb, now)) {
		q->passing = f;
		q->stats.fastpath_packets++;
		return tq_bypass(sch, q, skb);
	}
	tq_queue(f, skb);
	if (!f->qlen++)
		q->inactive--;
	f->band = band;
	q->bands[band].packets++;
	tq_account(sch, skb);
	if (f->state == TQ_IDLE)
		tq_start(q, f, skb, now);
	else if (f->state == TQ_THROTTLED && (f->recorded || f->has_early))
		tq_move(q, f);
	return NET_XMIT_SUCCESS;
}

/* ---- splitting ---- */

/* The pieces' common size is written where a copy of the packet might read it:
 * TCP's own is not looked at while this one is queued here, others may be.
 */
static bool tq_own_gso_size(struct sk_buff *skb)
{
	int refs = atomic_read(&skb_shinfo(skb)->dataref) & SKB_DATAREF_MASK;

	if (refs <= (skb->fclone == SKB_FCLONE_CLONE && skb->destructor ? 2 : 1))
		return true;
	return !skb_unclone(skb, GFP_ATOMIC | __GFP_NOWARN);
}

/* What may be split, and what else may be said of it: nothing of tunnels. */
#define TQ_GSO_SPLIT	(SKB_GSO_TCPV4 | SKB_GSO_TCPV6 | SKB_GSO_UDP_L4)
#define TQ_GSO_KNOWN	(TQ_GSO_SPLIT | SKB_GSO_DODGY | SKB_GSO_TCP_ECN | SKB_GSO_TCP_FIXEDID)

/* Packets of a piece, 0 if it is not to be split. */
static u32 tq_piece_packets(const struct tq_sched *q, const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 headers, packets;

	if (!(info->gso_type & TQ_GSO_SPLIT) || (info->gso_type & ~TQ_GSO_KNOWN) ||
	    skb->encapsulation || skb->ip_summed != CHECKSUM_PARTIAL ||
	    !info->gso_size || info->frag_list)
		return 0;
	headers = tq_headers(skb);
	if (!headers)
		return 0;
	headers -= skb_network_offset(skb);
	if (headers + info->gso_size > U16_MAX)
		return 0;
	packets = max(q->config.segment / (headers + info->gso_size), 1U);
	/* An IP packet has a length of 16 bits, also before it is split again. */
	packets = min(packets, (U16_MAX - headers) / info->gso_size);
	return tq_payload(skb) > packets * info->gso_size ? packets : 0;
}

/**
 * struct tq_gso - what the pieces of a packet take over from it
 * @size: bytes of payload in a packet on the wire
 * @type: SKB_GSO_*
 * @packets: of a piece
 * @header: bytes of the transport's header
 * @id: its IP ID; each piece counts as one, and holds @packets
 * @numbered: packets have IDs of their own, from @id on
 */
struct tq_gso {
	u32 size;
	u32 type;
	u32 packets;
	u32 header;
	u16 id;
	bool numbered;
};

static struct tq_gso tq_gso_of(const struct sk_buff *skb, u32 packets)
{
	bool ipv4 = skb->protocol == htons(ETH_P_IP);

	return (struct tq_gso) {
		.size = skb_shinfo(skb)->gso_size,
		.type = skb_shinfo(skb)->gso_type,
		.packets = packets,
		.header = tq_transport_header(skb),
		.id = ipv4 ? ntohs(ip_hdr(skb)->id) : 0,
		.numbered = ipv4 && !(skb_shinfo(skb)->gso_type & SKB_GSO_TCP_FIXEDID),
	};
}

/* How long tc's size table makes a packet (tc-stab(8)). The kernel's function for this is
 * not exported to modules.
 */
static u32 tq_table_bytes(const struct qdisc_size_table *stab, u32 len)
{
	const struct tc_sizespec *opts = &stab->szopts;
	s64 bytes = (s64)len + opts->overhead;
	u32 cell;

	if (opts->tsize) {
		cell = max(bytes + opts->cell_align, 0LL) >> opts->cell_log;
		bytes = stab->data[cell % opts->tsize];
		/* Beyond the table's end: so many times its last entry, and the rest. */
		bytes += (s64)stab->data[opts->tsize - 1] * (cell / opts->tsize);
		bytes <<= opts->size_log;
	}
	return clamp(bytes, 1LL, (s64)TQ_TABLE_BYTES_MAX);
}

/* The size table is the qdisc's own, or else the one of the device's root qdisc. */
static void tq_apply_size_table(const struct Qdisc *sch, struct sk_buff *skb)
{
	const struct qdisc_size_table *stab = rcu_dereference_bh(sch->stab);

	if (likely(!stab))
		stab = rcu_dereference_bh(qdisc_root_bh(sch)->stab);
	if (unlikely(stab))
		qdisc_skb_cb(skb)->pkt_len = tq_table_bytes(stab, skb->len);
}

/* Make what came out of segmentation a GSO packet again. */
static void tq_finish_piece(struct Qdisc *sch, struct sk_buff *piece,
			    const struct tq_gso *gso, u32 nr)
{
	/* Not the packet's own: a jumbogram's extension header is gone. */
	u32 header = skb_transport_offset(piece) + gso->header;
	u32 payload = piece->len - header;
	u32 segs = DIV_ROUND_UP(payload, gso->size);

	if (segs > 1) {
		skb_shinfo(piece)->gso_size = gso->size;
		skb_shinfo(piece)->gso_type = gso->type;
		skb_shinfo(piece)->gso_segs = segs;
	}
	if (gso->numbered) {
		ip_hdr(piece)->id = htons(gso->id + nr * gso->packets);
		ip_send_check(ip_hdr(piece));
	}
	qdisc_skb_cb(piece)->pkt_len = piece->len + (segs - 1) * header;
	tq_apply_size_table(sch, piece);
	timely_set_pkt_segs(piece, segs);
	tq_cb(piece)->segs = segs;
}

static struct sk_buff *tq_segment(struct sk_buff *skb, u32 packets)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	u32 gso_size = info->gso_size;
	struct sk_buff *pieces;

	/* What the device cannot do is done for the pieces later. */
	info->gso_size = packets * gso_size;
	pieces = __skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA,
				   false);
	skb_shinfo(skb)->gso_size = gso_size;
	return IS_ERR(pieces) ? NULL : pieces;
}

/* TCP does not probe for a packet, or send it again, while it finds that the copy it gave
 * away is still on this host. So that copy stays until the packet's last sub-segment has
 * left. The sub-segments carry the charge to the socket's memory; TCP only compares the
 * copy's socket with its own.
 */
static void tq_keep_original(struct sk_buff *skb, struct sock *sk, struct sk_buff *last)
{
	if (skb->fclone != SKB_FCLONE_CLONE || !sk) {
		consume_skb(skb);
		return;
	}
	if (!skb->destructor)
		WRITE_ONCE(skb->sk, sk);
	tq_cb(last)->original = skb;
}

/* Split a GSO packet that is about to leave (paper, section 6: bursts of 64 KB
 * at line rate are what fills switch queues). The pieces go before all that the
 * flow has queued; the first one is returned. Each keeps as many whole packets
 * as fit, so that the device still offloads the rest of the work.
 */
static struct sk_buff *tq_split(struct Qdisc *sch, struct tq_flow *f,
				struct sk_buff *skb)
{
	struct tq_sched *q = qdisc_priv(sch);
	u32 packets = tq_piece_packets(q, skb);
	struct tq_skb_cb cb = *tq_cb(skb);
	struct sk_buff *pieces, *piece, *last = NULL;
	struct sock *sk = skb->sk;
	u32 nr = 0, bytes = 0;
	struct tq_gso gso;

	if (!packets)
		return skb;
	gso = tq_gso_of(skb, packets);
	pieces = tq_own_gso_size(skb) ? tq_segment(skb, packets) : NULL;
	if (!pieces) {
		q->stats.segment_errors++;
		return skb;
	}
	for (piece = pieces; piece; piece = piece->next) {
		*tq_cb(piece) = cb;
		tq_cb(piece)->waited = 0;
		tq_cb(piece)->paused = 0;
		tq_cb(piece)->stamped = 0;
		tq_cb(piece)->piece = 1;
		tq_cb(piece)->more = !!piece->next;
		tq_finish_piece(sch, piece, &gso, nr++);
		bytes += qdisc_pkt_len(piece);
		last = piece;
	}
	if (pieces->next)
		tq_list_push(&f->head, pieces->next, last);
	skb_mark_not_on_list(pieces);
	pieces->prev = NULL;

	sch->q.qlen += nr - 1;
	sch->qstats.backlog += bytes - qdisc_pkt_len(skb);
	qdisc_tree_reduce_backlog(sch, 1 - nr, qdisc_pkt_len(skb) - bytes);
	q->stats.segmented++;
	q->stats.segments += nr;
	tq_keep_original(skb, sk, last);
	return pieces;
}

/* The next piece of the same packet follows at a rate of its own, or at the
 * socket's where it is not the qdisc's pacing that knows it: stamps pace whole
 * packets.
 */
static void tq_time_next_piece(struct tq_sched *q, struct tq_flow *f,
			       const struct sk_buff *skb, u64 due)
{
	struct tq_skb_cb *next = tq_cb(f->head);
	u32 bytes = qdisc_pkt_len(skb);
	unsigned long rate_Bps;
	u64 ns;

	next->time_ns = due;
	if (q->config.segment_ns_per_byte) {
		ns = mul_u64_u32_shr(q->config.segment_ns_per_byte, bytes, TQ_PACE_SHIFT);
		next->burst = 1;
		next->time_ns += min(ns, TQ_PACE_MAX_NS);
	} else if (skb->sk && !f->paced && q->config.pacing) {
		rate_Bps = READ_ONCE(skb->sk->sk_pacing_rate);
		/* TCP's stamps go by the payload. */
		if (sk_is_tcp(skb->sk))
			bytes = tq_payload(skb);
		if (rate_Bps != ~0UL)
			next->time_ns += tq_pace_ns(f, bytes, rate_Bps);
	}
}

/* ---- dequeue ---- */

/* Flows whose time has come get their turns. */
static void tq_release(struct tq_sched *q, u64 now)
{
	u64 ahead = now + q->config.offload_ns;
	struct timely_wheel_node *node;
	struct tq_flow *f;

	node = timely_wheel_expire(q->wheel, ahead);
	if (!node)
		return;
	q->unthrottle_ns -= q->unthrottle_ns >> 3;
	q->unthrottle_ns += (ahead - min(node->due_ns, ahead)) >> 3;
	do {
		f = container_of(node, struct tq_flow, node);
		/* Their turns come one by one, after these have arrived. */
		prefetchw(f->head);
		tq_unthrottle(q, f);
		node = timely_wheel_expire(q->wheel, ahead);
	} while (node);
}

/* Whose turn is it? NULL if it is nobody's. */
static struct tq_turns *tq_next_turns(struct tq_sched *q)
{
	struct tq_band *band = &q->bands[q->band_nr];
	int empty = 0;
	s64 weight;

	if (!q->ready)
		return NULL;
	for (;;) {
		if (band->credit > 0) {
			if (band->new_flows.first)
				return &band->new_flows;
			if (band->old_flows.first)
				return &band->old_flows;
			if (++empty > TIMELY_BANDS)
				return NULL;
		} else {
			empty = 0;
		}
		if (++q->band_nr == TIMELY_BANDS)
			q->band_nr = 0;
		band = &q->bands[q->band_nr];
		weight = q->config.weights[q->band_nr];
		band->credit = min((s64)band->credit + weight, weight);
	}
}

/* The flow's turn ends without a packet: it has none, or not yet. */
static void tq_end_turn(struct tq_sched *q, struct tq_turns *turns,
			struct tq_flow *f, u64 now)
{
	struct tq_band *band = &q->bands[q->band_nr];

	turns->first = tq_turn_after(f);
	/* A flow that is new again with each packet must not keep the old ones
	 * from their turns.
	 */
	if (turns == &band->new_flows && band->old_flows.first)
		tq_turn_add(&band->old_flows, f);
	else
		tq_make_idle(q, f, now);
}

static void tq_put_back(struct tq_sched *q, struct tq_turns *turns,
			struct tq_flow *f, struct sk_buff *skb, u64 due)
{
	turns->first = tq_turn_after(f);
	q->ready--;
	if (tq_cb(skb)->waited)
		q->stats.put_back++;
	tq_cb(skb)->waited = 1;
	tq_throttle(q, f, due);
}

static void tq_note_left(struct tq_flow *f, const struct sk_buff *skb, u64 now)
{
	if (!tq_cb(skb)->stamped)
		return;
	f->stamp_ns = tq_cb(skb)->time_ns;
	f->left_ns = now;
}

/* Take the packet out of its flow, which has its turn. */
static struct sk_buff *tq_send(struct Qdisc *sch, struct tq_flow *f,
			       struct sk_buff *skb, u64 now, u64 due)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_band *band = &q->bands[q->band_nr];
	u32 len;

	tq_unqueue(sch, f, skb);
	tq_note_left(f, skb, now);
	if (unlikely(q->config.segment) && skb_is_gso(skb) && !tq_cb(skb)->piece)
		skb = tq_split(sch, f, skb);
	if (!tq_cb(skb)->more) {
		if (!--f->qlen)
			tq_emptied(q, f);
		q->bands[tq_cb(skb)->band].packets--;
		tq_free_original(skb);
	}
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	len = qdisc_pkt_len(skb);
	f->credit -= len;
	band->credit -= len;
	/* The device does the rest of the waiting. */
	if (unlikely(due > now))
		skb->tstamp = due;

	if ((s64)(now - due - q->config.ce_threshold_ns) > 0 && INET_ECN_set_ce(skb))
		q->stats.ce_mark++;
	if (tq_cb(skb)->charge && q->config.pacing)
		tq_charge(q, f, skb, now, due);
	else
		f->paced = 0;
	if (tq_cb(skb)->more)
		tq_time_next_piece(q, f, skb, due);
	if (tq_departs(f, skb))
		tq_record(q, f, skb, max(now, due));
	return skb;
}

static struct sk_buff *tq_next_packet(struct Qdisc *sch, u64 now)
{
	struct tq_sched *q = qdisc_priv(sch);
	u64 ahead = now + q->config.offload_ns;
	struct tq_turns *turns;
	struct sk_buff *skb;
	struct tq_flow *f;
	u64 due;

	while ((turns = tq_next_turns(q))) {
		f = turns->first;
		if (f->credit <= 0) {
			f->credit += q->config.quantum;
			turns->first = tq_turn_after(f);
			tq_turn_add(&q->bands[q->band_nr].old_flows, f);
			continue;
		}
		skb = tq_peek(f);
		if (!skb) {
			tq_end_turn(q, turns, f, now);
			continue;
		}
		due = tq_due(q, f, skb);
		if (due <= ahead)
			return tq_send(sch, f, skb, now, due);
		tq_put_back(q, turns, f, skb, due);
	}
	return NULL;
}

static void tq_arm(struct tq_sched *q)
{
	u64 next = timely_wheel_next_ns(q->wheel);

	if (next != TQ_UNLIMITED)
		qdisc_watchdog_schedule_range_ns(&q->watchdog,
						 next - q->config.offload_ns,
						 q->config.timer_slack_ns);
}

static void tq_passed(struct tq_sched *q, const struct sk_buff *skb)
{
	struct tq_flow *f = q->passing;
	u64 now = timely_clock_ns();

	q->passing = NULL;
	tq_note_left(f, skb, now);
	if (tq_departs(f, skb))
		tq_record(q, f, skb, now);
}

static struct sk_buff *tq_dequeue(struct Qdisc *sch)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now;

	/* Also when nothing is queued: each notice holds a reference. */
	if (unlikely(!llist_empty(&q->waiter.changed)))
		tq_take_changed(q);
	if (!sch->q.qlen)
		return NULL;
	if (unlikely(q->bypass)) {
		skb = tq_list_pop(&q->bypass);
		q->bypass_qlen--;
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		if (q->passing)
			tq_passed(q, skb);
		goto out;
	}
	now = timely_clock_ns();
	tq_release(q, now);
	skb = tq_next_packet(sch, now);
	if (!skb) {
		tq_arm(q);
		return NULL;
	}
out:
	/* The packet's own count of segments is not in the cache here. */
	_bstats_update(&sch->bstats, qdisc_pkt_len(skb), tq_cb(skb)->segs);
	return skb;
}

/* ---- resetting ---- */

static void tq_purge_list(struct sk_buff **head)
{
	if (*head)
		rtnl_kfree_skbs(*head, (*head)->prev);
	*head = NULL;
}

static void tq_purge_flow(struct Qdisc *sch, struct tq_flow *f)
{
	struct sk_buff *skb;

	while ((skb = skb_rb_first(&f->early))) {
		tq_unqueue(sch, f, skb);
		rtnl_kfree_skbs(skb, skb);
	}
	for (skb = f->head; skb && tq_cb(skb)->piece; skb = skb->next)
		tq_free_original(skb);
	tq_purge_list(&f->head);
}

/* Every flow. */
#define tq_for_each_flow(table, nr, f)				\
	for ((nr) = 0; (nr) < (table)->buckets; (nr)++)		\
		for ((f) = *tq_table_bucket(table, nr); (f); (f) = (f)->hash_next)

static void tq_purge_table(struct Qdisc *sch, struct tq_table *table)
{
	struct tq_flow **bucket, *f;
	u32 nr;

	for (nr = 0; nr < table->buckets; nr++) {
		bucket = tq_table_bucket(table, nr);
		while ((f = *bucket)) {
			*bucket = f->hash_next;
			tq_purge_flow(sch, f);
			tq_free_flow(qdisc_priv(sch), f);
		}
	}
}

static void tq_reset(struct Qdisc *sch)
{
	struct tq_sched *q = qdisc_priv(sch);

	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	qdisc_watchdog_cancel(&q->watchdog);
	spin_lock_bh(&q->reap_lock);
	tq_purge_list(&q->bypass);
	q->bypass_qlen = 0;
	q->passing = NULL;
	tq_purge_table(sch, &q->table);
	/* Records that no flow has any more. */
	tq_take_changed(q);
	memset(q->bands, 0, sizeof(q->bands));
	q->flows = 0;
	q->inactive = 0;
	q->throttled = 0;
	q->ready = 0;
	if (q->wheel)
		timely_wheel_init(q->wheel, q->wheel->shift, timely_clock_ns());
	spin_unlock_bh(&q->reap_lock);
}

/* ---- options ---- */

/**
 * struct tq_option_desc - a numeric option
 * @type: its netlink attribute
 * @bits: of the attribute's number
 * @min: least
 * @max: most; the default is allowed besides
 * @initial: default
 * @refusal: what a user is told
 */
struct tq_option_desc {
	u64 min;
	u64 max;
	u64 initial;
	const char *refusal;
	u8 type;
	u8 bits;
};

#define TQ_OPTION_DESC(field, attr, width, low, high, deflt, unit, doc)	\
	[TQ_O_##field] = {						\
		.type = TCA_TIMELY_##attr,				\
		.bits = width,						\
		.min = low##ULL,					\
		.max = high##ULL,					\
		.initial = deflt##ULL,					\
		.refusal = "timely: " #field ": allowed are " #low	\
			   " to " #high " " unit,			\
	},
static const struct tq_option_desc tq_option_descs[TQ_O_COUNT] = {
	TIMELY_QDISC_OPTIONS(TQ_OPTION_DESC)
};

#define TQ_POLICY(field, attr, width, ...)	\
	[TCA_TIMELY_##attr] = { .type = NLA_U##width },
static const struct nla_policy tq_policy[TCA_TIMELY_MAX + 1] = {
	TIMELY_QDISC_OPTIONS(TQ_POLICY)
	[TCA_TIMELY_PRIOMAP] = NLA_POLICY_EXACT_LEN(sizeof(struct tc_prio_qopt)),
	[TCA_TIMELY_WEIGHTS] = NLA_POLICY_EXACT_LEN(TIMELY_BANDS * sizeof(s32)),
};

static u64 tq_get_number(const struct nlattr *attr, u8 bits)
{
	switch (bits) {
	case 8:
		return nla_get_u8(attr);
	case 32:
		return nla_get_u32(attr);
	default:
		return nla_get_u64(attr);
	}
}

static int tq_refuse(struct netlink_ext_ack *extack, const struct nlattr *attr,
		     const char *why)
{
	if (extack)
		extack->_msg = why;
	NL_SET_BAD_ATTR(extack, attr);
	return -EINVAL;
}

static int tq_parse_numbers(struct tq_options *options, struct nlattr **tb,
			    struct netlink_ext_ack *extack)
{
	const struct tq_option_desc *desc;
	const struct nlattr *attr;
	u64 value;
	u32 i;

	for (i = 0; i < TQ_O_COUNT; i++) {
		desc = &tq_option_descs[i];
		attr = tb[desc->type];
		if (!attr)
			continue;
		value = tq_get_number(attr, desc->bits);
		if ((value < desc->min || value > desc->max) &&
		    value != desc->initial)
			return tq_refuse(extack, attr, desc->refusal);
		options->value[i] = value;
	}
	return 0;
}

static int tq_parse_bands(struct tq_options *options, struct nlattr **tb,
			  struct netlink_ext_ack *extack)
{
	const struct nlattr *attr = tb[TCA_TIMELY_PRIOMAP];
	u32 i;

	if (attr) {
		nla_memcpy(&options->priomap, attr, sizeof(options->priomap));
		if (options->priomap.bands != TIMELY_BANDS)
			return tq_refuse(extack, attr, "timely: there are 3 bands");
		for (i = 0; i <= TC_PRIO_MAX; i++)
			if (options->priomap.priomap[i] >= TIMELY_BANDS)
				return tq_refuse(extack, attr,
						 "timely: priomap: allowed are 0 to 2");
	}
	attr = tb[TCA_TIMELY_WEIGHTS];
	if (attr) {
		nla_memcpy(options->weights, attr, sizeof(options->weights));
		for (i = 0; i < TIMELY_BANDS; i++)
			if (options->weights[i] < TIMELY_QDISC_MIN_WEIGHT)
				return tq_refuse(extack, attr,
						 "timely: weights: allowed are 16384 to 2147483647 bytes");
	}
	return 0;
}

static int tq_parse(struct tq_options *options, struct Qdisc *sch,
		    struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_TIMELY_MAX + 1];
	int err;

	/* Strict: an option that is not known must not seem to work. */
	err = nla_parse(tb, TCA_TIMELY_MAX, nla_data(opt), nla_len(opt), tq_policy,
			extack);
	if (!err)
		err = tq_parse_numbers(options, tb, extack);
	/* Shown as it is, not as it was asked for. */
	options->value[TQ_O_slot] = roundup_pow_of_two(options->value[TQ_O_slot]);
	if (!err)
		err = tq_parse_bands(options, tb, extack);
	if (!err && options->value[TQ_O_offload_horizon] * NSEC_PER_USEC >
		    timely_offload_horizon_ns(qdisc_dev(sch)))
		err = tq_refuse(extack, tb[TCA_TIMELY_OFFLOAD_HORIZON],
				"timely: offload_horizon: more than the device paces by itself");
	return err;
}

static void tq_default_options(struct tq_options *options, const struct Qdisc *sch)
{
	static const struct tc_prio_qopt priomap = {
		.bands = TIMELY_BANDS,
		.priomap = TIMELY_QDISC_DEFAULT_PRIOMAP,
	};
	static const s32 weights[] = TIMELY_QDISC_DEFAULT_WEIGHTS;
	u64 mtu = clamp_t(u32, psched_mtu(qdisc_dev(sch)), 1, 1 << 20);
	u32 i;

	for (i = 0; i < TQ_O_COUNT; i++)
		options->value[i] = tq_option_descs[i].initial;
	options->value[TQ_O_quantum] = min(options->value[TQ_O_quantum] * mtu,
					   tq_option_descs[TQ_O_quantum].max);
	options->value[TQ_O_initial_quantum] =
		min(options->value[TQ_O_initial_quantum] * mtu,
		    tq_option_descs[TQ_O_initial_quantum].max);
	options->priomap = priomap;
	memcpy(options->weights, weights, sizeof(weights));
}

static void tq_configure(struct tq_config *config, const struct tq_options *options)
{
	const u64 *value = options->value;

	*config = (struct tq_config) {
		.horizon_ns = value[TQ_O_horizon] * NSEC_PER_USEC,
		.offload_ns = value[TQ_O_offload_horizon] * NSEC_PER_USEC,
		.maxrate_Bps = value[TQ_O_maxrate],
		.ce_threshold_ns = value[TQ_O_ce_threshold] * NSEC_PER_USEC,
		.refill_ns = value[TQ_O_refill_delay] * NSEC_PER_USEC,
		.flow_limit = value[TQ_O_flow_limit],
		.quantum = max(value[TQ_O_quantum], 256ULL),
		.initial_quantum = value[TQ_O_initial_quantum],
		.orphan_mask = value[TQ_O_orphan_mask],
		.low_rate_Bps = value[TQ_O_low_rate_threshold],
		.timer_slack_ns = value[TQ_O_timer_slack],
		.segment = value[TQ_O_segment],
		.pacing = value[TQ_O_pacing],
		.lazy = value[TQ_O_lazy],
		.horizon_drop = value[TQ_O_horizon_drop],
		.ack_first = value[TQ_O_ack_first],
		.wrong_clock_drop = value[TQ_O_wrong_clock_drop],
		.ack_dscp = value[TQ_O_ack_dscp],
		.ack_priority = value[TQ_O_ack_priority],
		.onramp = !!value[TQ_O_onramp],
	};
	/* A slot until it comes out of the wheel, and one until it is its turn. */
	config->late_ns = min_t(u64, 2 * value[TQ_O_slot] + value[TQ_O_timer_slack],
				TQ_LATE_MAX_NS);
	config->ack_special = config->ack_first ||
			      config->ack_dscp != TIMELY_DSCP_KEEP ||
			      config->ack_priority != TIMELY_PRIORITY_KEEP;
	if (value[TQ_O_segment_rate])
		config->segment_ns_per_byte =
			div64_u64((u64)NSEC_PER_SEC << TQ_PACE_SHIFT,
				  value[TQ_O_segment_rate]);
	memcpy(config->prio2band, options->priomap.priomap, sizeof(config->prio2band));
	memcpy(config->weights, options->weights, sizeof(config->weights));
}

/* Signals read it while it is written, setting by setting. */
static void tq_onramp_configure(struct timely_onramp_law *law, const struct tq_options *options)
{
	const u64 *value = options->value;

	WRITE_ONCE(law->pause.pause_max_ns, value[TQ_O_onramp_pause_max]);
	WRITE_ONCE(law->pause.gain, value[TQ_O_onramp_gain]);
	WRITE_ONCE(law->pause.strawman, !!value[TQ_O_onramp_strawman]);
	WRITE_ONCE(law->clock_error_ns, value[TQ_O_onramp_clock_error]);
	WRITE_ONCE(law->owd, value[TQ_O_onramp_owd]);
	WRITE_ONCE(law->pause.threshold_ns, value[TQ_O_onramp]);
}

/* On-Ramp has been switched off: holds end, and the records that it alone had. */
static void tq_onramp_end(struct tq_sched *q, struct tq_flow *f)
{
	if (!f->recorded)
		return;
	WRITE_ONCE(f->record->pause_until_ns, 0);
	WRITE_ONCE(f->record->resume_Bps, TIMELY_RESUME_UNLIMITED);
	if (!f->record->key)
		tq_forget_record(q, f);
}

static u8 tq_slot_shift(const struct tq_options *options)
{
	return order_base_2(options->value[TQ_O_slot]);
}

/* The band's limit has become lower than what it holds: the flow's packets go,
 * until it fits.
 */
static void tq_trim_flow(struct Qdisc *sch, struct tq_sched *q, struct tq_flow *f)
{
	struct sk_buff *skb;
	bool more;

	while ((skb = tq_peek(f)) &&
	       q->bands[tq_cb(skb)->band].packets > sch->limit) {
		do {
			skb = tq_peek(f);
			more = tq_cb(skb)->more;
			tq_unqueue(sch, f, skb);
			tq_free_original(skb);
			qdisc_qstats_backlog_dec(sch, skb);
			sch->q.qlen--;
			qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
			qdisc_qstats_drop(sch);
			if (!more)
				q->bands[tq_cb(skb)->band].packets--;
			rtnl_kfree_skbs(skb, skb);
		} while (more);
		if (!--f->qlen)
			tq_emptied(q, f);
	}
	if (f->state == TQ_THROTTLED && !f->qlen) {
		timely_wheel_del(q->wheel, &f->node);
		q->throttled--;
		f->state = TQ_IDLE;
		f->node.due_ns = timely_clock_ns();
	}
}

/* A page for the bucket, in process context; the table may grow meanwhile. */
static bool tq_reserve_page(struct Qdisc *sch, u32 nr)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_flow ***place = &q->table.pages[nr / TQ_PAGE_BUCKETS];
	struct tq_flow **page;

	if (READ_ONCE(*place))
		return true;
	page = kzalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!page)
		return false;
	sch_tree_lock(sch);
	if (!*place)
		swap(*place, page);
	sch_tree_unlock(sch);
	kfree(page);
	return true;
}

/* Pages for so many buckets. They may stay though the change fails: buckets
 * come to them in time.
 */
static bool tq_reserve_buckets(struct Qdisc *sch, u32 buckets)
{
	struct tq_sched *q = qdisc_priv(sch);
	u32 nr;

	if (!q->table.pages)
		q->table.pages = kvcalloc(TQ_PAGES, sizeof(*q->table.pages),
					  GFP_KERNEL_ACCOUNT);
	if (!q->table.pages)
		return false;
	sch_tree_lock(sch);
	q->reserved = max(q->reserved, buckets);
	sch_tree_unlock(sch);
	for (nr = 0; nr < buckets; nr += TQ_PAGE_BUCKETS)
		if (!tq_reserve_page(sch, nr))
			return false;
	return true;
}

/* The memory that a change needs, before anything is changed: pages, and a
 * wheel if its slots are of another width.
 */
static int tq_prepare(struct Qdisc *sch, const struct tq_options *options,
		      struct timely_wheel **wheel, struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);

	*wheel = NULL;
	if (!tq_reserve_buckets(sch, 1U << options->value[TQ_O_buckets_log]))
		goto no_memory;
	if (q->wheel && q->wheel->shift == tq_slot_shift(options))
		return 0;
	*wheel = kvzalloc_node(sizeof(**wheel), GFP_KERNEL_ACCOUNT,
			       netdev_queue_numa_node_read(sch->dev_queue));
	if (*wheel)
		return 0;
no_memory:
	NL_SET_ERR_MSG_MOD(extack, "no memory for the flow table or the wheel");
	return -ENOMEM;
}

/* At least so many buckets; those that flows have brought stay. */
static void tq_add_buckets(struct tq_table *table, u32 buckets)
{
	if (!table->buckets) {
		table->buckets = 1;
		table->half = 1;
	}
	while (table->buckets < buckets)
		tq_table_split(table);
}

/* Waiting flows go where the present options would have them, and into the new
 * wheel if there is one; the old one is left in its place.
 */
static void tq_change_waiting(struct tq_sched *q, struct timely_wheel **wheel,
			      u8 shift)
{
	struct tq_flow *f;
	u64 due;
	u32 i;

	tq_for_each_flow(&q->table, i, f)
		if (f->state == TQ_THROTTLED)
			timely_wheel_del(q->wheel, &f->node);
	if (*wheel) {
		timely_wheel_init(*wheel, shift, timely_clock_ns());
		swap(*wheel, q->wheel);
	}
	if (!q->config.onramp)
		tq_for_each_flow(&q->table, i, f)
			tq_onramp_end(q, f);
	tq_for_each_flow(&q->table, i, f) {
		if (f->state != TQ_THROTTLED)
			continue;
		due = tq_due(q, f, tq_peek(f));
		if (f->recorded)
			due = tq_tell_waiting(q, f, due);
		timely_wheel_add(q->wheel, &f->node, due);
	}
}

static void tq_trim(struct Qdisc *sch, struct tq_sched *q)
{
	struct tq_flow *f;
	u32 i;

	for (i = 0; q->bands[i].packets <= sch->limit; )
		if (++i == TIMELY_BANDS)
			return;
	tq_for_each_flow(&q->table, i, f)
		tq_trim_flow(sch, q, f);
}

static u8 tq_onramp_wanted(const struct tq_options *options)
{
	return options->value[TQ_O_onramp] ? 1 + options->value[TQ_O_onramp_owd] : 0;
}

static int tq_onramp_join(struct Qdisc *sch, u8 wanted, struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);
	int err = 0;

	if (wanted && wanted != q->joined)
		err = timely_onramp_join(dev_net(qdisc_dev(sch)), wanted - 1);
	if (err == -EADDRINUSE)
		timely_set_err_fmt(extack,
				   "onramp: UDP port timely.orack_port in use, see ss -ulpn: free it or set another",
				   "onramp: UDP port %u in use: see ss -ulpn, or set orack_port",
				   timely_onramp_port());
	else if (err == -EPERM)
		NL_SET_ERR_MSG_MOD(extack,
				   "onramp: owd rtt affects the whole host: ask its administrator to set timely.tenants=1, or use owd relative");
	else if (err == -EOPNOTSUPP)
		NL_SET_ERR_MSG_MOD(extack,
				   "onramp: owd rtt takes a kernel with the tracepoint tcp_probe and without PREEMPT_RT: use another owd");
	else if (err)
		NL_SET_ERR_MSG_MOD(extack, "onramp: no socket for OR-ACKs");
	return err;
}

static void tq_onramp_leave(struct Qdisc *sch, u8 joined)
{
	if (joined)
		timely_onramp_leave(dev_net(qdisc_dev(sch)), joined - 1);
}

/* Put options into force, all of them or none. */
static int tq_apply(struct Qdisc *sch, const struct tq_options *options,
		    struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);
	u8 joined = q->joined, wanted = tq_onramp_wanted(options);
	struct timely_wheel *wheel;
	int err = tq_prepare(sch, options, &wheel, extack);

	if (err)
		return err;
	err = tq_onramp_join(sch, wanted, extack);
	if (err) {
		kvfree(wheel);
		return err;
	}

	sch_tree_lock(sch);
	q->options = *options;
	q->joined = wanted;
	tq_configure(&q->config, options);
	tq_onramp_configure(&q->waiter.onramp, options);
	sch->limit = options->value[TQ_O_limit];
	q->reserved = 1U << options->value[TQ_O_buckets_log];
	tq_add_buckets(&q->table, q->reserved);
	tq_change_waiting(q, &wheel, tq_slot_shift(options));
	tq_trim(sch, q);
	sch_tree_unlock(sch);
	kvfree(wheel);
	if (joined != wanted)
		tq_onramp_leave(sch, joined);
	/* The timer may be set for what was due before. */
	tq_wake(&q->waiter);
	return 0;
}

static int tq_change(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_options options = q->options;
	int err = tq_parse(&options, sch, opt, extack);

	return err ? : tq_apply(sch, &options, extack);
}

static int tq_init(struct Qdisc *sch, struct nlattr *opt,
		   struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);

	q->sch = sch;
	q->waiter.wake = tq_wake;
	init_llist_head(&q->waiter.changed);
	spin_lock_init(&q->reap_lock);
	INIT_DELAYED_WORK(&q->reap, tq_reap);
	qdisc_watchdog_init_clockid(&q->watchdog, sch, CLOCK_MONOTONIC);
	tq_default_options(&q->options, sch);
	if (opt)
		return tq_change(sch, opt, extack);
	return tq_apply(sch, &q->options, extack);
}

/* Called after a failed init too. */
static void tq_destroy(struct Qdisc *sch)
{
	struct tq_sched *q = qdisc_priv(sch);
	u32 i;

	cancel_delayed_work_sync(&q->reap);
	tq_reset(sch);
	tq_onramp_leave(sch, q->joined);
	q->joined = 0;
	for (i = 0; q->table.pages && i < TQ_PAGES; i++)
		kfree(q->table.pages[i]);
	kvfree(q->table.pages);
	kvfree(q->wheel);
}

/* ---- what tc shows ---- */

static int tq_put_number(struct sk_buff *skb, const struct tq_option_desc *desc,
			 u64 value)
{
	switch (desc->bits) {
	case 8:
		return nla_put_u8(skb, desc->type, value);
	case 32:
		return nla_put_u32(skb, desc->type, value);
	default:
		return nla_put_u64_64bit(skb, desc->type, value, TCA_TIMELY_PAD);
	}
}

static int tq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct nlattr *nest;
	u32 i;

	nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < TQ_O_COUNT; i++)
		if (tq_put_number(skb, &tq_option_descs[i], q->options.value[i]))
			goto cancel;
	if (nla_put(skb, TCA_TIMELY_PRIOMAP, sizeof(q->options.priomap),
		    &q->options.priomap) ||
	    nla_put(skb, TCA_TIMELY_WEIGHTS, sizeof(q->options.weights),
		    q->options.weights))
		goto cancel;
	return nla_nest_end(skb, nest);

cancel:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}

static int tq_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct tq_sched *q = qdisc_priv(sch);
	const struct timely_onramp_law *law = &q->waiter.onramp;
	struct tc_timely_stats stats;
	u64 next;
	u32 i;

	sch_tree_lock(sch);
	stats = q->stats;
	next = timely_wheel_next_ns(q->wheel);
	stats.time_next_delayed_flow =
		next == TQ_UNLIMITED ? 0 : next - timely_clock_ns();
	stats.flows = q->flows;
	stats.inactive_flows = q->inactive;
	stats.throttled_flows = q->throttled;
	stats.unthrottle_latency_ns = min_t(u64, q->unthrottle_ns, U32_MAX);
	for (i = 0; i < TIMELY_BANDS; i++)
		stats.band_pkt_count[i] = q->bands[i].packets;
	stats.buckets_log = ilog2(q->table.half);
	sch_tree_unlock(sch);
	stats.onramp_b = READ_ONCE(law->b);
	stats.onramp_signals = atomic64_read(&law->signals);
	stats.onramp_pauses = atomic64_read(&law->pauses);
	stats.onramp_paused_ns = atomic64_read(&law->paused_ns);
	for (i = 0; i < TIMELY_ONRAMP_BINS; i++)
		stats.onramp_delays[i] = atomic64_read(&law->delays[i]);

	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

static struct Qdisc_ops tq_qdisc_ops __read_mostly = {
	.id		= "timely",
	.priv_size	= sizeof(struct tq_sched),
	.enqueue	= tq_enqueue,
	.dequeue	= tq_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= tq_init,
	.reset		= tq_reset,
	.destroy	= tq_destroy,
	.change		= tq_change,
	.dump		= tq_dump,
	.dump_stats	= tq_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init tq_load(void)
{
	int err;

	BUILD_BUG_ON(offsetof(struct tq_flow, clock_ns) > 64);
	BUILD_BUG_ON(sizeof(struct tq_flow) > 128);

	tq_flow_cache = kmem_cache_create("timely_flow", sizeof(struct tq_flow), 0,
					  SLAB_HWCACHE_ALIGN, NULL);
	if (!tq_flow_cache)
		return -ENOMEM;
	err = register_qdisc(&tq_qdisc_ops);
	if (err)
		kmem_cache_destroy(tq_flow_cache);
	return err;
}

static void __exit tq_unload(void)
{
	unregister_qdisc(&tq_qdisc_ops);
	kmem_cache_destroy(tq_flow_cache);
}

module_init(tq_load);
module_exit(tq_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TIMELY's rate control engine: fq with a timing wheel and lazy rate enforcement");
MODULE_ALIAS("net-sch-timely");
