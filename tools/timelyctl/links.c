// SPDX-License-Identifier: GPL-2.0
/*
 * The network devices of this network namespace, and which devices are on top of others: only the
 * lowest devices timestamp packets.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <net/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "timelyctl.h"

/* Deepest stack of devices that Linux allows (MAX_NEST_DEV). Bounds the recursion. */
#define MAX_DEPTH 8

static void read_kind(struct link *link, const struct nlattr *linkinfo)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, linkinfo)
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			attr_text(link->kind, sizeof(link->kind), attr);
}

static void read_attr(struct link *link, const struct nlattr *attr)
{
	bool number = mnl_attr_get_payload_len(attr) >= sizeof(__u32);

	switch (mnl_attr_get_type(attr)) {
	case IFLA_IFNAME:
		attr_text(link->name, sizeof(link->name), attr);
		break;
	case IFLA_LINKINFO:
		read_kind(link, attr);
		break;
	case IFLA_MASTER:
		link->master = number ? mnl_attr_get_u32(attr) : 0;
		break;
	case IFLA_LINK:
		link->lower = number ? mnl_attr_get_u32(attr) : 0;
		break;
	case IFLA_MTU:
		link->mtu = number ? mnl_attr_get_u32(attr) : 0;
		break;
	case IFLA_NUM_TX_QUEUES:
		link->queues = number ? mnl_attr_get_u32(attr) : 0;
		break;
	case IFLA_LINK_NETNSID:
		link->elsewhere = true;
		break;
	}
}

static void add_link(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *info;
	const struct nlattr *attr;
	struct links *links = data;
	struct link *link;

	if (!message) {
		links->count = 0;
		return;
	}
	info = mnl_nlmsg_get_payload(message);
	if (message->nlmsg_type != RTM_NEWLINK ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*info))
		return;
	link = reallocarray(links->link, links->count + 1, sizeof(*link));
	if (!link)
		out_of_memory();
	links->link = link;
	link += links->count++;
	memset(link, 0, sizeof(*link));
	link->ifindex = info->ifi_index;
	link->up = info->ifi_flags & IFF_UP;
	link->running = info->ifi_flags & IFF_RUNNING;
	link->ethernet = info->ifi_type == ARPHRD_ETHER;
	link->loopback = info->ifi_flags & IFF_LOOPBACK;
	mnl_attr_for_each(attr, message, sizeof(*info))
		read_attr(link, attr);
}

int links_get(struct links *links)
{
	memset(links, 0, sizeof(*links));
	return talk_dump_route(RTM_GETLINK, sizeof(struct ifinfomsg), add_link, links);
}

void links_free(struct links *links)
{
	free(links->link);
	links->link = NULL;
	links->count = 0;
}

const struct link *link_by_index(const struct links *links, int ifindex)
{
	for (size_t i = 0; i < links->count; i++)
		if (links->link[i].ifindex == ifindex)
			return &links->link[i];
	return NULL;
}

/* Find a device by its name or, as in the kernel, by an alternative name. */
const struct link *link_by_name(const struct links *links, const char *name)
{
	unsigned int ifindex;

	for (size_t i = 0; i < links->count; i++)
		if (strcmp(links->link[i].name, name) == 0)
			return &links->link[i];
	ifindex = if_nametoindex(name);
	return ifindex ? link_by_index(links, ifindex) : NULL;
}

/*
 * Is the device on top of other devices, which timestamp its packets? IFLA_LINK does not answer
 * this: for a veth it is the other end, and for a DSA port it is the NIC of the host.
 */
bool link_is_upper(const struct link *link)
{
	static const char * const kinds[] = {
		"bond", "bridge", "team", "vrf", "hsr", "openvswitch", "vlan", "macvlan",
		"macvtap", "ipvlan", "ipvtap", "macsec",
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(link->kind, kinds[i]) == 0)
			return true;
	return false;
}

static bool is_among(const struct link *link, const struct link **leaves, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (leaves[i] == link)
			return true;
	return false;
}

/* Add the leaves that are not among the first @count ones already. Returns the new number. */
static size_t leaves_below(const struct links *links, const struct link *upper, int depth,
			   const struct link **leaves, size_t count, size_t room)
{
	if (depth == MAX_DEPTH)
		return count;
	for (size_t i = 0; i < links->count; i++) {
		const struct link *link = &links->link[i];
		bool is_lower = link->master == upper->ifindex ||
				(link->ifindex == upper->lower && !upper->elsewhere);

		if (link == upper || !is_lower || count == room)
			continue;
		if (link_is_upper(link))
			count = leaves_below(links, link, depth + 1, leaves, count, room);
		else if (!is_among(link, leaves, count))
			leaves[count++] = link;
	}
	return count;
}

/*
 * Find the lowest devices below a VLAN, a bond and the like, each of them once: two VLANs of one
 * bridge may have the same device below. Returns their number, at most @room; further devices are
 * left out.
 */
size_t link_leaves(const struct links *links, const struct link *upper, const struct link **leaves,
		   size_t room)
{
	return leaves_below(links, upper, 0, leaves, 0, room);
}
