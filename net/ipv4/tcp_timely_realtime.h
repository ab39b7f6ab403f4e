/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The offset between the host's real-time clock and CLOCK_MONOTONIC. See
 * net/ipv4/tcp_timely_realtime.c.
 */
#ifndef _TCP_TIMELY_REALTIME_H
#define _TCP_TIMELY_REALTIME_H

#include <linux/ktime.h>
#include <linux/seqlock.h>
#include <net/net_namespace.h>

#include <timely/engine/real.h>

extern struct timely_real timely_real;
extern seqlock_t timely_real_lock;
extern unsigned long long timely_test_probe_rtt_offset_ns;

void timely_realtime_init(void);
void timely_real_changed(struct timely_real *real);
u64 timely_test_clock_ns(const struct net *net);

/* How far the real-time clock is ahead of CLOCK_MONOTONIC now, ns. */
static inline u64 timely_real_offset_ns(void)
{
	return ktime_to_ns(ktime_mono_to_real(0));
}

/* Get the present offset of the real-time clock from CLOCK_MONOTONIC, the offset before the clock
 * was last set, and the time at which the setting was detected.
 */
static inline void timely_look_at_real(struct timely_real *real)
{
	u64 offset_ns = timely_real_offset_ns();
	unsigned int seq;

	do {
		seq = read_seqbegin(&timely_real_lock);
		*real = timely_real;
	} while (read_seqretry(&timely_real_lock, seq));
	if (unlikely(real->offset_ns != offset_ns))
		timely_real_changed(real);
}

/* For tests: by how much the real-time clock of a namespace is ahead, ns. 0 unless the module
 * parameter test_probe_rtt_offset_ns is set.
 */
static inline u64 timely_test_offset_ns(const struct net *net)
{
	if (likely(!READ_ONCE(timely_test_probe_rtt_offset_ns)))
		return 0;
	return timely_test_clock_ns(net);
}

#endif /* _TCP_TIMELY_REALTIME_H */
