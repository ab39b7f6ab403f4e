/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NDP on the wire (SIGCOMM'17): encoding, decoding and verification of headers, the checksum of the
 * payload, and cookies. See net/timely/engine/ndp_wire.c. The paper names the contents of packets
 * but no format; this project's format is below.
 *
 * An NDP packet is a UDP packet with a UDP checksum of 0. The payload of UDP starts with a header
 * of 36 to 56 bytes, in network byte order:
 *
 *	offset	bytes	contents
 *	 0	1	version, 3, in the upper four bits; type in the lower ones
 *	 1	1	flags
 *	 2	2	source port of the socket
 *	 4	2	destination port of the socket
 *	 6	1	DATA: path; ACK, NACK: path of the answered packet
 *	 7	1	DATA: transmission; ACK, NACK: transmission of the answered packet
 *	 8	8	connection
 *	16	4	DATA: packet number; ACK, NACK: number of the answered packet
 *	20	4	DATA, PROBE: credits used; ACK, NACK, PULL: credits granted
 *	24	4	DATA: checksum of the payload; ACK, NACK, PULL: first packet number that has
 *			not arrived
 *	28	2	DATA: bytes of payload before trimming; ACK, NACK, PULL: credits owed
 *	30	2	DATA, PROBE: credits used that the sender does not know to be granted; ACK,
 *			NACK, PULL: packets for which there is room from the first that has not
 *			arrived
 *	32	4	checksum of the header
 *
 * With the flag TIMELY_NDP_TAGGED follow 12 bytes: the number of the key, three bytes of 0, and the
 * tag with 8 bytes. In ACKs, NACKs and PULLs follow 4 bytes: which of the 32 packets behind the
 * first one that has not arrived have arrived, the first of them in the lowest bit. With the flag
 * TIMELY_NDP_COOKIED, and in packets of the type COOKIE, the cookie follows with 8 bytes.
 *
 * Fields that a type does not use are 0. Payload follows in DATA packets only.
 *
 * With Ethernet, a VLAN tag, IPv6, UDP, tag and cookie, the headers have 122 bytes. So a switch
 * that trims frames to 128 bytes leaves the header whole; 86 bytes are enough for IPv4 over
 * Ethernet without a tag. The checksum of the header covers the IP addresses and the header, with
 * tag and cookie. Trimming changes neither of them. A switch that returns a packet to its sender
 * exchanges the addresses; the checksum remains right, because it does not depend on the order of
 * the two addresses.
 *
 * UDP ports are no part of the format: the source port of UDP selects the path in the network.
 */
#ifndef _TIMELY_ENGINE_NDP_WIRE_H
#define _TIMELY_ENGINE_NDP_WIRE_H

#include <linux/types.h>

#include "orack.h"

#define TIMELY_NDP_VERSION	3
#define TIMELY_NDP_BYTES	36	/* of a header without any of the following */
#define TIMELY_NDP_TAG_BYTES	12	/* with the number of the key */
#define TIMELY_NDP_ARRIVED_BYTES	4
#define TIMELY_NDP_COOKIE_BYTES	8
#define TIMELY_NDP_MAX_BYTES	(TIMELY_NDP_BYTES + TIMELY_NDP_TAG_BYTES + \
				 TIMELY_NDP_COOKIE_BYTES)

/* Most bytes of payload in a packet: what a UDP packet over IPv4 can carry beside the header. */
#define TIMELY_NDP_MAX_PAYLOAD	(65535 - 20 - 8 - TIMELY_NDP_MAX_BYTES)

/**
 * enum timely_ndp_type - types of packets
 * @TIMELY_NDP_DATA: a packet of the stream; with the flag TIMELY_NDP_FIN possibly without payload
 * @TIMELY_NDP_ACK: a DATA packet has arrived whole
 * @TIMELY_NDP_NACK: the payload of a DATA packet did not arrive, or had no room
 * @TIMELY_NDP_PULL: grants credits, or says that there is room again
 * @TIMELY_NDP_PROBE: asks for a PULL with the present counters; also the keepalive
 * @TIMELY_NDP_RESET: the connection does not exist at the sender of this packet
 * @TIMELY_NDP_COOKIE: the first packets must be sent again with the cookie of this packet
 */
enum timely_ndp_type {
	TIMELY_NDP_DATA = 1,
	TIMELY_NDP_ACK,
	TIMELY_NDP_NACK,
	TIMELY_NDP_PULL,
	TIMELY_NDP_PROBE,
	TIMELY_NDP_RESET,
	TIMELY_NDP_COOKIE,
};

/* Flags. All other bits are 0. */
#define TIMELY_NDP_SYN		0x01	/* DATA, PROBE: sent before any answer of the peer */
#define TIMELY_NDP_LAST		0x02	/* DATA: the sender has no packet with a higher number */
#define TIMELY_NDP_FIN		0x04	/* DATA: the stream ends with this packet */
#define TIMELY_NDP_RTX		0x08	/* DATA: a retransmission */
#define TIMELY_NDP_INITIATOR	0x10	/* sent by the side that opened the connection */
#define TIMELY_NDP_COOKIED	0x20	/* DATA, PROBE: the header has a cookie */
#define TIMELY_NDP_TRIMMED	0x40	/* NACK: a switch trimmed the packet */
#define TIMELY_NDP_TAGGED	0x80	/* on the wire only: the header has a tag */

/**
 * struct timely_ndp_header - the contents of a header, in host byte order
 * @conn: number of the connection, chosen at random by the side that opens the connection
 * @cookie: cookie; 0 where the header has none
 * @seq: DATA: packet number, 0 for the first packet of a stream, wraps; ACK, NACK: number of the
 *	answered packet; otherwise 0
 * @credits: DATA, PROBE: number of credits that the sender has used, with this packet; ACK, NACK,
 *	PULL: number of credits that the receiver has granted (the pull counter); wraps
 * @seen: DATA, PROBE: number of credits granted by the receiver, as far as the sender knows; at
 *	most 65535 less than @credits
 * @cum: ACK, NACK, PULL: first packet number that has not arrived whole
 * @arrived: ACK, NACK, PULL: bit i: packet @cum + 1 + i has arrived whole
 * @limit: ACK, NACK, PULL: first packet number that the receiver has no room for, at most 65535
 *	more than @cum
 * @sum: DATA: timely_ndp_sum() of the payload
 * @length: DATA: bytes of payload before trimming, 0 to TIMELY_NDP_MAX_PAYLOAD
 * @owed: ACK, NACK, PULL: credits that are used and not yet granted again, at most 65535
 * @sport: source port of the socket, 1 to 65535
 * @dport: destination port of the socket, 1 to 65535
 * @flags: TIMELY_NDP_SYN and others, without TIMELY_NDP_TAGGED
 * @path: DATA: number of the path; ACK, NACK: path of the answered packet
 * @tries: DATA: number of earlier transmissions, modulo 256; ACK, NACK: of the answered packet
 * @type: enum timely_ndp_type
 * @key: number of the key that made the tag; 0 for none
 *
 * The packet number is the offset from the first packet of the connection that the paper puts into
 * packets of the first round trip, because packet numbers start at 0.
 */
struct timely_ndp_header {
	u64 conn;
	u64 cookie;
	u32 seq;
	u32 credits;
	u32 seen;
	u32 cum;
	u32 arrived;
	u32 limit;
	u32 sum;
	u16 length;
	u16 owed;
	u16 sport;
	u16 dport;
	u8 flags;
	u8 path;
	u8 tries;
	u8 type;
	u8 key;
};

/**
 * struct timely_ndp_addresses - the IP addresses of a packet
 * @saddr: source address; with IPv4, the address is in the first word, and the other words are 0
 * @daddr: destination address, in the format of @saddr
 * @family: AF_INET or AF_INET6
 */
struct timely_ndp_addresses {
	__be32 saddr[4];
	__be32 daddr[4];
	u16 family;
};

/**
 * enum timely_ndp_decoded - what timely_ndp_decode() found
 * @TIMELY_NDP_WHOLE: a packet with all its payload; the payload has not been compared with its sum
 * @TIMELY_NDP_CUT: a DATA packet, with some or all of the payload missing
 * @TIMELY_NDP_MALFORMED: no NDP packet of this version, or shorter than its header, or with bytes
 *	after its end
 * @TIMELY_NDP_DAMAGED: the checksum of the header is wrong
 */
enum timely_ndp_decoded {
	TIMELY_NDP_WHOLE,
	TIMELY_NDP_CUT,
	TIMELY_NDP_MALFORMED,
	TIMELY_NDP_DAMAGED,
};

u32 timely_ndp_encode(u8 *wire, const struct timely_ndp_header *header,
		      const struct timely_ndp_addresses *addresses,
		      const struct timely_orack_key *key);
enum timely_ndp_decoded timely_ndp_decode(struct timely_ndp_header *header, const u8 *wire,
					  u32 bytes, u32 total,
					  const struct timely_ndp_addresses *addresses);
bool timely_ndp_verify(const struct timely_ndp_header *header, const u8 *wire,
		       const struct timely_ndp_addresses *addresses,
		       const struct timely_orack_key *key);

/* Whether a header has a cookie. */
static inline bool timely_ndp_has_cookie(const struct timely_ndp_header *header)
{
	return header->type == TIMELY_NDP_COOKIE || header->flags & TIMELY_NDP_COOKIED;
}

/* Whether a header is that of an ACK, NACK or PULL. */
static inline bool timely_ndp_is_answer(const struct timely_ndp_header *header)
{
	return header->type == TIMELY_NDP_ACK || header->type == TIMELY_NDP_NACK ||
	       header->type == TIMELY_NDP_PULL;
}

/**
 * timely_ndp_header_bytes() - length of a header
 * @header: the header
 *
 * Return: bytes of the header on the wire; payload follows.
 */
static inline u32 timely_ndp_header_bytes(const struct timely_ndp_header *header)
{
	u32 bytes = TIMELY_NDP_BYTES + (header->key ? TIMELY_NDP_TAG_BYTES : 0);

	if (timely_ndp_is_answer(header))
		return bytes + TIMELY_NDP_ARRIVED_BYTES;
	return bytes + (timely_ndp_has_cookie(header) ? TIMELY_NDP_COOKIE_BYTES : 0);
}

/* The checksum of payload works on blocks of four words of 64 bits. */
#define TIMELY_NDP_SUM_LANES	4
#define TIMELY_NDP_SUM_BLOCK	(8 * TIMELY_NDP_SUM_LANES)

/**
 * struct timely_ndp_sum - state of a payload's checksum, for payload that lies in several pieces
 * @lanes: one for each word of a block
 * @bytes: number of bytes so far
 * @rest: the bytes after the last whole block
 */
struct timely_ndp_sum {
	u64 lanes[TIMELY_NDP_SUM_LANES];
	u64 bytes;
	u8 rest[TIMELY_NDP_SUM_BLOCK];
};

void timely_ndp_sum_start(struct timely_ndp_sum *sum);
void timely_ndp_sum_add(struct timely_ndp_sum *sum, const void *data, u32 bytes);
u32 timely_ndp_sum_end(struct timely_ndp_sum *sum);

/**
 * timely_ndp_sum() - checksum of a payload that lies in one piece
 * @data: the payload
 * @bytes: length of the payload
 *
 * The checksum detects corruption, with a chance of 2^-32 to miss it; it does not protect against
 * forgery.
 *
 * Return: the checksum.
 */
static inline u32 timely_ndp_sum(const void *data, u32 bytes)
{
	struct timely_ndp_sum sum;

	timely_ndp_sum_start(&sum);
	timely_ndp_sum_add(&sum, data, bytes);
	return timely_ndp_sum_end(&sum);
}

/* A cookie is valid for one to two periods of this many ns (2^32 ns = 4.3 s). */
#define TIMELY_NDP_COOKIE_SHIFT	32

u64 timely_ndp_cookie(const struct timely_ndp_header *header,
		      const struct timely_ndp_addresses *addresses,
		      const struct timely_orack_key *secret, u64 now_ns);
bool timely_ndp_cookie_valid(const struct timely_ndp_header *header,
			     const struct timely_ndp_addresses *addresses,
			     const struct timely_orack_key *secret, u64 now_ns);

/**
 * timely_ndp_before() - compare two numbers that wrap
 * @a: a packet number or number of credits
 * @b: another one, less than 2^31 away
 *
 * Return: true if @a comes before @b.
 */
static inline bool timely_ndp_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/**
 * timely_ndp_says_arrived() - check whether an answer says that a packet has arrived
 * @answer: header of an ACK, NACK or PULL
 * @seq: number of the packet
 *
 * Return: true if the answer needs no other answer beside it for this packet.
 */
static inline bool timely_ndp_says_arrived(const struct timely_ndp_header *answer, u32 seq)
{
	u32 after = seq - answer->cum - 1;

	return timely_ndp_before(seq, answer->cum) || (after < 32 && answer->arrived >> after & 1);
}

#endif /* _TIMELY_ENGINE_NDP_WIRE_H */
