// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of packets for the modules' packet paths, for packet_fuzz.sh.
 *
 *	packet_fuzz data SEED PACKETS DEVICE...
 *	packet_fuzz oracks SEED PACKETS DEVICE SENDER [SECRET]
 *
 * data sends well-formed and malformed IPv4 and IPv6 packets from host 1 to host 2 of
 * onramp_lib.sh: with options, extension headers, fragments, VLAN tags, tunnels, wrong lengths and
 * checksums, and as GSO packets of every type. DEVICE is a network device of the current namespace,
 * through whose root qdisc the packets leave; "tap:NAME" is a tap device that the fuzzer creates,
 * on which the packets arrive.
 *
 * oracks runs on host 2 and sends OR-ACKs to host 1. It also sends datagrams from the network
 * namespace SENDER, to which the OR-ACKs refer. Without SECRET (32 hexadecimal digits of key 1) all
 * OR-ACKs have a wrong tag; with SECRET three of four have a right tag, signed after a field was
 * changed.
 *
 * SEED decides everything but the ports of sockets and the clock. The last line is
 * "# N packets, R refused by the socket, seed S". The exit status is 0 if all packets were tried;
 * the caller checks their effects.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/types.h>
#include <linux/virtio_net.h>

#include "chance.h"

/* Since Linux 6.2. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4	5
#endif

#define FRAME_BYTES	70000
#define MAX_DEVICES	8
#define SOCKETS		4	/* per device, with different pacing rates */
#define MAX_DEPTH	3	/* nested IP headers */
#define ORACK_PORT	20306
#define ORACK_BYTES	36
#define VXLAN_PORT	4789
#define IN_FLIGHT	8	/* latest datagrams of a flow, to which OR-ACKs refer */

static void give_up(const char *what)
{
	printf("# %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- a frame ---- */

/**
 * struct frame - a packet under construction
 * @vnet: checksum and GSO information for the kernel
 * @data: the frame, from the Ethernet header on
 * @bytes: length of @data
 * @transport: offset of the last transport header in @data, 0 for none
 * @check: offset of the checksum in that header
 * @protocol: protocol of that header
 * @v6: the last IP header is an IPv6 header
 */
struct frame {
	struct virtio_net_hdr vnet;
	__u8 data[FRAME_BYTES];
	unsigned int bytes;
	unsigned int transport;
	unsigned int check;
	__u8 protocol;
	bool v6;
};

/* Payload that the caller gives: OR-ACKs */
struct content {
	const __u8 *data;
	unsigned int bytes;
};

/* Append @bytes zeros to the frame. Return: the first of them. */
static __u8 *room(struct frame *f, unsigned int bytes)
{
	__u8 *at = f->data + f->bytes;

	if (f->bytes + bytes > FRAME_BYTES) {
		fputs("# a frame is too long: an error in packet_fuzz\n", stdout);
		exit(2);
	}
	memset(at, 0, bytes);
	f->bytes += bytes;
	return at;
}

static void put16(__u8 *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void put32(__u8 *at, __u32 value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static void put64(__u8 *at, __u64 value)
{
	put32(at, value >> 32);
	put32(at + 4, value);
}

static void put_random(__u8 *at, unsigned int bytes)
{
	while (bytes--)
		*at++ = chance();
}

/* Add the 16-bit words of @data, in network byte order, to a checksum. */
static __u32 sum_of(const __u8 *data, unsigned int bytes, __u32 sum)
{
	for (unsigned int i = 0; i < bytes; i++) {
		sum += i % 2 ? data[i] : data[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

/* Mostly the right length; otherwise 0, too short, too long or random. */
static unsigned int length(unsigned int right)
{
	switch (below(24)) {
	case 0:
		return 0;
	case 1:
		return right - 1 - below(40);
	case 2:
		return right + 1 + below(2000);
	case 3:
		return chance();
	default:
		return right;
	}
}

/* ---- transport ---- */

static void build_ip(struct frame *f, unsigned int depth, const struct content *content);
static void build_ethernet(struct frame *f, unsigned int depth, const struct content *content);

static unsigned int payload_bytes(bool gso)
{
	unsigned int most = gso ? 60000 : 1400;

	switch (below(8)) {
	case 0:
		return below(8);
	case 1:
		return below(64);
	case 2:
		return 1400 + below(100);
	case 3:
		return below(most);
	case 4:
		return most / 20 + below(most / 4);
	default:
		return below(1400);
	}
}

static void put_payload(struct frame *f, bool gso, const struct content *content)
{
	unsigned int bytes = payload_bytes(gso);

	if (content) {
		memcpy(room(f, content->bytes), content->data, content->bytes);
		return;
	}
	/* The rest of the payload stays 0. */
	put_random(room(f, bytes), bytes < 64 ? bytes : 64);
}

static unsigned int some_port(void)
{
	static const __u16 ports[] = { 9, 9, 9, 7, 53, ORACK_PORT, VXLAN_PORT, 0, 4500, 65535 };

	return one_in(3) ? chance() : ports[below(sizeof(ports) / sizeof(ports[0]))];
}

static void put_tcp_options(struct frame *f, unsigned int bytes)
{
	static const __u8 kinds[] = { 0, 1, 2, 3, 4, 5, 8, 8, 19, 30, 34, 253 };
	__u8 *at = room(f, bytes);

	put_random(at, bytes);
	for (unsigned int i = 0; i + 1 < bytes; i += at[i + 1]) {
		at[i] = kinds[below(sizeof(kinds))];
		at[i + 1] = one_in(8) ? chance() : 2 + below(10);
		if (!at[i + 1])
			break;
	}
}

static void build_tcp(struct frame *f, bool gso)
{
	unsigned int options = one_in(3) ? 4 * below(11) : 0;
	unsigned int start = f->bytes;
	__u8 *th = room(f, 20);

	put16(th, 1024 + below(8));
	put16(th + 2, some_port());
	put32(th + 4, one_in(2) ? below(1 << 20) : chance());
	put32(th + 8, chance());
	th[12] = (one_in(24) ? below(16) : 5 + options / 4) << 4 | (one_in(16) ? below(16) : 0);
	th[13] = one_in(4) ? chance() : one_in(8) ? 0x02 : 0x10 | (one_in(3) ? 0x08 : 0);
	put16(th + 14, chance());
	put16(th + 18, one_in(16) ? chance() : 0);
	put_tcp_options(f, options);
	put_payload(f, gso, NULL);
	f->transport = start;
	f->check = 16;
	f->protocol = IPPROTO_TCP;
}

static void build_udp(struct frame *f, unsigned int depth, bool gso, const struct content *content)
{
	unsigned int start = f->bytes;
	__u8 *uh = room(f, 8);
	unsigned int port = content && below(16) ? ORACK_PORT : some_port();

	put16(uh, content && below(16) ? ORACK_PORT : 1024 + below(8));
	put16(uh + 2, port);
	if (port == VXLAN_PORT && depth < MAX_DEPTH && below(8)) {
		put32(room(f, 4), one_in(8) ? chance() : 0x08000000);
		put32(room(f, 4), one_in(8) ? chance() : 42 << 8);
		build_ethernet(f, depth + 1, content);
	} else {
		put_payload(f, gso, content);
	}
	put16(f->data + start + 4, length(f->bytes - start));
	f->transport = start;
	f->check = 6;
	f->protocol = IPPROTO_UDP;
}

static __u8 some_protocol(const struct content *content)
{
	static const __u8 others[] = {
		IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_IPIP, IPPROTO_IPV6, IPPROTO_GRE, IPPROTO_ESP,
		IPPROTO_AH, IPPROTO_SCTP, IPPROTO_UDPLITE, IPPROTO_NONE, IPPROTO_RAW, IPPROTO_IGMP,
	};

	if (content)
		return one_in(32) ? others[below(sizeof(others))] : IPPROTO_UDP;
	if (one_in(6))
		return one_in(4) ? chance() : others[below(sizeof(others))];
	return one_in(2) ? IPPROTO_TCP : IPPROTO_UDP;
}

static void build_transport(struct frame *f, unsigned int depth, __u8 protocol,
			    const struct content *content)
{
	bool gso = f->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE;

	if (protocol == IPPROTO_TCP)
		build_tcp(f, gso);
	else if (protocol == IPPROTO_UDP)
		build_udp(f, depth, gso, content);
	else if ((protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6) && depth < MAX_DEPTH)
		build_ip(f, depth + 1, content);
	else
		put_payload(f, gso, content);
}

/* The checksum over the pseudo header of the IP header before the transport. */
static __u32 pseudo_sum(const struct frame *f, unsigned int ip, __u8 protocol)
{
	unsigned int addresses = f->v6 ? ip + 8 : ip + 12;
	__u32 sum = f->bytes - f->transport + protocol;

	sum = (sum & 0xffff) + (sum >> 16);
	return sum_of(f->data + addresses, f->v6 ? 32 : 8, sum);
}

/* Write the complete checksum, the partial one that a NIC would complete, or a wrong one. */
static void put_checksum(struct frame *f, unsigned int ip, __u8 protocol)
{
	__u8 *check = f->data + f->transport + f->check;
	__u32 sum = pseudo_sum(f, ip, protocol);

	if (one_in(16)) {
		put16(check, chance());
	} else if (f->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		put16(check, sum);
	} else {
		put16(check, 0);
		sum = ~sum_of(f->data + f->transport, f->bytes - f->transport, sum) & 0xffff;
		put16(check, protocol == IPPROTO_UDP && !sum ? 0xffff : sum);
	}
}

/* ---- IP ---- */

/* Mostly an address of host 1 (.1), or with @to of host 2 (.2 and more). */
static void put_address4(__u8 *at, bool to)
{
	static const __u32 odd[] = {
		0, 0xffffffff, 0x7f000001, 0xe0000001, 0x0a0702ff, 0x0a070200, 0x0a070101,
		0xa9fe0001,
	};

	put32(at, 0x0a070200 + (to ? 2 + (one_in(4) ? below(5) : 0) : 1));
	if (one_in(16))
		put32(at, one_in(3) ? chance() : odd[below(sizeof(odd) / sizeof(odd[0]))]);
}

static void put_address6(__u8 *at, bool to)
{
	static const char * const odd[] = {
		"::", "::1", "ff02::1", "ff05::2", "fe80::1", "::ffff:10.7.2.1", "2002:a07:201::1",
	};

	inet_pton(AF_INET6, "fd07:2::", at);
	at[15] = to ? 2 + (one_in(4) ? below(3) : 0) : 1;
	if (!one_in(16))
		return;
	if (one_in(3))
		put_random(at, 16);
	else
		inet_pton(AF_INET6, odd[below(sizeof(odd) / sizeof(odd[0]))], at);
}

static void put_ip_options(struct frame *f, unsigned int bytes)
{
	static const __u8 kinds[] = { 0, 1, 7, 68, 82, 130, 131, 134, 137, 148, 200 };
	__u8 *at = room(f, bytes);

	for (unsigned int i = 0; i + 2 < bytes; i += at[i + 1]) {
		at[i] = kinds[below(sizeof(kinds))];
		at[i + 1] = one_in(8) ? chance() : 3 + below(9);
		at[i + 2] = one_in(4) ? chance() : 4;
		if (!at[i + 1])
			break;
	}
}

static void build_ip4(struct frame *f, unsigned int depth, const struct content *content)
{
	unsigned int options = one_in(6) ? 4 * below(11) : 0;
	__u8 protocol = some_protocol(content);
	unsigned int start = f->bytes;
	__u8 *ip = room(f, 20);

	ip[0] = (one_in(48) ? chance() : 4) << 4 | (one_in(48) ? below(16) : 5 + options / 4);
	ip[1] = one_in(3) ? chance() : 0;
	put16(ip + 4, chance());
	put16(ip + 6, one_in(8) ? chance() : one_in(2) ? 0x4000 : 0);
	ip[8] = one_in(32) ? below(3) : 64;
	ip[9] = protocol;
	put_address4(ip + 12, false);
	put_address4(ip + 16, true);
	put_ip_options(f, options);
	f->v6 = false;
	f->transport = 0;
	build_transport(f, depth, protocol, content);
	/* BIG TCP: the length of a packet of more than 64 KB is 0. */
	put16(ip + 2, f->bytes - start > 0xffff ? 0 : length(f->bytes - start));
	if (f->transport && f->protocol == protocol) {
		f->v6 = false;
		put_checksum(f, start, protocol);
	}
	put16(ip + 10, one_in(32) ? chance() : ~sum_of(ip, 20 + options, 0));
}

/* Append an extension header. Its first byte, which is returned, is for the next header's type. */
static __u8 *put_extension(struct frame *f, __u8 type)
{
	unsigned int units = type == IPPROTO_FRAGMENT ? 0 : below(4);
	unsigned int bytes = 8 + 8 * units;
	__u8 *at = room(f, bytes);

	put_random(at, bytes);
	at[1] = one_in(16) ? chance() : units;
	if (type == IPPROTO_FRAGMENT && one_in(2))
		put16(at + 2, one_in(2) ? 0 : 1);
	if (type == IPPROTO_AH)
		at[1] = bytes / 4 - 2;
	if ((type == IPPROTO_HOPOPTS || type == IPPROTO_DSTOPTS) && below(8)) {
		/* Padding, or a jumbogram's length. */
		at[2] = one_in(3) ? 0xc2 : 1;
		at[3] = 4;
		put32(at + 4, one_in(2) ? f->bytes : chance());
		for (unsigned int i = 8; i < bytes; i++)
			at[i] = 0;
	}
	return at;
}

static __u8 *put_extensions(struct frame *f, __u8 *next)
{
	static const __u8 types[] = {
		IPPROTO_HOPOPTS, IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPPROTO_FRAGMENT,
		IPPROTO_DSTOPTS, IPPROTO_AH, 135, 139,
	};

	for (unsigned int count = one_in(3) ? 1 + below(4) : 0; count; count--) {
		*next = types[below(sizeof(types))];
		next = put_extension(f, *next);
	}
	return next;
}

static void build_ip6(struct frame *f, unsigned int depth, const struct content *content)
{
	__u8 protocol = some_protocol(content);
	unsigned int start = f->bytes;
	__u8 *ip = room(f, 40);
	unsigned int payload;

	put32(ip, 6U << 28 | (one_in(2) ? chance() & 0x0fffffff : 0));
	if (one_in(48))
		ip[0] = chance();
	ip[7] = one_in(32) ? below(3) : 64;
	put_address6(ip + 8, false);
	put_address6(ip + 24, true);
	*put_extensions(f, ip + 6) = protocol;
	f->v6 = true;
	f->transport = 0;
	build_transport(f, depth, protocol, content);
	payload = f->bytes - start - 40;
	put16(ip + 4, payload > 0xffff ? 0 : length(payload));
	if (f->transport && f->protocol == protocol) {
		f->v6 = true;
		put_checksum(f, start, protocol);
	}
}

static void build_ip(struct frame *f, unsigned int depth, const struct content *content)
{
	if (one_in(2))
		build_ip4(f, depth, content);
	else
		build_ip6(f, depth, content);
}

/* ---- Ethernet ---- */

/* Last byte of the destination's MAC address: 02:..:02 is host 2; oracks sends to host 1. */
static __u8 mac_to = 2;

static void build_ethernet(struct frame *f, unsigned int depth, const struct content *content)
{
	unsigned int tags = one_in(8) ? 1 + below(3) : 0;
	__u8 *eth = room(f, 12);
	__u8 *type;

	eth[0] = 2;
	eth[5] = mac_to;
	eth[6] = 2;
	eth[11] = 3 - mac_to;
	if (one_in(24))
		put_random(eth, 6);
	while (tags--) {
		put16(room(f, 2), one_in(3) ? ETH_P_8021AD : ETH_P_8021Q);
		put16(room(f, 2), one_in(4) ? chance() : 7);
	}
	type = room(f, 2);
	build_ip(f, depth, content);
	put16(type, type[2] >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP);
	if (one_in(64))
		put16(type, chance());
}

/* Choose checksum offload and GSO, before the headers are built. */
static void choose_vnet(struct frame *f)
{
	static const __u8 types[] = {
		VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP,
		VIRTIO_NET_HDR_GSO_UDP_L4,
	};

	memset(&f->vnet, 0, sizeof(f->vnet));
	f->vnet.flags = one_in(2) ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0;
	f->vnet.flags |= one_in(6) ? VIRTIO_NET_HDR_F_DATA_VALID : 0;
	if (!one_in(3))
		return;
	f->vnet.gso_type = types[below(sizeof(types))];
	f->vnet.gso_size = below(8) ? 500 + below(1000) : chance();
	/* The kernel refuses most GSO packets without a checksum to complete. */
	if (below(16))
		f->vnet.flags |= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (one_in(6))
		f->vnet.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
}

static __u8 right_gso_type(const struct frame *f)
{
	if (f->protocol == IPPROTO_TCP)
		return f->v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	return one_in(2) ? VIRTIO_NET_HDR_GSO_UDP_L4 : VIRTIO_NET_HDR_GSO_UDP;
}

/* Fill in offsets after the headers are built. Most GSO packets get the right type. */
static void finish_vnet(struct frame *f)
{
	struct virtio_net_hdr *vnet = &f->vnet;

	vnet->csum_start = f->transport;
	vnet->csum_offset = f->check;
	if (!f->transport && below(8))
		vnet->flags &= ~VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (vnet->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		if (f->transport && below(8))
			vnet->gso_type = right_gso_type(f) |
					 (vnet->gso_type & VIRTIO_NET_HDR_GSO_ECN);
		vnet->hdr_len = one_in(4) ? below(200) : f->transport + f->check + 8;
	}
	if (one_in(32))
		vnet->csum_start = below(200);
	if (one_in(32))
		vnet->csum_offset = below(64);
	if (one_in(64))
		put_random((__u8 *)vnet, sizeof(*vnet));
}

/* Invert some bits of the headers, or truncate the frame. */
static void mutate(struct frame *f)
{
	unsigned int near = f->bytes < 120 ? f->bytes : 120;

	for (unsigned int count = 1 + below(4); count; count--)
		f->data[below(near)] ^= 1 << below(8);
	if (one_in(3))
		f->bytes = 1 + below(f->bytes);
}

static void build(struct frame *f, const struct content *content)
{
	f->bytes = 0;
	f->transport = 0;
	f->protocol = 0;
	choose_vnet(f);
	build_ethernet(f, 0, content);
	finish_vnet(f);
	if (one_in(5))
		mutate(f);
}

/* ---- sending ---- */

static unsigned long long refused;

static void send_frame(int fd, const struct frame *f)
{
	static __u8 wire[sizeof(struct virtio_net_hdr) + FRAME_BYTES];

	memcpy(wire, &f->vnet, sizeof(f->vnet));
	memcpy(wire + sizeof(f->vnet), f->data, f->bytes);
	if (write(fd, wire, sizeof(f->vnet) + f->bytes) < 0)
		refused++;
}

static int open_tap(const char *name)
{
	/* IFF_NAPI_FRAGS: the kernel passes the frames to napi_gro_frags(). */
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_NAPI |
					  IFF_NAPI_FRAGS };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) < 0)
		give_up("tap");
	return fd;
}

/* A packet socket that sends by the device, with the pacing rate and priority of this number */
static int open_device(const char *name, unsigned int number)
{
	static const __u64 rates[SOCKETS] = { ~0ULL, 1000000000, 50000000, ~0ULL };
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		/* The socket receives nothing. */
		.sll_protocol = 0,
		.sll_ifindex = if_nametoindex(name),
	};
	int priority = 2 * number;
	int on = 1;
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || !to.sll_ifindex)
		give_up(name);
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rates[number], sizeof(rates[0])) < 0 ||
	    bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		give_up(name);
	return fd;
}

static void fuzz_data(unsigned long long packets, char **names, unsigned int count)
{
	static struct frame f;
	int fds[MAX_DEVICES][SOCKETS];

	for (unsigned int i = 0; i < count; i++) {
		bool tap = strncmp(names[i], "tap:", 4) == 0;

		for (unsigned int j = 0; j < SOCKETS; j++) {
			if (tap)
				fds[i][j] = j ? fds[i][0] : open_tap(names[i] + 4);
			else
				fds[i][j] = open_device(names[i], j);
		}
		/* packet_fuzz.sh has set the device's address and has set the device up. */
		if (tap)
			sleep(1);
	}
	for (unsigned long long i = 0; i < packets; i++) {
		unsigned int which = below(count);

		build(&f, NULL);
		send_frame(fds[which][below(SOCKETS)], &f);
		/* Let virtual time pass, for other senders. */
		if (i % 64 == 0)
			usleep(below(300));
	}
	/* Keep the sockets until the qdisc has sent their packets. */
	sleep(1);
}

/* ---- OR-ACKs ---- */

struct secret {
	__u64 words[2];
};

static __u64 rol64(__u64 value, unsigned int bits)
{
	return value << bits | value >> (64 - bits);
}

static void sip_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rol64(v[1], 13) ^ v[0];
	v[3] = rol64(v[3], 16) ^ v[2];
	v[0] = rol64(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rol64(v[1], 17) ^ v[2];
	v[3] = rol64(v[3], 21) ^ v[0];
	v[2] = rol64(v[2], 32);
}

/* SipHash-2-4 as in its reference code, for less than 256 bytes */
static __u64 siphash24(const struct secret *secret, const __u8 *text, unsigned int bytes)
{
	__u64 v[4] = {
		secret->words[0] ^ 0x736f6d6570736575ULL, secret->words[1] ^ 0x646f72616e646f6dULL,
		secret->words[0] ^ 0x6c7967656e657261ULL, secret->words[1] ^ 0x7465646279746573ULL,
	};
	__u8 padded[256] = {};
	unsigned int total = (bytes / 8 + 1) * 8;

	memcpy(padded, text, bytes);
	padded[total - 1] = bytes;
	for (unsigned int i = 0; i < total; i += 8) {
		__u64 word = 0;

		for (unsigned int j = 8; j--;)
			word = word << 8 | padded[i + j];
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 255;
	for (unsigned int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static __u32 rol32(__u32 value, unsigned int bits)
{
	return value << bits | value >> (32 - bits);
}

/* The digest that identifies a UDP datagram in an OR-ACK: jhash2() of its first four words. */
static __u32 digest_of(const __u8 *payload, unsigned int bytes)
{
	static const __u8 mix[] = { 4, 6, 8, 16, 19, 4 };
	static const __u8 final[] = { 14, 11, 25, 16, 4, 14, 24 };
	__u32 words[4], v[3], t;

	/* The kernel hashes words in the processor's byte order. */
	memcpy(words, payload, sizeof(words));
	for (unsigned int i = 0; i < 3; i++)
		v[i] = 0xdeadbeef + 16 + bytes + words[i];
	for (unsigned int i = 0; i < sizeof(mix); i++) {
		v[0] = (v[0] - v[2]) ^ rol32(v[2], mix[i]);
		v[2] += v[1];
		t = v[0];
		v[0] = v[1];
		v[1] = v[2];
		v[2] = t;
	}
	v[0] += words[3];
	for (unsigned int i = 0; i < sizeof(final); i++) {
		v[2] = (v[2] ^ v[1]) - rol32(v[1], final[i]);
		t = v[0];
		v[0] = v[1];
		v[1] = v[2];
		v[2] = t;
	}
	return v[1] ? v[1] : 1;
}

/**
 * struct flow - a UDP flow of the sender's namespace
 * @fd: the flow's socket
 * @v6: the flow uses IPv6
 * @port: source port in host byte order
 * @digests: digests of the latest datagrams, a ring
 * @sent: number of datagrams sent so far
 */
struct flow {
	int fd;
	bool v6;
	__u16 port;
	__u32 digests[IN_FLIGHT];
	unsigned int sent;
};

static void enter(const char *ns)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		give_up(path);
	close(fd);
}

static void open_flow(struct flow *flow, bool v6)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	struct sockaddr *to = v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
	socklen_t bytes = v6 ? sizeof(six) : sizeof(four);

	inet_pton(AF_INET, "10.7.2.2", &four.sin_addr);
	inet_pton(AF_INET6, "fd07:2::2", &six.sin6_addr);
	flow->v6 = v6;
	flow->fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	if (flow->fd < 0 || connect(flow->fd, to, bytes) < 0 ||
	    getsockname(flow->fd, to, &bytes) < 0)
		give_up("a flow");
	flow->port = ntohs(v6 ? six.sin6_port : four.sin_port);
}

static void send_datagram(struct flow *flow)
{
	__u8 data[200] = {};

	put_random(data, 16);
	/* The first call may return the ICMP error of an earlier datagram. */
	if (send(flow->fd, data, sizeof(data), MSG_DONTWAIT) < 0 &&
	    send(flow->fd, data, sizeof(data), MSG_DONTWAIT) < 0)
		return;
	flow->digests[flow->sent++ % IN_FLIGHT] = digest_of(data, sizeof(data));
}

static __u64 real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Sign an OR-ACK: the tag covers the addresses of the flow and all fields before the tag. */
static void put_tag(__u8 *wire, const struct flow *flow, const struct secret *secret)
{
	__u8 text[2 + 32 + 28] = {};

	put16(text, flow->v6 ? AF_INET6 : AF_INET);
	inet_pton(flow->v6 ? AF_INET6 : AF_INET, flow->v6 ? "fd07:2::1" : "10.7.2.1", text + 2);
	inet_pton(flow->v6 ? AF_INET6 : AF_INET, flow->v6 ? "fd07:2::2" : "10.7.2.2", text + 18);
	memcpy(text + 34, wire, 28);
	put64(wire + 28, siphash24(secret, text, sizeof(text)));
}

/* Write a valid OR-ACK of a recent datagram, without the tag. */
static void put_orack(__u8 *wire, const struct flow *flow)
{
	wire[0] = 'O';
	wire[1] = 'R';
	wire[2] = 1;
	wire[3] = 1;
	wire[4] = IPPROTO_UDP;
	wire[5] = 0;
	put16(wire + 6, flow->port);
	put16(wire + 8, 9);
	put16(wire + 10, 0);
	put32(wire + 12, flow->digests[below(IN_FLIGHT)]);
	put64(wire + 16, real_ns() - below(100000));
	put32(wire + 24, below(100000));
}

/* Offset and length of each field that the tag covers. */
static const struct {
	__u8 at, bytes;
} fields[] = {
	{ 0, 2 }, { 2, 1 }, { 3, 1 }, { 4, 1 }, { 5, 1 }, { 6, 2 }, { 8, 2 }, { 10, 2 }, { 12, 4 },
	{ 16, 8 }, { 24, 4 },
};

static void change_field(__u8 *wire)
{
	unsigned int which = below(sizeof(fields) / sizeof(fields[0]));
	__u8 *at = wire + fields[which].at;

	switch (below(4)) {
	case 0:
		memset(at, one_in(2) ? 0 : 0xff, fields[which].bytes);
		break;
	case 1:
		at[fields[which].bytes - 1] += one_in(2) ? 1 : -1;
		break;
	case 2:
		at[below(fields[which].bytes)] ^= 1 << below(8);
		break;
	default:
		put_random(at, fields[which].bytes);
	}
}

/* Build one OR-ACK, or several for a GSO packet; some of them truncated, too long or changed. */
static void build_content(struct content *content, __u8 *data, const struct flow *flow,
			  const struct secret *secret)
{
	static const struct secret wrong = { { 0x1111, 0x2222 } };
	unsigned int count = one_in(6) ? 1 + below(20) : 1;

	for (unsigned int i = 0; i < count; i++) {
		__u8 *wire = data + i * ORACK_BYTES;

		put_orack(wire, flow);
		if (below(4))
			change_field(wire);
		put_tag(wire, flow, secret && below(4) ? secret : &wrong);
		if (one_in(8))
			wire[below(ORACK_BYTES)] ^= 1 << below(8);
	}
	content->data = data;
	content->bytes = count * ORACK_BYTES;
	if (one_in(8))
		content->bytes = below(2 * content->bytes);
}

/* OR-ACKs go from host 2 to host 1: swap the IP addresses. */
static void swap_addresses(struct frame *f)
{
	__u8 *ip = f->data + 14;
	__u8 kept[16];

	if (f->data[12] == 0x08 && f->data[13] == 0x00 && f->bytes >= 34) {
		memcpy(kept, ip + 12, 4);
		memcpy(ip + 12, ip + 16, 4);
		memcpy(ip + 16, kept, 4);
	} else if (f->data[12] == 0x86 && f->data[13] == 0xdd && f->bytes >= 54) {
		memcpy(kept, ip + 8, 16);
		memcpy(ip + 8, ip + 24, 16);
		memcpy(ip + 24, kept, 16);
	}
}

/*
 * Half of the OR-ACKs are sent by a UDP socket. Their headers are valid, so On-Ramp parses each of
 * them.
 */
static void fuzz_oracks(unsigned long long packets, const char *device, const char *sender,
			const struct secret *secret)
{
	static struct frame f;
	static __u8 data[64 * ORACK_BYTES];
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(ORACK_PORT) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(ORACK_PORT) };
	struct flow flows[4] = {};
	struct content content;
	int raw = open_device(device, 0);
	int plain[2];

	inet_pton(AF_INET, "10.7.2.1", &four.sin_addr);
	inet_pton(AF_INET6, "fd07:2::1", &six.sin6_addr);
	plain[0] = socket(AF_INET, SOCK_DGRAM, 0);
	plain[1] = socket(AF_INET6, SOCK_DGRAM, 0);
	if (connect(plain[0], (struct sockaddr *)&four, sizeof(four)) < 0 ||
	    connect(plain[1], (struct sockaddr *)&six, sizeof(six)) < 0)
		give_up("host 1");
	mac_to = 1;
	enter(sender);
	for (unsigned int i = 0; i < 4; i++)
		open_flow(&flows[i], i % 2);
	for (unsigned long long i = 0; i < packets; i++) {
		struct flow *flow = &flows[below(4)];

		if (i % 16 == 0 || flow->sent < IN_FLIGHT)
			for (unsigned int j = 0; j < 4; j++)
				send_datagram(&flows[j]);
		build_content(&content, data, flow, secret);
		if (one_in(2)) {
			/* More than one OR-ACK in a datagram is malformed. */
			if (content.bytes > ORACK_BYTES && below(8))
				content.bytes = ORACK_BYTES;
			if (send(plain[flow->v6], data, content.bytes, 0) < 0)
				refused++;
		} else {
			build(&f, &content);
			swap_addresses(&f);
			send_frame(raw, &f);
		}
		/* Let virtual time pass, so that pauses end. */
		if (i % 64 == 0)
			usleep(below(300));
	}
	for (unsigned int i = 0; i < 4; i++)
		if (flows[i].sent < IN_FLIGHT)
			give_up("flows do not send");
}

/* ---- */

static bool parse_secret(const char *text, struct secret *secret)
{
	__u8 bytes[16];

	if (strlen(text) != 32)
		return false;
	for (int i = 0; i < 16; i++)
		if (sscanf(text + 2 * i, "%2hhx", &bytes[i]) != 1)
			return false;
	for (int i = 0; i < 2; i++) {
		secret->words[i] = 0;
		for (int j = 8; j--;)
			secret->words[i] = secret->words[i] << 8 | bytes[8 * i + j];
	}
	return true;
}

static int refuse_arguments(void)
{
	fputs("usage: packet_fuzz data SEED PACKETS DEVICE...\n"
	      "       packet_fuzz oracks SEED PACKETS DEVICE SENDER [SECRET]\n"
	      "At most 8 DEVICEs; SECRET has 32 hexadecimal digits.\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct secret secret;
	unsigned long long seed, packets;

	if (argc < 5)
		return refuse_arguments();
	seed = strtoull(argv[2], NULL, 0);
	packets = strtoull(argv[3], NULL, 0);
	chance_state = seed;
	if (strcmp(argv[1], "data") == 0 && argc - 4 <= MAX_DEVICES)
		fuzz_data(packets, argv + 4, argc - 4);
	else if (strcmp(argv[1], "oracks") == 0 && argc >= 6 && argc <= 7 &&
		 (argc == 6 || parse_secret(argv[6], &secret)))
		fuzz_oracks(packets, argv[4], argv[5], argc == 7 ? &secret : NULL);
	else
		return refuse_arguments();
	printf("# %llu packets, %llu refused by the socket, seed %llu\n", packets, refused, seed);
	return 0;
}
