/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The environment of the qdisc's tests: a device that is never registered, sockets that are only
 * memory, packets with counted payload, a clock that the test sets, memory allocations that fail on
 * request, and an audit of all counters of the qdisc. For qdisc_kunit.c, which includes the source
 * of the qdisc after the replacements below.
 */
#ifndef _KUNIT_QDISC_BENCH_H
#define _KUNIT_QDISC_BENCH_H

#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/hash.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/prandom.h>
#include <linux/prefetch.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/workqueue.h>
#include <net/dsfield.h>
#include <net/gso.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/inet_ecn.h>
#include <net/ip6_checksum.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sock.h>
#include <net/tcp.h>

#include <net/timely_flow.h>
#include <net/timely_peer.h>
#include <net/timely_qdisc.h>
#include <net/timely_tenant.h>
#include <timely_unaligned.h>
#include <uapi/linux/timely.h>
#include <timely/engine/wheel.h>

#define US		1000ULL
#define MS		1000000ULL
#define SECOND		1000000000ULL
#define START_NS	(1000 * SECOND)
#define BENCH_SOCKS	8
#define OPTION_BYTES	2048
/* Length of TCP's header with timestamps. */
#define TCP_BYTES	32

/**
 * struct bench - state of a test; one test runs at a time
 * @now_ns: the qdisc's clock
 * @armed_ns: when the qdisc's timer expires; U64_MAX if it is not set
 * @woken: how often the qdisc was scheduled
 * @reap: how often the qdisc asked for a search for idle flows
 * @asked: number of operations that may fail
 * @fail_at: which of these operations fails; 0 for none
 * @no_pages: all allocations of pages for the table fail
 * @hurried: number of allocations that must not sleep
 * @between: called once, after the qdisc has read a rate and before it uses the rate
 * @no_budget: the namespace has no budget for queues left
 * @attrs: options of the next qdisc, or NULL
 * @other: a packet that shares its data with a packet that is split
 * @other_size: gso_size of @other meanwhile
 * @charged: packets that are charged to a socket
 * @mark: mark of the last packet
 * @made_bytes: payload of all packets
 * @sent_bytes: payload of packets that left
 * @dropped_bytes: payload of packets that enqueue returned
 * @dropped: packets that enqueue returned
 * @page: the page with all payload: its references are the packets that exist
 * @dev: the device
 * @sch: the qdisc
 * @q: private data of the qdisc
 * @second: another qdisc; bench_swap() exchanges both
 * @sk: sockets
 * @entry: flow entries of the sockets
 */
static struct bench {
	u64 now_ns;
	u64 armed_ns;
	u32 woken;
	u32 reap;
	u32 asked;
	u32 fail_at;
	bool no_pages;
	u32 hurried;
	void (*between)(void);
	bool no_budget;
	struct nlattr *attrs;
	struct sk_buff *other;
	u32 other_size;
	u32 charged;
	u32 mark;
	u64 made_bytes;
	u64 sent_bytes;
	u64 dropped_bytes;
	u32 dropped;
	struct page *page;
	struct net_device *dev;
	struct Qdisc *sch;
	struct tq_sched *q;
	struct Qdisc *second;
	struct sock *sk[BENCH_SOCKS];
	struct timely_flow *entry[BENCH_SOCKS];
} bench;

/* ---- replaced functions of the kernel ---- */

static bool bench_fails(void)
{
	return ++bench.asked == bench.fail_at;
}

static void bench_arm(u64 at_ns)
{
	bench.armed_ns = at_ns;
}

static void bench_reap_soon(void)
{
	bench.reap++;
}

static void bench_wake(struct Qdisc *root)
{
	bench.woken++;
}

static u64 bench_scale(u64 a, u32 mul, unsigned int shift)
{
	void (*between)(void) = bench.between;

	bench.between = NULL;
	if (between)
		between();
	return mul_u64_u32_shr(a, mul, shift);
}

static gfp_t bench_gfp(gfp_t flags)
{
	bench.hurried += !gfpflags_allow_blocking(flags);
	return flags;
}

/* The kernel charges sub-segments to the socket if they have TCP's destructor, and the last one
 * takes over the packet's charge. Here they are charged in the same way.
 */
static struct sk_buff *bench_gso_segment(struct sk_buff *skb, netdev_features_t features,
					 bool tx_path)
{
	struct sk_buff *subsegs, *subseg;

	if (bench_fails())
		return ERR_PTR(-ENOMEM);
	if (bench.other)
		bench.other_size = skb_shinfo(bench.other)->gso_size;
	subsegs = __skb_gso_segment(skb, features, tx_path);
	if (IS_ERR_OR_NULL(subsegs) || !skb->sk)
		return subsegs;
	for (subseg = subsegs; subseg; subseg = subseg->next) {
		subseg->sk = skb->sk;
		subseg->destructor = skb->destructor;
		bench.charged += !!subseg->next;
	}
	skb->sk = NULL;
	skb->destructor = NULL;
	return subsegs;
}

#define TIMELY_CLOCK_NS()	bench.now_ns

#undef kmem_cache_zalloc
#define kmem_cache_zalloc(cache, flags) \
	(bench_fails() ? NULL : kmem_cache_alloc(cache, (flags) | __GFP_ZERO))
#undef kvzalloc_node
#define kvzalloc_node(size, flags, node) \
	(bench_fails() ? NULL : kvmalloc_node(size, (flags) | __GFP_ZERO, node))
#undef kvcalloc
#define kvcalloc(n, size, flags) \
	(bench_fails() ? NULL : kvmalloc_array(n, size, (flags) | __GFP_ZERO))
#undef kzalloc
#define kzalloc(size, flags) \
	(bench_fails() || bench.no_pages ? NULL : kmalloc(size, bench_gfp(flags) | __GFP_ZERO))
#define mul_u64_u32_shr(a, mul, shift)	bench_scale(a, mul, shift)
#define timely_budget_take(net, kind) \
	(bench.no_budget ? NULL : timely_budget_take(net, kind))
#define skb_unclone(skb, flags) \
	(bench_fails() ? -ENOMEM : skb_unclone(skb, flags))
#define skb_ensure_writable(skb, bytes) \
	(bench_fails() ? -ENOMEM : skb_ensure_writable(skb, bytes))
#define __skb_gso_segment	bench_gso_segment
#define qdisc_watchdog_schedule_range_ns(watchdog, at, slack) bench_arm(at)
#define qdisc_watchdog_cancel(watchdog)	bench_arm(U64_MAX)
#define __netif_schedule(qdisc)	bench_wake(qdisc)
/* A test calls tq_reap() itself. */
#define queue_delayed_work(queue, work, delay)	bench_reap_soon()

/* The module's init and exit functions are not used. */
#undef __init
#define __init	__maybe_unused
#undef __exit
#define __exit	__maybe_unused
#undef module_init
#define module_init(function)
#undef module_exit
#define module_exit(function)
#undef MODULE_AUTHOR
#define MODULE_AUTHOR(text)
#undef MODULE_LICENSE
#define MODULE_LICENSE(text)
#undef MODULE_DESCRIPTION
#define MODULE_DESCRIPTION(text)
#undef MODULE_ALIAS
#define MODULE_ALIAS(text)

#include "../net/sched/sch_timely_packet.c"
#include "../net/sched/sch_timely_split.c"
#include "../net/sched/sch_timely_entry.c"
#include "../net/sched/sch_timely_table.c"
#include "../net/sched/sch_timely_flow.c"
#include "../net/sched/sch_timely_options.c"
#include "../net/sched/sch_timely.c"

/* ---- sockets ---- */

static struct tcp_congestion_ops bench_ops = { .name = "bench" };

/* A connection without a rate. The qdisc reads nothing beyond a TCP socket. */
static struct sock *bench_sock(u32 i, int type)
{
	struct sock *sk = bench.sk[i];

	sock_net_set(sk, &init_net);
	sk->sk_family = AF_INET;
	sk->sk_type = type;
	sk->sk_protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_hash = 1000 + i;
	sock_net_set(sk, &init_net);
	sk->sk_pacing_rate = ~0UL;
	sk->sk_max_pacing_rate = ~0UL;
	return sk;
}

static struct sock *bench_tcp(u32 i)
{
	return bench_sock(i, SOCK_STREAM);
}

/* A UDP socket. Its pacing limit is too high to delay packets, but with a limit packets do not take
 * the fast path and have a flow.
 */
static struct sock *bench_udp(u32 i)
{
	struct sock *sk = bench_sock(i, SOCK_DGRAM);

	sk->sk_max_pacing_rate = ~0UL - 1;
	return sk;
}

/* A connection whose congestion control has a flow entry. */
static struct sock *bench_recorded(struct kunit *test, u32 i, u64 rate_Bps)
{
	struct sock *sk = bench_tcp(i);

	inet_csk(sk)->icsk_ca_ops = &bench_ops;
	sk->sk_pacing_rate = rate_Bps;
	bench.entry[i] = timely_flow_open(sk);
	KUNIT_ASSERT_NOT_NULL(test, bench.entry[i]);
	return sk;
}

/* Set the rate as the congestion control does. */
static void bench_set_rate(u32 i, u64 rate_Bps)
{
	bench.sk[i]->sk_pacing_rate = rate_Bps;
	if (bench.entry[i])
		timely_flow_rate(bench.entry[i], rate_Bps);
}

/* ---- packets ---- */

/**
 * struct packet - properties of a packet to make
 * @sk: socket, or NULL
 * @tstamp: timestamp
 * @len: length with all headers; 0 for 1514; GSO packets are longer
 * @seq: sequence number
 * @ack_seq: number up to which data have arrived
 * @gso: payload bytes of a GSO packet; 0 for none
 * @mss: payload bytes of each segment of a GSO packet; 0 for 1448
 * @gso_type: further bits of the GSO type
 * @priority: skb priority
 * @hash: hash of the headers
 * @ip_id: ID of the IPv4 header
 * @tos: TOS or traffic class
 * @frag_off: fragment flags and offset of the IPv4 header; 0 for IP_DF
 * @flags: TCP flags instead of PSH and ACK, as in the fourteenth byte of the header
 * @tlv: type of an option in an IPv6 hop-by-hop header; 0 for no such header
 * @real: the timestamp is of CLOCK_REALTIME, not of CLOCK_MONOTONIC
 * @tai: the timestamp is of CLOCK_TAI
 * @v6: IPv6
 * @udp: UDP
 * @ack: a pure ACK
 * @stamped: the only TCP options are timestamps
 */
struct packet {
	struct sock *sk;
	u64 tstamp;
	u32 len;
	u32 seq;
	u32 ack_seq;
	u32 gso;
	u32 mss;
	u32 gso_type;
	u32 priority;
	u32 hash;
	u16 ip_id;
	u16 frag_off;
	u8 flags;
	u8 tlv;
	u8 tos;
	bool real;
	bool tai;
	bool v6;
	bool udp;
	bool ack;
	bool stamped;
};

static u32 bench_transport_bytes(bool udp)
{
	return udp ? sizeof(struct udphdr) : TCP_BYTES;
}

static bool bench_is_udp(const struct sk_buff *skb)
{
	return skb->csum_offset == offsetof(struct udphdr, check);
}

static u8 bench_byte(u32 offset)
{
	return (u8)(offset % PAGE_SIZE % 251);
}

static void bench_wfree(struct sk_buff *skb)
{
	bench.charged--;
}

/* The four bytes of the jumbo payload option are the length of all data after the IPv6 header. */
static void bench_put_hop_by_hop(struct sk_buff *skb, const struct packet *p, u8 protocol,
				 u32 bytes)
{
	u8 *hop = skb_put_zero(skb, 8);

	ipv6_hdr(skb)->nexthdr = IPPROTO_HOPOPTS;
	hop[0] = protocol;
	hop[2] = p->tlv;
	hop[3] = 4;
	if (p->tlv == IPV6_TLV_JUMBO)
		put_unaligned_be32(bytes + 8, hop + 4);
}

static void bench_put_ip(struct sk_buff *skb, const struct packet *p, u32 payload)
{
	u32 bytes = bench_transport_bytes(p->udp) + payload;
	u8 protocol = p->udp ? IPPROTO_UDP : IPPROTO_TCP;
	struct ipv6hdr *ip6;
	struct iphdr *ip;

	if (p->v6) {
		ip6 = skb_put_zero(skb, sizeof(*ip6));
		ip6->version = 6;
		ip6->payload_len = p->tlv == IPV6_TLV_JUMBO ? 0 : htons(bytes + (p->tlv ? 8 : 0));
		ip6->nexthdr = protocol;
		ip6->hop_limit = 64;
		ip6->saddr.s6_addr[15] = 1;
		ip6->daddr.s6_addr[15] = 2;
		ipv6_change_dsfield(ip6, 0, p->tos);
		skb->protocol = htons(ETH_P_IPV6);
		if (p->tlv)
			bench_put_hop_by_hop(skb, p, protocol, bytes);
		return;
	}
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = p->tos;
	ip->tot_len = htons(sizeof(*ip) + bytes);
	ip->id = htons(p->ip_id);
	ip->frag_off = htons(p->frag_off ? : IP_DF);
	ip->ttl = 64;
	ip->protocol = protocol;
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a000002);
	ip_send_check(ip);
	skb->protocol = htons(ETH_P_IP);
}

/* The checksum of the pseudo-header: the device computes the rest. */
static __sum16 bench_check(const struct sk_buff *skb, bool udp, u32 payload)
{
	u32 bytes = bench_transport_bytes(udp) + payload;
	u8 protocol = udp ? IPPROTO_UDP : IPPROTO_TCP;

	if (skb->protocol == htons(ETH_P_IPV6))
		return ~csum_ipv6_magic(&ipv6_hdr(skb)->saddr, &ipv6_hdr(skb)->daddr, bytes,
					protocol, 0);
	return ~csum_tcpudp_magic(ip_hdr(skb)->saddr, ip_hdr(skb)->daddr, bytes, protocol, 0);
}

static void bench_put_udp(struct sk_buff *skb, u32 payload)
{
	struct udphdr *uh = skb_put_zero(skb, sizeof(*uh));

	uh->source = htons(1);
	uh->dest = htons(2);
	uh->len = htons(sizeof(*uh) + payload);
	uh->check = bench_check(skb, true, payload);
	skb->csum_offset = offsetof(struct udphdr, check);
}

static void bench_put_tcp(struct sk_buff *skb, const struct packet *p, u32 payload)
{
	struct tcphdr *th = skb_put_zero(skb, TCP_BYTES);

	th->source = htons(1);
	th->dest = htons(2);
	th->seq = htonl(p->seq);
	th->ack_seq = htonl(p->ack_seq);
	th->doff = TCP_BYTES / 4;
	((u8 *)th)[13] = p->flags ? : TCPHDR_ACK | TCPHDR_PSH;
	memset(th + 1, TCPOPT_NOP, TCP_BYTES - sizeof(*th));
	if (p->stamped)
		put_unaligned_be16(TCPOPT_TIMESTAMP << 8 | TCPOLEN_TIMESTAMP, (u8 *)(th + 1) + 2);
	th->check = bench_check(skb, false, payload);
	skb->csum_offset = offsetof(struct tcphdr, check);
}

static void bench_put_payload(struct sk_buff *skb, u32 payload)
{
	u32 i, bytes;

	for (i = 0; payload; i++, payload -= bytes) {
		bytes = min_t(u32, payload, PAGE_SIZE);
		get_page(bench.page);
		skb_add_rx_frag(skb, i, bench.page, 0, bytes, bytes);
	}
}

static u32 bench_gso_type(const struct packet *p)
{
	if (p->udp)
		return SKB_GSO_UDP_L4;
	return (p->v6 ? SKB_GSO_TCPV6 : SKB_GSO_TCPV4) | p->gso_type;
}

static struct sk_buff *bench_packet(struct kunit *test, const struct packet *p)
{
	u32 ip_bytes = p->v6 ? sizeof(struct ipv6hdr) + (p->tlv ? 8 : 0) : sizeof(struct iphdr);
	u32 headers = ETH_HLEN + ip_bytes + bench_transport_bytes(p->udp);
	u32 payload = p->ack ? 0 : p->gso ? : (p->len ? : 1514) - headers;
	struct sk_buff *skb = alloc_skb_fclone(256, GFP_KERNEL);
	u32 segs = 1;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, 64);
	skb->dev = bench.dev;
	skb_reset_mac_header(skb);
	skb_put_zero(skb, ETH_HLEN);
	skb_set_network_header(skb, ETH_HLEN);
	bench_put_ip(skb, p, payload);
	eth_hdr(skb)->h_proto = skb->protocol;
	skb_reset_mac_len(skb);
	skb_set_transport_header(skb, ETH_HLEN + ip_bytes);
	if (p->udp)
		bench_put_udp(skb, payload);
	else
		bench_put_tcp(skb, p, payload);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	bench_put_payload(skb, payload);
	if (p->gso) {
		skb_shinfo(skb)->gso_size = p->mss ? : 1448;
		skb_shinfo(skb)->gso_type = bench_gso_type(p);
		segs = DIV_ROUND_UP(payload, skb_shinfo(skb)->gso_size);
		skb_shinfo(skb)->gso_segs = segs;
	}
	if (p->ack)
		skb_set_tcp_pure_ack(skb);
	if (p->sk) {
		skb->sk = p->sk;
		skb->destructor = bench_wfree;
		bench.charged++;
	}
	timely_set_tstamp_ns(skb, p->tstamp);
#ifdef HAVE_SKB_TSTAMP_TYPE
	if (p->real || p->tai)
		skb->tstamp_type = p->real ? SKB_CLOCK_REALTIME : SKB_CLOCK_TAI;
#endif
	skb->priority = p->priority;
	skb->mark = ++bench.mark;
	skb_set_hash(skb, p->hash, PKT_HASH_TYPE_L4);
	qdisc_skb_cb(skb)->pkt_len = skb->len + (segs - 1) * headers;
	bench.made_bytes += payload;
	return skb;
}

static u32 bench_payload(const struct sk_buff *skb)
{
	return skb->len - skb_transport_offset(skb) - bench_transport_bytes(bench_is_udp(skb));
}

/* ---- the qdisc ---- */

static int bench_enqueue(struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL, *next;
	int result;

	local_bh_disable();
	result = tq_enqueue(skb, bench.sch, &to_free);
	local_bh_enable();
	for (; to_free; to_free = next) {
		next = to_free->next;
		skb_mark_not_on_list(to_free);
		bench.dropped++;
		bench.dropped_bytes += bench_payload(to_free);
		kfree_skb(to_free);
	}
	return result;
}

/* Enqueue a packet. Return: its mark; 0 if it was dropped. */
static u32 bench_give(struct kunit *test, const struct packet *p)
{
	struct sk_buff *skb = bench_packet(test, p);
	u32 mark = skb->mark;

	return bench_enqueue(skb) == NET_XMIT_SUCCESS ? mark : 0;
}

static struct sk_buff *bench_take_skb(void)
{
	struct sk_buff *skb;

	local_bh_disable();
	skb = tq_dequeue(bench.sch);
	local_bh_enable();
	if (skb)
		bench.sent_bytes += bench_payload(skb);
	return skb;
}

/* Dequeue a packet. Return: its mark; 0 if none leaves now. */
static u32 bench_take(void)
{
	struct sk_buff *skb = bench_take_skb();
	u32 mark = skb ? skb->mark : 0;

	kfree_skb(skb);
	return mark;
}

/* Let time pass until a packet leaves; the timer is on time. */
static struct sk_buff *bench_wait_skb(void)
{
	struct sk_buff *skb = NULL;
	u32 i;

	for (i = 0; !skb && i < 100; i++) {
		bench.armed_ns = U64_MAX;
		skb = bench_take_skb();
		if (skb || bench.armed_ns == U64_MAX)
			break;
		bench.now_ns = max(bench.now_ns, bench.armed_ns);
	}
	return skb;
}

static u32 bench_wait(void)
{
	struct sk_buff *skb = bench_wait_skb();
	u32 mark = skb ? skb->mark : 0;

	kfree_skb(skb);
	return mark;
}

/* Put an option into a message as tc does, without padding. */
static int bench_put_option(struct sk_buff *skb, u32 type, u64 value)
{
	u32 i;

	for (i = 0; i < TQ_O_COUNT; i++) {
		if (tq_option_descs[i].type != type)
			continue;
		if (tq_option_descs[i].bits == 64)
			return nla_put(skb, type, sizeof(value), &value);
		return timely_option_put(skb, &tq_option_descs[i], value, TCA_TIMELY_PAD);
	}
	return -EINVAL;
}

static int bench_change_attrs(struct sk_buff *attrs)
{
	struct netlink_ext_ack extack = {};
	int err;

	rtnl_lock();
	err = tq_change(bench.sch, (struct nlattr *)attrs->data, &extack);
	rtnl_unlock();
	return err;
}

/* A message with @options: pairs of attribute and value, ending with attribute 0. */
static struct sk_buff *bench_attrs(struct kunit *test, const u64 *options)
{
	struct sk_buff *attrs = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	struct nlattr *nest;

	KUNIT_ASSERT_NOT_NULL(test, attrs);
	nest = nla_nest_start_noflag(attrs, TCA_OPTIONS);
	for (; options[0]; options += 2)
		KUNIT_EXPECT_EQ(test, bench_put_option(attrs, options[0], options[1]), 0);
	nla_nest_end(attrs, nest);
	return attrs;
}

static int bench_change_options(struct kunit *test, const u64 *options)
{
	struct sk_buff *attrs = bench_attrs(test, options);
	int err = bench_change_attrs(attrs);

	kfree_skb(attrs);
	return err;
}

static void must_change_options(struct kunit *test, const u64 *options)
{
	int err = bench_change_options(test, options);

	KUNIT_EXPECT_EQ(test, err, 0);
}

#define bench_change(test, ...) \
	bench_change_options(test, (const u64 []){ __VA_ARGS__, 0 })
#define must_change(test, ...) \
	must_change_options(test, (const u64 []){ __VA_ARGS__, 0 })

static struct tq_flow *bench_flow(const void *key)
{
	struct tq_flow *f;

	for (f = *tq_bucket(&bench.q->table, key); f && f->sk != key; f = f->hash_next)
		;
	return f;
}

/* Time passes, and the search for idle flows runs once in a second. */
static void bench_reap(u64 ns)
{
	u64 end_ns = bench.now_ns + ns;

	do {
		bench.now_ns += min(end_ns - bench.now_ns, SECOND);
		tq_reap(&bench.q->reap.work);
	} while (bench.now_ns < end_ns);
}

/* Number of pages of the flow table. */
static u32 bench_pages(void)
{
	u32 i, pages = 0;

	for (i = 0; i < TQ_PAGES; i++)
		pages += !!bench.q->table.pages[i];
	return pages;
}

static int bench_init_qdisc(struct Qdisc *sch, struct nlattr *opt,
			    struct netlink_ext_ack *extack)
{
	return tq_init(sch, bench.attrs, extack);
}

static bool bench_make(void)
{
	static struct Qdisc_ops ops;

	ops = tq_qdisc_ops;
	ops.init = bench_init_qdisc;
	rtnl_lock();
	bench.sch = qdisc_create_dflt(netdev_get_tx_queue(bench.dev, 0), &ops, TC_H_ROOT,
				      NULL);
	rtnl_unlock();
	if (!bench.sch)
		return false;
	bench.q = qdisc_priv(bench.sch);
	bench.woken = 0;
	return true;
}

/* Continue the test with the other qdisc; bench.q is NULL if there is none yet. */
static void bench_swap(void)
{
	swap(bench.sch, bench.second);
	bench.q = bench.sch ? qdisc_priv(bench.sch) : NULL;
}

static void bench_destroy(void)
{
	if (!bench.sch)
		return;
	rtnl_lock();
	qdisc_put(bench.sch);
	bench.sch = NULL;
	rtnl_unlock();
}

/* Destroy the qdisc and make another one with these options. */
static void bench_make_anew(struct kunit *test, const u64 *options)
{
	struct sk_buff *attrs = bench_attrs(test, options);

	bench_destroy();
	bench.attrs = (struct nlattr *)attrs->data;
	KUNIT_EXPECT_TRUE(test, bench_make());
	bench.attrs = NULL;
	kfree_skb(attrs);
	KUNIT_ASSERT_NOT_NULL(test, bench.sch);
}

#define bench_anew(test, ...) \
	bench_make_anew(test, (const u64 []){ __VA_ARGS__, 0 })

static void bench_reset(void)
{
	rtnl_lock();
	sch_tree_lock(bench.sch);
	tq_reset(bench.sch);
	sch_tree_unlock(bench.sch);
	rtnl_unlock();
}

/* ---- the audit ---- */

/* Sums that the audit computes from flows and packets, to be compared with the qdisc's counters. */
struct audit {
	u32 flows, inactive, throttled, ready, qlen;
	u64 backlog;
	u32 packets[TIMELY_BANDS];
	u32 faults;
	const char *fault;
};

static void audit_that(struct audit *a, bool good, const char *what)
{
	if (good)
		return;
	a->faults++;
	if (!a->fault)
		a->fault = what;
}

static u32 audit_packet(struct audit *a, const struct sk_buff *skb)
{
	const struct tq_skb_cb *cb = tq_cb(skb);

	a->qlen++;
	a->backlog += qdisc_pkt_len(skb);
	audit_that(a, cb->band < TIMELY_BANDS, "a band that is none");
	if (!cb->more)
		a->packets[cb->band % TIMELY_BANDS]++;
	return !cb->more;
}

static void audit_flow(struct audit *a, struct tq_flow *f)
{
	const struct sk_buff *skb, *last = NULL;
	struct rb_node *node;
	u32 qlen = 0;

	for (skb = f->head; skb; last = skb, skb = skb->next)
		qlen += audit_packet(a, skb);
	audit_that(a, !f->head || f->head->prev == last, "the first packet knows the last");
	for (node = rb_first(&f->early); node; node = rb_next(node))
		qlen += audit_packet(a, rb_to_skb(node));
	audit_that(a, f->qlen == qlen, "a flow's packets");
	audit_that(a, f->has_early == !RB_EMPTY_ROOT(&f->early), "has_early");
	audit_that(a, f->has_entry == !!f->entry, "has_entry");
	audit_that(a, (f->state == TQ_THROTTLED) == timely_wheel_queued(&f->node),
		   "what is throttled is in the wheel");
	audit_that(a, f->qlen || f->state != TQ_THROTTLED, "a flow waits with nothing");
	audit_that(a, !f->qlen || f->state != TQ_IDLE, "an idle flow has packets");
	audit_that(a, bench_flow(f->sk) == f, "a flow is found by its key");
	a->flows++;
	a->inactive += !f->qlen;
	a->throttled += f->state == TQ_THROTTLED;
}

static void audit_table(struct audit *a, const struct tq_table *table)
{
	struct tq_flow *f;
	u32 nr;

	tq_for_each_flow(table, nr, f)
		audit_flow(a, f);
	audit_that(a, is_power_of_2(table->half) && table->half <= table->buckets &&
		   table->buckets < 2 * table->half, "half of the buckets");
}

static void audit_turns(struct audit *a, const struct tq_round *round)
{
	const struct tq_flow *f;

	for (f = round->first; f && a->ready <= a->flows; f = tq_round_after(f)) {
		a->ready++;
		audit_that(a, f->state == TQ_READY, "who has a turn is ready");
		audit_that(a, tq_round_after(f) || round->last == f, "the last turn");
	}
}

/* Return: a description of what does not agree; NULL if everything does. */
static const char *bench_audit(void)
{
	const struct tq_sched *q = bench.q;
	struct audit a = {};
	struct sk_buff *skb;
	u32 i, bypass = 0;

	audit_table(&a, &q->table);
	for (i = 0; i < TIMELY_BANDS; i++) {
		audit_that(&a, a.packets[i] == q->bands[i].packets, "a band's packets");
		audit_turns(&a, &q->bands[i].new_flows);
		audit_turns(&a, &q->bands[i].old_flows);
	}
	for (skb = q->bypass; skb; skb = skb->next) {
		bypass++;
		a.qlen++;
		a.backlog += qdisc_pkt_len(skb);
	}
	audit_that(&a, bypass == q->bypass_qlen, "packets without a flow");
	audit_that(&a, a.flows == q->flows, "flows");
	audit_that(&a, a.inactive == q->inactive, "inactive flows");
	audit_that(&a, a.throttled == q->throttled, "throttled flows");
	audit_that(&a, a.ready == q->ready, "ready flows");
	audit_that(&a, a.qlen == bench.sch->q.qlen, "qlen");
	audit_that(&a, a.backlog == bench.sch->qstats.backlog, "backlog");
	return a.fault;
}

#define EXPECT_AUDIT(test)	KUNIT_EXPECT_STREQ(test, bench_audit() ? : "all adds up", \
						   "all adds up")

/* The qdisc is empty. */
#define EXPECT_DONE_HERE(test) do {					\
	EXPECT_AUDIT(test);						\
	KUNIT_EXPECT_EQ(test, bench.sch->q.qlen, 0);			\
	KUNIT_EXPECT_EQ(test, bench.sch->qstats.backlog, 0);		\
} while (0)

/* The qdisc is empty, and all payload has left or was dropped. */
#define EXPECT_DONE(test) do {						\
	EXPECT_DONE_HERE(test);						\
	KUNIT_EXPECT_EQ(test, bench.made_bytes,				\
			bench.sent_bytes + bench.dropped_bytes);	\
} while (0)

/* ---- before and after each test ---- */

static int bench_init(struct kunit *test)
{
	struct netdev_queue *queue;
	u32 i;

	memset(&bench, 0, sizeof(bench));
	bench.now_ns = START_NS;
	bench.armed_ns = U64_MAX;
	tq_flow_cache = kmem_cache_create("timely_flow_kunit", sizeof(struct tq_flow), 0,
					  SLAB_HWCACHE_ALIGN, NULL);
	bench.page = alloc_page(GFP_KERNEL);
	bench.dev = alloc_netdev(0, "bench", NET_NAME_UNKNOWN, ether_setup);
	if (!tq_flow_cache || !bench.page || !bench.dev)
		return -ENOMEM;
	for (i = 0; i < PAGE_SIZE; i++)
		((u8 *)page_address(bench.page))[i] = bench_byte(i);
	queue = netdev_get_tx_queue(bench.dev, 0);
	rcu_assign_pointer(queue->qdisc, &noop_qdisc);
	rcu_assign_pointer(queue->qdisc_sleeping, &noop_qdisc);
	for (i = 0; i < BENCH_SOCKS; i++) {
		bench.sk[i] = kunit_kzalloc(test, sizeof(struct tcp_sock), GFP_KERNEL);
		if (!bench.sk[i])
			return -ENOMEM;
	}
	if (timely_flow_register(&bench_ops, 1, NULL))
		return -EBUSY;
	return bench_make() ? 0 : -ENOMEM;
}

/* When the qdisc is destroyed, all packets must be freed. */
static void bench_exit(struct kunit *test)
{
	u32 i;

	bench_destroy();
	bench_swap();
	bench_destroy();
	KUNIT_EXPECT_EQ(test, bench.charged, 0);
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
	for (i = 0; i < BENCH_SOCKS; i++) {
		if (!bench.entry[i])
			continue;
		KUNIT_EXPECT_EQ(test, refcount_read(&bench.entry[i]->ref), 1);
		KUNIT_EXPECT_NULL(test, bench.entry[i]->notifier);
		timely_flow_close(bench.entry[i]);
	}
	timely_flow_unregister();
	rcu_barrier();
	free_netdev(bench.dev);
	__free_page(bench.page);
	kmem_cache_destroy(tq_flow_cache);
}

#endif /* _KUNIT_QDISC_BENCH_H */
