// SPDX-License-Identifier: GPL-2.0
/*
 * The OR-ACK: what On-Ramp's receiver tells the sender of a packet that it got.
 *
 * The paper (NSDI'21, section 3) gives its contents, the flow's 5-tuple, the
 * sequence number and the time of receipt, but no format; the header has ours.
 * Addresses are not in it, for the packet around it has them.
 *
 * An OR-ACK can stop a flow. So where a deployment has a key there is a tag:
 * SipHash-2-4 over the flow's addresses and all that is before the tag, which
 * nobody between can make for another packet.
 *
 * Pure: no packet, no socket, no clock.
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
#define ORACK_TAGGED_BYTES	28
#define ORACK_PSEUDO_BYTES	(2 + 2 * ORACK_ADDRESS_BYTES)

#define DIGEST_WORDS		(TIMELY_UDP_DIGEST_BYTES / 4)

static u64 orack_tag(const struct timely_tuple *tuple, const u8 *wire,
		     const struct timely_orack_key *key)
{
	u8 text[ORACK_PSEUDO_BYTES + ORACK_TAGGED_BYTES] __aligned(8);
	siphash_key_t sip;
	u64 tag;

	/* "No key" is a tag too, so that one comparison does for both. */
	if (!key)
		return 0;
	sip.key[0] = key->words[0];
	sip.key[1] = key->words[1];
	put_unaligned_be16(tuple->family, text);
	memcpy(text + 2, tuple->saddr, ORACK_ADDRESS_BYTES);
	memcpy(text + 2 + ORACK_ADDRESS_BYTES, tuple->daddr, ORACK_ADDRESS_BYTES);
	memcpy(text + ORACK_PSEUDO_BYTES, wire, ORACK_TAGGED_BYTES);
	tag = siphash(text, sizeof(text), &sip);
	/* The stack is read by others after this function. */
	memzero_explicit(&sip, sizeof(sip));
	return tag;
}

/**
 * timely_orack_encode() - write an OR-ACK
 * @wire: TIMELY_ORACK_BYTES, all of which are written
 * @orack: its contents
 * @key: to tag it with, that of number @orack->key; NULL for none
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
	put_unaligned_be16(0, wire + 10);
	put_unaligned_be32(orack->seq, wire + 12);
	put_unaligned_be64(orack->received_ns, wire + 16);
	put_unaligned_be32(orack->turnaround_ns, wire + 24);
	put_unaligned_be64(orack_tag(tuple, wire, key), wire + ORACK_TAGGED_BYTES);
}
EXPORT_SYMBOL_GPL(timely_orack_encode);

static bool orack_well_formed(const u8 *wire, u32 bytes)
{
	if (bytes != TIMELY_ORACK_BYTES)
		return false;
	if (get_unaligned_be16(wire) != TIMELY_ORACK_MAGIC || wire[2] != TIMELY_ORACK_VERSION)
		return false;
	if (wire[4] != IPPROTO_TCP && wire[4] != IPPROTO_UDP)
		return false;
	if (wire[5] & ~TIMELY_ORACK_HARDWARE)
		return false;
	if (!get_unaligned_be16(wire + 6) || !get_unaligned_be16(wire + 8))
		return false;
	return !get_unaligned_be16(wire + 10);
}

/**
 * timely_orack_decode() - read an OR-ACK
 * @orack: its contents, without the tuple's addresses, family and net, which are
 *	0: whoever received it has to fill them in from the packet
 * @wire: a UDP payload
 * @bytes: its length
 *
 * Nothing of it is true before timely_orack_verify() said so.
 *
 * Return: whether it is one; if not, @orack is as it was.
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
	orack->seq = get_unaligned_be32(wire + 12);
	orack->received_ns = get_unaligned_be64(wire + 16);
	orack->turnaround_ns = get_unaligned_be32(wire + 24);
	return true;
}
EXPORT_SYMBOL_GPL(timely_orack_decode);

/**
 * timely_orack_verify() - whether an OR-ACK has the tag of a key
 * @orack: from timely_orack_decode(), with the tuple's addresses and family
 * @wire: the bytes that it was read from
 * @key: the key of number @orack->key; NULL where a deployment has none
 *
 * Takes as long for a wrong tag as for the right one.
 *
 * Return: whether it has; without a key, whether it claims none.
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
 * timely_udp_digest() - what stands for a sequence number in a UDP packet
 * @payload: the packet's
 * @bytes: its length; no more than TIMELY_UDP_DIGEST_BYTES are looked at
 *
 * To tell packets of a flow apart, not to keep anybody from making the same.
 * Sender and receiver compute it, so it must not depend on the byte order of
 * either, as jhash() does.
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
