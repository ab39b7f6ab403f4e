/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sender of one NDP stream: what is sent next, and what must be sent again.
 * See net/timely/engine/ndp_sender.c.
 *
 * Use, with the caller's lock of the connection:
 *
 *	timely_ndp_sender_init()
 *	timely_ndp_sender_queue()	after the application has written data for more packets
 *	timely_ndp_sender_finish()	after the application has closed its stream
 *	timely_ndp_sender_answer()	for each ACK, NACK and PULL
 *	timely_ndp_sender_returned()	for each DATA packet that a switch has returned
 *	timely_ndp_sender_came_back()	for each that did not reach the peer for another reason
 *	timely_ndp_sender_timeout()	at the time timely_ndp_sender_due_ns()
 *
 * After each of these calls, call timely_ndp_sender_next() until it returns TIMELY_NDP_SEND_NOTHING
 * or the device takes no more packets, and set the timer to timely_ndp_sender_due_ns() again. The
 * caller keeps the data of the packets from @una to before @end, and may free those before @una.
 */
#ifndef _TIMELY_ENGINE_NDP_SENDER_H
#define _TIMELY_ENGINE_NDP_SENDER_H

#include <linux/types.h>

#include "ndp_paths.h"
#include "ndp_wire.h"

/* Bounds of the memory for packets in flight (span): a power of two. */
#define TIMELY_NDP_MIN_SPAN	32
#define TIMELY_NDP_MAX_SPAN	16384

/* Paper: 23 to 30 packets of 9 KB at 10 Gb/s (sections 6.2 and 6.3). */
#define TIMELY_NDP_WINDOW	30

/* timely_ndp_sender_due_ns(): there is nothing to wait for. */
#define TIMELY_NDP_NEVER	(~0ULL)

/**
 * enum timely_ndp_slot_state - what is known of a packet that was sent
 * @TIMELY_NDP_SLOT_FREE: nothing: not yet sent
 * @TIMELY_NDP_SLOT_SENT: sent, and not answered since
 * @TIMELY_NDP_SLOT_RESEND: to be sent again: trimmed, returned or lost
 * @TIMELY_NDP_SLOT_ACKED: arrived
 */
enum timely_ndp_slot_state {
	TIMELY_NDP_SLOT_FREE,
	TIMELY_NDP_SLOT_SENT,
	TIMELY_NDP_SLOT_RESEND,
	TIMELY_NDP_SLOT_ACKED,
};

/**
 * struct timely_ndp_slot - a packet between @una and @next of its sender
 * @sent_ns: time of the last transmission
 * @next: index of the next slot in the same list
 * @prev: index of the slot before this one in the same list
 * @path: path of the last transmission
 * @tries: number of transmissions before the last one, modulo 256
 * @state: enum timely_ndp_slot_state
 */
struct timely_ndp_slot {
	u64 sent_ns;
	u16 next;
	u16 prev;
	u16 path;
	u8 tries;
	u8 state;
};

/**
 * struct timely_ndp_list - slots in order; internal to the engine
 * @first: index of the first slot
 * @last: index of the last slot
 * @count: number of slots
 */
struct timely_ndp_list {
	u16 first;
	u16 last;
	u32 count;
};

/**
 * struct timely_ndp_sender_config - parameters of a sender
 * @window: initial window, packets, 1 to @span; no more packets than this are sent without a pull
 * @span: number of slots: packets between the first one that has not arrived and the next new one
 * @rto_min_ns: shortest timeout for lost packets, ns
 * @rto_max_ns: longest timeout while the round trips are shorter than half of it, and the first
 *	one, ns; the paper has 1 ms
 * @backoff_max_ns: longest timeout after repeated timeouts, ns
 */
struct timely_ndp_sender_config {
	u32 window;
	u32 span;
	u32 rto_min_ns;
	u32 rto_max_ns;
	u64 backoff_max_ns;
};

/**
 * struct timely_ndp_sender_stats - counters of a sender
 * @sent: DATA packets, with retransmissions
 * @nacked: retransmissions that were asked for by a NACK
 * @returned: packets that a switch returned
 * @returned_at_once: returned packets that were sent again without a pull
 * @lost: packets taken for lost, by a timeout or a gap
 * @gaps: packets of @lost that were found by a gap
 * @spurious: packets of @lost that had arrived nevertheless
 * @timeouts: timeouts that found a lost packet
 * @probes: PROBE packets
 * @pulls: credits granted by the peer
 * @invalid: answers with impossible contents
 */
struct timely_ndp_sender_stats {
	u64 sent;
	u64 nacked;
	u64 returned;
	u64 returned_at_once;
	u64 lost;
	u64 gaps;
	u64 spurious;
	u64 timeouts;
	u64 probes;
	u64 pulls;
	u64 invalid;
};

/**
 * struct timely_ndp_sender - the sender of a stream
 * @slots: memory of the caller, @config.span elements; packet n uses element n modulo the span
 * @paths: paths to the destination, which several senders may share under one lock
 * @config: parameters
 * @una: first packet that has not arrived
 * @next: next new packet
 * @end: number of packets that the application has written; packets from @next on are new
 * @limit: first packet number that the receiver has no room for
 * @used: credits used
 * @granted: credits granted by the peer; @config.window + @granted - @used may be used
 * @promised: credits that the peer has granted or owes
 * @pulled: unused credits that pulls have granted; the rest is left of the initial window
 * @fin: number of the packet that ends the stream, if @finished
 * @sent_list: packets in flight, in the order of transmission
 * @resend_list: packets to be sent again, in the order in which that became known
 * @free: retransmissions that need no credit
 * @srtt_ns: smoothed RTT; 0: none yet
 * @rttvar_ns: smoothed difference of RTTs from @srtt_ns
 * @newest_acked_ns: transmission time of the packet sent last among those that have arrived
 * @wait_ns: since when the sender waits for an answer
 * @pull_gap_ns: smoothed time between credits
 * @last_pull_ns: time of the last credit, or since when credits are expected
 * @backoff: number of timeouts since the last progress: an arrival, a credit or room
 * @silent: number of timeouts since the last answer, at most 255; many mean a dead peer
 * @ack_share: recent share of ACKs among the answers, 0 to 255
 * @probe: a PROBE is to be sent
 * @answered: the peer has answered: packets no longer carry TIMELY_NDP_SYN
 * @finished: the application has closed the stream
 * @trims: a switch has trimmed or returned a packet of this stream
 * @graceful: packets were lost and none was trimmed: this network does not trim, so gaps in the
 *	sequence of ACKs count as losses
 * @stats: counters
 */
struct timely_ndp_sender {
	struct timely_ndp_slot *slots;
	struct timely_ndp_paths *paths;
	struct timely_ndp_sender_config config;
	u32 una;
	u32 next;
	u32 end;
	u32 limit;
	u32 used;
	u32 granted;
	u32 promised;
	u32 pulled;
	u32 fin;
	struct timely_ndp_list sent_list;
	struct timely_ndp_list resend_list;
	u32 free;
	u32 srtt_ns;
	u32 rttvar_ns;
	u64 newest_acked_ns;
	u64 wait_ns;
	u64 pull_gap_ns;
	u64 last_pull_ns;
	u8 backoff;
	u8 silent;
	u8 ack_share;
	bool probe;
	bool answered;
	bool finished;
	bool trims;
	bool graceful;
	struct timely_ndp_sender_stats stats;
};

/**
 * enum timely_ndp_send - what timely_ndp_sender_next() tells the caller to send
 * @TIMELY_NDP_SEND_NOTHING: nothing
 * @TIMELY_NDP_SEND_DATA: the DATA packet with the number @seq of the header
 * @TIMELY_NDP_SEND_PROBE: a PROBE
 */
enum timely_ndp_send {
	TIMELY_NDP_SEND_NOTHING,
	TIMELY_NDP_SEND_DATA,
	TIMELY_NDP_SEND_PROBE,
};

int timely_ndp_sender_init(struct timely_ndp_sender *s,
			   const struct timely_ndp_sender_config *config,
			   struct timely_ndp_slot *slots, struct timely_ndp_paths *paths);
void timely_ndp_sender_queue(struct timely_ndp_sender *s, u32 packets, u64 now_ns);
bool timely_ndp_sender_finish(struct timely_ndp_sender *s, u64 now_ns);
enum timely_ndp_send timely_ndp_sender_next(struct timely_ndp_sender *s,
					    struct timely_ndp_header *header, u64 now_ns);
bool timely_ndp_sender_answer(struct timely_ndp_sender *s, const struct timely_ndp_header *header,
			      u64 now_ns);
bool timely_ndp_sender_came_back(struct timely_ndp_sender *s,
				 const struct timely_ndp_header *header, u64 now_ns);
void timely_ndp_sender_returned(struct timely_ndp_sender *s,
				const struct timely_ndp_header *header, u64 now_ns);
void timely_ndp_sender_timeout(struct timely_ndp_sender *s, u64 now_ns);
u64 timely_ndp_sender_due_ns(const struct timely_ndp_sender *s);
void timely_ndp_sender_probe(struct timely_ndp_sender *s, u64 now_ns);

/**
 * timely_ndp_sender_done() - check whether everything that was written has arrived
 * @s: the sender
 *
 * Return: true if all packets before @s->end have arrived.
 */
static inline bool timely_ndp_sender_done(const struct timely_ndp_sender *s)
{
	return s->una == s->end;
}

/**
 * timely_ndp_sender_room() - packets that may be queued without new slots
 * @s: the sender
 *
 * A caller may queue more packets than this; they wait. The function helps to bound memory.
 *
 * Return: number of packets, 0 if the span is used up.
 */
static inline u32 timely_ndp_sender_room(const struct timely_ndp_sender *s)
{
	u32 used = s->end - s->una;

	return used < s->config.span ? s->config.span - used : 0;
}

#endif /* _TIMELY_ENGINE_NDP_SENDER_H */
