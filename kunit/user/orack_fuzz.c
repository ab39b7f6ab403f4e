// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of OR-ACKs, then random OR-ACKs, intact and damaged, and random bytes, all
 * in buffers that end where the packet ends. Built with ASan and UBSan.
 *
 *   orack_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS times STEPS packets. Prints TAP. Built with -DTIMELY_LIBFUZZER, the random numbers
 * are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/limits.h>
#include <linux/siphash.h>
#include <linux/socket.h>

#include <timely_unaligned.h>
#include <timely/engine/orack.h>

#define STEPS		64
#define PACKET_BYTES	2048

enum promise {
	WHOLE, VERIFIED, FLIPPED, DAMAGED, OTHER_FLOW, OTHER_KEY, KEYLESS, LENGTH, UNTOUCHED,
	AGAIN, TAG, DIGEST, PROMISES
};

static const char * const promises[PROMISES] = {
	[WHOLE] = "decoding gives the contents that were encoded",
	[VERIFIED] = "an encoded OR-ACK has the tag of its key",
	[FLIPPED] = "an OR-ACK with one changed bit is rejected",
	[DAMAGED] = "an OR-ACK with changed bytes is rejected",
	[OTHER_FLOW] = "an OR-ACK of other addresses is rejected",
	[OTHER_KEY] = "an OR-ACK of another key is rejected",
	[KEYLESS] = "without a key, only OR-ACKs without a key are accepted",
	[LENGTH] = "a packet of another length is rejected",
	[UNTOUCHED] = "a rejected packet leaves the result as it was",
	[AGAIN] = "encoding a decoded packet gives the same bytes",
	[TAG] = "the tag is the SipHash of addresses and contents",
	[DIGEST] = "a digest depends on 16 bytes and the length, and is not 0",
};

#define FUZZ_ROUND	"OR-ACKs"
#include "fuzz.h"

static struct {
	struct timely_orack orack;
	struct timely_orack_key key;
	u8 wire[TIMELY_ORACK_BYTES];
} now;

static u64 wide(void)
{
	return roll() << 32 ^ roll();
}

static void random_bytes(void *to, u32 bytes)
{
	u8 *byte = (u8 *)to;

	while (bytes--)
		*byte++ = (u8)roll();
}

static struct timely_orack random_orack(void)
{
	struct timely_orack orack;
	u32 bytes = below(2) ? 4 : 16;

	memset(&orack, 0, sizeof(orack));
	orack.tuple.family = bytes == 4 ? AF_INET : AF_INET6;
	orack.tuple.protocol = below(2) ? IPPROTO_TCP : IPPROTO_UDP;
	random_bytes(orack.tuple.saddr, bytes);
	random_bytes(orack.tuple.daddr, bytes);
	put_unaligned_be16(1 + below(65535), &orack.tuple.sport);
	put_unaligned_be16(1 + below(65535), &orack.tuple.dport);
	orack.received_ns = wide();
	orack.seq = (u32)roll();
	orack.turnaround_ns = (u32)roll();
	orack.key = (u8)below(256);
	orack.flags = (u8)below(2);
	return orack;
}

/* Decode a copy on the heap that ends where the packet ends, so that ASan detects reads beyond the
 * end.
 */
static bool decode(struct timely_orack *orack, const u8 *wire, u32 bytes)
{
	u8 *copy = malloc(bytes ? bytes : 1);
	bool good;

	memcpy(copy, wire, bytes);
	good = timely_orack_decode(orack, copy, bytes);
	free(copy);
	return good;
}

static bool receive(const struct timely_orack *truth, const u8 *wire,
		    const struct timely_orack_key *key, struct timely_orack *orack)
{
	if (!decode(orack, wire, TIMELY_ORACK_BYTES))
		return false;
	orack->tuple.net = truth->tuple.net;
	orack->tuple.family = truth->tuple.family;
	memcpy(orack->tuple.saddr, truth->tuple.saddr, sizeof(truth->tuple.saddr));
	memcpy(orack->tuple.daddr, truth->tuple.daddr, sizeof(truth->tuple.daddr));
	return timely_orack_verify(orack, wire, key);
}

static void whole(void)
{
	struct timely_orack got;
	siphash_key_t key = { { now.key.words[0], now.key.words[1] } };
	u8 text[2 + 16 + 16 + 28];

	promise(VERIFIED, receive(&now.orack, now.wire, &now.key, &got));
	promise(WHOLE, !memcmp(&got, &now.orack, sizeof(got)));
	put_unaligned_be16(now.orack.tuple.family, text);
	memcpy(text + 2, now.orack.tuple.saddr, 16);
	memcpy(text + 18, now.orack.tuple.daddr, 16);
	memcpy(text + 34, now.wire, 28);
	promise(TAG, get_unaligned_be64(now.wire + 28) == siphash(text, sizeof(text), &key));
}

static void flipped(void)
{
	struct timely_orack got;
	u8 wire[TIMELY_ORACK_BYTES];
	u32 bit;

	for (bit = 0; bit < 8 * TIMELY_ORACK_BYTES; bit++) {
		memcpy(wire, now.wire, sizeof(wire));
		wire[bit / 8] ^= 1 << bit % 8;
		promise(FLIPPED, !receive(&now.orack, wire, &now.key, &got));
	}
}

static void damaged(void)
{
	struct timely_orack got, before;
	u8 wire[TIMELY_ORACK_BYTES];
	u32 n = 1 + below(8);

	memcpy(wire, now.wire, sizeof(wire));
	while (n--)
		wire[below(sizeof(wire))] = (u8)roll();
	if (memcmp(wire, now.wire, sizeof(wire)))
		promise(DAMAGED, !receive(&now.orack, wire, &now.key, &got));
	memset(&got, 0x5a, sizeof(got));
	before = got;
	if (!decode(&got, wire, sizeof(wire)))
		promise(UNTOUCHED, !memcmp(&got, &before, sizeof(got)));
}

static void for_another(void)
{
	struct timely_orack other = now.orack, got;
	struct timely_orack_key key = now.key;
	u32 bit = below(128);

	if (below(2))
		((u8 *)other.tuple.saddr)[bit / 8] ^= 1 << bit % 8;
	else
		((u8 *)other.tuple.daddr)[bit / 8] ^= 1 << bit % 8;
	promise(OTHER_FLOW, !receive(&other, now.wire, &now.key, &got));
	key.words[bit / 64] ^= 1ULL << bit % 64;
	promise(OTHER_KEY, !receive(&now.orack, now.wire, &key, &got));
}

static void keyless(void)
{
	struct timely_orack got;
	u8 wire[TIMELY_ORACK_BYTES];

	promise(KEYLESS, !receive(&now.orack, now.wire, NULL, &got));
	timely_orack_encode(wire, &now.orack, NULL);
	promise(KEYLESS, receive(&now.orack, wire, NULL, &got) && !got.key);
	promise(KEYLESS, !receive(&now.orack, wire, &now.key, &got));
	wire[3] = (u8)(1 + below(255));
	promise(KEYLESS, !receive(&now.orack, wire, NULL, &got));
}

static void another_length(void)
{
	struct timely_orack got;
	u8 packet[PACKET_BYTES];
	u32 bytes = below(2) ? below(80) : below(PACKET_BYTES);

	if (bytes == TIMELY_ORACK_BYTES)
		return;
	random_bytes(packet, sizeof(packet));
	memcpy(packet, now.wire, sizeof(now.wire));
	promise(LENGTH, !decode(&got, packet, bytes));
}

/* Random bytes, most of which start as an OR-ACK does. */
static void anything(void)
{
	u8 wire[TIMELY_ORACK_BYTES], again[TIMELY_ORACK_BYTES];
	struct timely_orack got;

	random_bytes(wire, sizeof(wire));
	if (below(8)) {
		memcpy(wire, now.wire, 3);
		wire[4] = below(2) ? IPPROTO_TCP : IPPROTO_UDP;
		wire[5] &= 1;
		put_unaligned_be16(0, wire + 10);
	}
	if (!decode(&got, wire, sizeof(wire)))
		return;
	timely_orack_encode(again, &got, &now.key);
	promise(AGAIN, !memcmp(wire, again, 28));
}

static void digest(void)
{
	u32 bytes = below(2) ? below(24) : below(PACKET_BYTES), kept = min(bytes, 16u), got;
	u8 *copy = malloc(kept ? kept : 1);
	u8 packet[PACKET_BYTES];

	random_bytes(packet, sizeof(packet));
	memcpy(copy, packet, kept);
	got = timely_udp_digest(copy, bytes);
	promise(DIGEST, got && got == timely_udp_digest(packet, bytes));
	if (kept) {
		copy[below(kept)] ^= 1 << below(8);
		promise(DIGEST, got != timely_udp_digest(copy, bytes) || dice.input);
	}
	free(copy);
}

static void one_step(void)
{
	now.orack = random_orack();
	now.key.words[0] = wide();
	now.key.words[1] = wide();
	timely_orack_encode(now.wire, &now.orack, &now.key);
	whole();
	flipped();
	damaged();
	for_another();
	keyless();
	another_length();
	anything();
	digest();
}

static void fuzz_input(void)
{
	struct timely_orack got;
	u8 again[TIMELY_ORACK_BYTES];

	if (decode(&got, dice.input, (u32)dice.left)) {
		timely_orack_encode(again, &got, &now.key);
		promise(AGAIN, !memcmp(dice.input, again, 28));
	}
	one_step();
}

static void fuzz_round(void)
{
	for (u32 i = 0; i < STEPS; i++)
		one_step();
}
