// SPDX-License-Identifier: GPL-2.0
/*
 * Sending OR-ACKs: timely_acker.c puts them into the ring of a CPU. The CPU's tasklet takes them
 * out of the ring, builds UDP packets and passes these to IP.
 *
 * The packets are built without a socket. Each OR-ACK has the data's destination address as its
 * source address, and a ring has OR-ACKs of all namespaces; a socket is bound to one namespace.
 */

#include <linux/interrupt.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/sock.h>
#include <net/udp.h>

#include <net/timely_onramp.h>
#include <uapi/linux/timely.h>
#include <timely/engine/orack.h>

#include "timely_acker.h"

/* Maximum number of OR-ACKs that a tasklet sends in one run, before other softirqs run. A NAPI poll
 * handles as many packets.
 */
#define ACKER_BATCH		64

/* Build and sign an OR-ACK with its UDP header, with headroom for @ip_bytes of IP header. The
 * packet takes over the caller's reference to @dst. Return: NULL if there is no memory, or if a key
 * is needed and none is set; the caller keeps the reference to @dst then.
 */
static struct sk_buff *acker_build(struct net *net, struct acker_answer *answer,
				   struct dst_entry *dst, u32 ip_bytes)
{
	u32 headroom = LL_RESERVED_SPACE(dst->dev) + dst->header_len + ip_bytes +
		       sizeof(struct udphdr);
	u32 tailroom = dst->dev->needed_tailroom + dst->trailer_len;
	struct timely_orack *orack = &answer->orack;
	struct sk_buff *skb;
	struct udphdr *uh;

	skb = alloc_skb(headroom + TIMELY_ORACK_BYTES + tailroom, GFP_ATOMIC);
	if (!skb)
		return NULL;
	skb_reserve(skb, headroom);
	orack->turnaround_ns = min_t(u64, ktime_get_ns() - answer->arrived_ns, U32_MAX);
	if (!timely_onramp_sign(net, orack, skb_put(skb, TIMELY_ORACK_BYTES))) {
		kfree_skb(skb);
		return NULL;
	}
	uh = skb_push(skb, sizeof(*uh));
	skb_reset_transport_header(skb);
	uh->source = htons(timely_onramp_port());
	uh->dest = uh->source;
	uh->len = htons(skb->len);
	uh->check = 0;
	skb->priority = answer->priority;
	/* With a hash, a qdisc need not parse the headers. All OR-ACKs to a peer are one flow. */
	skb_set_hash(skb, jhash2((__force const u32 *)orack->tuple.saddr, 4, timely_acker_seed),
		     PKT_HASH_TYPE_L4);
	skb_dst_set(skb, dst);
	return skb;
}

static int acker_send4(struct net *net, struct acker_answer *answer)
{
	const struct timely_tuple *tuple = &answer->orack.tuple;
	__be16 port = htons(timely_onramp_port());
	struct flowi4 fl4 = {};
	struct sk_buff *skb;
	struct rtable *rt;
	struct iphdr *ip;

	flowi4_init_output(&fl4, answer->oif, 0, answer->tos, RT_SCOPE_UNIVERSE,
			   IPPROTO_UDP, 0, tuple->saddr[0], tuple->daddr[0],
			   port, port, sock_net_uid(net, NULL));
	rt = ip_route_output_flow(net, &fl4, NULL);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	/* Only the route shows that the data's source address is the broadcast address of a subnet:
	 * do not answer then.
	 */
	skb = rt->rt_flags & (RTCF_BROADCAST | RTCF_MULTICAST) ? NULL :
		acker_build(net, answer, &rt->dst, sizeof(*ip));
	if (!skb) {
		ip_rt_put(rt);
		return -ENOBUFS;
	}
	udp_set_csum(false, skb, tuple->daddr[0], tuple->saddr[0], skb->len);
	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	*ip = (struct iphdr) {
		.version = 4,
		.ihl = 5,
		.tos = answer->tos | answer->ecn,
		.frag_off = htons(IP_DF),
		.ttl = ip4_dst_hoplimit(&rt->dst),
		.protocol = IPPROTO_UDP,
		.saddr = tuple->daddr[0],
		.daddr = tuple->saddr[0],
	};
	return ip_local_out(net, NULL, skb);
}

#if IS_ENABLED(CONFIG_IPV6)
static int acker_send6(struct net *net, struct acker_answer *answer)
{
	const struct timely_tuple *tuple = &answer->orack.tuple;
	__be16 port = htons(timely_onramp_port());
	struct flowi6 fl6 = {
		.flowi6_oif = answer->oif,
		.flowi6_proto = IPPROTO_UDP,
		.flowi6_uid = sock_net_uid(net, NULL),
		.flowlabel = ip6_make_flowinfo(answer->tos, 0),
		.fl6_sport = port,
		.fl6_dport = port,
	};
	struct dst_entry *dst;
	struct ipv6hdr *ip;
	struct sk_buff *skb;

	memcpy(&fl6.daddr, tuple->saddr, sizeof(fl6.daddr));
	memcpy(&fl6.saddr, tuple->daddr, sizeof(fl6.saddr));
	dst = ip6_dst_lookup_flow(net, NULL, &fl6, NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	skb = acker_build(net, answer, dst, sizeof(*ip));
	if (!skb) {
		dst_release(dst);
		return -ENOBUFS;
	}
	udp6_set_csum(false, skb, &fl6.saddr, &fl6.daddr, skb->len);
	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	ip6_flow_hdr(ip, answer->tos | answer->ecn, 0);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = ip6_dst_hoplimit(dst);
	ip->saddr = fl6.saddr;
	ip->daddr = fl6.daddr;
	return ip6_local_out(net, NULL, skb);
}
#else
static int acker_send6(struct net *net, struct acker_answer *answer)
{
	return -EAFNOSUPPORT;
}
#endif

/* Send an OR-ACK, unless the configuration of its namespace was removed. The pointer to the
 * namespace is valid: timely_acker_forget() clears the pointers to a namespace that exits.
 */
static void acker_send(struct acker_answer *answer)
{
	struct net *net = (struct net *)(unsigned long)answer->orack.tuple.net;
	struct acker_net *an;
	int err;

	if (!net)
		return;
	rcu_read_lock();
	an = net_generic(net, timely_acker_net_id);
	if (rcu_access_pointer(an->config)) {
		err = answer->orack.tuple.family == AF_INET ? acker_send4(net, answer) :
							      acker_send6(net, answer);
		timely_onramp_count(net, err ? TIMELY_ONRAMP_send_errors :
					       TIMELY_ONRAMP_sent);
	}
	rcu_read_unlock();
}

/**
 * timely_acker_send_all() - send up to ACKER_BATCH OR-ACKs of a CPU's ring
 * @tasklet: member of the CPU's struct acker_cpu
 *
 * If OR-ACKs are left, the tasklet is scheduled again.
 *
 * Context: softirq.
 */
void timely_acker_send_all(struct tasklet_struct *tasklet)
{
	struct acker_cpu *cpu = from_tasklet(cpu, tasklet, tasklet);
	u32 tail = cpu->tail;
	int left = ACKER_BATCH;

	/* The CPU of the ring went offline, so the tasklet runs on another CPU. The ring's CPU may
	 * be online again and write to the ring now. So discard the ring's OR-ACKs; On-Ramp
	 * tolerates lost OR-ACKs.
	 */
	if (unlikely(cpu != __this_cpu_read(timely_acker_cpus))) {
		/* Pairs with smp_load_acquire() in acker_push(), which may overwrite entries. */
		smp_store_release(&cpu->tail, acker_head(cpu));
		return;
	}
	while (left-- && tail != acker_head(cpu)) {
		/* Send a copy: sending may reach a tracepoint, whose probe overwrites the entry. */
		struct acker_answer answer = cpu->ring[tail % ACKER_RING];

		/* Pairs with smp_load_acquire() in acker_push(), which may overwrite this entry. */
		smp_store_release(&cpu->tail, ++tail);
		acker_send(&answer);
	}
	if (tail != READ_ONCE(cpu->head))
		tasklet_schedule(tasklet);
}
