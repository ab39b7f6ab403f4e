/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Walks through a hash table, for netlink dumps. See walk.c.
 */
#ifndef _TIMELY_WALK_H
#define _TIMELY_WALK_H

#include <linux/rhashtable-types.h>

struct net;
struct timely_walk;

/* Called by timely_walk() for each object of the table, under RCU. @net is the namespace that was
 * given to timely_walk_begin(). Return: 0, or a negative error other than -EAGAIN, which ends the
 * call.
 */
typedef int (*timely_visit)(void *object, const struct net *net, void *arg);

struct timely_walk *timely_walk_begin(struct rhashtable *table, const struct net *net);
void timely_walk_end(struct timely_walk *walk);
int timely_walk(struct timely_walk *walk, timely_visit visit, void *arg);

#endif /* _TIMELY_WALK_H */
