// SPDX-License-Identifier: GPL-2.0
/*
 * NDP on the wire: headers, their checksum and tag, the checksum of the payload, and cookies. The
 * format is in ndp_wire.h.
 *
 * A switch may shorten a packet at any byte. So UDP's checksum, which covers the payload, is not
 * used. The header has a checksum of its own, and each packet has a checksum of its payload, which
 * counts only if all of the payload has arrived. A packet with a damaged payload is answered like a
 * trimmed one.
 *
 * Where a key is configured, packets have a tag: SipHash-2-4 over the addresses and the header,
 * with zeros for the checksum of the header and for the tag itself. So nobody without the key can
 * open, reset or pull. The tag covers the payload only through the payload's checksum, which is not
 * keyed. Who can change packets on their way can change payload and not be detected.
 *
 * The engine knows no packet, socket or clock.
 */

#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/jhash.h>
#include <linux/minmax.h>
#include <linux/siphash.h>
#include <linux/string.h>

#include "ndp_wire.h"
#include <timely_unaligned.h>

#define NDP_ADDRESS_BYTES	16
/* Places in the header. */
#define NDP_CHECK_AT		32
#define NDP_KEY_AT		TIMELY_NDP_BYTES
#define NDP_TAG_AT		(NDP_KEY_AT + 4)

#define NDP_TYPE_MASK		0x0f
#define NDP_VERSION_SHIFT	4

#define NDP_HEADER_WORDS	(TIMELY_NDP_MAX_BYTES / 4)
#define NDP_ADDRESS_WORDS	(NDP_ADDRESS_BYTES / 4)

/* 2^64 divided by the golden ratio: an odd number whose bits have no pattern. */
#define NDP_SUM_FACTOR		0x9e3779b97f4a7c15ULL
#define NDP_SUM_ROTATE		27

/* Fields that a type of packets has besides the common ones. */
#define NDP_HAS_SEQ		0x01	/* with path and transmission */
#define NDP_HAS_CREDITS		0x02
#define NDP_HAS_ROOM		0x04	/* owed, cum, arrived and limit */
#define NDP_HAS_PAYLOAD		0x08	/* length and sum */
#define NDP_HAS_SEEN		0x10

static const u8 ndp_fields[] = {
	[TIMELY_NDP_DATA] = NDP_HAS_SEQ | NDP_HAS_CREDITS | NDP_HAS_PAYLOAD | NDP_HAS_SEEN,
	[TIMELY_NDP_ACK] = NDP_HAS_SEQ | NDP_HAS_CREDITS | NDP_HAS_ROOM,
	[TIMELY_NDP_NACK] = NDP_HAS_SEQ | NDP_HAS_CREDITS | NDP_HAS_ROOM,
	[TIMELY_NDP_PULL] = NDP_HAS_CREDITS | NDP_HAS_ROOM,
	[TIMELY_NDP_PROBE] = NDP_HAS_CREDITS | NDP_HAS_SEEN,
	[TIMELY_NDP_RESET] = 0,
	[TIMELY_NDP_COOKIE] = 0,
};

/* TIMELY_NDP_TAGGED is allowed with each type. */
static const u8 ndp_flags[] = {
	[TIMELY_NDP_DATA] = TIMELY_NDP_SYN | TIMELY_NDP_LAST | TIMELY_NDP_FIN | TIMELY_NDP_RTX |
			    TIMELY_NDP_INITIATOR | TIMELY_NDP_COOKIED,
	[TIMELY_NDP_ACK] = TIMELY_NDP_INITIATOR,
	[TIMELY_NDP_NACK] = TIMELY_NDP_INITIATOR | TIMELY_NDP_TRIMMED,
	[TIMELY_NDP_PULL] = TIMELY_NDP_INITIATOR,
	[TIMELY_NDP_PROBE] = TIMELY_NDP_SYN | TIMELY_NDP_INITIATOR | TIMELY_NDP_COOKIED,
	[TIMELY_NDP_RESET] = TIMELY_NDP_INITIATOR,
	[TIMELY_NDP_COOKIE] = TIMELY_NDP_INITIATOR,
};

/* The checksum of a header over the addresses and all of the header but the checksum itself. The
 * addresses are combined so that their order does not matter, because a switch that returns a
 * packet exchanges them. jhash() depends on the CPU's byte order, so the bytes are converted to
 * words.
 */
static u32 ndp_check(const u8 *wire, u32 bytes, const struct timely_ndp_addresses *addresses)
{
	u32 words[NDP_ADDRESS_WORDS + NDP_HEADER_WORDS];
	u32 i;

	for (i = 0; i < NDP_ADDRESS_WORDS; i++)
		words[i] = get_unaligned_be32(&addresses->saddr[i]) ^
			   get_unaligned_be32(&addresses->daddr[i]);
	for (i = 0; i < bytes / 4; i++)
		words[NDP_ADDRESS_WORDS + i] = get_unaligned_be32(wire + 4 * i);
	words[NDP_ADDRESS_WORDS + NDP_CHECK_AT / 4] = 0;
	return jhash2(words, NDP_ADDRESS_WORDS + bytes / 4, addresses->family);
}

/* The tag of a header of @bytes. */
static u64 ndp_tag(const u8 *wire, u32 bytes, const struct timely_ndp_addresses *addresses,
		   const struct timely_orack_key *key)
{
	u8 text[2 + 2 * NDP_ADDRESS_BYTES + TIMELY_NDP_MAX_BYTES] __aligned(8);
	u8 *at = text + 2 + 2 * NDP_ADDRESS_BYTES;
	siphash_key_t sip = { { key->words[0], key->words[1] } };
	u64 tag;

	put_unaligned_be16(addresses->family, text);
	memcpy(text + 2, addresses->saddr, NDP_ADDRESS_BYTES);
	memcpy(text + 2 + NDP_ADDRESS_BYTES, addresses->daddr, NDP_ADDRESS_BYTES);
	memcpy(at, wire, bytes);
	put_unaligned_be32(0, at + NDP_CHECK_AT);
	put_unaligned_be64(0, at + NDP_TAG_AT);
	tag = siphash(text, at + bytes - text, &sip);
	/* The key must not stay on the stack. */
	memzero_explicit(&sip, sizeof(sip));
	return tag;
}

/* Write the fields that only some types have. */
static void ndp_encode_fields(u8 *wire, const struct timely_ndp_header *header)
{
	u8 has = ndp_fields[header->type];

	if (has & NDP_HAS_SEQ) {
		wire[6] = header->path;
		wire[7] = header->tries;
		put_unaligned_be32(header->seq, wire + 16);
	}
	if (has & NDP_HAS_CREDITS)
		put_unaligned_be32(header->credits, wire + 20);
	if (has & NDP_HAS_ROOM) {
		put_unaligned_be32(header->cum, wire + 24);
		put_unaligned_be16(header->owed, wire + 28);
		put_unaligned_be16(header->limit - header->cum, wire + 30);
	}
	if (has & NDP_HAS_SEEN)
		put_unaligned_be16(header->credits - header->seen, wire + 30);
	if (has & NDP_HAS_PAYLOAD) {
		put_unaligned_be32(header->sum, wire + 24);
		put_unaligned_be16(header->length, wire + 28);
	}
}

/**
 * timely_ndp_encode() - write a header
 * @wire: buffer of TIMELY_NDP_MAX_BYTES bytes; the bytes of the header are written
 * @header: the contents, with a valid type; fields that the type does not have are not written
 * @addresses: the IP addresses that the packet will have
 * @key: key with the number @header->key, which is not 0, to make the tag; NULL: the header has no
 *	tag, and @header->key must be 0
 *
 * Return: timely_ndp_header_bytes(); the payload follows.
 */
u32 timely_ndp_encode(u8 *wire, const struct timely_ndp_header *header,
		      const struct timely_ndp_addresses *addresses,
		      const struct timely_orack_key *key)
{
	u32 bytes = timely_ndp_header_bytes(header);

	memset(wire, 0, bytes);
	wire[0] = TIMELY_NDP_VERSION << NDP_VERSION_SHIFT | header->type;
	wire[1] = header->flags;
	put_unaligned_be16(header->sport, wire + 2);
	put_unaligned_be16(header->dport, wire + 4);
	put_unaligned_be64(header->conn, wire + 8);
	ndp_encode_fields(wire, header);
	if (timely_ndp_is_answer(header))
		put_unaligned_be32(header->arrived, wire + bytes - TIMELY_NDP_ARRIVED_BYTES);
	else if (timely_ndp_has_cookie(header))
		put_unaligned_be64(header->cookie, wire + bytes - TIMELY_NDP_COOKIE_BYTES);
	if (key) {
		wire[1] |= TIMELY_NDP_TAGGED;
		wire[NDP_KEY_AT] = header->key;
		put_unaligned_be64(ndp_tag(wire, bytes, addresses, key), wire + NDP_TAG_AT);
	}
	put_unaligned_be32(ndp_check(wire, bytes, addresses), wire + NDP_CHECK_AT);
	return bytes;
}
EXPORT_SYMBOL_GPL(timely_ndp_encode);

/* Read type, flags and the number of the key, which tell the length of the header. Return: the
 * length; 0 if they are not those of a header, or the header is longer than @bytes.
 */
static u32 ndp_outline(struct timely_ndp_header *header, const u8 *wire, u32 bytes)
{
	u32 needs;

	if (bytes < TIMELY_NDP_BYTES || wire[0] >> NDP_VERSION_SHIFT != TIMELY_NDP_VERSION)
		return 0;
	header->type = wire[0] & NDP_TYPE_MASK;
	header->flags = wire[1] & ~TIMELY_NDP_TAGGED;
	header->key = 0;
	if (header->type < TIMELY_NDP_DATA || header->type > TIMELY_NDP_COOKIE)
		return 0;
	if (header->flags & ~ndp_flags[header->type])
		return 0;
	if (wire[1] & TIMELY_NDP_TAGGED) {
		if (bytes < TIMELY_NDP_BYTES + TIMELY_NDP_TAG_BYTES || !wire[NDP_KEY_AT])
			return 0;
		header->key = wire[NDP_KEY_AT];
	}
	needs = timely_ndp_header_bytes(header);
	return bytes >= needs ? needs : 0;
}

/* Whether the fields that the header does not have are 0. */
static bool ndp_unused_fields(const struct timely_ndp_header *header, const u8 *wire)
{
	u8 has = ndp_fields[header->type];
	u32 rest = 0;

	if (!(has & NDP_HAS_SEQ))
		rest |= wire[6] | wire[7] | get_unaligned_be32(wire + 16);
	if (!(has & NDP_HAS_CREDITS))
		rest |= get_unaligned_be32(wire + 20);
	if (!(has & (NDP_HAS_ROOM | NDP_HAS_PAYLOAD)))
		rest |= get_unaligned_be32(wire + 24) | get_unaligned_be16(wire + 28);
	if (!(has & (NDP_HAS_ROOM | NDP_HAS_SEEN)))
		rest |= get_unaligned_be16(wire + 30);
	if (header->key)
		rest |= wire[NDP_KEY_AT + 1] | wire[NDP_KEY_AT + 2] | wire[NDP_KEY_AT + 3];
	return !rest;
}

static void ndp_decode_fields(struct timely_ndp_header *header, const u8 *wire)
{
	u8 has = ndp_fields[header->type];

	/* Fields that the type does not have are 0 on the wire. */
	header->path = wire[6];
	header->tries = wire[7];
	header->seq = get_unaligned_be32(wire + 16);
	header->credits = get_unaligned_be32(wire + 20);
	if (has & NDP_HAS_ROOM) {
		header->cum = get_unaligned_be32(wire + 24);
		header->owed = get_unaligned_be16(wire + 28);
		header->limit = header->cum + get_unaligned_be16(wire + 30);
	}
	if (has & NDP_HAS_SEEN)
		header->seen = header->credits - get_unaligned_be16(wire + 30);
	if (has & NDP_HAS_PAYLOAD) {
		header->sum = get_unaligned_be32(wire + 24);
		header->length = get_unaligned_be16(wire + 28);
	}
}

/**
 * timely_ndp_decode() - read a header
 * @header: set to the contents; unchanged if the packet is malformed or damaged
 * @wire: the payload of UDP
 * @bytes: number of bytes that can be read at @wire; at least the lesser of @total and
 *	TIMELY_NDP_MAX_BYTES
 * @total: length of the payload of UDP, as it arrived
 * @addresses: the IP addresses of the packet, in any order
 *
 * Where tags are used, the contents must not be trusted before timely_ndp_verify() has returned
 * true.
 *
 * Return: TIMELY_NDP_WHOLE, TIMELY_NDP_CUT, TIMELY_NDP_MALFORMED or TIMELY_NDP_DAMAGED.
 */
enum timely_ndp_decoded timely_ndp_decode(struct timely_ndp_header *header, const u8 *wire,
					  u32 bytes, u32 total,
					  const struct timely_ndp_addresses *addresses)
{
	struct timely_ndp_header found = {};
	u32 needs = ndp_outline(&found, wire, min(bytes, total));

	if (!needs)
		return TIMELY_NDP_MALFORMED;
	if (get_unaligned_be32(wire + NDP_CHECK_AT) != ndp_check(wire, needs, addresses))
		return TIMELY_NDP_DAMAGED;
	ndp_decode_fields(&found, wire);
	if (found.length > TIMELY_NDP_MAX_PAYLOAD || total - needs > found.length ||
	    !ndp_unused_fields(&found, wire))
		return TIMELY_NDP_MALFORMED;
	found.sport = get_unaligned_be16(wire + 2);
	found.dport = get_unaligned_be16(wire + 4);
	if (!found.sport || !found.dport)
		return TIMELY_NDP_MALFORMED;
	found.conn = get_unaligned_be64(wire + 8);
	if (timely_ndp_is_answer(&found))
		found.arrived = get_unaligned_be32(wire + needs - TIMELY_NDP_ARRIVED_BYTES);
	else if (timely_ndp_has_cookie(&found))
		found.cookie = get_unaligned_be64(wire + needs - TIMELY_NDP_COOKIE_BYTES);
	*header = found;
	return total - needs < found.length ? TIMELY_NDP_CUT : TIMELY_NDP_WHOLE;
}
EXPORT_SYMBOL_GPL(timely_ndp_decode);

/**
 * timely_ndp_verify() - check the tag of a header
 * @header: contents from timely_ndp_decode()
 * @wire: the bytes that @header was read from
 * @addresses: the IP addresses of the packet; of a returned packet, the addresses exchanged
 * @key: key with the number @header->key; NULL if the deployment has none
 *
 * The function takes the same time for right and for wrong tags, so that nobody can guess a tag
 * byte by byte.
 *
 * Return: true if the tag is right; without a key, true if the header has no tag.
 */
bool timely_ndp_verify(const struct timely_ndp_header *header, const u8 *wire,
		       const struct timely_ndp_addresses *addresses,
		       const struct timely_orack_key *key)
{
	if (!key || !header->key)
		return !key && !header->key;
	return ndp_tag(wire, timely_ndp_header_bytes(header), addresses, key) ==
	       get_unaligned_be64(wire + NDP_TAG_AT);
}
EXPORT_SYMBOL_GPL(timely_ndp_verify);

/**
 * timely_ndp_sum_start() - begin the checksum of a payload
 * @sum: the state, which is set
 */
void timely_ndp_sum_start(struct timely_ndp_sum *sum)
{
	u32 i;

	/* No lane may be 0: a lane of 0 does not change with words of 0. */
	for (i = 0; i < TIMELY_NDP_SUM_LANES; i++)
		sum->lanes[i] = (i + 1) * NDP_SUM_FACTOR;
	sum->bytes = 0;
}
EXPORT_SYMBOL_GPL(timely_ndp_sum_start);

/* Add a word of a block to its lane. The step is invertible, so payloads that differ in one word of
 * a lane give different lanes.
 */
static u64 ndp_sum_step(u64 lane, const u8 *data)
{
	return ror64((lane ^ get_unaligned_le64(data)) * NDP_SUM_FACTOR, NDP_SUM_ROTATE);
}

/* Add whole blocks. The lanes do not depend on each other, so the CPU works on all of them at the
 * same time, if it finds them in registers and not in an array.
 */
static void ndp_sum_blocks(u64 lanes[TIMELY_NDP_SUM_LANES], const u8 *at, u32 blocks)
{
	u64 a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];

	for (; blocks; blocks--, at += TIMELY_NDP_SUM_BLOCK) {
		a = ndp_sum_step(a, at);
		b = ndp_sum_step(b, at + 8);
		c = ndp_sum_step(c, at + 16);
		d = ndp_sum_step(d, at + 24);
	}
	lanes[0] = a;
	lanes[1] = b;
	lanes[2] = c;
	lanes[3] = d;
}

/**
 * timely_ndp_sum_add() - add a piece of a payload to its checksum
 * @sum: the state
 * @data: the piece
 * @bytes: length of the piece
 *
 * The checksum does not depend on how the payload is divided into pieces.
 */
void timely_ndp_sum_add(struct timely_ndp_sum *sum, const void *data, u32 bytes)
{
	u32 have = sum->bytes % TIMELY_NDP_SUM_BLOCK, part;
	const u8 *at = data;

	sum->bytes += bytes;
	if (have) {
		part = min(bytes, TIMELY_NDP_SUM_BLOCK - have);
		memcpy(sum->rest + have, at, part);
		if (have + part < TIMELY_NDP_SUM_BLOCK)
			return;
		ndp_sum_blocks(sum->lanes, sum->rest, 1);
		at += part;
		bytes -= part;
	}
	part = bytes / TIMELY_NDP_SUM_BLOCK;
	ndp_sum_blocks(sum->lanes, at, part);
	memcpy(sum->rest, at + part * TIMELY_NDP_SUM_BLOCK, bytes % TIMELY_NDP_SUM_BLOCK);
}
EXPORT_SYMBOL_GPL(timely_ndp_sum_add);

/**
 * timely_ndp_sum_end() - finish the checksum of a payload
 * @sum: the state, which must be started again before its next use
 *
 * Return: the checksum.
 */
u32 timely_ndp_sum_end(struct timely_ndp_sum *sum)
{
	u32 have = sum->bytes % TIMELY_NDP_SUM_BLOCK, i;
	u64 mix = sum->bytes;

	/* Zeros that fill a block cannot be taken for payload, because the length is added, too. */
	memset(sum->rest + have, 0, TIMELY_NDP_SUM_BLOCK - have);
	ndp_sum_blocks(sum->lanes, sum->rest, 1);
	for (i = 0; i < TIMELY_NDP_SUM_LANES; i++)
		mix = ror64((mix ^ sum->lanes[i]) * NDP_SUM_FACTOR, NDP_SUM_ROTATE);
	return (u32)(mix ^ mix >> 32);
}
EXPORT_SYMBOL_GPL(timely_ndp_sum_end);

static u64 ndp_cookie(const struct timely_ndp_header *header,
		      const struct timely_ndp_addresses *addresses,
		      const struct timely_orack_key *secret, u64 period)
{
	u8 text[2 + 2 * NDP_ADDRESS_BYTES + 2 + 2 + 8 + 8] __aligned(8);
	u8 *at = text + 2 + 2 * NDP_ADDRESS_BYTES;
	siphash_key_t sip = { { secret->words[0], secret->words[1] } };
	u64 cookie;

	put_unaligned_be16(addresses->family, text);
	memcpy(text + 2, addresses->saddr, NDP_ADDRESS_BYTES);
	memcpy(text + 2 + NDP_ADDRESS_BYTES, addresses->daddr, NDP_ADDRESS_BYTES);
	put_unaligned_be16(header->sport, at);
	put_unaligned_be16(header->dport, at + 2);
	put_unaligned_be64(header->conn, at + 4);
	put_unaligned_be64(period, at + 12);
	cookie = siphash(text, sizeof(text), &sip);
	memzero_explicit(&sip, sizeof(sip));
	return cookie;
}

/**
 * timely_ndp_cookie() - make the cookie that an unknown sender must return
 * @header: header of the sender's packet
 * @addresses: addresses of the sender's packet
 * @secret: a random number that only this host knows
 * @now_ns: current time
 *
 * Who returns the cookie receives packets at the source address, and has sent a packet for this
 * connection in the last one or two periods (TIMELY_NDP_COOKIE_SHIFT).
 *
 * Return: the cookie.
 */
u64 timely_ndp_cookie(const struct timely_ndp_header *header,
		      const struct timely_ndp_addresses *addresses,
		      const struct timely_orack_key *secret, u64 now_ns)
{
	return ndp_cookie(header, addresses, secret, now_ns >> TIMELY_NDP_COOKIE_SHIFT);
}
EXPORT_SYMBOL_GPL(timely_ndp_cookie);

/**
 * timely_ndp_cookie_valid() - check a cookie that came back
 * @header: header of the packet with the cookie
 * @addresses: addresses of the packet with the cookie
 * @secret: the secret that the cookie was made with
 * @now_ns: current time
 *
 * Return: true if the header has a cookie, made for this connection in this period or in the one
 * before.
 */
bool timely_ndp_cookie_valid(const struct timely_ndp_header *header,
			     const struct timely_ndp_addresses *addresses,
			     const struct timely_orack_key *secret, u64 now_ns)
{
	u64 period = now_ns >> TIMELY_NDP_COOKIE_SHIFT;

	if (!(header->flags & TIMELY_NDP_COOKIED))
		return false;
	return header->cookie == ndp_cookie(header, addresses, secret, period) ||
	       header->cookie == ndp_cookie(header, addresses, secret, period - 1);
}
EXPORT_SYMBOL_GPL(timely_ndp_cookie_valid);
