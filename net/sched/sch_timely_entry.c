// SPDX-License-Identifier: GPL-2.0
/*
 * Flow entries of the qdisc "timely": what a flow shares with its congestion control and with
 * On-Ramp.
 *
 * A flow has the entry that its socket's congestion control has made (net/timely/flow.c). If
 * the congestion control makes no entry and On-Ramp is on, the qdisc makes an entry for the flow's
 * addresses (net/timely/onramp_flow.c). This file gets and releases entries, and handles reports of
 * changed rates and pauses.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/tcp.h>

#include <net/timely_onramp.h>

#include "sch_timely_pace.h"

/* TCP's minimum RTT counts for On-Ramp only if it was measured in the last 5 s, half of the window
 * of On-Ramp's own minimum (engine/owd.c). TCP keeps a minimum for 300 s, and an idle connection
 * for ever, but the path may have become longer since. The minimum is that of all flows to the
 * address: one that is too low makes On-Ramp pause all of them although there is no queue.
 */
#define TQ_MIN_RTT_AGE		(5 * HZ)

/**
 * tq_forget_entry() - release a flow's entry
 * @q: the qdisc, locked
 * @f: the flow; it may have no entry
 */
void tq_forget_entry(struct tq_sched *q, struct tq_flow *f)
{
	if (!f->has_entry)
		return;
	timely_flow_detach(f->entry, &q->notifier, f);
	timely_flow_put(f->entry);
	f->entry = NULL;
	f->has_entry = 0;
	f->has_cc = 0;
}

/* Set @tuple to the addresses of a TCP or UDP packet. TCP and UDP headers begin with the ports. */
static void tq_tuple(const struct sk_buff *skb, struct timely_tuple *tuple)
{
	memset(tuple, 0, sizeof(*tuple));
	tuple->net = (unsigned long)sock_net(skb->sk);
	tuple->sport = udp_hdr(skb)->source;
	tuple->dport = udp_hdr(skb)->dest;
	tuple->protocol = tq_plain_protocol(skb);
	if (skb->protocol == htons(ETH_P_IPV6)) {
		tuple->family = AF_INET6;
		memcpy(tuple->saddr, &ipv6_hdr(skb)->saddr, sizeof(tuple->saddr));
		memcpy(tuple->daddr, &ipv6_hdr(skb)->daddr, sizeof(tuple->daddr));
	} else {
		tuple->family = AF_INET;
		tuple->saddr[0] = ip_hdr(skb)->saddr;
		tuple->daddr[0] = ip_hdr(skb)->daddr;
	}
}

/**
 * tq_has_moved() - check whether the packets of a flow go to another address than its entry's
 * @f: the flow, with a flow entry
 * @skb: a packet of the flow, TCP or UDP
 *
 * A program may connect() a UDP socket to another address. The socket, its local port and so its
 * hash stay the same, but On-Ramp's state is that of the former address: no OR-ACK about the
 * packets would find it.
 *
 * Return: true if On-Ramp's state of the flow is that of another destination.
 */
bool tq_has_moved(const struct tq_flow *f, const struct sk_buff *skb)
{
	const struct timely_onramp *onramp = timely_flow_onramp(f->entry);
	const struct timely_tuple *tuple;

	if (!onramp || sk_is_tcp(skb->sk))
		return false;
	tuple = &onramp->tuple;
	if (tuple->dport != udp_hdr(skb)->dest)
		return true;
	if (skb->protocol == htons(ETH_P_IPV6))
		return tuple->family != AF_INET6 ||
		       memcmp(tuple->daddr, &ipv6_hdr(skb)->daddr, sizeof(tuple->daddr));
	return tuple->family != AF_INET || tuple->daddr[0] != ip_hdr(skb)->daddr;
}

/* TCP's minimum RTT in ns, with a resolution of 1 us; U64_MAX if there is no RTT yet, or if the
 * minimum is older than TQ_MIN_RTT_AGE. A raw socket may send TCP packets, too, so the kind of the
 * socket is checked, not the kind of the packet.
 */
static u64 tq_min_rtt_ns(const struct sk_buff *skb)
{
	const struct minmax_sample *least;

	if (!sk_is_tcp(skb->sk))
		return U64_MAX;
	least = &tcp_sk(skb->sk)->rtt_min.s[0];
	if (least->v == ~0U || tcp_jiffies32 - least->t > TQ_MIN_RTT_AGE)
		return U64_MAX;
	return (u64)least->v * NSEC_PER_USEC;
}

/* Add On-Ramp's state to the flow's entry, or make an entry with this state, and let this qdisc
 * apply the pauses. Return: false if there is no memory, or a budget is used up.
 */
static bool tq_onramp_entry(struct tq_sched *q, struct tq_flow *f,
			    const struct sk_buff *skb)
{
	u64 now = timely_clock_ns();
	struct timely_tuple tuple;

	tq_tuple(skb, &tuple);
	if (!f->entry)
		f->entry = timely_onramp_flow(&tuple, skb->sk);
	else if (!timely_onramp_add(f->entry, &tuple, skb->sk))
		return false;
	if (!f->entry)
		return false;
	timely_flow_attach(f->entry, &q->notifier, f);
	timely_onramp_first_rtt(f->entry, now, tq_min_rtt_ns(skb));
	/* The entry may be new, or that of an old connection with the same addresses. */
	timely_onramp_start(f->entry, now);
	return true;
}

/**
 * tq_find_entry() - find or make the entry of a flow
 * @q: the qdisc, locked
 * @f: the flow, of a socket; it has no entry, or an entry without On-Ramp's state
 * @skb: a packet of the flow
 * @wanted: the socket's congestion control makes entries
 * @onramp: On-Ramp needs an entry, because On-Ramp is on and @skb has data
 *
 * The qdisc makes the flow for the SYN. The congestion control makes the entry later, when the
 * connection is established. If a packet with data finds no entry, or there is no memory for
 * On-Ramp's state, tq_flow.last_lookup prevents another search in the same jiffy.
 */
void tq_find_entry(struct tq_sched *q, struct tq_flow *f, const struct sk_buff *skb,
		   bool wanted, bool onramp)
{
	if (wanted && !f->has_entry)
		f->entry = timely_flow_get(f->sk);
	if ((!wanted || f->entry) && onramp && !tq_onramp_entry(q, f, skb))
		f->last_lookup = (u32)jiffies;
	f->has_entry = !!f->entry;
	f->has_cc = f->entry && f->entry->key;
	if (f->has_entry && unlikely(f->state == TQ_THROTTLED))
		timely_flow_wait(f->entry, &q->notifier, f, tq_waiting_Bps(q, f));
	if (f->has_entry)
		return;
	if (!q->config.onramp)
		tq_set_kind(skb);
	if (tq_cb(skb)->data)
		f->last_lookup = (u32)jiffies;
}

/**
 * tq_wake() - let the qdisc's dequeue run soon, because a flow entry or the options have changed
 * @notifier: the qdisc's notifier
 *
 * Context: any.
 */
void tq_wake(struct timely_notifier *notifier)
{
	struct tq_sched *q = container_of(notifier, struct tq_sched, notifier);

	rcu_read_lock();
	__netif_schedule(qdisc_root(q->sch));
	rcu_read_unlock();
}

/**
 * tq_take_changed() - move throttled flows whose rate or pause was reported as changed
 * @q: the qdisc, locked
 *
 * If another qdisc gets the reports about a flow entry by now, the report is passed on to that
 * qdisc. Each report has a reference to its flow entry, which is released here.
 */
void tq_take_changed(struct tq_sched *q)
{
	struct llist_node *list = llist_del_all(&q->notifier.changed);
	struct timely_flow *entry;
	struct tq_flow *f;

	while ((entry = timely_flow_take_changed(&list))) {
		f = timely_flow_queue(entry, &q->notifier);
		if (!f)
			timely_flow_changed(entry);
		else if (f->state == TQ_THROTTLED)
			tq_move(q, f);
		timely_flow_put(entry);
	}
}
