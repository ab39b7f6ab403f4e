/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The objects of the qdisc "trim", and the functions that its files call in each other:
 *
 *	sch_trim.c		the queues and the path of a packet
 *	sch_trim_packet.c	reads, trims and returns packets
 *	sch_trim_options.c	options, and what tc shows
 *
 * The decisions are those of net/timely/engine/trim.c.
 */
#ifndef _NET_SCHED_SCH_TRIM_H
#define _NET_SCHED_SCH_TRIM_H

#include <net/pkt_sched.h>

#include <net/timely_trim.h>
#include <timely/engine/trim.h>
#include <uapi/linux/timely_trim.h>

/**
 * struct trim_queue - packets in the order of their arrival
 * @head: first packet, linked by skb->next; NULL if the queue is empty
 * @tail: last packet; valid if @head is not NULL
 * @before: the packet before @tail; valid if the queue has two packets or more. The last packet can
 *	be replaced by means of this pointer, without links in the opposite direction.
 * @packets: number of packets
 * @bytes: sum of the packets' lengths
 */
struct trim_queue {
	struct sk_buff *head;
	struct sk_buff *tail;
	struct sk_buff *before;
	u32 packets;
	u64 bytes;
};

/* The options of <net/timely_trim.h>, as indices of tables. */
#define TRIM_OPTION_INDEX(field, ...)	TRIM_O_##field,
enum trim_option {
	TIMELY_TRIM_OPTIONS(TRIM_OPTION_INDEX)
	TRIM_O_COUNT
};

/**
 * struct trim_options - the options in the units of netlink
 * @value: the options, by enum trim_option
 */
struct trim_options {
	u64 value[TRIM_O_COUNT];
};

/**
 * struct trim_sched - the qdisc's private data
 * @cfg: the options in force
 * @round: state of the weighted round robin
 * @data: the data queue
 * @headers: the header queue
 * @stats: the counters; the lengths of the queues are not kept up to date here
 * @options: the options as they were given, from which a change starts
 */
struct trim_sched {
	struct timely_trim_cfg cfg;
	struct timely_trim_round round;
	struct trim_queue data;
	struct trim_queue headers;
	struct tc_trim_stats stats;
	struct trim_options options;
};

/**
 * struct trim_skb_cb - what the qdisc knows about a queued packet
 * @trimmed: this qdisc has trimmed the packet
 */
struct trim_skb_cb {
	bool trimmed;
};

static inline struct trim_skb_cb *trim_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct trim_skb_cb));
	return (struct trim_skb_cb *)qdisc_skb_cb(skb)->data;
}

/**
 * trim_pop() - take the first packet out of a queue
 * @queue: the queue
 *
 * Return: the packet; NULL if the queue is empty.
 */
static inline struct sk_buff *trim_pop(struct trim_queue *queue)
{
	struct sk_buff *skb = queue->head;

	if (!skb)
		return NULL;
	queue->head = skb->next;
	queue->packets--;
	queue->bytes -= qdisc_pkt_len(skb);
	skb_mark_not_on_list(skb);
	return skb;
}

/* sch_trim_packet.c */
u32 trim_dscp(const struct sk_buff *skb);
u32 trim_bytes(const struct sk_buff *skb, u32 size);
enum timely_trim_kind trim_parse(const struct timely_trim_cfg *cfg, const struct sk_buff *skb,
				 struct timely_trim_packet *packet);
bool trim_cut(const struct timely_trim_cfg *cfg, struct sk_buff *skb,
	      const struct timely_trim_packet *packet);
bool trim_may_return(const struct Qdisc *sch, const struct sk_buff *skb,
		     const struct timely_trim_packet *packet);
bool trim_return(struct Qdisc *sch, struct sk_buff *skb,
		 const struct timely_trim_packet *packet);

/* sch_trim_options.c */
void trim_default_options(struct trim_options *options);
void trim_apply(struct Qdisc *sch, const struct trim_options *options);
int trim_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack);
int trim_dump(struct Qdisc *sch, struct sk_buff *skb);
int trim_dump_stats(struct Qdisc *sch, struct gnet_dump *d);

#endif /* _NET_SCHED_SCH_TRIM_H */
