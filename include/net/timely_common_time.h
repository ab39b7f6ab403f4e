/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The common time of a network namespace: the time that this host and others agree on, as a clock
 * daemon gives it. See net/timely/common_time.c.
 */
#ifndef _NET_TIMELY_COMMON_TIME_H
#define _NET_TIMELY_COMMON_TIME_H

#include <linux/types.h>

struct net;
struct timely_common_time;

/**
 * enum timely_common_state - whether the common time can be used
 * @TIMELY_COMMON_NONE: no clock daemon has given a common time
 * @TIMELY_COMMON_LOST: the last one is too old, or its error is too large
 * @TIMELY_COMMON_KNOWN: yes
 */
enum timely_common_state {
	TIMELY_COMMON_NONE,
	TIMELY_COMMON_LOST,
	TIMELY_COMMON_KNOWN,
};

enum timely_common_state timely_common_time(const struct net *net, u64 now_ns, u64 bound_max_ns,
					    s64 *offset_ns);
void timely_common_time_set(const struct net *net, const struct timely_common_time *time);

int timely_common_time_init(void);
void timely_common_time_exit(void);

#endif /* _NET_TIMELY_COMMON_TIME_H */
