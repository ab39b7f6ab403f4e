// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's receiver: tell senders when their packets arrived.
 *
 * Data that a rule of its network namespace asks for is answered, about once for
 * ten packets, with an OR-ACK: a small UDP packet that names the flow, a packet
 * of it and when that was received. What a sender makes of it is in
 * net/timely/onramp.c; the packet itself in orack.c.
 *
 *	driver -> tracepoint -> flow's state, rate limit -> ring -> tasklet -> IP
 *
 * The tasklet runs when the driver's poll is over: of the OR-ACKs that a flow's packets
 * in it are due only one is sent, of the last of them.
 *
 * A packet is seen where its driver hands it to the kernel, before GRO, at the
 * tracepoints that are there; they are joined only while some namespace has a
 * rule. A packet that comes by again, from a bridge or a mirror, has been through
 * the stack already and says so (skb_iif). Its namespace is its device's.
 *
 * It is answered whatever becomes of it in the stack, which has not looked at it
 * yet: hence the checks that IP would make, and nothing that is of the
 * transport's. What cannot be told from the first header alone is not answered:
 * fragments, IP options, extension headers, link-local addresses.
 *
 * The path of a packet takes no lock and allocates nothing: each CPU has a table
 * of the flows that it saw last. A flow that was forgotten, or is seen by another
 * CPU, is new and gets some OR-ACKs more. Nothing is sent from the tracepoint,
 * where a driver may hold what sending takes; a tasklet does that.
 *
 * An OR-ACK is no longer than what it answers, and each peer gets only so many:
 * to lie about a source address gains nobody anything.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/jhash.h>
#include <linux/kernel_stat.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/busy_poll.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/sock.h>
#include <net/udp.h>

#include <net/timely_nic.h>
#include <net/timely_onramp.h>
#include <net/timely_tracepoint.h>
#include <trace/events/net.h>
#include <uapi/linux/timely.h>
#include <timely/engine/clock.h>
#include <timely/engine/orack.h>

#include "timely_acker.h"

/* OR-ACKs at once to each peer. */
#define ACKER_BURST		256

/* The first packets of a flow are answered each, and the first after so much
 * idleness: the sender knows nothing of the path then.
 */
#define ACKER_FIRST_PACKETS	10
#define ACKER_IDLE_NS		NSEC_PER_MSEC

/* Of each CPU: flows remembered, and OR-ACKs waiting for the tasklet, which sends
 * so many in a turn. A NAPI instance's turn is 64 packets.
 */
#define ACKER_SETS_LOG		9
#define ACKER_SETS		(1 << ACKER_SETS_LOG)
#define ACKER_WAYS		2
#define ACKER_RING		256
#define ACKER_TURN		64

#define ACKER_PEERS_LOG		10

/* Flows keep time in units of 2^10 ns, which come round each 73 minutes. */
#define ACKER_TIME_SHIFT	10

/**
 * struct acker_flow - a flow that a CPU saw
 * @tuple: its name
 * @generation: of the rules by which it was judged, 0 for an empty place
 * @bytes: since the last OR-ACK
 * @seen: when its last packet came, see ACKER_TIME_SHIFT
 * @answer: where in the ring its last OR-ACK was put, the low bits
 * @first: packets still to be answered each
 * @wanted: a rule asks for it and it is meant for us
 */
struct acker_flow {
	struct timely_tuple tuple;
	u32 generation;
	u32 bytes;
	u32 seen;
	u16 answer;
	u8 first;
	bool wanted;
};

/**
 * struct acker_answer - an OR-ACK waiting to be sent
 * @orack: its contents; the tuple's net is a pointer
 * @arrived_ns: when the data came, CLOCK_MONOTONIC
 * @priority: of the data
 * @oif: device to route by, 0 for any
 * @tos: of the data, without ECN
 * @ecn: INET_ECN_*
 */
struct acker_answer {
	struct timely_orack orack;
	u64 arrived_ns;
	u32 priority;
	int oif;
	u8 tos;
	u8 ecn;
};

/**
 * struct acker_packet - what a packet's headers tell
 * @tuple: its flow
 * @bytes: of the IP packet
 * @seq: TCP's sequence number
 * @payload: where UDP's payload begins
 * @payload_bytes: and its length
 * @tos: IPv4's TOS or IPv6's traffic class
 */
struct acker_packet {
	struct timely_tuple tuple;
	u32 bytes;
	u32 seq;
	u32 payload;
	u32 payload_bytes;
	u8 tos;
};

/**
 * struct acker_cpu - a CPU's part
 * @flows: by hash, the flows that it saw last
 * @last: the one that it saw last of all
 * @poll: the softirq in which it did, if it was one
 * @now: when that began, see ACKER_TIME_SHIFT
 * @packet: the one that it sees
 * @tasklet: sends what is in @ring
 * @head: answers put in @ring since ever, by the tracepoints
 * @tail: and taken out, by the tasklet: of another CPU when this one went off line
 * @ring: waiting answers
 */
struct acker_cpu {
	struct acker_flow flows[ACKER_SETS][ACKER_WAYS];
	struct acker_flow *last;
	u32 poll;
	u32 now;
	struct acker_packet packet;
	struct tasklet_struct tasklet;
	u32 head ____cacheline_aligned;
	u32 tail ____cacheline_aligned;
	struct acker_answer ring[ACKER_RING];
};

/* Index of a namespace's struct acker_net. */
unsigned int timely_acker_net_id;
static DEFINE_PER_CPU(struct acker_cpu *, acker_cpus);

/* When each peer's share is used up, CLOCK_MONOTONIC; peers by hash, some of
 * which share one.
 */
static atomic64_t acker_peers[1 << ACKER_PEERS_LOG];
static u32 acker_seed __ro_after_init;

/* Guards what follows, and each namespace's config against other writers. */
DEFINE_MUTEX(timely_acker_mutex);
static unsigned int acker_users; /* namespaces with rules */
static bool acker_joined; /* the probe is on the tracepoints */

/* ---- rules ---- */

static bool acker_rule_matches(const struct acker_rule *rule,
			       const struct timely_tuple *tuple)
{
	u16 port = ntohs(tuple->dport);

	if (rule->family != tuple->family ||
	    (rule->port_last && (port < rule->port_first || port > rule->port_last)))
		return false;
	return ipv6_prefix_equal((const struct in6_addr *)rule->prefix,
				 (const struct in6_addr *)tuple->saddr, rule->length);
}

static bool acker_is_ours4(struct net *net, const struct net_device *dev,
			   const struct timely_tuple *tuple)
{
	__be32 from = tuple->saddr[0];

	return !ipv4_is_multicast(from) && !ipv4_is_lbcast(from) &&
	       !ipv4_is_zeronet(from) && !ipv4_is_loopback(from) &&
	       inet_addr_type_dev_table(net, dev, tuple->daddr[0]) == RTN_LOCAL;
}

static bool acker_is_ours6(struct net *net, const struct timely_tuple *tuple)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct in6_addr *from = (const struct in6_addr *)tuple->saddr;
	const struct in6_addr *to = (const struct in6_addr *)tuple->daddr;
	const int odd = IPV6_ADDR_MULTICAST | IPV6_ADDR_LOOPBACK | IPV6_ADDR_LINKLOCAL;
	int type = ipv6_addr_type(from);

	return type != IPV6_ADDR_ANY && !((type | ipv6_addr_type(to)) & odd) &&
	       ipv6_chk_addr(net, to, NULL, 0);
#else
	return false;
#endif
}

/* Is it data that somebody asked for, from one host to this one? */
static bool acker_wants(const struct acker_config *config, struct net *net,
			const struct net_device *dev, const struct timely_tuple *tuple)
{
	u32 i;

	for (i = 0; i < config->count; i++)
		if (acker_rule_matches(&config->rules[i], tuple))
			break;
	/* An OR-ACK of port 0 would be taken for none. */
	if (i == config->count || !tuple->sport || !tuple->dport)
		return false;
	return tuple->family == AF_INET ? acker_is_ours4(net, dev, tuple) :
					  acker_is_ours6(net, tuple);
}

/* ---- headers ---- */

static bool acker_parse_tcp(const struct sk_buff *skb, u32 offset, u32 bytes,
			    struct acker_packet *packet)
{
	struct tcphdr buffer;
	const struct tcphdr *th = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);

	/* A SYN's data begin one later than its number says, and are rare. */
	if (!th || th->doff < 5 || bytes <= th->doff * 4 || th->syn || th->rst)
		return false;
	packet->tuple.sport = th->source;
	packet->tuple.dport = th->dest;
	packet->seq = ntohl(th->seq);
	return true;
}

static bool acker_parse_udp(const struct sk_buff *skb, u32 offset, u32 bytes,
			    struct acker_packet *packet)
{
	struct udphdr buffer;
	const struct udphdr *uh = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	__be16 orack_port = htons(timely_onramp_port());

	/* Two receivers would answer each other's answers for ever. */
	if (!uh || uh->source == orack_port || uh->dest == orack_port)
		return false;
	packet->tuple.sport = uh->source;
	packet->tuple.dport = uh->dest;
	packet->payload = offset + sizeof(*uh);
	packet->payload_bytes = bytes - sizeof(*uh);
	return true;
}

/* @bytes of payload of the protocol are all there; more than UDP's header. */
static bool acker_parse_transport(const struct sk_buff *skb, u32 offset, u32 bytes,
				  struct acker_packet *packet)
{
	if (packet->tuple.protocol == IPPROTO_TCP)
		return acker_parse_tcp(skb, offset, bytes, packet);
	if (packet->tuple.protocol == IPPROTO_UDP)
		return acker_parse_udp(skb, offset, bytes, packet);
	return false;
}

/* The IP packet's length: it says so itself, unless it is too long for that. */
static u32 acker_length(const struct sk_buff *skb, u32 offset, u32 told)
{
	return told || !skb_is_gso(skb) ? told : skb->len - offset;
}

static void acker_set_address4(__be32 *words, __be32 address)
{
	words[0] = address;
	words[1] = 0;
	words[2] = 0;
	words[3] = 0;
}

static bool acker_parse4(const struct sk_buff *skb, u32 offset,
			 struct acker_packet *packet)
{
	struct iphdr buffer;
	const struct iphdr *ip = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);

	if (!ip || ip->version != 4 || ip->ihl != 5 || ip_is_fragment(ip))
		return false;
	packet->bytes = acker_length(skb, offset, ntohs(ip->tot_len));
	if (packet->bytes < TIMELY_ORACK_IPV4_BYTES || packet->bytes > skb->len - offset)
		return false;
	packet->tuple.family = AF_INET;
	packet->tuple.protocol = ip->protocol;
	acker_set_address4(packet->tuple.saddr, ip->saddr);
	acker_set_address4(packet->tuple.daddr, ip->daddr);
	packet->tos = ip->tos;
	return acker_parse_transport(skb, offset + sizeof(*ip),
				     packet->bytes - sizeof(*ip), packet) &&
	       !ip_fast_csum(ip, ip->ihl);
}

static bool acker_parse6(const struct sk_buff *skb, u32 offset,
			 struct acker_packet *packet)
{
	struct ipv6hdr buffer;
	const struct ipv6hdr *ip = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	u32 bytes;

	if (!ip || ip->version != 6)
		return false;
	bytes = ntohs(ip->payload_len);
	packet->bytes = acker_length(skb, offset, bytes ? bytes + sizeof(*ip) : 0);
	if (packet->bytes < TIMELY_ORACK_IPV6_BYTES || packet->bytes > skb->len - offset)
		return false;
	packet->tuple.family = AF_INET6;
	packet->tuple.protocol = ip->nexthdr;
	memcpy(packet->tuple.saddr, &ip->saddr, sizeof(packet->tuple.saddr));
	memcpy(packet->tuple.daddr, &ip->daddr, sizeof(packet->tuple.daddr));
	packet->tos = ipv6_get_dsfield(ip);
	return acker_parse_transport(skb, offset + sizeof(*ip),
				     packet->bytes - sizeof(*ip), packet);
}

/* At the tracepoints a packet's data begin after its Ethernet header; a VLAN's
 * tag that the NIC did not take out follows.
 */
static bool acker_parse(const struct sk_buff *skb, struct acker_packet *packet)
{
	__be16 protocol = skb->protocol;
	struct vlan_hdr buffer;
	const struct vlan_hdr *vlan;
	u32 offset = 0;

	if (unlikely(eth_type_vlan(protocol))) {
		vlan = skb_header_pointer(skb, 0, sizeof(buffer), &buffer);
		if (!vlan)
			return false;
		protocol = vlan->h_vlan_encapsulated_proto;
		offset = VLAN_HLEN;
	}
	if (protocol == htons(ETH_P_IP))
		return acker_parse4(skb, offset, packet);
	if (protocol == htons(ETH_P_IPV6))
		return acker_parse6(skb, offset, packet);
	return false;
}

/* ---- flows ---- */

static u32 acker_hash(const struct timely_tuple *tuple)
{
	u32 ports = (__force u32)tuple->sport << 16 | (__force u32)tuple->dport;

	if (tuple->family == AF_INET)
		return jhash_3words((__force u32)tuple->saddr[0],
				    (__force u32)tuple->daddr[0], ports, acker_seed);
	return jhash_3words(jhash2((__force const u32 *)tuple->saddr, 4, acker_seed),
			    jhash2((__force const u32 *)tuple->daddr, 4, acker_seed),
			    ports, acker_seed);
}

static bool acker_is_flow(const struct acker_flow *flow, const struct acker_config *config,
			  const struct timely_tuple *tuple)
{
	return flow->generation == config->generation && timely_tuple_equal(&flow->tuple, tuple);
}

/* The flow's place, made for it if it has none. */
static struct acker_flow *acker_flow(struct acker_cpu *cpu,
				     const struct acker_config *config,
				     const struct timely_tuple *tuple, u32 now)
{
	struct acker_flow *set, *oldest;
	int way;

	/* Packets come in trains. */
	if (acker_is_flow(cpu->last, config, tuple))
		return cpu->last;
	set = cpu->flows[acker_hash(tuple) >> (32 - ACKER_SETS_LOG)];
	oldest = set;
	for (way = 0; way < ACKER_WAYS; way++) {
		if (acker_is_flow(&set[way], config, tuple)) {
			cpu->last = &set[way];
			return cpu->last;
		}
		if (now - set[way].seen > now - oldest->seen)
			oldest = &set[way];
	}
	/* Seen so long ago that it is to be judged. */
	*oldest = (struct acker_flow) {
		.tuple = *tuple,
		.generation = config->generation,
		.seen = now - (U32_MAX >> 1),
		.first = ACKER_FIRST_PACKETS,
	};
	cpu->last = oldest;
	return oldest;
}

/* Is an OR-ACK due with this packet? */
static bool acker_is_due(struct acker_flow *flow, const struct acker_config *config,
			 u32 bytes, bool idle)
{
	flow->bytes += bytes;
	if (flow->first)
		flow->first--;
	else if (!idle && flow->bytes < config->every)
		return false;
	flow->bytes = 0;
	return true;
}

/* ---- peers ---- */

/* A token bucket, kept as the time at which it is full again. */
static bool acker_peer_may(const struct acker_config *config,
			   const struct timely_tuple *tuple, u64 now_ns)
{
	u64 most_ns = ACKER_BURST * config->interval_ns;
	u32 hash = jhash2((__force const u32 *)tuple->saddr, 4,
			  acker_seed ^ config->generation);
	atomic64_t *full = &acker_peers[hash >> (32 - ACKER_PEERS_LOG)];
	s64 old = atomic64_read(full);
	u64 next;

	do {
		/* What is further ahead is of another rate. */
		next = (u64)old - now_ns > most_ns ? now_ns : old;
		next += config->interval_ns;
		if (next - now_ns > most_ns)
			return false;
	} while (!atomic64_try_cmpxchg(full, &old, next));
	return true;
}

/* ---- when the data came ---- */

static u32 acker_napi_id(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	if (skb->napi_id >= MIN_NAPI_ID)
		return skb->napi_id;
#endif
	return 0;
}

/* By the NIC's stamp, if there is one and it is known what it means. */
static bool acker_hardware_ns(const struct sk_buff *skb, u64 now_ns, u64 *arrived_ns)
{
	u64 stamp_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	u32 napi_id = acker_napi_id(skb);
	u32 ns_per_byte_q16;

	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		stamp_ns = timely_nic_stamp(skb, napi_id);
	return stamp_ns &&
	       timely_nic_arrival(napi_id, stamp_ns, now_ns, arrived_ns,
				  &ns_per_byte_q16) == TIMELY_STAMP_GOOD;
}

/* What the clock shows that tests pretend to have. */
static u64 acker_pretend(const struct acker_config *config, u64 real_ns, u64 arrived_ns)
{
	s64 since_ns = arrived_ns - config->test_since_ns;
	s32 rest_ns;
	s64 seconds = div_s64_rem(since_ns, NSEC_PER_SEC, &rest_ns);

	return real_ns + config->test_offset_ns + seconds * config->test_drift_ppb +
	       div_s64((s64)rest_ns * config->test_drift_ppb, NSEC_PER_SEC);
}

/* ---- from the tracepoint to the tasklet ---- */

static u32 acker_digest(const struct sk_buff *skb, const struct acker_packet *packet)
{
	u8 first[16];

	/* A packet that is answered has more than that. */
	if (skb_copy_bits(skb, packet->payload, first, sizeof(first)))
		return 0;
	return timely_udp_digest(first, packet->payload_bytes);
}

/* A switch that marks data of one kind may drop what is of no kind for the same
 * queue. Data that was marked was most likely ECT(0).
 */
static u8 acker_ecn(u8 tos)
{
	u8 ecn = tos & INET_ECN_MASK;

	return ecn == INET_ECN_CE ? INET_ECN_ECT_0 : ecn;
}

/* All but the flow's name. */
static void acker_fill(struct acker_answer *answer, const struct acker_config *config,
		       const struct sk_buff *skb, const struct acker_packet *packet,
		       u64 now_ns)
{
	struct timely_orack *orack = &answer->orack;

	answer->arrived_ns = now_ns;
	answer->tos = packet->tos & ~INET_ECN_MASK;
	answer->ecn = acker_ecn(packet->tos);
	answer->priority = skb->priority ? : rt_tos2priority(answer->tos);
	answer->oif = l3mdev_master_ifindex_rcu(skb->dev);
	orack->seq = packet->tuple.protocol == IPPROTO_TCP ? packet->seq :
							     acker_digest(skb, packet);
	orack->flags = acker_hardware_ns(skb, now_ns, &answer->arrived_ns) ?
			TIMELY_ORACK_HARDWARE : 0;
	orack->received_ns = ktime_to_ns(ktime_mono_to_real(answer->arrived_ns));
	if (config->test_since_ns)
		orack->received_ns = acker_pretend(config, orack->received_ns,
						   answer->arrived_ns);
}

/* The flow's OR-ACK that still waits, or NULL. */
static struct acker_answer *acker_waiting(struct acker_cpu *cpu, const struct acker_flow *flow,
					  u32 head, u32 tail)
{
	u16 ahead = flow->answer - tail;
	struct acker_answer *answer = &cpu->ring[(tail + ahead) % ACKER_RING];

	return ahead < head - tail && timely_tuple_equal(&answer->orack.tuple, &flow->tuple) ?
	       answer : NULL;
}

/* OR-ACKs leave when the driver's poll is over. Of a flow's packets in it the latest
 * tells most, and the others nothing that it would not: one goes for all.
 */
static void acker_push(struct acker_cpu *cpu, struct acker_flow *flow,
		       const struct acker_config *config, const struct sk_buff *skb,
		       const struct acker_packet *packet, u64 now_ns)
{
	u32 head = cpu->head;
	/* What is written to a place comes after it was read. */
	u32 tail = smp_load_acquire(&cpu->tail);
	struct acker_answer *answer = acker_waiting(cpu, flow, head, tail);

	if (answer) {
		acker_fill(answer, config, skb, packet, now_ns);
		return;
	}
	if (head - tail == ACKER_RING ||
	    !acker_peer_may(config, &packet->tuple, now_ns)) {
		timely_onramp_count(dev_net(skb->dev), TIMELY_ONRAMP_send_limited);
		return;
	}
	answer = &cpu->ring[head % ACKER_RING];
	answer->orack.tuple = packet->tuple;
	acker_fill(answer, config, skb, packet, now_ns);
	flow->answer = head;
	/* The tasklet may be another CPU's: it sees all of it. */
	smp_store_release(&cpu->head, head + 1);
	tasklet_schedule(&cpu->tasklet);
}

/* What a NIC's poll brings is of one time, as far as silence goes: it is read once. A
 * poll that is no softirq's may be a long one.
 */
static u32 acker_now(struct acker_cpu *cpu, bool polled)
{
	u32 poll = __this_cpu_read(kstat.softirqs[NET_RX_SOFTIRQ]);

	if (!polled || !in_serving_softirq() || poll != cpu->poll)
		cpu->now = ktime_get_ns() >> ACKER_TIME_SHIFT;
	cpu->poll = poll;
	return cpu->now;
}

static void acker_take(struct acker_cpu *cpu, const struct acker_config *config,
		       const struct sk_buff *skb, bool polled)
{
	struct acker_packet *packet = &cpu->packet;
	struct net *net = dev_net(skb->dev);
	u32 now = acker_now(cpu, polled);
	struct acker_flow *flow;
	bool idle;

	packet->tuple.net = (unsigned long)net;
	flow = acker_flow(cpu, config, &packet->tuple, now);
	idle = now - flow->seen > ACKER_IDLE_NS >> ACKER_TIME_SHIFT;
	flow->seen = now;
	/* Addresses may have changed meanwhile. */
	if (idle)
		flow->wanted = acker_wants(config, net, skb->dev, &packet->tuple);
	if (flow->wanted && acker_is_due(flow, config, packet->bytes, idle))
		acker_push(cpu, flow, config, skb, packet, ktime_get_ns());
}

/* Is it from outside, for this host, and here for the first time? A packet for a
 * bridge above the device, or a macvlan, seems to be another host's. Old drivers
 * pass packets on from hard interrupts, where the tables must not be touched.
 */
static bool acker_is_arrival(const struct sk_buff *skb)
{
	if (skb->skb_iif || skb->dev->flags & IFF_LOOPBACK ||
	    in_hardirq() || !softirq_count())
		return false;
	return skb->pkt_type == PACKET_HOST ||
	       (skb->pkt_type == PACKET_OTHERHOST &&
		rcu_access_pointer(skb->dev->rx_handler));
}

/* A driver passes a packet on, @polled in its poll. */
static void acker_probe(void *polled, const struct sk_buff *skb)
{
	const struct acker_config *config;
	struct acker_net *an;
	struct acker_cpu *cpu;

	rcu_read_lock();
	an = net_generic(dev_net(skb->dev), timely_acker_net_id);
	config = rcu_dereference(an->config);
	if (!config || !config->count || !acker_is_arrival(skb))
		goto out;
	cpu = __this_cpu_read(acker_cpus);
	if (acker_parse(skb, &cpu->packet))
		acker_take(cpu, config, skb, polled);
out:
	rcu_read_unlock();
}

/* ---- sending ---- */

/* The OR-ACK with its UDP header, and room for IP's; owns a reference to @dst,
 * which stays the caller's if it fails.
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
	/* For a qdisc; it is cheaper than to have it look at the headers. */
	skb_set_hash(skb, jhash2((__force const u32 *)orack->tuple.saddr, 4, acker_seed),
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
	/* An address of a subnet's broadcast is not known as one until here. */
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

/* Unless the namespace is going, or has forgotten its rules: acker_forget() sees
 * to it that there still is one.
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

/* Answers that are there to be taken out, by the tasklet or in its place. */
static u32 acker_head(const struct acker_cpu *cpu)
{
	/* Pairs with acker_push(): what is in them is there as well. */
	return smp_load_acquire(&cpu->head);
}

static void acker_send_all(struct tasklet_struct *tasklet)
{
	struct acker_cpu *cpu = from_tasklet(cpu, tasklet, tasklet);
	u32 tail = cpu->tail;
	int left = ACKER_TURN;

	/* The CPU has gone off line, and may be back and writing to what waits: that is
	 * lost, as OR-ACKs may be.
	 */
	if (unlikely(cpu != __this_cpu_read(acker_cpus))) {
		/* As below. */
		smp_store_release(&cpu->tail, acker_head(cpu));
		return;
	}
	while (left-- && tail != acker_head(cpu)) {
		/* A copy: sending may lead back to the tracepoint, and to this ring. */
		struct acker_answer answer = cpu->ring[tail % ACKER_RING];

		/* Pairs with acker_push(): the place may be used again. */
		smp_store_release(&cpu->tail, ++tail);
		acker_send(&answer);
	}
	if (tail != READ_ONCE(cpu->head))
		tasklet_schedule(tasklet);
}

/* ---- the tracepoints ---- */

static const char * const acker_point_names[] = {
	/* In a poll. */
	"napi_gro_receive_entry",
	"napi_gro_frags_entry",
	/* Anywhere. */
	"netif_receive_skb_entry",
	"netif_receive_skb_list_entry",
	"netif_rx_entry",
};

#define ACKER_POLLED	2

static struct tracepoint *acker_points[ARRAY_SIZE(acker_point_names)];

static void acker_find_points(void)
{
	int i;

	check_trace_callback_type_napi_gro_receive_entry(acker_probe);
	check_trace_callback_type_napi_gro_frags_entry(acker_probe);
	check_trace_callback_type_netif_receive_skb_entry(acker_probe);
	check_trace_callback_type_netif_receive_skb_list_entry(acker_probe);
	check_trace_callback_type_netif_rx_entry(acker_probe);
	for (i = 0; i < ARRAY_SIZE(acker_points); i++)
		acker_points[i] = timely_tracepoint_find(acker_point_names[i]);
}

static void acker_free_cpus(void)
{
	struct acker_cpu *cpu;
	int i;

	for_each_possible_cpu(i) {
		cpu = per_cpu(acker_cpus, i);
		if (!cpu)
			continue;
		tasklet_kill(&cpu->tasklet);
		per_cpu(acker_cpus, i) = NULL;
		kvfree(cpu);
	}
}

static int acker_alloc_cpus(void)
{
	struct acker_cpu *cpu;
	int i;

	for_each_possible_cpu(i) {
		cpu = kvzalloc_node(sizeof(*cpu), GFP_KERNEL_ACCOUNT, cpu_to_node(i));
		if (!cpu) {
			acker_free_cpus();
			return -ENOMEM;
		}
		cpu->last = cpu->flows[0];
		tasklet_setup(&cpu->tasklet, acker_send_all);
		per_cpu(acker_cpus, i) = cpu;
	}
	return 0;
}

static void *acker_polled(int point)
{
	return (void *)(unsigned long)(point < ACKER_POLLED);
}

static void acker_leave_points(int count)
{
	while (count--)
		if (acker_points[count])
			tracepoint_probe_unregister(acker_points[count], acker_probe,
						    acker_polled(count));
	tracepoint_synchronize_unregister();
}

static int acker_join(void)
{
	int err, i;

	if (acker_joined)
		return 0;
	err = acker_alloc_cpus();
	for (i = 0; !err && i < ARRAY_SIZE(acker_points); i++) {
		if (!acker_points[i])
			continue;
		err = tracepoint_probe_register(acker_points[i], acker_probe,
						acker_polled(i));
		if (err) {
			acker_leave_points(i);
			acker_free_cpus();
		}
	}
	acker_joined = !err;
	return err;
}

static void acker_leave(void)
{
	if (!acker_joined)
		return;
	acker_joined = false;
	acker_leave_points(ARRAY_SIZE(acker_points));
	acker_free_cpus();
}

/* ---- for timely_acker_ctl.c ---- */

/* Rules that come and go in a loop do not patch the kernel's text each time: the probe leaves
 * when no namespace has had a rule for so long.
 */
#define ACKER_IDLE	(5 * HZ)

static void acker_idle(struct work_struct *work)
{
	mutex_lock(&timely_acker_mutex);
	if (!acker_users)
		acker_leave();
	mutex_unlock(&timely_acker_mutex);
}

static DECLARE_DELAYED_WORK(acker_idle_work, acker_idle);

/**
 * timely_acker_get() - a network namespace has rules, and had none before
 *
 * Under timely_acker_mutex.
 *
 * Return: 0, or an error if the tracepoints could not be joined.
 */
int timely_acker_get(void)
{
	int err = acker_users ? 0 : acker_join();

	acker_users += !err;
	return err;
}

/**
 * timely_acker_put() - a network namespace has no rules any more
 *
 * Under timely_acker_mutex.
 */
void timely_acker_put(void)
{
	if (!--acker_users)
		mod_delayed_work(system_wq, &acker_idle_work, ACKER_IDLE);
}

bool timely_acker_has_points(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(acker_points); i++)
		if (acker_points[i])
			return true;
	return false;
}

/* Take back what waits in a CPU's ring for namespaces that are going. */
static void acker_forget_cpu(struct acker_cpu *cpu)
{
	struct acker_answer *answer;
	struct acker_net *an;
	struct net *net;
	u32 i;

	tasklet_disable(&cpu->tasklet);
	for (i = cpu->tail; i != acker_head(cpu); i++) {
		answer = &cpu->ring[i % ACKER_RING];
		if (!answer->orack.tuple.net)
			continue;
		net = (struct net *)(unsigned long)answer->orack.tuple.net;
		an = net_generic(net, timely_acker_net_id);
		if (!rcu_access_pointer(an->config))
			answer->orack.tuple.net = 0;
	}
	tasklet_enable(&cpu->tasklet);
}

/**
 * timely_acker_forget() - nothing is sent any more for namespaces without a configuration
 */
void timely_acker_forget(void)
{
	struct acker_cpu *cpu;
	int i;

	mutex_lock(&timely_acker_mutex);
	for_each_possible_cpu(i) {
		cpu = per_cpu(acker_cpus, i);
		if (cpu)
			acker_forget_cpu(cpu);
	}
	mutex_unlock(&timely_acker_mutex);
}

/**
 * timely_acker_init() - before any other function here
 */
void timely_acker_init(void)
{
	BUILD_BUG_ON(sizeof(struct acker_flow) > 64);

	acker_seed = get_random_u32();
	acker_find_points();
}

/**
 * timely_acker_stop() - leave the tracepoints
 */
void timely_acker_stop(void)
{
	mutex_lock(&timely_acker_mutex);
	acker_leave();
	mutex_unlock(&timely_acker_mutex);
}

/**
 * timely_acker_exit() - after the last timely_acker_put()
 */
void timely_acker_exit(void)
{
	cancel_delayed_work_sync(&acker_idle_work);
}
