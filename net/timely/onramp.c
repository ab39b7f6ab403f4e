// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp (NSDI'21) in the sender: what OR-ACKs tell of a path's delay becomes a
 * pause of the flow, which the qdisc keeps to.
 *
 *	OR-ACK -> whose is it, is it true -> one-way delay -> pause.c -> the flow
 *
 * An OR-ACK is an instruction from the network to stop sending. It counts only if
 * its tag was made with a key of this network namespace, its flow is alive and
 * held by a qdisc, the packet it names departed a short while ago and after the
 * one that the last OR-ACK was about. What a flood of others may cost is bounded.
 *
 * The delay may be had in three ways:
 *
 *	absolute	receiver's time less ours, by clocks that are in step
 *	relative	by clocks as they are: the receiver's is one more remote
 *			clock that clock.c tells in our time, as OR-ACKs come back
 *			and are never early. That is the way there with the least
 *			way back; what it exceeds its own least by counts.
 *	rtt		what RTTs that TCP sees exceed their least by: no receiver
 *
 * Notable differences from the paper: an OR-ACK is authenticated; after a hold a
 * flow's rate is limited for a while, see timely_resume_hold().
 */

#include <linux/export.h>
#include <linux/in.h>
#include <linux/jhash.h>
#include <linux/skbuff.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <net/udp.h>

#include <net/timely_flow.h>
#include <net/timely_peer.h>

#include <timely_lookup.h>
#include <timely_socket.h>

#include "onramp.h"

/* OR-ACKs whose tag is right but that do not count, those of an impossible time for example: so
 * many may try for each of so many groups of addresses in each period. An OR-ACK whose tag is
 * wrong uses up nothing, as anybody can send it from any address, nor does one that is replayed.
 */
#define ONRAMP_BAD_MAX		1024
#define ONRAMP_BAD_NS		(4 * NSEC_PER_MSEC)

static u32 onramp_seed __read_mostly;

/* ---- OR-ACKs ---- */

/* The key that an OR-ACK is to be verified with, NULL without one. Under RCU. */
static enum timely_onramp_counter onramp_key(struct onramp_net *on,
					     const struct timely_orack *orack,
					     const struct timely_orack_key **key)
{
	const struct onramp_key *found = NULL;

	if (orack->key)
		found = rcu_dereference(on->keys[orack->key]);
	if (!found && (orack->key || !READ_ONCE(on->unauthenticated)))
		return TIMELY_ONRAMP_unknown_key;
	*key = found ? &found->key : NULL;
	return TIMELY_ONRAMP_accepted;
}

/* The socket that sends the flow, referenced, or NULL. */
static struct sock *onramp_socket(struct net *net, const struct timely_tuple *tuple, int iif)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (tuple->family == AF_INET6)
		return timely_inet6_lookup(net, (const struct in6_addr *)tuple->daddr,
					   tuple->dport,
					   (const struct in6_addr *)tuple->saddr,
					   ntohs(tuple->sport), iif, 0);
#endif
	return timely_inet_lookup(net, tuple->daddr[0], tuple->dport, tuple->saddr[0],
				  ntohs(tuple->sport), iif, 0);
}

/* Is the flow alive, and was the packet sent? It need not be unacknowledged: TCP's
 * own ACK often comes first, and its departure is not remembered for long. Of UDP
 * nobody knows.
 */
static enum timely_onramp_counter onramp_in_flight(struct net *net,
						   const struct timely_orack *orack, int iif)
{
	enum timely_onramp_counter result = TIMELY_ONRAMP_no_flow;
	struct sock *sk;

	if (orack->tuple.protocol != IPPROTO_TCP)
		return TIMELY_ONRAMP_accepted;
	sk = onramp_socket(net, &orack->tuple, iif);
	if (!sk)
		return TIMELY_ONRAMP_no_flow;
	if (sk_fullsock(sk))
		result = before(orack->seq, READ_ONCE(tcp_sk(sk)->snd_nxt)) ?
			 TIMELY_ONRAMP_accepted : TIMELY_ONRAMP_not_in_flight;
	sock_gen_put(sk);
	return result;
}

/* Does an OR-ACK tell of a packet that a flow has sent, and that is later than what was heard
 * of last? This takes less time than to verify the tag, takes no lock and changes nothing: what
 * anybody can send without having seen a packet, and what is replayed, ends here. Under RCU.
 */
static enum timely_onramp_counter onramp_match(const struct timely_orack *orack,
					       struct timely_onramp **found,
					       struct onramp_news *news)
{
	struct timely_onramp *onramp = timely_onramp_lookup(&orack->tuple);

	if (!onramp || READ_ONCE(onramp->flow->closed))
		return TIMELY_ONRAMP_no_flow;
	*found = onramp;
	return timely_onramp_departure(onramp, orack->tuple.protocol == IPPROTO_UDP, news);
}

/* Let a flow hear what an OR-ACK tells, whose tag is right. Under RCU. */
static enum timely_onramp_counter onramp_take(struct net *net, const struct timely_orack *orack,
					      int iif, struct timely_onramp *onramp,
					      struct onramp_news *news)
{
	enum timely_onramp_counter result = onramp_in_flight(net, orack, iif);

	if (result != TIMELY_ONRAMP_accepted)
		return result;
	if (!orack->received_ns)
		return TIMELY_ONRAMP_bad_time;
	result = timely_onramp_hear(onramp->flow, news);
	if (unlikely(news->doubted))
		timely_onramp_count(net, TIMELY_ONRAMP_out_of_step);
	if (unlikely(news->noticed))
		timely_onramp_count(net, TIMELY_ONRAMP_clock_steps);
	return result;
}

static void onramp_addresses(struct timely_tuple *tuple, const struct sk_buff *skb)
{
	/* The data went the other way. */
	if (skb->protocol == htons(ETH_P_IPV6)) {
		tuple->family = AF_INET6;
		memcpy(tuple->saddr, &ipv6_hdr(skb)->daddr, sizeof(tuple->saddr));
		memcpy(tuple->daddr, &ipv6_hdr(skb)->saddr, sizeof(tuple->daddr));
	} else {
		tuple->family = AF_INET;
		tuple->saddr[0] = ip_hdr(skb)->daddr;
		tuple->daddr[0] = ip_hdr(skb)->saddr;
	}
}

/* The count of authentic but useless OR-ACKs that a sender's group of addresses may still
 * add to; NULL if it is used up.
 */
static u16 *onramp_bad(struct onramp_net *on, const struct timely_tuple *tuple, u64 now_ns)
{
	u32 group = jhash2((const u32 *)tuple->daddr, ARRAY_SIZE(tuple->daddr), onramp_seed);
	u16 *bad = &on->bad[group % ONRAMP_BAD_GROUPS];

	/* CPUs may race here: then it is a few more. */
	if (now_ns - READ_ONCE(on->bad_ns) >= ONRAMP_BAD_NS) {
		WRITE_ONCE(on->bad_ns, now_ns);
		memset(on->bad, 0, sizeof(on->bad));
	}
	return READ_ONCE(*bad) < ONRAMP_BAD_MAX ? bad : NULL;
}

/* Judge an OR-ACK that has the right form. Nothing that is limited is used up before the tag was
 * verified: a limit that forged OR-ACKs could use up would silence the peer whose address they
 * bear.
 */
static enum timely_onramp_counter
onramp_judge_formed(struct net *net, struct timely_orack *orack, const u8 *wire, int iif)
{
	struct onramp_news news = {
		.seq = orack->seq,
		.received_ns = orack->received_ns,
		.turnaround_ns = orack->turnaround_ns,
	};
	struct onramp_net *on = onramp_net(net);
	const struct timely_orack_key *key;
	enum timely_onramp_counter result;
	struct timely_onramp *onramp;
	u16 *bad;

	result = onramp_key(on, orack, &key);
	if (result != TIMELY_ONRAMP_accepted)
		return result;
	result = onramp_match(orack, &onramp, &news);
	if (result != TIMELY_ONRAMP_accepted)
		return result;
	if (!timely_orack_verify(orack, wire, key))
		return TIMELY_ONRAMP_bad_tag;
	news.now_ns = ktime_get_ns();
	bad = onramp_bad(on, &orack->tuple, news.now_ns);
	if (!bad)
		return TIMELY_ONRAMP_flooded;
	result = onramp_take(net, orack, iif, onramp, &news);
	if (result != TIMELY_ONRAMP_accepted)
		WRITE_ONCE(*bad, *bad + 1);
	return result;
}

static enum timely_onramp_counter onramp_judge(struct net *net, struct sk_buff *skb)
{
	struct timely_orack orack = { };
	u8 wire[TIMELY_ORACK_BYTES];

	if (skb->len != sizeof(wire) || skb_copy_bits(skb, 0, wire, sizeof(wire)) ||
	    !timely_orack_decode(&orack, wire, sizeof(wire)))
		return TIMELY_ONRAMP_malformed;
	onramp_addresses(&orack.tuple, skb);
	orack.tuple.net = (unsigned long)net;
	return onramp_judge_formed(net, &orack, wire, skb->skb_iif);
}

/* Called in softirq for each packet that the socket is given. */
static void onramp_data_ready(struct sock *sk)
{
	struct net *net = sock_net(sk);
	struct sk_buff *skb;
	int err;

	for (;;) {
		skb = skb_recv_udp(sk, MSG_DONTWAIT, &err);
		if (!skb)
			break;
		timely_onramp_count(net, TIMELY_ONRAMP_received);
		rcu_read_lock();
		if (udp_lib_checksum_complete(skb))
			timely_onramp_count(net, TIMELY_ONRAMP_malformed);
		else
			timely_onramp_count(net, onramp_judge(net, skb));
		rcu_read_unlock();
		consume_skb(skb);
	}
}

/* ---- listening ---- */

static int onramp_listen(struct net *net, int family, struct socket **result)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr = { };
	struct socket *sock;
	int err;

	err = sock_create_kern(net, family, SOCK_DGRAM, IPPROTO_UDP, &sock);
	if (err)
		return err;
	if (family == AF_INET6) {
		err = ip6_sock_set_v6only(sock->sk);
		addr.v6.sin6_family = AF_INET6;
		addr.v6.sin6_port = htons(timely_onramp_port());
	} else {
		addr.v4.sin_family = AF_INET;
		addr.v4.sin_port = htons(timely_onramp_port());
	}
	/* Not the process's own: softirqs hand packets over. */
	sock->sk->sk_allocation = GFP_ATOMIC;
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* What reads the socket runs in a NAPI's poll: it must not poll another one. */
	WRITE_ONCE(sock->sk->sk_ll_usec, 0);
#endif
	if (!err)
		err = timely_kernel_bind(sock, &addr, family == AF_INET6 ? sizeof(addr.v6) :
									   sizeof(addr.v4));
	if (err) {
		sock_release(sock);
		return err;
	}
	write_lock_bh(&sock->sk->sk_callback_lock);
	sock->sk->sk_data_ready = onramp_data_ready;
	write_unlock_bh(&sock->sk->sk_callback_lock);
	*result = sock;
	return 0;
}

/* To ask for a socket of a family that is not there loads its module, and IPv6's takes RTNL
 * to start, which is held here. A namespace has these settings since IPv6 is there.
 */
static bool onramp_has_ipv6(const struct net *net)
{
#if IS_ENABLED(CONFIG_IPV6)
	return READ_ONCE(net->ipv6.devconf_all);
#else
	return false;
#endif
}

static int onramp_listen_all(struct net *net, struct onramp_net *on)
{
	int err = onramp_listen(net, AF_INET, &on->sockets[0]);

	/* Without IPv6 there is nothing to be missed. */
	if (!err && onramp_has_ipv6(net))
		err = onramp_listen(net, AF_INET6, &on->sockets[1]);
	if (err == -EADDRINUSE)
		pr_warn_ratelimited("timely: On-Ramp refused: another socket has UDP port %u, where OR-ACKs come in: \"ss -ulpn 'sport = :%u'\" shows whose it is; free the port, or load timely with another orack_port on all hosts\n",
				    timely_onramp_port(), timely_onramp_port());
	if (err)
		timely_onramp_deafen(on);
	return err;
}

/**
 * timely_onramp_join() - a qdisc is going to hold flows
 * @net: network namespace of its device
 * @owd: TIMELY_OWD_*: what it takes for a delay
 *
 * Return: 0; -EADDRINUSE if another socket has the port of OR-ACKs; another error
 * of making one; -EOPNOTSUPP if RTTs cannot be had, as the kernel has no tracepoint for them
 * or is built with PREEMPT_RT; -EPERM if they are wanted by somebody who must not affect the
 * host, see timely_may_affect_host().
 */
int timely_onramp_join(struct net *net, u8 owd)
{
	struct onramp_net *on = onramp_net(net);
	int err = 0;

	if (owd == TIMELY_OWD_RTT)
		return timely_onramp_rtt_join(net, on);
	mutex_lock(&on->lock);
	if (!on->listeners)
		err = onramp_listen_all(net, on);
	if (!err)
		on->listeners++;
	mutex_unlock(&on->lock);
	return err;
}
EXPORT_SYMBOL_GPL(timely_onramp_join);

/**
 * timely_onramp_leave() - and no more
 * @net: as for timely_onramp_join()
 * @owd: likewise
 */
void timely_onramp_leave(struct net *net, u8 owd)
{
	struct onramp_net *on = onramp_net(net);

	if (owd == TIMELY_OWD_RTT) {
		timely_onramp_rtt_leave(on);
		return;
	}
	mutex_lock(&on->lock);
	if (!--on->listeners)
		timely_onramp_deafen(on);
	mutex_unlock(&on->lock);
}
EXPORT_SYMBOL_GPL(timely_onramp_leave);

/* ---- loading ---- */

/**
 * timely_onramp_init() - make ready
 *
 * Return: 0; -EINVAL for a port that is none; -ENOMEM.
 */
int timely_onramp_init(void)
{
	int err;

	get_random_bytes(&onramp_seed, sizeof(onramp_seed));
	err = timely_onramp_flows_init();
	if (err)
		return err;
	err = timely_peer_init();
	if (err)
		goto no_peers;
	err = timely_onramp_net_init();
	if (err)
		goto no_net;
	return 0;

no_net:
	timely_peer_exit();
no_peers:
	timely_onramp_flows_exit();
	return err;
}

/** timely_onramp_exit() - all qdiscs have gone, and all flows been put */
void timely_onramp_exit(void)
{
	timely_onramp_rtt_exit();
	timely_peer_exit();
	timely_onramp_net_exit();
	rcu_barrier();
	timely_onramp_flows_exit();
}
