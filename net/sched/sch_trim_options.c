// SPDX-License-Identifier: GPL-2.0
/*
 * The options of the qdisc "trim": how netlink messages are parsed and take effect, and the options
 * and statistics that tc shows. The path of a packet reads only the result, struct timely_trim_cfg.
 */

#include <linux/rtnetlink.h>

#include "sch_trim.h"
#include "timely_option.h"

#define TRIM_OPTION_DESC(field, attr, width, low, high, deflt, unit, doc)	\
	[TRIM_O_##field] = TIMELY_OPTION_DESC("trim", TCA_TRIM_##attr, field, width, low, high, \
					      deflt, unit),
static const struct timely_option_desc trim_option_descs[TRIM_O_COUNT] = {
	TIMELY_TRIM_OPTIONS(TRIM_OPTION_DESC)
};

#define TRIM_POLICY(field, attr, width, ...)	\
	[TCA_TRIM_##attr] = { .type = NLA_U##width },
static const struct nla_policy trim_policy[TCA_TRIM_MAX + 1] = {
	TIMELY_TRIM_OPTIONS(TRIM_POLICY)
};

/* Set the options that a netlink message contains. @options: the present options; after an error
 * they are not to be used.
 */
static int trim_parse_options(struct trim_options *options, struct nlattr *opt,
			      struct netlink_ext_ack *extack)
{
	const struct timely_option_desc *desc = trim_option_descs;
	struct nlattr *tb[TCA_TRIM_MAX + 1];
	u64 value;
	u32 i;
	/* Strict parsing: an unknown option must be an error. */
	int err = nla_parse(tb, TCA_TRIM_MAX, nla_data(opt), nla_len(opt), trim_policy, extack);

	for (i = 0; i < TRIM_O_COUNT && !err; i++, desc++) {
		if (!tb[desc->type])
			continue;
		value = timely_option_get(tb[desc->type], desc->bits);
		if (value < desc->min || value > desc->max)
			err = timely_option_refuse(extack, tb[desc->type], desc->message);
		options->value[i] = value;
	}
	return err;
}

/* Drop the first packets of a queue until it has at most @packets packets and @bytes bytes. */
static void trim_shorten(struct Qdisc *sch, struct trim_queue *queue, u32 packets, u64 bytes)
{
	struct sk_buff *skb;

	while (queue->packets > packets || queue->bytes > bytes) {
		skb = trim_pop(queue);
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
		qdisc_qstats_drop(sch);
		rtnl_kfree_skbs(skb, skb);
	}
}

/**
 * trim_default_options() - set all options to their defaults
 * @options: the result
 */
void trim_default_options(struct trim_options *options)
{
	u32 i;

	for (i = 0; i < TRIM_O_COUNT; i++)
		options->value[i] = trim_option_descs[i].initial;
}

/**
 * trim_apply() - put options into force
 * @sch: the qdisc, not locked; process context, under RTNL
 * @options: the options, each within its range
 *
 * If the queues are longer than the options allow, their first packets are dropped.
 */
void trim_apply(struct Qdisc *sch, const struct trim_options *options)
{
	struct trim_sched *q = qdisc_priv(sch);
	const u64 *value = options->value;
	/* In the paper both queues have the same memory. */
	u64 equal = min_t(u64, value[TRIM_O_limit] * psched_mtu(qdisc_dev(sch)), U32_MAX);

	sch_tree_lock(sch);
	q->options = *options;
	q->cfg = (struct timely_trim_cfg) {
		.control = value[TRIM_O_control] | BIT_ULL(value[TRIM_O_dscp]),
		.trimmable = value[TRIM_O_trimmable],
		.limit = value[TRIM_O_limit],
		.header_limit = value[TRIM_O_header_limit] ? : equal,
		.size = value[TRIM_O_size],
		.ratio = value[TRIM_O_ratio],
		.dscp = value[TRIM_O_dscp],
		.victim = value[TRIM_O_victim],
		.give_back = value[TRIM_O_give_back],
	};
	sch->limit = q->cfg.limit;
	trim_shorten(sch, &q->data, q->cfg.limit, U64_MAX);
	trim_shorten(sch, &q->headers, U32_MAX, q->cfg.header_limit);
	sch_tree_unlock(sch);
}

/**
 * trim_change() - set the options that a netlink message contains
 * @sch: the qdisc, not locked; process context, under RTNL
 * @opt: TCA_OPTIONS; options that are not in this attribute keep their values
 * @extack: gets a message if there is an error; may be NULL
 *
 * Return: 0; -EINVAL or -ERANGE for an unknown option or a value out of range.
 */
int trim_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct trim_sched *q = qdisc_priv(sch);
	struct trim_options options = q->options;
	int err = trim_parse_options(&options, opt, extack);

	if (!err)
		trim_apply(sch, &options);
	return err;
}

/**
 * trim_dump() - add the options to a netlink message
 * @sch: the qdisc
 * @skb: the message
 *
 * Return: length of the message, or -EMSGSIZE if there is no room.
 */
int trim_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct trim_sched *q = qdisc_priv(sch);
	struct nlattr *nest;
	u64 value;
	u32 i;

	nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < TRIM_O_COUNT; i++) {
		value = q->options.value[i];
		/* tc shows the limit in force. */
		if (i == TRIM_O_header_limit)
			value = q->cfg.header_limit;
		if (timely_option_put(skb, &trim_option_descs[i], value, TCA_TRIM_PAD)) {
			nla_nest_cancel(skb, nest);
			return -EMSGSIZE;
		}
	}
	return nla_nest_end(skb, nest);
}

/**
 * trim_dump_stats() - add the statistics to a netlink message
 * @sch: the qdisc, not locked
 * @d: the message
 *
 * Return: 0, or -1 if there is no room.
 */
int trim_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct trim_sched *q = qdisc_priv(sch);
	struct tc_trim_stats stats;

	sch_tree_lock(sch);
	stats = q->stats;
	stats.data_packets = q->data.packets;
	stats.header_packets = q->headers.packets;
	stats.data_bytes = q->data.bytes;
	stats.header_bytes = q->headers.bytes;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}
