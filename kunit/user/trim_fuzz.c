// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of trimming, then random frames: valid ones, damaged ones and random bytes,
 * each in a buffer that ends where the bytes that the engine may read end. Also random sequences of
 * the round robin. Built with ASan and UBSan.
 *
 *   trim_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS times STEPS frames. Prints TAP. Built with -DTIMELY_LIBFUZZER, the random numbers are
 * the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/limits.h>

#include <timely_unaligned.h>
#include <timely/engine/trim.h>

#define STEPS	256

enum promise {
	INSIDE, SIZE, FITTING, ELIGIBLE, LENGTHS, CHECKSUM, REST, MARKED, AGAIN, RETURNED, SHARE,
	PROMISES
};

static const char * const promises[PROMISES] = {
	[INSIDE] = "a packet that can be trimmed has its headers within its first bytes",
	[SIZE] = "only a packet that is longer than a trimmed packet is trimmed",
	[FITTING] = "a frame as the stack makes it can be trimmed",
	[ELIGIBLE] = "only a packet with a trimmable DSCP is trimmed",
	[LENGTHS] = "the lengths of IP and UDP end at the end of the trimmed frame",
	[CHECKSUM] = "the IPv4 checksum of a trimmed packet is right if it was right before",
	[REST] = "all other bytes of the headers stay",
	[MARKED] = "a trimmed packet has the new DSCP and the old ECN bits",
	[AGAIN] = "a trimmed packet counts as short, and is not trimmed again",
	[RETURNED] = "returning a packet twice gives the same packet",
	[SHARE] = "with both queues backlogged the header queue sends its ratio",
};

#define FUZZ_ROUND	"256 frames and a round robin"
#include "fuzz.h"

static struct {
	struct timely_trim_cfg cfg;
	struct timely_trim_packet packet;
	u8 frame[2048];
	u32 length;
	u32 network;
	u32 type;
	bool valid;	/* made as the stack makes it */
} now;

static u32 sum_of(const u8 *from, u32 bytes)
{
	u32 sum = 0;

	for (u32 i = 0; i < bytes; i += 2)
		sum += get_unaligned_be16(from + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void random_cfg(void)
{
	now.cfg = (struct timely_trim_cfg) {
		.trimmable = below(2) ? U64_MAX : roll() << 32 ^ roll(),
		.size = 64 + below(below(4) ? 128 : 1500),
		.dscp = below(64),
		.ratio = 1 + below(20),
	};
}

static void make_ipv4(u8 *ip, u32 bytes)
{
	u32 header = 20 + 4 * below(below(3) ? 1 : 11);

	ip[0] = 0x40 + header / 4;
	put_unaligned_be16(bytes, ip + 2);
	put_unaligned_be16(below(8) ? 0x4000 : roll(), ip + 6);
	ip[9] = below(4) ? IPPROTO_UDP : roll();
	put_unaligned_be16(0, ip + 10);
	put_unaligned_be16((u16)~sum_of(ip, header), ip + 10);
	if (ip[9] == IPPROTO_UDP)
		put_unaligned_be16(bytes - header, ip + header + 4);
}

static void make_ipv6(u8 *ip, u32 bytes)
{
	static const u8 types[] = { IPPROTO_HOPOPTS, IPPROTO_DSTOPTS, IPPROTO_ROUTING };
	u32 extensions = below(3) ? 0 : below(12), i;
	u8 *next = ip + 6, *header = ip + 40;

	ip[0] = 0x60 | (ip[0] & 15);
	put_unaligned_be16(bytes - 40, ip + 4);
	for (i = 0; i < extensions; i++) {
		*next = types[below(ARRAY_SIZE(types))];
		next = header;
		header[1] = below(3) ? 0 : below(4);
		header += 8 * (header[1] + 1);
	}
	*next = below(4) ? IPPROTO_UDP : roll();
	if (*next == IPPROTO_UDP)
		put_unaligned_be16(ip + bytes - header, header + 4);
}

static void random_frame(void)
{
	u32 i, padding = below(8) ? 0 : below(100);

	for (i = 0; i < sizeof(now.frame); i++)
		now.frame[i] = roll();
	now.network = below(8) ? 14 : below(40);
	now.length = now.network + 600 + below(900) + padding;
	now.type = below(2) ? 0x0800 : 0x86dd;
	if (now.type == 0x0800)
		make_ipv4(now.frame + now.network, now.length - now.network - padding);
	else
		make_ipv6(now.frame + now.network, now.length - now.network - padding);
	now.valid = below(4);
	if (now.valid)
		return;
	for (i = 1 + below(6); i; i--)
		now.frame[below(80)] = roll();
	now.length = below(4) ? now.length : below(now.length);
	now.type = below(8) ? now.type : below(0x10000);
}

/* Parse a copy on the heap that ends where the readable bytes end. */
static enum timely_trim_kind parse(u32 length)
{
	u32 bytes = min(length, TIMELY_TRIM_HEADERS_MAX);
	enum timely_trim_kind kind;
	u8 *copy = malloc(bytes ? bytes : 1);

	memcpy(copy, now.frame, bytes);
	kind = timely_trim_parse(&now.packet, &now.cfg, copy, bytes, length, now.network,
				 now.type);
	free(copy);
	return kind;
}

static u32 dscp_of(const u8 *ip)
{
	return now.packet.ipv6 ? get_unaligned_be16(ip) >> 6 & 63 : ip[1] >> 2;
}

static u32 ecn_of(const u8 *ip)
{
	return now.packet.ipv6 ? get_unaligned_be16(ip) >> 4 & 3 : ip[1] & 3;
}

/* Clear the fields that trimming changes. */
static void blank(u8 *frame, const struct timely_trim_packet *packet)
{
	u8 *ip = frame + packet->network;

	put_unaligned_be16(get_unaligned_be16(ip) & (packet->ipv6 ? 0xf00f : 0xff00), ip);
	put_unaligned_be16(0, ip + (packet->ipv6 ? 4 : 2));
	if (!packet->ipv6)
		put_unaligned_be16(0, ip + 10);
	if (packet->protocol == IPPROTO_UDP)
		put_unaligned_be16(0, frame + packet->transport + 4);
}

static void returned(u8 *frame, u32 bytes)
{
	u8 twice[256];

	if (!timely_trim_may_return(frame, &now.packet))
		return;
	memcpy(twice, frame, bytes);
	timely_trim_return(twice, &now.packet);
	promise(RETURNED, memcmp(twice, frame, bytes) &&
		timely_trim_may_return(twice, &now.packet));
	timely_trim_return(twice, &now.packet);
	promise(RETURNED, !memcmp(twice, frame, bytes));
}

static void trimmed(void)
{
	u32 bytes = now.packet.transport + TIMELY_TRIM_TRANSPORT_BYTES, end = now.cfg.size;
	u8 *ip = now.frame + now.network, *udp = now.frame + now.packet.transport;
	u32 header = 4 * (ip[0] & 15), ecn = ecn_of(ip), ip_bytes;
	bool right = !now.packet.ipv6 && sum_of(ip, header) == 0xffff;
	u32 udp_bytes = get_unaligned_be16(udp + 4);
	u8 before[256], *copy = malloc(bytes);

	promise(ELIGIBLE, now.cfg.trimmable >> dscp_of(ip) & 1);
	memcpy(before, now.frame, bytes);
	/* The engine may write only up to the end of the UDP header. */
	memcpy(copy, now.frame, bytes);
	timely_trim_rewrite(copy, &now.packet, end, now.cfg.dscp);
	memcpy(now.frame, copy, bytes);
	free(copy);

	ip_bytes = now.packet.ipv6 ? get_unaligned_be16(ip + 4) + 40 : get_unaligned_be16(ip + 2);
	promise(LENGTHS, now.network + ip_bytes == end);
	if (now.packet.protocol == IPPROTO_UDP)
		promise(LENGTHS, get_unaligned_be16(udp + 4) ==
			min(udp_bytes, end - now.packet.transport));
	if (!now.packet.ipv6)
		promise(CHECKSUM, !right || sum_of(ip, header) == 0xffff);
	promise(MARKED, dscp_of(ip) == now.cfg.dscp && ecn_of(ip) == ecn);
	now.cfg.trimmable = U64_MAX;
	promise(AGAIN, parse(end) == TIMELY_TRIM_SHORT);
	returned(now.frame, bytes);

	memcpy(now.frame + 1024, now.frame, bytes);
	blank(now.frame + 1024, &now.packet);
	blank(before, &now.packet);
	promise(REST, !memcmp(before, now.frame + 1024, bytes));
}

static void one_frame(void)
{
	enum timely_trim_kind kind;

	random_cfg();
	random_frame();
	kind = parse(now.length);
	if (now.valid && now.cfg.trimmable == U64_MAX && now.cfg.size > 300 &&
	    now.type == 0x0800 && !(now.frame[now.network + 6] & 0x3f) &&
	    !now.frame[now.network + 7] && now.frame[now.network + 9] == IPPROTO_UDP)
		promise(FITTING, kind == TIMELY_TRIM_POSSIBLE || kind == TIMELY_TRIM_SHORT);
	if (kind != TIMELY_TRIM_POSSIBLE)
		return;
	promise(INSIDE, now.packet.network == now.network &&
		now.packet.transport >= now.network + 20 &&
		now.packet.transport + TIMELY_TRIM_TRANSPORT_BYTES <=
		min(now.cfg.size, TIMELY_TRIM_HEADERS_MAX));
	promise(SIZE, now.length > now.cfg.size);
	trimmed();
}

static void one_round_robin(void)
{
	struct timely_trim_round round = {};
	u32 packets = 1 + below(200), headers = 0, i;

	random_cfg();
	for (i = below(50); i; i--)
		timely_trim_headers_next(&round, &now.cfg, below(2), true);
	while (timely_trim_headers_next(&round, &now.cfg, true, true))
		;
	for (i = 0; i < packets; i++)
		headers += timely_trim_headers_next(&round, &now.cfg, true, true);
	promise(SHARE, packets - headers == packets / (now.cfg.ratio + 1));
}

static void fuzz_round(void)
{
	for (int i = 0; i < STEPS; i++)
		one_frame();
	one_round_robin();
}

static void fuzz_input(void)
{
	one_frame();
	one_round_robin();
}
