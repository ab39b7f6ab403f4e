// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that a peer opens. Any packet of the initial window may arrive first, and creates the
 * connection and its socket. There is no handshake, so the source address may be forged. A peer
 * whose address is not known proves it once: its first packet is answered by a COOKIE, which is not
 * longer than the packet, and no state is kept. The peer sends its packets again, with the cookie,
 * which costs a round trip. The proof holds for proof_s, for all connections of the address, so
 * later connections need no additional round trip. An administrator of a network that prevents
 * forged addresses, as the paper assumes, can switch proofs off (proof_s=0).
 *
 * While a proof holds, somebody else can still forge the address. But then the real host has NDP,
 * and its RESET ends the connection.
 *
 * The proof is also needed while the record of ended connections is too full to tell new
 * connections from old ones.
 */

#include <linux/siphash.h>
#include <linux/slab.h>
#include <net/inet_connection_sock.h>
#include <net/ip.h>
#include <net/tcp_states.h>

#include "ndp.h"

/* ---- proof of the peer's address ---- */

/* A record of proved addresses has the upper half of the address's hash, and below it when the
 * proof ends, in seconds of CLOCK_MONOTONIC. Another address with the same place replaces the
 * record: its owner proves the address again. Readers and writers need no lock.
 */
static u64 *ndp_proved_place(struct net *net, const struct in6_addr *peer, u32 *tag)
{
	struct ndp_net *nn = ndp_net(net);
	siphash_key_t key = { .key = { nn->secret.words[0], nn->secret.words[1] } };
	u64 hash = siphash(peer, sizeof(*peer), &key);

	*tag = hash >> 32;
	return &nn->proved[hash % NDP_PROVED];
}

static bool ndp_is_proved(struct net *net, const struct ndp_packet *packet)
{
	u32 tag;
	u64 record = READ_ONCE(*ndp_proved_place(net, &packet->key.peer, &tag));

	return record >> 32 == tag && (u32)record > (u32)div_u64(packet->now_ns, NSEC_PER_SEC);
}

static void ndp_set_proved(struct net *net, const struct ndp_packet *packet)
{
	u32 until_s = div_u64(packet->now_ns, NSEC_PER_SEC) + READ_ONCE(ndp_net(net)->proof_s);
	u32 tag;
	u64 *place = ndp_proved_place(net, &packet->key.peer, &tag);

	WRITE_ONCE(*place, (u64)tag << 32 | until_s);
}

/* Whether a new connection needs a cookie. */
static bool ndp_needs_cookie(struct net *net, const struct ndp_packet *packet)
{
	struct ndp_net *nn = ndp_net(net);

	return (READ_ONCE(nn->proof_s) && !ndp_is_proved(net, packet)) ||
	       timely_ndp_past_full(&nn->past, packet->now_ns);
}

static bool ndp_has_cookie(struct net *net, const struct ndp_packet *packet)
{
	if (!packet->header.cookie)
		return false;
	if (timely_ndp_cookie_valid(&packet->header, &packet->addresses, &ndp_net(net)->secret,
				    packet->now_ns)) {
		ndp_set_proved(net, packet);
		return true;
	}
	ndp_count(net, NDP_bad_cookie);
	return false;
}

static void ndp_challenge(struct net *net, const struct ndp_packet *packet)
{
	struct timely_ndp_header header = { .type = TIMELY_NDP_COOKIE };

	header.cookie = timely_ndp_cookie(&packet->header, &packet->addresses,
					  &ndp_net(net)->secret, packet->now_ns);
	ndp_count(net, NDP_challenged);
	ndp_output_answer(net, packet, &header);
}

/* ---- the socket ---- */

static void ndp_child_addresses(struct sock *sk, const struct ndp_packet *packet)
{
	const struct ndp_key *key = &packet->key;
	struct inet_sock *inet = inet_sk(sk);

	ndp_sk(sk)->key = *key;
	inet->inet_num = ntohs(key->local_port);
	inet->inet_sport = key->local_port;
	inet->inet_dport = key->peer_port;
	if (ipv6_addr_v4mapped(&key->local)) {
		inet->inet_saddr = ndp_v4(&key->local);
		inet->inet_rcv_saddr = inet->inet_saddr;
		inet->inet_daddr = ndp_v4(&key->peer);
	}
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		sk->sk_v6_daddr = key->peer;
		sk->sk_v6_rcv_saddr = key->local;
		inet6_sk(sk)->saddr = key->local;
		if (ipv6_addr_type(&key->peer) & IPV6_ADDR_LINKLOCAL)
			sk->sk_bound_dev_if = packet->skb->skb_iif;
	}
#endif
}

/* A clone has copies of the listener's pointers, which belong to the listener. */
static void ndp_child_disown(struct sock *sk)
{
	struct inet_sock *inet = inet_sk(sk);

	RCU_INIT_POINTER(inet->inet_opt, NULL);
	RCU_INIT_POINTER(inet->mc_list, NULL);
	RCU_INIT_POINTER(sk->sk_rx_dst, NULL);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		struct ipv6_pinfo *np = &((struct ndp6_sock *)sk)->inet6;

		inet->pinet6 = np;
		RCU_INIT_POINTER(np->opt, NULL);
		np->ipv6_mc_list = NULL;
		np->ipv6_ac_list = NULL;
		RCU_INIT_POINTER(timely_flow_labels(sk), NULL);
		np->pktoptions = NULL;
	}
#endif
}

/* Frees a socket that is in no table. */
static void ndp_child_free(struct sock *sk)
{
	ndp_sk(sk)->ended = true;
	ndp_set_state(sk, TCP_CLOSE);
	sock_orphan(sk);
	sock_put(sk);
}

/* Creates the socket of a new connection, with one reference. */
static struct sock *ndp_child_new(const struct sock *listener, const struct ndp_packet *packet)
{
	struct sock *sk = sk_clone_lock(listener, GFP_ATOMIC | __GFP_NOWARN);

	if (!sk)
		return NULL;
	bh_unlock_sock(sk);
	__sock_put(sk);
	ndp_child_disown(sk);
	ndp_sock_init(sk);
	sk->sk_priority = READ_ONCE(listener->sk_priority);
	sk->sk_max_ack_backlog = 0;
	sk->sk_ack_backlog = 0;
	ndp_child_addresses(sk, packet);
	ndp_sk(sk)->opened = true;
	ndp_sk(sk)->heard_ns = packet->now_ns;
	ndp_set_state(sk, TCP_ESTABLISHED);
	if (ndp_conn_prepare(sk, GFP_ATOMIC)) {
		ndp_child_free(sk);
		return NULL;
	}
	ndp_sk(sk)->started = true;
	return sk;
}

/* Enters a new connection into the table and the listener's queue. Return: the connection that the
 * packet belongs to; NULL if the packet is to be dropped.
 */
static struct sock *ndp_child_enter(struct net *net, struct sock *listener, struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	if (!ndp_insert(sk)) {
		/* Another CPU was faster with another packet of the initial window. */
		struct ndp_key key = ndp->key;

		ndp_child_free(sk);
		return ndp_find(net, &key);
	}
	if (!ndp_accept_add(listener, sk)) {
		ndp_count(net, NDP_overflowed);
		sock_orphan(sk);
		ndp_conn_abort(sk);
		sock_put(sk);
		return NULL;
	}
	ndp_count(net, NDP_accepted);
	listener->sk_data_ready(listener);
	return sk;
}

/**
 * ndp_child_packet() - a first packet of a connection that does not exist has arrived
 * @net: network namespace
 * @packet: the packet; @packet->skb is set to NULL if the packet is kept
 *
 * Context: softirq, RCU read lock.
 */
void ndp_child_packet(struct net *net, struct ndp_packet *packet)
{
	struct timely_ndp_header reset = { .type = TIMELY_NDP_RESET };
	struct sock *listener, *sk;

	listener = ndp_find_listener(net, &packet->key.local, ntohs(packet->key.local_port),
				     packet->skb->skb_iif);
	if (!listener) {
		ndp_count(net, NDP_refused);
		ndp_output_answer(net, packet, &reset);
		return;
	}
	if (sk_acceptq_is_full(listener)) {
		ndp_count(net, NDP_overflowed);
		return;
	}
	if (!ndp_has_cookie(net, packet) && ndp_needs_cookie(net, packet)) {
		ndp_challenge(net, packet);
		return;
	}
	sk = ndp_child_new(listener, packet);
	if (!sk) {
		ndp_count(net, NDP_no_memory);
		return;
	}
	sk = ndp_child_enter(net, listener, sk);
	if (sk)
		ndp_conn_packet(sk, packet);
}
