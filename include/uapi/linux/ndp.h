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

/* ---- generic netlink: what `timelyctl ndp` shows ---- */

#define NDP_GENL_NAME		"ndp"
#define NDP_GENL_VERSION	1

/*
 * Commands. A command concerns the network namespace of the socket that sends the command. Any user
 * may send them, as any user may list TCP's sockets. No answer has what an attacker needs to forge
 * packets: the random number of a connection, packet numbers or cookies.
 */
enum {
	NDP_CMD_UNSPEC,
	NDP_CMD_SOCKET_GET,	/* dump -> SOCKET, PATHS: listeners and connections */
	NDP_CMD_QUEUE_GET,	/* dump -> QUEUE: pull queues */
	NDP_CMD_COUNTER_GET,	/* -> COUNTER, MEMORY, MAX_MEMORY */
};

enum {
	NDP_A_UNSPEC,
	NDP_A_SOCKET,		/* struct ndp_socket */
	NDP_A_PATHS,		/* array of struct ndp_path; connections only */
	NDP_A_QUEUE,		/* struct ndp_pull_queue */
	NDP_A_COUNTER,		/* nest, several: TIMELY_A_COUNTER_* of <linux/timely.h> */
	NDP_A_MEMORY,		/* u64 (bytes): memory of connections and their data */
	NDP_A_MAX_MEMORY,	/* u64 (bytes): limit of MEMORY */
	NDP_A_PAD,

	__NDP_A_MAX
};

#define NDP_A_MAX	(__NDP_A_MAX - 1)

/**
 * struct ndp_socket - a listener or a connection; later versions may add members at the end
 * @saddr: local address; an IPv4 address has the first 4 bytes
 * @daddr: remote address, likewise; of a listener 0
 * @family: AF_INET or AF_INET6
 * @sport: local port, network byte order
 * @dport: remote port, network byte order; of a listener 0
 * @initiator: 1 if this host has opened the connection, else 0
 * @reserved: 0
 * @uid: user that has created the socket, as the reader's user namespace knows this user
 * @ifindex: interface of the pull queue that the connection uses; 0: none
 * @wanted: pulls that the connection waits for in the pull queue
 * @window: packets that are sent without a pull
 * @pull_gap_ns: smoothed time between two credits of the peer, ns; 0: not known
 * @rmem: memory of received data that the program has not read, bytes; of a listener: connections
 *	that wait to be accepted
 * @wmem: memory of written data that has not arrived, bytes; of a listener: most connections that
 *	may wait
 * @inode: inode of the socket, as in /proc/PID/fd; 0: no program has the socket open
 * @info: as NDP_INFO; of a listener only the state
 */
struct ndp_socket {
	__u8 saddr[16];
	__u8 daddr[16];
	__u16 family;
	__be16 sport;
	__be16 dport;
	__u8 initiator;
	__u8 reserved;
	__u32 uid;
	__u32 ifindex;
	__u32 wanted;
	__u32 window;
	__u64 pull_gap_ns;
	__u64 rmem;
	__u64 wmem;
	__u64 inode;
	struct ndp_info info;
};

/**
 * struct ndp_path - the scoreboard of a path; counts are halved from time to time
 * @left_out_ns: how long the path is still left out, ns; 0: the path is in use
 * @sport: UDP source port that selects the path, network byte order
 * @acks: recent ACKs of packets on this path
 * @nacks: recent NACKs and returned packets
 * @losses: recent lost packets
 * @strikes: how often the path was left out lately
 * @reserved: 0
 */
struct ndp_path {
	__u64 left_out_ns;
	__be16 sport;
	__u16 acks;
	__u16 nacks;
	__u16 losses;
	__u32 strikes;
	__u32 reserved;
};

/**
 * struct ndp_pull_queue - the pull queue of an interface; later versions may add members at the end
 * @pulls: packets that pulls have asked for
 * @ifindex: index of the interface
 * @kbps: link rate that the pulls ask for, kbit/s
 * @flows: connections that wait for a pull
 * @reserved: 0
 */
struct ndp_pull_queue {
	__u64 pulls;
	__u32 ifindex;
	__u32 kbps;
	__u32 flows;
	__u32 reserved;
};

#endif /* _UAPI_LINUX_NDP_H */
