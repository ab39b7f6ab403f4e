// SPDX-License-Identifier: GPL-2.0
/*
 * Received packets: the UDP sockets of a network namespace pass them on in softirq. This file
 * decodes the header, finds the connection, and answers packets that belong to none.
 *
 * Nothing in a packet is trusted: the engine checks the form and the checksum of the header before
 * any field is used, and conn.c and its engines check each field against the connection's state.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/udp.h>

#include <net/timely_onramp.h>

#include "ndp.h"

static void ndp_packet_addresses(const struct sock *udp, struct ndp_packet *packet)
{
	struct timely_ndp_addresses *addresses = &packet->addresses;
	struct ndp_key *key = &packet->key;

	memset(key, 0, sizeof(*key));
	memset(addresses, 0, sizeof(*addresses));
	addresses->family = udp->sk_family;
	if (udp->sk_family == AF_INET6) {
		const struct ipv6hdr *ip = ipv6_hdr(packet->skb);

		key->local = ip->daddr;
		key->peer = ip->saddr;
		memcpy(addresses->saddr, &ip->saddr, sizeof(addresses->saddr));
		memcpy(addresses->daddr, &ip->daddr, sizeof(addresses->daddr));
	} else {
		const struct iphdr *ip = ip_hdr(packet->skb);

		ndp_map(&key->local, ip->daddr);
		ndp_map(&key->peer, ip->saddr);
		addresses->saddr[0] = ip->saddr;
		addresses->daddr[0] = ip->daddr;
	}
}

/* Whether the tag is that of a packet of this host that a switch has returned: the switch has
 * exchanged the addresses.
 */
static bool ndp_verify_returned(const struct ndp_packet *packet,
				const struct timely_orack_key *key)
{
	struct timely_ndp_addresses addresses = packet->addresses;

	memcpy(addresses.saddr, packet->addresses.daddr, sizeof(addresses.saddr));
	memcpy(addresses.daddr, packet->addresses.saddr, sizeof(addresses.daddr));
	return packet->header.type == TIMELY_NDP_DATA &&
	       timely_ndp_verify(&packet->header, packet->skb->data, &addresses, key);
}

/* Checks the tag of a packet. A packet with a tag needs the right one even where tags are not
 * required. Return: false if the packet is to be dropped.
 */
static bool ndp_authentic(struct net *net, struct ndp_packet *packet)
{
	const struct timely_ndp_header *header = &packet->header;
	const struct timely_orack_key *key = timely_onramp_key(net, header->key);

	if (!header->key && READ_ONCE(ndp_net(net)->authentication) == NDP_AUTH_REQUIRE) {
		ndp_count(net, NDP_untagged);
		return false;
	}
	if (timely_ndp_verify(header, packet->skb->data, &packet->addresses, key))
		return true;
	packet->exchanged = key && ndp_verify_returned(packet, key);
	if (!packet->exchanged)
		ndp_count(net, NDP_bad_tag);
	return packet->exchanged;
}

/* Reads the header. Return: false if the packet is to be dropped. */
static bool ndp_decode(const struct sock *udp, struct ndp_packet *packet)
{
	const struct timely_ndp_header *header = &packet->header;
	struct net *net = sock_net(udp);
	struct sk_buff *skb = packet->skb;

	ndp_count(net, NDP_received);
	ndp_packet_addresses(udp, packet);
	switch (timely_ndp_decode(&packet->header, skb->data, skb_headlen(skb), skb->len,
				  &packet->addresses)) {
	case TIMELY_NDP_WHOLE:
		break;
	case TIMELY_NDP_CUT:
		packet->cut = true;
		ndp_count(net, NDP_trimmed);
		break;
	case TIMELY_NDP_DAMAGED:
		ndp_count(net, NDP_damaged);
		return false;
	default:
		ndp_count(net, NDP_malformed);
		return false;
	}
	if (!ndp_authentic(net, packet))
		return false;
	packet->header_bytes = timely_ndp_header_bytes(header);
	packet->key.conn = header->conn;
	packet->key.local_port = htons(header->dport);
	packet->key.peer_port = htons(header->sport);
	packet->key.initiator = !(header->flags & TIMELY_NDP_INITIATOR);
	return true;
}

/* ---- packets without a connection ---- */

/* Resets a connection that this host does not have. A RESET or COOKIE is not answered: two hosts
 * without a connection would answer each other for ever.
 */
static void ndp_answer_reset(struct net *net, const struct ndp_packet *packet)
{
	struct timely_ndp_header header = { .type = TIMELY_NDP_RESET };

	if (packet->header.type == TIMELY_NDP_RESET || packet->header.type == TIMELY_NDP_COOKIE)
		return;
	ndp_count(net, NDP_resets_sent);
	ndp_output_answer(net, packet, &header);
}

/* Answers a late packet of a connection that has ended. After a reset each packet is answered by a
 * RESET, because the first RESET may be lost, and a peer that only receives sends nothing but ACKs
 * and PULLs. Return: false if there was no such connection.
 */
static bool ndp_answer_late(struct net *net, const struct ndp_packet *packet)
{
	const struct timely_ndp_header *got = &packet->header;
	const struct timely_ndp_past_entry *entry;
	struct ndp_net *nn = ndp_net(net);
	struct timely_ndp_header header = {
		.type = got->type == TIMELY_NDP_DATA ? TIMELY_NDP_ACK : TIMELY_NDP_PULL,
		.seq = got->seq,
		.credits = got->credits,
		.path = got->path,
		.tries = got->tries,
	};
	u32 cum = 0;

	spin_lock(&nn->past_lock);
	entry = timely_ndp_past_find(&nn->past, ndp_past_hash(net, &packet->key),
				     packet->now_ns);
	if (entry)
		cum = entry->cum;
	spin_unlock(&nn->past_lock);
	if (!entry)
		return false;
	ndp_count(net, NDP_late);
	if (cum == NDP_PAST_RESET) {
		ndp_answer_reset(net, packet);
		return true;
	}
	if (got->type != TIMELY_NDP_DATA && got->type != TIMELY_NDP_PROBE)
		return true;
	header.cum = cum;
	header.limit = cum;
	ndp_output_answer(net, packet, &header);
	return true;
}

static void ndp_no_connection(struct net *net, struct ndp_packet *packet)
{
	const struct timely_ndp_header *header = &packet->header;
	bool first = (header->flags & TIMELY_NDP_SYN) && !packet->key.initiator;

	if (ndp_answer_late(net, packet))
		return;
	if (first && (header->type == TIMELY_NDP_DATA || header->type == TIMELY_NDP_PROBE)) {
		ndp_child_packet(net, packet);
		return;
	}
	ndp_count(net, NDP_unknown);
	ndp_answer_reset(net, packet);
}

/* Finds the connection of a DATA packet that a switch has returned to this host. The switch has
 * exchanged the addresses, but not the ports of the header. A whole packet was not returned.
 * Between sockets of one host it looks like a returned one.
 */
static struct sock *ndp_find_returned(struct net *net, const struct ndp_packet *packet)
{
	struct ndp_key key = packet->key;

	if (packet->header.type != TIMELY_NDP_DATA || !packet->cut ||
	    (packet->header.key && !packet->exchanged))
		return NULL;
	swap(key.local_port, key.peer_port);
	key.initiator = !key.initiator;
	return ndp_find(net, &key);
}

/**
 * ndp_input() - receive a packet; the function encap_rcv of the UDP sockets
 * @udp: the UDP socket
 * @skb: the packet, whose data starts with the UDP header
 *
 * Context: softirq, RCU read lock.
 * Return: 0: the packet has been consumed.
 */
int ndp_input(struct sock *udp, struct sk_buff *skb)
{
	struct ndp_packet packet = { .skb = skb, .now_ns = ktime_get_ns() };
	struct net *net = sock_net(udp);
	u32 headers = min_t(u32, skb->len, sizeof(struct udphdr) + TIMELY_NDP_MAX_BYTES);
	struct sock *sk, *returned;

	if (!READ_ONCE(ndp_net(net)->open) || skb->pkt_type != PACKET_HOST ||
	    !pskb_may_pull(skb, headers))
		goto drop;
	__skb_pull(skb, sizeof(struct udphdr));
	if (!ndp_decode(udp, &packet))
		goto drop;
	sk = packet.exchanged ? NULL : ndp_find(net, &packet.key);
	returned = sk ? NULL : ndp_find_returned(net, &packet);
	if (sk) {
		ndp_conn_packet(sk, &packet);
	} else if (returned) {
		ndp_count(net, NDP_returned);
		ndp_conn_returned(returned, &packet);
	} else {
		if (!packet.exchanged)
			ndp_no_connection(net, &packet);
		goto drop;
	}
	/* A packet that has done its work does not count as dropped. */
	consume_skb(packet.skb);
	return 0;
drop:
	kfree_skb(packet.skb);
	return 0;
}
