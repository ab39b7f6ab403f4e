// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp by RTTs, without a receiver ("owd rtt"): by how much RTTs of connections exceed their
 * least.
 *
 * The kernel has no hook for the ACKs of connections whose congestion control is not ours. The
 * tracepoint tcp_probe sees each packet that an established connection is about to process. This
 * relies on the tracepoint's place before TCP takes note of the ACK, and on the tags of
 * tcp_skb_cb. check_trace_callback_type_tcp_probe() fails the build where the arguments change;
 * where the tracepoint is gone the qdisc refuses "owd rtt". As the probe sees all network
 * namespaces it needs the host's privilege.
 */

#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <net/busy_poll.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include <net/timely_flow.h>
#include <net/timely_nic.h>
#include <net/timely_tenant.h>
#include <net/timely_tracepoint.h>
#include <trace/events/tcp.h>
#include <timely/engine/clock.h>

#include <timely_probe.h>

#include "onramp.h"

/* Without users the probe stays for so long: whoever switches On-Ramp on and off in a loop
 * does not patch the kernel's text each time.
 */
#define ONRAMP_PROBE_LINGER	(5 * HZ)

/* An ACK that waited longer in this host, or whose stamp is older, has no time of arrival. */
#define ONRAMP_WAITED_MAX_NS	NSEC_PER_SEC

/* The receiver may keep back the ACK of a lone packet: its wait is no queue's. */
static bool onramp_ack_delayed(const struct tcp_sock *tp, u32 ack)
{
	return ack == tp->snd_nxt && ack - tp->snd_una <= tp->mss_cache;
}

static void onramp_tuple(struct timely_tuple *tuple, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

	memset(tuple, 0, sizeof(*tuple));
	tuple->net = (unsigned long)sock_net(sk);
	tuple->sport = inet->inet_sport;
	tuple->dport = inet->inet_dport;
	tuple->protocol = IPPROTO_TCP;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		tuple->family = AF_INET6;
		memcpy(tuple->saddr, &inet6_sk(sk)->saddr, sizeof(tuple->saddr));
		memcpy(tuple->daddr, &sk->sk_v6_daddr, sizeof(tuple->daddr));
		return;
	}
#endif
	tuple->family = AF_INET;
	tuple->saddr[0] = inet->inet_saddr;
	tuple->daddr[0] = inet->inet_daddr;
}

/* What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC by, and when that was last seen to have
 * changed: an earlier stamp of a driver has no time on CLOCK_MONOTONIC.
 */
static struct {
	u64 offset_ns;
	u64 set_ns;
} onramp_real;

static u64 onramp_driver_ns(u64 stamp_ns, u64 now_ns)
{
	u64 offset_ns = ktime_to_ns(ktime_mono_to_real(0));

	if (unlikely(READ_ONCE(onramp_real.offset_ns) != offset_ns)) {
		WRITE_ONCE(onramp_real.offset_ns, offset_ns);
		WRITE_ONCE(onramp_real.set_ns, now_ns);
	}
	stamp_ns -= offset_ns;
	return stamp_ns >= READ_ONCE(onramp_real.set_ns) ? stamp_ns : now_ns;
}

static u32 onramp_napi_id(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	if (skb->napi_id >= MIN_NAPI_ID)
		return skb->napi_id;
#endif
	return 0;
}

/* How long an ACK has waited in this host, for the processor or for the program that holds
 * its socket: by the NIC's stamp, else the driver's, else 0.
 */
static u32 onramp_waited_ns(const struct sk_buff *skb, u64 now_ns)
{
	u64 hardware_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	u64 driver_ns = ktime_to_ns(skb_tstamp(skb));
	u32 napi_id = onramp_napi_id(skb), ns_per_byte_q16;
	u64 arrived_ns = now_ns;

	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		hardware_ns = timely_nic_stamp(skb, napi_id);
	if (!hardware_ns || timely_nic_arrival(napi_id, hardware_ns, now_ns, &arrived_ns,
					       &ns_per_byte_q16) != TIMELY_STAMP_GOOD)
		arrived_ns = driver_ns ? onramp_driver_ns(driver_ns, now_ns) : now_ns;
	/* An arrival that is yet to come is a large number here. */
	return now_ns - arrived_ns <= ONRAMP_WAITED_MAX_NS ? now_ns - arrived_ns : 0;
}

/* What an ACK says of its connection's path. */
static void onramp_acked(struct sock *sk, const struct sk_buff *skb, u32 ack)
{
	struct onramp_news news = { .now_ns = ktime_get_ns(), .seq = ack - 1 };
	struct timely_onramp *onramp;
	struct timely_tuple tuple;

	timely_onramp_count(sock_net(sk), TIMELY_ONRAMP_rtt_lookups);
	onramp_tuple(&tuple, sk);
	rcu_read_lock();
	onramp = timely_onramp_lookup(&tuple);
	if (onramp && READ_ONCE(onramp->flow->waiter) &&
	    timely_onramp_departure(onramp, false, &news) == TIMELY_ONRAMP_accepted) {
		/* As at a receiver, what passes between arrival and processing is not the
		 * path's.
		 */
		news.turnaround_ns = onramp_waited_ns(skb, news.now_ns);
		if (timely_onramp_hear(onramp->flow, &news) == TIMELY_ONRAMP_accepted)
			timely_onramp_count(sock_net(sk), TIMELY_ONRAMP_rtts);
	}
	rcu_read_unlock();
}

/* A packet of an established connection, of any network namespace, is about to be processed.
 * Of ACKs that waited while a program held the socket TCP makes one where it can: the number
 * of the last is in the control block, not in the header, and the stamps are the last one's.
 */
static void onramp_probe(void *unused, struct sock *sk, TIMELY_PROBE_CONST struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 ack;

	if (!READ_ONCE(onramp_net(sock_net(sk))->rtt_users))
		return;
	ack = TCP_SKB_CB(skb)->ack_seq;
	if (!(TCP_SKB_CB(skb)->tcp_flags & TCPHDR_ACK) || !after(ack, tp->snd_una) ||
	    after(ack, tp->snd_nxt) || onramp_ack_delayed(tp, ack))
		return;
	onramp_acked(sk, skb, ack);
}

/* Qdiscs of all network namespaces that want RTTs. */
static atomic_t onramp_probe_users = ATOMIC_INIT(0);
/* Guards what follows. Nobody takes it under RTNL. */
static DEFINE_MUTEX(onramp_probe_lock);
/* The tracepoint that is joined, or NULL. */
static struct tracepoint *onramp_tracepoint;

/* Without memory for the probe the work runs again after a second. */
#define ONRAMP_PROBE_RETRY	HZ

static int onramp_probe_join(void)
{
	struct tracepoint *tracepoint = timely_tracepoint_find("tcp_probe");
	int err;

	check_trace_callback_type_tcp_probe(onramp_probe);
	if (!tracepoint)
		return -ENOENT;
	err = tracepoint_probe_register(tracepoint, onramp_probe, NULL);
	if (err) {
		pr_err_ratelimited("timely: On-Ramp cannot join the tracepoint tcp_probe (error %d): owd rtt holds no flow until it can\n",
				   err);
		return err;
	}
	net_enable_timestamp();
	onramp_tracepoint = tracepoint;
	return 0;
}

static void onramp_probe_leave(void)
{
	if (!onramp_tracepoint)
		return;
	tracepoint_probe_unregister(onramp_tracepoint, onramp_probe, NULL);
	tracepoint_synchronize_unregister();
	net_disable_timestamp();
	onramp_tracepoint = NULL;
}

/* To join and to leave may patch the kernel's text and wait for a grace period: work, as
 * qdiscs come and go under RTNL.
 */
static void onramp_probe_work(struct work_struct *work);

/* The first user does not wait until the last one's leaving is due. */
static DECLARE_WORK(onramp_probe_soon, onramp_probe_work);
static DECLARE_DELAYED_WORK(onramp_probe_later, onramp_probe_work);

static void onramp_probe_work(struct work_struct *work)
{
	bool wanted;

	mutex_lock(&onramp_probe_lock);
	wanted = atomic_read(&onramp_probe_users);
	if (wanted && !onramp_tracepoint && onramp_probe_join() == -ENOMEM)
		mod_delayed_work(system_wq, &onramp_probe_later, ONRAMP_PROBE_RETRY);
	else if (!wanted)
		onramp_probe_leave();
	mutex_unlock(&onramp_probe_lock);
}

/**
 * timely_onramp_rtt_join() - a qdisc wants RTTs
 * @net: network namespace of its device
 * @on: On-Ramp in that namespace
 *
 * Return: 0, or as timely_onramp_join().
 */
int timely_onramp_rtt_join(const struct net *net, struct onramp_net *on)
{
	if (!timely_may_affect_host(net))
		return -EPERM;
	/* Probes run with preemption disabled, where PREEMPT_RT's spinlocks must not be taken. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !timely_tracepoint_find("tcp_probe"))
		return -EOPNOTSUPP;
	mutex_lock(&on->lock);
	WRITE_ONCE(on->rtt_users, on->rtt_users + 1);
	mutex_unlock(&on->lock);
	atomic_inc(&onramp_probe_users);
	schedule_work(&onramp_probe_soon);
	return 0;
}

/**
 * timely_onramp_rtt_leave() - a qdisc does not want RTTs any more
 * @on: as for timely_onramp_rtt_join()
 */
void timely_onramp_rtt_leave(struct onramp_net *on)
{
	mutex_lock(&on->lock);
	WRITE_ONCE(on->rtt_users, on->rtt_users - 1);
	mutex_unlock(&on->lock);
	if (atomic_dec_and_test(&onramp_probe_users))
		schedule_delayed_work(&onramp_probe_later, ONRAMP_PROBE_LINGER);
}

/** timely_onramp_rtt_exit() - leave the tracepoint: all qdiscs have gone */
void timely_onramp_rtt_exit(void)
{
	cancel_work_sync(&onramp_probe_soon);
	cancel_delayed_work_sync(&onramp_probe_later);
	onramp_probe_leave();
}
