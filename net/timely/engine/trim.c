// SPDX-License-Identifier: GPL-2.0
/*
 * The decisions of a switch that trims packets instead of dropping them: NDP's switch service
 * (SIGCOMM'17, section 3.1), for the qdisc "trim" and for simulators. trim.h has the decisions of
 * each packet's path: which queue a packet enters, which packet is trimmed, and which queue is
 * served next. This file has those that need a packet's headers: whether a packet can be trimmed,
 * what its headers become, and the headers of a packet that goes back to its sender.
 *
 * A trimmed packet is the first bytes of a frame. Its outer IP header has the new length, a new
 * DSCP, and for IPv4 a checksum that is adjusted, not computed anew: a wrong checksum stays wrong.
 * If the transport is UDP, its length is reduced, too: UDP drops a datagram whose length
 * field is beyond the end of the packet. Checksums of TCP and UDP are those of the whole packet, so
 * that a receiver that knows nothing of trimming drops the packet. A UDP checksum of 0, which NDP
 * uses, stays 0. Headers behind an outer UDP header (VXLAN, Geneve) are payload and stay as they
 * are.
 *
 * Frames are bytes from the network: nothing in them is trusted. Pure: no packet buffer, no clock.
 */

#include <linux/export.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/minmax.h>

#include "trim.h"
#include <timely_unaligned.h>

#define TRIM_ETHERTYPE_IPV4	0x0800
#define TRIM_ETHERTYPE_IPV6	0x86dd

#define TRIM_IPV4_BYTES		20
#define TRIM_IPV4_LENGTH	2	/* offset of the total length */
#define TRIM_IPV4_FRAGMENT	6	/* offset of flags and fragment offset */
#define TRIM_IPV4_PROTOCOL	9
#define TRIM_IPV4_CHECK		10
#define TRIM_IPV4_ADDRESSES	12
/* The flag "more fragments" and the fragment offset. */
#define TRIM_IPV4_IS_FRAGMENT	0x3fff

#define TRIM_IPV6_BYTES		40
#define TRIM_IPV6_LENGTH	4	/* offset of the payload length */
#define TRIM_IPV6_PROTOCOL	6
#define TRIM_IPV6_ADDRESSES	8

#define TRIM_UDP_LENGTH		4	/* offset of the length */

/* Whether a packet with this protocol can be trimmed, if the protocol itself decides. */
static enum timely_trim_kind trim_protocol(u8 protocol)
{
	switch (protocol) {
	case IPPROTO_ESP:
	case IPPROTO_AH:
		return TIMELY_TRIM_IPSEC;
	case IPPROTO_FRAGMENT:
		return TIMELY_TRIM_FRAGMENT;
	default:
		return TIMELY_TRIM_POSSIBLE;
	}
}

static bool trim_is_extension(u8 protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_DSTOPTS;
}

/* Walk along the IPv6 extension headers. Each is at least 8 bytes long, so the loop ends. */
static enum timely_trim_kind trim_walk_ipv6(struct timely_trim_packet *packet,
					    const u8 *frame, u32 bytes)
{
	const u8 *header;

	packet->protocol = frame[packet->network + TRIM_IPV6_PROTOCOL];
	packet->transport = packet->network + TRIM_IPV6_BYTES;
	while (trim_is_extension(packet->protocol)) {
		if (packet->transport + 8 > bytes)
			return TIMELY_TRIM_HEADERS;
		header = frame + packet->transport;
		packet->protocol = header[0];
		packet->transport += 8 * (header[1] + 1U);
	}
	return trim_protocol(packet->protocol);
}

static enum timely_trim_kind trim_walk_ipv4(struct timely_trim_packet *packet, const u8 *frame)
{
	const u8 *ip = frame + packet->network;

	packet->protocol = ip[TRIM_IPV4_PROTOCOL];
	packet->transport = packet->network + 4 * (ip[0] & 15);
	if (get_unaligned_be16(ip + TRIM_IPV4_FRAGMENT) & TRIM_IPV4_IS_FRAGMENT)
		return TIMELY_TRIM_FRAGMENT;
	return trim_protocol(packet->protocol);
}

/* The length of the IP packet, bytes; 0 if its header is invalid. Link layers may add padding. */
static u32 trim_ip_bytes(const u8 *ip, bool ipv6)
{
	u32 bytes;

	if (ip[0] >> 4 != (ipv6 ? 6 : 4))
		return 0;
	if (ipv6) {
		/* A payload length of 0 is that of a jumbogram. */
		bytes = get_unaligned_be16(ip + TRIM_IPV6_LENGTH);
		return bytes ? bytes + TRIM_IPV6_BYTES : 0;
	}
	bytes = get_unaligned_be16(ip + TRIM_IPV4_LENGTH);
	if ((ip[0] & 15) < TRIM_IPV4_BYTES / 4 || bytes < 4U * (ip[0] & 15))
		return 0;
	return bytes;
}

static u8 trim_dscp_of(const u8 *ip, bool ipv6)
{
	return ipv6 ? get_unaligned_be16(ip) >> 6 & 63 : ip[1] >> 2;
}

/**
 * timely_trim_parse() - find a packet's headers, and decide whether the packet can be trimmed
 * @packet: gets the headers' places; valid if the result is TIMELY_TRIM_POSSIBLE
 * @cfg: the options
 * @frame: the first bytes of the frame
 * @bytes: number of bytes at @frame, at most @length
 * @length: length of the frame, bytes
 * @network: offset of the IP header in the frame, bytes
 * @ethertype: type of the header at @network, in host byte order
 *
 * Return: TIMELY_TRIM_POSSIBLE, or the reason why the packet cannot be trimmed.
 */
enum timely_trim_kind timely_trim_parse(struct timely_trim_packet *packet,
					const struct timely_trim_cfg *cfg, const u8 *frame,
					u32 bytes, u32 length, u32 network, u32 ethertype)
{
	bool ipv6 = ethertype == TRIM_ETHERTYPE_IPV6;
	enum timely_trim_kind kind;
	const u8 *ip;
	u32 ip_bytes;

	if (!ipv6 && ethertype != TRIM_ETHERTYPE_IPV4)
		return TIMELY_TRIM_NOT_IP;
	if (network > bytes || bytes - network < (ipv6 ? TRIM_IPV6_BYTES : TRIM_IPV4_BYTES))
		return TIMELY_TRIM_HEADERS;
	ip = frame + network;
	ip_bytes = trim_ip_bytes(ip, ipv6);
	if (!ip_bytes || ip_bytes > length - network)
		return TIMELY_TRIM_HEADERS;
	if (!(cfg->trimmable >> trim_dscp_of(ip, ipv6) & 1))
		return TIMELY_TRIM_DSCP;
	if (network + ip_bytes <= cfg->size)
		return TIMELY_TRIM_SHORT;

	packet->network = network;
	packet->ipv6 = ipv6;
	kind = ipv6 ? trim_walk_ipv6(packet, frame, bytes) : trim_walk_ipv4(packet, frame);
	if (kind == TIMELY_TRIM_POSSIBLE &&
	    packet->transport + TIMELY_TRIM_TRANSPORT_BYTES > min(bytes, cfg->size))
		return TIMELY_TRIM_HEADERS;
	return kind;
}
EXPORT_SYMBOL_GPL(timely_trim_parse);

/* Replace a 16-bit word of an IPv4 header and adjust the header's checksum (RFC 1624). */
static void trim_put_ipv4(u8 *ip, u32 offset, u16 value)
{
	u32 sum = (u16)~get_unaligned_be16(ip + TRIM_IPV4_CHECK);

	sum += (u16)~get_unaligned_be16(ip + offset) + (u32)value;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put_unaligned_be16(value, ip + offset);
	put_unaligned_be16((u16)~sum, ip + TRIM_IPV4_CHECK);
}

/**
 * timely_trim_rewrite() - make the headers of a packet those of a trimmed packet
 * @frame: the frame, up to 8 bytes behind @packet->transport
 * @packet: where the headers are
 * @length: length of the trimmed frame, bytes; shorter than the frame was
 * @dscp: DSCP of the trimmed packet, 0 to 63; the ECN bits stay
 */
void timely_trim_rewrite(u8 *frame, const struct timely_trim_packet *packet, u32 length,
			 u8 dscp)
{
	u32 transport_bytes = length - packet->transport;
	u8 *ip = frame + packet->network, *udp = frame + packet->transport;

	if (packet->ipv6) {
		put_unaligned_be16(length - packet->network - TRIM_IPV6_BYTES,
				   ip + TRIM_IPV6_LENGTH);
		put_unaligned_be16((get_unaligned_be16(ip) & 0xf03f) | dscp << 6, ip);
	} else {
		trim_put_ipv4(ip, TRIM_IPV4_LENGTH, length - packet->network);
		trim_put_ipv4(ip, 0, (get_unaligned_be16(ip) & 0xff03) | dscp << 2);
	}
	if (packet->protocol == IPPROTO_UDP &&
	    get_unaligned_be16(udp + TRIM_UDP_LENGTH) > transport_bytes)
		put_unaligned_be16(transport_bytes, udp + TRIM_UDP_LENGTH);
}
EXPORT_SYMBOL_GPL(timely_trim_rewrite);

/* Whether a packet may be sent to this address, in the opposite direction. */
static bool trim_is_unicast(const u8 *address, bool ipv6)
{
	u32 i;

	if (!ipv6)
		return address[0] && address[0] < 224 && address[0] != 127;
	if (address[0] == 0xff)
		return false;
	/* :: and ::1 */
	for (i = 0; i < 15; i++)
		if (address[i])
			return true;
	return false;
}

/**
 * timely_trim_may_return() - decide whether a trimmed packet may go back to its sender
 * @frame: the frame, up to 8 bytes behind @packet->transport
 * @packet: where the headers are
 *
 * Only UDP packets between unicast addresses may, because a socket must be able to receive the
 * packet. A packet with IPv4 options or IPv6 extension headers may not: these could name other
 * hosts on the path.
 *
 * Return: true if the packet may go back.
 */
bool timely_trim_may_return(const u8 *frame, const struct timely_trim_packet *packet)
{
	u32 address_bytes = packet->ipv6 ? 16 : 4;
	const u8 *ip = frame + packet->network;
	const u8 *source = ip + (packet->ipv6 ? TRIM_IPV6_ADDRESSES : TRIM_IPV4_ADDRESSES);
	const u8 *udp = frame + packet->transport;

	return packet->protocol == IPPROTO_UDP &&
	       packet->transport == packet->network +
				    (packet->ipv6 ? TRIM_IPV6_BYTES : TRIM_IPV4_BYTES) &&
	       trim_is_unicast(source, packet->ipv6) &&
	       trim_is_unicast(source + address_bytes, packet->ipv6) &&
	       get_unaligned_be16(udp) && get_unaligned_be16(udp + 2);
}
EXPORT_SYMBOL_GPL(timely_trim_may_return);

static void trim_swap_bytes(u8 *first, u8 *second, u32 bytes)
{
	u8 byte;

	for (; bytes; bytes--, first++, second++) {
		byte = *first;
		*first = *second;
		*second = byte;
	}
}

/**
 * timely_trim_return() - address a packet to its sender
 * @frame: the frame, up to 8 bytes behind @packet->transport
 * @packet: where the headers are; timely_trim_may_return() is true for the packet
 *
 * Addresses and UDP ports change places. No checksum changes, because each is a sum that contains
 * both of them.
 */
void timely_trim_return(u8 *frame, const struct timely_trim_packet *packet)
{
	u32 address_bytes = packet->ipv6 ? 16 : 4;
	u8 *ip = frame + packet->network;
	u8 *source = ip + (packet->ipv6 ? TRIM_IPV6_ADDRESSES : TRIM_IPV4_ADDRESSES);
	u8 *udp = frame + packet->transport;

	trim_swap_bytes(source, source + address_bytes, address_bytes);
	trim_swap_bytes(udp, udp + 2, 2);
}
EXPORT_SYMBOL_GPL(timely_trim_return);
