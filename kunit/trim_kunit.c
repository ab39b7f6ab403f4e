// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the decisions of a switch that trims packets (net/timely/engine/trim.c): which packets
 * can be trimmed, what their headers become, which queue is served next. Cases are named
 * function__case.
 */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/string.h>

#include <timely_unaligned.h>
#include <timely/engine/trim.h>

#define FRAME_BYTES	1514
#define LINK_BYTES	14
#define IPV4		0x0800
#define IPV6		0x86dd
#define CS6		48

static u8 frame[FRAME_BYTES];

static struct timely_trim_cfg defaults(void)
{
	return (struct timely_trim_cfg) {
		.control = 1ULL << CS6, .trimmable = U64_MAX, .limit = 8, .header_limit = 12112,
		.size = 128, .ratio = 10, .dscp = CS6,
	};
}

/* The ones' complement sum of @bytes bytes, folded: 0xffff if they contain their checksum. */
static u32 sum_of(const u8 *from, u32 bytes)
{
	u32 sum = 0, i;

	for (i = 0; i < bytes; i += 2)
		sum += get_unaligned_be16(from + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* A UDP packet of 1514 bytes with @options bytes of IPv4 options, 0 to 40, a multiple of 4. */
static u8 *make_ipv4(u32 options)
{
	u8 *ip = frame + LINK_BYTES;

	memset(frame, 0, sizeof(frame));
	ip[0] = 0x45 + options / 4;
	ip[1] = 10 << 2 | 2;	/* AF11, ECT(0) */
	put_unaligned_be16(FRAME_BYTES - LINK_BYTES, ip + 2);
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	put_unaligned_be32(0x0a000001, ip + 12);
	put_unaligned_be32(0x0a000002, ip + 16);
	put_unaligned_be16((u16)~sum_of(ip, 20 + options), ip + 10);
	put_unaligned_be16(1000, ip + 20 + options);
	put_unaligned_be16(2000, ip + 22 + options);
	put_unaligned_be16(FRAME_BYTES - LINK_BYTES - 20 - options, ip + 24 + options);
	return ip;
}

/* A UDP packet of 1514 bytes with @extensions extension headers of 8 bytes. */
static u8 *make_ipv6(u32 extensions)
{
	static const u8 types[] = { IPPROTO_HOPOPTS, IPPROTO_DSTOPTS, IPPROTO_ROUTING };
	u8 *ip = frame + LINK_BYTES, *next = ip + 6, *header = ip + 40;
	u32 i;

	memset(frame, 0, sizeof(frame));
	put_unaligned_be32(0x62a12345, ip);	/* AF11, ECT(0), a flow label */
	put_unaligned_be16(FRAME_BYTES - LINK_BYTES - 40, ip + 4);
	put_unaligned_be32(0xfd000000, ip + 8);
	put_unaligned_be32(0xfd010000, ip + 24);
	for (i = 0; i < extensions; i++, header += 8) {
		*next = types[i % ARRAY_SIZE(types)];
		next = header;
	}
	*next = IPPROTO_UDP;
	put_unaligned_be16(1000, header);
	put_unaligned_be16(2000, header + 2);
	put_unaligned_be16(frame + FRAME_BYTES - header, header + 4);
	return ip;
}

static enum timely_trim_kind parse(struct timely_trim_packet *packet, u32 type)
{
	struct timely_trim_cfg cfg = defaults();

	return timely_trim_parse(packet, &cfg, frame, TIMELY_TRIM_HEADERS_MAX, FRAME_BYTES,
				 LINK_BYTES, type);
}

static enum timely_trim_kind parse_to(u32 size, u32 bytes, u32 length, u32 type)
{
	struct timely_trim_cfg cfg = defaults();
	struct timely_trim_packet packet;

	cfg.size = size;
	return timely_trim_parse(&packet, &cfg, frame, bytes, length, LINK_BYTES, type);
}

/* ---- what can be trimmed ---- */

static void parse__ipv4(struct kunit *test)
{
	struct timely_trim_packet packet;
	u32 options;

	for (options = 0; options <= 40; options += 4) {
		make_ipv4(options);
		KUNIT_EXPECT_EQ(test, parse(&packet, IPV4), TIMELY_TRIM_POSSIBLE);
		KUNIT_EXPECT_EQ(test, packet.network, LINK_BYTES);
		KUNIT_EXPECT_EQ(test, packet.transport, LINK_BYTES + 20 + options);
		KUNIT_EXPECT_EQ(test, packet.protocol, IPPROTO_UDP);
		KUNIT_EXPECT_FALSE(test, packet.ipv6);
	}
}

static void parse__ipv6(struct kunit *test)
{
	struct timely_trim_packet packet;
	u32 extensions;

	for (extensions = 0; extensions <= 8; extensions++) {
		make_ipv6(extensions);
		KUNIT_EXPECT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_POSSIBLE);
		KUNIT_EXPECT_EQ(test, packet.transport, LINK_BYTES + 40 + 8 * extensions);
		KUNIT_EXPECT_EQ(test, packet.protocol, IPPROTO_UDP);
		KUNIT_EXPECT_TRUE(test, packet.ipv6);
	}
	/* An extension header of 24 bytes. */
	make_ipv6(1)[41] = 2;
	KUNIT_EXPECT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_POSSIBLE);
	KUNIT_EXPECT_EQ(test, packet.transport, LINK_BYTES + 64);
	/* 14 + 40 + 9 * 8 + 8 bytes do not fit into 128. */
	make_ipv6(9);
	KUNIT_EXPECT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_HEADERS);
}

static void parse__short(struct kunit *test)
{
	u8 *ip = make_ipv4(0);

	KUNIT_EXPECT_EQ(test, parse_to(1513, 256, 1514, IPV4), TIMELY_TRIM_POSSIBLE);
	KUNIT_EXPECT_EQ(test, parse_to(1514, 256, 1514, IPV4), TIMELY_TRIM_SHORT);
	/* The rest of the frame is padding. */
	put_unaligned_be16(114, ip + 2);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV4), TIMELY_TRIM_SHORT);
	put_unaligned_be16(115, ip + 2);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV4), TIMELY_TRIM_POSSIBLE);
	ip = make_ipv6(0);
	KUNIT_EXPECT_EQ(test, parse_to(1514, 256, 1514, IPV6), TIMELY_TRIM_SHORT);
	put_unaligned_be16(74, ip + 4);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV6), TIMELY_TRIM_SHORT);
	put_unaligned_be16(75, ip + 4);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV6), TIMELY_TRIM_POSSIBLE);
}

static void parse__dscp(struct kunit *test)
{
	struct timely_trim_cfg cfg = defaults();
	struct timely_trim_packet packet;
	u32 dscp;
	u8 *ip;

	for (dscp = 0; dscp < 64; dscp++) {
		ip = make_ipv4(0);
		ip[1] = dscp << 2 | 3;
		cfg.trimmable = 1ULL << dscp;
		KUNIT_EXPECT_EQ(test, timely_trim_parse(&packet, &cfg, frame, 256, FRAME_BYTES,
							LINK_BYTES, IPV4), TIMELY_TRIM_POSSIBLE);
		cfg.trimmable = ~cfg.trimmable;
		KUNIT_EXPECT_EQ(test, timely_trim_parse(&packet, &cfg, frame, 256, FRAME_BYTES,
							LINK_BYTES, IPV4), TIMELY_TRIM_DSCP);
		ip = make_ipv6(0);
		put_unaligned_be16(0x603f | dscp << 6, ip);
		KUNIT_EXPECT_EQ(test, timely_trim_parse(&packet, &cfg, frame, 256, FRAME_BYTES,
							LINK_BYTES, IPV6), TIMELY_TRIM_DSCP);
		cfg.trimmable = ~cfg.trimmable;
		KUNIT_EXPECT_EQ(test, timely_trim_parse(&packet, &cfg, frame, 256, FRAME_BYTES,
							LINK_BYTES, IPV6), TIMELY_TRIM_POSSIBLE);
	}
}

static void parse__not_ip(struct kunit *test)
{
	static const u16 types[] = { 0, 0x0806, 0x8100, 0x8847, 0x88cc, 0xffff };
	u32 i;

	make_ipv4(0);
	for (i = 0; i < ARRAY_SIZE(types); i++)
		KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, types[i]), TIMELY_TRIM_NOT_IP);
}

static void parse__fragments(struct kunit *test)
{
	static const u16 fields[] = { 0x2000, 1, 0x1fff, 0x3fff, 0x6000 };
	struct timely_trim_packet packet;
	u8 *ip = make_ipv4(0);
	u32 i;

	put_unaligned_be16(0x4000, ip + 6);	/* don't fragment */
	KUNIT_EXPECT_EQ(test, parse(&packet, IPV4), TIMELY_TRIM_POSSIBLE);
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		put_unaligned_be16(fields[i], ip + 6);
		KUNIT_EXPECT_EQ(test, parse(&packet, IPV4), TIMELY_TRIM_FRAGMENT);
	}
	ip = make_ipv6(0);
	ip[6] = IPPROTO_FRAGMENT;
	KUNIT_EXPECT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_FRAGMENT);
	ip = make_ipv6(2);
	ip[48] = IPPROTO_FRAGMENT;
	KUNIT_EXPECT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_FRAGMENT);
}

static void parse__ipsec(struct kunit *test)
{
	static const u8 protocols[] = { IPPROTO_ESP, IPPROTO_AH };
	struct timely_trim_packet packet;
	u32 i;
	u8 *ip;

	for (i = 0; i < ARRAY_SIZE(protocols); i++) {
		ip = make_ipv4(0);
		ip[9] = protocols[i];
		KUNIT_EXPECT_EQ(test, parse(&packet, IPV4), TIMELY_TRIM_IPSEC);
		ip = make_ipv6(0);
		ip[6] = protocols[i];
		KUNIT_EXPECT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_IPSEC);
		ip = make_ipv6(1);
		ip[40] = protocols[i];
		KUNIT_EXPECT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_IPSEC);
	}
}

static void parse__invalid_headers(struct kunit *test)
{
	u8 *ip = make_ipv4(0);
	u32 bytes;

	for (bytes = 0; bytes < 42; bytes++)
		KUNIT_EXPECT_EQ(test, parse_to(128, bytes, 1514, IPV4), TIMELY_TRIM_HEADERS);
	KUNIT_EXPECT_EQ(test, parse_to(128, 42, 1514, IPV4), TIMELY_TRIM_POSSIBLE);
	/* The packet is longer than the frame. */
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1513, IPV4), TIMELY_TRIM_HEADERS);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1515, IPV4), TIMELY_TRIM_POSSIBLE);
	ip[0] = 0x44;
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV4), TIMELY_TRIM_HEADERS);
	ip[0] = 0x65;
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV4), TIMELY_TRIM_HEADERS);
	ip = make_ipv4(0);
	put_unaligned_be16(19, ip + 2);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV4), TIMELY_TRIM_HEADERS);
	put_unaligned_be16(0, ip + 2);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV4), TIMELY_TRIM_HEADERS);

	ip = make_ipv6(0);
	for (bytes = 0; bytes < 62; bytes++)
		KUNIT_EXPECT_EQ(test, parse_to(128, bytes, 1514, IPV6), TIMELY_TRIM_HEADERS);
	KUNIT_EXPECT_EQ(test, parse_to(128, 62, 1514, IPV6), TIMELY_TRIM_POSSIBLE);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1513, IPV6), TIMELY_TRIM_HEADERS);
	/* A jumbogram. */
	put_unaligned_be16(0, ip + 4);
	KUNIT_EXPECT_EQ(test, parse_to(128, 256, 1514, IPV6), TIMELY_TRIM_HEADERS);
	/* The extension header ends beyond the frame. */
	ip = make_ipv6(1);
	ip[41] = 255;
	KUNIT_EXPECT_EQ(test, parse_to(1000, 256, 1514, IPV6), TIMELY_TRIM_HEADERS);
}

/* A trimmed packet has at least the ports. */
static void parse__headers_that_do_not_fit(struct kunit *test)
{
	make_ipv4(40);
	KUNIT_EXPECT_EQ(test, parse_to(82, 256, 1514, IPV4), TIMELY_TRIM_POSSIBLE);
	KUNIT_EXPECT_EQ(test, parse_to(81, 256, 1514, IPV4), TIMELY_TRIM_HEADERS);
}

/* ---- headers of trimmed packets ---- */

static void rewrite__ipv4(struct kunit *test)
{
	struct timely_trim_packet packet;
	u8 *ip = make_ipv4(8);

	ip[26 + 8] = 0x12;
	KUNIT_ASSERT_EQ(test, parse(&packet, IPV4), TIMELY_TRIM_POSSIBLE);
	timely_trim_rewrite(frame, &packet, 128, CS6);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 2), 114);
	KUNIT_EXPECT_EQ(test, ip[1], CS6 << 2 | 2);
	KUNIT_EXPECT_EQ(test, sum_of(ip, 28), 0xffff);
	/* The UDP header: ports, length, checksum. */
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 28), 1000);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 30), 2000);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 32), 86);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 34), 0x1200);
}

static void rewrite__ipv6(struct kunit *test)
{
	struct timely_trim_packet packet;
	u8 *ip = make_ipv6(2);

	KUNIT_ASSERT_EQ(test, parse(&packet, IPV6), TIMELY_TRIM_POSSIBLE);
	timely_trim_rewrite(frame, &packet, 200, 1);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(ip), 0x60612345);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 4), 146);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 60), 130);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 62), 0);
}

/* All checksums of the field: one that is wrong must stay wrong. */
static void rewrite__checksums(struct kunit *test)
{
	struct timely_trim_packet packet;
	u32 error;
	u8 *ip;

	for (error = 0; error < 0x10000; error += 0x101) {
		ip = make_ipv4(0);
		put_unaligned_be16(error, ip + 4);	/* the ID: another checksum each time */
		put_unaligned_be16(0, ip + 10);
		put_unaligned_be16((u16)~sum_of(ip, 20), ip + 10);
		parse(&packet, IPV4);
		timely_trim_rewrite(frame, &packet, 128, CS6);
		KUNIT_EXPECT_EQ(test, sum_of(ip, 20), 0xffff);
		ip = make_ipv4(0);
		put_unaligned_be16(get_unaligned_be16(ip + 10) ^ (error | 1), ip + 10);
		parse(&packet, IPV4);
		timely_trim_rewrite(frame, &packet, 128, CS6);
		KUNIT_EXPECT_TRUE(test, sum_of(ip, 20) != 0xffff);
	}
}

/* The length of other protocols than UDP is not at this place. A UDP length that is short stays. */
static void rewrite__other_transports(struct kunit *test)
{
	struct timely_trim_packet packet;
	u8 *ip = make_ipv4(0);

	ip[9] = IPPROTO_TCP;
	parse(&packet, IPV4);
	timely_trim_rewrite(frame, &packet, 128, CS6);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 24), 1480);
	ip = make_ipv4(0);
	put_unaligned_be16(94, ip + 24);
	parse(&packet, IPV4);
	timely_trim_rewrite(frame, &packet, 128, CS6);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 24), 94);
	put_unaligned_be16(95, ip + 24);
	timely_trim_rewrite(frame, &packet, 128, CS6);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 24), 94);
}

/* ---- return to sender ---- */

static void return__swaps(struct kunit *test)
{
	struct timely_trim_packet packet;
	u8 *ip = make_ipv4(0);

	parse(&packet, IPV4);
	KUNIT_EXPECT_TRUE(test, timely_trim_may_return(frame, &packet));
	timely_trim_return(frame, &packet);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(ip + 12), 0x0a000002);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(ip + 16), 0x0a000001);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 20), 2000);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 22), 1000);
	KUNIT_EXPECT_EQ(test, sum_of(ip, 20), 0xffff);
	ip = make_ipv6(0);
	ip[39] = 9;
	parse(&packet, IPV6);
	KUNIT_EXPECT_TRUE(test, timely_trim_may_return(frame, &packet));
	timely_trim_return(frame, &packet);
	KUNIT_EXPECT_EQ(test, ip[23], 9);
	KUNIT_EXPECT_EQ(test, ip[39], 0);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(ip + 8), 0xfd010000);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(ip + 24), 0xfd000000);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 40), 2000);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(ip + 42), 1000);
}

static bool may_return(u32 type)
{
	struct timely_trim_packet packet;

	return parse(&packet, type) == TIMELY_TRIM_POSSIBLE &&
	       timely_trim_may_return(frame, &packet);
}

static void may_return__ipv4(struct kunit *test)
{
	static const u32 addresses[] = {
		0, 0x00000001, 0x7f000001, 0xe0000001, 0xef010203, 0xf0000001, 0xffffffff,
	};
	u32 i, at;
	u8 *ip;

	for (i = 0; i < 2 * ARRAY_SIZE(addresses); i++) {
		ip = make_ipv4(0);
		put_unaligned_be32(addresses[i / 2], ip + 12 + 4 * (i % 2));
		KUNIT_EXPECT_FALSE(test, may_return(IPV4));
	}
	for (at = 20; at <= 22; at += 2) {
		ip = make_ipv4(0);
		put_unaligned_be16(0, ip + at);
		KUNIT_EXPECT_FALSE(test, may_return(IPV4));
	}
	/* A source route may be among the options. */
	make_ipv4(4);
	KUNIT_EXPECT_FALSE(test, may_return(IPV4));
	ip = make_ipv4(0);
	ip[9] = IPPROTO_TCP;
	KUNIT_EXPECT_FALSE(test, may_return(IPV4));
}

static void may_return__ipv6(struct kunit *test)
{
	u32 at;
	u8 *ip;

	for (at = 8; at <= 24; at += 16) {
		ip = make_ipv6(0);
		memset(ip + at, 0, 16);
		KUNIT_EXPECT_FALSE(test, may_return(IPV6));
		ip[at + 15] = 1;
		KUNIT_EXPECT_FALSE(test, may_return(IPV6));
		ip[at + 14] = 1;
		KUNIT_EXPECT_TRUE(test, may_return(IPV6));
		ip[at] = 0xff;
		KUNIT_EXPECT_FALSE(test, may_return(IPV6));
	}
	make_ipv6(1);
	KUNIT_EXPECT_FALSE(test, may_return(IPV6));
}

/* ---- queues ---- */

static void is_control__by_dscp(struct kunit *test)
{
	struct timely_trim_cfg cfg = defaults();
	u32 dscp;

	cfg.control = 1ULL << 63 | 1;
	for (dscp = 0; dscp <= TIMELY_TRIM_NO_DSCP; dscp++)
		KUNIT_EXPECT_EQ(test, timely_trim_is_control(&cfg, dscp),
				dscp == 0 || dscp == 63);
}

static void headers_next__ratio(struct kunit *test)
{
	struct timely_trim_round round = {};
	struct timely_trim_cfg cfg = defaults();
	u32 i, n;

	for (i = 0; i < 3; i++) {
		for (n = 0; n < 10; n++)
			KUNIT_EXPECT_TRUE(test, timely_trim_headers_next(&round, &cfg, true, true));
		KUNIT_EXPECT_FALSE(test, timely_trim_headers_next(&round, &cfg, true, true));
	}
	cfg.ratio = 1;
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, timely_trim_headers_next(&round, &cfg, true, true),
				i % 2 == 0);
}

/* Packets that leave while the other queue is empty do not count. */
static void headers_next__one_queue_empty(struct kunit *test)
{
	struct timely_trim_round round = {};
	struct timely_trim_cfg cfg = defaults();
	u32 n;

	for (n = 0; n < 100; n++)
		KUNIT_EXPECT_TRUE(test, timely_trim_headers_next(&round, &cfg, true, false));
	for (n = 0; n < 10; n++)
		KUNIT_EXPECT_TRUE(test, timely_trim_headers_next(&round, &cfg, true, true));
	KUNIT_EXPECT_FALSE(test, timely_trim_headers_next(&round, &cfg, true, true));
	for (n = 0; n < 5; n++)
		KUNIT_EXPECT_TRUE(test, timely_trim_headers_next(&round, &cfg, true, true));
	KUNIT_EXPECT_FALSE(test, timely_trim_headers_next(&round, &cfg, false, true));
	for (n = 0; n < 10; n++)
		KUNIT_EXPECT_TRUE(test, timely_trim_headers_next(&round, &cfg, true, true));
	KUNIT_EXPECT_FALSE(test, timely_trim_headers_next(&round, &cfg, true, true));
}

static void fits__to_the_byte(struct kunit *test)
{
	struct timely_trim_cfg cfg = defaults();

	cfg.header_limit = 1000;
	KUNIT_EXPECT_TRUE(test, timely_trim_fits(&cfg, 0, 1000));
	KUNIT_EXPECT_FALSE(test, timely_trim_fits(&cfg, 0, 1001));
	KUNIT_EXPECT_TRUE(test, timely_trim_fits(&cfg, 872, 128));
	KUNIT_EXPECT_FALSE(test, timely_trim_fits(&cfg, 873, 128));
	cfg.header_limit = U32_MAX;
	KUNIT_EXPECT_FALSE(test, timely_trim_fits(&cfg, U32_MAX, 1));
}

static void wants_tail__by_victim(struct kunit *test)
{
	struct timely_trim_cfg cfg = defaults();
	u32 i;

	for (i = 0; i < 4; i++) {
		cfg.victim = TIMELY_TRIM_COIN;
		KUNIT_EXPECT_EQ(test, timely_trim_wants_tail(&cfg, i), i % 2 == 1);
		cfg.victim = TIMELY_TRIM_ONLY_ARRIVAL;
		KUNIT_EXPECT_FALSE(test, timely_trim_wants_tail(&cfg, i));
		cfg.victim = TIMELY_TRIM_ONLY_TAIL;
		KUNIT_EXPECT_TRUE(test, timely_trim_wants_tail(&cfg, i));
	}
}

static struct kunit_case trim_cases[] = {
	KUNIT_CASE(parse__ipv4),
	KUNIT_CASE(parse__ipv6),
	KUNIT_CASE(parse__short),
	KUNIT_CASE(parse__dscp),
	KUNIT_CASE(parse__not_ip),
	KUNIT_CASE(parse__fragments),
	KUNIT_CASE(parse__ipsec),
	KUNIT_CASE(parse__invalid_headers),
	KUNIT_CASE(parse__headers_that_do_not_fit),
	KUNIT_CASE(rewrite__ipv4),
	KUNIT_CASE(rewrite__ipv6),
	KUNIT_CASE(rewrite__checksums),
	KUNIT_CASE(rewrite__other_transports),
	KUNIT_CASE(return__swaps),
	KUNIT_CASE(may_return__ipv4),
	KUNIT_CASE(may_return__ipv6),
	KUNIT_CASE(is_control__by_dscp),
	KUNIT_CASE(headers_next__ratio),
	KUNIT_CASE(headers_next__one_queue_empty),
	KUNIT_CASE(fits__to_the_byte),
	KUNIT_CASE(wants_tail__by_victim),
	{}
};

static struct kunit_suite trim_suite = {
	.name = "timely_trim",
	.test_cases = trim_cases,
};

kunit_test_suite(trim_suite);
