// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp (NSDI'21) at the sender: this file receives OR-ACKs and decides which are accepted.
 *
 * An OR-ACK is a UDP packet in which the receiver (net/ipv4/timely_acker.c) reports when a packet
 * of a flow arrived. The sender computes the delay of this packet. If the delay is above a
 * threshold, the sender pauses the flow: the qdisc sends no data of the flow until a time.
 *
 *	onramp.c	OR-ACK: find the key, the flow and the packet's departure; verify the tag
 *	onramp_flow.c	compute the delay (engine/owd.c) and the pause (engine/pause.c)
 *	onramp_repair.c	retransmit the data of a packet that a switch has trimmed
 *	sch_timely	pause the flow
 *
 * onramp_rtt.c feeds RTTs instead of OR-ACKs, onramp_table.c finds flows by their addresses, and
 * onramp_net.c has the keys and counters.
 *
 * An OR-ACK can stop a flow, so a forged OR-ACK must have no effect. An OR-ACK is accepted only if
 *
 *  - its tag was made with a key of this network namespace (or keys are not required),
 *  - a qdisc with On-Ramp sends the flow, and for TCP the connection exists,
 *  - the reported packet departed at most a second ago, and after the packet of the last accepted
 *    OR-ACK. An OR-ACK about a trimmed packet that departed earlier pauses no flow, but lets TCP
 *    look for losses.
 *
 * Cheap checks come before the tag is verified. OR-ACKs with a valid tag that fail a later check
 * are limited. So the cost of a flood is bounded.
 *
 * The qdisc's option owd selects how the delay is obtained:
 *
 *	absolute	The packet's arrival by the receiver's clock minus its departure by the
 *			sender's clock. The clocks of both hosts must be synchronised, or a clock
 *			daemon must measure their offset (timely_peer_set_clock()). Once a daemon
 *			has, delays are relative while no valid offset is known.
 *	relative	The excess of the one-way delay over its minimum of the last 5 to 10 s. The
 *			clocks need not be synchronised: the sender fits a mapping of the receiver's
 *			clock to its own clock (engine/clock.c). The fit uses that an OR-ACK arrives
 *			after its departure.
 *	rtt		The excess of TCP's RTT over its minimum of the last 5 to 10 s. No receiver
 *			is needed.
 *
 * Documentation/deviations.md lists the differences from the paper. The difference in this file is
 * that OR-ACKs are authenticated.
 */

#include <linux/export.h>
#include <linux/in.h>
#include <linux/jhash.h>
#include <linux/skbuff.h>
#include <linux/user_namespace.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <net/udp.h>

#include <net/timely_flow.h>
#include <net/timely_peer.h>

#include <timely_lookup.h>
#include <timely_socket.h>

#include "onramp.h"

#include <trace/events/timely_onramp.h>

/* Limit on OR-ACKs that have a valid tag but are not accepted, for example because their time is
 * impossible: ONRAMP_BAD_MAX in each ONRAMP_BAD_NS, for each of ONRAMP_BAD_GROUPS groups of peers.
 * Beyond the limit, all OR-ACKs of the group are dropped until the period ends. OR-ACKs that
 * onramp_match() rejects, such as replays, and OR-ACKs with a wrong tag do not use up the limit:
 * anybody can send these with the address of any peer.
 */
#define ONRAMP_BAD_MAX		1024
#define ONRAMP_BAD_NS		(4 * NSEC_PER_MSEC)

static u32 onramp_seed __read_mostly;

/* ---- OR-ACKs ---- */

/* Find the key that an OR-ACK names. @key is set to NULL if the OR-ACK names no key and the network
 * namespace accepts OR-ACKs without a key. The caller is in an RCU read-side critical section.
 */
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

/* Find the TCP socket that sends the flow. @iif is the interface that the OR-ACK arrived at.
 * Return: the socket with a reference, or NULL.
 */
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

/* Check that the TCP connection exists and has sent the reported byte. The byte may be acknowledged
 * already, because TCP's ACK often arrives before the OR-ACK. For UDP there is nothing to check:
 * the kernel does not keep what a UDP socket has sent. @found is set to the TCP connection, with a
 * reference, if the byte was sent.
 */
static enum timely_onramp_counter onramp_was_sent(struct net *net,
						  const struct timely_orack *orack, int iif,
						  struct sock **found)
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
	if (result == TIMELY_ONRAMP_accepted)
		*found = sk;
	else
		sock_gen_put(sk);
	return result;
}

/* Find the flow and the departure of the packet that an OR-ACK reports. The packet must have
 * departed after the packet of the last accepted OR-ACK. This check is faster than verifying the
 * tag, takes no lock and changes nothing. The check rejects replays, and OR-ACKs made by somebody
 * who has not seen a packet of the flow. The caller is in an RCU read-side critical section.
 */
static enum timely_onramp_counter onramp_match(const struct timely_orack *orack,
					       struct timely_onramp **found,
					       struct onramp_sample *sample)
{
	struct timely_onramp *onramp = timely_onramp_lookup(&orack->tuple);

	if (!onramp || READ_ONCE(onramp->flow->closed))
		return TIMELY_ONRAMP_no_flow;
	*found = onramp;
	return timely_onramp_departure(onramp, orack->tuple.protocol == IPPROTO_UDP, sample);
}

/* Check the rest of an OR-ACK with a valid tag, and pass the OR-ACK to its flow. The caller is in
 * an RCU read-side critical section.
 */
static enum timely_onramp_counter onramp_take(struct net *net, const struct timely_orack *orack,
					      int iif, struct timely_onramp *onramp,
					      struct onramp_sample *sample)
{
	struct sock *sk = NULL;
	enum timely_onramp_counter result = onramp_was_sent(net, orack, iif, &sk);

	if (result != TIMELY_ONRAMP_accepted)
		return result;
	result = orack->received_ns ? timely_onramp_signal(onramp->flow, sample) :
				      TIMELY_ONRAMP_bad_time;
	if (sample->trimmed &&
	    (result == TIMELY_ONRAMP_accepted || result == TIMELY_ONRAMP_old)) {
		/* An old signal pauses no flow, but the loss is new. */
		result = TIMELY_ONRAMP_accepted;
		timely_onramp_count(net, TIMELY_ONRAMP_accepted_trimmed);
		if (sk)
			timely_onramp_repair(onramp, sk, sample);
	}
	if (sk)
		sock_put(sk);
	if (unlikely(sample->doubted))
		timely_onramp_count(net, TIMELY_ONRAMP_out_of_step);
	if (unlikely(sample->no_offset))
		timely_onramp_count(net, TIMELY_ONRAMP_no_offset);
	if (unlikely(sample->noticed))
		timely_onramp_count(net, TIMELY_ONRAMP_clock_steps);
	return result;
}

/* Set the addresses of the flow that an OR-ACK reports about: the data went in the opposite
 * direction of the OR-ACK.
 */
static void onramp_addresses(struct timely_tuple *tuple, const struct sk_buff *skb)
{
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

/* Find the counter of a group of peers for OR-ACKs that have a valid tag but are not accepted. All
 * counters are set to 0 every ONRAMP_BAD_NS. Return: the counter; NULL if the limit is reached.
 */
static u16 *onramp_bad(struct onramp_net *on, const struct timely_tuple *tuple, u64 now_ns)
{
	u32 group = jhash2((const u32 *)tuple->daddr, ARRAY_SIZE(tuple->daddr), onramp_seed);
	u16 *bad = &on->bad[group % ONRAMP_BAD_GROUPS];

	/* CPUs may race here, so a few OR-ACKs more or less may be counted. */
	if (now_ns - READ_ONCE(on->bad_ns) >= ONRAMP_BAD_NS) {
		WRITE_ONCE(on->bad_ns, now_ns);
		memset(on->bad, 0, sizeof(on->bad));
	}
	return READ_ONCE(*bad) < ONRAMP_BAD_MAX ? bad : NULL;
}

/* Decide whether a well-formed OR-ACK is accepted. Only OR-ACKs with a verified tag use up the
 * limit ONRAMP_BAD_MAX. Otherwise an attacker could forge the address of a peer and use up the
 * limit of that peer, so that the peer's genuine OR-ACKs would be dropped.
 */
static enum timely_onramp_counter
onramp_judge_formed(struct net *net, struct timely_orack *orack, const u8 *wire, int iif)
{
	struct onramp_sample sample = {
		.seq = orack->seq,
		.received_ns = orack->received_ns,
		.turnaround_ns = orack->turnaround_ns,
		.turn_ns = orack->turn_ns,
		.trimmed = orack->flags & TIMELY_ORACK_TRIMMED,
	};
	struct onramp_net *on = onramp_net(net);
	const struct timely_orack_key *key;
	enum timely_onramp_counter result;
	struct timely_onramp *onramp;
	u16 *bad;

	result = onramp_key(on, orack, &key);
	if (result != TIMELY_ONRAMP_accepted)
		return result;
	result = onramp_match(orack, &onramp, &sample);
	if (result != TIMELY_ONRAMP_accepted)
		return result;
	if (!timely_orack_verify(orack, wire, key))
		return TIMELY_ONRAMP_bad_tag;
	sample.now_ns = ktime_get_ns();
	bad = onramp_bad(on, &orack->tuple, sample.now_ns);
	if (!bad)
		return TIMELY_ONRAMP_flooded;
	result = onramp_take(net, orack, iif, onramp, &sample);
	if (result != TIMELY_ONRAMP_accepted)
		WRITE_ONCE(*bad, *bad + 1);
	return result;
}

/* Decide whether a received UDP packet is an OR-ACK that is accepted. The caller is in an RCU
 * read-side critical section.
 */
static enum timely_onramp_counter onramp_judge(struct net *net, struct sk_buff *skb)
{
	enum timely_onramp_counter result;
	struct timely_orack orack = { };
	u8 wire[TIMELY_ORACK_BYTES];

	if (skb->len != sizeof(wire) || skb_copy_bits(skb, 0, wire, sizeof(wire)) ||
	    !timely_orack_decode(&orack, wire, sizeof(wire)))
		return TIMELY_ONRAMP_malformed;
	onramp_addresses(&orack.tuple, skb);
	orack.tuple.net = (unsigned long)net;
	result = onramp_judge_formed(net, &orack, wire, skb->skb_iif);
	if (result != TIMELY_ONRAMP_accepted)
		trace_timely_orack_refused(net, &orack.tuple, result);
	return result;
}

/* A socket for OR-ACKs calls this in softirq for each received packet. */
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

/* Open the socket that receives OR-ACKs of an address family. No task reads the socket:
 * onramp_data_ready() handles packets in softirq. Return: 0 and @result, or a negative error.
 */
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
	/* The socket is read in softirq, where allocations must not sleep. */
	sock->sk->sk_allocation = GFP_ATOMIC;
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* The socket is read in a NAPI poll, which must not poll another NAPI instance. */
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

/* Whether IPv6 is available: a network namespace has devconf_all only if the module ipv6 is loaded.
 * If the module is not loaded, creating an IPv6 socket would load it. The init function of ipv6
 * takes RTNL, which the caller may hold, so this would be a deadlock.
 */
static bool onramp_has_ipv6(const struct net *net)
{
#if IS_ENABLED(CONFIG_IPV6)
	return READ_ONCE(net->ipv6.devconf_all);
#else
	return false;
#endif
}

/* Open the sockets that receive OR-ACKs, or none if one of them fails. Under @on->lock. */
static int onramp_listen_all(struct net *net, struct onramp_net *on)
{
	int err = onramp_listen(net, AF_INET, &on->sockets[0]);

	if (!err && onramp_has_ipv6(net))
		err = onramp_listen(net, AF_INET6, &on->sockets[1]);
	/* The message of tc says the same, and a tenant must not write to the host's log. */
	if (err == -EADDRINUSE && net->user_ns == &init_user_ns)
		pr_warn_ratelimited("timely: On-Ramp refused: another socket has UDP port %u, which OR-ACKs are sent to: \"ss -ulpn 'sport = :%u'\" shows the socket; close it, or load the module timely on all hosts with another orack_port\n",
				    timely_onramp_port(), timely_onramp_port());
	if (err)
		timely_onramp_close(on);
	return err;
}

/**
 * timely_onramp_join() - start signals for a qdisc with the option onramp
 * @net: network namespace of the qdisc's device
 * @owd: TIMELY_OWD_*: how delays are obtained
 *
 * The first qdisc of a namespace opens the sockets that receive OR-ACKs; the first qdisc of the
 * host with TIMELY_OWD_RTT joins the tracepoint that gives RTTs.
 *
 * Context: process; RTNL may be held.
 * Return: 0; -EADDRINUSE if another socket uses the UDP port of OR-ACKs; another error of creating
 * a socket; for TIMELY_OWD_RTT, -EOPNOTSUPP if the kernel has no tracepoint tcp_probe or is built
 * with PREEMPT_RT, or -EPERM if the user must not affect the host, see timely_may_affect_host().
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
 * timely_onramp_leave() - undo timely_onramp_join() for a qdisc
 * @net: network namespace of the qdisc's device
 * @owd: TIMELY_OWD_*: how delays were obtained, as in timely_onramp_join()
 *
 * The last qdisc of the namespace closes the sockets for OR-ACKs; some time after the last qdisc of
 * the host with TIMELY_OWD_RTT, the tracepoint probe is unregistered.
 */
void timely_onramp_leave(struct net *net, u8 owd)
{
	struct onramp_net *on = onramp_net(net);

	if (owd == TIMELY_OWD_RTT) {
		timely_onramp_rtt_leave(on);
		return;
	}
	mutex_lock(&on->lock);
	/* A qdisc may be destroyed just after its device has moved to this namespace. */
	if (on->listeners && !--on->listeners)
		timely_onramp_close(on);
	mutex_unlock(&on->lock);
}
EXPORT_SYMBOL_GPL(timely_onramp_leave);

/* ---- loading ---- */

/**
 * timely_onramp_init() - initialise On-Ramp when the module is loaded
 *
 * Return: 0; -EINVAL if the parameter orack_port is 0; -ENOMEM.
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

/**
 * timely_onramp_exit() - clean up when the module is unloaded
 *
 * Before the call, every qdisc has called timely_onramp_leave(), and all flow entries have been
 * released.
 */
void timely_onramp_exit(void)
{
	timely_onramp_rtt_exit();
	timely_peer_exit();
	timely_onramp_net_exit();
	rcu_barrier();
	timely_onramp_flows_exit();
}
