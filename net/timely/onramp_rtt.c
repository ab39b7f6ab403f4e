// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp without a receiver (the qdisc's option "owd rtt"): RTTs of TCP connections take the place
 * of OR-ACKs. The delay is the excess of the RTT over its minimum. This file gets signals from ACKs
 * at the tracepoint tcp_probe and passes the signals to onramp_flow.c.
 *
 * Why there is no better hook: the kernel has no hook for ACKs of connections with other congestion
 * controls. The tracepoint tcp_probe is raised for each packet of an established connection.
 *
 * What the hook relies on: TCP raises the tracepoint before it updates the connection's state with
 * the ACK, and the members of tcp_skb_cb are set.
 *
 * How a change of the kernel would be noticed: if the tracepoint has other arguments, this file
 * does not compile (check_trace_callback_type_tcp_probe()); without the tracepoint, the qdisc
 * refuses "owd rtt".
 *
 * The tracepoint probe is called for packets of all network namespaces and costs time in each, so
 * only a user who may affect the host can use "owd rtt": see timely_may_affect_host().
 */

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <net/busy_poll.h>
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

/* The tracepoint probe stays registered for this long (5 s, in jiffies) after its last user. The
 * kernel patches its code to switch a tracepoint; a user who switches On-Ramp on and off in a loop
 * must not cause this each time.
 */
#define ONRAMP_PROBE_LINGER	(5 * HZ)

/* If a timestamp says that an ACK waited longer than this in this host, the timestamp is taken for
 * wrong and ignored.
 */
#define ONRAMP_WAITED_MAX_NS	NSEC_PER_SEC

/* Whether the receiver may have delayed the ACK: the ACK acknowledges all data in flight, and these
 * data fit one packet. The RTT would contain the delayed-ACK timer, which looks like a queue.
 */
static bool onramp_ack_delayed(const struct tcp_sock *tp, u32 ack)
{
	return ack == tp->snd_nxt && ack - tp->snd_una <= tp->mss_cache;
}

/* @offset_ns is CLOCK_REALTIME minus CLOCK_MONOTONIC when onramp_driver_ns() was last called.
 * @set_ns is when a change of this difference was last noticed, CLOCK_MONOTONIC.
 */
static struct {
	u64 offset_ns;
	u64 set_ns;
} onramp_real;

/* Convert a driver timestamp to CLOCK_MONOTONIC. A timestamp from before the last change of the
 * real-time clock cannot be converted. Return: the time; @now_ns for such a timestamp.
 */
static u64 onramp_driver_ns(u64 timestamp_ns, u64 now_ns)
{
	u64 offset_ns = ktime_to_ns(ktime_mono_to_real(0));

	if (unlikely(READ_ONCE(onramp_real.offset_ns) != offset_ns)) {
		WRITE_ONCE(onramp_real.offset_ns, offset_ns);
		WRITE_ONCE(onramp_real.set_ns, now_ns);
	}
	timestamp_ns -= offset_ns;
	return timestamp_ns >= READ_ONCE(onramp_real.set_ns) ? timestamp_ns : now_ns;
}

static u32 onramp_napi_id(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	if (skb->napi_id >= MIN_NAPI_ID)
		return skb->napi_id;
#endif
	return 0;
}

/* Get how long an ACK waited in this host, for a CPU or for a program that had locked the socket.
 * The arrival is the hardware timestamp, or else the driver timestamp. Return: ns; 0 if not known.
 */
static u32 onramp_waited_ns(const struct sk_buff *skb, u64 now_ns)
{
	u64 hardware_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	u64 driver_ns = ktime_to_ns(skb_tstamp(skb));
	u32 napi_id = onramp_napi_id(skb), ns_per_byte_q16;
	u64 arrived_ns = now_ns;

	/* With this flag, hwtstamps has data that the driver converts to a timestamp on request. */
	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		hardware_ns = timely_nic_timestamp(skb, napi_id);
	if (!hardware_ns || timely_nic_arrival(napi_id, hardware_ns, now_ns, &arrived_ns,
					       &ns_per_byte_q16) != TIMELY_TSTAMP_GOOD)
		arrived_ns = driver_ns ? onramp_driver_ns(driver_ns, now_ns) : now_ns;
	/* A time of arrival in the future becomes a large number here. */
	return now_ns - arrived_ns <= ONRAMP_WAITED_MAX_NS ? now_ns - arrived_ns : 0;
}

/* Pass the RTT that ends with an ACK to On-Ramp. @ack is the acknowledgment number. */
static void onramp_acked(struct sock *sk, const struct sk_buff *skb, u32 ack)
{
	struct onramp_sample sample = { .now_ns = ktime_get_ns(), .seq = ack - 1 };
	struct timely_onramp *onramp;
	struct timely_tuple tuple;

	timely_onramp_count(sock_net(sk), TIMELY_ONRAMP_rtt_lookups);
	timely_flow_tuple(&tuple, sk);
	rcu_read_lock();
	onramp = timely_onramp_lookup(&tuple);
	if (onramp && READ_ONCE(onramp->flow->notifier) &&
	    timely_onramp_departure(onramp, false, &sample) == TIMELY_ONRAMP_accepted) {
		/* The time that the ACK waited in this host is not delay of the path. This time is
		 * passed on as the turnaround, which for OR-ACKs is the time from packet to OR-ACK
		 * at the receiver.
		 */
		sample.turnaround_ns = onramp_waited_ns(skb, sample.now_ns);
		if (timely_onramp_signal(onramp->flow, &sample) == TIMELY_ONRAMP_accepted)
			timely_onramp_count(sock_net(sk), TIMELY_ONRAMP_rtts);
	}
	rcu_read_unlock();
}

/* The tracepoint probe: called before TCP processes a packet of an established connection, in any
 * network namespace. TCP merges ACKs that arrive while a program has locked the socket. The packet
 * then has the timestamps of the last ACK, and the control block (not the header) has the last
 * ACK's number.
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

/* Number of qdiscs with "owd rtt" in all network namespaces. */
static atomic_t onramp_probe_users = ATOMIC_INIT(0);
/* Guards onramp_tracepoint. This mutex is never taken under RTNL. */
static DEFINE_MUTEX(onramp_probe_lock);
/* The tracepoint that onramp_probe() is registered at; NULL if not registered. */
static struct tracepoint *onramp_tracepoint;

/* If there was no memory to register the tracepoint probe, onramp_probe_work() tries again after
 * this time (1 s, in jiffies).
 */
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
		pr_err_ratelimited("timely: On-Ramp cannot join the tracepoint tcp_probe (error %d): qdiscs with owd rtt pause no flow meanwhile; if this repeats, use owd relative\n",
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

/* Register the tracepoint probe if there are users, else unregister it. This may patch the kernel's
 * code and wait for an RCU grace period, which would take too long under RTNL, where qdiscs are
 * added and removed. So the workqueue calls this function.
 */
static void onramp_probe_work(struct work_struct *work);

/* onramp_probe_work() runs at once for a new user, and delayed after the last user. There are two
 * work items, so that a new user need not wait until the delay has passed.
 */
static DECLARE_WORK(onramp_probe_soon, onramp_probe_work);
static DECLARE_DELAYED_WORK(onramp_probe_later, onramp_probe_work);

static void onramp_probe_work(struct work_struct *work)
{
	bool wanted;

	mutex_lock(&onramp_probe_lock);
	wanted = atomic_read(&onramp_probe_users);
	if (wanted && !onramp_tracepoint && onramp_probe_join() == -ENOMEM)
		mod_delayed_work(system_power_efficient_wq, &onramp_probe_later,
				 ONRAMP_PROBE_RETRY);
	else if (!wanted)
		onramp_probe_leave();
	mutex_unlock(&onramp_probe_lock);
}

/**
 * timely_onramp_rtt_join() - start RTTs for a qdisc with "owd rtt"
 * @net: network namespace of the qdisc's device
 * @on: On-Ramp's state of the namespace
 *
 * RTTs arrive some time after the call, when the workqueue has registered the tracepoint probe.
 *
 * Return: 0; or -EPERM or -EOPNOTSUPP for the reasons that timely_onramp_join() lists.
 */
int timely_onramp_rtt_join(const struct net *net, struct onramp_net *on)
{
	if (!timely_may_affect_host(net))
		return -EPERM;
	/* Before Linux 7, tracepoint probes run with preemption disabled, where PREEMPT_RT allows
	 * no spinlocks.
	 */
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
 * timely_onramp_rtt_leave() - undo timely_onramp_rtt_join() for a qdisc
 * @on: On-Ramp's state of the network namespace of the qdisc's device
 *
 * After the last qdisc of the host, the tracepoint probe stays registered for ONRAMP_PROBE_LINGER.
 */
void timely_onramp_rtt_leave(struct onramp_net *on)
{
	mutex_lock(&on->lock);
	/* A qdisc may be destroyed just after its device has moved to this namespace. */
	if (on->rtt_users)
		WRITE_ONCE(on->rtt_users, on->rtt_users - 1);
	mutex_unlock(&on->lock);
	if (atomic_dec_and_test(&onramp_probe_users))
		schedule_delayed_work(&onramp_probe_later, ONRAMP_PROBE_LINGER);
}

/**
 * timely_onramp_rtt_exit() - unregister the tracepoint probe when the module is unloaded
 *
 * Before the call, every qdisc has called timely_onramp_rtt_leave().
 */
void timely_onramp_rtt_exit(void)
{
	cancel_work_sync(&onramp_probe_soon);
	cancel_delayed_work_sync(&onramp_probe_later);
	onramp_probe_leave();
}
