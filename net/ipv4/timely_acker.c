// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's receiver: this file decides for each received packet whether the packet is answered
 * with an OR-ACK, and what the OR-ACK reports.
 *
 * An OR-ACK is a small UDP packet that tells the sender of a flow when one of the flow's packets
 * arrived. The sender computes a delay from the report (net/timely/onramp.c);
 * net/timely/engine/orack.h describes the format. The rules of a network namespace select the data
 * that are answered. A flow gets about one OR-ACK for every ten packets, and one for each packet
 * that a switch has trimmed (net/sched/sch_trim.c).
 *
 *	driver -> tracepoint -> flow's state, limits -> ring of the CPU -> tasklet -> IP
 *
 * timely_acker_hooks.c joins the tracepoints, this file fills the ring, timely_acker_send.c sends
 * the OR-ACKs in the ring, timely_acker_cpu.c allocates the state of each CPU, and
 * timely_acker_ctl.c has the rules.
 *
 * The tracepoints are reached when a driver passes a packet to the stack, before GRO. The stack has
 * not validated the packet yet, so this file makes the checks of IP. It does not check the
 * transport protocol. Some packets are not answered: fragments and packets with IP options or
 * extension headers, because the ports do not follow the first header, and packets with link-local
 * addresses, because these identify a host on one link only. A packet that passes a tracepoint
 * again, from a bridge or a mirror, has skb_iif set and is ignored. The namespace of a packet is
 * the namespace of its device.
 *
 * This file takes no lock and allocates nothing. Each CPU has a table of the flows that it received
 * packets of last. A flow that another flow has replaced in the table, or that moves to another
 * CPU, is new to the table and gets up to ACKER_FIRST_PACKETS OR-ACKs more. OR-ACKs are not sent in
 * the tracepoint, where the driver may hold locks that sending takes. The tasklet sends them after
 * the driver's poll. If several packets of a flow in one poll are to be answered, only the last of
 * them is reported.
 *
 * An attacker gains nothing from forged source addresses: an OR-ACK is never longer than the packet
 * that it answers, and the rate of OR-ACKs to each peer is limited.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/jhash.h>
#include <linux/kernel_stat.h>
#include <linux/ktime.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/busy_poll.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/route.h>

#include <net/timely_nic.h>
#include <net/timely_onramp.h>
#include <uapi/linux/timely.h>
#include <timely/engine/clock.h>
#include <timely/engine/orack.h>

#include <timely_skb.h>

#include "timely_acker.h"

/* Depth of a peer's token bucket: maximum number of OR-ACKs that the peer may get at once. */
#define ACKER_BURST		256

/* Each of the first ACKER_FIRST_PACKETS packets of a flow is answered, and so is the first packet
 * after an idle time of ACKER_IDLE_NS, because the sender then has no recent delay of the path.
 */
#define ACKER_FIRST_PACKETS	10
#define ACKER_IDLE_NS		NSEC_PER_MSEC

/* There are 2^10 token buckets. A hash of a peer's address selects the peer's bucket; peers with
 * equal hashes share a bucket.
 */
#define ACKER_PEERS_LOG		10

/* For net_generic(): index of a network namespace's struct acker_net. */
unsigned int timely_acker_net_id;
/* Seed of the hashes of flows and peers, so that nobody can choose addresses that collide. */
u32 timely_acker_seed __ro_after_init;
/* The state of each CPU; NULL while the receiver is inactive, see timely_acker_cpu.c. */
DEFINE_PER_CPU(struct acker_cpu *, timely_acker_cpus);

/* For each token bucket, the CLOCK_MONOTONIC time at which the bucket is full again. */
static atomic64_t acker_peers[1 << ACKER_PEERS_LOG];

/* ---- rules ---- */

static bool acker_rule_matches(const struct acker_rule *rule,
			       const struct timely_tuple *tuple)
{
	u16 port = ntohs(tuple->dport);

	if (rule->family != tuple->family ||
	    (rule->port_last && (port < rule->port_first || port > rule->port_last)))
		return false;
	/* Right for IPv4, too: the address is the first word, and the length at most 32 bits. */
	return ipv6_prefix_equal((const struct in6_addr *)rule->prefix,
				 (const struct in6_addr *)tuple->saddr, rule->length);
}

/* Whether the source address is of a single host, and the destination address is of this host. */
static bool acker_is_ours4(struct net *net, const struct net_device *dev,
			   const struct timely_tuple *tuple)
{
	__be32 from = tuple->saddr[0];

	return !ipv4_is_multicast(from) && !ipv4_is_lbcast(from) &&
	       !ipv4_is_zeronet(from) && !ipv4_is_loopback(from) &&
	       inet_addr_type_dev_table(net, dev, tuple->daddr[0]) == RTN_LOCAL;
}

/* As acker_is_ours4(), for IPv6. Link-local addresses are refused, too. */
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

/* Whether the packets of a flow are to be answered: a rule matches, the source address is of a
 * single host, and the destination is this host.
 */
static bool acker_wants(const struct acker_config *config, struct net *net,
			const struct net_device *dev, const struct timely_tuple *tuple)
{
	u32 i;

	for (i = 0; i < config->count; i++)
		if (acker_rule_matches(&config->rules[i], tuple))
			break;
	/* An OR-ACK with a port 0 is malformed, see timely_orack_decode(). */
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

	/* The data of a SYN start at its sequence number plus one. SYNs with data are rare and are
	 * not answered.
	 */
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

	/* Never answer an OR-ACK: two receivers would answer each other without end. */
	if (!uh || uh->source == orack_port || uh->dest == orack_port)
		return false;
	packet->tuple.sport = uh->source;
	packet->tuple.dport = uh->dest;
	packet->payload = offset + sizeof(*uh);
	packet->payload_bytes = bytes - sizeof(*uh);
	return true;
}

/* Parse the transport header at @offset. From there, the IP packet has @bytes more, and the caller
 * has checked that these are more than a UDP header.
 */
static bool acker_parse_transport(const struct sk_buff *skb, u32 offset, u32 bytes,
				  struct acker_packet *packet)
{
	packet->segment = offset;
	if (packet->tuple.protocol == IPPROTO_TCP)
		return acker_parse_tcp(skb, offset, bytes, packet);
	if (packet->tuple.protocol == IPPROTO_UDP)
		return acker_parse_udp(skb, offset, bytes, packet);
	return false;
}

/* Get the length of an IP packet in bytes. @field is the length by the IP header, or 0 if the
 * header has length 0, as in GSO packets longer than 65535 bytes (BIG TCP).
 */
static u32 acker_length(const struct sk_buff *skb, u32 offset, u32 field)
{
	return field || !skb_is_gso(skb) ? field : skb->len - offset;
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

/* Parse a packet. At the tracepoints, skb->data is after the Ethernet header. A VLAN tag follows if
 * the NIC has not removed the tag.
 */
static bool acker_parse(const struct sk_buff *skb, struct acker_packet *packet)
{
	__be16 protocol = skb->protocol;
	struct vlan_hdr buffer;
	const struct vlan_hdr *vlan;
	u32 offset = 0;

	packet->tos = 0;
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

/* Hash the addresses of a flow. The namespace and the protocol are not hashed, only compared. */
static u32 acker_hash(const struct timely_tuple *tuple)
{
	u32 ports = (__force u32)tuple->sport << 16 | (__force u32)tuple->dport;

	if (tuple->family == AF_INET)
		return jhash_3words((__force u32)tuple->saddr[0],
				    (__force u32)tuple->daddr[0], ports, timely_acker_seed);
	return jhash_3words(jhash2((__force const u32 *)tuple->saddr, 4, timely_acker_seed),
			    jhash2((__force const u32 *)tuple->daddr, 4, timely_acker_seed),
			    ports, timely_acker_seed);
}

static bool acker_is_flow(const struct acker_flow *flow, const struct acker_config *config,
			  const struct timely_tuple *tuple)
{
	return flow->generation == config->generation && timely_tuple_equal(&flow->tuple, tuple);
}

/* Find or create the state of a flow. A new flow replaces the flow in the same set of the table
 * whose last packet is the oldest.
 */
static struct acker_flow *acker_flow(struct acker_cpu *cpu,
				     const struct acker_config *config,
				     const struct timely_tuple *tuple, u32 now)
{
	struct acker_flow *set, *oldest;
	int way;

	/* Most packets are of the same flow as the packet before. */
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
	/* .seen is in the far past: the flow counts as idle, so that acker_take() checks the rules.
	 */
	*oldest = (struct acker_flow) {
		.tuple = *tuple,
		.generation = config->generation,
		.seen = now - (U32_MAX >> 1),
		.first = ACKER_FIRST_PACKETS,
	};
	cpu->last = oldest;
	return oldest;
}

/* Count a packet of a flow. @idle: the flow was idle before. Return: whether to answer the packet.
 */
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

/* Take a token from the peer's bucket. Return: false if the bucket is empty, and the OR-ACK must
 * not be sent. The bucket is stored as the time at which the bucket is full again.
 */
static bool acker_peer_may(const struct acker_config *config,
			   const struct timely_tuple *tuple, u64 now_ns)
{
	u64 most_ns = ACKER_BURST * config->interval_ns;
	u32 hash = jhash2((__force const u32 *)tuple->saddr, 4,
			  timely_acker_seed ^ config->generation);
	atomic64_t *full = &acker_peers[hash >> (32 - ACKER_PEERS_LOG)];
	s64 old = atomic64_read(full);
	u64 next;

	do {
		/* If the bucket's time is in the past (a huge difference), the bucket is full. A
		 * time too far in the future was computed with another interval_ns: start with a
		 * full bucket.
		 */
		next = (u64)old - now_ns > most_ns ? now_ns : old;
		next += config->interval_ns;
		if (next - now_ns > most_ns)
			return false;
	} while (!atomic64_try_cmpxchg(full, &old, next));
	return true;
}

/* ---- trimmed packets ---- */

/* Whether the checksum of a packet of TCP is right. */
static bool acker_is_whole(const struct sk_buff *skb, const struct acker_packet *packet)
{
	const struct timely_tuple *tuple = &packet->tuple;
	bool ipv4 = tuple->family == AF_INET;
	u32 bytes = packet->bytes - (ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	__wsum sum;

	/* A driver has checked the sum, or the sender of a virtual device has not computed it. The
	 * sum of a payload in the memory of a device cannot be computed.
	 */
	if (skb->ip_summed == CHECKSUM_UNNECESSARY || skb->ip_summed == CHECKSUM_PARTIAL ||
	    !timely_frags_readable(skb))
		return true;
	sum = skb_checksum(skb, packet->segment, bytes, 0);
	if (ipv4)
		return !csum_tcpudp_magic(tuple->saddr[0], tuple->daddr[0], bytes, IPPROTO_TCP,
					  sum);
	return !csum_ipv6_magic((const struct in6_addr *)tuple->saddr,
				(const struct in6_addr *)tuple->daddr, bytes, IPPROTO_TCP, sum);
}

/* Whether a switch has trimmed the packet: it has the DSCP of trimmed packets, and a wrong
 * checksum, because the checksum is that of the whole packet. The switch has made the length in the
 * IP header that of the trimmed packet, so the length does not tell.
 */
static bool acker_is_trimmed(const struct acker_config *config, const struct sk_buff *skb,
			     const struct acker_packet *packet)
{
	return unlikely(config->trimmed_tos) && packet->tuple.protocol == IPPROTO_TCP &&
	       (packet->tos & ~INET_ECN_MASK) == config->trimmed_tos &&
	       !acker_is_whole(skb, packet);
}

/* Bytes on an Ethernet link besides a packet: headers, check sequence, preamble, gap. */
#define ACKER_LINK_BYTES	38

/* Give a trimmed packet its turn on the receiver's link: the time that the link needs for a packet,
 * after the turns of all packets trimmed before. The packet counts as long as the MTU, because the
 * switch has overwritten its length. Return: the time from now to the turn, ns.
 */
static u32 acker_turn(struct acker_net *an, const struct acker_config *config,
		      const struct net_device *dev, u64 now_ns)
{
	u64 ns = div_u64((READ_ONCE(dev->mtu) + ACKER_LINK_BYTES) * 8000000ULL, config->link_kbps);
	s64 old = atomic64_read(&an->turn_ns);
	u64 turn_ns;

	do {
		/* The last turn is over, or farther away than an OR-ACK can say. */
		turn_ns = (s64)(old - now_ns) < 0 ? now_ns : old;
		if (turn_ns - now_ns > TIMELY_ORACK_TURN_MAX_NS)
			return TIMELY_ORACK_TURN_MAX_NS;
	} while (!atomic64_try_cmpxchg(&an->turn_ns, &old, turn_ns + ns));
	return turn_ns - now_ns;
}

/* ---- the time of arrival ---- */

static u32 acker_napi_id(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	if (skb->napi_id >= MIN_NAPI_ID)
		return skb->napi_id;
#endif
	return 0;
}

/* Get the arrival time by the hardware timestamp. Return: false if the packet has no hardware
 * timestamp that timely_nic_arrival() finds usable; @arrived_ns is unchanged then.
 */
static bool acker_hardware_ns(const struct sk_buff *skb, u64 now_ns, u64 *arrived_ns)
{
	u64 hardware_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	u32 napi_id = acker_napi_id(skb);
	u32 ns_per_byte_q16;

	/* With this flag, hwtstamps has data that the driver converts to a timestamp on request. */
	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		hardware_ns = timely_nic_timestamp(skb, napi_id);
	return hardware_ns &&
	       timely_nic_arrival(napi_id, hardware_ns, now_ns, arrived_ns,
				  &ns_per_byte_q16) == TIMELY_TSTAMP_GOOD;
}

/* Get the time of the test clock, which a test has set in place of the real-time clock to see how
 * the sender handles wrong clocks. @real_ns is the time of the real-time clock at @arrived_ns.
 */
static u64 acker_test_ns(const struct acker_config *config, u64 real_ns, u64 arrived_ns)
{
	s64 since_ns = arrived_ns - config->test_since_ns;
	s32 rest_ns;
	s64 seconds = div_s64_rem(since_ns, NSEC_PER_SEC, &rest_ns);

	return real_ns + config->test_offset_ns + seconds * config->test_drift_ppb +
	       div_s64((s64)rest_ns * config->test_drift_ppb, NSEC_PER_SEC);
}

/* ---- the ring ---- */

/* Compute the digest that an OR-ACK for a UDP packet has in place of a sequence number. Virtual
 * devices, such as veth, pass GSO packets on as they are. The sender has recorded the digest of the
 * first datagram of such a packet: tq_udp_digest().
 */
static u32 acker_digest(const struct sk_buff *skb, const struct acker_packet *packet)
{
	u32 bytes = packet->payload_bytes;
	u8 first[16];

	if (skb_is_gso(skb) && skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4)
		bytes = min_t(u32, bytes, skb_shinfo(skb)->gso_size);

	/* skb_copy_bits() cannot fail: acker_parse4() and acker_parse6() accept only packets at
	 * least as long as an OR-ACK, which has more than 16 bytes of UDP payload.
	 */
	if (skb_copy_bits(skb, packet->payload, first, sizeof(first)))
		return 0;
	return timely_udp_digest(first, bytes);
}

/* Get the ECN codepoint of an OR-ACK: the codepoint of the data, because a queue that marks
 * ECN-capable packets drops other packets. Data that are marked CE were most likely sent as ECT(0).
 */
static u8 acker_ecn(u8 tos)
{
	u8 ecn = tos & INET_ECN_MASK;

	return ecn == INET_ECN_CE ? INET_ECN_ECT_0 : ecn;
}

/* Fill in an OR-ACK, except the addresses, and the members that the tasklet sets. Without a usable
 * hardware timestamp, the time of arrival is @now_ns.
 */
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
	if (unlikely(packet->trimmed))
		orack->flags |= TIMELY_ORACK_TRIMMED;
	orack->turn_ns = packet->turn_ns;
	orack->received_ns = ktime_to_ns(ktime_mono_to_real(answer->arrived_ns));
	if (config->test_since_ns)
		orack->received_ns = acker_test_ns(config, orack->received_ns,
						   answer->arrived_ns);
}

/* Find the flow's OR-ACK among the queued OR-ACKs, which have the numbers @tail to @head - 1.
 * Return: NULL if no OR-ACK of the flow is queued.
 */
static struct acker_answer *acker_waiting(struct acker_cpu *cpu, const struct acker_flow *flow,
					  u32 head, u32 tail)
{
	u16 ahead = flow->answer - tail;
	struct acker_answer *answer = &cpu->ring[(tail + ahead) % ACKER_RING];

	return ahead < head - tail && timely_tuple_equal(&answer->orack.tuple, &flow->tuple) ?
	       answer : NULL;
}

/* Queue an OR-ACK about a packet for the tasklet. If an OR-ACK of the flow is still queued, it is
 * overwritten and reports this packet instead, because this packet has the newer delay. OR-ACKs
 * about trimmed packets stay as they are: each loss is reported.
 */
static void acker_push(struct acker_cpu *cpu, struct acker_flow *flow,
		       const struct acker_config *config, const struct sk_buff *skb,
		       const struct acker_packet *packet, u64 now_ns)
{
	u32 head = cpu->head;
	/* Pairs with each smp_store_release(&cpu->tail) of timely_acker_send_all(): an entry is
	 * overwritten only after the tasklet has read the entry.
	 */
	u32 tail = smp_load_acquire(&cpu->tail);
	struct acker_answer *answer = packet->trimmed ? NULL :
				      acker_waiting(cpu, flow, head, tail);

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
	if (!packet->trimmed)
		flow->answer = head;
	/* Pairs with smp_load_acquire() in acker_head(): the tasklet, which may run on another CPU,
	 * sees the whole entry.
	 */
	smp_store_release(&cpu->head, head + 1);
	tasklet_schedule(&cpu->tasklet);
}

/* Get the time in units of 2^ACKER_TIME_SHIFT ns, to detect idle flows. NAPI polls in a NET_RX
 * softirq share one reading of the clock, because such a softirq is short. Other polls, such as
 * those of a NAPI thread, may last long, so the clock is read for each of their packets.
 */
static u32 acker_now(struct acker_cpu *cpu, bool polled)
{
	u32 poll = __this_cpu_read(kstat.softirqs[NET_RX_SOFTIRQ]);

	if (!polled || !in_serving_softirq() || poll != cpu->poll)
		cpu->now = ktime_get_ns() >> ACKER_TIME_SHIFT;
	cpu->poll = poll;
	return cpu->now;
}

/* Set whether the packet is trimmed and gets a turn. @wanted: a rule matches the packet. */
static void acker_note_trimmed(struct acker_packet *packet, const struct acker_config *config,
			       const struct sk_buff *skb, bool wanted)
{
	struct net *net = dev_net(skb->dev);

	packet->turn_ns = 0;
	packet->trimmed = acker_is_trimmed(config, skb, packet);
	if (likely(!packet->trimmed))
		return;
	timely_onramp_count(net, wanted ? TIMELY_ONRAMP_trimmed : TIMELY_ONRAMP_trimmed_refused);
	if (wanted)
		packet->turn_ns = acker_turn(net_generic(net, timely_acker_net_id), config,
					     skb->dev, ktime_get_ns());
}

/* Count a packet for its flow, and queue an OR-ACK if the packet is to be answered. Each trimmed
 * packet is answered: its sender has nothing else that tells the loss soon.
 */
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
	/* The host's addresses may have changed since the last packet. */
	if (idle)
		flow->wanted = acker_wants(config, net, skb->dev, &packet->tuple);
	acker_note_trimmed(packet, config, skb, flow->wanted);
	if (flow->wanted && (acker_is_due(flow, config, packet->bytes, idle) || packet->trimmed))
		acker_push(cpu, flow, config, skb, packet, ktime_get_ns());
}

/* Whether a packet comes from the network, may be for this host, and passes a tracepoint for the
 * first time. A packet for a bridge or macvlan above the device has PACKET_OTHERHOST. Packets that
 * a driver passes on in a hard interrupt, or with softirqs enabled, are ignored: there, the probe
 * could interrupt, or be interrupted by, softirq code that uses the same state of the CPU.
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

/**
 * timely_acker_probe() - answer a packet that a driver passes to the stack, if a rule matches
 * @polled: not NULL if the tracepoint is reached only from NAPI polls
 * @skb: the packet
 *
 * Context: any; does nothing in a hard interrupt, or in process context with softirqs enabled.
 */
void timely_acker_probe(void *polled, const struct sk_buff *skb)
{
	const struct acker_config *config;
	struct acker_net *an;
	struct acker_cpu *cpu;

	rcu_read_lock();
	/* Linux 7 with PREEMPT_RT lets softirqs of a CPU preempt each other, also here. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
	an = net_generic(dev_net(skb->dev), timely_acker_net_id);
	config = rcu_dereference(an->config);
	if (!config || !config->count || !acker_is_arrival(skb))
		goto out;
	cpu = __this_cpu_read(timely_acker_cpus);
	if (acker_parse(skb, &cpu->packet))
		acker_take(cpu, config, skb, polled);
	else if (unlikely(config->trimmed_tos) &&
		 (cpu->packet.tos & ~INET_ECN_MASK) == config->trimmed_tos)
		timely_onramp_count(dev_net(skb->dev), TIMELY_ONRAMP_trimmed_refused);
out:
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
	rcu_read_unlock();
}
