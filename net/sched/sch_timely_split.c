// SPDX-License-Identifier: GPL-2.0
/*
 * How the qdisc "timely" splits GSO packets into sub-segments that are paced one by one (option
 * split).
 *
 * Bursts of 64 KB at the link rate fill the queues of switches (TIMELY, section 6, Fig. 16). A
 * packet that is about to leave is split into smaller GSO packets, and the device segments these
 * further. The first sub-segment leaves; the others are put before all packets of the flow.
 * tq_split() splits the data, and tq_time_next_subseg() sets the times.
 */

#include <linux/ip.h>
#include <net/gso.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "sch_timely_pace.h"

/* Upper limit of the length that a size table gives a packet, bytes. */
#define TQ_TABLE_BYTES_MAX	(1 << 24)

/* tq_segment() overwrites gso_size, which all clones of the packet share. Give the packet a
 * gso_size of its own, unless the only other clone is in TCP's retransmission queue: TCP does not
 * read that clone's gso_size while this clone is queued here.
 *
 * Return: false if there is no memory.
 */
static bool tq_unshare_gso_size(struct sk_buff *skb)
{
	int refs = atomic_read(&skb_shinfo(skb)->dataref) & SKB_DATAREF_MASK;

	if (refs <= (skb->fclone == SKB_FCLONE_CLONE && skb->destructor ? 2 : 1))
		return true;
	return !skb_unclone(skb, GFP_ATOMIC | __GFP_NOWARN);
}

/* A packet may be split if it has a type of TQ_GSO_SPLIT and no type outside TQ_GSO_KNOWN. Packets
 * with another type, such as those of tunnels, stay whole.
 */
#define TQ_GSO_SPLIT	(SKB_GSO_TCPV4 | SKB_GSO_TCPV6 | SKB_GSO_UDP_L4)
#define TQ_GSO_KNOWN	(TQ_GSO_SPLIT | SKB_GSO_DODGY | SKB_GSO_TCP_ECN | SKB_GSO_TCP_FIXEDID)

/* How many frames of the packet a sub-segment has; 0 if the packet stays whole. */
static u32 tq_subseg_frames(const struct tq_sched *q, const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 headers, frames;

	if (!(info->gso_type & TQ_GSO_SPLIT) || (info->gso_type & ~TQ_GSO_KNOWN) ||
	    skb->encapsulation || skb->ip_summed != CHECKSUM_PARTIAL ||
	    !info->gso_size || info->frag_list)
		return 0;
	headers = tq_headers(skb);
	if (!headers)
		return 0;
	headers -= skb_network_offset(skb);
	if (headers + info->gso_size > U16_MAX)
		return 0;
	frames = max(q->config.split / (headers + info->gso_size), 1U);
	/* A sub-segment is at most 65535 bytes long: the length field of IP has 16 bits. */
	frames = min(frames, (U16_MAX - headers) / info->gso_size);
	return tq_payload(skb) > frames * info->gso_size ? frames : 0;
}

/**
 * struct tq_gso - properties of a packet that its sub-segments need
 * @size: payload bytes of a frame
 * @type: gso_type of the packet, SKB_GSO_*
 * @frames: frames of each sub-segment but the last, which may have fewer
 * @header: bytes of the transport header
 * @id: IPv4 ID of the first frame
 * @numbered: the IPv4 IDs of the frames count up from @id; clear for IPv6 and for fixed IDs
 */
struct tq_gso {
	u32 size;
	u32 type;
	u32 frames;
	u32 header;
	u16 id;
	bool numbered;
};

static struct tq_gso tq_gso_of(const struct sk_buff *skb, u32 frames)
{
	bool ipv4 = skb->protocol == htons(ETH_P_IP);

	return (struct tq_gso) {
		.size = skb_shinfo(skb)->gso_size,
		.type = skb_shinfo(skb)->gso_type,
		.frames = frames,
		.header = tq_transport_header(skb),
		.id = ipv4 ? ntohs(ip_hdr(skb)->id) : 0,
		.numbered = ipv4 && !(skb_shinfo(skb)->gso_type & SKB_GSO_TCP_FIXEDID),
	};
}

/* The length in bytes that a size table (tc-stab(8)) gives a packet of @len bytes. The kernel's
 * function for this is not exported to modules.
 */
static u32 tq_table_bytes(const struct qdisc_size_table *stab, u32 len)
{
	const struct tc_sizespec *opts = &stab->szopts;
	s64 bytes = (s64)len + opts->overhead;
	u32 cell;

	if (opts->tsize) {
		cell = max(bytes + opts->cell_align, 0LL) >> opts->cell_log;
		bytes = stab->data[cell % opts->tsize];
		/* A cell beyond the table: add the last entry cell / tsize times, as the kernel's
		 * function does.
		 */
		bytes += (s64)stab->data[opts->tsize - 1] * (cell / opts->tsize);
		bytes <<= opts->size_log;
	}
	return clamp(bytes, 1LL, (s64)TQ_TABLE_BYTES_MAX);
}

/* Set the packet's length by a size table: the table of this qdisc, else the table of the device's
 * root qdisc. Without a size table the length stays.
 */
static void tq_apply_size_table(const struct Qdisc *sch, struct sk_buff *skb)
{
	const struct qdisc_size_table *stab = rcu_dereference_bh(sch->stab);

	if (likely(!stab))
		stab = rcu_dereference_bh(qdisc_root_bh(sch)->stab);
	if (unlikely(stab))
		qdisc_skb_cb(skb)->pkt_len = tq_table_bytes(stab, skb->len);
}

/* Complete sub-segment number @nr, from 0. Segmentation returns packets without GSO: make the
 * sub-segment a GSO packet if it has several frames, and set its IPv4 ID and its length.
 */
static void tq_finish_subseg(struct Qdisc *sch, struct sk_buff *subseg,
			     const struct tq_gso *gso, u32 nr)
{
	/* The sub-segment's own offset: sub-segments lack BIG TCP's IPv6 extension header. */
	u32 header = skb_transport_offset(subseg) + gso->header;
	u32 payload = subseg->len - header;
	u32 segs = DIV_ROUND_UP(payload, gso->size);

	if (segs > 1) {
		skb_shinfo(subseg)->gso_size = gso->size;
		skb_shinfo(subseg)->gso_type = gso->type;
		skb_shinfo(subseg)->gso_segs = segs;
	}
	if (gso->numbered) {
		ip_hdr(subseg)->id = htons(gso->id + nr * gso->frames);
		ip_send_check(ip_hdr(subseg));
	}
	qdisc_skb_cb(subseg)->pkt_len = subseg->len + (segs - 1) * header;
	tq_apply_size_table(sch, subseg);
	timely_set_pkt_segs(subseg, segs);
	tq_cb(subseg)->segs = segs;
}

/* Segment a packet into sub-segments of @frames frames. Return: a list linked by skb->next; NULL if
 * there is no memory or the kernel cannot segment the packet.
 */
static struct sk_buff *tq_segment(struct sk_buff *skb, u32 frames)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	u32 gso_size = info->gso_size;
	struct sk_buff *subsegs;

	/* With the gso_size of a sub-segment, segmentation returns one packet for each sub-segment.
	 * The features are not the device's: the kernel emulates missing offloads later, when it
	 * passes the sub-segments to the driver.
	 */
	info->gso_size = frames * gso_size;
	subsegs = __skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA,
				    false);
	skb_shinfo(skb)->gso_size = gso_size;
	return IS_ERR(subsegs) ? NULL : subsegs;
}

/* Keep the packet, @skb, until its last sub-segment has left. @skb is the clone that TCP has sent.
 * While this clone exists, TCP knows that the data are still on this host, and neither retransmits
 * the data nor sends a loss probe. TCP recognises the clone by its socket, so skb->sk is set again;
 * the sub-segments carry the charge to the socket's memory. A packet that is no TCP clone is freed.
 */
static void tq_keep_original(struct sk_buff *skb, struct sock *sk, struct sk_buff *last)
{
	if (skb->fclone != SKB_FCLONE_CLONE || !sk) {
		consume_skb(skb);
		return;
	}
	if (!skb->destructor)
		WRITE_ONCE(skb->sk, sk);
	tq_cb(last)->original = skb;
}

/**
 * tq_split() - split a GSO packet that is about to leave
 * @sch: the qdisc, locked
 * @f: the packet's flow; all sub-segments after the first are put before the flow's packets
 * @skb: the packet, in no list
 *
 * Return: the first sub-segment; @skb if the packet stays whole, because of its kind, its size, or
 * a lack of memory.
 */
struct sk_buff *tq_split(struct Qdisc *sch, struct tq_flow *f,
			 struct sk_buff *skb)
{
	struct tq_sched *q = qdisc_priv(sch);
	u32 frames = tq_subseg_frames(q, skb);
	struct tq_skb_cb cb = *tq_cb(skb);
	struct sk_buff *subsegs, *subseg, *last = NULL;
	struct sock *sk = skb->sk;
	u32 nr = 0, bytes = 0;
	struct tq_gso gso;

	if (!frames)
		return skb;
	gso = tq_gso_of(skb, frames);
	subsegs = tq_unshare_gso_size(skb) ? tq_segment(skb, frames) : NULL;
	if (!subsegs) {
		q->stats.segment_errors++;
		return skb;
	}
	for (subseg = subsegs; subseg; subseg = subseg->next) {
		*tq_cb(subseg) = cb;
		tq_cb(subseg)->waited = 0;
		tq_cb(subseg)->paused = 0;
		tq_cb(subseg)->tcp_tstamp = 0;
		tq_cb(subseg)->subseg = 1;
		tq_cb(subseg)->more = !!subseg->next;
		tq_finish_subseg(sch, subseg, &gso, nr++);
		bytes += qdisc_pkt_len(subseg);
		last = subseg;
	}
	if (subsegs->next)
		tq_list_push(&f->head, subsegs->next, last);
	skb_mark_not_on_list(subsegs);
	subsegs->prev = NULL;

	sch->q.qlen += nr - 1;
	sch->qstats.backlog += bytes - qdisc_pkt_len(skb);
	qdisc_tree_reduce_backlog(sch, 1 - nr, qdisc_pkt_len(skb) - bytes);
	q->stats.segmented++;
	q->stats.segments += nr;
	tq_keep_original(skb, sk, last);
	return subsegs;
}

/**
 * tq_time_next_subseg() - set when the next sub-segment of a packet may leave
 * @q: the qdisc
 * @f: the flow, whose first packet is this sub-segment
 * @skb: the sub-segment that leaves now
 * @due: when @skb was due, ns
 *
 * The option split_rate sets the rate of the sub-segments of a packet. Without this option the
 * flow's pacing clock delays the next sub-segment. If the qdisc does not pace the flow, because TCP
 * paces whole packets by timestamps, the sub-segments follow each other at the socket's rate. In a
 * flow with packets of several sockets, they follow each other at once.
 */
void tq_time_next_subseg(struct tq_sched *q, struct tq_flow *f,
			 const struct sk_buff *skb, u64 due)
{
	struct tq_skb_cb *next = tq_cb(f->head);
	u32 bytes = qdisc_pkt_len(skb);
	unsigned long rate_Bps;
	u64 ns;

	/* The delay from @skb to the next sub-segment is added below, or by the pacing clock in
	 * tq_due().
	 */
	next->time_ns = due;
	if (q->config.split_ns_per_byte) {
		ns = mul_u64_u32_shr(q->config.split_ns_per_byte, bytes, TQ_PACE_SHIFT);
		next->burst = 1;
		next->time_ns += min(ns, TQ_PACE_MAX_NS);
	} else if (tq_is_socket(skb, f->sk) && !f->paced && q->config.pacing) {
		rate_Bps = READ_ONCE(skb->sk->sk_pacing_rate);
		/* TCP computes its timestamps from payload bytes. */
		if (sk_is_tcp(skb->sk))
			bytes = tq_payload(skb);
		if (rate_Bps != ~0UL)
			next->time_ns += tq_pace_ns(f, bytes, rate_Bps);
	}
}
