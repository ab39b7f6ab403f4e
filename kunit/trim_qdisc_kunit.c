// SPDX-License-Identifier: GPL-2.0
/*
 * White-box tests of the qdisc "trim". Its source is included in this file. The tests control its
 * random numbers and its memory, and take the place of its parent: they count packets and bytes as
 * a classful qdisc does, and compare them with the qdisc's own counters after each call. Cases are
 * named function__case.
 *
 * Packets have 1514 bytes and the DSCP AF11 unless a test states otherwise.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/gso.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/tcp.h>

#include <timely_unaligned.h>

#define PACKET_BYTES	1514
#define AF11		10
#define CS6		48
#define EF		46
#define OPTION_BYTES	1024

/**
 * struct bench - state of a test; one test runs at a time
 * @coin: next random number of the qdisc
 * @asked: number of operations that may fail
 * @fail_at: which of these operations fails; 0 for none
 * @refuse: the device's receive path drops packets
 * @returned: the last packet that was sent back
 * @packets: packets that the parent counts
 * @bytes: bytes that the parent counts
 * @charged: packets with a destructor
 * @dropped: packets that enqueue returned
 * @mark: mark of the last packet
 * @page: page with the payload of packets that are not linear
 * @dev: the device
 * @sch: the qdisc
 * @q: private data of the qdisc
 */
static struct bench {
	u32 coin;
	u32 asked;
	u32 fail_at;
	bool refuse;
	struct sk_buff *returned;
	u32 packets;
	u32 bytes;
	u32 charged;
	u32 dropped;
	u32 mark;
	struct page *page;
	struct net_device *dev;
	struct Qdisc *sch;
	struct trim_sched *q;
} bench;

/* ---- replaced functions of the kernel ---- */

static bool bench_fails(void)
{
	return ++bench.asked == bench.fail_at;
}

static void bench_reduce(int packets, int bytes)
{
	bench.packets -= packets;
	bench.bytes -= bytes;
}

static int bench_forward(struct net_device *dev, struct sk_buff *skb)
{
	kfree_skb(bench.returned);
	bench.returned = NULL;
	if (bench.refuse) {
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	bench.returned = skb;
	return NET_RX_SUCCESS;
}

#define get_random_u32()	bench.coin
#define skb_csum_hwoffload_help(skb, features) \
	(bench_fails() ? -ENOMEM : skb_csum_hwoffload_help(skb, features))
#define pskb_trim(skb, bytes)	(bench_fails() ? -ENOMEM : pskb_trim(skb, bytes))
#define skb_ensure_writable(skb, bytes) \
	(bench_fails() ? -ENOMEM : skb_ensure_writable(skb, bytes))
#define skb_gso_segment(skb, features) \
	(bench_fails() ? ERR_PTR(-ENOMEM) : skb_gso_segment(skb, features))
#define dev_forward_skb(dev, skb)	bench_forward(dev, skb)
#define qdisc_tree_reduce_backlog(sch, packets, bytes)	bench_reduce(packets, bytes)

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

#include "../net/sched/sch_trim_packet.c"
#include "../net/sched/sch_trim_options.c"
#include "../net/sched/sch_trim.c"

/* ---- packets ---- */

/**
 * struct packet - properties of a packet to make
 * @len: length with all headers; 0 for 1514; GSO packets are longer
 * @dscp: DSCP; 0 for AF11, 64 for 0
 * @tags: VLAN tags in the data
 * @gso: payload bytes of a GSO packet; 0 for none
 * @type: ethertype instead of that of IP
 * @frag: fragment field of the IPv4 header
 * @protocol: protocol instead of UDP
 * @v6: IPv6
 * @frags: the payload is in a page
 * @partial: the device is to compute the checksum
 * @tagged: a VLAN tag in the metadata
 */
struct packet {
	u32 len;
	u32 dscp;
	u32 tags;
	u32 gso;
	u16 type;
	u16 frag;
	u8 protocol;
	bool v6;
	bool frags;
	bool partial;
	bool tagged;
};

static void bench_freed(struct sk_buff *skb)
{
	bench.charged--;
}

static void put_ip(struct sk_buff *skb, const struct packet *p, u32 bytes)
{
	u8 dscp = p->dscp ? p->dscp & 63 : AF11, protocol = p->protocol ? : IPPROTO_UDP;
	struct ipv6hdr *ip6;
	struct iphdr *ip;

	skb_set_network_header(skb, skb->len);
	if (p->v6) {
		ip6 = skb_put_zero(skb, sizeof(*ip6));
		ip6->version = 6;
		ip6->payload_len = htons(bytes);
		ip6->nexthdr = protocol;
		ip6->hop_limit = 64;
		ip6->saddr.s6_addr32[0] = htonl(0xfd000000);
		ip6->daddr.s6_addr32[0] = htonl(0xfd010000);
		ipv6_change_dsfield(ip6, 0, dscp << 2 | 2);
		return;
	}
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = dscp << 2 | 2;
	ip->tot_len = htons(sizeof(*ip) + bytes);
	ip->frag_off = htons(p->frag);
	ip->ttl = 64;
	ip->protocol = protocol;
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a000002);
	ip_send_check(ip);
}

static __sum16 pseudo(const struct sk_buff *skb, const struct packet *p, u32 bytes)
{
	if (p->v6)
		return ~csum_ipv6_magic(&ipv6_hdr(skb)->saddr, &ipv6_hdr(skb)->daddr, bytes,
					ipv6_hdr(skb)->nexthdr, 0);
	return ~csum_tcpudp_magic(ip_hdr(skb)->saddr, ip_hdr(skb)->daddr, bytes,
				  ip_hdr(skb)->protocol, 0);
}

static void put_transport(struct sk_buff *skb, const struct packet *p, u32 bytes)
{
	struct udphdr *uh;
	struct tcphdr *th;

	skb_set_transport_header(skb, skb->len);
	if (p->protocol == IPPROTO_TCP) {
		th = skb_put_zero(skb, sizeof(*th));
		th->source = htons(1000);
		th->dest = htons(2000);
		th->doff = 5;
		th->ack = 1;
		th->check = pseudo(skb, p, bytes);
		skb->csum_offset = offsetof(struct tcphdr, check);
	} else {
		uh = skb_put_zero(skb, sizeof(*uh));
		uh->source = htons(1000);
		uh->dest = htons(2000);
		uh->len = htons(bytes);
		if (p->partial)
			uh->check = pseudo(skb, p, bytes);
		skb->csum_offset = offsetof(struct udphdr, check);
	}
	if (p->partial) {
		skb->ip_summed = CHECKSUM_PARTIAL;
		skb->csum_start = skb_transport_header(skb) - skb->head;
	}
}

static void put_link(struct sk_buff *skb, const struct packet *p)
{
	u16 type = p->type ? : p->v6 ? ETH_P_IPV6 : ETH_P_IP;
	struct ethhdr *eth = skb_put_zero(skb, ETH_HLEN);
	__be16 *word;
	u32 i;

	skb_reset_mac_header(skb);
	ether_addr_copy(eth->h_source, (const u8 *)"\x02\x00\x00\x00\x00\x01");
	ether_addr_copy(eth->h_dest, (const u8 *)"\x02\x00\x00\x00\x00\x02");
	eth->h_proto = htons(p->tags ? ETH_P_8021Q : type);
	skb->protocol = eth->h_proto;
	for (i = 0; i < p->tags; i++) {
		word = skb_put_zero(skb, VLAN_HLEN);
		word[0] = htons(5 + i);
		word[1] = htons(i + 1 < p->tags ? ETH_P_8021Q : type);
	}
	if (p->tagged)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), 7);
}

static struct sk_buff *make(struct kunit *test, const struct packet *p)
{
	u32 transport = p->protocol == IPPROTO_TCP ? sizeof(struct tcphdr) : sizeof(struct udphdr);
	u32 headers = ETH_HLEN + VLAN_HLEN * p->tags + transport +
		      (p->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	u32 payload = p->gso ? : (p->len ? : PACKET_BYTES) - headers, i, bytes;
	struct sk_buff *skb = alloc_skb(payload + 256, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, 64);
	skb->dev = bench.dev;
	put_link(skb, p);
	put_ip(skb, p, transport + payload);
	put_transport(skb, p, transport + payload);
	/* The payload begins in the linear part, as that of packets from a NIC does. */
	for (i = 0; p->frags && payload > 20; i++, payload -= bytes) {
		bytes = min_t(u32, payload - 20, 1000);
		get_page(bench.page);
		skb_add_rx_frag(skb, i, bench.page, 0, bytes, bytes);
	}
	bytes = skb->data_len;
	skb->data_len = 0;
	skb->len -= bytes;
	memset(skb_put(skb, payload), 0x5a, payload);
	skb->data_len = bytes;
	skb->len += bytes;
	if (p->gso) {
		skb_shinfo(skb)->gso_size = 1000;
		skb_shinfo(skb)->gso_type = p->v6 ? SKB_GSO_TCPV6 : SKB_GSO_TCPV4;
		skb_shinfo(skb)->gso_segs = DIV_ROUND_UP(p->gso, 1000);
	}
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	skb->mark = ++bench.mark;
	skb->destructor = bench_freed;
	bench.charged++;
	return skb;
}

/* ---- the qdisc ---- */

static int enqueue(struct sk_buff *skb)
{
	u32 bytes = qdisc_pkt_len(skb);
	struct sk_buff *to_free = NULL, *next;
	int result;

	local_bh_disable();
	result = trim_enqueue(skb, bench.sch, &to_free);
	local_bh_enable();
	for (; to_free; to_free = next) {
		next = to_free->next;
		skb_mark_not_on_list(to_free);
		bench.dropped++;
		kfree_skb(to_free);
	}
	if (result == NET_XMIT_SUCCESS) {
		bench.packets++;
		bench.bytes += bytes;
	}
	return result;
}

static int give(struct kunit *test, const struct packet *p)
{
	return enqueue(make(test, p));
}

/* Dequeue a packet. Return: NULL if there is none. */
static struct sk_buff *take_skb(void)
{
	struct sk_buff *skb;

	local_bh_disable();
	skb = trim_dequeue(bench.sch);
	local_bh_enable();
	if (skb) {
		bench.packets--;
		bench.bytes -= qdisc_pkt_len(skb);
	}
	return skb;
}

/* Dequeue a packet. Return: its mark; 0 if there is none. */
static u32 take(void)
{
	struct sk_buff *skb = take_skb();
	u32 mark = skb ? skb->mark : 0;

	kfree_skb(skb);
	return mark;
}

static const char *audit_queue(const struct trim_queue *queue)
{
	const struct sk_buff *skb, *before = NULL, *last = NULL;
	u32 packets = 0;
	u64 bytes = 0;

	for (skb = queue->head; skb; skb = skb->next) {
		before = last;
		last = skb;
		packets++;
		bytes += qdisc_pkt_len(skb);
	}
	if (packets != queue->packets || bytes != queue->bytes)
		return "the length of a queue";
	if (packets && queue->tail != last)
		return "the last packet";
	if (packets > 1 && queue->before != before)
		return "the packet before the last";
	return NULL;
}

/* Return: a description of what does not agree; "all adds up" if everything does. */
static const char *audit(void)
{
	const struct trim_sched *q = bench.q;
	const char *fault = audit_queue(&q->data) ? : audit_queue(&q->headers);

	if (fault)
		return fault;
	if (bench.sch->q.qlen != q->data.packets + q->headers.packets)
		return "qlen";
	if (bench.sch->qstats.backlog != q->data.bytes + q->headers.bytes)
		return "backlog";
	if (bench.packets != bench.sch->q.qlen)
		return "the parent's packets";
	if (bench.bytes != bench.sch->qstats.backlog)
		return "the parent's bytes";
	if (q->data.packets > q->cfg.limit || q->headers.bytes > q->cfg.header_limit)
		return "a limit";
	return "all adds up";
}

#define EXPECT_AUDIT(test)	KUNIT_EXPECT_STREQ(test, audit(), "all adds up")

static int change(struct kunit *test, const u64 *options)
{
	struct sk_buff *attrs = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	struct netlink_ext_ack extack = {};
	struct nlattr *nest;
	int err;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, attrs);
	nest = nla_nest_start_noflag(attrs, TCA_OPTIONS);
	for (; options[0]; options += 2)
		for (i = 0; i < TRIM_O_COUNT; i++)
			if (trim_option_descs[i].type == options[0])
				timely_option_put(attrs, &trim_option_descs[i], options[1],
						  TCA_TRIM_PAD);
	nla_nest_end(attrs, nest);
	rtnl_lock();
	err = trim_change(bench.sch, (struct nlattr *)attrs->data, &extack);
	rtnl_unlock();
	kfree_skb(attrs);
	KUNIT_EXPECT_EQ(test, !!extack._msg, !!err);
	return err;
}

#define CHANGE(test, ...)	change(test, (const u64 []){ __VA_ARGS__, 0 })
#define MUST_CHANGE(test, ...)	KUNIT_EXPECT_EQ(test, CHANGE(test, __VA_ARGS__), 0)

/* Fill the data queue. */
static void fill(struct kunit *test)
{
	static const struct packet plain;

	while (bench.q->data.packets < bench.q->cfg.limit)
		KUNIT_ASSERT_EQ(test, give(test, &plain), NET_XMIT_SUCCESS);
}

/* ---- trimming ---- */

static void overflow__trims_the_arrival(struct kunit *test)
{
	struct packet p = {};
	struct sk_buff *skb;
	u32 i;

	fill(test);
	KUNIT_EXPECT_EQ(test, bench.q->data.packets, 8);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->headers.bytes, 128);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_bytes, PACKET_BYTES - 128);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_tail, 0);
	/* The header overtakes the data. */
	skb = take_skb();
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb->mark, 9);
	KUNIT_EXPECT_EQ(test, skb->len, 128);
	KUNIT_EXPECT_EQ(test, ip_hdr(skb)->tos, CS6 << 2 | 2);
	KUNIT_EXPECT_EQ(test, ntohs(ip_hdr(skb)->tot_len), 114);
	KUNIT_EXPECT_EQ(test, ip_fast_csum(ip_hdr(skb), 5), 0);
	KUNIT_EXPECT_EQ(test, ntohs(udp_hdr(skb)->len), 94);
	KUNIT_EXPECT_EQ(test, udp_hdr(skb)->check, 0);
	KUNIT_EXPECT_TRUE(test, skb->ip_summed == CHECKSUM_NONE);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, bench.q->stats.tx_trim_packets, 1);
	for (i = 1; i <= 8; i++)
		KUNIT_EXPECT_EQ(test, take(), i);
	KUNIT_EXPECT_EQ(test, take(), 0);
	KUNIT_EXPECT_EQ(test, bench.dropped, 0);
	EXPECT_AUDIT(test);
}

static void overflow__trims_the_tail(struct kunit *test)
{
	struct packet p = { .len = 900 };
	u32 i;

	MUST_CHANGE(test, TCA_TRIM_VICTIM, TIMELY_TRIM_TAIL);
	fill(test);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_tail, 2);
	KUNIT_EXPECT_EQ(test, take(), 8);
	KUNIT_EXPECT_EQ(test, take(), 9);
	for (i = 1; i <= 7; i++)
		KUNIT_EXPECT_EQ(test, take(), i);
	KUNIT_EXPECT_EQ(test, take(), 10);
	EXPECT_AUDIT(test);
}

/* A queue of one packet is empty between the removal of the tail and the arrival. */
static void overflow__the_tail_of_one(struct kunit *test)
{
	struct packet p = {};
	u32 i;

	MUST_CHANGE(test, TCA_TRIM_VICTIM, TIMELY_TRIM_TAIL, TCA_TRIM_LIMIT, 1,
		    TCA_TRIM_HEADER_LIMIT, 256);
	for (i = 1; i <= 5; i++) {
		KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
		EXPECT_AUDIT(test);
	}
	KUNIT_EXPECT_EQ(test, bench.dropped, 2);
	KUNIT_EXPECT_EQ(test, take(), 1);
	KUNIT_EXPECT_EQ(test, take(), 2);
	KUNIT_EXPECT_EQ(test, take(), 5);
	EXPECT_AUDIT(test);
}

static void overflow__by_coin(struct kunit *test)
{
	struct packet p = {};

	fill(test);
	bench.coin = 2;
	give(test, &p);
	bench.coin = 3;
	give(test, &p);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_tail, 1);
	KUNIT_EXPECT_EQ(test, take(), 9);
	KUNIT_EXPECT_EQ(test, take(), 8);
	EXPECT_AUDIT(test);
}

/* Traffic that cannot be trimmed displaces nothing, and is not displaced. */
static void overflow__untrimmable(struct kunit *test)
{
	struct packet p = {}, ef = { .dscp = EF };

	MUST_CHANGE(test, TCA_TRIM_VICTIM, TIMELY_TRIM_TAIL, TCA_TRIM_TRIMMABLE, BIT_ULL(AF11));
	fill(test);
	KUNIT_EXPECT_EQ(test, give(test, &ef), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_dscp, 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, 0);
	KUNIT_EXPECT_EQ(test, take(), 1);
	KUNIT_EXPECT_EQ(test, give(test, &ef), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_tail, 0);
	KUNIT_EXPECT_EQ(test, take(), 11);
	EXPECT_AUDIT(test);
}

static void overflow__reasons(struct kunit *test)
{
	struct packet p;

	fill(test);
	p = (struct packet){ .type = ETH_P_ARP };
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_not_ip, 1);
	p = (struct packet){ .frag = 1 };
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_fragment, 1);
	p = (struct packet){ .v6 = true, .protocol = IPPROTO_ESP };
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_ipsec, 1);
	p = (struct packet){ .v6 = true, .type = ETH_P_IP };
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_headers, 1);
	p = (struct packet){ .tags = 3 };
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_not_ip, 2);
	KUNIT_EXPECT_EQ(test, bench.dropped, 5);
	KUNIT_EXPECT_EQ(test, bench.sch->qstats.drops, 5);
	EXPECT_AUDIT(test);
}

static void overflow__short_packets_pass(struct kunit *test)
{
	struct packet p = { .len = 128 };
	struct sk_buff *skb;

	fill(test);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, bench.q->stats.short_packets, 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, 0);
	skb = take_skb();
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb->mark, 9);
	KUNIT_EXPECT_EQ(test, ip_hdr(skb)->tos >> 2, AF11);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, bench.q->stats.tx_trim_packets, 0);
	EXPECT_AUDIT(test);
}

static void enqueue__control(struct kunit *test)
{
	struct packet p = { .dscp = EF, .len = 1000 }, trimmed = { .dscp = CS6, .len = 128 };

	MUST_CHANGE(test, TCA_TRIM_CONTROL, BIT_ULL(EF), TCA_TRIM_HEADER_LIMIT, 2128);
	give(test, &p);
	give(test, &trimmed);
	give(test, &p);
	KUNIT_EXPECT_EQ(test, bench.q->headers.packets, 3);
	KUNIT_EXPECT_EQ(test, bench.q->stats.control, 3);
	KUNIT_EXPECT_EQ(test, give(test, &trimmed), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_control, 1);
	EXPECT_AUDIT(test);
}

static void enqueue__no_ip(struct kunit *test)
{
	struct packet p = { .type = ETH_P_LLDP };
	struct sk_buff *skb;

	/* With DSCP 0 as control a packet without a DSCP is still data. */
	MUST_CHANGE(test, TCA_TRIM_CONTROL, 1);
	give(test, &p);
	skb = make(test, &(struct packet){});
	skb_set_network_header(skb, skb->len);
	enqueue(skb);
	skb = make(test, &(struct packet){});
	skb_set_network_header(skb, -30);
	enqueue(skb);
	KUNIT_EXPECT_EQ(test, bench.q->data.packets, 3);
	EXPECT_AUDIT(test);
}

/* ---- packet buffers ---- */

static struct sk_buff *trimmed(struct kunit *test, const struct packet *p)
{
	struct sk_buff *skb;

	fill(test);
	KUNIT_EXPECT_EQ(test, give(test, p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, 1);
	skb = take_skb();
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb->len, bench.q->cfg.size);
	KUNIT_EXPECT_EQ(test, qdisc_pkt_len(skb), bench.q->cfg.size);
	return skb;
}

static void cut__ipv6(struct kunit *test)
{
	struct sk_buff *skb = trimmed(test, &(struct packet){ .v6 = true });

	KUNIT_EXPECT_EQ(test, ipv6_get_dsfield(ipv6_hdr(skb)), CS6 << 2 | 2);
	KUNIT_EXPECT_EQ(test, ntohs(ipv6_hdr(skb)->payload_len), 74);
	KUNIT_EXPECT_EQ(test, ntohs(udp_hdr(skb)->len), 74);
	kfree_skb(skb);
}

static void cut__vlan_tags(struct kunit *test)
{
	u32 tags;

	for (tags = 1; tags <= 2; tags++) {
		struct packet p = { .tags = tags, .v6 = tags == 2 };
		struct sk_buff *skb;

		bench.q->stats.trim_packets = 0;
		/* A packet socket leaves the network header at the first tag. */
		fill(test);
		skb = make(test, &p);
		skb_set_network_header(skb, ETH_HLEN);
		enqueue(skb);
		EXPECT_AUDIT(test);
		KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, 1);
		skb = take_skb();
		KUNIT_ASSERT_NOT_NULL(test, skb);
		KUNIT_EXPECT_EQ(test, get_unaligned_be16(skb->data + 14 + 4 * tags +
							 (p.v6 ? 4 : 2)),
				114 - 4 * tags - (p.v6 ? 40 : 0));
		kfree_skb(skb);
		while (take())
			;
	}
}

static void cut__accelerated_tag(struct kunit *test)
{
	struct sk_buff *skb = trimmed(test, &(struct packet){ .tagged = true });

	KUNIT_EXPECT_TRUE(test, skb_vlan_tag_present(skb));
	KUNIT_EXPECT_EQ(test, skb_vlan_tag_get(skb), 7);
	KUNIT_EXPECT_EQ(test, ntohs(ip_hdr(skb)->tot_len), 114);
	kfree_skb(skb);
}

static void cut__pages(struct kunit *test)
{
	struct sk_buff *skb = trimmed(test, &(struct packet){ .frags = true });

	/* The rest of the payload is freed at once. */
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1 + skb_shinfo(skb)->nr_frags);
	KUNIT_EXPECT_LE(test, skb_shinfo(skb)->nr_frags, 1);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
}

/* The checksum is that of the whole packet, as on a switch. */
static void cut__checksum_of_the_device(struct kunit *test)
{
	struct packet p = { .partial = true, .frags = true };
	struct sk_buff *whole = make(test, &p), *skb;
	__sum16 check;

	KUNIT_ASSERT_EQ(test, skb_checksum_help(whole), 0);
	check = udp_hdr(whole)->check;
	kfree_skb(whole);
	skb = trimmed(test, &p);
	KUNIT_EXPECT_TRUE(test, skb->ip_summed == CHECKSUM_NONE);
	KUNIT_EXPECT_EQ(test, udp_hdr(skb)->check, check);
	KUNIT_EXPECT_NE(test, check, 0);
	/* The receiver notices. */
	KUNIT_EXPECT_NE(test, csum_fold(skb_checksum(skb, skb_transport_offset(skb), 94,
						     csum_unfold(~pseudo(skb, &p, 94)))), 0);
	kfree_skb(skb);
}

/* TCP's retransmission queue and taps share the data with the packet. */
static void cut__leaves_clones_alone(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct sk_buff *other = make(test, &(struct packet){ .frags = i });
		struct sk_buff *skb = skb_clone(other, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, skb);
		fill(test);
		KUNIT_EXPECT_EQ(test, enqueue(skb), NET_XMIT_SUCCESS);
		KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, i + 1);
		EXPECT_AUDIT(test);
		KUNIT_EXPECT_EQ(test, other->len, PACKET_BYTES);
		KUNIT_EXPECT_EQ(test, ip_hdr(other)->tos >> 2, AF11);
		KUNIT_EXPECT_EQ(test, ntohs(ip_hdr(other)->tot_len), PACKET_BYTES - ETH_HLEN);
		kfree_skb(other);
		skb = take_skb();
		KUNIT_ASSERT_NOT_NULL(test, skb);
		KUNIT_EXPECT_EQ(test, ip_hdr(skb)->tos >> 2, CS6);
		kfree_skb(skb);
	}
}

static void cut__not_a_shared_packet(struct kunit *test)
{
	struct sk_buff *skb = skb_get(make(test, &(struct packet){}));

	fill(test);
	KUNIT_EXPECT_EQ(test, enqueue(skb), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_headers, 1);
	KUNIT_EXPECT_EQ(test, skb->len, PACKET_BYTES);
	kfree_skb(skb);
}

/* What a size table has added or subtracted stays. */
static void cut__size_table(struct kunit *test)
{
	static const int more[] = { 24, -10, -1400 };
	static const u32 bytes[] = { 152, 118, 1 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(more); i++) {
		struct sk_buff *skb = make(test, &(struct packet){});

		qdisc_skb_cb(skb)->pkt_len += more[i];
		fill(test);
		enqueue(skb);
		KUNIT_EXPECT_EQ(test, bench.q->headers.bytes, bytes[i]);
		EXPECT_AUDIT(test);
		take();
	}
}

static void cut__without_memory(struct kunit *test)
{
	struct packet p = { .partial = true, .frags = true };
	u32 n, victim;

	for (victim = TIMELY_TRIM_ARRIVAL; victim <= TIMELY_TRIM_TAIL; victim++) {
		MUST_CHANGE(test, TCA_TRIM_VICTIM, victim, TCA_TRIM_LIMIT, 1);
		while (take())
			;
		give(test, &p);
		for (n = 1; n <= 3; n++) {
			bench.asked = 0;
			bench.fail_at = n;
			KUNIT_EXPECT_EQ(test, give(test, &p), victim == TIMELY_TRIM_TAIL ?
					NET_XMIT_SUCCESS : NET_XMIT_DROP);
			EXPECT_AUDIT(test);
		}
		bench.fail_at = 0;
	}
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_memory, 6);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_tail, 0);
	KUNIT_EXPECT_EQ(test, bench.dropped, 6);
}

/* ---- the header queue ---- */

static void headers__full(struct kunit *test)
{
	struct packet p = {};
	u32 i;

	MUST_CHANGE(test, TCA_TRIM_HEADER_LIMIT, 3 * 128 + 127);
	fill(test);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	bench.coin = 1;
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->stats.trim_packets, 5);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_trim_packets, 2);
	KUNIT_EXPECT_EQ(test, bench.dropped, 2);
}

static void dequeue__ratio(struct kunit *test)
{
	static const u8 order[] = { 9, 10, 1, 11, 12, 2, 13, 3, 4 };
	struct packet p = {};
	u32 i;

	MUST_CHANGE(test, TCA_TRIM_RATIO, 2);
	fill(test);
	for (i = 0; i < 5; i++)
		give(test, &p);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_EQ(test, take(), order[i]);
	EXPECT_AUDIT(test);
}

/* Data that leave while no header waits begin a new round. */
static void dequeue__new_round(struct kunit *test)
{
	static const u8 order[] = { 11, 12, 2, 13, 3 };
	struct packet p = {};
	u32 i;

	MUST_CHANGE(test, TCA_TRIM_RATIO, 2);
	fill(test);
	give(test, &p);
	KUNIT_EXPECT_EQ(test, take(), 9);
	KUNIT_EXPECT_EQ(test, take(), 1);
	for (i = 0; i < 4; i++)
		give(test, &p);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_EQ(test, take(), order[i]);
	EXPECT_AUDIT(test);
}

/* ---- return to sender ---- */

static void return__swaps_addresses(struct kunit *test)
{
	struct packet p = { .partial = true };
	struct sk_buff *skb;

	MUST_CHANGE(test, TCA_TRIM_RETURN, 1, TCA_TRIM_HEADER_LIMIT, 1);
	fill(test);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS | __NET_XMIT_STOLEN);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->stats.returned, 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_trim_packets, 0);
	KUNIT_EXPECT_EQ(test, bench.sch->qstats.drops, 0);
	skb = bench.returned;
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb->len, 128);
	KUNIT_EXPECT_EQ(test, eth_hdr(skb)->h_dest[5], 1);
	KUNIT_EXPECT_EQ(test, eth_hdr(skb)->h_source[5], 2);
	KUNIT_EXPECT_EQ(test, ntohl(ip_hdr(skb)->saddr), 0x0a000002);
	KUNIT_EXPECT_EQ(test, ntohl(ip_hdr(skb)->daddr), 0x0a000001);
	KUNIT_EXPECT_EQ(test, ip_hdr(skb)->tos, CS6 << 2 | 2);
	KUNIT_EXPECT_EQ(test, ip_fast_csum(ip_hdr(skb), 5), 0);
	KUNIT_EXPECT_EQ(test, ntohs(udp_hdr(skb)->source), 2000);
	KUNIT_EXPECT_EQ(test, ntohs(udp_hdr(skb)->dest), 1000);
	/* The sender's memory is free again. */
	KUNIT_EXPECT_TRUE(test, !skb->destructor);
	KUNIT_EXPECT_EQ(test, bench.charged, 8);
}

static void return__the_tail(struct kunit *test)
{
	struct packet p = {};

	MUST_CHANGE(test, TCA_TRIM_RETURN, 1, TCA_TRIM_HEADER_LIMIT, 1, TCA_TRIM_LIMIT, 1,
		    TCA_TRIM_VICTIM, TIMELY_TRIM_TAIL);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	KUNIT_ASSERT_NOT_NULL(test, bench.returned);
	KUNIT_EXPECT_EQ(test, bench.returned->mark, 1);
	KUNIT_EXPECT_EQ(test, take(), 2);
}

/* The packets are dropped, and counted as trimmed packets that were dropped. */
static void return__not(struct kunit *test)
{
	struct sk_buff *skb;
	u32 i;

	MUST_CHANGE(test, TCA_TRIM_RETURN, 1, TCA_TRIM_HEADER_LIMIT, 1);
	fill(test);
	for (i = 0; i < 5; i++) {
		skb = make(test, &(struct packet){ .protocol = i ? 0 : IPPROTO_TCP });
		if (i == 1)
			ip_hdr(skb)->daddr = htonl(0xe0000001);
		if (i == 2)
			eth_hdr(skb)->h_dest[0] = 0xff;
		if (i == 3)
			eth_hdr(skb)->h_source[0] = 0x03;
		if (i == 4)
			bench.dev->type = ARPHRD_NONE;
		KUNIT_EXPECT_EQ(test, enqueue(skb), NET_XMIT_DROP);
		KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_trim_packets, i + 1);
		EXPECT_AUDIT(test);
	}
	KUNIT_EXPECT_NULL(test, bench.returned);
	bench.dev->type = ARPHRD_ETHER;
	bench.refuse = true;
	KUNIT_EXPECT_EQ(test, give(test, &(struct packet){}),
			NET_XMIT_SUCCESS | __NET_XMIT_STOLEN);
	KUNIT_EXPECT_EQ(test, bench.q->stats.return_failed, 1);
	EXPECT_AUDIT(test);
}

/* A packet that came back meets a full header queue: it must not be returned again. */
static void return__once(struct kunit *test)
{
	MUST_CHANGE(test, TCA_TRIM_RETURN, 1, TCA_TRIM_HEADER_LIMIT, 1);
	fill(test);
	KUNIT_EXPECT_EQ(test, give(test, &(struct packet){ .dscp = CS6, .len = 128 }),
			NET_XMIT_DROP);
	/* Not even if another switch has another DSCP for trimmed packets. */
	KUNIT_EXPECT_EQ(test, give(test, &(struct packet){ .len = 128 }), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_control, 2);
	KUNIT_EXPECT_NULL(test, bench.returned);
}

/* ---- GSO ---- */

static void gso__is_segmented(struct kunit *test)
{
	struct packet p = {
		.gso = 9500, .protocol = IPPROTO_TCP, .frags = true, .partial = true,
	};
	struct sk_buff *skb;

	MUST_CHANGE(test, TCA_TRIM_VICTIM, TIMELY_TRIM_ARRIVAL);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->stats.segmented, 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.segments, 10);
	KUNIT_EXPECT_EQ(test, bench.q->data.packets, 8);
	KUNIT_EXPECT_EQ(test, bench.q->headers.packets, 2);
	KUNIT_EXPECT_EQ(test, bench.q->data.bytes, 8 * 1054);
	skb = take_skb();
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_FALSE(test, skb_is_gso(skb));
	KUNIT_EXPECT_EQ(test, ntohl(tcp_hdr(skb)->seq), 8000);
	kfree_skb(skb);
	/* All segments are dropped. */
	MUST_CHANGE(test, TCA_TRIM_HEADER_LIMIT, 1);
	EXPECT_AUDIT(test);
	fill(test);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	EXPECT_AUDIT(test);
	/* Each displaces the one before. */
	MUST_CHANGE(test, TCA_TRIM_VICTIM, TIMELY_TRIM_TAIL);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	EXPECT_AUDIT(test);
	/* Segmentation fails. */
	bench.asked = 0;
	bench.fail_at = 1;
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, bench.q->stats.dropped_memory, 1);
	EXPECT_AUDIT(test);
}

/* ---- options ---- */

static void change__ranges(struct kunit *test)
{
	const struct timely_option_desc *desc = trim_option_descs;
	u64 all;
	u32 i;

	for (i = 0; i < TRIM_O_COUNT; i++, desc++) {
		all = desc->bits == 64 ? U64_MAX : BIT_ULL(desc->bits) - 1;
		KUNIT_EXPECT_EQ(test, CHANGE(test, desc->type, desc->min), 0);
		KUNIT_EXPECT_EQ(test, bench.q->options.value[i], desc->min);
		KUNIT_EXPECT_EQ(test, CHANGE(test, desc->type, desc->max), 0);
		if (desc->min)
			KUNIT_EXPECT_EQ(test, CHANGE(test, desc->type, desc->min - 1), -EINVAL);
		if (desc->max < all) {
			KUNIT_EXPECT_EQ(test, CHANGE(test, desc->type, desc->max + 1), -EINVAL);
			KUNIT_EXPECT_EQ(test, CHANGE(test, desc->type, all), -EINVAL);
		}
		KUNIT_EXPECT_EQ(test, bench.q->options.value[i], desc->max);
	}
}

/* One wrong option: none takes effect. */
static void change__all_or_nothing(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, CHANGE(test, TCA_TRIM_LIMIT, 100, TCA_TRIM_SIZE, 63), -EINVAL);
	KUNIT_EXPECT_EQ(test, bench.q->cfg.limit, 8);
	MUST_CHANGE(test, TCA_TRIM_DSCP, 3, TCA_TRIM_CONTROL, BIT_ULL(EF));
	KUNIT_EXPECT_EQ(test, bench.q->cfg.control, BIT_ULL(3) | BIT_ULL(EF));
	MUST_CHANGE(test, TCA_TRIM_DSCP, 4);
	KUNIT_EXPECT_EQ(test, bench.q->cfg.control, BIT_ULL(4) | BIT_ULL(EF));
}

static void change__equal_memory(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, bench.q->cfg.header_limit, 8 * 1514);
	MUST_CHANGE(test, TCA_TRIM_LIMIT, 10);
	KUNIT_EXPECT_EQ(test, bench.q->cfg.header_limit, 10 * 1514);
	MUST_CHANGE(test, TCA_TRIM_HEADER_LIMIT, 5000, TCA_TRIM_LIMIT, 20);
	KUNIT_EXPECT_EQ(test, bench.q->cfg.header_limit, 5000);
	bench.dev->mtu = 65535;
	MUST_CHANGE(test, TCA_TRIM_HEADER_LIMIT, 0, TCA_TRIM_LIMIT, 1000000);
	KUNIT_EXPECT_EQ(test, bench.q->cfg.header_limit, U32_MAX);
	bench.dev->mtu = 1500;
}

static void change__shorter_queues(struct kunit *test)
{
	struct packet p = {};
	u32 i;

	fill(test);
	for (i = 0; i < 6; i++)
		give(test, &p);
	MUST_CHANGE(test, TCA_TRIM_LIMIT, 3, TCA_TRIM_HEADER_LIMIT, 300);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.sch->qstats.drops, 5 + 4);
	/* The first packets are dropped. */
	KUNIT_EXPECT_EQ(test, take(), 13);
	KUNIT_EXPECT_EQ(test, take(), 14);
	KUNIT_EXPECT_EQ(test, take(), 6);
	EXPECT_AUDIT(test);
}

static void dump__gives_back_what_was_set(struct kunit *test)
{
	struct sk_buff *skb = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	struct nlattr *tb[TCA_TRIM_MAX + 1];
	u32 room;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	MUST_CHANGE(test, TCA_TRIM_TRIMMABLE, BIT_ULL(63) | 5, TCA_TRIM_RATIO, 77);
	KUNIT_EXPECT_GT(test, trim_dump(bench.sch, skb), 0);
	KUNIT_ASSERT_EQ(test, nla_parse_nested_deprecated(tb, TCA_TRIM_MAX,
							  (struct nlattr *)skb->data,
							  trim_policy, NULL), 0);
	KUNIT_EXPECT_EQ(test, nla_get_u64(tb[TCA_TRIM_TRIMMABLE]), BIT_ULL(63) | 5);
	KUNIT_EXPECT_EQ(test, nla_get_u32(tb[TCA_TRIM_RATIO]), 77);
	KUNIT_EXPECT_EQ(test, nla_get_u32(tb[TCA_TRIM_HEADER_LIMIT]), 8 * 1514);
	KUNIT_EXPECT_EQ(test, nla_get_u8(tb[TCA_TRIM_DSCP]), CS6);
	room = skb->len;
	while (room) {
		room -= 4;
		skb_trim(skb, 0);
		skb_reserve(skb, skb_tailroom(skb) - room);
		KUNIT_EXPECT_EQ(test, trim_dump(bench.sch, skb), -EMSGSIZE);
		KUNIT_EXPECT_EQ(test, skb->len, 0);
	}
	kfree_skb(skb);
}

static void reset__with_packets(struct kunit *test)
{
	struct packet p = {};
	u32 i;

	for (i = 0; i < 20; i++)
		give(test, &p);
	rtnl_lock();
	sch_tree_lock(bench.sch);
	trim_reset(bench.sch);
	sch_tree_unlock(bench.sch);
	rtnl_unlock();
	bench.packets = 0;
	bench.bytes = 0;
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, take(), 0);
	KUNIT_EXPECT_EQ(test, give(test, &p), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, take(), 21);
}

/* ---- everything ---- */

static struct packet random_packet(struct rnd_state *rnd)
{
	u32 word = prandom_u32_state(rnd);

	return (struct packet) {
		.len = 100 + prandom_u32_state(rnd) % 1400,
		.dscp = word & 7 ? 0 : word >> 8 & 3 ? CS6 : EF,
		.tags = word >> 3 & 1,
		.gso = word >> 10 & 15 ? 0 : 1 + prandom_u32_state(rnd) % 15000,
		.protocol = word >> 10 & 15 ? 0 : IPPROTO_TCP,
		.frag = word >> 14 & 15 ? 0 : 1,
		.v6 = word >> 18 & 1,
		.frags = word >> 19 & 1,
		.partial = !(word >> 10 & 15) || (word >> 20 & 1),
	};
}

static void random_change(struct kunit *test, struct rnd_state *rnd)
{
	MUST_CHANGE(test, TCA_TRIM_LIMIT, 1 + prandom_u32_state(rnd) % 12,
		    TCA_TRIM_HEADER_LIMIT, prandom_u32_state(rnd) % 3000,
		    TCA_TRIM_SIZE, 80 + prandom_u32_state(rnd) % 200,
		    TCA_TRIM_VICTIM, prandom_u32_state(rnd) % 3,
		    TCA_TRIM_RATIO, 1 + prandom_u32_state(rnd) % 4,
		    TCA_TRIM_RETURN, prandom_u32_state(rnd) % 2);
}

static void all__in_random_order(struct kunit *test)
{
	struct rnd_state rnd;
	struct packet p;
	u32 i;

	prandom_seed_state(&rnd, 20170821);
	for (i = 0; i < 20000; i++) {
		bench.coin = prandom_u32_state(&rnd);
		bench.refuse = !(bench.coin >> 8 & 3);
		bench.asked = 0;
		bench.fail_at = bench.coin >> 16 & 15;
		if (bench.coin >> 20 & 255) {
			p = random_packet(&rnd);
			give(test, &p);
		} else {
			random_change(test, &rnd);
		}
		if (bench.coin >> 28 & 1)
			take();
		KUNIT_ASSERT_STREQ_MSG(test, audit(), "all adds up", "step %u", i);
	}
	KUNIT_EXPECT_GT(test, bench.q->stats.returned, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.dropped_memory, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.tx_trim_packets, 0);
}

/* ---- before and after each test ---- */

static int bench_init(struct kunit *test)
{
	static const struct net_device_ops device_ops;
	static struct Qdisc_ops ops;
	struct netdev_queue *queue;

	memset(&bench, 0, sizeof(bench));
	bench.page = alloc_page(GFP_KERNEL);
	bench.dev = alloc_netdev(0, "bench", NET_NAME_UNKNOWN, ether_setup);
	if (!bench.page || !bench.dev)
		return -ENOMEM;
	memset(page_address(bench.page), 0xa5, PAGE_SIZE);
	bench.dev->netdev_ops = &device_ops;
	queue = netdev_get_tx_queue(bench.dev, 0);
	rcu_assign_pointer(queue->qdisc, &noop_qdisc);
	rcu_assign_pointer(queue->qdisc_sleeping, &noop_qdisc);
	ops = trim_qdisc_ops;
	rtnl_lock();
	bench.sch = qdisc_create_dflt(queue, &ops, TC_H_ROOT, NULL);
	rtnl_unlock();
	if (!bench.sch)
		return -ENOMEM;
	bench.q = qdisc_priv(bench.sch);
	return 0;
}

/* When the qdisc is destroyed, all packets must be freed. */
static void bench_exit(struct kunit *test)
{
	rtnl_lock();
	if (bench.sch)
		qdisc_put(bench.sch);
	rtnl_unlock();
	rcu_barrier();
	kfree_skb(bench.returned);
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
	free_netdev(bench.dev);
	__free_page(bench.page);
}

static struct kunit_case trim_qdisc_cases[] = {
	KUNIT_CASE(overflow__trims_the_arrival),
	KUNIT_CASE(overflow__trims_the_tail),
	KUNIT_CASE(overflow__the_tail_of_one),
	KUNIT_CASE(overflow__by_coin),
	KUNIT_CASE(overflow__untrimmable),
	KUNIT_CASE(overflow__reasons),
	KUNIT_CASE(overflow__short_packets_pass),
	KUNIT_CASE(enqueue__control),
	KUNIT_CASE(enqueue__no_ip),
	KUNIT_CASE(cut__ipv6),
	KUNIT_CASE(cut__vlan_tags),
	KUNIT_CASE(cut__accelerated_tag),
	KUNIT_CASE(cut__pages),
	KUNIT_CASE(cut__checksum_of_the_device),
	KUNIT_CASE(cut__leaves_clones_alone),
	KUNIT_CASE(cut__not_a_shared_packet),
	KUNIT_CASE(cut__size_table),
	KUNIT_CASE(cut__without_memory),
	KUNIT_CASE(headers__full),
	KUNIT_CASE(dequeue__ratio),
	KUNIT_CASE(dequeue__new_round),
	KUNIT_CASE(return__swaps_addresses),
	KUNIT_CASE(return__the_tail),
	KUNIT_CASE(return__not),
	KUNIT_CASE(return__once),
	KUNIT_CASE(gso__is_segmented),
	KUNIT_CASE(change__ranges),
	KUNIT_CASE(change__all_or_nothing),
	KUNIT_CASE(change__equal_memory),
	KUNIT_CASE(change__shorter_queues),
	KUNIT_CASE(dump__gives_back_what_was_set),
	KUNIT_CASE(reset__with_packets),
	KUNIT_CASE(all__in_random_order),
	{}
};

static struct kunit_suite trim_qdisc_suite = {
	.name = "timely_trim_qdisc",
	.init = bench_init,
	.exit = bench_exit,
	.test_cases = trim_qdisc_cases,
};

kunit_test_suite(trim_qdisc_suite);
