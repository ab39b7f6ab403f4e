// SPDX-License-Identifier: GPL-2.0
/*
 * The offset between the host's real-time clock (CLOCK_REALTIME) and CLOCK_MONOTONIC. Driver
 * timestamps and the times of base-RTT probes are in real time, while RTTs are computed in
 * CLOCK_MONOTONIC. timely_look_at_real() gets the offset, and detects that the real-time clock was
 * set.
 */

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/seqlock.h>

#include <net/timely_counters.h>
#include <timely/engine/real.h>

#include "tcp_timely_realtime.h"

/* Offset of CLOCK_REALTIME, and when the offset last changed. Guarded by timely_real_lock. */
struct timely_real timely_real;
DEFINE_SEQLOCK(timely_real_lock);

/* Record that the real-time clock was set: the caller has read an offset other than the recorded
 * offset. Another CPU may already have recorded the new offset. @real is set to the new state.
 */
void timely_real_changed(struct timely_real *real)
{
	u64 offset_ns;

	write_seqlock_bh(&timely_real_lock);
	offset_ns = timely_real_offset_ns();
	/* The real-time clock is the host's, so the event is counted in the initial namespace. */
	if (timely_real_update(&timely_real, offset_ns, ktime_get_ns()))
		this_cpu_inc(timely_rtt_counters_of(&init_net)->count[TIMELY_RTT_real_set]);
	*real = timely_real;
	write_sequnlock_bh(&timely_real_lock);
}

/* Called when the module is loaded, before any connection exists. */
void timely_realtime_init(void)
{
	timely_real_init(&timely_real, timely_real_offset_ns());
}

/* For tests only. Namespaces of one kernel, which stand for hosts in tests, share the real-time
 * clock of the kernel. With these parameters, base-RTT probes of a namespace start as if the clock
 * of the namespace were ahead by
 *
 *	test_probe_rtt_offset_ns * (cookie of the namespace % test_probe_rtt_clocks)
 */
unsigned long long timely_test_probe_rtt_offset_ns;
module_param_named(test_probe_rtt_offset_ns, timely_test_probe_rtt_offset_ns, ullong, 0644);
MODULE_PARM_DESC(test_probe_rtt_offset_ns,
		 "for tests: by how much the real-time clocks of network namespaces differ [ns]");

static unsigned int timely_test_probe_rtt_clocks = 2;
module_param_named(test_probe_rtt_clocks, timely_test_probe_rtt_clocks, uint, 0644);
MODULE_PARM_DESC(test_probe_rtt_clocks,
		 "for tests: number of different real-time clocks of network namespaces");

/* By how much a namespace's real-time clock is ahead in tests, ns. 0 clocks count as 1 clock. */
u64 timely_test_clock_ns(const struct net *net)
{
	return READ_ONCE(timely_test_probe_rtt_offset_ns) *
	       ((u32)net->net_cookie % max(READ_ONCE(timely_test_probe_rtt_clocks), 1U));
}
