// SPDX-License-Identifier: GPL-2.0
/*
 * Walks through a hash table, for netlink dumps: a dump has several messages, and the walk goes on
 * in the next message where the previous one was full.
 */

#include <linux/err.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "walk.h"

/**
 * struct timely_walk - a walk through a hash table
 * @net: the namespace whose objects are wanted; NULL for those of all namespaces
 * @visit: describes an object
 * @iter: position in the table, which has the objects of all namespaces
 * @again: the report of the object at @iter returned an error: the next call starts with it
 */
struct timely_walk {
	const struct net *net;
	timely_visit visit;
	struct rhashtable_iter iter;
	bool again;
};

/* Number of objects after which a walk leaves the RCU read-side critical section and calls
 * cond_resched(). Objects of other namespaces count, too.
 */
#define WALK_BATCH	1024

/**
 * timely_walk_begin() - start a walk
 * @table: the table, which outlives the walk
 * @net: the namespace whose objects are wanted, which outlives the walk; NULL for all namespaces,
 *	if @visit allows that
 * @visit: describes an object
 *
 * Return: the walk, to be given to timely_walk_end(); NULL if there is no memory.
 */
struct timely_walk *timely_walk_begin(struct rhashtable *table, const struct net *net,
				      timely_visit visit)
{
	struct timely_walk *walk = kzalloc(sizeof(*walk), GFP_KERNEL_ACCOUNT);

	if (!walk)
		return NULL;
	walk->net = net;
	walk->visit = visit;
	rhashtable_walk_enter(table, &walk->iter);
	return walk;
}

/**
 * timely_walk_end() - end a walk
 * @walk: the walk; NULL is allowed
 */
void timely_walk_end(struct timely_walk *walk)
{
	if (!walk)
		return;
	rhashtable_walk_exit(&walk->iter);
	kfree(walk);
}

/* Visit the next WALK_BATCH objects of the table. Return: 0 at the end of the table; -EAGAIN before
 * the end; or an error of @report.
 */
static int walk_some(struct timely_walk *walk, timely_report report, void *arg)
{
	void *object;
	int i, err = 0;

	rhashtable_walk_start(&walk->iter);
	for (i = 0; !err && i < WALK_BATCH; i++) {
		object = walk->again ? rhashtable_walk_peek(&walk->iter) :
				       rhashtable_walk_next(&walk->iter);
		walk->again = false;
		if (!object)
			break;
		/* An error pointer means that the table was resized: some objects come twice. */
		if (IS_ERR(object))
			continue;
		err = walk->visit(object, walk->net, report, arg);
		walk->again = err;
	}
	rhashtable_walk_stop(&walk->iter);
	return err ? : i == WALK_BATCH ? -EAGAIN : 0;
}

/**
 * timely_walk() - report the objects of the table, from the walk's position
 * @walk: the walk
 * @report: called for each object; if it returns an error, the next call starts with the same
 *	object
 * @arg: argument of @report
 *
 * Objects that are added or removed during the walk may be reported twice or not at all.
 *
 * Context: process; may sleep.
 * Return: 0 if all objects were reported, or the error of @report.
 */
int timely_walk(struct timely_walk *walk, timely_report report, void *arg)
{
	int err;

	while ((err = walk_some(walk, report, arg)) == -EAGAIN)
		cond_resched();
	return err;
}
