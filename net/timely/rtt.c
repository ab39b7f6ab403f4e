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

#include <linux/types.h>

#include <net/timely_rtt.h>

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
	if (timely_seq_after(ack->end_seq, ack->una) && !ack->sent_ns)
		return TIMELY_RTT_partial;
	if (ack->delayed)
		return TIMELY_RTT_delayed;
	if (ack->source == TIMELY_RTT_doubtful)
		return TIMELY_RTT_doubtful;
	return TIMELY_RTT_COUNTER_COUNT;
}
