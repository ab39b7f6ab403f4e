// SPDX-License-Identifier: GPL-2.0
/*
 * The qdisc "trim": the switch service of NDP (SIGCOMM'17, section 3.1), for Linux machines that
 * forward packets. "The paper" is NDP. A switch with full queues keeps the first bytes of a packet
 * and drops the rest, so that the receiver learns within a round trip which packets to ask for.
 *
 *	        control, trimmed before ------------------------+
 *	                                                        v
 *	enqueue -> data queue (limit) -------------------.   header queue (header_limit)
 *	             |  full: trim the arrival or         \      |         | full
 *	             |  the queue's last packet            \     |         v
 *	             +--------------------------------------\----+   return to sender, or drop
 *	                                                     v   v
 *	                               1 : ratio weighted round robin -> device
 *
 * A packet that cannot be trimmed, see enum timely_trim_kind, is dropped at a full data queue, as
 * other qdiscs drop it. A packet that is not longer than a trimmed packet enters the header queue
 * whole, as in SAI.
 *
 * Notable differences from the paper:
 *  - A packet whose DSCP is trimmable, not a packet of a certain protocol, is trimmed; control
 *    packets are known by their DSCP, too. Switches on sale work like this.
 *  - Only if both the arrival and the last packet of the data queue can be trimmed does the coin
 *    decide. So traffic that cannot be trimmed does not gain from trimming the other traffic.
 *  - Only UDP packets on Ethernet are returned to their sender: sch_trim_packet.c.
 *
 * GSO packets are segmented first: the queues count packets as the network does.
 *
 * Parents know the length of a packet only as it was before enqueue. After each call that trimmed,
 * segmented or displaced packets, trim_settle() tells them the difference.
 */

#include <linux/module.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <net/gso.h>

#include <uapi/linux/timely_version.h>

#include "sch_trim.h"

/* ---- queues ---- */

static void trim_push(struct trim_queue *queue, struct sk_buff *skb)
{
	skb->next = NULL;
	if (queue->head) {
		queue->before = queue->tail;
		queue->tail->next = skb;
	} else {
		queue->head = skb;
	}
	queue->tail = skb;
	queue->packets++;
	queue->bytes += qdisc_pkt_len(skb);
}

/* Put a packet in the place of the last packet. Return: the packet that was the last one. */
static struct sk_buff *trim_replace_tail(struct trim_queue *queue, struct sk_buff *skb)
{
	struct sk_buff *tail = queue->tail;

	skb->next = NULL;
	if (queue->packets > 1)
		queue->before->next = skb;
	else
		queue->head = skb;
	queue->tail = skb;
	queue->bytes += qdisc_pkt_len(skb);
	queue->bytes -= qdisc_pkt_len(tail);
	skb_mark_not_on_list(tail);
	return tail;
}

static void trim_purge(struct trim_queue *queue)
{
	if (queue->head)
		rtnl_kfree_skbs(queue->head, queue->tail);
	memset(queue, 0, sizeof(*queue));
}

/* Put a packet into a queue, as one more packet of the qdisc. */
static int trim_accept(struct Qdisc *sch, struct trim_queue *queue, struct sk_buff *skb)
{
	trim_push(queue, skb);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* ---- enqueue ---- */

static int trim_drop(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free,
		     u64 *counter)
{
	++*counter;
	return timely_qdisc_drop(skb, sch, to_free, OVERLIMIT);
}

/* Put a packet into the header queue as it is. @counter: counts the packet if there is room. */
static int trim_pass(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free,
		     u64 *counter)
{
	struct trim_sched *q = qdisc_priv(sch);

	if (unlikely(!timely_trim_fits(&q->cfg, q->headers.bytes, qdisc_pkt_len(skb))))
		return trim_drop(sch, skb, to_free, &q->stats.dropped_control);
	++*counter;
	return trim_accept(sch, &q->headers, skb);
}

/* Trim a packet, which is in no queue, and put it into the header queue. If that is full, return
 * the packet to its sender or drop it. Return: NET_XMIT_SUCCESS if the packet is in the header
 * queue.
 */
static int trim_packet(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free,
		       const struct timely_trim_packet *packet)
{
	struct trim_sched *q = qdisc_priv(sch);
	u32 removed = skb->len - q->cfg.size;
	bool fits = timely_trim_fits(&q->cfg, q->headers.bytes, trim_bytes(skb, q->cfg.size));

	/* The packet is not changed if the change would have no effect. */
	if ((fits || q->cfg.give_back) && unlikely(!trim_cut(&q->cfg, skb, packet)))
		return trim_drop(sch, skb, to_free, &q->stats.dropped_memory);
	q->stats.trim_packets++;
	q->stats.trim_bytes += removed;
	if (fits) {
		trim_cb(skb)->trimmed = true;
		return trim_accept(sch, &q->headers, skb);
	}
	if (!q->cfg.give_back || !trim_may_return(sch, skb, packet))
		return trim_drop(sch, skb, to_free, &q->stats.dropped_trim_packets);
	if (trim_return(sch, skb, packet))
		q->stats.returned++;
	else
		q->stats.return_failed++;
	return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
}

/* The arrival takes the place of the data queue's last packet, which is trimmed. */
static int trim_displace(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free,
			 const struct timely_trim_packet *tail_packet)
{
	struct trim_sched *q = qdisc_priv(sch);
	struct sk_buff *tail = trim_replace_tail(&q->data, skb);
	u64 trimmed = q->stats.trim_packets;

	/* The queue's length in packets stays: the tail is counted again if it is queued again. */
	qdisc_qstats_backlog_inc(sch, skb);
	qdisc_qstats_backlog_dec(sch, tail);
	trim_packet(sch, tail, to_free, tail_packet);
	q->stats.trim_tail += q->stats.trim_packets - trimmed;
	return NET_XMIT_SUCCESS;
}

/* Which counter counts the packets that cannot be trimmed for this reason. */
static u64 *trim_dropped(struct tc_trim_stats *stats, enum timely_trim_kind kind)
{
	switch (kind) {
	case TIMELY_TRIM_DSCP:
		return &stats->dropped_dscp;
	case TIMELY_TRIM_NOT_IP:
		return &stats->dropped_not_ip;
	case TIMELY_TRIM_FRAGMENT:
		return &stats->dropped_fragment;
	case TIMELY_TRIM_IPSEC:
		return &stats->dropped_ipsec;
	default:
		return &stats->dropped_headers;
	}
}

/* A packet has come to a full data queue. */
static int trim_overflow(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct trim_sched *q = qdisc_priv(sch);
	struct timely_trim_packet packet, tail;
	enum timely_trim_kind kind = trim_parse(&q->cfg, skb, &packet);

	qdisc_qstats_overlimit(sch);
	if (kind == TIMELY_TRIM_SHORT)
		return trim_pass(sch, skb, to_free, &q->stats.short_packets);
	if (kind != TIMELY_TRIM_POSSIBLE)
		return trim_drop(sch, skb, to_free, trim_dropped(&q->stats, kind));
	if (timely_trim_wants_tail(&q->cfg, get_random_u32()) &&
	    trim_parse(&q->cfg, q->data.tail, &tail) == TIMELY_TRIM_POSSIBLE)
		return trim_displace(sch, skb, to_free, &tail);
	return trim_packet(sch, skb, to_free, &packet);
}

static int trim_enqueue_one(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct trim_sched *q = qdisc_priv(sch);

	trim_cb(skb)->trimmed = false;
	if (unlikely(timely_trim_is_control(&q->cfg, trim_dscp(skb))))
		return trim_pass(sch, skb, to_free, &q->stats.control);
	if (likely(q->data.packets < q->cfg.limit))
		return trim_accept(sch, &q->data, skb);
	return trim_overflow(sch, skb, to_free);
}

/* Segment a GSO packet and enqueue the segments. Return: NET_XMIT_SUCCESS if at least one segment,
 * or a trimmed one, is in the queues.
 */
static int trim_enqueue_gso(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
	struct trim_sched *q = qdisc_priv(sch);
	struct sk_buff *seg, *next, *segs = skb_gso_segment(skb, features);
	int result = NET_XMIT_DROP, one;

	if (IS_ERR_OR_NULL(segs))
		return trim_drop(sch, skb, to_free, &q->stats.dropped_memory);
	q->stats.segmented++;
	skb_list_walk_safe(segs, seg, next) {
		skb_mark_not_on_list(seg);
		qdisc_skb_cb(seg)->pkt_len = seg->len;
		timely_set_pkt_segs(seg, 1);
		q->stats.segments++;
		one = trim_enqueue_one(sch, seg, to_free);
		if (result != NET_XMIT_SUCCESS)
			result = one;
	}
	consume_skb(skb);
	return result;
}

/* The parents will count one more packet of @bytes bytes if the result of enqueue is success. Tell
 * them the difference from what has changed here since the queues had @packets and @backlog.
 */
static void trim_settle(struct Qdisc *sch, u32 packets, u32 backlog, u32 bytes)
{
	int more = sch->q.qlen - packets;
	int longer = sch->qstats.backlog - backlog;

	if (more != 1 || longer != bytes)
		qdisc_tree_reduce_backlog(sch, 1 - more, (int)bytes - longer);
}

static int trim_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	u32 packets = sch->q.qlen, backlog = sch->qstats.backlog, bytes = qdisc_pkt_len(skb);
	int result;

	if (unlikely(skb_is_gso(skb)))
		result = trim_enqueue_gso(sch, skb, to_free);
	else
		result = trim_enqueue_one(sch, skb, to_free);
	if (likely(result == NET_XMIT_SUCCESS))
		trim_settle(sch, packets, backlog, bytes);
	return result;
}

/* ---- dequeue ---- */

static struct sk_buff *trim_dequeue(struct Qdisc *sch)
{
	struct trim_sched *q = qdisc_priv(sch);
	struct trim_queue *queue = &q->data;
	struct sk_buff *skb;

	if (unlikely(timely_trim_headers_next(&q->round, &q->cfg, q->headers.packets,
					      q->data.packets)))
		queue = &q->headers;
	skb = trim_pop(queue);
	if (!skb)
		return NULL;
	q->stats.tx_trim_packets += trim_cb(skb)->trimmed;
	/* No packet here has several segments, so skb_shinfo(skb) need not be read. */
	_bstats_update(&sch->bstats, qdisc_pkt_len(skb), 1);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	return skb;
}

/* ---- creating and destroying a qdisc ---- */

static void trim_reset(struct Qdisc *sch)
{
	struct trim_sched *q = qdisc_priv(sch);

	trim_purge(&q->data);
	trim_purge(&q->headers);
	q->round.headers = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

static int trim_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct trim_sched *q = qdisc_priv(sch);

	trim_default_options(&q->options);
	if (opt)
		return trim_change(sch, opt, extack);
	trim_apply(sch, &q->options);
	return 0;
}

static struct Qdisc_ops trim_qdisc_ops __read_mostly = {
	.id		= "trim",
	.priv_size	= sizeof(struct trim_sched),
	.enqueue	= trim_enqueue,
	.dequeue	= trim_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= trim_init,
	.reset		= trim_reset,
	.change		= trim_change,
	.dump		= trim_dump,
	.dump_stats	= trim_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init trim_load(void)
{
	BUILD_BUG_ON((int)TIMELY_TRIM_COIN != TIMELY_TRIM_RANDOM);
	BUILD_BUG_ON((int)TIMELY_TRIM_ONLY_ARRIVAL != TIMELY_TRIM_ARRIVAL);
	BUILD_BUG_ON((int)TIMELY_TRIM_ONLY_TAIL != TIMELY_TRIM_TAIL);
	return register_qdisc(&trim_qdisc_ops);
}

static void __exit trim_unload(void)
{
	unregister_qdisc(&trim_qdisc_ops);
}

module_init(trim_load);
module_exit(trim_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(TIMELY_VERSION);
MODULE_DESCRIPTION("NDP's switch service: trims packets instead of dropping them");
MODULE_ALIAS("net-sch-trim");
