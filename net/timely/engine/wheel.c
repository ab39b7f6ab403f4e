// SPDX-License-Identifier: GPL-2.0
/*
 * The timing wheel: what has to leave at a time, found in constant time.
 *
 * Time is cut into ticks of 2^shift ns, numbered from 0. A node due at d
 * belongs to the first tick that starts at d or after it, so that it never
 * leaves early, and less than a tick late.
 *
 * The near ring has a slot for each tick of the present block of 2048 ticks and
 * of the next one, the far ring a slot for each of the 2047 blocks after the
 * present. The next block's nodes move from the far ring to the near one while
 * the present block passes, a few with each call: spread all at once, those of
 * a million flows would keep everything waiting for milliseconds. So a node
 * moves once at most (Varghese and Lauck's hierarchical wheel; Carousel,
 * SIGCOMM'17, uses one level). What lies beyond waits in the last block and is
 * placed again from there. With ticks of 1 us the near ring reaches 2 to 4 ms,
 * the far one 4 s.
 *
 * A ring is indexed by the low bits of tick or block number: since only what
 * lies within one turn of the present is put there, a slot never holds two
 * ticks. A bit for each slot, and one for each word of those, find the next
 * slot in use in a few instructions however far away it is.
 */

#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include "wheel.h"

#define WHEEL_NEAR_MASK	(TIMELY_WHEEL_NEAR_SLOTS - 1)
#define WHEEL_FAR_MASK	(TIMELY_WHEEL_SLOTS - 1)

#define WHEEL_NEVER	(~0ULL)

/* Nodes moved to the near ring with each call. A packet makes two calls, and
 * there are no more nodes than packets in the block: half of it suffices.
 */
#define WHEEL_MOVES	1

/**
 * struct wheel_ring - either of the rings
 * @full: a bit for each word of @bits that is not 0
 * @bits: a bit for each slot that is not empty
 * @slots: lists of nodes
 * @words: of @bits, a power of two
 */
struct wheel_ring {
	u64 *full;
	u64 *bits;
	struct timely_wheel_node **slots;
	u32 words;
};

static struct wheel_ring wheel_near(struct timely_wheel *w)
{
	return (struct wheel_ring) {
		w->near_full, w->near_bits, w->near, TIMELY_WHEEL_NEAR_SLOTS / 64
	};
}

static struct wheel_ring wheel_far(struct timely_wheel *w)
{
	return (struct wheel_ring) {
		w->far_full, w->far_bits, w->far, TIMELY_WHEEL_SLOTS / 64
	};
}

/* The first word after another, round the ring and up to itself, that is not 0;
 * @ring->words if there is none.
 */
static u32 wheel_next_word(struct wheel_ring ring, u32 word)
{
	u32 start = (word + 1) & (ring.words - 1);
	u32 parts = max(ring.words / 64, 1U), part = start / 64, i;
	u64 full = ring.full[part] & (~0ULL << start % 64);

	for (i = 0; i <= parts; i++) {
		if (full)
			return part * 64 + __ffs64(full);
		part = (part + 1) & (parts - 1);
		full = ring.full[part];
	}
	return ring.words;
}

/* Slots from @from on, round the ring, until one that is in use; as many as the
 * ring has if none is.
 */
static u32 wheel_distance(struct wheel_ring ring, u32 from)
{
	u32 word = from / 64, bit = from % 64, next;
	u64 bits = ring.bits[word] >> bit;

	if (bits)
		return __ffs64(bits);
	next = wheel_next_word(ring, word);
	if (next == ring.words)
		return ring.words * 64;
	return (((next - word - 1) & (ring.words - 1)) + 1) * 64 - bit +
	       __ffs64(ring.bits[next]);
}

/* The first tick at which there is something to do: a node, or a block of them
 * that must have been moved by then.
 */
static u64 wheel_find(struct timely_wheel *w)
{
	u64 block = w->tick >> TIMELY_WHEEL_BITS;
	u32 slots = wheel_distance(wheel_near(w), w->tick & WHEEL_NEAR_MASK);
	u32 blocks = wheel_distance(wheel_far(w), block & WHEEL_FAR_MASK);
	u64 tick = slots < TIMELY_WHEEL_NEAR_SLOTS ? w->tick + slots : WHEEL_NEVER;

	if (blocks < TIMELY_WHEEL_SLOTS)
		tick = min(tick, max((block + blocks) << TIMELY_WHEEL_BITS, w->tick));
	return tick;
}

static void wheel_link(struct wheel_ring ring, u32 slot,
		       struct timely_wheel_node *node)
{
	struct timely_wheel_node **head = &ring.slots[slot];

	node->next = *head;
	node->pprev = head;
	if (node->next) {
		node->next->pprev = &node->next;
	} else {
		ring.bits[slot / 64] |= BIT_ULL(slot % 64);
		ring.full[slot / 64 / 64] |= BIT_ULL(slot / 64 % 64);
	}
	*head = node;
}

/* If this is a slot of the ring it is empty now. */
static void wheel_emptied(struct wheel_ring ring, struct timely_wheel_node **head)
{
	unsigned long offset = (unsigned long)head - (unsigned long)ring.slots;
	u32 slot = offset / sizeof(*head);

	if (offset >= ring.words * 64 * sizeof(*head))
		return;
	ring.bits[slot / 64] &= ~BIT_ULL(slot % 64);
	if (!ring.bits[slot / 64])
		ring.full[slot / 64 / 64] &= ~BIT_ULL(slot / 64 % 64);
}

/* Put a node where its time belongs, seen from the present tick. */
static void wheel_place(struct timely_wheel *w, struct timely_wheel_node *node)
{
	u64 width = BIT_ULL(w->shift);
	u64 tick = (node->due_ns >> w->shift) + !!(node->due_ns & (width - 1));
	u64 present = w->tick >> TIMELY_WHEEL_BITS;
	u64 block;

	tick = max(tick, w->tick);
	block = tick >> TIMELY_WHEEL_BITS;
	if (block <= present + 1) {
		wheel_link(wheel_near(w), tick & WHEEL_NEAR_MASK, node);
	} else {
		block = min(block, present + WHEEL_FAR_MASK);
		wheel_link(wheel_far(w), block & WHEEL_FAR_MASK, node);
		tick = block << TIMELY_WHEEL_BITS;
	}
	w->next_tick = min(w->next_tick, tick);
}

/* Move up to @count nodes of a block to slots of their own. */
static void wheel_spread(struct timely_wheel *w, u64 block, u32 count)
{
	struct timely_wheel_node **slot = &w->far[block & WHEEL_FAR_MASK];
	struct timely_wheel_node *node;

	while (count-- && (node = *slot)) {
		timely_wheel_del(w, node);
		/* Where the next call starts, or the next turn of this loop. */
		prefetchw(*slot);
		wheel_place(w, node);
	}
}

/**
 * timely_wheel_init() - make an empty wheel
 * @w: the wheel
 * @shift: log2 of a slot's width in ns, TIMELY_WHEEL_MIN_SHIFT to _MAX_SHIFT
 * @now_ns: the time
 */
void timely_wheel_init(struct timely_wheel *w, u8 shift, u64 now_ns)
{
	memset(w, 0, sizeof(*w));
	w->shift = shift;
	w->tick = now_ns >> shift;
	w->next_tick = WHEEL_NEVER;
}
EXPORT_SYMBOL_GPL(timely_wheel_init);

/**
 * timely_wheel_add() - put in a node
 * @w: the wheel
 * @node: a node that is in no wheel
 * @due_ns: its time; what is past comes out at once
 */
void timely_wheel_add(struct timely_wheel *w, struct timely_wheel_node *node,
		      u64 due_ns)
{
	node->due_ns = due_ns;
	wheel_place(w, node);
	wheel_spread(w, (w->tick >> TIMELY_WHEEL_BITS) + 1, WHEEL_MOVES);
}
EXPORT_SYMBOL_GPL(timely_wheel_add);

/**
 * timely_wheel_del() - take out a node before its time
 * @w: the wheel
 * @node: a node in it
 */
void timely_wheel_del(struct timely_wheel *w, struct timely_wheel_node *node)
{
	struct timely_wheel_node **pprev = node->pprev;

	*pprev = node->next;
	node->pprev = NULL;
	if (node->next) {
		node->next->pprev = pprev;
		return;
	}
	/* The last of its list; if it was the first too, a slot is empty now. */
	wheel_emptied(wheel_near(w), pprev);
	wheel_emptied(wheel_far(w), pprev);
}
EXPORT_SYMBOL_GPL(timely_wheel_del);

/**
 * timely_wheel_expire_slow() - timely_wheel_expire(), where there may be one
 * @w: the wheel
 * @now_ns: the time
 *
 * Return: a node that is due, or NULL.
 */
struct timely_wheel_node *timely_wheel_expire_slow(struct timely_wheel *w,
						   u64 now_ns)
{
	u64 last = now_ns >> w->shift;
	struct timely_wheel_node *node;

	while (w->next_tick <= last) {
		w->tick = max(w->tick, w->next_tick);
		wheel_spread(w, w->tick >> TIMELY_WHEEL_BITS, U32_MAX);
		node = w->near[w->tick & WHEEL_NEAR_MASK];
		if (node) {
			timely_wheel_del(w, node);
			prefetchw(node->next);
			wheel_spread(w, (w->tick >> TIMELY_WHEEL_BITS) + 1, WHEEL_MOVES);
			return node;
		}
		w->next_tick = wheel_find(w);
	}
	w->tick = max(w->tick, last);
	return NULL;
}
EXPORT_SYMBOL_GPL(timely_wheel_expire_slow);

/**
 * timely_wheel_next_ns() - when to ask timely_wheel_expire() again
 * @w: the wheel
 *
 * Return: when the next node comes out, or a far block has to be spread, which
 * is never later; all ones if the wheel is empty.
 */
u64 timely_wheel_next_ns(struct timely_wheel *w)
{
	/* What is noted is right while there is a node to show for it. */
	if (w->next_tick - w->tick >= TIMELY_WHEEL_SLOTS ||
	    !w->near[w->next_tick & WHEEL_NEAR_MASK])
		w->next_tick = wheel_find(w);
	return w->next_tick == WHEEL_NEVER ? WHEEL_NEVER :
					     w->next_tick << w->shift;
}
EXPORT_SYMBOL_GPL(timely_wheel_next_ns);
