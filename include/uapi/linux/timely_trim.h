/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface to user space of the qdisc "trim": options and statistics.
 *
 * Comments give for each attribute: type, unit and range in parentheses, and the meaning. A flag is
 * 0 or 1. Values are in host byte order. Names and numbers of attributes never change; new
 * attributes and new members of struct tc_trim_stats are added at the end.
 */
#ifndef _UAPI_LINUX_TIMELY_TRIM_H
#define _UAPI_LINUX_TIMELY_TRIM_H

#include <linux/types.h>

/*
 * Options of the qdisc, in TCA_OPTIONS. Ranges and defaults are in TIMELY_TRIM_OPTIONS of
 * <net/timely_trim.h>. Lengths include the link header.
 */
enum {
	TCA_TRIM_UNSPEC,
	TCA_TRIM_LIMIT,			/* u32 (packets): maximum length of the data queue */
	TCA_TRIM_HEADER_LIMIT,		/* u32 (bytes): maximum length of the header queue; in a */
					/* request 0: as many bytes as TCA_TRIM_LIMIT packets of */
					/* the device's MTU have */
	TCA_TRIM_SIZE,			/* u32 (bytes): length of a trimmed packet */
	TCA_TRIM_DSCP,			/* u8 (DSCP): of trimmed packets */
	TCA_TRIM_TRIMMABLE,		/* u64 (mask): bit N: packets of DSCP N may be trimmed */
	TCA_TRIM_CONTROL,		/* u64 (mask): bit N: packets of DSCP N enter the header */
					/* queue untrimmed, as those with TCA_TRIM_DSCP do */
	TCA_TRIM_RATIO,			/* u32 (packets): sent from the header queue for each */
					/* packet from the data queue while both have packets */
	TCA_TRIM_VICTIM,		/* u8: which packet is trimmed, TIMELY_TRIM_* */
	TCA_TRIM_RETURN,		/* u8 (flag): 1: send a trimmed packet back to its sender */
					/* if the header queue is full */
	TCA_TRIM_PAD,

	__TCA_TRIM_MAX
};

#define TCA_TRIM_MAX	(__TCA_TRIM_MAX - 1)

/* Which packet is trimmed when a packet arrives at a full data queue. */
enum {
	TIMELY_TRIM_RANDOM,	/* the arrival or the last packet of the queue, each with 1/2 */
	TIMELY_TRIM_ARRIVAL,	/* the arrival */
	TIMELY_TRIM_TAIL,	/* the last packet of the queue; the arrival takes its place */
	__TIMELY_TRIM_VICTIM_MAX
};

/**
 * struct tc_trim_stats - statistics that `tc -s qdisc` shows, in TCA_STATS_APP
 * @trim_packets: packets that were trimmed (SAI: TRIM_PACKETS)
 * @tx_trim_packets: trimmed packets that left (SAI: TX_TRIM_PACKETS)
 * @dropped_trim_packets: trimmed packets dropped because the header queue was full (SAI:
 *	DROPPED_TRIM_PACKETS)
 * @trim_bytes: bytes that trimming removed
 * @trim_tail: packets of @trim_packets that were the last packet of the data queue
 * @returned: trimmed packets sent back to their sender because the header queue was full
 * @return_failed: packets to return that the device's receive path did not accept
 * @control: packets that entered the header queue because of their DSCP
 * @short_packets: packets that entered the header queue whole, because the data queue was full and
 *	they were not longer than a trimmed packet
 * @dropped_control: packets of the kinds @control and @short_packets that were dropped, because the
 *	header queue was full
 * @dropped_dscp: packets dropped because the data queue was full and TCA_TRIM_TRIMMABLE does not
 *	include their DSCP
 * @dropped_not_ip: as @dropped_dscp, because they were neither IPv4 nor IPv6
 * @dropped_fragment: as @dropped_dscp, because they were fragments
 * @dropped_ipsec: as @dropped_dscp, because they were ESP or AH
 * @dropped_headers: as @dropped_dscp, because their headers were invalid or longer than a trimmed
 *	packet
 * @dropped_memory: packets dropped because there was no memory to trim or to segment them
 * @segmented: GSO packets that were segmented
 * @segments: packets that the GSO packets of @segmented became
 * @data_packets: length of the data queue now, packets
 * @header_packets: length of the header queue now, packets
 * @data_bytes: length of the data queue now, bytes
 * @header_bytes: length of the header queue now, bytes
 */
struct tc_trim_stats {
	__u64 trim_packets;
	__u64 tx_trim_packets;
	__u64 dropped_trim_packets;
	__u64 trim_bytes;
	__u64 trim_tail;
	__u64 returned;
	__u64 return_failed;
	__u64 control;
	__u64 short_packets;
	__u64 dropped_control;
	__u64 dropped_dscp;
	__u64 dropped_not_ip;
	__u64 dropped_fragment;
	__u64 dropped_ipsec;
	__u64 dropped_headers;
	__u64 dropped_memory;
	__u64 segmented;
	__u64 segments;
	__u32 data_packets;
	__u32 header_packets;
	__u64 data_bytes;
	__u64 header_bytes;
};

#endif /* _UAPI_LINUX_TIMELY_TRIM_H */
