// SPDX-License-Identifier: GPL-2.0
/*
 * Routes of the main table: finding the route of a prefix, and setting a route with all of its
 * attributes, or with another congestion control.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/rtnetlink.h>

#include "setup.h"

/* Bytes that a request may have in addition to those of the route that it sets. */
#define ADDED_BYTES 256

/* ---- reading ---- */

/**
 * struct search - search for a route
 * @prefix: its destination
 * @former: a route with the wanted metric; NULL: the lowest one is wanted
 * @route: the first route with the wanted metric so far
 * @metric: its metric
 * @same: number of routes with this metric
 */
struct search {
	const struct prefix *prefix;
	const struct route *former;
	struct route *route;
	__u32 metric;
	unsigned int same;
};

static const struct nlattr *find_attr(const struct nlmsghdr *message, int type)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(struct rtmsg))
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

static __u32 attr_number(const struct nlmsghdr *message, int type)
{
	const struct nlattr *attr = find_attr(message, type);

	return attr ? attr_unsigned(attr) : 0;
}

static bool is_wanted(const struct nlmsghdr *message, const struct prefix *prefix)
{
	const struct rtmsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *dst = find_attr(message, RTA_DST);
	const unsigned char zero[16] = {};

	if (header->rtm_family != (prefix->bytes == 4 ? AF_INET : AF_INET6) ||
	    header->rtm_type != RTN_UNICAST || header->rtm_flags & RTM_F_CLONED ||
	    header->rtm_dst_len != prefix->length || header->rtm_src_len || header->rtm_tos ||
	    attr_number(message, RTA_TABLE) != RT_TABLE_MAIN)
		return false;
	if (dst && mnl_attr_get_payload_len(dst) != prefix->bytes)
		return false;
	return !memcmp(dst ? mnl_attr_get_payload(dst) : zero, prefix->address, prefix->bytes);
}

static void keep_route(const struct nlmsghdr *message, void *data)
{
	struct search *search = data;
	struct route *route = search->route;
	__u32 metric;

	if (!message) {
		route_free(route);
		search->same = 0;
		return;
	}
	if (message->nlmsg_type != RTM_NEWROUTE ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(struct rtmsg) ||
	    !is_wanted(message, search->prefix))
		return;
	metric = attr_number(message, RTA_PRIORITY);
	if (search->former && metric != attr_number(search->former->message, RTA_PRIORITY))
		return;
	if (search->same && metric >= search->metric) {
		search->same += metric == search->metric;
		return;
	}
	search->same = 1;
	search->metric = metric;
	route_free(route);
	route->bytes = message->nlmsg_len;
	route->message = malloc(route->bytes);
	if (!route->message)
		out_of_memory();
	memcpy(route->message, message, route->bytes);
}

void route_free(struct route *route)
{
	free(route->message);
	route->message = NULL;
	route->bytes = 0;
}

static int search_route(struct talk *talk, struct search *search)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct rtmsg *header;
	int err;

	memset(search->route, 0, sizeof(*search->route));
	request->nlmsg_type = RTM_GETROUTE;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	header->rtm_family = search->prefix->bytes == 4 ? AF_INET : AF_INET6;
	err = talk_ask(talk, request, keep_route, search);
	return err || search->same ? err : -ENOENT;
}

/*
 * Find the route of exactly this prefix that the kernel uses: the one with the lowest metric.
 * -ENOENT if there is none, -EEXIST if there are several with that metric.
 */
int route_get(struct talk *talk, const struct prefix *prefix, struct route *route)
{
	struct search search = { .prefix = prefix, .route = route };
	int err = search_route(talk, &search);

	return err || search.same == 1 ? err : -EEXIST;
}

/*
 * Find the route of this prefix that has the metric of the route @former: of several the first one,
 * which is the one that route_set() replaces. -ENOENT if there is none.
 */
int route_find(struct talk *talk, const struct prefix *prefix, const struct route *former,
	       struct route *route)
{
	struct search search = { .prefix = prefix, .former = former, .route = route };

	return search_route(talk, &search);
}

/* Is this message a route, as a state file must have it? */
bool route_is_valid(const struct route *route)
{
	return route->bytes >= NLMSG_HDRLEN + sizeof(struct rtmsg) &&
	       route->message->nlmsg_len == route->bytes &&
	       route->message->nlmsg_type == RTM_NEWROUTE;
}

/* Does the kernel or a daemon delete the route at some time, which could not be restored? */
bool route_expires(const struct route *route)
{
	const struct rtmsg *header = mnl_nlmsg_get_payload(route->message);
	const struct nlattr *attr = find_attr(route->message, RTA_CACHEINFO);
	struct rta_cacheinfo info = {};

	if (attr && mnl_attr_get_payload_len(attr) >= sizeof(info))
		memcpy(&info, mnl_attr_get_payload(attr), sizeof(info));
	return info.rta_expires || header->rtm_protocol == RTPROT_RA ||
	       header->rtm_protocol == RTPROT_REDIRECT;
}

/* Write the congestion control of the route to @name, "" for none. */
void route_congctl(const struct route *route, char *name, size_t size)
{
	const struct nlattr *metrics = find_attr(route->message, RTA_METRICS);
	const struct nlattr *attr;

	name[0] = 0;
	if (!metrics)
		return;
	mnl_attr_for_each_nested(attr, metrics)
		if (mnl_attr_get_type(attr) == RTAX_CC_ALGO)
			attr_text(name, size, attr);
}

/* ---- setting ---- */

static void copy_attr(struct nlmsghdr *request, const struct nlattr *attr)
{
	mnl_attr_put(request, attr->nla_type, mnl_attr_get_payload_len(attr),
		     mnl_attr_get_payload(attr));
}

/* Is this an attribute that the kernel reports, but does not accept together with the others? */
static bool is_reported_only(int type, bool has_id)
{
	switch (type) {
	case RTA_CACHEINFO:
		return true;
	case RTA_OIF:
	case RTA_GATEWAY:
	case RTA_VIA:
	case RTA_MULTIPATH:
	case RTA_ENCAP:
	case RTA_ENCAP_TYPE:
		/* The nexthop object has them. */
		return has_id;
	}
	return false;
}

/* Clear the state of the nexthops, which the kernel reports, but refuses. */
static void clear_nexthop_state(struct nlattr *multipath)
{
	struct rtnexthop *nexthop = mnl_attr_get_payload(multipath);
	int left = mnl_attr_get_payload_len(multipath);

	while (RTNH_OK(nexthop, left)) {
		nexthop->rtnh_flags &= RTNH_F_ONLINK;
		left -= RTNH_ALIGN(nexthop->rtnh_len);
		nexthop = RTNH_NEXT(nexthop);
	}
}

/*
 * Add the metrics of a route, with the congestion control @congctl instead of the route's own;
 * NULL: without a congestion control.
 */
static void put_metrics(struct nlmsghdr *request, const struct nlattr *metrics, const char *congctl)
{
	struct nlattr *nest = mnl_attr_nest_start(request, RTA_METRICS);
	const struct nlattr *attr;

	if (metrics)
		mnl_attr_for_each_nested(attr, metrics)
			if (mnl_attr_get_type(attr) != RTAX_CC_ALGO)
				copy_attr(request, attr);
	if (congctl)
		mnl_attr_put_strz(request, RTAX_CC_ALGO, congctl);
	mnl_attr_nest_end(request, nest);
}

/*
 * Make a request that sets the route, with the congestion control @congctl; NULL: with the route's
 * own. The caller frees the request.
 */
static struct nlmsghdr *new_request(const struct route *route, const char *congctl)
{
	struct nlmsghdr *request = calloc(1, route->bytes + ADDED_BYTES);
	bool has_id = find_attr(route->message, RTA_NH_ID);
	const struct nlattr *metrics = find_attr(route->message, RTA_METRICS);
	const struct nlattr *attr;
	struct rtmsg *header;

	if (!request)
		out_of_memory();
	mnl_nlmsg_put_header(request);
	request->nlmsg_type = RTM_NEWROUTE;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_REPLACE;
	header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	memcpy(header, mnl_nlmsg_get_payload(route->message), sizeof(*header));
	header->rtm_flags &= RTNH_F_ONLINK;
	mnl_attr_for_each(attr, route->message, sizeof(*header)) {
		struct nlattr *copy = mnl_nlmsg_get_payload_tail(request);
		int type = mnl_attr_get_type(attr);

		if (is_reported_only(type, has_id) || (type == RTA_METRICS && congctl))
			continue;
		copy_attr(request, attr);
		if (type == RTA_MULTIPATH)
			clear_nexthop_state(copy);
	}
	/*
	 * Without metrics the kernel takes those of another route with the same nexthop object: the
	 * metrics of the trial.
	 */
	if (congctl || (has_id && !metrics))
		put_metrics(request, metrics, congctl);
	return request;
}

/* Are these the same routes but for the congestion control? */
bool route_same(const struct route *route, const struct route *other)
{
	struct nlmsghdr *a = new_request(route, "timely");
	struct nlmsghdr *b = new_request(other, "timely");
	bool same = a->nlmsg_len == b->nlmsg_len && !memcmp(a, b, a->nlmsg_len);

	free(a);
	free(b);
	return same;
}

/* Replace the existing route of the same prefix and metric, see new_request(). */
int route_set(struct talk *talk, const struct route *route, const char *congctl)
{
	struct nlmsghdr *request = new_request(route, congctl);
	int err = talk_ask(talk, request, NULL, NULL);

	free(request);
	return err;
}
