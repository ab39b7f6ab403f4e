// SPDX-License-Identifier: GPL-2.0
/*
 * The qdiscs of this network namespace that are of the kind "timely", with their statistics.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <linux/rtnetlink.h>

#include "timelyctl.h"

/* Copy an attribute. A kernel of another version may know more or fewer members. */
static void copy_attr(void *to, size_t size, const struct nlattr *attr)
{
	size_t bytes = mnl_attr_get_payload_len(attr);

	memcpy(to, mnl_attr_get_payload(attr), bytes < size ? bytes : size);
}

static void read_stats(struct qdisc *qdisc, const struct nlattr *nest)
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
			copy_attr(&qdisc->stats, sizeof(qdisc->stats), attr);
			break;
		}
	}
}

static void add_qdisc(const struct nlmsghdr *message, void *data)
{
	struct qdiscs *qdiscs = data;
	struct qdisc qdisc = {};
	const struct tcmsg *tcm;
	const struct nlattr *attr;
	char kind[16] = "";

	if (!message) {
		qdiscs->count = 0;
		return;
	}
	tcm = mnl_nlmsg_get_payload(message);
	if (message->nlmsg_type != RTM_NEWQDISC ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*tcm))
		return;
	qdisc.ifindex = tcm->tcm_ifindex;
	qdisc.parent = tcm->tcm_parent;
	mnl_attr_for_each(attr, message, sizeof(*tcm)) {
		if (mnl_attr_get_type(attr) == TCA_KIND)
			attr_text(kind, sizeof(kind), attr);
		else if (mnl_attr_get_type(attr) == TCA_STATS2)
			read_stats(&qdisc, attr);
	}
	if (strcmp(kind, "timely") != 0)
		return;
	qdiscs->qdisc = reallocarray(qdiscs->qdisc, qdiscs->count + 1, sizeof(qdisc));
	if (!qdiscs->qdisc)
		out_of_memory();
	qdiscs->qdisc[qdiscs->count++] = qdisc;
}

int qdiscs_get(struct qdiscs *qdiscs)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct talk talk;
	int err;

	memset(qdiscs, 0, sizeof(*qdiscs));
	request->nlmsg_type = RTM_GETQDISC;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(request, sizeof(struct tcmsg));
	err = talk_open(&talk, NETLINK_ROUTE);
	if (err)
		return err;
	err = talk_ask(&talk, request, add_qdisc, qdiscs);
	talk_close(&talk);
	return err;
}
