/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A naive model of the timing wheel: an array that is searched. Each operation
 * is done to the wheel and to the model, and what <timely/engine/wheel.h> promises
 * is checked on the way. wheel_kunit.c runs it in the kernel, user/wheel_fuzz.c
 * for longer in user space.
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
/* Slots that the two levels reach. */
#define WHEEL_SPAN		((u64)TIMELY_WHEEL_SLOTS << TIMELY_WHEEL_BITS)
/* From here on a time is too late to go on from. */
#define WHEEL_MODEL_END_NS	(3ULL << 62)

enum wheel_promise {
	WHEEL_EARLY, WHEEL_LATE, WHEEL_ORDER, WHEEL_KNOWN, WHEEL_QUEUED, WHEEL_DUE,
	WHEEL_PRESENT, WHEEL_EMPTY, WHEEL_NEXT, WHEEL_EXACT, WHEEL_PROGRESS,
	WHEEL_ADVANCE, WHEEL_PROMISES
};

static const char * const wheel_promises[WHEEL_PROMISES] = {
	[WHEEL_EARLY] = "no node expires before its time",
	[WHEEL_LATE] = "no node is due and held back",
	[WHEEL_ORDER] = "nodes expire by slots, in ascending order",
	[WHEEL_KNOWN] = "only what is in the wheel expires",
	[WHEEL_QUEUED] = "queued says what is in the wheel",
	[WHEEL_DUE] = "a node keeps its time",
	[WHEEL_PRESENT] = "the present slot is the last time told",
	[WHEEL_EMPTY] = "next is never if and only if the wheel is empty",
	[WHEEL_NEXT] = "next is not after the first node's slot",
	[WHEEL_EXACT] = "next is the first near slot, or the start of a far block",
	[WHEEL_PROGRESS] = "when nothing is due, next lies ahead",
	[WHEEL_ADVANCE] = "advance refuses what would skip a node, and only that",
};

/**
 * struct wheel_dice - random numbers: xorshift64*, or a fuzzer's input
 * @state: of the generator, not 0
 * @input: bytes to use instead, if not NULL
 * @left: how many of them
 */
struct wheel_dice {
	u64 state;
	const u8 *input;
	size_t left;
};

/**
 * struct wheel_model_node - a node and what the model knows of it
 * @node: the node
 * @due_ns: its time
 * @tick: the slot it has to expire in
 * @queued: is it in the wheel?
 * @near: it was put in, or taken nearer, so that next has to be exact
 * @beyond: it was put in further away than both levels reach
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
 * struct wheel_model - a wheel and the model of it
 * @now_ns: the latest time told
 * @told: its slot
 * @reach: how far ahead nodes are put: 0 near, 1 far, 2 beyond both levels
 * @kept: how often each promise was put to the test
 * @broken: how often it was broken
 * @steps: operations done
 * @broke_at: the first operation that broke one
 * @broke: which one it broke
 * @dice: where the operations come from
 * @wheel: the wheel
 * @nodes: all the nodes there are
 */
struct wheel_model {
	u64 now_ns;
	u64 told;
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

static inline u32 wheel_below(struct wheel_dice *dice, u32 n)
{
	return (u32)wheel_roll(dice) % n;
}

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

static inline u64 wheel_tick_of(const struct timely_wheel *w, u64 due_ns)
{
	u64 part = due_ns & ((1ULL << w->shift) - 1);

	return (due_ns >> w->shift) + (part ? 1 : 0);
}

/* ---- the operations ---- */

static inline void wheel_model_init(struct wheel_model *m, u8 shift, u64 now_ns)
{
	memset(m->nodes, 0, sizeof(m->nodes));
	timely_wheel_init(&m->wheel, shift, now_ns);
	m->now_ns = now_ns;
	m->told = now_ns >> shift;
	m->reach = wheel_below(&m->dice, 3);
	wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == m->told);
}

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

/* The first slot that has a node; U64_MAX: none has. */
static inline u64 wheel_model_first(const struct wheel_model *m)
{
	u64 first = U64_MAX;
	u32 i;

	for (i = 0; i < WHEEL_MODEL_NODES; i++)
		if (m->nodes[i].queued)
			first = min(first, m->nodes[i].tick);
	return first;
}

static inline struct wheel_model_node *wheel_model_expire(struct wheel_model *m, u64 now_ns)
{
	u64 first = wheel_model_first(m), tick = now_ns >> m->wheel.shift;
	struct timely_wheel_node *node;
	struct wheel_model_node *n;

	node = timely_wheel_expire(&m->wheel, now_ns);
	m->now_ns = max(m->now_ns, now_ns);
	m->told = max(m->told, tick);
	if (!node) {
		wheel_promise(m, WHEEL_LATE, first > tick);
		wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == m->told);
		return NULL;
	}
	n = container_of(node, struct wheel_model_node, node);
	wheel_promise(m, WHEEL_KNOWN, n->queued);
	wheel_promise(m, WHEEL_EARLY, n->due_ns <= now_ns && n->tick <= tick);
	wheel_promise(m, WHEEL_ORDER, n->tick == first);
	wheel_promise(m, WHEEL_PRESENT, m->wheel.tick >= n->tick && m->wheel.tick <= m->told);
	n->queued = false;
	return n;
}

static inline void wheel_model_advance(struct wheel_model *m, u64 now_ns)
{
	u64 first = wheel_model_first(m), tick = now_ns >> m->wheel.shift;
	u64 before = m->wheel.tick;
	bool ask = wheel_below(&m->dice, 2);
	u64 next_ns = ask ? timely_wheel_next_ns(&m->wheel) : 0;

	if (timely_wheel_advance(&m->wheel, now_ns)) {
		m->now_ns = max(m->now_ns, now_ns);
		m->told = max(m->told, tick);
		wheel_promise(m, WHEEL_ADVANCE, first > tick);
		wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == max(before, tick));
	} else {
		wheel_promise(m, WHEEL_ADVANCE, !ask || next_ns <= now_ns);
		wheel_promise(m, WHEEL_PRESENT, m->wheel.tick == before);
	}
}

/* ---- what holds after each ---- */

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
		/* What is in the present block is far no more. */
		if (n->tick >> TIMELY_WHEEL_BITS <= present >> TIMELY_WHEEL_BITS)
			n->near = true;
		exact = n->near ? n->tick : n->tick >> TIMELY_WHEEL_BITS << TIMELY_WHEEL_BITS;
		from = min(from, exact);
		beyond |= n->beyond && !n->near;
	}
	wheel_promise(m, WHEEL_NEXT, next_ns >> shift <= first);
	/* What is beyond both levels may have been put into any block. */
	if (!beyond)
		wheel_promise(m, WHEEL_EXACT, next_ns >= from << shift);
	if (present == m->told && first > m->told)
		wheel_promise(m, WHEEL_PROGRESS, next_ns >> shift > m->told);
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
		      m->wheel.tick <= m->told && m->wheel.tick <= wheel_model_first(m));
	/* It keeps a note of what it said; what it does without is seen too. */
	if (wheel_below(&m->dice, 2))
		wheel_model_check_next(m);
}

/* ---- random operations ---- */

/* A number of ns: from less than a slot to more than both levels. */
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
		/* Another node's time. */
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

static inline struct wheel_model_node *wheel_model_any(struct wheel_model *m)
{
	return &m->nodes[wheel_below(&m->dice, WHEEL_MODEL_NODES)];
}

static inline void wheel_model_some(struct wheel_model *m)
{
	struct wheel_model_node *n = wheel_model_any(m);

	if (n->queued && wheel_below(&m->dice, 3) == 0)
		wheel_model_del(m, n);
	else
		wheel_model_put(m, n, wheel_model_due(m));
}

/* Expire all that is due, or a part of it, with changes in between. */
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

/* Nothing comes of a time before the one told. */
static inline void wheel_model_backwards(struct wheel_model *m)
{
	u64 back = min(m->now_ns, wheel_model_distance(m));

	while (wheel_model_expire(m, m->now_ns))
		;
	if (m->now_ns - back < m->told << m->wheel.shift)
		wheel_promise(m, WHEEL_EARLY, !wheel_model_expire(m, m->now_ns - back));
}

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
