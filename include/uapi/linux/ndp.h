/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of NDP sockets (module ndp) to programs. See ndp(7).
 *
 *	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_NDP);
 */
#ifndef _UAPI_LINUX_NDP_H
#define _UAPI_LINUX_NDP_H

#include <linux/types.h>

/*
 * The protocol number for socket(). The kernel accepts numbers up to 262 (MPTCP). 256 is SMC, and
 * the free numbers next to these two are the most likely ones to be assigned next; so NDP uses 259.
 * The number never appears in packets, which are those of UDP.
 */
#define IPPROTO_NDP	259

/* The level of NDP's own socket options: the letters N and D, as packets begin with. */
#define SOL_NDP		0x4e44

/* Options of the level SOL_NDP. */
#define NDP_INFO	1	/* getsockopt(): struct ndp_info */

/* Bits of struct ndp_info.flags. */
#define NDP_INFO_ANSWERED	0x1	/* the peer has answered */
#define NDP_INFO_GRACEFUL	0x2	/* packets were lost and no switch trimmed any: */
					/* gaps and timeouts find lost packets */

/**
 * struct ndp_info - the state of a connection; later versions may add members at the end
 * @state: state of the socket, as TCP's (TCP_ESTABLISHED ...)
 * @flags: NDP_INFO_*
 * @payload: bytes of data in a full packet, for packets sent from now on
 * @rtt_us: smoothed round-trip time, us; 0: not known
 * @unacked: packets that were sent or wait to be sent, and have not arrived
 * @credits: packets that may be sent without another pull
 * @room: packets that the peer has room for, beyond those that have arrived
 * @pull_kbps: link rate that this host's pulls ask for, kbit/s; 0: the host has not pulled
 * @sent: DATA packets that were sent, with retransmissions
 * @nacked: retransmissions because a switch had trimmed the packet, or the peer had no room
 * @returned: packets that a switch returned
 * @lost: packets taken for lost
 * @timeouts: timeouts that found a lost packet
 * @pulled: credits that the peer has granted
 * @received: DATA packets that have arrived
 * @repeated: DATA packets that arrived more than once
 * @trimmed: DATA packets that arrived without their payload
 * @damaged: DATA packets whose payload was damaged, or for which there was no memory
 * @no_room: DATA packets that arrived although this socket had no room
 * @pulls: credits that this socket has granted
 */
struct ndp_info {
	__u32 state;
	__u32 flags;
	__u32 payload;
	__u32 rtt_us;
	__u32 unacked;
	__u32 credits;
	__u32 room;
	__u32 pull_kbps;
	__u64 sent;
	__u64 nacked;
	__u64 returned;
	__u64 lost;
	__u64 timeouts;
	__u64 pulled;
	__u64 received;
	__u64 repeated;
	__u64 trimmed;
	__u64 damaged;
	__u64 no_room;
	__u64 pulls;
};

#endif /* _UAPI_LINUX_NDP_H */
