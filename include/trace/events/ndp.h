/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of NDP, in /sys/kernel/tracing/events/ndp:
 *
 *	ndp_sent	a packet of a connection, before it is given to the network
 *	ndp_received	a packet of the peer
 *	ndp_returned	an own DATA packet that a switch has returned
 *	ndp_repair	the sender has taken packets for lost
 *	ndp_path_out	a path is left out for a while
 *
 * net is the cookie of the connection's network namespace; src and dest are the local and the
 * remote address and port of the connection, also for received packets. Filters select connections
 * by the fields net_cookie, sport and dport, and packets by the field type, TIMELY_NDP_*.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ndp

#if !defined(_TRACE_NDP_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_NDP_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/tracepoint.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include <timely/engine/ndp_paths.h>
#include <timely/engine/ndp_sender.h>
#include <timely/engine/ndp_wire.h>

#ifndef _TRACE_NDP_END
#define _TRACE_NDP_END
/* Store an address, IPv4 addresses mapped, and a port as perf and the kernel print them, in the
 * form of a struct sockaddr.
 */
static inline void ndp_trace_end(u8 *to, const struct in6_addr *addr, __be16 port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*v6));
	v6->sin6_port = port;
	if (ipv6_addr_v4mapped(addr)) {
		v4->sin_family = AF_INET;
		v4->sin_addr.s_addr = addr->s6_addr32[3];
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_addr = *addr;
	}
}
#endif

/* Names of the types, for the format files of the events, see TIMELY_TRACE_NAME(). */
TRACE_DEFINE_ENUM(TIMELY_NDP_DATA);
TRACE_DEFINE_ENUM(TIMELY_NDP_ACK);
TRACE_DEFINE_ENUM(TIMELY_NDP_NACK);
TRACE_DEFINE_ENUM(TIMELY_NDP_PULL);
TRACE_DEFINE_ENUM(TIMELY_NDP_PROBE);
TRACE_DEFINE_ENUM(TIMELY_NDP_RESET);
TRACE_DEFINE_ENUM(TIMELY_NDP_COOKIE);

/* The fields of each event that say which connection it is, and their values. */
#define NDP_TRACE_CONNECTION					\
		__field(u64, net_cookie)			\
		__array(u8, saddr, sizeof(struct sockaddr_in6))	\
		__array(u8, daddr, sizeof(struct sockaddr_in6))	\
		__field(u16, sport)				\
		__field(u16, dport)

#define NDP_TRACE_ASSIGN(net, key)						\
	do {									\
		__entry->net_cookie = (net)->net_cookie;			\
		ndp_trace_end(__entry->saddr, &(key)->local, (key)->local_port);	\
		ndp_trace_end(__entry->daddr, &(key)->peer, (key)->peer_port);	\
		__entry->sport = ntohs((key)->local_port);			\
		__entry->dport = ntohs((key)->peer_port);			\
	} while (0)

/*
 * ndp_sent, ndp_received, ndp_returned: a packet of a connection.
 *
 *	type		DATA, ACK, NACK, PULL, PROBE, RESET or COOKIE
 *	seq		DATA: number of the packet; ACK, NACK: number of the answered packet
 *	credits		DATA, PROBE: credits that the sender of the packet has used; ACK, NACK,
 *			PULL: credits that it has granted, so the difference between two packets is
 *			the number of pulls
 *	path		DATA: number of the path; ACK, NACK: path of the answered packet
 *	tries		DATA: earlier transmissions; ACK, NACK: those of the answered packet
 *	length		DATA: bytes of payload before trimming
 *	flags		TIMELY_NDP_SYN and others
 *	trimmed		1: DATA of which only the header has arrived; NACK: the reason is trimming
 */
DECLARE_EVENT_CLASS(ndp_packet,
		    TP_PROTO(const struct net *net, const struct ndp_key *key,
			     const struct timely_ndp_header *header, bool cut),

		    TP_ARGS(net, key, header, cut),

	TP_STRUCT__entry(NDP_TRACE_CONNECTION
		__field(u32, seq)
		__field(u32, credits)
		__field(u16, path)
		__field(u16, length)
		__field(u16, flags)
		__field(u8, type)
		__field(u8, tries)
		__field(bool, trimmed)
	),

	TP_fast_assign(NDP_TRACE_ASSIGN(net, key);
		__entry->seq = header->seq;
		__entry->credits = header->credits;
		__entry->path = header->path;
		__entry->length = header->length;
		__entry->flags = header->flags;
		__entry->type = header->type;
		__entry->tries = header->tries;
		__entry->trimmed = cut || header->flags & TIMELY_NDP_TRIMMED;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc type=%s seq=%u credits=%u path=%u tries=%u length=%u flags=0x%x trimmed=%u",
		  __entry->net_cookie, __entry->saddr, __entry->daddr,
		  __print_symbolic(__entry->type,
				   { TIMELY_NDP_DATA, "DATA" }, { TIMELY_NDP_ACK, "ACK" },
				   { TIMELY_NDP_NACK, "NACK" }, { TIMELY_NDP_PULL, "PULL" },
				   { TIMELY_NDP_PROBE, "PROBE" }, { TIMELY_NDP_RESET, "RESET" },
				   { TIMELY_NDP_COOKIE, "COOKIE" }),
		  __entry->seq, __entry->credits, __entry->path, __entry->tries, __entry->length,
		  __entry->flags, __entry->trimmed)
);

DEFINE_EVENT(ndp_packet, ndp_sent,
	     TP_PROTO(const struct net *net, const struct ndp_key *key,
		      const struct timely_ndp_header *header, bool cut),
	     TP_ARGS(net, key, header, cut));

DEFINE_EVENT(ndp_packet, ndp_received,
	     TP_PROTO(const struct net *net, const struct ndp_key *key,
		      const struct timely_ndp_header *header, bool cut),
	     TP_ARGS(net, key, header, cut));

DEFINE_EVENT(ndp_packet, ndp_returned,
	     TP_PROTO(const struct net *net, const struct ndp_key *key,
		      const struct timely_ndp_header *header, bool cut),
	     TP_ARGS(net, key, header, cut));

/*
 * ndp_repair: the sender has taken packets for lost; they are sent again.
 *
 *	lost		number of these packets
 *	by_gap		how many of them were found by a gap in the answers
 *	timeouts	1: a timeout has found lost packets
 *	una		number of the first packet that has not arrived
 *	backoff		timeouts since the last progress
 */
TRACE_EVENT(ndp_repair,
	    TP_PROTO(const struct net *net, const struct ndp_key *key,
		     const struct timely_ndp_sender *sender,
		     const struct timely_ndp_sender_stats *before),

	    TP_ARGS(net, key, sender, before),

	TP_STRUCT__entry(NDP_TRACE_CONNECTION
		__field(u32, lost)
		__field(u32, by_gap)
		__field(u32, timeouts)
		__field(u32, una)
		__field(u8, backoff)
	),

	TP_fast_assign(NDP_TRACE_ASSIGN(net, key);
		__entry->lost = sender->stats.lost - before->lost;
		__entry->by_gap = sender->stats.gaps - before->gaps;
		__entry->timeouts = sender->stats.timeouts - before->timeouts;
		__entry->una = sender->una;
		__entry->backoff = sender->backoff;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc lost=%u by_gap=%u timeouts=%u una=%u backoff=%u",
		  __entry->net_cookie, __entry->saddr, __entry->daddr, __entry->lost,
		  __entry->by_gap, __entry->timeouts, __entry->una, __entry->backoff)
);

/*
 * ndp_path_out: a path is left out for a while.
 *
 *	path		number of the path
 *	udp_port	UDP source port that selects the path
 *	acks, nacks, losses	scoreboard of the path
 *	strikes		how often the path was left out lately
 *	left_ns		for how long, ns
 */
TRACE_EVENT(ndp_path_out,
	    TP_PROTO(const struct net *net, const struct ndp_key *key,
		     const struct timely_ndp_path *path, u32 number, __be16 udp_port, u64 now_ns),

	    TP_ARGS(net, key, path, number, udp_port, now_ns),

	TP_STRUCT__entry(NDP_TRACE_CONNECTION
		__field(u64, left_ns)
		__field(u32, path)
		__field(u16, udp_port)
		__field(u16, acks)
		__field(u16, nacks)
		__field(u16, losses)
		__field(u8, strikes)
	),

	TP_fast_assign(NDP_TRACE_ASSIGN(net, key);
		__entry->left_ns = path->out_until_ns - now_ns;
		__entry->path = number;
		__entry->udp_port = ntohs(udp_port);
		__entry->acks = path->acks;
		__entry->nacks = path->nacks;
		__entry->losses = path->losses;
		__entry->strikes = path->strikes;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc path=%u udp_port=%u acks=%u nacks=%u losses=%u strikes=%u left_ns=%llu",
		  __entry->net_cookie, __entry->saddr, __entry->daddr, __entry->path,
		  __entry->udp_port, __entry->acks, __entry->nacks, __entry->losses,
		  __entry->strikes, __entry->left_ns)
);

#endif /* _TRACE_NDP_H */

#include <trace/define_trace.h>
