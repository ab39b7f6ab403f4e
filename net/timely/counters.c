// SPDX-License-Identifier: GPL-2.0
/*
 * Names and descriptions of the RTT counters, for netlink.c. The counts are in tenant.c.
 */

#include <net/timely_counters.h>

#define TIMELY_RTT_NAME(name, doc)	#name,

const char * const timely_rtt_counter_names[TIMELY_RTT_COUNTER_COUNT] = {
	TIMELY_RTT_COUNTERS(TIMELY_RTT_NAME)
};

#define TIMELY_RTT_DOC(name, doc)	doc,

const char * const timely_rtt_counter_docs[TIMELY_RTT_COUNTER_COUNT] = {
	TIMELY_RTT_COUNTERS(TIMELY_RTT_DOC)
};
