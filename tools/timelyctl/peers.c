// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl onramp peers`: the hosts that On-Ramp's flows of this network namespace go to, and the
 * offsets of their clocks, if a clock daemon has measured them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <linux/timely.h>

#include "timelyctl.h"

struct peers {
	struct timely_peer_clock *peer;
	size_t count;
};

/**
 * struct offset - the offset of a peer's clock at present
 * @offset_ns: the peer's CLOCK_REALTIME minus that of this host
 * @bound_ns: largest error of @offset_ns
 * @left_ns: how long the offset may still be used; 0 or less: not any more
 */
struct offset {
	__s64 offset_ns;
	__u64 bound_ns;
	__s64 left_ns;
};

static void add_peer(const struct nlmsghdr *message, void *data)
{
	struct peers *peers = data;
	const struct nlattr *attr;
	size_t bytes;

	if (!message) {
		peers->count = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) != TIMELY_A_PEER)
			continue;
		peers->peer = reallocarray(peers->peer, peers->count + 1, sizeof(*peers->peer));
		if (!peers->peer)
			out_of_memory();
		bytes = mnl_attr_get_payload_len(attr);
		memset(&peers->peer[peers->count], 0, sizeof(*peers->peer));
		memcpy(&peers->peer[peers->count++], mnl_attr_get_payload(attr),
		       bytes < sizeof(*peers->peer) ? bytes : sizeof(*peers->peer));
	}
}

static int compare_peers(const void *a, const void *b)
{
	const struct timely_peer_clock *one = a, *other = b;
	int order = memcmp(one->address, other->address, sizeof(one->address));

	return one->family != other->family ? one->family - other->family : order;
}

static unsigned int address_bytes(const struct timely_peer_clock *peer)
{
	return peer->family == AF_INET ? 4 : 16;
}

static __s64 clock_ns(clockid_t id)
{
	struct timespec time;

	clock_gettime(id, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct offset offset_now(const struct timely_peer_clock *peer)
{
	__s64 now_ns = clock_ns(CLOCK_MONOTONIC), age_ns = now_ns - (__s64)peer->at_ns;
	struct offset offset = {
		.left_ns = peer->valid_ms * 1000000LL - age_ns,
		.offset_ns = peer->offset_ns - (clock_ns(CLOCK_REALTIME) - now_ns),
	};

	offset.offset_ns += (__s64)(age_ns * (peer->drift_ppb / 1e9));
	offset.bound_ns = peer->bound_ns + (__u64)(age_ns * (peer->growth_ppb / 1e9));
	return offset;
}

static const char *signed_text(char *text, size_t size, __s64 ns)
{
	char value[32];

	snprintf(text, size, "%c%s", ns < 0 ? '-' : '+',
		 time_text(value, sizeof(value), ns < 0 ? -(__u64)ns : (__u64)ns));
	return text;
}

static void print_peer(const struct timely_peer_clock *peer)
{
	char address[INET6_ADDRSTRLEN], delay[32], by[32], bound[32], left[32];
	struct offset offset;

	address_text(address, peer->address, address_bytes(peer));
	time_text(delay, sizeof(delay), peer->delay_ns);
	if (!peer->valid_ms) {
		tell_info("%-26s %6u %9s %9s %9s %9s", address, peer->flows, delay, "-", "-", "-");
		return;
	}
	offset = offset_now(peer);
	tell_info("%-26s %6u %9s %9s %9s %9s", address, peer->flows, delay,
		  signed_text(by, sizeof(by), offset.offset_ns),
		  time_text(bound, sizeof(bound), offset.bound_ns),
		  offset.left_ns > 0 ? time_text(left, sizeof(left), offset.left_ns) : "too old");
}

static void print_peers(const struct peers *peers)
{
	if (!peers->count) {
		tell_info("On-Ramp has no peers in this network namespace");
		return;
	}
	tell_info("%-26s %6s %9s %9s %9s %9s", "to", "flows", "delay", "offset", "bound", "valid");
	for (size_t i = 0; i < peers->count; i++)
		print_peer(&peers->peer[i]);
}

static void json_offset(const struct timely_peer_clock *peer)
{
	struct offset offset = offset_now(peer);

	if (!peer->valid_ms) {
		json_null("clock");
		return;
	}
	json_open("clock", '{');
	json_signed("offset_ns", offset.offset_ns);
	json_unsigned("bound_ns", offset.bound_ns);
	json_signed("drift_ppb", peer->drift_ppb);
	json_bool("valid", offset.left_ns > 0);
	json_close('}');
}

static void json_peers(const struct peers *peers)
{
	char address[INET6_ADDRSTRLEN];

	json_open(NULL, '[');
	for (size_t i = 0; i < peers->count; i++) {
		const struct timely_peer_clock *peer = &peers->peer[i];

		json_open(NULL, '{');
		json_string("to", address_text(address, peer->address, address_bytes(peer)));
		json_unsigned("flows", peer->flows);
		json_unsigned("delay_ns", peer->delay_ns);
		json_offset(peer);
		json_close('}');
	}
	json_close(']');
	json_end();
}

/* Print the peers, sorted by address. Returns an error without printing it. */
int peers_show(struct family *family, bool json)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct peers peers = {};
	int err;

	err = talk_ask(&family->talk,
		       family_request(family, buffer, NLM_F_DUMP, TIMELY_CMD_PEER_GET),
		       add_peer, &peers);
	if (peers.count)
		qsort(peers.peer, peers.count, sizeof(*peers.peer), compare_peers);
	if (!err && json)
		json_peers(&peers);
	else if (!err)
		print_peers(&peers);
	free(peers.peer);
	return err;
}
