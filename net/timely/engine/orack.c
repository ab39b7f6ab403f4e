// SPDX-License-Identifier: GPL-2.0
/*
 * The OR-ACK: the report of On-Ramp's receiver (timely_acker) about a received packet. The sender
 * computes the packet's delay from the report (owd.c).
 *
 * The paper (NSDI'21, section 3) names the contents (the flow's 5-tuple, sequence number and time
 * of receipt) but no format. This project's format is in orack.h. It has no addresses because the
 * IP packet has them.
 *
 * An OR-ACK can stop a flow. Therefore OR-ACKs have a tag where a key is configured: SipHash-2-4
 * over the flow's addresses and everything before the tag. Nobody without the key can make a valid
 * tag. A recorded OR-ACK that is sent again has a valid tag; owd.c detects it by its receive time.
 *
 * The engine knows no packet, socket or clock.
 */

#include <linux/export.h>
#include <linux/in.h>
#include <linux/jhash.h>
#include <linux/minmax.h>
#include <linux/siphash.h>
#include <linux/string.h>

#include "orack.h"
#include <timely_unaligned.h>

#define ORACK_ADDRESS_BYTES	16
/* The tag is over the family and the addresses, followed by the OR-ACK's bytes before the tag. */
#define ORACK_TAGGED_BYTES	28
#define ORACK_PSEUDO_BYTES	(2 + 2 * ORACK_ADDRESS_BYTES)

#define DIGEST_WORDS		(TIMELY_UDP_DIGEST_BYTES / 4)

/* The tag of an OR-ACK; 0 without a key, so that timely_orack_verify() needs no special case. */
static u64 orack_tag(const struct timely_tuple *tuple, const u8 *wire,
		     const struct timely_orack_key *key)
{
	u8 text[ORACK_PSEUDO_BYTES + ORACK_TAGGED_BYTES] __aligned(8);
	siphash_key_t sip;
	u64 tag;

	if (!key)
		return 0;
	sip.key[0] = key->words[0];
	sip.key[1] = key->words[1];
	put_unaligned_be16(tuple->family, text);
	memcpy(text + 2, tuple->saddr, ORACK_ADDRESS_BYTES);
	memcpy(text + 2 + ORACK_ADDRESS_BYTES, tuple->daddr, ORACK_ADDRESS_BYTES);
	memcpy(text + ORACK_PSEUDO_BYTES, wire, ORACK_TAGGED_BYTES);
	tag = siphash(text, sizeof(text), &sip);
	/* The key must not stay on the stack. */
	memzero_explicit(&sip, sizeof(sip));
	return tag;
}

/**
 * timely_orack_encode() - write an OR-ACK
 * @wire: buffer of TIMELY_ORACK_BYTES bytes, all of which are written
 * @orack: the contents
 * @key: key with the number @orack->key, to make the tag; NULL: the key number and the tag are 0
 */
void timely_orack_encode(u8 *wire, const struct timely_orack *orack,
			 const struct timely_orack_key *key)
{
	const struct timely_tuple *tuple = &orack->tuple;

	put_unaligned_be16(TIMELY_ORACK_MAGIC, wire);
	wire[2] = TIMELY_ORACK_VERSION;
	wire[3] = key ? orack->key : 0;
	wire[4] = (u8)tuple->protocol;
	wire[5] = orack->flags;
	memcpy(wire + 6, &tuple->sport, 2);
	memcpy(wire + 8, &tuple->dport, 2);
	put_unaligned_be16(orack->flags & TIMELY_ORACK_TRIMMED ?
			   orack->turn_ns >> TIMELY_ORACK_TURN_SHIFT : 0, wire + 10);
	put_unaligned_be32(orack->seq, wire + 12);
	put_unaligned_be64(orack->received_ns, wire + 16);
	put_unaligned_be32(orack->turnaround_ns, wire + 24);
	put_unaligned_be64(orack_tag(tuple, wire, key), wire + ORACK_TAGGED_BYTES);
}
EXPORT_SYMBOL_GPL(timely_orack_encode);

/* Whether a UDP payload has the length and the constant fields of an OR-ACK, and possible values in
 * the other fields.
 */
static bool orack_well_formed(const u8 *wire, u32 bytes)
{
	if (bytes != TIMELY_ORACK_BYTES)
		return false;
	if (get_unaligned_be16(wire) != TIMELY_ORACK_MAGIC || wire[2] != TIMELY_ORACK_VERSION)
		return false;
	if (wire[4] != IPPROTO_TCP && wire[4] != IPPROTO_UDP)
		return false;
	if (wire[5] & ~(TIMELY_ORACK_HARDWARE | TIMELY_ORACK_TRIMMED))
		return false;
	if (!get_unaligned_be16(wire + 6) || !get_unaligned_be16(wire + 8))
		return false;
	return wire[5] & TIMELY_ORACK_TRIMMED || !get_unaligned_be16(wire + 10);
}

/**
 * timely_orack_decode() - read an OR-ACK
 * @orack: set to the contents; the tuple's addresses, family and net are set to 0, and the caller
 *	fills them in from the OR-ACK's IP packet
 * @wire: a UDP payload
 * @bytes: length of the payload
 *
 * The contents must not be trusted before timely_orack_verify() has returned true.
 *
 * Return: true if the payload has the format of an OR-ACK; otherwise @orack is unchanged.
 */
bool timely_orack_decode(struct timely_orack *orack, const u8 *wire, u32 bytes)
{
	if (!orack_well_formed(wire, bytes))
		return false;

	memset(orack, 0, sizeof(*orack));
	orack->key = wire[3];
	orack->tuple.protocol = wire[4];
	orack->flags = wire[5];
	memcpy(&orack->tuple.sport, wire + 6, 2);
	memcpy(&orack->tuple.dport, wire + 8, 2);
	orack->turn_ns = (u32)get_unaligned_be16(wire + 10) << TIMELY_ORACK_TURN_SHIFT;
	orack->seq = get_unaligned_be32(wire + 12);
	orack->received_ns = get_unaligned_be64(wire + 16);
	orack->turnaround_ns = get_unaligned_be32(wire + 24);
	return true;
}
EXPORT_SYMBOL_GPL(timely_orack_decode);

/**
 * timely_orack_verify() - check the tag of an OR-ACK
 * @orack: contents from timely_orack_decode(), with the tuple's addresses and family
 * @wire: the bytes that @orack was read from
 * @key: key with the number @orack->key; NULL if the deployment has none
 *
 * The function takes the same time for right and for wrong tags, so that nobody can guess a tag
 * byte by byte.
 *
 * Return: true if the tag is right; without a key, true if the OR-ACK has key number 0.
 */
bool timely_orack_verify(const struct timely_orack *orack, const u8 *wire,
			 const struct timely_orack_key *key)
{
	u64 difference = orack_tag(&orack->tuple, wire, key) ^
			 get_unaligned_be64(wire + ORACK_TAGGED_BYTES);

	return !difference && (key || !orack->key);
}
EXPORT_SYMBOL_GPL(timely_orack_verify);

/**
 * timely_udp_digest() - compute a substitute for the sequence number of a UDP packet
 * @payload: UDP payload of the packet
 * @bytes: length of the payload; at most TIMELY_UDP_DIGEST_BYTES are read
 *
 * The digest distinguishes the packets of a flow; it does not protect against forgery. Sender and
 * receiver both compute the digest, so it must not depend on the CPU's byte order. jhash() depends
 * on the byte order, so the bytes are converted to words for jhash2().
 *
 * Return: a digest, never 0.
 */
u32 timely_udp_digest(const u8 *payload, u32 bytes)
{
	u8 text[TIMELY_UDP_DIGEST_BYTES] = {};
	u32 words[DIGEST_WORDS];
	u32 i;

	memcpy(text, payload, min_t(u32, bytes, TIMELY_UDP_DIGEST_BYTES));
	for (i = 0; i < DIGEST_WORDS; i++)
		words[i] = get_unaligned_le32(text + 4 * i);
	return jhash2(words, DIGEST_WORDS, bytes) ?: 1;
}
EXPORT_SYMBOL_GPL(timely_udp_digest);
