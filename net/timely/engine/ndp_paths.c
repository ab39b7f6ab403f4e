// SPDX-License-Identifier: GPL-2.0
/*
 * The paths of an NDP sender. The sender shuffles the list of paths and sends one packet on each
 * path in this order, again and again. When a packet is trimmed, its path changes places with a
 * random one. So packets are spread equally over all paths, each path gets packets at equal times,
 * and senders whose packets meet at a switch move away from each other until few are trimmed. The
 * paper shuffles the list after each round (SIGCOMM'17, section 3.1.1). Then a path may be the last
 * one of a round and the first one of the next, so that packets of one sender already queue up. In
 * a permutation of 432 hosts with packets of 9000 bytes 2.6 % of the packets are trimmed then, and
 * 0.2 % with the order of this file.
 *
 * A round has only some of the paths if there are very many, so that it does not last too long to
 * learn from it. Each of the others gets its turn when a path of the round changes places with it.
 *
 * The scoreboard counts ACKs, NACKs and losses of each path. Normally all paths have about the same
 * share of NACKs. A path with a far larger share, or with far more losses than the others, is left
 * out of the list for a while (section 3.2.3). The paper gives no rule for that; this one compares
 * a path with all others together, which works with two paths, too. A path that is an outlier again
 * and again is left out for longer each time.
 *
 * Pure: no packet, socket or clock.
 */

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "ndp_paths.h"

/* Least number of NACKs and of losses with which a path can be an outlier. */
#define PATHS_MIN_NACKS		4
#define PATHS_MIN_LOSSES	2
/* An outlier has more than PATHS_NACK_TIMES times the share of NACKs of the other paths, plus an
 * eighth; or more than PATHS_LOSS_TIMES times their mean of losses, plus one.
 */
#define PATHS_NACK_TIMES	2
#define PATHS_LOSS_TIMES	3
/* The scoreboard is halved after this many answers for each path. */
#define PATHS_MEMORY		16
/* The first time a path is left out lasts 1 ms: several round trips, after which a burst on the
 * path is over. The longest lasts 2^6 times as long.
 */
#define PATHS_OUT_NS		1000000ULL
#define PATHS_MAX_STRIKES	6
/* Most paths of a round: 0.5 ms with packets of 9000 bytes at 10 Gb/s. */
#define PATHS_ROUND		64

/* A random number below @n, by xorshift64*. */
static u32 paths_random(struct timely_ndp_paths *p, u32 n)
{
	u64 x = p->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	p->random = x;
	return ((x * 0x2545f4914f6cdd1dULL >> 32) * n) >> 32;
}

/**
 * timely_ndp_paths_init() - set up a list of paths
 * @p: the paths
 * @memory: @count elements, which are set
 * @count: number of paths
 * @seed: random number
 *
 * Return: 0, or -EINVAL if @count is 0 or greater than TIMELY_NDP_MAX_PATHS.
 */
int timely_ndp_paths_init(struct timely_ndp_paths *p, struct timely_ndp_path *memory, u32 count,
			  u64 seed)
{
	if (!count || count > TIMELY_NDP_MAX_PATHS)
		return -EINVAL;
	memset(p, 0, sizeof(*p));
	memset(memory, 0, count * sizeof(*memory));
	p->paths = memory;
	p->count = count;
	p->random = seed ?: 1;
	return 0;
}
EXPORT_SYMBOL_GPL(timely_ndp_paths_init);

/* Sums of the scoreboard over the paths in use. */
struct paths_sum {
	u32 acks;
	u32 nacks;
	u32 losses;
	u32 used;
};

static struct paths_sum paths_sum(const struct timely_ndp_paths *p)
{
	struct paths_sum sum = {};
	u32 i;

	for (i = 0; i < p->count; i++) {
		const struct timely_ndp_path *path = &p->paths[i];

		if (path->out_until_ns)
			continue;
		sum.acks += path->acks;
		sum.nacks += path->nacks;
		sum.losses += path->losses;
		sum.used++;
	}
	return sum;
}

/* Whether a path in use is an outlier, compared with the others in use. */
static bool paths_outlier(const struct timely_ndp_path *path, const struct paths_sum *sum)
{
	u64 mine = path->acks + path->nacks;
	u64 others = sum->acks + sum->nacks - mine;
	u32 losses = sum->losses - path->losses;
	/* Packets are lost on the paths of a round only. */
	u32 paths = min_t(u32, sum->used, PATHS_ROUND);

	if (path->losses >= PATHS_MIN_LOSSES &&
	    (path->losses - 1) * (paths - 1) > PATHS_LOSS_TIMES * losses)
		return true;
	return path->nacks >= PATHS_MIN_NACKS && others &&
	       path->nacks * others > PATHS_NACK_TIMES * (sum->nacks - path->nacks) * mine +
				      mine * others / 8;
}

static void paths_leave_out(struct timely_ndp_paths *p, struct timely_ndp_path *path, u64 now_ns)
{
	path->out_until_ns = now_ns + (PATHS_OUT_NS << path->strikes);
	path->strikes = min(path->strikes + 1, PATHS_MAX_STRIKES);
	p->outliers++;
}

/* Take back paths whose time is over, and leave out outliers, at most half of all paths. Return:
 * whether other paths are in use than before.
 */
static bool paths_judge(struct timely_ndp_paths *p, u64 now_ns)
{
	struct paths_sum sum;
	bool changed = false;
	u32 i;

	for (i = 0; i < p->count; i++) {
		struct timely_ndp_path *path = &p->paths[i];

		if (!path->out_until_ns || now_ns < path->out_until_ns)
			continue;
		path->out_until_ns = 0;
		path->acks = 0;
		path->nacks = 0;
		path->losses = 0;
		changed = true;
	}
	sum = paths_sum(p);
	for (i = 0; i < p->count && sum.used > (p->count + 1) / 2; i++) {
		struct timely_ndp_path *path = &p->paths[i];

		if (path->out_until_ns || !paths_outlier(path, &sum))
			continue;
		paths_leave_out(p, path, now_ns);
		sum = paths_sum(p);
		changed = true;
	}
	return changed;
}

/* List the paths in use in random order. */
static void paths_shuffle(struct timely_ndp_paths *p)
{
	u32 i, j;

	p->used = 0;
	for (i = 0; i < p->count; i++) {
		if (p->paths[i].out_until_ns)
			continue;
		/* The new entry changes places with a random one. */
		j = paths_random(p, p->used + 1);
		p->paths[p->used].order = p->paths[j].order;
		p->paths[j].order = i;
		p->used++;
	}
}

/* Begin a round, in the order of the one before if the same paths are in use. */
static void paths_begin(struct timely_ndp_paths *p, u64 now_ns)
{
	if (paths_judge(p, now_ns) || !p->used)
		paths_shuffle(p);
	p->at = 0;
}

static u32 paths_round(const struct timely_ndp_paths *p)
{
	return min_t(u32, p->used, PATHS_ROUND);
}

static void paths_exchange(struct timely_ndp_paths *p, u32 a, u32 b)
{
	u8 order = p->paths[a].order;

	p->paths[a].order = p->paths[b].order;
	p->paths[b].order = order;
}

/**
 * timely_ndp_paths_next() - choose the path of a packet
 * @p: the paths
 * @now_ns: current time
 * @avoid: number of the path that the packet must not take if there is another one; or
 *	TIMELY_NDP_MAX_PATHS
 *
 * Return: number of a path, from 0 to one less than the number of paths.
 */
u32 timely_ndp_paths_next(struct timely_ndp_paths *p, u64 now_ns, u32 avoid)
{
	if (p->at >= paths_round(p))
		paths_begin(p, now_ns);
	if (p->paths[p->at].order == avoid) {
		/* The path to avoid comes later: next, or in the round after this one. */
		if (p->at + 1 == paths_round(p))
			paths_begin(p, now_ns);
		if (p->paths[p->at].order == avoid && p->used > 1)
			paths_exchange(p, p->at, p->at + 1);
	}
	return p->paths[p->at++].order;
}
EXPORT_SYMBOL_GPL(timely_ndp_paths_next);

/* If a path is in the round, let it change places with a random one. */
static void paths_move(struct timely_ndp_paths *p, u32 path)
{
	u32 i;

	for (i = 0; i < paths_round(p); i++) {
		if (p->paths[i].order != path)
			continue;
		paths_exchange(p, i, paths_random(p, p->used));
		return;
	}
}

/* Count an answer, and halve the scoreboard now and then, so that old answers lose weight. */
static void paths_answered(struct timely_ndp_paths *p)
{
	u32 i;

	if (++p->answers < PATHS_MEMORY * p->count)
		return;
	p->answers = 0;
	for (i = 0; i < p->count; i++) {
		struct timely_ndp_path *path = &p->paths[i];

		path->acks /= 2;
		path->nacks /= 2;
		path->losses /= 2;
		/* Only ACKs of a path show that the path works again. */
		if (!path->out_until_ns && path->strikes && path->acks > path->losses)
			path->strikes--;
	}
}

/**
 * timely_ndp_paths_ack() - count an ACK
 * @p: the paths
 * @path: number of the path of the acknowledged packet; an unknown number is ignored
 */
void timely_ndp_paths_ack(struct timely_ndp_paths *p, u32 path)
{
	if (path >= p->count)
		return;
	p->paths[path].acks++;
	paths_answered(p);
}
EXPORT_SYMBOL_GPL(timely_ndp_paths_ack);

/**
 * timely_ndp_paths_nack() - count a NACK or a returned packet
 * @p: the paths
 * @path: number of the path of the trimmed packet; an unknown number is ignored
 */
void timely_ndp_paths_nack(struct timely_ndp_paths *p, u32 path)
{
	if (path >= p->count)
		return;
	p->paths[path].nacks++;
	paths_move(p, path);
	paths_answered(p);
}
EXPORT_SYMBOL_GPL(timely_ndp_paths_nack);

/**
 * timely_ndp_paths_loss() - count a lost packet
 * @p: the paths
 * @path: number of the path of the lost packet; an unknown number is ignored
 */
void timely_ndp_paths_loss(struct timely_ndp_paths *p, u32 path)
{
	if (path >= p->count)
		return;
	p->paths[path].losses++;
	paths_answered(p);
}
EXPORT_SYMBOL_GPL(timely_ndp_paths_loss);
