/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A hierarchical timing wheel: finds the nodes that are due. The qdisc timely has a node for each
 * flow that must wait to send. Time is an argument, and nothing is allocated. wheel.c explains the
 * data structure.
 */
#ifndef _TIMELY_ENGINE_WHEEL_H
#define _TIMELY_ENGINE_WHEEL_H

#include <linux/types.h>

/* Number of slots of the far ring, and of ticks in a block: 2048. The near ring has twice as many
 * slots. There is a wheel for each transmit queue. With 2048 slots, a wheel takes 49 KB, which the
 * page allocator rounds up to 64 KB; with 4096 slots, 98 KB, rounded up to 128 KB. With less than
 * 2048, the near ring would cover less time, and more nodes would move to it from the far ring.
 */
#define TIMELY_WHEEL_BITS	11
#define TIMELY_WHEEL_SLOTS	(1U << TIMELY_WHEEL_BITS)
#define TIMELY_WHEEL_NEAR_SLOTS	(2 * TIMELY_WHEEL_SLOTS)

/* Ticks are 2^8 ns = 256 ns to 2^20 ns = 1 ms long. */
#define TIMELY_WHEEL_MIN_SHIFT	8
#define TIMELY_WHEEL_MAX_SHIFT	20

/**
 * struct timely_wheel_node - an element of the wheel
 * @next: next node in the same slot
 * @pprev: address of the pointer to this node; NULL while the node is in no wheel
 * @due_ns: when the node is due, by the clock of the wheel's caller
 */
struct timely_wheel_node {
	struct timely_wheel_node *next;
	struct timely_wheel_node **pprev;
	u64 due_ns;
};

/**
 * struct timely_wheel - the near ring, with a slot for each tick, and the far ring, with a slot for
 * each block of 2048 ticks
 * @tick: the present tick, counted from time 0; no node belongs to an earlier tick
 * @next_tick: no node is due before this tick
 * @shift: log2 of a tick's length in ns
 * @near_full: a bit for each word of @near_bits that is not 0
 * @near_bits: a bit for each slot of @near that is not empty
 * @far_full: a bit for each word of @far_bits that is not 0
 * @far_bits: a bit for each slot of @far that is not empty
 * @near: for each tick of the present and the next block, the list of nodes in the tick
 * @far: for each later block, the list of nodes in the block; also nodes not yet moved to @near
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
 * timely_wheel_queued() - check whether a node is in the wheel
 * @node: the node; all zero before its first use
 *
 * Return: true from timely_wheel_add() until the node is deleted or has expired.
 */
static inline bool timely_wheel_queued(const struct timely_wheel_node *node)
{
	return node->pprev;
}

/**
 * timely_wheel_move() - change the time at which a node is due, to an earlier or later time
 * @w: the wheel
 * @node: a node in the wheel
 * @due_ns: the new time at which the node is due
 */
static inline void timely_wheel_move(struct timely_wheel *w,
				     struct timely_wheel_node *node, u64 due_ns)
{
	timely_wheel_del(w, node);
	timely_wheel_add(w, node, due_ns);
}

/**
 * timely_wheel_advance() - set the time of a wheel in which no node is due
 * @w: the wheel
 * @now_ns: current time
 *
 * timely_wheel_add() places nodes relative to the present tick. Call this function before adding a
 * node after an idle time: relative to an old tick, a node that is due soon would be put into the
 * far ring and have to move.
 *
 * Return: false if a node may be due; the wheel is unchanged then.
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
 * timely_wheel_expire() - remove one node that is due
 * @w: the wheel
 * @now_ns: current time; if it is before that of an earlier call, no node expires
 *
 * A node expires at the first tick that starts when the node is due or later: never early, and less
 * than a tick late if the caller calls in time. Nodes expire tick by tick, in no order within a
 * tick.
 *
 * Return: a node, or NULL if none is due.
 */
static inline struct timely_wheel_node *
timely_wheel_expire(struct timely_wheel *w, u64 now_ns)
{
	if (timely_wheel_advance(w, now_ns))
		return NULL;
	return timely_wheel_expire_slow(w, now_ns);
}

#endif /* _TIMELY_ENGINE_WHEEL_H */
