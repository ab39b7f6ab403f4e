// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of NDP's packets, then random packets, intact, trimmed and damaged, and
 * random bytes, all in buffers that end where the packet ends. Built with ASan and UBSan.
 *
 *   ndp_wire_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS times STEPS packets. Prints TAP. Built with -DTIMELY_LIBFUZZER, the random numbers
 * are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/jhash.h>
#include <linux/limits.h>
#include <linux/socket.h>

#include <timely_unaligned.h>
#include <timely/engine/ndp_wire.h>

#define STEPS		64
#define MAX_PAYLOAD	300

enum promise {
	WHOLE, CUT, SHORT, FLIPPED, DAMAGED, RETURNED, TAG, UNTOUCHED, AGAIN, SUM, PIECES, COOKIE,
	PROMISES
};

static const char * const promises[PROMISES] = {
	[WHOLE] = "decoding gives the contents that were encoded",
	[CUT] = "a packet trimmed behind its header keeps its contents",
	[SHORT] = "a packet trimmed within its header is malformed",
	[FLIPPED] = "a header with one changed bit is rejected",
	[DAMAGED] = "a header with changed bytes is rejected",
	[RETURNED] = "exchanged addresses leave the checksum right and the tag wrong",
	[TAG] = "a header of another key is rejected",
	[UNTOUCHED] = "a rejected packet leaves the result as it was",
	[AGAIN] = "encoding a decoded header gives the same bytes",
	[SUM] = "changed payload has another checksum",
	[PIECES] = "the checksum of pieces is that of the whole",
	[COOKIE] = "a cookie is valid for its connection only",
};

#define FUZZ_ROUND	"packets"
#include "fuzz.h"

static struct {
	struct timely_ndp_header header;
	struct timely_ndp_addresses addresses;
	struct timely_orack_key key;
	u8 wire[TIMELY_NDP_MAX_BYTES + MAX_PAYLOAD];
	u32 needs;
	u32 total;
} now;

static void random_bytes(void *to, u32 bytes)
{
	u8 *byte = (u8 *)to;

	while (bytes--)
		*byte++ = (u8)roll();
}

static u32 random_flags(u8 type)
{
	static const u8 flags[] = {
		[TIMELY_NDP_DATA] = 0x3f, [TIMELY_NDP_ACK] = 0x10, [TIMELY_NDP_NACK] = 0x50,
		[TIMELY_NDP_PULL] = 0x10, [TIMELY_NDP_PROBE] = 0x31, [TIMELY_NDP_RESET] = 0x10,
		[TIMELY_NDP_COOKIE] = 0x10,
	};

	return (u32)roll() & flags[type];
}

/* The key of the packet; NULL: the packet has no tag. */
static const struct timely_orack_key *signer(void)
{
	return now.header.key ? &now.key : NULL;
}

static void random_packet(void)
{
	struct timely_ndp_header *header = &now.header;
	u32 bytes = below(2) ? 4 : 16;

	random_bytes(header, sizeof(*header));
	header->type = (u8)(1 + below(7));
	header->flags = (u8)random_flags(header->type);
	header->key = (u8)(below(4) ? 1 + below(255) : 0);
	header->limit = header->cum + below(65536);
	header->seen = header->credits - below(65536);
	header->sport = (u16)(1 + below(65535));
	header->dport = (u16)(1 + below(65535));
	header->length = (u16)(header->type == TIMELY_NDP_DATA ? below(MAX_PAYLOAD + 1) : 0);
	memset(&now.addresses, 0, sizeof(now.addresses));
	now.addresses.family = bytes == 4 ? AF_INET : AF_INET6;
	random_bytes(now.addresses.saddr, bytes);
	random_bytes(now.addresses.daddr, bytes);
	random_bytes(&now.key, sizeof(now.key));
	now.needs = timely_ndp_encode(now.wire, header, &now.addresses, signer());
	random_bytes(now.wire + now.needs, header->length);
	now.total = now.needs + header->length;
}

/* Decode a copy on the heap that ends where the packet ends, so that ASan detects reads beyond the
 * end.
 */
static enum timely_ndp_decoded decode(struct timely_ndp_header *header, const u8 *wire, u32 bytes,
				      const struct timely_ndp_addresses *addresses)
{
	u8 *copy = malloc(bytes ? bytes : 1);
	enum timely_ndp_decoded found;

	memcpy(copy, wire, bytes);
	found = timely_ndp_decode(header, copy, bytes, bytes, addresses);
	free(copy);
	return found;
}

static bool good(enum timely_ndp_decoded found)
{
	return found == TIMELY_NDP_WHOLE || found == TIMELY_NDP_CUT;
}

static void whole(void)
{
	struct timely_ndp_header got;
	u8 again[TIMELY_NDP_MAX_BYTES];

	promise(WHOLE, decode(&got, now.wire, now.total, &now.addresses) == TIMELY_NDP_WHOLE);
	promise(WHOLE, got.type == now.header.type && got.flags == now.header.flags &&
		got.conn == now.header.conn && got.sport == now.header.sport &&
		got.dport == now.header.dport && got.key == now.header.key);
	if (got.type == TIMELY_NDP_DATA)
		promise(WHOLE, got.seq == now.header.seq && got.sum == now.header.sum &&
			got.credits == now.header.credits && got.seen == now.header.seen &&
			got.length == now.header.length && got.path == now.header.path &&
			got.tries == now.header.tries);
	if (got.type >= TIMELY_NDP_ACK && got.type <= TIMELY_NDP_PULL)
		promise(WHOLE, got.cum == now.header.cum && got.limit == now.header.limit &&
			got.owed == now.header.owed);
	promise(WHOLE, timely_ndp_verify(&got, now.wire, &now.addresses, signer()));
	timely_ndp_encode(again, &got, &now.addresses, signer());
	promise(AGAIN, !memcmp(again, now.wire, now.needs));
}

static void trimmed(void)
{
	u32 bytes = below(now.total + 1);
	struct timely_ndp_header got, before;
	enum timely_ndp_decoded found;

	memset(&got, 0x5a, sizeof(got));
	before = got;
	found = decode(&got, now.wire, bytes, &now.addresses);
	if (bytes < now.needs) {
		promise(SHORT, found == TIMELY_NDP_MALFORMED);
		promise(UNTOUCHED, !memcmp(&got, &before, sizeof(got)));
	} else if (bytes < now.total) {
		promise(CUT, found == TIMELY_NDP_CUT && got.seq == now.header.seq &&
			timely_ndp_verify(&got, now.wire, &now.addresses, signer()));
	}
}

static void damaged(void)
{
	struct timely_ndp_header got, before;
	u8 wire[TIMELY_NDP_MAX_BYTES + MAX_PAYLOAD];
	u32 n = 1 + below(8);

	memset(&got, 0x5a, sizeof(got));
	before = got;
	memcpy(wire, now.wire, now.total);
	wire[below(now.needs)] ^= 1 << below(8);
	promise(FLIPPED, !good(decode(&got, wire, now.total, &now.addresses)));
	memcpy(wire, now.wire, now.total);
	while (n--)
		wire[below(now.needs)] = (u8)roll();
	if (memcmp(wire, now.wire, now.needs))
		promise(DAMAGED, !good(decode(&got, wire, now.total, &now.addresses)));
	promise(UNTOUCHED, !memcmp(&got, &before, sizeof(got)));
}

static void for_another(void)
{
	struct timely_ndp_addresses other = now.addresses;
	struct timely_orack_key key = now.key;
	struct timely_ndp_header got;

	memcpy(other.saddr, now.addresses.daddr, sizeof(other.saddr));
	memcpy(other.daddr, now.addresses.saddr, sizeof(other.daddr));
	if (!memcmp(other.saddr, other.daddr, sizeof(other.saddr)))
		return;
	promise(RETURNED, good(decode(&got, now.wire, now.total, &other)) &&
		!(signer() && timely_ndp_verify(&got, now.wire, &other, &now.key)));
	key.words[below(2)] ^= 1ULL << below(64);
	promise(TAG, !timely_ndp_verify(&got, now.wire, &now.addresses, &key));
}

/* Random bytes, most of which start as an NDP packet does and have a right checksum. */
static void anything(void)
{
	u8 wire[TIMELY_NDP_MAX_BYTES], again[TIMELY_NDP_MAX_BYTES];
	u32 words[4 + TIMELY_NDP_MAX_BYTES / 4], needs, i;
	struct timely_ndp_header got = {};

	random_bytes(wire, sizeof(wire));
	got.type = (u8)below(9);
	got.flags = wire[1] & (below(2) ? 0x3f : 0x10);
	got.key = below(2) ? wire[TIMELY_NDP_BYTES] : 0;
	wire[0] = (u8)(TIMELY_NDP_VERSION << 4 | got.type);
	wire[1] = got.flags | (got.key ? TIMELY_NDP_TAGGED : 0);
	if (got.key && below(8))
		memset(wire + TIMELY_NDP_BYTES + 1, 0, 3);
	needs = timely_ndp_header_bytes(&got);
	for (i = 0; i < 4; i++)
		words[i] = get_unaligned_be32(&now.addresses.saddr[i]) ^
			   get_unaligned_be32(&now.addresses.daddr[i]);
	put_unaligned_be32(0, wire + 32);
	for (i = 0; i < needs / 4; i++)
		words[4 + i] = get_unaligned_be32(wire + 4 * i);
	put_unaligned_be32(jhash2(words, 4 + needs / 4, now.addresses.family), wire + 32);
	if (!good(decode(&got, wire, needs, &now.addresses)))
		return;
	timely_ndp_encode(again, &got, &now.addresses, got.key ? &now.key : NULL);
	promise(AGAIN, !memcmp(wire, again, 32));
}

static void payload(void)
{
	u8 data[MAX_PAYLOAD];
	u32 bytes = 1 + below(MAX_PAYLOAD), a = below(bytes + 1), b = a + below(bytes - a + 1);
	u32 want;
	struct timely_ndp_sum sum;

	random_bytes(data, bytes);
	want = timely_ndp_sum(data, bytes);
	timely_ndp_sum_start(&sum);
	timely_ndp_sum_add(&sum, data, a);
	timely_ndp_sum_add(&sum, data + a, b - a);
	timely_ndp_sum_add(&sum, data + b, bytes - b);
	promise(PIECES, timely_ndp_sum_end(&sum) == want);
	data[below(bytes)] ^= 1 << below(8);
	promise(SUM, timely_ndp_sum(data, bytes) != want || dice.input);
}

static void cookie(void)
{
	struct timely_ndp_header header = now.header;
	u64 ns = roll() << 20;

	header.flags |= TIMELY_NDP_COOKIED;
	header.cookie = timely_ndp_cookie(&header, &now.addresses, &now.key, ns);
	promise(COOKIE, timely_ndp_cookie_valid(&header, &now.addresses, &now.key, ns));
	header.conn ^= 1ULL << below(64);
	promise(COOKIE, !timely_ndp_cookie_valid(&header, &now.addresses, &now.key, ns));
}

static void one_step(void)
{
	random_packet();
	whole();
	trimmed();
	damaged();
	for_another();
	anything();
	payload();
	cookie();
}

static void fuzz_input(void)
{
	struct timely_ndp_header got;

	now.addresses.family = AF_INET;
	decode(&got, dice.input, (u32)dice.left, &now.addresses);
	one_step();
}

static void fuzz_round(void)
{
	for (u32 i = 0; i < STEPS; i++)
		one_step();
}
