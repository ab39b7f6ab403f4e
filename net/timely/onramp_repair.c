// SPDX-License-Identifier: GPL-2.0
/*
 * Retransmission of data that a switch has trimmed off packets of TCP.
 *
 * TCP's receiver drops a trimmed packet, because its checksum is wrong. TCP's sender learns of the
 * loss when later data are acknowledged. If the last packets of a flight are trimmed, there are
 * none, and the sender waits for a timeout, often 200 ms. An OR-ACK about a trimmed packet proves
 * that the packet has passed the path. TCP detects losses by time (RACK, RFC 8985): packets that
 * were sent no later than a packet that has arrived, and that are not acknowledged after the time
 * for reordering, are lost. This file enters the trimmed packet into the state of RACK, and lets
 * TCP handle the timeout of RACK at once: TCP itself finds the lost packets, enters recovery,
 * reduces its window and retransmits. The qdisc sends the retransmission after the flow's pause.
 *
 * A trimmed packet overtakes the data queue of the switch. Therefore the timeout is handled
 * REPAIR_REORDER_NS after the OR-ACK or later, when packets that arrived whole have been
 * acknowledged: they are not sent twice.
 */

#include <linux/hrtimer.h>
#include <net/tcp.h>

#include <net/timely_flow.h>

#include <timely_inet.h>

#include "onramp.h"

/* How long after an OR-ACK about a trimmed packet the acknowledgements of the packets before it may
 * arrive: the data queue of NDP's switch, eight packets of 1500 bytes with ten trimmed packets
 * after each, lasts 18 us at 10 Gb/s.
 */
#define REPAIR_REORDER_NS	(40 * NSEC_PER_USEC)

/* While a process uses the socket, the retransmission is tried again each REPAIR_BUSY_NS, up to
 * REPAIR_TRIES times; then the loss is left to TCP's own timers.
 */
#define REPAIR_BUSY_NS		(20 * NSEC_PER_USEC)
#define REPAIR_TRIES		50

/* Departures are known this exactly: packets that depart within this time share a record. */
#define REPAIR_RECORD_NS	(16 * NSEC_PER_USEC)

/* Bit of the sysctl net.ipv4.tcp_recovery: TCP detects losses by RACK. */
#define REPAIR_RACK		1

/* Find the packet in the retransmission queue that contains a sequence number. Under the socket's
 * lock. Return: NULL if there is none: the data are acknowledged.
 */
static struct sk_buff *repair_find(const struct sock *sk, u32 seq)
{
	struct rb_node *node = sk->tcp_rtx_queue.rb_node;
	struct sk_buff *skb;

	while (node) {
		skb = rb_to_skb(node);
		if (before(seq, TCP_SKB_CB(skb)->seq))
			node = node->rb_left;
		else if (!before(seq, TCP_SKB_CB(skb)->end_seq))
			node = node->rb_right;
		else
			return skb;
	}
	return NULL;
}

/* Whether the packet is to be retransmitted: not selectively acknowledged, and not sent again after
 * the departure that the OR-ACK was about.
 */
static bool repair_is_due(const struct sk_buff *skb, u64 sent_ns)
{
	u8 sacked = TCP_SKB_CB(skb)->sacked;

	return !(sacked & TCPCB_SACKED_ACKED) &&
	       (!(sacked & TCPCB_RETRANS) || skb->skb_mstamp_ns <= sent_ns + REPAIR_RECORD_NS);
}

/* When TCP undoes a recovery, packets that were marked as lost and not yet sent again are no longer
 * marked, but stay out of the list that RACK searches: only a timeout would find them. Put the
 * packet back to the front, where the oldest packets are. Under the socket's lock.
 */
static void repair_list(struct sock *sk, struct sk_buff *skb)
{
	if (list_empty(&skb->tcp_tsorted_anchor) &&
	    !(TCP_SKB_CB(skb)->sacked & (TCPCB_SACKED_ACKED | TCPCB_LOST)))
		list_add(&skb->tcp_tsorted_anchor, &tcp_sk(sk)->tsorted_sent_queue);
}

/* Let TCP detect the loss of the packet, and of unacknowledged packets sent before it. Under the
 * socket's lock.
 */
static void repair_detect(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 sent_us = tcp_skb_timestamp_us(skb);
	/* RACK finds packets before this number, so the packet itself must be before it. */
	u32 end_seq = TCP_SKB_CB(skb)->end_seq + 1, rtt_us = tp->rack.rtt_us;

	if (tcp_skb_sent_after(sent_us, tp->rack.mstamp, end_seq, tp->rack.end_seq)) {
		tp->rack.mstamp = sent_us;
		tp->rack.end_seq = end_seq;
	}
	repair_list(sk, skb);
	repair_list(sk, tcp_rtx_queue_head(sk));
	/* The time for reordering has passed: RACK must not wait for an RTT and its own time. */
	tp->rack.rtt_us = -USEC_PER_SEC;
	inet_csk_reset_xmit_timer(sk, ICSK_TIME_REO_TIMEOUT, 0, TCP_RTO_MAX);
	/* TCP does here what it does when its timer expires while a process uses the socket. */
	if (!test_and_set_bit(TCP_WRITE_TIMER_DEFERRED, &sk->sk_tsq_flags))
		sock_hold(sk);
	sk->sk_prot->release_cb(sk);
	tp->rack.rtt_us = rtt_us;
}

/* Retransmit what is lost, if the trimmed packet is. Return: false if a process uses the socket. */
static bool repair_now(struct sock *sk, const struct timely_trimmed *trimmed)
{
	struct net *net = sock_net(sk);
	u32 retrans = tcp_sk(sk)->total_retrans;
	struct sk_buff *skb = NULL;
	bool idle;

	bh_lock_sock(sk);
	idle = !sock_owned_by_user(sk);
	if (idle && !((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT)) &&
	    READ_ONCE(net->ipv4.sysctl_tcp_recovery) & REPAIR_RACK)
		skb = repair_find(sk, trimmed->seq);
	if (skb && repair_is_due(skb, trimmed->sent_ns)) {
		repair_detect(sk, skb);
		if (tcp_sk(sk)->total_retrans != retrans)
			timely_onramp_count(net, TIMELY_ONRAMP_repairs);
	}
	bh_unlock_sock(sk);
	return idle;
}

/* Start the timer for a packet of @sk, with a reference, unless the flow ends or the timer was
 * started meanwhile. Under the flow's lock. Return: whether the timer was started.
 */
static bool repair_start(struct timely_repair *repair, struct sock *sk,
			 const struct timely_trimmed *due, u64 in_ns)
{
	if (repair->ended || repair->sk)
		return false;
	repair->sk = sk;
	repair->due = *due;
	hrtimer_start(&repair->timer, ns_to_ktime(in_ns), HRTIMER_MODE_REL_SOFT);
	return true;
}

/* After the timer has handled @due: start it for the same packet if a process uses the socket, or
 * for the last packet reported since. Under the flow's lock. Return: whether it was started.
 */
static bool repair_again(struct timely_repair *repair, struct sock *sk,
			 const struct timely_trimmed *due, bool busy)
{
	struct timely_trimmed last = repair->last;
	s64 in_ns = last.at_ns + REPAIR_REORDER_NS - ktime_get_ns();

	if (busy && ++repair->tries < REPAIR_TRIES)
		return repair_start(repair, sk, due, REPAIR_BUSY_NS);
	repair->tries = 0;
	repair->last.at_ns = 0;
	return last.at_ns && repair_start(repair, sk, &last, max(in_ns, 0LL));
}

/* The timer: take the socket from the flow, and give the socket back if it is needed again. */
static enum hrtimer_restart repair_timer(struct hrtimer *timer)
{
	struct timely_repair *repair = container_of(timer, struct timely_repair, timer);
	struct timely_onramp *onramp = container_of(repair, struct timely_onramp, repair);
	struct timely_flow *flow = onramp->flow;
	struct timely_trimmed due;
	struct sock *sk;
	bool busy, again;

	spin_lock_bh(&flow->lock);
	sk = repair->sk;
	due = repair->due;
	repair->sk = NULL;
	spin_unlock_bh(&flow->lock);
	if (!sk)
		return HRTIMER_NORESTART;
	busy = !repair_now(sk, &due);
	spin_lock_bh(&flow->lock);
	again = repair_again(repair, sk, &due, busy);
	spin_unlock_bh(&flow->lock);
	if (!again)
		sock_put(sk);
	return HRTIMER_NORESTART;
}

/**
 * timely_onramp_repair_init() - initialise a flow without trimmed packets
 * @onramp: On-Ramp's state of the flow
 */
void timely_onramp_repair_init(struct timely_onramp *onramp)
{
	timely_hrtimer_setup(&onramp->repair.timer, repair_timer, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL_SOFT);
}

/**
 * timely_onramp_repair_stop() - start no retransmission for the flow any more
 * @onramp: On-Ramp's state of a flow whose last reference was released
 *
 * The caller may be the timer's function itself, which releases a flow through TCP and the qdisc.
 * So this function does not wait for the timer: timely_onramp_free() does, after an RCU grace
 * period.
 */
void timely_onramp_repair_stop(struct timely_onramp *onramp)
{
	struct timely_repair *repair = &onramp->repair;
	struct sock *sk;

	spin_lock_bh(&onramp->flow->lock);
	repair->ended = true;
	sk = repair->sk;
	repair->sk = NULL;
	spin_unlock_bh(&onramp->flow->lock);
	hrtimer_try_to_cancel(&repair->timer);
	if (sk)
		sock_put(sk);
}

/**
 * timely_onramp_repair() - retransmit the data of a trimmed packet when its turn has come
 * @onramp: On-Ramp's state of the flow
 * @sk: the TCP connection that sends the flow
 * @sample: the accepted signal about the trimmed packet
 *
 * If the timer runs already for an earlier packet, this packet follows: until then, packets that
 * this packet has overtaken can be acknowledged.
 *
 * Context: softirq or process, under RCU.
 */
void timely_onramp_repair(struct timely_onramp *onramp, struct sock *sk,
			  const struct onramp_sample *sample)
{
	struct timely_repair *repair = &onramp->repair;
	struct timely_trimmed trimmed = {
		.at_ns = sample->now_ns,
		.sent_ns = sample->sent_ns,
		.seq = sample->seq,
	};

	spin_lock_bh(&onramp->flow->lock);
	if (repair_start(repair, sk, &trimmed, max_t(u64, sample->turn_ns, REPAIR_REORDER_NS)))
		sock_hold(sk);
	else if (!repair->last.at_ns || trimmed.sent_ns >= repair->last.sent_ns)
		repair->last = trimmed;
	spin_unlock_bh(&onramp->flow->lock);
}
