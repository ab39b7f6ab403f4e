/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of TIMELY: /sys/kernel/tracing/events/timely.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM timely

#if !defined(_TRACE_TIMELY_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TIMELY_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>

#include <timely/engine/params.h>
#include <timely/engine/rtt.h>

/* The names of results are part of the event: programs that read events in binary form know
 * them then, and no kernel doubts a string that lies in another module.
 */
#define TIMELY_TRACE_DEFINE(name, doc)	TRACE_DEFINE_ENUM(TIMELY_RTT_##name);
#define TIMELY_TRACE_NAME(name, doc)	{ TIMELY_RTT_##name, #name },

TIMELY_RTT_COUNTERS(TIMELY_TRACE_DEFINE)
TRACE_DEFINE_ENUM(TIMELY_RTT_COUNTER_COUNT);

/* An ACK was measured: each that confirms something, with what became of it. */
TRACE_EVENT(timely_rtt,
	    TP_PROTO(const struct sock *sk, const struct timely_ack *ack,
		     u64 stamp_ns, enum timely_rtt_result result, u32 rtt_ns,
		     u64 rate_Bps),

	    TP_ARGS(sk, ack, stamp_ns, result, rtt_ns, rate_Bps),

	TP_STRUCT__entry(__field(u64, now_ns)
		__field(u64, arrived_ns)
		__field(u64, sent_ns)
		__field(u64, scheduled_ns)
		__field(u64, stamp_ns)
		__field(u64, rate_Bps)
		__field(u64, net_cookie)
		__field(u32, end_seq)
		__field(u32, una)
		__field(u32, segment_bytes)
		__field(u32, rtt_ns)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, result)
	),

	TP_fast_assign(__entry->now_ns = ack->now_ns;
		__entry->arrived_ns = ack->arrived_ns;
		__entry->sent_ns = ack->sent_ns;
		__entry->scheduled_ns = ack->scheduled_ns;
		__entry->stamp_ns = stamp_ns;
		__entry->rate_Bps = rate_Bps;
		__entry->net_cookie = sock_net(sk)->net_cookie;
		__entry->end_seq = ack->end_seq;
		__entry->una = ack->una;
		__entry->segment_bytes = ack->segment_bytes;
		__entry->rtt_ns = rtt_ns;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->result = result;
	),

	TP_printk("net=%llu sport=%u dport=%u end_seq=%u una=%u bytes=%u now_ns=%llu arrived_ns=%llu sent_ns=%llu scheduled_ns=%llu stamp_ns=%llu result=%s rtt_ns=%u rate_Bps=%llu",
		  __entry->net_cookie, __entry->sport, __entry->dport,
		  __entry->end_seq, __entry->una, __entry->segment_bytes,
		  __entry->now_ns, __entry->arrived_ns, __entry->sent_ns,
		  __entry->scheduled_ns, __entry->stamp_ns,
		  __print_symbolic(__entry->result, TIMELY_RTT_COUNTERS(TIMELY_TRACE_NAME)
				   { TIMELY_RTT_COUNTER_COUNT, "none" }),
		  __entry->rtt_ns, __entry->rate_Bps)
);

/* What was not given was derived, for a new connection or as its path is another: the base RTT,
 * what receivers add to it, the line, the qdisc, whether hosts' drains do not coincide.
 */
TRACE_EVENT(timely_derived,
	    TP_PROTO(const struct sock *sk, const struct timely_params *params, u8 late,
		     bool apart),

	    TP_ARGS(sk, params, late, apart),

	TP_STRUCT__entry(__field(u64, net_cookie)
		__field(u32, min_rtt_ns)
		__field(u32, rtt_noise_ns)
		__field(u32, line_rate_kbps)
		__field(u32, max_rate_kbps)
		__field(u32, segment_bytes)
		__field(u32, rtt_ref_ns)
		__field(u32, rtt_ref_1g_ns)
		__field(u32, t_high_ns)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, late)
		__field(bool, apart)
	),

	TP_fast_assign(__entry->net_cookie = sock_net(sk)->net_cookie;
		__entry->min_rtt_ns = params->min_rtt_ns;
		__entry->rtt_noise_ns = params->rtt_noise_ns;
		__entry->line_rate_kbps = params->line_rate_kbps;
		__entry->max_rate_kbps = params->max_rate_kbps;
		__entry->segment_bytes = params->segment_bytes;
		__entry->rtt_ref_ns = params->rtt_ref_ns;
		__entry->rtt_ref_1g_ns = params->rtt_ref_1g_ns;
		__entry->t_high_ns = params->t_high_ns;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->late = late;
		__entry->apart = apart;
	),

	TP_printk("net=%llu sport=%u dport=%u min_rtt_ns=%u rtt_noise_ns=%u line_rate_kbps=%u max_rate_kbps=%u segment_bytes=%u rtt_ref_ns=%u rtt_ref_1g_ns=%u t_high_ns=%u late=%u apart=%u",
		  __entry->net_cookie, __entry->sport, __entry->dport,
		  __entry->min_rtt_ns, __entry->rtt_noise_ns,
		  __entry->line_rate_kbps, __entry->max_rate_kbps,
		  __entry->segment_bytes, __entry->rtt_ref_ns,
		  __entry->rtt_ref_1g_ns, __entry->t_high_ns, __entry->late, __entry->apart)
);

#endif /* _TRACE_TIMELY_H */

#include <trace/define_trace.h>
