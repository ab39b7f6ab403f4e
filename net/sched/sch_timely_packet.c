// SPDX-License-Identifier: GPL-2.0
/*
 * Kinds of packets, for the qdisc "timely": which transport protocol a packet carries, whether the
 * packet has a payload, where the payload begins, and whether a pure ACK replaces another.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "sch_timely.h"

/**
 * tq_headers() - get the length of all headers of a TCP packet or a UDP GSO packet
 * @skb: the packet; if it is forwarded, nobody has checked its headers before
 *
 * Return: bytes from the start of @skb to the payload; 0 if the headers are invalid.
 */
u32 tq_headers(const struct sk_buff *skb)
{
	bool udp = skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4;
	u32 least = udp ? sizeof(struct udphdr) : sizeof(struct tcphdr);
	u32 offset, length;

	if (!skb_transport_header_was_set(skb) ||
	    skb_transport_offset(skb) < skb_network_offset(skb))
		return 0;
	offset = skb_transport_offset(skb);
	if (skb_headlen(skb) < offset + least)
		return 0;
	length = tq_transport_header(skb);
	if (length < least || skb_headlen(skb) < offset + length)
		return 0;
	return offset + length;
}

/* The transport protocol behind IPv6 extension headers. Applications can add such headers, and
 * BIG TCP adds a hop-by-hop header. Return: the protocol; IPPROTO_FRAGMENT for a fragment; 0 if the
 * extension headers do not end where the stack has set the transport header.
 */
static u8 tq_ipv6_protocol(const struct sk_buff *skb)
{
	u8 protocol = ipv6_hdr(skb)->nexthdr;
	__be16 frag_off;
	int offset;

	if (likely(protocol == IPPROTO_TCP || protocol == IPPROTO_UDP))
		return skb_network_header_len(skb) == sizeof(struct ipv6hdr) ? protocol : 0;
	offset = ipv6_skip_exthdr(skb, skb_network_offset(skb) + sizeof(struct ipv6hdr),
				  &protocol, &frag_off);
	if (offset >= 0 && frag_off & htons(IP6_OFFSET | IP6_MF))
		return IPPROTO_FRAGMENT;
	return offset == skb_transport_offset(skb) ? protocol : 0;
}

/**
 * tq_plain_protocol() - get the transport protocol of a packet without encapsulation
 * @skb: the packet
 *
 * A fragment is not treated as TCP or UDP: the bytes at the place of its transport header may be
 * payload, and the receiver sees only the whole datagram.
 *
 * Return: the protocol; IPPROTO_FRAGMENT for a fragment of IPv4 or IPv6; 0 for a packet with
 * encapsulation, without a transport header, or neither IPv4 nor IPv6.
 */
u8 tq_plain_protocol(const struct sk_buff *skb)
{
	if (skb->encapsulation || !skb_transport_header_was_set(skb))
		return 0;
	switch (skb->protocol) {
	case htons(ETH_P_IP):
		return ip_is_fragment(ip_hdr(skb)) ? IPPROTO_FRAGMENT : ip_hdr(skb)->protocol;
	case htons(ETH_P_IPV6):
		return tq_ipv6_protocol(skb);
	}
	return 0;
}

static bool tq_is_plain_tcp(const struct sk_buff *skb)
{
	return tq_plain_protocol(skb) == IPPROTO_TCP && tq_headers(skb);
}

static bool tq_is_plain_udp(const struct sk_buff *skb)
{
	return tq_plain_protocol(skb) == IPPROTO_UDP &&
	       skb_headlen(skb) >= skb_transport_offset(skb) + sizeof(struct udphdr);
}

/**
 * tq_set_kind() - set the bits tcp, udp and data of a packet's control block
 * @skb: the packet
 */
void tq_set_kind(const struct sk_buff *skb)
{
	struct tq_skb_cb *cb = tq_cb(skb);

	cb->tcp = tq_is_plain_tcp(skb);
	cb->udp = !cb->tcp && tq_is_plain_udp(skb);
	cb->data = cb->udp || (cb->tcp ? !!tq_payload(skb) :
			       tq_plain_protocol(skb) == IPPROTO_FRAGMENT);
}

/* The flags of a TCP header, with the reserved bits before them, in tcp_flag_word(). */
#define TQ_TCP_FLAGS	htonl(0x0fff0000)

/* The first word of the only options of a usual ACK: its timestamps. */
#define TQ_TCP_TIMESTAMPS	htonl(TCPOPT_NOP << 24 | TCPOPT_NOP << 16 | \
				      TCPOPT_TIMESTAMP << 8 | TCPOLEN_TIMESTAMP)

/* Whether a packet is a pure ACK that says nothing but up to where data have arrived: it has no
 * flags of ECN, which count marked packets, and no options but timestamps, so no SACK blocks.
 */
static bool tq_is_plain_ack(const struct sk_buff *skb)
{
	const struct tcphdr *tcp = tcp_hdr(skb);

	if (!skb_is_tcp_pure_ack(skb) || !tq_is_plain_tcp(skb) ||
	    (tcp_flag_word(tcp) & TQ_TCP_FLAGS) != TCP_FLAG_ACK)
		return false;
	return tcp_hdrlen(skb) == sizeof(*tcp) ||
	       (tcp_hdrlen(skb) == sizeof(*tcp) + TCPOLEN_TSTAMP_ALIGNED &&
		*(const __be32 *)(tcp + 1) == TQ_TCP_TIMESTAMPS);
}

/**
 * tq_replaces_ack() - whether a packet is a pure ACK that says all that an earlier one says
 * @ack: the packet
 * @earlier: packet of the same flow that has not left yet
 *
 * Duplicate ACKs do not replace each other, because the sender counts them. Should a socket have
 * been connected anew in between, its former connection loses an ACK, which TCP expects to happen.
 *
 * Return: true if @earlier need not be sent.
 */
bool tq_replaces_ack(const struct sk_buff *ack, const struct sk_buff *earlier)
{
	return ack->sk == earlier->sk && tq_is_plain_ack(ack) && tq_is_plain_ack(earlier) &&
	       tcp_hdr(ack)->seq == tcp_hdr(earlier)->seq &&
	       after(ntohl(tcp_hdr(ack)->ack_seq), ntohl(tcp_hdr(earlier)->ack_seq));
}
