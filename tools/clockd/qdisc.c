// SPDX-License-Identifier: GPL-2.0
/*
 * Whether the qdiscs of an interface send packets at the times that are given with them
 * (SO_TXTIME).
 *
 * fq and timely do. etf and taprio drop packets with a time of CLOCK_MONOTONIC, because they
 * compare it with CLOCK_TAI. All others send packets at once. An interface without a qdisc, such as
 * a veth, takes the kernel's timestamp at once, and a qdisc of the host would send the packet
 * later.
 */
#define _GNU_SOURCE
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "clockd.h"

/* The kernel sends a list in parts of at most 32 KB. */
#define DUMP_BYTES	32768

static bool is_kind(const struct rtattr *kind, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return RTA_PAYLOAD(kind) >= bytes && memcmp(RTA_DATA(kind), name, bytes) == 0;
}

void qdisc_note(struct qdisc_kinds *kinds, struct nlmsghdr *message, unsigned int ifindex)
{
	struct tcmsg *tc = NLMSG_DATA(message);
	int left = TCA_PAYLOAD(message);

	if (message->nlmsg_type != RTM_NEWQDISC || left < 0 ||
	    (unsigned int)tc->tcm_ifindex != ifindex)
		return;
	for (struct rtattr *a = TCA_RTA(tc); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type != TCA_KIND)
			continue;
		kinds->keep = kinds->keep || is_kind(a, "fq") || is_kind(a, "timely");
		kinds->drop = kinds->drop || is_kind(a, "etf") || is_kind(a, "taprio");
	}
}

/* Read a part of the dump. Returns false after the last one. */
static bool read_dump(int fd, struct qdisc_kinds *kinds, unsigned int ifindex)
{
	static union {
		struct nlmsghdr header;
		char bytes[DUMP_BYTES];
	} buffer;
	ssize_t left = recv(fd, &buffer, sizeof(buffer), 0);

	if (left <= 0)
		return false;
	for (struct nlmsghdr *m = &buffer.header; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR)
			return false;
		qdisc_note(kinds, m, ifindex);
	}
	return true;
}

bool qdisc_keeps_times(const char *interface)
{
	struct {
		struct nlmsghdr header;
		struct tcmsg tc;
	} request = {
		.header = { sizeof(request), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 },
		.tc.tcm_ifindex = if_nametoindex(interface),
	};
	struct qdisc_kinds kinds = {};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return false;
	if (request.tc.tcm_ifindex && send(fd, &request, sizeof(request), 0) == sizeof(request))
		while (read_dump(fd, &kinds, request.tc.tcm_ifindex))
			;
	close(fd);
	return kinds.keep && !kinds.drop;
}
