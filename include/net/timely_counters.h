/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What became of ACKs, counted over all flows by each CPU for itself.
 */
#ifndef _NET_TIMELY_COUNTERS_H
#define _NET_TIMELY_COUNTERS_H

#include <linux/percpu.h>

#include <net/timely_rtt.h>

struct timely_rtt_counters {
	unsigned long count[TIMELY_RTT_COUNTER_COUNT];
};

DECLARE_PER_CPU(struct timely_rtt_counters, timely_rtt_counters);

extern const char * const timely_rtt_counter_names[TIMELY_RTT_COUNTER_COUNT];
extern const char * const timely_rtt_counter_docs[TIMELY_RTT_COUNTER_COUNT];

u64 timely_rtt_counter(enum timely_rtt_result index);

static inline void timely_rtt_count(enum timely_rtt_result index)
{
	this_cpu_inc(timely_rtt_counters.count[index]);
}

#endif /* _NET_TIMELY_COUNTERS_H */
