// SPDX-License-Identifier: GPL-2.0
/*
 * The sender of an NDP stream (SIGCOMM'17, section 3.2).
 *
 * Credits. Each DATA packet uses a credit. A stream starts with as many credits as its initial
 * window has packets, so the first packets leave at the link rate. From then on the receiver grants
 * credits with PULLs. Each DATA packet carries the number of credits used so far, each answer the
 * number granted so far. So a lost or reordered packet of any type makes no credit disappear: the
 * next packet has the same information. The paper's receiver counts arrivals instead; without
 * losses both are the same.
 *
 * Retransmissions. A packet is sent again, before new ones, when it was trimmed (NACK), when a
 * switch returned it, or when it was lost. It waits for a pull. The first packet that has not
 * arrived goes before all others, so that the receiver keeps few packets out of order. What is left
 * of the initial window is for new packets only: to send again at once would repeat the overload
 * that trimmed the packet. Two exceptions keep the stream going while no pulls are expected: one
 * packet after a timeout, and a packet that is returned for the first time.
 *
 * Losses are rare where switches trim, and the timeout is then the only sign of a loss: packets may
 * overtake each other, so a gap means nothing. Where packets are lost and none is ever trimmed, the
 * network does not trim (@graceful). There a packet also counts as lost when one that was sent a
 * quarter of an RTT later has arrived.
 *
 * When nothing is in flight but data wait for credits or room, a PROBE asks the receiver for its
 * counters, because its last PULL may have been lost.
 *
 * Pure: no packet, socket or clock.
 */

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "ndp_sender.h"

/* Smoothing of RTTs, as in TCP (RFC 6298). */
#define SENDER_SRTT_SHIFT	3
#define SENDER_RTTVAR_SHIFT	2
/* The timeout is twice the RTT and four times its variation. RTTs of pulled packets vary little
 * until other traffic fills the queues of some paths. One RTT as in TCP was found to be too short.
 */
#define SENDER_RTO_RTTS		2
#define SENDER_RTO_VARS		4
/* Without trimming, a gap counts as a loss after this part of an RTT. */
#define SENDER_GAP_SHIFT	2
/* The mean of the share of ACKs covers about eight answers. */
#define SENDER_SHARE_SHIFT	3
/* Recent feedback was mostly ACKs from this share on: three quarters. */
#define SENDER_MOSTLY_ACKS	192
/* A PROBE is sent when no pull has come for this many times the usual gap between pulls. */
#define SENDER_PROBE_GAPS	4
/* A receiver has room for fewer packets than this. */
#define SENDER_MAX_ROOM		65536
/* Timeouts double at most this many times. */
#define SENDER_MAX_BACKOFF	16
/* A returned packet waits at most for 2^3 timeouts. */
#define SENDER_RETURNED_BACKOFF	3

static struct timely_ndp_slot *sender_slot(const struct timely_ndp_sender *s, u32 seq)
{
	return &s->slots[seq & (s->config.span - 1)];
}

static void sender_append(struct timely_ndp_sender *s, struct timely_ndp_list *list, u16 index)
{
	s->slots[index].prev = list->last;
	if (list->count++)
		s->slots[list->last].next = index;
	else
		list->first = index;
	list->last = index;
}

static void sender_remove(struct timely_ndp_sender *s, struct timely_ndp_list *list, u16 index)
{
	struct timely_ndp_slot *slot = &s->slots[index];

	if (list->first == index)
		list->first = slot->next;
	else
		s->slots[slot->prev].next = slot->next;
	if (list->last == index)
		list->last = slot->prev;
	else
		s->slots[slot->next].prev = slot->prev;
	list->count--;
}

/* Change the state of a packet, and move it to the list of that state. */
static void sender_set_state(struct timely_ndp_sender *s, u32 seq, u8 state)
{
	u16 index = seq & (s->config.span - 1);
	struct timely_ndp_slot *slot = &s->slots[index];

	if (slot->state == TIMELY_NDP_SLOT_SENT)
		sender_remove(s, &s->sent_list, index);
	else if (slot->state == TIMELY_NDP_SLOT_RESEND)
		sender_remove(s, &s->resend_list, index);
	slot->state = state;
	if (state == TIMELY_NDP_SLOT_SENT)
		sender_append(s, &s->sent_list, index);
	else if (state == TIMELY_NDP_SLOT_RESEND)
		sender_append(s, &s->resend_list, index);
}

/* The number of the packet in slot @index, which is between @una and @next. */
static u32 sender_seq(const struct timely_ndp_sender *s, u16 index)
{
	return s->una + ((index - s->una) & (s->config.span - 1));
}

static u32 sender_credits(const struct timely_ndp_sender *s)
{
	return s->config.window + s->granted - s->used;
}

/* Whether the receiver still owes credits, as far as known. */
static bool sender_expects_pulls(const struct timely_ndp_sender *s)
{
	return timely_ndp_before(s->granted, s->promised);
}

/* Whether there are packets that the application has written, or that must be sent again. */
static bool sender_waits(const struct timely_ndp_sender *s)
{
	return s->resend_list.count || s->next != s->end;
}

static bool sender_may_send_new(const struct timely_ndp_sender *s)
{
	return s->next != s->end && timely_ndp_before(s->next, s->limit) &&
	       s->next - s->una < s->config.span;
}

/**
 * timely_ndp_sender_init() - set up a sender
 * @s: the sender
 * @config: parameters, which are copied
 * @slots: memory for @config->span packets, which is set
 * @paths: the paths to the destination
 *
 * Return: 0, or -EINVAL if a parameter is out of its range: the span is no power of two between
 * TIMELY_NDP_MIN_SPAN and TIMELY_NDP_MAX_SPAN, the window is 0 or greater than the span, or the
 * timeouts are 0 or do not ascend.
 */
int timely_ndp_sender_init(struct timely_ndp_sender *s,
			   const struct timely_ndp_sender_config *config,
			   struct timely_ndp_slot *slots, struct timely_ndp_paths *paths)
{
	u32 span = config->span;

	if (span < TIMELY_NDP_MIN_SPAN || span > TIMELY_NDP_MAX_SPAN || span & (span - 1))
		return -EINVAL;
	if (!config->window || config->window > span)
		return -EINVAL;
	if (!config->rto_min_ns || config->rto_min_ns > config->rto_max_ns ||
	    config->rto_max_ns > config->backoff_max_ns)
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	memset(slots, 0, span * sizeof(*slots));
	s->config = *config;
	s->slots = slots;
	s->paths = paths;
	s->limit = config->window;
	return 0;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_init);

/**
 * timely_ndp_sender_queue() - the application has written data for more packets
 * @s: the sender, not finished
 * @packets: number of packets, which get the next numbers
 * @now_ns: current time
 */
void timely_ndp_sender_queue(struct timely_ndp_sender *s, u32 packets, u64 now_ns)
{
	/* If the sender was idle, the time of waiting begins now, and packets are pushed. */
	if (!s->sent_list.count && !sender_waits(s)) {
		s->wait_ns = now_ns;
		s->pulled = 0;
	}
	s->end += packets;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_queue);

/**
 * timely_ndp_sender_finish() - the application has closed its stream
 * @s: the sender
 * @now_ns: current time
 *
 * The last packet carries the flag TIMELY_NDP_FIN. If the last packet has been sent without the
 * flag, an empty one is added. Nothing may be queued afterwards.
 *
 * Return: true if an empty packet was added, with the number @s->end - 1.
 */
bool timely_ndp_sender_finish(struct timely_ndp_sender *s, u64 now_ns)
{
	bool empty = s->next == s->end;

	if (s->finished)
		return false;
	if (empty)
		timely_ndp_sender_queue(s, 1, now_ns);
	s->finished = true;
	s->fin = s->end - 1;
	return empty;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_finish);

/* Use a credit, first one that a pull has granted. */
static void sender_pay(struct timely_ndp_sender *s)
{
	s->used++;
	if (s->pulled)
		s->pulled--;
}

/* The packet that is sent again first: the first one that has not arrived, because all others wait
 * for it at the receiver; otherwise the one that waits longest.
 */
static u32 sender_again(const struct timely_ndp_sender *s)
{
	if (sender_slot(s, s->una)->state == TIMELY_NDP_SLOT_RESEND)
		return s->una;
	return sender_seq(s, s->resend_list.first);
}

/* Choose the packet to send, and pay for it. Return: false if none may be sent. */
static bool sender_choose(struct timely_ndp_sender *s, u32 *seq)
{
	if (!s->resend_list.count)
		s->free = 0;
	if (s->resend_list.count && (s->free || s->pulled)) {
		*seq = sender_again(s);
		if (s->free)
			s->free--;
		else
			sender_pay(s);
		return true;
	}
	if (!sender_credits(s) || !sender_may_send_new(s))
		return false;
	*seq = s->next++;
	sender_pay(s);
	return true;
}

static u16 sender_flags(const struct timely_ndp_sender *s, u32 seq, bool again)
{
	return (s->answered ? 0 : TIMELY_NDP_SYN) |
	       (seq + 1 == s->end ? TIMELY_NDP_LAST : 0) |
	       (s->finished && seq == s->fin ? TIMELY_NDP_FIN : 0) |
	       (again ? TIMELY_NDP_RTX : 0);
}

/**
 * timely_ndp_sender_next() - take the next packet that may be sent now
 * @s: the sender
 * @header: set to the type, the flags of a sender, @credits and @seen, and for a DATA packet @seq,
 *	@path and @tries; the caller adds the rest
 * @now_ns: current time
 *
 * The packet counts as sent. If the caller cannot send the packet, it is lost.
 *
 * Return: TIMELY_NDP_SEND_NOTHING, TIMELY_NDP_SEND_DATA or TIMELY_NDP_SEND_PROBE.
 */
enum timely_ndp_send timely_ndp_sender_next(struct timely_ndp_sender *s,
					    struct timely_ndp_header *header, u64 now_ns)
{
	struct timely_ndp_slot *slot;
	bool again;
	u32 seq;

	memset(header, 0, sizeof(*header));
	if (s->probe) {
		s->probe = false;
		s->stats.probes++;
		header->type = TIMELY_NDP_PROBE;
		header->flags = s->answered ? 0 : TIMELY_NDP_SYN;
		header->credits = s->used;
		header->seen = s->granted;
		return TIMELY_NDP_SEND_PROBE;
	}
	if (!sender_choose(s, &seq))
		return TIMELY_NDP_SEND_NOTHING;

	slot = sender_slot(s, seq);
	again = slot->state == TIMELY_NDP_SLOT_RESEND;
	slot->tries = again ? slot->tries + 1 : 0;
	/* A packet that goes again takes another path (section 3.2.3). */
	slot->path = timely_ndp_paths_next(s->paths, now_ns,
					   again ? slot->path : TIMELY_NDP_MAX_PATHS);
	slot->sent_ns = now_ns;
	sender_set_state(s, seq, TIMELY_NDP_SLOT_SENT);
	s->wait_ns = now_ns;
	s->stats.sent++;
	header->type = TIMELY_NDP_DATA;
	header->flags = sender_flags(s, seq, again);
	header->seq = seq;
	header->credits = s->used;
	header->seen = s->granted;
	header->path = slot->path;
	header->tries = slot->tries;
	return TIMELY_NDP_SEND_DATA;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_next);

static void sender_rtt(struct timely_ndp_sender *s, u64 rtt)
{
	u32 rtt_ns = min_t(u64, rtt, S32_MAX);
	u32 error_ns;

	if (!s->srtt_ns) {
		s->srtt_ns = max(rtt_ns, 1U);
		s->rttvar_ns = rtt_ns / 2;
		return;
	}
	error_ns = abs((s32)(rtt_ns - s->srtt_ns));
	s->rttvar_ns += ((s32)(error_ns - s->rttvar_ns)) >> SENDER_RTTVAR_SHIFT;
	s->srtt_ns = max(s->srtt_ns + ((s32)(rtt_ns - s->srtt_ns) >> SENDER_SRTT_SHIFT), 1U);
}

/* The timeout of a packet without backoff. Where the RTT is long, such as in deep queues without
 * trimming, so is the timeout.
 */
static u64 sender_rto(const struct timely_ndp_sender *s)
{
	u64 rto = SENDER_RTO_RTTS * (u64)s->srtt_ns + SENDER_RTO_VARS * (u64)s->rttvar_ns;

	if (!s->srtt_ns)
		return s->config.rto_max_ns;
	return clamp(rto, (u64)s->config.rto_min_ns,
		     max_t(u64, s->config.rto_max_ns, 2 * (u64)s->srtt_ns));
}

static u64 sender_backoff(const struct timely_ndp_sender *s, u64 timeout)
{
	return min(timeout << s->backoff, s->config.backoff_max_ns);
}

/* How long to wait for a pull before a PROBE is sent. In a large incast a sender's turn comes
 * rarely.
 */
static u64 sender_pull_timeout(const struct timely_ndp_sender *s)
{
	u64 timeout = sender_rto(s);

	if (sender_expects_pulls(s))
		timeout = max(timeout, SENDER_PROBE_GAPS * s->pull_gap_ns);
	return sender_backoff(s, timeout);
}

/**
 * timely_ndp_sender_due_ns() - when to call timely_ndp_sender_timeout()
 * @s: the sender
 *
 * The time changes with each call of another function of the sender.
 *
 * Return: a time, possibly in the past, or TIMELY_NDP_NEVER if the sender waits for nothing.
 */
u64 timely_ndp_sender_due_ns(const struct timely_ndp_sender *s)
{
	if (s->sent_list.count)
		return s->slots[s->sent_list.first].sent_ns + sender_backoff(s, sender_rto(s));
	if (sender_waits(s))
		return s->wait_ns + sender_pull_timeout(s);
	return TIMELY_NDP_NEVER;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_due_ns);

/* The first packet in flight is lost. */
static void sender_lose(struct timely_ndp_sender *s)
{
	u32 seq = sender_seq(s, s->sent_list.first);

	timely_ndp_paths_loss(s->paths, sender_slot(s, seq)->path);
	sender_set_state(s, seq, TIMELY_NDP_SLOT_RESEND);
	s->stats.lost++;
	s->graceful = !s->trims;
}

/**
 * timely_ndp_sender_timeout() - the time timely_ndp_sender_due_ns() has come
 * @s: the sender
 * @now_ns: current time; if the time has not come, nothing happens
 *
 * Packets in flight for too long are lost. They are sent again when pulls come, as the receiver
 * asks for as many packets as were sent, whether they arrived or not. If no pulls are expected, one
 * packet is sent at once, because the receiver may know nothing of this sender. To send all of them
 * would repeat the overload if overload was the reason. If pulls are expected and nothing is in
 * flight, a PULL may have been lost, so a PROBE asks for it.
 */
void timely_ndp_sender_timeout(struct timely_ndp_sender *s, u64 now_ns)
{
	u64 rto = sender_backoff(s, sender_rto(s));

	if (now_ns < timely_ndp_sender_due_ns(s))
		return;
	s->wait_ns = now_ns;
	if (s->sent_list.count)
		s->stats.timeouts++;
	while (s->sent_list.count && s->slots[s->sent_list.first].sent_ns + rto <= now_ns)
		sender_lose(s);
	if (s->resend_list.count && !sender_expects_pulls(s))
		s->free = max(s->free, 1U);
	else if (!s->sent_list.count)
		s->probe = true;
	s->backoff = min(s->backoff + 1, SENDER_MAX_BACKOFF);
	s->silent = min_t(u32, s->silent + 1, U8_MAX);
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_timeout);

/**
 * timely_ndp_sender_probe() - send a PROBE, as a keepalive or to learn whether the peer lives
 * @s: the sender; timely_ndp_sender_next() returns the PROBE
 * @now_ns: current time
 */
void timely_ndp_sender_probe(struct timely_ndp_sender *s, u64 now_ns)
{
	s->probe = true;
	s->wait_ns = now_ns;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_probe);

/* Whether an answer is about packets and credits that exist. */
static bool sender_plausible(const struct timely_ndp_sender *s,
			     const struct timely_ndp_header *header)
{
	if (!timely_ndp_is_answer(header))
		return false;
	if (timely_ndp_before(s->next, header->cum) || timely_ndp_before(s->used, header->credits))
		return false;
	if (header->limit - header->cum >= SENDER_MAX_ROOM)
		return false;
	if (header->arrived && timely_ndp_before(s->next, header->cum + 1 + fls64(header->arrived)))
		return false;
	return header->type == TIMELY_NDP_PULL || timely_ndp_before(header->seq, s->next);
}

static void sender_count_share(struct timely_ndp_sender *s, bool ack)
{
	if (ack)
		s->ack_share += (U8_MAX - s->ack_share + 4) >> SENDER_SHARE_SHIFT;
	else
		s->ack_share -= (s->ack_share + 4) >> SENDER_SHARE_SHIFT;
}

/* The slot of a packet that is in flight or waits to be sent again; NULL for others. */
static struct timely_ndp_slot *sender_pending(const struct timely_ndp_sender *s, u32 seq)
{
	struct timely_ndp_slot *slot = sender_slot(s, seq);

	if (seq - s->una >= s->next - s->una)
		return NULL;
	return slot->state == TIMELY_NDP_SLOT_SENT || slot->state == TIMELY_NDP_SLOT_RESEND ?
	       slot : NULL;
}

static bool sender_ack(struct timely_ndp_sender *s, const struct timely_ndp_header *header,
		       u64 now_ns)
{
	struct timely_ndp_slot *slot = sender_pending(s, header->seq);

	if (!slot)
		return false;
	if (header->tries == slot->tries) {
		sender_rtt(s, now_ns - slot->sent_ns);
		s->newest_acked_ns = max(s->newest_acked_ns, slot->sent_ns);
		timely_ndp_paths_ack(s->paths, slot->path);
	} else {
		/* An earlier transmission has arrived after the timeout, so the timeout is too
		 * short. The RTT is at least the timeout and the time since the last transmission.
		 */
		sender_rtt(s, now_ns - slot->sent_ns + sender_rto(s));
	}
	if (header->tries != slot->tries || slot->state == TIMELY_NDP_SLOT_RESEND)
		s->stats.spurious++;
	sender_count_share(s, true);
	sender_set_state(s, header->seq, TIMELY_NDP_SLOT_ACKED);
	return true;
}

/* A NACK counts for the last transmission only: the NACK of an earlier one may come late. */
static bool sender_nack(struct timely_ndp_sender *s, const struct timely_ndp_header *header,
			u64 now_ns)
{
	struct timely_ndp_slot *slot = sender_pending(s, header->seq);

	if (!slot || slot->state != TIMELY_NDP_SLOT_SENT || header->tries != slot->tries)
		return false;
	if (header->flags & TIMELY_NDP_TRIMMED) {
		s->trims = true;
		s->graceful = false;
		timely_ndp_paths_nack(s->paths, slot->path);
	}
	/* Trimmed packets wait, too, where very many senders send at the same time. */
	sender_rtt(s, now_ns - slot->sent_ns);
	s->stats.nacked++;
	sender_count_share(s, false);
	sender_set_state(s, header->seq, TIMELY_NDP_SLOT_RESEND);
	return true;
}

/* An answer to another packet says that this one has arrived: one answer may do for several. */
static void sender_arrived(struct timely_ndp_sender *s, const struct timely_ndp_slot *slot)
{
	if (slot->state != TIMELY_NDP_SLOT_SENT)
		return;
	sender_count_share(s, true);
	if (slot->tries)
		return;
	timely_ndp_paths_ack(s->paths, slot->path);
	s->newest_acked_ns = max(s->newest_acked_ns, slot->sent_ns);
}

/* Note the packets behind the first missing one that an answer says have arrived. */
static bool sender_take_arrived(struct timely_ndp_sender *s,
				const struct timely_ndp_header *header)
{
	u32 arrived = header->arrived, seq;
	struct timely_ndp_slot *slot;
	bool progress = false;

	for (; arrived; arrived &= arrived - 1) {
		seq = header->cum + 1 + __ffs64(arrived);
		slot = sender_pending(s, seq);
		if (!slot)
			continue;
		sender_arrived(s, slot);
		sender_set_state(s, seq, TIMELY_NDP_SLOT_ACKED);
		progress = true;
	}
	return progress;
}

/* All packets before @cum have arrived. */
static bool sender_advance(struct timely_ndp_sender *s, u32 cum)
{
	bool progress = timely_ndp_before(s->una, cum);

	while (timely_ndp_before(s->una, cum)) {
		sender_arrived(s, sender_slot(s, s->una));
		sender_set_state(s, s->una, TIMELY_NDP_SLOT_FREE);
		s->una++;
	}
	return progress;
}

static bool sender_take_credits(struct timely_ndp_sender *s,
				const struct timely_ndp_header *header, u64 now_ns)
{
	u32 promised = header->credits + header->owed;
	bool expected = sender_expects_pulls(s);

	/* The peer owes at most what was used. */
	if (timely_ndp_before(s->used, promised))
		promised = s->used;
	if (timely_ndp_before(s->promised, promised))
		s->promised = promised;
	if (!expected)
		s->last_pull_ns = now_ns;
	if (!timely_ndp_before(s->granted, header->credits))
		return false;
	s->stats.pulls += header->credits - s->granted;
	s->pulled += header->credits - s->granted;
	s->granted = header->credits;
	if (timely_ndp_before(s->promised, s->granted))
		s->promised = s->granted;
	s->pull_gap_ns = (s->pull_gap_ns + (now_ns - s->last_pull_ns)) / 2;
	s->last_pull_ns = now_ns;
	return true;
}

/* Without trimming, packets that were sent well before one that has arrived are lost. */
static void sender_find_gaps(struct timely_ndp_sender *s)
{
	u64 reorder_ns = s->srtt_ns >> SENDER_GAP_SHIFT;

	while (s->sent_list.count &&
	       s->slots[s->sent_list.first].sent_ns + reorder_ns < s->newest_acked_ns) {
		sender_lose(s);
		s->stats.gaps++;
	}
}

/**
 * timely_ndp_sender_answer() - the peer has sent an ACK, NACK or PULL
 * @s: the sender
 * @header: the answer
 * @now_ns: current time
 *
 * Return: false if the answer has impossible contents; the sender is unchanged then, except for a
 * counter.
 */
bool timely_ndp_sender_answer(struct timely_ndp_sender *s, const struct timely_ndp_header *header,
			      u64 now_ns)
{
	bool progress = false;

	if (!sender_plausible(s, header)) {
		s->stats.invalid++;
		return false;
	}
	s->answered = true;
	s->silent = 0;
	s->wait_ns = now_ns;
	if (header->type == TIMELY_NDP_ACK)
		progress = sender_ack(s, header, now_ns);
	else if (header->type == TIMELY_NDP_NACK)
		progress = sender_nack(s, header, now_ns);
	progress |= sender_advance(s, header->cum);
	progress |= sender_take_arrived(s, header);
	progress |= sender_take_credits(s, header, now_ns);
	if (timely_ndp_before(s->limit, header->limit)) {
		s->limit = header->limit;
		progress = true;
	}
	if (progress)
		s->backoff = 0;
	if (s->graceful)
		sender_find_gaps(s);
	return true;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_answer);

/**
 * timely_ndp_sender_came_back() - a DATA packet of this sender did not reach the peer
 * @s: the sender
 * @header: header of the packet
 * @now_ns: current time
 *
 * A switch has returned the packet, or the sender was told in another way: by ICMP, or by a host
 * that wants a cookie first. The packet is sent again with the next pull. It is sent at once if
 * most recent packets arrived, so that another path is likely to work, or if no pull is to be
 * expected: no packet is in flight and all credits that the receiver owes are granted, which
 * includes that the whole first window came back (section 3.2.4). The latter holds for the first
 * time only: in a very large incast a packet would otherwise travel back and forth all the time.
 * Afterwards it is sent again after timeouts.
 *
 * Return: false if no such packet is in flight; nothing has changed then.
 */
bool timely_ndp_sender_came_back(struct timely_ndp_sender *s,
				 const struct timely_ndp_header *header, u64 now_ns)
{
	struct timely_ndp_slot *slot = sender_pending(s, header->seq);
	bool mostly_acks = s->ack_share >= SENDER_MOSTLY_ACKS;

	if (!slot || slot->state != TIMELY_NDP_SLOT_SENT || header->tries != slot->tries)
		return false;
	timely_ndp_paths_nack(s->paths, slot->path);
	sender_set_state(s, header->seq, TIMELY_NDP_SLOT_RESEND);
	sender_count_share(s, false);
	s->wait_ns = now_ns;
	/* The network works, and its queues are short, so the sender need not wait for long. */
	s->backoff = min_t(u8, s->backoff, SENDER_RETURNED_BACKOFF);
	if (mostly_acks ||
	    (!slot->tries && !s->sent_list.count && !sender_expects_pulls(s)))
		s->free++;
	return true;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_came_back);

/**
 * timely_ndp_sender_returned() - a switch has returned a DATA packet of this sender
 * @s: the sender
 * @header: header of the packet
 * @now_ns: current time
 *
 * As timely_ndp_sender_came_back(). In addition, this shows that the network trims packets.
 */
void timely_ndp_sender_returned(struct timely_ndp_sender *s,
				const struct timely_ndp_header *header, u64 now_ns)
{
	u32 free = s->free;

	if (!timely_ndp_sender_came_back(s, header, now_ns))
		return;
	s->trims = true;
	s->graceful = false;
	s->stats.returned++;
	s->stats.returned_at_once += s->free - free;
}
EXPORT_SYMBOL_GPL(timely_ndp_sender_returned);
