// SPDX-License-Identifier: GPL-2.0
/*
 * The qdisc "timely": TIMELY's rate enforcement, usable in place of fq. This file has the path of a
 * packet, and creates and destroys qdiscs; sch_timely.h lists the other files. "The paper" is
 * TIMELY, SIGCOMM'15.
 *
 * The path of a packet:
 *
 *	enqueue -> flow -> [timing wheel] -> round robin -> [split] -> device
 *
 * A flow has the packets of one socket, or packets whose headers have the same hash: tq_key(). A
 * flow is IDLE without packets; READY when its first packet may leave and the flow waits for its
 * round-robin slot in one of three bands; THROTTLED in the timing wheel until its first packet is
 * due. A packet is due at the latest of three times:
 *
 *	timestamp	set by TCP, SO_TXTIME or BPF (earliest departure time)
 *	pacing time	when the flow's previous packet has been sent at the flow's rate
 *	pause		end of On-Ramp's pause of the flow, whatever the flow's rate is
 *
 * As in fq: all of fq's options, with their meaning and defaults; three bands with weights; deficit
 * round robin that serves new flows before old ones; pacing that makes up for a late timer by up to
 * half the packet's transmission time (here the limit is at least catch_up_ns). Different from fq:
 *  - Throttled flows are in a timing wheel (net/timely/engine/wheel.c), which takes constant time
 *    and has slots of a microsecond. Flows are found in a hash table that grows with their number.
 *  - Flows whose congestion control has a flow entry (net/timely/flow.c) are paced at the rate in
 *    force when a packet is due, not at the rate when TCP timestamped the packet (section 5 of the
 *    paper): see tq_due(). The departures of their packets are recorded, and RTTs start at the
 *    departures. Other congestion controls keep TCP's timestamps: their RTTs include the time that
 *    a packet waits here, so a packet that waited longer would look like a queue in the network.
 *  - GSO packets may be split into sub-segments that are paced one by one (section 6, Fig. 16):
 *    tq_split().
 *  - Pure ACKs may overtake other packets and be marked (section 2, Figs 4 and 5). They get the
 *    time as their IPv4 ID, which tells senders how long they have waited: tq_time_ack(). One that
 *    waits is replaced by the next one of its connection: tq_thin_acks().
 *  - Flows may be paused while their path is overloaded (On-Ramp, NSDI'21): net/timely/onramp.c
 *    sets the pause in the flow entry. With On-Ramp each socket that sends data gets a flow entry.
 *  - A timestamp of another clock cannot stall a flow: tq_check_timestamp().
 *  - Flows are counted for each network namespace, see net/timely/tenant.c. Sockets beyond the
 *    budget share a few flows: tq_shared_flow(). Idle flows are freed in the background even if no
 *    new flows arrive: tq_reap().
 */

#include <linux/module.h>
#include <linux/prefetch.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <uapi/linux/timely_version.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include <net/timely_onramp.h>
#include <timely/engine/ack_wait.h>

#include "sch_timely_pace.h"

/* While packets are queued, another packet may enter the bypass list only if the list has fewer
 * packets than this: tq_may_bypass(). fq has the same limit.
 */
#define TQ_FASTPATH_MAX		8

/* Pure ACKs overtake their flow's paused data only while the bypass list has fewer packets than
 * this. The option flow_limit does not limit the list.
 */
#define TQ_OVERTAKE_MAX		1000

/* A timestamp that is 24 h or more ahead of the monotonic clock, or more than 10 s behind, belongs
 * to another clock. The real-time clock, for example, is half a century ahead. Since Linux 6.11
 * most timestamps have a type, by which they are converted before: timely_tstamp_ns().
 */
#define TQ_WRONG_CLOCK_NS		(24ULL * 3600 * NSEC_PER_SEC)
#define TQ_PAST_MAX_NS		(10ULL * NSEC_PER_SEC)

/* The timer makes a flow's packet late by at most this part of a packet's transmission time.
 * Whenever the timer is set, its slack grows by an eighth, until a fast flow shortens it again.
 */
#define TQ_SLACK_PART			4
#define TQ_SLACK_GROWTH			8

/* A packet longer than TQ_LONG_BYTES may be late by its whole transmission time, up to
 * TQ_LONG_SLACK_NS. TCP builds such packets on quiet paths, where they need not be smooth, and at
 * 100 Gb/s a timer for each takes a sixth of the sender's cycles. With a NIC that moderates
 * interrupts packets are later still: with 10 us here, a connection at 22.5 Gb/s lost 4 %.
 */
#define TQ_LONG_BYTES			32768
#define TQ_LONG_SLACK_NS		6000ULL

/* ---- queueing and departures ---- */

/* Packets with an earlier timestamp than a packet before them are rare. They are kept in a tree. */
static void tq_queue_early(struct tq_flow *f, struct sk_buff *skb)
{
	struct rb_node **p = &f->early.rb_node, *parent = NULL;

	while (*p) {
		parent = *p;
		if (tq_cb(skb)->time_ns >= tq_cb(rb_to_skb(parent))->time_ns)
			p = &parent->rb_right;
		else
			p = &parent->rb_left;
	}
	rb_link_node(&skb->rbnode, parent, p);
	rb_insert_color(&skb->rbnode, &f->early);
	f->has_early = 1;
}

static void tq_queue(struct tq_flow *f, struct sk_buff *skb)
{
	const struct tq_skb_cb *last = f->head ? tq_cb(f->head->prev) : NULL;

	/* Sub-segments leave first: a packet stays behind them even if its timestamp is earlier. */
	if (unlikely(last && tq_cb(skb)->time_ns < last->time_ns && !last->subseg))
		tq_queue_early(f, skb);
	else
		tq_list_add(&f->head, skb);
}

/* A packet that waits for a pause is counted once, however often the pause is extended. */
static void tq_count_pause(struct tq_sched *q, struct tq_flow *f, u64 due)
{
	struct tq_skb_cb *cb = tq_cb(tq_peek(f));

	if (likely(READ_ONCE(f->entry->pause_until_ns) != due) || !cb->data || cb->paused)
		return;
	cb->paused = 1;
	q->stats.paused++;
}

/* How late the timer may make the flow's next packet, which waits until @due: a quarter of the
 * transmission time that the flow waits for, or more after a long packet. The packets of a fast
 * flow that became due within a longer time would leave in one burst, and queue for each other.
 */
static u64 tq_slack_ns(const struct tq_flow *f, u64 due)
{
	u64 wait_ns = due - min(due, f->clock_ns);
	u64 slack_ns = wait_ns / TQ_SLACK_PART;

	if (f->owed > TQ_LONG_BYTES)
		slack_ns = max(slack_ns, min(wait_ns, TQ_LONG_SLACK_NS));
	return slack_ns;
}

/* Put the flow into the timing wheel until @due. slack_ns is the shortest slack of the flows that
 * wait; tq_arm() lets it grow again.
 */
static void tq_throttle(struct tq_sched *q, struct tq_flow *f, u64 due)
{
	f->state = TQ_THROTTLED;
	q->throttled++;
	q->stats.throttled++;
	if (f->paced)
		q->slack_ns = min_t(u64, q->slack_ns, tq_slack_ns(f, due));
	if (f->has_entry) {
		tq_count_pause(q, f, due);
		due = tq_watch_entry(q, f, due);
	}
	timely_wheel_add(q->wheel, &f->node, due);
}

/* The packet left at @now and was due at @due: set the pacing clock, from which tq_due() computes
 * when the next packet may leave.
 *
 * The next packet makes up for the lateness of this packet, up to the larger of two limits: the
 * lateness that the timing wheel and the timer's slack cause (catch_up_ns), and half of this
 * packet's transmission time, as in fq and TCP. Making up for more would cause a burst.
 */
static void tq_charge(struct tq_sched *q, struct tq_flow *f,
		      const struct sk_buff *skb, u64 now, u64 due)
{
	u64 rate_Bps = tq_rate_Bps(q, f, skb);
	u32 bytes = qdisc_pkt_len(skb);
	u64 ns;

	if (tq_is_lazy(q, f)) {
		/* TCP's rates count payload only. */
		if (tq_cb(skb)->tcp)
			bytes = tq_payload(skb);
	} else if (!skb->tstamp && !tq_cb(skb)->subseg) {
		/* As in fq: a flow without timestamps sends its credit at once, then waits for the
		 * transmission time of a quantum. At low rates the flow waits after each packet.
		 */
		if (rate_Bps <= q->config.low_rate_Bps) {
			f->credit = 0;
		} else {
			bytes = max(bytes, q->config.quantum);
			if (f->credit > 0)
				return;
		}
	}
	if (rate_Bps == TQ_UNLIMITED) {
		f->paced = 0;
		return;
	}
	/* The bytes of all sub-segments of a burst count as sent with the first sub-segment: the
	 * next packet waits for the transmission time of the whole packet.
	 */
	if (tq_cb(skb)->burst) {
		f->owed += bytes;
		return;
	}
	ns = tq_pace_ns(f, bytes, rate_Bps);
	if (unlikely(ns == TQ_PACE_MAX_NS))
		q->stats.pkts_too_long++;
	f->clock_ns = due;
	if (now > due)
		f->clock_ns = now - min(now - due, max(ns / 2, q->config.catch_up_ns));
	f->owed = bytes;
	f->paced = 1;
}

/* ---- flow entries shared with congestion controls ---- */

/* If the flow entry reports its changes to another qdisc, which the socket's packets used before,
 * make it report to this qdisc. The On-Ramp settings of this qdisc then apply. While the flow has
 * packets here, timely_flow_wait() does the same.
 */
static void tq_take_notifier(struct tq_sched *q, struct tq_flow *f)
{
	struct timely_notifier *notifier = READ_ONCE(f->entry->notifier);

	/* Where it reports to nobody, a flow of another qdisc or socket was freed. */
	if (unlikely(notifier != &q->notifier && (notifier || q->config.onramp) && !f->qlen))
		timely_flow_attach(f->entry, &q->notifier, f);
}

/* Whether the flow has a flow entry of its present congestion control and, if @onramp is set, with
 * On-Ramp's state. An entry that is out of date is released.
 */
static bool tq_has_entry(struct tq_sched *q, struct tq_flow *f, bool wanted, bool onramp)
{
	if (!f->has_entry)
		return false;
	/* The socket's congestion control was changed. The old one has closed this entry; or the
	 * entry is On-Ramp's, without a key, and the new congestion control has made another entry.
	 */
	if (unlikely(READ_ONCE(f->entry->closed) || (wanted && !f->entry->key))) {
		tq_forget_entry(q, f);
		return false;
	}
	tq_take_notifier(q, f);
	return !onramp || timely_flow_onramp(f->entry);
}

/* Find the flow entry if the flow needs one and has none, or if the destination has changed. After
 * a failed search for a packet with data, there is no other search in the same jiffy; nor is there
 * after a change of the destination, because a program may change it with each packet.
 */
static void tq_look_for_entry(struct tq_sched *q, struct tq_flow *f,
			      const struct sk_buff *skb)
{
	bool wanted = sk_is_tcp(f->sk) && timely_flow_wanted(f->sk);
	bool onramp = unlikely(q->config.onramp) && tq_cb(skb)->data &&
		      (tq_cb(skb)->tcp | tq_cb(skb)->udp);
	bool moved = onramp && f->has_entry && f->last_lookup != (u32)jiffies &&
		     tq_has_moved(f, skb);

	if (moved)
		tq_forget_entry(q, f);
	if (tq_has_entry(q, f, wanted, onramp) || (!wanted && !onramp) ||
	    f->last_lookup == (u32)jiffies)
		return;
	tq_find_entry(q, f, skb, wanted, onramp);
	if (moved)
		f->last_lookup = (u32)jiffies;
}

/* A digest of a UDP packet's payload: it identifies the packet, as a sequence number does in TCP.
 * The receiver computes the digests of single datagrams, so the digest of a GSO packet is that of
 * its first datagram.
 * Return: the digest; 0 if the payload cannot be read.
 */
static u32 tq_udp_digest(const struct sk_buff *skb)
{
	u32 offset = skb_transport_offset(skb) + sizeof(struct udphdr);
	u32 bytes = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len - offset;
	u8 payload[TIMELY_UDP_DIGEST_BYTES];

	if (skb_copy_bits(skb, offset, payload, min_t(u32, bytes, sizeof(payload))))
		return 0;
	return timely_udp_digest(payload, bytes);
}

/* The traffic class of an IP packet: DSCP and ECN. */
static u8 tq_dsfield(const struct sk_buff *skb)
{
	if (skb_protocol(skb, true) == htons(ETH_P_IPV6))
		return ipv6_get_dsfield(ipv6_hdr(skb));
	return ipv4_get_dsfield(ip_hdr(skb));
}

/* Bytes that a frame takes on the link besides its packet: checksum, preamble and gap. */
#define TQ_FRAME_BYTES	24

/* When the device will begin to send the packet that it gets at @now. */
static u64 tq_drained_ns(const struct Qdisc *sch, struct tq_sched *q, const struct tq_flow *f,
			 const struct sk_buff *skb, u64 now)
{
#ifdef CONFIG_BQL
	const struct dql *dql = &sch->dev_queue->dql;
	u32 bytes = qdisc_pkt_len(skb) + tq_cb(skb)->segs * TQ_FRAME_BYTES;

	return timely_drain_add(&q->drain, READ_ONCE(dql->num_queued), &dql->num_completed, bytes,
				READ_ONCE(f->entry->path.cfg.ns_per_byte_q16), now);
#else
	return now;
#endif
}

/* Record in the flow entry that a packet or sub-segment leaves at @now. TCP packets without data
 * are not recorded.
 */
static void tq_record(const struct Qdisc *sch, struct tq_sched *q, struct tq_flow *f,
		      const struct sk_buff *skb, u64 now)
{
	struct timely_departure departure = {
		.time_ns = now,
		.bytes = qdisc_pkt_len(skb),
	};
	struct timely_onramp *onramp;
	u32 payload = 0, fin = 0;

	if (tq_cb(skb)->tcp) {
		payload = tq_payload(skb);
		if (!payload)
			return;
		fin = tcp_hdr(skb)->fin;
		departure.end_seq = ntohl(tcp_hdr(skb)->seq) + payload;
	} else {
		departure.end_seq = tq_udp_digest(skb);
	}
	onramp = timely_flow_onramp(f->entry);
	if (onramp)
		timely_onramp_depart(onramp, &departure, payload);
	/* For the congestion control the packet ends with the FIN; OR-ACKs are about bytes. */
	departure.end_seq += fin;
	/* RTTs are those of pacing segments, which end with their last sub-segment. A TCP
	 * connection's packet that is UDP here is in a tunnel, and has no sequence number of the
	 * connection.
	 */
	if (f->has_cc && tq_cb(skb)->tcp && !tq_cb(skb)->more) {
		WRITE_ONCE(f->entry->dsfield, tq_dsfield(skb));
		departure.time_ns = tq_drained_ns(sch, q, f, skb, now);
		timely_flow_depart(f->entry, &departure);
	}
	q->stats.departures++;
}

/* Whether the departure of a packet or sub-segment must be recorded. Only On-Ramp needs the
 * departures of sub-segments other than the last of a packet.
 */
static bool tq_must_record(const struct tq_flow *f, const struct sk_buff *skb)
{
	if (!f->has_entry || !(tq_cb(skb)->tcp | tq_cb(skb)->udp))
		return false;
	return !tq_cb(skb)->more || timely_flow_onramp(f->entry);
}

/* ---- flows ---- */

/* Whether an unconnected socket has a flow of its own, because it has set SO_MAX_PACING_RATE. In a
 * flow of a hash, packets of others would wait behind packets that wait for this rate.
 */
static bool tq_is_limited(const struct sock *sk)
{
	return READ_ONCE(sk->sk_max_pacing_rate) != ~0UL && !sk_is_tcp(sk);
}

/* The key of the packet's flow: the address of the socket, or a hash of the headers. Bit 0 is set
 * in hashes only. The hash is the key of packets without a socket, such as forwarded packets, and
 * of packets whose socket does not stand for one connection: SYN-ACKs, replies of TIME-WAIT
 * sockets, unconnected UDP unless tq_is_limited(). The packet is separated from a socket that is
 * not a sender (skb_orphan()), so that later code sees only full sockets.
 */
static struct sock *tq_key(const struct tq_sched *q, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	bool sender = sk && sk_fullsock(sk) && sk->sk_state != TCP_LISTEN;
	unsigned long hash;

	if (likely(sender && (sk->sk_state != TCP_CLOSE || tq_is_limited(sk))))
		return sk;
	hash = skb_get_hash(skb) & q->config.orphan_mask;
	if (!sender)
		skb_orphan(skb);
	return (struct sock *)((hash << 1) | 1UL);
}

/* A FIN or RST has a sequence number after data that may be paused: if it overtook the data, the
 * receiver would see a loss. Nothing is sent before a SYN, so a SYN may overtake.
 */
static bool tq_ends_data(const struct sk_buff *skb)
{
	return tq_cb(skb)->tcp && (tcp_hdr(skb)->fin || tcp_hdr(skb)->rst);
}

/* Whether the packet may leave at once, through the bypass list: no flow has a packet that is due,
 * and neither pacing nor a pause delays this packet.
 */
static bool tq_may_bypass(const struct Qdisc *sch, struct tq_sched *q,
			  const struct sk_buff *skb, const struct sock *key, u64 now)
{
	if (tq_cb(skb)->time_ns > now || q->config.maxrate_Bps != TQ_UNLIMITED)
		return false;
	if (sch->q.qlen) {
		if (q->flows != q->inactive + q->throttled ||
		    q->bypass_qlen >= TQ_FASTPATH_MAX)
			return false;
		/* A flow in the timing wheel may be due but not served yet. */
		if (!timely_wheel_advance(q->wheel, now + q->config.offload_ns))
			return false;
	}
	/* With the option split, sub-segments of an earlier packet may still be queued. */
	if (q->config.split)
		return false;
	if (!skb->sk)
		return true;
	/* On-Ramp may pause data, and a FIN or RST stays behind data. Without On-Ramp the bits
	 * data and tcp of the control block are clear.
	 */
	if (tq_cb(skb)->data || tq_ends_data(skb))
		return false;
	if (!sk_is_tcp(skb->sk))
		return READ_ONCE(skb->sk->sk_max_pacing_rate) == ~0UL;
	return !tq_is_socket(skb, key) || !timely_flow_wanted(skb->sk);
}

/* Find or create the packet's flow, in the bucket of @key, and find the flow entry if the flow
 * needs one. Return: NULL if the packet needs no flow, or if there is no memory for one; the packet
 * then goes to the bypass list.
 */
static struct tq_flow *tq_classify(struct Qdisc *sch, struct sk_buff *skb,
				   struct sock *key, struct tq_flow **bucket, u64 now)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_flow *f;

	if (tq_may_bypass(sch, q, skb, key, now)) {
		q->stats.fastpath_packets++;
		if (tq_is_socket(skb, key))
			tq_claim_pacing(q, key);
		return NULL;
	}
	for (f = *bucket; f && f->sk != key; f = f->hash_next)
		;
	if (unlikely(!f)) {
		f = tq_new_flow(q, skb, key, now);
		if (!f)
			return NULL;
	}
	if (tq_is_socket(skb, f->sk)) {
		if (unlikely(f->socket_hash != key->sk_hash))
			tq_replace_socket(q, f, key);
		if (f->has_entry || q->config.onramp ||
		    (sk_is_tcp(key) && timely_flow_wanted(key)))
			tq_look_for_entry(q, f, skb);
	}
	return f;
}

/* ---- enqueue ---- */

/* Whether a timestamp is from TQ_PAST_MAX_NS before @now to the horizon after @now. One unsigned
 * comparison checks both limits.
 */
static bool tq_timestamp_in_range(const struct tq_sched *q, s64 tstamp, u64 now)
{
	return tstamp - now + TQ_PAST_MAX_NS <= q->config.horizon_ns + TQ_PAST_MAX_NS &&
	       tstamp > 0;
}

/* Handle a timestamp that is out of range. A packet with a timestamp beyond the option horizon is
 * dropped (horizon_drop), or sent at the horizon (horizon_cap). A timestamp that is 24 h or more
 * ahead, or more than 10 s in the past, was set by another clock, for example at the arrival of a
 * forwarded packet. Such a timestamp is removed, or the packet is dropped (wrong_clock_drop). fq
 * drops packets with a timestamp 24 h ahead, or delays each of them by the whole horizon. @time_ns:
 * the timestamp as CLOCK_MONOTONIC; set to when the packet may leave.
 *
 * Return: false if the packet must be dropped.
 */
static bool tq_check_timestamp(struct tq_sched *q, struct sk_buff *skb, u64 *time_ns, u64 now)
{
	s64 ahead = *time_ns - now;

	if (ahead > 0 && ahead < TQ_WRONG_CLOCK_NS) {
		if (q->config.horizon_drop) {
			q->stats.horizon_drops++;
			return false;
		}
		q->stats.horizon_caps++;
		*time_ns = now + q->config.horizon_ns;
		timely_set_tstamp_ns(skb, *time_ns);
		return true;
	}
	q->stats.wrong_clock++;
	if (q->config.wrong_clock_drop) {
		q->stats.wrong_clock_drops++;
		return false;
	}
	/* Without a time, nothing may remain that says by which clock it was. */
	skb_set_delivery_time(skb, 0, 0);
	*time_ns = now;
	return true;
}

/* Set the DSCP. Return: false for a packet that is not IPv4 or IPv6, or if there is no memory. */
static bool tq_set_dscp(struct sk_buff *skb, u8 dscp)
{
	u32 offset = skb_network_offset(skb);

	switch (skb->protocol) {
	case htons(ETH_P_IP):
		if (skb_ensure_writable(skb, offset + sizeof(struct iphdr)))
			return false;
		ipv4_change_dsfield(ip_hdr(skb), INET_ECN_MASK, dscp << 2);
		return true;
	case htons(ETH_P_IPV6):
		if (skb_ensure_writable(skb, offset + sizeof(struct ipv6hdr)))
			return false;
		ipv6_change_dsfield(ipv6_hdr(skb), INET_ECN_MASK, dscp << 2);
		return true;
	}
	return false;
}

static hsiphash_key_t tq_ack_time_key __ro_after_init;

/* A constant that is added to the times of a connection's ACKs. Without it, all connections of the
 * host would show the same clock, and anyone could tell which connections are of one host.
 */
static u32 tq_ack_time_offset(const struct iphdr *ip, const struct tcphdr *tcp)
{
	return hsiphash_3u32((__force u32)ip->saddr, (__force u32)ip->daddr,
			     (__force u32)tcp->source << 16 | (__force u32)tcp->dest,
			     &tq_ack_time_key);
}

/* Write the time into the IPv4 ID of a pure ACK, see ack_wait.c. Packets that must not be
 * fragmented need no ID. If there is no memory for a header of its own, the packet keeps its ID.
 */
static void tq_time_ack(struct tq_sched *q, struct sk_buff *skb, u64 now)
{
	struct iphdr *ip = ip_hdr(skb);
	u32 headers, time_us;
	__be16 id;

	if (tq_plain_protocol(skb) != IPPROTO_TCP || skb->protocol != htons(ETH_P_IP) ||
	    ip->frag_off != htons(IP_DF))
		return;
	headers = tq_headers(skb);
	if (!headers || skb_ensure_writable(skb, headers))
		return;
	ip = ip_hdr(skb);
	time_us = div_u64(now, NSEC_PER_USEC) + tq_ack_time_offset(ip, tcp_hdr(skb));
	id = htons(timely_ack_time_id(time_us));
	csum_replace2(&ip->check, ip->id, id);
	ip->id = id;
	q->stats.acks_timed++;
}

/* Apply the options ack_time, ack_priority and ack_dscp to a pure ACK. Pure ACKs carry the
 * congestion signal of the opposite direction (section 2 of the paper). They need not wait behind
 * data in this host, nor in a network that gives their DSCP a queue with priority.
 *
 * Return: true if the packet may overtake all queued packets (ack_first).
 */
static bool tq_mark_ack(struct tq_sched *q, struct sk_buff *skb, u64 now)
{
	if (q->config.ack_time)
		tq_time_ack(q, skb, now);
	if (q->config.ack_priority != TIMELY_PRIORITY_KEEP)
		skb->priority = q->config.ack_priority;
	if (q->config.ack_dscp != TIMELY_DSCP_KEEP &&
	    tq_set_dscp(skb, q->config.ack_dscp))
		q->stats.acks_marked++;
	return q->config.ack_first;
}

/* Count a packet as queued in the qdisc. */
static void tq_account(struct Qdisc *sch, const struct sk_buff *skb)
{
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
}

/* Queue a packet in the bypass list, which leaves before the packets of all flows. */
static int tq_bypass(struct Qdisc *sch, struct tq_sched *q, struct sk_buff *skb)
{
	tq_list_add(&q->bypass, skb);
	q->bypass_qlen++;
	tq_account(sch, skb);
	return NET_XMIT_SUCCESS;
}

/* The flow was idle and has its first packet: put the flow into a round-robin list, or into the
 * timing wheel if the packet is not due yet.
 */
static void tq_start(struct tq_sched *q, struct tq_flow *f, struct sk_buff *skb,
		     u64 now)
{
	u64 ahead = now + q->config.offload_ns;
	u64 due;

	if (now - f->node.due_ns > q->config.refill_ns)
		f->credit = max_t(s32, f->credit, q->config.quantum);
	if (unlikely(q->config.onramp) && f->has_entry && tq_cb(skb)->data &&
	    timely_flow_onramp(f->entry))
		timely_onramp_start(f->entry, now);
	due = tq_due(q, f, skb);
	if (due <= ahead) {
		tq_make_ready(q, f, &q->bands[f->band].new_flows);
		return;
	}
	tq_cb(skb)->waited = 1;
	/* The wheel places flows relative to its time, which may still be that of the last dequeue.
	 */
	timely_wheel_advance(q->wheel, ahead);
	tq_throttle(q, f, due);
}

/* When a packet of a lazy flow may leave, whatever the flow's rate is. TCP's timestamp is ignored.
 * It is never later than tcp_wstamp_ns. A later timestamp counts, because somebody else has set it:
 * a BPF program that limits the rate of a container, or TCP_TX_DELAY. The packet must not overtake
 * an earlier packet with a later time.
 */
static u64 tq_lazy_time(const struct tq_flow *f, const struct sk_buff *skb, u64 now)
{
	u64 time_ns = tq_cb(skb)->time_ns;

	/* The socket is a TCP socket, because a congestion control has made the flow's entry. */
	if (likely(time_ns <= READ_ONCE(tcp_sk(skb->sk)->tcp_wstamp_ns) || time_ns < now))
		time_ns = now;
	return f->head ? max(time_ns, tq_cb(f->head->prev)->time_ns) : time_ns;
}

/* Set the parts of the control block that depend on the flow, the socket or the headers. All three
 * are in the CPU's caches now, and probably not when the packet leaves.
 */
static void tq_set_cb(const struct tq_sched *q, const struct tq_flow *f,
		      const struct sk_buff *skb, u64 now)
{
	struct tq_skb_cb *cb = tq_cb(skb);

	if (tq_is_lazy(q, f))
		cb->time_ns = tq_lazy_time(f, skb, now);
	if (f->has_entry) {
		if (!q->config.onramp)
			tq_set_kind(skb);
		cb->tcp_tstamp = cb->tcp && skb->tstamp;
	}
	cb->charge = q->config.pacing &&
		     (f->has_entry || tq_rate_Bps(q, f, skb) != TQ_UNLIMITED);
}

/* Whether the packet is a pure ACK that may overtake the paused data of its own flow. */
static bool tq_overtakes(const struct tq_sched *q, const struct tq_flow *f,
			 const struct sk_buff *skb, u64 now)
{
	return f->has_entry && f->qlen && READ_ONCE(f->entry->pause_until_ns) > now &&
	       skb_is_tcp_pure_ack(skb) && q->bypass_qlen < TQ_OVERTAKE_MAX;
}

/* Whether a packet of a flow with On-Ramp may leave at once, through the bypass list: nothing is
 * queued in the qdisc and nothing delays the packet, so only the departure must be recorded. The
 * flow must still be in its round-robin list (READY) from an earlier packet; the first packet after
 * an idle time goes through the flow.
 */
static bool tq_may_bypass_flow(const struct Qdisc *sch, const struct tq_sched *q,
			       const struct tq_flow *f, const struct sk_buff *skb, u64 now)
{
	const struct tq_skb_cb *cb = tq_cb(skb);

	if (sch->q.qlen || f->state != TQ_READY || !f->has_entry || f->has_cc || f->paced ||
	    q->config.split || cb->time_ns > now)
		return false;
	return READ_ONCE(f->entry->pause_until_ns) <= now && tq_spaced(f, cb) <= now &&
	       tq_rate_Bps(q, f, skb) == TQ_UNLIMITED;
}

/* If the flow's only packet is a pure ACK that @skb makes superfluous, @skb takes its place. ACKs
 * wait while the link is busy, and one for each packet received would take up to 6 % of the link.
 *
 * Return: false if nothing was done.
 */
static bool tq_thin_acks(struct Qdisc *sch, struct tq_flow *f, struct sk_buff *skb)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct sk_buff *earlier = f->head;

	if (!earlier || !tq_replaces_ack(skb, earlier))
		return false;
	tq_cb(skb)->time_ns = tq_cb(earlier)->time_ns;
	tq_cb(skb)->band = tq_cb(earlier)->band;
	tq_cb(skb)->waited = tq_cb(earlier)->waited;
	f->head = NULL;
	tq_list_add(&f->head, skb);
	qdisc_qstats_backlog_inc(sch, skb);
	qdisc_qstats_backlog_dec(sch, earlier);
	qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(earlier));
	consume_skb(earlier);
	q->stats.acks_thinned++;
	return true;
}

static int tq_add(struct Qdisc *sch, struct tq_flow *f, struct sk_buff *skb, u64 now)
{
	struct tq_sched *q = qdisc_priv(sch);
	u8 band = tq_cb(skb)->band;

	if (f->qlen == 1 && q->config.ack_thin && skb_is_tcp_pure_ack(skb) &&
	    tq_thin_acks(sch, f, skb))
		return NET_XMIT_SUCCESS;
	tq_queue(f, skb);
	if (!f->qlen++)
		q->inactive--;
	f->band = band;
	q->bands[band].packets++;
	tq_account(sch, skb);
	if (f->state == TQ_IDLE)
		tq_start(q, f, skb, now);
	else if (f->state == TQ_THROTTLED && (f->has_entry || f->has_early))
		tq_move(q, f);
	return NET_XMIT_SUCCESS;
}

static int tq_enqueue_flow(struct Qdisc *sch, struct tq_flow *f, struct sk_buff *skb,
			   struct sk_buff **to_free, u64 now)
{
	struct tq_sched *q = qdisc_priv(sch);

	if (unlikely(q->config.onramp) && f->has_entry && timely_flow_onramp(f->entry) &&
	    READ_ONCE(f->entry->resume_Bps) != TIMELY_RESUME_UNLIMITED)
		timely_onramp_no_signal(f->entry, now);
	if (unlikely(tq_overtakes(q, f, skb, now))) {
		q->stats.onramp_acks_passed++;
		return tq_bypass(sch, q, skb);
	}
	if (unlikely(f->qlen >= q->config.flow_limit)) {
		q->stats.flows_plimit++;
		return timely_qdisc_drop(skb, sch, to_free, FLOW_LIMIT);
	}
	tq_set_cb(q, f, skb, now);
	if (tq_may_bypass_flow(sch, q, f, skb, now)) {
		q->bypass_flow = f;
		q->stats.fastpath_packets++;
		return tq_bypass(sch, q, skb);
	}
	return tq_add(sch, f, skb, now);
}

static int tq_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		      struct sk_buff **to_free)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct sock *key = tq_key(q, skb);
	struct tq_flow **bucket = tq_bucket(&q->table, key);
	struct tq_skb_cb *cb;
	bool first = false;
	u64 now, time_ns;
	struct tq_flow *f;
	u8 band;

	/* With many flows, neither the bucket nor the first flow in it is in the CPU's caches. The
	 * code between a prefetch and the first use takes about as long as the prefetch.
	 */
	prefetch(bucket);
	now = timely_clock_ns();
	prefetchw(*bucket);

	if (q->config.ack_special && skb_is_tcp_pure_ack(skb))
		first = tq_mark_ack(q, skb, now);
	band = q->config.prio2band[skb->priority & TC_PRIO_MAX];
	if (unlikely(q->bands[band].packets >= sch->limit)) {
		q->stats.band_drops[band]++;
		return timely_qdisc_drop(skb, sch, to_free, BAND_LIMIT);
	}
	time_ns = skb->tstamp ? timely_tstamp_ns(skb) : now;
	if (unlikely(!tq_timestamp_in_range(q, time_ns, now)) &&
	    !tq_check_timestamp(q, skb, &time_ns, now))
		return timely_qdisc_drop(skb, sch, to_free, HORIZON_LIMIT);
	/* Compilers that optimize for size would clear all members with a slow loop. */
	cb = tq_cb(skb);
	cb->time_ns = time_ns;
	cb->original = NULL;
	cb->segs = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
	cb->bits = 0;
	cb->band = band;
	/* The packets of an unconnected socket go to any address: On-Ramp does not pause them. */
	if (unlikely(q->config.onramp) && tq_is_socket(skb, key) && key->sk_state != TCP_CLOSE)
		tq_set_kind(skb);
	if (first && q->bypass_qlen < sch->limit) {
		q->stats.acks_first++;
		return tq_bypass(sch, q, skb);
	}

	f = tq_classify(sch, skb, key, bucket, now);
	if (!f)
		return tq_bypass(sch, q, skb);
	return tq_enqueue_flow(sch, f, skb, to_free, now);
}

/* ---- dequeue ---- */

/* Move flows that are due from the wheel to the round-robin lists. unthrottle_ns is a moving
 * average of how late flows are moved; a new value has a weight of 1/8.
 */
static void tq_release(struct tq_sched *q, u64 now)
{
	u64 ahead = now + q->config.offload_ns;
	struct timely_wheel_node *node;
	struct tq_flow *f;

	node = timely_wheel_expire(q->wheel, ahead);
	if (!node)
		return;
	q->unthrottle_ns -= q->unthrottle_ns >> 3;
	q->unthrottle_ns += (ahead - min(node->due_ns, ahead)) >> 3;
	do {
		f = container_of(node, struct tq_flow, node);
		/* The packets of these flows are read after the loop, one flow in each call of
		 * dequeue: the prefetches have finished by then.
		 */
		prefetchw(f->head);
		tq_unthrottle(q, f);
		node = timely_wheel_expire(q->wheel, ahead);
	} while (node);
}

/* The round-robin list to serve next; NULL if no flow is ready. As in fq, a band sends its
 * weight in bytes, new flows first, and then the next band does. The search ends when all bands
 * have credit and empty lists.
 */
static struct tq_round *tq_next_round(struct tq_sched *q)
{
	struct tq_band *band = &q->bands[q->band_nr];
	int empty = 0;
	s64 weight;

	if (!q->ready)
		return NULL;
	for (;;) {
		if (band->credit > 0) {
			if (band->new_flows.first)
				return &band->new_flows;
			if (band->old_flows.first)
				return &band->old_flows;
			if (++empty > TIMELY_BANDS)
				return NULL;
		} else {
			empty = 0;
		}
		if (++q->band_nr == TIMELY_BANDS)
			q->band_nr = 0;
		band = &q->bands[q->band_nr];
		weight = q->config.weights[q->band_nr];
		band->credit = min((s64)band->credit + weight, weight);
	}
}

/* End the flow's round-robin slot without sending: the flow has no packets any more. */
static void tq_leave_round(struct tq_sched *q, struct tq_round *round,
			   struct tq_flow *f, u64 now)
{
	struct tq_band *band = &q->bands[q->band_nr];

	round->first = tq_round_after(f);
	/* A flow that becomes new again with each packet must not keep old flows from being served.
	 */
	if (round == &band->new_flows && band->old_flows.first)
		tq_round_add(&band->old_flows, f);
	else
		tq_make_idle(q, f, now);
}

/* The flow has its round-robin slot, but its first packet is not due: move the flow to the timing
 * wheel. If the flow has waited in the wheel for this packet before, the flow's rate has fallen or
 * its pause was extended; put_back counts such packets.
 */
static void tq_put_back(struct tq_sched *q, struct tq_round *round,
			struct tq_flow *f, struct sk_buff *skb, u64 due)
{
	round->first = tq_round_after(f);
	q->ready--;
	if (tq_cb(skb)->waited)
		q->stats.put_back++;
	tq_cb(skb)->waited = 1;
	tq_throttle(q, f, due);
}

/* Save TCP's timestamp and the time of departure, from which tq_spaced() computes when the next
 * packet may leave.
 */
static void tq_save_departure(struct tq_flow *f, const struct sk_buff *skb, u64 now)
{
	if (!tq_cb(skb)->tcp_tstamp)
		return;
	f->tstamp_ns = tq_cb(skb)->time_ns;
	f->departed_ns = now;
}

/* Take the first packet out of the flow, account for it and set when the next packet may leave.
 * Return: the packet, or its first sub-segment.
 */
static struct sk_buff *tq_send(struct Qdisc *sch, struct tq_flow *f,
			       struct sk_buff *skb, u64 now, u64 due)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_band *band = &q->bands[q->band_nr];
	u32 len;

	tq_unqueue(sch, f, skb);
	tq_save_departure(f, skb, now);
	if (unlikely(q->config.split) && skb_is_gso(skb) && !tq_cb(skb)->subseg)
		skb = tq_split(sch, f, skb);
	if (!tq_cb(skb)->more) {
		if (!--f->qlen)
			tq_emptied(q, f);
		q->bands[tq_cb(skb)->band].packets--;
		tq_free_original(skb);
	}
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	len = qdisc_pkt_len(skb);
	f->credit -= len;
	band->credit -= len;
	if ((s64)(now - due - q->config.ce_threshold_ns) > 0 && INET_ECN_set_ce(skb))
		q->stats.ce_mark++;
	if (tq_cb(skb)->charge && q->config.pacing)
		tq_charge(q, f, skb, now, due);
	else
		f->paced = 0;
	/* The packet is not due yet, but within the option offload_horizon: the device delays it.
	 * tq_charge() comes before: it takes a timestamp for one that TCP has computed.
	 */
	if (unlikely(due > now))
		timely_set_tstamp_ns(skb, due);
	if (tq_cb(skb)->more)
		tq_time_next_subseg(q, f, skb, due);
	if (tq_must_record(f, skb))
		tq_record(sch, q, f, skb, max(now, due));
	return skb;
}

/* Deficit round robin among the ready flows. Return: NULL if no flow has a packet that is due. */
static struct sk_buff *tq_next_packet(struct Qdisc *sch, u64 now)
{
	struct tq_sched *q = qdisc_priv(sch);
	u64 ahead = now + q->config.offload_ns;
	struct tq_round *round;
	struct sk_buff *skb;
	struct tq_flow *f;
	u64 due;

	while ((round = tq_next_round(q))) {
		f = round->first;
		if (f->credit <= 0) {
			f->credit += q->config.quantum;
			round->first = tq_round_after(f);
			tq_round_add(&q->bands[q->band_nr].old_flows, f);
			continue;
		}
		skb = tq_peek(f);
		if (!skb) {
			tq_leave_round(q, round, f, now);
			continue;
		}
		due = tq_due(q, f, skb);
		if (due <= ahead)
			return tq_send(sch, f, skb, now, due);
		tq_put_back(q, round, f, skb, due);
	}
	return NULL;
}

/* Set the timer for the next flow of the timing wheel. */
static void tq_arm(struct tq_sched *q)
{
	u64 next = timely_wheel_next_ns(q->wheel);

	if (next == TQ_UNLIMITED)
		return;
	q->slack_ns = min(q->slack_ns, q->config.timer_slack_ns);
	qdisc_watchdog_schedule_range_ns(&q->watchdog, next - q->config.offload_ns, q->slack_ns);
	q->slack_ns += q->slack_ns / TQ_SLACK_GROWTH + 1;
}

/* Record the departure of a packet that tq_may_bypass_flow() has let through. */
static void tq_record_bypassed(const struct Qdisc *sch, struct tq_sched *q,
			       const struct sk_buff *skb)
{
	struct tq_flow *f = q->bypass_flow;
	u64 now = timely_clock_ns();

	q->bypass_flow = NULL;
	tq_save_departure(f, skb, now);
	if (tq_must_record(f, skb))
		tq_record(sch, q, f, skb, now);
}

static struct sk_buff *tq_dequeue(struct Qdisc *sch)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now;

	/* Empty the list of changed flow entries even if no packet is queued: the list has
	 * references to the entries, which would otherwise stay.
	 */
	if (unlikely(!llist_empty(&q->notifier.changed)))
		tq_take_changed(q);
	if (!sch->q.qlen)
		return NULL;
	if (unlikely(q->bypass)) {
		skb = tq_list_pop(&q->bypass);
		q->bypass_qlen--;
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		if (q->bypass_flow)
			tq_record_bypassed(sch, q, skb);
		goto out;
	}
	now = timely_clock_ns();
	tq_release(q, now);
	skb = tq_next_packet(sch, now);
	if (!skb) {
		tq_arm(q);
		return NULL;
	}
out:
	/* The control block has the number of frames, because skb_shinfo(skb) is not in the CPU's
	 * caches here.
	 */
	_bstats_update(&sch->bstats, qdisc_pkt_len(skb), tq_cb(skb)->segs);
	return skb;
}

/* ---- creating and destroying a qdisc ---- */

static void tq_purge_list(struct sk_buff **head)
{
	if (*head)
		rtnl_kfree_skbs(*head, (*head)->prev);
	*head = NULL;
}

static void tq_purge_flow(struct Qdisc *sch, struct tq_flow *f)
{
	struct sk_buff *skb;

	while ((skb = skb_rb_first(&f->early))) {
		tq_unqueue(sch, f, skb);
		rtnl_kfree_skbs(skb, skb);
	}
	for (skb = f->head; skb && tq_cb(skb)->subseg; skb = skb->next)
		tq_free_original(skb);
	tq_purge_list(&f->head);
}

static void tq_purge_table(struct Qdisc *sch, struct tq_table *table)
{
	struct tq_flow **bucket, *f;
	u32 nr;

	for (nr = 0; nr < table->buckets; nr++) {
		bucket = tq_table_bucket(table, nr);
		while ((f = *bucket)) {
			*bucket = f->hash_next;
			tq_purge_flow(sch, f);
			tq_free_flow(qdisc_priv(sch), f);
		}
	}
}

static void tq_reset(struct Qdisc *sch)
{
	struct tq_sched *q = qdisc_priv(sch);

	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	qdisc_watchdog_cancel(&q->watchdog);
	spin_lock_bh(&q->reap_lock);
	tq_purge_list(&q->bypass);
	q->bypass_qlen = 0;
	q->bypass_flow = NULL;
	tq_purge_table(sch, &q->table);
	/* Release the references of q->notifier.changed to flow entries: no flow uses these now. */
	tq_take_changed(q);
	memset(q->bands, 0, sizeof(q->bands));
	q->flows = 0;
	q->inactive = 0;
	q->throttled = 0;
	q->ready = 0;
	if (q->wheel)
		timely_wheel_init(q->wheel, q->wheel->shift, timely_clock_ns());
	spin_unlock_bh(&q->reap_lock);
}

static int tq_init(struct Qdisc *sch, struct nlattr *opt,
		   struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);
	int err;

	q->sch = sch;
	q->notifier.wake = tq_wake;
	q->slack_ns = U32_MAX;
	init_llist_head(&q->notifier.changed);
	spin_lock_init(&q->reap_lock);
	INIT_DELAYED_WORK(&q->reap, tq_reap);
	qdisc_watchdog_init_clockid(&q->watchdog, sch, CLOCK_MONOTONIC);
	tq_default_options(&q->options, sch);
	err = opt ? tq_change(sch, opt, extack) : tq_apply(sch, &q->options, extack);
	/* tc shows the message of a request that succeeds as a warning. */
	if (!err && sch->parent == TC_H_ROOT && qdisc_dev(sch)->real_num_tx_queues > 1)
		NL_SET_ERR_MSG_MOD(extack,
				   "one qdisc for all transmit queues; man tc-timely shows how to keep mq");
	return err;
}

/* The kernel calls this function after a failed tq_init(), too. */
static void tq_destroy(struct Qdisc *sch)
{
	struct tq_sched *q = qdisc_priv(sch);
	u32 i;

	cancel_delayed_work_sync(&q->reap);
	tq_reset(sch);
	tq_onramp_leave(sch, q->joined);
	q->joined = 0;
	for (i = 0; q->table.pages && i < TQ_PAGES; i++)
		kfree(q->table.pages[i]);
	kvfree(q->table.pages);
	kvfree(q->wheel);
}

static struct Qdisc_ops tq_qdisc_ops __read_mostly = {
	.id		= "timely",
	.priv_size	= sizeof(struct tq_sched),
	.enqueue	= tq_enqueue,
	.dequeue	= tq_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= tq_init,
	.reset		= tq_reset,
	.destroy	= tq_destroy,
	.change		= tq_change,
	.dump		= tq_dump,
	.dump_stats	= tq_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init tq_load(void)
{
	int err;

	BUILD_BUG_ON(offsetof(struct tq_flow, clock_ns) > 64);
	BUILD_BUG_ON(sizeof(struct tq_flow) > 128);

	get_random_bytes(&tq_ack_time_key, sizeof(tq_ack_time_key));
	tq_flow_cache = kmem_cache_create("timely_flow", sizeof(struct tq_flow), 0,
					  SLAB_HWCACHE_ALIGN, NULL);
	if (!tq_flow_cache)
		return -ENOMEM;
	err = register_qdisc(&tq_qdisc_ops);
	if (err)
		kmem_cache_destroy(tq_flow_cache);
	return err;
}

static void __exit tq_unload(void)
{
	unregister_qdisc(&tq_qdisc_ops);
	kmem_cache_destroy(tq_flow_cache);
}

module_init(tq_load);
module_exit(tq_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(TIMELY_VERSION);
MODULE_DESCRIPTION("TIMELY's rate control engine: fq with a timing wheel and lazy rate enforcement");
MODULE_ALIAS("net-sch-timely");
