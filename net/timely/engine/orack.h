/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The OR-ACK on the wire: encode, decode, verify. Pure. See net/timely/engine/orack.c.
 *
 * It is a UDP packet of 36 bytes of payload (78 on Ethernet over IPv4, as the
 * paper's), from the data's destination to its source. Network byte order:
 *
 *	 0  magic "OR"		 2  version, 1		 3  key, 0 for none
 *	 4  protocol		 5  flags		 6  source port of the data
 *	 8  destination port	10  0			12  sequence number
 *	16  receive time, ns (8)
 *	24  turnaround, ns	28  tag (8)
 *
 * Addresses are those of the packet itself, and in the tag.
 */
#ifndef _TIMELY_ENGINE_ORACK_H
#define _TIMELY_ENGINE_ORACK_H

#include <linux/types.h>

#define TIMELY_ORACK_BYTES	36
#define TIMELY_ORACK_MAGIC	0x4f52
#define TIMELY_ORACK_VERSION	1

/* Of IP packets with an OR-ACK: what triggers one is no shorter. */
#define TIMELY_ORACK_IPV4_BYTES	(20 + 8 + TIMELY_ORACK_BYTES)
#define TIMELY_ORACK_IPV6_BYTES	(40 + 8 + TIMELY_ORACK_BYTES)

/* Of a UDP payload, timely_udp_digest() looks at no more. */
#define TIMELY_UDP_DIGEST_BYTES	16

/* Flags. */
#define TIMELY_ORACK_HARDWARE	1	/* the NIC stamped the data */

/**
 * struct timely_tuple - a flow, as its data packets name it
 * @net: the sender's network namespace, only as a number; on the receiver's side
 *	its own
 * @saddr: source address; of IPv4 the first word only, all else 0
 * @daddr: destination address
 * @sport: source port
 * @dport: destination port
 * @family: AF_INET or AF_INET6
 * @protocol: IPPROTO_TCP or IPPROTO_UDP
 *
 * Without gaps on 32-bit and 64-bit processors, as the struct is hashed as bytes.
 */
struct timely_tuple {
	u64 net;
	__be32 saddr[4];
	__be32 daddr[4];
	__be16 sport;
	__be16 dport;
	u16 family;
	u16 protocol;
} __aligned(8);

/**
 * timely_tuple_equal() - are they the same flow's?
 * @a: a name
 * @b: another
 *
 * Read as they are written: a processor waits for what it stored in parts.
 *
 * Return: that.
 */
static inline bool timely_tuple_equal(const struct timely_tuple *a, const struct timely_tuple *b)
{
	u32 differs = (__force u16)((a->sport ^ b->sport) | (a->dport ^ b->dport)) |
		      (a->family ^ b->family) | (a->protocol ^ b->protocol);
	int i;

	for (i = 0; i < 4; i++)
		differs |= (__force u32)((a->saddr[i] ^ b->saddr[i]) | (a->daddr[i] ^ b->daddr[i]));
	return !differs && a->net == b->net;
}

/**
 * struct timely_orack - an OR-ACK's contents
 * @tuple: the flow that it is about; @tuple.net is not on the wire
 * @seq: of the packet that it acknowledges: TCP's sequence number, or
 *	timely_udp_digest()
 * @received_ns: when that was received, by the receiver's clock
 * @turnaround_ns: from then to the OR-ACK's departure
 * @key: number of the key that made the tag, 0 for none
 * @flags: TIMELY_ORACK_*
 */
struct timely_orack {
	struct timely_tuple tuple;
	u64 received_ns;
	u32 seq;
	u32 turnaround_ns;
	u8 key;
	u8 flags;
};

/**
 * struct timely_orack_key - a secret of a deployment
 * @words: 128 bits
 */
struct timely_orack_key {
	u64 words[2];
};

void timely_orack_encode(u8 *wire, const struct timely_orack *orack,
			 const struct timely_orack_key *key);
bool timely_orack_decode(struct timely_orack *orack, const u8 *wire, u32 bytes);
bool timely_orack_verify(const struct timely_orack *orack, const u8 *wire,
			 const struct timely_orack_key *key);
u32 timely_udp_digest(const u8 *payload, u32 bytes);

#endif /* _TIMELY_ENGINE_ORACK_H */
