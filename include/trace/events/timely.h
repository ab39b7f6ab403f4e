/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of tcp_timely, in /sys/kernel/tracing/events/timely:
 *
 *	timely_rtt	an ACK, and the RTT measured with it or the reason why there is none
 *	timely_computed	the parameters of a connection after they were computed for its path
 *	timely_rate_set	the rate of a connection after something other than an RTT has set it
 *	timely_probe	a base-RTT probe of a connection's path begins
 *
 * The events of On-Ramp are in timely_onramp.h.
 *
 * Points in time are by CLOCK_MONOTONIC, ns, unless stated otherwise; 0 means not known. net is the
 * cookie of the connection's network namespace; src and dest are the local and the remote address
 * and port. Filters select connections by the fields net_cookie, sport and dport.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM timely

#if !defined(_TRACE_TIMELY_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TIMELY_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include <trace/events/net_probe_common.h>

#include <timely/engine/params.h>
#include <timely/engine/rtt.h>
#include <uapi/linux/timely.h>

/* The names of the results of ACKs, for the format file of the event timely_rtt: perf and
 * trace-cmd, which read events in binary form, translate numbers to names with the format file.
 * Pointers to strings would be of no use to such programs, and the kernel's check of events may
 * refuse such pointers.
 */
#define TIMELY_TRACE_DEFINE(name, doc)	TRACE_DEFINE_ENUM(TIMELY_RTT_##name);
#define TIMELY_TRACE_NAME(name, doc)	{ TIMELY_RTT_##name, #name },

TIMELY_RTT_COUNTERS(TIMELY_TRACE_DEFINE)
TRACE_DEFINE_ENUM(TIMELY_RTT_COUNTER_COUNT);
TRACE_DEFINE_ENUM(TIMELY_CUT_LOSS);
TRACE_DEFINE_ENUM(TIMELY_CUT_TIMEOUT);
TRACE_DEFINE_ENUM(TIMELY_CUT_ECN);
TRACE_DEFINE_ENUM(TIMELY_CUTS);

/* The fields of each event that say which connection it is, and their values for the socket @sk. */
#define TIMELY_TRACE_CONNECTION					\
		__field(u64, net_cookie)			\
		__array(u8, saddr, sizeof(struct sockaddr_in6))	\
		__array(u8, daddr, sizeof(struct sockaddr_in6))	\
		__field(u16, sport)				\
		__field(u16, dport)

#define TIMELY_TRACE_ASSIGN(sk)						\
	do {								\
		__entry->net_cookie = sock_net(sk)->net_cookie;		\
		memset(__entry->saddr, 0, sizeof(struct sockaddr_in6));	\
		memset(__entry->daddr, 0, sizeof(struct sockaddr_in6));	\
		TP_STORE_ADDR_PORTS(__entry, inet_sk(sk), sk);		\
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);	\
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);	\
	} while (0)

/*
 * timely_rtt: TCP has processed an ACK of a connection that had data in flight.
 *
 *	end_seq		end of the newest data that this ACK is the first to acknowledge or SACK
 *	una		all data before this sequence number are acknowledged
 *	bytes		size of the pacing segment that ends at end_seq, bytes: the recorded size
 *			with headers if sent_ns is known, else the largest size without headers
 *	now_ns		when TCP processed the ACK
 *	arrived_ns	when the ACK arrived, by a hardware or driver timestamp
 *	sent_ns		when the qdisc handed the pacing segment to the device
 *	unsure_ns	0 if sent_ns was recorded; if it is an estimate, the pacing segment
 *			departed at most this time earlier, ns
 *	scheduled_ns	departure time of the pacing segment that TCP computed
 *	hw_timestamp_ns	hardware timestamp of the ACK, ns of the NIC's clock
 *	result		"hardware", "driver" or "tcp": which time of arrival the RTT ends with; or
 *			why there is no RTT: TIMELY_RTT_COUNTERS of net/timely/engine/rtt.h
 *	rtt_ns		the RTT, ns; 0 also if the ACK gave no RTT
 *	rate_Bps	rate of the connection after this ACK, bytes/s
 */
TRACE_EVENT(timely_rtt,
	    TP_PROTO(const struct sock *sk, const struct timely_ack *ack,
		     u64 hw_timestamp_ns, enum timely_rtt_result result, u32 rtt_ns,
		     u64 rate_Bps),

	    TP_ARGS(sk, ack, hw_timestamp_ns, result, rtt_ns, rate_Bps),

	TP_STRUCT__entry(__field(u64, now_ns)
		__field(u64, arrived_ns)
		__field(u64, sent_ns)
		__field(u64, scheduled_ns)
		__field(u64, hw_timestamp_ns)
		__field(u64, rate_Bps)
		TIMELY_TRACE_CONNECTION
		__field(u32, unsure_ns)
		__field(u32, end_seq)
		__field(u32, una)
		__field(u32, segment_bytes)
		__field(u32, rtt_ns)
		__field(u8, result)
	),

	TP_fast_assign(__entry->now_ns = ack->now_ns;
		__entry->arrived_ns = ack->arrived_ns;
		__entry->sent_ns = ack->sent_ns;
		__entry->scheduled_ns = ack->scheduled_ns;
		__entry->hw_timestamp_ns = hw_timestamp_ns;
		__entry->rate_Bps = rate_Bps;
		TIMELY_TRACE_ASSIGN(sk);
		__entry->unsure_ns = ack->unsure_ns;
		__entry->end_seq = ack->end_seq;
		__entry->una = ack->una;
		__entry->segment_bytes = ack->segment_bytes;
		__entry->rtt_ns = rtt_ns;
		__entry->result = result;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc end_seq=%u una=%u bytes=%u now_ns=%llu arrived_ns=%llu sent_ns=%llu unsure_ns=%u scheduled_ns=%llu hw_timestamp_ns=%llu result=%s rtt_ns=%u rate_Bps=%llu",
		  __entry->net_cookie, __entry->saddr, __entry->daddr,
		  __entry->end_seq, __entry->una, __entry->segment_bytes,
		  __entry->now_ns, __entry->arrived_ns, __entry->sent_ns,
		  __entry->unsure_ns, __entry->scheduled_ns, __entry->hw_timestamp_ns,
		  __print_symbolic(__entry->result, TIMELY_RTT_COUNTERS(TIMELY_TRACE_NAME)
				   { TIMELY_RTT_COUNTER_COUNT, "none" }),
		  __entry->rtt_ns, __entry->rate_Bps)
);

/*
 * timely_computed: values were computed for the parameters of a connection that are "auto", because
 * the connection is new or its path has changed. The event shows the other parameters as set.
 *
 *	min_rtt_ns		base RTT, ns; 20000 if not known
 *	ack_aggregation_ns	mean of what ACK aggregation adds to RTTs, ns
 *	link_rate_kbps		link rate, kbit/s, for the serialization time of segments, which is
 *				subtracted from RTTs; 0: not known
 *	max_rate_kbps, segment_bytes, rtt_ref_ns, rtt_ref_1g_ns, t_high_ns
 *				the parameters of these names, in the unit of the name
 *	rates_lag		enum timely_rate_lag: 0: new rates apply to packets that are already
 *				queued; 1: they do not; 2: they do not, and the qdisc is fq
 *	probes_apart		1: base-RTT probes of the hosts do not coincide, because the hosts'
 *				real-time clocks differ
 */
TRACE_EVENT(timely_computed,
	    TP_PROTO(const struct sock *sk, const struct timely_params *params, u8 rates_lag,
		     bool probes_apart),

	    TP_ARGS(sk, params, rates_lag, probes_apart),

	TP_STRUCT__entry(TIMELY_TRACE_CONNECTION
		__field(u32, min_rtt_ns)
		__field(u32, ack_aggregation_ns)
		__field(u32, link_rate_kbps)
		__field(u32, max_rate_kbps)
		__field(u32, segment_bytes)
		__field(u32, rtt_ref_ns)
		__field(u32, rtt_ref_1g_ns)
		__field(u32, t_high_ns)
		__field(u8, rates_lag)
		__field(bool, probes_apart)
	),

	TP_fast_assign(TIMELY_TRACE_ASSIGN(sk);
		__entry->min_rtt_ns = params->min_rtt_ns;
		__entry->ack_aggregation_ns = params->ack_aggregation_ns;
		__entry->link_rate_kbps = params->link_rate_kbps;
		__entry->max_rate_kbps = params->max_rate_kbps;
		__entry->segment_bytes = params->segment_bytes;
		__entry->rtt_ref_ns = params->rtt_ref_ns;
		__entry->rtt_ref_1g_ns = params->rtt_ref_1g_ns;
		__entry->t_high_ns = params->t_high_ns;
		__entry->rates_lag = rates_lag;
		__entry->probes_apart = probes_apart;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc min_rtt_ns=%u ack_aggregation_ns=%u link_rate_kbps=%u max_rate_kbps=%u segment_bytes=%u rtt_ref_ns=%u rtt_ref_1g_ns=%u t_high_ns=%u rates_lag=%u probes_apart=%u",
		  __entry->net_cookie, __entry->saddr, __entry->daddr,
		  __entry->min_rtt_ns, __entry->ack_aggregation_ns,
		  __entry->link_rate_kbps, __entry->max_rate_kbps,
		  __entry->segment_bytes, __entry->rtt_ref_ns,
		  __entry->rtt_ref_1g_ns, __entry->t_high_ns,
		  __entry->rates_lag, __entry->probes_apart)
);

/* The causes of timely_rate_set: TIMELY_CUT_*, and those that reduce no rate. */
#define TIMELY_SET_START	TIMELY_CUTS
#define TIMELY_SET_UNDONE	(TIMELY_CUTS + 1)

/*
 * timely_rate_set: something other than an RTT has set the rate of a connection.
 *
 *	cause		"loss", "timeout" or "ecn": the rate was reduced, see TIMELY_CUT_* of
 *			include/uapi/linux/timely.h; "start": a message starts, the first of the
 *			connection or after an idle time; "undone": TCP found that nothing was lost
 *	rate_Bps	the rate, bytes/s
 *	cwnd		TCP's congestion window before this cause changed it, packets
 */
TRACE_EVENT(timely_rate_set,
	    TP_PROTO(const struct sock *sk, u64 rate_Bps, u8 cause),

	    TP_ARGS(sk, rate_Bps, cause),

	TP_STRUCT__entry(TIMELY_TRACE_CONNECTION
		__field(u64, rate_Bps)
		__field(u32, cwnd)
		__field(u8, cause)
	),

	TP_fast_assign(TIMELY_TRACE_ASSIGN(sk);
		__entry->rate_Bps = rate_Bps;
		__entry->cwnd = tcp_snd_cwnd(tcp_sk(sk));
		__entry->cause = cause;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc cause=%s rate_Bps=%llu cwnd=%u",
		  __entry->net_cookie, __entry->saddr, __entry->daddr,
		  __print_symbolic(__entry->cause,
				   { TIMELY_CUT_LOSS, "loss" },
				   { TIMELY_CUT_TIMEOUT, "timeout" },
				   { TIMELY_CUT_ECN, "ecn" },
				   { TIMELY_SET_START, "start" },
				   { TIMELY_SET_UNDONE, "undone" }),
		  __entry->rate_Bps, __entry->cwnd)
);

/*
 * timely_probe: a base-RTT probe begins, at an ACK of this connection. Other connections of the
 * path take part in the same probe without an event.
 *
 *	clock_offset_ns	the clock that probes start by minus CLOCK_MONOTONIC, ns
 *	common		1: that clock is the common time of timely-clockd; 0: the real-time clock
 *	cwnd		TCP's congestion window, packets
 */
TRACE_EVENT(timely_probe,
	    TP_PROTO(const struct sock *sk, s64 clock_offset_ns, bool common),

	    TP_ARGS(sk, clock_offset_ns, common),

	TP_STRUCT__entry(TIMELY_TRACE_CONNECTION
		__field(s64, clock_offset_ns)
		__field(u32, cwnd)
		__field(bool, common)
	),

	TP_fast_assign(TIMELY_TRACE_ASSIGN(sk);
		__entry->clock_offset_ns = clock_offset_ns;
		__entry->cwnd = tcp_snd_cwnd(tcp_sk(sk));
		__entry->common = common;
	),

	TP_printk("net=%llu src=%pISpc dest=%pISpc clock_offset_ns=%lld common=%u cwnd=%u",
		  __entry->net_cookie, __entry->saddr, __entry->daddr,
		  __entry->clock_offset_ns, __entry->common, __entry->cwnd)
);

#endif /* _TRACE_TIMELY_H */

#include <trace/define_trace.h>
