// SPDX-License-Identifier: GPL-2.0
/*
 * The qdiscs of a device: reading, creating and deleting them by netlink.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <linux/timely.h>

#include "setup.h"

/* Bytes of a request besides the options of a qdisc. */
#define HEADER_BYTES 256

static struct nlmsghdr *tc_request(char *buffer, __u16 type, __u16 flags, int ifindex,
				   __u32 parent, __u32 handle)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct tcmsg *header;

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | flags;
	header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	header->tcm_family = AF_UNSPEC;
	header->tcm_ifindex = ifindex;
	header->tcm_parent = parent;
	header->tcm_handle = handle;
	return request;
}

/* ---- reading ---- */

struct node *tree_add(struct tree *tree)
{
	struct node *node = reallocarray(tree->node, tree->count + 1, sizeof(*node));

	if (!node)
		out_of_memory();
	tree->node = node;
	node += tree->count++;
	memset(node, 0, sizeof(*node));
	return node;
}

void tree_free(struct tree *tree)
{
	while (tree->count)
		free(tree->node[--tree->count].options);
	free(tree->node);
	tree->node = NULL;
}

static void read_attr(struct tree *tree, struct node *node, const struct nlattr *attr)
{
	switch (mnl_attr_get_type(attr)) {
	case TCA_KIND:
		attr_text(node->kind, sizeof(node->kind), attr);
		break;
	case TCA_OPTIONS:
		free(node->options);
		node->bytes = mnl_attr_get_payload_len(attr);
		node->options = malloc(node->bytes + 1);
		if (!node->options)
			out_of_memory();
		memcpy(node->options, mnl_attr_get_payload(attr), node->bytes);
		break;
	case TCA_STAB:
		tree->resized = true;
		break;
	}
}

static void add_node(const struct nlmsghdr *message, void *data)
{
	struct tree *tree = data;
	const struct tcmsg *header;
	const struct nlattr *attr;
	struct node *node;

	if (!message) {
		tree_free(tree);
		tree->resized = false;
		return;
	}
	header = mnl_nlmsg_get_payload(message);
	if (message->nlmsg_type != RTM_NEWQDISC ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*header))
		return;
	/* Qdiscs for received packets (ingress, clsact) have nothing to do with sending. */
	if (header->tcm_ifindex != tree->ifindex || header->tcm_parent == TC_H_INGRESS)
		return;
	node = tree_add(tree);
	node->parent = header->tcm_parent;
	node->handle = header->tcm_handle;
	mnl_attr_for_each(attr, message, sizeof(*header))
		read_attr(tree, node, attr);
}

/* Read all qdiscs of a device; the caller frees the tree. A device that is down may have none. */
int tree_get(struct talk *talk, int ifindex, struct tree *tree)
{
	char buffer[HEADER_BYTES] = { 0 };

	memset(tree, 0, sizeof(*tree));
	tree->ifindex = ifindex;
	return talk_ask(talk, tc_request(buffer, RTM_GETQDISC, NLM_F_DUMP, ifindex, 0, 0), add_node,
			tree);
}

/* The qdisc of a class, or NULL. */
const struct node *tree_find(const struct tree *tree, __u32 parent)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->node[i].parent == parent)
			return &tree->node[i];
	return NULL;
}

const struct node *tree_root(const struct tree *tree)
{
	return tree_find(tree, TC_H_ROOT);
}

bool tree_has_kind(const struct tree *tree, const char *kind)
{
	for (size_t i = 0; i < tree->count; i++)
		if (strcmp(tree->node[i].kind, kind) == 0)
			return true;
	return false;
}

bool tree_has_handle(const struct tree *tree, __u32 handle)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->node[i].handle == handle)
			return true;
	return false;
}

static void see_filter(const struct nlmsghdr *message, void *data)
{
	bool *seen = data;

	*seen = message && (*seen || message->nlmsg_type == RTM_NEWTFILTER);
}

/* Does the qdisc with this handle have filters? 1, 0 or a negative errno. */
int tree_has_filters(struct talk *talk, int ifindex, __u32 handle)
{
	char buffer[HEADER_BYTES] = { 0 };
	bool seen = false;
	int err = talk_ask(talk, tc_request(buffer, RTM_GETTFILTER, NLM_F_DUMP, ifindex, handle, 0),
			   see_filter, &seen);

	return err ? err : seen;
}

/* ---- changing ---- */

/*
 * Is this option one of the times of codel and fq_codel? The kernel keeps them in units of 1024 ns,
 * and reports them in us, rounded down. The next larger us gives the same number of units.
 */
static bool is_codel_time(const char *kind, int type)
{
	if (strcmp(kind, "codel") == 0)
		return type == TCA_CODEL_TARGET || type == TCA_CODEL_INTERVAL ||
		       type == TCA_CODEL_CE_THRESHOLD;
	if (strcmp(kind, "fq_codel") == 0)
		return type == TCA_FQ_CODEL_TARGET || type == TCA_FQ_CODEL_INTERVAL ||
		       type == TCA_FQ_CODEL_CE_THRESHOLD;
	return false;
}

/*
 * Does the kernel report this attribute, but refuse it? Cake's option nat, off, without connection
 * tracking, and padding of timely.
 */
static bool is_reported_only(const char *kind, const struct nlattr *attr)
{
	int type = mnl_attr_get_type(attr);

	if (strcmp(kind, "timely") == 0)
		return type == TCA_TIMELY_PAD;
	return strcmp(kind, "cake") == 0 && type == TCA_CAKE_NAT && !attr_unsigned(attr);
}

/* Add the options of a qdisc in the form in which the kernel accepts what it has reported. */
static void put_options(struct nlmsghdr *request, const struct node *node)
{
	const struct nlattr *attr;
	struct nlattr *nest;

	/* timely accepts its options only in an attribute that is marked as nested. */
	if (strcmp(node->kind, "cake") != 0 && strcmp(node->kind, "codel") != 0 &&
	    strcmp(node->kind, "fq_codel") != 0 && strcmp(node->kind, "timely") != 0) {
		/* Some other kinds have no attributes here, but a structure. */
		mnl_attr_put(request, TCA_OPTIONS, node->bytes, node->options);
		return;
	}
	nest = mnl_attr_nest_start(request, TCA_OPTIONS);
	mnl_attr_for_each_payload((void *)node->options, node->bytes) {
		int type = mnl_attr_get_type(attr);

		if (is_codel_time(node->kind, type) &&
		    mnl_attr_get_payload_len(attr) == sizeof(__u32))
			mnl_attr_put_u32(request, type, mnl_attr_get_u32(attr) + 1);
		else if (!is_reported_only(node->kind, attr))
			mnl_attr_put(request, type, mnl_attr_get_payload_len(attr),
				     mnl_attr_get_payload(attr));
	}
	mnl_attr_nest_end(request, nest);
}

/* Create a qdisc in place of the one that its parent has. */
int tree_put(struct talk *talk, int ifindex, const struct node *node)
{
	char *buffer = calloc(1, HEADER_BYTES + node->bytes);
	struct nlmsghdr *request;
	int err;

	if (!buffer)
		out_of_memory();
	request = tc_request(buffer, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
			     ifindex, node->parent, node->handle);
	mnl_attr_put_strz(request, TCA_KIND, node->kind);
	if (node->bytes)
		put_options(request, node);
	err = talk_ask(talk, request, NULL, NULL);
	free(buffer);
	return err;
}

/* Delete the root qdisc. The kernel puts the default qdisc of the device in its place. */
int tree_clear(struct talk *talk, int ifindex)
{
	char buffer[HEADER_BYTES] = { 0 };

	return talk_ask(talk, tc_request(buffer, RTM_DELQDISC, NLM_F_ACK, ifindex, TC_H_ROOT, 0),
			NULL, NULL);
}
