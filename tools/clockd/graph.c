// SPDX-License-Identifier: GPL-2.0
/*
 * The choice of peers: a random regular graph over all members, without a coordinator. Pure.
 * Huygens and Firefly do not say how hosts agree on a graph.
 *
 * Each host computes the same graph from the same list. The members are arranged in rings, and the
 * order in each ring is that of a hash of address and number of the ring. A host's peers are its
 * neighbours in all rings, until the host has as many peers as it should have. The first ring
 * connects all members. The later rings leave out members that have enough peers; there are more
 * rings than half of the degree, because some rings repeat existing edges. When a host joins or
 * leaves, the peers of its neighbours in each ring change, and those of a few hosts in later rings.
 *
 * If a range lists addresses that no host has, these have a share of each host's peers. A larger
 * degree makes up for that.
 */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* Rings for each peer that a host should have. More rings add hardly any edge. */
#define RINGS	4

/**
 * struct place - a member's place in a ring
 * @hash: members are sorted by this
 * @index: index of the member
 */
struct place {
	uint64_t hash;
	size_t index;
};

static int compare_addresses(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct address));
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Add an address. Returns false if there are MEMBERS_MAX already, or no memory. */
bool members_add(struct members *members, const struct address *address)
{
	if (members->count == MEMBERS_MAX)
		return false;
	if (!(members->count % 64)) {
		void *more = realloc(members->address,
				     (members->count + 64) * sizeof(*members->address));

		if (!more)
			return false;
		members->address = more;
	}
	members->address[members->count++] = *address;
	return true;
}

/* Sort the addresses and remove repetitions. */
void members_sort(struct members *members)
{
	size_t kept = 0;

	if (!members->count)
		return;
	qsort(members->address, members->count, sizeof(*members->address), compare_addresses);
	for (size_t i = 1; i < members->count; i++)
		if (compare_addresses(&members->address[kept], &members->address[i]))
			members->address[++kept] = members->address[i];
	members->count = kept + 1;
}

void members_free(struct members *members)
{
	free(members->address);
	*members = (struct members){};
}

/* The member with this address in a sorted list, or NULL. */
const struct address *members_find(const struct members *members, const struct address *address)
{
	if (!members->count)
		return NULL;
	return bsearch(address, members->address, members->count, sizeof(*address),
		       compare_addresses);
}

/**
 * struct graph - edges that were chosen so far
 * @degree: most edges of a member
 * @count: number of edges of each member
 * @edge: the edges of member i are @edge[i * @degree] and the following
 */
struct graph {
	unsigned int degree;
	unsigned int *count;
	size_t *edge;
};

static bool graph_has(const struct graph *graph, size_t a, size_t b)
{
	for (unsigned int i = 0; i < graph->count[a]; i++)
		if (graph->edge[a * graph->degree + i] == b)
			return true;
	return false;
}

/* Add an edge unless it exists or one of the members has enough. */
static void graph_add(struct graph *graph, size_t a, size_t b)
{
	if (a == b || graph->count[a] == graph->degree || graph->count[b] == graph->degree ||
	    graph_has(graph, a, b))
		return;
	graph->edge[a * graph->degree + graph->count[a]++] = b;
	graph->edge[b * graph->degree + graph->count[b]++] = a;
}

/* Add a ring of the members that have too few edges yet. */
static void graph_add_ring(struct graph *graph, struct place *place,
			   const struct members *members, unsigned int ring)
{
	size_t count = 0;

	for (size_t i = 0; i < members->count; i++) {
		if (graph->count[i] == graph->degree)
			continue;
		place[count].hash = hash_words(ring + 1, members->address[i].bytes,
					       sizeof(members->address[i]));
		place[count++].index = i;
	}
	qsort(place, count, sizeof(*place), compare_places);
	for (size_t i = 0; i < count; i++)
		graph_add(graph, place[i].index, place[(i + 1) % count].index);
}

/**
 * graph_peers() - choose the peers of a host
 * @members: all hosts, sorted by members_sort()
 * @own: the host's address, which is one of them
 * @degree: number of peers that each host should have, 2 or more
 * @peers: set to the peers' addresses; room for @degree
 *
 * With up to @degree + 1 members, all are peers of each other. With more, a host has @degree peers;
 * a few hosts have one less when the number of members does not allow more.
 *
 * Return: number of peers; 0 also if there is no memory.
 */
size_t graph_peers(const struct members *members, const struct address *own, unsigned int degree,
		   struct address *peers)
{
	size_t count = members->count, self = members_find(members, own) - members->address;
	struct place *place = calloc(count, sizeof(*place));
	struct graph graph = {
		.degree = degree,
		.count = calloc(count, sizeof(*graph.count)),
		.edge = calloc(count, degree * sizeof(*graph.edge)),
	};
	size_t chosen = 0;

	if (place && graph.count && graph.edge) {
		for (size_t i = 0; count <= degree + 1 && i < count; i++)
			graph_add(&graph, self, i);
		for (unsigned int ring = 0; count > degree + 1 && ring < RINGS * degree; ring++)
			graph_add_ring(&graph, place, members, ring);
		for (; chosen < graph.count[self]; chosen++)
			peers[chosen] = members->address[graph.edge[self * degree + chosen]];
	}
	free(place);
	free(graph.count);
	free(graph.edge);
	return chosen;
}
