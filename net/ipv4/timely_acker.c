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
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/busy_poll.h>
#include <net/dsfield.h>
#include <net/genetlink.h>
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
#include <net/timely_tenant.h>
#include <net/timely_tracepoint.h>
#include <trace/events/net.h>
#include <uapi/linux/timely.h>
#include <timely/engine/clock.h>
#include <timely/engine/orack.h>

#define ACKER_RULES_MAX		256

/* Bytes of a flow's IP packets for an OR-ACK: ten packets of Ethernet's MTU, as
 * in the paper (section 4).
 */
#define ACKER_EVERY		15000
#define ACKER_EVERY_MIN		1500
#define ACKER_EVERY_MAX		10000000

/* The first packets of a flow are answered each, and the first after so much
 * idleness: the sender knows nothing of the path then.
 */
#define ACKER_FIRST_PACKETS	10
#define ACKER_IDLE_NS		NSEC_PER_MSEC

/* OR-ACKs a second to each peer, and how many at once. 100 Gb/s of full packets,
 * each tenth answered, are 830000.
 */
#define ACKER_RATE		1000000
#define ACKER_RATE_MAX		100000000
#define ACKER_BURST		256

/* The pretended clock, for tests: days, years; as much as PTP clocks can be told. */
#define ACKER_TEST_OFFSET_MAX	1000000000000000000LL
#define ACKER_TEST_DRIFT_MAX	1000000

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
 * struct acker_rule - data that OR-ACKs are sent for
 * @prefix: source addresses; of IPv4 the first word only
 * @family: AF_INET, AF_INET6
 * @length: bits of @prefix that count
 * @port_first: local ports, host byte order; 0 for all
 * @port_last: 0 for all
 *
 * Without gaps, to be compared as bytes.
 */
struct acker_rule {
	__be32 prefix[4];
	u16 family;
	u16 length;
	u16 port_first;
	u16 port_last;
};

/**
 * struct acker_config - what a namespace has set; never changed, only replaced
 * @rcu: for its end
 * @interval_ns: of OR-ACKs to a peer
 * @test_since_ns: when the pretended clock was set, CLOCK_MONOTONIC; 0 if it is not
 * @test_offset_ns: what it was ahead then
 * @test_drift_ppb: how much faster it goes
 * @every: bytes for an OR-ACK
 * @rate: OR-ACKs a second to a peer
 * @generation: of the rules, a number that no other namespace has
 * @count: of @rules
 * @rules: in the order in which they were added
 */
struct acker_config {
	struct rcu_head rcu;
	u64 interval_ns;
	u64 test_since_ns;
	s64 test_offset_ns;
	s32 test_drift_ppb;
	u32 every;
	u32 rate;
	u32 generation;
	u32 count;
	struct acker_rule rules[];
};

/**
 * struct acker_net - a namespace's
 * @config: NULL as long as nothing was set, and when the namespace is going
 */
struct acker_net {
	struct acker_config __rcu *config;
};

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

static unsigned int acker_net_id;
static DEFINE_PER_CPU(struct acker_cpu *, acker_cpus);

/* When each peer's share is used up, CLOCK_MONOTONIC; peers by hash, some of
 * which share one.
 */
static atomic64_t acker_peers[1 << ACKER_PEERS_LOG];
static u32 acker_seed __ro_after_init;

/* Guards what follows, and each namespace's config against other writers. */
static DEFINE_MUTEX(acker_mutex);
static unsigned int acker_users; /* namespaces with rules */
static bool acker_joined; /* the probe is on the tracepoints */
static u32 acker_generation;

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
	an = net_generic(dev_net(skb->dev), acker_net_id);
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
	an = net_generic(net, acker_net_id);
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

/* Rules that come and go in a loop do not patch the kernel's text each time: the probe leaves
 * when no namespace has had a rule for so long.
 */
#define ACKER_IDLE	(5 * HZ)

static void acker_idle(struct work_struct *work)
{
	mutex_lock(&acker_mutex);
	if (!acker_users)
		acker_leave();
	mutex_unlock(&acker_mutex);
}

static DECLARE_DELAYED_WORK(acker_idle_work, acker_idle);

/* ---- namespaces ---- */

static const struct acker_config acker_default = {
	.interval_ns = NSEC_PER_SEC / ACKER_RATE,
	.every = ACKER_EVERY,
	.rate = ACKER_RATE,
};

/* A namespace's, or the default; under the mutex. */
static const struct acker_config *acker_config_of(struct net *net)
{
	struct acker_net *an = net_generic(net, acker_net_id);

	return rcu_dereference_protected(an->config, lockdep_is_held(&acker_mutex)) ? :
	       &acker_default;
}

/* A copy to be changed, with room for so many rules; it has no more of them. */
static struct acker_config *acker_copy(const struct acker_config *config, u32 count)
{
	struct acker_config *copy = kzalloc(struct_size(copy, rules, count), GFP_KERNEL_ACCOUNT);

	if (!copy)
		return NULL;
	*copy = *config;
	copy->count = count;
	memcpy(copy->rules, config->rules,
	       min(count, config->count) * sizeof(*config->rules));
	return copy;
}

/* The new one takes effect, or is freed if that fails. NULL always succeeds. */
static int acker_replace(struct net *net, struct acker_config *config)
{
	struct acker_net *an = net_generic(net, acker_net_id);
	struct acker_config *old = rcu_dereference_protected(an->config,
						lockdep_is_held(&acker_mutex));
	bool had = old && old->count;
	bool has = config && config->count;
	int err;

	if (has && !had && !acker_users) {
		err = acker_join();
		if (err) {
			kfree(config);
			return err;
		}
	}
	acker_users += has - had;
	rcu_assign_pointer(an->config, config);
	if (old)
		kfree_rcu(old, rcu);
	if (had && !has && !acker_users)
		mod_delayed_work(system_wq, &acker_idle_work, ACKER_IDLE);
	return 0;
}

/* From here on no packet of the namespace is answered, and nothing is sent once
 * those that did not know of that are through, which cleanup_net() waits for.
 */
static void __net_exit acker_net_pre_exit(struct net *net)
{
	mutex_lock(&acker_mutex);
	acker_replace(net, NULL);
	mutex_unlock(&acker_mutex);
}

/* Take back what waits in a CPU's ring for namespaces that are going. */
static void acker_forget(struct acker_cpu *cpu)
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
		an = net_generic(net, acker_net_id);
		if (!rcu_access_pointer(an->config))
			answer->orack.tuple.net = 0;
	}
	tasklet_enable(&cpu->tasklet);
}

static void __net_exit acker_net_exit_batch(struct list_head *nets)
{
	struct acker_cpu *cpu;
	int i;

	mutex_lock(&acker_mutex);
	for_each_possible_cpu(i) {
		cpu = per_cpu(acker_cpus, i);
		if (cpu)
			acker_forget(cpu);
	}
	mutex_unlock(&acker_mutex);
}

static struct pernet_operations acker_net_ops = {
	.pre_exit = acker_net_pre_exit,
	.exit_batch = acker_net_exit_batch,
	.id = &acker_net_id,
	.size = sizeof(struct acker_net),
};

/* ---- netlink ---- */

static struct genl_family acker_family;

static const struct nla_policy acker_set_policy[] = {
	[TIMELY_A_ACKER_EVERY] = { .type = NLA_U32 },
	[TIMELY_A_ACKER_RATE] = { .type = NLA_U32 },
	[TIMELY_A_ACKER_TEST_OFFSET_NS] = { .type = NLA_S64 },
	[TIMELY_A_ACKER_TEST_DRIFT_PPB] = { .type = NLA_S32 },
};

static const struct nla_policy acker_rule_policy[] = {
	[TIMELY_A_RULE_PREFIX] = { .type = NLA_BINARY, .len = sizeof(struct in6_addr) },
	[TIMELY_A_RULE_LENGTH] = { .type = NLA_U8 },
	[TIMELY_A_RULE_PORT_FIRST] = { .type = NLA_U16 },
	[TIMELY_A_RULE_PORT_LAST] = { .type = NLA_U16 },
};

static u32 acker_address_bytes(u16 family)
{
	return family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
}

static int acker_put_rule(struct sk_buff *skb, const struct acker_rule *rule)
{
	struct nlattr *nest = nla_nest_start(skb, TIMELY_A_RULE);

	if (!nest ||
	    nla_put(skb, TIMELY_A_RULE_PREFIX, acker_address_bytes(rule->family),
		    rule->prefix) ||
	    nla_put_u8(skb, TIMELY_A_RULE_LENGTH, rule->length) ||
	    nla_put_u16(skb, TIMELY_A_RULE_PORT_FIRST, rule->port_first) ||
	    nla_put_u16(skb, TIMELY_A_RULE_PORT_LAST, rule->port_last))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int acker_put(struct sk_buff *skb, const struct acker_config *config)
{
	int err = 0;
	u32 i;

	if (nla_put_u32(skb, TIMELY_A_ACKER_EVERY, config->every) ||
	    nla_put_u32(skb, TIMELY_A_ACKER_RATE, config->rate) ||
	    nla_put_u32(skb, TIMELY_A_ACKER_RULES_MAX, ACKER_RULES_MAX) ||
	    nla_put_s64(skb, TIMELY_A_ACKER_TEST_OFFSET_NS, config->test_offset_ns,
			TIMELY_A_PAD) ||
	    nla_put_s32(skb, TIMELY_A_ACKER_TEST_DRIFT_PPB, config->test_drift_ppb))
		return -EMSGSIZE;
	for (i = 0; !err && i < config->count; i++)
		err = acker_put_rule(skb, &config->rules[i]);
	return err;
}

/* Room for an answer with as many rules as there can be. */
static size_t acker_answer_bytes(void)
{
	size_t rule = nla_total_size(sizeof(struct in6_addr)) +
		      nla_total_size(sizeof(u8)) + 2 * nla_total_size(sizeof(u16));

	return 4 * nla_total_size(sizeof(u32)) + nla_total_size_64bit(sizeof(s64)) +
	       ACKER_RULES_MAX * nla_total_size(rule);
}

static int acker_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(acker_answer_bytes(), GFP_KERNEL);
	int err = -EMSGSIZE;
	void *header;

	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &acker_family, 0, TIMELY_CMD_ACKER_GET);
	mutex_lock(&acker_mutex);
	if (header)
		err = acker_put(reply, acker_config_of(genl_info_net(info)));
	mutex_unlock(&acker_mutex);
	if (err) {
		nlmsg_free(reply);
		return err;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

/* In words: a range in the policy would be refused without saying what is allowed. */
#define acker_refuse(info, attr, err, words)				\
({									\
	NL_SET_ERR_MSG_ATTR((info)->extack, attr, "timely_acker: " words);	\
	(err);								\
})

static int acker_parse_limits(struct genl_info *info, struct acker_config *config)
{
	const struct nlattr *every = info->attrs[TIMELY_A_ACKER_EVERY];
	const struct nlattr *rate = info->attrs[TIMELY_A_ACKER_RATE];

	if (every)
		config->every = nla_get_u32(every);
	if (config->every < ACKER_EVERY_MIN || config->every > ACKER_EVERY_MAX)
		return acker_refuse(info, every, -ERANGE,
				    "ACKER_EVERY: allowed are 1500 to 10000000 bytes");
	if (rate)
		config->rate = nla_get_u32(rate);
	if (!config->rate || config->rate > ACKER_RATE_MAX)
		return acker_refuse(info, rate, -ERANGE,
				    "ACKER_RATE: allowed are 1 to 100000000 OR-ACKs a second");
	config->interval_ns = DIV_ROUND_UP(NSEC_PER_SEC, config->rate);
	return 0;
}

static int acker_parse_test(struct genl_info *info, struct acker_config *config)
{
	const struct nlattr *offset = info->attrs[TIMELY_A_ACKER_TEST_OFFSET_NS];
	const struct nlattr *drift = info->attrs[TIMELY_A_ACKER_TEST_DRIFT_PPB];

	if (!offset && !drift)
		return 0;
	if (offset)
		config->test_offset_ns = nla_get_s64(offset);
	if (config->test_offset_ns < -ACKER_TEST_OFFSET_MAX ||
	    config->test_offset_ns > ACKER_TEST_OFFSET_MAX)
		return acker_refuse(info, offset, -ERANGE,
				    "ACKER_TEST_OFFSET_NS: allowed are -10^18 to 10^18");
	if (drift)
		config->test_drift_ppb = nla_get_s32(drift);
	if (config->test_drift_ppb < -ACKER_TEST_DRIFT_MAX ||
	    config->test_drift_ppb > ACKER_TEST_DRIFT_MAX)
		return acker_refuse(info, drift, -ERANGE,
				    "ACKER_TEST_DRIFT_PPB: allowed are -1000000 to 1000000");
	config->test_since_ns = config->test_offset_ns || config->test_drift_ppb ?
				ktime_get_ns() : 0;
	return 0;
}

static int acker_set(struct sk_buff *request, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	const struct acker_config *old;
	struct acker_config *config;
	int err;

	if (!info->attrs[TIMELY_A_ACKER_EVERY] && !info->attrs[TIMELY_A_ACKER_RATE] &&
	    !info->attrs[TIMELY_A_ACKER_TEST_OFFSET_NS] &&
	    !info->attrs[TIMELY_A_ACKER_TEST_DRIFT_PPB])
		return acker_refuse(info, NULL, -EINVAL,
				    "nothing to set: ACKER_EVERY, ACKER_RATE or ACKER_TEST_*");
	mutex_lock(&acker_mutex);
	old = acker_config_of(net);
	config = acker_copy(old, old->count);
	err = config ? acker_parse_limits(info, config) ? : acker_parse_test(info, config) :
		       -ENOMEM;
	if (err)
		kfree(config);
	else
		err = acker_replace(net, config);
	mutex_unlock(&acker_mutex);
	return err;
}

static int acker_parse_prefix(struct genl_info *info, struct acker_rule *rule)
{
	const struct nlattr *prefix = info->attrs[TIMELY_A_RULE_PREFIX];
	const struct nlattr *length = info->attrs[TIMELY_A_RULE_LENGTH];
	struct in6_addr masked;
	u32 bytes;

	if (!prefix || !length)
		return acker_refuse(info, NULL, -EINVAL,
				    "give RULE_PREFIX and RULE_LENGTH: all zero for any source");
	bytes = nla_len(prefix);
	if (bytes != sizeof(struct in_addr) && bytes != sizeof(struct in6_addr))
		return acker_refuse(info, prefix, -EINVAL,
				    "RULE_PREFIX: 4 bytes for IPv4, 16 for IPv6");
	if (bytes == sizeof(struct in6_addr) && !IS_ENABLED(CONFIG_IPV6))
		return acker_refuse(info, prefix, -EAFNOSUPPORT,
				    "this kernel has no IPv6");
	rule->family = bytes == sizeof(struct in_addr) ? AF_INET : AF_INET6;
	memcpy(rule->prefix, nla_data(prefix), bytes);
	rule->length = nla_get_u8(length);
	if (rule->length > bytes * BITS_PER_BYTE)
		return acker_refuse(info, length, -ERANGE,
				    "RULE_LENGTH: the address has no more than 32 (IPv4) or 128 bits");
	ipv6_addr_prefix(&masked, (const struct in6_addr *)rule->prefix, rule->length);
	if (memcmp(&masked, rule->prefix, sizeof(masked)))
		return acker_refuse(info, prefix, -EINVAL,
				    "RULE_PREFIX: bits beyond RULE_LENGTH must be 0");
	return 0;
}

static int acker_parse_ports(struct genl_info *info, struct acker_rule *rule)
{
	const struct nlattr *first = info->attrs[TIMELY_A_RULE_PORT_FIRST];
	const struct nlattr *last = info->attrs[TIMELY_A_RULE_PORT_LAST];

	rule->port_first = first ? nla_get_u16(first) : 0;
	rule->port_last = last ? nla_get_u16(last) : rule->port_first;
	if (!rule->port_first == !rule->port_last && rule->port_first <= rule->port_last)
		return 0;
	return acker_refuse(info, last ? : first, -EINVAL,
			    "RULE_PORT_LAST must not be below RULE_PORT_FIRST; both 0 for all ports");
}

/* Its place among the rules; their number if it is not there. */
static u32 acker_find(const struct acker_config *config, const struct acker_rule *rule)
{
	u32 i;

	for (i = 0; i < config->count; i++)
		if (!memcmp(&config->rules[i], rule, sizeof(*rule)))
			break;
	return i;
}

/* Flows are judged anew by other rules. 0 is no generation. */
static int acker_replace_rules(struct net *net, struct acker_config *config)
{
	config->generation = ++acker_generation ? : ++acker_generation;
	return acker_replace(net, config);
}

static bool acker_has_points(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(acker_points); i++)
		if (acker_points[i])
			return true;
	return false;
}

static int acker_add(struct genl_info *info, const struct acker_rule *rule)
{
	struct net *net = genl_info_net(info);
	const struct acker_config *old = acker_config_of(net);
	struct acker_config *config;

	if (acker_find(old, rule) < old->count)
		return acker_refuse(info, NULL, -EEXIST, "there is such a rule already");
	if (old->count == ACKER_RULES_MAX)
		return acker_refuse(info, NULL, -ENOSPC,
				    "256 rules are all there can be: delete one, or use wider ones");
	if (!acker_has_points())
		return acker_refuse(info, NULL, -EOPNOTSUPP,
				    "this kernel was built without tracepoints (CONFIG_TRACEPOINTS)");
	config = acker_copy(old, old->count + 1);
	if (!config)
		return -ENOMEM;
	config->rules[old->count] = *rule;
	return acker_replace_rules(net, config);
}

static int acker_del(struct genl_info *info, const struct acker_rule *rule)
{
	struct net *net = genl_info_net(info);
	const struct acker_config *old = acker_config_of(net);
	u32 place = acker_find(old, rule);
	struct acker_config *config;

	if (place == old->count)
		return acker_refuse(info, NULL, -ENOENT,
				    "no such rule: give it as ACKER_GET tells it");
	config = acker_copy(old, old->count - 1);
	if (!config)
		return -ENOMEM;
	memcpy(config->rules + place, old->rules + place + 1,
	       (config->count - place) * sizeof(*rule));
	return acker_replace_rules(net, config);
}

static int acker_change_rule(struct sk_buff *request, struct genl_info *info)
{
	struct acker_rule rule = {};
	int err = acker_parse_prefix(info, &rule) ? : acker_parse_ports(info, &rule);

	if (err)
		return err;
	/* The probe sees the packets of all namespaces, and the tables are each processor's. */
	if (info->genlhdr->cmd == TIMELY_CMD_RULE_ADD &&
	    !timely_request_may_affect_host(request))
		return acker_refuse(info, NULL, -EPERM,
				    "a rule makes all packets that the host receives pass a probe: needs CAP_NET_ADMIN of the host, or its administrator sets timely.tenants=1");
	mutex_lock(&acker_mutex);
	err = info->genlhdr->cmd == TIMELY_CMD_RULE_ADD ? acker_add(info, &rule) :
							  acker_del(info, &rule);
	mutex_unlock(&acker_mutex);
	return err;
}

static const struct genl_ops acker_ops[] = {
	{
		.cmd = TIMELY_CMD_ACKER_GET,
		.doit = acker_get,
	},
	{
		.cmd = TIMELY_CMD_ACKER_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = acker_set_policy,
		.maxattr = ARRAY_SIZE(acker_set_policy) - 1,
		.doit = acker_set,
	},
	{
		.cmd = TIMELY_CMD_RULE_ADD,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = acker_rule_policy,
		.maxattr = ARRAY_SIZE(acker_rule_policy) - 1,
		.doit = acker_change_rule,
	},
	{
		.cmd = TIMELY_CMD_RULE_DEL,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = acker_rule_policy,
		.maxattr = ARRAY_SIZE(acker_rule_policy) - 1,
		.doit = acker_change_rule,
	},
};

static struct genl_family acker_family __ro_after_init = {
	.name = TIMELY_ACKER_GENL_NAME,
	.version = TIMELY_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.ops = acker_ops,
	.n_ops = ARRAY_SIZE(acker_ops),
};

/* ---- loading ---- */

static int __init acker_load(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct acker_flow) > 64);

	acker_seed = get_random_u32();
	acker_find_points();
	err = register_pernet_subsys(&acker_net_ops);
	if (err)
		return err;
	err = genl_register_family(&acker_family);
	if (err)
		unregister_pernet_subsys(&acker_net_ops);
	return err;
}

/* Off the tracepoints before the namespaces' parts go, which the probe looks at. */
static void __exit acker_unload(void)
{
	genl_unregister_family(&acker_family);
	mutex_lock(&acker_mutex);
	acker_leave();
	mutex_unlock(&acker_mutex);
	unregister_pernet_subsys(&acker_net_ops);
	cancel_delayed_work_sync(&acker_idle_work);
}

module_init(acker_load);
module_exit(acker_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TIMELY: On-Ramp's receiver");
