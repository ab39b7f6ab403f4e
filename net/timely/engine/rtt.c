// SPDX-License-Identifier: GPL-2.0
/*
 * The RTT measurement engine: computes the RTT of a pacing segment ("segment" for short), and
 * estimates how much ACK aggregation adds to the RTTs of a path. TIMELY (SIGCOMM'15), section 3.1:
 *
 *	RTT = t_completion - t_send - segment / NIC link rate
 *
 * t_completion is the arrival of the ACK: the hardware timestamp, converted to the host's time by
 * clock.c; else the driver timestamp; else the time at which TCP processed the ACK. t_send is the
 * time at which the segment was passed to the device. So the RTT includes a queue in the NIC
 * (section 5), but not the pacing of the qdisc.
 *
 * An ACK completes a segment if it acknowledges the segment's last packet. A receiver acknowledges
 * a segment in several ACKs, whose RTTs grow with the position in the segment. This gradient is not
 * caused by a queue, so the earlier ACKs give no RTT. With SACK, the confirmation of a segment's
 * last packet completes the segment, if the departure of that packet is known. If ACKs never end at
 * the end of a segment, the part that they confirm counts as a segment (timely_within_segment() of
 * net/ipv4/tcp_timely.c).
 *
 * In the paper, the NIC makes the ACKs. Here TCP makes them and may delay the ACK of a single
 * packet. This delay is not caused by the network, so such ACKs give no RTT where they can be
 * recognised. TCP itself recognises only delayed ACKs of a packet shorter than an MSS.
 *
 * The engine knows no socket, packet or clock, and uses no floating point.
 */

#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "rtt.h"

/* Number of RTTs before ACK aggregation is estimated, and largest number of RTTs averaged. */
#define ACK_AGG_SAMPLES_MIN	8
#define ACK_AGG_SAMPLES_MAX	64

/* A path has ACK aggregation if the aggregation's mean is at least 12/8 of the target delay, until
 * the mean is below 9/8. Less aggregation does not harm the target-delay rule, so the rule should
 * not allow for it: flows that allow for aggregation take a larger share of a link than other
 * flows.
 */
#define ACK_AGG_BEGINS		12
#define ACK_AGG_ENDS		9

/* Where new rates take effect late, as under fq, queues are longer and the rule reacts more weakly.
 * There, aggregation of only a fifth of the target delay lets one flow take over the link: when
 * several ACKs arrive together, the RTT rises once and then falls from ACK to ACK, and the falls
 * raise the rate by more than the rise lowered it. A mean of at least 13/8 of this fifth, over
 * ACK_AGG_SAMPLES_MAX RTTs, is needed to distinguish so little aggregation from bursts of messages.
 * With aggregation of 20 us the means were 13.6/8 and more.
 *
 * In the first probe of a path, and while the mean is over fewer RTTs, the mean must be at least
 * 24/8. The varying queue of ten hosts that had just started (scenario limited of the lab)
 * made means of up to 19.3/8 in the first probe, and of up to 16.2/8 of 32 RTTs in later ones.
 */
#define ACK_AGG_LAG_SHARE		5
#define ACK_AGG_LAG_BEGINS		13
#define ACK_AGG_LAG_BEGINS_EARLY	24
#define ACK_AGG_LAG_SAMPLES_MIN		32

/* Assume that aggregation adds values distributed evenly from 0 to N to RTTs: their mean is N / 2.
 * The mean difference of two values is N / 3, and the mean of the larger of two such differences is
 * 0.4 N. jump_ns is about 0.4 N, so the mean of the aggregation is 5/4 of jump_ns.
 */
#define ACK_AGG_MEAN_QUARTERS	5

/* RTTs of a path that are measured within this time of each other are compared: the queue is the
 * same, so without ACK aggregation these RTTs are nearly equal.
 */
#define ACK_AGG_APART_NS		250000U

/* RTTs that are closer together than this are of the same base-RTT probe. */
#define ACK_AGG_PROBE_NS		10000000U

/* A probe has drained the queue if the lowest queueing delay in the probe is at most this many
 * times the mean difference of RTTs.
 */
#define ACK_AGG_DRAINED_JUMPS	4

/* If RTTs fall by less than this part of their mean difference, on average, a queue rises. With
 * aggregation of 200 us, where the RTT rises once and then falls from ACK to ACK, they fell by a
 * quarter.
 */
#define ACK_AGG_FALLS		16

/* In averages, a time above one second counts as one second, so that differences fit in 32 bits. */
#define ACK_AGG_MOST_NS		1000000000U

/**
 * timely_rtt_refusal() - check whether an ACK can give an RTT, without computing the RTT
 * @ack: the ACK
 *
 * Return: the reason why the ACK gives no RTT; TIMELY_RTT_COUNTER_COUNT if there is no such reason.
 */
enum timely_rtt_result timely_rtt_refusal(const struct timely_ack *ack)
{
	if (!ack->new)
		return TIMELY_RTT_nothing_new;
	/* Karn's rule: an ACK of data that were sent twice gives no RTT. In recovery, an ACK may
	 * cover such data, too, and TCP's RTT is then from timestamp options, in milliseconds.
	 */
	if (ack->retransmitted)
		return TIMELY_RTT_retransmitted;
	if (ack->recovery)
		return TIMELY_RTT_recovery;
	/* scheduled_ns is no substitute for the departure: the segment may have left earlier. */
	if (ack->skipped)
		return TIMELY_RTT_partial;
	if (timely_seq_after(ack->end_seq, ack->una) && !ack->sent_ns)
		return TIMELY_RTT_partial;
	if (ack->delayed)
		return TIMELY_RTT_delayed;
	if (ack->source == TIMELY_RTT_doubtful)
		return TIMELY_RTT_doubtful;
	return TIMELY_RTT_COUNTER_COUNT;
}
EXPORT_SYMBOL_GPL(timely_rtt_refusal);

static u32 ack_agg_jump(u32 a, u32 b)
{
	return max(a, b) - min(a, b);
}

static u32 ack_agg_fall(u32 before, u32 now)
{
	return before - min(before, now);
}

/* Average of @samples values: @value is the newest, @mean is the average of the other values. */
static u32 ack_agg_average(u32 mean, u32 value, u32 samples)
{
	return mean + ((s32)min(value, ACK_AGG_MOST_NS) - (s32)mean) / (s32)samples;
}

static u64 ack_agg_mean(const struct timely_ack_agg *ack_agg)
{
	return (u64)ack_agg->jump_ns * ACK_AGG_MEAN_QUARTERS / 4;
}

/* Whether the mean counts as aggregation. */
static bool ack_agg_counts(const struct timely_ack_agg *ack_agg, bool rates_lag)
{
	u32 eighths = ACK_AGG_BEGINS;

	if (ack_agg->mean_ns)
		eighths = ACK_AGG_ENDS;
	else if (rates_lag)
		eighths = ack_agg->past_first && ack_agg->samples == ACK_AGG_SAMPLES_MAX ?
			  ACK_AGG_LAG_BEGINS : ACK_AGG_LAG_BEGINS_EARLY;
	return ack_agg_mean(ack_agg) * 8 >= (u64)ack_agg->due_ns * eighths;
}

/* Whether the path's first probe shows a queue that connections make by starting together: RTTs
 * rise for the whole probe. With aggregation they rise and fall.
 */
static bool ack_agg_is_queue(const struct timely_ack_agg *ack_agg)
{
	return !ack_agg->past_first && ack_agg->fall_ns < ack_agg->jump_ns / ACK_AGG_FALLS;
}

/* Prepare the estimate for a new base-RTT probe, of which @sample is the first RTT. RTTs of the
 * first probe do not count in the second if they were of a queue or, if rates lag, too equal.
 */
static void ack_agg_begin_probe(struct timely_ack_agg *ack_agg,
				const struct timely_probe_sample *sample)
{
	bool queue = ack_agg_is_queue(ack_agg);

	ack_agg->least_ns = sample->probe_queue_ns;
	if (!ack_agg->seen_ns || ack_agg->past_first)
		return;
	if (sample->rates_lag ? !ack_agg_counts(ack_agg, true) : queue)
		ack_agg->samples = 0;
	ack_agg->past_first = true;
}

/* Whether the probe has drained the queue, as far as its RTTs up to @sample show. Aggregation adds
 * next to nothing to the lowest of many RTTs. The queue that connections make by starting together
 * outlasts a probe, and its changes look like aggregation.
 */
static bool ack_agg_has_drained(struct timely_ack_agg *ack_agg,
				const struct timely_probe_sample *sample, u32 jump_ns)
{
	if ((s64)(sample->now_ns - ack_agg->seen_ns) >= (s64)ACK_AGG_PROBE_NS)
		ack_agg_begin_probe(ack_agg, sample);
	ack_agg->least_ns = min(ack_agg->least_ns, sample->probe_queue_ns);
	return ack_agg->least_ns / ACK_AGG_DRAINED_JUMPS <= max(jump_ns, ack_agg->jump_ns);
}

/**
 * timely_ack_agg_add() - add an RTT to the estimate of ACK aggregation
 * @ack_agg: the path's estimate; initially all zero
 * @sample: an RTT of one of the path's flows, late in a base-RTT probe
 *
 * In a probe, the queue is short and changes slowly, so successive RTTs are nearly equal. RTTs to a
 * receiver that delays ACKs differ by up to the delay. A flow's segments may be in phase with the
 * event that releases ACKs, so that all its ACKs wait for the same time; ACKs of other flows then
 * wait for other times. So the larger of two differences counts: from the flow's previous RTT, and
 * from the path's previous RTT.
 *
 * The queueing delay itself is not used, because bursts of messages make long queues even in a
 * probe. If a queue were taken for aggregation, flows would keep that queue. (Means, medians and
 * quartiles of RTTs were tried.)
 */
void timely_ack_agg_add(struct timely_ack_agg *ack_agg, const struct timely_probe_sample *sample)
{
	u32 jump_ns = ack_agg_jump(sample->probe_queue_ns, sample->before_ns);
	u32 due_ns = sample->rates_lag ? sample->due_ns / ACK_AGG_LAG_SHARE : sample->due_ns;
	u32 fall_ns = ack_agg_fall(sample->before_ns, sample->probe_queue_ns);
	u32 enough = sample->rates_lag ? ACK_AGG_LAG_SAMPLES_MIN : ACK_AGG_SAMPLES_MIN;
	bool drained;

	/* A sample of another processor may be a little older. */
	if ((s64)(sample->now_ns - ack_agg->seen_ns) < (s64)ACK_AGG_APART_NS) {
		jump_ns = max(jump_ns,
			      ack_agg_jump(sample->probe_queue_ns, ack_agg->probe_queue_ns));
		fall_ns = max(fall_ns,
			      ack_agg_fall(ack_agg->probe_queue_ns, sample->probe_queue_ns));
	}
	drained = ack_agg_has_drained(ack_agg, sample, jump_ns);
	ack_agg->seen_ns = sample->now_ns;
	ack_agg->probe_queue_ns = sample->probe_queue_ns;
	if (!drained)
		return;
	ack_agg->samples = min(ack_agg->samples + 1, ACK_AGG_SAMPLES_MAX);
	ack_agg->jump_ns = ack_agg_average(ack_agg->jump_ns, jump_ns, ack_agg->samples);
	ack_agg->fall_ns = ack_agg_average(ack_agg->fall_ns, fall_ns, ack_agg->samples);
	ack_agg->due_ns = ack_agg_average(ack_agg->due_ns, due_ns, ack_agg->samples);
	if (ack_agg->samples < enough || ack_agg_is_queue(ack_agg))
		return;
	ack_agg->mean_ns = ack_agg_counts(ack_agg, sample->rates_lag) ? ack_agg_mean(ack_agg) : 0;
}
EXPORT_SYMBOL_GPL(timely_ack_agg_add);
