/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RTT counters: how many ACKs gave an RTT, and why the other ACKs gave none. Each network
 * namespace has one set of RTT counters for each CPU, see net/timely/tenant.c. TIMELY_RTT_COUNTERS
 * in net/timely/engine/rtt.h is the list of all RTT counters; their names and descriptions are in
 * net/timely/counters.c.
 */
#ifndef _NET_TIMELY_COUNTERS_H
#define _NET_TIMELY_COUNTERS_H

#include <linux/percpu.h>

#include <timely/engine/rtt.h>

/**
 * struct timely_rtt_counters - the RTT counters of one network namespace on one CPU
 * @count: the counts, by enum timely_rtt_result
 */
struct timely_rtt_counters {
	unsigned long count[TIMELY_RTT_COUNTER_COUNT];
};

extern const char * const timely_rtt_counter_names[TIMELY_RTT_COUNTER_COUNT];
extern const char * const timely_rtt_counter_docs[TIMELY_RTT_COUNTER_COUNT];

struct net;

struct timely_rtt_counters __percpu *timely_rtt_counters_of(const struct net *net);
u64 timely_rtt_counter(const struct net *net, enum timely_rtt_result index);

#endif /* _NET_TIMELY_COUNTERS_H */
