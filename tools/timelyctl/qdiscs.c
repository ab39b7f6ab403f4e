// SPDX-License-Identifier: GPL-2.0
/*
 * The qdiscs of this network namespace, with options and statistics of those of the kind "timely".
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <linux/timely.h>

#include "timelyctl.h"

/* Copy an attribute. A kernel of another version may know more or fewer members. */
static void copy_attr(void *to, size_t size, const struct nlattr *attr)
{
	size_t bytes = mnl_attr_get_payload_len(attr);

	memcpy(to, mnl_attr_get_payload(attr), bytes < size ? bytes : size);
}

static void read_options(struct qdisc *qdisc, const struct nlattr *nest)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case TCA_TIMELY_ONRAMP:
			qdisc->onramp_ns = attr_unsigned(attr);
			break;
		case TCA_TIMELY_ONRAMP_OWD:
			qdisc->owd = attr_unsigned(attr);
			break;
		case TCA_TIMELY_SPLIT:
			qdisc->split = attr_unsigned(attr);
			break;
		}
	}
}

static void read_stats(struct qdisc *qdisc, const struct nlattr *nest, bool timely)
{
	struct gnet_stats_basic basic = {};
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case TCA_STATS_BASIC:
			copy_attr(&basic, sizeof(basic), attr);
			qdisc->bytes = basic.bytes;
			if (!qdisc->packets)
				qdisc->packets = basic.packets;
			break;
		case TCA_STATS_PKT64:
			/* Only if 32 bits are not enough. */
			qdisc->packets = attr_unsigned(attr);
			break;
		case TCA_STATS_QUEUE:
			copy_attr(&qdisc->queue, sizeof(qdisc->queue), attr);
			break;
		case TCA_STATS_APP:
			if (timely)
				copy_attr(&qdisc->stats, sizeof(qdisc->stats), attr);
			break;
		}
	}
}

static void read_attrs(struct qdisc *qdisc, const struct nlmsghdr *message)
{
	const struct nlattr *attr, *options = NULL, *stats = NULL;
	bool timely;

	mnl_attr_for_each(attr, message, sizeof(struct tcmsg)) {
		switch (mnl_attr_get_type(attr)) {
		case TCA_KIND:
			attr_text(qdisc->kind, sizeof(qdisc->kind), attr);
			break;
		case TCA_OPTIONS:
			options = attr;
			break;
		case TCA_STATS2:
			stats = attr;
			break;
		}
	}
	timely = strcmp(qdisc->kind, "timely") == 0;
	if (options && timely)
		read_options(qdisc, options);
	if (stats)
		read_stats(qdisc, stats, timely);
}

static void add_qdisc(const struct nlmsghdr *message, void *data)
{
	struct qdiscs *qdiscs = data;
	struct qdisc qdisc = {};
	const struct tcmsg *tcm;

	if (!message) {
		qdiscs->count = 0;
		return;
	}
	tcm = mnl_nlmsg_get_payload(message);
	/* The ingress qdisc sends nothing. */
	if (message->nlmsg_type != RTM_NEWQDISC ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*tcm) || tcm->tcm_parent == TC_H_INGRESS)
		return;
	qdisc.ifindex = tcm->tcm_ifindex;
	qdisc.handle = tcm->tcm_handle;
	qdisc.parent = tcm->tcm_parent;
	read_attrs(&qdisc, message);
	if (qdiscs->kind && strcmp(qdisc.kind, qdiscs->kind) != 0)
		return;
	qdiscs->qdisc = reallocarray(qdiscs->qdisc, qdiscs->count + 1, sizeof(qdisc));
	if (!qdiscs->qdisc)
		out_of_memory();
	qdiscs->qdisc[qdiscs->count++] = qdisc;
}

int qdiscs_get(struct qdiscs *qdiscs, const char *kind)
{
	memset(qdiscs, 0, sizeof(*qdiscs));
	qdiscs->kind = kind;
	return talk_dump_route(RTM_GETQDISC, sizeof(struct tcmsg), add_qdisc, qdiscs);
}
