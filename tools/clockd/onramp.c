// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to module timely, once per second.
 *
 *	TIMELY_CMD_PEER_SET		for each peer: the offset of its clock, by which On-Ramp
 *					compares one-way delays, see timely-onramp(7)
 *	TIMELY_CMD_COMMON_TIME_SET	the common time, by which tcp_timely starts base-RTT
 *					probes, see tcp_timely(7)
 *
 * The module may be loaded, or unloaded and loaded again, at any time, so the netlink family is
 * looked up again every ten seconds: a module that is loaded again has another family. The kernel
 * answers requests to the former family by -ENOENT, as the module does if it has no room for a
 * peer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/timely.h>

#include "clockd.h"

/* How long the module may use an offset or common time that is not replaced, ms. */
#define VALID_MS	5000
/* The same for what is withdrawn. With 0 the module would trust the system clocks, as without a
 * daemon, and would not count that.
 */
#define WITHDRAWN_MS	1
/* Interval at which the module is looked up, ns. */
#define RETRY_NS	(10 * NS_PER_S)
/* Largest drift and growth that the module accepts, ppb. */
#define DRIFT_MAX_PPB	1000000
/* Largest bound that the module accepts, ns. */
#define BOUND_MAX_NS	1000000000

/**
 * struct request - a request with one attribute
 * @header: netlink header
 * @genl: generic netlink header
 * @attr: header of the attribute
 * @data: the attribute
 */
struct request {
	struct nlmsghdr header;
	struct genlmsghdr genl;
	struct nlattr attr;
	uint8_t data[sizeof(struct timely_peer_clock)];
};

/* A reply, with the alignment of its header. */
union reply {
	struct nlmsghdr header;
	char bytes[4096];
};

/* Send a request, and read one reply to @reply. Returns its length, or a negative errno. */
static ssize_t ask(int fd, uint16_t type, uint8_t command, uint16_t attr, const void *data,
		   size_t bytes, union reply *reply)
{
	struct request request = {
		.header = {
			.nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN + NLA_HDRLEN + NLA_ALIGN(bytes),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | (type == GENL_ID_CTRL ? 0 : NLM_F_ACK),
		},
		.genl = { .cmd = command, .version = 1 },
		.attr = { .nla_len = NLA_HDRLEN + bytes, .nla_type = attr },
	};
	ssize_t got;

	memcpy(request.data, data, bytes);
	if (send(fd, &request, request.header.nlmsg_len, 0) < 0)
		return -errno;
	got = recv(fd, reply, sizeof(*reply), 0);
	if (got < 0)
		return -errno;
	return got < (ssize_t)sizeof(struct nlmsghdr) ? -EPROTO : got;
}

/* The errno of a reply; 0 if there is none. */
static int reply_error(const struct nlmsghdr *reply)
{
	const struct nlmsgerr *error = NLMSG_DATA(reply);

	if (reply->nlmsg_type != NLMSG_ERROR ||
	    reply->nlmsg_len < NLMSG_LENGTH(sizeof(*error)))
		return 0;
	return error->error;
}

/* The number of module timely's family, or 0. */
static uint16_t find_family(int fd)
{
	union reply reply;
	ssize_t left = ask(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
			   TIMELY_GENL_NAME, sizeof(TIMELY_GENL_NAME), &reply);
	const struct nlattr *attr;

	if (left < 0 || reply.header.nlmsg_type != GENL_ID_CTRL)
		return 0;
	attr = (const struct nlattr *)(reply.bytes + NLMSG_HDRLEN + GENL_HDRLEN);
	left -= NLMSG_HDRLEN + GENL_HDRLEN;
	while (left >= (ssize_t)sizeof(*attr) && attr->nla_len >= sizeof(*attr) &&
	       attr->nla_len <= left) {
		if (attr->nla_type == CTRL_ATTR_FAMILY_ID && attr->nla_len >= NLA_HDRLEN + 2)
			return *(const uint16_t *)(attr + 1);
		left -= NLA_ALIGN(attr->nla_len);
		attr = (const void *)((const char *)attr + NLA_ALIGN(attr->nla_len));
	}
	return 0;
}

/* Whether the module is there. */
static bool onramp_ready(struct onramp *onramp, uint64_t now_ns)
{
	if (onramp->tried_ns && now_ns - onramp->tried_ns < RETRY_NS)
		return onramp->family;
	onramp->tried_ns = now_ns;
	if (onramp->fd < 0)
		onramp->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	onramp->family = onramp->fd < 0 ? 0 : find_family(onramp->fd);
	return onramp->family;
}

void onramp_open(struct onramp *onramp)
{
	*onramp = (struct onramp){ .fd = -1 };
}

void onramp_close(struct onramp *onramp)
{
	if (onramp->fd >= 0)
		close(onramp->fd);
	onramp->fd = -1;
}

/* A bound that may be unknown, and an error on top of that. */
static uint64_t bound_sum(uint64_t bound_ns, uint32_t error_ns)
{
	return bound_ns > BOUND_MAX_NS ? bound_ns : bound_ns + error_ns;
}

/* A growth that the module accepts. */
static uint32_t growth_max(uint64_t growth_ppb)
{
	return growth_ppb > DRIFT_MAX_PPB ? DRIFT_MAX_PPB : (uint32_t)growth_ppb;
}

static struct timely_peer_clock peer_clock(const struct timely_clock_peer *peer,
					   uint64_t growth_ppb)
{
	struct timely_peer_clock clock = {};
	uint64_t at_ns, bound_ns;
	struct address address;
	int64_t system_ns;
	bool ipv4;

	bound_ns = bound_sum(peer->system_bound_ns,
			     clock_difference(CLOCK_MONOTONIC, CLOCK_REALTIME, &at_ns, &system_ns));
	clock.at_ns = at_ns;
	memcpy(address.bytes, peer->address, sizeof(address.bytes));
	ipv4 = address_is_ipv4(&address);
	clock.family = ipv4 ? AF_INET : AF_INET6;
	memcpy(clock.address, address.bytes + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
	if (peer->state != TIMELY_CLOCK_PEER_GOOD || bound_ns > BOUND_MAX_NS ||
	    peer->system_drift_ppb > DRIFT_MAX_PPB || peer->system_drift_ppb < -DRIFT_MAX_PPB) {
		clock.valid_ms = WITHDRAWN_MS;
		clock.bound_ns = BOUND_MAX_NS;
		return clock;
	}
	clock.valid_ms = VALID_MS;
	clock.offset_ns = peer->system_offset_ns + system_ns;
	clock.drift_ppb = (int32_t)peer->system_drift_ppb;
	clock.bound_ns = (uint32_t)bound_ns;
	clock.growth_ppb = growth_max(growth_ppb);
	return clock;
}

/* Set an attribute in the module, which is ready. Returns whether the module has taken it. */
static bool set(struct onramp *onramp, uint8_t command, uint16_t attr, const void *data,
		size_t bytes)
{
	union reply reply;
	ssize_t got = ask(onramp->fd, onramp->family, command, attr, data, bytes, &reply);
	int err = got < 0 ? (int)got : reply_error(&reply.header);

	if (!err)
		onramp->told = false;
	/* The module has no room for the peer, or was unloaded. */
	if (!err || err == -ENOENT)
		return !err;
	if (!onramp->told)
		tell_warn("module timely does not take the offsets of clocks: %s: load modules of the same version as timely-clockd, and start it with CAP_NET_ADMIN",
			  error_text(err));
	onramp->told = true;
	/* The module may have been unloaded, or replaced by another version. */
	onramp->family = 0;
	return false;
}

bool onramp_put(struct onramp *onramp, const struct timely_clock_peer *peer, uint64_t growth_ppb,
		bool before)
{
	struct timely_peer_clock clock = peer_clock(peer, growth_ppb);
	bool known = clock.valid_ms == VALID_MS;

	if ((!known && !before) || !onramp_ready(onramp, clock.at_ns))
		return false;
	return set(onramp, TIMELY_CMD_PEER_SET, TIMELY_A_PEER, &clock, sizeof(clock)) && known;
}

void onramp_put_common(struct onramp *onramp, const struct timely_clock_page *page,
		       int64_t drift_ppb)
{
	uint64_t at_ns, bound_ns;
	struct timely_common_time time = {
		.valid_ms = VALID_MS,
		.drift_ppb = (int32_t)drift_ppb,
		.growth_ppb = growth_max(page->growth_ppb),
	};
	int64_t system_ns;

	bound_ns = bound_sum(page->bound_ns,
			     clock_difference(CLOCK_MONOTONIC, CLOCK_REALTIME, &at_ns, &system_ns));
	time.at_ns = at_ns;
	time.offset_ns = page->system_offset_ns + system_ns;
	time.bound_ns = (uint32_t)bound_ns;
	if (bound_ns <= BOUND_MAX_NS && llabs(drift_ppb) <= DRIFT_MAX_PPB &&
	    onramp_ready(onramp, at_ns))
		onramp->common = set(onramp, TIMELY_CMD_COMMON_TIME_SET, TIMELY_A_COMMON_TIME,
				     &time, sizeof(time));
}

void onramp_withdraw_common(struct onramp *onramp)
{
	struct timely_common_time time = {
		.at_ns = clock_ns(CLOCK_MONOTONIC),
		.valid_ms = WITHDRAWN_MS,
		.bound_ns = BOUND_MAX_NS,
	};

	if (onramp->common && onramp_ready(onramp, time.at_ns))
		set(onramp, TIMELY_CMD_COMMON_TIME_SET, TIMELY_A_COMMON_TIME, &time, sizeof(time));
	onramp->common = false;
}
