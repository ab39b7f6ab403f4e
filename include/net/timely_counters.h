/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What became of ACKs, counted for each network namespace by each CPU for itself.
 */
#ifndef _NET_TIMELY_COUNTERS_H
#define _NET_TIMELY_COUNTERS_H

#include <linux/percpu.h>

#include <timely/engine/rtt.h>

struct timely_rtt_counters {
	unsigned long count[TIMELY_RTT_COUNTER_COUNT];
};

extern const char * const timely_rtt_counter_names[TIMELY_RTT_COUNTER_COUNT];
extern const char * const timely_rtt_counter_docs[TIMELY_RTT_COUNTER_COUNT];

struct net;

struct timely_rtt_counters __percpu *timely_rtt_counters_of(const struct net *net);
u64 timely_rtt_counter(const struct net *net, enum timely_rtt_result index);

#endif /* _NET_TIMELY_COUNTERS_H */
