// SPDX-License-Identifier: GPL-2.0
/*
 * ICMP errors about NDP's packets: the peer's host has no NDP, the peer cannot be reached, or a
 * packet was too long for the path.
 *
 * An error quotes the beginning of the packet. As with TCP, an error counts only if the quoted
 * header belongs to a connection and to a packet in flight. So who cannot see packets cannot forge
 * errors: the number of a connection is random. Errors that quote less than NDP's header are
 * ignored.
 *
 * The kernel asks ndp_icmp_lookup() first, and lowers the MTU of a route of IPv4 only if the
 * function approves. For IPv6 some kernels, such as Linux 6.12, lower the MTU before they ask, so
 * the MTU of a route of IPv6 can be forged as with any UDP, down to 1280 bytes.
 */

#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/icmp.h>

#include "ndp.h"

/* Reads the addresses of the quoted packet. Return: where the header of UDP begins; 0 if the packet
 * is none of UDP.
 */
static u32 ndp_quoted4(const struct iphdr *ip, struct ndp_key *key)
{
	ndp_map(&key->local, ip->saddr);
	ndp_map(&key->peer, ip->daddr);
	if (ip->protocol != IPPROTO_UDP || (ip->frag_off & htons(IP_OFFSET)))
		return 0;
	return ip->ihl * 4;
}

static u32 ndp_quoted6(const struct ipv6hdr *ip, struct ndp_key *key)
{
	key->local = ip->saddr;
	key->peer = ip->daddr;
	return ip->nexthdr == IPPROTO_UDP ? sizeof(*ip) : 0;
}

/* Reads the header of the quoted packet, whose header of IP skb->data points to. */
static bool ndp_quoted(const struct sock *udp, const struct sk_buff *skb,
		       struct ndp_packet *packet)
{
	u32 at = udp->sk_family == AF_INET6 ? ndp_quoted6((void *)skb->data, &packet->key) :
					      ndp_quoted4((void *)skb->data, &packet->key);
	struct timely_ndp_header *header = &packet->header;
	u8 wire[TIMELY_NDP_MAX_BYTES];
	struct udphdr udp_header;
	u32 total;

	if (!at || skb_copy_bits(skb, at, &udp_header, sizeof(udp_header)))
		return false;
	at += sizeof(udp_header);
	/* Other data may follow the quoted packet (RFC 4884). */
	total = min_t(int, skb->len - at, ntohs(udp_header.len) - (int)sizeof(udp_header));
	if ((int)total <= 0 || skb_copy_bits(skb, at, wire, min_t(u32, total, sizeof(wire))))
		return false;
	ndp_addresses(&packet->key, &packet->addresses);
	switch (timely_ndp_decode(header, wire, min_t(u32, total, sizeof(wire)), total,
				  &packet->addresses)) {
	case TIMELY_NDP_WHOLE:
	case TIMELY_NDP_CUT:
		break;
	default:
		return false;
	}
	packet->key.conn = header->conn;
	packet->key.local_port = htons(header->sport);
	packet->key.peer_port = htons(header->dport);
	packet->key.initiator = !!(header->flags & TIMELY_NDP_INITIATOR);
	return true;
}

/* The connection that has sent the quoted packet; NULL if there is none. */
static struct sock *ndp_quoted_conn(const struct sock *udp, const struct sk_buff *skb,
				    struct ndp_packet *packet)
{
	struct net *net = sock_net(udp);

	if (!READ_ONCE(ndp_net(net)->open) || !ndp_quoted(udp, skb, packet))
		return NULL;
	return ndp_find(net, &packet->key);
}

/**
 * ndp_icmp_lookup() - an ICMP error quotes a packet; the function encap_err_lookup of UDP sockets
 * @udp: the UDP socket that has the quoted packet's source port
 * @skb: the error, whose data starts with the header of IP that it quotes
 *
 * Context: softirq, RCU read lock.
 * Return: 0 if the quoted packet is one in flight of a connection; otherwise a negative error.
 */
int ndp_icmp_lookup(struct sock *udp, struct sk_buff *skb)
{
	struct ndp_packet packet = {};
	struct sock *sk = ndp_quoted_conn(udp, skb, &packet);

	if (sk && ndp_conn_in_flight(sk, &packet.header))
		return 0;
	ndp_count(sock_net(udp), NDP_bad_errors);
	return -ENOENT;
}

/* The error of a program for an ICMP error, negative; 0: it is none. */
static int ndp_icmp_error4(u8 type, u8 code)
{
	switch (type) {
	case ICMP_DEST_UNREACH:
		return code <= NR_ICMP_UNREACH ? -icmp_err_convert[code].errno : -EHOSTUNREACH;
	case ICMP_TIME_EXCEEDED:
		return -EHOSTUNREACH;
	case ICMP_PARAMETERPROB:
		return -EPROTO;
	}
	return 0;
}

static int ndp_icmp_error6(u8 type, u8 code)
{
	int err = 0;

#if IS_ENABLED(CONFIG_IPV6)
	icmpv6_err_convert(type, code, &err);
#endif
	return -err;
}

/* The function encap_err_rcv of UDP sockets, after ndp_icmp_lookup() has approved and the kernel
 * has lowered the MTU of the route if the packet was too long.
 */
TIMELY_UDP_ENCAP_ERROR(ndp_icmp_error)
{
	struct ndp_packet packet = {};
	const struct icmphdr *icmp = icmp_hdr(skb);
	bool v6 = sk->sk_family == AF_INET6;
	int error = v6 ? ndp_icmp_error6(icmp->type, icmp->code) :
			 ndp_icmp_error4(icmp->type, icmp->code);
	struct sock *conn = ndp_quoted_conn(sk, skb, &packet);

	if (!conn || !error)
		return;
	ndp_count(sock_net(sk), NDP_errors);
	ndp_conn_error(conn, &packet.header, -error);
}
