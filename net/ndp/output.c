// SPDX-License-Identifier: GPL-2.0
/*
 * Building packets, and sending them in UDP.
 *
 * The UDP checksum is 0, because a switch may trim the packet; the header and the payload have
 * checksums of their own. Only PROBEs over IPv6 have a UDP checksum: without it, a host without NDP
 * does not say that the port is unreachable. The destination port of UDP is NDP's; the source port
 * selects the path.
 *
 * Packets of IPv4 have the flag DF, so that a router whose next link has a smaller MTU says so
 * (path MTU discovery). Packets that were cut before are longer than the MTU then. They are sent in
 * fragments.
 *
 * All packets have the socket's priority. With a higher one for packets without data, these would
 * wait longer under the qdisc fq since Linux 6.7, which sends up to 196 KB of one priority before
 * the next one has its turn. With the same priority they come first, as packets of new flows.
 */

#include <linux/random.h>
#include <linux/skbuff.h>
#include <net/ip6_route.h>
#include <net/route.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>

#include <net/timely_onramp.h>

#include "ndp.h"

#include <trace/events/ndp.h>

#define NDP_HEADROOM	(MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr) + \
			 TIMELY_NDP_MAX_BYTES)

/**
 * struct ndp_out_cb - what a packet has in its control block until it is sent
 * @source: source port of UDP
 * @dscp: DSCP
 * @sum: the packet gets a checksum of UDP over IPv6
 */
struct ndp_out_cb {
	__be16 source;
	u8 dscp;
	bool sum;
};

#define NDP_OUT_CB(skb)	((struct ndp_out_cb *)(skb)->cb)

/* ---- building ---- */

/**
 * ndp_addresses() - the addresses for the checksum of the header, in any order
 * @key: identity of the connection
 * @addresses: set
 */
void ndp_addresses(const struct ndp_key *key, struct timely_ndp_addresses *addresses)
{
	memset(addresses, 0, sizeof(*addresses));
	if (ipv6_addr_v4mapped(&key->local)) {
		addresses->family = AF_INET;
		addresses->saddr[0] = ndp_v4(&key->local);
		addresses->daddr[0] = ndp_v4(&key->peer);
		return;
	}
	addresses->family = AF_INET6;
	memcpy(addresses->saddr, &key->local, sizeof(addresses->saddr));
	memcpy(addresses->daddr, &key->peer, sizeof(addresses->daddr));
}

/* The key that signs packets, under RCU, and its number; NULL and 0: packets have no tag. */
static const struct timely_orack_key *ndp_sign_key(struct net *net, u8 *number)
{
	const struct timely_orack_key *key;

	*number = 0;
	if (READ_ONCE(ndp_net(net)->authentication) == NDP_AUTH_OFF)
		return NULL;
	*number = timely_onramp_key_used(net);
	key = timely_onramp_key(net, *number);
	if (!key)
		*number = 0;
	return key;
}

/**
 * ndp_output_header_bytes() - bytes of a header without a cookie that this host sends now
 * @net: network namespace
 *
 * Return: TIMELY_NDP_BYTES, and with a key also those of the tag.
 */
u32 ndp_output_header_bytes(struct net *net)
{
	bool tagged = READ_ONCE(ndp_net(net)->authentication) != NDP_AUTH_OFF &&
		      timely_onramp_key_used(net);

	return TIMELY_NDP_BYTES + (tagged ? TIMELY_NDP_TAG_BYTES : 0);
}

/* The path of a packet. An answer to a DATA packet takes the path of that packet, whose next
 * transmission takes another path. All other packets take a random path: with a fixed one, packets
 * that are repeated until they are answered would all be lost if a link of the path is dead.
 */
static u32 ndp_path(const struct timely_ndp_header *header)
{
	switch (header->type) {
	case TIMELY_NDP_DATA:
	case TIMELY_NDP_ACK:
	case TIMELY_NDP_NACK:
		return header->path;
	default:
		return get_random_u32();
	}
}

/* Writes the header in front of the payload, and what the packet needs until it is sent. @sign:
 * with a tag, if this host has a key.
 */
static void ndp_push(struct net *net, const struct ndp_key *key, struct timely_ndp_header *header,
		     struct sk_buff *skb, bool sign)
{
	const struct timely_orack_key *signer = NULL;
	struct ndp_net *nn = ndp_net(net);
	struct timely_ndp_addresses addresses;
	u8 wire[TIMELY_NDP_MAX_BYTES];
	u32 bytes;

	header->conn = key->conn;
	header->sport = ntohs(key->local_port);
	header->dport = ntohs(key->peer_port);
	if (key->initiator)
		header->flags |= TIMELY_NDP_INITIATOR;
	ndp_addresses(key, &addresses);
	rcu_read_lock();
	header->key = 0;
	if (sign)
		signer = ndp_sign_key(net, &header->key);
	bytes = timely_ndp_encode(wire, header, &addresses, signer);
	rcu_read_unlock();
	memcpy(skb_push(skb, bytes), wire, bytes);
	NDP_OUT_CB(skb)->source = ndp_net_port(ndp_path(header));
	NDP_OUT_CB(skb)->dscp = header->type == TIMELY_NDP_DATA ? READ_ONCE(nn->data_dscp) :
								  READ_ONCE(nn->control_dscp);
	NDP_OUT_CB(skb)->sum = header->type == TIMELY_NDP_PROBE;
}

/* Completes a packet of a socket and appends the packet to the queue. The packet counts as the
 * socket's while it is on its way to the network.
 */
static void ndp_append(struct sock *sk, struct timely_ndp_header *header, struct sk_buff *skb,
		       struct sk_buff_head *out)
{
	ndp_push(sock_net(sk), &ndp_sk(sk)->key, header, skb, true);
	skb_set_owner_w(skb, sk);
	skb->priority = READ_ONCE(sk->sk_priority);
	skb->mark = READ_ONCE(sk->sk_mark);
	__skb_queue_tail(out, skb);
	trace_ndp_sent(sock_net(sk), &ndp_sk(sk)->key, header, false);
}

/* The cookie of the listener. The first packets have a place for it even before it is known if they
 * are so short that a COOKIE in answer would be longer than they are.
 */
static void ndp_add_cookie(const struct ndp_sock *ndp, struct timely_ndp_header *header)
{
	bool brief = header->length < TIMELY_NDP_COOKIE_BYTES;

	if (!(header->flags & TIMELY_NDP_SYN) || !ndp->key.initiator || !(ndp->cookie || brief))
		return;
	header->flags |= TIMELY_NDP_COOKIED;
	header->cookie = ndp->cookie;
}

/**
 * ndp_output_control() - build a packet without payload
 * @sk: the socket
 * @header: type and contents of the packet; the rest is filled in
 * @out: queue that the packet is appended to; without memory for it, the packet is lost
 *
 * Context: under the connection's lock.
 */
void ndp_output_control(struct sock *sk, struct timely_ndp_header *header,
			struct sk_buff_head *out)
{
	struct sk_buff *skb = alloc_skb(NDP_HEADROOM, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		ndp_count(sock_net(sk), NDP_no_memory);
		return;
	}
	skb_reserve(skb, NDP_HEADROOM);
	if (header->type == TIMELY_NDP_PROBE)
		ndp_add_cookie(ndp_sk(sk), header);
	ndp_append(sk, header, skb, out);
}

/**
 * ndp_output_data() - build a DATA packet
 * @sk: the socket
 * @header: the engine's part of the header; the rest is filled in
 * @data: the payload, which is shared with the packet
 * @out: queue that the packet is appended to; without memory for it, the packet is lost
 *
 * Context: under the connection's lock.
 */
void ndp_output_data(struct sock *sk, struct timely_ndp_header *header, struct sk_buff *data,
		     struct sk_buff_head *out)
{
	struct sk_buff *skb = __pskb_copy(data, NDP_HEADROOM, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		ndp_count(sock_net(sk), NDP_no_memory);
		return;
	}
	header->length = skb->len;
	header->sum = NDP_CB(data)->sum;
	ndp_add_cookie(ndp_sk(sk), header);
	ndp_append(sk, header, skb, out);
}

/* ---- routes ---- */

static struct dst_entry *ndp_route4(struct net *net, const struct sock *sk,
				    const struct ndp_key *key)
{
	struct flowi4 fl4 = {
		.flowi4_oif = sk->sk_bound_dev_if,
		.flowi4_mark = READ_ONCE(sk->sk_mark),
		.flowi4_proto = IPPROTO_UDP,
		.flowi4_uid = sock_net_uid(net, sk),
		.saddr = ndp_v4(&key->local),
		.daddr = ndp_v4(&key->peer),
		.fl4_dport = ndp_net_port(0),
	};
	struct rtable *rt;

	timely_flowi4_tos(&fl4, READ_ONCE(ndp_net(net)->data_dscp) << 2);
	rt = ip_route_output_flow(net, &fl4, sk);
	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *ndp_route6(struct net *net, const struct sock *sk,
				    const struct ndp_key *key, int iif)
{
	struct flowi6 fl6 = {
		.flowi6_oif = sk->sk_bound_dev_if ?: iif,
		.flowi6_mark = READ_ONCE(sk->sk_mark),
		.flowi6_proto = IPPROTO_UDP,
		.flowi6_uid = sock_net_uid(net, sk),
		.saddr = key->local,
		.daddr = key->peer,
		.fl6_dport = ndp_net_port(0),
	};
	struct dst_entry *dst = ip6_dst_lookup_flow(net, sk, &fl6, NULL);

	return IS_ERR(dst) ? NULL : dst;
}

static struct dst_entry *ndp_route(struct net *net, const struct sock *sk,
				   const struct ndp_key *key, int iif)
{
	struct dst_entry *dst;

	if (ipv6_addr_v4mapped(&key->local))
		dst = ndp_route4(net, sk, key);
	else
		dst = ndp_route6(net, sk, key, iif);
	if (!dst)
		ndp_count(net, NDP_no_route);
	return dst;
}

/**
 * ndp_output_route() - find the route to the peer
 * @sk: the socket, connected
 *
 * Return: the route, with a reference; NULL if there is none.
 */
struct dst_entry *ndp_output_route(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct dst_entry *dst = sk_dst_check(sk, ndp->route_cookie);
	u32 cookie = 0;

	if (dst)
		return dst;
	dst = ndp_route(sock_net(sk), sk, &ndp->key, 0);
	if (!dst)
		return NULL;
#if IS_ENABLED(CONFIG_IPV6)
	if (!ipv6_addr_v4mapped(&ndp->key.local))
		cookie = rt6_get_cookie(timely_rt6_info(dst));
#endif
	WRITE_ONCE(ndp->route_cookie, cookie);
	dst_hold(dst);
	sk_dst_set(sk, dst);
	return dst;
}

/* ---- sending ---- */

/* The flag DF for a packet without headers of UDP and IPv4. */
static __be16 ndp_df(struct sock *sk, struct dst_entry *dst, const struct sk_buff *skb)
{
	bool fits = skb->len + sizeof(struct udphdr) + sizeof(struct iphdr) <= dst_mtu(dst);

	return fits && ip_dont_fragment(sk, dst) ? htons(IP_DF) : 0;
}

/* Sends a packet by a route, whose reference is passed on. */
static void ndp_xmit(struct net *net, struct sock *sk, const struct ndp_key *key,
		     struct dst_entry *dst, struct sk_buff *skb)
{
	struct ndp_out_cb cb = *NDP_OUT_CB(skb);

	skb->ignore_df = 1;
	memset(skb->cb, 0, sizeof(skb->cb));
	skb_reset_inner_headers(skb);
	if (ipv6_addr_v4mapped(&key->local))
		timely_udp_xmit4(timely_rtable(dst), sk, skb, ndp_v4(&key->local),
				 ndp_v4(&key->peer), cb.dscp << 2, ip4_dst_hoplimit(dst),
				 ndp_df(sk, dst, skb), cb.source, ndp_net_port(0));
#if IS_ENABLED(CONFIG_IPV6)
	else
		timely_udp_xmit6(dst, sk, skb, &key->local, &key->peer, cb.dscp << 2,
				 ip6_dst_hoplimit(dst), !cb.sum, cb.source, ndp_net_port(0));
#endif
}

/**
 * ndp_output_send() - send the packets of a connection
 * @sk: the socket
 * @out: the packets; empty afterwards
 *
 * Context: without the connection's lock, so that a packet which comes back at once, as over the
 * loopback device, finds the lock free.
 */
void ndp_output_send(struct sock *sk, struct sk_buff_head *out)
{
	struct sk_buff *skb;

	if (skb_queue_empty(out))
		return;
	local_bh_disable();
	while ((skb = __skb_dequeue(out))) {
		struct dst_entry *dst = ndp_output_route(sk);

		if (dst)
			ndp_xmit(sock_net(sk), sk, &ndp_sk(sk)->key, dst, skb);
		else
			kfree_skb(skb);
	}
	local_bh_enable();
}

/**
 * ndp_output_answer() - answer a packet that belongs to no connection
 * @net: network namespace
 * @to: the packet
 * @header: type and contents of the answer; the rest is filled in
 *
 * The answer to a packet without a tag is at most as long as the packet. If the packet is too short
 * for an answer with a tag, it gets one without: it is of a host that has no key yet. The answer to
 * a packet with a good tag, whose address is not forged, may be longer by a tag, if a switch has
 * cut the packet.
 *
 * Context: softirq, RCU read lock.
 */
void ndp_output_answer(struct net *net, const struct ndp_packet *to,
		       struct timely_ndp_header *header)
{
	u32 cookie = timely_ndp_has_cookie(header) ? TIMELY_NDP_COOKIE_BYTES : 0;
	bool sign = to->header.key ||
		    to->skb->len >= TIMELY_NDP_BYTES + TIMELY_NDP_TAG_BYTES + cookie;
	const struct ndp_key *key = &to->key;
	bool v6 = !ipv6_addr_v4mapped(&key->local);
	struct sock *udp = ndp_net(net)->sockets[v6][0]->sk;
	struct dst_entry *dst;
	struct sk_buff *skb;

	if (to->skb->len < TIMELY_NDP_BYTES + cookie)
		return;
	dst = ndp_route(net, udp, key, to->skb->skb_iif);
	if (!dst)
		return;
	skb = alloc_skb(NDP_HEADROOM, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		ndp_count(net, NDP_no_memory);
		dst_release(dst);
		return;
	}
	skb_reserve(skb, NDP_HEADROOM);
	ndp_push(net, key, header, skb, sign);
	ndp_xmit(net, udp, key, dst, skb);
}
