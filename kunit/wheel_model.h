/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simple model of the timing wheel: an array of nodes, which is searched. Each random operation
 * is applied to the wheel and to the model, and the promises of <timely/engine/wheel.h> are
 * checked. wheel_kunit.c runs the model in the kernel, user/wheel_fuzz.c runs it longer in user
 * space.
 */
#ifndef _KUNIT_WHEEL_MODEL_H
#define _KUNIT_WHEEL_MODEL_H

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include <timely/engine/wheel.h>

#define WHEEL_MODEL_NODES	40
/* Number of slots that both rings of the wheel cover together. */
#define WHEEL_SPAN		((u64)TIMELY_WHEEL_SLOTS << TIMELY_WHEEL_BITS)
/* The model starts again before times get near 2^64 ns and wrap. */
#define WHEEL_MODEL_END_NS	(3ULL << 62)

/* What must always hold; wheel_promises[] has the texts. */
enum wheel_promise {
	WHEEL_EARLY, WHEEL_LATE, WHEEL_ORDER, WHEEL_KNOWN, WHEEL_QUEUED, WHEEL_DUE,
	WHEEL_PRESENT, WHEEL_EMPTY, WHEEL_NEXT, WHEEL_EXACT, WHEEL_PROGRESS,
	WHEEL_ADVANCE, WHEEL_PROMISES
};

static const char * const wheel_promises[WHEEL_PROMISES] = {
	[WHEEL_EARLY] = "no node expires before its time",
	[WHEEL_LATE] = "when no node expires, no node is due",
	[WHEEL_ORDER] = "nodes expire in the order of their slots",
	[WHEEL_KNOWN] = "only nodes that are in the wheel expire",
	[WHEEL_QUEUED] = "timely_wheel_queued() is true for the nodes in the wheel",
	[WHEEL_DUE] = "a node keeps its due_ns",
	[WHEEL_PRESENT] = "the present slot agrees with the times that were passed to the wheel",
	[WHEEL_EMPTY] = "next_ns is all ones if and only if the wheel is empty",
	[WHEEL_NEXT] = "next_ns is not after the slot of the first node",
	[WHEEL_EXACT] = "next_ns is not before the first near slot or the first far block",
	[WHEEL_PROGRESS] = "when no node is due, next_ns is after the present slot",
	[WHEEL_ADVANCE] = "timely_wheel_advance() refuses times that skip a node, and only those",
};

/**
 * struct wheel_dice - random numbers: xorshift64*, or a fuzzer's input
 * @state: state of the generator, not 0
 * @input: a fuzzer's bytes to use instead; NULL for none
 * @left: number of bytes left in @input; numbers are 0 without any
 */
struct wheel_dice {
	u64 state;
	const u8 *input;
	size_t left;
};

/**
 * struct wheel_model_node - a node of the wheel, and what the model expects of the node
 * @node: the node
 * @due_ns: when the node is due
 * @tick: the slot in which the node must expire
 * @queued: the node is in the wheel
 * @near: the node is certainly in the near ring, so timely_wheel_next_ns() must be exact
 * @beyond: the node was added beyond the range of both rings
 */
struct wheel_model_node {
	struct timely_wheel_node node;
	u64 due_ns;
	u64 tick;
	bool queued;
	bool near;
	bool beyond;
};

/**
 * struct wheel_model - a wheel and its model
 * @now_ns: the latest time that was passed to the wheel
 * @now_tick: slot of @now_ns
 * @reach: how far ahead nodes are added: 0 near, 1 far, 2 beyond both rings
 * @kept: how often each promise was checked
 * @broken: how often each promise was broken
 * @steps: number of operations
 * @broke_at: number of the first operation that broke a promise; 0 if there was none
 * @broke: the promise that this operation broke
 * @dice: source of random operations
 * @wheel: the wheel
 * @nodes: all nodes
 */
struct wheel_model {
	u64 now_ns;
	u64 now_tick;
	u32 reach;
	u64 kept[WHEEL_PROMISES];
	u64 broken[WHEEL_PROMISES];
	u64 steps;
	u64 broke_at;
	enum wheel_promise broke;
	struct wheel_dice dice;
	struct timely_wheel wheel;
	struct wheel_model_node nodes[WHEEL_MODEL_NODES];
};

/* A random number of 48 bits, or of up to 32 bits from a fuzzer's input. */
static inline u64 wheel_roll(struct wheel_dice *dice)
{
	u64 x = dice->state;
	int i;

	if (dice->input) {
		for (x = 0, i = 0; i < 4 && dice->left; i++, dice->left--)
			x = x << 8 | *dice->input++;
		return x;
	}
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	dice->state = x;
	return x * 0x2545f4914f6cdd1dULL >> 16;
}

/* A random number from 0 to @n - 1. */
static inline u32 wheel_below(struct wheel_dice *dice, u32 n)
{
	return (u32)wheel_roll(dice) % n;
}

/* Count a promise as checked, and as broken if @kept is false. */
static inline void wheel_promise(struct wheel_model *m, enum wheel_promise which, bool kept)
{
	m->kept[which]++;
	if (kept)
		return;
	m->broken[which]++;
	if (m->broke_at)
		return;
	m->broke_at = m->steps;
	m->broke = which;
}

/* The slot in which a time expires: the first that starts at the time or after it. */
static inline u64 wheel_tick_of(const struct timely_wheel *w, u64 due_ns)
{
	u64 part = due_ns & ((1ULL << w->shift) - 1);

	return (due_ns >> w->shift) + (part ? 1 : 0);
}

/* ---- the operations ---- */

/* Start with an empty wheel. */
static inline void wheel_model_init(struct wheel_model *m, u8 shift, u64 now_ns)
{
	memset(m->nodes, 0, sizeof(m->nodes));
	timely_wheel_init(&m->wheel, shift, now_ns);
	m->now_ns = now_ns;
	m->now_tick = now_ns >> shift;
	m->reach = wheel_below(&m->dice, 3);
	wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == m->now_tick);
}

/* Add a node, or move a node that is in the wheel. */
static inline void wheel_model_put(struct wheel_model *m, struct wheel_model_node *n,
				   u64 due_ns)
{
	u64 present = m->wheel.tick;
	u64 tick = max(wheel_tick_of(&m->wheel, due_ns), present);
	bool near = tick - present < TIMELY_WHEEL_SLOTS;
	u64 blocks = (tick >> TIMELY_WHEEL_BITS) - (present >> TIMELY_WHEEL_BITS);

	if (n->queued)
		timely_wheel_move(&m->wheel, &n->node, due_ns);
	else
		timely_wheel_add(&m->wheel, &n->node, due_ns);
	n->due_ns = due_ns;
	n->tick = tick;
	n->queued = true;
	n->near = near;
	n->beyond = blocks >= TIMELY_WHEEL_SLOTS;
}

static inline void wheel_model_del(struct wheel_model *m, struct wheel_model_node *n)
{
	timely_wheel_del(&m->wheel, &n->node);
	n->queued = false;
}

/* The first slot that has a node; U64_MAX if the wheel is empty. */
static inline u64 wheel_model_first(const struct wheel_model *m)
{
	u64 first = U64_MAX;
	u32 i;

	for (i = 0; i < WHEEL_MODEL_NODES; i++)
		if (m->nodes[i].queued)
			first = min(first, m->nodes[i].tick);
	return first;
}

/* Expire one node. Return: the node; NULL if none expired. */
static inline struct wheel_model_node *wheel_model_expire(struct wheel_model *m, u64 now_ns)
{
	u64 first = wheel_model_first(m), tick = now_ns >> m->wheel.shift;
	struct timely_wheel_node *node;
	struct wheel_model_node *n;

	node = timely_wheel_expire(&m->wheel, now_ns);
	m->now_ns = max(m->now_ns, now_ns);
	m->now_tick = max(m->now_tick, tick);
	if (!node) {
		wheel_promise(m, WHEEL_LATE, first > tick);
		wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == m->now_tick);
		return NULL;
	}
	n = container_of(node, struct wheel_model_node, node);
	wheel_promise(m, WHEEL_KNOWN, n->queued);
	wheel_promise(m, WHEEL_EARLY, n->due_ns <= now_ns && n->tick <= tick);
	wheel_promise(m, WHEEL_ORDER, n->tick == first);
	wheel_promise(m, WHEEL_PRESENT, m->wheel.tick >= n->tick && m->wheel.tick <= m->now_tick);
	n->queued = false;
	return n;
}

/* Advance the time without expiring nodes, half of the time with a call of timely_wheel_next_ns()
 * before. Only after this call the wheel knows its first slot exactly.
 */
static inline void wheel_model_advance(struct wheel_model *m, u64 now_ns)
{
	u64 first = wheel_model_first(m), tick = now_ns >> m->wheel.shift;
	u64 before = m->wheel.tick;
	bool ask = wheel_below(&m->dice, 2);
	u64 next_ns = ask ? timely_wheel_next_ns(&m->wheel) : 0;

	if (timely_wheel_advance(&m->wheel, now_ns)) {
		m->now_ns = max(m->now_ns, now_ns);
		m->now_tick = max(m->now_tick, tick);
		wheel_promise(m, WHEEL_ADVANCE, first > tick);
		wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == max(before, tick));
	} else {
		wheel_promise(m, WHEEL_ADVANCE, !ask || next_ns <= now_ns);
		wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == before);
	}
}

/* ---- checks after each operation ---- */

/* Check timely_wheel_next_ns(). */
static inline void wheel_model_check_next(struct wheel_model *m)
{
	u64 first = wheel_model_first(m), next_ns = timely_wheel_next_ns(&m->wheel);
	u8 shift = m->wheel.shift;
	u64 present = m->wheel.tick, from = U64_MAX, exact;
	bool beyond = false;
	u32 i;

	wheel_promise(m, WHEEL_EMPTY, (next_ns == U64_MAX) == (first == U64_MAX));
	if (first == U64_MAX)
		return;
	for (i = 0; i < WHEEL_MODEL_NODES; i++) {
		struct wheel_model_node *n = &m->nodes[i];

		if (!n->queued)
			continue;
		/* The wheel has moved the nodes of the present block to the near ring. */
		if (n->tick >> TIMELY_WHEEL_BITS <= present >> TIMELY_WHEEL_BITS)
			n->near = true;
		exact = n->near ? n->tick : n->tick >> TIMELY_WHEEL_BITS << TIMELY_WHEEL_BITS;
		from = min(from, exact);
		beyond |= n->beyond && !n->near;
	}
	wheel_promise(m, WHEEL_NEXT, next_ns >> shift <= first);
	/* A node beyond both rings may be in any block of the far ring. */
	if (!beyond)
		wheel_promise(m, WHEEL_EXACT, next_ns >= from << shift);
	if (present == m->now_tick && first > m->now_tick)
		wheel_promise(m, WHEEL_PROGRESS, next_ns >> shift > m->now_tick);
}

static inline void wheel_model_check(struct wheel_model *m)
{
	bool queued = true, due = true;
	u32 i;

	for (i = 0; i < WHEEL_MODEL_NODES; i++) {
		const struct wheel_model_node *n = &m->nodes[i];

		queued &= timely_wheel_queued(&n->node) == n->queued;
		due &= !n->queued || n->node.due_ns == n->due_ns;
	}
	wheel_promise(m, WHEEL_QUEUED, queued);
	wheel_promise(m, WHEEL_DUE, due);
	wheel_promise(m, WHEEL_PRESENT,
		      m->wheel.tick <= m->now_tick && m->wheel.tick <= wheel_model_first(m));
	/* timely_wheel_next_ns() caches its result. It is called after half of the operations, so
	 * that the other operations run without the cached result.
	 */
	if (wheel_below(&m->dice, 2))
		wheel_model_check_next(m);
}

/* ---- random operations ---- */

/* A random number of ns, from less than a slot to more than both rings, depending on @m->reach. */
static inline u64 wheel_model_distance(struct wheel_model *m)
{
	static const u8 kinds[] = { 4, 6, 8 };
	struct wheel_dice *dice = &m->dice;
	u8 shift = m->wheel.shift;
	u64 edge;

	switch (wheel_below(dice, kinds[m->reach])) {
	case 0:
		return wheel_below(dice, 4) << shift;
	case 1:
	case 2:
		return wheel_roll(dice) & ((1ULL << (shift + 4)) - 1);
	case 3:
		return wheel_roll(dice) & ((1ULL << (shift + TIMELY_WHEEL_BITS)) - 1);
	case 4:
		return (u64)wheel_below(dice, 3 * TIMELY_WHEEL_SLOTS) << shift;
	case 5:
		return (wheel_roll(dice) << 3 & (WHEEL_SPAN / 2 - 1)) << shift;
	case 6:
		edge = wheel_below(dice, 2) ? WHEEL_SPAN : TIMELY_WHEEL_SLOTS;
		return (edge << shift) + wheel_below(dice, 3) - 1;
	default:
		return ((WHEEL_SPAN * wheel_below(dice, 12)) << shift) +
		       (wheel_roll(dice) & ((WHEEL_SPAN << shift) - 1));
	}
}

/* A random time for a node: mostly in the future. */
static inline u64 wheel_model_due(struct wheel_model *m)
{
	u64 distance = wheel_model_distance(m);
	u8 shift = m->wheel.shift;

	switch (wheel_below(&m->dice, 16)) {
	case 0:
		return m->now_ns - min(m->now_ns, distance);
	case 1:
		return m->reach < 2 || wheel_below(&m->dice, 8) ? 0 : U64_MAX;
	case 2:
		/* The time of another node. */
		return m->nodes[wheel_below(&m->dice, WHEEL_MODEL_NODES)].due_ns;
	case 3:
		/* The start of a slot. */
		return (m->now_ns + distance) >> shift << shift;
	case 4:
		/* The start of a block. */
		shift += TIMELY_WHEEL_BITS;
		return ((m->now_ns + distance) >> shift << shift) + wheel_below(&m->dice, 2);
	default:
		return m->now_ns + distance;
	}
}

/* A random present time, not before the last one: often just when the next node is due. */
static inline u64 wheel_model_later(struct wheel_model *m)
{
	u64 next_ns;

	switch (wheel_below(&m->dice, 8)) {
	case 0:
	case 1:
	case 2:
		next_ns = timely_wheel_next_ns(&m->wheel);
		if (next_ns >= WHEEL_MODEL_END_NS)
			return m->now_ns + 1;
		return max(m->now_ns, next_ns - min_t(u64, next_ns, wheel_below(&m->dice, 2)));
	case 3:
		return m->now_ns + wheel_model_distance(m);
	case 4:
		return m->now_ns;
	default:
		return m->now_ns + (wheel_roll(&m->dice) & ((1ULL << (m->wheel.shift + 3)) - 1));
	}
}

/* A random node. */
static inline struct wheel_model_node *wheel_model_any(struct wheel_model *m)
{
	return &m->nodes[wheel_below(&m->dice, WHEEL_MODEL_NODES)];
}

/* Add, move or delete a random node. */
static inline void wheel_model_some(struct wheel_model *m)
{
	struct wheel_model_node *n = wheel_model_any(m);

	if (n->queued && wheel_below(&m->dice, 3) == 0)
		wheel_model_del(m, n);
	else
		wheel_model_put(m, n, wheel_model_due(m));
}

/* Expire one node or all nodes that are due, half of the time with other operations in between. */
static inline void wheel_model_expire_some(struct wheel_model *m, u64 now_ns)
{
	u32 most = wheel_below(&m->dice, 4) ? 2 * WHEEL_MODEL_NODES : 1;
	bool meddle = wheel_below(&m->dice, 2);
	struct wheel_model_node *n;

	while (most-- && (n = wheel_model_expire(m, now_ns))) {
		if (meddle && most > WHEEL_MODEL_NODES && wheel_below(&m->dice, 2)) {
			wheel_model_some(m);
			wheel_model_check(m);
		}
		if (meddle && most > WHEEL_MODEL_NODES && !n->queued)
			wheel_model_put(m, n, wheel_model_due(m));
	}
}

/* Check that a time before the present slot expires no node. */
static inline void wheel_model_backwards(struct wheel_model *m)
{
	u64 back = min(m->now_ns, wheel_model_distance(m));

	while (wheel_model_expire(m, m->now_ns))
		;
	if (m->now_ns - back < m->now_tick << m->wheel.shift)
		wheel_promise(m, WHEEL_EARLY, !wheel_model_expire(m, m->now_ns - back));
}

/* One random operation, and all checks. */
static inline void wheel_model_step(struct wheel_model *m)
{
	m->steps++;
	if (m->now_ns >= WHEEL_MODEL_END_NS) {
		wheel_model_init(m, m->wheel.shift, wheel_model_distance(m));
		return;
	}
	switch (wheel_below(&m->dice, 16)) {
	case 0:
		wheel_model_backwards(m);
		break;
	case 1:
		wheel_model_advance(m, wheel_model_later(m));
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		wheel_model_expire_some(m, wheel_model_later(m));
		break;
	default:
		wheel_model_some(m);
	}
	wheel_model_check(m);
}

#endif /* _KUNIT_WHEEL_MODEL_H */
