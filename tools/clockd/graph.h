/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The choice of peers: see graph.c.
 */
#ifndef CLOCKD_GRAPH_H
#define CLOCKD_GRAPH_H

#include "message.h"

/* Most hosts in the list of members. */
#define MEMBERS_MAX	4096

/**
 * struct members - the hosts that may be peers of each other
 * @address: their addresses, sorted, each once
 * @count: number of addresses
 */
struct members {
	struct address *address;
	size_t count;
};

bool members_add(struct members *members, const struct address *address);
void members_sort(struct members *members);
void members_free(struct members *members);
const struct address *members_find(const struct members *members, const struct address *address);
size_t graph_peers(const struct members *members, const struct address *own, unsigned int degree,
		   struct address *peers);

#endif /* CLOCKD_GRAPH_H */
