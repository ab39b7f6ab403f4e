// SPDX-License-Identifier: GPL-2.0
/*
 * The UDP socket: sending and receiving with timestamps, of the NIC or of the kernel.
 *
 * The kernel numbers the packets of a socket, and returns this number with the timestamp of a
 * packet that was sent. When a packet could not be sent, the number is not sure any more, and the
 * numbers start again from 0.
 *
 * The qdiscs fq and timely send a packet at the time that is given with it (SO_TXTIME); with others
 * no time is given.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>

#include "clockd.h"

/* Space for the timestamps of a packet, and for the error that comes with those of a sent one. */
#define CONTROL_BYTES	512
/* Bytes for received packets: those of a second with 32 peers. */
#define RECEIVE_BYTES	(1 << 20)

/* Control messages need the alignment of their header. */
union control {
	struct cmsghdr header;
	char bytes[CONTROL_BYTES];
};

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* Choose timestamps. Numbers of packets start from 0. */
static int wire_start_ids(struct wire *wire)
{
	int flags = wire->hardware ?
		    SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_TX_HARDWARE |
		    SOF_TIMESTAMPING_RAW_HARDWARE :
		    SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
		    SOF_TIMESTAMPING_SOFTWARE;
	int err = set_option(wire->fd, SOL_SOCKET, SO_TIMESTAMPING, 0);

	memset(wire->cookie, 0, sizeof(wire->cookie));
	wire->next_id = 0;
	return err ?: set_option(wire->fd, SOL_SOCKET, SO_TIMESTAMPING,
				 flags | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY);
}

static int wire_set_up(struct wire *wire, const struct address *own, const struct nic *nic)
{
	struct sockaddr_storage address;
	socklen_t bytes = address_to(own, wire->port, &address);
	struct sock_txtime txtime = { .clockid = CLOCK_MONOTONIC };
	char name[IFNAMSIZ];

	if (wire->hardware && setsockopt(wire->fd, SOL_SOCKET, SO_BINDTODEVICE, nic->name,
					 strlen(nic->name) + 1))
		return -errno;
	/* net.core.rmem_max is less by default; CAP_NET_ADMIN allows more. */
	if (set_option(wire->fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES))
		set_option(wire->fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES);
	if (address.ss_family == AF_INET6)
		set_option(wire->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (bind(wire->fd, (struct sockaddr *)&address, bytes))
		return -errno;
	/* Linux before 4.19 has no such times. taprio drops all packets of a socket with them. */
	wire->timed = !address_interface(own, name) && qdisc_keeps_times(name) &&
		      !setsockopt(wire->fd, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime));
	return wire_start_ids(wire);
}

/* @nic: the NIC whose timestamps are wanted; its @fd is -1: the kernel's timestamps are wanted */
int wire_open(struct wire *wire, const struct address *own, uint16_t port, const struct nic *nic)
{
	int err;

	wire->hardware = nic->fd >= 0;
	wire->port = port;
	wire->fd = socket(address_family(own), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (wire->fd < 0)
		return -errno;
	err = wire_set_up(wire, own, nic);
	if (err)
		wire_close(wire);
	return err;
}

void wire_close(struct wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	wire->fd = -1;
}

/* ---- the filter against floods, see packet(7) for its language ---- */

/* The socket's filter sees packets from the UDP header on, which has this size. */
#define UDP_BYTES		8
/* Places of the sender's address, from the beginning of the IP header. */
#define IPV4_SOURCE		(SKF_NET_OFF + 12)
#define IPV6_SOURCE		(SKF_NET_OFF + 8)
/* Instructions: for all packets, for each peer with an IPv6 address, and at the end. */
#define FILTER_FIRST		5
#define FILTER_PEER		9
#define FILTER_MAX		(FILTER_FIRST + FILTER_PEER * TIMELY_CLOCK_PEERS + 1)

/* Accept packets of @peer: compare its address, word by word. Returns the end of the program. */
static struct sock_filter *filter_peer(struct sock_filter *next, const struct address *peer)
{
	bool ipv4 = address_is_ipv4(peer);
	uint32_t words = ipv4 ? 1 : 4, place = ipv4 ? IPV4_SOURCE : IPV6_SOURCE, word;

	for (uint32_t i = 0; i < words; i++) {
		memcpy(&word, peer->bytes + (ipv4 ? 12 : 4 * i), sizeof(word));
		*next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place + 4 * i);
		/* Another address: go on behind this peer. */
		*next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(word), 0,
						       2 * (words - i) - 1);
	}
	*next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return next;
}

int wire_filter(const struct wire *wire, const struct address *peers, size_t count)
{
	struct sock_filter program[FILTER_MAX] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UDP_BYTES + MESSAGE_BYTES, 0, 2),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, UDP_BYTES),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MESSAGE_MAGIC, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	}, *next = program + FILTER_FIRST;
	struct sock_fprog filter = { .filter = program };

	if (!count) {
		/* Without a filter this fails. */
		set_option(wire->fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		next = filter_peer(next, &peers[i]);
	*next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	filter.len = next - program;
	return setsockopt(wire->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ?
	       -errno : 0;
}

/* ---- packets ---- */

/* Add the time of sending to a packet. @control has room for it. */
static void add_time(struct msghdr *header, union control *control, uint64_t at_ns)
{
	header->msg_control = control;
	header->msg_controllen = CMSG_SPACE(sizeof(at_ns));
	memset(control, 0, header->msg_controllen);
	control->header.cmsg_level = SOL_SOCKET;
	control->header.cmsg_type = SCM_TXTIME;
	control->header.cmsg_len = CMSG_LEN(sizeof(at_ns));
	memcpy(CMSG_DATA(&control->header), &at_ns, sizeof(at_ns));
}

int wire_send(struct wire *wire, const struct address *to, const uint8_t *message, size_t bytes,
	      uint64_t cookie, uint64_t at_ns)
{
	union control control;
	struct sockaddr_storage address;
	struct iovec data = { (void *)message, bytes };
	struct msghdr header = { .msg_name = &address, .msg_iov = &data, .msg_iovlen = 1 };
	int err;

	header.msg_namelen = address_to(to, wire->port, &address);
	if (at_ns && wire->timed)
		add_time(&header, &control, at_ns);
	if (sendmsg(wire->fd, &header, MSG_NOSIGNAL) >= 0) {
		wire->cookie[wire->next_id++ % WIRE_TRACKED] = cookie;
		return 0;
	}
	err = -errno;
	/* Without a route the packet got no number. */
	if (err != -ENETUNREACH && err != -EHOSTUNREACH)
		wire_start_ids(wire);
	return err;
}

void wire_wait_sent(const struct wire *wire, uint64_t ns)
{
	/* Without @events, so that received packets do not end the wait. */
	struct pollfd fd = { .fd = wire->fd };
	struct timespec timeout = { .tv_nsec = ns };

	ppoll(&fd, 1, &timeout, NULL);
}

/* The timestamp of a message; 0: it has none. */
static uint64_t timestamp_of(const struct wire *wire, struct msghdr *header)
{
	struct scm_timestamping stamps;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(header); cmsg; cmsg = CMSG_NXTHDR(header, cmsg)) {
		const struct timespec *stamp = &stamps.ts[wire->hardware ? 2 : 0];

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_TIMESTAMPING ||
		    cmsg->cmsg_len < CMSG_LEN(sizeof(stamps)))
			continue;
		memcpy(&stamps, CMSG_DATA(cmsg), sizeof(stamps));
		return stamp->tv_sec < 0 ? 0 : stamp->tv_sec * NS_PER_S + stamp->tv_nsec;
	}
	return 0;
}

/* The number of the packet that a timestamp is for. Returns false if the message is another one. */
static bool sent_id(struct msghdr *header, uint32_t *id)
{
	struct sock_extended_err error;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(header); cmsg; cmsg = CMSG_NXTHDR(header, cmsg)) {
		bool is_error = (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_RECVERR) ||
				(cmsg->cmsg_level == IPPROTO_IPV6 &&
				 cmsg->cmsg_type == IPV6_RECVERR);

		if (!is_error || cmsg->cmsg_len < CMSG_LEN(sizeof(error)))
			continue;
		memcpy(&error, CMSG_DATA(cmsg), sizeof(error));
		*id = error.ee_data;
		return error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING;
	}
	return false;
}

int wire_receive(struct wire *wire, struct arrival *arrival)
{
	union control control;
	struct sockaddr_storage from = {};
	struct iovec data = { arrival->wire, sizeof(arrival->wire) };
	struct msghdr header = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t bytes = recvmsg(wire->fd, &header, 0);

	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	arrival->bytes = bytes;
	arrival->ns = timestamp_of(wire, &header);
	address_from(&arrival->from, &from);
	return 1;
}

int wire_sent(struct wire *wire, uint64_t *cookie, uint64_t *ns)
{
	union control control;
	struct msghdr header = { .msg_control = &control, .msg_controllen = sizeof(control) };
	uint32_t id;

	if (recvmsg(wire->fd, &header, MSG_ERRQUEUE) < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*cookie = 0;
	*ns = timestamp_of(wire, &header);
	/* A timestamp of a packet before the numbers started again has a number not yet used. */
	if (sent_id(&header, &id) && wire->next_id - id - 1 < WIRE_TRACKED) {
		*cookie = wire->cookie[id % WIRE_TRACKED];
		wire->cookie[id % WIRE_TRACKED] = 0;
	}
	return 1;
}
