// SPDX-License-Identifier: GPL-2.0
/*
 * The established TCP connections of this network namespace, whatever their congestion control is,
 * as ss shows them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_addr.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <linux/timely.h>

#include "doctor.h"

/* The number of TCP_ESTABLISHED in the kernel. */
#define ESTABLISHED 1

/* Connections that have sent less, bytes, or nothing for as long, ms, do not fill a queue. */
#define BUSY_BYTES 1000000
#define BUSY_MS 1000

/* The option of TCP-MD5 in each packet of a connection with a key, bytes. */
#define MD5_BYTES 20

/* ---- addresses of devices ---- */

struct address {
	unsigned char address[16];
	unsigned int bytes;
	int ifindex;
};

struct addresses {
	struct address *address;
	size_t count;
};

static void add_address(const struct nlmsghdr *message, void *data)
{
	struct addresses *addresses = data;
	const struct ifaddrmsg *info;
	struct address *address;
	const struct nlattr *attr;

	if (!message) {
		addresses->count = 0;
		return;
	}
	info = mnl_nlmsg_get_payload(message);
	if (message->nlmsg_type != RTM_NEWADDR ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*info))
		return;
	address = reallocarray(addresses->address, addresses->count + 1, sizeof(*address));
	if (!address)
		out_of_memory();
	addresses->address = address;
	address += addresses->count++;
	memset(address, 0, sizeof(*address));
	address->ifindex = info->ifa_index;
	mnl_attr_for_each(attr, message, sizeof(*info)) {
		unsigned int bytes = mnl_attr_get_payload_len(attr);
		int type = mnl_attr_get_type(attr);

		/* IFA_ADDRESS is the peer's on point-to-point links, and IPv6 has no IFA_LOCAL. */
		if ((bytes != 4 && bytes != 16) ||
		    (type != IFA_LOCAL && (type != IFA_ADDRESS || address->bytes)))
			continue;
		memcpy(address->address, mnl_attr_get_payload(attr), bytes);
		address->bytes = bytes;
	}
}

static int compare_addresses(const void *a, const void *b)
{
	const struct address *one = a, *other = b;

	if (one->bytes != other->bytes)
		return one->bytes < other->bytes ? -1 : 1;
	return memcmp(one->address, other->address, one->bytes);
}

/*
 * The MTU of the device with the local address; 0 if there is none, or if the device is a loopback
 * device, whose MTU of 65536 bytes no IP packet reaches. @addresses are sorted.
 */
static __u32 socket_mtu(const struct tcp_socket *socket, const struct addresses *addresses,
			const struct links *links)
{
	struct address wanted = { .bytes = socket->key.bytes };
	const struct address *address = NULL;

	memcpy(wanted.address, socket->key.saddr, socket->key.bytes);
	if (addresses->count)
		address = bsearch(&wanted, addresses->address, addresses->count, sizeof(wanted),
				  compare_addresses);
	for (size_t i = 0; address && i < links->count; i++)
		if (links->link[i].ifindex == address->ifindex)
			return links->link[i].loopback ? 0 : links->link[i].mtu;
	return 0;
}

/* ---- connections ---- */

static void read_info(struct tcp_socket *socket, const struct nlattr *attr)
{
	size_t bytes = mnl_attr_get_payload_len(attr);
	struct tcp_info info = {};

	/* The kernel's structure may be shorter or longer. */
	memcpy(&info, mnl_attr_get_payload(attr), bytes < sizeof(info) ? bytes : sizeof(info));
	socket->mss = info.tcpi_snd_mss;
	/* TCP sends no packet larger than half the largest window that the peer has offered. */
	socket->narrow = info.tcpi_snd_wnd / 2 <= info.tcpi_snd_mss;
	if (info.tcpi_options & TCPI_OPT_TIMESTAMPS)
		socket->mss += 12;
	socket->min_rtt_ns = 1000ULL * info.tcpi_min_rtt;
	socket->busy = info.tcpi_bytes_sent >= BUSY_BYTES && info.tcpi_last_data_sent < BUSY_MS;
}

/* The ends of a connection. A socket of IPv6 may have a connection of IPv4: ::ffff:a.b.c.d. */
static struct socket_key read_key(const struct inet_diag_msg *info)
{
	struct socket_key key = {
		.bytes = info->idiag_family == AF_INET6 ? 16 : 4,
		.sport = info->id.idiag_sport, .dport = info->id.idiag_dport,
	};
	size_t skip = 0;

	if (key.bytes == 16 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)info->id.idiag_dst)) {
		key.bytes = 4;
		skip = 12;
	}
	memcpy(key.saddr, (const __u8 *)info->id.idiag_src + skip, key.bytes);
	memcpy(key.daddr, (const __u8 *)info->id.idiag_dst + skip, key.bytes);
	return key;
}

static void add_socket(const struct nlmsghdr *message, void *data)
{
	struct tcp_sockets *sockets = data;
	const struct inet_diag_msg *info;
	struct tcp_socket *socket;
	const struct nlattr *attr;
	bool has_key = false;

	if (!message)
		return;
	info = mnl_nlmsg_get_payload(message);
	if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*info))
		return;
	socket = reallocarray(sockets->socket, sockets->count + 1, sizeof(*socket));
	if (!socket)
		out_of_memory();
	sockets->socket = socket;
	socket += sockets->count++;
	memset(socket, 0, sizeof(*socket));
	socket->key = read_key(info);
	mnl_attr_for_each(attr, message, sizeof(*info)) {
		if (mnl_attr_get_type(attr) == INET_DIAG_CONG)
			attr_text(socket->control, sizeof(socket->control), attr);
		else if (mnl_attr_get_type(attr) == INET_DIAG_INFO)
			read_info(socket, attr);
		else if (mnl_attr_get_type(attr) == INET_DIAG_MD5SIG)
			has_key = true;
	}
	if (has_key && socket->mss)
		socket->mss += MD5_BYTES;
}

static int add_family(struct talk *talk, __u8 family, struct tcp_sockets *sockets)
{
	char buffer[256] = { 0 };
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct inet_diag_req_v2 *diag;

	request->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	diag = mnl_nlmsg_put_extra_header(request, sizeof(*diag));
	diag->sdiag_family = family;
	diag->sdiag_protocol = IPPROTO_TCP;
	diag->idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
	diag->idiag_states = 1 << ESTABLISHED;
	return talk_ask(talk, request, add_socket, sockets);
}

static int compare_sockets(const void *a, const void *b)
{
	const struct tcp_socket *one = a, *other = b;

	return memcmp(&one->key, &other->key, sizeof(one->key));
}

void sockets_join(struct tcp_sockets *sockets, const struct connections *connections)
{
	for (size_t i = 0; sockets->count && i < connections->count; i++) {
		const struct timely_connection *connection = &connections->connection[i];
		struct tcp_socket *socket, wanted = { .key = {
			.bytes = connection_address_bytes(connection),
			.sport = connection->sport, .dport = connection->dport,
		} };

		memcpy(wanted.key.saddr, connection->saddr, wanted.key.bytes);
		memcpy(wanted.key.daddr, connection->daddr, wanted.key.bytes);
		socket = bsearch(&wanted, sockets->socket, sockets->count, sizeof(wanted),
				 compare_sockets);
		if (socket)
			socket->timely = connection;
	}
}

/*
 * Read all connections, sorted by their ends; the caller frees the list. A connection that comes or
 * goes meanwhile may be read twice or not at all.
 */
int sockets_get(struct tcp_sockets *sockets, const struct links *links)
{
	struct addresses addresses = {};
	struct talk talk;
	int err = talk_dump_route(RTM_GETADDR, sizeof(struct ifaddrmsg), add_address,
				  &addresses);

	memset(sockets, 0, sizeof(*sockets));
	if (!err)
		err = talk_open(&talk, NETLINK_SOCK_DIAG);
	if (!err) {
		err = add_family(&talk, AF_INET, sockets);
		if (!err)
			err = add_family(&talk, AF_INET6, sockets);
		talk_close(&talk);
	}
	if (addresses.count)
		qsort(addresses.address, addresses.count, sizeof(*addresses.address),
		      compare_addresses);
	for (size_t i = 0; i < sockets->count; i++)
		sockets->socket[i].mtu = socket_mtu(&sockets->socket[i], &addresses, links);
	free(addresses.address);
	if (sockets->count)
		qsort(sockets->socket, sockets->count, sizeof(*sockets->socket), compare_sockets);
	return err;
}
