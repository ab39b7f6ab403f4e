// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver of an NDP stream (SIGCOMM'17, section 3.2), and the record of past connections.
 *
 * Any packet may arrive first. Each DATA packet has an answer: an ACK if its payload has arrived,
 * now or before, otherwise a NACK. Each answer names up to 32 packets behind the first missing one
 * that have arrived. The caller may leave out an ACK if a later answer says the same.
 *
 * Credits. DATA packets carry the number of credits that their sender has used, answers the number
 * that this receiver has granted (the pull counter). The difference is owed. Owed credits are
 * granted by pulls, but only as many as packets can still come: if the sender had no more packets
 * when it sent the highest one (the flag LAST), those missing before it; otherwise those that there
 * is room for. When the sender has no more packets and all have arrived, the last ACK grants what
 * is owed. So the stream has no pulls left in the queue, and later packets are pushed instead of
 * pulled. An application that does not read closes the room and so stops the pulls.
 *
 * Pure: no packet, socket or clock.
 */

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "ndp_receiver.h"

/* A packet number this far beyond the first missing one is impossible. */
#define RECEIVER_MAX_AHEAD	65536
#define RECEIVER_MIN_SPAN	64
#define RECEIVER_MAX_SPAN	32768

/**
 * timely_ndp_receiver_init() - set up a receiver
 * @r: the receiver
 * @map: memory of @span / 64 words, which is set
 * @span: most packets between the first missing one and the last one that can be stored; a power of
 *	two, 64 to 32768
 * @limit: number of packets that there is room for at first, at most @span; a limit below the
 *	peer's initial window costs retransmissions
 *
 * Return: 0, or -EINVAL if a parameter is out of its range.
 */
int timely_ndp_receiver_init(struct timely_ndp_receiver *r, u64 *map, u32 span, u32 limit)
{
	if (span < RECEIVER_MIN_SPAN || span > RECEIVER_MAX_SPAN || span & (span - 1))
		return -EINVAL;
	if (!limit || limit > span)
		return -EINVAL;
	memset(r, 0, sizeof(*r));
	memset(map, 0, span / 8);
	r->map = map;
	r->span = span;
	r->limit = limit;
	r->told = limit;
	return 0;
}
EXPORT_SYMBOL_GPL(timely_ndp_receiver_init);

static u64 *receiver_word(const struct timely_ndp_receiver *r, u32 seq)
{
	return &r->map[(seq & (r->span - 1)) / 64];
}

/* Whether packet @seq, less than the span beyond the first missing one, has arrived. */
static bool receiver_has(const struct timely_ndp_receiver *r, u32 seq)
{
	return *receiver_word(r, seq) >> (seq % 64) & 1;
}

static bool receiver_has_arrived(const struct timely_ndp_receiver *r, u32 seq)
{
	if (timely_ndp_before(seq, r->cum))
		return true;
	return seq - r->cum < r->span && receiver_has(r, seq);
}

/* Which of the 32 packets after the first missing one have arrived, the first in the lowest bit. */
static u32 receiver_map(const struct timely_ndp_receiver *r)
{
	u32 first = r->cum + 1, skip = first % 64;
	u64 map;

	if (!r->ahead)
		return 0;
	map = *receiver_word(r, first) >> skip;
	if (skip > 32)
		map |= *receiver_word(r, first + 32) << (64 - skip);
	return map;
}

static u32 receiver_owed(const struct timely_ndp_receiver *r)
{
	return r->used - r->granted;
}

/* Whether the numbers of credits in a packet are possible. */
static bool receiver_credits_plausible(const struct timely_ndp_receiver *r,
				       const struct timely_ndp_header *header)
{
	if (timely_ndp_before(r->granted, header->seen))
		return false;
	return !timely_ndp_before(r->used, header->credits) ||
	       header->credits - r->granted <= TIMELY_NDP_MAX_CREDITS;
}

/* Whether a DATA packet is possible: its number, its credits, and the end of the stream. */
static bool receiver_plausible(const struct timely_ndp_receiver *r,
			       const struct timely_ndp_header *header)
{
	if (!receiver_credits_plausible(r, header))
		return false;
	if (!timely_ndp_before(header->seq, r->cum) && header->seq - r->cum >= RECEIVER_MAX_AHEAD)
		return false;
	if (r->fin_known && timely_ndp_before(r->fin, header->seq))
		return false;
	if (!(header->flags & TIMELY_NDP_FIN))
		return true;
	return r->fin_known ? header->seq == r->fin : !timely_ndp_before(header->seq + 1, r->high);
}

static void receiver_take_credits(struct timely_ndp_receiver *r,
				  const struct timely_ndp_header *header)
{
	if (timely_ndp_before(r->used, header->credits))
		r->used = header->credits;
	if (timely_ndp_before(r->seen, header->seen))
		r->seen = header->seen;
}

/* Remember what a packet's header says about the sender. */
static void receiver_note(struct timely_ndp_receiver *r, const struct timely_ndp_header *header)
{
	receiver_take_credits(r, header);
	if (!timely_ndp_before(header->seq + 1, r->high)) {
		r->high = header->seq + 1;
		r->last = header->flags & TIMELY_NDP_LAST;
	}
	if (header->flags & TIMELY_NDP_FIN) {
		r->fin_known = true;
		r->fin = header->seq;
	}
}

/* Note the arrival of a packet that there is room for. */
static void receiver_store(struct timely_ndp_receiver *r, u32 seq)
{
	*receiver_word(r, seq) |= BIT_ULL(seq % 64);
	r->ahead++;
	while (receiver_has(r, r->cum)) {
		*receiver_word(r, r->cum) &= ~BIT_ULL(r->cum % 64);
		r->ahead--;
		r->cum++;
	}
}

/* If the sender had no more packets and all have arrived, it needs no pulls: grant what is owed. */
static void receiver_return_credits(struct timely_ndp_receiver *r)
{
	if (!timely_ndp_receiver_idle(r))
		return;
	r->stats.returned += receiver_owed(r);
	r->granted = r->used;
}

static void receiver_fill(struct timely_ndp_receiver *r, struct timely_ndp_header *answer, u8 type)
{
	memset(answer, 0, sizeof(*answer));
	answer->type = type;
	answer->credits = r->granted;
	answer->owed = min_t(u32, receiver_owed(r), U16_MAX);
	answer->cum = r->cum;
	answer->arrived = receiver_map(r);
	answer->limit = r->limit;
	r->told = r->limit;
}

static enum timely_ndp_verdict receiver_judge(struct timely_ndp_receiver *r, u32 seq,
					      enum timely_ndp_payload payload)
{
	if (receiver_has_arrived(r, seq)) {
		r->stats.repeated++;
		return TIMELY_NDP_REPEATED;
	}
	if (payload == TIMELY_NDP_PAYLOAD_CUT) {
		r->stats.trimmed++;
		return TIMELY_NDP_MISSED;
	}
	if (payload != TIMELY_NDP_PAYLOAD_WHOLE) {
		r->stats.bad++;
		return TIMELY_NDP_MISSED;
	}
	if (!timely_ndp_before(seq, r->limit)) {
		r->stats.no_room++;
		return TIMELY_NDP_MISSED;
	}
	r->stats.received++;
	receiver_store(r, seq);
	return TIMELY_NDP_RECEIVED;
}

/**
 * timely_ndp_receiver_data() - a DATA packet has arrived
 * @r: the receiver
 * @header: the packet's header
 * @payload: state of the payload
 * @answer: set to the ACK or NACK to send, unless the packet is refused; the caller adds ports,
 *	connection and key
 *
 * Return: TIMELY_NDP_RECEIVED, TIMELY_NDP_REPEATED, TIMELY_NDP_MISSED or TIMELY_NDP_REFUSED.
 */
enum timely_ndp_verdict timely_ndp_receiver_data(struct timely_ndp_receiver *r,
						 const struct timely_ndp_header *header,
						 enum timely_ndp_payload payload,
						 struct timely_ndp_header *answer)
{
	enum timely_ndp_verdict verdict;
	bool ack;

	if (!receiver_plausible(r, header)) {
		r->stats.refused++;
		return TIMELY_NDP_REFUSED;
	}
	receiver_note(r, header);
	verdict = receiver_judge(r, header->seq, payload);
	receiver_return_credits(r);
	ack = verdict != TIMELY_NDP_MISSED;
	receiver_fill(r, answer, ack ? TIMELY_NDP_ACK : TIMELY_NDP_NACK);
	if (!ack && payload == TIMELY_NDP_PAYLOAD_CUT)
		answer->flags = TIMELY_NDP_TRIMMED;
	answer->seq = header->seq;
	answer->path = header->path;
	answer->tries = header->tries;
	return verdict;
}
EXPORT_SYMBOL_GPL(timely_ndp_receiver_data);

/**
 * timely_ndp_receiver_probe() - a PROBE has arrived
 * @r: the receiver
 * @header: the packet's header
 * @answer: set to the PULL to send, which repeats what was granted
 *
 * Return: false if the packet has impossible contents; nothing is to be sent then.
 */
bool timely_ndp_receiver_probe(struct timely_ndp_receiver *r,
			       const struct timely_ndp_header *header,
			       struct timely_ndp_header *answer)
{
	if (!receiver_credits_plausible(r, header)) {
		r->stats.refused++;
		return false;
	}
	receiver_take_credits(r, header);
	receiver_return_credits(r);
	receiver_fill(r, answer, TIMELY_NDP_PULL);
	return true;
}
EXPORT_SYMBOL_GPL(timely_ndp_receiver_probe);

/**
 * timely_ndp_receiver_room() - the application has read, so there is room for more packets
 * @r: the receiver
 * @limit: first packet number that there is no room for; more than the span counts as the span,
 *	less than before changes nothing
 * @answer: set to a PULL if one is to be sent
 *
 * If pulls are owed, they tell the sender of the room, and no other packet is needed.
 *
 * Return: true if @answer is to be sent: the sender has no room left, as far as it knows, and no
 * pull will tell it otherwise.
 */
bool timely_ndp_receiver_room(struct timely_ndp_receiver *r, u32 limit,
			      struct timely_ndp_header *answer)
{
	bool stalled = !timely_ndp_before(r->high, r->told) && !receiver_owed(r);

	if (!timely_ndp_before(limit, r->cum) && limit - r->cum > r->span)
		limit = r->cum + r->span;
	if (!timely_ndp_before(r->limit, limit))
		return false;
	r->limit = limit;
	if (stalled)
		receiver_fill(r, answer, TIMELY_NDP_PULL);
	return stalled;
}
EXPORT_SYMBOL_GPL(timely_ndp_receiver_room);

/**
 * timely_ndp_receiver_wanted() - number of pulls that the stream has use for
 * @r: the receiver
 *
 * Pulls that are on their way ask for some of the missing packets already.
 *
 * Return: the number for timely_ndp_pull_set().
 */
u32 timely_ndp_receiver_wanted(const struct timely_ndp_receiver *r)
{
	u32 end = r->last && timely_ndp_before(r->high, r->limit) ? r->high : r->limit;
	u32 missing = end - r->cum - r->ahead, on_way = r->granted - r->seen;

	return missing > on_way ? min(receiver_owed(r), missing - on_way) : 0;
}
EXPORT_SYMBOL_GPL(timely_ndp_receiver_wanted);

/**
 * timely_ndp_receiver_grant() - grant credits with an answer that has not been sent
 * @r: the receiver
 * @pulls: number of credits, at most timely_ndp_receiver_wanted()
 * @answer: the last answer
 *
 * If the stream's turn comes when a packet is to be answered, no PULL is needed (section 3.2,
 * footnote 4).
 */
void timely_ndp_receiver_grant(struct timely_ndp_receiver *r, u32 pulls,
			       struct timely_ndp_header *answer)
{
	pulls = min(pulls, receiver_owed(r));
	r->granted += pulls;
	r->stats.pulls += pulls;
	answer->credits = r->granted;
	answer->owed = min_t(u32, receiver_owed(r), U16_MAX);
	/* The application may have read since the answer was made. Where pulls are owed,
	 * timely_ndp_receiver_room() relies on them to tell the sender.
	 */
	answer->limit = r->limit;
	r->told = r->limit;
}
EXPORT_SYMBOL_GPL(timely_ndp_receiver_grant);

/**
 * timely_ndp_receiver_pull() - grant credits, because the stream's turn in the pull queue has come
 * @r: the receiver
 * @pulls: number of credits, at most timely_ndp_receiver_wanted()
 * @answer: set to the PULL to send
 */
void timely_ndp_receiver_pull(struct timely_ndp_receiver *r, u32 pulls,
			      struct timely_ndp_header *answer)
{
	receiver_fill(r, answer, TIMELY_NDP_PULL);
	timely_ndp_receiver_grant(r, pulls, answer);
}
EXPORT_SYMBOL_GPL(timely_ndp_receiver_pull);

/**
 * timely_ndp_past_init() - set up an empty record of past connections
 * @p: the record
 * @memory: @entries elements, which are set
 * @entries: number of elements, a power of two of at least TIMELY_NDP_PAST_WAYS
 *
 * Return: 0, or -EINVAL if @entries is out of its range.
 */
int timely_ndp_past_init(struct timely_ndp_past *p, struct timely_ndp_past_entry *memory,
			 u32 entries)
{
	if (entries < TIMELY_NDP_PAST_WAYS || entries & (entries - 1))
		return -EINVAL;
	memset(memory, 0, entries * sizeof(*memory));
	p->entries = memory;
	p->sets = entries / TIMELY_NDP_PAST_WAYS;
	p->full_until_ns = 0;
	return 0;
}
EXPORT_SYMBOL_GPL(timely_ndp_past_init);

static struct timely_ndp_past_entry *past_set(const struct timely_ndp_past *p, u64 conn)
{
	return &p->entries[(conn & (p->sets - 1)) * TIMELY_NDP_PAST_WAYS];
}

static bool past_is(const struct timely_ndp_past_entry *entry, u64 conn, u64 now_ns)
{
	return entry->conn == conn && now_ns < entry->until_ns;
}

/**
 * timely_ndp_past_add() - record a connection that has ended
 * @p: the record
 * @conn: number of the connection, combined with its addresses and ports by a hash of the caller
 *	whose low bits are random
 * @cum: number of packets that had arrived
 * @until_ns: how long to keep the entry
 * @now_ns: current time
 *
 * If there is no place, the entry that ends first is given up, and timely_ndp_past_full() returns
 * true until its time.
 */
void timely_ndp_past_add(struct timely_ndp_past *p, u64 conn, u32 cum, u64 until_ns, u64 now_ns)
{
	struct timely_ndp_past_entry *set = past_set(p, conn), *entry = set;
	u32 i;

	for (i = 0; i < TIMELY_NDP_PAST_WAYS; i++) {
		if (past_is(&set[i], conn, now_ns)) {
			entry = &set[i];
			break;
		}
		if (set[i].until_ns < entry->until_ns)
			entry = &set[i];
	}
	if (now_ns < entry->until_ns && entry->conn != conn)
		p->full_until_ns = max(p->full_until_ns, entry->until_ns);
	*entry = (struct timely_ndp_past_entry) { conn, until_ns, cum };
}
EXPORT_SYMBOL_GPL(timely_ndp_past_add);

/**
 * timely_ndp_past_find() - check whether a connection has ended lately
 * @p: the record
 * @conn: as in timely_ndp_past_add()
 * @now_ns: current time
 *
 * Return: the entry, or NULL if there is none whose time has not passed.
 */
const struct timely_ndp_past_entry *timely_ndp_past_find(const struct timely_ndp_past *p, u64 conn,
							 u64 now_ns)
{
	const struct timely_ndp_past_entry *set = past_set(p, conn);
	u32 i;

	for (i = 0; i < TIMELY_NDP_PAST_WAYS; i++)
		if (past_is(&set[i], conn, now_ns))
			return &set[i];
	return NULL;
}
EXPORT_SYMBOL_GPL(timely_ndp_past_find);
