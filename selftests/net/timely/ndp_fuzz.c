// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of NDP packets, for ndp_fuzz.sh:
 *
 *	ndp_fuzz SEED PACKETS SOURCE DESTINATION
 *
 * Sends NDP packets from the IPv4 address SOURCE to port 5000 of NDP at DESTINATION. Most have a
 * right checksum of the header, which the engine computes. Types, flags, numbers and lengths are
 * random; the connections are few, so that packets meet the state that earlier packets have left.
 * Some packets are cut at a random byte, as by a switch, some are damaged, and some are random
 * bytes.
 *
 * SEED decides everything. The last line is "# N packets". The exit status is 0 if all were sent.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "ndp_wire.h"

/* user/linux/types.h has the names of the kernel only. */
typedef u64 __u64;

#include "chance.h"

#define UDP_PORT	20307
#define NDP_PORT	5000
#define CONNECTIONS	4
#define ROUND		1000	/* packets to the same connections */
#define PAYLOAD		1400

static u64 conns[CONNECTIONS];
static struct timely_ndp_addresses addresses = { .family = AF_INET };

/* A number near 0, near its end, or anywhere. */
static u32 number(void)
{
	switch (below(8)) {
	case 0:
		return chance();
	case 1:
		return -below(100);
	default:
		return below(40);
	}
}

static u16 flags(void)
{
	u16 all = TIMELY_NDP_SYN | TIMELY_NDP_LAST | TIMELY_NDP_FIN | TIMELY_NDP_RTX;
	u16 chosen = chance() & all;

	if (!one_in(8))
		chosen |= TIMELY_NDP_INITIATOR;
	if (one_in(8))
		chosen |= TIMELY_NDP_COOKIED;
	/* A stream that ends at once is no use. */
	return one_in(32) ? chosen : chosen & ~TIMELY_NDP_FIN;
}

static void fill(struct timely_ndp_header *header)
{
	memset(header, 0, sizeof(*header));
	header->type = one_in(3) ? 1 + below(7) : TIMELY_NDP_DATA;
	header->flags = flags();
	header->conn = conns[below(CONNECTIONS)];
	header->sport = 1 + one_in(8);
	header->dport = one_in(64) ? 1 + below(65535) : NDP_PORT;
	header->seq = number();
	header->credits = number();
	header->cum = number();
	header->arrived = one_in(2) ? chance() : 0;
	header->owed = number();
	header->path = number();
	header->tries = number();
	header->cookie = one_in(2) ? chance() : 0;
	header->limit = header->cum + below(65536);
	header->key = one_in(64) ? below(256) : 0;
}

/* Only fields that the type has are on the wire. */
static void drop_fields(struct timely_ndp_header *header)
{
	if (header->type > TIMELY_NDP_NACK && header->type != TIMELY_NDP_DATA) {
		header->seq = 0;
		header->path = 0;
		header->tries = 0;
	}
	if (header->type >= TIMELY_NDP_RESET)
		header->credits = 0;
	if (!timely_ndp_is_answer(header)) {
		header->cum = 0;
		header->arrived = 0;
		header->limit = 0;
		header->owed = 0;
	}
	if (header->type != TIMELY_NDP_DATA) {
		header->flags &= TIMELY_NDP_INITIATOR;
		if (header->type == TIMELY_NDP_PROBE && one_in(2))
			header->flags |= TIMELY_NDP_SYN;
	}
}

/* Builds a packet. Return: its length. */
static u32 build(u8 *packet)
{
	static const struct timely_orack_key key = { { 1, 2 } };
	struct timely_ndp_header header;
	u32 bytes, i;
	u8 payload[PAYLOAD];

	for (i = 0; i < PAYLOAD; i++)
		payload[i] = chance();
	if (one_in(16)) {
		memcpy(packet, payload, PAYLOAD);
		return below(PAYLOAD);
	}
	fill(&header);
	if (!one_in(8))
		drop_fields(&header);
	if (header.type == TIMELY_NDP_DATA) {
		header.length = below(PAYLOAD);
		header.sum = timely_ndp_sum(payload, header.length) + one_in(8);
	}
	/* Nobody has this key. */
	bytes = timely_ndp_encode(packet, &header, &addresses, header.key ? &key : NULL);
	memcpy(packet + bytes, payload, header.length);
	bytes += header.length;
	if (one_in(16))
		packet[below(bytes)] ^= 1 << below(8);
	return one_in(4) ? below(bytes + 1) : bytes;
}

int main(int argc, char **argv)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(UDP_PORT) };
	u8 packet[TIMELY_NDP_MAX_BYTES + PAYLOAD];
	int sock = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned long packets, sent;
	struct timespec gap = { .tv_nsec = 200000 };
	u32 i;

	if (argc != 5 || !inet_aton(argv[3], &from.sin_addr) || !inet_aton(argv[4], &to.sin_addr))
		return 2;
	chance_state = strtoul(argv[1], NULL, 0);
	packets = strtoul(argv[2], NULL, 0);
	addresses.saddr[0] = from.sin_addr.s_addr;
	addresses.daddr[0] = to.sin_addr.s_addr;
	if (bind(sock, (struct sockaddr *)&from, sizeof(from)))
		return 2;
	for (sent = 0; sent < packets; sent++) {
		u32 bytes;

		for (i = 0; i < CONNECTIONS && sent % ROUND == 0; i++)
			conns[i] = chance();
		/* Packets must not fill the queues on their way. */
		if (sent % 100 == 0)
			nanosleep(&gap, NULL);
		bytes = build(packet);
		if (sendto(sock, packet, bytes, 0, (struct sockaddr *)&to, sizeof(to)) < 0 &&
		    sendto(sock, packet, bytes, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			return 1;
	}
	printf("# %lu packets\n", sent);
	return 0;
}
