// SPDX-License-Identifier: GPL-2.0
/*
 * The hook of tcp_timely on incoming packets. A probe of the tracepoint tcp_probe copies the
 * timestamps and the IPv4 ID of the packet (the skb) of each ACK into the state of the connection,
 * where tcp_timely.c finds them, and counts the bytes that connections receive.
 *
 * Why there is no better hook: the operations of a congestion control get the socket and a rate
 * sample, but never the packet. Only the packet has the hardware timestamp, the driver timestamp
 * and the NAPI instance. tcp_probe is the only exported point on the path of an ACK that has the
 * socket and the packet.
 *
 * What the hook relies on: TCP raises tcp_probe in tcp_rcv_established() before it processes the
 * packet, with the socket lock held, and on the CPU that processes the ACK. A socket's icsk_ca_ops
 * points into the array timely_ops if, and only if, the socket uses a congestion control of this
 * module.
 *
 * How a change of the kernel would be noticed:
 *  - Another prototype of tcp_probe fails to compile (compat-include/timely_probe.h).
 *  - A kernel without the tracepoint is reported when the module is loaded. RTTs then end when TCP
 *    processes the ACK.
 *  - A tracepoint that is raised elsewhere makes the selftest hw_rtt fail, which compares RTTs with
 *    the logs of the test NICs.
 */

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/skbuff.h>
#include <linux/tracepoint.h>
#include <net/busy_poll.h>
#include <net/tcp.h>

#include <net/timely_flow.h>
#include <net/timely_nic.h>
#include <net/timely_tracepoint.h>
#include <trace/events/tcp.h>

#include <timely_probe.h>

#include "tcp_timely.h"

static struct tracepoint *timely_tracepoint;

/* The NAPI instance that received the packet; 0 if not known. */
static u32 timely_napi_id(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* Numbers below MIN_NAPI_ID are not NAPI IDs, but the CPU that sent the packet. */
	if (skb->napi_id >= MIN_NAPI_ID)
		return skb->napi_id;
#endif
	return 0;
}

/* The IPv4 ID of a pure ACK, which may be its time; TIMELY_ACK_NO_ID for other packets. ACKs that
 * TCP has merged in the socket's backlog have the ID of the first and the arrival of the last.
 */
static u32 timely_ack_id(const struct sk_buff *skb)
{
	if (skb->len > tcp_hdrlen(skb) || skb->protocol != htons(ETH_P_IP) ||
	    skb_shinfo(skb)->gso_segs > 1)
		return TIMELY_ACK_NO_ID;
	return ntohs(ip_hdr(skb)->id);
}

/* Copy the timestamps and the ID of a packet to the state of its connection. TCP raises the
 * tracepoint before it processes a packet of an established connection, whatever the congestion
 * control is.
 */
static void timely_probe(void *unused, struct sock *sk, TIMELY_PROBE_CONST struct sk_buff *skb)
{
	struct timely_sock *ts;

	if (!timely_is_ours(inet_csk(sk)->icsk_ca_ops))
		return;
	ts = inet_csk_ca(sk);
	if (ts->flow)
		timely_flow_prefetch(ts->flow, ts->departure, ts->path);
	if (ts->path) {
		ts->flow->path.ack_id = timely_ack_id(skb);
		if (skb->len > tcp_hdrlen(skb))
			timely_count_received(sk, skb->len);
	}
	ts->dsfield = TCP_SKB_CB(skb)->ip_dsfield;
	ts->napi_id = timely_napi_id(skb);
	ts->driver_ns = ktime_to_ns(skb_tstamp(skb));
	ts->hardware_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	/* With this flag, hwtstamps has data that only the driver can convert to a timestamp. */
	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		ts->hardware_ns = timely_nic_timestamp(skb, ts->napi_id);
}

/* Register the tracepoint probe. Return: 0 or a negative error code.
 *
 * A kernel without the tracepoint is accepted: RTTs then end when TCP processes the ACK. If the
 * registration fails, mostly for lack of memory, the module is not loaded: without the tracepoint
 * probe, the module would measure worse RTTs until it is loaded again.
 */
int timely_hooks_join(void)
{
	int err;

	check_trace_callback_type_tcp_probe(timely_probe);
	timely_tracepoint = timely_tracepoint_find("tcp_probe");
	if (!timely_tracepoint) {
		pr_warn("tcp_timely: this kernel has no tracepoint tcp_probe: RTTs end when TCP processes the ACK\n");
		return 0;
	}
	err = tracepoint_probe_register(timely_tracepoint, timely_probe, NULL);
	if (err) {
		timely_tracepoint = NULL;
		pr_err("tcp_timely: cannot attach to the tracepoint tcp_probe (error %d): module not loaded, try again\n",
		       err);
	}
	return err;
}

/* Unregister the tracepoint probe, and wait until no CPU runs it. */
void timely_hooks_leave(void)
{
	if (!timely_tracepoint)
		return;
	tracepoint_probe_unregister(timely_tracepoint, timely_probe, NULL);
	tracepoint_synchronize_unregister();
}
