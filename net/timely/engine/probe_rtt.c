// SPDX-License-Identifier: GPL-2.0
/*
 * Base-RTT probes ("probes" for short): all connections reduce their rates for a moment at the same
 * time, so that RTTs show the base RTT of their paths.
 *
 * The base RTT of a path cannot be measured while there is a queue, and flows that keep a target
 * delay never let the queue drain. A later flow would take the queue for part of the path and add
 * another queue. Therefore all flows reduce their rates when the low bits of the common time of
 * the hosts become zero. A clock daemon gives the common time; without a daemon it is the real-time
 * clock.
 *
 * Only the start of a probe depends on the common time. Its end, and the earliest start of the next
 * probe, depend on CLOCK_MONOTONIC, which nobody can set. So the share of time that a flow spends
 * in probes is bounded, whatever is done to the common time.
 *
 * RTTs show a probe one round trip later. On long paths, RTTs that are measured during the probe
 * itself show the queue before the probe, and change rates as usual.
 *
 * If these clocks of hosts differ, the hosts probe at different times, and perhaps no host
 * measures the base RTT: each host takes a part of the queue for the path, and this part grows.
 * This is detected: in a probe, RTTs should fall by the queueing delay before the probe. If RTTs do
 * not fall, other hosts did not probe, unless RTTs do not vary at all: then there is no queue, and
 * the path has become longer. If other hosts did not probe, the base RTT is the lowest RTT of
 * several seconds, and at most one and a half times the lowest such base RTT. A path that becomes
 * longer by more than that is detected when RTTs do not vary, or when a flow is at its minimum rate
 * (timely_doubt_base() in net/ipv4/tcp_timely.c). Probes continue, and when RTTs fall in probes
 * again, the base RTT is measured as usual.
 *
 * The engine knows no socket and no clock.
 */

#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "probe_rtt.h"

/* A probe lasts for PROBE_RTT_RTTS base RTTs, but at least PROBE_RTT_MIN_NS, which is twice the
 * tolerated difference of the hosts' clocks. During a probe, rates are lower by a fifth on average,
 * so a queue of 200 us drains within 1 ms.
 */
#define PROBE_RTT_MIN_NS	1000000U
#define PROBE_RTT_RTTS	8

/* RTTs show a probe from one base RTT after its start to one base RTT after its end. This margin
 * makes the time longer at both ends. If the base RTT is shorter than the margin, the base RTT is
 * the margin: RTTs show the probe from its start, for the probe's length plus two base RTTs.
 */
#define PROBE_RTT_MARGIN_NS	((TIMELY_PROBE_RTT_SETTLE_MAX_NS - TIMELY_PROBE_RTT_MAX_NS) / 2)

/* The fall of RTTs in probes, and the queueing delay before probes, are averaged over this many
 * RTTs. Probes of the hosts do not coincide if RTTs fall by less than a quarter of that queueing
 * delay; probes coincide again if RTTs fall by more than a half of the delay.
 */
#define PROBE_RTT_SAMPLES		16
#define PROBE_RTT_APART_SHARE	4
#define PROBE_RTT_TOGETHER_SHARE	2

/* A queue varies. If no recent RTT was lower than the last one before a probe by this share of the
 * queueing delay, there is no queue, and the path has become longer. That says nothing about the
 * probes of other hosts.
 */
#define PROBE_RTT_STILL_SHARE	4

/* In the averages of RTT differences, values above 100 ms count as 100 ms, to fit in 32 bits. */
#define PROBE_RTT_MOST_NS		100000000

/**
 * timely_probe_rtt_init() - initialise the state of a connection
 * @probe: the connection's state
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * The connection does not probe before timely_probe_rtt_set() has been called.
 */
void timely_probe_rtt_init(struct timely_probe_rtt *probe, u64 now_ns)
{
	probe->began_ns = now_ns - TIMELY_PROBE_RTT_PERIOD_NS;
	probe->length_ns = 0;
	probe->shows_ns = 0;
	probe->settle_ns = 0;
	probe->rest_ns = TIMELY_PROBE_RTT_REST_NS;
}
EXPORT_SYMBOL_GPL(timely_probe_rtt_init);

/**
 * timely_probe_rtt_set() - set the length of probes from the base RTT
 * @probe: the connection's state
 * @min_rtt_ns: base RTT of the path, ns
 */
void timely_probe_rtt_set(struct timely_probe_rtt *probe, u32 min_rtt_ns)
{
	u32 margin_ns = min(min_rtt_ns, PROBE_RTT_MARGIN_NS);

	probe->length_ns = clamp_t(u64, (u64)min_rtt_ns * PROBE_RTT_RTTS, PROBE_RTT_MIN_NS,
				   TIMELY_PROBE_RTT_MAX_NS);
	/* If the base RTT is longer than a period, RTTs show a probe before the last one. */
	probe->shows_ns = (min_rtt_ns - margin_ns) & (TIMELY_PROBE_RTT_PERIOD_NS - 1);
	probe->settle_ns = probe->length_ns + 2 * margin_ns;
}
EXPORT_SYMBOL_GPL(timely_probe_rtt_set);

/**
 * timely_probe_rtt_update() - detect the start of a probe
 * @probe: the connection's state, for which timely_probe_rtt_may_begin() returned true
 * @now_ns: current time, CLOCK_MONOTONIC
 * @common_ns: current time, by the clock that the hosts agree on
 *
 * A connection that gets ACKs rarely may call this function long after the start of a probe. The
 * probe still counts, from its start, unless RTTs do not show the probe any more. Otherwise the
 * common time is not read again before the next probe is due. If it is set meanwhile, one probe may
 * be missed.
 *
 * Return: true if a probe has started.
 */
bool timely_probe_rtt_update(struct timely_probe_rtt *probe, u64 now_ns, u64 common_ns)
{
	u64 age_ns = common_ns & (TIMELY_PROBE_RTT_PERIOD_NS - 1);
	/* After two periods, no RTT shows the last probe, whenever it was. */
	u64 since_ns = min(now_ns - probe->began_ns, 2 * TIMELY_PROBE_RTT_PERIOD_NS);

	if (age_ns >= probe->shows_ns + probe->settle_ns) {
		probe->began_ns = now_ns - since_ns;
		probe->rest_ns = since_ns + TIMELY_PROBE_RTT_PERIOD_NS - age_ns;
		return false;
	}
	probe->began_ns = now_ns - age_ns;
	probe->rest_ns = TIMELY_PROBE_RTT_REST_NS;
	return true;
}
EXPORT_SYMBOL_GPL(timely_probe_rtt_update);

/* Update the average @mean with @value, which has the weight 1 / @samples and is limited to
 * +-PROBE_RTT_MOST_NS. While @samples counts all values, the result is the mean of all values; once
 * @samples stays at its limit, the result is a moving average.
 */
static s32 probe_average(s32 mean, s64 value, u32 samples)
{
	value = clamp_t(s64, value, -PROBE_RTT_MOST_NS, PROBE_RTT_MOST_NS);
	return mean + ((s32)value - mean) / (s32)samples;
}

/**
 * timely_probe_rtt_watch_add() - add an RTT from the second half of a probe
 * @watch: the path's state
 * @before_ns: the flow's last RTT before the probe
 * @least_ns: the flow's lowest RTT since some time before the probe
 * @rtt_ns: the flow's RTT in the probe
 * @base_ns: base RTT that the flow uses
 * @due_ns: the flow's target delay
 *
 * The RTT counts if the queueing delay before the probe was half of the target delay to four times
 * the target delay. A longer queue belongs to flows that do not probe; while probes do not coincide
 * it counts, too, as it may be a longer path.
 *
 * Return: true if this RTT is the first to show that probes of the hosts do not coincide any more.
 */
bool timely_probe_rtt_watch_add(struct timely_probe_rtt_watch *watch, u32 before_ns, u32 least_ns,
				u32 rtt_ns, u32 base_ns, u32 due_ns)
{
	s64 queue_ns = (s64)before_ns - base_ns;
	bool was_apart = watch->apart;

	if (queue_ns < due_ns / 2 || (queue_ns > 4 * (s64)due_ns && !was_apart))
		return false;
	watch->samples = min(watch->samples + 1, PROBE_RTT_SAMPLES);
	watch->fall_ns = probe_average(watch->fall_ns, (s64)before_ns - rtt_ns, watch->samples);
	watch->due_ns = probe_average(watch->due_ns, queue_ns, watch->samples);
	watch->vary_ns = probe_average(watch->vary_ns, before_ns - min(before_ns, least_ns),
				       watch->samples);
	if (watch->samples < PROBE_RTT_SAMPLES)
		return false;
	if (watch->vary_ns < watch->due_ns / PROBE_RTT_STILL_SHARE)
		watch->apart = false;
	else if (watch->fall_ns < watch->due_ns / PROBE_RTT_APART_SHARE)
		watch->apart = true;
	else if (watch->fall_ns > watch->due_ns / PROBE_RTT_TOGETHER_SHARE)
		watch->apart = false;
	if (watch->apart != was_apart)
		watch->held_ns = 0;
	return watch->apart && !was_apart;
}
EXPORT_SYMBOL_GPL(timely_probe_rtt_watch_add);

/**
 * timely_probe_rtt_base_ns() - get the base RTT of a path
 * @watch: the path's state; updated if probes do not coincide
 * @least_ns: lowest RTT in the window of the base RTT's minimum filter
 * @long_least_ns: lowest RTT in a window TIMELY_PROBE_RTT_APART_LONGER times as long
 *
 * Return: the base RTT, ns: @least_ns; or, if probes do not coincide, @long_least_ns, but at most
 * one and a half times the lowest @long_least_ns since probes ceased to coincide.
 */
u64 timely_probe_rtt_base_ns(struct timely_probe_rtt_watch *watch, u64 least_ns, u64 long_least_ns)
{
	if (!watch->apart)
		return least_ns;
	watch->held_ns = min(watch->held_ns ?: U64_MAX, long_least_ns);
	return min(long_least_ns, watch->held_ns + watch->held_ns / 2);
}
EXPORT_SYMBOL_GPL(timely_probe_rtt_base_ns);
