// SPDX-License-Identifier: GPL-2.0
/*
 * The timing wheel: what has to leave at a time, found in constant time.
 *
 * Time is cut into ticks of 2^shift ns, numbered from 0. A node due at d
 * belongs to the first tick that starts at d or after it, so that it never
 * leaves early, and less than a tick late.
 *
 * The near level holds the 4096 ticks from the present one, a slot each; the
 * far level the 4095 blocks of 4096 ticks after the present block. When a
 * block becomes the present one its nodes are spread over the near level, so
 * each node moves at most once (Varghese and Lauck's hierarchical wheel;
 * Carousel, SIGCOMM'17, uses one level). What lies beyond both waits in the
 * last block and is placed again from there. With ticks of 1 us the near level
 * reaches 4 ms, the far one 17 s.
 *
 * Both levels are rings, indexed by the low bits of tick or block number: since
 * only what lies within one turn of the present is put there, a slot never
 * holds two ticks. A bit for each slot, and one for each word of those, find
 * the next slot in use in a few instructions however far away it is.
 */

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include <net/timely_wheel.h>

#define WHEEL_MASK	(TIMELY_WHEEL_SLOTS - 1)

#define WHEEL_NEVER	(~0ULL)

/* Slots from @from on, in the ring's order, until one that is in use. */
static u32 wheel_distance(const struct timely_wheel_level *level, u32 from)
{
	u32 word = from / 64, bit = from % 64;
	u64 bits = level->bits[word] >> bit;
	u64 words;
	u32 step;

	if (bits)
		return __ffs64(bits);
	words = ror64(level->full, word) & ~1ULL;
	if (words) {
		step = __ffs64(words);
		bits = level->bits[(word + step) % 64];
		return step * 64 - bit + __ffs64(bits);
	}
	bits = level->bits[word] & (BIT_ULL(bit) - 1);
	if (bits)
		return TIMELY_WHEEL_SLOTS - bit + __ffs64(bits);
	return TIMELY_WHEEL_SLOTS;
}

/* The first tick at which there is something to do: a node, or a block of them
 * to be spread.
 */
static u64 wheel_find(const struct timely_wheel *w)
{
	u64 block = w->tick >> TIMELY_WHEEL_BITS;
	u32 slots = wheel_distance(&w->level[0], w->tick & WHEEL_MASK);
	u32 blocks = wheel_distance(&w->level[1], block & WHEEL_MASK);
	u64 tick = slots < TIMELY_WHEEL_SLOTS ? w->tick + slots : WHEEL_NEVER;

	if (blocks < TIMELY_WHEEL_SLOTS)
		tick = min(tick, max((block + blocks) << TIMELY_WHEEL_BITS, w->tick));
	return tick;
}

static void wheel_link(struct timely_wheel_level *level, u32 slot,
		       struct timely_wheel_node *node)
{
	struct timely_wheel_node **head = &level->slots[slot];

	node->next = *head;
	node->pprev = head;
	if (node->next) {
		node->next->pprev = &node->next;
	} else {
		level->bits[slot / 64] |= BIT_ULL(slot % 64);
		level->full |= BIT_ULL(slot / 64);
	}
	*head = node;
}

static void wheel_mark_empty(struct timely_wheel_level *level, u32 slot)
{
	level->bits[slot / 64] &= ~BIT_ULL(slot % 64);
	if (!level->bits[slot / 64])
		level->full &= ~BIT_ULL(slot / 64);
}

/* Put a node where its time belongs, seen from the present tick. */
static void wheel_place(struct timely_wheel *w, struct timely_wheel_node *node)
{
	u64 width = BIT_ULL(w->shift);
	u64 tick = (node->due_ns >> w->shift) + !!(node->due_ns & (width - 1));
	u64 block;

	tick = max(tick, w->tick);
	if (tick - w->tick < TIMELY_WHEEL_SLOTS) {
		wheel_link(&w->level[0], tick & WHEEL_MASK, node);
	} else {
		block = min(tick >> TIMELY_WHEEL_BITS,
			    (w->tick >> TIMELY_WHEEL_BITS) + WHEEL_MASK);
		wheel_link(&w->level[1], block & WHEEL_MASK, node);
		tick = block << TIMELY_WHEEL_BITS;
	}
	w->next_tick = min(w->next_tick, tick);
}

/* The present block's nodes go to the slots of their own. */
static void wheel_spread(struct timely_wheel *w)
{
	u32 slot = (w->tick >> TIMELY_WHEEL_BITS) & WHEEL_MASK;
	struct timely_wheel_node *node = w->level[1].slots[slot];
	struct timely_wheel_node *next;

	if (likely(!node))
		return;
	w->level[1].slots[slot] = NULL;
	wheel_mark_empty(&w->level[1], slot);
	for (; node; node = next) {
		next = node->next;
		prefetchw(next);
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
}

/**
 * timely_wheel_del() - take out a node before its time
 * @w: the wheel
 * @node: a node in it
 */
void timely_wheel_del(struct timely_wheel *w, struct timely_wheel_node *node)
{
	struct timely_wheel_node **pprev = node->pprev;
	unsigned long offset;
	u32 i;

	*pprev = node->next;
	node->pprev = NULL;
	if (node->next) {
		node->next->pprev = pprev;
		return;
	}
	/* The last of its list; if it was the first too, a slot is empty now. */
	for (i = 0; i < TIMELY_WHEEL_LEVELS; i++) {
		offset = (unsigned long)pprev - (unsigned long)w->level[i].slots;
		if (offset < sizeof(w->level[i].slots))
			wheel_mark_empty(&w->level[i], offset / sizeof(*pprev));
	}
}

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
		wheel_spread(w);
		node = w->level[0].slots[w->tick & WHEEL_MASK];
		if (node) {
			timely_wheel_del(w, node);
			prefetchw(node->next);
			return node;
		}
		w->next_tick = wheel_find(w);
	}
	w->tick = max(w->tick, last);
	return NULL;
}

/**
 * timely_wheel_next_ns() - when to ask timely_wheel_expire() again
 * @w: the wheel
 *
 * Return: when the next node comes out, or a far block has to be spread, which
 * is never later; all ones if the wheel is empty.
 */
u64 timely_wheel_next_ns(struct timely_wheel *w)
{
	w->next_tick = wheel_find(w);
	return w->next_tick == WHEEL_NEVER ? WHEEL_NEVER :
					     w->next_tick << w->shift;
}
