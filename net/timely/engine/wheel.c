// SPDX-License-Identifier: GPL-2.0
/*
 * The timing wheel: finds in constant time which nodes are due.
 *
 * Time is divided into ticks of 2^shift ns. A node that is due at time d belongs to the first tick
 * that starts at d or later, so the node never expires early, and less than a tick late.
 *
 * The near ring has a slot for each tick of the present block of 2048 ticks and of the next block.
 * The far ring has a slot for each of the 2047 blocks after the present one. The nodes of the next
 * block move from the far ring to the near ring while the present block passes, one with each node
 * that is added or expires: moving the nodes of a million flows at once would occupy the CPU for
 * milliseconds. Nodes that are due beyond the far ring are in its last block, and are placed again
 * when that block is next. All other nodes move at most once (the hierarchical wheel of Varghese
 * and Lauck; Carousel, SIGCOMM'17, uses one level). With ticks of 1 us, the near ring covers 2 to
 * 4 ms and the far ring 4 s.
 *
 * The low bits of a tick or block number are the index in a ring. A ring has only ticks or blocks
 * less than the ring's size away from the present one, so a slot never has nodes of two ticks or
 * blocks. Bitmaps show which slots are used, with a bit for each slot and a bit for each word of
 * those bits. So the next used slot is found in a few instructions at any distance.
 */

#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include "wheel.h"

#define WHEEL_NEAR_MASK	(TIMELY_WHEEL_NEAR_SLOTS - 1)
#define WHEEL_FAR_MASK	(TIMELY_WHEEL_SLOTS - 1)

/* Tick and time of the next node in a wheel without nodes. */
#define WHEEL_NEVER	(~0ULL)

/* Number of nodes moved to the near ring when a node is added or expires. A node is added once,
 * expires once and moves at most once. So half a move per call would suffice on average. Nodes
 * still in the far ring when their block becomes the present block are moved together.
 */
#define WHEEL_MOVES	1

/**
 * struct wheel_ring - one of the two rings
 * @full: a bit for each word of @bits that is not 0
 * @bits: a bit for each slot that is not empty
 * @slots: the slots, each a list of nodes
 * @words: number of words of @bits, a power of two; a word has 64 bits
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

/* Index of the first nonzero word of the ring's bits after @word. The search goes around the ring
 * and ends with @word itself. Return: the number of words if all are zero.
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

/* Number of slots from slot @from to the first slot with nodes, 0 if @from has nodes. The search
 * goes around the ring. Return: the number of all slots if no slot has nodes.
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

/* The first tick at which there is something to do: a node is due, or a block begins whose nodes
 * must have moved to the near ring. Return: WHEEL_NEVER if the wheel is empty.
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

/* Put a node at the head of a slot's list. */
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

/* Clear the bits of a slot that became empty. If @head is not a slot of this ring, do nothing. */
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

/* Put a node into the slot of the tick or block in which the node is due. */
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

/* Move up to @count nodes of a block from the far ring to the near ring. The block must be the
 * present or the next block. Nodes due beyond the far ring go to the last block of the far ring
 * again.
 */
static void wheel_spread(struct timely_wheel *w, u64 block, u32 count)
{
	struct timely_wheel_node **slot = &w->far[block & WHEEL_FAR_MASK];
	struct timely_wheel_node *node;

	while (count-- && (node = *slot)) {
		timely_wheel_del(w, node);
		/* The next call or loop iteration starts with this node. */
		prefetchw(*slot);
		wheel_place(w, node);
	}
}

/**
 * timely_wheel_init() - initialise an empty wheel
 * @w: the wheel
 * @shift: log2 of a tick's length in ns, TIMELY_WHEEL_MIN_SHIFT to TIMELY_WHEEL_MAX_SHIFT
 * @now_ns: current time
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
 * timely_wheel_add() - add a node
 * @w: the wheel
 * @node: a node that is in no wheel
 * @due_ns: when the node is due; with a past time, the node is due at once
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
 * timely_wheel_del() - remove a node, whether it is due or not
 * @w: the wheel
 * @node: a node in the wheel
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
	/* The node was the last of its list. If it was also the first, the list's slot is empty. */
	wheel_emptied(wheel_near(w), pprev);
	wheel_emptied(wheel_far(w), pprev);
}
EXPORT_SYMBOL_GPL(timely_wheel_del);

/**
 * timely_wheel_expire_slow() - the part of timely_wheel_expire() for wheels in which a node may be
 * due
 * @w: the wheel
 * @now_ns: current time
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
 * timely_wheel_next_ns() - get the time at which timely_wheel_expire() must be called next
 * @w: the wheel
 *
 * Return: when the next node expires, or earlier if a block must be moved to the near ring before;
 * U64_MAX if the wheel is empty.
 */
u64 timely_wheel_next_ns(struct timely_wheel *w)
{
	/* next_tick is right if its near slot has a node; else that node was deleted or moved. */
	if (w->next_tick - w->tick >= TIMELY_WHEEL_SLOTS ||
	    !w->near[w->next_tick & WHEEL_NEAR_MASK])
		w->next_tick = wheel_find(w);
	return w->next_tick == WHEEL_NEVER ? WHEEL_NEVER :
					     w->next_tick << w->shift;
}
EXPORT_SYMBOL_GPL(timely_wheel_next_ns);
