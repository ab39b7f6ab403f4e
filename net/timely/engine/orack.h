/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The OR-ACK on the wire: encoding, decoding, verification. timely_acker writes OR-ACKs, onramp.c
 * reads them. See net/timely/engine/orack.c.
 *
 * An OR-ACK is a UDP packet with 36 bytes of payload (78 bytes on Ethernet over IPv4, as in the
 * On-Ramp paper). It is sent from the destination of the data to their source. The payload, in
 * network byte order:
 *
 *	offset	bytes	contents
 *	 0	2	magic "OR"
 *	 2	1	version, 1
 *	 3	1	number of the key, 0 for none
 *	 4	1	IP protocol of the data
 *	 5	1	flags
 *	 6	2	source port of the data
 *	 8	2	destination port of the data
 *	10	2	turn of a trimmed packet, 256 ns; else 0
 *	12	4	sequence number of the data
 *	16	8	receive time, ns
 *	24	4	turnaround, ns
 *	28	8	tag
 *
 * The addresses of the data are the addresses of the OR-ACK's IP packet, exchanged. The tag covers
 * them.
 */
#ifndef _TIMELY_ENGINE_ORACK_H
#define _TIMELY_ENGINE_ORACK_H

#include <linux/types.h>

#define TIMELY_ORACK_BYTES	36
#define TIMELY_ORACK_MAGIC	0x4f52
#define TIMELY_ORACK_VERSION	1

/* Lengths of IP packets with an OR-ACK. The receiver does not answer shorter data packets, so that
 * OR-ACKs are never more bytes than the data.
 */
#define TIMELY_ORACK_IPV4_BYTES	(20 + 8 + TIMELY_ORACK_BYTES)
#define TIMELY_ORACK_IPV6_BYTES	(40 + 8 + TIMELY_ORACK_BYTES)

/* timely_udp_digest() reads at most this many bytes of a UDP payload. */
#define TIMELY_UDP_DIGEST_BYTES	16

/* Bits of an OR-ACK's flags. All other bits are 0. */
#define TIMELY_ORACK_HARDWARE	1	/* the receive time is a NIC's timestamp */
#define TIMELY_ORACK_TRIMMED	2	/* a switch has trimmed the packet: its data are lost */

/* The longest turn that an OR-ACK can report, ns: 16.8 ms. Turns are sent in units of 2^8 ns. */
#define TIMELY_ORACK_TURN_SHIFT	8
#define TIMELY_ORACK_TURN_MAX_NS	(0xffffU << TIMELY_ORACK_TURN_SHIFT)

/**
 * struct timely_tuple - the addresses of a flow, as in its data packets
 * @net: address of a network namespace (struct net): in a tuple at the receiver, the receiver's; in
 *	a tuple at the sender, the sender's, which is only compared
 * @saddr: source address; with IPv4, the address is in the first word, and the other words are 0
 * @daddr: destination address, in the format of @saddr
 * @sport: source port
 * @dport: destination port
 * @family: AF_INET or AF_INET6
 * @protocol: IPPROTO_TCP or IPPROTO_UDP
 *
 * The structure has no padding on 32-bit and 64-bit CPUs, because it is hashed as bytes.
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
 * timely_tuple_equal() - compare the addresses of two flows
 * @a: first flow
 * @b: second flow
 *
 * Each member is read in the size in which it is written: a CPU stalls when it reads a word that it
 * has just stored in parts.
 *
 * Return: true if all members are equal.
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
 * struct timely_orack - the contents of an OR-ACK
 * @tuple: the flow of the reported packet; @tuple.net is not on the wire
 * @seq: the packet's TCP sequence number, or its timely_udp_digest()
 * @received_ns: when the packet was received, by the receiver's clock
 * @turnaround_ns: time from @received_ns to the departure of the OR-ACK
 * @turn_ns: with TIMELY_ORACK_TRIMMED, how much later the receiver's link has time for the data of
 *	the packet, 0 to TIMELY_ORACK_TURN_MAX_NS; otherwise not used
 * @key: number of the key that made the tag; 0 for none
 * @flags: TIMELY_ORACK_HARDWARE, TIMELY_ORACK_TRIMMED, both, or 0
 */
struct timely_orack {
	struct timely_tuple tuple;
	u64 received_ns;
	u32 seq;
	u32 turnaround_ns;
	u32 turn_ns;
	u8 key;
	u8 flags;
};

/**
 * struct timely_orack_key - a secret shared by senders and receivers
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
