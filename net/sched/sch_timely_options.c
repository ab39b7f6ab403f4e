// SPDX-License-Identifier: GPL-2.0
/*
 * The options of the qdisc "timely": how netlink messages are parsed, how a change takes effect all
 * at once or not at all, and the options and statistics that tc shows. sch_timely.c calls this file
 * when a qdisc is created, changed or listed. The path of a packet reads only the result, struct
 * tq_config.
 */

#include <net/timely_link.h>
#include <net/timely_onramp.h>

#include <timely_extack.h>

#include "sch_timely_pace.h"
#include "timely_option.h"

/* Upper limit of tq_config.catch_up_ns, however large the option timer_slack is: 1 ms. */
#define TQ_CATCH_UP_MAX_NS		((u64)NSEC_PER_MSEC)

#define TQ_OPTION_DESC(field, attr, width, low, high, deflt, unit, doc)	\
	[TQ_O_##field] = TIMELY_OPTION_DESC("timely", TCA_TIMELY_##attr, field, width, low, high, \
					    deflt, unit),
/* A default is allowed even if it is out of the range. */
static const struct timely_option_desc tq_option_descs[TQ_O_COUNT] = {
	TIMELY_QDISC_OPTIONS(TQ_OPTION_DESC)
};

#define TQ_POLICY(field, attr, width, ...)	\
	[TCA_TIMELY_##attr] = { .type = NLA_U##width },
static const struct nla_policy tq_policy[TCA_TIMELY_MAX + 1] = {
	TIMELY_QDISC_OPTIONS(TQ_POLICY)
	[TCA_TIMELY_PRIOMAP] = NLA_POLICY_EXACT_LEN(sizeof(struct tc_prio_qopt)),
	[TCA_TIMELY_WEIGHTS] = NLA_POLICY_EXACT_LEN(TIMELY_BANDS * sizeof(s32)),
};

/* Set the numeric options that the message contains; the others keep their values. */
static int tq_parse_numbers(struct tq_options *options, struct nlattr **tb,
			    struct netlink_ext_ack *extack)
{
	const struct timely_option_desc *desc;
	const struct nlattr *attr;
	u64 value;
	u32 i;

	for (i = 0; i < TQ_O_COUNT; i++) {
		desc = &tq_option_descs[i];
		attr = tb[desc->type];
		if (!attr)
			continue;
		value = timely_option_get(attr, desc->bits);
		if ((value < desc->min || value > desc->max) &&
		    value != desc->initial)
			return timely_option_refuse(extack, attr, desc->message);
		options->value[i] = value;
	}
	return 0;
}

/* Set priomap and weights if the message contains them. */
static int tq_parse_bands(struct tq_options *options, struct nlattr **tb,
			  struct netlink_ext_ack *extack)
{
	const struct nlattr *attr = tb[TCA_TIMELY_PRIOMAP];
	u32 i;

	if (attr) {
		nla_memcpy(&options->priomap, attr, sizeof(options->priomap));
		if (options->priomap.bands != TIMELY_BANDS)
			return timely_option_refuse(extack, attr,
						    "timely: priomap: bands must be 3");
		for (i = 0; i <= TC_PRIO_MAX; i++)
			if (options->priomap.priomap[i] >= TIMELY_BANDS)
				return timely_option_refuse(extack, attr,
							    "timely: priomap: allowed are 0 to 2");
	}
	attr = tb[TCA_TIMELY_WEIGHTS];
	if (attr) {
		nla_memcpy(options->weights, attr, sizeof(options->weights));
		for (i = 0; i < TIMELY_BANDS; i++)
			if (options->weights[i] < TIMELY_QDISC_MIN_WEIGHT)
				return timely_option_refuse(extack, attr,
							    "timely: weights: allowed are 16384 to 2147483647 bytes");
	}
	return 0;
}

/* Set the options that a netlink message contains. @options: the present options; after an error
 * they are not to be used.
 */
static int tq_parse(struct tq_options *options, struct Qdisc *sch,
		    struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_TIMELY_MAX + 1];
	int err;

	/* Strict parsing: an unknown option must be an error. */
	err = nla_parse(tb, TCA_TIMELY_MAX, nla_data(opt), nla_len(opt), tq_policy,
			extack);
	if (!err)
		err = tq_parse_numbers(options, tb, extack);
	/* tc shows the slot width in use, not the requested width. */
	options->value[TQ_O_slot] = roundup_pow_of_two(options->value[TQ_O_slot]);
	if (!err)
		err = tq_parse_bands(options, tb, extack);
	if (!err && options->value[TQ_O_offload_horizon] * NSEC_PER_USEC >
		    timely_offload_horizon_ns(qdisc_dev(sch)))
		err = timely_option_refuse(extack, tb[TCA_TIMELY_OFFLOAD_HORIZON],
					   "timely: offload_horizon: more than the device paces by itself");
	return err;
}

/**
 * tq_default_options() - set all options to their defaults
 * @options: the result
 * @sch: the qdisc, whose device's MTU decides the quantum
 */
void tq_default_options(struct tq_options *options, const struct Qdisc *sch)
{
	static const struct tc_prio_qopt priomap = {
		.bands = TIMELY_BANDS,
		.priomap = TIMELY_QDISC_DEFAULT_PRIOMAP,
	};
	static const s32 weights[] = TIMELY_QDISC_DEFAULT_WEIGHTS;
	u64 mtu = clamp_t(u32, psched_mtu(qdisc_dev(sch)), 1, 1 << 20);
	u32 i;

	for (i = 0; i < TQ_O_COUNT; i++)
		options->value[i] = tq_option_descs[i].initial;
	options->value[TQ_O_quantum] = min(options->value[TQ_O_quantum] * mtu,
					   tq_option_descs[TQ_O_quantum].max);
	options->value[TQ_O_initial_quantum] =
		min(options->value[TQ_O_initial_quantum] * mtu,
		    tq_option_descs[TQ_O_initial_quantum].max);
	options->priomap = priomap;
	memcpy(options->weights, weights, sizeof(weights));
}

/* Convert the options to the units of the path of a packet. */
static void tq_configure(struct tq_config *config, const struct tq_options *options)
{
	const u64 *value = options->value;

	*config = (struct tq_config) {
		.horizon_ns = value[TQ_O_horizon] * NSEC_PER_USEC,
		.offload_ns = value[TQ_O_offload_horizon] * NSEC_PER_USEC,
		.maxrate_Bps = value[TQ_O_maxrate],
		.ce_threshold_ns = value[TQ_O_ce_threshold] * NSEC_PER_USEC,
		.refill_ns = value[TQ_O_refill_delay] * NSEC_PER_USEC,
		.flow_limit = value[TQ_O_flow_limit],
		.quantum = max(value[TQ_O_quantum], 256ULL),
		.initial_quantum = value[TQ_O_initial_quantum],
		.orphan_mask = value[TQ_O_orphan_mask],
		.low_rate_Bps = value[TQ_O_low_rate_threshold],
		.timer_slack_ns = value[TQ_O_timer_slack],
		.split = value[TQ_O_split],
		.pacing = value[TQ_O_pacing],
		.lazy = value[TQ_O_lazy],
		.horizon_drop = value[TQ_O_horizon_drop],
		.ack_first = value[TQ_O_ack_first],
		.ack_time = value[TQ_O_ack_time],
		.ack_thin = value[TQ_O_ack_thin],
		.wrong_clock_drop = value[TQ_O_wrong_clock_drop],
		.ack_dscp = value[TQ_O_ack_dscp],
		.ack_priority = value[TQ_O_ack_priority],
		.onramp = !!value[TQ_O_onramp],
	};
	/* Lateness that is always made up for: a slot of the wheel, because nodes expire up to a
	 * slot late; another slot for the time until the flow is served; the timer's slack.
	 */
	config->catch_up_ns = min_t(u64, 2 * value[TQ_O_slot] + value[TQ_O_timer_slack],
				    TQ_CATCH_UP_MAX_NS);
	config->ack_special = config->ack_time || config->ack_first ||
			      config->ack_dscp != TIMELY_DSCP_KEEP ||
			      config->ack_priority != TIMELY_PRIORITY_KEEP;
	if (value[TQ_O_split_rate])
		config->split_ns_per_byte =
			div64_u64((u64)NSEC_PER_SEC << TQ_PACE_SHIFT,
				  value[TQ_O_split_rate]);
	memcpy(config->prio2band, options->priomap.priomap, sizeof(config->prio2band));
	memcpy(config->weights, options->weights, sizeof(config->weights));
}

/* Set On-Ramp's settings one by one. A signal that is handled at the same time may use some old and
 * some new settings.
 */
static void tq_onramp_configure(struct timely_onramp_cfg *cfg, const struct tq_options *options)
{
	const u64 *value = options->value;

	WRITE_ONCE(cfg->pause.pause_max_ns, value[TQ_O_onramp_pause_max]);
	WRITE_ONCE(cfg->pause.gain, value[TQ_O_onramp_gain]);
	WRITE_ONCE(cfg->pause.strawman, !!value[TQ_O_onramp_strawman]);
	WRITE_ONCE(cfg->clock_error_ns, value[TQ_O_onramp_clock_error]);
	WRITE_ONCE(cfg->owd, value[TQ_O_onramp_owd]);
	WRITE_ONCE(cfg->pause.threshold_ns, value[TQ_O_onramp]);
}

/* On-Ramp was turned off: end the flow's pause, and release a flow entry that only On-Ramp used. */
static void tq_onramp_end(struct tq_sched *q, struct tq_flow *f)
{
	if (!f->has_entry)
		return;
	WRITE_ONCE(f->entry->pause_until_ns, 0);
	WRITE_ONCE(f->entry->resume_Bps, TIMELY_RESUME_UNLIMITED);
	if (!f->entry->key)
		tq_forget_entry(q, f);
}

/* log2 of the width of the wheel's slots in ns. */
static u8 tq_slot_shift(const struct tq_options *options)
{
	return order_base_2(options->value[TQ_O_slot]);
}

/* Drop packets of the flow, from the first on, while the packet's band has more packets than the
 * option limit allows.
 */
static void tq_trim_flow(struct Qdisc *sch, struct tq_sched *q, struct tq_flow *f)
{
	struct sk_buff *skb;
	bool more;

	while ((skb = tq_peek(f)) &&
	       q->bands[tq_cb(skb)->band].packets > sch->limit) {
		do {
			skb = tq_peek(f);
			more = tq_cb(skb)->more;
			tq_unqueue(sch, f, skb);
			tq_free_original(skb);
			qdisc_qstats_backlog_dec(sch, skb);
			sch->q.qlen--;
			qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
			qdisc_qstats_drop(sch);
			if (!more)
				q->bands[tq_cb(skb)->band].packets--;
			rtnl_kfree_skbs(skb, skb);
		} while (more);
		if (!--f->qlen)
			tq_emptied(q, f);
	}
	if (f->state == TQ_THROTTLED && !f->qlen) {
		timely_wheel_del(q->wheel, &f->node);
		q->throttled--;
		f->state = TQ_IDLE;
		f->node.due_ns = timely_clock_ns();
	}
}

/* Allocate the memory that a change of options needs, before anything is changed: pages of the flow
 * table, and a wheel if there is none or the width of its slots changes. @wheel: the new wheel, or
 * NULL. Return: 0 or -ENOMEM.
 */
static int tq_prepare(struct Qdisc *sch, const struct tq_options *options,
		      struct timely_wheel **wheel, struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);

	*wheel = NULL;
	if (!tq_reserve_buckets(sch, 1U << options->value[TQ_O_buckets_log]))
		goto no_memory;
	if (q->wheel && q->wheel->shift == tq_slot_shift(options))
		return 0;
	*wheel = kvzalloc_node(sizeof(**wheel), GFP_KERNEL_ACCOUNT,
			       netdev_queue_numa_node_read(sch->dev_queue));
	if (*wheel)
		return 0;
no_memory:
	NL_SET_ERR_MSG_MOD(extack,
			   "no memory for the flow table or the timing wheel: use fewer buckets");
	return -ENOMEM;
}

/* Compute the due times of throttled flows with the new options, and put these flows into the new
 * wheel if there is one. @wheel: the new wheel, or NULL; becomes the old wheel, which the caller
 * frees.
 */
static void tq_reschedule_flows(struct tq_sched *q, struct timely_wheel **wheel,
				u8 shift)
{
	struct tq_flow *f;
	u64 due;
	u32 i;

	tq_for_each_flow(&q->table, i, f)
		if (f->state == TQ_THROTTLED)
			timely_wheel_del(q->wheel, &f->node);
	if (*wheel) {
		timely_wheel_init(*wheel, shift, timely_clock_ns());
		swap(*wheel, q->wheel);
	} else {
		/* The wheel is empty, and its time may be ahead by the former offload_horizon. */
		timely_wheel_init(q->wheel, shift, timely_clock_ns());
	}
	if (!q->config.onramp)
		tq_for_each_flow(&q->table, i, f)
			tq_onramp_end(q, f);
	tq_for_each_flow(&q->table, i, f) {
		if (f->state != TQ_THROTTLED)
			continue;
		due = tq_due(q, f, tq_peek(f));
		if (f->has_entry)
			due = tq_watch_entry(q, f, due);
		timely_wheel_add(q->wheel, &f->node, due);
	}
}

/* Drop packets of bands that have more than the option limit allows. */
static void tq_trim(struct Qdisc *sch, struct tq_sched *q)
{
	struct tq_flow *f;
	u32 i;

	/* If no band has too many packets, the flows need not be searched. */
	for (i = 0; q->bands[i].packets <= sch->limit; )
		if (++i == TIMELY_BANDS)
			return;
	tq_for_each_flow(&q->table, i, f)
		tq_trim_flow(sch, q, f);
}

/* The value of tq_sched.joined that the options ask for: 0 if On-Ramp is off. */
static u8 tq_onramp_wanted(const struct tq_options *options)
{
	return options->value[TQ_O_onramp] ? 1 + options->value[TQ_O_onramp_owd] : 0;
}

/* Join On-Ramp with the kind of delay in @wanted, a value of tq_sched.joined, unless the qdisc has
 * joined with this kind or @wanted is 0. Return: 0, or an error of timely_onramp_join().
 */
static int tq_onramp_join(struct Qdisc *sch, u8 wanted, struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);
	int err = 0;

	if (wanted && wanted != q->joined)
		err = timely_onramp_join(dev_net(qdisc_dev(sch)), wanted - 1);
	if (err == -EADDRINUSE)
		timely_set_err_fmt(extack,
				   "onramp: UDP port timely.orack_port in use, see ss -ulpn: free it or set another",
				   "onramp: UDP port %u in use: see ss -ulpn, or set orack_port",
				   timely_onramp_port());
	else if (err == -EPERM)
		NL_SET_ERR_MSG_MOD(extack,
				   "onramp: owd rtt affects the whole host: ask its administrator to set timely.tenants=1, or use owd relative");
	else if (err == -EOPNOTSUPP)
		NL_SET_ERR_MSG_MOD(extack,
				   "onramp: owd rtt needs a kernel with the tracepoint tcp_probe and without PREEMPT_RT: use another owd");
	else if (err)
		NL_SET_ERR_MSG_MOD(extack, "onramp: the UDP socket for OR-ACKs cannot be created");
	return err;
}

/**
 * tq_onramp_leave() - leave On-Ramp
 * @sch: the qdisc; process context, not locked
 * @joined: former value of tq_sched.joined; nothing happens if it is 0
 */
void tq_onramp_leave(struct Qdisc *sch, u8 joined)
{
	if (joined)
		timely_onramp_leave(dev_net(qdisc_dev(sch)), joined - 1);
}

/**
 * tq_apply() - put all options into force, or none
 * @sch: the qdisc, not locked; process context, under RTNL
 * @options: the options, each within its range
 * @extack: gets a message if there is an error; may be NULL
 *
 * Return: 0; -ENOMEM; or an error of timely_onramp_join(). After an error the former options are in
 * force.
 */
int tq_apply(struct Qdisc *sch, const struct tq_options *options,
	     struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);
	u8 joined = q->joined, wanted = tq_onramp_wanted(options);
	struct timely_wheel *wheel;
	int err = tq_prepare(sch, options, &wheel, extack);

	if (err)
		return err;
	err = tq_onramp_join(sch, wanted, extack);
	if (err) {
		kvfree(wheel);
		return err;
	}

	sch_tree_lock(sch);
	q->options = *options;
	q->joined = wanted;
	tq_configure(&q->config, options);
	tq_onramp_configure(&q->notifier.onramp, options);
	sch->limit = options->value[TQ_O_limit];
	q->reserved = 1U << options->value[TQ_O_buckets_log];
	tq_add_buckets(&q->table, q->reserved);
	tq_reschedule_flows(q, &wheel, tq_slot_shift(options));
	tq_trim(sch, q);
	sch_tree_unlock(sch);
	kvfree(wheel);
	if (joined != wanted)
		tq_onramp_leave(sch, joined);
	/* The timer may be set for a due time of the former options: let dequeue set the timer. */
	tq_wake(&q->notifier);
	return 0;
}

/**
 * tq_change() - set the options that a netlink message contains
 * @sch: the qdisc, not locked; process context, under RTNL
 * @opt: TCA_OPTIONS; options that are not in this attribute keep their values
 * @extack: gets a message if there is an error; may be NULL
 *
 * Return: 0; -EINVAL or -ERANGE for an unknown option or a value out of range; or an error of
 * tq_apply().
 */
int tq_change(struct Qdisc *sch, struct nlattr *opt,
	      struct netlink_ext_ack *extack)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_options options = q->options;
	int err = tq_parse(&options, sch, opt, extack);

	return err ? : tq_apply(sch, &options, extack);
}

/* ---- what tc shows ---- */

/**
 * tq_dump() - add the options to a netlink message
 * @sch: the qdisc
 * @skb: the message
 *
 * Return: length of the message, or -EMSGSIZE if there is no room.
 */
int tq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct nlattr *nest;
	u32 i;

	nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < TQ_O_COUNT; i++)
		if (timely_option_put(skb, &tq_option_descs[i], q->options.value[i],
				      TCA_TIMELY_PAD))
			goto cancel;
	if (nla_put(skb, TCA_TIMELY_PRIOMAP, sizeof(q->options.priomap),
		    &q->options.priomap) ||
	    nla_put(skb, TCA_TIMELY_WEIGHTS, sizeof(q->options.weights),
		    q->options.weights))
		goto cancel;
	return nla_nest_end(skb, nest);

cancel:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}

/**
 * tq_dump_stats() - add the statistics to a netlink message
 * @sch: the qdisc, not locked
 * @d: the message
 *
 * Return: 0, or -1 if there is no room.
 */
int tq_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct tq_sched *q = qdisc_priv(sch);
	const struct timely_onramp_cfg *cfg = &q->notifier.onramp;
	struct tc_timely_stats stats;
	u64 next;
	u32 i;

	sch_tree_lock(sch);
	stats = q->stats;
	next = timely_wheel_next_ns(q->wheel);
	stats.time_next_delayed_flow =
		next == TQ_UNLIMITED ? 0 : next - timely_clock_ns();
	stats.flows = q->flows;
	stats.inactive_flows = q->inactive;
	stats.throttled_flows = q->throttled;
	stats.unthrottle_latency_ns = min_t(u64, q->unthrottle_ns, U32_MAX);
	for (i = 0; i < TIMELY_BANDS; i++)
		stats.band_pkt_count[i] = q->bands[i].packets;
	stats.buckets_log = ilog2(q->table.half);
	sch_tree_unlock(sch);
	stats.onramp_b = READ_ONCE(cfg->b);
	stats.onramp_signals = atomic64_read(&cfg->signals);
	stats.onramp_pauses = atomic64_read(&cfg->pauses);
	stats.onramp_paused_ns = atomic64_read(&cfg->paused_ns);
	for (i = 0; i < TIMELY_ONRAMP_BINS; i++)
		stats.onramp_delays[i] = atomic64_read(&cfg->delays[i]);

	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}
