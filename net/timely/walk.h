/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Walks through a hash table, for netlink dumps. See walk.c.
 */
#ifndef _TIMELY_WALK_H
#define _TIMELY_WALK_H

#include <linux/rhashtable-types.h>

struct net;
struct timely_walk;

/* Called for the description of each object that the walk is for, under RCU. Return: 0, or a
 * negative error other than -EAGAIN, which ends the call of timely_walk().
 */
typedef int (*timely_report)(const void *description, void *arg);

/* Called by timely_walk() for each object of the table, under RCU: calls @report with @arg and a
 * description of the object, if the object is of @net or @net is NULL. Return: 0, or the result of
 * @report.
 */
typedef int (*timely_visit)(void *object, const struct net *net, timely_report report, void *arg);

struct timely_walk *timely_walk_begin(struct rhashtable *table, const struct net *net,
				      timely_visit visit);
void timely_walk_end(struct timely_walk *walk);
int timely_walk(struct timely_walk *walk, timely_report report, void *arg);

#endif /* _TIMELY_WALK_H */
