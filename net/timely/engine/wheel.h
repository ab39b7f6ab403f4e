/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A hierarchical timing wheel for what has to leave at a time: pure, told the
 * time, allocating nothing. See net/timely/engine/wheel.c.
 */
#ifndef _TIMELY_ENGINE_WHEEL_H
#define _TIMELY_ENGINE_WHEEL_H

#include <linux/types.h>

/* With 2048 slots a wheel has 49 KB, which the page allocator rounds up to 64 KB; with 4096
 * it had 98 KB, rounded up to 128 KB, for each transmit queue. Fewer slots would make more
 * flows move from one ring to the other: those of which a packet is due in 2 to 4 ms.
 */
#define TIMELY_WHEEL_BITS	11
#define TIMELY_WHEEL_SLOTS	(1U << TIMELY_WHEEL_BITS)
#define TIMELY_WHEEL_NEAR_SLOTS	(2 * TIMELY_WHEEL_SLOTS)

/* Slots of 2^8 ns = 256 ns to 2^20 ns = 1 ms. */
#define TIMELY_WHEEL_MIN_SHIFT	8
#define TIMELY_WHEEL_MAX_SHIFT	20

/**
 * struct timely_wheel_node - what is put into the wheel
 * @next: next in the same slot
 * @pprev: what points here; NULL while in no slot
 * @due_ns: its time
 */
struct timely_wheel_node {
	struct timely_wheel_node *next;
	struct timely_wheel_node **pprev;
	u64 due_ns;
};

/**
 * struct timely_wheel - a ring of slots and a ring of blocks of 2048 slots
 * @tick: the present slot, counted from time 0; all before are empty
 * @next_tick: there is nothing to do before this slot
 * @shift: log2 of a slot's width in ns
 * @near_full: a bit for each word of @near_bits that is not 0
 * @near_bits: a bit for each slot that is not empty
 * @far_full: a bit for each word of @far_bits that is not 0
 * @far_bits: a bit for each block that is not empty
 * @near: nodes of the slots of the present block and the next one
 * @far: nodes of the blocks after that, and what has not been moved to @near yet
 */
struct timely_wheel {
	u64 tick;
	u64 next_tick;
	u8 shift;
	u64 near_full[TIMELY_WHEEL_NEAR_SLOTS / 64 / 64];
	u64 far_full[(TIMELY_WHEEL_SLOTS + 64 * 64 - 1) / 64 / 64];
	u64 near_bits[TIMELY_WHEEL_NEAR_SLOTS / 64];
	u64 far_bits[TIMELY_WHEEL_SLOTS / 64];
	struct timely_wheel_node *near[TIMELY_WHEEL_NEAR_SLOTS];
	struct timely_wheel_node *far[TIMELY_WHEEL_SLOTS];
};

void timely_wheel_init(struct timely_wheel *w, u8 shift, u64 now_ns);
void timely_wheel_add(struct timely_wheel *w, struct timely_wheel_node *node,
		      u64 due_ns);
void timely_wheel_del(struct timely_wheel *w, struct timely_wheel_node *node);
struct timely_wheel_node *timely_wheel_expire_slow(struct timely_wheel *w,
						   u64 now_ns);
u64 timely_wheel_next_ns(struct timely_wheel *w);

/**
 * timely_wheel_queued() - is the node in the wheel?
 * @node: the node; all zero before its first use
 *
 * Return: true from timely_wheel_add() until it is deleted or has expired.
 */
static inline bool timely_wheel_queued(const struct timely_wheel_node *node)
{
	return node->pprev;
}

/**
 * timely_wheel_move() - give a queued node another time, earlier or later
 * @w: the wheel
 * @node: a node in it
 * @due_ns: its new time
 */
static inline void timely_wheel_move(struct timely_wheel *w,
				     struct timely_wheel_node *node, u64 due_ns)
{
	timely_wheel_del(w, node);
	timely_wheel_add(w, node, due_ns);
}

/**
 * timely_wheel_advance() - tell the time to a wheel of which nothing is due
 * @w: the wheel
 * @now_ns: the time
 *
 * What is put in is placed as seen from the last time the wheel was told; after
 * a pause that would be far away.
 *
 * Return: false if something may be due, and the wheel has stayed as it was.
 */
static inline bool timely_wheel_advance(struct timely_wheel *w, u64 now_ns)
{
	u64 tick = now_ns >> w->shift;

	if (tick >= w->next_tick)
		return false;
	if (tick > w->tick)
		w->tick = tick;
	return true;
}

/**
 * timely_wheel_expire() - take out one node whose time has come
 * @w: the wheel
 * @now_ns: the time; one that runs backwards expires nothing
 *
 * A node comes out at the end of the slot its time falls into: never early,
 * late by less than a slot if asked in time. Nodes come out by slots, in no
 * order within one.
 *
 * Return: a node, or NULL when none is due.
 */
static inline struct timely_wheel_node *
timely_wheel_expire(struct timely_wheel *w, u64 now_ns)
{
	if (timely_wheel_advance(w, now_ns))
		return NULL;
	return timely_wheel_expire_slow(w, now_ns);
}

#endif /* _TIMELY_ENGINE_WHEEL_H */
