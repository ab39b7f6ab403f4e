// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the format of OR-ACKs (orack.c): two OR-ACKs byte by byte, with tags from another
 * implementation of SipHash; packets that must be rejected; and the digest that identifies UDP
 * packets. Cases are named function__case.
 */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/limits.h>
#include <linux/siphash.h>
#include <linux/socket.h>
#include <linux/string.h>

#include <timely_unaligned.h>
#include <timely/engine/orack.h>

/* The contents of an OR-ACK, and its bytes on the wire with the key @secret. */
struct example {
	u16 family;
	u8 saddr[16];
	u8 daddr[16];
	u16 sport;
	u16 dport;
	u8 protocol;
	u8 flags;
	u8 key;
	u32 seq;
	u64 received_ns;
	u32 turnaround_ns;
	u8 wire[TIMELY_ORACK_BYTES];
};

static const struct example examples[] = {
	{
		AF_INET, { 10, 0, 0, 1 }, { 10, 0, 0, 2 }, 40000, 5201, IPPROTO_TCP,
		TIMELY_ORACK_HARDWARE, 5, 0x01020304, 0x1112131415161718, 0x21222324,
		{
			0x4f, 0x52, 0x01, 0x05, 0x06, 0x01, 0x9c, 0x40, 0x14, 0x51, 0x00, 0x00,
			0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24, 0x81, 0xe6, 0xb0, 0x20, 0x3f, 0x39, 0xd5, 0x1e,
		},
	}, {
		AF_INET6, { 0x20, 1, 0xd, 0xb8, [15] = 1 }, { 0x20, 1, 0xd, 0xb8, [15] = 2 },
		1, 65535, IPPROTO_UDP, 0, 255, U32_MAX, U64_MAX, U32_MAX,
		{
			0x4f, 0x52, 0x01, 0xff, 0x11, 0x00, 0x00, 0x01, 0xff, 0xff, 0x00, 0x00,
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 0xa6, 0x76, 0x58, 0x68, 0x7a, 0x09, 0x50, 0x82,
		},
	},
};

/* The key of SipHash's test vectors: the bytes 00, 01, ... 0f. */
static const struct timely_orack_key secret = {
	{ 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL }
};

static struct timely_orack contents(const struct example *e)
{
	struct timely_orack orack;

	memset(&orack, 0, sizeof(orack));
	memcpy(orack.tuple.saddr, e->saddr, sizeof(e->saddr));
	memcpy(orack.tuple.daddr, e->daddr, sizeof(e->daddr));
	put_unaligned_be16(e->sport, &orack.tuple.sport);
	put_unaligned_be16(e->dport, &orack.tuple.dport);
	orack.tuple.family = e->family;
	orack.tuple.protocol = e->protocol;
	orack.received_ns = e->received_ns;
	orack.seq = e->seq;
	orack.turnaround_ns = e->turnaround_ns;
	orack.key = e->key;
	orack.flags = e->flags;
	return orack;
}

/* Read an OR-ACK as its receiver does: decode, fill in the packet's addresses, verify the tag. */
static bool receive(const struct example *e, const u8 *wire, const struct timely_orack_key *key)
{
	struct timely_orack orack;

	if (!timely_orack_decode(&orack, wire, TIMELY_ORACK_BYTES))
		return false;
	memcpy(orack.tuple.saddr, e->saddr, sizeof(e->saddr));
	memcpy(orack.tuple.daddr, e->daddr, sizeof(e->daddr));
	orack.tuple.family = e->family;
	return timely_orack_verify(&orack, wire, key);
}

/* ---- SipHash ---- */

/* Test vectors of the SipHash reference: the text is the bytes 00, 01, 02, ... */
static void siphash__follows_the_reference(struct kunit *test)
{
	static const struct { u32 bytes; u64 want; } vectors[] = {
		{ 0, 0x726fdb47dd0e0e31ULL }, { 1, 0x74f839c593dc67fdULL },
		{ 2, 0x0d6c8009d9a94f5aULL }, { 3, 0x85676696d7fb7e2dULL },
		{ 4, 0xcf2794e0277187b7ULL }, { 5, 0x18765564cd99a68dULL },
		{ 6, 0xcbc9466e58fee3ceULL }, { 7, 0xab0200f58b01d137ULL },
		{ 8, 0x93f5f5799a932462ULL }, { 9, 0x9e0082df0ba9e4b0ULL },
		{ 15, 0xa129ca6149be45e5ULL }, { 16, 0x3f2acc7f57c29bdbULL },
		{ 31, 0x32d892fad841c342ULL }, { 32, 0x7127512f72f27cceULL },
		{ 61, 0x9f626da15c9625f3ULL }, { 62, 0xe51b38608ef25f57ULL },
		{ 63, 0x958a324ceb064572ULL },
	};
	siphash_key_t key = { { secret.words[0], secret.words[1] } };
	u8 text[64];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(text); i++)
		text[i] = i;
	for (i = 0; i < ARRAY_SIZE(vectors); i++)
		KUNIT_EXPECT_EQ_MSG(test, siphash(text, vectors[i].bytes, &key),
				    vectors[i].want, "%u bytes", vectors[i].bytes);
}

/* ---- encode ---- */

static void encode__byte_by_byte(struct kunit *test)
{
	u32 i, at;

	for (i = 0; i < ARRAY_SIZE(examples); i++) {
		struct timely_orack orack = contents(&examples[i]);
		u8 wire[TIMELY_ORACK_BYTES];

		memset(wire, 0x5a, sizeof(wire));
		timely_orack_encode(wire, &orack, &secret);
		for (at = 0; at < sizeof(wire); at++)
			KUNIT_EXPECT_EQ_MSG(test, wire[at], examples[i].wire[at],
					    "example %u, byte %u", i, at);
	}
}

static void encode__without_a_key(struct kunit *test)
{
	struct timely_orack orack = contents(&examples[0]);
	u8 wire[TIMELY_ORACK_BYTES];
	u32 at;

	memset(wire, 0x5a, sizeof(wire));
	timely_orack_encode(wire, &orack, NULL);
	for (at = 0; at < sizeof(wire); at++)
		KUNIT_EXPECT_EQ_MSG(test, wire[at],
				    at == 3 || at >= 28 ? 0 : examples[0].wire[at],
				    "byte %u", at);
	KUNIT_EXPECT_TRUE(test, receive(&examples[0], wire, NULL));
}

static void encode__to_unaligned_memory(struct kunit *test)
{
	struct timely_orack orack = contents(&examples[0]);
	u8 room[TIMELY_ORACK_BYTES + 9];
	u32 shift;

	for (shift = 0; shift < 8; shift++) {
		memset(room, 0xa5, sizeof(room));
		timely_orack_encode(room + shift, &orack, &secret);
		KUNIT_EXPECT_TRUE(test, !memcmp(room + shift, examples[0].wire,
						TIMELY_ORACK_BYTES));
		/* The bytes before and after are not written. */
		KUNIT_EXPECT_EQ(test, room[shift + TIMELY_ORACK_BYTES], 0xa5);
		KUNIT_EXPECT_TRUE(test, !shift || room[shift - 1] == 0xa5);
		KUNIT_EXPECT_TRUE(test, receive(&examples[0], room + shift, &secret));
	}
}

/* ---- decode ---- */

static void decode__what_was_encoded(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(examples); i++) {
		struct timely_orack want = contents(&examples[i]);
		struct timely_orack orack;

		/* Addresses and family are not in the packet. */
		memset(want.tuple.saddr, 0, sizeof(want.tuple.saddr));
		memset(want.tuple.daddr, 0, sizeof(want.tuple.daddr));
		want.tuple.family = 0;
		memset(&orack, 0x5a, sizeof(orack));
		KUNIT_EXPECT_TRUE(test, timely_orack_decode(&orack, examples[i].wire,
							    TIMELY_ORACK_BYTES));
		KUNIT_EXPECT_TRUE(test, !memcmp(&orack, &want, sizeof(want)));
	}
}

static void decode__no_other_length(struct kunit *test)
{
	static const u32 more[] = { 64, 1472, 65507, 1U << 31, U32_MAX };
	struct timely_orack orack, before;
	u8 wire[2 * TIMELY_ORACK_BYTES] = {};
	u32 bytes;

	memcpy(wire, examples[0].wire, TIMELY_ORACK_BYTES);
	memset(&before, 0x5a, sizeof(before));
	orack = before;
	for (bytes = 0; bytes <= sizeof(wire); bytes++)
		if (bytes != TIMELY_ORACK_BYTES)
			KUNIT_EXPECT_FALSE(test, timely_orack_decode(&orack, wire, bytes));
	for (bytes = 0; bytes < ARRAY_SIZE(more); bytes++)
		KUNIT_EXPECT_FALSE(test, timely_orack_decode(&orack, wire, more[bytes]));
	KUNIT_EXPECT_TRUE(test, !memcmp(&orack, &before, sizeof(before)));
}

static void decode__nothing_malformed(struct kunit *test)
{
	static const struct { u8 at, value; } faults[] = {
		{ 0, 0x00 }, { 0, 0x52 }, { 1, 0x00 }, { 1, 0x4f },
		{ 2, 0 }, { 2, 2 }, { 2, 255 },
		{ 4, 0 }, { 4, IPPROTO_ICMP }, { 4, 7 }, { 4, 16 }, { 4, 18 }, { 4, 255 },
		{ 5, 4 }, { 5, 5 }, { 5, 7 }, { 5, 0x80 }, { 5, 0xff },
		{ 10, 1 }, { 10, 0x80 }, { 11, 1 }, { 11, 0x80 },
	};
	struct timely_orack orack, before;
	u8 wire[TIMELY_ORACK_BYTES];
	u32 i;

	memset(&before, 0x5a, sizeof(before));
	orack = before;
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		memcpy(wire, examples[0].wire, sizeof(wire));
		wire[faults[i].at] = faults[i].value;
		KUNIT_EXPECT_FALSE(test, timely_orack_decode(&orack, wire, sizeof(wire)));
	}
	KUNIT_EXPECT_TRUE(test, !memcmp(&orack, &before, sizeof(before)));
}

static void decode__no_port_0(struct kunit *test)
{
	struct timely_orack orack;
	u8 wire[TIMELY_ORACK_BYTES];
	u32 at;

	for (at = 6; at <= 8; at += 2) {
		memcpy(wire, examples[0].wire, sizeof(wire));
		put_unaligned_be16(0, wire + at);
		KUNIT_EXPECT_FALSE(test, timely_orack_decode(&orack, wire, sizeof(wire)));
		/* A port with one byte that is not 0 is valid. */
		put_unaligned_be16(1, wire + at);
		KUNIT_EXPECT_TRUE(test, timely_orack_decode(&orack, wire, sizeof(wire)));
		put_unaligned_be16(256, wire + at);
		KUNIT_EXPECT_TRUE(test, timely_orack_decode(&orack, wire, sizeof(wire)));
	}
}

/* The turn of a trimmed packet, in units of 256 ns, is reported only with the flag. */
static void decode__turns_of_trimmed_packets(struct kunit *test)
{
	static const struct { u32 turn_ns, want_ns; } turns[] = {
		{ 0, 0 }, { 255, 0 }, { 256, 256 }, { 1000000, 999936 },
		{ TIMELY_ORACK_TURN_MAX_NS, TIMELY_ORACK_TURN_MAX_NS },
	};
	struct timely_orack orack = contents(&examples[0]), decoded;
	u8 wire[TIMELY_ORACK_BYTES];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(turns); i++) {
		orack.turn_ns = turns[i].turn_ns;
		orack.flags = TIMELY_ORACK_TRIMMED;
		timely_orack_encode(wire, &orack, &secret);
		KUNIT_EXPECT_TRUE(test, receive(&examples[0], wire, &secret));
		KUNIT_ASSERT_TRUE(test, timely_orack_decode(&decoded, wire, sizeof(wire)));
		KUNIT_EXPECT_EQ(test, decoded.turn_ns, turns[i].want_ns);
		KUNIT_EXPECT_EQ(test, decoded.flags, TIMELY_ORACK_TRIMMED);
		/* The tag covers the turn. */
		wire[11] ^= 1;
		KUNIT_EXPECT_FALSE(test, receive(&examples[0], wire, &secret));
		orack.flags = TIMELY_ORACK_HARDWARE;
		timely_orack_encode(wire, &orack, &secret);
		KUNIT_EXPECT_TRUE(test, !memcmp(wire, examples[0].wire, sizeof(wire)));
	}
}

/* ---- verify ---- */

static void verify__needs_the_right_key(struct kunit *test)
{
	struct timely_orack_key other;
	u32 i, bit;

	for (i = 0; i < ARRAY_SIZE(examples); i++) {
		KUNIT_EXPECT_TRUE(test, receive(&examples[i], examples[i].wire, &secret));
		for (bit = 0; bit < 128; bit++) {
			other = secret;
			other.words[bit / 64] ^= 1ULL << bit % 64;
			KUNIT_EXPECT_FALSE(test, receive(&examples[i], examples[i].wire, &other));
		}
	}
}

static void verify__no_bit_may_change(struct kunit *test)
{
	u8 wire[TIMELY_ORACK_BYTES];
	u32 i, bit;

	for (i = 0; i < ARRAY_SIZE(examples); i++) {
		for (bit = 0; bit < 8 * sizeof(wire); bit++) {
			memcpy(wire, examples[i].wire, sizeof(wire));
			wire[bit / 8] ^= 1 << bit % 8;
			KUNIT_EXPECT_FALSE(test, receive(&examples[i], wire, &secret));
		}
	}
}

static void verify__for_no_other_addresses(struct kunit *test)
{
	struct example e;
	u32 i, bit;

	for (i = 0; i < ARRAY_SIZE(examples); i++) {
		for (bit = 0; bit < 8 * sizeof(e.saddr); bit++) {
			e = examples[i];
			e.saddr[bit / 8] ^= 1 << bit % 8;
			KUNIT_EXPECT_FALSE(test, receive(&e, e.wire, &secret));
			e = examples[i];
			e.daddr[bit / 8] ^= 1 << bit % 8;
			KUNIT_EXPECT_FALSE(test, receive(&e, e.wire, &secret));
		}
		e = examples[i];
		memcpy(e.saddr, examples[i].daddr, sizeof(e.saddr));
		memcpy(e.daddr, examples[i].saddr, sizeof(e.daddr));
		KUNIT_EXPECT_FALSE(test, receive(&e, e.wire, &secret));
		e = examples[i];
		e.family = e.family == AF_INET ? AF_INET6 : AF_INET;
		KUNIT_EXPECT_FALSE(test, receive(&e, e.wire, &secret));
	}
}

/* The tag does not include tuple.net, which has a meaning on one host only. */
static void verify__in_any_namespace(struct kunit *test)
{
	struct timely_orack orack = contents(&examples[0]);

	orack.tuple.net = 12345;
	KUNIT_EXPECT_TRUE(test, timely_orack_verify(&orack, examples[0].wire, &secret));
}

static void verify__without_a_key(struct kunit *test)
{
	struct timely_orack orack = contents(&examples[0]);
	u8 wire[TIMELY_ORACK_BYTES];
	u32 bit;

	timely_orack_encode(wire, &orack, NULL);
	KUNIT_EXPECT_TRUE(test, receive(&examples[0], wire, NULL));
	/* A host with a key rejects an OR-ACK without a tag. */
	KUNIT_EXPECT_FALSE(test, receive(&examples[0], wire, &secret));
	/* A host without a key rejects an OR-ACK with a tag or with the number of a key. */
	KUNIT_EXPECT_FALSE(test, receive(&examples[0], examples[0].wire, NULL));
	for (bit = 0; bit < 64; bit++) {
		wire[28 + bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_FALSE(test, receive(&examples[0], wire, NULL));
		wire[28 + bit / 8] ^= 1 << bit % 8;
	}
	for (bit = 0; bit < 8; bit++) {
		wire[3] = 1 << bit;
		KUNIT_EXPECT_FALSE(test, receive(&examples[0], wire, NULL));
	}
	wire[3] = 0;
	KUNIT_EXPECT_TRUE(test, receive(&examples[0], wire, NULL));
}

/* ---- the digest of UDP ---- */

/* Sender and receiver may run different kernels, so the digest of a payload must never change. */
static void digest__is_the_same_everywhere(struct kunit *test)
{
	static const u32 want[] = {
		0xbaf9078c, 0xb5bb20f9, 0x8d3ce6c6, 0x5ba523ba, 0xc21d2df2, 0x7e992897,
		0x30e363f7, 0xafb20c36, 0xd47858c8, 0xaba8d777, 0xf7cb58d4, 0x456c3e08,
		0x0d202263, 0xc08b9252, 0x248b31f1, 0xb86becc1, 0x11870b62, 0x944fa466,
		0xa5c0c183, 0x14555948, 0xe6cb4d87,
	};
	u8 payload[ARRAY_SIZE(want)];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(payload); i++)
		payload[i] = i + 1;
	for (i = 0; i < ARRAY_SIZE(want); i++)
		KUNIT_EXPECT_EQ_MSG(test, timely_udp_digest(payload, i), want[i], "%u bytes", i);
	memset(payload, 0xff, sizeof(payload));
	/* No more than 16 bytes are read, whatever the length. */
	KUNIT_EXPECT_EQ(test, timely_udp_digest(payload, 1500), 0xf247e965);
	KUNIT_EXPECT_EQ(test, timely_udp_digest(payload, U32_MAX), 0x34e69a46);
}

static void digest__of_the_first_bytes_and_the_length(struct kunit *test)
{
	u8 payload[64 + 8] = {};
	u32 bytes, at, whole;

	for (bytes = 0; bytes <= 64; bytes++) {
		memset(payload, 0, sizeof(payload));
		whole = timely_udp_digest(payload, bytes);
		KUNIT_EXPECT_TRUE(test, whole != timely_udp_digest(payload, bytes + 1));
		for (at = 0; at < 64; at++) {
			payload[at] = 1;
			KUNIT_EXPECT_EQ(test, whole != timely_udp_digest(payload, bytes),
					at < bytes && at < 16);
			payload[at] = 0;
		}
	}
}

static void digest__is_never_0(struct kunit *test)
{
	/* A payload whose hash is 0. */
	static const u8 payload[16] = {
		0x28, 0xc5, 0x35, 0xc4, 0x96, 0x4d, 0x08, 0x69, 0xa5, 0xd0, 0x76, 0xea,
	};

	KUNIT_EXPECT_EQ(test, timely_udp_digest(payload, sizeof(payload)), 1U);
}

static void digest__of_unaligned_memory(struct kunit *test)
{
	u8 payload[24];
	u32 shift, i, whole = 0;

	for (shift = 0; shift < 8; shift++) {
		for (i = 0; i < 16; i++)
			payload[shift + i] = i + 1;
		if (!shift)
			whole = timely_udp_digest(payload, 16);
		KUNIT_EXPECT_EQ(test, timely_udp_digest(payload + shift, 16), whole);
	}
}

static void tuple__no_bit_may_differ(struct kunit *test)
{
	struct timely_tuple tuple = contents(&examples[0]).tuple, other = tuple;
	u32 bit;

	KUNIT_EXPECT_TRUE(test, timely_tuple_equal(&tuple, &other));
	for (bit = 0; bit < 8 * sizeof(tuple); bit++) {
		other = tuple;
		((u8 *)&other)[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_FALSE(test, timely_tuple_equal(&tuple, &other));
	}
}

static struct kunit_case orack_cases[] = {
	KUNIT_CASE(siphash__follows_the_reference),
	KUNIT_CASE(encode__byte_by_byte),
	KUNIT_CASE(encode__without_a_key),
	KUNIT_CASE(encode__to_unaligned_memory),
	KUNIT_CASE(decode__what_was_encoded),
	KUNIT_CASE(decode__no_other_length),
	KUNIT_CASE(decode__nothing_malformed),
	KUNIT_CASE(decode__no_port_0),
	KUNIT_CASE(decode__turns_of_trimmed_packets),
	KUNIT_CASE(verify__needs_the_right_key),
	KUNIT_CASE(verify__no_bit_may_change),
	KUNIT_CASE(verify__for_no_other_addresses),
	KUNIT_CASE(verify__in_any_namespace),
	KUNIT_CASE(verify__without_a_key),
	KUNIT_CASE(tuple__no_bit_may_differ),
	KUNIT_CASE(digest__is_the_same_everywhere),
	KUNIT_CASE(digest__of_the_first_bytes_and_the_length),
	KUNIT_CASE(digest__is_never_0),
	KUNIT_CASE(digest__of_unaligned_memory),
	{}
};

static struct kunit_suite orack_suite = {
	.name = "timely_orack",
	.test_cases = orack_cases,
};

kunit_test_suite(orack_suite);
