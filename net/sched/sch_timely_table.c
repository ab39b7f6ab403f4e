// SPDX-License-Identifier: GPL-2.0
/*
 * The flow table of the qdisc "timely": a hash table that grows and shrinks with the number of
 * flows.
 *
 * Linear hashing (Litwin, 1980): while there are more flows than buckets, each new flow adds one
 * bucket, which takes half of the flows of one other bucket. The table is never rebuilt, and
 * allocates one page at a time. Buckets that are not needed any more are merged in the opposite
 * order, and pages without buckets are freed. tq_bucket() in sch_timely.h finds a key's bucket.
 */

#include "sch_timely.h"

/* Allocate the page of bucket @nr if there is none. Return: false if there is no memory. */
static bool tq_table_reserve(struct tq_table *table, u32 nr)
{
	struct tq_flow ***page = &table->pages[nr / TQ_PAGE_BUCKETS];

	if (!*page)
		*page = kzalloc(PAGE_SIZE, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	return *page;
}

/* Add one bucket, whose page exists, and move the flows that belong into the new bucket from the
 * bucket that has had them.
 */
static void tq_table_split(struct tq_table *table)
{
	struct tq_flow **link = tq_table_bucket(table, table->buckets - table->half);
	struct tq_flow **to = tq_table_bucket(table, table->buckets);
	struct tq_flow *f;

	table->buckets++;
	while ((f = *link)) {
		if (tq_bucket(table, f->sk) != to) {
			link = &f->hash_next;
			continue;
		}
		*link = f->hash_next;
		f->hash_next = *to;
		*to = f;
	}
	if (table->buckets == 2 * table->half)
		table->half = table->buckets;
}

/**
 * tq_table_grow() - add a bucket if there are more flows than buckets
 * @table: the table, under the qdisc's lock
 * @flows: number of flows
 *
 * If there is no memory, the table does not grow and the chains become longer.
 */
void tq_table_grow(struct tq_table *table, u32 flows)
{
	if (flows > table->buckets && table->buckets < TQ_BUCKETS_MAX &&
	    tq_table_reserve(table, table->buckets))
		tq_table_split(table);
}

/**
 * tq_table_merge() - remove the last bucket
 * @table: the table with two buckets or more, under the qdisc's lock
 * @reserved: number of buckets whose pages stay allocated
 *
 * The bucket's flows go back to the bucket that it was split from.
 */
void tq_table_merge(struct tq_table *table, u32 reserved)
{
	struct tq_flow **from, **to;
	u32 nr;

	if (table->buckets == table->half)
		table->half /= 2;
	nr = --table->buckets;
	from = tq_table_bucket(table, nr);
	to = tq_table_bucket(table, nr - table->half);
	while (*to)
		to = &(*to)->hash_next;
	*to = *from;
	*from = NULL;
	if (nr >= reserved && !(nr % TQ_PAGE_BUCKETS)) {
		kfree(table->pages[nr / TQ_PAGE_BUCKETS]);
		table->pages[nr / TQ_PAGE_BUCKETS] = NULL;
	}
}

/* Allocate the page of bucket @nr in process context. The path of a packet may allocate the
 * same page at the same time. Return: false if there is no memory.
 */
static bool tq_reserve_page(struct Qdisc *sch, u32 nr)
{
	struct tq_sched *q = qdisc_priv(sch);
	struct tq_flow ***place = &q->table.pages[nr / TQ_PAGE_BUCKETS];
	struct tq_flow **page;

	if (READ_ONCE(*place))
		return true;
	page = kzalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!page)
		return false;
	sch_tree_lock(sch);
	if (!*place)
		swap(*place, page);
	sch_tree_unlock(sch);
	kfree(page);
	return true;
}

/**
 * tq_reserve_buckets() - allocate the pages of the first buckets
 * @sch: the qdisc, not locked; process context, under RTNL
 * @buckets: number of buckets
 *
 * If the change of options fails later, the pages stay: the table will grow into them.
 *
 * Return: false if there is no memory.
 */
bool tq_reserve_buckets(struct Qdisc *sch, u32 buckets)
{
	struct tq_sched *q = qdisc_priv(sch);
	u32 nr;

	if (!q->table.pages)
		q->table.pages = kvcalloc(TQ_PAGES, sizeof(*q->table.pages),
					  GFP_KERNEL_ACCOUNT);
	if (!q->table.pages)
		return false;
	sch_tree_lock(sch);
	q->reserved = max(q->reserved, buckets);
	sch_tree_unlock(sch);
	for (nr = 0; nr < buckets; nr += TQ_PAGE_BUCKETS)
		if (!tq_reserve_page(sch, nr))
			return false;
	return true;
}

/**
 * tq_add_buckets() - split buckets until there are enough
 * @table: the table, under the qdisc's lock; in a new qdisc, all zero except the pages
 * @buckets: minimum number of buckets, whose pages exist; the table may have more
 */
void tq_add_buckets(struct tq_table *table, u32 buckets)
{
	if (!table->buckets) {
		table->buckets = 1;
		table->half = 1;
	}
	while (table->buckets < buckets)
		tq_table_split(table);
}
