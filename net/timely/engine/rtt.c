// SPDX-License-Identifier: GPL-2.0
/*
 * The RTT measurement engine (paper, section 3.1):
 *
 *	RTT = t_completion - t_send - segment / NIC line rate
 *
 * t_completion is when the ACK arrived: by the NIC's stamp, told in the host's
 * time by clock.c; else by the driver's; else when TCP processed it. t_send is
 * when the segment was handed to the device, so that a queue in the NIC is part
 * of the signal (section 5) and the pacing of the qdisc is not.
 *
 * A completion is an ACK that finishes a segment. A receiver acknowledges a
 * burst in pieces, and the RTTs of the pieces rise with their place in it: a
 * gradient that no queue has. Under SACK it is the confirmation of a segment's
 * last packet, of which it is known when it left. Where ACKs never meet the end of
 * one, what they confirm of it is told as a segment (timely_piece()).
 *
 * The paper has ACKs made by the NIC; ours are made by TCP, which may keep one
 * back for a lone packet. Its wait is not the network's: such ACKs are refused
 * where they can be told, as TCP flags only those of less than an MSS.
 *
 * Pure: no socket, no packet, no clock, no floating point.
 */

#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "rtt.h"

/* The noise is known of so many RTTs at least, and an average of so many. */
#define NOISE_SAMPLES_MIN	8
#define NOISE_SAMPLES_MAX	64

/* It is noise if its mean is longer than the queue that flows steer to, times so many eighths;
 * and no more if it is shorter than so many. Of less steering takes no harm, and flows that know of
 * noise take more than others.
 */
#define NOISE_BEGINS		12
#define NOISE_ENDS		9

/* Where rates come late, as under fq, queues are longer and the pull is weaker: noise of a
 * fifth of the queue has one flow take the line already, as of ACKs that come together the falls
 * count for more than the rise before them. To be told from messages' bursts, so little noise
 * takes more RTTs.
 */
#define NOISE_LAG_SHARE		5
#define NOISE_LAG_SAMPLES_MIN	48

/* Of two values from 0 to N, evenly, the difference is a third of N on average, of the
 * larger of two such differences .4: N / 2, the mean, is so many quarters of that.
 */
#define NOISE_MEAN_QUARTERS	5

/* A queue lasts as long, and RTTs within it are much the same. */
#define NOISE_APART_NS		250000U

#define NOISE_MOST_NS		1000000000U

/**
 * timely_rtt_refusal() - why an ACK gives no RTT, before times are looked at
 * @ack: what is known of it
 *
 * Return: the reason, or TIMELY_RTT_COUNTER_COUNT if there is none.
 */
enum timely_rtt_result timely_rtt_refusal(const struct timely_ack *ack)
{
	if (!ack->new)
		return TIMELY_RTT_nothing_new;
	/* Karn; and in recovery an ACK may cover what was sent twice and falls
	 * back to the timestamp option, with milliseconds.
	 */
	if (ack->retransmitted)
		return TIMELY_RTT_retransmitted;
	if (ack->recovery)
		return TIMELY_RTT_recovery;
	/* When it was planned to be may be later than it was. */
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

static u32 noise_apart(u32 a, u32 b)
{
	return max(a, b) - min(a, b);
}

static u32 noise_average(u32 mean, u32 value, u32 samples)
{
	return mean + ((s32)min(value, NOISE_MOST_NS) - (s32)mean) / (s32)samples;
}

/**
 * timely_noise_add() - learn of one more RTT
 * @noise: the path's; zero to begin with
 * @late: an RTT of one of its flows, late in a drain
 *
 * While flows drain, a queue is short, and as it comes and goes by and by, RTTs that follow
 * each other are nearly the same. Those to a receiver that holds ACKs jump by all that it
 * holds them. A flow's own segments may come in step with what lets ACKs go, and always wait
 * as long; other flows' wait differently then: what counts is the larger jump, from the
 * flow's RTT before and from the path's.
 *
 * A queue's length does not matter: messages make long ones, drain or not, and what was
 * taken for noise would be steered to. (Means, medians and quartiles of RTTs were tried.)
 */
void timely_noise_add(struct timely_noise *noise, const struct timely_late *late)
{
	u32 jump_ns = noise_apart(late->late_ns, late->before_ns);
	u32 due_ns = late->rates_lag ? late->due_ns / NOISE_LAG_SHARE : late->due_ns;
	u64 mean_ns;

	if (late->now_ns - noise->seen_ns < NOISE_APART_NS)
		jump_ns = max(jump_ns, noise_apart(late->late_ns, noise->late_ns));
	noise->seen_ns = late->now_ns;
	noise->late_ns = late->late_ns;
	noise->samples = min(noise->samples + 1, NOISE_SAMPLES_MAX);
	noise->jump_ns = noise_average(noise->jump_ns, jump_ns, noise->samples);
	noise->due_ns = noise_average(noise->due_ns, due_ns, noise->samples);
	mean_ns = (u64)noise->jump_ns * NOISE_MEAN_QUARTERS / 4;
	if (noise->samples < (late->rates_lag ? NOISE_LAG_SAMPLES_MIN : NOISE_SAMPLES_MIN) ||
	    mean_ns * 8 < (u64)noise->due_ns * (noise->mean_ns ? NOISE_ENDS : NOISE_BEGINS))
		mean_ns = 0;
	noise->mean_ns = mean_ns;
}
EXPORT_SYMBOL_GPL(timely_noise_add);
