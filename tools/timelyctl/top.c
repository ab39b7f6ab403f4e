// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl top`: the connections that use timely, summed by destination, the worst first.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "timelyctl.h"

/**
 * struct destination - the connections to the addresses of a prefix
 * @prefix: the prefix
 * @connections: number of connections
 * @sending: connections that have data to send
 * @rate_Bps: sum of their rates, bytes/s
 * @recent: connections whose last RTT is recent: the next three members are about these
 * @rtt_ns: sum of the last RTTs, ns
 * @queue_ns: sum of the queueing delays, ns
 * @queue_max_ns: longest queueing delay, ns
 * @cuts: how often there was a cause to reduce a rate at once
 * @pauses: pauses by On-Ramp
 * @paused_ns: duration of these pauses, ns
 */
struct destination {
	struct prefix prefix;
	__u64 connections;
	__u64 sending;
	__u64 rate_Bps;
	__u64 recent;
	__u64 rtt_ns;
	__u64 queue_ns;
	__u64 queue_max_ns;
	__u64 cuts;
	__u64 pauses;
	__u64 paused_ns;
};

/**
 * struct destinations - all destinations
 * @length: length of the prefix that connections are summed up by
 * @destination: the destinations
 * @count: their number
 * @slots: hash table: 1 + index of a destination; 0: a free slot
 * @slot_count: size of the table, a power of two, more than twice @count
 */
struct destinations {
	unsigned int length;
	struct destination *destination;
	size_t count;
	size_t *slots;
	size_t slot_count;
};

/* ---- summing up ---- */

/* The prefix of the remote address, with the bits beyond its length cleared. */
static struct prefix prefix_of(const struct timely_connection *connection, unsigned int length)
{
	struct prefix prefix = { .bytes = connection_address_bytes(connection) };
	unsigned int bits = prefix.bytes * 8;

	prefix.length = length < bits ? length : bits;
	memcpy(prefix.address, connection->daddr, prefix.bytes);
	for (unsigned int bit = prefix.length; bit < bits; bit++)
		prefix.address[bit / 8] &= ~(0x80 >> bit % 8);
	return prefix;
}

static bool is_same_prefix(const struct prefix *one, const struct prefix *other)
{
	return one->bytes == other->bytes && memcmp(one->address, other->address, one->bytes) == 0;
}

static void add_connection(struct destination *to, const struct timely_connection *connection)
{
	__u64 queue_ns = connection_queue_ns(connection);

	to->connections++;
	to->sending += !!(connection->state & TIMELY_STATE_SENDING);
	to->rate_Bps += connection->rate_Bps;
	to->cuts += connection_cuts(connection);
	to->pauses += connection->pauses;
	to->paused_ns += connection->paused_ns;
	if (!connection_rtt_is_recent(connection))
		return;
	to->recent++;
	to->rtt_ns += connection->rtt_ns;
	to->queue_ns += queue_ns;
	if (queue_ns > to->queue_max_ns)
		to->queue_max_ns = queue_ns;
}

/* The slot of the prefix, or the free slot that it gets: after a taken one the next is tried. */
static size_t *find_slot(const struct destinations *all, const struct prefix *prefix)
{
	__u64 hash = prefix->bytes;
	size_t i;

	/* FNV-1a */
	for (unsigned int byte = 0; byte < prefix->bytes; byte++)
		hash = (hash ^ prefix->address[byte]) * 0x100000001b3;
	i = (hash ^ hash >> 32) & (all->slot_count - 1);
	while (all->slots[i] &&
	       !is_same_prefix(&all->destination[all->slots[i] - 1].prefix, prefix))
		i = (i + 1) & (all->slot_count - 1);
	return &all->slots[i];
}

/* Make room for twice as many destinations. */
static void grow(struct destinations *all)
{
	all->slot_count = all->slot_count ? 2 * all->slot_count : 64;
	free(all->slots);
	all->slots = calloc(all->slot_count, sizeof(*all->slots));
	all->destination = reallocarray(all->destination, all->slot_count / 2,
					sizeof(*all->destination));
	if (!all->slots || !all->destination)
		out_of_memory();
	for (size_t i = 0; i < all->count; i++)
		*find_slot(all, &all->destination[i].prefix) = i + 1;
}

/* Add a connection up; NULL: start again. Connections are not kept, so that many cost little. */
static void sum_up(const struct timely_connection *connection, void *data)
{
	struct destinations *all = data;
	struct prefix prefix;
	size_t *slot;

	if (!connection) {
		all->count = 0;
		memset(all->slots, 0, all->slot_count * sizeof(*all->slots));
		return;
	}
	prefix = prefix_of(connection, all->length);
	if (2 * (all->count + 1) >= all->slot_count)
		grow(all);
	slot = find_slot(all, &prefix);
	if (!*slot) {
		all->destination[all->count] = (struct destination){ .prefix = prefix };
		*slot = ++all->count;
	}
	add_connection(&all->destination[*slot - 1], connection);
}

/* Read the destinations. Prints errors; returns an exit status. */
static int destinations_get(const struct choice *choice, struct destinations *all)
{
	struct family family;
	int err;

	if (!connections_open(&family))
		return STATUS_FAILED;
	grow(all);
	err = connections_each(&family, choice, sum_up, all);
	if (err)
		connections_tell_failed(&family, "top", err);
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}

/* ---- sorting ---- */

/* The value to sort by, the largest first; with ORDER_RATE the smallest rate. */
static __u64 sort_key(enum order order, const struct destination *destination)
{
	switch (order) {
	case ORDER_RATE:
		return ~destination->rate_Bps;
	case ORDER_CUTS:
		return destination->cuts;
	case ORDER_PAUSES:
		return destination->paused_ns;
	case ORDER_DELAY:
		break;
	}
	return destination->queue_max_ns;
}

static int compare_destinations(const void *a, const void *b, void *order)
{
	__u64 one = sort_key(*(enum order *)order, a), other = sort_key(*(enum order *)order, b);

	return (one < other) - (one > other);
}

/* ---- output ---- */

static __u64 mean_ns(const struct destination *destination, __u64 sum_ns)
{
	return destination->recent ? sum_ns / destination->recent : 0;
}

/* A mean or a maximum of the recent RTTs, or "-" if there are none. */
static const char *recent_text(char *text, size_t size, const struct destination *destination,
			       __u64 ns)
{
	return destination->recent ? time_text(text, size, ns) : "-";
}

static void print_destination(const struct destination *destination)
{
	const struct prefix *prefix = &destination->prefix;
	char to[PREFIX_TEXT], rate[32], rtt[32], queue[32], queue_max[32], paused[32];

	tell_info("%-21s %11llu %8llu %11s %9s %9s %9s %8llu %8llu %9s",
		  prefix->length == prefix->bytes * 8 ?
			address_text(to, prefix->address, prefix->bytes) : prefix_text(to, prefix),
		  (unsigned long long)destination->connections,
		  (unsigned long long)destination->sending,
		  rate_text(rate, sizeof(rate), destination->rate_Bps / 125),
		  recent_text(rtt, sizeof(rtt), destination,
			      mean_ns(destination, destination->rtt_ns)),
		  recent_text(queue, sizeof(queue), destination,
			      mean_ns(destination, destination->queue_ns)),
		  recent_text(queue_max, sizeof(queue_max), destination,
			      destination->queue_max_ns),
		  (unsigned long long)destination->cuts, (unsigned long long)destination->pauses,
		  destination->pauses ?
			time_text(paused, sizeof(paused), destination->paused_ns) : "-");
}

static void print_destinations(const struct destinations *all)
{
	if (!all->count) {
		connections_tell_none();
		return;
	}
	tell_info("%-21s %11s %8s %11s %9s %9s %9s %8s %8s %9s", "to", "connections", "sending",
		  "rate", "RTT", "queue", "max queue", "cuts", "pauses", "paused");
	for (size_t i = 0; i < all->count; i++)
		print_destination(&all->destination[i]);
}

static void json_recent(const char *key, const struct destination *destination, __u64 ns)
{
	if (destination->recent)
		json_unsigned(key, ns);
	else
		json_null(key);
}

static void json_destination(const struct destination *destination)
{
	const struct prefix *prefix = &destination->prefix;
	char text[PREFIX_TEXT];

	json_open(NULL, '{');
	json_string("to", address_text(text, prefix->address, prefix->bytes));
	json_unsigned("length", prefix->length);
	json_unsigned("connections", destination->connections);
	json_unsigned("sending", destination->sending);
	json_unsigned("rate_bps", destination->rate_Bps * 8);
	json_recent("rtt_ns", destination, mean_ns(destination, destination->rtt_ns));
	json_recent("queue_ns", destination, mean_ns(destination, destination->queue_ns));
	json_recent("queue_max_ns", destination, destination->queue_max_ns);
	json_unsigned("cuts", destination->cuts);
	json_unsigned("pauses", destination->pauses);
	json_unsigned("paused_ns", destination->paused_ns);
	json_close('}');
}

static void json_destinations(const struct destinations *all)
{
	json_open(NULL, '[');
	for (size_t i = 0; i < all->count; i++)
		json_destination(&all->destination[i]);
	json_close(']');
	json_end();
}

int command_top(char **words, int count, bool json)
{
	struct choice choice = { .length = 128 };
	struct destinations all = {};
	int status = choice_parse("top", words, count, WORD_PREFIX, &choice);

	all.length = choice.length;
	if (!status)
		status = destinations_get(&choice, &all);
	if (!status && all.count)
		qsort_r(all.destination, all.count, sizeof(*all.destination), compare_destinations,
			&choice.order);
	/* The limit is that of destinations. */
	if (choice.limit && all.count > choice.limit)
		all.count = choice.limit;
	if (!status && json)
		json_destinations(&all);
	else if (!status)
		print_destinations(&all);
	free(all.destination);
	free(all.slots);
	return status;
}
