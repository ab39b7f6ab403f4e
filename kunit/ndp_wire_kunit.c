// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of NDP's packets (ndp_wire.c): headers byte by byte, as reference_ndp.py makes them;
 * trimming at each byte; packets that must be rejected; tags, checksums and cookies. Cases are
 * named function__case.
 */
#include <kunit/test.h>
#include <linux/jhash.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/socket.h>
#include <linux/string.h>

#include <timely_unaligned.h>
#include <timely/engine/ndp_wire.h>

#include "ndp_vectors.h"

#define PAYLOAD	100

static const struct timely_orack_key secret = { { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL } };

static struct timely_ndp_addresses addresses_of(const struct ndp_wire_vector *v)
{
	struct timely_ndp_addresses addresses = { .family = v->family };

	memcpy(addresses.saddr, v->saddr, sizeof(v->saddr));
	memcpy(addresses.daddr, v->daddr, sizeof(v->daddr));
	return addresses;
}

static struct timely_ndp_addresses exchanged(struct timely_ndp_addresses addresses)
{
	struct timely_ndp_addresses other = { .family = addresses.family };

	memcpy(other.saddr, addresses.daddr, sizeof(other.saddr));
	memcpy(other.daddr, addresses.saddr, sizeof(other.daddr));
	return other;
}

static struct timely_orack_key key_of(const struct ndp_wire_vector *v)
{
	return (struct timely_orack_key) { { v->key[0], v->key[1] } };
}

/* A DATA packet of PAYLOAD bytes, all 0. Return: its length. */
static u32 data_packet(u8 *wire, const struct timely_ndp_addresses *addresses, u16 flags)
{
	struct timely_ndp_header header = {
		.type = TIMELY_NDP_DATA, .flags = flags, .sport = 1, .dport = 2, .conn = 3,
		.cookie = 4, .seq = 5, .length = PAYLOAD, .key = 6,
	};
	u32 bytes = timely_ndp_encode(wire, &header, addresses, &secret);

	memset(wire + bytes, 0, PAYLOAD);
	return bytes + PAYLOAD;
}

static const struct timely_ndp_addresses ipv4 = {
	.saddr = { 1 }, .daddr = { 2 }, .family = AF_INET
};

/* ---- encode and decode ---- */

static void encode__follows_the_reference(struct kunit *test)
{
	u32 i, at;

	for (i = 0; i < ARRAY_SIZE(ndp_wire_vectors); i++) {
		const struct ndp_wire_vector *v = &ndp_wire_vectors[i];
		struct timely_ndp_addresses addresses = addresses_of(v);
		struct timely_orack_key key = key_of(v);
		u8 wire[TIMELY_NDP_MAX_BYTES];
		u32 bytes;

		memset(wire, 0x5a, sizeof(wire));
		bytes = timely_ndp_encode(wire, &v->header, &addresses, v->keyed ? &key : NULL);
		KUNIT_ASSERT_EQ(test, bytes, v->bytes);
		for (at = 0; at < bytes; at++)
			KUNIT_EXPECT_EQ_MSG(test, wire[at], v->wire[at],
					    "vector %u, byte %u", i, at);
		KUNIT_EXPECT_TRUE(test, bytes == sizeof(wire) || wire[bytes] == 0x5a);
	}
}

static void decode__follows_the_reference(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ndp_wire_vectors); i++) {
		const struct ndp_wire_vector *v = &ndp_wire_vectors[i];
		struct timely_ndp_addresses addresses = addresses_of(v);
		struct timely_orack_key key = key_of(v);
		struct timely_ndp_header header;
		u8 wire[TIMELY_NDP_MAX_BYTES];
		u32 total = v->bytes + (v->header.type == TIMELY_NDP_DATA ? v->header.length : 0);

		/* The payload need not be readable. */
		KUNIT_ASSERT_EQ(test, timely_ndp_decode(&header, v->wire, v->bytes, total,
							&addresses), TIMELY_NDP_WHOLE);
		KUNIT_EXPECT_EQ(test, header.type, v->header.type);
		KUNIT_EXPECT_EQ(test, header.flags, v->header.flags);
		KUNIT_EXPECT_EQ(test, header.conn, v->header.conn);
		KUNIT_EXPECT_EQ(test, header.sport, v->header.sport);
		KUNIT_EXPECT_EQ(test, header.dport, v->header.dport);
		KUNIT_EXPECT_TRUE(test, timely_ndp_verify(&header, v->wire, &addresses,
							  v->keyed ? &key : NULL));
		/* The other fields are right if they give the same bytes. */
		timely_ndp_encode(wire, &header, &addresses, v->keyed ? &key : NULL);
		KUNIT_EXPECT_TRUE(test, !memcmp(wire, v->wire, v->bytes));
	}
}

static void decode__trimmed_at_each_byte(struct kunit *test)
{
	u8 *wire = kunit_kzalloc(test, TIMELY_NDP_MAX_BYTES + PAYLOAD, GFP_KERNEL);
	struct timely_ndp_header header;
	u32 cookied, needs, bytes, total;

	KUNIT_ASSERT_NOT_NULL(test, wire);
	for (cookied = 0; cookied < 2; cookied++) {
		total = data_packet(wire, &ipv4, cookied ? TIMELY_NDP_COOKIED : 0);
		needs = total - PAYLOAD;
		for (bytes = 0; bytes <= total; bytes++)
			KUNIT_EXPECT_EQ_MSG(test, timely_ndp_decode(&header, wire, bytes, bytes,
								    &ipv4),
					    bytes < needs ? TIMELY_NDP_MALFORMED :
					    bytes < total ? TIMELY_NDP_CUT : TIMELY_NDP_WHOLE,
					    "%u bytes", bytes);
	}
}

static void decode__no_bytes_after_the_end(struct kunit *test)
{
	u8 *wire = kunit_kzalloc(test, TIMELY_NDP_MAX_BYTES + PAYLOAD + 1, GFP_KERNEL);
	struct timely_ndp_header header;
	u32 total, i;

	KUNIT_ASSERT_NOT_NULL(test, wire);
	total = data_packet(wire, &ipv4, 0) + 1;
	KUNIT_EXPECT_EQ(test, timely_ndp_decode(&header, wire, total, total, &ipv4),
			TIMELY_NDP_MALFORMED);
	KUNIT_EXPECT_EQ(test, timely_ndp_decode(&header, wire, total, U32_MAX, &ipv4),
			TIMELY_NDP_MALFORMED);
	for (i = 0; i < ARRAY_SIZE(ndp_wire_vectors); i++) {
		const struct ndp_wire_vector *v = &ndp_wire_vectors[i];
		struct timely_ndp_addresses addresses = addresses_of(v);

		if (v->header.type == TIMELY_NDP_DATA)
			continue;
		KUNIT_EXPECT_EQ(test, timely_ndp_decode(&header, v->wire, v->bytes, v->bytes + 1,
							&addresses), TIMELY_NDP_MALFORMED);
	}
}

/* The trimmed Ethernet frame of 128 bytes has a VLAN tag, IPv6 and UDP before the header, one of 86
 * bytes IPv4 and UDP, without a tag.
 */
static void decode__fits_into_a_trimmed_packet(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, 14 + 20 + 8 + TIMELY_NDP_BYTES + TIMELY_NDP_COOKIE_BYTES, 86);
	KUNIT_EXPECT_LE(test, 14 + 4 + 40 + 8 + TIMELY_NDP_MAX_BYTES, 128);
}

static void decode__no_bit_may_change(struct kunit *test)
{
	struct timely_ndp_header header, before;
	u8 wire[TIMELY_NDP_MAX_BYTES];
	u32 i, bit;

	memset(&before, 0x5a, sizeof(before));
	header = before;
	for (i = 0; i < ARRAY_SIZE(ndp_wire_vectors); i++) {
		const struct ndp_wire_vector *v = &ndp_wire_vectors[i];
		struct timely_ndp_addresses addresses = addresses_of(v);

		for (bit = 0; bit < 8 * v->bytes; bit++) {
			memcpy(wire, v->wire, v->bytes);
			wire[bit / 8] ^= 1 << bit % 8;
			KUNIT_EXPECT_TRUE(test, timely_ndp_decode(&header, wire, v->bytes, v->bytes,
								  &addresses) >=
						TIMELY_NDP_MALFORMED);
		}
	}
	KUNIT_EXPECT_TRUE(test, !memcmp(&header, &before, sizeof(before)));
}

/* The checksum notices an address that was damaged, and does not depend on the order of the two. */
static void decode__for_the_same_addresses_in_any_order(struct kunit *test)
{
	const struct ndp_wire_vector *v = &ndp_wire_vectors[0];
	struct timely_ndp_addresses addresses = addresses_of(v), other = exchanged(addresses);
	struct timely_ndp_header header;
	u32 bit;

	KUNIT_EXPECT_EQ(test, timely_ndp_decode(&header, v->wire, v->bytes, v->bytes, &other),
			TIMELY_NDP_CUT);
	for (bit = 0; bit < 128; bit++) {
		other = addresses;
		((u8 *)other.daddr)[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_EQ(test, timely_ndp_decode(&header, v->wire, v->bytes, v->bytes,
							&other), TIMELY_NDP_DAMAGED);
	}
	other = addresses;
	other.family = AF_INET;
	KUNIT_EXPECT_EQ(test, timely_ndp_decode(&header, v->wire, v->bytes, v->bytes, &other),
			TIMELY_NDP_DAMAGED);
}

/* Headers with a right checksum and impossible contents. */
static void decode__nothing_impossible(struct kunit *test)
{
	static const struct timely_ndp_header faults[] = {
		{ .type = TIMELY_NDP_DATA, .sport = 0, .dport = 1 },
		{ .type = TIMELY_NDP_DATA, .sport = 1, .dport = 0 },
		{ .type = TIMELY_NDP_DATA, .sport = 1, .dport = 1, .length = 65535 },
		{ .type = TIMELY_NDP_DATA, .sport = 1, .dport = 1,
		  .length = TIMELY_NDP_MAX_PAYLOAD + 1 },
		{ .type = TIMELY_NDP_DATA, .sport = 1, .dport = 1, .flags = TIMELY_NDP_TRIMMED },
		{ .type = TIMELY_NDP_DATA, .sport = 1, .dport = 1, .flags = TIMELY_NDP_TAGGED },
		{ .type = TIMELY_NDP_ACK, .sport = 1, .dport = 1, .flags = TIMELY_NDP_SYN },
		{ .type = TIMELY_NDP_ACK, .sport = 1, .dport = 1, .flags = TIMELY_NDP_TRIMMED },
		{ .type = TIMELY_NDP_PULL, .sport = 1, .dport = 1, .flags = TIMELY_NDP_COOKIED },
		{ .type = TIMELY_NDP_RESET, .sport = 1, .dport = 1, .flags = TIMELY_NDP_FIN },
	};
	struct timely_ndp_header header;
	u8 wire[TIMELY_NDP_MAX_BYTES];
	u32 i, bytes;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		bytes = timely_ndp_encode(wire, &faults[i], &ipv4, NULL);
		KUNIT_EXPECT_EQ_MSG(test, timely_ndp_decode(&header, wire, bytes, bytes, &ipv4),
				    TIMELY_NDP_MALFORMED, "header %u", i);
	}
}

/* Types and fields that encoding does not write, with the checksum that they would have. */
static void decode__no_unknown_types_and_fields(struct kunit *test)
{
	/* What is at this byte. The version is 3; the types 0 and 8 do not exist. */
	static const struct { u8 type, at, value; } faults[] = {
		{ TIMELY_NDP_PULL, 6, 1 }, { TIMELY_NDP_PULL, 7, 1 }, { TIMELY_NDP_PULL, 16, 1 },
		{ TIMELY_NDP_PULL, 19, 1 }, { TIMELY_NDP_PROBE, 7, 1 }, { TIMELY_NDP_PROBE, 17, 1 },
		{ TIMELY_NDP_PROBE, 24, 1 }, { TIMELY_NDP_PROBE, 27, 1 },
		{ TIMELY_NDP_PROBE, 28, 1 }, { TIMELY_NDP_PROBE, 29, 1 },
		{ TIMELY_NDP_RESET, 6, 1 }, { TIMELY_NDP_RESET, 20, 1 },
		{ TIMELY_NDP_RESET, 24, 1 }, { TIMELY_NDP_RESET, 29, 1 },
		{ TIMELY_NDP_RESET, 30, 1 }, { TIMELY_NDP_RESET, 31, 1 },
		{ TIMELY_NDP_COOKIE, 20, 1 }, { TIMELY_NDP_COOKIE, 31, 1 },
		{ TIMELY_NDP_DATA, 0, 0x30 }, { TIMELY_NDP_COOKIE, 0, 0x38 },
		{ TIMELY_NDP_ACK, 0, 0x22 }, { TIMELY_NDP_ACK, 0, 0x42 },
		/* The number of the key, and the bytes of 0 behind it. */
		{ TIMELY_NDP_ACK, TIMELY_NDP_BYTES, 0 },
		{ TIMELY_NDP_ACK, TIMELY_NDP_BYTES + 1, 1 },
		{ TIMELY_NDP_ACK, TIMELY_NDP_BYTES + 2, 1 },
		{ TIMELY_NDP_DATA, TIMELY_NDP_BYTES + 3, 1 },
	};
	struct timely_ndp_header header = { .sport = 1, .dport = 1 };
	u32 words[4 + TIMELY_NDP_MAX_BYTES / 4];
	u8 wire[TIMELY_NDP_MAX_BYTES];
	u32 i, j, bytes;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		header.type = faults[i].type;
		header.key = faults[i].at >= TIMELY_NDP_BYTES;
		bytes = timely_ndp_encode(wire, &header, &ipv4, header.key ? &secret : NULL);
		wire[faults[i].at] = faults[i].value;
		for (j = 0; j < 4; j++)
			words[j] = get_unaligned_be32(&ipv4.saddr[j]) ^
				   get_unaligned_be32(&ipv4.daddr[j]);
		for (j = 0; j < bytes / 4; j++)
			words[4 + j] = get_unaligned_be32(wire + 4 * j);
		words[4 + 8] = 0;
		put_unaligned_be32(jhash2(words, 4 + bytes / 4, AF_INET), wire + 32);
		KUNIT_EXPECT_EQ_MSG(test, timely_ndp_decode(&header, wire, bytes, bytes, &ipv4),
				    TIMELY_NDP_MALFORMED, "fault %u", i);
	}
}

/* ---- verify ---- */

static void verify__needs_the_right_key(struct kunit *test)
{
	struct timely_ndp_header header;
	u8 wire[TIMELY_NDP_MAX_BYTES + PAYLOAD];
	struct timely_orack_key other;
	u32 bytes = data_packet(wire, &ipv4, TIMELY_NDP_COOKIED), bit;

	KUNIT_ASSERT_EQ(test, timely_ndp_decode(&header, wire, bytes, bytes, &ipv4),
			TIMELY_NDP_WHOLE);
	KUNIT_EXPECT_TRUE(test, timely_ndp_verify(&header, wire, &ipv4, &secret));
	KUNIT_EXPECT_FALSE(test, timely_ndp_verify(&header, wire, &ipv4, NULL));
	for (bit = 0; bit < 128; bit++) {
		other = secret;
		other.words[bit / 64] ^= 1ULL << bit % 64;
		KUNIT_EXPECT_FALSE(test, timely_ndp_verify(&header, wire, &ipv4, &other));
	}
}

/* The tag covers the addresses in their order and all of the header but the checksum and itself. */
static void verify__no_bit_may_change(struct kunit *test)
{
	struct timely_ndp_addresses other = exchanged(ipv4);
	struct timely_ndp_header header;
	u8 wire[TIMELY_NDP_MAX_BYTES + PAYLOAD];
	u32 bytes = data_packet(wire, &ipv4, TIMELY_NDP_COOKIED), bit;

	KUNIT_ASSERT_EQ(test, timely_ndp_decode(&header, wire, bytes, bytes, &ipv4),
			TIMELY_NDP_WHOLE);
	KUNIT_EXPECT_FALSE(test, timely_ndp_verify(&header, wire, &other, &secret));
	for (bit = 0; bit < 8 * TIMELY_NDP_MAX_BYTES; bit++) {
		wire[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_EQ_MSG(test, timely_ndp_verify(&header, wire, &ipv4, &secret),
				    bit / 32 == 8, "bit %u", bit);
		wire[bit / 8] ^= 1 << bit % 8;
	}
}

static void verify__without_a_key(struct kunit *test)
{
	struct timely_ndp_header header = {
		.type = TIMELY_NDP_RESET, .sport = 1, .dport = 1
	};
	u8 wire[TIMELY_NDP_MAX_BYTES];
	u32 bytes = timely_ndp_encode(wire, &header, &ipv4, NULL);

	KUNIT_ASSERT_EQ(test, timely_ndp_decode(&header, wire, bytes, bytes, &ipv4),
			TIMELY_NDP_WHOLE);
	KUNIT_EXPECT_EQ(test, header.key, 0);
	KUNIT_EXPECT_TRUE(test, timely_ndp_verify(&header, wire, &ipv4, NULL));
	KUNIT_EXPECT_FALSE(test, timely_ndp_verify(&header, wire, &ipv4, &secret));
	header.key = 1;
	KUNIT_EXPECT_FALSE(test, timely_ndp_verify(&header, wire, &ipv4, NULL));
}

/* ---- checksum of payload ---- */

static void sum__follows_the_reference(struct kunit *test)
{
	u32 most = ndp_sum_vectors[ARRAY_SIZE(ndp_sum_vectors) - 1].bytes, i;
	u8 *data = kunit_kzalloc(test, most, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < most; i++)
		data[i] = 3 + 7 * i;
	for (i = 0; i < ARRAY_SIZE(ndp_sum_vectors); i++)
		KUNIT_EXPECT_EQ_MSG(test, timely_ndp_sum(data, ndp_sum_vectors[i].bytes),
				    ndp_sum_vectors[i].sum, "%u bytes", ndp_sum_vectors[i].bytes);
}

static void sum__of_any_pieces(struct kunit *test)
{
	struct timely_ndp_sum sum;
	u8 data[200];
	u32 want, a, b;

	for (a = 0; a < sizeof(data); a++)
		data[a] = 11 * a;
	want = timely_ndp_sum(data, sizeof(data));
	for (a = 0; a <= sizeof(data); a += 3) {
		for (b = a; b <= sizeof(data); b += 7) {
			timely_ndp_sum_start(&sum);
			timely_ndp_sum_add(&sum, data, a);
			timely_ndp_sum_add(&sum, data + a, b - a);
			timely_ndp_sum_add(&sum, data + b, sizeof(data) - b);
			KUNIT_EXPECT_EQ(test, timely_ndp_sum_end(&sum), want);
		}
	}
}

static void sum__no_bit_may_change(struct kunit *test)
{
	u8 data[97] = {};
	u32 want = timely_ndp_sum(data, sizeof(data)), bit;

	for (bit = 0; bit < 8 * sizeof(data); bit++) {
		data[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_TRUE(test, timely_ndp_sum(data, sizeof(data)) != want);
		data[bit / 8] ^= 1 << bit % 8;
	}
	for (bit = 0; bit < sizeof(data); bit++)
		KUNIT_EXPECT_TRUE(test, timely_ndp_sum(data, bit) != want);
}

/* ---- cookies ---- */

static void cookie__for_two_periods(struct kunit *test)
{
	u64 period = 1ULL << TIMELY_NDP_COOKIE_SHIFT, now = 5 * period;
	struct timely_ndp_header header = {
		.conn = 1, .sport = 2, .dport = 3, .flags = TIMELY_NDP_COOKIED
	};

	header.cookie = timely_ndp_cookie(&header, &ipv4, &secret, now);
	KUNIT_EXPECT_TRUE(test, timely_ndp_cookie_valid(&header, &ipv4, &secret, now));
	KUNIT_EXPECT_TRUE(test, timely_ndp_cookie_valid(&header, &ipv4, &secret,
							now + 2 * period - 1));
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&header, &ipv4, &secret,
							 now + 2 * period));
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&header, &ipv4, &secret, now - 1));
}

static void cookie__for_one_connection(struct kunit *test)
{
	struct timely_ndp_header header = {
		.conn = 1, .sport = 2, .dport = 3, .flags = TIMELY_NDP_COOKIED
	}, other;
	struct timely_ndp_addresses elsewhere = exchanged(ipv4);
	struct timely_orack_key key = { { 1, 2 } };

	header.cookie = timely_ndp_cookie(&header, &ipv4, &secret, 0);
	KUNIT_EXPECT_TRUE(test, timely_ndp_cookie_valid(&header, &ipv4, &secret, 0));
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&header, &elsewhere, &secret, 0));
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&header, &ipv4, &key, 0));
	other = header;
	other.conn++;
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&other, &ipv4, &secret, 0));
	other = header;
	other.sport++;
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&other, &ipv4, &secret, 0));
	other = header;
	other.dport++;
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&other, &ipv4, &secret, 0));
	other = header;
	other.cookie ^= 1ULL << 63;
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&other, &ipv4, &secret, 0));
	/* A header without a cookie has the cookie 0, which must not count. */
	other = header;
	other.flags = 0;
	KUNIT_EXPECT_FALSE(test, timely_ndp_cookie_valid(&other, &ipv4, &secret, 0));
}

static void before__of_numbers_that_wrap(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, timely_ndp_before(0, 1));
	KUNIT_EXPECT_FALSE(test, timely_ndp_before(1, 1));
	KUNIT_EXPECT_FALSE(test, timely_ndp_before(2, 1));
	KUNIT_EXPECT_TRUE(test, timely_ndp_before(U32_MAX, 0));
	KUNIT_EXPECT_FALSE(test, timely_ndp_before(0, U32_MAX));
	KUNIT_EXPECT_TRUE(test, timely_ndp_before(0, S32_MAX));
}

static struct kunit_case ndp_wire_cases[] = {
	KUNIT_CASE(encode__follows_the_reference),
	KUNIT_CASE(decode__follows_the_reference),
	KUNIT_CASE(decode__trimmed_at_each_byte),
	KUNIT_CASE(decode__no_bytes_after_the_end),
	KUNIT_CASE(decode__fits_into_a_trimmed_packet),
	KUNIT_CASE(decode__no_bit_may_change),
	KUNIT_CASE(decode__for_the_same_addresses_in_any_order),
	KUNIT_CASE(decode__nothing_impossible),
	KUNIT_CASE(decode__no_unknown_types_and_fields),
	KUNIT_CASE(verify__needs_the_right_key),
	KUNIT_CASE(verify__no_bit_may_change),
	KUNIT_CASE(verify__without_a_key),
	KUNIT_CASE(sum__follows_the_reference),
	KUNIT_CASE(sum__of_any_pieces),
	KUNIT_CASE(sum__no_bit_may_change),
	KUNIT_CASE(cookie__for_two_periods),
	KUNIT_CASE(cookie__for_one_connection),
	KUNIT_CASE(before__of_numbers_that_wrap),
	{}
};

static struct kunit_suite ndp_wire_suite = {
	.name = "timely_ndp_wire",
	.test_cases = ndp_wire_cases,
};

kunit_test_suite(ndp_wire_suite);
