/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What crosses into user space: the options and statistics of the qdisc
 * "timely", and the generic netlink family "timely".
 *
 * The names are our own, so that this header never shadows one of the kernel's.
 */
#ifndef _UAPI_LINUX_TIMELY_H
#define _UAPI_LINUX_TIMELY_H

#include <linux/types.h>

#define TIMELY_BANDS		3

/* The leave-as-it-is values of TCA_TIMELY_ACK_DSCP and _ACK_PRIORITY. */
#define TIMELY_DSCP_KEEP	255
#define TIMELY_PRIORITY_KEEP	255

/* Options in TCA_OPTIONS. The first seventeen mean what they mean to fq; ranges
 * and defaults are in TIMELY_QDISC_OPTIONS of <net/timely_qdisc.h>.
 */
enum {
	TCA_TIMELY_UNSPEC,
	TCA_TIMELY_LIMIT,		/* u32: packets in a band */
	TCA_TIMELY_FLOW_LIMIT,		/* u32: packets of a flow */
	TCA_TIMELY_QUANTUM,		/* u32: bytes a flow sends in a turn */
	TCA_TIMELY_INITIAL_QUANTUM,	/* u32: bytes a new flow sends at once */
	TCA_TIMELY_PACING,		/* u32: 1 if rates are enforced */
	TCA_TIMELY_MAXRATE,		/* u64: of a flow, bytes/s; all ones: none */
	TCA_TIMELY_BUCKETS_LOG,		/* u32: log2 of the flow table's first size */
	TCA_TIMELY_REFILL_DELAY,	/* u32: us of idleness that refill credit */
	TCA_TIMELY_ORPHAN_MASK,		/* u32: of the hash of packets without socket */
	TCA_TIMELY_LOW_RATE_THRESHOLD,	/* u32: bytes/s; below, no bursts at all */
	TCA_TIMELY_CE_THRESHOLD,	/* u32: us of sojourn from where ECN marks */
	TCA_TIMELY_TIMER_SLACK,		/* u32: ns the timer may be late */
	TCA_TIMELY_HORIZON,		/* u32: us a stamp may lie ahead */
	TCA_TIMELY_HORIZON_DROP,	/* u8: 1 drop what lies beyond, 0 cap it */
	TCA_TIMELY_PRIOMAP,		/* struct tc_prio_qopt: priority to band */
	TCA_TIMELY_WEIGHTS,		/* s32[3]: bytes of a band in a round */
	TCA_TIMELY_OFFLOAD_HORIZON,	/* u32: us the device paces by itself */

	TCA_TIMELY_SLOT,		/* u32: ns of a slot of the wheel */
	TCA_TIMELY_LAZY,		/* u8: 1 if rates are read again when due */
	TCA_TIMELY_SEGMENT,		/* u32: bytes of a burst; 0: as they come */
	TCA_TIMELY_SEGMENT_RATE,	/* u64: bytes/s inside a burst; 0: the flow's */
	TCA_TIMELY_ACK_FIRST,		/* u8: 1 if pure ACKs jump the queue */
	TCA_TIMELY_ACK_DSCP,		/* u8: DSCP of pure ACKs; 255: as it is */
	TCA_TIMELY_ACK_PRIORITY,	/* u8: skb priority of pure ACKs; 255: as it is */
	TCA_TIMELY_WRONG_CLOCK_DROP,	/* u8: 1 drop what another clock stamped */
	TCA_TIMELY_PAD,

	TCA_TIMELY_ONRAMP,		/* u32: ns of delay from where flows are held; 0: never */
	TCA_TIMELY_ONRAMP_GAIN,		/* u32: of the average of b, in 65536ths */
	TCA_TIMELY_ONRAMP_OWD,		/* u8: TIMELY_OWD_*: what delay is */
	TCA_TIMELY_ONRAMP_PAUSE_MAX,	/* u32: ns a flow is held at most */
	TCA_TIMELY_ONRAMP_STRAWMAN,	/* u8: 1 if pauses under way do not count */
	TCA_TIMELY_ONRAMP_CLOCK_ERROR,	/* u32: ns added to the threshold */

	__TCA_TIMELY_MAX
};

#define TCA_TIMELY_MAX	(__TCA_TIMELY_MAX - 1)

/* What On-Ramp takes for the delay of a path. */
enum {
	TIMELY_OWD_ABSOLUTE,	/* receiver's less sender's time, of clocks in step */
	TIMELY_OWD_RELATIVE,	/* what exceeds the least of it, clocks as they are */
	TIMELY_OWD_RTT,		/* what TCP's RTT exceeds its least by: no receiver */
	__TIMELY_OWD_MAX
};

/* Delays are counted in bins: below 2 us, 4 us, ... 16 ms, 32 ms, and above. */
#define TIMELY_ONRAMP_BINS		16
#define TIMELY_ONRAMP_FIRST_BIN_NS	2048

/**
 * struct tc_timely_stats - what `tc -s qdisc` shows, in TCA_STATS_APP
 * @gc_flows: idle flows forgotten
 * @throttled: times a flow had to wait for its time
 * @flows_plimit: packets dropped at flow_limit
 * @pkts_too_long: packets whose time at the flow's rate exceeds a second
 * @allocation_errors: flows or records there was no memory for
 * @ce_mark: packets marked at ce_threshold
 * @horizon_drops: packets dropped beyond the horizon
 * @horizon_caps: packets moved to the horizon
 * @fastpath_packets: packets that needed no flow
 * @band_drops: packets dropped at limit
 * @put_back: packets whose rate had fallen when their time came
 * @brought_forward: waiting flows whose rate rose
 * @segmented: packets split into paced pieces
 * @segments: the pieces
 * @segment_errors: packets that could not be split and left whole
 * @acks_first: pure ACKs that jumped the queue
 * @acks_marked: pure ACKs given another DSCP
 * @wrong_clock: packets stamped by another clock, sent or dropped
 * @wrong_clock_drops: those of them that were dropped
 * @departures: departures recorded for congestion controls
 * @paused: times a flow waited for its pause, not for its rate
 * @time_next_delayed_flow: ns until the next flow's time
 * @flows: flows known
 * @inactive_flows: those without packets
 * @throttled_flows: those waiting for their time
 * @unthrottle_latency_ns: average lateness of the timer, ns
 * @band_pkt_count: packets queued in each band
 * @buckets_log: log2 of the flow table's present size
 * @onramp_b: average of b over the signals of late, in 65536ths
 * @onramp_pad: 0
 * @onramp_signals: OR-ACKs, or RTTs, that flows of this qdisc were judged by
 * @onramp_pauses: holds begun
 * @onramp_paused_ns: what all holds add up to
 * @onramp_delays: the signals by their delay, see TIMELY_ONRAMP_BINS
 * @onramp_acks_passed: pure ACKs that passed data of their flow which was held, but
 *	for those that needed no flow
 * @shared_packets: packets of flows that share a queue, as the network namespace has as
 *	many queues as it may
 *
 * It grows at its end only: a reader takes what both sides know.
 */
struct tc_timely_stats {
	__u64 gc_flows;
	__u64 throttled;
	__u64 flows_plimit;
	__u64 pkts_too_long;
	__u64 allocation_errors;
	__u64 ce_mark;
	__u64 horizon_drops;
	__u64 horizon_caps;
	__u64 fastpath_packets;
	__u64 band_drops[TIMELY_BANDS];
	__u64 put_back;
	__u64 brought_forward;
	__u64 segmented;
	__u64 segments;
	__u64 segment_errors;
	__u64 acks_first;
	__u64 acks_marked;
	__u64 wrong_clock;
	__u64 wrong_clock_drops;
	__u64 departures;
	__u64 paused;
	__s64 time_next_delayed_flow;
	__u32 flows;
	__u32 inactive_flows;
	__u32 throttled_flows;
	__u32 unthrottle_latency_ns;
	__u32 band_pkt_count[TIMELY_BANDS];
	__u32 buckets_log;
	__u32 onramp_b;
	__u32 onramp_pad;
	__u64 onramp_signals;
	__u64 onramp_pauses;
	__u64 onramp_paused_ns;
	__u64 onramp_delays[TIMELY_ONRAMP_BINS];
	__u64 onramp_acks_passed;
	__u64 shared_packets;
};

/* ---- generic netlink: NICs and their clocks, RTT measurement, On-Ramp ---- */

#define TIMELY_GENL_NAME	"timely"
#define TIMELY_GENL_VERSION	1
/* The receiver's own family, of the module timely_acker: ACKER_* and RULE_*. */
#define TIMELY_ACKER_GENL_NAME	"timely_acker"

/* Requests. Anyone may get; to set takes CAP_NET_ADMIN in the device's network
 * namespace.
 */
enum {
	TIMELY_CMD_UNSPEC,
	TIMELY_CMD_NIC_GET,	/* one by IFINDEX or IFNAME, or dump: all known here */
	TIMELY_CMD_NIC_SET,	/* IFINDEX or IFNAME; LINE_OVERRIDE_KBPS, NIC_USE */
	TIMELY_CMD_RTT_GET,	/* counters of RTT measurement in this namespace */
	TIMELY_CMD_ONRAMP_GET,	/* On-Ramp in this namespace: settings, keys, counters */
	TIMELY_CMD_ONRAMP_SET,	/* UNAUTHENTICATED, KEY_USED */
	TIMELY_CMD_KEY_SET,	/* KEY, KEY_SECRET: a key to verify OR-ACKs with */
	TIMELY_CMD_KEY_DEL,	/* KEY: not the one that is used */
	TIMELY_CMD_FLOW_GET,	/* dump: flows of this namespace that On-Ramp knows */
	TIMELY_CMD_ACKER_GET,	/* the receiver in this namespace: settings, rules */
	TIMELY_CMD_ACKER_SET,	/* ACKER_EVERY, ACKER_RATE, ACKER_TEST_* */
	TIMELY_CMD_RULE_ADD,	/* RULE_*: data that OR-ACKs are sent for */
	TIMELY_CMD_RULE_DEL,	/* the same */
	TIMELY_CMD_LIMITS_GET,	/* what this namespace may cost: LIMIT */

	__TIMELY_CMD_MAX
};

#define TIMELY_CMD_MAX	(__TIMELY_CMD_MAX - 1)

/* What hardware stamps of a NIC are used for, TIMELY_A_NIC_STATE. */
enum {
	TIMELY_NIC_UNSEEN,	/* no ACK with a hardware stamp came through it */
	TIMELY_NIC_LEARNING,	/* its clock's line is not sure: software stamps */
	TIMELY_NIC_SURE,	/* hardware RTTs are in use */
	TIMELY_NIC_OFF,		/* NIC_USE is 0: software stamps */
};

enum {
	TIMELY_A_UNSPEC,
	TIMELY_A_IFINDEX,		/* u32 */
	TIMELY_A_IFNAME,		/* string */
	TIMELY_A_NIC_STATE,		/* u8: TIMELY_NIC_* */
	TIMELY_A_NIC_USE,		/* u8: 1 if hardware stamps may be used */
	TIMELY_A_LINE_KBPS,		/* u32: line rate of the link, 0: not known */
	TIMELY_A_LINE_OVERRIDE_KBPS,	/* u32: counts instead, 0: none */
	TIMELY_A_UNCERTAINTY_NS,	/* u32: of a time on the line, now */
	TIMELY_A_DRIFT_PPB,		/* s32: how much faster the host's clock runs */
	TIMELY_A_LINE_NIC_NS,		/* u64: a point of the line, NIC's clock */
	TIMELY_A_LINE_HOST_NS,		/* u64: and CLOCK_MONOTONIC */
	TIMELY_A_LINE_DRIFT_Q32,	/* s64: host ns for a NIC's ns, less one, Q32 */
	TIMELY_A_PAIRS,			/* u64: pairs of stamps seen in traffic */
	TIMELY_A_BRACKETS,		/* u64: times the PTP clock was read */
	TIMELY_A_STEPS,			/* u32: steps of either clock noticed */
	TIMELY_A_PHC,			/* s32: index of the PTP clock, -1: none */
	TIMELY_A_COUNTER,		/* nest, several: COUNTER_NAME, _VALUE, _DOC */
	TIMELY_A_COUNTER_NAME,		/* string */
	TIMELY_A_COUNTER_VALUE,		/* u64 */
	TIMELY_A_COUNTER_DOC,		/* string: what it counts */
	TIMELY_A_PAD,

	TIMELY_A_ORACK_PORT,		/* u16: UDP port of OR-ACKs */
	TIMELY_A_UNAUTHENTICATED,	/* u8: 1 if OR-ACKs without a key count */
	TIMELY_A_KEY,			/* u8: 1 to 255; several in an answer */
	TIMELY_A_KEY_SECRET,		/* 16 bytes; never in an answer */
	TIMELY_A_KEY_USED,		/* u8: key that OR-ACKs are made with, 0 for none */
	TIMELY_A_SADDR,			/* 4 or 16 bytes: of a flow's data */
	TIMELY_A_DADDR,			/* likewise */
	TIMELY_A_SPORT,			/* u16, network byte order */
	TIMELY_A_DPORT,			/* likewise */
	TIMELY_A_PROTOCOL,		/* u8: IPPROTO_TCP, _UDP */
	TIMELY_A_DELAY_NS,		/* u64: as the last signal told */
	TIMELY_A_B,			/* u32: in 65536ths */
	TIMELY_A_SIGNALS,		/* u64: OR-ACKs or RTTs that counted */
	TIMELY_A_PAUSES,		/* u64: holds begun */
	TIMELY_A_PAUSED_NS,		/* u64: what they add up to */
	TIMELY_A_PAUSE_LEFT_NS,		/* u64: of a hold at present */
	TIMELY_A_RULE,			/* nest, several in an answer: RULE_* */
	TIMELY_A_RULE_PREFIX,		/* 4 or 16 bytes: source addresses of the data */
	TIMELY_A_RULE_LENGTH,		/* u8: bits of the prefix that count */
	TIMELY_A_RULE_PORT_FIRST,	/* u16: local ports, host byte order; 0: all */
	TIMELY_A_RULE_PORT_LAST,	/* u16 */
	TIMELY_A_ACKER_EVERY,		/* u32: bytes of a flow for each OR-ACK */
	TIMELY_A_ACKER_RATE,		/* u32: OR-ACKs a second to each peer */
	TIMELY_A_ACKER_TEST_OFFSET_NS,	/* s64: pretend a clock that is ahead by this */
	TIMELY_A_ACKER_TEST_DRIFT_PPB,	/* s32: and goes faster by this */
	TIMELY_A_LIMIT,			/* nest, several: LIMIT_* */
	TIMELY_A_LIMIT_NAME,		/* string: the parameter max_NAME of module timely */
	TIMELY_A_LIMIT_DOC,		/* string: which objects are counted */
	TIMELY_A_LIMIT_USED,		/* u32: objects of this namespace that exist */
	TIMELY_A_LIMIT_MAX,		/* u32: objects that may exist */
	TIMELY_A_LIMIT_REFUSED,		/* u64: times an object was not made: the limit */
	TIMELY_A_ACKER_RULES_MAX,	/* u32: rules that a namespace may have */

	__TIMELY_A_MAX
};

#define TIMELY_A_MAX	(__TIMELY_A_MAX - 1)

#endif /* _UAPI_LINUX_TIMELY_H */
