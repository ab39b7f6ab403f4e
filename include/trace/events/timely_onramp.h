/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of On-Ramp, in /sys/kernel/tracing/events/timely:
 *
 *	timely_pause		a flow's pause after a signal has set or changed it
 *	timely_orack_refused	an OR-ACK that was not used, and the reason
 *
 * net is the cookie of the network namespace. Filters select flows by the fields net_cookie, sport
 * and dport.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM timely
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE timely_onramp

#if !defined(_TRACE_TIMELY_ONRAMP_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TIMELY_ONRAMP_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/tracepoint.h>

#include <net/net_namespace.h>
#include <net/timely_flow.h>
#include <net/timely_onramp.h>
#include <timely/engine/pause.h>

/* The names of the reasons, for the format file, as in timely.h. */
#define TIMELY_TRACE_DEFINE_ONRAMP(name, doc)	TRACE_DEFINE_ENUM(TIMELY_ONRAMP_##name);
#define TIMELY_TRACE_NAME_ONRAMP(name, doc)	{ TIMELY_ONRAMP_##name, #name },

TIMELY_ONRAMP_COUNTERS(TIMELY_TRACE_DEFINE_ONRAMP)
TRACE_DEFINE_ENUM(TIMELY_ONRAMP_COUNTER_COUNT);

#ifndef _TRACE_TIMELY_ADDRESS
#define _TRACE_TIMELY_ADDRESS
/* Store an address and port of a flow as perf and the kernel print them, in the form of a
 * struct sockaddr.
 */
static inline void timely_trace_address(u8 *to, u8 family, const __be32 *address, __be16 port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*v6));
	v6->sin6_family = family;
	v6->sin6_port = port;
	if (family == AF_INET6)
		memcpy(&v6->sin6_addr, address, sizeof(v6->sin6_addr));
	else
		v4->sin_addr.s_addr = address[0];
}
#endif

/*
 * timely_pause: a signal of On-Ramp has set or changed the pause of a flow.
 *
 *	net		cookie of the connection's network namespace
 *	src, dest	local and remote address and port
 *	delay_ns	the delay that the signal showed, ns; what it is of depends on the qdisc's
 *			option owd
 *	threshold_ns	delays above this pause the flow, ns: the qdisc's option onramp, plus
 *			clock_error with owd absolute
 *	pause_ns	the pause that is left, ns; 0 if the signal has ended the pause
 *	begun		1: the flow was not paused before
 */
TRACE_EVENT(timely_pause,
	    TP_PROTO(const struct timely_onramp *onramp, const struct timely_pause_signal *signal,
		     u64 threshold_ns, bool begun),

	    TP_ARGS(onramp, signal, threshold_ns, begun),

	TP_STRUCT__entry(__field(u64, net_cookie)
		__field(u64, delay_ns)
		__field(u64, threshold_ns)
		__field(u64, pause_ns)
		__array(u8, saddr, sizeof(struct sockaddr_in6))
		__array(u8, daddr, sizeof(struct sockaddr_in6))
		__field(u16, sport)
		__field(u16, dport)
		__field(bool, begun)
	),

	TP_fast_assign(__entry->net_cookie = onramp->net_cookie;
		__entry->delay_ns = signal->delay_ns;
		__entry->threshold_ns = threshold_ns;
		__entry->pause_ns = onramp->pause.until_ns > signal->now_ns ?
				    onramp->pause.until_ns - signal->now_ns : 0;
		timely_trace_address(__entry->saddr, onramp->tuple.family, onramp->tuple.saddr,
				     onramp->tuple.sport);
		timely_trace_address(__entry->daddr, onramp->tuple.family, onramp->tuple.daddr,
				     onramp->tuple.dport);
		__entry->sport = ntohs(onramp->tuple.sport);
		__entry->dport = ntohs(onramp->tuple.dport);
		__entry->begun = begun;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc delay_ns=%llu threshold_ns=%llu pause_ns=%llu begun=%u",
		  __entry->net_cookie, __entry->saddr, __entry->daddr, __entry->delay_ns,
		  __entry->threshold_ns, __entry->pause_ns, __entry->begun)
);

/*
 * timely_orack_refused: an OR-ACK arrived, and had no effect on a flow. Packets that are no OR-ACKs
 * name no flow, and are only counted (malformed).
 *
 *	net		cookie of the network namespace
 *	src, dest	local and remote address and port of the flow that the OR-ACK names; a
 *			forged one may name any flow
 *	reason		the counter of TIMELY_ONRAMP_COUNTERS in include/net/timely_onramp.h
 */
TRACE_EVENT(timely_orack_refused,
	    TP_PROTO(const struct net *net, const struct timely_tuple *tuple, u8 reason),

	    TP_ARGS(net, tuple, reason),

	TP_STRUCT__entry(__field(u64, net_cookie)
		__array(u8, saddr, sizeof(struct sockaddr_in6))
		__array(u8, daddr, sizeof(struct sockaddr_in6))
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, reason)
	),

	TP_fast_assign(__entry->net_cookie = net->net_cookie;
		timely_trace_address(__entry->saddr, tuple->family, tuple->saddr, tuple->sport);
		timely_trace_address(__entry->daddr, tuple->family, tuple->daddr, tuple->dport);
		__entry->sport = ntohs(tuple->sport);
		__entry->dport = ntohs(tuple->dport);
		__entry->reason = reason;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc reason=%s",
		  __entry->net_cookie, __entry->saddr, __entry->daddr,
		  __print_symbolic(__entry->reason,
				   TIMELY_ONRAMP_COUNTERS(TIMELY_TRACE_NAME_ONRAMP)
				   { TIMELY_ONRAMP_COUNTER_COUNT, "none" }))
);

#endif /* _TRACE_TIMELY_ONRAMP_H */

#include <trace/define_trace.h>
