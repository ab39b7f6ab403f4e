/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiver of one NDP stream: which packets have arrived, the answer to each packet, and how
 * many pulls the stream needs; and the record of past connections. See
 * net/timely/engine/ndp_receiver.c.
 *
 * Use, with the caller's lock of the connection:
 *
 *	timely_ndp_receiver_init()
 *	timely_ndp_receiver_data()	for each DATA packet, whole or trimmed; send the answer, see
 *					below
 *	timely_ndp_receiver_probe()	for each PROBE; send the answer at once
 *	timely_ndp_receiver_room()	after the application has read
 *	timely_ndp_receiver_pull()	when the stream's turn in the pull queue comes (ndp_pull.h)
 *	timely_ndp_receiver_grant()	instead, when it comes before an answer has been sent
 *
 * After each of these calls, pass timely_ndp_receiver_wanted() to
 * timely_ndp_pull_set(). The caller stores the payload of a packet with the verdict
 * TIMELY_NDP_RECEIVED under the packet's number, and delivers packets before @cum in order.
 *
 * An answer to a DATA packet is sent at once, except for an ACK that need not be sent, because a
 * later answer will say that all packets up to this one have arrived. Such an ACK may wait for that
 * answer, or for a pull to go with.
 *
 * Answers have no @conn, @sport, @dport and @key, and no flag TIMELY_NDP_INITIATOR: the caller
 * fills them in.
 */
#ifndef _TIMELY_ENGINE_NDP_RECEIVER_H
#define _TIMELY_ENGINE_NDP_RECEIVER_H

#include <linux/types.h>

#include "ndp_wire.h"

/* More credits than this are never in use at once; a packet that claims more is refused. */
#define TIMELY_NDP_MAX_CREDITS	32768

/**
 * enum timely_ndp_verdict - what timely_ndp_receiver_data() did with a packet
 * @TIMELY_NDP_RECEIVED: a new packet: store its payload, and send the answer, an ACK
 * @TIMELY_NDP_REPEATED: a packet that had arrived before: send the answer, an ACK
 * @TIMELY_NDP_MISSED: a packet without its payload, or without room: send the answer, a NACK
 * @TIMELY_NDP_REFUSED: a packet with impossible contents: drop it, and send nothing
 */
enum timely_ndp_verdict {
	TIMELY_NDP_RECEIVED,
	TIMELY_NDP_REPEATED,
	TIMELY_NDP_MISSED,
	TIMELY_NDP_REFUSED,
};

/**
 * enum timely_ndp_payload - state of a DATA packet's payload
 * @TIMELY_NDP_PAYLOAD_WHOLE: all bytes are there, and timely_ndp_sum() is that of the header
 * @TIMELY_NDP_PAYLOAD_CUT: a switch has trimmed the packet
 * @TIMELY_NDP_PAYLOAD_BAD: the sum is wrong, or the caller has no memory for the payload
 */
enum timely_ndp_payload {
	TIMELY_NDP_PAYLOAD_WHOLE,
	TIMELY_NDP_PAYLOAD_CUT,
	TIMELY_NDP_PAYLOAD_BAD,
};

/**
 * struct timely_ndp_receiver_stats - counters of a receiver
 * @received: new packets
 * @repeated: packets that had arrived before
 * @trimmed: packets that a switch had trimmed
 * @bad: packets whose payload was damaged, or for which the caller had no memory
 * @no_room: packets beyond the limit
 * @refused: packets with impossible contents
 * @pulls: credits granted by PULL packets
 * @returned: credits granted by other packets, because the sender had no more data
 */
struct timely_ndp_receiver_stats {
	u64 received;
	u64 repeated;
	u64 trimmed;
	u64 bad;
	u64 no_room;
	u64 refused;
	u64 pulls;
	u64 returned;
};

/**
 * struct timely_ndp_receiver - the receiver of a stream
 * @map: memory of the caller, a bit for each of @span packets: whether the packet has arrived;
 *	packet n uses bit n modulo @span
 * @span: number of bits of @map, a power of two
 * @cum: first packet that has not arrived whole
 * @high: number after the highest packet seen, whole or trimmed
 * @limit: first packet number without room, at most @cum + @span
 * @told: the limit in the last answer
 * @ahead: number of packets from @cum on that have arrived
 * @used: credits that the sender has used, as far as known
 * @granted: credits granted: the pull counter
 * @seen: credits granted, as far as the sender knows; pulls after these are on their way
 * @fin: number of the packet that ends the stream, if @fin_known
 * @last: the highest packet seen had the flag TIMELY_NDP_LAST
 * @fin_known: a packet with the flag TIMELY_NDP_FIN was seen
 * @stats: counters
 */
struct timely_ndp_receiver {
	u64 *map;
	u32 span;
	u32 cum;
	u32 high;
	u32 limit;
	u32 told;
	u32 ahead;
	u32 used;
	u32 granted;
	u32 seen;
	u32 fin;
	bool last;
	bool fin_known;
	struct timely_ndp_receiver_stats stats;
};

int timely_ndp_receiver_init(struct timely_ndp_receiver *r, u64 *map, u32 span, u32 limit);
enum timely_ndp_verdict timely_ndp_receiver_data(struct timely_ndp_receiver *r,
						 const struct timely_ndp_header *header,
						 enum timely_ndp_payload payload,
						 struct timely_ndp_header *answer);
bool timely_ndp_receiver_probe(struct timely_ndp_receiver *r,
			       const struct timely_ndp_header *header,
			       struct timely_ndp_header *answer);
bool timely_ndp_receiver_room(struct timely_ndp_receiver *r, u32 limit,
			      struct timely_ndp_header *answer);
u32 timely_ndp_receiver_wanted(const struct timely_ndp_receiver *r);
void timely_ndp_receiver_grant(struct timely_ndp_receiver *r, u32 pulls,
			       struct timely_ndp_header *answer);
void timely_ndp_receiver_pull(struct timely_ndp_receiver *r, u32 pulls,
			      struct timely_ndp_header *answer);

/**
 * timely_ndp_receiver_done() - check whether the whole stream has arrived
 * @r: the receiver
 *
 * Return: true if the end of the stream is known and all packets have arrived.
 */
static inline bool timely_ndp_receiver_done(const struct timely_ndp_receiver *r)
{
	return r->fin_known && r->cum == r->fin + 1;
}

/**
 * timely_ndp_receiver_idle() - check whether the sender has nothing to send, as far as known
 * @r: the receiver
 *
 * Return: true if the sender had no more packets and all have arrived.
 */
static inline bool timely_ndp_receiver_idle(const struct timely_ndp_receiver *r)
{
	return r->last && r->cum == r->high;
}

/**
 * timely_ndp_receiver_pulls_on_way() - check whether packets will come that pulls have asked for
 * @r: the receiver
 *
 * Then there will be another answer, so that an ACK may wait for it.
 *
 * Return: true if no packet has shown yet that the sender knows the last pull.
 */
static inline bool timely_ndp_receiver_pulls_on_way(const struct timely_ndp_receiver *r)
{
	return r->granted != r->seen;
}

/**
 * struct timely_ndp_past_entry - a connection that has ended
 * @conn: number of the connection, combined with its addresses and ports by the caller's hash
 * @until_ns: the entry is kept until this time; 0: unused
 * @cum: number of packets that had arrived, for the ACK of a late packet
 */
struct timely_ndp_past_entry {
	u64 conn;
	u64 until_ns;
	u32 cum;
};

/* An entry can be in this many places. */
#define TIMELY_NDP_PAST_WAYS	8

/**
 * struct timely_ndp_past - connections that have ended lately (time-wait), so that late packets do
 *	not open a connection a second time
 * @entries: memory of the caller
 * @sets: number of sets of TIMELY_NDP_PAST_WAYS entries, a power of two
 * @full_until_ns: an entry was given up before its time, so unknown connections may be past ones
 *	until this time
 */
struct timely_ndp_past {
	struct timely_ndp_past_entry *entries;
	u32 sets;
	u64 full_until_ns;
};

int timely_ndp_past_init(struct timely_ndp_past *p, struct timely_ndp_past_entry *memory,
			 u32 entries);
void timely_ndp_past_add(struct timely_ndp_past *p, u64 conn, u32 cum, u64 until_ns, u64 now_ns);
const struct timely_ndp_past_entry *timely_ndp_past_find(const struct timely_ndp_past *p, u64 conn,
							 u64 now_ns);

/**
 * timely_ndp_past_full() - check whether past connections may be forgotten
 * @p: the record
 * @now_ns: current time
 *
 * While this is true, at-most-once delivery needs another proof that a connection is new, such as
 * a cookie.
 *
 * Return: true from the time at which an entry was given up early until the entry's end.
 */
static inline bool timely_ndp_past_full(const struct timely_ndp_past *p, u64 now_ns)
{
	return now_ns < p->full_until_ns;
}

#endif /* _TIMELY_ENGINE_NDP_RECEIVER_H */
