/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface to user space: options and statistics of the qdisc "timely", and two families of
 * generic netlink, "timely" and, for On-Ramp's receiver, "timely_acker".
 *
 * Comments give for each attribute: type, unit and range in parentheses, and the meaning. A flag is
 * 0 or 1. Values are in host byte order unless stated otherwise. Names and numbers of attributes
 * never change; new attributes are added at the end.
 *
 * All names are this project's, so that this header never hides one of the kernel's headers.
 */
#ifndef _UAPI_LINUX_TIMELY_H
#define _UAPI_LINUX_TIMELY_H

#include <linux/types.h>

/* Number of priority bands of the qdisc. */
#define TIMELY_BANDS		3

/* Values of TCA_TIMELY_ACK_DSCP and TCA_TIMELY_ACK_PRIORITY that leave the packet unchanged. */
#define TIMELY_DSCP_KEEP	255
#define TIMELY_PRIORITY_KEEP	255

/*
 * Options of the qdisc, in TCA_OPTIONS. Options up to TCA_TIMELY_OFFLOAD_HORIZON mean the same as
 * those of fq. Ranges and defaults are in TIMELY_QDISC_OPTIONS of <net/timely_qdisc.h>.
 *
 * A flow is a connection, or packets without a socket that have the same hash. The due time of a
 * packet is when its timestamp, its flow's rate and On-Ramp's pause all allow the packet to leave.
 * The timestamp is the earliest departure time, set by TCP, SO_TXTIME or BPF.
 */
enum {
	TCA_TIMELY_UNSPEC,
	TCA_TIMELY_LIMIT,		/* u32 (packets): maximum number queued in one band */
	TCA_TIMELY_FLOW_LIMIT,		/* u32 (packets): maximum number queued in one flow */
	TCA_TIMELY_QUANTUM,		/* u32 (bytes): credit of a flow for a round-robin slot */
	TCA_TIMELY_INITIAL_QUANTUM,	/* u32 (bytes): credit of a new flow for its first slot */
	TCA_TIMELY_PACING,		/* u32 (flag): 1: pace flows at their sockets' rates */
	TCA_TIMELY_MAXRATE,		/* u64 (bytes/s): maximum rate of flows; 2^64-1: no limit */
	TCA_TIMELY_BUCKETS_LOG,		/* u32 (log2): initial size of the flow table */
	TCA_TIMELY_REFILL_DELAY,	/* u32 (us): idle time that restores a flow's quantum */
	TCA_TIMELY_ORPHAN_MASK,		/* u32 (mask): for the hash of a packet without a socket */
	TCA_TIMELY_LOW_RATE_THRESHOLD,	/* u32 (bytes/s): up to this rate, flows wait after each */
					/* packet, and not after each quantum */
	TCA_TIMELY_CE_THRESHOLD,	/* u32 (us): lateness of departure above which CE is set */
	TCA_TIMELY_TIMER_SLACK,		/* u32 (ns): how late the timer may expire */
	TCA_TIMELY_HORIZON,		/* u32 (us): how far ahead of now a timestamp may be */
	TCA_TIMELY_HORIZON_DROP,	/* u8 (flag): 1: drop packets with a timestamp */
					/* beyond HORIZON; 0: delay these packets by HORIZON */
	TCA_TIMELY_PRIOMAP,		/* struct tc_prio_qopt: the band of each skb priority */
	TCA_TIMELY_WEIGHTS,		/* s32[3] (bytes): sent by a band before the next band */
	TCA_TIMELY_OFFLOAD_HORIZON,	/* u32 (us): packets due within this time go to the */
					/* device, which delays them by itself */

	TCA_TIMELY_SLOT,		/* u32 (ns): width of a slot of the timing wheel */
	TCA_TIMELY_LAZY,		/* u8 (flag): 1: read rates again when packets are due */
	TCA_TIMELY_SPLIT,		/* u32 (bytes): maximum of a sub-segment; 0: do not split */
	TCA_TIMELY_SPLIT_RATE,		/* u64 (bytes/s): sub-segments' rate; 0: the flow's rate */
	TCA_TIMELY_ACK_FIRST,		/* u8 (flag): 1: pure ACKs overtake packets of all flows */
	TCA_TIMELY_ACK_DSCP,		/* u8 (DSCP): of pure ACKs, or TIMELY_DSCP_KEEP */
	TCA_TIMELY_ACK_PRIORITY,	/* u8: skb priority of pure ACKs, or TIMELY_PRIORITY_KEEP */
	TCA_TIMELY_WRONG_CLOCK_DROP,	/* u8 (flag): 1: drop packets with a timestamp of */
					/* another clock; 0: send them without the timestamp */
	TCA_TIMELY_PAD,

	TCA_TIMELY_ONRAMP,		/* u32 (ns): delay above which flows are paused; 0: off */
	TCA_TIMELY_ONRAMP_GAIN,		/* u32 (1/65536): gain of the moving average of b */
	TCA_TIMELY_ONRAMP_OWD,		/* u8: which delay the threshold is for, TIMELY_OWD_* */
	TCA_TIMELY_ONRAMP_PAUSE_MAX,	/* u32 (ns): longest pause of a flow */
	TCA_TIMELY_ONRAMP_STRAWMAN,	/* u8 (flag): 1: b counts as 0 (On-Ramp paper's strawman) */
	TCA_TIMELY_ONRAMP_CLOCK_ERROR,	/* u32 (ns): added to the threshold of absolute delays */
	TCA_TIMELY_ACK_TIME,		/* u8 (flag): 1: pure ACKs get the time as IPv4 ID */
	TCA_TIMELY_ACK_THIN,		/* u8 (flag): 1: a pure ACK replaces one that waits */

	__TCA_TIMELY_MAX
};

#define TCA_TIMELY_MAX	(__TCA_TIMELY_MAX - 1)

/* The delay of a path that On-Ramp compares with its threshold. */
enum {
	TIMELY_OWD_ABSOLUTE,	/* one-way delay; needs synchronised clocks */
	TIMELY_OWD_RELATIVE,	/* one-way delay above its minimum; clocks need not agree */
	TIMELY_OWD_RTT,		/* TCP's RTT above its minimum; needs no receiver */
	__TIMELY_OWD_MAX
};

/* Histogram of On-Ramp's delays. The first bin counts delays below 2048 ns. Each further bin ends
 * at twice the delay at which the previous bin ends, and the last bin has no end.
 */
#define TIMELY_ONRAMP_BINS		16
#define TIMELY_ONRAMP_FIRST_BIN_NS	2048

/**
 * struct tc_timely_stats - statistics that `tc -s qdisc` shows, in TCA_STATS_APP
 * @gc_flows: idle flows that were freed
 * @throttled: how often flows began to wait in the timing wheel for their next packet to be due
 * @flows_plimit: packets dropped because their flow had TCA_TIMELY_FLOW_LIMIT packets
 * @pkts_too_long: packets that take a second or more at the rate of their flow; they are paced as
 *	if they took a second
 * @allocation_errors: flows that could not be allocated; their packets leave without a flow
 * @ce_mark: packets marked CE because of TCA_TIMELY_CE_THRESHOLD
 * @horizon_drops: packets dropped because their timestamp was beyond TCA_TIMELY_HORIZON
 * @horizon_caps: packets with a timestamp beyond TCA_TIMELY_HORIZON that were delayed by
 *	TCA_TIMELY_HORIZON instead
 * @fastpath_packets: packets that were not queued in a flow, because nothing delayed the packets
 * @band_drops: packets dropped because their band had TCA_TIMELY_LIMIT packets
 * @put_back: times that a packet waited again, because the rate of its flow had fallen, or a pause
 *	was extended, when the packet was due
 * @brought_forward: times that a waiting flow with a flow entry became due earlier, because its
 *	rate had risen, its pause was shortened, or a packet with an earlier timestamp came
 * @segmented: packets that were split into sub-segments
 * @segments: sub-segments of the packets counted by @segmented
 * @segment_errors: packets that could not be split and left whole
 * @acks_first: pure ACKs that overtook all packets queued in flows
 * @acks_marked: pure ACKs whose DSCP was set
 * @wrong_clock: packets with a timestamp of another clock, dropped or sent
 * @wrong_clock_drops: packets of @wrong_clock that were dropped
 * @departures: departure times that were recorded, for congestion controls or On-Ramp
 * @paused: packets that waited for the end of a pause of their flow, and not for the flow's rate or
 *	their timestamp; a packet counts once even if the pause is extended
 * @time_next_delayed_flow: ns until the next waiting flow is due; 0 if no flow waits
 * @flows: number of flows now
 * @inactive_flows: number of flows without packets
 * @throttled_flows: number of flows that wait until a packet is due
 * @unthrottle_latency_ns: moving average of how long after their due time waiting flows leave the
 *	timing wheel, ns
 * @band_pkt_count: number of packets queued in each band
 * @buckets_log: log2 of the present number of buckets of the flow table, rounded down
 * @onramp_b: moving average of b over the latest signals, in units of 1/65536. b is how much a
 *	flow's delay falls for each ns of the flow's pauses.
 * @onramp_pad: unused, 0
 * @onramp_signals: signals (OR-ACKs or RTTs) of this qdisc's flows that were compared with the
 *	threshold
 * @onramp_pauses: pauses started
 * @onramp_paused_ns: duration of all pauses, ns
 * @onramp_delays: histogram of the delays of all signals, see TIMELY_ONRAMP_BINS
 * @onramp_acks_passed: pure ACKs that overtook paused data of their own flow; ACKs counted by
 *	@fastpath_packets are not counted here
 * @shared_packets: packets in flows that several sockets share, because their network namespace has
 *	used up its budget of flows in qdiscs (max_queues)
 * @acks_timed: pure ACKs that got the time as IPv4 ID
 * @acks_thinned: pure ACKs that a later one replaced while they waited; they are not sent
 *
 * New members are added at the end only. If the kernel and the reader have different versions, the
 * reader uses the members that both have.
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
	__u64 acks_timed;
	__u64 acks_thinned;
};

/* ---- generic netlink: NICs and their clock mappings, RTT measurement, On-Ramp ---- */

#define TIMELY_GENL_NAME	"timely"
#define TIMELY_GENL_VERSION	1
/* Family of On-Ramp's receiver, module timely_acker: commands TIMELY_CMD_ACKER_* and _RULE_*. */
#define TIMELY_ACKER_GENL_NAME	"timely_acker"

/*
 * Commands. A command concerns the network namespace of the socket that sends the command. Any user
 * may send the GET commands, except FLOW_GET, CONNECTION_GET and PEER_GET. These three and all
 * other commands need CAP_NET_ADMIN in the user namespace that owns the network namespace.
 *
 * After each command: attributes of the request -> attributes of the answer.
 */
enum {
	TIMELY_CMD_UNSPEC,
	TIMELY_CMD_NIC_GET,	/* IFINDEX or IFNAME, or a dump of all NICs -> IFINDEX to PHC */
	TIMELY_CMD_NIC_SET,	/* IFINDEX or IFNAME; LINK_OVERRIDE_KBPS, NIC_USE: new values */
	TIMELY_CMD_RTT_GET,	/* -> COUNTER: counters of RTT measurement */
	TIMELY_CMD_ONRAMP_GET,	/* -> ORACK_PORT, UNAUTHENTICATED, KEY_USED, KEY, COUNTER */
	TIMELY_CMD_ONRAMP_SET,	/* UNAUTHENTICATED, KEY_USED: settings of OR-ACKs */
	TIMELY_CMD_KEY_SET,	/* KEY, KEY_SECRET: add or replace a key that verifies OR-ACKs */
	TIMELY_CMD_KEY_DEL,	/* KEY: remove a key; refused for KEY_USED */
	TIMELY_CMD_FLOW_GET,	/* dump -> SADDR to PAUSE_LEFT_NS: flows that On-Ramp knows */
	TIMELY_CMD_ACKER_GET,	/* -> ACKER_*, RULE: settings and rules of the receiver */
	TIMELY_CMD_ACKER_SET,	/* ACKER_EVERY, ACKER_RATE, ACKER_TRIMMED, ACKER_LINK_KBPS, */
				/* ACKER_TEST_* */
	TIMELY_CMD_RULE_ADD,	/* RULE_*: send OR-ACKs for matching data */
	TIMELY_CMD_RULE_DEL,	/* RULE_*: remove the rule with the same values */
	TIMELY_CMD_LIMITS_GET,	/* -> LIMIT: budgets of the namespace */
	TIMELY_CMD_CONNECTION_GET,	/* dump; ALL_NETS, CHOICE -> CONNECTION: those by timely */
	TIMELY_CMD_PEER_GET,	/* dump -> PEER: hosts that On-Ramp's flows go to */
	TIMELY_CMD_PEER_SET,	/* PEER: the offset of a peer's clock, from a clock daemon */
	TIMELY_CMD_COMMON_TIME_SET,	/* COMMON_TIME: the time that hosts agree on, likewise */

	__TIMELY_CMD_MAX
};

#define TIMELY_CMD_MAX	(__TIMELY_CMD_MAX - 1)

/* TIMELY_A_NIC_STATE: whether hardware timestamps of the NIC are used for RTTs. */
enum {
	TIMELY_NIC_UNSEEN,	/* not yet: no hardware timestamp has come since the NIC is up */
	TIMELY_NIC_LEARNING,	/* no: the clock mapping is not sure; driver timestamps are used */
	TIMELY_NIC_SURE,	/* yes */
	TIMELY_NIC_OFF,		/* no: NIC_USE is 0; driver timestamps are used */
};

enum {
	TIMELY_A_UNSPEC,

	/* A NIC with hardware timestamps. */
	TIMELY_A_IFINDEX,		/* u32 (1 and up): index of the device */
	TIMELY_A_IFNAME,		/* string: name of the device, or an alternative name */
	TIMELY_A_NIC_STATE,		/* u8: TIMELY_NIC_* */
	TIMELY_A_NIC_USE,		/* u8 (flag): 1: hardware timestamps may be used */
	TIMELY_A_LINK_KBPS,		/* u32 (kbit/s): link rate from the driver; 0: not known */
	TIMELY_A_LINK_OVERRIDE_KBPS,	/* u32 (kbit/s, 0 to 10^9): replaces LINK_KBPS unless 0 */
	/* The clock mapping: host = MAP_HOST_NS + (nic - MAP_NIC_NS) * (1 + MAP_DRIFT_Q32 / 2^32).
	 * A NIC without a hardware timestamp so far lacks these attributes, up to MAP_DRIFT_Q32.
	 */
	TIMELY_A_UNCERTAINTY_NS,	/* u32 (ns): error of the mapping now; 2^32 - 1: not sure */
	TIMELY_A_DRIFT_PPB,		/* s32 (ppb): how much faster the host's clock runs */
	TIMELY_A_MAP_NIC_NS,		/* u64 (ns): a time of the NIC's clock */
	TIMELY_A_MAP_HOST_NS,		/* u64 (ns): CLOCK_MONOTONIC at the time MAP_NIC_NS */
	TIMELY_A_MAP_DRIFT_Q32,		/* s64 (2^-32): DRIFT_PPB with full precision */
	TIMELY_A_PAIRS,			/* u64: timestamp pairs received */
	TIMELY_A_CROSS_TIMESTAMPS,		/* u64: cross-timestamps of the PTP clock used */
	TIMELY_A_STEPS,			/* u32: steps of the NIC's or the host's clock detected */
	TIMELY_A_PHC,			/* s32: index of the PTP clock, N of /dev/ptpN; -1: none */

	/* A counter of RTT measurement or of On-Ramp. */
	TIMELY_A_COUNTER,		/* nest, several: COUNTER_NAME, _VALUE, _DOC */
	TIMELY_A_COUNTER_NAME,		/* string: name, one word */
	TIMELY_A_COUNTER_VALUE,		/* u64: value of the counter */
	TIMELY_A_COUNTER_DOC,		/* string: what is counted */
	TIMELY_A_PAD,

	/* On-Ramp in a network namespace. */
	TIMELY_A_ORACK_PORT,		/* u16: UDP port that receives OR-ACKs */
	TIMELY_A_UNAUTHENTICATED,	/* u8 (flag): 1: accept OR-ACKs without a key */
	TIMELY_A_KEY,			/* u8 (1 to 255): number of a key; several in an answer */
	TIMELY_A_KEY_SECRET,		/* binary (16 bytes, not all 0): key; never in an answer */
	TIMELY_A_KEY_USED,		/* u8 (0 to 255): key that signs OR-ACKs; 0: none */

	/* A flow that On-Ramp knows. */
	TIMELY_A_SADDR,			/* binary (4 or 16 bytes): the flow's source address */
	TIMELY_A_DADDR,			/* binary (4 or 16 bytes): the flow's destination address */
	TIMELY_A_SPORT,			/* u16 (network byte order): the flow's source port */
	TIMELY_A_DPORT,			/* u16 (network byte order): the flow's destination port */
	TIMELY_A_PROTOCOL,		/* u8: IPPROTO_TCP or IPPROTO_UDP */
	TIMELY_A_DELAY_NS,		/* u64 (ns): delay of the latest signal */
	TIMELY_A_B,			/* u32 (1/65536): b: fall of the delay per ns of pause */
	TIMELY_A_SIGNALS,		/* u64: signals (OR-ACKs or RTTs) that were used */
	TIMELY_A_PAUSES,		/* u64: pauses started */
	TIMELY_A_PAUSED_NS,		/* u64 (ns): duration of all pauses */
	TIMELY_A_PAUSE_LEFT_NS,		/* u64 (ns): time until the present pause ends; 0: none */

	/* A rule of On-Ramp's receiver: for which data OR-ACKs are sent. */
	TIMELY_A_RULE,			/* nest, several in an answer: RULE_* */
	TIMELY_A_RULE_PREFIX,		/* binary (4 or 16 bytes): source addresses of the data */
	TIMELY_A_RULE_LENGTH,		/* u8 (0 to 32 or 128): bits of RULE_PREFIX that count */
	TIMELY_A_RULE_PORT_FIRST,	/* u16: lowest destination port of the data; 0: all ports */
	TIMELY_A_RULE_PORT_LAST,	/* u16: highest destination port of the data */

	/* Settings of On-Ramp's receiver. */
	TIMELY_A_ACKER_EVERY,		/* u32 (bytes, 1500 to 10^7): data of a flow per OR-ACK */
	TIMELY_A_ACKER_RATE,		/* u32 (1/s, 1 to 10^8): maximum of OR-ACKs to a peer */
	TIMELY_A_ACKER_TEST_OFFSET_NS,	/* s64 (ns, +-10^18): test: added to receiver's clock */
	TIMELY_A_ACKER_TEST_DRIFT_PPB,	/* s32 (ppb, +-10^6): test: speeds receiver's clock up */

	/* A budget: objects of one kind that a network namespace may have. */
	TIMELY_A_LIMIT,			/* nest, several: LIMIT_* */
	TIMELY_A_LIMIT_NAME,		/* string: NAME of timely's module parameter max_NAME */
	TIMELY_A_LIMIT_DOC,		/* string: which objects the budget counts */
	TIMELY_A_LIMIT_USED,		/* u32: objects that exist */
	TIMELY_A_LIMIT_MAX,		/* u32: objects that may exist */
	TIMELY_A_LIMIT_REFUSED,		/* u64: objects not created because of the budget */

	TIMELY_A_ACKER_RULES_MAX,	/* u32: maximum number of RULEs of a network namespace */

	TIMELY_A_CONNECTION,		/* struct timely_connection */
	TIMELY_A_ALL_NETS,		/* u8 (flag): 1: connections of all network namespaces; */
					/* needs CAP_NET_ADMIN in the initial user namespace */
	TIMELY_A_CHOICE,		/* struct timely_choice */
	TIMELY_A_PEER,			/* struct timely_peer_clock */
	TIMELY_A_COMMON_TIME,		/* struct timely_common_time */

	TIMELY_A_ACKER_TRIMMED,		/* u32 (DSCP, 0 to 63): of trimmed packets, each of which */
					/* gets an OR-ACK; 0: none does */
	TIMELY_A_ACKER_LINK_KBPS,	/* u32 (kbit/s, 1000 to 8*10^8): rate of the receiver's */
					/* link, for the turns of trimmed packets */

	__TIMELY_A_MAX
};

#define TIMELY_A_MAX	(__TIMELY_A_MAX - 1)

/* What reduces a connection's rate at once: index of timely_connection.cuts. */
enum {
	TIMELY_CUT_LOSS,	/* more packets were lost than loss_free_ppm allows */
	TIMELY_CUT_TIMEOUT,	/* the retransmission timer expired; a loss may count, too */
	TIMELY_CUT_ECN,		/* a router has marked a packet: ECN echo */
	TIMELY_CUT_QUEUE,	/* an RTT was above t_high_ns; each such RTT counts */
	TIMELY_CUTS
};

/* Why an ACK gave no RTT: index of timely_connection.rejected. The counters of RTT_GET with these
 * names have descriptions.
 */
enum {
	TIMELY_REJECTED_RETRANSMITTED,
	TIMELY_REJECTED_RECOVERY,
	TIMELY_REJECTED_DELAYED,
	TIMELY_REJECTED_DOUBTFUL,
	TIMELY_REJECTED_NEGATIVE,
	TIMELY_REJECTED_TOO_LONG,
	TIMELY_REJECTIONS
};

/* Which timestamp the last RTT of a connection ended with: timely_connection.source. */
enum {
	TIMELY_SOURCE_HARDWARE,	/* hardware timestamp of the NIC */
	TIMELY_SOURCE_DRIVER,	/* driver timestamp */
	TIMELY_SOURCE_TCP,	/* none: the RTT ended when TCP processed the ACK */
};

/* What a connection does at present: bits of timely_connection.state. */
#define TIMELY_STATE_STARTING	(1 << 0)	/* the first 128 KB of a message */
#define TIMELY_STATE_SENDING	(1 << 1)	/* counts as a sender: it has data to send */
#define TIMELY_STATE_RECOVERY	(1 << 2)	/* TCP repairs losses */
#define TIMELY_STATE_PROBE	(1 << 3)	/* sends less, so that the base RTT can be seen */
#define TIMELY_STATE_LAG	(1 << 4)	/* new rates do not apply to queued packets: */
						/* the qdisc is not timely */
#define TIMELY_STATE_APART	(1 << 5)	/* base-RTT probes of the hosts do not coincide */
#define TIMELY_STATE_MINIMUM	(1 << 6)	/* the rate is the minimum rate */
#define TIMELY_STATE_ACK_WAIT	(1 << 7)	/* RTTs do not include the wait of ACKs */

/**
 * struct timely_connection - a connection that uses a congestion control of tcp_timely
 * @net_cookie: cookie of the connection's network namespace
 * @cgroup: identifier of the socket's control group; 0 if not known
 * @rate_Bps: rate that the congestion control has computed, bytes/s
 * @pacing_Bps: rate at which the connection may send now, bytes/s: lower than @rate_Bps in a
 *	base-RTT probe, and with SO_MAX_PACING_RATE
 * @rtt_age_ns: time since the rate was last computed, ns; 2^64-1 for never
 * @pauses: pauses by On-Ramp
 * @paused_ns: duration of these pauses, ns
 * @pause_left_ns: time until the present pause ends, ns; 0: none
 * @saddr: local address; an IPv4 address has the first 4 bytes
 * @daddr: remote address, likewise
 * @family: AF_INET or AF_INET6
 * @sport: local port, network byte order
 * @dport: remote port, network byte order
 * @source: timestamp that the last RTT ended with, TIMELY_SOURCE_*
 * @state: what the connection does at present, TIMELY_STATE_*
 * @rtt_ns: last RTT, ns; 0: none so far
 * @base_rtt_ns: base RTT in use, ns
 * @target_ns: target delay: queueing delay at which the rate stays as it is, ns; 0: the rule has
 *	none
 * @t_high_ns: RTT above which the rate is reduced at once, ns
 * @link_kbps: link rate, kbit/s; 0 if not known
 * @cuts: how often there was a cause to reduce the rate at once, by TIMELY_CUT_*
 * @rejected: ACKs that gave no RTT, by TIMELY_REJECTED_*
 * @control: name of the congestion control
 * @ack_wait_ns: how long the last ACK has waited on its way back, ns, which @rtt_ns does not
 *	include; 0 if not known, see TIMELY_STATE_ACK_WAIT
 *
 * New members are added at the end only. If the kernel and the reader have different versions, the
 * reader uses the members that both have.
 */
struct timely_connection {
	__u64 net_cookie;
	__u64 cgroup;
	__u64 rate_Bps;
	__u64 pacing_Bps;
	__u64 rtt_age_ns;
	__u64 pauses;
	__u64 paused_ns;
	__u64 pause_left_ns;
	__u8 saddr[16];
	__u8 daddr[16];
	__u16 family;
	__be16 sport;
	__be16 dport;
	__u8 source;
	__u8 state;
	__u32 rtt_ns;
	__u32 base_rtt_ns;
	__u32 target_ns;
	__u32 t_high_ns;
	__u32 link_kbps;
	__u32 cuts[TIMELY_CUTS];
	__u32 rejected[TIMELY_REJECTIONS];
	char control[16];
	__u32 ack_wait_ns;
};

/**
 * struct timely_choice - which connections a request lists: those that match all members
 * @cgroup: identifier of the socket's control group, or of one above that; 0: any
 * @saddr: local address, of which the first @slen bits count; an IPv4 address has the first 4 bytes
 * @daddr: remote address, of which the first @dlen bits count, likewise
 * @family: AF_INET or AF_INET6; 0: any, then @slen and @dlen are 0
 * @port: local or remote port, network byte order; 0: any
 * @slen: see @saddr
 * @dlen: see @daddr
 * @reserved: 0
 */
struct timely_choice {
	__u64 cgroup;
	__u8 saddr[16];
	__u8 daddr[16];
	__u16 family;
	__be16 port;
	__u8 slen;
	__u8 dlen;
	__u16 reserved;
};

/**
 * struct timely_peer_clock - a host that On-Ramp's flows go to, and the offset of the host's clock
 * @address: the peer's address; an IPv4 address has the first 4 bytes
 * @family: AF_INET or AF_INET6
 * @reserved: 0
 * @valid_ms: how long after @at_ns the offset may be used, ms, 0 to 100000; 0: there is no offset
 * @offset_ns: the peer's CLOCK_REALTIME minus this host's CLOCK_MONOTONIC at @at_ns, ns
 * @at_ns: time of @offset_ns by this host's CLOCK_MONOTONIC, ns; not in the future
 * @drift_ppb: growth of @offset_ns, ns per second, -10^6 to 10^6
 * @bound_ns: largest error of @offset_ns at @at_ns, ns, 0 to 10^9
 * @growth_ppb: growth of @bound_ns, ns per second, 0 to 10^6
 * @flows: number of flows to the peer; in a request 0
 * @delay_ns: delay of the last signal of any flow to the peer, ns; in a request 0
 *
 * PEER_SET sets valid_ms to growth_ppb. Offsets in ns since 1970 fit 64 bits until the year 2262.
 */
struct timely_peer_clock {
	__u8 address[16];
	__u16 family;
	__u16 reserved;
	__u32 valid_ms;
	__s64 offset_ns;
	__u64 at_ns;
	__s32 drift_ppb;
	__u32 bound_ns;
	__u32 growth_ppb;
	__u32 flows;
	__u64 delay_ns;
};

/**
 * struct timely_common_time - the time that this host and others agree on
 * @offset_ns: the common time minus this host's CLOCK_MONOTONIC at @at_ns, ns
 * @at_ns: time of @offset_ns by CLOCK_MONOTONIC, ns; not in the future
 * @valid_ms: how long after @at_ns the common time may be used, ms, 0 to 100000; 0: there is none
 * @drift_ppb: growth of @offset_ns, ns per second, -10^6 to 10^6
 * @bound_ns: largest error of @offset_ns at @at_ns, ns, 0 to 10^9
 * @growth_ppb: growth of @bound_ns, ns per second, 0 to 10^6
 */
struct timely_common_time {
	__s64 offset_ns;
	__u64 at_ns;
	__u32 valid_ms;
	__s32 drift_ppb;
	__u32 bound_ns;
	__u32 growth_ppb;
};

#endif /* _UAPI_LINUX_TIMELY_H */
