/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace event of On-Ramp, in /sys/kernel/tracing/events/timely:
 *
 *	timely_pause	a flow's pause after a signal has set or changed it
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

#include <net/timely_flow.h>
#include <timely/engine/pause.h>

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
 *	src, dest	local and remote address and port
 *	delay_ns	the delay that the signal showed, ns; what it is of depends on the qdisc's
 *			option owd
 *	threshold_ns	delays above this pause the flow, ns: the qdisc's option onramp, plus
 *			clock_error with owd absolute
 *	pause_ns	the pause that is left, ns; 0 if the signal has ended the pause
 *	begun		1: the flow was not paused before
 */
TRACE_EVENT(timely_pause,
	    TP_PROTO(const struct timely_tuple *tuple, const struct timely_pause_signal *signal,
		     u64 threshold_ns, u64 until_ns, bool begun),

	    TP_ARGS(tuple, signal, threshold_ns, until_ns, begun),

	TP_STRUCT__entry(__field(u64, delay_ns)
		__field(u64, threshold_ns)
		__field(u64, pause_ns)
		__array(u8, saddr, sizeof(struct sockaddr_in6))
		__array(u8, daddr, sizeof(struct sockaddr_in6))
		__field(u16, sport)
		__field(u16, dport)
		__field(bool, begun)
	),

	TP_fast_assign(__entry->delay_ns = signal->delay_ns;
		__entry->threshold_ns = threshold_ns;
		__entry->pause_ns = until_ns > signal->now_ns ? until_ns - signal->now_ns : 0;
		timely_trace_address(__entry->saddr, tuple->family, tuple->saddr, tuple->sport);
		timely_trace_address(__entry->daddr, tuple->family, tuple->daddr, tuple->dport);
		__entry->sport = ntohs(tuple->sport);
		__entry->dport = ntohs(tuple->dport);
		__entry->begun = begun;
	),

	TP_printk("src=%pISpc dest=%pISpc delay_ns=%llu threshold_ns=%llu pause_ns=%llu begun=%u",
		  __entry->saddr, __entry->daddr, __entry->delay_ns, __entry->threshold_ns,
		  __entry->pause_ns, __entry->begun)
);

#endif /* _TRACE_TIMELY_ONRAMP_H */

#include <trace/define_trace.h>
